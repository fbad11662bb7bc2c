"""The scenes of the documentation show what plain arithmetic says, and play in a browser."""

from __future__ import annotations

import json
import re
import sys
from math import log10, sqrt
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import unpacked
from tests.view.browsing import find, keep, parts, until

pytestmark = pytest.mark.once
HERE = Path(__file__).resolve().parents[2] / "docs" / "_ext"


@pytest.fixture(scope="module")
def scenes() -> Any:
    sys.path.insert(0, str(HERE))
    try:
        import scenes

        return scenes
    finally:
        sys.path.remove(str(HERE))


def frames(page: str) -> tuple[dict[str, Any], str]:
    _, program, skeleton = parts(page)
    (found,) = re.findall(r"^const film=(.*);$", program, re.MULTILINE)
    return json.loads(found), skeleton


def points(path: str) -> list[tuple[float, float]]:
    return [(float(x), float(y)) for x, y in re.findall(r"([-\d.]+),([-\d.]+)", path)]


def test_the_secant_has_its_slope_and_becomes_the_tangent(scenes: Any) -> None:
    film, _ = frames(scenes.secant())
    across, up = (400 - 46 - 8) / (5.2 - 1.0), (330 - 26 - 22) / 75.0  # pixels of a unit
    hs = [*scenes.HS, 0.0]
    assert len(film["frames"]) == len(hs)
    assert hs[-2] < 1e-3
    for h, frame in zip(hs, film["frames"], strict=True):
        (x0, y0), (x1, y1) = points(frame["marks"]["line"]["d"])
        assert (y0 - y1) / up / ((x1 - x0) / across) == pytest.approx(14.0 + 3.0 * h, rel=0.01)  # of 3x² - 4x + 5
        assert y0 - (46 + 2.0 * across - x0) * (y0 - y1) / (x1 - x0) == pytest.approx(26 + 45.0 * up, abs=0.3), "at 3"
        second = frame["marks"]["second"]
        assert second["cx"] == pytest.approx(46 + (2.0 + h) * across, abs=0.1)
        assert second["cy"] == pytest.approx(26 + (65.0 - (20.0 + 14.0 * h + 3.0 * h * h)) * up, abs=0.1)
        told = float(re.findall(r"(?:= |is )([\d.]+)", frame["said"])[-1].rstrip("."))
        assert told == pytest.approx(14.0 + 3.0 * h, rel=1e-3)
        if h:  # what is printed is true as it is printed
            quotient, result = frame["said"].removeprefix("Slope of the secant: ").split(" = ")
            assert eval(quotient, {"f": lambda x: 3 * x**2 - 4 * x + 5}) == pytest.approx(float(result), rel=1e-3)


def test_a_nudge_moves_each_node_by_its_derivative(scenes: Any) -> None:
    film, _ = frames(scenes.nudge())
    a, b, h = -2.0, 3.0, 0.01
    slopes = {0: 1.0, 2: b, 3: 1.0, 4: b * (a + b) + a * b}  # of a, a*b, a + b, and their product
    assert len(film["frames"]) == len(slopes) + 1
    for k, frame in enumerate(film["frames"]):
        moved = {i: frame["marks"][f"moved{i}"]["text"] for i in range(5)}
        assert {i: float(text) for i, text in moved.items() if text} == pytest.approx(
            {i: h * slopes[i] for i in [*slopes][:k]}
        )
    again = [
        (a + h) * b - a * b,
        h,
        (a + h) * b * (a + h + b) - a * b * (a + b),
    ]
    for frame, change in zip(film["frames"][2:], again, strict=True):
        assert float(re.findall(r"it moves by (\S+)\.(?:\s|$)", frame["said"])[0]) == pytest.approx(change, rel=1e-3)
    assert "= -0.03. Computed again" in film["frames"][-1]["said"]
    assert " moves by 1 × 0.03 + (-6) × 0.01 = -0.03." in film["frames"][-1]["said"]
    last = "\n-0.03 is -3 × 0.01, and -3 is the gradient of a that backward() computes."
    assert film["frames"][-1]["said"].endswith(last)


