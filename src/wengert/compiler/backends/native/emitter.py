"""What the lowering writes with: values, places in memory, and loops; how they are spelt is each printer's own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

__all__ = ["BitEmitter", "Body", "Emitter", "Memory", "Place", "Register", "Scope", "affine", "at"]


class Register(NamedTuple):
    """A number, or one for each lane, as the text has it."""

    text: str
    kind: str = "f"  # f: double, b: bool, i: int64, p: a pointer
    lanes: int = 1


class Memory(NamedTuple):
    """An array of numbers that is read or written."""

    name: str  # of the pointer to its first element
    kind: str = "f"
    fixed: int = 0  # how many elements it has,
    each: int = 0  # and how many more for each example


Place = tuple[int, dict[str, int]]  # an offset: a number, and multiples of integers that are known when it runs
Body = Callable[[Place, list[Register]], Sequence[Register]]


def at(number: int) -> Place:
    """An offset that is known."""
    return number, {}


def affine(base: int, terms: Sequence[tuple[Place, int]]) -> Place:
    """``base`` plus each place as often as is said.

    >>> affine(3, [((1, {"i": 1}), 4), ((2, {}), 10)])
    (27, {'i': 4})
    """
    total = base
    names: dict[str, int] = {}
    for (number, places), factor in terms:
        if factor:
            total += number * factor
            for name, times in places.items():
                names[name] = names.get(name, 0) + times * factor
    return total, names


class Scope:
    """The body of a loop, or of a function."""

    def __init__(self) -> None:
        self.lines: list[Any] = []  # texts; a store also with the array that it is for
        self.memo: dict[str, Register] = {}  # by their text the values that stand in these lines


class Emitter(ABC):
    """Text of functions, one at a time.

    Attributes:
        width: of vectors, in lanes.
        examples: how many there are, as many as fill whole vectors.
        seed: the number that a reverse sweep begins with.
        size: how many lines the function has so far.
        functions: those that are finished.
        unrolled: up to how many points of a step are written out one by one.
        registers: how many rows of a product are summed at once.
        read: the arrays that were read from memory: what is stored for others is left out in the end.
    """

    unrolled: int = 16
    registers: int = 8
    examples: str
    seed: Register
    functions: list[Any]

    def __init__(self, width: int) -> None:
        self.width: int = width
        self.scopes: list[Scope] = [Scope()]
        self.depth: dict[str, int] = {}  # of what an offset is made of: the loop that it stands in
        self.count: int = 0
        self.read: set[Any] = set()

    def fresh(self, stem: str) -> str:
        """A name that is not in use."""
        self.count += 1
        return f"{stem}{self.count}"

    def known(self, text: str) -> Register | None:
        """The value of that text, if it is there already."""
        for scope in reversed(self.scopes):
            if text in scope.memo:
                return scope.memo[text]
        return None

    def live_lines(self, lines: Sequence[Any]) -> list[str]:
        """The lines without the stores that nothing reads."""
        return [line if type(line) is str else line[1] for line in lines if type(line) is str or line[0] in self.read]

    @property
    def size(self) -> int:
        """How many lines the function has so far."""
        return sum([len(scope.lines) for scope in self.scopes])

    # What a printer has to say: numbers.

    @abstractmethod
    def number(self, x: float) -> Register:
        """A constant."""

    @abstractmethod
    def arithmetic(self, sign: str, a: Register, b: Register) -> Register:
        """Of two numbers: add, sub, mul, div."""

    @abstractmethod
    def fma(self, a: Register, b: Register, c: Register) -> Register:
        """a * b + c, rounded once where the machine does so."""

    @abstractmethod
    def negative(self, x: Register) -> Register:
        """-x."""

    @abstractmethod
    def compare(self, how: str, a: Register, b: Register) -> Register:
        """lt, le, gt, ge, eq, ne; with nan only the last holds."""

    @abstractmethod
    def either(self, a: Register, b: Register) -> Register:
        """Whether one of two bools is true."""

    @abstractmethod
    def select(self, condition: Register, a: Register, b: Register) -> Register:
        """a where a bool is true, else b."""

    @abstractmethod
    def branch(
        self, condition: Register, then: Callable[[], Register], otherwise: Register | Callable[[], Register]
    ) -> Register:
        """The same of which either side is computed only if a lane asks for it."""

    @abstractmethod
    def call(self, name: str, *xs: Register) -> Register:
        """A function of the C library."""

    @abstractmethod
    def outlined(self, name: str, body: Callable[[Any, Register], Register], x: Register) -> Register:
        """A function of one number that stands by itself; `body` writes it where it is needed."""

    @abstractmethod
    def shared(self, x: Register) -> Register:
        """The same, to be used several times."""

    @abstractmethod
    def as_float(self, x: Register) -> Register:
        """An integer as a float."""

    # Lanes.

    @abstractmethod
    def spread(self, x: Register, lanes: int) -> Register:
        """A value in that many lanes: a single number in each."""

    @abstractmethod
    def row(self, first: Place, lane: int) -> Place:
        """The example in a lane of the block that begins there; behind the last one that again."""

    @abstractmethod
    def where_real(self, first: Place, x: Register, other: Register) -> Register:
        """A value in those lanes of the block that begins there which are examples, another one in the rest."""

    @abstractmethod
    def lane(self, x: Register, lane: int) -> Register:
        """One of the numbers."""

    @abstractmethod
    def packed(self, xs: Sequence[Register]) -> Register:
        """Numbers as lanes."""

    @abstractmethod
    def folded(self, x: Register, combined: Callable[[Register, Register], Register]) -> Register:
        """What all lanes come to, the upper half combined with the lower one until one is left."""

    @abstractmethod
    def sums(self, xs: Sequence[Register]) -> Register:
        """The sums over the lanes of as many values as there are lanes."""

    # Memory and loops.

    @abstractmethod
    def load(self, memory: Memory, place: Place, lanes: int = 1, again: bool = False) -> Register:
        """What stands at a place; `again` if it may have changed."""

    @abstractmethod
    def store(self, memory: Memory, place: Place, value: Register, tag: Any = None) -> None:
        """Put a value there; with a tag it is left out unless that is in `read` in the end."""

    @abstractmethod
    def offset(self, index: Register) -> Place:
        """An integer as an offset."""

    @abstractmethod
    def loop(
        self, low: int, high: int | str, step: int, body: Body, carried: Sequence[Register] = (), lanes: int = 0
    ) -> list[Register]:
        """A loop; what is carried from iteration to iteration, as it is in the end. There is one iteration at least."""

    @abstractmethod
    def each_example(self, body: Callable[[tuple[Place, Place, Place]], None]) -> None:
        """A loop over the examples: each by its number, as the first of its block and its lane there."""

    @abstractmethod
    def checked(self, place: Place, lanes: int, extent: int) -> Place:
        """The place, once it was seen, if that is asked for, that so many numbers from there on are among the first
        `extent`.
        """

    @abstractmethod
    def begin(self) -> None:
        """Begin a function."""

    @abstractmethod
    def end(self) -> None:
        """End it."""

    @abstractmethod
    def constant(self, values: Any) -> Memory:
        """An array of numbers that are known."""


class BitEmitter(Emitter):
    """One that also has the bits of numbers."""

    @abstractmethod
    def integer(self, x: int) -> Register:
        """An integer constant."""

    @abstractmethod
    def bits(self, how: str, a: Register, b: Register) -> Register:
        """Of integers: add, sub, shl, ashr."""

    @abstractmethod
    def reread(self, x: Register, kind: str) -> Register:
        """The bits of a float as an integer, or the reverse."""
