"""What a batch of examples may be: lists, tuples, trees and arrays of every kind, of any length."""

from __future__ import annotations

import math
import warnings
from typing import Any, NamedTuple

import pytest

import wengert
from tests.compiler.checks import CLOSE, batch_of, difference, lifted, linear, same, warned
from wengert import Value
from wengert.compiler.backends import BACKENDS
from wengert.compiler.budget import Budget
from wengert.derivatives import Numbers
from wengert.errors import ArgumentError, DataError

np = pytest.importorskip("numpy")


@pytest.mark.parametrize(
    "kind", ["list", "tuple", "float64", "float32", "int64", "uint8", "list of ints", "rows of tuples"]
)
def test_a_batch_of_each_kind(kind: str) -> None:
    w = [Value(0.7), Value(-0.4)]
    rows = [[1.0, 2.0], [3.0, 4.0], [5.0, 7.0]]
    given: Any = {
        "list": rows,
        "tuple": [list(r) for r in rows],
        "list of ints": [[int(x) for x in r] for r in rows],
        "rows of tuples": [tuple(r) for r in rows],
    }.get(kind, rows)
    if kind in ("float64", "float32", "int64", "uint8"):
        given = np.array(rows, kind)
    loss = wengert.compile(lambda x: (w[0] * x[0] + w[1] * x[1]).tanh() * x[0])
    for _ in range(2):
        same(loss.mean(given), batch_of(loss.function, rows), w)
        same(loss(given[1]), loss.function(rows[1]), w)
        assert difference(loss.map(given), [loss.function(r).data for r in rows]) < CLOSE
    lifted(loss)


def test_float32_is_computed_in_float64() -> None:
    w = Value(0.7)
    X = np.array([0.1, 0.2, 0.3], np.float32)
    loss = wengert.compile(lambda x: w * x)
    same(loss.mean(X), batch_of(loss.function, X.astype(float).tolist()), [w])


def test_an_array_with_one_axis_is_looped_over_as_its_list() -> None:
    """So its examples are Python's numbers: they have what those have, and nothing of NumPy's scalars."""
    w = Value(0.7)
    names = sorted({*dir(np.float64), *dir(np.int64), *dir(np.bool_)})
    loss = wengert.compile(lambda x: w * sum([hasattr(x, name) << (k % 40) for k, name in enumerate(names)]) * x)
    for X in (np.array([0.5, -2.0]), np.array([1, -2]), np.array([True, False]), np.array([0.5, -2.0], np.float32)):
        for _ in range(3):
            assert loss.map(X).tolist() == [loss.function(x).data for x in X.tolist()]
    missing = wengert.compile(lambda x: w * x.item())
    for how in (missing.map, missing.mean):
        with pytest.raises(AttributeError, match="'float' object has no attribute 'item'") as caught:
            how(np.array([0.5, -2.0]))
        assert caught.value.__notes__ == [
            "a one-dimensional array is iterated like its tolist(), so these are Python numbers"
        ]
    assert missing.map(np.array([[0.5], [-2.0]])).tolist() == [0.7 * 0.5, 0.7 * -2.0]  # these are arrays


def test_a_batch_of_bools() -> None:
    w = Value(0.7)
    loss = wengert.compile(lambda x, flag: w * x if flag else w + x)
    X, flags = [1.0, 2.0, 3.0], [True, False, True]
    same(loss.mean(X, np.array(flags)), batch_of(loss.function, X, flags), [w])
    same(loss.mean(X, flags), batch_of(loss.function, X, flags), [w])


def test_a_batch_of_trees() -> None:
    w = [Value(0.7), Value(-0.4)]

    @wengert.compile
    def loss(pair: Any, named: Any) -> Any:
        (a, b), y = pair
        return (w[0] * a + w[1] * b - y) ** 2 * named["weight"] + w[0] * named["rows"][1][0]

    points, targets, weights = [[0.1, 0.2], [0.3, 0.4]], [1.0, 2.0], [0.5, 0.25]
    rows = np.arange(8.0).reshape(2, 2, 2)
    for _ in range(2):
        got = loss.mean((points, targets), {"weight": weights, "rows": rows})
        eager = [
            loss.function((points[n], targets[n]), {"weight": weights[n], "rows": rows[n].tolist()}) for n in range(2)
        ]
        same(got, wengert.mean(eager), w)
        single = (points[1], targets[1]), {"weight": weights[1], "rows": rows[1].tolist()}
        same(loss(*single), loss.function(*single), w)
    lifted(loss)


