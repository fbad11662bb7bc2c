"""Engines to check: right ones, and what makes them wrong, as replacements of text.

Each wrong engine is the right one with one slip; each half-done one is what somebody has written who has come so far.
"""

from __future__ import annotations

import ast

TUTORIAL = """\"\"\"An engine as the tutorials make it.\"\"\"

import math


class Value:
    def __init__(self, data, _children=(), _op=""):
        self.data = data
        self.grad = 0.0
        self._backward = lambda: None
        self._prev = set(_children)
        self._op = _op

    def __add__(self, other):
        other = other if isinstance(other, Value) else Value(other)
        out = Value(self.data + other.data, (self, other), "+")

        def _backward():
            self.grad += out.grad
            other.grad += out.grad

        out._backward = _backward
        return out

    def __mul__(self, other):
        other = other if isinstance(other, Value) else Value(other)
        out = Value(self.data * other.data, (self, other), "*")

        def _backward():
            self.grad += other.data * out.grad
            other.grad += self.data * out.grad

        out._backward = _backward
        return out

    def __pow__(self, other):
        assert isinstance(other, (int, float)), "only powers that are numbers"
        out = Value(self.data**other, (self,), f"**{other}")

        def _backward():
            self.grad += other * self.data ** (other - 1) * out.grad

        out._backward = _backward
        return out

    def relu(self):
        out = Value(0.0 if self.data < 0 else self.data, (self,), "ReLU")

        def _backward():
            self.grad += (out.data > 0) * out.grad

        out._backward = _backward
        return out

    def tanh(self):
        t = math.tanh(self.data)
        out = Value(t, (self,), "tanh")

        def _backward():
            self.grad += (1 - t**2) * out.grad

        out._backward = _backward
        return out

    def exp(self):
        out = Value(math.exp(self.data), (self,), "exp")

        def _backward():
            self.grad += out.data * out.grad

        out._backward = _backward
        return out

    def backward(self):
        topo, visited = [], set()

        def build(v):
            if v not in visited:
                visited.add(v)
                for child in v._prev:
                    build(child)
                topo.append(v)

        build(self)
        self.grad = 1.0
        for v in reversed(topo):
            v._backward()

    def __neg__(self):
        return self * -1

    def __sub__(self, other):
        return self + (-other)

    def __truediv__(self, other):
        return self * other**-1

    def __radd__(self, other):
        return self + other

    def __rmul__(self, other):
        return self * other

    def __rsub__(self, other):
        return other + (-self)

    def __rtruediv__(self, other):
        return other * self**-1
"""

PLAIN = """import math


class Value:
    def __init__(self, data, operands=(), partials=()):
        self.data = data
        self.grad = 0.0
        self.operands = operands
        self.partials = partials

    def __add__(self, other):
        other = wrapped(other)
        return Value(self.data + other.data, (self, other), (1.0, 1.0))

    def __mul__(self, other):
        other = wrapped(other)
        return Value(self.data * other.data, (self, other), (other.data, self.data))

    def __pow__(self, n):
        if self.data < 0 and n != int(n):
            raise ValueError(f"({self.data}) ** {n} is no real number")
        return Value(self.data**n, (self,), (n * self.data ** (n - 1),))

    def __neg__(self):
        return self * -1

    def __sub__(self, other):
        return self + -other

    def __truediv__(self, other):
        return self * other**-1

    def __radd__(self, other):
        return self + other

    def __rmul__(self, other):
        return self * other

    def __rsub__(self, other):
        return -self + other

    def __rtruediv__(self, other):
        return self**-1 * other

    def relu(self):
        return Value(max(self.data, 0.0), (self,), (float(self.data > 0),))

    def tanh(self):
        t = math.tanh(self.data)
        return Value(t, (self,), (1 - t * t,))

    def exp(self):
        e = math.exp(self.data)
        return Value(e, (self,), (e,))

    def log(self):
        return Value(math.log(self.data), (self,), (1 / self.data,))

    def sigmoid(self):
        s = 0.5 * (1 + math.tanh(0.5 * self.data))
        return Value(s, (self,), (s * (1 - s),))

    def backward(self):
        order, visited, stack = [], set(), [(self, False)]
        while stack:
            node, done = stack.pop()
            if done:
                order.append(node)
            elif node not in visited:
                visited.add(node)
                stack.append((node, True))
                stack.extend((operand, False) for operand in node.operands)
        for node in order:
            if node.operands:
                node.grad = 0.0
        self.grad = 1.0
        for node in reversed(order):
            for operand, partial in zip(node.operands, node.partials):
                operand.grad += partial * node.grad


def wrapped(x):
    return x if isinstance(x, Value) else Value(x)
"""
"""An engine of another make, without closures; it is right in any order of calls, too."""

