"""Tables of parameters, from which integers choose in a compiled function."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

import wengert
from tests.compiler import models as lifting_models
from tests.compiler.checks import CLOSE, batch_of, difference, lifted, same
from tests.compiler.models import compare, flat, normal, values
from wengert import Value

np = pytest.importorskip("numpy")

pytestmark = pytest.mark.once  # what is recorded and lifted does not depend on which engine runs


def test_embeddings_by_index() -> None:
    generator = random.Random(13)
    rows, head = values(generator, 9, 4), values(generator, 5, 12)

    def loss(context: list[int], target: int) -> Any:
        x = [v for token in context for v in rows[token]]
        p = wengert.softmax([wengert.dot(row, x) for row in head])
        return -p[target].log()

    contexts = np.array([[0, 1, 2], [8, 8, 8], [3, 0, 3], [7, 6, 5], [2, 2, 1]])
    compare(loss, flat([rows, head]), [contexts, np.array([4, 0, 0, 2, 1])], 16)


@pytest.mark.parametrize("read", [lambda rows, i: rows[i], wengert.take], ids=["brackets", "take"])
def test_an_index_out_of_range_is_the_engines_affair(read: Callable[..., Any]) -> None:
    rows = values(random.Random(14), 4, 3)
    compiled = wengert.compile(lambda i, x: wengert.dot(read(rows, i), x))
    X = normal(1, 3, 3)
    compiled(2, X[0].tolist())
    got, want = compiled(-1, X[0].tolist()), wengert.dot(rows[-1], X[0].tolist())
    lifting_models.same(got, want, flat(rows))
    got = compiled.mean(np.array([0, -2, 3]), X)
    lifting_models.same(
        got, wengert.mean([wengert.dot(rows[i], x) for i, x in zip([0, -2, 3], X.tolist(), strict=True)]), flat(rows)
    )
    with pytest.raises(IndexError):
        compiled(4, X[0].tolist())
    with pytest.raises(IndexError):
        compiled.mean(np.array([0, 4, 3]), X)
    lifting_models.same(compiled(1, X[0].tolist()), wengert.dot(rows[1], X[0].tolist()), flat(rows))


def test_two_indices_into_one_table() -> None:
    table = values(random.Random(15), 4, 5)

    def loss(i: int, j: int) -> Any:
        return table[i][j] ** 2 + table[i][0]

    compare(loss, flat(table), [np.array([0, 3, 1, 0]), np.array([4, 2, 0, 0])], 12, None)


def test_bigrams_of_counts() -> None:
    """Log probabilities from a row that an integer chooses, at a place that another chooses."""
    table = values(random.Random(16), 6, 6)

    def loss(here: int, there: int) -> Any:
        return -wengert.log_softmax(table[here])[there]

    compare(loss, flat(table), [np.array([0, 5, 2, 2, 1]), np.array([3, 3, 0, 1, 1])], 14, None)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"])
@pytest.mark.parametrize("count", [3, 4, 8])
def test_indices_of_every_kind_of_integer(kind: str, count: int) -> None:
    rows = [[Value(0.1 * n + m) for n in range(3)] for m in range(4)]
    parameters = [p for row in rows for p in row]
    loss = wengert.compile(lambda i, x: wengert.dot(rows[i], x))
    X = np.random.default_rng(10).normal(size=(count, 3))
    indices = np.array([0, 3, 1, 2, 2, 3, 0, 1][:count], kind)
    for _ in range(2):
        same(loss.mean(indices, X), batch_of(loss.function, indices.tolist(), X.tolist()), parameters)
        same(loss(indices[1], X[1]), loss.function(3, X[1].tolist()), parameters)
    lifted(loss)
    several = wengert.compile(lambda context: sum(rows[t][0] * rows[t][1] for t in context))
    for given in (indices, indices[::-1]):
        same(several(given), several.function(given.tolist()), parameters)
    lifted(several)


def test_indices_that_are_not_contiguous() -> None:
    rows = [[Value(0.1 * n + m) for n in range(3)] for m in range(4)]
    parameters = [p for row in rows for p in row]
    loss = wengert.compile(lambda pair: rows[pair[0]][1] * rows[pair[1]][2])
    pairs = np.array([[0, 9, 3], [1, 9, 2], [3, 9, 3]])[:, ::2]
    same(loss.mean(pairs), batch_of(loss.function, pairs.tolist()), parameters)
    same(loss.mean(pairs.T[:, :2].T), batch_of(loss.function, pairs.tolist()[:2]), parameters)


@pytest.mark.parametrize("indices", [[9, 2, 5, 8, 1, 4], [9, -1, -6, -10, 2, 0]])
def test_tables_of_several_sizes_on_several_paths(indices: list[int]) -> None:
    """An index that one path's table has no row for is of no concern where an example takes another path."""
    large, middle, small = ([Value(0.1 * n + size) for n in range(size)] for size in (10, 6, 3))

    @wengert.compile
    def loss(x: float, i: int) -> Any:
        if x > 1.0:
            return large[i] * x
        return small[i] * x if x < 0.0 else middle[i] * x

    X = [2.0, -1.0, 0.5, 3.0, -2.0, 0.1]
    for _ in range(2):
        same(loss.mean(X, indices), batch_of(loss.function, X, indices), [*large, *middle, *small])
        assert difference(loss.map(X, indices), [loss.function(*e).data for e in zip(X, indices, strict=True)]) < CLOSE
        for x, i in zip(X, indices, strict=True):
            same(loss(x, i), loss.function(x, i), [*large, *middle, *small])


