"""explain(x, root): the paths, counted and multiplied out by hand or by brute force, and the factor that is named."""

from __future__ import annotations

import html
import math
import random
import re
from collections.abc import Iterator
from typing import Any

import pytest

import wengert
from wengert import Value, explain, nn
from wengert.errors import ArgumentError, OperandError

pytestmark = pytest.mark.once  # what is drawn is a graph, whichever engine made it


def every_path(root: Value, x: Value) -> Iterator[float]:
    """The products of the local derivatives along every path from root to x, by walking them all."""
    graph = wengert.Graph(root)
    partials = graph.partials
    target = next(i for i, value in enumerate(graph.values) if value is x)
    waiting = [(len(graph) - 1, 1.0)]
    while waiting:
        place, product = waiting.pop()
        if place == target:
            yield product
            continue
        for at in range(graph.starts[place], graph.starts[place + 1]):
            if graph.operands[at] >= 0:
                waiting.append((graph.operands[at], product * partials[at]))


@pytest.mark.parametrize("seed", range(12))
def test_the_largest_paths_are_those_that_a_walk_of_all_paths_finds(seed: int) -> None:
    chance = random.Random(seed)
    nodes: list[Any] = [Value(chance.uniform(-2, 2), f"x{i}") for i in range(3)]
    for _ in range(12):
        a, b = chance.choices(nodes[-6:], k=2)
        nodes.append(chance.choice([a * b, a + b, a - b * 0.5, (a * 0.7).tanh(), wengert.sum([a, b, a])]))
    root = nodes[-1] + nodes[-2]
    for x in nodes[:3]:
        if all(value is not x for value in wengert.Graph(root).values):
            assert explain(x, root).verdict == "unused"
            continue
        products = sorted(every_path(root, x), key=abs, reverse=True)
        found = explain(x, root)
        assert found.count == len(products)
        assert [abs(path.product) for path in found.paths] == pytest.approx([abs(p) for p in products[:5]])
        assert found.gradient == pytest.approx(sum(products), abs=1e-12)
        root.backward()
        assert found.gradient == wengert.Graph(root).values[0].grad or x is not wengert.Graph(root).values[0]


def test_a_dead_relu() -> None:
    x, w = Value(-3.0, "x"), Value(2.0, "w")
    h = x * w
    h.label = "h"
    y = h.relu() * 5
    y.label = "y"
    found = explain(w, y)
    assert (found.verdict, found.gradient, found.count) == ("zero", 0.0, 1)
    assert found.reasons == ("relu(h) passes nothing on to h: the input of the ReLU is -6, and below 0 it is flat.",)
    (path,) = found.paths
    assert [(f.node, f.operand, f.symbol, f.partial) for f in path.factors] == [
        ("y", "relu(h)", "*", 5.0),
        ("relu(h)", "h", "ReLU", 0.0),
        ("h", "w", "*", -3.0),
    ]


def reasons(x: Value, root: Any) -> str:
    return "\n".join(explain(x, root).reasons)


def test_every_kind_of_zero_is_told_apart() -> None:
    a, b, zero = Value(2.0, "a"), Value(3.0, "b"), Value(0.0, "zero")
    assert "(a*zero) " not in reasons(a, a * zero)
    assert reasons(a, a * zero) == "a*zero passes nothing on to a: the other factor, zero, is 0."
    assert reasons(a, a * 0 + b) == "a*0 passes nothing on to a: the other factor is 0."
    assert reasons(a, a * 3 + a * -3 + b) == "The gradients at a cancel: -3 + 3 = 0."
    assert "saturated" in reasons(a, (a * 500).tanh())
    assert "saturated" in reasons(a, (a * -500).sigmoid())
    assert "maximum did not select it: it is 2" in reasons(a, wengert.maximum(a, b))
    assert "clip did not select it: it is 3" in reasons(b, wengert.clip(b, -1.0, 1.0))
    assert "stop_gradient stops every gradient" in reasons(a, wengert.stop_gradient(a) * b)
    assert "the derivative of sign with respect to it is 0 at 2" in reasons(a, wengert.sign(a))
    assert "its factor in the sum is 0" in reasons(a, wengert.dot([a, b], [0.0, 1.0], 1.0))
    assert "at 0 it is flat" in reasons(zero, zero.relu())
    tiny = a * 1e-200
    assert "smallest float: 1e-200 × 1e-200 underflows to 0" in reasons(a, tiny * 1e-200)


