"""Derivatives of functions, in JAX's calling convention, to any order."""

from wengert.derivatives.derivation import (
    PRODUCTS,
    CaughtError,
    Derivation,
    OnValues,
    Run,
    assembled,
    called,
    codes_of,
    derivations_of,
    directions_of,
    floats_only,
    note_floats_only,
    places_of,
    result_of,
    signature_of,
    takes_floats,
)
from wengert.derivatives.linearize import LinearMap, largest_term
from wengert.derivatives.programs import programs_of
from wengert.derivatives.pytree import (
    Constant,
    KeyPath,
    Numbers,
    PyTree,
    argument_names,
    array_of,
    items_of,
    keys_of,
    tree_flatten,
    tree_leaves,
    tree_map,
    tree_unflatten,
)
from wengert.derivatives.roots import AGAIN
from wengert.errors import Submodules, submodules

__all__ = [
    "AGAIN",
    "PRODUCTS",
    "CaughtError",
    "Constant",
    "Derivation",
    "KeyPath",
    "LinearMap",
    "Numbers",
    "OnValues",
    "PyTree",
    "Run",
    "argument_names",
    "array_of",
]
__all__ += [
    "assembled",
    "called",
    "codes_of",
    "derivations_of",
    "directions_of",
    "floats_only",
    "items_of",
    "keys_of",
    "largest_term",
    "note_floats_only",
    "takes_floats",
]
__all__ += [
    "places_of",
    "programs_of",
    "result_of",
    "signature_of",
    "tree_flatten",
    "tree_leaves",
    "tree_map",
    "tree_unflatten",
]

__getattr__: Submodules = submodules(__name__)
