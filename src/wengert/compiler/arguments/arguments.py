"""The arguments of a call: by name, with their signature, and their numbers as arrays.

An argument is a number, an array, or a PyTree of lists, tuples and dicts, whose structure is part of the signature. Its
leaves are stored as NumPy arrays, and the function gets them as its own numbers, lists and tuples.
"""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable, Collection, Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import numpy as np

from wengert._forks import Lock
from wengert._signatures import spread
from wengert.compiler.arguments.regular import ARRAYS, KINDS, Rows, Tangled, has_large, read_rows, rows_in, widened
from wengert.compiler.arguments.rows import bound_to, called, lengths_of, rows_of, same_length, tree_items
from wengert.compiler.call import is_exact
from wengert.compiler.code import DEPTH, PARTS, REPLACED, Itself, key_of, objects_in, parts_of_key
from wengert.derivatives import KeyPath, tree_flatten, tree_leaves, tree_unflatten
from wengert.engine import Value
from wengert.errors import ArgumentError, DataError

__all__ = ["Arguments", "ArraySpec", "Reader", "Signature", "StaticSpec", "flatten_argument"]

OF_DATA = (int, float, np.generic, np.ndarray, Value)  # what arrays hold, and not the program
GATHERING = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)  # as `*xs` and `**named`
SEEN = 256  # examples that are searched for distinct ones
PYTHON: dict[str, Any] = {"f": float, "i": int, "b": bool}


@dataclass(frozen=True)
class ArraySpec:
    """An array of numbers: ``kind`` is f for floats, i for integers, b for bools, v for Values. The function gets each
    as a ``number`` of this type, in what ``held`` names: list or tuple for each axis, the last perhaps np.ndarray.
    """

    name: str
    kind: str
    number: Any
    shape: tuple[int, ...]
    held: tuple[Any, ...]
    is_mixed: bool = False  # nested lists of floats and whole numbers: which are which is not told

    @property
    def is_scalar(self) -> bool:
        return not self.held


@dataclass(frozen=True)
class StaticSpec:
    """An argument that is part of the program: a string, a bool, an object."""

    key: Any


@dataclass(frozen=True)
class ForeignSpec(StaticSpec):
    """An argument that only the function itself can read; the key is the reason."""

    is_warned: bool = True  # a warning names the reason

    @classmethod
    def of(cls, kind: Any) -> ForeignSpec:
        """Refuse an array of a subclass."""
        name = f"{kind.__module__.partition('.')[0]}.{kind.__name__}"
        return cls(
            f"an argument holds a {name}, which is more than its numbers: pass a plain array, as np.asarray(x) is"
        )

    @classmethod
    def of_numbers(cls, kind: Any) -> ForeignSpec:
        """Refuse numbers of a type of NumPy that no program computes with."""
        return cls(
            f"an argument holds numbers of {kind.__name__}, and only real numbers up to float64 are compiled: pass "
            "float64, as float(x) and x.astype(float) are"
        )


LARGE = ForeignSpec(
    "an integer among the arguments is beyond 2**53, where not each is a float: pass float(n)", is_warned=False
)
# Whole numbers of which Python has one object each, by its identity.
SMALL = {id(n): n for n in range(-(1 << 10), 1 << 12) if int(str(n)) is n}
DEEP = ForeignSpec(f"an argument is nested more than {DEPTH} levels deep: pass its numbers in a list or an array")
MANY = ForeignSpec(f"an argument has more than {PARTS:,} parts: pass numbers in arrays, or in lists of one type")


Shape = Any  # a PyTree of ArraySpec and StaticSpec, or one of those


class _Beyond(Exception):  # noqa: N818  (not an error: a reason to leave an argument to the function)
    """An argument is too deep, or has too many parts."""


