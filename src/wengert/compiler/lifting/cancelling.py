"""Which sums are added as they are written, since some of their terms cancel by algebra.

By algebra the correction of a compensated sum, ``(t - s) - y`` where t is ``s + y``, is 0; in floats it is what rounding
took away, and added in another order it is something else. Such sums are found by algebra: every number gets a value in
a finite field, that of a leaf or of a function at random, that of a sum, a product or a quotient by arithmetic. What is
0 by algebra is 0 there; another number is once in 10**18 times, and then a sum is a few steps longer.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from wengert.ops import BY_NAME

__all__ = ["Sums", "cancelling"]

Ints = np.ndarray[Any, np.dtype[np.int64]]
PRIME = (1 << 61) - 1  # of Mersenne's: powers of 2 are shifts
LEAST = 3  # terms: two are added in one way only
SHORT = 8  # terms of a sum at most for it to be looked into, where it is a term of another
EXPONENTS = (2.0, 3.0, 4.0)  # powers that are products
ADD, SUB, NEG, MUL, DIV, POW, SUM, DOT = [
    BY_NAME[name].code for name in ("add", "sub", "neg", "mul", "div", "pow", "sum", "dot")
]


class Sums(NamedTuple):
    """The terms of the sums of a recording, as they are written."""

    root: Ints  # of each term: its sum,
    factor: Ints  # its first factor,
    other: Ints  # the second one, -1 if there is none,
    coefficient: Any  # and 1 or -1
    inner: Any  # whether it is a sum itself, which would be dissolved in this one
    parent: Ints  # of each sum that would be: the one that it is a term of; of another itself
    top: Ints  # and the one that its terms would come to be of,
    sign: Any  # with this sign


def cancelling(codes: Ints, starts: Ints, operands: Ints, constants: Any, sums: Sums) -> Any:
    """Which sums must be added as they are written: those of a term that cancels, and those that use these.

    Args:
        codes: the operations.
        starts: where the operands of each begin.
        operands: the operands; constants stand behind the numbers.
        constants: the constants.
        sums: the terms of the sums.
    """
    n = len(codes)
    nothing = np.zeros(n, bool)
    own = np.flatnonzero(~sums.inner & np.isin(codes, (ADD, SUB, NEG, SUM, DOT))[sums.root])
    count = np.bincount(sums.top[sums.root[own]], minlength=n)
    has_minus = np.isin(codes, (SUB, NEG)).any() or (constants < 0.0).any()
    if not has_minus or count.max(initial=0) < LEAST:
        return nothing
    values = _values(codes, starts, operands, constants)
    own = own[np.argsort(sums.top[sums.root[own]], kind="stable")]  # tree by tree: that of a sum that stays
    root, factor, is_single = sums.root[own], sums.factor[own], sums.other[own] < 0
    tree, turned = sums.top[root], sums.coefficient[own] * sums.sign[root] < 0
    value = _signed(_of_terms(values, factor, sums.other[own]), turned)
    stays = np.where(is_single & (factor < n), factor, n)  # the sum that a term is, which others use too
    size = np.append(count, 0)[stays]
    carriers = np.flatnonzero((size > 0) & (size <= SHORT) & (count[tree] >= LEAST))
    size = size[carriers]
    carrier = np.repeat(carriers, size)
    place = np.arange(len(carrier)) - np.repeat(np.cumsum(size) - size, size)
    inside = _signed(value[(np.cumsum(count) - count)[factor[carrier]] + place], turned[carrier])
    entry = np.concatenate([np.arange(len(own)), carrier])
    takes_part = value == 0
    takes_part[entry[_opposite(tree[entry], np.concatenate([value, inside]), len(own))]] = True
    takes_part &= count[tree] >= LEAST
    is_zero = (values[:n] == 0) & (count[sums.top] >= LEAST)
    if not takes_part.any() and not is_zero.any():
        return nothing
    nodes = np.unique(root)
    nodes, parent = nodes.tolist(), sums.parent.tolist()
    vanishes, marked = is_zero.tolist(), nothing.tolist()
    for node in reversed(nodes):  # whatever is added to 0 takes part
        vanishes[node] = vanishes[node] or vanishes[parent[node]]
    takes_part |= np.array(vanishes)[root]
    for node in root[takes_part].tolist():
        marked[node] = True
    for node in nodes:
        marked[parent[node]] = marked[parent[node]] or marked[node]
    as_written: Any = np.array(marked)
    used = np.append(nothing, False)
    used[stays[takes_part]] = True
    return as_written | used[sums.top] & (count[sums.top] >= LEAST)


def _signed(values: Ints, turned: Any) -> Ints:
    return np.where(turned & (values > 0), PRIME - values, values)


def _of_terms(values: Ints, factor: Ints, other: Ints) -> Ints:
    """What terms of one or two factors come to."""
    made = values[factor]
    products = np.flatnonzero(other >= 0)
    pairs = zip(made[products].tolist(), values[other[products]].tolist(), strict=True)
    made[products] = [x * y % PRIME for x, y in pairs]
    return made


def _values(codes: Ints, starts: Ints, operands: Ints, constants: Any) -> Ints:
    """What each number, and each constant, is in the field."""
    n = len(codes)
    random = np.random.default_rng(1867).integers(1, PRIME, n + len(constants)).tolist()
    values: list[int] = random
    for place, x in enumerate(constants.tolist(), n):
        if np.isfinite(x) and x:  # a product with 0 is no term that cancels
            top, bottom = x.as_integer_ratio()
            values[place] = top * (1 << -(bottom.bit_length() - 1) % 61) % PRIME
    made = np.flatnonzero(np.isin(codes, (ADD, SUB, NEG, MUL, DIV, POW, SUM, DOT)) & (np.diff(starts) > 0))
    begin = starts[made]
    second = operands[np.minimum(begin + 1, len(operands) - 1)]
    columns = [column.tolist() for column in (made, codes[made], operands[begin], second, begin, starts[made + 1])]
    every = operands.tolist() if np.isin(codes, (SUM, DOT)).any() else []
    for node, code, a, b, low, high in zip(*columns, strict=True):
        if code == ADD:
            values[node] = (values[a] + values[b]) % PRIME
        elif code == MUL:
            values[node] = values[a] * values[b] % PRIME
        elif code == SUB:
            values[node] = (values[a] - values[b]) % PRIME
        elif code == NEG:
            values[node] = -values[a] % PRIME
        elif code == DIV:
            values[node] = values[a] * pow(values[b], -1, PRIME) % PRIME if values[b] else values[node]
        elif code == POW:
            if b >= n and constants[b - n] in EXPONENTS:
                values[node] = pow(values[a], int(constants[b - n]), PRIME)
        else:
            xs = [values[x] for x in every[low:high]]
            half = len(xs) // 2 if code == DOT else 0
            values[node] = sum([x * y for x, y in zip(xs[:half], xs[half:], strict=False)], sum(xs[2 * half :])) % PRIME
    return np.array(values)


def _opposite(tree: Ints, value: Ints, count: int) -> Any:
    """Which terms are in the same tree as one that is the same but for its sign. Of the two one at least is among the
    first so many: those of the trees themselves.
    """
    side = value > PRIME // 2
    size = np.where(side, PRIME - value, value)
    order = np.lexsort((size, tree))
    begins = np.append(True, (np.diff(tree[order]) != 0) | (np.diff(size[order]) != 0))
    is_own = np.arange(len(tree)) < count
    kinds = [part[order] for part in (side & is_own, ~side & is_own, side, ~side)]
    one, two, any_one, any_two = [np.logical_or.reduceat(kind, np.flatnonzero(begins)) for kind in kinds]
    found = np.zeros(len(tree), bool)
    found[order] = ((one & any_two) | (two & any_one))[np.cumsum(begins) - 1]
    return found
