"""Plots the results of training: the loss per epoch, decision boundaries, images of digits, confusion tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import nan
from typing import TYPE_CHECKING, Any

from wengert.errors import ArgumentError, DataError, LengthError, counted, require
from wengert.modes import no_grad
from wengert.view.plots.base import BLUE, CLASSES, INK, PALE, VERMILION, axes_for, quiet
from wengert.view.text import bounds

if TYPE_CHECKING:
    from typing import Protocol

    class Curves(Protocol):
        """The attributes of a History that are drawn."""

        loss: list[float]
        val_loss: list[float]
        accuracy: list[float]
        val_accuracy: list[float]

        def written(self, curve: str, epoch: int = -1) -> str: ...
        def is_fraction(self, curve: str) -> bool: ...


__all__ = ["plot_confusion", "plot_decision_boundary", "plot_digits", "plot_history"]

Point = Sequence[float]
MARGIN, WASH = 0.15, 0.22  # the margin around the points, as a fraction of their extent; the opacity of the regions
EVEN = 4.0  # up to this ratio of width and height, a plane is drawn to scale
_CELLS, _FINER = 60, 5  # the cells of the coarse grid in each direction; those of the fine grid in a coarse cell


def plot_history(history: Curves, axes: Any = None) -> Any:
    """Plot the loss per epoch, also of the validation data; the accuracy, if there is one, has an axis on the right.

    Raises:
        ArgumentError: it is not a History.
        MissingExtraError: matplotlib is not installed.
    """
    if not hasattr(history, "val_loss"):
        raise ArgumentError(f"{history!r:.40} is not a History; for a list of losses: plot_history(History(losses))")
    axes = axes_for(axes, (7, 4.2))
    lines = _curves(axes, {"training loss": history.loss, "validation loss": history.val_loss}, BLUE)
    axes.set(xlabel="epoch", xlim=(0, None), ylim=(0, None))
    axes.set_ylabel("loss", color=BLUE)
    axes.xaxis.get_major_locator().set_params(integer=True)
    quiet(axes)
    if history.accuracy or history.val_accuracy:
        right = axes.twinx()
        percent = history.is_fraction("accuracy") and history.is_fraction("val_accuracy")
        scale, name = (100.0, "accuracy") if percent else (1.0, "metric")
        shares = {f"training {name}": history.accuracy, f"validation {name}": history.val_accuracy}
        lines += _curves(right, {name: [scale * x for x in curve] for name, curve in shares.items()}, VERMILION)
        right.set_ylabel("accuracy, %" if percent else name, color=VERMILION)
        if percent:
            right.set(ylim=(0.0, 102.0))
        quiet(right)
    if lines:  # above, where no curve comes
        axes.legend(handles=lines, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=2, frameon=False)
    return axes


def plot_digits(
    images: Sequence[Point], labels: Sequence[int], predictions: Sequence[int], axes: Any = None, *, across: int = 20
) -> Any:
    """Plot 8 x 8 images with their predictions, `across` in a row; mistakes have a frame and the true label.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    count = len(images)
    across = min(count, across) or 1
    down = -(-count // across) or 1
    axes = axes_for(axes, (0.62 * across, 0.62 * 1.3 * down + 0.3))
    patches = require("matplotlib.patches", "plot")
    pixels = [[nan] * (10 * across) for _ in range(13 * down)]  # one image is faster than one for each digit
    for place, (image, label, prediction) in enumerate(zip(images, labels, predictions, strict=True)):
        x, y = 10 * (place % across), 13 * (place // across)
        for i in range(8):
            pixels[y + i][x : x + 8] = image[8 * i : 8 * i + 8]
        right = prediction == label
        text = f"{prediction}" if right else f"{prediction}, not {label}"
        axes.text(x + 4, y + 8.6, text, ha="center", va="top", fontsize=9, color=INK if right else VERMILION)
        if not right:
            frame = patches.Rectangle((x - 0.6, y - 0.6), 9.2, 12.2, fill=False, edgecolor=VERMILION, linewidth=1.4)
            axes.add_patch(frame)
    axes.imshow(pixels, cmap="Greys", vmin=0, vmax=1, extent=(0, 10 * across, 13 * down, 0))
    wrong = sum(label != prediction for label, prediction in zip(labels, predictions, strict=True))
    axes.set_title(f"{counted(count, 'digit')}, {wrong} read wrongly", fontsize=10, color=INK, loc="left")
    axes.set(xlim=(-1.5, 10 * across - 0.5), ylim=(13 * down - 0.5, -1.5), aspect="equal")
    axes.axis("off")
    return axes


def plot_confusion(table: Sequence[Sequence[int]], axes: Any = None) -> Any:
    """Plot a confusion table, ``table[truth][prediction]``: correct predictions in blue, mistakes in vermilion.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    axes = axes_for(axes, (5.6, 5.4))
    patches = require("matplotlib.patches", "plot")
    most = max(max(row) for row in table) or 1
    mistakes = max([count for i, row in enumerate(table) for j, count in enumerate(row) if i != j], default=0) or 1
    for i, row in enumerate(table):
        for j, count in enumerate(row):
            strength = 0.75 * count / most if i == j else 0.25 + 0.5 * count / mistakes if count else 0.0
            box = patches.Rectangle((j - 0.5, i - 0.5), 1, 1, color=BLUE if i == j else VERMILION, alpha=strength, lw=0)
            axes.add_patch(box)
            axes.text(j, i, count or "·", ha="center", va="center", color=INK if count else PALE, fontsize=9)
    size = len(table)
    axes.set(xlim=(-0.5, size - 0.5), ylim=(size - 0.5, -0.5), aspect="equal", xticks=range(size), yticks=range(size))
    axes.set(xlabel="read as", ylabel="truth")
    axes.tick_params(length=0)
    quiet(axes)
    return axes


def plot_decision_boundary(
    model: Callable[..., Any], X: Sequence[Point], Y: Sequence[int], axes: Any = None, *, cut: float | None = None
) -> Any:
    """Plot the decision boundary of a classifier: the predicted class in the plane, and the points with their classes.

    Of two classes the higher is blue and the lower vermilion, as positive and negative weights are in `plot_network`.

    Args:
        model: a model with parameters that is called with one point [x, y], or a function that returns the classes of a
            list of points.
        X: the points.
        Y: their classes. If a model has several outputs, the index of the greatest is the class; if it has one, the
            class is the number in Y closest to it, as for hinge with -1 and 1, or a probability with 0 and 1.
        axes: the axes to draw on; None makes new ones.
        cut: a threshold for a single output, above which the class is the higher one: 0.0 for logits with 0 and 1.

    Raises:
        DataError: there are no points.
        LengthError: X and Y differ in length.
        MissingExtraError: matplotlib is not installed.
    """
    paired(X, Y)
    axes = axes_for(axes, plane_size(X))
    colours = require("matplotlib.colors", "plot")
    left, right, low, high = bounds(X, MARGIN)
    order = sorted(set(Y))

    def classify(points: list[Point]) -> list[int]:
        with no_grad():
            return [class_of(model(point), order, cut) for point in points]

    classes = _grid(classify if hasattr(model, "parameters") else model, left, right, low, high)
    paint = {c: colours.to_rgba(_colour(order, c), WASH) for c in {c for row in classes for c in row}}
    picture = [[paint[c] for c in row] for row in classes]
    even = 1 / EVEN <= (high - low) / (right - left) <= EVEN
    aspect = "equal" if even else "auto"  # features of similar size have the same scale
    axes.imshow(picture, extent=(left, right, low, high), origin="lower", interpolation="bilinear", aspect=aspect)
    for label in order:
        points = [x for x, y in zip(X, Y, strict=True) if y == label]
        xs, ys = [x for x, _ in points], [y for _, y in points]
        axes.scatter(xs, ys, s=26, color=_colour(order, label), edgecolor="white", linewidth=0.7, label=f"{label}")
    axes.legend(title="class", frameon=False, loc="upper left", bbox_to_anchor=(1.01, 1.0))
    axes.set(xlabel="x1", ylabel="x2")
    axes.locator_params(nbins=6)
    quiet(axes)
    return axes


def paired(X: Sequence[Point], Y: Sequence[int]) -> None:
    """Check that there are points, and a class for each.

    Raises:
        DataError: there are no points.
        LengthError: X and Y differ in length.
    """
    if not len(X):
        raise DataError("X is empty: expected at least one point")
    if len(X) != len(Y):
        raise LengthError(f"X has {counted(len(X), 'point')} but Y has {len(Y)}; expected as many of each")


def plane_size(X: Sequence[Point]) -> tuple[float, float]:
    """Return the size in inches of a figure for points of the plane that leaves no room above and below it."""
    left, right, low, high = bounds(X, MARGIN)
    share = (high - low) / (right - left)
    return 5.6, min(max(4.2 * share, 2.4), 5.6) + 0.6 if 1 / EVEN <= share <= EVEN else 4.8


# -- shared helpers ---------------------------------------------------------------------------------------------------


def _curves(axes: Any, curves: dict[str, list[float]], colour: str) -> list[Any]:
    """Draw the curves that are not empty: the first solid, the second dashed."""
    lines = []
    for (name, numbers), style in zip(curves.items(), ("-", "--"), strict=True):
        if numbers:
            epochs = range(1, len(numbers) + 1)
            mark = "o" if len(numbers) < 3 else None
            lines += axes.plot(epochs, numbers, style, color=colour, label=name, marker=mark, linewidth=1.6)
    return lines


def class_of(outputs: Any, order: list[int], cut: float | None) -> int:
    """Return the class that a model's outputs stand for, as `plot_decision_boundary` says."""
    numbers = [float(getattr(x, "data", x)) for x in (outputs if hasattr(outputs, "__len__") else [outputs])]
    if len(numbers) > 1:
        return numbers.index(max(numbers))
    if cut is not None:
        return order[-1] if numbers[0] > cut else order[0]
    return min(order, key=lambda c: abs(c - numbers[0]))


def _grid(
    classify: Callable[[list[Point]], Sequence[int]], left: float, right: float, low: float, high: float
) -> list[list[int]]:
    """Return the class of each cell of a fine grid, by rows from low to high.

    It classifies a coarse grid, and the fine cells only where classes meet; other fine cells have the class of their
    coarse cell.
    """
    dx, dy = (right - left) / _CELLS, (high - low) / _CELLS
    places = [(i, j) for j in range(_CELLS) for i in range(_CELLS)]
    found = classify([(left + dx * (i + 0.5), low + dy * (j + 0.5)) for i, j in places])
    coarse = dict(zip(places, found, strict=True))
    around = [(di, dj) for di in (-1, 0, 1) for dj in (-1, 0, 1)]
    mixed = {
        (i, j)
        for i, j in places
        if any(coarse.get((i + di, j + dj), coarse[i, j]) != coarse[i, j] for di, dj in around)
    }
    across = range(_CELLS * _FINER)
    fine = [(i, j) for j in across for i in across if (i // _FINER, j // _FINER) in mixed]
    centres: list[Point] = [(left + dx * (i + 0.5) / _FINER, low + dy * (j + 0.5) / _FINER) for i, j in fine]
    exact = dict(zip(fine, classify(centres), strict=True)) if fine else {}
    return [[exact.get((i, j), coarse[i // _FINER, j // _FINER]) for i in across] for j in across]


def _colour(order: list[int], label: int) -> str:
    return CLASSES[order.index(label) % len(CLASSES)] if label in order else PALE
