"""What may come from the process that tries a class: lines of JSON of a few shapes. Anything else is refused.

The file that is examined runs in that process, and can write to its channel. So nothing is believed but numbers, and
of those only as many as were asked for.
"""

from __future__ import annotations

import json
from typing import Any

from wengert_course.checks.kit import NAMES
from wengert_course.checks.steps import TRIALS

__all__ = ["LONGEST", "ForeignError", "error", "numbers", "read"]

LONGEST = 1 << 16  # bytes of a line
MOST = 2_000  # numbers of a trial whose count depends on the file
HAS = {need for trial in TRIALS.values() for need in trial.needs.split() if need not in NAMES}
HAS |= {"by hand", "Neuron", "Layer", "MLP", "loop"}
SHAPES = ({"stop", "place"}, {"name", "names", "has"}, {"done", "numbers"}, {"done", "numbers", "error"})
TEXTS = {"stop": 5_000, "place": 100, "name": 200, "kind": 100, "says": 400}  # so many characters at most


class ForeignError(Exception):
    """A line that the check did not write."""


def read(line: bytes) -> dict[str, Any]:
    """A line, as one of the shapes, what is there and texts with it looked at; numbers and errors are not yet."""
    if not line.endswith(b"\n"):
        raise ForeignError(f"a line of more than {LONGEST} bytes" if len(line) >= LONGEST else "half a line")
    try:
        said = json.loads(line)
    except (ValueError, RecursionError):
        raise ForeignError("a line that is no JSON") from None
    if not isinstance(said, dict) or set(said) not in SHAPES:
        raise ForeignError("a message of another shape")
    names, has = said.get("names", {}), said.get("has", [])
    _check_texts(said)
    if not isinstance(names, dict) or any(part not in NAMES or own not in NAMES[part] for part, own in names.items()):
        raise ForeignError("a message with another thing where the parts of a class belong")
    if not isinstance(has, list) or not all(isinstance(one, str) and one in HAS for one in has):
        raise ForeignError("a message with another thing where the methods of a class belong")
    return said


def _check_texts(said: dict[str, Any]) -> None:
    for key, text in said.items():
        if key in TEXTS and not (isinstance(text, str) and len(text) <= TEXTS[key]):
            raise ForeignError("a message with another thing where a text belongs")


def numbers(found: Any, count: int | None, ended: bool) -> tuple[Any, ...]:
    """The numbers of a trial: as many as it gives, fewer where an error ended it; without a count, lists of them."""
    flat, waiting = list[Any](), [found]
    while waiting:
        thing = waiting.pop()
        nested = isinstance(thing, list) and (thing is found or count is None)
        waiting += thing if nested else ()
        flat += () if nested else (thing,)
    if not isinstance(found, list) or any(type(x) not in (int, float) for x in flat):
        raise ForeignError("a message with another thing where numbers belong")
    if len(flat) > (MOST if count is None else count) or (count is not None and len(flat) < count and not ended):
        raise ForeignError(f"{len(flat)} numbers where {count or MOST} were asked for")
    try:
        list(map(float, flat))
    except OverflowError:
        raise ForeignError("a number that is too large to be one") from None
    return tuple(found)


def error(said: Any) -> tuple[str, str, str]:
    """The kind of the error that ended a trial, what it says, and where it was raised."""
    if not isinstance(said, dict) or set(said) != {"kind", "says", "place"}:
        raise ForeignError("a message with another thing where an error belongs")
    _check_texts(said)
    return said["kind"] or "error", said["says"], said["place"]
