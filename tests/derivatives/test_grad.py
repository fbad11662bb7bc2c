"""Derivatives of functions: any order, nesting and shape of arguments; held to closed forms, mpmath and PyTorch."""

from __future__ import annotations

import math
import random
from collections import Counter, OrderedDict
from collections.abc import Callable
from functools import partial
from itertools import chain as joined
from itertools import pairwise
from math import inf
from typing import Any, NamedTuple

import pytest

import wengert
from tests.threads import together
from wengert import Value, grad, hessian, hvp, jacobian, jvp, nn, value_and_grad, vjp
from wengert.derivatives.pytree import Numbers
from wengert.errors import ArgumentError, LengthError, OperandError


def rosenbrock(x: Any) -> Any:
    return wengert.sum([100.0 * (b - a * a) ** 2 + (1.0 - a) ** 2 for a, b in pairwise(x)])


def data(x: Any) -> Any:
    """Values in lists, tuples and dicts as floats."""
    if isinstance(x, Value):
        return x.data
    if isinstance(x, (list, tuple)):
        return type(x)([data(item) for item in x])
    return {key: data(item) for key, item in x.items()} if isinstance(x, dict) else x


# ------------------------------------------------------------------------------------- the calling convention


class Point(NamedTuple):
    x: Any
    y: Any


def test_floats_come_out_as_floats() -> None:
    slope = grad(lambda x: x * x)(3.0)
    assert (slope, type(slope)) == (6.0, float)
    assert value_and_grad(lambda x: x * x)(3) == (9.0, 6.0)  # an int counts as a float
    assert type(grad(lambda x: x * x)(3)) is float


def test_of_which_arguments() -> None:
    def f(x: Any, y: Any, power: Any = 2, *, factor: Any = 1.0) -> Any:
        return factor * x**power * y

    assert grad(f)(2.0, 5.0) == 20.0
    assert grad(f, 1)(2.0, 5.0) == 4.0
    assert grad(f, -1)(2.0, 5.0) == 4.0
    assert grad(f, (0, 1))(2.0, 5.0) == (20.0, 4.0)
    assert grad(f, (1, 0))(2.0, 5.0) == (4.0, 20.0)
    assert grad(f, argnums=[0])(2.0, 5.0) == (20.0,)
    assert grad(f)(2.0, 5.0, 3, factor=10.0) == 600.0
    assert grad(f)(y=5.0, x=2.0) == 20.0
    assert hessian(f, (0, 1))(2.0, 5.0) == ((10.0, 4.0), (4.0, 0.0))
    for wrong in (2, -3, "x", 1.0, (0, 2)):
        with pytest.raises(ArgumentError, match=r"argnums is .*, and f was called with 2 positional arguments"):
            grad(f, wrong)(2.0, 5.0)  # type: ignore[arg-type]
    for twice in ((0, 0), (1, -1)):
        with pytest.raises(ArgumentError, match=r"argnums is .*, which names an argument twice"):
            grad(f, twice)(2.0, 5.0)
    with pytest.raises(TypeError, match="missing"):
        grad(f)(2.0)


@pytest.mark.parametrize(
    ("x", "expected"),
    [
        ([2.0, 3.0], [3.0, 2.0]),
        ((2.0, 3), (3.0, 2.0)),
        (Point(2.0, 3.0), Point(3.0, 2.0)),
        ([2, Point(3.0, 7.0)], [3.0, Point(2.0, 0.0)]),
        ([[2.0], [{"a": 3.0, "b": (1.0, None)}]], [[3.0], [{"a": 2.0, "b": (0.0, None)}]]),
        (OrderedDict(b=2.0, a=[3.0, 4.0]), OrderedDict(b=3.0, a=[2.0, 0.0])),
        (Counter(b=2, a=3), Counter(b=3.0, a=2.0)),  # type: ignore[call-overload]
    ],
)
def test_pytrees(x: Any, expected: Any) -> None:
    def f(x: Any) -> Any:
        assert type(x) is type(expected)
        first, second, *_ = Numbers(x).leaves
        return first * second

    slopes = grad(f)(x)
    assert slopes == expected
    assert type(slopes) is type(expected)
    assert Numbers(slopes).names() == Numbers(x).names()


