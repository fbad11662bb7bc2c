"""Step 8: a Neuron, a Layer and an MLP that are right have full marks in every form; each slip is told by name."""

from __future__ import annotations

import pytest

from tests.handmade import ENGINE, RELU, TANH, WENGERT, patched, run, tried
from wengert_course.checks import networks
from wengert_course.checks.network_trials import TRIALS
from wengert_course.checks.report import LikelySlip, Row

MICROGRAD = "import random\nfrom micrograd.engine import Value\n"  # whose Value has no tanh


def graded(text: str, seed: int = 1) -> tuple[list[Row], list[LikelySlip], list[str]]:
    kit = run(text, seed)
    verdict = networks.judge(tried(TRIALS, kit), seed)
    return verdict.rows, verdict.findings, [one.says for one in verdict.later]


def told(findings: list[LikelySlip]) -> list[str]:
    return [finding.slip for finding in findings if not finding.note]


# ------------------------------------------------------------------------------------- right ones

W = "self.w = [Value(random.uniform(-1, 1)) for _ in range(nin)]"
B = "self.b = Value(random.uniform(-1, 1))"
ACT = "        act = sum((wi * xi for wi, xi in zip(self.w, x)), self.b)\n        return act.tanh()\n"
CHAIN = "            x = layer(x)\n"
EACH = "        outs = [n(x) for n in self.neurons]\n        return outs[0] if len(outs) == 1 else outs\n"
OWN = "return self.w + [self.b]"
SIZES = "Layer(sz[i], sz[i + 1]) for i in range(len(nouts))"
ALL = "return [p for layer in self.layers for p in layer.parameters()]"
OF_NEURONS = "return [p for n in self.neurons for p in n.parameters()]"
PRODUCTS = "wi * xi for wi, xi in zip(self.w, x)"
BETWEEN = "            x = [v.tanh() for v in x] if isinstance(x, list) else x.tanh()\n"
RELUS = TANH.replace("act.tanh()", "act.relu()")

FORMS = {
    "tanh": TANH,
    "ReLU, linear end": RELU,
    "ReLU, also the last": RELUS,
    "bias zero": patched(TANH, (B, "self.b = Value(0.0)")),
    "bias first": patched(TANH, ("        " + W, f"        {B}\n        {W}"), (f"\n        {B}\n\n", "\n\n")),
    "sum from zero": patched(TANH, (ACT, f"        return (sum({PRODUCTS}) + self.b).tanh()\n")),
    "sum from a Value": patched(TANH, (ACT, f"        return (sum(({PRODUCTS}), Value(0.0)) + self.b).tanh()\n")),
    "a list always": patched(TANH, ("return outs[0] if len(outs) == 1 else outs", "return outs")),
    "a generator of parameters": patched(TANH, (ALL, ALL.replace("return", "yield from"))),
    "parameters kept, too": patched(TANH, (B, B + "\n        self.all = [*self.w, self.b]"), (OWN, "return self.all")),
    "a bias among the weights": patched(
        TANH,
        ("range(nin)]", "range(nin + 1)]"),
        ("\n        " + B, ""),
        (ACT, f"        return sum({PRODUCTS.replace('x)', '[*x, 1.0])')}).tanh()\n"),
        (OWN, "return self.w"),
    ),
    "tanh between the layers": patched(TANH, ("return act.tanh()", "return act"), (CHAIN, CHAIN + BETWEEN)),
    "an activation that few use": RELUS.replace("act.relu()", "act.relu() + -0.1 * (-act).relu()"),
    "normal numbers": patched(TANH, ("random.uniform(-1, 1)) for", "random.gauss(0, 1) * nin**-0.5) for")),
    "layers in a dict": patched(
        TANH,
        (f"self.layers = [{SIZES}]", "self.layers = {i: Layer(sz[i], sz[i + 1]) for i in range(len(nouts))}"),
        ("for layer in self.layers:\n", "for layer in self.layers.values():\n"),
        (ALL, ALL.replace("self.layers", "self.layers.values()")),
    ),
}
CASES = [(of, form) for of in (ENGINE, WENGERT) for form in FORMS]
CASES += [(MICROGRAD, form) for form in FORMS if "tanh" not in FORMS[form]]


@pytest.mark.parametrize(("of", "form"), CASES, ids=[form for _, form in CASES])
def test_a_right_network_has_full_marks_and_not_even_a_note(of: str, form: str) -> None:
    for seed in (1, 2, 3):
        rows, findings, later = graded(of + FORMS[form], seed)
        assert findings == []
        assert later == []
        assert [row.state for row in rows] == ["ok"] * 9


