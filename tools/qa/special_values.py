"""What each row of the table makes of special operands: `python -m tools.qa.special_values [--page PAGE]`.

The operands are -1.3, 0.49, 0.99, 1.01, both zeros, both infinities and nan; of operations on two numbers or many, all
pairs of them. What comes out is kept in tests/ops/special_values.txt, which the tests hold to what the engine gives, to
PyTorch, to the truth in many digits and to its limits. The command writes that file anew, and the page.
"""

from __future__ import annotations

import argparse
import itertools
import math
import sys
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from math import inf, nan
from pathlib import Path
from typing import Any

from tools.qa.oracles import ROWS, torch_rows
from wengert import Value, hessian, ops

__all__ = ["SPECIAL", "STORE", "TWICE", "answers", "differs", "gradients", "operands", "same", "stored"]
__all__ += ["torch_gradients", "twice", "twice_tables"]

SPECIAL = (-1.3, 0.49, 0.99, 1.01, inf, -inf, nan, 0.0, -0.0)
SHAPES = (0.0, 1.0, 2.5, inf)  # of a distribution
BOUNDS = ((-1.0, 1.0), (1.0, -1.0), (0.49, 0.49), (-inf, inf), (nan, 1.0), (-1.0, nan))  # of clip
STORE = Path(__file__).resolve().parents[2] / "tests" / "ops" / "special_values.txt"
BEGIN, END = "<!-- special values: begin -->", "<!-- special values: end -->"
TWICE_BEGIN, TWICE_END = "<!-- second derivatives: begin -->", "<!-- second derivatives: end -->"


def same(a: float, b: float) -> bool:
    """Equal, zeros by sign too, and nan to nan."""
    return (a != a and b != b) or (a == b and math.copysign(1.0, a) == math.copysign(1.0, b))


def gradients(function: Callable[..., Any], *numbers: float) -> tuple[float, ...]:
    """The value and the gradient with respect to each operand."""
    fixed = len(getattr(function, "shapes", ()))
    leaves = [Value(x) for x in numbers[fixed:]]
    y = function(*numbers[:fixed], *leaves)
    y.backward()
    return (y.data, *[nan] * fixed, *[leaf.grad for leaf in leaves])


def operands(row: ops.Op) -> Iterator[tuple[float, ...]]:
    """The operands at which a row stands in the tables."""
    if row.arity == 1:
        yield from ((x,) for x in SPECIAL)
    elif row.name == "where":
        yield from ((condition, *xs) for condition in SPECIAL for xs in ((0.49, -inf), (nan, 0.99)))
    elif row.name == "clip":
        yield from ((x, *bounds) for x in SPECIAL for bounds in BOUNDS)
    elif row.shapes:
        yield from itertools.product(*[SHAPES] * len(row.shapes), SPECIAL)
    elif row.name == "polygamma":
        yield from itertools.product((0.0, 1.0, 2.0, *SPECIAL[:-2]), SPECIAL)
    elif row.name == "dot":
        yield from ((x, y, 0.49) for x, y in itertools.product(SPECIAL, repeat=2))
    else:
        yield from itertools.product(SPECIAL, repeat=2)


TWICE = ("abs", "relu", "entr", "sinc", "xlogy", "xlog1py", "hypot", "norm", "pow")
"""Rows whose second derivatives have a table, at special operands: new ones, and those with kinks."""
OF_POW = (2.0, 3.0, 1.5, 0.5)  # exponents of the table of second derivatives


def twice() -> list[tuple[str, tuple[float, ...], tuple[float, ...]]]:
    """Row, operands, and the second derivatives there: with respect to x; of two operands x x, x y and y y."""
    found = []
    for name in TWICE:
        row = ops.BY_NAME[name]
        pairs = itertools.product(SPECIAL, OF_POW) if name == "pow" else operands(row)
        for xs in pairs:
            by = xs[:1] if name == "pow" else xs
            rest = xs[len(by) :]
            matrix = hessian(lambda at, row=row, rest=rest: row(*at, *rest))(list(by))
            entries = [matrix[i][j] + 0.0 for i in range(len(by)) for j in range(i, len(by))]
            found.append((name, xs, tuple(entries)))
    return found


