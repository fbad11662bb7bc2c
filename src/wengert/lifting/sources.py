"""A program as a complete text to run elsewhere: NumPy with its own gradient, PyTorch or JAX with theirs."""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert.errors import ArgumentError
from wengert.lifting.numpy_backend import Kernel, write
from wengert.lifting.program import Array

__all__ = ["source_of"]


def source_of(kernel: Kernel, name: str, language: str, gradient: bool) -> str:
    """The text of a kernel.

    Raises:
        ArgumentError: the language is unknown.
    """
    if language not in ("numpy", "torch", "jax"):
        raise ArgumentError(f'source() writes "numpy", "torch" or "jax", not {language!r}')
    if language != "numpy":
        raise ArgumentError(f"source({language!r}) is not there yet: read source()")
    program, back = kernel.program, kernel.back
    out = program.outputs["out"]
    gradient = gradient and bool(back.gradients)
    text = write(program, back if gradient else None)
    params = program.of_role("param")
    arguments = [a.name for a in (*kernel.inputs, *params)]
    lines = ["import numpy as np"]
    if any("wengert." in helper for helper in text.helpers):
        lines.append("import wengert")
    lines += ["", *_constants(text.constants), *text.helpers, ""]
    lines.append(f"def {name}{'_and_gradients' if gradient else ''}({', '.join(arguments)}):")
    lines += [f"    # {array.name}: {_shape(array)}" for array in (*kernel.inputs, *params)]
    if gradient and back.seed is not None:
        batched = next(a.name for a in kernel.inputs if a.batched)
        lines.append(f"    seed = 1 / len({batched})")
    lines += [f"    {line}" for line in text.lines]
    result = f"{out.name}.mean()" if out.batched else out.name
    if gradient:
        slopes = [back.gradients[a.name].name if a.name in back.gradients else f"np.zeros({a.shape})" for a in params]
        result += f", ({', '.join(slopes)}{',' if len(slopes) == 1 else ''})"
    lines.append(f"    return {result}")
    return "\n".join(lines) + "\n"


def _shape(array: Array) -> str:
    return f"({', '.join('N' if n < 0 else str(n) for n in array.shape)})"


def _constants(constants: dict[str, Any]) -> list[str]:
    """The definitions of the arrays of constants."""
    lines = []
    for name, values in constants.items():
        if not isinstance(values, np.ndarray):
            continue
        lines.append(f"{name} = {_written(values)}")
    return lines


def _written(values: Any) -> str:
    """An array of constants as an expression: a triangle by its name, a small one by its items."""
    if values.dtype == bool and values.ndim >= 2 and values.shape[-1] == values.shape[-2]:
        n = values.shape[-1]
        for triangle, text in (
            (np.tri(n, dtype=bool), "np.tri({n}, dtype=bool)"),
            (np.tri(n, dtype=bool).T, "np.tri({n}, dtype=bool).T"),
        ):
            if (values == triangle).all():
                made = text.format(n=n)
                return made if values.ndim == 2 else f"np.broadcast_to({made}, {values.shape})"
    if values.dtype == bool:
        return f"np.array({values.tolist()})"
    return f"np.array({values.tolist()!r})".replace("inf", "np.inf").replace("nan", "np.nan")