def flatten_argument(
    name: str, x: Any, batched: bool = False, keys: list[Any] | None = None
) -> tuple[Shape, list[Any]]:
    """Return the shape of an argument and its arrays; with `batched`, the shape of one example along the first axis.

    Args:
        name: its name.
        x: the argument.
        batched: True if it has a row for each example.
        keys: gets the keys of dicts that are not all strings: the trees of 1 and True are equal.

    Raises:
        DataError: the rows of a batch differ in length.
    """
    arrays: list[Any] = []
    parts = itertools.count()
    within: dict[int, tuple[int, str]] = {}  # the depth and the name of each open container, by its path

    def leaf(x: Any, path: KeyPath) -> Any:
        depth, here = within[id(path[0])] if path else (0, name)
        here = f"{here}_{path[1]!s}" if path else here
        if depth > DEPTH:
            raise _Beyond(DEEP)
        if next(parts) > PARTS:
            raise _Beyond(MANY)
        if batched and isinstance(x, (int, float, np.number, Value)):
            if path:
                raise DataError(f"{here} is one number: a batch has an example in each row")
            raise DataError(f"{name} is one number: a batch has an example in each row (or declare static={name!r})")
        described = _leaf(here, x, batched)
        within[id(path)] = depth + 1, here
        if type(described) is tuple:
            arrays.append(described[1])
            return described[0]
        if described is None and keys is not None and type(x) is dict and any(type(key) is not str for key in x):
            keys.append(key_of(tuple(x)))
        return described

    try:
        return tree_flatten(x, leaf), arrays
    except _Beyond as problem:
        return problem.args[0], []
    except Tangled:
        return MANY, []


def _leaf(name: str, x: Any, batched: bool) -> tuple[ArraySpec, Any] | StaticSpec | None:
    """Return the spec of a leaf and its array, or a static spec; None for a container to be flattened."""
    kind: Any = type(x)
    if (letter := KINDS.get(kind)) == "f":
        return _number(name, "f", kind), float(x)
    if letter == "i":
        return (_number(name, "i", kind), int(x)) if is_exact(int(x)) else LARGE
    if isinstance(x, Value):
        return _number(name, "v", Value), x
    if isinstance(x, np.ndarray):
        return _array(name, x, batched) if kind in ARRAYS else ForeignSpec.of(kind)
    if kind is np.longdouble:
        return ForeignSpec.of_numbers(kind)
    if kind is list or (kind is tuple and not batched):
        return _sequence(name, x, batched)
    return None if kind is dict or isinstance(x, tuple) else StaticSpec(key_of(x))


_lock = Lock()


@functools.lru_cache(1024)
def _number(name: str, kind: str, number: Any) -> ArraySpec:
    return ArraySpec(name, kind, number, (), ())


def _array(name: str, x: Any, batched: bool) -> tuple[ArraySpec, Any] | StaticSpec:
    dtype = x.dtype
    if dtype.kind not in "fiub":
        if dtype.kind == "O" and not batched:
            if x.ndim and x.size and all(isinstance(item, Value) for item in x.flat):
                return ArraySpec(name, "v", Value, x.shape, (np.ndarray,)), x
            return ForeignSpec("an argument is an array of objects that are not all Values: pass a list")
        return ForeignSpec(
            f"an argument is an array of {dtype.type.__name__}, and only real numbers are compiled: pass these, "
            "such as real parts or codes"
        )
    if batched and not x.ndim:
        raise DataError(f"{name} is one number: a batch has an example in each row")
    if dtype.type not in KINDS:
        return ForeignSpec.of_numbers(dtype.type)
    shape, kind = x.shape[1:] if batched else x.shape, KINDS[dtype.type]
    by_number = batched and not shape  # the function gets the numbers of `tolist()`
    if not (by_number or dtype.isnative):
        return ForeignSpec(f"an argument is an array of another byte order ({dtype.str}): pass x.astype(float)")
    if kind == "i" and has_large(x):
        return LARGE
    spec = _number(name, kind, PYTHON[kind]) if by_number else ArraySpec(name, kind, dtype.type, shape, (np.ndarray,))
    return spec, widened(np.asarray(x))


def _sequence(name: str, x: Any, batched: bool) -> tuple[ArraySpec, Any] | StaticSpec | None:
    """Describe a list or tuple: numbers of one type in regularly nested lists are one array; None for anything else."""
    if batched and not len(x):
        raise DataError(f"{name}: the batch is empty: expected at least one example")
    if batched and isinstance(x[0], dict):
        raise DataError(f"{name}: a batch of dicts is written as a dict of batches")
    if batched and hasattr(x[0], "_fields"):
        raise DataError(f"{name}: a batch of named tuples is written as a named tuple of batches")
    rows = rows_in(x)
    if rows is not None and rows.number is not None:
        try:
            array = read_rows(x, rows)
        except ValueError:  # another thread has changed it
            return None if not batched else _refused_rows(name, x, None)
        if array is None:
            return LARGE
        first = int(batched)
        return ArraySpec(
            name, KINDS[rows.number], rows.number, rows.shape[first:], rows.held[first:], rows.is_mixed
        ), array
    if batched:
        return _refused_rows(name, x, rows)
    of_values = x and all(isinstance(item, Value) for item in x)
    return (ArraySpec(name, "v", Value, (len(x),), (type(x),)), x) if of_values else None


