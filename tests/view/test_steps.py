"""The steps of a computation as data, and its page as text; what the page does stands in test_browser*.py."""

from __future__ import annotations

import base64
import copy
import hashlib
import json
import math
import random
import re
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import pytest

import wengert
from tests.view.browsing import parts
from wengert import Value, ops, steps
from wengert.errors import ArgumentError, OperandError
from wengert.view import javascript, naming

pytestmark = pytest.mark.once  # what is drawn is a graph, whichever engine made it


def tutorial() -> tuple[Value, dict[str, Value]]:
    """L = (a*b + c) * f, as the tutorial has it: grad of e is -2."""
    leaves = {name: Value(x, name) for name, x in {"a": 2.0, "b": -3.0, "c": 10.0, "f": -2.0}.items()}
    e = leaves["a"] * leaves["b"]
    e.label = "e"
    d = e + leaves["c"]
    d.label = "d"
    L = d * leaves["f"]
    L.label = "L"
    return L, leaves


def random_graph(seed: int, size: int) -> Value:
    """Of + - * / ** tanh and sums, with shared nodes and constants."""
    chance = random.Random(seed)
    nodes: list[Any] = [Value(chance.uniform(0.5, 2.0)) for _ in range(4)]
    while len(nodes) < size:
        x, y = chance.choices(nodes[-8:], k=2)
        made = [
            x + y,
            x - y,
            x * y,
            x / (y * y + 1.0),
            x.tanh(),
            2.0 - x,
            x * 0.5,
            wengert.sum([x, y, x]),
            (x * x) ** y,
        ]
        nodes.append(chance.choice(made).tanh() + 0.1)
    return wengert.sum(nodes)


# -- what the steps say -----------------------------------------------------------------------------------------------


def test_the_sentences_of_the_tutorials_example() -> None:
    L, _ = tutorial()
    assert [str(step) for step in steps(L)] == [
        "0 forward: e = a*b = 2 × (-3) = -6",
        "1 forward: d = e + c = -6 + 10 = 4",
        "2 forward: L = d*f = 4 × (-2) = -8",
        "3 backward: grad of L = 1, the derivative of the result with respect to itself",
        "4 backward: grad of d = grad of L × local derivative = 1 × (-2) = -2\n"
        "            grad of f = grad of L × local derivative = 1 × 4 = 4",
        "5 backward: grad of e = grad of d × local derivative = -2 × 1 = -2\n"
        "            grad of c = grad of d × local derivative = -2 × 1 = -2",
        "6 backward: grad of a = grad of e × local derivative = -2 × (-3) = 6\n"
        "            grad of b = grad of e × local derivative = -2 × 2 = -4",
    ]


def test_a_step_is_data_and_cannot_be_changed() -> None:
    L, _ = tutorial()
    step = steps(L)[5]
    assert (step.number, step.phase, step.name, step.symbol, step.place) == (5, "backward", "d", "+", 5)
    assert (step.operands, step.value, step.cotangent) == ((("e", -6.0), ("c", 10.0)), 4.0, -2.0)
    e, c = step.contributions
    assert (e.name, e.operand, e.partial, e.product, e.before, e.after) == ("e", 4, 1.0, -2.0, 0.0, -2.0)
    assert c.sentence == "grad of c = grad of d × local derivative = -2 × 1 = -2"
    assert step.sentence == "; ".join([e.sentence, c.sentence])
    with pytest.raises(FrozenInstanceError):
        step.value = 0.0  # type: ignore[misc]
    assert steps(L)[0].cotangent is None
    assert steps(L)[0].contributions == ()


def test_it_is_a_sequence() -> None:
    L, _ = tutorial()
    sequence = steps(L)
    assert len(sequence) == 7
    assert list(sequence) == [sequence[i] for i in range(7)]
    assert sequence[-1] == sequence[6]
    assert sequence[3:5] == [sequence[3], sequence[4]]
    assert sequence[0] in sequence
    with pytest.raises(IndexError):
        sequence[7]
    assert repr(sequence) == "Steps(L: 7 steps, 7 nodes)"


def test_contributions_add_up_where_a_value_is_used_twice() -> None:
    a = Value(3.0, "a")
    last = steps(a * a + a)[-1]
    assert [(c.before, c.product, c.after) for c in last.contributions] == [(1.0, 3.0, 4.0), (4.0, 3.0, 7.0)]
    assert last.contributions[1].sentence == (
        "grad of a += grad of (a*a) × local derivative = 1 × 3 = 3, which makes 4 + 3 = 7"
    )


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", range(20))
def test_the_numbers_are_those_of_backward_to_the_last_bit(seed: int) -> None:
    root = random_graph(seed, 60)
    sequence = steps(root)
    every = list(sequence)  # before backward, and it must leave no trace
    assert all(value.grad == 0.0 for value in sequence.graph.values)
    root.backward()
    wanted = [value.grad for value in sequence.graph.values]
    assert [g.hex() for g in sequence.gradients] == [g.hex() for g in wanted]
    after = {}
    for step in every:
        assert step.value == sequence.graph.values[step.place].data
        if step.phase == "backward" and step.contributions:
            assert step.cotangent == wanted[step.place]
        for c in step.contributions:
            assert c.after == c.before + c.product
            assert c.before == after.get(c.operand, 0.0)
            after[c.operand] = c.after
    assert {place: g.hex() for place, g in after.items()} == {place: wanted[place].hex() for place in after}


