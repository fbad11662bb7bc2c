"""Recurrences, which recording unrolls, become loops again: what is found, what stays as it is, and that all agrees."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

import wengert
from tests.compiler.checks import CLOSE, Numbers, difference, gradients, lifted, same
from tests.compiler.recurrences import (
    CARRIED,
    FOUND,
    Made,
    autoregression,
    biquad,
    euler,
    extremes,
    horner,
    kalman,
    lstm,
    numbers,
    values,
)
from wengert import Value

np = pytest.importorskip("numpy")
fuzz = pytest.importorskip("tools.qa.recurrences")

from wengert.compiler.backends.numpy import NumPyKernel  # noqa: E402  (they need NumPy)
from wengert.compiler.ir import Access, Array, Compute, Loop, LoopOutput, Program, ProgramError, Slice, unrolled, verify  # noqa: E402

pytestmark = pytest.mark.once  # what computes is the array program

rng = random.Random(11)
BACKENDS = {"numpy": "numpy", "native": "llvmlite", "xla": "jax"}  # each with what it needs


def loops(compiled: Any) -> list[Loop]:
    """The loops of its last recording."""
    program = compiled._server.latest().lifted.program
    return [step for step in program.steps if isinstance(step, Loop)]


@pytest.mark.sampled(3)
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


STEP = 0.01  # captured, so it is a parameter of the program, and each half step has the operations of the whole


def test_stages_with_the_same_operations_are_no_iterations() -> None:
    def slope(x: Any, y: Any, z: Any, a: Any, b: Any, c: Any) -> Any:
        return a * (y - x), x * (b - z) - y, x * y - c * z

    def lorenz(x: Any, y: Any, z: Any, a: Any, b: Any, c: Any) -> Any:
        for _ in range(40):
            u, v, w = slope(x, y, z, a, b, c)
            u, v, w = slope(x + STEP / 2 * u, y + STEP / 2 * v, z + STEP / 2 * w, a, b, c)
            x, y, z = x + STEP * u, y + STEP * v, z + STEP * w
        return x + 2 * y - z

    compiled = wengert.compile(lorenz)
    for scale in (1.0, 1.0, 1.01):
        point = [scale * x for x in (1.0, 1.5, 1.2, 10.0, 28.0, 8 / 3)]
        got, want = [Value(x) for x in point], [Value(x) for x in point]
        result = compiled(*got)
        result.backward()
        expected = lorenz(*want)
        expected.backward()
        assert result.data == pytest.approx(expected.data, rel=1e-10)
        assert [x.grad for x in got] == pytest.approx([x.grad for x in want], rel=1e-9)
    assert max(loop.count for loop in loops(compiled)) >= 36
    assert compiled._server.latest().lifted.program.size < 100


@pytest.mark.sampled(3)
@pytest.mark.parametrize("made", CARRIED)
@pytest.mark.parametrize("backend", BACKENDS)
def test_what_turns_carry_and_leave(made: Callable[[], Made], backend: str) -> None:
    pytest.importorskip(BACKENDS[backend])
    function, args, parameters = made()
    compiled = wengert.compile(function, backend=backend)
    compiled(*args)
    for _ in range(2):
        same(compiled(*args), function(*args), parameters)
    batch = [[0.5 * np.asarray(x), np.asarray(x)] for x in args]
    for _ in range(2):
        want = wengert.mean([function(*[x[n].tolist() for x in batch]) for n in range(2)])
        same(compiled.mean(*map(np.array, batch)), want, parameters)
    lifted(compiled)
    assert loops(compiled)


def test_a_sweep_begins_with_what_comes_to_the_last_turns() -> None:
    """No zeros for all turns of which all but the last stay zeros; nor a gather where all turns multiply by one x."""
    for made in (euler, horner):
        function, args, _ = made()
        compiled = wengert.compile(function, backend="numpy")
        compiled(*args)
        sweep = compiled.source().partition("# reverse")[2]
        assert "for t in reversed(" in sweep
        assert "np.zeros((1" not in sweep
        assert "index" not in compiled.source()


@pytest.mark.sampled(5)
@pytest.mark.once  # what computes are the kernels
@pytest.mark.parametrize("made", FOUND)
def test_written_out_its_turns_are_what_was_there(made: Callable[[], Made]) -> None:
    """The program without its loop, and its reverse, run by the same back end."""
    function, args, _ = made()
    compiled = wengert.compile(function, backend="numpy")
    compiled(*args)
    kernel, buffers = compiled._server.latest().kernel, compiled._server.latest().buffers()
    program, back = unrolled(kernel.program), unrolled(kernel.backward)
    assert not any(isinstance(step, Loop) for step in (*program.steps, *back.steps))
    verify(program)
    verify(back, [array for step in program.steps for array in step.makes] + program.arrays)
    straight = NumPyKernel(program, back, kernel.wanted)
    others = compiled._server.latest().buffers()
    given = [np.array(x) if isinstance(x, list) else x for x in args]
    one, other = kernel.forward_backward(given, 1.0, buffers)[0], straight.forward_backward(given, 1.0, others)[0]
    assert difference(one["out"], other["out"]) < CLOSE
    assert difference(buffers.grads, others.grads) < CLOSE


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


def switched() -> tuple[Any, list[Value]]:
    """What earlier turns made is chosen by an integer of each turn, and so is what it is multiplied by."""
    k, rates = Value(0.7), values(4)

    def chosen(xs: Numbers, which: list[int]) -> Any:
        state = [x * k for x in xs]
        for n in which:
            state = [wengert.sin(state[n] * rates[n] + s) for s in state]
        return sum(state)

    return chosen, [k, *rates]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("backend", BACKENDS)
def test_an_integer_may_choose_from_what_earlier_turns_made(backend: str) -> None:
    pytest.importorskip(BACKENDS[backend])
    function, parameters = switched()
    compiled = wengert.compile(function, backend=backend)
    for _ in range(2):
        which, xs = [rng.randrange(3) for _ in range(20)], numbers(3)
        same(compiled(xs, which), function(xs, which), parameters)
    lifted(compiled)
    assert any(x.index for loop in loops(compiled) for step in loop.steps for x in step.operands)
    batch = numbers(5, 3), [[rng.randrange(3) for _ in range(20)] for _ in range(5)]
    for _ in range(2):
        want = wengert.mean([function(*row) for row in zip(*batch, strict=True)])
        same(compiled.mean(*batch), want, parameters)
    lifted(compiled)
    assert loops(compiled)


@pytest.mark.parametrize("backend", BACKENDS)
def test_sums_of_several_lengths_in_a_turn(backend: str) -> None:
    """Each number becomes a sum of those before it: a triangle, by masks."""
    pytest.importorskip(BACKENDS[backend])
    weights = [values(n + 1) for n in range(7)]

    def diffused(x: Numbers) -> Any:
        total: Any = 0.0
        for _ in range(20):
            x = [wengert.tanh(sum(w * a for w, a in zip(row, x, strict=False))) for row in weights]
            total = total + x[0] * x[3]
        return total + sum(x)

    parameters = [w for row in weights for w in row]
    compiled = wengert.compile(diffused, backend=backend)
    for _ in range(2):
        x = numbers(7)
        same(compiled(x), diffused(x), parameters)
    lifted(compiled)
    assert loops(compiled)
    assert "mask1" in compiled.source("numpy").partition("for t in")[2]
    if backend != "xla":  # which takes seconds to compile it
        batch = numbers(5, 7)
        same(compiled.mean(batch), wengert.mean([diffused(x) for x in batch]), parameters)
        assert loops(compiled)


def test_integers_in_no_even_order_leave_the_turns_written_out() -> None:
    function, parameters = switched()
    order = [3, 1, 2, 0, 4, 9, 7, 8, 5, 6, 11, 10]
    compiled = wengert.compile(lambda xs, which: function(xs, [which[n] for n in order]), backend="numpy")
    for _ in range(2):
        which, xs = [rng.randrange(3) for _ in range(12)], numbers(3)
        same(compiled(xs, which), function(xs, [which[n] for n in order]), parameters)
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


@pytest.mark.sampled(4)
@pytest.mark.jax
@pytest.mark.parametrize("made", [euler, biquad, lstm, horner])
def test_xla_and_jax_have_a_scan(made: Callable[[], Made]) -> None:
    """Values and derivatives: by the program's own reverse sweep, and by the rules of JAX."""
    jax = pytest.importorskip("jax", reason="needs jax")
    function, args, parameters = made()
    compiled = wengert.compile(function, backend="xla")
    for _ in range(2):
        same(compiled(*args), function(*args), parameters)
    lifted(compiled)
    assert "jax.lax.scan" in compiled.source("jax")
    want = function(*args)
    slopes = dict(zip(map(id, parameters), gradients(want, parameters), strict=True))
    with jax.enable_x64(True):
        run, numbers_of = compiled.to_jax()
        value, found = jax.jit(jax.value_and_grad(run))(numbers_of, *args)
    assert difference(value, want.data) < CLOSE
    made_of = compiled._server.latest()
    together = np.concatenate([np.ravel(found[array.name]) for array in made_of.kernel.params])
    order = [slopes.get(id(p), 0.0) for p in made_of.parameters]  # none by a number that is read outside
    assert difference(together, order) < CLOSE


