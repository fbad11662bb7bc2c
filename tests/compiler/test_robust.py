"""Compiled functions in threads, functions that raise, and very long ones."""

from __future__ import annotations

import builtins
import enum
import threading
from typing import Any

import pytest

import wengert
from tests.compiler.checks import CLOSE, Numbers, difference, gradients, lifted, same
from wengert import Value

np = pytest.importorskip("numpy")


class Part(enum.StrEnum):
    REAL = "real"


def test_a_name_may_be_of_a_subclass_of_str() -> None:
    """Compiled tracers take what Python takes, so no branch on a TypeError is recorded."""

    def f(x: Any) -> Any:
        try:
            return getattr(x, Part.REAL) * 2.0
        except TypeError:
            return x * 3.0

    compiled = wengert.compile(f)
    assert [compiled(x) for x in (1.5, 2.5, -1.0)] == [3.0, 5.0, -2.0]
    lifted(compiled)


def test_threads() -> None:
    w = [Value(0.3), Value(-0.2), Value(0.9)]

    @wengert.compile
    def loss(x: Numbers) -> Any:
        v = [wi * xi for wi, xi in zip(w, x, strict=True)]
        return sum(vi.tanh() for vi in v) * (v[0] if v[0].data > 0 else v[1])

    X = np.random.default_rng(8).normal(size=(40, 3))
    wants = [loss.function(x).data for x in X.tolist()]
    faults: list[Any] = []
    start = threading.Barrier(4)

    def work(number: int) -> None:
        try:
            start.wait()
            for turn in range(60):
                n = (turn * 7 + number * 11) % 40
                results = [loss(X[n].tolist()).data, loss.mean(X[n : n + 1]).data, loss.map(X[[n, 0]])[0]]
                eager = loss.function(X[n].tolist())
                assert type(eager.data) is float
                assert results == pytest.approx([wants[n]] * 3, rel=1e-12)
        except BaseException as fault:  # told in the main thread
            faults.append(fault)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not faults
    lifted(loss)


@pytest.mark.parametrize("kind", [ValueError, KeyError, ZeroDivisionError, KeyboardInterrupt])
def test_what_the_function_raises_comes_out(kind: type[BaseException]) -> None:
    w = Value(0.7)

    @wengert.compile
    def loss(x: float) -> Any:
        if x > 5.0:
            raise kind("too much")
        return w * x

    plain = builtins.max, builtins.min
    for call in (
        lambda: loss(6.0),
        lambda: loss.mean([6.0, 1.0]),
        lambda: loss.mean([1.0, 6.0]),
        lambda: loss.map([1.0, 7.0]),
    ):
        with pytest.raises(kind, match="too much"):
            call()
        assert (builtins.max, builtins.min) == plain
        assert type(w.data) is float
        assert type((w * 2.0).data) is float
        same(loss(2.0), w * 2.0, [w])
        same(loss.mean([2.0, 4.0]), w * 3.0, [w])
    with pytest.raises(kind, match="too much"):
        loss(6.0)
    lifted(loss)


@pytest.mark.once  # what is long is the array program
def test_a_chain_of_100_000_terms() -> None:
    ws = [Value(0.001 * (n % 100)) for n in range(200)]

    @wengert.compile
    def total(x: float) -> Any:
        made: Any = 0.0
        for n in range(100_000):
            made = made + ws[n % 200]
        return made * x

    for x in (1.0, 2.0):
        result = total(x)
        slopes = gradients(result, ws)
        assert result.data == pytest.approx(x * 500 * sum(w.data for w in ws), rel=1e-10)
        assert difference(slopes, [500.0 * x] * 200) < CLOSE
    lifted(total)


@pytest.mark.once  # what is long is the array program
def test_a_sum_of_100_000_terms_of_its_own() -> None:
    ws = [Value(0.001 * (n % 100)) for n in range(100_000)]
    total = wengert.compile(lambda x: sum(w * x for w in ws))
    slopes = gradients(total(2.0), ws)
    assert difference(slopes, [2.0] * len(ws)) < CLOSE
    lifted(total)


def test_a_deep_chain() -> None:
    w = Value(0.999)

    @wengert.compile
    def deep(x: float) -> Any:
        v: Any = x
        for _ in range(1500):
            v = v * w
        return v

    result = deep(1.0)
    assert result.data == pytest.approx(0.999**1500, rel=1e-11)
    assert gradients(result, [w])[0] == pytest.approx(1500 * 0.999**1499, rel=1e-11)
