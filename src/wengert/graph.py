"""A recorded computation as a flat list of instructions (a Wengert list): drawing, derivatives and compile use it.

A graph of Values is convenient to build but awkward to process, as it has to be walked. A `Graph` is the same
computation written down once, in topological order, in five flat arrays.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from math import inf
from typing import Any, NamedTuple

from wengert import engine
from wengert.engine import Many, Value, _many, tape
from wengert.errors import ArgumentError, OperandError
from wengert.node import CODE, WALK, constant, fresh, is_many, supply
from wengert.ops import BY_NAME, LEFT, TABLE, TINY, UNARY, Op, ieee
from wengert.ops.ieee import Array, Int, Nodes, cython

if False:  # Cython reads this import; Python uses the substitute in ops/ieee.py
    import cython  # type: ignore[no-redef]

__all__ = ["Curvature", "Graph", "Instruction", "copy", "is_untaken", "reached"]

ADD, SUB, MUL, DIV, POW, NEG = [BY_NAME[name].code for name in ("add", "sub", "mul", "div", "pow", "neg")]
RELU, EXP, LOG, TANH, DOT, HAND = [BY_NAME[name].code for name in ("relu", "exp", "log", "tanh", "dot", "by hand")]
SUM, MEAN, WHERE = BY_NAME["sum"].code, BY_NAME["mean"].code, BY_NAME["where"].code
REACHED, VARYING, TURNING = 1, 2, 4  # of a cotangent: there is one; it depends on inputs; it has a tangent
PLACE = 1 << 39  # marks an index stored in place of a walk's number: no walk has a number this high


class Instruction(NamedTuple):
    """One step; in ``operands`` an int is the index of an earlier instruction, and a float is a constant."""

    op: Op
    operands: tuple[int | float, ...]
    value: Value


class Curvature(NamedTuple):
    """How the partials of a graph change: d(partials[at]) is the sum of ``weights[k]`` * d(value of ``columns[k]``) for
    k from ``starts[at]`` to ``starts[at + 1]``. A partial without such terms is constant.
    """

    starts: array[int]
    columns: array[int]
    weights: array[float]


@cython.cclass
class Graph:
    """The nodes below some results, as instructions in the order of creation; leaves are instructions too.

    A Graph does not change after its construction, and its arrays are read-only.

    Args:
        *roots: the results.

    Attributes:
        values: the Value that each instruction made.
        codes: the index of each instruction's operation in the table of operations (0 for a leaf).
        starts: the index in `operands` of each instruction's first operand; one more entry marks the end.
        operands: indices of earlier instructions; -1 - k stands for the constant ``constants[k]``.
        constants: the constants, in the order in which they are used.
        outputs: the indices of the roots.

    Raises:
        OperandError: a root is not a Value, or `__init__` was called a second time.

    >>> x = Value(3.0)
    >>> y = 2 - x * x
    >>> graph = Graph(y)
    >>> for op, operands, value in graph:
    ...     print(op.name, operands, value.data)
    leaf () 3.0
    mul (0, 0) 9.0
    sub (2.0, 1) -7.0
    >>> graph.leaves, graph.outputs
    ((0,), (2,))
    """

    values: tuple[Value, ...]
    codes: memoryview[int]
    starts: memoryview[int]
    operands: memoryview[int]
    constants: memoryview[Any]  # of floats, as are the partials
    outputs: tuple[int, ...]
    _partials: memoryview[Any] | None
    _local: memoryview[Any] | None

    def __init__(self, *roots: Value) -> None:
        if getattr(self, "values", None) is not None:
            raise OperandError("__init__ of a Graph was called a second time: make a new one")
        for root in roots:
            if not isinstance(root, Value):
                raise OperandError(f"a Graph is made from Values, not from {type(root).__name__} {root!r:.40}")
        with engine.walking:
            engine.pin(1)
            try:
                self._write_down(roots)
            finally:
                engine.pin(-1)

    def _write_down(self, roots: tuple[Value, ...]) -> None:
        values = tuple(tape(list(roots)))
        n = len(values)
        codes, starts = array("H", [0]) * n, array("q", [0]) * (n + 1)
        self._results: list[int] = []  # indices of nodes that are one of several results of a call
        operands = array("q", [0]) * _lay_out(values, starts, self._results)
        constants = array("d", [0.0]) * len(operands)
        del constants[_write(values, codes, starts, operands, constants) :]
        self.outputs = tuple([root._mark % PLACE for root in roots])
        self.codes, self.starts = _read_only(codes), _read_only(starts)
        self.operands, self.constants = _read_only(operands), _read_only(constants)
        self.values, self._partials, self._local = values, None, None

    @property
    def partials(self) -> memoryview[Any]:
        """The partial derivative of each instruction with respect to each of its operands; 0.0 for constants.

        >>> x = Value(3.0)
        >>> list(Graph(2 - x * x).partials)
        [3.0, 3.0, 0.0, -1.0]
        """
        if self._partials is None:
            self._partials = self._written_partials(True) if self._results else self._local_partials
        return self._partials

    @property
    def _local_partials(self) -> Any:
        """The partials without those of several results of a call, which need a sweep for each result."""
        if self._local is None:
            self._local = self._written_partials(False)
        return self._local

    def _written_partials(self, of_results: bool) -> Any:
        partials = array("d", [0.0]) * len(self.operands)
        _write_partials(self.values, self.starts, self.operands, partials, of_results)
        return _read_only(partials)

    def pull_back(self, cotangents: Mapping[int, float], first: int = 0, absolute: bool = False) -> array[float]:
        """Reverse mode: compute the cotangent of every instruction from given ones, a mapping from index to cotangent.

        The results have the same bits as those of `backward()`; no `grad` is read or written. Instructions before the
        index `first` are left out. If `absolute`, the absolute values of the terms are added up: a cotangent that is
        far smaller than that has lost digits, as its terms cancel.

        Raises:
            ArgumentError: `first` is not an index of an instruction.

        >>> x = Value(3.0)
        >>> graph = Graph(2 - x * x)
        >>> list(graph.pull_back({2: 1.0}))
        [-6.0, -1.0, 1.0]
        >>> list(Graph(x * 5.0 - x * 4.0).pull_back({3: 1.0}, absolute=True))
        [9.0, 1.0, 1.0, 1.0]
        """
        if not 0 <= first <= len(self.values):
            raise ArgumentError(f"first is {first}; expected the index of an instruction, from 0 to {len(self.values)}")
        sums = array("d", [0.0]) * len(self.values)
        reached = bytearray(len(self.values))
        for place, cotangent in cotangents.items():
            sums[place] += abs(cotangent) if absolute else cotangent
            reached[place] = True
        partials, last = self.partials if absolute else self._local_partials, len(self.values)
        for place in reversed([] if absolute else self._results):
            if first <= place < last:
                _pull_back(
                    self.codes, self.starts, self.operands, partials, sums, reached, first, place + 1, last, False
                )
                last = self._pull_results_back(place, sums, reached, first)
        _pull_back(self.codes, self.starts, self.operands, partials, sums, reached, first, first, last, absolute)
        return sums

    def _pull_results_back(self, last: int, sums: Any, reached: bytearray, first: int) -> int:
        """Pull back from one of several results of a call, and from those before it, in one sweep; return the index of
        the first one.
        """
        values: Any = self.values
        start = last
        while start > first and values[start - 1]._b is values[last]._b:
            start -= 1
        cotangents = [(values[n], sums[n]) for n in range(start, last + 1) if reached[n]]
        if cotangents:
            places = self.operands[self.starts[start] : self.starts[start + 1]]
            for x, slope in zip(places, values[start]._b._pull_back(cotangents).tolist(), strict=True):
                if x >= first:
                    sums[x] += slope
                    reached[x] = True
        return start

    def push_forward(self, tangents: Mapping[int, float]) -> array[float]:
        """Forward mode: compute the tangent of every instruction from a mapping of leaves' indices to tangents.

        >>> x = Value(3.0)
        >>> list(Graph(2 - x * x).push_forward({0: 1.0}))
        [1.0, 6.0, -6.0]
        """
        sums = array("d", [0.0]) * len(self.values)
        reached = bytearray(len(self.values))
        for place, tangent in tangents.items():
            sums[place] = tangent
            reached[place] = True
        _push_forward(self.codes, self.starts, self.operands, self.partials, sums, reached)
        return sums

    def curvature(self, inputs: Iterable[int], rule: Callable[[Value], Sequence[Any]]) -> tuple[Curvature, list[Any]]:
        """Find how the partials of the instructions below `inputs` change.

        Args:
            inputs: the indices of leaves.
            rule: lists the partials of a node as Values and floats, where second partials are not written out here.

        Returns:
            The curvature, and for each Value that `rule` returned the pair of a term and the Value: the term's column
            is left at 0 for the caller, who makes a graph that includes the Value.
        """
        active = bytearray(len(self.values))
        for place in inputs:
            active[place] = True
        n = len(self.operands)
        terms, columns, weights = array("q", [0]) * (n + 1), array("q", [0]) * (2 * n), array("d", [0.0]) * (2 * n)
        open_terms = _write_terms(
            self.values, self.codes, self.starts, self.operands, active, rule, terms, columns, weights
        )
        return Curvature(terms, columns, weights), open_terms

    def curve(self, tangents: Mapping[int, float], curvature: Curvature, first: int, root: int) -> array[float]:
        """Forward over reverse: compute the tangent of every instruction's cotangent, for a cotangent of 1 at `root`.

        Args:
            tangents: of leaves, by their index.
            curvature: that of the instructions up to `root`.
            first: the first instruction to reach.
            root: the index of the result.
        """
        n = len(self.values)
        moved, sums, turned = (array("d", [0.0]) * n for _ in range(3))
        moving, reached = bytearray(n), bytearray(n)
        for place, tangent in tangents.items():
            moved[place] = tangent
            moving[place] = True
        codes, starts, operands, partials = self.codes, self.starts, self.operands, self.partials
        terms, columns, weights = curvature
        _push_forward(codes, starts, operands, partials, moved, moving)
        sums[root], reached[root] = 1.0, REACHED
        _pull_back_twice(
            codes,
            starts,
            operands,
            partials,
            moved,
            moving,
            terms,
            columns,
            weights,
            sums,
            turned,
            reached,
            first,
            root,
        )
        return turned

    @property
    def leaves(self) -> tuple[int, ...]:
        """The indices of the leaves."""
        return tuple([i for i, code in enumerate(self.codes) if code == 0])

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, place: int) -> Instruction:
        place = range(len(self))[place]
        operands = self.operands[self.starts[place] : self.starts[place + 1]]
        known: tuple[Any, ...] = tuple([i if i >= 0 else self.constants[-1 - i] for i in operands])
        return Instruction(TABLE[self.codes[place]], known, self.values[place])

    def __iter__(self) -> Iterator[Instruction]:
        return (self[place] for place in range(len(self)))

    def __reduce__(self) -> Any:
        return type(self), tuple([self.values[place] for place in self.outputs])

    def __repr__(self) -> str:
        return f"Graph({len(self)} instructions, {len(self.leaves)} of them leaves, {len(self.outputs)} outputs)"


def _read_only(numbers: array[Any]) -> Any:
    view: Any = memoryview(numbers)
    return view.toreadonly()


def _lay_out(values: tuple[Any, ...], starts: Array, results: Nodes) -> int:
    """Mark each node with its index, and fill `starts`. Returns the number of operands in all."""
    node: Value
    place = size = 0
    for node in values:
        node._mark += PLACE + place - (node._mark & WALK)
        starts[place] = size
        if node._a is not None:
            size += 1 if node._b is None and UNARY[node._made & CODE & ~LEFT] else 2
        elif node._made & CODE:
            many: Many = cython.cast(Many, node)
            size += len(many._all)
            if node._b is not None:
                results.append(place)
        place += 1
    starts[place] = size
    return size


def _write(values: tuple[Any, ...], codes: Array, starts: Array, operands: Array, constants: Array) -> int:
    """Write each node's operation and operands. Returns the number of constants."""
    node: Value
    place = at = used = 0
    for node in values:
        code = node._made & CODE
        codes[place] = code & ~LEFT
        place += 1  # noqa: SIM113  (enumerate would make a tuple and a Python int for each)
        if node._a is not None:
            first = (node._a._mark & WALK) - PLACE
            if node._b is not None:
                operands[at] = first
                operands[at + 1] = (node._b._mark & WALK) - PLACE
            elif starts[place] - at == 1:
                operands[at] = first
            else:
                constants[used] = constant(node)
                used += 1
                operands[at] = -used if code & LEFT else first
                operands[at + 1] = first if code & LEFT else -used
        elif code:
            many: Many = cython.cast(Many, node)
            for x in many._all:
                if isinstance(x, Value):
                    operand: Value = x
                    operands[at] = (operand._mark & WALK) - PLACE
                else:
                    constants[used] = x
                    used += 1
                    operands[at] = -used
                at += 1
        at = starts[place]
    return used


