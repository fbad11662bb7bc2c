"""The example that compares symbolic, numerical and automatic differentiation, and the page that tells of it."""

from __future__ import annotations

import re
import sys
from itertools import pairwise
from pathlib import Path

import pytest

pytest.importorskip("sympy", reason="needs sympy")

from examples import three_ways

pytestmark = pytest.mark.once  # what is tried are tools and pages, not an engine

PAGE = Path(__file__).resolve().parent.parent / "docs" / "three-ways.md"


@pytest.fixture(scope="module")
def truth() -> object:
    return three_ways.symbolic()[2]


@pytest.mark.mpmath
def test_the_truth_is_true(truth: object) -> None:
    import mpmath

    with mpmath.workdps(60):
        slope = mpmath.diff(lambda x: x * mpmath.sin(x * x) + mpmath.tanh(x), mpmath.mpf("1.5"))
        assert abs(mpmath.mpf(str(truth)) - slope) < mpmath.mpf(10) ** -38


def test_formulas_and_values_are_exact_to_rounding(truth: object) -> None:
    assert three_ways.error(three_ways.symbolic()[1], truth) < 1e-15
    assert three_ways.error(three_ways.automatic(), truth) < 1e-15


def test_truncation_falls_with_h_and_with_its_square(truth: object) -> None:
    hs = [1e-2, 1e-3, 1e-4]
    for way, factor in ((three_ways.forward, 10.0), (three_ways.central, 100.0)):
        errors = [three_ways.error(way(h), truth) for h in hs]
        assert [a / b for a, b in pairwise(errors)] == pytest.approx([factor, factor], rel=0.05)


def test_the_valley_lies_where_theory_has_it(truth: object) -> None:
    for way, places, depth in ((three_ways.forward, (1e-9, 1e-7), 1e-7), (three_ways.central, (1e-7, 1e-4), 1e-9)):
        errors = {h: three_ways.error(way(h), truth) for h in three_ways.STEPS}
        best = min(errors, key=errors.__getitem__)
        assert places[0] <= best * 1.01
        assert best <= places[1] * 1.01
        assert 1e-13 < errors[best] < depth
        assert errors[1e-13] > 1e-5
        assert errors[three_ways.STEPS[-1]] == 1.0  # x + h is x


def test_a_formula_swells_and_a_computation_does_not() -> None:
    rows = three_ways.swell()
    assert rows[0][:3] == (1, 2, 2)  # 4 - 8 x
    assert [automatic for *_, automatic in rows] == [3, 6, 9, 12, 15, 18]
    assert all(b > 2 * a for (_, a, _, _), (_, b, _, _) in pairwise(rows))
    assert all(b > 2 * a for (_, _, a, _), (_, _, b, _) in pairwise(rows))


def test_the_page_has_the_numbers_of_the_example() -> None:
    text = PAGE.read_text(encoding="utf-8")
    table = [
        [int(cell.replace(",", "")) for cell in row.split("|")] for row in re.findall(r"^\| (\d.*\d) \|$", text, re.M)
    ]
    assert len(table) == 6
    for row, (rounds, formula, multiplied, automatic) in zip(table, three_ways.swell(), strict=True):
        assert [row[0], row[2], row[3]] == [rounds, multiplied, automatic]
        assert formula / 2 < row[1] < 2 * formula  # how SymPy writes a product may change


def test_it_prints_both_tables_and_draws(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib", reason="needs matplotlib")
    three_ways.main([str(tmp_path / "errors.png")])
    out = capsys.readouterr().out
    assert "symbolic    f'(x) = " in out
    assert len(re.findall(r"^ 1e-\d\d +\S+e[+-]\d\d +\S+e[+-]\d\d$", out, re.MULTILINE)) == 16
    assert (tmp_path / "errors.png").read_bytes().startswith(b"\x89PNG")
    three_ways.main([])
    assert "written" not in capsys.readouterr().out


def test_it_says_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sympy", None)
    with pytest.raises(SystemExit, match="this needs sympy: pip install sympy matplotlib"):
        three_ways.main([])
