"""A model of an engine: right as it stands, or with any of the slips that engines are written with.

The examiner runs the trials on it. Right, it says what should come out; with a slip switched on, it says what an
engine with that slip gives, which is how a slip is told by the wrong numbers it makes. It is written for that alone,
in closed forms over Python's own floats, and shares nothing with Wengert's engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from wengert.course.grading.kit import NAMES, Kit
from wengert.course.grading.rules import RULES, Rule

__all__ = ["Engine", "Node", "Plan", "TooLongError", "kit"]


class TooLongError(Exception):
    """A walk visits more nodes than is worth following."""


@dataclass(frozen=True)
class Engine:
    """How an engine behaves. What is not said is right."""

    rules: Mapping[str, Rule] = field(default_factory=dict)  # instead of those of RULES
    pushes: Mapping[str, str] = field(default_factory=dict)  # how an operation hands gradients on: see Node.push
    upstream: Mapping[str, str] = field(default_factory=dict)  # what stands for out.grad: "nothing" or "value"
    contributions: Mapping[str, Callable[..., float]] = field(
        default_factory=dict
    )  # what the left operand gets, of out.grad too
    parts: Mapping[str, str] = field(default_factory=dict)  # what _prev lacks: "none" of the operands, "left", "right"
    symbols: Mapping[str, str] = field(default_factory=dict)  # instead of the right ones
    in_place: frozenset[str] = frozenset()  # operations that change their left operand, and give it back
    stored: Callable[[float], float] | None = None  # what a leaf keeps of its number
    crossed: frozenset[str] = frozenset()  # reflected operations that forget to exchange their operands
    spelled: bool = False  # a - b is a + (-b), -a is a * -1, a / b is a * b**-1, as micrograd has it
    turned: bool = False  # 3 + a is a + 3, 3 * a is a * 3, as micrograd has it
    walk: str = "topological"
    mirrored: bool = False  # the walk takes the right operand first
    seed: str = "set"  # the result's own gradient: "set" to 1, "add" 1, "none", or "data": its number is set to 1
    zeroes: bool = False  # every gradient, those of leaves too, is set to 0 before the walk
    keeps: bool = False  # interior gradients are kept from one backward() to the next
    late: bool = False  # partial derivatives are taken in backward(), from what data is then
    remembers: bool = False  # what was visited stays visited: the list of nodes grows from call to call


@dataclass(frozen=True)
class Plan:
    """How the trials of a run are done: see Kit."""

    names: tuple[str, ...] = tuple(NAMES)
    mode: str = "backward"
    seed: int = 0
    product: bool = True


def kit(engine: Engine, plan: Plan) -> Kit:
    """The model as a class to try."""
    past: list[Node] = []

    def make(number: float, label: str = "") -> Node:
        return Node(engine, past, engine.stored(number) if engine.stored else float(number), label=label)

    return Kit(make, {name: name for name in plan.names}, None, plan.mode, plan.seed, plan.product)


SYMBOLS = {"add": "+", "mul": "*", "sub": "-", "div": "/"}


class Node:
    """One number of the model."""

    __slots__ = ("_backward", "data", "engine", "given", "grad", "label", "op", "operands", "past")

    def __init__(
        self,
        engine: Engine,
        past: list[Node],
        data: float,
        op: str = "",
        operands: tuple[Node, ...] = (),
        label: str = "",
    ) -> None:
        self.engine: Engine = engine
        self.past: list[Node] = past  # what earlier calls of backward() visited, where an engine remembers that
        self.data: float = data
        self.grad: float = 0.0
        self.op: str = op
        self.operands: tuple[Node, ...] = operands
        self.given: list[float] = [x.data for x in operands]
        self.label: str = label
        self._backward: Callable[[], None] = self.push

    def __repr__(self) -> str:
        return f"Value({self.data})"

    @property
    def _prev(self) -> tuple[Node, ...]:
        lacking = self.engine.parts.get(self.op, "")
        return {"none": (), "left": self.operands[1:], "right": self.operands[:1]}.get(lacking, self.operands)

    @property
    def _op(self) -> str:
        return self.engine.symbols.get(self.op) or SYMBOLS.get(self.op, self.op)

    def _make(self, op: str, *operands: Any) -> Node:
        nodes = tuple([x if isinstance(x, Node) else Node(self.engine, self.past, float(x)) for x in operands])
        value = self._rule(op).value(*[x.data for x in nodes])
        if op in self.engine.in_place:
            nodes[0].data = value
            return nodes[0]
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
        if self.op in self.engine.contributions:
            self.operands[0].grad += self.engine.contributions[self.op](self.data, self.grad, *given)
            return
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
        if engine.seed == "data":
            self.data = 1.0
        elif engine.seed != "none":
            self.grad = 1.0 + (self.grad if engine.seed == "add" else 0.0)
        for node in order:
            if engine.walk == "seeds all":
                node.grad = 1.0
            node._backward()

    # -- the operators ------------------------------------------------------------------------------------------------

    def __add__(self, other: Any) -> Node:
        return self._make("add", self, other)

    def __radd__(self, other: Any) -> Node:
        return self._make("add", self, other) if self.engine.turned else self._make("add", other, self)

    def __mul__(self, other: Any) -> Node:
        return self._make("mul", self, other)

    def __rmul__(self, other: Any) -> Node:
        return self._make("mul", self, other) if self.engine.turned else self._make("mul", other, self)

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
    return node._prev[::-1] if mirrored else node._prev


def _walk(root: Node, engine: Engine, seen: set[int]) -> list[Node]:
    """The nodes in the order in which they hand their gradients on."""
    mirrored, kind = engine.mirrored, engine.walk
    if kind in ("topological", "forward", "by value"):
        order = list(_post_order(root, mirrored, seen, by_value=kind == "by value"))
        return order if kind == "forward" else order[::-1]
    if kind == "root only":
        return [root]
    if kind == "repeats":
        return _every_path(root, mirrored)[::-1]
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


def _every_path(root: Node, mirrored: bool) -> list[Node]:
    """The nodes behind all their operands, a node once for every path to it."""
    order: list[Node] = []
    stack = [(root, False)]
    while stack:
        node, done = stack.pop()
        if done:
            order.append(node)
            continue
        stack.append((node, True))
        stack += [(x, False) for x in _operands(node, not mirrored)]
        if len(order) + len(stack) > STEPS:
            raise TooLongError
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
