"""`explain(x, root)` explains a gradient by its largest paths and the factors along them.

The gradient of x is a sum over all paths from the result to x, and each path contributes the product of the local
derivatives along it. There can be exponentially many paths; the largest few are found like shortest paths, without
visiting all: the best paths to a node extend the best paths to the nodes that use it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import fabs, inf, isfinite, isnan, log, prod
from operator import itemgetter
from typing import Any

from wengert.checking import line_of
from wengert.engine import Value
from wengert.errors import ArgumentError, OperandError
from wengert.graph import is_untaken
from wengert.view import naming
from wengert.view.backward import Pass
from wengert.view.foreign import ForeignGraph, can_be_seen
from wengert.view.graph import edges, highlight, is_by_hand
from wengert.view.markup import cells, escape
from wengert.view.naming import number, second

__all__ = ["Explanation", "Factor", "Path", "explain"]

MANY = 5  # the number of paths and reasons that are shown
LONG = 12  # the number of factors of one path that are shown
WIDE = 100  # the longest path in one line, in characters; if one is longer, all are written with one factor per line
COLUMNS = 2  # the number of paths that are written with one factor per line
TINY, HUGE = 1e-8, 1e6  # a gradient outside is reported: a step of 0.1 times it is lost in rounding, or far too long
LARGE = 20_000  # in graphs of this many nodes, only the largest path is computed

_SATURATED = ("tanh", "sigmoid", "softplus", "silu", "gelu", "erf", "erfc", "elu", "exp", "logsigmoid")
_CHOOSING = ("maximum", "minimum", "max", "min", "where", "clip")
FLAT = {  # why the local derivative of an operation is 0
    "relu": "the input of the ReLU is {data}, and {side} 0 it is flat",
    "mul": "the other factor{named} is 0",
    "prod": "the other factor{named} is 0",
    "dot": "its factor in the sum is 0",
    "stop_gradient": "stop_gradient stops every gradient",
    **dict.fromkeys(_CHOOSING, "{op} did not select it: it is {data}"),
    **dict.fromkeys(_SATURATED, "{op} is flat at {data}: it is saturated"),
}

Way = dict[int, list[tuple[int, int]]]
_size = itemgetter(0)


@dataclass(frozen=True, slots=True)
class Factor:
    """One edge of a path: the local derivative of a node with respect to one of its operands.

    Attributes:
        node: the node's name.
        operand: the operand's name.
        symbol: the node's operation, as in drawings.
        partial: the derivative, as recorded.
        at: the index of the edge in `Graph.operands`.
        place: the index of the node in the graph.
    """

    node: str
    operand: str
    symbol: str
    partial: float
    at: int
    place: int


@dataclass(frozen=True, slots=True)
class Path:
    """A path from the result to x, and its contribution to the gradient.

    Attributes:
        factors: the local derivatives, starting at the result.
        product: their product, which this path adds to the gradient.
    """

    factors: tuple[Factor, ...]
    product: float

    def __str__(self) -> str:
        if not self.factors:
            return "the result itself: 1"
        ways, sizes = self._written()
        return f"{' → '.join([self.factors[0].node, *ways])}:  {' × '.join(sizes)} = {number(self.product)}"

    def column(self) -> list[str]:
        """Write the path with one line for each factor, and then the product."""
        ways, sizes = self._written()
        signs = [" ", *"×" * (len(sizes) - 1)]
        lines = [(f"→ {way}", f"{sign} {size}") for way, sign, size in zip(ways, signs, sizes, strict=True)]
        lines.append(("", f"= {number(self.product)}"))
        left, right = (max([cells(line[side]) for line in lines]) for side in (0, 1))
        rows = []
        for way, size in lines:
            gap, before = " " * round(left - cells(way) + 2), " " * round(right - cells(size))
            rows.append(f"{way}{gap}{size[0]}{before}{size[1:]}")
        return [self.factors[0].node, *rows]

    def _written(self) -> tuple[list[str], list[str]]:
        """Write the node that each factor leads to, and each factor; of a long path, the first and the last ones."""
        head, tail = self.factors, self.factors[len(self.factors) :]
        if len(self.factors) > LONG:
            head, tail = self.factors[: LONG // 2], self.factors[-LONG // 2 :]
        hidden = [factor.partial for factor in self.factors[len(head) : len(self.factors) - len(tail)]]
        ways = [factor.operand for factor in head]
        sizes = [number(head[0].partial), *(second(factor.partial) for factor in head[1:])]
        if hidden:
            ways.append(f"… {len(hidden):,} more …")
            sizes.append(f"(their product {number(prod(hidden))})")
        return ways + [factor.operand for factor in tail], sizes + [second(factor.partial) for factor in tail]


@dataclass(eq=False, repr=False, slots=True)
class Explanation:
    """The result of `explain`: printed it is a text, and in a notebook a text and a drawing.

    Attributes:
        name: the name of x.
        gradient: the derivative of the result with respect to x, as `backward()` computes it.
        verdict: "zero", "nan", "infinite", "huge", "tiny", "ordinary", or "unused" if the result does not depend on x.
        reasons: sentences that explain the verdict, the most important first.
        paths: the largest paths, by the size of their products.
        count: the number of paths; inf beyond the largest float.
    """

    name: str
    gradient: float
    verdict: str
    reasons: tuple[str, ...]
    paths: tuple[Path, ...]
    count: float
    _finder: _Finder

    def __str__(self) -> str:
        root = self._finder.names[-1]
        root = "the result" if root == "result" else root
        lines = [f"The derivative of {root} with respect to {self.name} is {number(self.gradient)}."]
        lines += [f"  {reason}" for reason in self.reasons]
        if not self.paths:
            return "\n".join(lines)
        paths = [path for path in self.paths if path.product != 0.0] or list(self.paths[:1])  # a path of 0 adds nothing
        alike: dict[str, list[Path]] = {}  # by an operand that is used twice
        for path in paths:
            alike.setdefault(str(path), []).append(path)
        is_wide = max(map(len, alike)) > WIDE
        groups = list(alike.items())
        shown = groups[:COLUMNS] if is_wide else groups
        lines.append(self._introduction(sum(len(group) for _, group in shown)))
        for text, group in shown:
            lines += [f"  {line}" for line in (group[0].column() if is_wide else [text])]
            lines[-1] += f"   ({len(group)} of them)" if len(group) > 1 else ""
        if is_wide:
            rest = [number(path.product) for _, group in groups[COLUMNS:] for path in group]
            lines += [f"  The next largest {'adds' if len(rest) == 1 else 'add'} {', '.join(rest)}."] if rest else []
        return "\n".join(lines)

    def _introduction(self, shown: int) -> str:
        if self.count == 1:
            return "There is one path, with these local derivatives:"
        count = "more than 1e308"
        if self.count < inf:
            count = f"{self.count:,.0f}" if self.count < 1e15 else f"about {self.count:.3g}"
        largest = "The largest:" if shown == 1 else f"The largest {shown}:"
        return f"There are {count} paths, and the derivative is the sum of their products." + (
            f" {largest}" if self.count > shown else ""
        )

    __repr__ = __str__

    def svg(self, theme: str = "auto") -> str:
        """Draw the graph with the paths highlighted; of a large graph, only the nodes on these paths."""
        on_path = {factor.at for path in self.paths for factor in path.factors}
        return highlight.svg(self._finder.graph, self._finder.names, self._finder.gradients, on_path, theme)

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>{self.svg()}"


def explain(x: Any, root: Any = None) -> Explanation:
    """Explain why the gradient of x is 0, nan or huge, by the paths from the result to x and their local derivatives.

    A Value refers to its operands and not to its results, so the result on which `backward()` would be called has to be
    passed. It need not have been called, and no `grad` is read or written. Inside a `wengert.detect_anomaly()` or
    `wengert.strict()` block the reasons have the source lines of the nodes. Objects of another engine's class, such as
    your own, work too: their own closures are explained.

    Args:
        x: a leaf, or any node.
        root: the result. Without it x is the result, and the leaf with the most suspicious gradient is explained: nan
            comes first, then infinite, 0, huge.

    Raises:
        OperandError: x or root is not a Value.
        ArgumentError: x is a leaf, and root is missing.

    >>> x, w = Value(-3.0, "x"), Value(2.0, "w")
    >>> h = x * w
    >>> h.label = "h"
    >>> y = h.relu() * 5
    >>> y.label = "y"
    >>> print(explain(w, y))
    The derivative of y with respect to w is 0.
      relu(h) passes nothing on to h: the input of the ReLU is -6, and below 0 it is flat.
    There is one path, with these local derivatives:
      y → relu(h) → h → w:  5 × 0 × (-3) = 0
    >>> explain(w, y).verdict
    'zero'
    """
    whole = x if root is None else root
    for name, value in (("x", x), ("root", whole)):
        if not can_be_seen(value):
            raise OperandError(f"explain(x, root) takes Values, and {name} is {type(value).__name__}")
    foreign = ForeignGraph(whole)
    if root is None and foreign.root.is_leaf:
        raise ArgumentError(
            f"{naming.clean(foreign.root.label) or 'x'} is a leaf, which does not refer to what was computed from it: "
            "pass the result that backward() is called on too, explain(x, loss)"
        )
    found = _Finder(foreign.root)
    value = foreign.node_for(x)
    return found.strangest() if root is None else found.of(ForeignGraph(x).root if value is None else value)


class _Finder(Pass):
    """The backward pass of one result, and the search for the reasons of a gradient."""

    def strangest(self) -> Explanation:
        order = ("nan", "infinite", "zero", "huge", "tiny", "ordinary")
        leaves = self.graph.leaves
        place = min(leaves, key=lambda i: (order.index(_verdict(self.gradients[i])), -fabs(self.gradients[i]), i))
        return self._at(place)

    def of(self, x: Value) -> Explanation:
        place = next((i for i, value in enumerate(self.graph.values) if value is x), -1)
        if place >= 0:
            return self._at(place)
        name = naming.clean(x.label) or "x"
        why = (
            f"{self.names[-1]} does not depend on {name}: there is no path. Was it detached, computed under no_grad(), "
            "or computed again since?"
        )
        return Explanation(name, 0.0, "unused", (why,), (), 0.0, self)

    def _at(self, place: int) -> Explanation:
        way = self._way(place)
        gradient = self.gradients[place]
        verdict = _verdict(gradient)
        count, paths = self._paths(place, way)
        reasons: list[str] = []
        if verdict == "zero":
            reasons = self._zeros(way)
        elif verdict in ("nan", "infinite"):
            reasons = self._origin(way, isnan if verdict == "nan" else _is_strange)
        elif verdict in ("huge", "tiny") and paths and isfinite(paths[0].product):
            reasons = [_growth(paths[0], verdict)]
        reasons = [*_first(self.faults(way)), *reasons, *_first(self._kinks(way))]
        return Explanation(self.names[place], gradient, verdict, tuple(reasons), tuple(paths), count, self)

    def _way(self, x: int) -> Way:
        """Return the nodes on paths from the result to x, starting at the result, with their edges on such paths."""
        way: Way = {x: []}
        starts, operands = self.graph.starts, self.graph.operands
        for place in range(x + 1, len(self.graph)):
            for at in range(starts[place], starts[place + 1]):
                if operands[at] in way:  # constants are negative, so never in it
                    way.setdefault(place, []).append((at, operands[at]))
        return dict(reversed(way.items()))

    # -- paths --------------------------------------------------------------------------------------------------------

    def _paths(self, x: int, way: Way) -> tuple[float, list[Path]]:
        """Count the paths to x, and find the largest few."""
        root = len(self.graph) - 1
        most = MANY if root < LARGE else 1
        counts = dict.fromkeys(way, 0.0) | {root: 1.0}
        best: dict[int, list[tuple[float, int, int, int]]] = {place: [] for place in way}
        best[root] = [(0.0, -1, -1, 0)]  # size, edge, node, and the rank of the path among that node's best
        for place, onwards in way.items():
            for at, operand in onwards:
                counts[operand] += counts[place]
                grown = _magnitude(self.partials[at])
                known = best[operand]
                for rank, (far, *_) in enumerate(best[place]):
                    total = far + grown if far < inf > grown else inf
                    if len(known) == most and total <= known[-1][0]:
                        break
                    known.append((total, at, place, rank))
                    known.sort(key=_size, reverse=True)
                    del known[most:]
        return counts[x], [self._path(x, rank, best) for rank in range(len(best[x]))]

    def _path(self, place: int, rank: int, best: dict[int, list[tuple[float, int, int, int]]]) -> Path:
        """Follow one of the best paths back to the result."""
        factors: list[Factor] = []
        while place != len(self.graph) - 1:
            _, at, node, rank = best[place][rank]
            symbol = self.graph.values[node]._op
            factors.append(Factor(self.names[node], self.names[place], symbol, self.partials[at], at, node))
            place = node
        factors.reverse()
        codes = self.graph.codes
        is_taken = not any(is_untaken(codes[factor.place], factor.partial) for factor in factors)
        return Path(tuple(factors), prod([factor.partial for factor in factors], start=1.0) if is_taken else 0.0)

    # -- reasons ------------------------------------------------------------------------------------------------------

    def _zeros(self, way: Way) -> list[str]:
        """Find where the gradient on its way to x becomes 0: at a factor 0, or at a sum that cancels."""
        reasons = []
        fed: dict[int, list[float]] = {}  # the contributions to each node that are not 0
        for place, onwards in way.items():
            if self.gradients[place] == 0.0:
                if place in fed:
                    reasons.append(f"The gradients at {self.names[place]} cancel: {_sum(fed[place])} = 0.")
                continue
            for at, operand in onwards:
                passed = self.passed(place, at)
                if passed != 0.0:
                    fed.setdefault(operand, []).append(passed)
                elif place in self.broken:
                    continue  # reported already
                elif self.partials[at] == 0.0:
                    reasons.append(self._flat(place, at, operand))
                else:
                    reasons.append(
                        f"{self.names[place]} passes on less than the smallest float: "
                        f"{number(self.gradients[place])} × {number(self.partials[at])} underflows to 0."
                    )
        return _first(reasons)

    def _flat(self, place: int, at: int, operand: int) -> str:
        op, data = naming.spelled(self.graph, place).lower(), self.data[operand]
        factors = self.operands(place) if op in ("mul", "prod") else []
        own = at - self.graph.starts[place]
        zero = next((name for i, (name, factor) in enumerate(factors) if factor == 0.0 and i != own), "")
        known = (op == "mul" and zero) or (op == "relu" and data <= 0.0)
        if place in self.silent:
            why = "it has no _backward, and the gradient stops there"
        elif is_by_hand(self.graph, place) and not known:
            why = "its _backward adds 0"
        else:
            why = FLAT.get(op, "the derivative of {op} with respect to it is 0 at {data}")
        named = f", {zero}," if zero and zero != "0" else ""
        why = why.format(op=op, data=number(data), side="at" if data == 0.0 else "below", named=named)
        return f"{self.names[place]} passes nothing on to {self.names[operand]}: {why}{self._line(place)}."

    def _kinks(self, way: Way) -> list[str]:
        """List the operations at a kink that pass something on, or would; no length in which the result is smooth."""
        found = []
        for place, onwards in way.items():
            op, operands, _ = self.graph[place]
            numbers = [self.data[x] if isinstance(x, int) else x for x in operands]
            is_smooth = op.name in ("abs", "hypot", "norm") and self.gradients[place] == 0.0
            if onwards and op.kinks is not None and not is_smooth and op.has_kink_at(operands, numbers):
                slopes = ", ".join([number(self.partials[at]) for at, _ in onwards])
                found.append(
                    f"{self.names[place]} is at a kink{self._line(place)}: its derivative there, {slopes}, is a "
                    "convention, and a second one is not known."
                )
        return found

    def _origin(self, way: Way, strange: Callable[[float], bool]) -> list[str]:
        """Find where a nan or an infinity first occurs on the way to x."""
        sources = [
            (at, place, operand)
            for place, onwards in way.items()
            if not strange(self.gradients[place])
            for at, operand in onwards
            if strange(self.passed(place, at))
        ]
        if sources:
            return _first([self._strange(*source, strange) for source in sources])
        first = next(place for place in way if strange(self.gradients[place]))
        terms = [self.passed(place, at) for place in way for at, operand in way[place] if operand == first]
        return [f"The gradients at {self.names[first]} add up to {number(self.gradients[first])}: {_sum(terms)}."]

    def _strange(self, at: int, place: int, operand: int, strange: Callable[[float], bool]) -> str:
        """Explain the first product on the way that is not finite."""
        partial, gradient = self.partials[at], self.gradients[place]
        node, target = self.names[place], self.names[operand]
        if not strange(partial):
            return (
                f"{node} passes on {number(gradient)} × {number(partial)} = {number(partial * gradient)} "
                f"to {target}, where {self.computation(place)}{self._line(place)}."
            )
        origin = self._first_strange(place, strange)
        if origin == place or origin < 0:
            return (
                f"The local derivative of {node} with respect to {target} is {number(partial)}: "
                f"{self.computation(place)}{self._line(place)}."
            )
        if not self.graph.codes[origin]:
            return f"It comes from {self.names[origin]}, a leaf whose data is {number(self.data[origin])}."
        return f"It comes from {self.computation(origin)}{self._line(origin)}."

    def _first_strange(self, place: int, strange: Callable[[float], bool]) -> int:
        """Return the oldest node whose data is not finite, among this one and those below it; -1 if there is none."""
        found: set[int] = set()
        waiting = [place]
        while waiting:
            here = waiting.pop()
            if here not in found and strange(self.data[here]):
                found.add(here)
                waiting += [operand for _, operand in edges(self.graph, here)]
        return min(found, default=-1)

    def _line(self, place: int) -> str:
        """Write the source line of a node, which is known inside `strict()` and `detect_anomaly()`."""
        line = line_of(self.graph.values[place])
        return f", at {line}" if line else ""


def _sum(terms: Sequence[float]) -> str:
    """Write a sum, up to six of its terms."""
    written = [second(term) if i else number(term) for i, term in enumerate(terms[:6])]
    return " + ".join(written + [f"… {len(terms) - 6} more"] * (len(terms) > 6))


def _first(reasons: list[str]) -> list[str]:
    """Return the first few reasons, without duplicates."""
    reasons = list(dict.fromkeys(reasons))
    more = len(reasons) - MANY
    return reasons[:MANY] + ([f"The same holds at {more:,} more places."] if more > 0 else [])


def _is_strange(x: float) -> bool:
    return not isfinite(x)


def _verdict(gradient: float) -> str:
    if not isfinite(gradient):
        return "nan" if isnan(gradient) else "infinite"
    size = fabs(gradient)
    return "zero" if size == 0.0 else "huge" if size > HUGE else "tiny" if size < TINY else "ordinary"


def _magnitude(partial: float) -> float:
    """Return the logarithm of the size; nan counts as the largest."""
    size = fabs(partial)
    return -inf if size == 0.0 else inf if not isfinite(size) else log(size)


def _growth(path: Path, verdict: str) -> str:
    """Name the factors that make the largest path large or small."""
    ranked = sorted(path.factors, key=lambda factor: _magnitude(factor.partial), reverse=verdict == "huge")
    telling = [f for f in ranked if (fabs(f.partial) > 1.0 if verdict == "huge" else fabs(f.partial) < 1.0)]
    if not telling:
        way = "above" if verdict == "huge" else "below"
        return f"No local derivative on the largest path is {way} 1: the number of paths makes it so."
    shown = [f"{number(f.partial)} (d {f.node} / d {f.operand})" for f in telling[:MANY]]
    more = f", and {len(telling) - len(shown):,} more" if len(telling) > len(shown) else ""
    way = "larger than 1" if verdict == "huge" else "smaller than 1"
    return f"On the largest path these local derivatives are {way}: {', '.join(shown)}{more}."