def test_the_networks_of_wengert_and_of_micrograd_are_right() -> None:
    for text in (WENGERT + "from wengert.nn import MLP, Layer, Neuron\n", MICROGRAD + "from micrograd.nn import *\n"):
        rows, findings, _ = graded(text)
        assert findings == []
        assert [row.state for row in rows] == ["ok"] * 9


# ------------------------------------------------------------------------------------- slips

LOOP = "        for wi, xi in zip(self.w, x):\n"
NO_BIAS = (", self.b)\n", ", Value(0.0))\n")

SLIPS = {
    "repeated neuron": [(("[Neuron(nin) for _ in range(nout)]", "[Neuron(nin)] * nout"),)],
    "bias left out": [(NO_BIAS,)],
    "bias not a parameter": [((OWN, "return self.w"),)],
    "no activation": [(("return act.tanh()", "return act"),)],
    "activation of each product": [
        (("wi * xi for", "(wi * xi).tanh() for"), ("return act.tanh()", "return act")),
        (("wi * xi for", "(wi * xi).tanh() for"),),
    ],
    "bias after the activation": [((ACT, f"        return sum(({PRODUCTS}), Value(0.0)).tanh() + self.b\n"),)],
    "one product only": [
        ((ACT, f"{LOOP}            act = wi * xi\n        return (act + self.b).tanh()\n"),),
        ((ACT, f"        act = self.b\n{LOOP}            act = act + wi * xi\n            return act.tanh()\n"),),
    ],
    "bias in each product": [(("wi * xi for", "wi * xi + self.b for"), NO_BIAS)],
    "sum for product": [(("wi * xi for", "wi + xi for"),)],
    "bias as a factor": [((ACT, f"        return (sum(({PRODUCTS}), Value(0.0)) * self.b).tanh()\n"),)],
    "inputs to each layer": [((CHAIN, "            out = layer(x)\n"), ("        return x\n", "        return out\n"))],
    "one layer only": [((CHAIN + "        return x\n", CHAIN + "            return x\n"),)],
    "layer's output lost": [((CHAIN, "            layer(x)\n"),)],
    "one neuron only": [
        ((EACH, "        for n in self.neurons:\n            return n(x)\n"),),
        ((EACH, "        for n in self.neurons:\n            out = n(x)\n        return out\n"),),
    ],
    "number of outputs": [(("return outs[0] if len(outs) == 1 else outs", "return outs[:2]"),)],
    "no Value returned": [(("return act.tanh()", "return [act.tanh()]"),)],
    "plain weights": [((W, "self.w = [random.uniform(-1, 1) for _ in range(nin)]"),)],
    "no bias": [((B, "self.b = random.uniform(-1, 1)"), (", self.b)", ", Value(self.b))"))],
    "shared bias": [(("class Neuron:", "class Neuron:\n    b = Value(0.0)"), ("\n        " + B, ""))],
    "plain result": [(("return act.tanh()", "return math.tanh(act.data)"),)],
    "graph cut": [
        (("return act.tanh()", "return Value(math.tanh(act.data))"),),
        (("wi * xi for", "wi.data * xi for"),),
        ((", self.b)\n", ", Value(self.b.data))\n"),),
        ((CHAIN, CHAIN + "            x = [Value(v.data) for v in x] if isinstance(x, list) else x\n"),),
    ],
    "parameters made anew": [((OWN, "return [Value(p.data) for p in self.w + [self.b]]"),)],
    "nested parameters": [
        ((OWN, "return [self.w, [self.b]]"),),
        ((OF_NEURONS, "return [n.parameters() for n in self.neurons]"),),
    ],
    "plain parameters": [((OWN, "return [p.data for p in self.w + [self.b]]"),)],
    "parameters repeated": [((ALL, ALL.replace("return", "return 2 *")),)],
    "parameters missing": [
        ((ALL, "return self.layers[-1].parameters()"),),
        ((OWN, "return [self.b]"),),
        ((OF_NEURONS, "for n in self.neurons:\n            return n.parameters()"),),
    ],
    "nothing returned": [((OWN, "self.w + [self.b]"),), (("return act.tanh()", "act.tanh()"),)],
    "equal weights": [((W, "self.w = [Value(0.5) for _ in range(nin)]"),)],
    "neurons alike": [(("        " + W, "        random.seed(1)\n        " + W),)],
    "number of weights": [(("range(nin)]", "range(nin - 1)]"),), ((SIZES, "Layer(nin, n) for n in nouts"),)],
    "number of neurons": [((SIZES, SIZES.replace("range(", "range(1, ")),)],
    "error": [(("zip(self.w, x)", "zip(self.w, y)"),)],
}
"""The slip -> networks that have it, and nothing else, each as the changes that make it of the right one."""

SLIPPED = [(slip, i) for slip, texts in SLIPS.items() for i in range(len(texts))]


