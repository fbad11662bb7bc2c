"""Finds the sums that must be added in their written order, because some of their terms cancel by algebra.

By algebra the correction of a compensated sum, ``(t - s) - y`` where t is ``s + y``, is 0; in floats it is the rounding
error, and another order of addition would give another value. To find such sums, each number is evaluated in a finite
field: leaves and functions get random values, sums, products and quotients are computed. What is 0 by algebra is 0
there; anything else is 0 with probability 10**-18, and then a sum takes a few more steps.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from wengert.compiler.ir import concat_ranges
from wengert.compiler.lift.in_order import PRIME, evaluate, multiply
from wengert.ops import BY_NAME

__all__ = ["IS_SUM", "Sums", "cancelling"]

Ints = np.ndarray[Any, np.dtype[np.int64]]
BITS = PRIME.bit_length()
LEAST = 3  # terms: two can be added in one order only
SHORT = 8  # the most terms of an inner sum that are compared one by one with those of the outer sum
MIX = np.int64(0x5851F42D4C957F2D)  # Knuth's MMIX generator: hashes a number and its sum
ROUNDS = 8  # of propagation along edges, after which it is faster to mark everything
CODES = [BY_NAME[name].code for name in ("add", "sub", "neg", "sum", "dot", "mul", "div", "pow")]
IS_SUM = np.isin(np.arange(1 << 16), CODES[:5])  # by an operation's code
IS_PRODUCT = np.isin(np.arange(1 << 16), CODES[5:])


class Sums(NamedTuple):
    """The terms of the sums of a recording, in their written order."""

    # for each term:
    root: Ints  # its sum
    factor: Ints  # its first factor
    other: Ints  # its second factor, or -1
    coefficient: Any  # 1 or -1
    inner: Any  # whether it is a sum that flattening would merge into this one
    # for each sum:
    parent: Ints  # the sum that it would be merged into, or itself
    top: Ints  # the sum that its terms would end up in
    sign: Any  # their sign there


class Addends(NamedTuple):
    """The terms that are not inner sums."""

    root: Ints  # the sum in which it is written
    top: Ints  # the sum that it would end up in
    factor: Ints
    other: Ints
    is_subtracted: Any  # whether it is subtracted there


def cancelling(codes: Ints, starts: Ints, operands: Ints, constants: Any, sums: Sums) -> Any:
    """Return for each number whether it is a sum that must keep its written order: one with terms that cancel, or one
    that uses such a sum.

    Args:
        codes: the operations.
        starts: where the operands of each begin.
        operands: the operands; constants are numbered after the instructions.
        constants: the constants.
        sums: the terms of the sums.
    """
    n = len(codes)
    own = np.flatnonzero(~sums.inner & IS_SUM[codes][sums.root])
    root, top = sums.root[own], sums.top[sums.root[own]]
    terms = Addends(root, top, sums.factor[own], sums.other[own], sums.coefficient[own] * sums.sign[root] < 0)
    is_long = np.bincount(top, minlength=n) >= LEAST
    needed = _needed(codes, starts, operands, constants, terms, is_long)[sums.top]
    if not needed.any():
        return needed
    rows = np.flatnonzero(needed[root])
    rows = rows[np.argsort(top[rows], kind="stable")]  # sum by sum
    terms = Addends(*[column[rows] for column in terms])
    values = _evaluate(codes, starts, operands, constants, needed)
    value = _signed(_evaluate_terms(values, terms.factor, terms.other), terms.is_subtracted)
    cancels = ((value == 0) | _has_opposite(terms, value, values)) & is_long[terms.top]
    adds = np.flatnonzero(IS_SUM[codes] & needed & is_long[sums.top] & (np.diff(starts) > 1))
    term_keys = _magnitude(value) ^ terms.top * MIX
    is_less = np.zeros(n, bool)  # whether a sum equals 0, or a term next to it, so that other terms cancel
    is_less[adds] = (values[adds] == 0) | _is_in(_magnitude(values[adds]) ^ sums.top[adds] * MIX, term_keys)
    if not cancels.any() and not is_less.any():
        return is_less
    nodes, parent = np.flatnonzero(IS_SUM[codes] & needed).tolist(), sums.parent.tolist()
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
    is_used[_number_of(terms, n)[cancels]] = True
    return np.array(marked) | is_used[sums.top] & is_long[sums.top]


def _needed(codes: Ints, starts: Ints, operands: Ints, constants: Any, terms: Addends, is_long: Any) -> Any:
    """Return the numbers to evaluate: what long sums with a subtraction, in them or in their terms, are made of.

    Most programs have few.
    """
    n = len(codes)
    owner = np.repeat(np.arange(n), np.diff(starts))
    product, second = IS_PRODUCT[codes][owner], np.flatnonzero(terms.other >= 0)
    users = np.concatenate([terms.top, terms.top[second], owner[product]])
    used = np.concatenate([terms.factor, terms.other[second], operands[product]])
    marks = np.append(np.zeros(n, bool), constants < 0.0)
    marks[terms.top[terms.is_subtracted]] = True
    _propagate(marks, used, users)
    marks[:n] &= is_long
    marks[n:] = False
    if marks.any():
        _propagate(marks, users, used)
    return marks


def _propagate(marks: Any, of: Ints, to: Ints) -> None:
    """Propagate marks along edges; mark everything if that takes many rounds."""
    for _ in range(ROUNDS):
        before = np.count_nonzero(marks)
        marks[to[marks[of]]] = True
        if np.count_nonzero(marks) == before:
            return
    marks[:] = True


def _number_of(terms: Addends, n: int) -> Ints:
    """Return the number that each term is; n for products and constants."""
    return np.where((terms.other < 0) & (terms.factor < n), terms.factor, n)


def _magnitude(values: Ints) -> Ints:
    """Map a value and its negative to the same value."""
    return np.minimum(values, PRIME - values)


def _signed(values: Ints, negative: Any) -> Ints:
    return np.where(negative & (values > 0), PRIME - values, values)


def _evaluate_terms(values: Ints, factor: Ints, other: Ints) -> Ints:
    result = values[factor]
    products = np.flatnonzero(other >= 0)
    product = result[products]
    multiply(product, values[other[products]])
    result[products] = product
    return result


def _evaluate(codes: Ints, starts: Ints, operands: Ints, constants: Any, needed: Any) -> Ints:
    """Evaluate each number in `needed`, and each constant, in the field."""
    n = len(codes)
    values = np.random.default_rng(1867).integers(1, PRIME, n + len(constants))
    exact = np.flatnonzero(np.isfinite(constants) & (constants != 0.0))  # 0 stays random: 0 * x does not cancel
    values[n + exact] = _of_float(constants[exact])
    nodes = np.flatnonzero((IS_SUM | IS_PRODUCT)[codes] & (np.diff(starts) > 0) & needed)
    evaluate(nodes, codes, starts, operands, constants, values)
    return values


def _of_float(x: Any) -> Ints:
    """Return finite floats in the field, where a product with a power of 2 moves the bits around."""
    fraction, exponent = np.frexp(np.abs(x))
    whole, shift = (fraction * 2.0**53).astype(np.int64), (exponent - 53) % BITS
    high = whole >> (BITS - shift)
    return _signed(((whole - (high << (BITS - shift))) << shift) + high, x < 0.0)


def _is_in(values: Ints, those: Ints) -> Any:
    """Return for each value whether it is one of those, at least one; NumPy's `isin` takes four times as long."""
    those = np.sort(those)
    return those[np.minimum(np.searchsorted(those, values), len(those) - 1)] == values


