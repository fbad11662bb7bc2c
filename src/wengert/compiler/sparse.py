"""Sparse derivatives: `jacobian` and `hessian` with `sparse=True`, and `sparsity`, their patterns alone."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from wengert.compiler.derive import hessian_pattern, jacobian_pattern
from wengert.compiler.function import Compiled, compile
from wengert.compiler.ir import Array, Program
from wengert.compiler.trace import Signature, StaticSpec
from wengert.derivatives import Numbers, coloring, tree_leaves
from wengert.engine import Value
from wengert.errors import ArgumentError, require

__all__ = ["SparseDerivative", "sparsity"]


class SparseDerivative:
    """A Jacobian or Hessian as a sparse matrix: what `sparse=True` returns.

    Args:
        entries: from `entries_of`.

    Attributes:
        compiled: the compiled function that computes the entries.
        pattern: the places that calls so far may have filled; None before the first one.
    """

    def __init__(self, entries: Any) -> None:
        self._sparse: Any = require("scipy.sparse", "sparse")
        functools.update_wrapper(self, entries)
        self.compiled: Any = entries if isinstance(entries, Compiled) else compile(entries)
        self.pattern: coloring.Pattern | None = None
        self._places: dict[int, Any] = {}  # for each pattern of a program the places in the joined one

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Return the derivative as a `scipy.sparse.csr_array`.

        Raises:
            ArgumentError: a Value is among the arguments, or what `jacobian` and `hessian` raise.
        """
        if any(isinstance(x, Value) for arg in (*args, *named.values()) for x in _items(arg)):
            raise ArgumentError("sparse=True takes floats: SciPy's matrices hold no Values. Leave it out for Values")
        entries = self.compiled(*args, **named)
        number, pattern = int(entries[0]), self.pattern
        made = self.compiled._runtime.derived
        own = None if made is None else made.patterns.get(number)
        if own is None:
            return self._sparse.csr_array(entries[3:].reshape(int(entries[1]), int(entries[2])))
        if pattern is None or number not in self._places:
            pattern = self._join(number, own)
        data = entries[1:]
        if len(pattern.indices) > len(data):
            data = np.zeros(len(pattern.indices))
            data[self._places[number]] = entries[1:]
        return self._sparse.csr_array((data, pattern.indices, pattern.indptr), pattern.shape)

    def _join(self, number: int, own: coloring.Pattern) -> coloring.Pattern:
        """Join the pattern of a program to those of others."""
        known = [own] if self.pattern is None else [self.pattern, own]
        rows, columns = (np.concatenate(each) for each in zip(*[(x.rows, x.indices) for x in known], strict=True))
        joined = coloring.Pattern.of(rows, columns, own.shape)
        codes = joined.rows * joined.columns + joined.indices
        patterns = self.compiled._runtime.derived.patterns
        self._places = {
            n: np.searchsorted(codes, patterns[n].rows * joined.columns + patterns[n].indices)
            for n in (*self._places, number)
        }
        self.pattern = joined
        return joined

    def source(self, language: str = "c") -> str:
        """Return the program of the last call as source code: in C a function that fills in the nonzeros in the order
        of the matrix that such a call returns, with the pattern as constants. For errors see `Compiled.source`.
        """
        text: str = self.compiled.source(language)
        return text

    def report(self) -> str:
        """Describe what was compiled, like the `report` of a compiled function."""
        text: str = self.compiled.report()
        return text


def _items(x: Any) -> list[Any]:
    """List the items of nested lists, tuples and dicts, and of arrays of objects."""
    if isinstance(x, np.ndarray):
        return x.reshape(-1).tolist() if x.dtype == object else []
    if isinstance(x, (list, tuple, dict)):
        return [item for part in (x.values() if isinstance(x, dict) else x) for item in _items(part)]
    return [x]


