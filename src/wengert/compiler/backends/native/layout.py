"""Lays out the arrays of a kernel in memory, and writes its two functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from wengert.compiler.backends.native.access import Location
from wengert.compiler.backends.native.emitter import Memory
from wengert.compiler.backends.native.llvm import LLVM
from wengert.compiler.backends.native.lower import Copy, Lowering, arrays_made
from wengert.compiler.ir import Array, Assemble, Program, Step

__all__ = ["Lowered", "module"]

WORK = Memory("%work")


class Lowered(NamedTuple):
    """The text of a kernel, and the scratch memory that it needs."""

    text: str
    fixed: int  # doubles,
    each: int  # and further doubles for each example, rounded up to whole blocks
    width: int

    def work(self, count: int) -> int:
        return self.fixed + self.each * (-(-count // self.width) * self.width)


def module(program: Program, back: Program, wanted: Sequence[Array], width: int, checks: bool = False) -> Lowered:
    """Write a program and its reverse as LLVM IR, with the functions `forward` and `both`.

    Raises:
        Unsupported: an operation can only be computed in Python.
    """
    to = LLVM(width, checks)
    plan = _Layout(to, program, back, wanted)
    forward = plan.write(program.steps, plan.outputs)
    reverse = plan.write(back.steps, plan.derivatives)
    return Lowered(to.text({"forward": forward, "both": [*forward, *reverse]}), plan.fixed, plan.each, width)


class _Layout:
    """The memory of both functions: `both` runs the code of `forward`, then the reverse sweep.

    Many fields: where everything lies in memory; a layout lives while one program is lowered.
    """

    def __init__(self, to: LLVM, program: Program, back: Program, wanted: Sequence[Array]) -> None:
        self.to = to
        self.program = program
        self.backward = back
        self.wanted = list(wanted)
        self.steps = [*program.steps, *back.steps]
        self.storage: dict[int, Location] = {}
        self.rows: dict[int, Location] = {}
        self.fixed = 8  # the first reports accesses out of bounds
        self.each = 0
        self.lay_out_arguments()
        self.outputs: list[Copy] = []  # results that must be copied to the caller's memory
        self.derivatives: list[Copy] = []
        self.in_place: set[int] = set()  # the ids of results that are never assembled: their parts are copied
        self.lay_out_results()
        self.steps = [step for step in self.steps if id(step.makes[0]) not in self.in_place]
        read = {id(array) for step in self.steps for array in step.reads}
        read |= {id(array) for array, *_ in (*self.outputs, *self.derivatives)}
        self.packs = [a for a in program.arrays if id(a) in self.rows and a.batched and id(a) in read and to.width > 1]
        self.lay_out_steps()

    def write(self, steps: Sequence[Step], copies: Sequence[Copy]) -> list[int]:
        """Write one of the two functions; return the numbers of its parts."""
        packs, self.packs = self.packs, []
        steps = [step for step in steps if id(step.makes[0]) not in self.in_place]
        return Lowering(self.to, self.storage, self.rows, self.backward.seed).run(steps, packs, copies)

    def lay_out_steps(self) -> None:
        blocks = list(self.packs)
        for array in arrays_made(self.steps):
            if array.batched:
                blocks.append(array)
            elif id(array) not in self.storage:
                self.storage[id(array)] = Location(WORK, self.fixed)
                self.fixed += -(-array.size // 8) * 8
        self.each = sum([array.size for array in blocks])
        at = self.fixed
        for array in blocks:
            self.storage[id(array)] = Location(WORK, at, self.each, self.to.width)
            at += array.size * self.to.width

    def lay_out_arguments(self) -> None:
        at = 0
        for array in self.program.of_role("param"):
            self.storage[id(array)] = Location(Memory("%params"), at)
            at += array.size
        for array in self.program.of_role("const"):
            self.storage[id(array)] = Location(self.to.constant(array.value), 0)
        for number, array in enumerate([a for a in self.program.arrays if a.role in ("input", "index")]):
            memory = Memory(f"%x{number}", "i" if array.role == "index" else "f")
            home = Location(memory, 0, array.size if array.batched else 0)
            self.rows[id(array)] = home
            if not array.batched or self.to.width == 1:
                self.storage[id(array)] = home
        seed = self.backward.seed
        if seed is not None and seed.cell_shape:  # an array of cotangents
            count = len(self.rows)
            self.storage[id(seed)] = Location(Memory(f"%x{count}"), 0)

    def lay_out_results(self) -> None:
        """Put results directly into the caller's memory if possible, else note them as copies."""
        computed = {id(array): step for step in self.steps for array in step.makes}
        read = {id(array) for step in self.steps for array in step.reads}

        def copy(copies: list[Copy], array: Array | None, shape: Array, memory: Memory, base: int = 0) -> None:
            if array is not None and id(array) in computed and id(array) not in self.storage and not array.batched:
                self.storage[id(array)] = Location(memory, base)
                self.to.read.add(id(array))
                return
            step = computed.get(id(array))
            pieces = self.pieces(step) if isinstance(step, Assemble) and id(array) not in read else []
            if pieces:
                self.in_place.add(id(array))
            for start, part, count in pieces or [(0, array, shape.size)]:
                copies.append((part, count, shape, memory, base + start))

        outputs, gradients = list(self.program.outputs.values()), self.backward.gradients
        for number, array in enumerate(outputs):
            copy(self.outputs, array, array, Memory(f"%y{number}"))
        at = 0
        for array in self.program.of_role("param"):
            copy(self.derivatives, gradients.get(array.name), array, Memory("%grads"), at)
            at += array.size
        for number, array in enumerate(self.wanted, len(outputs)):
            copy(self.derivatives, gradients.get(array.name), array, Memory(f"%y{number}"))

    def pieces(self, step: Assemble) -> list[tuple[int, Array | None, int]]:
        """Return the parts of a batched array, and None for the zeros between them, with their first cells and sizes;
        nothing unless each part lies in one piece, which is at least a vector long.
        """
        pieces, end = list[tuple[int, Array | None, int]](), 0
        for access, part in sorted(step.parts, key=lambda pair: pair[0].base):
            is_vector = access.is_in_order(part) and part.size >= self.to.width
            if not is_vector or access.base < end or not step.out.batched:
                return []
            pieces += [(end, None, access.base - end)] * (access.base > end) + [(access.base, part, part.size)]
            end = access.base + part.size
        return pieces + [(end, None, step.out.size - end)] * (end < step.out.size)
