"""Every view of nodes that their user puts together, `wengert.Value(data, children, op)` with a closure or without."""

from __future__ import annotations

import json
import math
import random
import re
from typing import Any

import pytest

from tests.view import drawn
from tests.view.drawn import rows
from tests.view.geometry import faults, read
from wengert import Value, draw, explain, nn, steps, tree
from wengert.graph import Graph
from wengert.view import naming

pytestmark = pytest.mark.once  # what is drawn is a graph, whichever engine made it


def plus(x: Value, y: Value) -> Value:
    out = Value(x.data + y.data, (x, y), "+")

    def _backward() -> None:
        x.grad += out.grad
        y.grad += out.grad

    out._backward = _backward  # type: ignore[method-assign]
    return out


def times(x: Value, y: Value) -> Value:
    out = Value(x.data * y.data, (x, y), "*")

    def _backward() -> None:
        x.grad += y.data * out.grad
        y.grad += x.data * out.grad

    out._backward = _backward  # type: ignore[method-assign]
    return out


def tanh(x: Value) -> Value:
    t = math.tanh(x.data)
    out = Value(t, (x,), "tanh")

    def _backward() -> None:
        x.grad += (1 - t**2) * out.grad

    out._backward = _backward  # type: ignore[method-assign]
    return out


def neuron() -> Value:
    """E5, made by hand."""
    v = {name: Value(number, name) for name, number in drawn.NEURON.items()}
    n = plus(plus(times(v["x1"], v["w1"]), times(v["x2"], v["w2"])), v["b"])
    n.label = "n"
    o = tanh(n)
    o.label = "o"
    return o


def page_data(root: Any) -> dict[str, Any]:
    """What the page of the steps holds."""
    (data,) = re.findall(r'<script type="application/json" id="data">(.*?)</script>', steps(root).page(), re.DOTALL)
    found: dict[str, Any] = json.loads(data)
    return found


def mixed(rng: random.Random, size: int) -> Value:
    """Nodes made by hand on nodes of the engine, and the reverse."""
    values = [Value(rng.uniform(-1, 1), name) for name in "abc"]
    for _ in range(size):
        x, y = rng.choice(values[-5:]), rng.choice(values)
        values.append(rng.choice([plus(x, y), times(x, y), tanh(x), x + y, x * y, x.tanh(), plus(x, x), times(x, x)]))
    return values[-1]


def test_the_drawing_of_a_neuron_made_by_hand_is_that_of_the_engine() -> None:
    o = neuron()
    o.backward()
    said = rows(draw(o).svg)
    expected = dict.fromkeys(said, "0.5") | {"x1": "-1.5", "w1": "1", "w2": "0", "o": "1"}
    assert {name: row["grad"] for name, row in said.items()} == expected
    made, _ = drawn.neuron()
    made.backward()
    pictures = [re.sub("<title>.*?</title>", "", draw(root).svg, flags=re.DOTALL) for root in (o, made)]
    assert pictures[0] == pictures[1]  # but for the last digits of what is read under the pointer
    assert tree(o) == tree(made)
    assert draw(o).to_dot() == draw(made).to_dot()
    assert faults(draw(o, rankdir="TB").svg) == []


def test_its_steps_are_those_of_the_engine() -> None:
    assert [str(step) for step in steps(neuron())] == [str(step) for step in steps(drawn.neuron()[0])]


