"""Builds and prints Python syntax trees, with the parentheses that they need and no others.

Printed text is never parsed again: callers inspect the types of nodes.
"""

from __future__ import annotations

import ast
from functools import cache
from math import copysign
from typing import Any

__all__ = ["call", "fill", "infix", "item", "method", "negative", "node", "path", "template", "with_point", "written"]

OPERATORS: dict[str, Any] = {
    "+": ast.Add(), "-": ast.Sub(), "*": ast.Mult(), "/": ast.Div(), "**": ast.Pow(), "@": ast.MatMult(),
    "lt": ast.Lt(), "le": ast.LtE(), "gt": ast.Gt(), "ge": ast.GtE(), "eq": ast.Eq(), "ne": ast.NotEq(),
}  # fmt: skip
COMPARED, SUM, PRODUCT, SIGN, POWER, ATOM = range(1, 7)  # precedences
HOLDS: dict[type, tuple[str, int, int, int]] = {  # an operator's text and precedence, and those its operands need
    ast.Add: (" + ", SUM, SUM, PRODUCT), ast.Sub: (" - ", SUM, SUM, PRODUCT),
    ast.Mult: (" * ", PRODUCT, PRODUCT, SIGN), ast.Div: (" / ", PRODUCT, PRODUCT, SIGN),
    ast.MatMult: (" @ ", PRODUCT, PRODUCT, SIGN), ast.Pow: (" ** ", POWER, ATOM, POWER),
    ast.Lt: (" < ", COMPARED, SUM, SUM), ast.LtE: (" <= ", COMPARED, SUM, SUM), ast.Gt: (" > ", COMPARED, SUM, SUM),
    ast.GtE: (" >= ", COMPARED, SUM, SUM), ast.Eq: (" == ", COMPARED, SUM, SUM),
    ast.NotEq: (" != ", COMPARED, SUM, SUM),
}  # fmt: skip


def written(x: Any, needed: int = 0) -> str:
    """Print a tree like `ast.unparse`, but several times faster, for the trees that are built here.

    >>> written(infix(negative(infix(path("x"), "+", 1)), "**", -2))
    '(-(x + 1)) ** (-2)'
    """
    kind = type(x)
    if kind is ast.Name:
        return str(x.id)
    if kind is ast.Constant and x.value is not ...:
        return repr(x.value)
    if kind is ast.Attribute and type(x.value) is not ast.Constant:
        return f"{written(x.value, ATOM)}.{x.attr}"
    if kind is ast.Call:
        operands = [written(operand) for operand in x.args]
        operands += [f"{keyword.arg}={written(keyword.value)}" for keyword in x.keywords]
        return f"{written(x.func, ATOM)}({', '.join(operands)})"
    if kind is ast.Subscript:
        places = x.slice.elts if type(x.slice) is ast.Tuple and len(x.slice.elts) > 1 else [x.slice]
        return f"{written(x.value, ATOM)}[{', '.join(map(written, places))}]"
    if kind is ast.List:
        return f"[{', '.join(map(written, x.elts))}]"
    if kind is ast.UnaryOp:
        text, own = f"-{written(x.operand, SIGN)}", SIGN
    elif kind is ast.BinOp or kind is ast.Compare:
        sign, own, of_left, of_right = HOLDS[type(x.op if kind is ast.BinOp else x.ops[0])]
        right = x.right if kind is ast.BinOp else x.comparators[0]
        text = f"{written(x.left, of_left)}{sign}{written(right, of_right)}"
    else:
        return ast.unparse(x)
    return f"({text})" if own < needed else text


def node(x: Any) -> Any:
    """Turn a number, a string, None, a slice, or a tuple or list of these and of nodes, into a node.

    >>> ast.unparse(node((-2, slice(1, None), [path("np.inf"), 0.5])))
    '(-2, 1:, [np.inf, 0.5])'
    """
    if isinstance(x, ast.AST):
        return x
    if isinstance(x, (tuple, list)):
        return (ast.Tuple if isinstance(x, tuple) else ast.List)([node(part) for part in x])
    if isinstance(x, slice):
        return ast.Slice(*[None if end is None else node(end) for end in (x.start, x.stop)])
    if isinstance(x, (int, float)) and copysign(1.0, x) < 0.0:
        return negative(ast.Constant(-x))
    return ast.Constant(x)


@cache  # nodes are immutable by convention, so they can be shared
def path(dotted: str) -> Any:
    first, *attributes = dotted.split(".")
    tree: Any = ast.Name(first)
    for attribute in attributes:
        tree = ast.Attribute(tree, attribute)
    return tree


def call(function: Any, *operands: Any, **named: Any) -> ast.Call:
    function = path(function) if isinstance(function, str) else function
    return ast.Call(function, [node(x) for x in operands], [ast.keyword(name, node(x)) for name, x in named.items()])


def method(of: Any, name: str, *operands: Any, **named: Any) -> ast.Call:
    return call(ast.Attribute(of, name), *operands, **named)


def item(of: Any, *places: Any) -> ast.Subscript:
    return ast.Subscript(of, node(places if len(places) > 1 else places[0]))


def infix(left: Any, sign: str, right: Any) -> ast.expr:
    """Join two operands by an operator. An exact factor of 2 or 4 moves to the left operand, which may be a single
    number.

    >>> x, y, z = map(path, "xyz")
    >>> ast.unparse(infix(x, "*", infix(y, "/", z))), ast.unparse(infix(x, "*", infix(2, "*", y)))
    ('x * (y / z)', 'x * 2 * y')
    """
    left, right = node(left), node(right)
    if isinstance(OPERATORS[sign], ast.cmpop):
        return ast.Compare(left, [OPERATORS[sign]], [right])
    if sign == "*" and isinstance(right, ast.BinOp) and isinstance(right.op, ast.Mult) and _is_exact(right.left):
        return ast.BinOp(ast.BinOp(left, OPERATORS["*"], right.left), OPERATORS["*"], right.right)
    return ast.BinOp(left, OPERATORS[sign], right)


def _is_exact(x: Any) -> bool:
    return isinstance(x, ast.Constant) and x.value in (2, 4)


def negative(x: Any) -> ast.expr:
    return ast.UnaryOp(ast.USub(), x)


def with_point(x: Any) -> Any:
    """Write a number that stands alone, or beside a bool, as a float, because integer arrays wrap and cannot hold
    floats.

    >>> ast.unparse(node([with_point(node(-2)), with_point(infix(2, "*", path("x")))]))
    '[-2.0, 2 * x]'
    """
    if isinstance(x, ast.UnaryOp):
        return negative(with_point(x.operand))
    value = x.value if isinstance(x, ast.Constant) else None
    return ast.Constant(float(value)) if isinstance(value, (int, float)) else x


@cache
def template(text: str) -> Any:
    return ast.parse(text, mode="eval").body


def fill(form: Any, operands: dict[str, Any]) -> Any:
    """Replace the names in a template by nodes.

    >>> ast.unparse(fill(template("x ** 2"), {"x": infix(path("a"), "+", path("b"))}))
    '(a + b) ** 2'
    """
    if isinstance(form, ast.Name):
        return operands.get(form.id, form)
    if isinstance(form, list):
        return [fill(part, operands) for part in form]
    if isinstance(form, ast.AST):
        return type(form)(*[fill(getattr(form, name), operands) for name in form._fields])
    return form