ADD = "            self.grad += out.grad\n            other.grad += out.grad"
MUL = "            self.grad += other.data * out.grad\n            other.grad += self.data * out.grad"
WALK = """        topo, visited = [], set()

        def build(v):
            if v not in visited:
                visited.add(v)
                for child in v._prev:
                    build(child)
                topo.append(v)

        build(self)
        self.grad = 1.0
        for v in reversed(topo):
            v._backward()
"""
LIST = ("set(_children)", "tuple(_children)")
WRAP = "        other = other if isinstance(other, Value) else Value(other)\n"
Patch = tuple[str, str]

WRONG: dict[str, tuple[str, list[Patch]]] = {
    "overwrites": (
        "overwritten gradients",
        [("grad += out.grad", "grad = out.grad"), (".grad += ", ".grad = ")],
    ),
    "overwrites_in_add": ("overwritten gradients", [(ADD, ADD.replace("+=", "="))]),
    "swapped_factors": (
        "swapped factors",
        [(MUL, MUL.replace("self.data", "x").replace("other.data", "self.data").replace("x", "other.data"))],
    ),
    "rsub_exchanged": ("reflected operands exchanged", [("return other + (-self)", "return self - other")]),
    "preorder": (
        "walk order",
        [
            LIST,
            (
                WALK,
                """        stack, visited = [self], set()
        self.grad = 1.0
        while stack:
            v = stack.pop()
            if v in visited:
                continue
            visited.add(v)
            v._backward()
            stack.extend(v._prev)
""",
            ),
        ],
    ),
    "breadth_first": (
        "walk order",
        [
            LIST,
            (
                WALK,
                """        self.grad = 1.0
        queue, visited = [self], {self}
        while queue:
            v = queue.pop(0)
            v._backward()
            for child in v._prev:
                if child not in visited:
                    visited.add(child)
                    queue.append(child)
""",
            ),
        ],
    ),
    "not_reversed": ("walk order", [("reversed(topo)", "topo")]),
    "operands_behind": (
        "walk order",
        [
            ("                visited.add(v)\n", "                visited.add(v)\n                topo.append(v)\n"),
            (
                "                    build(child)\n                topo.append(v)\n",
                "                    build(child)\n",
            ),
        ],
    ),
    "result_only": ("root only", [(WALK, "        self.grad = 1.0\n        self._backward()\n")]),
    "no_set": (
        "visited again",
        [
            (
                WALK,
                """        topo = []

        def build(v):
            for child in v._prev:
                build(child)
            topo.append(v)

        build(self)
        self.grad = 1.0
        for v in reversed(topo):
            v._backward()
""",
            )
        ],
    ),
    "revisits": (
        "visited again",
        [
            LIST,
            (
                "    def backward(self):\n" + WALK,
                """    def backward(self, first=True):
        if first:
            self.grad = 1.0
        self._backward()
        for child in self._prev:
            child.backward(first=False)
""",
            ),
        ],
    ),
    "every_path": (
        "visited again",
        [
            LIST,
            (
                "    def backward(self):\n" + WALK,
                '''    def backward(self, gradient=1.0):
        self.grad += gradient
        for child, partial in self._partials():
            child.backward(gradient * partial)

    def _partials(self):
        """The partial derivative by each operand, from what _backward() makes of a gradient of 1."""
        kept = [(node, node.grad) for node in (self, *self._prev)]
        found = []
        for node in (self, *self._prev):
            node.grad = 0.0
        self.grad = 1.0
        self._backward()
        for child in dict.fromkeys(self._prev):
            found.append((child, child.grad))
        for node, grad in kept:
            node.grad = grad
        return found
''',
            ),
        ],
    ),
    "seeds_everywhere": (
        "seeded everywhere",
        [
            LIST,
            (
                WALK,
                """        self.grad = 1.0
        self._backward()
        for child in self._prev:
            child.backward()
""",
            ),
        ],
    ),
    "no_seed": ("no seed", [("        self.grad = 1.0\n", "")]),
    "seed_in_data": ("seed in data", [("        self.grad = 1.0\n", "        self.data = 1.0\n")]),
    "power_without_factor": ("power rule", [("other * self.data ** (other - 1)", "self.data ** (other - 1)")]),
    "power_not_lowered": ("power rule", [("other * self.data ** (other - 1)", "other * self.data**other")]),
    "power_precedence": (
        "precedence",
        [("other * self.data ** (other - 1) * out", "other * self.data ** other - 1 * out")],
    ),
    "tanh_of_input": ("tanh rule", [("(1 - t**2)", "(1 - self.data**2)")]),
    "tanh_precedence": ("precedence", [("(1 - t**2) * out.grad", "1 - t**2 * out.grad")]),
    "relu_passes_all": ("relu rule", [("(out.data > 0) * out.grad", "out.grad")]),
    "chain_rule_forgotten": ("chain rule", [("self.grad += out.data * out.grad", "self.grad += out.data")]),
    "exponential_by_power_rule": (
        "exp rule",
        [("out.data * out.grad", "self.data * math.exp(self.data - 1) * out.grad")],
    ),
    "quotient_own_rule": (
        "quotient rule",
        [
            (
                "        return self * other**-1",
                WRAP
                + """        out = Value(self.data / other.data, (self, other), "/")

        def _backward():
            self.grad += 1 / other.data * out.grad
            other.grad += self.data / other.data**2 * out.grad

        out._backward = _backward
        return out""",
            )
        ],
    ),
    "numbers_not_wrapped": (
        "number not wrapped",
        [(WRAP + "        out = Value(self.data * ", "        out = Value(self.data * ")],
    ),
    "returns_nothing": (
        "nothing returned",
        [
            (
                MUL + "\n\n        out._backward = _backward\n        return out\n",
                MUL + "\n\n        out._backward = _backward\n",
            )
        ],
    ),
    "operands_in_a_set": (
        "same operand counted once",
        [
            (
                ADD,
                """            for operand, partial in {self: 1.0, other: 1.0}.items():
                operand.grad += partial * out.grad""",
            )
        ],
    ),
    "zeroes_leaves": (
        "gradients zeroed",
        [("        self.grad = 1.0\n", "        for v in topo:\n            v.grad = 0.0\n        self.grad = 1.0\n")],
    ),
    "visited_kept": (
        "visited kept",
        [("backward(self):\n        topo, visited = [], set()\n", "backward(self, topo=[], visited=set()):\n")],
    ),
    "equal_by_value": (
        "equality by value",
        [
            (
                "        return other * self**-1\n",
                """        return other * self**-1

    def __eq__(self, other):
        return self.data == (other.data if isinstance(other, Value) else other)

    def __hash__(self):
        return hash(self.data)
""",
            )
        ],
    ),
    "closure_called": (
        "closure called",
        [(ADD + "\n\n        out._backward = _backward\n", ADD + "\n\n        out._backward = _backward()\n")],
    ),
    "closure_not_assigned": (
        "closure not assigned",
        [("(1 - t**2) * out.grad\n\n        out._backward = _backward\n", "(1 - t**2) * out.grad\n\n")],
    ),
    "left_number_twice": (
        "wrong operand",
        [("self.grad += other.data * out.grad", "self.grad += self.data * out.grad")],
    ),
    "sum_of_left": ("wrong value", [("self.data + other.data", "self.data + self.data")]),
    "operands_not_passed_on": (
        "operand not passed on",
        [(', (self, other), "+")', ")"), (', (self, other), "*")', ")")],
    ),
    "one_operand_passed_on": ("operand not passed on", [('(self, other), "*"', '(self,), "*"')]),
    "numbers_passed_on": ("no Values in _prev", [('(self, other), "', '(self.data, other.data), "')]),
}
"""Name -> the only slip that is to be named, and what is to be replaced in TUTORIAL."""

