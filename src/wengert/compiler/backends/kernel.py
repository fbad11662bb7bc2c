"""The function that the text of a program defines, with the arrays that it works on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from wengert.compiler.backends.base import Kernel
from wengert.compiler.backends.numpy import Text, write
from wengert.compiler.ir.program import Array, Program

__all__ = ["NumPyKernel"]


class NumPyKernel(Kernel):
    """A program that runs as NumPy: its text, compiled."""

    name = "numpy"

    def __init__(self, program: Program, back: Program, wanted: Sequence[Array] = ()) -> None:
        super().__init__(program, back, wanted)
        own = {a.name: n for n, a in enumerate(self.params)}
        memory = {id(array): f"slope{own[name]}" for name, array in back.gradients.items() if name in own}
        self._both = self._define(write(program, back, memory=memory), self.params)

    @cached_property
    def _forward(self) -> Callable[..., Any]:  # which a training loop has no use for
        return self._define(write(self.program), [])

    def _define(self, text: Text, params: list[Array]) -> Callable[..., Any]:
        names = [a.name for a in (*self.inputs, *self.params)]
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
        space.update({f"slope{number}": view for number, view in enumerate(self.gradients)})
        exec(compile("\n".join(lines), "<lifted>", "exec"), space)
        function: Callable[..., Any] = space["lifted"]
        return function

    def forward(self, arrays: Sequence[Any]) -> dict[str, Any]:
        """The outputs by name."""
        return dict(zip(self.program.outputs, self._forward(1.0, *arrays, *self.values), strict=True))

    def both(self, arrays: Sequence[Any], seed: float) -> tuple[dict[str, Any], list[Any]]:
        """The outputs by name, and the derivatives by the wanted inputs."""
        results = self._both(seed, *arrays, *self.values)
        count = len(self.program.outputs)
        return dict(zip(self.program.outputs, results, strict=False)), list(results[count:])
