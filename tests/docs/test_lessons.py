"""The lessons in the browser, as learners go through them: filled in, run and checked, with nothing installed."""

from __future__ import annotations

import hashlib
import json
import os
import re
import runpy
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import requests
from tests.docs.conftest import paint, resize
from tests.docs.served import package, served
from tests.view.browsing import find, keep, until
from wengert_course import kept, lessons

pytestmark = [pytest.mark.browser, pytest.mark.once]  # Python for browsers runs it, whatever the tests run on

LESSONS = {lesson.number: lesson for lesson in lessons()}
ROOT = Path(__file__).resolve().parents[2]
FULL = os.environ.get("WENGERT_PYODIDE")
"""The folder of Pyodide's full distribution, for who has it: then nothing is missing."""
MARK = "# as I have it"
AUDIT = "const done = arguments[0]; axe.run('article', {iframes: false}).then((found) => done(found.violations))"


@pytest.fixture(scope="module")
def address(site: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The built site on the loopback, and in it Python for browsers, in the version that its pages name."""
    page = (ROOT / "docs" / "_static" / "playground" / "playground.html").read_text(encoding="utf-8")
    (version,) = re.findall(r"/pyodide@(\d+\.\d+\.\d+)/", page)
    runtime = Path(FULL) if FULL else package("pyodide", version, tmp_path_factory.mktemp("npm") / "pyodide")
    with served(site, runtime) as where:
        yield where


@pytest.fixture
def page(chromium: Any, address: str) -> Iterator[Any]:
    """The browser, which keeps nothing of another test, and has asked nobody but the loopback."""
    chromium.get(f"{address}favicon.ico")
    chromium.execute_script("localStorage.clear()")
    for log in ("browser", "performance"):
        chromium.get_log(log)
    yield chromium
    chromium.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    chromium.get("about:blank")
    known = (address, "data:", "blob:", "about:")
    assert [url for url in requests(chromium) if not url.startswith(known)] == []


def show(page: Any, address: str, number: int, query: str = "?runtime=../runtime/") -> None:
    page.get(f"{address}course/{LESSONS[number].name}.html{query}")
    until(lambda: any(made.is_displayed() for made in page.find_elements("css selector", "#ls")))


def codes(number: int, solved: bool = True) -> list[str]:
    return [cell.shown(solved) for cell in LESSONS[number].cells() if cell.kind == "code"]


def check_of(number: int) -> int:
    """The place of a lesson's last check."""
    return max(i for i, code in enumerate(codes(number)) if f"step={number})" in code)


def write(page: Any, place: int, text: str) -> None:
    """Put a text into a cell, as pasting does."""
    script = """
        const field = document.querySelectorAll(".lc-editor textarea")[arguments[0]];
        field.value = arguments[1];
        field.dispatchEvent(new Event("input"));
    """
    page.execute_script(script, place, text)


def texts(page: Any) -> list[str]:
    return page.execute_script("return [...document.querySelectorAll('.lc-editor textarea')].map((e) => e.value)")


def told(page: Any, place: int) -> str:
    """What a cell says of its last run."""
    return page.execute_script("return document.querySelectorAll('.lc-note')[arguments[0]].textContent", place)


def out(page: Any, place: int) -> Any:
    return page.find_elements("css selector", ".lc-out")[place]


def press(page: Any, selector: str, place: int = 0) -> None:
    script = """
        const wanted = document.querySelectorAll(arguments[0])[arguments[1]];
        wanted.scrollIntoView({behavior: "instant", block: "center"});
        return wanted;
    """
    page.execute_script(script, selector, place).click()


def wait(page: Any, seconds: float = 120) -> None:
    """Until nothing runs any more."""
    until(lambda: not find(page, "#ls-stop").is_enabled(), seconds)


def ran(page: Any, place: int) -> str:
    """Run a cell; what it says then."""
    page.execute_script("document.querySelectorAll('.lc-run')[arguments[0]].click()", place)
    wait(page)
    return told(page, place)


def mine(page: Any) -> str:
    """The reader's own engine, as the browser keeps it."""
    return page.execute_script("return localStorage.getItem('wengert-mine.py') ?? ''")


def go_on(page: Any, number: int) -> None:
    """Let the browser keep the engine of a reader who has done this lesson, and signed each method."""
    signed = kept._ours(number).replace("):\n", f"):  {MARK}\n")
    page.execute_script("localStorage.setItem('wengert-mine.py', arguments[0])", signed)


# -- through all of them ----------------------------------------------------------------------------------------------


LIBRARIES = ("numpy", "plt", "matplotlib", "class Array", "step=10", "wengert.compile", "error.mean")
"""What stands in a cell that needs NumPy or matplotlib, itself or by what it calls: npm has neither."""


@pytest.mark.sampled(7)  # a minute each
@pytest.mark.parametrize("number", LESSONS)
def test_a_lesson_is_filled_in_from_blank_to_done(page: Any, address: str, number: int) -> None:
    """The check of the blank one says what is to do; filled in, each cell does what it is to, and the check is content.

    (Where a cell needs a library that only a public network has, it says so; in lesson 10 that is one part of four.)
    """
    if number:
        go_on(page, number - 1)
    show(page, address, number)
    assert texts(page) == codes(number, solved=False)
    (first, *_), last = [i for i, code in enumerate(codes(number)) if "course.check(" in code], check_of(number)
    for place, code in enumerate(codes(number)[:first]):
        if any(word in code for word in ("course", "class", "letters")):
            ran(page, place)
    if number != 10:  # whose first check is of what is there already
        assert ran(page, first).startswith("… Not yet: ")
    for place, code in enumerate(codes(number)):
        write(page, place, code)
    for place, code in enumerate(codes(number)):
        said, missing = ran(page, place), not FULL and any(name in code for name in LIBRARIES)
        if place == last and not missing:
            assert said.startswith("✓ Right: ")
        elif "course.check(" in code:
            assert said.startswith(("✓ Right: ", "… Not yet: ") if place < last else "… Not yet: 3 of 4 right")
        elif missing:
            assert re.search("No module named|this needs numpy|is not defined", out(page, place).text)
        else:
            assert said == "has run", out(page, place).text
    for kind, call in (("img", "\ndraw("), ("iframe", "steps(")):
        wanted = [
            place for place, code in enumerate(codes(number)) if f"\n{code}".startswith(call) or call in code[-20:]
        ]
        for place in wanted:
            assert out(page, place).find_elements("css selector", kind), place
    until(lambda: page.execute_script("return [...document.images].every((e) => e.complete && e.naturalWidth > 0)"))
    resize(page, 1280, page.execute_script("return document.documentElement.scrollHeight"))
    page.execute_async_script("setTimeout(arguments[0], 500)")  # pages that play are painted when they come into view
    keep(page, f"lesson-{number:02}")
    done = page.execute_script("return JSON.parse(localStorage.getItem(`wengert-lesson-${arguments[0]}`)).done", number)
    assert done == bool(number != 10 or FULL)
    has = {int(step) for step in re.findall(r"\d+", mine(page).partition("Lessons: ")[2].partition("\n")[0])}
    assert (number in has) == (number in kept.KEPT and done)
    if number in (*range(2, 10), 12):  # what stands between them and lesson 1 is the reader's
        write(page, 0, "import inspect\nprint(inspect.getsource(Value.__mul__))")
        ran(page, 0)
        assert MARK in mine(page)
        assert (MARK in out(page, 0).text) == (number not in (2, 4, 6)), "which those lessons have written anew"


def test_a_reader_s_engine_goes_from_page_to_page_and_is_taken_along(page: Any, address: str, tmp_path: Path) -> None:
    page.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)})
    show(page, address, 2)
    write(page, 0, codes(2)[0])
    assert ran(page, 0).startswith(
        "wengert.errors.ArgumentError: mine.py, where the check of lesson 1 keeps your engine,"
    )
    assert "to go on with ours, write (1, ours=True) instead of (1)" in out(page, 0).text
    assert [find(page, f"#ls-{name}").is_enabled() for name in ("mine", "forget")] == [False, False]
    write(page, 0, codes(2)[0].replace("go_on(1)", "go_on(1, ours=True)"))
    assert ran(page, 0) == "has run"
    show(page, address, 1)
    write(page, 1, codes(1)[1].replace("):\n", f"):  {MARK}\n"))
    for place in (0, 1, 2):
        ran(page, place)
    assert "It is kept in mine.py" in out(page, 2).text
    assert mine(page).count(MARK) == 4
    show(page, address, 2)
    write(page, 0, codes(2)[0])
    assert [ran(page, 0), ran(page, 1)[:7]] == ["has run", "✓ Right"]
    assert mine(page).count(MARK) == 1, "lesson 2 has written three of the four anew"
    own = mine(page)
    press(page, "#ls-mine")
    until((tmp_path / "mine.py").exists)
    assert (tmp_path / "mine.py").read_text(encoding="utf-8") == own
    press(page, "#ls-forget")
    page.switch_to.alert.accept()
    until(lambda: not find(page, "#ls-mine").is_enabled())
    assert mine(page) == ""
    find(page, "#ls-file").send_keys(str(tmp_path / "mine.py"))
    until(lambda: mine(page) == own)
    (tmp_path / "other.py").write_text("x = 1")
    find(page, "#ls-file").send_keys(str(tmp_path / "other.py"))
    until(lambda: "is no engine that the check of a lesson has kept" in find(page, "#ls-status").text)
    assert mine(page) == own


