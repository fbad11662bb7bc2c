"""The blocks `strict()` and `detect_anomaly()`: kept lines, other modes, threads, compiled functions, `fit`."""

from __future__ import annotations

import inspect
import math
import threading
from math import inf
from pathlib import Path
from typing import Any

import pytest

import wengert
from tests.threads import together
from wengert import Value, detect_anomaly, losses, modes, nn, no_grad, optim, strict
from wengert.checking import anomalies
from wengert.checking.anomalies import line_of
from wengert.errors import ArgumentError, NonFiniteError
from wengert.graph import Graph

# ------------------------------------------------------------------------------------- lines


def users_module(tmp_path: Path, text: str) -> dict[str, Any]:
    path = tmp_path / "model.py"
    path.write_text(text, encoding="utf-8")
    names: dict[str, Any] = {}
    exec(compile(text, str(path), "exec"), names)
    return names


def test_the_line_is_the_users_however_deep_in_the_library_it_happens(tmp_path: Path) -> None:
    names = users_module(
        tmp_path,
        "import wengert\n"
        "def predict(x):\n"
        "    hidden = x.exp()\n"
        "    return wengert.softmax([hidden, 1.0])\n"
        "def norm(xs):\n"
        "    return wengert.mean(x * 1e200\n"
        "                        * x for x in xs)\n",
    )
    for act, line, source in (
        (lambda: names["predict"](Value(1000.0)), 3, "hidden = x.exp()"),
        (lambda: names["norm"]([Value(1e200)]), 6, "return wengert.mean(x * 1e200"),
    ):
        with pytest.raises(NonFiniteError) as caught, strict():
            act()
        found = caught.value.anomaly.line
        assert (found.file, found.number, found.source) == (str(tmp_path / "model.py"), line, source)
        assert f"at model.py, line {line} ({source})" in str(caught.value)


def test_a_layer_and_a_loss_name_the_call() -> None:
    model = nn.MLP(2, [3, 1])
    for p in model.parameters():
        p.data = 1e300
    with pytest.raises(NonFiniteError, match=r"line \d+ \(model\(\[1e20, 1e20\]\)\)"), strict():
        model([1e20, 1e20])


def test_code_without_a_file() -> None:
    names: dict[str, Any] = {"x": Value(1000.0)}
    with pytest.raises(NonFiniteError, match=r"at <cell 3>, line 2:") as caught, strict():
        exec(compile("\ny = x.exp()", "<cell 3>", "exec"), names)
    assert caught.value.anomaly.line.source == ""


def test_line_of() -> None:
    x = Value(1.0)
    before = x * 2
    with strict():
        line = inspect.currentframe().f_lineno + 1  # type: ignore[union-attr]
        outer = x * 3
        with detect_anomaly():
            inner = x * 4
            assert line_of(outer) == (__file__, line)
            assert line_of(inner) == (__file__, line + 2)
            assert line_of(before) is line_of(x) is None
        assert line_of(inner) == (__file__, line + 2)  # the outer block saw it too
    assert line_of(outer) is line_of(inner) is None


def test_lines_are_let_go_of() -> None:
    with strict():
        Value(1.0) * 2
        assert len(anomalies._tables.open) == 1
    assert anomalies._tables.open == ()
    with pytest.raises(NonFiniteError), strict(), detect_anomaly():
        Value(0.0).log()
    assert anomalies._tables.open == ()
    assert not modes.eager_only()


def test_a_long_block_keeps_the_newest_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(anomalies, "KEPT", 100)
    x = Value(1.0)
    with strict():
        nodes = [x * 2.0 for _ in range(1000)]
        known = [line_of(node) is not None for node in nodes]
        assert len(anomalies._tables.open[0].ticks) < 200
        assert known == sorted(known)
        assert sum(known) >= 100


# ------------------------------------------------------------------------------------- with other modes, and threads


def test_with_no_grad_on_either_side() -> None:
    x = Value(1000.0, label="x")
    with strict(), no_grad(), pytest.raises(NonFiniteError, match=r"exp\(x = 1000.0\) is inf"):
        x.exp()
    with no_grad(), strict():
        assert (x * 2).is_leaf
        with pytest.raises(NonFiniteError, match=r"exp\(x = 1000.0\) is inf"):
            x.exp()
    assert not (x * 2).is_leaf


