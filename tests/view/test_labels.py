"""Labels, names and symbols in drawings, a stranger's too: whatever they hold stays text, and stays small."""

from __future__ import annotations

import random
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

import wengert
from tests.view.drawn import texts, titles
from tests.view.geometry import faults, read
from wengert import Value, draw, nn, tree


def test_a_label_of_any_length() -> None:
    x = Value(1.0, "a" * 10_000)
    svg = draw(x * 2).svg
    assert "a" * 10_000 in titles(svg)[0] + titles(svg)[1]
    assert max(map(len, texts(svg))) <= 24
    endless = Value(1.0, "b" * 3_000_000)
    drawn = draw(endless * 2)
    assert len(drawn.svg) < 30_000
    assert len(drawn.to_dot()) + len(tree(endless)) < 5_000
    assert faults(svg) == []


HOSTILE = [
    "<script>alert(1)</script>",
    "</text></svg><img src=x onerror=alert(1)>",
    "]]>",
    "<!--",
    "&lt;b&gt;",
    "&#x41;&amp;",
    '"',
    "'",
    '" onload="alert(1)',
    "' onmouseover='alert(1)",
    "`x`",
    "javascript:alert(1)",
    "https://example.org/?a=1&b=2",
    "url(https://example.org/x.png)",
    "}</style><style>*{display:none}",
    "*{fill:red}",
    "\\",
    "\\N\\G\\l",
    "{a|b}",
    "|",
    "a\nb\r\nc\td",
    "\x00\x01\x07\x1b[31mred",
    "\x7f\x80\x9f",
    "\ud800\udfff",
    "\ufffe\uffff",
    "\u202eevil\u202c",
    "\u2066\u2067\u2068\u2069",
    "\u200f\u200e\u061c",
    "שלום",
    "مرحبا ﷽",
    "数学 グラフ 그래프",
    "👩‍👩‍👧‍👦🏳️‍🌈",
    "Z̷̢̛͔͙̮͎a̶l̸g̵o̴" + "\u0301" * 50,
    "\u3000\u2003\u00a0",
    "\u2028\u2029\u0085",
    "\U000e0001\U0010ffff",
    "ａｂｃ",
    "%s %d {0} {x}",
    "$x^2$ \\frac{1}{2}",
    "-->",
    "1. a list",
    "# a heading",
    "end",
    "click b0 href",
    "a;b",
    "//",
    "%%{init: {}}%%",
    "  ",
    "i" * 24,
    "W" * 24,
]


def hostile(count: int) -> list[str]:
    """Labels made of the above, alone, in pairs, and with characters of every plane."""
    rng = random.Random(5)
    labels = list(HOSTILE)
    while len(labels) < count:
        noise = "".join(
            chr(rng.choice([rng.randrange(0x300), rng.randrange(0x3000), rng.randrange(0x110000)])) for _ in range(8)
        )
        labels.append(rng.choice([rng.choice(HOSTILE) + rng.choice(HOSTILE), noise, noise + rng.choice(HOSTILE)]))
    return labels


def test_a_thousand_hostile_labels_stay_text() -> None:
    labels = hostile(1000)
    plain = draw(wengert.sum([Value(1.0, "plain")] * 20)).svg
    tags = {element.tag for element in ET.fromstring(plain).iter()}
    for start in range(0, 1000, 20):
        values = [Value(1.0, label) for label in labels[start : start + 20]]
        root = wengert.sum(values)
        root.label = labels[start]
        drawn = draw(root)
        tree_of_svg = ET.fromstring(drawn.svg)
        assert {element.tag for element in tree_of_svg.iter()} <= tags
        for element in tree_of_svg.iter():
            assert set(element.attrib) <= {
                *("class", "x", "y", "width", "height", "rx", "d", "textLength", "lengthAdjust", "transform"),
                *("role", "aria-label", "viewBox"),
            }
        assert len(read(drawn.svg).boxes) == 21
        assert faults(drawn.svg) == []
        drawn.svg.encode("utf-8")
        for text in (drawn.to_dot(), tree(root)):
            text.encode("utf-8")
            assert not set(text) & set("\x00\x07\x1b\x7f\u202e\u2028\x85")
        assert len(tree(root).splitlines()) == 21
        assert len(drawn.to_dot().splitlines()) == 21 + 1 + 20 + 3
        strings = re.sub(r'"(?:[^"\\]|\\.)*"', "", drawn.to_dot())
        assert re.fullmatch(r"[\w\s\[\]{}=;,.>-]*", strings)


@pytest.mark.once  # a picture does not depend on which engine made the graph
def test_names_in_a_model_are_text_too(tmp_path: Path) -> None:
    class Odd(nn.Module):
        def __init__(self) -> None:
            self.table = {label: [Value(float(i)) for i in range(9)] for label in [*HOSTILE, "z" * 5000]}

        def __call__(self, x: float) -> Value:
            return wengert.sum([wengert.dot(row, [x] * 9).tanh() for row in self.table.values()])

    model = Odd()
    result = model(0.5)
    for drawn in (draw(result, limit=50), draw(result), draw(result, limit=2000)):
        assert faults(drawn.svg) == []
        assert max(map(len, texts(drawn.svg))) < 100
        assert len(drawn.svg) < 2_500_000
    draw(result).save(tmp_path / "g.html")
    page = (tmp_path / "g.html").read_text(encoding="utf-8")
    assert set(re.findall(r"<(\w+)", page)) <= {
        *("html", "head", "meta", "title", "style", "body", "main", "h1", "input", "label", "section", "nav"),
        *("a", "b", "p", "div"),
        *("svg", "g", "rect", "path", "text"),
    }


def test_a_symbol_of_a_users_operation_is_text_too() -> None:
    odd = wengert.op("oddly_drawn", value=lambda x: x, partials=lambda out, x: 1.0, symbol='<b onclick="x">' * 9)
    svg = draw(odd(Value(1.0))).svg
    assert faults(svg) == []
    assert "<b" not in svg
