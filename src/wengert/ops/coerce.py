"""What counts as a number beside float and int, and what to say about what does not."""

from __future__ import annotations

from decimal import Decimal
from math import inf, nan
from numbers import Real
from typing import Any

from wengert.errors import ArgumentError, HandmadeNodeError, OperandError

__all__ = ["data", "is_number", "label", "named", "number", "positive", "within"]

# Kinds that have no arithmetic with a Value of their own: say at once what to write instead.
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
OWN: set[type] = set()  # kinds that compute with Values by their own methods: what stands for numbers in a recording
SEVERAL = "make a list of Values, [Value(e) for e in x]; for the speed of arrays see wengert.compile"


def is_number(x: object) -> bool:
    """Whether x is one real number, not what only says so: int, bool, Fraction, a scalar of NumPy."""
    kind = type(x)
    return kind not in OWN and (issubclass(kind, Real) or kind.__name__ in ("bool", "bool_"))  # NumPy's is no Real


def number(x: Any) -> float:
    """x as a float; nan for a kind unknown here, which may know how to compute with a Value.

    Raises:
        OperandError: x is of a kind that cannot be computed with; the message says what to write.

    >>> from fractions import Fraction
    >>> number(Fraction(1, 4)), number(True), number(10**400)
    (0.25, 1.0, inf)
    """
    if is_number(x):
        try:
            return float(x)
        except OverflowError:
            return inf if x > 0 else -inf
    for kind in type(x).__mro__:
        if kind in ADVICE:
            raise OperandError(f"a Value computes with numbers and Values, not with {named(x)}: {ADVICE[kind]}")
    return nan


def data(x: Any) -> float:
    """x as the data of a Value.

    Raises:
        OperandError: x is not one real number; the message says what to write instead.

    >>> data("3")
    Traceback (most recent call last):
        ...
    wengert.errors.OperandError: data is one real number, not str '3': convert it with float(...)
    """
    if is_number(x):
        return number(x)
    if hasattr(type(x), "_prev"):
        advice = "a Value already: use it as it is, or read its .data"
    elif hasattr(x, "shape") and hasattr(x, "item"):
        if len(x.shape) == 0:  # an array or a tensor without a dimension, a scalar of NumPy
            return data(x.item())
        advice = SEVERAL
    elif isinstance(x, list):
        advice = SEVERAL
    else:
        advice = next((say for kind, say in ADVICE.items() if isinstance(x, kind)), "convert it with float(...)")
    raise OperandError(f"data is one real number, not {named(x)}: {advice}")


def label(children: Any, op: Any, label: Any) -> str:
    """The label of a leaf, from what `Value` was given beside the number: ``Value(2.0, "x")``, ``label="x"``.

    Raises:
        HandmadeNodeError: there is something else in the place of the children, or a symbol without children.
    """
    if isinstance(children, str) and not op and not label:
        return children
    several = isinstance(children, (tuple, list, set, frozenset))
    if not op and (children is None or (several and not children)):
        return str(label or "")
    if several and children:
        raise HandmadeNodeError(
            "a subclass of Value makes nodes by hand where it is called with the operands itself: "
            "Sub(number, (a, b), '+')"
        )
    what = f"the symbol {op!r:.40}, and no operands" if several or children is None else named(children)
    raise HandmadeNodeError(
        f"Value(...) was given {what} beside its number: a leaf is Value(2.0, label='x'), and a node made by hand "
        "Value(number, (a, b), '+'), its operands in a tuple, list or set"
    )


def named(x: object) -> str:
    """The kind of x, and the start of how it is written."""
    written = repr(x)
    return "None" if x is None else f"{type(x).__name__} {written if len(written) <= 40 else written[:37] + '...'}"


def within(name: str, number: Any, low: float, high: float) -> float:
    """An argument as a float, if it is a number from low to below high.

    Raises:
        ArgumentError: it is not.
    """
    if not isinstance(number, Real) or not low <= float(number) < high:
        raise ArgumentError(f"{name} is {number!r}; expected a number from {low} to below {high}")
    return float(number)


def positive(name: str, number: Any) -> float:
    """An argument as a float, if it is a finite number above 0.

    Raises:
        ArgumentError: it is not.
    """
    if not isinstance(number, Real) or not 0.0 < float(number) < inf:
        raise ArgumentError(f"{name} is {number!r}; expected a positive number")
    return float(number)