def _write_partials(values: tuple[Any, ...], starts: Array, operands: Array, partials: Array, of_results: bool) -> None:
    """Write each node's partial derivative with respect to each operand that is not a constant."""
    node: Value
    place = 0
    for node in values:
        at = starts[place]
        place += 1  # noqa: SIM113  (enumerate would make a tuple and a Python int for each)
        if node._a is not None:
            if node._b is not None:
                partials[at] = node._da
                partials[at + 1] = node._db
            else:
                partials[at + 1 if node._made & LEFT else at] = node._da
        elif node._made & CODE:
            many: Many = cython.cast(Many, node)
            slopes: Any = None
            if node._made & CODE == HAND:
                slopes = node._find_partials()  # type: ignore[attr-defined]
            elif of_results and node._b is not None:
                slopes = node._b._find_partials_of(node)
            for i in range(len(many._all) if node._b is None or of_results else 0):
                if operands[at + i] >= 0:
                    partials[at + i] = many._partials[i] if slopes is None else slopes[i]


def is_untaken(code: Int, partial: float) -> bool:
    """Return True for an operand that a choice does not take: as if it were none, no derivative flows there."""
    return code == WHERE and partial == 0.0


def reached(graph: Graph) -> bytearray:
    """Return for each instruction 1 if a derivative of the outputs reaches it, and 0 if only sides of choices that are
    not taken read it, or conditions.
    """
    flags = bytearray(len(graph))
    for place in graph.outputs:
        flags[place] = 1
    codes, starts, operands, partials = graph.codes, graph.starts, graph.operands, graph.partials
    for place in reversed(range(len(graph))):
        for at in range(starts[place], starts[place + 1] if flags[place] else starts[place]):
            if operands[at] >= 0 and not is_untaken(codes[place], partials[at]):
                flags[operands[at]] = 1
    return flags


