"""What one element of an array is computed from: trees of the operation table's rows, and their derivatives.

A tree is a tuple: ``("in", k)`` is the k-th operand of a Compute, ``("const", c)`` a number, ``("mask", m)`` an
array of bools over its axes, ``("lt", a, b)`` and the like a comparison, ``("where", condition, a, b)`` a choice,
and ``("tanh", a)`` the row of that name. Derivatives are the rows' own rules, read over such trees.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import Any

from wengert.ops import AS_OPERANDS, NONNEGATIVE, interpret, namespace, table

__all__ = [
    "Tree",
    "cotangents",
    "expand",
    "has_mask",
    "inputs",
    "is_nonnegative",
    "rename",
    "repeated",
    "rewrite",
    "times",
]

Tree = tuple[Any, ...]
LEAVES = ("in", "const", "mask")
CHEAP = ("add", "sub", "mul", "neg", "square", "where", "stop_gradient", "relu", "lt", "le", "gt", "ge", "eq", "ne")
COMPARISONS = ("lt", "le", "gt", "ge", "eq", "ne")


class Symbol:
    """A tree with arithmetic, so that a rule of the table can be read over it."""

    __slots__ = ("tree",)

    def __hash__(self) -> int:
        raise TypeError("a symbol is no key: == builds a tree")

    def __init__(self, tree: Tree) -> None:
        self.tree: Tree = tree

    def _apply_op(self, op: table.Op, operands: Any) -> Any:
        return _made(op.name, *operands)

    def __add__(self, other: Any) -> Any:
        return _made("add", self, other)

    def __radd__(self, other: Any) -> Any:
        return _made("add", other, self)

    def __sub__(self, other: Any) -> Any:
        return _made("sub", self, other)

    def __rsub__(self, other: Any) -> Any:
        return _made("sub", other, self)

    def __mul__(self, other: Any) -> Any:
        return _made("mul", self, other)

    def __rmul__(self, other: Any) -> Any:
        return _made("mul", other, self)

    def __truediv__(self, other: Any) -> Any:
        return _made("div", self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return _made("div", other, self)

    def __pow__(self, other: Any) -> Any:
        return _made("pow", self, other)

    def __rpow__(self, other: Any) -> Any:
        return _made("pow", other, self)

    def __neg__(self) -> Any:
        return _made("neg", self)

    def __abs__(self) -> Any:
        return _made("abs", self)

    def __lt__(self, other: Any) -> Any:
        return _made("lt", self, other)

    def __le__(self, other: Any) -> Any:
        return _made("le", self, other)

    def __gt__(self, other: Any) -> Any:
        return _made("gt", self, other)

    def __ge__(self, other: Any) -> Any:
        return _made("ge", self, other)

    def __eq__(self, other: Any) -> Any:
        return _made("eq", self, other)

    def __ne__(self, other: Any) -> Any:
        return _made("ne", self, other)

    def __bool__(self) -> bool:
        raise TypeError("a rule chooses with where(condition, a, b), not with if")


def _tree(x: Any) -> Tree:
    return x.tree if isinstance(x, Symbol) else ("const", float(x))


def _made(name: str, *operands: Any) -> Any:
    """The tree of an operation, without what multiplies by 1 or adds 0. (Never without what multiplies by 0:
    0 * inf is nan.)
    """
    a, b = operands[0], operands[-1]
    if name == "mul":
        for x, other in ((a, b), (b, a)):
            if isinstance(x, float):
                if x == 1.0:
                    return other
                if x == -1.0:
                    return -other
            if isinstance(x, Symbol) and x.tree[0] == "div" and x.tree[1] == ("const", 1.0):
                return Symbol(("div", _tree(other), x.tree[2]))
            if (
                isinstance(x, float)
                and isinstance(other, Symbol)
                and other.tree[0] == "mul"
                and other.tree[1][0] == "const"
            ):
                return _made("mul", x * other.tree[1][1], Symbol(other.tree[2]))
    elif name in ("add", "sub") and isinstance(b, float) and b == 0.0:
        return a
    elif name == "add" and isinstance(a, float) and a == 0.0:
        return b
    elif name == "neg" and a.tree[0] == "neg":
        return Symbol(a.tree[1])
    return Symbol((name, *map(_tree, operands)))


def _choice(condition: Any, x: Any, y: Any) -> Any:
    """`where`, decided at once if the condition is known."""
    if not isinstance(condition, Symbol):
        return x if condition else y
    return Symbol(("where", condition.tree, _tree(x), _tree(y)))


# What the names in a rule of the table mean when it is read over trees: one form for all elements.
SYMBOLS: dict[str, Any] = namespace(where=_choice, _guarded_form=lambda condition, careful, plain: plain)


def expand(tree: Tree) -> Tree | None:
    """The same by the rows that its own row is written with; None for a row that is C's or a user's Python."""
    row = table.BY_NAME[tree[0]]
    rule = row.value
    if not isinstance(rule, FunctionType):
        return None
    try:
        return _tree(interpret(rule, SYMBOLS)(*[_symbol(x) for x in tree[1:]]))
    except TypeError:  # it needs floats: math.sin(x), if x > 0
        return None


def _symbol(tree: Tree) -> Any:
    return tree[1] if tree[0] == "const" else Symbol(tree)


def partials(tree: Tree, out: Tree, known: Callable[[int], bool]) -> list[Any]:
    """The partial derivative of a row by each of its operands, as symbols; `out` stands for its value."""
    name, *operands = tree
    xs = [_symbol(x) for x in operands]
    if name == "relu":
        return [_choice(Symbol(out) != 0.0, 1.0, 0.0)]  # of nan 1, as the row says
    if name == "log" and is_nonnegative(operands[0], known):
        return [_made("div", 1.0, xs[0])]
    if name == "pow" and isinstance(xs[1], float):
        return [_power(xs[0], xs[1], Symbol(out) if out[0] == "in" else None), None]
    row = table.BY_NAME[name]
    try:
        slopes = interpret(row.partials, SYMBOLS)(Symbol(out), *xs)
    except TypeError:  # a user's rule that needs floats is called on each element
        slopes = [
            Symbol(("partial", ("const", float(row.code)), ("const", float(k)), out, *operands)) for k in range(len(xs))
        ]
    return list(slopes) if isinstance(slopes, (tuple, list)) else [slopes]


def _power(x: Any, exponent: float, out: Any) -> Any:
    """The derivative of x**exponent by x, from its value if that is kept; of small powers from x, which may be 0."""
    if exponent == 2.0:
        return 2.0 * x
    if exponent in (3.0, 4.0):
        return exponent * (x * x) if exponent == 3.0 else exponent * (x * (x * x))
    if out is not None and exponent not in (0.0, 1.0):
        return exponent * (out / x)
    return exponent * x ** (exponent - 1.0) if exponent else 0.0


def cotangents(
    tree: Tree, gradient: Tree, out: Tree | None = None, known: Callable[[int], bool] = lambda operand: False
) -> dict[int, Tree]:
    """What each operand of a tree receives when the tree receives `gradient`.

    Args:
        tree: what is computed.
        gradient: the cotangent of its value.
        out: what stands for its value, if that is kept.
        known: whether an operand can only be 0, positive or nan.

    >>> cotangents(("mul", ("in", 0), ("in", 1)), ("in", 2))
    {0: ('mul', ('in', 2), ('in', 1)), 1: ('mul', ('in', 2), ('in', 0))}
    """
    received: dict[int, Any] = {}
    _spread(tree, _symbol(gradient), out, received, known)
    return {k: _tree(total) for k, total in received.items()}


def _spread(tree: Tree, gradient: Any, out: Tree | None, received: dict[int, Any], known: Any) -> None:
    name = tree[0]
    if name == "in":
        received[tree[1]] = received[tree[1]] + gradient if tree[1] in received else gradient
    elif name == "where":
        condition, x, y = tree[1:]
        if condition[0] == "mask" and x[0] == "exp" and out is not None:  # where it is masked out it is 0, as out is
            _spread(x[1], gradient * _symbol(out), None, received, known)
            return
        _spread(x, _choice(Symbol(condition), gradient, 0.0), None, received, known)
        _spread(y, _choice(Symbol(condition), 0.0, gradient), None, received, known)
    elif name == "mul" and tree[1] == tree[2]:
        _spread(tree[1], gradient * (2.0 * _symbol(tree[1])), None, received, known)
    elif name not in LEAVES and name not in COMPARISONS and name != "stop_gradient":
        for x, slope in zip(tree[1:], partials(tree, out or tree, known), strict=True):
            if x[0] not in ("const", "mask") and slope is not None:
                _spread(x, gradient * slope, None, received, known)


def repeated(tree: Tree) -> list[Tree]:
    """The largest subtrees with a function in them that occur more than once.

    >>> e = ("exp", ("in", 0))
    >>> repeated(("div", e, ("add", ("const", 1.0), e)))
    [('exp', ('in', 0))]
    """
    seen: dict[Tree, int] = {}
    _count(tree, seen)
    return [subtree for subtree, times in seen.items() if times > 1]


def _count(tree: Tree, seen: dict[Tree, int]) -> bool:
    """Count the subtrees that hold a function; what stands in one that was met before is not looked at again."""
    if tree[0] in LEAVES:
        return False
    if tree in seen:
        seen[tree] += 1
        return True
    inner = [_count(branch, seen) for branch in tree[1:]]  # all of them, so that each is counted
    costly = any(inner) or tree[0] not in CHEAP
    if costly:
        seen[tree] = 1
    return costly


def inputs(tree: Tree) -> list[int]:
    """The operands that a tree reads, each once, in order of appearance.

    >>> inputs(("add", ("in", 1), ("mul", ("in", 0), ("in", 1))))
    [1, 0]
    """
    if tree[0] == "in":
        return [tree[1]]
    if tree[0] in LEAVES:
        return []
    return list(dict.fromkeys(k for branch in tree[1:] for k in inputs(branch)))


def times(tree: Tree, k: int) -> int:
    """How often a tree reads an operand.

    >>> times(("mul", ("in", 0), ("add", ("in", 1), ("in", 0))), 0)
    2
    """
    if tree[0] in LEAVES:
        return int(tree == ("in", k)) if tree[0] == "in" else 0
    return sum(times(branch, k) for branch in tree[1:])


def has_mask(tree: Tree) -> bool:
    """Whether a tree names an array of bools over its axes."""
    return tree[0] == "mask" or (tree[0] not in LEAVES and any(map(has_mask, tree[1:])))


def rewrite(tree: Tree, leaf: Callable[[Tree], Tree]) -> Tree:
    """The tree with each leaf replaced by what `leaf` makes of it."""
    if tree[0] in LEAVES:
        return leaf(tree)
    return (tree[0], *(rewrite(branch, leaf) for branch in tree[1:]))


def rename(tree: Tree, names: dict[int, int]) -> Tree:
    """The tree with its operands renumbered."""
    return rewrite(tree, lambda leaf: ("in", names[leaf[1]]) if leaf[0] == "in" else leaf)


def is_nonnegative(tree: Tree, known: Callable[[int], bool] = lambda operand: False) -> bool:
    """Whether a tree can only be 0, positive or nan; `known` says so of an operand."""
    name, *branches = tree
    if name == "in":
        return known(branches[0])
    if name == "const":
        return bool(branches[0] >= 0.0)
    if name == "mul" and branches[0] == branches[1]:
        return True
    if name == "where":
        return all(is_nonnegative(branch, known) for branch in branches[1:])
    sign = table.BY_NAME[name].sign if name in table.BY_NAME else ""
    if sign == AS_OPERANDS:
        return all(is_nonnegative(branch, known) for branch in branches)
    return sign == NONNEGATIVE
