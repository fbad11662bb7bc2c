"""Computes a formula given as text, ``tanh(x1*w1 + b)``, with Values; none of it is run as Python code.

Python's parser reads it. Only numbers, names, arithmetic and the functions of the table are allowed; everything else
raises an error with its column.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from wengert.engine import Value
from wengert.errors import ArgumentError, WengertError
from wengert.ops import BY_NAME, TABLE, Op

__all__ = ["evaluate"]

LONGEST = 10_000  # characters
ARITHMETIC: dict[type[ast.operator], str] = {
    type(ast.parse(f"x {row.infix} y", mode="eval").body.op): row.name  # type: ignore[attr-defined]  # it is a BinOp
    for row in TABLE
    if row.infix and row.arity == 2
}
OF_LISTS = {  # functions that take or return lists, and what to write instead
    "dot": "x1*w1 + x2*w2",
    "matmul": "each number of the product, as x1*w1 + x2*w2",
    "softmax": "exp(x)/(exp(x) + exp(y))",
    "log_softmax": "x - logsumexp(x, y)",
    "take": "the number itself",
    "pick": "the number itself",
}
WRITTEN = "numbers, names, + - * / **, parentheses and functions such as tanh(x)"


def evaluate(text: str, numbers: Mapping[str, float]) -> Value:
    """Compute a formula.

    Args:
        text: an expression; named expressions may precede it, separated by semicolons: ``n = x*w; tanh(n)``.
        numbers: the number of each name; they become leaves with these labels.

    Raises:
        ArgumentError: the formula is not valid, a name has no number, or a number's name is not in it; the message has
            the column.

    >>> y = evaluate("n = x*w + 1; tanh(n)", {"x": 2.0, "w": -0.5})
    >>> y.data, y._op, y._prev[0].label
    (0.0, 'tanh', 'n')
    >>> evaluate("x * open(1)", {"x": 2.0})
    Traceback (most recent call last):
        ...
    wengert.errors.ArgumentError: column 5: there is no function open(...) here
    """
    if len(text) > LONGEST:
        raise ArgumentError(f"the formula has {len(text):,} characters; expected at most {LONGEST:,}")
    statements = _parsed(text)
    named: dict[str, Any] = {}
    used: set[str] = set()
    result: Any = None
    for statement in statements:
        if isinstance(statement, ast.Expr):
            result = _value(statement.value, named, numbers, used)
        elif isinstance(statement, ast.Assign) and len(statement.targets) == 1:
            (target,) = statement.targets
            if not isinstance(target, ast.Name):
                raise _error(target, "expected a name before =")
            result = _value(statement.value, named, numbers, used)
            if isinstance(result, Value):
                result.label = result.label or target.id
            named[target.id] = result
        else:
            raise _error(statement, f"this is not a formula: expected {WRITTEN}")
    unused = sorted(set(numbers) - used)
    if unused:
        raise ArgumentError(f"{unused[0]}={numbers[unused[0]]:g} was passed, but {unused[0]} is not in the formula")
    if not isinstance(result, Value):
        raise ArgumentError("the formula has no variable to differentiate with respect to: write x + 3, and x=2")
    return result


def _parsed(text: str) -> list[ast.stmt]:
    import warnings

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Python's parser warns about 1(2) and the like, which raise an error here
            statements = ast.parse(text.strip()).body
    except SyntaxError as error:
        hint = "; a product is written 2*x" if error.msg == "invalid decimal literal" else ""
        raise ArgumentError(f"column {error.offset or 1}: {error.msg}{hint}") from None
    except (ValueError, RecursionError, MemoryError) as error:  # a null character; too many parentheses
        raise ArgumentError(f"this formula cannot be read: {str(error) or 'it is nested too deeply'}") from None
    if not statements:
        raise ArgumentError(f"the formula is empty: expected {WRITTEN}")
    return statements


def _value(root: ast.expr, named: dict[str, Any], numbers: Mapping[str, float], used: set[str]) -> Any:
    """Compute an expression, operands first, with a stack, since a sum of thousands is thousands deep."""
    waiting: list[tuple[ast.expr, bool]] = [(root, False)]
    done: list[Any] = []
    while waiting:
        node, ready = waiting.pop()
        rule, operands = _operation(node)
        if rule is None:
            done.append(_atom(node, named, numbers, used))
        elif ready:
            first = len(done) - len(operands)
            try:
                done[first:] = [rule(*done[first:])]
            except (WengertError, TypeError, ValueError, ArithmeticError) as error:
                raise _error(node, str(error)) from None
        else:
            waiting.append((node, True))
            waiting += [(operand, False) for operand in reversed(operands)]
    return done[0]


def _operation(node: ast.expr) -> tuple[Any, list[ast.expr]]:
    """Return the function of an operation and its operands; None for a number or a name."""
    if isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
        return BY_NAME[ARITHMETIC[type(node.op)]], [node.left, node.right]
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitXor):
        raise _error(node, "^ is not an operator here: write a power as x**2")
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return BY_NAME["neg"], [node.operand]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.UAdd):
        return lambda x: x, [node.operand]
    if isinstance(node, ast.Call) and not node.keywords:
        if isinstance(node.func, ast.Name):
            return _known(node.func, node.func.id), node.args
        if isinstance(node.func, ast.Attribute):
            return _known(node.func, node.func.attr), [node.func.value, *node.args]
    return None, []


def _known(node: ast.expr, name: str) -> Op:
    row = BY_NAME.get(name)
    if name in OF_LISTS:
        raise _error(node, f"{name} takes lists, which a formula does not have: write {OF_LISTS[name]}")
    if row is None or row.value is None:
        raise _error(node, f"there is no function {name}(...) here")
    return row


def _atom(node: ast.expr, named: dict[str, Any], numbers: Mapping[str, float], used: set[str]) -> Any:
    if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)) and not isinstance(node.value, bool):
        try:
            return float(node.value)
        except OverflowError:
            return float("inf")
    if not isinstance(node, ast.Name):
        raise _error(node, f"this is not allowed in a formula: expected {WRITTEN}")
    if node.id not in named:
        if node.id not in numbers and node.id in BY_NAME:
            raise _error(node, f"{node.id} is a function: write {node.id}(x)")
        if node.id not in numbers:
            raise _error(node, f"{node.id} has no number: write {node.id}=2 after the formula")
        named[node.id] = Value(numbers[node.id], node.id)
    used.add(node.id)
    return named[node.id]


def _error(node: ast.AST, what: str) -> ArgumentError:
    line = getattr(node, "lineno", 1)
    where = f"line {line}, " if line > 1 else ""
    return ArgumentError(f"{where}column {getattr(node, 'col_offset', 0) + 1}: {what}")
