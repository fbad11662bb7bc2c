"""Nodes for compiled functions: one node for many operands, and the nodes of several results.

A call with several results is one node, `CallNode`, which has the operands; each result refers to it by `_b`, and its
`_da` is the number of the result. In a backward pass a result leaves its cotangent with the `SavedCall`. The call comes
after all its results, and pulls their cotangents back in one sweep. A Graph skips the call: there a result is an
operation on the operands, with a row of the Jacobian as its partials.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wengert.compiler.call import memory
from wengert.engine import Many, Value, _many
from wengert.errors import LengthError
from wengert.handmade import lock_passes
from wengert.node import CODE, WALK, is_many
from wengert.ops import BY_NAME, ieee
from wengert.ops.ieee import Array, Int, cython

if False:  # Cython compiles with its own module
    import cython  # type: ignore[no-redef]

__all__ = ["SavedCall", "are_near", "fused", "gather", "partials_of", "results_of", "scatter"]

COMPILED, HAND = BY_NAME["compiled"].code, BY_NAME["by hand"].code


def gather(values: tuple[Any, ...], numbers: Array) -> None:
    """Write the data of each Value into an array of as many floats."""
    if len(numbers) != len(values):
        raise LengthError(f"{len(values)} Values and an array of {len(numbers)} numbers")
    for i in range(len(values)):
        value = ieee.at(values, i, Value)
        if ieee.held(value):
            numbers[i] = value._data


def scatter(values: tuple[Any, ...], numbers: Array, gradients: Array) -> None:
    """Give each Value its data and its gradient from arrays of as many floats."""
    if len(numbers) != len(values) or len(gradients) != len(values):
        raise LengthError(f"{len(values)} Values and arrays of {len(numbers)} numbers and {len(gradients)} gradients")
    for i in range(len(values)):
        value = ieee.at(values, i, Value)
        if ieee.held(value):
            value._data = float(numbers[i])
            value._grad = float(gradients[i])


def fused(data: float, operands: Sequence[Any], partials: Array, leaves: bool = False) -> Any:
    """Make a node with this value, these operands and these partial derivatives; `leaves`: all operands are leaves."""
    if len(partials) != len(operands):
        raise LengthError(f"{len(operands)} operands and {len(partials)} partials")
    node: Many = _many(COMPILED, operands, None, leaves)
    node._data = data
    for i in range(len(node._all)):
        node._partials[i] = float(partials[i])
    return node


def partials_of(node: Value) -> list[float]:
    """Return the partial derivatives of a node of many operands with respect to all of them, constants among them."""
    if not is_many(node):
        return []
    if node._b is not None:
        return node._b._find_partials_of(node)  # type: ignore[no-any-return]
    if node._made & CODE == HAND:
        return node._find_partials()  # type: ignore[attr-defined, no-any-return]
    many: Many = cython.cast(Many, node)
    return [many._partials[i] for i in range(len(many._all))]


def are_near(got: list[Any], want: Array, places: tuple[Any, ...], agree: float, sizes: Any, nudge: float) -> bool:
    """Compare derivatives with the numbers at some places: each may differ by `agree` times the number or, if there are
    the sums of absolute values that were added up to the numbers, by `nudge` times that.
    """
    scales: Array = want if sizes is None else sizes
    for i in range(len(places)):
        x, place = got[i], places[i]
        y = want[place]
        away = ieee.fabs(x - y)
        if not (x == y or away <= agree * ieee.fabs(y) or (sizes is not None and away <= nudge * scales[place])):
            return False
    return len(got) == len(places)


# -- several results --------------------------------------------------------------------------------------------------


@cython.cclass
class SavedCall:
    """The arguments and parameters of a call with several results, and the cotangents of a backward pass.

    Args:
        spec: the specialization, which pulls cotangents back.
        inputs: the arguments, which nobody else changes.
        numbers: the parameters' numbers.
        count: the number of results.

    Attributes:
        cotangents: the cotangent of each result, None if there is none; empty before the first pass.
        walks: the number of the pass in which each cotangent came.
        last: the last pass in which the call was visited.
    """

    def __init__(self, spec: Any, inputs: list[Any], numbers: Any, count: int) -> None:
        self.spec: Any = spec
        self.inputs: list[Any] = inputs
        self.numbers: Any = numbers
        self.count: Any = count
        self.cotangents: list[Any] = []
        self.walks: list[int] = []
        self.last: Any = 0

    def pull_back(self, cotangents: Any) -> Any:
        """Return the derivatives of the results, weighted by cotangents, with respect to each operand; the cotangent of
        a result that no gradient reaches is None: 0 times infinity would be nan.
        """
        return self.spec.pull_back(self.inputs, self.numbers, cotangents)

    def receive(self, result: Value, operands: tuple[Any, ...]) -> None:
        """Store a result's cotangent during a pass; pull it back at once if the call is not part of the pass."""
        walk: Int = result._mark & WALK
        place: Int = int(result._da)
        if walk != self.last and result._b is not None and result._b._mark & WALK == walk:
            if not self.walks:
                self.cotangents, self.walks = [None] * self.count, [0] * self.count
            self.cotangents[place], self.walks[place] = result._grad, walk
        else:
            alone: list[Any] = [None] * self.count
            alone[place] = result._grad
            self.pass_on(operands, self.pull_back(alone))

    def pull(self, call: Many) -> None:
        """Pull the cotangents back once all results have stored theirs."""
        walk: Int = call._mark & WALK
        for place in range(len(self.walks)):
            if self.walks[place] != walk:  # no gradient reached this result
                self.cotangents[place] = None
        self.last = walk
        self.pass_on(call._all, self.pull_back(self.cotangents))

    def pass_on(self, operands: tuple[Any, ...], gradients: Array) -> None:
        for i in range(len(gradients)):
            operand = ieee.at(operands, i, Value)
            if ieee.held(operand):
                operand._grad += float(gradients[i])


