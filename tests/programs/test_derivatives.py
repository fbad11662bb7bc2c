"""Derivatives of the collection's programs, as they stand: compared with difference quotients of the programs."""

from __future__ import annotations

import math
import random
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import wengert
from wengert import Value
from wengert.errors import OperationError

np = pytest.importorskip("numpy")
trials = pytest.importorskip("tests.programs.trial")

from wengert.derivatives import Numbers  # noqa: E402

pytestmark = [
    pytest.mark.once,  # what is recorded does not depend on which engine runs
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),  # a program leaves its file open
]

STEP, NEAR = 2e-6, 1e-3
DETACHED = "it takes the numbers out of the Values, or copies these"
BRANCHES = "with Values it takes another branch: it asks for types, compares by identity, or catches their errors"
CACHED = "Values, which the first call of a derivative passes, are other keys"
OTHERS = {
    "control.copies_of_lists_and_objects": DETACHED,
    "learning.adversarial_losses": DETACHED,
    "misuse.deep_copy_of_an_argument": DETACHED,
    "misuse.shallow_copy_of_a_number": DETACHED,
    "misuse.stopped_gradients": DETACHED,
    "misuse.through_a_pickle": DETACHED,
    "natural.epidemic": DETACHED,
    "misuse.dtype_of_an_array": BRANCHES,
    "misuse.duck_typing": BRANCHES,
    "misuse.equal_numbers": BRANCHES,
    "misuse.is_it_a_float": BRANCHES,
    "misuse.not_equal": BRANCHES,
    "misuse.numbers_abstract_classes": BRANCHES,
    "misuse.single_dispatch": BRANCHES,
    "misuse.type_of_a_number": BRANCHES,
    "misuse.roots_of_negative_numbers": "of a negative Value a root is nan, of a number it is complex",
    "arguments.a_nest_walked_by_type": "it asks for types, and raises for a Value",
    "misuse.through_json": "the text of a number has no derivative",
}


def flat(x: Any) -> list[float]:
    """List the numbers of a result."""
    if isinstance(x, dict):
        x = list(x.values())
    if isinstance(x, np.ndarray):
        x = x.tolist()
    if isinstance(x, (list, tuple)):
        return [number for item in x for number in flat(item)]
    return [] if x is None else [float(x.data if isinstance(x, Value) else x)]


class Case:
    """A program, and the arguments to differentiate with respect to."""

    def __init__(self, name: str) -> None:
        self.side = trials.Side(name)
        example, kinds = self.side.arguments("7")[0], self.side.program.arguments
        self.by = [n for n, x in example.items() if trials.values_in([kinds[n].values(x)]) and self._are_numbers(x)]
        self.argnums = tuple([[*example].index(n) for n in self.by])

    def _are_numbers(self, x: Any) -> bool:
        try:
            return bool(Numbers(x).leaves)
        except TypeError:
            return False

    def arguments(self, seed: str, moved: float = 0.0) -> list[Any]:
        """Draw arguments, and move their numbers along a direction."""
        example = self.side.arguments(seed)[0]
        for name in self.by if moved else ():
            numbers = Numbers(example[name])
            steps = [moved * STEP * x for x in self.direction(numbers.leaves)]
            example[name] = numbers.unflatten([x + step for x, step in zip(numbers.leaves, steps, strict=True)])
        random.seed(seed)
        np.random.seed(1)
        return list(example.values())

    def direction(self, numbers: list[float]) -> list[float]:
        return [math.cos(1.0 + n) * max(abs(x), 1.0) for n, x in enumerate(numbers)]

    def compare(self, jacobian: Callable[..., Any], seed: str) -> bool:
        """Compare a Jacobian along the direction; False if there is nothing to compare with."""
        try:
            results = [np.array(flat(self.side.plain(*self.arguments(seed, x)))) for x in (-1, -0.5, 0, 0.5, 1)]
        except (ArithmeticError, TypeError, ValueError):
            return False
        if not results[0].size or len({x.shape for x in results}) > 1:
            return False
        matrix = np.array(flat(jacobian(*self.arguments(seed)))).reshape(len(results[0]), -1)
        example = self.side.arguments(seed)[0]
        got = matrix @ np.array([x for name in self.by for x in self.direction(Numbers(example[name]).leaves)])
        low, half_low, middle, half_high, high = results
        want, halved, bend = (high - low) / (2 * STEP), (half_high - half_low) / STEP, high - 2 * middle + low
        size = NEAR * (np.maximum(np.abs(want), np.abs(got)) + 1e-3 * (1.0 + np.abs(middle)))
        is_smooth = (np.abs(want - halved) <= size) & (np.abs(bend) / (2 * STEP) <= size)
        assert (np.abs(want - got) <= size)[is_smooth].all(), (got, want)
        return bool(is_smooth.any())


INDEX = "it differentiates with respect to whole numbers, which choose or count"
NOT_COMPILED = OTHERS | {
    "arguments.nested_tuple": INDEX,
    "arguments.values_in_a_nest": INDEX,
    "finance.early_repayment": INDEX,
    "learning.temporal_difference": INDEX,
    "misuse.complex_numbers": "its number becomes part of a complex one",
    "misuse.signed_zeros": "it jumps between 0.0 and -0.0",
    "records.records_that_hold_tables": INDEX,
    "misuse.sign_by_its_text": "the text of a number is that of a Value here",
    "misuse.through_float_and_array": "its number becomes an np.float64",
}
FURTHER = {  # derivatives with more specializations than the program, and why
    "surroundings.cached_table": CACHED,
    "surroundings.memo_of_numbers_outside": CACHED,
}


