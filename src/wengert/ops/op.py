"""`Op`, a row of the table of operations, and `interpret`, which runs its rules over any kind of number.

The rows themselves are in `table.py`.
"""

from __future__ import annotations

import keyword
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from math import inf
from types import FunctionType
from typing import Any, NamedTuple

from wengert._forks import Lock
from wengert.errors import ArgumentError, LengthError, OperationError, counted
from wengert.ops import incomplete, special
from wengert.ops.coerce import data
from wengert.ops.finite_differences import by_differences

__all__ = ["AS_OPERANDS", "BY_NAME", "FLOATS", "LEFT", "METHODS", "NONNEGATIVE", "TABLE", "UNARY", "VALUES", "Op"]
__all__ += ["Operators", "Rule", "by_rule", "complete", "interpret", "namespace", "of_shapes", "prefer_methods"]
__all__ += ["register", "row"]
__all__ += ["tell_recording"]

LEFT = 1 << 15  # added to the code of a binary operation whose left operand is a constant, as in 2 - x
ROWS = "wengert.ops.table"
# The modules whose rules `interpret` can read.
RULES = (ROWS, special.__name__, incomplete.__name__, "wengert.ops.implicit")
JUMPS = ("sign", "floor", "round", "remainder")  # rows whose value jumps, with the same slope on both sides
NONNEGATIVE, AS_OPERANDS = "0, positive or nan", "0, positive or nan where no operand is negative"


