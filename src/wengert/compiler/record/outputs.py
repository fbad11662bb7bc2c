"""The result of a recorded run, flattened to numbers, which are the outputs of its array program."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from wengert.compiler.code import BY_TYPE
from wengert.compiler.record.inputs import Inputs
from wengert.compiler.record.layout import ResultLayout, flat_result
from wengert.compiler.record.nested import Nested
from wengert.compiler.record.structure import GIVEN, Aux, Parts, take_apart
from wengert.compiler.traced import EXACT, Pending, Recorder, Unrecordable, as_operand, is_traced, number_of
from wengert.engine import Value

__all__ = ["Outputs"]

AXES = 8  # a result with more axes is flattened


class Outputs:
    """The outputs of one recorded run.

    Args:
        result: what the function returned.
        inputs: the run's inputs.
        recorder: the run's recorder, which makes operands of the results and takes guards of their types.
        layout: what `map` makes of the result; None for an array, and for one example.
        batched: True for an example of a batch.
        chosen: the identities of items that integers choose, which become operands.

    Attributes:
        values: a Value for each number of the result.
        layout: what `map` makes of them.
        shape: the shape of the output; () for one number; None for an irregular result.
        parts: the flattened result; None for one number, and for a batch.
        passed: the Values among the arguments: their numbers, by identity.
        kinds: the dtype kind of each number.
        is_doubtful: True if the type of some number may vary.
        auxiliary: a Value for each auxiliary number,
        auxiliary_shape: and their shape; None if there are none.
        nested: the derivatives that became programs of their own.
        at: for each number, the nested derivative that it comes from and its place there, or None and its place among
            the others.

    Raises:
        Unrecordable: it holds something that is no number that a float can represent.
    """

    def __init__(
        self,
        result: Any,
        inputs: Inputs,
        recorder: Recorder,
        layout: ResultLayout | None,
        batched: bool,
        chosen: set[int],
    ) -> None:
        self.layout: ResultLayout | None = layout
        passed = [x for name in inputs.of_values for x in inputs.nodes[name].reshape(-1)]
        self.passed: dict[int, int] = {id(x): number for number, x in enumerate(passed) if id(x) not in chosen}
        self.parts: Parts | None = None if batched else take_apart(result)
        if not batched and isinstance(result, Value):
            is_given = id(result) in self.passed or result._made < recorder.began
            self.parts = Parts(result) if is_given and id(result) not in chosen else None  # returned as it is
        self.shape: tuple[int, ...] | None
        self.shape, numbers = flat_result(result)
        if layout is not None:
            if layout.leaves(result) is None:
                raise Unrecordable(f"its result has another structure while it is recorded: {BY_TYPE}")
            self.shape = (len(numbers),)
        if self.parts is not None:  # a regular array, or end to end
            is_regular = self.shape is not None and len(numbers) == len(self.parts.leaves)
            numbers = self.parts.leaves
            if not self.shape or not is_regular or len(self.shape) > AXES:
                self.shape = (len(numbers),)
        asks = not recorder.for_values and (self.shape == () or self.parts is not None or bool(inputs.mixed))
        self.kinds: list[str] = [_kind(x, recorder, asks) for x in numbers]
        self.is_doubtful: bool = self.shape != () and any(is_traced(x) and x.doubt for x in numbers)
        auxiliary = result.auxiliary if isinstance(result, Aux) else None
        self.auxiliary_shape: tuple[int, ...] | None
        self.auxiliary_shape, of_auxiliary = (None, []) if auxiliary is None else flat_result(auxiliary)
        self.auxiliary: list[Value] = [_as_value(x) for x in of_auxiliary]
        sources = {id(x.source): x.source for x in numbers if type(x) is Pending}
        self.nested: list[Nested] = list(sources.values())
        number = {each: n for n, each in enumerate(sources)}
        places = itertools.count()
        self.at: list[Any] = [
            (number[id(x.source)], x.place) if type(x) is Pending else (None, next(places)) for x in numbers
        ]
        self.values: list[Value] = [Value(0.0) if type(x) is Pending else _as_value(x) for x in numbers]

    @property
    def own(self) -> list[Value]:
        """The values that no nested derivative gives; the first one if there is none."""
        return [x for x, (which, _) in zip(self.values, self.at, strict=True) if which is None] or self.values[:1]


def _kind(x: Any, recorder: Recorder, asks: bool) -> str:
    """Return the dtype kind of a number of the result, and guard it; its type too if that may vary and is asked for.

    Raises:
        Unrecordable: it is not a number that a float can represent.
    """
    if type(x) is Pending:
        return "f"
    number = number_of(x)
    if type(number) not in GIVEN:
        raise Unrecordable(f"its result is a {type(x).__name__}: return a Value, float, int or bool, or lists of these")
    if is_traced(x) and x.doubt and asks:
        x.doubt()
    kind = str(np.asarray(number).dtype.kind)
    inside = kind in "fb" or abs(number) <= EXACT
    if kind == "i" and is_traced(x) and not x.most <= EXACT:
        inside = recorder.guard("within", x, EXACT)
    if not inside:
        raise Unrecordable("its result is an integer beyond 2**53, which no float is exactly: return float(n)")
    return kind


def _as_value(x: Any) -> Any:
    x = as_operand(x)
    return x if isinstance(x, Value) else Value(float(x))
