"""What is tried, and what a trial is given: a class, whatever it calls its parts, and the numbers of this run.

The process that tries a class loads this file alone: it imports nothing of Wengert's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from types import CodeType
from typing import Any, NamedTuple, NoReturn

__all__ = ["NAMES", "Draw", "Kit", "Outcome", "Trial", "TrialPlan", "UnfitError"]

Outcome = tuple[str, str, float]
"""Where (the numbers that went in), what (a value or a gradient), and the number that came out."""

NAMES: dict[str, tuple[str, ...]] = {
    "data": ("data", "value", "val"),
    "grad": ("grad", "gradient", "derivative", "adjoint"),
    "backward": ("backward", "backprop", "backpropagate"),
    "_backward": ("_backward", "backward_fn", "_backward_fn", "grad_fn", "_grad_fn"),
    "_prev": ("_prev", "_children", "prev", "children", "operands", "parents", "_parents", "inputs"),
    "_op": ("_op", "op"),
    "label": ("label", "name"),
}
"""What a Value-like class may call its parts; the first is what is expected."""

ALSO: dict[str, tuple[float, ...]] = {
    **dict.fromkeys(("a ** 3", "a ** 2", "a.exp()"), (0.0,)),
    **dict.fromkeys(("a.tanh()", "a.sigmoid()"), (0.0, 3.0)),
}
POSITIVE = ("a ** 0.5", "a.log()", "a.sqrt()", "a ** b")
"""An operation -> where it is tried besides; and those whose left operand has to be above 0."""


class UnfitError(Exception):
    """What came back is no number, or no Value; `kind` says what it is. The kind "absent" is what is not there yet."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind: str = kind


class TrialPlan(NamedTuple):
    """How the trials of a run are done."""

    mode: str = "backward"  # gradients are not seen ("values"), or by calling `_backward` ("local") or "backward"
    seed: int = 0  # what decides the numbers
    product: bool = True  # whether two Values can be multiplied: an operation can stand in a larger expression
    lesson: bool = False  # whether a gradient has to be a number: some engines differentiate again what they give


class Trial(NamedTuple):
    """One thing to try: a small program that tells which numbers came out. Several may share a row of the report.

    Its kind says when it counts: "core" from its step of the course on, "kept" at its step, and later where it is
    there, "own" at its step alone, "optional" where it is there, "note" never: it is told.
    """

    row: str
    id: str
    kind: str
    op: str  # the operation that it is about, "" for the engine as a whole
    run: Callable[[Any], Iterator[Outcome]]
    needs: str = ""  # the parts and methods without which it is not tried
    step: int = 7

    def outcomes(self, kit: Kit) -> Iterator[Outcome]:
        return self.run(kit.at(self.id, self.needs))


class Draw:
    """Numbers that are easy to read and that nobody knows before the run: the seed and a name decide them."""

    LARGE = (1.5, 2.0, 2.5, 3.0, 3.5, 4.0)
    SMALL = (0.25, 0.4, 0.5, 0.6, 0.75)
    NICE = (0.25, 0.5, 0.75, *[quarters / 4 for quarters in range(5, 17)])

    def __init__(self, seed: int, name: str) -> None:
        self.state: int = seed % 2**64
        for character in name:
            self.below(2)
            self.state ^= ord(character)
        for _ in range(8):
            self.below(2)

    def below(self, n: int) -> int:
        """A whole number from 0 to n - 1: a generator of our own, since the file may replace that of Python."""
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self.state >> 33) % n

    def choose(self, numbers: tuple[float, ...], n: int = 1) -> list[float]:
        """That many different numbers; of more than there are, some repeat."""
        left: list[float] = []
        chosen = []
        for _ in range(n):
            left = left or list(numbers)
            chosen.append(left.pop(self.below(len(left))))
        return chosen

    def numbers(self, n: int) -> list[float]:
        """Numbers of both signs, of different sizes, none of them 0 or of size 1."""
        return [x if self.below(2) else -x for x in self.choose(self.NICE, n)]

    def number(self) -> float:
        return self.numbers(1)[0]

    def pairs(self) -> list[tuple[float, float]]:
        """Two numbers: of unlike signs, in both orders, and both below 1."""
        (a, b), (c, d), (e, f) = self.choose(self.LARGE, 2), self.choose(self.LARGE, 2), self.choose(self.SMALL, 2)
        return [(a, -b), (-c, d), (e, f)]

    def small(self) -> float:
        """A number from -0.8 to 1.2: where all is as often below 0 as above, no ReLU lives."""
        return (self.below(2001) - 800) / 1000.0

    def points(self) -> list[float]:
        """A number above 1, one below 0, one between 0 and 1."""
        return [self.choose(self.LARGE)[0], -self.choose(self.LARGE)[0], self.choose(self.SMALL)[0]]

    def operands(self, written: str) -> list[dict[str, float]]:
        """Numbers for an operation, as it is written: for a, and for b where there are two."""
        pairs = [{"a": x, "b": y} for x, y in self.pairs()] if written.endswith(" b") else []
        numbers = pairs or [{"a": x} for x in (*self.points(), *ALSO.get(written, ()))]
        return [{**at, "a": abs(at["a"])} for at in numbers] if written in POSITIVE else numbers


