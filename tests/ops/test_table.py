"""Every row of the table is what it says: tested by the table itself, so that a new row is tested unasked.

Three oracles: 60-digit arithmetic (values, first and second derivatives), differences of the row's own value
(for rows that no library knows), and PyTorch. Then a test of these tests: a row that is off by a part in a
thousand, or by a sign, must fail.
"""

from __future__ import annotations

import itertools
import math
import random
import struct
from collections.abc import Callable, Iterator
from math import inf, nan
from typing import Any

import pytest

import wengert
from tools.qa.oracles import CONSTANT, DIGITS, ROWS, leaves_of, mp, mpmath, torch_rows, truths
from tools.qa.special_values import gradients, same, torch_gradients
from wengert import Value, functions, ops
from wengert.errors import OperandError

over_rows = pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)


def points(row: ops.Op, count: int, seed: int = 1) -> Iterator[list[float]]:
    """Random operands from the row's own domain; of an operation on many, five of them."""
    rng = random.Random(f"{row.name} {seed}")
    domain = row.domain if row.arity is not None else row.domain[:1] * 5
    for _ in range(count):
        numbers = [rng.uniform(low, high) for low, high in domain]
        if row.name == "where" and rng.random() < 0.5:
            numbers[0] = 0.0
        if row.name in ("minimum", "maximum") and rng.random() < 0.3:
            numbers[1] = numbers[0] + 0.125  # near, but not a tie
        yield numbers


# ------------------------------------------------------------------------------------- the oracle of many digits


def mp_derivative(function: Callable[..., Any], numbers: list[float], orders: tuple[int, ...]) -> Any:
    """A partial derivative of any order, by differences with steps that only so many digits allow.

    mpmath's own `diff` calls the function between the points, which is wrong by a kink only within its tiny step.
    """
    place = [i for i, order in enumerate(orders) for _ in range(order)]
    step = mpmath.mpf(10) ** -12

    def slope(xs: list[Any], places: list[int]) -> Any:
        if not places:
            return function(*xs)
        first, rest = places[0], places[1:]

        def moved(by: int) -> Any:
            return slope([x + by * step if i == first else x for i, x in enumerate(xs)], rest)

        # Five points: the error is of order step**4.
        return (8 * (moved(1) - moved(-1)) - (moved(2) - moved(-2))) / (12 * step)

    return slope([mpmath.mpf(x) for x in numbers], place)


def close(actual: float, expected: Any, rel: float, size: float) -> bool:
    """Whether the two agree to `rel`, relative to the larger of the expected number and `size`."""
    return bool(abs(mpmath.mpf(actual) - expected) <= rel * max(abs(expected), mpmath.mpf(size)))


def conform(row: ops.Op, count: int = 6) -> None:
    """Hold a row to the oracle: value, partials, second derivatives by way of the partials read over Values.

    `size` is that of the terms that cancel where a result is small by chance: the operands are of size 1.
    """
    with mp.workdps(DIGITS):
        oracle = truths()[row.name].value
        for numbers in points(row, count):
            n = len(numbers)
            exact = oracle(*map(mpmath.mpf, numbers))
            value = row.value(*numbers)
            assert close(value, exact, 4e-15, 0.2), ("value", row.name, numbers)
            assert row.arity == n or row.arity is None
            partials = listed(row.partials(value, *numbers))
            leaves = leaves_of(row, numbers)
            graphs = listed(row.graph_partials(row(*leaves), *leaves))
            assert len(partials) == len(graphs) == n
            for i in range(n):
                if (row.name, i) in CONSTANT:
                    continue
                orders = tuple(int(k == i) for k in range(n))
                expected = mp_derivative(oracle, numbers, orders)
                assert close(partials[i], expected, 1e-13, 0.05), ("partial", row.name, numbers, i)
                graph = graphs[i]
                assert same(graph.data if isinstance(graph, Value) else graph, partials[i]), (row.name, numbers, i)
                for leaf in leaves[len(row.shapes) :]:
                    leaf.grad = 0.0
                if isinstance(graph, Value):
                    graph.backward()
                for j in range(n):
                    if (row.name, j) in CONSTANT:
                        continue
                    orders = tuple(int(k == i) + int(k == j) for k in range(n))
                    second = mp_derivative(oracle, numbers, orders)
                    assert close(leaves[j].grad, second, 1e-12, 0.05), ("second", row.name, numbers, i, j)