@pytest.mark.parametrize("of", [ENGINE, WENGERT], ids=["by hand", "wengert"])
@pytest.mark.parametrize(("slip", "i"), SLIPPED, ids=[f"{slip} {i}" for slip, i in SLIPPED])
def test_a_slip_is_told_by_name(slip: str, i: int, of: str) -> None:
    for seed in (1, 2):
        rows, findings, _ = graded(of + patched(TANH, *SLIPS[slip][i]), seed)
        assert told(findings) == [slip]
        assert findings[0].write or slip == "error"
        assert "wrong" in {row.state for row in rows}


@pytest.mark.parametrize("slip", ["bias left out", "one product only", "sum for product", "inputs to each layer"])
def test_a_slip_among_relus_is_told_too(slip: str) -> None:
    text = patched(TANH, *SLIPS[slip][0]).replace(".tanh()", ".relu()")
    for seed in range(5):
        assert told(graded(ENGINE + text, seed)[1]) == [slip]


def test_a_finding_says_where_what_and_which_line_to_write() -> None:
    finding = graded(ENGINE + patched(TANH, NO_BIAS))[1][0]
    assert finding.says == "the bias is left out of the sum"
    assert finding.what == "Neuron(3)(x)"
    assert finding.where.startswith("x = [")
    assert finding.expected != pytest.approx(finding.got)
    assert finding.write == ("act = sum((wi * xi for wi, xi in zip(self.w, x)), self.b)",)
    assert finding.rows == ("Neuron(3)", "Layer(3, 4)", "Layer(3, 1)", "MLP(3, [4, 4, 1])", "MLP(2, [3, 2])")


def test_where_no_gradient_arrives_is_said() -> None:
    said = [graded(ENGINE + patched(TANH, *changes))[1][0].says for changes in SLIPS["graph cut"]]
    places = ["the parameters", "the weights", "the biases", "the layers before the last"]
    assert [says.partition(" reaches ")[2].partition(":")[0] for says in said] == places


def test_how_many_parameters_there_should_be_is_said() -> None:
    found = graded(ENGINE + patched(TANH, *SLIPS["parameters missing"][0]))[1][0]
    assert (found.what, found.expected, found.got) == ("their number", 41.0, 5.0)


def test_an_engine_that_is_wrong_is_sent_back_to_its_own_check() -> None:
    wrong = patched(ENGINE, ("(1 - t**2) * out.grad", "(1 - t) * out.grad"))
    assert told(graded(wrong + TANH)[1]) == ["gradients"]


def test_what_no_slip_explains_is_said_to_be_so() -> None:
    assert told(graded(ENGINE + patched(TANH, ("act.tanh()", "(act * act).tanh()")))[1]) == ["unknown"]


@pytest.mark.parametrize(
    ("old", "new", "note"),
    [
        ("random.uniform(-1, 1)) for", "random.random()) for", "one-sided weights"),
        ("Value(random.uniform(-1, 1)) for", "Value(random.uniform(-1, 1)) * 0.5 for", "parameter computed"),
    ],
)
def test_what_is_told_and_does_not_count(old: str, new: str, note: str) -> None:
    rows, findings, _ = graded(ENGINE + patched(TANH, (old, new)))
    assert [(finding.slip, finding.note) for finding in findings] == [(note, True)]
    assert {row.state for row in rows} == {"ok"}


# ------------------------------------------------------------------------------------- not yet

NEURON, LAYER = TANH.index("class Neuron"), TANH.index("class Layer")
CALL = TANH[TANH.index("    def __call__") : TANH.index("    def parameters")]
HALF_DONE = {
    "an engine alone": ("", ["a class Neuron", "a class Layer", "a class MLP"], 0),
    "a neuron that holds": (TANH[NEURON : TANH.index(CALL)], ["Neuron.__call__", "Neuron.parameters"], 0),
    "a neuron without parameters()": (TANH[NEURON : TANH.index("    def parameters")], ["Neuron.parameters"], 2),
    "a neuron": (TANH[NEURON:LAYER], ["a class Layer", "a class MLP"], 3),
    "a neuron and a layer": (TANH[NEURON : TANH.index("class MLP")], ["a class MLP"], 6),
}


@pytest.mark.parametrize("case", HALF_DONE)
def test_what_is_half_done_is_not_wrong(case: str) -> None:
    text, asked, right = HALF_DONE[case]
    rows, findings, later = graded(ENGINE + text)
    assert findings == []
    assert [says.partition(",")[0].partition("(")[0] for says in later][: len(asked)] == asked
    assert {row.state for row in rows} <= {"ok", "not yet"}
    assert sum(row.state == "ok" for row in rows) == right


def test_what_was_not_tried_is_not_judged() -> None:
    assert {row.state for row in networks.judge({}, 0).rows} == {"not tried"}
