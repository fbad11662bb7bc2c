"""The examples of the gallery: twenty-four, short, each of which makes its picture by the library alone, or shows what
it finds with the code of other packages.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import wengert

pytestmark = [pytest.mark.once, pytest.mark.plot]  # what is drawn does not depend on the engine
PAGE = Path(__file__).resolve().parents[2] / "docs" / "gallery.md"
EXAMPLE = re.compile(
    r'^### (.*?)\n\n.*?^  image: \{(?:classes: plot, )?alt: "(.*?)"\}\n---\n(.*?)^```', re.DOTALL | re.MULTILINE
)


WITH_OTHERS = ("Equally far from three towns", "Colours of equal lightness")


class Example(NamedTuple):
    title: str
    alt: str
    code: str


def examples() -> list[Example]:
    return [Example(*found) for found in EXAMPLE.findall(PAGE.read_text(encoding="utf-8"))]


def test_there_are_twenty_four_and_each_is_short() -> None:
    told = examples()
    assert len(told) == 24
    assert len({example.title for example in told}) == len({example.alt for example in told}) == 24
    assert [example.title for example in told if len(example.code.splitlines()) > 17] == []
    assert PAGE.read_text(encoding="utf-8").count("```{code-cell}") == 25, "and the one that settles the format"


def test_each_makes_its_picture() -> None:
    """One after the other, as on the page: the last line of each is a drawing, or axes of the library."""
    pytest.importorskip("IPython", reason="needs IPython")
    for package in ("geographiclib", "hsluv", "numpy_financial", "scipy"):
        pytest.importorskip(package, reason=f"needs {package}")
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    names: dict[str, Any] = {}
    for title, _, code in examples():
        *lines, last = code.rstrip().rstrip(";").splitlines()
        exec("\n".join(lines), names)
        shown = eval(last, names)
        svg = getattr(shown, "svg", None) or getattr(shown, "data", None)
        assert (svg and "<svg" in svg) or shown.has_data() or shown.texts, title
        by_itself = last.startswith(("draw(", "plot_", "SVG(why.svg()"))
        assert by_itself or (last == "axes" and title in WITH_OTHERS), f"{title}: by the library itself"
        plt.close("all")
    hold(names)


def hold(names: dict[str, Any]) -> None:
    """What the page says of them in words and numbers."""
    text = PAGE.read_text(encoding="utf-8")
    assert f"a network of {len(list(names['reader'].parameters())):,} Values" in text
    assert [round(names["gate"](x).data) for x in ([0, 0], [0, 1], [1, 0], [1, 1])] == [-1, 1, 1, -1]
    first, *_, last = [[abs(p.grad) for p in layer.parameters()] for layer in names["deep"].layers]
    assert 35 < (sum(last) / len(last)) / (sum(first) / len(first)) < 50, "forty times smaller"
    found, earth = names["found"], names["earth"]
    ways = [earth.Inverse(*found.x, *town)["s12"] for town in names["towns"].values()]
    assert max(ways) - min(ways) < 1.0
    assert 9 <= found.nfev <= 15, "a dozen calls"
    lightness = [names["hsluv"].rgb_to_lch(rgb)[0] for rgb in names["even"]]
    assert lightness == pytest.approx([55.0] * 12, abs=1e-5)
    assert all(0.0 <= x <= 1.0 for rgb in names["even"] for x in rgb)
    assert round(wengert.grad(names["payment"])(4.0)) == 115