def listed(partials: Any) -> list[Any]:
    return list(partials) if isinstance(partials, (tuple, list)) else [partials]


@pytest.mark.mpmath
@over_rows
def test_against_many_digits(row: ops.Op) -> None:
    with mp.workdps(DIGITS):
        if row.name not in truths():
            pytest.skip(f"nothing says what {row.name} is in many digits: a line in oracles.py would")
    conform(row)


# ------------------------------------------------------------------------------------- the oracle of differences


def differences_agree(row: ops.Op, count: int = 10) -> None:
    """Hold a row's partials, of first and second order, to differences of its own value: no library is needed."""

    def slope(function: Callable[..., float], numbers: list[float], i: int, h: float) -> float:
        def moved(by: float) -> float:
            return function(*[x + by * h if k == i else x for k, x in enumerate(numbers)])

        return (8 * (moved(1) - moved(-1)) - (moved(2) - moved(-2))) / (12 * h)

    for numbers in points(row, count, seed=2):
        value = row.value(*numbers)
        partials = listed(row.partials(value, *numbers))
        leaves = leaves_of(row, numbers)
        graphs = listed(row.graph_partials(row(*leaves), *leaves))
        h = 1e-3
        near = any(abs(x) < 4 * h for x in numbers) or any(
            abs(x - y) < 4 * h for x, y in itertools.combinations(numbers, 2)
        )
        if near or row.kink_distance(range(len(numbers)), numbers) < 4 * h:
            continue
        for i in range(len(numbers)):
            if (row.name, i) in CONSTANT:
                continue
            assert partials[i] == pytest.approx(slope(row.value, numbers, i, h), rel=1e-6, abs=1e-7), (numbers, i)
            for leaf in leaves[len(row.shapes) :]:
                leaf.grad = 0.0
            if isinstance(graphs[i], Value):
                graphs[i].backward()
            for j in range(len(numbers)):
                if (row.name, j) in CONSTANT:
                    continue

                def partial(*xs: float, i: int = i) -> float:
                    return float(listed(row.partials(row.value(*xs), *xs))[i])

                expected = slope(partial, numbers, j, h)
                assert leaves[j].grad == pytest.approx(expected, rel=1e-6, abs=1e-7), (numbers, i, j)


@over_rows
def test_against_differences(row: ops.Op) -> None:
    differences_agree(row)


# ------------------------------------------------------------------------------------- PyTorch


@pytest.mark.torch
@over_rows
def test_against_pytorch(row: ops.Op) -> None:
    function = torch_rows().get(row.name)
    if function is None:
        pytest.skip(f"PyTorch has no {row.name} of scalars")
    rel = 1e-8 if row.name == "digamma" else 1e-12  # PyTorch's trigamma is that coarse
    for numbers in points(row, 20, seed=3):
        (value, *slopes), (exact, *theirs) = gradients(row, *numbers), torch_gradients(function, tuple(numbers))
        assert value == pytest.approx(exact, rel=1e-12)
        for slope, expected in zip(slopes, theirs, strict=True):
            assert expected is None or slope == pytest.approx(expected, rel=rel, abs=1e-13)


# ------------------------------------------------------------------------------------- floats, functions, methods


@over_rows
def test_the_row_is_described(row: ops.Op) -> None:
    assert row.symbol
    assert row.about
    assert ops.TABLE[row.code] is row
    assert ops.BY_NAME[row.name] is row
    assert row.arity is None or len(row.domain) == row.arity
    assert all(low <= high for low, high in row.domain)
    assert len(row.defaults) < (row.arity or 1)
    assert row.name in repr(row)


