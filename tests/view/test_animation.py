"""The page of a training run is compared with `predict`, `backward()` and the History, and it is played."""

from __future__ import annotations

import json
import random
import re
from math import sqrt
from pathlib import Path
from typing import Any

import pytest

import wengert
from tests.conftest import unpacked
from tests.view.browsing import find, keep, parts, until
from wengert import Value, data, fit, losses, optim
from wengert.errors import ArgumentError, DataError, LengthError
from wengert.nn import MLP
from wengert.training import predict
from wengert.view.plots.animation import CELLS, TrainingAnimation

pytestmark = pytest.mark.once


def trained(classes: int = 2, epochs: int = 12, **more: Any) -> tuple[TrainingAnimation, MLP, Any, Any, Any, Any]:
    if classes == 2:
        X, Y = data.moons(40, noise=0.1, seed=1, labels=(-1, 1))
        loss, width = losses.hinge, 1
    else:
        X, Y = data.spiral(15, seed=1)
        loss, width = losses.cross_entropy, 3
    model = MLP(2, [5, width], rng=random.Random(2))
    animation = TrainingAnimation(model, loss, X, Y)
    optimizer = optim.Adam(model, lr=0.05)
    made = fit(model, loss, X, Y, optimizer, epochs, 10, seed=1, progress=False, callback=animation, **more)
    return animation, model, loss, X, Y, made


def film(animation: TrainingAnimation) -> tuple[dict[str, Any], str]:
    """What the page's program reads, and its skeleton."""
    _, program, skeleton = parts(animation.page())
    (found,) = re.findall(r"^const film=(.*);$", program, re.MULTILINE)
    return json.loads(found), skeleton


@pytest.mark.parametrize("classes", [2, 3])
def test_the_regions_are_what_predict_says(classes: int) -> None:
    animation, model, _, X, _, _ = trained(classes)
    shown, _ = film(animation)
    assert [frame["count"] for frame in shown["frames"]] == [f"epoch {k} of 12" for k in range(13)]
    xs, ys = [x for x, _ in X], [y for _, y in X]
    wide, tall = max(xs) - min(xs), max(ys) - min(ys)
    left, top = min(xs) - 0.15 * wide, max(ys) + 0.15 * tall
    centres = [
        [left + 1.3 * wide * (i + 0.5) / CELLS, top - 1.3 * tall * (j + 0.5) / CELLS]
        for j in range(0, CELLS, 3)
        for i in range(0, CELLS, 3)
    ]
    for epoch in (0, 5, 12):
        for p, x in zip(model.parameters(), animation.parameters[epoch], strict=True):
            p.data = x
        cells = shown["frames"][epoch]["cells"]
        assert len(cells) == CELLS**2
        read = [cells[j * CELLS + i] for j in range(0, CELLS, 3) for i in range(0, CELLS, 3)]
        for letter, outputs in zip(read, predict(model, centres), strict=True):
            if classes == 3:
                first, second = sorted(outputs)[-1:-3:-1]
                assert first - second < 1e-9 or letter == "ABC"[outputs.index(first)]
            else:
                assert abs(outputs) < 1e-9 or letter == ("B" if outputs > 0 else "A")
    assert len({frame["cells"] for frame in shown["frames"]}) > 6, "it moves"


def test_the_gradients_are_those_of_backward() -> None:
    animation, model, loss, X, Y, history = trained(validation=([[0.0, 0.0]], [1]))
    for p in model.parameters():
        p.grad = 7.0
    before = [p.data for p in model.parameters()]
    shown, skeleton = film(animation)
    assert [p.data for p in model.parameters()] == before
    assert {p.grad for p in model.parameters()} == {7.0}
    for epoch in (0, 7, 12):
        for p, x in zip(model.parameters(), animation.parameters[epoch], strict=True):
            p.data, p.grad = x, 0.0
        wengert.mean([loss(model(x), y) for x, y in zip(X, Y, strict=True)]).backward()
        for k, layer in enumerate(model.layers):
            slopes = [p.grad for p in layer.parameters()]
            told = shown["frames"][epoch]["marks"][f"size{k}"]["text"]
            assert told == f"layers.{k} {sqrt(sum(g * g for g in slopes) / len(slopes)):.2g}"
        said = shown["frames"][epoch]["said"]
        if epoch:
            assert f"loss {history.loss[epoch - 1]:.4g}, validation loss {history.val_loss[epoch - 1]:.4g}" in said
            assert f"{100 * history.accuracy[epoch - 1]:.1f} %" in said
        else:
            assert said == "Before training"
    at = [float(shown["frames"][k]["marks"]["now"]["d"].split(",")[0][1:]) for k in (1, 12)]
    line = re.findall(r'class="line c1" d="M(.*?)"', skeleton)[0]
    heights = [float(y) for y in re.findall(r",([\d.]+)", line)]
    shares = [(heights[0] - y) / (history.loss[0] - x) for x, y in zip(history.loss[1:], heights[1:], strict=True)]
    assert shares == pytest.approx([shares[-1]] * 11, rel=0.05), "the heights are the losses"
    assert at == [46.0, 392.0]  # from the left end of the axis to the right


