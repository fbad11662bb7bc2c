"""A Program as one function of JAX, which XLA compiles: for its processors, graphics processors and TPUs alike.

What runs is the text that `source("jax")` shows, and the program's own reverse sweep in the same words: at kinks and in
padding its derivatives are those of the engine, which JAX's are not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from itertools import islice
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np

from wengert.compiler.backends.base import Buffers, Kernel, cut
from wengert.compiler.backends.export import function_of
from wengert.compiler.backends.spellings import LIBRARIES, by_element, by_series
from wengert.compiler.ir import Array, Program
from wengert.ops import BY_NAME

__all__ = ["XLAKernel", "precision", "traced"]

LIBRARY = replace(
    LIBRARIES["jax"],
    forms={"stop_gradient": "jax.lax.stop_gradient(x)", "erf": "jax.scipy.special.erf(x)"},
    by_element=True,
    turned="laid_out(x)",
    guarded="jnp.where(x, y, z)",
    usage="",
)
SIZES = 4  # batches of so many sizes are compiled as they are; those of other sizes run in pieces of powers of two

# With compensated sums: else XLA leaves out what cancels with a number, and the rounding of a product that is added.
AS_WRITTEN: dict[str, Any] = {"xla_disable_hlo_passes": "algsimp", "xla_backend_optimization_level": 0}


def precision(single: bool) -> AbstractContextManager[Any]:
    """A block in which JAX's numbers are of double precision, or of single, whatever it is set to."""
    return _singly() if single else jax.enable_x64(True)


@contextmanager
def _singly() -> Iterator[None]:
    with jax.enable_x64(False), jax.default_matmul_precision("highest"):  # else some devices take half of the digits
        yield


def traced(
    program: Program,
    back: Program | None = None,
    wanted: Sequence[Array] = (),
    pieces: Sequence[Sequence[Array]] | None = None,
) -> Callable[..., Any]:
    """A program as a function of JAX: of the parameters' numbers, the seed and the inputs; it gives the outputs by
    name, the derivatives with respect to the parameters, and to `wanted`.

    Args:
        program: what is run.
        back: its reverse, if there are to be derivatives.
        wanted: the inputs by which there are to be some, too.
        pieces: which of the parameters' arrays stand in each of several flat arrays, end to end; by default all in one.
    """
    space = {"jax": jax, "jnp": jnp, "by_element": _by_element, "laid_out": _laid_out}
    function, constants = function_of(program, back, wanted, LIBRARY, space)
    pieces, names = [program.of_role("param")] if pieces is None else pieces, list(program.outputs)

    def run(numbers: Sequence[Any], seed: Any, inputs: Sequence[Any]) -> tuple[dict[str, Any], list[Any], list[Any]]:
        params = [array for flat, piece in zip(numbers, pieces, strict=True) for array in cut(flat, piece)]
        made = iter(function(seed, *inputs, *params, *map(jnp.asarray, constants)))
        outputs = dict(zip(names, made, strict=False))
        slopes = [_joined([*map(jnp.asarray, islice(made, len(piece)))]) for piece in pieces] if back else []
        return outputs, slopes, [*made]

    return run


def _joined(arrays: Sequence[Any]) -> Any:
    """Arrays end to end."""
    if len(arrays) == 1:
        return arrays[0].reshape(-1)
    concatenated, at = jnp.zeros(sum(array.size for array in arrays)), 0
    for array in arrays:  # which takes less time than to concatenate them
        concatenated = jax.lax.dynamic_update_slice(concatenated, array.reshape(-1), (at,))
        at += array.size
    return concatenated