def test_a_zero_that_is_cut_off_at_every_path_names_every_cut() -> None:
    x = Value(1.0, "x")
    cuts = [(x - 2.0 - i).relu() for i in range(8)]
    found = explain(x, wengert.sum(cuts))
    assert found.count == 8
    assert len(found.reasons) == 6
    assert found.reasons[-1] == "The same holds at 3 more places."


def test_a_zero_further_up_hides_what_lies_below_it() -> None:
    """What cancels above x is the reason; that a factor below would be 0 too is not."""
    x = Value(-1.0, "x")
    h = x.relu()
    h.label = "h"
    assert reasons(x, h - h) == "The gradients at h cancel: 1 + (-1) = 0."


def test_a_nan_is_traced_to_the_first_operation_that_made_one() -> None:
    x, b = Value(-1.0, "x"), Value(2.0, "b")
    loss = (x * b).log() * b + x
    loss.label = "loss"
    assert explain(b, loss).verdict == "nan"
    assert "log(x*b) = log(-2) = nan" in reasons(x, loss)
    assert "It comes from log(x*b) = log(-2) = nan" in reasons(b, loss)
    bad = Value(math.nan, "bad")
    assert reasons(b, bad * b) == "It comes from bad, a leaf whose data is nan."
    root = Value(0.0, "r")
    assert "0 × inf = nan to r, where sqrt(r) = sqrt(0) = 0" in reasons(root, root.sqrt() * 0.0)
    up, down = Value(1.0, "up"), Value(0.0, "z")
    both = up / down - up / down  # inf - inf
    assert explain(up, both).verdict == "nan"
    assert reasons(up, both) == "The gradients at up add up to nan: -inf + inf."
    assert reasons(up, up * 1e308 + up * 1e308) == "The gradients at up add up to inf: 1e+308 + 1e+308."


def test_an_infinity_is_traced_to_its_factor() -> None:
    x = Value(0.0, "x")
    found = explain(x, x.log() + 1.0)
    assert (found.verdict, found.gradient) == ("infinite", math.inf)
    assert found.reasons == ("The local derivative of log(x) with respect to x is inf: log(x) = log(0) = -inf.",)
    big = Value(1e200, "big")
    assert "1e+200 × 1e+200 = inf" in reasons(big, (big * 1e200) * Value(1e200))


def test_huge_and_tiny_gradients_name_their_factors() -> None:
    x = Value(3.0, "x")
    found = explain(x, (x * 1e5 + 1.0) * 1e4)
    assert (found.verdict, found.gradient) == ("huge", 1e9)
    assert found.reasons[0].startswith("On the largest path these local derivatives are larger than 1: 100000 (")
    y: Any = x
    for _ in range(30):
        y = y.sigmoid() * 0.5
    assert explain(x, y).verdict == "tiny"
    assert "and 55 more" in reasons(x, y)
    z: Any = x
    for _ in range(30):
        z = z + z
    found = explain(x, z)
    assert (found.verdict, found.count, found.gradient) == ("huge", 2.0**30, 2.0**30)
    assert found.reasons == ("No local derivative on the largest path is above 1: the number of paths makes it so.",)
    assert explain(x, x * 2.0).verdict == "ordinary"
    assert explain(x, x * 2.0).reasons == ()


def test_more_paths_than_floats_can_count() -> None:
    x: Any = Value(1.0, "x")
    y = x
    for _ in range(1100):
        y = (y + y) * 0.5
    found = explain(x, y)
    assert (found.gradient, found.count) == (1.0, math.inf)
    text = str(found)
    assert "There are more than 1e308 paths" in text
    assert "… 2,188 more …" in text
    assert len(text) < 2000


def test_a_value_that_is_not_under_the_result() -> None:
    w = Value(1.0, "w")
    found = explain(w, Value(2.0, "y") * 3.0)
    assert (found.verdict, found.gradient, found.paths, found.count) == ("unused", 0.0, (), 0.0)
    assert "does not depend on w" in str(found)
    with wengert.no_grad():
        frozen = w * 2.0
    assert explain(w, frozen * 3.0).verdict == "unused"


def test_the_result_itself_and_the_strangest_leaf() -> None:
    x, y = Value(2.0, "x"), Value(0.0, "y")
    root = x * y
    assert (explain(root, root).gradient, explain(root, root).count) == (1.0, 1.0)
    assert explain(root).name == "x"  # whose gradient is 0
    assert explain(x * x).verdict == "ordinary"
    assert explain((x * x).log() + y.log()).verdict == "infinite"


def test_a_label_of_a_stranger_stays_text() -> None:
    x = Value(0.0, "</svg><script>alert(1)</script>" + "x" * 10_000)
    found = explain(x, x * 0.0)
    assert len(str(found)) < 1000
    assert "<script>" not in found.svg()
    assert "<script>" not in found._repr_html_()


