"""Tables: the rule of each operation as it is written, and the ways in which it is written wrong."""

from __future__ import annotations

import math
from collections.abc import Callable

from wengert.course.grading.model import RULES, Rule

__all__ = ["PARTIALS", "RIGHT", "SYMBOLS", "VALUES", "WRONG_VALUES"]

SYMBOLS = {"add": "a + b", "sub": "a - b", "mul": "a * b", "div": "a / b", "neg": "-a", "pow": "a ** n"}
SYMBOLS |= {"powv": "a ** b", "rpow": "2 ** a", "abs": "abs(a)"}

RIGHT: dict[str, tuple[str, ...]] = {
    "add": ("self.grad += out.grad", "other.grad += out.grad"),
    "sub": ("self.grad += out.grad", "other.grad += -out.grad"),
    "mul": ("self.grad += other.data * out.grad", "other.grad += self.data * out.grad"),
    "div": ("self.grad += out.grad / other.data", "other.grad += -self.data / other.data**2 * out.grad"),
    "neg": ("self.grad += -out.grad",),
    "pow": ("self.grad += n * self.data**(n - 1) * out.grad",),
    "powv": (
        "self.grad += other.data * self.data**(other.data - 1) * out.grad",
        "other.grad += out.data * math.log(self.data) * out.grad",
    ),
    "rpow": ("self.grad += out.data * math.log(base) * out.grad",),
    "relu": ("self.grad += (out.data > 0) * out.grad",),
    "tanh": ("self.grad += (1 - out.data**2) * out.grad",),
    "sigmoid": ("self.grad += out.data * (1 - out.data) * out.grad",),
    "exp": ("self.grad += out.data * out.grad",),
    "log": ("self.grad += out.grad / self.data",),
    "sqrt": ("self.grad += 0.5 / out.data * out.grad",),
    "sin": ("self.grad += math.cos(self.data) * out.grad",),
    "cos": ("self.grad += -math.sin(self.data) * out.grad",),
    "abs": ("self.grad += (1 if self.data > 0 else -1) * out.grad",),
}
"""The rule of each operation, as the closures of a small engine write it."""

VALUES: dict[str, tuple[str, ...]] = {
    "add": ("self.data + other.data",),
    "sub": ("self.data - other.data",),
    "mul": ("self.data * other.data",),
    "div": ("self.data / other.data",),
    "neg": ("-self.data",),
    "pow": ("self.data ** n",),
    "powv": ("self.data ** other.data",),
    "rpow": ("base ** self.data",),
    "relu": ("max(0.0, self.data)",),
    "sigmoid": ("1 / (1 + math.exp(-self.data))",),
}


def _pow(x: float, n: float) -> float:
    try:
        return math.nan if x < 0 and n != int(n) else float(x**n)
    except ZeroDivisionError:
        return math.inf


# fmt: off
Wrong = tuple[str, str, Callable[..., tuple[float, ...]]]
"""The name of the slip, what is wrong, and the partial derivatives that it gives."""

