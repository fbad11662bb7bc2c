"""Whole models, compiled and eager, side by side: the same value and gradients, and really lifted."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest

import wengert
from tests.compiler import checks as lifting_checks
from tests.compiler.checks import CLOSE, difference
from wengert import Value

np = pytest.importorskip("numpy")

__all__ = ["compare", "flat", "lifted", "move", "normal", "same", "values"]


def values(generator: random.Random, *shape: int, spread: float = 0.6) -> Any:
    """Nested lists of parameters."""
    if not shape:
        return Value(generator.gauss(0.0, spread))
    return [values(generator, *shape[1:], spread=spread) for _ in range(shape[0])]


def flat(tree: Any) -> list[Value]:
    """The parameters of nested lists."""
    return [p for item in tree for p in flat(item)] if isinstance(tree, (list, tuple)) else [tree]


def normal(seed: int, *shape: int) -> Any:
    return np.random.default_rng(seed).normal(size=shape)


def same(got: Value, want: Value, parameters: list[Value]) -> None:
    """A Value, the same as `want`, of which some gradient is not 0: else there is nothing that could differ."""
    assert type(got) is Value
    assert np.abs(lifting_checks.same(got, want, parameters)).max() > 0.0


def lifted(compiled: Any, most: int, paths: int | None = 1) -> None:
    """It was lifted at each shape of its arguments, on so many paths, to at most so many array operations."""
    lifting_checks.lifted(compiled)
    report = compiled.report()
    for entry in compiled._server.entries.values():
        assert not entry.fallback_reason
        assert paths is None or len(entry.specializations) == paths
        for path in entry.specializations:
            steps = path.lifted.program.size
            assert 0 < steps <= most, report
            assert f"became {steps} array" in report


def move(parameters: list[Value], seed: int) -> None:
    """Other numbers, so that what was recorded cannot be what is computed."""
    generator = random.Random(seed)
    for p in parameters:
        p.data += generator.gauss(0.0, 0.1)


def compare(
    function: Callable[..., Any], parameters: list[Value], columns: Sequence[Any], most: int, paths: int | None = 1
) -> Any:
    """One example at a time, the mean and the sum of a batch, before and after the parameters have moved.

    Args:
        function: one example in, a Value out.
        parameters: what it captures.
        columns: for each argument the examples.
        most: how many array operations there may be.
        paths: on how many paths; None for any number of them.
    """
    compiled = wengert.compile(function)
    examples = list(zip(*[c.tolist() if hasattr(c, "tolist") else c for c in columns], strict=True))
    for turn in range(2):
        for example in examples[:3]:
            same(compiled(*example), function(*example), parameters)
        eager = [function(*example) for example in examples]
        same(compiled.mean(*columns), wengert.mean(eager), parameters)
        same(compiled.sum(*columns), wengert.sum(eager), parameters)
        assert difference(compiled.map(*columns), [v.data for v in eager]) < CLOSE
        move(parameters, turn)
    lifted(compiled, most, paths)
    return compiled
