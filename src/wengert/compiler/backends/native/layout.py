"""Where the arrays of a kernel lie in memory, and its two functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from wengert.compiler.backends.native.access import Storage
from wengert.compiler.backends.native.emitter import Memory
from wengert.compiler.backends.native.llvm import LLVM
from wengert.compiler.backends.native.lower import Copy, Lowering
from wengert.compiler.ir import Array, Program

__all__ = ["Module", "module"]


class Module(NamedTuple):
    """The text of a kernel, and what it works in."""

    text: str
    fixed: int  # doubles of scratch,
    each: int  # and for each example of as many as fill whole blocks
    width: int

    def work(self, count: int) -> int:
        """How much scratch a run on so many examples takes."""
        return self.fixed + self.each * (-(-count // self.width) * self.width)


def module(program: Program, back: Program, wanted: Sequence[Array], width: int, checks: bool = False) -> Module:
    """A program and its reverse as a text of LLVM's, with the functions `forward` and `both`.

    Raises:
        Unsupported: something in it can only be computed in Python.
    """
    to = LLVM(width, checks)
    entries, fixed, each = {}, 0, 0
    for name, reverse in (("forward", None), ("both", back)):
        plan = _Layout(to, program, reverse, wanted)
        entries[name] = plan.write()
        fixed, each = max(fixed, plan.fixed), max(each, plan.each)
    return Module(to.text(entries), fixed, each, width)


class _Layout:
    """The memory of one function."""

    def __init__(self, to: Any, program: Program, back: Program | None, wanted: Sequence[Array]) -> None:
        self.to = to
        self.program = program
        self.back = back
        self.wanted = list(wanted) if back is not None else []
        self.steps = [*program.steps, *(back.steps if back is not None else ())]
        self.storage: dict[int, Storage] = {}
        self.rows: dict[int, Storage] = {}
        self.fixed = 8  # the first is where what is out of bounds is noted
        self.each = 0

    def write(self) -> list[int]:
        """Write it; the numbers of its parts."""
        to, program, seed = self.to, self.program, self.back.seed if self.back is not None else None
        self.given()
        copies = self.results()
        blocks = []
        for step in self.steps:
            array = step.out
            if id(array) in self.storage:
                continue
            if array.batched:
                blocks.append(array)
            else:
                self.storage[id(array)] = Storage(Memory("%work"), self.room(array.size))
        read = {id(array) for step in self.steps for array in step.reads}
        read |= {id(array) for array, *_ in copies}
        packs = [a for a in program.arrays if id(a) in self.rows and a.batched and id(a) in read and to.width > 1]
        for array in (*packs, *blocks):
            self.storage[id(array)] = Storage(Memory("%work"), self.each, -1, to.width)
            self.each += array.size
        for key, home in self.storage.items():
            if home.pitch == -1:  # known now that all are counted
                self.storage[key] = home._replace(base=self.fixed + home.base * to.width, pitch=self.each)
        return Lowering(to, self.steps, self.storage, self.rows, seed).run(packs, copies)

    def room(self, size: int) -> int:
        """Where the next numbers without a batch lie."""
        start = self.fixed
        self.fixed += -(-size // 8) * 8
        return start

    def given(self) -> None:
        """The parameters, constants and inputs."""
        at = 0
        for array in self.program.of_role("param"):
            self.storage[id(array)] = Storage(Memory("%numbers"), at)
            at += array.size
        for array in self.program.of_role("const"):
            self.storage[id(array)] = Storage(self.to.constant(array.value), 0)
        for number, array in enumerate([a for a in self.program.arrays if a.role in ("input", "index")]):
            memory = Memory(f"%x{number}", "i" if array.role == "index" else "f")
            home = Storage(memory, 0, array.size if array.batched else 0)
            self.rows[id(array)] = home
            if not array.batched or self.to.width == 1:
                self.storage[id(array)] = home

    def results(self) -> list[Copy]:
        """Lay what is asked for where it is to be left; what has to be copied there."""
        made = {id(step.out) for step in self.steps}
        copies: list[Copy] = []

        def leave(array: Array | None, shape: Array, memory: Memory, base: int) -> None:
            if array is not None and id(array) in made and id(array) not in self.storage and not array.batched:
                self.storage[id(array)] = Storage(memory, base)
                self.to.read.add(id(array))
            else:
                copies.append((array, shape, memory, base))

        results: list[tuple[Array | None, Array]] = [(array, array) for array in self.program.outputs.values()]
        if self.back is not None:
            gradients = self.back.gradients
            results += [(gradients.get(array.name), array) for array in self.wanted]
            at = 0
            for array in self.program.of_role("param"):
                leave(gradients.get(array.name), array, Memory("%slopes"), at)
                at += array.size
        for number, (result, shape) in enumerate(results):
            leave(result, shape, Memory(f"%y{number}"), 0)
        return copies
