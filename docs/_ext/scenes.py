"""Pages that play an idea, made while the documentation is built, from runs of the engine."""

from math import log10

import wengert
from wengert import Value, losses
from wengert.graph import Graph
from wengert.optim import SGD, Adam
from wengert.view.frames import Chart, film
from wengert.view.graph import edges, layout
from wengert.view.naming import fill, number

# -- a secant becomes the tangent --------------------------------------------------------------------------------------

AT, HS = 3.0, [2.0 * 0.8**k for k in range(44)]  # where; how far the second point is from there


def f(x):
    """The function of lesson 0."""
    return 3 * x**2 - 4 * x + 5


def secant():
    """The secant of f through 3 and 3 + h, for h from 2 to nearly 0, and then the tangent."""
    x = Value(AT)
    f(x).backward()
    chart = Chart("f(x) = 3x² - 4x + 5", (1.0, 5.2), (-10.0, 65.0), 330)
    places = [1.0 + 4.2 * i / 60 for i in range(61)]
    chart.line([(u, f(u)) for u in places], "c1")
    chart.line([], "c0", "line")
    chart.point((AT, f(AT)), "c0")
    chart.point((AT, f(AT)), "ink", "second")
    frames = []
    for h in [*HS, 0.0]:
        slope = (f(AT + h) - f(AT)) / h if h else x.grad
        cx, cy = chart.at((AT + h, f(AT + h)))
        line = [(u, f(AT) + slope * (u - AT)) for u in (1.0, 5.2)]
        ends = [(u, v) for u, v in line if chart.up[0] <= v <= chart.up[1]]
        ends += [(AT + (v - f(AT)) / slope, v) for v in chart.up if 1.0 <= AT + (v - f(AT)) / slope <= 5.2]
        ratio = f"(f(3 + {number(h)}) - f(3)) / {number(h)} = {number(slope)}"
        frames.append(
            {
                "count": f"h = {number(h)}",
                "said": f"Slope of the secant: {ratio}"
                if h
                else f"The two points have become one, and the secant the tangent. Its slope is {number(slope)}: "
                "the derivative, which backward() computes without any h.",
                "marks": {"line": {"d": chart.path(sorted(ends))}, "second": {"cx": cx, "cy": cy}},
            }
        )
    return film("A secant becomes the tangent", "", [chart.svg()], frames)


# -- a nudge runs through a graph --------------------------------------------------------------------------------------

NUDGE = 0.01
WIDE, HIGH = 112.0, 62.0  # of a box
STYLE = """
.panel .mid { text-anchor: middle; }
.panel .sum { font-weight: 600; fill: color-mix(in srgb, var(--colour) 60%, var(--ink)); }
.panel .box { fill: var(--box); stroke: var(--edge); stroke-width: 1.2; }
.panel .now { stroke: var(--backward); stroke-width: 3; fill: var(--backward-wash); }
.panel .wire { fill: none; stroke: var(--edge); stroke-width: 1.3; }
.panel .hot { stroke: var(--backward); stroke-width: 3; }
.panel .none { visibility: hidden; }
.panel .box ~ circle { transition: cx 0.9s, cy 0.9s; }
"""  # the last: what travels along the edges


def nudged(a):
    """The computation of the page about stepping, with its four later nodes."""
    a, b = Value(a, "a"), Value(3.0, "b")
    d = a * b
    e = a + b
    d.label, e.label = "d = a*b", "e = a + b"
    f = d * e
    f.label = "f = d*e"
    return f


def nudge():
    """How far each node moves if a is moved a little: its derivative times the nudge; and by computing it again."""
    root = nudged(-2.0)
    root.backward()
    graph, again = Graph(root), Graph(nudged(-2.0 + NUDGE))
    tangents = graph.push_forward({0: 1.0})
    joined = [(x, place) for place in range(len(graph)) for _, x in edges(graph, place)]
    drawn = layout([(WIDE, HIGH)] * len(graph), joined, across=24.0, down=30.0)
    chart = Chart("The graph of f = d*e", (0.0, 1.0), (0.0, 1.0), round(drawn.height) + 16, ticks={})
    chart.marks.clear()
    left, top = (400 - drawn.width) / 2, 8.0
    ends = []
    for k, route in enumerate(drawn.routes):
        bends = [(left + x, top + y) for x, y in route]
        points = " ".join(f"{x:g},{y:g}" for x, y in bends)
        chart.marks.append(f'<polyline class="wire" id="wire{k}" points="{points}"/>')
        ends.append((bends[0], bends[-1]))
    for i, ((x, y), value) in enumerate(zip(drawn.corners, graph.values, strict=True)):
        box = f'x="{left + x:g}" y="{top + y:g}" width="{WIDE}" height="{HIGH}" rx="7"'
        chart.marks.append(f'<rect class="box" id="box{i}" {box}/>')
        middle = left + x + WIDE / 2
        chart.text((middle, top + y + 18), value.label, "head mid")
        chart.text((middle, top + y + 36), number(value.data), "mid")
        chart.text((middle, top + y + 54), "", "sum c0 mid", f"moved{i}")
    for k, (start, _) in enumerate(ends):
        chart.marks.append(f'<circle class="point c0" id="dot{k}" cx="{start[0]:g}" cy="{start[1]:g}" r="5"/>')
    moving = [i for i in range(len(graph)) if tangents[i]]
    frames = [_nudged(graph, again, tangents, joined, ends, moving[:k]) for k in range(len(moving) + 1)]
    frames[0]["said"] = f"a is moved by {NUDGE}. How far does f move?"
    moves, slope = number(NUDGE * tangents[-1]), number(graph.values[0].grad)
    frames[-1]["said"] += f"\n{moves} is {slope} × {NUDGE}, and {slope} is the gradient of a that backward() computes."
    about = "each node moves by its derivative times the nudge"
    return film("A nudge runs through a graph", about, [chart.svg()], frames, pace=1, style=STYLE)