def _pull_back(
    codes: Array,
    starts: Array,
    operands: Array,
    partials: Array,
    sums: Array,
    reached: Array,
    first: Int,
    low: Int,
    high: Int,
    absolute: bool,
) -> None:
    """Apply the chain rule backwards from `high` - 1 to `low`, where an output depends on the node: elsewhere 0 * inf
    is nan. Instructions before `first` are left out.
    """
    for place in range(high - 1, low - 1, -1):
        if reached[place]:
            for at in range(starts[place], starts[place + 1]):
                x = operands[at]
                if x >= first and not is_untaken(codes[place], partials[at]):
                    term = partials[at] * sums[place]
                    sums[x] += ieee.fabs(term) if absolute else term
                    reached[x] = 1


def _push_forward(codes: Array, starts: Array, operands: Array, partials: Array, sums: Array, reached: Array) -> None:
    """Apply the chain rule forwards, for the instructions that depend on a given one."""
    for place in range(len(reached)):
        for at in range(starts[place], starts[place + 1]):
            x = operands[at]
            if x >= 0 and reached[x] and not is_untaken(codes[place], partials[at]):
                sums[place] += partials[at] * sums[x]
                reached[place] = 1


def _write_terms(
    values: tuple[Any, ...],
    codes: Array,
    starts: Array,
    operands: Array,
    active: Array,
    rule: Any,
    terms: Array,
    columns: Array,
    weights: Array,
) -> Nodes:
    """Write the terms of each partial's tangent; for the operations that the engine writes out they are here, from the
    rules of the table, and for others, and where digits may be lost, `rule` lists the partials. Return the open terms.
    """
    node: Value
    operand: Value
    open_terms: Nodes = []
    used = 0
    for place in range(len(values)):
        at, end, code, column = starts[place], starts[place + 1], codes[place], -1
        for i in range(at, end):
            if operands[i] >= 0 and active[operands[i]]:
                active[place] = 1
        node = values[place]
        slopes: Any = None
        weight = inverse = slope = 0.0
        if not active[place] or at == end or code in (ADD, SUB, NEG, RELU, SUM, MEAN):
            code = 0
        elif code == EXP:
            column, weight = place, 1.0
        elif code == TANH:
            column, weight = operands[at], -2.0 * node._da * node._data
        elif code == LOG and not _is_tiny(node._da):
            operand = node._a
            if node._da == node._da:  # the nan of a negative number is a constant
                column, weight = operands[at], -ieee.divide(node._da, operand._data)
        elif code == DIV and operands[at + 1] < 0:
            code = 0
        elif code == DIV:
            operand = values[operands[at + 1]]
            inverse, slope = ieee.divide(1.0, operand._data), ieee.divide(node._data, operand._data)
            if _is_tiny(node._data) or _is_tiny(inverse) or _is_tiny(slope):
                slopes = rule(node)
        elif code == POW and operands[at + 1] < 0:
            operand, exponent = node._a, constant(node)
            x = operand._data
            inverse = ieee.power(x, exponent - 1.0)
            slope = ieee.power(x, exponent - 2.0) if x == 0.0 else ieee.divide(inverse, x)
            lost = x != 0.0 and not (ieee.fabs(inverse) > TINY and TINY < ieee.fabs(slope) < inf)
            is_root = x == 0.0 and exponent == 0.5  # perhaps of a sum of squares
            if lost or is_root or exponent == 1.0 or exponent - 1.0 + 1.0 != exponent:
                slopes = rule(node)
            elif exponent != 0.0:
                column, weight = operands[at], exponent * ((exponent - 1.0) * slope)
        elif code not in (MUL, DOT):
            slopes = rule(node)
        half = (end - at) // 2  # the second factors of a product follow the first
        for i in range(at, end):
            if code and operands[i] >= 0:
                if slopes is not None:
                    column, weight = -1, 1.0
                    if isinstance(slopes[i - at], Value):
                        open_terms.append((used, slopes[i - at]))
                        column = 0
                elif code in (MUL, DOT):
                    partner = i + half if i < at + half else i - half
                    column, weight = operands[partner] if i < at + 2 * half else -1, 1.0
                elif code == DIV:
                    if i > at:  # -out / y depends on the value too
                        columns[used], weights[used] = place, -inverse
                        used += 1
                    column, weight = operands[at + 1], ieee.divide(slope if i > at else -inverse, operand._data)
                if column >= 0:
                    columns[used], weights[used] = column, weight
                    used += 1
            terms[i + 1] = used
    return open_terms


