"""The stepper's page of nodes that are made by hand, and of somebody else's class, in a real browser."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.view.browsing import find, go, keep, numbers, said
from tests.view.seen import Five, Four, neuron_of
from tests.view.test_seeing_by_hand import mixed, neuron, plus
from wengert import Value, steps

pytestmark = [pytest.mark.browser, pytest.mark.once]

ALL = """
    const all = [];
    for (let k = 1; k <= end; k++) {
      go(k);
      all.push([...document.querySelectorAll("#said p")].map((p) => p.textContent).join("; "));
    }
    return all;
"""


def with_mistakes(mistake: str) -> Any:
    """Everything that closures can do: a mistake of one's own, one that is missing."""

    class Mine(Five):
        pass

    Mine.mistake = mistake
    a, b = Mine(2.0, label="a"), Mine(-3.0, label="b")
    d = a * (a * b + 7.0)
    return (d + d).tanh() + a * a


def odd() -> Value:
    x = Value(3.0, "x")
    y = Value(9.0, (x,), "odd", "y")
    y._backward = lambda: setattr(x, "grad", 7.0)  # type: ignore[method-assign]
    return plus(y, x) + Value(2.0, (plus(x, x),), "stop")


@pytest.mark.parametrize("mistake", ["", "=", "affine", "raises", "none"])
def test_every_step_says_what_python_says_of_somebodys_class(shown: Any, mistake: str) -> None:
    root = with_mistakes(mistake)
    sequence, page = steps(root), shown(root)
    assert page.execute_script(ALL) == [step.sentence for step in sequence]
    gradients = page.execute_script("return sweep(made.length + 1, false).grads")
    assert [gradient or 0.0 for gradient in gradients] == pytest.approx(sequence.gradients)


def test_every_step_says_what_python_says_of_nodes_made_by_hand(shown: Any) -> None:
    rng = random.Random(4)
    for root in (neuron(), odd(), mixed(rng, 12), mixed(rng, 25), neuron_of(Four)[0]):
        sequence, page = steps(root), shown(root)
        assert page.execute_script(ALL) == [step.sentence for step in sequence]


def test_the_sliders_are_off_with_a_reason_and_it_plays(shown: Any) -> None:
    page = shown(neuron())
    assert "made by hand, and only Python can compute them" in find(page, "#off").text
    assert page.execute_script("return [...document.querySelectorAll('.leaf input')].every((field) => field.disabled)")
    go(page, 12)
    assert [gradient for _, gradient in numbers(page)[:5]] == pytest.approx([-1.5, 0.5, 1.0, 0.0, 0.5])
    assert "1 × (-3)" not in said(page)
    keep(page, "by-hand")


def test_the_switch_works_on_closures_that_add(shown: Any) -> None:
    root = with_mistakes("")
    page = shown(root)
    page.execute_script("ui.assign.checked = true; go(end)")
    assert "With = instead of +=" in said(page)
