"""Parameters are found anew at each call: exact after every change, and at the speed of C where the engine has it."""

from __future__ import annotations

import gc
import random
import sys
import weakref
from collections import Counter, OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from wengert import Value, engine
from wengert.nn import MLP, Layer, Module, Neuron


class Pair(NamedTuple):
    """A named tuple: its items go by their places."""

    first: Any
    second: Any


class Holder(Module):
    """Whatever it is given, on attributes."""

    def __init__(self, **attributes: Any) -> None:
        vars(self).update(attributes)


class Items(list[Any]):
    """A list of one's own, which shows every second item."""

    def __iter__(self) -> Any:
        return iter(self[::2])


def plainly(item: Any, found: dict[Value, None] | None = None, seen: set[int] | None = None) -> list[Value]:
    """The same walk as it reads: every leaf Value once, where it is reached first."""
    found, seen = {} if found is None else found, set() if seen is None else seen
    if isinstance(item, (Module, dict, list, tuple)) and id(item) not in seen:
        seen.add(id(item))
        held = vars(item) if isinstance(item, Module) else item
        for part in list(held.values()) if isinstance(held, dict) else held:
            plainly(part, found, seen)
    elif isinstance(item, Value) and item.is_leaf:
        found.setdefault(item)
    return list(found)


def same(model: Module) -> None:
    """The parameters are those that the plain walk finds, in its order; and all of them are reset."""
    wanted = plainly(model)
    got = model.parameters()
    assert list(map(id, got)) == list(map(id, wanted))
    assert got is not model.parameters()
    for p in wanted:
        p.grad = 1.0
    model.zero_grad()
    assert not any(p.grad for p in wanted)
    assert [p for _, p in model.named_parameters()] == wanted


def changes() -> dict[str, Callable[[MLP], Any]]:
    """What can become of a model."""

    def swap(m: Any) -> None:
        m.layers[0], m.layers[-1] = m.layers[-1], m.layers[0]

    def share_one(m: Any) -> None:
        m.layers[1].neurons[0].w[1] = m.layers[0].neurons[2].w[0]

    def share_rows(m: Any) -> None:
        m.tied = [list(neuron.w) for neuron in m.layers[0].neurons]

    def in_dictionaries(m: Any) -> None:
        m.__dict__["parts"] = OrderedDict(a=Pair(Value(1.0), (Value(2.0), m.layers[0])), b={1: [Neuron(2)]})

    def into_a_cycle(m: Any) -> None:
        m.layers[0].model = m
        m.layers.append(m.layers)

    def constant(m: Any) -> None:
        m.layers[0].neurons[0].w[0] = m.layers[0].neurons[0].w[0].data

    return {
        "as made": lambda m: None,
        "a layer added": lambda m: m.layers.append(Layer(1, 2)),
        "a layer inserted": lambda m: m.layers.insert(0, Layer(2, 2)),
        "a layer removed": lambda m: m.layers.pop(0),
        "a layer replaced": lambda m: m.layers.__setitem__(0, Layer(2, 3)),
        "a layer shared": lambda m: m.layers.append(m.layers[0]),
        "layers swapped": swap,
        "reversed": lambda m: m.layers[0].neurons.reverse(),
        "a Value shared": share_one,
        "weights shared": lambda m: setattr(m.layers[1].neurons[0], "w", m.layers[0].neurons[0].w),
        "rows shared": share_rows,
        "an attribute deleted": lambda m: delattr(m.layers[0].neurons[1], "b"),
        "an attribute replaced": lambda m: setattr(m.layers[0].neurons[1], "b", Value(3.0)),
        "a weight made a constant": constant,
        "a result kept": lambda m: setattr(m, "last", m([1.0, 2.0])),
        "in dictionaries and tuples": in_dictionaries,
        "a cycle": into_a_cycle,
        "a list that iterates as it likes": lambda m: setattr(m, "items", Items([Value(n) for n in range(5)])),
        "a count": lambda m: setattr(m, "count", Counter({"a": 3})),
    }


@pytest.mark.parametrize("name", changes())
def test_after_a_change(name: str) -> None:
    model = MLP(2, [3, 3, 1])
    model.parameters()
    changes()[name](model)
    same(model)


