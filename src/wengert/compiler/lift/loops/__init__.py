"""Loops found again: stretches of a flat graph that repeat, and the `Loop` that each becomes."""

from wengert.compiler.lift.loops.lifter import LoopLifter
from wengert.compiler.lift.loops.periods import Recurrence, recurrences

__all__ = ["LoopLifter", "Recurrence", "recurrences"]
