"""The slips that engines are written with, and what each does to the model of an engine.

A slip is told by what it makes wrong: the model is given the slip, runs the same trial, and if it then gives the
numbers that were seen, the slip has been found.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

from wengert.course.grading import rules
from wengert.course.grading.model import Engine
from wengert.course.grading.rules import CONTRIBUTIONS, PARTIALS, RULES, WRONG_VALUES, Rule

__all__ = ["DERIVED", "ERRORS", "WHOLE", "Slip", "candidates", "unreflected", "written"]

Change = Callable[[Engine], Engine]

SYMBOLS = {"add": "a + b", "sub": "a - b", "mul": "a * b", "div": "a / b", "neg": "-a", "pow": "a ** n"}
SYMBOLS |= {"powv": "a ** b", "rpow": "2 ** a", "abs": "abs(a)"}


class Slip(NamedTuple):
    """One way to get an engine wrong."""

    name: str  # for programs: a word or two, of those in docs/checking.md
    says: str  # what is wrong; {op} stands for the operation
    write: tuple[str, ...]  # what to write instead; empty for the rule of the operation
    changes: tuple[Change, ...]  # what it does to an engine: several, where it depends on the order of a set


def _with_rule(op: str, rule: Rule) -> Change:
    return lambda engine: replace(engine, rules={**engine.rules, op: rule})


def _with_partials(op: str, partials: Callable[..., tuple[float, ...]]) -> Change:
    def change(engine: Engine) -> Engine:
        value = (engine.rules.get(op) or RULES[op]).value
        return replace(engine, rules={**engine.rules, op: Rule(value, partials)})

    return change


def _with_symbol(op: str, symbol: str) -> Change:
    return lambda engine: replace(engine, symbols={**engine.symbols, op: symbol})


def _storing(stored: Callable[[float], float]) -> Change:
    return lambda engine: replace(engine, stored=stored)


def _with_push(op: str, how: str) -> Change:
    return lambda engine: replace(engine, pushes={**engine.pushes, op: how})


def _with_contribution(op: str, contribution: Callable[..., float]) -> Change:
    return lambda engine: replace(engine, contributions={**engine.contributions, op: contribution})


def _of_one_operand(op: str, place: int) -> Change:
    """Only the operand at that place receives a gradient."""
    right = RULES[op].partials
    if place == 0:
        return _with_partials(op, lambda o, x, y: (right(o, x, y)[0], 0.0))
    return _with_partials(op, lambda o, x, y: (0.0, right(o, x, y)[1]))


def _without_upstream(op: str, instead: str) -> Change:
    return lambda engine: replace(engine, upstream={**engine.upstream, op: instead})


BINARY = ("add", "sub", "mul", "div", "powv")


def _local(op: str) -> Iterator[Slip]:
    """The slips that one operation can have."""
    for name, says, *slopes in PARTIALS.get(op, []):
        yield Slip(name, f"{{op}}: {says}", (), (_with_partials(op, rules.partials(*slopes)),))
    for name, says, text in CONTRIBUTIONS.get(op, []):
        yield Slip(name, f"{{op}}: {says}", (), (_with_contribution(op, rules.formula(text, "o, g, x, y=0.0")),))
    for says, value, *slopes in WRONG_VALUES.get(op, []):
        write = (f"out = Value({rules.shown_value(op)}, ...)",)
        wrong = rules.formula(value)
        for those in (rules.partials(*slopes), RULES[op].partials):
            yield Slip("wrong value", f"{{op}}: {says}", write, (_with_rule(op, Rule(wrong, those)),))
    if op in BINARY:
        right = RULES[op].partials
        yield Slip(
            "exponent dropped" if op == "powv" else "operand left out",
            "{op}: the right operand receives no gradient",
            (),
            (_of_one_operand(op, 0),),
        )
        yield Slip("operand left out", "{op}: the left operand receives no gradient", (), (_of_one_operand(op, 1),))
        if op != "add":  # whose two are equal
            says = "{op}: the gradients of the two operands are exchanged"
            yield Slip("swapped factors", says, (), (_with_partials(op, lambda o, x, y: right(o, x, y)[::-1]),))
        if op != "div":  # whose rule has it
            says = "{op}: the sign of the right operand's gradient is wrong"
            change = _with_partials(op, lambda o, x, y: (right(o, x, y)[0], -right(o, x, y)[1]))
            yield Slip("lost sign", says, (), (change,))
        yield Slip(
            "lost sign",
            "{op}: the sign of the left operand's gradient is wrong",
            (),
            (_with_partials(op, lambda o, x, y: (-right(o, x, y)[0], right(o, x, y)[1])),),
        )
        yield Slip(
            "same operand counted once",
            "{op}: of a value on both sides one side is counted (operands kept in a set?)",
            ("self._prev = (self, other)  # a tuple, and not a set",),
            (_with_push(op, "once"),),
        )
    slope = RULES[op].partials
    nothing = _with_partials(op, lambda *xs: (0.0,) * len(slope(*xs)))
    says = "{op}: no gradient comes through: its closure is not assigned, or adds nothing"
    yield Slip("closure not assigned", says, ("out._backward = _backward",), (nothing,))
    says = "{op}: the left operand itself is changed, and given back: an operation makes a new Value"
    in_place: Change = lambda e: replace(e, in_place=e.in_place | {op})  # noqa: E731 # as the others
    yield Slip("operand changed", says, (f"out = Value({rules.shown_value(op)}, ...)", "return out"), (in_place,))
    yield Slip(
        "chain rule",
        "{op}: the gradient of the result, out.grad, is left out of the chain rule",
        (),
        (_without_upstream(op, "nothing"),),
    )
    yield Slip("chain rule", "{op}: out.data stands where out.grad belongs", (), (_without_upstream(op, "value"),))
    ways = {"overwrite": "", "overwrite left": " of the left operand", "overwrite right": " of the right operand"}
    for how, who in ways.items():
        if who and op not in BINARY:  # there is one operand
            continue
        yield Slip(
            "overwritten gradients",
            f"{{op}}: gradients{who} are overwritten (=) where they should be added (+=)",
            (),
            (_with_push(op, how),),
        )


def _walks(*kinds: str) -> tuple[Change, ...]:
    def change(kind: str) -> Change:
        return lambda engine: replace(engine, walk=kind)

    return tuple([change(kind) for kind in kinds])


ORDER = ("for node in reversed(topo):  # topo: each node behind all its operands", "    node._backward()")
RESET = ("for node in topo:", "    if node._prev: node.grad = 0.0", "self.grad = 1.0")

WHOLE: tuple[Slip, ...] = (
    Slip(
        "no seed",
        "backward() gives no gradient: that of the result itself has to start at 1",
        ("self.grad = 1.0  # before the walk",),
        (lambda e: replace(e, seed="none"),),
    ),
    Slip(
        "seed in data",
        "backward() sets the number of the result to 1: it is its gradient that has to start there",
        ("self.grad = 1.0  # and not self.data",),
        (lambda e: replace(e, seed="data"),),
    ),
    Slip(
        "walk order",
        "backward() does not reach beyond the last operation: it walks from the leaves to the result (reversed() is "
        "missing, or a node is put into the list before its operands)",
        ORDER,
        _walks("forward"),
    ),
    Slip(
        "root only",
        "backward() calls the _backward of the result alone: every node has to be called",
        ORDER,
        _walks("root only"),
    ),
    Slip(
        "seeded everywhere",
        "backward() calls backward() of the operands, and each sets its own gradient to 1: that belongs to the result",
        ORDER,
        _walks("seeds all"),
    ),
    Slip(
        "walk order",
        "backward() walks in a wrong order: a node passes its gradient on before all of it has come in",
        ORDER,
        _walks("pre-order", "breadth", "stack"),
    ),
    Slip(
        "visited again",
        "the topological sort puts a shared node into its list once for every path to it: the set of visited nodes is "
        "missing",
        ("if node not in visited:", "    visited.add(node)"),
        _walks("repeats"),
    ),
    Slip(
        "visited again",
        "backward() goes through a shared node once for every path to it, and passes its whole "
        "gradient on each time: the set of visited nodes is missing",
        ("if node not in visited:", "    visited.add(node)"),
        _walks("revisit", "revisit breadth"),
    ),
    Slip(
        "equality by value",
        "different values of equal numbers are taken for one: __eq__ compares data, and `in visited` asks it",
        ("visited.add(id(node))  # or leave __eq__ and __hash__ as Python has them",),
        _walks("by value"),
    ),
    Slip(
        "visited kept",
        "what one backward() visited stays visited in the next: the list of nodes or the set lives too long",
        ("topo, visited = [], set()  # inside backward(), anew in each call",),
        (lambda e: replace(e, remembers=True),),
    ),
    Slip(
        "gradients zeroed",
        "backward() sets the gradients of leaves to zero: those of several calls have to add up",
        ("p.grad = 0.0  # by whoever trains, before the next backward()",),
        (lambda e: replace(e, zeroes=True),),
    ),
)

CALLS: tuple[Slip, ...] = (
    Slip(
        "second backward",
        "the gradients of interior nodes are kept from one backward() to the next, and counted again",
        RESET,
        (lambda e: replace(e, keeps=True),),
    ),
    Slip(
        "second backward",
        "the result's own gradient is added to (+= 1), and a second backward() counts the first again",
        RESET,
        (lambda e: replace(e, seed="add", keeps=True), lambda e: replace(e, seed="add")),
    ),
    Slip(
        "late partials",
        "backward() reads .data when it runs, not when the expression was made: a later change of "
        "a number gives the gradient of another function",
        ("x, y = self.data, other.data  # taken when the node is made",),
        (lambda e: replace(e, late=True),),
    ),
)


def _reflected(op: str) -> Iterator[Slip]:
    symbol = {"rsub": "3 - a", "rdiv": "4 / a", "rpow": "2 ** a"}[op]
    written = {"rsub": "other + (-self)", "rdiv": "other * self**-1", "rpow": "Value(other) ** self"}[op]
    yield Slip(
        "reflected operands exchanged",
        f"{symbol}: the operands are exchanged, as if it were {_crossed(symbol)}",
        (f"def __{_dunder(op)}__(self, other):", f"    return {written}"),
        (lambda e: replace(e, crossed=e.crossed | {op}),),
    )


def _crossed(symbol: str) -> str:
    left, op, right = symbol.split()
    return f"{right} {op} {left}"


def _dunder(op: str) -> str:
    return {"rdiv": "rtruediv"}.get(op, op)


def _lacking(op: str) -> Iterator[Slip]:
    for what, says in (
        ("none", "no operand"),
        ("right", "the left operand alone"),
        ("left", "the right operand alone"),
    ):
        change: Change = lambda e, what=what: replace(e, parts={**e.parts, op: what})  # type: ignore[misc]  # noqa: E731
        says = f"the _prev of {SYMBOLS[op]} holds {says}: both have to be passed on"
        write = f"out = Value({rules.shown_value(op)}, (self, other), '{'+' if op == 'add' else '*'}')"
        yield Slip("operand not passed on", says, (write,), (change,))


OF_TRIALS: dict[str, tuple[Slip, ...]] = {
    "leaf": tuple(
        Slip("wrong value", f"Value(2.5): {says}", ("self.data = data",), (_storing(stored),))
        for says, stored in (
            ("the number is cut to a whole one", lambda x: float(int(x))),
            ("the number is rounded to a whole one", lambda x: float(round(x))),
            ("the number is not kept: .data is 0", lambda x: 0.0),
            ("the number is not kept: .data is 1", lambda x: 1.0),
            ("the sign is lost", abs),
        )
    ),
    "parts": (
        Slip(
            "operand not passed on",
            "the _prev of results is empty: the operands have to be passed on to the new Value",
            ("out = Value(self.data + other.data, (self, other), '+')",),
            (lambda e: replace(e, parts={"add": "none", "mul": "none"}),),
        ),
        *_lacking("add"),
        *_lacking("mul"),
    ),
    "symbols": tuple(
        Slip(
            "symbol", f"the _op of {SYMBOLS[op]} is {says}", (f"out = Value(..., (self, other), '{right}')",), (change,)
        )
        for op, right, wrong, says in (
            ("mul", "*", "+", "that of a sum"),
            ("add", "+", "*", "that of a product"),
            ("mul", "*", "none", "no symbol of a product"),
            ("add", "+", "none", "no symbol of a sum"),
        )
        for change in [_with_symbol(op, wrong)]
    ),
}
"""Slips that are looked for in one trial alone."""


def candidates(op: str, kind: str, trial: str = "") -> list[Slip]:
    """The slips that a trial of this operation can show, the likeliest first."""
    found: list[Slip] = [*OF_TRIALS.get(trial, ())]
    if found:
        return found
    if op in ("rsub", "rdiv", "rpow"):
        found += _reflected(op)
    if kind == "note":
        found += CALLS
    if unreflected(op) in RULES:
        found += _local(unreflected(op))
    return [*found, *WHOLE]


# -- errors -----------------------------------------------------------------------------------------------------------

ERRORS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "RecursionError": (
        "recursion",
        "Python's limit of nested calls is reached: the walk calls itself once for every node on the way",
        ("stack = [self]  # a loop with a list of one's own, in the place of a function that calls itself",),
    ),
    "unfit none": ("nothing returned", "the operation gives None", ("return out",)),
    "unfit number": (
        "no Value returned",
        "a plain number comes back, and the graph is lost",
        ("out = Value(...); return out",),
    ),
    "unfit complex": (
        "complex number",
        "a negative base to a fractional power gives a complex number",
        ("if self.data < 0 and n != int(n): raise ValueError(...)",),
    ),
    "unfit called": (
        "closure called",
        "the closure is called where it should be kept: out._backward = _backward() keeps what it gives, None",
        ("out._backward = _backward  # without brackets",),
    ),
    "unfit unassigned": (
        "closure not assigned",
        "its closure is written, and out._backward is not set to it",
        ("out._backward = _backward",),
    ),
    "unfit parts": (
        "no Values in _prev",
        "what the result keeps of its operands is not the two Values",
        ("out = Value(..., (self, other), '+')",),
    ),
    "unfit nested": (
        "Value in a Value",
        "the number of the result is a Value itself",
        ("out = Value(self.data + other.data, ...)  # numbers are added, not Values",),
    ),
    "OverflowError": ("overflow", "the formula overflows for a large number, though its value is finite", ()),
    "MemoryError": ("memory", "the memory that --memory allows is used up", ()),
}
"""The kind of an error -> the name of the slip, what it says, what to write."""


def unreflected(op: str) -> str:
    """The operation itself: div, of rdiv."""
    return {"radd": "add", "rmul": "mul", "rsub": "sub", "rdiv": "div"}.get(op, op)


def written(op: str) -> str:
    """An operation as one writes it: a / b, a.exp()."""
    return SYMBOLS.get(unreflected(op), f"a.{op}()")


DERIVED = {
    "3 + a": ("def __radd__(self, other):", "    return self + other"),
    "3 * a": ("def __rmul__(self, other):", "    return self * other"),
    "3 - a": ("def __rsub__(self, other):", "    return other + (-self)"),
    "4 / a": ("def __rtruediv__(self, other):", "    return other * self**-1"),
    "2 ** a": ("def __rpow__(self, other):", "    return Value(other) ** self"),
    "-a": ("def __neg__(self):", "    return self * -1"),
    "a - b": ("def __sub__(self, other):", "    return self + (-other)"),
    "a / b": ("def __truediv__(self, other):", "    return self * other**-1"),
}
"""Row -> how an operation is said by others."""
