"""Lifts a recorded graph of scalars to a program of arrays."""

from wengert.compiler.lift.lifted import Lifted, lift
from wengert.compiler.lift.simplify import CONST, INPUT, PARAM, VALUE, Pick, Unliftable

__all__ = ["CONST", "INPUT", "PARAM", "VALUE", "Lifted", "Pick", "Unliftable", "lift"]
