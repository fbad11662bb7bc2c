"""The playground as visitors use it: it trains, every weight answers for itself, and the numbers are Python's."""

from __future__ import annotations

import math
import os
import random
import re
import runpy
import shutil
import statistics
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import requests, unpacked
from tests.docs.served import package, served
from tests.view.browsing import find, keep, until
from wengert import Value, diagnose, explain
from wengert.losses import binary_cross_entropy_with_logits, mse
from wengert.nn import MLP
from wengert.optim import Adam

pytestmark = [pytest.mark.browser, pytest.mark.once]  # the wheel runs interpreted, whatever the tests run on

AXE = "4.14.1"
ROOT = Path(__file__).resolve().parents[2]
HERE = ROOT / "docs" / "_static" / "playground"


def build(folder: Path, runtime: Path | None) -> None:
    """The page, by the theme, with what stands in `_static`; the other pages take longer, and are not needed.

    Python for browsers compiles what the page runs, if it is given; else it is not found.
    """
    settings = {
        "extensions": "myst_parser,playground",
        "playground_runtime": str(runtime or ""),
        "html_theme": "furo",
        "html_static_path": "_static",
        "root_doc": "playground",
        "include_patterns": "playground.md",
        "suppress_warnings": "myst.xref_missing",  # its links to the other pages
    }
    options = [f"-D{name}={value}" for name, value in settings.items()]
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "-C", *options]
    command += ["-d", f"{folder}.doctrees", "docs", str(folder)]
    known = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "docs" / "_ext"), *sys.path])}
    if not runtime:
        known["PATH"] = ""  # no npm, no Node
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=known)
    assert done.returncode == 0, done.stderr
    (folder / "favicon.ico").touch()  # which a browser asks for by itself


