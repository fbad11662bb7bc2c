"""The function that the text of a program defines, with the arrays that it works on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from math import isfinite
from typing import Any

import numpy as np

from wengert.compiler.backends.numpy import Text, write
from wengert.compiler.ir.program import Array, Program

__all__ = ["Kernel", "all_finite"]

Floats = np.ndarray[Any, np.dtype[np.float64]]


class Kernel:
    """A program that runs: its text, compiled, with the arrays that it works on.

    It runs under the caller's `np.errstate`: to change that takes as long as a small step of the program.

    Attributes:
        numbers: the parameters, end to end, to be filled before a run.
        slopes: after `both`, the derivative by each of them.
    """

    def __init__(self, program: Program, back: Program, wanted: Sequence[Array] = ()) -> None:
        self.program: Program = program
        self.back: Program = back
        self.wanted: list[Array] = list(wanted)
        params = program.of_role("param")
        self.inputs: list[Array] = [a for a in program.arrays if a.role in ("input", "index")]
        self.numbers: Floats = np.zeros(sum(a.size for a in params))
        self.slopes: Floats = np.zeros(len(self.numbers))
        self._views = _cut(self.numbers, params)
        self._gradients = _cut(self.slopes, params)
        memory = {id(back.gradients[a.name]): f"slope{n}" for n, a in enumerate(params) if a.name in back.gradients}
        self._both = self._define(write(program, back, memory=memory), params)

    @cached_property
    def _forward(self) -> Callable[..., Any]:  # which a training loop has no use for
        return self._define(write(self.program), [])

    def _define(self, text: Text, params: list[Array]) -> Callable[..., Any]:
        names = [a.name for a in (*self.inputs, *self.program.of_role("param"))]
        back = self.back.gradients
        lines = [f"def lifted(seed, {', '.join(names)}):", *[f"    {line}" for line in text.lines]]
        for number, array in enumerate(params):
            if f"slope{number}" not in text.filled:
                lines.append(f"    slope{number}[...] = {back[array.name].name if array.name in back else '0.0'}")
        results = [array.name for array in self.program.outputs.values()]
        if text.both:
            results += [back[a.name].name if a.name in back else f"np.zeros({a.shape})" for a in self.wanted]
        lines.append(f"    return ({', '.join(results)},)")
        space: dict[str, Any] = {"np": np, **text.constants}
        space.update({f"slope{number}": view for number, view in enumerate(self._gradients)})
        exec(compile("\n".join(lines), "<lifted>", "exec"), space)
        function: Callable[..., Any] = space["lifted"]
        return function

    def forward(self, arrays: Sequence[Any]) -> dict[str, Any]:
        """The outputs by name."""
        return dict(zip(self.program.outputs, self._forward(1.0, *arrays, *self._views), strict=True))

    def both(self, arrays: Sequence[Any], seed: float) -> tuple[dict[str, Any], list[Any]]:
        """The outputs by name, and the derivatives of ``seed * out.sum()`` by the wanted inputs; those by the
        parameters are left in `slopes`.
        """
        results = self._both(seed, *arrays, *self._views)
        count = len(self.program.outputs)
        return dict(zip(self.program.outputs, results, strict=False)), list(results[count:])


def all_finite(numbers: Any) -> bool:
    """Whether a number is finite, or all of an array, and their squares too: what is so large is left to the engine
    like infinity.

    A product of two vectors is by far the fastest way to look at each number.
    """
    flat = numbers if type(numbers) is np.ndarray and numbers.ndim == 1 else np.ravel(numbers)
    return isfinite(flat.dot(flat))


def _cut(flat: Any, arrays: Sequence[Array]) -> list[Any]:
    """Views into a flat array, one for each of the arrays that it holds."""
    views, at = [], 0
    for array in arrays:
        views.append(flat[at : at + array.size].reshape(array.shape))
        at += array.size
    return views
