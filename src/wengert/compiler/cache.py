"""The cache entries of one compiled function: one for each signature of its calls, as many as may be kept."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert.compiler import policy, report
from wengert.compiler.arguments import Arguments, readers_of
from wengert.compiler.budget import Budget
from wengert.compiler.call import CacheEntry
from wengert.compiler.fallback import Fallback
from wengert.compiler.log import log
from wengert.compiler.record import too_many_kinds

__all__ = ["Cache"]


class Cache:
    """Finds the entry of a call, and evicts the least recently used one where there are too many.

    Args:
        compiled: the compiled function, whose call path keeps the entries that it can read arguments for.
        entries: by signature.
        fallback: gets the calls for which there is no room.

    Attributes:
        budget: what preparing the function has used up.
        new_objects: arguments of signatures that were used once, and how often.
        evicted: the keys of signatures that were evicted.
        returns: how many of these came back.
        oneshot_evictions: evicted signatures with one example, as of a lambda that is new at each call. After many of
            them a signature is recorded at its second call.
        seen_once: the keys of signatures that wait for their second call.
        elsewhere: see `Reader`; None for a function that asks of no object whether it is another one.
    """

    def __init__(self, compiled: Any, entries: dict[Any, CacheEntry], fallback: Fallback) -> None:
        self.compiled: Any = compiled
        self.entries: dict[Any, CacheEntry] = entries
        self.fallback: Fallback = fallback
        self.budget: Budget = Budget(entries)
        self.new_objects: Counter[str] = Counter()
        self.evicted: set[Any] = set()
        self.returns: int = 0
        self.oneshot_evictions: int = 0
        self.seen_once: set[Any] = set()
        self.elsewhere: dict[int, Any] | None = None

    def entry_for(self, arguments: Arguments, count: int) -> CacheEntry:
        """Return the cache entry for such arguments, and count a call on `count` examples."""
        entry = self.entries.get(arguments.signature) or self._new_entry(arguments, count)
        self.compiled.last = entry
        entry.calls += count > 0
        entry.examples += count
        self.compiled.uses += 1
        entry.used = self.compiled.uses
        return entry

    def _new_entry(self, arguments: Arguments, count: int) -> CacheEntry:
        signature = arguments.signature
        entry = CacheEntry(np, signature, self.compiled.checks == "powers")
        entry.elsewhere = self.elsewhere
        self._evict([each for each in list(self.entries) if not each.is_alive()])
        if signature.key in self.evicted:
            self.evicted.remove(signature.key)
            self.returns += 1
        if count and self.oneshot_evictions >= policy.SIGNATURES and signature.key not in self.seen_once:
            if len(self.seen_once) >= policy.SIGNATURES:
                self.seen_once.clear()
            self.seen_once.add(signature.key)
            self.new_objects.update(signature.new_objects())
            entry.is_eager = True
            self.fallback.count(report.PASSING)
            return entry
        if not self._make_room():
            self.fallback.fall_back(entry, too_many_kinds())
            return entry
        if self.entries.setdefault(signature, entry) is not entry:  # another thread was first
            return self.entries[signature]
        readers = readers_of(arguments)
        if isinstance(readers, str):
            entry.slow_reading = readers
        else:
            entry.open(*readers, signature.batched)
            (self.compiled.batches if signature.batched else self.compiled.ones).append(entry)
        entry.is_eager, entry.clause = bool(signature.reason), signature.reason
        if signature.is_warned:
            self.fallback.fall_back(entry, signature.reason)
        return entry

    def uncount(self, entry: CacheEntry, count: int) -> None:
        """Undo the count of a call that the function serves while another thread records."""
        entry.calls -= 1
        entry.examples -= count
        self.fallback.count(report.THREADS)

    def clear(self) -> None:
        """Forget all entries, and all that was counted of them: the function or what signatures tell has changed."""
        self.entries.clear()
        self.budget = Budget(self.entries)
        self.evicted.clear()
        self.seen_once.clear()
        self.returns = self.oneshot_evictions = 0
        self.compiled.ones.clear()
        self.compiled.batches.clear()

    def _make_room(self) -> bool:
        """Evict the least recently used entry if there are too many; False if evicted ones keep coming back."""
        if len(self.entries) < policy.SIGNATURES:
            return True
        if self.returns >= policy.RETURNS:
            return False
        signature, _ = min(list(self.entries.items()), key=lambda pair: pair[1].used)
        self._evict([signature])
        if len(self.evicted) >= policy.SIGNATURES:
            self.evicted.clear()
        self.evicted.add(signature.key)
        return True

    def _evict(self, signatures: Sequence[Any]) -> None:
        """Remove the entries of some signatures, and their specializations."""
        gone = [entry for entry in [self.entries.pop(each, None) for each in signatures] if entry is not None]
        self.budget.forgotten += sum([entry.examples * entry.work for entry in gone])
        once = [entry.signature for entry in gone if entry.examples < 2 or not entry.signature.is_alive()]
        self.oneshot_evictions += sum([entry.examples < 2 for entry in gone])
        self.new_objects.update([name for signature in once for name in signature.new_objects()])
        for entry in gone:
            log.info("%s is evicted after %d calls: %s", self.fallback.name, entry.calls, entry.signature)
        for readable in (self.compiled.ones, self.compiled.batches) if gone else ():
            readable[:] = [each for each in readable if each not in gone]
