"""What all tests of the course share: the groups that need a library."""

from __future__ import annotations

import gc
from importlib.util import find_spec

import pytest

NEEDS = {"torch": "torch", "plot": "matplotlib"}
"""Marker -> library. What the markers mean stands in pyproject.toml."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for marker, library in NEEDS.items():
        if find_spec(library) is None:
            for item in items:
                if item.get_closest_marker(marker):
                    item.add_marker(pytest.mark.skip(reason=f"needs {library}"))


def pytest_collection_finish() -> None:
    """What has been imported stays: neither the collector nor the copies of this process need visit PyTorch each time."""
    gc.collect()
    gc.freeze()
