"""The slips that engines are written with, and what each changes in the model of an engine.

A slip is told by what it makes wrong: the model is given the slip, runs the same trial, and if it then gives the
numbers that were seen, the slip has been found. One that raises is told by its error.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from wengert.course.grading.rules import RULES, SLOPES, VALUES, closure, plain, shown_value, written

__all__ = ["ERRORS", "OF_TRIALS", "OTHERS", "WHOLE", "Change", "Slip", "candidates", "of_error"]

Change = Mapping[str, Any]
"""Operation -> fields of its Rule, or a field of an Engine -> its value."""


class Slip(NamedTuple):
    """One way to get an engine wrong."""

    name: str  # for programs: a word or two, of those in docs/checking.md
    says: str  # what is wrong; {op} stands for the operation
    write: tuple[str, ...] = ()  # what to write instead; empty for the rule of the operation
    changes: tuple[Change, ...] = ()  # what it does to an engine: several, where it depends on the order of a set


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

REFLECTED = {"rsub": ("3 - a", "a - 3"), "rdiv": ("4 / a", "a / 4"), "rpow": ("2 ** a", "a ** 2")}
WAYS = {"overwrite": "", "overwrite left": " of the left operand", "overwrite right": " of the right operand"}
LACKING = {"all": "no operand", "right": "the left operand alone", "left": "the right operand alone"}
ORDER = ("for node in reversed(topo):  # topo: each node behind all its operands", "    node._backward()")
RESET = ("for node in topo:", "    if node._prev: node.grad = 0.0", "self.grad = 1.0")
VISITED = ("if node not in visited:", "    visited.add(node)")


BINARY = ("add", "sub", "mul", "div", "powv")


def _of(op: str, name: str, says: str, *write: str, **fields: Any) -> Slip:
    """A slip of one operation: the fields of its rule."""
    return Slip(name, f"{{op}}: {says}", write, ({op: fields},))


def _local(op: str) -> Iterator[Slip]:
    """The slips that one operation can have."""
    right = RULES[op].slopes
    new = f"out = Value({shown_value(op)}, ...)"
    for name, says, *slopes in SLOPES.get(op, []):
        alone = {"above": "1"} if "g" in slopes[0].split() else {}
        yield _of(op, name, says, slopes=tuple(slopes), **alone)
    for says, value, *slopes in VALUES.get(op, []):
        for those in (tuple(slopes), right):
            yield _of(op, "wrong value", says, new, value=value, slopes=those)
    if op in BINARY:
        a, b = right
        left_out = "exponent dropped" if op == "powv" else "operand left out"
        yield _of(op, left_out, "the right operand receives no gradient", slopes=(a, "0"))
        yield _of(op, "operand left out", "the left operand receives no gradient", slopes=("0", b))
        if a != b:
            yield _of(op, "swapped factors", "the gradients of the two operands are exchanged", slopes=(b, a))
        if op != "div":  # whose table has it
            yield _of(op, "lost sign", "the sign of the right operand's gradient is wrong", slopes=(a, f"-({b})"))
        yield _of(op, "lost sign", "the sign of the left operand's gradient is wrong", slopes=(f"-({a})", b))
        says = "of a value on both sides one side is counted (operands kept in a set?)"
        pair = "self._prev = (self, other)  # a tuple, and not a set"
        yield _of(op, "same operand counted once", says, pair, push="once")
    says = "no gradient comes through: its closure is not assigned, or adds nothing"
    yield _of(op, "closure not assigned", says, "out._backward = _backward", slopes=("0",) * len(right))
    says = "the left operand itself is changed, and given back: an operation makes a new Value"
    yield _of(op, "operand changed", says, new, "return out", in_place=True)
    yield _of(op, "chain rule", "the gradient of the result, out.grad, is left out of the chain rule", above="1")
    yield _of(op, "chain rule", "out.data stands where out.grad belongs", above="o")
    for push, who in WAYS.items():
        if op in BINARY or not who:
            says = f"gradients{who} are overwritten (=) where they should be added (+=)"
            yield _of(op, "overwritten gradients", says, push=push)


def _walks(*kinds: str) -> tuple[Change, ...]:
    return tuple([{"walk": kind} for kind in kinds])


# fmt: off
WHOLE: tuple[Slip, ...] = (
    Slip("no seed", "backward() gives no gradient: that of the result itself has to start at 1",
         ("self.grad = 1.0  # before the walk",), ({"seed": "none"},)),
    Slip("seed in data", "backward() sets the number of the result to 1: it is its gradient that has to start there",
         ("self.grad = 1.0  # and not self.data",), ({"seed": "data"},)),
    Slip("walk order", "backward() does not reach beyond the last operation: it walks from the leaves to the result "
         "(reversed() is missing, or a node is put into the list before its operands)", ORDER, _walks("forward")),
    Slip("root only", "backward() calls the _backward of the result alone: every node has to be called",
         ORDER, _walks("root only")),
    Slip("seeded everywhere", "backward() calls backward() of the operands, and each sets its own gradient to 1: "
         "that belongs to the result", ORDER, _walks("seeds all")),
    Slip("walk order", "backward() walks in a wrong order: a node passes its gradient on before all of it has come in",
         ORDER, _walks("pre-order", "breadth", "stack")),
    Slip("visited again", "the topological sort puts a shared node into its list once for every path to it: "
         "the set of visited nodes is missing", VISITED, _walks("repeats")),
    Slip("visited again", "backward() goes through a shared node once for every path to it, and passes its whole "
         "gradient on each time: the set of visited nodes is missing", VISITED, _walks("revisit", "revisit breadth")),
    Slip("equality by value", "different values of equal numbers are taken for one: __eq__ compares data, and "
         "`in visited` asks it", ("visited.add(id(node))  # or leave __eq__ and __hash__ as Python has them",),
         _walks("by value")),
    Slip("visited kept", "what one backward() visited stays visited in the next: the list of nodes or the set lives "
         "too long", ("topo, visited = [], set()  # inside backward(), anew in each call",), ({"remembers": True},)),
    Slip("gradients zeroed", "backward() sets the gradients of leaves to zero: those of several calls have to add up",
         ("p.grad = 0.0  # by whoever trains, before the next backward()",), ({"zeroes": True},)),
)

CALLS: tuple[Slip, ...] = (
    Slip("second backward", "the gradients of interior nodes are kept from one backward() to the next, and counted "
         "again", RESET, ({"keeps": True},)),
    Slip("second backward", "the result's own gradient is added to (+= 1), and a second backward() counts the first "
         "again", RESET, ({"seed": "add", "keeps": True}, {"seed": "add"})),
    Slip("late partials", "backward() reads .data when it runs, not when the expression was made: a later change of "
         "a number gives the gradient of another function",
         ("x, y = self.data, other.data  # taken when the node is made",), ({"late": True},)),
)

OF_TRIALS: dict[str, list[Slip]] = {
    "leaf": [
        Slip("wrong value", f"Value(2.5): {says}", ("self.data = data",), ({"stored": stored},))
        for says, stored in (
            ("the number is cut to a whole one", "int(x)"),
            ("the number is rounded to a whole one", "round(x)"),
            ("the number is not kept: .data is 0", "0"),
            ("the number is not kept: .data is 1", "1"),
            ("the sign is lost", "abs(x)"),
        )
    ],
    "parts": [
        Slip("operand not passed on", "the _prev of results is empty: the operands have to be passed on to the new "
             "Value", ("out = Value(self.data + other.data, (self, other), '+')",),
             ({"add": {"parts": "all"}, "mul": {"parts": "all"}},)),
        *[
            Slip("operand not passed on", f"the _prev of {written(op)} holds {says}: both have to be passed on",
                 (f"out = Value({shown_value(op)}, (self, other), '{RULES[op].symbol}')",), ({op: {"parts": lacks}},))
            for op in ("add", "mul")
            for lacks, says in LACKING.items()
        ],
    ],
    "symbols": [
        Slip("symbol", f"the _op of {written(op)} is {says}",
             (f"out = Value(..., (self, other), '{RULES[op].symbol}')",), ({op: {"symbol": wrong}},))
        for op, wrong, says in (
            ("mul", "+", "that of a sum"),
            ("add", "*", "that of a product"),
            ("mul", "none", "no symbol of a product"),
            ("add", "none", "no symbol of a sum"),
        )
    ],
    "lookup": [],
}
"""Slips that are looked for in one trial alone."""

OTHERS: dict[str, Slip] = {
    "relu 0": Slip("relu at 0", "the gradient of relu at 0 is taken from the other side: PyTorch gives 0 there",
                   closure("relu")),
    "lookup": Slip("visited in a list", "backward() looks for each node in a list, from its beginning on: in a set it "
                   "is found at once", ("visited = set()", "visited.add(node)")),
    "repr": Slip("repr", "repr(a) does not show the number", ("return f'Value({self.data})'",)),
    "label": Slip("label", "Value(2.0, label='a') does not keep its label", ("self.label = label",)),
    "tanh 1000": Slip("overflow", "tanh is wrong for large numbers: its formula overflows"),
    "sigmoid 1000": Slip("overflow", "sigmoid is wrong for large numbers: its formula overflows"),
}
"""What is wrong in a trial whose numbers no slip gives."""

OVERFLOW = "the formula overflows for a large number, though its value is finite"
WRAP = "other = other if isinstance(other, Value) else Value(other)"
NOT_WRAPPED = Slip("number not wrapped", "a number is not made a Value before its .data is read ({error})", (WRAP,))

ERRORS: tuple[tuple[str, str, Slip], ...] = (
    ("AttributeError", "'int'", NOT_WRAPPED),
    ("AttributeError", "'float'", NOT_WRAPPED),
    ("TypeError", "unhashable", Slip("not hashable", "a class with __eq__ and without __hash__ cannot be in a set "
                                     "({error})", ("__hash__ = object.__hash__",))),
    ("RecursionError", "", Slip("recursion", "Python's limit of nested calls is reached: the walk calls itself once "
                                "for every node on the way", ("stack = [self]  # a loop with a list of one's own, in "
                                "the place of a function that calls itself",))),
    ("OverflowError", "", Slip("overflow", OVERFLOW)),
    ("MemoryError", "", Slip("memory", "the memory that --memory allows is used up")),
    ("timeout", "", Slip("endless", "does not end, {error}")),
    ("died", "", Slip("died", "the process ends, {error}")),
    ("unfit none", "", Slip("nothing returned", "the operation gives None", ("return out",))),
    ("unfit number", "", Slip("no Value returned", "a plain number comes back, and the graph is lost",
                              ("out = Value(...); return out",))),
    ("unfit complex", "", Slip("complex number", "a negative base to a fractional power gives a complex number",
                               ("if self.data < 0 and n != int(n): raise ValueError(...)",))),
    ("unfit called", "", Slip("closure called", "the closure is called where it should be kept: out._backward = "
                              "_backward() keeps what it gives, None",
                              ("out._backward = _backward  # without brackets",))),
    ("unfit unassigned", "", Slip("closure not assigned", "its closure is written, and out._backward is not set to it",
                                  ("out._backward = _backward",))),
    ("unfit parts", "", Slip("no Values in _prev", "what the result keeps of its operands is not the two Values",
                             ("out = Value(..., (self, other), '+')",))),
    ("unfit nested", "", Slip("Value in a Value", "the number of the result is a Value itself",
                              ("out = Value(self.data + other.data, ...)  # numbers are added, not Values",))),
    ("unfit other", "", Slip("no number", "{error}")),
    ("", "", Slip("error", "raises {error}")),
)
"""The kind of an error, what its text holds, and the slip that it shows; the first that fits."""
# fmt: on


def candidates(op: str, kind: str, trial: str = "") -> list[Slip]:
    """The slips that a trial of this operation can show, the likeliest first."""
    if trial in OF_TRIALS:
        return OF_TRIALS[trial]
    found: list[Slip] = []
    if op in REFLECTED:
        row, exchanged = REFLECTED[op]
        says = f"{row}: the operands are exchanged, as if it were {exchanged}"
        found.append(Slip("reflected operands exchanged", says, DERIVED[row], ({plain(op): {"crossed": True}},)))
    if kind == "note":
        found += CALLS
    if plain(op) in RULES:
        found += _local(plain(op))
    return [*found, *WHOLE]


BETTER = {"tanh": "t = math.tanh(self.data)", "sigmoid": "s = 0.5 * (1 + math.tanh(0.5 * self.data))"}


def of_error(row: str, op: str, kind: str, error: str) -> Slip:
    """The slip that an error shows: of the row, of an operation, with the kind and the text of the error."""
    if kind == "RecursionError" and op:
        return Slip("endless recursion", f"{row}: calls itself without end", DERIVED.get(row, ()))
    if kind == "TypeError" and "unsupported operand" in error and "'float'" in error:
        says = f"{row}: a number is reckoned with a Value: its .data is meant ({error})"
        value = shown_value(plain(op)) if plain(op) in RULES else "..."
        return Slip("number and Value mixed", says, (f"out = Value({value}, ...)",))
    if kind == "OverflowError" and op in BETTER:
        return Slip("overflow", f"{op}: {OVERFLOW}", (BETTER[op],))
    slip = next(slip for named, holds, slip in ERRORS if named in (kind, "") and holds in error)
    says = slip.says.replace("{error}", error)
    return slip._replace(says=f"{row}: {says}" if row else says)
