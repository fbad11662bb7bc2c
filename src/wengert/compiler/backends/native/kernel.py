"""A program as machine code, called from Python."""

from __future__ import annotations

import pickle
import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert.compiler.backends import cache
from wengert.compiler.backends.base import Kernel, MachineCode
from wengert.compiler.backends.native.layout import Lowered, module
from wengert.compiler.backends.native.machine import Loaded, compiled, description, is_usable, linked, native_width
from wengert.compiler.backends.native.rows import Unsupported
from wengert.compiler.backends.numpy import NumPyKernel
from wengert.compiler.ir import BATCH, LEAVES, Array, Compute, Expr, Program
from wengert.errors import LengthError
from wengert.ops import BUILT_IN, BY_NAME

__all__ = ["NativeKernel"]

HEADER = struct.Struct("<qqq")
ALIGNED = 64  # bytes
LARGE = 2.0**63


class NativeKernel(Kernel):
    """A program that runs as machine code: it is compiled here, or was before and is found on disk.

    One with an operation that only Python can do runs as NumPy; `refusal` says which.
    """

    name = "native"

    def __init__(self, program: Program, back: Program, wanted: Sequence[Array] = ()) -> None:
        super().__init__(program, back, wanted)
        self._plain: NumPyKernel | None = None
        self._loaded: Loaded | None = None
        self._module = Lowered("", 0, 0, 1)
        self._count = -1
        self._scratch: Any = None
        self._own: list[int] = []  # the addresses of what is the same in each run
        self._results: list[Array] = [*program.outputs.values(), *self.wanted]
        self._addresses = np.zeros(len(self.inputs) + 1, np.int64)
        self._places = np.zeros(len(self._results) + 1, np.int64)
        self._extents = _extents(program, back)
        self._whole = [n for n, a in enumerate(self.inputs) if a.role == "index" and n not in self._extents]
        self.prepare()

    def prepare(self) -> None:
        """Have the code made."""
        self.make()

    def make(self) -> None:
        """Make the code, or find it."""
        if not is_usable():
            self.refusal: str = "this process was forked while another thread was making machine code"
            return
        try:
            made, code = self.object_code()
        except Unsupported as why:
            self.refusal = str(why)
            return
        self._module, self._loaded = made, linked(code)

    def object_code(self) -> tuple[Lowered, bytes]:
        """What the program is as object code, from the disk if it is there."""
        width = native_width()
        if any(
            _has_own_row(step.expr) for step in (*self.program.steps, *self.back.steps) if isinstance(step, Compute)
        ):
            made = module(self.program, self.back, self.wanted, width)
            return made._replace(text=""), compiled(made.text)
        name = cache.digest(pickle.dumps((self.program, self.back, self.wanted)), description().encode())
        kept = cache.load(name)
        if kept is not None and len(kept) > HEADER.size:
            return Lowered("", *HEADER.unpack(kept[: HEADER.size])), kept[HEADER.size :]
        made = module(self.program, self.back, self.wanted, width)
        code = compiled(made.text)
        cache.save(name, HEADER.pack(made.fixed, made.each, made.width) + code)
        return made._replace(text=""), code

    @property
    def code(self) -> MachineCode | None:
        """The addresses of the two functions; None where NumPy runs."""
        return None if self._loaded is None else self._loaded.code

    def work(self, count: int) -> int:
        """How many doubles of scratch the code takes for so many examples."""
        return self._module.work(count)

    def forward(self, arrays: Sequence[Any]) -> dict[str, Any]:
        """The outputs by name."""
        if self._loaded is None or not self._fit(arrays):
            return self.by_numpy(arrays, None)[0]
        return dict(zip(self.program.outputs, self._run(self._loaded.forward, arrays, 1.0), strict=False))

    def both(self, arrays: Sequence[Any], seed: float) -> tuple[dict[str, Any], list[Any]]:
        """The outputs by name, and the derivatives by the wanted inputs."""
        if self._loaded is None or not self._fit(arrays):
            return self.by_numpy(arrays, seed)
        results = self._run(self._loaded.both, arrays, seed)
        count = len(self.program.outputs)
        return dict(zip(self.program.outputs, results, strict=False)), results[count:]

    def by_numpy(self, arrays: Sequence[Any], seed: float | None) -> tuple[dict[str, Any], list[Any]]:
        """The same by NumPy."""
        if self._plain is None:
            self._plain = NumPyKernel(self.program, self.back, self.wanted)
        plain = self._plain
        plain.numbers[...] = self.numbers
        if seed is None:
            return plain.forward(arrays), []
        made = plain.both(arrays, seed)
        self.slopes[...] = plain.slopes
        return made

    def _fit(self, arrays: Sequence[Any]) -> bool:
        """Whether there is an example, and the integers that are only numbers, and may be floats here, are within 64
        bits.
        """
        if any(array.batched and not len(x) for array, x in zip(self.inputs, arrays, strict=True)):
            return False
        return all(bool((np.abs(np.asarray(arrays[n], float)) < LARGE).all()) for n in self._whole)

    def _run(self, function: Any, arrays: Sequence[Any], seed: float) -> list[Any]:
        """Call the code on arrays."""
        count, held = 1, []
        for number, (array, given) in enumerate(zip(self.inputs, arrays, strict=True)):
            x = np.ascontiguousarray(given, np.int64 if array.role == "index" else np.float64)
            if array.batched:
                count = len(x)
            if x.size != array.size * (count if array.batched else 1):
                raise LengthError(f"{array.name} has {x.size} numbers; expected {array.size} for each example")
            extent = self._extents.get(number)
            if extent is not None and x.size and not 0 <= x.min() <= x.max() < extent:
                raise IndexError(f"{array.name} chooses from {extent} items, and one is out of bounds")
            held.append(x)
            self._addresses[number] = _address(x)
        results = [np.empty([count if n == BATCH else n for n in array.shape]) for array in self._results]
        for number, made in enumerate(results):
            self._places[number] = _address(made)
        if count != self._count:
            self._count, self._scratch = count, _aligned(self.work(count))
            own = self._addresses, self.numbers, self.slopes, self._places, self._scratch
            self._own = [_address(array) for array in own]
        function(count, seed, *self._own)
        return [made if made.shape else made[()] for made in results]


def _address(array: Any) -> int:
    """Where the numbers of an array begin."""
    address: int = array.__array_interface__["data"][0]
    return address


def _aligned(count: int) -> Any:
    """Room for so many doubles, aligned as vectors are best read."""
    room = np.empty(count + ALIGNED // 8)
    first = -room.ctypes.data % ALIGNED // 8
    return room[first : first + count]


def _has_own_row(expr: Expr) -> bool:
    """Whether an expression has a row of the user's: its rule may be another one the next time."""
    if expr[0] in LEAVES:
        return False
    row = BY_NAME.get(expr[0])
    return (row is not None and row.code >= BUILT_IN) or any(map(_has_own_row, expr[1:]))


def _extents(program: Program, back: Program) -> dict[int, int]:
    """By the number of an input that chooses items: from how many."""
    numbers = {id(a): k for k, a in enumerate([a for a in program.arrays if a.role in ("input", "index")])}
    extents: dict[int, int] = {}
    for step in (*program.steps, *back.steps):
        accesses = step.operands if isinstance(step, Compute) else [access for access, _ in step.parts]
        for index in [access.index for access in accesses if access.index is not None]:
            number = numbers[id(index.array)]
            extents[number] = min(index.extent, extents.get(number, index.extent))
    return extents
