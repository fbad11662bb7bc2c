"""Pages of the documentation in a browser: at a desk and on a telephone, light and dark, by who cannot see them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import wengert_course
from tests.docs.conftest import paint, resize
from tests.view.browsing import keep

pytestmark = pytest.mark.browser
HEIGHTS = {1366: 900, 390: 844}
SIZES = list(HEIGHTS)
VIEWS = [(1366, "dark"), (390, "light")]
"""Each width and each of light and dark, once: colours do not depend on widths. At night, every pair of them."""
AUDIT = "const done = arguments[0]; axe.run(document, {iframes: false}).then((found) => done(found.violations))"

CLIPPED = """
    const cuts = (how) => how == "hidden" || how == "clip";
    return [...document.querySelectorAll("article *, .sidebar-tree *")].filter((e) => {
      const { display, overflowX, overflowY } = getComputedStyle(e);
      const wide = e.scrollWidth > e.clientWidth + 1, high = e.scrollHeight > e.clientHeight + 1;
      return e.clientWidth > 1 && e.textContent.trim() && display != "inline"
        && (cuts(overflowX) && wide || cuts(overflowY) && high);
    }).map((e) => e.outerHTML.slice(0, 200));
"""

ONCE = """
    const outline = (e) => `${e.tagName}.${e.className}(${[...e.children].map(outline)})`;
    const chain = (e) => e.matches("article") ? "" : `${chain(e.parentElement)} ${e.tagName}.${e.className}`;
    const seen = new Set();
    const again = (selector, told) =>
      [...document.querySelectorAll(`article ${selector}`)].filter((e) => seen.size == seen.add(told(e)).size);
    again("tr", outline).forEach((row) => row.remove());
    again(":is(.highlight, .sig, code) span[class]", chain).forEach((word) => word.replaceWith(...word.childNodes));
"""
"""Leaves of what is repeated on a page the first one: of a table's rows that are made of the same elements and classes,
and of the words of programs that are coloured alike. axe takes a minute for a table of a thousand rows.
"""


def written() -> list[str]:
    """Every page of the documentation, by its address."""
    docs = Path(__file__).resolve().parents[2] / "docs"
    pages = [path.relative_to(docs).with_suffix(".html").as_posix() for path in docs.glob("[!_]*/*.md")]
    lessons = [f"course/{lesson.name}.html" for lesson in wengert_course.lessons()]
    return sorted([*pages, *(f"{path.stem}.html" for path in docs.glob("*.md")), *lessons])


def look(browser: Any, page: str, width: int, theme: str) -> None:
    resize(browser, width, HEIGHTS[width])
    paint(browser, theme)
    keep(browser, f"{page.removesuffix('.html').replace('/', '-')}-{width}-{theme}")
    assert browser.execute_script("return document.documentElement.scrollWidth") == width
    assert browser.execute_script(CLIPPED) == [], width


def audit(browser: Any, width: int, theme: str) -> None:
    resize(browser, width, HEIGHTS[width])
    paint(browser, theme)
    found = {rule["id"]: [node["html"][:200] for node in rule["nodes"]] for rule in browser.execute_async_script(AUDIT)}
    assert found == {}, (width, theme)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("page", written())
def test_nothing_scrolls_sideways_and_no_text_is_cut(read: Callable[..., Any], page: str) -> None:
    """At a desk and on a phone, light and dark. (Frames are pages of their own, and tested as such.)"""
    browser = read(page)
    for view in VIEWS:
        look(browser, page, *view)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("page", written())
def test_nothing_is_in_the_way_of_a_reader(read: Callable[..., Any], axe: str, page: str) -> None:
    """axe finds nothing."""
    browser = read(page)
    browser.execute_script(ONCE)
    browser.execute_script(axe)
    for view in VIEWS:
        audit(browser, *view)


@pytest.mark.nightly  # minutes for the longest page
@pytest.mark.parametrize("page", written())
def test_nor_is_anything_at_either_width_in_either_colours(read: Callable[..., Any], axe: str, page: str) -> None:
    """Each width with each of light and dark, and of what is repeated on a page every one."""
    browser = read(page)
    browser.execute_script(axe)
    for width in SIZES:
        for theme in ("light", "dark"):
            look(browser, page, width, theme)
            audit(browser, width, theme)


def test_of_what_is_repeated_the_first_is_audited(read: Callable[..., Any], axe: str) -> None:
    """A fault that only some rows of a table have, or only one kind of word in a program, is found all the same."""
    browser = read("special-values.html")
    before = browser.execute_script("return document.querySelectorAll('article *').length")
    browser.execute_script("""
        const last = [...document.querySelectorAll("article tr")].at(-1);
        last.cells[0].innerHTML = "<a style='color: #eee; background: #fff' href='#'>pale</a>";
    """)
    browser.execute_script(ONCE)
    assert browser.execute_script("return document.querySelectorAll('article *').length") < before / 4
    browser.execute_script(axe)
    assert [rule["id"] for rule in browser.execute_async_script(AUDIT)] == ["color-contrast"]


@pytest.mark.parametrize("page", ["index.html", "gallery.html", "pictures.html", "course/06_used_twice.html"])
def test_each_block_of_code_can_be_copied(read: Callable[..., Any], page: str) -> None:
    browser = read(page)
    blocks = "[...document.querySelectorAll('article .highlight:not(.cell_output *, .lc-editor)')]"
    without = f"return {blocks}.filter((block) => !block.querySelector('button.copybtn')).map((b) => b.textContent)"
    assert browser.execute_script(f"return {blocks}.length") > 0
    assert browser.execute_script(without) == []
    assert browser.execute_script("return document.querySelectorAll('.cell_output button.copybtn').length") == 0


def test_what_is_copied_is_what_was_typed(read: Callable[..., Any]) -> None:
    """Without prompts, and without what Python answers."""
    from selenium.webdriver import ActionChains

    browser = read("index.html")
    browser.execute_script("addEventListener('copy', () => { window.copied = document.activeElement.value })")
    block = browser.find_element("css selector", ".highlight-pycon")
    ActionChains(browser).move_to_element(block).click(block.find_element("css selector", "button.copybtn")).perform()
    assert browser.execute_script("return window.copied").splitlines() == [
        "from wengert import Value",
        "x = Value(3.0)",
        "y = 3 * x**2 - 4 * x + 5",
        "y.backward()",
        "y.data, x.grad",
    ]


def test_the_search_shows_where_decision_boundaries_are(read: Callable[..., Any]) -> None:
    from selenium.webdriver.support.ui import WebDriverWait

    browser = read("search.html?q=decision+boundary")
    script = "return [...document.querySelectorAll('#search-results li a')].map((a) => a.textContent)"
    wanted = "A decision boundary", "wengert.view.plots.plot_decision_boundary"

    def shown(page: Any) -> bool:
        titles = page.execute_script(script)
        return all(any(name in title for title in titles) for name in wanted)

    WebDriverWait(browser, 20).until(shown)


def test_a_picture_of_the_gallery_leads_to_its_code(read: Callable[..., Any]) -> None:
    browser = read("gallery.html")
    link = browser.find_element("css selector", "ul.thumbnails a[href='#three-arms-of-a-spiral']")
    assert link.find_element("css selector", "img").get_property("naturalWidth") > 0
    link.click()
    assert browser.execute_script("return document.querySelector(':target h3').textContent").startswith("Three arms")


@pytest.mark.parametrize("width", SIZES)
@pytest.mark.parametrize("page", ["gallery.html", "pictures.html"])
def test_a_drawing_fits_its_column_or_is_large_enough_to_be_read(
    read: Callable[..., Any], page: str, width: int
) -> None:
    browser = read(page, width)
    script = """
        return [...document.querySelectorAll("a.whole img")].map((e) =>
          [e.width, e.naturalWidth, e.closest("p, .cell_output").clientWidth, e.parentNode.href]);
    """
    drawings = browser.execute_script(script)
    assert len(drawings) >= 4
    for shown, natural, column, address in drawings:
        assert shown == pytest.approx(max(min(natural, column), 0.6 * natural), abs=2)
        assert address.endswith(".svg"), "a click shows it in full"


def test_the_benchmarks_begin_with_a_chart_and_have_six_screens_at_most(read: Callable[..., Any]) -> None:
    browser = read("benchmarks.html", 1366)
    first = "return document.querySelector('article img.only-light').getBoundingClientRect().bottom"
    assert browser.execute_script(first) < 860
    assert browser.execute_script("return document.documentElement.scrollHeight") <= 6 * 900


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_formulas_are_formulas(read: Callable[..., Any], theme: str) -> None:
    """The browser sets them: a fraction is higher than a letter."""
    browser = read("three-ways.html", theme=theme)
    height = "return document.querySelector(arguments[0]).getBoundingClientRect().height"
    fraction, letter = (browser.execute_script(height, f"math {part}") for part in ("mfrac", "mi"))
    assert fraction > 1.5 * letter > 0


STANDS = """
    const texts = [...document.querySelectorAll("#sliding text")].filter((e) => +e.getAttribute("opacity") > 0.99);
    return texts.map((e) => [e.textContent, ...e.getAttribute("transform").match(/[-\\d.]+/g).map(Number)]);
