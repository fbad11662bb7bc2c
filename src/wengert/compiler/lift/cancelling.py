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


class Addends(NamedTuple):
    """Addends that are no sums themselves, or sums that others use too."""

    root: Ints  # of each: the sum in which it is written,
    top: Ints  # the one that it would come to be a term of,
    factor: Ints  # its factors
    other: Ints
    turned: Any  # and whether it is taken away there


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
    own = np.flatnonzero(~sums.inner & IS_SUM[codes][sums.root])
    root, top = sums.root[own], sums.top[sums.root[own]]
    terms = Addends(root, top, sums.factor[own], sums.other[own], sums.coefficient[own] * sums.sign[root] < 0)
    is_long = np.bincount(top, minlength=n) >= LEAST
    asked = _asked(codes, starts, operands, constants, terms, is_long)[sums.top]
    if not asked.any():
        return asked
    kept = np.flatnonzero(asked[root])
    kept = kept[np.argsort(top[kept], kind="stable")]  # sum by sum
    terms = Addends(*[column[kept] for column in terms])
    values = _values(codes, starts, operands, constants, asked)
    value = _signed(_of_terms(values, terms.factor, terms.other), terms.turned)
    cancels = ((value == 0) | _opposite(terms, value, values)) & is_long[terms.top]
    adds = np.flatnonzero(IS_SUM[codes] & asked & is_long[sums.top] & (np.diff(starts) > 1))
    known = _size(value) ^ terms.top * MIX
    is_less = np.zeros(n, bool)  # whether a sum is 0, or one of the terms that it is added to: the others cancel
    is_less[adds] = (values[adds] == 0) | np.isin(_size(values[adds]) ^ sums.top[adds] * MIX, known)
    if not cancels.any() and not is_less.any():
        return is_less
    nodes, parent = np.flatnonzero(IS_SUM[codes] & asked).tolist(), sums.parent.tolist()
    vanishes: list[bool] = is_less.tolist()
    for node in reversed(nodes):
        vanishes[node] = vanishes[node] or vanishes[parent[node]]
    cancels |= np.array(vanishes)[terms.root]
    marks = np.zeros(n, bool)
    marks[terms.root[cancels]] = True
    marked: list[bool] = marks.tolist()
    for node in nodes:
        marked[parent[node]] = marked[parent[node]] or marked[node]
    is_used = np.zeros(n + 1, bool)
    is_used[_standing(terms, n)[cancels]] = True
    return np.array(marked) | is_used[sums.top] & is_long[sums.top]


def _asked(codes: Ints, starts: Ints, operands: Ints, constants: Any, terms: Addends, is_long: Any) -> Any:
    """The numbers that have to be known to say what cancels: those that long sums are made of in which, or in whose
    terms, something is taken away. Most programs have few.
    """
    n = len(codes)
    owner = np.repeat(np.arange(n), np.diff(starts))
    product, second = IS_PRODUCT[codes][owner], np.flatnonzero(terms.other >= 0)
    users = np.concatenate([terms.top, terms.top[second], owner[product]])
    used = np.concatenate([terms.factor, terms.other[second], operands[product]])
    marks = np.append(np.zeros(n, bool), constants < 0.0)
    marks[terms.top[terms.turned]] = True
    _spread(marks, used, users)
    marks[:n] &= is_long
    marks[n:] = False
    if marks.any():
        _spread(marks, users, used)
    return marks


def _spread(marks: Any, of: Ints, to: Ints) -> None:
    """Mark what something leads to that is marked; all, if that takes long to tell."""
    for _ in range(ROUNDS):
        before = np.count_nonzero(marks)
        marks[to[marks[of]]] = True
        if np.count_nonzero(marks) == before:
            return
    marks[:] = True


def _standing(terms: Addends, n: int) -> Ints:
    """The number that each term is; n for a product and a constant."""
    return np.where((terms.other < 0) & (terms.factor < n), terms.factor, n)


def _size(values: Ints) -> Ints:
    """The same for a number and what is taken away with it."""
    return np.minimum(values, PRIME - values)


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


def _opposite(terms: Addends, value: Ints, values: Ints) -> Any:
    """Which terms cancel another of the same sum, or one of those of another that stays a term of it: in
    ``(t - s) - y``, s is one of those of t.
    """
    count = np.append(np.bincount(terms.top, minlength=len(values)), 0)
    size = count[_standing(terms, len(values))]
    carriers = np.flatnonzero((size > 0) & (size <= SHORT))
    size = size[carriers]
    carrier = np.repeat(carriers, size)
    place = np.arange(len(carrier)) - np.repeat(np.cumsum(size) - size, size)
    inside = value[(np.cumsum(count) - count)[terms.factor[carrier]] + place]
    entry = np.concatenate([np.arange(len(value)), carrier])
    top, value = terms.top[entry], np.concatenate([value, _signed(inside, terms.turned[carrier])])
    is_own, turned, size = np.arange(len(entry)) < len(terms.top), value > PRIME // 2, _size(value)
    order = np.lexsort((size, top))
    begins = np.append(True, (np.diff(top[order]) != 0) | (np.diff(size[order]) != 0))
    kinds = [part[order] for part in (turned & is_own, ~turned & is_own, turned, ~turned)]
    one, two, any_one, any_two = [np.logical_or.reduceat(kind, np.flatnonzero(begins)) for kind in kinds]
    found = np.zeros(len(terms.top), bool)
    both = ((one & any_two) | (two & any_one))[np.cumsum(begins) - 1]
    found[entry[order[both]]] = True
    return found
