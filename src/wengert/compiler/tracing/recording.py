"""A recording: one specialization of a function, as an array program that runs where its guards hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from wengert.compiler.backends import Kernel, all_finite
from wengert.compiler.fused import gather
from wengert.compiler.lifting import Lifted
from wengert.compiler.tracing.recorder import Guard
from wengert.compiler.tracing.surroundings import Surroundings
from wengert.compiler.tracing.tracers import HOLDS
from wengert.ops import coerce

__all__ = ["Guards", "Recording", "Result"]

AGREE = 1e-9  # how closely a recording must follow the function, relative to each number
NUDGE = 1e-11  # more than the rounding of thousands of operations, and less than what anyone means to change
WHAT = ("result", "derivative")


class Guards:
    """The guards of a recording, those of one kind evaluated together.

    Args:
        guards: the comparisons.
        sides: for each where its two sides stand in the output "sides"; -1 for a number.
        count: how many stand there.
    """

    def __init__(self, guards: Sequence[Guard], sides: Sequence[tuple[int, int]], count: int) -> None:
        self.lines: list[str] = [str(line) for line in dict.fromkeys(guard.line for guard in guards)]
        self._only: bool = count == 1
        kinds: dict[tuple[str, bool, bool], list[tuple[Any, Any, bool]]] = {}
        for guard, (left, right) in zip(guards, sides, strict=True):
            pair = (guard.left if left < 0 else left), (guard.right if right < 0 else right)
            kinds.setdefault((guard.how, left < 0, right < 0), []).append((*pair, guard.outcome))
        self._groups: list[Any] = [
            (*kind, *map(np.array, zip(*members, strict=True))) for kind, members in kinds.items()
        ]

    def __bool__(self) -> bool:
        return bool(self._groups)

    def hold(self, outputs: dict[str, Any], xp: Any = np) -> Any:
        """Whether a run, or each example of it, came to the same comparisons as the recorded one, by NumPy or another
        library of arrays.
        """
        same: Any = np.True_
        if not self._groups:
            return same
        sides = np.asarray(outputs["sides"]) if xp is np else outputs["sides"]
        if self._only:
            sides = sides[..., None]
        for how, left_fixed, right_fixed, *of_each in self._groups:
            left, right, outcomes = of_each if xp is np else map(xp.asarray, of_each)
            here, there = (left if left_fixed else sides[..., left]), (right if right_fixed else sides[..., right])
            alike = (HOLDS[how](here, there, xp) == outcomes).all(-1)
            same = alike if same is np.True_ else same & alike
        return same


class Result(NamedTuple):
    """What a run came to."""

    outputs: dict[str, Any]  # by name
    by_inputs: list[Any]  # the derivatives by the Values among the arguments
    finite: bool  # whether all derivatives are


@dataclass(eq=False)
class Recording:
    """One specialization of a function: an array program."""

    kernel: Kernel
    lifted: Lifted
    parameters: tuple[Any, ...]
    guards: Guards
    surroundings: Surroundings
    shape: tuple[int, ...] | None  # of the function's result; () for one Value
    is_number: bool  # whether that is a number, on which no Value has a say
    nodes: int
    leaves: bool  # whether all parameters are leaves
    extents: dict[int, int]  # by the number of an input: how many items it chooses from
    whole: tuple[int, ...]  # the numbers of the inputs that are integers and choose nothing
    wraps: frozenset[int]  # the numbers of those that choose from lists of one length, where -1 is the last
    own: Any = None  # where the user's parameters stand among them, if there are others: floats that are read anew
    seconds: float = 0.0  # what recording and lifting took, without the function's own run and the check

    def load(self) -> None:
        """Read the parameters' numbers as they are now."""
        gather(self.parameters, self.kernel.numbers)

    def derivatives(self) -> tuple[tuple[Any, ...], Any]:
        """The parameters of the user's, and the derivatives by them that the last run has left."""
        if self.own is None:
            return self.parameters, self.kernel.slopes
        return tuple([self.parameters[n] for n in self.own]), self.kernel.slopes[self.own]

    def run(self, arrays: Sequence[Any], seed: float | None) -> Result | None:
        """A run on some arguments; None if it does not hold for them.

        The derivatives are of ``seed * out.sum()``, those by the parameters being left in the kernel's `slopes`;
        without a `seed` there are none. To be called under `np.errstate`, as the kernel is.
        """
        if not self.in_bounds(arrays):
            arrays = self.counted(arrays)
            if not self.in_bounds(arrays):
                return None
        computed = self.compute(arrays, seed)
        if computed is None or (self.guards and not self.guards.hold(computed[0]).all()):
            return None
        finite = seed is None or (all_finite(self.kernel.slopes) and all(map(all_finite, computed[1])))
        return Result(*computed, finite)

    def share(self, arrays: Sequence[Any], count: int) -> tuple[Any, Any] | None:
        """The numbers of those examples of a batch that it holds for, and their results; None where that cannot be
        computed.
        """
        arrays = self.counted(arrays)
        inside = np.flatnonzero(self.examples_in_bounds(arrays, count))
        if not len(inside):
            return inside, np.zeros((0, *(self.shape or ())))
        computed = self.compute([array[inside] for array in arrays], None)
        if computed is None:
            return None
        held = np.broadcast_to(self.guards.hold(computed[0]), (len(inside),))
        results = np.asarray(computed[0]["out"]).reshape(len(inside), *(self.shape or ()))
        return inside[held], results[held]

    def differs(self, arrays: Sequence[Any], want: Any, slopes: Any) -> str:
        """What of a run is not what the function itself came to, in words; empty if all agrees.

        Each number is compared on its own scale. Where digits have cancelled, a difference is rounding as far as the
        number also moves when what it is computed from is changed by a little more than rounding.

        Args:
            arrays: the arguments; of a batch some examples.
            want: the results of the function.
            slopes: the derivatives of their sum by the parameters, then by the Values among the arguments, and a
                function that gives the size of what was added up to each; or None.
        """
        arrays = self.counted(arrays)
        if not self.in_bounds(arrays):
            return ""
        got = self._numbers(arrays, slopes is not None)
        wanted = [np.asarray(want, float).reshape(-1), *([] if slopes is None else [slopes[0]])]
        if got is None or got[0].shape != wanted[0].shape:
            return "the array program gives another kind of result"
        with np.errstate(over="ignore"):
            if not (np.isfinite(got[0]).all() and all(map(all_finite, got[1:]))):
                return ""  # the engine runs
        close = [np.abs(x - y) <= AGREE * np.abs(y) for x, y in zip(got, wanted, strict=True)]
        finite = [np.isfinite(x) & np.isfinite(y) for x, y in zip(got, wanted, strict=True)]  # else the engine runs
        if slopes is not None and not (close[1] | ~finite[1]).all():
            close[1] |= np.abs(got[1] - wanted[1]) <= NUDGE * slopes[1]()
        if all((near | ~known).all() for near, known in zip(close, finite, strict=True)):
            return ""
        room = [np.zeros_like(x) for x in got]
        rng, numbers = np.random.default_rng(0), self.kernel.numbers.copy()
        for _ in range(2):
            shake = [x * (1.0 + NUDGE * rng.choice((-1.0, 1.0), np.shape(x))) if _is_float(x) else x for x in arrays]
            self.kernel.numbers[...] = numbers * (1.0 + NUDGE * rng.choice((-1.0, 1.0), numbers.shape))
            moved = self._numbers(shake, slopes is not None)
            if moved is not None:
                room = [r + 8.0 * np.abs(m - x) for r, m, x in zip(room, moved, got, strict=True)]
        self.kernel.numbers[...] = numbers
        for name, x, y, near, known, r in zip(WHAT, got, wanted, close, finite, room, strict=False):
            wrong = np.flatnonzero(known & ~near & ~(np.abs(x - y) <= r))
            if len(wrong):
                return f"the {name} of the array program is {x[wrong[0]]}, that of the function {y[wrong[0]]}"
        return ""

    def _numbers(self, arrays: Sequence[Any], slopes: bool) -> list[Any] | None:
        """The results, and the derivatives of their sum."""
        with np.errstate(all="ignore"):
            computed = self.compute(arrays, 1.0 if slopes else None)
        if computed is None:
            return None
        results = [np.array(computed[0]["out"], float).reshape(-1)]
        by_inputs = [np.asarray(x, float).reshape(-1) for x in computed[1]]
        return [*results, *([np.concatenate([self.kernel.slopes, *by_inputs])] if slopes else [])]

    def compute(self, arrays: Sequence[Any], seed: float | None) -> tuple[dict[str, Any], list[Any]] | None:
        """What the kernel gives: outputs, and derivatives by inputs if there is a `seed`.

        None where an operation of the user's own raises, such as a root by `math` of a number below 0: the program may
        also compute it for examples of another specialization, or where its result is masked out. Whether the function
        itself raises is for the engine to find out.
        """
        if self.whole:
            arrays = [_as_floats(array) if n in self.whole else array for n, array in enumerate(arrays)]
        try:
            return (self.kernel.forward(arrays), []) if seed is None else self.kernel.both(arrays, seed)
        except Exception:  # an operation of the user's own may raise anything, and so may numbers beyond all bounds
            return None

    def in_bounds(self, arrays: Sequence[Any]) -> bool:
        """Whether every integer that chooses an item has that item to choose."""
        for number, extent in self.extents.items():
            if isinstance(arrays[number], int):
                if not 0 <= arrays[number] < extent:
                    return False
                continue
            index = _unsigned(arrays[number])
            if index.size and index.item(index.argmax()) >= extent:  # three times as fast as max()
                return False
        return True

    def counted(self, arrays: Sequence[Any]) -> Sequence[Any]:
        """Negative indices counted from the end, as Python does."""
        counted = list(arrays)
        for n in self.wraps:
            x, extent = arrays[n], self.extents[n]
            counted[n] = np.where(x < 0, x + extent, x) if isinstance(x, np.ndarray) else x + extent * (x < 0)
        return counted

    def examples_in_bounds(self, arrays: Sequence[Any], count: int) -> Any:
        """The same, for each example of a batch."""
        inside = np.ones(count, bool)
        for number, extent in self.extents.items():
            inside &= (_unsigned(arrays[number]) < extent).reshape(count, -1).all(1)
        return inside


def _is_float(x: Any) -> bool:
    return isinstance(x, float) or (isinstance(x, np.ndarray) and x.dtype.kind == "f")


def _as_floats(x: Any) -> Any:
    """Integers as floats, which do not overflow."""
    return coerce.number(x) if isinstance(x, int) else x.astype(np.float64)


def _unsigned(index: Any) -> Any:
    """Integers as unsigned ones: a negative one is a huge one."""
    return np.asarray(index, np.int64).view(np.uint64)