@pytest.fixture(scope="module")
def runtime(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Python for browsers, in the version that the page names."""
    (version,) = re.findall(r"/pyodide@(\d+\.\d+\.\d+)/", (HERE / "playground.html").read_text(encoding="utf-8"))
    return package("pyodide", version, tmp_path_factory.mktemp("npm") / "pyodide")


@pytest.fixture(scope="module")
def compiled(runtime: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page built, with all that it needs but the runtime: of the site, where that is built already."""
    folder = tmp_path_factory.mktemp("site")
    site = Path(os.environ.get("WENGERT_SITE", folder))
    if (site / "_static" / "playground" / "library.zip").exists():
        shutil.copy(site / "playground.html", folder)
        shutil.copytree(site / "_static", folder / "_static")
        (folder / "favicon.ico").touch()
    else:
        pytest.importorskip("furo", reason="needs furo: pip install '.[docs]'")
        build(folder, runtime)
    return folder


@pytest.fixture(scope="module")
def site(chromium: Any, compiled: Path, runtime: Path) -> Iterator[str]:
    """The page on the loopback, and beside it the runtime without Python's library, of which the page brings a part."""
    shutil.copytree(runtime, compiled / "runtime")
    with zipfile.ZipFile(compiled / "runtime" / "python_stdlib.zip", "w"):
        pass
    with served(compiled) as address:
        yield f"{address}playground.html"
        chromium.get("about:blank")


@pytest.fixture
def page(chromium: Any, site: str) -> Iterator[Any]:
    """The browser, of which the page complained of nothing and asked nobody but the loopback for anything."""
    for log in ("browser", "performance"):
        chromium.get_log(log)
    yield chromium
    assert [entry["message"] for entry in chromium.get_log("browser")] == []
    own = (site.rpartition("/")[0], "data:", "blob:", "about:")
    assert [url for url in requests(chromium) if not url.startswith(own)] == []


def show(page: Any, site: str, setting: str = "data=moons", fresh: bool = False) -> None:
    """Bring the page to the setting of an address: anew, or where it is open already, as a link on it does."""
    begun = "return globalThis.playground?.state?.().begun ?? 0"  # an element of that name comes before the program
    before = page.execute_script(begun)
    opened = fresh or not before
    if opened:
        before = 0
        page.get("about:blank")
        page.get(f"{site}?runtime=runtime/#{setting}")
    else:
        page.execute_script("history.replaceState(null, '', '#'); location.hash = arguments[0]", setting)
    until(lambda: page.execute_script(begun) > before, 60)  # Python starts
    page.execute_script("document.getElementById('pg').scrollIntoView({behavior: 'instant'})")
    if opened and find(page, "#pg-play").is_enabled():
        until(lambda: text(page, "status").startswith("Ready"))
        assert state(page)["losses"] == [], "nothing is trained before the reader wants it"
        find(page, "#pg-play").click()


def state(page: Any) -> Any:
    return page.execute_script("return playground.state()")


def pause(page: Any) -> Any:
    """Stop it, and give what it has come to."""
    if find(page, "#pg-play").text == "Pause":
        find(page, "#pg-play").click()
    before, seen = -1, state(page)
    while len(seen["losses"]) != before:  # a step may be under way
        before = len(seen["losses"])
        page.execute_async_script("setTimeout(arguments[0], 120)")
        seen = state(page)
    return seen


def near(page: Any, selector: str) -> Any:
    """A part of the page, in the middle of the window: the site scrolls smoothly, and a click does not wait."""
    script = "arguments[0].scrollIntoView({behavior: 'instant', block: 'center'})"
    page.execute_script(script, find(page, selector))
    return find(page, selector)


def text(page: Any, part: str) -> str:
    return str(page.execute_script(f"return document.getElementById('pg-{part}').textContent"))


def picture(page: Any) -> str:
    """The plane as it is drawn."""
    page.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")
    return str(page.execute_script("return document.getElementById('pg-plane').toDataURL()"))


def twin(seen: Any) -> MLP:
    """The network that the page shows, in this Python."""
    about = seen["setting"]
    model = MLP(
        len(about["inputs"]), [*about["layers"], 1], activation=about["activation"], rng=random.Random(about["seed"])
    )
    assert [name for name, _ in model.named_parameters()] == seen["names"]
    model.load_state_dict(dict(zip(seen["names"], seen["numbers"], strict=False)))
    return model


def program() -> dict[str, Any]:
    """What the worker runs, run here."""
    return runpy.run_path(str(HERE / "playground.py"))


def examples(kind: str) -> tuple[list[list[float]], list[int]]:
    given: Any = program()["examples"](kind)
    return given


def loss_of(model: MLP, x: list[float], y: int) -> Value:
    logit = model([Value(x[0], "x1"), Value(x[1], "x2")])
    logit.label = "logit"
    loss = binary_cross_entropy_with_logits(logit, y)
    loss.label = "loss"
    return loss


# -- training ---------------------------------------------------------------------------------------------------------


def test_it_trains_once_it_is_told_to_and_the_boundary_follows(page: Any, site: str, record_property: Any) -> None:
    show(page, site, fresh=True)
    first = state(page)["names"]
    before = picture(page)
    until(lambda: len(state(page)["losses"]) > 60)
    script = "return performance.getEntriesByName('wengert-first-step')[0].startTime"
    record_property("milliseconds to the first step", page.execute_script(script))
    seen = pause(page)
    assert len(first) == 67 == len(seen["names"])
    assert seen["losses"][-1] < 0.3 * seen["losses"][0]
    assert picture(page) != before
    told = rf"step {len(seen['losses'])} · loss [\d.e−]+ · \d\d of 60 right · 67 parameters"
    assert re.fullmatch(told, text(page, "count"))
    assert page.execute_script("return document.querySelector('#pg-loss .curve').getAttribute('d').length") > 200
    find(page, "#pg-reset").click()
    until(lambda: state(page)["losses"] == [])
    model = MLP(2, [6, 6, 1], activation="tanh", rng=random.Random(1))
    assert state(page)["numbers"][:67] == [p.data for p in model.parameters()]
    find(page, "#pg-step").click()
    until(lambda: len(state(page)["losses"]) == 1)
    assert len(pause(page)["losses"]) == 1


@pytest.mark.parametrize("activation", ["tanh", "relu", "sigmoid", "linear"])
def test_the_boundary_is_that_of_the_network(page: Any, site: str, activation: str) -> None:
    show(page, site, f"data=circles&layers=5,3&activation={activation}&seed=7")
    until(lambda: len(state(page)["losses"]) > 5)
    model = twin(pause(page))
    for point in ([0.3, -1.2], [-1.7, 1.7], [0.0, 0.0], [1e-3, 0.9]):
        assert page.execute_script("return playground.at(...arguments[0])", point)[-1] == pytest.approx(
            model(point).data, rel=1e-12
        )


# -- answering --------------------------------------------------------------------------------------------------------


def test_a_click_on_a_weight_explains_it_as_python_does(page: Any, site: str) -> None:
    from selenium.webdriver import ActionChains

    show(page, site)
    until(lambda: len(state(page)["losses"]) > 20)
    plane = find(page, "#pg-plane")
    ActionChains(page).move_to_element_with_offset(plane, 60, -40).perform()
    seen = pause(page)
    X, Y = examples("moons")
    side = plane.size["width"]
    point = [1.85 * 2 * 60 / side, 1.85 * 2 * 40 / side]
    assert seen["example"] == min(range(60), key=lambda i: math.dist(X[i], point))
    middle = """
        const edge = document.querySelector(`[aria-label="${arguments[0]}"]`);
        const box = edge.ownerSVGElement.getBoundingClientRect();
        const { x, y } = edge.getPointAtLength(edge.getTotalLength() * 0.08);
        return [x - box.width / 2, y - box.height / 2];
    """
    name = "layers.1.neurons.5.w.0"
    offset = page.execute_script(middle, name)
    ActionChains(page).move_to_element_with_offset(near(page, "#pg-net svg"), *map(round, offset)).click().perform()
    until(lambda: text(page, "explained"))
    model = twin(seen)
    loss = loss_of(model, X[seen["example"]], Y[seen["example"]])
    told = explain(dict(model.named_parameters())[name], loss)
    head, _, said = text(page, "explained").partition("\n")
    assert said == str(told)
    assert head == f"Example {seen['example'] + 1}, after {len(seen['losses'])} steps."
    assert text(page, "weight").startswith(f"{name} = ")
    page.switch_to.frame(find(page, "#pg-steps"))
    unpacked(page)
    assert f"grad of {name} = " in find(page, "#said").text
    assert f" over {name}: " in find(page, "#against svg").get_attribute("aria-label")
    page.switch_to.default_content()


def test_the_weights_are_reached_and_explained_by_keyboard(page: Any, site: str) -> None:
    from selenium.webdriver import ActionChains
    from selenium.webdriver.common.keys import Keys

    show(page, site, "data=xor&layers=3&activation=tanh")
    pause(page)

    def press(*keys: str) -> str:
        ActionChains(page).send_keys(*keys).perform()
        return str(page.execute_script("return document.activeElement.getAttribute('aria-label')"))

    page.execute_script("document.querySelector('[name=pg-edges]').focus()")
    assert press(Keys.TAB) == "layers.0.neurons.0.w.0"
    assert press(Keys.ARROW_DOWN) == "layers.0.neurons.0.w.1"
    assert press(Keys.ARROW_DOWN) == "layers.0.neurons.0.b"
    assert press(Keys.ARROW_RIGHT).startswith("layers.1.neurons.0.")
    assert press(Keys.ARROW_LEFT, Keys.ARROW_UP).startswith("layers.0.neurons.0.")
    name = press(Keys.ENTER)
    until(lambda: text(page, "explained"))
    assert f"The derivative of loss with respect to {name} is " in text(page, "explained")
    page.execute_script("document.getElementById('pg-plane').focus()")
    before = state(page)["example"]
    press(Keys.ARROW_RIGHT)
    assert state(page)["example"] == before + 1


def test_dead_neurons_are_marked_and_diagnosed_as_python_does(page: Any, site: str) -> None:
    show(page, site, "data=xor&activation=relu&optimizer=sgd&rate=10&layers=4,4")
    until(lambda: "dead" in text(page, "marks") and len(state(page)["losses"]) > 8)
    seen = pause(page)
    X, Y = examples("xor")
    hidden = [[out for count in (1, 2) for out in outputs(twin(seen), x, count)] for x in X]
    dead = sum(max(column) <= 0.0 for column in zip(*hidden, strict=True))
    assert text(page, "marks").startswith(f"{dead} of 8 hidden neurons ")
    assert len(page.find_elements("css selector", "#pg-net .flat")) == dead
    again = program()["Playground"]("classification", [4, 4], "relu", "sgd", 10.0, 1, ["x1", "x2"], 0, 0.0, X, Y)
    for _ in seen["losses"]:
        again.step()
    until(lambda: text(page, "diagnosis") == repr(diagnose(again.model, again.loss, again.losses)))
    assert "dead ReLU" in text(page, "diagnosis")


def test_a_loss_that_is_no_number_ends_it_and_is_diagnosed(page: Any, site: str) -> None:
    show(page, site, "data=moons&activation=linear&optimizer=sgd&rate=10&layers=8,8,8,8&speed=0")
    until(lambda: "learning rate too high" in text(page, "diagnosis") and not state(page)["playing"])
    assert "loss nan · 0 of 60 right" in text(page, "count")
    assert text(page, "example").endswith("The network says nan.")


def outputs(model: MLP, x: Any, layers: int) -> list[float]:
    for layer in model.layers[:layers]:
        x = layer(x)
    return [value.data for value in x]


def test_gradients_flow_back_where_there_are_any(page: Any, site: str) -> None:
    from selenium.webdriver.common.keys import Keys

    def moving() -> dict[str, bool]:
        script = """
            const edges = [...document.querySelectorAll("#pg-net .edge")];
            return edges.map((e) => [e.getAttribute("aria-label"), getComputedStyle(e).animationName === "pg-flow"]);
        """
        picture(page)
        return dict(page.execute_script(script))

    show(page, site, "data=own&points=1,0.5,1&activation=relu&rate=0.001&layers=6")
    until(lambda: len(state(page)["losses"]) > 2)
    seen = pause(page)
    assert not any(moving().values())
    find(page, "[name=pg-edges][value=weight]").send_keys(Keys.ARROW_RIGHT)
    gradients = dict(zip(seen["names"], seen["numbers"][len(seen["names"]) :], strict=True))
    weights = {name: gradient for name, gradient in gradients.items() if ".w." in name}
    assert moving() == {name: gradient != 0.0 for name, gradient in weights.items()}
    assert any(weights.values())
    assert not all(weights.values())  # none through a neuron that the example leaves at 0
    assert text(page, "key").endswith("Gradients flow back from the loss.")
    page.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-reduced-motion", "value": "reduce"}]}
    )
    assert not any(moving().values())
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    find(page, "[name=pg-edges][value=weight]").click()
    assert not any(moving().values())


