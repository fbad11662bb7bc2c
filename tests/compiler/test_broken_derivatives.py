"""A compiled function whose derivatives are wrong is noticed: a partial derivative is spoilt before the program is
compiled, and each call still gives the function's own results and gradients.
"""

from __future__ import annotations

import random
import re
import warnings
from collections.abc import Callable
from typing import Any

import pytest

np = pytest.importorskip("numpy")

import wengert  # noqa: E402
from tests.ops.test_table import points  # noqa: E402
from tools.qa.oracles import CONSTANT, ROWS  # noqa: E402
from wengert import Value, grad, hessian, hvp, jacobian, value_and_grad  # noqa: E402
from wengert.compiler.checks import Checks  # noqa: E402
from wengert.compiler.ir import Compute  # noqa: E402
from wengert.compiler.record.recording import Candidate  # noqa: E402

pytestmark = pytest.mark.once  # what is compared does not depend on which engine runs
CALLS = 6  # of which the first four are compared with the function, and the sixth is not
CLOSE = 1e-9
SAID = re.compile("dropped|runs uncompiled")
Function = Callable[..., Any]
Make = Callable[[Function, list[int], int], Function]


class Broken:
    """Spoils one step of each reverse sweep that is derived.

    Attributes:
        steps: how many steps the longest sweep had that could be spoilt.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, number: int, factor: float) -> None:
        self.steps = 0
        derived = Candidate.backward

        def backward(candidate: Candidate) -> Any:
            is_new = candidate._backward is None
            program = derived(candidate)
            if is_new:
                steps = [step for step in program.each_step() if isinstance(step, Compute) and not step.mask]
                self.steps = max(self.steps, len(steps))
                if number < len(steps):
                    step = steps[number]
                    step.expr = ("mul", ("const", factor), step.expr)
            return program

        monkeypatch.setattr(Candidate, "backward", backward)


def leaves_of(x: Any) -> list[Any]:
    if isinstance(x, np.ndarray):
        x = x.tolist()
    if isinstance(x, dict):
        x = list(x.values())
    return [leaf for item in x for leaf in leaves_of(item)] if isinstance(x, (list, tuple)) else [x]


def seen(result: Any, of: list[Value]) -> tuple[list[type], list[float], list[float]]:
    """The types and numbers of a result, and the gradients of a weighted sum of it."""
    found = leaves_of(result)
    values = [x for x in found if isinstance(x, Value)]
    for w in of:
        w.grad = 0.0
    if values:
        wengert.dot(values, [1.0 + 0.37 * n for n in range(len(values))]).backward()
    kinds = [Value if isinstance(x, Value) else type(x) for x in found]
    return kinds, [x.data if isinstance(x, Value) else x for x in found], [w.grad for w in of]


def near(got: list[float], want: list[float]) -> bool:
    return got == pytest.approx(want, rel=CLOSE, abs=CLOSE * (1.0 + max(map(abs, want), default=0.0)), nan_ok=True)


def named(count: int, function: Function) -> Function:
    """A function of so many arguments, which have names, that calls one of any number."""
    names = ", ".join(["v", *[f"x{n}" for n in range(count)]][-count:])
    made: Function = eval(f"lambda {names}: function({names})", {"function": function})
    return made


# ------------------------------------------------------------------------------------------------ what is spoilt

rate = Value(0.9)


def decay(x: Any, v: Any) -> Any:
    """A loop whose parameter is read after it."""
    for _ in range(12):
        v = v * 0.9
        x = x + 0.1 * v * v
    return rate * x * x


def oscillator(x: Any, v: Any) -> Any:
    """A loop that reads a parameter in each turn."""
    for _ in range(12):
        x, v = x + 0.1 * v, v - 0.1 * rate * x
    return x * x * x + v * v


LOOPS = [decay, oscillator]

# ------------------------------------------------------------------------------------------------ ways of serving

WAYS: dict[str, tuple[str, Make]] = {
    "call": ("", lambda f, by, n: f),
    "Values": ("values", lambda f, by, n: f),
    "prepare": ("prepare", lambda f, by, n: f),
    "the recorded example": (" recorded", lambda f, by, n: f),
    "several at the recorded example": (
        " recorded",
        lambda f, by, n: named(n, lambda *xs: [f(*xs), 1.0, f(*xs) * 2.0]),
    ),
    "grad of Values at the recorded example": ("values recorded", lambda f, by, n: grad(f, tuple(by))),
    "sum at the recorded example": ("sum recorded", lambda f, by, n: f),
    "several": ("", lambda f, by, n: named(n, lambda *xs: [f(*xs), {"twice": f(*xs) * f(*xs)}, 1.0])),
    "array": ("", lambda f, by, n: named(n, lambda *xs: np.array([f(*xs), f(*xs) + 1.0]))),
    "several of Values": ("values", lambda f, by, n: named(n, lambda *xs: (f(*xs), f(*xs) * 2.0))),
    "mean": ("mean", lambda f, by, n: f),
    "sum": ("sum", lambda f, by, n: f),
    "grad": ("", lambda f, by, n: grad(f, tuple(by))),
    "value_and_grad": ("", lambda f, by, n: value_and_grad(f, by[0])),
    "jacobian": ("", lambda f, by, n: jacobian(named(n, lambda *xs: [f(*xs), f(*xs) * f(*xs)]), tuple(by))),
    "hessian": ("", lambda f, by, n: hessian(f, by[0])),
    "hvp": ("hvp", lambda f, by, n: hvp(lambda x, xs: f(*[x if k == by[0] else y for k, y in enumerate(xs)]))),
    "grad of grad": ("", lambda f, by, n: grad(grad(f, by[0]), by[-1])),
    "grad of Values": ("values", lambda f, by, n: grad(f, tuple(by))),
    "sum of grad": ("sum", lambda f, by, n: grad(f, by[0])),
}


def rows_of(row: Any) -> tuple[list[list[float]], list[int]]:
    """Numbers for the arguments of a row, or of another function, and the arguments by which it has derivatives."""
    if row in LOOPS:
        rng = random.Random(row.__name__)
        return [[rng.uniform(0.2, 1.2) for _ in range(2)] for _ in range(CALLS)], [0, 1]
    by = [n for n in range(len(next(points(row, 1)))) if (row.name, n) not in CONSTANT]
    return list(points(row, CALLS, seed=5)), by


def spoilt(monkeypatch: pytest.MonkeyPatch, row: Any, way: str, number: int, factor: float) -> tuple[int, bool]:
    """Make the calls with one step spoilt, each of which must give what the function gives; return how many steps
    could have been spoilt, and whether a warning said so.
    """
    how, make = WAYS[way]
    how, is_recorded = how.removesuffix(" recorded"), how.endswith(" recorded")
    several, by = rows_of(row)
    ws = [Value(1.0 + 1e-3 * n) for n in range(len(several[0]))] + [rate] * (row in LOOPS)

    def of_parameters(*xs: Any) -> Any:
        return row(*[w * x if n in by else x for n, (w, x) in enumerate(zip(ws, xs, strict=False))])

    count = len(several[0])
    f = named(count, of_parameters)
    with monkeypatch.context() as patch, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        broken = Broken(patch, number, factor)
        if is_recorded:  # and no call that is served
            patch.setattr(Checks, "single", lambda self, entry, served_by, own, result: result)
            patch.setattr(Checks, "batch", lambda self, entry, shares, arguments, own: True)
            patch.setattr(Checks, "matches", lambda self, entry, specialization, arguments, row, result: True)
        plain = make(f, by, count)
        compiled = wengert.compile(plain, backend="native" if row in LOOPS else "numpy")
        if how == "prepare" or is_recorded:
            several = several[:1] * CALLS
        if how == "prepare":
            compiled.prepare(*several[0])
        for xs in several:
            given: list[Any] = [xs[by[0]], 0.7, xs] if how == "hvp" else [*xs]
            of = list(ws)
            if how in ("mean", "sum"):
                columns = [list(column) for column in zip(*several, strict=True)]
                got = seen(getattr(compiled, how)(*columns), of)
                want = seen(getattr(wengert, how)([plain(*each) for each in several]), of)
            else:
                if how == "values":
                    given = [Value(x) if n in by else x for n, x in enumerate(given)]
                    of += [x for x in given if isinstance(x, Value)]
                got, want = seen(compiled(*given), of), seen(plain(*given), of)
            assert got[0] == want[0] or how in ("mean", "sum")  # which always give a Value
            assert near(got[1], want[1]), "numbers"
            assert near(got[2], want[2]), "gradients"
    return broken.steps, any(SAID.search(str(each.message)) for each in caught)


def all_spoilt(monkeypatch: pytest.MonkeyPatch, row: Any, way: str, most: int) -> int:
    """Spoil steps of a program, one each time: made 0, and half as much again. Return how many warned."""
    steps, _ = spoilt(monkeypatch, row, way, 1 << 30, 1.0)
    chosen = sorted({k * (steps - 1) // max(most - 1, 1) for k in range(most)}) if steps else []
    return sum([spoilt(monkeypatch, row, way, n, (1.5, 0.0)[k % 2])[1] for k, n in enumerate(chosen)])


@pytest.mark.sampled(8)
@pytest.mark.parametrize("way", [way for way in WAYS if way != "hessian"])  # compiling one may take minutes
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_spoilt_derivative_is_noticed(monkeypatch: pytest.MonkeyPatch, row: Any, way: str) -> None:
    all_spoilt(monkeypatch, row, way, 3)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("loop", LOOPS)
def test_in_a_loop(monkeypatch: pytest.MonkeyPatch, loop: Any, way: str) -> None:
    pytest.importorskip("llvmlite", reason="machine code is made by llvmlite")
    assert all_spoilt(monkeypatch, loop, way, 4), "else nothing was spoilt"


@pytest.mark.parametrize("way", WAYS)
def test_what_is_noticed_is_said(monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    tanh = next(row for row in ROWS if row.name == "tanh")
    assert spoilt(monkeypatch, tanh, way, 0, 1.5)[1]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("lost", [0, 1])
def test_a_parameter_that_is_lost_is_noticed(monkeypatch: pytest.MonkeyPatch, way: str, lost: int) -> None:
    """The program has its number, and no derivative at all: it is not among the operands of the result."""
    lift = Candidate.lift

    def forgets(candidate: Candidate) -> Any:
        is_new = not candidate.is_lifted
        lifted = lift(candidate)
        if is_new:
            candidate.own = np.delete(candidate.own, lost)
        return lifted

    monkeypatch.setattr(Candidate, "lift", forgets)
    mul = next(row for row in ROWS if row.name == "mul")
    _, is_said = spoilt(monkeypatch, mul, way, 1 << 30, 1.0)
    assert is_said == (way not in ("hessian", "hvp")), "which are 0"


@pytest.mark.parametrize("metric", [None, "auto"])
def test_fit(monkeypatch: pytest.MonkeyPatch, metric: str | None) -> None:
    """A program with a spoilt step is not trained with."""

    def trained(backend: str) -> list[float]:
        model = wengert.nn.MLP(2, [3, 1], rng=random.Random(3))
        X, Y = [[0.1 * n, 0.3 - 0.05 * n] for n in range(12)], [0.02 * n for n in range(12)]
        optimizer = wengert.optim.SGD(model, lr=0.1)
        wengert.fit(
            model, wengert.losses.mse, X, Y, optimizer, 4, 4, metric=metric, seed=1, progress=False, backend=backend
        )
        return [p.data for p in model.parameters()]

    want = trained("eager")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        broken = Broken(monkeypatch, 1 << 30, 1.0)
        assert near(trained("auto"), want)
        assert broken.steps
        for number in range(broken.steps):
            with monkeypatch.context() as patch:
                Broken(patch, number, 1.5)
                assert near(trained("auto"), want), number


def stepped(steps: int) -> Any:
    """Steps of Verlet's method, whose terms cancel: what is added up grows as 2.4 to the power of the steps."""

    def function(xs: Any) -> Any:
        before, x = xs[0], xs[1]
        for _ in range(steps):
            before, x = x, 2.0 * x - before - xs[2] * x * 0.01
        return x

    return function


@pytest.mark.once  # what is compared does not depend on which engine runs
@pytest.mark.parametrize("error", [2.0, 0.0, 1.001, 1.0 + 1e-6])
@pytest.mark.parametrize("steps", [20, 60])
@pytest.mark.parametrize("of", ["grad", "value_and_grad", "jacobian"])
def test_faults_where_digits_cancel_along_the_way_are_noticed(
    of: str, steps: int, error: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    from wengert.compiler.backends.numpy import NumPyKernel

    run = NumPyKernel.forward

    def wrong(*args: Any) -> Any:
        outputs = run(*args)
        spoilt = np.array(outputs["out"])
        spoilt[..., -1] *= error
        return {**outputs, "out": spoilt}

    function = stepped(steps)
    both = (lambda xs: [function(xs), 1e-6 * function(xs)]) if of == "jacobian" else function
    compiled = wengert.compile(getattr(wengert, of)(both), backend="numpy")
    monkeypatch.setattr(NumPyKernel, "forward", wrong)
    with pytest.warns(UserWarning, match="the result of the array program is"):
        assert [compiled([0.5, 0.75, 0.25 + n]) for n in range(3)]