NOTED: dict[str, tuple[str, list[Patch]]] = {
    "naive_tanh": (
        "overflow",
        [("t = math.tanh(self.data)", "t = (math.exp(2 * self.data) - 1) / (math.exp(2 * self.data) + 1)")],
    ),
    "seed_added": ("second backward", [("        self.grad = 1.0\n", "        self.grad += 1.0\n")]),
    "visited_in_a_list": ("visited in a list", [("[], set()", "[], []"), ("visited.add(v)", "visited.append(v)")]),
}
"""Likewise, where the slip is told and does not count."""


EXPONENTIAL = ("revisits", "every_path", "no_set", "seeds_everywhere")
"""Engines that go from path to path, and reach the end of their time."""


def patched(patches: list[Patch], text: str = TUTORIAL) -> str:
    """The engine with its slip."""
    for old, new in patches:
        assert old in text, old
        text = text.replace(old, new)
    return text


def only(*names: str, patches: tuple[Patch, ...] = ()) -> str:
    """Those methods of the engine alone."""
    module = ast.parse(TUTORIAL)
    value = module.body[-1]
    assert isinstance(value, ast.ClassDef)
    lines = TUTORIAL.splitlines(keepends=True)
    chosen = ["".join(lines[f.lineno - 1 : f.end_lineno]) for f in value.body if getattr(f, "name", "") in names]
    return patched(list(patches), "import math\n\n\nclass Value:\n" + "\n".join(chosen))