def test_python_comes_from_the_site_itself_and_is_there_when_a_reader_comes_again(page: Any, address: str) -> None:
    """Nothing is loaded for who only reads; who has run a cell finds Python started on the next page."""
    worker = "return performance.getEntriesByType('resource').some((e) => e.name.endsWith('lessons/worker.js'))"
    show(page, address, 0, "")
    assert not page.execute_script(worker)
    assert [ran(page, 0), page.execute_script(worker)] == ["has run", True]
    loaded = page.execute_script("return localStorage.getItem('wengert-runtime')")
    assert loaded == f"{address}_static/pyodide/"
    show(page, address, 1, "")
    until(lambda: page.execute_script(worker))
    assert find(page, "#ls-status").text == "", "nobody has asked for it"
    assert ran(page, 0) == "has run"


def test_what_the_lessons_import_is_taken_along_or_its_address_is(tmp_path: Path) -> None:
    """A library is only taken if it is the one that the runtime was made with."""
    pytest.importorskip("sphinx", reason="needs Sphinx: pip install '.[docs]'")
    made, network = runpy.run_path(str(ROOT / "docs" / "_ext" / "playground.py")), tmp_path / "network"
    found = tmp_path / "found"
    found.mkdir(), network.mkdir()
    for name in made["RUNTIME"]:
        (found / name).write_text(name)
    (found / "package.json").write_text('{"version": "1.2.3"}')
    needs = {"numpy": [], "matplotlib": ["numpy", "cycler"], "cycler": [], "scipy": ["numpy"]}
    packages = {
        name: {"file_name": f"{name}.whl", "sha256": hashlib.sha256(name.encode()).hexdigest(), "depends": needed}
        for name, needed in needs.items()
    }
    (found / "pyodide-lock.json").write_text(json.dumps({"packages": packages}))

    def taken(folder: str) -> dict[str, str]:
        made["beside"](found, tmp_path / folder, f"{network.as_uri()}/")
        lock = json.loads((tmp_path / folder / "pyodide-lock.json").read_text())
        assert {path.name for path in (tmp_path / folder).iterdir()} >= {*made["RUNTIME"]}
        return {name: package["file_name"] for name, package in lock["packages"].items()}

    away = {name: f"{network.as_uri()}/{name}.whl" for name in needs}
    assert taken("none") == away
    for name in needs:
        (network / f"{name}.whl").write_text(name)
    assert taken("all") == {name: f"{name}.whl" for name in needs} | {"scipy": away["scipy"]}
    assert (tmp_path / "all" / "cycler.whl").read_text() == "cycler"
    (network / "numpy.whl").write_text("another")
    assert taken("another")["numpy"] == away["numpy"]
    assert not (tmp_path / "another" / "numpy.whl").exists()


