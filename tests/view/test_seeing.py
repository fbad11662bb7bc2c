"""Seeing one's own: the views take the reader's class at every stage, micrograd's, and others of their kind."""

from __future__ import annotations

import copy
import decimal
import math
import random
import re
import sys
from collections.abc import Iterator
from itertools import pairwise
from types import SimpleNamespace as Bare
from typing import Any

import pytest

import wengert
from tests.view.drawn import on_path, rows, texts
from tests.view.geometry import faults, read
from tests.view.seen import GRADIENTS, Five, Four, Local, Node, One, Three, Two, neuron_of
from wengert import Value, draw, draw_dot, explain, no_grad, steps, tree
from wengert.errors import ArgumentError, OperandError
from wengert.view.foreign import ForeignGraph
from wengert.view.graph.scene import PATH

pytestmark = pytest.mark.once  # what is drawn is a graph, whichever engine made it

try:
    from micrograd.engine import Value as Micrograd
except ImportError:
    Micrograd = None

ENGINES = [Two, Three, Four, Five, Node, Local]
ENGINES += [Micrograd] if Micrograd else []
CLOSURES = [kind for kind in ENGINES if kind not in (Two, Three)]


def everything(root: Any) -> Iterator[Any]:
    """Every object under a result."""
    waiting, seen = [root], {}
    while waiting:
        thing = waiting.pop()
        if id(thing) not in seen:
            seen[id(thing)] = thing
            for name in ("_prev", "_children", "parents"):
                waiting += list(getattr(thing, name, ()))
            yield thing


def state(root: Any) -> list[Any]:
    """All attributes of all objects, to compare them as objects: 0 is not 0.0."""
    return [
        (thing, name, getattr(thing, name), type(getattr(thing, name)))
        for thing in everything(root)
        for name in (*getattr(thing, "__dict__", ()), *getattr(type(thing), "__slots__", ()))
    ]


def look(root: Any, x: Any) -> str:
    """What every view gives."""
    drawn = draw(root)
    said = [drawn.svg, drawn.to_dot(), draw_dot(root, rankdir="TB").svg, tree(root)]
    return "\n".join([*said, *map(str, steps(root)), steps(root).page(), str(explain(x, root)), explain(x, root).svg()])


# -- stage by stage ---------------------------------------------------------------------------------------------------


def test_a_number_that_only_has_data_is_one_box_that_says_so() -> None:
    o, _ = neuron_of(One)
    assert repr(draw(o)) == "Drawing(1 value in 1 box)"
    note = "a One has no operands: store them in _prev"
    assert note in draw(o).svg
    assert tree(o) == f"leaf  data 0.7071\n{note}", "the class has no gradients yet"
    assert len(steps(o)) == 1
    with pytest.raises(ArgumentError, match="is a leaf"):
        explain(o)


@pytest.mark.parametrize("kind", ENGINES)
def test_the_graph_of_the_neuron(kind: Any) -> None:
    o, _ = neuron_of(kind)
    svg = draw(o).svg
    assert faults(svg) == faults(draw(o, rankdir="TB").svg) == []
    shown = read(svg)
    assert (len(shown.boxes), len(shown.edges)) == (10, 9)
    data = [text for text in texts(svg) if re.fullmatch(r"-?\d[\d.]*", text)]
    assert sorted(data) == sorted(["2", "-3", "0", "1", "6.881", "-6", "0", "-6", "0.8814", "0.7071"])
    assert texts(svg).count("not computed") == (0 if kind is Two else 10)
    assert ("grad" in texts(svg)) == (kind is not Two), "a gradient is drawn where the class has one"
    assert "no value has a _backward" not in svg, "nothing is to be passed on yet"
    if kind is not Local:
        signs = {Node: ["PLUS", "PLUS", "TANH", "TIMES", "TIMES"]}.get(kind, ["*", "*", "+", "+", "tanh"])
        assert sorted(t for t in texts(svg) if t in signs) == signs