# -- half-done engines: what somebody has written who has come so far ---------------------------------------------------

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
LOCAL = only("__init__", "__add__", "__mul__", "tanh")
FIRST_PASS = only("__init__", "__add__", "__mul__", "tanh", "backward")
MOST = only("__init__", "__add__", "__mul__", "__radd__", "__rmul__", "__neg__", "__sub__", "tanh", "backward")

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
    "nothing by hand yet": (3, GRAPH, [], ["L = (a * b + c) * f", "o = tanh(x1 * w1 + x2 * w2 + b)"]),
    "by hand": (3, BY_HAND, [], ["o = tanh(x1 * w1 + x2 * w2 + b)"]),
    "by hand, half the way": (
        None,
        BY_HAND.partition("b.grad")[0],
        [],
        ["dL/da", "dL/db", "o = tanh(x1 * w1 + x2 * w2 + b)"],
    ),
    "by hand, without the chain rule": (
        3,
        BY_HAND.replace("a.grad = 6.0", "a.grad = -3.0").replace("c.grad = -2.0", "c.grad = 1.0"),
        ["chain rule", "chain rule"],
        ["o = tanh(x1 * w1 + x2 * w2 + b)"],
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
        patched([(MUL + "\n\n        out._backward = _backward\n", MUL + "\n\n")], LOCAL),
        ["closure not assigned"],
        [],
    ),
    "tanh without its brackets": (4, patched(WRONG["tanh_precedence"][1], LOCAL), ["precedence"], []),
    "factors exchanged": (4, patched(WRONG["swapped_factors"][1], LOCAL), ["swapped factors"], []),
    "a constant gradient": (4, patched([("+= out.grad", "+= 1.0")], LOCAL), ["chain rule"], []),
    "no backward yet": (5, LOCAL, [], ["gradients inside an expression"]),
    "a first pass": (5, FIRST_PASS, [], []),
    "a first pass that overwrites": (5, FIRST_PASS.replace(".grad += ", ".grad = "), [], []),
    "a pass that begins at the leaves": (5, patched([("reversed(topo)", "topo")], FIRST_PASS), ["walk order"], []),
    "a sort without its set": (5, patched(WRONG["no_set"][1], FIRST_PASS), ["visited again"], []),
    "a pass without a seed": (5, patched(WRONG["no_seed"][1], FIRST_PASS), ["no seed"], []),
    "used twice": (None, FIRST_PASS, [], []),
    "used twice, overwritten": (6, FIRST_PASS.replace(".grad += ", ".grad = "), ["overwritten gradients"], []),
    "half of the operators": (None, MOST, [], ["a ** n", "a / b", "a / 4"]),
    "half of the operators, by the book": (7, MOST, [], ["a ** n", "a / b", "a / 4", "a.exp()"]),
    "a difference that adds": (
        7,
        patched(
            [("return self + (-other)", "return self + other")],
            only(
                *[
                    "__init__",
                    "__add__",
                    "__mul__",
                    "__radd__",
                    "__rmul__",
                    "__neg__",
                    "__sub__",
                    "__pow__",
                    "__truediv__",
                    "tanh",
                    "exp",
                    "backward",
                ]
            ),
        ),
        ["wrong value"],
        [],
    ),
}
"""Name -> the step that is given, the program, the slips that are to be named, and what is to be told as not there."""

# -- the tutorials' finished engines ------------------------------------------------------------------------------------

ARITHMETIC = [
    "__init__",
    "__add__",
    "__mul__",
    "__pow__",
    "__radd__",
    "__rmul__",
    "__neg__",
    "__sub__",
    "__truediv__",
    "backward",
]
FINISHED: dict[str, str] = {
    "tanh from exp": only(
        *ARITHMETIC,
        "exp",
        "tanh",
        patches=(("t = math.tanh(self.data)", "t = (math.exp(2 * self.data) - 1) / (math.exp(2 * self.data) + 1)"),),
    ),
    "every operator but 1 / v": only(*ARITHMETIC, "__rsub__", "tanh", "relu", "exp"),
    "relu alone": only(*ARITHMETIC, "relu", patches=(("self.data = data", "self.data = float(data)"),)),
    "all of it": TUTORIAL,
    "another make": PLAIN,
}

SHOWN = {
    "right.py": PLAIN,
    "swapped_factors.py": patched(WRONG["swapped_factors"][1]),
    "preorder.py": patched(WRONG["preorder"][1]),
    "half_done.py": patched(WRONG["tanh_precedence"][1], LOCAL).replace("__mul__", "times"),
}
"""What the documentation shows the reports of."""
