"""What a compiled function is called with: its arguments by name, their form, and their arrays."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wengert.compiler.tracing.trees import (
    Fixed,
    Leaf,
    Shape,
    build,
    flatten_argument,
    identifiers,
    key_of,
    leaves,
    ordinary,
)
from wengert.errors import ArgumentError, DataError

__all__ = ["Arguments", "Form", "Reader", "called", "examples"]


class Form:
    """What the arguments of a function are made of, by name. A recording holds for one form."""

    def __init__(self, signature: inspect.Signature, shapes: dict[str, Shape], batched: bool) -> None:
        self.signature: inspect.Signature = signature
        self.shapes: dict[str, Shape] = shapes
        self.leaves: list[Leaf] = [leaf for shape in shapes.values() for leaf in leaves(shape)]
        self.names: list[str] = identifiers(self.leaves)  # in the text of a program
        self.batched: bool = batched


@dataclass
class Arguments:
    """What a function is called with: the arguments, their shapes, and their arrays."""

    originals: dict[str, Any]
    form: Form
    arrays: list[Any]

    @property
    def batched(self) -> bool:
        """Whether they are of many examples."""
        return self.form.batched

    @property
    def leaves(self) -> list[Leaf]:
        """The arrays' names and shapes."""
        return self.form.leaves

    def values(self) -> tuple[Any, ...]:
        """The Values among the arguments."""
        found = [(leaf, array) for leaf, array in zip(self.leaves, self.arrays, strict=True) if leaf.kind == "v"]
        return tuple([x for leaf, array in found for x in (array if leaf.shape else [array])])

    def count(self) -> int:
        """How many examples a batch has.

        Raises:
            DataError: the arguments differ in it, or there is none.
        """
        lengths = list(map(len, self.arrays))
        if not lengths or not lengths[0] or lengths.count(lengths[0]) != len(lengths):
            _same([(leaf.name, length) for leaf, length in zip(self.leaves, lengths, strict=True)])
        return lengths[0]

    def example(self, number: int) -> list[Any]:
        """The arrays of one example of a batch."""
        return [array[number] for array in self.arrays] if self.batched else self.arrays

    def numbers(self, example: Sequence[Any]) -> list[Any]:
        """The arrays of an example, with the numbers of its Values."""
        return [_numbers_of(leaf, array) for leaf, array in zip(self.leaves, example, strict=True)]

    def call(self, function: Callable[..., Any], example: Sequence[Any], make: Callable[[Leaf, Any], Any]) -> Any:
        """Call a function on one example, each of its arrays as `make` presents it."""
        arrays = iter(example)
        given = {}
        for name, shape in self.form.shapes.items():
            given[name] = build(shape, self.originals[name], lambda leaf: make(leaf, next(arrays)))
        return called(function, self.form.signature, given)

    def plainly(self, function: Callable[..., Any], example: Sequence[Any]) -> Any:
        """Call a function on one example as if it were not compiled, but for the width of NumPy's numbers."""
        if self.batched:
            return self.call(function, example, _plain)
        shapes = self.form.shapes
        given = {name: x if isinstance(shapes[name], Fixed) else ordinary(x) for name, x in self.originals.items()}
        return called(function, self.form.signature, given)


