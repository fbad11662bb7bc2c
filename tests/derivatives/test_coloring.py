"""Colourings: valid by definition, as few as the known optimum, and read back exactly."""

from __future__ import annotations

from typing import Any

import pytest

np = pytest.importorskip("numpy", reason="needs NumPy")

from wengert.derivatives.coloring import Pattern, color_columns, color_rows, star_coloring, two_sided  # noqa: E402

pytestmark = [pytest.mark.once]  # integers and NumPy: no engine takes part

ALL = (color_columns, color_rows, two_sided)


def pattern_of(matrix: Any) -> Pattern:
    return Pattern.of(*np.nonzero(matrix), np.shape(matrix))


def read_back(matrix: Any, color: Any) -> Any:
    """Colour a matrix, and check that the products give its nonzeros, bit by bit."""
    found = color(pattern_of(matrix))
    right, left = found.seeds()
    assert np.array_equal(found.recover(matrix @ right, left @ matrix), matrix[np.nonzero(matrix)])
    return found


def band(size: int, below: int, above: int) -> Any:
    i, j = np.indices((size, size))
    return ((i - j <= below) & (j - i <= above)).astype(float)


def arrow(size: int) -> Any:
    made = np.eye(size)
    made[-1] = made[:, -1] = 1.0
    return made


def random_matrix(seed: int) -> Any:
    rng = np.random.default_rng(seed)
    rows, columns = rng.integers(1, 15, 2)
    density = rng.choice([0.05, 0.2, 0.5, 1.0])
    full = (rng.random((rows, 1)) < 0.1) | (rng.random((1, columns)) < 0.1)  # some full rows and columns
    return np.where((rng.random((rows, columns)) < density) | full, rng.normal(size=(rows, columns)), 0.0)


@pytest.mark.sampled(10)
@pytest.mark.parametrize("seed", range(200))
def test_random_matrices_are_read_back(seed: int) -> None:
    matrix = random_matrix(seed)
    counts = [len(read_back(matrix, color)) for color in ALL]
    assert counts[2] <= min(counts[:2])
    for colors, own in (
        (color_columns(pattern_of(matrix)).columns, matrix),
        (color_rows(pattern_of(matrix)).rows, matrix.T),
    ):
        for color in range(max(colors.max(initial=-1) + 1, 0)):
            assert ((own[:, colors == color] != 0.0).sum(1) <= 1).all()
        assert ((colors >= 0) == (own != 0.0).any(0)).all()


@pytest.mark.sampled(10)
@pytest.mark.parametrize("seed", range(200))
def test_stars_of_random_symmetric_matrices(seed: int) -> None:
    matrix = random_matrix(seed)
    size = min(matrix.shape)
    matrix = matrix[:size, :size] + matrix[:size, :size].T
    colors = read_back(matrix, star_coloring).columns
    near = [set(np.flatnonzero(row)) - {i} for i, row in enumerate(matrix)]
    for a in range(size):
        for b in near[a]:
            assert colors[a] != colors[b]
            for c in near[b] - {a}:
                for d in near[c] - {a, b}:
                    assert len({colors[a], colors[b], colors[c], colors[d]}) > 2


@pytest.mark.parametrize(
    ("matrix", "color", "fewest"),
    [
        (band(40, 1, 1), color_columns, 3),
        (band(40, 2, 3), color_columns, 6),
        (band(40, 1, 1), star_coloring, 3),
        (band(40, 2, 2), star_coloring, 5),
        (band(40, 3, 3), star_coloring, 7),
        (arrow(40), color_columns, 40),
        (arrow(40), color_rows, 40),
        (arrow(40), two_sided, 3),
        (arrow(40), star_coloring, 2),
        (np.kron(np.eye(8), np.ones((5, 5))), color_columns, 5),
        (np.kron(np.eye(8), np.ones((5, 5))), star_coloring, 5),
        (np.ones((9, 9)), color_columns, 9),
        (np.ones((9, 9)), star_coloring, 9),
        (np.ones((9, 4)), two_sided, 4),
        (np.ones((4, 9)), two_sided, 4),
        (np.vstack([np.eye(30), np.ones((1, 30))]), two_sided, 2),
        (np.vstack([np.eye(30), np.ones((1, 30))]).T, two_sided, 2),
        (np.eye(7), color_columns, 1),
        (np.zeros((5, 6)), color_columns, 0),
        (np.zeros((5, 5)), star_coloring, 0),
        (np.zeros((0, 3)), two_sided, 0),
        (np.zeros((3, 0)), two_sided, 0),
    ],
)
def test_as_few_as_can_be(matrix: Any, color: Any, fewest: int) -> None:
    values = matrix * np.random.default_rng(1).normal(size=matrix.shape)
    values = values + values.T if color is star_coloring else values
    assert len(read_back(values, color)) == fewest


def test_a_band_of_thirty_thousand() -> None:
    size = 30_000
    diagonals = [(np.arange(size - abs(d)) + max(-d, 0), np.arange(size - abs(d)) + max(d, 0)) for d in (-1, 0, 1)]
    pattern = Pattern.of(*(np.concatenate(each) for each in zip(*diagonals, strict=True)), (size, size))
    assert [len(color(pattern)) for color in (color_columns, color_rows, star_coloring, two_sided)] == [3, 3, 3, 3]


def test_a_pattern_and_its_transpose() -> None:
    matrix = random_matrix(3)
    pattern = pattern_of(matrix)
    assert pattern.shape == matrix.shape
    assert np.array_equal(pattern.transposed.transposed.indices, pattern.indices)
    square = matrix[:, : len(matrix)] if len(matrix) < matrix.shape[1] else matrix[: matrix.shape[1]]
    assert np.array_equal(pattern_of(square).symmetric.codes, np.flatnonzero(square * square.T))
    assert [list(x) for x in (pattern.transposed.rows, pattern.transposed.indices)] == [
        list(x) for x in np.nonzero(matrix.T)
    ]


def test_equal_patterns() -> None:
    pattern = Pattern.of(np.array([0, 1]), np.array([2, 0]), (2, 3))
    assert pattern == Pattern.of(np.array([1, 0, 1]), np.array([0, 2, 0]), (2, 3))
    others = [((0, 1), (2, 1), (2, 3)), ((0, 0), (2, 0), (2, 3)), ((0, 1), (2, 0), (2, 4)), ((0, 1), (2, 0), (3, 3))]
    for rows, columns, shape in others:
        assert pattern != Pattern.of(np.array(rows), np.array(columns), shape)
    assert pattern != (pattern.indptr, pattern.indices, pattern.columns)
