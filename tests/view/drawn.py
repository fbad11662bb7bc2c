"""Graphs to be drawn, and what their pictures say."""

from __future__ import annotations

import random
import xml.etree.ElementTree as ET

import wengert
from tests.view.geometry import read
from wengert import Value, losses, nn

NEURON = {"x1": 2.0, "x2": 0.0, "w1": -3.0, "w2": 1.0, "b": 6.8813735870195432}


def neuron() -> tuple[Value, dict[str, Value]]:
    """The neuron of the tutorials: E5 of the list of cases."""
    v = {name: Value(number, name) for name, number in NEURON.items()}
    n = v["x1"] * v["w1"] + v["x2"] * v["w2"] + v["b"]
    n.label = "n"
    o = n.tanh()
    o.label = "o"
    return o, v


def texts(svg: str) -> list[str]:
    return [text for text, _, _ in read(svg).texts]


def titles(svg: str) -> list[str]:
    return [element.text or "" for element in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}title")]


def rows(svg: str) -> dict[str, dict[str, str]]:
    """What each labelled box says: {"n": {"data": "0.8814", "grad": "0.5"}}."""
    found = {}
    for group in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}g"):
        words = [element.text or "" for element in group.findall("{http://www.w3.org/2000/svg}text")]
        named = [e.text for e in group.findall("{http://www.w3.org/2000/svg}text") if e.get("class") == "name"]
        if named and "data" in words:
            at = words.index("data")
            found[named[0] or ""] = dict(zip(words[at:][::2], words[at:][1::2], strict=False))
    return found


def on_path(svg: str) -> set[str]:
    """The names of the boxes on the path with the largest product of derivatives."""
    groups = [g for g in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}g") if "hot" in (g.get("class") or "")]
    names = [
        e.text or "" for g in groups for e in g.findall("{http://www.w3.org/2000/svg}text") if e.get("class") == "name"
    ]
    return set(names)


def random_graph(rng: random.Random, size: int, backward: bool = True) -> Value:
    """A result of `size` operations at most, on values that are near or far."""
    values = [Value(rng.uniform(-1, 1), rng.choice(["", "x", "weight", "a long label " * 3])) for _ in range(3)]
    for _ in range(size):
        x, y = rng.choice(values[-8:]), rng.choice(values)
        values.append(rng.choice([x + y, x * y, x - 2, 3 / (y + 5), x.tanh(), x**2]))
        if rng.random() < 0.05:
            values.append(wengert.sum([*values[-6:], 1.0]))
    root = wengert.sum(values[-9:])
    if backward:
        root.backward()
    return root


def boxes(svg: str) -> int:
    return len(read(svg).boxes)


def moons(examples: int) -> Value:
    rng = random.Random(1)
    model = nn.MLP(2, [16, 16, 1], rng=rng)
    values = [losses.hinge(model([rng.gauss(0, 1), rng.gauss(0, 1)]), 1) for _ in range(examples)]
    moons.model = model  # type: ignore[attr-defined]  # its parameters go by its names as long as it lives
    loss = wengert.mean(values) + 1e-4 * wengert.sum([p * p for p in model.parameters()])
    loss.backward()
    return loss
