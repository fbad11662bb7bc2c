"""Folds graphs that are too large to be drawn value by value into parts: by layer, by neuron, by example.

A picture shows all values, or parts of one kind: of a layer that is unfolded, each neuron is one box, its weights are
edges that lead there, and inputs are drawn once.

The graph itself tells which part a value belongs to. A value that is computed with parameters of `layers.0.neurons.3`
belongs to that neuron, and so does its activation. If the same parameters are used repeatedly, each use is an example
(or a step, if one use depends on another), and values that are computed only for one example belong to it. Values
without a part are folded into runs in the order of creation.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import pairwise

from wengert.graph import Graph
from wengert.ops import BY_NAME
from wengert.view import naming
from wengert.view.graph.read import computed, constants, edges, is_untaken_side, steepest, stopping
from wengert.view.graph.scene import PATH, SIGNED, Box, Cell, Edge, Picture, cell_of, value_box, with_constants
from wengert.view.naming import TITLE, clean, ending, number
from wengert.view.scopes import Scope, common

__all__ = ["FEWEST", "MOST", "OUTSIDE", "Cluster", "Folding", "folded"]

FEWEST, MOST = 50, 5_000  # the range of `limit`
ADD, DOT = BY_NAME["add"].code, BY_NAME["dot"].code

BRANCHES = 32  # the number of runs that a long sequence is folded into
SMALL = 3  # up to this many values are not folded
FEW = 8  # a sequence is cut where its items change kind, if there are fewer such places
TOLD = 3  # the largest number of labels or operations in the name of a run
REPEATED = ("example ", "step ")  # the names of uses of the same parameters begin with one of these
OUTSIDE = 16  # the largest number of boxes for values outside a part


@dataclass(slots=True)
class Cluster:
    """Many values that are drawn as one box.

    Attributes:
        name: a name that no other part has.
        items: its content in the order of creation: indices of values, and smaller parts.
        places: the indices of all values in it, in order.
        output: the index of the value that it computes, if it is a part with one output, such as a neuron; else -1.
    """

    name: str
    items: Sequence[int | Cluster]
    places: Sequence[int]
    output: int = -1


class Folding:
    """A graph with its parts; `picture` draws one of them.

    Many fields, set once: what is asked of the graph for each picture is computed for all.

    Args:
        graph: the computation.
        limit: the largest number of boxes in a picture, without those outside its part.
        rankdir: the direction of the edges.
        names: the text on top of each value; by default its label or its name from `naming.names`.

    Attributes:
        graph: the computation.
        limit: the argument.
        everything: the part with everything.
        scopes: the layer, neuron and example of each value; empty if no live model has made them.
    """

    def __init__(self, graph: Graph, limit: int = 60, rankdir: str = "LR", *, names: list[str] | None = None) -> None:
        self.graph: Graph = graph
        self.limit: int = limit
        self.rankdir: str = rankdir
        called = zip(graph.values, names or naming.names(graph), strict=True)
        self._names = [name if names else value.label or name for value, name in called]
        self._gradients = [value.grad for value in graph.values]
        self._known = computed(graph, self._gradients)
        path = steepest(graph, self._gradients)  # indices in graph.operands
        self._path = frozenset(path if all(self._known[graph.operands[at]] for at in path) else [])
        self._hot = frozenset([len(graph) - 1, *(graph.operands[at] for at in self._path)] if self._path else [])
        self._stops, self._notes = stopping(graph, self._known)
        self.scopes: list[Scope]
        self.scopes, self._made = ([], bytearray()) if names else self._owned()
        places: Sequence[int] = range(len(graph))
        items: Sequence[int | Cluster] = places
        if self.scopes:
            self._uses = Counter(graph.operands)
            grouped = self._grouped(places)
            several = any(isinstance(item, Cluster) and item.name.startswith(REPEATED) for item in grouped)
            items = grouped if several else _with_end(grouped, "result")
        self.everything: Cluster = Cluster("everything", items, places)

    def _owned(self) -> tuple[list[Scope], bytearray]:
        """Return what `naming.scopes` returns; empty if no live model owns a parameter."""
        leaves = [self.graph.values[place] for place in self.graph.leaves]
        if len(self.graph) <= self.limit and all(leaf.label for leaf in leaves):
            return [], bytearray()  # saves the search through the models
        return naming.scopes(self.graph)

    # -- parts ---------------------------------------------------------------------------------------------------------

    def _grouped(self, places: Sequence[int], depth: int = 0) -> list[int | Cluster]:
        """Group values into items: those of one scope at this depth become a part."""
        groups: dict[str, list[int]] = {}
        items: list[int | Cluster] = []
        for place in places:
            scope = self.scopes[place]
            if len(scope) > depth:
                groups.setdefault(scope[depth], []).append(place)
            else:
                items.append(place)
        for name, members in groups.items():
            results = [place for place in members if self._made[place]]
            neuron = 0 < len(results) < len(members) and all(len(self.scopes[place]) == depth + 1 for place in results)
            if len(members) <= SMALL and not neuron:
                items += members
                continue
            inner = self._grouped(members, depth + 1)
            if name.startswith(REPEATED) and depth == 0:
                inner = _with_end(inner, name)
            output = results[-1] if neuron and any(self.graph.codes[place] == DOT for place in results) else -1
            items.append(inner[0] if len(inner) == 1 else Cluster(name, inner, members, output))
        return sorted(self._with_sums(items), key=lambda item: _places(item)[-1])

    def _with_sums(self, items: list[int | Cluster]) -> list[int | Cluster]:
        """Return the items, with the additions of Python's `sum`, one after the other, as one part."""
        chains: dict[int, list[int]] = {}  # the additions of a sum, by the last one so far
        for place in sorted(item for item in items if isinstance(item, int) and self.graph.codes[item] == ADD):
            before = [chains.pop(x) for _, x in edges(self.graph, place) if x in chains and self._uses[x] == 1]
            chains[place] = sorted([place, *(x for chain in before for x in chain)])
        sums = [Cluster("sum", chain, chain, last) for last, chain in chains.items() if len(chain) >= SMALL]
        inside = {place for part in sums for place in part.places}
        return [*(item for item in items if isinstance(item, Cluster) or item not in inside), *sums]

    # -- one picture --------------------------------------------------------------------------------------------------

    def picture(self, part: Cluster | None = None) -> tuple[Picture, dict[int, Cluster]]:
        """Return the picture of a part, by default of everything, and the parts among its boxes by box."""
        part = part or self.everything
        items = self._sorted(self._unfolded(part))
        owner = self._owner(items)
        boxes = [self._box(item) for item in items]
        for i, factor in self._factors(items).items():
            boxes[i].rows.append(Cell("times", factor, "count"))
        joined = self._edges(part, items, owner, boxes)
        inside = {i: item for i, item in enumerate(items) if isinstance(item, Cluster)}
        notes = [PATH] if any(edge.hot for edge in joined) else []
        notes += [SIGNED] if any(edge.weight is not None for edge in joined) else []
        return Picture(boxes, joined, notes + self._notes, self.rankdir), inside

    def _unfolded(self, part: Cluster) -> Sequence[int | Cluster]:
        """Return the items to draw: all values of a part if they fit, else those of the deepest level that fits."""
        if self._fits(part.places):
            return part.places
        items = part.items if self._fits(part.items) else self._runs(self._sorted(part.items))
        while any(isinstance(item, Cluster) and item.output < 0 for item in items):
            opened: list[int | Cluster] = []
            for item in items:
                if isinstance(item, Cluster) and item.output < 0:
                    opened += item.items if len(item.items) <= 2 * BRANCHES else self._runs(self._sorted(item.items))
                else:
                    opened.append(item)
            if not self._fits(opened):
                break
            items = opened
        return items

    def _fits(self, items: Sequence[int | Cluster]) -> bool:
        """Return True if there is room for the boxes of these items and of their constants."""
        room = self.limit - len(items)
        inputs = set()
        for item in items if room >= 0 else ():
            for place in self._shown(item):
                found = constants(self.graph, place)
                key = tuple([x for _, _, numbers in found for x in numbers])
                if self.graph.codes[place] != DOT or key not in inputs:
                    room -= len(found)
                    inputs.add(key)
        return room >= 0

    def _shown(self, item: int | Cluster) -> Sequence[int]:
        """Return the values of an item whose constants are drawn: the value itself, or the sums of a neuron."""
        if not isinstance(item, Cluster):
            return (item,)
        places = item.places if item.output >= 0 else ()
        return [place for place in places if self.graph.codes[place] == DOT and self._made[place]]

    def _owner(self, items: Sequence[int | Cluster]) -> array[int]:
        """Return for each value the index of its item; -1 if it has none."""
        owner = array("q", [-1]) * len(self.graph)
        for i, item in enumerate(items):
            for place in _places(item):
                owner[place] = i
        return owner

    def _sorted(self, items: Sequence[int | Cluster]) -> Sequence[int | Cluster]:
        """Sort the items topologically. Items that depend on each other in a cycle become one part of all their values,
        which have no cycles.
        """
        if isinstance(items, range) or not any(isinstance(item, Cluster) for item in items):
            return items  # in the order of creation
        owner = self._owner(items)
        before: list[set[int]] = [set() for _ in items]
        behind: list[set[int]] = [set() for _ in items]
        for i, item in enumerate(items):
            for place in _places(item):
                for _, source in edges(self.graph, place):
                    if owner[source] not in (i, -1):
                        before[i].add(owner[source])
                        behind[owner[source]].add(i)
        order, circle = _order(range(len(items)), before, behind)
        if not circle:
            return [items[i] for i in order]
        last, circle = _order(circle, behind, before)  # items that only depend on a cycle are not in it
        circular = [items[i] for i in circle]
        places = sorted(_places_of(circular))
        joined = Cluster(self._called(circular), places, places)
        return [*(items[i] for i in order), joined, *(items[i] for i in reversed(last))]

    def _box(self, item: int | Cluster) -> Box:
        if isinstance(item, int):
            grad = self._gradients[item] if self._known[item] else None
            box = value_box(self.graph, item, grad, self._names[item])
            box.hot, box.stops = item in self._hot, item in self._stops
            return box
        if item.output >= 0:
            return self._of_output(item)
        count, largest = len(item.places), max([abs(self._gradients[place]) for place in item.places])
        known = any(self._known[place] for place in item.places)
        rows = [Cell("values", f"{count:,}", "count")]
        rows.append(Cell("|grad|", f"≤ {number(largest)}", "grad") if known else cell_of("grad", None))
        title = f"{clean(item.name, TITLE)}\n{count:,} values" + (f"\nlargest gradient {largest!r}" if known else "")
        return Box("fold", ending(item.name), "", rows, title, hot=any(place in self._hot for place in item.places))

    def _of_output(self, item: Cluster) -> Box:
        """Return the box of a part with one output: the output, and the bias of a neuron."""
        grad = self._gradients[item.output] if self._known[item.output] else None
        box = value_box(self.graph, item.output, grad, self.graph.values[item.output].label or item.name)
        biases = [x for place in self._shown(item) for _, x in edges(self.graph, place)[-1:] if x in item.places]
        box.rows += [Cell("b", number(self.graph.values[x].data), "data") for x in biases if not self.graph.codes[x]]
        box.kind, box.place, box.hot = "fold", -1, any(place in self._hot for place in item.places)
        return box

    def _factors(self, items: Sequence[int | Cluster]) -> dict[int, str]:
        """Return the factor of each leaf in a `dot`, by the leaf's item, if there is only one: in a neuron the edges of
        weights and inputs do not show which belong together.
        """
        factors: dict[int | float, set[str]] = {}
        drawn = [(i, item) for i, item in enumerate(items) if not isinstance(item, Cluster)]
        for _, place in drawn:
            if self.graph.codes[place] == DOT:
                operands = self.graph[place].operands
                half = len(operands) // 2
                for leaf, other in zip(operands[:half], operands[half:], strict=False):
                    text = clean(self._names[other]) if isinstance(other, int) else number(other)
                    factors.setdefault(leaf, set()).add(text)
        alone = [(i, factors[place]) for i, place in drawn if place in factors and not self.graph.codes[place]]
        return {i: found.pop() for i, found in alone if len(found) == 1}

    def _runs(self, items: Sequence[int | Cluster]) -> list[int | Cluster]:
        """Fold many items into a few parts in the same order; examples and the like are separated from other items."""
        size = 1
        while size * BRANCHES < len(items):
            size *= BRANCHES
        cuts = [0, len(items)]
        if not isinstance(items, range):
            words = [item.name.partition(" ")[0] if isinstance(item, Cluster) else "" for item in items]
            changes = [i for i in range(1, len(items)) if words[i] != words[i - 1]]
            cuts[1:1] = changes if len(changes) < FEW else []
        runs: list[int | Cluster] = []
        for start, end in pairwise(cuts):
            for i in range(start, end, size):
                run = items[i : min(i + size, end)]
                if len(run) == 1 or (len(run) <= SMALL and not any(isinstance(item, Cluster) for item in run)):
                    runs += run
                else:
                    places = run if isinstance(run, range) else sorted(_places_of(run))
                    runs.append(Cluster(self._called(run), run, places))
        return runs

    def _called(self, items: Sequence[int | Cluster]) -> str:
        """Name a run by its first and last part, or by the indices of its values and their labels or operations."""
        first, last = items[0], items[-1]
        if isinstance(first, Cluster) and isinstance(last, Cluster):
            word, _, start = first.name.partition(" ")
            other, _, end = last.name.rpartition(" ")
            if start.isdigit() and end.isdigit() and word == other:
                return f"{word}s {start} to {end}"
            return f"{first.name} … {last.name}"
        places = _places_of(items)
        told = [clean(self.graph.values[place].label) for place in places if self.graph.values[place].label]
        if not told or len(told) > TOLD:
            made = Counter([clean(self.graph.values[place]._op) for place in places if self.graph.codes[place]])
            told = [f"{count:,} {symbol}" for symbol, count in made.most_common(TOLD)]
        return f"values {places[0] + 1:,} to {places[-1] + 1:,}" + (f": {', '.join(told)}" if told else "")

    def _edges(self, part: Cluster, items: Sequence[int | Cluster], owner: array[int], boxes: list[Box]) -> list[Edge]:
        """Return the edges between the boxes; add boxes of constants and of values outside the part."""
        drawn: list[Edge] = []
        folded: dict[tuple[int, int], Edge] = {}  # from and to parts there is one edge between two boxes
        outside: dict[str, int] = {}
        inputs: dict[tuple[float, ...], list[int]] = {}
        for i, item in enumerate(items):
            single = not isinstance(item, Cluster)
            for place in self._shown(item):
                for edge in with_constants(self.graph, place, i, boxes, inputs):
                    edge.weight = self._weight(place, edge.at, item)
                    drawn.append(edge)
            for place in _places(item):
                for at, source in edges(self.graph, place):
                    start = owner[source]
                    if start == i:
                        continue
                    hot = at in self._path
                    if start < 0:
                        start = self._outer_box(part, source, outside, boxes)
                    elif single and not isinstance(items[start], Cluster):
                        drawn.append(Edge(start, i, at, hot, grey=is_untaken_side(self.graph, place, at)))
                        continue
                    if (start, i) in folded:
                        folded[start, i].weight = None
                    edge = folded.setdefault((start, i), Edge(start, i, weight=self._weight(place, at, item)))
                    edge.hot |= hot
        drawn += self._onwards(owner, boxes)
        return [*drawn, *folded.values()]

    def _weight(self, place: int, at: int, item: int | Cluster) -> float | None:
        """Return the weight that a neuron multiplies an operand by; None outside neurons, or if there are several."""
        if not isinstance(item, Cluster) or self.graph.codes[place] != DOT:
            return None
        start, end = self.graph.starts[place], self.graph.starts[place + 1]
        half = (end - start) // 2
        together = any(first == at and len(numbers) > 1 for first, _, numbers in constants(self.graph, place))
        if together or at - start >= 2 * half:
            return None
        other = self.graph.operands[start + (at - start + half) % (2 * half)]
        return self.graph.values[other].data if other >= 0 and not self.graph.codes[other] else None

    def _outer_box(self, part: Cluster, place: int, known: dict[str, int], boxes: list[Box]) -> int:
        """Return the box of a value outside the part that something in it uses; values of one scope share a box."""
        name = self._names[place] if self.scopes or self.graph.values[place].label else "earlier values"
        if self.scopes:
            theirs, ours = self.scopes[place], self.scopes[part.places[0]]
            name = ([*theirs[len(common([theirs, ours])) :], name])[0]
        if name not in known and len(known) >= OUTSIDE:
            name = "other values"
        if name not in known:
            known[name] = len(boxes)
            boxes.append(Box("outside", ending(name), title=f"{clean(name, TITLE)}: outside this part"))
        return known[name]

    def _onwards(self, owner: array[int], boxes: list[Box]) -> list[Edge]:
        """Return an edge from each box with a value that is used outside the part."""
        without = [place for place, i in enumerate(owner) if i < 0]
        sources = sorted({owner[x] for place in without for _, x in edges(self.graph, place)} - {-1})
        if not sources:
            return []
        boxes.append(Box("outside", "onwards", title="uses the values of this part"))
        return [Edge(source, len(boxes) - 1) for source in sources]


