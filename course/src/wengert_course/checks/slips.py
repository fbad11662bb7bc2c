"""The slips that engines are written with, and what each changes in the model of an engine.

A slip is told by what it makes wrong: the model is given the slip, runs the same trial, and if it then gives the
numbers that were seen, the slip has been found. One that raises is told by its error.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from wengert_course.checks.rules import RULES, SLOPES, TEXTS, VALUES, plain

__all__ = ["ERRORS", "OF_TRIALS", "OTHERS", "WHOLE", "Change", "Slip", "candidates", "of_error"]

Change = Mapping[str, Any]
"""Operation -> fields of its Rule, or a field of an Engine -> its value."""


class Slip(NamedTuple):
    name: str  # for programs: a word or two, of those in docs/checking.md
    says: str  # what is wrong; {op} stands for the operation
    write: tuple[str, ...] = ()  # what to write instead, for `rules.advice`
    changes: tuple[Change, ...] = ()  # what it does to an engine: several, where it depends on the order of a set


REFLECTED = {"rsub": ("3 - a", "a - 3"), "rdiv": ("4 / a", "a / 4"), "rpow": ("2 ** a", "a ** 2")}
BINARY = ("add", "sub", "mul", "div", "powv")


def _of(op: str, name: str, says: str, *write: str, **fields: Any) -> Slip:
    return Slip(name, f"{{op}}: {says}", write or ("{rule}",), ({op: fields},))


def _local(op: str) -> Iterator[Slip]:
    right = RULES[op].slopes
    for name, says, *slopes in SLOPES.get(op, []):
        alone = {"above": "1"} if "g" in slopes[0].split() else {}
        yield _of(op, name, says, slopes=tuple(slopes), **alone)
    for says, value, *slopes in VALUES.get(op, []):
        for those in (tuple(slopes), right):
            yield _of(op, "wrong value", says, "{new}", value=value, slopes=those)
    for name, says, write, fields in [*(TEXTS["of_two"] if op in BINARY else []), *TEXTS["of_any"]]:
        given = dict(fields)
        if "slopes" in given:
            parts = given["slopes"][: len(right)]
            given["slopes"] = tuple([part.format(a=right[0], b=right[-1]) for part in parts])
        if given.get("slopes") != right:  # of a sum, factors that are exchanged are the same
            yield _of(op, name, says, *write, **given)


def _slip(name: str, says: str, write: Sequence[str] = (), changes: Sequence[Change] = ()) -> Slip:
    return Slip(name, says, tuple(write), tuple(changes))


WHOLE = tuple([_slip(*row) for row in TEXTS["whole"]])
CALLS = tuple([_slip(*row) for row in TEXTS["calls"]])
OF_TRIALS = {trial: [_slip(*row) for row in rows] for trial, rows in TEXTS["of_trials"].items()}
"""Slips that are looked for in one trial alone."""

OTHERS = {trial: _slip(*row) for trial, row in TEXTS["others"].items()}
"""What is wrong in a trial whose numbers no slip gives."""

ERRORS = tuple([(kind, holds, _slip(*row)) for kind, holds, *row in TEXTS["errors"]])
"""The kind of an error, what its text holds, and the slip that it shows; the first that fits."""


def candidates(op: str, kind: str, trial: str = "") -> list[Slip]:
    """The slips that a trial of this operation can show, the likeliest first."""
    if trial in OF_TRIALS:
        return OF_TRIALS[trial]
    found: list[Slip] = []
    if op in REFLECTED:
        row, exchanged = REFLECTED[op]
        says = f"{row}: the operands are exchanged, as if it were {exchanged}"
        found.append(Slip("reflected operands exchanged", says, ("{new}",), ({plain(op): {"crossed": True}},)))
    if kind == "note":
        found += CALLS
    if plain(op) in RULES:
        found += _local(plain(op))
    return [*found, *WHOLE]


def of_error(op: str, kind: str, error: str) -> Slip:
    """The slip that an error of an operation shows, by its kind and its text."""
    if kind == "RecursionError" and op:
        return Slip("endless recursion", "calls itself without end", ("{body}",))
    if kind == "TypeError" and "unsupported operand" in error and "'float'" in error:
        says = f"a number and a Value are put together: its .data is meant ({error})"
        return Slip("number and Value mixed", says, ("{new}",))
    if kind == "AttributeError" and op == "pow" and "no attribute 'data'" in error:
        return Slip("number not wrapped", "n is a number, and has no .data", ("{body}",))
    asked = re.search(r"(\w+)\(\) takes (\d) positional arguments? but (\d) w", error)
    if asked and asked[1] != "__init__" and int(asked[3]) == int(asked[2]) + 1:
        names = ["self", *(["n" if op == "pow" else "other"] * (int(asked[3]) - 1))]
        says = f"the first argument of a method is the object itself, self ({error})"
        return Slip("error", says, (f"def {asked[1]}({', '.join(names)}):",))
    slip = next(slip for named, holds, slip in ERRORS if named in (kind, "") and holds in error)
    if kind == "OverflowError" and op in TEXTS["better"]:
        return Slip(slip.name, slip.says, (TEXTS["better"][op],))
    return slip._replace(says=slip.says.replace("{error}", error))