def test_names_of_numbers() -> None:
    np = pytest.importorskip("numpy")
    x = {"w": [1.0, Point(2.0, np.zeros((2, 2)))], "b": 0.5}
    assert Numbers(x).names() == [
        "x['w'][0]",
        "x['w'][1].x",
        *[f"x['w'][1].y[{i}, {j}]" for i in (0, 1) for j in (0, 1)],
        "x['b']",
    ]


def test_a_result_that_does_not_depend_on_the_argument() -> None:
    assert grad(lambda x: 3.0)([1.0, 2.0]) == [0.0, 0.0]
    assert grad(lambda x: Value(2.0) * 1.0)(1.0) == 0.0
    assert value_and_grad(lambda x: 7)(1.0) == (7.0, 0.0)
    assert jacobian(lambda x: [x[0], 4.0])([1.0, 2.0]) == [[1.0, 0.0], [0.0, 0.0]]
    assert hessian(lambda x: x[0])([1.0, 2.0]) == [[0.0, 0.0], [0.0, 0.0]]
    assert jvp(lambda x: 4.0, (1.0,), (1.0,)) == (4.0, 0.0)
    assert grad(lambda x: 0.0)([]) == []
    assert grad(lambda x: x)(5.0) == 1.0


@pytest.mark.parametrize("result", [[1.0], (1.0, 2.0), {"a": 1.0}, None])
def test_a_gradient_is_that_of_one_number(result: Any) -> None:
    def several(x: Any) -> Any:
        return result

    with pytest.raises(ArgumentError, match=r"several returned (a (list|tuple|dict) of \d|None.*forgotten).*jacobian"):
        grad(several)(1.0)


def test_what_cannot_be_differentiated_by_is_named() -> None:
    with pytest.raises(OperandError, match=r"args\[1\]\['name'\]\[0\] is str 'Ann'"):
        grad(lambda x, y: x, 1)(1.0, {"name": ["Ann"]})
    with pytest.raises(OperandError, match=r"the result of the function\[1\] is complex 1j"):
        jacobian(lambda x: [x, 1j])(1.0)
    with pytest.raises(TypeError, match=r"has no len\(\)"):
        grad(lambda x: math.sin(x) + len(x))(1.0)
    assert grad(math.sin)(1.0) == math.cos(1.0)


def test_something_beside_the_value() -> None:
    def f(x: Any) -> Any:
        return x * x, {"half": x / 2.0, "all": [x], "note": "hi"}

    assert grad(f, has_aux=True)(3.0) == (6.0, {"half": 1.5, "all": [3.0], "note": "hi"})
    assert value_and_grad(f, has_aux=True)(3.0) == ((9.0, {"half": 1.5, "all": [3.0], "note": "hi"}), 6.0)
    assert jacobian(f, has_aux=True)(3.0)[0] == 6.0
    assert hessian(f, has_aux=True)(3.0)[0] == 2.0
    assert jvp(f, (3.0,), (1.0,), has_aux=True)[2]["half"] == 1.5
    assert vjp(f, 3.0, has_aux=True)[2]["half"] == 1.5
    with pytest.raises(ArgumentError, match=r"has_aux expects a pair .*; the function returned Value"):
        grad(lambda x: x, has_aux=True)(3.0)


def test_a_derivative_looks_like_its_function() -> None:
    def area(width: Any, height: Any) -> Any:
        """Of a rectangle."""
        return width * height

    for derivative in (grad(area), value_and_grad(area), jacobian(area), hessian(area)):
        assert derivative.__name__ == "area"
        assert "area" in (derivative.__doc__ or "")