def descended(name: str) -> list[tuple[float, float, float]]:
    """The same descent in plain numbers, with the derivative from a calculus book."""
    w, b, xs = -1.0, 3.0, [0.5, 1.0, 1.5, 2.0, 2.5, 3.0]
    state, path = [[0.0, 0.0], [0.0, 0.0]], []
    for step in range(1, 82):
        errors = [w * x + b - (0.9 * x + 0.4) for x in xs]
        path.append((w, b, sum(e * e for e in errors) / 6))
        slopes = [2 * sum(e * x for e, x in zip(errors, xs, strict=True)) / 6, 2 * sum(errors) / 6]
        moves = []
        for (first, second), g in zip(state, slopes, strict=True):
            first = 0.9 * first + (0.1 * g if name == "Adam" else g)
            second = 0.999 * second + 0.001 * g * g
            adam = 0.2 * first / (1 - 0.9**step) / (sqrt(second / (1 - 0.999**step)) + 1e-8)
            moves.append((first, second, {"SGD": 0.19 * g, "momentum": 0.03 * first, "Adam": adam}[name]))
        state = [[first, second] for first, second, _ in moves]
        w, b = w - moves[0][2], b - moves[1][2]
    return path


@pytest.mark.parametrize("name", ["SGD", "momentum", "Adam"])
def test_each_optimizer_goes_its_way(scenes: Any, name: str) -> None:
    film, _ = frames(scenes.descent())
    path = descended(name)
    assert len(film["frames"]) == len(path) == 81
    for k in (0, 1, 5, 30, 80):
        marks = film["frames"][k]["marks"]
        way = points(marks[f"way-{name}"]["d"])
        assert len(way) == k + 1
        for (x, y), (w, b, _) in zip(way, path, strict=False):
            assert (x, y) == pytest.approx((46 + (w + 1.5) * 346 / 4, 26 + (4 - b) * 282 / 5.5), abs=0.11)
        assert (marks[f"at-{name}"]["cx"], marks[f"at-{name}"]["cy"]) == way[-1]
        told = re.findall(rf"{name} ([^,]+)", film["frames"][k]["said"])
        assert float(told[0]) == pytest.approx(path[k][2], rel=1e-3)


def test_the_surface_is_the_loss(scenes: Any) -> None:
    film, _ = frames(scenes.descent())
    assert len(film["cells"]) == 96 * 96
    for at in range(0, 96 * 96, 131):
        w, b = -1.5 + 4 * (at % 96 + 0.5) / 96, 4 - 5.5 * (at // 96 + 0.5) / 96
        loss = sum((w * x + b - (0.9 * x + 0.4)) ** 2 for x in (0.5, 1.0, 1.5, 2.0, 2.5, 3.0)) / 6
        level = min(10.0, max(0.0, log10(loss / 0.02) / log10(2.0)))
        assert abs(ord(film["cells"][at]) - 65 - level) <= 0.5 + 1e-9


@pytest.mark.browser
@pytest.mark.parametrize("name", ["secant", "nudge", "descent"])
def test_each_scene_plays(browser: Any, tmp_path: Path, scenes: Any, name: str) -> None:
    page = scenes.SCENES[name]()
    page.save(tmp_path / "scene.html")
    metrics = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        browser.get((tmp_path / "scene.html").as_uri())
        unpacked(browser)
        assert browser.execute_script("return document.documentElement.scrollWidth") == 390
        assert all(drawing.get_attribute("aria-label") for drawing in browser.find_elements("css selector", ".panel"))
        height = browser.execute_script("return document.body.offsetHeight")
        browser.execute_script("ui.speed.value = 150; play()")
        until(lambda: browser.execute_script("return at === end && !timer"))
        assert find(browser, "#said").text == frames(page)[0]["frames"][-1]["said"]
        assert browser.execute_script("return document.body.offsetHeight") == height, "nothing jumps"
        keep(browser, f"scene-{name}")
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