@cython.no_gc
@cython.cclass
class CallNode(Many):
    """The node of a call with several results: its last operand is the `SavedCall`."""

    __slots__ = ()

    def _saved(self) -> SavedCall:
        saved: SavedCall = self._all[len(self._all) - 1]
        return saved

    def _push(self) -> None:
        self._saved().pull(self)

    def _receive(self, result: Value) -> None:
        """Store the gradient of a result of this call, or pass it on."""
        self._saved().receive(result, self._all)

    def _find_partials_of(self, result: Value) -> list[float]:
        """Return the partial derivative of a result of this call with respect to each operand."""
        return self._pull_back([(result, 1.0)]).tolist()  # type: ignore[no-any-return]

    def _pull_back(self, cotangents: Any) -> Any:
        """Return the derivatives of results of this call, weighted by cotangents, with respect to each operand."""
        saved = self._saved()
        weights: list[Any] = [None] * saved.count
        for result, cotangent in cotangents:
            weights[int(result._da)] = cotangent
        return saved.pull_back(weights)


ieee.end_alike(CallNode)


def results_of(saved: SavedCall, numbers: Int, are_values: Array, operands: tuple[Any, ...], leaves: bool) -> Any:
    """Make the results of a call: Values that depend on the operands, and floats.

    Args:
        saved: the call.
        numbers: the address of the results.
        are_values: for each result 1 if it is a Value.
        operands: the operands of these Values.
        leaves: True if all operands are leaves.
    """
    lock_passes()
    call: Many = CallNode.__new__(CallNode)
    call._made |= HAND  # keeps the tick, which the engine has set
    call._all = (*operands, saved)
    call._db = float(leaves)
    ieee.untrack(call._all)
    results: list[Any] = []
    for place in range(len(are_values)):
        number: float = memory.get(numbers + 8 * place)
        if not are_values[place]:
            results.append(number)
            continue
        node: Many = _many(COMPILED, ())
        node._data = number
        node._all = operands
        node._b = call
        node._da = place
        results.append(node)
    return results