@pytest.mark.parametrize("kind", [Two, Three, Four, Five, Node])
def test_labels_and_the_tree(kind: Any) -> None:
    o, _ = neuron_of(kind)
    assert set(GRADIENTS) < set(rows(draw(o).svg))  # and what has no label goes by its expression
    lines = tree(o).splitlines()
    assert len([line for line in lines if "data" in line]) == 10
    grad = "" if kind is Two else "  grad not computed"
    assert re.fullmatch(rf"o = (tanh|TANH)  data 0.7071{grad}", lines[0])
    assert re.fullmatch(rf"└─ n = (\+|PLUS)  data 0.8814{grad}", lines[1])


@pytest.mark.skipif(Micrograd is None, reason="needs micrograd")
def test_micrograds_own() -> None:
    a, b = Micrograd(-4.0), Micrograd(2.0)  # E1 of the list of cases
    c = a + b
    d = a * b + b**3
    c += c + 1
    c += 1 + c + (-a)
    d += d * 2 + (b + a).relu()
    d += 3 * d + (b - a).relu()
    e = c - d
    f = e**2
    g = f / 2.0
    g += 10.0 / f
    assert steps(g).data[-1] == pytest.approx(24.7041, abs=1e-4)
    foreign = ForeignGraph(g)
    gradients = dict(zip(map(id, steps(foreign.root).graph.values), steps(foreign.root).gradients, strict=True))
    assert gradients[id(foreign.node_for(a))] == pytest.approx(138.8338, abs=1e-4)
    assert gradients[id(foreign.node_for(b))] == pytest.approx(645.5773, abs=1e-4)
    assert {value.grad for value in steps(foreign.root).graph.values} == {0.0}
    g.backward()
    assert {"24.7", "138.8", "645.6", "**2", "ReLU"} <= set(texts(draw(g).svg))
    assert faults(draw(g).svg) == []
    assert "ReLU  data 6  grad -9" not in tree(g)
    assert str(steps(g)[4]).startswith("4 forward: ")


# -- gradients --------------------------------------------------------------------------------------------------------


def test_gradients_written_by_hand() -> None:
    o, v = neuron_of(Three)
    o.grad = 1.0
    said = {name: row["grad"] for name, row in rows(draw(o).svg).items()}
    assert said == dict.fromkeys(said, "not computed") | {"o": "1"}
    assert "no value has a _backward yet: no gradient is passed on" in draw(o).svg
    assert tree(o).splitlines()[-1] == "no value has a _backward yet: no gradient is passed on"
    for part in everything(o):
        part.grad = 0.5
    for name, gradient in GRADIENTS.items():
        v[name].grad = gradient
    said = {name: row["grad"] for name, row in rows(draw(o).svg).items()}
    assert said == dict.fromkeys(said, "0.5") | {"x1": "-1.5", "w1": "1", "w2": "0", "o": "1"}
    assert "no value has a _backward" not in draw(o).svg + tree(o), "all that there is to pass on is there"
    assert "stroke-dasharray" not in draw(o).svg.split("</style>")[1]


@pytest.mark.parametrize("kind", CLOSURES)
def test_steps_are_what_its_own_closures_do(kind: Any) -> None:
    o, v = neuron_of(kind)
    foreign = ForeignGraph(o)
    stepped = steps(o)
    places = {id(value): i for i, value in enumerate(steps(foreign.root).graph.values)}
    gradients = steps(foreign.root).gradients
    for name, gradient in GRADIENTS.items():
        node = foreign.node_for(v[name])
        assert node is not None
        assert gradients[places[id(node)]] == pytest.approx(gradient, abs=1e-12)
    assert [step.phase for step in stepped] == ["forward"] * 5 + ["backward"] * 6
    assert "no _backward" not in tree(o)