def test_batches_of_other_lengths() -> None:
    loss, w, b = linear()
    rng = np.random.default_rng(1)
    for count in (1, 5, 2, 64, 1, 3):
        X, Y = rng.normal(size=(2, count))
        same(loss.mean(X, Y), batch_of(loss.function, X.tolist(), Y.tolist()), [w, b])
        assert loss.map(X, Y).shape == (count,)
    assert len(loss._server.entries) == 1


def test_map_after_mean_at_another_length() -> None:
    w = [Value(0.1 * n) for n in range(4)]
    loss = wengert.compile(lambda x: sum((wi * x[0] + x[1]).tanh() ** 2 for wi in w))
    X = np.random.default_rng(2).normal(size=(6, 2))
    for count in (4, 6, 1, 5):
        want = [loss.function(x) for x in X[:count].tolist()]
        same(loss.mean(X[:count]), wengert.mean(want), w)
        assert difference(loss.map(X[:count]), [v.data for v in want]) < CLOSE
        same(loss.sum(X[:count]), wengert.sum(want), w)


def test_arrays_that_are_not_contiguous() -> None:
    w = [Value(0.7), Value(-0.4)]
    whole = np.arange(24.0).reshape(4, 6) / 10
    loss = wengert.compile(lambda x: w[0] * x[0] * x[1] + w[1] * x[1])
    loss.mean(whole[:, :2])
    for given in (whole[::2, 1::3], whole.T[:, ::2], whole[::-1, :2], np.asfortranarray(whole[:, 3:5])):
        same(loss.mean(given), batch_of(loss.function, given.tolist()), w)
    read_only = whole[:, :2].copy()
    read_only.flags.writeable = False
    same(loss.mean(read_only), batch_of(loss.function, read_only.tolist()), w)


def test_numpy_in_the_users_code() -> None:
    w = [Value(0.3), Value(-0.2), Value(0.9)]
    weights = np.array(w, dtype=object)

    @wengert.compile
    def loss(x: Any, image: Any) -> Any:
        part = x[1:3]
        return (
            part @ weights[:2] + x[::-1] @ weights + image[0, 1] * w[0] + (image.T * w[1]).sum() + x.sum() * w[2]
        ) ** 2

    rng = np.random.default_rng(3)
    X, images = rng.normal(size=(5, 3)), rng.normal(size=(5, 2, 2))
    for _ in range(2):
        same(loss(X[0], images[0]), loss.function(X[0], images[0]), w)
        same(loss.mean(X, images), batch_of(loss.function, X, images), w)
    lifted(loss)


def test_arrays_that_look_alike_are_told_apart() -> None:
    w = Value(2.0)

    @wengert.compile
    def f(x: Any) -> Any:
        return w * x

    assert f.sum(np.array([1.0, 2.0])).data == 6.0
    assert f.sum(np.array([1.0, 2.0], ">f8")).data == 6.0
    assert f.sum(np.array([1, 2])).data == 6.0
    assert f.sum(np.array([True, True])).data == 4.0
    with pytest.raises(DataError, match="x is one number"):
        f.sum(np.array(1.0))
    assert f(np.array(1.0)).data == 2.0
    with wengert.no_grad():
        result = f.sum(np.array([1.0, 5.0]))
    assert (result.data, result.is_leaf, w.grad) == (12.0, True, 0.0)


# ------------------------------------------------------------------------------------- what is refused


def test_ragged_batches() -> None:
    loss = wengert.compile(lambda points: Value(2.0) * points[0])
    with pytest.raises(DataError, match="points"):
        loss.mean([[1.0, 2.0], [3.0]])
    loss.mean([[1.0, 2.0], [3.0, 4.0]])


def test_lengths_of_a_batch_that_differ() -> None:
    loss, *_ = linear()
    with pytest.raises(DataError, match=r"x.*3.*y.*2"):
        loss.mean([1.0, 2.0, 3.0], [1.0, 2.0])


@pytest.mark.parametrize("empty", [[], np.zeros(0)], ids=["list", "array"])
def test_empty_batches(empty: Any) -> None:
    loss, *_ = linear()
    for how in (loss.mean, loss.sum, loss.map):
        with pytest.raises(DataError):
            how(empty, empty)
    loss.mean([1.0], [1.0])
    lifted(loss)


def test_what_a_batch_cannot_be() -> None:
    loss = wengert.compile(lambda x: Value(2.0) * x)
    for wrong in (np.array(3.0), [{"a": 1.0}]):
        with pytest.raises(DataError, match="x"):
            loss.mean(wrong)
    with pytest.raises(DataError):
        wengert.compile(lambda: Value(1.0)).mean()


