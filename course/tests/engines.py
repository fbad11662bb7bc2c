"""Engines to check: right ones, and what makes them wrong, as replacements of text.

Each wrong engine is the right one with one slip.
"""

from __future__ import annotations

import ast
from typing import Any

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

WRONG: dict[str, tuple[Any, ...]] = {
    "overwrites": (
        "overwritten gradients",
        ("grad += out.grad", "grad = out.grad"),
        (".grad += ", ".grad = "),
    ),
    "overwrites_in_add": ("overwritten gradients", (ADD, ADD.replace("+=", "="))),
    "swapped_factors": (
        "swapped factors",
        (MUL, MUL.replace("self.data", "x").replace("other.data", "self.data").replace("x", "other.data")),
    ),
    "rsub_exchanged": ("reflected operands exchanged", ("return other + (-self)", "return self - other")),
    "preorder": (
        "walk order",
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
    ),
    "breadth_first": (
        "walk order",
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
    ),
    "not_reversed": ("walk order", ("reversed(topo)", "topo")),
    "operands_behind": (
        "walk order",
        ("                visited.add(v)\n", "                visited.add(v)\n                topo.append(v)\n"),
        (
            "                    build(child)\n                topo.append(v)\n",
            "                    build(child)\n",
        ),
    ),
    "result_only": ("root only", (WALK, "        self.grad = 1.0\n        self._backward()\n")),
    "no_set": (
        "visited again",
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
        ),
    ),
    "revisits": (
        "visited again",
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
    ),
    "every_path": (
        "visited again",
        LIST,
        (
            "    def backward(self):\n" + WALK,
            '''    def backward(self, gradient=1.0):
        self.grad += gradient
        for child, partial in self._partials():
            child.backward(gradient * partial)

    def _partials(self):
        """The partial derivative with respect to each operand: what _backward() makes of a gradient of 1."""
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
    ),
    "seeds_everywhere": (
        "seeded everywhere",
        LIST,
        (
            WALK,
            """        self.grad = 1.0
        self._backward()
        for child in self._prev:
            child.backward()
""",
        ),
    ),
    "no_seed": ("no seed", ("        self.grad = 1.0\n", "")),
    "seed_in_data": ("seed in data", ("        self.grad = 1.0\n", "        self.data = 1.0\n")),
    "power_without_factor": ("power rule", ("other * self.data ** (other - 1)", "self.data ** (other - 1)")),
    "power_not_lowered": ("power rule", ("other * self.data ** (other - 1)", "other * self.data**other")),
    "power_precedence": (
        "precedence",
        ("other * self.data ** (other - 1) * out", "other * self.data ** other - 1 * out"),
    ),
    "tanh_of_input": ("tanh rule", ("(1 - t**2)", "(1 - self.data**2)")),
    "tanh_precedence": ("precedence", ("(1 - t**2) * out.grad", "1 - t**2 * out.grad")),
    "relu_passes_all": ("relu rule", ("(out.data > 0) * out.grad", "out.grad")),
    "chain_rule_forgotten": ("chain rule", ("self.grad += out.data * out.grad", "self.grad += out.data")),
    "exponential_by_power_rule": (
        "exp rule",
        ("out.data * out.grad", "self.data * math.exp(self.data - 1) * out.grad"),
    ),
    "quotient_own_rule": (
        "quotient rule",
        (
            "        return self * other**-1",
            WRAP
            + """        out = Value(self.data / other.data, (self, other), "/")

        def _backward():
            self.grad += 1 / other.data * out.grad
            other.grad += self.data / other.data**2 * out.grad

        out._backward = _backward
        return out""",
        ),
    ),
    "numbers_not_wrapped": (
        "number not wrapped",
        (WRAP + "        out = Value(self.data * ", "        out = Value(self.data * "),
    ),
    "returns_nothing": (
        "nothing returned",
        (
            MUL + "\n\n        out._backward = _backward\n        return out\n",
            MUL + "\n\n        out._backward = _backward\n",
        ),
    ),
    "operands_in_a_set": (
        "same operand counted once",
        (
            ADD,
            """            for operand, partial in {self: 1.0, other: 1.0}.items():
                operand.grad += partial * out.grad""",
        ),
    ),
    "zeroes_leaves": (
        "gradients zeroed",
        ("        self.grad = 1.0\n", "        for v in topo:\n            v.grad = 0.0\n        self.grad = 1.0\n"),
    ),
    "visited_kept": (
        "visited kept",
        ("backward(self):\n        topo, visited = [], set()\n", "backward(self, topo=[], visited=set()):\n"),
    ),
    "equal_by_value": (
        "equality by value",
        (
            "        return other * self**-1\n",
            """        return other * self**-1

    def __eq__(self, other):
        return self.data == (other.data if isinstance(other, Value) else other)

    def __hash__(self):
        return hash(self.data)
""",
        ),
    ),
    "closure_called": (
        "closure called",
        (ADD + "\n\n        out._backward = _backward\n", ADD + "\n\n        out._backward = _backward()\n"),
    ),
    "closure_not_assigned": (
        "closure not assigned",
        ("(1 - t**2) * out.grad\n\n        out._backward = _backward\n", "(1 - t**2) * out.grad\n\n"),
    ),
    "left_number_twice": (
        "wrong operand",
        ("self.grad += other.data * out.grad", "self.grad += self.data * out.grad"),
    ),
    "sum_of_left": ("wrong value", ("self.data + other.data", "self.data + self.data")),
    "operands_not_passed_on": (
        "operand not passed on",
        (', (self, other), "+")', ")"),
        (', (self, other), "*")', ")"),
    ),
    "one_operand_passed_on": ("operand not passed on", ('(self, other), "*"', '(self,), "*"')),
    "numbers_passed_on": ("no Values in _prev", ('(self, other), "', '(self.data, other.data), "')),
}
"""Name -> the only slip that is to be named, and what is to be replaced in TUTORIAL."""

NOTED: dict[str, tuple[Any, ...]] = {
    "naive_tanh": (
        "overflow",
        ("t = math.tanh(self.data)", "t = (math.exp(2 * self.data) - 1) / (math.exp(2 * self.data) + 1)"),
    ),
    "seed_added": ("second backward", ("        self.grad = 1.0\n", "        self.grad += 1.0\n")),
    "visited_in_a_list": ("visited in a list", ("[], set()", "[], []"), ("visited.add(v)", "visited.append(v)")),
}
"""Likewise, where the slip is told and does not count."""


EXPONENTIAL = ("revisits", "every_path", "no_set", "seeds_everywhere")
"""Engines that go from path to path, and reach the end of their time."""


def wrong(name: str, text: str = TUTORIAL) -> str:
    """The engine with that slip."""
    return patched(*{**WRONG, **NOTED}[name][1:], text=text)


def patched(*patches: Patch, text: str = TUTORIAL) -> str:
    """The engine with those changes."""
    for old, new in patches:
        assert old in text, old
        text = text.replace(old, new)
    return text


def only(names: str, *patches: Patch) -> str:
    """Those methods of the engine alone, whose names stand with blanks between them."""
    module = ast.parse(TUTORIAL)
    value = module.body[-1]
    assert isinstance(value, ast.ClassDef)
    lines = TUTORIAL.splitlines(keepends=True)
    chosen = [
        "".join(lines[f.lineno - 1 : f.end_lineno]) for f in value.body if getattr(f, "name", "") in names.split()
    ]
    return patched(*patches, text="import math\n\n\nclass Value:\n" + "\n".join(chosen))


# -- the tutorials' finished engines ------------------------------------------------------------------------------------

ARITHMETIC = "__init__ __add__ __mul__ __pow__ __radd__ __rmul__ __neg__ __sub__ __truediv__ backward"
NAIVE = ("t = math.tanh(self.data)", "t = (math.exp(2 * self.data) - 1) / (math.exp(2 * self.data) + 1)")
FINISHED: dict[str, str] = {
    "tanh from exp": only(f"{ARITHMETIC} exp tanh", NAIVE),
    "every operator but 1 / v": only(f"{ARITHMETIC} __rsub__ tanh relu exp"),
    "relu alone": only(f"{ARITHMETIC} relu", ("self.data = data", "self.data = float(data)")),
    "all of it": TUTORIAL,
    "another make": PLAIN,
}
