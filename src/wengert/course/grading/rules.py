"""The rule of each operation, and the ways in which it is written wrong.

A rule is formulas in text: x and y are the operands, o is the result, g its gradient. They are computed as they stand
here, and shown to the learner in the words of a closure: ``y`` becomes ``other.data``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

__all__ = ["RULES", "SLOPES", "VALUES", "Rule", "closure", "formula", "plain", "shown_value", "written"]


def _sigmoid(x: float) -> float:
    e = math.exp(-abs(x))
    return 1.0 / (1.0 + e) if x >= 0.0 else e / (1.0 + e)


def _power(x: float, n: float) -> float:
    return math.nan if x < 0.0 and n != int(n) else float(x**n)


FUNCTIONS = ("exp", "exp2", "log", "log2", "log10", "sqrt", "sin", "cos", "tan", "tanh", "sinh", "copysign", "floor")
SCOPE: dict[str, Any] = {name: getattr(math, name) for name in FUNCTIONS} | {"sigmoid": _sigmoid, "power": _power}


@cache
def formula(text: str, names: str = "x, y=0.0") -> Callable[..., Any]:
    """The function of a formula."""
    return eval(f"lambda {names}: {text}", SCOPE)  # type: ignore[no-any-return]  # the texts stand in the tables alone


class Rule(NamedTuple):
    """How an operation behaves.

    Attributes:
        value: its value, a formula of x and y.
        slopes: what each operand gets, as a formula of x, y and o, and of g where `above` is 1.
        above: what that is multiplied by: the gradient of the result, where nothing else stands in its place.
        push: how operands get it: added to what they have, where nothing else is said; see Node.push.
        symbol: what _op holds.
        written: how the operation is written.
        parts: what _prev lacks: "all" of the operands, "left", "right" or nothing.
        in_place: whether the left operand itself is changed, and given back.
        crossed: whether the reflected operation forgets to exchange its operands.
    """

    value: str
    slopes: tuple[str, ...]
    above: str = "g"
    push: str = ""
    symbol: str = ""
    written: str = ""
    parts: str = ""
    in_place: bool = False
    crossed: bool = False

    def of(self, *operands: float) -> float:
        """The value."""
        return float(formula(self.value)(*operands))

    def gradients(self, o: float, g: float, *operands: float) -> list[float]:
        """What each operand gets."""
        above = formula(self.above, "o, g")(o, g)
        return [slope * above for slope in formula(f"({', '.join(self.slopes)},)", "o, g, x, y=0.0")(o, g, *operands)]


RULES: dict[str, Rule] = {
    "add": Rule("x + y", ("1", "1"), symbol="+", written="a + b"),
    "sub": Rule("x - y", ("1", "-1"), symbol="-", written="a - b"),
    "mul": Rule("x * y", ("y", "x"), symbol="*", written="a * b"),
    "div": Rule("x / y", ("1 / y", "-x / y**2"), symbol="/", written="a / b"),
    "neg": Rule("-x", ("-1",), written="-a"),
    "pow": Rule("power(x, y)", ("y * x**(y - 1)", "0"), written="a ** n"),
    "powv": Rule("power(x, y)", ("y * x**(y - 1)", "o * log(x)"), written="a ** b"),
    "rpow": Rule("power(x, y)", ("0", "o * log(x)"), written="2 ** a"),
    "relu": Rule("max(0.0, x)", ("(o > 0)",)),
    "tanh": Rule("tanh(x)", ("(1 - o**2)",)),
    "sigmoid": Rule("sigmoid(x)", ("o * (1 - o)",)),
    "exp": Rule("exp(x)", ("o",)),
    "log": Rule("log(x)", ("1 / x",)),
    "sqrt": Rule("sqrt(x)", ("0.5 / o",)),
    "sin": Rule("sin(x)", ("cos(x)",)),
    "cos": Rule("cos(x)", ("-sin(x)",)),
    "abs": Rule("abs(x)", ("(1 if x > 0 else -1)",), written="abs(a)"),
}
OPERANDS = {"pow": ("self.data", "n"), "rpow": ("base", "self.data")}


def plain(op: str) -> str:
    """The operation itself: div, of rdiv."""
    return {"radd": "add", "rmul": "mul", "rsub": "sub", "rdiv": "div"}.get(op, op)


def written(op: str) -> str:
    """An operation as one writes it: a / b, a.exp()."""
    return (RULES[plain(op)].written if plain(op) in RULES else "") or f"a.{plain(op)}()"


def _shown(op: str, text: str) -> str:
    left, right = OPERANDS.get(op, ("self.data", "other.data"))
    words = {"x": left, "y": right, "o": "out.data"} | {name: f"math.{name}" for name in FUNCTIONS}
    return re.sub(r"[a-z]\w*", lambda word: words.get(word[0], word[0]), text)


def shown_value(op: str) -> str:
    """The value of an operation as an engine writes it."""
    text = RULES[op].value
    return _shown(op, {"sigmoid": "1 / (1 + exp(-x))", "power": "x ** y"}.get(text.partition("(")[0], text))


def closure(op: str) -> tuple[str, ...]:
    """The rule of an operation as the closure of a small engine writes it."""
    if op not in RULES:
        return ()
    lines = []
    for target, text in zip(("base", "self") if op == "rpow" else ("self", "other"), RULES[op].slopes, strict=False):
        slope = {"1": "", "-1": "-"}.get(text, f"{_shown(op, text)} * ")
        lines += [f"{target}.grad += {slope}out.grad"] if text != "0" else []
    return tuple(lines)


# fmt: off
SLOPES: dict[str, list[tuple[str, ...]]] = {
    "mul": [
        ("swapped factors", "the product rule's factors are swapped", "x", "y"),
        ("product rule", "the product is differentiated as a sum: its partial derivatives are not 1", "1", "1"),
        ("product rule", "the derivative of the product is given as the product itself", "o", "o"),
        ("wrong operand", "both operands receive the right one's number: other.data stands where self.data belongs", "y", "y"),
        ("wrong operand", "both operands receive the left one's number: self.data stands where other.data belongs", "x", "x"),
    ],
    "add": [
        ("sum rule", "the sum is differentiated as a product: its partial derivatives are 1", "y", "x"),
        ("sum rule", "each operand receives its own number: the partial derivatives of a sum are 1", "x", "y"),
        ("sum rule", "the derivative of the sum is given as the sum itself: it is 1", "o", "o"),
    ],
    "sub": [("lost sign", "the minus sign of the right operand is lost", "1", "1")],
    "neg": [("lost sign", "the minus sign is lost", "1")],
    "div": [
        ("quotient rule", "the minus sign of d/db, -a / b**2, is lost", "1 / y", "x / y**2"),
        ("quotient rule", "d/db is -1 / b**2: the factor a is forgotten", "1 / y", "-1 / y**2"),
        ("quotient rule", "d/db is -a / b: the divisor is not squared", "1 / y", "-x / y"),
        ("quotient rule", "d/da is b: it is 1 / b", "y", "-x / y**2"),
        ("quotient rule", "d/da is b, d/db is a: the rule is that of the product", "y", "x"),
        ("quotient rule", "d/db is a: it is -a / b**2", "1 / y", "x"),
        ("quotient rule", "d/db is -a: it is -a / b**2", "1 / y", "-x"),
        ("quotient rule", "both operands receive 1 / b", "1 / y", "1 / y"),
    ],
    "pow": [
        ("power rule", "the factor n of the power rule, n * a**(n - 1), is missing", "x**(y - 1)", "0"),
        ("power rule", "the power rule is written n * a**n: the exponent has to fall by one", "y * o", "0"),
        ("power rule", "the power rule is written (n - 1) * a**n", "(y - 1) * o", "0"),
        ("power rule", "the power rule is written (n - 1) * a**(n - 1)", "(y - 1) * x**(y - 1)", "0"),
        ("power rule", "the power rule is written n * a**(n + 1)", "y * x**(y + 1)", "0"),
        ("power rule", "the power rule is written n * a: that is right for n = 2 alone", "y * x", "0"),
        ("power rule", "the power rule is written n * (n - 1) * a**(n - 1)", "y * (y - 1) * x**(y - 1)", "0"),
        ("power rule", "the derivative of the power is given as the power itself", "o", "0"),
        ("power rule", "the power is integrated: a**(n + 1) / (n + 1)", "x**(y + 1) / (y + 1)", "0"),
        ("power rule", "the power is differentiated as an exponential: a**n * log(a)", "o * log(x)", "0"),
        ("precedence", "n * a**n - 1 stands for n * a**(n - 1): the brackets are missing", "y * x**y - 1", "0"),
        ("precedence", "n * a**n - 1 * out.grad stands for n * a**(n - 1) * out.grad: the brackets are missing", "y * x**y - g", "0"),
    ],
    "rpow": [
        ("power rule", "the power rule stands where that of an exponential belongs: n**a * log(n)", "0", "y * x**(y - 1)"),
        ("power rule", "the factor log(n) of n**a * log(n) is missing", "0", "o"),
    ],
    "powv": [("power rule", "the derivative by the exponent lacks its factor log(a)", "y * x**(y - 1)", "o")],
    "relu": [
        ("relu rule", "the gradient passes where the number is negative", "1"),
        ("relu rule", "the gradient is multiplied by the number: it is 1 where that is positive", "max(x, 0.0)"),
        ("relu rule", "the gradient passes on the wrong side of 0", "(x < 0)"),
        ("relu rule", "the gradient leaks: 0.01 where the number is negative", "(1 if x > 0 else 0.01)"),
    ],
    "tanh": [
        ("tanh rule", "the derivative is written 1 - t: the square is missing", "1 - o"),
        ("tanh rule", "the derivative is written 1 - x**2: it is 1 - tanh(x)**2, by the result", "1 - x * x"),
        ("tanh rule", "the derivative is that of sigmoid, t * (1 - t): it is 1 - t**2", "o * (1 - o)"),
        ("tanh rule", "the sign is wrong: t**2 - 1 stands for 1 - t**2", "o * o - 1"),
        ("tanh rule", "the derivative is written 1 + t**2: it is 1 - t**2", "1 + o * o"),
        ("tanh rule", "the derivative is written (1 - t)**2: it is 1 - t**2", "(1 - o)**2"),
        ("tanh rule", "the derivative is written t**2: it is 1 - t**2", "o * o"),
        ("tanh rule", "the derivative is given as the value itself: it is 1 - t**2", "o"),
        ("precedence", "1 - t**2 * out.grad stands for (1 - t**2) * out.grad: the brackets are missing", "1 - o**2 * g"),
    ],
    "sigmoid": [
        ("sigmoid rule", "the derivative is that of tanh, 1 - s**2: it is s * (1 - s)", "1 - o * o"),
        ("sigmoid rule", "the derivative is written x * (1 - x): it is s * (1 - s), by the result", "x * (1 - x)"),
        ("sigmoid rule", "the derivative is written 1 - s: the factor s is missing", "1 - o"),
        ("sigmoid rule", "the derivative is given as the value itself: it is s * (1 - s)", "o"),
        ("sigmoid rule", "the derivative is written s * (1 + s): it is s * (1 - s)", "o * (1 + o)"),
        ("sigmoid rule", "the sign is wrong: s * (s - 1) stands for s * (1 - s)", "o * (o - 1)"),
        ("precedence", "s * 1 - s * out.grad stands for s * (1 - s) * out.grad: the brackets are missing", "o - o * g"),
    ],
    "exp": [
        ("exp rule", "the derivative is written x: that of exp(x) is exp(x), the result", "x"),
        ("exp rule", "the power rule stands for that of exp: its derivative is the result", "x * exp(x - 1)"),
        ("exp rule", "the derivative is written x * exp(x): it is exp(x)", "x * o"),
        ("exp rule", "the derivative is taken at the result, exp(exp(x))", "exp(o)"),
        ("exp rule", "the derivative is given as 1", "1"),
    ],
    "log": [
        ("log rule", "the derivative is written 1 / log(x): it is 1 / x", "1 / o"),
        ("log rule", "the derivative is written x: it is 1 / x", "x"),
        ("log rule", "the derivative is written 1 / x**2: it is 1 / x", "1 / x**2"),
        ("log rule", "the sign is wrong: -1 / x stands for 1 / x", "-1 / x"),
    ],
    "sqrt": [
        ("sqrt rule", "the factor 1/2 is missing", "1 / o"),
        ("sqrt rule", "the derivative is written 0.5 / x: it is 0.5 / sqrt(x)", "0.5 / x"),
        ("sqrt rule", "the derivative is written 0.5 * sqrt(x): it is 0.5 / sqrt(x)", "0.5 * o"),
    ],
    "sin": [("lost sign", "the sign is wrong: the derivative of sin is cos", "-cos(x)")],
    "cos": [("lost sign", "the minus sign is lost: the derivative of cos is -sin", "sin(x)")],
    "abs": [("abs rule", "the derivative is given as 1, also where the number is negative", "1")],
}
"""Operation -> slips: a name, what is wrong, and the slopes that it gives; those of g are what operands get as they are."""

VALUES: dict[str, list[tuple[str, ...]]] = {
    "add": [
        ("the value is that of the product, a * b", "x * y", "y", "x"),
        ("self.data stands where other.data belongs: the value is a + a", "x + x", "2", "0"),
        ("other.data stands where self.data belongs: the value is b + b", "y + y", "0", "2"),
        ("the value is that of the left operand alone", "x", "1", "0"),
        ("the value is a - b", "x - y", "1", "-1"),
    ],
    "mul": [
        ("the value is that of the sum, a + b", "x + y", "1", "1"),
        ("self.data stands where other.data belongs: the value is a * a", "x * x", "2 * x", "0"),
        ("other.data stands where self.data belongs: the value is b * b", "y * y", "0", "2 * y"),
        ("the value is that of the left operand alone", "x", "1", "0"),
    ],
    "div": [("the quotient is rounded down: // stands for /", "floor(x / y)", "0", "0")],
    "sub": [("the operands are exchanged: the value is b - a", "y - x", "-1", "1"), ("the value is a + b", "x + y", "1", "1")],
    "neg": [("the value is a itself: the minus sign is lost", "x", "1")],
    "pow": [("the power is a product: a * n", "x * y", "y", "0")],
    "relu": [
        ("relu gives the absolute value", "abs(x)", "(1 if x > 0 else -1)"),
        ("relu gives the smaller of the number and 0", "min(x, 0.0)", "(x < 0)"),
        ("relu leaks: 0.01 of a negative number", "(x if x > 0 else 0.01 * x)", "(1 if x > 0 else 0.01)"),
    ],
    "sigmoid": [("the minus sign in 1 / (1 + exp(-x)) is lost", "1 / (1 + exp(x))", "o * (1 - o)")],
    "log": [("the logarithm is that to base 10", "log10(x)", "1 / x / log(10)"), ("the logarithm is that to base 2", "log2(x)", "1 / x / log(2)")],
    "exp": [("the value is 2**x, not e**x", "exp2(x)", "o * log(2)")],
    "tanh": [
        ("the value is sinh(x)", "sinh(x)", "(1 - o**2)"),
        ("the value is tan(x), not tanh(x)", "tan(x)", "(1 - o**2)"),
        ("the value is tanh(x / 2): the factor 2 in exp(2 * x) is missing", "tanh(x / 2)", "(1 - o**2)"),
        ("the value is that of sigmoid, 1 / (1 + exp(-x))", "sigmoid(x)", "(1 - o**2)"),
    ],
}
"""Operation -> slips of its value: what is wrong, the value that comes out, and the partial derivatives of that."""
# fmt: on
