"""The seam between programs and what runs them: a `Program` with its reverse goes in, and a `Kernel` comes out.

A back end is a subclass of `Kernel` in a file of its own, which says how the two kinds of steps are done, and a row of
the registry in `wengert.compiler.backends`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from math import isfinite
from typing import Any, ClassVar, NamedTuple

import numpy as np

from wengert.compiler.ir import Array, Program

__all__ = ["Kernel", "MachineCode", "all_finite", "cut"]

Floats = np.ndarray[Any, np.dtype[np.float64]]
UNTHREADED = 10_000  # longer vectors OpenBLAS hands to its threads, which then wait for more, busily, for 0.1 s
LARGE = 1e154  # the square of a greater number is not finite


class MachineCode(NamedTuple):
    """The addresses of two C functions, each
    ``void f(int64_t n, double seed, const void *const *inputs, const double *numbers, double *slopes,
    double *const *outputs, double *work)``.

    They are given the number of examples (at least 1; 1 where nothing is batched), the data of each of a kernel's
    `inputs` and, for `both`, behind them the cotangents of an output without a batch that has several numbers, the
    `numbers`, room for its `slopes` (which only `both` fills), for each output and, for `both`, each
    derivative by a wanted input, and `Kernel.work` doubles, aligned to 64 bytes. All arrays are C-contiguous; inputs of
    role "index" are int64, everything else float64. Whoever calls has seen that indices are in bounds. They hold no
    state, raise nothing, and need no GIL.
    """

    forward: int
    both: int


class Kernel(ABC):
    """A program that runs, with the arrays that it works on.

    It runs under the caller's `np.errstate`: to change that takes as long as a small step of the program.

    Args:
        program: what is computed.
        back: its reverse sweep; without steps where no derivatives are asked for.
        wanted: the inputs by which derivatives are asked for, besides those by the parameters.

    Attributes:
        name: its back end's.
        inputs: what is given for each run, in this order.
        numbers: the parameters, end to end, to be filled before a run.
        slopes: after `both`, the derivative by each of them.
        code: its functions as machine code; None where it has none.
        refusal: why another back end runs the program after all; empty if none does.
        agree: how closely it must follow the function, relative to each number.
        nudge: more than the rounding of thousands of operations, and less than what anyone means to change.
        floor: what is so small may be 0 to it.
    """

    name: ClassVar[str]
    refusal: str = ""
    agree: float = 1e-9
    nudge: float = 1e-11
    floor: float = 0.0

    def __init__(self, program: Program, back: Program, wanted: Sequence[Array] = ()) -> None:
        self.program: Program = program
        self.back: Program = back
        self.wanted: list[Array] = list(wanted)
        self.params: list[Array] = program.of_role("param")
        self.inputs: list[Array] = [a for a in program.arrays if a.role in ("input", "index")]
        self.numbers: Floats = np.zeros(sum(a.size for a in self.params))
        self.slopes: Floats = np.zeros(len(self.numbers))
        self.values: list[Any] = cut(self.numbers, self.params)  # of the parameters: views of `numbers`
        self.gradients: list[Any] = cut(self.slopes, self.params)  # and of `slopes`

    @property
    def code(self) -> MachineCode | None:
        """Its functions as machine code; None where it has none."""
        return None

    def work(self, count: int) -> int:
        """How many doubles of scratch the machine code takes for so many examples."""
        return 0

    @abstractmethod
    def forward(self, arrays: Sequence[Any]) -> dict[str, Any]:
        """The outputs by name, of an array for each of the `inputs`."""

    @abstractmethod
    def both(self, arrays: Sequence[Any], seed: Any) -> tuple[dict[str, Any], list[Any]]:
        """The outputs by name, and the derivatives of ``(seed * out).sum()`` by the wanted inputs; those by the
        parameters are left in `slopes`. The seed is one number, or where an output without a batch has several an array
        of its shape.
        """


def all_finite(numbers: Any) -> bool:
    """Whether a number is finite, or all of an array, and their squares too: what is so large is left to the engine
    like infinity.

    A product of two vectors is by far the fastest way to look at each number, until it takes threads.
    """
    flat = numbers if type(numbers) is np.ndarray and numbers.ndim == 1 else np.ravel(numbers)
    if flat.size <= UNTHREADED:
        return isfinite(flat.dot(flat))
    return bool(flat.min() > -LARGE and flat.max() < LARGE)  # never where one is nan


def cut(flat: Any, arrays: Sequence[Array]) -> list[Any]:
    """Views into a flat array, one for each of the arrays that it holds."""
    views, at = [], 0
    for array in arrays:
        views.append(flat[at : at + array.size].reshape(array.shape))
        at += array.size
    return views
