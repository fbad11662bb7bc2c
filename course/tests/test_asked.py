"""The tests in `asked`, tested: what is right in any style passes for every seed, and what only looks right does not."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.handmade import ENGINE, RELU, TANH, TRAIN, WENGERT, patched
from wengert_course.checks import load, probe
from wengert_course.checks.kit import NAMES, Kit, TrialPlan
from wengert_course.checks.steps import TRIALS, Seen

SEEDS = [pytest.param(range(2), id="2 seeds"), pytest.param(range(2, 50), id="50", marks=pytest.mark.nightly)]
VALUE = "import math\nfrom wengert import Value\n"
MICROGRAD = "import random\nfrom micrograd.engine import Value\n"  # whose Value has no tanh


def outcome(text: str, trial: str, seed: int) -> Seen:
    """What a test says of a program that is run here: nothing, where it is right."""
    space: dict[str, object] = {"__name__": "examined"}
    random.seed(seed)
    exec(compile(text, "examined.py", "exec", dont_inherit=True), space)
    names: dict[str, str] = {}
    make: Any = object
    if TRIALS[trial].step in (8, 9):
        make = space["Value"]
        names = load.parts_of(make, NAMES, "")
    kit = Kit(make, names, space, TrialPlan(seed=seed))
    done = probe.attempt(TRIALS[trial], kit, "examined.py", load)
    return Seen(tuple(done["numbers"]), **done.get("error", {}))


def cases(texts: dict[str, dict[str, str]]) -> list[Any]:
    forms = [(trial, name, text) for trial, forms in texts.items() for name, text in forms.items()]
    return [pytest.param(trial, text, id=f"{trial}: {name}") for trial, name, text in forms]


# ------------------------------------------------------------------------------------- functions

SLOPE = "def slope(f, x):\n    h = 0.0001\n    return (f(x + h) - f(x)) / h\n"
SLOPES = """
def slopes(f, xs):
    h, found = 1e-4, []
    for i in range(len(xs)):
        moved = list(xs)
        moved[i] += h
        found.append((f(*moved) - f(*xs)) / h)
    return found
"""
MATMUL = """
def matmul(A, B):
    return [[sum((a * b for a, b in zip(row, column)), Value(0.0)) for column in zip(*B)] for row in A]
"""
BY_INDEX = """
def matmul(A, B):
    C = []
    for i in range({rows}):
        C.append([])
        for j in range({columns}):
            s = Value(0.0)
            for k in range({inner}):
                s = s + A[i][k] * B[k][j]
            C[i].append(s)
    return C
"""
SQUARE = BY_INDEX.format(rows="len(A)", columns="len(A)", inner="len(A)")
SOFTMAX = (
    "def softmax(zs):\n    exps = [z.exp() for z in zs]\n    total = sum(exps)\n    return [e / total for e in exps]\n"
)
CROSS = SOFTMAX + "def cross_entropy(zs, k):\n    return -softmax(zs)[k].log()\n"
SUMMED = """
import numpy as np
def summed(gradient, shape):
    while gradient.ndim > len(shape):
        gradient = gradient.sum(axis=0)
    for axis, size in enumerate(shape):
        if size == 1:
            gradient = gradient.sum(axis=axis, keepdims=True)
    return gradient
"""
LEADING = SUMMED.partition("    for axis")[0] + "    return gradient\n"
LOSS = """
def loss(w, b, xs, ys):
    total = 0.0
    for x, y in zip(xs, ys):
        total = total + (sum((wi * xi for wi, xi in zip(w, x)), b) - y) ** 2
    return total / len(ys)
"""
COUNTS = """
letters = ".abcdefghijklmnopqrstuvwxyz"
def counts(names):
    table = [[0] * 27 for _ in range(27)]
    for name in names:
        ended = "." + name + "."
        for one, two in zip(ended, ended[1:]):
            table[letters.index(one)][letters.index(two)] += 1
    return table
"""
SURPRISE = """
def loss(logits, counts):
    total = sum(map(sum, counts))
    out = Value(0.0)
    for i in range(27):
        whole = sum((z.exp() for z in logits[i]), Value(0.0)).log()
        for j in range(27):
            if counts[i][j]:
                out = out - counts[i][j] * (logits[i][j] - whole)
    return out / total
"""
ROWS = """
def loss(logits, counts):
    pairs, total = sum(map(sum, counts)), 0
    for row, ns in zip(logits, counts):
        whole = sum(z.exp() for z in row).log()
        total = total - sum(n * (z - whole) for z, n in zip(row, ns))
    return total / pairs
"""

RIGHT = {
    "0 slope": {
        "a nudge up": SLOPE,
        "both sides": "def slope(f, x, h=1e-5):\n    return (f(x + h) - f(x - h)) / (2 * h)\n",
        "a nudge down": "slope = lambda f, x: (f(x) - f(x - 1e-6)) / 1e-6\n",
        "a nudge by size": "def slope(f, x):\n    step = 1e-6 * max(1, abs(x))\n    return (f(x + step) - f(x)) / step\n",
        "four points": "def slope(f, x, h=1e-3):\n    d = lambda k: f(x + k * h) - f(x - k * h)\n    return (8 * d(1) - d(2)) / (12 * h)\n",
    },
    "0 slopes": {
        "a copy for each": SLOPES,
        "moved and put back": """
