"""Every row of the table as a function and as a method, and `op`, which registers your own operations.

`tanh(0.5)` is a float; `tanh(x)` of a Value is a Value, and so is `x.tanh()`. The functions are made from the rows of
the table when this module is loaded; `functions.pyi`, generated from the same rows, shows them to editors.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Sequence
from types import FunctionType
from typing import Any, Literal

from wengert._signatures import signature
from wengert.errors import LengthError, OperandError, OperationError, refer
from wengert.ops import METHODS, named, register, table

__all__ = ["log_softmax", "matmul", "op", "pick", "softmax", "take"]  # and rows, below


class Functions:
    """The methods that the table gives a Value: `x.tanh()` for the row tanh, and so on."""

    __slots__ = ()
    __array_priority__: float = -1.0  # makes NumPy's scalars leave an operation with a Value to the Value


def _publish(row: table.Op) -> Callable[..., Any]:
    """Publish a row under its names as a method, and return it as a plain function."""
    methods = METHODS[row.name]

    def function(*operands: Any) -> Any:
        if len(operands) == 1:
            method = methods.get(type(operands[0]))
            if method is not None:
                return method(operands[0])
        return row(*operands)

    function.__name__ = function.__qualname__ = row.name
    function.__doc__ = row.about
    function._positions = None if row.arity is None else (row.arity, row.defaults)  # type: ignore[attr-defined]
    for name in (row.name, *row.aliases):
        if row.arity is not None and not row.shapes:
            setattr(Functions, name, function)
        elif isinstance(vars(Functions).get(name), FunctionType):  # of an operation that is being replaced
            delattr(Functions, name)
    return function


for _row in [row for row in table.TABLE[: table.BUILT_IN] if row.value]:
    globals().update(dict.fromkeys((_row.name, *_row.aliases), _publish(_row)))
    __all__ += [name for name in (_row.name, *_row.aliases) if name != "dot" and not hasattr(builtins, name)]


_ONE = "a Value is one number"
refer(
    Functions,
    {
        "softmax": f"{_ONE}; for a list, write wengert.softmax(values) or losses.cross_entropy(values, label)",
        "log_softmax": f"{_ONE}; for a list, write wengert.log_softmax(values)",
        "logsumexp": f"{_ONE}; for a list, write wengert.logsumexp(values)",
        "sum": f"{_ONE}; for a list, write sum(values)",
        "mean": f"{_ONE}; for a list, write wengert.mean(values)",
        "matmul": f"{_ONE}; for lists, write wengert.matmul(a, b)",
        "dot": f"{_ONE}; for lists, write wengert.dot(ws, xs)",
        **{name: f"{_ONE}; for a list, write wengert.{name}(values)" for name in ("max", "min")},
        "argmax": f"{_ONE}; for a list, write values.index(max(values))",
        "norm": f"{_ONE}; for a list, write wengert.norm(values)",
        **dict.fromkeys(("shape", "size"), f"{_ONE}; arrays are lists of Values, with len(values)"),
        **dict.fromkeys(("ndim", "dtype"), f"{_ONE}, a float; arrays are lists of Values"),
        **dict.fromkeys(("T", "transpose", "mT"), f"{_ONE}; for a list of rows, write list(zip(*rows))"),
        **dict.fromkeys(
            ("reshape", "view", "flatten", "squeeze", "unsqueeze", "permute"),
            f"{_ONE}; arrays are lists of Values, which need no shape",
        ),
        **dict.fromkeys(("numpy", "value", "tolist", "float"), "its number is x.data"),
        "clone": "write x * 1.0 for a node of its own, or Value(x.data) for a leaf",
        "zero_grad": "write x.grad = 0.0; models and optimizers have a zero_grad()",
        **dict.fromkeys(("retain_grad", "retains_grad"), "every Value keeps its gradient"),
        "grad_fn": "see wengert.draw(x), wengert.explain(x) or wengert.steps(x)",
        **dict.fromkeys(
            ("requires_grad", "requires_grad_"), "every Value has a gradient, but those made in wengert.no_grad()"
        ),
        **dict.fromkeys(
            ("cpu", "cuda", "to", "device", "is_cuda"),
            "a Value is on no device; wengert.compile(f, backend='xla') runs f on one",
        ),
        **dict.fromkeys(
            ("add_", "copy_", "fill_", "mul_", "sub_", "zero_"), "set its number, as in x.data -= 0.1 * x.grad"
        ),
        "detach_": "write x.detach(), a new leaf with the same number",
        **dict.fromkeys(("double", "half", "long", "int", "type", "astype"), f"{_ONE}, a float: leave it out"),
        "prod": f"{_ONE}; for a list, write wengert.prod(values)",
        "cumsum": f"{_ONE}; for a list, write list(itertools.accumulate(values))",
        "var": f"{_ONE}; for a list, write wengert.mean([(v - m) ** 2 for v in values]), with m = wengert.mean(values)",
        "std": f"{_ONE}; for a list, write the .sqrt() of wengert.mean([(v - m) ** 2 for v in values])",
        **dict.fromkeys(("register_hook", "hook"), "read x.grad after y.backward(): every Value keeps its gradient"),
        **dict.fromkeys(("name", "tag"), "write x.label"),
        **dict.fromkeys(("gradient", "derivative"), "write y.backward(), then x.grad; or wengert.grad(f)"),
        **dict.fromkeys(("children", "parents", "prev", "inputs"), "write x._prev, or wengert.Graph(x)"),
        **dict.fromkeys(("op", "operation"), "write x._op"),
        "ln": "write x.log()",
        "power": "write x**2, or x.pow(2)",
        **dict.fromkeys(("logistic", "expit"), "write x.sigmoid()"),
        **dict.fromkeys(("draw", "plot", "show"), "write wengert.draw(x)"),
    },
    misspelled=("backward", "detach", "relu", "sigmoid", "softplus", "sqrt", "tanh"),
)


def softmax(values: Iterable[Any]) -> list[Any]:
    """Return e^v / (e^v1 + e^v2 + ...) for each v: positive numbers that sum to 1, computed without overflow.

    Raises:
        OperandError: `values` is not iterable.
        LengthError: `values` is empty.

    >>> softmax([1000.0, 1000.0])
    [0.5, 0.5]
    """
    powers = [table.exp(value) for value in _shifted(values)]
    total = table.sum_(powers)
    return [table.div(power, total) for power in powers]


def log_softmax(values: Iterable[Any]) -> list[Any]:
    """Return the logarithms of `softmax`, exact even where softmax itself would round to 0; it raises the same errors.

    >>> log_softmax([0.0, -1000.0])
    [0.0, -1000.0]
    """
    values = _shifted(values)
    total = table.logsumexp(values)
    return [value - total for value in values]


def _shifted(values: Iterable[Any]) -> list[Any]:
    """Subtract the greatest value as a constant: softmax stays the same, and large values do not overflow."""
    if not isinstance(values, Iterable):
        raise OperandError(f"softmax takes a list of values, not {named(values)}")
    values = list(values)
    greatest = table.max_(values)
    shift = greatest if isinstance(greatest, float) else greatest.item()
    return [value - shift for value in values]


def matmul(a: Sequence[Sequence[Any]], b: Sequence[Any]) -> list[Any]:
    """Multiply two matrices given as lists of rows; b may be a vector.

    Args:
        a: n rows of k numbers or Values.
        b: k rows of m numbers or Values, or a vector of k. Both may be NumPy arrays.

    Raises:
        LengthError: the length of a row of a is not the number of rows of b, or the rows of b differ in length.
        OperandError: a is not made of rows, or b is neither a matrix nor a vector.

    >>> matmul([[1.0, 2.0], [3.0, 4.0]], [[5.0], [6.0]])
    [[17.0], [39.0]]
    >>> matmul([[1.0, 2.0], [3.0, 4.0]], [5.0, 6.0])
    [17.0, 39.0]
    """
    for row in [b, *a] if _is_list(a) else [a]:
        if not _is_list(row):
            raise OperandError(f"matmul: expected lists of rows, but found {named(row)} in place of a list")
    for row in a:
        if len(row) != len(b):
            raise LengthError(f"matmul: a row of a has the length {len(row)}, and b has {len(b)}: they must be equal")
    if not any(map(_is_list, b)):
        return [table.dot(*row, *b, 0.0) for row in a]
    if not all(map(_is_list, b)):
        raise OperandError("matmul: b mixes rows and numbers: expected a matrix, a list of rows, or a vector")
    if len({len(row) for row in b}) > 1:
        raise LengthError(f"matmul: the rows of b have different lengths: {sorted({len(row) for row in b})}")
    columns = list(zip(*b, strict=True))
    return [[table.dot(*row, *column, 0.0) for column in columns] for row in a]


def _is_list(x: Any) -> bool:
    """Return True for any sequence, arrays included."""
    return hasattr(type(x), "__len__")


def take(rows: Any, index: Any) -> Any:
    """Return rows[index], one row of a table, as of an embedding.

    Uncompiled it is plain indexing. In a compiled function it tells the compiler that the index changes between calls.

    >>> take([[1.0, 2.0], [3.0, 4.0]], 1)
    [3.0, 4.0]
    """
    select = getattr(index, "select", None)  # a traced integer
    return rows[index] if select is None else select(rows)


def pick(values: Any, index: Any) -> Any:
    """Return values[index], one of several values, as of the probabilities of classes; see `take`.

    >>> pick([0.1, 0.7, 0.2], 1)
    0.7
    """
    return take(values, index)


def op(
    name: str,
    *,
    value: Callable[..., float],
    partials: Callable[..., Any] | Literal["differences"],
    arity: int | None = -1,
    symbol: str = "",
) -> Callable[..., Any]:
    """Register an operation of your own. It then works like a built-in one: as a function, as a method of every
    Value, in drawings, in copies, and in derivatives of any order.

    Args:
        name: an identifier, also the method's name. Registering a name of yours again replaces it for new nodes.
        value: computes the value, a float, from the operands, which are floats.
        partials: called with the value and the operands; returns the partial derivative with respect to each operand
            (for one operand, the derivative itself). Write it with + - * / ** and the functions of this module, not
            with `math`, and the operation has higher derivatives too. Compiled functions record both rules, `math` and
            branches too. With ``"differences"`` they are found from values alone: central differences, whose steps,
            from a tenth of the operand or of 1 on, are divided by 4 and extrapolated to 0: a dozen values for each
            operand, at most 45. Of a smooth function at least nine digits are right, usually twelve, where it is not
            far larger than its derivative; where the derivative jumps it is the mean of both sides. There are no
            further derivatives, and a compiled function calls the operation, number by number, for its derivatives.
        arity: the number of operands, by default that of `value`; None for any number.
        symbol: how drawings write it, by default the name.

    Raises:
        OperationError: the name or a rule cannot be used; the message says why.

    >>> from wengert import Value
    >>> cube = op("cube", value=lambda x: x**3, partials=lambda out, x: 3 * x**2)
    >>> x = Value(2.0)
    >>> y = cube(x) + x.cube()
    >>> y.backward()
    >>> y.data, x.grad
    (16.0, 24.0)
    >>> root = op("cube_root", value=lambda x: x ** (1 / 3), partials="differences")
    >>> x = Value(8.0)
    >>> root(x).backward()
    >>> abs(x.grad - 1 / 12) < 1e-9
    True
    """
    if arity == -1:
        arity = _arity(name, value)
    if arity is not None and (type(arity) is not int or arity < 1):
        raise OperationError(f"{name} has arity {arity!r}; expected an int >= 1, or None for any number")
    kinds = (Functions, *Functions.__subclasses__())  # among them Value, which imports this module
    if isinstance(name, str) and name not in table.BY_NAME and any(hasattr(kind, name) for kind in kinds):
        raise OperationError(f"{name} is an attribute of every Value: choose another name")
    return _publish(register(name, value, partials, arity, symbol or name))


def _arity(name: str, value: Callable[..., float]) -> int | None:
    """Count the operands that the function `value` takes; None for any number."""
    try:
        parameters = signature(value).parameters.values()
    except (TypeError, ValueError):
        raise OperationError(f"{name}: the number of operands cannot be read from value: pass arity=") from None
    if any(p.kind is p.VAR_POSITIONAL for p in parameters):
        return None
    return len([p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)])
