"""Examine anyone's Value-like class, operation by operation, and name the likely slip.

`steps.py` says what each step of the course asks for. `kit.py`, `trials.py`, `notes.py` and `load.py` are what the
process of `probe.py` runs: it knows no answers. `runner.py` watches that process, and `channel.py` lets nothing through
but numbers. `model.py` is a model of an engine that can be given every slip of `slips.py`, by the formulas of
`rules.py`; `diagnosis.py` finds the slips that give the numbers that were seen, `by_hand.py` judges gradients that were
written by hand, and `report.py` holds and prints the result.
"""

from __future__ import annotations

from wengert.course.grading.report import Finding, NotYet, Report, Row, table
from wengert.course.grading.targets import check

__all__ = ["Finding", "NotYet", "Report", "Row", "check", "table"]