def test_a_notebook_shows_the_text_and_the_drawing() -> None:
    x = Value(2.0, "x")
    found = explain(x, x * 3.0)
    text, end, drawing = found._repr_html_().removeprefix("<pre>").partition("</pre>")
    assert (html.unescape(text), end, drawing) == (str(found), "</pre>", found.svg())


def test_the_drawing_marks_the_paths_and_shows_their_gradients() -> None:
    a, b, c = Value(2.0, "a"), Value(3.0, "b"), Value(4.0, "c")
    root = a * b + c * 1.5
    marked = explain(a, root).svg("light")
    assert marked.startswith("<svg")
    assert marked.count(" hot") > 0
    assert "not computed" not in marked  # though backward() was not called
    chain: Any = a
    for _ in range(400):
        chain = chain * 1.001 + 0.1
    part = explain(a, chain).svg()
    assert "of 801 nodes: those on the paths" in part
    assert len(part) < 300_000


@pytest.mark.parametrize("wrong", [None, 1.0, "x", [Value(1.0)]])
def test_what_is_no_value_is_refused(wrong: Any) -> None:
    with pytest.raises(OperandError, match=r"explain\(x, root\) takes Values, and x is \w+"):
        explain(wrong)
    if wrong is not None:
        with pytest.raises(OperandError, match=r"explain\(x, root\) takes Values, and root is \w+"):
            explain(Value(1.0), wrong)


def test_a_leaf_alone_cannot_know_what_was_made_of_it() -> None:
    with pytest.raises(ArgumentError, match=r"w is a leaf.*explain\(x, loss\)"):
        explain(Value(1.0, "w"))


def test_the_line_that_made_a_node_is_named_where_it_is_known() -> None:
    x = Value(-3.0, "x")
    with wengert.detect_anomaly():
        y = x.relu()  # the line in question
        z = y * 2.0
        told = reasons(x, z)
    assert "y = x.relu()  # the line in question" in told
    assert "test_explain.py, line " in told
    assert "test_explain.py" not in reasons(x, z)


def test_a_path_that_would_be_too_wide_has_a_line_for_each_factor() -> None:
    rng = random.Random(1)
    model = nn.MLP(2, [3, 3, 1], activation="tanh", rng=rng)
    loss = wengert.mean([(model([rng.gauss(0, 1), rng.gauss(0, 1)]) - 1) ** 2 for _ in range(4)])
    weight = model.layers[0].neurons[0].w[0]
    told = explain(weight, loss)
    text = str(told)
    assert max(map(len, text.splitlines())) <= 100
    assert text.startswith("The derivative of the result with respect to layers.0.neurons.0.w.0 is ")
    columns = re.findall(r"^  result\n((?:  →.*\n)+) +=(.*)$", text, re.MULTILINE)
    assert len(columns) == 2
    for path, (lines, product) in zip(told.paths, columns, strict=False):
        factors = [float(line.split()[-1].strip("()")) for line in lines.splitlines()]
        assert factors == [pytest.approx(factor.partial, rel=1e-3) for factor in path.factors]
        assert float(product) == pytest.approx(math.prod(factors), rel=1e-2)
        assert len({line.index(line.split()[-1]) + len(line.split()[-1]) for line in lines.splitlines()}) == 1


def test_paths_that_add_nothing_are_not_told_where_others_add_something() -> None:
    x = Value(2.0, "x")
    told = str(explain(x, (x * 0.0).tanh() * 0.0 + x * 3.0))
    assert "= 0" not in told
    assert "= 3" in told


def test_equal_paths_of_long_names_are_shown_once() -> None:
    """An operand that is used twice makes two paths of the same factors: one is written, and how many there are."""
    model = nn.MLP(2, [4, 4, 1], activation="tanh", rng=random.Random(3))
    error = model([0.5, -1.0]) - 0.25
    loss = error * error
    w = model.parameters()[0]
    said = str(explain(w, loss))
    assert "There are 8 paths, and the derivative is the sum of their products. The largest 4:" in said
    assert said.count("(2 of them)") == 2
    loss.backward()
    shown = [float(part) for part in re.findall(r"  = +(\S+)   \(2 of them\)", said)]
    (rest,) = re.findall(r"The next largest adds (\S+)\.", said)
    products = sorted({path.product for path in explain(w, loss).paths}, key=abs, reverse=True)
    assert [*shown, float(rest)] == pytest.approx(products, rel=1e-3)
