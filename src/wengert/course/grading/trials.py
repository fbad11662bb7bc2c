"""What is tried on a Value-like class: each trial is a small program that tells which numbers came out.

The same trials run on the class that is examined, in a process of its own, and on the model of an engine
(`model.py`), which says what should have come out. This file imports nothing of Wengert's: the process that runs
the class loads it alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, NamedTuple

__all__ = ["NAMES", "TRIALS", "Kit", "Outcome", "Trial", "UnfitError"]

Outcome = tuple[str, str, float]
"""Where (the numbers that went in), what (a value or a gradient), and the number that came out."""

NAMES: dict[str, tuple[str, ...]] = {
    "data": ("data", "value", "val"),
    "grad": ("grad", "gradient", "derivative", "adjoint"),
    "backward": ("backward", "backprop", "backpropagate"),
}
"""What a Value-like class may call its parts; the first is what is expected."""


class UnfitError(Exception):
    """What came back is no number, or no Value; `kind` says what it is."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind: str = kind


class Kit:
    """A class to try, whatever it calls its parts."""

    def __init__(self, make: Callable[[float], Any], names: dict[str, str]) -> None:
        self.make: Callable[[float], Any] = make
        self.names: dict[str, str] = names

    def leaf(self, number: float) -> Any:
        """A new leaf."""
        return self.make(number)

    def leaves(self, *numbers: float) -> list[Any]:
        """A new leaf of each number."""
        return [self.make(number) for number in numbers]

    def value(self, x: Any) -> float:
        """The number in a Value."""
        if x is None:
            raise UnfitError("none", "the operation gives None, expected a Value")
        if not hasattr(x, self.names["data"]):
            raise UnfitError(
                "number" if isinstance(x, (int, float)) else "other", f"{_shown(x)} came back, not a Value"
            )
        return self._number(getattr(x, self.names["data"]), self.names["data"])

    def grad(self, x: Any) -> float:
        """The gradient in a Value; 0 where it is still None, as some engines have it before backward()."""
        grad = getattr(x, self.names["grad"])
        return 0.0 if grad is None else self._number(grad, self.names["grad"])

    def backward(self, x: Any) -> None:
        """Run the backward pass from x."""
        getattr(x, self.names["backward"])()

    def zero(self, *xs: Any) -> None:
        """Set gradients to zero."""
        for x in xs:
            setattr(x, self.names["grad"], 0.0)

    def put(self, x: Any, number: float) -> None:
        """Set the number in a Value."""
        setattr(x, self.names["data"], number)

    def gradients(self, where: str, what: str, root: Any, **leaves: Any) -> Iterator[Outcome]:
        """The value of the root, and after backward() the gradient of each leaf."""
        yield where, what, self.value(root)
        self.backward(root)
        for name, leaf in leaves.items():
            yield where, f"d({what})/d{name}", self.grad(leaf)

    def _number(self, x: Any, name: str) -> float:
        if isinstance(x, complex):
            raise UnfitError("complex", f".{name} is the complex number {x!r}")
        try:
            return float(x)  # the numbers of NumPy and others too
        except (TypeError, ValueError):
            if isinstance(getattr(x, self.names["data"], None), (int, float)):  # a gradient that is a Value itself
                return float(getattr(x, self.names["data"]))
            raise UnfitError("other", f".{name} is {_shown(x)}, expected a number") from None


def _shown(x: Any) -> str:
    return f"{type(x).__name__} {x!r:.40}"


# -- the trials -------------------------------------------------------------------------------------------------------


Run = Callable[[Kit], Iterator[Outcome]]


class Trial(NamedTuple):
    """One thing to try. Several may share a row of the report."""

    row: str
    id: str
    kind: str  # "core": has to be there; "optional": counted where it is there; "note": told, and not counted
    op: str  # the operation that it is about, "" for the engine as a whole
    run: Run
    needs: str = ""  # a method without which it is not tried


TRIALS: list[Trial] = []
_TWICE: list[Trial] = []  # each operation of a value that is used twice: they follow when each was tried alone
Unary = Callable[[Any], Any]
Binary = Callable[[Any, Any], Any]
PAIRS = ((2.0, -3.0), (-1.5, 4.0), (0.5, 0.25))


def _trial(row: str, name: str, kind: str = "core", op: str = "", needs: str = "") -> Callable[[Run], Run]:
    def enter(run: Run) -> Run:
        TRIALS.append(Trial(row, name, kind, op, run, needs))
        return run

    return enter


