"""Functions with `*xs` and `**named`, and functions in C that do not say what they take."""

from __future__ import annotations

import functools
import itertools
import math
import operator
import random
import statistics
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wengert
from wengert import Table, Value, grad, hessian, hvp, jacobian, jvp, value_and_grad, vjp
from wengert.errors import ArgumentError, DataError, OperationError


def number(*xs: float, scale: float = 1.5, **named: float) -> float:
    """Of arguments that all count, each in another way, the named ones by their order."""
    total = sum([math.exp(x / (n + 2.0)) * (n + 1.0) for n, x in enumerate(xs)])
    total += sum([(n + 2.0) * math.sin(x) for n, x in enumerate(named.values())])
    return scale * total + math.prod(xs) ** 2


def after_one(a: float, *xs: float, scale: float = 1.5, **named: float) -> float:
    return number(a, *xs, scale=scale, **named) * a


def after_two(a: float, b: float = 0.25, *xs: float, **named: float) -> float:
    return number(a * b, *xs, **named)


def by_place(a: float, /, *xs: float) -> float:
    return number(*xs) / a


class Model:
    def __init__(self) -> None:
        self.weight = 0.75

    def loss(self, *xs: float, **named: float) -> float:
        return self.weight * number(*xs, **named)

    def __call__(self, *xs: float) -> float:
        return self.weight * number(*xs)

    @classmethod
    def of_class(cls, a: float, *xs: float) -> float:
        return number(a, *xs)

    @wengert.compile
    def compiled(self, *xs: float) -> float:
        return self.weight * number(*xs)


def wrapped(function: Callable[..., float]) -> Callable[..., float]:
    @functools.wraps(function)
    def wrapper(*args: Any, **named: Any) -> float:
        return 2.0 * function(*args, **named)

    return wrapper


def with_first(function: Callable[..., float]) -> Callable[..., float]:
    """Wrap a function so that callers leave out its first argument, which `inspect.signature` does not know."""

    @functools.wraps(function)
    def wrapper(*args: Any, **named: Any) -> float:
        return function(0.5, *args, **named)

    return wrapper


def bare(function: Callable[..., float]) -> Callable[..., float]:
    def wrapper(*args: Any, **named: Any) -> float:
        return 2.0 * function(*args, **named)

    return wrapper


def pair(x: float, y: float = 0.5) -> float:
    return math.exp(x) * y


MODEL = Model()
FUNCTIONS: dict[str, tuple[Any, list[int]]] = {  # with the numbers of positional arguments that they are called with
    "number": (number, [1, 2, 3]),
    "after_one": (after_one, [1, 2, 3]),
    "after_two": (after_two, [1, 2, 4]),
    "by_place": (by_place, [2, 3]),
    "lambda": (lambda *xs: math.exp(xs[0]) * sum(xs), [1, 2]),
    "method": (MODEL.loss, [1, 2]),
    "object": (MODEL, [1, 2]),
    "class method": (Model.of_class, [1, 2]),
    "compiled method": (MODEL.compiled, [1, 2]),
    "partial": (functools.partial(after_one, 0.5), [1, 2]),
    "partial by name": (functools.partial(number, scale=0.5), [2]),
    "wrapped": (wrapped(pair), [1, 2]),
    "wrapped with stars": (wrapped(number), [1, 3]),
    "wrapped twice": (wrapped(wrapped(number)), [2]),
    "wrapped with its first argument": (with_first(pair), [1]),
    "wrapped without its signature": (bare(pair), [1, 2]),
}
CALLS = [(name, count) for name, (_, counts) in FUNCTIONS.items() for count in counts]
POINTS = [0.5, 1.25, -0.75, 0.375]


def at(count: int, call: int = 0) -> list[float]:
    return [x + 0.125 * call for x in POINTS[:count]]


def slope(function: Callable[..., float], xs: list[float], n: int, step: float = 1e-5) -> float:
    both = [function(*xs[:n], xs[n] + sign * step, *xs[n + 1 :]) for sign in (1, -1)]
    return (both[0] - both[1]) / (2.0 * step)


def curvature(function: Callable[..., float], xs: list[float], n: int, m: int) -> float:
    return slope(lambda *ys: slope(function, list(ys), n, 1e-4), xs, m, 1e-4)


