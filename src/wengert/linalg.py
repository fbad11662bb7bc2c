"""Small systems of linear equations: `solve`, `inv` and `det`, with numbers and Values as entries.

NumPy's functions of the same names take no objects, so these are called in their place. The derivative of a solution is
that of the equations, not of the steps that found it: from A x = b follows A dx = db - dA x, so each derivative is a
solution of a system with the same matrix, to any order. (M. Giles, "Collected matrix derivative results for forward and
reverse mode algorithmic differentiation", 2008.) The derivative of a determinant with respect to an entry is its
cofactor (Jacobi), also where the matrix is singular.

A small system is solved here, by the operations that a compiled function has in its program, so that both round alike;
a larger one by NumPy.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from wengert.engine import Value
from wengert.errors import LengthError, require
from wengert.node import refuse
from wengert.ops import BY_NAME, Op, by_rule, coerce, row, table

__all__ = ["det", "inv", "solve"]

FEW = 3  # rows of a determinant whose derivatives are recorded as cofactors, without a branch for a singular matrix
MOST = 12  # unknowns of a system in a compiled function: its program has an operation for each step of the elimination


def solve(a: Any, b: Any) -> Any:
    """Return the solution x of the linear equations ``a @ x = b``, an array of the shape of b.

    Args:
        a: n rows of n numbers or Values, an array or lists.
        b: n numbers or Values, or n rows of them: one column for each system.

    The elimination chooses pivots by size. A compiled function has it as operations of its program, whatever the pivots
    are, for at most 12 unknowns; with more it runs uncompiled. A node holds n * n + n operands.

    Raises:
        numpy.linalg.LinAlgError: a is singular. In a compiled function too.
        LengthError: a is not square, or b has another length.
        OperandError: an entry is neither a number nor a Value.
        MissingExtraError: NumPy is not installed.

    >>> from wengert.engine import Value
    >>> k = Value(2.0)
    >>> x = solve([[k, 0.0], [1.0, 4.0]], [2.0, 5.0])
    >>> x[1].backward()
    >>> [u.data for u in x], k.grad
    ([1.0, 1.0], 0.125)
    """
    np = require("numpy", "array")
    (a, computes), (b, also) = array_and_kind(a), array_and_kind(b)
    if not (computes or also) and (a.ndim != 2 or len(a) > MOST):
        return np.linalg.solve(a, b)
    n = _square(a, "solve")
    if b.ndim not in (1, 2) or len(b) != n:
        raise LengthError(f"solve: b has the shape {b.shape}; expected {n} numbers, or {n} rows, as a has {n} rows")
    if not (computes or also):
        return np.array(_eliminated(a.tolist(), b.reshape(n, -1).tolist())[0]).reshape(b.shape)
    entries, columns = a.reshape(-1).tolist(), b.reshape(n, -1).T.tolist()
    traced = _are_traced(a, b)
    if traced:
        if n > MOST:
            refuse(f"solves a system of {n} unknowns, where a compiled function takes at most {MOST}: solve it before")
        x, inverse = _numbers(b.reshape(n, -1)), np.eye(n).tolist()
        derives = _has_values([*a.flat, *b.flat]) and (also or x != inverse)
        x, _ = _eliminated(_numbers(a), [[*y, *one] for y, one in zip(x, inverse, strict=True)] if derives else x)
        inverse = [each[-n:] for each in x]
    made = np.empty((n, len(columns)), object)
    for c, column in enumerate(columns):
        operands = [*entries, *column]
        for i in range(n):
            if not traced:
                made[i, c] = _solution(n)(float(i), *operands)
            elif not _has_values(operands):
                made[i, c] = x[i][c]
            else:
                slopes = _slopes(inverse[i], [each[c] for each in x])
                made[i, c] = _recorded(_solution(n), x[i][c], [float(i), *operands], [0.0, *slopes])
    return made.reshape(b.shape)


def inv(a: Any) -> Any:
    """Return the inverse of a matrix; for its product with a vector `solve` is better. Errors are those of `solve`.

    >>> from wengert.engine import Value
    >>> x = Value(4.0)
    >>> y = inv([[x, 0.0], [0.0, 1.0]])[0, 0]
    >>> y.backward()
    >>> y.data, x.grad
    (0.25, -0.0625)
    """
    np = require("numpy", "array")
    a, computes = array_and_kind(a)
    return np.linalg.inv(a) if a.ndim > 2 and not computes else solve(a, np.eye(_square(a, "inv")))


def det(a: Any) -> Any:
    """Return the determinant of a matrix; of a singular one it is 0, with derivatives. Other errors are as of `solve`.

    >>> from wengert.engine import Value
    >>> x = Value(3.0)
    >>> y = det([[x, 2.0], [1.0, x]])
    >>> y.backward()
    >>> round(y.data, 9), x.grad
    (7.0, 6.0)
    """
    np = require("numpy", "array")
    a, computes = array_and_kind(a)
    if a.ndim > 2 and not computes:
        return np.linalg.det(a)
    n, entries = _square(a, "det"), a.reshape(-1).tolist()
    if not _are_traced(a):
        return _determinant(n)(*entries)
    if n > MOST:
        refuse(f"computes a determinant of {n} rows, where a compiled function takes at most {MOST}: do it before")
    rows = _numbers(a)
    found = _eliminated(rows, [])[1]
    return _recorded(_determinant(n), found, entries, _cofactors(rows)) if _has_values(entries) else found


# -- what is given ----------------------------------------------------------------------------------------------------


def array_and_kind(x: Any) -> tuple[Any, bool]:
    """Return an array, and whether Values or numbers that are being recorded are in it; else it is one of floats."""
    np = require("numpy", "array")
    made = np.asarray(x)
    if made.dtype != object:
        return made, False
    if any(hasattr(item, "_apply_op") for item in made.flat):
        for item in made.flat:
            if not hasattr(item, "_apply_op"):
                coerce.data(item)  # or an error that names it
        return made, True
    return np.array([coerce.data(item) for item in made.flat]).reshape(made.shape), False


def number_of(x: Any) -> Any:
    """Return the number of a Value, and other numbers as they are. While a function is recorded, it is recorded too."""
    return x.data if isinstance(x, Value) else x


def _square(a: Any, name: str) -> int:
    if a.ndim != 2 or a.shape[0] != a.shape[1]:
        raise LengthError(f"{name}: a has the shape {a.shape}; expected a square matrix, n rows of n numbers")
    return len(a)


def _numbers(a: Any) -> list[list[Any]]:
    return [[number_of(x) for x in row] for row in a.tolist()]


def _are_traced(*arrays: Any) -> bool:
    return any(type(number_of(x)) in coerce.OWN for a in arrays for x in a.flat)


def _has_values(operands: Iterable[Any]) -> bool:
    return any(isinstance(x, Value) for x in operands)


# -- the rules --------------------------------------------------------------------------------------------------------


def _solution(n: int) -> Op:
    """Return the operation that gives unknown i of n equations; its operands are i, the matrix, the right side."""
    name = f"solve {n}"
    if name in BY_NAME:
        return BY_NAME[name]

    def split(xs: Any) -> tuple[Any, Any]:
        a = require("numpy", "array").array(xs[: n * n])
        return a.reshape(n, n), list(xs[n * n :])

    @lru_cache(4)  # the unknowns are asked for one after another
    def solved(numbers: bytes) -> tuple[list[float], list[list[float]]]:
        np = require("numpy", "array")
        a, b = split(np.frombuffer(numbers))
        if n > MOST:
            return np.linalg.solve(a, np.array(b)).tolist(), np.linalg.inv(a).tolist()
        rows, _ = _eliminated(a.tolist(), [[y, *one] for y, one in zip(map(float, b), np.eye(n).tolist(), strict=True)])
        return [x for x, *_ in rows], [each[1:] for each in rows]

    def value(i: float, *xs: float) -> float:
        return solved(array("d", xs).tobytes())[0][int(i)]

    def partials(out: Any, i: float, *xs: Any) -> list[Any]:
        if not _has_values(xs):
            x, inverse = solved(array("d", xs).tobytes())
            return [0.0, *_slopes(inverse[int(i)], x)]
        a, b = split(xs)
        return [0.0, *_slopes(solve(a.T, [float(k == i) for k in range(n)]).tolist(), solve(a, b).tolist())]

    return row(name, n * n + n + 1, "solve", "an unknown of a system of linear equations", value, partials)


def _slopes(inverse: list[Any], x: list[Any]) -> list[Any]:
    """Return the derivatives of an unknown with respect to the matrix and the right side: its row of the inverse."""
    return [*[y * unknown for y in [-y for y in inverse] for unknown in x], *inverse]


def _determinant(n: int) -> Op:
    """Return the operation that gives the determinant of n rows."""
    np, name = require("numpy", "array"), f"det {n}"
    if name in BY_NAME:
        return BY_NAME[name]

    def rows(xs: Any) -> list[list[Any]]:
        return [list(xs[i : i + n]) for i in range(0, n * n, n)]

    def value(*xs: float) -> float:
        return float(_eliminated(rows(xs), [])[1] if n <= MOST else np.linalg.det(np.array(rows(xs))))

    def partials(out: Any, *xs: Any) -> list[Any]:
        return _cofactors(rows(xs))

    return row(name, n * n, "det", "the determinant of a matrix", value, partials)


def _cofactors(a: list[list[Any]]) -> list[Any]:
    """Return the derivatives of a determinant: it times the inverse, if there is one and no more than numbers are asked
    for, else the determinants without a row and a column.
    """
    np, n = require("numpy", "array"), len(a)
    if n > FEW and not any(map(_has_values, a)):
        try:
            if n > MOST:
                return (np.linalg.det(a) * np.linalg.inv(a).T).reshape(-1).tolist()  # type: ignore[no-any-return]
            inverse, found = _eliminated(a, np.eye(n).tolist())
            return [found * x for column in zip(*inverse, strict=True) for x in column]
        except np.linalg.LinAlgError:
            pass
    return [
        (-1.0) ** (i + j) * det([[x for k, x in enumerate(each) if k != j] for each in (*a[:i], *a[i + 1 :])])
        for i in range(n if n > 1 else 0)
        for j in range(n)
    ] or [1.0]


# -- while a function is recorded -------------------------------------------------------------------------------------


def _recorded(op: Op, out: Any, operands: list[Any], slopes: list[Any]) -> Any:
    """Return the result of an operation whose value and derivatives were computed from recorded numbers."""
    pairs = [out]
    for x, slope in zip(operands, slopes, strict=True):
        pairs += [x, slope if isinstance(x, Value) else 0.0]
    return next(x for x in operands if isinstance(x, Value))._apply_op(by_rule(op), pairs)


def _eliminated(a: list[list[Any]], b: list[list[Any]]) -> tuple[list[list[Any]], Any]:
    """Solve systems by Gauss elimination with partial pivoting; which rows are exchanged is computed, not branched on.

    Returns:
        The unknowns, and the determinant. With an empty b, only that; a pivot of 0 has only zeros below it.

    Raises:
        LinAlgError: a pivot is 0.
    """
    n, found = len(a), 1.0
    rows = [[*x, *y] for x, y in zip(a, b, strict=True)] if b else [[*x] for x in a]
    for k in range(n):
        for i in range(k + 1, n):
            found = _exchange(rows, k, i) * found
        pivot = rows[k][k]
        found = found * pivot
        if not b:
            pivot = table.where(pivot == 0.0, 1.0, pivot)
        elif pivot == 0.0:
            raise require("numpy", "array").linalg.LinAlgError("Singular matrix")
        for i in range(k + 1, n):
            _subtract(rows[i], table.div(rows[i][k], pivot), rows[k], k + 1)
    for k in reversed(range(n if b else 0)):
        rows[k][n:] = [table.div(x, rows[k][k]) for x in rows[k][n:]]
        for i in range(k):
            _subtract(rows[i], rows[i][k], rows[k], n)
    return [each[n:] for each in rows], found


def _exchange(rows: list[list[Any]], k: int, i: int) -> Any:
    """Exchange two rows if that makes item k of the first larger; return -1 if they are exchanged, else 1."""
    above, below = rows[k], rows[i]
    swap = abs(below[k]) > abs(above[k])
    if type(swap) not in coerce.OWN:  # of numbers that are constants of the program
        rows[k], rows[i] = (below, above) if swap else (above, below)
        return -1.0 if swap else 1.0
    for j in range(k, len(above)):
        x, y = above[j], below[j]
        if type(x) is not float or (x is not y and x != y):  # not where both are 0
            above[j], below[j] = table.where(swap, y, x), table.where(swap, x, y)
    return table.where(swap, -1.0, 1.0)


def _subtract(row: list[Any], factor: Any, pivot: list[Any], start: int) -> None:
    for j in range(start, len(row)):
        if type(pivot[j]) is not float or pivot[j]:  # not where nothing changes
            row[j] = row[j] - factor * pivot[j]
