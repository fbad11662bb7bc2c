"""The stepper's page in a real browser: it shows Python's numbers and sentences, plays, is dragged and clicked."""

from __future__ import annotations

import math
import random
import re
import time
from collections.abc import Callable
from typing import Any

import pytest

import wengert
from tests.view.browsing import every_operation, find, go, keep, network, numbers, said, twice, until
from tests.view.drawn import neuron
from wengert import Value, steps
from wengert.view import naming

pytestmark = [pytest.mark.browser, pytest.mark.once]


# -- the numbers and the words are Python's ---------------------------------------------------------------------------


@pytest.mark.parametrize("root", [lambda: neuron()[0], twice, network, lambda: every_operation()[0]])
def test_every_step_says_and_shows_what_python_says(shown: Any, root: Callable[[], Value]) -> None:
    result = root()
    sequence = steps(result)
    page = shown(result)
    script = """
        const all = [];
        for (let k = 1; k <= end; k++) {
          go(k);
          all.push([...document.querySelectorAll("#said p")].map((p) => p.textContent).join("; "));
        }
        return all;
    """
    assert page.execute_script(script) == [step.sentence for step in sequence]
    result.backward()
    graph = wengert.Graph(result)
    expected = [(value.data, value.grad) for value in graph.values]
    assert [repr(pair) for pair in numbers(page)] == [repr(pair) for pair in expected]  # nan as nan, -0.0 as -0.0


def test_nan_infinity_and_sizes_are_written_as_python_writes_them(shown: Any) -> None:
    x, big = Value(-1.0, "x"), Value(1e308, "big")
    result = x.log() + big * 10.0 + Value(math.nan, "nan") * 0.0 + Value(-math.inf, "inf")
    sequence = steps(result)
    page = shown(result)
    for step in sequence:
        go(page, step.number + 1)
        assert said(page) == step.sentence
    assert repr(numbers(page)) == repr(list(zip(sequence.data, sequence.gradients, strict=True)))
    chance = random.Random(3)
    sizes = [chance.uniform(-1, 1) * 10.0 ** chance.uniform(-12, 12) for _ in range(500)]
    sizes += [0.0, -0.0, 2.0625, 9999.5, 99995.0, 1e-5, 0.00012345, 1e22, 1e-300, 123456.0, -0.125]
    assert page.execute_script("return arguments[0].map(number)", sizes) == [naming.number(x) for x in sizes]


def test_a_leaf_that_is_changed_changes_everything_as_python_would(shown: Any) -> None:
    """For every row of the table: value and partials, at other numbers than those that were recorded."""
    result, leaves = every_operation(0)
    page = shown(result)
    fresh, others = every_operation(1)
    fresh.backward()
    expected = [(value.data, value.grad) for value in wengert.Graph(fresh).values]
    page.execute_script(
        """
        const fields = document.querySelectorAll(".leaf input[type=number]");
        arguments[0].forEach((x, i) => { fields[i].value = x; fields[i].oninput(); });
        go(end);
        """,
        [leaf.data for leaf in others],
    )
    assert len(leaves) == len(others)
    for got, want in zip(numbers(page), expected, strict=True):
        assert got == pytest.approx(want, rel=1e-11, abs=1e-13, nan_ok=True)
    find(page, "#reset").click()
    result.backward()
    assert numbers(page) == [(pytest.approx(v.data, nan_ok=True), pytest.approx(v.grad, nan_ok=True))
                             for v in wengert.Graph(result).values]  # fmt: skip


def test_a_slider_moves_its_leaf_and_what_depends_on_it(shown: Any) -> None:
    page = shown(twice(), 7)
    assert page.execute_script("return getComputedStyle(nodes[0].g).cursor") == "pointer"
    slider = find(page, "#leaf-0")
    slider.send_keys("\ue014")  # the right arrow: a fiftieth of the span to each side, here 4
    data = numbers(page)
    a = -2.0 + 4.0 / 50
    f = a * 3.0 * (a + 3.0)
    assert data[0][0] == pytest.approx(a)
    assert data[-1][0] == pytest.approx(f)
    assert data[0][1] == pytest.approx(6 * a + 9)  # of 3a² + 9a
    assert find(page, "#reset").is_enabled()
    page.execute_script("document.querySelector('#leaf-0').value = 1; document.querySelector('#leaf-0').oninput()")
    assert numbers(page)[0] == (1.0, pytest.approx(15.0))