def slopes(f, xs):
    at, found = f(*xs), []
    for i, x in enumerate(xs):
        xs[i] = x + 1e-5
        found.append((f(*xs) - at) / 1e-5)
        xs[i] = x
    return found
""",
        "a tuple": SLOPES.replace("return found", "return tuple(found)"),
        "in one line": "def slopes(f, xs):\n    return [(f(*xs[:i], x + 1e-6, *xs[i + 1 :]) - f(*xs)) / 1e-6 for i, x in enumerate(xs)]\n",
        "by slope": SLOPE + "def slopes(f, xs):\n    return [slope(lambda y: f(*xs[:i], y, *xs[i + 1 :]), x) for i, x in enumerate(xs)]\n",
    },
    "10 matmul": {
        "sums": VALUE + MATMUL,
        "by index": VALUE + BY_INDEX.format(rows="len(A)", columns="len(B[0])", inner="len(B)"),
        "sums from 0": VALUE + MATMUL.replace(", Value(0.0))", ")"),
        "on an engine of one's own": ENGINE + MATMUL,
        "tuples of tuples": VALUE + MATMUL.replace("return [[", "return tuple([[").replace("in A]", "in A])"),
    },
    "10 softmax": {
        "exponentials": VALUE + SOFTMAX,
        "the largest taken off": VALUE + SOFTMAX.replace("z.exp()", "(z - max(x.data for x in zs)).exp()"),
        "wengert's own": VALUE + "from wengert import softmax\n",
        "a loop": VALUE + "def softmax(zs):\n    total, out = 0, []\n    for z in zs:\n        total = total + z.exp()\n    for z in zs:\n        out.append(z.exp() / total)\n    return out\n",
        "by logarithms": VALUE + "def softmax(zs):\n    whole = sum((z.exp() for z in zs), Value(0.0)).log()\n    return tuple((z - whole).exp() for z in zs)\n",
    },
    "10 cross_entropy": {
        "a logarithm": VALUE + CROSS,
        "a difference": VALUE + "def cross_entropy(zs, k):\n    return sum(z.exp() for z in zs).log() - zs[k]\n",
        "an inverse": VALUE + CROSS.replace("-softmax(zs)[k].log()", "(1 / softmax(zs)[k]).log()"),
        "a loop": VALUE + CROSS.replace("    return -softmax(zs)[k].log()", "    for i, p in enumerate(softmax(zs)):\n        if i == k:\n            return -p.log()"),
        "a sum of differences": VALUE + "def cross_entropy(zs, k):\n    return sum((z - zs[k]).exp() for z in zs).log()\n",
    },
    "10 summed": {
        "as NumPy users write it": SUMMED,
        "of anything": SUMMED.replace("    while", "    gradient = np.asarray(gradient)\n    while"),
        "at once": """
import numpy as np
def summed(gradient, shape):
    extra = gradient.ndim - len(shape)
    ones = [i + extra for i, size in enumerate(shape) if size == 1]
    return gradient.sum(axis=(*range(extra), *ones)).reshape(shape)
""",
        "padded": """
def summed(gradient, shape):
    padded = (1,) * (gradient.ndim - len(shape)) + tuple(shape)
    axes = tuple(i for i, n in enumerate(padded) if n == 1)
    return gradient.sum(axis=axes, keepdims=True).reshape(shape)
""",
        "from the last axis": """
import numpy as np
def summed(gradient, shape):
    for _ in range(np.ndim(gradient) - len(shape)):
        gradient = np.add.reduce(gradient)
    for axis in reversed(range(len(shape))):
        if shape[axis] == 1 and gradient.shape[axis] > 1:
            gradient = np.sum(gradient, axis, keepdims=True)
    return gradient
""",
    },
    "11 loss": {
        "a loop": VALUE + LOSS,
        "on an engine of one's own": ENGINE + LOSS,
        "a list of errors": VALUE
        + """
def loss(w, b, xs, ys):
    errors = [sum(w[i] * x[i] for i in range(len(w))) + b - y for x, y in zip(xs, ys)]
    return sum(e * e for e in errors) / len(errors)
""",
        "a part of its own": VALUE + "def predicted(w, b, x):\n    return sum((p * q for p, q in zip(w, x)), b)\ndef loss(w, b, xs, ys):\n    return sum((predicted(w, b, x) - y) ** 2 for x, y in zip(xs, ys)) * (1 / len(xs))\n",
        "each divided": VALUE + LOSS.replace(", b) - y) ** 2", ", b) - y) ** 2 / len(ys)").replace("return total / len(ys)", "return total"),
    },
    "12 counts": {
        "by index": COUNTS,
        "a Counter": """
