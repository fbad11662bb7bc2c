"""What tests of the stepper's page in a browser share: what they read off it, and the computations that it shows."""

from __future__ import annotations

import base64
import json
import os
import random
import re
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import wengert
from wengert import Value, ops


def keep(browser: Any, name: str) -> bytes:
    """A screenshot, kept in the folder WENGERT_SCREENSHOTS; of more than one colour, or nothing was drawn."""
    picture: bytes = browser.get_screenshot_as_png()
    folder = os.environ.get("WENGERT_SCREENSHOTS")
    if folder:
        (Path(folder) / f"{name}.png").write_bytes(picture)
    assert len(picture) > 15_000
    return picture


def find(browser: Any, selector: str) -> Any:
    return browser.find_element("css selector", selector)


def numbers(browser: Any) -> list[tuple[float, float]]:
    """The data and the gradient of each node, in full."""
    titles = browser.execute_script("return nodes.map((node) => node.title.textContent)")
    pairs = [title.rpartition(": data ")[2].split(", grad ") for title in titles]
    return [(float(data.replace("Infinity", "inf")), float(grad.replace("Infinity", "inf"))) for data, grad in pairs]


def parts(page: str) -> list[str]:
    """The style, the program and the skeleton of a page of steps, which stand in it packed."""
    (packed,) = re.findall(r'id="packed">(.*?)</script>', page)
    found: list[str] = json.loads(zlib.decompress(base64.b64decode(packed)))
    return found


def go(browser: Any, position: int) -> None:
    browser.execute_script("go(arguments[0])", position)


def said(browser: Any) -> str:
    """The sentences of the step that is shown."""
    script = "return [...document.querySelectorAll('#said p')].map((p) => p.textContent).join('; ')"
    return str(browser.execute_script(script))


def until(condition: Callable[[], Any], seconds: float = 20) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"it did not come about in {seconds} s"
        time.sleep(0.02)


def twice() -> Value:
    """Two values that are both used twice."""
    a, b = Value(-2.0, "a"), Value(3.0, "b")
    d, e = a * b, a + b
    d.label, e.label = "d", "e"
    f = d * e
    f.label = "f"
    return f


def every_operation(seed: int = 0) -> tuple[Value, list[Value]]:
    """A sum with a term for each row of the table, and its leaves."""
    chance = random.Random(seed)
    terms, leaves = [], []
    for row in ops.TABLE[1 : ops.BUILT_IN]:
        if row.value is None:
            continue
        operands = []
        for i in range(row.arity or 3):
            low, high = row.domain[i % len(row.domain)]
            operands.append(Value(chance.uniform(low, high), f"{row.name} {i}"))
        shapes, operands = [x.data for x in operands[: len(row.shapes)]], operands[len(row.shapes) :]
        leaves += operands
        terms.append(row(*shapes, *operands))
    total = terms[0]
    for term in terms[1:]:
        total = total + 0.1 * term
    return total, leaves


def network() -> Value:
    chance = random.Random(1)
    model = wengert.nn.MLP(3, [4, 1], activation="tanh", rng=chance)
    loss = (model([Value(chance.uniform(-1, 1), f"x{i}") for i in range(3)]) - 1.0) ** 2
    loss.label = "loss"
    return loss
