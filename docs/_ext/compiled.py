"""What Python for browsers compiles of itself, the playground and the lessons: run by compiled.mjs, in that Python.

It leaves three archives as bytes, `program`, `library` and `course`.
"""

import io
import json
import sys
import traceback
import zipfile
from importlib._bootstrap_external import _code_to_hash_pyc
from importlib.util import cache_from_source, source_hash
from itertools import product

PROGRAM, LIBRARY = "/lib/program.zip", next(path for path in sys.path if path.endswith("zip") and "program" not in path)
COURSE, MORE = "/lib/course.zip", "/lib/more"  # an archive, and where it is unpacked


def packed(path, wanted, beside=""):
    """The archive with its modules compiled: those that are wanted. They are never compared with a source.

    What is imported from the archive is there compiled alone; what is unpacked into a folder has its source beside it.
    """
    made = io.BytesIO()
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as new:
        for name in filter(wanted, old.namelist()):
            content = old.read(name)
            if name.endswith(".py"):
                code = compile(content, f"{beside or path}/{name}", "exec", dont_inherit=True)
                made_of = bytes(_code_to_hash_pyc(code, source_hash(content), checked=False))
                new.writestr(cache_from_source(name) if beside else f"{name}c", made_of)
            if beside or not name.endswith(".py"):
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


def learnt():
    """Whatever the lessons do, but for what trains and what draws with another library; and the texts of errors."""
    with zipfile.ZipFile(COURSE) as archive:
        archive.extractall(MORE)
    sys.path.append(MORE)
    import cells

    from wengert_course import lessons

    streams, main, told = (sys.stdout, sys.stderr), sys.modules["__main__"], []
    for lesson in lessons():
        page = cells.Cells(told.append)
        for number, cell in enumerate(lesson.cells()):
            if cell.kind == "code" and ("unchecked" not in cell.tags or "course.check(" in cell.text):
                mine = next((one["text"] for one in map(json.loads, reversed(told)) if one["kind"] == "mine"), "")
                page.run(number, cell.shown(solved=True), 80, mine)
        for wrong in ("1 / 0", "1 +", "import no_such_module"):
            page.run(0, wrong, 80, "")
    (sys.stdout, sys.stderr), sys.modules["__main__"] = streams, main
    return told


played()
learnt()
origins = {getattr(module.__spec__, "origin", None) for module in sys.modules.values() if hasattr(module, "__spec__")}
program = packed(PROGRAM, lambda name: True)
library = packed(LIBRARY, lambda name: f"{LIBRARY}/{name}" in origins)
course = packed(COURSE, lambda name: True, MORE)
