"""Operations of the user's own are compiled from their rules: values, derivatives, exceptions as uncompiled."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import wengert
from tests.compiler.checks import CLOSE, difference
from wengert import Value, grad

np = pytest.importorskip("numpy")
pytest.importorskip("llvmlite", reason="machine code is made by llvmlite")

pytestmark = pytest.mark.once  # what is recorded and lifted does not depend on which engine runs

SCALE = 3.0
SLOPES = [0.1, 0.3]


def scaled(x: float) -> float:
    return helper(x) / SCALE


def helper(x: float) -> float:
    return math.sin(x)


def square_root(x: float) -> float:
    return math.sqrt(x)


def bent(x: float) -> float:
    if x > 1.0:
        return 2.0 * x
    return x if x > 0.0 else SLOPES[0] * x


def bent_slope(out: float, x: float) -> float:
    if x > 1.0:
        return 2.0
    return 1.0 if x > 0.0 else SLOPES[0]


def caught(x: float) -> float:
    try:
        return SLOPES[int(x)]
    except Exception:
        return x


RULES: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "of helpers and globals": (scaled, lambda out, x: math.cos(x) / SCALE),
    "of several branches": (bent, bent_slope),
    "straight through": (lambda x: float(round(x)), lambda out, x: 1.0),
    "of a power": (lambda x: x**3, lambda out, x: 3 * x**2),
    "whose slope is clipped": (lambda x: x * abs(x), lambda out, x: min(max(2 * abs(x), 0.5), 1.5)),
    "with a hole": (lambda x: math.sin(x) / x if x else 1.0, lambda out, x: (math.cos(x) - out) / x if x else 0.0),
    "of NumPy's functions": (lambda x: np.tanh(x), lambda out, x: 1.0 - out * out),
    "of the library's": (lambda x: wengert.erf(x), lambda out, x: wengert.gaussian(x)),
    "with a constant result": (lambda x: 2, lambda out, x: 0),
}
OPAQUE: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "of a function of C": (lambda x: math.gamma(abs(x) + 1.0), lambda out, x: out),
    "that reads a table": (caught, lambda out, x: 0.5),
    "of many branches": (
        lambda x: sum(n if x > 0.1 * n else 1.0 for n in range(9)) + x,
        lambda out, x: 1.0,
    ),
}
X = np.array([-1.7, -0.4, 0.3, 0.9, 1.2, 2.4])


def own(name: str) -> Callable[..., Any]:
    value, partials = (RULES | OPAQUE)[name]
    return wengert.op(f"own_{name.replace(' ', '_').replace(chr(39), '')}", value=value, partials=partials)


def alike(compiled: Any, w: Value, xs: Any) -> None:
    """One at a time and as a batch, again and again, with the derivatives of the function itself."""
    function = compiled.function
    for x in [*xs.tolist(), *xs.tolist()]:
        w.grad = 0.0
        got = compiled(x)
        got.backward()
        slope, w.grad = w.grad, 0.0
        want = function(x)
        want.backward()
        assert difference([got.data, slope], [want.data, w.grad]) < CLOSE
    for _ in range(3):
        w.grad = 0.0
        got = compiled.mean(xs)
        got.backward()
        slope, w.grad = w.grad, 0.0
        want = wengert.mean([function(x) for x in xs.tolist()])
        want.backward()
        assert difference([got.data, slope], [want.data, w.grad]) < CLOSE
    assert difference(compiled.map(xs), [function(x).data for x in xs.tolist()]) < CLOSE


def served(compiled: Any) -> list[Any]:
    """The specializations that are machine code."""
    every = [made for entry in compiled._server.entries.values() for made in entry.specializations]
    return [made for made in every if made.kernel.code is not None]


@pytest.mark.parametrize("name", RULES)
def test_rules_are_machine_code(name: str) -> None:
    row, w = own(name), Value(0.8)
    compiled = wengert.compile(lambda x: row(w * x) * w + row(w))
    alike(compiled, w, X)
    assert len(served(compiled)) == 2  # of one number, and of a batch: a branch is no other specialization
    assert "computed in Python" not in compiled.report()


@pytest.mark.parametrize("name", OPAQUE)
def test_rules_that_take_the_number_out_are_called(name: str) -> None:
    row, w = own(name), Value(0.8)
    compiled = wengert.compile(lambda x: row(w * x) * w)
    alike(compiled, w, X)
    assert not served(compiled)


@pytest.mark.parametrize("name", RULES)
def test_of_numbers_alone(name: str) -> None:
    row, w = own(name), Value(0.8)
    alike(wengert.compile(lambda x: row(x) * w), w, X)


def test_of_two_operands_and_of_constants() -> None:
    row = wengert.op("own_area", value=lambda x, y: x * math.exp(y), partials=lambda out, x, y: (math.exp(y), out))
    w = Value(0.4)
    compiled = wengert.compile(lambda x: row(w, x) + row(x, w) + row(w, w * x) + row(2, w) + row(w, -1.5))
    alike(compiled, w, X)
    assert len(served(compiled)) == 2


def test_where_the_other_branch_raises() -> None:
    """It is found out at a number at which it does: then the branch is a guard."""
    row = wengert.op(
        "own_root",
        value=lambda x: math.sqrt(x) if x > 0.0 else x,
        partials=lambda out, x: 0.5 / out if x > 0.0 else 1.0,
    )
    w = Value(0.8)
    alike(wengert.compile(lambda x: row(w * x)), w, X)
    alike(wengert.compile(lambda x: row(w * x)), w, -X)


def test_what_it_raises() -> None:
    root = wengert.op("own_plain_root", value=square_root, partials=lambda out, x: 0.5 / out)
    compiled = wengert.compile(lambda x: wengert.where(x > 0.0, root(x * Value(1.0)), 0.0))
    for _ in range(3):
        assert compiled(4.0).data == 2.0
        with pytest.raises(ValueError, match=r"math domain|nonnegative"):
            compiled(-4.0)
    with pytest.raises(ValueError, match=r"math domain|nonnegative"):
        compiled.mean([1.0, -1.0])


def test_what_its_rules_read_is_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    row, w = own("of helpers and globals"), Value(0.8)
    compiled = wengert.compile(lambda x: row(w * x))
    alike(compiled, w, X)
    monkeypatch.setitem(globals(), "SCALE", 5.0)
    alike(compiled, w, X)
    monkeypatch.setitem(globals(), "helper", lambda x: x * x)
    alike(compiled, w, X)


def test_helpers_of_a_branch_that_was_not_taken_are_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    row = wengert.op(
        "own_helpers", value=lambda x: x if x > 0.0 else falling(x), partials=lambda out, x: 1.0 if x > 0.0 else SCALE
    )
    w = Value(0.8)
    compiled = wengert.compile(lambda x: row(w * x))
    alike(compiled, w, X[::-1])
    assert len(served(compiled)) == 2
    monkeypatch.setitem(globals(), "SCALE", 5.0)
    alike(compiled, w, X[::-1])
    monkeypatch.setitem(globals(), "falling", lambda x: 0.25 * x)
    alike(compiled, w, X[::-1])


def falling(x: float) -> float:
    return SCALE * x


NOTED: list[float] = []
COUNTED = {"negative": 0}


def notes(x: float) -> float:
    if x > 0.0:
        return x
    NOTED.append(x)
    return -x


def counts(x: float) -> float:
    if x > 0.0:
        return x
    COUNTED["negative"] += 1
    return -x


def notes_in_a_helper(x: float) -> float:
    return x if x > 0.0 else notes(x)


def notes_by_another_name(x: float) -> float:
    if x > 0.0:
        return x
    noted = NOTED
    noted += [x]
    return -x


def warns(x: float) -> float:
    if x > 0.0:
        return x
    warnings.warn("negative", stacklevel=1)
    return -x


INNER = wengert.op("own_inner_notes", value=notes, partials=lambda out, x: 1.0)


def notes_in_an_operation(x: float) -> float:
    return x if x > 0.0 else float(INNER(x))


@pytest.mark.parametrize(
    "rule", [notes, counts, notes_in_a_helper, notes_by_another_name, warns, notes_in_an_operation]
)
@pytest.mark.parametrize("backend", ["auto", "numpy", "native"])
def test_a_branch_that_does_more_than_compute_is_not_tried(rule: Callable[[float], float], backend: Any) -> None:
    """Its effects happen where the function has them: not while it is recorded, nor never."""
    row, w = (
        wengert.op(f"own_{rule.__name__}", value=rule, partials=lambda out, x: 1.0 if x > 0.0 else -1.0),
        Value(0.8),
    )

    def effects(call: Callable[[Any], Any]) -> Any:
        NOTED.clear()
        COUNTED["negative"] = 0
        numbers = []
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            for x in [0.3, 0.7, -0.4, 1.1, -0.2, 0.9, -0.4]:
                numbers.append(call(x).data)
        return numbers, [*NOTED], dict(COUNTED), len([w for w in warned if str(w.message) == "negative"])

    want = effects(lambda x: row(w * x))
    assert want[1] or want[2]["negative"] or want[3]
    assert effects(wengert.compile(lambda x: row(w * x), backend=backend)) == want


def test_a_loop_that_ends_only_where_its_branch_is_taken() -> None:
    def grown(x: float) -> float:
        if x >= 0.0:
            while x < 100.0:
                x = 2.0 * x + 1.0
        else:
            while x > -100.0:
                x = 2.0 * x - 1.0
        return x

    row, w = wengert.op("own_grown", value=grown, partials=lambda out, x: 1.0), Value(0.8)
    alike(wengert.compile(lambda x: row(w * x)), w, X)


def test_two_operations_of_one_name() -> None:
    """Each compiled function keeps the one that it has, and a method is the latest."""
    w, rows = Value(0.8), []
    for factor in (2.0, 3.0):
        rows.append(
            wengert.op("own_twice", value=lambda x, k=factor: k * x, partials=lambda out, x, k=factor: k, arity=1)
        )
    first, second = rows
    both = wengert.compile(lambda x: first(w * x) * second(w))
    alike(both, w, X)
    method = wengert.compile(lambda x: (w * x).own_twice())
    alike(method, w, X)
    wengert.op("own_twice", value=lambda x: -x, partials=lambda out, x: -1.0)
    alike(both, w, X)
    alike(method, w, X)


def test_a_name_that_is_given_again() -> None:
    w = Value(0.8)
    for factor in (2.0, 3.0):
        row = wengert.op("own_again", value=lambda x, k=factor: k * x, partials=lambda out, x, k=factor: k, arity=1)
        compiled = wengert.compile(lambda x: row(w * x))  # noqa: B023  (called at once)
        assert [compiled(1.0).data for _ in range(3)] == [factor * 0.8] * 3


def test_derivatives_of_derivatives() -> None:
    cube, area = (
        own("of a power"),
        wengert.op("own_product", value=lambda x, y: x * y, partials=lambda out, x, y: (y, x)),
    )
    function: Any = lambda x: area(cube(x), x.sin() if isinstance(x, Value) else math.sin(x)) * cube(2 * x)  # noqa: E731
    for _ in range(2):
        function = grad(function)
        compiled = wengert.compile(function)
        for x in [0.3, 0.7, 0.3, -1.1, 0.7]:
            assert difference(compiled(x), function(x)) < CLOSE
        assert len(served(compiled)) >= 1


def test_a_first_derivative_of_rules_for_floats_alone() -> None:
    row = own("of helpers and globals")
    function = grad(lambda x: row(x) ** 2)
    compiled = wengert.compile(function)
    for x in [0.3, 0.7, 0.3, -1.1]:
        assert difference(compiled(x), function(x)) < CLOSE
    assert len(served(compiled)) == 1
    with pytest.raises(wengert.errors.OperationError, match="no further derivative"):
        wengert.compile(grad(function))(0.3)


def test_in_layers_of_a_network() -> None:
    """Twenty units with a branch each: one specialization."""
    row = own("of several branches")
    model = wengert.nn.MLP(3, [20, 1], activation=row)
    inputs = np.random.default_rng(0).normal(size=(30, 3))
    compiled = wengert.compile(lambda x: model(x) ** 2)
    for _ in range(3):
        got = compiled.mean(inputs)
    got.backward()
    parameters = model.parameters()
    slopes = [p.grad for p in parameters]
    for p in parameters:
        p.grad = 0.0
    want = wengert.mean([compiled.function(x) for x in inputs.tolist()])
    want.backward()
    assert difference([got.data, *slopes], [want.data, *[p.grad for p in parameters]]) < CLOSE
    assert len(served(compiled)) == 1


def test_a_refusal_that_the_function_caught_stays_when_a_rule_cannot_be_recorded() -> None:
    called_back = wengert.op("called_back_after", value=lambda x: float(f"{x:.17g}"), partials=lambda out, x: float(1))
    w = Value(3.0)

    def function(x: float) -> Value:
        try:
            scale = w.grad
        except Exception:  # as users write it
            scale = 0.0
        return called_back(x) * w + scale

    compiled = wengert.compile(function)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert [compiled(2.0).data for _ in range(6)] == [6.0] * 6
        w.grad = 7.0
        assert compiled(2.0).data == 13.0
