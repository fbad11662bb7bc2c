"""What an operation is: a row of a table, whose rules are read anew over each kind of number.

The rows themselves stand in `table.py`.
"""

from __future__ import annotations

import keyword
from collections.abc import Callable, Iterable, Sequence
from math import inf
from types import FunctionType
from typing import Any, NamedTuple

from wengert.errors import ArgumentError, LengthError, OperationError
from wengert.ops import special
from wengert.ops.coerce import data

__all__ = ["AS_OPERANDS", "BY_NAME", "FLOATS", "LEFT", "NONNEGATIVE", "TABLE", "UNARY", "VALUES", "Op", "complete"]
__all__ += ["Operators", "interpret", "namespace", "register", "row"]

LEFT = 1 << 15  # added to the code of a binary operation whose constant stands on the left, as in 2 - x
ROWS, SERIES = "wengert.ops.table", "wengert.ops.special"  # the modules whose rules `interpret` can read
NONNEGATIVE, AS_OPERANDS = "0, positive or nan", "0, positive or nan where no operand is negative"


class Op(NamedTuple):
    """One operation. Called, it computes: floats from floats, a Value where an operand is one."""

    name: str
    arity: int | None  # None: any number of operands
    symbol: str  # how drawings write it
    about: str  # what it is, in a line
    value: Callable[..., float]
    partials: Callable[..., Any]  # (out, *operands) -> one partial; for several operands, one for each
    domain: tuple[tuple[float, float], ...] = ((-3.0, 3.0),)  # where tests draw each operand from
    aliases: tuple[str, ...] = ()
    defaults: tuple[float, ...] = ()  # of the last operands
    kinks: Callable[..., float] | None = None  # how far the operands are from where the derivative jumps
    sign: str = ""  # where the value cannot be negative: NONNEGATIVE, AS_OPERANDS
    infix: str = ""  # the sign that is written between its two operands, or before its one
    code: int = -1  # its place in the table
    graph_partials: Callable[..., Any] = lambda *_: None  # the partials, read over Values
    series: Callable[..., Any] | None = None  # the value where nothing has a function for it: called, not written out

    def __repr__(self) -> str:
        return f"<operation {self.name}>"

    def __call__(self, *xs: Any) -> Any:
        """Compute; operands left out at the end take their defaults."""
        if self.arity is None:
            xs = self._gathered(xs)
        elif len(xs) != self.arity:
            missing = self.arity - len(xs)
            if not 0 < missing <= len(self.defaults):
                raise ArgumentError(f"{self.name} takes {self.arity} operands, got {len(xs)}")
            xs += self.defaults[-missing:]
        for x in xs:
            apply = getattr(x, "_apply_op", None)
            if apply is not None:
                return apply(self, xs)
        return float(self.value(*map(data, xs)))

    def _gathered(self, xs: tuple[Any, ...]) -> tuple[Any, ...]:
        """The operands of an operation on many: written out, or as one iterable."""
        if len(xs) == 1 and isinstance(xs[0], Iterable):
            xs = tuple(xs[0])
        if not xs and self.name not in ("sum", "prod"):
            raise LengthError(f"{self.name} of no values: expected at least one")
        return xs

    def misfit(self, count: int) -> OperationError:
        """What to say where it cannot be applied to so many operands."""
        if self.arity not in (None, count):
            return OperationError(f"{self.name} takes {self.arity} operands, got {count}")
        return OperationError(f"{self.name} is no row of the table: register it, wengert.op({self.name!r}, ...)")

    def partials_at(self, out: Any, xs: Sequence[Any]) -> list[Any]:
        """The partial derivative by each operand, of one operand too."""
        partials = self.partials(out, *xs)
        return list(partials) if isinstance(partials, (tuple, list)) else [partials]

    def kink_distance(self, operands: Sequence[int | float], xs: Sequence[float]) -> float:
        """How far a step is from a kink; inf if there is none, or none that could be left by changing a number.

        Args:
            operands: an int for each operand that is a number of the computation, the same one for the same number; a
                float for a constant. So ``maximum(x, x)`` has no kink: it is a tie wherever x is.
            xs: what they come to.

        >>> BY_NAME["maximum"].kink_distance((0, 1), (2.0, 1.5)), BY_NAME["maximum"].kink_distance((0, 0), (2.0, 2.0))
        (0.5, inf)
        """
        if self.kinks is None:
            return inf
        distance = abs(self.kinks(*xs))
        if distance != 0.0:
            return distance
        for number in {x for x in operands if type(x) is int}:
            moved = [*xs]
            for place, x in enumerate(xs):
                if operands[place] == number:  # to where no neighbour is likely to be
                    moved[place] = 0.0 if abs(x) == inf else x + (abs(x) + 1.0) / 3.0
            if self.kinks(*moved) != 0.0:
                return distance
        return inf


TABLE: list[Op] = []
UNARY = bytearray()  # for each row, whether it takes one operand
BY_NAME: dict[str, Op] = {}
_names: dict[str, Any] = {"__name__": ROWS}  # what stands in the rows' module
FLOATS: dict[str, Any] = dict(_names)  # what the names in a rule mean when it is read over floats,
VALUES: dict[str, Any] = dict(_names)  # and when it is read over Values
_built_in = 0  # how many rows are not a user's


