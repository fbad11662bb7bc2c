"""How the path of a call reads the arguments of a signature: without `arguments.py`, from the second call on."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import numpy as np

from wengert.compiler.call import ArgumentReader, reference_to
from wengert.compiler.trace.arguments import Arguments, ArraySpec, StaticSpec
from wengert.compiler.trace.keys import Itself, key_of
from wengert.engine import Value

__all__ = ["readers_of"]

SCALAR_READERS = {"f": "float", "i": "int", "v": "value"}
HELD: dict[str, Any] = {"list": list, "tuple": tuple}
TUPLES: Any = tuple.__len__, tuple.__getitem__
CONSTANTS = (int, float, bool, str, bytes, complex, type(None))


def readers_of(arguments: Arguments) -> tuple[list[ArgumentReader], list[str], int, int] | None:
    """What the path of a call is told of such arguments: readers, their names, how many come by place alone, and how
    many may come by place. None if they are too involved for it.
    """
    signature = arguments.signature
    names = arguments.names()
    defaults = [x for name, x in arguments.originals.items() if name not in arguments.passed]
    if signature.aliased or not all(map(_is_constant, defaults)):
        return None
    places = iter(range(len(arguments.arrays)))
    readers = [
        _reader(signature.shapes[n], arguments.originals[n], places, signature.batched, True, True) for n in names
    ]
    kinds = [p.kind for name, p in signature.of_function.parameters.items() if name in signature.shapes]
    first = sum([kind is inspect.Parameter.POSITIONAL_ONLY for kind in kinds[: len(names)]])
    last = 0
    while (
        last < len(names)
        and names[last] == [*signature.shapes][last]
        and kinds[last] <= kinds[last].POSITIONAL_OR_KEYWORD
    ):
        last += 1
    known = [reader for reader in readers if reader is not None]
    return (known, names, first, last) if len(known) == len(readers) else None


def _reader(
    shape: Any, x: Any, places: Iterator[int], batched: bool, top: bool, counted: bool
) -> ArgumentReader | None:
    """The reader of an argument, or an item of it; None if it is too involved.

    Args:
        shape: what it is made of.
        x: it.
        places: the numbers of the arrays to come.
        batched: whether it is one of each example.
        top: whether it is an argument.
        counted: whether its being passed twice is part of a signature.
    """
    if isinstance(shape, StaticSpec):
        if not _is_constant(x):
            return None
        return ArgumentReader("fixed", x if type(x) in CONSTANTS else reference_to(x) or x)
    checks_identity = top if isinstance(x, (tuple, dict)) else counted
    if isinstance(shape, ArraySpec):
        place, held = next(places), tuple([HELD.get(kind) for kind in shape.held.split()])
        if shape.is_scalar and not batched and shape.kind in SCALAR_READERS:
            kinds = {"numpy f": np.float64, "numpy i": np.int64, "scalar f": float, "scalar i": int}
            want = kinds.get(f"{shape.held} {shape.kind}")
            return ArgumentReader(SCALAR_READERS[shape.kind], want, place, checks_identity=checks_identity)
        if shape.kind == "v" and type(x) in (list, tuple):
            return ArgumentReader("values", type(x), place, shape.shape, checks_identity=checks_identity)
        if shape.kind not in "fib":
            return None
        takes_arrays = shape.held == "ndarray" or (batched and not shape.shape)
        nested = () if None in held else held
        return ArgumentReader(
            "numbers", None, place, shape.shape, nested, (), (), shape.kind, takes_arrays, checks_identity
        )
    kind, plain = shape.kind, shape.kind in (list, tuple, dict)
    if not plain and not (issubclass(kind, tuple) and (kind.__len__, kind.__getitem__) == TUPLES):
        return None
    items = x.values() if kind is dict else x
    inner = counted and kind is not list
    made = [_reader(s, item, places, batched, False, inner) for s, item in zip(shape.children, items, strict=True)]
    keys = shape.keys if kind is dict else ()
    return (
        None
        if None in made
        else ArgumentReader(
            "keyed" if kind is dict else "items", kind, 0, (), (), made, keys, checks_identity=checks_identity
        )
    )


def _is_constant(x: Any) -> bool:
    """Whether a thing that is part of the program is what it is as long as it is the same."""
    key = key_of(x)
    return type(x) in CONSTANTS or (type(key) is Itself and not isinstance(x, (list, np.ndarray, Value, dict)))
