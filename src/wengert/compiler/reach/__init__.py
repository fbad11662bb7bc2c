"""What the code of a function reads and changes outside of its arguments."""

from wengert.compiler.reach.call_trace import CallTrace
from wengert.compiler.reach.proxies import CELL, Proxies
from wengert.compiler.reach.purity import DRAWS, DrawsCheck, PurityCheck
from wengert.compiler.reach.randomness import is_alone, random_state

__all__ = ["CELL", "DRAWS", "CallTrace", "DrawsCheck", "Proxies", "PurityCheck", "is_alone", "random_state"]
