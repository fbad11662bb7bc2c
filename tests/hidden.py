"""A number that no recording sees: Python keeps it where a function written in C alone finds it."""

from __future__ import annotations

import codecs
import itertools

__all__ = ["Hidden"]

_keys = itertools.count()


class Hidden:
    """Holds `value` in Python's own registry of error handlers."""

    def __init__(self, value: float) -> None:
        self.key = f"hidden {next(_keys)}"
        codecs.register_error(self.key, _Box(value))

    @property
    def value(self) -> float:
        """The number."""
        return codecs.lookup_error(self.key).value  # type: ignore[attr-defined, no-any-return]

    @value.setter
    def value(self, value: float) -> None:
        codecs.lookup_error(self.key).value = value  # type: ignore[attr-defined]


class _Box:
    """What passes for an error handler."""

    def __init__(self, value: float) -> None:
        self.value = value

    def __call__(self, error: Exception) -> tuple[str, int]:
        raise error