# -- a cell that does not end, or fails -------------------------------------------------------------------------------


def test_a_loop_without_an_end_is_stopped_and_the_page_goes_on(page: Any, address: str) -> None:
    """By the button, and by itself when its time is up; what earlier cells had made is made again on request."""
    show(page, address, 1)
    assert find(page, "#ls").get_attribute("data-limit") == "20"
    write(page, 0, "begun = 7\nbegun")
    write(page, 2, "print('so far')\nwhile True:\n    pass")
    assert ran(page, 0) == "has run"
    press(page, ".lc-run", 2)
    until(lambda: "so far" in out(page, 2).text)
    press(page, ".lc.running .lc-run")
    wait(page)
    assert told(page, 2).startswith("stopped. Python begins anew")
    assert out(page, 2).text == "so far", "what it has printed is still there"
    page.execute_script("document.getElementById('ls').dataset.limit = 1")
    press(page, ".lc-run", 2)
    wait(page)
    assert told(page, 2).startswith("stopped after 1 seconds. Python begins anew")
    page.execute_script("document.getElementById('ls').dataset.limit = 20")
    write(page, 2, "begun + 1")
    assert ran(page, 2) == "NameError: name 'begun' is not defined"
    write(page, 1, "begun += 10")
    press(page, ".lc:has(.lc-note.wrong) button:last-child")
    wait(page)
    assert [told(page, place) for place in range(3)] == ["has run"] * 3
    assert out(page, 2).text == "18"


