"""Examine anyone's Value-like class, operation by operation, and name the likely slip.

`kit.py`, `load.py`, `trials.py` (the engine's own lessons, 1 to 7), `own.py` with the tests in `asked` (the other
lessons, a file each, which learners can read) and `probe.py` are what the process runs that tries a file. `steps.py`
says what each step of the course asks for, and so what is tried; `runner.py` watches that process. `model.py` is a
model of an engine that can be given every slip of `slips.py`, by the formulas of `rules.py`; `diagnosis.py` finds the
slips that give the numbers that were seen. `by_hand.py` judges gradients that are written by hand, and `report.py`
holds each verdict and prints the whole. What learners read of the engine's lessons stands in `texts`.
"""

from __future__ import annotations

from wengert_course.checks.report import LikelySlip, NotYet, Report, Row, table
from wengert_course.checks.steps import asked
from wengert_course.checks.targets import check

__all__ = ["LikelySlip", "NotYet", "Report", "Row", "asked", "check", "table"]
