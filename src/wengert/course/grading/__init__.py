"""Examine anyone's Value-like class, operation by operation, and name the likely slip: `wengert check FILE.py`.

`trials.py` says what is tried, `probe.py` is the process that tries it, `runner.py` watches that process. `model.py`
is a model of an engine that can be given every slip of `slips.py`; `diagnosis.py` finds the slips that give the numbers
that were seen, and `report.py` holds and prints the result.

>>> import os, tempfile
>>> from wengert.course.grading import examine
>>> folder = tempfile.TemporaryDirectory()
>>> path = os.path.join(folder.name, "engine.py")
>>> with open(path, "w") as file:
...     _ = file.write("from wengert import Value")
>>> report = examine(path)
>>> report.right, report.findings
(True, ())
>>> folder.cleanup()
"""

from __future__ import annotations

from wengert.course.grading.report import Finding, Report, Row
from wengert.course.grading.runner import examine

__all__ = ["Finding", "Report", "Row", "examine"]
