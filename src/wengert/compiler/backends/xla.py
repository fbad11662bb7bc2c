"""A Program as one function of JAX, which XLA compiles: for its processors, graphics processors and TPUs alike.

What runs is the text that `source("jax")` shows, and the program's own reverse sweep in the same words: at kinks and in
padding its derivatives are those of the engine, which JAX's are not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np

from wengert.compiler.backends.base import Kernel, cut
from wengert.compiler.backends.export import function_of
from wengert.compiler.backends.spellings import LIBRARIES, by_element
from wengert.compiler.ir import Array, Program

__all__ = ["XLAKernel"]

LIBRARY = replace(LIBRARIES["jax"], by_element=True)
SIZES = 4  # batches of so many sizes are compiled as they are; those of other sizes run in pieces of powers of two


class XLAKernel(Kernel):
    """A program that runs by XLA, in double precision whatever JAX is set to, on the device that JAX would choose
    (see `jax.default_device`).
    """

    name = "xla"

    def __init__(self, program: Program, back: Program, wanted: Sequence[Array] = ()) -> None:
        super().__init__(program, back, wanted)
        self._compiled: dict[bool, Callable[..., Any]] = {}  # by whether there are derivatives
        self._sizes: set[int] = set()
        self._batched: list[int] = [n for n, array in enumerate(self.inputs) if array.batched]

    def forward(self, arrays: Sequence[Any]) -> dict[str, Any]:
        """The outputs by name."""
        return self._run(False, arrays, 1.0)[0]

    def both(self, arrays: Sequence[Any], seed: float) -> tuple[dict[str, Any], list[Any]]:
        """The outputs by name, and the derivatives by the wanted inputs."""
        outputs, slopes, by_inputs = self._run(True, arrays, seed)
        for memory, slope in zip(self.gradients, slopes, strict=True):
            memory[...] = slope
        return outputs, by_inputs

    def _run(self, both: bool, arrays: Sequence[Any], seed: float) -> tuple[dict[str, Any], Any, list[Any]]:
        """The outputs, the derivatives by the parameters, and those by the wanted inputs.

        XLA compiles anew for each size of a batch. Where there are many, as of examples that take one of several ways,
        a batch is cut into pieces of a few sizes.
        """
        if both not in self._compiled:
            self._compiled[both] = self._define(both)
        with jax.enable_x64(True):
            given = [
                np.asarray(x, np.int64 if a.role == "index" else float)
                for x, a in zip(arrays, self.inputs, strict=True)
            ]
            run = self._compiled[both]
            pieces = [jax.device_get(run(self.numbers, float(seed), piece)) for piece in self._pieces(given)]
        outputs, slopes, by_inputs = pieces[0] if len(pieces) == 1 else self._together(pieces)
        return dict(zip(self.program.outputs, map(np.array, outputs), strict=True)), slopes, list(by_inputs)

    def _pieces(self, given: list[Any]) -> list[list[Any]]:
        """The inputs, those of a batch of an unusual size in pieces."""
        count = len(given[self._batched[0]]) if self._batched else 1
        if len(self._sizes) < SIZES or not self.program.outputs["out"].batched:
            self._sizes.add(count)
        if count in self._sizes:
            return [given]
        cuts, start = [], 0
        while start < count:
            end = start + (1 << (count - start).bit_length() - 1)
            cuts.append([x[start:end] if a.batched else x for x, a in zip(given, self.inputs, strict=True)])
            start = end
        return cuts

    def _together(self, pieces: list[Any]) -> tuple[list[Any], Any, list[Any]]:
        """What pieces of a batch came to, as one: the examples one behind the other, and derivatives added."""
        outputs, slopes, by_inputs = zip(*pieces, strict=True)
        made = [
            np.concatenate(parts) if array.batched else parts[0]
            for array, parts in zip(self.program.outputs.values(), zip(*outputs, strict=True), strict=True)
        ]
        wanted = [
            np.concatenate(parts) if array.batched else sum(parts)
            for array, parts in zip(self.wanted, zip(*by_inputs, strict=True), strict=True)
        ]
        return made, [sum(parts) for parts in zip(*slopes, strict=True)], wanted

    def _define(self, both: bool) -> Callable[..., Any]:
        """The function of the parameters, the seed and the inputs, which XLA compiles when it is first called."""
        space = {"jax": jax, "jnp": jnp, "by_element": _by_element}
        function, constants = function_of(self.program, self.back if both else None, self.wanted, LIBRARY, space)
        count = len(self.program.outputs)

        def run(numbers: Any, seed: Any, inputs: list[Any]) -> tuple[Any, Any, Any]:
            made = function(seed, *inputs, *cut(numbers, self.params), *map(jnp.asarray, constants))
            outputs, slopes = made[:count], made[count : count + len(self.params)]
            return outputs, slopes, made[count + len(self.params) :]

        return jax.jit(run)


def _by_element(name: str, operand: int | None = None) -> Callable[..., Any]:
    """A row that computes floats one by one, or its partial derivative, which XLA calls Python for."""
    function, shaped = by_element(name, operand), cast(Any, jax.ShapeDtypeStruct)

    def called(*xs: Any) -> Any:
        shape = shaped(jnp.broadcast_shapes(*map(jnp.shape, xs)), jnp.result_type(float))
        return jax.pure_callback(lambda *numbers: function(*map(np.asarray, numbers)), shape, *xs)

    return called
