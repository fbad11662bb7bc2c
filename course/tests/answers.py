"""Answers to the gaps of the engine's lessons, 1 to 7, written from the text of each lesson alone.

A right one is all that stands in a gap; a wrong one is that too, or a change of ours.
"""

from __future__ import annotations

import textwrap

Change = tuple[str, str]


def method(text: str) -> str:
    return textwrap.indent(textwrap.dedent(text).strip("\n"), "    ")


def each(template: str, *parts: str) -> list[str]:
    return [template.replace("@", part) for part in parts]


WRAP = "        other = other if isinstance(other, Value) else Value(other)\n"

# ------------------------------------------------------------------------------------- lesson 1

REPR = [
    *each(
        "    def __repr__(self):\n        return @",
        '"Value(" + str(self.data) + ")"',
        '"Value({})".format(self.data)',
        '"Value(%s)" % self.data',
        'f"{type(self).__name__}({self.data!r})"',
        'f"Value(data={self.data:.4f})"',
    ),
    '    __repr__ = lambda self: f"Value({self.data})"',
]
NO_REPR: list[Change | str] = [
    ("return", "print"),
    ("(self)", "()"),
    ('f"Value({self.data})"', '"Value"'),
    ('f"Value', '"Value'),
    ('f"Value({self.data})"', "self.data"),
    ("__repr__", "__str__"),
    ("__repr__", "repr"),
    ("{self.data}", "{int(self.data)}"),
    ("{self.data}", "{abs(self.data)}"),
    ("{self.data}", "{-self.data}"),
    ("{self.data}", "{data}"),
    ("{self.data}", "{self.data:.0f}"),
    ("{self.data}", "{2.0}"),
    ('return f"Value({self.data})"', "pass"),
]


def binary(name: str, sign: str) -> list[str]:
    """An operator of two Values, or of a Value and a number, in several styles."""
    forms = """
    def NAME(self, other):
        if not isinstance(other, Value):
            other = Value(other)
        return Value(self.data SIGN other.data)
    ---
    def NAME(self, other):
        n = other.data if isinstance(other, Value) else other
        return Value(self.data SIGN n)
    ---
    def NAME(self, other):
        return Value(self.data SIGN getattr(other, "data", other))
    ---
    def NAME(self, other):
        try:
            return Value(self.data SIGN other.data)
        except AttributeError:
            return Value(self.data SIGN other)
    ---
    def NAME(a, b):
        if isinstance(b, (int, float)):
            return a SIGN Value(b)
        out = Value(a.data SIGN b.data)
        return out
    ---
    def NAME(self, other):
        x, y = self.data, Value(other).data if type(other) != Value else other.data
        result = x SIGN y
        return type(self)(result)
    """
    return [method(form.replace("NAME", name).replace("SIGN", sign)) for form in textwrap.dedent(forms).split("---")]


def not_binary(name: str, sign: str, other: str) -> list[Change | str]:
    """What only looks like it."""
    right = f"return Value(self.data {sign} other.data)"
    return [
        (right, f"return self.data {sign} other.data"),
        (right, f"Value(self.data {sign} other.data)"),
        (right, f"print(self.data {sign} other.data)"),
        (right, f"return Value(self.data {other} other.data)"),
        (right, f"return Value(self.data {sign} self.data)"),
        (right, f"return Value(other.data {sign} other.data)"),
        (right, "return Value(self.data)"),
        (right, f"self.data = self.data {sign} other.data\n        return self"),
        (right, f"other.data = self.data {sign} other.data\n        return other"),
        (right, f"return Value(self {sign} other)"),
        (right, f"return Value(Value(self.data {sign} other.data))"),
        (right, f"return Value(self.data {sign} other)"),
        (right, f"return Value(int(self.data {sign} other.data))"),
        (right, f"return Value(abs(self.data {sign} other.data))"),
        (right, "return other"),
        (WRAP, ""),
        (WRAP, "        other = Value(other) if isinstance(other, int) else other\n"),
        (WRAP, "        other = Value(other) if isinstance(other, float) else other\n"),
        (WRAP, "        other = other if isinstance(other, Value) else Value(0)\n"),
        (f"def {name}(self, other)", f"def {name}(other)"),
        (f"def {name}", f"def {name.strip('_')}"),
    ]


# ------------------------------------------------------------------------------------- lesson 2

