"""Splits a group of sums into parts of one kind of terms, and finds the matrix product among them.

This happens before any number has a place: only the rows of the numbers count.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from wengert.compiler.ir import Grid, product_grid
from wengert.compiler.lift.flatten import FlatGraph, Group
from wengert.compiler.lift.simplify import CONST

__all__ = ["SHORT", "SumPlan", "Terms", "plan_of", "short_sum"]

Ints = np.ndarray[Any, np.dtype[np.int64]]
IN_LOOP = 6  # the most terms of a single sum that are written out within a loop
SHORT = 3  # the most terms of a sum that are written out; longer sums are reductions over an axis


@dataclass
class Terms:
    """Terms of one kind, for each sum of a group: rows of factors."""

    left: Ints
    right: Ints | None
    coefficient: Any
    mask: Any = None  # the terms that exist, if sums of different lengths share an array
    left_mask: Any = None  # the same after `_complete` has lengthened rows
    right_mask: Any = None


@dataclass
class SumPlan:
    group: Group
    parts: list[Terms]
    grid: Grid | None = None  # of the matrix product
    product: Terms | None = None  # the part that is a matrix product


def short_sum(flat: FlatGraph, group: Group, *, in_loop: bool = False) -> list[tuple[int, int, float]]:
    """Return the terms of a group's only sum, by kind: two factors, the second -1 if there is none, and a coefficient.

    Return no terms if writing them out is not enough: for a product of vectors, or many terms. Within a loop the limit
    is higher, because a few numbers are multiplied faster than vectors of them.
    """
    first, last = int(flat.first[group.nodes[0]]), int(flat.last[group.nodes[0]])
    if len(group.nodes) > 1 or last - first > (IN_LOOP if in_loop else SHORT):
        return []
    columns = [column[first:last].tolist() for column in (flat.factor, flat.other, flat.coefficient)]
    terms = list(zip(*columns, strict=True))
    kinds = [_kind(flat, *term) for term in terms]
    if not in_loop and any(
        kinds.count(kind) > 1 for kind, (_, other, _) in zip(kinds, terms, strict=True) if other >= 0
    ):
        return []
    return [terms[n] for n in sorted(range(len(terms)), key=kinds.__getitem__)]


def _kind(flat: FlatGraph, factor: Any, other: Any, coefficient: Any) -> Any:
    """Number the kinds of terms: the sources of the factors, and the sign."""
    second = np.where(other >= 0, flat.source[np.maximum(other, 0)] + 1, 0)
    return flat.source[factor] * 12 + second * 2 + (coefficient < 0)


def plan_of(flat: FlatGraph, group: Group) -> SumPlan:
    """Split a group of sums into parts, and find the matrix product among them."""
    nodes = group.nodes
    count = flat.last[nodes] - flat.first[nodes]
    width = int(count.max())
    terms = flat.first[nodes][:, None] + np.arange(width)
    if count.min() < width:
        mask = np.arange(width) < count[:, None]
        parts = [_part(flat, np.where(mask, terms, terms[:, :1]), mask)]
    else:
        kind = _kind(flat, flat.factor[terms], flat.other[terms], flat.coefficient[terms])
        order = np.argsort(kind, axis=1, kind="stable")
        terms, kind = np.take_along_axis(terms, order, 1), np.take_along_axis(kind, order, 1)[0]
        parts = [_part(flat, columns) for columns in np.split(terms, np.flatnonzero(np.diff(kind)) + 1, axis=1)]
    plan = SumPlan(group, parts)
    products = [part for part in parts if part.right is not None and part.left.shape[1] > 1]
    for part in sorted(products, key=lambda part: -part.left.shape[1]):
        if part.mask is not None:
            _complete(part)
        if _is_product(plan, part, part.left, part.right) or _is_product(plan, part, *_sorted(flat, part)):
            plan.product = part
            break
    return plan


def _part(flat: FlatGraph, terms: Ints, mask: Any = None) -> Terms:
    right = flat.other[terms]
    return Terms(flat.factor[terms], None if (right < 0).all() else right, flat.coefficient[terms], mask)


def _is_product(plan: SumPlan, part: Terms, left: Any, right: Any, coefficient: Any = None) -> bool:
    """Return True if rows of factors are a matrix product whose cells are single sums, and set the plan's grid."""
    if left is None:
        return False
    if part.mask is not None:
        plan.grid = product_grid(np.where(part.left_mask, left, -1), np.where(part.right_mask, right, -1))
    else:
        plan.grid = product_grid(left, right)
    if plan.grid is None or not _one_sum_a_cell(plan.grid, plan.parts):
        plan.grid = None
        return False
    part.left, part.right = left, right
    part.coefficient = part.coefficient if coefficient is None else coefficient
    return True


def _sorted(flat: FlatGraph, part: Terms) -> tuple[Any, Any, Any]:
    """Sort the terms of each row by their second factors, as programs write them in any order."""
    if part.mask is not None or len(part.left) == 1 or part.right is None:
        return None, None, None
    key = part.left if (flat.source[part.right] == CONST).any() else part.right
    order = np.argsort(key, axis=1, kind="stable")
    left, right, coefficient = (np.take_along_axis(x, order, 1) for x in (part.left, part.right, part.coefficient))
    return left, right, coefficient


def _complete(part: Terms) -> None:
    """Lengthen rows that begin with the same number to the longest of them; masks keep track of the real terms."""
    count = part.mask.sum(1)
    for side in ("left", "right"):
        rows = getattr(part, side)
        longest: dict[int, int] = {}
        for row in np.argsort(count, kind="stable").tolist():
            longest[int(rows[row, 0])] = row
        best = np.array([longest[int(first)] for first in rows[:, 0]])
        whole = bool(np.where(part.mask, rows == rows[best], True).all())
        setattr(part, side, rows[best] if whole else rows)
        setattr(part, f"{side}_mask", part.mask[best] if whole else part.mask)


def _one_sum_a_cell(grid: Grid, parts: list[Terms]) -> bool:
    """Return True if sums that share a cell, because their products are equal, are equal."""
    keeper = grid.rows.reshape(-1)[grid.cell]
    if np.array_equal(keeper, np.arange(len(keeper))):
        return True
    rows = [x for part in parts for x in (part.left, part.right, part.coefficient, part.mask) if x is not None]
    return all(np.array_equal(x[keeper], x) for x in rows)
