"""Exports recorded functions to JAX and PyTorch, which are imported on first use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wengert._forks import no_fork

if TYPE_CHECKING:
    from wengert.compiler.export.jax import to_jax as to_jax
    from wengert.compiler.export.torch import RecordedModule as RecordedModule


def __getattr__(name: str) -> Any:
    with no_fork:
        if name == "to_jax":
            from wengert.compiler.export.jax import to_jax

            return to_jax
        if name == "RecordedModule":
            from wengert.compiler.export.torch import RecordedModule

            return RecordedModule
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