def test_after_many_changes() -> None:
    rng = random.Random(3)
    for _ in range(30):
        model = MLP(2, [3, 3, 1])
        for name in rng.sample([*changes()], 4):
            try:
                changes()[name](model)
            except (AttributeError, IndexError, TypeError):
                continue  # what it would change is gone
            same(model)


def test_containers_of_every_kind_in_any_order() -> None:
    for seed in range(200):
        rng = random.Random(seed)
        pool: list[Any] = [Value(n) for n in range(rng.randrange(1, 40))]
        pool += [1.0, "text", None, pool[0] * 2.0]
        for _ in range(rng.randrange(12)):
            inside = rng.choices(pool, k=rng.randrange(8))
            made = rng.choice([list, tuple, lambda xs: dict(enumerate(xs)), lambda xs: Holder(xs=xs), Items])(inside)
            pool.append(made)
        same(Holder(**{f"x{n}": item for n, item in enumerate(rng.sample(pool, len(pool)))}))


def test_many_parts_in_no_order_are_compared_value_by_value() -> None:
    values = [Value(n) for n in range(1500)]
    mixed = random.Random(0).sample(values, len(values))
    assert Holder(xs=[mixed, mixed[::-1]]).parameters() == mixed


def test_values_of_a_kind_of_ones_own() -> None:
    class Weight(Value):
        """With attributes."""

    same(Holder(xs=[Weight(1.0), Value(2.0), Weight(3.0)]))


def test_a_class_that_says_itself_which_they_are() -> None:
    class Frozen(MLP):
        def parameters(self) -> list[Value]:
            return self.layers[-1].parameters()

    model = Frozen(2, [2, 1])
    for p in plainly(model):
        p.grad = 1.0
    model.zero_grad()
    assert [p.grad for p in plainly(model)] == [1.0] * 6 + [0.0] * 3
    model = MLP(2, [2, 1])
    vars(model)["parameters"] = lambda: model.layers[0].parameters()
    for p in plainly(model):
        p.grad = 1.0
    model.zero_grad()
    assert [p.grad for p in plainly(model)] == [0.0] * 6 + [1.0] * 3


def test_nothing_is_kept() -> None:
    model = MLP(2, [3, 1])
    found = model.parameters()
    found.clear()
    layer = weakref.ref(model.layers[0])
    assert len(model.parameters()) == 13
    model.layers.pop(0)
    gc.collect()
    assert layer() is None
    assert len(model.parameters()) == 4


def test_nesting_without_end() -> None:
    nested: list[Any] = [Value(1.0)]
    for _ in range(100_000):
        nested = [nested]
    assert len(Holder(nested=nested).parameters()) == 1
    while nested and isinstance(nested[0], list):  # else it would be freed by recursion
        nested = nested[0]


def test_a_small_model_after_a_large_one() -> None:
    large, small = MLP(30, [30]), MLP(2, [1])
    sizes = set()
    for _ in range(3):
        assert len(large.parameters()) == 930
        sizes.add(sys.getsizeof(small.parameters()))
    assert max(sizes) < 200


@pytest.mark.skipif(not engine.compiled, reason="interpreted, each Value is looked at in Python")
@pytest.mark.parametrize("how", ["parameters", "zero_grad"])
def test_compiled_no_python_runs_for_a_parameter(how: str) -> None:
    """The calls that Python sees are as many for ten neurons as for a hundred."""
    counts = []
    for size in (10, 100):
        function = getattr(MLP(size, [size]), how)
        events: list[str] = []
        sys.setprofile(lambda frame, event, arg: events.append(event))  # noqa: B023
        try:
            function()
        finally:
            sys.setprofile(None)
        counts.append(len(events))
    assert counts[0] == counts[1] < 12


def test_a_list_that_becomes_shorter_while_it_is_read() -> None:
    class Emptying(list[Any]):
        def __iter__(self) -> Any:
            outer.clear()
            return iter([])

    outer: list[Any] = [Value(1.0)]
    outer += [Emptying(), *map(Value, range(50))]
    assert len(Holder(outer=outer).parameters()) == 1
    outer += [Emptying()]
    Holder(outer=outer).zero_grad()


def test_containers_that_are_made_while_they_are_read() -> None:
    class Made(list[Any]):
        def __iter__(self) -> Any:
            return ([p] for p in super().__iter__())

    made = [Made(map(Value, range(3))) for _ in range(20)]
    model = Holder(made=made)
    assert len(model.parameters()) == len(model.named_parameters()) == 60