def _refused_rows(name: str, x: Any, rows: Rows | None) -> StaticSpec:
    """Say why a list is no batch of numbers: it is left to the function.

    Raises:
        DataError: its rows differ in length.
    """
    kinds = sorted({*map(type, x)}, key=lambda kind: kind.__name__)
    for kind in kinds:
        if issubclass(kind, np.ndarray) and kind not in ARRAYS:
            return ForeignSpec.of(kind)
    lengths = {len(row) for row in x if type(row) in (list, tuple)} | {row.shape for row in x if type(row) in ARRAYS}
    if rows is None and {*kinds} <= {list, tuple, *ARRAYS} and len(lengths) > 1:
        raise DataError(f"{name}: the examples of a batch have one shape; these differ")
    names = " or a ".join([kind.__name__ for kind in kinds])
    one = " of one type" if len(kinds) > 1 else ""
    return ForeignSpec(
        f"each row of a batch is a {names}, and only real numbers{one} are compiled: pass these, or write a batch of "
        "objects as dicts of columns"
    )


def _restored(array: Any, held: tuple[Any, ...]) -> Any:
    """Convert an array back to the types in which the function gets it, axis by axis."""
    if held[0] is np.ndarray:
        return array
    rows = [_restored(row, held[1:]) for row in array] if {*held[1:]} - {list} else array.tolist()
    return tuple(rows) if held[0] is tuple else rows


class Signature:
    """The structure of a function's arguments, by name. A specialization is valid for one signature.

    Many fields: what recording, lifting and the readers ask of the arguments is computed once for each structure.
    """

    def __init__(
        self,
        of_function: inspect.Signature,
        shapes: dict[str, Shape],
        batched: bool,
        key: Any,
        aliased: bool,
        tells_objects: bool = False,
        positional: int | None = None,
    ) -> None:
        self.key: Any = key
        self.positional: int | None = positional  # the number of arguments by position, where the program depends on it
        self.aliased: bool = aliased  # an object was passed twice
        self.tells_objects: bool = tells_objects  # or it would be in the key, however deep both are
        self.of_function: inspect.Signature = of_function
        self.shapes: dict[str, Shape] = shapes
        every = {name: [leaf for _, leaf in tree_leaves(shape)] for name, shape in shapes.items()}
        self.leaves: list[ArraySpec] = [x for specs in every.values() for x in specs if isinstance(x, ArraySpec)]
        taken: dict[str, None] = {}
        for leaf in self.leaves:
            name = leaf.name
            while name in taken:  # such as the first number of x = (1, 2), and an argument x_0
                name += "_"
            taken[name] = None
        self.names: list[str] = [*taken]
        names = iter(self.names)
        self.arrays: dict[str, list[str]] = {  # the names of the arrays of each argument
            name: [next(names) for x in specs if isinstance(x, ArraySpec)] for name, specs in every.items()
        }
        self.batched: bool = batched
        fixed = [x for specs in every.values() for x in specs if isinstance(x, StaticSpec)]
        foreign = [x for x in fixed if isinstance(x, ForeignSpec)]
        self.reason: str = foreign[0].key if foreign else ""  # why it cannot be compiled
        self.is_warned: bool = any(x.is_warned for x in foreign)
        self._objects: list[Itself] = [itself for x in fixed for itself in objects_in(x.key)]

    def __str__(self) -> str:
        """Describe the arguments for a log: their names, the types of their numbers, and the shapes of arrays."""
        each = [f"{x.name}: {x.number.__name__}{[*x.shape] if x.shape else ''}" for x in self.leaves]
        fixed = [name for name, arrays in self.arrays.items() if not arrays]
        return f"{'a batch of ' * self.batched}({', '.join([*each, *fixed])})"

    def is_alive(self) -> bool:
        """Return True if a call can still have it: the objects in it exist."""
        return all(x.is_alive() for x in self._objects)

    def new_objects(self) -> list[str]:
        """List the arguments that hold objects which are compared by identity, each with the class of the first one."""
        descriptions = []
        for name, shape in self.shapes.items():
            inside = [x for _, leaf in tree_leaves(shape) if isinstance(leaf, StaticSpec) for x in objects_in(leaf.key)]
            descriptions += [f"{name}, with a new {x.kind}" for x in inside[:1] if x.reference is not None]
        return descriptions

    def objects(self) -> set[int]:
        """Return the identities of the objects in it that it does not keep alive."""
        return {x.number for x in self._objects if x.reference is not None}