def test_of_a_long_run_as_many_epochs_are_kept_as_can_be_told_apart() -> None:
    model = MLP(2, [1], rng=random.Random(1))
    animation = TrainingAnimation(model, losses.mse, [[0.0, 1.0], [1.0, 0.0]], [0, 1])
    history = wengert.History()
    for epoch in range(1, 1000):
        history.loss.append(1.0 / epoch)
        model.parameters()[0].data = float(epoch)
        animation(history)
        assert len(animation.parameters) <= 121
        assert epoch in animation.parameters
    epochs = sorted(animation.parameters)
    assert epochs == [*range(0, 999, 16), 999]
    assert [animation.parameters[k][0] for k in epochs[1:]] == epochs[1:]
    assert film(animation)[0]["frames"][-1]["count"] == "epoch 999 of 999"


def test_refusals() -> None:
    model = MLP(2, [1])
    with pytest.raises(DataError, match="X is empty"):
        TrainingAnimation(model, losses.mse, [], [])
    with pytest.raises(LengthError, match="1 points but 2 classes"):
        TrainingAnimation(model, losses.mse, [[0.0, 0.0]], [0, 1])
    with pytest.raises(ArgumentError, match="has no parameters"):
        TrainingAnimation(lambda x: Value(x[0]), losses.mse, [[0.0, 0.0]], [1])
    animation = TrainingAnimation(model, losses.mse, [[0.0, 0.0], [1.0, 1.0]], [0, 1])
    assert animation._repr_html_() is None
    with pytest.raises(ArgumentError, match="pass it to fit, callback=animation"):
        animation.page()
    animation(wengert.History([1.0]))
    assert 'title="A training run"' in str(animation._repr_html_())


@pytest.mark.browser
def test_it_is_played_paused_and_dragged(browser: Any, tmp_path: Path) -> None:
    from selenium.webdriver import ActionChains
    from selenium.webdriver.common.keys import Keys

    animation, *_ = trained()
    animation.save(tmp_path / "run.html")
    shown, _ = film(animation)
    browser.get((tmp_path / "run.html").as_uri())
    unpacked(browser)

    def pixels() -> list[list[int]]:
        numbers = browser.execute_script("""
            const shown = document.querySelector("canvas"), copy = new OffscreenCanvas(shown.width, 1);
            const context = copy.getContext("2d", { willReadFrequently: true });
            context.drawImage(shown, 0, 0);
            return [...context.getImageData(0, 0, shown.width, 1).data];
        """)
        return [numbers[i : i + 3] for i in range(0, len(numbers), 4)]

    def right() -> None:
        frame = shown["frames"][browser.execute_script("return at")]
        assert find(browser, "#count").text == frame["count"]
        assert find(browser, "#said").text == frame["said"]
        assert find(browser, "#size1").text == frame["marks"]["size1"]["text"]
        colours = [shown["shades"][ord(letter) - 65][:3] for letter in frame["cells"][:CELLS]]
        pairs = zip(pixels(), colours, strict=True)
        assert all(abs(a - b) <= 3 for found, colour in pairs for a, b in zip(found, colour, strict=True))

    right()
    ActionChains(browser).send_keys(Keys.END).perform()
    right()
    assert find(browser, "#count").text == "epoch 12 of 12"
    ActionChains(browser).send_keys(Keys.ARROW_LEFT, Keys.ARROW_LEFT).perform()
    right()
    browser.execute_script("ui.at.value = 4; ui.at.oninput()")
    right()
    keep(browser, "training-run")
    find(browser, "#play").click()
    until(lambda: find(browser, "#play").text == "Play")
    assert find(browser, "#count").text == "epoch 12 of 12"
    right()
    calm = {"features": [{"name": "prefers-reduced-motion", "value": "reduce"}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", calm)
    try:
        assert browser.execute_script("return [delay(), (timer = 1, leaps())]") == [1200, True]
    finally:
        browser.execute_script("timer = 0")
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