class XLAKernel(Kernel):
    """A program that runs by XLA, in double precision whatever JAX is set to, on the device that JAX would choose
    (see `jax.default_device`).

    Args:
        program: see `Kernel`.
        back: see there.
        wanted: see there.
        single: whether it computes in single precision.
    """

    name = "xla"
    is_cut = False  # it compiles anew for each size

    def __init__(self, program: Program, back: Program, wanted: Sequence[Array] = (), single: bool = False) -> None:
        super().__init__(program, back, wanted)
        self.single: bool = single
        if single:
            self.agree: float = 1e-4
            self.nudge: float = 1e-6
            self.floor: float = 1e-6  # as the logarithm of 1 + 1e-9 is 0
        self._compiled: dict[bool, Callable[..., Any]] = {}  # by whether there are derivatives
        self._sizes: set[int] = set()
        self._batched: list[int] = [n for n, array in enumerate(self.inputs) if array.batched]

    def forward(self, arrays: Sequence[Any], buffers: Buffers) -> dict[str, Any]:
        """The outputs by name."""
        return self._run(False, arrays, 1.0, buffers)[0]

    def forward_backward(self, arrays: Sequence[Any], seed: Any, buffers: Buffers) -> tuple[dict[str, Any], list[Any]]:
        """The outputs by name, and the derivatives with respect to the wanted inputs."""
        outputs, grads, by_inputs = self._run(True, arrays, seed, buffers)
        buffers.grads[...] = grads[0]
        return outputs, by_inputs

    def _run(
        self, both: bool, arrays: Sequence[Any], seed: Any, buffers: Buffers
    ) -> tuple[dict[str, Any], Any, list[Any]]:
        """The outputs, and the derivatives with respect to the parameters and to the wanted inputs.

        XLA compiles anew for each size of a batch. Where there are many, as of examples that take one of several ways,
        a batch is cut into pieces of a few sizes.
        """
        if both not in self._compiled:
            back, wanted = (self.backward, self.wanted) if both else (None, ())
            options = AS_WRITTEN if self.program.as_written else None
            self._compiled[both] = jax.jit(traced(self.program, back, wanted), compiler_options=options)
        with precision(self.single):
            given = [
                np.asarray(x, np.int64 if a.role == "index" else float)
                for x, a in zip(arrays, self.inputs, strict=True)
            ]
            run = self._compiled[both]
            pieces = [run([buffers.params], np.asarray(seed, float), piece) for piece in self._pieces(given)]
        outputs, slopes, by_inputs = pieces[0] if len(pieces) == 1 else self._concatenated(pieces)
        made = {name: np.array(x, float) for name, x in outputs.items()}
        return made, slopes, [np.asarray(x, float) for x in by_inputs]

    def _pieces(self, given: list[Any]) -> list[list[Any]]:
        """The inputs, those of a batch of an unusual size in pieces."""
        count = len(given[self._batched[0]]) if self._batched else 1
        if len(self._sizes) < SIZES or not self.program.outputs["out"].batched:
            self._sizes.add(count)
        if count in self._sizes:
            return [given]
        cuts, start = [], 0
        while start < count:
            end = start + (1 << (count - start).bit_length() - 1)
            cuts.append([x[start:end] if a.batched else x for x, a in zip(given, self.inputs, strict=True)])
            start = end
        return cuts

    def _concatenated(self, pieces: list[Any]) -> tuple[dict[str, Any], Any, list[Any]]:
        """What pieces of a batch came to, as one: the examples one behind the other, and derivatives added."""
        outputs, slopes, by_inputs = zip(*pieces, strict=True)
        made = {
            name: np.concatenate([part[name] for part in outputs]) if array.batched else outputs[0][name]
            for name, array in self.program.outputs.items()
        }
        wanted = [
            np.concatenate(parts) if array.batched else sum(map(np.asarray, parts))
            for array, parts in zip(self.wanted, zip(*by_inputs, strict=True), strict=True)
        ]
        return made, [sum(map(np.asarray, some)) for some in zip(*slopes, strict=True)], wanted


def _laid_out(x: Any) -> Any:
    """A transposed matrix, as it is; on processors it is copied, for there XLA takes up to twice the time for a product
    with one whose rows lie across the memory, such as the derivative with respect to a layer's weights.
    """
    return cast(Any, jax.lax).platform_dependent(x, cpu=jax.lax.optimization_barrier, default=lambda x: x)


def _by_element(name: str, operand: int | None = None) -> Callable[..., Any]:
    """A row by its series, or one that computes single floats (or a partial derivative of it), by a call of Python."""
    function, shaped = by_element(name, operand), cast(Any, jax.ShapeDtypeStruct)

    def called(*xs: Any) -> Any:
        shape = shaped(jnp.broadcast_shapes(*map(jnp.shape, xs)), jnp.result_type(float))

        def call(*numbers: Any) -> Any:
            return np.asarray(function(*map(np.asarray, numbers)), shape.dtype)

        return jax.pure_callback(call, shape, *xs)

    return called if BY_NAME[name].series is None or operand is not None else by_series(name, jnp, _chosen, called)


def _chosen(condition: Any, x: Callable[[], Any], y: Callable[[], Any]) -> Any:
    return jnp.where(condition, x(), y())
