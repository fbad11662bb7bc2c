"""The stepper's page as it is used: by keyboard, in light and dark, on a telephone, in a notebook; by strangers."""

from __future__ import annotations

import html
import random
import time
from pathlib import Path
from typing import Any

import pytest

import wengert
from tests.conftest import unpacked
from tests.view.browsing import every_operation, find, go, keep, network, numbers, said, twice, until
from tests.view.drawn import neuron
from wengert import Value, steps
from wengert.view import naming

pytestmark = [pytest.mark.browser, pytest.mark.once]


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
    for _ in range(24):
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
    controls = [
        "first",
        "back",
        "play",
        "at",
        "by",
        "speed",
        "assign",
        "view",
        "out",
        "fit",
        "in",
        "h",
        "leaf-0",
        "leaf-1",
    ]
    assert [name for name in controls if name not in reached] == []
    assert {"a, as a number", "b, as a number"} <= set(reached)


def test_the_nodes_are_reached_by_keyboard(shown: Any) -> None:
    from selenium.webdriver import ActionChains
    from selenium.webdriver.common.keys import Keys

    page = shown(twice())

    def press(*keys: str) -> str:
        ActionChains(page).send_keys(*keys).perform()
        return str(page.execute_script("return document.activeElement.querySelector('title')?.textContent"))

    page.execute_script("ui.view.focus()")
    assert press(Keys.TAB) == "a: data -2, grad not computed"
    assert press(Keys.ARROW_RIGHT) == "d: data not computed, grad not computed"
    assert page.execute_script("return at") == 0  # the arrow keys are the graph's here
    assert press(Keys.ARROW_DOWN) == "e: data not computed, grad not computed"
    assert press(Keys.ENTER) == "e: data 1, grad not computed"
    assert said(page) == "e = a + b = -2 + 3 = 1"
    assert press(Keys.ARROW_LEFT) == "b: data 3, grad not computed"
    ActionChains(page).send_keys(" ").perform()
    assert page.switch_to.active_element.get_attribute("id") == "leaf-1"
    page.execute_script("ui.view.focus()")
    assert press(Keys.TAB).startswith("b: ")  # where one was


def test_everything_that_can_be_used_has_a_name(shown: Any) -> None:
    page = shown(neuron()[0])
    unnamed = """
        return [...document.querySelectorAll("button, input, select, [role]")].filter((element) =>
          !(element.ariaLabel || element.textContent.trim() || element.labels?.length)).map((e) => e.outerHTML)
    """
    assert page.execute_script(unnamed) == []
    assert find(page, "#said").get_attribute("aria-live") == "polite"
    assert find(page, "#graph").get_attribute("aria-label") == "Graph of 10 nodes"


def test_nothing_overlaps_and_nothing_is_cut_off(shown: Any) -> None:
    """Boxes do not touch each other, and texts stay inside of their boxes."""
    for root in (neuron()[0], twice(), network(), every_operation()[0]):
        page = shown(root, 1000)
        boxes, high = page.execute_script("return [data.boxes, data.high]")
        for i, (x, y, wide, _) in enumerate(boxes):
            for u, v, other_wide, _ in boxes[:i]:
                assert x >= u + other_wide or u >= x + wide or y >= v + high or v >= y + high
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
    page = shown(neuron()[0], 8)
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
            const all = "h1, h2, .rule, #ratio, #about, #count, button:enabled, #said p, #said b, label";
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
    page = shown(neuron()[0], 9)
    metrics = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    try:
        page.refresh()
        unpacked(page)
        assert page.execute_script("return document.documentElement.scrollWidth") == 390
        controls = "#bar button, #zoom button, #bar select, #time, #switch, aside button, aside input"
        small = """return [...document.querySelectorAll(arguments[0])]
            .filter((e) => e.getBoundingClientRect().height < 44).map((e) => e.outerHTML)"""
        assert page.execute_script(small, controls) == []
        order = "return ['view', 'bar', 'step', 'leaves'].map((id) => byId(id).getBoundingClientRect().top)"
        tops = page.execute_script(order)
        assert tops == sorted(tops)
        assert tops[0] < 130  # the picture first
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
    plain += " p path rect script section select small span style svg text title"
    assert set(page.execute_script(tags)) <= set(plain.split())
    assert page.execute_script("return document.scripts.length") == 4  # two of which are data, and do not run
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
    cell = "from wengert import Value, steps\na = Value(3.0, '<b>a</b>')\nsteps(a * a + a)"
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell)])
    nbclient.NotebookClient(notebook, timeout=60, kernel_name="python3").execute()
    (output,) = notebook.cells[0].outputs
    assert output["data"]["text/plain"].startswith("Steps(")
    text, _ = nbconvert.HTMLExporter(template_name="basic").from_notebook_node(notebook)
    path = tmp_path / "notebook.html"
    path.write_text(f"<!doctype html><meta charset=utf-8>{text}", encoding="utf-8")
    browser.get(path.as_uri())
    browser.switch_to.frame(find(browser, "iframe"))
    unpacked(browser)
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


def test_the_words_of_the_page_are_escaped_once() -> None:
    page = steps(neuron()[0]).page()
    inside = page._repr_html_()
    assert html.unescape(inside.partition('srcdoc="')[2].partition('"></iframe>')[0]) == page


@pytest.mark.parametrize("width", [736, 350])
def test_in_a_page_all_of_it_is_seen_and_the_whole_graph_first(browser: Any, tmp_path: Path, width: int) -> None:
    path = tmp_path / "page.html"
    inside = steps(neuron()[0]).page()._repr_html_()
    path.write_text(f"<!doctype html><meta charset=utf-8><div style='width: {width}px'>{inside}</div>")
    browser.get(path.as_uri())
    frame = find(browser, "iframe")
    browser.switch_to.frame(frame)
    unpacked(browser)
    hidden = "const e = document.scrollingElement; return e.scrollHeight - e.clientHeight"
    try:
        for position in (0, 4, 9):
            go(browser, position)
            until(lambda: browser.execute_script(hidden) == 0)
            free = browser.execute_script("return innerHeight - document.body.getBoundingClientRect().height")
            assert 0 <= free < 80, "as high as what it shows, or showed at a step before"
            view, *boxes = browser.execute_script(
                "return [ui.view, ...nodes.map(({ g }) => g)].map((e) => e.getBoundingClientRect()).map((r) => "
                "[r.left, r.top, r.right, r.bottom])"
            )
            assert all(view[0] <= box[0] and view[1] <= box[1] for box in boxes)
            assert all(view[2] >= box[2] and view[3] >= box[3] for box in boxes)
            boxes_end, view_end = max(box[3] for box in boxes), view[3]
            assert view_end - boxes_end < 40, "no empty canvas below the graph"
    finally:
        browser.switch_to.default_content()
    keep(browser, f"stepper-framed-{width}")
