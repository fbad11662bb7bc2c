"""What is tried: the tests in `asked`, and of a Value-like class what no lesson asks for.

Of lessons 1 to 7 the same trials run on the class that is examined, in a process of its own, and on the model of an
engine (`model.py`), which says what should have come out. This file imports nothing of Wengert's: the process that
runs the class loads it alone. A trial draws its numbers from the kit, so that no two runs ask for the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from itertools import chain
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wengert_course.checks.kit import Kit, Outcome

__all__ = ["ASKED", "gather"]

Row = tuple[Any, ...]  # what a Trial is made of

ASKED = {step: f"asked/_lesson_{step:02}" for step in range(13)}
"""Lesson -> the file of its tests."""

PASS = "grad backward"  # what a trial of a whole backward pass needs
EXPRESSION = f"{PASS} __add__ __mul__"
NEEDS = {  # of a test by the name of its function; of lessons 1 to 4 nothing else, later an expression
    "start": "grad",
    "parts": "_prev __add__ __mul__",
    "operands": "_prev __add__ __mul__",
    "wrapped": "_prev __add__",
    "symbols": "_op __add__ __mul__",
    "calls": f"{EXPRESSION} _backward",
    "sum_": "__add__ __radd__",
}
KINDS = dict.fromkeys(
    ("repr_", "operands", "wrapped", "symbols", "label", "by_hand_expression", "by_hand_neuron"), "own"
)
KINDS |= dict.fromkeys(("parts", "a.tanh()", "3 - a", "4 / a", "a.exp()"), "kept") | {"calls": "optional"}
SIGNS = {"+": "add", "-": "sub", "*": "mul", "/": "truediv", "**": "pow"}
METHODS = {"-a": "__neg__", "abs(a)": "__abs__"}
OPTIONAL = ("a.relu()", "a.sigmoid()", "a.log()", "a.sqrt()", "a.sin()", "a.cos()", "abs(a)", "2 ** a", "a ** b")


def gather(modules: Mapping[str, Any]) -> dict[str, tuple[Row, str]]:
    """Every trial by its name: what it is made of, and what it asks for; what no lesson asks for is behind the engine's.

    Lesson 6 uses the operations of lesson 7 twice, too: what is wrong in one stands above.
    """
    of_engine = [row for step in (0, 1, 2, 3, 4, 5, 7, 6) for row in _of_lesson(step, modules)]
    of_engine += [(one, "") for text in OPTIONAL for one in _operation(text, text, "optional", 7, modules)]
    of_engine += [((row, id, "note", op, run, needs, step), "") for row, id, op, run, needs, step in NOTES]
    return {row[0][1]: row for row in [*of_engine, *[row for n in range(8, 13) for row in _of_lesson(n, modules)]]}


def _of_lesson(step: int, modules: Mapping[str, Any]) -> Iterator[tuple[Row, str]]:
    """What a lesson's file tries, as it stands there: tests, and operations."""
    own = modules["own"]
    for name, thing in vars(modules[ASKED[step]]).items():
        code = getattr(thing, "__code__", None)
        given = code.co_varnames[: code.co_argcount] if code else ()
        if name == "OPERATIONS":
            for row, text, asks in _operations(thing):
                both = _operation(row, text, KINDS.get(row, "core"), step, modules)
                yield from [(one, asks) for one in both[: 1 + (row in KINDS)]]
        elif given == ("own", "draw", "written") and step == 6:
            row, asks = own.said(thing)
            for n in (1, 4, 7):
                for its, text, _ in _operations(vars(modules[ASKED[n]])["OPERATIONS"]):
                    if its not in KINDS:
                        yield _operation(row, text, "core", n, modules)[1], asks
        elif given == ("own", "draw") and 0 < step < 8:
            row, asks = own.said(thing)
            needs, op = NEEDS.get(name, EXPRESSION if step > 4 else ""), "radd" * (name == "sum_")
            yield (row, name.replace("_", " ").strip(), KINDS.get(name, "core"), op, _run(thing), needs, step), asks
        elif given == ("own", "draw"):
            row, asks = own.said(thing)
            yield (row, f"{step} {name}", "core", "", own.run(thing), "", step), asks


def _operations(those: Mapping[str, list[str]]) -> Iterator[tuple[str, str, str]]:
    """Of each operation of a lesson each program, with its row and what is asked for."""
    return ((row, text, asks) for row, (asks, *texts) in those.items() for text in texts or [row])


def _run(test: Callable[..., Iterator[Outcome]], *more: str) -> Callable[[Kit], Iterator[Outcome]]:
    return lambda kit: test(kit, kit.numbers, *more)


def _operation(row: str, text: str, kind: str, step: int, modules: Mapping[str, Any]) -> tuple[Row, Row]:
    """An operation, as it is written in `text`: by itself, and of a value used twice."""
    left, *right = text.split()
    name = text.removeprefix("a.").removesuffix("()")
    needs = METHODS.get(text, f"__{'r' * (left != 'a')}{SIGNS[right[0]]}__" if right else name)
    op = "powv" if text == "a ** b" else needs.strip("_").replace("truediv", "div")
    id, more = (op, "") if text.endswith(" b") else (f"{op} {text}", " __add__")
    alone, twice = (_run(test, text) for test in (modules[ASKED[1]].operation, modules[ASKED[6]].used_twice))
    again = row, f"twice {id}", kind, op, twice, f"{PASS} {needs}{more}", max(step, 6)
    return (row, id, kind, op, alone, needs, step), again


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
        kit.number(kit.make(-8.0) ** (1 / 3))  # UnfitError, where it is complex
    yield "a = -8", "a ** (1/3), if it is complex", 0.0


LARGE = (1000.0, -1000.0)


def _after(*programs: str, **numbers: float) -> Callable[[Kit], Iterator[Outcome]]:
    return lambda kit: chain.from_iterable(kit.after(program, numbers) for program in programs)


SECOND = "s = a * b; c = s * s; back(c); back(c)", "c = a * b; back(c); back(c)"
LOSSES = "s = a * b; c = s * s; d = s * s + s; back(c); zero(a); back(d)"
ZEROED = "s = a * b; c = s * s; back(c); zero(a); back(c)"
CHANGED = "c = a * b; put(b, 100.0); back(c)"
NOTES: list[Row] = [
    ("backward() twice on one expression", "second", "", _after(*SECOND, a=3.0, b=2.0), EXPRESSION, 6),
    ("two results that share a part", "two losses", "", _after(LOSSES, a=2.0, b=3.0), EXPRESSION, 6),
    ("a leaf set to zero, backward() again", "leaf zeroed", "", _after(ZEROED, a=2.0, b=3.0), EXPRESSION, 6),
    ("data changed before backward()", "changed", "", _after(CHANGED, a=3.0, b=2.0), EXPRESSION, 6),
    ("a chain of 10,000 operations", "chain", "", _chain, EXPRESSION, 6),
    ("a shared node is looked up", "lookup", "", _lookup, EXPRESSION, 5),
    ("relu at 0", "relu 0", "relu", _at("a.relu()", 0.0), f"{PASS} relu", 6),
    ("tanh of 1000 and -1000", "tanh 1000", "tanh", _at("a.tanh()", *LARGE), f"{PASS} tanh", 6),
    ("sigmoid of 1000 and -1000", "sigmoid 1000", "sigmoid", _at("a.sigmoid()", *LARGE), f"{PASS} sigmoid", 6),
    ("a negative base, (-8) ** (1/3)", "negative base", "pow", _negative_base, "__pow__", 7),
]
