"""A drawing checked by geometry: what overlaps, which edge runs under a box, which text leaves its box.

It reads nothing but the SVG, with the standard library's parser, and knows the advance of a character in DejaVu Sans
Mono, the widest of the monospaced fonts that the drawing names.
"""

from __future__ import annotations

import re
import unicodedata
import xml.etree.ElementTree as ET
from dataclasses import dataclass, field
from itertools import pairwise

SVG = "{http://www.w3.org/2000/svg}"
ADVANCE = 0.6021 * 11  # pixels of a character; labels are of the same width in bold
TOUCH = 0.25  # pixels by which rounded coordinates may overlap

Rect = tuple[float, float, float, float]  # left, top, right, bottom
Point = tuple[float, float]


@dataclass
class Shown:
    """What an SVG shows: of each box its parts, of each edge its points."""

    boxes: list[list[Rect]] = field(default_factory=list)
    texts: list[tuple[str, Rect, Rect]] = field(default_factory=list)  # a text, where it is, and where it should be
    edges: list[list[Point]] = field(default_factory=list)
    width: float = 0.0
    height: float = 0.0


def read(svg: str) -> Shown:
    """The boxes, texts and edges of a drawing."""
    root = ET.fromstring(svg)
    shown = Shown(width=float(root.attrib["width"]), height=float(root.attrib["height"]))
    outer = root.find(f"{SVG}g")
    assert outer is not None
    for group in [link for item in outer for link in (item if item.tag == f"{SVG}a" else [item])]:
        kind = group.get("class", "").split()[0]
        if kind == "edge":
            line = group.find(f"{SVG}path")
            assert line is not None
            shown.edges.append(points(line.attrib["d"]))
        elif group.tag == f"{SVG}g" and kind != "hot":
            read_box(group, shown)
    return shown


def read_box(group: ET.Element, shown: Shown) -> None:
    parts: dict[str, list[Rect]] = {"card": [], "pill": []}
    for rect in group.iter(f"{SVG}rect"):
        x, y, width, height = (float(rect.attrib[name]) for name in ("x", "y", "width", "height"))
        parts[rect.attrib["class"]].append((x, y, x + width, y + height))
    card = parts["card"][-1]
    whole = (card[0], card[1], max(r[2] for r in parts["card"]), max(r[3] for r in parts["card"]))
    shown.boxes.append([whole, *parts["pill"]])
    for text in group.iter(f"{SVG}text"):
        where = text_box(text)
        shown.texts.append((text.text or "", where, parts["pill"][0] if is_in_pill(text, parts) else card))


def is_in_pill(text: ET.Element, parts: dict[str, list[Rect]]) -> bool:
    """Whether a text stands before the end of the operation, which is left of its box or above it."""
    if not parts["pill"]:
        return False
    (_, _, right, bottom), (left, top, _, _) = parts["pill"][0], parts["card"][-1]
    return float(text.attrib["x"]) < right if right <= left else top >= bottom > float(text.attrib["y"])


def text_box(text: ET.Element) -> Rect:
    """Where a text is, from its baseline: an ascent of 0.93 em, a descent of 0.24 em (DejaVu Sans Mono)."""
    x, y = float(text.attrib["x"]), float(text.attrib["y"])
    words = text.attrib["class"].split()
    width = float(text.get("textLength", 0)) or ADVANCE * len(text.text or "")
    if "textLength" not in text.attrib:
        assert all(unicodedata.east_asian_width(c) not in "WF" for c in text.text or "")
    left = x - width if "end" in words else x - width / 2 if "mid" in words else x
    return left, y - 0.93 * 11, left + width, y + 0.24 * 11


def points(d: str) -> list[Point]:
    """Points along a path of M, C, H, V and L commands."""
    found: list[Point] = []
    for command, written in re.findall(r"([MCHVL])([^MCHVL]*)", d):
        numbers = [float(n) for n in re.findall(r"-?[\d.]+", written)]
        if command == "M":
            found.append((numbers[0], numbers[1]))
        elif command == "H":
            found.append((numbers[0], found[-1][1]))
        elif command == "V":
            found.append((found[-1][0], numbers[0]))
        elif command == "L":
            found.append((numbers[0], numbers[1]))
        else:
            p0, p1, p2, p3 = found[-1], *zip(numbers[::2], numbers[1::2], strict=True)
            for i in range(1, 17):
                t = i / 16
                s = 1 - t
                weights = (s**3, 3 * s * s * t, 3 * s * t * t, t**3)
                found.append(
                    tuple(sum(w * p[k] for w, p in zip(weights, (p0, p1, p2, p3), strict=True)) for k in (0, 1))
                )  # type: ignore[arg-type]
    return found


def overlap(a: Rect, b: Rect) -> bool:
    return a[0] < b[2] - TOUCH and b[0] < a[2] - TOUCH and a[1] < b[3] - TOUCH and b[1] < a[3] - TOUCH


def crosses(p: Point, q: Point, box: Rect) -> bool:
    """Whether the line from p to q has a point inside of a box (Liang and Barsky 1984)."""
    low, high = 0.0, 1.0
    for k in (0, 1):
        change = q[k] - p[k]
        for edge, sign in ((box[k] + TOUCH, 1), (box[k + 2] - TOUCH, -1)):
            room = sign * (p[k] - edge)
            if change == 0:
                if room <= 0:
                    return False
            elif sign * change > 0:
                low = max(low, -room / (sign * change))
            else:
                high = min(high, -room / (sign * change))
    return low < high


def faults(svg: str) -> list[str]:
    """Everything that is wrong with a drawing, in words."""
    shown = read(svg)
    found = []
    flat = [(i, part) for i, box in enumerate(shown.boxes) for part in box]
    flat.sort(key=lambda pair: pair[1])
    for at, (i, a) in enumerate(flat):
        for j, b in flat[at + 1 :]:
            if b[0] > a[2]:
                break
            if overlap(a, b):
                found.append(f"boxes {i} and {j} overlap: {a}, {b}")
    for number, edge in enumerate(shown.edges):
        for p, q in pairwise(edge):
            left, right = min(p[0], q[0]), max(p[0], q[0])
            for i, box in flat:
                if box[0] <= right and left <= box[2] and crosses(p, q, box):
                    found.append(f"edge {number} runs under box {i}: {p}, {q}, {box}")
    for text, where, room in shown.texts:
        if where[0] < room[0] or where[2] > room[2] or where[1] < room[1] or where[3] > room[3]:
            found.append(f"{text!r} leaves its box: {where}, {room}")
    for _, (left, top, right, bottom) in flat:
        if left < -14 or top < -14 or right > shown.width - 14 or bottom > shown.height - 14:
            found.append(f"a box leaves the picture: {(left, top, right, bottom)}")
    return found
