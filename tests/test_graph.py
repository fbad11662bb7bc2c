"""A Graph is the computation that was recorded: its order, operands, constants, outputs; and the copies made of it."""

from __future__ import annotations

import copy
import math
import random
from typing import Any

import pytest

import wengert
from wengert import Value
from wengert.engine import tape
from wengert.errors import OperandError
from wengert.graph import Graph, Instruction
from wengert.ops import BY_NAME


def replay(graph: Graph) -> list[float]:
    """Run the instructions on plain floats."""
    numbers: list[float] = []
    for op, operands, value in graph:
        known = [numbers[x] if isinstance(x, int) else x for x in operands]
        numbers.append(value.data if op.name == "leaf" else op(*known))
    return numbers


def replay_backward(graph: Graph, output: int) -> list[float]:
    """The reverse sweep over the instructions, by the rows' own partials."""
    numbers = replay(graph)
    gradients = [0.0] * len(numbers)
    gradients[output] = 1.0
    for place in reversed(range(len(graph))):
        op, operands, _ = graph[place]
        if op.name == "leaf":
            continue
        known = [numbers[x] if isinstance(x, int) else x for x in operands]
        partials = op.partials(numbers[place], *known)
        partials = partials if isinstance(partials, (tuple, list)) else [partials]
        for x, partial in zip(operands, partials, strict=True):
            if isinstance(x, int):
                gradients[x] += partial * gradients[place]
    return gradients


def random_graph(seed: int, size: int) -> tuple[list[Value], list[Value]]:
    rng = random.Random(seed)
    made = [Value(rng.uniform(0.5, 1.5)) for _ in range(4)]
    leaves = list(made)
    for _ in range(size):
        new: Any
        x, y, z, c = rng.choice(made), rng.choice(made), rng.choice(made[-5:]), rng.uniform(0.5, 1.5)
        kind = rng.randrange(10)
        if kind == 0:
            new = x + y
        elif kind == 1:
            new = c - z
        elif kind == 2:
            new = x * c
        elif kind == 3:
            new = c / (1.0 + z * z)
        elif kind == 4:
            new = z.tanh()
        elif kind == 5:
            new = c ** z.tanh()
        elif kind == 6:
            new = abs(z) ** c
        elif kind == 7:
            new = wengert.dot([x, c], [c, z], y)
        elif kind == 8:
            new = wengert.clip(z, -1.0, x)
        else:
            new = wengert.logsumexp([x, c, z, z])
        made.append(new.tanh() if abs(new.data) > 3 else new)
    return leaves, made


# ------------------------------------------------------------------------------------- what is written down


def test_the_example_of_every_tutorial() -> None:
    a, b, c, f = Value(2.0), Value(-3.0), Value(10.0), Value(-2.0)
    e = a * b
    d = e + c
    root = d * f
    graph = Graph(root)
    assert graph.values == (a, b, c, f, e, d, root)
    assert [op.name for op, _, _ in graph] == ["leaf"] * 4 + ["mul", "add", "mul"]
    assert [operands for _, operands, _ in graph][4:] == [(0, 1), (4, 2), (5, 3)]
    assert (graph.leaves, graph.outputs, len(graph)) == ((0, 1, 2, 3), (6,), 7)
    assert list(graph.codes) == [0, 0, 0, 0, BY_NAME["mul"].code, BY_NAME["add"].code, BY_NAME["mul"].code]
    assert list(graph.starts) == [0, 0, 0, 0, 0, 2, 4, 6]
    assert list(graph.operands) == [0, 1, 4, 2, 5, 3]
    assert list(graph.constants) == []
    assert repr(graph) == "Graph(7 instructions, 4 of them leaves, 1 outputs)"


def test_constants_stand_where_they_were_written() -> None:
    x = Value(3.0)
    for node, operands in (
        (x + 2, (0, 2.0)),
        (2 + x, (2.0, 0)),
        (2 - x, (2.0, 0)),
        (x - 2, (0, 2.0)),
        (x * 2, (0, 2.0)),
        (2 / x, (2.0, 0)),
        (x / 2, (0, 2.0)),
        (x**2, (0, 2.0)),
        (2**x, (2.0, 0)),
        (x + True, (0, 1.0)),
        (x + x, (0, 0)),
        (-x, (0,)),
        (x.tanh(), (0,)),
        (x.leaky_relu(), (0, 0.01)),
        (wengert.atan2(1, x), (1.0, 0)),
        (wengert.polygamma(1, x), (1.0, 0)),
        (wengert.where(True, x, 2), (1.0, 0, 2.0)),
        (wengert.clip(x, 0, 1), (0, 0.0, 1.0)),
        (wengert.dot([x, 2], [3, x], 4), (0, 2.0, 3.0, 0, 4.0)),
        (wengert.mean(1, x, 1), (1.0, 0, 1.0)),
    ):
        graph = Graph(node)
        assert len(graph) == 2
        assert graph[1].operands == operands
        assert [type(o) for o in graph[1].operands] == [type(o) for o in operands]
        assert graph[-1].value is node
        assert graph[1].op is node._row
        assert replay(graph)[-1] == node.data


