"""Draws the pictures of the README: `python tools/make_readme_picture.py [learnt] [stepper] [speed]`, all by default.

`learnt` is what `wengert demo` learns: digits and the regions of the spiral. `stepper` is the page of a neuron as it
plays, taken frame by frame in Chromium, and one frame for previews of links. `speed` is a chart of one workload of the
page of benchmarks. All follow light or dark pages, or come in light and in dark.
"""

from __future__ import annotations

import base64
import io
import random
import re
import runpy
import shutil
import sys
import tempfile
from math import log10
from pathlib import Path
from typing import Any

from wengert import Value, checkpoint, data, losses, steps
from wengert.apps import demo
from wengert.nn import MLP
from wengert.optim import Adam
from wengert.training import fit, predict

IMAGES = Path(__file__).resolve().parent.parent / "docs" / "images"
ROWS, ACROSS = 3, 14  # of digits
THEMES = ("light", "dark")

# -- what was learnt --------------------------------------------------------------------------------------------------


def network(name: str) -> MLP:
    """The network that the demo trains on this data set."""
    setting = demo.SETTINGS[name]
    inputs = len(setting.load()[0][0])
    with tempfile.TemporaryDirectory() as folder:
        demo.run(name, folder, seed=0, quiet=True)
        model = MLP(inputs, setting.layers, activation=setting.activation)
        checkpoint.load(model, Path(folder) / "weights.safetensors")
    return model


def classes(model: MLP, X: list[list[float]]) -> list[int]:
    """The class with the greatest logit."""
    return [max(range(len(row)), key=row.__getitem__) for row in predict(model, X)]


def learnt() -> None:
    """Train both networks and draw: left some test digits with what was read, right the regions of the spiral."""
    from matplotlib.figure import Figure

    from wengert.view import plots

    figure = Figure(figsize=(12.0, 3.1), layout="constrained", facecolor="white")
    left, right = figure.subplots(1, 2, width_ratios=(2.9, 1))

    model = network("digits")
    _, X, _, Y = data.train_test_split(*data.digits(), test=demo.SETTINGS["digits"].held_out, seed=0)
    shown = ROWS * ACROSS
    read = classes(model, X)
    plots.plot_digits(X[:shown], Y[:shown], read[:shown], left, across=ACROSS)
    mistakes = sum(y != r for y, r in zip(Y, read, strict=True))
    left.set_title(f"{shown} of {len(Y)} test digits; {mistakes} of all are read wrongly", loc="left", fontsize=13)

    model = network("spiral")
    X, Y = demo.SETTINGS["spiral"].load()
    card = Figure(figsize=(3.2, 2.2), layout="constrained", facecolor="white")
    for axes in (right, card.subplots()):
        plots.plot_decision_boundary(lambda points: classes(model, points), X, Y, axes)
        axes.set(xlabel="", ylabel="", xticks=(), yticks=())
        axes.get_legend().remove()
    kept("learnt", figure)

    X, Y = data.moons(100, noise=0.1, seed=1, labels=(-1, 1))  # as in docs/getting-started.md
    model = MLP(2, [8, 8, 1], rng=random.Random(1))
    fit(model, losses.hinge, X, Y, Adam(model, lr=0.05), epochs=30, batch_size=20, seed=1, progress=False)
    moons = Figure(figsize=(5.6, 3.4), layout="constrained", facecolor="white")
    plots.plot_decision_boundary(model, X, Y, moons.subplots())
    kept("boundary-moons", moons)
    kept("card-learn", card)


def kept(name: str, figure: Any) -> None:
    """Write a plot as the pages show them: light on light pages, dark on dark ones."""
    from matplotlib import rc_context

    text = io.StringIO()
    with rc_context({"svg.hashsalt": name}):
        figure.savefig(text, format="svg", metadata={"Date": None})
    follows = runpy.run_path(str(IMAGES.parent / "_ext" / "dark_plots.py"))["follows"]
    (IMAGES / f"{name}.svg").write_text(follows(text.getvalue()), encoding="utf-8")


# -- the stepper, as it plays -----------------------------------------------------------------------------------------

