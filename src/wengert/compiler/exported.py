"""A recording as a function of another library's arrays, which differentiates it by its own rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import nan
from typing import Any

import numpy as np

from wengert.compiler.backends import LIBRARIES, cut, function_of
from wengert.compiler.runtime import Runtime
from wengert.compiler.tracing import Specialization, StaticSpec, lines_apart
from wengert.derivatives import tree_unflatten
from wengert.errors import ArgumentError

__all__ = ["Exported"]


class Exported:
    """The recording of a compiled function's last call, in the words of a library of arrays.

    What a recording does not hold for, such as a number that takes another branch or an index that chooses nothing,
    comes out as nan, for there is no engine to go to.

    Args:
        runtime: of the compiled function.
        language: the library, as `source` calls it.
        space: what its words mean.

    Attributes:
        parameters: their numbers by name, as they are when this is made.
        own: of a parameter's name which of its elements are Values; the others are floats that the function reads.
        constants: arrays of numbers, places and masks that `run` is given.

    Raises:
        ArgumentError: nothing has been compiled yet, or there are several recordings of such calls.
    """

    def __init__(self, runtime: Runtime, language: str, space: dict[str, Any]) -> None:
        made = runtime.latest()
        self.recording: Specialization = made
        entry = runtime.last
        assert entry is not None  # or there is no latest
        several = [*entry.specializations, *([entry.candidate] if entry.candidate is not None else [])]
        if len(several) > 1:
            raise ArgumentError(
                f"{runtime.name} takes {len(several)} ways, by {lines_apart([each.guards for each in several])}: one "
                "function of arrays follows one of them. Write wengert.where, wengert.maximum or wengert.softmax there"
            )
        self.name: str = runtime.name
        self.signature: Any = entry.signature
        self.xp: Any = space[LIBRARIES[language].name]
        kernel = made.kernel
        self.inputs: Any = kernel.inputs
        self.run: Callable[..., Any]
        self.constants: list[Any]
        self.run, self.constants = function_of(made.lifted.program, None, (), LIBRARIES[language], space)
        numbers = made.buffers().params
        own = np.ones(len(numbers), bool) if made.own is None else np.isin(np.arange(len(numbers)), made.own)
        names = [array.name for array in kernel.params]
        self.parameters: dict[str, Any] = dict(zip(names, cut(numbers, kernel.params), strict=True))
        self.own: dict[str, Any] = dict(zip(names, cut(own, kernel.params), strict=True))

    def arrays(self, args: Sequence[Any], named: dict[str, Any]) -> list[Any]:
        """The arguments of a call, in the order of the inputs; those that are part of the program are left out."""
        shapes = {name: shape for name, shape in self.signature.shapes.items() if not isinstance(shape, StaticSpec)}
        given = {**dict(zip(shapes, args, strict=False)), **named}
        if len(args) > len(shapes) or set(given) != set(shapes):
            raise ArgumentError(f"{self.name} was recorded with the arguments {', '.join(shapes)}: pass these")
        found: list[Any] = []
        for name, shape in shapes.items():
            tree_unflatten(
                shape, lambda leaf, x: None if isinstance(leaf, StaticSpec) else found.append(x), given[name]
            )
        return found

    def outcome(self, arrays: Sequence[Any], parameters: Sequence[Any], constants: Sequence[Any]) -> Any:
        """The result for some inputs: arrays of the library, integers where they choose items."""
        made, xp = self.recording, self.xp
        counted, holds = made.counted(arrays, xp)
        results = self.run(None, *counted, *parameters, *constants)
        outputs = dict(zip(made.lifted.program.outputs, results, strict=True))
        if made.guards:
            alike = made.guards.hold(outputs, xp)
            holds = alike if holds is None else holds & alike
        out = outputs["out"]
        if self.signature.batched and not made.lifted.program.outputs["out"].batched:
            out = xp.broadcast_to(out, (len(arrays[0]), *out.shape))
        if holds is None:
            return out
        return xp.where(holds.reshape(holds.shape + (1,) * (out.ndim - holds.ndim)), out, nan)
