"""The interface between the lowering and its printers: values, places in memory, and loops."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

__all__ = ["BitEmitter", "Body", "Emitter", "Memory", "Place", "Register", "Scope", "affine", "at"]


class Register(NamedTuple):
    """A number, or one for each lane, by its name in the text."""

    text: str
    kind: str = "f"  # f: double, b: bool, i: int64, p: a pointer
    lanes: int = 1


class Memory(NamedTuple):
    """An array of numbers that is read or written."""

    name: str  # of the pointer to its first element
    kind: str = "f"


Place = tuple[int, dict[str, int]]  # an offset: a number, plus multiples of integers known at run time
Body = Callable[[Place, list[Register]], Sequence[Register]]


def at(number: int) -> Place:
    return number, {}


def affine(base: int, terms: Sequence[tuple[Place, int]]) -> Place:
    """Return ``base`` plus each place times its factor.

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
    def __init__(self) -> None:
        self.lines: list[Any] = []  # texts; for stores, pairs of the array and the text
        self.memo: dict[str, Register] = {}  # by their text the values that these lines compute


class Emitter(ABC):
    """Prints functions, one at a time.

    Attributes:
        width: the number of lanes of a vector.
        examples: the number of examples, rounded up to whole vectors.
        seed: the cotangent of a scalar output.
        size: the number of lines of the current function.
        functions: the finished functions.
        unrolled: the largest step, in points, that is unrolled.
        registers: how many rows of a product are summed at once.
        read: the arrays that were read from memory; stores to others are dropped at the end.
    """

    unrolled: int = 16
    registers: int = 8
    examples: str
    seed: Register
    functions: list[Any]

    def __init__(self, width: int) -> None:
        self.width: int = width
        self.scopes: list[Scope] = [Scope()]
        self.depth: dict[str, int] = {}  # by the name of an integer in offsets: the loop that defines it
        self.count: int = 0
        self.read: set[Any] = set()

    def fresh(self, stem: str) -> str:
        self.count += 1
        return f"{stem}{self.count}"

    def computed(self, text: str) -> Register | None:
        """Return the value of an expression, if it has been computed."""
        for scope in reversed(self.scopes):
            if text in scope.memo:
                return scope.memo[text]
        return None

    def live_lines(self, lines: Sequence[Any]) -> list[str]:
        """Return the lines without stores that nothing reads."""
        return [line if type(line) is str else line[1] for line in lines if type(line) is str or line[0] in self.read]

    @property
    def size(self) -> int:
        return sum([len(scope.lines) for scope in self.scopes])

    # Numbers.

    @abstractmethod
    def number(self, x: float) -> Register:
        """Return a constant."""

    @abstractmethod
    def arithmetic(self, sign: str, a: Register, b: Register) -> Register:
        """Apply add, sub, mul or div."""

    @abstractmethod
    def fma(self, a: Register, b: Register, c: Register) -> Register:
        """Compute a * b + c, rounded once if the machine has such an instruction."""

    @abstractmethod
    def negative(self, x: Register) -> Register:
        """Compute -x."""

    @abstractmethod
    def compare(self, how: str, a: Register, b: Register) -> Register:
        """Compare by lt, le, gt, ge, eq or ne; for nan only ne holds."""

    @abstractmethod
    def either(self, a: Register, b: Register) -> Register:
        """Combine two bools by or."""

    @abstractmethod
    def select(self, condition: Register, a: Register, b: Register) -> Register:
        """Choose a where a bool is true, else b."""

    @abstractmethod
    def branch(
        self, condition: Register, then: Callable[[], Register], otherwise: Register | Callable[[], Register]
    ) -> Register:
        """Choose likewise, but compute a side only if a lane needs it."""

    @abstractmethod
    def call(self, name: str, *xs: Register) -> Register:
        """Call a function of the C library."""

    @abstractmethod
    def outlined(self, name: str, body: Callable[[Any, Register], Register], x: Register) -> Register:
        """Call a generated function of one number, which `body` writes on first use."""

    def shared(self, x: Register) -> Register:
        """Return the value in a form that may be used several times."""
        return x

    @abstractmethod
    def as_float(self, x: Register) -> Register:
        """Convert an integer to a float."""

    # Lanes. As it stands, each is right for a printer that has one lane.

    def spread(self, x: Register, lanes: int) -> Register:
        """Broadcast a value to that many lanes."""
        return x

    def row(self, first: Place, lane: int) -> Place:
        """Return the number of the example in a lane of a block, at most that of the last example."""
        return first

    def where_real(self, first: Place, x: Register, other: Register) -> Register:
        """Choose x in lanes of real examples, `other` in lanes past the last one."""
        return x

    def lane(self, x: Register, lane: int) -> Register:
        """Extract a lane."""
        return x

    def packed(self, xs: Sequence[Register]) -> Register:
        """Make a vector of numbers."""
        return xs[0]

    def folded(self, x: Register, combined: Callable[[Register, Register], Register]) -> Register:
        """Combine all lanes: the upper half with the lower half, until one is left."""
        return x

    def sums(self, xs: Sequence[Register]) -> Register:
        """Return the sums over the lanes of as many values as there are lanes."""
        return xs[0]

    def transposed(self, xs: Sequence[Register]) -> Sequence[Register]:
        """Return from as many values as there are lanes the first lanes of all, the second ones, and so on."""
        return xs

    # Memory and loops.

    @abstractmethod
    def load(self, memory: Memory, place: Place, lanes: int = 1, again: bool = False) -> Register:
        """Load from a place; `again` if it may have changed."""

    @abstractmethod
    def store(self, memory: Memory, place: Place, value: Register, tag: Any = None) -> None:
        """Store a value; with a tag that is not in `read` at the end, the store is dropped."""

    @abstractmethod
    def offset(self, index: Register) -> Place:
        """Return an integer as an offset."""

    def loop(
        self,
        low: int,
        high: int | str,
        step: int,
        body: Body,
        carried: Sequence[Register] = (),
        lanes: int = 0,
        asks: bool = False,
    ) -> list[Register]:
        """Write a loop of at least one iteration, and return its final carries; if it `asks`, it goes on while the
        first carry is positive in any lane.
        """
        if isinstance(high, int):
            if high <= low:
                return list(carried)
            if low + step >= high:
                return list(body(at(low), list(carried)))
        return self.repeated(low, high, step, body, carried, lanes, asks)

    @abstractmethod
    def repeated(
        self, low: int, high: int | str, step: int, body: Body, carried: Sequence[Register], lanes: int, asks: bool
    ) -> list[Register]:
        """Write the same for two iterations or more, or as many as there are examples."""

    def each_example(self, body: Callable[[tuple[Place, Place, Place]], None]) -> None:
        """Write a loop over the examples; `body` takes an example's number, its block and its lane."""

        def iteration(whole: Place, _: list[Register]) -> Sequence[Register]:
            body((whole, whole, at(0)))
            return ()

        self.loop(0, self.examples, 1, iteration)

    def checked(self, place: Place, lanes: int, extent: int) -> Place:
        """Return the place; if checks are on, check that `lanes` numbers from there on are among the first `extent`."""
        return place

    @abstractmethod
    def begin(self) -> None:
        """Begin a function."""

    @abstractmethod
    def end(self) -> None:
        """End the function."""

    @abstractmethod
    def constant(self, values: Any) -> Memory:
        """Return a constant array."""


class BitEmitter(Emitter):
    """A printer with integers and the bits of floats."""

    @abstractmethod
    def integer(self, x: int) -> Register:
        """Return an integer constant."""

    @abstractmethod
    def bits(self, how: str, a: Register, b: Register) -> Register:
        """Apply add, sub, shl or ashr to integers."""

    @abstractmethod
    def reread(self, x: Register, kind: str) -> Register:
        """Reinterpret the bits of a float as an integer, or the reverse."""