WIDTH, HEIGHT, ZOOM = 1180, 600, 1
STILL, MOVING, MOVES = 1300, 90, 8  # milliseconds that a step and a frame of what moves are shown; such frames a step


def stepper() -> None:
    """The neuron of the tutorials on its way back."""
    from PIL import Image
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    x1, x2, w1, w2 = Value(2.0, "x1"), Value(0.0, "x2"), Value(-3.0, "w1"), Value(1.0, "w2")
    n = x1 * w1 + x2 * w2 + Value(6.8813735870195432, "b")
    n.label = "n"
    o = n.tanh()
    o.label = "o"
    options, service = webdriver.ChromeOptions(), Service(shutil.which("chromedriver"))
    options.binary_location = shutil.which("chromium") or shutil.which("google-chrome") or ""
    for argument in ("headless=new", "no-sandbox", "disable-gpu", "hide-scrollbars"):
        options.add_argument(f"--{argument}")
    with tempfile.TemporaryDirectory() as folder, webdriver.Chrome(options, service) as browser:
        page = Path(folder) / "page.html"
        steps(o).save(page)
        size = {"width": WIDTH, "height": HEIGHT, "deviceScaleFactor": ZOOM, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        for theme in THEMES:
            scheme = [{"name": "prefers-color-scheme", "value": theme}]
            browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": scheme})
            browser.get("about:blank")
            browser.get(f"{page.as_uri()}#6")
            browser.implicitly_wait(10)
            browser.find_element("css selector", ".node")
            frames, lasts = [], []
            for _ in range(len(steps(o)) - 6):
                for share in range(MOVES + 1):
                    frames.append(Image.open(io.BytesIO(_frame(browser, share / MOVES))).convert("RGB"))
                    lasts.append(MOVING if share < MOVES else STILL)
            target = IMAGES / f"stepper-{theme}.webp"
            frames[0].save(
                target, save_all=True, append_images=frames[1:], duration=lasts, loop=0, quality=70, method=6
            )
            print(target)
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size | {"width": 1200, "height": 630})
        browser.execute_cdp_cmd(
            "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "light"}]}
        )
        browser.get("about:blank")
        browser.get(f"{page.as_uri()}#9")
        browser.find_element("css selector", ".node")
        _, shot = browser.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"}).popitem()
        (IMAGES.parent / "_static" / "preview.png").write_bytes(base64.b64decode(shot))


def _frame(browser: Any, share: float) -> bytes:
    """The page while a step is under way: its clock is held, so that a frame may take as long as it takes."""
    script = """
        if (arguments[0] === 0) {
          window.held = 0;
          performance.now = () => window.held;
          window.requestAnimationFrame = (then) => (window.waiting = then);
          document.querySelector("#on").click();
        }
        window.held = 840 * arguments[0];
        window.waiting?.(window.held);
        for (const animation of document.getAnimations()) {
          animation.pause();
          animation.currentTime = 1000 * arguments[0];
        }
    """
    browser.execute_script(script, share)
    return base64.b64decode(browser.execute_cdp_cmd("Page.captureScreenshot", {"format": "png"})["data"])


# -- the chart of the benchmarks --------------------------------------------------------------------------------------

SHOWN = {  # rows of the page of benchmarks, and what the chart calls them
    "micrograd 0.1.0": "micrograd",
    "PyTorch, 0-d tensors": "PyTorch, scalars",
    "plain Python Value with slots": "plain Python, slots",
    "**Wengert**, program unchanged": "Wengert, same program",
    "**Wengert**, its own MLP, dot and optimizer": "Wengert, its own MLP",
    "PyTorch, nn.Linear": "PyTorch, arrays",
    "jax.jit, arrays": "JAX, arrays, jit",
    "**Wengert**, compiled loss": "Wengert, compiled",
    "NumPy by hand": "NumPy by hand",
    "plain C, no graph": "C, no graph",
}
UNITS = {"s": 1.0, "ms": 1e-3, "µs": 1e-6, "ns": 1e-9}
LINE, LEFT, RIGHT, TOP = 34, 320, 760, 64  # the names have room in the widest of the usual fonts, DejaVu Sans
PAINT = {
    "light": ("#ffffff", "#17202b", "#5a6675", "#dde2e8", "#0067a8", "#b4bdc8"),
    "dark": ("#0d1117", "#e8edf3", "#9aa7b6", "#2b3440", "#6cc1ff", "#4a5665"),
}