@lru_cache(1024)
def _code(text: str, mode: str) -> CodeType:
    """A line of a program, which runs on many numbers and many engines."""
    return compile(text, "<string>", mode)


class Kit:
    """A class to try."""

    def __init__(
        self,
        make: Callable[..., Any],  # the class, or what makes a leaf
        names: Mapping[str, str],  # part -> what the class calls it; a part that it does not have is not in it
        space: Mapping[str, Any] = {},  # the names of the file
        plan: TrialPlan = TrialPlan(),  # noqa: B008 # a tuple, which nobody changes
    ) -> None:
        self.make: Callable[..., Any] = make
        self.names: Mapping[str, str] = names
        self.space: Mapping[str, Any] = space
        self.plan: TrialPlan = plan
        self.doing: str = ""  # what is called, where an error is told with it

    def at(self, name: str, needs: str) -> Kit:
        self.numbers: Draw = Draw(self.plan.seed, name)
        self.method: str = next((need for need in needs.split() if need not in NAMES), "")  # that of the operation
        self.scope: dict[str, Any] = {}  # the names of the program that ran last
        return self

    def unfit(self, kind: str, message: str) -> NoReturn:
        raise UnfitError(kind, message)

    def leaves(self, *numbers: float) -> list[Any]:
        return [self.make(number) for number in numbers]

    def drawn(self, names: str) -> dict[str, float]:
        """A number for each of the names, which stand with blanks between them."""
        return dict(zip(names.split(), self.numbers.numbers(len(names.split())), strict=True))

    def where(self, numbers: Mapping[str, float]) -> str:
        """Numbers in words: a = 2, b = 3."""
        return ", ".join([f"{name} = {number:g}" for name, number in numbers.items()])

    def run(self, program: str, numbers: Mapping[str, float]) -> Any:
        """Run statements, with "; " in between, on new leaves; the last is an expression, whose result comes back."""
        self.scope = {name: self.make(number) for name, number in numbers.items()}
        *lines, root = program.split("; ")
        for line in lines:
            exec(_code(line, "exec"), self.scope)
        return eval(_code(root, "eval"), self.scope)

    def tell(self, program: str, numbers: Mapping[str, float], look: str = "") -> Iterator[Outcome]:
        """What a program gives, and the gradients of the names in `look`, which stand with blanks between them.

        Without a `look`, it is the gradients of the leaves.
        """
        root = self.run(program, numbers)
        *lines, what = program.split("; ")
        where = "; ".join([self.where(numbers), *lines])
        return self.gradients(where, what, root, **{name: self.scope[name] for name in look.split() or numbers})

    def gradients(self, where: str, what: str, root: Any, **leaves: Any) -> Iterator[Outcome]:
        """The value of the root, and the gradient of each leaf, where there is a way to them."""
        yield where, what, self.number(root)
        if self.plan.mode == "values":
            return
        closed = "_backward" in self.names and self._closed(root)
        if self.plan.mode == "backward":
            self.backward(root)
        elif not closed:
            self.unfit("absent", f"out.{self.names['_backward']} is not set")
        else:
            above = self.numbers.number()
            where += f", out.grad = {above:g}"
            setattr(root, self.names["grad"], above)
            for node in reversed(self.under(root)) if "_prev" in self.names else [root]:  # mostly there is one to call
                step = getattr(node, self.names["_backward"], None)
                if step is not None:
                    step()
        for name, leaf in leaves.items():
            yield where, f"d({what})/d{name}", self.grad(leaf)

    def after(self, program: str, numbers: Mapping[str, float] = {}) -> Iterator[Outcome]:
        """The gradient of a after a program, on these numbers; in it stand back(c), zero(a) and put(a, 2.0)."""
        numbers = numbers or self.drawn("a b")
        scope = {name: self.make(number) for name, number in numbers.items()}
        exec(program, {"back": self.backward, "zero": self.zero, "put": self.put}, scope)
        yield f"{self.where(numbers)}; {program}", "the gradient of a", self.grad(scope["a"])

    def record(self, node: Any, name: str, calls: list[str]) -> None:
        """Have a node write down each call of its `_backward`."""
        own = getattr(node, self.names["_backward"])
        if not callable(own):
            self.unfit("absent", "no closure")

        def recorded(*arguments: Any) -> Any:
            calls.append(name)
            return own(*arguments)

        try:
            setattr(node, self.names["_backward"], recorded)
        except (AttributeError, TypeError, ValueError, RuntimeError):  # a class that keeps what it is given to itself
            self.unfit("absent", "the closure cannot be replaced")

    def written(self, names: str) -> Iterator[Outcome]:
        """What is written in the nodes of an expression that the file makes."""
        for name in names.split():
            data, grad = self.look(name)
            if hasattr(getattr(self.space.get(name), "grad", None), "data"):
                says = f"{name}.grad is a Value, where a number is asked for: f.data * L.grad, as an example"
                self.unfit("gradient", says)
            yield "", f"{name}.data", data
            yield "", f"{name}.grad", grad

    def numbers_in(self, text: str) -> Iterator[float]:
        """The numbers that stand in a text."""
        for word in "".join(c if c.isalnum() or c in "+-._" else " " for c in text).split():
            with suppress(ValueError):
                yield float(word)

    def look(self, name: str) -> tuple[float, float]:
        """The number and the gradient of the Value under a name; nan, where none is."""
        x = self.space.get(name)
        grad = self.names.get("grad", "grad")
        if "data" in self.names and hasattr(x, self.names["data"]) and hasattr(x, grad):
            return _plain(getattr(x, self.names["data"])), _plain(getattr(x, grad))
        return _plain(None), _plain(None)

    def by_hand(self) -> bool:
        """Whether a file has gradients that were written by hand: that of a result."""
        return any(grad == grad != 0.0 for grad in (self.look(name)[1] for name in "Lo"))

    def number(self, x: Any) -> float:
        """The number in a Value; what is none is said."""
        if x is None:
            self.unfit("none", "the operation gives None, expected a Value")
        if not hasattr(x, self.names["data"]):
            self.unfit("number" if isinstance(x, (int, float)) else "other", f"{_shown(x)} came back, not a Value")
        return self._number(getattr(x, self.names["data"]), self.names["data"])

    def grad(self, x: Any) -> float:
        """The gradient in a Value; 0 where it is still None, as some engines have it before backward()."""
        grad = getattr(x, self.names["grad"])
        return 0.0 if grad is None else self._number(grad, self.names["grad"])

    def backward(self, x: Any) -> None:
        try:
            getattr(x, self.names["backward"])()
        except TypeError as error:
            name = self.names.get("_backward")
            if "'NoneType' object is not callable" not in str(error) or name is None:
                raise
            called = callable(getattr(self.make(2.0), name))
            raise UnfitError("called" if called else "unassigned", f"a node's .{name} is None") from None

    def zero(self, *xs: Any) -> None:
        for x in xs:
            setattr(x, self.names["grad"], 0.0)

    def put(self, x: Any, number: float) -> None:
        setattr(x, self.names["data"], number)

    def parts(self, x: Any) -> list[Any]:
        """The operands of a node, each once."""
        self.number(x)
        name = self.names["_prev"]
        found = getattr(x, name)
        try:
            parts = [] if found is None else list(found)
        except TypeError:
            raise UnfitError("parts", f".{name} is {_shown(found)}, expected a tuple or a set") from None
        for part in parts:
            if not hasattr(part, self.names["data"]):
                self.unfit("parts", f".{name} holds {_shown(part)}, expected the Values themselves")
        return list({id(part): part for part in parts}.values())

    def under(self, root: Any) -> list[Any]:
        """Every node of an expression, each behind its operands; the root is the last."""
        order: list[Any] = []
        begun: set[int] = set()
        stack = [(root, False)]
        while stack:
            node, done = stack.pop()
            if done:
                order.append(node)
            elif id(node) not in begun:
                begun.add(id(node))
                stack.append((node, True))
                stack += [(part, False) for part in self.parts(node)]
        return order

    def _closed(self, root: Any) -> bool:
        """Whether the result of an operation has a closure of its own; UnfitError, where one is written and not set."""
        name = self.names["_backward"]
        own, plain = getattr(root, name, None), getattr(self.make(2.0), name, None)
        shared = getattr(own, "__code__", own) is getattr(plain, "__code__", plain) and not hasattr(own, "__self__")
        if callable(own) and not shared:
            return True
        code = getattr(getattr(self.make, self.method, None), "__code__", None)
        if any(hasattr(constant, "co_code") for constant in getattr(code, "co_consts", ())):  # a function in the method
            kind = "called" if own is None and callable(plain) else "unassigned"
            self.unfit(kind, f"out.{name} is {'None' if own is None else 'what a leaf has'}")
        return False

    def _number(self, x: Any, name: str) -> float:
        if isinstance(x, complex):
            self.unfit("complex", f".{name} is the complex number {x!r}")
        data = self.names.get("data", "data")  # a class may have a gradient before it has a number
        inner = getattr(x, data, None)
        if name == data and isinstance(inner, (int, float)):
            self.unfit("nested", f".{name} is a {type(x).__name__}, expected a number")
        try:
            return float(x)  # the numbers of NumPy and others too
        except (TypeError, ValueError):
            if isinstance(inner, (int, float)) and not self.plan.lesson:  # a gradient that is a Value itself
                return float(inner)
            raise UnfitError("other", f".{name} is {_shown(x)}, expected a number") from None


def _plain(x: Any) -> float:
    return float(x) if isinstance(x, (int, float)) else float("nan")


def _shown(x: Any) -> str:
    return f"{type(x).__name__} {x!r:.40}"
