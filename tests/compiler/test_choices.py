"""What integers choose at run time, and what numbers do to the path, each against the plain function."""

from __future__ import annotations

import copy
import functools
import itertools
import math
from collections.abc import Callable
from typing import Any

import pytest

import wengert
from tests.compiler.checks import CLOSE, lifted
from wengert import Value

np = pytest.importorskip("numpy")

pytestmark = pytest.mark.once  # what is recorded and lifted does not depend on which engine runs

w, v = Value(1.3), Value(0.7)
table = [Value(0.5 + n) for n in range(5)]
grid = [[Value(n + 0.1 * m) for m in range(4)] for n in range(3)]
squares = np.array(table[:4]).reshape(2, 2)
limits = [1, 2, 3]
draw = np.random.default_rng(0)


def outcome(f: Callable[..., Any], arguments: Any) -> Any:
    """The result and the gradients, or the kind of the error."""
    leaves = [w, v, *table, *itertools.chain(*grid)]
    for leaf in leaves:
        leaf.grad = 0.0
    try:
        result = f(*copy.deepcopy(arguments))
    except Exception as error:
        return type(error)
    if not isinstance(result, Value):
        return [result]
    result.backward()
    return [result.data, *[leaf.grad for leaf in leaves]]


def same_everywhere(f: Callable[..., Any], calls: list[Any], most: int) -> None:
    """Every call is as that of the plain function, by so many specializations at most."""
    compiled = wengert.compile(f, backend="numpy")
    for arguments in calls:
        want, got = outcome(f, arguments), outcome(compiled, arguments)
        assert got == want or np.allclose(got, want, rtol=CLOSE, atol=1e-15, equal_nan=True), arguments
    lifted(compiled)
    assert 1 <= compiled.report().count("specialization ") <= most, compiled.report()


def whole(high: int, count: int, of: int = 2) -> list[list[int]]:
    return draw.integers(0, high, (count, of)).tolist()


# -- integers that choose ---------------------------------------------------------------------------------------------


def test_rows_of_rows() -> None:
    same_everywhere(lambda i, j: w * grid[i][j] + grid[i][0] * table[j], whole(3, 30), 1)
    same_everywhere(lambda i, j: w * grid[i][j] + grid[j % 3][i], whole(3, 30), 9)
    same_everywhere(lambda a: sum(grid[a[k - 1]][a[k]] for k in range(1, 4)), [[x] for x in whole(3, 30, 4)], 1)


def test_lists_of_several_lengths_by_one_argument() -> None:
    calls: list[Any] = [[[i, j]] for i, j in itertools.product(range(5), range(3))]
    calls += [[[4, 3]], [[1, 4]], [[5, 1]], [[-1, -1]], [[-5, -3]], [[-5, -4]]]
    same_everywhere(lambda n: table[n[0]] * w + table[:3][n[1]] * v, calls[:18], 1)
    same_everywhere(lambda n: table[n[0]] * w + table[:3][n[1]] * v, calls, 3)


def test_what_is_chosen_may_be_the_result() -> None:
    same_everywhere(lambda n: table[n], [[n % 5] for n in range(20)] + [[5], [-5], [-6]], 1)
    same_everywhere(lambda n, x: w * x if table[n] > x else v * x, [[n % 5, n / 4] for n in range(20)], 5)


def test_an_index_some_steps_away() -> None:
    same_everywhere(lambda n: table[n - 1] * w + table[1 + n - 3] * v, [[n] for n in (2, 1, 3, 4, 5, 0, 6, 7)], 1)
    for steps in (-2, -1, 1, 2):
        same_everywhere(lambda n, k=steps: table[n + k] * w, [[n] for n in (2, 1, 3, 0, 4, 5, 6, -1, -3, -6, -8)], 9)


def test_a_negative_index_beside_a_moved_one() -> None:
    calls = [[n % 10 - 5] for n in range(30)]
    same_everywhere(lambda n: table[n] * w - table[n - 1 if n > -5 else 4], calls, 6)


def test_a_choice_that_is_not_used_has_bounds() -> None:
    def f(n: int, x: float) -> Any:
        limits[n]
        return w * x

    same_everywhere(f, [[n % 3, 0.5 + n] for n in range(9)] + [[3, 1.0], [-3, 1.0], [-4, 1.0]], 9)


def test_what_is_no_value_decides_what_is_done() -> None:
    labels, words, ragged = [0, 1, 0, 1, 1], ["a", "b", "a", "b", "b"], [table[: n % 2 + 1] for n in range(5)]
    calls = [[n % 5] for n in range(20)]
    same_everywhere(lambda n: (-table[n] if labels[n] else table[n]) * w, calls, 5)
    same_everywhere(lambda n: (v if words[n] == "a" else table[n]) * w, calls, 5)
    same_everywhere(lambda n: sum(ragged[n]) * w, calls, 5)
    same_everywhere(lambda n: [w, 1.0, v, 2.0, w][n] * v, calls, 5)


def test_slices_are_no_choice() -> None:
    same_everywhere(lambda n: w * len(table[:n]) + sum(table[n:4]), [[n % 4] for n in range(20)], 4)
    rows = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
    same_everywhere(lambda i, j: w * np.array(rows)[i, j] * table[j], [[i, j % 2] for i, j in whole(3, 20)], 6)


def test_the_sign_of_an_index_is_asked() -> None:
    calls = [[2], [1], [3], [0], [1], [2], [-1], [-2], [4], [-5], [-6], [5]]
    same_everywhere(lambda n: (w if n < 0 else v) * table[n], calls, 6)