@dataclass
class Arguments:
    """The arguments of a call, their shapes, and their arrays."""

    args: Sequence[Any]  # passed by position
    named: dict[str, Any]
    originals: dict[str, Any]  # all by name, with the defaults
    signature: Signature
    arrays: list[Any]
    passed: Collection[str]  # the names of arguments that are not defaults
    static: Collection[str]

    def names(self) -> list[str]:
        """List the names of the arguments that are not defaults, in order."""
        return [name for name in self.signature.shapes if name in self.passed]

    def distinguished(self) -> set[int] | None:
        """Return the identities of the objects whose aliasing, being passed twice, the signature says; None for all."""
        if self.signature.tells_objects:
            return None
        outside = tree_items(self.originals)
        return {*map(id, outside)} - {id(part) for x in outside for part, _ in _parts(x) if part is not x}

    def identities(self) -> set[int]:
        """Return the identities of all objects in the arguments."""
        return {id(part) for original in self.originals.values() for part, _ in _parts(original)}

    def has_equals(self) -> bool:
        """Return True if an object in the arguments, such as a named tuple, is compared by its value: another call with
        this signature may have an equal object that is not the same.
        """
        parts = [x for original in self.originals.values() for x, _ in _parts(original)]
        others = [x for x in parts if type(x) not in REPLACED and not isinstance(x, (Value, np.generic))]
        return any(type(key_of(x)) is not Itself for x in others)

    def values(self) -> list[Any]:
        pairs = [pair for pair in zip(self.signature.leaves, self.arrays, strict=True) if pair[0].kind == "v"]
        return [x for leaf, array in pairs for x in (np.ravel(array).tolist() if leaf.shape else [array])]

    def count(self) -> int:
        """Return the number of examples in a batch.

        Raises:
            DataError: the arguments differ in it, or there is none.
        """
        lengths: list[int] = [x.shape[0] for x in self.arrays]
        if self.signature.reason:
            return same_length([(name, n) for name in self.names() for n in lengths_of(self.originals[name])])
        if not lengths or not lengths[0] or lengths.count(lengths[0]) != len(lengths):
            same_length([(leaf.name, length) for leaf, length in zip(self.signature.leaves, lengths, strict=True)])
        return lengths[0]

    def example(self, number: int) -> list[Any]:
        return [array[number] for array in self.arrays] if self.signature.batched else self.arrays

    def numbers(self, example: Sequence[Any]) -> list[Any]:
        """Return the arrays of an example, with numbers in place of Values."""
        return [_numbers_of(leaf, array) for leaf, array in zip(self.signature.leaves, example, strict=True)]

    def call(
        self,
        function: Callable[..., Any],
        example: Sequence[Any],
        make: Callable[[ArraySpec, Any], Any],
        fixed: Callable[[Any], Any],
    ) -> Any:
        """Call a function on one example. `make` converts each array, `fixed` each static part. Where the signature
        says that an object is passed twice, the function gets one object in both places.
        """
        arrays = iter(example)
        by_identity: dict[int, Any] = {}
        told = self.distinguished()

        def put(leaf: ArraySpec | StaticSpec, original: Any) -> Any:
            if isinstance(leaf, StaticSpec):
                return fixed(original)
            converted = make(leaf, next(arrays))
            converted = converted if leaf.is_scalar else _restored(converted, leaf.held)
            is_told = _has_identity(original) and (told is None or id(original) in told)
            return by_identity.setdefault(id(original), converted) if is_told else converted

        given = {}
        for name, shape in self.signature.shapes.items():
            converted, original = tree_unflatten(shape, put, self.originals[name]), self.originals[name]
            if self.signature.tells_objects and not self.signature.batched:
                given[name] = _unified(converted, original, by_identity)
            else:
                given[name] = (
                    by_identity.setdefault(id(original), converted)
                    if isinstance(original, (tuple, dict))
                    else converted
                )
        given = {name: x for name, x in given.items() if name in self.passed}  # the function has its own defaults
        return called(function, self.signature.of_function, given)

    def eager(self, function: Callable[..., Any]) -> Any:
        """Call a function on the one example as if it were not compiled."""
        return function(*self.args, **self.named)

    def all_eager(self, function: Callable[..., Any], results: dict[int, Any]) -> list[Any]:
        """Call a function on each example of a batch, except those whose results are known."""
        call, rows = rows_of(function, self.signature.of_function, self.static, self.args, self.named)
        return [results[n] if n in results else call(*row) for n, row in enumerate(rows)]

    def prepared(self, function: Callable[..., Any], number: int) -> Callable[[], Any]:
        """Return a call of a function on one example, with its arguments ready.

        Raises:
            DataError: the batch has become shorter, as by another thread, and has no such example any more.
        """
        if not self.signature.batched:
            return functools.partial(self.eager, function)
        one = slice(number, number + 1)
        call, rows = rows_of(function, self.signature.of_function, self.static, self.args, self.named, one)
        row = next(rows, None)
        if row is None:
            raise DataError(f"the batch has changed during the call: it has no example {number} any more")
        return functools.partial(call, *row)

    def reached_by(self, call: Any) -> list[tuple[str, Any]]:
        """Return what a call that is ready can reach through its arguments, with names: of a batch, its example."""
        if not self.signature.batched:
            return [*self.originals.items(), *zip(self.signature.names, self.arrays, strict=True)]
        defaults = [(name, x) for name, x in self.originals.items() if name not in self.passed]
        return [*zip([name for name in self.originals if name in self.passed], call.args, strict=True), *defaults]

    def distinct(self, rows: Sequence[int], most: int) -> list[int]:
        """Choose up to `most` examples that differ from each other among the first of some rows."""
        chosen: dict[Any, int] = {}
        for number in map(int, rows[:SEEN]):
            if len(chosen) >= most:
                break
            chosen.setdefault(tuple([np.asarray(x).tobytes() for x in self.example(number)]), number)
        return list(chosen.values())


