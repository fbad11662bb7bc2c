"""The collection of users' programs, compiled and as they stand: a sample here, all of it by tools.qa.programs."""

from __future__ import annotations

import contextlib
import inspect
import random
import signal
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

np = pytest.importorskip("numpy")
trials = pytest.importorskip("tests.programs.trial")
command = pytest.importorskip("tools.qa.programs")

pytestmark = [
    pytest.mark.once,  # what is recorded and lifted does not depend on which engine runs
    pytest.mark.filterwarnings("ignore:os.fork"),  # by libraries that other tests have loaded
]
NAMES: list[str] = trials.collection()
SAMPLE = sorted(random.Random(0).sample(NAMES, min(60, len(NAMES))))
ONE = "physics.damped_pendulum"


@contextlib.contextmanager
def at_most(seconds: int) -> Iterator[None]:
    """Raise TimeoutError in what takes longer, where a system has alarms."""

    def alarm(*_: Any) -> None:
        raise TimeoutError(f"not done after {seconds} seconds")

    if not hasattr(signal, "SIGALRM"):
        yield
        return
    before = signal.signal(signal.SIGALRM, alarm)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def right(name: str) -> None:
    with at_most(60):
        outcome = trials.trial(name, sets=2, batches=(2, 64))
    assert not outcome.failures, "\n".join([name, *outcome.failures])
    assert outcome.verdict in (trials.LIFTED, "engine")
    if outcome.verdict == "engine":
        assert outcome.reasons


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", SAMPLE)
def test_a_sample_of_the_programs(name: str) -> None:
    right(name)


@pytest.mark.parametrize("name", ["statistics.beta_binomial", pytest.param(ONE, marks=pytest.mark.nightly)])
def test_a_back_end_that_is_named(name: str) -> None:
    """The programs run by it, those with functions that C lacks too."""
    pytest.importorskip("llvmlite", reason="machine code is made by llvmlite")
    outcome = trials.trial(name, "native")
    assert (outcome.verdict, outcome.failures, outcome.others) == (trials.LIFTED, [], [])


# ------------------------------------------------------------------------------------------------ the harness itself


class Wrong:
    """Stands in for a compiled function: every call of the plain one goes through `change`."""

    def __init__(self, function: Callable[..., Any], change: Callable[[Callable[[], Any]], Any]) -> None:
        self.function, self.change = function, change

    def __call__(self, *args: Any, **named: Any) -> Any:
        return self.change(lambda: self.function(*args, **named))

    def __getattr__(self, name: str) -> Any:
        if name == "report":
            return lambda: "f runs uncompiled: it is the function itself"

        def batch(*args: Any, **named: Any) -> Any:
            columns = dict(zip(inspect.signature(self.function).parameters, args, strict=False)) | named
            count = len(next(iter(columns.values())))
            rows = [{key: column[n] for key, column in columns.items()} for n in range(count)]
            return trials.combined([self.function(**row) for row in rows], name)

        return lambda *args, **named: self.change(lambda: batch(*args, **named))


def scaled(call: Callable[[], Any]) -> Any:
    made = call()
    return made * (1 + 1e-8) if isinstance(made, trials.Value) else made


def without_gradient(call: Callable[[], Any]) -> Any:
    made = call()
    return trials.Value(made.data) if isinstance(made, trials.Value) else made


def twice(call: Callable[[], Any]) -> Any:
    call()
    return call()


def noisy(call: Callable[[], Any]) -> Any:
    random.random()
    return call()


def talking(call: Callable[[], Any]) -> Any:
    print("once more")
    return call()


def raising(call: Callable[[], Any]) -> Any:
    raise KeyError("x")


@pytest.mark.parametrize(
    ("change", "program", "verdict", "said"),
    [
        (scaled, ONE, "wrong", "result"),
        (without_gradient, ONE, "wrong", "gradients of parameters"),
        (noisy, ONE, "wrong", "effects"),
        (talking, ONE, "wrong", "effects"),
        (raising, ONE, "raised", "KeyError"),
        (twice, "misuse.running_mean_in_a_dict", "wrong", "effects"),
    ],
)
def test_the_harness_sees_what_is_wrong(
    monkeypatch: pytest.MonkeyPatch, change: Any, program: str, verdict: str, said: str
) -> None:
    monkeypatch.setattr(trials.wengert, "compile", lambda function, **_: Wrong(function, change))
    outcome = trials.trial(program)
    assert outcome.verdict == verdict
    assert said in "\n".join(outcome.failures)


