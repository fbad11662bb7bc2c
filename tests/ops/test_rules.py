"""What reads rules: series for libraries that lack a function, operations whose rules are recorded, other numbers."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

import wengert
from tests.threads import together
from wengert import Value, ops
from wengert.ops import op as table
from wengert.ops import special


@pytest.mark.parametrize("x", [-30.0, -5.0, -1.5, -0.7, -0.3, 0.0, 0.2, 0.49, 0.51, 0.99, 1.0, 2.5, 8.0, 26.0])
def test_the_error_functions_as_series(x: float) -> None:
    """As libraries without them compute them; the C library's are within an ulp."""
    assert special.erf(x) == pytest.approx(math.erf(x), rel=9e-16, abs=0.0)
    assert special.erfc(x) == pytest.approx(math.erfc(x), rel=9e-16, abs=0.0)


def test_an_operation_by_its_rule_has_the_partials_that_were_recorded() -> None:
    square = wengert.op("square_by_rule", value=lambda x: x * x, partials=lambda out, x: 2.0 * x)
    row = table.by_rule(ops.BY_NAME["square_by_rule"])
    assert table.by_rule(ops.BY_NAME["square_by_rule"]) is row
    x, slope = Value(3.0), Value(6.0)
    y = row(9.0, x, slope)
    assert (y.data, square(x).data) == (9.0, 9.0)
    y.backward()
    assert (x.grad, slope.grad) == (6.0, 0.0)
    made = row.graph_partials(9.0, 9.0, Value(3.0), Value(6.0))
    assert [p.data if isinstance(p, Value) else p for p in made] == [0.0, 6.0, 0.0]


def test_an_operation_without_a_second_derivative_has_its_numbers_by_rule() -> None:
    wengert.op("floats_by_rule", value=lambda x: math.exp(x), partials=lambda out, x: math.exp(float(x)))
    row = table.by_rule(ops.BY_NAME["floats_by_rule"])
    made = [p.data if isinstance(p, Value) else p for p in row.graph_partials(1.0, 1.0, object(), 7.0)]
    assert made == [0.0, 7.0, 0.0]


@pytest.fixture
def hook() -> Iterator[list[str]]:
    """A recording that declines each operation of the user's own, and notes its name."""
    before, seen = table._recording, list[str]()
    table.tell_recording(lambda row, xs: seen.append(row.name) or NotImplemented)  # type: ignore[func-returns-value]
    yield seen
    table.tell_recording(before)


def test_a_recording_may_decline_an_operation(hook: list[str]) -> None:
    twice = wengert.op("twice_declined", value=lambda x: 2.0 * x, partials=lambda out, x: 2.0)
    assert twice(Value(4.0)).data == 8.0
    assert hook == ["twice_declined"]


def test_numbers_that_rules_are_read_with_have_no_truth_and_are_no_keys() -> None:
    class Symbol(ops.Operators):
        """Knows none of the rows."""

    x: Any = Symbol()
    with pytest.raises(NotImplementedError):
        x + 1.0
    with pytest.raises(TypeError, match="use where"):
        bool(x)
    with pytest.raises(TypeError, match="cannot be a key"):
        hash(x)


def test_threads_that_register_operations_have_rows_of_their_own() -> None:
    def register(k: int) -> None:
        for n in range(40):
            name = f"threaded_{k}_{n}"
            wengert.op(name, value=lambda x: x, partials=lambda out, x: 1.0)
            table.by_rule(ops.BY_NAME[name])

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        together(*[partial(register, k) for k in range(4)])
    finally:
        sys.setswitchinterval(interval)
    assert [row.code for row in ops.TABLE] == list(range(len(ops.TABLE)))