PARTIALS: dict[str, list[Wrong]] = {
    "mul": [
        ("swapped factors", "the product rule's factors are swapped", lambda o, x, y: (x, y)),
        ("product rule", "the product is differentiated as a sum: its partial derivatives are not 1", lambda o, x, y: (1.0, 1.0)),
        ("product rule", "the derivative of the product is given as the product itself", lambda o, x, y: (o, o)),
        ("product rule", "both operands receive the right one's number", lambda o, x, y: (y, y)),
        ("product rule", "both operands receive the left one's number", lambda o, x, y: (x, x)),
    ],
    "sub": [("lost sign", "the minus sign of the right operand is lost", lambda o, x, y: (1.0, 1.0))],
    "neg": [("lost sign", "the minus sign is lost", lambda o, x: (1.0,))],
    "div": [
        ("quotient rule", "the minus sign of d/db, -a / b**2, is lost", lambda o, x, y: (1 / y, x / y**2)),
        ("quotient rule", "d/db is -1 / b**2: the factor a is forgotten", lambda o, x, y: (1 / y, -1 / y**2)),
        ("quotient rule", "d/db is -a / b: the divisor is not squared", lambda o, x, y: (1 / y, -x / y)),
        ("quotient rule", "d/da is b: it is 1 / b", lambda o, x, y: (y, -x / y**2)),
        ("quotient rule", "d/da is b, d/db is a: the rule is that of the product", lambda o, x, y: (y, x)),
        ("quotient rule", "d/db is a: it is -a / b**2", lambda o, x, y: (1 / y, x)),
        ("quotient rule", "d/db is -a: it is -a / b**2", lambda o, x, y: (1 / y, -x)),
        ("quotient rule", "both operands receive 1 / b", lambda o, x, y: (1 / y, 1 / y)),
    ],
    "pow": [
        ("power rule", "the factor n of the power rule, n * a**(n - 1), is missing", lambda o, x, n: (_pow(x, n - 1), 0.0)),
        ("power rule", "the power rule is written n * a**n: the exponent has to fall by one", lambda o, x, n: (n * o, 0.0)),
        ("power rule", "the power rule is written (n - 1) * a**n", lambda o, x, n: ((n - 1) * o, 0.0)),
        ("power rule", "the power rule is written (n - 1) * a**(n - 1)", lambda o, x, n: ((n - 1) * _pow(x, n - 1), 0.0)),
        ("power rule", "the power rule is written n * a**(n + 1)", lambda o, x, n: (n * _pow(x, n + 1), 0.0)),
        ("power rule", "the power rule is written n * a: that is right for n = 2 alone", lambda o, x, n: (n * x, 0.0)),
        ("power rule", "the power rule is written n * (n - 1) * a**(n - 1)", lambda o, x, n: (n * (n - 1) * _pow(x, n - 1), 0.0)),
        ("power rule", "the derivative of the power is given as the power itself", lambda o, x, n: (o, 0.0)),
        ("power rule", "the power is integrated: a**(n + 1) / (n + 1)", lambda o, x, n: (_pow(x, n + 1) / (n + 1) if n != -1 else math.nan, 0.0)),
        ("power rule", "the power is differentiated as an exponential: a**n * log(a)", lambda o, x, n: (o * math.log(x) if x > 0 else math.nan, 0.0)),
    ],
    "rpow": [
        ("power rule", "the power rule stands where that of an exponential belongs: n**a * log(n)", lambda o, n, x: (0.0, x * n ** (x - 1))),
        ("power rule", "the factor log(n) of n**a * log(n) is missing", lambda o, n, x: (0.0, o)),
    ],
    "powv": [("power rule", "the derivative by the exponent lacks its factor log(a)", lambda o, x, y: (y * x ** (y - 1), o))],
    "relu": [
        ("relu rule", "the gradient passes where the number is negative", lambda o, x: (1.0,)),
        ("relu rule", "the gradient is multiplied by the number: it is 1 where that is positive", lambda o, x: (max(x, 0.0),)),
        ("relu rule", "the gradient passes on the wrong side of 0", lambda o, x: (float(x < 0.0),)),
        ("relu rule", "the gradient leaks: 0.01 where the number is negative", lambda o, x: (1.0 if x > 0 else 0.01,)),
    ],
    "tanh": [
        ("tanh rule", "the derivative is written 1 - t: the square is missing", lambda o, x: (1 - o,)),
        ("tanh rule", "the derivative is written 1 - x**2: it is 1 - tanh(x)**2, by the result", lambda o, x: (1 - x * x,)),
        ("tanh rule", "the derivative is that of sigmoid, t * (1 - t): it is 1 - t**2", lambda o, x: (o * (1 - o),)),
        ("tanh rule", "the sign is wrong: t**2 - 1 stands for 1 - t**2", lambda o, x: (o * o - 1,)),
        ("tanh rule", "the derivative is written 1 + t**2: it is 1 - t**2", lambda o, x: (1 + o * o,)),
        ("tanh rule", "the derivative is written (1 - t)**2: it is 1 - t**2", lambda o, x: ((1 - o) ** 2,)),
        ("tanh rule", "the derivative is written t**2: it is 1 - t**2", lambda o, x: (o * o,)),
    ],
    "sigmoid": [
        ("sigmoid rule", "the derivative is that of tanh, 1 - s**2: it is s * (1 - s)", lambda o, x: (1 - o * o,)),
        ("sigmoid rule", "the derivative is written x * (1 - x): it is s * (1 - s), by the result", lambda o, x: (x * (1 - x),)),
        ("sigmoid rule", "the derivative is written 1 - s: the factor s is missing", lambda o, x: (1 - o,)),
        ("sigmoid rule", "the derivative is given as the value itself: it is s * (1 - s)", lambda o, x: (o,)),
        ("sigmoid rule", "the derivative is written s * (1 + s): it is s * (1 - s)", lambda o, x: (o * (1 + o),)),
        ("sigmoid rule", "the sign is wrong: s * (s - 1) stands for s * (1 - s)", lambda o, x: (o * (o - 1),)),
    ],
    "exp": [
        ("exp rule", "the derivative is written x: that of exp(x) is exp(x), the result", lambda o, x: (x,)),
        ("exp rule", "the power rule stands for that of exp: its derivative is the result", lambda o, x: (x * math.exp(x - 1),)),
        ("exp rule", "the derivative is written x * exp(x): it is exp(x)", lambda o, x: (x * o,)),
        ("exp rule", "the derivative is taken at the result, exp(exp(x))", lambda o, x: (math.exp(o),)),
        ("exp rule", "the derivative is given as 1", lambda o, x: (1.0,)),
    ],
    "log": [
        ("log rule", "the derivative is written 1 / log(x): it is 1 / x", lambda o, x: (1 / o if o else math.inf,)),
        ("log rule", "the derivative is written x: it is 1 / x", lambda o, x: (x,)),
        ("log rule", "the derivative is written 1 / x**2: it is 1 / x", lambda o, x: (1 / x**2,)),
        ("log rule", "the sign is wrong: -1 / x stands for 1 / x", lambda o, x: (-1 / x,)),
    ],
    "sqrt": [
        ("sqrt rule", "the factor 1/2 is missing", lambda o, x: (1 / o,)),
        ("sqrt rule", "the derivative is written 0.5 / x: it is 0.5 / sqrt(x)", lambda o, x: (0.5 / x,)),
        ("sqrt rule", "the derivative is written 0.5 * sqrt(x): it is 0.5 / sqrt(x)", lambda o, x: (0.5 * o,)),
    ],
    "sin": [("lost sign", "the sign is wrong: the derivative of sin is cos", lambda o, x: (-math.cos(x),))],
    "cos": [("lost sign", "the minus sign is lost: the derivative of cos is -sin", lambda o, x: (math.sin(x),))],
    "abs": [("abs rule", "the derivative is given as 1, also where the number is negative", lambda o, x: (1.0,))],
}


