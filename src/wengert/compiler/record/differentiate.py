"""Takes derivatives of a recorded function's program, one after another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from wengert.compiler.derive import gradient, jacobian, jvp, reordered, vjp
from wengert.compiler.ir import BATCH, LEAVES, Compute, Expr, Loop, Program, parts
from wengert.compiler.lift import Unliftable
from wengert.derivatives import Numbers, assembled, coloring
from wengert.engine import Value
from wengert.errors import WengertError
from wengert.ops import BUILT_IN, BY_NAME

__all__ = ["Level", "NotDifferentiable", "differentiate", "operations"]

LONGEST = 10_000  # parts of the expression of a step of which a derivative is taken; it may be 25 times as long

# The kind of a derivative, the numbers to differentiate with respect to, and the program's inputs for them.
Level = tuple[str, Numbers, list[str]]


class NotDifferentiable(Unliftable):
    """The program of a function cannot be differentiated so: the derivative itself is recorded."""


def differentiate(
    program: Program,
    levels: Sequence[Level],
    outputs: Numbers,
    number: Callable[[float], Any] = float,
    along: Sequence[str] = (),
    directions: Sequence[Any] = (),
    entries: Callable[[list[str]], coloring.Pattern] | None = None,
) -> Any:
    """Differentiate a program, in place.

    Args:
        program: the program.
        levels: the derivatives, the first one first.
        outputs: the function's result.
        number: makes a number of the result: Value, if it consists of Values.
        along: the inputs that give a direction.
        directions: the arguments that do.
        entries: makes the program that of the nonzeros of a sparse derivative, with respect to some inputs, and
            returns their pattern.

    Returns:
        The derivative in its structure; each number is the place of that number in the program's output.

    Raises:
        NotDifferentiable: an input is one of indices, the result has another structure, a rule has no such order, or
            expressions would grow too long.
    """
    input_arrays = {array.name: array for array in program.of_role("input")}
    last = levels[-1][0]
    orders = len(levels) + (last == "hvp") - (last == "value") + (number is Value)
    if orders > 1 and any(isinstance(step, Compute) and _has_own_rule(step.expr) for step in program.each_step()):
        raise NotDifferentiable("the rules of its own operations are recorded for first derivatives")
    result: Any = None
    for level, (kind, inputs, names) in enumerate(levels, 1):
        computed = [step for step in program.each_step() if isinstance(step, Compute)]
        if level > 1 and any(len(parts(step.expr)) > LONGEST for step in computed):
            raise NotDifferentiable("its rules in the array program grow too long with each order")
        if any(name not in input_arrays for name in (*names, *along)):
            raise NotDifferentiable("an integer to differentiate with respect to chooses an item of a list")
        if kind in ("grad", "value_and_grad", "hvp") and not outputs.is_number():
            raise NotDifferentiable("a gradient needs a function that returns one number")
        if kind in ("hvp", "jvp") and [input_arrays[x].shape for x in names] != [input_arrays[x].shape for x in along]:
            raise NotDifferentiable("the direction has another structure than the argument")
        is_last = level == len(levels)
        again = not is_last or number is Value
        pattern = entries(names) if kind == "sparse" and entries is not None else None
        if kind == "jacobian":
            jacobian(program, names, again)
        elif kind in ("grad", "value_and_grad", "hvp"):
            gradient(program, names, kind == "value_and_grad", again or kind == "hvp")
        if kind in ("hvp", "jvp"):
            jvp(program, names, along, kind == "jvp", again)
        elif kind == "vjp":
            try:
                outputs.match(directions[0], "the cotangent")
            except WengertError as problem:
                raise NotDifferentiable(str(problem)) from None
            vjp(program, names, along, again)
        size = program.outputs["out"].size
        result = assembled(kind, outputs, inputs, [number(float(n)) if is_last else float(n) for n in range(size)])
        if not is_last:
            outputs = Numbers(result)
            reordered(program, [int(x) for x in outputs.leaves], (size,) if size > 1 else ())
        elif pattern is not None:
            result = pattern, result
    return result


def _has_own_rule(expr: Expr) -> bool:
    """Return True if an operation of the user's own is in an expression."""
    names = {part[0] for part in parts(expr) if part[0] not in LEAVES}
    rows = [BY_NAME[name] for name in names if name in BY_NAME]
    return "by rule" in names or any(row.code >= BUILT_IN and not row.written_out for row in rows)


def operations(program: Program) -> int:
    """Count the operations of a program for one example."""
    total = 0
    for step in program.steps:
        inner = step.steps if isinstance(step, Loop) else [step]
        times = step.count if isinstance(step, Loop) else 1
        for each in inner:
            axes = each.axes if isinstance(each, Compute) else each.out.shape
            total += times * prod([n for n in axes if n != BATCH])
    return total