def test_the_sentences_of_the_neuron() -> None:
    o, _ = neuron_of(Four)
    assert [str(step) for step in steps(o)] == [
        "0 forward: x1*w1 = 2 × (-3) = -6",
        "1 forward: x2*w2 = 0 × 1 = 0",
        "2 forward: x1*w1 + x2*w2 = -6 + 0 = -6",
        "3 forward: n = x1*w1 + x2*w2 + b = -6 + 6.881 = 0.8814",
        "4 forward: o = tanh(n) = tanh(0.8814) = 0.7071",
        "5 backward: grad of o = 1, the derivative of the result with respect to itself",
        "6 backward: grad of n = grad of o × local derivative = 1 × 0.5 = 0.5",
        "7 backward: grad of (x1*w1 + x2*w2) = grad of n × local derivative = 0.5 × 1 = 0.5\n"
        "            grad of b = grad of n × local derivative = 0.5 × 1 = 0.5",
        "8 backward: grad of (x1*w1) = grad of (x1*w1 + x2*w2) × local derivative = 0.5 × 1 = 0.5\n"
        "            grad of (x2*w2) = grad of (x1*w1 + x2*w2) × local derivative = 0.5 × 1 = 0.5",
        "9 backward: grad of x2 = grad of (x2*w2) × local derivative = 0.5 × 1 = 0.5\n"
        "            grad of w2 = grad of (x2*w2) × local derivative = 0.5 × 0 = 0",
        "10 backward: grad of x1 = grad of (x1*w1) × local derivative = 0.5 × (-3) = -1.5\n"
        "             grad of w1 = grad of (x1*w1) × local derivative = 0.5 × 2 = 1",
    ]


@pytest.mark.parametrize("kind", [Five, Micrograd] if Micrograd else [Five])
def test_random_expressions_agree_with_their_own_backward(kind: Any) -> None:
    rng = random.Random(3)
    for _ in range(15):
        leaves = [kind(rng.uniform(-2, 2)) for _ in range(4)]
        values = list(leaves)
        for _ in range(rng.randrange(1, 30)):
            x, y = rng.choice(values[-6:]), rng.choice(values)
            values.append(rng.choice([x + y, x * y, x + x, y * 0.5]))
        root = values[-1]
        foreign = ForeignGraph(root)
        stepped = steps(foreign.root)
        found = {id(value): gradient for value, gradient in zip(stepped.graph.values, stepped.gradients, strict=True)}
        root.backward()
        for leaf in everything(root):
            assert found[id(foreign.node_for(leaf))] == pytest.approx(leaf.grad, rel=1e-9, abs=1e-12)
        told = {(float(value.data), float(value.grad)) for value in everything(root)}
        assert {(value.data, value.grad) for value in ForeignGraph(root).root._prev} <= told


@pytest.mark.parametrize("kind", CLOSURES)
def test_looking_changes_nothing(kind: Any) -> None:
    o, v = neuron_of(kind)
    before = state(o)
    look(o, v["x1"])
    after = state(o)
    assert len(before) == len(after)
    for (thing, name, was, type_was), (other, other_name, now, type_now) in zip(before, after, strict=True):
        assert (thing is other, name, type_was) == (True, other_name, type_now)
        assert was is now or name in ("_prev", "_backward")
    if hasattr(o, "backward"):
        o.backward()
        before = [value.grad for value in everything(o)]
        look(o, v["x1"])
        assert [value.grad for value in everything(o)] == before


def test_a_gradient_that_stands_in_the_class_stays_there() -> None:
    class Lazy:
        grad = 0.0

        def __init__(self, data: float, parts: Any = ()) -> None:
            self.data, self._prev, self._op = data, parts, "double"

        def _backward(self) -> None:
            self._prev[0].grad += 2 * self.grad

    x = Lazy(1.0)
    y = Lazy(2.0, (x,))
    assert steps(y).gradients == [2.0, 1.0]
    look(y, x)
    assert "grad" not in vars(x)
    assert "grad" not in vars(y)


# -- closures that are wrong, or not there ----------------------------------------------------------------------------


def squared(mistake: str) -> tuple[Any, Any, Any]:
    """c = a*b; d = c*a: a is used twice."""

    class Mine(Five):
        pass

    Mine.mistake = mistake
    a, b = Mine(2.0, label="a"), Mine(-3.0, label="b")
    c = a * b
    c.label = "c"
    d = a * c
    d.label = "d"
    return a, b, d


