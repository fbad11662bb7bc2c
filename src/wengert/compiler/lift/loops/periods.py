"""Finds recurrences in a flat graph: stretches of groups that repeat, each on results of the one before.

Groups are in the order of their levels, so that what could run at once is one group already; what repeats along them
repeats in time. Only the connections count: constants, coefficients and leaves may differ between iterations.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wengert.compiler.ir import concat_ranges, distinct
from wengert.compiler.lift.flatten import IS_LISTED, FlatGraph
from wengert.compiler.lift.shorten import UNIT, Cut, Whole
from wengert.compiler.lift.simplify import CONST
from wengert.ops import BY_NAME

__all__ = ["Listing", "Recurrence", "lengthen", "recurrences"]

Ints = np.ndarray[Any, np.dtype[np.int64]]
# Measured with seven recurrences of 4 to 24 iterations (`benchmarks.recurrences`) and their reverse sweeps:
ITERATIONS = 8  # the fewest iterations: then a loop has 0.16 to 0.51 of the steps, with six up to 0.54
SAVED = 32  # the fewest groups saved: then compiling takes 0.3 to 0.6 of the time, and the code runs as fast
PERIOD = 256  # the longest stretch whose repetitions are searched for; an iteration may have some more groups
LOOPS = 32  # the most loops of one program
POW = BY_NAME["pow"].code
# Odd multipliers for hashes: those of Knuth's MMIX generator and of Vigna's xorshift64*, 2014.
MIX, SPREAD = np.int64(0x5851F42D4C957F2D), np.int64(0x2545F4914F6CDD1D)


class Listing:
    """The numbers of a flat graph, group by group, with their operands: number by number the first factor of each term,
    the second or -1, and the coefficient. The operands of operations other than sums count as first factors.
    """

    def __init__(self, flat: FlatGraph) -> None:
        self.flat = flat
        self.nodes: Ints = flat.groups.nodes
        self.begin: Ints = flat.groups.begin
        self.code: Ints = flat.groups.codes
        sizes = np.diff(self.begin)
        is_listed = np.repeat(IS_LISTED[self.code], sizes)
        source_start = np.where(is_listed, flat.first[self.nodes], flat.starts[self.nodes])
        end = np.where(is_listed, flat.last[self.nodes], flat.starts[self.nodes + 1])
        self.count: Ints = end - source_start
        self.start: Ints = np.concatenate([[0], np.cumsum(self.count)])  # of each number's operands
        place = np.arange(len(self.nodes)) - np.repeat(self.begin[:-1], sizes)
        mixed = (self.count + 1) * MIX + place * SPREAD
        counts = np.add.reduceat((mixed ^ (mixed >> 31)) * MIX, self.begin[:-1])
        self.signature: Ints = (self.code * MIX) ^ (sizes * SPREAD) ^ counts
        of_sum = np.repeat(is_listed, self.count)
        at = concat_ranges(source_start, self.count)
        left, right, scale = np.empty(len(at), np.int64), np.full(len(at), -1), np.ones(len(at))
        left[~of_sum] = flat.operands[at[~of_sum]]
        left[of_sum], right[of_sum] = flat.factor[at[of_sum]], flat.other[at[of_sum]]
        scale[of_sum] = flat.coefficient[at[of_sum]]
        self.operands: tuple[Ints, Ints, Any] = left, right, scale
        self.is_exponent: Any = np.repeat(np.repeat(self.code == POW, sizes), self.count)  # or base
        self.position: Ints = np.full(len(flat.source) + 1, -1)  # the last entry is that of operand -1
        self.position[self.nodes] = np.arange(len(self.nodes))

    def connected(self, low: int, high: int) -> Ints:
        """Return hashes of some groups that also depend on how far back they read.

        All stages of a Runge-Kutta step have the same operations, but only every fourth reads the same numbers.
        """
        first, last = self.begin[low], self.begin[high]
        at = slice(self.start[first], self.start[last])
        user = np.repeat(np.arange(first, last), self.count[first:last])
        mixed = np.zeros(len(user) + 1, np.int64)
        for side, factor in zip(self.operands[:2], (SPREAD, MIX), strict=True):
            read = self.position[side[at]]
            back = np.where((read >= 0) & ((user - read) * ITERATIONS <= last - first), user - read, 0)
            mixed[:-1] += (back ^ (back * MIX >> 31)) * factor  # what is read from outside moves away: 0
        return self.signature[low:high] ^ np.add.reduceat(mixed, self.start[self.begin[low:high]] - at.start) * MIX


def recurrences(flat: FlatGraph) -> list[Recurrence]:
    if len(flat.groups) <= SAVED:
        return []
    listing = Listing(flat)
    runs: list[Recurrence] = []
    unsearched = [(0, len(flat.groups))]
    while unsearched and len(runs) < LOOPS:
        low, high = unsearched.pop()
        best = max(_candidates(listing, low, high), key=lambda run: run.saved, default=None)
        if best is not None:
            runs.append(best)
            unsearched += [(low, best.first), (best.last, high)]
    return sorted(runs, key=lambda run: run.first)


def lengthen(runs: Sequence[Recurrence], cut: Cut) -> int:
    """Lengthen the loop around a cut, else raise Whole. Returns the number of groups left out."""
    size = UNIT * cut.size
    for run in runs:
        place, begin = run.listing.position, run.listing.begin[run.first]
        inside = place[cut.at : cut.at + cut.size] - begin
        inside = inside[inside >= -begin]
        if inside.min() < 0 or inside.max() >= run.size * run.iterations:
            continue
        ids, row = run.node_ids, int(inside.min()) // run.size
        first = ids.reshape(-1)[inside.min()]
        count = int(place[first + size] - place[first]) // run.size  # iterations of this loop for UNIT recorded ones
        near = ids[max(row - count, 0) : row + 2 * count]
        is_even = 0 < 3 * count == len(near) and (near[count:] - near[:-count] == size).all() and not run.scales.size
        if is_even and ids[:row].max() < cut.at + cut.near and (run.columns == run.columns[0]).all():
            run.rows[row:] += count * (cut.iterations // UNIT)
            return count * (cut.iterations // UNIT) * run.period
    raise Whole


def _candidates(listing: Listing, low: int, high: int) -> Iterator[Recurrence]:
    """Yield the longest loops among some groups, for each possible period."""
    hashes = listing.signature[low:high], listing.connected(low, high)
    for period in sorted({period for each in hashes for period in _periods(each)}):
        for first, last in _stretches(listing, period, low, high):
            for start, end in _patterns(listing, period, first, last):
                run = _align(listing, period, start, end)
                if run is not None:
                    yield run


def _periods(signature: Ints) -> list[int]:
    """Return distances at which stretches of 1, 2, 4, ... groups occur again, by their hashes."""
    hashed, periods, length = signature * MIX, set(), 1
    beyond = 1 << len(signature).bit_length()
    while length <= min(len(signature) // ITERATIONS, PERIOD):
        ordered = np.sort((hashed & -beyond) | np.arange(len(hashed)))  # by hash, then place: argsort takes much longer
        distances = np.diff(ordered)[(ordered[1:] ^ ordered[:-1]) & -beyond == 0]
        distances = distances[distances * ITERATIONS <= len(signature)]
        if len(distances):
            values, counts = np.unique(distances, return_counts=True)
            periods.update(values[np.argsort(-counts * np.minimum(values, 4 * length), kind="stable")[:3]].tolist())
        hashed = (hashed[:-length] * SPREAD) ^ ((hashed[length:] >> 7) + hashed[length:] * 31)
        length *= 2
    return sorted(periods)


def _runs(flags: Any, first: int) -> list[tuple[int, int]]:
    """Return the ranges in which flags are true; `first` is the number of the first flag."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]]).astype(np.int8))) + first
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


