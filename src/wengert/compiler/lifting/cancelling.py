"""Which sums are added as they are written, since some of their terms cancel by algebra.

By algebra the correction of a compensated sum, ``(t - s) - y`` where t is ``s + y``, is 0; in floats it is what
rounding took away, and added in another order it is something else. Such sums are found by algebra: every number gets a
value in a finite field, that of a leaf or of a function at random, that of a sum, a product or a quotient by
arithmetic. What is 0 by algebra is 0 there; another number is once in 10**18 times, and then a sum is a few steps
longer.
"""

from __future__ import annotations

from math import isfinite
from typing import Any, NamedTuple

import numpy as np

from wengert.ops import BY_NAME

__all__ = ["IS_SUM", "Sums", "cancelling"]

Ints = np.ndarray[Any, np.dtype[np.int64]]
PRIME = (1 << 61) - 1  # of Mersenne's: powers of 2 are shifts
LEAST = 3  # terms: two are added in one way only
SHORT = 8  # terms of a sum at most for it to be looked into, where it is a term of another
MIX = np.int64(0x5851F42D4C957F2D)  # of Knuth's MMIX generator: it tells the same number in different sums apart
ROUNDS = 8  # of steps from number to number, after which it is quicker to look at all of them
EXPONENTS = (2.0, 3.0, 4.0)  # powers that are products
CODES = ADD, SUB, NEG, SUM, DOT, MUL, DIV, POW = [
    BY_NAME[name].code for name in ("add", "sub", "neg", "sum", "dot", "mul", "div", "pow")
]
IS_SUM = np.isin(np.arange(1 << 16), CODES[:5])  # by an operation's code
IS_PRODUCT = np.isin(np.arange(1 << 16), CODES[5:])


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
    own = np.flatnonzero(~sums.inner & IS_SUM[codes][sums.root])
    root, factor, other = sums.root[own], sums.factor[own], sums.other[own]
    tree, turned = sums.top[root], sums.coefficient[own] * sums.sign[root] < 0
    count = np.bincount(tree, minlength=n)
    product = IS_PRODUCT[codes][owner := np.repeat(np.arange(n), np.diff(starts))]
    second = np.flatnonzero(other >= 0)
    users = np.concatenate([tree, tree[second], owner[product]])
    used = np.concatenate([factor, other[second], operands[product]])
    has_minus = np.append(nothing, constants < 0.0)
    has_minus[tree[turned]] = True
    _spread(has_minus, used, users)
    asked = np.append((count >= LEAST) & has_minus[:n], constants != constants)
    if not asked.any():
        return nothing
    _spread(asked, users, used)
    kept = np.flatnonzero(asked[tree])
    kept = kept[np.argsort(tree[kept], kind="stable")]  # tree by tree: that of a sum that stays
    root, factor, other, tree, turned = root[kept], factor[kept], other[kept], tree[kept], turned[kept]
    count = np.bincount(tree, minlength=n)
    values = _values(codes, starts, operands, constants, asked[sums.top])
    value = _signed(_of_terms(values, factor, other), turned)
    stays = np.where((other < 0) & (factor < n), factor, n)  # the sum that a term is, which others use too
    size = np.append(count, 0)[stays]
    carriers = np.flatnonzero((size > 0) & (size <= SHORT) & (count[tree] >= LEAST))
    size = size[carriers]
    carrier = np.repeat(carriers, size)
    place = np.arange(len(carrier)) - np.repeat(np.cumsum(size) - size, size)
    inside = _signed(value[(np.cumsum(count) - count)[factor[carrier]] + place], turned[carrier])
    entry = np.concatenate([np.arange(len(root)), carrier])
    takes_part = value == 0
    takes_part[entry[_opposite(tree[entry], np.concatenate([value, inside]), len(root))]] = True
    takes_part &= count[tree] >= LEAST
    adds = np.flatnonzero(IS_SUM[codes] & (count[sums.top] >= LEAST) & (np.diff(starts) > 1))
    size = np.minimum(values[adds], PRIME - values[adds])  # that of 0, or of a term of the same sum: the others cancel
    known = np.minimum(value, PRIME - value) ^ tree * MIX
    is_less = nothing.copy()
    is_less[adds] = (values[adds] == 0) | np.isin(size ^ sums.top[adds] * MIX, known)
    if not takes_part.any() and not is_less.any():
        return nothing
    nodes, parent = np.flatnonzero(IS_SUM[codes] & asked[sums.top]).tolist(), sums.parent.tolist()
    vanishes: list[bool] = is_less.tolist()
    for node in reversed(nodes):  # whatever is added to it takes part
        vanishes[node] = vanishes[node] or vanishes[parent[node]]
    takes_part |= np.array(vanishes)[root]
    as_written = nothing.copy()
    as_written[root[takes_part]] = True
    marked: list[bool] = as_written.tolist()
    for node in nodes:
        marked[parent[node]] = marked[parent[node]] or marked[node]
    used_there = np.append(nothing, False)
    used_there[stays[takes_part]] = True
    return np.array(marked) | used_there[sums.top] & (count[sums.top] >= LEAST)


