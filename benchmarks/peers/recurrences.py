"""The same by hand in Python, on floats, and on arrays of NumPy where there are vectors.

Each is given the arguments and the parameters, end to end, and gives the result and the derivatives with
respect to the parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

__all__ = ["BY_HAND"]

Floats = Sequence[float]
STEP = 0.01


def euler(turns: int, args: Floats, p: Floats) -> tuple[float, list[float]]:
    """An oscillator, by the shortest of steps."""
    x, v, k = args[0], args[1], p[0]
    xs = []
    for _ in range(turns):
        xs.append(x)
        x, v = x + STEP * v, v - STEP * k * x
    dx, dv, dk = 2.0 * x, 2.0 * v, 0.0
    for before in reversed(xs):
        dk -= STEP * before * dv
        dx, dv = dx - STEP * k * dv, dv + STEP * dx
    return x * x + v * v, [dk]


def oscillator_of_fourth_order(turns: int, args: Floats, p: Floats) -> tuple[float, list[float]]:
    """The same by four slopes a step."""
    x, v, k = args[0], args[1], p[0]
    h, half, g = STEP, 0.5 * STEP, STEP / 6.0
    kept = []
    for _ in range(turns):
        a1 = -k * x
        b0, b1 = v + half * a1, -k * (x + half * v)
        c0, c1 = v + half * b1, -k * (x + half * b0)
        d0, d1 = v + h * c1, -k * (x + h * c0)
        kept.append((x, v, b0, c0))
        x, v = x + g * (v + 2.0 * b0 + 2.0 * c0 + d0), v + g * (a1 + 2.0 * b1 + 2.0 * c1 + d1)
    dx, dv, dk = 2.0 * x, 2.0 * v, 0.0
    for s, u, b0, c0 in reversed(kept):
        dd1 = g * dv
        dc0, dc1 = 2.0 * g * dx - k * h * dd1, 2.0 * g * dv + h * g * dx
        db0, db1 = 2.0 * g * dx - k * half * dc1, 2.0 * g * dv + half * dc0
        da0, da1 = g * dx - k * half * db1, g * dv + half * db0
        dk -= (s + h * c0) * dd1 + (s + half * b0) * dc1 + (s + half * u) * db1 + s * da1
        dx, dv = dx - k * (dd1 + dc1 + db1 + da1), dv + g * dx + dc0 + db0 + da0
    return x * x + v * v, [dk]


def logistic(turns: int, args: Floats, p: Floats) -> tuple[float, list[float]]:
    """The logistic map."""
    x, r = args[0], p[0]
    xs = []
    for _ in range(turns):
        xs.append(x)
        x = r * x * (1.0 - x)
    d, dr = 1.0, 0.0
    for before in reversed(xs):
        dr += d * before * (1.0 - before)
        d *= r * (1.0 - 2.0 * before)
    return x, [dr]


def horner(turns: int, args: Floats, p: Floats) -> tuple[float, list[float]]:
    """A polynomial."""
    x, total, d = args[0], p[turns], 1.0
    for weight in p[turns - 1 :: -1]:
        total = total * x + weight
    slopes = []
    for _ in range(turns + 1):
        slopes.append(d)
        d *= x
    return total, slopes


def biquad(turns: int, args: Floats, p: Floats) -> tuple[float, list[float]]:
    """A filter of the second order."""
    b0, b1, b2, a1, a2 = p
    x1 = x2 = y1 = y2 = d1 = d2 = 0.0
    ys, ds = [], []
    for x in args:
        y = b0 * x + b1 * x1 + b2 * x2 - a1 * y1 - a2 * y2
        x2, x1, y2, y1 = x1, x, y1, y
        ys.append(y)
    for y in reversed(ys):
        d2, d1 = d1, 2.0 * y - a1 * d1 - a2 * d2
        ds.append(d1)
    given, made, slopes = np.array(args), np.array(ys), np.array(ds[::-1])
    of_x = [float(slopes[n:] @ given[: turns - n]) for n in range(3)]
    return float(made @ made), [*of_x, *[-float(slopes[n:] @ made[: turns - n]) for n in (1, 2)]]


def lstm(turns: int, args: Floats, p: Floats) -> tuple[float, Any]:
    """Eight cells with gates."""
    weights, bias, xs = np.reshape(p[:-32], (32, 12)), np.array(p[-32:]), np.reshape(args, (turns, 4))
    h, c, kept = np.zeros(8), np.zeros(8), []
    for x in xs:
        seen = np.concatenate([x, h])
        z = weights @ seen + bias
        s, g = 1.0 / (1.0 + np.exp(-z)), np.tanh(z[16:24])
        before, c = c, s[8:16] * c + s[:8] * g
        squashed = np.tanh(c)
        h = s[24:] * squashed
        kept.append((seen, s, g, before, squashed))
    dh, dc = 2.0 * h, np.zeros(8)
    slopes, of_bias = np.zeros((32, 12)), np.zeros(32)
    for seen, s, g, before, squashed in reversed(kept):
        dc = dc + dh * s[24:] * (1.0 - squashed * squashed)
        dz = np.concatenate([dc * g, dc * before, dc * s[:8], dh * squashed]) * s * (1.0 - s)
        dz[16:24] = dc * s[:8] * (1.0 - g * g)
        slopes += np.outer(dz, seen)
        of_bias += dz
        dh, dc = dz @ weights[:, 4:], dc * s[8:16]
    return float(h @ h), [*slopes.reshape(-1).tolist(), *of_bias.tolist()]


BY_HAND: dict[str, Callable[[int, Floats, Floats], tuple[float, Any]]] = {
    function.__name__: function for function in (euler, oscillator_of_fourth_order, logistic, horner, biquad, lstm)
}
"""By name; those in C have the same ones."""