def test_a_walk_that_doubles_at_each_step_is_named_and_not_waited_for(page: Any, address: str) -> None:
    """There are no processes in a browser: what the check tries is ended by itself when it takes too long."""
    go_on(page, 4)
    show(page, address, 5)
    write(page, 0, codes(5)[0].replace("if node not in visited:", "if True:"))
    ran(page, 0)
    assert ran(page, 1).startswith("✗ Something is wrong")
    assert "visited again" in out(page, 1).text


def test_what_fails_says_where_and_no_other_cell_is_run_after_it(page: Any, address: str) -> None:
    show(page, address, 0)
    write(page, 1, "def half(n):\n    return n / 0\n\n\nhalf(3)")
    press(page, "#ls-all")
    wait(page)
    assert [told(page, place) for place in range(3)] == ["has run", "ZeroDivisionError: division by zero", ""]
    said = out(page, 1).text
    assert 'File "cell 2", line 5' in said
    assert "return n / 0" in said
    assert "cells.py" not in said
    write(page, 1, "import nothing_of_this_name")
    assert ran(page, 1) == "ModuleNotFoundError: No module named 'nothing_of_this_name'"
    write(page, 1, "h = (1")
    assert ran(page, 1) == "SyntaxError: '(' was never closed"
    write(page, 1, "for i in range(30_000): print('much')")
    assert ran(page, 1) == "has run"
    assert out(page, 1).text.endswith("(and more, which is not shown)")


def test_a_graph_that_a_browser_cannot_give_back_ends_python_and_not_the_page(page: Any, address: str) -> None:
    show(page, address, 0)
    ran(page, 0)
    write(
        page, 1, "nested = None\nfor _ in range(200_000):\n    nested = (nested,).__iter__()\ndel nested\n'still here'"
    )
    if ran(page, 1) != "has run":  # what is too deep for a browser, browsers decide
        assert told(page, 1).startswith("Python has ended, at a graph that is too deep")
        assert ran(page, 0) == "has run"