@pytest.mark.sampled(2)
@pytest.mark.jax
@pytest.mark.parametrize("made", [kalman, autoregression])
def test_a_batch_of_recurrences_is_one_scan(made: Callable[[], Made]) -> None:
    pytest.importorskip("jax", reason="needs jax")
    function, _, parameters = made()
    batch = numbers(5, 40)
    compiled = wengert.compile(function, backend="xla")
    same(compiled.mean(batch), wengert.mean([function(x) for x in batch]), parameters)
    lifted(compiled)
    assert "jax.lax.scan" in compiled.source("jax")


def test_what_is_compiled_is_as_long_for_any_number_of_turns() -> None:
    """PyTorch gets the turns written out."""
    lengths = []
    for turns in (40, 400):
        function, args, _ = euler(turns)
        compiled = wengert.compile(function, backend="numpy")
        compiled(*args)
        assert "for t in" in compiled.source()
        lengths.append([len(compiled.source(language).splitlines()) for language in ("numpy", "jax", "torch")])
    assert lengths[0][:2] == lengths[1][:2]
    assert lengths[1][2] - lengths[0][2] == 2 * 360


def test_a_loop_that_breaks_a_rule_is_refused() -> None:
    """Each rule of loops, broken in a program of one."""

    def made(base: int = 0, step: int = 1, rows: int = 11) -> Program:
        start, part, out = Array("x", (), "input"), Array("u", (), "value"), Array("us", (rows,), "value")
        seen = Array("w", (), "slice", slice=Slice(out, base, step))
        loop = Loop(
            10,
            [Compute(part, (), [Access(seen, 0, ())], ("sin", ("in", 0)))],
            [LoopOutput(part, out, start)],
        )
        return Program([start, part, out], [loop], {"out": out})

    verify(made())
    for broken, why in (
        (made(base=1), "yet to come"),
        (made(step=0), "does not move"),
        (made(base=-1), "reaches outside"),
        (made(rows=12), "begins with"),
        (made(rows=9), "reaches outside"),
    ):
        with pytest.raises(ProgramError, match=why):
            verify(broken)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("first", range(0, 20, 5))
def test_random_recurrences(first: int) -> None:
    wrong = {}
    for seed in range(first, first + 5):
        error, refusal, _ = fuzz.run(seed, "numpy")
        if not error < CLOSE or refusal:
            wrong[seed] = error, refusal
    assert not wrong


@pytest.mark.parametrize("seed", [81, 136])
def test_a_batch_sees_what_was_there_before_the_first_turn_of_another_loop(seed: int) -> None:
    """Recurrences of which a part has no batch: the turns of the rest read it from its first row on."""
    error, refusal, _ = fuzz.run(seed, "numpy")
    assert error < CLOSE
    assert not refusal