def _has_opposite(terms: Addends, value: Ints, values: Ints) -> Any:
    """Return the terms that cancel another, or a term of another that stays unmerged: in ``(t - s) - y``, one of t."""
    count = np.append(np.bincount(terms.top, minlength=len(values)), 0)
    size = count[_number_of(terms, len(values))]
    carriers = np.flatnonzero((size > 0) & (size <= SHORT))
    size = size[carriers]
    carrier = np.repeat(carriers, size)
    inside = value[concat_ranges((np.cumsum(count) - count)[terms.factor[carriers]], size)]
    entry = np.concatenate([np.arange(len(value)), carrier])
    top, value = terms.top[entry], np.concatenate([value, _signed(inside, terms.is_subtracted[carrier])])
    is_own, is_negative = np.arange(len(entry)) < len(terms.top), value > PRIME // 2
    key = _magnitude(value) ^ top * MIX  # of those that may cancel
    order = np.argsort(key)
    begins = np.append(True, np.diff(key[order]) != 0)
    kinds = [part[order] for part in (is_negative & is_own, ~is_negative & is_own, is_negative, ~is_negative)]
    one, two, any_one, any_two = [np.logical_or.reduceat(kind, np.flatnonzero(begins)) for kind in kinds]
    has_opposite = np.zeros(len(terms.top), bool)
    both = ((one & any_two) | (two & any_one))[np.cumsum(begins) - 1]
    has_opposite[entry[order[both]]] = True
    return has_opposite
