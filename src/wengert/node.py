"""The fields of a node of the graph, and how a Value behaves as a Python object.

A `Node` holds a number, its gradient, the operation that made it, the operands, and the partial derivative with respect
to each of them. The arithmetic is in `engine.py`, whose `Value` derives from `Node`. Like the engine, this file runs as
plain Python or compiled by Cython, with `node.pxd` beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from operator import is_
from typing import Any

from wengert.errors import ArgumentError, HandmadeNodeError, OperandError
from wengert.ops import BY_NAME, LEFT, TABLE, Op, coerce, ieee
from wengert.ops.ieee import Nodes, cython

if False:  # Cython reads this import; Python uses the substitute in ops/ieee.py
    import cython  # type: ignore[no-redef]

__all__ = ["CODE", "WALK", "Node", "constant", "fresh", "is_many", "kind", "refuse", "set_tracing_hook", "settle"]
__all__ += ["differentiated", "root_slope", "supply"]

CODE = (1 << 16) - 1  # the bits of `_made` that hold the operation's code; the bits above hold the tick
WALK = (1 << 40) - 1  # the bits of `_mark` that hold the number of a walk; the bits above hold the label's index
POW = BY_NAME["pow"].code
FILL = "To fill an array with Values, make it one of objects, np.zeros(n, dtype=object), or a list."
LABELS = 1 << 23  # how many labels a process can have: `_mark` has 23 bits for the label's index

_labels, _places = [""], {"": 0}  # every label in use, and its index, which is what a node stores
_supplied: dict[str, Any] = {}  # functions of modules above that a Value calls: see `supply`
_tracing_hook = None  # notified when a number is read, compared or overwritten: see `set_tracing_hook`


@cython.no_gc  # nodes that refer only to their operands cannot form a cycle
@cython.cclass
class Node:
    """One number of a computation, and how it was computed."""

    __slots__ = ("_a", "_b", "_da", "_data", "_db", "_grad", "_made", "_mark")
    _made: int  # when it was made, in ticks; the low 16 bits hold the operation's code, its index in the table
    _data: float  # the number
    _grad: float  # its gradient
    _a: Any  # the operands that are Values (None: there is none)
    _b: Any
    _da: float  # the partial derivative with respect to each
    _db: float  # without a _b: the constant operand (see `constant`), or a flag of the engine
    _mark: int  # the number of the last walk that met it; above 40 bits, the index of its label

    @property
    def data(self) -> float:
        """The number."""
        return self._data if _tracing_hook is None else _tracing_hook.read(self, self._data)

    @data.setter
    def data(self, number: Any) -> None:
        refuse("sets the data of a Value: do it outside, or compute with a new Value")
        self._data = number if type(number) is float else coerce.data(number)

    @property
    def grad(self) -> float:
        """The derivative of the Value that `backward()` was called on with respect to this one; leaves add up calls."""
        refuse("reads the gradient of a Value: pass it as an argument, or write wengert.grad")
        return self._grad

    @grad.setter
    def grad(self, number: Any) -> None:
        refuse("sets the gradient of a Value: do it outside")
        self._grad = number if type(number) is float else 0.0 if number is None else coerce.data(number)

    @property
    def label(self) -> str:
        """A name for drawings and messages; empty by default. Each distinct name is kept as long as the process."""
        return _labels[self._mark >> 40]

    @label.setter
    def label(self, text: Any) -> None:
        text = str.__str__(str(text))  # without the `__hash__` and `__eq__` of a subclass
        if text not in _places:
            if len(_labels) >= LABELS:
                raise ArgumentError(f"a process can have {LABELS} different labels, and {text!r:.40} is one more")
            _labels.append(text)
            _places[text] = len(_labels) - 1
        self._mark = self._mark & WALK | _places[text] << 40

    # -- how it was made ----------------------------------------------------------------------------------------------

    @property
    def is_leaf(self) -> bool:
        """True if it was not computed but given: a parameter or an input."""
        return not self._made & CODE

    @property
    def _row(self) -> Op:
        """The operation's row in the table."""
        return TABLE[self._made & CODE & ~LEFT]

    @property
    def _op(self) -> str:
        """The operation's symbol: '+', '**2', 'tanh'; '' for a leaf."""
        return f"**{constant(self):g}" if self._is_constant_power() else self._row.symbol

    @property
    def _operands(self) -> tuple[Any, ...]:
        """The operands as they were written, constants as floats: (2.0, x) for 2 - x."""
        if self._a is None:
            return self._many_operands()  # type: ignore[attr-defined, no-any-return]  # a Value has it
        if self._row.arity != 2:
            return (self._a,)
        b = constant(self) if self._b is None else self._b
        return (b, self._a) if self._made & LEFT else (self._a, b)

    @property
    def _prev(self) -> tuple[Any, ...]:
        """The operands as Values, a constant as a new leaf; a constant exponent, as of x**2, is no operand."""
        if self._is_constant_power():
            return (self._a,)
        leaf = self._leaf  # type: ignore[attr-defined]  # a Value has it
        return tuple([x if isinstance(x, Node) else leaf(coerce.number(x)) for x in self._operands])

    def _is_constant_power(self) -> bool:
        return self._made & CODE == POW and self._b is None

    @property
    def _backward(self) -> Callable[[], object]:
        """The step of `backward()` at this node alone: called by hand, it passes the gradient to the operands."""
        return self._push  # type: ignore[attr-defined, no-any-return]  # a Value has it

    @_backward.setter
    def _backward(self, function: Any) -> None:
        what = "this Value is a leaf" if self.is_leaf else f"{self._row.name} made this Value, and has its own rule"
        raise HandmadeNodeError(
            f"{what}: its _backward cannot be set. Make the node yourself, out = Value(number, (self, other), '+'), "
            "and set out._backward; or register the operation: double = wengert.op('double', value=lambda x: 2 * x, "
            "partials=lambda out, x: 2.0)"
        )

    # -- comparisons and conversions ----------------------------------------------------------------------------------

    def __lt__(self, other: Any) -> Any:
        return _compared("lt", self, other, self._data < _real(other)) if _has_order(other) else NotImplemented

    def __le__(self, other: Any) -> Any:
        return _compared("le", self, other, self._data <= _real(other)) if _has_order(other) else NotImplemented

    def __gt__(self, other: Any) -> Any:
        return _compared("gt", self, other, self._data > _real(other)) if _has_order(other) else NotImplemented

    def __ge__(self, other: Any) -> Any:
        return _compared("ge", self, other, self._data >= _real(other)) if _has_order(other) else NotImplemented

    def __eq__(self, other: object) -> Any:
        """Compare `data` with a number, but identity with a Value, so that Values can be keys of sets and dicts."""
        if isinstance(other, Node):
            return self is other if _tracing_hook is None else _tracing_hook.same(self, other)
        if not coerce.is_number(other):
            return NotImplemented
        return _compared("eq", self, other, self._data == coerce.number(other))

    def __ne__(self, other: object) -> Any:
        if isinstance(other, Node):
            return not self == other
        if not coerce.is_number(other):
            return NotImplemented
        return _compared("ne", self, other, self._data != coerce.number(other))

    def __hash__(self) -> int:
        if _tracing_hook is not None:
            _tracing_hook.same(self, self)
        return id(self) >> 4

    def __bool__(self) -> bool:
        return bool(_compared("ne", self, 0.0, self._data != 0.0))

    def __float__(self) -> float:
        refused()
        raise OperandError(
            "a Value is not a float: read v.data, or call v.exp() and the like to keep the gradient. "
            f"{FILL} (The Value is {self._data}.)"
        )

    def __int__(self) -> int:
        raise _plain("int(v)", f"int(v.data). {FILL}")

    def __round__(self, digits: Any = None) -> Any:
        raise _plain("round(v)", "round(v.data, digits), or f'{v:.2f}'")

    def __floordiv__(self, other: Any) -> Any:
        raise _plain("v // w", "v.data // w, or v / w")

    def __rfloordiv__(self, other: Any) -> Any:
        raise _plain("w // v", "w // v.data, or w / v")

    def __mod__(self, other: Any) -> Any:
        raise _plain("v % w", "v.data % w")

    def __rmod__(self, other: Any) -> Any:
        raise _plain("w % v", "w % v.data")

    def __matmul__(self, other: Any) -> Any:
        raise OperandError("v @ w is a product of lists: write wengert.dot(ws, xs), or v * w for two Values")

    def __repr__(self) -> str:
        refuse("writes out a Value: do it after the call")
        label = f", label={self.label!r}" if self.label else ""
        return f"Value(data={self._data}, grad={self._grad}{label})"

    def __format__(self, spec: str) -> str:
        return format(self.data, spec) if spec else repr(self)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Any:
        """Show the graph as a picture in a notebook."""
        return _supplied["bundle"](self, include, exclude)

    def __array_function__(self, function: Any, types: Any, args: Any, named: Any) -> Any:
        """Let NumPy's `interp` take Values; its other functions take them as objects."""
        return _supplied["of_numpy"](function, types, args, named)

    def item(self) -> float:
        """Return the number, as `data` does."""
        return self.data

    def detach(self) -> Any:
        """Return a new leaf with the same number: no gradient flows back through it."""
        if _tracing_hook is not None:
            return _tracing_hook.detached(self, self._data)
        return self._leaf(self._data)  # type: ignore[attr-defined]  # a Value has it

    # -- copies -------------------------------------------------------------------------------------------------------

    def __copy__(self) -> Any:
        """Return a leaf with the same number, without the graph below it."""
        if _tracing_hook is not None and (copied := _tracing_hook.copied(self)) is not None:
            return copied
        if self._made & CODE:
            return self._leaf(self._data)  # type: ignore[attr-defined]  # a Value has it
        restore, arguments, state = self.__reduce__()
        leaf = restore(*arguments)
        if state:
            leaf.__dict__.update(state)
        return leaf

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        """Copy the whole graph below this node, without recursion, so of any depth."""
        if _tracing_hook is not None and (copied := _tracing_hook.copied(self)) is not None:
            return copied
        return _supplied["copy"](self, memo)

    def __reduce__(self) -> Any:
        refuse("pickles a Value: do it after the call")
        if self._made & CODE:
            raise TypeError(
                "only a leaf can be pickled, not the graph below a result: keep its number (.data), copy it with "
                "copy.deepcopy, or save the parameters of a model with wengert.checkpoint.save(model, path)"
            )
        return _restored, (type(self), self._data, self._grad, self.label), getattr(self, "__dict__", None)


