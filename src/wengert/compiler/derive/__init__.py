"""Derivatives of programs, as programs."""

from wengert.compiler.derive.reverse import reverse

__all__ = ["reverse"]
