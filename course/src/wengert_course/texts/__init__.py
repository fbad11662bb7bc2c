"""What learners are told: it stands in the files beside this one, to be read and reworded without reading code."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from importlib import resources
from typing import Any

__all__ = ["lines", "texts"]


def texts(name: str) -> dict[str, Any]:
    """What one of the files says; comments in it tell how."""
    file = resources.files("wengert_course.texts").joinpath(f"{name}.toml")
    return tomllib.loads(file.read_text(encoding="utf-8"))


def lines(text: Mapping[str, Any], names: Iterable[str]) -> tuple[str, ...]:
    """The lines to write: those that a file has under a name, or else the name itself, which is a line."""
    return tuple([line for name in names for line in text["lines"].get(name, [name])])
