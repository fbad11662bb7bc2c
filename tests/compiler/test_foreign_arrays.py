"""Arrays that are more than their numbers, or are changed during a call: nothing is read that is not theirs."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

import wengert
from tests.compiler.checks import batch_of, same, warned
from wengert import Value
from wengert.compiler.backends import BACKENDS
from wengert.errors import DataError

np = pytest.importorskip("numpy")

pytestmark = pytest.mark.once  # what is recorded and lifted does not depend on which engine runs

W = Value(0.5)
AVAILABLE = [name for name in ("auto", "numpy", "native") if name == "auto" or BACKENDS[name].is_available()]


class Longer(np.ndarray):  # type: ignore[misc]
    """An array that says it is longer than it is."""

    def __len__(self) -> int:
        return 1_000_000


def product(x: Any, y: Any) -> Any:
    return W * x * y


def total(xs: Any) -> Any:
    return W * xs[0] + xs[1]


@pytest.mark.parametrize("backend", AVAILABLE)
@pytest.mark.parametrize("how", ["map", "mean", "sum"])
def test_the_length_of_an_array_is_its_shape(how: str, backend: str) -> None:
    compiled = wengert.compile(product, backend=backend)
    X, Y = np.linspace(0.0, 1.0, 5), np.linspace(1.0, 2.0, 5)
    for _ in range(6):
        getattr(compiled, how)(X, Y)
    want = [product(x, y).data for x, y in zip(X, Y, strict=True)]
    made: list[Any] = []
    said = warned(*[lambda: made.append(getattr(compiled, how)(X.view(Longer), Y))] * 6)
    assert len(said) == 1
    assert "runs uncompiled: an argument holds a tests.Longer, which is more than its numbers: pass a plain" in said[0]
    for got in made:
        assert (
            got == pytest.approx(want)
            if how == "map"
            else got.data == pytest.approx(sum(want) / (5 if how == "mean" else 1))
        )
    same(compiled.mean(X, Y), batch_of(product, X.tolist(), Y.tolist()), [W])  # plain ones are compiled as before


@pytest.mark.filterwarnings("ignore:.*runs uncompiled")
def test_arrays_of_different_lengths_whatever_they_say() -> None:
    compiled = wengert.compile(product)
    for X, Y in ((np.ones(3).view(Longer), np.ones(5)), (np.ones(3).view(Longer), np.ones(5).view(Longer))):
        with pytest.raises(DataError, match="differ in the number of examples"):
            compiled.map(X, Y)


@pytest.mark.filterwarnings("ignore:.*runs uncompiled")
@pytest.mark.parametrize("backend", AVAILABLE)
def test_masks_are_not_dropped(backend: str) -> None:
    """The function gets the array as it is, in a call and in each row."""
    seen: list[Any] = []

    def f(xs: Any) -> Any:
        seen.append(xs)
        return W * float(xs.sum())

    rows = np.ma.array([[1.0, 2.0], [3.0, 4.0]], mask=[[False, True], [False, False]])
    compiled = wengert.compile(f, backend=backend)
    for _ in range(6):
        assert compiled(rows[0]).data == 0.5
        assert compiled.map(rows).tolist() == [0.5, 3.5]
        assert compiled.map([rows[0], rows[1]]).tolist() == [0.5, 3.5]
        assert compiled.mean(rows).data == 2.0
    assert all(isinstance(xs, np.ma.MaskedArray) for xs in seen)


def test_a_masked_array_that_is_read_outside() -> None:
    masked = np.ma.array([1.0, 2.0], mask=[False, True])
    compiled = wengert.compile(lambda x: W * x * float(masked.sum()))
    said = warned(*[lambda: same(compiled(2.0), compiled.function(2.0), [W])] * 4)
    assert len(said) == 1
    assert "reads masked, a MaskedArray, which is more than its numbers" in said[0]
    masked[0] = 5.0
    same(compiled(2.0), compiled.function(2.0), [W])


@pytest.mark.filterwarnings("ignore:.*runs uncompiled", "ignore:the matrix subclass")
def test_a_matrix_is_indexed_as_a_matrix() -> None:
    matrix = np.matrix([[1.0, 2.0], [3.0, 4.0]])  # of which a row is a matrix
    compiled = wengert.compile(lambda m: W * m[0].sum() + m[1].shape[0])
    for _ in range(4):
        same(compiled(matrix), compiled.function(matrix), [W])


def test_an_array_on_disk_is_an_array(tmp_path: Path) -> None:
    X = np.memmap(tmp_path / "numbers", float, "w+", shape=(6, 2))
    X[:] = np.arange(12.0).reshape(6, 2)
    compiled = wengert.compile(total)
    for _ in range(6):
        same(compiled.mean(X), batch_of(total, np.asarray(X).tolist()), [W])
        same(compiled(X[1]), total([2.0, 3.0]), [W])
    assert "uncompiled" not in compiled.report()


@pytest.mark.filterwarnings("ignore:.*runs uncompiled", "ignore:.*is dropped")  # as the arrays do change
@pytest.mark.parametrize("backend", AVAILABLE)
def test_threads_that_resize_what_is_passed(backend: str) -> None:
    """A call comes to numbers that were there, or raises; it never reads what is not the array's."""
    compiled = wengert.compile(total, backend=backend)
    X: Any = np.ones((64, 2)).copy()
    rows: list[list[float]] = [[1.0, 1.0] for _ in range(64)]
    for _ in range(6):
        compiled.map(X)
        compiled.map(rows)
    stop = threading.Event()

    def change() -> None:
        while not stop.is_set():
            for count in (64, 2000, 1, 0, 64):
                X.resize((count, 2), refcheck=False)
                X[:] = 1.0
                del rows[count:]
                rows.extend([1.0, 1.0] for _ in range(count - len(rows)))

    thread = threading.Thread(target=change)
    thread.start()
    try:
        for _ in range(300):
            for given in (rows,) if backend == "numpy" else (X, rows):  # NumPy reads X while other threads run
                try:
                    made = compiled.map(given)
                except (DataError, IndexError, ValueError, wengert.errors.ArgumentError):
                    continue
                assert set(np.unique(made)) <= {0.0, 0.5, 1.0, 1.5}
    finally:
        stop.set()
        thread.join()
