"""Differentiates programs: the reverse sweep of a program is a program."""

from wengert.compiler.derive.reverse import reverse

__all__ = ["reverse"]