KINKS: dict[str, tuple[float, ...]] = {
    **dict.fromkeys(("relu", "abs", "sign", "floor"), (0.0,)),
    **dict.fromkeys(("maximum", "minimum"), (1.5, 1.5)),
    "max": (2.0, 1.5, 2.0),
    "min": (1.0, 1.5, 1.0),
    "where": (0.0, 1.0, 2.0),
    "clip": (-1.5, -1.5, 1.0),
    "round": (2.5,),
    "remainder": (3.0, 3.0),
    "hypot": (0.0, 0.0),
    "norm": (0.0, 0.0, 0.0),
    "leaky_relu": (0.0, 0.25),
    "elu": (0.0, 0.5),
}
"""Where each row that names kinks has one; the first operand leaves it on either side."""


@over_rows
def test_the_row_says_where_its_derivative_jumps(row: ops.Op) -> None:
    assert (row.kinks is not None) == (row.name in KINKS)
    if row.kinks is None:
        assert row.kink_distance(range(len(row.domain)), [1.0] * len(row.domain)) == inf
        return
    numbers = KINKS[row.name]
    places = range(len(numbers))
    assert row.kink_distance(places, numbers) == 0.0

    def slopes(by: float) -> list[float]:
        xs = [numbers[0] + by, *numbers[1:]]
        assert row.kink_distance(places, xs) == pytest.approx(abs(by), rel=1e-6)
        return row.partials_at(row.value(*xs), xs)

    value_jumps = row.name in ("sign", "floor", "round")
    assert value_jumps or not slopes(1e-6) == slopes(0.0) == slopes(-1e-6)
    assert row.kink_distance([0] * len(numbers), [numbers[0]] * len(numbers)) in (0.0, inf)


def test_a_tie_in_any_arithmetic_is_no_kink() -> None:
    maximum, where = ops.BY_NAME["maximum"], ops.BY_NAME["where"]
    assert maximum.kink_distance((3, 3), (2.0, 2.0)) == inf
    assert maximum.kink_distance((3, 4), (2.0, 2.0)) == maximum.kink_distance((3, 2.0), (2.0, 2.0)) == 0.0
    assert where.kink_distance((0.0, 1, 2), (0.0, 1.0, 2.0)) == inf
    assert maximum.kink_distance((0, 1), (inf, inf)) == 0.0


@over_rows
def test_the_row_says_where_its_value_cannot_be_negative(row: ops.Op) -> None:
    assert row.sign in ("", ops.NONNEGATIVE, ops.AS_OPERANDS)
    edges = [(-inf,), (-1e300,), (-1.0,), (-0.0,), (1e-300,), (inf,)]
    for numbers in [*points(row, 50, seed=5), *[xs * len(row.domain) for xs in edges]]:
        if row.sign == ops.NONNEGATIVE:
            assert not row.value(*numbers) < 0.0
        elif row.sign == ops.AS_OPERANDS:
            assert not row.value(*map(abs, numbers)) < 0.0


@over_rows
def test_the_row_says_how_it_is_written_between_operands(row: ops.Op) -> None:
    if row.infix:
        written = {1: f"{row.infix}x", 2: f"x {row.infix} y"}[row.arity or 0]
        for numbers in points(row, 20, seed=6):
            assert same(eval(written, dict(zip("xy", numbers, strict=False))), row.value(*numbers))


def test_a_rule_is_interpreted_in_any_namespace() -> None:
    def spelled(row: ops.Op) -> Callable[..., str]:
        return lambda *xs: f"{row.name}({', '.join(map(str, xs))})"

    meanings = ops.namespace(spelled)
    assert ops.interpret(ops.BY_NAME["reciprocal"].value, meanings)("a") == "div(1.0, a)"
    assert ops.interpret(ops.BY_NAME["cos"].partials, ops.namespace(sin=lambda x: 2.0))(0.0, 0.0) == -2.0
    assert ops.interpret(math.sin, meanings) is math.sin


