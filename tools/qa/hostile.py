"""Public functions called with objects that act inside of them: `python tools/qa/hostile.py [SEED] [CALLS]`.

An object's `__float__`, `__iter__`, `__eq__`, `__del__` and so on are code of the user's. Here they run passes, write
Graphs, initialize nodes anew, let go of what is in use, raise. Whatever comes of a call is the material of the next.
Any exception is an answer; a crash, or a call that does not come back, is not: so this is a program of its own.
"""

from __future__ import annotations

import copy
import gc
import random
import sys
import warnings
from array import array
from collections.abc import Callable, Iterator
from contextlib import suppress
from numbers import Real
from types import ModuleType
from typing import Any

import wengert
from wengert import Graph, Value, engine, graph, nn, node, ops, optim, parameters
from wengert.compiler.call import fused
from wengert.engine import Many
from wengert.handmade import Handmade
from wengert.node import Node

__all__ = ["main"]

DEEPEST = 3  # of actions inside of actions
MODULES: tuple[ModuleType, ...] = (engine, node, graph, parameters, optim, fused)
SWITCHES = {"pin", "set_hooks", "set_tracing_hook", "supply"}  # they change the engine, and for good
METHODS = (
    *("__add__", "__radd__", "__sub__", "__mul__", "__rmul__", "__truediv__", "__rtruediv__", "__pow__", "__rpow__"),
    *("__eq__", "__lt__", "__init__", "__copy__", "__deepcopy__", "__reduce__", "__repr__", "__format__", "__hash__"),
    *("__getitem__", "__len__", "__iter__", "__call__", "backward", "exp", "log", "tanh", "relu", "clip", "detach"),
    *("item", "data", "grad", "label", "_prev", "_op", "_operands", "_backward", "_push", "_apply_op", "_leaf"),
    *("_slopes", "_closure", "_symbol", "partials", "pull_back", "push_forward", "leaves", "step", "zero_grad"),
    *("freeze", "unfreeze", "state_dict", "load_state_dict", "lr", "momentum", "betas", "eps", "parameters"),
    *("_state", "_active"),
)

draw = random.Random(0)
pool: list[Any] = []  # what came of earlier calls
optimizers: list[Any] = []
depth = 0


def a_value() -> Value:
    return draw.choice([x for x in pool if isinstance(x, Value)] or [Value(1.0)])


def act() -> None:
    """What an object does while the engine asks it for something."""
    global depth
    if depth >= DEEPEST:
        return
    depth += 1
    try:
        draw.choice(ACTIONS)(a_value())
    finally:
        depth -= 1


def _grow(_: Value) -> None:
    for optimizer in optimizers:
        optimizer.parameters.append(Value(1.0))
        optimizer._active.append(Value(1.0))


def _forget(_: Value) -> None:
    del pool[draw.randrange(len(pool) + 1) :]


def _fail(_: Value) -> None:
    raise KeyError("raised by what was asked")


ACTIONS: list[Callable[[Any], object]] = [
    lambda v: v.backward(),
    lambda v: (v * v).backward(),
    lambda v: Graph(v),
    lambda v: gc.collect(),
    lambda v: v.__init__(2.0),
    lambda v: v.__init__(1.0, (Value(1.0), v), "h"),
    lambda v: setattr(v, "data", 3.0),
    lambda v: setattr(v, "label", f"label {draw.randrange(1000)}"),
    lambda v: copy.deepcopy(v),
    lambda v: call(),
    _grow,
    _forget,
    _fail,
]


class Acting:
    """It has whatever is asked for, and each time it is another."""

    def __float__(self) -> float:
        act()
        return draw.choice([2.5, 0.0, float("nan")])

    def __index__(self) -> int:
        act()
        return draw.choice([0, 1, 5, -1, 10**9, -(10**9)])

    def __len__(self) -> int:
        act()
        return draw.choice([0, 1, 3, 10**6])

    def __iter__(self) -> Iterator[Any]:
        act()
        return iter([thing() for _ in range(3)])

    def __getitem__(self, place: Any) -> Any:
        act()
        if draw.random() < 0.3:
            raise IndexError
        return thing()

    def __eq__(self, other: object) -> bool:
        act()
        return draw.random() < 0.5

    def __hash__(self) -> int:
        act()
        return draw.randrange(3)

    def __repr__(self) -> str:
        act()
        return f"acting {draw.randrange(5)}"

    def __call__(self, *_: Any, **__: Any) -> Any:
        act()
        return draw.choice([1.0, None, (1.0, 2.0), [1.0], self])

    def items(self) -> list[Any]:
        act()
        return [(draw.choice([0, 1, -1, 10**9]), draw.choice([1.0, self]))]

    __lt__ = __le__ = __gt__ = __ge__ = __eq__


class ActingReal(Acting):
    """One that counts as a number."""


Real.register(ActingReal)


class ActingFloat(float):
    def __float__(self) -> float:
        act()
        return 1.5


class ActingList(list[Any]):
    def __len__(self) -> int:
        act()
        return draw.choice([list.__len__(self), 0, 10**5])

    def __iter__(self) -> Iterator[Any]:
        act()
        return draw.choice([list.__iter__(self), iter(())])


