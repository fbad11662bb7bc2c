"""A Program as a function of JAX, which XLA compiles for CPUs, GPUs and TPUs.

It runs the text that `source("jax")` shows, with the program's own reverse sweep: at kinks and in padding its
derivatives are the engine's, unlike JAX's.
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
SIZES = 4  # batches of 4 sizes are compiled whole; those of other sizes run in pieces, of powers of two

# For compensated sums: else XLA cancels terms, and fuses products with additions.
AS_WRITTEN: dict[str, Any] = {"xla_disable_hlo_passes": "algsimp", "xla_backend_optimization_level": 0}


def precision(single: bool) -> AbstractContextManager[Any]:
    """Return a context in which JAX computes in single or double precision, whatever its configuration."""
    return _singly() if single else jax.enable_x64(True)


@contextmanager
def _singly() -> Iterator[None]:
    with jax.enable_x64(False), jax.default_matmul_precision("highest"):  # the default loses digits on some devices
        yield


def traced(
    program: Program,
    back: Program | None = None,
    wanted: Sequence[Array] = (),
    pieces: Sequence[Sequence[Array]] | None = None,
) -> Callable[..., Any]:
    """Return a program as a function of JAX: from parameters, seed and inputs to the outputs by name, the derivatives
    with respect to the parameters, and those with respect to `wanted`.

    Args:
        program: the program.
        back: its reverse sweep, if derivatives are needed.
        wanted: the inputs, besides the parameters, with respect to which to differentiate.
        pieces: the parameters' arrays in each of several flat arrays; by default one array has all.
    """
    space = {"jax": jax, "jnp": jnp, "by_element": _by_element, "laid_out": _laid_out}
    function, constants = function_of(program, back, wanted, LIBRARY, space)
    pieces, names = [program.of_role("param")] if pieces is None else pieces, list(program.outputs)

    def run(numbers: Sequence[Any], seed: Any, inputs: Sequence[Any]) -> tuple[dict[str, Any], list[Any], list[Any]]:
        params = [array for flat, piece in zip(numbers, pieces, strict=True) for array in cut(flat, piece)]
        results = iter(function(seed, *inputs, *params, *map(jnp.asarray, constants)))
        outputs = dict(zip(names, results, strict=False))
        grads = [_joined([*map(jnp.asarray, islice(results, len(piece)))]) for piece in pieces] if back else []
        return outputs, grads, [*results]

    return run


def _joined(arrays: Sequence[Any]) -> Any:
    if len(arrays) == 1:
        return arrays[0].reshape(-1)
    concatenated, at = jnp.zeros(sum(array.size for array in arrays)), 0
    for array in arrays:  # faster than jnp.concatenate
        concatenated = jax.lax.dynamic_update_slice(concatenated, array.reshape(-1), (at,))
        at += array.size
    return concatenated


class XLAKernel(Kernel):
    """Runs a program by XLA on JAX's default device, in a precision of its own, whatever JAX's configuration.

    Args:
        single: whether it computes in single precision.
    """

    name = "xla"
    is_cut = False  # strips of other sizes would be compiled anew

    def __init__(self, program: Program, back: Program, wanted: Sequence[Array] = (), single: bool = False) -> None:
        super().__init__(program, back, wanted)
        self.single: bool = single
        if single:
            self.agree: float = 1e-4
            self.nudge: float = 1e-6
            self.floor: float = 1e-6  # log(1 + 1e-9) is 0
        self._compiled: dict[bool, Callable[..., Any]] = {}  # without and with derivatives
        self._sizes: set[int] = set()
        self._batched: list[int] = [n for n, array in enumerate(self.inputs) if array.batched]

    def forward(self, arrays: Sequence[Any], buffers: Buffers) -> dict[str, Any]:
        return self._run(False, arrays, 1.0, buffers)[0]

    def forward_backward(self, arrays: Sequence[Any], seed: Any, buffers: Buffers) -> tuple[dict[str, Any], list[Any]]:
        outputs, grads, by_inputs = self._run(True, arrays, seed, buffers)
        buffers.grads[...] = grads[0]
        return outputs, by_inputs

    def _run(
        self, both: bool, arrays: Sequence[Any], seed: Any, buffers: Buffers
    ) -> tuple[dict[str, Any], Any, list[Any]]:
        """Return the outputs, and the derivatives with respect to the parameters and to the wanted inputs.

        XLA compiles for each batch size. If there are many sizes, as when examples take different branches, a batch is
        cut into pieces of a few sizes.
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
        outputs, grads, by_inputs = pieces[0] if len(pieces) == 1 else self._concatenated(pieces)
        results = {name: np.array(x, float) for name, x in outputs.items()}
        return results, grads, [np.asarray(x, float) for x in by_inputs]

    def _pieces(self, given: list[Any]) -> list[list[Any]]:
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
        outputs, grads, by_inputs = zip(*pieces, strict=True)
        joined = {
            name: np.concatenate([part[name] for part in outputs]) if array.batched else outputs[0][name]
            for name, array in self.program.outputs.items()
        }
        wanted = [
            np.concatenate(parts) if array.batched else sum(map(np.asarray, parts))
            for array, parts in zip(self.wanted, zip(*by_inputs, strict=True), strict=True)
        ]
        return joined, [sum(map(np.asarray, some)) for some in zip(*grads, strict=True)], wanted


def _laid_out(x: Any) -> Any:
    """Materialize a transposed matrix on CPUs, where XLA takes up to twice the time to multiply by one."""
    return cast(Any, jax.lax).platform_dependent(x, cpu=jax.lax.optimization_barrier, default=lambda x: x)


def _by_element(name: str, operand: int | None = None) -> Callable[..., Any]:
    """Return a row as its series or, for single floats and partial derivatives, as a call of Python."""
    function, shaped = by_element(name, operand), cast(Any, jax.ShapeDtypeStruct)

    def called(*xs: Any) -> Any:
        shape = shaped(jnp.broadcast_shapes(*map(jnp.shape, xs)), jnp.result_type(float))

        def call(*numbers: Any) -> Any:
            return np.asarray(function(*map(np.asarray, numbers)), shape.dtype)

        return jax.pure_callback(call, shape, *xs)

    plain = BY_NAME[name].series is None or operand is not None
    return called if plain else by_series(name, jnp, _chosen, called, {"_repeat": _repeat})


def _repeat(again: Callable[..., Any], state: Sequence[Any], xs: Sequence[Any], most: int) -> Any:
    """Repeat a step of a search while it goes on for any example."""
    shape, kind = jnp.broadcast_shapes(*map(jnp.shape, (*state, *xs))), jnp.result_type(float)
    start = [jnp.broadcast_to(jnp.asarray(x, kind), shape) for x in state]

    def goes_on(carried: Any) -> Any:
        return (carried[0] < most) & jnp.any(carried[1][0] > 0.0)

    def body(carried: Any) -> Any:
        return carried[0] + 1, [jnp.broadcast_to(x, shape).astype(kind) for x in again(carried[1], xs)]

    return jax.lax.while_loop(goes_on, body, (0, start))[1]


def _chosen(condition: Any, x: Callable[[], Any], y: Callable[[], Any]) -> Any:
    return jnp.where(condition, x(), y())
