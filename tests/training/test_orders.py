"""The orders of the examples, epoch after epoch, are those that `fit` documents, however they are drawn."""

from __future__ import annotations

import random

import pytest

from wengert.training.orders import Orders

COUNT = 300


def documented(rng: random.Random | None = None) -> list[int]:
    draw, order = random if rng is None else rng, list(range(COUNT))
    for last in reversed(range(1, COUNT)):
        other = draw.getrandbits(32) * (last + 1) >> 32
        order[last], order[other] = order[other], order[last]
    return order


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
    got = [orders.next(arrays=False)]
    orders.prepare()
    assert [*got, random.random(), orders.next(arrays=False)] == want


def test_without_shuffling() -> None:
    orders = Orders(COUNT, False, 1, 2)
    orders.prepare()
    assert list(orders.next(arrays=True)) == list(orders.next(arrays=False)) == list(range(COUNT))
