"""The backward pass of a graph as data: each operand's gradient before and after each node's step."""

from __future__ import annotations

from array import array
from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from math import isclose
from typing import Any

from wengert import engine
from wengert.engine import Value
from wengert.graph import Graph, is_untaken, reached
from wengert.ops import BY_NAME
from wengert.view import naming
from wengert.view.graph import ROUNDING, edges, is_by_hand, silent
from wengert.view.naming import clean, number, second

__all__ = ["Contribution", "Pass"]

LONGEST = 200  # characters of an exception's text
CANCELLED = 1e-12  # the rounding error that is tolerated where a sum of numbers around 1 cancels


@dataclass(frozen=True, slots=True)
class Contribution:
    """The gradient that one operand receives from its node.

    Attributes:
        operand: the operand's index in the graph.
        name: the operand's name.
        partial: the derivative of the node with respect to this operand, as recorded; for a node made by hand, what its
            closure adds for a gradient of 1, or nan if that is not proportional to the gradient.
        product: the node's gradient times `partial`.
        before: the operand's gradient before the step.
        after: ``before + product``, or the gradient that the closure of a node made by hand sets.
        sentence: the step in words and numbers.
        rule: the rule for `partial` as in a calculus book, then in numbers: ``1 - tanh(n)² = 1 - 0.7071² = 0.5``;
            '' if there is none, or if the closure of a node made by hand does not follow it.
        at: the operand's index in `Graph.operands`.
        how: "added" if the step adds the product, "replaced" if it overwrites the gradient with it, or "else".
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
    """The backward pass in the order of `backward()`, so with the same bits; no gradient is changed.

    The closures of nodes made by hand are run, and then all gradients are restored, so that the recorded steps are what
    these closures really do. Many fields: each is a list of one thing for all nodes, or for all operands.

    Attributes:
        graph: the computation.
        names: the names of its nodes.
        data: the number of each node.
        partials: the local derivatives, as in `Graph.partials`.
        gradients: the gradient of each node at the end.
        before: for each of `Graph.operands`, the operand's gradient before the step of its node.
        after: the same after the step.
        is_first: for each of `Graph.operands`, 1 if its step is the first to reach the operand.
        silent: the indices of the nodes made by hand without a closure.
        broken: the exceptions of closures as text, by the node's index.
        made: the indices of the nodes that are not leaves.
        beside: the indices of the nodes that no gradient reaches, as only untaken sides of choices read them.
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
        flags = reached(self.graph)
        self.beside: frozenset[int] = frozenset([place for place in range(len(flags)) if not flags[place]])
        self.gradients[-1] = 1.0
        for place in range(len(self.graph) - 1, -1, -1):
            if is_by_hand(self.graph, place):
                self._visit(place)
                continue
            for at, operand in edges(self.graph, place):
                self._write(at, operand, self.gradients[operand] + self._product(place, at, self.partials[at]))

    def _product(self, place: int, at: int, partial: float) -> float:
        """Return what a node passes to an operand: 0 if no gradient reaches the node, or if it is a choice that takes
        another operand, whatever the partial is.
        """
        if place in self.beside or is_untaken(self.graph.codes[place], partial):
            return 0.0
        return partial * self.gradients[place]

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
            except Exception as error:  # a user's closure may raise anything
                self.broken[place] = clean(f"{type(error).__name__}: {error}", LONGEST)
                return
            finally:
                for value, gradient in kept:
                    value.grad = gradient
        for (x, (at, *_)), gradient in zip(slots.items(), found, strict=True):
            self._write(at, x, gradient)

    def _slots(self, place: int) -> dict[int, list[int]]:
        """Return the operands of a node made by hand, each once, with all its indices in `Graph.operands`."""
        slots: dict[int, list[int]] = {}
        for at, operand in edges(self.graph, place):
            slots.setdefault(operand, []).append(at)
        return slots

    def moves(self, place: int) -> list[Contribution]:
        """List the contributions of a node's step; an operand of a closure that occurs twice is listed once."""
        if place in self.beside:
            return []
        if not is_by_hand(self.graph, place):
            return [self._contribution(place, x, at, self.partials[at]) for at, x in edges(self.graph, place)]
        if place in self.silent or place in self.broken:
            return []
        slots = self._slots(place).items()
        return [self._contribution(place, x, ats[0], sum([self.partials[at] for at in ats])) for x, ats in slots]

    def _contribution(self, place: int, operand: int, at: int, partial: float) -> Contribution:
        name, target, cotangent = self.said(place), self.said(operand), self.gradients[place]
        product, before, after = self._product(place, at, partial), self.before[at], self.after[at]
        factors = f"{number(cotangent)} × {second(partial)}"
        said = f"grad of {name} × local derivative = {factors} = {number(product)}"
        how = "added"
        if is_by_hand(self.graph, place) and not _agree(after, before + product):
            how = "replaced" if _agree(after, product) else "else"
        if how == "else":
            said = f"the _backward of {name} changes the grad of {target} from {number(before)} to {number(after)}"
            product = after - before
        elif self.is_first[at]:
            said = f"grad of {target} = {said}"
        elif how == "replaced":
            lost = f"its former {number(before)} is lost: the _backward of {name} has = instead of +="
            said = f"grad of {target} = {said}, and {lost}"
        else:
            total = f"{number(before)} + {second(product)} = {number(after)}"
            said = f"grad of {target} += {said}, which makes {total}"
        rule = self._rule(place, at, partial)
        return Contribution(operand, self.names[operand], partial, product, before, after, said, rule, at, how)

    def _rule(self, place: int, at: int, partial: float) -> str:
        """Write the rule of a local derivative, in the names of the operands and then in their numbers."""
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
        """Return the contribution of a node to the gradient of an operand."""
        partial = self.partials[at]
        if partial != partial and is_by_hand(self.graph, place):
            return self.after[at] - self.before[at]
        return self._product(place, at, partial)

    # -- sentences ----------------------------------------------------------------------------------------------------

    def computation(self, place: int) -> str:
        """Write a node's forward step: ``d = a*b + a = -6 + 2 = -4``."""
        formula = naming.formula(self.graph, self.names, place)
        numbers = naming.written(self.graph, place, lambda x: number(self.data[x] if isinstance(x, int) else x), " × ")
        return " = ".join([*dict.fromkeys([self.names[place], formula]), numbers, number(self.data[place])])

    def operands(self, place: int) -> list[tuple[str, float]]:
        """Return the name and the number of each operand; the name of a constant is the number itself."""
        operands = self.graph[place].operands
        return [(self.names[x], self.data[x]) if isinstance(x, int) else (number(x), x) for x in operands]

    @property
    def stale(self) -> tuple[str, ...]:
        """The names of the nodes whose data no longer follows from that of their operands."""
        return tuple([self.names[place] for place in self.made if self._is_stale(place)])

    def _is_stale(self, place: int) -> bool:
        op = self.graph[place].op
        if op.value is None:
            return False
        again, data = float(op.value(*[x for _, x in self.operands(place)])), self.data[place]
        return again != data and (again == again or data == data)

    def said(self, place: int) -> str:
        """Return a node's name for a sentence, in parentheses if it is an expression."""
        name = self.names[place]
        return f"({name})" if naming.is_compound(self.graph, self.names, place) else name

    def idle(self, place: int) -> str:
        """Explain why a node passes no gradient on."""
        name = self.said(place)
        if place in self.beside:
            return f"no gradient reaches {name}: only sides of a choice that are not taken read it"
        if place in self.broken:
            return f"the _backward of {name} raises {self.broken[place]}"
        if place in self.silent:
            return f"{name} has no _backward: its gradient stops here"
        return f"{name} has no operands to pass its gradient on to"

    def faults(self, way: Container[int]) -> list[str]:
        """List the errors of closures, as sentences, for the nodes on a way from the result."""
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
                    found.append(f"T{closure[1:]} has = instead of +=: the former {lost} of {move.name} is lost.")
                elif move.operand in way and move.how == "else":
                    found.append(f"T{closure[1:]} adds to {move.name} something else than gradient × local derivative.")
        return found


def _agree(x: float, y: float) -> bool:
    return x == y or (x != x and y != y) or isclose(x, y, rel_tol=ROUNDING, abs_tol=CANCELLED)
