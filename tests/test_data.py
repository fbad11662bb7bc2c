"""The data sets: sizes, shapes, where the points lie, reproducibility, and the digits against scikit-learn's facts."""

from __future__ import annotations

import gzip
import math
from collections import Counter
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from wengert import data
from wengert.errors import ArgumentError, DataError, LengthError

pytestmark = pytest.mark.once  # files and random numbers are Python's


def test_moons_without_noise_lie_on_two_half_circles() -> None:
    X, Y = data.moons(101, noise=0.0, labels=(-1, 1))
    assert Counter(Y) == {-1: 50, 1: 51}
    for (x, y), label in zip(X, Y, strict=True):
        if label == -1:
            assert math.hypot(x, y) == pytest.approx(1.0)
            assert y >= -1e-12
        else:
            assert math.hypot(x - 1.0, y - 0.5) == pytest.approx(1.0)
            assert y <= 0.5 + 1e-12


def test_circles_have_their_radii_and_no_point_twice() -> None:
    X, Y = data.circles(60, noise=0.0, factor=0.3, labels=(5, 7))
    assert {(round(math.hypot(*x), 9), y) for x, y in zip(X, Y, strict=True)} == {(1.0, 5), (0.3, 7)}
    assert len({(round(a, 9), round(b, 9)) for a, b in X}) == 60


def test_spiral_winds_its_arms_out_of_the_middle() -> None:
    X, Y = data.spiral(50, classes=4, noise=0.0)
    assert Counter(Y) == {0: 50, 1: 50, 2: 50, 3: 50}
    radii = [math.hypot(*x) for x in X[:50]]
    assert radii == sorted(radii)
    assert radii[-1] == pytest.approx(1.0)
    for (a, b), (c, d) in zip(X[:50], X[50:100], strict=True):  # the second arm is the first, turned by a quarter
        assert (c, d) == pytest.approx((b, -a))


def test_xor() -> None:
    X, Y = data.xor(labels=(-1, 1))
    assert [(int(a) ^ int(b)) * 2 - 1 for a, b in X] == Y


@pytest.mark.parametrize("make", [data.moons, data.circles, data.spiral])
def test_a_seed_decides_the_noise(make: Any) -> None:
    assert make(20, seed=3) == make(20, seed=3)
    assert make(20, seed=3) != make(20, seed=4)
    assert make(20) != make(20)


@pytest.mark.parametrize("make", [data.moons, data.circles])
def test_noise_has_the_standard_deviation_asked_for(make: Any) -> None:
    clean, noisy = make(4000, noise=0.0)[0], make(4000, noise=0.2, seed=1)[0]
    differences = [a - b for x, y in zip(noisy, clean, strict=True) for a, b in zip(x, y, strict=True)]
    assert math.sqrt(sum(d * d for d in differences) / len(differences)) == pytest.approx(0.2, rel=0.05)


def test_digits_are_the_ones_of_the_repository() -> None:
    X, Y = data.digits()
    assert len(X) == len(Y) == 1797
    assert {len(x) for x in X} == {64}
    # The counts that the description of the data set gives (178 zeros, 182 ones, ...), and the sum of all pixels.
    assert [Counter(Y)[digit] for digit in range(10)] == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    assert sum(map(sum, X)) * 16 == 561718
    assert {pixel * 16 for x in X for pixel in x} == set(map(float, range(17)))
    assert [int(16 * pixel) for pixel in X[0][:8]] == [0, 0, 5, 13, 9, 1, 0, 0]


def test_digits_come_with_their_licence() -> None:
    text = resources.files("wengert").joinpath("assets", "digits-LICENSE.txt").read_text(encoding="utf-8")
    assert "CC BY 4.0" in text
    assert "Alpaydin" in text


def test_damaged_digits_are_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "assets").mkdir()
    for content in (b"no gzip", gzip.compress(b"1,2,x\n"), gzip.compress(b"1,2\n")[:-9]):
        (tmp_path / "assets" / "digits.csv.gz").write_bytes(content)
        monkeypatch.setattr(resources, "files", lambda package: tmp_path)
        with pytest.raises(DataError, match="install wengert again"):
            data.digits()


def test_a_split_keeps_every_example_with_its_target() -> None:
    X, Y = list(range(100)), [f"target {i}" for i in range(100)]
    X_train, X_test, Y_train, Y_test = data.train_test_split(X, Y, test=0.25, seed=1)
    assert (len(X_train), len(X_test)) == (75, 25)
    assert sorted(X_train + X_test) == X
    assert [f"target {x}" for x in X_train + X_test] == Y_train + Y_test
    assert X_train != sorted(X_train)
    assert data.train_test_split(X, Y, seed=1) == data.train_test_split(X, Y, seed=1)
    assert data.train_test_split(X, Y, seed=None) != data.train_test_split(X, Y, seed=None)


@pytest.mark.parametrize("share", [0.001, 0.999])
def test_each_part_of_a_split_has_an_example(share: float) -> None:
    X_train, X_test, _, _ = data.train_test_split([1, 2, 3], [0, 0, 0], test=share)
    assert X_train
    assert X_test


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: data.moons(1), ArgumentError, "n is 1; expected an int >= 2"),
        (lambda: data.moons(2.5), ArgumentError, r"n is 2\.5"),
        (lambda: data.moons(noise=-1.0), ArgumentError, r"noise is -1\.0"),
        (lambda: data.circles(noise=math.nan), ArgumentError, "noise is nan"),
        (lambda: data.circles(factor=1.0), ArgumentError, r"factor is 1\.0"),
        (lambda: data.spiral(0), ArgumentError, "n is 0"),
        (lambda: data.spiral(10, classes=0), ArgumentError, "classes is 0"),
        (lambda: data.spiral(10, noise=math.inf), ArgumentError, "noise is inf"),
        (lambda: data.train_test_split([1, 2], [1]), LengthError, "X has the length 2 and Y the length 1"),
        (lambda: data.train_test_split([], []), DataError, "too few examples to split: 0"),
        (lambda: data.train_test_split([1, 2], [1, 2], test=1.0), ArgumentError, r"test is 1\.0"),
    ],
)
def test_misuse_is_named(call: Any, error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        call()
