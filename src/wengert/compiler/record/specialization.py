"""A specialization of a function: an array program that runs where its guards pass."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from wengert.compiler import policy
from wengert.compiler.backends import Kernel
from wengert.compiler.call import Captures, Executable, Workspace
from wengert.compiler.code import instead_of
from wengert.compiler.lift import Lifted
from wengert.compiler.record.structure import Structure
from wengert.compiler.record.uncompiled import Uncompiled
from wengert.compiler.traced import EXACT, FINITE, HOLDS, Guard

__all__ = ["Guards", "Specialization", "in_words", "lines_apart", "too_many", "too_many_kinds"]

SIGNS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
SHOWN = 3  # comparisons per line, and lines, that a message names


def in_words(how: str, left: Any, right: Any, outcome: bool) -> str:
    """Describe a comparison of names and numbers.

    >>> in_words("gt", "x", 0.0, True), in_words("is", "x", 0.5, True), in_words("within", "x", 2.0, False)
    ('x > 0 was True', 'x was 0.5', 'x was beyond 2')
    """
    x, y = _spelt(left), _spelt(right)
    if how == "is":
        return f"{x} was {'' if outcome else 'not '}{y}"
    if how == "within":
        if right == FINITE:
            return f"{x} was {'' if outcome else 'not '}finite"
        return f"{x} was {'within' if outcome else 'beyond'} {y}"
    return f"{x} {SIGNS[how]} {y} was {outcome}"


def _spelt(side: Any) -> str:
    if isinstance(side, str):
        return side
    number = float(side)
    return str(int(number)) if math.isfinite(number) and number == int(number) and abs(number) < EXACT else repr(number)


def too_many_kinds() -> str:
    """Explain why there are so many signatures, and what to write instead."""
    return (
        f"it is called with more than {policy.SIGNATURES} kinds of arguments in turn: pass numbers that change as "
        "floats or in lists of one length, and the same objects"
    )


def too_many(specializations: Sequence[Specialization]) -> str:
    """Explain why there are so many specializations, and what to write instead."""
    changed = [specialization.stale_capture() for specialization in specializations]
    several = [specialization.guards for specialization, name in zip(specializations, changed, strict=True) if not name]
    names = sorted({*changed} - {""})
    if len(several) < 2 and len(names) == 1:
        return f"it reads {names[0]}, which changes between calls: make {names[0]} an argument"
    if len(several) < 2:
        return f"it reads {' and '.join(names)}, which change between calls: make them arguments"
    return (
        f"it takes more than {policy.SPECIALIZATIONS} specializations, by comparing or taking numbers out at "
        f"{lines_apart(several)}: {instead_of(_differing(several)[:SHOWN])}"
    )


def lines_apart(several: Sequence[Guards]) -> str:
    """Name the lines at which specializations differ, those with the most outcomes first."""
    lines = _differing(several)
    return "; ".join([*map(str, lines[:SHOWN]), *([f"{len(lines) - SHOWN} other lines"] if lines[SHOWN:] else [])])


def _differing(several: Sequence[Guards]) -> list[Any]:
    tables = [_by_line(guards.guards) for guards in several]
    ways = {
        line: len({tuple(map(str, table.get(line, ()))) for table in tables})  # as text nan equals nan
        for line in dict.fromkeys(line for table in tables for line in table)
    }
    return sorted([line for line, count in ways.items() if count > 1], key=lambda line: -ways[line])


def _by_line(guards: Sequence[Guard]) -> dict[Any, list[Guard]]:
    grouped: dict[Any, list[Guard]] = {}
    for guard in guards:
        grouped.setdefault(guard.line, []).append(guard)
    return grouped


class Guards(NamedTuple):
    """The guards of a recording, and the positions of their two sides in the output "sides"; -1 for a constant."""

    guards: Sequence[Guard]
    sides: Sequence[tuple[int, int]]

    def __bool__(self) -> bool:
        return bool(self.guards)

    @property
    def lines(self) -> list[str]:
        """The lines that compare, each with its comparisons."""
        lines = []
        for line, guards in _by_line(self.guards).items():
            words = list(dict.fromkeys(guard.words for guard in guards))
            rest = len(words) - SHOWN
            more = [f"and {rest} {'other' if rest == 1 else 'others'}"] if rest > 0 else []
            lines.append(f"{line}: {', '.join(words[:SHOWN] + more)}")
        return lines

    def guards_pass(self, outputs: dict[str, Any], xp: Any) -> Any:
        """Return True where the guards pass, for a run or for each example of it, by the array library `xp`."""
        kinds: dict[tuple[str, bool, bool], list[tuple[Any, Any, bool]]] = {}
        for guard, (left, right) in zip(self.guards, self.sides, strict=True):
            pair = (guard.left if left < 0 else left), (guard.right if right < 0 else right)
            kinds.setdefault((guard.how, left < 0, right < 0), []).append((*pair, guard.outcome))
        sides = outputs["sides"]
        if not any(place > 0 for pair in self.sides for place in pair):  # a single one has no axis
            sides = sides[..., None]
        held: Any = []
        for (how, left_fixed, right_fixed), members in kinds.items():
            left, right, outcomes = map(xp.asarray, map(np.array, zip(*members, strict=True)))
            here, there = (left if left_fixed else sides[..., left]), (right if right_fixed else sides[..., right])
            held.append((HOLDS[how](here, there, xp) == outcomes).all(-1))
        return functools.reduce(operator.and_, held)


@dataclass(eq=False)
class Specialization(Executable):
    """A specialization: runs where its guards pass.

    Many fields, set once: the program, what it was recorded with, and what builds its results.
    """

    kernel: Kernel
    lifted: Lifted
    parameters: tuple[Any, ...]
    guards: Guards
    captures: Captures
    shape: tuple[int, ...] | None  # of the result; () for one number
    nodes: int
    kind: Any  # the class of the result: Value, or a plain number without derivatives
    dtype: Any  # of the array that `map` returns
    leaves: bool  # all parameters are leaves
    extents: dict[int, int]  # the number of items that each input of indices chooses from
    wraps: frozenset[int]  # the inputs whose lists have one length, so that -1 is the last item
    own: Any = None  # the positions of parameters that are Values, if others are captured floats
    structure: Structure | None = None  # of a result that is not a single number
    uncompiled: Uncompiled | None = None  # its operations, if a call with several results runs forward only

    def __post_init__(self) -> None:
        self.clause: str = ""  # the rule by which it runs
        self.began: int = 0  # when the function's run that was recorded began: Values made before are from outside
        self.bind(self, np)

    def broken(self, space: Workspace) -> str:
        """Describe the guard that failed in a run on one example."""
        numbers = np.ravel(space.output("sides"))
        for guard, sides in zip(self.guards.guards, self.guards.sides, strict=True):
            x, y = [own if n < 0 else numbers[n] for own, n in zip((guard.left, guard.right), sides, strict=True)]
            if bool(HOLDS[guard.how](x, y)) is not guard.outcome:
                words = in_words(guard.how, x, y, not guard.outcome)
                return f"the comparison at {guard.line} had another outcome: {words}"
        return "a comparison had another outcome"

    def counted(self, arrays: Sequence[Any], xp: Any) -> tuple[list[Any], Any]:
        """Return the inputs with indices wrapped and clipped to their bounds, and whether they were in bounds, for each
        example or in all; None for that if there are no indices. `xp` is the array library.
        """
        inside: Any = None
        counted = list(arrays)
        for n, extent in self.extents.items():
            x = xp.where(arrays[n] < 0, arrays[n] + extent, arrays[n]) if n in self.wraps else arrays[n]
            fits = (x >= 0) & (x < extent)
            fits = fits.reshape(len(x), -1).all(-1) if self.kernel.inputs[n].batched else fits.all()
            inside = fits if inside is None else inside & fits
            counted[n] = xp.clip(x, 0, extent - 1)
        return counted, inside
