"""Engines that are half done: each is what somebody has written who has come so far."""

from __future__ import annotations

from tests.engines import ARITHMETIC, MUL, PLAIN, WRAP, only, patched, wrong
from wengert_course.checks.by_hand import NEURON

BARE = """class Value:
    def __init__(self, data):
        self.data = data

    def __repr__(self):
        return f"Value({self.data})"
"""
SUM = """
    def __add__(self, other):
        other = other if isinstance(other, Value) else Value(other)
        return Value(self.data + other.data)
"""
PRODUCT = SUM.replace("add", "mul").replace("self.data + other", "self.data * other")
GRAPH = """class Value:
    def __init__(self, data, _children=(), _op="", label=""):
        self.data = data
        self.grad = 0.0
        self._prev = set(_children)
        self._op = _op
        self.label = label

    def __repr__(self):
        return f"Value(data={self.data})"

    def __add__(self, other):
        other = other if isinstance(other, Value) else Value(other)
        return Value(self.data + other.data, (self, other), "+")

    def __mul__(self, other):
        other = other if isinstance(other, Value) else Value(other)
        return Value(self.data * other.data, (self, other), "*")
"""
BY_HAND = (
    GRAPH
    + """

a, b, c, f = Value(2.0), Value(-3.0), Value(10.0), Value(-2.0)
e = a * b
d = e + c
L = d * f
L.grad = 1.0
f.grad = 4.0
d.grad = -2.0
e.grad = -2.0
c.grad = -2.0
b.grad = -4.0
a.grad = 6.0
"""
)
LOCAL = only("__init__ __add__ __mul__ tanh")
FIRST_PASS = only("__init__ __add__ __mul__ tanh backward")
MOST = only("__init__ __add__ __mul__ __radd__ __rmul__ __neg__ __sub__ tanh backward")

