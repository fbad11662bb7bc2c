"""The first half of lifting: from instructions on single numbers to groups of alike ones.

Nested sums become one sum of many terms, each term a coefficient times one or two factors. Then each number gets a
level (one more than the highest level among its operands), and numbers of one level, one operation and one kind of
operands form a group. A group becomes one array.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wengert.compiler.ir import may_fold
from wengert.compiler.lift.cancelling import IS_SUM, LEAST, Sums, cancelling
from wengert.compiler.lift.in_order import set_levels
from wengert.compiler.lift.shorten import Cut, Whole, cut_of
from wengert.compiler.lift.simplify import (
    CONST,
    INPUT,
    VALUE,
    VARYING,
    Pick,
    instructions,
    merge_equal,
    one_by_one,
    share_constants,
)
from wengert.graph import Graph
from wengert.ops import BY_NAME

__all__ = ["FlatGraph", "Group", "Groups", "flatten"]

Ints = np.ndarray[Any, np.dtype[np.int64]]
CODE = {name: BY_NAME[name].code for name in ("add", "sub", "neg", "mul", "pow", "sum", "dot", "max", "min")}
FIXED = [  # operations whose k-th operand, if constant, is part of the program
    [BY_NAME[name].code for name in names.split()]
    for names in ("polygamma gammainc gammaincc gamma_pdf betainc beta_pdf", "pow betainc beta_pdf")
]
REDUCE = {CODE[name]: name for name in ("sum", "max", "min")}
IS_LISTED = IS_SUM | np.isin(np.arange(len(IS_SUM)), list(REDUCE))  # sums, maxima and minima
RAGGED_GROUPS, RAGGED_WASTE = 2, 3.0  # sums of different lengths share an array that is at most this much larger


@dataclass
class Group:
    """The numbers that one array will store."""

    nodes: Ints
    code: int  # of the operation; all kinds of sums have that of "sum"

    @property
    def reduce(self) -> str:
        """sum | max | min; "" for an elementwise operation."""
        return REDUCE.get(self.code, "")


class Groups(Sequence[Group]):
    """All groups, in order, stored as arrays: there may be one for each number, and most become iterations of loops.

    Attributes:
        nodes: the numbers, group by group.
        begin: where each group begins; one more entry marks the end.
        codes: the operation of each group.
    """

    def __init__(self, nodes: Ints, begin: Ints, codes: Ints) -> None:
        self.nodes: Ints = nodes
        self.begin: Ints = begin
        self.codes: Ints = codes

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, number: Any) -> Any:
        if isinstance(number, slice):
            return [self[n] for n in range(*number.indices(len(self)))]
        return Group(self.nodes[self.begin[number] : self.begin[number + 1]], int(self.codes[number]))


@dataclass
class FlatGraph:
    """A recording in normal form. Numbers are named by their places; constants are numbered after them.

    Many fields: the columns of two tables, of terms and of instructions.
    """

    n: int
    constants: np.ndarray[Any, np.dtype[np.float64]]
    source: Ints  # of each number and constant; VARYING is a value that depends on an input
    first: Ints  # where the terms of a sum begin
    last: Ints  # and end
    factor: Ints  # the first factor of each term
    other: Ints  # its second factor, or -1
    coefficient: np.ndarray[Any, np.dtype[np.float64]]
    operands: Ints
    starts: Ints
    groups: Groups
    places: Ints  # the number of each instruction of the recording
    as_written: bool = False  # whether some sums keep their written order
    has_choices: bool = False  # whether the recording has a `where`
    cut: Cut | None = None  # where iterations of a loop are left out


def flatten(
    graph: Graph, source: Ints, wanted: Ints, picks: list[Pick], *, merge: bool = True, whole: bool = True
) -> FlatGraph:
    """Bring a recorded graph into normal form and group it.

    Args:
        graph: the recording.
        source: for each instruction PARAM, INPUT or VALUE; CONST for a leaf that the recorded function created.
        wanted: the places of the results.
        picks: the operands that are known only at run time.
        merge: whether to merge equal computations.
        whole: whether all iterations of loops must be there.

    Raises:
        Unliftable: an operation takes any number of operands and has no array form.
        Whole: a loop was shortened that does not repeat.
    """
    codes, starts, operands, constants, places = instructions(graph, source, picks)
    wanted = places[wanted]
    cut = None if whole else cut_of(codes, starts, operands, constants, wanted)
    if cut is not None:
        codes, starts, operands, constants, moved = cut.apply(codes, starts, operands, constants)
        places, wanted = moved[places], moved[wanted]
    n = len(codes)
    spread = np.zeros(n, np.int64) + VALUE
    spread[places] = source
    data = np.zeros(n)
    leaves = np.flatnonzero(source == CONST)
    data[places[leaves]] = [graph.values[i].data for i in leaves.tolist()]
    operands, constants, stands_for = share_constants(operands, constants, spread, data)
    if merge:
        codes, starts, operands, stands_for = merge_equal(codes, starts, operands, stands_for)
    places = stands_for[places]
    wanted = stands_for[wanted]
    while True:
        source = np.concatenate([spread, np.full(len(constants), CONST)])
        uses = np.bincount(operands, minlength=len(source)) + 2 * np.bincount(wanted, minlength=len(source))
        sums = _sums(codes, starts, operands, uses)
        as_written = cancelling(codes, starts, operands, constants, sums)
        many = np.flatnonzero(as_written & IS_LISTED[codes] & (np.diff(starts) >= LEAST))
        if not len(many):
            break
        if cut is not None:
            raise Whole
        codes, starts, operands, moved = one_by_one(codes, starts, operands, len(constants), many)
        places, wanted = moved[places], moved[wanted]
        spread, previous = np.full(len(codes), VALUE), spread
        spread[moved[:n]] = previous
        n = len(codes)
    terms, absorbed = _merge_sums(sums, codes, constants, as_written)
    listing = codes, starts, operands
    terms, multiplied = _merge_products(terms, listing, uses, source, constants, absorbed, as_written)
    root, factor, other, coefficient = terms
    count = np.bincount(root, minlength=n)
    last = np.cumsum(count)
    first = last - count
    present = ~(absorbed | multiplied)
    level, varies = _levels(codes, starts, operands, root, factor, other, present, source)
    if cut is not None:
        cut.check(level, present & (codes > 0), sums.top)
    source = np.where((source == VALUE) & varies, VARYING, source)
    factor, other = _ordered(factor, other, source)
    none = Groups(codes[:0], codes[:1] * 0, codes[:0])
    flat = FlatGraph(n, constants, source, first, last, factor, other, coefficient, operands, starts, none, places)
    flat.as_written, flat.cut = bool(as_written.any()), cut
    flat.has_choices = bool((np.asarray(graph.codes) == BY_NAME["where"].code).any())
    flat.groups = _groups(flat, codes, level, present & (codes > 0))
    return flat


# -- sums and products ------------------------------------------------------------------------------------------------


def _terms(codes: Ints, starts: Ints, operands: Ints, owner: Ints) -> tuple[Any, ...]:
    """Return the terms of sums, and the candidates of maxima and minima: (root, factor, other, coefficient)."""
    at = np.flatnonzero(IS_LISTED[codes][owner])
    root = owner[at]
    position, length, code = at - starts[root], starts[root + 1] - starts[root], codes[root]
    is_dot, half = code == CODE["dot"], length // 2
    weight = is_dot & (position < half)
    other = np.full(len(at), -1)
    other[weight] = operands[(at + half)[weight]]
    negative = (code == CODE["neg"]) | (code == CODE["sub"]) & (position == 1)
    keep = ~is_dot | weight | (position == length - 1)
    return root[keep], operands[at[keep]], other[keep], np.where(negative, -1.0, 1.0)[keep]


def _sums(codes: Ints, starts: Ints, operands: Ints, uses: Ints) -> Sums:
    """Return the terms of all sums, maxima and minima, and merge candidates: sums that only another sum uses."""
    n = len(codes)
    terms = root, factor, other, coefficient = _terms(codes, starts, operands, np.repeat(np.arange(n), np.diff(starts)))
    is_sum = IS_SUM[codes]
    within = np.minimum(factor, n - 1)
    inner = (other < 0) & (factor < n) & is_sum[within] & (uses[within] == 1) & is_sum[root]
    return Sums(root, factor, other, coefficient, inner, *_tops(terms, inner, n))


def _tops(terms: Any, inner: Any, n: int) -> tuple[Ints, Ints, Any]:
    """Return the sum that each sum merges into, the one that it ends up in, and its sign there."""
    root, factor, _, coefficient = terms
    parent, sign = np.arange(n), np.ones(n)
    parent[factor[inner]], sign[factor[inner]] = root[inner], coefficient[inner]
    top = parent
    while True:  # pointer doubling
        sign, higher = sign * sign[top], top[top]
        sign[higher == top] = sign[higher == top]
        if np.array_equal(higher, top):
            return parent, top, sign
        top = higher


def _merge_sums(sums: Sums, codes: Ints, constants: Any, as_written: Any) -> tuple[Any, Any]:
    """Replace each sum that only another sum uses by its terms there, except for sums that keep their written order."""
    n = len(codes)
    root, factor, other, coefficient, inner, _, parent, sign = sums
    is_sum = IS_SUM[codes]
    if as_written.any():
        inner = inner & ~as_written[root]
        _, parent, sign = _tops(sums[:4], inner, n)
    absorbed = np.zeros(n, bool)
    absorbed[factor[inner]] = True
    is_zero = np.zeros(n + len(constants), bool)
    is_zero[n:] = constants == 0.0
    keep = ~inner & ~(is_zero[factor] & (other < 0) & is_sum[root])
    bare = np.ones(n, bool)  # a sum of zeros alone keeps one of them
    bare[parent[root[keep]]] = False
    for place in np.flatnonzero(bare[parent[root]] & ~inner).tolist():
        if bare[parent[root[place]]]:
            keep[place], bare[parent[root[place]]] = True, False
    coefficient = (coefficient * sign[root])[keep]
    root = parent[root[keep]]
    order = np.argsort(root, kind="stable")
    return (root[order], factor[keep][order], other[keep][order], coefficient[order]), absorbed


def _merge_products(
    terms: Any, listing: Any, uses: Ints, source: Ints, constants: Any, gone: Any, as_written: Any
) -> tuple[Any, Any]:
    """Make each product that only a sum uses a term of it: up to two factors and a coefficient."""
    (root, factor, other, coefficient), (codes, starts, operands) = terms, listing
    n = len(codes)
    absorbed = np.zeros(n, bool)
    single = np.zeros(len(uses), bool)
    single[:n] = uses[:n] == 1
    is_mul, is_neg = np.zeros(len(uses), bool), np.zeros(len(uses), bool)
    is_mul[:n], is_neg[:n] = codes == CODE["mul"], codes == CODE["neg"]
    of_neg = np.flatnonzero(is_neg)
    inner = operands[starts[of_neg]]
    is_neg[of_neg[(inner < n) & gone[np.minimum(inner, n - 1)]]] = False  # it took its operand's terms: it is a sum
    in_sum = IS_SUM[codes[root]] & ~as_written[root]
    passing = (is_neg & single)[root]  # these may become the sign of another sum's term, so they come last
    for attempt in range(6):
        active = in_sum & ~passing if attempt < 3 else in_sum & passing & ~absorbed[root]
        swap = (other >= 0) & (source[factor] == CONST)  # constants second
        factor[swap], other[swap] = other[swap], factor[swap]
        for side in (factor, other) if attempt < 3 else ():
            at = np.flatnonzero(active & (side >= 0) & single[side] & is_neg[side])
            absorbed[side[at]] = True
            coefficient[at] *= -1.0
            side[at] = operands[starts[side[at]]]
        free = active & single[factor] & is_mul[factor]
        at = np.flatnonzero(free & (other >= 0) & (source[other] == CONST))
        with np.errstate(over="ignore"):
            at = at[may_fold(coefficient[at], constants[other[at] - n])]
        coefficient[at] *= constants[other[at] - n]
        other[at] = -1
        at = np.flatnonzero(free & (other < 0))
        product = factor[at]
        absorbed[product] = True
        factor[at], other[at] = operands[starts[product]], operands[starts[product] + 1]
    return (root, factor, other, coefficient), absorbed


def _ordered(factor: Ints, other: Ints, source: Ints) -> tuple[Ints, Ints]:
    """Order factors by source: parameters first, constants last."""
    swap = (other >= 0) & (source[factor] > source[np.maximum(other, 0)])
    return np.where(swap, other, factor), np.where(swap, factor, other)


# -- levels and groups ------------------------------------------------------------------------------------------------


def _levels(
    codes: Ints, starts: Ints, operands: Ints, root: Ints, factor: Ints, other: Ints, present: Any, source: Ints
) -> tuple[Ints, Any]:
    """Return the level of each number, and whether it depends on an input, in one pass in the order of creation."""
    is_made = np.zeros(len(source), bool)
    is_made[: len(codes)] = present & (codes > 0)
    owner = np.repeat(np.arange(len(codes)), np.diff(starts))
    plain = np.flatnonzero((is_made[: len(codes)] & ~IS_LISTED[codes])[owner])
    second = np.flatnonzero(other >= 0)
    user = np.concatenate([root, root[second], owner[plain]])
    used = np.concatenate([factor, other[second], operands[plain]])
    varies = source == INPUT
    varies[user[varies[used]]] = True
    inner = np.flatnonzero(is_made[used])
    inner = inner[np.argsort(user[inner], kind="stable")]
    level = is_made.astype(np.int64)
    set_levels(user[inner], used[inner], level, varies.view(np.uint8))
    return level, varies


def _groups(flat: FlatGraph, codes: Ints, level: Ints, present: Any) -> Groups:
    """Group numbers of one level, one operation and one kind of operands, in the order of creation."""
    nodes = np.flatnonzero(present)
    if not len(nodes):
        return flat.groups
    random = np.random.default_rng(1964).integers(0, 2**63, 4096, dtype=np.uint64)  # a hash of each kind
    is_sum, listed = IS_SUM[codes], IS_LISTED[codes]
    kind = _kinds(flat)
    signature = np.zeros(flat.n, np.uint64)  # of a sum: the kinds of its terms in any order
    lowest, highest = np.zeros(flat.n, np.int64), np.zeros(flat.n, np.int64)
    filled = np.flatnonzero(flat.last > flat.first)
    if len(filled):
        begin = flat.first[filled]
        signature[filled] = np.add.reduceat(random[kind], begin)
        lowest[filled], highest[filled] = np.minimum.reduceat(kind, begin), np.maximum.reduceat(kind, begin)
    plain, arity = np.flatnonzero(present & ~listed), np.diff(flat.starts)
    for k in range(int(arity[plain].max()) if len(plain) else 0):  # of others: the sources of the operands
        has = plain[arity[plain] > k]
        operand = flat.operands[flat.starts[has] + k]
        signature[has] += random[128 + 8 * k + flat.source[operand]]
        if k <= 1:  # a constant order or exponent counts, too
            fixed = np.isin(codes[has], FIXED[k]) & (flat.source[operand] == CONST)
            signature[has[fixed]] += random[1024 + operand[fixed] % 3000]
    code = np.where(is_sum, CODE["sum"], codes)
    base = level[nodes].astype(np.uint64) * random[120] + code[nodes].astype(np.uint64) * random[121]
    base += flat.source[nodes].astype(np.uint64) * random[122]
    key = base + signature[nodes] * random[123]
    shared = base + lowest[nodes].astype(np.uint64) * random[124]
    key = _join_ragged(key, shared, (flat.last - flat.first)[nodes], (lowest == highest)[nodes] & listed[nodes])
    _, first_seen, number = np.unique(key, return_index=True, return_inverse=True)
    number = number.reshape(-1)
    order = np.lexsort((nodes, first_seen[number], level[nodes]))
    nodes, number = nodes[order], number[order]
    begin = np.concatenate([[0], np.flatnonzero(np.diff(number)) + 1, [len(nodes)]])
    return Groups(nodes, begin, code[nodes[begin[:-1]]])


def _kinds(flat: FlatGraph) -> Ints:
    """Number the kinds of terms: the sources of the factors, and whether the coefficient is 1, -1 or another number."""
    second = np.where(flat.other >= 0, flat.source[np.maximum(flat.other, 0)] + 1, 0)
    scale = np.where(flat.coefficient == 1.0, 0, np.where(flat.coefficient == -1.0, 1, 2))
    kind: Ints = flat.source[flat.factor] * 18 + second * 3 + scale
    return kind


def _join_ragged(key: Any, shared: Any, count: Ints, may: Any) -> Any:
    """Give sums that differ only in their number of terms one key, if that wastes little."""
    _, of_shared = np.unique(shared, return_inverse=True)
    of_shared = of_shared.reshape(-1)
    groups = int(of_shared.max()) + 1
    longest, total = np.zeros(groups, np.int64), np.bincount(of_shared, count, minlength=groups)
    np.maximum.at(longest, of_shared, count)
    size = np.bincount(of_shared, minlength=groups)
    _, first_seen = np.unique(key, return_index=True)
    variants = np.bincount(of_shared[first_seen], minlength=groups)
    joined = (variants >= RAGGED_GROUPS) & (longest * size <= RAGGED_WASTE * total)
    return np.where(joined[of_shared] & may, shared, key)