def sparsity(function: Callable[..., Any], argnums: int = 0, order: int = 1) -> Callable[..., Any]:
    """Return a function that gives the places where the Jacobian or the Hessian of another one may be nonzero.

    The function is recorded for arguments like those given, and the pattern is found from its operations, not from
    numbers. So an entry that happens to be 0 counts, such as that of `relu(x)` for negative x, and so does each item
    that an integer argument may choose. Where the function branches on numbers, the pattern has all branches that the
    calls of the returned function have seen.

    Args:
        function: as for `jacobian`, or for `hessian` with `order=2`.
        argnums: the positional argument to differentiate with respect to.
        order: 1 for the Jacobian, 2 for the Hessian.

    Returns:
        A function of the same arguments that returns a `scipy.sparse.csr_array` of bools: a row for each number of the
        result (of the argument, for a Hessian), and a column for each number of the argument.

    Raises:
        ArgumentError: the order is neither 1 nor 2; or when called: the function cannot be recorded, there is no such
            argument, or a Hessian is asked for of several results.
        MissingExtraError: SciPy is not installed.

    >>> sparsity(lambda x: [x[0] * x[1], x[2] ** 2])([1.0, 2.0, 3.0]).toarray().astype(int).tolist()
    [[1, 1, 0], [0, 0, 1]]
    >>> sparsity(lambda x: x[0] * x[1] + x[2] ** 2, order=2)([1.0, 2.0, 3.0]).toarray().astype(int).tolist()
    [[0, 1, 0], [1, 0, 0], [0, 0, 1]]
    """
    if order not in (1, 2):
        raise ArgumentError(f"order is {order!r}; expected 1 for the Jacobian or 2 for the Hessian")
    sparse = require("scipy.sparse", "sparse")
    find = hessian_pattern if order == 2 else jacobian_pattern
    plain, static = getattr(function, "function", function), getattr(function, "static", ())  # of a compiled one
    compiled = compile(plain, static=static, backend="numpy", checks="first")
    name = getattr(function, "__name__", "the function")
    known: dict[int, tuple[Program, coloring.Pattern]] = {}  # by the id of a program

    @functools.wraps(plain)
    def pattern_of(*args: Any, **named: Any) -> Any:
        args, named = _by_position(compiled.signature, args, named)
        if not isinstance(argnums, int) or not -len(args) <= argnums < len(args):
            raise ArgumentError(f"argnums is {argnums!r}, and {name} was called with {len(args)} positional arguments")
        place = argnums % len(args)
        given = Numbers(args[place], f"args[{place}]")
        floats = given.unflatten([x.data if isinstance(x, Value) else x for x in given.leaves])
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".* runs uncompiled")  # an error says so
            result = compiled(*args[:place], floats, *args[place + 1 :], **named)
        entry = compiled._runtime.last
        try:
            latest = compiled._runtime.latest()
        except ArgumentError:
            raise ArgumentError(f"{name} cannot be recorded: {entry.fallback_reason or entry.clause}") from None
        programs = [made.kernel.program for made in [*entry.specializations, latest]]
        for program in programs:
            if order == 2 and program.outputs["out"].size != 1:
                raise ArgumentError(f"a Hessian needs a function that returns one number, and {name} returned several")
            if id(program) not in known:
                known[id(program)] = program, find(program, _inputs(program, entry.signature, place))
        patterns = [known[number][1] for number in dict.fromkeys(map(id, programs))]
        shape = patterns[0].shape
        if order == 1 and len(Numbers(result, f"the result of {name}").leaves) != shape[0]:
            raise ArgumentError(f"the result of {name} contains a list or an array twice: return a copy of it")
        rows, columns = (np.concatenate(each) for each in zip(*[(x.rows, x.indices) for x in patterns], strict=True))
        joined = coloring.Pattern.of(rows, columns, shape)
        return sparse.csr_array((np.ones(len(joined.indices), bool), joined.indices, joined.indptr), shape)

    return pattern_of


def _by_position(signature: inspect.Signature, args: Any, named: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Make keyword arguments positional where the signature allows it, since `argnums` counts positions."""
    try:
        bound = signature.bind(*args, **named)
    except TypeError:
        return args, named  # the call will raise the error
    return bound.args, bound.kwargs


def _inputs(program: Program, signature: Signature, place: int) -> list[Array]:
    """Return the arrays of an argument's numbers, in order."""
    shapes = list(signature.shapes.values())
    counts = [sum(not isinstance(leaf, StaticSpec) for _, leaf in tree_leaves(shape)) for shape in shapes]
    first = sum(counts[:place])
    arrays = {array.name: array for array in program.arrays if array.role == "input"}
    return [arrays[name] for name in signature.names[first : first + counts[place]]]
