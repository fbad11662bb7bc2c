"""The array programs that recordings are lifted to: arrays, and the steps that fill them.

A `Compute` fills an array with one expression, element by element, and may reduce over some axes: maps, reductions and
matrix products are all Computes. An `Assemble` puts arrays together, adding where they overlap. An `Access` says where
each element is found: a base and one stride for each axis, or a table of places. The batch is an axis like the others,
whose length is known only when the program runs. A `Loop` repeats such steps; each iteration may read outputs of
earlier ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, NamedTuple

import numpy as np

from wengert.compiler.ir.expression import Expr, has_mask, inputs
from wengert.compiler.ir.strides import addresses
from wengert.errors import WengertError

__all__ = ["BATCH", "Access", "Array", "Assemble", "Compute", "Index", "Loop", "LoopOutput", "Program", "ProgramError"]
__all__ += ["Slice", "Step", "contiguous", "verify", "whole"]

BATCH = -1  # the length of the batch axis, the first in an array's shape
Places = np.ndarray[Any, np.dtype[np.int64]]


class ProgramError(WengertError):
    """A program breaks a rule of this representation: a fault of the compiler, never of the user's code."""


@dataclass(eq=False)
class Array:
    """An array of a program.

    Many fields, four of them computed from the shape, which is read very often.
    """

    name: str
    shape: tuple[int, ...]
    role: str  # param | const | input | index | value | slice
    slots: Any = None  # of a param: the place of each element among the parameters
    value: Any = None  # of a const: its elements
    mask: Any = None  # which elements of an example are real; the others are padding
    clean: bool = True  # whether the padding is known to hold 0
    nonnegative: bool = False
    slice: Slice | None = None  # of a slice: what it shows

    def __post_init__(self) -> None:  # attributes, not properties: they are read very often, and the shape is fixed
        self.batched: bool = self.shape[:1] == (BATCH,)
        self.cell_shape: tuple[int, ...] = self.shape[1:] if self.batched else self.shape  # without the batch
        self.size: int = prod(self.cell_shape)  # elements of one example
        self.strides: tuple[int, ...] = (1,) * self.batched + contiguous(self.cell_shape)

    @property
    def written_shape(self) -> str:
        """The shape for comments in generated code, with N for the number of examples."""
        return f"({', '.join('N' if n == BATCH else str(n) for n in self.shape)})"

    @property
    def origin(self) -> Array:
        """The array that a slice shows, and any other one itself."""
        return self if self.slice is None else self.slice.array

    def __repr__(self) -> str:
        return self.name + self.written_shape


@dataclass(eq=False)
class Slice:
    """The cells of an array that iteration t of a loop sees: those from ``base + step * t`` on."""

    array: Array
    base: int
    step: int


@dataclass(eq=False)
class Index:
    """A part of an address that is known only at run time: ``step * array[base + strides . point]``."""

    array: Array
    step: int
    base: int
    strides: tuple[int, ...]
    extent: int  # indices are below this


@dataclass(eq=False)
class Access:
    """The element of an array that each point of a Compute reads: ``cells[base + strides . point]``, or
    ``cells[table]``.

    Cells are counted within an example; along the batch axis the stride is 1 for a batched array, else 0.
    """

    array: Array
    base: int
    strides: tuple[int, ...]
    table: Places | None = None  # over the axes without the batch
    index: Index | None = None

    def permuted(self, order: Sequence[int], axes: Sequence[int]) -> Access:
        """Return the access with the axes of its Compute in another order, or only some of them."""
        table = self.table
        if table is not None:
            plain = [i for i in range(len(axes)) if axes[i] != BATCH]
            stay = [plain.index(i) for i in order if axes[i] != BATCH]
            gone = [k for k in range(len(plain)) if k not in stay]  # it is constant along these
            table = table.transpose(stay + gone)
            for _ in gone:
                table = table[..., 0]
        index = self.index
        if index is not None:
            strides = tuple([index.strides[i] for i in order])
            index = Index(index.array, index.step, index.base, strides, index.extent)
        return Access(self.array, self.base, tuple([self.strides[i] for i in order]), table, index)

    def depends_on(self, axis: int, axes: Sequence[int]) -> bool:
        if self.index is not None and self.index.strides[axis]:
            return True
        if self.table is not None and axes[axis] != BATCH:
            return self.table.strides[sum(n != BATCH for n in axes[:axis])] != 0
        return self.strides[axis] != 0

    def cells(self, axes: Sequence[int]) -> list[int]:
        """Return the cells at the points of some axes, one after another, without the index's part."""
        if self.table is not None:
            return self.table.reshape(-1).tolist()
        cells = [self.base]
        for length, stride in zip(axes, self.strides, strict=True):
            if length != BATCH:
                cells = [cell + stride * i for cell in cells for i in range(length)]
        return cells

    def places(self, axes: Sequence[int]) -> Any:
        """Return the same as an array."""
        if self.table is not None:
            return self.table.reshape(-1)
        plain = [i for i, n in enumerate(axes) if n != BATCH]
        strides = tuple([self.strides[i] for i in plain])
        return addresses(self.base, strides, tuple([axes[i] for i in plain])).reshape(-1)

    def reach(self, axes: Sequence[int]) -> tuple[int, int]:
        """Return the lowest and the highest cell that it may read over some axes."""
        if self.table is not None:
            low, high = int(self.table.min()), int(self.table.max())
        else:
            moves = [stride * (n - 1) for n, stride in zip(axes, self.strides, strict=True) if n != BATCH]
            low, high = self.base + sum([m for m in moves if m < 0]), self.base + sum([m for m in moves if m > 0])
        chosen = 0 if self.index is None else self.index.step * (self.index.extent - 1)
        return low + min(0, chosen), high + max(0, chosen)

    def is_in_order(self, part: Array) -> bool:
        """Return True if it reaches neighbouring cells, in the order in which a part stores its own."""
        plain = self.table is None and self.index is None
        return plain and self.strides[int(part.batched) :] == contiguous(part.cell_shape)

    def is_whole(self, axes: Sequence[int]) -> bool:
        """Return True if it reads all elements of the array in order."""
        return (
            self.table is None
            and self.index is None
            and self.base == 0
            and tuple(axes) == self.array.shape
            and self.strides == self.array.strides
        )