def test_what_is_held_out_is_measured_and_more_inputs_are_read(page: Any, site: str) -> None:
    """Against this Python: the loss on the held-out points, with squares and sines as inputs, batches and a penalty."""
    wish = "data=circles&count=20&noise=0.3&layers=3&inputs=x1,x1²,sin 3x2&batch=10&penalty=0.01"
    show(page, site, wish)
    until(lambda: len(state(page)["losses"]) > 12)
    seen = pause(page)
    assert seen["setting"]["inputs"] == ["x1", "x1²", "sin 3x2"]
    model, playground = twin(seen), program()

    def read(point: list[float]) -> list[float]:
        return [playground["INPUTS"][name](*point) for name in seen["setting"]["inputs"]]

    X, Y = playground["examples"]("circles", 20, 0.3, 1)
    losses = [binary_cross_entropy_with_logits(model(read(x)), y).data for x, y in zip(X, Y, strict=True)]
    step, loss = seen["tested"][-1]
    assert step == len(seen["losses"])
    assert loss == pytest.approx(sum(losses) / 20, rel=1e-9)
    right = sum((model(read(x)).data > 0) == bool(y) for x, y in zip(X, Y, strict=True))
    assert text(page, "held").endswith(f"{right} of 20 right.")
    assert page.execute_script("return document.querySelector('#pg-loss .tested').getAttribute('d').length") > 20
    inputs, examples = seen["setting"]["inputs"], playground["examples"]("circles", 20, 0.3, 0)
    again = playground["Playground"]("classification", [3], "tanh", "adam", 0.03, 1, inputs, 10, 0.01, *examples)
    assert seen["losses"] == pytest.approx([again.step() for _ in seen["losses"]], rel=1e-9)
    before = picture(page)
    near(page, "#pg-tests").click()
    assert picture(page) != before
    near(page, "#pg-tests").click()