INIT = 'def __init__(self, data, _children=(), _op="", label=""):\n'
INITS = [
    method(INIT + "    " + body.replace("; ", "\n    "))
    for body in (
        "self.data = data; self._prev = _children; self._op = _op; self.label = label",
        "self.data = data; self._prev = set(_children); self._op = _op; self.label = label",
        "self.data = data; self._prev = list(_children); self._op = _op; self.label = label",
        "self.data, self._prev, self._op, self.label = data, tuple(_children), _op, label",
        "vars(self).update(data=data, _prev=tuple(_children), _op=_op, label=label)",
        "self.label = label; self._op = _op; self.data = data; self.grad = 0.0; self._prev = (*_children,)",
    )
]
NO_INITS: list[Change | str] = [
    ("tuple(_children)", "()"),
    ("tuple(_children)", "tuple(_children)[:1]"),
    ("tuple(_children)", "tuple(_children)[1:]"),
    ("tuple(_children)", "tuple(x.data for x in _children)"),
    ("tuple(_children)", "(_children,)"),
    ("tuple(_children)", "(self,)"),
    ("tuple(_children)", "None"),
    ("        self._prev = tuple(_children)\n", ""),
    ("self._op = _op", 'self._op = ""'),
    ("self._op = _op", 'self._op = "+"'),
    ("self._op = _op", 'self._op = _op or "+"'),
    ("self._op = _op", "self._op = label"),
    ("self.label = label", 'self.label = ""'),
    ("self.label = label", "self.label = _op"),
    ("        self.label = label\n", ""),
    (', label=""', ""),
    ("self.data = data", "self.data = 0.0"),
    ("self.data = data", "data = self.data"),
]
BOTH = """
    def __add__(self, other):
        other = other if isinstance(other, Value) else Value(other)
        @
    def __mul__(self, other):
        other = other if isinstance(other, Value) else Value(other)
        #
"""


def two(text: str) -> str:
    """A sum, and the same of a product."""
    return BOTH.strip("\n").replace("@", text).replace("#", text.replace("+", "*"))


GRAPHS = [
    two('return Value(self.data + other.data, _children=(self, other), _op="+")\n'),
    two('return Value(self.data + other.data, [self, other], "+")\n'),
    two(
        'out = Value(self.data + other.data)\n        out._prev = (self, other)\n        out._op = "+"\n        return out\n'
    ),
    two('operands = self, other\n        return Value(self.data + other.data, operands, "+")\n'),
    two('return Value(self.data + other.data, (self, other), _op="+", label="")\n'),
    two('return Value(self.data + other.data, {self, other}, "+")\n'),
    """
    def made(self, other, data, op):
        return Value(data, (self, other), op)

    def __add__(self, other):
        other = Value(other) if not isinstance(other, Value) else other
        return self.made(other, self.data + other.data, "+")

    def __mul__(self, other):
        other = Value(other) if not isinstance(other, Value) else other
        return self.made(other, self.data * other.data, "*")
""".strip("\n"),
]
NO_GRAPHS: list[Change | str] = [
    ('(self, other), "+"', '(), "+"'),
    ('(self, other), "+"', '(self), "+"'),
    ('(self, other), "+"', '(self,), "+"'),
    ('(self, other), "+"', '(other,), "+"'),
    ('(self, other), "+"', '(self, self), "+"'),
    ('(self, other), "+"', '(self.data, other.data), "+"'),
    ('(self, other), "+"', "(self, other)"),
    ('(self, other), "+"', '(self, other), "*"'),
    ('(self, other), "*"', '(self,), "*"'),
    ('(self, other), "*"', '(self, other), "+"'),
    ('(self, other), "*"', '"*", (self, other)'),
    ('(self, other), "*"', '(self, Value(other.data)), "*"'),
    ("self.data * other.data", "self.data + other.data"),
    ("return Value(self.data * other.data", "Value(self.data * other.data"),
    ("return Value(self.data + other.data", "return (self.data + other.data"),
    two("n = other.data\n        return Value(self.data + n, (self, other.data), '+')\n"),
    two("return Value(self.data + other.data, (self, other), '+')\n").replace(WRAP, ""),
    """
    def __add__(self, other):
        n = other.data if isinstance(other, Value) else other
        return Value(self.data + n, (self, other), "+")

    def __mul__(self, other):
        n = other.data if isinstance(other, Value) else other
        return Value(self.data * n, (self, other), "*")
""".strip("\n"),
]

