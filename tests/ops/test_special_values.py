"""The published table of special values holds: as the engine gives it, as PyTorch, as the truth, as its limits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from math import inf
from pathlib import Path

import pytest

from tools.qa import special_values
from tools.qa.accuracy import real
from tools.qa.oracles import CONSTANT, DIGITS, ROWS, mp, mpmath, truths
from tools.qa.special_values import (
    agree,
    answers,
    differences,
    differs,
    gradients,
    operands,
    same,
    shown,
    stored,
    twice,
)
from wengert.ops import BY_NAME

PAGE = Path(__file__).resolve().parents[2] / "docs" / "special-values.md"
STORED = stored()


def test_every_row_is_there_at_every_operand() -> None:
    expected = [(row.name, repr(xs)) for row in ROWS for xs in operands(row)]
    assert [(name, repr(xs)) for name, xs, _ in STORED] == expected, "run python -m tools.qa.special_values"
    assert len(STORED) > 1500


def test_the_engine_gives_what_is_stored() -> None:
    for name, xs, expected in STORED:
        actual = gradients(BY_NAME[name], *xs)
        for a, b in zip(actual, expected, strict=True):
            assert same(a, b) or math.isclose(a, b, rel_tol=1e-14, abs_tol=0.0), (name, xs, actual, expected)


@pytest.mark.torch
def test_every_difference_from_pytorch_has_a_reason() -> None:
    found = list(differences())
    assert [(row.name, xs) for row, xs, _, _ in found if not differs(row.name, xs)] == []
    text = PAGE.read_text(encoding="utf-8")
    for row, xs, _, _ in found:
        assert f"| `{row.name}` | {', '.join(map(shown, xs))} |" in text


INDETERMINATE = {"gaussian", "normal_pdf"}
"""Rows unknown to PyTorch whose derivative at an infinity, -inf * 0, is nan, as is that of PyTorch's gelu."""


def limit(name: str, place: int, xs: Sequence[float]) -> float | None:
    """What the truth tends to as the infinite operands grow; None if mpmath has no answer or it is no limit."""
    truth = truths()[name]
    functions = [truth.value, *truth.partials]
    found = []
    for large in (1e250, 1e300):
        exact = real(
            functions[place] if place < len(functions) else None,
            [mpmath.mpf(math.copysign(large, x) if math.isinf(x) else x) for x in xs],
        )
        if exact is None:
            return None
        found.append(math.copysign(inf, exact) if abs(exact) > 100 else float(exact) if abs(exact) > 1e-100 else 0.0)
    near = math.isclose(*found, rel_tol=1e-9)
    return found[1] if near else None


@pytest.mark.mpmath
def test_what_is_stored_is_the_truth() -> None:
    """At finite operands in many digits, at infinite ones as the limit, if that exists."""
    exact_ones = limits = 0
    with mp.workdps(DIGITS):
        known = truths()
        for name, xs, found in STORED:
            if any(x != x for x in xs) or (name == "polygamma" and xs[0] not in (0.0, 1.0, 2.0)):
                continue
            if not all(0.0 < shape < inf for shape in xs[: len(BY_NAME[name].shapes)]):
                continue  # limits, which test_edges.py holds
            infinite = any(map(math.isinf, xs))
            functions = [known[name].value, *known[name].partials]
            for place, number in enumerate(found):
                if place >= len(functions) or (name, place - 1) in CONSTANT:
                    continue
                if infinite:
                    expected = limit(name, place, xs)
                    if expected is None or at_an_edge(name, xs):
                        continue
                    if number == number:
                        assert number == expected or math.isclose(number, expected, abs_tol=1e-9), (name, xs, place)
                        limits += 1
                    continue
                exact = real(functions[place], [mpmath.mpf(x) for x in xs])
                if exact is None or at_an_edge(name, xs):
                    continue
                if place == 0 or number == number:
                    assert abs(number - exact) <= 4 * math.ulp(float(max(abs(exact), 0.1))), (name, xs, place)
                    exact_ones += 1
    assert exact_ones > 400
    assert limits > 300


def at_an_edge(name: str, xs: tuple[float, ...]) -> bool:
    """Where a convention decides, which test_edges.py holds: kinks, ties, the sign of a zero, a constant range."""
    kinks = ("abs", "relu", "sign", "leaky_relu", "elu", "maximum", "minimum", "max", "min", "clip")
    return name in kinks or (name in ("atan2", "hypot", "pow") and 0.0 in xs)


@pytest.mark.mpmath
def test_nan_stands_only_where_there_is_no_number() -> None:
    """Of finite operands: where the function has no real value, or a pole without a sign."""
    with mp.workdps(DIGITS):
        for name, xs, found in STORED:
            if all(map(math.isfinite, xs)) and found[0] != found[0] and name in truths():
                whole = name != "polygamma" or xs[0] in (0.0, 1.0, 2.0)
                exact = real(truths()[name].value, [mpmath.mpf(x) for x in xs])
                assert not whole or exact is None, (name, xs)
            if name in INDETERMINATE and inf in map(abs, xs):
                assert found[0] == 0.0
                assert math.isnan(found[1])


def test_nothing_raises_and_all_are_floats() -> None:
    for _, _, found in answers():
        assert {type(x) for x in found} == {float}


def test_the_page_is_what_is_stored() -> None:
    text = PAGE.read_text(encoding="utf-8").split(special_values.BEGIN)[1].split(special_values.END)[0]
    assert text.lstrip("\n").startswith(special_values.value_tables(STORED)), "run python -m tools.qa.special_values"


def test_the_command_writes_both(tmp_path: Path) -> None:
    page, store = tmp_path / "page.md", tmp_path / "store.txt"
    marks = special_values.BEGIN, special_values.END, special_values.TWICE_BEGIN, special_values.TWICE_END
    page.write_text("\n".join(marks))
    special_values.main(["--page", str(page), "--store", str(store)])
    assert len(store.read_text(encoding="utf-8").splitlines()) == len(STORED)
    assert page.read_text(encoding="utf-8").count("**`") > 20


def test_agreement() -> None:
    assert agree(1.0, None)
    assert agree(1.0, 1.0 + 1e-13)
    assert agree(math.nan, math.nan)
    assert agree(0.0, -0.0)
    assert not agree(0.0, 1e-300)
    assert not agree(inf, math.nan)


def test_the_page_has_the_second_derivatives_of_today() -> None:
    text = PAGE.read_text(encoding="utf-8").split(special_values.TWICE_BEGIN)[1].split(special_values.TWICE_END)[0]
    assert text.strip() == special_values.twice_tables().strip(), "run python -m tools.qa.special_values"


@pytest.mark.mpmath
def test_second_derivatives_at_ordinary_operands_are_the_truths() -> None:
    with mp.workdps(DIGITS):
        for name, xs, entries in twice():
            row = BY_NAME[name]
            by = 1 if name == "pow" else len(xs)
            if not all(map(math.isfinite, xs)) or 0.0 in xs or (name == "norm"):
                continue
            places = [(i, j) for i in range(by) for j in range(i, by)]
            for place, entry in zip(places, entries, strict=True):
                value = truths()[row.name].value
                if real(value, list(map(mpmath.mpf, xs))) is None:  # no value, and no derivative of it
                    assert entry != entry or entry == 0.0
                    continue
                orders = tuple(place.count(k) for k in range(len(xs)))
                expected = mpmath.diff(value, tuple(map(mpmath.mpf, xs)), orders)
                assert math.isclose(entry, expected, rel_tol=1e-12, abs_tol=1e-15), (name, xs, place)
