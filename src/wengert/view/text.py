"""Plots as text, for terminals, logs, and systems without matplotlib.

Every function here is a pure function from data to a string.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from wengert.errors import counted

__all__ = ["confusion", "curve", "digits", "regions"]

SHADES = " .:-=+*#%@"  # from paper to ink
LETTERS = "abcdefghijklmnopqrstuvwxyz"

Point = Sequence[float]


def confusion(table: Sequence[Sequence[int]]) -> str:
    """Write a confusion table of the counts ``table[truth][prediction]``; 0 is a dot, so that mistakes stand out.

    >>> print(confusion([[5, 0], [1, 4]]))
    truth    read as
               0   1
        0      5   .
        1      1   4
    """
    width = max(3, *(len(str(count)) for row in table for count in row))
    lines = ["truth    read as", " " * 8 + "".join(f" {label:>{width}}" for label in range(len(table)))]
    for label, row in enumerate(table):
        lines.append(f"{label:>5}   " + "".join(f" {count or '.':>{width}}" for count in row))
    return "\n".join(lines)


def curve(numbers: Sequence[float], name: str = "loss", width: int = 60, height: int = 12) -> str:
    """Plot a curve over the epochs, with an axis that starts at 0.

    >>> print(curve([4.0, 2.0, 1.0], width=9, height=4))
    loss, 3 epochs, from 4 to 1
     4 |***
     3 |
     2 |   ***
     1 |      ***
       +---------
    """
    if not numbers:
        return f"{name}: no epoch was completed"
    columns = [numbers[i * len(numbers) // width] for i in range(width)]
    top = max(columns) or 1.0
    rows = [min(max(round(height * number / top), 1), height) for number in columns]
    marks = [f"{top * level / height:.3g}" for level in range(height, 0, -1)]
    margin = max(map(len, marks)) + 1
    lines = [f"{name}, {counted(len(numbers), 'epoch')}, from {numbers[0]:.4g} to {numbers[-1]:.4g}"]
    for level, mark in zip(range(height, 0, -1), marks, strict=True):
        lines.append(f"{mark:>{margin}} |" + "".join("*" if row == level else " " for row in rows).rstrip())
    return "\n".join([*lines, f"{'':>{margin}} +" + "-" * width])


def digits(images: Sequence[Point], labels: Sequence[int], predictions: Sequence[int], across: int = 6) -> str:
    """Draw images of 8 x 8 pixels from 0.0 (paper) to 1.0 (ink), `across` in a row, with their predictions below.

    >>> print(digits([[0.0, 1.0] * 32], [1], [7]).splitlines()[-1])
    7, wrong: it is 1
    """
    blocks = []
    for image, label, prediction in zip(images, labels, predictions, strict=True):
        shades = [SHADES[round(9 * min(max(pixel, 0.0), 1.0))] for pixel in image]
        rows = ["".join(2 * shade for shade in shades[8 * y : 8 * y + 8]) for y in range(8)]
        verdict = f"{prediction}" if prediction == label else f"{prediction}, wrong: it is {label}"
        blocks.append([f"{row:<20}" for row in [*rows, verdict]])
    bands = [blocks[i : i + across] for i in range(0, len(blocks), across)]
    return "\n\n".join("\n".join("".join(line).rstrip() for line in zip(*band, strict=True)) for band in bands)


def regions(
    classify: Callable[[list[Point]], Sequence[int]], X: Sequence[Point], Y: Sequence[int], width: int = 72
) -> str:
    """Draw the class that a classifier assigns to each point of the plane: a, b, c, ...; the data points in capitals.

    >>> print(regions(lambda points: [int(x > 0) for x, _ in points], [[-1.0, 0.0], [1.0, 0.0]], [0, 1], width=8))
    aaaabbbb
    AaaabbbB
    aaaabbbb
    """
    left, right, low, high = bounds(X)
    height = max(round(0.45 * width * (high - low) / (right - left)), 3) | 1
    columns = [left + (right - left) * i / (width - 1) for i in range(width)]
    rows = [high - (high - low) * j / (height - 1) for j in range(height)]
    order = {label: i % 26 for i, label in enumerate(sorted(set(Y)))}
    classes = classify([(x, y) for y in rows for x in columns])
    canvas = [[LETTERS[order.get(c, 25)] for c in classes[j * width : (j + 1) * width]] for j in range(height)]
    for (x, y), label in zip(X, Y, strict=True):
        i = round((x - left) / (right - left) * (width - 1))
        j = round((high - y) / (high - low) * (height - 1))
        canvas[j][i] = LETTERS[order[label]].upper()
    return "\n".join("".join(row) for row in canvas)


def bounds(X: Sequence[Point], margin: float = 0.0) -> tuple[float, float, float, float]:
    """Return left, right, low and high of points, widened by a fraction of their extent; never an empty range."""
    return *_extent([x for x, _ in X], margin), *_extent([y for _, y in X], margin)


def _extent(numbers: list[float], margin: float) -> tuple[float, float]:
    low, high = min(numbers), max(numbers)
    room = margin * (high - low) if high > low else 0.5
    return low - room, high + room
