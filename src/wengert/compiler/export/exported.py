"""Exports a recording as a function of another library's arrays, for `to_jax` and `to_torch`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import nan
from typing import Any

import numpy as np

from wengert.compiler.arguments import StaticSpec
from wengert.compiler.backends import LIBRARIES, cut, function_of
from wengert.compiler.record import Specialization, lines_apart
from wengert.compiler.serve import Server
from wengert.derivatives import tree_unflatten
from wengert.errors import ArgumentError

__all__ = ["Exported"]


class Exported:
    """The recording of a compiled function's last call, as code of an array library.

    Where the recording is invalid (another branch, an index out of range) the result is nan, as there is no engine to
    fall back to.

    Args:
        server: the server of the compiled function.
        language: the library, by its name in `source`.
        space: the globals of the code.

    Attributes:
        parameters: the current values of the parameters, by name.
        own: for each parameter a mask of the elements that are Values; the others are floats that the function reads.
        constants: the arrays of numbers, indices and masks that `run` takes.

    Raises:
        ArgumentError: nothing has been compiled yet, or calls like the last one have several specializations.
    """

    def __init__(self, server: Server, language: str, space: dict[str, Any]) -> None:
        recording = server.latest()
        self.recording: Specialization = recording
        entry = server.last
        assert entry is not None  # else `latest` raises
        several = [*entry.specializations, *([entry.candidate] if entry.candidate is not None else [])]
        if len(several) > 1:
            raise ArgumentError(
                f"{server.name} has {len(several)} specializations (branches at "
                f"{lines_apart([each.guards for each in several])}), and only one can be exported: write "
                "wengert.where, wengert.maximum or wengert.softmax there"
            )
        self.name: str = server.name
        self.signature: Any = entry.signature
        self.xp: Any = space[LIBRARIES[language].name]
        kernel = recording.kernel
        self.inputs: Any = kernel.inputs
        self.run: Callable[..., Any]
        self.constants: list[Any]
        self.run, self.constants = function_of(recording.lifted.program, None, (), LIBRARIES[language], space)
        numbers = recording.buffers().params
        own = np.ones(len(numbers), bool) if recording.own is None else np.isin(np.arange(len(numbers)), recording.own)
        names = [array.name for array in kernel.params]
        self.parameters: dict[str, Any] = dict(zip(names, cut(numbers, kernel.params), strict=True))
        self.own: dict[str, Any] = dict(zip(names, cut(own, kernel.params), strict=True))

    def arrays(self, args: Sequence[Any], named: dict[str, Any]) -> list[Any]:
        """Return the arguments of a call, without static ones, in the order of the inputs."""
        shapes = {name: shape for name, shape in self.signature.shapes.items() if not isinstance(shape, StaticSpec)}
        given = {**dict(zip(shapes, args, strict=False)), **named}
        if len(args) > len(shapes) or set(given) != set(shapes):
            raise ArgumentError(f"{self.name} was recorded with the arguments {', '.join(shapes)}: pass exactly these")
        arrays: list[Any] = []
        for name, shape in shapes.items():
            tree_unflatten(
                shape, lambda leaf, x: None if isinstance(leaf, StaticSpec) else arrays.append(x), given[name]
            )
        return arrays

    def outcome(self, arrays: Sequence[Any], parameters: Sequence[Any], constants: Sequence[Any]) -> Any:
        """Compute the result for arrays of the library; indices are integers."""
        recording, xp = self.recording, self.xp
        counted, is_valid = recording.counted(arrays, xp)
        results = self.run(None, *counted, *parameters, *constants)
        outputs = dict(zip(recording.lifted.program.outputs, results, strict=True))
        if recording.guards:
            guarded = recording.guards.guards_pass(outputs, xp)
            is_valid = guarded if is_valid is None else is_valid & guarded
        out = outputs["out"]
        if self.signature.batched and not recording.lifted.program.outputs["out"].batched:
            out = xp.broadcast_to(out, (len(arrays[0]), *out.shape))
        if is_valid is None:
            return out
        return xp.where(is_valid.reshape(is_valid.shape + (1,) * (out.ndim - is_valid.ndim)), out, nan)
