"""The documentation as it is built: every name and page of the reference, the search, what machines read."""

from __future__ import annotations

import html
import inspect
import json
import re
import runpy
import xml.etree.ElementTree as ET
import zlib
from importlib import import_module
from inspect import isclass, isfunction
from pathlib import Path
from typing import Any

import pytest

import wengert
import wengert_course
from tests.docs.test_gallery import examples
from tools.qa import links
from wengert import nn

pytestmark = pytest.mark.once  # pages are read, which were built on one engine
DOCS = Path(__file__).resolve().parents[2] / "docs"


def entries(site: Path) -> dict[str, str]:
    """The names of the reference, and where their entries are."""
    _, _, body = (site / "objects.inv").read_bytes().partition(b"zlib.\n")
    lines = [line.split() for line in zlib.decompress(body).decode().splitlines()]
    return {name: place.replace("$", name) for name, kind, _, place, *_ in lines if kind.startswith("py:")}


def test_no_link_is_dead(site: Path) -> None:
    assert list(links.faults(site)) == []


def test_every_public_name_has_an_entry(site: Path) -> None:
    known = entries(site)
    missing = [name for name in wengert.__all__ if name != "__version__" and f"wengert.{name}" not in known]
    written = "".join(path.read_text(encoding="utf-8") for path in DOCS.glob("api/*.md"))
    modules = re.findall(r"automodule:: (wengert\.[\w.]+)\n *:members:", written)
    assert len(modules) > 15
    for module in modules:
        if module != "wengert.estimator":  # which needs scikit-learn; its names are pinned below
            thing = import_module(module)
            own = [name for name in thing.__all__ if isclass(value := getattr(thing, name)) or isfunction(value)]
            missing += [f"{module}.{n}" for n in own if not {f"{module}.{n}", f"wengert.{n}"} & known.keys()]
    assert missing == []
    assert known["wengert.estimator.WengertClassifier"].startswith("api/estimator.html#")


@pytest.mark.parametrize("kind", [nn.Neuron, nn.Layer, nn.MLP])
def test_a_class_of_networks_shows_each_argument_and_default_and_describes_it(site: Path, kind: type) -> None:
    page = (site / "api" / "nn.html").read_text(encoding="utf-8")
    entry = page.partition(f'<dt class="sig sig-object py" id="wengert.nn.{kind.__name__}">')[2]
    head, _, rest = entry.partition("</dt>")
    shown = html.unescape(re.sub("<[^>]+>", "", head))
    described = rest.partition('<dl class="py ')[0]
    assert "Make a Module" not in described
    for argument in inspect.signature(kind).parameters.values():
        default = "" if argument.default is argument.empty else f"={argument.default!r}"
        assert f"{argument.name}{default}" in shown
        assert f"<strong>{argument.name}</strong>" in described
    assert "each Neuron" not in described


def test_an_entry_shows_the_pictures_of_the_gallery_that_use_it(site: Path) -> None:
    page = (site / "api" / "view.plots.html").read_text(encoding="utf-8")
    entry = page.partition('id="wengert.view.plots.plot_function"')[2].partition('<dl class="py ')[0]
    shown = re.findall(r'href="\.\./gallery\.html#([\w-]+)"><img alt="" [^>]*src="\.\./_images/', entry)
    assert shown == ["a-function-and-its-derivative", "a-kink", "the-second-derivative", "through-a-loop"]


def test_names_in_prose_lead_to_their_entries(site: Path) -> None:
    page = (site / "pictures.html").read_text(encoding="utf-8")
    assert re.search(r'<a class="reference internal" href="api/view\.graph\.html#wengert\.draw"[^>]*><code', page)
    lesson = (site / "course" / "01_a_number_that_remembers.html").read_text(encoding="utf-8")
    assert "#wengert.Value" not in lesson, "the Value of the lessons is the reader's"
    table = (site / "api" / "wengert.html").read_text(encoding="utf-8")
    (row,) = re.findall(r'<tr [^>]*id="wengert\.softplus">.*?</tr>', table, re.DOTALL)
    assert "<a " not in row, "nothing leads to where it stands"
    started = (site / "getting-started.html").read_text(encoding="utf-8")
    assert 'href="api/view.plots.html#wengert.view.plots.plot_decision_boundary"' in started


