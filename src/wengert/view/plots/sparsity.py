"""Draws the pattern of a sparse matrix: a spy plot, with the colours of a colouring."""

from __future__ import annotations

from typing import Any

from wengert.errors import LengthError, require
from wengert.view.plots.base import BLUE, CLASSES, INK, PALE, axes_for, quiet

__all__ = ["plot_sparsity"]

SIDE = 0.86  # of a square, whose neighbours have a distance of 1, in matrices with few enough to see the gaps


def plot_sparsity(pattern: Any, colors: Any = None, axes: Any = None) -> Any:
    """Draw the nonzeros of a matrix as squares, row 0 on top.

    Args:
        pattern: a matrix, dense or of `scipy.sparse`, such as `wengert.sparsity(f)(x)`.
        colors: the group of each column, as a list of ints, or a colouring of `wengert.derivatives.coloring`: then the
            squares that one product gives have one colour. After seven groups the colours repeat.
        axes: the axes to draw on; None makes new ones.

    Raises:
        LengthError: there are more or fewer groups than columns.
        MissingExtraError: matplotlib is not installed.
    """
    np = require("numpy", "array")
    collections = require("matplotlib.collections", "plot")
    height, width = pattern.shape
    dense = pattern if isinstance(pattern, np.ndarray) else pattern.tocoo()
    rows, columns = np.nonzero(pattern) if dense is pattern else (dense.row, dense.col)
    order = np.lexsort((columns, rows))
    rows, columns = rows[order], columns[order]
    if colors is None:
        groups, count = None, 0
    elif hasattr(colors, "direction"):
        groups, count = colors.direction, len(colors)
    else:
        if len(colors) != width:
            raise LengthError(f"there are {len(colors)} groups and {width} columns: expected one for each")
        groups = np.asarray(colors)[columns]
        count = len(np.unique(colors))
    side = SIDE if max(height, width) <= 100 else 1.0
    corners = np.array([(-0.5, -0.5), (0.5, -0.5), (0.5, 0.5), (-0.5, 0.5)]) * side
    squares = np.stack([columns, rows], 1)[:, None] + corners
    paint: Any = BLUE if groups is None else [CLASSES[group % len(CLASSES)] for group in groups.tolist()]
    axes = axes_for(axes, (4.8, 4.8 * min(max(height / max(width, 1), 0.3), 2.0) + 0.5))
    edge = "face" if side == 1.0 else "none"  # else squares of less than a pixel vanish
    axes.add_collection(collections.PolyCollection(squares, facecolors=paint, edgecolors=edge, linewidths=0.6))
    axes.set(xlim=(-0.5, width - 0.5), ylim=(height - 0.5, -0.5), aspect="equal")
    quiet(axes)
    for spine in axes.spines.values():
        spine.set(visible=True, color=PALE)
    for axis in (axes.xaxis, axes.yaxis):
        axis.get_major_locator().set_params(integer=True)
    told = f"{height:,} × {width:,}, {len(rows):,} nonzero"
    axes.set_title(told + (f", {count} colors" if count else ""), loc="left", fontsize=10, color=INK)
    return axes