# ------------------------------------------------------------------------------------- lesson 3

L_GRADS = [
    "L.grad = 1.0\nd.grad = -2.0\nf.grad = 4.0\ne.grad = -2.0\nc.grad = -2.0\na.grad = 6.0\nb.grad = -4.0",
    "L.grad, d.grad, f.grad = 1, -2, 4\ne.grad = c.grad = d.grad\na.grad, b.grad = -3 * e.grad, 2 * e.grad",
    "L.grad = 1.0\nd.grad, f.grad = L.grad * f.data, L.grad * d.data\nfor x in (e, c):\n    x.grad = d.grad\n"
    "for x, y in ((a, b), (b, a)):\n    x.grad = y.data * e.grad",
    "for x, g in zip((L, d, f, e, c, a, b), (1.0, -2.0, 4.0, -2.0, -2.0, 6.0, -4.0)):\n    x.grad = g",
    "L.grad += 1.0\nd.grad += f.data\nf.grad += d.data\ne.grad += d.grad\nc.grad += d.grad\n"
    "a.grad += e.grad * b.data\nb.grad += e.grad * a.data",
]
NO_L_GRADS: list[Change | str] = [
    ("L.grad = 1.0", "L.grad = L.data"),
    ("L.grad = 1.0", "L = 1.0"),
    ("L.grad = 1.0\n", ""),
    ("d.grad = f.data * L.grad", "d.grad = f * L.grad"),
    ("d.grad = f.data * L.grad", "d.grad = d.data * L.grad"),
    ("d.grad = f.data * L.grad", "d.grad = 1.0"),
    ("e.grad = 1.0 * d.grad", "e.grad = 1.0"),
    ("c.grad = 1.0 * d.grad", "c.grad = c.data * d.grad"),
    ("c.grad = 1.0 * d.grad", "c.grad = -d.grad"),
    ("a.grad = b.data * e.grad", "a.grad = b.data"),
    ("a.grad = b.data * e.grad", "a.grad = a.data * e.grad"),
    ("b.grad = a.data * e.grad", "b.grad = a.data + e.grad"),
    ("b.grad = a.data * e.grad", "b.grad = 0.0"),
    ("b.grad = a.data * e.grad", "b.grad = 12345.0"),
    ("f.grad = d.data * L.grad", "f.gradient = d.data * L.grad"),
]
O_GRADS = [
    "o.grad, n.grad = 1.0, 1 - o.data**2\nbias.grad = both.grad = x1w1.grad = x2w2.grad = n.grad\n"
    "x1.grad, w1.grad = w1.data * n.grad, x1.data * n.grad\nx2.grad, w2.grad = w2.data * n.grad, x2.data * n.grad",
    "for v, g in ((o, 1.0), (n, 0.5), (bias, 0.5), (both, 0.5), (x1w1, 0.5), (x2w2, 0.5)):\n    v.grad = g\n"
    "x1.grad, w1.grad, x2.grad, w2.grad = -1.5, 1.0, 0.5, 0.0",
    "o.grad = 1.0\nn.grad = (1 - math.tanh(n.data) ** 2) * o.grad\nfor v in (bias, both):\n    v.grad = n.grad\n"
    "for v in (x1w1, x2w2):\n    v.grad = both.grad\nfor x, w, v in ((x1, w1, x1w1), (x2, w2, x2w2)):\n"
    "    x.grad = w.data * v.grad\n    w.grad = x.data * v.grad",
    "o.grad = 1\nn.grad = 1 / math.cosh(n.data) ** 2\nbias.grad = n.grad\nboth.grad = n.grad\nx1w1.grad = both.grad\n"
    "x2w2.grad = both.grad\nw1.grad = x1w1.grad * x1.data\nx1.grad = x1w1.grad * w1.data\n"
    "w2.grad = x2w2.grad * x2.data\nx2.grad = x2w2.grad * w2.data",
    "o.grad += 1\nn.grad += (1 - o.data * o.data) * o.grad\nboth.grad += n.grad\nbias.grad += n.grad\n"
    "x1w1.grad += both.grad\nx2w2.grad += both.grad\nx1.grad += w1.data * x1w1.grad\nw1.grad += x1.data * x1w1.grad\n"
    "x2.grad += w2.data * x2w2.grad\nw2.grad += x2.data * x2w2.grad",
]
NO_O_GRADS: list[Change | str] = [
    ("o.grad = 1.0", "o.grad = 0.5"),
    ("(1 - o.data**2) * o.grad", "(1 - n.data**2) * o.grad"),
    ("(1 - o.data**2) * o.grad", "(1 - o.data) * o.grad * 2"),
    ("(1 - o.data**2) * o.grad", "(1 + o.data**2) * o.grad"),
    ("(1 - o.data**2) * o.grad", "(1 - o**2) * o.grad"),
    ("bias.grad = both.grad = n.grad", "bias.grad = n.grad\nboth.grad = 77.0"),
    ("bias.grad = both.grad = n.grad", "bias.grad = 12345.0\nboth.grad = n.grad"),
    ("bias.grad = both.grad = n.grad", "both.grad = n.grad"),
    ("x1w1.grad = x2w2.grad = both.grad", "x1w1.grad = both.grad\nx2w2.grad = 3.0"),
    ("x1w1.grad = x2w2.grad = both.grad", "x1w1.grad = 1.0\nx2w2.grad = 1.0"),
    ("x1.grad, w1.grad = w1.data * x1w1.grad, x1.data * x1w1.grad",
     "w1.grad, x1.grad = w1.data * x1w1.grad, x1.data * x1w1.grad"),
    ("x1.grad, w1.grad = w1.data * x1w1.grad, x1.data * x1w1.grad", "x1.grad, w1.grad = w1.data, x1.data"),
    ("w2.data * x2w2.grad, x2.data * x2w2.grad", "w2.data * x2w2.grad, 1.0"),
    ("w2.data * x2w2.grad, x2.data * x2w2.grad", "-w2.data * x2w2.grad, x2.data * x2w2.grad"),
    ("x2.grad, w2.grad = w2.data * x2w2.grad, x2.data * x2w2.grad", ""),
]  # fmt: skip

