"""Examine anyone's Value-like class, operation by operation, and name the likely slip.

`asked` has the tests, a file for each lesson, which learners can read. `trials.py` makes of them what is tried,
`kit.py` and `own.py` are what they are given, and `load.py` and `probe.py` what else the process runs that tries a
file. `steps.py` says what each step of the course asks for, and `runner.py` watches that process. `model.py` is a model
of an engine that can be given every slip of `slips.py`, by the formulas of `rules.py`; `diagnosis.py` finds the slips
that give the numbers that were seen. `by_hand.py` judges gradients that are written by hand, and `report.py` holds each
verdict and prints the whole. The names of mistakes, and the advice, stand in `texts`.
"""

from __future__ import annotations

from wengert_course.checks.report import LikelySlip, NotYet, Report, Row, overview, table
from wengert_course.checks.steps import asked
from wengert_course.checks.targets import check

__all__ = ["LikelySlip", "NotYet", "Report", "Row", "asked", "check", "overview", "table"]
