"""The signature of a function, on every Python."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import inspect
    from collections.abc import Callable
    from typing import Any

__all__ = ["signature"]


def signature(function: Callable[..., Any]) -> inspect.Signature:
    """Return `inspect.signature(function)`, without evaluating annotations.

    Since Python 3.14 annotations are evaluated when somebody asks for them, and one whose name was imported under
    `TYPE_CHECKING` then raises a NameError. The names of the parameters and their defaults need none of it.

    Raises:
        TypeError: it is no function.
        ValueError: it has no signature, as some functions written in C.
    """
    import inspect  # 5 ms, for a program that may never ask

    if sys.version_info < (3, 14):
        return inspect.signature(function)
    from importlib import import_module  # a type checker of an older Python has no such module

    return inspect.signature(function, annotation_format=import_module("annotationlib").Format.FORWARDREF)
