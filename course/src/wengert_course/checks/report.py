"""What the examination of a class came to: a table, a score, and what is likely wrong."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

__all__ = [
    "FOLLOWS",
    "MAY_FOLLOW",
    "LikelySlip",
    "NotYet",
    "Report",
    "Row",
    "Verdict",
    "overview",
    "printable",
    "table",
]

WIDTH = 88  # a column of text on the pages has room for it
FOLLOWS, MAY_FOLLOW = "follows from what is wrong above", "may follow from what is wrong above"
"""The remark of a row that is no news."""


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes:
        name: what was tried.
        counts: whether it is part of the score.
        values: "ok", "wrong", or empty where none was compared.
        gradients: the same of the gradients.
        state: "ok", "wrong", "not yet" (and asked for), "not there" (and not asked for), "note" or "not tried".
        remark: why, in a few words.
        step: the step of the course that it belongs to.
    """

    name: str
    counts: bool
    values: str
    gradients: str
    state: str
    remark: str = ""
    step: int = 0


@dataclass(frozen=True)
class LikelySlip:
    """Something that is wrong, and the likely slip.

    Attributes:
        slip: the name of the slip, as "swapped factors".
        says: what is wrong, in a sentence.
        rows: where it shows, by the names of the rows.
        where: at which numbers.
        what: which value or gradient.
        expected: what it should be; None where nothing was compared.
        got: what it is; None likewise.
        write: the lines to write.
        note: whether it is told only, and does not count.
    """

    slip: str
    says: str
    rows: tuple[str, ...]
    where: str = ""
    what: str = ""
    expected: float | None = None
    got: float | None = None
    write: tuple[str, ...] = ()
    note: bool = False


@dataclass(frozen=True)
class NotYet:
    """Something that the step asks for, and that is not there yet.

    Attributes:
        name: the name of its row.
        says: what to do, in a sentence that gives no solution.
    """

    name: str
    says: str


@dataclass
class Verdict:
    """The table, what is wrong, and what is not there yet, as they come together."""

    step: int = 3  # by hand, where nothing else is said
    rows: list[Row] = field(default_factory=list)
    findings: list[LikelySlip] = field(default_factory=list)
    later: list[NotYet] = field(default_factory=list)

    @property
    def spoilt(self) -> bool:
        """Whether something is wrong already, of which the rest may be a consequence."""
        return any(row.state == "wrong" for row in self.rows)

    def row(self, name: str, values: str = "ok", gradients: str = "", remark: str = "", state: str = "") -> None:
        """A line of the table; wrong, where one of its columns is, and no other state is given."""
        state = state or ("wrong" if "wrong" in (values, gradients) else "ok")
        self.rows.append(Row(name, state not in ("note", "not there"), values, gradients, state, remark, self.step))

    def not_yet(self, name: str, says: str = "") -> None:
        self.row(name, "", state="not yet")
        self.later += [NotYet(name, says)] if says else []

    def add(self, other: Verdict) -> None:
        self.rows += other.rows
        self.findings += other.findings
        self.later += other.later