def size_of(x: Any) -> Any:
    return Value(2.0) * (len(x) if isinstance(x, str) else float(abs(x)))


@pytest.mark.parametrize(
    ("rows", "kind"),
    [
        (np.array([1 + 2j, 3j]), "an argument is an array of complex128"),
        (np.array(["a", "bcd"]), "an argument is an array of str_"),
        (np.array(["a", 2.0], object), "an argument is an array of object_"),
        (np.array([3, 5], "m8[D]"), "an argument is an array of timedelta64"),
        (["a", "bcd"], "each row of a batch is a str"),
        ([1 + 2j, 3j], "each row of a batch is a complex"),
        ([Value(1.0), Value(-2.0)], "each row of a batch is a Value"),
    ],
    ids=["complex", "str", "objects", "times", "list of str", "list of complex", "list of Values"],
)
def test_rows_that_are_no_real_numbers(rows: Any, kind: str) -> None:
    """The function gets them as a loop would give them."""
    function: Any = {np.timedelta64: lambda x: Value(2.0) * int(x.astype(int)), Value: lambda x: x * 3.0}.get(
        type(rows[0]), size_of
    )
    loss = wengert.compile(function)
    want = [function(x) for x in rows]
    made: list[Any] = []
    said = warned(lambda: made.extend(how(rows) for how in (loss.map, loss.sum, loss.mean)))
    (text,) = said
    assert text.startswith(
        f"{loss._server.name} runs uncompiled: {kind}, and only real numbers are compiled: pass these"
    )
    assert made[0].tolist() == [v.data for v in want]
    assert [v.data for v in made[1:]] == [wengert.sum(want).data, wengert.mean(want).data]


@pytest.mark.filterwarnings("ignore:.*runs uncompiled")
@pytest.mark.parametrize("wrong", [["a", "b"], np.array(["a", "b"]), [None, 1.0], np.array([1j]), [1.0, "b"]])
def test_rows_that_the_function_cannot_take_raise_what_a_loop_raises(wrong: Any) -> None:
    loss = wengert.compile(lambda x: Value(2.0) * x)
    want = raised(lambda: [loss.function(x) for x in wrong])
    assert want is not None
    for how in (loss.map, loss.mean, loss.sum):
        assert raised(lambda: how(wrong)) == want  # noqa: B023


# ------------------------------------------------------------------------------------- which example raises, and what


def raised(call: Any) -> tuple[type, str] | None:
    try:
        call()
    except Exception as error:
        return type(error), str(error)
    return None


def by_branch(x: Any) -> Any:
    if x > 2:
        raise KeyError(f"beyond two: {x}")
    if x > 1:
        raise ValueError(f"beyond one: {x}")
    return Value(2.0) * x if x < 0 else Value(3.0) + x


def by_root(x: Any) -> Any:
    return Value(2.0) * math.sqrt(x)


def by_index(x: Any) -> Any:
    return Value(2.0) * [1.0, 3.0, 5.0][int(x)]


GOOD = [0.25, -0.5, 0.75, 0.5, -0.25, 0.125]
RAISING = {
    by_branch: [GOOD, [*GOOD[:3], 1.5, 2.5, *GOOD, 1.25], [2.5, 1.5], [-0.5, -0.25, 0.5, 1.25, 2.25]],
    by_root: [[0.5, 2.0], [1.0, -1.0, -2.0], [-3.0, 1.0], [1.0, math.inf, -1.0, math.nan]],
    by_index: [[0.5, 2.5], [0.0, 5.0, 1.0, 9.0], [7.0, 0.0], [-1.0, -4.0, 9.0]],
}
AVAILABLE = [name for name in ("auto", "numpy", "native", "xla") if name == "auto" or BACKENDS[name].is_available()]


@pytest.mark.sampled(9)
@pytest.mark.filterwarnings("ignore:.*runs uncompiled")
@pytest.mark.parametrize("backend", AVAILABLE)
@pytest.mark.parametrize("function", RAISING, ids=lambda function: function.__name__)
@pytest.mark.parametrize("how", ["map", "mean", "sum"])
def test_a_batch_raises_what_its_first_failing_example_raises(function: Any, how: str, backend: str) -> None:
    """Whether its rows are new, or specializations know some of them already."""
    for known, kind in ((0, list), (4, np.array)) if backend != "xla" else ((0, list),):
        compiled = wengert.compile(function, backend=backend)
        for rows in [RAISING[function][0]] * known + RAISING[function]:
            given = kind(rows)
            failed = raised(lambda: [function(x) for x in given])  # noqa: B023
            assert raised(lambda: getattr(compiled, how)(given)) == failed  # noqa: B023