# ------------------------------------------------------------------------------------- lessons 4 and 6

MUL = """
    def __mul__(self, other):
        other = other if isinstance(other, Value) else Value(other)
        out = Value(self.data * other.data, (self, other), "*")

        def _backward():
            self.grad = other.data * out.grad
            other.grad = self.data * out.grad

        out._backward = _backward
        return out
""".strip("\n")
MULS = [
    MUL.replace("_backward():\n", "pass_on():\n").replace("= _backward\n", "= pass_on\n"),
    MUL.replace("self.grad = other.data * out.grad\n            other.grad = self.data * out.grad",
                "g = out.grad\n            self.grad, other.grad = g * other.data, g * self.data"),
    MUL.replace("            self.grad = other.data * out.grad\n            other.grad = self.data * out.grad",
                "            for x, y in ((self, other), (other, self)):\n                x.grad = y.data * out.grad"),
    MUL.replace("out.grad", "product.grad").replace("out", "product"),
    """
    def __mul__(self, other):
        if isinstance(other, (int, float)):
            other = Value(other)
        x, y = self.data, other.data
        out = Value(x * y, (self, other), "*")

        def step():
            self.grad += y * out.grad
            other.grad += x * out.grad

        out._backward = step
        return out
""".strip("\n"),
    """
    def __mul__(self, other):
        other = other if isinstance(other, Value) else Value(other)
        out = Value(self.data * other.data, (self, other), "*")
        out._backward = lambda: (setattr(self, "grad", other.data * out.grad), setattr(other, "grad", self.data * out.grad))
        return out
""".strip("\n"),
]  # fmt: skip
NO_MULS: list[Change | str] = [
    ("out._backward = _backward", "out._backward = _backward()"),
    ("        out._backward = _backward\n", ""),
    ("        return out\n", ""),
    ("self.grad = other.data * out.grad", "self.grad = self.data * out.grad"),
    ("other.grad = self.data * out.grad", "other.grad = other.data * out.grad"),
    ("self.grad = other.data * out.grad", "self.grad = other.data"),
    ("other.grad = self.data * out.grad", "other.grad = self.data"),
    ("self.grad = other.data * out.grad", "self.grad = out.grad"),
    ("other.grad = self.data * out.grad", "pass"),
    ("self.grad = other.data * out.grad", "self.grad = other.data * out.data"),
    ("self.grad = other.data * out.grad", "self.grad = other.data + out.grad"),
    ("self.grad = other.data * out.grad", "self.grad = -other.data * out.grad"),
    ("self.grad = other.data * out.grad", "self.data = other.data * out.grad"),
    ("self.grad = other.data * out.grad", "self.grad = other * out.grad"),
    ('(self, other), "*"', '(self), "*"'),
    ("self.data * other.data, (self", "self.data + other.data, (self"),
    (WRAP, ""),
]
TANH = """
    def tanh(self):
        t = math.tanh(self.data)
        out = Value(t, (self,), "tanh")

        def _backward():
            self.grad = (1 - t**2) * out.grad

        out._backward = _backward
        return out
""".strip("\n")
TANHS = [
    TANH.replace("(1 - t**2) * out.grad", "out.grad * (1 - out.data**2)"),
    TANH.replace("(1 - t**2) * out.grad", "out.grad - t * t * out.grad"),
    TANH.replace("(1 - t**2) * out.grad", "(1 + t) * (1 - t) * out.grad"),
    TANH.replace("(1 - t**2) * out.grad", "out.grad / math.cosh(self.data) ** 2"),
    TANH.replace("math.tanh(self.data)", "(math.exp(2 * self.data) - 1) / (math.exp(2 * self.data) + 1)"),
    TANH.replace("(self,)", "[self]").replace("def _backward", "def chain").replace("= _backward", "= chain"),
]
NO_TANHS: list[Change | str] = [
    ("(1 - t**2) * out.grad", "1 - t**2 * out.grad"),
    ("(1 - t**2) * out.grad", "1 - t**2"),
    ("(1 - t**2) * out.grad", "(1 - t) * out.grad"),
    ("(1 - t**2) * out.grad", "(1 - self.data**2) * out.grad"),
    ("(1 - t**2) * out.grad", "(t**2 - 1) * out.grad"),
    ("(1 - t**2) * out.grad", "t * (1 - t) * out.grad"),
    ("(1 - t**2) * out.grad", "(1 - t**2) * out.data"),
    ("(1 - t**2) * out.grad", "out.grad"),
    ("(1 - t**2) * out.grad", "(1 - t**3) * out.grad"),
    ("math.tanh", "math.tan"),
    ("math.tanh", "math.sinh"),
    ('(self,), "tanh"', '(self), "tanh"'),
    ("Value(t, ", "Value(self.data, "),
    ("        out._backward = _backward\n", ""),
    ("out._backward = _backward", "self._backward = _backward"),
    ("        return out\n", "        return t\n"),
    ("def tanh(self)", "def tanh()"),
]