@dataclass(frozen=True, repr=False)
class Report:
    """The whole of it. Printed, it is a table, what is wrong, and what is still to do.

    Attributes:
        file: the file, as it was named.
        name: the class in it.
        step: the step of the course that it was held to.
        title: what the step is about.
        rows: the table.
        findings: what is wrong.
        not_yet: what the step asks for and is not there yet, in the order to do it.
        remarks: what else is to be said.
        output: what the file printed, at most the first 2,000 characters.
        seed: what decided the numbers that were tried.
        begun: whether anything is written in the gaps of a notebook of the course.
    """

    file: str
    name: str
    step: int
    title: str
    rows: tuple[Row, ...]
    findings: tuple[LikelySlip, ...]
    not_yet: tuple[NotYet, ...]
    remarks: tuple[str, ...]
    output: str
    seed: int
    begun: bool = True

    @property
    def score(self) -> tuple[int, int]:
        """How many of the rows that count are right, and how many there are."""
        counted = [row for row in self.rows if row.counts]
        return sum([row.state == "ok" for row in counted]), len(counted)

    @property
    def right(self) -> bool:
        """Whether everything that counts is right."""
        right, of = self.score
        return right == of

    def passes(self, strict: bool = False) -> bool:
        """Whether everything that counts is right; strictly, whether nothing is noted either."""
        return self.right and not (strict and self.findings)

    def as_dict(self) -> dict[str, Any]:
        """The report for a program: the names are those of the attributes."""
        told, (right, of) = asdict(self), self.score
        head = {"file": told.pop("file"), "class": told.pop("name"), "step": told.pop("step"), "right": right, "of": of}
        del told["title"]
        for finding in told["findings"]:
            finding |= {"expected": _for_json(finding["expected"]), "got": _for_json(finding["got"])}
        return head | told

    def __str__(self) -> str:
        return self.text()

    def text(self, room: int | None = None, in_full: bool = False) -> str:
        """The report, wrapped to `room` columns; with its notes, if it is wanted in full."""
        width = min(room or WIDTH, WIDTH)
        right, of = self.score
        named = (f"{printable(self.file)}: " if self.file else "") + (
            f"class {printable(self.name)}, " if self.name else ""
        )
        far = f"{right} of {of} right" if self.begun else "not begun"
        lines = [f"{named}step {self.step} ({self.title}), {far}", ""]
        before = [row for row in self.rows if row.step < self.step and row.state == "ok"] if self.step >= 8 else []
        shown = [row for row in self.rows if row.state not in ("not there", "note") and row not in before]
        column = max([len(row.name) for row in shown], default=0)
        lines.append(f"  {'':<{column}}  value   gradient")
        for row in shown:
            verdicts = f"{row.values or '-':<6}  {row.gradients or '-':<8}"
            if row.state in ("not yet", "not tried"):
                verdicts = f"{row.values:<8}{row.state:<8}" if row.values else f"{row.state:<16}"
            lines.append(f"  {row.name:<{column}}  {verdicts}  {printable(row.remark)}".rstrip())
        if before:
            lines.append(f"  and of the steps before, {len(before)} that are right")
        absent = [row.name for row in self.rows if row.state == "not there"]
        if absent:
            names = ", ".join(name.replace(" ", "\N{NO-BREAK SPACE}") for name in absent)
            told = _wrapped(f"not there, and not asked for: {names}", "  ", width)
            lines += ["", *[line.replace("\N{NO-BREAK SPACE}", " ") for line in told]]
        notes = [finding for finding in self.findings if finding.note]
        for title, chosen in (
            ("What is wrong", [finding for finding in self.findings if not finding.note]),
            ("Optional notes", notes if in_full else []),
        ):
            lines += ["", title] if chosen else []
            for number, finding in enumerate(chosen, 1):
                lines += ["", *_finding(finding, number, width)]
        if self.not_yet:
            lines += ["", "Not yet, in this order", ""]
            for number, one in enumerate(self.not_yet, 1):
                lines += _wrapped(f"{number}. {one.name}: {one.says}", "   ", width, first="")
        if notes and not in_full:
            some = f"{len(notes)} note{'s' * (len(notes) > 1)} on what does not count"
            lines += [
                "",
                *_wrapped(f"({some}: `wengert check --strict`, or `print(report.text(in_full=True))`)", "", width),
            ]
        for remark in self.remarks:
            lines += ["", *_wrapped(printable(remark), "", width)]
        return "\n".join(lines)

    __repr__ = __str__  # the last line of a notebook's cell