class Reader:
    """Reads the arguments of one function's calls."""

    def __init__(self, signature: inspect.Signature, static: Sequence[str]) -> None:
        self.signature: inspect.Signature = signature
        self.static: frozenset[str] = frozenset(static)
        self.forms: dict[Any, Form] = {}
        self.seen: dict[Any, Form] = {}  # by what arrays look like, where that says it all
        kinds = [(p.name, p.kind) for p in signature.parameters.values()]
        gathering = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
        self.gathering: list[str] = [name for name, kind in kinds if kind in gathering]
        self.names: list[str] = [name for name, kind in kinds if kind not in gathering]
        by_name = any(kind is inspect.Parameter.KEYWORD_ONLY for _, kind in kinds)
        self.places: int = -1 if by_name else len(self.names)  # how many arguments by place are all that there are

    def read(self, args: Sequence[Any], named: dict[str, Any], batched: bool) -> Arguments:
        """The arguments by name, with their form and arrays.

        Raises:
            TypeError: they are not those of the function.
            ArgumentError: a static one is not hashable, or there are any number of some.
            DataError: they are no batch.
        """
        seen = None
        by_place = len(args) == self.places and not named
        if by_place and set(map(type, args)) == {np.ndarray}:
            seen = (batched, *[(x.dtype, x.shape) for x in args])
            form = self.seen.get(seen)
            if form is not None:
                return Arguments(dict(zip(self.names, args, strict=True)), form, list(args))
        if by_place:
            originals = dict(zip(self.names, args, strict=True))
        else:
            bound = self.signature.bind(*args, **named)
            bound.apply_defaults()
            originals = dict(bound.arguments)
            for name in self.gathering:
                if originals.pop(name):
                    raise ArgumentError(
                        f"a compiled function names its arguments: {name} of any number cannot be lifted"
                    )
        shapes: dict[str, Any] = {}
        arrays: list[Any] = []
        for name, x in originals.items():
            shapes[name], found = (
                (Fixed(_static(name, x)), []) if name in self.static else flatten_argument(name, x, batched)
            )
            arrays += found
        key = (batched, *shapes.items())
        form = self.forms.get(key)
        if form is None:
            form = self.forms[key] = Form(self.signature, shapes, batched)
        if seen is not None and all(x is y for x, y in zip(args, arrays, strict=False)) and len(args) == len(arrays):
            self.seen[seen] = form  # such arrays are taken as they are
        return Arguments(originals, form, arrays)


def examples(
    signature: inspect.Signature, static: Sequence[str], args: Sequence[Any], named: dict[str, Any]
) -> list[dict[str, Any]]:
    """The arguments of each example of a batch, by name, whatever the numbers in it are.

    Raises:
        DataError: the arguments differ in the number of examples, or none has any.
    """
    given = signature.bind(*args, **named).arguments
    moving = [name for name in given if name not in static]
    count = _same([(name, length) for name in moving for length in _lengths(given[name])])
    return [{name: _row(x, n) if name in moving else x for name, x in given.items()} for n in range(count)]


def called(function: Callable[..., Any], signature: inspect.Signature, given: dict[str, Any]) -> Any:
    """What a function gives for arguments by name, each in the way in which the function takes it."""
    bound = inspect.BoundArguments(signature, given)
    return function(*bound.args, **bound.kwargs)


def _static(name: str, x: Any) -> Any:
    """The key of a static argument.

    Raises:
        ArgumentError: it is not hashable.
    """
    try:
        hash(x)
    except TypeError:
        raise ArgumentError(
            f"the static argument {name} is a {type(x).__name__}: static arguments are part of the program and must "
            "be hashable; pass a tuple instead of a list"
        ) from None
    return key_of(x)


def _same(lengths: list[tuple[str, int]]) -> int:
    """How many examples there are, by the length of each argument.

    Raises:
        DataError: they differ, or there is none.
    """
    if not lengths:
        raise DataError("a batch needs an argument with an example in each row")
    if len({length for _, length in lengths}) > 1:
        raise DataError(f"the arguments of a batch have as many examples each, not {dict(lengths)}")
    if not lengths[0][1]:
        raise DataError("a batch of no examples has no mean: expected at least one")
    return lengths[0][1]


def _lengths(x: Any) -> list[int]:
    """How many examples there are in each list or array of an argument."""
    if isinstance(x, (tuple, dict)):
        return [length for item in (x.values() if isinstance(x, dict) else x) for length in _lengths(item)]
    return [len(x)] if isinstance(x, (list, np.ndarray)) else []


def _row(x: Any, number: int) -> Any:
    """One example of an argument; what is neither list nor array, such as `self`, belongs to all of them."""
    if isinstance(x, tuple):
        return tuple([_row(item, number) for item in x])
    if isinstance(x, dict):
        return {key: _row(item, number) for key, item in x.items()}
    return x[number] if isinstance(x, (list, np.ndarray)) else x


def _plain(leaf: Leaf, array: Any) -> Any:
    """An array of an example of a batch as the user's function expects it without a compiler."""
    if leaf.held == "scalar":
        return {"f": float, "b": bool, "i": int}[leaf.kind](array)
    made = np.asarray(array)
    return made.astype(bool) if leaf.kind == "b" else made


def _numbers_of(leaf: Leaf, array: Any) -> Any:
    if leaf.kind == "v":
        return np.array([v.data for v in array]) if leaf.shape else np.float64(array.data)
    return array
