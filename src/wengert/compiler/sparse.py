"""`sparsity`: which derivatives of a function are not 0 everywhere, as sparse matrices of SciPy's."""

from __future__ import annotations

import functools
import inspect
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from wengert.compiler.derive import hessian_pattern, jacobian_pattern
from wengert.compiler.function import compile
from wengert.compiler.ir import Array, Program
from wengert.compiler.trace import Signature, StaticSpec
from wengert.derivatives import Numbers, coloring, tree_leaves
from wengert.engine import Value
from wengert.errors import ArgumentError, require

__all__ = ["sparsity"]


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
