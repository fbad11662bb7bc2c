"""What `map` gives where the results of a function make no regular array: an array for each part of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from wengert.compiler.record.structure import Aux
from wengert.derivatives import PyTree, tree_flatten, tree_unflatten

__all__ = ["ResultLayout", "flat_result"]


@dataclass(frozen=True)
class ResultLayout:
    """The structure of results that differ in shape among themselves, as of a value and a gradient.

    Lists, tuples and dicts whose items make no regular array stay what they are, with an array in place of each number
    or regular array.
    """

    tree: PyTree  # with the shapes of the arrays

    @staticmethod
    def of(result: Any, keep_tuples: bool = False) -> ResultLayout | None:
        """Return the layout of a result, which may `keep_tuples`; None if it is a number or a regular array."""
        is_pair = keep_tuples and isinstance(result, tuple)

        def leaf(x: Any, _: Any) -> Any:
            if isinstance(x, (list, tuple, dict)) and not isinstance(x, Aux):
                return None if (is_pair and x is result) or isinstance(x, dict) else flat_result(x)[0]
            return np.shape(x) if isinstance(x, np.ndarray) else ()

        tree = tree_flatten(result, leaf)
        return ResultLayout(tree) if isinstance(tree, PyTree) else None

    def leaves(self, result: Any) -> list[Any] | None:
        """List the Values and numbers of a result; None if it has another structure."""
        if ResultLayout.of(result, keep_tuples=True) != self and ResultLayout.of(result) != self:
            return None
        leaves: list[Any] = []
        tree_unflatten(self.tree, lambda _, part: leaves.extend(flat_result(part)[1]), result)
        return leaves

    def build(self, rows: Any) -> Any:
        """Return the result for a batch, from an array with the numbers of an example in each row."""
        at = 0

        def part(shape: tuple[int, ...]) -> Any:
            nonlocal at
            start, at = at, at + int(np.prod(shape))
            return np.ascontiguousarray(rows[:, start:at]).reshape(len(rows), *shape)

        return tree_unflatten(self.tree, part)


def flat_result(result: Any) -> tuple[tuple[int, ...] | None, list[Any]]:
    """Return the shape of a result and its numbers; the shape is None if it is not a regular array."""
    if isinstance(result, Aux):
        return flat_result(result.result)
    if isinstance(result, np.ndarray) and not result.ndim:
        return flat_result(result.item())
    if isinstance(result, dict):
        return None, [x for item in result.values() for x in flat_result(item)[1]]
    if isinstance(result, (list, tuple, np.ndarray)):
        parts = [flat_result(item) for item in result]
        shapes = {shape for shape, _ in parts}
        flat = [x for _, xs in parts for x in xs]
        if len(shapes) != 1 or None in shapes:
            return None, flat
        inner = shapes.pop()
        assert inner is not None
        return (len(parts), *inner), flat
    return (), [result]
