"""Drawings in a real browser, Chromium without a window: what it makes of them, measured with its own fonts.

A script that the test adds to a page measures every text, and what it finds is read from the page that Chromium writes
out. WENGERT_SCREENSHOTS names a folder in which pictures of the pages are to be kept.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path

import pytest

import wengert
from tests.view.drawn import moons, neuron
from tests.view.test_labels import hostile
from wengert import Value, draw

pytestmark = [pytest.mark.browser, pytest.mark.once]

MEASURE = """
<pre id="found"></pre><script>
function measure() {
const found = {out: [], texts: 0, images: document.images.length, scripts: document.scripts.length,
               tags: [...new Set([...document.querySelectorAll("svg *")].map(e => e.localName))].sort(),
               alive: window.alive === undefined, shown: []};
for (const group of document.querySelectorAll("svg g")) {
  const cards = group.querySelectorAll(":scope > rect.card"), pill = group.querySelector(":scope > rect.pill");
  if (!cards.length) continue;
  for (const text of group.querySelectorAll(":scope > text")) {
    found.texts++;
    const t = text.getBBox(), c = cards[cards.length - 1].getBBox(), p = pill ? pill.getBBox() : c;
    const room = pill && t.x < p.x + p.width ? p : c;
    if (t.x < room.x - 0.5 || t.x + t.width > room.x + room.width + 0.5 || t.width < 0)
      found.out.push([text.textContent, t.x, t.width, room.x, room.width]);
  }
}
for (const section of document.querySelectorAll("section"))
  if (getComputedStyle(section).display != "none") found.shown.push(section.id);
found.paper = document.querySelector("rect.paper") && getComputedStyle(document.querySelector("rect.paper")).fill;
document.getElementById("found").textContent = JSON.stringify(found);
}
addEventListener("load", () => {
  const link = document.querySelector(CLICK);
  addEventListener("hashchange", measure);
  if (link) link.dispatchEvent(new MouseEvent("click", {bubbles: true, cancelable: true}));
  else measure();
});
</script>
"""


def chromium(path: Path, *arguments: str) -> str:
    """What Chromium writes out of a page."""
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if not program:
        pytest.skip("needs Chromium: apt-get install chromium")
    command = [program, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-dev-shm-usage"]
    command += [f"--user-data-dir={path.parent / 'profile'}", *arguments, path.as_uri()]
    return subprocess.run(command, capture_output=True, timeout=120, check=True).stdout.decode("utf-8")


def measured(page: str, tmp_path: Path, *arguments: str, click: str = "#nothing") -> dict[str, object]:
    """What the script found on a page, after a click on an element of it; the page's own policy, which would forbid the
    script, is taken out for that.
    """
    path = tmp_path / "page.html"
    page = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", page)
    script = MEASURE.replace("CLICK", json.dumps(click))
    path.write_text(page.replace("</body>", script + "</body>"), encoding="utf-8")
    written = chromium(path, "--dump-dom", "--virtual-time-budget=5000", *arguments)
    found = re.search(r'<pre id="found">(.*?)</pre>', written, re.DOTALL)
    assert found, written[-500:]
    result: dict[str, object] = json.loads(unescape(found[1]))
    if folder := os.environ.get("WENGERT_SCREENSHOTS"):
        target = Path(folder) / f"{tmp_path.name}{len(os.listdir(folder))}.png"
        chromium(path, f"--screenshot={target}", "--window-size=1600,1000", "--virtual-time-budget=5000", *arguments)
    return result


def page(*drawings: str) -> str:
    return f'<!doctype html><html lang="en"><meta charset="utf-8"><body>{"".join(drawings)}</body></html>'


def test_two_hundred_hostile_labels(tmp_path: Path) -> None:
    labels = hostile(200)
    drawings = []
    for start in range(0, 200, 50):
        root = wengert.sum([Value(1.0, label) for label in labels[start : start + 50]])
        root.label = labels[start]
        drawings.append(draw(root).svg)
    found = measured(page(*drawings), tmp_path)
    assert found["out"] == []
    assert found["texts"] == 200 * 5 + 4 * 6 - sum(5 - 4 for label in labels if not label)
    assert found["tags"] == ["g", "path", "rect", "style", "text", "title"]
    assert (found["images"], found["scripts"], found["alive"]) == (0, 1, True)


def test_two_drawings_on_one_page_leave_each_other_alone(tmp_path: Path) -> None:
    o, _ = neuron()
    o.backward()
    found = measured(page(draw(o).svg, draw(neuron()[0]).svg, "<p class='card'>text</p>"), tmp_path)
    assert found["out"] == []
    assert found["paper"] == "rgb(255, 255, 255)"


def test_a_dark_page(tmp_path: Path) -> None:
    found = measured(page(draw(neuron()[0]).svg), tmp_path, "--blink-settings=preferredColorScheme=0")
    assert found["paper"] == "rgb(18, 22, 27)"


def test_a_click_unfolds_a_part(tmp_path: Path) -> None:
    draw(moons(5), limit=50).save(tmp_path / "g.html")
    text = (tmp_path / "g.html").read_text(encoding="utf-8")
    found = measured(text, tmp_path)
    assert found["shown"] == ["everything"]
    assert found["out"] == []
    for link in re.findall(r'<a href="#(part-\d+)"><g class="fold', text)[:1]:
        found = measured(text, tmp_path, click=f'a[href="#{link}"] text')
        assert found["shown"] == [link]


def test_the_policy_of_the_page_forbids_scripts(tmp_path: Path) -> None:
    path = tmp_path / "g.html"
    draw(neuron()[0]).save(path)
    script = "<script>document.body.innerHTML = 'it ran'</script><img src='https://example.org/x.png'>"
    path.write_text(path.read_text(encoding="utf-8").replace("</body>", script + "</body>"), encoding="utf-8")
    written = chromium(path, "--dump-dom")
    assert "it ran" not in re.sub("<script>.*?</script>", "", written)
    assert "x1" in written
