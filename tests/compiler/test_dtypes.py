"""Arguments of every type of NumPy: what a compiled function gives is what the function itself gives, type and all.

Values, rounding, overflow and what `dtype` says are NumPy's own; the oracle is the function, call by call.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import wengert
from tests.compiler.checks import warned
from wengert import Value

np = pytest.importorskip("numpy")

pytestmark = pytest.mark.once  # what is recorded and lifted does not depend on which engine runs

W = Value(1.5)
TYPES = ["?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8", "g", ">f8", ">f4", ">i4", "q", "l"]
CALLS = ([3, 2, 1], [3, 2, 1], [7, 2, 5], [200, 100, 1], [0.1, 0.3, 1], [1, 2, 3], [2, 2, 2], [100, 100, 100])


def filled(x: Any) -> Any:
    y = x.copy()
    y[0] = 0.1
    return y[0] * W


def raised(x: Any) -> Any:
    y = x.copy()
    y += 1
    return y[0]


OPERATIONS: dict[str, Callable[[Any], Any]] = {
    "add": lambda x: x[0] + x[1],
    "sub": lambda x: x[0] - x[1],
    "mul": lambda x: x[0] * x[1],
    "div": lambda x: x[0] / x[1],
    "pow": lambda x: x[0] ** x[1],
    "floordiv": lambda x: x[0] // x[1],
    "mod": lambda x: x[0] % x[1],
    "sum": lambda x: x.sum(),
    "mean": lambda x: x.mean(),
    "dot": lambda x: x.dot(x),
    "matmul": lambda x: x @ x,
    "add c": lambda x: x[0] + 1,
    "mul c": lambda x: x[0] * 0.1,
    "div c": lambda x: x[0] / 255,
    "rsub": lambda x: 1 - x[0],
    "pow 2": lambda x: x[0] ** 2,
    "neg": lambda x: -x[0],
    "abs": lambda x: abs(x[0]),
    "lt": lambda x: W * 2 if x[0] < 0.1 else W * 3,
    "lt2": lambda x: W * 2 if x[0] < x[1] else W * 3,
    "eq": lambda x: W if x[0] == x[1] else W * 3,
    "gt int": lambda x: W * 2 if x[0] > -1 else W * 3,
    "item": lambda x: x[0],
    "itself": lambda x: x,
    "list": lambda x: [x[0], W * x[1]],
    "slice": lambda x: x[1:],
    "index": lambda x: W * [5.0, 6.0, 7.0, 8.0, 9.0][int(x[0]) % 5],
    "index2": lambda x: W * [5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0][x[0]],
    "dtype": lambda x: W * (1 if x.dtype == np.float64 else 2),
    "dtype str": lambda x: W * len(str(x.dtype)),
    "type": lambda x: W * len(type(x[0]).__name__),
    "itemsize": lambda x: W * x.itemsize * x.nbytes * x[0].itemsize,
    "finfo": lambda x: W * float(np.finfo(x.dtype).eps),
    "astype": lambda x: W * x.astype(np.float32)[0],
    "astype f": lambda x: x.astype(float)[0] * x.astype(float)[1] / 3,
    "W": lambda x: W * x[0] * x[1],
    "Wx": lambda x: (W * x).sum(),
    "xW": lambda x: (x * W).sum(),
    "WdotX": lambda x: sum(w * xi for w, xi in zip([W, W], x, strict=False)),
    "exp": lambda x: np.exp(x)[0],
    "sqrt": lambda x: np.sqrt(x[0]),
    "max": lambda x: x.max(),
    "maximum": lambda x: np.maximum(x, 1)[0],
    "argmax": lambda x: W * x.argmax(),
    "builtins": lambda x: max(x) * 1.0,
    "sum b": lambda x: sum(x),
    "float": lambda x: float(x[0]) * 0.1,
    "int": lambda x: int(x[0]) * 3,
    "mean of sq": lambda x: ((x - x.mean()) ** 2).mean(),
    "std": lambda x: x.std(),
    "array": lambda x: (x * 2 + 1)[0],
    "array c": lambda x: (x / 3).sum(),
    "norm": lambda x: np.linalg.norm(x),
    "cumsum": lambda x: x.cumsum()[-1],
    "prod": lambda x: x.prod(),
    "where": lambda x: np.where(x > 1, x, 0)[0],
    "copy set": lambda x: filled(x),
    "iter": lambda x: [W * xi for xi in x],
    "tolist": lambda x: x.tolist()[0] * 0.1,
    "concat": lambda x: np.concatenate([x, np.ones(1)])[0] * 0.1,
    "shift": lambda x: x[0] << 1,
    "and": lambda x: x[0] & x[1],
    "inv": lambda x: ~x[0],
    "round": lambda x: round(x[0]),
    "isfinite": lambda x: W * 2 if np.isfinite(x).all() else W,
    "clip": lambda x: np.clip(x, 0, 1)[0],
    "view": lambda x: x.view(np.uint8)[0] * W,
    "sorted": lambda x: W * sorted(x)[0],
    "scalar item": lambda x: x[0].item() * 0.1,
    "mask": lambda x: x[x > 1].sum(),
    "bitcount": lambda x: W * x[0].nbytes,
    "dot W": lambda x: x @ np.array([W, W, W]),
    "mul t": lambda x: x[0] * x[1] * W,
    "stack": lambda x: np.stack([x, x]).sum(),
    "reshape": lambda x: (x.reshape(3, 1) * W)[0, 0],
    "T": lambda x: x.T[0] * 1.0,
    "median": lambda x: np.median(x),
    "var": lambda x: np.var(x),
    "diff": lambda x: np.diff(x)[0],
    "outer": lambda x: np.outer(x, x)[1, 2],
    "tobytes": lambda x: W * len(x.tobytes()),
    "inplace": lambda x: raised(x),
}


def outcome(function: Callable[[Any], Any], x: Any) -> Any:
    """What a call gives, to compare: types and numbers, and the derivative; or the exception's type."""
    W.grad = 0.0
    try:
        made = function(x)
    except Exception as error:
        return type(error).__name__
    return described(made), W.grad


