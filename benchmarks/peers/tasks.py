"""What a task of the benchmark of derivatives is, and what the texts of its tools share."""

from __future__ import annotations

import math
import types
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

__all__ = ["Task", "Way", "draw", "jax_library", "jitted", "runge_kutta"]

Way = tuple[Callable[..., Any], tuple[Any, ...]]  # a function and its arguments


@cache
def jax_library() -> Any:
    """JAX's functions of numbers, with 64 bits."""
    import jax

    jax.config.update("jax_enable_x64", True)
    names = ("exp", "log", "sqrt", "sin", "cos", "tanh")
    special = {"erf": jax.scipy.special.erf, "lgamma": jax.scipy.special.gammaln}
    return types.SimpleNamespace(**{n: getattr(jax.numpy, n) for n in names}, **special)


def jitted(function: Callable[..., Any], *args: Any) -> Way:
    """A function of JAX's, and its arguments as its arrays; a call ends when the result is there."""
    import jax

    jax_library()
    made = jax.jit(function)
    return lambda *given: jax.block_until_ready(made(*given)), tuple(map(jax.numpy.asarray, args))


def draw(seed: int) -> np.random.Generator:
    """Numbers at random, the same each time."""
    return np.random.default_rng(seed)


class Task:
    """A derivative to compute.

    Attributes:
        title: what a table calls it.
        bar: the seconds that a call of Wengert's may take; none is set where it is infinite.
        prepared: the seconds that its first result may take.
        columns: whether CasADi's result has a column for each example.
        patience: the seconds that a C compiler may take for CasADi's C.
    """

    title: str
    bar = prepared = math.inf
    columns = False
    patience = 8.0

    def wengert(self) -> Way:
        """As Wengert's documentation has it."""
        raise NotImplementedError

    def casadi(self) -> Way:
        """As CasADi's has it: a `casadi.Function`."""
        raise NotImplementedError

    def jax(self) -> Way:
        """As JAX's has it."""
        raise NotImplementedError

    def asdex(self) -> Way:
        """As the documentation of asdex has it, which finds patterns and colourings for JAX."""
        raise NotImplementedError

    def hand(self) -> Way:
        """By SciPy's own function, or by hand with NumPy, where there is such a thing."""
        raise NotImplementedError


def runge_kutta(slope: Callable[[Sequence[Any]], Sequence[Any]], state: Sequence[Any], h: float) -> list[Any]:
    """A step of the classical method of Runge and Kutta."""
    a = slope(state)
    b = slope([p + 0.5 * h * q for p, q in zip(state, a, strict=True)])
    c = slope([p + 0.5 * h * q for p, q in zip(state, b, strict=True)])
    d = slope([p + h * q for p, q in zip(state, c, strict=True)])
    return [p + h / 6 * (q + 2 * r + 2 * s + t) for p, q, r, s, t in zip(state, a, b, c, d, strict=True)]