def _later(trial: Trial, row: str) -> None:
    """Try it behind the others; what is optional has no row but its own."""
    _TWICE.append(trial) if trial.kind == "core" else TRIALS.append(trial._replace(row=row))


def _binary(row: str, op: str, f: Binary, pairs: tuple[tuple[float, float], ...] = PAIRS, kind: str = "core") -> None:
    """An operation on two Values: alone, and inside a larger expression, where the gradient above it is not 1."""

    def run(kit: Kit) -> Iterator[Outcome]:
        for x, y in pairs:
            a, b = kit.leaves(x, y)
            yield from kit.gradients(f"a = {x:g}, b = {y:g}", row, f(a, b), a=a, b=b)
            a, b, c = kit.leaves(x, y, 5.0)
            yield from kit.gradients(f"a = {x:g}, b = {y:g}, c = 5", f"({row}) * c", f(a, b) * c, a=a, b=b)

    TRIALS.append(Trial(row, op, kind, op, run))

    def twice(kit: Kit) -> Iterator[Outcome]:
        for x, y in pairs:
            where = f"a = {x:g}, b = {y:g}, c = 0.75"
            a, b, c = kit.leaves(x, y, 0.75)
            yield from kit.gradients(where, f"{row} + {row.replace('b', 'c')}", f(a, b) + f(a, c), a=a, b=b, c=c)
            a, b, c = kit.leaves(x, y, 0.75)
            other = row.replace("a", "c")
            yield from kit.gradients(where, f"{row} + {other}", f(a, b) + f(c, b), a=a, b=b, c=c)
            if x > 0:
                a = kit.leaf(x)
                yield from kit.gradients(f"a = {x:g}", row.replace("b", "a"), f(a, a), a=a)

    _later(Trial("a value used twice", f"twice {op}", kind, op, twice), row)


def _unary(
    row: str, op: str, f: Unary, points: tuple[float, ...], kind: str = "core", needs: str = "", what: str = ""
) -> None:
    """An operation on one Value, perhaps with a number on one side: alone, and inside a larger expression."""
    what = what or row

    def run(kit: Kit) -> Iterator[Outcome]:
        for x in points:
            a = kit.leaf(x)
            yield from kit.gradients(f"a = {x:g}", what, f(a), a=a)
            a, c = kit.leaves(x, 5.0)
            yield from kit.gradients(f"a = {x:g}, c = 5", f"({what}) * c", f(a) * c, a=a, c=c)

    TRIALS.append(Trial(row, f"{op} {what}", kind, op, run, needs))

    def twice(kit: Kit) -> Iterator[Outcome]:
        for x in points:
            a = kit.leaf(x)
            yield from kit.gradients(f"a = {x:g}", f"{what} + {what}", f(a) + f(a), a=a)

    _later(Trial("a value used twice", f"twice {op} {what}", kind, op, twice, needs), row)


@_trial("Value(2), Value(2.0)", "leaf")
def _leaf(kit: Kit) -> Iterator[Outcome]:
    for number in (2.0, 2, -0.5):
        a = kit.leaf(number)
        yield f"a = Value({number})", "a", kit.value(a)
        yield f"a = Value({number})", "the gradient of a before backward()", kit.grad(a)


POINTS = (2.0, -1.5, 0.5)
_binary("a * b", "mul", lambda a, b: a * b)
_unary("a * 3", "mul", lambda a: a * 3, POINTS)
_unary("3 * a", "rmul", lambda a: 3 * a, POINTS)
_binary("a + b", "add", lambda a, b: a + b)
_unary("a + 3", "add", lambda a: a + 3, POINTS)
_unary("3 + a", "radd", lambda a: 3 + a, POINTS)
_unary("a ** n", "pow", lambda a: a**3, (2.0, -1.5, 0.5, 0.0), what="a ** 3")
_unary("a ** n", "pow", lambda a: a**2, (3.0, -1.5, 0.5, 0.0), what="a ** 2")
_unary("a ** n", "pow", lambda a: a**-1, (2.0, -1.5, 0.5), what="a ** -1")
_unary("a ** n", "pow", lambda a: a**0.5, (3.0, 0.25), what="a ** 0.5")
_unary("-a", "neg", lambda a: -a, POINTS)
_binary("a - b", "sub", lambda a, b: a - b)
_unary("a - 3", "sub", lambda a: a - 3, POINTS)
_unary("3 - a", "rsub", lambda a: 3 - a, POINTS)
_binary("a / b", "div", lambda a, b: a / b)
_unary("a / 4", "div", lambda a: a / 4, POINTS)
_unary("4 / a", "rdiv", lambda a: 4 / a, POINTS)