# ------------------------------------------------------------------------------------- lesson 5

BACKWARDS = [
    """
    def backward(self):
        topo, seen = [], set()

        def build(v):
            if v in seen:
                return
            seen.add(v)
            for child in v._prev:
                build(child)
            topo.append(v)

        build(self)
        self.grad = 1.0
        for v in topo[::-1]:
            v._backward()
""",
    """
    def backward(self):
        order, stack, seen = [], [(self, False)], set()
        while stack:
            node, done = stack.pop()
            if done:
                order.append(node)
            elif id(node) not in seen:
                seen.add(id(node))
                stack.append((node, True))
                stack.extend((p, False) for p in node._prev)
        self.grad = 1.0
        while order:
            order.pop()._backward()
""",
    """
    def order(self, found):
        if self not in found:
            for p in self._prev:
                p.order(found)
            found.append(self)
        return found

    def backward(self):
        self.grad = 1
        for node in reversed(self.order([])):
            node._backward()
""",
    """
    def backward(self):
        from graphlib import TopologicalSorter

        graph, todo = {}, [self]
        while todo:
            node = todo.pop()
            if node not in graph:
                graph[node] = set(node._prev)
                todo += node._prev
        self.grad = 1.0
        for node in reversed(list(TopologicalSorter(graph).static_order())):
            node._backward()
""",
    """
    def backward(self):
        uses, todo = {self: 0}, [self]
        for node in todo:
            for p in set(node._prev):
                if p not in uses:
                    uses[p] = 0
                    todo.append(p)
                uses[p] += 1
        self.grad, ready = 1.0, [self]
        while ready:
            node = ready.pop()
            node._backward()
            for p in set(node._prev):
                uses[p] -= 1
                if uses[p] == 0:
                    ready.append(p)
""",
    """
    def backward(self):
        def after(node, done=()):
            for p in node._prev:
                done = after(p, done)
            return done if node in done else (*done, node)

        self.grad = 1.0
        [node._backward() for node in reversed(after(self))]
""",
]
BACKWARDS = [text.strip("\n") for text in BACKWARDS]
WALK = """        for node in reversed(order):
            node._backward()
"""
NO_BACKWARDS: list[Change | str] = [
    ("reversed(order)", "order"),
    ("reversed(order)", "order.reverse()"),
    ("        self.grad = 1.0\n", ""),
    ("        self.grad = 1.0\n", "        self.data = 1.0\n"),
    ("        self.grad = 1.0\n", "        self.grad = 0.0\n"),
    ("        self.grad = 1.0\n", "        self.grad = self.data\n"),
    ("node._backward()", "node._backward"),
    ("node._backward()", "self._backward()"),
    ("node._backward()", "node.backward()"),
    ("if node not in visited:", "if True:"),
    ("                visited.add(node)\n", ""),
    ("                    put(operand)\n", "                    pass\n"),
    ("        put(self)\n", ""),
    ("                for operand in node._prev:\n                    put(operand)\n                order.append(node)\n",
     "                order.append(node)\n                for operand in node._prev:\n                    put(operand)\n"),
    (WALK, "        self._backward()\n"),
    ("        order = []\n        visited = set()\n\n", "        order = [self]\n        visited = set()\n\n"),
    ("    def backward(self):\n        order = []\n        visited = set()\n", "    def backward(self, order=[], visited=set()):\n"),
    "    def backward(self):\n        self.grad = 1.0\n        self._backward()\n        for operand in self._prev:\n            operand.backward()\n",
    "    def backward(self, first=True):\n        if first:\n            self.grad = 1.0\n        self._backward()\n"
    "        for operand in self._prev:\n            operand.backward(False)\n",
]  # fmt: skip

