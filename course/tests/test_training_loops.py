"""Step 9: a training loop that is right has full marks in every form; each slip is told by name, with the line."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.handmade import ENGINE, RELU, TANH, WENGERT, elsewhere, engine, patched, watched
from wengert_course.checks import training_loop
from wengert_course.checks.report import LikelySlip, Row
from wengert_course.checks.steps import Seen

ENGINES = {"by hand": ENGINE, "wengert": WENGERT}

LOOP = """
xs = [[2.0, 3.0, -1.0], [3.0, -1.0, 0.5], [0.5, 1.0, 1.0], [1.0, 1.0, -1.0]]
ys = [1.0, -1.0, -1.0, 1.0]
n = MLP(3, [4, 4, 1])
for k in range(20):
    ypred = [n(x) for x in xs]
    loss = sum((yout - ygt)**2 for ygt, yout in zip(ys, ypred))
    for p in n.parameters():
        p.grad = 0.0
    loss.backward()
    for p in n.parameters():
        p.data += -0.05 * p.grad
    print(k, loss.data)
"""
FORWARD = "    ypred = [n(x) for x in xs]\n    loss = sum((yout - ygt)**2 for ygt, yout in zip(ys, ypred))\n"
ZERO = "    for p in n.parameters():\n        p.grad = 0.0\n"
BACKWARD = "    loss.backward()\n"
UPDATE = "    for p in n.parameters():\n        p.data += -0.05 * p.grad\n"
LAST = "    print(k, loss.data)\n"
MOVE = "p.data += -0.05 * p.grad"


def graded(text: str, path: str = "", seconds: float = 8.0) -> tuple[list[Row], list[LikelySlip], list[str]]:
    every = (*[WENGERT + TANH + loop for loop in RIGHT.values()], *[WENGERT + TANH + slipped(*case) for case in CASES])
    if text in every and engine.compiled:  # all at once, as each needs a process in which it is interpreted
        seen = elsewhere(every)[every.index(text)]
    else:
        seen = watched(text, path, seconds)
    verdict = training_loop.judge(seen, [(path, text.encode())])
    return verdict.rows, verdict.findings, [one.says for one in verdict.later]


def told(findings: list[LikelySlip]) -> list[str]:
    return [finding.slip for finding in findings if not finding.note]


# ------------------------------------------------------------------------------------- right ones

TRAIN = '''
def train(model, xs, ys, steps, learning_rate=0.05):
    """The loop of the others, in a function."""
    for step in range(steps):
        loss = sum(((model(x) - y) ** 2 for x, y in zip(xs, ys)), Value(0.0))
        for p in model.parameters():
            p.grad = 0.0
        loss.backward()
        for p in model.parameters():
            p.data -= learning_rate * p.grad
'''

MOMENTUM = """    for i, p in enumerate(n.parameters()):
        speed[i] = 0.9 * speed[i] - 0.02 * p.grad
        p.data += speed[i]
"""

ADAM = """    for i, p in enumerate(n.parameters()):
        m[i] = 0.9 * m[i] + 0.1 * p.grad
        v[i] = 0.99 * v[i] + 0.01 * p.grad**2
        p.data -= 0.02 * (m[i] / (1 - 0.9 ** (k + 1))) / ((v[i] / (1 - 0.99 ** (k + 1))) ** 0.5 + 1e-8)
"""

STOCHASTIC = """    for x, y in zip(xs, ys):
        loss = (n(x) - y)**2
        for p in n.parameters():
            p.grad = 0.0
        loss.backward()
        for p in n.parameters():
            p.data -= 0.05 * p.grad
"""

OWN = """
class Line:
    def __init__(self):
        self.w, self.b = Value(0.3), Value(0.1)

    def __call__(self, x):
        return self.w * x + self.b

    def learn(self):
        for p in [self.w, self.b]:
            p.data -= 0.01 * p.grad
            p.grad = 0.0

line = Line()
for k in range(20):
    loss = sum(((line(x) - y) ** 2 for x, y in [(1.0, 2.0), (2.0, 3.0), (3.0, 5.0)]), Value(0.0))
    loss.backward()
    line.learn()
"""

LINE = """
w, b = Value(0.3), Value(0.1)
for k in range(20):
    loss = sum(((w * x + b - y) ** 2 for x, y in [(1.0, 2.0), (2.0, 3.0), (3.0, 5.0)]), Value(0.0))
    for p in [w, b]:
        p.grad = 0.0
    loss.backward()
    for p in [w, b]:
        p.data -= 0.01 * p.grad