def _has_identity(x: Any) -> bool:
    """Return True if a function can tell that it gets the same object twice."""
    return isinstance(x, (list, np.ndarray, Value))


def _unified(converted: Any, original: Any, by_identity: dict[int, Any]) -> Any:
    """Return what was made of an argument, with one object wherever the argument has one."""
    if original is None or type(original) is bool:
        return converted
    if id(original) in by_identity and (by_identity[id(original)] is not converted or not isinstance(original, list)):
        return by_identity[id(original)]
    kind = type(original)
    if kind is list:
        converted[:] = [_unified(x, y, by_identity) for x, y in zip(converted, original, strict=True)]
    elif kind is dict:
        converted.update([(key, _unified(converted[key], y, by_identity)) for key, y in original.items()])
    elif isinstance(original, tuple):
        items = [
            _unified(x, y, by_identity)
            for x, y in zip(tuple.__iter__(converted), tuple.__iter__(original), strict=True)
        ]
        converted = tuple(items) if kind is tuple else getattr(kind, "_make", kind)(items)
    return by_identity.setdefault(id(original), converted)


class ArgumentPart(NamedTuple):
    """An object in an argument of which a function can tell whether it is the same elsewhere.

    Attributes:
        x: the object.
        is_static: True if it is part of the program: other calls with this signature have an equal one.
    """

    x: Any
    is_static: bool


def _parts(x: Any) -> list[ArgumentPart]:
    """List an argument and everything in it."""
    parts, waiting = [], [x]
    while waiting:
        part = waiting.pop()
        kind = type(part)
        if part is None or kind is bool:
            continue
        items: Any = ()
        if kind is list:
            items = part
        elif issubclass(kind, tuple):
            items = tuple.__iter__(part)
        elif kind is dict:
            parts += [ArgumentPart(each, True) for key in part for each in parts_of_key(key)]
            items = part.values()
        elif kind is np.ndarray and part.dtype == object:
            items = part.ravel().tolist()
        elif not isinstance(part, OF_DATA):
            parts += [ArgumentPart(each, True) for each in parts_of_key(part)]
            continue
        parts.append(ArgumentPart(part, False))
        waiting += [*items][::-1]
    return parts