def row(
    name: str, arity: int | None, symbol: str, about: str, value: Any, partials: Any, *domain: Any, **more: Any
) -> Op:
    """Enter a row in the table. The rules of `ops` are read anew over each kind of number."""
    readings = {"value": interpret(value, FLOATS), "partials": interpret(partials, FLOATS)}
    readings["graph_partials"] = interpret(partials, VALUES)
    more["kinks"] = interpret(more.get("kinks"), FLOATS)
    new = Op(
        name, arity, symbol, about, domain=domain or ((-3.0, 3.0),) * (arity or 3), code=len(TABLE), **readings, **more
    )
    TABLE.append(new)
    UNARY.append(arity == 1)
    BY_NAME.update(dict.fromkeys((name, *new.aliases), new))
    return new


def interpret(rule: Any, meanings: dict[str, Any]) -> Any:
    """The same rule with its names looked up in a `namespace`; a rule from elsewhere, as a user's, stays as it is.

    So one text serves floats, Values, the numbers of other libraries, symbols and the source code of other languages.

    >>> written = namespace(lambda row: lambda *xs: f"{row.name}({', '.join(map(str, xs))})")
    >>> interpret(BY_NAME["reciprocal"].value, written)("x")
    'div(1.0, x)'
    """
    if isinstance(rule, FunctionType) and rule.__module__ in (ROWS, SERIES) and not rule.__closure__:
        return FunctionType(rule.__code__, meanings, rule.__name__, rule.__defaults__)
    return rule


def namespace(of_row: Callable[[Op], Any] = lambda row: row, **meanings: Any) -> dict[str, Any]:
    """What the names in the rules mean over another kind of number.

    Args:
        of_row: what stands for a row; by default it itself, which computes as its operands say.
        **meanings: names that mean something else there, as `where` does if a condition cannot be asked.
    """
    found: dict[str, Any] = {}
    _fill(found, of_row)
    found.update(meanings)
    return found


def _fill(meanings: dict[str, Any], of_row: Callable[[Op], Any]) -> None:
    """Say what each name of the rows' module means; what rules share is itself read over the same meanings."""
    for name, thing in _names.items():
        meanings[name] = of_row(thing) if isinstance(thing, Op) else interpret(thing, meanings)


def complete(names: dict[str, Any]) -> int:
    """Say what each name of the rules' modules means over floats and over Values; how many rows there are.

    Over Values a comparison has been answered already: no node is needed to choose, and a branch that was not
    taken cannot turn a second derivative into 0 * inf.
    """
    _names.update({**vars(special), **names})
    _fill(FLOATS, lambda row: row.value)
    _fill(VALUES, lambda row: row)
    VALUES["where"] = lambda condition, x, y: x if condition else y
    global _built_in
    _built_in = len(TABLE)
    return _built_in


class Operators:
    """Python's operators of a kind of number that rules are read over: each is `_operated(name, *operands)`, by the
    name of its row or of the comparison.
    """

    __slots__ = ()

    def _operated(self, name: str, *operands: Any) -> Any:
        raise NotImplementedError

    def __neg__(self) -> Any:
        return self._operated("neg", self)

    def __abs__(self) -> Any:
        return self._operated("abs", self)

    def __hash__(self) -> int:
        raise TypeError("it is no key: == makes an expression")

    def __bool__(self) -> bool:
        raise TypeError("a rule chooses with where(condition, a, b), not with if")


def _operator(name: str, reflected: bool = False) -> Callable[[Any, Any], Any]:
    return lambda x, y: x._operated(name, y, x) if reflected else x._operated(name, x, y)


for _method, _name in {"add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "pow": "pow"}.items():
    setattr(Operators, f"__{_method}__", _operator(_name))
    setattr(Operators, f"__r{_method}__", _operator(_name, reflected=True))
for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    setattr(Operators, f"__{_name}__", _operator(_name))


def register(
    name: str, value: Callable[..., float], partials: Callable[..., Any], arity: int | None, symbol: str
) -> Op:
    """Enter a row that a user wrote; `functions.op` is the door to it.

    Raises:
        OperationError: the name is no identifier or belongs to a built-in operation, the symbol is no string, or a rule
            cannot be called.
    """
    if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name) or name.startswith("_"):
        raise OperationError(f"an operation's name is an identifier without a leading underscore, not {name!r}")
    if name in BY_NAME and BY_NAME[name].code < _built_in:
        raise OperationError(f"{name} is a built-in operation: choose another name")
    if not isinstance(symbol, str):
        raise OperationError(f"the symbol of {name} is how drawings write it: a string, not {symbol!r:.40}")
    for role, rule in (("value", value), ("partials", partials)):
        if not callable(rule):
            raise OperationError(f"the {role} of {name} must be a function, not {rule!r:.40}")
    if len(TABLE) == LEFT:
        raise OperationError(f"the table is full: it holds {LEFT} operations")
    return row(name, arity, symbol, value.__doc__ or "", value, partials)