def index(site: Path) -> dict[str, Any]:
    """What the search knows."""
    text = (site / "searchindex.js").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text.removeprefix("Search.setIndex(").removesuffix(")"))
    return found


def test_the_search_finds_a_decision_boundary(site: Path) -> None:
    known = index(site)

    def pages(stem: str) -> set[str]:
        places = [known[table].get(stem, []) for table in ("terms", "titleterms")]
        numbers = {n for place in places for n in (place if isinstance(place, list) else [place])}
        return {known["docnames"][n] for n in numbers}

    found = pages("decis") & pages("boundari")
    assert {"gallery", "api/view.plots", "getting-started"} <= found
    assert "a decision boundary" in {title.lower() for title in known["alltitles"]}


def test_machines_are_told_what_every_page_says(site: Path) -> None:
    told = (site / "llms.txt").read_text(encoding="utf-8")
    assert told.startswith("# Wengert\n\n> Write scalars, run tensors: a scalar autograd engine for Python")
    pages = re.findall(r"^ *- \[([^\]]+)\]\(([^)]+)\)(: .+[.:!?])?$", told, re.MULTILINE)
    assert {page for _, page, _ in pages} >= {"getting-started.html", "api/nn.html", "course/06_used_twice.html"}
    assert [page for _, page, _ in pages if not (site / page).is_file()] == []
    written = {path.relative_to(DOCS).with_suffix(".html").as_posix() for path in DOCS.glob("*.md")}
    assert written - {page for _, page, _ in pages} == {"index.html"}
    assert sum(bool(sentence) for *_, sentence in pages) > 0.8 * len(pages)


def test_formulas_are_set_without_a_script(site: Path) -> None:
    page = (site / "three-ways.html").read_text(encoding="utf-8")
    assert page.count("<math") > 20
    assert not re.search(r"<script[^>]*mathjax", page, re.IGNORECASE)


def test_every_picture_says_what_it_shows(site: Path) -> None:
    for path in site.rglob("*.html"):
        if not path.is_relative_to(site / "_static"):
            images = re.findall(r"<img [^>]*>", path.read_text(encoding="utf-8"))
            silent = [image for image in images if not re.search(r'alt="[^"]+"', image) and 'alt=""' not in image]
            assert silent == [], path


def test_the_gallery_has_a_picture_of_each_example(site: Path) -> None:
    page = (site / "gallery.html").read_text(encoding="utf-8")
    grid, rest = re.fullmatch(r'.*?<ul class="thumbnails[^"]*">(.*?)</ul>(.*)', page, re.DOTALL).groups()  # type: ignore[union-attr]
    assert len(re.findall(r'<a class="reference internal" href="#[\w-]+"><img alt=""', grid)) == 24
    assert len(examples()) == 24
    for example in examples():
        (source,) = re.findall(rf'<img alt="{re.escape(example.alt)}" [^>]*src="([^"]+)"', rest.replace("&gt;", ">"))
        assert (site / source).stat().st_size > 1000


@pytest.mark.parametrize(
    ("page", "file"),
    [
        ("lifting", "docs/lifting.md"),
        ("api/nn", "docs/api/nn.md"),
        ("contributing", "CONTRIBUTING.md"),
        ("course/06_used_twice", "course/src/wengert_course/lessons/_06_used_twice.py"),
    ],
)
def test_a_page_links_to_where_it_is_written(monkeypatch: pytest.MonkeyPatch, page: str, file: str) -> None:
    sources = runpy.run_path(str(DOCS / "_ext" / "sources.py"))
    assert (DOCS.parent / file).is_file()
    context: dict[str, str] = {}
    monkeypatch.delenv("GITHUB_REPOSITORY", raising=False)
    sources["link"](None, page, "page.html", context, object())
    assert context == {}, "no address is known, and none is made up"
    monkeypatch.setenv("GITHUB_SERVER_URL", "https://github.com")
    monkeypatch.setenv("GITHUB_REPOSITORY", "somebody/wengert")
    sources["link"](None, page, "page.html", context, object())
    assert context["theme_source_edit_link"] == f"https://github.com/somebody/wengert/edit/main/{file}"
    assert context["theme_source_view_link"] == f"https://github.com/somebody/wengert/blob/main/{file}"


