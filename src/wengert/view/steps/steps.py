"""A computation and its backward pass, one node at a time: `steps(root)`.

Each `Step` is plain data with the sentence of the chain rule in numbers; `Steps.page()` makes one HTML file of all of
them, to play, to drag, and to change the leaves in. Nothing here touches a `grad`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, overload

from wengert.errors import ArgumentError, OperandError, file_name
from wengert.graph import Graph
from wengert.view.backward import Contribution, Pass
from wengert.view.foreign import ForeignGraph, can_be_seen
from wengert.view.steps.page import Page, page

__all__ = ["Contribution", "Step", "Steps", "steps"]


@dataclass(frozen=True, slots=True)
class Step:
    """One node's turn, on the way forward or backward.

    Attributes:
        number: its place among the steps.
        phase: "forward" or "backward".
        place: the node's place in the computation, in the order of creation.
        name: what the node is called: its label, its name in a model, a short expression, or ``v7`` for the node at
            place 7.
        symbol: its operation's symbol, as in drawings; '' for a leaf.
        operands: the name and the data of each operand; the name of a constant is the number itself.
        value: the node's data.
        cotangent: the node's gradient, complete at this moment; None on the way forward.
        contributions: what each operand that is a Value receives; empty on the way forward.
        sentence: what happens, in one sentence for each number that changes.
    """

    number: int
    phase: str
    place: int
    name: str
    symbol: str
    operands: tuple[tuple[str, float], ...]
    value: float
    cotangent: float | None
    contributions: tuple[Contribution, ...]
    sentence: str

    def __str__(self) -> str:
        start = f"{self.number} {self.phase}: "
        return start + ("\n" + " " * len(start)).join([move.sentence for move in self.contributions] or [self.sentence])


class Steps(Sequence[Step]):
    """The steps of a computation: forward through every operation, then back from the result. See `steps`.

    Attributes:
        graph: the computation.
        names: what its nodes are called.
        partials: the local derivatives, as `Graph.partials` gives them.
        backward_pass: the backward pass.
    """

    def __init__(self, root: Any) -> None:
        if not can_be_seen(root):
            raise OperandError(
                f"steps(root) takes the Value that backward() would be called on, not {type(root).__name__}"
            )
        self.backward_pass: Pass = Pass(ForeignGraph(root).root)
        self.graph: Graph = self.backward_pass.graph
        self.names: list[str] = self.backward_pass.names
        self.partials: Sequence[float] = self.backward_pass.partials

    @property
    def gradients(self) -> list[float]:
        """The gradient of each node after the last step: what `backward()` adds to a leaf and leaves in a node."""
        return list(self.backward_pass.gradients)

    @property
    def data(self) -> list[float]:
        """The number of each node."""
        return list(self.backward_pass.data)

    @property
    def stale(self) -> tuple[str, ...]:
        """The names of the nodes whose number is no longer what their operands' numbers give.

        A leaf's `data` was changed since: the steps are then those of the computation as it was recorded.
        """
        return self.backward_pass.stale

    # -- the sequence -------------------------------------------------------------------------------------------------

    def __len__(self) -> int:
        return 2 * len(self.backward_pass.made) + 1

    @overload
    def __getitem__(self, index: int) -> Step: ...
    @overload
    def __getitem__(self, index: slice) -> list[Step]: ...
    def __getitem__(self, index: int | slice) -> Step | list[Step]:
        numbers = range(len(self))[index]
        return [self._step(i) for i in numbers] if isinstance(numbers, range) else self._step(numbers)

    def __repr__(self) -> str:
        return f"Steps({self.names[-1]}: {len(self)} steps, {len(self.graph)} nodes)"

    def _step(self, index: int) -> Step:
        forward, root = len(self.backward_pass.made), len(self.graph) - 1
        moves: list[Contribution] = []
        if index < forward:
            place = self.backward_pass.made[index]
            sentence = self.backward_pass.computation(place)
        elif index == forward:
            place = root
            said = self.backward_pass.said(root)
            sentence = f"grad of {said} = 1, the derivative of the result with respect to itself"
        else:
            place = self.backward_pass.made[2 * forward - index]
            moves = self.backward_pass.moves(place)
            sentence = "; ".join([move.sentence for move in moves]) or self.backward_pass.idle(place)
        return Step(
            number=index,
            phase="forward" if index < forward else "backward",
            place=place,
            name=self.names[place],
            symbol=self.graph.values[place]._op,
            operands=tuple(self.backward_pass.operands(place)),
            value=self.backward_pass.data[place],
            cotangent=None if index < forward else self.backward_pass.gradients[place],
            contributions=tuple(moves),
            sentence=sentence,
        )

    # -- the page -----------------------------------------------------------------------------------------------------

    def page(self) -> Page:
        """One HTML file that plays the steps: a string, and in a notebook the page itself.

        It needs nothing beside itself and fetches nothing. The leaves can be changed there, and everything is
        computed anew in the page.

        Raises:
            ArgumentError: the computation has more nodes than a page can show.
        """
        return page(self.backward_pass)

    def _repr_html_(self) -> str | None:
        """The page, as the last line of a notebook's cell; None where there are too many nodes for one."""
        try:
            return self.page()._repr_html_()
        except ArgumentError:
            return None

    def save(self, path: str | PathLike[str]) -> None:
        """Write the page to a file.

        Raises:
            ArgumentError: the computation has more nodes than a page can show, or the path is none.
        """
        name = file_name(path)
        self.page().save(name)


def steps(root: Any) -> Steps:
    """The computation of `root` and its backward pass, one node at a time.

    Forward through every operation in the order in which it was computed, then back, as `backward()` goes, which
    need not have been called: the numbers are the same to the last bit, and no `grad` is touched. The root may be of
    another class that knows its parts: the steps are then those of its own closures.

    Raises:
        OperandError: `root` is not a Value.

    >>> a, b = Value(2.0, "a"), Value(-3.0, "b")
    >>> d = a * b + a
    >>> d.label = "d"
    >>> for step in steps(d)[:4]:
    ...     print(step)
    0 forward: a*b = 2 × (-3) = -6
    1 forward: d = a*b + a = -6 + 2 = -4
    2 backward: grad of d = 1, the derivative of the result with respect to itself
    3 backward: grad of (a*b) = grad of d × local derivative = 1 × 1 = 1
                grad of a = grad of d × local derivative = 1 × 1 = 1
    >>> print(steps(d)[4].contributions[0].sentence)
    grad of a += grad of (a*b) × local derivative = 1 × (-3) = -3, which makes 1 + (-3) = -2
    >>> steps(d)[4].contributions[0].after
    -2.0
    """
    return Steps(root)
