"""What is known of the calls of a compiled function with one form of arguments: its recordings, and how they did."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import inf
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from wengert.compiler.callpath import Served
from wengert.compiler.plan import EVERY
from wengert.compiler.tracing import main_of, numbers_in
from wengert.engine import Value
from wengert.errors import ArgumentError
from wengert.functions import mean
from wengert.functions import sum as total

__all__ = ["PROBATION", "SPECIALIZATIONS", "STALE", "Entry", "Size", "combined", "together"]

SPECIALIZATIONS = 32  # how many are recorded for one form of arguments, and how many forms are told apart
PROBATION = 4  # how many examples a recording is compared on before it is trusted
STALE = 3  # how many recordings of one form may turn out to be wrong
FEW = 4  # how often after each check the function itself is tried for calls of one size,
COLD = 32  # if it has taken no more than so many times as long as the recording, over the number of checks: the first
# times find nothing in the processor's caches
BITS = 62  # for so many sizes it is noted whether the recordings serve them
FEW_NODES = 3  # for so few operations of one example no machine code is made
PLAIN: frozenset[type] = frozenset({Value, float, int})  # the kinds of nearly all results
TOLERANCE = 1.1  # by how much the faster way has to be faster


class Size(NamedTuple):
    """How large a call is: how many examples, and whether their derivatives are asked for, as `map` does not."""

    examples: int
    slopes: bool

    @property
    def key(self) -> int:
        """One number for all counts up to the next power of two, as `Served.is_served` has it."""
        return 2 * self.examples.bit_length() + self.slopes


class Entry(Served):
    """The recordings for one form of arguments."""

    pending: Any
    trusted: Any

    def __init__(self, pinned: bool) -> None:
        super().__init__(np)
        self.pinned = pinned  # whether somebody has said what is to run
        self.refusal = ""
        self.compared: int = 0
        self.stale = 0  # how many recordings were dropped
        self.not_finite = 0  # how many calls were left to the engine for that
        self.plain = inf  # seconds that the function itself took for one example while it was compared, at best
        self.engine: dict[int, tuple[int, float]] = {}  # when it served, by `Size.key`: how often, and how long at best
        self.seconds: dict[int, float] = {}  # and the recordings,
        self.ways: dict[int, tuple[float, float]] = {}  # of these machine code and NumPy, where there are both
        self.chosen: set[int] = set()  # the sizes of which both were timed since the last check
        self.limit: int = EVERY  # from how many examples on NumPy serves, and not machine code

    def adopt(self) -> bool:
        """Run by machine code what has some by now, which is compared and timed like a new recording; whether there is
        any.
        """
        news = [made.adopt() for made in self.specializations]
        if any(news):
            self.compared = self.trusted = 0
            self.seconds.clear()
            self.engine.clear()
        self.want(0.0)
        return any(news)

    def want(self, spent: float) -> None:
        """Have machine code made where that is worth it after so many seconds, of which each recording had a share."""
        share = spent / (len(self.specializations) or 1)
        wanted = [made.kernel.want(share) for made in self.specializations]
        self.pending = any(wanted)

    def is_due(self) -> bool:
        """Whether this call is compared with the function itself."""
        return self.compared < PROBATION or not self.calls & (self.calls - 1)

    def count_call(self) -> None:
        """Count a call; at each check the function itself may be tried again, and the ways be timed."""
        self.calls += 1
        if self.is_due():
            self.chosen.clear()
            self.engine = {size: (0, best) for size, (_, best) in self.engine.items()}

    def settle(self, size: Size, serves: bool) -> None:
        """Note whether the recordings serve calls of a size, until one is compared again."""
        bit = 1 << size.key
        trusted = serves and self.compared >= PROBATION and not self.refusal and size.key < BITS
        self.trusted = self.trusted | bit if trusted else self.trusted & ~bit

    def note(self, size: Size, seconds: float) -> None:
        """Note how long a recording took for a call of a size."""
        self.seconds[size.key] = min(seconds, self.seconds.get(size.key, inf))

    def time_ways(self, size: Size, run: Callable[[], Any], times: int) -> None:
        """Time a run of a size by NumPy and by machine code, in turns, once after each check: the faster one
        serves.
        """
        if size.key in self.chosen:
            return
        self.chosen.add(size.key)
        best = [inf, inf]
        for turn in range(2 * times):
            for made in self.specializations:
                made.serve_below(turn % 2 * EVERY)
            began = perf_counter()
            run()
            best[turn % 2] = min(best[turn % 2], perf_counter() - began)
        self.choose(size, best[1], best[0])

    def choose(self, size: Size, native: float, numpy: float) -> None:
        """Note how long machine code and NumPy took for a call of a size: the faster one serves."""
        before = self.ways.get(size.key, (inf, inf))
        native, numpy = self.ways[size.key] = min(native, before[0]), min(numpy, before[1])
        if numpy * TOLERANCE < native:
            self.limit = min(self.limit, size.examples)
        elif self.limit <= size.examples:
            self.limit = size.examples + 1
        for made in self.specializations:
            made.serve_below(self.limit)

    def consider(self, size: Size, passed: int) -> None:
        """Have machine code made where calls have taken so long by now that it pays; never for one example of a few
        operations, which the engine computes in less time than it takes to prepare one for anything else.

        Args:
            size: of the last call.
            passed: how many calls went to the function itself unseen.
        """
        engine, program = self.engine.get(size.key, (0, inf))[1], self.seconds.get(size.key, inf)
        known = (self.plain * size.examples, engine, program)
        if self.pinned:
            self.want(inf)
        elif min(known) < inf and any(made.nodes * size.examples > FEW_NODES for made in self.specializations):
            self.want(max(self.calls, passed) * min(known))

    def note_engine(self, size: Size, seconds: float) -> None:
        """Note how long the function itself took for a call of a size."""
        times, best = self.engine.get(size.key, (0, inf))
        self.engine[size.key] = times + 1, min(seconds, best)

    def note_left(self, size: Size, tried: float, seconds: float) -> None:
        """Note a call that the recordings could not do, after so much time, and the function itself then did."""
        self.note_engine(size, seconds)
        self.note(size, tried + seconds)

    def tries_engine(self, size: Size) -> bool:
        """Whether a call goes to the function itself to see how long it takes: a few times, if that may be less."""
        times, best = self.engine.get(size.key, (0, inf))
        worth = COLD / self.calls.bit_length() * self.seconds.get(size.key, 0.0)
        may_be_less = min(best, self.plain * size.examples) < worth
        return self.compared >= PROBATION and times < FEW and may_be_less and not self.pinned

    def prefers_engine(self, size: Size) -> bool:
        """Whether the function itself is known to take less time, and nobody has said what is to run."""
        best = self.engine.get(size.key, (0, inf))[1]
        return best * TOLERANCE < self.seconds.get(size.key, inf) and self.compared >= PROBATION and not self.pinned

    def too_many(self) -> str:
        """Why there are so many specializations, and what to write instead."""
        names = {made.changed() for made in self.specializations} - {""}
        if names:
            return f"what it reads outside of itself, {', '.join(sorted(names))}, changes from call to call: pass it"
        lines = sorted({line for made in self.specializations for line in made.guards.lines})
        return (
            f"it takes more than {SPECIALIZATIONS} specializations, by comparing or taking numbers out at "
            f"{'; '.join(lines[:3])}: write wengert.maximum, wengert.where or wengert.softmax, which are the same for "
            "all numbers (and wengert.pick(values, index) where an integer argument chooses)"
        )

    def report(self) -> list[str]:
        """What is known, line by line."""
        lines = []
        if self.refusal:
            lines.append(f"  runs uncompiled: {self.refusal}")
        if self.not_finite:
            lines.append(f"  {self.not_finite} calls were left to the engine: not finite, or beyond 1e154")
        if self.stale:
            lines.append(f"  {self.stale} recordings were dropped: the function gave something else")
        for key, seconds in self.seconds.items():
            size = Size(2 ** (key // 2 - 1), bool(key % 2))
            which = f"  {size.examples} examples{'' if size.slopes else ', without derivatives,'} by"
            if self.prefers_engine(size):
                lines.append(f"{which} the engine, in {self.engine[key][1]:.1e} s for {seconds:.1e} s")
            elif key in self.ways:
                native, numpy = self.ways[key]
                names = ("NumPy", "machine code") if size.examples >= self.limit else ("machine code", "NumPy")
                lines.append(
                    f"{which} {names[0]}, in {min(native, numpy):.1e} s for {max(native, numpy):.1e} s by {names[1]}"
                )
        if self.pending:
            lines.append("  machine code is being made")
        for number, made in enumerate(self.specializations, 1):
            kernel, lifted = made.kernel, made.lifted
            program = lifted.program
            lines.append(
                f"  specialization {number}: {made.nodes:,} scalar operations became {program.size} "
                f"array operations and {kernel.back.size} of the reverse sweep"
            )
            lines.append(
                f"    {lifted.products} products of arrays, {lifted.table_reads} operands through tables, "
                f"{len(made.parameters):,} parameters in {len(program.of_role('param'))} arrays"
            )
            if kernel.refusal:
                lines.append(f"    not run as {kernel.name}: {kernel.refusal}")
            if program.padded:
                lines.append("    sums of different lengths share arrays, with masks")
            lines += [f"    guarded: {line}" for line in made.guards.lines]
        return lines


def together(results: list[Any], how: str) -> Any:
    """What the function itself gave for the examples of a batch, as one."""
    if how != "map":
        return combined(results, how)
    try:
        return np.array([x.data if type(x) is Value else _numbers(x) for x in results])
    except ValueError:
        raise ArgumentError("map gives an array: the function's results differ in shape, or are irregular") from None


def _numbers(x: Any) -> Any:
    """The numbers of a result; most are one Value, or a row of them."""
    if type(x) in (list, tuple) and set(map(type, x)) == {Value}:
        return [v.data for v in x]
    return numbers_in(x)


def combined(results: Sequence[Any], how: str) -> Value:
    """The mean or the sum of what a function gave, by the engine.

    Raises:
        ArgumentError: there is more than one Value an example.
    """
    if not PLAIN.issuperset(map(type, results)):
        results = list(map(main_of, results))
        for x in results:
            if isinstance(x, (list, tuple)) or (isinstance(x, np.ndarray) and x.ndim):
                raise ArgumentError(
                    f"{how} needs one Value an example, and the function gives a {type(x).__name__}: use map"
                )
    made = mean(results) if how == "mean" else total(results)
    return made if isinstance(made, Value) else Value(made)