@over_rows
def test_function_method_and_row_agree(row: ops.Op) -> None:
    for numbers in points(row, 5, seed=4):
        expected = row.value(*numbers)
        leaves = leaves_of(row, numbers)
        results = [row(*leaves)]
        for name in (row.name, *row.aliases):
            function = getattr(functions, name)
            if row.name != "dot":
                assert function.__name__ == row.name
                assert function.__doc__ == row.about
            assert (type(function(*numbers)), function(*numbers)) == (float, expected)
            results.append(function(*leaves))
            if row.shapes:  # its first operand is no Value, so it is no method
                assert not hasattr(Value, name)
            elif row.arity is not None:
                results.append(getattr(leaves[0], name)(*leaves[1:]))
            else:
                results += [function(leaves), function(iter(leaves))]
                assert function(numbers) == function(iter(numbers)) == expected
        for result in results:
            assert isinstance(result, Value)
            assert (result.data, result._op, result._row) == (expected, row.symbol, row)
            for leaf in leaves[len(row.shapes) :]:
                leaf.grad = 0.0
            result.backward()
            slopes = [leaf.grad if isinstance(leaf, Value) else nan for leaf in leaves]
            assert slopes == pytest.approx(listed(row.partials(expected, *numbers)), rel=0.0, abs=0.0, nan_ok=True)


@over_rows
def test_a_wrong_number_of_operands(row: ops.Op) -> None:
    if row.arity is None or row.more:
        return
    x = Value(0.5)
    wrong = [0, row.arity + 1, *range(1, row.arity - len(row.defaults))]
    for count in wrong:
        for operands in ([x] * count, [0.5] * count):
            with pytest.raises(ValueError, match=f"{row.name} takes {row.arity} operands?, got {count}"):
                row(*operands)


def test_operands_with_defaults() -> None:
    x = Value(-2.0)
    assert wengert.leaky_relu(x).data == wengert.leaky_relu(x, 0.01).data == -0.02
    assert x.elu().data == wengert.elu(-2.0) == wengert.elu(-2.0, 1.0) == math.expm1(-2.0)


def test_of_no_values() -> None:
    assert (wengert.sum([]), wengert.prod([]), wengert.prod(())) == (0.0, 1.0, 1.0)
    for function in (wengert.mean, wengert.max, wengert.min, wengert.logsumexp, wengert.softmax, wengert.log_softmax):
        with pytest.raises(ValueError, match="got no values: expected at least one"):
            function([])
    for function in (wengert.softmax, wengert.log_softmax):
        with pytest.raises(OperandError, match=r"softmax takes a list of values, not float 1\.0"):
            function(1.0)


# ------------------------------------------------------------------------------------- the fast bodies of the engine

FAST: dict[str, Callable[..., Any]] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y,
    "pow": lambda x, y: x**y,
    "neg": lambda x: -x,
    "relu": lambda x: x.relu(),
    "tanh": lambda x: x.tanh(),
    "exp": lambda x: x.exp(),
    "log": lambda x: x.log(),
    "abs": abs,
}


def bits(x: float) -> bytes:
    return struct.pack(">d", nan if x != x else x)


def numbers_for(count: int) -> list[tuple[float, ...]]:
    special = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, -2.0, 3.0, 709.9, -745.2, 1e300, -1e300, 1e-300, 5e-324, inf, -inf, nan]
    rng = random.Random(5)
    ordinary = [tuple(rng.uniform(-3, 3) for _ in range(count)) for _ in range(200)]
    wide = [tuple(rng.choice([-1, 1]) * 10 ** rng.uniform(-300, 300) for _ in range(count)) for _ in range(200)]
    tenfold = [tuple(rng.uniform(0, 10) ** rng.uniform(0, 3) for _ in range(count)) for _ in range(100)]
    tiny = [(3.5e-323, 3e-5), (-1.5e-323, 7e-9), (2.0, -1074.0), (1.8e-160, 2.0), (-3e-108, 3.0)] if count == 2 else []
    return [*itertools.product(special, repeat=count), *ordinary, *wide, *tenfold, *tiny]


