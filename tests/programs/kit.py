"""How a program of the collection is written: a factory of the user's function, and the kinds of its arguments.

::

    @program(x=real(0.1, 2.0), n=whole(0, 4), forces=reals(8), grid=matrix(3, 4))
    def damped_pendulum(stiffness, damping, couplings=weights(3)):
        def energy(x, n, forces, grid):
            ...
        return energy

Each parameter of the factory is a Value between 0.2 and 1.5, drawn anew for each data set; one with a default is what
the default says: `weights(4, 3)` rows of Values, `real(-1.0, 1.0)` one Value between other bounds. The function that
the factory returns is what gets compiled. Its arguments are those of the decorator, in their order.

What the decorator takes beside the arguments:

- ``effects=True``: what the function does beside its result must happen exactly as often as uncompiled. The factory
  returns ``(function, observe)``, and ``observe()`` what can be seen of it: anything made of numbers, text, lists,
  dicts, arrays, Values and plain objects. (Arguments that a single call changes, text that is printed, and random
  numbers that are drawn from Python's and NumPy's global generators are compared in any case.)
- ``engine="reason"``: a user would accept that the engine runs this one, for this reason.
- ``modes="call values"``: only these, of `MODES`.
- ``static="n m"``: these arguments are compiled as static, and the same for all examples of a batch.

A batch holds an example in each row. What cannot be in rows (`text`, and a `choice` among functions or other objects)
is the same for all its examples; a program that has an argument which a batch cannot hold at all (a `choice` among
numbers or lists, `built`) is called on single examples alone.

A file is a field. It is loaded anew for each program, and once more for the plain function, so that whatever its
programs keep in the module (settings, caches, counters) is never shared between them. It imports nothing of the other
programs.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from wengert import Value

__all__ = [
    "MODES",
    "Kind",
    "Program",
    "alias",
    "among",
    "array",
    "built",
    "choice",
    "flag",
    "indices",
    "matrix",
    "pair",
    "program",
]
__all__ += ["real", "reals", "record", "text", "weights", "whole", "wholes"]

MODES = ("call", "values", "map", "sum", "mean")
"""One example; one with its real numbers as Values; a batch in each of the three ways."""


@dataclass(frozen=True)
class Kind:
    """What an argument is.

    Attributes:
        draw: makes one, from a generator of random numbers; from the same state an equal one that shares nothing.
        column: makes a batch of several; None where a batch cannot hold them.
        values: makes the same of Values; as it is where it holds no real numbers.
        shared: whether a batch has one for all examples.
        twin: the argument that this one sometimes is.
    """

    draw: Callable[[random.Random], Any]
    column: Callable[[list[Any]], Any] | None = list
    values: Callable[[Any], Any] = lambda x: x
    shared: bool = False
    twin: str = ""


def _numbers(examples: list[Any]) -> Any:
    """A batch of numbers: a list, and a large one an array, from which a function gets Python's numbers as well."""
    return examples if len(examples) < 32 else np.array(examples)


def real(low: float = -1.0, high: float = 1.0) -> Kind:
    """A float."""
    return Kind(lambda draw: draw.uniform(low, high), _numbers, Value)


def whole(low: int = 0, high: int = 3) -> Kind:
    """An int, both ends included."""
    return Kind(lambda draw: draw.randint(low, high), _numbers)


def flag() -> Kind:
    """A bool."""
    return Kind(lambda draw: draw.random() < 0.5, _numbers)


def reals(length: int, low: float = -1.0, high: float = 1.0) -> Kind:
    """A list of floats."""
    return Kind(
        lambda draw: [draw.uniform(low, high) for _ in range(length)],
        values=lambda numbers: [Value(x) for x in numbers],
    )


def wholes(length: int, low: int = 0, high: int = 3) -> Kind:
    """A list of ints, both ends included."""
    return Kind(lambda draw: [draw.randint(low, high) for _ in range(length)])


def matrix(rows: int, columns: int, low: float = -1.0, high: float = 1.0) -> Kind:
    """A list of rows, each a list of floats."""
    return Kind(
        lambda draw: [[draw.uniform(low, high) for _ in range(columns)] for _ in range(rows)],
        values=lambda table: [[Value(x) for x in row] for row in table],
    )


def array(*shape: int, lo: float = -1.0, hi: float = 1.0) -> Kind:
    """A NumPy array of floats."""

    def made(draw: random.Random) -> Any:
        return np.array([draw.uniform(lo, hi) for _ in range(int(np.prod(shape)))]).reshape(shape)

    def of_values(numbers: Any) -> Any:
        found = np.empty(numbers.shape, object)
        found.flat = [Value(x) for x in numbers.ravel().tolist()]
        return found

    return Kind(made, np.stack, of_values)


