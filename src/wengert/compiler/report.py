"""What became of a compiled function, in words and counts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from wengert.compiler import policy
from wengert.compiler.callpath import CacheEntry
from wengert.compiler.executable import EVERY
from wengert.compiler.tracing import Candidate, Specialization

__all__ = ["code_serves", "described", "numpy_serves"]


def code_serves(made: Specialization, steps: int, examples: int, others: int) -> str:
    """By which clause machine code serves."""
    text = f"machine code serves: {steps:,} steps, made at once (up to {policy.AT_ONCE})"
    if not policy.compiles(steps, 0, 0, others):
        text = f"machine code serves: {steps:,} steps, made after {examples:,} examples of {made.nodes:,} operations"
    if made.limit < EVERY:
        text += f"; calls on {made.limit:,} examples or more go to NumPy, whose BLAS runs on {blas_threads()}"
    return text


def numpy_serves(made: Specialization, steps: int) -> str:
    """By which clause NumPy does, where there is no machine code."""
    return (
        f"NumPy serves calls on {made.least:,} examples or more: {steps:,} steps, no machine code, and "
        f"{made.nodes:,} operations an example"
    )


def blas_threads() -> str:
    """On how many threads NumPy's BLAS runs, as far as can be told."""
    try:
        from threadpoolctl import threadpool_info  # type: ignore[import-untyped]
    except ImportError:
        return "as many threads as it takes"
    counts = [int(each["num_threads"]) for each in threadpool_info() if each["user_api"] == "blas"]
    return f"{max(counts)} threads" if counts else "as many threads as it takes"


def described(name: str, entries: Sequence[CacheEntry], expected: int) -> str:
    """The report on a function, by its entries; so many examples are expected beside those that have run."""
    if not entries:
        return f"{name}: not called yet"
    return "\n".join([line for entry in entries for line in _entry(name, entry, expected)])


def _entry(name: str, entry: CacheEntry, expected: int) -> Iterator[str]:
    kind = "a batch" if entry.signature.batched else "one example"
    examples = f" on {entry.examples:,} examples" if entry.signature.batched and not entry.is_eager else ""
    yield f"{name}, {kind}: {entry.calls:,} calls{examples}, {entry.checks:,} of these compared with the function"
    if entry.fallback_reason:
        yield f"  runs uncompiled: {entry.fallback_reason}"
    elif entry.is_eager:
        yield f"  the function itself serves: {entry.clause}"
    if entry.not_finite:
        yield f"  {entry.not_finite} calls were left to the function itself: not finite, or beyond 1e154"
    if entry.invalidations:
        yield f"  {entry.invalidations} specializations were dropped: the function gave something else"
    if entry.candidate is not None and not entry.is_eager:
        yield f"  recorded: {_waits(entry.candidate, len(entry.specializations), entry.examples + expected)}"
    for number, made in enumerate(entry.specializations, 1):
        yield from _specialization(number, made)


def _waits(candidate: Candidate, others: int, examples: int) -> str:
    nodes = f"{candidate.nodes:,} operations an example"
    if not policy.lifts(candidate.nodes, examples):
        return f"the function itself serves until {policy.EXAMPLES} examples have run ({examples:,} have): {nodes}"
    if not candidate.is_lifted:
        return "the next call compiles it"
    steps = candidate.steps
    if policy.compiles(steps, candidate.nodes, examples, others):
        return "the next call compiles it"
    until = policy.pays_from(steps, candidate.nodes)
    return f"the function itself serves until {until:,} examples have run ({examples:,} have): {steps:,} steps, {nodes}"


def _specialization(number: int, made: Specialization) -> Iterator[str]:
    kernel, lifted = made.kernel, made.lifted
    program = lifted.program
    yield (
        f"  specialization {number}: {made.nodes:,} scalar operations became {program.size} "
        f"array operations and {kernel.back.size} of the reverse sweep"
    )
    yield f"    {made.clause}"
    yield (
        f"    {lifted.products} products of arrays, {lifted.table_reads} operands through tables, "
        f"{len(made.parameters):,} parameters in {len(program.of_role('param'))} arrays"
    )
    if kernel.refusal:
        yield f"    not run as {kernel.name}: {kernel.refusal}"
    if program.padded:
        yield "    sums of different lengths share arrays, with masks"
    yield from [f"    guarded: {line}" for line in made.guards.lines]