def test_steps_have_the_bits_of_backward() -> None:
    rng = random.Random(11)
    for _ in range(60):
        root = mixed(rng, rng.randrange(1, 25))
        stepped = steps(root)
        grads = [value.grad for value in stepped.graph.values]
        assert grads == [0.0] * len(grads)
        root.backward()
        assert stepped.gradients == [value.grad for value in stepped.graph.values]
        for step in stepped[len(stepped) // 2 + 1 :]:
            for move in step.contributions:
                assert move.after == pytest.approx(move.before + move.product, rel=1e-12, abs=1e-12)
        assert faults(draw(root).svg) == []
        assert [value.grad for value in stepped.graph.values] == stepped.gradients


def test_a_value_that_is_there_twice_receives_all_at_once() -> None:
    x = Value(3.0, "x")
    y = times(x, x)
    (move,) = steps(y)[-1].contributions
    assert (move.partial, move.after) == (6.0, 6.0)
    assert steps(y)[-1].sentence == "grad of x = grad of (x*x) × local derivative = 1 × 6 = 6"
    assert len(read(draw(y).svg).edges) == 2
    assert page_data(y)["partials"] == [[], [6, None]]
    assert explain(x, y).gradient == 6.0


def test_names_of_expressions() -> None:
    a, b = Value(2.0, "a"), Value(-3.0, "b")

    def called(symbol: str, *children: Any) -> str:
        return naming.names(Graph(Value(1.0, children, symbol)))[-1]

    assert called("+", a, b) == "a + b"
    assert called("-", a, b) == "a - b"
    assert called("*", a, b) == "a*b"
    assert called("/", a, b) == "a/b"
    assert called("**", a, b) == "a**b"
    assert called("-", a) == "-a"
    assert called("**2", a) == "a**2"
    assert called("**-1", a) == "a**-1"
    assert called("**0.5", a) == "a**0.5"
    assert called("ReLU", a) == "ReLU(a)"
    assert called("exp", a) == "exp(a)"
    for odd in ("", "+", "@0", "<b>", "a b", "**x", "dot", "**2**2"):
        assert called(odd, a) == "f(a)"
    assert called("*", plus(a, b), b) == "(a + b)*b"
    assert called("**2", plus(a, b)) == "(a + b)**2"
    assert steps(Value(9.0, (b,), "**2"))[0].sentence == "b**2 = (-3)**2 = 9"


def test_where_nothing_was_set_the_gradient_stops() -> None:
    a = Value(2.0, "a")
    h = Value(4.0, (a,), "double", "h")
    y = h * 3
    y.backward()
    assert rows(draw(y).svg)["h"]["grad"] == "3"
    assert rows(draw(y).svg)["a"]["grad"] == "not computed"
    assert draw(y).svg.count('class="interior stops') == 1
    assert "h = double  data 4  grad 3  no _backward" in tree(y)
    assert steps(y)[-1].sentence == "h has no _backward: its gradient stops here"
    found = explain(a, y)
    assert (found.verdict, found.count) == ("zero", 1)
    assert found.reasons == ("h passes nothing on to a: it has no _backward, and the gradient stops there.",)
    data = page_data(y)
    assert data["words"]["idle"] == {"1": "h has no _backward: its gradient stops here"}
    assert data["partials"] == [[], [None], [3, 0]]
    assert "no value has a _backward yet" in draw(h).svg
    assert "stops" not in draw(h).svg.split("</style>")[1]


def test_why_a_closure_adds_0_where_it_should() -> None:
    a, b = Value(-2.0, "a"), Value(0.0, "b")
    assert explain(a, times(a, b)).reasons == ("a*b passes nothing on to a: the other factor, b, is 0.",)
    dead = Value(0.0, (a,), "ReLU", "dead")
    dead._backward = lambda: setattr(a, "grad", a.grad + (dead.data > 0) * dead.grad)  # type: ignore[method-assign]
    why = "the input of the ReLU is -2, and below 0 it is flat"
    assert explain(a, dead).reasons == (f"dead passes nothing on to a: {why}.",)
    wrong = Value(-6.0, (a, Value(3.0, "c")), "*", "wrong")
    wrong._backward = lambda: setattr(a, "grad", a.grad + 0.0 * wrong.grad)  # type: ignore[method-assign]
    assert explain(a, wrong).reasons == ("wrong passes nothing on to a: its _backward adds 0.",)


def test_a_node_without_a_symbol_is_drawn_and_is_no_leaf() -> None:
    a = Value(2.0, "a")
    h = Value(4.0, (a,), "", "h")
    svg = draw(h).svg
    assert "made by hand" in svg
    assert 'class="interior"' in svg
    assert faults(svg) == faults(draw(h, rankdir="TB").svg) == []
    assert len(read(svg).edges) == 1
    assert steps(h)[0].sentence == "h = f(a) = f(2) = 4"


def test_the_page_says_why_its_sliders_are_off_and_plays() -> None:
    data = page_data(neuron())
    assert data["words"]["off"] == (
        "The sliders are off: *, +, tanh in this computation were made by hand, and only Python can compute them."
    )
    assert data["own"] == data["words"]["idle"] == {}
    ours = page_data(drawn.neuron()[0])
    assert ours["words"]["off"] == ""
    assert data["words"]["templates"] == ours["words"]["templates"]
    for key in ("values", "operands", "boxes", "routes", "size"):
        assert data[key] == ours[key]
    for mine, theirs in zip(data["partials"], ours["partials"], strict=True):
        assert mine == pytest.approx(theirs, abs=1e-12)


def test_the_page_tells_of_closures_that_do_something_else() -> None:
    x = Value(3.0, "x")
    y = Value(9.0, (x,), "odd", "y")
    y._backward = lambda: setattr(x, "grad", 7.0)  # type: ignore[method-assign]
    z = plus(y, x)
    z.label = "z"
    said = steps(z)[-1].contributions[0]
    assert said.sentence == "the _backward of y changes the grad of x from 1 to 7"
    assert (said.before, said.after, said.product) == (1.0, 7.0, 6.0)
    assert page_data(z)["own"] == {"1": {"0": [7, said.sentence]}}
    z.backward()
    assert x.grad == 7.0 == steps(z).gradients[0]


def test_a_model_of_nodes_made_by_hand_is_folded() -> None:
    model = nn.MLP(2, [3, 1])
    root = model([Value(1.0), Value(2.0)])
    for _ in range(120):
        root = tanh(plus(root, Value(0.1)))
    root.backward()
    drawing = draw(root, limit=50)
    assert "folded" in repr(drawing)
    assert faults(drawing.svg) == []
    assert len(read(drawing.svg).boxes) <= 50


def test_a_subclass_of_ones_own() -> None:
    class Mine(Value):
        pass

    x = Mine(2.0, "x")
    y = Mine(4.0, (x,), "double", "y")
    y._backward = lambda: setattr(x, "grad", x.grad + 2 * y.grad)  # type: ignore[method-assign]
    assert steps(y).gradients == [2.0, 1.0]
    assert tree(y).startswith("y = double  data 4")
