"""What the code of a function reads and changes outside of its arguments."""

from wengert.compiler.reach.attributes import held_by
from wengert.compiler.reach.call_trace import CallTrace
from wengert.compiler.reach.places import Places
from wengert.compiler.reach.proxies import Proxies
from wengert.compiler.reach.purity import DrawsCheck, PurityCheck
from wengert.compiler.reach.randomness import DRAWS, is_alone, random_state
from wengert.compiler.reach.settings import numpy_errors

__all__ = [
    "DRAWS",
    "CallTrace",
    "DrawsCheck",
    "Places",
    "Proxies",
    "PurityCheck",
    "held_by",
    "is_alone",
    "numpy_errors",
    "random_state",
]
