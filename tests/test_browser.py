"""The stepper's page in a real browser: Chromium, headless, one process for all tests.

What the page shows is compared with Python's numbers and sentences. WENGERT_SCREENSHOTS names a folder in which the
pictures are to be kept.
"""

from __future__ import annotations

import html
import json
import math
import os
import random
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import wengert
from wengert import Value, ops, steps
from wengert.view import naming

pytestmark = pytest.mark.browser

SIZE = (1280, 860)


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """The browser; it reports every request that it makes."""
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    browser = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if not browser or not driver:
        pytest.skip("needs Chromium and its driver: apt-get install chromium chromium-driver")
    options = webdriver.ChromeOptions()
    options.binary_location = browser
    for argument in ("headless=new", "no-sandbox", "disable-dev-shm-usage", "disable-gpu", "hide-scrollbars"):
        options.add_argument(f"--{argument}")
    options.add_argument(f"--window-size={SIZE[0]},{SIZE[1]}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    chrome = webdriver.Chrome(options=options, service=Service(driver))
    yield chrome
    chrome.quit()


@pytest.fixture
def browser(chromium: Any) -> Iterator[Any]:
    """The browser, of which the test's pages complained of nothing and asked for nothing but themselves."""
    for log in ("browser", "performance"):
        chromium.get_log(log)
    yield chromium
    assert [entry["message"] for entry in chromium.get_log("browser")] == []
    asked = requests(chromium)
    assert [url for url in asked if not url.startswith(("file:///", "data:", "about:"))] == []
    assert len([url for url in asked if url.startswith("file:///")]) <= 12  # the pages themselves


def requests(browser: Any) -> list[str]:
    """What the browser has asked for since it was last looked at, and was not refused by the page's policy."""
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    refused = {
        m["params"]["requestId"]
        for m in messages
        if m["method"] == "Network.loadingFailed" and m["params"].get("blockedReason") == "csp"
    }
    sent = [m["params"] for m in messages if m["method"] == "Network.requestWillBeSent"]
    return [request["request"]["url"] for request in sent if request["requestId"] not in refused]


@pytest.fixture
def shown(browser: Any, tmp_path: Path) -> Callable[..., Any]:
    """Write the page of a result to a file and open that, at a position."""

    def show(root: Value, position: int = 0) -> Any:
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.html"
        steps(root).save(path)
        browser.get(f"{path.as_uri()}#{position}")
        return browser

    return show


def keep(browser: Any, name: str) -> bytes:
    """A screenshot; of more than one colour, or nothing was drawn."""
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


def go(browser: Any, position: int) -> None:
    browser.execute_script("go(arguments[0])", position)


def said(browser: Any) -> str:
    """The sentences of the step that is shown."""
    script = "return [...document.querySelectorAll('#said p')].map((p) => p.textContent).join('; ')"
    return str(browser.execute_script(script))


def until(condition: Callable[[], Any]) -> None:
    end = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < end, "it did not come about in 20 s"
        time.sleep(0.02)


def neuron() -> Value:
    """The tutorial's neuron."""
    x1, x2, w1, w2 = Value(2.0, "x1"), Value(0.0, "x2"), Value(-3.0, "w1"), Value(1.0, "w2")
    n = x1 * w1 + x2 * w2 + Value(6.8813735870195432, "b")
    n.label = "n"
    o = n.tanh()
    o.label = "o"
    return o


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
        leaves += operands
        terms.append(row(*operands))
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


# -- the numbers and the words are Python's ---------------------------------------------------------------------------


@pytest.mark.parametrize("root", [neuron, twice, network, lambda: every_operation()[0]])
def test_every_step_says_and_shows_what_python_says(shown: Any, root: Callable[[], Value]) -> None:
    result = root()
    sequence = steps(result)
    page = shown(result)
    script = """
        const all = [];
        for (let k = 1; k <= end; k++) {
          go(k);
          all.push([...document.querySelectorAll("#said p")].map((p) => p.textContent).join("; "));
        }
        return all;
    """
    assert page.execute_script(script) == [step.sentence for step in sequence]
    result.backward()
    graph = wengert.Graph(result)
    expected = [(value.data, value.grad) for value in graph.values]
    assert [repr(pair) for pair in numbers(page)] == [repr(pair) for pair in expected]  # nan as nan, -0.0 as -0.0


def test_nan_infinity_and_sizes_are_written_as_python_writes_them(shown: Any) -> None:
    x, big = Value(-1.0, "x"), Value(1e308, "big")
    result = x.log() + big * 10.0 + Value(math.nan, "nan") * 0.0 + Value(-math.inf, "inf")
    sequence = steps(result)
    page = shown(result)
    for step in sequence:
        go(page, step.number + 1)
        assert said(page) == step.sentence
    assert repr(numbers(page)) == repr(list(zip(sequence.data, sequence.gradients, strict=True)))
    chance = random.Random(3)
    sizes = [chance.uniform(-1, 1) * 10.0 ** chance.uniform(-12, 12) for _ in range(500)]
    sizes += [0.0, -0.0, 2.0625, 9999.5, 99995.0, 1e-5, 0.00012345, 1e22, 1e-300, 123456.0, -0.125]
    assert page.execute_script("return arguments[0].map(number)", sizes) == [naming.number(x) for x in sizes]


def test_a_leaf_that_is_changed_changes_everything_as_python_would(shown: Any) -> None:
    """For every row of the table: value and partials, at other numbers than those that were recorded."""
    result, leaves = every_operation(0)
    page = shown(result)
    fresh, others = every_operation(1)
    fresh.backward()
    expected = [(value.data, value.grad) for value in wengert.Graph(fresh).values]
    page.execute_script(
        """
        const fields = document.querySelectorAll(".leaf input[type=number]");
        arguments[0].forEach((x, i) => { fields[i].value = x; fields[i].oninput(); });
        go(end);
        """,
        [leaf.data for leaf in others],
    )
    assert len(leaves) == len(others)
    for got, want in zip(numbers(page), expected, strict=True):
        assert got == pytest.approx(want, rel=1e-11, abs=1e-13, nan_ok=True)
    find(page, "#reset").click()
    result.backward()
    assert numbers(page) == [(pytest.approx(v.data, nan_ok=True), pytest.approx(v.grad, nan_ok=True))
                             for v in wengert.Graph(result).values]  # fmt: skip


def test_a_slider_moves_its_leaf_and_what_depends_on_it(shown: Any) -> None:
    page = shown(twice(), 7)
    assert page.execute_script("return getComputedStyle(nodes[0].g).cursor") == "pointer"
    slider = find(page, "#leaf-0")
    slider.send_keys("\ue014")  # the right arrow: a fiftieth of the span to each side, here 4
    data = numbers(page)
    a = -2.0 + 4.0 / 50
    f = a * 3.0 * (a + 3.0)
    assert data[0][0] == pytest.approx(a)
    assert data[-1][0] == pytest.approx(f)
    assert data[0][1] == pytest.approx(6 * a + 9)  # of 3a² + 9a
    assert find(page, "#reset").is_enabled()
    page.execute_script("document.querySelector('#leaf-0').value = 1; document.querySelector('#leaf-0').oninput()")
    assert numbers(page)[0] == (1.0, pytest.approx(15.0))


def test_an_operation_of_the_users_is_computed_if_it_is_arithmetic_and_refused_if_not(shown: Any) -> None:
    cube = wengert.op("cube_of_page", value=lambda x: x**3, partials=lambda out, x: 3 * x**2)
    page = shown(cube(Value(2.0, "x")), 3)
    page.execute_script("const f = document.querySelector('.leaf input'); f.value = 3; f.oninput()")
    assert numbers(page) == [(3.0, 27.0), (27.0, 1.0)]
    rough = wengert.op("rough_of_page", value=lambda x: math.floor(x) + 0.0, partials=lambda out, x: 1.0)
    page = shown(rough(Value(2.5, "x")), 3)
    assert find(page, "#off").text == "The sliders are off: the page cannot compute rough_of_page."
    assert not find(page, "#leaf-0").is_enabled()
    assert numbers(page) == [(2.5, 1.0), (2.0, 1.0)]


def test_a_compiled_function_is_one_node_whose_sliders_are_off(shown: Any) -> None:
    pytest.importorskip("numpy", reason="needs numpy")
    w = Value(3.0, "w")
    loss = wengert.compile(lambda x: (w * x).tanh())
    result = loss.mean([0.1, 0.2])
    sequence = steps(result)
    page = shown(result, len(sequence))
    assert said(page) == sequence[-1].sentence
    assert "compiled" in find(page, "#off").text


# -- playing, dragging, the switch ------------------------------------------------------------------------------------


def test_it_plays_to_its_end_and_pauses(shown: Any) -> None:
    page = shown(twice())
    page.execute_script("document.querySelector('#speed').options[3].value = '30'")
    find(page, "#speed").send_keys("8")
    assert find(page, "#play").text == "Play"
    find(page, "#play").click()
    assert find(page, "#play").text == "Pause"
    until(lambda: find(page, "#count").text == "step 7 of 7")
    until(lambda: find(page, "#play").text == "Play")
    find(page, "#play").click()  # again, from the start
    until(lambda: find(page, "#count").text not in ("step 7 of 7", "step 1 of 7"))
    find(page, "#back").click()
    assert find(page, "#play").text == "Play"
    count = find(page, "#count").text
    time.sleep(0.1)
    assert find(page, "#count").text == count  # it has stopped


def test_the_timeline_is_dragged_and_so_is_the_picture(shown: Any) -> None:
    from selenium.webdriver import ActionChains

    page = shown(network())
    timeline = find(page, "#at")
    wide = timeline.size["width"]
    ActionChains(page).move_to_element_with_offset(timeline, -wide // 2 + 8, 0).click_and_hold().move_by_offset(
        wide // 2 - 8, 0
    ).release().perform()
    end = page.execute_script("return end")
    assert abs(page.execute_script("return at") - end / 2) <= 0.06 * end
    page.execute_script("scale(2); ui.view.scrollTo(300, 50)")
    view = find(page, "#view")
    ActionChains(page).move_to_element(view).click_and_hold().move_by_offset(-120, 30).release().perform()
    assert page.execute_script("return [ui.view.scrollLeft, ui.view.scrollTop]") == pytest.approx([420, 20], abs=2)


def test_a_click_on_a_node_goes_to_its_turn(shown: Any) -> None:
    page = shown(twice(), 1)
    page.execute_script("nodes[3].g.dispatchEvent(new MouseEvent('click'))")
    assert said(page) == "e = a + b = -2 + 3 = 1"
    go(page, 7)
    page.execute_script("nodes[3].g.dispatchEvent(new MouseEvent('click'))")
    assert said(page).startswith("grad of a = grad of e ×")
    page.execute_script("nodes[1].g.dispatchEvent(new MouseEvent('click'))")
    assert page.switch_to.active_element.get_attribute("id") == "leaf-1"


def test_the_switch_shows_what_assignment_would_lose(shown: Any) -> None:
    page = shown(twice(), 7)
    right = numbers(page)
    assert [grad for _, grad in right] == [-3.0, -8.0, 1.0, -6.0, 1.0]
    find(page, "#switch").click()
    assert [grad for _, grad in numbers(page)] == [3.0, -2.0, 1.0, -6.0, 1.0]  # what came last
    assert said(page) == (
        "grad of a = grad of d × local derivative = 1 × 3 = 3, and the -6 that it held is lost; "
        "grad of b = grad of d × local derivative = 1 × (-2) = -2, and the -6 that it held is lost; "
        "With = instead of +=, 2 of 5 gradients are wrong by now."
    )
    assert page.execute_script("return nodes[0].grad.textContent") == "3 ≠ -3"
    assert len(page.find_elements("css selector", ".node.wrong")) == 2
    keep(page, "stepper-assign")
    find(page, "#switch").click()
    assert numbers(page) == right


def test_a_value_added_to_itself_gets_both_halves(shown: Any) -> None:
    a = Value(3.0, "a")
    page = shown(a + a, 3)
    assert numbers(page)[0] == (3.0, 2.0)
    find(page, "#switch").click()
    assert numbers(page)[0] == (3.0, 1.0)


# -- keyboard, size, taste --------------------------------------------------------------------------------------------


def test_it_is_used_by_keyboard_alone(shown: Any) -> None:
    from selenium.webdriver import ActionChains
    from selenium.webdriver.common.keys import Keys

    page = shown(twice())

    def press(*keys: str) -> None:
        ActionChains(page).send_keys(*keys).perform()

    def focus() -> str:
        return str(page.execute_script("return document.activeElement.id || document.activeElement.ariaLabel"))

    def step() -> int:
        return int(page.execute_script("return at"))

    press(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    assert step() == 2
    press(Keys.ARROW_LEFT)
    assert step() == 1
    press(Keys.END)
    assert step() == 7
    press(Keys.HOME)
    assert step() == 0
    press(" ")
    assert find(page, "#play").text == "Pause"
    press(" ")
    assert find(page, "#play").text == "Play"
    go(page, 7)
    reached = []
    for _ in range(20):
        press(Keys.TAB)
        reached.append(focus())
        outline = "return getComputedStyle(document.activeElement.id === 'assign' ? \
            document.activeElement.nextElementSibling : document.activeElement).outlineStyle"
        assert reached[-1] in ("", "None") or page.execute_script(outline) != "none", reached[-1]
        if focus() == "assign":
            press(" ")
            assert "With = instead of +=" in said(page)
            press(" ")
        if focus() == "leaf-1":
            press(Keys.ARROW_DOWN)
            assert numbers(page)[1][0] < 3.0
            assert step() == 7
        if focus() == "play":
            press(Keys.ENTER)
            assert find(page, "#play").text == "Pause"
            press(Keys.ENTER)
            go(page, 7)
    controls = ["first", "back", "play", "at", "speed", "assign", "view", "out", "fit", "in", "leaf-0", "leaf-1"]
    assert [name for name in controls if name not in reached] == []
    assert {"a, as a number", "b, as a number"} <= set(reached)


def test_everything_that_can_be_used_has_a_name(shown: Any) -> None:
    page = shown(neuron())
    unnamed = """
        return [...document.querySelectorAll("button, input, select, [role]")].filter((element) =>
          !(element.ariaLabel || element.textContent.trim() || element.labels?.length)).map((e) => e.outerHTML)
    """
    assert page.execute_script(unnamed) == []
    assert find(page, "#said").get_attribute("aria-live") == "polite"
    assert find(page, "#graph").get_attribute("aria-label") == "Graph of 10 nodes"


def test_nothing_overlaps_and_nothing_is_cut_off(shown: Any) -> None:
    """Boxes do not touch each other, and texts stay inside of their boxes."""
    for root in (neuron(), twice(), network(), every_operation()[0]):
        page = shown(root, 1000)
        boxes = page.execute_script("return data.boxes")
        for i, (x, y, wide, high, _) in enumerate(boxes):
            for u, v, other_wide, other_high, _ in boxes[:i]:
                assert x >= u + other_wide or u >= x + wide or y >= v + other_high or v >= y + high
        outside = """
            const inside = (text, g) => {
              const shape = g.querySelector(text.classList.contains("sign") ? ".op" : ".box");
              const a = text.getBoundingClientRect(), b = shape.getBoundingClientRect();
              return a.left > b.left - 1 && a.right < b.right + 1 && a.top > b.top - 1 && a.bottom < b.bottom + 1;
            };
            return nodes.flatMap(({ g }) => [...g.querySelectorAll("text")]
              .filter((text) => !inside(text, g)).map((text) => text.textContent));
        """
        assert page.execute_script(outside) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_readable_in_light_and_in_dark(shown: Any, scheme: str) -> None:
    """The contrast of every text with what is behind it is at least that of WCAG's level AA, 4.5."""
    page = shown(neuron(), 8)
    page.execute_cdp_cmd(
        "Emulation.setEmulatedMedia",
        {
            "features": [
                {"name": "prefers-color-scheme", "value": scheme},
                {"name": "prefers-reduced-motion", "value": "reduce"},
            ]
        },
    )
    try:
        contrasts = """
            const channel = (c) => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
            const light = (colour) => { const [r, g, b] = colour.match(/[\\d.]+/g).map(Number);
              return 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b); };
            const ratio = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p);
              return (x + 0.05) / (y + 0.05); };
            const behind = (e) => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor;
              if (!/, 0\\)$/.test(c)) return c; } };
            const found = {};
            const all = "h1, h2, h3, #about, #count, button:enabled, #said p, #said b, label";
            for (const e of document.querySelectorAll(all))
              found[e.id || e.tagName + e.textContent] = ratio(getComputedStyle(e).color, behind(e));
            for (const { g } of nodes) for (const text of g.querySelectorAll("text")) {
              const shape = g.querySelector(text.classList.contains("sign") ? ".op" : ".box");
              const name = `${text.textContent}, ${text.getAttribute("class")} of ${g.getAttribute("class")}`;
              found[name] = ratio(getComputedStyle(text).fill, getComputedStyle(shape).fill);
            }
            return found;
        """
        time.sleep(0.05)
        found = page.execute_script(contrasts)
        assert {name: ratio for name, ratio in found.items() if ratio < 4.5} == {}
        moving = "return document.getAnimations().filter((a) => a.playState === 'running').length"
        assert page.execute_script(moving) == 0  # reduced motion
        keep(page, f"stepper-{scheme}")
    finally:
        page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_it_fits_a_telephone(shown: Any) -> None:
    page = shown(neuron(), 9)
    metrics = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        page.refresh()
        assert page.execute_script("return document.documentElement.scrollWidth") == 390
        small = """return [...document.querySelectorAll("#bar button, #zoom button, #bar select")]
            .filter((e) => e.getBoundingClientRect().height < 30).length"""
        assert page.execute_script(small) == 0
        keep(page, "stepper-telephone")
    finally:
        page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


# -- strangers --------------------------------------------------------------------------------------------------------

HOSTILE = [
    "<script>hacked = 1</script>",
    "</script><script>hacked = 1</script>",
    '"><img src=x onerror="hacked = 1">',
    "<svg onload='hacked = 1'>",
    "</title><script>hacked = 1</script>",
    "</style><script>hacked = 1</script>",
    "<!-- <script>",
    "-->",
    "]]>",
    "&lt;b&gt;&#x3c;script&#x3e;",
    "javascript:hacked = 1",
    "https://example.com/",
    "<a href='https://example.com'>x</a>",
    "<iframe src='https://example.com'>",
    "<base href='https://example.com'>",
    "<meta http-equiv=refresh content='0;url=https://example.com'>",
    "<link rel=stylesheet href='https://example.com/x.css'>",
    "\u202egrad\u202c",
    "\u2028hacked = 1\u2029",
    "\x00\x07\x1b[31m",
    "\ud800",
    "a\nb\r\tc",
    "x" * 10_000,
    "\U0001f600" * 50,
    "漢字" * 20,
    "e\u0301" * 5000,
    "__proto__",
    "constructor",
    "nan",
    "$&$1$`",
    "@0 #1",
    "{{7*7}}${7*7}`",
    "\\u003cscript\\u003e",
    "';hacked=1;//",
]


def test_a_thousand_hostile_labels_stay_text(shown: Any) -> None:
    chance = random.Random(0)
    labels = [chance.choice(HOSTILE) + ("" if i < 100 else chance.choice(HOSTILE)) for i in range(1000)]
    leaves = [Value(1.0, label) for label in labels]
    result = wengert.sum(leaves)
    result.label = HOSTILE[1]
    page = shown(result, 3)
    assert page.execute_script("return typeof hacked") == "undefined"
    names = page.execute_script("return nodes.map(({ g }) => g.querySelector('.name').textContent)")
    assert names == [naming.clean(label) for label in [*labels, result.label]]
    assert all(len(name) <= naming.LONGEST for name in names)
    tags = "return [...new Set([...document.querySelectorAll('*')].map((e) => e.tagName.toLowerCase()))].sort()"
    plain = "aside b body button code div g h1 h2 h3 head header html i input label main meta noscript option output"
    plain += " p path rect script section select span style svg text title"
    assert set(page.execute_script(tags)) <= set(plain.split())
    assert page.execute_script("return document.scripts.length") == 2  # the data, which is not run, and the program
    assert page.title.startswith("Backpropagation, step by step: </script>")
    assert HOSTILE[1][:20] in said(page)


def test_a_page_can_ask_for_nothing_and_run_nothing_else(shown: Any, browser: Any) -> None:
    page = shown(twice())
    attempt = """
        const done = arguments[0], refused = [];
        document.addEventListener("securitypolicyviolation", (event) => refused.push(event.effectiveDirective));
        fetch("https://example.com/").catch(() => {});
        new Image().src = "https://example.com/x.png";
        const script = document.createElement("script");
        script.textContent = "window.hacked = 1";
        document.body.append(script);
        const style = document.createElement("style");
        style.textContent = "body { background: red }";
        document.body.append(style);
        document.body.insertAdjacentHTML("beforeend", "<p onclick='hacked = 1' id=p>p</p><iframe src='https://example.com'>");
        document.getElementById("p").click();
        setTimeout(() => done([refused, typeof hacked]), 300);
    """
    refused, hacked = page.execute_async_script(attempt)
    kinds = {"connect-src", "img-src", "script-src-elem", "style-src-elem", "script-src-attr", "frame-src"}
    assert set(refused) == kinds
    assert hacked == "undefined"
    complaints = browser.get_log("browser")  # which are the refusals
    assert len(complaints) >= len(refused)
    assert all("Content Security Policy" in entry["message"] for entry in complaints)


# -- in a notebook ----------------------------------------------------------------------------------------------------


def test_a_notebook_exported_to_html_holds_the_page(browser: Any, tmp_path: Path) -> None:
    nbformat = pytest.importorskip("nbformat", reason="needs nbformat")
    nbclient = pytest.importorskip("nbclient", reason="needs nbclient")
    nbconvert = pytest.importorskip("nbconvert", reason="needs nbconvert")
    pytest.importorskip("ipykernel", reason="needs ipykernel")
    cell = "from wengert import Value, steps\na = Value(3.0, '<b>a</b>')\nsteps(a * a + a).page()"
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell)])
    nbclient.NotebookClient(notebook, timeout=60, kernel_name="python3").execute()
    (output,) = notebook.cells[0].outputs
    assert output["data"]["text/plain"].startswith("Page(")
    text, _ = nbconvert.HTMLExporter(template_name="basic").from_notebook_node(notebook)
    path = tmp_path / "notebook.html"
    path.write_text(f"<!doctype html><meta charset=utf-8>{text}", encoding="utf-8")
    browser.get(path.as_uri())
    browser.switch_to.frame(find(browser, "iframe"))
    try:
        assert browser.execute_script("return self.origin") == "null"  # a frame of its own, that can reach nothing
        assert find(browser, "h1").text == "Backpropagation, step by step: v1 + <b>a</b>"
        find(browser, "#last").click()
        assert numbers(browser)[0] == (3.0, 7.0)
        find(browser, "#switch").click()
        assert numbers(browser)[0] == (3.0, 3.0)
    finally:
        browser.switch_to.default_content()
    keep(browser, "stepper-notebook")