def test_a_decorator_and_nesting() -> None:
    @strict()
    def careful(x: Value) -> Value:
        with strict():
            x * 2
        return x.exp()

    for _ in range(2):
        with pytest.raises(NonFiniteError):
            careful(Value(1000.0))
    assert Value(1000.0).exp().data == inf


def test_per_thread() -> None:
    inside, done = threading.Event(), threading.Event()
    found: list[Any] = []

    def lenient() -> None:
        inside.wait(10)
        y = Value(1000.0).exp()
        y.backward()
        found.append((y.data, modes.eager_only(), line_of(y)))
        done.set()

    thread = threading.Thread(target=lenient)
    thread.start()
    with strict():
        inside.set()
        assert done.wait(10)
        with pytest.raises(NonFiniteError):
            Value(1000.0).exp()
    thread.join()
    assert found == [(inf, False, None)]


def test_threads_in_strict_add_up() -> None:
    shared = Value(1.0)

    def work() -> None:
        for _ in range(200):
            with strict():
                (shared * 1.0).backward()

    together(*[work] * 4)
    assert shared.grad == 800.0


def test_passes_are_counted_exactly_while_modes_and_graphs_come_and_go() -> None:
    """Four threads, 2,000 passes each; the fifth makes the engine take its other way through a pass again and again."""
    shared = Value(1.0)
    ended: list[bool] = []

    def work() -> None:
        try:
            own = Value(2.0)
            for _ in range(2000):
                (shared * 1.0 + own).backward()
            assert own.grad == 2000.0
        finally:
            ended.append(True)

    def come_and_go() -> None:
        y = wengert.sum([shared * 2.0, 1.0]).tanh()
        while len(ended) < 4:
            with strict():
                detect_anomaly(y)
            Graph(y)

    together(come_and_go, *[work] * 4)
    assert shared.grad == 8000.0


# ------------------------------------------------------------------------------------- compiled functions and fit


def test_compiled_functions_run_operation_by_operation() -> None:
    np = pytest.importorskip("numpy")
    w = Value(2.0, label="w")

    @wengert.compile(backend="numpy")
    def masked(x: float) -> Value:
        return 1.0 / (w * x).exp()  # infinite inside, and 0 in the end

    plain = [masked(1.0) for _ in range(5)][-1]
    assert plain._op == "compiled"
    for x in (1.0, 500.0):
        assert masked(x).data == pytest.approx(math.exp(-2 * x))
    for act in (
        lambda: masked(500.0),
        lambda: masked.mean([1.0, 500.0]),
        lambda: masked.sum(np.array([1.0, 500.0])),
        lambda: masked.map([1.0, 500.0]),
    ):
        with pytest.raises(NonFiniteError, match=r"exp\(1000.0\) is inf, at .*return 1.0 / \(w \* x\)"), strict():
            act()
    with strict():
        assert masked(1.0).data == pytest.approx(plain.data, rel=1e-15)
        assert masked.map([1.0])[0] == pytest.approx(plain.data, rel=1e-15)
        y = masked.mean([1.0, 2.0])
        y.backward()
    assert w.grad == pytest.approx(-0.5 * (math.exp(-2) + 2 * math.exp(-4)), rel=1e-14)
    assert "compiled" in [masked(1.0)._op for _ in range(3)]  # some calls are the function's own, to compare


@pytest.mark.parametrize("backend", ["auto", "eager"])
def test_fit_in_strict_names_the_line_of_the_loss(backend: str) -> None:
    def loss(prediction: Any, target: float) -> Value:
        return (prediction - target).log()

    rows, targets = [[0.1 * k, 1.0] for k in range(64)], [5.0] * 64
    model = nn.MLP(2, [1], activation="tanh")
    optimizer = optim.SGD(model.parameters(), 0.1)
    with pytest.raises(NonFiniteError, match=r"return \(prediction - target\)\.log\(\)"), strict():
        wengert.fit(model, loss, rows, targets, optimizer, 1, backend=backend, progress=False)


def test_fit_in_strict_cannot_be_told_to_compile() -> None:
    pytest.importorskip("numpy")
    model = nn.MLP(1, [1])
    with strict(), pytest.raises(ArgumentError, match="check every operation"):
        wengert.fit(
            model, losses.mse, [[1.0]], [1.0], optim.SGD(model.parameters(), 0.1), backend="numpy", progress=False
        )