def test_a_number_that_an_integer_chooses_is_compared_with() -> None:
    calls = [[n % 3, x] for n, x in enumerate(draw.uniform(0, 4, 40).tolist())]
    same_everywhere(lambda n, x: w * x if x > limits[n] else v * x, calls, 6)


def test_equal_integers_and_other_ones() -> None:
    same_everywhere(lambda a, b: table[a] * w if a == b else table[b] * v, whole(5, 40), 2)

    def games(winners: list[int], losers: list[int]) -> Any:
        return sum(((table[a] - table[b]).logsigmoid() for a, b in zip(winners, losers, strict=True) if a != b), w)

    same_everywhere(games, [[a, b] for a, b in zip(whole(5, 40, 4), whole(5, 40, 4), strict=True)], 16)


def test_arrays_by_arrays_of_integers() -> None:
    x, k = np.arange(6.0), draw.integers(0, 5, (20, 3))
    rows = np.array(table)
    same_everywhere(lambda x, k: w * x[k].sum() + v * x[k[0]], [[x, each] for each in k], 1)
    same_everywhere(lambda k: (rows[k] * rows[k[::-1]]).sum() + rows[k].reshape(3, 1)[0, 0], [[each] for each in k], 1)
    same_everywhere(lambda i, j: squares[i, j] * w + squares[i].sum() + squares[:, j].sum() * v, whole(2, 20), 1)


def test_a_list_that_a_function_gives() -> None:
    def scores(x: float) -> list[Any]:
        return [x * p for p in table]

    calls = [[n % 5, 0.1 * n] for n in range(20)]
    same_everywhere(lambda n, x: scores(x)[n] - wengert.log_softmax(scores(x))[n], calls, 1)
    same_everywhere(lambda n, x: list(reversed(scores(x)))[n] + sorted(scores(x), key=bool)[0] * 0, calls[1:10], 5)


# -- numbers ----------------------------------------------------------------------------------------------------------


EDGES = [[0.0, 1.0], [-0.0, 1.0], [1.0, 0.0], [1.0, -0.0], [-1.0, -0.0], [math.nan, 1.0], [1.0, math.nan],
         [math.inf, 1.0], [1.0, math.inf], [-1.0, -math.inf]]  # fmt: skip


def test_signs_and_remainders() -> None:
    calls = draw.normal(size=(20, 2)).tolist() + EDGES
    same_everywhere(lambda x, y: w * math.copysign(x, y) + v * math.fmod(x, y), calls, 12)
    same_everywhere(lambda x, y: w * sum([x, y, 1.0]) + v * math.copysign(2, x), calls, 12)


def test_the_bits_of_integers() -> None:
    def f(n: int) -> Any:
        return sum(p * (n >> k & 1) for k, p in enumerate([w, v, w * v])) + (n << 2) * w - (-n) * v

    same_everywhere(f, [[n % 8] for n in range(24)] + [[0], [-1], [-3], [2**40]], 16)
    same_everywhere(lambda n: w * math.atan2(-n, -1), [[n] for n in (1, 2, -1, -2, 0, 0, 3, 0)], 2)
    same_everywhere(lambda n: w * (-n & 3), [[n] for n in (0, 1, 2, 0, 1, 2)], 3)


def test_errors_that_are_caught_are_a_path() -> None:
    def logarithm(x: float) -> Any:
        try:
            return w * math.log(x)
        except ValueError:
            return v * x

    def quotient(x: float) -> Any:
        try:
            return w * (1 / x)
        except ZeroDivisionError:
            return v * x

    numbers = [[x] for x in (*draw.normal(size=20).tolist(), 0.0, -0.0, math.inf, -math.inf, math.nan)]
    same_everywhere(logarithm, numbers, 6)
    same_everywhere(quotient, numbers, 6)


def test_methods_of_floats() -> None:
    numbers = [[x] for x in (1.0, 2.0, 0.5, 0.3, -1.0, 0.0, -0.0, 1e300, math.inf, math.nan, 0.1)]
    same_everywhere(lambda x: w if x.is_integer() else v * x, numbers, 4)
    same_everywhere(lambda x: w * x.real + v * x.imag if hasattr(x, "hex") else v, numbers, 1)


def test_copies_of_values_are_numbers() -> None:
    def f(x: float) -> Any:
        a = w * x
        first, second = copy.deepcopy([a, v])
        return a * copy.copy(a) + first * second

    same_everywhere(f, [[0.5 * n] for n in range(10)], 1)


def test_extremes_of_arrays() -> None:
    def f(x: Any) -> Any:
        x = np.array(x)
        return w * np.abs(x).max() + v * x.min() + w * np.maximum(x, 0.1).max(axis=0)

    same_everywhere(f, [[x] for x in draw.normal(size=(20, 3)).tolist()], 1)


def test_ties_of_values_in_arrays_are_pythons() -> None:
    """NumPy gives the first of the greatest, and all of the gradient to it."""
    same_everywhere(lambda x: np.array([w * x, w * x, v * x]).max(), [[x] for x in (0.5, 1.0, -1.0, 0.0)], 4)
    same_everywhere(lambda x: np.maximum(np.array([w, v]), np.array([w * x, v])).sum(), [[x] for x in (1.0, 2.0)], 4)


def test_patterns() -> None:
    def f(x: int) -> Any:
        match x:
            case 0:
                return w
            case int(n) if n > 2:
                return v * n
            case _:
                return w * x

    same_everywhere(f, [[n % 5] for n in range(20)], 4)


def test_what_is_kept_in_a_cache_is_no_other_way() -> None:
    @functools.cache
    def twiddles(n: int) -> list[float]:
        return [math.cos(k / n) for k in range(n)]

    same_everywhere(lambda x: sum(c * w * x for c in twiddles(4)), [[0.1 * n] for n in range(8)], 1)
