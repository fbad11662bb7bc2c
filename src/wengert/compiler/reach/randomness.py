"""The random number generators that all threads share: their state is read from memory, as `random.getstate()` takes
15 µs.
"""

from __future__ import annotations

import _random
import ctypes
import random
import sys
import threading
from array import array
from typing import Any

import numpy as np

__all__ = ["DRAWS", "SHARED", "draws_for_all", "is_alone", "random_state"]

DRAWS = "it draws random numbers: draw them outside of the function, and pass them"
MERSENNE = 4 * (624 + 1)  # bytes of a Mersenne Twister: its numbers and its position
WORDS = ctypes.c_uint32 * 3
SHARED: Any = random.getstate.__self__  # type: ignore[attr-defined]  # the generator behind the functions of `random`


def _own_words() -> Any:
    """Return the position and the first two numbers of Python's generator, which lie behind the object's head; None if
    they are not where they are expected.
    """
    head = object.__basicsize__
    if sys.implementation.name != "cpython" or _random.Random.__basicsize__ < head + MERSENNE:
        return None
    place, *numbers = array("I", ctypes.string_at(id(SHARED) + head, MERSENNE))
    return WORDS.from_address(id(SHARED) + head) if random.getstate()[1] == (*numbers, place) else None


OWN = _own_words()


def random_state() -> Any:
    """Return what tells states of Python's and NumPy's global generators apart: of a Mersenne Twister its position and
    two of its numbers, all of which are replaced when the last one has been drawn.
    """
    own = (SHARED.gauss_next, bytes(OWN)) if OWN is not None else random.getstate()
    shared: Any = np.random.get_bit_generator()  # type: ignore[attr-defined]
    if type(shared) is np.random.MT19937:  # whose position comes last
        return own, bytes(WORDS.from_address(shared.ctypes.state_address + MERSENNE - 12))
    return own, str(shared.state)


def draws_for_all(x: Any) -> bool:
    """Return True for a random number generator behind the functions of `random` or `numpy.random`, which all threads
    share.
    """
    if x is SHARED:
        return True
    return type(x) is np.random.RandomState and x._bit_generator is np.random.get_bit_generator()  # type: ignore[attr-defined]


def others() -> set[int]:
    """Return the threads of this process but the one that asks."""
    return {*sys._current_frames()} - {threading.get_ident()}


def is_alone() -> bool:
    """Return True if this process has no other thread, which might draw or change something meanwhile."""
    return not others()