# -- what is written is the reader's ----------------------------------------------------------------------------------


def test_what_is_written_is_kept_taken_along_brought_back_and_reset(page: Any, address: str, tmp_path: Path) -> None:
    page.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)})
    show(page, address, 1)
    own = codes(1)[1].replace('f"Value({self.data})"', '"Value of " + str(self.data)')
    write(page, 1, own)
    assert [e.is_displayed() for e in page.find_elements("css selector", "[aria-label^='Reset cell']")][:4] == [
        False,
        True,
        False,
        False,
    ]
    ran(page, 0), ran(page, 1), ran(page, 2)
    page.refresh()
    until(lambda: find(page, "#ls").is_displayed())
    assert texts(page)[1] == own
    press(page, "#ls-save")
    file = tmp_path / f"{LESSONS[1].name}.ipynb"
    until(file.exists)
    saved, wanted = json.loads(file.read_text(encoding="utf-8")), LESSONS[1].notebook()
    changed = [i for i, (one, two) in enumerate(zip(saved["cells"], wanted["cells"], strict=True)) if one != two]
    assert ["".join(saved["cells"][i]["source"]) for i in changed] == [own]
    press(page, ".lc [aria-label='Reset cell 2']")
    assert texts(page) == codes(1, solved=False)
    find(page, "#ls-file").send_keys(str(file))
    until(lambda: texts(page)[1] == own)
    assert "brought back" in find(page, "#ls-status").text
    press(page, "#ls-reset")
    page.switch_to.alert.accept()
    assert texts(page) == codes(1, solved=False)
    (tmp_path / "no.ipynb").write_text("no")
    (tmp_path / "two.ipynb").write_text(json.dumps(LESSONS[2].notebook()))
    for name, said in (("no", "is no notebook:"), ("two", "is no notebook of this lesson")):
        find(page, "#ls-file").send_keys(str(tmp_path / f"{name}.ipynb"))
        until(lambda said=said: said in find(page, "#ls-status").text)
    page.get(f"{address}course.html")
    assert find(page, "#ls-far").text == "You have done 1 of 13 lessons in this browser."
    assert [e.text for e in page.find_elements("css selector", ".ls-far")] == ["✓ done"]


def test_a_cell_is_written_run_and_left_by_keys_alone(page: Any, address: str) -> None:
    from selenium.webdriver import ActionChains, Keys

    show(page, address, 0)
    page.execute_script("document.querySelectorAll('.lc-editor textarea')[1].focus()")

    def type_in(*keys: str) -> None:
        ActionChains(page).send_keys(*keys).perform()

    ActionChains(page).key_down(Keys.CONTROL).send_keys("a").key_up(Keys.CONTROL).perform()
    type_in("def half(n):", Keys.ENTER, "return n / 2", Keys.ENTER, "x = 5", Keys.ENTER, Keys.TAB, "y = 6")
    assert texts(page)[1] == "def half(n):\n    return n / 2\nx = 5\n    y = 6"
    type_in(Keys.HOME, *[Keys.ARROW_RIGHT] * 4, Keys.BACKSPACE)
    ActionChains(page).key_down(Keys.SHIFT).send_keys(Keys.ARROW_UP).key_up(Keys.SHIFT).perform()
    type_in(Keys.TAB)
    assert texts(page)[1] == "def half(n):\n    return n / 2\n    x = 5\n    y = 6"
    ActionChains(page).key_down(Keys.SHIFT).send_keys(Keys.TAB).key_up(Keys.SHIFT).perform()
    assert texts(page)[1] == "def half(n):\n    return n / 2\nx = 5\ny = 6"
    ActionChains(page).key_down(Keys.CONTROL).send_keys("z").key_up(Keys.CONTROL).perform()
    assert texts(page)[1].endswith("\n    x = 5\n    y = 6"), "and can be undone"
    ActionChains(page).key_down(Keys.CONTROL).send_keys("a").key_up(Keys.CONTROL).perform()
    type_in("6 * 7")
    ActionChains(page).key_down(Keys.CONTROL).send_keys(Keys.ENTER).key_up(Keys.CONTROL).perform()
    wait(page)
    assert out(page, 1).text == "42"
    type_in(Keys.ESCAPE, Keys.TAB)
    assert page.execute_script("return document.activeElement.ariaLabel") == "Run cell 2"
    type_in(Keys.ENTER)
    wait(page)
    assert told(page, 1) == "has run"
    type_in(Keys.TAB)
    assert page.execute_script("return document.activeElement.ariaLabel") == "Reset cell 2"