def twice_tables() -> str:
    """The second derivatives as Markdown."""
    found = {(name, repr(xs)): entries for name, xs, entries in twice()}
    heads = [shown(x) for x in SPECIAL]
    lines = [f"| x | {' | '.join(heads)} |", "|---" * (len(SPECIAL) + 1) + "|"]
    for name in TWICE:
        if ops.BY_NAME[name].arity == 1:
            cells = [shown(found[name, repr((x,))][0]) for x in SPECIAL]
            lines.append(f"| `{name}` | {' | '.join(cells)} |")
    for y in OF_POW:
        cells = [shown(found["pow", repr((x, y))][0]) for x in SPECIAL]
        lines.append(f"| `x**{y:g}` | {' | '.join(cells)} |")
    for name in TWICE:
        if ops.BY_NAME[name].arity == 1 or name == "pow":
            continue
        lines += ["", f"**`{name}`**", "", f"| x \\ y | {' | '.join(heads)} |", "|---" * (len(SPECIAL) + 1) + "|"]
        for x in SPECIAL:
            cells = [", ".join(map(shown, found[name, repr((x, y))])) for y in SPECIAL]
            lines.append(f"| {shown(x)} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


Answer = tuple[str, tuple[float, ...], tuple[float, ...]]


def answers() -> list[Answer]:
    """Row, operands, and what comes out: the value, then the partial derivative with respect to each operand."""
    return [(row.name, xs, gradients(row, *xs)) for row in ROWS for xs in operands(row)]


def stored() -> list[Answer]:
    """What is kept: row, operands, answers."""
    lines = [line.split("|") for line in STORE.read_text(encoding="utf-8").splitlines()]
    return [(name.strip(), _floats(xs), _floats(found)) for name, xs, found in lines]


def _floats(text: str) -> tuple[float, ...]:
    return tuple(map(float, text.split()))


def torch_gradients(function: Callable[..., Any], xs: tuple[float, ...]) -> tuple[float | None, ...]:
    """PyTorch's value and gradients; None where it has none."""
    import torch

    tensors = [torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in xs]
    y = function(*tensors)
    if y.requires_grad:
        y.backward()
    return (y.item(), *[None if t.grad is None else t.grad.item() for t in tensors])


def outside(row: str, x: float) -> bool:
    """Whether the function is nan at x, and so is its derivative here; PyTorch's goes on (differs)."""
    below = {"log": 0.0, "log2": 0.0, "log10": 0.0, "log1p": -1.0, "acosh": 1.0}
    return x < below.get(row, -inf) or (row == "atanh" and abs(x) > 1.0)


def differs(row: str, xs: tuple[float, ...]) -> str:
    """Why PyTorch has another answer at this point; empty if it should not."""
    largest, tiny = max(map(abs, xs)), any(0.0 < abs(x) < 1e-300 for x in xs)
    if outside(row, xs[0]) or (row == "remainder" and xs[1] == 0.0):
        return "no derivative where there is no value"
    if row in ("hypot", "atan2") and largest == 0.0:
        return "0 at the origin, where PyTorch has nan"
    if row in ("xlogy", "xlog1py"):
        pole = 0.0 if row == "xlogy" else -1.0
        if xs[1] < pole and xs[0] != 0.0:
            return "no derivative where there is no value"
        if xs[1] <= pole and xs[0] == 0.0:
            return "the slope towards x is the logarithm, and towards y 0, as for all y where x is 0"
    if row == "sinc" and abs(xs[0]) == inf:
        return "the limit, 0, where PyTorch has nan"
    if row == "sinc" and math.isfinite(xs[0]) and xs[0] == round(xs[0]) and xs[0] != 0.0:
        return "0 at a whole number, whose product with pi PyTorch rounds"
    if row == "prod" and not all(map(math.isfinite, xs)):
        return "PyTorch divides the product by the operand"
    if row in ("atan2", "asinh", "acosh", "prod", "log10") and (largest >= 1e300 or tiny):
        return "PyTorch overflows on the way"
    if row == "norm" and (1e154 < largest < inf or 0.0 < largest < 1e-154):
        return "PyTorch overflows on the way, or underflows"
    if row == "logsumexp" and largest == inf and max(xs) == -inf:
        return "0, where PyTorch has nan"
    if row == "sign" and xs[0] != xs[0]:
        return "nan, as NumPy has it"
    if row == "elu" and not math.isfinite(xs[1]):
        return "PyTorch does not multiply 0 by an infinite alpha"
    if row == "pow" and xs[0] < 0.0 and (abs(xs[1]) >= 1e308 or tiny):
        return "PyTorch rounds the exponent y - 1 to a whole number of other parity"
    if row == "pow" and 0.0 < abs(xs[0]) < 1e-300:
        return "PyTorch overflows on the way"
    if row == "hypot" and tiny and largest < 1e-300:
        return "PyTorch divides by a length that has lost its digits to underflow"
    if row == "elu" and xs[0] < -745.0:
        return "PyTorch multiplies alpha by an exponential that has vanished"
    if row == "digamma" and (xs[0] <= 0.0 or xs[0] > 1e300):
        return "PyTorch's trigamma has no poles, and overflows"
    return ""


# -- the page ---------------------------------------------------------------------------------------------------------


def shown(x: float | None) -> str:
    """A number as the tables write it: five digits, and the sign of a zero."""
    return "" if x is None else f"{x:.5g}".replace("inf", "∞")


def cell(found: tuple[float | None, ...]) -> str:
    """A value, and behind it the partial derivatives in brackets."""
    return f"{shown(found[0])} ({', '.join(map(shown, found[1:]))})"


def tables() -> str:
    """Everything as Markdown."""
    return value_tables(answers()) + (difference_table() if find_spec("torch") else "")


def value_tables(found_answers: list[Answer]) -> str:
    """What comes out, row by row."""
    found = {(name, repr(xs)): a for name, xs, a in found_answers}  # by text: 0 and -0 would be one key
    heads = [shown(x) for x in SPECIAL]
    lines = [f"| x | {' | '.join(heads)} |", "|---" * (len(SPECIAL) + 1) + "|"]
    for row in ROWS:
        if row.arity == 1:
            lines.append(f"| `{row.name}` | {' | '.join(cell(found[row.name, repr((x,))]) for x in SPECIAL)} |")
    for row in ROWS:
        if row.arity == 1:
            continue
        lines += ["", f"**`{row.name}`**", ""]
        if (row.name, repr((0.49, 0.49))) in found:
            lines += [f"| x \\ y | {' | '.join(heads)} |", "|---" * (len(SPECIAL) + 1) + "|"]
            every = list(operands(row))
            for line in (every[k : k + len(SPECIAL)] for k in range(0, len(every), len(SPECIAL))):
                cells = [cell(found[row.name, repr(xs)]) for xs in line]
                lines.append(f"| {shown(line[0][0])} | {' | '.join(cells)} |")
        else:
            lines += ["| operands | |", "|---|---|"]
            lines += [f"| {', '.join(map(shown, xs))} | {cell(found[row.name, repr(xs)])} |" for xs in operands(row)]
    return "\n".join(lines) + "\n"


def difference_table() -> str:
    """Where PyTorch answers otherwise, and why."""
    lines = ["", "| operation | operands | Wengert | PyTorch | why |", "|---|---|---|---|---|"]
    for row, xs, ours, theirs in differences():
        both = f"{cell(ours)} | {cell(theirs)}"
        lines.append(f"| `{row.name}` | {', '.join(map(shown, xs))} | {both} | {differs(row.name, xs)} |")
    return "\n".join(lines) + "\n"


def agree(a: float, b: float | None, rel: float = 1e-12) -> bool:
    """Whether two answers are the same but for rounding and the sign of a zero; None is no answer to differ from."""
    return b is None or same(a, b) or math.isclose(a, b, rel_tol=rel, abs_tol=0.0)


def differences() -> Iterator[tuple[ops.Op, tuple[float, ...], tuple[float, ...], tuple[float | None, ...]]]:
    """Where PyTorch answers otherwise: row, operands, Wengert's answers, PyTorch's."""
    functions = torch_rows()
    for row in ROWS:
        for xs in operands(row):
            if row.name in functions:
                ours, theirs = gradients(row, *xs), torch_gradients(functions[row.name], xs)
                rel = 1e-8 if row.name == "digamma" else 1e-12  # PyTorch's trigamma is that coarse
                if not all(agree(a, b, rel) for a, b in zip(ours, theirs, strict=True)):
                    yield row, xs, ours, theirs


def main(argv: list[str] | None = None) -> int:
    """Write what the engine gives today."""
    from tools.qa.accuracy import into_page

    parser = argparse.ArgumentParser(description="The special values of every operation: golden file and page.")
    parser.add_argument("--page", type=Path, default=STORE.parents[2] / "docs" / "special-values.md")
    parser.add_argument("--store", type=Path, default=STORE)
    options = parser.parse_args(argv)
    lines = [f"{name} | {' '.join(map(repr, xs))} | {' '.join(map(repr, a))}" for name, xs, a in answers()]
    options.store.write_text("\n".join(lines) + "\n", encoding="utf-8")
    into_page(options.page, BEGIN, END, tables())
    into_page(options.page, TWICE_BEGIN, TWICE_END, twice_tables())
    return 0


if __name__ == "__main__":
    sys.exit(main())