def _stretches(listing: Listing, period: int, low: int, high: int) -> Iterator[tuple[int, int]]:
    """Yield ranges of groups that equal those a period before, for enough iterations."""
    sign = listing.signature[low:high]
    for start, end in _runs(sign[period:] == sign[:-period], low + period):
        iterations = (end - start) // period + 1
        if iterations >= ITERATIONS and iterations * period >= SAVED:  # with the one before them
            yield start - period, end


def _patterns(listing: Listing, period: int, first: int, last: int) -> Iterator[tuple[int, int]]:
    """Yield subranges whose operands repeat, too: numbers one iteration later than before, or from outside."""
    left, right, scale = listing.operands
    low, high, shift = listing.begin[first], listing.begin[last], listing.begin[first + period] - listing.begin[first]
    if not np.array_equal(listing.count[low + shift : high], listing.count[low : high - shift]):
        return
    here = slice(listing.start[low + shift], listing.start[high])
    before = slice(listing.start[low], listing.start[high - shift])
    same = (right[here] < 0) == (right[before] < 0)
    same &= (scale[here] == scale[before]) | (right[here] < 0)
    same &= ~listing.is_exponent[here] | (listing.flat.source[left[here]] != CONST) | (left[here] == left[before])
    moved = [listing.position[side[here]] - listing.position[side[before]] == shift for side in (left, right)]
    moved[0] &= listing.position[left[before]] >= 0
    moved[1] &= listing.position[right[before]] >= 0
    bounds = listing.start[listing.begin[first + period : last]] - here.start
    alike = np.logical_and.reduceat(same, bounds)
    ahead = int(listing.start[listing.begin[first + 2 * period]] - here.start)  # the operands of one iteration
    pattern = (moved[0][ahead:] == moved[0][:-ahead]) & (moved[1][ahead:] == moved[1][:-ahead])
    keeps = np.logical_and.reduceat(pattern, bounds[period:] - ahead) & alike[period:]
    for start, end in _runs(keeps, first + 2 * period):
        flags = alike[start - period - (first + period) : start - (first + period)]
        begin = start if flags.all() else start + int(np.flatnonzero(~flags)[-1]) + 1
        if end - begin + 2 * period >= period * ITERATIONS:
            yield begin - 2 * period, end