@pytest.mark.parametrize(("name", "count"), CALLS)
def test_a_compiled_function_with_stars_is_the_function(name: str, count: int) -> None:
    function = FUNCTIONS[name][0]
    compiled = wengert.compile(function)
    for call in range(6):
        got, want = compiled(*at(count, call)), function(*at(count, call))
        assert type(got) is type(want)
        assert got == pytest.approx(want, rel=1e-14)
    assert "uncompiled" not in compiled.report()
    assert "slowly" not in compiled.report()
    assert "the function itself" not in compiled.report()
    columns = [list(column) for column in zip(*[at(count, call) for call in range(3)], strict=True)]
    each = [function(*at(count, call)) for call in range(3)]
    assert compiled.map(*columns).tolist() == pytest.approx(each, rel=1e-14)
    assert compiled.mean(*map(np.array, columns)).data == pytest.approx(statistics.fmean(each), rel=1e-14)


@pytest.mark.parametrize(("name", "count"), CALLS)
def test_derivatives_with_respect_to_arguments_of_stars(name: str, count: int) -> None:
    function, xs = FUNCTIONS[name][0], at(count)
    slopes = [slope(function, xs, n) for n in range(count)]
    for n in [*range(count), -1, -count]:
        for way in (grad(function, n), wengert.compile(grad(function, n)), grad(wengert.compile(function), n)):
            for _ in range(3):
                assert way(*xs) == pytest.approx(slopes[n], rel=1e-7, abs=1e-9)
            assert wengert.compile(jacobian(function, n))(*xs) == pytest.approx(slopes[n], rel=1e-7, abs=1e-9)
    every = tuple(range(count))
    for of_all in (value_and_grad(function, every), wengert.compile(value_and_grad(function, every))):
        value, gradient = of_all(*xs)
        assert value == pytest.approx(function(*xs), rel=1e-14)
        assert gradient == pytest.approx(tuple(slopes), rel=1e-7, abs=1e-9)
    for matrix in (hessian(function, every)(*xs), wengert.compile(hessian(function, every))(*xs)):
        for n, m in itertools.product(every, every):
            assert matrix[n][m] == pytest.approx(curvature(function, xs, n, m), rel=1e-5, abs=1e-6)


@pytest.mark.parametrize(("name", "count"), CALLS)
def test_products_with_vectors_of_functions_with_stars(name: str, count: int) -> None:
    function, xs = FUNCTIONS[name][0], at(count)
    slopes = [slope(function, xs, n) for n in range(count)]
    along = [1.0, -0.5, 2.0, 0.25][:count]
    want = sum(map(operator.mul, slopes, along))
    for f in (function, wengert.compile(function)):
        for _ in range(3):
            value, tangent = jvp(f, tuple(xs), tuple(along))
            assert value == pytest.approx(function(*xs), rel=1e-14)
            assert tangent == pytest.approx(want, rel=1e-7, abs=1e-9)
            value, pullback = vjp(f, *xs)
            assert value == pytest.approx(function(*xs), rel=1e-14)
            assert pullback(2.0) == pytest.approx(tuple([2.0 * x for x in slopes]), rel=1e-7, abs=1e-9)
    for product in (hvp(function), wengert.compile(hvp(function))):
        for _ in range(3):
            got = product(xs[0], 2.0, *xs[1:])
            assert got == pytest.approx(2.0 * curvature(function, xs, 0, 0), rel=1e-5, abs=1e-6)


def test_named_arguments_are_a_dict_in_the_order_of_the_call() -> None:
    compiled = wengert.compile(number)
    for call in range(5):
        x = 0.25 * call
        for named in ({"p": 1.0, "q": x}, {"q": x, "p": 1.0}, {"q": x, "scale": 2.0, "r": 3.0}, {"lambda": x}, {}):
            assert compiled(0.5, x, **named) == pytest.approx(number(0.5, x, **named), rel=1e-14)
    report = compiled.report()
    assert report.count("5 calls, 4 of them checked") == 5
    assert "slowly" not in report
    batch = compiled.map([0.5, 0.75], q=[1.0, 2.0], p=np.array([3.0, 4.0]))
    assert batch.tolist() == pytest.approx([number(0.5, q=1.0, p=3.0), number(0.75, q=2.0, p=4.0)], rel=1e-14)
    slopes = wengert.compile(grad(number))
    for _ in range(3):
        assert slopes(0.5, q=1.0, p=3.0) == pytest.approx(slope(lambda x: number(x, q=1.0, p=3.0), [0.5], 0), rel=1e-8)


