"""A batch taken apart, row by row, as it was passed: nothing in it is read."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from wengert.errors import DataError

__all__ = ["by_place", "by_rows", "called", "examples", "look_of", "same_length", "taker"]

BY_PLACE = inspect.Parameter.POSITIONAL_OR_KEYWORD  # and before it what is by place alone


def examples(
    signature: inspect.Signature, static: Sequence[str], args: Sequence[Any], named: dict[str, Any]
) -> tuple[list[str], list[tuple[Any, ...]]]:
    """The names of the arguments of a batch, and those of each example, whatever the numbers in it are.

    Raises:
        DataError: the arguments differ in the number of examples, or none has any.
    """
    given = signature.bind(*args, **named).arguments
    moving = [name for name in given if name not in static]
    count = same_length([(name, length) for name in moving for length in _lengths(given[name])])
    columns = [_spread(x, count) if name in moving else [x] * count for name, x in given.items()]
    return list(given), list(zip(*columns, strict=True))


def look_of(args: Sequence[Any], named: dict[str, Any]) -> tuple[Any, int]:
    """What a batch looks like from outside, in what its examples are and about how many; and how many. None and 0 if
    its arguments differ in that. All of them are moving.
    """
    lengths: list[int] = []
    looks = [_look(x, lengths) for x in (*args, *named.values())]
    if not lengths or lengths.count(lengths[0]) != len(lengths):
        return None, 0
    return (lengths[0].bit_length(), tuple(named), *looks), lengths[0]


def _look(x: Any, lengths: list[int]) -> Any:
    """Of what kind an argument is, and what tuples and dicts hold; how many examples it has is added to the lengths."""
    if isinstance(x, np.ndarray):
        if x.ndim:
            lengths.append(len(x))
        return x.dtype, x.ndim
    if isinstance(x, (tuple, dict)):
        items = x.values() if isinstance(x, dict) else x
        return type(x), tuple(x if isinstance(x, dict) else ()), *[_look(item, lengths) for item in items]
    if isinstance(x, list):
        lengths.append(len(x))
    return type(x)


def by_rows(take: Callable[..., Any], args: Sequence[Any], named: dict[str, Any], count: int) -> list[Any]:
    """What a `taker` gives for each of so many examples of a batch of which all arguments are moving."""
    return [take(*row) for row in zip(*[_spread(x, count) for x in (*args, *named.values())], strict=True)]


def taker(
    function: Callable[..., Any], signature: inspect.Signature, args: Sequence[Any], named: dict[str, Any]
) -> Callable[..., Any]:
    """A function that takes arguments like these by place, those that are passed by name after the others."""
    return by_place(function, signature, [*list(signature.parameters)[: len(args)], *named])


def by_place(function: Callable[..., Any], signature: inspect.Signature, names: Collection[str]) -> Callable[..., Any]:
    """A function that takes these arguments by place."""
    parameters, names = list(signature.parameters.values()), list(names)
    count = 0
    while count < len(names) and parameters[count].name == names[count] and parameters[count].kind <= BY_PLACE:
        count += 1
    if count == len(names):
        return function
    by_name = names[count:]
    return lambda *row: function(*row[:count], **dict(zip(by_name, row[count:], strict=True)))


def called(function: Callable[..., Any], signature: inspect.Signature, given: dict[str, Any]) -> Any:
    """What a function gives for arguments by name, each in the way in which the function takes it."""
    bound = inspect.BoundArguments(signature, given)
    return function(*bound.args, **bound.kwargs)


def same_length(lengths: list[tuple[str, int]]) -> int:
    """How many examples there are, by the length of each argument.

    Raises:
        DataError: they differ, or there is none.
    """
    if not lengths:
        raise DataError("a batch needs an argument with an example in each row")
    if len({length for _, length in lengths}) > 1:
        raise DataError(f"the arguments of a batch have as many examples each, not {dict(lengths)}")
    if not lengths[0][1]:
        raise DataError("a batch of no examples has no mean: expected at least one")
    return lengths[0][1]


def _lengths(x: Any) -> list[int]:
    """How many examples there are in each list or array of an argument."""
    if isinstance(x, (tuple, dict)):
        return [length for item in (x.values() if isinstance(x, dict) else x) for length in _lengths(item)]
    return [len(x)] if isinstance(x, list) or (isinstance(x, np.ndarray) and x.ndim) else []


def _spread(x: Any, count: int) -> Sequence[Any]:
    """An argument in each example; what is neither list nor array, such as `self`, belongs to all of them."""
    if isinstance(x, dict) and x:
        rows: list[dict[Any, Any]] = [{} for _ in range(count)]
        for key, column in x.items():
            for row, item in zip(rows, _spread(column, count), strict=True):
                row[key] = item
        return rows
    if isinstance(x, tuple) and x:
        made = zip(*[_spread(column, count) for column in x], strict=True)
        return list(made) if type(x) is tuple else list(map(getattr(type(x), "_make", type(x)), made))
    if isinstance(x, np.ndarray) and x.ndim:
        return list(x.tolist()) if x.ndim == 1 else list(x)
    return x if isinstance(x, list) else [x] * count