class Silent(Value):
    def __init__(self, *_: Any) -> None:
        pass


class Elsewhere(Value):
    def __new__(cls, *_: Any) -> Any:
        act()
        return draw.choice([None, 3, Value(1.0), Value.__new__(cls)])


class Overriding(Value):
    """A Value all of whose attributes are other things, and which comes back when it is let go of."""

    data = property(lambda self: act() or 1.0)  # type: ignore[assignment,func-returns-value]
    grad = property(lambda self: act() or 2.0)  # type: ignore[assignment,func-returns-value]
    _made = _mark = _a = _b = _da = _db = _all = None  # type: ignore[assignment]
    __eq__, __hash__ = Acting.__eq__, Acting.__hash__

    def _apply_op(self, *_: Any) -> Any:
        act()
        return thing()

    def _push(self) -> None:
        act()

    def _slopes(self) -> list[float]:
        act()
        return []

    def __del__(self) -> None:
        with suppress(Exception):
            act()
        pool.append(self)


class Early(Value):
    """It is computed with before it is initialized."""

    def __init__(self, data: Any = 1.0, children: Any = (), symbol: Any = "") -> None:
        self.twice = self * 2.0
        super().__init__(data, children, symbol)


KINDS = (Silent, Elsewhere, Overriding, Early, Value, Many, Node, Handmade, Graph, int, type)


def _optimizer() -> Any:
    kind = draw.choice([optim.SGD, optim.Adam, optim.AdamW])
    found = kind([Value(1.0) for _ in range(draw.choice([1, 5]))], lr=draw.choice([0.1, Acting()]))
    optimizers[:] = [*optimizers[-4:], found]
    return found


THINGS: list[Callable[[], Any]] = [
    lambda: draw.uniform(-2.0, 2.0),
    lambda: draw.choice([None, "x", b"", 1j, 10**400, -(10**9), 2**63, -1, 0, 1, True]),
    lambda: draw.choice([Acting(), ActingReal(), ActingFloat(1.0)]),
    lambda: [thing() for _ in range(draw.randrange(4))],
    lambda: tuple([thing() for _ in range(draw.randrange(4))]),
    lambda: ActingList([thing() for _ in range(draw.randrange(4))]),
    lambda: array("d", [1.0] * draw.randrange(5)),
    lambda: {draw.choice([0, 1, 2, -1]): 1.0 for _ in range(3)},
    lambda: draw.choice(KINDS),
    lambda: draw.choice(KINDS).__new__(draw.choice(KINDS)),
    lambda: draw.choice([Silent(), Overriding(1.0)]),
    lambda: Early(1.0, (a_value(), 2.0), "h"),
    lambda: Value(1.0, [a_value() for _ in range(3)], "h"),
    lambda: Graph(a_value()),
    lambda: draw.choice(ops.TABLE[: ops.BUILT_IN]),
    lambda: draw.choice(ops.TABLE[: ops.BUILT_IN])._replace(code=draw.choice([0, -1, 5, 40, 70_000])),
    lambda: nn.MLP(2, [2, 1]),
    lambda: wengert.sum([*[Silent() for _ in range(draw.choice([3, 70]))], a_value()]),
    lambda: a_value() * draw.choice([ActingReal(), ActingFloat(1.0), 2.0]),
    lambda: wengert.dot([a_value(), 1.0], [ActingReal(), a_value()], ActingReal()),
    _optimizer,
]


def thing() -> Any:
    """Anything."""
    return draw.choice(pool) if pool and draw.random() < 0.3 else draw.choice(THINGS)()


FUNCTIONS: list[Any] = [getattr(module, name) for module in MODULES for name in module.__all__ if name not in SWITCHES]
FUNCTIONS = [function for function in FUNCTIONS if callable(function)] + ops.TABLE[: ops.BUILT_IN]


def call() -> Any:
    return draw.choice(FUNCTIONS)(*[thing() for _ in range(draw.choice([0, 1, 1, 2, 2, 3, 4, 5]))])


def attribute() -> Any:
    owner, name = thing(), draw.choice(METHODS)
    if draw.random() < 0.1 and not isinstance(owner, type) and not name.startswith("__"):  # else others change with it
        return setattr(owner, name, thing())
    found = getattr(owner, name)
    return found(*[thing() for _ in range(draw.randrange(4))]) if callable(found) else found


def whole() -> None:
    """A pass and a Graph of what there is."""
    value = a_value()
    value.backward()
    recorded = Graph(value)
    recorded.pull_back({len(recorded) - 1: 1.0})
    recorded.push_forward({0: 1.0})
    list(recorded)


def main(seed: int, calls: int) -> int:
    """Make so many calls."""
    warnings.simplefilter("ignore")
    sys.unraisablehook = lambda _: None
    draw.seed(seed)
    for _ in range(calls):
        del pool[:-60]
        with suppress(Exception):
            result = draw.choice([call, attribute, attribute, thing, whole])()
            if not isinstance(result, (str, int, type(None))):
                pool.append(result)
    print(f"seed {seed}: {calls} calls")
    return 0


if __name__ == "__main__":
    sys.exit(main(*map(int, (sys.argv[1:] + ["1", "2000"][len(sys.argv) - 1 :])[:2])))