@pytest.mark.parametrize("how", ["mean", "sum"])
@pytest.mark.parametrize("known", [0, 3])
def test_an_example_that_raises_comes_before_results_that_have_no_mean(how: str, known: int) -> None:
    w = Value(0.5)

    def function(x: float) -> Any:
        if x > 1:
            raise ValueError(f"x is {x}")
        return [w * x, w] if x > 0 else w * x

    compiled = wengert.compile(function)
    for _ in range(known):
        getattr(compiled, how)([-0.5, -1.0])
        compiled.map([0.5, 0.25])
    for rows in ([0.5, 0.25, 1.5, 2.5], [0.5, -0.25, 1.25, 0.5]):
        assert raised(lambda: getattr(compiled, how)(rows)) == (ValueError, f"x is {rows[2]}")  # noqa: B023
        with pytest.raises(ArgumentError, match="needs one Value an example"):
            getattr(compiled, how)(rows[:2])


def counting(log: list[float]) -> Any:
    """A function that computes, until a number above 1 comes: it notes that, and rows behind it see it."""

    def function(x: Any) -> Any:
        if x > 1:
            log.append(x)
            return Value(2.0) * x
        if len(log) > 2:
            raise RuntimeError(f"{x} came behind {log}")
        return Value(3.0) * x * len(log) if x > 0 else Value(1.0) - x

    return function


@pytest.mark.sampled(18)
@pytest.mark.filterwarnings("ignore:.*runs uncompiled")
@pytest.mark.parametrize("backend", AVAILABLE)
@pytest.mark.parametrize("how", ["map", "mean", "sum"])
@pytest.mark.parametrize("known", [0, 1, 5])
@pytest.mark.parametrize(
    "mixed",
    [[0.5, -0.25, 0.75, 1.5, 0.5, -1.0, 0.25, 1.25, 0.125], [1.5, 0.5, -0.5, 1.25, 0.25]],
    ids=["within", "at first"],
)
def test_effects_in_a_batch_come_in_the_order_of_a_loop(how: str, known: int, mixed: Any, backend: str) -> None:
    """Rows before the first that does more than compute do not see what it did, those behind it do."""
    got, want = [], []  # type: ignore[var-annotated]
    compiled, function = wengert.compile(counting(got), backend=backend), counting(want)
    for rows in [[0.5, -0.5, 0.25]] * known + [mixed]:
        made = getattr(compiled, how)(rows)
        plain = [function(x).data for x in rows]
        reduced = {"map": plain, "sum": math.fsum(plain), "mean": math.fsum(plain) / len(plain)}[how]
        assert np.allclose(made if how == "map" else made.data, reduced, rtol=1e-14)
        assert got == want
    with pytest.raises(RuntimeError, match=r"0\.5 came behind \[1\.5, 1\.25, 3\.0\]"):
        getattr(compiled, how)([0.25, 3.0, 0.5, 0.75])
    assert got == [*want, 3.0]