def test_an_assignment_where_a_sum_belongs_is_seen_in_the_steps() -> None:
    a, b, d = squared("=")
    last = steps(d)[-1]
    assert last.contributions[0].sentence == (
        "grad of a = grad of c × local derivative = 2 × (-3) = -6, and its former -6 is lost: "
        "the _backward of c has = instead of +="
    )
    assert (last.contributions[0].before, last.contributions[0].after) == (-6.0, -6.0)
    assert last.contributions[1].sentence == "grad of b = grad of c × local derivative = 2 × 2 = 4"
    found = explain(a, d)
    assert found.gradient == -6.0
    assert found.reasons == ("The _backward of c has = instead of +=: the former -6 of a is lost.",)
    d.backward()
    assert (a.grad, b.grad) == (-6.0, 4.0)  # as its own backward() has it
    assert explain(*squared("")[::2]).reasons == ()
    assert explain(*squared("")[::2]).gradient == -12.0


def test_what_is_no_product_is_told_as_it_is() -> None:
    Four.mistake = "affine"
    try:
        o, v = neuron_of(Four)
        step = steps(o)[6]
        found = explain(v["n"], o)
    finally:
        Four.mistake = ""
    t2 = math.tanh(0.8813735870195432) ** 2
    (move,) = step.contributions
    assert move.after == pytest.approx(1 - t2)
    assert math.isnan(move.partial)
    assert step.sentence == "the _backward of o changes the grad of n from 0 to 0.5"
    reason = "The _backward of o adds to n something else than gradient × local derivative."
    assert reason in found.reasons


def test_a_closure_that_raises_is_named_and_everything_is_put_back() -> None:
    Four.mistake = "raises"
    try:
        o, v = neuron_of(Four)
        before = [(thing.grad, thing.data) for thing in everything(o)]
        step, found, page = steps(o)[6], explain(v["x1"], o), steps(o).page()
        o.grad = 1.0
        drawn = rows(draw(o).svg)
        o.grad = 0.0
        assert [(thing.grad, thing.data) for thing in everything(o)] == before
    finally:
        Four.mistake = ""
    said = "the _backward of o raises NameError: name 'tt' is not defined"
    assert step.sentence == said
    assert step.contributions == ()
    assert found.reasons == (f"T{said[1:]}.",)
    assert found.verdict == "zero"
    assert said.replace("'", "\\u0027") in page or said in page
    assert (drawn["o"]["grad"], drawn["n"]["grad"]) == ("1", "not computed")


def test_a_closure_that_changes_data_does_so_to_nobody() -> None:
    Four.mistake = "data"
    try:
        o, v = neuron_of(Four)
        look(o, v["w1"])
        assert v["n"].data == pytest.approx(0.8813735870195432)
        assert steps(o).gradients[-2] == pytest.approx(0.5)
    finally:
        Four.mistake = ""


def test_where_no_closure_was_set_the_gradient_stops_and_every_view_says_so() -> None:
    Four.mistake = "none"
    try:
        o, v = neuron_of(Four)
    finally:
        Four.mistake = ""
    o.grad = 1.0
    svg = draw(o).svg
    assert "dashed: it has no _backward, and the gradient stops there" in svg
    assert svg.count('class="interior stops') == 1
    assert rows(svg)["n"]["grad"] == "not computed"
    assert 'style="rounded,dashed"' in draw(o).to_dot()
    assert tree(o).splitlines()[0] == "o = tanh  data 0.7071  grad 1  no _backward"
    assert tree(o).count("no _backward") == 1
    assert steps(o)[6].sentence == "o has no _backward: its gradient stops here"
    found = explain(v["x1"], o)
    assert found.verdict == "zero"
    assert found.reasons == ("o passes nothing on to n: it has no _backward, and the gradient stops there.",)
    dead = Four(-2.0, label="x")
    dead._prev, dead._op, dead._backward = {v["b"]}, "ReLU", lambda: setattr(v["b"], "grad", v["b"].grad + 0.0)
    assert explain(v["b"], dead).reasons == ("x passes nothing on to b: its _backward adds 0.",)


def test_a_part_that_the_closure_reaches_and_the_graph_does_not() -> None:
    a, b = Four(2.0, label="a"), Four(3.0, label="b")
    c = a * b
    c._prev = {a}  # the mistake: other was not given
    assert steps(c)[-1].sentence == "grad of a = grad of f(a) × local derivative = 1 × 3 = 3"
    assert (a.grad, b.grad) == (0.0, 0.0)


# -- forms ------------------------------------------------------------------------------------------------------------