@pytest.mark.parametrize("kind", ["plane", "gaussians"])
def test_the_targets_of_regression(kind: str) -> None:
    """Numbers from -1 to 1 over the square, by the formula; the noise is on them, and not on the points."""
    X, Y = program()["examples"](kind, 240, 0.0, 3)
    hills = {(-1.1, 0.7): 1, (0.0, 0.7): -1, (1.1, 0.7): 1, (-1.1, -0.7): -1, (0.0, -0.7): 1, (1.1, -0.7): -1}
    for (x1, x2), y in zip(X, Y, strict=True):
        assert max(abs(x1), abs(x2)) <= 1.5
        far = {top: math.dist(top, (x1, x2)) for top in hills}
        wanted = (x1 + x2) / 3 if kind == "plane" else sum(hills[top] * math.exp(-5 * far[top] ** 2) for top in hills)
        assert y == pytest.approx(wanted, abs=0.0051)
    assert min(Y) < -0.8 < 0.8 < max(Y)
    X_noisy, Y_noisy = program()["examples"](kind, 240, 0.3, 3)
    assert X_noisy == X
    errors = [y - w for y, w in zip(Y_noisy, Y, strict=True)]
    assert statistics.pstdev(errors) > 0.2


def test_regression_trains_by_the_mean_squared_error_and_without_a_sigmoid(page: Any, site: str) -> None:
    show(page, site, "data=gaussians&count=60&layers=5&batch=30&speed=0&seed=4")
    until(lambda: len(state(page)["losses"]) > 150)
    seen = pause(page)
    playground = program()
    X, Y = playground["examples"]("gaussians", 60, 0.1, 0)
    again = MLP(2, [5, 1], activation="tanh", rng=random.Random(4))
    optimizer, order = Adam(again, lr=0.03), random.Random(4)
    left: list[int] = []
    for told in seen["losses"][:60]:  # a loop of one's own
        if not left:
            left = order.sample(range(60), 60)
        places, left = left[:30], left[30:]
        loss = sum((again(X[i]) - Y[i]) ** 2 for i in places) / 30
        assert told == pytest.approx(loss.data, rel=1e-6)
        again.zero_grad()
        loss.backward()
        optimizer.step()
    assert sum(seen["losses"][-10:]) < 0.7 * sum(seen["losses"][:10])
    model = twin(seen)
    held = [(model(x).data - y) ** 2 for x, y in zip(*playground["examples"]("gaussians", 60, 0.1, 1), strict=True)]
    assert seen["tested"][-1] == [len(seen["losses"]), pytest.approx(sum(held) / 60, rel=1e-9)]
    assert re.fullmatch(r"Held out \(dashed\): loss [\d.e−]+\.", text(page, "held"))
    assert re.fullmatch(r"step \d+ · loss [\d.e−]+ · 21 parameters", text(page, "count"))
    said = re.fullmatch(r".*, y = (.*)\. The network says (.*)\.", text(page, "example"))
    assert said
    target, output = (float(part.replace("−", "-")) for part in said.groups())
    assert target == Y[seen["example"]]
    assert output == pytest.approx(model(X[seen["example"]]).data, rel=1e-3)
    assert find(page, ".pg-scale").text.split() == ["−1", "1"]
    before = picture(page)
    near(page, "#pg-tests").click()
    assert picture(page) != before
    near(page, "#pg-tests").click()
    page.execute_script("document.querySelector('#pg-net .neuron[role]').focus()")
    page.switch_to.active_element.send_keys("\ue007")  # Enter
    until(lambda: text(page, "explained"))
    values = [Value(x, f"x{i}") for i, x in enumerate(X[seen["example"]], 1)]
    output = model(values)
    output.label = "output"
    loss = mse(output, Y[seen["example"]])
    loss.label = "loss"
    parameter = dict(model.named_parameters())["layers.0.neurons.0.b"]
    assert text(page, "explained").partition("\n")[2] == str(explain(parameter, loss))
    show(page, site, "data=moons")
    until(lambda: len(state(page)["losses"]) > 1)
    pause(page)
    assert "of 60 right" in text(page, "count")
    assert find(page, ".pg-scale").text.split() == ["certainly", "orange", "certainly", "blue"]