def raises_itself(case: Case, seed: str) -> bool:
    """Return True if the program raises for its arguments, or is one whose numbers are taken out, which may be said."""
    try:
        case.side.plain(*case.arguments(seed))
    except Exception:
        return True
    return bool(case.side.program.engine)


def specializations(compiled: Any) -> int:
    """How many there are, with the one that the next call compiles."""
    entries = compiled._server.entries.values()
    return sum([len(entry.specializations) + (entry.candidate is not None) for entry in entries])


@pytest.mark.sampled(25)
@pytest.mark.parametrize("name", trials.collection())
def test_derivatives_have_the_specializations_of_the_programs(name: str) -> None:
    """And are compiled where the program is; also where it changes its arguments, of which a derivative gets copies."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        case = Case(name)
        if case.side.program.effects or not case.by:
            return
        static = case.side.program.static
        derivative = wengert.jacobian(case.side.plain, case.argnums)
        program, compiled = [
            wengert.compile(each, static=static, backend="numpy") for each in (case.side.plain, derivative)
        ]
        for seed in range(16):
            for each in (program, compiled):
                try:
                    each(*case.arguments(str(seed)))
                except Exception:
                    if not (each is program or name in NOT_COMPILED or raises_itself(case, str(seed))):
                        raise
        if specializations(program) and name not in NOT_COMPILED:
            assert specializations(compiled) or case.side.program.engine
            assert (specializations(compiled) <= specializations(program)) is (name not in FURTHER)


@pytest.mark.sampled(25)
@pytest.mark.parametrize("name", trials.collection())
def test_derivatives_of_the_programs(name: str) -> None:
    """Uncompiled and compiled, at several points. A program that the engine runs as its numbers are taken out may say
    so.
    """
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        case = Case(name)
        if case.side.program.effects or not case.by:
            return
        jacobian = wengert.jacobian(case.side.plain, case.argnums)
        for derivative in (jacobian, wengert.compile(jacobian, static=case.side.program.static)):
            try:
                for seed in "789":
                    case.compare(derivative, seed)
            except OperationError:  # a number leaves what is recorded
                assert case.side.program.engine or name == "misuse.signed_zeros"  # which jumps there
            except (AssertionError, TypeError):
                assert name in OTHERS
                return
        assert name not in OTHERS


@pytest.mark.sampled(25)
@pytest.mark.parametrize("name", trials.collection())
def test_gradients_and_second_derivatives_of_the_programs(name: str) -> None:
    """Of those with one number as a result: gradients are rows of the Jacobian, which is compared above; products with
    the Hessian are compared with difference quotients of gradients.
    """
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        case = Case(name)
        if case.side.program.effects or not case.by or case.argnums[0] != 0 or name in NOT_COMPILED:
            return
        static = case.side.program.static
        ways = [wengert.value_and_grad(case.side.plain), wengert.grad(case.side.plain), wengert.hvp(case.side.plain)]
        for value_and_grad, grad, hvp in (ways, [wengert.compile(each, static=static) for each in ways]):
            for seed in "789":
                example = case.arguments(seed)
                if len({*map(id, example)}) < len(example):  # a derivative is with respect to one of them
                    return
                try:
                    results = [flat(case.side.plain(*case.arguments(seed))) for _ in range(2)]
                    slopes = [gradient_at(case, ways[1], seed, x) for x in (-1, -0.5, 0, 0.5, 1)]
                    value, gradient = value_and_grad(*case.arguments(seed))
                except (ArithmeticError, TypeError, ValueError):
                    return  # it returns several numbers, raises for these, or takes its numbers out
                if results[0] != results[1] or not np.isfinite(Numbers(example[0]).leaves).all():
                    return  # it gives nan, changes what it reads, or cannot be moved
                low, half_low, slope, half_high, high = slopes
                assert flat(value) == pytest.approx(results[0], rel=1e-9)
                for each in (gradient, grad(*case.arguments(seed))):
                    assert flat(each) == pytest.approx(slope, rel=1e-7, abs=1e-9, nan_ok=True)
                numbers = Numbers(example[0])
                along = numbers.unflatten(case.direction(numbers.leaves))
                got = np.array(flat(hvp(example[0], along, *example[1:])))
                want, halved = (high - low) / (2 * STEP), (half_high - half_low) / STEP
                bend = (high - 2 * slope + low) / (2 * STEP)
                size = NEAR * (np.maximum(np.abs(want), np.abs(got)) + 1e-2 * (1.0 + np.abs(slope)))
                is_smooth = (np.abs(want - halved) <= size) & (np.abs(bend) <= size) & np.isfinite(got)
                assert (np.abs(want - got) <= size)[is_smooth].all(), (got, want)


def gradient_at(case: Case, gradient: Callable[..., Any], seed: str, moved: float) -> Any:
    """Return a gradient with respect to the first argument, which alone is moved along its direction."""
    arguments = case.arguments(seed)
    numbers = Numbers(arguments[0])
    steps = [moved * STEP * x for x in case.direction(numbers.leaves)]
    arguments[0] = numbers.unflatten([x + step for x, step in zip(numbers.leaves, steps, strict=True)])
    return np.array(flat(gradient(*arguments)))