def test_x_plus_x_has_two_edges_though_a_set_holds_one() -> None:
    x = Five(3.0, label="x")
    for root, partial in ((x + x, 2.0), (x * x, 6.0)):
        assert len(read(draw(root).svg).edges) == 2
        (move,) = steps(root)[-1].contributions
        assert (move.partial, move.after) == (partial, partial)
    assert steps(x + x)[0].sentence == "x + x = 3 + 3 = 6"
    assert len(read(draw(Two(5.0, (x,), "+")).svg).edges) == 1  # that is no 3 + 3


def test_parts_in_every_way() -> None:
    leaves = [Two(2.0, label="a"), Two(3.0, label="b")]
    for name in ("_prev", "_children", "prev", "parents", "_parents", "children", "inputs", "src"):
        for parts in (tuple(leaves), leaves, set(leaves), frozenset(leaves), dict.fromkeys(leaves).keys()):
            root = Bare(data=5.0, op="+", **{name: parts})
            assert tree(root).splitlines() == [
                "+  data 5",
                "├─ a  data 2",
                "└─ b  data 3",
            ]
    assert repr(draw(Bare(data=5.0, _prev=None))) == "Drawing(1 value in 1 box)"
    assert repr(draw(Bare(data=5.0, _prev=(leaves[0], None)))) == "Drawing(2 values in 2 boxes)"


def test_numbers_among_the_parts_are_leaves() -> None:
    x = Two(2.0, label="x")
    root = Bare(data=8.0, grad=1, _prev=(x, 3.0, 3.0), _op="fma", label="y")
    assert tree(root).splitlines()[:4] == [
        "y = fma  data 8  grad 1",
        "├─ x  data 2  grad not computed",
        "├─ 3  data 3  grad not computed",
        "└─ 3  data 3  grad not computed",
    ]
    assert steps(root)[0].sentence == "y = fma(x, 3, 3) = fma(2, 3, 3) = 8"


# -- what nobody has named --------------------------------------------------------------------------------------------


def test_a_number_without_a_label_goes_by_itself_and_ends_no_path() -> None:
    x = Five(3.0, label="x")
    y = (x * x) * 30 + x * Five(-100.0)
    y.label = "y"
    y.backward()
    drawn = rows(draw(y).svg)
    assert {"30", "-100", "(x*x)*30", "x*(-100)"} <= set(drawn)
    assert drawn["30"] == {"data": "30", "grad": "9"}
    assert on_path(draw(y).svg) == {"x", "x*(-100)", "y"}, "there is nothing to learn at a constant"
    nameless = Five(2.0) * Five(3.0)
    nameless.backward()
    assert on_path(draw(nameless).svg) == {"2", "2*3"}, "where all are without a label"


def test_no_path_is_marked_over_what_was_not_computed() -> None:
    """A walk that begins at the leaves: only the last step had something to pass on."""
    y = Four(3.0, label="x").tanh().tanh().tanh()
    y.label, y.grad = "y", 1.0
    assert PATH not in draw(y).svg
    y._backward()
    assert PATH not in draw(y).svg
    for part in everything(y):
        part._backward()
    assert PATH in draw(y).svg


class Unit:
    """A neuron of somebody's own."""

    def __init__(self, nin: int, rng: random.Random) -> None:
        self.w = [Five(rng.uniform(-1, 1)) for _ in range(nin)]
        self.b = Five(rng.uniform(-1, 1))

    def __call__(self, xs: Any) -> Any:
        total = self.b
        for w, x in zip(self.w, xs, strict=True):
            total = total + w * x
        return total.tanh()

    def parameters(self) -> list[Any]:
        return [*self.w, self.b]


class Net:
    """Units in layers, of somebody's own."""

    def __init__(self, *sizes: int) -> None:
        rng = random.Random(1)
        self.layers = [[Unit(nin, rng) for _ in range(nout)] for nin, nout in pairwise(sizes)]

    def __call__(self, xs: Any) -> Any:
        for layer in self.layers:
            xs = [unit(xs) for unit in layer]
        return xs[0]

    def parameters(self) -> list[Any]:
        return [p for layer in self.layers for unit in layer for p in unit.parameters()]


