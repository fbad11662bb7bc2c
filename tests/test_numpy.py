"""Values and NumPy: its scalars are numbers, its arrays hold Values, its functions call theirs."""

from __future__ import annotations

import math
from operator import add, ge, gt, le, lt, mul, pow, sub, truediv
from typing import Any

import pytest

import wengert
from wengert import Value
from wengert.errors import OperandError

np = pytest.importorskip("numpy")

OPERATORS = [add, sub, mul, truediv, pow]
NUMBERS = [np.float64(2.5), np.float32(0.5), np.float16(0.5), np.int64(3), np.uint8(3), np.bool_(True)]


@pytest.mark.parametrize("number", NUMBERS, ids=repr)
def test_scalars_are_numbers(number: Any) -> None:
    x = Value(number)
    assert (type(x.data), x.data) == (float, float(number))
    x.data = x.grad = number
    assert (type(x.data), type(x.grad), x.data, x.grad) == (float, float, float(number), float(number))
    assert wengert.hypot(number, number) == math.hypot(number, number)
    for operator in OPERATORS:
        for y, expected in (
            (operator(x, number), operator(x.data, x.data)),
            (operator(number, x), operator(x.data, x.data)),
        ):
            assert type(y) is Value
            assert y.data == expected
            assert {type(o) for o in y._operands} == {Value, float}
    for operator in (lt, le, gt, ge):
        assert bool(operator(number, x)) is bool(operator(x, number)) is operator(1.0, 1.0)
    assert x == number
    assert number == x


@pytest.mark.parametrize("kind", ["float64", "float32"])
def test_nan_is_a_number(kind: str) -> None:
    x, number = Value(2.0), getattr(np, kind)("nan")
    for operator in OPERATORS:
        assert math.isnan(operator(x, number).data)
        assert math.isnan(operator(number, x).data)


@pytest.mark.parametrize("array", [np.array([1.0, 2.0]), np.zeros((2, 2))], ids=repr)
def test_an_array_cannot_be_data(array: Any) -> None:
    with pytest.raises(OperandError, match=r"(?s)ndarray .*: make a list of Values, \[Value"):
        Value(array)


@pytest.mark.parametrize(
    ("scalar", "advice"), [(np.complex128(1j), "a Value is real"), (np.str_("x"), "float")], ids=repr
)
def test_scalars_that_are_no_real_numbers(scalar: Any, advice: str) -> None:
    x = Value(1.0)
    for function in (Value, lambda s: x + s, lambda s: s * x, lambda s: x < s, lambda s: wengert.hypot(x, s)):
        with pytest.raises(OperandError, match=advice):
            function(scalar)
    assert x != scalar


def test_numpy_never_reads_a_value_as_a_float() -> None:
    x = Value(1.0)
    for function in (np.float64, np.floor, lambda v: np.array([v], dtype=float), lambda v: np.array([v]).astype(float)):
        with pytest.raises(OperandError, match=r"a Value is not a float: read v\.data"):
            function(x)


def test_value_and_array() -> None:
    x = Value(3.0)
    array = np.array([1.0, 2.0])
    for operator in OPERATORS:
        for left, right, expected in ((x, array, operator(3.0, array)), (array, x, operator(array, 3.0))):
            result = operator(left, right)
            assert (type(result), result.dtype, result.shape) == (np.ndarray, object, (2,))
            assert [v.data for v in result] == list(expected)
    product: Any = x * array
    product.sum().backward()
    assert x.grad == 3.0
    compared: Any = x < np.array([2.0, 4.0])
    assert list(compared) == [False, True]


def test_arrays_of_values() -> None:
    a: Any = np.array([Value(1.0), Value(2.0)])
    b: Any = np.array([[Value(3.0), Value(4.0)], [Value(5.0), Value(6.0)]])
    assert [v.data for v in b @ a] == [11.0, 17.0]
    assert (a @ a).data == 5.0
    assert (b.sum().data, b.mean().data, np.max(b).data, np.dot(b, [1.0, 2.0])[0].data) == (18.0, 4.5, 6.0, 11.0)
    (b @ a).sum().backward()
    assert [v.grad for v in a] == [8.0, 10.0]


UFUNCS = "absolute add arccos arcsin arctan arctan2 arctanh cbrt cos cosh divide exp exp2 expm1 hypot log log10"
UFUNCS += (
    " log1p log2 maximum minimum multiply negative power reciprocal sin sinh sqrt square subtract tan tanh arcsinh"
)


@pytest.mark.parametrize("name", UFUNCS.split())
def test_ufuncs(name: str) -> None:
    ufunc = getattr(np, name)
    x = Value(0.5)
    operands, expected = [x] * ufunc.nin, ufunc(*[0.5] * ufunc.nin)
    y = ufunc(*operands)
    assert type(y) is Value
    assert y.data == pytest.approx(expected, rel=1e-14)
    y.backward()
    assert math.isfinite(x.grad)
    array = ufunc(*[np.array([x, x])] * ufunc.nin)
    assert [v.data for v in array] == [y.data] * 2


def test_numpy_scalars_give_way() -> None:
    x = Value(2.0)
    for scalar in (np.float64(3.0), np.float32(3.0), np.int64(3), np.array(3.0)):
        for operator in OPERATORS:
            assert operator(scalar, x).data == operator(3.0, 2.0)
            assert operator(x, scalar).data == operator(2.0, 3.0)
