"""What the tests of compiled functions ask of them: the results of eager code, and that they were really lifted."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import wengert
from wengert import Value

np = pytest.importorskip("numpy")  # else the tests that import this are skipped
fuzz = pytest.importorskip("tools.qa.lifting_fuzz")
difference, gradients = fuzz.difference, fuzz.gradients

__all__ = [
    "CLOSE",
    "Numbers",
    "batch_of",
    "by_type",
    "difference",
    "entries",
    "gradients",
    "lifted",
    "line_of",
    "linear",
    "same",
    "specializations",
    "warned",
]

CLOSE = 1e-12
Numbers = list[Any]


def same(got: Any, want: Any, parameters: list[Value]) -> Any:
    """The same number, of the same type, and the same gradients of all parameters; these gradients."""
    assert type(got) is type(want)
    slopes, wanted = gradients(got, parameters), gradients(want, parameters)
    with np.errstate(invalid="ignore"):  # infinities are compared too
        assert difference(got.data, want.data) < CLOSE
        assert difference(slopes, wanted) < CLOSE
    return wanted


def batch_of(function: Callable[..., Any], *columns: Any) -> Value:
    """The mean by the engine."""
    return wengert.mean([function(*example) for example in zip(*columns, strict=True)])


def lifted(compiled: Any) -> None:
    """It was lifted for all arguments that it was called with: nothing was left to the engine."""
    assert "uncompiled" not in compiled.report()
    assert all(entry.specializations for entry in compiled._server.entries.values())


def entries(compiled: Any) -> int:
    """How many forms of arguments were told apart."""
    return len(compiled._server.entries)


def specializations(compiled: Any) -> list[int]:
    """How many recordings there are for each form of arguments."""
    return [len(entry.specializations) for entry in compiled._server.entries.values()]


def warned(*calls: Callable[[], Any]) -> list[str]:
    """What these calls warn of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for call in calls:
            call()
    return [str(w.message) for w in caught]


def line_of(function: Callable[..., Any], further: int) -> str:
    """As a message names a line of a function: so many lines below its first, the decorator's included."""
    code = function.__code__
    return f"{Path(code.co_filename).name}, line {code.co_firstlineno + further}"


def linear() -> tuple[Any, Value, Value]:
    """A compiled squared error, and its two parameters."""
    w, b = Value(0.7), Value(-0.2)

    @wengert.compile
    def loss(x: float, y: float) -> Any:
        return (w * x + b - y).tanh() ** 2

    return loss, w, b


def by_type(w: Value, x: float, k: Any) -> Any:
    """1, True and 1.0 are equal, and not the same."""
    return w * x if k is True else w + x if isinstance(k, int) else w - x
