"""Computes the derivatives of a recorded run as the engine does, operation by operation, for other numbers.

A long program with several results runs forward only, and its reverse sweep comes with the gradient. Where that sweep
is not finite the engine's derivatives count. By then the function may read other numbers from outside, so its recorded
operations are kept: they need only the numbers that the call has kept.

This holds for operations in `BOUNDED`: their partial derivatives are numbers that the run computes anyway, or no larger
ones. One that is not finite then shows in every sweep, whatever the cotangents are: 0 times infinity is nan, but for a
side of a choice that is not taken, which is no part of the derivative. Others, such as 1 / x, may overflow in a partial
derivative where a small cotangent, divided by x, does not.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

import numpy as np

from wengert import functions, modes
from wengert.derivatives import LinearMap
from wengert.engine import Value
from wengert.graph import Graph
from wengert.ops import BY_NAME, TABLE, TINY

__all__ = ["Uncompiled"]

BOUNDED = {"add", "sub", "mul", "neg", "abs", "relu", "minimum", "maximum", "where", "clip", "exp", "square", "tanh"}
BOUNDED |= {"sin", "cos", "sinh", "cosh", "atan", "sigmoid", "softplus", "silu", "gelu", "erf", "normal_cdf"}
BOUNDED |= {"normal_pdf", "gaussian", "sum", "mean", "dot"}
BY_CONSTANTS: dict[str, Any] = {"div": lambda y: abs(y) > TINY, "pow": lambda y: y in range(1, 64)}


def _operator(name: str, method: Any, reflected: Any) -> Callable[[Any, Any], Any]:
    """Return an operation by the methods that the engine writes out."""
    row = BY_NAME[name]
    return lambda x, y: method(x, y) if isinstance(x, Value) else reflected(y, x) if isinstance(y, Value) else row(x, y)


# As they are now: a user may replace the methods of Value between a call and its gradient.
APPLY: dict[str, Any] = {name: getattr(functions, name) for name in BOUNDED}
for _name, _method in {"add": "add", "sub": "sub", "mul": "mul", "div": "truediv", "pow": "pow"}.items():
    APPLY[_name] = _operator(_name, getattr(Value, f"__{_method}__"), getattr(Value, f"__r{_method}__"))


class Uncompiled:
    """The operations of a recorded run.

    Args:
        results: the results, of which cotangents come for the Values.
        given: the nodes for which numbers come, in order: parameters, then arguments; each with True if the function
            gets it as a Value.
        captured: the identities of nodes that stand for captured floats.
        began: the tick at which the run began: older nodes are known only if they are given.

    Attributes:
        is_whole: True if each of its operations is bounded, and reads only numbers that are given.
    """

    def __init__(
        self, results: Sequence[Value], given: Sequence[tuple[Value, bool]], captured: set[int], began: int
    ) -> None:
        graph = Graph(*results, *[x for x, _ in given])
        values, outputs = graph.values, graph.outputs
        self._results, self._given = outputs[: len(results)], outputs[len(results) :]
        self._are_values: list[bool] = [is_value for _, is_value in given]
        # Without the Values, which take most of the memory.
        self._codes, self._starts = graph.codes, graph.starts
        self._operands, self._constants = graph.operands, graph.constants
        self._first: int = bisect_left(values, began, key=attrgetter("_made"))
        leaves = (np.flatnonzero(np.asarray(graph.codes)[self._first :] == 0) + self._first).tolist()
        self._numbers: dict[int, float] = {n: values[n]._data for n in {*leaves} - {*self._given}}
        read = np.asarray(graph.operands)[graph.starts[self._first] :]
        older = {*read[(read >= 0) & (read < self._first)].tolist(), *[n for n in self._results if n < self._first]}
        reads_only_given = older <= {*self._given} and captured.isdisjoint([id(values[n]) for n in self._numbers])
        self.is_whole: bool = reads_only_given and self._is_bounded()

    def _is_bounded(self) -> bool:
        codes, starts, operands = np.asarray(self._codes)[self._first :], self._starts, self._operands
        for code in np.unique(codes).tolist():
            name = TABLE[code].name
            if name in BY_CONSTANTS:
                last = [operands[starts[n + 1] - 1] for n in (np.flatnonzero(codes == code) + self._first).tolist()]
                if any(k >= 0 or not BY_CONSTANTS[name](self._constants[-1 - k]) for k in last):
                    return False
            elif code and name not in BOUNDED:
                return False
        return True

    def pull_back(self, arrays: Sequence[Any], params: Any, cotangents: Sequence[float | None]) -> Any:
        """Return the derivatives of the results, weighted by cotangents, with respect to the Values that are given.

        Args:
            arrays: the arguments.
            params: the parameters' numbers.
            cotangents: that of each result; None if no gradient reaches it.
        """
        numbers = np.concatenate([params, *[np.ravel(np.asarray(x, float)) for x in arrays]]).tolist()
        with modes.suspended():
            began = Value(0.0)._made
            given = [Value(x) if is_value else x for x, is_value in zip(numbers, self._are_values, strict=True)]
            values = self._run({**self._numbers, **dict(zip(self._given, given, strict=True))})
            pairs = zip([values[n] for n in self._results], cotangents, strict=True)
            reached = [(x, c) for x, c in pairs if c is not None and isinstance(x, Value)]
            run = LinearMap([x for x in given if isinstance(x, Value)], [x for x, _ in reached], began)
            return np.array(run.vjp(dict(enumerate([c for _, c in reached]))))

    def _run(self, inputs: dict[int, Any]) -> list[Any]:
        """Return each instruction's Value or float, and the constants, so that index -1 - k is that of the k-th one."""
        values: list[Any] = [None] * len(self._codes) + self._constants[::-1].tolist()
        for n, x in inputs.items():
            values[n] = x
        at, apply = values.__getitem__, {code: APPLY[TABLE[code].name] for code in {*self._codes} - {0}}
        codes, starts, operands = (numbers.tolist() for numbers in (self._codes, self._starts, self._operands))
        for n in range(self._first, len(codes)):
            if values[n] is None:
                values[n] = apply[codes[n]](*map(at, operands[starts[n] : starts[n + 1]]))
        return values
