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


def test_a_run_that_goes_on_begins_where_it_began() -> None:
    X, Y = data.moons(20, seed=1, labels=(-1, 1))
    model = MLP(2, [3, 1], rng=random.Random(1))
    optimizer = optim.SGD(model, lr=0.05)
    history = fit(model, losses.hinge, X, Y, optimizer, 3, progress=False)
    animation = TrainingAnimation(model, losses.hinge, X, Y)
    before = [p.data for p in model.parameters()]
    for end in (5, 8):  # it can also be continued with the same animation
        fit(model, losses.hinge, X, Y, optimizer, end, progress=False, history=history, callback=animation)
        assert animation.parameters[3] == before
        frames = film(animation)[0]["frames"]
        assert [frame["count"] for frame in frames] == [f"epoch {k} of {end}" for k in range(3, end + 1)]
        assert frames[0]["said"] == "Before this run"
        assert frames[1]["said"].startswith(f"loss {history.loss[3]:.4g}")


def test_a_long_run_that_goes_on_keeps_its_first_epoch() -> None:
    model = MLP(2, [1], rng=random.Random(1))
    animation = TrainingAnimation(model, losses.mse, [[0.0, 1.0], [1.0, 0.0]], [0, 1])
    history = wengert.History([1.0] * 7)
    for _ in range(500):
        history.loss.append(1.0)
        animation(history)
    assert sorted(animation.parameters) == [*range(7, 507, 8), 507]


@pytest.mark.parametrize("epochs", [1, 4])
def test_it_records_one_run(epochs: int) -> None:
    animation, model, loss, X, Y, _ = trained(epochs=epochs)
    optimizer = optim.Adam(model, lr=0.05)
    with pytest.raises(ArgumentError, match="this animation has recorded another run: make a new one"):
        fit(model, loss, X, Y, optimizer, 6, progress=False, callback=animation)
    shown, _ = film(animation)
    assert [frame["count"] for frame in shown["frames"]] == [f"epoch {k} of {epochs}" for k in range(epochs + 1)]


def test_a_metric_that_is_no_fraction_is_no_percentage() -> None:
    X, Y = data.moons(20, seed=1, labels=(-1, 1))
    model = MLP(2, [1], rng=random.Random(1))
    animation = TrainingAnimation(model, losses.mse, X, Y)
    history = wengert.History([2.0, 1.0], [3.0, 0.5], [7.116, 0.5], [0.25, 0.75])
    animation(history)
    said = film(animation)[0]["frames"][-1]["said"]
    assert said == "loss 1, validation loss 0.5, accuracy 0.5, validation accuracy 75.0 %"


def test_negative_losses_are_below_zero() -> None:
    X, Y = [[0.0, 1.0], [1.0, 0.0]], [0, 1]
    for given, low, top in (
        ([-1.0, -2.0, -4.0], "-4", "0"),
        ([2.0, float("-inf"), -2.0], "-2", "2"),
        ([0.0, 0.0, 0.0], "0", "1"),
        ([float("nan")], "0", "1"),
    ):
        animation = TrainingAnimation(MLP(2, [1]), losses.mse, X, Y)
        history = wengert.History()
        for x in given:
            history.loss.append(x)
            animation(history)
        _, skeleton = film(animation)
        drawn = skeleton.partition("Loss in each epoch")[2].partition("</svg>")[0]
        assert re.findall(r'class="tick end".*?>(.*?)<', drawn)[:2] == [low, top]
        (line,) = re.findall(r'class="line c1" d="(.*?)"', drawn)
        heights = [float(y) for y in re.findall(r",([\d.]+)", line) if line != "M0,0"]
        finite = [x for x in given if abs(x) < float("inf")]
        assert len(heights) == len(finite)
        assert all((a > b) == (y < z) for a, b, y, z in zip(finite, finite[1:], heights, heights[1:], strict=False))
        assert all(26.0 <= y <= 170.0 for y in heights), "inside of the frame"


def test_it_has_the_style_of_what_it_shows() -> None:
    animation, *_ = trained(epochs=1)
    style, _, _ = parts(animation.page())
    assert ".panel .cursor" in style
    assert ".panel .wire" not in style


def test_refusals() -> None:
    model = MLP(2, [1])
    with pytest.raises(DataError, match="X is empty"):
        TrainingAnimation(model, losses.mse, [], [])
    with pytest.raises(LengthError, match="X has 1 point but Y has 2; expected as many of each"):
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
