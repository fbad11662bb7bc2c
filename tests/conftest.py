"""What all tests share: the line that says which engine is tested, and the groups that need an optional library."""

from __future__ import annotations

from importlib.util import find_spec

import pytest

from wengert import _loader

NEEDS = {"torch": "torch", "mpmath": "mpmath", "plot": "matplotlib", "png": "resvg_py", "browser": "selenium"}
"""Marker -> library. What the markers mean stands in pyproject.toml."""


if find_spec("hypothesis"):
    from hypothesis import HealthCheck, settings

    settings.register_profile("tests", deadline=None, suppress_health_check=[HealthCheck.too_slow])  # a busy machine
    settings.load_profile("tests")


def pytest_report_header() -> str:
    return f"wengert: {_loader.status()}"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for marker, library in NEEDS.items():
        if find_spec(library) is None:
            skip = pytest.mark.skip(reason=f"needs {library}")
            for item in items:
                if item.get_closest_marker(marker):
                    item.add_marker(skip)
