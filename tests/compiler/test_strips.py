"""Large batches run in strips of examples: the same numbers however they are cut, and little memory."""

from __future__ import annotations

import math
import tracemalloc
from typing import Any

import pytest

import wengert
from tests.compiler.checks import CLOSE, batch_of, difference, gradients, same, specializations
from wengert import Value
from wengert.compiler import policy
from wengert.compiler.budget import Budget

np = pytest.importorskip("numpy")

BACKENDS = pytest.mark.parametrize("backend", ["numpy", "native"])
W, B = Value(0.7), Value(-0.2)
COUNT = 203  # of examples, which no strip divides


@pytest.fixture(params=["one", "strips", "unlocked strips"])
def cut(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How batches are cut: not at all; in strips of 8; so, and one after another without the interpreter's lock."""
    if request.param != "one":
        monkeypatch.setattr(policy, "STRIPS", (8, 8, 8))
        monkeypatch.setattr(policy, "ROOM", 1)
    if request.param == "unlocked strips":
        monkeypatch.setattr(policy, "UNLOCKED", 1)
        monkeypatch.setattr(policy, "PAUSE", 100)
    return str(request.param)


def line(x: float, y: float) -> Any:
    return (W * x + B - y).tanh() ** 2


def three_ways(x: float, y: float) -> Any:
    if x > 1.0:
        return W * x * y
    return (B * x).exp() if y > 0.0 else (W - y) ** 2


def data(seed: int = 0) -> tuple[Any, Any]:
    draw = np.random.default_rng(seed)
    return draw.normal(size=COUNT), draw.normal(size=COUNT)


@BACKENDS
@pytest.mark.parametrize("function", [line, three_ways])
def test_the_numbers_are_the_functions(function: Any, backend: str, cut: str) -> None:
    compiled = wengert.compile(function, backend=backend)
    X, Y = data()
    plain = [function(x, y) for x, y in zip(X.tolist(), Y.tolist(), strict=True)]
    for _ in range(3):
        assert difference(compiled.map(X, Y), [v.data for v in plain]) < CLOSE
        same(compiled.mean(X, Y), batch_of(function, X.tolist(), Y.tolist()), [W, B])
        same(
            compiled.sum(X, Y),
            wengert.sum([function(x, y) for x, y in zip(X.tolist(), Y.tolist(), strict=True)]),
            [W, B],
        )
        with wengert.no_grad():
            assert difference(compiled.mean(X, Y).data, math.fsum(v.data for v in plain) / COUNT) < CLOSE
    assert "uncompiled" not in compiled.report()


@BACKENDS
def test_rows_of_every_kind_of_array(backend: str, cut: str) -> None:
    compiled = wengert.compile(lambda x, k: wengert.dot([W, B], x) * k, backend=backend)
    draw = np.random.default_rng(1)
    X, chosen = draw.normal(size=(COUNT, 2)), draw.integers(-9, 9, COUNT)
    want = (X @ [W.data, B.data]) * chosen
    wide = np.repeat(X, 2, 0)
    for given in (X, np.asfortranarray(X), wide[::2], X.tolist()):
        for whole in (chosen, chosen.astype(np.int32), chosen[::-1].copy()[::-1]):
            assert difference(compiled.map(given, whole), want) < CLOSE


@pytest.mark.once
def test_a_row_comes_to_the_same_bits_in_every_batch(cut: str) -> None:
    pytest.importorskip("llvmlite")
    for function in (line, three_ways):
        compiled = wengert.compile(function, backend="native")
        X, Y = data(2)
        whole = compiled.map(X, Y)
        draw = np.random.default_rng(3)
        for _ in range(6):
            some = np.sort(draw.choice(COUNT, draw.integers(1, COUNT), replace=False))
            assert (compiled.map(X[some], Y[some]) == whole[some]).all()
        assert (np.concatenate([compiled.map(X[n : n + 1], Y[n : n + 1]) for n in range(COUNT)]) == whole).all()


@BACKENDS
def test_a_sum_is_the_same_whatever_ran_before(backend: str, cut: str) -> None:
    """How the last batch was shared out is a hint, and no more."""
    compiled = wengert.compile(three_ways, backend=backend)
    batches = [data(seed) for seed in range(3)]
    batches += [(abs(x) + 1.5, y) for x, y in batches] + [(-abs(x), abs(y)) for x, y in batches]  # each one way alone
    for X, Y in batches:
        compiled.mean(X, Y)

    def bits(X: Any, Y: Any) -> list[float]:
        total = compiled.mean(X, Y)
        return [total.data, *gradients(total, [W, B])]

    first = [bits(*batch) for batch in batches]
    for order in ([5, 0, 8, 0, 3, 5, 0, 6, 1, 2, 8, 8, 1], range(8, -1, -1)):
        assert [bits(*batches[n]) for n in order] == [first[n] for n in order]


@BACKENDS
def test_rows_that_no_specialization_holds_for(backend: str, cut: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that are left to the function itself lie in several strips."""
    monkeypatch.setattr(Budget, "affords", lambda budget, entry, cost: not entry.specializations)
    compiled = wengert.compile(three_ways)
    if backend == "native":
        pytest.importorskip("llvmlite")
    X, Y = data(4)
    for _ in range(2):
        same(compiled.mean(X, Y), batch_of(three_ways, X.tolist(), Y.tolist()), [W, B])
        plain = [three_ways(x, y).data for x, y in zip(X.tolist(), Y.tolist(), strict=True)]
        assert difference(compiled.map(X, Y), plain) < CLOSE
    assert specializations(compiled) == [1]


@BACKENDS
def test_an_index_out_of_bounds_in_a_strip(backend: str, cut: str) -> None:
    table = [Value(0.1 * n) for n in range(5)]
    compiled = wengert.compile(lambda k, x: table[k] * x, backend=backend)
    chosen, X = np.arange(COUNT) % 5 - 2, np.linspace(0.0, 1.0, COUNT)
    want = np.array([table[k].data for k in chosen]) * X
    for _ in range(3):
        assert difference(compiled.map(chosen, X), want) < CLOSE
    chosen[150] = 5
    for _ in range(2):
        with pytest.raises(IndexError):
            compiled.map(chosen, X)
    chosen[150] = -5
    assert difference(compiled.map(chosen, X)[150], table[0].data * X[150]) < CLOSE


@BACKENDS
@pytest.mark.parametrize("spoilt", [0, 100, COUNT - 1])
def test_one_row_that_is_not_finite(spoilt: int, backend: str, cut: str) -> None:
    compiled = wengert.compile(lambda x: W * x.exp() if isinstance(x, Value) else W * wengert.exp(x), backend=backend)
    X = np.linspace(-1.0, 1.0, COUNT)
    compiled.map(X), compiled.mean(X)
    X[spoilt] = 800.0
    for _ in range(2):
        found = compiled.map(X)
        assert np.flatnonzero(np.isinf(found)).tolist() == [spoilt]
        assert difference(np.delete(found, spoilt), 0.7 * np.exp(np.delete(X, spoilt))) < CLOSE
        assert compiled.mean(X).data == math.inf


@BACKENDS
def test_results_that_are_lists_or_the_same_for_all(backend: str, cut: str) -> None:
    X, Y = data(5)
    lists = wengert.compile(lambda x, y: [[W * x, B * y], [x * y, W - B]], backend=backend)
    want = np.stack([0.7 * X, -0.2 * Y, X * Y, np.full(COUNT, 0.9)], 1).reshape(COUNT, 2, 2)
    constant = wengert.compile(lambda x, y: W * B, backend=backend)
    for _ in range(3):
        assert difference(lists.map(X, Y), want) < CLOSE
        assert difference(constant.map(X, Y), np.full(COUNT, -0.14)) < CLOSE
        same(constant.mean(X, Y), W * B, [W, B])
        with pytest.raises(wengert.errors.ArgumentError, match="mean needs one Value an example"):
            lists.mean(X, Y)


PARTS = 9


def mixed(x: Any) -> list[Any]:
    """Linear, constant and nonlinear results in turn, so that rows of their derivatives change places."""
    a = [wengert.exp(x[n]) * x[n + 1] for n in range(8)]
    return [x[8] - 2.0 * x[0], *a, 0.5 * x[3] + x[4], wengert.tanh(x[0] + x[8]), 3.0 * x[7], x[1] * x[2]]


def mixed_jacobian(X: Any) -> Any:
    found = np.zeros((len(X), 13, PARTS))
    found[:, 0, [8, 0]], found[:, 9, [3, 4]], found[:, 11, 7] = (1.0, -2.0), (0.5, 1.0), 3.0
    for n in range(8):
        found[:, n + 1, n], found[:, n + 1, n + 1] = np.exp(X[:, n]) * X[:, n + 1], np.exp(X[:, n])
    found[:, 10, 0] = found[:, 10, 8] = 1.0 - np.tanh(X[:, 0] + X[:, 8]) ** 2
    found[:, 12, 1], found[:, 12, 2] = X[:, 2], X[:, 1]
    return found


@BACKENDS
@pytest.mark.parametrize("count", [1, 2, 3, 7, 8, 9, COUNT])
def test_results_are_put_together_in_the_callers_array(count: int, backend: str, cut: str) -> None:
    X = np.random.default_rng(6).normal(size=(count, PARTS))
    compiled = wengert.compile(wengert.jacobian(mixed), backend=backend)
    for _ in range(3):
        assert np.abs(compiled.map(X) - mixed_jacobian(X)).max() < 1e-14
    steps = compiled._server.last.latest.kernel.program.steps
    assert [step.out.name for step in steps if type(step).__name__ == "Assemble"] == ["result"], "no copy of it"
    X[count // 2, 2] = 800.0
    found = compiled.map(X)
    assert np.flatnonzero(~np.isfinite(found).all((1, 2))).tolist() == [count // 2]
    found, X = (np.delete(x, count // 2, 0) for x in (found, X))
    assert np.abs(found - mixed_jacobian(X)).max(initial=0.0) < 1e-14


def test_products_by_blas_are_told_by_the_whole_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """However it is cut; below the count, it is machine code's, however it is cut."""
    pytest.importorskip("llvmlite")
    monkeypatch.setattr(policy, "STRIPS", (8, 8, 8))
    monkeypatch.setattr(policy, "ROOM", 1)
    monkeypatch.setattr(policy, "MATRIX", 1)
    monkeypatch.setattr(policy, "PRODUCTS", 600)
    rows = [[Value(0.1 * n - 0.03 * k) for k in range(6)] for n in range(5)]
    compiled = wengert.compile(lambda x: sum(wengert.dot(row, x).tanh() for row in rows))
    X = np.random.default_rng(6).normal(size=(100, 6))
    counts: list[int] = []
    for _ in range(2):
        compiled.mean(X[:7])
    (made,) = next(iter(compiled._server.entries.values())).specializations
    assert made.limit == 20
    both = made.kernel.forward_backward
    made.kernel.forward_backward = lambda arrays, *rest: (counts.append(len(arrays[0])), both(arrays, *rest))[1]
    for count, cuts in ((19, []), (20, [8, 8, 4]), (100, [8] * 12 + [4])):
        counts.clear()
        same(compiled.mean(X[:count]), batch_of(compiled.function, X[:count].tolist()), rows[0])
        assert counts == cuts


@BACKENDS
@pytest.mark.once  # interpreted, so many rows take minutes
def test_a_large_batch_takes_little_more_than_its_results(backend: str) -> None:
    compiled = wengert.compile(three_ways, backend=backend)
    draw = np.random.default_rng(7)
    X, Y = draw.normal(size=400_000), draw.normal(size=400_000)
    for x, y in ((2.0, 1.0), (0.0, 1.0), (0.0, -1.0)):
        compiled.map([x], [y]), compiled.mean([x], [y])
    for _ in range(4):
        compiled.map(X[:100], Y[:100]), compiled.mean(X[:100], Y[:100])
    one_way = np.abs(X) + 1.5
    for given in (X, one_way):
        for call, room in ((compiled.map, X.nbytes), (compiled.mean, 0)):
            tracemalloc.start()
            call(given, Y)
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            assert peak < room + ((17 if backend == "native" else 64) << 20)