# -- large ------------------------------------------------------------------------------------------------------------


def test_two_thousand_nodes_open_and_step(shown: Any) -> None:
    chance = random.Random(0)
    x = [Value(chance.uniform(-1, 1), f"x{i}") for i in range(10)]
    total: Any = Value(0.0, "start")
    for _ in range(500):
        a, b = chance.sample(x, 2)
        x[chance.randrange(10)] = (a * b + 0.5).tanh()
        total = total + a * chance.uniform(-1, 1)
    assert len(wengert.Graph(total)) > 1900
    page = shown(total)
    inside = """
        const box = nodes[arguments[0]].g.getBoundingClientRect(), view = ui.view.getBoundingClientRect();
        return box.left >= view.left && box.right <= view.right && box.top >= view.top && box.bottom <= view.bottom;
    """
    first = page.execute_script("return made[0]")
    until(lambda: page.execute_script(inside, first))  # what is played first can be seen
    page = shown(total, 2000)
    here = steps(total)[1999].place
    until(lambda: page.execute_script(inside, here))
    find(page, "#last").click()
    gradients = steps(total).gradients
    assert [grad for _, grad in numbers(page)] == gradients
    keep(page, "stepper-2000")


def test_the_words_of_the_page_are_escaped_once() -> None:
    page = steps(neuron()).page()
    inside = page._repr_html_()
    assert html.unescape(inside.partition('srcdoc="')[2].rpartition('"></iframe>')[0]) == page
