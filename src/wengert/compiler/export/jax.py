"""Exports a compiled function as a pure JAX function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from wengert.compiler.export.exported import Exported
from wengert.compiler.serve import Server

__all__ = ["to_jax"]


def to_jax(server: Server) -> tuple[Callable[..., Any], dict[str, Any]]:
    """Return the function of parameters and arguments, and the parameters: see `Compiled.to_jax`.

    It computes in JAX's precision; `jax.enable_x64(True)` sets it to the engine's.
    """
    exported = Exported(server, "jax", {"jax": jax, "jnp": jnp})

    def function(parameters: dict[str, Any], *args: Any, **named: Any) -> Any:
        numbers = [_of_own(jnp.asarray(parameters[name]), own) for name, own in exported.own.items()]
        given = zip(exported.inputs, exported.arrays(args, named), strict=True)
        arrays = [jnp.asarray(x, int if n in exported.recording.extents else None) for n, (_, x) in enumerate(given)]
        floats = [x if n in exported.recording.extents else x * 1.0 for n, x in enumerate(arrays)]
        return exported.outcome(floats, numbers, list(map(jnp.asarray, exported.constants)))

    function.__name__ = exported.name.strip("<>")
    return function, {name: jnp.asarray(numbers) for name, numbers in exported.parameters.items()}


def _of_own(numbers: Any, own: Any) -> Any:
    """Stop the gradients of floats that the function reads."""
    return numbers if own.all() else jnp.where(own, numbers, jax.lax.stop_gradient(numbers))