class Reader:
    """Reads the arguments of calls.

    Args:
        signature: the function's.
        static: the names of arguments that are parts of the program.
        tells_objects: True if the function may compare by `is` objects that can be equal and not the same: then the
            signature says which objects in the arguments are the same.
        counts: True if the signature says how many arguments are passed by position, with those by name that may be.
        own: the signature of a wrapper itself, for calls that do not fit that of what it wraps.

    Attributes:
        elsewhere: by identity the objects that recorded runs read, but not from the arguments, and small whole numbers,
            which are the same objects wherever they come from.
    """

    def __init__(
        self,
        signature: inspect.Signature,
        static: Sequence[str],
        tells_objects: bool = False,
        counts: bool = False,
        own: inspect.Signature | None = None,
    ) -> None:
        self.signature: inspect.Signature = signature
        self.tells_objects: bool = tells_objects
        self.elsewhere: dict[int, Any] = dict(SMALL) if tells_objects else {}
        self.entries: Mapping[Any, Any] = {}  # whose specializations hold captured floats; set by the owner
        self.static: frozenset[str] = frozenset(static)
        self.signatures: WeakValueDictionary[Any, Signature] = WeakValueDictionary()  # those in use
        self.counts: bool = counts
        self.own: inspect.Signature | None = own
        self._of_calls: dict[tuple[int, bool], tuple[inspect.Signature, frozenset[str]]] = {}
        kinds = [(p.name, p.kind) for p in signature.parameters.values()]
        self.names: list[str] = [name for name, kind in kinds if kind not in GATHERING]
        by_name = any(kind is inspect.Parameter.KEYWORD_ONLY for _, kind in kinds)
        self.places: int = -1 if by_name else len(self.names)  # positional arguments that are all there are

    def of_calls(self, count: int, of_wrapper: bool = False) -> tuple[inspect.Signature, frozenset[str]]:
        """Return the signature of calls with so many arguments by position, in which each argument of `*xs` has a name
        of its own, and the names of those that are parts of the program.
        """
        key = count, of_wrapper
        if key not in self._of_calls:
            whole = self.own if of_wrapper and self.own is not None else self.signature
            signature, static = spread(whole, count), self.static
            if any(p.name in static for p in whole.parameters.values() if p.kind is p.VAR_POSITIONAL):
                static |= signature.parameters.keys() - whole.parameters.keys()
            self._of_calls[key] = signature, static
        return self._of_calls[key]

    def read(self, args: Sequence[Any], named: dict[str, Any], batched: bool) -> Arguments | None:
        """Return the arguments by name, with their signature and arrays; None if the function does not take them.

        Raises:
            ArgumentError: a static argument is not hashable.
            DataError: they are no batch.
        """
        passed: Any = self.names
        positional = len(args) if self.counts else None
        of_function, static = self.of_calls(len(args))
        if len(args) == self.places and not named:
            originals = dict(zip(self.names, args, strict=True))
        else:
            bound = bound_to(of_function, args, named)
            if bound is None and self.own is not None:
                of_function, static = self.of_calls(len(args), of_wrapper=True)
                bound = bound_to(of_function, args, named)
            if bound is None:
                return None
            positional = len(bound.args) if self.counts else None
            passed = set(bound.arguments)
            bound.apply_defaults()
            parameters, given = of_function.parameters, bound.arguments
            originals = {n: x for n, x in given.items() if n in passed or parameters[n].kind not in GATHERING}
        shapes: dict[str, Any] = {}
        arrays: list[Any] = []
        keys: list[Any] = []
        for name, x in originals.items():
            if name in static:
                shapes[name] = StaticSpec(_static(name, x))
            elif name not in passed:
                shapes[name] = StaticSpec(key_of(x))  # a default is part of the program
            else:
                shapes[name], argument_arrays = flatten_argument(name, x, batched, keys)
                arrays += argument_arrays
        same: list[int] = []
        if self.tells_objects and not any(isinstance(shape, ForeignSpec) for shape in shapes.values()):
            same, told, reason = self._same(originals, batched, of_function, static, args, named)
            keys += [tuple(told)] if told else []
            if reason:
                shapes[next(iter(shapes))] = ForeignSpec(reason)
        elif DEEP not in shapes.values() and MANY not in shapes.values():
            same += [id(x) for x in tree_items(originals) if _has_identity(x)]
            same += [id(x) for x in originals.values() if isinstance(x, (tuple, dict))]
        first = {x: place for place, x in reversed([*enumerate(same)])}
        aliases = () if len(first) == len(same) else tuple([first[x] for x in same])
        key = (batched, aliases, positional, tuple(keys), *shapes.items())
        signature = self.signatures.get(key)
        if signature is None:
            new_signature = Signature(of_function, shapes, batched, key, bool(aliases), self.tells_objects, positional)
            with _lock:  # `setdefault` of a WeakValueDictionary may let two threads be first
                signature = self.signatures.setdefault(key, new_signature)
        return Arguments(args, named, originals, signature, arrays, passed, static)

    def _same(self, originals: dict[str, Any], batched: bool, *call: Any) -> tuple[list[int], list[Any], str]:
        """Say which objects in the arguments are the same. The `call` is what `rows_of` takes.

        Returns:
            The identities of all objects in the arguments, of a batch none, as in no example two may be the same; for
            each static object its identity if the function also reads it elsewhere, else None; and the reason why the
            function itself serves such arguments, or an empty text.
        """
        of_function, static, args, named = call
        several = [specialization for entry in list(self.entries.values()) for specialization in entry.specializations]
        held = {id(x) for specialization in several for x in specialization.captures.floats()}

        def parts_of(name: str, x: Any) -> list[tuple[str, ArgumentPart]]:
            parts = [ArgumentPart(part, True) for part in parts_of_key(x)] if name in static else _parts(x)
            return [(name, part) for part in parts]

        if not batched:
            return self._same_in(held, [part for name, x in originals.items() for part in parts_of(name, x)])
        told: list[Any] = []
        bound = bound_to(of_function, args, named)
        names = [] if bound is None else [*bound.arguments]
        for row in rows_of(self.read, of_function, static, args, named)[1]:
            parts = [part for name, x in zip(names, row, strict=True) for part in parts_of(name, x)]
            _, told, reason = self._same_in(held, parts)
            apart = [x for _, (x, _) in parts if id(x) not in SMALL and type(x) not in (str, bytes)]
            if reason or len({*map(id, apart)}) < len(apart):
                return [], [], (
                    "it asks whether two objects are the same, and in an example of the batch some are: pass a number "
                    "or a flag that tells, or make single calls"
                )
        return [], told, ""

    def _same_in(
        self, held: Container[int], parts: Sequence[tuple[str, ArgumentPart]]
    ) -> tuple[list[int], list[Any], str]:
        """Return for one example what `_same` does for a call; `held` has the identities of captured floats."""
        reason, told = "", []
        for name, (x, is_static) in parts:
            is_elsewhere = id(x) in self.elsewhere or id(x) in held
            if is_static:
                told.append(id(x) if is_elsewhere else None)
            elif is_elsewhere and not reason:
                what, instead = "an object that it reads elsewhere, too", "pass a number or a flag that tells"
                if type(x) is int:
                    what, instead = "an int that may be one it has from elsewhere", "write ==, or pass floats"
                reason = f"it asks whether two objects are the same, and {name} is, or has in it, {what}: {instead}"
        identities = [id(x) for _, (x, _) in parts if id(x) not in SMALL]
        return identities, told if any(told) else [], reason

    def add(self, objects: Sequence[Any]) -> None:
        """Note objects that a recorded run read from elsewhere than the arguments. None, bools and objects compared by
        identity are left out: no argument can be equal to them and not the same object.
        """
        noted = [x for x in objects if x is not None and type(x) is not bool]
        noted = [x for x in noted if isinstance(x, REPLACED) or type(key_of(x)) is not Itself]
        self.elsewhere.update([(id(x), x) for x in noted])


def _static(name: str, x: Any) -> Any:
    """Return the key of a static argument.

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


def _numbers_of(leaf: ArraySpec, array: Any) -> Any:
    if leaf.kind == "v":
        return np.array([v.data for v in np.ravel(array)]).reshape(leaf.shape) if leaf.shape else np.float64(array.data)
    return array