from collections import Counter
letters = ".abcdefghijklmnopqrstuvwxyz"
def counts(names):
    pairs = Counter(pair for name in names for pair in zip("." + name, name + "."))
    return [[pairs[one, two] for two in letters] for one in letters]
""",
        "an array": COUNTS.replace("[[0] * 27 for _ in range(27)]", "numpy.zeros((27, 27), dtype=int)")
        .replace("].index", "].index").replace("][letters.index(two)]", ", letters.index(two)]")
        .replace("letters = ", "import numpy\nletters = ", 1),
        "a dict of places": COUNTS.replace("def counts", "place = {c: i for i, c in enumerate(letters)}\ndef counts").replace("letters.index(one)", "place[one]").replace("letters.index(two)", "place[two]"),
        "letter after letter": """
def counts(names):
    number = lambda c: 0 if c == "." else ord(c) - 96
    table = [[0] * 27 for _ in range(27)]
    for name in names:
        before = "."
        for c in name + ".":
            table[number(before)][number(c)] += 1
            before = c
    return table
""",
    },
    "12 loss": {
        "range(27)": VALUE + SURPRISE,
        "row by row": VALUE + ROWS,
        "probabilities": VALUE + ROWS.replace("n * (z - whole)", "n * (z.exp() / whole.exp()).log()"),
        "of what was counted alone": VALUE + ROWS.replace("in zip(row, ns))", "in zip(row, ns) if n)"),
        "each divided": VALUE + ROWS.replace("-n * z", "n * z").replace("total - sum(", "total - sum(1 / pairs * ").replace("return total / pairs", "return total"),
    },
}  # fmt: skip

WRONG = {
    "0 slope": {
        "the brackets of the difference": SLOPE.replace("(f(x + h) - f(x)) / h", "f(x + h) - f(x) / h"),
        "for one function alone": "def slope(f, x):\n    return 6 * x - 4\n",
        "a function from outside": "g = lambda x: x * x\ndef slope(f, x):\n    return (g(x + 1e-4) - g(x)) / 1e-4\n",
        "h not divided": SLOPE.replace(" / h", ""),
        "h of 0.1": SLOPE.replace("0.0001", "0.1"),
        "no return": SLOPE.replace("return ", ""),
        "the wrong way round": SLOPE.replace("f(x + h) - f(x)", "f(x) - f(x + h)"),
        "a sum": SLOPE.replace("f(x + h) - f(x)", "f(x + h) + f(x)"),
        "twice as wide": SLOPE.replace("f(x)", "f(x - h)"),
        "from 0 on": "def slope(f, x):\n    return (f(x) - f(0.0)) / x\n",
        "the value": "def slope(f, x):\n    return f(x)\n",
    },
    "0 slopes": {
        "the caller's list is moved": "def slopes(f, xs):\n    at, found = f(*xs), []\n    for i in range(len(xs)):\n        xs[i] += 1e-5\n        found.append((f(*xs) - at) / 1e-5)\n        at = f(*xs)\n    return found\n",
        "all moved": SLOPES.replace("moved[i] += h", "moved = [x + h for x in xs]"),
        "three inputs": SLOPES.replace("len(xs)", "3"),
        "no star": SLOPES.replace("*moved", "moved"),
        "a generator": SLOPES.replace("return found", "return (x for x in found)"),
        "not divided": SLOPES.replace(" / h", ""),
        "the last one": SLOPES.replace("found.append((f(*moved) - f(*xs)) / h)", "found = (f(*moved) - f(*xs)) / h"),
        "the first one": SLOPES.replace("    return found", "        return found"),
        "their sum": SLOPES.replace("return found", "return sum(found)"),
        "no copy": SLOPES.replace("moved = list(xs)", "moved = xs"),
        "moved and moved": SLOPES.replace("        moved = list(xs)\n", "").replace("found = 1e-4, []", "found, moved = 1e-4, [], list(xs)"),
    },
    "10 matmul": {
        "squares": VALUE + SQUARE,
        "entry by entry": VALUE + "def matmul(A, B):\n    return [[a * b for a, b in zip(r, s)] for r, s in zip(A, B)]\n",
        "rows with rows": VALUE + MATMUL.replace("zip(*B)", "B"),
        "numbers": VALUE + MATMUL.replace("a * b", "a.data * b.data").replace("Value(0.0)", "0.0"),
        "one row many times": VALUE
        + """
def matmul(A, B):
    C = [[Value(0.0)] * len(B[0])] * len(A)
    for i in range(len(A)):
        for j in range(len(B[0])):
            C[i][j] = sum((A[i][k] * B[k][j] for k in range(len(B))), Value(0.0))
    return C
