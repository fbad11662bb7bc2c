"""A sample of the scenarios, and the kit itself: what it would notice."""

from __future__ import annotations

import operator
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.scenarios import kit
from wengert import Value, nn

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
@pytest.mark.once  # what is compared is what the compiler sees, and what changes behind its back
def test_a_sample_of_the_scenarios() -> None:
    """In a process that has compiled nothing yet, from which each side is forked."""
    command = [sys.executable, "-m", "tests.scenarios", "--sample", "6", "--backend", "auto"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def outcome(run: Callable[..., Iterator[Any]], compile: Callable[..., Any], documented: str = "") -> kit.Outcome:
    found = kit.Scenario("file.name", run, documented)
    return kit.compared(found, "auto", kit.drive(run, kit.plainly), kit.drive(run, compile))


class Frozen(kit.Plain):
    """A function that sees nothing of what changes after its fourth call."""

    def __init__(self, function: Any, distort: Callable[[Any], Any]) -> None:
        super().__init__(function)
        self.distort, self.count = distort, 0

    def __call__(self, *args: Any, **named: Any) -> Any:
        self.count += 1
        result = super().__call__(*args, **named)
        return result if self.count <= 4 else self.distort(result)


def annealed(compile: Any) -> Iterator[Any]:
    w, settings = Value(2.0), {"rate": 1.0}
    f = compile(lambda x: w * x * settings["rate"])
    for k in range(12):
        settings["rate"] += k == 5
        yield f(0.5), w


def fails(result: Any) -> Any:
    raise ZeroDivisionError("float division by zero")


@pytest.mark.parametrize(
    ("distort", "verdict"),
    [
        (lambda result: result * (1.0 + 1e-11), "right"),
        (lambda result: result * (1.0 + 1e-8), "wrong"),
        (lambda result: result.data, "wrong"),
        (lambda result: Value(result.data), "wrong"),  # no gradient
        (lambda result: [result], "wrong"),
        (fails, "raised"),
    ],
)
def test_what_is_told_of_a_result(distort: Callable[[Any], Any], verdict: str) -> None:
    found = outcome(annealed, lambda function: Frozen(function, distort))
    assert found.verdict == verdict, found
    assert bool(found.reason) is (verdict != "right")
    assert outcome(annealed, lambda f: Frozen(f, distort), "a line").verdict in ("right", "documented")


def test_exceptions_are_compared_by_kind_and_text() -> None:
    with pytest.raises(ZeroDivisionError) as plain:
        operator.truediv(1.0, 0.0)
    said = str(plain.value)  # "float division by zero" until Python 3.13

    def divided(compile: Any) -> Iterator[Any]:
        f = compile(lambda x: 1.0 / x)
        for k in range(12):
            yield kit.attempt(f, k - 6)

    def other(error: type[Exception], text: str) -> Callable[..., Any]:
        def raising(function: Any) -> Any:
            def called(x: float) -> float:
                if x == 0:
                    raise error(text)
                return function(x)

            return called

        return raising

    assert outcome(divided, other(ZeroDivisionError, "divided by zero")).verdict == "wrong"
    assert outcome(divided, other(ZeroDivisionError, said)).verdict == "right"
    assert outcome(divided, other(ValueError, said)).verdict == "wrong"


def test_effects_are_compared() -> None:
    def logged(compile: Any) -> Iterator[Any]:
        seen: list[float] = []
        f = compile(lambda x: seen.append(x) or print("step", x) or x)
        for k in range(12):
            f(float(k))
            yield seen

    found = outcome(logged, lambda function: lambda x: x if x == 7.0 else function(x))
    assert found.verdict == "wrong"
    assert found.reason.startswith("observation 14 ")  # seen and printed, seven times each


def test_a_function_of_which_nothing_serves_is_idle() -> None:
    class Recording(kit.Plain):
        served = 0

        def report(self) -> str:
            return (
                f"f, one example: 12 calls, {self.served} of them checked against the function\n  specialization 1: ..."
            )

    class Serving(Recording):
        served = 4

    assert outcome(annealed, Recording).verdict == "idle"
    assert outcome(annealed, Serving).verdict == "right"
    assert not kit.is_idle("f, one example: 9 calls, 0 of them checked against the function\n  runs uncompiled: why")
    assert not kit.is_idle("f, a batch: 2 calls on 8 examples, 0 of them checked against the function")


def test_a_scenario_that_proves_nothing_is_unfit() -> None:
    def short(compile: Any) -> Iterator[Any]:
        f = compile(lambda x: x)
        yield from map(f, range(11))

    def constant(compile: Any) -> Iterator[Any]:
        f = compile(lambda x: x)
        yield from map(f, [1.0] * 12)

    def broken(compile: Any) -> Iterator[Any]:
        yield compile(lambda x: x).missing

    assert [outcome(run, kit.plainly).verdict for run in (short, constant, broken)] == ["unfit"] * 3


def test_descriptions_tell_kinds_apart() -> None:
    things = [1, 1.0, True, "1", None, Value(1.0), [1.0], (1.0,), {1: 1.0}, {1.0}, nn.Neuron(1), kit.Raised("E", "1")]
    described = [kit.described(thing) for thing in things]
    for k, first in enumerate(described):
        assert [kit.same(first, other) for other in described] == [j == k for j in range(len(things))]
    assert kit.same(kit.described(float("nan")), kit.described(float("nan")))
    assert not kit.same(kit.described(1e-9), kit.described(2e-9))


def test_names_are_not_given_twice() -> None:
    kit.scenario(each={"a": 1, "b": 2})(annealed)
    with pytest.raises(AssertionError, match="two scenarios"):
        kit.scenario(each={"b": 1})(annealed)
    for name in ("test_scenarios.annealed[a]", "test_scenarios.annealed[b]"):
        del kit.SCENARIOS[name]
