"""What may come from the process that tries a class: lines of JSON of a few shapes. Anything else is refused.

The file that is examined runs in that process, and can write to its channel. So nothing is believed but numbers, and
of those only as many as were asked for.
"""

from __future__ import annotations

import json
from typing import Any

from wengert.course.grading.diagnosis import TRIALS
from wengert.course.grading.kit import NAMES

__all__ = ["LONGEST", "ForeignError", "about", "error", "numbers", "read", "told"]

LONGEST = 1 << 16  # bytes of a line
HAS = {need for trial in TRIALS for need in trial.needs.split() if need not in NAMES}
HAS |= {"by hand", "Neuron", "Layer", "MLP", "loop"}
SHAPES: tuple[set[str], ...] = ({"stop", "place"}, {"name", "names", "has"}, {"start"}, {"end"})
SHAPES += ({"done", "numbers"}, {"done", "numbers", "error"})


class ForeignError(Exception):
    """A line that the check did not write."""


def read(line: bytes) -> dict[str, Any]:
    """A line, as one of the shapes."""
    if not line.endswith(b"\n"):
        raise ForeignError(f"a line of more than {LONGEST} bytes" if len(line) >= LONGEST else "half a line")
    try:
        said = json.loads(line)
    except (ValueError, RecursionError):
        raise ForeignError("a line that is no JSON") from None
    if not isinstance(said, dict) or set(said) not in SHAPES:
        raise ForeignError("a message of another shape")
    return said


def _text(x: Any, longest: int) -> str:
    if not isinstance(x, str) or len(x) > longest:
        raise ForeignError("a message with another thing where a text belongs")
    return x


def about(said: dict[str, Any]) -> tuple[str, dict[str, str], frozenset[str]]:
    """What is there: the name of the class, what it calls its parts, and what it and the file have besides."""
    name, names, has = _text(said["name"], 200), said["names"], said["has"]
    if not isinstance(names, dict) or any(part not in NAMES or own not in NAMES[part] for part, own in names.items()):
        raise ForeignError("a message with another thing where the parts of a class belong")
    if not isinstance(has, list) or not all(isinstance(one, str) and one in HAS for one in has):
        raise ForeignError("a message with another thing where the methods of a class belong")
    return name, names, frozenset(has)


MOST = 2_000  # numbers of a trial whose count depends on the file


def numbers(found: Any, count: int | None, ended: bool) -> tuple[float, ...]:
    """The numbers of a trial: as many as it gives, fewer where an error ended it."""
    if not isinstance(found, list) or any(type(x) not in (int, float) for x in found):
        raise ForeignError("a message with another thing where numbers belong")
    if len(found) > (MOST if count is None else count) or (count is not None and len(found) < count and not ended):
        raise ForeignError(f"{len(found)} numbers where {count or MOST} were asked for")
    try:
        return tuple([float(x) for x in found])
    except OverflowError:
        raise ForeignError("a number that is too large to be one") from None


def error(said: Any) -> tuple[str, str, str]:
    """The kind of the error that ended a trial, what it says, and where it was raised."""
    if not isinstance(said, dict) or set(said) != {"kind", "says", "place"}:
        raise ForeignError("a message with another thing where an error belongs")
    return _text(said["kind"], 100) or "error", _text(said["says"], 400), _text(said["place"], 100)


def told(said: dict[str, Any]) -> str:
    """Why the file cannot be tried."""
    at = _text(said["place"], 100)
    return (f", {at}" if at else "") + f": {_text(said['stop'], 5_000)}"
