"""`steps(root)` shows a computation and its backward pass one node at a time.

Each `Step` is plain data with a sentence that applies the chain rule in numbers; `Steps.page()` makes one HTML file in
which the steps can be played and the leaves changed. Nothing here reads or writes a `grad`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any, overload

from wengert.errors import ArgumentError, OperandError, counted, file_name
from wengert.graph import Graph
from wengert.view.backward import Contribution, Pass
from wengert.view.foreign import ForeignGraph, can_be_seen
from wengert.view.player import Page
from wengert.view.steps.page import page

__all__ = ["Contribution", "Step", "Steps", "steps"]


@dataclass(frozen=True, slots=True)
class Step:
    """The step of one node, forward or backward.

    Attributes:
        number: the index of the step.
        phase: "forward" or "backward".
        place: the node's index in the graph, in the order of creation.
        name: the node's name: its label, its name in a model, a short expression, or ``v7`` for the node with index 7.
        symbol: its operation's symbol, as in drawings; '' for a leaf.
        operands: the name and the data of each operand; the name of a constant is the number itself.
        value: the node's data.
        cotangent: the node's gradient, complete at this step; None in forward steps.
        contributions: the gradient that each operand receives; empty in forward steps.
        sentence: one sentence for each number that changes.
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
        names: the names of its nodes.
        partials: the local derivatives, as in `Graph.partials`.
        backward_pass: the backward pass.
    """

    def __init__(self, root: Any) -> None:
        if not can_be_seen(root):
            raise OperandError(
                f"steps(root) takes the Value that backward() would be called on, not a {type(root).__name__}"
            )
        self.backward_pass: Pass = Pass(ForeignGraph(root).root)
        self.graph: Graph = self.backward_pass.graph
        self.names: list[str] = self.backward_pass.names
        self.partials: Sequence[float] = self.backward_pass.partials

    @property
    def gradients(self) -> list[float]:
        """The gradient of each node after the last step, as `backward()` adds it to the `grad` of a leaf."""
        return list(self.backward_pass.gradients)

    @property
    def data(self) -> list[float]:
        """The number of each node."""
        return list(self.backward_pass.data)

    @property
    def stale(self) -> tuple[str, ...]:
        """The names of the nodes whose data no longer follows from that of their operands.

        This happens if a leaf's `data` is changed; the steps are still those of the recorded computation.
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
        return f"Steps({self.names[-1]}: {counted(len(self), 'step')}, {counted(len(self.graph), 'node')})"

    def _step(self, index: int) -> Step:
        forward, root = len(self.backward_pass.made), len(self.graph) - 1
        moves: list[Contribution] = []
        if index < forward:
            place = self.backward_pass.made[index]
            sentence = self.backward_pass.computation(place)
        elif index == forward:
            place = root
            sentence = (
                f"grad of {self.backward_pass.said(root)} = 1, the derivative of the result with respect to itself"
            )
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
        """Make one HTML file that plays the steps, as a string that a notebook displays.

        It is self-contained. The leaves can be changed in the page, which then computes everything again.

        Raises:
            ArgumentError: the computation has more nodes than a page can show.
        """
        return page(self.backward_pass)

    def _repr_html_(self) -> str | None:
        """Return the page for a notebook; None if there are too many nodes for one."""
        try:
            return self.page()._repr_html_()
        except ArgumentError:
            return None

    def save(self, path: str | PathLike[str]) -> None:
        """Write the page to a file.

        Raises:
            ArgumentError: the computation has more nodes than a page can show, or the path is not a path.
        """
        name = file_name(path)
        self.page().save(name)


def steps(root: Any) -> Steps:
    """Show the computation of `root` and its backward pass, one node at a time.

    The steps go forward through every operation in the order of computation, and then back in the order of
    `backward()`, with the same bits. It need not have been called, and no `grad` is read or written. The root may be an
    object of another engine's class, such as your own: then the steps are those of its own closures.

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