""",
        "transposed": VALUE + MATMUL.replace("for column in zip(*B)] for row in A]", "for row in A] for column in zip(*B)]"),
        "as long as A": VALUE + BY_INDEX.format(rows="len(A)", columns="len(B[0])", inner="len(A)"),
        "as wide as B is high": VALUE + BY_INDEX.format(rows="len(A)", columns="len(B)", inner="len(B)"),
        "sums": VALUE + MATMUL.replace("a * b", "a + b"),
        "the last product": VALUE + BY_INDEX.format(rows="len(A)", columns="len(B[0])", inner="len(B)").replace("s + A", "A"),
        "no return": VALUE + MATMUL.replace("return ", ""),
    },
    "10 softmax": {
        "three": VALUE + "def softmax(zs):\n    a, b, c = [z.exp() for z in zs]\n    return [e / (a + b + c) for e in (a, b, c)]\n",
        "not divided": VALUE + SOFTMAX.replace("e / total for", "e for"),
        "a graph that is cut": VALUE + SOFTMAX.replace("z.exp()", "Value(math.exp(z.data))"),
        "the sum's graph is cut": VALUE + SOFTMAX.replace("e / total for", "e / total.data for"),
        "a dict": VALUE + SOFTMAX.replace("[e / total for e in exps]", "{i: e / total for i, e in enumerate(exps)}"),
        "no exponentials": VALUE + SOFTMAX.replace("z.exp() for", "z for"),
        "by the largest": VALUE + SOFTMAX.replace("sum(exps)", "max(exps, key=lambda e: e.data)"),
        "of 2": VALUE + SOFTMAX.replace("z.exp()", "2.0**z"),
        "sorted": VALUE + SOFTMAX.replace("for z in zs]", "for z in sorted(zs, key=lambda z: z.data)]").replace("softmax(zs):", "softmax(zs):\n    zs = zs + [Value(0.0)]"),
        "numbers": VALUE + SOFTMAX.replace("z.exp()", "math.exp(z.data)"),
        "the first only": VALUE + SOFTMAX.replace("[e / total for e in exps]", "exps[0] / total"),
    },
    "10 cross_entropy": {
        "the first class": VALUE + CROSS.replace("[k]", "[0]"),
        "no sign": VALUE + CROSS.replace("-softmax", "softmax"),
        "numbers": VALUE + CROSS.replace("softmax(zs)[k].log()", "math.log(softmax(zs)[k].data)"),
        "the last class": VALUE + CROSS.replace("[k]", "[-1]"),
        "no logarithm": VALUE + CROSS.replace("[k].log()", "[k]"),
        "of the others": VALUE + CROSS.replace("-softmax(zs)[k].log()", "-(1 - softmax(zs)[k]).log()"),
        "in bits": VALUE + CROSS.replace("[k].log()", "[k].log() / math.log(2)"),
        "of the logit": VALUE + CROSS.replace("-softmax(zs)[k].log()", "-zs[k]"),
        "all of them": VALUE + CROSS.replace("-softmax(zs)[k].log()", "-sum(p.log() for p in softmax(zs))"),
        "the next class": VALUE + CROSS.replace("[k]", "[k - 1]"),
    },
    "10 summed": {
        "leading axes alone": LEADING,
        "the first axis": "def summed(gradient, shape):\n    return gradient.sum(axis=0)\n",
        "the second axis": "def summed(gradient, shape):\n    return gradient.sum(axis=1, keepdims=True)\n",
        "ones are not kept": SUMMED.replace(", keepdims=True", ""),
        "as it came": "def summed(gradient, shape):\n    return gradient\n",
        "everything": "def summed(gradient, shape):\n    return gradient.sum()\n",
        "the mean": SUMMED.replace("gradient.sum(axis=0)", "gradient.mean(axis=0)"),
        "one row": SUMMED.replace("gradient.sum(axis=0)", "gradient[0]"),
        "no return": SUMMED.replace("    return gradient\n", ""),
        "cut to shape": "import numpy as np\ndef summed(gradient, shape):\n    return np.resize(gradient, shape)\n",
        "the last axes": LEADING.replace("axis=0", "axis=-1"),
    },
    "11 loss": {
        "a sum": VALUE + LOSS.replace("total / len(ys)", "total"),
        "by the number of weights": VALUE + LOSS.replace("/ len(ys)", "/ len(w)"),
        "returned in the loop": VALUE + LOSS.replace("    return", "        return"),
        "three weights": VALUE + LOSS.replace("sum((wi * xi for wi, xi in zip(w, x)), b)", "w[0]*x[0] + w[1]*x[1] + w[2]*x[2] + b"),
        "no Value": VALUE + LOSS.replace("return total", "return total.data"),
        "no bias": VALUE + LOSS.replace(", b) - y", ", 0.0) - y"),
        "a bias for each weight": VALUE + LOSS.replace("wi * xi for", "wi * xi + b for").replace(", b) - y", ", 0.0) - y"),
        "no square": VALUE + LOSS.replace(" ** 2", ""),
        "the last example": VALUE + LOSS.replace("total = total + (", "total = ("),
        "the graph is cut": VALUE + LOSS.replace("wi * xi", "wi.data * xi"),
    },
    "12 counts": {
        "no ends": COUNTS.replace('"." + name + "."', "name"),
        "column and row": COUNTS.replace("[letters.index(one)][letters.index(two)]", "[letters.index(two)][letters.index(one)]"),
        "one row": COUNTS.replace("[[0] * 27 for _ in range(27)]", "[[0] * 27] * 27"),
        "each pair once": COUNTS.replace("+= 1", "= 1"),
        "a dict": COUNTS.replace("return table", "return dict(enumerate(table))"),
        "no beginning": COUNTS.replace('"." + name + "."', 'name + "."'),
        "no end": COUNTS.replace('"." + name + "."', '"." + name'),
        "all names as one": COUNTS.replace("for name in names", "for name in ['.'.join(names)]").replace("ended[1:]", "ended[2:]"),
        "one name": COUNTS.replace("    return table", "        return table"),
        "shares": COUNTS.replace("return table", "return [[n / max(1, sum(row)) for n in row] for row in table]"),
    },
    "12 loss": {
        "each pair once": VALUE + SURPRISE.replace("counts[i][j] * (", "("),
        "not divided": VALUE + SURPRISE.replace("out / total", "out"),
        "the sign": VALUE + SURPRISE.replace("out - counts", "out + counts"),
        "by the rows": VALUE + SURPRISE.replace("out / total", "out / 27"),
        "by the kinds of pairs": VALUE + SURPRISE.replace("sum(map(sum, counts))", "sum(n > 0 for row in counts for n in row)"),
        "no logarithm of the sum": VALUE + SURPRISE.replace(" - whole)", ")"),
        "numbers": VALUE + SURPRISE.replace("(logits[i][j] - whole)", "(logits[i][j].data - whole.data)"),
        "no return": VALUE + SURPRISE.replace("return out", "out"),
        "the first row": VALUE + SURPRISE.replace("    return", "        return"),
        "a total from outside": VALUE + SURPRISE.replace("    total = sum(map(sum, counts))\n", "").replace("def loss", "total = 13_000\ndef loss"),
    },
}  # fmt: skip


@pytest.mark.parametrize("seeds", SEEDS)
@pytest.mark.parametrize(("trial", "text"), cases(RIGHT))
def test_a_right_function_passes_for_every_seed(trial: str, text: str, seeds: range) -> None:
    for seed in seeds:
        assert outcome(text, trial, seed).kind == "", outcome(text, trial, seed).says


def test_each_function_has_five_right_answers_and_ten_wrong_ones() -> None:
    assert RIGHT.keys() == WRONG.keys()
    assert [
        trial for trial in RIGHT if len(set(RIGHT[trial].values())) < 5 or len(set(WRONG[trial].values())) < 10
    ] == []


@pytest.mark.parametrize("seeds", SEEDS)
@pytest.mark.parametrize(("trial", "text"), cases(WRONG))
def test_a_wrong_function_passes_for_no_seed_and_what_came_is_said(trial: str, text: str, seeds: range) -> None:
    for seed in seeds:
        seen = outcome(text, trial, seed)
        assert seen.kind not in ("", "unfit absent"), seed
        assert TRIALS[trial].row.partition("(")[0] in seen.says or "f(*xs)" in seen.says


def test_a_sentence_says_what_was_called_with_what_and_what_came() -> None:
    seen = outcome(SLOPE.replace(" / h", ""), "0 slope", 1)
    assert seen.kind == "unfit value"
    assert seen.says.startswith("slope(f, x) should be ")
    assert ", where f(x) = " in seen.says
    cut = outcome(VALUE + WRONG["10 cross_entropy"]["numbers"].partition(VALUE)[2], "10 cross_entropy", 1)
    assert (cut.kind, cut.numbers) == ("unfit gradient", ())
    assert "Values all the way" in cut.says
    assert outcome(WRONG["0 slopes"]["no star"], "0 slopes", 1).says == "f takes 3 numbers: call f(*xs), with the star"
    nothing = outcome(VALUE + "def softmax(zs):\n    1 / 0\n", "10 softmax", 1)
    assert nothing.kind == "ZeroDivisionError"
    assert nothing.says.startswith("softmax(zs), where zs = [")
    assert nothing.place == "line 4"
    assert outcome("", "10 softmax", 1).kind == "unfit absent"


# ------------------------------------------------------------------------------------- networks

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
RELUS = TANH.replace("act.tanh()", "act.relu()")
NETWORK = [id for id, trial in TRIALS.items() if trial.step == 8]

FORMS = {
    "tanh": TANH,
    "ReLU, linear end": RELU,
    "ReLU, also the last": RELUS,
    "bias zero": patched(TANH, (B, "self.b = Value(0.0)")),
    "bias first": patched(TANH, ("        " + W, f"        {B}\n        {W}"), (f"\n        {B}\n\n", "\n\n")),
    "bias first in the list": patched(TANH, (OWN, "return [self.b] + self.w")),
    "sum from zero": patched(TANH, (ACT, f"        return (sum({PRODUCTS}) + self.b).tanh()\n")),
    "sum from a Value": patched(TANH, (ACT, f"        return (sum(({PRODUCTS}), Value(0.0)) + self.b).tanh()\n")),
    "parameters kept, too": patched(TANH, (B, B + "\n        self.all = [*self.w, self.b]"), (OWN, "return self.all")),
    "parameters in a tuple": patched(TANH, (ALL, ALL.replace("return [", "return tuple([") + ")")),
    "a bias among the weights": patched(
        TANH,
        ("range(nin)]", "range(nin + 1)]"),
        ("\n        " + B, ""),
        (ACT, f"        return sum({PRODUCTS.replace('x)', '[*x, 1.0])')}).tanh()\n"),
        (OWN, "return self.w"),
    ),
    "an activation that few use": RELUS.replace("act.relu()", "act.relu() + -0.1 * (-act).relu()"),
    "normal numbers": patched(TANH, ("random.uniform(-1, 1)) for", "random.gauss(0, 1) * nin**-0.5) for")),
    "layers in a dict": patched(
        TANH,
        (f"self.layers = [{SIZES}]", "self.layers = {i: Layer(sz[i], sz[i + 1]) for i in range(len(nouts))}"),
        ("for layer in self.layers:\n", "for layer in self.layers.values():\n"),
        (ALL, ALL.replace("self.layers", "self.layers.values()")),
    ),
    "a list of its own as a layer": patched(
        TANH,
        ("class Layer:", "class Layer(list):"),
        ("self.neurons = [Neuron(nin) for _ in range(nout)]", "super().__init__(Neuron(nin) for _ in range(nout))"),
    ).replace("self.neurons", "self"),
    "a Neuron made by a partial": patched(
        TANH,
        ("class Layer:", "from functools import partial\nmade = partial(Neuron)\n\nclass Layer:"),
        ("[Neuron(nin) for", "[made(nin) for"),
    ),
}
NETWORKS = [pytest.param(of + text, id=name) for of in (ENGINE, WENGERT) for name, text in FORMS.items()]
NETWORKS += [
    pytest.param(MICROGRAD + text, id=f"{name}, micrograd") for name, text in FORMS.items() if "tanh" not in text
]
NETWORKS += [pytest.param(WENGERT + "from wengert.nn import MLP, Layer, Neuron\n", id="Wengert's own")]
NETWORKS += [pytest.param(MICROGRAD + "from micrograd.nn import *\n", id="micrograd's own")]


@pytest.mark.sampled(5)
@pytest.mark.parametrize("text", NETWORKS)
def test_a_right_network_passes(text: str) -> None:
    for seed in range(3):
        assert {id: outcome(text, id, seed).says for id in NETWORK if outcome(text, id, seed).kind} == {}


LOOP = "        for wi, xi in zip(self.w, x):\n"
NO_BIAS = (", self.b)\n", ", Value(0.0))\n")
SLIPS = {
    "repeated neuron": [("[Neuron(nin) for _ in range(nout)]", "[Neuron(nin)] * nout")],
    "bias left out": [NO_BIAS],
    "bias not a parameter": [(OWN, "return self.w")],
    "no activation": [("return act.tanh()", "return act")],
    "activation of each product": [("wi * xi for", "(wi * xi).tanh() for"), ("return act.tanh()", "return act")],
    "activation of each product, too": [("wi * xi for", "(wi * xi).tanh() for")],
    "bias after the activation": [(ACT, f"        return sum(({PRODUCTS}), Value(0.0)).tanh() + self.b\n")],
    "the last product only": [(ACT, f"{LOOP}            act = wi * xi\n        return (act + self.b).tanh()\n")],
    "the first product only": [
        (ACT, f"        act = self.b\n{LOOP}            act = act + wi * xi\n            return act.tanh()\n")
    ],
    "one weight for all inputs": [(ACT, "        return (self.w[0] * sum(x) + self.b).tanh()\n")],
    "bias in each product": [("wi * xi for", "wi * xi + self.b for"), NO_BIAS],
    "sum for product": [("wi * xi for", "wi + xi for")],
    "bias as a factor": [(ACT, f"        return (sum(({PRODUCTS}), Value(0.0)) * self.b).tanh()\n")],
    "inputs to each layer": [(CHAIN, "            out = layer(x)\n"), ("        return x\n", "        return out\n")],
    "one layer only": [(CHAIN + "        return x\n", CHAIN + "            return x\n")],
    "layer's output lost": [(CHAIN, "            layer(x)\n")],
    "the first neuron only": [(EACH, "        for n in self.neurons:\n            return n(x)\n")],
    "the last neuron only": [(EACH, "        for n in self.neurons:\n            out = n(x)\n        return out\n")],
    "number of outputs": [("return outs[0] if len(outs) == 1 else outs", "return outs[:2]")],
    "a list of one": [("return outs[0] if len(outs) == 1 else outs", "return outs")],
    "a list for a Value": [("return act.tanh()", "return [act.tanh()]")],
    "plain weights": [(W, "self.w = [random.uniform(-1, 1) for _ in range(nin)]")],
    "no bias": [(B, "self.b = random.uniform(-1, 1)"), (", self.b)", ", Value(self.b))")],
    "shared bias": [("class Neuron:", "class Neuron:\n    b = Value(0.0)"), ("\n        " + B, "")],
    "plain result": [("return act.tanh()", "return math.tanh(act.data)")],
    "graph cut": [("return act.tanh()", "return Value(math.tanh(act.data))")],
    "graph of the weights cut": [("wi * xi for", "wi.data * xi for")],
    "graph of the bias cut": [(", self.b)\n", ", Value(self.b.data))\n")],
    "graph between layers cut": [
        (CHAIN, CHAIN + "            x = [Value(v.data) for v in x] if isinstance(x, list) else x\n")
    ],
    "parameters made anew": [(OWN, "return [Value(p.data) for p in self.w + [self.b]]")],
    "nested in a neuron": [(OWN, "return [self.w, [self.b]]")],
    "nested in a layer": [(OF_NEURONS, "return [n.parameters() for n in self.neurons]")],
    "plain parameters": [(OWN, "return [p.data for p in self.w + [self.b]]")],
    "parameters repeated": [(ALL, ALL.replace("return", "return 2 *"))],
    "a generator of parameters": [(ALL, ALL.replace("return", "yield from"))],
    "parameters of the last layer": [(ALL, "return self.layers[-1].parameters()")],
    "parameters of the first neuron": [(OF_NEURONS, "for n in self.neurons:\n            return n.parameters()")],
    "parameters not returned": [(OWN, "self.w + [self.b]")],
    "nothing returned": [("return act.tanh()", "act.tanh()")],
    "equal weights": [(W, "self.w = [Value(0.5) for _ in range(nin)]")],
    "neurons alike": [("        " + W, "        random.seed(1)\n        " + W)],
    "weights on one side": [("random.uniform(-1, 1)) for", "random.random()) for")],
    "a weight too few": [("range(nin)]", "range(nin - 1)]")],
    "each layer of the network's inputs": [(SIZES, "Layer(nin, n) for n in nouts")],
    "a layer too few": [(SIZES, SIZES.replace("range(", "range(1, "))],
    "error": [("zip(self.w, x)", "zip(self.w, y)")],
}
"""What is wrong -> the changes that make it of the right network."""


@pytest.mark.sampled(6)
@pytest.mark.parametrize("of", [ENGINE, WENGERT], ids=["by hand", "wengert"])
@pytest.mark.parametrize("slip", SLIPS)
def test_a_wrong_network_does_not_pass(slip: str, of: str) -> None:
    for seed in (1, 2):
        said = [outcome(of + patched(TANH, *SLIPS[slip]), id, seed) for id in NETWORK]
        assert [one.says for one in said if one.kind not in ("", "unfit absent")], slip


def test_an_engine_that_is_wrong_is_sent_back_to_its_own_check() -> None:
    wrong = patched(ENGINE, ("(1 - t**2) * out.grad", "(1 - t) * out.grad"))
    assert outcome(wrong + TANH, "8 neuron", 1).says.endswith(": check the Value itself (--step 7)")


def test_where_no_gradient_arrives_is_counted() -> None:
    text = ENGINE + patched(TANH, *SLIPS["graph of the bias cut"])
    assert outcome(text, "8 neuron", 1).says.startswith("no gradient reaches 1 of the 4 parameters of Neuron(3)")


NEURON, LAYER = TANH.index("class Neuron"), TANH.index("class Layer")
HALF_DONE = {
    "an engine alone": ("", 0),
    "a neuron without parameters()": (TANH[NEURON : TANH.index("    def parameters")], 0),
    "a neuron": (TANH[NEURON:LAYER], 2),
    "a neuron and a layer": (TANH[NEURON : TANH.index("class MLP")], 5),
}


@pytest.mark.parametrize("case", HALF_DONE)
def test_what_is_half_done_is_not_wrong(case: str) -> None:
    text, right = HALF_DONE[case]
    said = [outcome(ENGINE + text, id, 1).kind for id in NETWORK]
    assert said == [""] * right + ["unfit absent"] * (9 - right)


# ------------------------------------------------------------------------------------- training

ZERO = "        for p in model.parameters():\n            p.grad = 0.0\n"
BACKWARD = "        loss.backward()\n"
MOVE = "p.data -= rate * p.grad"
UPDATE = f"        for p in model.parameters():\n            {MOVE}\n"
FORWARD = "loss = sum(((model(x) - y) ** 2 for x, y in zip(xs, ys)), Value(0.0)) / len(xs)"
NOTED = "        losses.append(loss.data)\n"

LOOPS = {
    "four parts": TRAIN,
    "written out": patched(TRAIN, (MOVE, "p.data = p.data - rate * p.grad")),
    "plus": patched(TRAIN, (MOVE, "p.data += -rate * p.grad")),
    "zeroed after the update": patched(TRAIN, (ZERO, ""), (UPDATE, UPDATE + ZERO)),
    "zeroed first": patched(TRAIN, (ZERO, ""), ("        loss = ", ZERO + "        loss = ")),
    "predictions first": patched(
        TRAIN, (FORWARD, "out = [model(x) for x in xs]\n        loss = sum((o - y) ** 2 for o, y in zip(out, ys)) / len(xs)")
    ),
    "a while loop": patched(
        TRAIN, ("for step in range(steps):", "k = 0\n    while k < steps:"), (NOTED, NOTED + "        k += 1\n")
    ),
    "gradients gathered": patched(
        TRAIN,
        (f"        {FORWARD}\n{ZERO}{BACKWARD}", f"{ZERO}        total = 0.0\n        for x, y in zip(xs, ys):\n"
         "            loss = (model(x) - y) ** 2 / len(xs)\n            loss.backward()\n            total += loss.data\n"),
        ("losses.append(loss.data)", "losses.append(total)"),
    ),
    "an optimizer of one's own": "class SGD:\n    def __init__(self, ps, lr):\n        self.ps, self.lr = ps, lr\n"
    "    def zero(self):\n        for p in self.ps:\n            p.grad = 0.0\n    def step(self):\n"
    "        for p in self.ps:\n            p.data -= self.lr * p.grad\n"
    + patched(TRAIN, (ZERO, "        o.zero()\n"), (UPDATE, "        o.step()\n"))
    .replace("losses = []", "losses, o = [], SGD(model.parameters(), rate)"),
}  # fmt: skip

NOT_LEARNT = {
    "zero forgotten": [(ZERO, "")],
    "zeroed once": [(ZERO, ""), ("    losses = []\n", "    losses = []\n" + ZERO.replace("        ", "    ", 1))],
    "zeroed before the update": [(ZERO + BACKWARD, BACKWARD + ZERO)],
    "update's sign": [(MOVE, "p.data += rate * p.grad")],
    ".data forgotten": [(MOVE, "p = p - rate * p.grad")],
    "data made a Value": [(MOVE, "p.data = p - rate * p.grad")],
    "gradient updated": [(MOVE, "p.grad -= rate * p.grad")],
    "data overwritten": [(MOVE, "p.data = -rate * p.grad")],
    "backward forgotten": [(BACKWARD, "")],
    "backward not called": [(BACKWARD, "        loss.backward\n")],
    "one example of many": [(FORWARD, "loss = (model(xs[0]) - ys[0]) ** 2")],
    "the last example only": [(FORWARD, "for x, y in zip(xs, ys):\n            loss = (model(x) - y) ** 2")],
    "not squared": [("** 2", "")],
    "a sum": [(" / len(xs)", "")],
    "no return": [("    return losses\n", "")],
    "Values for losses": [("loss.data)", "loss)")],
    "a number of rounds of its own": [("range(steps)", "range(20)")],
    "a rate of its own": [(MOVE, "p.data -= 0.1 * p.grad")],
    "returned in the loop": [(NOTED, NOTED + "        return losses\n")],
    "loss made once": [
        ("    for step in range(steps):\n        " + FORWARD, f"    {FORWARD}\n    for step in range(steps):")
    ],
    "a layer left out": [(UPDATE, UPDATE.replace("model.parameters", "model.layers[-1].parameters"))],
    "graph cut": [("(model(x) - y) ** 2", "Value((model(x).data - y) ** 2)")],
}


@pytest.mark.parametrize("of", [ENGINE, WENGERT, MICROGRAD], ids=["by hand", "wengert", "micrograd"])
@pytest.mark.parametrize("form", LOOPS)
def test_a_right_loop_passes(form: str, of: str) -> None:
    for seed in range(3):
        seen = outcome(of + (RELU if of is MICROGRAD else TANH) + LOOPS[form], "9 train", seed)
        assert seen.kind == "", seen.says


@pytest.mark.parametrize("of", [ENGINE, WENGERT], ids=["by hand", "wengert"])
@pytest.mark.parametrize("slip", NOT_LEARNT)
def test_a_wrong_loop_does_not_pass(slip: str, of: str) -> None:
    for seed in range(3):
        assert outcome(of + TANH + patched(TRAIN, *NOT_LEARNT[slip]), "9 train", seed).kind not in ("", "unfit absent")


def test_what_a_loop_gave_is_shown_beside_what_it_should_give() -> None:
    seen = outcome(ENGINE + TANH + patched(TRAIN, (MOVE, "p.data += rate * p.grad")), "9 train", 1)
    assert seen.says.startswith("train(model, xs, ys, 4, 0.05)[1] should be ")
    seen = outcome(ENGINE + TANH + patched(TRAIN, *NOT_LEARNT["Values for losses"]), "9 train", 1)
    assert seen.says == "train(model, xs, ys, 4, 0.05) gives Values: a loss is a number, its .data"
    seen = outcome(ENGINE + TANH + patched(TRAIN, *NOT_LEARNT["a sum"]), "9 train", 1)
    assert seen.says.endswith(" has the sum of the squared errors as its loss: for their mean, divide it by len(xs)")