def times(page: str, column: str = "moons") -> dict[str, float]:
    """The seconds of a step of each engine, as the first table of engines on the page has them."""
    head, *rows = re.findall(r"^\| (.*) \|$", page[page.index("| engine | `") :].partition("\n\n")[0], re.MULTILINE)
    at = [title.strip("`") for title in head.split(" | ")].index(column)
    found = {}
    for row in rows:
        cells = [cell.strip() for cell in row.split("|")]
        measured = re.match(r"([\d.]+) (\w+)", cells[at]) if len(cells) > at else None
        if measured and measured[2] in UNITS:
            found[cells[0]] = float(measured[1]) * UNITS[measured[2]]
    return found


def chart(page: str, theme: str) -> str:
    """The times as bars on a logarithmic axis; nothing in it is smaller than can be read at half its size."""
    colour = dict(zip(("paper", "ink", "pale", "line", "ours", "theirs"), PAINT[theme], strict=True))
    measured = times(page)
    rows = sorted([(measured[row], name) for row, name in SHOWN.items() if row in measured], reverse=True)
    low, high = 1e-6, 10.0
    across = lambda seconds: LEFT + (RIGHT - LEFT - 90) * log10(seconds / low) / log10(high / low)  # noqa: E731
    bottom = TOP + LINE * len(rows)
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {RIGHT} {bottom + 34}" font-size="20" '
        f'font-family="system-ui, sans-serif" role="img" aria-label="Time of one training step, by engine">',
        f'<rect width="{RIGHT}" height="{bottom + 34}" rx="10" fill="{colour["paper"]}"/>',
        f'<text x="12" y="28" font-weight="700" fill="{colour["ink"]}">A step: two moons, 337 parameters</text>',
        f'<text x="12" y="52" font-size="17" fill="{colour["pale"]}">logarithmic; shorter is faster</text>',
    ]
    for power, said in enumerate(("1 µs", "", "0.1 ms", "", "10 ms", "", "1 s")):  # each second one, so that none touch
        x, pale = across(low * 10**power), f'font-size="16" fill="{colour["pale"]}" text-anchor="middle"'
        out.append(f'<path d="M{x:.0f} {TOP}V{bottom}" stroke="{colour["line"]}"/>')
        if said:
            out.append(f'<text x="{x:.0f}" y="{bottom + 22}" {pale}>{said}</text>')
    for i, (seconds, name) in enumerate(rows):
        y, ours = TOP + LINE * i, name.startswith("Wengert")
        text = f'y="{y + 24}" fill="{colour["ink"]}"' + ' font-weight="700"' * ours
        bar = f'height="{LINE - 10}" rx="4" fill="{colour["ours" if ours else "theirs"]}"'
        unit = next(unit for unit, size in UNITS.items() if seconds >= size)
        out.append(f'<text x="{LEFT - 10}" text-anchor="end" {text}>{name}</text>')
        out.append(f'<rect x="{LEFT}" y="{y + 6}" width="{across(seconds) - LEFT:.0f}" {bar}/>')
        out.append(f'<text x="{across(seconds) + 8:.0f}" {text}>{seconds / UNITS[unit]:.3g} {unit}</text>')
    return "\n".join([*out, "</svg>", ""])


def speed() -> None:
    """The chart, from the page as it stands."""
    page = (IMAGES.parent / "benchmarks.md").read_text(encoding="utf-8")
    for theme in THEMES:
        (IMAGES / f"speed-{theme}.svg").write_text(chart(page, theme), encoding="utf-8")


if __name__ == "__main__":
    makers = {"learnt": learnt, "stepper": stepper, "speed": speed}
    for name in sys.argv[1:] or makers:
        makers[name]()
