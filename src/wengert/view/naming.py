"""What the pictures and sentences call a node, and how they write a number.

A node goes by its label; without one by its expression where that is short, ``x1*w1``; else by its place in the
computation, ``v7``, as the elements of a Wengert list are usually numbered. Labels are a user's, or a stranger's: what
comes from here is short, of one line, and can be encoded.
"""

from __future__ import annotations

import re
from decimal import ROUND_HALF_UP, Context, Decimal
from math import isfinite

from wengert.graph import Graph
from wengert.ops import Op

__all__ = ["clean", "formulas", "names", "number", "template"]

LONGEST = 24  # characters of a label that are shown
SHORT = 16  # characters of an expression that still serves as a name
MANY = 7  # operands that are all written out
INFIX = {"add": "+", "sub": "-", "mul": "*", "div": "/", "pow": "**"}
FOUR_DIGITS = Context(prec=4, rounding=ROUND_HALF_UP)

# What is no character to show: controls, what turns the direction of writing, halves of surrogate pairs.
UNSHOWN = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def clean(label: str, longest: int = LONGEST) -> str:
    """A label as one short line of characters that can be shown.

    >>> clean("a\\nb"), clean("x" * 30, 8)
    ('a\ufffdb', 'xxxxxxx…')
    """
    shown = label[: longest + 1]
    shown = UNSHOWN.sub("\ufffd", shown)
    return shown if len(shown) <= longest else shown[: longest - 1] + "…"


def number(x: float) -> str:
    """Four digits, without zeros that say nothing. A half is rounded up, as JavaScript does it.

    >>> number(-2.0), number(1 / 3), number(2.0625), number(1e-7), number(123456.0), number(float("-inf"))
    ('-2', '0.3333', '2.063', '1e-07', '1.235e+05', '-inf')
    """
    if not isfinite(x) or x == 0.0:
        return "0" if x == 0.0 else f"{x}"
    sign, digits, exponent = FOUR_DIGITS.plus(Decimal(x)).as_tuple()
    assert isinstance(exponent, int)  # of a finite number
    figures = "".join(map(str, digits))
    first = len(figures) - 1 + exponent  # the power of ten of the first figure
    figures = figures.rstrip("0")
    if not -5 < first < 4:
        text = f"{figures[0]}.{figures[1:]}".rstrip(".") + f"e{first:+03d}"
    elif first < 0:
        text = "0." + "0" * (-first - 1) + figures
    else:
        figures = figures.ljust(first + 1, "0")
        text = f"{figures[: first + 1]}.{figures[first + 1 :]}".rstrip(".")
    return "-" * sign + text


def template(op: Op, count: int, times: str = "*") -> str:
    """How an operation on `count` operands is written: ``@0`` stands for the first of them, ``#1`` for the second,
    in parentheses if it is negative; `times` for the sign of multiplication.

    >>> from wengert.ops import BY_NAME
    >>> template(BY_NAME["add"], 2), template(BY_NAME["tanh"], 1), template(BY_NAME["dot"], 5)
    ('@0 + #1', 'tanh(@0)', '@0*#2 + #1*#3 + #4')
    """
    if op.name in INFIX:
        sign = {"*": times, "+": " + ", "-": " - "}.get(INFIX[op.name], INFIX[op.name])
        return f"#0{sign}#1" if op.name == "pow" else f"@0{sign}#1"
    if op.name == "neg":
        return "-#0"
    if op.name == "dot" and count <= MANY:
        half = count // 2
        products = [f"{'#' if i else '@'}{i}{times}#{half + i}" for i in range(half)]
        return " + ".join([*products, f"#{2 * half}"])
    places = [f"@{i}" for i in range(count)]
    if count > MANY:
        places[3:-1] = [f"… {count - 4} more …"]
    return f"{op.name}({', '.join(places)})"


def fill(written: str, texts: list[str]) -> str:
    """A template with its operands put in.

    >>> fill("@0*#1", ["-2", "-3"])
    '-2*(-3)'
    """

    def put(mark: re.Match[str]) -> str:
        text = texts[int(mark[2])]
        return f"({text})" if mark[1] == "#" and text.startswith("-") else text

    return re.sub(r"([@#])(\d+)", put, written)


def names(graph: Graph) -> list[str]:
    """What each node of a graph is called.

    >>> from wengert import Value
    >>> x, w = Value(2.0, "x"), Value(3.0, "w")
    >>> names(Graph((x * w + 1.0).tanh()))
    ['x', 'w', 'x*w', 'x*w + 1', 'tanh(x*w + 1)']
    """
    return formulas(graph)[0]


def formulas(graph: Graph) -> tuple[list[str], list[str]]:
    """What each node is called, and the expression that made it, over the names of its operands ('' for a leaf)."""
    called: list[str] = []
    made: list[str] = []
    compound: list[bool] = []  # whether the name is an expression that needs parentheses inside of another
    for place, (op, operands, value) in enumerate(graph):
        loose = op.name in (*INFIX, "neg", "dot") and op.name != "add"
        shown = operands if len(operands) <= MANY else (*operands[:3], operands[-1])
        texts = [
            number(x) if isinstance(x, float) else f"({called[x]})" if loose and compound[x] else called[x]
            for x in shown
        ]
        if len(operands) > MANY:
            formula = f"{op.name}({', '.join(texts[:3])}, … {len(operands) - 4} more …, {texts[3]})"
        else:
            formula = fill(template(op, len(operands)), texts) if operands else ""
        made.append(formula)
        label = clean(value.label)
        short = 0 < len(formula) <= SHORT and op.name not in ("compiled", "pick")
        called.append(label or (formula if short else f"v{place}"))
        compound.append(not label and short and op.name in (*INFIX, "neg", "dot"))
    return called, made