WRONG_VALUES: dict[str, list[tuple[str, Rule]]] = {
    "div": [("the quotient is rounded down: // stands for /", Rule(lambda x, y: float(x // y), RULES["div"].partials))],
    "sub": [("the operands are exchanged: the value is b - a", Rule(lambda x, y: y - x, lambda o, x, y: (-1.0, 1.0)))],
    "pow": [("the power is a product: a * n", Rule(lambda x, n: x * n, RULES["pow"].partials))],
    "relu": [
        ("relu gives the absolute value", Rule(abs, RULES["relu"].partials)),
        ("relu gives the smaller of the number and 0", Rule(lambda x: min(x, 0.0), lambda o, x: (float(x < 0.0),))),
        ("relu leaks: 0.01 of a negative number", Rule(lambda x: x if x > 0 else 0.01 * x, lambda o, x: (1.0 if x > 0 else 0.01,))),
    ],
    "sigmoid": [
        ("the minus sign in 1 / (1 + exp(-x)) is lost", Rule(lambda x: 1 / (1 + math.exp(x)), lambda o, x: (o * (1 - o),))),
    ],
    "log": [
        ("the logarithm is that to base 10", Rule(math.log10, lambda o, x: (1 / x / math.log(10),))),
        ("the logarithm is that to base 2", Rule(math.log2, lambda o, x: (1 / x / math.log(2),))),
    ],
    "exp": [("the value is 2**x, not e**x", Rule(math.exp2, lambda o, x: (o * math.log(2),)))],
    "tanh": [
        ("the value is sinh(x)", Rule(math.sinh, RULES["tanh"].partials)),
        ("the value is tan(x), not tanh(x)", Rule(math.tan, RULES["tanh"].partials)),
        ("the value is tanh(x / 2): the factor 2 in exp(2 * x) is missing", Rule(lambda x: math.tanh(x / 2), RULES["tanh"].partials)),
    ],
}
# fmt: on