def _nudged(graph, again, tangents, joined, ends, moved):
    """The frame in which the nodes `moved` have moved, the last of them just now."""
    now = moved[-1] if moved else None
    marks = {f"moved{i}": {"text": f"{NUDGE * tangents[i]:+.4g}" if i in moved else ""} for i in range(len(graph))}
    marks |= {f"box{i}": {"class": "box now" if i == now else "box"} for i in range(len(graph))}
    terms = []
    for k, (source, target) in enumerate(joined):
        arrives = target in moved and source in moved
        x, y = ends[k][1 if arrives else 0]
        seen = source in moved and (target not in moved or target == now)
        marks[f"dot{k}"] = {"cx": x, "cy": y, "class": "point c0" if seen else "point none"}
        marks[f"wire{k}"] = {"class": "wire hot" if arrives and target == now else "wire"}
        if target == now and source in moved:
            slot = next(at for at in range(graph.starts[now], graph.starts[now + 1]) if graph.operands[at] == source)
            factors = [number(graph.partials[slot]), number(NUDGE * tangents[source])]
            terms.append(fill("#0 × #1" if terms else "@0 × #1", factors))
    said = f"a moves by {NUDGE}."
    if terms:
        change = again.values[now].data - graph.values[now].data
        total = number(NUDGE * tangents[now])
        said = f"{graph.values[now].label} moves by {' + '.join(terms)} = {total}."
        said += f" Computed again, it moves by {number(change)}."
    return {"count": f"node {len(moved)} of 4", "said": said, "marks": marks}


# -- three optimizers go down the same valley --------------------------------------------------------------------------

XS = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0)
START, STEPS = (-1.0, 3.0), 80  # w and b at first
OPTIMIZERS = {
    "SGD": lambda p: SGD(p, lr=0.19),
    "momentum": lambda p: SGD(p, lr=0.03, momentum=0.9),
    "Adam": lambda p: Adam(p, lr=0.2),
}
SURFACE, BANDS = 96, 11  # cells in each direction; shades


def line_loss(w, b):
    """The mean squared error of w x + b at the points."""
    return wengert.mean([losses.mse(w * x + b, 0.9 * x + 0.4) for x in XS])


def descend(name):
    """The w, the b and the loss before each step, and after the last."""
    w, b = (Value(x) for x in START)
    optimizer = OPTIMIZERS[name]([w, b])
    path = []
    for _ in range(STEPS + 1):
        loss = line_loss(w, b)
        path.append((w.data, b.data, loss.data))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return path


def descent():
    """Their ways on the surface of the loss, and their losses."""
    paths = {name: descend(name) for name in OPTIMIZERS}
    names, kinds = [*paths], ["c1", "c0", "c2"]
    across, up = (-1.5, 2.5), (-1.5, 4.0)
    plane = Chart("The loss over w (across) and b (up)", across, up, 330, cells=SURFACE)
    ticks = {y: f"1e{y}" for y in (-6, -3, 0)}
    losing = Chart("Loss at each step, logarithmic", (0, STEPS), (-6.0, 1.0), 330, 3, ticks)
    for name, kind in zip(names, kinds, strict=True):
        plane.line([], kind, f"way-{name}")
        losing.line([], kind, f"loss-{name}")
    for name, kind in zip(names, kinds, strict=True):
        plane.point(START, kind, f"at-{name}", 5.5)
    plane.point((0.9, 0.4), "ink")
    losing.legend(names, kinds, "name")
    frames = []
    for k in range(STEPS + 1):
        marks = {}
        for name, path in paths.items():
            x, y = plane.at(path[k][:2])
            marks[f"way-{name}"] = {"d": plane.path(p[:2] for p in path[: k + 1])}
            marks[f"at-{name}"] = {"cx": x, "cy": y}
            marks[f"loss-{name}"] = {"d": losing.path((i, max(log10(p[2]), -6.0)) for i, p in enumerate(path[: k + 1]))}
        said = ", ".join(f"{name} {number(path[k][2])}" for name, path in paths.items())
        frames.append({"count": f"step {k} of {STEPS}", "said": f"Loss: {said}", "marks": marks})
    shares = [(i + 0.5) / SURFACE for i in range(SURFACE)]
    places = [(across[0] + 4.0 * x, up[1] - 5.5 * y) for y in shares for x in shares]
    heights = wengert.compile(line_loss).map([w for w, _ in places], [b for _, b in places])
    cells = "".join(chr(65 + band(z)) for z in heights)
    shades = [[110, 120, 135, 14 * i] for i in range(BANDS)]
    about, charts = "a line w x + b is fitted to six points", [plane.svg(), losing.svg()]
    return film("Down the same valley", about, charts, frames, cells=cells, shades=shades)


def band(loss):
    """The shade of a loss: each is for losses up to twice those of the one before."""
    return max(0, min(BANDS - 1, round(log10(max(loss, 1e-9) / 0.02) / log10(2.0))))


SCENES = {"secant": secant, "nudge": nudge, "descent": descent}
