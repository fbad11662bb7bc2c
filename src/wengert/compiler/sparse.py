"""Sparse derivatives: `jacobian` and `hessian` with `sparse=True`, and `sparsity`, their patterns alone."""

from __future__ import annotations

import copy
import functools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from wengert.compiler.arguments import bound_to
from wengert.compiler.derive import gradient, jacobian_pattern
from wengert.compiler.function import Compiled, compile
from wengert.compiler.ir import Program
from wengert.compiler.record import lines_apart
from wengert.derivatives import Numbers, coloring, derivations_of, items_of
from wengert.engine import Value
from wengert.errors import ArgumentError, Line, require

__all__ = ["SparseDerivative", "sparsity"]


class SparseDerivative:
    """A Jacobian or Hessian as a sparse matrix: what `sparse=True` returns.

    Args:
        entries: from `entries_of`.
        sparsity: the pattern that each result has; None for the places that calls so far may have filled.

    Raises:
        ArgumentError: `sparsity` is no matrix.
        MissingExtraError: SciPy is not installed.

    Attributes:
        compiled: the compiled function that computes the entries.
    """

    def __init__(self, entries: Any, sparsity: Any = None) -> None:
        self._sparse: Any = require("scipy.sparse", "sparse")
        functools.update_wrapper(self, entries)
        self.compiled: Any = entries if isinstance(entries, Compiled) else compile(entries)
        pattern = None if sparsity is None else self._given(sparsity)
        self._pinned: coloring.Pattern | None = pattern
        # For each shape a pattern, and for each program's own, by its id, the places of its entries, those that it has
        # outside, and itself, so that no other one gets this id.
        self._joined: dict[Any, tuple[coloring.Pattern, dict[int, Any]]]
        self._joined = {} if pattern is None else {pattern.shape: (pattern, {})}
        self._matrices: dict[Any, Any] = {}  # for each shape a matrix of its pattern

    def __call__(self, *args: Any, **named: Any) -> Any:
        """Return the derivative as a `scipy.sparse.csr_array`.

        Raises:
            ArgumentError: a Value is among the arguments, `sparsity` has another shape or leaves out an entry that is
                not 0, or what `jacobian` and `hessian` raise.
        """
        if any(isinstance(x, Value) for arg in (*args, *named.values()) for x in items_of(arg)):
            raise ArgumentError("sparse=True takes floats: SciPy's matrices hold no Values. Leave it out for Values")
        own, numbers = self.compiled(*args, **named)
        data = numbers[: len(own.indices)]
        pattern, places, outside = self._placed(own)
        if len(outside) and data[outside].any():
            self._refuse(own, data, outside)
        if len(outside) or len(data) < len(pattern.indices):
            given, data = data, np.zeros(len(pattern.indices) + 1)
            data[places] = given
            data = data[:-1]
        template = self._matrices.get(pattern.shape)
        if template is None or len(template.indices) < len(pattern.indices):  # the pattern of a shape only grows
            zeros = np.zeros(len(pattern.indices))
            template = self._sparse.csr_array((zeros, pattern.indices, pattern.indptr), pattern.shape)
            self._matrices[pattern.shape] = template
        matrix = copy.copy(template)  # a new one takes ten times as long: SciPy checks its indices
        matrix.data, matrix.indices, matrix.indptr = data, template.indices.copy(), template.indptr.copy()
        return matrix

    def _placed(self, own: coloring.Pattern) -> tuple[coloring.Pattern, Any, Any]:
        """Return the pattern of the result, the place in it of each entry of a call, and which entries have none."""
        pattern, places = self._joined.get(own.shape, (own, {}))
        if id(own) in places:
            at, outside, _ = places[id(own)]
            return pattern, at, outside
        codes, of_programs = own.codes, self._of_programs()
        if self._pinned is None:
            others = [x.codes for x in of_programs if x.shape == own.shape]
            joined = coloring.distinct(np.concatenate([pattern.codes, codes, *others]))
            if own is pattern or len(joined) > len(pattern.indices):
                pattern, places = coloring.Pattern.of_codes(joined, own.shape), {}
                self._joined[own.shape] = pattern, places
        elif self._pinned.shape != own.shape:
            raise ArgumentError(
                f"sparsity has the shape {self._pinned.shape}, and {self._named()} has {own.shape}: a row for each "
                "number of the result (of the argument, for a Hessian), a column for each number of the argument"
            )
        outside = np.flatnonzero(~np.isin(codes, pattern.codes, assume_unique=True))
        at = np.searchsorted(pattern.codes, codes)
        at[outside] = len(pattern.indices)
        if any(x is own for x in of_programs):
            places[id(own)] = at, outside, own
        return pattern, at, outside

    def _of_programs(self) -> list[coloring.Pattern]:
        """List the patterns of the programs for calls like the last one, also of one that still waits."""
        entry = self.compiled._server.last
        programs = [] if entry is None else [*entry.specializations, entry.candidate]
        structures = [each.structure for each in programs if each is not None]
        return [x.pattern for x in structures if x is not None and x.pattern is not None]

    def _named(self) -> str:
        of = "Hessian" if [each.kind for each in derivations_of(self.compiled)[1]] == ["grad", "sparse"] else "Jacobian"
        return f"the {of} of {getattr(self.compiled.function, '__name__', 'the function')}"

    def _refuse(self, own: coloring.Pattern, data: Any, outside: Any) -> None:
        """Raise an error that names an entry outside the given pattern, and the lines that branch, or else define f."""
        at, entry, where = outside[np.flatnonzero(data[outside])[0]], self.compiled._server.last, ""
        if any(x is own for x in self._of_programs()):
            lines = lines_apart([each.guards for each in entry.specializations])
            where = lines or "; ".join(entry.latest.guards.lines[:3])
        where = f"It branched at {where}. " if where else ""
        if not where and (code := getattr(derivations_of(self.compiled)[0], "__code__", None)) is not None:
            where = f"It is defined at {Line(code.co_filename, code.co_firstlineno)}. "
        raise ArgumentError(
            f"{self._named()} is {data[at]} in row {own.rows[at]}, column {own.indices[at]}, where sparsity has no "
            f"entry. {where}Add this place to the pattern, or leave sparsity out"
        )

    def _given(self, sparsity: Any) -> coloring.Pattern:
        """Return the pattern of a matrix: the stored places of a sparse one, the nonzeros of any other."""
        matrix: Any = sparsity
        if callable(sparsity):
            raise ArgumentError("sparsity is a function; expected a matrix: call it with the arguments, sparsity(f)(x)")
        if not self._sparse.issparse(sparsity):
            try:
                matrix = np.array(sparsity, float)
            except (TypeError, ValueError):
                matrix = np.zeros(())
        if matrix.ndim != 2:
            raise ArgumentError(f"sparsity is {sparsity!r}; expected a sparse matrix of SciPy, or zeros and ones")
        rows, columns = np.nonzero(matrix) if matrix is not sparsity else ((x := matrix.tocoo()).row, x.col)
        return coloring.Pattern.of(rows.astype(np.int64), columns.astype(np.int64), matrix.shape)

    def _compiled_with(self, **options: Any) -> SparseDerivative:
        """Return the same, with its entries compiled with such options: what `compile` gives for it."""
        derivative = copy.copy(self)
        derivative._joined = {} if self._pinned is None else {self._pinned.shape: (self._pinned, {})}
        derivative.compiled, derivative._matrices = compile(self.compiled.function, **options), {}
        return derivative

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


