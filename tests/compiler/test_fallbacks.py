"""Functions that cannot be lifted: the engine computes, and one warning says why."""

from __future__ import annotations

import math
import random
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import wengert
from tests.compiler.checks import CLOSE, batch_of, difference, lifted, line_of, same, specializations, warned
from wengert import Value

np = pytest.importorskip("numpy")


def leaking() -> list[tuple[str, Callable[..., Any]]]:
    """Functions that take a number out of the graph, each on the line after its first."""
    w = Value(0.7)

    def to_float(x: float) -> Any:
        return w * float((w * x).data)

    def to_math(x: float) -> Any:
        return w * math.exp((w * x).data)

    def to_text(x: float) -> Any:
        return w * float(f"{(w * x).data}")

    def to_str(x: float) -> Any:
        return w * float(str((w * x).data))

    def to_int(x: float) -> Any:
        return w * int((w * x * 10).data)

    def to_round(x: float) -> Any:
        return w * round((w * x * 10).data)

    def to_index(x: float) -> Any:
        return w * {0.7: 1.0}.get((w * x).data, 2.0)

    def to_repr(x: float) -> Any:
        return w * float(f"{(w * x).data!r}")

    functions = to_float, to_math, to_text, to_str, to_int, to_round, to_index, to_repr
    return [(function.__name__, function) for function in functions]


@pytest.mark.parametrize("name", [name for name, _ in leaking()])
def test_numbers_that_leave_the_graph(name: str) -> None:
    """They are recorded, or the recording holds for that number alone, and the report says on which line."""
    function = dict(leaking())[name]
    loss = wengert.compile(function)
    w = function.__closure__[0].cell_contents  # type: ignore[index]
    X = [0.5, 1.5, 2.5]
    for _ in range(4):
        for x in X:
            same(loss(x), function(x), [w])
        same(loss.mean(X), batch_of(function, X), [w])
        assert difference(loss.map(X), [function(x).data for x in X]) < CLOSE
    lifted(loss)
    recorded = name in ("to_float", "to_math", "to_int", "to_round")
    assert specializations(loss) == ([1, 1] if recorded else [3, 3])
    assert (line_of(function, 1) in loss.report()) is (name != "to_float")


@pytest.mark.parametrize("name", [name for name, _ in leaking()])
def test_more_than_32_numbers_that_leave_the_graph(name: str) -> None:
    """Where each is a specialization the engine computes, and one warning says where the number was taken out."""
    function = dict(leaking())[name]
    loss = wengert.compile(function)
    w = function.__closure__[0].cell_contents  # type: ignore[index]
    X = [0.25 * n + 0.1 for n in range(40)]

    def check() -> None:
        for x in X:
            same(loss(x), function(x), [w])

    said = warned(check, check)
    if name in ("to_float", "to_math", "to_int", "to_round"):
        assert said == []
        assert specializations(loss) == [1]
    else:
        assert len(said) == 1
        assert said[0].startswith(f"{name} runs uncompiled: it takes more than 32 specializations")
        assert line_of(function, 1) in said[0]
        assert said[0].partition(": ")[2] in loss.report()


def test_a_gradient_that_is_read() -> None:
    w = Value(0.7)
    w.grad = 3.0
    loss = wengert.compile(lambda x: w * x * w.grad)
    said = warned(lambda: loss(2.0), lambda: loss(2.0))
    assert len(said) == 1
    assert "gradient" in said[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        w.grad = 5.0
        assert loss(2.0).data == pytest.approx(7.0)


@pytest.mark.parametrize("draw", [random.random, np.random.random], ids=["random", "numpy"])
def test_random_numbers_are_refused(draw: Callable[[], float]) -> None:
    w = Value(0.7)
    loss = wengert.compile(lambda x: w * x * float(draw()))
    said = warned(lambda: loss(2.0), lambda: loss(2.0))
    assert len(said) == 1
    assert "random" in said[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert loss(2.0).data != loss(2.0).data


def test_a_counter_is_refused() -> None:
    w, calls = Value(0.7), [0]

    @wengert.compile
    def loss(x: float) -> Any:
        calls[0] += 1
        return w * x * calls[0]

    assert [len(warned(lambda: loss(2.0))) for _ in range(6)] == [0, 0, 0, 1, 0, 0]


def test_a_backward_inside_is_left_to_the_engine() -> None:
    """A derivative of a derivative by hand."""
    w = Value(0.7)

    @wengert.compile
    def loss(x: float) -> Any:
        inner = Value(2.0)
        (inner * inner * w).backward()
        return w * x * inner.grad

    want = loss.function(2.0).data
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(3):
            assert loss(2.0).data == pytest.approx(want)


@pytest.mark.parametrize(
    ("step", "said"), [("data", "changes the data or the gradient of a Value"), ("grad", "reads the gradient")]
)
def test_a_function_that_writes_or_reads_state_stays_with_the_engine(step: str, said: str) -> None:
    w = Value(0.7)

    @wengert.compile
    def loss(x: float) -> Any:
        if step == "data":
            w.data = 0.25
        return w * x if step == "data" else w * x + w.grad

    with pytest.warns(UserWarning, match=said):
        assert loss(2.0).data == (0.5 if step == "data" else 1.4)
    w.data, w.grad = 0.5, 3.0
    assert loss(2.0).data == (0.5 if step == "data" else 4.0)
    assert said in loss.report()
