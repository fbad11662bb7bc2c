"""How NumPy writes the rows of the operation table, and one expression of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wengert.compiler.ir.expression import LEAVES, Tree, expand

__all__ = ["MATMUL", "TEXTS", "TIGHT", "bound", "expanded", "literal"]

MATMUL = 1  # @ binds like a product, but a * b @ c is not a * (b @ c): in a product it stands in parentheses

# How a row is written, and how tightly it binds: 1 a sum, 2 a product, 3 a sign, 4 a power, 5 a call.
TEXTS: dict[str, tuple[str, int]] = {
    "lt": ("{0} < {1}", 0), "le": ("{0} <= {1}", 0), "gt": ("{0} > {1}", 0), "ge": ("{0} >= {1}", 0),
    "eq": ("{0} == {1}", 0), "ne": ("{0} != {1}", 0),
    "add": ("{0} + {1}", 1), "sub": ("{0} - {1}", 1), "mul": ("{0} * {1}", 2), "div": ("{0} / {1}", 2),
    "neg": ("-{0}", 3), "pow": ("{0} ** {1}", 4), "square": ("{0} ** 2", 4), "reciprocal": ("1 / {0}", 2),
    "where": ("np.where({0}, {1}, {2})", 5), "relu": ("np.maximum({0}, 0)", 5),
    "stop_gradient": ("{0}", -1), "masked extreme": ("{0}.{1}({2}, where={3}, initial={4})", 5),
    "abs": ("np.abs({0})", 5), "maximum": ("np.maximum({0}, {1})", 5), "minimum": ("np.minimum({0}, {1})", 5),
    "clip": ("np.clip({0}, {1}, {2})", 5),
    **{name: (f"np.{name}({{0}})", 5) for name in (
        "exp", "log", "tanh", "sign", "exp2", "expm1", "log2", "log10", "log1p", "sqrt", "cbrt",
        "sin", "cos", "tan", "sinh", "cosh")},
    **{name: (f"np.arc{name[1:]}({{0}})", 5) for name in ("asin", "acos", "atan", "asinh", "acosh", "atanh")},
    "atan2": ("np.arctan2({0}, {1})", 5), "hypot": ("np.hypot({0}, {1})", 5),
}  # fmt: skip
# How tightly each operand must bind where it stands; a call's may be anything.
TIGHT: dict[str, tuple[int, ...]] = {
    "add": (1, 1), "sub": (1, 2), "mul": (2, 2), "div": (2, 3), "neg": (3,), "pow": (5, 5), "square": (5,),
    "reciprocal": (3,), **dict.fromkeys(("lt", "le", "gt", "ge", "eq", "ne"), (1, 1)),
}  # fmt: skip

ROOTS: dict[Tree, Callable[[Tree], Tree]] = {
    ("const", 0.5): lambda x: ("sqrt", x),
    ("const", -0.5): lambda x: ("reciprocal", ("sqrt", x)),
}


def expanded(tree: Tree, texts: dict[str, Any]) -> Tree:
    """The tree by the rows that there is a text for, and those that are called element by element."""
    if tree[0] in LEAVES:
        return tree
    if tree[0] == "pow" and tree[2] in ROOTS:
        return expanded(ROOTS[tree[2]](tree[1]), texts)
    if tree[0] not in texts and tree[0] != "partial":
        longer = expand(tree)
        if longer is not None:
            return expanded(longer, texts)
    return (tree[0], *(expanded(branch, texts) for branch in tree[1:]))


def bound(text: str, binding: int, need: int) -> str:
    """The text in parentheses, if it binds less tightly than it needs to."""
    return text if binding >= need else f"({text})"


def literal(c: float) -> tuple[str, int]:
    """How a number is written, and how tightly that binds."""
    if c != c:
        return "np.nan", 5
    if c in (float("inf"), float("-inf")):
        return ("np.inf", 5) if c > 0 else ("-np.inf", 3)
    text = repr(int(c)) if c == int(c) and abs(c) < 1e6 else repr(c)
    return text, 3 if c < 0 or text.startswith("-") else 5
