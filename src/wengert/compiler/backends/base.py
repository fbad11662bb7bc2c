"""The interface between programs and back ends: a `Program` and its reverse go in, a `Kernel` comes out.

A back end is a subclass of `Kernel` in a file of its own, and a row of the registry in `wengert.compiler.backends`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from math import isfinite
from typing import Any, ClassVar, NamedTuple

import numpy as np

from wengert.compiler.ir import Array, Program

__all__ = ["Buffers", "Kernel", "MachineCode", "all_finite", "cut"]

Floats = np.ndarray[Any, np.dtype[np.float64]]
UNTHREADED = 10_000  # OpenBLAS uses threads for longer vectors, and they then spin for 0.1 s
LARGE = 1e154  # the square of a larger number overflows


class MachineCode(NamedTuple):
    """The addresses of two C functions, each ``void f(int64_t n, double seed, const void *const *inputs, const double
    *params, double *grads, double *const *outputs, double *work)``.

    The arguments are the number of examples (1 if nothing is batched); the kernel's `inputs`, which `forward_backward`
    expects to be followed by the cotangents of an unbatched output of several numbers; the parameters; memory for their
    gradients (only `forward_backward` writes it); memory for each output and, in `forward_backward`, for each
    derivative with respect to a wanted input; and `Kernel.work` doubles, aligned to 64 bytes. All arrays are
    C-contiguous; inputs of role "index" are int64, everything else float64. The caller has checked that indices are in
    bounds. The functions hold no state, raise nothing, and need no GIL.
    """

    forward: int
    forward_backward: int


class Buffers:
    """The parameters of one run, and the derivatives with respect to them.

    Args:
        arrays: the program's parameters.

    Attributes:
        params: the parameters, end to end, to be filled before a run.
        grads: the derivatives with respect to them, which `Kernel.forward_backward` writes.
        param_arrays: views of `params`, one for each array.
        grad_arrays: views of `grads`, likewise.
    """

    def __init__(self, arrays: Sequence[Array]) -> None:
        self.params: Floats = np.zeros(sum(a.size for a in arrays))
        self.grads: Floats = np.zeros(len(self.params))
        self.param_arrays: list[Any] = cut(self.params, arrays)
        self.grad_arrays: list[Any] = cut(self.grads, arrays)


class Kernel(ABC):
    """A program that runs. It is stateless, so that threads can share it.

    It runs under the caller's `np.errstate`: to set that takes as long as a small step of the program.

    Args:
        program: the program.
        backward: its reverse sweep; without steps if no derivatives are needed.
        wanted: the inputs, besides the parameters, with respect to which to differentiate.

    Attributes:
        name: its back end's.
        inputs: the arrays that each run takes, in this order.
        params: the parameters.
        code: its functions as machine code, or None.
        is_cut: whether the caller splits a large batch into strips for it.
        fallback_reason: why another back end runs the program; empty if none does.
        agree: the relative tolerance within which it must match the function.
        nudge: a relative change that is more than the rounding of thousands of operations, and less than any deliberate
            one.
        floor: numbers below it may become 0.
    """

    name: ClassVar[str]
    code: MachineCode | None = None
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
        return Buffers(self.params)

    def row(self) -> int:
        """Estimate how many numbers it computes for one example of a batch."""
        arrays = [array for part in (self.program, self.backward) for step in part.steps for array in step.makes]
        return sum(array.size for array in arrays if array.batched)

    def work(self, count: int) -> int:
        """Return how many doubles of scratch memory the machine code needs for `count` examples."""
        return 0

    @abstractmethod
    def forward(self, arrays: Sequence[Any], buffers: Buffers) -> dict[str, Any]:
        """Return the outputs by name, given an array for each of the `inputs`."""

    @abstractmethod
    def forward_backward(self, arrays: Sequence[Any], seed: Any, buffers: Buffers) -> tuple[dict[str, Any], list[Any]]:
        """Return the outputs by name, and the derivatives of ``(seed * out).sum()`` with respect to the wanted inputs;
        those with respect to the parameters go to the buffers. The seed is a number or, for an unbatched output of
        several numbers, an array of its shape.
        """


def all_finite(numbers: Any) -> bool:
    """Return True if all numbers and their squares are finite: the engine takes over before numbers overflow.

    The dot product is by far the fastest check, until OpenBLAS starts threads for it.
    """
    flat = numbers if type(numbers) is np.ndarray and numbers.ndim == 1 else np.ravel(numbers)
    if flat.size <= UNTHREADED:
        return isfinite(flat.dot(flat))
    return bool(flat.min() > -LARGE and flat.max() < LARGE)  # False if one is nan


def places(these: Iterable[Any], among: Iterable[Any]) -> Any:
    """Return the indices of some parameters among others."""
    place = {id(p): number for number, p in enumerate(among)}
    return np.array([place[id(p)] for p in these], np.int64)


def cut(flat: Any, arrays: Sequence[Array]) -> list[Any]:
    views, at = [], 0
    for array in arrays:
        views.append(flat[at : at + array.size].reshape(array.shape))
        at += array.size
    return views
