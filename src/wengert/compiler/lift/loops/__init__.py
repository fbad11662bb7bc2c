"""Recovers loops: finds stretches of a flat graph that repeat, and turns each into a `Loop`."""

from wengert.compiler.lift.loops.lifter import LoopLifter
from wengert.compiler.lift.loops.periods import Recurrence, lengthen, recurrences

__all__ = ["LoopLifter", "Recurrence", "lengthen", "recurrences"]
