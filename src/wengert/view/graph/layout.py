"""Places the boxes of a graph and routes its edges: a layered layout, left to right.

The method is that of Sugiyama, Tagawa and Toda (1981): each box gets a rank, the length of the longest path to it; an
edge that spans several ranks passes a waypoint in each rank between, which edges from one box share; each rank is
ordered by medians so that few edges cross; and the ranks become columns. Boxes are just sizes here, and edges pairs of
indices. The same input always gives the same layout.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from wengert.errors import ArgumentError

__all__ = ["Layout", "Point", "layout", "ranked"]

Point = tuple[float, float]

SPREAD, SPACING = 12.0, 10.0  # the distance of edges that arrive at a box: of all together, and of two neighbours
CROWD, WIDEST = 10, 100.0  # beyond CROWD edges a gap is wider by half a pixel for each, up to WIDEST
SWEEPS, RELAXATIONS = 8, 12  # the largest numbers of times that ranks are reordered and that boxes are moved
STRAIGHT = 8.0  # the weight of a waypoint relative to a box, so that long edges are straight (Gansner et al. 1993)
PATIENCE = 40_000  # limits the work: the more boxes and waypoints there are, the fewer passes are made


@dataclass(frozen=True, slots=True)
class Layout:
    """A layout. Lengths are in pixels, from the upper left corner.

    Attributes:
        corners: the x and y of each box's upper left corner.
        routes: the points of each edge: a curve from the first to the second, a horizontal line from the second to the
            third, and so on; the last point is on the left side of the target.
        width: the total width.
        height: the total height.
    """

    corners: list[Point]
    routes: list[list[Point]]
    width: float
    height: float


def layout(
    sizes: Sequence[Point], edges: Sequence[tuple[int, int]], *, across: float = 34.0, down: float = 12.0
) -> Layout:
    """Lay out boxes of given sizes and the edges between them.

    An edge leaves its source in the middle of the right side and arrives on the left side of its target. Boxes of one
    rank are aligned at their right sides. Boxes do not touch, and no edge runs under a box.

    Args:
        sizes: the width and height of each box.
        edges: pairs of indices in `sizes`, source and target; a pair may occur twice.
        across: the gap between two columns, where the edges run; many edges make it wider.
        down: the smallest gap between two boxes of a column.

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
    """Return the length of the longest path to each box; a box without incoming edges is just before its first target.

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
    for v in order:  # the list grows while it is read
        for target in targets[v]:
            ranks[target] = max(ranks[target], ranks[v] + 1)
            missing[target] -= 1
            if not missing[target]:
                order.append(target)
    if len(order) < count:
        raise ArgumentError(f"the edges between {count - len(order)} of the boxes form a cycle: expected none")
    for v in order:
        if starts[v] and targets[v]:
            ranks[v] = min([ranks[target] for target in targets[v]]) - 1
    return ranks


class _Net:
    """The boxes, followed by the waypoints of long edges, so that each edge joins neighbouring ranks.

    Attributes:
        boxes: the number of vertices that are boxes.
        ranks: the rank of each vertex.
        before: the neighbours of each vertex in the rank before.
        behind: the neighbours of each vertex in the next rank.
        paths: the vertices of each edge, from its source to its target.
    """

    def __init__(self, ranks: list[int], edges: Sequence[tuple[int, int]]) -> None:
        self.boxes = len(ranks)
        self.ranks = list(ranks)
        self.before: list[list[int]] = [[] for _ in ranks]
        self.behind: list[list[int]] = [[] for _ in ranks]
        self.paths: list[list[int]] = []
        waypoints: dict[int, list[int]] = {}  # by box: all edges from it share them
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
    """Order the vertices of each rank from top to bottom, with the fewest crossings that the sweeps found."""
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
    """Order the vertices by a depth-first walk back from the last boxes: the first operand is above the second."""
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
    """Sort a rank by the median position of each vertex's neighbours, or its own position if it has none."""
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
    """Count the pairs of edges that cross: between two ranks, the pairs in opposite orders."""
    total = 0
    for layer, following in pairwise(layers):
        size = 1
        while size < len(following):
            size *= 2
        tree = [0] * (2 * size)  # the number of edges that end in each part of the rank: Barth, Mutzel, Jünger 2004
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
    """Return the y of each vertex's middle, as near to the median of its neighbours as the rank's order allows."""
    half = [height / 2 for height in heights] + [0.0] * (len(net.ranks) - net.boxes)
    middles = [0.0] * len(net.ranks)
    offsets = []  # the smallest distance of each vertex from the first of its rank
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
    """Return the positions closest to the wishes, in weighted least squares, that keep the distances.

    This is isotonic regression: neighbours that are too close become a block that moves as one (pool adjacent
    violators, Ayer et al. 1955).
    """
    blocks: list[tuple[float, float, int]] = []  # the weighted sum of wishes, the weight, the number of vertices
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
    """Return the left and right sides of the columns."""
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
    """Return the y at which each edge arrives: edges to one box keep the order of their starts."""
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
