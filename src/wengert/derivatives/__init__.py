"""Derivatives of functions, in JAX's calling convention, to any order."""

from importlib import import_module
from types import ModuleType

from wengert.derivatives.derivation import (
    Derivation,
    assembled,
    derivations_of,
    directions_of,
    last_begun,
    last_run,
    on_values,
    signature_of,
)
from wengert.derivatives.linearize import LinearMap
from wengert.derivatives.pytree import (
    KeyPath,
    Numbers,
    PyTree,
    argument_names,
    keys_of,
    tree_flatten,
    tree_leaves,
    tree_map,
    tree_unflatten,
)
from wengert.derivatives.roots import AGAIN

__all__ = ["AGAIN", "Derivation", "KeyPath", "LinearMap", "Numbers", "PyTree", "argument_names", "assembled"]
__all__ += ["derivations_of", "directions_of", "keys_of", "last_begun", "last_run", "on_values", "signature_of"]
__all__ += ["tree_flatten", "tree_leaves", "tree_map", "tree_unflatten"]


def __getattr__(name: str) -> ModuleType:
    """Import a module of this package at its first use, as in ``wengert.derivatives.NAME``."""
    try:
        return import_module(f"{__name__}.{name}")
    except ModuleNotFoundError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
