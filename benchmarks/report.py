"""What a run found, as tables in Markdown, as JSON, and as two plots."""

from __future__ import annotations

import json
import math
import os
import platform
import re
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from benchmarks.race import Result
from benchmarks.roster import BARS, BYTES, IMPORT, LIFT, LIFTS, LIMITS, PEERS, WORKLOADS

__all__ = ["into_page", "machine", "plot", "tables", "targets", "write"]

Results = Mapping[str, Sequence[Result]]
Growth = Mapping[str, Sequence[dict[str, Any]]]
Lifts = Sequence[dict[str, Any]]
PACKAGES = ("micrograd", "micrograd-rust", "torch", "autograd", "casadi", "jax", "numpy")
BEGIN, END = "<!-- {}: begin -->", "<!-- {}: end -->"


def machine(*packages: str) -> str:
    """The processor, the Python, the versions of packages (of the peers, if none are named) and the date, in a line."""
    name = platform.processor() or platform.machine()
    try:
        found = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())
        name = found[1] if found else name
    except OSError:
        pass
    versions = []
    for package in packages or PACKAGES:
        try:
            versions.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            versions.append(f"{package} not installed")
    date = datetime.now(UTC).date().isoformat()
    return (
        f"{date}; {name}, {os.cpu_count()} cores, one used; Python {platform.python_version()}; {', '.join(versions)}"
    )


def duration(seconds: float) -> str:
    """Three digits and a unit."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9)):
        if seconds >= 0.9995 * scale or unit == "ns":
            return f"{seconds / scale:.3g} {unit}"
    raise AssertionError


def ratio(x: float) -> str:
    """Two digits, or all of a whole number."""
    return f"{x:.0f}x" if x >= 9.95 else f"{x:.2g}x"


def marked(text: str, reached: bool) -> str:
    """A figure, and whether it reaches its bar."""
    return f"{text} ✓" if reached else f"**{text} ✗**"


def tables(results: Results, growth: Growth, complete: bool, lifts: Lifts = ()) -> str:
    """Everything as Markdown."""
    lines = [f"Measured {machine()}.", ""]
    if not complete:
        lines += ["A quick run: few rounds, and not every workload or peer.", ""]
    if results:
        lines += ["Each column is a workload, described below; in parentheses Wengert's time is 1.", ""]
        lines += [*_overview(results), ""]
    for workload, rows in results.items():
        lines += _section(workload, WORKLOADS[workload], _race(rows))
    if growth:
        lines += _section("chain", "a chain of n operations, nanoseconds an operation", _growth(growth))
    if lifts:
        lines += _section("lift", "recording and lifting, and the first call of a compiled function", _lifts(lifts))
    return "\n".join(lines)


def _section(name: str, what: str, table: Sequence[str]) -> list[str]:
    return [f"### `{name}`", "", *folded(what[0].upper() + what[1:], table), ""]


def folded(title: str, lines: Sequence[str]) -> list[str]:
    """Lines that a click shows."""
    return ["<details>", f"<summary>{title}</summary>", "", *lines, "", "</details>"]


def targets(results: Results, growth: Growth, lifts: Lifts = ()) -> str:
    """The targets, and whether each is met, as Markdown."""
    return "\n".join([f"Measured {machine()}.", "", *_bars(results, growth, lifts), ""])


def _find(results: Results, workload: str, key: str) -> Result | None:
    return next((row for row in results.get(workload, ()) if row.peer.key == key and row.rounds), None)


def _bars(results: Results, growth: Growth, lifts: Lifts) -> list[str]:
    lines = ["| target | required | measured |", "|---|---|---|"]
    titles = {peer.key: peer.title.replace("*", "") for peer in PEERS}
    for bar in BARS:
        ours, theirs = _find(results, bar.workload, bar.who), _find(results, bar.workload, bar.of)
        if bar.workload in results:
            found = theirs.median / ours.median if ours and theirs else None
            reached = marked(ratio(found), found >= bar.ratio) if found else "not measured"
            what = f"`{bar.workload}`: {titles[bar.who]}, against {titles[bar.of]}"
            lines.append(f"| {what} | {bar.ratio:.0f}x | {reached} |")
    for limit in LIMITS:
        ours, theirs = _find(results, limit.workload, limit.who), _find(results, limit.workload, limit.of)
        if limit.workload in results:
            found = ours.median / theirs.median if ours and theirs else None
            reached = marked(f"{found:.2f}x", found <= limit.ratio) if found else "not measured"
            what = f"`{limit.workload}`: time of {titles[limit.who]} / {titles[limit.of]}"
            lines.append(f"| {what} | at most {limit.ratio:.1f}x | {reached} |")
    for row in lifts:
        if "seconds" in row:
            reached = marked(duration(row["seconds"] / row["nodes"]), row["seconds"] / row["nodes"] <= LIFT)
            lines.append(f"| record and lift, a node of {row['nodes']:,} | at most {duration(LIFT)} | {reached} |")
    started = _find(results, "import", "wengert")
    if started:
        reached = marked(duration(started.median), started.median <= IMPORT)
        lines.append(f"| `import wengert` | {duration(IMPORT)} | {reached} |")
    sizes = {row["size"]: row["bytes"] for row in growth.get("wengert", ()) if "bytes" in row}
    if sizes:
        size = sizes[max(sizes)]
        reached = marked(f"{size:.1f}", size <= BYTES)
        lines.append(f"| bytes an operation, in a graph of {max(sizes):,} | {BYTES} | {reached} |")
    return lines if len(lines) > 2 else []


def _overview(results: Results) -> list[str]:
    """One row an engine, one column a workload: the time of a step, and how many times as long it is as Wengert's."""
    lines = [f"| engine | {' | '.join(f'`{workload}`' for workload in results)} |", "|---" * (len(results) + 1) + "|"]
    for peer in PEERS:
        cells = []
        for workload in results:
            row, ours = _find(results, workload, peer.key), _find(results, workload, "wengert")
            times = f" ({ratio(row.median / ours.median)})" if row and ours and row is not ours else ""
            time = f"{duration(row.median)}{times}" if row and row.median else "too short to measure"
            cells.append(time if row else _absence(results[workload], peer.key))
        lines.append(f"| {peer.title} | {' | '.join(cells)} |")
    return lines if results else []


