"""Reduces the results of a function for the examples of a batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert.compiler.trace import Aux, numbers_in, primal_of
from wengert.engine import Value
from wengert.errors import ArgumentError
from wengert.functions import mean
from wengert.functions import sum as total

__all__ = ["no_number", "reduce_results", "reduce_values"]

PLAIN: frozenset[type] = frozenset({Value, float, int})  # the kinds of nearly all results


def reduce_results(results: list[Any], how: str) -> Any:
    """Return the mean, the sum or an array of the results (`how`: mean, sum, map).

    Raises:
        ArgumentError: the results differ in shape.
    """
    if how != "map":
        return reduce_values(results, how)
    try:
        return np.array([x.data if type(x) is Value else _numbers(x) for x in results])
    except ValueError:
        raise ArgumentError("map gives an array: the function's results differ in shape, or are irregular") from None


def _numbers(x: Any) -> Any:
    """Return the numbers of a result, which is mostly one Value or a row of them."""
    if type(x) in (list, tuple) and set(map(type, x)) == {Value}:
        return [v.data for v in x]
    return numbers_in(x)


def no_number(result: Any) -> str:
    """Describe what a function returns, or returns in lists, that is no Value and no real number; empty if there is
    none.
    """
    if isinstance(result, Aux):
        return no_number(result.result)
    if isinstance(result, (list, tuple)) or (isinstance(result, np.ndarray) and result.dtype == object):
        items = result.flat if isinstance(result, np.ndarray) else result
        return next((found for found in map(no_number, items) if found), "")
    if isinstance(result, (Value, int, float)):
        return ""
    if isinstance(result, (np.ndarray, np.generic)) and result.dtype.kind in "fiub":
        return ""
    return "None" if result is None else f"a {type(result).__name__}"


def reduce_values(results: Sequence[Any], how: str) -> Value:
    """Return the mean or the sum of results as a Value of the engine.

    Raises:
        ArgumentError: the function gives more than one Value per example.
    """
    if not PLAIN.issuperset(map(type, results)):
        results = list(map(primal_of, results))
        for x in results:
            if isinstance(x, (list, tuple)) or (isinstance(x, np.ndarray) and x.ndim):
                raise ArgumentError(
                    f"{how} needs one Value an example, and the function gives a {type(x).__name__}: use map"
                )
    made = mean(results) if how == "mean" else total(results)
    return made if isinstance(made, Value) else Value(made)