def sparsity(function: Callable[..., Any], argnums: int = 0, order: int = 1) -> Callable[..., Any]:
    """Return a function that gives the places where the Jacobian or the Hessian of another one may be nonzero.

    The function is recorded for arguments like those given, and the pattern follows from its operations, not from
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
    plain, static = getattr(function, "function", function), getattr(function, "static", ())  # of a compiled one
    compiled = compile(plain, static=static, backend="numpy", checks="first")
    name = getattr(function, "__name__", "the function")
    recorded: dict[int, tuple[Program, coloring.Pattern]] = {}  # by the id of a program

    @functools.wraps(plain)
    def pattern_of(*args: Any, **named: Any) -> Any:
        bound = bound_to(compiled.signature, args, named)  # `argnums` counts positions
        if bound is not None:  # else the call will raise the error
            args, named = bound.args, bound.kwargs
        if not isinstance(argnums, int) or not -len(args) <= argnums < len(args):
            raise ArgumentError(f"argnums is {argnums!r}, and {name} was called with {len(args)} positional arguments")
        place = argnums % len(args)
        given = Numbers(args[place], f"args[{place}]")
        floats = given.unflatten([x.data if isinstance(x, Value) else x for x in given.leaves])
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".* runs uncompiled")  # an error says so
            result = compiled(*args[:place], floats, *args[place + 1 :], **named)
        entry = compiled._server.last
        try:
            latest = compiled._server.latest()
        except ArgumentError:
            raise ArgumentError(f"{name} cannot be recorded: {entry.fallback_reason or entry.clause}") from None
        programs = [each.kernel.program for each in [*entry.specializations, latest]]
        for program in programs:
            if order == 2 and program.outputs["out"].size != 1:
                raise ArgumentError(f"a Hessian needs a function that returns one number, and {name} returned several")
            if id(program) not in recorded:
                names = entry.signature.arrays[list(entry.signature.shapes)[place]]
                recorded[id(program)] = program, _pattern(program, names, order)
        patterns = [recorded[number][1] for number in dict.fromkeys(map(id, programs))]
        shape = patterns[0].shape
        if order == 1 and len(Numbers(result, f"the result of {name}").leaves) != shape[0]:
            raise ArgumentError(f"the result of {name} contains a list or an array twice: return a copy of it")
        joined = coloring.Pattern.of_codes(coloring.distinct(np.concatenate([x.codes for x in patterns])), shape)
        return sparse.csr_array((np.ones(len(joined.indices), bool), joined.indices, joined.indptr), shape)

    return pattern_of


def _pattern(program: Program, names: list[str], order: int) -> coloring.Pattern:
    if order == 2:
        program = copy.deepcopy(program)
        gradient(program, names)
    inputs = {array.name: array for array in program.of_role("input")}
    pattern = jacobian_pattern(program, [inputs[name] for name in names])
    return pattern if order == 1 else pattern.symmetric
