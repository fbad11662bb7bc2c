"""What preparing one function uses up, all its signatures and specializations together: see `policy.affords`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from wengert.compiler import policy
from wengert.compiler.call import CacheEntry
from wengert.compiler.record import Candidate
from wengert.compiler.traced import TooLarge
from wengert.engine import Value

__all__ = ["Budget"]


class Budget:
    """The budget of a function.

    Args:
        entries: the function's cache entries, as they are at each time.

    Attributes:
        expected: examples that are known to come: see `fit`.
        used: what has been used up, in operations of the function.
        forgotten: the operations of examples of signatures that were forgotten.
        last: of the last specialization, the operations to record, the steps, and the work of an example.
    """

    def __init__(self, entries: Mapping[Any, CacheEntry]) -> None:
        self.entries: Mapping[Any, CacheEntry] = entries
        self.expected: int = 0
        self.used: int = 0
        self.forgotten: int = 0
        self.last: tuple[int, int, int] = 0, 0, 0

    def ran(self, entry: CacheEntry) -> int:
        """Return the operations of all examples, those that `entry` is to serve yet among them."""
        others = [each.examples * each.work for each in list(self.entries.values())]
        return self.forgotten + sum(others) + self.expected * entry.work

    def affords(self, entry: CacheEntry, cost: int) -> bool:
        """Return True if the function may be prepared further by now."""
        return policy.affords(cost, self.used, self.ran(entry))

    def wait(self, entry: CacheEntry, cost: int) -> None:
        """Let the function itself serve an entry until this much may be used up."""
        work = entry.work or self.last[2]
        left = policy.pays_from(cost, self.used) - self.ran(entry)
        entry.compile_after = entry.examples + max(-(-left // max(work, 1)), 1)

    def records(self, entry: CacheEntry) -> bool:
        """Return True if another specialization may be recorded by now, as costly as the last one; else wait."""
        nodes, steps, work = self.last
        cost = policy.records(nodes) + policy.compiles(steps)
        if not nodes or self.affords(entry, cost):
            return True
        entry.work = entry.work or work
        self.wait(entry, cost)
        return False

    def compiles(self, entry: CacheEntry, candidate: Candidate) -> bool:
        """Return True if a lifted recording may be compiled by now; else wait."""
        cost = policy.compiles(candidate.forward)
        if self.affords(entry, cost):
            cost = policy.compiles(candidate.steps)  # deriving the reverse sweep takes time, so only now
        if self.affords(entry, cost):
            return True
        self.wait(entry, cost)
        return False

    def compiled(self, entry: CacheEntry, candidate: Candidate) -> None:
        """Note that a recording was compiled."""
        self.used += policy.compiles(candidate.steps)
        self.last = self.last[0], candidate.steps, entry.work

    def recording(
        self, entry: CacheEntry, record: Callable[[int | None], Candidate], operations: int, is_free: bool
    ) -> Candidate | None:
        """Record as far as that may be afforded; None if it has to wait.

        Args:
            entry: for which it is recorded.
            record: records the function, up to so many operations: see `trace.record`.
            operations: how many there are, as far as they make Values.
            is_free: True to record it, whatever it costs, which is not counted.
        """
        entry.work = entry.work or policy.work(operations, has_graph=True)
        while True:
            room = None if is_free else policy.records_up_to(self.used, self.ran(entry))
            try:
                if room is not None and operations > room:
                    raise TooLarge
                candidate = record(room)
            except TooLarge:
                assert room is not None
                if operations <= room:  # it was broken off
                    self.used += policy.records(room)
                    operations = 2 * room + 1
                    entry.work = max(entry.work, policy.work(room, has_graph=False))
                self.last = operations, 0, entry.work
                if not self.affords(entry, policy.records(operations)):
                    self.wait(entry, policy.records(operations))
                    return None
            else:
                self.used += 0 if is_free else policy.records(candidate.recorded)
                entry.work = policy.work(candidate.recorded, candidate.kind is Value or candidate.is_derivative)
                self.last = candidate.recorded, self.last[1], entry.work
                return candidate
