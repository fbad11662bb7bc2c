"""What all tests of the course share: the groups that need a library."""

from __future__ import annotations

import gc
import os
from importlib.util import find_spec

import pytest

from wengert_course.kept import FOLDER

os.environ[FOLDER] = ""  # what the tests check is kept nowhere, unless they say where

NEEDS = {"torch": "torch", "plot": "matplotlib"}
"""Marker -> library. What the markers mean stands in pyproject.toml."""


@pytest.hookimpl(tryfirst=True)  # before `-m` chooses
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
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