def _align(listing: Listing, period: int, first: int, last: int) -> Recurrence | None:
    """Return the loop of a stretch.

    It begins where iterations carry the least, and after everything that it reads from outside; or it ends before that
    is read.
    """
    left, right, _ = listing.operands
    low, shift = listing.begin[first], listing.begin[first + period] - listing.begin[first]
    edges = slice(listing.start[low + shift], listing.start[listing.begin[last]])
    length = edges.start - listing.start[low]  # the operands of an iteration
    latest = np.full(edges.stop - edges.start, -1)  # what each reads that does not move along
    for side in (left, right):
        here = listing.position[side[edges]]
        before = listing.position[side[edges.start - length : edges.stop - length]]
        latest = np.maximum(latest, np.where((before >= 0) & (here - before == shift), -1, here))
    late = np.flatnonzero(latest >= low)
    for edge, read in zip((late + edges.start).tolist(), latest[late].tolist(), strict=True):
        start = listing.begin[first]
        if read < start or edge < listing.start[start + shift]:  # of a loop that has begun later by now
            continue
        reader = int(np.searchsorted(listing.start, edge, "right")) - 1
        end = int(np.searchsorted(listing.begin, reader, "right")) - 1
        begin = int(np.searchsorted(listing.begin, read, "right"))
        if end - first >= last - begin:
            last = end
            break
        first = begin
        if last - first < ITERATIONS * period:
            return None
    if last - first < ITERATIONS * period:
        return None
    iterations = (last - first) // period
    spare = [r for r in range(period) if (last - first - r) // period >= max(iterations - 1, ITERATIONS)]
    carried = {r: _carried(listing, period, first + r, first) for r in spare}
    for r in sorted(spare, key=lambda r: (carried[r], -((last - first - r) // period), r))[:2]:
        iterations = (last - first - r) // period
        for earlier in (1, 0):  # the previous iteration may belong to the loop: it differs only in what it reads
            if (
                first + r >= earlier * period
                and listing.begin[first + r]
                and (iterations + earlier - 1) * period >= SAVED
            ):
                run = Recurrence.of(listing, first + r - earlier * period, period, iterations + earlier)
                if run is not None:
                    return run
    return None


def _carried(listing: Listing, period: int, first: int, stretch_start: int) -> int:
    """Count the numbers of earlier iterations that an iteration reads if it begins at the group `first`."""
    left, right, _ = listing.operands
    low, shift = listing.begin[first + period], listing.begin[first + period] - listing.begin[first]
    edges = slice(listing.start[low], listing.start[low + shift])
    read = np.concatenate([listing.position[side[edges]] for side in (left, right)])
    read = read[(read >= listing.begin[stretch_start]) & (read < low)]
    return len(np.unique(read))


def _with_sides(left: Ints, right: Ints) -> tuple[Ints, Ints]:
    """Swap factors so that a factor common to all iterations is on the same side in all.

    If the other factor is carried, that of the first iterations may be anything, and may come in the other order.
    """
    for side, other in ((left, right), (right, left)):
        swapped = side != side[-1]
        swapped &= (~swapped | (other == side[-1])).all(0) & (right[0] >= 0)
        left, right = np.where(swapped, right, left), np.where(swapped, left, right)
    return left, right


@dataclass
class Recurrence:
    """A loop of `iterations` times `period` groups, from the group `first` on.

    An operand is a number of the same iteration, of the iteration `lag` before, or from outside.
    """

    listing: Listing
    first: int
    period: int
    iterations: int
    size: int  # numbers of an iteration
    names: tuple[Ints, Ints]  # of an iteration's operands: numbers of the iteration, then its leaves
    scale: Any  # their coefficients
    carried: list[tuple[int, int]]  # leaves of earlier iterations: the number there, and its lag
    columns: Ints  # leaves from outside: the number in each iteration
    scales: Any  # leaves that are coefficients: the value in each iteration
    initial: dict[tuple[int, int], int]  # the number read for (number, lag) by iterations that have no earlier one
    rows: Ints  # the number of each iteration: between them some may have been left out

    @property
    def last(self) -> int:
        return self.first + self.period * self.iterations

    @property
    def saved(self) -> int:
        return self.period * (self.iterations - 1)

    @property
    def node_ids(self) -> Ints:
        low = self.listing.begin[self.first]
        return self.listing.nodes[low : low + self.size * self.iterations].reshape(self.iterations, self.size)

    @classmethod
    def of(cls, listing: Listing, first: int, period: int, iterations: int) -> Recurrence | None:
        """Return the loop of these groups; None if they form none."""
        last = first + period * iterations
        sign = listing.signature[first:last].reshape(iterations, period)
        low, high = int(listing.begin[first]), int(listing.begin[last])
        size = (high - low) // iterations
        counts = (
            listing.count[low:high].reshape(iterations, -1) if (high - low) == size * iterations else listing.count[:0]
        )
        if not (sign == sign[0]).all() or not len(counts) or not (counts == counts[0]).all():
            return None
        edges = slice(listing.start[low], listing.start[high])
        left, right, scale = [side[edges].reshape(iterations, -1) for side in listing.operands]
        if not ((right < 0) == (right[0] < 0)).all():
            return None
        left, right = _with_sides(left, right)
        power = left[:, listing.is_exponent[edges.start : edges.start + left.shape[1]]]
        if ((listing.flat.source[power] == CONST) & (power != power[0])).any():
            return None
        ids = np.concatenate([left, right[:, right[0] >= 0]], axis=1)
        position = listing.position[ids]
        ends = position[-1] - low - (iterations - 1) * size
        lag, within = np.where(position[-1] >= low, -(ends // size), iterations), ends % size
        iteration = np.arange(iterations)[:, None]
        inside = iteration >= lag
        expected = low + (iteration - lag) * size + within
        if (np.where(inside, position != expected, position >= low)).any() or not (
            (lag > 0) & (lag < iterations)
        ).any():
            return None
        own, outer = lag < iterations, np.flatnonzero(lag == iterations)
        carried = sorted({(q, m) for q, m in zip(within[own].tolist(), lag[own].tolist(), strict=True) if m > 0})
        place = {leaf: size + n for n, leaf in enumerate(carried)}
        initial: dict[tuple[int, int], int] = {}
        for column in np.flatnonzero((lag > 0) & own).tolist():
            for t in range(int(lag[column])):
                key = int(within[column]), int(lag[column]) - t
                if initial.setdefault(key, int(ids[t, column])) != ids[t, column]:
                    return None
        names = np.empty(ids.shape[1], np.int64)
        for column in np.flatnonzero(own).tolist():
            key = int(within[column]), int(lag[column])
            names[column] = place[key] if key[1] else key[0]
        kinds, number = distinct(ids[:, outer].T) if len(outer) else (outer, outer)
        names[outer] = size + len(carried) + number
        columns = ids[:, outer[kinds]]
        changing = np.flatnonzero((scale != scale[0]).any(0))
        if (right[0, changing] >= 0).any():
            return None
        first_side, second_side = names[: left.shape[1]], np.full(left.shape[1], -1)
        second_side[right[0] >= 0] = names[left.shape[1] :]
        second_side[changing] = size + len(carried) + columns.shape[1] + np.arange(len(changing))
        fixed = scale[0].copy()
        fixed[changing] = 1.0
        sides = first_side, second_side
        places = listing, first, period, iterations, size
        return cls(*places, sides, fixed, carried, columns, scale[:, changing], initial, np.arange(iterations))
