"""Exports recorded functions to JAX and PyTorch, which are imported on first use."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from wengert._forks import no_fork

if TYPE_CHECKING:
    from wengert.compiler.export.jax import to_jax as to_jax
    from wengert.compiler.export.torch import RecordedModule as RecordedModule


_LATER = {"RecordedModule": "torch", "to_jax": "jax"}


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    with no_fork:
        return getattr(import_module(f"{__name__}.{_LATER[name]}"), name)
