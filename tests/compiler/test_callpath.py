"""The path of a call: what it serves and what it leaves to `serve.py`; and that it is the function either way."""

from __future__ import annotations

import threading
from typing import Any, NamedTuple

import pytest

import wengert
from tests.compiler.checks import CLOSE, difference, gradients
from wengert import Value, modes, no_grad, strict
from wengert.compiler import partials_of
from wengert.errors import ArgumentError, DataError
from wengert.node import is_many

np = pytest.importorskip("numpy")

W, B = Value(0.7), Value(-0.2)
TABLE = [Value(0.1 * n) for n in range(5)]


class Pair(NamedTuple):
    """Two numbers."""

    first: float
    second: float


class Watched:
    """What takes over where the path does not serve; it counts how often."""

    def __init__(self, server: Any) -> None:
        self.server, self.calls = server, 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self.server, name)

    def call(self, *args: Any) -> Any:
        self.calls += 1
        return self.server.call(*args)


class Trusted:
    """A compiled function after so many calls that no check is due for some time.

    Attributes:
        watched: tells how often `serve.py` was asked.
    """

    def __init__(self, function: Any, machine: bool, *calls: Any, **options: Any) -> None:
        self.compiled = wengert.compile(function, backend="native" if machine else "numpy", **options)
        for call in calls:
            for _ in range(17):
                call(self.compiled)
        for entry in self.compiled._server.entries.values():
            assert not entry.fallback_reason
            assert all(bool(made.forward_backward_code) is machine for made in entry.specializations)
        self.compiled._server = self.watched = Watched(self.compiled._server)

    def check(self, call: Any, want: Any, served: bool = True, parameters: Any = (W, B)) -> None:
        """A call gives what the function gives; and by the path alone, where it is `served` so."""
        asked = self.watched.calls
        got = call(self.compiled)
        if isinstance(want, Value):
            assert isinstance(got, Value)
            assert difference(got.data, want.data) < CLOSE
            assert difference(gradients(got, [*parameters]), gradients(want, [*parameters])) < CLOSE
        else:
            assert not isinstance(got, Value)
            assert difference(np.asarray(got), np.asarray(want)) < CLOSE
        assert (self.watched.calls == asked) is served


both = pytest.mark.parametrize("machine", [False, True], ids=["numpy", "machine code"])


def line(x: float, y: float) -> Any:
    return (W * x + B - y).tanh() ** 2


@both
def test_two_numbers(machine: bool) -> None:
    made = Trusted(line, machine, lambda f: f(0.5, 0.3))
    for x, y in ((0.5, 0.3), (-1.5, 2.0), (0.25, 0.5)):
        made.check(lambda f, x=x, y=y: f(x, y), line(x, y))
    W.data += 0.125  # read anew
    made.check(lambda f: f(0.5, 0.3), line(0.5, 0.3))
    for x in (np.float64(0.25), np.float32(0.5), 1, True, np.array(0.5)):  # other forms
        made.check(lambda f, x=x: f(x, 0.3), line(float(x), 0.3), served=False)


@both
def test_named_arguments(machine: bool) -> None:
    def f(a: float, b: float = 0.5, *, c: float = 2.0) -> Any:
        return W * a + B * b * c

    made = Trusted(f, machine, lambda g: g(1.0, 2.0, c=3.0), lambda g: g(1.0), lambda g: g(1.0, c=0.5))
    made.check(lambda g: g(1.5, 2.5, c=3.5), f(1.5, 2.5, c=3.5))
    made.check(lambda g: g(c=3.5, b=2.5, a=1.5), f(1.5, 2.5, c=3.5))
    made.check(lambda g: g(1.5), f(1.5))
    made.check(lambda g: g(1.5, c=0.25), f(1.5, c=0.25))
    for wrong in (lambda g: g(), lambda g: g(1.0, d=2.0), lambda g: g(1.0, a=2.0), lambda g: g(1.0, 2.0, 3.0)):
        with pytest.raises(TypeError) as plain:
            wrong(f)
        with pytest.raises(TypeError) as error:
            wrong(made.compiled)
        assert str(error.value).removeprefix("f() ") in str(plain.value) or "argument" in str(error.value)