@pytest.mark.parametrize("name", FAST)
def test_a_fast_body_is_its_row_to_the_bit(name: str) -> None:
    row = ops.BY_NAME[name]
    assert row.arity in (1, 2)
    for numbers in numbers_for(row.arity):
        data = row.value(*numbers)
        partials = listed(row.partials(data, *numbers))
        for places in [(0,)] if row.arity == 1 else [(0, 1), (0,), (1,)]:
            operands = [Value(x) if i in places else x for i, x in enumerate(numbers)]
            y = FAST[name](*operands)
            assert (y._row, bits(y.data)) == (row, bits(data)), (numbers, places)
            assert [x.data if isinstance(x, Value) else x for x in y._operands] == pytest.approx(numbers, nan_ok=True)
            y.backward()
            for i in places:
                expected = 0.0 + partials[i] * 1.0
                assert bits(operands[i].grad) == bits(expected), (numbers, places)  # type: ignore[union-attr]


def test_dot_is_its_row_to_the_bit() -> None:
    row, rng = ops.BY_NAME["dot"], random.Random(6)
    for trial in range(200):
        n = rng.randrange(5)
        numbers = [rng.choice([0.0, -0.0, inf, 1e300, nan]) if trial % 2 and rng.random() < 0.2 else rng.gauss(0, 3)
                   for _ in range(2 * n + 1)]  # fmt: skip
        for constant in (0.0, 0.3, 1.0):
            operands = [x if rng.random() < constant else Value(x) for x in numbers]
            y = wengert.dot(operands[:n], operands[n:-1], operands[-1])
            data = row.value(*numbers)
            if not any(isinstance(x, Value) for x in operands):
                assert (type(y), bits(y)) == (float, bits(data))
                continue
            assert (y._row, bits(y.data)) == (row, bits(data))
            y.backward()
            for x, partial in zip(operands, row.partials(data, *numbers), strict=True):
                assert not isinstance(x, Value) or bits(x.grad) == bits(0.0 + partial)


def test_dot_of_different_lengths() -> None:
    for ws, xs in (([Value(1.0)], []), ([], [1.0]), ([1.0, 2.0], [Value(1.0)] * 3)):
        with pytest.raises(ValueError, match=rf"dot: len\(ws\) is {len(ws)} and len\(xs\) is {len(xs)}"):
            wengert.dot(ws, xs)
    assert wengert.dot([], [], Value(2.0)).data == 2.0
    assert wengert.dot([], []) == 0.0


# ------------------------------------------------------------------------------------- matrices


def test_matmul() -> None:
    a: list[list[Any]] = [[Value(1.0), Value(2.0)], [3.0, Value(4.0)], [5.0, 6.0]]
    b: list[list[Any]] = [[7.0, Value(8.0)], [Value(9.0), 10.0]]
    product = wengert.matmul(a, b)
    plain = [[x.data if isinstance(x, Value) else x for x in row] for row in product]
    assert plain == [[25.0, 28.0], [57.0, 64.0], [89.0, 100.0]]
    wengert.sum(x for row in product for x in row).backward()
    assert (a[0][0].grad, a[1][1].grad, b[0][1].grad, b[1][0].grad) == (15.0, 19.0, 9.0, 12.0)
    vector = wengert.matmul(a, [Value(1.0), 1.0])
    assert [v.data for v in vector] == [3.0, 7.0, 11.0]
    assert wengert.matmul([[1.0, 2.0]], [[3.0], [4.0]]) == [[11.0]]
    for left, right in (([[1.0]], [[1.0], [2.0]]), ([[1.0, 2.0], [1.0]], [[1.0], [2.0]]), ([[1.0]], [])):
        with pytest.raises(ValueError, match="matmul: a row of a has the length 1, and b has"):
            wengert.matmul(left, right)
    with pytest.raises(ValueError, match=r"the rows of b have different lengths: \[1, 2\]"):
        wengert.matmul([[1.0, 2.0]], [[1.0], [2.0, 3.0]])
    wrong: list[tuple[Any, Any, str]] = [
        (3.0, [1.0], r"found float 3\.0 in place of a list"),
        ([1.0, 2.0], [3.0, 4.0], r"found float 1\.0 in place of a list"),
        ([[1.0]], 3.0, r"found float 3\.0 in place of a list"),
        ([[1.0, 2.0]], [[1.0], 2.0], "b mixes rows and numbers: expected a matrix, a list of rows, or a vector"),
    ]
    for left, right, words in wrong:
        with pytest.raises(OperandError, match=words):
            wengert.matmul(left, right)


