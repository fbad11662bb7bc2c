"""What is tried on a Value-like class.

The same trials run on the class that is examined, in a process of its own, and on the model of an engine
(`model.py`), which says what should have come out. This file imports nothing of Wengert's: the process that runs
the class loads it alone. A trial draws its numbers from the kit, so that no two runs ask for the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import chain
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wengert_course.checks.kit import Kit, Outcome

__all__ = ["TRIALS"]

PASS = "grad backward"  # what a trial of a whole backward pass needs
EXPRESSION = f"{PASS} __add__ __mul__"
ZEROED = "for _ in range(3): zero(a, b); back(a * b + a)"
SECOND = "s = a * b; c = s * s; back(c); back(c)", "c = a * b; back(c); back(c)"
LOSSES = "s = a * b; c = s * s; d = s * s + s; back(c); zero(a); back(d)"
AGAIN_ZEROED = "s = a * b; c = s * s; back(c); zero(a); back(c)"
CHANGED = "c = a * b; put(b, 100.0); back(c)"
TWICE = "a value used twice"  # a row that the operations share
NEURON = "o = tanh(x1 * w1 + x2 * w2 + bias)"
Row = tuple[Any, ...]  # what a Trial is made of


# -- one operation ----------------------------------------------------------------------------------------------------


def _operation(
    row: str,  # which is how it is written, too, unless there is a `text`
    op: str,
    needs: str,  # what the class has to have
    step: int = 7,
    kind: str = "core",
    text: str = "",  # how it is written, of a, and of b where there are two operands
    points: tuple[float, ...] = (),  # at which numbers it is tried besides those that are drawn
    positive: bool = False,  # whether the left operand has to be above 0
) -> list[Row]:
    """An operation: alone; inside a larger expression, where the gradient above it is not 1; of a value used twice."""
    text = text or row
    binary = text.endswith(" b")

    def drawn(kit: Kit) -> list[dict[str, float]]:
        pairs = [{"a": x, "b": y} for x, y in kit.numbers.pairs()] if binary else []
        numbers = pairs or [{"a": x} for x in (*kit.numbers.points(), *points)]
        return [{**at, "a": abs(at["a"])} for at in numbers] if positive else numbers

    def alone(kit: Kit) -> Iterator[Outcome]:
        for at in drawn(kit):
            yield from kit.tell(text, at)
            for name in "ab" if binary else "":
                yield kit.where(at), f"{name}, after {text}", kit.value(kit.scope[name])
            if kit.plan.product and kit.plan.mode == "backward":
                yield from kit.tell(f"({text}) * c", {**at, "c": 5.0}, "a b" if binary else "a c")

    def twice(kit: Kit) -> Iterator[Outcome]:
        part = f"({text})" if " + " in text or " - " in text else text
        for at in drawn(kit):
            if binary:
                yield from kit.tell(f"{part} + {part.replace('b', 'c')}", {**at, "c": 0.8})
                yield from kit.tell(f"{part} + {part.replace('a', 'c')}", {**at, "c": 0.8})
                if at["a"] > 0:
                    yield from kit.tell(text.replace("b", "a"), {"a": at["a"]})
            else:
                yield from kit.tell(f"{part} + {part}", at)

    name = op if binary else f"{op} {text}"
    shared = TWICE if kind == "core" else row  # what is optional has no row but its own
    needed = f"{PASS} {needs}" if binary else f"{PASS} {needs} __add__"
    return [
        (row, name, kind, op, alone, needs, step),
        (shared, f"twice {name}", kind, op, twice, needed, max(step, 6)),
    ]


# -- what a class remembers -------------------------------------------------------------------------------------------


def _leaf(kit: Kit) -> Iterator[Outcome]:
    for number in (2, *kit.numbers.points()):
        yield f"a = Value({number})", "a.data", kit.value(kit.make(number))


def _repr(kit: Kit) -> Iterator[Outcome]:
    if getattr(kit.make, "__repr__", None) is object.__repr__:
        kit.unfit("absent", "Python's own repr")
    for number in kit.numbers.points():
        yield f"a = Value({number})", "the number that repr(a) shows", _shown_number(repr(kit.make(number)), number)


def _shown_number(text: str, number: float) -> float:
    """The number in a text that is nearest to the one that should stand there."""
    found = []
    for word in "".join(c if c.isalnum() or c in "+-._" else " " for c in text).split():
        with suppress(ValueError):
            found.append(float(word))
    return min(found, key=lambda x: abs(x - number), default=float("nan"))


def _start(kit: Kit) -> Iterator[Outcome]:
    for number in kit.numbers.numbers(2):
        yield f"a = Value({number})", "the gradient of a before backward()", kit.grad(kit.make(number))


def _parts(kit: Kit) -> Iterator[Outcome]:
    numbers = kit.drawn("a b c f")
    a, b, c, f = kit.leaves(*numbers.values())
    where = kit.where(numbers)
    yield where, "how many Values a._prev holds", float(len(kit.parts(a)))
    for what, x in (("a * b", a * b), ("a + b", a + b)):
        parts = kit.parts(x)
        yield where, f"how many Values the _prev of {what} holds", float(len(parts))
        yield where, f"the sum of the numbers in the _prev of {what}", sum([kit.value(part) for part in parts])
    ends = [kit.value(node) for node in kit.under((a * b + c) * f) if not kit.parts(node)]
    yield where, "the sum of the leaves' numbers under (a * b + c) * f", sum(ends)


def _operands(kit: Kit) -> Iterator[Outcome]:
    for what in ("a + b", "a * b"):
        parts = kit.parts(kit.run(what, kit.drawn("a b")))
        own = sum([part is kit.scope[name] for part in parts for name in "ab"])
        yield "", f"how many of a and b themselves are in the _prev of {what}", float(own)


def _wrapped(kit: Kit) -> Iterator[Outcome]:
    numbers = kit.drawn("a")
    parts = kit.parts(kit.run("a + 3", numbers))
    yield kit.where(numbers), "the sum of the numbers in the _prev of a + 3", sum([kit.value(part) for part in parts])


OPS = (("+", "add", "plus", "sum"), ("*", "mul", "times", "prod"))


def _symbols(kit: Kit) -> Iterator[Outcome]:
    a, b = kit.leaves(*kit.numbers.numbers(2))
    named = (("a + b", a + b), ("a * b", a * b), ("a", a))
    symbols = {what: getattr(x, kit.names["_op"]) for what, x in named}
    if not any(symbols.values()):
        kit.unfit("absent", "no operation has its symbol")
    for what, symbol in symbols.items():
        number = next((number for number, names in enumerate(OPS, 1) if symbol in names), 3 if symbol else 0)
        yield "", f"the symbol of {what} (1 for '+', 2 for '*', 0 for '')", float(number)


def _label(kit: Kit) -> Iterator[Outcome]:
    try:
        a = kit.make(kit.numbers.number(), label="a")
    except TypeError:
        kit.unfit("absent", "no label")
    for x, label in ((a, "a"), (kit.make(2.0), "")):
        kept = getattr(x, kit.names.get("label", "label"), None) == label
        yield f"x = Value(..., label={label!r})", f"whether x.label is {label!r} (1: it is)", float(kept)


def _by_hand(names: str) -> Callable[[Kit], Iterator[Outcome]]:
    """What is written in the nodes of an expression that the file makes."""

    def run(kit: Kit) -> Iterator[Outcome]:
        for name in names.split():
            data, grad = kit.look(name)
            if hasattr(getattr(kit.space.get(name), "grad", None), "data"):
                kit.unfit(
                    "gradient", f"{name}.grad is a Value, where a number is asked for: f.data * L.grad, as an example"
                )
            yield "", f"{name}.data", data
            yield "", f"{name}.grad", grad

    return run


# -- the backward pass ------------------------------------------------------------------------------------------------


def _inside(kit: Kit) -> Iterator[Outcome]:
    numbers, program = kit.drawn("a b c f"), "e = a * b; d = e + c; L = d * f"
    yield from kit.tell(f"{program}; L", numbers, "a b c f e d L")
    yield f"{kit.where(numbers)}; {program}", "L.data, after backward()", kit.value(kit.scope["L"])


CALLS = "s = a * b; t = s + c; u = t * s; v = u + t; L = v * s"
USERS = {"s": "tuL", "t": "uv", "u": "v", "v": "L", "L": ""}  # of each node, the nodes that are made of it


def _calls(kit: Kit) -> Iterator[Outcome]:
    root = kit.run(f"{CALLS}; L", kit.drawn("a b c"))
    calls: list[str] = []
    for name in USERS:
        _record(kit, kit.scope[name], name, calls)
    kit.backward(root)
    for name, uses in USERS.items():
        yield f"{CALLS}; L.backward()", f"how often {name}._backward() is called", float(calls.count(name))
        first = calls.index(name) if name in calls else len(calls)
        early = [user for user in uses if user not in calls[:first] and calls.count(name) == 1]
        what = f"how many of the nodes made of {name} are called only after it"
        yield f"{CALLS}; L.backward()", what, float(len(early))
    kit.backward(kit.run("a * b", kit.drawn("a b")))
    yield (
        f"{CALLS}; L.backward()",
        "how often backward() of another expression calls L._backward()",
        calls.count("L") - 1.0,
    )


def _record(kit: Kit, node: Any, name: str, calls: list[str]) -> None:
    """Have a node write down each call of its `_backward`."""
    own = getattr(node, kit.names["_backward"])
    if not callable(own):
        kit.unfit("absent", "no closure")

    def recorded(*arguments: Any) -> Any:
        calls.append(name)
        return own(*arguments)

    try:
        setattr(node, kit.names["_backward"], recorded)
    except (AttributeError, TypeError, ValueError, RuntimeError):  # a class that keeps what it is given to itself
        kit.unfit("absent", "the closure cannot be replaced")


def _sum(kit: Kit) -> Iterator[Outcome]:
    told = kit.tell("sum([a, b, c])", kit.drawn("a b c"))
    yield next(told)
    if kit.plan.mode == "backward":  # it has no closure of its own
        yield from told


def _of_pairs(*programs: tuple[str, str], **more: float) -> Callable[[Kit], Iterator[Outcome]]:
    """Programs of a and b, each with the names whose gradients are told."""

    def run(kit: Kit) -> Iterator[Outcome]:
        for x, y in kit.numbers.pairs():
            for program, look in programs:
                yield from kit.tell(program, {"a": x, "b": y, **more}, look)

    return run


SHARED = ("s = a * b; s * c + s * d", "a b")
AGAIN = (
    ("s = a * b; t = s + a; s * t", "a b s"),
    ("s = a * b; t = s + a; t * s", "a b s"),
    ("s = a * b; u = (s + a) * (s + b) + a; s * u", "a b"),
    ("s = a * b; u = (s + a) * (s + b) + a; u * s", "a b"),
)


def _equal(kit: Kit) -> Iterator[Outcome]:
    x, y = kit.numbers.numbers(2)
    yield from kit.tell("s = a * c; t = b * d; s * t", {"a": x, "b": x, "c": y, "d": y})


LONG = "c = a + b; d = a * b + b * b * b; c += c + 1; c += c + a * -1; d += d * 2 + (b + a); d += d * 3 + (b * 2 + a)"


def _long(kit: Kit) -> Iterator[Outcome]:
    x, y = ((-4.0, 2.0), (3.0, -2.0), (-2.5, 1.5), (2.0, -1.5))[kit.numbers.below(4)]
    yield from kit.tell(f"{LONG}; e = c + d * -1; e * e * 0.5 + e", {"a": x, "b": y})


def _random(kit: Kit) -> Iterator[Outcome]:
    for program in range(6):
        x, y, z = kit.numbers.choose((0.5, 0.6, 0.75, 1.25, 1.5), 3)
        a, b, c = nodes = kit.leaves(x, y, z)
        for _ in range(14):
            left, right = nodes[-1 - kit.numbers.below(min(5, len(nodes)))], kit.numbers.below(len(nodes))
            nodes.append(left + nodes[right] if kit.numbers.below(2) else left * nodes[right % 3])
        root = nodes[-1] + nodes[-2] * nodes[3]
        yield from kit.gradients(f"a = {x:g}, b = {y:g}, c = {z:g}", f"expression {program}", root, a=a, b=b, c=c)


def _ladder(kit: Kit) -> Iterator[Outcome]:
    a, one = kit.leaves(1.0, 1.0)
    s = a
    for _ in range(40):
        s = s + s * one
    yield from kit.gradients("a = 1", "forty doublings of a", s, a=a)


def _after(*programs: str, **numbers: float) -> Callable[[Kit], Iterator[Outcome]]:
    """The gradient of a after each program, on these numbers; in it stand back(c), zero(a) and put(a, 2.0)."""

    def run(kit: Kit) -> Iterator[Outcome]:
        for program in programs:
            given = numbers or kit.drawn("a b")
            scope = {name: kit.make(number) for name, number in given.items()}
            exec(program, {"back": kit.backward, "zero": kit.zero, "put": kit.put}, scope)
            yield f"{kit.where(given)}; {program}", "the gradient of a", kit.grad(scope["a"])

    return run


# -- what is told, and does not count: limits that micrograd itself has ------------------------------------------------


def _chain(kit: Kit) -> Iterator[Outcome]:
    a = s = kit.make(1.0)
    for _ in range(10_000):
        s = s + kit.make(1.0)
    yield from kit.gradients("a = 1", "a + 1 + 1 + ...", s, a=a)


def _lookup(kit: Kit) -> Iterator[Outcome]:
    """A list asks ``==`` of each of its members, where a set asks for one hash."""
    asked = 0

    def equal(x: Any, y: Any) -> Any:
        nonlocal asked
        asked += 1
        return x is y

    root = a = kit.make(2.0)
    for number in range(10):
        root = root * kit.make(0.5) + (a if number % 2 else root)
    kind: Any = type(root)
    plain = [getattr(kind, name) for name in ("__eq__", "__hash__")] == [object.__eq__, object.__hash__]
    with suppress(AttributeError, TypeError):  # a class that cannot be changed answers with 0
        if plain:
            kind.__eq__ = equal
    try:
        kit.backward(root)
    finally:
        with suppress(AttributeError, TypeError):
            if plain:
                del kind.__eq__
    yield "", "whether backward() compares nodes with each other, one after the other (1: it does)", float(asked > 40)


def _at(program: str, *points: float) -> Callable[[Kit], Iterator[Outcome]]:
    return lambda kit: chain.from_iterable(kit.tell(program, {"a": x}) for x in points)


def _negative_base(kit: Kit) -> Iterator[Outcome]:
    with suppress(ArithmeticError, ValueError, TypeError, AssertionError, NotImplementedError):  # to refuse it is fine
        kit.value(kit.make(-8.0) ** (1 / 3))  # UnfitError, where it is complex
    yield "a = -8", "a ** (1/3), if it is complex", 0.0


LARGE = (1000.0, -1000.0)


# -- the trials -------------------------------------------------------------------------------------------------------

BASICS: list[Row] = [
    ("Value(2.0)", "leaf", "core", "", _leaf, "", 1),
    ("repr(a)", "repr", "own", "", _repr, "", 1),
    ("a.grad, at first", "start", "core", "", _start, "grad", 3),
    *_operation("a + b", "add", "__add__", 1),
    *_operation("a + 3", "add", "__add__", 1),
    *_operation("a + 3", "add", "__add__", 1, text="a + 0.5"),
    *_operation("a * b", "mul", "__mul__", 1),
    *_operation("a * 3", "mul", "__mul__", 1),
    *_operation("a * 3", "mul", "__mul__", 1, text="a * 0.5"),
    ("c._prev", "parts", "kept", "", _parts, "_prev __add__ __mul__", 2),
    ("c._prev", "operands", "own", "", _operands, "_prev __add__ __mul__", 2),
    ("c._prev", "wrapped", "own", "", _wrapped, "_prev __add__", 2),
    ("c._op", "symbols", "own", "", _symbols, "_op __add__ __mul__", 2),
    ("Value(2.0, label='a')", "label", "own", "", _label, "", 2),
    *_operation("a.tanh()", "tanh", "tanh", 4, "kept", points=(0.0, 3.0)),
    ("gradients inside an expression", "inside", "core", "", _inside, EXPRESSION, 5),
    ("every node once, in order", "calls", "optional", "", _calls, f"{EXPRESSION} _backward", 5),
    *_operation("3 + a", "radd", "__radd__"),
    *_operation("3 * a", "rmul", "__rmul__"),
    *_operation("-a", "neg", "__neg__"),
    *_operation("a - b", "sub", "__sub__"),
    *_operation("a - 3", "sub", "__sub__"),
    *_operation("3 - a", "rsub", "__rsub__", kind="kept"),
    *_operation("a ** n", "pow", "__pow__", text="a ** 3", points=(0.0,)),
    *_operation("a ** n", "pow", "__pow__", text="a ** 2", points=(0.0,)),
    *_operation("a ** n", "pow", "__pow__", text="a ** -1"),
    *_operation("a ** n", "pow", "__pow__", text="a ** 0.5", positive=True),
    *_operation("a / b", "div", "__truediv__"),
    *_operation("a / 4", "div", "__truediv__"),
    *_operation("4 / a", "rdiv", "__rtruediv__", kind="kept"),
    ("sum([a, b, c])", "sum", "core", "radd", _sum, "__add__ __radd__", 7),
]
TRIALS: list[Row] = [
    *[row for row in BASICS if row[0] != TWICE],
    *[row for row in BASICS if row[0] == TWICE],  # when each was tried alone
    *_operation("a.exp()", "exp", "exp", kind="kept", points=(0.0,)),
    *_operation("a.relu()", "relu", "relu", kind="optional"),
    *_operation("a.sigmoid()", "sigmoid", "sigmoid", kind="optional", points=(0.0, 3.0)),
    *_operation("a.log()", "log", "log", kind="optional", positive=True),
    *_operation("a.sqrt()", "sqrt", "sqrt", kind="optional", positive=True),
    *_operation("a.sin()", "sin", "sin", kind="optional"),
    *_operation("a.cos()", "cos", "cos", kind="optional"),
    *_operation("abs(a)", "abs", "__abs__", kind="optional"),
    *_operation("2 ** a", "rpow", "__rpow__", kind="optional"),
    *_operation("a ** b", "powv", "__pow__", kind="optional", positive=True),
    ("a result used twice", "shared", "core", "", _of_pairs(SHARED, c=3.0, d=-2.0), EXPRESSION, 6),
    ("a result used again further on", "order", "core", "", _of_pairs(*AGAIN), EXPRESSION, 6),
    ("different values of equal numbers", "equal", "core", "", _equal, EXPRESSION, 6),
    ("an expression of twenty operations", "long", "core", "", _long, EXPRESSION, 6),
    ("random expressions", "random", "core", "", _random, EXPRESSION, 6),
    ("forty doublings, s = s + s * one", "ladder", "core", "", _ladder, EXPRESSION, 6),
    ("backward() of a second expression", "again", "core", "", _after("back(a * a); back(a * b)"), EXPRESSION, 6),
    ("a gradient set to zero, then a new expression", "zeroed", "core", "", _after(ZEROED), EXPRESSION, 6),
    ("L = (a * b + c) * f", "by hand L", "own", "", _by_hand("a b c f e d L"), "", 3),
    (NEURON, "by hand o", "own", "", _by_hand("x1 w1 x2 w2 bias x1w1 x2w2 both n o"), "", 3),
    ("backward() twice on one expression", "second", "note", "", _after(*SECOND, a=3.0, b=2.0), EXPRESSION, 6),
    ("two results that share a part", "two losses", "note", "", _after(LOSSES, a=2.0, b=3.0), EXPRESSION, 6),
    (
        "a leaf set to zero, backward() again",
        "leaf zeroed",
        "note",
        "",
        _after(AGAIN_ZEROED, a=2.0, b=3.0),
        EXPRESSION,
        6,
    ),
    ("data changed before backward()", "changed", "note", "", _after(CHANGED, a=3.0, b=2.0), EXPRESSION, 6),
    ("a chain of 10,000 operations", "chain", "note", "", _chain, EXPRESSION, 6),
    ("a shared node is looked up", "lookup", "note", "", _lookup, EXPRESSION, 5),
    ("relu at 0", "relu 0", "note", "relu", _at("a.relu()", 0.0), f"{PASS} relu", 6),
    ("tanh of 1000 and -1000", "tanh 1000", "note", "tanh", _at("a.tanh()", *LARGE), f"{PASS} tanh", 6),
    ("sigmoid of 1000 and -1000", "sigmoid 1000", "note", "sigmoid", _at("a.sigmoid()", *LARGE), f"{PASS} sigmoid", 6),
    ("a negative base, (-8) ** (1/3)", "negative base", "note", "pow", _negative_base, "__pow__", 7),
]
