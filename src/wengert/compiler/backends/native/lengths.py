"""Machine code that programs share which differ in lengths alone, as those of a filter over 100 and over 200 samples.

Their texts are the same but for integers: how often a loop turns, how far apart arrays lie. The first program of its
family is compiled as it stands. The second one shows which integers are others: in its code these are read from memory,
where each program has its own, and those that come after it need no compiler.
"""

from __future__ import annotations

import re
from itertools import count
from typing import NamedTuple

from wengert.compiler.backends import cache
from wengert.compiler.backends.native.machine import compiled

__all__ = ["Code", "code_of"]

INTEGER = re.compile(r"(?<!i32) (-?\d+)(?=[ ,\n])")  # where a name may stand as well
FAMILIES, LONG = 64, 1 << 19  # so many are known, the latest, and none of more characters


class Code(NamedTuple):
    """Object code, and the integers that it is to find in memory."""

    image: bytes
    lengths: tuple[int, ...] = ()


class _Family(NamedTuple):
    """Programs that differ in lengths alone: the integers of one of them, and the code for all that were seen."""

    integers: str  # with spaces in between
    places: tuple[int, ...]  # of the integers that are not the same in all of them
    image: bytes


_families: dict[str, _Family] = {}  # without a lock, which a forked child could find held


def code_of(text: str) -> Code:
    """The object code of a module, compiled if that of a program like it does not serve."""
    if len(text) > LONG:
        return Code(compiled(text))
    integers = INTEGER.findall(text)
    name = cache.digest(INTEGER.sub(" #", text).encode())
    family = _families.get(name)
    if family is None:
        family = _Family(" ".join(integers), (), compiled(text))
    else:
        pairs = zip(integers, family.integers.split(), strict=True)
        places = tuple(sorted({*family.places, *[n for n, (here, there) in enumerate(pairs) if here != there]}))
        if places != family.places:
            family = _Family(family.integers, places, compiled(_with_lengths(text, places)))
    _families[name] = family
    for old in list(_families)[: max(0, len(_families) - FAMILIES)]:
        _families.pop(old, None)
    return Code(family.image, tuple([int(integers[n]) for n in family.places]))


def _with_lengths(text: str, places: tuple[int, ...]) -> str:
    """A text in which the integers at some places are read from memory, at the beginning of each function."""
    number = count()
    slots = {place: slot for slot, place in enumerate(places)}

    def written(found: re.Match[str]) -> str:
        slot = slots.get(next(number))
        return found[0] if slot is None else f" %length{slot}"

    functions = []
    for function in INTEGER.sub(written, text).split("\nentry:\n"):
        read = [
            f" %length{slot} = load i64, ptr getelementptr (i64, ptr @lengths, i64 {slot}), align 8"
            for slot in map(int, re.findall(r"%length(\d+)", function))
        ]
        functions.append("\n".join([*read, function]))
    return f"@lengths = global [{len(places)} x i64] zeroinitializer, align 8\n" + "\nentry:\n".join(functions)