def test_a_page_says_how_to_clone_where_the_address_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    sources = runpy.run_path(str(DOCS / "_ext" / "sources.py"))
    monkeypatch.delenv("GITHUB_REPOSITORY", raising=False)
    for address in ("", "https://github.com/somebody/wengert"):
        for page in ("index", "getting-started", "course"):
            written = (DOCS / f"{page}.md").read_text(encoding="utf-8")
            source = [written]
            sources["clone"](None, page, source)
            assert source[0].count("clone of the repository") >= 1
            cloned = f"```sh\ngit clone {address} wengert && cd wengert\npip install "
            assert (cloned in source[0]) if address else source == [written]
        monkeypatch.setenv("GITHUB_SERVER_URL", "https://github.com")
        monkeypatch.setenv("GITHUB_REPOSITORY", "somebody/wengert")


def test_the_first_page_leads_to_lesson_1_in_one_click(site: Path) -> None:
    for page in ("index.html", "course.html"):
        text = (site / page).read_text(encoding="utf-8")
        link = r'href="course/01_a_number_that_remembers.html">(?:<[^>]*>)*Start lesson 1, here'
        assert re.search(link, text), page


def test_a_shared_link_and_a_search_engine_are_told_what_a_page_is(site: Path) -> None:
    for page in ("index", "stepping", "course/06_used_twice"):
        head = (site / f"{page}.html").read_text(encoding="utf-8").partition("</head>")[0]
        (described,) = re.findall(r'<meta name="description" content="([^"]{25,})">', head)
        told = dict(re.findall(r'<meta property="og:(\w+)" content="([^"]+)">', head))
        assert told["description"] == described
        assert told["title"]
        assert told["type"] == "website"
    assert (site / "_static" / "preview.png").stat().st_size > 10_000


def test_pages_are_called_what_people_search_for(site: Path) -> None:
    front = (site / "index.html").read_text(encoding="utf-8").partition('<div class="sidebar-tree">')[2]
    named = re.findall(r'class="toctree-l1[^"]*"><a [^>]*>([^<:,]+)', front)
    wanted = ["Getting started", "Tutorial", "Playground", "Gallery", "Coming from micrograd", "FAQ", "API reference"]
    assert named[:7] == wanted
    assert {"Glossary", "Diagnosis", "Compiling", "Integrations", "Checkpoints", "Benchmarks"} <= {*named}


@pytest.mark.parametrize("lesson", wengert_course.lessons(), ids=str)
def test_a_lesson_can_be_downloaded_as_the_notebook_that_learners_fill_in(site: Path, lesson: Any) -> None:
    page = (site / "course" / f"{lesson.name}.html").read_text(encoding="utf-8")
    (source,) = re.findall(r'<a class="reference download internal" [^>]*href="\.\./(_downloads/[^"]+\.ipynb)"', page)
    cells = json.loads((site / source).read_text(encoding="utf-8"))["cells"]
    assert any("YOUR CODE HERE" in "".join(cell["source"]) for cell in cells)
    assert all(not cell.get("outputs") for cell in cells)


def test_plots_are_dark_on_dark_pages(site: Path) -> None:
    drawn = [path.read_text(encoding="utf-8") for path in (site / "_images").glob("*.svg")]
    plots = [text for text in drawn if "<dc:title>Matplotlib v" in text]
    assert len(plots) > 15
    for text in plots:
        assert text.count("@media (prefers-color-scheme: dark)") == 1
        ET.fromstring(text)  # it is still a picture
    pages = "".join(path.read_text(encoding="utf-8") for path in site.glob("**/*.html"))
    assert re.findall(r'<img [^>]*src="[./]*_images/[^"]*\.png"', pages) == [], "every plot is one that can be dark"
