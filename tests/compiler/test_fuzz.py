"""Random scalar programs, compiled and eager: the first seeds of `tools/qa/lifting_fuzz.py`, a command."""

from __future__ import annotations

import pytest

pytest.importorskip("numpy")
lifting_fuzz = pytest.importorskip("tools.qa.lifting_fuzz")  # needs NumPy

BLOCK = 3


def check(first: int, poison: bool) -> None:
    """A block of seeds: what goes wrong is said of all of them at once."""
    wrong = {}
    for seed in range(first, first + BLOCK):
        error, refusal = lifting_fuzz.run(seed, poison)
        if not error < 1e-12 or refusal:
            wrong[seed] = error, refusal
    assert not wrong


# Most of them once: what is lifted depends little on which engine runs.
ONCE = [pytest.param(first, marks=pytest.mark.once) for first in range(50, 80, BLOCK)]


@pytest.mark.sampled(27)
@pytest.mark.parametrize("first", [*range(0, 50, BLOCK), *ONCE])
def test_random_programs(first: int) -> None:
    check(first, poison=False)


@pytest.mark.once  # what computes is the array program
@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", [1703, 2384])
def test_programs_whose_cotangents_lie_transposed_in_memory(seed: int) -> None:
    """What is put together on top of one may not be reshaped, which would be a copy."""
    error, refusal = lifting_fuzz.run(seed)
    assert error < 1e-12
    assert not refusal


@pytest.mark.once  # what is lifted depends little on which engine runs
@pytest.mark.sampled(7)
@pytest.mark.parametrize("first", range(150, 170, BLOCK))
def test_random_programs_of_numbers_that_are_not_finite(first: int) -> None:
    check(first, poison=True)