@both
def test_trees_and_nested_lists(machine: bool) -> None:
    def f(x: Any) -> Any:
        return W * x["a"][0] + B * x["a"][1][1] * x["p"].second + x["p"].first * x["rows"][1][0]

    def tree(s: float) -> Any:
        return {"a": (s, [2.0, 3.0 * s]), "p": Pair(0.5, s), "rows": [[1.0, 2.0], [s, 4.0]], "name": "x"}

    made = Trusted(f, machine, lambda g: g(tree(1.0)))
    made.check(lambda g: g(tree(0.25)), f(tree(0.25)))
    other = dict(reversed(tree(0.25).items()))
    made.check(lambda g: g(other), f(other), served=False)  # in another order
    made.check(lambda g: g(tree(0.25) | {"name": "y"}), f(tree(0.25)), served=False)


@both
def test_lists_of_calls_that_take_turns(machine: bool) -> None:
    def f(x: Any, k: Any) -> Any:
        return W * x[0] * x[1] + k[1] if x[0] > 0.0 else B * x[1] * k[0]

    made = Trusted(f, machine, *[lambda g, s=s: g([s, 2.0], [1, 2]) for s in (1.0, -1.0)])
    for n, s in enumerate((0.5, -0.5, 0.25, 1.5, -0.25, -2.0, 3.0)):
        given = [s, 3.0 * s], [n, n + 5]
        made.check(lambda g, given=given: g(*given), f(*given))


class Row(list[float]):
    """A list that says something else of its items."""

    def __getitem__(self, n: Any) -> Any:
        return 2.0 * list.__getitem__(self, n)


class Whole(int):
    """An int of the user's."""


@pytest.mark.filterwarnings("ignore:f runs uncompiled")
@both
def test_lists_and_numbers_of_the_users_own_kinds(machine: bool) -> None:
    def f(x: Any, k: Any) -> Any:
        return W * x[0] + B * x[1] + TABLE[k]

    made = Trusted(f, machine, lambda g: g([1.0, 2.0], 1))
    made.check(lambda g: g([1.5, 2.5], 2), f([1.5, 2.5], 2), parameters=(W, B, *TABLE))
    mixed = ([1.5, 2], 2)  # has a signature of its own
    for x, k in (
        mixed,
        (Row([1.0, 2.0]), 2),
        ([1.0, 2.0], Whole(2)),
        ((1.0, 2.0), 2),
        ([1.0, 2.0, 3.0], 2),
        ([1, 2], 2),
    ):
        made.check(lambda g, x=x, k=k: g(x, k), f(x, k), False, (W, B, *TABLE))


@both
@pytest.mark.filterwarnings("ignore:f runs uncompiled")  # 2**63 makes floats of a column, which are no indices
@pytest.mark.parametrize("batched", [False, True])
def test_indices_are_in_bounds_before_anything_runs(machine: bool, batched: bool) -> None:
    def f(k: int, x: float) -> Any:
        return TABLE[k] * x

    if batched:
        made = Trusted(f, machine, lambda g: g.mean(np.array([0, 1, 4]), np.ones(3)))
        for ks in ([0, 3], [-1, 2], [-5, 4]):
            want = wengert.mean([f(k, 0.5) for k in ks])
            made.check(lambda g, ks=ks: g.mean(np.array(ks), np.full(2, 0.5)), want, True, TABLE)
    else:
        made = Trusted(f, machine, lambda g: g(1, 1.0))
        for k in (0, 4, -1, -5):
            made.check(lambda g, k=k: g(k, 0.5), f(k, 0.5), True, TABLE)
    for k in (5, -6, 2**62, -(2**63), 2**63, 10**30):

        def call(k: int = k) -> Any:
            return made.compiled.mean([1, k], [0.5, 0.5]) if batched else made.compiled(k, 0.5)

        with pytest.raises((IndexError, DataError) if k == 10**30 and batched else IndexError):
            call()


@both
def test_whole_numbers_that_choose_nothing(machine: bool) -> None:
    def f(n: int, rows: Any) -> Any:
        return W * n + B * rows[1]

    made = Trusted(f, machine, lambda g: g(3, np.array([1, 2])))
    for n in (0, -7, 2**53 - 1, 1 - 2**53):
        made.check(lambda g, n=n: g(n, np.array([4, n])), f(n, [4, n]))
    for n in (2**53, 2**62, 10**40):  # which are not to be told from others
        made.check(lambda g, n=n: g(n, np.array([4, 5])), f(n, [4, 5]), served=False)
    made.check(lambda g: g(3, np.array([4, 2**53 + 1])), f(3, [4, 2**53 + 1]), served=False)