def test_an_argument_by_name_may_be_called_as_one_by_position() -> None:
    def function(x: float, /, **named: float) -> float:
        return 10.0 * x + sum(named.values())

    compiled = wengert.compile(function)
    for _ in range(4):
        assert compiled(2.0, y=3.0) == 23.0
        assert compiled(2.0, x=3.0) == 23.0
    assert "has the name of one by position: rename it" in compiled.report()


def test_another_number_of_arguments_is_another_signature() -> None:
    compiled = wengert.compile(lambda *xs: sum(xs) * len(xs))
    for count in (0, 1, 2, 5, 2, 1, 0):
        for _ in range(3):
            assert compiled(*map(float, range(count))) == sum(range(count)) * count
    lists = wengert.compile(lambda *rows: sum([sum(row) * (n + 1) for n, row in enumerate(rows)]))
    for _ in range(3):
        assert lists([1.0, 2.0], [3.0]) == 9.0
        assert lists((1.0, 2.0), np.array([3.0])) == 9.0
        assert lists([1.0], [2.0], [3.0]) == 14.0


def test_objects_among_the_arguments_are_told_apart() -> None:
    def function(*xs: Any) -> float:
        return 2.0 * xs[0][0] if xs[0] is xs[1] else float(xs[0][0] + xs[1][0])

    compiled = wengert.compile(function)
    one, other, several, equal = [0.5, 0.75], [0.25, 1.25], tuple(POINTS[:2]), tuple(POINTS[:2])
    for _ in range(4):
        for args in ((one, one), (one, other), (several, several), (several, equal)):
            assert compiled(*args) == function(*args)


def test_changes_of_an_argument_reach_it() -> None:
    def function(*xs: list[float]) -> float:
        xs[0][0] += 1.0
        return xs[0][0] * xs[-1][0]

    compiled, own, plain = wengert.compile(function), [1.0], [1.0]
    with pytest.warns(UserWarning, match="it changes xs_0 at each call"):
        results = [compiled(own, [2.0]) for _ in range(5)]
    assert results == [function(plain, [2.0]) for _ in range(5)]
    assert own == plain


def test_stars_may_be_parts_of_the_program() -> None:
    def function(x: float, *powers: int) -> float:
        return sum([x**n for n in powers])

    for static in ("powers", ("powers_0", "powers_1")):
        compiled = wengert.compile(function, static=static)
        for _ in range(3):
            assert compiled(2.0, 2, 3) == 12.0
            assert compiled.map([2.0, 3.0], 2, 3).tolist() == [12.0, 36.0]
        assert grad(compiled)(2.0, 2, 3) == 16.0
    with pytest.raises(ArgumentError, match="'power_0', but function has no such argument"):
        wengert.compile(function, static="power_0")


def test_errors_of_batches_name_the_arguments_of_stars() -> None:
    compiled = wengert.compile(number)
    with pytest.raises(DataError, match=r"differ in the number of examples: \{'xs_0': 2, 'xs_1': 1\}"):
        compiled.map([1.0, 2.0], [3.0])
    with pytest.raises(DataError, match=r"xs_1 is one number: .* \(or declare static='xs_1'\)"):
        compiled.map([1.0, 2.0], 3.0)
    with pytest.raises(DataError, match=r"named_q is one number: a batch has an example in each row$"):
        compiled.map([1.0, 2.0], q=3.0)


def test_values_matrices_and_patterns_of_functions_with_stars() -> None:
    compiled = wengert.compile(lambda *xs: wengert.exp(xs[0]) * xs[1])
    x, y = Value(0.5), Value(3.0)
    for _ in range(3):
        result = compiled(x, y)
    result.backward()
    assert (x.grad, y.grad) == pytest.approx((3.0 * math.exp(0.5), math.exp(0.5)), rel=1e-14)
    rows = lambda *xs: [xs[1][0] * xs[0], xs[1][1]]  # noqa: E731
    matrix = jacobian(rows, 1, sparse=True)
    for _ in range(3):
        assert matrix(3.0, [1.0, 2.0]).toarray().tolist() == [[3.0, 0.0], [0.0, 1.0]]
    assert wengert.sparsity(rows, 1)(3.0, [1.0, 2.0]).toarray().tolist() == [[True, False], [False, True]]
    wengert.check_gradients(lambda *xs: xs[0] * xs[1], (1.0, 2.0))


# -- functions in C ---------------------------------------------------------------------------------------------------