def indices(*shape: int, lo: int = 0, hi: int = 3) -> Kind:
    """A NumPy array of integers, both ends included."""
    return Kind(
        lambda draw: np.array([draw.randint(lo, hi) for _ in range(int(np.prod(shape)))], np.int64).reshape(shape),
        np.stack,
    )


def among(*numbers: float) -> Kind:
    """One of some floats, so that equal ones meet."""
    return Kind(lambda draw: draw.choice(numbers), values=Value)


def text(*choices: str) -> Kind:
    """A str."""
    return Kind(lambda draw: draw.choice(choices), lambda examples: examples[0], shared=True)


def choice(*objects: Any) -> Kind:
    """One of some objects, a copy of it (of a function or class: itself)."""
    rowless = all(not isinstance(x, (int, float, list, tuple, dict, np.ndarray, np.generic, Value)) for x in objects)
    column = (lambda examples: examples[0]) if rowless else None
    return Kind(lambda draw: copy.deepcopy(draw.choice(objects)), column, shared=True)


def built(make: Callable[[random.Random], Any]) -> Kind:
    """Anything that `make` makes from a generator of random numbers: an iterator, an object; for single calls."""
    return Kind(make, None)


def alias(of: str, kind: Kind) -> Kind:
    """Every other time the very object that an earlier argument is, else one of its own. In a batch, one of its own:
    the examples are rows there, and no objects before the function gets them.
    """
    return Kind(kind.draw, kind.column, kind.values, kind.shared, of)


def pair(*kinds: Kind) -> Kind:
    """A tuple."""

    def column(examples: list[Any]) -> Any:
        return tuple([_column(kind, [x[place] for x in examples]) for place, kind in enumerate(kinds)])

    return Kind(
        lambda draw: tuple([kind.draw(draw) for kind in kinds]),
        column if _in_rows(kinds) else None,
        lambda items: tuple([kind.values(x) for kind, x in zip(kinds, items, strict=True)]),
    )


def record(**kinds: Kind) -> Kind:
    """A dict, by the names that are given."""

    def column(examples: list[Any]) -> Any:
        return {name: _column(kind, [x[name] for x in examples]) for name, kind in kinds.items()}

    return Kind(
        lambda draw: {name: kind.draw(draw) for name, kind in kinds.items()},
        column if _in_rows(kinds.values()) else None,
        lambda items: {name: kind.values(items[name]) for name, kind in kinds.items()},
    )


def weights(*shape: int, low: float = -1.0, high: float = 1.0) -> Kind:
    """Lists of Values, as deep as there are lengths: the default of a factory's parameter."""
    kind = Kind(lambda draw: draw.uniform(low, high), values=Value)
    for length in reversed(shape):
        kind = _rows(kind, length)
    return kind


def _rows(kind: Kind, length: int) -> Kind:
    return Kind(
        lambda draw: [kind.draw(draw) for _ in range(length)],
        values=lambda numbers: [kind.values(x) for x in numbers],
    )


def _in_rows(kinds: Iterable[Kind]) -> bool:
    """Whether a batch can hold many of what is made of these: text would be the same for all."""
    return all(kind.column and not kind.shared for kind in kinds)


def _column(kind: Kind, examples: list[Any]) -> Any:
    assert kind.column is not None
    return kind.column(examples)


class Program:
    """A program of the collection: a factory, and what its function is called with."""

    def __init__(self, factory: Callable[..., Any], arguments: dict[str, Kind], modes: Sequence[str]) -> None:
        self.factory = factory
        self.name: str = factory.__name__
        self.arguments = arguments
        self.effects = False
        self.engine = ""
        self.static: tuple[str, ...] = ()
        rows = all(kind.column for kind in arguments.values()) and not all(k.shared for k in arguments.values())
        self.modes = [mode for mode in modes if rows or mode in ("call", "values")]


def program(
    *, effects: bool = False, engine: str = "", modes: str = "", static: str = "", **arguments: Kind
) -> Callable[..., Program]:
    """Make a factory a program of the collection; see the module."""
    chosen = modes.split() or MODES
    assert set(chosen) <= set(MODES), f"modes are among {MODES}, not {modes}"
    assert all(isinstance(kind, Kind) for kind in arguments.values()), "an argument is one of the kinds"

    for name in static.split():
        arguments[name] = replace(arguments[name], column=lambda examples: examples[0], shared=True)

    def made(factory: Callable[..., Any]) -> Program:
        found = Program(factory, arguments, chosen)
        found.effects, found.engine, found.static = effects, engine, tuple(static.split())
        return found

    return made
