"""The rule of each operation, and the ways in which it is written wrong.

A rule is formulas in text: x and y are the operands, o is the result, g its gradient. They are computed as they stand
here, and shown to the learner in the words of a closure: ``y`` becomes ``other.data``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Sequence
from functools import cache
from typing import Any, NamedTuple

from wengert_course.texts import texts

__all__ = ["DERIVED", "RULES", "SLOPES", "TEXTS", "VALUES", "Rule", "advice", "formula", "plain", "written"]


def _sigmoid(x: float) -> float:
    e = math.exp(-abs(x))
    return 1.0 / (1.0 + e) if x >= 0.0 else e / (1.0 + e)


def _power(x: float, n: float) -> float:
    return math.nan if x < 0.0 and n != int(n) else float(x**n)


FUNCTIONS = ("exp", "exp2", "log", "log2", "log10", "sqrt", "sin", "cos", "tan", "tanh", "sinh", "copysign", "floor")
SCOPE: dict[str, Any] = {name: getattr(math, name) for name in FUNCTIONS} | {"sigmoid": _sigmoid, "power": _power}


@cache
def formula(text: str, names: str = "x, y=0.0") -> Callable[..., Any]:
    return eval(f"lambda {names}: {text}", SCOPE)  # type: ignore[no-any-return]  # the texts stand in the tables alone


class Rule(NamedTuple):
    value: str  # its value, a formula of x and y
    slopes: tuple[str, ...]  # what each operand gets, as a formula of x, y and o, and of g where `above` is 1
    above: str = "g"  # what that is multiplied by: the gradient of the result, unless something stands in its place
    push: str = ""  # how operands get it: added to what they have, where nothing else is said; see ModelNode.push
    symbol: str = ""  # what _op holds
    written: str = ""  # how the operation is written
    parts: str = ""  # what _prev lacks: "all" of the operands, "left", "right" or nothing
    in_place: int = 0  # which operand itself is changed, and given back: the left one is 1
    crossed: bool = False  # whether the reflected operation forgets to exchange its operands

    def of(self, *operands: float) -> float:
        return float(formula(self.value)(*operands))

    def gradients(self, o: float, g: float, *operands: float) -> list[float]:
        above = formula(self.above, "o, g")(o, g)
        return [slope * above for slope in formula(f"({', '.join(self.slopes)},)", "o, g, x, y=0.0")(o, g, *operands)]


TEXTS = texts("slips")
RULES = {op: Rule(**rule | {"slopes": tuple(rule["slopes"])}) for op, rule in TEXTS["rules"].items()}
DERIVED: dict[str, list[str]] = TEXTS["derived"]
"""Operation -> the method that says it by others, in two lines."""


def plain(op: str) -> str:
    """The operation itself: div, of rdiv."""
    return {"radd": "add", "rmul": "mul", "rsub": "sub", "rdiv": "div"}.get(op, op)


def written(op: str) -> str:
    """An operation as one writes it: a / b, a.exp()."""
    return (RULES[plain(op)].written if plain(op) in RULES else "") or f"a.{plain(op)}()"


def _shown(op: str, text: str) -> str:
    words = {"x": "self.data", "y": "n" if op == "pow" else "other.data", "o": "out.data"}
    words |= {name: f"math.{name}" for name in FUNCTIONS}
    return re.sub(r"[a-z]\w*", lambda word: words.get(word[0], word[0]), text)


def _result(op: str, parts: Collection[str]) -> str:
    """The line that makes the result of an operation, in a class that has these parts."""
    rule, text = RULES[op], RULES[op].value
    value = _shown(op, {"sigmoid": "1 / (1 + exp(-x))", "power": "x ** y"}.get(text.partition("(")[0], text))
    operands = "(self,)" if rule.slopes[-1] == "0" or len(rule.slopes) == 1 else "(self, other)"
    made = f'Value({value}, {operands}, "{rule.symbol or op}")' if "_prev" in parts else f"Value({value})"
    return f"out = {made}" if "_backward" in parts else f"return {made}"


def advice(lines: Sequence[str], op: str, parts: Collection[str], sign: str = "+=") -> tuple[str, ...]:
    """The lines to write, for a class with these parts, of which some stand for what the operation needs.

    "{new}" is the line that makes its result, "{rule}" are those of its closure, "{end}" is what gives the result back,
    and "{body}" is all of it; "{add}" and "{mul}" make a sum and a product. What can be said by others is said so.
    """
    of_operation = any(line.startswith("{") for line in lines)
    if of_operation and op in DERIVED:
        return tuple(DERIVED[op])
    new = [_result(op, parts)] if op in RULES else []
    rule = [line.replace("+=", sign) for line in _closure(op)]
    closed = ["", "def _backward():", *[f"    {line}" for line in rule], "", "out._backward = _backward"]
    meant = {"{new}": new, "{rule}": rule, "{body}": [*new, *closed, "return out"], "{end}": ["return out"]}
    meant |= {"{add}": [_result("add", parts)], "{mul}": [_result("mul", parts)]}
    if "_backward" not in parts:  # the line of the result is all that there is
        meant |= {"{rule}": [], "{body}": new, "{end}": new}
    said = [one for line in lines for one in {**TEXTS["lines"], **meant}.get(line, [line])]
    if (of_operation or "_backward" in " ".join(said)) and "backward" in parts and "_backward" not in parts:
        return ()  # an engine of another make has no such lines
    return tuple(said)


def _closure(op: str) -> tuple[str, ...]:
    """The rule of an operation as the closure of a small engine writes it."""
    if op not in RULES:
        return ()
    lines = []
    for target, text in zip(("self", "other"), RULES[op].slopes, strict=False):
        slope = {"1": "", "-1": "-"}.get(text, f"{_shown(op, text)} * ")
        lines += [f"{target}.grad += {slope}out.grad"] if text != "0" else []
    return tuple(lines)


SLOPES: dict[str, list[tuple[str, ...]]] = {op: [*map(tuple, those)] for op, those in TEXTS["slopes"].items()}
"""Operation -> slips: a name, what is wrong, and the slopes that it gives; those of g are what operands get as they are."""

VALUES: dict[str, list[tuple[str, ...]]] = {op: [*map(tuple, those)] for op, those in TEXTS["values"].items()}
"""Operation -> slips of its value: what is wrong, the value that comes out, and the partial derivatives of that."""
