"""Machine code for tests: the NumPy kernel of a recording, called back from C, as a kernel's `code` says it."""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple

import pytest

np = pytest.importorskip("numpy")

__all__ = ["Code", "compiled_by_hand"]

FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_double, *[ctypes.c_void_p] * 5)


class Code(NamedTuple):
    """As a kernel has it: the addresses of two functions."""

    forward: int
    both: int


def _at(address: int, shape: tuple[int, ...], kind: Any = ctypes.c_double) -> Any:
    """An array over memory."""
    count = int(np.prod(shape))
    if not count:
        return np.zeros(shape)
    return np.ctypeslib.as_array((kind * count).from_address(address)).reshape(shape)


def _pointer(address: int, place: int) -> int:
    return int(ctypes.c_int64.from_address(address + 8 * place).value)


def compiled_by_hand(kernel: Any, calls: list[str]) -> None:
    """Give a kernel machine code that does what its own functions do; `calls` notes each call of it.

    It sees that what it is given is what the seam promises: indices in bounds, aligned scratch.
    """
    program, extents = kernel.program, {}
    for step in (*program.steps, *kernel.back.steps):
        reads = [access for access, _ in getattr(step, "parts", [])] + list(getattr(step, "operands", []))
        for access in reads:
            if access.index is not None:
                extents[id(access.index.array)] = min(
                    access.index.extent, extents.get(id(access.index.array), access.index.extent)
                )

    def run(both: bool, n: int, seed: float, inputs: int, numbers: int, slopes: int, outputs: int, work: int) -> None:
        def shape(array: Any) -> tuple[int, ...]:
            return (n, *array.cell_shape) if array.batched else array.cell_shape

        given: list[Any] = []
        for place, array in enumerate(kernel.inputs):
            whole = array.role == "index"
            x = _at(_pointer(inputs, place), shape(array), ctypes.c_int64 if whole else ctypes.c_double)
            if id(array) in extents:
                assert ((x >= 0) & (x < extents[id(array)])).all(), "an index out of bounds came to machine code"
            elif whole:
                x = x.astype(float)
            given.append(x if x.shape else x.item())
        assert work % 64 == 0
        assert (_at(numbers, kernel.numbers.shape) == kernel.numbers).all()
        with np.errstate(all="ignore"):
            before = kernel.slopes.copy()
            made, by = kernel.both(given, seed) if both else (kernel.forward(given), [])
        if not both:
            assert (kernel.slopes == before).all() or np.isnan(before).any()
        results = [*zip(program.outputs.values(), made.values(), strict=True), *zip(kernel.wanted, by, strict=True)]
        for place, (array, x) in enumerate(results):
            _at(_pointer(outputs, place), shape(array))[...] = x
        calls.append("both" if both else "forward")

    functions = [FUNCTION(lambda *given, both=both: run(both, *given)) for both in (False, True)]
    code = Code(*[int(ctypes.cast(f, ctypes.c_void_p).value or 0) for f in functions])
    kind: Any = type(kernel)
    space = {"code": code, "work": lambda kernel, n: n, "kept": functions}  # the functions live as long as the kernel
    kernel.__class__ = type(kind.__name__, (kind,), space)
