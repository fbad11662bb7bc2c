"""What learners are told: it stands in the files beside this one, to be read and reworded without reading code."""

from __future__ import annotations

import tomllib
from importlib import resources
from typing import Any

__all__ = ["texts"]


def texts(name: str) -> dict[str, Any]:
    """What one of the files says; comments in it tell how."""
    file = resources.files("wengert_course.texts").joinpath(f"{name}.toml")
    return tomllib.loads(file.read_text(encoding="utf-8"))
