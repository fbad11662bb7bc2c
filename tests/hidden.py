"""A number that no recording sees: Python keeps it where a function written in C alone finds it."""

from __future__ import annotations

import codecs
import itertools
from typing import Any

__all__ = ["Hidden"]

_keys = itertools.count()


class Hidden:
    """Holds `value` in Python's own registry of error handlers."""

    def __init__(self, value: Any) -> None:
        self.key = f"hidden {next(_keys)}"
        codecs.register_error(self.key, _Box(value))

    @property
    def value(self) -> Any:
        """The number, or whatever it is."""
        return codecs.lookup_error(self.key).value  # type: ignore[attr-defined]

    @value.setter
    def value(self, value: Any) -> None:
        codecs.lookup_error(self.key).value = value  # type: ignore[attr-defined]


class _Box:
    """What passes for an error handler."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __call__(self, error: Exception) -> tuple[str, int]:
        raise error