def test_an_operation_of_the_users_is_computed_if_it_is_arithmetic_and_refused_if_not(shown: Any) -> None:
    cube = wengert.op("cube_of_page", value=lambda x: x**3, partials=lambda out, x: 3 * x**2)
    page = shown(cube(Value(2.0, "x")), 3)
    page.execute_script("const f = document.querySelector('.leaf input'); f.value = 3; f.oninput()")
    assert numbers(page) == [(3.0, 27.0), (27.0, 1.0)]
    rough = wengert.op("rough_of_page", value=lambda x: math.floor(x) + 0.0, partials=lambda out, x: 1.0)
    page = shown(rough(Value(2.5, "x")), 3)
    assert find(page, "#off").text == "The sliders are off: the page cannot compute rough_of_page."
    assert not find(page, "#leaf-0").is_enabled()
    assert numbers(page) == [(2.5, 1.0), (2.0, 1.0)]


def test_a_compiled_function_is_one_node_whose_sliders_are_off(shown: Any) -> None:
    pytest.importorskip("numpy", reason="needs numpy")
    w = Value(3.0, "w")
    loss = wengert.compile(lambda x: (w * x).tanh())
    result = loss.mean([0.1, 0.2])
    sequence = steps(result)
    page = shown(result, len(sequence))
    assert said(page) == sequence[-1].sentence
    assert "compiled" in find(page, "#off").text


# -- what explains a step ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("root", [lambda: neuron()[0], twice, network, lambda: every_operation()[0]])
def test_rules_are_pythons(shown: Any, root: Callable[[], Value]) -> None:
    result = root()
    page = shown(result)
    script = """
        const all = [];
        for (let k = 1; k <= end; k++) {
          go(k);
          const told = [...document.querySelectorAll("#said .rule")].map((e) => e.textContent);
          all.push(told.map((text) => text.replace("local derivative: ", "")));
        }
        return all;
    """
    expected = [[move.rule for move in step.contributions if move.rule] for step in steps(result)]
    assert page.execute_script(script) == expected


PATHS = """
    const lines = [...document.querySelector(arguments[0]).querySelectorAll("path:not(.axis)")];
    return lines.map((line) => [line.getAttribute("class"), line.getAttribute("d")]);
"""


def points(d: str) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in re.findall(r"[ML](-?[\d.]+),(-?[\d.]+)", d)]


def test_the_curve_of_a_step_touches_its_tangent_at_the_operand(shown: Any) -> None:
    page = shown(neuron()[0], 7)
    (_, curve), (kind, line) = page.execute_script(PATHS, "#curves svg")
    assert kind == "tangent"
    (x0, y0), (x1, y1) = points(line)
    slope = (y1 - y0) / (x1 - x0)
    drawn = points(curve)
    assert len(drawn) == 61
    for k, (x, y) in enumerate(drawn):
        below = y - (y0 + slope * (x - x0))  # 0 at the point itself, and small on both sides of it
        assert abs(below) < (0.2 if k == 30 else 1.5 if abs(k - 30) < 3 else math.inf)
    label = find(page, "#curves svg").get_attribute("aria-label")
    assert label == "o over n, which is 0.8814, its slope there is 0.5"
    go(page, 5)  # on the way forward there is the curve alone
    assert [kind for kind, _ in page.execute_script(PATHS, "#curves svg")] == [None]


def test_the_secant_becomes_the_tangent_with_h(shown: Any) -> None:
    from selenium.webdriver.common.keys import Keys

    page = shown(neuron()[0], 7)
    slider, n, slopes = find(page, "#h"), math.atanh(math.sqrt(0.5)), []
    slider.send_keys(Keys.END)
    while h := float(slider.get_attribute("value")):
        _, *lines = page.execute_script(PATHS, "#curves svg")
        assert [kind for kind, _ in lines] == ["tangent", "secant"]
        secant = (math.tanh(n + h) - math.tanh(n)) / h
        label = find(page, "#curves svg").get_attribute("aria-label")
        assert label == f"o over n, which is 0.8814, its slope there is 0.5, of the secant {naming.number(secant)}"
        (x0, y0), (x1, y1) = points(lines[1][1])
        dot = "return ['cx', 'cy'].map((name) => +document.querySelector('#curves .second').getAttribute(name))"
        x, y = page.execute_script(dot)  # where the curve is at n + h, which the secant goes through
        assert y == pytest.approx(y0 + (y1 - y0) / (x1 - x0) * (x - x0), abs=0.2)
        slopes.append(secant)
        slider.send_keys(*[Keys.ARROW_LEFT] * 30)
    assert slopes == sorted(slopes)
    assert len(slopes) > 2
    assert [kind for kind, _ in page.execute_script(PATHS, "#curves svg")] == [None, "tangent"]
    assert page.execute_script("return document.querySelector('.second')") is None


