"""The array program that a lifted computation becomes: arrays, and two kinds of steps.

A `Compute` fills an array with one expression, element by element, and may sum or take the greatest over some axes.
Maps, reductions and matrix products are shapes of it, and no kinds of their own. An `Assemble` puts arrays together,
adding where they overlap. How an element is found is said by an `Access`: a base and one stride an axis, or a table of
places. The batch is an axis like the others, of a length that is known only when the program runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np

from wengert.compiler.ir.expression import Expr, inputs
from wengert.compiler.ir.strides import addresses
from wengert.errors import WengertError

__all__ = ["BATCH", "Access", "Array", "Assemble", "Compute", "Program", "ProgramError", "contiguous", "verify"]

BATCH = -1  # the length of the batch axis, which stands first in an array's shape
Places = np.ndarray[Any, np.dtype[np.int64]]


class ProgramError(WengertError):
    """A program that breaks a rule of its own: a fault of the lifter, never of the user's code."""


@dataclass(eq=False)
class Array:
    """One named array."""

    name: str
    shape: tuple[int, ...]
    role: str  # param | const | input | index | value
    slots: Any = None  # of a param: the place of each element among the parameters
    value: Any = None  # of a const: its elements
    mask: Any = None  # which elements of an example are real; the others are padding
    clean: bool = True  # whether the padding is known to hold 0
    nonnegative: bool = False

    def __post_init__(self) -> None:  # what is asked for at every access; the shape stays what it is
        self.batched: bool = self.shape[:1] == (BATCH,)  # whether every example of a batch has elements of its own
        self.cell_shape: tuple[int, ...] = self.shape[1:] if self.batched else self.shape  # without the batch
        self.size: int = prod(self.cell_shape)  # how many elements an example has
        self.strides: tuple[int, ...] = (1,) * self.batched + contiguous(self.cell_shape)  # of the elements in order

    @property
    def written_shape(self) -> str:
        """The shape as comments have it, N being the number of examples."""
        return f"({', '.join('N' if n == BATCH else str(n) for n in self.shape)})"

    def __repr__(self) -> str:
        return self.name + self.written_shape


@dataclass(eq=False)
class Index:
    """A part of an address that is known only when the program runs: ``step * array[base + strides . point]``."""

    array: Array
    step: int
    base: int
    strides: tuple[int, ...]
    extent: int  # indices are below this


@dataclass(eq=False)
class Access:
    """Which element an array gives at each point of a Compute: ``cells[base + strides . point]``, or ``cells[table]``.

    Cells are counted within an example; along the batch axis a stride is 1 for a batched array, else 0.
    """

    array: Array
    base: int
    strides: tuple[int, ...]
    table: Places | None = None  # over the axes that are not the batch
    index: Index | None = None

    def permuted(self, order: Sequence[int], axes: Sequence[int]) -> Access:
        """The same access with the axes of its Compute in another order, or only some of them."""
        table = self.table
        if table is not None:
            plain = [i for i in range(len(axes)) if axes[i] != BATCH]
            stay = [plain.index(i) for i in order if axes[i] != BATCH]
            gone = [k for k in range(len(plain)) if k not in stay]  # of length 1
            table = table.transpose(stay + gone).reshape([table.shape[k] for k in stay])
        index = self.index
        if index is not None:
            strides = tuple([index.strides[i] for i in order])
            index = Index(index.array, index.step, index.base, strides, index.extent)
        return Access(self.array, self.base, tuple([self.strides[i] for i in order]), table, index)

    def depends_on(self, axis: int, axes: Sequence[int]) -> bool:
        """Whether the element changes along an axis."""
        if self.index is not None and self.index.strides[axis]:
            return True
        if self.table is not None and axes[axis] != BATCH:
            return True
        return self.strides[axis] != 0

    def is_whole(self, axes: Sequence[int]) -> bool:
        """Whether the points are the array's elements in their order."""
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
    mask: Any = None  # which points of the axes (without the batch) a reduction takes

    @property
    def reads(self) -> list[Array]:
        """The array of each operand."""
        return [access.array for access in self.operands]

    @property
    def reduced(self) -> tuple[int, ...]:
        """The numbers of the axes that are reduced."""
        return tuple(range(len(self.out.shape), len(self.axes)))


@dataclass(eq=False)
class Assemble:
    """``out = 0; out[access] += part`` for each part, over the part's own axes."""

    out: Array
    parts: list[tuple[Access, Array]]

    @property
    def reads(self) -> list[Array]:
        """The parts."""
        return [part for _, part in self.parts]


