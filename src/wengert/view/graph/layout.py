"""Where the boxes of a graph go, and how its edges run between them: a layered layout, left to right.

The method is that of Sugiyama, Tagawa and Toda (1981): each box gets a rank, which is the length of the longest path
to it; an edge that spans several ranks passes each of those between at a waypoint, which edges from one box share;
each rank is ordered by medians so that few edges cross; and the ranks become columns. Boxes and edges are only sizes
and pairs of places here, and the same input gives the same layout in every run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from wengert.errors import ArgumentError

__all__ = ["Layout", "Point", "layout", "ranked"]

Point = tuple[float, float]

SPREAD, SPACING = 12.0, 10.0  # how far apart edges arrive at a box: all of them together, and two neighbours
CROWD, WIDEST = 10, 100.0  # edges from which on a gap becomes wider, half a pixel for each, and by how much at most
SWEEPS, RELAXATIONS = 8, 12  # how often ranks are reordered, and how often boxes are moved up and down, at most
STRAIGHT = 8.0  # how much more a waypoint weighs than a box, so that long edges are straight (Gansner et al. 1993)
PATIENCE = 40_000  # boxes and waypoints that are gone through in all: the more there are, the fewer times


@dataclass(frozen=True, slots=True)
class Layout:
    """A layout. Lengths are in pixels, from the upper left corner.

    Attributes:
        corners: for each box the x and y of its upper left corner.
        routes: for each edge its points: a curve leads from the first to the second, a horizontal line from the
            second to the third, and so on in turn; the last point is at the left side of the target.
        width: of the whole.
        height: of the whole.
    """

    corners: list[Point]
    routes: list[list[Point]]
    width: float
    height: float


def layout(
    sizes: Sequence[Point], edges: Sequence[tuple[int, int]], *, across: float = 34.0, down: float = 12.0
) -> Layout:
    """Lay out boxes of given sizes and the edges between them.

    An edge leaves its source at the middle of the right side and arrives at the left side of its target. Boxes of one
    rank are in line at their right side. No box touches another, and no edge runs under a box.

    Args:
        sizes: the width and height of each box.
        edges: pairs of places in `sizes`, source and target; a pair may occur twice.
        across: the gap between two columns, where the edges run; many edges make it wider.
        down: the least gap between two boxes of a column.

    Raises:
        ArgumentError: the edges form a cycle.

    >>> layout([(80, 30), (80, 30), (80, 30)], [(0, 2), (1, 2)]).corners
    [(0.0, 0.0), (0.0, 42.0), (114.0, 21.0)]
    """
    ranks = ranked(len(sizes), edges)
    net = _Net(ranks, edges)
    layers = _ordered(net)
    heights = [height for _, height in sizes]
    middles = _middles(net, layers, heights, down)
    lefts, rights = _columns(net, layers, sizes, across)
    corners = [(rights[ranks[v]] - width, middles[v] - height / 2) for v, (width, height) in enumerate(sizes)]
    ports = _ports(net, middles, heights)
    routes = []
    for edge, path in enumerate(net.paths):
        route = [(rights[net.ranks[path[0]]], middles[path[0]])]
        for v in path[1:-1]:
            route += [(lefts[net.ranks[v]], middles[v]), (rights[net.ranks[v]], middles[v])]
        target = path[-1]
        route += [(lefts[net.ranks[target]], ports[edge]), (corners[target][0], ports[edge])]
        routes.append(route)
    ends = [middle + height / 2 for middle, height in zip(middles, heights, strict=False)]
    return Layout(corners, routes, rights[-1] if rights else 0.0, max([*ends, *middles], default=0.0))


# -- ranks ------------------------------------------------------------------------------------------------------------


def ranked(count: int, edges: Sequence[tuple[int, int]]) -> list[int]:
    """The length of the longest path to each box; a box that no edge leads to stands just before its first target.

    Raises:
        ArgumentError: the edges form a cycle.
    """
    targets: list[list[int]] = [[] for _ in range(count)]
    missing = [0] * count
    for source, target in edges:
        targets[source].append(target)
        missing[target] += 1
    starts = [not waits for waits in missing]
    order = [v for v in range(count) if starts[v]]
    ranks = [0] * count
    for v in order:  # which grows as it is read
        for target in targets[v]:
            ranks[target] = max(ranks[target], ranks[v] + 1)
            missing[target] -= 1
            if not missing[target]:
                order.append(target)
    if len(order) < count:
        raise ArgumentError(f"the edges between {count - len(order)} of the boxes form a cycle: there is no first one")
    for v in order:
        if starts[v] and targets[v]:
            ranks[v] = min([ranks[target] for target in targets[v]]) - 1
    return ranks


class _Net:
    """The boxes, and behind them the waypoints of long edges: an edge joins neighbouring ranks only.

    Attributes:
        boxes: how many of the vertices are boxes.
        ranks: of each vertex.
        before: for each vertex those of the rank before that it is joined to,
        behind: and those of the rank behind.
        paths: for each edge the vertices that it passes, from its source to its target.
    """

    def __init__(self, ranks: list[int], edges: Sequence[tuple[int, int]]) -> None:
        self.boxes = len(ranks)
        self.ranks = list(ranks)
        self.before: list[list[int]] = [[] for _ in ranks]
        self.behind: list[list[int]] = [[] for _ in ranks]
        self.paths: list[list[int]] = []
        waypoints: dict[int, list[int]] = {}  # of the edges from one box: all of them share these
        for source, target in edges:
            chain = waypoints.setdefault(source, [source])
            while self.ranks[chain[-1]] < ranks[target] - 1:
                chain.append(self._waypoint(chain[-1]))
            path = chain[: ranks[target] - ranks[source]]
            self._join(path[-1], target)
            self.paths.append([*path, target])

    def _waypoint(self, last: int) -> int:
        new = len(self.ranks)
        self.ranks.append(self.ranks[last] + 1)
        self.before.append([])
        self.behind.append([])
        self._join(last, new)
        return new

    def _join(self, left: int, right: int) -> None:
        self.behind[left].append(right)
        self.before[right].append(left)


# -- the order within a rank ------------------------------------------------------------------------------------------


def _ordered(net: _Net) -> list[list[int]]:
    """The vertices of each rank from above to below: the order with the fewest crossings that the sweeps met."""
    layers = _first_order(net)
    place = [0] * len(net.ranks)
    for layer in layers:
        _number(layer, place)
    best, fewest = [list(layer) for layer in layers], _crossings(net, layers, place)
    for sweep in range(min(SWEEPS, PATIENCE // len(net.ranks) + 1)):
        if not fewest:
            break
        rightwards = sweep % 2 == 0
        for layer in layers[1:] if rightwards else layers[-2::-1]:
            _by_medians(layer, net.before if rightwards else net.behind, place)
        crossings = _crossings(net, layers, place)
        if crossings < fewest:
            best, fewest = [list(layer) for layer in layers], crossings
    return best


def _first_order(net: _Net) -> list[list[int]]:
    """As a walk from the last boxes back meets them: the first operand, and what it stands on, above the second."""
    layers: list[list[int]] = [[] for _ in range(max(net.ranks, default=-1) + 1)]
    waiting = [v for v in range(len(net.ranks) - 1, -1, -1) if not net.behind[v]]
    met = bytearray(len(net.ranks))
    while waiting:
        v = waiting.pop()
        if not met[v]:
            met[v] = True
            layers[net.ranks[v]].append(v)
            waiting.extend(reversed(net.before[v]))
    return layers


def _number(layer: list[int], place: list[int]) -> None:
    for i, v in enumerate(layer):
        place[v] = i


def _by_medians(layer: list[int], neighbours: list[list[int]], place: list[int]) -> None:
    """Sort a rank by the median place of each vertex's neighbours; one without any keeps its place as its key."""
    keys = {}
    for i, v in enumerate(layer):
        keys[v] = _median([place[u] for u in neighbours[v]]) if neighbours[v] else float(i)
    layer.sort(key=keys.__getitem__)
    _number(layer, place)


