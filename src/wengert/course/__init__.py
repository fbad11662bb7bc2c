"""The course: whoever makes an engine of their own is told how far they have come.

>>> import wengert
>>> wengert.course.examine
<function examine at ...>
"""

from __future__ import annotations

from wengert.course.grading import Finding, Report, Row, examine

__all__ = ["Finding", "Report", "Row", "examine"]
