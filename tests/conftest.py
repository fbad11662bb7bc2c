"""What all tests share: the engine that is named, the groups that need an optional library, the table as it was."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

import pytest

from wengert import _loader, functions, ops

NEEDS = {"torch": "torch", "mpmath": "mpmath", "plot": "matplotlib", "png": "resvg_py", "browser": "selenium"}
"""Marker -> library. What the markers mean stands in pyproject.toml."""


if find_spec("hypothesis"):
    from hypothesis import HealthCheck, settings

    settings.register_profile("tests", deadline=None, suppress_health_check=[HealthCheck.too_slow])  # a busy machine
    settings.load_profile("tests")


@pytest.fixture(autouse=True)
def the_table_as_it_was() -> Iterator[None]:
    """Forget the operations that a test has registered, or disturbed."""
    rows, names, methods = list(ops.TABLE), dict(ops.BY_NAME), set(vars(functions.Functions))
    yield
    ops.TABLE[:] = rows
    del ops.UNARY[len(rows) :]
    ops.BY_NAME.clear()
    ops.BY_NAME.update(names)
    for name in set(vars(functions.Functions)) - methods:
        delattr(functions.Functions, name)


def pytest_report_header() -> str:
    return f"wengert: {_loader.status()}"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for marker, library in NEEDS.items():
        if find_spec(library) is None:
            skip = pytest.mark.skip(reason=f"needs {library}")
            for item in items:
                if item.get_closest_marker(marker):
                    item.add_marker(skip)
