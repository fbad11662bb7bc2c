"""Derivatives of recurrences, and the gradients that their results give to parameters and arguments when they are
differentiated again: the reverse sweep of a loop that runs in either direction.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest

import wengert
from tests.compiler.checks import Numbers, difference, lifted
from tests.compiler.recurrences import CARRIED, FOUND, Made, gru, lstm, numbers, values
from wengert import Value

np = pytest.importorskip("numpy")
fuzz = pytest.importorskip("tools.qa.recurrences")

from wengert.compiler.backends.numpy import NumPyKernel  # noqa: E402  (they need NumPy)
from wengert.compiler.derive import gradient, reverse  # noqa: E402
from wengert.compiler.ir import Access, Array, Compute, Loop, LoopOutput, Program, Slice, unrolled, verify  # noqa: E402

pytestmark = pytest.mark.once  # what computes is the array program

COUNT = 5
CLOSE = 1e-9  # second derivatives cancel more than values do
READS = ("all rows", "the iterations", "the last", "the first", "the initial rows", "a few")
CASES = [(kind, how) for kind in fuzz.KINDS for how in fuzz.SPELLINGS]


def a_loop(backward: bool, lag: int, rows: int, starts: bool, read: str, batched: bool, at: int = 0) -> Program:
    """A program of one loop: ``u_t = w * sin(sum over rows of c * u_earlier) + 0.3 * x_t + u_earlier * k``.

    Args:
        backward: the loop begins with the last iteration.
        lag: how many iterations back the farthest row is that an iteration reads.
        rows: how many rows one slice shows; another one shows that of the iteration before.
        starts: whether the initial rows are parameters, else they are 0.
        read: which rows the result depends on.
        batched: whether the states have a batch.
        at: the first of the rows that a few are.
    """
    lead = (-1,) * batched
    w, c, k = Array("w", (), "param", slots=np.array(0)), Array("c", (2,), "param", slots=np.array([1, 2])), None
    k = Array("k", (COUNT, 2), "param", slots=3 + np.arange(2 * COUNT).reshape(COUNT, 2))
    x = Array("x", (*lead, COUNT, 2), "input")
    first = Array("s", (lag, 2), "param", slots=3 + 2 * COUNT + np.arange(2 * lag).reshape(lag, 2))
    weights = Array("v", (COUNT + lag, 2), "const", value=np.cos(np.arange(2.0 * (COUNT + lag))).reshape(-1, 2))
    part, out = Array("u", (*lead, 2), "value"), Array("us", (*lead, COUNT + lag, 2), "value")
    base = 1 if backward else lag - 1  # the row that the iteration before wrote is iteration 0's
    far = lag - rows + 1 if backward else 0
    near = Array("near", (*lead, 2), "slice", slice=Slice(out, 2 * base, 2))
    seen = Array("far", (*lead, *[n for n in (rows,) if n > 1], 2), "slice", slice=Slice(out, 2 * far, 2))
    x_t, k_t = (
        Array("x_t", (*lead, 2), "slice", slice=Slice(x, 0, 2)),
        Array("k_t", (2,), "slice", slice=Slice(k, 0, 2)),
    )
    one, axes = (1,) * batched, (*lead, 2)
    window = Array("m", axes, "value")
    summed = Compute(window, (*axes, *[n for n in (rows,) if n > 1]), [], ("mul", ("in", 0), ("in", 1)))
    over = (2,) if rows > 1 else ()
    summed.operands = [Access(seen, 0, (*one, 1, *over)), Access(c, 0, (*(0,) * batched, 1, *(0,) * len(over)))]
    summed.reduce = "sum" if rows > 1 else ""
    flat = (0,) * batched
    expr: Any = ("mul", ("in", 0), ("sin", ("in", 1)))
    expr = ("add", expr, ("mul", ("const", 0.3), ("in", 2)))
    expr = ("add", expr, ("mul", ("in", 3), ("in", 4)))
    operands = [Access(w, 0, (*flat, 0)), Access(window, 0, (*one, 1)), Access(x_t, 0, (*one, 1))]
    operands += [Access(near, 0, (*one, 1)), Access(k_t, 0, (*flat, 1))]
    step = Compute(part, axes, operands, expr)
    loop = Loop(COUNT, [summed, step], [LoopOutput(part, out, first if starts else None)], backward)
    total = Array("total", lead, "value")
    own = loop.first_row(loop.outputs[0])
    first_row, last_row = (own + COUNT - 1, own) if backward else (own, own + COUNT - 1)
    places = [(0, COUNT + lag), (own, COUNT), (last_row, 1), (first_row, 1), (COUNT * backward, lag), (at, 2)]
    low, count = places[READS.index(read)]
    over = (count, 2) if count > 1 else (2,)
    strides = (2, 1) if count > 1 else (1,)
    reads = [Access(out, 2 * low, (*one, *strides)), Access(weights, 2 * low, (*flat, *strides))]
    end = Compute(total, (*lead, *over), reads, ("mul", ("in", 0), ("square", ("in", 0))), "sum")
    end.expr = ("mul", ("in", 1), ("square", ("in", 0)))
    params = [w, c, k] + [first] * starts
    return Program([*params, x, weights, part, out, window, total], [loop, end], {"out": total})


def slopes(program: Program, numbers: Any, x: Any) -> Any:
    """The result, and the derivatives by its parameters and its input of its sum with weights."""
    out = program.outputs["out"]
    back = reverse(program, ("x",), weighted=out.size > 1)
    verify(program)
    verify(back, [array for step in program.steps for array in step.makes] + program.arrays)
    wanted = [array for array in program.arrays if array.role == "input"]
    kernel = NumPyKernel(program, back, wanted)
    buffers = kernel.buffers()
    buffers.params[:] = numbers[: len(buffers.params)]
    shape = (*x.shape[: int(out.batched)], *out.cell_shape)
    seed = np.cos(np.arange(float(np.prod(shape)))).reshape(shape) if out.size > 1 else 1.0
    results, by_input = kernel.forward_backward([x], seed, buffers)
    return results["out"], buffers.grads, by_input[0]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("lag", [1, 2, 3, 7])
@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("backward", [False, True])
def test_the_reverse_sweep_of_a_loop_is_that_of_its_iterations(backward: bool, read: str, lag: int) -> None:
    """Each direction, with each lag, window, beginning and result: as of the same steps without a loop; and again that
    of the loops of its derivative.
    """
    drawn, order = np.random.default_rng(5), ("x",)
    for rows, starts, batched in product(range(1, min(lag, 3) + 1), (False, True), (False, True)):
        for at in (0, 1, COUNT - 1, COUNT + lag - 2) if read == "a few" else [0]:
            case = backward, lag, rows, starts, read, batched, at
            numbers, x = drawn.normal(size=60), drawn.normal(size=(3,) * batched + (COUNT, 2))
            looped, straight = a_loop(*case), unrolled(a_loop(*case))
            for one, other in zip(slopes(looped, numbers, x), slopes(straight, numbers, x), strict=True):
                assert difference(one, other) < 1e-12, case
            looped, straight = a_loop(*case), unrolled(a_loop(*case))
            gradient(looped, order)
            gradient(straight, order)
            for one, other in zip(slopes(looped, numbers, x), slopes(straight, numbers, x), strict=True):
                assert difference(one, other) < 1e-12, case


def parameter_after_it(linear: bool = True) -> Made:
    """What is carried has no parameter: only the result has, and the gradient begins with it."""
    scale = Value(0.7)

    def scaled(h: Any, v: Any) -> Any:
        for _ in range(20):
            v = v * 0.9
            h = h + 0.1 * (v if linear else wengert.sin(v))
            if h > 100.0:
                break
        return scale * h

    return scaled, [3.0, 0.3], [scale]


def weighted_states() -> Made:
    """Every state is in the result, the first one too, each with a parameter of its own."""
    decay, weights = Value(0.8), values(31)

    def read_out(x: Any) -> Any:
        states = [x * x]
        for _ in range(30):
            states.append(states[-1] * decay)
        return sum(w * state for w, state in zip(weights, states, strict=True))

    return read_out, [0.4], [decay, *weights]


def coupled_backward_in_time() -> Made:
    """Values from the last turn to the first, as in dynamic programming, of two kinds that read each other."""
    discount, reward = Value(0.9), values(2)

    def valued(xs: Numbers) -> Any:
        a = b = 0.0
        for x in reversed(xs):
            a, b = reward[0] * x + discount * b, reward[1] + discount * (0.5 * a + 0.4 * b)
        return a * b + a

    return valued, [numbers(25)], [discount, *reward]


def ones(x: Any) -> Any:
    return [ones(part) for part in x] if isinstance(x, list) else 1.0


DERIVATIVES: dict[str, Callable[[Callable[..., Any], list[Any]], Any]] = {
    "grad": lambda f, args: (wengert.grad(f, tuple(range(len(args)))), args),
    "value_and_grad": lambda f, args: (wengert.value_and_grad(f), args),
    "hvp": lambda f, args: (wengert.hvp(f), [args[0], ones(args[0]), *args[1:]]),
}
RECURRENCES = [*FOUND, *CARRIED, parameter_after_it, weighted_states, coupled_backward_in_time]
LARGE = (lstm, gru)  # their second derivatives take the uncompiled engine seconds


@pytest.mark.sampled(6)
@pytest.mark.parametrize("kind", DERIVATIVES)
@pytest.mark.parametrize(
    "made", [pytest.param(f, marks=[pytest.mark.nightly] * (f in LARGE), id=f.__name__) for f in RECURRENCES]
)
def test_the_backward_pass_of_the_derivative_of_a_recurrence(made: Callable[[], Made], kind: str) -> None:
    """In both spellings the gradients of its parameters are those without a compiler."""
    function, args, parameters = made()
    derivative, given = DERIVATIVES[kind](function, args)
    wanted = fuzz.flat(derivative(*given))
    slopes_wanted = fuzz.pull_back(wanted, parameters)
    before, compiled = wengert.compile(derivative), wengert.compile(function)
    for call in (before, DERIVATIVES[kind](compiled, args)[0]):
        for _ in range(2):
            got = fuzz.flat(call(*given))
            assert difference(fuzz.data_of(got), fuzz.data_of(wanted)) < CLOSE
            assert difference(fuzz.pull_back(got, parameters), slopes_wanted) < CLOSE
    for each in (before, *compiled._derivatives.values()):
        lifted(each)


@pytest.mark.parametrize("case", CASES, ids=" ".join)
def test_derivatives_of_random_recurrences(case: tuple[str, str]) -> None:
    """One recurrence for each derivative and spelling: its numbers, and the gradients that they give."""
    seed = CASES.index(case)
    *errors, reason = fuzz.derivatives_of(seed, *case, "numpy")
    assert max(errors) < fuzz.FAR
    assert not reason


@pytest.mark.nightly  # each takes a minute
@pytest.mark.parametrize("first", range(14, 314, 10))
def test_all_derivatives_of_random_recurrences(first: int) -> None:
    """The like of it at each change is `test_derivatives_of_random_recurrences`."""
    wrong = {}
    for seed, case in product(range(first, first + 10), CASES):
        *errors, reason = fuzz.derivatives_of(seed, *case, "native" if seed % 5 == 0 else "numpy")
        if not max(errors) < fuzz.FAR or reason:
            wrong[seed, *case] = errors, reason
    assert not wrong