def test_the_order_is_that_of_creation_however_it_is_reached() -> None:
    late, early = Value(1.0), Value(2.0)
    first = early * 1
    second = late * 1
    y = wengert.sum([second, first, second])
    graph = Graph(y)
    assert graph.values == (late, early, first, second, y)
    assert Graph(second, first).values == (late, early, first, second)


def test_several_roots() -> None:
    x, other = Value(3.0), Value(4.0)
    a = x * 2
    b = a + other
    graph = Graph(b, a, b, x)
    assert graph.values == (x, other, a, b)
    assert graph.outputs == (3, 2, 3, 0)
    assert (len(Graph()), Graph().outputs, list(Graph()), Graph().leaves) == (0, (), [], ())
    alone = Graph(x)
    assert (alone.values, alone.outputs, alone[0]) == ((x,), (0,), Instruction(BY_NAME["leaf"], (), x))


def test_indices() -> None:
    graph = Graph(Value(3.0) * 2)
    assert graph[-1] == graph[1]
    assert list(graph) == [graph[0], graph[1]]
    for beyond in (2, -3):
        with pytest.raises(IndexError):
            graph[beyond]
    op, operands, value = graph[1]
    assert (op.name, operands, value.data) == ("mul", (0, 2.0), 6.0)


@pytest.mark.parametrize("root", [3.0, None, "x", [Value(1.0)]], ids=str)
def test_misuse(root: Any) -> None:
    with pytest.raises(OperandError, match=r"a Graph is made from Values, not from (float|NoneType|str|list)"):
        Graph(root)
    with pytest.raises(OperandError):
        Graph(Value(1.0), root)


def test_random_graphs_replayed_give_the_same_numbers_and_gradients() -> None:
    for seed in range(30):
        leaves, made = random_graph(seed, 120)
        roots = [made[-1], made[60], leaves[0]]
        graph = Graph(*roots)
        numbers = replay(graph)
        assert numbers == [v.data for v in graph.values]
        for root, output in zip(roots, graph.outputs, strict=True):
            assert graph.values[output] is root
            for leaf in leaves:
                leaf.grad = 0.0
            root.backward()
            gradients = replay_backward(graph, output)
            for place in graph.leaves:
                assert graph.values[place].grad == pytest.approx(gradients[place], rel=1e-12, abs=1e-15)
        for place, (_, operands, _) in enumerate(graph):
            assert all(o < place for o in operands if isinstance(o, int))


def test_walks_and_graphs_do_not_disturb_each_other() -> None:
    x = Value(2.0, label="x")
    y = x * x
    y.label = "y"
    graphs = [Graph(y)]
    y.backward()
    graphs.append(Graph(y, x))
    y.backward()
    z = y + x
    z.backward()
    assert x.grad == 4.0 + 4.0 + 5.0
    assert (x.label, y.label) == ("x", "y")
    assert graphs[0].values == graphs[1].values == (x, y)
    assert tape([z]) == [x, y, z]


@pytest.mark.parametrize("size", [10, 63, 64, 65, 1000, 30_000])
def test_the_tape_is_sorted_at_every_size(size: int) -> None:
    """There are three ways of sorting in the compiled engine; each must give the order of creation."""
    rng = random.Random(size)
    bystanders = []
    nodes = []
    for _ in range(size):
        nodes.append(Value(1.0))
        bystanders.append([Value(0.0) for _ in range(rng.randrange(6))])  # ticks that are not on the tape
    shuffled = list(nodes)
    rng.shuffle(shuffled)
    total = wengert.sum(shuffled)
    assert tape([total]) == [*nodes, total]
    graph = Graph(total)
    assert graph.values == (*nodes, total)
    assert [shuffled.index(graph.values[o]) for o in graph[-1].operands[:5] if isinstance(o, int)] == [0, 1, 2, 3, 4]


def test_ticks_far_apart() -> None:
    nodes = []
    for gap in (0, 1, 100, 3000, 100_000):
        nodes += [Value(1.0) for _ in range(20)]
        for _ in range(gap):
            Value(0.0)
    total = wengert.sum(reversed(nodes))
    assert tape([total]) == [*nodes, total]


@pytest.mark.parametrize("old", [0, 1, 10, 64, 65, 2000])
@pytest.mark.parametrize("young", [1, 10, 64, 65, 2000])
def test_old_parameters_of_a_young_graph(old: int, young: int) -> None:
    """As after hours of training: the parameters were made long before what is made of them."""
    rng = random.Random(old + young)
    parameters = [Value(1.0) for _ in range(old)]
    for _ in range(20_000):
        Value(0.0)
    nodes = [Value(1.0) for _ in range(young)]
    total = wengert.sum(rng.sample(parameters + nodes, old + young))
    assert tape([total]) == [*parameters, *nodes, total]


def test_a_large_graph() -> None:
    x = Value(1.0)
    y = x
    for _ in range(20_000):
        y = y * 1.0 + x
    graph = Graph(y)
    assert len(graph) == 40_001
    assert len(graph.constants) == 20_000
    assert graph.values[0] is x
    assert replay(graph)[-1] == y.data == 20_001.0


