"""What is tried on a Value-like class: each trial is a small program that tells which numbers came out.

The same trials run on the class that is examined, in a process of its own, and on the model of an engine
(`model.py`), which says what should have come out. This file imports nothing of Wengert's: the process that runs
the class loads it alone. A trial draws its numbers from the kit, so that no two runs ask for the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from wengert.course.grading.kit import Kit, Outcome

__all__ = ["TRIALS", "Trial"]


# -- the trials -------------------------------------------------------------------------------------------------------


Run = Callable[["Kit"], Iterator["Outcome"]]


class Trial(NamedTuple):
    """One thing to try. Several may share a row of the report.

    Its kind says when it counts: "core" from its step of the course on, "kept" at its step, and later where it is
    there, "own" at its step alone, "optional" where it is there, "note" never: it is told.
    """

    row: str
    id: str
    kind: str
    op: str  # the operation that it is about, "" for the engine as a whole
    run: Run
    needs: str = ""  # the parts and methods without which it is not tried
    step: int = 7

    def outcomes(self, kit: Kit) -> Iterator[Outcome]:
        """Run it."""
        return self.run(kit.at(self.id, self.needs))


TRIALS: list[Trial] = []
_TWICE: list[Trial] = []  # each operation of a value that is used twice: they follow when each was tried alone
Unary = Callable[[Any], Any]
Binary = Callable[[Any, Any], Any]
PASS = "grad backward"  # what a trial of a whole backward pass needs
EXPRESSION = f"{PASS} __add__ __mul__"


def _trial(
    row: str, name: str, kind: str = "core", op: str = "", needs: str = EXPRESSION, step: int = 6
) -> Callable[[Run], Run]:
    def enter(run: Run) -> Run:
        TRIALS.append(Trial(row, name, kind, op, run, needs, step))
        return run

    return enter


def _later(trial: Trial, row: str) -> None:
    """Try it behind the others; what is optional has no row but its own."""
    _TWICE.append(trial) if trial.kind == "core" else TRIALS.append(trial._replace(row=row))


def _binary(
    row: str, op: str, f: Binary, needs: str, step: int = 7, kind: str = "core", positive: bool = False
) -> None:
    """An operation on two Values: alone, and inside a larger expression, where the gradient above it is not 1."""

    def pairs(kit: Kit) -> list[tuple[float, float]]:
        return [(abs(x), y) for x, y in kit.numbers.pairs()] if positive else kit.numbers.pairs()

    def run(kit: Kit) -> Iterator[Outcome]:
        for x, y in pairs(kit):
            where = f"a = {x:g}, b = {y:g}"
            a, b = kit.leaves(x, y)
            yield from kit.gradients(where, row, f(a, b), a=a, b=b)
            yield where, f"a, after {row}", kit.value(a)
            if kit.larger:
                a, b, c = kit.leaves(x, y, 5.0)
                yield from kit.gradients(f"{where}, c = 5", f"({row}) * c", f(a, b) * c, a=a, b=b)

    TRIALS.append(Trial(row, op, kind, op, run, needs, step))

    def twice(kit: Kit) -> Iterator[Outcome]:
        for x, y in pairs(kit):
            where = f"a = {x:g}, b = {y:g}, c = 0.8"
            a, b, c = kit.leaves(x, y, 0.8)
            yield from kit.gradients(where, f"{row} + {row.replace('b', 'c')}", f(a, b) + f(a, c), a=a, b=b, c=c)
            a, b, c = kit.leaves(x, y, 0.8)
            other = row.replace("a", "c")
            yield from kit.gradients(where, f"{row} + {other}", f(a, b) + f(c, b), a=a, b=b, c=c)
            if x > 0:
                a = kit.leaf(x)
                yield from kit.gradients(f"a = {x:g}", row.replace("b", "a"), f(a, a), a=a)

    _later(Trial("a value used twice", f"twice {op}", kind, op, twice, f"{PASS} {needs}", max(step, 6)), row)


def _unary(
    row: str,
    op: str,
    f: Unary,
    needs: str,
    step: int = 7,
    kind: str = "core",
    points: tuple[float, ...] = (),
    what: str = "",
    positive: bool = False,
) -> None:
    """An operation on one Value, perhaps with a number on one side: alone, and inside a larger expression."""
    what = what or row

    def drawn(kit: Kit) -> list[float]:
        return [abs(x) if positive else x for x in kit.numbers.points()] + list(points)

    def run(kit: Kit) -> Iterator[Outcome]:
        for x in drawn(kit):
            a = kit.leaf(x)
            yield from kit.gradients(f"a = {x:g}", what, f(a), a=a)
            if kit.larger:
                a, c = kit.leaves(x, 5.0)
                yield from kit.gradients(f"a = {x:g}, c = 5", f"({what}) * c", f(a) * c, a=a, c=c)

    TRIALS.append(Trial(row, f"{op} {what}", kind, op, run, needs, step))

    def twice(kit: Kit) -> Iterator[Outcome]:
        for x in drawn(kit):
            a = kit.leaf(x)
            yield from kit.gradients(f"a = {x:g}", f"{what} + {what}", f(a) + f(a), a=a)

    _later(
        Trial("a value used twice", f"twice {op} {what}", kind, op, twice, f"{PASS} {needs} __add__", max(step, 6)), row
    )


@_trial("Value(2.0)", "leaf", needs="", step=1)
def _leaf(kit: Kit) -> Iterator[Outcome]:
    for number in (2, *kit.numbers.numbers(3)):
        yield f"a = Value({number})", "a.data", kit.value(kit.leaf(number))


@_trial("repr(a)", "repr", "own", needs="", step=1)
def _repr(kit: Kit) -> Iterator[Outcome]:
    if getattr(kit.make, "__repr__", None) is object.__repr__:
        kit.unfit("absent", "Python's own repr")
    for number in kit.numbers.numbers(2):
        yield f"a = Value({number})", "the number that repr(a) shows", _shown_number(repr(kit.leaf(number)), number)


def _shown_number(text: str, number: float) -> float:
    """The number in a text that is nearest to the one that should stand there."""
    found = []
    for word in "".join(c if c.isalnum() or c in "+-._" else " " for c in text).split():
        with suppress(ValueError):
            found.append(float(word))
    return min(found, key=lambda x: abs(x - number), default=float("nan"))


@_trial("a.grad, at first", "start", needs="grad", step=3)
def _start(kit: Kit) -> Iterator[Outcome]:
    for number in kit.numbers.numbers(2):
        yield f"a = Value({number})", "the gradient of a before backward()", kit.grad(kit.leaf(number))


_binary("a + b", "add", lambda a, b: a + b, "__add__", 1)
_unary("a + 3", "add", lambda a: a + 3, "__add__", 1)
_binary("a * b", "mul", lambda a, b: a * b, "__mul__", 1)
_unary("a * 3", "mul", lambda a: a * 3, "__mul__", 1)


@_trial("c._prev", "parts", "kept", needs="_prev __add__ __mul__", step=2)
def _parts(kit: Kit) -> Iterator[Outcome]:
    a, b, c, f = leaves = kit.leaves(*kit.numbers.numbers(4))
    where = ", ".join([f"{name} = {kit.value(x):g}" for name, x in zip("abcf", leaves, strict=True)])
    yield where, "how many Values a._prev holds", float(len(kit.parts(a)))
    for what, x in (("a * b", a * b), ("a + b", a + b)):
        parts = kit.parts(x)
        yield where, f"how many Values the _prev of {what} holds", float(len(parts))
        yield where, f"the sum of the numbers in the _prev of {what}", sum([kit.value(part) for part in parts])
    ends = [kit.value(node) for node in kit.under((a * b + c) * f) if not kit.parts(node)]
    yield where, "the sum of the leaves' numbers under (a * b + c) * f", sum(ends)


OPS = (("+", "add", "plus", "sum"), ("*", "mul", "times", "prod"))


@_trial("c._op", "symbols", "own", needs="_op __add__ __mul__", step=2)
def _symbols(kit: Kit) -> Iterator[Outcome]:
    a, b = kit.leaves(*kit.numbers.numbers(2))
    if not getattr(a + b, kit.names["_op"]) and not getattr(a * b, kit.names["_op"]):
        kit.unfit("absent", "no operation has its symbol")
    for what, x in (("a + b", a + b), ("a * b", a * b)):
        symbol = getattr(x, kit.names["_op"])
        number = next((number for number, names in enumerate(OPS, 1) if symbol in names), 3 if symbol else 0)
        yield "", f"the symbol of {what} (1 for '+', 2 for '*')", float(number)


@_trial("Value(2.0, label='a')", "label", "own", needs="", step=2)
def _label(kit: Kit) -> Iterator[Outcome]:
    name = kit.names.get("label", "label")
    try:
        a = kit.make(kit.numbers.number(), label="a")
    except TypeError:
        kit.unfit("absent", "no label")
    yield "a = Value(..., label='a')", "whether a.label is 'a' (1: it is)", float(getattr(a, name, None) == "a")


_unary("a.tanh()", "tanh", lambda a: a.tanh(), "tanh", 4, "kept", (0.0, 3.0))


@_trial("gradients inside an expression", "inside", step=5)
def _inside(kit: Kit) -> Iterator[Outcome]:
    a, b, c, f = leaves = kit.leaves(*kit.numbers.numbers(4))
    e = a * b
    d = e + c
    L = d * f
    where = ", ".join([f"{name} = {kit.value(x):g}" for name, x in zip("abcf", leaves, strict=True)])
    where += "; e = a * b; d = e + c; L = d * f"
    yield from kit.gradients(where, "L", L, a=a, b=b, c=c, f=f, e=e, d=d, L=L)
    yield where, "L.data, after backward()", kit.value(L)


@_trial("every node once, in order", "calls", "optional", needs=f"{EXPRESSION} _backward", step=5)
def _calls(kit: Kit) -> Iterator[Outcome]:
    a, b, c = kit.leaves(*kit.numbers.numbers(3))
    s = a * b
    t = s + c
    u = t * s
    v = u + t
    L = v * s
    nodes = {"s": s, "t": t, "u": u, "v": v, "L": L}
    users = {"s": "tuL", "t": "uv", "u": "v", "v": "L", "L": ""}
    calls: list[str] = []
    for name, node in nodes.items():
        _record(kit, node, name, calls)
    kit.backward(L)
    where = "s = a * b; t = s + c; u = t * s; v = u + t; L = v * s; L.backward()"
    for name, uses in users.items():
        yield where, f"how often {name}._backward() is called", float(calls.count(name))
        first = calls.index(name) if name in calls else len(calls)
        early = [user for user in uses if user not in calls[:first] and calls.count(name) == 1]
        yield where, f"how many of the nodes made of {name} are called only after it", float(len(early))


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


_unary("3 + a", "radd", lambda a: 3 + a, "__radd__")
_unary("3 * a", "rmul", lambda a: 3 * a, "__rmul__")
_unary("-a", "neg", lambda a: -a, "__neg__")
_binary("a - b", "sub", lambda a, b: a - b, "__sub__")
_unary("a - 3", "sub", lambda a: a - 3, "__sub__")
_unary("3 - a", "rsub", lambda a: 3 - a, "__rsub__", kind="optional")
_unary("a ** n", "pow", lambda a: a**3, "__pow__", points=(0.0,), what="a ** 3")
_unary("a ** n", "pow", lambda a: a**2, "__pow__", points=(0.0,), what="a ** 2")
_unary("a ** n", "pow", lambda a: a**-1, "__pow__", what="a ** -1")
_unary("a ** n", "pow", lambda a: a**0.5, "__pow__", what="a ** 0.5", positive=True)
_binary("a / b", "div", lambda a, b: a / b, "__truediv__")
_unary("a / 4", "div", lambda a: a / 4, "__truediv__")
_unary("4 / a", "rdiv", lambda a: 4 / a, "__rtruediv__", kind="optional")


@_trial("sum([a, b, c])", "sum", op="radd", needs="__add__ __radd__", step=7)
def _sum(kit: Kit) -> Iterator[Outcome]:
    x, y, z = kit.numbers.numbers(3)
    a, b, c = kit.leaves(x, y, z)
    if kit.mode == "backward":
        yield from kit.gradients(f"a = {x:g}, b = {y:g}, c = {z:g}", "sum([a, b, c])", sum([a, b, c]), a=a, b=b, c=c)
    else:
        yield f"a = {x:g}, b = {y:g}, c = {z:g}", "sum([a, b, c])", kit.value(sum([a, b, c]))


TRIALS += _TWICE

_unary("a.exp()", "exp", lambda a: a.exp(), "exp", kind="kept", points=(0.0,))
for _name in ("relu", "sigmoid", "log", "sqrt", "sin", "cos"):
    _unary(
        f"a.{_name}()",
        _name,
        lambda a, name=_name: getattr(a, name)(),  # type: ignore[misc]
        _name,
        kind="optional",
        points=(0.0, 3.0) if _name == "sigmoid" else (),
        positive=_name in ("log", "sqrt"),
    )
_unary("abs(a)", "abs", abs, "__abs__", kind="optional")
_unary("2 ** a", "rpow", lambda a: 2**a, "__rpow__", kind="optional")
_binary("a ** b", "powv", lambda a, b: a**b, "__pow__", kind="optional", positive=True)


@_trial("a result used twice", "shared")
def _shared(kit: Kit) -> Iterator[Outcome]:
    for x, y in kit.numbers.pairs():
        a, b, c, d = kit.leaves(x, y, 3.0, -2.0)
        s = a * b
        where = f"a = {x:g}, b = {y:g}, c = 3, d = -2; s = a * b"
        yield from kit.gradients(where, "s * c + s * d", s * c + s * d, a=a, b=b)


@_trial("a result used again further on", "order")
def _order(kit: Kit) -> Iterator[Outcome]:
    for x, y in kit.numbers.pairs():
        where = f"a = {x:g}, b = {y:g}; s = a * b; t = s + a"
        for what in ("s * t", "t * s"):
            a, b = kit.leaves(x, y)
            s = a * b
            t = s + a
            yield from kit.gradients(where, what, s * t if what == "s * t" else t * s, a=a, b=b, s=s)
        for what in ("s * u", "u * s"):
            a, b = kit.leaves(x, y)
            s = a * b
            u = (s + a) * (s + b) + a
            yield from kit.gradients(
                f"a = {x:g}, b = {y:g}; s = a * b; u = (s + a) * (s + b) + a",
                what,
                s * u if what == "s * u" else u * s,
                a=a,
                b=b,
            )


@_trial("different values of equal numbers", "equal")
def _equal(kit: Kit) -> Iterator[Outcome]:
    x, y = kit.numbers.numbers(2)
    a, b, c, d = kit.leaves(x, x, y, y)
    where = f"a = {x:g}, b = {x:g}, c = {y:g}, d = {y:g}; s = a * c; t = b * d"
    s, t = a * c, b * d
    yield from kit.gradients(where, "s * t", s * t, a=a, b=b, c=c, d=d)


@_trial("an expression of twenty operations", "long")
def _long(kit: Kit) -> Iterator[Outcome]:
    x, y = ((-4.0, 2.0), (3.0, -2.0), (-2.5, 1.5), (2.0, -1.5))[kit.numbers.below(4)]
    a, b = kit.leaves(x, y)
    c = a + b
    d = a * b + b * b * b
    c += c + 1
    c += c + a * -1
    d += d * 2 + (b + a)
    d += d * 3 + (b * 2 + a)
    e = c + d * -1
    g = e * e * 0.5 + e
    yield from kit.gradients(f"a = {x:g}, b = {y:g}", "g, of c, d and e", g, a=a, b=b)


@_trial("random expressions", "random")
def _random(kit: Kit) -> Iterator[Outcome]:
    for program in range(6):
        x, y, z = kit.numbers.choose((0.5, 0.6, 0.75, 1.25, 1.5), 3)
        a, b, c = nodes = kit.leaves(x, y, z)
        for _ in range(14):
            left, right = nodes[-1 - kit.numbers.below(min(5, len(nodes)))], kit.numbers.below(len(nodes))
            nodes.append(left + nodes[right] if kit.numbers.below(2) else left * nodes[right % 3])
        root = nodes[-1] + nodes[-2] * nodes[3]
        yield from kit.gradients(f"a = {x:g}, b = {y:g}, c = {z:g}", f"expression {program}", root, a=a, b=b, c=c)


@_trial("forty doublings, s = s + s * one", "ladder")
def _ladder(kit: Kit) -> Iterator[Outcome]:
    a, one = kit.leaves(1.0, 1.0)
    s = a
    for _ in range(40):
        s = s + s * one
    yield from kit.gradients("a = 1", "forty doublings of a", s, a=a)


@_trial("backward() of a second expression", "again")
def _again(kit: Kit) -> Iterator[Outcome]:
    x = kit.numbers.number()
    a, five = kit.leaves(x, 5.0)
    yield from kit.gradients(f"a = {x:g}", "a * a", a * a, a=a)
    b = a * five
    kit.backward(b)
    what = f"the gradient of a, after backward() of a * a and then of a * 5: {2 * x:g} + 5"
    yield f"a = {x:g}", what, kit.grad(a)


@_trial("a gradient set to zero, then a new expression", "zeroed")
def _zeroed(kit: Kit) -> Iterator[Outcome]:
    x, y = kit.numbers.numbers(2)
    a, b = kit.leaves(x, y)
    for _ in range(3):
        kit.zero(a, b)
        yield from kit.gradients(f"a = {x:g}, b = {y:g}", "a * b + a", a * b + a, a=a, b=b)


def _by_hand(names: str) -> Run:
    """What is written in the nodes of an expression that the file makes, or in a dict of its gradients."""

    def run(kit: Kit) -> Iterator[Outcome]:
        for name in names.split():
            data, grad = kit.look(name)
            yield "", f"{name}.data", data
            yield "", f"{name}.grad", grad

    return run


for _row, _names in {
    "L = (a * b + c) * f": "a b c f e d L",
    "o = tanh(x1 * w1 + x2 * w2 + b)": "x1 w1 x2 w2 b n o",
}.items():
    TRIALS.append(Trial(_row, f"by hand {_row[0]}", "own", "", _by_hand(_names), "", 3))