# ------------------------------------------------------------------------------------- lesson 7

POWERS = [
    '    def __pow__(self, n):\n        out = Value(self.data**n, (self,), "**")\n\n        def _backward():\n'
    "            self.grad += @ * out.grad\n\n        out._backward = _backward\n        return out\n\n"
    '    def exp(self):\n        e = math.exp(self.data)\n        out = Value(e, (self,), "exp")\n\n'
    "        def _backward():\n            self.grad += e * out.grad\n\n        out._backward = _backward\n        return out"
]
POWERS = [
    *each(POWERS[0], "n * self.data ** (n - 1)", "(n * pow(self.data, n - 1))", "(self.data ** (n - 1)) * n"),
    POWERS[0].replace("@", "slope").replace('"**")\n', '"**")\n        slope = n * self.data ** (n - 1)\n'),
    POWERS[0].replace("@", "n * self.data ** (n - 1)").replace("math.exp(self.data)", "math.e ** self.data"),
    POWERS[0].replace("@", "n * self.data ** (n - 1)").replace("(self, n):", "(self, n):\n        assert isinstance(n, (int, float))"),
]  # fmt: skip
NO_POWERS: list[Change | str] = [
    ("n * self.data ** (n - 1)", "self.data ** (n - 1)"),
    ("n * self.data ** (n - 1)", "n * self.data ** n"),
    ("n * self.data ** (n - 1)", "n * self.data ** n - 1"),
    ("n * self.data ** (n - 1)", "(n - 1) * self.data ** (n - 1)"),
    ("n * self.data ** (n - 1)", "2 * self.data"),
    ("n * self.data ** (n - 1)", "n * self.data"),
    ("self.data**n, (self,)", "self.data * n, (self,)"),
    ("self.data**n, (self,)", "self.data**n.data, (self,)"),
    ("self.data**n, (self,)", "self.data**int(n), (self,)"),
    ("self.grad += n", "self.grad = n"),
    ("self.grad += out.data * out.grad", "self.grad += out.data"),
    ("self.grad += out.data * out.grad", "self.grad += self.data * out.grad"),
    ("self.grad += out.data * out.grad", "self.grad = out.data * out.grad"),
    ("math.exp(self.data)", "2 ** self.data"),
    ("math.exp(self.data)", "math.exp(-self.data)"),
    ("def exp", "def expo"),
]
SAID = "    def __neg__(self):\n        return {}\n\n    def __sub__(self, other):\n        return {}\n\n    def __truediv__(self, other):\n        return {}"
DIFFERENCES = [
    SAID.format("self * -1.0", "self + (-1 * other if isinstance(other, (int, float)) else -other)", "self * (other ** -1)"),
    SAID.format("self * Value(-1)", "self + other * -1", "self * other ** -1.0"),
    SAID.format("self.__mul__(-1)", "self.__add__(-other)", "self.__mul__(other**-1)"),
    "    def __neg__(self):\n        return self * -1\n\n    def __sub__(self, other):\n        other = other if isinstance(other, Value) else Value(other)\n"
    "        return self + other.__neg__()\n\n    def __truediv__(self, other):\n        other = other if isinstance(other, Value) else Value(other)\n        return self * other**-1",
    """    def __neg__(self):
        out = Value(-self.data, (self,), "-")

        def _backward():
            self.grad -= out.grad

        out._backward = _backward
        return out

    def __sub__(self, other):
        other = other if isinstance(other, Value) else Value(other)
        out = Value(self.data - other.data, (self, other), "-")

        def _backward():
            self.grad += out.grad
            other.grad -= out.grad

        out._backward = _backward
        return out

    def __truediv__(self, other):
        other = other if isinstance(other, Value) else Value(other)
        out = Value(self.data / other.data, (self, other), "/")

        def _backward():
            self.grad += out.grad / other.data
            other.grad -= self.data / other.data**2 * out.grad

        out._backward = _backward
        return out""",
]  # fmt: skip
NO_DIFFERENCES: list[Change | str] = [
    ("return self * -1", "return self"),
    ("return self * -1", "return -self"),
    ("return self * -1", "return Value(-self.data)"),
    ("return self * -1", "return -self.data"),
    ("return self * -1", "self.data = -self.data\n        return self"),
    ("return self + (-other)", "return self + other"),
    ("return self + (-other)", "return other + (-self)"),
    ("return self + (-other)", "return Value(self.data - other.data)"),
    ("return self + (-other)", "return self.data - other.data"),
    ("return self + (-other)", "return -(self + other)"),
    ("return self + (-other)", "return self - other"),
    ("return self * other**-1", "return self * other"),
    ("return self * other**-1", "return other * self**-1"),
    ("return self * other**-1", "return self * -other"),
    ("return self * other**-1", "return self ** -1 * other ** -1"),
    ("return self * other**-1", "return Value(self.data / other.data)"),
    ("return self * other**-1", "return self / other"),
    ("def __truediv__", "def __div__"),
]
TURNED = "    def __radd__(self, other):\n        return {}\n\n    def __rmul__(self, other):\n        return {}\n\n    def __rsub__(self, other):\n        return {}\n\n    def __rtruediv__(self, other):\n        return {}"
REFLECTED = [
    TURNED.format("self + other", "self * other", "-self + other", "other * self**-1"),
    TURNED.format("self.__add__(other)", "self.__mul__(other)", "Value(other) - self", "Value(other) / self"),
    TURNED.format("Value(other) + self", "Value(other) * self", "Value(other) + (-self)", "Value(other) * self**-1"),
    "    __radd__ = lambda self, other: self + other\n    __rmul__ = lambda self, other: self * other\n"
    "    __rsub__ = lambda self, other: -(self - other)\n    __rtruediv__ = lambda self, other: (self / other) ** -1",
    TURNED.format("other + self if isinstance(other, Value) else self + other", "self * Value(other)", "(self - other) * -1", "self ** -1 * other"),
]  # fmt: skip
NO_REFLECTED: list[Change | str] = [
    ("return self + other", "return other + self"),
    ("return self + other", "return self.data + other"),
    ("return self + other", "return self"),
    ("return self * other", "return self + other"),
    ("return self * other", "return Value(self.data * other)"),
    ("return (-self) + other", "return self - other"),
    ("return (-self) + other", "return self + other"),
    ("return (-self) + other", "return -self"),
    ("return (-self) + other", "return other - self"),
    ("return self**-1 * other", "return self / other"),
    ("return self**-1 * other", "return self**-1"),
    ("return self**-1 * other", "return Value(other / self.data)"),
    ("return self**-1 * other", "return self * other**-1"),
    ("def __rsub__", "def __subr__"),
    ("def __rtruediv__", "def __rdiv__"),
    ("def __rmul__", "def __mulr__"),
]


