"""Conditions: a comparison is a number like others, and a guard where its truth is asked for."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import pytest

import wengert
from tests.compiler.checks import CLOSE, difference, gradients, lifted, same, specializations, warned
from wengert import Value

np = pytest.importorskip("numpy")

pytestmark = pytest.mark.once  # what is recorded and lifted does not depend on which engine runs

W, V = Value(0.7), Value(-1.3)
POINTS = np.random.default_rng(3).normal(size=(24, 2)).round(1)  # some of them equal, on either side of what is asked
BACKENDS = ["numpy", "native", "xla"]

MASKS: dict[str, Callable[[Any, Any], Any]] = {  # of two numbers; one specialization serves all
    "where": lambda x, y: wengert.where(x > 0, W * x, V * y),
    "where of numbers": lambda x, y: W * wengert.where(x <= y, x, y * y),
    "where of Values": lambda x, y: wengert.where(W * x < V * y, W * x, y),
    "where of data": lambda x, y: wengert.where((W * x).data >= (V * y).data, W, V),
    "where in where": lambda x, y: wengert.where(x > 0.5, W, wengert.where(x > -0.5, V, W * V)),
    "less": lambda x, y: W * (x < y) + V,
    "less or equal": lambda x, y: W * (x <= 0.1) + V,
    "greater": lambda x, y: W * (x > 0.1) + V * (x > y),
    "greater or equal": lambda x, y: W * (x >= y) + V,
    "equal": lambda x, y: W * (x == 0.1) + V * (x == x),
    "not equal": lambda x, y: W * (x != 0.1) + V * (x != x),
    "of Values": lambda x, y: (
        V * (W * x < y) + W * (y >= W * x) + V * (W * x != 0.07) + W * (V * x == 0.0) + (W * x > V)
    ),
    "sum of some": lambda x, y: W * sum([x > 0, y > 0, x > y, True]),
    "sum of a generator": lambda x, y: W * sum(v > 0.2 for v in (x, y)) + V,
    "arithmetic": lambda x, y: W * (((x > 0) + 1) * (y > 0) - (x > y) / 2 + 2 ** (x > 0) + (-(y > 0)) // 2 + +(x > 0)),
    "remainders": lambda x, y: W * (((x > 0) + 3) % 2) + V * divmod(7, 1 + (y > 0))[1] + W * abs(x > 0),
    "and": lambda x, y: W * ((x > 0) & (y > 0)) + V * ((x > 0) & True),
    "or": lambda x, y: W * ((x > 0) | (y > 0)) + V * (False | (x > 0)),
    "xor": lambda x, y: W * ((x > 0) ^ (y > 0)) + V * (True ^ (x > 0)),
    "inverted": lambda x, y: W * ~(x > 0) + V * ~((x > 0) & (y < 0)),
    "of another": lambda x, y: W * ((x > 0) == (y > 0)) + V * ((x > 0) > (y > 0)) + W * ((x > 0) == True),  # noqa: E712
    "compared as a number": lambda x, y: W * ((x > 0) * 3 >= 2) + V * (sum([x > 0, y > 0]) == 1),
    "float and int": lambda x, y: W * float(x > 0) + V * int(y > 0) + W * round(x > 0),
    "parts": lambda x, y: W * ((x > 0).real + (x > 0).imag) + V * (y > 0).conjugate() + W * (y > 0).numerator,
    "max and min": lambda x, y: W * max(x > 0, y > 0) + V * min(x > 0, y > 0),
    "kind": lambda x, y: W * isinstance(x > 0, bool) + V * (type(x > y) is bool) + W * isinstance(y > 0, int) * (x > 0),
    "isnan": lambda x, y: wengert.where(math.isnan(x), W, V) + wengert.where(math.isinf(y), W, V * math.isfinite(x)),
    "of NumPy": lambda x, y: W * np.greater(x, y) + V * np.logical_and(x > 0, y > 0) + W * np.logical_not(x > 0),
    "where of NumPy": lambda x, y: W * np.where(x > 0, x, y) + np.where(y > 0, W, V),
    "a function of the table": lambda x, y: W * wengert.tanh(x > 0) + V * math.exp(y > 0),
}
ARRAYS: dict[str, Callable[[Any], Any]] = {  # of an array of two numbers
    "where": lambda X: np.where(X > 0, W * X, V * X * X).sum(),
    "where of numbers": lambda X: W * np.where(X <= 0.1, X, 0.0).sum() + V * np.where(X[0] == X, 1, 0).sum(),
    "where of Values": lambda X: np.where(W * X < 0.1, np.array([W, V]), V * X).sum(),
    "where with a row": lambda X: np.where(X[:, None] > X, W * X, V).sum(),
    "where with a list": lambda X: np.where([X[0] > 0, X[1] > 0], W * X, V * X).sum(),
    "sum": lambda X: W * (X > 0).sum() + V * np.sum(X != 0.1),
    "sums": lambda X: (W * (X[:, None] > X).sum(axis=0)).sum() + V * (X > 0).cumsum()[0],
    "count_nonzero": lambda X: W * np.count_nonzero(X > 0) + V * np.count_nonzero([[1], [0]] * X, axis=0).sum(),
    "mean": lambda X: W * (X > 0).mean() + V * np.mean(X[::-1] > X),
    "product": lambda X: (W * X * (X > 0)).sum() + V * ((X > 0) * (X < 1)).sum(),
    "dot": lambda X: W * ((X > 0) @ X) + V * np.dot(X, X > 0.1),
    "and, or, not": lambda X: (W * ((X > 0) & (X < 1) | ~(X > -1))).sum() + V * ((X > 0) ^ (X > 1)).sum(),
    "add": lambda X: W * ((X > 0) + (X < 1)).sum(),
    "logical": lambda X: (
        W * np.logical_or(X > 0, X < -1).sum() + V * np.logical_xor(X > 0, X > 1).sum() + W * np.logical_not(X).sum()
    ),
    "logical of numbers": lambda X: W * np.logical_and(X, X > 0).sum(),
    "any and all": lambda X: W * (X > 0).any() + V * np.all(X > 0) + W * np.any(X) + V * (X > 0).prod(),
    "max and min": lambda X: W * (X > 0).max() + V * np.min(X > 0),
    "astype": lambda X: W * (X > 0).astype(float).sum() + V * (X > 0).astype(int)[0],
    "isnan": lambda X: (W * np.where(np.isnan(X), 0.0, X)).sum() + V * np.isfinite(X).sum() + W * np.isinf(X).sum(),
    "put": lambda X: _rectified(X),
    "put into a row": lambda X: _cleared(X),
    "put in place": lambda X: _both_in_place(X),
    "a list": lambda X: W * np.sum([X[0] > 0, X[1] > 0, True]) + V * np.mean([v > 0.1 for v in X]),
    "lists": lambda X: W * np.any([[X[0] > 0], [X[1] > 0]], axis=0)[0] + V * np.sum([(X[0] > 0, X[1] > 0)], axis=1)[0],
    "item": lambda X: W * (X > 0)[0] + V * (X > 0).item(1) + W * (X > 0)[1].item(),
    "array": lambda X: W * np.array([X[0] > 0, X[1] > 0]).sum() + V * np.array([X[0] > 0, 2.0]).sum(),
}
GUARDED: dict[str, Callable[[Any], Any]] = {  # two specializations: its truth is asked for
    "if": lambda x: W if x > 0 else V,
    "and": lambda x: W * (x > 0 and 2),
    "or": lambda x: W * (x > 0 or 2),
    "not": lambda x: W * (not x > 0),
    "while": lambda x: _down(x),
    "is True": lambda x: W if (x > 0) is True else V,
    "is False": lambda x: W if (W * x > 0) is False else V,
    "match": lambda x: _matched(x > 0),
    "bool": lambda x: W * bool(x > 0),
    "index": lambda x: [W, V][x > 0],
    "key": lambda x: {False: W, True: V}[x > 0],
    "in": lambda x: W * ((x > 0) in (True, 2)),
    "range": lambda x: W + sum(range(1 + (x > 0))),
    "str": lambda x: W * len(str(x > 0)),
    "format": lambda x: W * len(f"{x > 0} {x > 0!r}"),
    "hash": lambda x: W * hash(x > 0),
    "all": lambda x: W * all([x > 0, x > -9]),
    "any": lambda x: W * any([x > 0, x > 9]),
    "filter": lambda x: W * len([v for v in [1, 2] if x > 0]),
    "sorted": lambda x: sorted([W * x, V * 0.0])[0],
    "chained": lambda x: W if 0 < x < 9 else V,
    "shift": lambda x: W * (1 << (x > 0)),
    "bits of an integer": lambda x: W * (5 & (x > 0)),
    "an array's truth": lambda x: W if (np.array([x, 1.0]) > 0).all() else V,
    "places": lambda x: W * np.array([x, 1.0])[np.array([x, 1.0]) > 0].sum() + V,
}


def _rectified(X: Any) -> Any:
    made = X.copy()
    made[made < 0] = 0.0
    return (W * made).sum() + V


def _cleared(X: Any) -> Any:
    made = X > 0
    row = made[:1]
    row[:] = False
    return W * made.sum() + V


def _both_in_place(X: Any) -> Any:
    made = X > -1
    same = made
    same &= X < 1
    return W * made.sum() + V * same.all()


def _down(x: Any) -> Any:
    made = W
    while x > 0:
        x, made = x - 9, made * V
    return made


def _matched(x: Any) -> Any:
    match x:
        case True:
            return W
        case _:
            return V


UNARY_OF_BOOLS = "__abs__ __ceil__ __floor__ __invert__ __neg__ __pos__ __round__".split()  # noqa: SIM905
BINARY_OF_BOOLS = """__add__ __and__ __divmod__ __eq__ __floordiv__ __ge__ __gt__ __le__ __lt__ __mod__ __mul__ __ne__
__or__ __pow__ __radd__ __rand__ __rdivmod__ __rfloordiv__ __rmod__ __rmul__ __ror__ __rpow__ __rsub__ __rtruediv__
__rxor__ __sub__ __truediv__ __xor__""".split()  # noqa: SIM905
PARTS_OF_BOOLS = ["imag", "numerator", "real"]
TRUTH_OF_BOOLS = """__bool__ __float__ __format__ __hash__ __index__ __int__ __lshift__ __repr__ __rlshift__ __rrshift__
__rshift__ __str__ __trunc__ as_integer_ratio bit_count bit_length denominator to_bytes""".split()  # noqa: SIM905
OF_OBJECTS = """__class__ __delattr__ __dir__ __doc__ __getattribute__ __getnewargs__ __getstate__ __init__
__init_subclass__ __new__ __reduce__ __reduce_ex__ __setattr__ __sizeof__ __subclasshook__ conjugate from_bytes
is_integer""".split()  # noqa: SIM905


def results(f: Callable[..., Any], calls: Iterable[tuple[Any, ...]]) -> list[Any]:
    """The number and the gradients of each call."""
    return [[(made := f(*args)).data, *gradients(made, [W, V])] for args in calls]


def checked(f: Callable[..., Any], calls: list[tuple[Any, ...]], count: int, backend: str) -> None:
    """A compiled function is the function in single calls, `map` and `mean`, by so many specializations each."""
    compiled = wengert.compile(f, backend=backend)
    columns = [np.array(column) for column in zip(*calls, strict=True)]
    want = results(f, calls)
    assert difference(results(compiled, calls), want) < CLOSE
    for _ in range(2):
        assert difference(compiled.map(*columns), [number for number, *_ in want]) < CLOSE
        same(compiled.mean(*columns), wengert.mean([f(*args) for args in calls]), [W, V])
    lifted(compiled)
    assert specializations(compiled) == [count, count], compiled.report()


@pytest.mark.sampled(18)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", MASKS)
def test_a_condition_of_numbers_is_no_guard(name: str, backend: str) -> None:
    checked(MASKS[name], [tuple(point) for point in POINTS.tolist()], 1, backend)


@pytest.mark.sampled(18)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", ARRAYS)
@pytest.mark.filterwarnings("ignore")
def test_a_condition_of_arrays_is_no_guard(name: str, backend: str) -> None:
    checked(ARRAYS[name], [(point,) for point in POINTS], 1, backend)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", GUARDED)
@pytest.mark.filterwarnings("ignore")
def test_truth_is_a_guard(name: str) -> None:
    checked(GUARDED[name], [(float(x),) for x in POINTS[:, 0] if x], 2, "numpy")


# ------------------------------------------------------------------------------------- every operator of a bool


def test_every_attribute_of_a_bool_is_in_a_list() -> None:
    known = {*UNARY_OF_BOOLS, *BINARY_OF_BOOLS, *PARTS_OF_BOOLS, *TRUTH_OF_BOOLS, *OF_OBJECTS}
    assert set(dir(bool)) <= known


def number(answer: Any) -> Any:
    """An answer as a number of the graph."""
    return answer[0] + 10 * answer[1] if isinstance(answer, tuple) else answer


@pytest.mark.parametrize("name", [*UNARY_OF_BOOLS, *PARTS_OF_BOOLS])
@pytest.mark.filterwarnings("ignore")
def test_operators_of_one_bool_are_recorded(name: str) -> None:
    def f(x: float) -> Any:
        found = getattr(x > 0, name)
        return W * (found() if callable(found) else found) + V

    checked(f, [(x,) for x in POINTS[:, 0].tolist()], 1, "numpy")


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", BINARY_OF_BOOLS)
@pytest.mark.filterwarnings("ignore")
def test_operators_of_two_bools_are_recorded(name: str) -> None:
    divides = name.strip("_r") in ("divmod", "floordiv", "mod", "truediv", "pow")

    def f(x: float, y: float) -> Any:
        a, b = x > 0, (y > 0) | True if divides else y > 0.5
        return (
            W * number(getattr(b if "__r" in name and divides else a, name)(a if "__r" in name and divides else b)) + V
        )

    checked(f, [tuple(point) for point in POINTS.tolist()], 1, "numpy")


@pytest.mark.sampled(4)
@pytest.mark.parametrize("name", TRUTH_OF_BOOLS)
@pytest.mark.filterwarnings("ignore")
def test_what_takes_a_bool_out_is_a_guard(name: str) -> None:
    args: dict[str, Any] = {"__format__": ("",), "to_bytes": (1, "big")}
    more = args.get(name, (1,) if "shift" in name else ())

    def f(x: float) -> Any:
        found = getattr(x > 0, name)
        found = found(*more) if callable(found) else found
        return W * (sum(map(ord, found)) if isinstance(found, str) else len(found) if isinstance(found, bytes) else 2)

    compiled = wengert.compile(f, backend="numpy")
    calls = [(x,) for x in POINTS[:, 0].tolist()]
    assert difference(results(compiled, calls), results(f, calls)) < CLOSE
    lifted(compiled)
    assert specializations(compiled)[0] <= 2


# ------------------------------------------------------------------------------------- what is said, and special values


def test_ten_conditions_in_a_row_are_one_specialization() -> None:
    @wengert.compile
    def total(xs: list[float]) -> Any:
        made: Any = 0.0
        for x in xs:
            made = made + wengert.where(x > 0, W * x, V * x * x)
        return made

    X = np.random.default_rng(0).normal(size=(40, 10))
    for row in X.tolist():
        same(total(row), total.function(row), [W, V])
    same(total.mean(X), wengert.mean([total.function(row) for row in X.tolist()]), [W, V])
    assert specializations(total) == [1, 1]
    assert "specialization 2" not in total.report()
    assert "guard:" not in total.report()


def test_the_same_condition_as_a_mask_and_as_a_branch() -> None:
    def f(x: float) -> Any:
        is_positive = x > 0
        made = wengert.where(is_positive, W * x, V)
        return made * 2.0 if is_positive else made - W

    compiled = wengert.compile(f, backend="numpy")
    for x in (1.0, -1.0, 2.0, -3.0, 0.0, -0.0, math.nan):
        same(compiled(x), f(x), [W, V])
    lifted(compiled)
    assert specializations(compiled) == [2]
    assert "return made * 2.0 if is_positive else made - W" in compiled.report()


SPECIAL = [0.0, -0.0, 1.0, -1.0, math.nan, math.inf, -math.inf, 5e-324, -5e-324, 1e308, 1.0 + 2**-52]


@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("how", ["<", "<=", ">", ">=", "==", "!="])
def test_special_values_compare_as_pythons(how: str, backend: str) -> None:
    space: dict[str, Any] = {"W": W, "V": V, "wengert": wengert}
    f = eval(f"lambda x, y: wengert.where(x {how} y, W, V) + W * (x {how} 0.5)", space)
    compiled = wengert.compile(f, backend=backend)
    calls = [(x, y) for x in SPECIAL for y in SPECIAL]
    assert difference(results(compiled, calls), results(f, calls)) == 0.0
    columns = [np.array(column) for column in zip(*calls, strict=True)]
    assert difference(compiled.map(*columns), [f(*args).data for args in calls]) == 0.0
    lifted(compiled)


@pytest.mark.parametrize("backend", ["numpy", "native"])
@pytest.mark.parametrize("how", ["<", "<=", ">", ">=", "==", "!="])
def test_one_example_of_a_batch_goes_another_way(how: str, backend: str) -> None:
    """Wherever it stands: guards are looked at several examples at a time."""
    space: dict[str, Any] = {"W": W, "V": V}
    one = eval(f"lambda x, y: W * x if x {how} 0.5 else V - x", space)
    two = eval(f"lambda x, y: (W * x if x {how} 0.5 else V - x) * (W if y {how} x else V)", space)
    for f in (one, two):
        compiled = wengert.compile(f, backend=backend)
        for often in (0.25, 0.5, 0.75):
            for other in (0.0, 0.5, 1.0, math.nan):
                for count in (1, 8, 19):
                    for odd in range(count):
                        x, y = np.full(count, often), np.full(count, 2.0)
                        x[odd] = other
                        want = [f(*pair).data for pair in zip(x.tolist(), y.tolist(), strict=True)]
                        assert difference(compiled.map(x, y), want) == 0.0
        lifted(compiled)


@pytest.mark.parametrize("backend", BACKENDS)
def test_what_is_not_chosen_does_not_matter(backend: str) -> None:
    """Its value may be nan; where its derivative is infinite, the engine gives nan, and so does a compiled function."""
    functions: list[Callable[[Any], Any]] = [
        lambda x: wengert.where(x > 0, wengert.log(W * x), V * x),
        lambda x: wengert.where(x > 0, W * wengert.sqrt(x), W * V),
        lambda x: np.where(np.array([x, -x]) > 0, W * np.sqrt(np.abs(np.array([x, x]))), V * np.array([x, x])).sum(),
    ]
    for f in functions:
        compiled = wengert.compile(f, backend=backend)
        for x in [1.0, -1.0, 2.0, 0.0, -0.5, 3.0, -2.0, 0.0]:
            got, want = compiled(x), f(x)
            slopes, wanted = gradients(got, [W, V]), gradients(want, [W, V])
            assert np.allclose([got.data, *slopes], [want.data, *wanted], rtol=CLOSE, atol=0.0, equal_nan=True)
        lifted(compiled)


def test_gradients_are_those_of_torch() -> None:
    torch = pytest.importorskip("torch")
    compiled = wengert.compile(lambda X: np.where(X > 0.2, np.exp(W * X), V * X * X).sum() * (X[0] < W))
    X = np.random.default_rng(1).normal(size=(12, 4))
    for row in X:
        w, v, x = (torch.tensor(number, dtype=torch.float64) for number in (W.data, V.data, row))
        w.requires_grad_(), v.requires_grad_()
        want = torch.where(x > 0.2, torch.exp(w * x), v * x * x).sum() * (w > x[0])
        want.backward()
        got = compiled(row)
        assert difference([got.data, *gradients(got, [W, V])], [want.item(), w.grad.item(), v.grad.item()]) < CLOSE
    assert specializations(compiled) == [1]


def test_bools_of_numpy_that_are_added() -> None:
    """To add two of them is to ask for either; a list of them, which NumPy adds up like that, it counts."""
    f = lambda X: W * ((X[0] > 0) + (X[1] > 0)) + V * np.add.reduce([X[0] > 0, X[1] > 0])  # noqa: E731
    compiled = wengert.compile(f, backend="numpy")
    (said,) = warned(lambda: [compiled(row) for row in POINTS])
    assert "adds bools of NumPy" in said
    assert [compiled(row).data for row in POINTS] == [f(row).data for row in POINTS]


def test_a_choice_between_a_number_and_a_value_is_a_guard() -> None:
    """Which of them it is, a function may tell."""
    f = lambda X: np.where(X > 0, W * X, 0.5)[0]  # noqa: E731
    compiled = wengert.compile(f, backend="numpy")
    for row in POINTS:
        got, want = compiled(row), f(row)
        assert type(getattr(got, "data", got)) is float or isinstance(got, float)
        assert type(got) is type(want)
        assert difference(getattr(got, "data", got), getattr(want, "data", want)) < CLOSE


def test_values_outside_of_a_recording_compare_as_ever() -> None:
    v = Value(2.0)
    assert [v > 1, v >= 3.0, v < 1, v <= 2, v == 2.0, v != 2.0, v != 3, v == v, v != v, v != Value(2.0)] == [
        True, False, False, True, True, False, True, True, False, True,
    ]  # fmt: skip
    assert type(v > 1) is bool
    assert type(v != 1) is bool
    assert v != "a"
