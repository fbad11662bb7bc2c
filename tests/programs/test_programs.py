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
        outcome = trials.trial(name)
    assert not outcome.failures, "\n".join([name, *outcome.failures])
    assert outcome.verdict in (trials.LIFTED, "engine")
    if outcome.verdict == "engine":
        assert outcome.reasons


@pytest.mark.parametrize("name", SAMPLE)
def test_a_sample_of_the_programs(name: str) -> None:
    right(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", [name for name in NAMES if name not in SAMPLE])
def test_all_other_programs(name: str) -> None:
    right(name)


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
        (without_gradient, ONE, "wrong", "gradients by parameters"),
        (noisy, ONE, "wrong", "effects"),
        (talking, ONE, "wrong", "effects"),
        (raising, ONE, "raised", "KeyError"),
        (twice, "misuse.running_mean_in_a_dict", "wrong", "effects"),
    ],
)
def test_the_harness_sees_what_is_wrong(
    monkeypatch: pytest.MonkeyPatch, change: Any, program: str, verdict: str, said: str
) -> None:
    monkeypatch.setattr(trials.wengert, "compile", lambda function, static: Wrong(function, change))
    outcome = trials.trial(program)
    assert outcome.verdict == verdict
    assert said in "\n".join(outcome.failures)


def test_the_harness_finds_nothing_wrong_with_the_function_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials.wengert, "compile", lambda function, static: Wrong(function, lambda call: call()))
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
