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

__all__ = ["Buffers", "Kernel", "MachineCode", "all_finite", "cut"]

Floats = np.ndarray[Any, np.dtype[np.float64]]
UNTHREADED = 10_000  # longer vectors OpenBLAS hands to its threads, which then wait for more, busily, for 0.1 s
LARGE = 1e154  # the square of a greater number is not finite


class MachineCode(NamedTuple):
    """The addresses of two C functions, each
    ``void f(int64_t n, double seed, const void *const *inputs, const double *params, double *grads,
    double *const *outputs, double *work)``.

    They are given the number of examples (at least 1; 1 where nothing is batched), the data of each of a kernel's
    `inputs` and, for `both`, behind them the cotangents of an output without a batch that has several numbers, the
    parameters' numbers, room for the derivatives with respect to them (which only `both` fills), for each output and,
    for `both`, each derivative with respect to a wanted input, and `Kernel.work` doubles, aligned to 64 bytes. All
    arrays are C-contiguous; inputs of
    role "index" are int64, everything else float64. Whoever calls has seen that indices are in bounds. They hold no
    state, raise nothing, and need no GIL.
    """

    forward: int
    forward_backward: int


class Buffers:
    """What the parameters are in one run, and the derivatives with respect to them.

    Args:
        arrays: the program's parameters.

    Attributes:
        params: the numbers, end to end, to be filled before a run.
        grads: after `Kernel.forward_backward`, the derivative with respect to each of them.
        param_arrays: views of `params`, one for each of the arrays,
        grad_arrays: and of `grads`.
    """

    def __init__(self, arrays: Sequence[Array]) -> None:
        self.params: Floats = np.zeros(sum(a.size for a in arrays))
        self.grads: Floats = np.zeros(len(self.params))
        self.param_arrays: list[Any] = cut(self.params, arrays)
        self.grad_arrays: list[Any] = cut(self.grads, arrays)


class Kernel(ABC):
    """A program that runs. It keeps nothing of a run: threads share it.

    It runs under the caller's `np.errstate`: to change that takes as long as a small step of the program.

    Args:
        program: what is computed.
        backward: its reverse sweep; without steps where no derivatives are asked for.
        wanted: the inputs with respect to which derivatives are asked for, besides the parameters.

    Attributes:
        name: its back end's.
        inputs: what is given for each run, in this order.
        params: the parameters.
        code: its functions as machine code; None where it has none.
        is_cut: whether its own functions are given a large batch in strips.
        fallback_reason: why another back end runs the program after all; empty if none does.
        agree: how closely it must follow the function, relative to each number.
        nudge: more than the rounding of thousands of operations, and less than what anyone means to change.
        floor: what is so small may be 0 to it.
    """

    name: ClassVar[str]
    fallback_reason: str = ""
    is_cut: ClassVar[bool] = True
    agree: float = 1e-9
    nudge: float = 1e-11
    floor: float = 0.0

    def __init__(self, program: Program, backward: Program, wanted: Sequence[Array] = ()) -> None:
        self.program: Program = program
        self.backward: Program = backward
        self.wanted: list[Array] = list(wanted)
        self.params: list[Array] = program.of_role("param")
        self.inputs: list[Array] = [a for a in program.arrays if a.role in ("input", "index")]

    def buffers(self) -> Buffers:
        """Room for the parameters of a run."""
        return Buffers(self.params)

    @property
    def code(self) -> MachineCode | None:
        """Its functions as machine code; None where it has none."""
        return None

    def row(self) -> int:
        """How many numbers its own functions make for an example of a batch, about."""
        made = [array for part in (self.program, self.backward) for step in part.steps for array in step.makes]
        return sum(array.size for array in made if array.batched)

    def work(self, count: int) -> int:
        """How many doubles of scratch the machine code takes for so many examples."""
        return 0

    @abstractmethod
    def forward(self, arrays: Sequence[Any], buffers: Buffers) -> dict[str, Any]:
        """The outputs by name, of an array for each of the `inputs`."""

    @abstractmethod
    def forward_backward(self, arrays: Sequence[Any], seed: Any, buffers: Buffers) -> tuple[dict[str, Any], list[Any]]:
        """The outputs by name, and the derivatives of ``(seed * out).sum()`` with respect to the wanted inputs; those
        with respect to the parameters are left in the buffers. The seed is one number, or where an output without a
        batch has several an array of its shape.
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
