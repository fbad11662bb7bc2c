"""Converts operands and arguments to floats, or says what to write instead."""

from __future__ import annotations

from decimal import Decimal
from math import inf, nan
from numbers import Real
from typing import Any

from wengert.errors import ArgumentError, HandmadeNodeError, OperandError, unknown_keyword
from wengert.ops.ieee import whole

__all__ = ["check_keyword", "data", "is_number", "label", "named", "number", "positive", "within"]

# Types that have no arithmetic with a Value, and what to write instead.
ADVICE: dict[type, str] = {
    str: "convert it with float(...)",
    bytes: "convert it with float(...)",
    complex: "a Value is real: use its .real and .imag as two Values",
    Decimal: "convert it with float(...), which rounds it to 53 bits",
    list: "use its items one by one, or wengert.dot and wengert.sum",
    tuple: "use its items one by one (is a parenthesis or a comma misplaced?)",
    dict: "use its values one by one",
    set: "use its items one by one",
    type(None): "did a function forget to return its result?",
}
PARAMETERS: tuple[str, ...] = ("data", "label", "_children", "_op")  # of Value(...)
ELSEWHERE: dict[str, str] = {  # parameters of other libraries' Values
    "requires_grad": "every Value has a gradient, but those made in wengert.no_grad(): leave it out",
    "retain_grad": "every Value keeps its gradient: leave it out",
    **dict.fromkeys(("dtype", "device"), "a Value is a float, on no device: leave it out"),
    **dict.fromkeys(("name", "_label", "tag"), "write Value(2.0, label='x')"),
    **dict.fromkeys(("value", "val"), "write Value(2.0)"),
    **dict.fromkeys(("children", "_prev", "prev", "parents"), "write Value(number, (a, b), '+')"),
    **dict.fromkeys(("op", "operation"), "write Value(number, (a, b), '+')"),
    **dict.fromkeys(("grad", "gradient"), "set it when the Value is there: x.grad = 1.0"),
}
OWN: set[type] = set()  # types whose own methods compute with Values: the traced numbers of a compiled function
SEVERAL = "make a list of Values, [Value(e) for e in x]; for the speed of arrays see wengert.compile"


def is_number(x: object) -> bool:
    """Return True if x is one real number, by its type and not by `__class__`: int, bool, Fraction, a NumPy scalar."""
    kind = type(x)
    return kind not in OWN and (issubclass(kind, Real) or kind.__name__ in ("bool", "bool_"))  # NumPy's is not Real


def number(x: Any) -> float:
    """Convert x to a float; nan for an unknown type, whose own methods may be able to compute with a Value.

    Raises:
        OperandError: x has a type that cannot compute with a Value; the message says what to write instead.

    >>> from fractions import Fraction
    >>> number(Fraction(1, 4)), number(True), number(10**400)
    (0.25, 1.0, inf)
    """
    if type(x) in OWN:
        return nan
    if is_number(x):
        return whole(x)
    for kind in type(x).__mro__:
        if kind in ADVICE:
            raise OperandError(f"a Value computes with numbers and Values, not with {named(x)}: {ADVICE[kind]}")
    return nan


def data(x: Any) -> float:
    """Convert x to a float, for the data of a Value.

    Raises:
        OperandError: x is not one real number; the message says what to write instead.

    >>> data("3")
    Traceback (most recent call last):
        ...
    wengert.errors.OperandError: expected one real number, not str '3': convert it with float(...)
    """
    if type(x) is float:
        return x
    if is_number(x):
        return number(x)
    if hasattr(type(x), "_prev"):
        advice = "it is a Value already: use it directly, or read its .data"
    elif hasattr(x, "shape") and hasattr(x, "item"):
        if len(x.shape) == 0:  # a 0-dimensional array or tensor, a NumPy scalar
            return data(x.item())
        advice = SEVERAL
    elif isinstance(x, list):
        advice = SEVERAL
    else:
        advice = next((say for kind, say in ADVICE.items() if isinstance(x, kind)), "convert it with float(...)")
    raise OperandError(f"expected one real number, not {named(x)}: {advice}")


def check_keyword(cls: type, name: str) -> None:
    """Check a keyword with which `Value`, or a subclass without an `__init__` of its own, was called.

    Raises:
        KeywordError: there is no parameter of that name; the message says what to write instead.
    """
    if name not in PARAMETERS:
        home = next(base for base in cls.__mro__ if "__init__" in vars(base))
        if home.__module__.startswith("wengert."):  # not the user's
            raise unknown_keyword(cls.__name__, name, PARAMETERS, ELSEWHERE)


def label(children: Any, op: Any, label: Any) -> str:
    """Return the label of a leaf, from ``Value(2.0, "x")`` or ``Value(2.0, label="x")``.

    Raises:
        HandmadeNodeError: the second argument is something else, or there is a symbol without children.
    """
    if isinstance(children, str) and not op and not label:
        return children
    several = isinstance(children, (tuple, list, set, frozenset))
    if not op and (children is None or (several and not children)):
        return str(label or "")
    if several and children:
        raise HandmadeNodeError(
            "a subclass of Value makes a node by hand only if it is called with the operands: Sub(number, (a, b), '+')"
        )
    what = f"the symbol {op!r:.40} but no operands" if several or children is None else named(children)
    raise HandmadeNodeError(
        f"Value(...) got {what} beside its number: write Value(2.0, label='x') for a leaf, or "
        "Value(number, (a, b), '+') for a node made by hand, with its operands in a tuple, list or set"
    )


def named(x: object) -> str:
    """Return the type of x and the start of its repr, for messages."""
    written = repr(x)
    return "None" if x is None else f"{type(x).__name__} {written if len(written) <= 40 else written[:37] + '...'}"


def within(name: str, number: Any, low: float, high: float) -> float:
    """Convert an argument to a float.

    Raises:
        ArgumentError: it is not a number with low <= number < high.
    """
    if not isinstance(number, Real) or not low <= float(number) < high:
        raise ArgumentError(f"{name} is {number!r}; expected a number >= {low} and < {high}")
    return float(number)


def positive(name: str, number: Any) -> float:
    """Convert an argument to a float.

    Raises:
        ArgumentError: it is not a finite number above 0.
    """
    if not isinstance(number, Real) or not 0.0 < float(number) < inf:
        raise ArgumentError(f"{name} is {number!r}; expected a positive number")
    return float(number)