def test_the_result_over_the_leaf_that_is_dragged_has_the_gradient_as_its_slope(shown: Any) -> None:
    page = shown(twice(), 7)
    slider = find(page, "#leaf-1")
    slider.send_keys("\ue014")
    b = 3.0 + 6.0 / 50
    label = find(page, "#against svg").get_attribute("aria-label")
    gradient = 4 - 4 * b  # of f = ab(a + b), at a = -2
    assert label == f"f over b: the slope of its tangent is the gradient, {naming.number(gradient)}"
    page.execute_script("ui.h.value = 0.5; ui.h.oninput()")
    f = lambda b: -2 * b * (b - 2)  # noqa: E731
    secant = (f(b + 0.5) - f(b)) / 0.5
    assert find(page, "#ratio").text == f"slope of the secant, h = 0.5: {naming.number(secant)}"
    assert [kind for kind, _ in page.execute_script(PATHS, "#against svg")] == [None, "tangent", "secant"]
    find(page, "#switch").click()
    assert [kind for kind, _ in page.execute_script(PATHS, "#against svg")] == [None, "tangent", "false", "secant"]
    assert find(page, "#ratio").text == "With = it would be -2.24, which is no tangent."


@pytest.mark.parametrize("leaf", ["w0", "w11"])
def test_of_a_wide_node_the_leaf_in_the_address_is_what_is_seen(shown: Any, leaf: str) -> None:
    weights = [Value(0.5 + k, f"w{k}") for k in range(12)]
    total = wengert.dot(weights, [Value(1.0 / (k + 1), f"x{k}") for k in range(12)])
    page = shown(total, f"3,{leaf}")
    script = """
        const box = ui.said.getBoundingClientRect();
        return [...ui.said.querySelectorAll("p")].filter((p) => {
            const { top, bottom } = p.getBoundingClientRect();
            return top >= box.top && bottom <= box.bottom;
        }).map((p) => p.textContent);
    """
    seen = page.execute_script(script)
    assert any(text.startswith(f"grad of {leaf} = ") for text in seen)
    assert 0 < len(seen) < 12
    assert f" over {leaf}, " in find(page, "#curves svg").get_attribute("aria-label")
    assert f" over {leaf}: " in find(page, "#against svg").get_attribute("aria-label")


def test_numbers_travel_along_their_edges_and_are_multiplied_at_the_operator(shown: Any) -> None:
    page = shown(neuron()[0], 6)
    script = """
        const done = arguments[0], seen = [];
        document.querySelector("#on").click();
        const path = edges[nodes.length - 1][0], start = performance.now();
        const look = () => {
          const token = document.querySelector(".token");
          if (token) seen.push([token.textContent, +token.getAttribute("x")]);
          if (performance.now() - start < 3000 && (token || seen.length < 2)) requestAnimationFrame(look);
          else done([seen, path.getPointAtLength(0).x, path.getPointAtLength(path.getTotalLength()).x]);
        };
        requestAnimationFrame(look);
    """
    seen, left, right = page.execute_async_script(script)
    texts, xs = [text for text, x in seen if x], [x for _, x in seen if x]
    assert list(dict.fromkeys(texts)) == ["1 × 0.5", "0.5"]
    assert xs == sorted(xs, reverse=True)
    assert xs[0] == pytest.approx(right, abs=1)
    assert left - 1 <= xs[-1] < (left + right) / 2
    gains = page.execute_script("return [...document.querySelectorAll('.gain')].map((e) => e.textContent)")
    assert gains == ["= 0.5", "× 0.5"]


def test_a_layer_is_one_step_if_so_wished(shown: Any) -> None:
    model = wengert.nn.MLP(2, [3, 1], activation="tanh", rng=random.Random(1))
    loss = (model([0.5, -1.0]) - 1.0) ** 2
    page = shown(loss)
    find(page, "#by").send_keys("layer")
    reached = []
    while find(page, "#on").is_enabled():
        find(page, "#on").click()
        reached.append(page.execute_script("return at"))
    # Forward three neurons of two nodes each, the last layer, the loss; the result's own gradient; and back.
    assert reached == [6, 7, 9, 10, 12, 13, 19]
    sequence = steps(loss)
    assert len(page.find_elements("css selector", ".node.now")) == 6
    shown_here = said(page).partition("; and")[0]
    assert "; ".join(step.sentence for step in sequence[13:19]).startswith(shown_here)
    back = []
    while find(page, "#back").is_enabled():
        find(page, "#back").click()
        back.append(page.execute_script("return at"))
    assert back == [13, 12, 10, 9, 7, 6, 0]
    assert model  # whose names are in the page


# -- playing, dragging, the switch ------------------------------------------------------------------------------------