@_trial("sum([a, b, c])", "sum", op="radd")
def _sum(kit: Kit) -> Iterator[Outcome]:
    a, b, c = kit.leaves(2.0, -3.0, 0.5)
    yield from kit.gradients("a = 2, b = -3, c = 0.5", "sum([a, b, c])", sum([a, b, c]), a=a, b=b, c=c)


TRIALS += _TWICE

for _name, _points in {
    "relu": POINTS,
    "tanh": (0.5, -1.2, 0.0, 3.0),
    "sigmoid": (0.5, -1.2, 0.0, 3.0),
    "exp": (1.5, -2.0, 0.0),
    "log": (2.0, 0.5, 1.0),
    "sqrt": (3.0, 0.25),
    "sin": (0.5, -2.0, 0.0),
    "cos": (0.5, -2.0, 0.0),
}.items():
    _unary(f"a.{_name}()", _name, lambda a, name=_name: getattr(a, name)(), _points, "optional", _name)  # type: ignore[misc]
_unary("abs(a)", "abs", abs, POINTS, "optional", "__abs__")
_unary("2 ** a", "rpow", lambda a: 2**a, POINTS, "optional", "__rpow__")
_binary("a ** b", "powv", lambda a, b: a**b, ((2.0, -3.0), (1.5, 4.0), (0.5, 0.25)), "optional")


@_trial("gradients inside an expression", "inside")
def _inside(kit: Kit) -> Iterator[Outcome]:
    a, b, c, f = kit.leaves(2.0, -3.0, 10.0, -2.0)
    e = a * b
    d = e + c
    L = d * f
    where = "a = 2, b = -3, c = 10, f = -2; e = a * b; d = e + c; L = d * f"
    yield from kit.gradients(where, "L", L, a=a, b=b, c=c, f=f, e=e, d=d, L=L)


@_trial("a result used twice", "shared")
def _shared(kit: Kit) -> Iterator[Outcome]:
    for x, y in PAIRS:
        a, b, c, d = kit.leaves(x, y, 3.0, -2.0)
        s = a * b
        where = f"a = {x:g}, b = {y:g}, c = 3, d = -2; s = a * b"
        yield from kit.gradients(where, "s * c + s * d", s * c + s * d, a=a, b=b)


@_trial("a result used again further on", "order")
def _order(kit: Kit) -> Iterator[Outcome]:
    for x, y in PAIRS:
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
    a, b, c, d = kit.leaves(3.0, 3.0, 2.0, 2.0)
    where = "a = 3, b = 3, c = 2, d = 2; s = a * c; t = b * d"
    s, t = a * c, b * d
    yield from kit.gradients(where, "s * t", s * t, a=a, b=b, c=c, d=d)


@_trial("an expression of twenty operations", "long")
def _long(kit: Kit) -> Iterator[Outcome]:
    a, b = kit.leaves(-4.0, 2.0)
    c = a + b
    d = a * b + b * b * b
    c += c + 1
    c += 1 + c + a * -1
    d += d * 2 + (b + a)
    d += 3 * d + (b * 2 + a)
    e = c + d * -1
    g = e * e * 0.5 + e
    yield from kit.gradients("a = -4, b = 2", "g, of c, d and e", g, a=a, b=b)


@_trial("random expressions", "random")
def _random(kit: Kit) -> Iterator[Outcome]:
    state = 1
    for program in range(6):
        a, b, c = nodes = kit.leaves(0.5, -1.25, 1.5)
        for _ in range(14):
            state = state * 1103515245 + 12345 & 0x7FFFFFFF  # a generator whose numbers are the same everywhere
            left, right = nodes[-1 - (state >> 8) % min(5, len(nodes))], nodes[(state >> 16) % len(nodes)]
            nodes.append(left + right if (state >> 24) % 2 else left * right)
        root = nodes[-1] + nodes[-2] * nodes[-3]
        yield from kit.gradients("a = 0.5, b = -1.25, c = 1.5", f"expression {program}", root, a=a, b=b, c=c)


@_trial("forty doublings, s = s + s * one", "ladder")
def _ladder(kit: Kit) -> Iterator[Outcome]:
    a, one = kit.leaves(1.0, 1.0)
    s = a
    for _ in range(40):
        s = s + s * one
    yield from kit.gradients("a = 1", "forty doublings of a", s, a=a)


