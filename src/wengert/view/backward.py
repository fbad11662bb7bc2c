"""The backward pass of a graph, written down: what each operand's gradient was before a node's turn, and after it."""

from __future__ import annotations

from array import array
from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from math import isclose
from typing import Any

from wengert import engine
from wengert.engine import Value
from wengert.graph import Graph
from wengert.ops import BY_NAME
from wengert.view import naming
from wengert.view.graph import ROUNDING, edges, is_by_hand, silent
from wengert.view.naming import clean, number, second

__all__ = ["Contribution", "Pass"]

LONGEST = 200  # characters of what a closure raised
CANCELLED = 1e-12  # what may be left, of numbers around 1, where a sum cancels in another order


@dataclass(frozen=True, slots=True)
class Contribution:
    """What one operand receives when its node passes its gradient on.

    Attributes:
        operand: the operand's place in the computation.
        name: what it is called.
        partial: the derivative of the node with respect to this operand, as recorded; of a node made by hand, what its
            closure was seen to add for a gradient of 1, nan if that is not all that it goes by.
        product: the node's gradient times `partial`: what is added.
        before: the operand's gradient until then.
        after: ``before + product``, or what the closure of a node made by hand makes of it.
        sentence: the same in words and numbers.
        rule: where `partial` comes from, as a calculus book has it, then in numbers: ``1 - tanh(n)² = 1 - 0.7071² =
            0.5``; '' where there is no such rule, or the closure of a node made by hand does not go by it.
        at: the operand's place in `Graph.operands`.
        how: whether the turn "added" the product, "replaced" what was there by it, or did something "else".
    """

    operand: int
    name: str
    partial: float
    product: float
    before: float
    after: float
    sentence: str
    rule: str = field(repr=False)
    at: int = field(repr=False)
    how: str = field(repr=False)