def is_many(node: Node) -> bool:
    """Return True if a node has the fields of `engine.Many`: it was computed, and has no `_a`."""
    return node._a is None and node._made & CODE != 0


def constant(node: Node) -> float:
    """Return the constant operand of a binary operation of one Value, the 2 of x + 2: `_db` is free and holds it."""
    return node._db


def root_slope(x: Any, slope: float, is_root: bool) -> float:
    """Return the slope of an operation of x, which is given; of a square root of a sum of squares of zeros 0, as it is
    that of a length: so NumPy's `linalg.norm` and `std` compute one.
    """
    if not is_root or slope != inf or not isinstance(x, Node):
        return slope
    waiting: list[Any] = [x]
    bases: list[Any] = []
    while waiting:
        node: Any = waiting.pop()
        operands = node._operands if isinstance(node, Node) else ()
        row = node._row.name if operands else ""
        first, last = (operands[0], operands[-1]) if operands else (node, None)
        if row in ("add", "sum", "mean"):
            waiting += operands
        elif (row == "mul" or row == "div") and type(last) is float and 0.0 < last < inf:
            waiting.append(first)
        elif row == "mul" and type(first) is float and 0.0 < first < inf:
            waiting.append(last)
        elif row == "square" or (row == "pow" and _is_even(last)):
            bases.append(first)
        elif row == "mul" and (base := _without_factor(first)) is _without_factor(last):
            bases.append(base)
        elif row == "dot" and all(map(is_, operands[: len(operands) // 2], operands[len(operands) // 2 : -1])):
            bases += operands[: len(operands) // 2]
            waiting.append(last)
        elif type(node) is not float or node != 0.0:
            return slope
    return 0.0 if bases and not any(map(_real, bases)) else slope


def _without_factor(x: Any) -> Any:
    """Return what is multiplied by positive constants."""
    while isinstance(x, Node) and x._row.name == "mul":
        first, last = x._operands
        factor, rest = (last, first) if type(last) is float else (first, last)
        if not (type(factor) is float and 0.0 < factor < inf):
            return x
        x = rest
    return x


def _is_even(exponent: Any) -> bool:
    return type(exponent) is float and exponent >= 2.0 and exponent % 2.0 == 0.0


def _has_order(other: Any) -> bool:
    """Return True if a Value can be compared with `other`; raise an OperandError for kinds with better advice."""
    # A number is seen without a call: NumPy's `at` goes on after an error, where Python refuses to return from one.
    if type(other) is float or type(other) is int or isinstance(other, Node) or coerce.is_number(other):
        return True
    coerce.number(other)  # raises with advice, if the kind is known
    return False


def _real(x: Any) -> float:
    if type(x) is float:
        return x
    if isinstance(x, Node):
        node: Node = x
        return node._data
    return ieee.whole(x) if type(x) is int else coerce.number(x)


def settle(arguments: Nodes) -> Nodes:
    """Convert numbers to floats in place, each once, since a `__float__` may run any code; return the list.

    While a function is being traced, traced numbers become Values.
    """
    if _tracing_hook is not None:
        arguments[:] = _tracing_hook.operands(arguments)
    known: Any = float  # the class of the last Value, most often that of the next one too
    for i in range(len(arguments)):
        x = arguments[i]
        if type(x) is not float and type(x) is not known:
            if isinstance(x, Node):
                known = type(x)
                continue
            y = ieee.whole(x) if type(x) is int else coerce.number(x)
            arguments[i] = y if y == y else coerce.data(x)
    return arguments


def _plain(written: str, instead: str) -> OperandError:
    refused()
    return OperandError(f"{written} of a Value would silently lose its gradient: write {instead}")


def no_remainder() -> Any:
    """Raise the error for `pow(v, n, m)`, which is of whole numbers.

    Raises:
        OperandError: always.
    """
    raise _plain("pow(v, n, m)", "pow(int(v.data), n, m), or pow(v, n)")


def _compared(how: str, x: Node, other: Any, outcome: Any) -> Any:
    """Return the outcome of a comparison, or a traced bool while a function is being traced."""
    return outcome if _tracing_hook is None else _tracing_hook.comparison(how, x, other, outcome)


def refuse(why: str) -> None:
    """Stop the trace of a compiled function, if one is running, which raises; `why` completes "the function ..."."""
    if _tracing_hook is not None:
        _tracing_hook.refuse(why)


def differentiated(kind: str, function: Any, argnums: Any, args: Any) -> Any:
    """Return a derivative that a traced function calls, if the tracer makes a program of it; else `NotImplemented`."""
    return NotImplemented if _tracing_hook is None else _tracing_hook.differentiated(kind, function, argnums, args)


def refused() -> None:
    """A Value was asked for as a plain number, which raises an error: `modes.py` replaces this function."""


def set_tracing_hook(hook: Any) -> None:
    """Set the tracer, or None. Its methods are called when a Value is read or copied (`read`, `detached`, `copied`) or
    compared (`comparison`), with the operands of each operation (`operands`), by `refuse` and `differentiated`.
    """
    global _tracing_hook
    _tracing_hook = hook


def _restored(kind: Any, data: float, grad: float, label: str) -> Any:
    """Restore a pickled leaf without `__init__`, which in a subclass may take other arguments."""
    leaf: Node = fresh(kind)
    leaf._data, leaf._grad, leaf.label = data, grad, label
    return leaf


def fresh(kind: Any) -> Any:
    """Make a leaf of a class, perhaps a subclass of the user's, without calling `__init__`.

    Raises:
        TypeError: `__new__` returned an object of another class.
    """
    leaf = kind.__new__(kind)
    if type(leaf) is not kind or not isinstance(leaf, Node):
        raise TypeError(f"copies are made by {kind.__qualname__}.__new__, which returned {coerce.named(leaf)}")
    return leaf


def supply(**functions: Any) -> None:
    """Register functions of modules that import this one, for Values to call.

    `kind` chooses the class of a Value with children (handmade.py), `copy` copies a graph for `copy.deepcopy`
    (graph.py), `bundle` makes the picture for a notebook (view), and `of_numpy` calls functions of NumPy
    (interpolation.py).
    """
    _supplied.update(functions)


def kind(cls: Any, arguments: tuple[Any, ...], named: Any) -> Any:
    """Return the class of the node that ``Value(...)`` makes from more than a number.

    Raises:
        KeywordError: there is no parameter of a name that is given.
    """
    for name in named or ():
        if name != "label":
            coerce.check_keyword(cls, name)
    children = arguments[1] if len(arguments) > 1 else (named or {}).get("_children", ())
    given = isinstance(children, (tuple, list, set, frozenset)) and "kind" in _supplied
    return _supplied["kind"](cls, children) if given else cls