TABLE = values(random.Random(17), 6, 4)


def of_pairs(a: int, b: int) -> Any:
    """Words that stand beside each other."""
    return sum(p * q for p, q in zip(TABLE[a], TABLE[b], strict=True)).tanh()


def of_sums(a: int, b: int) -> Any:
    """Rows of one table, and products of their items."""
    return sum(TABLE[a][j] * 0.5 + TABLE[b][j] * TABLE[a][j] for j in range(4)).tanh()


def of_rows_end_to_end(a: int, b: int) -> Any:
    """A concatenation."""
    return sum(x * x for x in (*TABLE[a], *TABLE[b]))


def of_samples(a: int, b: int) -> Any:
    """A word, one that stands beside it, and others that do not."""
    score = wengert.log(wengert.sigmoid(wengert.dot(TABLE[a], TABLE[b])))
    return -score - sum(wengert.log(wengert.sigmoid(-wengert.dot(TABLE[a], TABLE[k]))) for k in (0, 3))


def of_a_class(a: int, b: int) -> Any:
    """One integer chooses a row, the other which of its products counts."""
    return wengert.losses.cross_entropy([wengert.dot(row, TABLE[a]) for row in TABLE], b)


def of_a_mixture(a: int, b: int) -> Any:
    """Integers choose parameters, and what was computed from others."""
    rows = [[x.tanh() for x in row] for row in TABLE]
    return sum(p * q for p, q in zip(rows[a], TABLE[b], strict=True)) + sum(rows[b])


@pytest.mark.parametrize("loss", [of_pairs, of_sums, of_rows_end_to_end, of_samples, of_a_class, of_a_mixture])
def test_integers_of_two_arguments_choose_from_one_table(loss: Callable[..., Any]) -> None:
    compiled = wengert.compile(loss)
    left, right = [1, 5, 0, 2, 2], [3, 3, 1, 2, 0]
    for a, b in zip(left, right, strict=True):
        same(compiled(a, b), loss(a, b), flat(TABLE))
    same(compiled.mean(left, right), batch_of(loss, left, right), flat(TABLE))
    lifted(compiled)


def test_integers_choose_from_what_lies_at_no_strides() -> None:
    """The labels of a sequence: at each time one number for each label; and the ends of a tree's branches."""

    def sequence(labels: list[int]) -> Any:
        rows = [[x * (t + 1.0) for x in row] for t, row in enumerate(TABLE)]
        paths = [rows[0][labels[0]], Value(-30.0), Value(-30.0)]
        for row in rows[1:]:
            come = zip(paths, [Value(-30.0), *paths], labels, strict=False)
            paths = [wengert.logsumexp([x, y]) + row[label] for x, y, label in come]
        return -paths[-1]

    def uneven(labels: list[int]) -> Any:
        mixed = [TABLE[0][0], TABLE[3][1].tanh(), TABLE[1][2], TABLE[2][2].exp(), TABLE[1][0]]
        return sum(mixed[label] * (n + 1) for n, label in enumerate(labels)) + mixed[labels[2]]

    for loss in (sequence, uneven):
        compiled = wengert.compile(loss)
        rows = [[0, 1, 2], [3, 1, 2], [3, 3, 3], [0, 0, 1]]
        for labels in rows:
            same(compiled(labels), loss(labels), flat(TABLE))
        same(compiled.mean(rows), batch_of(loss, rows), flat(TABLE))
        lifted(compiled)


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_integers_of_a_list_choose_one_way_and_count_another(backend: str) -> None:
    """A list's integers are kept as integers, which a way that computes with them converts."""
    table = [Value(0.1 * n) for n in range(6)]

    def f(places: list[int], k: float) -> Any:
        if k > 0.0:
            return table[places[0]] * k + table[places[1]] * places[0]
        return sum(table[n] * place for n, place in enumerate(places))

    compiled = wengert.compile(f, backend=backend)
    for places, k in [([n % 6, (n * n) % 6], (-1.0) ** n) for n in range(24)] + [([-1, 2], 0.5), ([-6, -5], 0.5)]:
        same(compiled(places, k), f(places, k), table)
    lifted(compiled)


def test_an_integer_chooses_from_a_list_of_one() -> None:
    """It equals another one, so both move together when other integers are tried: but this one cannot."""
    several, one = [Value(1.0), Value(2.0)], [Value(3.0)]

    def f(x: float, i: int, j: int) -> Any:
        total = several[i] * x + one[j]
        return total if i == j else total * 2.0

    compiled = wengert.compile(f)
    for x, i, j in [(1.0, 0, 0), (2.0, 0, 0), (0.5, 1, 0), (1.5, 0, 0), (2.5, 1, 0), (3.0, 1, 0), (3.5, 0, 0)]:
        assert compiled(x, i, j).data == pytest.approx(f(x, i, j).data)


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_a_power_of_integers_of_numpy_is_nan_where_numpy_says_so(backend: str) -> None:
    compiled = wengert.compile(lambda n: n**1.5, backend=backend)
    with np.errstate(invalid="ignore"):
        for n in [3, 2, 5, 7, 4, 3, 6, -2, 9, -3]:
            wanted = np.int64(n) ** 1.5
            assert compiled(np.int64(n)) == pytest.approx(wanted, nan_ok=True)