def described(x: Any) -> Any:
    if isinstance(x, Value):
        x.backward()
        return "Value", x.data
    if isinstance(x, list):
        return [described(item) for item in x]
    if isinstance(x, np.ndarray):
        return str(x.dtype), x.tolist()
    return type(x).__name__, x


def near(x: Any, y: Any) -> bool:
    if isinstance(x, (list, tuple)) and isinstance(y, (list, tuple)):
        return len(x) == len(y) and all(map(near, x, y))
    if isinstance(x, (float, np.floating)) and isinstance(y, (float, np.floating)):
        return bool(x == y or abs(x - y) <= 1e-12 * abs(x) or (x != x and y != y))
    return bool(x == y)


@pytest.mark.sampled(7)
@pytest.mark.parametrize(("name", "kind"), [*itertools.product(OPERATIONS, TYPES)])
def test_arrays_of_every_type(name: str, kind: str) -> None:
    function = OPERATIONS[name]
    compiled = wengert.compile(function, backend="numpy")
    with warnings.catch_warnings(record=True) as caught, np.errstate(all="ignore"):
        warnings.simplefilter("always")
        for numbers in CALLS:
            x = np.array(numbers).astype(kind)
            want = outcome(function, x.copy())
            assert near(outcome(compiled, x.copy()), want), (numbers, want)
    wrong = ("is dropped", "error in the compiler", "uncompiled: the result")
    assert not [str(w.message) for w in caught if any(text in str(w.message) for text in wrong)]


@pytest.mark.parametrize("kind", ["f2", "f4", "i4", "u1", "i8", "f8"])
@pytest.mark.parametrize("name", ["add", "div", "mul c", "lt", "dtype", "W", "float"])
def test_scalars_and_rows_of_every_type(name: str, kind: str) -> None:
    """Scalars in a list, arrays in a list, and rows of a batch."""
    function = OPERATIONS[name]
    if name != "dtype":
        _compare(lambda xs: function(xs), lambda numbers: [np.dtype(kind).type(n) for n in numbers])
    _compare(lambda rows: function(rows[1]), lambda numbers: [np.array(numbers).astype(kind)] * 2)
    compiled, rows = wengert.compile(function), np.array(CALLS[:3]).astype(kind)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for _ in range(3):
            made = compiled.map(rows)
            want = np.array([x.data if isinstance(x, Value) else x for x in map(function, rows)])
            assert made.dtype == want.dtype
            assert near(made.tolist(), want.tolist())


def _compare(function: Any, make: Any) -> None:
    compiled = wengert.compile(function)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for numbers in CALLS[:5]:
            numbers = [int(n) for n in numbers] if numbers[0] > 100 else numbers
            want = outcome(function, make(numbers))
            assert near(outcome(compiled, make(numbers)), want), (numbers, want)


def test_the_reason_says_what_to_pass() -> None:
    compiled = wengert.compile(lambda x: W * (x[0] * x[1]))
    x = np.ones(2, np.float32)
    (said,) = warned(*[lambda: compiled(x)] * 3)
    assert "computes in float32, which rounds: pass float64, as x.astype(float) is" in said
    assert "computes in float32" in compiled.report()
    compiled = wengert.compile(lambda x: W * np.exp(x)[0])
    (said,) = warned(*[lambda: compiled(x)] * 3)
    assert "passes numbers of float32 to np.exp: pass float64" in said


def test_narrow_numbers_beside_values_are_compiled() -> None:
    compiled = wengert.compile(lambda x: sum([W * xi for xi in x]) + (W if x[0] > 0.25 else 0.0))
    x = np.array([0.5, 0.25], np.float32)
    for _ in range(6):
        assert compiled(x).data == 1.5 * 0.75 + 1.5
    assert "uncompiled" not in compiled.report()