@dataclass(eq=False)
class Program:
    """Arrays, the steps that fill them, and what is returned."""

    arrays: list[Array] = field(default_factory=list)
    steps: list[Compute | Assemble] = field(default_factory=list)
    outputs: dict[str, Array] = field(default_factory=dict)  # "out", "auxiliary", and "sides" for what guards compare
    gradients: dict[str, Array] = field(default_factory=dict)  # of a reverse program: by the name of the param
    seed: Array | None = None  # of a reverse program: the cotangent of "out"
    padded: bool = False  # whether elements that no scalar program computes are computed here and masked out

    def of_role(self, role: str) -> list[Array]:
        """The arrays with a role, in their order."""
        return [array for array in self.arrays if array.role == role]


def contiguous(shape: Iterable[int]) -> tuple[int, ...]:
    """The strides of an array stored row by row.

    >>> contiguous((4, 3, 2))
    (6, 2, 1)
    """
    strides, step = [], 1
    for length in reversed(list(shape)):
        strides.append(step)
        step *= length
    return tuple(reversed(strides))


def whole(array: Array) -> Access:
    """The access that reads an array element by element."""
    return Access(array, 0, array.strides)


def verify(program: Program, before: Iterable[Array] = ()) -> None:
    """Check that a program keeps its rules: `before` lists arrays that another program has made.

    Raises:
        ProgramError: it does not; the message says which array and which rule.
    """
    made = {id(array) for array in before} | {id(array) for array in program.arrays if array.role != "value"}
    if program.seed is not None:
        made.add(id(program.seed))
    slots = [array.slots.ravel() for array in program.of_role("param")]
    _demand(not slots or int(np.bincount(np.concatenate(slots)).max()) == 1, "a parameter lies in two arrays")
    for step in program.steps:
        name = step.out.name
        _demand(id(step.out) not in made, f"{name} is made twice")
        if isinstance(step, Compute):
            _verify_compute(step, made)
            if not program.gradients:  # in a reverse program what meets padding is a cotangent that is 0 there
                _demand(not _takes_in_padding(step), f"{name}: a {step.reduce} takes in padding that holds anything")
        else:
            for access, part in step.parts:
                _demand(id(part) in made, f"{name} is put together from {part.name} before that is made")
                _verify_access(access, part.shape, f"{part.name} in {name}")
                _demand(access.array is step.out, f"{name} is put together through another array's places")
        made.add(id(step.out))
    for array in (*program.outputs.values(), *program.gradients.values()):
        _demand(id(array) in made, f"{array.name} is returned and never made")


def _verify_compute(step: Compute, made: set[int]) -> None:
    name = step.out.name
    plain = tuple([n for n in step.axes if n != BATCH])
    _demand(
        step.axes[: len(step.out.shape)] == step.out.shape, f"{name}: the axes {step.axes} do not begin with its shape"
    )
    _demand(bool(step.reduce) == bool(step.reduced), f"{name}: reduced axes without a reduction, or the reverse")
    _demand(sorted(inputs(step.expr)) == list(range(len(step.operands))), f"{name}: an operand is not used, or missing")
    _demand(1 not in plain or 1 in step.out.shape, f"{name} has an axis of length 1")  # an input may have one
    if step.mask is not None:
        _demand(step.mask.shape == plain, f"{name}: a mask of shape {step.mask.shape} over the axes {plain}")
    for access in step.operands:
        _demand(id(access.array) in made, f"{name} reads {access.array.name} before that is made")
        _verify_access(access, step.axes, f"{access.array.name} in {name}")


def _takes_in_padding(step: Compute) -> bool:
    """Whether a reduction takes in padding that counts: in a sum a 0 there makes the product at its point 0."""
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
    if step.out.mask is not None:  # what comes out in padding is of no concern
        taken = taken & step.out.mask.reshape((*step.out.cell_shape, *[1] * len(step.reduced)))
    return bool((padding & ~zeros & taken).any())


def _verify_access(access: Access, axes: tuple[int, ...], where: str) -> None:
    size, plain = access.array.size, [i for i, n in enumerate(axes) if n != BATCH]
    _demand(len(access.strides) == len(axes), f"{where}: {len(access.strides)} strides over {len(axes)} axes")
    if access.table is not None:
        _demand(
            access.table.shape == tuple([axes[i] for i in plain]), f"{where}: the table has another shape than the axes"
        )
        low, high = int(access.table.min()), int(access.table.max())
    else:
        reach = [access.strides[i] * (axes[i] - 1) for i in plain]
        low, high = access.base + sum(min(0, r) for r in reach), access.base + sum(max(0, r) for r in reach)
    if access.index is not None:
        high += access.index.step * (access.index.extent - 1)
    _demand(low >= 0 and high < size, f"{where}: places {low} to {high} of {size}")


def _demand(holds: bool, rule: str) -> None:
    if not holds:
        raise ProgramError(rule)
