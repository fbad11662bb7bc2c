"""Reads the state of the global random number generators from memory: `random.getstate()` takes 15 µs."""

from __future__ import annotations

import _random
import ctypes
import random
import sys
from array import array
from typing import Any

import numpy as np

__all__ = ["random_state"]

MERSENNE = 4 * (624 + 1)  # bytes of a Mersenne Twister: its numbers and its position
SHARED: Any = random.getstate.__self__  # type: ignore[attr-defined]  # the generator behind the functions of `random`


def _address() -> int:
    """Return the address of the state of Python's generator; 0 if it is not where it is expected, behind the object's
    head.
    """
    head = object.__basicsize__
    if sys.implementation.name != "cpython" or _random.Random.__basicsize__ < head + MERSENNE:
        return 0
    place, *numbers = array("I", ctypes.string_at(id(SHARED) + head, MERSENNE))
    return id(SHARED) + head if random.getstate()[1] == (*numbers, place) else 0


ADDRESS = _address()


def random_state() -> Any:
    """Return what tells states of Python's and NumPy's global generators apart: of a Mersenne Twister its position and
    two of its numbers, all of which are replaced when the last one has been drawn.
    """
    own = (SHARED.gauss_next, ctypes.string_at(ADDRESS, 12)) if ADDRESS else random.getstate()
    shared: Any = np.random.get_bit_generator()  # type: ignore[attr-defined]
    if type(shared) is np.random.MT19937:  # whose position comes last
        return own, ctypes.string_at(shared.ctypes.state_address + MERSENNE - 12, 12)
    return own, str(shared.state)
