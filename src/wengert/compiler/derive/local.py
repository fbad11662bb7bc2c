"""Finds arrays whose cells have tangents in few of many directions, as the terms of a sum that read few inputs each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert.compiler.derive.sparsity import PatternSweep, edges_of
from wengert.compiler.ir import Array, Assemble, Compute, Loop, Program, components

__all__ = ["local_directions"]

FEW = 4  # cells have directions of their own if there are at least this many times as many in all
ROUNDS = 16  # of spreading labels, before the cells are taken to depend on each other all along
Steps = Sequence[Compute | Assemble]


def local_directions(
    program: Program, seeds: dict[int, Any], wide: set[int], results: Sequence[Array]
) -> dict[int, Any]:
    """Return for some arrays the directions in which each cell may have a tangent: a table with a row for each cell.

    Cells that are computed from each other have the same directions, those of all of them. The rows of arrays that are
    computed from each other have one length: shorter ones are filled up with directions in which the tangent is 0.
    Where all directions are needed, only an Assemble may read such a cell.

    Args:
        program: the program.
        seeds: by the id of each array that begins with a direction its numbers, in the last axis by direction.
        wide: the ids of the arrays that depend on the direction.
        results: arrays that keep all directions, besides the outputs.
    """
    count = next(iter(seeds.values())).shape[-1]
    is_each_one = all(((x != 0).sum(-1) <= 1).all() for x in seeds.values())
    if count < 2 * FEW or not is_each_one or any(array.batched for array in program.arrays):
        return {}
    steps = [step for step in program.steps if not isinstance(step, Loop)]
    if any(id(array) in wide for step in program.steps if isinstance(step, Loop) for array in step.makes):
        return {}
    chosen = _chosen(steps, wide, {id(array) for array in (*program.outputs.values(), *results)})
    labels = _labels(steps, chosen)
    if not labels:
        return {}
    first = [array for array in program.arrays if id(array) in seeds]
    direction = np.concatenate([(seeds[id(array)] != 0).reshape(array.size, -1).argmax(-1) for array in first])
    sweep = PatternSweep.over(first)
    for step in steps:
        sweep.step(step)
    tables = {}
    for group in _groups(steps, chosen):
        own = np.concatenate([labels[id(array)] for array in group])
        seen = np.zeros((own.max() + 1, count), bool)
        for array in group:
            pattern = sweep.rows_of(array)
            seen[labels[id(array)][pattern.rows], direction[pattern.indices]] = True
        most = max(int(seen.sum(1).max()), 2)
        if FEW * most <= count:
            table = np.argsort(~seen, axis=1, kind="stable")[:, :most]
            tables.update({id(array): table[labels[id(array)]] for array in group})
    return tables


def _chosen(steps: Steps, wide: set[int], whole: set[int]) -> dict[int, Array]:
    """Return by id the arrays that need not have all directions, as no reader but an Assemble needs them."""
    indexed: set[int] = set()  # no access has an index and a table of directions
    for step in steps:
        if step.chosen_by:
            indexed.update(map(id, [*step.makes, *(step.reads if isinstance(step, Assemble) else ())]))
    chosen = {id(step.out): step.out for step in steps if id(step.out) in wide - whole - indexed}
    for step in reversed(steps):
        if isinstance(step, Assemble):
            cells = np.concatenate([access.places(part.shape) for access, part in step.parts])
            if len(np.unique(cells)) < len(cells):  # sums of terms
                chosen.pop(id(step.out), None)
        elif id(step.out) not in chosen:
            for array in step.reads:
                chosen.pop(id(array), None)
    for step in steps:
        if isinstance(step, Assemble) and any(id(part) in wide and id(part) not in chosen for part in step.reads):
            chosen.pop(id(step.out), None)
    return chosen


def _labels(steps: Steps, chosen: dict[int, Array]) -> dict[int, Any]:
    """Return for each of these arrays a label for each cell: cells that are computed from each other have the same.

    Nothing, if it takes long to find out.
    """
    ends = np.cumsum([0, *[array.size for array in chosen.values()]])
    start = dict(zip(chosen, ends.tolist(), strict=False))
    edges = [
        (start[id(step.out)] + owners, start[id(array)] + cells)
        for step in steps
        if id(step.out) in chosen
        for owners, cells, array in edges_of(step, chosen)
    ]
    labels = components(edges, ends[-1], ROUNDS)
    if labels is None or not chosen:
        return {}
    parts = np.split(np.unique(labels, return_inverse=True)[1], ends[1:-1])
    return dict(zip(chosen, parts, strict=True))


def _groups(steps: Steps, chosen: dict[int, Array]) -> list[list[Array]]:
    """Return these arrays by groups of those that are computed from each other."""
    groups: dict[int, list[Array]] = {}
    for step in steps:
        if id(step.out) in chosen:
            joined = {id(groups[id(x)]): groups[id(x)] for x in step.reads if id(x) in groups}
            group = [step.out, *[array for each in joined.values() for array in each]]
            groups.update({id(array): group for array in group})
    return list({id(group): group for group in groups.values()}.values())