@both
@pytest.mark.parametrize(
    "given",
    [
        lambda x: x,
        lambda x: np.frombuffer(x.tobytes()).reshape(x.shape),  # which nobody may write to
        lambda x: np.asfortranarray(x),
        lambda x: np.repeat(x, 2, 0)[::2],
        lambda x: np.frombuffer(b"." + x.tobytes(), np.uint8)[1:].view(float).reshape(x.shape),  # at an odd address
    ],
    ids=["plain", "read-only", "columns", "strided", "unaligned"],
)
def test_arrays_of_all_kinds(machine: bool, given: Any) -> None:
    def f(x: Any) -> Any:
        return wengert.dot([W, B], x) ** 2

    X = np.array([[0.5, 1.0], [0.25, -2.0], [4.0, 0.125]])
    made = Trusted(f, machine, lambda g: g.mean(X), lambda g: g.map(X), lambda g: g(X[0]))
    Y = given(X)
    made.check(lambda g: g.mean(Y), wengert.mean([f(row) for row in X.tolist()]))
    made.check(lambda g: g.map(Y), [f(row).data for row in X.tolist()])
    made.check(lambda g: g(Y[1]), f(X[1].tolist()))


@both
@pytest.mark.parametrize("kind", [np.float32, np.float16, np.int32, np.uint8])
def test_arrays_of_narrow_types(machine: bool, kind: Any) -> None:
    def f(x: Any) -> Any:
        return wengert.dot([W, B], x) ** 2

    X = np.array([[0.5, 1.0], [3.0, 2.0], [4.0, 0.125]]).astype(kind)
    made = Trusted(f, machine, lambda g: g.mean(X), lambda g: g(X[0]))
    made.check(lambda g: g.mean(X[::-1]), wengert.mean([f(row) for row in X.tolist()]))
    made.check(lambda g: g(X[1]), f(X[1].tolist()))
    made.check(lambda g: g(X[1].astype(float)), f(X[1].tolist()), served=False)  # has another dtype
    made.check(lambda g: g.mean(X.astype(float)), wengert.mean([f(row) for row in X.tolist()]), served=False)


@pytest.mark.filterwarnings("ignore:f runs uncompiled")
@pytest.mark.parametrize("kind", [">f8", np.longdouble])
def test_arrays_that_are_left_to_the_function(kind: Any) -> None:
    def f(x: Any) -> Any:
        return W * float(x.dtype == np.dtype(kind)) * x[0]

    X, compiled = np.ones((3, 2), kind), wengert.compile(f)
    for _ in range(3):
        assert compiled(X[0]).data == W.data
        assert compiled.mean(X).data == pytest.approx(W.data)


@both
def test_arrays_of_bools(machine: bool) -> None:
    def f(x: float, flag: Any) -> Any:
        return W * x if flag else B * x * x

    X, flags = np.array([0.5, -2.0, 3.0]), np.array([True, False, True])
    made = Trusted(f, machine, lambda g: g.mean(X, flags), lambda g: g.map(X, flags))
    want = [f(x, flag) for x, flag in zip(X.tolist(), flags.tolist(), strict=True)]
    made.check(lambda g: g.mean(X, flags), wengert.mean(want))
    made.check(lambda g: g.map(X, flags[::-1][::-1]), [v.data for v in want])
    for others in (flags.astype(float), flags.astype(int)):  # another form
        made.check(lambda g, others=others: g.map(X, others), [v.data for v in want], served=False)
    made.check(lambda g: g.map(X, flags.tolist()), [v.data for v in want], served=wengert.engine.compiled)
    made.check(lambda g: g.map(X, flags), [v.data for v in want])


@both
def test_batches_of_any_size(machine: bool) -> None:
    made = Trusted(line, machine, lambda f: f.mean([0.5, 0.25], [1.0, 2.0]))
    for count in (1, 2, 3, 17, 64, 2):
        X, Y = np.linspace(0.0, 1.0, count), np.linspace(-1.0, 1.0, count)
        each = [line(x, y) for x, y in zip(X.tolist(), Y.tolist(), strict=True)]
        made.check(lambda f, X=X, Y=Y: f.mean(X, Y), wengert.mean(each))
        made.check(lambda f, X=X, Y=Y: f.sum(X, y=Y), wengert.sum(each))
        made.check(lambda f, X=X, Y=Y: f.map(X, Y), [v.data for v in each])
        rows = X.tolist(), Y.tolist()
        made.check(lambda f, rows=rows: f.mean(*rows), wengert.mean(each), wengert.engine.compiled)
    for wrong in (([], []), (np.zeros(0), np.zeros(0)), (np.ones(2), np.ones(3)), ([1.0], [1.0, 2.0])):
        with pytest.raises(DataError):
            made.compiled.mean(*wrong)
    first, second = made.compiled.map(*rows), made.compiled.map(*rows)
    assert not np.shares_memory(first, second)
    with pytest.raises(ArgumentError, match="use map"):
        Trusted(lambda x: [W * x, B * x], machine, lambda f: f.map([1.0, 2.0])).compiled.mean([1.0, 2.0])


