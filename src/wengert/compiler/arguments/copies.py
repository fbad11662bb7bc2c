"""Copies of arguments, on which a function runs ahead of its first call."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["copied"]


def copied(x: Any) -> tuple[Any, set[int]]:
    """Copy the lists, tuples, dicts and arrays in an argument, which a function may change: each object once, however
    deep. Everything else stays the same object, since what is recorded holds for this object.

    Returns:
        The copy, and the identities of the objects in it that are copies.

    >>> row = [1.0, 2.0]
    >>> (first, again), _ = copied((row, row))
    >>> first == row, first is row, first is again
    (True, False, True)
    """
    copies: dict[int, Any] = {}  # by the identity of what they are copies of
    unfilled: list[tuple[Any, Any]] = []  # lists and dicts, which may contain themselves
    unfinished = [x]
    while unfinished:
        here = unfinished[-1]
        kind = type(here)
        if id(here) in copies or not _is_copied(here):
            unfinished.pop()
        elif kind in (list, dict):
            copy: Any = kind()
            copies[id(here)] = copy
            unfilled.append((here, copy))
            unfinished += here if kind is list else here.values()
        elif isinstance(here, np.ndarray):
            copies[id(here)] = here.copy()
        elif left := [item for item in here if _is_copied(item) and id(item) not in copies]:
            unfinished += left  # a tuple is made after its items
        else:
            items = [copies.get(id(item), item) for item in here]
            copies[id(here)] = getattr(kind, "_make", kind)(items)
    for here, copy in unfilled:
        if type(here) is list:
            copy += [copies.get(id(item), item) for item in here]
        else:
            copy.update({key: copies.get(id(item), item) for key, item in here.items()})
    return copies.get(id(x), x), set(map(id, copies.values()))


def _is_copied(x: Any) -> bool:
    kind = type(x)
    return (
        kind in (list, tuple, dict) or isinstance(x, np.ndarray) or (issubclass(kind, tuple) and hasattr(kind, "_make"))
    )
