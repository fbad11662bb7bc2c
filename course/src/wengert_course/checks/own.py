"""What the tests in `asked` are given: the names of a learner's file, and ways to compare what comes of them.

A test is a function of `own` and `draw`. Its docstring says what is asked for: the line of the table, then what is to
be written. What it finds wrong it says in a sentence. The process that runs the file loads this one alone: it imports
nothing of Wengert's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NoReturn

if TYPE_CHECKING:
    from wengert_course.checks.kit import Kit

__all__ = ["Own", "run", "said"]

LONG = 60  # characters of a number, or a list of numbers, in a sentence


class Own:
    """`own.softmax` is the learner's function of that name; where there is none, the test ends: it is not there yet."""

    def __init__(self, kit: Kit) -> None:
        self._kit = kit
        self.gradients: int = 0  # so many were compared

    def __getattr__(self, name: str) -> Any:
        thing = self._kit.space.get(name)
        if not callable(thing):
            self._kit.unfit("absent", name)
        self._kit.doing = f"{name}()"
        return thing

    def wrong(self, says: str, part: str = "value") -> NoReturn:
        """End the test: its "value" or its "gradient" is wrong."""
        self._kit.unfit(part, says)

    def method(self, thing: Any, name: str) -> Any:
        """A method of an object; where it has none of that name, it is not there yet."""
        if not hasattr(thing, name):
            self._kit.unfit("absent", name)
        return getattr(thing, name)

    # -- Values -------------------------------------------------------------------------------------------------------

    def make(self, number: float) -> Any:
        """A new Value."""
        return (self._kit.make if "data" in self._kit.names else self._kit.space["Value"])(number)

    def is_value(self, thing: Any) -> bool:
        """Whether it is a Value, by its parts."""
        return all(hasattr(thing, self._kit.names.get(part, part)) for part in ("data", "grad"))

    def number(self, thing: Any) -> float:
        """The number in a Value."""
        return float(getattr(thing, self._kit.names.get("data", "data")))

    def put(self, thing: Any, number: float) -> None:
        """Set the number in a Value."""
        setattr(thing, self._kit.names.get("data", "data"), number)

    def backward(self, result: Any, leaves: Sequence[Any]) -> list[float]:
        """The gradients that a backward pass from a result leaves in some Values."""
        grad = self._kit.names.get("grad", "grad")
        for leaf in leaves:
            setattr(leaf, grad, 0.0)
        getattr(result, self._kit.names.get("backward", "backward"))()
        self.gradients += len(leaves)
        return [float(getattr(leaf, grad) or 0.0) for leaf in leaves]

    # -- comparing ----------------------------------------------------------------------------------------------------

    def same(self, call: str, got: Any, wanted: Any, where: str = "", within: float = 1e-6) -> None:
        """Compare what a call gave with what it should give: a number, or lists of numbers."""
        told = _difference(self._plain(call, got), wanted, within)
        if told:
            self.wrong(call + told + (f", where {where}" if where else ""))

    def alike(self, got: Any, wanted: Any) -> bool:
        """Whether Values hold these numbers, one Value or a list of them."""
        if isinstance(wanted, list):
            several = isinstance(got, (list, tuple)) and len(got) == len(wanted)
            return several and all(map(self.alike, got, wanted))
        return self.is_value(got) and math.isclose(self.number(got), wanted, rel_tol=1e-6, abs_tol=1e-6)

    def differences(self, f: Callable[..., float], numbers: Sequence[float], h: float = 1e-5) -> list[float]:
        """The derivative of a function with respect to each of its arguments, by central differences."""
        moved = [[x + d * (i == k) for i, x in enumerate(numbers)] for k in range(len(numbers)) for d in (h, -h)]
        return [(f(*up) - f(*down)) / (2 * h) for up, down in zip(moved[::2], moved[1::2], strict=True)]

    def agrees(
        self, call: str, right: Callable[..., Any], values: Sequence[Any], plain: Sequence[Any] = (), most: int = 20
    ) -> None:
        """Compare a function with one of numbers: what it gives, and its gradients with differences.

        The call is written with the names of the arguments, "f(xs, k)"; `values` are those that are made Values, or
        lists of Values, for it. Of more than `most` numbers that go in, so many gradients are compared.
        """
        name, _, rest = call.partition("(")
        names, function = rest.rstrip(")").split(", "), getattr(self, name)
        where = ", ".join(f"{one} = {_shown(x)}" for one, x in zip(names, [*values, *plain], strict=True))
        wanted = right(*values, *plain)
        self._kit.doing = f"{call}, where {where},"
        self.same(call, function(*self._made(list(values), []), *plain), wanted, where)
        for place, _ in _numbers(wanted):
            leaves: list[Any] = []
            out = _at(function(*self._made(list(values), leaves), *plain), place)
            if not self.is_value(out):
                self.wrong(f"{call} gives plain numbers, and the graph is lost: Values all the way", "gradient")
            got, into = self.backward(out, leaves), list(_numbers(list(values)))
            for k in range(0, len(into), -(-len(into) // most)):
                where_to, x = into[k]
                (first, *deeper), moved = where_to, partial(_moved, list(values), where_to)
                (slope,) = self.differences(lambda x: _at(right(*moved(x), *plain), place), [x])  # noqa: B023 (at once)
                if not math.isclose(got[k], slope, rel_tol=1e-5, abs_tol=1e-6):
                    of, by = f"{call}{_index(place)}", f"{names[first]}{_index(deeper)}"
                    told = f"the derivative of {of} with respect to {by}{_should(slope, got[k])}, where {where}"
                    cut = "" if any(got) else "; no gradient comes back: is a .data or a float() on the way?"
                    self.wrong(told + cut, "gradient")

    def _made(self, thing: Any, leaves: list[Any]) -> Any:
        """Values of numbers, in the same lists; they are listed, too."""
        if isinstance(thing, list):
            return [self._made(one, leaves) for one in thing]
        leaves.append(self.make(thing))
        return leaves[-1]

    def _plain(self, call: str, thing: Any) -> Any:
        """Numbers in lists, of Values, tuples or arrays."""
        thing = thing.tolist() if hasattr(thing, "tolist") else thing
        if isinstance(thing, (list, tuple)):
            return [self._plain(call, one) for one in thing]
        if thing is None:
            self.wrong(f"{call} gives None: is a return missing?")
        thing = getattr(thing, self._kit.names.get("data", "data"), thing)
        if not isinstance(thing, (int, float)):
            self.wrong(f"{call} gives {_shown(thing)}, where numbers or a list of them are expected")
        return thing


def _difference(got: Any, wanted: Any, within: float, at: str = "") -> str:
    """Where numbers in lists are not alike, in words; empty, if they are."""
    if isinstance(wanted, list) and isinstance(got, list):
        if len(got) != len(wanted):
            return f"{at} should have {len(wanted)} items, and has {len(got)}: {_shown(got)}"
        parts = (_difference(g, w, within, f"{at}[{i}]") for i, (g, w) in enumerate(zip(got, wanted, strict=True)))
        return next(filter(None, parts), "")
    numbers = not isinstance(wanted, list) and not isinstance(got, list)
    return "" if numbers and math.isclose(got, wanted, rel_tol=within, abs_tol=within) else at + _should(wanted, got)


def _should(wanted: Any, got: Any) -> str:
    return f" should be {_shown(wanted)}, and is {_shown(got)}"


def _shown(thing: Any) -> str:
    """A number, or a list of numbers, in a few digits and characters."""
    if isinstance(thing, list):
        text = f"[{', '.join(map(_shown, thing))}]"
    else:
        text = f"{thing:.6g}" if type(thing) is float else repr(thing)
    return text if len(text) <= LONG else f"{text[: LONG - 4]} ..."


Place = tuple[int, ...]


def _numbers(thing: Any, place: Place = ()) -> Iterator[tuple[Place, float]]:
    """The numbers in lists in lists, each with where it is."""
    if isinstance(thing, list):
        for i, one in enumerate(thing):
            yield from _numbers(one, (*place, i))
    else:
        yield place, thing


def _at(thing: Any, place: Place) -> Any:
    for i in place:
        thing = thing[i]
    return thing


def _index(place: Sequence[int]) -> str:
    return "".join(f"[{i}]" for i in place)


def _moved(thing: Any, place: Place, number: float) -> Any:
    """The same lists, with another number at a place."""
    if not place:
        return number
    return [_moved(one, place[1:], number) if i == place[0] else one for i, one in enumerate(thing)]


def said(test: Callable[..., Any]) -> tuple[str, str]:
    """What the docstring of a test says: its row, and what it asks for."""
    row, _, asks = str(test.__doc__).partition("\n")
    return row, " ".join(asks.split())


def run(test: Callable[[Own, Any], None]) -> Callable[[Kit], Iterator[tuple[str, str, int]]]:
    """A test as a trial runs it, which tells how many gradients were compared."""

    def tried(kit: Kit) -> Iterator[tuple[str, str, int]]:
        own = Own(kit)
        test(own, kit.numbers)
        yield "", "", own.gradients

    return tried
