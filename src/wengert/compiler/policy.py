"""The rule of counts that decides what runs when a compiled function is called; it uses no clock.

The first call with a signature runs the function itself and records it. The next call without a valid specialization
lifts the recording to an array program and compiles it to machine code, which runs from then on. What runs depends only
on the program and on counts of calls, and the same script always gives the same bits.

Each function has one budget for preparing, all its signatures and specializations together: see `affords`. It is
counted in operations of the function itself, of which a microsecond has three to forty. (`tools/qa/pays.py` measures
what is prepared in operations, `benchmarks/totals.py` what calls take in total.)
"""

from __future__ import annotations

__all__ = ["AGAIN", "CACHE", "CHANGES", "CHECKED_CALLS", "EXAMPLES", "FREE", "INVALIDATIONS", "LARGE", "MATRIX"]
__all__ += ["PAUSE", "PRODUCTS", "REACHED", "RETURNS", "ROOM", "SAVES", "SIGNATURES", "SPECIALIZATIONS", "STRIPS"]
__all__ += ["UNLOCKED", "affords", "compiles", "is_milestone", "lifts", "numpy_from", "pause", "pays_from"]
__all__ += ["products_from", "python_strip", "records", "records_up_to", "strip", "too_much", "unlocked_from", "work"]

LARGE = 5_000  # programs of more operations are lifted only
EXAMPLES = 32  # once this many examples have run
FREE = 850_000  # operations: what may be spent on preparing a function at once, some 0.1 s
RECORDING, RECORDS = 10_000, 40  # what it costs to record a run, and each of its operations
COMPILING, COMPILES = 50_000, 1_500  # and to compile a program, and each of its steps, forward and reverse
SAVES = 10  # NumPy runs if each of its steps replaces at least this many operations
PRODUCTS = 1 << 22  # BLAS is faster if a call's largest matrix product has at least this many multiplications
MATRIX = 1 << 13  # and its matrix at least this many elements
UNLOCKED = 100_000  # runs of at least this many operations release the interpreter's lock,
PAUSE = 10_000_000  # and look for Ctrl-C each time this many are done
CACHE, ROOM = 1 << 18, 1 << 24  # bytes: a strip of a batch fits in the first, or in the second if it is a short one
STRIPS = 8, 32, 1024  # examples: a vector of some machine, a short strip, the longest one
CHECKED_CALLS = 4  # the first calls of a specialization are compared with the function
AGAIN = 1_000  # a call of several results and this many operations runs forward only, and again for a gradient
SPECIALIZATIONS = 32  # of one signature; beyond, the function runs uncompiled
SIGNATURES = 256  # of a function; beyond, those of dead objects are dropped, then the least recently used ones,
RETURNS = 8  # until this many dropped ones have come back
CHANGES = 4  # after this many watched runs in which objects changed, as caches do, or which raised an exception, the
# function runs uncompiled, and is watched again at calls whose number is a power of two
REACHED = 200_000  # objects, numbers and Values aside, that are looked at for what a function can reach; beyond, it
# runs uncompiled
INVALIDATIONS = 3  # the number of specializations of a signature that may turn out to be wrong


def is_milestone(calls: int) -> bool:
    """Return True for calls whose number is a power of two: these are compared, or watched again.

    >>> [calls for calls in range(1, 20) if is_milestone(calls)]
    [1, 2, 4, 8, 16]
    """
    return not calls & (calls - 1)


def lifts(nodes: int, examples: int) -> bool:
    """Return True if a recording should be lifted by now.

    Args:
        nodes: the operations per example.
        examples: the number of examples that have run with its signature, including this call's.
    """
    return nodes <= LARGE or examples >= EXAMPLES


def work(nodes: int, has_graph: bool) -> int:
    """Return what an example costs uncompiled: its operations; those on plain numbers count a quarter.

    Args:
        nodes: the operations per example.
        has_graph: True if they make Values.
    """
    return nodes if has_graph else -(-nodes // 4)


def records(nodes: int) -> int:
    """Return what it costs to record a run of so many operations."""
    return RECORDING + RECORDS * nodes


def compiles(steps: int) -> int:
    """Return what it costs to compile a program of so many steps, forward and reverse."""
    return COMPILING + COMPILES * steps


def affords(cost: int, used: int, ran: int) -> bool:
    """Return True if a function may be prepared further by now.

    What preparing has used up stays below `FREE` and half of what the function itself takes for all examples. So
    calls take at most 1.5 times as long in total as without compiling, and some 0.1 s.

    Args:
        cost: what is to be done.
        used: what has been used up by preparing the function.
        ran: the operations of all its examples, including this call's: see `work`.
    """
    return used + cost <= FREE + ran // 2


def pays_from(cost: int, used: int) -> int:
    """Return the number of operations from which on `affords` is true."""
    return max(2 * (used + cost - FREE), 0)


def records_up_to(used: int, ran: int) -> int:
    """Return the number of operations at which a recording is broken off, as it costs too much by now."""
    return max(FREE + ran // 2 - used - RECORDING, 0) // RECORDS


def numpy_from(steps: int, nodes: int) -> int:
    """Return the number of examples in a call from which on NumPy runs, without llvmlite."""
    return -(-SAVES * steps // max(nodes, 1))


def products_from(products: int) -> int:
    """Return the number of examples in a call from which on BLAS runs matrix products; 0 for never.

    Args:
        products: the multiplications per example in the largest product.
    """
    return -(-PRODUCTS // products) if products >= MATRIX else 0


def unlocked_from(nodes: int) -> int:
    """Return the number of examples from which on a run of machine code releases the interpreter's lock.

    Args:
        nodes: the operations per example.
    """
    return -(-UNLOCKED // max(nodes, 1))


def pause(nodes: int, numbers: int) -> int:
    """Return the number of examples after which a long run looks for Ctrl-C.

    Args:
        nodes: the operations per example.
        numbers: how many numbers an example has, of which copies are made.
    """
    return min(-(-PAUSE // max(nodes, 1)), ROOM // (8 * max(numbers, 1)))


def strip(numbers: int) -> int:
    """Return the number of examples in a strip of machine code.

    Args:
        numbers: the numbers per example: inputs, outputs and scratch.
    """
    vector, short, longest = STRIPS
    each = 8 * max(numbers, 1)
    return min(max(CACHE // each, min(short, ROOM // each), vector), longest) // vector * vector


def too_much(name: str) -> str:
    """Explain why a function that reaches too many objects runs uncompiled, and what to do.

    Args:
        name: the place of the last object that was looked at.
    """
    return (
        f"it can reach more than {REACHED:,} objects by the names in it, as in {name}: pass what it needs as an "
        "argument, or keep numbers in lists of floats or arrays"
    )


def python_strip(numbers: int) -> int:
    """Return the number of examples in a strip of NumPy, which takes a call for each step."""
    return max(ROOM // (8 * max(numbers, 1)), STRIPS[0])