def test_a_network_of_ones_own_is_folded_by_layer_and_neuron(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is found in the names of the notebook, or of the program that runs."""
    net = Net(3, 4, 4, 1)
    monkeypatch.setattr(sys.modules["__main__"], "net", net, raising=False)
    y = net([2.0, 3.0, -1.0])
    y.label = "y"
    y.backward()
    shown = set(texts(draw(y).svg))
    assert {f"layers.{layer}.{i}" for layer in (0, 1) for i in range(4)} | {"layers.2.0", "2", "3", "-1"} <= shown
    assert not any(text.startswith("values ") for text in shown), "nothing is cut by the order alone"
    monkeypatch.delattr(sys.modules["__main__"], "net")
    assert "layers.0" not in draw(y).svg
    alone = net.layers[0][0]
    monkeypatch.setattr(sys.modules["__main__"], "unit", alone, raising=False)
    assert {"w.0", "w.1", "w.2", "b", "2", "3", "-1"} <= set(rows(draw(alone([2.0, 3.0, -1.0])).svg))


def test_numbers_of_every_kind() -> None:
    for number in (True, 2, decimal.Decimal(2), 2.5):
        assert steps(Bare(data=number, _prev=())).data == [float(number)]


def test_arrays_without_dimensions() -> None:
    np = pytest.importorskip("numpy")
    for number in (np.float64(2.0), np.float32(2.0), np.int64(2), np.array(2.0)):
        x = Four(number, label="x")
        y = x * x
        assert steps(y).data == [2.0, 4.0]
        assert steps(y).gradients == [4.0, 1.0]
        assert type(x.grad) is float


def test_values_and_foreign_numbers_in_one_graph() -> None:
    x = Value(2.0, "x")
    y = Bare(data=6.0, grad=0.0, _prev=(x * 3,), _op="id", label="y")
    y._backward = lambda: setattr(y._prev[0], "grad", y._prev[0].grad + y.grad)
    assert steps(y).gradients[0] == 3.0
    assert explain(x, y).gradient == 3.0
    assert x.grad == 0.0


def test_explain_of_what_is_not_under_the_result() -> None:
    o, _ = neuron_of(Five)
    other = Five(0.0, label="other")
    assert explain(other, o).verdict == "unused"
    assert "o does not depend on other" in explain(other, o).reasons[0]
    assert explain(Value(0.0, "value"), o).verdict == "unused"
    assert explain(o, o).gradient == 1.0
    assert explain(o).name == "w2"  # the strangest: 0
    zero = Five(0.0, label="zero")
    assert explain(zero, zero * Five(3.0)).gradient == 3.0


def test_inside_of_modes() -> None:
    o, v = neuron_of(Five)
    shown = look(o, v["b"])
    with no_grad():
        assert look(o, v["b"]) == shown
    with wengert.strict(), wengert.detect_anomaly():
        assert look(o, v["b"]) == shown
        look(Two(math.nan, (Two(math.inf), Two(-math.inf)), "+"), Two(1.0))


@pytest.mark.slow
def test_a_graph_of_20000_is_no_deeper_than_others() -> None:
    """Twenty times as deep as Python's recursion goes."""
    x = Four(1.0, label="x")
    y = x
    for _ in range(5_000):
        y = y * 0.5 + 1.0
    assert "folded" in repr(draw(y))
    stepped = steps(y)
    assert len(stepped.graph) == 20_001
    assert stepped.gradients[0] == pytest.approx(0.5**5_000, abs=1e-300)
    assert len(tree(y).splitlines()) == 41


# -- what cannot be seen ----------------------------------------------------------------------------------------------


class Raising:
    """Nothing can be read off it."""

    data = 1.0

    @property
    def _prev(self) -> Any:
        raise ZeroDivisionError("a property of mine")


class Unprintable:
    """Not even its name."""

    def __init__(self, data: Any) -> None:
        self.data = data

    def __repr__(self) -> str:
        raise RuntimeError("not to be printed")


def circle() -> Any:
    x = Two(1.0, label="x")
    y = Two(2.0, (x,), "+", "y")
    x._prev = {y}
    return y


@pytest.mark.parametrize(
    ("root", "message"),
    [
        (Two("3.0", label="a"), r"^data of the Two a is str '3.0': expected one number$"),
        (Two(None, (Two(1.0),)), r"^only the graph of a Value|^steps\(root\) takes|^explain\(x, root\) takes"),
        (Two([1.0]), r"^data of the Two is list \[1.0\]: expected one number$"),
        (Two(1j), r"^data of the Two is complex 1j: expected one number$"),
        (Two(Two(1.0)), r"^data of the Two is Two <.*: expected one number$"),
        (Bare(data=1.0, grad="x"), r"^grad of the SimpleNamespace \(1.0\) is str 'x': expected one number$"),
        (Bare(data=1.0, _prev=3), r"^_prev of the SimpleNamespace \(1.0\) is int 3: expected its operands, in a"),
        (Bare(data=1.0, _prev="ab"), r"^_prev of .* is str 'ab': expected its operands, in a tuple or set$"),
        (Bare(data=1.0, _prev=("a",)), r"^_prev of .* holds str 'a': expected objects with an attribute"),
        (Bare(data=1.0, _prev=(One,)), r"^_prev of .* holds type <class .*One'>: expected objects with an attribute"),
        (Raising(), r"^_prev of a Raising cannot be read: ZeroDivisionError: a property of mine$"),
        (Unprintable(Unprintable(1)), r"^data of the Unprintable is Unprintable: expected one number$"),
        (circle(), r"^the Two [xy] \([12].0\) depends on itself: a computation has no cycles$"),
    ],
    ids=lambda x: "",
)
def test_what_cannot_be_seen_is_named(root: Any, message: str) -> None:
    for view in (draw, draw_dot, tree, steps, explain, lambda root: explain(root, root)):
        with pytest.raises(OperandError, match=message):
            view(root)


def test_arrays_are_told_as_before() -> None:
    np = pytest.importorskip("numpy")
    with pytest.raises(OperandError, match="not that of a ndarray; for other classes: expected objects"):
        draw(np.array([1.0, 2.0]))
    with pytest.raises(OperandError, match=r"data of the Two is ndarray array\(\[1., 2.\]\): expected one number"):
        tree(Two(np.array([1.0, 2.0])))


def test_hostile_words() -> None:
    words = "<script>alert(1)</script>\n@0 #1 \u202e ${x} %s" * 3
    x = Bare(data=1.0, label=words, _prev=(), grad=0.0)
    y = Bare(data=2.0, label=words, _op=words, _prev=(x, x), grad=0.0)
    y._backward = lambda: None
    for view in (draw(y).svg, draw(y, rankdir="TB").svg, steps(y).page(), explain(x, y).svg()):
        assert "<script>alert" not in view
        assert "\u202e" not in view
    assert steps(y)[0].sentence == "{0} = f({0}, {0}) = f(1, 1) = 2".format("<script>alert(1)</scrip…")
    assert faults(draw(y).svg) == []


def test_other_kinds_of_names() -> None:
    class Plus:
        pass

    x = Bare(data=1.0, label=7)
    for op, symbol in ((Plus, "Plus"), (Plus(), "Plus"), (math.tanh, "tanh"), (None, "by hand"), ("", "by hand")):
        assert tree(Bare(data=1.0, _prev=(x,), op=op)).startswith(f"{symbol}  data 1")
    assert "7  data 1" in tree(Bare(data=1.0, _prev=(x,), op="+"))

    class Method:
        data, _prev = 1.0, ()

        def label(self) -> str:
            return "none"

    assert tree(Method()).startswith("leaf  data 1")


def test_drawings_in_two_runs_are_the_same() -> None:
    """A set forgets the order: that of the closure, of labels and of numbers is taken instead."""
    drawn = {draw(neuron_of(kind)[0]).svg for kind in (Two, Two, Two) for _ in range(10)}
    assert len(drawn) == 1
    x, y = Four(2.0, label="y"), Four(3.0, label="x")
    assert steps(x * y)[0].sentence == "y*x = 2 × 3 = 6"
    assert copy.copy(x).label == "y"


def test_a_drawing_that_is_printed_says_how_to_see_it() -> None:
    assert str(draw(Value(2.0))) == "Drawing(1 value in 1 box): .save('graph.svg') writes it to a file"
