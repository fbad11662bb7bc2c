"""The report on a compiled function: what was compiled, and what runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from wengert import _loader
from wengert.compiler import policy
from wengert.compiler.call import EVERY, CacheEntry
from wengert.compiler.record import Specialization
from wengert.errors import counted

# Why the function itself serves a call, for reasons that are not its own, and what to do.
ARGUMENTS = "whose arguments do not fit its signature"
MODES = (
    "in a mode that looks at each operation, as detect_anomaly() and strict() do, or in a derivative of a derivative"
)
NO_GRAD = "in no_grad(), where a derivative that depends on parameters consists of floats"
PASSING = (
    f"whose kind of arguments came for the first time, after {policy.SIGNATURES} kinds that came once: pass the same "
    "objects at each call"
)
PROFILER = "while a profiler ran, so nothing was recorded: call it a few times, or prepare(*args), before it starts"
NUMPY_ERRORS = "while np.seterr or np.errstate lets NumPy do more than warn: set it to 'warn' or 'ignore' around them"
THREADS = "while another thread recorded it, or it called itself: call it once, or prepare(*args), before threads start"
WITHIN = "within another compiled function, whose program includes it"

__all__ = ["code_serves", "described", "numpy_serves"]


def code_serves(specialization: Specialization, steps: int, waited: int) -> str:
    """Explain by which rule machine code runs; it `waited` for so many examples."""
    after = f"compiled after {counted(waited, 'example')} of {counted(specialization.nodes, 'operation')}"
    text = f"machine code runs: {counted(steps, 'step')}, {after if waited else 'compiled at once'}"
    if specialization.limit < EVERY:
        text += f"; NumPy runs calls on {specialization.limit:,} examples or more, with BLAS on {blas_threads()}"
    return text


def numpy_serves(specialization: Specialization, steps: int) -> str:
    """Explain by which rule NumPy runs, without llvmlite."""
    return (
        f"NumPy runs calls on {specialization.min_examples:,} examples or more: {counted(steps, 'step')}, no machine "
        f"code, and {counted(specialization.nodes, 'operation')} per example"
    )


def blas_threads() -> str:
    """Return the number of threads of NumPy's BLAS as text, if it is known."""
    unknown = "an unknown number of threads"
    try:
        from threadpoolctl import threadpool_info  # type: ignore[import-untyped]
    except ImportError:
        return unknown
    counts = [int(each["num_threads"]) for each in threadpool_info() if each["user_api"] == "blas"]
    return counted(max(counts), "thread") if counts else unknown


def described(
    name: str,
    entries: Sequence[CacheEntry],
    expected: int,
    aside: Mapping[str, int],
    new_objects: Mapping[str, int],
) -> str:
    """Write the report on a function from its cache entries.

    Args:
        name: the function's.
        entries: one for each signature.
        expected: how many examples are still to come.
        aside: how many calls the function itself served, by reasons that are not its own.
        new_objects: how many calls had objects among the arguments that no other call had, by argument.
    """
    lines = [line for entry in entries for line in _entry(name, entry, expected)]
    served = "the function itself served"
    lines += [f"{name}: {served} {counted(count, 'call')} {why}" for why, count in list(aside.items())]
    for argument, calls in new_objects.items():
        lines.append(
            f"{name}: {counted(calls, 'call')} of {argument}: each is recorded anew, or runs uncompiled. Pass the same "
            "object each time, or its numbers, in a tuple, a dict or a named tuple"
        )
    if not lines:
        return f"{name}: not called yet"
    if _loader.status().remedy:
        lines.append(f"  the engine runs {_loader.status()}, which slows every call; `wengert info` says what to do")
    return "\n".join(lines)


def _entry(name: str, entry: CacheEntry, expected: int) -> Iterator[str]:
    kind = "a batch" if entry.signature.batched else "one example"
    examples = f" on {counted(entry.examples, 'example')}" if entry.signature.batched and not entry.is_eager else ""
    calls = counted(entry.calls, "call")
    yield f"{name}, {kind}: {calls}{examples}, {entry.checks:,} of them checked against the function"
    if entry.fallback_reason:
        yield f"  runs uncompiled: {entry.fallback_reason}"
    elif entry.is_eager or (entry.clause and not entry.specializations and entry.candidate is None):
        yield f"  the function itself runs: {entry.clause}"
    if entry.not_finite:
        fell_back = f"{counted(entry.not_finite, 'call')} fell back to the function"
        yield f"  {fell_back}: numbers were not finite, or beyond 1e154"
    if entry.invalidations:
        were = "was" if entry.invalidations == 1 else "were"
        dropped = counted(entry.invalidations, "specialization")
        yield f"  {dropped} {were} dropped: the function's results differed"
    if entry.candidate is not None and not entry.is_eager:
        yield f"  recorded: {_waits(entry, entry.examples + expected)}"
    elif entry.compile_after > entry.examples + expected and not (entry.is_eager or entry.fallback_reason):
        so_far = f"{entry.compile_after:,} examples have run ({entry.examples + expected:,} so far)"
        yield f"  the function itself runs until {so_far}: preparing it further costs more than it saves by now"
    if entry.slow_reading and entry.specializations:
        yield f"  arguments are read slowly: {entry.slow_reading}"
    for number, specialization in enumerate(entry.specializations, 1):
        yield from _specialization(number, specialization)


def _waits(entry: CacheEntry, examples: int) -> str:
    candidate, until = entry.candidate, entry.compile_after
    if not candidate.is_lifted and not policy.lifts(candidate.nodes, examples):
        until = max(until, policy.EXAMPLES)
    if until <= examples:
        return "the next call compiles it"
    work = counted(candidate.nodes, "operation") + " per example"
    if candidate.is_lifted:
        work = f"{counted(candidate.steps, 'step')}, {work}"
    return f"the function itself runs until {until:,} examples have run ({examples:,} so far): {work}"


def _specialization(number: int, specialization: Specialization) -> Iterator[str]:
    kernel, lifted = specialization.kernel, specialization.lifted
    program = lifted.program
    yield (
        f"  specialization {number}: {counted(specialization.nodes, 'scalar operation')} became "
        f"{counted(program.size, 'array operation')}, and {kernel.backward.size} in the reverse sweep"
    )
    yield f"    {specialization.clause}"
    yield (
        f"    {counted(lifted.products, 'matrix product')}, "
        f"{counted(lifted.table_reads, 'operand')} read through index arrays, "
        f"{counted(len(specialization.parameters), 'parameter')} in {counted(len(program.of_role('param')), 'array')}"
    )
    if kernel.fallback_reason:
        yield f"    not run as {kernel.name}: {kernel.fallback_reason}"
    if program.padded:
        yield "    sums of different lengths are padded and masked"
    yield from [f"    guard: {line}" for line in specialization.guards.lines]
