"""What Python for browsers compiles of itself and of the playground: run by compiled.mjs, in that Python.

It leaves two archives as bytes, `program` and `library`.
"""

import io
import sys
import traceback
import zipfile
from importlib._bootstrap_external import _code_to_hash_pyc
from importlib.util import source_hash
from itertools import product

PROGRAM, LIBRARY = "/lib/program.zip", next(path for path in sys.path if path.endswith("zip") and "program" not in path)


def packed(path, wanted):
    """The archive with its modules compiled: those that are wanted. They are never compared with a source."""
    made = io.BytesIO()
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as new:
        for name in filter(wanted, old.namelist()):
            content = old.read(name)
            if name.endswith(".py"):
                code = compile(content, f"{path}/{name}", "exec", dont_inherit=True)
                new.writestr(f"{name}c", bytes(_code_to_hash_pyc(code, source_hash(content), checked=False)))
            else:
                new.writestr(name, content)
    return made.getvalue()


def played():
    """Whatever the playground does, so that all is imported that it asks for; an error's text is part of it."""
    import playground

    examples = {kind: playground.examples(kind) for kind in ("moons", "circles", "spiral", "xor", "plane", "gaussians")}
    problems = {"classification": examples["xor"], "regression": examples["plane"]}
    for problem, activation in product(problems, ("tanh", "relu", "sigmoid", "linear")):
        for optimizer in playground.OPTIMIZERS:
            inputs = list(playground.INPUTS)
            made = playground.Playground(
                problem, [2], activation, optimizer, 0.03, 1, inputs, 10, 0.01, *problems[problem]
            )
            for _ in range(3):
                made.step()
            made.set_rate(0.1), made.set_parameter(made.names()[0], 0.5)
            made.forward(), made.measure(), made.numbers(), made.diagnosis(), made.why(made.names()[0], 0)
    try:
        made.why("no such name", 0)
    except KeyError:
        traceback.format_exc()


played()
origins = {getattr(module.__spec__, "origin", None) for module in sys.modules.values() if hasattr(module, "__spec__")}
program = packed(PROGRAM, lambda name: True)
library = packed(LIBRARY, lambda name: f"{LIBRARY}/{name}" in origins)