IN_C: dict[str, tuple[Any, tuple[float, ...]]] = {
    "max": (max, (1.0, 2.0)),
    "max of three": (max, (1.0, 4.0, 2.0)),
    "min": (min, (1.0, 2.0)),
    "hypot": (math.hypot, (3.0, 4.0)),
    "hypot of three": (math.hypot, (3.0, 4.0, 12.0)),
    "log of a base": (math.log, (2.0, 3.0)),
    "log": (math.log, (2.0,)),
    "atan2": (math.atan2, (1.0, 2.0)),
    "exp": (math.exp, (1.0,)),
    "pow": (pow, (2.0, 3.0)),
    "abs": (abs, (-2.0,)),
    "float": (float, (2.0,)),
    "mul": (operator.mul, (3.0, 4.0)),
    "a partial": (functools.partial(max, 0.5), (2.0,)),
    "numpy.hypot": (np.hypot, (3.0, 4.0)),
    "wengert.tanh": (wengert.tanh, (0.5,)),
    "wengert.hypot": (wengert.hypot, (3.0, 4.0)),
    "wengert.sum": (lambda *xs: wengert.sum(xs), (3.0, 4.0)),
    "a table": (Table([0.0, 1.0, 2.0, 3.0], [0.0, 1.0, 4.0, 9.0], kind="cubic"), (1.5,)),
    "a table of two": (Table(([0.0, 1.0], [1.0, 2.0, 4.0]), [[0.0, 1.0, 2.0], [3.0, 5.0, 9.0]]), (0.25, 3.5)),
}


@pytest.mark.parametrize("name", IN_C)
def test_functions_in_c_and_tables_are_compiled_and_differentiated(name: str) -> None:
    function, xs = IN_C[name]
    compiled = wengert.compile(function)
    for _ in range(4):
        got, want = compiled(*xs), function(*xs)
        assert type(got) is type(want)
        assert got == pytest.approx(want, rel=1e-15)
    assert compiled.map(*[[x, x] for x in xs]).tolist() == pytest.approx([want, want], rel=1e-15)
    for n in range(len(xs)):
        first = slope(function, list(xs), n)
        for derivative in (grad(function, n), jacobian(function, n)):
            for way in (derivative, wengert.compile(derivative)):
                for _ in range(3):
                    assert way(*xs) == pytest.approx(first, rel=1e-7, abs=1e-9)
                assert "the function itself" not in getattr(way, "report", str)()
        for second in (grad(grad(function, n), n), wengert.compile(grad(grad(function, n), n))):
            assert second(*xs) == pytest.approx(curvature(function, list(xs), n, n), rel=1e-5, abs=1e-6)


def test_a_function_in_c_of_a_list_is_one_of_its_numbers() -> None:
    for function in (max, sum, math.fsum, math.prod, statistics.mean):
        for _ in range(3):
            assert wengert.compile(function)([1.0, 2.0, 4.0]) == function([1.0, 2.0, 4.0])
        want = [slope(lambda *xs: function(xs), [1.0, 2.0, 4.0], n) for n in range(3)]  # noqa: B023
        for way in (grad(function), wengert.compile(grad(function))):
            assert way([1.0, 2.0, 4.0]) == pytest.approx(want, rel=1e-7, abs=1e-9)


def test_keywords_of_a_function_in_c_are_left_to_it() -> None:
    largest = wengert.compile(max)
    for _ in range(4):
        assert largest(-3.0, 2.0, key=abs) == -3.0
        assert largest(-3.0, 2.0) == 2.0
    assert wengert.compile(lambda x, y: max(x, y, key=abs))(-3.0, 2.0) == -3.0


def test_a_function_in_c_whose_derivative_is_not_known_says_what_to_write() -> None:
    assert wengert.compile(math.gamma)(4.5) == math.gamma(4.5)
    for derivative in (grad(math.gamma), wengert.compile(grad(math.gamma)), grad(math.nextafter)):
        xs = (4.5,) if derivative.__name__ == "gamma" else (4.5, 5.0)
        with pytest.raises(OperationError, match=r'wengert\.op\(name, value=function, partials="differences"\)'):
            derivative(*xs)


# -- what is compiled -------------------------------------------------------------------------------------------------


class Plain:
    """Its methods take plain numbers only."""

    def __init__(self) -> None:
        self.weight = 2.0

    @wengert.compile
    def loss(self, x: float) -> float:
        return math.exp(x) * self.weight


