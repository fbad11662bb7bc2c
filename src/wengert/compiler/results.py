"""Reduces the results of a function for the examples of a batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert.compiler.record import Aux, ResultLayout, numbers_in, primal_of
from wengert.engine import Value
from wengert.errors import ArgumentError
from wengert.functions import mean
from wengert.functions import sum as total

__all__ = ["no_number", "reduce_results", "reduce_values", "rows_of_numbers"]

PLAIN: frozenset[type] = frozenset({Value, float, int})  # the kinds of nearly all results


def reduce_results(results: list[Any], how: str, keep_tuples: bool = False) -> Any:
    """Return the mean, the sum or the arrays of the results (`how`: mean, sum, map), which may `keep_tuples`.

    Raises:
        ArgumentError: the results differ in structure.
    """
    if how != "map":
        return reduce_values(results, how)
    layout = ResultLayout.of(results[0], keep_tuples)
    if layout is not None and not no_number(results[0]):
        return layout.build(rows_of_numbers(results, layout))
    return rows_of_numbers(results, None)


def rows_of_numbers(results: Sequence[Any], layout: ResultLayout | None) -> Any:
    """Return an array with the numbers of each result.

    Raises:
        ArgumentError: the results differ in structure.
    """
    try:
        if layout is not None:
            results = [layout.leaves(x) for x in results]
        return np.array(numbers_in(results))
    except (TypeError, ValueError):
        raise ArgumentError("map needs results of the same structure for all examples: they differ") from None


def no_number(result: Any) -> str:
    """Describe what a function returns, or returns in lists, that is no Value and no real number; empty if there is
    none.
    """
    if isinstance(result, Aux):
        return no_number(result.result)
    if isinstance(result, (list, tuple, dict)) or (isinstance(result, np.ndarray) and result.dtype == object):
        items = (
            result.values() if isinstance(result, dict) else result.flat if isinstance(result, np.ndarray) else result
        )
        return next((description for description in map(no_number, items) if description), "")
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
    reduced = mean(results) if how == "mean" else total(results)
    return reduced if isinstance(reduced, Value) else Value(reduced)
