"""The types of numbers that compiled functions and derivatives of the collection give: those of the plain ones."""

from __future__ import annotations

import copy
import random
import warnings
from collections.abc import Callable
from typing import Any

import pytest

np = pytest.importorskip("numpy")
trials = pytest.importorskip("tests.programs.trial")
programs = pytest.importorskip("tests.programs.test_programs")

import wengert  # noqa: E402
from wengert import Value  # noqa: E402

pytestmark = pytest.mark.once  # what is recorded does not depend on which engine runs
CALLS = 3
DERIVATIVES: dict[str, Callable[[Any], Any]] = {
    "itself": lambda f: f,
    "grad": wengert.grad,
    "value_and_grad": wengert.value_and_grad,
    "jacobian": wengert.jacobian,
    "hessian": wengert.hessian,
    "hvp": wengert.hvp,
    "grad of grad": lambda f: wengert.grad(wengert.grad(f)),
}


def types_in(result: Any) -> Any:
    """The types of the numbers in a result, in its structure."""
    if isinstance(result, np.ndarray):
        return ("array", str(result.dtype), types_in(result.tolist()))
    if isinstance(result, dict):
        return {key: types_in(x) for key, x in result.items()}
    if isinstance(result, (list, tuple)):
        return (type(result).__name__, [types_in(x) for x in result])
    return "Value" if isinstance(result, Value) else type(result).__name__


def told(function: Any, given: dict[str, Any], kind: str) -> Any:
    """The types of a call's numbers, or that of its error."""
    args = list(given.values())
    if kind == "hvp":
        args.insert(1, copy.deepcopy(args[0]))
    try:
        with np.errstate(all="ignore"):
            return types_in(function(*args))
    except Exception as error:
        return ("raised", type(error).__name__)


def are_numbers(x: Any) -> bool:
    leaves = list(trials.leaves_of(x))
    return bool(leaves) and all(type(leaf) in (float, np.float64) for leaf in leaves)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("name", programs.NAMES)
def test_types(name: str) -> None:
    side = trials.Side(name)
    if side.program.effects or side.program.static or "call" not in side.program.modes:
        pytest.skip("it is not for single calls on plain numbers")
    examples = [side.arguments(f"types {n}")[0] for n in range(CALLS)]
    if not examples[0] or not are_numbers(next(iter(examples[0].values()))):
        kinds = ["itself"]
    else:
        kinds = list(DERIVATIVES)
    with programs.at_most(120), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for kind in kinds:
            plain = trials.Side(name)
            derived = DERIVATIVES[kind](plain.plain)
            compiled = wengert.compile(DERIVATIVES[kind](trials.Side(name).plain))
            for n in range(CALLS):
                random.seed(n)
                want = told(derived, plain.arguments(f"types {n}")[0], kind)
                random.seed(n)
                got = told(compiled, plain.arguments(f"types {n}")[0], kind)
                assert got == want, (kind, n)
