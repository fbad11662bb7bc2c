"""Three ways to a derivative, on one function: symbolic, numerical, automatic.

    pip install sympy matplotlib
    python examples/three_ways.py [PICTURE.png]

It prints how far each way is from the truth, and how long the formulas of the symbolic way become; with the name of a
file it draws the errors as well. The page docs/three-ways.md tells the story.
"""

from __future__ import annotations

import argparse
import math
from importlib import import_module
from typing import Any

import wengert
from wengert import Graph, Value

POINT = 1.5
STEPS = [10.0**-k for k in range(1, 17)]  # h, from 0.1 down to the last digit of a float
DIGITS = 40  # of the truth that the errors are measured from


def f(x: Any, m: Any) -> Any:
    """The function, written once: `m` is math for numbers, sympy for formulas, wengert for Values."""
    return x * m.sin(x * x) + m.tanh(x)


def symbolic() -> tuple[Any, float, Any]:
    """The derivative as a formula, as a float computed by that formula, and as the truth to 40 digits."""
    sympy = library("sympy")
    x = sympy.Symbol("x")
    formula = sympy.diff(f(x, sympy), x)
    return formula, sympy.lambdify(x, formula, "math")(POINT), formula.evalf(DIGITS, subs={x: sympy.Rational(POINT)})


def forward(h: float) -> float:
    """The slope of the line through two points of the curve, x and x + h."""
    return (f(POINT + h, math) - f(POINT, math)) / h


def central(h: float) -> float:
    """The slope of the line through x - h and x + h, where the first error cancels."""
    return (f(POINT + h, math) - f(POINT - h, math)) / (2 * h)


def automatic() -> float:
    """The chain rule at each step of the computation, on numbers."""
    x = Value(POINT)
    f(x, wengert).backward()
    return x.grad


def error(derivative: float, truth: Any) -> float:
    """How far off, as a share of the truth."""
    return abs(float((library("sympy").Float(derivative, DIGITS) - truth) / truth))


def swell(most: int = 6) -> list[tuple[int, int, int, int]]:
    """What a loop does to a formula: x = 4 x (1 - x), again and again.

    For each number of rounds: the operations of the derivative's formula as the rules give it, those if everything is
    multiplied out, and the operations that automatic differentiation goes through.
    """
    sympy = library("sympy")
    symbol, leaf = sympy.Symbol("x"), Value(0.3)
    formula, multiplied, value = symbol, symbol, leaf
    rows = []
    for rounds in range(1, most + 1):
        formula, value = 4 * formula * (1 - formula), 4 * value * (1 - value)
        multiplied = sympy.expand(4 * multiplied * (1 - multiplied))
        lengths = [sympy.count_ops(sympy.diff(way, symbol)) for way in (formula, multiplied)]
        steps = sum(op.name != "leaf" for op, _, _ in Graph(value))
        rows.append((rounds, *lengths, steps))
    return rows


def draw(path: str, truth: Any) -> None:
    """The error of each way against h, both on scales of powers of ten."""
    axes = library("matplotlib.figure").Figure(figsize=(7, 4.4), layout="tight", facecolor="white").subplots()
    for way, mark, colour in ((forward, "o", "#0072b2"), (central, "s", "#d55e00")):
        errors = [error(way(h), truth) for h in STEPS]
        axes.loglog(STEPS, errors, mark + "-", color=colour, label=f"{way.__name__} difference")
    axes.axhline(error(symbolic()[1], truth), color="#cc79a7", linestyle="--", label="symbolic")
    axes.axhline(error(automatic(), truth), color="#009e73", label="automatic")
    axes.text(1e-13, 3e-6, "rounding:\nthe digits cancel", ha="right", fontsize=9, color="#333333")
    axes.text(4e-4, 1e-10, "truncation:\nthe curve bends", ha="left", fontsize=9, color="#333333")
    axes.set(xlabel="h", ylabel="relative error", xlim=(3e-17, 3e-1), ylim=(2e-17, 10.0))
    axes.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=4, frameon=False, fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)
    axes.figure.savefig(path, dpi=100)


def library(name: str) -> Any:
    """An optional library, or a sentence on how to get it."""
    try:
        return import_module(name)
    except ImportError:
        raise SystemExit(f"this needs {name.partition('.')[0]}: pip install sympy matplotlib") from None


def main(argv: list[str] | None = None) -> None:
    """Compare the three, in two tables and a picture."""
    parser = argparse.ArgumentParser(description="Symbolic, numerical and automatic differentiation of one function.")
    parser.add_argument("picture", nargs="?", metavar="PICTURE.png", help="draw the errors into this file")
    options = parser.parse_args(argv)

    formula, by_formula, truth = symbolic()
    print(f"f(x) = x sin(x^2) + tanh(x) at x = {POINT}")
    print(f"symbolic    f'(x) = {formula}")
    print(f"            {by_formula:.17g}   relative error {error(by_formula, truth):.1e}")
    print(f"automatic   {automatic():.17g}   relative error {error(automatic(), truth):.1e}")
    print(f"truth       {truth}")
    print("\nnumerical: relative errors\n     h   forward   central")
    for h in STEPS:
        print(f"{h:6.0e}   {error(forward(h), truth):7.1e}   {error(central(h), truth):7.1e}")
    print("\nx = 4 x (1 - x) in a loop: operations of the derivative")
    print("rounds   formula   multiplied out   automatic")
    for row in swell():
        print("{:6}   {:7,}   {:14,}   {:9}".format(*row))
    if options.picture:
        draw(options.picture, truth)
        print(f"\nwritten: {options.picture}")


if __name__ == "__main__":
    main()
