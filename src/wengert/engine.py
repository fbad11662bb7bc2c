"""Scalar reverse-mode differentiation: the whole engine.

A `Value` is a number that remembers how it was computed: the operation, its operands, and the partial derivative
with respect to each operand, which is computed together with the number (`node.py` has the fields). `backward()` lists
every node below a result in the order of creation, walks the list backwards and applies the chain rule at each node:

    operand.grad += partial * node.grad

Python runs this file as it is, and Cython compiles it: `engine.pxd` declares which names are C numbers, and `ieee` is
Python's arithmetic or C's. The most frequent operations of the table `ops/table.py` are written out here.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from math import inf, nan
from typing import Any

from wengert.errors import LengthError, OperandError, OperationError, no_graph
from wengert.functions import Functions
from wengert.node import CODE, WALK, Node, is_many, kind, no_remainder, refuse, root_slope, settle
from wengert.ops import BY_NAME, LEFT, TABLE, TINY, Op, coerce, ieee, prefer_methods
from wengert.ops.ieee import Int, Nodes, cython

if False:  # Cython reads this import; Python uses the substitute in ops/ieee.py
    import cython  # type: ignore[no-redef]

__all__ = ["Many", "Value", "compiled", "dot", "pin", "set_hooks", "tape", "walking"]

LEAF, ADD, SUB, MUL, DIV, POW, NEG = [BY_NAME[name].code for name in ("leaf", "add", "sub", "mul", "div", "pow", "neg")]
RELU, EXP, LOG, TANH, SQRT = [BY_NAME[name].code for name in ("relu", "exp", "log", "tanh", "sqrt")]
DOT, WHERE, HAND = [BY_NAME[name].code for name in ("dot", "where", "by hand")]
compiled: bool = bool(ieee.COMPILED)  # True in the compiled engine
_walks = 0  # the number of walks so far: each walk marks the nodes it meets with its own number
_hooks = None  # called with each new node, and with each root before backward(): see modes.py
walking: Any = threading.RLock()  # one walk at a time, since walks leave marks on the nodes
_pins = _closures = 0  # how many Graphs are being written; how many closures are running


@cython.no_gc
@cython.cclass
class Value(Node, Functions):
    """A number that remembers how it was computed.

    >>> x = Value(3.0)
    >>> y = x * x + 2
    >>> y.backward()
    >>> y.data, x.grad
    (11.0, 6.0)
    """

    __slots__ = ("_all", "_partials")  # of interpreted nodes; the compiled ones have them if they need them: see Many

    def __init__(self, data: Any, _children: Any = None, _op: Any = None, label: Any = None) -> None:
        self._data, self._grad = data if type(data) is float else coerce.data(data), 0.0
        if _children is not None or _op is not None or label is not None:  # with children, handmade.py makes the node
            self.label = coerce.label(_children, _op, label)

    # -- arithmetic: the value, then the partial derivative with respect to each operand ------------------------------

    def __add__(self, other: Any) -> Value: return _sum(self._data, _number(other), self, other)
    def __radd__(self, other: Any) -> Value: return _sum(_number(other), self._data, other, self)
    def __sub__(self, other: Any) -> Value: return _difference(self._data, _number(other), self, other)
    def __rsub__(self, other: Any) -> Value: return _difference(_number(other), self._data, other, self)
    def __mul__(self, other: Any) -> Value: return _product(self._data, _number(other), self, other)
    def __rmul__(self, other: Any) -> Value: return _product(_number(other), self._data, other, self)
    def __truediv__(self, other: Any) -> Value: return _quotient(self._data, _number(other), self, other)
    def __rtruediv__(self, other: Any) -> Value: return _quotient(_number(other), self._data, other, self)
    def __pow__(self, other: Any, mod: Any = None) -> Value: return _power(self._data, _number(other), self, other, mod)
    def __rpow__(self, left: Any, mod: Any = None) -> Value: return _power(_number(left), self._data, left, self, mod)
    def __neg__(self) -> Value: return _unary(NEG, -self._data, self, -1.0)
    def __pos__(self) -> Value: return self
    def __abs__(self) -> Value: return _apply(BY_NAME["abs"], [self])

    def relu(self) -> Value:
        return _unary(RELU, 0.0, self, 0.0) if self._data <= 0.0 else _unary(RELU, self._data, self, 1.0)

    def exp(self) -> Value:
        e = ieee.exp(self._data)
        return _unary(EXP, e, self, e)

    def log(self) -> Value:
        return _unary(LOG, ieee.log(self._data), self, ieee.divide(1.0, self._data) if self._data >= 0.0 else nan)

    def tanh(self) -> Value:
        e = ieee.exp(-ieee.fabs(2.0 * self._data))  # 1 - tanh**2 would lose all digits in the tails
        return _unary(TANH, ieee.tanh(self._data), self, 4.0 * ieee.divide(e, 1.0 + e * (2.0 + e)))

    # -- derivatives --------------------------------------------------------------------------------------------------

    @cython.binding(True)
    def backward(self, gradient: Any = 1.0, retain_graph: Any = None, create_graph: Any = False) -> None:
        """Compute the derivative of this Value with respect to every node below it, times `gradient`, into `grad`.

        Leaves accumulate over calls; other nodes hold the result of the last call. PyTorch's `retain_graph` changes
        nothing, for the graph is always kept, and its `create_graph=True` raises: see `wengert.grad`.
        """
        if create_graph:
            raise no_graph()
        refuse("calls backward(): call it on the result, or write wengert.grad for a derivative")
        if _hooks is not None:
            _hooks.pre_backward_hook(self, gradient)  # strict() may raise here
        if ieee.COMPILED and not _pins:  # compiled code is not interrupted by other threads: no lock is needed
            _backward_pass(self, _operand(gradient))
        else:
            with walking:
                _backward_pass(self, _operand(gradient))

    # -- called by the modules below -----------------------------------------------------------------------------------

    def _apply_op(self, op: Op, arguments: Sequence[Any]) -> Any: return _apply(op, [*arguments])
    def _leaf(self, number: float) -> Value: return Value(number)
    def _many_operands(self) -> tuple[Any, ...]: return cython.cast(Many, self)._all if is_many(self) else ()
    def _push(self) -> None: _chain_rule(self)


@cython.no_gc
@cython.cclass
class Many(Value):
    """A node with any number of operands, constants included, and the partial derivative with respect to each."""

    __slots__ = ()  # such a node is a Value, made with room for these fields, or by hand one of a subclass
    _all: tuple[Any, ...]
    _partials: Any


# -- making nodes -----------------------------------------------------------------------------------------------------

ieee.recycle(Value, Many, kind)  # sets their deallocation: a chain of millions is freed without recursion
prefer_methods(Value)

def _fill(node: Value, code: Int, data: float, a: Any, b: Any, da: float, db: float) -> None:
    node._made, node._mark = ieee.tick() | code, 0
    node._data, node._grad = data, 0.0
    node._a, node._b = a, b
    node._da, node._db = da, db

def _unary(code: Int, data: float, x: Value, dx: float) -> Any:
    node: Value = ieee.new(Value)
    _fill(node, code, data, x, None, dx, 0.0)
    return node if (hooks := _hooks) is None or not ieee.no_error() else hooks.node_hook(node)

def _binary(code: Int, data: float, x: float, y: float, left: Any, right: Any, dx: float, dy: float) -> Any:
    """Make the node of a binary operation. A constant operand is stored in the field of its unused partial."""
    node: Value = ieee.new(Value)
    constant = 0.0
    if not isinstance(left, Value):
        constant = x
        _fill(node, code | LEFT, data, right, None, dy, x)
    elif isinstance(right, Value):
        _fill(node, code, data, left, right, dx, dy)
    else:
        constant = y
        _fill(node, code, data, left, None, dx, y)
    if constant != constant and not coerce.is_number(right if node._a is left else left):
        return NotImplemented  # `_number` gave nan for what is no number: Python asks the other operand
    return node if (hooks := _hooks) is None or not ieee.no_error() else hooks.node_hook(node)


def _sum(x: float, y: float, left: Any, right: Any) -> Any: return _binary(ADD, x + y, x, y, left, right, 1.0, 1.0)
def _difference(x: float, y: float, a: Any, b: Any) -> Any: return _binary(SUB, x - y, x, y, a, b, 1.0, -1.0)
def _product(x: float, y: float, left: Any, right: Any) -> Any: return _binary(MUL, x * y, x, y, left, right, y, x)

def _quotient(x: float, y: float, left: Any, right: Any) -> Any:
    z = ieee.divide(x, y)
    dy = TABLE[DIV].partials(z, x, y)[1] if 0.0 < ieee.fabs(z) < TINY else -ieee.divide(z, y)
    return _binary(DIV, z, x, y, left, right, ieee.divide(1.0, y), dy)

def _power(x: float, y: float, left: Any, right: Any, mod: Any) -> Any:
    z = ieee.power(x, y)
    q = ieee.power(x, y - 1.0) if x == 0.0 else ieee.divide(z, x)
    dx, dy = root_slope(left, y * q, y == 0.5) if x == 0.0 else y * q, 0.0  # for a constant exponent
    lost = x != 0.0 and (not ieee.fabs(z) > TINY or not TINY < ieee.fabs(q) < inf)
    if (isinstance(right, Value) or y == 0.0 or lost) and ieee.no_error():
        dx, dy = TABLE[POW].partials(z, x, y)
    return _binary(POW, z, x, y, left, right, dx, dy) if mod is None else no_remainder()


def _many(code: Int, arguments: Any, by_hand: Any = None, over_leaves: bool = False) -> Any:
    """Make a node with many operands, Values and floats, but leave its value to the caller."""
    node: Many = cython.cast(Many, ieee.new_many(Value) if by_hand is None else by_hand)
    _fill(node, code, 0.0, None, None, 0.0, float(over_leaves))
    node._all, node._partials = tuple(arguments), ieee.floats(len(arguments))
    if by_hand is None:  # a node made by hand may be part of a cycle
        ieee.untrack(node._all)
    return node


def _apply(op: Op, arguments: Nodes) -> Any:
    """Make the node of any operation of the table."""
    code, arity = op.code, op.arity
    xs = [_number(x) for x in settle(arguments)]
    if not 0 < code < len(TABLE) or TABLE[code].arity != arity or (arity or len(xs)) != len(xs):
        raise op.misfit(len(xs))
    data = float(op.value(*xs))
    slopes = op.partials_at(data, xs)
    if len(slopes) != len(xs):
        raise OperationError(f"{op.name}: expected a partial derivative for each operand, not {slopes!r:.60}")
    if arity == 1:
        return _unary(code, data, arguments[0], root_slope(arguments[0], float(slopes[0]), code == SQRT))
    if arity == 2:
        return _binary(code, data, xs[0], xs[1], arguments[0], arguments[1], float(slopes[0]), float(slopes[1]))
    node: Many = _many(code, arguments)
    node._data = data
    for i in range(len(xs)):
        node._partials[i] = float(slopes[i])
    return node if (hooks := _hooks) is None or not ieee.no_error() else hooks.node_hook(node)


def dot(ws: Sequence[Any], xs: Sequence[Any], bias: Any = 0.0) -> Any:
    """Return bias + ws[0] * xs[0] + ws[1] * xs[1] + ... as one node, or as a float if no operand is a Value.

    Raises:
        LengthError: ws and xs differ in length.
    """
    n = len(ws)
    if len(xs) != n:
        raise LengthError(f"dot: len(ws) is {n} and len(xs) is {len(xs)}; expected two sequences of one length")
    arguments = settle([*ws, *xs, bias])
    if len(arguments) != 2 * n + 1:
        raise LengthError(f"dot: iterating a sequence of len() {n} gave another number of items")
    node: Many = _many(DOT, arguments)
    partials, z = node._partials, _number(arguments[2 * n])
    for i in range(n):
        w, x = _number(arguments[i]), _number(arguments[n + i])
        partials[i], partials[n + i] = x, w
        z += w * x
    if not isinstance(arguments[0], Value) and not any(isinstance(x, Value) for x in arguments):
        return z
    partials[2 * n] = 1.0
    node._data = z
    return node if (hooks := _hooks) is None or not ieee.no_error() else hooks.node_hook(node)


def _number(x: Any) -> float:
    """Convert an operand to a float, once; nan if it is not a number, and `_binary` then returns NotImplemented."""
    if type(x) is float:
        return x
    if isinstance(x, Value):
        operand: Value = x
        return operand._data
    return ieee.whole(x) if type(x) is int else float(x) if ieee.is_float(x) else coerce.number(x)

def _operand(x: Any) -> float:
    """Convert an operand to a float, or raise an OperandError."""
    y = _number(x)
    return y if y == y or isinstance(x, Value) else coerce.data(x)


# -- walking the graph ------------------------------------------------------------------------------------------------
# To keep nodes small, the fields of partials that a kind of node does not use hold something else.
def _save_gradient(leaf: Node) -> None: leaf._da = leaf._grad  # accumulated by earlier calls
def _saved_gradient(leaf: Node) -> float: return leaf._da
def _is_over_leaves(node: Node) -> bool: return node._db != 0.0
def _taken(node: Many) -> int: return 0 if node._made & CODE != WHERE else 1 if node._partials[1] != 0.0 else 2


def tape(roots: Nodes, reset: bool = False, untaken: bool = False) -> Nodes:
    """List the roots and every node below them in the order of creation, which is a topological order.

    An operand is made before the result that uses it, so each node follows its operands. With `reset` all gradients
    become 0, after the leaves have saved theirs, and what only `untaken` sides of choices read is not listed.
    """
    global _walks
    lone: Any = None
    others: Any = None  # the sides that no gradient flows into
    found: Nodes = []
    _walks += not untaken
    for node in roots:
        if node is None:
            raise OperandError("the root of a graph is a Value, not None")
        _meet(node, found, reset)
    for node in found:  # the list grows while it is read
        if node._a is not None:
            _meet(node._a, found, reset)
            if node._b is not None:
                _meet(node._b, found, reset)
        elif _is_over_leaves(node) and reset and lone is None:
            lone = node  # one whose operands are leaves alone, perhaps 100,000: _chain_rule reaches them unlisted
        elif reset and node._b is not None:
            _meet(node._b, found, reset)  # the call of which it is one of several results
        elif node._made & CODE != LEAF:
            many: Many = cython.cast(Many, node)
            taken = _taken(many) if reset and not untaken else 0
            if taken:
                others = others or []
                others += [x for x in many._all if isinstance(x, Value)]
            for x in many._all[taken : taken + 1] if taken else many._all:
                if isinstance(x, Value):
                    _meet(x, found, reset)
    if others:
        for node in tape(others, True, True):
            if node._made & CODE == LEAF:
                node._grad = _saved_gradient(node)
    ieee.sort(found)
    return found

def _meet(x: Node, found: Nodes, reset: bool) -> None:
    last = x._mark & WALK
    if last != _walks:
        x._mark += _walks - last
        found.append(x)
        if reset:
            if x._made & CODE == LEAF:
                _save_gradient(x)
            x._grad = 0.0

def _backward_pass(root: Value, gradient: float) -> None:
    if _closures:
        raise OperationError("backward() was called inside a node's _backward: call it when the running one is done")
    nodes: Nodes = [] if isinstance(root, Value) and root._a is None and _is_over_leaves(root) else tape([root], True)
    root._grad = 0.0 + gradient  # tape raises if the root is not a Value
    if not nodes:  # a compiled function's result
        _chain_rule(root)
    for node in reversed(nodes):
        _chain_rule(node)
        if node._made & CODE == LEAF:
            node._grad += _saved_gradient(node)  # once the sum of this call is complete

def _chain_rule(node: Node) -> None:
    """Add to the gradient of each operand of a node what it contributes."""
    g = node._grad
    if node._a is not None:
        node._a._grad += node._da * g
        if node._b is not None:
            node._b._grad += node._db * g
    elif node._b is not None:
        node._b._receive(node)  # it is one of a compiled call's results
    elif node._made & CODE == HAND:
        node._push()  # type: ignore[attr-defined]  # calls a user's closure
    elif node._made & CODE != LEAF:
        many: Many = cython.cast(Many, node)
        arguments, partials, taken = many._all, many._partials, _taken(many)  # read once: there may be 100,000 operands
        for i in range(taken, taken + 1 if taken else len(arguments)):
            operand = ieee.at(arguments, i, Value)
            if ieee.held(operand):
                operand._grad += partials[i] * g


def pin(change: Int, closures: Int = 0, others: Int = 1) -> None:
    """Count a Graph or a closure that begins (1) or ends (-1), under the lock `walking`; others=0 resets the counts."""
    global _closures, _pins
    _pins, _closures = others * _pins + change, others * _closures + closures

def set_hooks(hooks: Any) -> None:
    """Replace each new node by what `hooks.node_hook` returns; call `pre_backward_hook` before each backward()."""
    global _hooks
    _hooks = hooks