def test_gradients_that_were_there_are_left_alone() -> None:
    L, leaves = tutorial()
    leaves["a"].grad = 5.0
    assert steps(L).gradients[0] == 6.0
    assert leaves["a"].grad == 5.0


def test_the_recorded_derivative_counts_and_a_change_is_noticed() -> None:
    L, leaves = tutorial()
    assert steps(L).stale == ()
    leaves["b"].data = 100.0
    sequence = steps(L)
    assert sequence.stale == ("e",)
    assert sequence.gradients[0] == 6.0
    assert "Data was changed after e was computed" in sequence.page()


def test_a_leaf_alone_and_a_node_without_values() -> None:
    (only,) = steps(Value(3.0, "x"))
    assert only.sentence == "grad of x = 1, the derivative of the result with respect to itself"
    assert "grad of x = 1" not in steps(Value(3.0, "x")).page()  # the page makes its own sentences


def test_partials_are_those_that_were_recorded() -> None:
    x, y = Value(3.0), Value(4.0)
    root = wengert.dot([x, 2.0], [y, x], 1.0) + (5.0 - x) + y**2.0 + x.tanh()
    graph = wengert.Graph(root)
    by_op = {}
    partials = graph.partials
    for place, (op, _, _) in enumerate(graph):
        by_op.setdefault(op.name, list(partials[graph.starts[place] : graph.starts[place + 1]]))
    assert by_op["dot"] == [4.0, 0.0, 3.0, 2.0, 0.0]  # w1, the constant w2, x1, x2, the constant bias
    assert by_op["sub"] == [0.0, -1.0]
    assert by_op["pow"] == [8.0, 0.0]
    assert by_op["tanh"] == [pytest.approx(1.0 - math.tanh(3.0) ** 2)]
    assert by_op["add"] == [1.0, 1.0]
    twin = wengert.Graph(copy.deepcopy(root))
    assert list(twin.partials) == list(partials)


# -- names ------------------------------------------------------------------------------------------------------------


def test_names_are_labels_short_expressions_or_places() -> None:
    x1, w1, b = Value(2.0, "x1"), Value(-3.0, "w1"), Value(1.0)
    total = (x1 * w1 + b) * 2.0
    assert naming.names(wengert.Graph(total)) == ["x1", "w1", "v2", "x1*w1", "x1*w1 + v2", "(x1*w1 + v2)*2"]
    assert naming.names(wengert.Graph(-((x1 + 1.0) ** 2))) == ["x1", "x1 + 1", "(x1 + 1)**2", "-((x1 + 1)**2)"]
    chain = x1
    for _ in range(4):
        chain = chain * 1.5 + 0.25
    assert naming.names(wengert.Graph(chain))[-3:] == ["v6", "v6*1.5", "v6*1.5 + 0.25"]
    many = wengert.sum([x1] * 300)
    assert naming.formulas(wengert.Graph(many))[1][-1] == "sum(x1, x1, x1, … 296 more …, x1)"
    neuron = wengert.dot([w1, w1], [x1, 0.5], b)
    assert naming.formulas(wengert.Graph(neuron))[1][-1] == "w1*x1 + w1*0.5 + v2"


def test_a_label_of_any_kind_becomes_one_short_line() -> None:
    assert naming.clean("x" * 10_000) == "x" * 23 + "…"
    assert naming.clean("a\x00\n\u202e\ud800b") == "a\ufffd\ufffd\ufffd\ufffdb"
    assert naming.clean("Ünï 漢字 😀") == "Ünï 漢字 😀"


def test_numbers_agree_with_pythons_own_four_digits_but_for_halves() -> None:
    chance = random.Random(0)
    for _ in range(2000):
        x = chance.uniform(-1.0, 1.0) * 10.0 ** chance.uniform(-9, 9)
        assert naming.number(x) == (f"{x:.7g}" if 9999.5 <= abs(x) < 9999999.5 else f"{x:.4g}")
    assert [naming.number(x) for x in (2.0625, -0.125, 9999.5, 0.00012345)] == [
        "2.063",
        "-0.125",
        "9999.5",
        "0.0001234",
    ]
    assert [naming.number(x) for x in (123456.789, -9999999.4, 9999999.5)] == ["123456.8", "-9999999", "1e+07"]
    assert [naming.number(x) for x in (0.0, -0.0, math.nan, math.inf, -math.inf)] == ["0", "0", "nan", "inf", "-inf"]


