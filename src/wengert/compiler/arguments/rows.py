"""Splits a batch into its examples."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from wengert.compiler.code import DEPTH, PARTS
from wengert.errors import DataError

__all__ = ["bound_to", "called", "lengths_of", "rows_of", "same_length", "tree_items"]

BY_PLACE = inspect.Parameter.POSITIONAL_OR_KEYWORD  # positional-only is less


def bound_to(signature: inspect.Signature, args: Sequence[Any], named: dict[str, Any]) -> inspect.BoundArguments | None:
    """Bind arguments to names; None if they do not fit the signature, which the function itself reports best."""
    try:
        return signature.bind(*args, **named)
    except TypeError:
        return None


def rows_of(
    function: Callable[..., Any],
    signature: inspect.Signature,
    static: Collection[str],
    args: Sequence[Any],
    named: dict[str, Any],
    part: slice = slice(None),
) -> tuple[Callable[..., Any], Iterator[tuple[Any, ...]]]:
    """Return a function that takes the arguments of one example by position, and an iterator over the examples of a
    batch, or of a part.

    An item of a list is passed as it is. A row of an array is passed as an array of its dtype, or as a Python number.
    Anything else, such as `self`, is passed to all examples. An object that is passed twice stays one object.

    Raises:
        DataError: the arguments differ in the number of examples, or there is none.
    """
    bound = bound_to(signature, args, named)
    given: dict[str, Any] = {"args": tuple(args), "named": named} if bound is None else bound.arguments
    moving = [name for name in given if bound is None or name not in static]
    lengths = [(name, length) for name in moving for length in lengths_of(given[name])]
    count = 1 if bound is None and not lengths else len(range(same_length(lengths))[part])
    column_of: dict[int, Sequence[Any]] = {}
    columns = [_spread(x, count, part, column_of) if name in moving else [x] * count for name, x in given.items()]
    if bound is None:
        return (lambda args, named: function(*args, **named)), zip(*columns, strict=True)
    return _by_place(function, signature, list(given)), zip(*columns, strict=True)


def _by_place(function: Callable[..., Any], signature: inspect.Signature, names: list[str]) -> Callable[..., Any]:
    """Return a function that takes these arguments by position."""
    in_order = [p.name for p in signature.parameters.values() if p.kind <= BY_PLACE]
    if in_order[: len(names)] == names:
        return function
    return lambda *row: called(function, signature, dict(zip(names, row, strict=True)))


def called(function: Callable[..., Any], signature: inspect.Signature, given: dict[str, Any]) -> Any:
    """Call a function with arguments given by name, by position or by name as it takes them."""
    bound = inspect.BoundArguments(signature, given)
    return function(*bound.args, **bound.kwargs)


def same_length(lengths: list[tuple[str, int]]) -> int:
    """Return the number of examples.

    Raises:
        DataError: the arguments differ in it, or there is none.
    """
    if not lengths:
        raise DataError("a batch needs an argument with an example in each row")
    if len({length for _, length in lengths}) > 1:
        raise DataError(f"the arguments of a batch differ in the number of examples: {dict(lengths)}")
    if not lengths[0][1]:
        raise DataError("the batch is empty: expected at least one example")
    return lengths[0][1]


def lengths_of(x: Any) -> list[int]:
    """List the length of each list or array in an argument."""
    sequences = [x for x in tree_items(x) if isinstance(x, list) or (isinstance(x, np.ndarray) and x.ndim)]
    return [x.shape[0] if isinstance(x, np.ndarray) else len(x) for x in sequences]  # a subclass may say another length


def tree_items(x: Any) -> list[Any]:
    """List the leaves of nested tuples and dicts: not those that are nested too deep, or where there are too many. The
    code of their classes does not run.
    """
    leaves: list[Any] = []
    level = [x]
    for _ in range(DEPTH + 2):
        parts = [part for part in level if issubclass(type(part), (tuple, dict))]
        if not parts:
            return leaves + level
        if len(level) > PARTS:
            break
        leaves += [part for part in level if not issubclass(type(part), (tuple, dict))]
        level = [item for part in parts for item in _items(part)]
    return leaves


def _items(x: Any) -> Iterable[Any]:
    return tuple.__iter__(x) if issubclass(type(x), tuple) else dict.values(x)


def _spread(x: Any, count: int, part: slice, column_of: dict[int, Sequence[Any]]) -> Sequence[Any]:
    """Return an argument for each of `count` examples."""
    if id(x) not in column_of:
        column: Sequence[Any] = [x] * count
        if isinstance(x, dict) and x:
            columns = [_spread(item, count, part, column_of) for item in x.values()]
            column = [dict(zip(x, row, strict=True)) for row in zip(*columns, strict=True)]
        elif isinstance(x, tuple) and x:
            rows = zip(*[_spread(item, count, part, column_of) for item in x], strict=True)
            column = list(rows) if type(x) is tuple else list(map(getattr(type(x), "_make", type(x)), rows))
        elif isinstance(x, np.ndarray) and x.ndim:
            column = x[part].tolist() if x.ndim == 1 and x.dtype.kind in "fiub" else list(x[part])
        elif isinstance(x, list):
            column = x[part]
        column_of[id(x)] = column
    return column_of[id(x)]
