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

    A function of operands by position, of which Python says `*operands` or less, has as many as it takes: a row of the
    table and a `Table` say in `_positions` how many, with the defaults of the last ones, and a function of NumPy `nin`.

    Raises:
        TypeError: it is no function.
        ValueError: it has no signature, as some functions written in C.
    """
    import inspect  # 5 ms, for a program that may never ask

    def has_its_own(wrapper: Any) -> bool:  # `functools.wraps` copies that of a function of NumPy
        own = getattr(wrapper, "__signature__", None)
        return own is not None and own is not getattr(wrapper.__wrapped__, "__signature__", None)

    inner: Any = inspect.unwrap(function, stop=has_its_own)
    positions = None if hasattr(inner, "__signature__") else getattr(inner, "_positions", None)
    if type(inner).__name__ == "ufunc":  # whose other arguments, such as `dtype`, exclude each other
        positions = inner.nin, ()
    if isinstance(positions, tuple):
        count, defaults = positions
        ends = [inspect.Parameter.empty] * (count - len(defaults)) + [*defaults]
        names = ["x"] if count == 1 else [f"x{n}" for n in range(count)]
        kind = inspect.Parameter.POSITIONAL_ONLY
        parameters = [inspect.Parameter(name, kind, default=end) for name, end in zip(names, ends, strict=True)]
        return inspect.Signature(parameters)
    if sys.version_info < (3, 14):
        return inspect.signature(function)
    from importlib import import_module  # a type checker of an older Python has no such module

    return inspect.signature(function, annotation_format=import_module("annotationlib").Format.FORWARDREF)