def _spread(marks: Any, of: Ints, to: Ints) -> None:
    """Mark what something leads to that is marked; all, if that takes long to tell."""
    for _ in range(ROUNDS):
        before = np.count_nonzero(marks)
        marks[to[marks[of]]] = True
        if np.count_nonzero(marks) == before:
            return
    marks[:] = True


def _signed(values: Ints, turned: Any) -> Ints:
    return np.where(turned & (values > 0), PRIME - values, values)


def _of_terms(values: Ints, factor: Ints, other: Ints) -> Ints:
    """What terms of one or two factors come to."""
    made = values[factor]
    products = np.flatnonzero(other >= 0)
    pairs = zip(made[products].tolist(), values[other[products]].tolist(), strict=True)
    made[products] = [x * y % PRIME for x, y in pairs]
    return made


def _values(codes: Ints, starts: Ints, operands: Ints, constants: Any, asked: Any) -> Ints:
    """What each number that is asked for, and each constant, is in the field."""
    n = len(codes)
    numbers = np.random.default_rng(1867).integers(1, PRIME, n + len(constants))
    made = np.flatnonzero((IS_SUM | IS_PRODUCT)[codes] & (np.diff(starts) > 0) & asked)
    count = np.diff(starts)[made]
    at = np.repeat(starts[made] - np.cumsum(count) + count, count) + np.arange(count.sum())
    known, number = np.unique(np.concatenate([made, operands[at]]), return_inverse=True)
    values: list[int] = numbers[known].tolist()
    for k in np.flatnonzero(known >= n).tolist():
        x = float(constants[known[k] - n])
        if isfinite(x) and x:  # a product with 0 is no term that cancels
            top, bottom = x.as_integer_ratio()
            values[k] = top * (1 << -(bottom.bit_length() - 1) % 61) % PRIME
    place: list[int] = number.reshape(-1).tolist()
    end = len(made)
    for node, code, n_operands in zip(place, codes[made].tolist(), count.tolist(), strict=False):
        xs = place[end : end + n_operands]
        end += n_operands
        if code == ADD:
            values[node] = (values[xs[0]] + values[xs[1]]) % PRIME
        elif code == MUL:
            values[node] = values[xs[0]] * values[xs[1]] % PRIME
        elif code == SUB:
            values[node] = (values[xs[0]] - values[xs[1]]) % PRIME
        elif code == NEG:
            values[node] = -values[xs[0]] % PRIME
        elif code == DIV:
            values[node] = values[xs[0]] * pow(values[xs[1]], -1, PRIME) % PRIME if values[xs[1]] else values[node]
        elif code == POW:
            power = constants[known[xs[1]] - n] if known[xs[1]] >= n else 0.0
            values[node] = pow(values[xs[0]], int(power), PRIME) if power in EXPONENTS else values[node]
        else:
            half = n_operands // 2 if code == DOT else 0
            pairs = zip(xs[:half], xs[half : 2 * half], strict=True)
            values[node] = sum([values[x] * values[y] for x, y in pairs], sum([values[x] for x in xs[2 * half :]]))
            values[node] %= PRIME
    numbers[known] = values
    return numbers


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