"""

STEPS = """
class SGD:
    def __init__(self, parameters, lr):
        self.parts, self.lr = parameters, lr

    def zero_grad(self):
        for p in self.parts:
            p.grad = 0.0

    def step(self):
        for p in self.parts:
            p.data -= self.lr * p.grad

xs, ys = [[1.0, 2.0], [2.0, -1.0], [0.5, 0.5]], [1.0, 0.0, 1.0]
model = MLP(2, [4, 1])
optimizer = SGD(model.parameters(), lr=0.05)
for epoch in range(30):
    losses = [(model(x) - y) ** 2 for x, y in zip(xs, ys)]
    loss = sum(losses, Value(0.0)) * (1 / len(losses))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""

BY_EXAMPLE = "    for x, y in zip(xs, ys):\n        loss = (n(x) - y)**2\n"
BY_HAND = "loss = n(xs[0])\nloss.backward()\nn.layers[0].neurons[0].w[0].data += 0.01\n"
HITS = "    print(sum((n(x).data > 0) == (y > 0) for x, y in zip(xs, ys)))\n"

RIGHT = {
    "plain": LOOP,
    "minus": patched(LOOP, (MOVE, "p.data -= 0.05 * p.grad")),
    "written out": patched(LOOP, (MOVE, "p.data = p.data - 0.05 * p.grad")),
    "zeroed after the update": patched(LOOP, (ZERO, ""), (UPDATE, UPDATE + ZERO)),
    "a rate that falls": patched(LOOP, ("-0.05", "-(0.1 - 0.09 * k / 20)")),
    "momentum": patched(LOOP, ("for k in", "speed = [0.0] * 41\nfor k in"), (UPDATE, MOMENTUM)),
    "momentum in the gradient": patched(LOOP, ("p.grad = 0.0", "p.grad = 0.8 * p.grad"), ("-0.05", "-0.01")),
    "Adam": patched(LOOP, ("for k in", "m, v = [0.0] * 41, [0.0] * 41\nfor k in"), (UPDATE, ADAM)),
    "weight decay": patched(LOOP, (MOVE, "p.data -= 0.05 * (p.grad + 0.001 * p.data)")),
    "one example at a time": patched(LOOP, (FORWARD + ZERO + BACKWARD + UPDATE, STOCHASTIC)),
    "gradients gathered": patched(LOOP, (FORWARD, ""), (BACKWARD, BY_EXAMPLE + "        loss.backward()\n")),
    "a function, called": TRAIN + LOOP.split("n = ")[0] + "train(MLP(3, [4, 4, 1]), xs, ys, 20)\n",
    "a function, not called": TRAIN,
    "one step in a function, not called": patched(
        TRAIN, ("def train(", "def train_step("), ("ys, steps,", "ys,"), ("for step in range(steps)", "if True")
    ),
    "a while loop": patched(LOOP, ("for k in range(20):", "k = 0\nwhile k < 20:"), (LAST, LAST + "    k += 1\n")),
    "a pass by hand first": patched(LOOP, ("for k in", BY_HAND + "for k in")),
    "two loops, the first wrong": patched(LOOP, (ZERO, "")) + LOOP,
    "evaluated in between": patched(LOOP, (LAST, HITS)),
    "with an optimizer": STEPS,
    "without a class": LINE,
    "without parameters()": OWN,
}


@pytest.mark.parametrize("of", ENGINES)
@pytest.mark.parametrize("form", RIGHT)
def test_a_right_loop_has_full_marks_and_not_even_a_note(form: str, of: str) -> None:
    rows, findings, later = graded(ENGINES[of] + TANH + RIGHT[form])
    assert findings == []
    assert later == []
    assert [row.state for row in rows] == ["ok"] * 6


@pytest.mark.parametrize("of", [*ENGINES.values(), "import random\nfrom micrograd.engine import Value\n"])
def test_relu_with_a_linear_end_is_as_right(of: str) -> None:
    rows, findings, _ = graded(of + RELU + patched(LOOP, ("-0.05", "-0.01")))
    assert findings == []
    assert {row.state for row in rows} == {"ok"}


