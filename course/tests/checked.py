"""Reports on programs: each program is checked once in a session, however many tests read what came of it."""

from __future__ import annotations

import atexit
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from wengert_course import Report, check

ROOT = Path(__file__).resolve().parents[2]
FOLDER = TemporaryDirectory()
atexit.register(FOLDER.cleanup)


@cache
def report_on(text: str, step: int | None = None, seed: int = 0, **limits: Any) -> Report:
    """The report on a program, from the first time that it was asked for."""
    return tried(Path(FOLDER.name), text, step, seed, **limits)


def tried(folder: Path, text: str, step: int | None = None, seed: int = 0, **limits: Any) -> Report:
    """The report on a program, which is checked anew."""
    path = folder / "engine.py"
    path.write_text(text, encoding="utf-8")
    return check(path, step, seed=seed, **limits)


def counted(report: Report) -> list[str]:
    """The slips that are named, without what is only noted."""
    return [finding.slip for finding in report.findings if not finding.note]


def page() -> str:
    """The page about checking."""
    return (ROOT / "docs" / "checking.md").read_text(encoding="utf-8")