@_trial("backward() of a second expression", "again")
def _again(kit: Kit) -> Iterator[Outcome]:
    a, five = kit.leaves(3.0, 5.0)
    yield from kit.gradients("a = 3", "a * a", a * a, a=a)
    b = a * five
    kit.backward(b)
    yield "a = 3", "the gradient of a, after backward() of a * a and then of a * 5: 6 + 5", kit.grad(a)


@_trial("a gradient set to zero, then a new expression", "zeroed")
def _zeroed(kit: Kit) -> Iterator[Outcome]:
    a, b = kit.leaves(3.0, 2.0)
    for _ in range(3):
        kit.zero(a, b)
        yield from kit.gradients("a = 3, b = 2", "a * b + a", a * b + a, a=a, b=b)


@_trial("backward() twice on one expression", "second", "note")
def _second(kit: Kit) -> Iterator[Outcome]:
    a, two = kit.leaves(3.0, 2.0)
    b = a * two
    c = b * b
    kit.backward(c)
    kit.backward(c)
    yield "a = 3; c = (a * 2) * (a * 2)", "the gradient of a after two backward() of c, twice 24", kit.grad(a)
    a, b = kit.leaves(3.0, 4.0)
    c = a * b
    kit.backward(c)
    kit.backward(c)
    yield "a = 3, b = 4; c = a * b", "the gradient of a after two backward() of c, twice 4", kit.grad(a)


@_trial("two results that share a part", "losses", "note")
def _losses(kit: Kit) -> Iterator[Outcome]:
    a, three = kit.leaves(2.0, 3.0)
    b = a * three
    first, second = b * b, b * b + b
    kit.backward(first)
    kit.zero(a)
    kit.backward(second)
    where = "a = 2; b = a * 3; c = b * b; d = b * b + b; c.backward(); a.grad = 0; d.backward()"
    yield where, "the gradient of a", kit.grad(a)


@_trial("a leaf set to zero, backward() again", "leaf zeroed", "note")
def _leaf_zeroed(kit: Kit) -> Iterator[Outcome]:
    a, three = kit.leaves(2.0, 3.0)
    b = a * three
    c = b * b
    kit.backward(c)
    kit.zero(a)
    kit.backward(c)
    where = "a = 2; b = a * 3; c = b * b; c.backward(); a.grad = 0; c.backward()"
    yield where, "the gradient of a", kit.grad(a)


@_trial("data changed before backward()", "changed", "note")
def _changed(kit: Kit) -> Iterator[Outcome]:
    a, b = kit.leaves(3.0, 2.0)
    c = a * b
    kit.put(b, 100.0)
    kit.backward(c)
    yield "a = 3, b = 2; c = a * b; b.data = 100; c.backward()", "the gradient of a", kit.grad(a)


@_trial("a chain of 10,000 operations", "chain", "note")
def _chain(kit: Kit) -> Iterator[Outcome]:
    a = s = kit.leaf(1.0)
    for _ in range(10_000):
        s = s + kit.leaf(1.0)
    yield from kit.gradients("a = 1", "a + 1 + 1 + ...", s, a=a)


@_trial("relu at 0", "relu 0", "note", "relu", "relu")
def _relu_at_zero(kit: Kit) -> Iterator[Outcome]:
    a = kit.leaf(0.0)
    yield from kit.gradients("a = 0", "a.relu()", a.relu(), a=a)


def _saturated(name: str) -> None:
    @_trial(f"{name} of 1000 and -1000", f"{name} 1000", "note", name, name)
    def _extremes(kit: Kit) -> Iterator[Outcome]:
        for x in (1000.0, -1000.0):
            a = kit.leaf(x)
            yield from kit.gradients(f"a = {x:g}", f"a.{name}()", getattr(a, name)(), a=a)


_saturated("tanh")
_saturated("sigmoid")


@_trial("a negative base, (-8) ** (1/3)", "negative base", "note", "pow")
def _negative_base(kit: Kit) -> Iterator[Outcome]:
    with suppress(ArithmeticError, ValueError, TypeError, AssertionError, NotImplementedError):  # to refuse it is fine
        kit.value(kit.leaf(-8.0) ** (1 / 3))  # UnfitError, where it is complex
    yield "a = -8", "a ** (1/3), if it is complex", 0.0