@pytest.mark.parametrize(
    ("loss", "target", "wanted"),
    [
        ("regression", 0.25, lambda z: (z - 0.25) ** 2),
        ("classification", 0, lambda z: math.log(1 + math.exp(z))),
        ("classification", 1, lambda z: math.log(1 + math.exp(-z))),
    ],
)
def test_the_loss_in_the_page_is_that_of_the_engine(
    page: Any, site: str, loss: str, target: float, wanted: Any
) -> None:
    show(page, site)
    pause(page)
    made = program()["Playground"](loss, [2], "tanh", "sgd", 0.1, 1, ["x1"], 0, 0.0, [[0.0, 0.0]], [target])
    script = "const out = [0]; new Function(arguments[0])()(arguments[1], arguments[2], out); return out[0]"
    for z in (-3.0, -0.5, 0.0, 0.7, 12.0):
        assert page.execute_script(script, made.measure(), z, target) == pytest.approx(wanted(z), rel=1e-12)


def test_the_spiral_winds_one_and_three_quarter_times() -> None:
    X, Y = program()["examples"]("spiral", 120, 0.0)
    arm = [math.atan2(x, y) for (x, y), label in zip(X, Y, strict=True) if label == 0]
    turned = sum((b - a + math.pi) % (2 * math.pi) - math.pi for a, b in pairwise(arm))
    assert turned / (2 * math.pi) == pytest.approx(1.75)
    assert len(X) == 120
    assert max(abs(coordinate) for point in X for coordinate in point) < 1.85


