"""The signature of a function, on every Python."""

from __future__ import annotations

import itertools
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import inspect
    from collections.abc import Callable
    from typing import Any

__all__ = ["names_argument", "signature", "spread", "unwrapped"]


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
    return _inspected(function, True)


def unwrapped(function: Callable[..., Any]) -> inspect.Signature | None:
    """Return the signature of a wrapper itself, where `signature` tells that of what it wraps; None of other functions,
    and of those whose wrapper has no signature.
    """
    if not hasattr(function, "__wrapped__"):
        return None
    try:
        return _inspected(function, False)
    except ValueError:
        return None


def _inspected(function: Callable[..., Any], follow_wrapped: bool) -> inspect.Signature:
    import inspect

    if sys.version_info < (3, 14):
        return inspect.signature(function, follow_wrapped=follow_wrapped)
    from importlib import import_module  # a type checker of an older Python has no such module

    names = import_module("annotationlib").Format.FORWARDREF
    return inspect.signature(function, follow_wrapped=follow_wrapped, annotation_format=names)


def spread(signature: inspect.Signature, count: int, ends: bool = True) -> inspect.Signature:
    """Return the signature of calls with so many arguments by position: those that a parameter `*xs` takes are named
    `xs_0`, `xs_1` and so on. That of a function without such a parameter, or if it takes none of them, is returned as
    it is.

    Args:
        signature: the function's.
        count: the number of arguments by position.
        ends: False if more of them may follow.
    """
    parameters = list(signature.parameters.values())
    place = next((n for n, p in enumerate(parameters) if p.kind is p.VAR_POSITIONAL), count)
    if count <= place:
        return signature
    star = parameters[place]
    free = (name for n in itertools.count() if (name := f"{star.name}_{n}") not in signature.parameters)
    given = [*parameters[:place], *[star.replace(name=next(free)) for _ in range(count - place)]]
    given = [p.replace(kind=p.POSITIONAL_ONLY, default=p.empty) for p in given]
    return signature.replace(parameters=[*given, *parameters[place + ends :]])


def names_argument(signature: inspect.Signature, name: str) -> bool:
    """Return True if a function has an argument of this name, perhaps one that `spread` names."""
    stars = [p.name for p in signature.parameters.values() if p.kind is p.VAR_POSITIONAL]
    return name in signature.parameters or any(
        name.startswith(f"{star}_") and name[len(star) + 1 :].isdecimal() for star in stars
    )
