"""The course: whoever makes an engine of their own is told how far they have come.

>>> from wengert import course
>>> class Value:
...     def __init__(self, data):
...         self.data = data
...     def __repr__(self):
...         return f"Value({self.data})"
...     def __add__(self, other):
...         return Value(self.data + other.data)
>>> report = course.check(Value)
>>> report.step, report.score
(1, (3, 6))
>>> [one.name for one in report.not_yet]
['a + 3', 'a * b', 'a * 3']
"""

from __future__ import annotations

from wengert_course.checks import LikelySlip, NotYet, Report, Row, asked, check
from wengert_course.kept import go_on, mine
from wengert_course.notebooks import Lesson, LessonCell, answers, hint, hints, lessons, write

__all__ = ["Lesson", "LessonCell", "LikelySlip", "NotYet", "Report", "Row", "asked", "check"]
__all__ += ["answers", "go_on", "hint", "hints", "lessons", "mine", "write"]