DERIVATIVES: dict[str, tuple[Any, Callable[[float], Any]]] = {
    "itself": (lambda f: f, lambda y: y),
    "grad": (grad, lambda y: y),
    "value_and_grad": (value_and_grad, lambda y: (y, y)),
    "jacobian": (lambda f: jacobian(f, (0,)), lambda y: (y,)),
    "hessian": (hessian, lambda y: y),
    "hvp": (hvp, lambda y: 3.0 * y),
}


@pytest.mark.parametrize("kind", DERIVATIVES)
@pytest.mark.parametrize("again", [False, True])
def test_derivatives_of_compiled_functions_of_plain_numbers_are_compiled(
    kind: str, again: bool, recwarn: pytest.WarningsRecorder
) -> None:
    derivative, want = DERIVATIVES[kind]
    for function in (Plain().loss, wengert.compile(lambda x: math.exp(x) * 2.0)):
        of_function = derivative(function)
        of_function = wengert.compile(of_function) if again else of_function
        for x in (0.5, 0.75, 1.0, 1.25):
            args = (x, 3.0) if kind == "hvp" else (x,)
            assert of_function(*args) == pytest.approx(want(2.0 * math.exp(x)), rel=1e-14)
        assert "uncompiled" not in getattr(of_function, "report", str)()
    assert [str(warning.message) for warning in recwarn] == []


# -- signatures of every kind -----------------------------------------------------------------------------------------


def drawn(draw: random.Random) -> tuple[Any, list[str], bool, list[str], bool, bool]:
    """A function of a signature that is drawn, its parameters, and whether it has a default, stars and `**named`."""
    places, by_name = [f"a{n}" for n in range(draw.randint(0, 2))], [f"k{n}" for n in range(draw.randint(0, 2))]
    has_default, has_named = draw.random() < 0.4 and len(places) > 0, draw.random() < 0.5
    has_stars = draw.random() < 0.7 or not places
    written = [*places[:-1], *[f"{name}=1.5" if has_default else name for name in places[-1:]]]
    written += ["/"] if places and draw.random() < 0.3 else []
    written += ["*xs"] if has_stars else ["*"] if by_name else []
    written += [name + draw.choice(["", "=0.75"]) for name in by_name] + ["**named"] * has_named
    terms = [f"{n + 1.0} * math.exp(0.3 * {name})" for n, name in enumerate(places)]
    terms += [f"{n + 2.0} * math.sin({name})" for n, name in enumerate(by_name)]
    terms += ["sum([math.exp(x / (n + 2.0)) * (n + 1.5) for n, x in enumerate(xs)])"] * has_stars
    terms += ["sum([(n + 2.0) * x * x for n, x in enumerate(named.values())])"] * has_named
    factors = " * ".join([*places, *["math.prod(xs)"] * has_stars, "1.0"])
    text = f"lambda {', '.join(written)}: {' + '.join([*terms, factors])}"
    return eval(text, {"math": math}), places, has_default, by_name, has_stars, has_named


@pytest.mark.parametrize("seed", range(12))
def test_functions_of_drawn_signatures(seed: int) -> None:
    draw = random.Random(seed)
    function, places, has_default, by_name, has_stars, has_named = drawn(draw)
    compiled, derivatives = wengert.compile(function), {}
    for _ in range(8):
        count = len(places) - (has_default and draw.random() < 0.4)
        count = draw.randint(len(places), len(places) + 3) if has_stars and draw.random() < 0.7 else count
        xs = [draw.randint(-8, 16) / 8.0 for _ in range(count)]
        names = [*by_name, *(draw.sample(["p", "q", "lambda"], draw.randint(0, 2)) if has_named else [])]
        named = {name: draw.randint(-8, 16) / 8.0 for name in draw.sample(names, len(names))}
        for _ in range(2):
            assert compiled(*xs, **named) == pytest.approx(function(*xs, **named), rel=1e-12)
        if not xs:
            continue
        n = draw.randint(-count, count - 1)
        want = slope(functools.partial(function, **named), xs, n % count)
        derivative = derivatives.setdefault(n, wengert.compile(grad(function, n)))
        for way in (derivative, derivative, grad(function, n)):
            assert way(*xs, **named) == pytest.approx(want, rel=1e-6, abs=1e-7)
    for each in (compiled, *derivatives.values()):
        assert not any(text in each.report() for text in ("uncompiled", "the function itself", "slowly"))
