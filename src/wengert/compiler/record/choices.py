"""Integers among the arguments that choose items of lists: each choice becomes an operand that is picked at run time.

Which operand an integer has chosen is found by runs with other integers: where they differ.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert.compiler.lift import Pick
from wengert.compiler.record.inputs import Inputs
from wengert.compiler.traced import HOLDS, Guard, Integer, Recorder, Unrecordable, values_in
from wengert.engine import Value

__all__ = ["Choices", "other_integers", "picks_of"]

EQUAL = (("eq", True), ("ne", False), ("is", True))  # guards that two numbers are equal
SPARE = 64  # sequences of steps beyond one for each integer


class Choices:
    """What integers choose in one recorded run. Indices into shorter lists are guarded.

    Attributes:
        extents: the number of items that each input of indices chooses from.
        events: each index, and the Values of the items that it chooses from.
        items: all these Values.
        chosen: their identities: a chosen item becomes an operand, even as a result.
    """

    def __init__(self, recorder: Recorder, inputs: Inputs) -> None:
        for index, items in recorder.picked:
            index.extent = min(len(items), index.extent or len(items))
        choosing = [integer for integer in inputs.integers if integer.extent]
        self.extents: dict[str, int] = {}
        for integer in choosing:
            self.extents[integer.name] = max(integer.extent, self.extents.get(integer.name, 0))
        for integer in choosing:
            if integer.extent < self.extents[integer.name]:
                recorder.guard("lt", integer, integer.extent)
        self.events: list[Any] = [(index, list(map(values_in, items))) for index, items in recorder.picked]
        self.items: list[Any] = [x for _, rows in self.events for row in rows for x in row]
        self.chosen: set[int] = {*map(id, self.items)}


def other_integers(integers: Sequence[Integer], guards: Sequence[Guard], attempt: int) -> list[list[int]]:
    """Choose other indices for some more runs, to see which integer has chosen each operand: each integer moves by
    its own sequence of steps. The guards have the same outcomes: integers that must be equal move together, and one
    that must equal a constant stays.

    Raises:
        Unrecordable: there are none.
    """
    place_of = {id(integer._node): place for place, integer in enumerate(integers)}
    sides = [
        [place_of.get(id(x), x if isinstance(x, Value) else float(x)) for x in (guard.left, guard.right)]
        for guard in guards
    ]
    between = [(g, x) for g, x in zip(guards, sides, strict=True) if not any(isinstance(y, Value) for y in x)]
    equal = [{y for y in x if type(y) is int} for g, x in between if (g.how, g.outcome) in EQUAL]
    held = {place for places in equal if len(places) == 1 for place in places}
    moving = [n for n, integer in enumerate(integers) if integer.extent > 1 and n not in held]
    moving += sorted({n for places in equal if not places.isdisjoint(moving) for n in places} - {*moving})
    extents = [integers[n].extent for n in moving]
    radix = max(2, min([extent for extent in extents if extent], default=2))
    count = next(n for n in itertools.count(1) if radix**n > len(moving))
    codes = range(1, min(radix**count, len(moving) + SPARE))
    free = [[code // radix**n % radix for n in range(count)] for code in (*codes[attempt:], *codes[:attempt])]
    others = [[int(integer.number) for integer in integers] for _ in range(count)]
    for at, (place, extent) in enumerate(zip(moving, extents, strict=True)):
        touching = [(g, x) for g, x in between if place in x and not {*moving[at + 1 :]}.intersection(x)]
        twins = [n for places in equal if place in places for n in moving[:at] if n in places]
        number = others[0][place]
        for step in free:
            for other, by in zip(others, step, strict=True):
                other[place] = other[twins[0]] if twins else (number + by) % extent
            if all(_comes_out(guard, x, other) for other in others for guard, x in touching):
                break
        else:
            raise Unrecordable("other integers take another branch")
        free = free if twins else [each for each in free if each is not step]
    return others


def _comes_out(guard: Guard, sides: list[Any], integers: Sequence[int]) -> bool:
    """Return True if a guard has the same outcome for other integers."""
    x, y = (float(integers[side] if type(side) is int else side) for side in sides)
    return bool(HOLDS[guard.how](x, y) == guard.outcome)


def picks_of(runs: Sequence[Any]) -> list[Pick]:
    """Find the operands that an integer has chosen, by runs with different integers.

    Raises:
        Unrecordable: the runs differ in another way.
    """
    graphs = [run.nodes.graph for run in runs]
    a = graphs[0]
    if any((a.codes, a.starts, a.constants) != (b.codes, b.starts, b.constants) for b in graphs):
        raise Unrecordable("the function takes another branch for other integers: declare the argument static=(name,)")
    chosen: dict[tuple[int, ...], tuple[Any, ...]] = {}  # by the operand in each run: (*candidates, index)
    for event in zip(*[run.choices.events for run in runs], strict=True):
        lists = [
            [[run.nodes.place[id(x)] for x in row] for row in rows] for run, (_, rows) in zip(runs, event, strict=True)
        ]
        if len(set(map(len, lists))) > 1:
            raise Unrecordable("the length of a list depends on an integer argument")
        first, numbers = event[0][0], [int(index.number) for index, _ in event]
        extent = runs[0].choices.extents[first.name]  # beyond the end of its own list a guard fails
        for columns in zip(*[zip(*rows, strict=False) for rows in lists], strict=False):
            here = list(zip(*columns, strict=True))  # in each run; they may have been chosen before: rows[i][j]
            candidates = [places[0] if len(set(places)) == 1 else chosen.get(places) for places in here]
            if None not in candidates:
                candidates = (candidates + candidates[-1:] * extent)[:extent]
                key = tuple([column[number] for column, number in zip(columns, numbers, strict=True)])
                chosen[key] = *candidates, runs[0].nodes.place[id(first._node)]
    operands = np.array([np.frombuffer(run.nodes.graph.operands or b"", np.int64) for run in runs])
    starts = np.frombuffer(a.starts, np.int64)
    picks = []
    for at in np.flatnonzero((operands != operands[0]).any(0)).tolist():
        pair = tuple(operands[:, at].tolist())
        if pair not in chosen:
            raise Unrecordable("an integer argument changes more than which item of a list is read")
        user = int(np.searchsorted(starts, at, "right")) - 1
        *candidates, index = chosen[pair]
        picks.append(Pick(user, at - int(starts[user]), index, tuple(candidates)))
    outs = [[run.nodes.place[id(x)] for x in run.results] for run in runs]
    asked = [
        [
            (str(g.without_values()), *side)
            for g, side in zip(run.comparisons.guards, run.comparisons.sides, strict=True)
        ]
        for run in runs
    ]
    if any(out != outs[0] for out in outs) or any(guards != asked[0] for guards in asked):
        raise Unrecordable("an integer argument chooses the result itself, or what is compared")
    return picks
