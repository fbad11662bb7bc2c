"""Which tests of the course are run on one engine only: those in which nothing is tried but readers' classes.

The course stands on the table of operations, below the engine (tests/test_architecture.py), and what runs a reader's
file loads nothing of ours (test_forgery.py). So neither engine of ours takes part, and the other would give the same
run.
"""

from __future__ import annotations

from pathlib import Path

import pytest

READERS = {"test_forgery.py", "test_slips.py", "test_steps_of_the_course.py"}
OURS = {"test_wengert_has_a_full_score_and_not_even_a_note"}  # but for this, in which Wengert's own Value is tried


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent == Path(__file__).parent and item.path.name in READERS and item.name not in OURS:
            item.add_marker(pytest.mark.once)
