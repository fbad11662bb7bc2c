"""A program as a complete text to run elsewhere: NumPy with its own gradient, PyTorch or JAX with theirs."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from wengert.compiler.backends.base import Kernel
from wengert.compiler.backends.numpy import write
from wengert.compiler.ir.program import Array
from wengert.compiler.ir.strides import fit
from wengert.errors import ArgumentError

__all__ = ["source_of"]


@dataclass(frozen=True)
class Language:
    """How a library's text differs from NumPy's."""

    name: str  # what it is called in the text
    header: tuple[str, ...]
    array: str  # how a constant array is written
    rows: dict[str, tuple[str, int]] = field(default_factory=dict)
    changes: tuple[tuple[str, str], ...] = ()  # of the text: a pattern, and what stands for it
    usage: str = ""


LANGUAGES = {
    "numpy": Language("np", ("import numpy as np",), "np.array({0})"),
    "torch": Language(
        "torch",
        ("import torch",),
        "torch.tensor({0}, dtype=torch.{1})",
        {
            "relu": ("torch.relu({0})", 5),
            "masked extreme": ("torch.where({3}, {0}, {4}).{1}({2})", 5),
            "maximum": ("torch.clamp({0}, min={1})", 5),
            "minimum": ("torch.clamp({0}, max={1})", 5),
            "cbrt": ("torch.sign({0}) * torch.abs({0}) ** (1 / 3)", 2),
            "erf": ("torch.erf({0})", 5),
            "erfc": ("torch.erfc({0})", 5),
            "gaussian": ("torch.exp(-{0} ** 2)", 5),
            "lgamma": ("torch.lgamma({0})", 5),
            "sigmoid": ("torch.sigmoid({0})", 5),
        },
        (
            (r"\.transpose\(", ".permute("),
            (r"\.max\(", ".amax("),
            (r"\.min\(", ".amin("),
            (r"torch\.concatenate\(", "torch.cat("),
        ),
        "The arguments are float64 tensors (indices: int64); its gradients are PyTorch's own: call .backward().",
    ),
    "jax": Language(
        "jnp",
        ("import jax", "import jax.numpy as jnp", "", 'jax.config.update("jax_enable_x64", True)'),
        "jnp.array({0})",
        {
            "erf": ("jax.scipy.special.erf({0})", 5),
            "erfc": ("jax.scipy.special.erfc({0})", 5),
            "gaussian": ("jnp.exp(-{0} ** 2)", 5),
            "lgamma": ("jax.scipy.special.gammaln({0})", 5),
        },
        (),
        "Its gradients are JAX's own: jax.grad({name}, argnums=...), and jax.jit.",
    ),
}


def source_of(kernel: Kernel, name: str, language: str, gradient: bool) -> str:
    """The text of a kernel.

    Raises:
        ArgumentError: the language is unknown.
    """
    if language not in LANGUAGES:
        raise ArgumentError(f'source() writes "numpy", "torch" or "jax", not {language!r}')
    target = LANGUAGES[language]
    program, back = kernel.program, kernel.back
    out = program.outputs["out"]
    gradient = gradient and bool(back.gradients) and language == "numpy"
    text = write(program, back if gradient else None, target.rows)
    params = kernel.params
    lines = [*target.header]
    if any("wengert." in helper for helper in text.helpers):
        lines.append("import wengert")
    lines += ["", *_constants(text.constants, target), *text.helpers, ""]
    title = f"{name}{'_and_gradients' if gradient else ''}"
    lines.append(f"def {title}({', '.join(a.name for a in (*kernel.inputs, *params))}):")
    if target.usage:
        lines.append(f'    """{target.usage.format(name=name)}"""')
    lines += [f"    # {array.name}: {_shape(array)}" for array in (*kernel.inputs, *params)]
    if gradient and back.seed is not None:
        batched = next(a.name for a in kernel.inputs if a.batched)
        lines.append(f"    seed = 1 / len({batched})")
    lines += [f"    {_in(target, line)}" for line in text.lines]
    result = f"{out.name}.mean()" if out.batched else out.name
    if gradient:
        slopes = [back.gradients[a.name].name if a.name in back.gradients else f"np.zeros({a.shape})" for a in params]
        result += f", ({', '.join(slopes)}{',' if len(slopes) == 1 else ''})"
    lines.append(f"    return {result}")
    return "\n".join(lines) + "\n"


def _in(target: Language, line: str) -> str:
    """A line of NumPy in another language."""
    line = re.sub(r"\bnp\.", f"{target.name}.", line)
    for pattern, replacement in target.changes:
        line = re.sub(pattern, replacement, line)
    return line


def _shape(array: Array) -> str:
    return f"({', '.join('N' if n < 0 else str(n) for n in array.shape)})"


def _constants(constants: dict[str, Any], target: Language) -> list[str]:
    """The definitions of the arrays of constants."""
    arrays = [(name, values) for name, values in constants.items() if isinstance(values, np.ndarray)]
    return [f"{name} = {_written(values, target)}" for name, values in arrays]


def _written(values: Any, target: Language) -> str:
    """An array of constants as an expression: a triangle by its name, another by its items."""
    if values.dtype == bool and values.ndim >= 2 and values.shape[-1] == values.shape[-2]:
        n = values.shape[-1]
        triangle = np.tri(n, dtype=bool)
        made = (
            f"{target.name}.tri({n}, dtype=bool)" if target.name != "torch" else f"torch.ones({n}, {n}).tril().bool()"
        )
        for mask, text in ((triangle, made), (triangle.T, f"{made}.T")):
            if (values == mask).all():
                return text if values.ndim == 2 else f"{target.name}.broadcast_to({text}, {values.shape})"
    if values.dtype.kind == "i" and values.size > 8:
        found = fit(values)
        if found is not None:  # even steps
            base, strides = found
            later = range(values.ndim - 1, -1, -1)  # how many axes stand behind each
            steps = [
                f"{target.name}.arange({n})" + f"[:{', None' * k}]" * (k > 0) + f" * {s}" * (s != 1)
                for s, n, k in zip(strides, values.shape, later, strict=True)
            ]
            return " + ".join([str(base)] * bool(base) + steps)
    items = re.sub(r"\b(inf|nan)\b", rf"{target.name}.\1", repr(values.tolist()))
    return target.array.format(items, {"f": "float64", "b": "bool"}.get(values.dtype.kind, "int64"))