def test_arrays() -> None:
    np = pytest.importorskip("numpy")
    x = np.array([1.3, 0.7, 0.8])
    value, slopes = value_and_grad(rosenbrock)(x)
    assert type(value) is float
    assert (slopes.dtype, slopes.shape) == (float, (3,))
    assert slopes.tolist() == grad(rosenbrock)(x.tolist())
    matrix = np.arange(6).reshape(2, 3)
    assert grad(lambda m: (m * m).sum())(matrix).tolist() == (2.0 * matrix).tolist()
    made = jacobian(lambda m: m @ np.array([1.0, 2.0, 3.0]))(matrix)
    assert made.shape == (2, 2, 3)
    assert made[1].tolist() == [[0.0, 0.0, 0.0], [1.0, 2.0, 3.0]]
    assert jacobian(lambda m: [m[0, 0], m[1, 2]])(matrix)[1].tolist() == [[0.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    assert hessian(lambda d: d["a"] @ d["a"] * d["b"])({"a": x, "b": 2.0})["a"]["b"].tolist() == (2.0 * x).tolist()
    assert grad(np.sum)(x).tolist() == [1.0, 1.0, 1.0]
    assert grad(lambda a: np.sin(a[0]))(x)[0] == math.cos(1.3)
    assert grad(lambda x: x * x)(np.float32(3.0)) == 6.0
    assert grad(lambda x: x * x)(np.array(3.0)) == 6.0
    empty = grad(lambda a: 1.0)(np.zeros((0, 2)))
    assert empty.shape == (0, 2)
    kept = grad(lambda a: a[0] * Value(2.0) * a[1])(np.array([Value(1.0), 2.0], dtype=object))
    assert (kept.dtype, [v.data for v in kept]) == (object, [4.0, 2.0])
    with pytest.raises(OperandError, match="is an array of complex128"):
        grad(np.sum)(np.array([1j]))
    with pytest.raises(ArgumentError, match=r"returned an array of the shape \(3,\)"):
        grad(lambda a: a * a)(x)


def test_a_vector_of_another_shape() -> None:
    np = pytest.importorskip("numpy")
    with pytest.raises(LengthError, match=r"v has the length 3; expected 2"):
        hvp(rosenbrock)([1.0, 2.0], [1.0, 2.0, 3.0])
    with pytest.raises(LengthError, match=r"v is float 1.0; expected 2, in a list or tuple"):
        hvp(rosenbrock)([1.0, 2.0], 1.0)
    with pytest.raises(ArgumentError, match=r"tangents\[0\] has the keys \['b'\]; expected a dict .* keys \['a'\]"):
        jvp(lambda d: d["a"], ({"a": 1.0},), ({"b": 1.0},))
    with pytest.raises(ArgumentError, match=r"primals is float 1.0; expected a tuple of arguments"):
        jvp(lambda x: x, 1.0, (1.0,))  # type: ignore[arg-type]
    with pytest.raises(LengthError, match=r"v has the shape \(2, 1\); expected \(2,\)"):
        hvp(rosenbrock)(np.ones(2), np.ones((2, 1)))
    with pytest.raises(OperandError, match="str 'x'"):
        vjp(lambda x: x, 1.0)[1]("x")


# ------------------------------------------------------------------------------------- the numbers


def program(rng: random.Random, leaves: list[Any]) -> Any:
    """A tangle of operations of every kind."""
    nodes: list[Any] = list(leaves)
    for _ in range(120):
        x, y, z = (rng.choice(nodes) for _ in range(3))
        nodes.append(
            [
                lambda x, y, z: x + y,
                lambda x, y, z: (x * y).tanh(),
                lambda x, y, z: x - 2.0 * z,
                lambda x, y, z: 1.5 - y,
                lambda x, y, z: x / (y * y + 1.0),
                lambda x, y, z: (x * x + 1.0) ** 0.5,
                lambda x, y, z: (x * 0.1).exp(),
                lambda x, y, z: wengert.dot([x, 2.0, y], [y, z, 0.5], z).tanh(),
                lambda x, y, z: wengert.logsumexp([x, y, z]),
                lambda x, y, z: wengert.max([x, y, 0.3]),
                lambda x, y, z: wengert.clip(x, -2.0, 2.0),
                lambda x, y, z: wengert.mean(wengert.softmax([x, y, z])) + x.relu(),
                lambda x, y, z: wengert.hypot(x, z).sin(),
                lambda x, y, z: wengert.prod([x.tanh(), y.tanh(), z.tanh()]),
            ][rng.randrange(14)](x, y, z)
        )
    return wengert.sum(nodes[-5:])


def test_the_bits_are_those_of_backward() -> None:
    for seed in range(30):
        rng = random.Random(seed)
        numbers = [rng.gauss(0.0, 1.0) for _ in range(4)]
        leaves = [Value(x) for x in numbers]
        y = program(random.Random(seed), leaves)
        y.backward()
        value, slopes = value_and_grad(lambda x, seed=seed: program(random.Random(seed), x))(numbers)
        assert (value, slopes) == (y.data, [leaf.grad for leaf in leaves])


def test_bits_of_what_is_not_finite() -> None:
    """0 times infinity is nan where `backward()` says so, and only there."""
    cases: list[Callable[[Any], Any]] = [
        lambda x: 0.0 * x.log() + x,
        lambda x: x.sqrt() * x,
        lambda x: wengert.where(x > 1.0, 1.0 / x, x),
        lambda x: (x - 1.0).log(),
    ]
    for f in cases:
        leaf = Value(0.0)
        f(leaf).backward()
        assert repr(grad(f)(0.0)) == repr(leaf.grad)
    # The row of one output is not spoilt by another that is infinite there.
    assert jacobian(lambda x: [x.sqrt(), 2.0 * x, x.log()])(0.0) == [inf, 2.0, inf]
    assert jacobian(lambda x: [x[0].sqrt(), x[1]])([0.0, 1.0]) == [[inf, 0.0], [0.0, 1.0]]


def test_forward_and_reverse_agree() -> None:
    for seed in range(10):
        rng = random.Random(seed)
        x, u, v = ([rng.gauss(0.0, 1.0) for _ in range(3)] for _ in range(3))

        def f(x: list[Any], seed: int = seed) -> list[Any]:
            return [program(random.Random(100 * seed + k), x) for k in range(3)]

        value, pullback = vjp(f, x)
        again, along = jvp(f, (x,), (v,))
        assert value == again
        (pulled,) = pullback(u)
        left, right = (math.fsum(a * b for a, b in zip(p, q, strict=True)) for p, q in ((pulled, v), (u, along)))
        assert left == pytest.approx(right, rel=1e-12, abs=1e-12)
        rows = jacobian(f)(x)
        assert along == pytest.approx([math.fsum(a * b for a, b in zip(row, v, strict=True)) for row in rows])
        tall = jacobian(lambda x, f=f: [*f(x), *f(x)])(x)  # more outputs than inputs: forward mode
        assert [*joined(*tall)] == pytest.approx([*joined(*rows, *rows)], rel=1e-12, abs=1e-14)


def test_a_pullback_is_called_as_often_as_one_likes() -> None:
    _, pullback = vjp(lambda x, y: (x * y, x + y), 2.0, 3.0)
    assert pullback((1.0, 0.0)) == (3.0, 2.0)
    assert pullback((0.0, 1.0)) == (1.0, 1.0)
    assert pullback((1.0, 0.0)) == (3.0, 2.0)
    by_value = pullback((Value(2.0), 1.0))
    assert data(by_value) == (7.0, 5.0)
    x = Value(2.0)
    pulled, _ = pullback((x * x, 1.0))
    pulled.backward()
    assert x.grad == 3.0 * 4.0


def test_along_a_direction_that_does_not_move() -> None:
    """A tangent of 0 is no factor of an infinite slope."""
    assert jvp(lambda x, y: x.sqrt() + y, (0.0, 1.0), (0.0, 1.0)) == (1.0, 1.0)
    w = Value(0.0)
    with wengert.no_grad():
        assert jvp(lambda x: x + w.sqrt(), (1.0,), (1.0,))[1] == 1.0


# ------------------------------------------------------------------------------------- nested calls


def test_perturbations_are_not_confused() -> None:
    assert grad(lambda x: x * grad(lambda y: x + y)(1.0))(1.0) == 1.0  # Siskind and Pearlmutter: 2 where they are
    assert grad(lambda x: grad(lambda y: x * y)(3.0))(2.0) == 1.0
    assert grad(lambda x: grad(lambda y: x * y)(x))(2.0) == 1.0
    assert grad(lambda x: x * grad(lambda y: x * y)(3.0))(2.0) == 4.0
    assert grad(lambda x: x * grad(lambda y: x * y * y)(x))(2.0) == 6.0 * 4.0  # x * 2 x x
    assert grad(lambda x: jvp(lambda y: x * y * y, (x,), (x,))[1])(2.0) == 6.0 * 4.0  # 2 x x x
    assert jvp(lambda x: grad(lambda y: x * y * y)(x), (2.0,), (1.0,)) == (8.0, 8.0)
    assert grad(lambda x: vjp(lambda y: x * y, 3.0)[1](x)[0])(5.0) == 10.0  # x * x
    deep = grad(lambda x: grad(lambda y: grad(lambda z: x * y * z * z)(y))(x))  # d/dx of (4 x y) at y = x
    assert deep(3.0) == 4.0 * 2.0 * 3.0


def test_mixed_partials_by_nesting() -> None:
    def f(x: Any, y: Any) -> Any:
        return (x * x * y).sin() * y.exp()

    x, y = 0.7, 0.3
    inner, e = x * x * y, math.exp(y)
    expected = 2.0 * x * e * (math.cos(inner) + y * math.cos(inner) - x * x * y * math.sin(inner))
    for mixed in (
        grad(grad(f, 0), 1)(x, y),
        grad(grad(f, 1), 0)(x, y),
        hessian(f, (0, 1))(x, y)[0][1],
        grad(lambda b: grad(lambda a: f(a, b))(x))(y),
        jvp(grad(f, 0), (x, y), (0.0, 1.0))[1],
        vjp(grad(f, 1), x, y)[1](1.0)[0],
    ):
        assert mixed == pytest.approx(expected, rel=1e-14)


def test_second_order_every_way() -> None:
    x, v = [1.3, 0.7, 0.8, -0.2], [1.0, -2.0, 0.0, 0.5]
    h = hessian(rosenbrock)(x)
    n = range(4)
    for i in n:
        diagonal = 1200.0 * x[i] ** 2 - (400.0 * x[i + 1] if i < 3 else 0.0) + 2.0 if i < 3 else 200.0
        diagonal += 200.0 if 0 < i < 3 else 0.0
        row = [diagonal if j == i else -400.0 * x[min(i, j)] if abs(i - j) == 1 else 0.0 for j in n]
        assert h[i] == pytest.approx(row, rel=1e-13)
    product = [math.fsum(h[i][j] * v[j] for j in n) for i in n]
    ways: list[Any] = [
        hvp(rosenbrock)(x, v),
        jvp(grad(rosenbrock), (x,), (v,))[1],
        vjp(grad(rosenbrock), x)[1](v)[0],
        grad(lambda x: jvp(rosenbrock, (x,), (v,))[1])(x),
        grad(lambda x: wengert.dot(grad(rosenbrock)(x), v))(x),
    ]
    for way in ways:
        assert way == pytest.approx(product, rel=1e-13)


# ------------------------------------------------------------------------------------- Values in, Values out


def test_values_come_out_as_values() -> None:
    x = Value(2.0)
    slope = grad(lambda x: x**3)(x)
    assert isinstance(slope, Value)
    assert slope.data == 12.0
    slope.backward()
    assert x.grad == 12.0
    assert isinstance(grad(lambda x: x * 3.0)(x), Value)  # constant or not
    x.grad = 0.0
    y = x * x
    value, (a, b) = value_and_grad(lambda p: p[0] * p[1])([y, 3.0])
    assert (value.data, a.data, b.data) == (12.0, 3.0, 4.0)
    b.backward()
    assert x.grad == 4.0


def test_gradients_of_others_are_left_alone() -> None:
    w, unused = Value(3.0), Value(1.0)
    w.grad, unused.grad = 0.25, 0.5
    slope = grad(lambda x: w * x * x + unused)(2.0)
    assert (w.grad, unused.grad) == (0.25, 0.5)
    assert (type(slope), slope.data) == (Value, 12.0)  # it depends on w, and so it is a Value
    slope.backward()
    assert (w.grad, unused.grad) == (0.25 + 4.0, 0.5)
    inner = w * 2.0
    inner.grad = 7.0
    assert data(jvp(lambda x: x * inner, (1.0,), (1.0,))) == (6.0, 6.0)
    assert data(hessian(lambda x: x * x * inner)(1.0)) == 12.0
    assert inner.grad == 7.0


def test_a_network_is_trained_on_its_own_derivative() -> None:
    """u' = -u, u(0) = 1, solved by a network whose slope stands in the loss."""
    rng = random.Random(4)
    model = nn.MLP(1, [8, 1], activation="tanh", rng=rng)
    optimizer = wengert.optim.Adam(model.parameters(), lr=0.05)
    slope = grad(lambda t: model([t]))

    def loss() -> Any:
        times = [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
        return wengert.mean([(slope(t) + model([t])) ** 2 for t in times]) + (model([0.0]) - 1.0) ** 2

    first = loss().data
    for _ in range(60):
        model.zero_grad()
        total = loss()
        total.backward()
        optimizer.step()
    assert total.data < 0.05 * first
    assert model([1.0]).data == pytest.approx(math.exp(-1.0), abs=0.1)


def test_under_no_grad() -> None:
    w, x = Value(3.0), Value(2.0)
    with wengert.no_grad():
        assert grad(lambda x: w * x * x)(2.0) == 12.0  # Values from outside are constants: floats in, floats out
        assert hessian(lambda x: w * x * x)(2.0) == 6.0
        slope = grad(lambda x: w * x * x)(x)
        assert (type(slope), slope.data, slope.is_leaf) == (Value, 12.0, True)
        assert (w * x).is_leaf
    assert grad(lambda x: stopped(x) * x)(2.0) == 3.0 * 2.0
    assert type(grad(lambda x: w * x)(2.0)) is Value


@wengert.no_grad()
def stopped(x: Any) -> Any:
    """A factor that counts as a constant: 3 x."""
    return grad(lambda y: 3.0 * y * y)(x) / 2.0


def test_detached_numbers_are_constants() -> None:
    assert grad(lambda x: x.detach() * x)(3.0) == 3.0
    assert grad(lambda x: wengert.stop_gradient(x) * x)(3.0) == 3.0
    assert grad(grad(lambda x: wengert.stop_gradient(x) * x))(3.0) == 0.0


def test_threads() -> None:
    w = Value(2.0)

    def work(k: int) -> None:
        for n in range(60):
            x = k + n / 60.0
            if n % 2:
                with wengert.no_grad():
                    assert grad(lambda x: w * x**3)(x) == pytest.approx(6.0 * x * x, rel=1e-14)
            else:
                assert hessian(lambda x: grad(lambda y: x * x * y)(x))(x) == pytest.approx(2.0, rel=1e-14)

    together(*[partial(work, k) for k in range(4)])
    assert w.grad == 0.0


def test_the_rows_of_a_jacobian_are_the_results() -> None:
    """Also if these are an array, and the argument is a list."""
    np = pytest.importorskip("numpy")

    def f(x: Any) -> Any:
        return np.array([x[0] * 1.0, x[1] * 2.0, x[0] + x[1] ** 2])

    want = [[1.0, 0.0], [0.0, 2.0], [1.0, 4.0]]
    for derivative in (jacobian(f), wengert.compile(jacobian(f))):
        for x in ([3.0, 2.0], [3, 2], np.array([3.0, 2.0])):
            rows = derivative(x)
            assert (rows.shape, rows.tolist()) == ((3, 2), want)
            assert jacobian(lambda x: f(x).tolist())(list(x)) == want
    table = jacobian(lambda x: np.array([x[0][0] * x[1][1], x[0][1]]))([[1.0, 2.0], [3.0, 4.0]])
    assert table.tolist() == [[[4.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [0.0, 0.0]]]
    by_x, by_y = jacobian(lambda x, y: np.array([x[0] * y, x[1]]), (0, 1))([1.0, 2.0], 3.0)
    assert (by_x.tolist(), by_y.tolist()) == ([[3.0, 0.0], [0.0, 1.0]], [1.0, 0.0])
    of_dict = jacobian(lambda p: np.array([p["a"] * p["b"][0], p["b"][1]]))({"a": 2.0, "b": [3.0, 4.0]})
    assert (of_dict["a"].tolist(), [x.tolist() for x in of_dict["b"]]) == ([3.0, 0.0], [[2.0, 0.0], [0.0, 1.0]])
