"""Writes a program as a complete text that runs elsewhere: NumPy or C with its gradient, PyTorch or JAX with theirs."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert.compiler.backends.base import Kernel
from wengert.compiler.backends.native import source as c_source
from wengert.compiler.backends.numpy import Writer
from wengert.compiler.backends.spellings import LIBRARIES, Library
from wengert.compiler.backends.syntax import call, infix, item, method, node, path, written
from wengert.compiler.ir import Array, Program, fit_strides
from wengert.errors import ArgumentError
from wengert.ops import BY_NAME

__all__ = ["function_of", "source_of"]


def function_of(
    program: Program, back: Program | None, wanted: Sequence[Array], library: Library, space: dict[str, Any]
) -> tuple[Callable[..., Any], list[Any]]:
    """Compile a program to a function of a library's arrays.

    Args:
        program: the program.
        back: its reverse sweep, if derivatives are needed.
        wanted: the inputs, besides the parameters, with respect to which to differentiate.
        library: the library whose functions the text calls.
        space: the globals of the text.

    Returns:
        The function and its constants. The function takes the seed, the inputs, the parameters and the constants; it
            returns a tuple of the outputs, the derivatives with respect to the parameters, and those with respect to
            `wanted`.
    """
    text = Writer(program, back, library)
    constants = text.names.constants
    results = [text.result(array) for array in program.outputs.values()]
    if back is not None:
        results += [text.result(back.gradients.get(a.name), a) for a in (*program.of_role("param"), *wanted)]
    body = "\n    ".join([*text.lines, f"return ({', '.join(results)},)"])
    title = f"def lifted({', '.join(['seed', *text.given, *constants])}):"
    exec(compile(f"{text.helpers()}{title}\n    {body}\n", "<lifted>", "exec"), space)
    function: Callable[..., Any] = space["lifted"]
    return function, list(constants.values())


def source_of(specialization: Any, name: str, language: str, gradient: bool) -> str:
    """Return the text of a specialization's program, as a function of a name or as near to it as Python allows.

    Raises:
        ArgumentError: the language is unknown, or cannot express an operation of the user's own.
    """
    kernel: Kernel = specialization.kernel
    if language == "c":
        return c_source(specialization, name, gradient)
    if language not in LIBRARIES:
        *most, last = map('"{}"'.format, (*LIBRARIES, "c"))
        raise ArgumentError(f"source() writes {', '.join(most)} or {last}, not {language!r}")
    library = LIBRARIES[language]
    program, back = kernel.program, kernel.backward
    out = program.outputs["out"]
    gradient = gradient and bool(back.gradients) and language == "numpy" and not out.cell_shape
    text = Writer(program, back if gradient else None, library)
    given = dict(zip(text.given, (*kernel.inputs, *kernel.params), strict=True))
    name = name.strip("<>")  # of <lambda>
    title = text.names.free(f"{name}_and_gradients" if gradient else name)
    if any(BY_NAME[of].written_out for of, *_ in text.elements):
        raise ArgumentError('source(): it looks for a root, which is a loop of its own: choose the language "c"')
    lines = [library.header]
    if text.elements:
        lines.append("from wengert.compiler.backends.spellings import by_element")
    arrays = {name: x for name, x in text.names.constants.items() if isinstance(x, np.ndarray)}
    constants = [f"{name} = {written(_constant(x, library))}" for name, x in arrays.items()]
    lines += ["", *constants, *text.helpers().splitlines(), "", f"def {title}({', '.join(given)}):"]
    if library.usage:
        lines.append(f'    """{library.usage.format(name=title)}"""')
    lines += [f"    # {name}: {array.written_shape}" for name, array in given.items()]
    if gradient and back.seed is not None:
        lines.append(f"    seed = {written(infix(1, '/', text.names.length)) if out.batched else 1.0}")
    lines += [f"    {line}" for line in text.lines]
    result = text.names.of(out)
    results = [written(method(result, "mean") if out.batched else result)]
    if gradient:
        grads = [text.result(back.gradients.get(a.name), a) for a in kernel.params]
        results.append(f"({', '.join(grads)}{',' if len(grads) == 1 else ''})")
    return "\n".join([*lines, f"    return {', '.join(results)}\n"])


def _constant(values: Any, library: Library) -> Any:
    """Write an array of constants: a triangle by name, equal steps as a range, others as lists."""
    if values.dtype == bool and values.ndim >= 2 and values.shape[-1] == values.shape[-2]:
        n = values.shape[-1]
        tree = library.filled(library.triangle, node(n))
        for mask, triangle in ((np.tri(n, dtype=bool), tree), (np.tri(n, dtype=bool).T, ast.Attribute(tree, "T"))):
            if (values == mask).all():
                return triangle if values.ndim == 2 else call(library.function("broadcast_to"), triangle, values.shape)
    if values.dtype.kind == "i" and values.size > 8 and (fit := fit_strides(values)) is not None:
        base, strides = fit
        steps = [node(base)] if base else []
        for axis, (length, stride) in enumerate(zip(values.shape, strides, strict=True)):
            later = [None] * (values.ndim - axis - 1)
            counted = call(library.function("arange"), length)
            step = item(counted, slice(None), *later) if later else counted
            steps.append(infix(step, "*", stride) if stride != 1 else step)
        tree = steps[0]
        for step in steps[1:]:
            tree = infix(tree, "+", step)
        return tree
    kind = {"f": "float64", "b": "bool"}.get(values.dtype.kind, "int64")
    return library.filled(library.array, _items(values.tolist(), library), path(f"{library.name}.{kind}"))


def _items(values: Any, library: Library) -> Any:
    if isinstance(values, list):
        return node([_items(x, library) for x in values])
    return library.literal(values) if isinstance(values, float) and not abs(values) < np.inf else node(values)
