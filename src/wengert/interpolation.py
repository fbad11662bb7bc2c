"""Tables of numbers as functions: `interp`, NumPy's, and `Table`, of one or two arguments, linear or cubic.

Between two points a table is a cubic polynomial of its values and slopes there (Hermite's form), or a straight line. Of
a number, the interval is looked up; in a compiled function, which has to serve all numbers, it is computed: comparisons
with the points give 1 for the interval and 0 for all others, and weighted sums choose. So there is one program for all
intervals, and its cost grows with the number of points.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import pairwise
from math import inf, isfinite
from typing import Any

from wengert.engine import Value
from wengert.errors import ArgumentError, LengthError, OperandError, require
from wengert.linalg import array_and_kind, number_of
from wengert.ops import coerce, named, table

__all__ = ["Table", "interp"]


def interp(x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None) -> Any:
    """Interpolate linearly, like ``numpy.interp``; any of x, xp, fp, left and right may hold Values.

    Args:
        x: where: a number or Value, or an array or a list of them.
        xp: the points, increasing.
        fp: the values there.
        left: the value below the first point, by default that at it.
        right: the value above the last point, by default that at it.
        period: the length after which the points repeat; left and right are then ignored.

    Returns:
        A number or Value, or an array of them. The derivative at a point is that of the interval to its right, at the
        last point of the one to its left, and outside 0.

    Raises:
        LengthError: xp and fp are not two sequences of one length, of at least two points.
        ArgumentError: xp does not increase, or is not finite.
        OperandError: something is not a number.
        MissingExtraError: NumPy is not installed.

    >>> from wengert.engine import Value
    >>> x = Value(2.5)
    >>> y = interp(x, [1.0, 2.0, 4.0], [0.0, 10.0, 14.0])
    >>> y.backward()
    >>> y.data, x.grad
    (11.0, 2.0)
    """
    np = require("numpy", "array")
    given = [array_and_kind(each) for each in (x, xp, fp, *[y for y in (left, right) if y is not None])]
    if not any(computes for _, computes in given):
        return np.interp(x, xp, fp, left, right, period)
    (points, moving), (values, _) = given[1:3]
    if period is not None:
        if any(isinstance(each, Value) for each in (period, *points.flat)):
            raise OperandError("interp: with a period, the points and the period have to be numbers, not Values")
        points, moving = points.astype(float), False  # of recorded numbers the numbers: it has to sort them
        period, left, right = abs(float(period)), None, None
        points = points % period
        order = np.argsort(points)
        points = np.concatenate([points[order[-1:]] - period, points[order], points[order[:1]] + period])
        values = np.concatenate([values[order[-1:]], values[order], values[order[:1]]])
    axis = _Axis(points.tolist() if points.ndim == 1 else [], "xp", moving)
    values = values.tolist()
    if not isinstance(values, list) or len(values) != len(axis.points):
        raise LengthError(f"interp: xp has {len(axis.points)} points, and fp is {named(fp)}; expected a value for each")

    def one(x: Any) -> Any:
        x = x if period is None else table.remainder(x, period)
        y = _contracted([axis.weights(x)], values)
        y = y if left is None else table.where(x < axis.points[0], left, y)
        return y if right is None else table.where(x > axis.points[-1], right, y)

    return _each(one, x)


class Table:
    """A table of numbers as a function of one or two arguments, with derivatives.

    Args:
        points: where the values are: n increasing numbers; for two arguments a pair of such lists.
        values: n numbers; for two arguments n rows of m. They may be Values, but for "pchip".
        kind: what is between the points:
            "linear": straight lines; for two arguments bilinear.
            "cubic": cubic polynomials with continuous slopes. The slope at a point is that of the parabola through it
            and its two neighbours, as of ``numpy.gradient(values, points, edge_order=2)``; for equal distances that is
            Catmull and Rom's spline. For two arguments bicubic: first derivatives are continuous in both.
            "pchip": cubic polynomials that do not overshoot: between two points they rise or fall as the values do. The
            slopes are Fritsch and Butland's, those of SciPy's ``PchipInterpolator``. For one argument.
        extrapolation: what is beyond the first and the last point: "constant", the value there, as in ``numpy.interp``;
            "linear", the straight line with the slope there; "error", an ArgumentError.

    At a point, the derivative of a linear table is that of the interval to its right, at the last point of the one to
    its left. With "constant" the slope at the two ends is that inside. Points and values are copied.

    Raises:
        ArgumentError: the points do not increase, something is not finite, or `kind` or `extrapolation` is none of the
            above; when called: with another number of arguments, or, with ``extrapolation="error"``, outside of it.
        LengthError: there are fewer than two points, or not as many values as points.
        OperandError: something is not a number.
        MissingExtraError: NumPy is not installed.

    >>> from wengert.derivatives.grad import grad
    >>> lift = Table([0.0, 5.0, 10.0, 15.0], [0.0, 0.55, 1.0, 1.2], kind="cubic")
    >>> round(lift(7.5), 4), round(grad(lift)(7.5), 4)
    (0.7969, 0.0938)
    >>> density = Table(([0.0, 10.0], [250.0, 300.0]), [[1.4, 1.2], [0.4, 0.3]])
    >>> density(5.0, 275.0)
    0.825
    """

    def __init__(self, points: Any, values: Any, kind: str = "linear", extrapolation: str = "constant") -> None:
        np = require("numpy", "array")
        for name, given, known in (("kind", kind, KINDS), ("extrapolation", extrapolation, EXTRAPOLATIONS)):
            if given not in known:
                raise ArgumentError(f"{name} is {given!r}; expected one of {', '.join(map(repr, known))}")
        two = isinstance(points, (tuple, list)) and len(points) == 2 and all(np.ndim(each) == 1 for each in points)
        names = ["points[0]", "points[1]"] if two else ["points"]
        listed = [array_and_kind(each)[0].tolist() for each in (points if two else [points])]
        self.kind: str = kind
        self.extrapolation: str = extrapolation
        self.axes: tuple[_Axis, ...] = tuple(
            [
                _Axis(each, name, False, kind != "linear", extrapolation)
                for each, name in zip(listed, names, strict=True)
            ]
        )
        made, computes = array_and_kind(values)
        shape = tuple([len(axis.points) for axis in self.axes])
        if made.shape != shape:
            raise LengthError(f"the values have the shape {made.shape}; expected {shape}, one for each of the points")
        if kind == "pchip" and (computes or two):
            raise ArgumentError('kind is "pchip", which takes one argument and no Values: use kind="cubic"')
        for place, x in enumerate(made.flat if not computes else ()):
            if not isfinite(x):
                raise ArgumentError(f"value {place} is {x}; expected finite numbers: leave out the point")
        if kind != "linear":  # the slopes follow the values, along each axis
            for number, axis in enumerate(self.axes):
                slopes = _slopes_by_neighbours if kind == "cubic" else _slopes_without_overshoot
                found = slopes(np.array(axis.points), np.moveaxis(made, number, 0))
                made = np.concatenate([made, np.moveaxis(found, 0, number)], axis=number)
        self._values: tuple[Any, ...] = _frozen(made.tolist())
        self._positions: tuple[int, tuple[float, ...]] = len(self.axes), ()  # see `_signatures.signature`

    def __call__(self, *xs: Any) -> Any:
        """Return the value at a point; of arrays or lists, an array."""
        if len(xs) != len(self.axes):
            raise ArgumentError(f"the table has {len(self.axes)} arguments, and got {len(xs)}")
        return _each(self._at, *xs)

    def __repr__(self) -> str:
        size = " x ".join([str(len(axis.points)) for axis in self.axes])
        return f"<table of {size} points, {self.kind}, extrapolation: {self.extrapolation}>"

    def _at(self, *xs: Any) -> Any:
        return _contracted([axis.weights(x) for axis, x in zip(self.axes, xs, strict=True)], self._values)


KINDS = ("linear", "cubic", "pchip")
EXTRAPOLATIONS = ("constant", "linear", "error")


class _Axis:
    """The points along one argument; `weights` says how much each value counts."""

    def __init__(
        self, points: list[Any], name: str, moving: bool, cubic: bool = False, extrapolation: str = "constant"
    ) -> None:
        if len(points) < 2:
            raise LengthError(f"{name} has {len(points)} points; expected a list of at least two numbers")
        self.points: tuple[Any, ...] = tuple(points)
        self.cubic: bool = cubic
        self.extrapolation: str = extrapolation
        self.numbers: tuple[Any, ...] = tuple(map(number_of, points)) if moving else tuple(map(float, points))
        self.traced: bool = any(type(x) in coerce.OWN for x in self.numbers)
        before = -inf
        for place, x in enumerate(() if self.traced else self.numbers):
            if not before < x < inf:
                above = f"; expected more than {before}: sort the points, and leave out repeated ones"
                raise ArgumentError(f"{name}[{place}] is {x}{above if isfinite(x) else '; expected finite numbers'}")
            before = x

    def weights(self, x: Any) -> tuple[Sequence[int], list[Any]]:
        """Return the places of the values that count at x, and their weights."""
        n, points = len(self.points), self.points
        number = number_of(x)
        low, high = points[0], points[-1]
        if self.extrapolation == "error" and (x < low or x > high):
            raise ArgumentError(f"{x!r} is outside of the table, which has the points from {low} to {high}")
        inside = x if self.extrapolation == "linear" and not self.cubic else table.clip(x, low, high)
        if not self.traced and type(number) not in coerce.OWN:
            i = min(max(bisect_right(self.numbers, number) - 1, 0), n - 2)
            weights = self._of_interval(x, inside, points[i], points[i + 1] - points[i])
            return (i, i + 1, n + i, n + i + 1)[: len(weights)], weights
        above = [1.0, *[1.0 * (x >= point) for point in points[1:-1]], 0.0]
        here = [a - b for a, b in pairwise(above)]
        widths = [b - a for a, b in pairwise(points)]
        own = self._of_interval(x, inside, table.dot(*here, *points[:-1], 0.0), table.dot(*here, *widths, 0.0))
        weights = []
        for at_left, at_right in zip(own[::2], own[1::2], strict=True):
            left, right = [h * at_left for h in here], [h * at_right for h in here]
            weights += [left[0], *[a + b for a, b in zip(left[1:], right, strict=False)], right[-1]]
        return range(len(weights)), weights

    def _of_interval(self, x: Any, inside: Any, left: Any, width: Any) -> list[Any]:
        """Return the weights of the values at both ends of an interval, and of the slopes there."""
        t = table.div(inside - left, width)
        s = 1.0 - t
        if not self.cubic:
            return [s, t]
        slopes = [width * t * s * s, -(width * t * t * s)]
        if self.extrapolation == "linear":
            low, high = self.points[0], self.points[-1]
            slopes[0] = slopes[0] + table.where(x < low, x - low, 0.0)
            slopes[1] = slopes[1] + table.where(x > high, x - high, 0.0)
        return [s * s * (1.0 + 2.0 * t), t * t * (1.0 + 2.0 * s), *slopes]


def _contracted(weights: list[Any], values: Any) -> Any:
    """Return the sum of all values, each times its weight along every axis."""
    (places, own), *others = weights
    found = [_contracted(others, values[place]) if others else values[place] for place in places]
    return table.dot(*own, *found, 0.0)


def _each(function: Any, *xs: Any) -> Any:
    """Call a function of numbers, also for arrays and lists, item by item."""
    if any(hasattr(x, "__len__") for x in xs):
        np = require("numpy", "array")
        arrays = [x if isinstance(x, np.ndarray) else array_and_kind(x)[0] for x in xs]
        made = np.frompyfunc(function, len(xs), 1)(*arrays)
        return made if any(hasattr(x, "_apply_op") for x in made.flat) else made.astype(float)
    return function(*[x if hasattr(x, "_apply_op") else coerce.data(x) for x in xs])


def _frozen(values: Any) -> Any:
    return tuple(map(_frozen, values)) if isinstance(values, list) else values


def _slopes_by_neighbours(x: Any, y: Any) -> Any:
    """Return the slope at each point of the parabola through it and its neighbours; at the ends, of the last one."""
    np = require("numpy", "array")
    widths = np.diff(x).reshape(-1, *[1] * (y.ndim - 1))
    secants = (y[1:] - y[:-1]) / widths
    if len(x) == 2:
        return np.concatenate([secants, secants])
    a, b = widths[:-1], widths[1:]
    between = (b * secants[:-1] + a * secants[1:]) / (a + b)
    return np.concatenate([2.0 * secants[:1] - between[:1], between, 2.0 * secants[-1:] - between[-1:]])


def _slopes_without_overshoot(x: Any, y: Any) -> Any:
    """Return Fritsch and Butland's slopes: weighted harmonic means of the secants at both sides, 0 at an extremum.

    F. Fritsch, J. Butland, "A method for constructing local monotone piecewise cubic interpolants", 1984; the ends are
    those of C. Moler's pchip.
    """
    np = require("numpy", "array")
    widths = np.diff(x)
    secants = np.diff(y) / widths
    if len(x) == 2:
        return np.concatenate([secants, secants])

    def at_end(h: float, other: float, s: float, following: float) -> float:
        slope = ((2.0 * h + other) * s - h * following) / (h + other)
        if slope * s <= 0.0:
            return 0.0
        return 3.0 * s if s * following <= 0.0 and abs(slope) > 3.0 * abs(s) else slope

    found = [at_end(widths[0], widths[1], secants[0], secants[1])]
    for a, b, s, following in zip(widths, widths[1:], secants, secants[1:], strict=False):
        rises = s * following > 0.0
        found.append(3.0 * (a + b) / ((2.0 * b + a) / s + (b + 2.0 * a) / following) if rises else 0.0)
    return np.array([*found, at_end(widths[-1], widths[-2], secants[-1], secants[-2])])


def of_numpy(function: Any, types: Any, args: Any, named: Any) -> Any:
    """Call a function of NumPy with a Value among its arguments: `interp` is this module's."""
    np = require("numpy", "array")
    if function is np.interp:
        return interp(*args, **named)
    if any(kind is not np.ndarray and not issubclass(kind, Value) for kind in types):  # it may know better
        return NotImplemented
    return np.ndarray.__array_function__(np.empty(0), function, (), args, named)