def test_what_a_file_trains_as_a_program_is_judged(tmp_path: Path) -> None:
    text = ENGINE + TANH + TRAIN.replace("range(steps)", "range(20)") + "\nif __name__ == '__main__':\n"
    text += "".join(f"    {line}\n" for line in patched(LOOP, (ZERO, "")).strip().split("\n"))
    (tmp_path / "mine.py").write_text(text)
    assert told(graded(text, str(tmp_path / "mine.py"))[1]) == ["zero forgotten"]


# ------------------------------------------------------------------------------------- slips

REPLACED = """    for layer in n.layers:
        for u in layer.neurons:
            u.w = [w - 0.05 * w.grad for w in u.w]
            u.b = u.b - 0.05 * u.b.grad
"""
DISCARDED = BY_EXAMPLE + "        for p in n.parameters():\n            p.grad = 0.0\n        loss.backward()\n"
BEHIND = LAST + "for p in n.parameters():\n    p.data += -0.05 * p.grad\n"
ONCE = "for k in range(20):\n"
PREDICTED = "ypred = [n(x) for x in xs]\n"

SLIPS = {
    "zero forgotten": [
        ((ZERO, ""),),
        ((ZERO, ""), ("for k in", "for p in n.parameters():\n    p.grad = 0.0\nfor k in")),
        (("        p.grad = 0.0", "        pass\n    p.grad = 0.0"),),
    ],
    "zeroed before the update": [
        ((ZERO + BACKWARD, BACKWARD + ZERO),),
        ((ZERO + BACKWARD + UPDATE, ZERO + UPDATE + BACKWARD),),
        ((FORWARD + ZERO + BACKWARD, DISCARDED),),
    ],
    "update's sign": [(("+= -0.05", "+= 0.05"),), (("+= -0.05", "-= -0.05"),)],
    ".data forgotten": [((MOVE, "p -= 0.05 * p.grad"),), ((MOVE, "p = p - 0.05 * p.grad"),)],
    "parameters replaced": [((UPDATE, REPLACED),)],
    "gradient updated": [((MOVE, "p.grad -= 0.05 * p.grad"), (ZERO, ""))],
    "loss made once": [((ONCE + FORWARD, FORWARD.replace("    ", "") + ONCE),)],
    "predictions made once": [((ONCE + "    " + PREDICTED, PREDICTED + ONCE),)],
    "update outside the loop": [((UPDATE + LAST, BEHIND),)],
    "parameters left out": [
        ((UPDATE, f"    {MOVE}\n"),),
        ((UPDATE, UPDATE.replace("n.parameters", "n.layers[-1].parameters")),),
    ],
    "data overwritten": [(("p.data +=", "p.data ="),)],
    "one example only": [((FORWARD, BY_EXAMPLE),)],
    "backward forgotten": [((BACKWARD, ""),)],
    "backward not called": [((BACKWARD, "    loss.backward\n"),)],
    "update without effect": [(("-0.05", "-0.0"),)],
    "graph cut": [(("(yout - ygt)**2", "Value((yout.data - ygt)**2)"),)],
}
"""The slip -> loops that have it, and nothing else, each as the changes that make it of the right one."""

CASES = [(slip, i) for slip, texts in SLIPS.items() for i in range(len(texts))]


def slipped(slip: str, i: int) -> str:
    return patched(LOOP, *SLIPS[slip][i])


@pytest.mark.parametrize("of", ENGINES)
@pytest.mark.parametrize(("slip", "i"), CASES, ids=[f"{slip} {i}" for slip, i in CASES])
def test_a_slip_is_told_by_name(slip: str, i: int, of: str) -> None:
    rows, findings, _ = graded(ENGINES[of] + TANH + slipped(slip, i))
    assert told(findings) == [slip]
    assert findings[0].write
    assert slip in {row.remark for row in rows} or slip.startswith("backward ")


def test_data_made_a_value_is_told_though_the_next_pass_raises() -> None:
    text = patched(LOOP, (MOVE, "p.data = p - 0.05 * p.grad"))
    assert told(graded(ENGINE + TANH + text)[1]) == ["data made a Value"]


def test_a_finding_shows_the_line_and_one_to_write_with_the_reader_s_rate() -> None:
    text = ENGINE + TANH + patched(LOOP, ("+= -0.05", "+= 0.07"))
    finding = graded(text)[1][0]
    line = text[: text.index("p.data += 0.07")].count("\n") + 1
    assert (finding.where, finding.what) == (f"line {line}", "p.data += 0.07 * p.grad")
    assert finding.write == ("for p in n.parameters():", "    p.data += -0.07 * p.grad")


