"""Translates the rows of the operation table to JavaScript, so that a page can compute what the engine computes.

A rule of the table is run over terms, as the engine runs it over floats and Values, and each operation that it performs
becomes a piece of text. So there is no second table. Only the functions that the table takes from C or `special.py`
have a counterpart, in JavaScript's `Math` or in `assets/special.js`.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from typing import Any

from wengert.ops import BY_NAME, Op, Operators, interpret, namespace
from wengert.view.markup import asset

__all__ = ["Script", "literal"]

MOST = 256  # the largest number of operands for which a rule is written

# The functions of JavaScript's Math, and those of assets/special.js.
MATH = "abs acos acosh asin asinh atan atan2 atanh cbrt cos cosh exp expm1 floor hypot log log10 log1p log2 sign sin"
OURS = (
    "beta_pdf betainc erf erfc exp2 gamma_pdf gammainc gammaincc gaussian j0 j1 lgamma normal_cdf normal_pdf normal_ppf"
)
OURS += " norm polygamma pow remainder round"
PRIMITIVES: dict[str, str] = {name: f"Math.{name}" for name in f"{MATH} sinh sqrt tan tanh".split()}
PRIMITIVES |= {name: f"{name}_" for name in OURS.split()}
SIGNS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "===", "ne": "!=="}


class UnwritableError(Exception):
    """A rule cannot be run over terms."""


def literal(x: float) -> str:
    """Write a float in JavaScript.

    >>> literal(2.0), literal(-1e-7), literal(float("nan")), literal(float("-inf"))
    ('2', '-1e-07', 'NaN', '-Infinity')
    """
    if x != x:
        return "NaN"
    if abs(x) == inf:
        return "Infinity" if x > 0.0 else "-Infinity"
    return repr(x).removesuffix(".0")


class Term(Operators):
    """A number whose text is known: a name or a constant."""

    def __init__(self, body: _Body, text: str, is_condition: bool = False) -> None:
        self.body: _Body = body
        self.text: str = text
        self.is_condition: bool = is_condition

    def _apply_op(self, op: Op, operands: Iterable[Any]) -> Any:
        return self.body.apply(op, list(operands))

    def _operated(self, name: str, *operands: Any) -> Any:
        if name in SIGNS:
            left, right = operands
            return self.body.infix(SIGNS[name], left, right, is_condition=True)
        return self.body.name(f"-{self.text}") if name == "neg" else self.body.apply(BY_NAME[name], [*operands])

    def __pos__(self) -> Any:
        return self


class _Body:
    """The lines of one function, with a name for each operation."""

    def __init__(self, script: Script) -> None:
        self.script = script
        self.lines: dict[str, str] = {}

    def name(self, text: str, is_condition: bool = False) -> Term:
        """Name an expression; equal expressions are computed once."""
        return Term(self, self.lines.setdefault(text, f"t{len(self.lines)}"), is_condition)

    def infix(self, sign: str, x: Any, y: Any, is_condition: bool = False) -> Term:
        a, b = _text(x), _text(y)
        return self.name(f"{a}{sign} {b}" if b.startswith("-") else f"{a}{sign}{b}", is_condition)

    def apply(self, op: Op, xs: list[Any]) -> Any:
        if _is_infix(op):
            return self.infix(op.infix, *xs)
        if op.name == "where":
            return self.choice(*xs)
        if op.arity is None and op.name not in PRIMITIVES:  # unrolled over the operands
            return interpret(op.value, TERMS)(*xs)
        return self.name(f"{self.script.function(op)}({','.join(map(_text, xs))})")

    def choice(self, condition: Any, x: Any, y: Any) -> Any:
        if not isinstance(condition, Term):
            return x if condition else y
        test = condition.text if condition.is_condition else f"{condition.text}!==0"
        answers = all(isinstance(z, bool) or (isinstance(z, Term) and z.is_condition) for z in (x, y))
        return self.name(f"{test}?{_text(x)}:{_text(y)}", answers)

    def result(self, given: Iterable[str], result: str) -> str:
        """Write the function with these parameters, the lines and this result."""
        lines = [f"{name}={text}" for text, name in self.lines.items()]
        if lines and lines[-1].startswith(f"{result}="):
            result = lines.pop().partition("=")[2]
        return f"({','.join(given)})=>" + (f"{{const {','.join(lines)};return {result}}}" if lines else result)


def _is_infix(op: Op) -> bool:
    """Return True if JavaScript has the operator with the same meaning, which its ** has not."""
    return op.arity == 2 and bool(op.infix) and op.name not in PRIMITIVES


def _parameters(count: int) -> list[str]:
    return [chr(ord("a") + i) for i in range(count)] if count < 15 else [f"x{i}" for i in range(count)]


def _text(x: Any) -> str:
    if isinstance(x, bool):
        return "true" if x else "false"
    return x.text if isinstance(x, Term) else literal(float(x))


class Script:
    """The operations that a page needs, and the text that defines them.

    >>> script = Script()
    >>> script.rules(BY_NAME["mul"], 2)
    '[(a,b)=>a*b,(o,a,b)=>[b,a]]'
    >>> script.rules(BY_NAME["relu"], 1)
    '[(a)=>{const t0=a<=0;return t0?0:a},(o,a)=>{const t0=a<=0,t1=t0?0:1;return [t1]}]'
    """

    def __init__(self) -> None:
        self.functions: dict[str, str] = {}  # the rows that other rows call
        self.primitives: set[str] = set()  # the functions of assets/special.js that are called

    def rules(self, op: Op, count: int) -> str | None:
        """Write the value and the partial derivatives of an operation with `count` operands; None if that fails.

        A user's operation works if its rules consist of arithmetic and functions of the table.
        """
        if op.value is None or count > MOST:
            return None
        before = dict(self.functions), set(self.primitives)
        try:
            return f"[{self._value(op, count)},{self._partials(op, count)}]"
        except Exception:  # a user's rule may raise anything if its operands are not floats
            self.functions, self.primitives = before
            return None

    def _value(self, op: Op, count: int) -> str:
        body, names = _Body(self), _parameters(count)
        terms = [Term(body, name) for name in names]
        primitive = _is_infix(op) or op.name == "where" or op.name in PRIMITIVES
        return body.result(names, _text(body.apply(op, terms) if primitive else interpret(op.value, TERMS)(*terms)))

    def _partials(self, op: Op, count: int) -> str:
        body, names = _Body(self), ["o", *_parameters(count)]
        given = interpret(op.partials, TERMS)(*[Term(body, name) for name in names])
        slopes = list(given) if isinstance(given, (tuple, list)) else [given]
        if len(slopes) != count:
            raise UnwritableError(f"{op.name}: {len(slopes)} partials for {count} operands")
        return body.result(names, f"[{','.join(map(_text, slopes))}]")

    def function(self, op: Op) -> str:
        """Return the name by which rules call a row."""
        if op.name in PRIMITIVES:
            called = PRIMITIVES[op.name]
            if called.endswith("_"):
                self.primitives.add(called)
            return called
        called = f"row{op.code}"  # its own name may mean something in JavaScript
        if called not in self.functions:
            self.functions[called] = self._value(op, op.arity or 0)
        return called

    def definitions(self) -> str:
        """Write the definitions of the functions that the rules call."""
        texts = [f"const {name}={text};" for name, text in self.functions.items()]
        written = f"\n{asset('special.js')}".split("\nfunction ")[1:] if self.primitives else []
        blocks = {text.partition("(")[0]: f"function {text.rstrip()}" for text in written}
        needed = sorted(self.primitives)
        for name in needed:  # the list grows while it is read
            needed += [other for other in blocks if f"{other}(" in blocks[name] and other not in needed]
        return "\n".join([*(text for name, text in blocks.items() if name in needed), *texts])


def _select(condition: Any, x: Any, y: Any) -> Any:
    """Stand for `where` in a rule; the condition may be a plain bool."""
    for operand in (condition, x, y):
        if isinstance(operand, Term):
            return operand.body.choice(condition, x, y)
    return x if condition else y


# The globals of the rules of the table over terms.
TERMS: dict[str, Any] = namespace(
    where=_select,
    _guarded_form=lambda condition, careful, plain: _select(condition, careful(), plain),
    gamma_pdf_slope=lambda out, a, x: out * ((a - 1.0) / x - 1.0),
    beta_pdf_slope=lambda out, a, b, x: out * ((a - 1.0) / x - (b - 1.0) / (1.0 - x)),
)