def test_matmul_of_arrays() -> None:
    np = pytest.importorskip("numpy")
    a, b = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array([[5.0, 6.0], [7.0, 8.0]])
    assert wengert.matmul(a, b) == (a @ b).tolist()
    assert wengert.matmul(a, b[0]) == (a @ b[0]).tolist()


# ------------------------------------------------------------------------------------- the test of the tests


SYMMETRIC = ("add", "mul", "minimum", "maximum", "hypot", "sum", "mean", "prod", "max", "min", "logsumexp")
ALIKE = ("add", "sum", "mean")  # the partials with respect to all operands are the same


def swapped(xs: Any, first: int, second: int) -> list[Any]:
    xs = list(xs)
    xs[first], xs[second] = xs[second], xs[first]
    return xs


def disturbances(row: ops.Op) -> Iterator[tuple[str, ops.Op]]:
    """The row with one of its rules slightly wrong: a thousandth off, of the other sign, two operands swapped."""
    pair = (1, 2) if row.arity == 3 else (0, 1)
    if row.arity != 1 and row.name not in SYMMETRIC:
        yield "value swapped", row._replace(value=lambda *xs: row.value(*swapped(xs, *pair)))
    if row.arity != 1 and row.name not in ALIKE:
        for rule in ("partials", "graph_partials"):
            change = {rule: lambda out, *xs, rule=rule: swapped(getattr(row, rule)(out, *xs), *pair)}
            yield f"{rule} {pair[0]} swapped", row._replace(**change)

    def off(x: Any) -> Any:
        return x * 1.001 if (x.data if isinstance(x, Value) else x) else 1e-3

    def turned(x: Any) -> Any:
        return -x if (x.data if isinstance(x, Value) else x) else 1e-3

    for wrong in (off, turned):
        yield f"value {wrong.__name__}", row._replace(value=lambda *xs, w=wrong: w(row.value(*xs)))
        for k in range(row.arity or 5):
            if (row.name, k) in CONSTANT:
                continue
            for rule in ("partials", "graph_partials"):

                def disturbed(out: Any, *xs: Any, k: int = k, w: Any = wrong, rule: str = rule) -> Any:
                    right = listed(getattr(row, rule)(out, *xs))
                    right[k] = w(right[k])
                    return right

                changed: dict[str, Any] = {rule: disturbed}
                yield f"{rule} {k} {wrong.__name__}", row._replace(**changed)


def holds(check: Callable[[ops.Op, int], None], row: ops.Op, count: int) -> bool:
    try:
        check(row, count)
    except AssertionError:
        return False
    return True


@pytest.mark.once  # what is tried is a test
@pytest.mark.sampled(3)
@pytest.mark.mpmath
@over_rows
def test_a_disturbed_row_fails(row: ops.Op) -> None:
    with mp.workdps(DIGITS):
        if row.name not in truths():
            pytest.skip(f"nothing says what {row.name} is in many digits")
    for kind, disturbed in disturbances(row):
        assert not holds(conform, disturbed, 4), f"{row.name}: {kind} went unnoticed"


@over_rows
def test_a_disturbed_derivative_fails_against_differences(row: ops.Op) -> None:
    for kind, disturbed in disturbances(row):
        if not kind.startswith("partials"):
            continue
        assert not holds(differences_agree, disturbed, 10), f"{row.name}: {kind} went unnoticed"
