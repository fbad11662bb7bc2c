"""Where the arrays of a kernel lie in memory, and its two functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from wengert.compiler.backends.native.access import Location
from wengert.compiler.backends.native.emitter import Memory
from wengert.compiler.backends.native.llvm import LLVM
from wengert.compiler.backends.native.lower import Copy, Lowering, arrays_made
from wengert.compiler.ir import Array, Program, Step

__all__ = ["Lowered", "module"]

WORK = Memory("%work")


class Lowered(NamedTuple):
    """The text of a kernel, and what it works in."""

    text: str
    fixed: int  # doubles of scratch,
    each: int  # and for each example of as many as fill whole blocks
    width: int

    def work(self, count: int) -> int:
        """How much scratch a run on so many examples takes."""
        return self.fixed + self.each * (-(-count // self.width) * self.width)


def module(program: Program, back: Program, wanted: Sequence[Array], width: int, checks: bool = False) -> Lowered:
    """A program and its reverse as a text of LLVM's, with the functions `forward` and `both`.

    Raises:
        Unsupported: something in it can only be computed in Python.
    """
    to = LLVM(width, checks)
    plan = _Layout(to, program, back, wanted)
    forward = plan.write(program.steps, plan.outputs)
    reverse = plan.write(back.steps, plan.derivatives)
    return Lowered(to.text({"forward": forward, "both": [*forward, *reverse]}), plan.fixed, plan.each, width)


class _Layout:
    """The memory of both functions: `both` runs what `forward` does, and then the reverse sweep."""

    def __init__(self, to: LLVM, program: Program, back: Program, wanted: Sequence[Array]) -> None:
        self.to = to
        self.program = program
        self.backward = back
        self.wanted = list(wanted)
        self.steps = [*program.steps, *back.steps]
        self.storage: dict[int, Location] = {}
        self.rows: dict[int, Location] = {}
        self.fixed = 8  # the first is where what is out of bounds is noted
        self.each = 0
        self.given()
        self.outputs: list[Copy] = []  # what has to be copied to where it is left
        self.derivatives: list[Copy] = []
        self.results()
        read = {id(array) for step in self.steps for array in step.reads}
        read |= {id(array) for array, *_ in (*self.outputs, *self.derivatives)}
        self.packs = [a for a in program.arrays if id(a) in self.rows and a.batched and id(a) in read and to.width > 1]
        self.made()

    def write(self, steps: Sequence[Step], copies: Sequence[Copy]) -> list[int]:
        """Write one of the two; the numbers of its parts."""
        packs, self.packs = self.packs, []
        return Lowering(self.to, steps, self.storage, self.rows, self.backward.seed).run(packs, copies)

    def made(self) -> None:
        """What steps make."""
        blocks = list(self.packs)
        for array in arrays_made(self.steps):
            if array.batched:
                blocks.append(array)
            elif id(array) not in self.storage:
                self.storage[id(array)] = Location(WORK, self.room(array.size))
        self.each = sum([array.size for array in blocks])
        at = self.fixed
        for array in blocks:
            self.storage[id(array)] = Location(WORK, at, self.each, self.to.width)
            at += array.size * self.to.width

    def room(self, size: int) -> int:
        """Where the next numbers without a batch lie."""
        start = self.fixed
        self.fixed += -(-size // 8) * 8
        return start

    def given(self) -> None:
        """The parameters, constants and inputs."""
        at = 0
        for array in self.program.of_role("param"):
            self.storage[id(array)] = Location(Memory("%numbers"), at)
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
        if seed is not None and seed.cell_shape:  # a cotangent for each number of the output
            count = len(self.rows)
            self.storage[id(seed)] = Location(Memory(f"%x{count}"), 0)

    def results(self) -> None:
        """Lay what is asked for where it is to be left, or see that it is copied there."""
        made = {id(array) for step in self.steps for array in step.makes}

        def copy(copies: list[Copy], array: Array | None, shape: Array, memory: Memory, base: int = 0) -> None:
            if array is not None and id(array) in made and id(array) not in self.storage and not array.batched:
                self.storage[id(array)] = Location(memory, base)
                self.to.read.add(id(array))
            else:
                copies.append((array, shape, memory, base))

        outputs, gradients = list(self.program.outputs.values()), self.backward.gradients
        for number, array in enumerate(outputs):
            copy(self.outputs, array, array, Memory(f"%y{number}"))
        at = 0
        for array in self.program.of_role("param"):
            copy(self.derivatives, gradients.get(array.name), array, Memory("%slopes"), at)
            at += array.size
        for number, array in enumerate(self.wanted, len(outputs)):
            copy(self.derivatives, gradients.get(array.name), array, Memory(f"%y{number}"))