def _is_tiny(x: float) -> bool:
    return 0.0 < ieee.fabs(x) < TINY


def _pull_back_twice(
    codes: Array,
    starts: Array,
    operands: Array,
    partials: Array,
    moved: Array,
    moving: Array,
    terms: Array,
    columns: Array,
    weights: Array,
    sums: Array,
    turned: Array,
    reached: Array,
    first: Int,
    root: Int,
) -> None:
    """Apply the chain rule backwards, to cotangents and their tangents. A factor that is 0 whatever the inputs are
    contributes nothing, even where the other's derivative is infinite.
    """
    for place in range(root, first - 1, -1):
        state, g = reached[place], sums[place]
        for at in range(starts[place], starts[place + 1] if state else starts[place]):
            x, slope = operands[at], partials[at]
            varies = terms[at] < terms[at + 1]
            dropped = g == 0.0 and not state & VARYING and ieee.fabs(slope) < inf and (varies or slope != 1.0)
            dropped = dropped or (not varies and slope == 0.0 and ieee.fabs(g) < inf) or is_untaken(codes[place], slope)
            if x >= first and not dropped:
                sums[x] += slope * g
                reached[x] |= state | VARYING if varies else state
                for k in range(terms[at], terms[at + 1]):
                    if moving[columns[k]]:
                        turned[x] += g * (weights[k] * moved[columns[k]])
                        reached[x] |= TURNING
                if state & TURNING:
                    turned[x] += slope * turned[place]


