"""Small data sets: four that a formula generates, and 1,797 real handwritten digits.

Each function returns `X, Y`: a list of examples, which are lists of floats, and a list of their targets, which are
ints.

    >>> X, Y = moons(4, noise=0.0)
    >>> [round(x, 6) for x in X[0]], Y
    ([1.0, 0.0], [0, 0, 1, 1])
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from wengert.errors import ArgumentError, DataError, LengthError, answer

__all__ = ["circles", "digits", "moons", "spiral", "train_test_split", "xor"]

Rows = list[list[float]]
Item = TypeVar("Item")
Target = TypeVar("Target")


def moons(
    n: int = 100, noise: float = 0.1, seed: int | None = None, labels: tuple[int, int] = (0, 1)
) -> tuple[Rows, list[int]]:
    """Generate two interleaved half circles, as scikit-learn's `make_moons`.

    Args:
        n: the number of points; the second moon gets the odd one.
        noise: the standard deviation of the noise on each coordinate.
        seed: makes the noise reproducible; None draws new noise each time.
        labels: the targets of the upper and of the lower moon; (-1, 1) suits the hinge loss.

    Raises:
        ArgumentError: n is below 2, or noise is negative or not finite.
    """
    first, second = _halves(n)
    upper = [[math.cos(a), math.sin(a)] for a in _spread(0.0, math.pi, first)]
    lower = [[1.0 - math.cos(a), 0.5 - math.sin(a)] for a in _spread(0.0, math.pi, second)]
    return _noisy(upper + lower, noise, seed), [labels[0]] * first + [labels[1]] * second


def circles(
    n: int = 100, noise: float = 0.05, factor: float = 0.5, seed: int | None = None, labels: tuple[int, int] = (0, 1)
) -> tuple[Rows, list[int]]:
    """Generate a circle of radius 1 around one of radius `factor`, as scikit-learn's `make_circles`.

    Args:
        n: the number of points; the inner circle gets the odd one.
        noise: the standard deviation of the noise on each coordinate.
        factor: the inner radius, above 0 and below 1.
        seed: makes the noise reproducible; None draws new noise each time.
        labels: the targets of the outer and of the inner circle.

    Raises:
        ArgumentError: n is below 2, noise is negative or not finite, or factor is out of its range.

    >>> X, Y = circles(100, noise=0.0)
    >>> sorted({round(math.hypot(*x), 6) for x in X})
    [0.5, 1.0]
    """
    if not 0.0 < factor < 1.0:
        raise ArgumentError(f"factor is {factor!r}; expected a number above 0 and below 1")
    outer, inner = _halves(n)
    points = []
    for count, radius in ((outer, 1.0), (inner, factor)):
        for a in _spread(0.0, 2.0 * math.pi * (count - 1) / count, count):
            points.append([radius * math.cos(a), radius * math.sin(a)])
    return _noisy(points, noise, seed), [labels[0]] * outer + [labels[1]] * inner


def spiral(n: int = 100, classes: int = 3, noise: float = 0.1, seed: int | None = None) -> tuple[Rows, list[int]]:
    """Generate spiral arms, one for each class, which no straight line separates.

    Args:
        n: the number of points of each arm.
        classes: the number of arms; the targets are 0, 1, ...
        noise: the standard deviation of the noise on the angle, in radians.
        seed: makes the noise reproducible; None draws new noise each time.

    Raises:
        ArgumentError: n or classes is below 1, or noise is negative or not finite.
    """
    _whole("n", n, 1)
    _whole("classes", classes, 1)
    _check_noise(noise)
    draw = random.Random(seed)
    points, targets = [], []
    for arm in range(classes):
        start = 2.0 * math.pi * arm / classes
        for radius, turn in zip(_spread(0.05, 1.0, n), _spread(0.0, 4.0, n), strict=True):
            angle = start + turn + noise * draw.gauss(0.0, 1.0)
            points.append([radius * math.sin(angle), radius * math.cos(angle)])
            targets.append(arm)
    return points, targets


def xor(labels: tuple[int, int] = (0, 1)) -> tuple[Rows, list[int]]:
    """Return the four corners of a square; the target is labels[1] where the two inputs differ.

    >>> xor()
    ([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], [0, 1, 1, 0])
    """
    corners = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]]
    return corners, [labels[x != y] for x, y in corners]


def digits() -> tuple[Rows, list[int]]:
    """Load 1,797 real handwritten digits of 8 x 8 pixels, written by 13 people.

    Returns:
        1,797 lists of 64 pixels, row by row, from 0.0 (paper) to 1.0 (ink), and the digits 0 to 9.

    Raises:
        DataError: the file in the package is damaged.

    Source: E. Alpaydin and C. Kaynak, Optical Recognition of Handwritten Digits, UCI Machine Learning
    Repository, 1998, CC BY 4.0; the licence is beside the file, in `assets`.

    >>> X, Y = digits()
    >>> len(X), len(X[0]), Y[:5], max(map(max, X))
    (1797, 64, [0, 1, 2, 3, 4], 1.0)
    """
    import gzip
    from importlib import resources

    try:
        packed = resources.files("wengert").joinpath("assets", "digits.csv.gz").read_bytes()
        rows = [[int(field) for field in line.split(",")] for line in gzip.decompress(packed).decode("ascii").split()]
    except (OSError, EOFError, ValueError) as error:
        raise DataError(f"the digits in the package cannot be read ({error}): install wengert again") from error
    return [[pixel / 16.0 for pixel in row[:64]] for row in rows], [row[64] for row in rows]


def train_test_split(
    X: Sequence[Item], Y: Sequence[Target], test: float = 0.2, seed: int | None = 0
) -> tuple[list[Item], list[Item], list[Target], list[Target]]:
    """Shuffle examples and split them into a part for training and a part for testing.

    Args:
        X: the examples.
        Y: their targets.
        test: the fraction for testing, above 0 and below 1; each part gets at least one example.
        seed: makes the shuffle reproducible; None shuffles differently each time.

    Returns:
        X_train, X_test, Y_train, Y_test.

    Raises:
        LengthError: X and Y differ in length.
        DataError: there are fewer than two examples.
        ArgumentError: test is not a fraction above 0 and below 1.

    >>> train_test_split([1, 2, 3, 4, 5], "abcde", test=0.4)
    ([1, 5, 4], [3, 2], ['a', 'e', 'd'], ['c', 'b'])
    """
    if len(X) != len(Y):
        raise LengthError(f"X has the length {len(X)} and Y the length {len(Y)}; expected as many of each")
    if len(X) < 2:
        raise DataError(f"there are too few examples to split: {len(X)}; expected at least 2")
    if not 0.0 < test < 1.0:
        raise ArgumentError(f"test is {test!r}; expected a fraction above 0 and below 1")
    order = list(range(len(X)))
    random.Random(seed).shuffle(order)
    cut = min(max(round(len(X) * test), 1), len(X) - 1)
    aside, kept = order[:cut], order[cut:]
    return [X[i] for i in kept], [X[i] for i in aside], [Y[i] for i in kept], [Y[i] for i in aside]


# -- shared helpers ---------------------------------------------------------------------------------------------------


def _halves(n: int) -> tuple[int, int]:
    _whole("n", n, 2)
    return n // 2, n - n // 2


def _whole(name: str, number: Any, least: int) -> None:
    if not isinstance(number, int) or number < least:
        raise ArgumentError(f"{name} is {number!r}; expected an int >= {least}")


def _check_noise(noise: float) -> None:
    if not 0.0 <= noise < math.inf:
        raise ArgumentError(f"noise is {noise!r}; expected a standard deviation, a number >= 0")


def _spread(low: float, high: float, n: int) -> list[float]:
    """Return n evenly spaced numbers from low to high."""
    return [low + (high - low) * i / max(n - 1, 1) for i in range(n)]


def _noisy(points: Rows, noise: float, seed: int | None) -> Rows:
    _check_noise(noise)
    draw = random.Random(seed)
    return [[x + noise * draw.gauss(0.0, 1.0) for x in point] for point in points]


if not TYPE_CHECKING:  # a type checker would take any name
    __getattr__ = answer(__name__, {"makemoons": "moons(100)", "makecircles": "circles(100)", "loaddigits": "digits()"})
