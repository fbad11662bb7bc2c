"""Why the function itself serves a call: the reasons, which are warned of once, and how often each came."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wengert.compiler import policy
from wengert.compiler.call import CacheEntry
from wengert.compiler.log import log
from wengert.compiler.record import Specialization
from wengert.errors import warn, warn_once

__all__ = ["DIFFERS", "Fallback"]

DIFFERS = "something that was recorded as fixed has changed, or differs between calls; pass it as an argument"


class Fallback:
    """Leaves calls of one compiled function to the function itself.

    Args:
        compiled: the compiled function.
        name: its name, for messages.
        entries: its cache entries, as they are at each time.

    Attributes:
        is_quiet: True if nobody is told what runs uncompiled.
        counts: calls that the function itself served, by reasons that are not its own.
    """

    def __init__(self, compiled: Any, name: str, entries: Mapping[Any, CacheEntry]) -> None:
        self.compiled: Any = compiled
        self.name: str = name
        self.entries: Mapping[Any, CacheEntry] = entries
        self.counts: dict[str, int] = {}
        self.is_quiet: bool = False
        self._warned: set[str] = set()

    def forget(self) -> None:
        """Forget what was warned of: the function was redefined."""
        self._warned.clear()

    def count(self, why: str) -> None:
        """Count a call that the function itself serves, for a reason that is not its own."""
        self.counts[why] = self.counts.get(why, 0) + 1
        log.debug("%s: a call is served by the function itself, %s", self.name, why)

    def fall_back(self, entry: CacheEntry, why: str) -> None:
        """Leave the calls of an entry to the function from now on, and warn once."""
        entry.is_eager, entry.fallback_reason = True, why
        log.info("%s falls back for %s: %s", self.name, entry.signature, why)
        self._warn(why)
        entries = list(self.entries.values())
        refused = [each for each in entries if each.fallback_reason and not each.signature.reason]
        if len(refused) >= policy.SPECIALIZATIONS and all(each.is_eager for each in entries):
            self.compiled.is_eager = True  # each call would have yet another signature

    def rest(self, entry: CacheEntry, why: str, warns: bool = True) -> None:
        """Leave the calls of an entry to the function until the next one whose number is a power of two, which is
        watched again. Each watched run so far changed objects (or another thread did), or raised an exception; then
        there is no warning, as a filter that turns warnings into errors would replace the exception.
        """
        entry.fallback_reason, entry.clause = f"{why}; calls whose number is a power of two are observed again", ""
        if not entry.signature.batched:
            entry.compile_after = 1 << entry.examples.bit_length()
        log.info("%s rests for %s: %s", self.name, entry.signature, why)
        if warns:
            self._warn(entry.fallback_reason)

    def _warn(self, why: str) -> None:
        if not self.is_quiet:
            warn_once(self._warned, f"{self.name} runs uncompiled: {why}")

    def rests(self, entry: CacheEntry) -> bool:
        """Return True if this call is not watched, as too many have changed objects, or raised an exception."""
        return entry.changes >= policy.CHANGES and not policy.is_milestone(entry.calls)

    def drop(self, entry: CacheEntry, specialization: Specialization, reason: str) -> None:
        """Drop a specialization whose result differs from the function's, and warn."""
        entry.specializations = [each for each in entry.specializations if each is not specialization]
        entry.latest = None
        self.invalidate(entry, f"{reason}: {DIFFERS}")

    def invalidate(self, entry: CacheEntry, why: str) -> None:
        """Count a recording that is dropped; after too many the function runs uncompiled."""
        entry.invalidations += 1
        if entry.invalidations >= policy.INVALIDATIONS:
            self.fall_back(entry, why)
        else:
            log.info("%s drops a recording for %s: %s", self.name, entry.signature, why)
            warn(f"a recording of {self.name} is dropped: {why}")
