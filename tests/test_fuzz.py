"""Random programs: the first seeds of `fuzz.py`, which runs at length as a command; what they are."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

import wengert
from tests.random_programs import LARGE, MARGIN, OPERATIONS, ProgramStep, RandomProgram, programs, random_program
from tools.qa import fuzz
from wengert import Value
from wengert.ops import BUILT_IN, BY_NAME, TABLE

BLOCK = 500

# ------------------------------------------------------------------------------------- against oracles


@pytest.mark.torch
@pytest.mark.mpmath
@pytest.mark.sampled(3)
@pytest.mark.parametrize("first", range(0, 3000, BLOCK))
def test_programs_in_pytorch(first: int) -> None:
    figures, wrong = fuzz.fuzz(fuzz.by_torch(), range(first, first + BLOCK), fuzz.torch_table(), fuzz.by_mpmath())
    assert wrong == []
    excused = figures["differences that are the oracle's error"]
    assert excused == 0 or "digamma" in figures["operations that all of these have"]  # its derivative: see fuzz.fuzz
    assert figures["operations"] == len(OPERATIONS), "a row is missing in fuzz.torch_table"


@pytest.mark.mpmath
@pytest.mark.sampled(2)
@pytest.mark.parametrize("first", range(0, 1000, BLOCK))
def test_programs_in_mpmath(first: int) -> None:
    figures, wrong = fuzz.fuzz(fuzz.by_mpmath(), range(first, first + BLOCK), fuzz.dual_table())
    assert wrong == []
    assert figures["operations"] == len(OPERATIONS), "a row is missing in fuzz.dual_table"
    assert figures["worst difference"] < 1e-11


@pytest.mark.slow
def test_the_same_bits_under_every_hash_seed() -> None:
    """Two of them: a hundred are a command, `python -m tools.qa.fuzz --against hashes --count 100`."""
    digests = fuzz.hash_seeds(range(2), programs=10)
    assert len(digests) == 1, digests


@pytest.mark.parametrize("name", OPERATIONS)
def test_a_gradient_that_is_off_by_a_millionth_is_found(name: str) -> None:
    def off(*xs: Any) -> Any:
        y = BY_NAME[name](*xs)
        for x in xs:
            if isinstance(x, Value):
                y = y + 1e-6 * (x - wengert.stop_gradient(x))
        return y

    names = [name, "add", "mul"]
    errors = []
    for seed in range(40):
        program = random_program(seed, names, inputs=2, steps=8)
        errors.append(fuzz.error(program.value_and_gradient({name: off}), program.value_and_gradient()))
    assert max(errors) > fuzz.TOLERANCE


# ------------------------------------------------------------------------------------- what programs are


def test_every_operation_of_the_table_comes_up() -> None:
    without = {"leaf", "pick", "by hand", "compiled", "lt", "le", "gt", "ge", "eq", "ne"}
    assert set(OPERATIONS) == {row.name for row in TABLE[:BUILT_IN]} - without
    drawn: Counter[str] = Counter()
    for seed in range(500):
        drawn.update(step.operation for step in random_program(seed).steps)
    assert set(drawn) == set(OPERATIONS)
    assert min(drawn.values()) > 30


def test_programs_keep_to_their_rules() -> None:
    kinked = {"relu": 0, "abs": 0, "sign": 0, "maximum": 0, "minimum": 0}
    for seed in range(500):
        program = random_program(seed, inputs=3, steps=30)
        assert 1 <= len(program.point) <= 3
        assert len(program.steps) + len(program.left_out) <= 30
        values = list(program.point)
        for name, operands in program.steps:
            assert any(type(x) is int for x in operands)
            xs = [values[x] if type(x) is int else x for x in operands]
            values.append(BY_NAME[name](*xs))
            assert abs(values[-1]) <= LARGE
            if name in kinked:
                kinked[name] += 1
                assert len(set(operands)) == 1 < len(operands) or abs(xs[0] - (xs[1:] or [0.0])[0]) >= MARGIN
        used = {x for step in program.steps for x in step.operands if type(x) is int}
        assert used | set(program.results) >= set(range(len(program.point), len(values)))  # nothing is in vain
    assert min(kinked.values()) > 50


def test_a_seed_is_a_program() -> None:
    assert random_program(5) == random_program(5) != random_program(6)
    assert random_program(5, ["tanh"]).steps[0].operation == "tanh"


def test_what_is_printed_runs() -> None:
    for seed in range(100):
        program = random_program(seed)
        names: dict[str, Any] = {"wengert": wengert}
        exec(str(program), names)
        leaves = [Value(x) for x in program.point]
        result = names["program"](*leaves)
        result.backward()
        assert (result.data, [x.grad for x in leaves]) == program.value_and_gradient()
    assert str(RandomProgram((2.0,), (ProgramStep("pow", (0, -2.0)), ProgramStep("sub", (-1.0, 1))), (2,))) == (
        "def program(x0=2.0):\n    v1 = x0 ** (-2.0)\n    v2 = (-1.0) - v1\n    return v2"
    )


# ------------------------------------------------------------------------------------- for Hypothesis


def shortest(wrong: dict[str, Any], names: list[str]) -> RandomProgram:
    """What Hypothesis shrinks a program to whose value is another one with a wrong operation."""
    hypothesis = pytest.importorskip("hypothesis")
    quiet = hypothesis.settings(database=None, derandomize=True, max_examples=100, deadline=None)

    def differs(program: RandomProgram) -> bool:
        return fuzz.error(program.value_and_gradient(wrong), program.value_and_gradient()) > fuzz.TOLERANCE

    found: RandomProgram = hypothesis.find(programs(names), differs, settings=quiet)
    return found


@pytest.mark.once  # what is tried is a tool
def test_what_fails_shrinks_to_the_shortest_program() -> None:
    slope = shortest({"tanh": lambda x: x.tanh() + 0.5 * (x - x.detach())}, ["mul", "tanh", "add"])
    assert str(slope) == "def program(x0=0.0):\n    v1 = wengert.tanh(x0)\n    return v1"


def test_hypothesis_draws_programs_of_every_operation() -> None:
    hypothesis = pytest.importorskip("hypothesis")
    drawn: Counter[str] = Counter()

    @hypothesis.settings(database=None, derandomize=True, max_examples=100, deadline=None)
    @hypothesis.given(programs())
    def draw(program: RandomProgram) -> None:
        drawn.update(step.operation for step in program.steps)
        assert fuzz.bits(program.value_and_gradient()) == fuzz.bits(program.value_and_gradient(fuzz.ROWS))

    draw()
    assert len(drawn) > 0.8 * len(OPERATIONS)


def test_an_operation_of_ones_own() -> None:
    softsign = wengert.op(
        "softsign",
        value=lambda x: x / (1 + abs(x)),
        partials=lambda out, x: 1 / ((1 + abs(x)) * (1 + abs(x))),
    )
    assert softsign(1.0) == 0.5
    seen = 0
    for seed in range(100):
        program = random_program(seed, ["softsign", "mul", "tanh"])
        seen += "softsign(" in str(program)
        by_formula = program.value_and_gradient({"softsign": lambda x: x / (1 + abs(x))})
        assert fuzz.error(program.value_and_gradient(), by_formula) < fuzz.TOLERANCE
    assert seen > 50