def table(reports: Sequence[tuple[str, Report | Exception]]) -> str:
    """A row for each file: its class, its step, how much is right, and what to fix first."""
    lines = [("file", "class", "step", "right", "fix first")]
    for file, report in reports:
        if isinstance(report, Exception):
            lines.append((file, "-", "-", "-", str(report).removeprefix(file).lstrip(",: ")))
            continue
        right, of = report.score
        wrong = [f"{one.slip}: {one.says}" for one in report.findings if not one.note]
        first = [*wrong, *[f"not yet: {one.name}" for one in report.not_yet], ""][0] if report.begun else "not begun"
        lines.append((file, report.name, str(report.step), f"{right}/{of}" if report.begun else "-", first))
    widths = [max([len(printable(line[column])) for line in lines]) for column in range(4)]
    shown = []
    for line in lines:
        cells = [f"{printable(cell):<{width}}" for cell, width in zip(line, widths, strict=False)]
        room = max(WIDTH - sum(widths) - 8, 72)
        last = printable(line[4])
        shown.append("  ".join([*cells, last if len(last) <= room else last[: room - 3] + "..."]).rstrip())
    return "\n".join(shown)


def overview(reports: Sequence[tuple[str, Report | Exception]]) -> str:
    """A class at a glance: a row for each folder, as each learner has one, and a column for each lesson.

    Of a folder that has a lesson several times, each file has a row. Below stand how many have all of a lesson right,
    the mistakes that are made most often, and the files that cannot be checked, with the reason.
    """
    told = [(file, one) for file, one in reports if isinstance(one, Report)]
    steps = sorted({one.step for _, one in told})
    taken = Counter((os.path.dirname(file), one.step) for file, one in told)
    several = {folder for (folder, _), times in taken.items() if times > 1}
    rows: dict[str, dict[int, str]] = {}
    for file, one in told:
        folder = os.path.dirname(file)
        score = "{}/{}".format(*one.score) if one.begun else "-"
        rows.setdefault(file if folder in several else folder or ".", {})[one.step] = score
    right = {step: str(sum([one.right and one.begun for _, one in told if one.step == step])) for step in steps}
    lines = [("lesson", {step: str(step) for step in steps}), *rows.items(), ("all right", right)]
    width = max([len(printable(name)) for name, _ in lines])
    shown = [
        "  ".join([f"{printable(name):<{width}}", *[f"{cells.get(step, ''):<5}" for step in steps]]).rstrip()
        for name, cells in lines
    ]
    slips = Counter(slip for _, one in told for slip in {found.slip for found in one.findings if not found.note})
    often = ", ".join([f"{slip} ({times})" for slip, times in slips.most_common(5)])
    shown += ["", *_wrapped(f"most frequent: {often}", "  ", WIDTH, first="")] if often else []
    return "\n".join([*shown, *[f"\n{printable(str(one))}" for _, one in reports if isinstance(one, Exception)]])


def _finding(finding: LikelySlip, number: int, width: int) -> list[str]:
    lines = _wrapped(f"{number}. {printable(finding.says)}", "   ", width, first="")
    if finding.what:
        where = f"at {printable(finding.where)}: " if finding.where else ""
        if finding.got is None:
            lines += _wrapped(f"{where}{finding.what}", "     ", width, first="   ")
        else:
            told = f"{where}{finding.what} should be {finding.expected:.6g}, and is {finding.got:.6g}"
            lines += _wrapped(told, "     ", width, first="   ")
    if len(finding.rows) > 1:
        lines += _wrapped("it shows in: " + "; ".join(finding.rows), "     ", width, first="   ")
    for line, text in enumerate(finding.write):
        lines.append(f"   {'write:' if line == 0 else '':<7}{text}".rstrip())
    return lines


def _wrapped(text: str, indent: str, width: int, first: str | None = None) -> list[str]:
    from textwrap import wrap

    start = indent if first is None else first
    return wrap(text, width, initial_indent=start, subsequent_indent=indent, break_on_hyphens=False)


def printable(text: str) -> str:
    """The text without what could move a terminal's cursor or change its colours."""
    return "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)


def _for_json(number: float | None) -> float | str | None:
    """JSON has no nan and no infinity."""
    return number if number is None or abs(number) < float("inf") else str(number)