def _median(numbers: list[float] | list[int]) -> float:
    if len(numbers) == 1:
        return numbers[0]
    numbers.sort()
    half = len(numbers) // 2
    return numbers[half] if len(numbers) % 2 else (numbers[half - 1] + numbers[half]) / 2


def _crossings(net: _Net, layers: list[list[int]], place: list[int]) -> int:
    """How many pairs of edges cross: between two ranks, pairs that stand in opposite orders at the two."""
    total = 0
    for layer, following in pairwise(layers):
        size = 1
        while size < len(following):
            size *= 2
        tree = [0] * (2 * size)  # how many edges ended in each part of the rank so far: Barth, Mutzel, Jünger 2004
        for v in layer:
            for end in sorted([place[u] for u in net.behind[v]]):
                node = end + size
                tree[node] += 1
                while node > 1:
                    if not node & 1:
                        total += tree[node + 1]
                    node >>= 1
                    tree[node] += 1
    return total


# -- up and down ------------------------------------------------------------------------------------------------------


def _middles(net: _Net, layers: list[list[int]], heights: Sequence[float], down: float) -> list[float]:
    """The y of the middle of each vertex: near the median of its neighbours, as far as the rank's order leaves room."""
    half = [height / 2 for height in heights] + [0.0] * (len(net.ranks) - net.boxes)
    middles = [0.0] * len(net.ranks)
    offsets = []  # in each rank, how far below the first vertex each other must at least be
    for layer in layers:
        offset, distances = 0.0, [0.0]
        for above, below in pairwise(layer):
            offset += half[above] + half[below] + down
            distances.append(offset)
        offsets.append(distances)
        for v, distance in zip(layer, distances, strict=True):
            middles[v] = distance - offset / 2
    for turn in range(min(RELAXATIONS, PATIENCE // len(net.ranks) + 2)):
        rightwards = turn % 2 == 0
        near, far = (net.before, net.behind) if rightwards else (net.behind, net.before)
        for rank in range(len(layers)) if rightwards else range(len(layers) - 1, -1, -1):
            layer = layers[rank]
            wishes = [_median([middles[u] for u in near[v] or far[v] or [v]]) for v in layer]
            weights = [1.0 if v < net.boxes else STRAIGHT for v in layer]
            for v, y in zip(layer, _nearest(wishes, weights, offsets[rank]), strict=True):
                middles[v] = y
    top = min([middles[v] - half[v] for v in range(len(middles))], default=0.0)
    return [y - top for y in middles]


def _nearest(wishes: list[float], weights: list[float], offsets: list[float]) -> list[float]:
    """The places nearest to the wishes, by weighted squares, that keep their distances.

    This is isotonic regression: neighbours that are too close become a block that moves as one (pool adjacent
    violators, Ayer et al. 1955).
    """
    blocks: list[tuple[float, float, int]] = []  # the weighted sum of wishes, the weight, how many vertices
    for wish, weight, offset in zip(wishes, weights, offsets, strict=True):
        total, count = (wish - offset) * weight, 1
        while blocks and blocks[-1][0] * weight >= total * blocks[-1][1]:
            last, mass, length = blocks.pop()
            total, weight, count = total + last, weight + mass, count + length
        blocks.append((total, weight, count))
    starts = [total / weight for total, weight, count in blocks for _ in range(count)]
    return [start + offset for start, offset in zip(starts, offsets, strict=True)]


# -- left and right ---------------------------------------------------------------------------------------------------


def _columns(
    net: _Net, layers: list[list[int]], sizes: Sequence[Point], across: float
) -> tuple[list[float], list[float]]:
    """The left and right side of each rank's column."""
    lefts, rights = [], []
    x = 0.0
    for layer in layers:
        width = max([sizes[v][0] for v in layer if v < net.boxes], default=0.0)
        lefts.append(x)
        rights.append(x + width)
        edges = sum([len(net.behind[v]) for v in layer])
        x += width + across + min(max(edges - CROWD, 0) / 2, WIDEST)
    return lefts, rights


def _ports(net: _Net, middles: list[float], heights: list[float]) -> list[float]:
    """For each edge the y at which it arrives: edges to one box arrive in the order in which they come."""
    arriving: dict[int, list[int]] = {}
    for edge, path in enumerate(net.paths):
        arriving.setdefault(path[-1], []).append(edge)
    ports = [0.0] * len(net.paths)
    for target, edges in arriving.items():
        edges.sort(key=lambda edge: middles[net.paths[edge][-2]])
        space = min(SPACING, min(SPREAD, heights[target] / 2) / max(len(edges) - 1, 1))
        for i, edge in enumerate(edges):
            ports[edge] = middles[target] + space * (i - (len(edges) - 1) / 2)
    return ports