@dataclass(eq=False)
class Compute:
    """``out[axes[:n]] = reduce over axes[n:] of expr(operands)``, where n is the number of out's axes."""

    out: Array
    axes: tuple[int, ...]
    operands: list[Access]
    expr: Expr
    reduce: str = ""  # "" | sum | max | min
    mask: Any = None  # which points of the axes (without the batch) are reduced

    @property
    def reads(self) -> list[Array]:
        return [access.array for access in self.operands]

    @property
    def makes(self) -> list[Array]:
        return [self.out]

    @property
    def chosen_by(self) -> list[Array]:
        """The integers that choose what it reads."""
        return _indices(self.operands)

    @property
    def reduced(self) -> tuple[int, ...]:
        return tuple(range(len(self.out.shape), len(self.axes)))


@dataclass(eq=False)
class Assemble:
    """``out = 0; out[access] += part`` for each part, over the part's own axes, and for each example."""

    out: Array
    parts: list[tuple[Access, Array]]

    @classmethod
    def end_to_end(cls, out: Array, parts: Iterable[Array]) -> Assemble:
        """Store arrays one behind another."""
        at, placed = 0, []
        for part in parts:
            placed.append((Access(out, at, part.strides), part))
            at += part.size
        return cls(out, placed)

    @property
    def reads(self) -> list[Array]:
        return [part for _, part in self.parts]

    @property
    def chosen_by(self) -> list[Array]:
        """The integers that choose where it writes."""
        return _indices([access for access, _ in self.parts])

    @property
    def makes(self) -> list[Array]:
        return [self.out]


class LoopOutput(NamedTuple):
    """An output of a loop: each iteration writes `part` to one row of `out`.

    Rows are in the order of a forward loop. If iterations read rows of earlier ones, as many rows as they look back
    come first, or last in a backward loop: `initial`, or zeros.
    """

    part: Array
    out: Array
    initial: Array | None = None


@dataclass(eq=False)
class Loop:
    """Steps that run in each of `count` iterations, on arrays that no step outside reads.

    They read arrays from outside as they are, or through slices that move on with each iteration; they read outputs of
    earlier iterations through slices, too. A backward loop begins with the last iteration.
    """

    count: int
    steps: list[Compute | Assemble]
    outputs: list[LoopOutput]
    backward: bool = False

    @property
    def slices(self) -> list[Array]:
        read = {id(array): array for step in self.steps for array in (*step.reads, *step.chosen_by)}
        return [array for array in read.values() if array.slice is not None]

    @property
    def reads(self) -> list[Array]:
        """The arrays from outside that it reads, each once."""
        own = {id(step.out) for step in self.steps} | {id(output.out) for output in self.outputs}
        read = [array.origin for step in self.steps for array in step.reads]
        read += [output.initial for output in self.outputs if output.initial is not None]
        return [array for array in {id(array): array for array in read}.values() if id(array) not in own]

    @property
    def makes(self) -> list[Array]:
        return [output.out for output in self.outputs]

    def initial_rows(self, output: LoopOutput) -> int:
        """Count the rows of an output that exist before the first iteration."""
        return output.out.cell_shape[0] - self.count

    def first_row(self, output: LoopOutput) -> int:
        """Return the row that iteration 0 writes."""
        return 0 if self.backward else self.initial_rows(output)


