"""What is tried on the Neuron, the Layer and the MLP of a file: numbers go in, numbers come out.

The process that runs the file loads this one alone: it imports nothing of Wengert's and knows no right answer. What it
tells of an object is which Values it holds and where, which of them `parameters()` gives, and, with drawn numbers in
their place, what a call and its backward pass give. `networks.py` reads that stream, and judges it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from inspect import isroutine
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from wengert_course.checks.kit import Kit

__all__ = ["MOST", "OBJECTS", "PROBES", "TRIALS"]

OBJECTS: dict[str, tuple[Any, ...]] = {
    "Neuron": (3,),
    "Layer": (3, 4),
    "Layer of one": (3, 1),
    "MLP": (3, [4, 4, 1]),
    "MLP of two": (2, [3, 2]),
}
"""What is made: the first word is the name of the class; the arguments."""

PROBES = 6  # so many times, each object is given numbers and called
MOST = 300  # so many Values of an object are looked at
DEEP = 12  # so far down it is looked for them


def _is_value(kit: Kit, thing: Any) -> bool:
    return hasattr(thing, kit.names["data"]) and hasattr(thing, kit.names["grad"])


def _made(kit: Kit, name: str, method: str) -> Any:
    """A new object of the file's class, which has a method."""
    of = name.split()[0]
    if not callable(kit.space.get(of)):
        kit.unfit("absent", of)
    thing = kit.space[of](*OBJECTS[name])
    if not hasattr(thing, method):
        kit.unfit("absent", f"{of}.{method}")
    return thing


def _structure(kit: Kit, root: Any) -> tuple[list[Any], list[Any]]:
    """How many plain numbers are in the lists of an object, and its Values: of each where it is, its number, if a leaf.

    A place is whose attribute, in which list. An object, a list and a Value are visited once each. The second result
    is the Values themselves.
    """
    seen: dict[int, Any] = {}
    told: list[Any] = []
    values: list[Any] = []
    plain = 0

    def visit(thing: Any, owner: int, within: int, depth: int) -> None:
        nonlocal plain
        plain += within != owner and type(thing) is float
        if id(thing) in seen or depth > DEEP or len(values) >= MOST:
            return
        number, items = len(seen), list[Any]()
        if _is_value(kit, thing):
            values.append(thing)
            leaf = not getattr(thing, kit.names.get("_prev", "_prev"), None)
            told.append((owner, within, kit.value(thing), int(leaf)))
        elif isinstance(thing, (list, tuple, dict)):
            items = list(thing.values()) if isinstance(thing, dict) else list(thing)
        elif hasattr(thing, "__dict__") and not (isinstance(thing, (type, ModuleType)) or isroutine(thing)):
            items, owner = [*vars(type(thing)).values(), *vars(thing).values()], number
        else:
            return
        seen[id(thing)] = thing  # kept, so that no other gets its identity
        for item in items:
            visit(item, owner, number, depth + 1)

    visit(root, 0, 0, 0)
    return [plain, told], values


def _parameters(kit: Kit, name: str) -> Iterator[list[Any]]:
    """The structure; what kind of thing parameters() gives, whether the same again, and which of the Values are in it.

    -1 stands for another Value, -2 for what is none.
    """
    thing = _made(kit, name, "parameters")
    told, values = _structure(kit, thing)
    yield told
    given = thing.parameters()
    items = list(given) if given is not None else []
    kind = 0 if given is None else 2 if any(isinstance(item, (list, tuple)) for item in items) else 1
    same = [id(item) for item in items] == [id(item) for item in thing.parameters() or ()]
    known = {id(value): i for i, value in enumerate(values)}
    yield [kind, int(same), [known.get(id(item), -1) if _is_value(kit, item) else -2 for item in items[: 2 * MOST]]]


def _form(kit: Kit, out: Any) -> tuple[int, list[Any]]:
    """What a call gave, and its items: 0 a Value, 1 a list of Values, 2 numbers, 3 None, 4 something else."""
    if _is_value(kit, out):
        return 0, [out]
    items = list(out) if isinstance(out, (list, tuple)) else [out]
    if items and all(_is_value(kit, item) for item in items):
        return 1, items
    if items and all(isinstance(item, (int, float)) for item in items):
        return 2, items
    return (3 if out is None else 4), []


def _calls(kit: Kit, name: str) -> Iterator[list[Any]]:
    """The structure; then of each probe the form and the numbers of the output, and of each output all gradients."""
    thing = _made(kit, name, "__call__")
    told, values = _structure(kit, thing)
    yield told
    numbers = kit.draw(name)
    for _ in range(PROBES):
        x = [numbers.small() for _ in range(OBJECTS[name][0])]
        for value in values:
            kit.put(value, numbers.small())
        form, outputs = _form(kit, thing(list(x)))
        gradients = []
        for i in range(len(outputs) if form < 2 else 0):
            kit.zero(*values)
            kit.backward(_form(kit, thing(list(x)))[1][i])  # made anew, as parts that outputs share keep gradients
            gradients.append([kit.grad(value) for value in values])
        yield [form, [kit.value(out) if form < 2 else float(out) for out in outputs], gradients]


def _trial(name: str, tell: Callable[[Kit, str], Iterator[list[Any]]], ending: str = "") -> tuple[Any, ...]:
    shown = f"{name.split()[0]}({', '.join(map(str, OBJECTS[name]))}){ending}"
    return shown, name + ending, "core", "", lambda kit: (("", "", told) for told in tell(kit, name)), "", 8


TRIALS: list[tuple[Any, ...]] = []
for _name in OBJECTS:
    TRIALS.append(_trial(_name, _calls))
    if " of " not in _name:
        TRIALS.append(_trial(_name, _parameters, ".parameters()"))
