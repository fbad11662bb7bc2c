"""What is tried and told, and does not count: limits that micrograd itself has. See `trials.py`.

The process that tries a class loads this file alone: it imports nothing of Wengert's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import chain
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wengert.course.grading.kit import Kit, Outcome

__all__ = ["TRIALS"]


def _second(kit: Kit) -> Iterator[Outcome]:
    c = kit.run("b = a * two; b * b", {"a": 3.0, "two": 2.0})
    kit.backward(c)
    kit.backward(c)
    what = "the gradient of a after two backward() of c, twice"
    yield "a = 3; c = (a * 2) * (a * 2)", f"{what} 24", kit.grad(kit.scope["a"])
    c = kit.run("a * b", {"a": 3.0, "b": 4.0})
    kit.backward(c)
    kit.backward(c)
    yield "a = 3, b = 4; c = a * b", f"{what} 4", kit.grad(kit.scope["a"])


def _after_another(second: str, where: str) -> Callable[[Kit], Iterator[Outcome]]:
    """backward() of one result, the leaf set to zero, and backward() of another."""

    def run(kit: Kit) -> Iterator[Outcome]:
        root = kit.run(f"b = a * three; c = b * b; {second}", {"a": 2.0, "three": 3.0})
        kit.backward(kit.scope["c"])
        kit.zero(kit.scope["a"])
        kit.backward(root)
        yield where, "the gradient of a", kit.grad(kit.scope["a"])

    return run


LOSSES = "a = 2; b = a * 3; c = b * b; d = b * b + b; c.backward(); a.grad = 0; d.backward()"
ZEROED = "a = 2; b = a * 3; c = b * b; c.backward(); a.grad = 0; c.backward()"


def _changed(kit: Kit) -> Iterator[Outcome]:
    c = kit.run("a * b", {"a": 3.0, "b": 2.0})
    kit.put(kit.scope["b"], 100.0)
    kit.backward(c)
    yield "a = 3, b = 2; c = a * b; b.data = 100; c.backward()", "the gradient of a", kit.grad(kit.scope["a"])


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
PASS = "grad backward"
EXPRESSION = f"{PASS} __add__ __mul__"
TRIALS: list[tuple[Any, ...]] = [
    ("backward() twice on one expression", "second", "note", "", _second, EXPRESSION, 6),
    ("two results that share a part", "two losses", "note", "", _after_another("b * b + b", LOSSES), EXPRESSION, 6),
    ("a leaf set to zero, backward() again", "leaf zeroed", "note", "", _after_another("c", ZEROED), EXPRESSION, 6),
    ("data changed before backward()", "changed", "note", "", _changed, EXPRESSION, 6),
    ("a chain of 10,000 operations", "chain", "note", "", _chain, EXPRESSION, 6),
    ("a shared node is looked up", "lookup", "note", "", _lookup, EXPRESSION, 5),
    ("relu at 0", "relu 0", "note", "relu", _at("a.relu()", 0.0), f"{PASS} relu", 6),
    ("tanh of 1000 and -1000", "tanh 1000", "note", "tanh", _at("a.tanh()", *LARGE), f"{PASS} tanh", 6),
    ("sigmoid of 1000 and -1000", "sigmoid 1000", "note", "sigmoid", _at("a.sigmoid()", *LARGE), f"{PASS} sigmoid", 6),
    ("a negative base, (-8) ** (1/3)", "negative base", "note", "pow", _negative_base, "__pow__", 7),
]
