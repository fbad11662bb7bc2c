"""A model of an engine: right as it stands, or with any of the slips that engines are written with.

The examiner runs the trials on it. Right, it says what should come out; with a slip switched on, it says what an
engine with that slip gives, which is how a slip is told by the wrong numbers it makes. It is written for that alone,
in closed forms over Python's own floats, and shares nothing with Wengert's engine.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from wengert.course.grading.trials import Kit

__all__ = ["RULES", "Engine", "Rule", "TooLongError", "kit"]


class Rule(NamedTuple):
    """The value of an operation, and its partial derivative by each operand, given the value too."""

    value: Callable[..., float]
    partials: Callable[..., tuple[float, ...]]


def _sigmoid(x: float) -> float:
    e = math.exp(-abs(x))
    return 1.0 / (1.0 + e) if x >= 0.0 else e / (1.0 + e)


def _power(x: float, n: float) -> float:
    return math.nan if x < 0.0 and n != int(n) else x**n


RULES: dict[str, Rule] = {
    "add": Rule(lambda x, y: x + y, lambda o, x, y: (1.0, 1.0)),
    "sub": Rule(lambda x, y: x - y, lambda o, x, y: (1.0, -1.0)),
    "mul": Rule(lambda x, y: x * y, lambda o, x, y: (y, x)),
    "div": Rule(lambda x, y: x / y, lambda o, x, y: (1.0 / y, -x / y**2)),
    "neg": Rule(lambda x: -x, lambda o, x: (-1.0,)),
    "pow": Rule(_power, lambda o, x, n: (n * _power(x, n - 1.0), 0.0)),
    "powv": Rule(_power, lambda o, x, y: (y * x ** (y - 1.0), o * math.log(x))),
    "rpow": Rule(_power, lambda o, n, x: (0.0, o * math.log(n))),
    "relu": Rule(lambda x: max(x, 0.0), lambda o, x: (float(x > 0.0),)),
    "tanh": Rule(math.tanh, lambda o, x: (1.0 - o * o,)),
    "sigmoid": Rule(_sigmoid, lambda o, x: (o * (1.0 - o),)),
    "exp": Rule(math.exp, lambda o, x: (o,)),
    "log": Rule(math.log, lambda o, x: (1.0 / x,)),
    "sqrt": Rule(math.sqrt, lambda o, x: (0.5 / o,)),
    "sin": Rule(math.sin, lambda o, x: (math.cos(x),)),
    "cos": Rule(math.cos, lambda o, x: (-math.sin(x),)),
    "abs": Rule(abs, lambda o, x: (math.copysign(1.0, x),)),
}


class TooLongError(Exception):
    """A walk visits more nodes than is worth following."""


@dataclass(frozen=True)
class Engine:
    """How an engine behaves. What is not said is right."""

    rules: Mapping[str, Rule] = field(default_factory=dict)  # instead of those of RULES
    pushes: Mapping[str, str] = field(default_factory=dict)  # how an operation hands gradients on: see Node.push
    upstream: Mapping[str, str] = field(default_factory=dict)  # what stands for out.grad: "nothing" or "value"
    crossed: frozenset[str] = frozenset()  # reflected operations that forget to exchange their operands
    spelled: bool = False  # a - b is a + (-b), -a is a * -1, a / b is a * b**-1, as micrograd has it
    walk: str = "topological"
    mirrored: bool = False  # the walk takes the right operand first
    seed: str = "set"  # the result's own gradient: "set" to 1, "add" 1, or "none"
    zeroes: bool = False  # every gradient, those of leaves too, is set to 0 before the walk
    keeps: bool = False  # interior gradients are kept from one backward() to the next
    late: bool = False  # partial derivatives are taken in backward(), from what data is then
    remembers: bool = False  # what was visited stays visited: the list of nodes grows from call to call


def kit(engine: Engine) -> Kit:
    """The model as a class to try."""
    past: list[Node] = []
    names = {"data": "data", "grad": "grad", "backward": "backward"}
    return Kit(lambda number: Node(engine, past, float(number)), names)


class Node:
    """One number of the model."""

    __slots__ = ("data", "engine", "given", "grad", "op", "operands", "past")

    def __init__(
        self, engine: Engine, past: list[Node], data: float, op: str = "", operands: tuple[Node, ...] = ()
    ) -> None:
        self.engine: Engine = engine
        self.past: list[Node] = past  # what earlier calls of backward() visited, where an engine remembers that
        self.data: float = data
        self.grad: float = 0.0
        self.op: str = op
        self.operands: tuple[Node, ...] = operands
        self.given: list[float] = [x.data for x in operands]

    def _make(self, op: str, *operands: Any) -> Node:
        nodes = tuple([x if isinstance(x, Node) else Node(self.engine, self.past, float(x)) for x in operands])
        value = self._rule(op).value(*[x.data for x in nodes])
        return Node(self.engine, self.past, value, op, nodes)

    def _rule(self, op: str) -> Rule:
        return self.engine.rules.get(op) or RULES[op]

    def push(self) -> None:
        """Hand the gradient on to the operands."""
        if not self.op:
            return
        given = [x.data for x in self.operands] if self.engine.late else self.given
        partials = self._rule(self.op).partials(self.data, *given)
        above = {"nothing": 1.0, "value": self.data}.get(self.engine.upstream.get(self.op, ""), self.grad)
        how = self.engine.pushes.get(self.op, "")
        same = len(self.operands) == 2 and self.operands[0] is self.operands[1]
        for place, (x, partial) in enumerate(zip(self.operands, partials, strict=True)):
            if how == "once" and same and place == 1:
                continue
            if how in ("overwrite", ("overwrite left", "overwrite right")[place]):
                x.grad = partial * above
            else:
                x.grad += partial * above

    def backward(self) -> None:
        """The backward pass, as the engine does it."""
        engine = self.engine
        if engine.remembers:
            order = [*_walk(self, engine, {id(node) for node in self.past}), *self.past]
            self.past[:] = order
        else:
            order = _walk(self, engine, set())
        for node in order:
            if engine.zeroes or (node.operands and not engine.keeps and not engine.remembers):
                node.grad = 0.0
        if engine.seed != "none":
            self.grad = 1.0 + (self.grad if engine.seed == "add" else 0.0)
        for node in order:
            node.push()

    # -- the operators ------------------------------------------------------------------------------------------------

    def __add__(self, other: Any) -> Node:
        return self._make("add", self, other)

    def __radd__(self, other: Any) -> Node:
        return self._make("add", other, self)

    def __mul__(self, other: Any) -> Node:
        return self._make("mul", self, other)

    def __rmul__(self, other: Any) -> Node:
        return self._make("mul", other, self)

    def __neg__(self) -> Node:
        return self * -1.0 if self.engine.spelled else self._make("neg", self)

    def __sub__(self, other: Any) -> Node:
        return self + -other if self.engine.spelled else self._make("sub", self, other)

    def __rsub__(self, other: Any) -> Node:
        if "rsub" in self.engine.crossed:
            return self.__sub__(other)
        return (-self).__radd__(other) if self.engine.spelled else self._make("sub", other, self)

    def __truediv__(self, other: Any) -> Node:
        if self.engine.spelled:
            return self * (other**-1 if isinstance(other, Node) else 1.0 / other)
        return self._make("div", self, other)

    def __rtruediv__(self, other: Any) -> Node:
        if "rdiv" in self.engine.crossed:
            return self.__truediv__(other)
        return (self**-1).__rmul__(other) if self.engine.spelled else self._make("div", other, self)

    def __pow__(self, other: Any) -> Node:
        return self._make("powv" if isinstance(other, Node) else "pow", self, other)

    def __rpow__(self, other: Any) -> Node:
        if "rpow" in self.engine.crossed:
            return self.__pow__(other)
        return self._make("rpow", other, self)

    def __abs__(self) -> Node:
        return self._make("abs", self)

    def __getattr__(self, name: str) -> Callable[[], Node]:
        if name not in RULES:
            raise AttributeError(name)
        return lambda: self._make(name, self)


# -- walks ------------------------------------------------------------------------------------------------------------

STEPS = 5_000  # a walk that takes more than this at these small trials goes from path to path


def _operands(node: Node, mirrored: bool) -> tuple[Node, ...]:
    return node.operands[::-1] if mirrored else node.operands


def _walk(root: Node, engine: Engine, seen: set[int]) -> list[Node]:
    """The nodes in the order in which they hand their gradients on."""
    mirrored, kind = engine.mirrored, engine.walk
    if kind in ("topological", "forward", "by value"):
        order = list(_post_order(root, mirrored, seen, by_value=kind == "by value"))
        return order if kind == "forward" else order[::-1]
    if kind == "root only":
        return [root]
    once = kind in ("pre-order", "breadth", "stack")
    waiting, order = [root], []
    seen = {id(root)}
    while waiting:
        node = waiting.pop(0 if "breadth" in kind else -1)
        if kind == "pre-order" and node in order:  # it waited, and was reached in another way
            continue
        order.append(node)
        if len(order) > STEPS:
            raise TooLongError
        ways = _operands(node, mirrored != ("breadth" not in kind))  # what waits on top of a stack comes next
        for x in ways:
            if kind == "pre-order" or not once or id(x) not in seen:
                seen.add(id(x))
                waiting.append(x)
    return order


def _post_order(root: Node, mirrored: bool, seen: set[int], by_value: bool) -> Iterator[Node]:
    """Each node once, behind all its operands."""

    def mark(node: Node) -> int:
        return hash(node.data) if by_value else id(node)

    if mark(root) in seen:
        return
    seen.add(mark(root))
    stack = [(root, iter(_operands(root, mirrored)))]
    while stack:
        node, rest = stack[-1]
        for x in rest:
            if mark(x) not in seen:
                seen.add(mark(x))
                stack.append((x, iter(_operands(x, mirrored))))
                break
        else:
            yield node
            stack.pop()
