"""What runs when a compiled function is called: a rule of counts, of which the numbers stand here. No clock is asked.

The first call with a signature of arguments runs the function itself, and is recorded. The next one that no
specialization serves has the recording lifted to an array program and made into machine code, which serves from then
on. Both wait where they would take longer than they can save: `lifts` and `compiles` say until when. So what runs
depends on the program and on how often it was called, and the same script gives the same bits each time.

The numbers were measured once (`tools/qa/pays.py`; the page "What runs when a compiled function is called" has the
table): to record and compile a program takes as long as 700 to 1,500 of its operations for each step.
"""

from __future__ import annotations

__all__ = ["AT_ONCE", "BRANCHES", "CHANGES", "CHECKED_CALLS", "EXAMPLES", "INVALIDATIONS", "LARGE", "MATRIX"]
__all__ += ["PAYS", "PRODUCTS", "RETURNS", "SAVES", "SIGNATURES", "SPECIALIZATIONS", "UNLOCKED", "compiles", "lifts",
            "numpy_from", "pays_from", "products_from", "unlocked_from"]  # fmt: skip

LARGE = 5_000  # operations: a larger program is lifted
EXAMPLES = 32  # once so many examples have run
AT_ONCE = 300  # steps, forward and reverse: of so many machine code is made at once,
PAYS = 700  # of more when so many operations have run for each step
BRANCHES = 4  # so many specializations of a signature are compiled at once, each further one waits for that count
SAVES = 10  # NumPy serves where it takes the place of so many operations with each of its steps
PRODUCTS = 1 << 22  # multiplications of a call's largest matrix product: from so many on BLAS takes less time,
MATRIX = 1 << 13  # but for matrices of fewer elements
UNLOCKED = 100_000  # operations: while a run of so many goes on, other threads do too
CHECKED_CALLS = 4  # a specialization's first calls are compared with the function
SPECIALIZATIONS = 32  # of one signature; with more the function itself serves
SIGNATURES = 256  # of a function; one of an object that is gone makes room, then the least recently used,
RETURNS = 8  # until so many have come back
CHANGES = 4  # so many watched runs of a signature may change what they reach, as caches do, before the function serves
INVALIDATIONS = 3  # so many specializations of a signature may turn out to be wrong


def lifts(nodes: int, examples: int) -> bool:
    """Return True if a recording of so many operations is lifted by now.

    Args:
        nodes: the operations of one example.
        examples: how many have run with its signature, those of this call included.
    """
    return nodes <= LARGE or examples >= EXAMPLES


def compiles(steps: int, nodes: int, examples: int, others: int = 0) -> bool:
    """Return True if machine code is made by now of a program of so many steps.

    Args:
        steps: forward and reverse.
        nodes: the operations of one example.
        examples: how many have run with its signature, those of this call included.
        others: how many specializations the signature has.
    """
    return (steps <= AT_ONCE and others < BRANCHES) or examples >= pays_from(steps, nodes)


def pays_from(steps: int, nodes: int) -> int:
    """After how many examples machine code is made of a program that waits for its count."""
    return -(-PAYS * steps // max(nodes, 1))


def numpy_from(steps: int, nodes: int) -> int:
    """From how many examples in a call on NumPy serves, where there is no machine code."""
    return -(-SAVES * steps // max(nodes, 1))


def products_from(products: int) -> int:
    """From how many examples in a call on its matrix products go to BLAS; 0 for never.

    Args:
        products: the multiplications that an example takes in the largest of them.
    """
    return -(-PRODUCTS // products) if products >= MATRIX else 0


def unlocked_from(nodes: int) -> int:
    """From how many examples on a run of machine code does without the interpreter's lock.

    Args:
        nodes: the operations of one example.
    """
    return -(-UNLOCKED // max(nodes, 1))