class Op(NamedTuple):
    """One operation. Called with floats it computes a float, and with a Value among its operands a Value."""

    name: str
    arity: int | None  # None: any number of operands
    symbol: str  # how drawings write it
    about: str  # the function's docstring, one line
    value: Callable[..., float]
    partials: Callable[..., Any]  # (out, *operands) -> the partial derivative; for several operands, one for each
    domain: tuple[tuple[float, float], ...] = ((-3.0, 3.0),)  # the interval of each operand in tests
    aliases: tuple[str, ...] = ()
    defaults: tuple[float, ...] = ()  # of the last operands
    kinks: Callable[..., float] | None = None  # the distance of the operands from a jump of the derivative
    sign: str = ""  # if the value cannot be negative: NONNEGATIVE or AS_OPERANDS
    infix: str = ""  # the operator between its two operands, or before the only one
    code: int = -1  # its index in the table
    graph_partials: Callable[..., Any] = lambda *_: None  # the partials over Values
    series: Callable[..., Any] | None = None  # the value where no library has a function for it: called, not inlined
    written_out: bool = False  # its series takes any operands, and is inlined (see `implicit`)
    more: str = ""  # the row that takes any other number of operands in its place
    shapes: tuple[
        str, ...
    ] = ()  # the names of its first operands, if its rules take numbers for them (see `of_shapes`)

    def __repr__(self) -> str:
        return f"<operation {self.name}>"

    def __call__(self, *xs: Any) -> Any:
        """Compute the value; missing operands at the end take their defaults."""
        if len(xs) != self.arity:
            if self.more:
                return BY_NAME[self.more](*xs)
            xs = self._completed(xs)
        if self.shapes and any(hasattr(x, "backward") and hasattr(x, "_apply_op") for x in xs[: len(self.shapes)]):
            return of_shapes[self.name](*xs)  # of Values: no number that is traced, no tensor
        for x in xs:
            apply = getattr(x, "_apply_op", None)
            if apply is not None:
                made = NotImplemented
                if _recording is not None and self.code >= _built_in:
                    made = _recording(self, xs)
                return apply(self, xs) if made is NotImplemented else made
        return float(self.value(*map(data, xs)))

    def _completed(self, xs: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return the operands, of many one by one or as one iterable, with the defaults of those that are missing."""
        if self.arity is None:
            if len(xs) == 1 and isinstance(xs[0], Iterable):
                xs = tuple(xs[0])
            if not xs and self.name not in ("sum", "prod", "norm"):
                raise LengthError(f"{self.name} got no values: expected at least one")
            return xs
        missing = self.arity - len(xs)
        if not 0 < missing <= len(self.defaults):
            raise ArgumentError(f"{self.name} takes {counted(self.arity, 'operand')}, got {len(xs)}")
        return xs + self.defaults[-missing:]

    def misfit(self, count: int) -> OperationError:
        """Make the error for a wrong number of operands, or for a row that is not in the table."""
        if self.arity is not None and self.arity != count:
            return OperationError(f"{self.name} takes {counted(self.arity, 'operand')}, got {count}")
        return OperationError(f"{self.name} is not in the table: register it, wengert.op({self.name!r}, ...)")

    def partials_at(self, out: Any, xs: Sequence[Any]) -> list[Any]:
        """List the partial derivatives with respect to the operands, for a unary operation too."""
        return _listed(self.partials(out, *xs))

    def kink_distance(self, operands: Sequence[int | float], xs: Sequence[float]) -> float:
        """Return the distance of the operands from a kink of the operation; inf if no change of a number can leave it.

        Args:
            operands: an int for each operand that is a node, equal for the same node; a float for a constant. So
                ``maximum(x, x)`` has no kink: it is a tie wherever x is.
            xs: the values of the operands.

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
                if type(operands[place]) is int and operands[place] == number:  # to where no neighbour is likely to be
                    moved[place] = 0.0 if abs(x) == inf else x + (abs(x) + 1.0) / 3.0
            if self.kinks(*moved) != 0.0:
                return distance
        return inf

    def has_kink_at(self, operands: Sequence[int | float], xs: Sequence[float]) -> bool:
        """Return True if the slopes on both sides of the operands differ; not where the value alone jumps, as that of
        `floor` does. The arguments are those of `kink_distance`.
        """
        return self.name not in JUMPS and self.kink_distance(operands, xs) == 0.0


TABLE: list[Op] = []
UNARY = bytearray()  # for each row, 1 if it takes one operand, else 0
BY_NAME: dict[str, Op] = {}
METHODS: dict[str, dict[type, Callable[[Any], Any]]] = defaultdict(dict)  # by row: see `prefer_methods`
of_shapes: dict[str, Callable[..., Any]] = {}  # by row: what computes it for shapes that are Values
_names: dict[str, Any] = {"__name__": ROWS}  # the names of the rows' module
FLOATS: dict[str, Any] = dict(_names)  # the globals of the rules over floats
VALUES: dict[str, Any] = dict(_names)  # and over Values
_built_in = 0  # the number of built-in rows
_recording: Callable[[Op, Any], Any] | None = None  # applies users' operations while a function is recorded
_lock = Lock()  # over the table: threads register operations, and record them
_by_rule: dict[int, tuple[Op, Op]] = {}  # by the codes of users' operations: them and their rows of `by_rule`


def prefer_methods(kind: type) -> None:
    """Let functions of one operand, as `wengert.tanh`, call the methods of a class that writes them out for speed."""
    for op in TABLE:
        if op.arity == 1 and op.name in vars(kind):
            METHODS[op.name][kind] = vars(kind)[op.name]


def tell_recording(hook: Callable[[Op, Any], Any] | None) -> None:
    """Let a hook apply users' operations first; it returns `NotImplemented` to decline."""
    global _recording
    _recording = hook


def by_rule(op: Op) -> Op:
    """Return the row that stands for a user's operation in recorded programs, where its rules have been computed.

    Its operands are the value, and each operand followed by the derivative with respect to it.
    """

    def partials(out: Any, value: Any, *pairs: Any) -> list[Any]:
        return [0.0, *[y for slope in pairs[1::2] for y in (slope, 0.0)]]

    def graph_partials(out: Any, value: Any, *pairs: Any) -> list[Any]:
        try:
            slopes = op.graph_partials(out, *pairs[::2])
        except Exception:  # of floats alone: who asks for more than their numbers has had an error
            slopes = list(pairs[1::2])
        return partials(out, value, *[y for x in _listed(slopes) for y in (0.0, x)])

    with _lock:
        known, made = _by_rule.get(op.code, (op, op))
        if made is op or known is not op or TABLE[made.code : made.code + 1] != [made]:  # another took its place
            arity = 2 * (op.arity or 0) + 1
            made = row(f"{op.name} by rule", arity, op.symbol, op.about, lambda value, *pairs: value, partials)
            made = made._replace(graph_partials=graph_partials)
            TABLE[made.code] = BY_NAME[made.name] = made
            _by_rule[op.code] = op, made
    return made


def _listed(partials: Any) -> list[Any]:
    return list(partials) if isinstance(partials, (tuple, list)) else [partials]


def row(
    name: str, arity: int | None, symbol: str, about: str, value: Any, partials: Any, *domain: Any, **more: Any
) -> Op:
    """Add a row to the table, with its rules over floats and over Values."""
    readings = {"value": interpret(value, FLOATS), "partials": interpret(partials, FLOATS)}
    readings["graph_partials"] = interpret(partials, VALUES)
    more["kinks"] = interpret(more.get("kinks"), FLOATS)
    with _lock:
        if len(TABLE) == LEFT:
            raise OperationError(f"the table is full: it has {LEFT} operations")
        code, ranges = len(TABLE), domain or ((-3.0, 3.0),) * (arity or 3)
        new = Op(name, arity, symbol, about, domain=ranges, code=code, **readings, **more)
        TABLE.append(new)
        UNARY.append(arity == 1)
        BY_NAME.update(dict.fromkeys((name, *new.aliases), new))
    return new


class Rule:
    """A rule that is told over which kind of number it runs, by a `namespace`: the first argument of its function."""

    __slots__ = ("_function", "_meanings")

    def __init__(self, function: Callable[..., Any], meanings: Any = None) -> None:
        self._function: Callable[..., Any] = function
        self._meanings: Any = meanings

    def __call__(self, *xs: Any) -> Any:
        """Return the result for some operands."""
        return self._function(self._meanings, *xs)

    def over(self, meanings: dict[str, Any]) -> Rule:
        """Return the rule over another kind of number."""
        return Rule(self._function, meanings)


def interpret(rule: Any, meanings: dict[str, Any]) -> Any:
    """Copy a rule of the table with other globals, a `namespace`; return any other rule, as a user's, unchanged.

    So one rule serves floats, Values, the numbers of other libraries, symbols and source code in other languages.

    >>> written = namespace(lambda row: lambda *xs: f"{row.name}({', '.join(map(str, xs))})")
    >>> interpret(BY_NAME["reciprocal"].value, written)("x")
    'div(1.0, x)'
    """
    if isinstance(rule, Rule):
        return rule.over(meanings)
    if isinstance(rule, FunctionType) and rule.__module__ in RULES and not rule.__closure__:
        return FunctionType(rule.__code__, meanings, rule.__name__, rule.__defaults__)
    return rule


def namespace(of_row: Callable[[Op], Any] = lambda row: row, **meanings: Any) -> dict[str, Any]:
    """Make the globals that rules need over another kind of number, for `interpret`.

    Args:
        of_row: returns the replacement of a row; by default the row itself, which computes floats or Values.
        **meanings: replacements of single names, as of `where` if a condition has no truth value yet.
    """
    found: dict[str, Any] = {}
    _fill(found, of_row)
    found.update(meanings)
    return found


def _fill(meanings: dict[str, Any], of_row: Callable[[Op], Any]) -> None:
    """Fill in the names of the rows' module; functions that rules share are interpreted with the same globals."""
    meanings["_of_row"] = of_row
    for name, thing in _names.items():
        meanings[name] = of_row(thing) if isinstance(thing, Op) else interpret(thing, meanings)


def complete(names: dict[str, Any]) -> int:
    """Fill in the globals of rules over floats and over Values; return the number of rows.

    Over Values a comparison gives a bool, so `where` needs no node, and the branch that was not taken cannot turn a
    second derivative into 0 * inf.
    """
    _names.update({**vars(special), **vars(incomplete), **names})
    _fill(FLOATS, lambda row: row.value)
    _fill(VALUES, lambda row: row)
    VALUES["where"] = lambda condition, x, y: x if condition else y
    global _built_in
    _built_in = len(TABLE)
    return _built_in


class Operators:
    """Python's operators for a kind of number that rules run over: each calls `_operated(name, *operands)` with the
    name of its row or comparison.
    """

    __slots__ = ()

    def _operated(self, name: str, *operands: Any) -> Any:
        raise NotImplementedError

    def __neg__(self) -> Any:
        return self._operated("neg", self)

    def __abs__(self) -> Any:
        return self._operated("abs", self)

    def __hash__(self) -> int:
        raise TypeError("it cannot be a key: == makes an expression")

    def __bool__(self) -> bool:
        raise TypeError("a rule has to use where(condition, a, b) in place of if")


def _operator(name: str, reflected: bool = False) -> Callable[[Any, Any], Any]:
    return lambda x, y: x._operated(name, y, x) if reflected else x._operated(name, x, y)


for _method, _name in {"add": "add", "sub": "sub", "mul": "mul", "truediv": "div", "pow": "pow"}.items():
    setattr(Operators, f"__{_method}__", _operator(_name))
    setattr(Operators, f"__r{_method}__", _operator(_name, reflected=True))
for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    setattr(Operators, f"__{_name}__", _operator(_name))


def register(
    name: str, value: Callable[..., float], partials: Callable[..., Any] | str, arity: int | None, symbol: str
) -> Op:
    """Add a row that a user wrote; `functions.op` calls it.

    Raises:
        OperationError: the name is not an identifier or belongs to a built-in operation, the symbol is not a string, or
            a rule is not a function.
    """
    if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name) or name.startswith("_"):
        raise OperationError(f"the name {name!r} is not allowed: use an identifier without a leading underscore")
    if name in BY_NAME and BY_NAME[name].code < _built_in:
        raise OperationError(f"{name} is a built-in operation: choose another name")
    if not isinstance(symbol, str):
        raise OperationError(f"the symbol of {name} is {symbol!r:.40}; expected a string, for drawings")
    for role, rule, other in (("value", value, ""), ("partials", partials, "; or pass partials='differences'")):
        if not callable(rule) and (rule != "differences" or not other):
            raise OperationError(f"the {role} of {name} must be a function, not {rule!r:.40}{other}")
    if not callable(partials):
        partials = by_differences(value)
    return row(name, arity, symbol, value.__doc__ or "", value, partials)