def _absence(rows: Sequence[Result], key: str) -> str:
    """Why there is no time, in a word: empty where there is no such program."""
    failed = next((row.failed for row in rows if row.peer.key == key), "")
    return "not installed" if failed.startswith("ModuleNotFoundError") else failed.split(":")[0]


def _race(rows: Sequence[Result]) -> list[str]:
    """One line a peer, the slowest first; the ratio says how many times as long it takes as Wengert."""
    ours = next((row.median for row in rows if row.peer.key == "wengert" and row.rounds), math.nan)
    lines = ["| engine | median | spread | Wengert's time = 1 |", "|---|---|---|---|"]
    for row in sorted((row for row in rows if row.rounds), key=lambda row: -row.median):
        times = "" if math.isnan(ours) else ratio(row.median / ours)
        time = f"{duration(row.median)} | ±{row.spread:.0%} | {times}" if row.median else "too short to measure | |"
        lines.append(f"| {row.peer.title} | {time} |")
    for row in rows:
        if not row.rounds and not row.absent:
            lines.append(f"| {row.peer.title} | {_cell(row.failed)} | | |")
    return lines


def _cell(text: str) -> str:
    """Any text as a table's cell."""
    return " ".join(text.replace("|", "/").split())[:110]


def _growth(growth: Growth) -> list[str]:
    lines = ["| engine | n | forward | backward | freeing | bytes |", "|---|---|---|---|---|---|"]
    titles = {peer.key: peer.title for peer in PEERS}
    for key, rows in growth.items():
        for row in rows:
            if "forward" in row:
                figures = " | ".join(f"{row[name]:.3g}" for name in ("forward", "backward", "free"))
                memory = f"{row['bytes']:.0f}" if row["size"] >= 100_000 else ""
                lines.append(f"| {titles[key]} | {row['size']:,} | {figures} | {memory} |")
            elif not row.get("absent"):
                lines.append(f"| {titles[key]} | {row['size']:,} | {_cell(row['failed'])} | | | |")
    return lines