def test_a_graph_keeps_its_values_alive_and_what_it_wrote_down() -> None:
    x = Value(3.0)
    graph = Graph(x * 2 + 1)
    x.data = 100.0
    assert replay(graph) == [100.0, 200.0, 201.0]
    assert [v.data for v in graph.values] == [100.0, 6.0, 7.0]
    del x
    assert graph.values[0].data == 100.0


# ------------------------------------------------------------------------------------- copies


def written(graph: Graph) -> tuple[Any, ...]:
    """All that a graph holds, without the identity of its Values."""
    values = [(v.data, v.grad, v.label, v._op) for v in graph.values]
    return (values, list(graph.codes), list(graph.starts), list(graph.operands), list(graph.constants), graph.outputs)


def test_copies_of_random_graphs() -> None:
    for seed in range(20):
        leaves, made = random_graph(seed, 80)
        leaves[0].label = "first"
        root = made[-1]
        root.backward()
        before = written(Graph(root))
        twin = copy.deepcopy(root)
        assert written(Graph(twin)) == before == written(Graph(root))
        assert not {id(v) for v in Graph(twin).values} & {id(v) for v in Graph(root).values}
        twin.backward()
        assert written(Graph(root)) == before
        root.backward()
        assert written(Graph(twin)) == written(Graph(root))


def test_a_copy_of_many_at_once() -> None:
    leaves, made = random_graph(1, 60)
    twins = copy.deepcopy(made)
    assert len({id(v) for v in twins}) == len(made)
    for twin, value in zip(twins, made, strict=True):
        assert (twin.data, twin._op, twin is value) == (value.data, value._op, False)
    for leaf in leaves:
        leaf.grad = 0.0
    made[-1].backward()
    twins[-1].backward()
    assert [v.grad for v in twins[:4]] == [v.grad for v in leaves]


def test_a_copy_with_a_memo_of_what_was_copied_before() -> None:
    x = Value(2.0)
    y, stand_in = x * x, Value(5.0)
    twin = copy.deepcopy(y, {id(x): stand_in})
    assert twin._prev == (stand_in, stand_in)


def test_the_size_of_terms_that_cancel() -> None:
    """The sums of absolute values over all paths from the result."""
    x, y = Value(3.0), Value(-2.0)
    halves = wengert.mean([x, y]) - 0.5 * x  # 1/2 and 1/2 with respect to x
    graph = Graph(halves * y - x.exp(), halves)
    size = graph.pull_back({graph.outputs[0]: -2.0, graph.outputs[1]: 1.0}, absolute=True)
    places = {id(value): place for place, value in enumerate(graph.values)}
    through = 2.0 * 2.0 + 1.0  # of the halves, by both results
    assert size[places[id(x)]] == pytest.approx(through + 2.0 * math.exp(3.0), rel=1e-15)
    assert size[places[id(y)]] == pytest.approx(0.5 * through + 2.0 * abs(halves.data), rel=1e-15)


def test_sweeps_over_the_flat_list() -> None:
    """Reverse and forward mode, in floats: the bits of `backward()`, and no gradient is touched."""
    x, w = Value(0.5), Value(2.0)
    old = w.exp() * 3.0
    y = 2.0 - x * old + wengert.mean([x, 3.0, old, x]) / x + x**2 + wengert.dot([x, 2.0], [old, x], 1) ** x
    z = old * 2.0
    graph = Graph(y, z)
    places = {id(value): place for place, value in enumerate(graph.values)}
    sums = graph.pull_back({graph.outputs[0]: 1.0})
    assert [v.grad for v in (x, w, old, y)] == [0.0] * 4
    y.backward()
    assert [sums[places[id(v)]] for v in (x, w, old, y, z)] == [x.grad, w.grad, old.grad, 1.0, 0.0]
    assert len(graph.partials) == len(graph.operands)
    both = graph.pull_back({graph.outputs[0]: 1.0, graph.outputs[1]: 10.0})
    assert both[places[id(w)]] == pytest.approx(w.grad + 10.0 * 2.0 * old.data, rel=1e-15)
    cut = graph.pull_back({graph.outputs[0]: 1.0}, first=places[id(old)])
    assert cut[places[id(old)]] == old.grad
    assert [cut[places[id(v)]] for v in (x, w)] == [0.0, 0.0]
    size = graph.pull_back({graph.outputs[1]: -1.0}, absolute=True)
    assert size[places[id(w)]] == pytest.approx(2.0 * old.data, rel=1e-15)
    tangents = graph.push_forward({places[id(x)]: 1.0})
    assert tangents[graph.outputs[0]] == pytest.approx(x.grad, rel=1e-14)
    assert tangents[graph.outputs[1]] == 0.0
    lone = Graph(x)
    assert (list(lone.pull_back({0: 2.0})), list(lone.push_forward({0: 3.0}))) == ([2.0], [3.0])
    assert (list(Graph().pull_back({})), list(Graph().push_forward({})), Graph().outputs) == ([], [], ())
