"""What looks for dead links finds them; and the texts that stand outside of the documentation have none."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools.qa import links

pytestmark = pytest.mark.once  # files are read, and nothing is computed
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A page of which every link leads somewhere."""
    (tmp_path / "_static").mkdir()
    (tmp_path / "_static" / "style.css").write_text("p { background: url(paper.png) }")
    (tmp_path / "_static" / "paper.png").write_bytes(b"")
    (tmp_path / "_static" / "piece.html").write_text('<a href="_static/paper.png">seen from the page that has it</a>')
    (tmp_path / "other.html").write_text('<h2 id="here">Here</h2>')
    (tmp_path / "index.html").write_text(
        '<!doctype html><link rel="stylesheet" href="_static/style.css"><img src="data:,">'
        '<p id="end"><a href="#end">end</a>'
        '<a href="other.html#here">here</a><a href="https://www.example.org/a?b#c">there</a>'
    )
    return tmp_path


def test_a_whole_site_has_no_dead_link(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert links.main([str(site)]) == 0
    assert capsys.readouterr().out == "no dead link in 3 files\n"


@pytest.mark.parametrize(
    ("tag", "told"),
    [
        ('<a href="gone.html">', "gone.html leads to no file"),
        ('<a href="#nowhere">', "#nowhere has no place 'nowhere'"),
        ('<a href="other.html#there">', "other.html#there has no place 'there'"),
        ('<a href="../out.html">', "../out.html leads to no file"),
        ('<img src="gone.png">', "gone.png leads to no file"),
        ('<img srcset="gone.png 2x">', "gone.png leads to no file"),
        ('<img src="https://www.example.org/a.png">', "https://www.example.org/a.png is loaded from elsewhere"),
        ('<script src="//cdn.example.org/a.js">', "//cdn.example.org/a.js is loaded from elsewhere"),
        ('<a href="http://www.example.org">', "http://www.example.org is no well-formed https address"),
        ('<a href="https://example">', "https://example is no well-formed https address"),
        ('<a href="https://www.example.org/a b">', "https://www.example.org/a b is no well-formed https address"),
    ],
)
def test_a_dead_link_is_told(site: Path, capsys: pytest.CaptureFixture[str], tag: str, told: str) -> None:
    with (site / "index.html").open("a") as page:
        page.write(tag)
    assert links.main([str(site)]) == 1
    assert capsys.readouterr().out == f"index.html: {told}\n"


def test_what_a_style_loads_is_looked_at_too(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (site / "_static" / "paper.png").unlink()
    assert links.main([str(site)]) == 1
    assert capsys.readouterr().out == "_static/style.css: paper.png leads to no file\n"


def test_a_folder_without_a_site_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SystemExit):
        links.main([str(tmp_path)])


def anchors(path: Path) -> set[str]:
    """The places in a text, as they are made of its headings."""
    headings = re.findall(r"^#+ (.*)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"])
def test_the_links_of_the_texts_beside_the_documentation(name: str) -> None:
    text = re.sub(r"^```.*?^```", "", (ROOT / name).read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for address in re.findall(r"\]\(([^)\s]+)\)|(?:src|srcset)=\"([^\"]+)\"", text):
        file, _, place = "".join(address).partition("#")
        if not file.startswith(("http", "mailto")):
            target = ROOT / (file or name)
            assert target.exists(), f"{name}: {file}"
            assert not place or place in anchors(target), f"{name}: {file}#{place}"