"""


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("width", SIZES)
def test_scalars_slide_into_arrays(read: Callable[..., Any], axe: str, width: int, theme: str) -> None:
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support.ui import WebDriverWait

    browser = read("lifting.html", width, theme)
    browser.execute_script("document.getElementById('sliding').scrollIntoView({behavior: 'instant', block: 'center'})")
    slider, button = (browser.find_element("css selector", f"#sliding {name}") for name in ("input", "button"))
    said = "return document.querySelector('#sliding figcaption').textContent"
    before = browser.execute_script(STANDS)
    first = " ".join(text for text, _, y in before if y == before[0][2])
    assert first == "0 * x0 + -0.2 * x1 + -0.4 * x2 + 0"
    assert browser.execute_script(said).startswith("Recorded")
    slider.send_keys(Keys.ARROW_RIGHT)
    assert browser.execute_script(said).startswith("Grouped")
    slider.send_keys(Keys.END)
    after = browser.execute_script(STANDS)
    assert browser.execute_script(said).startswith("Run: u1 = x @ W1.T + b1")
    assert len(after) == 4 * 3 + 3 + 4 + 2 + 3  # W1, x and b1, two signs, three names
    assert len({x for text, x, _ in after if text in ("x0", "x1", "x2")}) == 1
    columns = [x for _, x, y in after if y == after[0][2]]
    assert columns == sorted(columns)
    keep(browser, f"lifting-{width}-{theme}")
    button.click()
    assert button.text == "Pause"
    WebDriverWait(browser, 20, 0.02).until(lambda page: not page.execute_script(said).startswith("Run"))
    WebDriverWait(browser, 20).until(lambda page: button.text == "Play")
    assert browser.execute_script(STANDS) == after
    assert browser.execute_script("return document.documentElement.scrollWidth") == width
    browser.execute_script(axe)
    found = browser.execute_async_script(AUDIT.replace("document,", "'#sliding',"))
    assert [rule["id"] for rule in found if rule["impact"] in ("serious", "critical")] == []