# -- looks ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [pytest.param(1366, marks=pytest.mark.nightly), 390])
def test_what_comes_of_cells_fits_and_can_be_read_at_both_widths_in_light_and_dark(
    page: Any, address: str, axe: str, width: int
) -> None:
    resize(page, width)
    go_on(page, 4)
    show(page, address, 5)
    write(page, 0, codes(5)[0].replace("reversed(order)", "order"))
    for place in range(6):
        ran(page, place)
    write(page, 3, "1 / 0")
    ran(page, 3)
    page.execute_script(axe)
    for theme in ("light", "dark"):
        paint(page, theme)
        found = page.execute_async_script(AUDIT)
        assert {rule["id"]: [node["html"][:200] for node in rule["nodes"]] for rule in found} == {}, theme
        for place in (1, 2):
            page.execute_script("arguments[0].scrollIntoView({behavior: 'instant'})", out(page, place))
            keep(page, f"lesson-{place}-{width}-{theme}")
    assert page.execute_script("return document.documentElement.scrollWidth") == width
    if width < 500:
        small = """
            return [...document.querySelectorAll(".ls button, .lc button")].filter((e) => e.checkVisibility()
              && e.getBoundingClientRect().height < 44).map((e) => e.outerHTML)
        """
        assert page.execute_script(small) == []
        says = out(page, 1).text.split("What is wrong")[1].split("at a =")[0]
        assert max(map(len, says.splitlines())) < 60, "the sentences of a verdict are as wide as the telephone"


def test_letters_lie_over_their_coloured_copies(page: Any, address: str) -> None:
    show(page, address, 7)
    script = """
        return [...document.querySelectorAll(".lc-editor")].filter((e) => e.checkVisibility()).map((e) =>
          [...e.querySelectorAll("pre, textarea")].map((part) => {
            const { font, letterSpacing, padding, tabSize } = getComputedStyle(part);
            const { clientWidth, clientHeight, scrollWidth, scrollHeight } = part;
            return [font, letterSpacing, padding, tabSize, clientWidth, clientHeight, scrollWidth, scrollHeight].join();
          }))
    """
    for under, field in page.execute_script(script):
        assert under == field


def test_without_scripts_the_page_reads_as_it_was_written(page: Any, address: str) -> None:
    page.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        page.get(f"{address}course/{LESSONS[5].name}.html")
        assert not find(page, "#ls").is_displayed()
        assert page.find_elements("css selector", ".lc") == []
        article = find(page, "article").text
        assert "# YOUR CODE HERE: backward" in article
        assert "10 of 10 right" in article
    finally:
        page.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def test_what_cannot_be_loaded_is_said(page: Any, address: str) -> None:
    page.get(f"{address}course/{LESSONS[0].name}.html?runtime=nowhere/")
    until(lambda: find(page, "#ls").is_displayed())
    press(page, ".lc-run")
    until(lambda: "Python cannot be loaded" in find(page, "#ls-status").text)
    assert told(page, 0) == "Python is not here"
    assert texts(page) == codes(0, solved=False)