def test_it_plays_to_its_end_and_pauses(shown: Any) -> None:
    page = shown(twice())
    page.execute_script("document.querySelector('#speed').options[3].value = '30'")
    find(page, "#speed").send_keys("8")
    assert find(page, "#play").text == "Play"
    assert page.execute_script("ui.play.click(); return ui.play.textContent") == "Pause"
    until(lambda: find(page, "#count").text == "step 7 of 7")
    until(lambda: find(page, "#play").text == "Play")
    page.execute_script("document.querySelector('#speed').options[3].value = '500'")  # this machine may be slow
    find(page, "#play").click()  # again, from the start
    until(lambda: find(page, "#count").text != "step 7 of 7")
    find(page, "#back").click()
    assert find(page, "#play").text == "Play"
    count = find(page, "#count").text
    time.sleep(0.7)
    assert find(page, "#count").text == count  # it has stopped


def test_the_timeline_is_dragged_and_so_is_the_picture(shown: Any) -> None:
    from selenium.webdriver import ActionChains

    page = shown(network())
    timeline = find(page, "#at")
    wide = timeline.size["width"]
    ActionChains(page).move_to_element_with_offset(timeline, -wide // 2 + 8, 0).click_and_hold().move_by_offset(
        wide // 2 - 8, 0
    ).release().perform()
    end = page.execute_script("return end")
    assert abs(page.execute_script("return at") - end / 2) <= 0.06 * end
    page.execute_script("scale(2); ui.view.scrollTo(300, 50)")
    view = find(page, "#view")
    ActionChains(page).move_to_element(view).click_and_hold().move_by_offset(-120, 30).release().perform()
    assert page.execute_script("return [ui.view.scrollLeft, ui.view.scrollTop]") == pytest.approx([420, 20], abs=2)


def test_a_click_on_a_node_goes_to_its_turn(shown: Any) -> None:
    page = shown(twice(), 1)
    page.execute_script("nodes[3].g.dispatchEvent(new MouseEvent('click'))")
    assert said(page) == "e = a + b = -2 + 3 = 1"
    go(page, 7)
    page.execute_script("nodes[3].g.dispatchEvent(new MouseEvent('click'))")
    assert said(page).startswith("grad of a = grad of e ×")
    page.execute_script("nodes[1].g.dispatchEvent(new MouseEvent('click'))")
    assert page.switch_to.active_element.get_attribute("id") == "leaf-1"


def test_the_switch_shows_what_assignment_would_lose(shown: Any) -> None:
    page = shown(twice(), 7)
    right = numbers(page)
    assert [grad for _, grad in right] == [-3.0, -8.0, 1.0, -6.0, 1.0]
    find(page, "#switch").click()
    assert [grad for _, grad in numbers(page)] == [3.0, -2.0, 1.0, -6.0, 1.0]  # what came last
    assert said(page) == (
        "grad of a = grad of d × local derivative = 1 × 3 = 3, and its former -6 is lost; "
        "grad of b = grad of d × local derivative = 1 × (-2) = -2, and its former -6 is lost; "
        "With = instead of +=, 2 of 5 gradients are wrong by now."
    )
    assert page.execute_script("return nodes[0].grad.textContent") == "3"
    assert [text.text for text in page.find_elements("css selector", ".should")] == ["should be -3", "should be -8"]
    assert len(page.find_elements("css selector", ".node.wrong")) == 2
    keep(page, "stepper-assign")
    find(page, "#switch").click()
    assert numbers(page) == right


def test_a_value_added_to_itself_gets_both_halves(shown: Any) -> None:
    a = Value(3.0, "a")
    page = shown(a + a, 3)
    assert numbers(page)[0] == (3.0, 2.0)
    find(page, "#switch").click()
    assert numbers(page)[0] == (3.0, 1.0)


# -- large ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rounds", [100, pytest.param(500, marks=pytest.mark.nightly)])
def test_two_thousand_nodes_open_and_step(rounds: int, shown: Any) -> None:
    """At night; a fifth of them at each change."""
    chance = random.Random(0)
    x = [Value(chance.uniform(-1, 1), f"x{i}") for i in range(10)]
    total: Any = Value(0.0, "start")
    for _ in range(rounds):
        a, b = chance.sample(x, 2)
        x[chance.randrange(10)] = (a * b + 0.5).tanh()
        total = total + a * chance.uniform(-1, 1)
    last = 4 * rounds
    assert len(wengert.Graph(total)) > 0.95 * last
    page = shown(total)
    inside = """
        const box = nodes[arguments[0]].g.getBoundingClientRect(), view = ui.view.getBoundingClientRect();
        return box.left >= view.left && box.right <= view.right && box.top >= view.top && box.bottom <= view.bottom;
    """
    first = page.execute_script("return made[0]")
    until(lambda: page.execute_script(inside, first))  # what is played first can be seen
    page = shown(total, last)
    here = steps(total)[last - 1].place
    until(lambda: page.execute_script(inside, here))
    find(page, "#last").click()
    gradients = steps(total).gradients
    assert [grad for _, grad in numbers(page)] == gradients
    keep(page, "stepper-2000")