def _lifts(lifts: Lifts) -> list[str]:
    lines = ["| program | nodes | record and lift | a node | first call |", "|---|---|---|---|---|"]
    for row in lifts:
        title = LIFTS[row["program"]]
        if "seconds" in row:
            each = duration(row["seconds"] / row["nodes"])
            figures = f"{duration(row['seconds'])} | {each} | {duration(row['first'])}"
            lines.append(f"| {title} | {row['nodes']:,} | {figures} |")
        else:
            lines.append(f"| {title} | {_cell(row['failed'])} | | | |")
    return lines


def write(folder: Path, results: Results, growth: Growth, complete: bool, lifts: Lifts = ()) -> str:
    """Write `table.md` and `results.json`; returns the table."""
    folder.mkdir(parents=True, exist_ok=True)
    text = tables(results, growth, complete, lifts)
    (folder / "table.md").write_text(f"{text}\n{targets(results, growth, lifts)}", encoding="utf-8")
    record = {
        "machine": machine(),
        "seconds a step": {
            workload: {row.peer.key: {"rounds": row.rounds, "failed": row.failed} for row in rows if not row.absent}
            for workload, rows in results.items()
        },
        "chain": growth,
        "lift": list(lifts),
    }
    (folder / "results.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return text


def plot(folder: Path, growth: Growth) -> list[Path]:
    """Time and memory against the size of the graph, log-log, as SVG. Needs matplotlib."""
    try:
        import matplotlib
    except ImportError:
        print("no plots: they need matplotlib (pip install matplotlib)", file=sys.stderr)
        return []
    matplotlib.use("Agg")
    from matplotlib import pyplot

    titles = {peer.key: peer.title.replace("*", "").split(",")[0] for peer in PEERS}
    titles["torch-scalars"] = "PyTorch, 0-d tensors"
    paths = []
    for name, unit, of in (
        ("time", "seconds, forward and backward", lambda row: (row["forward"] + row["backward"]) * row["size"] * 1e-9),
        ("memory", "bytes", lambda row: row["bytes"] * row["size"]),
    ):
        figure, axes = pyplot.subplots(figsize=(6.4, 4.2), layout="constrained")
        for key, rows in growth.items():
            least = 100 if name == "time" else 10_000  # below, the pages of memory are larger than the graph
            points = [(row["size"], of(row)) for row in rows if "forward" in row and row["size"] >= least]
            points = [point for point in points if point[1] > 0]
            if points:
                style = {"linewidth": 2.5, "zorder": 3} if key == "wengert" else {"linewidth": 1.3}
                axes.loglog(*zip(*points, strict=True), marker="o", markersize=4, label=titles[key], **style)
        axes.set(xlabel="operations in the graph", ylabel=unit)
        axes.grid(alpha=0.3)
        axes.legend(frameon=False)
        paths.append(folder / f"chain-{name}.svg")
        matplotlib.rcParams["svg.hashsalt"] = "wengert"
        figure.savefig(paths[-1], metadata={"Date": None})
        pyplot.close(figure)
    return paths


def into_page(page: Path, text: str, name: str = "benchmarks") -> None:
    """Put the tables between the marks of a page, which have a name.

    Raises:
        ValueError: the page has no marks.
    """
    old, begin, end = page.read_text(encoding="utf-8"), BEGIN.format(name), END.format(name)
    if old.count(begin) != 1 or old.count(end) != 1:
        raise ValueError(f"{page} has no place for the tables: expected {begin} and {end}, once each")
    head, rest = old.split(begin)
    page.write_text(f"{head}{begin}\n{text}{end}{rest.split(end)[1]}", encoding="utf-8")