def copy(root: Any, memo: dict[int, Any]) -> Any:
    """Copy `root` and everything below it for `copy.deepcopy`; `memo` has the nodes that are copied already."""
    with engine.walking:
        for node in tape([root]):
            if id(node) not in memo:
                _copy_node(node, memo)
    return memo[id(root)]


def _copy_node(node: Value, memo: dict[int, Any]) -> None:
    """Put a copy of one node into `memo`; its operands are copied already."""
    copied: Value
    if is_many(node):
        copied = _copy_many(node, memo)
    else:
        copied = fresh(type(node))
    memo[id(node)] = copied
    copied._data = node._data
    copied._grad = node._grad
    copied._mark = node._mark & ~WALK  # the label
    if node._a is not None:
        copied._a = memo[id(node._a)]
        if copied._a is None:
            raise TypeError("the memo of a deepcopy has None for a Value")
        copied._da = node._da
        copied._db = node._db
        if node._b is not None:
            copied._b = memo[id(node._b)]
    copied._made |= node._made & CODE  # last, now that it has its operands
    if hasattr(node, "_closure"):  # made by hand
        node._copy_to(copied)  # type: ignore[attr-defined]
    if hasattr(node, "__dict__"):  # of a user's subclass
        copied.__dict__.update(deepcopy(node.__dict__, memo))


def _copy_many(node: Value, memo: dict[int, Any]) -> Any:
    """Copy a node of many operands; of several results, the copy has its own partials."""
    many: Many = cython.cast(Many, node)
    by_hand = None if type(node) is Value else fresh(type(node))
    copied: Many = _many(node._made & CODE, [memo[id(x)] if isinstance(x, Value) else x for x in many._all], by_hand)
    slopes: Any = None if node._b is None else node._b._find_partials_of(node)
    for i in range(len(many._all)):
        copied._partials[i] = many._partials[i] if slopes is None else slopes[i]
    return copied


supply(copy=copy)
