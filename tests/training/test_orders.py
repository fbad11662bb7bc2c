"""The orders of the examples, epoch after epoch, are those that `fit` documents, however they are drawn."""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import islice

import pytest

from wengert.training.orders import Orders

COUNT = 300


def splitmix64(state: int) -> Iterator[int]:
    """As in Vigna's C, https://prng.di.unimi.it/splitmix64.c."""
    while True:
        state = (state + 0x9E3779B97F4A7C15) % 2**64
        z = state
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
        yield z ^ z >> 31


def documented(rng: random.Random | None = None) -> list[int]:
    numbers, order = splitmix64((random if rng is None else rng).getrandbits(64)), list(range(COUNT))
    for last in reversed(range(1, COUNT)):
        other = (next(numbers) >> 32) * (last + 1) >> 32
        order[last], order[other] = order[other], order[last]
    return order


def test_the_numbers_of_splitmix64() -> None:
    """As Rosetta Code has them, in "Pseudo-random numbers/Splitmix64"."""
    want = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821]
    assert [*islice(splitmix64(1234567), 5)] == want


@pytest.mark.parametrize("prepared", [(), (1,), (0, 2, 2)])
@pytest.mark.parametrize("passed", [0, 2])
def test_orders_by_a_seed(passed: int, prepared: tuple[int, ...]) -> None:
    """Those of the epochs that are over are passed over, and to prepare the next one, once or twice, changes none."""
    pytest.importorskip("numpy")
    rng, orders = random.Random(5), Orders(COUNT, True, 5, passed)
    want = [documented(rng) for _ in range(passed + 4)][passed:]
    for epoch in range(4):
        assert list(orders.next(arrays=epoch % 2 == 0)) == want[epoch]
        for _ in range(prepared.count(epoch)):
            orders.prepare()


def test_nobody_else_s_random_numbers_are_drawn_ahead() -> None:
    random.seed(3)
    want = [documented(), random.random(), documented()]
    random.seed(3)
    orders = Orders(COUNT, True, None, 2)
    got = [list(orders.next(arrays=False))]
    orders.prepare()
    assert [*got, random.random(), list(orders.next(arrays=False))] == want


def test_without_shuffling() -> None:
    orders = Orders(COUNT, False, 1, 2)
    orders.prepare()
    assert list(orders.next(arrays=True)) == list(orders.next(arrays=False)) == list(range(COUNT))