def folded(parts: dict[int, Cluster]) -> str:
    """Write the note about folded parts."""
    values = sum([len(part.places) for part in parts.values()])
    return f"{values:,} values are folded into {len(parts)} box{'es' * (len(parts) > 1)}"


# -- parts ------------------------------------------------------------------------------------------------------------


def _with_end(items: list[int | Cluster], name: str) -> list[int | Cluster]:
    """Return the items of an example, with the values computed after its layers, such as its loss, as one part."""
    start = max([item.places[-1] for item in items if isinstance(item, Cluster)], default=-1)
    end = [item for item in items if isinstance(item, int) and item > start >= 0]
    if len(end) < 2:
        return items
    return [*items[: -len(end)], Cluster(name, end, end, end[-1])]  # they are sorted


def _places_of(items: Sequence[int | Cluster]) -> list[int]:
    return [place for item in items for place in _places(item)]


def _places(item: int | Cluster) -> Sequence[int]:
    return item.places if isinstance(item, Cluster) else (item,)


def _order(items: Iterable[int], before: list[set[int]], behind: list[set[int]]) -> tuple[list[int], list[int]]:
    """Sort items topologically, with ties in the order of their numbers; return the rest, which has cycles, too."""
    there = set(items)
    waits = {i: len(before[i] & there) for i in sorted(there)}
    free = [i for i, count in waits.items() if not count]  # sorted, so a heap
    order = []
    while free:
        i = heappop(free)
        order.append(i)
        there.discard(i)
        for j in behind[i] & there:
            waits[j] -= 1
            if not waits[j]:
                heappush(free, j)
    return order, sorted(there)
