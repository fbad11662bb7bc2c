"""A model of an engine: right as it stands, or with any of the slips that engines are written with.

The examiner runs the trials on it. Right, it says what should come out; with a slip switched on, it says what an
engine with that slip gives, which is how a slip is told by the wrong numbers it makes. It is written for that alone,
in closed forms over Python's own floats, and shares nothing with Wengert's engine.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from wengert_course.checks.kit import NAMES, Kit, TrialPlan
from wengert_course.checks.rules import RULES, Rule, formula
from wengert_course.checks.slips import Change

__all__ = ["ModelEngine", "ModelNode", "TooLongError", "model_kit"]


class TooLongError(Exception):
    """A walk visits more nodes than is worth following."""


@dataclass(frozen=True)
class ModelEngine:
    """How an engine behaves. What is not said is right."""

    rules: Mapping[str, Rule] = field(default_factory=lambda: RULES)
    stored: str = "x"  # what a leaf keeps of its number
    spelled: bool = False  # a - b is a + (-b), -a is a * -1, a / b is a * b**-1, as micrograd has it
    turned: bool = False  # 3 + a is a + 3, 3 * a is a * 3, as micrograd has it
    walk: str = "topological"
    mirrored: bool = False  # the walk takes the right operand first
    seed: str = "set"  # the result's own gradient: "set" to 1, "add" 1, "none", or "data": its number is set to 1
    zeroes: bool = False  # every gradient, those of leaves too, is set to 0 before the walk
    keeps: bool = False  # interior gradients are kept from one backward() to the next
    late: bool = False  # partial derivatives are taken in backward(), from what data is then
    remembers: bool = False  # what was visited stays visited: the list of nodes grows from call to call

    @property
    def depends_on_order(self) -> bool:
        """Whether what it gives depends on the order in which operands are visited."""
        return (
            self.walk != "topological" or self.remembers or any(rule.push or rule.parts for rule in self.rules.values())
        )

    def changed(self, change: Change) -> ModelEngine:
        rules = {op: self.rules[op]._replace(**fields) for op, fields in change.items() if op in RULES}
        return replace(self, rules={**self.rules, **rules}, **{k: v for k, v in change.items() if k not in RULES})


def model_kit(engine: ModelEngine, plan: TrialPlan, parts: Collection[str] = NAMES) -> Kit:
    """The model as a class to try, with those of its parts."""
    past: list[ModelNode] = []

    def make(number: float, label: str = "") -> ModelNode:
        return ModelNode(engine, past, float(formula(engine.stored)(number)), label=label)

    return Kit(make, {name: name for name in NAMES if name in parts}, {}, plan)


@dataclass(eq=False)
class ModelNode:
    engine: ModelEngine
    past: list[ModelNode]  # what earlier calls of backward() visited, where an engine remembers that
    data: float
    op: str = ""
    operands: tuple[ModelNode, ...] = ()
    label: str = ""
    grad: float = 0.0

    def __post_init__(self) -> None:
        self.given: list[float] = [x.data for x in self.operands]
        self._backward: Callable[[], None] = self.push

    def __repr__(self) -> str:
        return f"Value({self.data})"

    @property
    def _prev(self) -> tuple[ModelNode, ...]:
        lacking = self.engine.rules[self.op].parts if self.op else ""
        return {"all": (), "left": self.operands[1:], "right": self.operands[:1]}.get(lacking, self.operands)

    @property
    def _op(self) -> str:
        return (self.engine.rules[self.op].symbol if self.op else "") or self.op

    def _make(self, op: str, *operands: Any) -> ModelNode:
        stored = formula(self.engine.stored)
        nodes = [x if isinstance(x, ModelNode) else ModelNode(self.engine, self.past, stored(x)) for x in operands]
        rule = self.engine.rules[op]
        value = rule.of(*[x.data for x in nodes])
        if rule.in_place:
            nodes[rule.in_place - 1].data = value
            return nodes[rule.in_place - 1]
        return ModelNode(self.engine, self.past, value, op, tuple(nodes))

    def push(self) -> None:
        if not self.op:
            return
        rule, operands = self.engine.rules[self.op], self.operands
        given = [x.data for x in operands] if self.engine.late else self.given
        gradients = rule.gradients(self.data, self.grad, *given)
        for x, gradient, side in zip(operands, gradients, ("left", "right"), strict=False):
            if rule.push in ("overwrite", f"overwrite {side}"):
                x.grad = gradient
            elif not (rule.push == "once" and side == "right" and x is operands[0]):
                x.grad += gradient

    def backward(self) -> None:
        engine = self.engine
        order = _walk(self, engine, {id(node) for node in self.past})
        if engine.remembers:
            order += self.past
            self.past[:] = order
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

    def __add__(self, other: Any) -> ModelNode:
        return self._make("add", self, other)

    def __radd__(self, other: Any) -> ModelNode:
        return self._make("add", self, other) if self.engine.turned else self._make("add", other, self)

    def __mul__(self, other: Any) -> ModelNode:
        return self._make("mul", self, other)

    def __rmul__(self, other: Any) -> ModelNode:
        return self._make("mul", self, other) if self.engine.turned else self._make("mul", other, self)

    def __neg__(self) -> ModelNode:
        right = self.engine.rules["neg"] == RULES["neg"]  # with a slip, it has a rule of its own
        return self * -1.0 if self.engine.spelled and right else self._make("neg", self)

    def __sub__(self, other: Any) -> ModelNode:
        return self + -other if self.engine.spelled else self._make("sub", self, other)

    def __rsub__(self, other: Any) -> ModelNode:
        if self.engine.rules["sub"].crossed:
            return self.__sub__(other)
        return (-self).__radd__(other) if self.engine.spelled else self._make("sub", other, self)

    def __truediv__(self, other: Any) -> ModelNode:
        if self.engine.spelled:
            return self * (other**-1 if isinstance(other, ModelNode) else 1.0 / other)
        return self._make("div", self, other)

    def __rtruediv__(self, other: Any) -> ModelNode:
        if self.engine.rules["div"].crossed:
            return self.__truediv__(other)
        return (self**-1).__rmul__(other) if self.engine.spelled else self._make("div", other, self)

    def __pow__(self, other: Any) -> ModelNode:
        return self._make("powv" if isinstance(other, ModelNode) else "pow", self, other)

    def __rpow__(self, other: Any) -> ModelNode:
        return self**other if self.engine.rules["rpow"].crossed else self._make("rpow", other, self)

    def __abs__(self) -> ModelNode:
        return self._make("abs", self)

    def __getattr__(self, name: str) -> Callable[[], ModelNode]:
        if name not in RULES:
            raise AttributeError(name)
        return lambda: self._make(name, self)


# -- walks ------------------------------------------------------------------------------------------------------------

STEPS = 5_000  # a walk that takes more than this at these small trials goes from path to path


def _walk(root: ModelNode, engine: ModelEngine, seen: set[int]) -> list[ModelNode]:
    """The nodes in the order in which they hand their gradients on; those that were seen before are left out."""
    kind = engine.walk
    if kind in ("topological", "forward", "by value", "repeats"):
        order = _post_order(root, engine, seen)
        return order if kind == "forward" else order[::-1]
    if kind in ("none", "root only", "root again"):
        return [root] * {"none": 0, "root only": 1}.get(kind, len(_post_order(root, engine, seen)))
    top = "breadth" not in kind  # what waits on top of a stack comes next
    waiting, order, seen = [root], [], {id(root)}
    while waiting:
        node = waiting.pop(-1 if top else 0)
        if kind == "pre-order" and node in order:  # it waited, and was reached in another way
            continue
        order.append(node)
        if len(order) > STEPS:
            raise TooLongError
        for x in node._prev[::-1] if engine.mirrored != top else node._prev:
            if kind not in ("breadth", "stack") or id(x) not in seen:
                seen.add(id(x))
                waiting.append(x)
    return order


def _post_order(root: ModelNode, engine: ModelEngine, seen: set[int]) -> list[ModelNode]:
    """Each node behind all its operands: once, or where what was visited is not noted, once for every path to it."""
    order: list[ModelNode] = []
    stack = [(root, False)]
    while stack:
        node, done = stack.pop()
        mark = hash(node.data) if engine.walk == "by value" else id(node)
        if done:
            order.append(node)
        elif engine.walk == "repeats" or mark not in seen:
            seen.add(mark)
            stack.append((node, True))
            stack += [(x, False) for x in (node._prev if engine.mirrored else node._prev[::-1])]
        if engine.walk == "repeats" and len(order) + len(stack) > STEPS:
            raise TooLongError
    return order