class Pass:
    """The pass, in the order in which `backward()` goes, so that the bits are the same; no gradient is touched.

    A node made by hand has its closure run, and every gradient is put back: what it does stands here, whatever it is.

    Attributes:
        graph: the computation.
        names: what its nodes are called.
        data: the number of each node.
        partials: the local derivatives, as `Graph.partials` gives them.
        gradients: of each node, when all have had their turn.
        before: for each of `Graph.operands`, its gradient before the turn of its node,
        after: and after it.
        is_first: for each, whether that turn was the first to reach it.
        silent: the places of the nodes made by hand without a closure.
        broken: what the closure of a node raised, by the node's place.
        made: the places of what is no leaf.
    """

    def __init__(self, root: Value) -> None:
        self.graph: Graph = Graph(root)
        self.names: list[str] = naming.names(self.graph)
        self.data: array[float] = array("d", [value.data for value in self.graph.values])
        self.partials: Sequence[float] = self.graph.partials
        self.gradients: array[float] = array("d", [0.0]) * len(self.graph)
        self.before: array[float] = array("d", [0.0]) * len(self.graph.operands)
        self.after: array[float] = array("d", [0.0]) * len(self.graph.operands)
        self.is_first: bytearray = bytearray(len(self.graph.operands))
        self.silent: frozenset[int] = silent(self.graph)
        self.broken: dict[int, str] = {}
        self.made: list[int] = [place for place, code in enumerate(self.graph.codes) if code]
        self._met = bytearray(len(self.graph))
        self.gradients[-1] = 1.0
        for place in range(len(self.graph) - 1, -1, -1):
            if is_by_hand(self.graph, place):
                self._visit(place)
                continue
            for at, operand in edges(self.graph, place):
                self._write(at, operand, self.gradients[operand] + self.partials[at] * self.gradients[place])

    def _write(self, at: int, operand: int, gradient: float) -> None:
        self.before[at], self.after[at] = self.gradients[operand], gradient
        self.is_first[at], self._met[operand] = not self._met[operand], True
        self.gradients[operand] = gradient

    def _visit(self, place: int) -> None:
        """Run the closure of a node made by hand."""
        values, slots = self.graph.values, self._slots(place)
        if place in self.silent:
            return
        node: Any = values[place]
        kept = [(x, x.grad) for x in (node, *(values[x] for x in slots))]
        with engine.walking:
            try:
                node.grad = self.gradients[place]
                for x in slots:
                    values[x].grad = self.gradients[x]
                node._push()
                found = [values[x].grad for x in slots]
            except Exception as error:  # whatever a closure of the user's raises is what there is to say of it
                self.broken[place] = clean(f"{type(error).__name__}: {error}", LONGEST)
                return
            finally:
                for value, gradient in kept:
                    value.grad = gradient
        for (x, (at, *_)), gradient in zip(slots.items(), found, strict=True):
            self._write(at, x, gradient)

    def _slots(self, place: int) -> dict[int, list[int]]:
        """The operands of a node made by hand, each once, and all its places in `Graph.operands`."""
        slots: dict[int, list[int]] = {}
        for at, operand in edges(self.graph, place):
            slots.setdefault(operand, []).append(at)
        return slots

    def moves(self, place: int) -> list[Contribution]:
        """What a node's turn did. A closure adds to an operand that is there twice at once: it stands here once."""
        if not is_by_hand(self.graph, place):
            return [self._contribution(place, x, at, self.partials[at]) for at, x in edges(self.graph, place)]
        if place in self.silent or place in self.broken:
            return []
        slots = self._slots(place).items()
        return [self._contribution(place, x, ats[0], sum([self.partials[at] for at in ats])) for x, ats in slots]

    def _contribution(self, place: int, operand: int, at: int, partial: float) -> Contribution:
        name, target, cotangent = self.said(place), self.said(operand), self.gradients[place]
        product, before, after = partial * cotangent, self.before[at], self.after[at]
        factors = f"{number(cotangent)} × {second(partial)}"
        said = f"grad of {name} × local derivative = {factors} = {number(product)}"
        how = "added"
        if is_by_hand(self.graph, place) and not _agree(after, before + product):
            how = "replaced" if _agree(after, product) else "else"
        if how == "else":
            said = f"the _backward of {name} turns the grad of {target} from {number(before)} into {number(after)}"
            product = after - before
        elif self.is_first[at]:
            said = f"grad of {target} = {said}"
        elif how == "replaced":
            lost = f"the {number(before)} that it held is lost: the _backward of {name} has = where += belongs"
            said = f"grad of {target} = {said}, and {lost}"
        else:
            total = f"{number(before)} + {second(product)} = {number(after)}"
            said = f"grad of {target} += {said}, which makes {total}"
        rule = self._rule(place, at, partial)
        return Contribution(operand, self.names[operand], partial, product, before, after, said, rule, at, how)

    def _rule(self, place: int, at: int, partial: float) -> str:
        """A local derivative as the rule has it, over the names of the operands and over their numbers."""
        operands, name = self.graph[place].operands, naming.spelled(self.graph, place)
        written = naming.derivative(name, len(operands), at - self.graph.starts[place])
        if not written or partial != partial:
            return ""
        numbers = [self.data[x] if isinstance(x, int) else x for x in operands]
        if is_by_hand(self.graph, place):
            row, given = (BY_NAME["pow"], [*numbers, float(name[2:])]) if name[:2] == "**" else (BY_NAME[name], numbers)
            if not _agree(row.partials_at(row.value(*given), given)[at - self.graph.starts[place]], partial):
                return ""
        symbols = [self.names[x] if isinstance(x, int) else number(x) for x in operands]
        enclosed = [self.said(x) if isinstance(x, int) else second(x) for x in operands]
        whole = naming.formula(self.graph, self.names, place)
        over_names = naming.fill(written, [*symbols, whole], [*enclosed, whole])
        over_numbers = naming.fill(written, list(map(number, [*numbers, self.data[place]])))
        return " = ".join(dict.fromkeys([over_names, over_numbers, number(partial)]))

    def passed(self, place: int, at: int) -> float:
        """What a node passes on to an operand."""
        partial = self.partials[at]
        if partial != partial and is_by_hand(self.graph, place):
            return self.after[at] - self.before[at]
        return partial * self.gradients[place]

    # -- in words -----------------------------------------------------------------------------------------------------

    def computation(self, place: int) -> str:
        """A node's forward step: ``d = a*b + a = -6 + 2 = -4``."""
        formula = naming.formula(self.graph, self.names, place)
        numbers = naming.written(self.graph, place, lambda x: number(self.data[x] if isinstance(x, int) else x), " × ")
        return " = ".join([*dict.fromkeys([self.names[place], formula]), numbers, number(self.data[place])])

    def operands(self, place: int) -> list[tuple[str, float]]:
        """The name and the number of each operand; the name of a constant is the number itself."""
        operands = self.graph[place].operands
        return [(self.names[x], self.data[x]) if isinstance(x, int) else (number(x), x) for x in operands]

    @property
    def stale(self) -> tuple[str, ...]:
        """The names of the nodes whose number is no longer what their operands' numbers give."""
        return tuple([self.names[place] for place in self.made if self._is_stale(place)])

    def _is_stale(self, place: int) -> bool:
        op = self.graph[place].op
        if op.value is None:
            return False
        again, data = float(op.value(*[x for _, x in self.operands(place)])), self.data[place]
        return again != data and (again == again or data == data)

    def said(self, place: int) -> str:
        """A node's name as it stands in a sentence: an expression in parentheses."""
        name = self.names[place]
        return f"({name})" if naming.is_compound(self.graph, self.names, place) else name

    def idle(self, place: int) -> str:
        """Why a node passes nothing on."""
        name = self.said(place)
        if place in self.broken:
            return f"the _backward of {name} raises {self.broken[place]}"
        if place in self.silent:
            return f"{name} has no _backward: its gradient stops here"
        return f"{name} has no operand that takes a gradient"

    def faults(self, way: Container[int]) -> list[str]:
        """What closures do that they should not, in sentences; of the nodes on a way from the result."""
        found = []
        for place in range(len(self.names) - 1, -1, -1):
            if place not in way or not is_by_hand(self.graph, place):
                continue
            closure = f"the _backward of {self.names[place]}"
            if place in self.broken:
                found.append(f"T{closure[1:]} raises {self.broken[place]}.")
            for move in self.moves(place):
                if move.operand in way and move.how == "replaced":
                    lost = number(move.before)
                    found.append(f"T{closure[1:]} has = where += belongs: the {lost} that {move.name} held is lost.")
                elif move.operand in way and move.how == "else":
                    found.append(f"What {closure} adds to {move.name} is not its gradient times a local derivative.")
        return found


def _agree(x: float, y: float) -> bool:
    return x == y or (x != x and y != y) or isclose(x, y, rel_tol=ROUNDING, abs_tol=CANCELLED)