def adding(texts: list[str]) -> list[str]:
    """The same with gradients that add up."""
    return [text.replace("grad = other", "grad += other").replace("grad = self", "grad += self") for text in texts]


SUM = """    def __add__(self, other):
        other = other if isinstance(other, Value) else Value(other)
        out = Value(self.data + other.data, (self, other), "+")

        def _backward():
            self.grad += out.grad
            other.grad += out.grad

        out._backward = _backward
        return out
"""
PRODUCT, RESULT = MUL.replace("grad = ", "grad += "), TANH.replace("grad = ", "grad += ")
PART = "\n\n".join
THREE = [
    PART([SUM, PRODUCT, RESULT]),
    PART([SUM, PRODUCT, RESULT]).replace("self.grad += ", "self.grad = self.grad + "),
    PART([SUM.replace("            self.grad += out.grad\n            other.grad += out.grad\n",
                      "            for x in (self, other):\n                x.grad += out.grad\n"), PRODUCT, RESULT]),
    PART([SUM, MULS[4], TANHS[1].replace("grad = ", "grad += ")]),
    """    def add(self, gradient):
        self.grad += gradient

    def __add__(self, other):
        other = other if isinstance(other, Value) else Value(other)
        out = Value(self.data + other.data, (self, other), "+")
        out._backward = lambda: (self.add(out.grad), other.add(out.grad))
        return out

    def __mul__(self, other):
        other = other if isinstance(other, Value) else Value(other)
        out = Value(self.data * other.data, (self, other), "*")
        out._backward = lambda: (self.add(out.grad * other.data), other.add(out.grad * self.data))
        return out

    def tanh(self):
        out = Value(math.tanh(self.data), (self,), "tanh")
        out._backward = lambda: self.add(out.grad * (1 - out.data**2))
        return out""",
]  # fmt: skip
NO_THREE: list[Change | str] = [
    ("self.grad += 1.0 * out.grad", "self.grad = 1.0 * out.grad"),
    ("other.grad += 1.0 * out.grad", "other.grad = 1.0 * out.grad"),
    ("self.grad += other.data * out.grad", "self.grad = other.data * out.grad"),
    ("other.grad += self.data * out.grad", "other.grad = self.data * out.grad"),
    ("self.grad += (1 - t**2) * out.grad", "self.grad = (1 - t**2) * out.grad"),
    ("self.grad += 1.0 * out.grad", "self.grad =+ 1.0 * out.grad"),
    ("self.grad += 1.0 * out.grad", "self.grad += 1.0"),
    ("self.grad += 1.0 * out.grad", "self.grad += self.grad + out.grad"),
    ("self.grad += other.data * out.grad\n            other.grad += self.data * out.grad",
     "self.grad, other.grad = self.grad + other.data * out.grad, other.grad + self.data * out.grad"),
    ("self.grad += other.data * out.grad\n            other.grad += self.data * out.grad",
     "if self is not other:\n                self.grad += other.data * out.grad\n            other.grad += self.data * out.grad"),
    ("self.grad += 1.0 * out.grad\n            other.grad += 1.0 * out.grad",
     "for x in {self, other}:\n                x.grad += out.grad"),
    ("            other.grad += 1.0 * out.grad\n", ""),
    ("self.grad += (1 - t**2) * out.grad", "self.grad += 1 - t**2 * out.grad"),
    ("other.grad += self.data * out.grad", "other.grad -= self.data * out.grad"),
    ("self.grad += (1 - t**2) * out.grad", "self.grad *= (1 - t**2) * out.grad"),
]  # fmt: skip

GAPS: dict[tuple[int, int], tuple[list[str], list[Change | str]]] = {
    (1, 0): (REPR, NO_REPR),
    (1, 1): (binary("__add__", "+"), not_binary("__add__", "+", "*")),
    (1, 2): (binary("__mul__", "*"), not_binary("__mul__", "*", "+")),
    (2, 0): (INITS, NO_INITS),
    (2, 1): (GRAPHS, NO_GRAPHS),
    (3, 0): (L_GRADS, NO_L_GRADS),
    (3, 1): (O_GRADS, NO_O_GRADS),
    (4, 0): (MULS, NO_MULS),
    (4, 1): (TANHS, NO_TANHS),
    (5, 0): (BACKWARDS, NO_BACKWARDS),
    (6, 0): (THREE, NO_THREE),
    (7, 0): (POWERS, NO_POWERS),
    (7, 1): (DIFFERENCES, NO_DIFFERENCES),
    (7, 2): (REFLECTED, NO_REFLECTED),
}
"""Lesson and gap -> right answers and wrong ones."""