def test_one_gradient_in_part_zeroed_is_counted() -> None:
    says = graded(ENGINE + TANH + slipped("zero forgotten", 2))[1][0].says
    assert says.startswith("gradients are not set to zero")
    partly = patched(LOOP, ("n.parameters():\n        p.grad", "n.layers[0].parameters():\n        p.grad"))
    assert "61 % of the gradients" in graded(ENGINE + TANH + partly)[1][0].says


# ------------------------------------------------------------------------------------- told, and not counted

NOTES = {
    "a rate that is too large": (TANH.replace("act.tanh()", "act"), ("-0.05", "-0.9")),
    "tanhs that saturate": (TANH, ("-0.05", "-50.0")),
}


@pytest.mark.parametrize("case", NOTES)
def test_a_loss_that_does_not_fall_though_nothing_is_wrong_is_a_note(case: str) -> None:
    network, change = NOTES[case]
    rows, findings, later = graded(ENGINE + network + patched(LOOP, change))
    assert told(findings) == later == []
    assert {finding.slip for finding in findings} <= {"loss does not fall", "no gradient"}
    assert findings
    assert [row.state for row in rows if row.counts] == ["ok"] * 5


def test_dead_relus_are_a_note() -> None:
    dead = TANH.replace("act.tanh()", "(act + -100.0).relu()")
    rows, findings, _ = graded(ENGINE + dead + LOOP)
    assert [(finding.slip, finding.note) for finding in findings] == [("no gradient", True)]
    assert "wrong" not in {row.state for row in rows}


# ------------------------------------------------------------------------------------- not yet

HALF_DONE = {
    "no loop": (LOOP[: LOOP.index("for k")], "a loop that"),
    "predictions only": (LOOP[: LOOP.index("    loss = ")], "a loop that"),
    "no backward and no update": (LOOP[: LOOP.index("    for p in")], "a loop that"),
    "no update": (patched(LOOP, (UPDATE, "")), "the update: "),
    "one pass": (LOOP.replace("for k in range(20):", "if True:\n    k = 0"), "a loop that"),
    "a function that nobody can call": (TRAIN.replace("model, xs", "model, what_is_this, xs"), "a loop that"),
}


@pytest.mark.parametrize("case", HALF_DONE)
def test_what_is_half_done_is_not_wrong(case: str) -> None:
    text, asked = HALF_DONE[case]
    rows, findings, later = graded(ENGINE + TANH + text)
    assert told(findings) == []
    assert len(later) == 1 or case != "no update"
    assert later[0].startswith(asked)
    assert "wrong" not in {row.state for row in rows}
    assert "not yet" in {row.state for row in rows}


def test_a_trial_that_was_not_tried_is_not_judged() -> None:
    for seen in ({}, {"loop": Seen(kind="not tried")}):
        assert {row.state for row in training_loop.judge(seen).rows} == {"not tried"}


# ------------------------------------------------------------------------------------- wild ones


def test_a_loop_that_never_ends_is_stopped_and_judged() -> None:
    start = time.monotonic()
    endless = patched(LOOP, ("for k in range(20):", "k = 0\nwhile True:"), (ZERO, ""))
    _, findings, _ = graded(ENGINE + TANH + endless, seconds=0.5)
    assert time.monotonic() - start < 10.0
    assert {finding.slip: finding.note for finding in findings} == {"stopped": True, "zero forgotten": False}


def test_a_loop_that_catches_everything_is_stopped_too() -> None:
    catching = patched(LOOP, (BACKWARD, "    try:\n        loss.backward()\n    except Exception:\n        pass\n"))
    endless = catching.replace("range(20)", "range(10**9)")
    rows, findings, _ = graded(ENGINE + TANH + endless, seconds=0.5)
    assert [finding.slip for finding in findings] == ["stopped"]
    assert [row.state for row in rows] == ["ok"] * 6


def test_a_loop_that_raises_is_judged_by_what_it_did_before() -> None:
    text = patched(LOOP, (LAST, "    assert k < 5, 'enough'\n"), ("+= -0.05", "+= 0.05"))
    assert told(graded(ENGINE + TANH + text)[1]) == ["update's sign"]
