"""Results that are not a single number: lists, tuples, dicts and arrays, and the numbers in them.

A result is flattened twice, as the function itself returned it and as the recorded run did. The two show which of its
Values and numbers the program computes, and which existed before. `Structure` keeps that, and builds the results of
later calls.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Container, Sequence
from typing import Any, NamedTuple

import numpy as np

from wengert.compiler.code import BY_TYPE
from wengert.compiler.traced import TracedArray, Unrecordable, concrete, is_traced
from wengert.derivatives import Constant, PyTree, array_of, coloring
from wengert.engine import Value

__all__ = ["GIVEN", "Aux", "Parts", "Structure", "kind_of", "take_apart"]

GIVEN = (float, int, bool, np.float64, np.int64, np.bool_, Value)  # what a function may return, alone or in lists
FIXED = (str, bytes, type(None), coloring.Pattern)  # constants that a result may hold
WIDE = [np.dtype(kind) for kind in (float, np.int64, bool, object)]
WEIGHT_STEP = 0.6180339887498949  # the fractional parts of its multiples are evenly distributed
MANY = 4  # numbers in arrays for each one that is not
DEEPEST = 100  # nested lists in a result
DEEP = 40  # nested brackets in an expression: Python's parser takes 200

BASE: Any = vars(np.ndarray)["base"].__get__  # the real one, also of a `TracedArray`


class Aux(NamedTuple):
    """A result with auxiliary numbers, which a run has as its output "auxiliary", without derivatives."""

    result: Any
    auxiliary: Any


class Repeated(NamedTuple):
    """A list, dict or array that occurs more than once in a result."""

    place: int  # its number among all containers


class NumberPart(NamedTuple):
    """A Value or a number."""


NUMBER = NumberPart()


def kind_of(x: Any) -> Any:
    """Return the class of a result; Value also for its subclasses."""
    return Value if isinstance(x, Value) else type(x)


class Parts:
    """A flattened result.

    Attributes:
        tree: a PyTree; an array is a container in it, whose keys are its shape.
        leaves: the Values and numbers, in order.
        containers: the lists, tuples, dicts and arrays.
        dtypes: the dtype of each container that is an array.

    Raises:
        Unrecordable: it holds anything else.
    """

    def __init__(self, result: Any) -> None:
        self.leaves: list[Any] = []
        self.containers: list[Any] = []
        self.dtypes: dict[int, Any] = {}
        self._places: dict[int, int] = {}
        self._open: set[int] = set()
        self.tree: Any = self._flattened(result)

    def _flattened(self, x: Any) -> Any:
        if isinstance(x, Value) or is_traced(x) or type(x) in GIVEN:
            self.leaves.append(x)
            return NUMBER
        kind = np.ndarray if type(x) is TracedArray else type(x)
        if kind in FIXED:
            return Constant(x)
        if kind not in (list, tuple, dict, np.ndarray) and not _is_named_tuple(kind):
            raise Unrecordable(
                f"it returns a {kind.__name__}: a compiled function returns a Value or a number, or lists, tuples, "
                "dicts and arrays of them"
            )
        if len(self._open) > DEEPEST:
            raise Unrecordable(f"its result has more than {DEEPEST} levels of nested lists: return one list of numbers")
        if id(x) in self._open:
            raise Unrecordable("it returns a container that contains itself: return the numbers in it")
        if id(x) in self._places:
            return Repeated(self._places[id(x)])
        place = self._places[id(x)] = len(self.containers)
        self.containers.append(x)
        keys: Any = ()  # of a list or tuple
        items: Any = x
        if kind is np.ndarray:
            if x.dtype not in WIDE:
                raise Unrecordable(
                    f"it returns an array of {x.dtype}, and one of float64, int64, bool or Values is compiled: return "
                    "x.astype(float)"
                )
            self.dtypes[place], keys = x.dtype, x.shape
            items = x.view(np.ndarray).reshape(-1).tolist()
        elif kind is dict:
            keys, items = tuple([concrete(key) for key in x]), x.values()
        if all(of in GIVEN or issubclass(of, Value) for of in {*map(type, items)}):  # nearly always
            self.leaves += items
            return PyTree(kind, keys, (NUMBER,) * len(items))
        self._open.add(id(x))
        children = tuple([self._flattened(item) for item in items])
        self._open.discard(id(x))
        return PyTree(kind, keys, children)

    def with_leaves(self, leaves: Sequence[Any]) -> Any:
        """Return the result with others in place of its leaves."""
        items, containers = iter(leaves), dict[int, Any]()

        def build(tree: Any) -> Any:
            if not isinstance(tree, PyTree):
                is_number = isinstance(tree, NumberPart)
                return next(items) if is_number else tree.x if isinstance(tree, Constant) else containers[tree.place]
            place = len(containers)
            containers[place] = None
            children = [build(child) for child in tree.children]
            built: Any = array_of(children, tuple(tree.keys)) if tree.kind is np.ndarray else tree.rebuild(children)
            containers[place] = built
            return built

        return build(self.tree)


def take_apart(result: Any) -> Parts | None:
    """Flatten a result; None if it is a single number.

    Raises:
        Unrecordable: it holds anything but numbers and containers.
    """
    is_container = isinstance(result, (list, tuple, dict, np.ndarray)) and not isinstance(result, Aux)
    return Parts(result) if is_container and not is_traced(result) else None


def _is_named_tuple(kind: type) -> bool:
    return issubclass(kind, tuple) and hasattr(kind, "_fields") and not kind.__dictoffset__


class Structure:
    """The structure of a function's results, which builds the results of later calls.

    Args:
        plain: the flattened result of the function itself.
        traced: that of the recorded run.
        passed: the Values among the arguments in the recorded run: their numbers, by identity.
        chosen: the identities of Values that an integer chooses; each call shows which one a result is.
        began: when the recorded run began; older Values existed before.
        seen: the objects that the function reaches from outside, by identity.
        owns_memory: True if each array of the results has memory of its own, False for parts of one array.

    Attributes:
        kinds: the class of each leaf; Value also for its subclasses.
        computed: for each leaf 1 if it is a Value that each call makes anew, at its first occurrence.
        build: builds a result from a list of its leaves, the Values among the arguments, and the array of all leaves'
            numbers.
        needs_leaves: True if `build` reads that list.
        needs_numbers: True if it reads that array.

    Raises:
        Unrecordable: the result is, or holds, an object that existed before the call and may change.
    """

    build: Callable[..., Any]  # the result from its numbers
    needs_leaves: bool
    needs_numbers: bool

    def __init__(
        self,
        plain: Parts,
        traced: Parts,
        passed: dict[int, int],
        chosen: Container[int],
        began: int,
        seen: Container[int],
        owns_memory: bool = True,
    ) -> None:
        if not plain.leaves:
            raise Unrecordable("its result holds no number: return numbers, or leave it uncompiled")
        if any(_is_from_outside(x, seen) for x in plain.containers):
            raise Unrecordable(
                "it returns a list, dict or array that was there before the call, which may be changed: return a copy"
            )
        _check_keys(plain.tree)
        if plain.tree != traced.tree or len(plain.leaves) != len(traced.leaves):
            raise Unrecordable(f"its result has another structure while it is recorded: {BY_TYPE}")
        self.tree: Any = plain.tree
        self.dtypes: dict[int, Any] = plain.dtypes
        self.owns_memory: bool = owns_memory
        self.kinds: list[Any] = [kind_of(x) for x in plain.leaves]
        self._passed: dict[int, int] = {}  # leaves that are a Value among the arguments
        self._held: dict[int, Value] = {}  # leaves that are a Value from outside
        first: dict[int, int] = {}
        self._first: list[int] = []
        for number, (x, y) in enumerate(zip(plain.leaves, traced.leaves, strict=True)):
            self._first.append(number)
            if not isinstance(x, Value):  # a number may be computed from Values that stand for floats
                continue
            if not isinstance(y, Value):
                raise Unrecordable(f"its result is a Value, but a number while it is recorded: {BY_TYPE}")
            if id(y) in chosen:
                continue
            self._first[-1] = first.setdefault(id(y), number)
            if id(y) in passed:
                self._passed[number] = passed[id(y)]
            elif y._made < began:
                self._held[number] = y
                if x is not y:
                    raise Unrecordable(f"its result is another Value while it is recorded: {BY_TYPE}")
        in_arrays = sum(
            [len(x.reshape(-1)) for x in plain.containers if isinstance(x, np.ndarray) and x.dtype != object]
        )
        others = len(plain.leaves) - in_arrays
        self._in_arrays: bool = in_arrays > MANY * others and not any(issubclass(kind, Value) for kind in self.kinds)
        self.computed: Any = np.array([self._is_computed(n) for n in range(len(self.kinds))], np.uint8)
        self.build, self.needs_leaves, self.needs_numbers = _Writer(self).written()

    @property
    def pattern(self) -> coloring.Pattern | None:
        """The pattern that comes with the numbers of a sparse derivative; None for any other result."""
        constants = [part.x for part in getattr(self.tree, "children", ()) if isinstance(part, Constant)]
        return next((x for x in constants if isinstance(x, coloring.Pattern)), None)

    @property
    def layout(self) -> Any:
        """The shape of the results, or a list of the shapes of their parts."""

        def of(tree: Any) -> Any:
            parts = [of(x) for x in getattr(tree, "children", ()) if isinstance(x, (PyTree, NumberPart))]
            same = isinstance(tree, PyTree) and parts.count(parts[0]) == len(parts) and isinstance(parts[0], tuple)
            return tree.keys if same and tree.kind is np.ndarray else (len(parts), *parts[0]) if same else parts or ()

        return of(self.tree)

    def _is_computed(self, number: int) -> bool:
        existed = number in self._passed or number in self._held
        return self.kinds[number] is Value and not existed and self._first[number] == number

    def source(self, number: int) -> tuple[str, Any]:
        """Return the expression of a leaf and its class; for a Value from outside an empty string and the Value."""
        if number in self._held:
            return "", self._held[number]
        if number in self._passed:
            return f"v[{self._passed[number]}]", Value
        if self._in_arrays:  # a list of all numbers would take longer than the rest
            return f"o.item({number})", self.kinds[number]
        return f"r[{self._first[number]}]", self.kinds[number]

    def cotangents(self, number: int) -> list[float]:
        """Return a weight between 0.5 and 1.5 for each computed Value, others at each call, and 0 for other leaves."""
        weights = [0.5 + (number + n) * WEIGHT_STEP % 1.0 for n in range(1, len(self.computed) + 1)]
        return [weight * computed for weight, computed in zip(weights, self.computed.tolist(), strict=True)]

    def leaves_of(self, result: Any) -> list[Any] | None:
        """Return the leaves of another result; None if its structure or its kinds of numbers differ."""
        try:
            parts = Parts(result)
        except Unrecordable:
            return None
        if parts.tree != self.tree or parts.dtypes != self.dtypes:
            return None
        return parts.leaves if list(map(kind_of, parts.leaves)) == self.kinds else None

    def are_others(self, leaves: Sequence[Any], values: Sequence[Any]) -> bool:
        """Return True if a leaf is not the same Value from outside, or from the arguments, as in the recorded run."""
        expected = {**self._held, **{number: values[n] for number, n in self._passed.items()}}
        return any(leaves[number] is not x for number, x in expected.items())


def _is_from_outside(x: Any, seen: Container[int]) -> bool:
    """Return True for a mutable object that existed before, and for an array that shares its memory."""
    while isinstance(x, np.ndarray) and id(x) not in seen and BASE(x) is not None:
        x = BASE(x)
    return id(x) in seen and not isinstance(x, tuple)


def _check_keys(tree: Any) -> None:
    """Check that the keys of dicts are constants.

    Raises:
        Unrecordable: a key may differ between calls.
    """
    if isinstance(tree, PyTree):
        for key in tree.keys if tree.kind is dict else ():
            if not _is_fixed(key):
                raise Unrecordable(f"its result is a dict with a {type(key).__name__} as a key: use numbers or text")
        for child in tree.children:
            _check_keys(child)


def _is_fixed(key: Any) -> bool:
    if isinstance(key, tuple):
        return all(map(_is_fixed, key))
    return type(key) in (*FIXED, int, float, bool) or isinstance(key, enum.Enum)


class _Writer:
    """Writes the function that builds results."""

    def __init__(self, structure: Structure) -> None:
        self.structure = structure
        self.lines: list[str] = []
        self.space: dict[str, Any] = {"cells": _cells}
        self.names: dict[int, str] = {}
        self.leaf = 0
        self.place = 0
        self.repeated = set(_repeated_in(structure.tree))

    def written(self) -> tuple[Callable[..., Any], bool, bool]:
        """Return the function, and whether it reads the list of leaves, and the array."""
        result, _ = self.text(self.structure.tree)
        lines = [*self.lines, f"return {result}"]
        exec("def build(r, v, o):\n    " + "\n    ".join(lines), self.space)
        names = {*re.findall(r"\w+", " ".join(lines))}
        return self.space["build"], "r" in names, "o" in names

    def named(self, x: Any) -> str:
        name = self.names.setdefault(id(x), f"x{len(self.names)}")
        self.space[name] = x
        return name

    def text(self, tree: Any) -> tuple[str, int]:
        """Return an expression, and how deep its brackets are nested."""
        if isinstance(tree, NumberPart):
            read, kind = self.structure.source(self.leaf)
            self.leaf += 1
            if not read:
                return self.named(kind), 2
            return (read if kind in (Value, float) else f"{self.named(kind)}({read})"), 2
        if isinstance(tree, Constant):
            return (repr(tree.x) if tree.x is None else self.named(tree.x)), 0
        if isinstance(tree, Repeated):
            return f"s{tree.place}", 0
        place = self.place
        self.place += 1
        expression, depth = self.array(tree, place) if tree.kind is np.ndarray else self.container(tree)
        if place in self.repeated or depth > DEEP:
            self.lines.append(f"s{place} = {expression}")
            expression, depth = f"s{place}", 0
        return expression, depth + 1

    def array(self, tree: PyTree, place: int) -> tuple[str, int]:
        """Return an expression for an array, from the array of all numbers, which each call makes."""
        dtype, start = self.structure.dtypes[place], self.leaf
        if dtype.kind != "O":
            self.leaf += len(tree.children)
            numbers, copied = "o", ""
            if self.leaf - start < len(self.structure.kinds):
                numbers, copied = f"o[{start}:{self.leaf}]", ".copy()" * self.structure.owns_memory
            converted = copied if dtype.kind == "f" else f".astype({self.named(dtype)})"
            reshaped = f".reshape({tree.keys})" if len(tree.keys) != 1 else ""
            return f"{numbers}{converted}{reshaped}", 2
        items, depth = self.items(tree.children)
        return f"cells({items}, {tree.keys})", depth + 1

    def container(self, tree: PyTree) -> tuple[str, int]:
        if tree.kind is not dict:
            items, depth = self.items(tree.children)
            if tree.kind is list:
                return items, depth
            return f"{'tuple' if tree.kind is tuple else self.named(tree.kind) + '._make'}({items})", depth + 1
        texts = [self.text(child) for child in tree.children]
        pairs = [f"{self.named(key)}: {text}" for key, (text, _) in zip(tree.keys, texts, strict=True)]
        return f"{{{', '.join(pairs)}}}", max([depth for _, depth in texts], default=0)

    def items(self, children: Sequence[Any]) -> tuple[str, int]:
        """Return a list of children; a slice if they are consecutive leaves."""
        first = self.leaf
        texts = [self.text(child) for child in children]
        if texts and [text for text, _ in texts] == [f"r[{first + n}]" for n in range(len(texts))]:
            return f"r[{first}:{first + len(texts)}]", 1
        return f"[{', '.join([text for text, _ in texts])}]", max([depth for _, depth in texts], default=0)


def _cells(items: list[Any], shape: tuple[int, ...]) -> Any:
    array = np.empty(len(items), object)
    array[:] = items
    return array.reshape(shape)


def _repeated_in(tree: Any) -> list[int]:
    """List the places of containers that occur more than once."""
    if isinstance(tree, Repeated):
        return [tree.place]
    return [place for child in tree.children for place in _repeated_in(child)] if isinstance(tree, PyTree) else []
