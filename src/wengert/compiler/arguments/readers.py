"""Builds the readers with which the call path reads arguments from the second call on, instead of `arguments.py`."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import numpy as np

from wengert.compiler.arguments.arguments import Arguments, ArraySpec, StaticSpec
from wengert.compiler.call import ArgumentReader, reference_to
from wengert.compiler.code import Itself, key_of
from wengert.engine import Value

__all__ = ["readers_of"]

SCALAR_READERS = {"f": "float", "i": "int", "v": "value"}
TUPLES: Any = tuple.__len__, tuple.__getitem__
CONSTANTS = (int, float, bool, str, bytes, complex, type(None))


def readers_of(arguments: Arguments) -> tuple[list[ArgumentReader], list[str], int, int, list[str]] | str:
    """Return readers for such arguments, the arguments' names, how many are positional-only, how many may be passed by
    position, and the names that `**named` takes; or why there are none.
    """
    signature = arguments.signature
    names = arguments.names()
    defaults = {name: x for name, x in arguments.originals.items() if name not in arguments.passed}
    if signature.tells_objects and not all(_tells(x, signature.batched) for x in arguments.originals.values()):
        return "the function asks by `is` which objects are the same: write =="
    if signature.reason:
        return signature.reason
    if signature.aliased:
        return "an object is passed twice: pass a copy, or one argument"
    for name, x in defaults.items():
        if not _is_constant(x):
            return f"the default of {name} is a {type(x).__name__}: pass it, or make it a number, a text or None"
    places = iter(range(len(arguments.arrays)))
    kinds = [p.kind for name, p in signature.of_function.parameters.items() if name in signature.shapes]
    shapes, originals, keys = dict(signature.shapes), dict(arguments.originals), []
    if kinds[-1:] == [inspect.Parameter.VAR_KEYWORD]:  # the last argument is a dict of those that are passed
        tree, passed = shapes.pop(names[-1]), originals.pop(names.pop())
        if isinstance(tree, StaticSpec):
            return "arguments by name that the function does not name are static: name them"
        keys = list(passed)
        if not originals.keys().isdisjoint(keys):
            return "an argument by name has the name of one by position: rename it"
        shapes |= dict(zip(keys, tree.children, strict=True))
        originals |= passed
    readers = [
        _reader(shapes[n], originals[n], places, signature.batched, n not in keys, True) for n in (*names, *keys)
    ]
    first = sum([kind is inspect.Parameter.POSITIONAL_ONLY for kind in kinds[: len(names)]])
    in_order, last = [*shapes], 0
    while last < len(names) and names[last] == in_order[last] and kinds[last] <= kinds[last].POSITIONAL_OR_KEYWORD:
        last += 1
    names += keys
    built = [reader for reader in readers if reader is not None]
    if len(built) == len(readers):
        return built, names, first, last, keys
    slow = names[readers.index(None)]
    return (
        f"{slow} is, or has in it, an object that is compared by its parts, or lists of several structures: pass lists "
        "of one length, arrays, named tuples, or the same object each time"
    )


def _tells(x: Any, batched: bool) -> bool:
    """Return True if a reader tells of all objects in an argument whether they are the same as others."""
    if type(x) is np.ndarray:
        return x.dtype.kind == "f" or (x.dtype.kind in "iub" and (not batched or x.ndim > 1))
    if type(x) is tuple:
        return all(type(item) is not tuple and _tells(item, batched) for item in x)
    if x is None or type(x) is bool or isinstance(x, Value):
        return True
    return type(key_of(x)) is Itself and not isinstance(x, (list, dict))


def _reader(
    shape: Any, x: Any, places: Iterator[int], batched: bool, top: bool, counted: bool
) -> ArgumentReader | None:
    """Return the reader of an argument, or of an item of one; None if it is too complex.

    Args:
        shape: its shape.
        x: the argument.
        places: the positions of the arrays to come.
        batched: True if it has a row for each example.
        top: True for an argument, False for an item.
        counted: True if the signature says whether it is passed twice.
    """
    if isinstance(shape, StaticSpec):
        if not _is_constant(x):
            return None
        return ArgumentReader("fixed", x if type(x) in CONSTANTS else reference_to(x) or x)
    checks_identity = top if isinstance(x, (tuple, dict)) else counted
    if isinstance(shape, ArraySpec):
        place = next(places)
        if shape.is_scalar and not batched and shape.kind in SCALAR_READERS:
            return ArgumentReader(SCALAR_READERS[shape.kind], shape.number, place, checks_identity=checks_identity)
        if shape.kind == "v" and type(x) in (list, tuple):
            return ArgumentReader("values", type(x), place, shape.shape, checks_identity=checks_identity)
        if shape.kind not in "fib":
            return None
        of_python, in_lists = shape.number in (float, int, bool), np.ndarray not in shape.held
        lists = shape.held if of_python and in_lists else None
        array = np.dtype(shape.number) if shape.held[:1] == (np.ndarray,) else None
        takes_arrays = array is not None or (batched and of_python and not shape.shape)
        return ArgumentReader(
            "numbers", shape.number, place, shape.shape, lists, (), (), shape.kind, takes_arrays, checks_identity,
            array, shape.is_mixed,
        )  # fmt: skip
    kind, plain = shape.kind, shape.kind in (list, tuple, dict)
    if not plain and not (issubclass(kind, tuple) and (kind.__len__, kind.__getitem__) == TUPLES):
        return None
    items = x.values() if kind is dict else x
    inner = counted and kind is not list
    children = [_reader(s, item, places, batched, False, inner) for s, item in zip(shape.children, items, strict=True)]
    if None in children:
        return None
    if kind is dict:
        return ArgumentReader("keyed", kind, children=children, keys=shape.keys, checks_identity=checks_identity)
    return ArgumentReader("items", kind, children=children, checks_identity=checks_identity)


def _is_constant(x: Any) -> bool:
    """Return True if identity implies an unchanged value."""
    key = key_of(x)
    return type(x) in CONSTANTS or (type(key) is Itself and not isinstance(x, (list, np.ndarray, Value, dict)))
