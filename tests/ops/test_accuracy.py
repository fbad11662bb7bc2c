"""Every operation is as accurate as the documentation says, on fewer points than its table is made from.

The oracle, many digits written down once more, is itself held: to differences, to twice as many digits, to mpmath.
"""

from __future__ import annotations

import math
import random
import re
from math import inf, nan
from pathlib import Path
from typing import Any

import pytest

from tools.qa import accuracy
from tools.qa.accuracy import (
    EXACT,
    LIMIT,
    MANY,
    SIZES,
    SLOW,
    TWICE,
    limit,
    listed,
    many,
    measured,
    our_answers,
    points,
    second_error,
    twice,
    ulps,
)
from tools.qa.oracles import CONSTANT, DIGITS, ROWS, mp, mpmath, truths
from wengert import ops

PAGE = Path(__file__).resolve().parents[2] / "docs" / "accuracy.md"
ELEMENTARY = [row for row in ROWS if row.arity is not None]
over_rows = pytest.mark.parametrize("row", ELEMENTARY, ids=lambda row: row.name)
pytestmark = pytest.mark.mpmath


@pytest.mark.parametrize("count", [40, pytest.param(400, marks=pytest.mark.nightly)])
@over_rows
def test_values_and_partials_are_within_the_bound(row: ops.Op, count: int) -> None:
    with mp.workdps(DIGITS):
        if row.name not in truths():
            pytest.skip(f"nothing says what {row.name} is in many digits: a line in oracles.py would")
        truth = truths()[row.name]
    found = measured(row, truth, list(points(row, count, seed=2)), {"we": our_answers(row)})["we"]
    assert found[0].count >= count // 8
    for quantity, worst in enumerate(found):
        assert worst.ulp <= limit(row.name, quantity), (row.name, quantity, worst)


HARD: dict[str, list[tuple[float, ...]]] = {
    "div": [(5e-324, 1e-10), (1.5e-323, 0.7), (1e-310, 3e-5)],
    "pow": [(2.51e-319, -1.23e-321), (1.7953839415326711e-160, 2.0), (-3.0, -650.0), (1e-300, 1.5), (1e300, 1.9)],
    "elu": [(-749.0, 6e29), (-740.0, -1e300)],
    "silu": [(-741.78,), (-745.0,), (-700.5,)],
    "gelu": [(-36.29,), (-37.55,), (-38.2,), (-38.45,)],
    "gaussian": [(26.9,), (-27.2,), (1.5e308,)],
    "normal_pdf": [(37.2,), (-38.5,)],
    "normal_cdf": [(-30.1,), (-38.4,)],
    "hypot": [(-1.1578635917860866e-317, 1.63e-321), (1.5e308, 1.6e308)],
    "atan2": [(5e-324, 1e-310), (1.5e308, 1.2e308), (0.0591, 1.3245e-315), (1.9e-221, -6.4e-313)],
    "lgamma": [(1.0000001,), (1.9999999,), (2.6091506834000495,), (-0.25,), (1e306,)],
    "digamma": [(1.4616,), (1.5,), (-0.4999999,)],
    "polygamma": [(12.0, -2.9951814145405651), (12.0, -0.49999736), (5.0, -5e-324), (2.0, -1e-200), (12.0, 1e26)],
    "cbrt": [(5e-324,), (1.7e308,), (-1.5674355941536939,)],
}
"""Where a plain formula fails: underflow and overflow on the way, tails, zeros and poles."""


@pytest.mark.parametrize("name", HARD)
def test_hard_points(name: str) -> None:
    row = ops.BY_NAME[name]
    with mp.workdps(DIGITS):
        truth = truths()[name]
    for worst in measured(row, truth, HARD[name], {"we": our_answers(row)})["we"]:
        assert worst.ulp <= LIMIT, worst


@pytest.mark.once  # rules of the table run in Python on both
@pytest.mark.parametrize("name", MANY)
def test_operations_on_many_are_backward_stable(name: str) -> None:
    for size in SIZES[:3]:
        found = many(name, size, trials=3 if size < 100 else 1)
        assert 0.0 <= found.value <= found.bound
        assert 0.0 <= found.partial <= (found.bound if name != "mean" else 1.0)
        assert found.value > 0.0 or size < 5


ONCE_MORE = [
    pytest.param(row, marks=[pytest.mark.nightly] * (row.name == "lgamma"))  # of hundreds of digits: seconds
    for row in ELEMENTARY
    if row.arity == 1 and row.name not in EXACT
]