Step = Compute | Assemble | Loop


def _indices(accesses: Iterable[Access]) -> list[Array]:
    return [access.index.array for access in accesses if access.index is not None]


@dataclass(eq=False)
class Program:
    arrays: list[Array] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    outputs: dict[str, Array] = field(default_factory=dict)  # "out", "auxiliary", and "sides" for what guards compare
    gradients: dict[str, Array] = field(default_factory=dict)  # of a reverse program: by the name of the param
    seed: Array | None = None  # of a reverse program: the cotangent of "out"
    padded: bool = False  # whether it computes elements that the recording lacks, and masks them out
    is_derivative: bool = False  # whether it has the steps of a reverse sweep
    has_choices: bool = False  # whether the recording has a `where`: see derive/taken.py
    as_written: bool = False  # whether some sums keep the recording's order, because terms of them cancel

    @property
    def size(self) -> int:
        return len(self.each_step())

    def each_step(self) -> list[Compute | Assemble]:
        """Return all steps, with those of loops in place of the loops."""
        return [each for step in self.steps for each in (step.steps if isinstance(step, Loop) else [step])]

    def of_role(self, role: str) -> list[Array]:
        return [array for array in self.arrays if array.role == role]

    def is_symmetric(self) -> bool:
        """Return True if the order of the parameters does not matter but for rounding: they are one array, and each
        step computes a number for each of its elements alike, or from all of them together.
        """
        each = self.of_role("param")  # arrays with an element for each parameter
        if len(each) != 1 or len(self.outputs) != 1:
            return False
        axes = each[0].shape
        for step in self.steps:
            if not isinstance(step, Compute) or step.mask is not None or has_mask(step.expr):
                return False
            for access in step.operands:
                if access.array in each:
                    if step.axes != axes or not access.is_whole(axes):
                        return False
                elif access.array.size > 1:
                    return False
            if step.axes == axes and not step.reduced:
                each.append(step.out)
        return self.outputs["out"] not in each


def contiguous(shape: Iterable[int]) -> tuple[int, ...]:
    """Return the strides of an array that is stored row by row.

    >>> contiguous((4, 3, 2))
    (6, 2, 1)
    """
    strides, step = [], 1
    for length in reversed(list(shape)):
        strides.append(step)
        step *= length
    return tuple(reversed(strides))


def whole(array: Array) -> Access:
    return Access(array, 0, array.strides)


def verify(program: Program, given: Iterable[Array] = ()) -> None:
    """Check the rules of a program; `given` lists arrays that another program has made.

    Raises:
        ProgramError: a rule is broken; the message names the array and the rule.
    """
    defined = {id(array) for array in given} | {id(array) for array in program.arrays if array.role != "value"}
    if program.seed is not None:
        defined.add(id(program.seed))
    slots = [array.slots.ravel() for array in program.of_role("param")]
    for array in program.of_role("const"):
        fits = array is program.seed or array.value is None or np.shape(array.value) == array.shape
        _demand(fits, "{} has other numbers than its shape", array.name)
    _demand(not slots or int(np.bincount(np.concatenate(slots)).max()) == 1, "a parameter is in two arrays")
    _verify_steps(program.steps, defined, is_reverse=program.is_derivative or bool(program.gradients))
    for array in (*program.outputs.values(), *program.gradients.values()):
        _demand(id(array) in defined, f"{array.name} is returned but never computed")


def _verify_steps(steps: Iterable[Step], defined: set[int], is_reverse: bool) -> None:
    """Check steps, and add the arrays that they compute to `defined`."""
    for step in steps:
        for array in step.makes:
            _demand(id(array) not in defined, "{} is computed twice", array.name)
        if isinstance(step, Loop):
            _verify_loop(step, defined, is_reverse)
        elif isinstance(step, Compute):
            _verify_compute(step, defined)
            if not is_reverse:  # in a reverse sweep padding meets cotangents that are 0 there
                rule = "{}: a {} includes undefined padding"
                _demand(not _takes_in_padding(step), rule, step.out.name, step.reduce)
        else:
            name = step.out.name
            for access, part in step.parts:
                _demand(id(part) in defined, "{} is assembled from {}, which is not computed yet", name, part.name)
                _verify_access(access, part.shape, part.name, name)
                _demand(access.array is step.out, "{} is assembled through places of another array", name)
        defined.update([id(array) for array in step.makes])


