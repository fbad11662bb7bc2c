"""Plots a function of one number and its derivative, with gaps where there is no derivative."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from itertools import pairwise
from math import inf, isfinite, isnan, nan
from typing import Any, NamedTuple

from wengert import derivatives, modes
from wengert.derivatives import called, takes_floats
from wengert.engine import Value
from wengert.errors import ArgumentError, OperandError
from wengert.graph import Graph
from wengert.view.plots.base import BLUE, INK, PALE, VERMILION, axes_for, quiet

__all__ = ["plot_function"]

STEPS = 240  # the number of intervals at first; even, so that the middle of the range is a point
MOST = 4000  # the largest number of points
FINEST = 2.0**-36  # an interval of this fraction of the range that is still not straight has a jump or a kink
APART = 15  # the derivative gets its own axis if one curve has more than this times the extent of the other
POLE, STEEP = 1e3, 1e6  # a curve goes to infinity if its extent is more than this times that of most of it
STRAIGHT = 0.004  # the allowed distance of a curve from a straight line, as a fraction of the height


_Range = tuple[float, float]  # bottom, top


class _Point(NamedTuple):
    """A point of a function with its derivative."""

    x: float
    value: float
    slope: float


def plot_function(f: Callable[[Any], Any], low: float, high: float, axes: Any = None) -> Any:
    """Plot a function of one number and its derivative, computed by `backward()`, from low to high.

    The curves have more points where they bend. They have a gap at a jump, a pole or a kink, so that the derivative of
    relu is drawn as two pieces. A separate value at such a place, such as the derivative 0 of abs at 0, is a dot. With
    a pole the axis shows the range of most of the curve. If the sizes of the two curves differ much, the derivative has
    its own axis on the right.

    Args:
        f: takes a Value and returns one, or a plain number. The gradients of other Values that it uses are not changed.
        low: the left end.
        high: the right end.
        axes: the axes to draw on; None makes new ones.

    Raises:
        ArgumentError: low and high are not finite numbers with low < high, or f has no finite value there.
        OperandError: f takes a Value and does not return one.
        MissingExtraError: matplotlib is not installed.
    """
    if not (isfinite(low) and isfinite(high) and low < high and isfinite(high - low)):
        raise ArgumentError(f"low is {low!r} and high is {high!r}; expected two finite numbers, the smaller one first")
    points, torn, most = _sample(f, float(low), float(high))
    if not any(isfinite(p.value) for p in points):
        raise ArgumentError(f"{_name(f)} has no finite value from {low!r} to {high!r}: there is nothing to draw")
    axes = axes_for(axes, (6.4, 4.2))
    values = _window([p.value for p in points], most[0], torn[0])
    slopes = _window([p.slope for p in points], most[1], torn[1])
    extents = sorted(top - bottom for bottom, top in (values, slopes))
    apart = extents[1] > APART * extents[0] > 0.0
    other = axes.twinx() if apart else axes
    together = (min(values[0], slopes[0]), max(values[1], slopes[1]))
    axes.axhline(0.0, color=PALE, linewidth=0.8, zorder=0)
    lines = _curve(axes, [p[:2] for p in points], torn[0], BLUE, "-", f"{_name(f)}(x)")
    lines += _curve(other, [(p.x, p.slope) for p in points], torn[1], VERMILION, "--", "its derivative, by backward()")
    for side, (bottom, top) in ((axes, values if apart else together), (other, slopes if apart else together)):
        room = 0.06 * (top - bottom) or 1.0
        side.set(xlim=(low, high), ylim=(bottom - room, top + room))
        quiet(side)
    if apart:
        other.spines["right"].set_visible(True)
        axes.set_ylabel(f"{_name(f)}(x)", color=BLUE)
        other.set_ylabel("derivative", color=VERMILION)
    axes.set_xlabel("x", color=INK)
    axes.locator_params(axis="x", nbins=7)
    above = (0.0, 1.06 if apart else 1.0)  # an axis of large numbers has its power of ten there
    axes.legend(handles=lines, loc="lower left", bbox_to_anchor=above, ncols=2, frameon=False, borderaxespad=0.2)
    return axes


def _name(f: Callable[[Any], Any]) -> str:
    name = getattr(f, "__name__", "f")
    return name if name.isidentifier() else "f"  # instead of <lambda>


def _at(f: Callable[[Any], Any], both: Callable[[float], Any], x: float) -> _Point:
    """Compute value and derivative at x, without reading or writing the `grad` of other nodes."""
    if takes_floats(f):  # served by a program
        with modes.no_grad():
            return _Point(x, *both(x))
    leaf = Value(x)
    y = called(f, (leaf,), {}, lambda: (leaf,))
    if not isinstance(y, Value):
        what = "expected a function that computes one Value with + - * / ** and the functions of wengert"
        raise OperandError(f"{_name(f)}(Value({x!r})) is {y!r:.60}; {what}")
    graph = Graph(y)
    slopes = zip(graph.values, graph.pull_back({graph.outputs[0]: 1.0}), strict=True)
    return _Point(x, y.data, next((slope for value, slope in slopes if value is leaf), 0.0))


def _sample(f: Callable[[Any], Any], low: float, high: float) -> tuple[list[_Point], list[set[float]], list[_Range]]:
    """Return points of the curves, the x after which value and derivative have a gap, and the range of most points.

    An interval is halved if its middle is not on the line between its ends, breadth first, until the curve looks
    straight or the interval is very small.
    """
    both = derivatives.grad.value_and_grad(f)
    points = [_at(f, both, low + (high - low) * i / STEPS) for i in range(STEPS + 1)]
    most = [_fence(p[k] for p in points) for k in (1, 2)]
    torn: list[set[float]] = [set(), set()]
    rest = deque(pairwise(points))
    while rest and len(points) < MOST:
        a, b = rest.popleft()
        middle = _at(f, both, (a.x + b.x) / 2)
        bent = [not _straight(a[k], middle[k], b[k], *most[k - 1]) for k in (1, 2)]
        if b.x - a.x > FINEST * (high - low):
            points.append(middle)
            if any(bent):
                rest += [(a, middle), (middle, b)]
        else:
            for places, is_torn in zip(torn, bent, strict=True):
                if is_torn:
                    places.add(a.x)
    return sorted(points), torn, most


def _straight(a: float, middle: float, b: float, bottom: float, top: float) -> bool:
    """Return True if the middle is on the line from a to b, as far as can be seen between bottom and top."""
    if isnan(a) or isnan(b) or isnan(middle):
        return isnan(a) and isnan(b) and isnan(middle)
    room = top - bottom
    a, middle, b = (min(max(y, bottom - room), top + room) for y in (a, middle, b))
    return abs(middle - (a + b) / 2) <= STRAIGHT * room


def _fence(numbers: Iterable[float]) -> _Range:
    """Return the range of most numbers: the quartiles, and three times their distance on both sides (Tukey 1977)."""
    known = sorted(y for y in numbers if isfinite(y))
    if not known:
        return 0.0, 1.0
    first, third = known[len(known) // 4], known[3 * len(known) // 4]
    room = 3.0 * (third - first) or (known[-1] - known[0]) / 2 or 1.0
    return max(first - room, known[0]), min(third + room, known[-1])


def _window(numbers: list[float], most: _Range, torn: set[float]) -> _Range:
    """Return the range of the axis: the whole curve, or most of it if it goes to infinity."""
    known = [y for y in numbers if isfinite(y)] or [0.0]
    whole = max(known) - min(known)
    endless = inf in numbers or -inf in numbers or whole > (POLE if torn else STEEP) * (most[1] - most[0])
    return most if endless else (min(known), max(known))


def _curve(axes: Any, curve: list[tuple[float, float]], torn: set[float], colour: str, style: str, name: str) -> Any:
    """Draw the pieces of a curve as one line with gaps; a piece of one point is a dot."""
    xs: list[float] = []
    ys: list[float] = []
    for x, y in curve:
        xs.append(x)
        ys.append(y if isfinite(y) else nan)
        if x in torn:
            xs.append(x)
            ys.append(nan)
    lines = axes.plot(xs, ys, style, color=colour, label=name, linewidth=1.8)
    framed = [nan, *ys, nan]
    alone = [i for i, y in enumerate(ys) if isfinite(y) and isnan(framed[i]) and isnan(framed[i + 2])]
    if alone:
        axes.plot([xs[i] for i in alone], [ys[i] for i in alone], "o", color=colour, markersize=5)
    return lines