HALF: dict[str, tuple[int | None, str, list[str], list[str]]] = {
    # step, text, the slips, the rows that are not there yet
    "an empty class": (
        1,
        "class Value:\n    pass\n",
        [],
        ["Value(2.0)", "repr(a)", "a + b", "a + 3", "a * b", "a * 3"],
    ),
    "a number is kept": (
        1,
        "class Value:\n    def __init__(self, data):\n        self.data = data\n",
        [],
        ["repr(a)", "a + b", "a + 3", "a * b", "a * 3"],
    ),
    "a gradient before a number": (
        3,
        "class Value:\n    def __init__(self, number):\n        self.number, self.grad = number, 0.0\n",
        [],
        [
            "Value(2.0)",
            "a + b",
            "a + 3",
            "a * b",
            "a * 3",
            "L = (a * b + c) * f",
            NEURON,
        ],
    ),
    "a number that prints": (1, BARE.replace("= data", "= data; print(data)") + SUM, [], ["a * b", "a * 3"]),
    "numbers are not made Values yet": (1, BARE + (SUM + PRODUCT).replace(WRAP, ""), [], ["a + 3", "a * 3"]),
    "a number remembers": (1, BARE + SUM + PRODUCT, [], []),
    "the sum is printed, not returned": (
        1,
        BARE + SUM.replace("return Value", "print") + PRODUCT,
        ["nothing returned"],
        [],
    ),
    "a plain sum is returned": (
        1,
        BARE + SUM.replace("Value(self.data + other.data)", "self.data + other.data") + PRODUCT,
        ["no Value returned"],
        [],
    ),
    "the sum was copied for the product": (1, BARE + SUM + SUM.replace("add", "mul"), ["wrong value"], []),
    "the left operand is changed": (
        1,
        BARE
        + SUM.replace("return Value(self.data + other.data)", "self.data += other.data\n        return self")
        + PRODUCT,
        ["operand changed"],
        [],
    ),
    "a Value in a Value": (
        1,
        BARE + SUM.replace("self.data + other.data", "Value(self.data + other.data)") + PRODUCT,
        ["Value in a Value"],
        [],
    ),
    "a number and a Value are added": (
        1,
        BARE + SUM.replace("other.data", "other") + PRODUCT,
        ["number and Value mixed"],
        [],
    ),
    "cut to whole numbers": (1, BARE.replace("= data", "= int(data)") + SUM + PRODUCT, ["wrong value"], []),
    "no graph yet": (2, BARE + SUM + PRODUCT, [], ["c._prev", "c._op", "Value(2.0, label='a')"]),
    "operands without symbols": (
        2,
        GRAPH.replace(', "+"', "")
        .replace(', "*"', "")
        .replace(', _op="", label=""', "")
        .replace("= _op", "= ''")
        .replace("= label", "= ''"),
        [],
        ["c._op", "Value(2.0, label='a')"],
    ),
    "a graph": (2, GRAPH, [], []),
    "operands are not passed on": (2, GRAPH.replace(", (self, other)", ", ()"), ["operand not passed on"], []),
    "one operand is passed on": (2, GRAPH.replace('(self, other), "*"', '(self,), "*"'), ["operand not passed on"], []),
    "numbers are passed on": (
        2,
        GRAPH.replace('(self, other), "', '(self.data, other.data), "'),
        ["no Values in _prev"],
        [],
    ),
    "a symbol that was copied": (2, GRAPH.replace('"*"', '"+"'), ["symbol"], []),
    "nothing by hand yet": (3, GRAPH, [], ["L = (a * b + c) * f", NEURON]),
    "by hand": (3, BY_HAND, [], [NEURON]),
    "by hand, half the way": (
        None,
        BY_HAND.partition("b.grad")[0],
        [],
        ["dL/da", "dL/db", NEURON],
    ),
    "by hand, without the chain rule": (
        3,
        BY_HAND.replace("a.grad = 6.0", "a.grad = -3.0").replace("c.grad = -2.0", "c.grad = 1.0"),
        ["chain rule", "chain rule"],
        [NEURON],
    ),
    "no closure yet": (4, GRAPH, [], ["a + b", "a * b", "a.tanh()"]),
    "the closure of the sum": (None, LOCAL.partition("    def __mul__")[0], [], ["a * b", "a * 3", "a.tanh()"]),
    "closures": (4, LOCAL, [], []),
    "closures that overwrite": (4, LOCAL.replace("+=", "="), [], []),
    "a closure is called": (
        4,
        LOCAL.replace("out._backward = _backward\n", "out._backward = _backward()\n", 1),
        ["closure called"],
        [],
    ),
    "a closure is not assigned": (
        4,
        patched((MUL + "\n\n        out._backward = _backward\n", MUL + "\n\n"), text=LOCAL),
        ["closure not assigned"],
        [],
    ),
    "tanh without its brackets": (4, wrong("tanh_precedence", LOCAL), ["precedence"], []),
    "factors exchanged": (4, wrong("swapped_factors", LOCAL), ["swapped factors"], []),
    "a constant gradient": (4, patched(("+= out.grad", "+= 1.0"), text=LOCAL), ["chain rule"], []),
    "no backward yet": (5, LOCAL, [], ["gradients inside an expression"]),
    "a first pass": (5, FIRST_PASS, [], []),
    "a first pass that overwrites": (5, FIRST_PASS.replace(".grad += ", ".grad = "), [], []),
    "a pass that begins at the leaves": (5, patched(("reversed(topo)", "topo"), text=FIRST_PASS), ["walk order"], []),
    "a sort without its set": (5, wrong("no_set", FIRST_PASS), ["visited again"], []),
    "a pass without a seed": (5, wrong("no_seed", FIRST_PASS), ["no seed"], []),
    "used twice": (None, FIRST_PASS, [], []),
    "used twice, overwritten": (6, FIRST_PASS.replace(".grad += ", ".grad = "), ["overwritten gradients"], []),
    "half of the operators": (None, MOST, [], ["a ** n", "a / b", "a / 4"]),
    "half of the operators, by the book": (
        7,
        MOST,
        [],
        ["3 - a", "a ** n", "a / b", "a / 4", "4 / a", "a.exp()"],
    ),
    "a difference that adds": (
        7,
        only(f"{ARITHMETIC} tanh exp", ("return self + (-other)", "return self + other")),
        ["wrong value"],
        ["3 - a", "4 / a"],
    ),
}
"""Name -> the step that is given, the program, the slips that are to be named, and what is to be told as not there."""

SHOWN = {
    "right.py": PLAIN,
    "swapped_factors.py": wrong("swapped_factors"),
    "preorder.py": wrong("preorder"),
    "half_done.py": wrong("tanh_precedence", LOCAL).replace("__mul__", "times"),
}
"""What the documentation shows the reports of."""