@pytest.mark.once  # rules of the table run in Python on both
@pytest.mark.sampled(3)
@pytest.mark.parametrize("row", ONCE_MORE, ids=lambda row: row.name)
def test_second_derivatives_are_as_good_as_those_of_a_neighbour(row: ops.Op) -> None:
    """Also where a first derivative is almost 1: of sigmoid, asin and atanh that of 1e-20 is not 0."""
    some = [xs[0] for xs in points(row, 200, seed=2) if xs[0] and abs(xs[0]) < 700.0]
    some = random.Random(row.name).sample(some, min(20 // SLOW.get(row.name, 1) + 5, len(some)))
    errors = [(second_error(row, x), x) for x in (1e-20, -3e-160, 1e-8, 0.25, 1e90, *some)]
    known = [(error, x) for error, x in errors if error is not None]
    assert len(known) > 6
    assert max(known)[0] <= 8.0, (row.name, max(known))


LEAST = {"gammainc": 1e6, "gammaincc": 1e6, "gamma_pdf": 2e3, "betainc": 1e4, "beta_pdf": 1e4}
"""Of distributions the error of second derivatives, and of first ones in shapes, in 2**-53: 10 digits and more."""


@pytest.mark.once
@pytest.mark.parametrize("name", TWICE)
def test_second_derivatives_in_all_operands(name: str) -> None:
    found = twice(name, 12)
    letters = len(ops.BY_NAME[name].domain)
    shapes = len(ops.BY_NAME[name].shapes)
    assert len(found) == letters * (letters + 1) // 2 + shapes
    for place, (error, xs) in found.items():
        assert error <= LEAST.get(name, 8.0), (place, xs)


# ------------------------------------------------------------------------------------- the oracle


@pytest.mark.once  # what is tried is the oracle
@over_rows
def test_the_written_derivatives_are_those_of_the_written_values(row: ops.Op) -> None:
    from tests.ops.test_table import mp_derivative  # differences with tiny steps

    rng = random.Random(row.name)
    with mp.workdps(DIGITS):
        truth = truths().get(row.name)
        if truth is None:
            pytest.skip(f"nothing says what {row.name} is in many digits")
        for _ in range(2):
            numbers = [rng.uniform(low, high) for low, high in row.domain]
            if row.name in ("minimum", "maximum"):
                numbers[1] = numbers[0] + rng.choice((-0.5, 0.5))
            for k, partial in enumerate(truth.partials):
                if partial is None:
                    assert (row.name, k) in CONSTANT
                    continue
                orders = tuple(int(i == k) for i in range(len(numbers)))
                expected = mp_derivative(truth.value, numbers, orders)
                assert abs(partial(*map(mpmath.mpf, numbers)) - expected) < 1e-25 * (1 + abs(expected))


@pytest.mark.once  # what is tried is the oracle
@pytest.mark.sampled(4)
@over_rows
def test_sixty_digits_are_enough(row: ops.Op) -> None:
    def answers(digits: int) -> list[Any]:
        with mp.workdps(digits):
            truth = truths()[row.name]
            functions = [truth.value, *[partial for partial in truth.partials if partial]]
            numbers = [[mpmath.mpf(x) for x in xs] for xs in points(row, 30, seed=3)]
            return [accuracy.real(f, xs) for xs in numbers for f in functions]

    with mp.workdps(2 * DIGITS):
        for few, enough in zip(answers(DIGITS), answers(2 * DIGITS), strict=True):
            assert (few is None) == (enough is None)
            if few is not None and abs(enough) > mpmath.mpf(2) ** -1200:  # else 0 for a float
                # 35 digits: what a zero of lgamma beside a pole, or of an exponent of 1e300, leaves of the 60
                assert abs(few - enough) <= abs(enough) * mpmath.mpf(10) ** -35


@pytest.mark.once  # what is tried is the oracle
def test_the_written_polygamma_is_mpmaths() -> None:
    with mp.workdps(DIGITS):
        psi = truths()["polygamma"].value
        for n in (0, 1, 2, 5):
            for x in (-3.75, -0.3, 0.2, 1.5, 7.0, 80.0):
                expected = mpmath.psi(n, mpmath.mpf(x))
                assert abs(psi(n, mpmath.mpf(x)) - expected) < abs(expected) * mpmath.mpf(10) ** -50


def test_the_unit_in_the_last_place() -> None:
    with mp.workdps(DIGITS):
        one = mpmath.mpf(1)
        assert ulps(1.0, one) == 0.0
        assert ulps(1.0 + 2.0**-52, one) == 1.0
        assert ulps(1.0, one + mpmath.mpf(2) ** -53) == 0.5
        assert ulps(5e-324, 0 * one) == 1.0  # below the least normal number the unit is 5e-324
        assert ulps(1e-310, mpmath.mpf(1e-310) + mpmath.mpf(5e-324)) == 1.0
        assert ulps(inf, one * 2**1025) == ulps(-inf, -one * 2**1025) == 0.0  # beyond the floats: an infinity is right
        assert ulps(inf, one * 2**1023) == 2.0**52  # and wrong where the truth is a float
        assert ulps(math.nextafter(2.0**1023, inf) * 1.9, one * 2**1025) > 1e10
        assert ulps(nan, one) == inf
        assert ulps(1e-20, 0 * one, (one, -one)) == 1e-20 * 2.0**52  # where terms cancel, the unit is theirs


# ------------------------------------------------------------------------------------- the page


def test_the_page_holds_what_is_promised() -> None:
    text = PAGE.read_text(encoding="utf-8")
    table = text.split(accuracy.BEGIN)[1].split(accuracy.END)[0]
    lines = re.findall(r"^\| `(\w+)` \| (value|d/d\w) \| (\S+) \|", table, re.MULTILINE)
    assert {name for name, _, _ in lines} == {
        row.name for row in ELEMENTARY if row.arity in (1, 2) and row.name not in EXACT
    }
    for name, which, figure in lines:
        assert float(figure) <= limit(name, which != "value"), (name, which)
    sizes = re.findall(r"^\| `(\w+)` \| ([\d,]+) \| (\S+) \| (\S+) \| ([\d,]+) \|", table, re.MULTILINE)
    assert len(sizes) == len(MANY) * len(SIZES)
    assert all(float(value) <= float(bound.replace(",", "")) for _, _, value, _, bound in sizes)


def test_the_page_holds_second_derivatives() -> None:
    table = PAGE.read_text(encoding="utf-8").split(accuracy.TWICE_BEGIN)[1].split(accuracy.TWICE_END)[0]
    lines = re.findall(r"^\| `(\w+)` \| (d/d\w(?: d/d\w)?) \| (\S+) \|", table, re.MULTILINE)
    assert list(dict.fromkeys(name for name, _, _ in lines)) == list(TWICE)
    for name, which, figure in lines:
        assert float(figure) <= LEAST.get(name, 8.0), (name, which)


@pytest.mark.once  # what is tried is the oracle
def test_the_command_writes_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"before\n{accuracy.BEGIN}\nold\n{accuracy.END}\nafter\n")
    assert accuracy.main(["exp", "--quick", "--page", str(page)]) == 0
    text = page.read_text(encoding="utf-8")
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "old" not in text
    assert re.search(r"^\| `exp` \| value \| 0\.5\d* \|", text, re.MULTILINE)
    assert capsys.readouterr().out.strip() in text
    with pytest.raises(SystemExit):
        accuracy.main(["exq", "--quick"])
    assert "no operations: exq" in capsys.readouterr().err
    page.write_text("no marks")
    with pytest.raises(ValueError, match="has no place"):
        accuracy.main(["exp", "--quick", "--page", str(page)])


def test_partials_come_as_a_list() -> None:
    assert (listed(1.0), listed((1.0, 2.0)), listed([3.0])) == ([1.0], [1.0, 2.0], [3.0])


@pytest.mark.once  # rules of the table run in Python on both
def test_gamma_functions_beside_their_zeros() -> None:
    """What docs/accuracy.md says of their errors above 0: in units of the result itself."""
    rng = random.Random(4)
    zeros = {"digamma": [1.4616321449683622], "lgamma": [1.0, 2.0]}
    with mp.workdps(DIGITS):
        for name, beside in zeros.items():
            spans = ((0.01, 1.3), (1.3, 1.7), (1.7, 4.0), (4.0, 1e5))
            some = [rng.uniform(*span) for span in spans for _ in range(50)]
            some += [x + side * 10.0 ** rng.uniform(-15, -1) for x in beside for side in (-1, 1) for _ in range(25)]
            for x in some:
                exact = truths()[name].value(mpmath.mpf(x))
                error = abs(mpmath.mpf(ops.BY_NAME[name].value(x)) - exact)
                assert error <= 4.0 * math.ulp(float(exact)), (name, x)
