"""What the tests of compiled functions share: the program runs even where the engine would be the faster way."""

from __future__ import annotations

from importlib.util import find_spec
from math import inf

import pytest


@pytest.fixture(autouse=True)
def programs_serve(monkeypatch: pytest.MonkeyPatch) -> None:
    """Functions as small as those of the tests are soon the engine's, which would then be compared with itself."""
    if find_spec("numpy"):
        from wengert.compiler.entry import Entry

        monkeypatch.setattr(Entry, "prefers_engine", lambda entry, size: False)
        monkeypatch.setattr(Entry, "tries_engine", lambda entry, size: False)
        monkeypatch.setattr(Entry, "choose", lambda entry, count, native, numpy: None)


@pytest.fixture(autouse=True)
def machine_code_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """None is made in the background unless a back end is named: when that is depends on how long calls take."""
    if find_spec("numpy"):
        from wengert.compiler.backends.native import kernel

        monkeypatch.setattr(kernel, "BEGINNING", inf)


@pytest.fixture(autouse=True)
def nothing_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Machine code is made anew, and the user's own cache left alone."""
    monkeypatch.setenv("WENGERT_CACHE", "off")