# -- rules ------------------------------------------------------------------------------------------------------------


def test_a_local_derivative_comes_with_its_rule_in_names_and_in_numbers() -> None:
    x, y, n = Value(2.0, "x"), Value(-3.0, "y"), Value(0.8813735870195432, "n")
    told = {
        n.tanh(): ["1 - tanh(n)² = 1 - 0.7071² = 0.5"],
        x * y: ["y = -3", "x = 2"],
        x / (x + y): ["1/(x + y) = 1/(-1) = -1", "-x/(x + y)² = -2/(-1)² = -2"],
        x**3: ["3 × x**(3 - 1) = 3 × 2**(3 - 1) = 12"],
        y.relu(): ["1 if y > 0 else 0 = 1 if -3 > 0 else 0 = 0"],
        wengert.dot([x], [y], n): ["y = -3", "x = 2", "1"],
        wengert.mean([x, y]): ["1/2 = 0.5", "1/2 = 0.5"],
        y.log(): [""],  # nan, which no rule says
    }
    for root, rules in told.items():
        first = next(step for step in steps(root) if step.phase == "backward" and step.contributions)
        assert [move.rule for move in first.contributions] == rules


WITH_RULE = [row for row in ops.TABLE[1 : ops.BUILT_IN] if naming.derivative(row.name, row.arity or 5, 0)]


@pytest.mark.parametrize("row", WITH_RULE, ids=lambda row: row.name)
def test_the_rules_are_those_of_the_table(row: ops.Op) -> None:
    """Each rule, computed as it is written, is the row's own partial derivative."""
    chance, count = random.Random(0), row.arity or 5
    for _ in range(20):
        xs = [chance.uniform(*row.domain[i % len(row.domain)]) for i in range(count)]
        out = row(*xs)
        for slot, partial in enumerate(row.partials_at(out, xs)):
            written = naming.derivative(row.name, count, slot).replace(" × ", "*").replace("²", "**2")
            written = written.replace(", 0.5 on a tie, else", " else").replace(", shared on a tie, else", " else")
            written = re.sub(r"if (\S+) is the greatest", r"if \1 == max(XS)", written)
            written = re.sub(r"if (\S+) is the least", r"if \1 == min(XS)", written)
            text = re.sub(r"[@#](\d+)", lambda mark: f"({[*xs, out][int(mark[1])]!r})", written)  # noqa: B023
            assert eval(text, {**ops.BY_NAME, "XS": xs, "max": max, "min": min}) == pytest.approx(partial, rel=1e-9)


def test_the_rule_of_a_closure_is_told_where_the_closure_goes_by_it() -> None:
    def tanh(x: Value, factor: float) -> Value:
        t = math.tanh(x.data)
        out = Value(t, (x,), "tanh", "t")

        def _backward() -> None:
            x.grad += factor * (1 - t * t) * out.grad

        out._backward = _backward
        return out

    x = Value(0.5, "x")
    assert steps(tanh(x, 1.0))[-1].contributions[0].rule == "1 - tanh(x)² = 1 - 0.4621² = 0.7864"
    assert steps(tanh(x, 2.0))[-1].contributions[0].rule == ""


def test_parameters_go_by_their_names_in_the_model() -> None:
    model = wengert.nn.MLP(2, [2, 1], rng=random.Random(1))
    loss = model([1.0, 2.0])
    first = model.layers[0].neurons[0].w[0]
    assert "layers.0.neurons.0.w.0" in steps(loss).names
    assert wengert.explain(first, loss).name == "layers.0.neurons.0.w.0"
    assert "├─ layers.0.neurons.0.w.0  data" in wengert.tree(loss)
    first.label = "w"
    assert steps(loss).names[0] == "w"


def test_steps_show_themselves_in_a_notebook_as_far_as_a_page_can() -> None:
    x = Value(1.0, "x")
    assert steps(x * x)._repr_html_() == steps(x * x).page()._repr_html_()
    for _ in range(2000):
        x = x * 1.5 + 1.0
    assert steps(x)._repr_html_() is None


# -- the page as text -------------------------------------------------------------------------------------------------