@both
def test_specializations_in_a_batch(machine: bool) -> None:
    def f(x: float) -> Any:
        return W * x if x > 0.0 else B * x * x if x > -1.0 else Value(2.0) * W * B

    X = np.array([0.5, -0.5, 2.0, -3.0, -0.25, 0.0])
    made = Trusted(f, machine, lambda g: g.mean(X), lambda g: g.map(X), lambda g: [g(x) for x in X.tolist()])
    for batch in (X, X[::-1].copy(), X[:1], X[3:4], np.repeat(X, 3)):
        want = [f(x) for x in batch.tolist()]
        made.check(lambda g, batch=batch: g.mean(batch), wengert.mean(want))
        made.check(lambda g, batch=batch: g.map(batch), [v.data for v in want])
    for x in X.tolist():
        made.check(lambda g, x=x: g(x), f(x))


@both
def test_values_among_the_arguments(machine: bool) -> None:
    class Named(Value):
        """A Value of the user's."""

    def f(v: Value, x: float, vs: Any) -> Any:
        return v * W * x + vs[0] * vs[1]

    a, b, c, d = Value(0.5), Value(-1.5), Value(2.0), Named(0.25)
    made = Trusted(f, machine, lambda g: g(a, 2.0, [b, c]))
    for v, vs in ((a, [b, c]), (d, [c, a]), (a * b, [b, c]), (c, [d, b])):
        made.check(lambda g, v=v, vs=vs: g(v, 0.5, vs), f(v, 0.5, vs), True, (W, a, b, c, d))
    made.check(lambda g: g(0.5, 0.5, [b, c]), f(0.5, 0.5, [b, c]), False, (W, b, c))


@both
def test_what_is_passed_twice_is_one(machine: bool) -> None:
    def f(x: Any, y: Any) -> Any:
        return W * x if x is y else W * x * y

    a, b = Value(0.5), Value(-1.5)
    made = Trusted(f, machine, lambda g: g(a, b), lambda g: g(a, a))
    made.check(lambda g: g(b, a), f(b, a), True, (W, a, b))
    made.check(lambda g: g(b, b), f(b, b), False, (W, a, b))


@both
def test_what_is_read_outside(machine: bool) -> None:
    class Settings:
        """What functions read."""

        def __init__(self) -> None:
            self.rate, self.kind = 0.5, "sum"

    scale, settings, row = 2.0, Settings(), [1.0, 2.0, 3]
    array, words = np.array([0.5, 1.5]), {"factor": 3.0}

    def f(x: float) -> Any:
        made = W * x * scale * settings.rate * words["factor"] + row[0] * B + array[1]
        return made if settings.kind == "sum" else -made

    made = Trusted(f, machine, lambda g: g(1.0))
    made.check(lambda g: g(0.5), f(0.5))
    for change in ("scale", "rate", "factor", "row", "array"):
        if change == "scale":
            scale = 3.0
        elif change == "rate":
            settings.rate = 0.25
        elif change == "factor":
            words["factor"] = -1.0
        elif change == "row":
            row[0] = 7.0
        else:
            array[1] = 0.125
        made.check(lambda g: g(0.5), f(0.5))
    for change in ("kind", "int"):
        if change == "kind":
            settings.kind = "difference"
        else:
            scale = 3
        made.check(lambda g: g(0.5), f(0.5), served=False)


