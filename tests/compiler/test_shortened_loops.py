"""A long loop is lifted by a few iterations: the program is that of all, and what is irregular is lifted whole."""

from __future__ import annotations

import linecache
import math
import random
from collections.abc import Callable
from typing import Any

import pytest

import wengert
from tests.compiler.recurrences import euler, logistic, runge_kutta
from wengert import Value

np = pytest.importorskip("numpy")
fuzz = pytest.importorskip("tools.qa.recurrences")

from wengert.compiler.ir import Loop  # noqa: E402  (they need NumPy)
from wengert.compiler.lift import flatten, lifted, shorten  # noqa: E402

pytestmark = pytest.mark.once  # what is lifted is compared

COUNT = 709
Numbers = list[Any]
Case = tuple[Callable[..., Any], list[Any]]


@pytest.fixture(autouse=True)
def lengthened(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The groups by which a loop was lengthened, for each loop that was. Of short recordings, too, some are cut."""
    monkeypatch.setattr(shorten, "LEAST", 1 << 10)
    added: list[int] = []
    lengthen = lifted.lengthen

    def counted(*args: Any) -> int:
        added.append(0)
        added[-1] = lengthen(*args)
        return added[-1]

    monkeypatch.setattr(lifted, "lengthen", counted)
    return added


def compiled_and_run(function: Callable[..., Any], args: list[Any]) -> Any:
    """The program in words and in NumPy, its loops, and what it computes."""
    compiled = wengert.compile(function, backend="numpy")
    points = [Value(x) if isinstance(x, float) else list(map(Value, x)) for x in args]
    for _ in range(2):
        result = compiled(*points)
    result.backward()
    program = compiled._server.latest().lifted.program
    counts = [step.count for step in program.steps if isinstance(step, Loop)]
    arrays = [(array.name, array.shape, array.role, np.array(array.value).tolist()) for array in program.arrays]
    return compiled.source(), arrays, counts, result.data, [x.grad for x in np.array(points, object).ravel()]


def lorenz(x: Any, y: Any, z: Any, a: Any, b: Any, c: Any) -> Any:
    """Chaos by Runge-Kutta, whose stages have the same operations; but for a short time."""
    state = [x, y, z]
    for _ in range(COUNT):
        state = runge_kutta(
            lambda s: [a * (s[1] - s[0]), s[0] * (b - s[2]) - s[1], s[0] * s[1] - c * s[2]], state, 1e-4
        )
    return state[0] + 2 * state[1] * state[2]


def lagged(x: Any, y: Any) -> Any:
    """An iteration reads the three before it, and what was there before the loop."""
    past = [x, y, x * y]
    for _ in range(COUNT):
        past = [*past[1:], 0.5 * wengert.sin(past[0]) - 0.3 * past[1] * x + wengert.tanh(past[2] - y)]
    return past[-1] * past[-2]


def invariant(x: Any, y: Any) -> Any:
    """Each iteration computes the same anew, and a constant Value."""
    for _ in range(COUNT):
        x = x + 0.001 * wengert.exp(y * y - 1.0) * wengert.maximum(x, 0.25)
    return x * y


def surrounded(x: Any, y: Any) -> Any:
    """There is much before the loop, and after it."""
    for n in range(40):
        y = wengert.sin(y * (n + 1))
    state = [x, y]
    for _ in range(COUNT):
        state = [state[0] - 0.01 * state[1], state[1] + 0.01 * wengert.sin(state[0])]
    total = state[0] * state[1]
    for n in range(40):
        total = wengert.cos(total + state[n % 2] / (n + 1.0))
    return total


def cells(x: Any, y: Any) -> Any:
    """Sums of products, which are matrix products."""
    state = [x, y, x * y, x - y, x + 0.5]
    rows = [[wengert.sin((i + 2 * k) * x) / (1.0 + i) for k in range(5)] for i in range(5)]
    for _ in range(COUNT):
        state = [wengert.tanh(sum(w * s for w, s in zip(row, state, strict=True)) + y) for row in rows]
    return sum(state)


def regular() -> list[Case]:
    return [
        (lorenz, [1.0, 1.5, 1.2, 10.0, 28.0, 8 / 3]),
        (lagged, [0.3, -0.4]),
        (invariant, [0.3, 0.4]),
        (surrounded, [0.3, 0.4]),
        (cells, [0.3, 0.4]),
        (euler(COUNT)[0], [1.0, 0.2]),
        (logistic(COUNT)[0], [0.4]),
    ]


def summed(x: Any, y: Any) -> Any:
    """A sum of all iterations."""
    total = 0.0
    for _ in range(COUNT):
        x = wengert.sin(x + y)
        total = total + x * x
    return total


def accumulated(x: Any, y: Any) -> Any:
    """A sum of the same number in each iteration, which is one sum with as many terms as there are iterations."""
    total = y
    for _ in range(COUNT):
        total = total + y
        x = wengert.sin(wengert.cos(x + y) * y)
    return x * total


def counted(x: Any, y: Any) -> Any:
    """A clock that nothing reads before the end."""
    t = y
    for _ in range(COUNT):
        t, x = t + 0.001, wengert.sin(wengert.cos(x + y) * y)
    return x - wengert.cos(t)


def recalled(x: Any, y: Any) -> Any:
    """The end reads an iteration in the middle."""
    states = [x]
    for _ in range(COUNT):
        states.append(wengert.sin(states[-1] + y) * x)
    return states[-1] + states[COUNT // 2]


def special(x: Any, y: Any) -> Any:
    """A few iterations do something else."""
    for n in range(COUNT):
        x = wengert.sin(x + y) * (y if n % 100 else 0.5)
    return x


def clocked(x: Any, y: Any) -> Any:
    """A clock has fewer levels in an iteration than what it drives."""
    t = y
    for _ in range(COUNT):
        t = t * 1.001
        x = wengert.sin(wengert.cos(x * t) + 0.1)
    return x * t


def beside(x: Any, y: Any) -> Any:
    """Two loops one after another, of which levels know nothing."""
    u = x
    for _ in range(COUNT):
        x = wengert.sin(x + y)
    for _ in range(COUNT // 2):
        u = wengert.sin(u - y)
    return x * u


def compensated(x: Any, y: Any) -> Any:
    """Each iteration has sums that keep their written order."""
    total, lost = x * 0.5, x * 1e-20
    for _ in range(COUNT):
        term = wengert.sin(total) * y - lost
        now = total + term
        lost = (now - total) - term
        total = now
    return total


def moving(xs: Numbers) -> Any:
    """Each iteration reads another number of the argument."""
    state = xs[0]
    for x in xs:
        state = wengert.tanh(state * 0.5 + x)
    return state


def irregular() -> list[Case]:
    pair = [0.3, 0.4]
    made = [(each, pair) for each in (summed, accumulated, counted, recalled, special, clocked, beside)]
    return [*made, (moving, [[math.sin(n) for n in range(COUNT)]])]


def whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flatten, "cut_of", lambda *args: None)


@pytest.mark.parametrize("case", regular(), ids=lambda case: case[0].__name__)
def test_the_program_is_that_of_all_iterations(
    case: Case, monkeypatch: pytest.MonkeyPatch, lengthened: list[int]
) -> None:
    short = compiled_and_run(*case)
    assert sum(lengthened) > 300  # groups that were never there
    assert max(short[2]) > COUNT // 3  # the logistic map has two steps an iteration
    whole(monkeypatch)
    assert short == compiled_and_run(*case)


@pytest.mark.parametrize("case", irregular(), ids=lambda case: case[0].__name__)
def test_what_is_irregular_is_lifted_whole(case: Case, monkeypatch: pytest.MonkeyPatch, lengthened: list[int]) -> None:
    made = compiled_and_run(*case)
    assert not sum(lengthened)
    whole(monkeypatch)
    assert made == compiled_and_run(*case)


def test_sums_in_their_written_order(monkeypatch: pytest.MonkeyPatch) -> None:
    short = compiled_and_run(compensated, [0.3, 0.4])
    whole(monkeypatch)
    assert short == compiled_and_run(compensated, [0.3, 0.4])
    x, y = Value(0.3), Value(0.4)
    compensated(x, y).backward()
    assert short[4] == pytest.approx([x.grad, y.grad], rel=1e-9)


def drawn(seed: int) -> Callable[..., Any]:
    """A function with a long loop of several states, some of which are clocks, sums or lagged; and with other code, and
    perhaps a shorter loop, before and after it.
    """
    draw = random.Random(seed)
    names = [*"xyz", *(f"s{n}" for n in range(draw.randint(1, 4)))]

    def term(names: list[str], depth: int = 2) -> str:
        if not depth or draw.random() < 0.2:
            return draw.choice([*names, *names, "0.5", "y", "1.25"])
        one, two = term(names, depth - 1), term(names, depth - 1)
        unary, binary = f"wengert.{draw.choice(['sin', 'cos', 'tanh'])}({one})", f"({one} {draw.choice('+-*')} {two})"
        return draw.choice([unary, unary, binary, binary, binary, f"wengert.maximum({one}, {two})"])

    def loop(count: int) -> list[str]:
        states = draw.sample(names, draw.randint(1, len(names)))
        kinds = [draw.choice(["state", "state", "state", "clock", "sum", "lag", "last"]) for _ in states]
        text = {
            "state": lambda s: f"wengert.tanh({term(names)}) * 0.9 + {term(names, 1)} * 0.1",
            "clock": lambda s: f"{s} + {draw.choice(['y', '0.001', 'x * y', '(y + y)'])}",
            "sum": lambda s: f"{s} + {term(names)}",
            "lag": lambda s: draw.choice(names),
            "last": lambda s: f"{s} if n == {count - 1} else {term(names, 1)}",
        }
        made = [f"        {s}_ = wengert.tanh({text[kind](s)})" if kind == "last" else f"        {s}_ = {text[kind](s)}"
                for s, kind in zip(states, kinds, strict=True)]  # fmt: skip
        return [f"    for n in range({count}):", *made, *(f"        {s} = {s}_" for s in states)]

    lines = ["def f(x, y, z):", *(f"    {name} = {draw.choice('xyz')} * 0.5" for name in names[3:])]
    for count in (draw.choice([0, 7, 120]), draw.randint(700, 1500), draw.choice([0, 7, 120])):
        lines += [f"    {draw.choice(names)} = {term(names)}", *(loop(count) if count else [])]
    lines.append(f"    return {' + '.join(f'wengert.sin({name})' for name in draw.sample(names, draw.randint(1, 3)))}")
    source, name, space = "\n".join(lines) + "\n", f"<loop {seed}>", {"wengert": wengert}
    linecache.cache[name] = len(source), None, source.splitlines(keepends=True), name
    exec(compile(source, name, "exec"), space)
    return space["f"]  # type: ignore[return-value]


@pytest.mark.parametrize(
    "block",  # some take many seconds
    [pytest.param(block, marks=[pytest.mark.nightly] * (block not in (8, 132))) for block in range(0, 300, 2)],
)
@pytest.mark.filterwarnings("ignore:.*runs uncompiled")
def test_random_loops(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lifted programs compute the same, to rounding: the loops of one may begin an iteration later."""
    for seed in range(block, block + 2):
        found = []
        for is_whole in (False, True):
            with monkeypatch.context() as patch:
                if is_whole:
                    whole(patch)
                compiled = wengert.compile(drawn(seed), backend="numpy")
                points = [Value(0.3), Value(0.4), Value(-0.7)]
                for _ in range(2):
                    result = compiled(*points) + points[0]  # a Value, too, where the function depends on none
                result.backward()
                reasons = [entry.fallback_reason for entry in compiled._server.entries.values()]
                found.append((reasons, result.data, [p.grad for p in points]))
        (why, value, slopes), (other_why, other_value, other_slopes) = found
        assert why == other_why, seed
        assert value == pytest.approx(other_value, rel=1e-9, nan_ok=True), seed
        assert slopes == pytest.approx(other_slopes, rel=1e-6, abs=1e-9, nan_ok=True), seed
