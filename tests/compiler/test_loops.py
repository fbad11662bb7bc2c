"""Recurrences, which recording unrolls, become loops again: what is found, what stays as it is, and that all agrees."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

import pytest

import wengert
from tests.compiler.checks import CLOSE, Numbers, difference, gradients, lifted, same
from wengert import Value

np = pytest.importorskip("numpy")
recurrences = pytest.importorskip("tools.qa.recurrences")

from wengert.compiler.backends.numpy import NumPyKernel  # noqa: E402  (they need NumPy)
from wengert.compiler.ir import Access, Array, Compute, Kept, Loop, Program, ProgramError, Window, unrolled, verify  # noqa: E402

STEP = 0.01
rng = random.Random(5)


def values(*shape: int) -> Any:
    """Nested lists of Values."""
    return [values(*shape[1:]) for _ in range(shape[0])] if shape else Value(rng.gauss(0.0, 0.5))


def numbers(*shape: int) -> Any:
    """Nested lists of numbers."""
    return [numbers(*shape[1:]) for _ in range(shape[0])] if shape else rng.gauss(0.0, 1.0)


def every(x: Any) -> list[Value]:
    """The Values in nested lists."""
    return [value for part in x for value in every(part)] if isinstance(x, list) else [x]


Made = tuple[Callable[..., Any], list[Any], list[Value]]


def euler() -> Made:
    """An oscillator, by the shortest of steps."""
    k = Value(1.3)

    def oscillator(x: Any, v: Any) -> Any:
        for _ in range(200):
            x, v = x + STEP * v, v - STEP * k * x
        return x * x + v * v

    return oscillator, [1.0, 0.2], [k]


def runge_kutta(slope: Callable[[Numbers], Numbers], state: Numbers, step: float) -> Numbers:
    """One step of the fourth order."""
    a = slope(state)
    b = slope([p + 0.5 * step * q for p, q in zip(state, a, strict=True)])
    c = slope([p + 0.5 * step * q for p, q in zip(state, b, strict=True)])
    d = slope([p + step * q for p, q in zip(state, c, strict=True)])
    return [p + step / 6 * (q + 2 * r + 2 * s + t) for p, q, r, s, t in zip(state, a, b, c, d, strict=True)]


def oscillator_of_fourth_order() -> Made:
    """The same by four slopes a step."""
    k = Value(1.3)

    def oscillator(x: Any, v: Any) -> Any:
        state = [x, v]
        for _ in range(100):
            state = runge_kutta(lambda s: [s[1], -k * s[0]], state, STEP)
        return state[0] * state[0] + state[1] * state[1]

    return oscillator, [1.0, 0.2], [k]


def predators() -> Made:
    """Lotka-Volterra."""
    rates = [Value(rate) for rate in (1.1, 0.4, 0.4, 0.1)]

    def lotka_volterra(x: Any, y: Any) -> Any:
        a, b, c, d = rates
        state = [x, y]
        for _ in range(60):
            state = runge_kutta(lambda s: [a * s[0] - b * s[0] * s[1], d * s[0] * s[1] - c * s[1]], state, 0.02)
        return state[0] + state[1]

    return lotka_volterra, [10.0, 5.0], rates


def forced() -> Made:
    """An oscillator that is driven by a number of its own at each step."""
    k = Value(1.3)

    def oscillator(x: Any, v: Any) -> Any:
        for t in range(120):
            x, v = x + STEP * v, v + STEP * (math.cos(0.3 * t) * k - k * x)
        return x * x + v * v

    return oscillator, [1.0, 0.2], [k]


def biquad() -> Made:
    """A filter of the second order."""
    weights = [Value(w) for w in (0.2, 0.3, 0.2, -0.5, 0.2)]

    def filtered(xs: Numbers) -> Any:
        b0, b1, b2, a1, a2 = weights
        x1 = x2 = y1 = y2 = loss = 0.0
        for x in xs:
            y = b0 * x + b1 * x1 + b2 * x2 - a1 * y1 - a2 * y2
            x2, x1, y2, y1 = x1, x, y1, y
            loss = loss + y * y
        return loss

    return filtered, [numbers(200)], weights


def prefix_sum() -> Made:
    """Every partial sum is used."""
    scale = Value(0.5)

    def summed(xs: Numbers) -> Any:
        total, squares = 0.0, 0.0
        for x in xs:
            total = total + scale * x
            squares = squares + total * total
        return squares

    return summed, [numbers(100)], [scale]


def affine(weights: Any, bias: Numbers, x: Numbers) -> Numbers:
    """A layer without an activation."""
    return [sum((w * v for w, v in zip(row, x, strict=True)), b) for row, b in zip(weights, bias, strict=True)]


def lstm() -> Made:
    """Eight cells with gates."""
    weights, bias = values(32, 12), values(32)

    def network(xs: Any) -> Any:
        h = c = [0.0] * 8
        for x in xs:
            z = affine(weights, bias, [*x, *h])
            i, f, o = ([wengert.sigmoid(a) for a in z[n : n + 8]] for n in (0, 8, 24))
            g = [wengert.tanh(a) for a in z[16:24]]
            c = [a * b + d * e for a, b, d, e in zip(f, c, i, g, strict=True)]
            h = [a * wengert.tanh(b) for a, b in zip(o, c, strict=True)]
        return sum(a * a for a in h)

    return network, [numbers(20, 4)], [*every(weights), *bias]


def gru() -> Made:
    """Six cells with gates."""
    of_x, of_h, bias = values(18, 3), values(18, 6), values(18)

    def network(xs: Any) -> Any:
        h = [0.0] * 6
        for x in xs:
            a, b = affine(of_x, bias, x), affine(of_h, [0.0] * 18, h)
            z = [wengert.sigmoid(p + q) for p, q in zip(a[:6], b[:6], strict=True)]
            r = [wengert.sigmoid(p + q) for p, q in zip(a[6:12], b[6:12], strict=True)]
            n = [wengert.tanh(p + s * q) for p, s, q in zip(a[12:], r, b[12:], strict=True)]
            h = [(1 - p) * q + p * s for p, q, s in zip(z, n, h, strict=True)]
        return sum(a * a for a in h)

    return network, [numbers(20, 3)], [*every(of_x), *every(of_h), *bias]


def hidden_markov() -> Made:
    """The forward sums of a hidden Markov model, in logarithms."""
    moves, emits, first = values(5, 5), values(5, 4), values(5)
    seen = [rng.randrange(4) for _ in range(30)]

    def likelihood(scale: Any) -> Any:
        a = [first[s] * scale + emits[s][seen[0]] for s in range(5)]
        for o in seen[1:]:
            a = [wengert.logsumexp([a[r] + moves[r][s] for r in range(5)]) + emits[s][o] for s in range(5)]
        return wengert.logsumexp(a)

    return likelihood, [0.7], [*every(moves), *every(emits), *first]


def kalman() -> Made:
    """A filter of place and speed."""
    q, r = Value(0.1), Value(0.5)

    def likelihood(zs: Numbers) -> Any:
        x, v, p00, p01, p11, total = 0.0, 0.0, 1.0, 0.0, 1.0, 0.0
        for z in zs:
            x = x + v
            p00, p01, p11 = p00 + 2 * p01 + p11 + q, p01 + p11, p11 + q
            s, y = p00 + r, z - x
            g0, g1 = p00 / s, p01 / s
            x, v = x + g0 * y, v + g1 * y
            p00, p01, p11 = (1 - g0) * p00, (1 - g0) * p01, p11 - g1 * p01
            total = total + wengert.log(s) + y * y / s
        return total

    return likelihood, [numbers(40)], [q, r]


def horner() -> Made:
    """A polynomial."""
    weights = values(61)

    def polynomial(x: Any) -> Any:
        total = weights[-1]
        for weight in weights[-2::-1]:
            total = total * x + weight
        return total

    return polynomial, [0.7], weights


def newton() -> Made:
    """A root, as the limit of an iteration."""
    a = Value(7.0)

    def root(x: Any) -> Any:
        for _ in range(30):
            x = x - (x * x * x - a) / (3 * x * x + 1.0)
        return x * x

    return root, [3.0], [a]


def heat() -> Made:
    """Diffusion along a rod with fixed ends."""
    rate = Value(0.1)

    def diffused(u: Numbers) -> Any:
        u = list(u)
        for _ in range(40):
            u = [u[0], *[u[i] + rate * (u[i + 1] - 2 * u[i] + u[i - 1]) for i in range(1, 15)], u[15]]
        return sum(q * q for q in u)

    return diffused, [numbers(16)], [rate]


def descent() -> Made:
    """Steps of gradient descent in a loss, to be differentiated by their size."""
    rate = Value(0.05)
    xs, ys = numbers(8, 3), numbers(8)

    def trained(w: Numbers) -> Any:
        w = list(w)
        for _ in range(20):
            e = [sum(p * q for p, q in zip(w, x, strict=True)) - y for x, y in zip(xs, ys, strict=True)]
            w = [p - rate * (sum(e[n] * xs[n][k] for n in range(8)) * 0.25) for k, p in enumerate(w)]
        return sum((sum(p * q for p, q in zip(w, x, strict=True)) - y) ** 2 for x, y in zip(xs, ys, strict=True))

    return trained, [[0.1, -0.2, 0.3]], [rate]


def adam() -> Made:
    """The same by Adam, whose corrections are others in each step."""
    rate = Value(0.05)

    def trained(w: Numbers) -> Any:
        w, m, s = list(w), [0.0] * 3, [0.0] * 3
        for t in range(30):
            g = [2 * (p - c) for p, c in zip(w, (1.0, 2.0, 3.0), strict=True)]
            m = [0.9 * a + 0.1 * b for a, b in zip(m, g, strict=True)]
            s = [0.99 * a + 0.01 * b * b for a, b in zip(s, g, strict=True)]
            first, second = 1 - 0.9 ** (t + 1), 1 - 0.99 ** (t + 1)
            w = [p - rate * (a / first) / (wengert.sqrt(b / second) + 1e-8) for p, a, b in zip(w, m, s, strict=True)]
        return sum(p * p for p in w)

    return trained, [[0.1, -0.2, 0.3]], [rate]


def sequences() -> Made:
    """A batch that is written as a loop around a recurrence."""
    of_x, of_h, bias = values(4, 3), values(4, 4), values(4)

    def network(batch: Any) -> Any:
        total = 0.0
        for xs in batch:
            h = [0.0] * 4
            for x in xs:
                h = [wengert.tanh(a + b) for a, b in zip(affine(of_x, bias, x), affine(of_h, bias, h), strict=True)]
            total = total + sum(a * a for a in h)
        return total

    return network, [numbers(5, 20, 3)], [*every(of_x), *every(of_h), *bias]


def autoregression() -> Made:
    """Four of the last numbers make the next one."""
    weights = values(4)

    def series(xs: Numbers) -> Any:
        ys: Numbers = [x * 1.0 for x in xs[:4]]
        for x in xs[4:]:
            ys.append(wengert.tanh(sum(w * ys[-1 - k] for k, w in enumerate(weights)) + x))
        return ys[-1] * ys[-2]

    return series, [numbers(50)], weights


def layers() -> Made:
    """A deep network of equal layers: weights of its own in each turn."""
    weights, biases = values(12, 4, 4), values(12, 4)

    def network(x: Numbers) -> Any:
        for weight, bias in zip(weights, biases, strict=True):
            x = [
                wengert.tanh(a) * wengert.sigmoid(b) + c for a, b, c in zip(affine(weight, bias, x), x, x, strict=True)
            ]
        return sum(a * a for a in x)

    return network, [numbers(4)], [*every(weights), *every(biases)]


def extremes() -> Made:
    """The best path through a trellis."""
    moves, emits = values(3, 3), values(3)

    def best(xs: Numbers) -> Any:
        a = list(emits)
        for x in xs:
            a = [
                wengert.maximum(wengert.maximum(a[0] + moves[0][j], a[1] + moves[1][j]), a[2] + moves[2][j])
                + x * emits[j]
                for j in range(3)
            ]
        return a[0] + 0.5 * a[1]

    return best, [numbers(30)], [*every(moves), *emits]


FOUND = {  # the turns of their longest loop, at least
    euler: 190, oscillator_of_fourth_order: 90, predators: 50, biquad: 190, prefix_sum: 90, lstm: 18, gru: 18,
    hidden_markov: 28, kalman: 36, horner: 59, newton: 28, heat: 38, descent: 19, adam: 28, sequences: 18,
    autoregression: 40, layers: 10, extremes: 28, forced: 58,
}  # fmt: skip


def loops(compiled: Any) -> list[Loop]:
    """The loops of its last recording."""
    program = compiled._runtime.latest().lifted.program
    return [step for step in program.steps if isinstance(step, Loop)]


@pytest.mark.parametrize("made", FOUND)
@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_a_recurrence_becomes_a_loop_that_agrees_with_the_engine(made: Callable[[], Made], backend: str) -> None:
    if backend == "native":
        pytest.importorskip("llvmlite")
    function, args, parameters = made()
    compiled = wengert.compile(function, backend=backend)
    compiled(*args)
    for _ in range(2):
        same(compiled(*args), function(*args), parameters)
    lifted(compiled)
    assert max((loop.count for loop in loops(compiled)), default=0) >= FOUND[made]


@pytest.mark.parametrize("made", FOUND)
def test_written_out_its_turns_are_what_was_there(made: Callable[[], Made]) -> None:
    """The program without its loop, and its reverse, run by the same back end."""
    function, args, _ = made()
    compiled = wengert.compile(function, backend="numpy")
    compiled(*args)
    kernel = compiled._runtime.latest().kernel
    compiled._runtime.latest().load()
    program, back = unrolled(kernel.program), unrolled(kernel.back)
    assert not any(isinstance(step, Loop) for step in (*program.steps, *back.steps))
    verify(program)
    verify(back, [array for step in program.steps for array in step.makes] + program.arrays)
    straight = NumPyKernel(program, back, kernel.wanted)
    straight.numbers[...] = kernel.numbers
    given = [np.array(x) if isinstance(x, list) else x for x in args]
    one, other = kernel.both(given, 1.0)[0], straight.both(given, 1.0)[0]
    assert difference(one["out"], other["out"]) < CLOSE
    assert difference(kernel.slopes, straight.slopes) < CLOSE


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_a_batch_of_recurrences_is_one_loop(backend: str) -> None:
    if backend == "native":
        pytest.importorskip("llvmlite")
    for made in (biquad, kalman, autoregression, extremes):
        function, _, parameters = made()
        batch = numbers(7, 60)
        compiled = wengert.compile(function, backend=backend)
        for _ in range(2):
            want = wengert.mean([function(x) for x in batch])
            same(compiled.mean(batch), want, parameters)
        lifted(compiled)
        assert loops(compiled)


def test_values_among_the_arguments_get_their_derivatives() -> None:
    function, _, _ = biquad()
    compiled = wengert.compile(function, backend="numpy")
    for _ in range(2):
        xs = [Value(x) for x in numbers(80)]
        slopes = gradients(compiled(xs), xs)
        assert difference(slopes, gradients(function(xs), xs)) < CLOSE
    assert loops(compiled)


def test_guards_compare_numbers_of_all_turns() -> None:
    k = Value(0.7)

    def turned(x: Any) -> Any:
        for _ in range(40):
            x = wengert.sin(x * k + 0.5)
            if x.data > 0.9:
                x = x * 0.5
        return x

    compiled = wengert.compile(turned, backend="numpy")
    for start in (0.1, 0.1, 2.5, -0.4):
        same(compiled(start), turned(start), [k])
    assert loops(compiled)


def test_what_an_integer_chooses_in_the_next_turn_s_stead_stays_unrolled() -> None:
    """A state is chosen from those of the turn before: an index at run time inside of a loop."""
    k = Value(0.7)

    def chosen(xs: Numbers, which: list[int]) -> Any:
        state = [x * k for x in xs]
        for n in which:
            state = [wengert.sin(state[n] + s) for s in state]
        return sum(state)

    compiled = wengert.compile(chosen, backend="numpy")
    for _ in range(3):
        which = [rng.randrange(3) for _ in range(20)]
        xs = numbers(3)
        same(compiled(xs, which), chosen(xs, which), [k])
    lifted(compiled)
    assert not loops(compiled)


def test_what_has_no_batch_runs_in_a_loop_of_its_own() -> None:
    k = Value(0.7)

    def mixed(x: Any) -> Any:
        s = k
        for _ in range(40):
            s, x = wengert.sin(s * 0.9 + k), wengert.tanh(x + s)
        return x

    compiled = wengert.compile(mixed, backend="numpy")
    batch = numbers(5)
    for _ in range(2):
        same(compiled.mean(batch), wengert.mean([mixed(x) for x in batch]), [k])
    lifted(compiled)
    assert [all(array.batched for array in loop.makes) for loop in loops(compiled)] == [False, True]


def test_what_does_not_repeat_stays_as_it_is() -> None:
    """Sums that get longer, and turns of which each does something else."""
    weights = values(30)
    functions = [wengert.sin, wengert.tanh, wengert.sigmoid, wengert.exp]
    order = [rng.choice(functions) for _ in range(80)]

    def history(x: Any) -> Any:
        ys = [x]
        for t in range(1, 30):
            ys.append(wengert.tanh(sum(weights[t - 1 - s] * y for s, y in enumerate(ys))))
        return ys[-1]

    def irregular(x: Any) -> Any:
        for function in order:
            x = function(wengert.tanh(x * weights[0]))
        return x

    for function in (history, irregular):
        compiled = wengert.compile(function, backend="numpy")
        for _ in range(2):
            same(compiled(0.3), function(0.3), weights)
        assert not loops(compiled)


def test_other_libraries_get_the_turns_written_out() -> None:
    jax = pytest.importorskip("jax")
    function, args, parameters = euler()
    compiled = wengert.compile(function, backend="numpy")
    want = compiled(*args)
    assert "for t in" in compiled.source()
    assert "for t in" not in compiled.source("jax")
    with jax.enable_x64(True):
        run, numbers_of = compiled.to_jax()
        assert difference(run(numbers_of, *args), want.data) < CLOSE
    by_xla = wengert.compile(function, backend="xla")
    for _ in range(2):
        same(by_xla(*args), function(*args), parameters)


def test_a_loop_that_breaks_a_rule_is_refused() -> None:
    """Each rule of loops, broken in a program of one."""

    def made(base: int = 0, step: int = 1, rows: int = 11) -> Program:
        start, part, out = Array("x", (), "input"), Array("u", (), "value"), Array("us", (rows,), "value")
        seen = Array("w", (), "window", window=Window(out, base, step))
        loop = Loop(
            10,
            [Compute(part, (), [Access(seen, 0, ())], ("sin", ("in", 0)))],
            [Kept(part, out, start)],
        )
        return Program([start, part, out], [loop], {"out": out})

    verify(made())
    for broken, why in (
        (made(base=1), "yet to come"),
        (made(step=0), "does not move"),
        (made(base=-1), "what is not there"),
        (made(rows=12), "begins with"),
        (made(rows=9), "what is not there"),
    ):
        with pytest.raises(ProgramError, match=why):
            verify(broken)


@pytest.mark.parametrize("first", range(0, 30, 5))
def test_random_recurrences(first: int) -> None:
    wrong = {}
    for seed in range(first, first + 5):
        error, refusal, _ = recurrences.run(seed, "numpy")
        if not error < CLOSE or refusal:
            wrong[seed] = error, refusal
    assert not wrong
