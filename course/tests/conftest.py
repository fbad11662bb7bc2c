"""What all tests of the course share: the groups that need a library."""

from __future__ import annotations

import gc
import os
import zlib
from collections import defaultdict
from importlib.util import find_spec
from pathlib import Path

import pytest

from wengert_course.kept import FOLDER

os.environ[FOLDER] = ""  # what the tests check is kept nowhere, unless they say where
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # or each process that checks a file would compile every module anew

NEEDS = {"torch": "torch", "plot": "matplotlib"}
"""Marker -> library. What the markers mean stands in pyproject.toml."""


def left_to_the_night(items: list[pytest.Item]) -> None:
    """Of the cases of a test that is `sampled(n)`, mark all but one of each n in a row `nightly`.

    Which one, is drawn, so that none of what they combine is left out; what is drawn is the same each time.
    """
    cases: defaultdict[tuple[Path, str], list[pytest.Item]] = defaultdict(list)
    for item in items:
        if item.get_closest_marker("sampled") and not item.get_closest_marker("nightly"):
            cases[item.path, getattr(item, "originalname", item.name)].append(item)
    for (_, name), those in cases.items():
        n = those[0].get_closest_marker("sampled").args[0]
        for first in range(0, len(those), n):
            row = those[first : first + n]
            del row[zlib.crc32(f"{name} {first}".encode()) % len(row)]
            for item in row:
                item.add_marker(pytest.mark.nightly)


@pytest.hookimpl(tryfirst=True)  # before `-m` chooses
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    left_to_the_night(items)
    if "nightly" not in config.option.markexpr:  # else it says which
        left = [item for item in items if item.get_closest_marker("nightly")]
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if not item.get_closest_marker("nightly")]
    for marker, library in NEEDS.items():
        if find_spec(library) is None:
            for item in items:
                if item.get_closest_marker(marker):
                    item.add_marker(pytest.mark.skip(reason=f"needs {library}"))


def pytest_collection_finish() -> None:
    """What has been imported stays: the collector, here and in copies of this process, need not visit PyTorch."""
    gc.collect()
    gc.freeze()