def test_the_harness_finds_nothing_wrong_with_the_function_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials.wengert, "compile", lambda function, **_: Wrong(function, lambda call: call()))
    outcome = trials.trial("misuse.running_mean_in_a_dict")
    assert (outcome.verdict, outcome.failures) == ("engine", [])


def _work(name: str) -> str:
    if name == "sleeps":
        time.sleep(60.0)
    if name == "ends":
        raise SystemExit(3)
    return name.upper()


def test_a_program_that_hangs_or_dies_is_counted() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # a fork, and other tests have left threads
        found = dict(command.at_once(_work, ["a", "sleeps", "ends", "b"], 2, 1.0))
    assert found == {"a": "A", "sleeps": "hung", "ends": "died", "b": "B"}


def test_the_cost_of_calls_is_measured(capsys: pytest.CaptureFixture[str]) -> None:
    found = command.cost(ONE)
    assert set(found) == {"call", "map", "mean"}
    assert all(compiled > 0 and plain > 0 for compiled, plain in found.values())
    assert command.cost("misuse.printing") == "has effects"


@pytest.mark.parametrize(
    ("verdicts", "holds"),
    [
        (["lifted"] * 9 + ["engine"], True),
        (["lifted"] * 8 + ["engine"] * 2, False),
        (["lifted"] * 20 + ["wrong"], False),
        (["lifted"] * 20 + ["hung"], False),
    ],
)
def test_what_the_command_demands(verdicts: list[str], holds: bool, capsys: pytest.CaptureFixture[str]) -> None:
    outcomes = [trials.Outcome(f"field.name{k}", verdict, ["a reason"]) for k, verdict in enumerate(verdicts)]
    assert command.told(outcomes, whole=True) is holds
    table = capsys.readouterr().out.splitlines()
    row = next(line.split() for line in table if line.startswith("all "))
    assert [int(n) for n in row[1:]] == [verdicts.count(v) for v in "lifted engine wrong raised hung died".split()]


def test_rounding_is_allowed_for_and_no_more() -> None:
    """A sum in which everything but the last digits cancels: as far as rounding goes, not relative to what is left."""
    a, b = trials.Value(1e8), trials.Value(0.3)
    seen = trials.Seen()
    seen.root = (a + b) - a
    result, (by_a, by_b), _ = trials.rounding(seen, [a, b])
    assert 1e-6 < result < 1e-4
    assert by_a == pytest.approx(2e-13)
    assert by_b == pytest.approx(1e-13)
    assert trials.near(1.0 + 5e-10, 1.0)
    assert not trials.near(1.0 + 2e-9, 1.0)
    assert not trials.near(1.1e-30, 1e-30)
    assert trials.near(float("nan"), float("nan"))
    assert not trials.near(float("inf"), -float("inf"))


def test_what_is_left_behind_can_be_told_apart() -> None:
    class Thing:
        def __init__(self, x: Any) -> None:
            self.x = x

    same = [
        lambda: [1, 2.0, "a", None, (True, {"k": trials.Value(1.0)})],
        lambda: Thing(np.arange(3)),
        lambda: random.Random(3),
        lambda: iter([1, 2]),
        lambda: {1, 2, "x"},
    ]
    descriptions = [trials.described(make()) for make in same]
    assert all(trials.alike(trials.described(make()), first) for make, first in zip(same, descriptions, strict=True))
    for k, first in enumerate(descriptions):
        assert not any(trials.alike(other, first) for other in descriptions[:k])
    assert not trials.alike(trials.described(trials.Value(1.0)), trials.described(1.0))
    assert not trials.alike(trials.described(1), trials.described(True))
    assert not trials.alike(trials.described([1.0, 2.0]), trials.described([1.0]))