def test_a_weight_is_changed_by_hand_and_its_steps_are_a_click_away(page: Any, site: str) -> None:
    from selenium.webdriver.common.keys import Keys

    show(page, site, "data=moons&layers=2")
    until(lambda: len(state(page)["losses"]) > 5)
    pause(page)
    page.execute_script("document.querySelector('#pg-net .neuron[role]').focus()")
    until(lambda: find(page, "#pg-large").is_displayed())
    script = """
        const large = document.getElementById("pg-large"), to = large.getContext("2d"), side = large.width;
        const { data } = to.getImageData(0, 0, side, side), at = (x) => 4 * Math.round(x * side) * (side + 1);
        return [0.1, 0.9].map((x) => [...data.slice(at(x), at(x) + 4)]);
    """
    corners = page.execute_script(script)
    first = twin(state(page)).layers[0].neurons[0]
    ends = [first([x1, -x1]).data for x1 in (-1.48, 1.48)]
    for (red, _, blue, _), end in zip(corners, ends, strict=True):
        assert (red > blue) == (end < 0), "the neuron that is looked at, large: orange where it is negative"
    page.switch_to.active_element.send_keys(Keys.ENTER)
    until(lambda: text(page, "explained"))
    name = text(page, "value-name")
    assert name == "layers.0.neurons.0.b"
    field = near(page, "#pg-value")
    field.click()
    field.send_keys(Keys.CONTROL + "a")
    field.send_keys("1.25", Keys.ENTER)
    until(lambda: dict(zip(state(page)["names"], state(page)["numbers"], strict=False))[name] == 1.25)
    near(page, "#pg-to-steps").click()
    top = "return document.getElementById('pg-steps').getBoundingClientRect().top"
    until(lambda: page.execute_script(top) < 200)
    inner = find(page, "#pg-steps")
    until(lambda: page.execute_script("return arguments[0].clientHeight", inner) != 840)
    page.switch_to.frame(inner)
    assert page.execute_script("const e = document.scrollingElement; return e.scrollHeight - e.clientHeight") <= 0
    page.switch_to.default_content()


