"""Colours the rows and columns of a sparse matrix, so that few products with vectors give all of its entries.

Columns that share no row may be added: in the sum each entry is still alone in its row (Curtis, Powell and Reid 1974).
To find few such groups is to colour a graph (Coleman and Moré 1983), and a symmetric matrix takes fewer, because each
entry is there twice (Coleman and Moré 1984). Gebremedhin, Manne and Pothen 2005, "What color is your Jacobian?", has
the algorithms. All of them are greedy. Each tries two orders, that of the matrix, which is best for a band, and that of
the largest degree first, and the result is the one with fewer colours.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np

__all__ = ["Coloring", "Pattern", "color_columns", "color_rows", "distinct", "star_coloring", "two_sided"]

Ints = np.ndarray[Any, np.dtype[np.int64]]
CUTS = 4  # the most ways to share the rows between both kinds of products that `two_sided` tries


@dataclass(frozen=True, eq=False)
class Pattern:
    """The places of a matrix's nonzeros: row i has the columns ``indices[indptr[i]:indptr[i + 1]]``."""

    indptr: Ints
    indices: Ints  # ascending within a row
    columns: int

    @classmethod
    def of(cls, rows: Ints, columns: Ints, shape: tuple[int, int]) -> Pattern:
        """Make a pattern of places in any order, with repetitions.

        >>> Pattern.of(np.array([1, 0, 1]), np.array([2, 0, 2]), (2, 3))
        Pattern(indptr=array([0, 1, 2]), indices=array([0, 2]), columns=3)
        """
        return cls.of_codes(distinct(rows * np.int64(max(shape[1], 1)) + columns), shape)

    @classmethod
    def of_codes(cls, codes: Ints, shape: tuple[int, int]) -> Pattern:
        """Make a pattern of the ascending numbers ``row * columns + column``."""
        rows, indices = np.divmod(codes, max(shape[1], 1))
        return cls(np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=shape[0]))]), indices, shape[1])

    def __eq__(self, other: object) -> bool:
        """Return True for a pattern of the same places in a matrix of the same shape."""
        if not isinstance(other, Pattern) or self.shape != other.shape:
            return False
        return np.array_equal(self.indptr, other.indptr) and np.array_equal(self.indices, other.indices)

    __hash__: ClassVar[None] = None  # type: ignore[assignment]  # of all places, it would take long

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers of rows and columns."""
        return len(self.indptr) - 1, self.columns

    @property
    def rows(self) -> Ints:
        """The row of each nonzero."""
        return np.repeat(np.arange(len(self.indptr) - 1), np.diff(self.indptr))

    @property
    def transposed(self) -> Pattern:
        """The pattern of the transposed matrix."""
        order = np.argsort(self.indices, kind="stable")
        counts = np.bincount(self.indices, minlength=self.columns)
        return Pattern(np.concatenate([[0], np.cumsum(counts)]), self.rows[order], len(self.indptr) - 1)

    @property
    def codes(self) -> Ints:
        """The ascending numbers ``row * columns + column``."""
        return self.rows * self.columns + self.indices

    @property
    def symmetric(self) -> Pattern:
        """The pattern without the nonzeros that the transposed matrix does not have."""
        return self.keep(np.isin(self.codes, self.transposed.codes, assume_unique=True))

    def lists(self) -> list[list[int]]:
        """Return the columns of each row."""
        columns = self.indices.tolist()
        return [columns[start:end] for start, end in pairwise(self.indptr.tolist())]

    def keep(self, chosen: Any) -> Pattern:
        """Return the pattern with only the chosen nonzeros, by a bool for each."""
        kept = np.concatenate([[0], np.cumsum(chosen)])[self.indptr]
        return Pattern(kept, self.indices[chosen], self.columns)


def distinct(codes: Ints) -> Ints:
    """Return the different ones among codes from 0 on, in order: `np.unique`, which hashes, takes 20 times as long."""
    codes = np.sort(codes)
    return codes[np.diff(codes, prepend=-1) > 0]


@dataclass(frozen=True, eq=False)
class Coloring:
    """A colouring, and where each nonzero is read.

    Attributes:
        columns: the colour of each column; -1 for those that no product needs.
        rows: the colour of each row, likewise. Only `color_rows` and `two_sided` colour rows.
        direction: for each nonzero the number of the product: first those of the colours of columns, J times the sum of
            the columns' unit vectors, then those of the colours of rows, the sum of the rows' unit vectors times J.
        place: for each nonzero its place in that product: a row, or a column.
    """

    columns: Ints
    rows: Ints
    direction: Ints
    place: Ints

    @property
    def counts(self) -> tuple[int, int]:
        """The numbers of colours: of the columns, and of the rows."""
        return int(self.columns.max(initial=-1)) + 1, int(self.rows.max(initial=-1)) + 1

    def __len__(self) -> int:
        """The number of products."""
        return sum(self.counts)

    def seeds(self) -> tuple[Any, Any]:
        """Return the directions: (columns, colours), for products with J from the right, and (colours, rows)."""
        right, left = self.counts
        return (
            (self.columns[:, None] == np.arange(right)).astype(float),
            (self.rows == np.arange(left)[:, None]).astype(float),
        )

    def recover(self, right: Any, left: Any = None) -> Any:
        """Return the nonzeros from the products: ``J @ seeds()[0]`` and ``seeds()[1] @ J``.

        >>> arrow = np.diag([1.0, 2.0, 3.0, 4.0])
        >>> arrow[3, :3] = arrow[:3, 3] = 5.0
        >>> colors = two_sided(Pattern.of(*np.nonzero(arrow), arrow.shape))
        >>> right, left = colors.seeds()
        >>> colors.counts, colors.recover(arrow @ right, left @ arrow)
        ((2, 1), array([1., 5., 2., 5., 3., 5., 5., 5., 5., 4.]))
        """
        count, nonzeros = self.counts[0], np.empty(len(self.place))
        by_column = self.direction < count
        nonzeros[by_column] = right[self.place[by_column], self.direction[by_column]]
        if not by_column.all():
            nonzeros[~by_column] = left[self.direction[~by_column] - count, self.place[~by_column]]
        return nonzeros


def color_columns(pattern: Pattern) -> Coloring:
    """Colour the columns so that those of one colour share no row: distance-2 colouring of the bipartite graph.

    >>> band = abs(np.subtract.outer(np.arange(9), np.arange(9))) < 2
    >>> color_columns(Pattern.of(*np.nonzero(band), band.shape)).columns
    array([0, 1, 2, 0, 1, 2, 0, 1, 2])
    """
    columns = _colors_of_columns(pattern)
    return Coloring(columns, np.full(len(pattern.indptr) - 1, -1), columns[pattern.indices], pattern.rows)


def color_rows(pattern: Pattern) -> Coloring:
    """Colour the rows so that those of one colour share no column."""
    rows = _colors_of_columns(pattern.transposed)
    return Coloring(np.full(pattern.columns, -1), rows, rows[pattern.rows], pattern.indices)


def star_coloring(pattern: Pattern) -> Coloring:
    """Colour the columns of a symmetric matrix so that each entry, or the equal one across the diagonal, is alone.

    Neighbours differ, and each path on four vertices has at least three colours: two colours form stars, and the entry
    of an edge is read at its end that is no centre.

    >>> tridiagonal = abs(np.subtract.outer(np.arange(100), np.arange(100))) < 2
    >>> len(star_coloring(Pattern.of(*np.nonzero(tridiagonal), tridiagonal.shape)))
    3
    """
    rows, columns, size = pattern.rows, pattern.indices, pattern.columns
    edges = pattern.keep(rows != columns)
    neighbors = edges.lists()
    degrees = np.diff(edges.indptr)
    colors = _fewer(degrees, np.diff(pattern.indptr) > 0, lambda order: _stars(neighbors, order))
    count = int(colors.max(initial=-1)) + 1
    codes = rows * count + colors[columns]
    alone = np.bincount(codes, minlength=size * count)[codes] == 1  # in the product of the column's colour
    direction, place = np.where(alone, colors[columns], colors[rows]), np.where(alone, rows, columns)
    return Coloring(colors, np.full(size, -1), direction, place)


def two_sided(pattern: Pattern) -> Coloring:
    """Colour rows and columns, where that takes fewer products: for a few full rows among many sparse ones.

    The nonzeros of the fullest rows, or of the fullest columns, are read from products of their own side, and all
    others from products of the other side (Hossain and Steihaug 1998, Coleman and Verma 1998).
    """
    rows, transposed = pattern.rows, pattern.transposed
    best = min(color_columns(pattern), color_rows(pattern), key=len)
    for across, own, is_row in ((rows, pattern, True), (pattern.indices, transposed, False)):
        lengths = np.diff(own.indptr)
        for bound, limit in _cuts(own, lengths, len(best)):
            if bound >= len(best):
                break
            by_row = (lengths[across] > limit) == is_row
            right, left = color_columns(pattern.keep(~by_row)), color_rows(pattern.keep(by_row))
            if len(right) + len(left) < len(best):
                direction = np.where(by_row, len(right) + left.rows[rows], right.columns[pattern.indices])
                place = np.where(by_row, pattern.indices, rows)
                best = Coloring(right.columns, left.rows, direction, place)
    return best


def _cuts(own: Pattern, lengths: Ints, fewest: int) -> list[tuple[int, int]]:
    """Return the lengths beyond which rows may count as full, after a lower bound for the colours that they lead to.

    The sparse rows take at least as many colours of columns as the longest of them has nonzeros, and the full ones at
    least as many colours of rows as one column has nonzeros in them.
    """
    own_lengths, distinct = np.repeat(lengths, lengths), np.unique(lengths)[::-1]
    full, cuts = np.zeros(own.columns, np.int64), []
    for length, limit in pairwise(distinct.tolist()):
        full += np.bincount(own.indices[own_lengths == length], minlength=own.columns)
        if full.max(initial=0) >= fewest:
            break
        cuts.append((int(full.max(initial=0)) + limit, limit))
    return sorted(cuts)[:CUTS]


def _colors_of_columns(pattern: Pattern) -> Ints:
    counts, transposed = np.diff(pattern.indptr), pattern.transposed
    within = transposed.lists()
    degrees = np.bincount(pattern.indices, counts[pattern.rows], pattern.columns)  # at least the number of neighbours

    def colored(order: list[int]) -> list[int]:
        used, colors = [0] * len(counts), [-1] * len(within)  # the colours of a row's columns, as bits
        for column in order:
            taken = 0
            for row in within[column]:
                taken |= used[row]
            free = ~taken & (taken + 1)
            for row in within[column]:
                used[row] |= free
            colors[column] = free.bit_length() - 1
        return colors

    return _fewer(degrees, np.diff(transposed.indptr) > 0, colored)


def _fewer(degrees: Any, needed: Any, colored: Callable[[list[int]], list[int]]) -> Ints:
    """Colour what is needed in two orders, and return the colours of the better one."""
    own = np.flatnonzero(needed)
    first = np.array(colored(own.tolist()), np.int64)
    if len(own) and (degrees[own] != degrees[own[0]]).any():
        other = np.array(colored(own[np.argsort(-degrees[own], kind="stable")].tolist()), np.int64)
        return other if other.max() < first.max() else first
    return first


def _stars(neighbors: Sequence[Sequence[int]], order: Sequence[int]) -> list[int]:
    """Give each vertex in turn the first colour that closes no path on four vertices with two colours.

    A vertex is a centre of a colour if two of its neighbours have it. Sets of colours are the bits of integers.
    """
    count = len(neighbors)
    colors = [-1] * count
    around = [0] * count  # the colours of a vertex's neighbours,
    twice = [0] * count  # those that it is a centre of,
    centers = [0] * count  # and the colours of the centres that it is a point of
    for vertex in order:
        near = neighbors[vertex]
        taken, doubled = around[vertex], twice[vertex]
        for other in near:
            if colors[other] >= 0:
                taken |= centers[other]
                if doubled >> colors[other] & 1:
                    taken |= around[other]
        free = ~taken & (taken + 1)
        color = colors[vertex] = free.bit_length() - 1
        for other in near:
            if around[other] & free:
                own = colors[other]
                if not twice[other] & free:
                    twice[other] |= free
                    if own >= 0:
                        for point in neighbors[other]:
                            if colors[point] == color:
                                centers[point] |= 1 << own
                elif own >= 0:
                    centers[vertex] |= 1 << own
            around[other] |= free
            if colors[other] >= 0 and doubled >> colors[other] & 1:  # the vertex is its centre
                centers[other] |= free
    return colors
