"""What is kept of one step of a computation, and what a Value is as a Python object.

A `Node` holds the number, its gradient, the operation that made it, the operands, and the partial derivative
by each of them. The calculus stands in `engine.py`, where `Value` gives nodes their arithmetic. Like the
engine, this file runs as it stands and is compiled by Cython, with `node.pxd` beside it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wengert.errors import ArgumentError, HandmadeNodeError, OperandError
from wengert.ops import BY_NAME, LEFT, TABLE, Op, coerce, ieee
from wengert.ops.ieee import Nodes, cython

if False:  # what the compiler reads instead of the stand-in
    import cython  # type: ignore[no-redef]

__all__ = ["CODE", "WALK", "Node", "constant", "fresh", "kind", "refuse", "set_tracing_hook", "settle"]
__all__ += ["supply"]

CODE = (1 << 16) - 1  # the bits of `_made` that hold the operation; the bits above count ticks
WALK = (1 << 40) - 1  # the bits of `_mark` that hold the number of a walk; the bits above hold the label
POW = BY_NAME["pow"].code
LABELS = 1 << 23  # how many labels a process can have: a node has so many bits for the place of its own

_labels, _places = [""], {"": 0}  # every label in use, and its place: a node holds the place
_supplied: dict[str, Any] = {}  # what modules above do for a Value: see `supply`
_tracing_hook = None  # what is told when a number is read, compared or overwritten: see `set_tracing_hook`


@cython.no_gc  # numbers that point at what they were made from cannot form a cycle
@cython.cclass
class Node:
    """One number of a computation, and how it came about."""

    __slots__ = ("_a", "_b", "_da", "_data", "_db", "_grad", "_made", "_mark")
    _made: int  # when it was made, in ticks; the low 16 bits hold the operation's place in the table
    _data: float  # the number
    _grad: float  # its gradient
    _a: Any  # the operands that are Values,
    _b: Any
    _da: float  # and the partial derivative by each;
    _db: float  # what else they hold where there are no partials is asked of `constant` here, and in the engine
    _mark: int  # the number of the last walk that met it; above 40 bits, the place of its label

    @property
    def data(self) -> float:
        """The number."""
        return self._data if _tracing_hook is None else _tracing_hook.read(self, self._data)

    @data.setter
    def data(self, number: Any) -> None:
        refuse("sets the data of a Value")
        self._data = number if type(number) is float else coerce.data(number)

    @property
    def grad(self) -> float:
        """The derivative by this number of what `backward()` was called on. Leaves add up all calls."""
        refuse("reads the gradient of a Value")
        return self._grad

    @grad.setter
    def grad(self, number: Any) -> None:
        refuse("sets the gradient of a Value")
        self._grad = number if type(number) is float else 0.0 if number is None else coerce.data(number)

    @property
    def label(self) -> str:
        """A name for drawings and messages. It lives as long as the process."""
        return _labels[self._mark >> 40]

    @label.setter
    def label(self, text: Any) -> None:
        text = str.__str__(str(text))  # without the `__hash__` and the `__eq__` of a subclass
        if text not in _places:
            if len(_labels) >= LABELS:
                raise ArgumentError(f"a process can have {LABELS} labels, and has them: {text!r:.40} is one too many")
            _labels.append(text)
            _places[text] = len(_labels) - 1
        self._mark = self._mark & WALK | _places[text] << 40

    # -- how it was made ----------------------------------------------------------------------------------------------

    @property
    def is_leaf(self) -> bool:
        """Whether it was not computed but given: a parameter, an input."""
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
        if self._row.arity != 2:
            return () if self._a is None else (self._a,)
        b = constant(self) if self._b is None else self._b
        return (b, self._a) if self._made & LEFT else (self._a, b)

    @property
    def _prev(self) -> tuple[Any, ...]:
        """The operands as Values, a constant as a fresh leaf; the exponent of x**2 belongs to the operation."""
        if self._is_constant_power():
            return (self._a,)
        leaf = self._leaf  # type: ignore[attr-defined]  # a Value has it
        return tuple([x if isinstance(x, Node) else leaf(coerce.number(x)) for x in self._operands])

    def _is_constant_power(self) -> bool:
        return self._made & CODE == POW and self._b is None

    @property
    def _backward(self) -> Callable[[], object]:
        """The step of `backward()` at this node alone, to call by hand: it passes the gradient to the operands."""
        return self._push  # type: ignore[attr-defined, no-any-return]  # a Value has it

    @_backward.setter
    def _backward(self, function: Any) -> None:
        what = "this Value is a leaf" if self.is_leaf else f"{self._row.name} made this Value, and passes gradients on"
        raise HandmadeNodeError(
            f"{what}: its _backward cannot be set. Make the node yourself, out = Value(number, (self, other), '+'), "
            "and set out._backward; or register the operation: double = wengert.op('double', value=lambda x: 2 * x, "
            "partials=lambda out, x: 2.0)"
        )

    # -- a number among numbers ---------------------------------------------------------------------------------------

    def __lt__(self, other: Any) -> Any:
        return _compared("lt", self, other, self._data < _real(other)) if _has_order(other) else NotImplemented

    def __le__(self, other: Any) -> Any:
        return _compared("le", self, other, self._data <= _real(other)) if _has_order(other) else NotImplemented

    def __gt__(self, other: Any) -> Any:
        return _compared("gt", self, other, self._data > _real(other)) if _has_order(other) else NotImplemented

    def __ge__(self, other: Any) -> Any:
        return _compared("ge", self, other, self._data >= _real(other)) if _has_order(other) else NotImplemented

    def __eq__(self, other: object) -> Any:
        """With a number, equality of `data`; with a Value, identity, so that Values live in sets and dicts."""
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
        raise OperandError("a Value is not a float: read v.data, or call v.exp() and the like to keep the gradient")

    def __int__(self) -> int:
        raise _plain("int(v)", "int(v.data)")

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
        refuse("writes out a Value")
        return f"Value(data={self._data}, grad={self._grad})"

    def __format__(self, spec: str) -> str:
        return format(self.data, spec) if spec else repr(self)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Any:
        """What a notebook shows: the graph as a picture."""
        return _supplied["bundle"](self, include, exclude)

    def item(self) -> float:
        """The number, as `data` gives it."""
        return self.data

    def detach(self) -> Any:
        """A new leaf of the same number: no gradient flows back through it."""
        if _tracing_hook is not None:
            return _tracing_hook.detached(self, self._data)
        return self._leaf(self._data)  # type: ignore[attr-defined]  # a Value has it

    # -- copies -------------------------------------------------------------------------------------------------------

    def __copy__(self) -> Any:
        """A leaf of the same number: what it was computed from stays with this node."""
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
        """A copy of the whole graph under this node; no recursion, however deep it is."""
        if _tracing_hook is not None and (copied := _tracing_hook.copied(self)) is not None:
            return copied
        return _supplied["copy"](self, memo)

    def __reduce__(self) -> Any:
        refuse("copies a Value")
        if self._made & CODE:
            raise TypeError(
                "only a leaf can be pickled, not the graph under a result: keep its number (.data), copy it with "
                "copy.deepcopy, or save the parameters of a model with wengert.checkpoint.save(model, path)"
            )
        return _restored, (type(self), self._data, self._grad, self.label), getattr(self, "__dict__", None)


def constant(node: Node) -> float:
    """The constant beside the one Value of a binary operation, as in x + 2: where the partial by a Value would be."""
    return node._db


def _has_order(other: Any) -> bool:
    """Whether a Value can be compared with it; a TypeError for what cannot even be computed with."""
    if isinstance(other, Node) or coerce.is_number(other):
        return True
    coerce.number(other)  # raises, and says what to write instead, if the kind is known
    return False


def _real(x: Any) -> float:
    if isinstance(x, Node):
        node: Node = x
        return node._data
    return coerce.number(x)


def settle(arguments: Nodes) -> Nodes:
    """Put floats where there are other numbers: each is asked once what it comes to, as its `__float__` is any code.

    A recording has Values for the numbers that it traces.
    """
    if _tracing_hook is not None:
        arguments[:] = _tracing_hook.operands(arguments)
    known: Any = float  # the class of the last Value: most often that of the next
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
    """What to say to an operation that has no derivative to pass on."""
    return OperandError(f"{written} of a Value would lose its gradient in silence: write {instead}")


def _compared(how: str, x: Node, other: Any, outcome: Any) -> Any:
    """The outcome of a comparison; what stands for it in a recording."""
    return outcome if _tracing_hook is None else _tracing_hook.compared(how, x, other, outcome)


def refuse(why: str) -> None:
    """Tell a recording, if there is one, that something cannot be recorded: it raises."""
    if _tracing_hook is not None:
        _tracing_hook.refuse(why)


def set_tracing_hook(hook: Any) -> None:
    """Tell a recording what is read or copied (`read`, `detached`, `copied`), compared (`compared`, `same`), computed
    from its own numbers (`operands`) or cannot be recorded (`refuse`).
    """
    global _tracing_hook
    _tracing_hook = hook


def _restored(kind: Any, data: float, grad: float, label: str) -> Any:
    """A leaf as it was pickled: perhaps of a subclass, whose `__init__` may want other arguments."""
    leaf: Node = fresh(kind)
    leaf._data, leaf._grad, leaf.label = data, grad, label
    return leaf


def fresh(kind: Any) -> Any:
    """A leaf of a class that may be a user's, without its `__init__`.

    Raises:
        TypeError: its `__new__` makes something else.
    """
    leaf = kind.__new__(kind)
    if type(leaf) is not kind or not isinstance(leaf, Node):
        raise TypeError(f"a copy is made by {kind.__qualname__}.__new__, which gave {coerce.named(leaf)}")
    return leaf


def supply(**functions: Any) -> None:
    """Give Values what modules that stand on this one do for them.

    `kind`: the class of a Value that is given children (handmade.py). `copy`: what `copy.deepcopy` asks for (graph.py).
    `bundle`: what a notebook shows (view).
    """
    _supplied.update(functions)


def kind(cls: Any, arguments: tuple[Any, ...], named: Any) -> Any:
    """The class of ``Value(...)`` of more than a number."""
    children = arguments[1] if len(arguments) > 1 else (named or {}).get("_children", ())
    given = isinstance(children, (tuple, list, set, frozenset)) and "kind" in _supplied
    return _supplied["kind"](cls, children) if given else cls