def test_a_click_after_a_neuron_s_moves_nothing_away_and_its_steps_are_announced(page: Any, site: str) -> None:
    """The large picture of the neuron goes when another control is pressed: the button stays where the pointer is."""
    from selenium.webdriver import ActionChains

    metrics = {"width": 1366, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        show(page, site, "data=moons&layers=6,6", fresh=True)
        until(lambda: len(state(page)["losses"]) > 5)
        pause(page)
        assert find(page, "#pg-hint").get_attribute("role") == "status"
        page.execute_script("scrollTo({top: 0, behavior: 'instant'})")
        controls = page.find_elements("css selector", ".pg-setting > :is(label, fieldset):not(#pg-inputs > *)")
        assert len(controls) == 9
        assert max(e.rect["y"] for e in controls) - min(e.rect["y"] for e in controls) < 2, "they are in one row"
        row = [e.rect for e in page.find_elements("css selector", ".pg-bar:first-of-type > :is(button, label)")][:5]
        assert max(r["y"] for r in row) - min(r["y"] for r in row) < 2, "the speed is in that of Play"
        page.execute_script("document.getElementById('pg').scrollIntoView({behavior: 'instant'})")
        ActionChains(page).click(find(page, "#pg-net .neuron[role]")).perform()
        until(lambda: text(page, "explained"))
        assert find(page, "#pg-large").is_displayed()
        assert "Why layers.0.neurons.0.b has its gradient for example 1 is said below" in text(page, "hint")
        assert find(page, "#pg-to-steps").rect["y"] + 36 < page.execute_script("return scrollY + innerHeight")
        ActionChains(page).click(find(page, "#pg-to-steps")).perform()
        top = "return document.getElementById('pg-steps').getBoundingClientRect().top"
        until(lambda: page.execute_script(top) < 200)
        assert page.execute_script("return document.activeElement.id") == "pg-steps"
    finally:
        page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_a_healthy_network_is_called_so(page: Any, site: str) -> None:
    show(page, site, "data=circles&layers=6")
    until(lambda: (state(page)["losses"] or [9])[-1] < 0.3)
    pause(page)
    until(lambda: text(page, "diagnosis") == "Healthy: the loss falls, and no neuron is dead or saturated.")


# -- setting ----------------------------------------------------------------------------------------------------------


def test_points_of_ones_own_by_clicks_and_by_keys(page: Any, site: str) -> None:
    from selenium.webdriver import ActionChains
    from selenium.webdriver.common.keys import Keys

    show(page, site, "data=own&layers=3")
    plane = find(page, "#pg-plane")
    assert not find(page, "#pg-play").is_enabled()
    for label, offsets in (("1", [(-90, -90), (-60, -40)]), ("0", [(80, 70), (90, 20)])):
        near(page, f"[name=pg-class][value='{label}']").click()
        for x, y in offsets:
            ActionChains(page).move_to_element_with_offset(near(page, "#pg-plane"), x, y).click().perform()
    plane.send_keys(Keys.ARROW_RIGHT, Keys.ARROW_UP, Keys.ENTER)
    points = state(page)["setting"]["points"]
    assert [label for *_, label in points] == [1, 1, 0, 0, 0]
    scale = 3.7 / plane.size["width"]
    assert points[0] == [pytest.approx(-90 * scale, abs=0.02), pytest.approx(90 * scale, abs=0.02), 1]
    assert points[-1] == [0.1, 0.1, 0]
    near(page, "#pg-undo").click()
    near(page, "#pg-play").click()
    until(lambda: (state(page)["losses"] or [9])[-1] < 0.1)
    assert "4 of 4 right" in text(page, "count")
    pause(page)
    show(page, site, page.current_url.partition("#")[2], fresh=True)
    assert state(page)["setting"]["points"] == points[:-1]
    near(page, "#pg-clear").click()
    assert state(page)["setting"]["points"] == []


def test_the_address_keeps_the_setting(page: Any, site: str) -> None:
    from selenium.webdriver.support.ui import Select

    show(page, site)
    wishes = {"data": "spiral", "activation": "relu", "rate": "0.1", "optimizer": "sgd", "speed": "500"}
    wishes |= {"count": "120", "noise": "0.2", "batch": "10", "penalty": "0.01"}
    for name, value in wishes.items():
        Select(find(page, "#pg-count-of" if name == "count" else f"#pg-{name}")).select_by_value(value)
    find(page, "#pg-inputs [value='sin 3x1']").click()
    find(page, "#pg-inputs [value=x2]").click()
    find(page, "#pg-more").click()
    Select(find(page, "#pg-layers select:last-child")).select_by_value("2")
    find(page, "[name=pg-edges][value=gradient]").click()
    find(page, "#pg-new").click()
    wanted = state(page)["setting"]
    more = {"layers": [6, 6, 2], "inputs": ["x1", "sin 3x1"], "edges": "gradient", "seed": 2, "points": []}
    assert wanted == wishes | more
    show(page, site, page.current_url.partition("#")[2], fresh=True)
    assert state(page)["setting"] == wanted
    assert Select(find(page, "#pg-data")).first_selected_option.text == "spiral"
    until(lambda: len(state(page)["losses"]) > 0)
    assert [p for p, _ in twin(pause(page)).named_parameters()] == state(page)["names"]
    page.execute_script("location.hash = '#data=nonsense&layers=0,99&rate=x&points=1,2;;a'")  # of somebody's making
    until(lambda: state(page)["setting"]["data"] == "moons")
    assert state(page)["setting"]["layers"] == [6, 6]
    assert state(page)["setting"]["points"] == []


# -- looks ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    return (package("axe-core", AXE, tmp_path_factory.mktemp("npm") / "axe") / "axe.min.js").read_text(encoding="utf-8")


@pytest.mark.parametrize("width", [pytest.param(1280, marks=pytest.mark.nightly), 390])
def test_it_fits_and_can_be_read_at_both_widths_in_light_and_dark(page: Any, site: str, axe: str, width: int) -> None:
    metrics = {"width": width, "height": 860, "deviceScaleFactor": 1, "mobile": width < 500}
    page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        show(page, site, "data=circles&speed=0", fresh=True)
        until(lambda: len(state(page)["losses"]) > 100)
        pause(page)
        page.execute_script("document.querySelector('#pg-net .neuron[role]').focus()")
        page.switch_to.active_element.send_keys("\ue007")  # Enter
        until(lambda: text(page, "explained"))
        assert page.execute_script("return document.documentElement.scrollWidth") == width
        if width < 500:
            small = """
                const controls = ".pg button, .pg select, .pg label:has(input), .pg-try";
                return [...document.querySelectorAll(controls)].filter((e) => e.checkVisibility()
                  && e.getBoundingClientRect().height < 44).map((e) => e.outerHTML)
            """
            assert page.execute_script(small) == []
        papers, frames = set(), set()
        for theme in ("light", "dark"):
            page.execute_script("document.body.dataset.theme = arguments[0]", theme)
            picture(page)
            paper = "return getComputedStyle(document.querySelector('.pg pre')).backgroundColor"
            papers.add(page.execute_script(paper))
            page.switch_to.frame(find(page, "#pg-steps"))
            frames.add(page.execute_script("return getComputedStyle(document.body).backgroundColor"))
            page.switch_to.default_content()
            keep(page, f"playground-{width}-{theme}")
            page.execute_script(axe)
            audit = "const [done] = arguments; axe.run('.pg', {iframes: false}).then((found) => done(found.violations))"
            found = page.execute_async_script(audit)
            grave = [rule for rule in found if rule["impact"] in ("serious", "critical")]
            assert {rule["id"]: [node["html"][:200] for node in rule["nodes"]] for rule in grave} == {}, theme
        assert len(papers) == len(frames) == 2
    finally:
        page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


# -- loading ----------------------------------------------------------------------------------------------------------


def test_what_it_runs_is_compiled(compiled: Path) -> None:
    files = {}
    for name in ("program", "library"):
        with zipfile.ZipFile(compiled / "_static" / "playground" / f"{name}.zip") as archive:
            files |= {inner: archive.read(inner) for inner in archive.namelist()}
    assert {"playground.pyc", "wengert/__init__.pyc", "wengert/engine.pyc", "typing.pyc", "pyodide/code.pyc"} < set(
        files
    )
    assert [name for name in files if name.endswith(".py")] == []
    heads = {content[:8] for name, content in files.items() if name.endswith(".pyc")}
    (head,) = heads  # of one version of Python, and without a source to compare with
    assert head[2:] == b"\r\n\x01\0\0\0"


def test_what_nobody_thought_of_comes_after_the_first_step(
    chromium: Any, compiled: Path, runtime: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "site"
    shutil.copytree(compiled, folder, ignore=shutil.ignore_patterns("runtime"))
    shutil.copytree(runtime, folder / "runtime")
    library = folder / "_static" / "playground" / "library.zip"
    with zipfile.ZipFile(library) as old, zipfile.ZipFile(tmp_path / "new.zip", "w") as new:
        for name in old.namelist():
            if name != "base64.pyc":  # which the page of steps is made with
                new.writestr(name, old.read(name))
    assert len(new.namelist()) == len(old.namelist()) - 1
    shutil.move(tmp_path / "new.zip", library)
    with served(folder) as address:
        explained(chromium, f"{address}playground.html")


def test_without_what_is_compiled_it_starts_all_the_same(chromium: Any, runtime: Path, tmp_path: Path) -> None:
    pytest.importorskip("furo", reason="needs furo: pip install '.[docs]'")
    build(tmp_path / "site", None)
    built = tmp_path / "site" / "_static" / "playground"
    assert not (built / "library.zip").exists()
    with zipfile.ZipFile(built / "program.zip") as program:
        assert "wengert/engine.py" in program.namelist()
    shutil.copytree(runtime, tmp_path / "site" / "runtime")
    with served(tmp_path / "site") as address:
        explained(chromium, f"{address}playground.html")


def explained(page: Any, site: str) -> None:
    """Open a page of which a weight can be explained once it has trained; and forget what it complained of."""
    show(page, site, fresh=True)
    until(lambda: len(state(page)["losses"]) > 20, 60)
    page.execute_script("document.querySelector('#pg-net .neuron[role]').focus()")
    page.switch_to.active_element.send_keys("\ue007")  # Enter
    until(lambda: "The derivative of loss with respect to layers.0.neurons.0.b" in text(page, "explained"), 60)
    page.get("about:blank")
    for log in ("browser", "performance"):
        page.get_log(log)


def test_what_cannot_be_loaded_is_said(chromium: Any, site: str) -> None:
    chromium.get(f"{site}?runtime=nowhere/")
    until(lambda: "The playground cannot go on" in find(chromium, "#pg-status").text)
    assert not find(chromium, "#pg-play").is_enabled()
    for log in ("browser", "performance"):
        chromium.get_log(log)
