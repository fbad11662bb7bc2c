"""What lifting does number by number, in the order of creation; everything else it does with whole arrays.

Like the engine, this file runs as plain Python or compiled by Cython, with `in_order.pxd`.
"""

from __future__ import annotations

from wengert.ops import BY_NAME
from wengert.ops.ieee import Array, Int

__all__ = ["PRIME", "evaluate", "multiply", "set_levels"]

PRIME = (1 << 61) - 1  # a Mersenne prime: multiples of 2**61 are added to what is below
MASK, BITS, HALF = 0x1FFFFFFFFFFFFFFF, 61, 31  # as C numbers
LOW, MIDDLE = 0x7FFFFFFF, 0x3FFFFFFF
ADD, SUB, NEG, MUL, DIV, POW, DOT = [BY_NAME[name].code for name in ("add", "sub", "neg", "mul", "div", "pow", "dot")]
SQUARE, CUBE, FOURTH = 2.0, 3.0, 4.0  # powers that are evaluated as products


def set_levels(users: Array, used: Array, levels: Array, depends: Array) -> None:
    """Raise each number's level above those of its operands, and mark what depends on a number that is marked.

    Args:
        users: for each operand the number that it is one of, in the order of creation.
        used: the operands.
        levels: the levels to raise.
        depends: the marks, 0 or 1, to extend.
    """
    for at in range(len(users)):
        user, operand = users[at], used[at]
        if levels[operand] >= levels[user]:
            levels[user] = levels[operand] + 1
        if depends[operand]:
            depends[user] = 1


def evaluate(nodes: Array, codes: Array, starts: Array, operands: Array, constants: Array, values: Array) -> None:
    """Replace the values of some sums, products and quotients in the field of PRIME elements by those that follow from
    their operands. Other operations, and a quotient by 0, keep the values that they have.

    Args:
        nodes: the numbers, in the order of creation.
        codes: the operation of each number.
        starts: where its operands begin.
        operands: the operands; constants are numbered after the numbers.
        constants: the constants as floats, for powers.
        values: the value of each number and constant.
    """
    count = len(codes)
    for n in range(len(nodes)):
        node = nodes[n]
        code, at, end = codes[node], starts[node], starts[node + 1]
        x, y = values[operands[at]], values[operands[at + 1]] if end > at + 1 else 0
        if code == ADD:
            values[node] = reduced(x + y)
        elif code == SUB:
            values[node] = reduced(x + MASK - y)
        elif code == NEG:
            values[node] = reduced(MASK - x)
        elif code == MUL:
            values[node] = times(x, y)
        elif code == DIV:
            if y:
                values[node] = times(x, pow(int(y), -1, PRIME))
        elif code == POW:
            power = constants[operands[at + 1] - count] if operands[at + 1] >= count else 0.0
            if power in (SQUARE, CUBE, FOURTH):
                square = times(x, x)
                values[node] = square if power == SQUARE else times(square, x if power == CUBE else square)
        else:
            half = (end - at) // 2 if code == DOT else 0
            total = 0
            for k in range(at, at + half):
                total = reduced(total + times(values[operands[k]], values[operands[k + half]]))
            for k in range(at + 2 * half, end):
                total = reduced(total + values[operands[k]])
            values[node] = total


def multiply(xs: Array, ys: Array) -> None:
    """Multiply each value by another one, modulo PRIME."""
    for n in range(len(xs)):
        xs[n] = times(xs[n], ys[n])


def reduced(x: Int) -> Int:
    """Return x modulo PRIME, for x below 2**64."""
    x = (x & MASK) + (x >> BITS)
    return x - MASK if x >= MASK else x


def times(x: Int, y: Int) -> Int:
    """Return x * y modulo PRIME, in numbers below 2**64: by halves of x and y, and since 2**61 is 1 there."""
    a, b, c, d = x >> HALF, x & LOW, y >> HALF, y & LOW
    middle = a * d + b * c
    return reduced(2 * a * c + (middle >> (BITS - HALF)) + ((middle & MIDDLE) << HALF) + b * d)