def test_the_page_is_whole_and_its_policy_names_its_own_script_and_style(tmp_path: Path) -> None:
    L, _ = tutorial()
    steps(L).save(tmp_path / "backprop.html")
    page = (tmp_path / "backprop.html").read_text(encoding="utf-8")
    assert page == steps(L).page()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    assert policy[1].startswith("default-src 'none'; ")
    assert "unsafe" not in policy[1]
    style, program, skeleton = parts(page)
    for tag, packed in (("script", program), ("style", style)):
        (plain,) = re.findall(f"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        digests = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (plain, packed)]
        assert f"{tag}-src 'sha256-{digests[0]}' 'sha256-{digests[1]}';" in policy[1]
    whole = page + style + program + skeleton
    assert re.findall(r"https?://[^\s\"']*", whole) == ["http://www.w3.org/2000/svg"]  # a name, not a place
    assert not re.search(r"\b(src|href)\s*=", whole)


def test_only_the_operations_of_the_graph_are_in_the_page() -> None:
    x = Value(0.5, "x")
    plain, special = (parts(steps(y).page())[1] for y in (x * 2.0 + 1.0, wengert.gelu(x)))
    assert "function erfc_" not in plain
    assert "function erfc_" in special
    assert "function erf_" in special  # which erfc calls
    assert "function lgamma_" not in special


def test_what_users_write_reaches_the_page_as_json_alone() -> None:
    label = "</script><script>alert(1)</script>"
    page = steps(Value(1.0, label) * 2.0).page()
    assert label not in page
    assert page.count("<script") == 3
    (data,) = re.findall(r'id="data">(.*?)</script>', page, re.DOTALL)
    assert json.loads(data)["words"]["names"][0] == naming.clean(label)
    assert page.isascii() or not re.search("[\ud800-\udfff]", page)
    steps(Value(1.0, "\ud800") * 2.0).page().encode()


def test_every_row_can_be_written_in_javascript() -> None:
    script = javascript.Script()
    missing = [row.name for row in ops.TABLE[1 : ops.BUILT_IN] if script.rules(row, row.arity or 3) is None]
    assert missing == ["pick", "lt", "le", "gt", "ge", "eq", "ne", "by hand", "compiled"]  # which have no rule
    assert script.rules(ops.BY_NAME["sum"], 257) is None  # too many operands to write out
    called = set(re.findall(r"\b[a-z0-9_]+_\(", script.definitions()))
    helpers = {"bessel_(", "incomplete_gamma_(", "beta_fraction_("}
    assert called == {f"{name}(" for name in script.primitives} | helpers
    assert called == {f"{name}(" for name in re.findall(r"function ([a-z0-9_]+_)\(", script.definitions())}


def test_a_users_rule_that_no_symbol_can_stand_for_is_left_out() -> None:
    rules = {
        "branching": lambda x: x if x > 0.0 else 0.0,
        "rounding": lambda x: float(x),
        "counting": lambda x: {x: 1.0}[x],
        "failing": lambda x: x.no_such_thing,
    }
    script = javascript.Script()
    for name, rule in rules.items():
        row = ops.BY_NAME["tanh"]._replace(name=name, value=rule, partials=lambda out, x: 1.0)
        assert script.rules(row, 1) is None
    few = ops.BY_NAME["mul"]._replace(name="few", partials=lambda out, x, y: (x,))
    assert script.rules(few, 2) is None
    assert script.definitions() == ""


def test_sizes_stay_small() -> None:
    """About 17 kB of it are the program and its style, whatever the graph."""
    model = wengert.nn.MLP(3, [4, 2, 1], activation="tanh", rng=random.Random(1))
    forty = steps((model([Value(0.5, "x0"), Value(-1.0, "x1"), Value(0.25, "x2")]) - 1.0) ** 2)
    assert len(forty.graph) >= 40
    assert len(forty.page()) < 26_000
    large = steps(random_graph(0, 300))
    assert len(large.page()) < 30_000 + 400 * len(large.graph)


# -- bad input --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("root", [None, 1.0, "x", [Value(1.0)], Value])
def test_what_is_no_value_is_refused(root: Any) -> None:
    with pytest.raises(OperandError, match=r"steps\(root\) takes the Value .*, not \w+"):
        steps(root)


def test_a_million_nodes_are_stepped_through_in_python_and_refused_as_a_page(tmp_path: Path) -> None:
    x = Value(1.0, "x")
    for _ in range(50_000):
        x = x * 1.0001 + 0.1
    sequence = steps(x)
    assert len(sequence) == 200_001
    assert sequence[100_000].phase == "backward"
    assert sequence[-1].contributions[0].after == sequence.gradients[0]
    target = tmp_path / "page.html"
    target.write_text("kept")
    with pytest.raises(ArgumentError, match=r"at most 3,000 nodes, this computation has 100,001"):
        sequence.save(target)
    assert target.read_text() == "kept"


def test_edges_that_reach_too_far_are_refused() -> None:
    leaves = [Value(1.0) for _ in range(100)]
    x: Any = Value(0.0)
    for leaf in leaves:
        x = x + leaf
    for _ in range(1000):
        x = x.tanh()
    for leaf in leaves:
        x = x + leaf
    with pytest.raises(ArgumentError, match="columns in all"):
        steps(x).page()