@pytest.mark.filterwarnings("ignore:.*runs uncompiled")
@pytest.mark.parametrize("how", ["map", "mean", "sum"])
def test_effects_while_a_specialization_waits_for_its_count(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of branches that are not compiled yet run unwatched: whatever they do, the rows behind them see it."""
    monkeypatch.setattr(Budget, "affords", lambda budget, entry, cost: len(entry.specializations) < 2)

    def noting(log: list[float]) -> Any:
        def function(x: float) -> Any:
            for k in range(4):
                if k <= x < k + 1:
                    return Value(0.5) * x * (k + 1) * (1 + len(log))
            log.append(x)
            return Value(0.5) * x

        return function

    got, want = [], []  # type: ignore[var-annotated]
    compiled, function = wengert.compile(noting(got)), noting(want)
    for rows in (
        [0.5, 1.5],
        [0.25, 1.25],
        [2.5, 0.75, 2.25],
        [0.5, 2.75, 9.5, 0.5, 3.5, 8.5, 1.5, 3.25],
        [0.5, 7.5, 0.5],
    ):
        made = getattr(compiled, how)(rows)
        plain = [function(x).data for x in rows]
        reduced = {"map": plain, "sum": math.fsum(plain), "mean": math.fsum(plain) / len(plain)}[how]
        assert np.allclose(made if how == "map" else made.data, reduced, rtol=1e-14)
        assert got == want


def test_a_generator_of_examples_is_read_by_no_one() -> None:
    loss = wengert.compile(lambda x: Value(2.0) * x)
    with pytest.raises((DataError, TypeError)):
        loss.mean(x for x in [1.0, 2.0])


# -- results that are no regular array --------------------------------------------------------------------------------


class Fit(NamedTuple):
    value: Any
    parts: Any


def in_parts(x: Any) -> Any:
    return {
        "a": x[0] * 2.0,
        "b": [x[1], x[2].exp() if isinstance(x[2], Value) else wengert.exp(x[2])],
        "c": ((x[0],), x),
    }


def example(mapped: Any, n: int) -> list[Any]:
    if isinstance(mapped, np.ndarray):
        return mapped[n].tolist()
    return [example(part, n) for part in (mapped.values() if isinstance(mapped, dict) else mapped)]


def branching(x: Any) -> Any:
    return (x[0], [x[1], x[2]]) if x[0] > 0.0 else (2.0 * x[0], [0.5, x[1] * x[2]])


@pytest.mark.parametrize(
    "function",
    [in_parts, branching, lambda x: Fit(x[0], [x[1] * x[2], x[0]]), lambda x: [x[0], np.array([x[1], x[2]])]],
)
def test_map_keeps_the_parts_of_results_that_are_no_array(function: Any) -> None:
    """As JAX's `vmap` does for each number, and for regular lists as arrays."""
    rows = np.random.default_rng(3).normal(size=(9, 3))
    want = [Numbers(function(row)) for row in rows]
    compiled = wengert.compile(function)
    for _ in range(6):
        got = compiled.map(rows)
        assert type(got) is type(function(rows[0]))
        for n, numbers in enumerate(want):
            assert Numbers(example(got, n)).leaves == pytest.approx(numbers.leaves, rel=1e-14)
    lifted(compiled)


def test_map_of_a_value_and_its_gradient_is_a_pair() -> None:
    for make in (
        lambda f: wengert.compile(wengert.value_and_grad(f)),
        lambda f: wengert.value_and_grad(wengert.compile(f)),
    ):
        values, slopes = make(lambda x: x * x * x).map([1.0, 2.0])
        assert (values.tolist(), slopes.tolist()) == ([1.0, 8.0], [3.0, 12.0]), "not an array of two by two"
        values, slopes = make(lambda x: x[0] * x[1] ** 2).map(np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]))
        assert values.tolist() == [4.0, 48.0, 180.0]
        assert slopes.tolist() == [[4.0, 4.0], [16.0, 24.0], [36.0, 60.0]]


def test_map_of_results_of_different_structure() -> None:
    compiled = wengert.compile(lambda x: (x, [x, x]) if x > 0.0 else (x, [x]))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(3):
            with pytest.raises(ArgumentError, match="same structure"):
                compiled.map([1.0, -1.0, 2.0])
    assert [part.tolist() for part in compiled.map([1.0, 2.0])] == [[1.0, 2.0], [[1.0, 1.0], [2.0, 2.0]]]
    with pytest.raises(ArgumentError, match="use map"):
        compiled.mean([1.0, 2.0])


@pytest.mark.parametrize(
    "function",
    [
        lambda inner, w, x: max(2 * [*inner.map([x, 1.0])]) * w,
        lambda inner, w, x: inner.map([x, 1.0])[0] * w,
        lambda inner, w, x: sum(inner.map([x, 1.0])) * w,
        lambda inner, w, x: w * len(inner.map([x, 1.0]) * 2),
        lambda inner, w, x: w * float(inner.map([x, 1.0]).mean()),
        lambda inner, w, x: w * isinstance(inner.map([x, 1.0]), np.ndarray),
        lambda inner, w, x: inner.map([x, 1.0]),
    ],
)
def test_map_within_a_compiled_function_gives_numbers(function: Any) -> None:
    """An array without a graph, also while the outer function is observed."""
    w = Value(0.5)
    inner = wengert.compile(lambda x: w * x)
    compiled = wengert.compile(lambda x: function(inner, w, x))
    with pytest.warns(UserWarning, match="calls map of a compiled function"):
        results = [(compiled(x), function(inner, w, x)) for x in (2.0, 0.5) * 4]
    for got, want in results:
        assert type(got) is type(want)
        if isinstance(want, Value):
            same(got, want, [w])
        else:
            assert got.tolist() == want.tolist()