def _verify_loop(loop: Loop, defined: set[int], is_reverse: bool) -> None:
    own = {id(output.out): output for output in loop.outputs}
    within = set(defined)
    for array in loop.slices:
        piece, name = array.slice, array.name
        assert piece is not None
        ends = piece.base, piece.base + piece.step * (loop.count - 1)
        _demand(min(ends) >= 0 and max(ends) + array.size <= piece.array.size, f"{name} reaches outside its array")
        _demand(array.batched == piece.array.batched, f"{name} and its array must both have a batch or none")
        output = own.get(id(piece.array))
        if output is None:
            _demand(id(piece.array) in defined, f"{name} shows {piece.array.name}, which is not computed yet")
        else:
            row, low, high = output.part.size, piece.base, piece.base + array.size
            first = loop.first_row(output) * row
            _demand(piece.step == row, f"{name} does not move by one row of its output")
            _demand(low >= row if loop.backward else high <= first, f"{name} shows an iteration that is yet to come")
        within.add(id(array))
    _verify_steps(loop.steps, within, is_reverse)
    parts = {id(step.out) for step in loop.steps}
    for output in loop.outputs:
        part, out, initial = output
        rows, shape = loop.initial_rows(output), part.shape[: int(part.batched)]
        _demand(id(part) in parts, f"{out.name} stores {part.name}, which no iteration computes")
        _demand(
            out.shape == (*shape, loop.count + rows, *part.cell_shape) and rows >= 0, f"{out.name} has the wrong shape"
        )
        if initial is not None:
            _demand(
                id(initial) in defined and initial.size == rows * part.size, f"{out.name} begins with {initial.name}"
            )
            _demand(out.batched or not initial.batched, f"{out.name} begins with a batch")


def _verify_compute(step: Compute, defined: set[int]) -> None:
    name = step.out.name
    plain = tuple([n for n in step.axes if n != BATCH])
    rank = len(step.out.shape)
    _demand(step.axes[:rank] == step.out.shape, "{}: the axes {} do not begin with its shape", name, step.axes)
    _demand(bool(step.reduce) == (len(step.axes) > rank), "{}: a reduction without axes, or the reverse", name)
    _demand(sorted(inputs(step.expr)) == [*range(len(step.operands))], "{}: an operand is unused, or missing", name)
    _demand(1 not in plain or 1 in step.out.shape, "{} has an axis of length 1", name)  # an input may have one
    if step.mask is not None:
        _demand(step.mask.shape == plain, "{}: a mask of shape {} over the axes {}", name, step.mask.shape, plain)
    for access in step.operands:
        _demand(id(access.array) in defined, "{} reads {}, which is not computed yet", name, access.array.name)
        _verify_access(access, step.axes, access.array.name, name)


def _takes_in_padding(step: Compute) -> bool:
    """Return True if a reduction includes padding that may be nonzero; a clean 0 makes the product at its point 0."""
    if not step.reduce or all(access.array.mask is None for access in step.operands):
        return False
    plain = [i for i, n in enumerate(step.axes) if n != BATCH]
    shape = tuple([step.axes[i] for i in plain])
    padding, zeros = np.zeros(shape, bool), np.zeros(shape, bool)
    for access in step.operands:
        mask = access.array.mask
        if mask is None or access.index is not None:
            continue
        cells = access.table
        if cells is None:
            cells = addresses(access.base, tuple([access.strides[i] for i in plain]), shape)
        here = ~mask.reshape(-1)[cells]
        padding |= here
        zeros |= here & (access.array.clean and step.reduce == "sum")
    taken = np.ones(shape, bool) if step.mask is None else step.mask
    if step.out.mask is not None:  # padding of the result does not matter
        taken = taken & step.out.mask.reshape((*step.out.cell_shape, *[1] * len(step.reduced)))
    return bool((padding & ~zeros & taken).any())


def _verify_access(access: Access, axes: tuple[int, ...], read: str, name: str) -> None:
    _demand(len(access.strides) == len(axes), "{} in {}: {} strides over {}", read, name, len(access.strides), axes)
    if access.table is not None:
        plain = tuple([n for n in axes if n != BATCH])
        _demand(access.table.shape == plain, "{} in {}: the shape of the table differs from the axes", read, name)
    (low, high), size = access.reach(axes), access.array.size
    _demand(low >= 0 and high < size, "{} in {}: places {} to {} of {}", read, name, low, high, size)


def _demand(holds: bool, rule: str, *names: Any) -> None:
    """Raise the rule, formatted with these names, unless it holds. (To format each message in advance is slow.)"""
    if not holds:
        raise ProgramError(rule.format(*names))