@both
def test_modes(machine: bool) -> None:
    made = Trusted(line, machine, lambda f: f(0.5, 0.3))
    with no_grad():
        made.check(lambda f: f(0.25, 0.3), line(0.25, 0.3), parameters=())
        assert made.compiled(0.25, 0.3)._prev == ()
    seen: list[Any] = []
    with modes.hooked(seen.append, lambda root, gradient: None):
        made.check(lambda f: f(0.25, 0.3), line(0.25, 0.3), served=False)
    assert len(seen) > 6
    with strict():
        made.check(lambda f: f(0.25, 0.3), line(0.25, 0.3), served=False)
    inner = made.compiled
    inner._server = inner._server.server
    outer = wengert.compile(lambda x: inner(x, 0.5) * 2.0)
    for _ in range(6):
        assert difference(outer(0.25).data, 2.0 * line(0.25, 0.5).data) < CLOSE
    assert outer._server.latest().nodes > 5  # the inner one is recorded operation by operation
    second = [wengert.grad(wengert.grad(lambda x, f=f: f(x, 0.5) * x))(0.25) for f in (inner, line)]
    assert difference(second[0].data, second[1].data) < CLOSE


@both
def test_what_is_not_finite_is_the_engines(machine: bool) -> None:
    def f(x: float) -> Any:
        return (W * x).exp() / B

    made = Trusted(f, machine, lambda g: g(1.0), lambda g: g.mean([1.0, 2.0]), lambda g: g.map([1.0, 2.0]))
    for x in (2000.0, float("nan"), float("inf"), 1e200):
        made.check(lambda g, x=x: g(x), f(x), served=False)
        made.check(lambda g, x=x: g.mean([x, 1.0]), wengert.mean([f(x), f(1.0)]), served=False)
    assert "fell back to the function: numbers were not finite" in made.compiled.report()


@both
def test_calls_are_compared_when_it_is_time(machine: bool) -> None:
    made = Trusted(line, machine, lambda f: f(0.5, 0.3))
    asked = []
    for _ in range(130):
        (entry,) = made.compiled._server.entries.values()
        before = entry.checks
        made.compiled(0.5, 0.3)
        if entry.checks > before:
            asked.append(entry.calls)
    assert asked == [32, 64, 128]


def test_an_operation_that_calls_the_function_again() -> None:
    state = threading.local()

    def value(x: float) -> float:
        again, state._again = getattr(state, "_again", None), None
        if again is not None:
            state._result = again(9.0).data
        return 2.0 * float(x)

    double = wengert.op("double_again", value=value, partials=lambda out, x: 2.0)
    made = Trusted(lambda x: double(W * x), False, lambda g: g(1.0))
    state._again = made.compiled
    made.check(lambda g: g(2.0), W * 4.0, parameters=[W])
    assert difference(state._result, 18.0 * W.data) < CLOSE


@both
def test_threads_call_one_function(machine: bool) -> None:
    made = Trusted(line, machine, lambda f: f(0.5, 0.3))
    wrong: list[Any] = []

    def partials(node: Any) -> Any:
        return sorted(partials_of(node)) if is_many(node) else None

    def work(x: float) -> None:
        want, first = line(x, 0.5), slopes[x]
        for _ in range(200):
            got = made.compiled(x, 0.5)
            if difference(got.data, want.data) > CLOSE or (is_many(got) and partials(got) != first):
                wrong.append(x)

    places = [0.1 * n for n in range(4)]
    slopes = {x: partials(made.compiled(x, 0.5)) for x in places}
    threads = [threading.Thread(target=work, args=(x,)) for x in places]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_refused_function_is_called_as_it_is() -> None:
    said: list[float] = []

    def f(x: float, rows: Any = (1.0,)) -> Any:
        said.append(x)
        return W * x

    compiled = wengert.compile(f)
    with pytest.warns(UserWarning, match="runs uncompiled"):
        [compiled(0.5, rows=[1.0, 2.0]) for _ in range(4)]
    watched = compiled._server = Watched(compiled._server)
    for _ in range(40):
        compiled(0.5, rows=[1.0, 2.0])
    assert watched.calls == 3  # 8, 16 and 32 are observed again
    assert len(said) == 44
    compiled(0.5, rows=[1.0])  # who knows what becomes of that
    assert watched.calls == 4


@pytest.mark.filterwarnings("ignore:f runs uncompiled")
def test_a_refused_function_gets_what_it_is_given() -> None:
    given: list[Any] = []

    def f(x: Any) -> Any:
        given.append(x)
        return W * float(x.sum())

    compiled = wengert.compile(f)
    for x in (np.ones(3), np.ones(3), np.ones(3, np.float32), np.array(0.5), np.array(0.5), np.ones(5)):
        assert difference(compiled(x).data, W.data * float(x.sum())) < CLOSE
    assert {x.dtype for x in given} == {np.dtype(float), np.dtype(np.float32)}
