"""Plots of functions and of networks: what is drawn is compared with calculus and with counting."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable
from itertools import combinations, pairwise
from statistics import fmean, pstdev
from typing import Any

import pytest

import wengert
from wengert import Value
from wengert.apps import demo
from wengert.errors import ArgumentError, DataError, LengthError, OperandError
from wengert.nn import MLP, Layer, Module, Neuron
from wengert.view import plots

pytestmark = [pytest.mark.plot, pytest.mark.once]


@pytest.fixture
def axes() -> Any:
    figure = pytest.importorskip("matplotlib.figure", reason="needs matplotlib")
    return figure.Figure(figsize=(6, 4)).subplots()


def curves(axes: Any) -> tuple[list[tuple[float, float]], list[tuple[float, float]]]:
    """The points of the function and of its derivative; nan where a curve is broken."""
    labelled = [line for a in axes.figure.axes for line in a.get_lines() if not line.get_label().startswith("_")]
    value, slope = (list(zip(*line.get_data(), strict=True)) for line in labelled)
    return value, slope


def breaks(curve: list[tuple[float, float]]) -> list[float]:
    """Where a curve is broken."""
    return [x for x, y in curve if math.isnan(y)]


# -- functions --------------------------------------------------------------------------------------------------------


def test_a_function_and_its_derivative_are_those_of_calculus(axes: Any) -> None:
    def f(x: Any) -> Any:
        return x * wengert.sin(x * x) + wengert.tanh(x)

    assert plots.plot_function(f, -3.0, 2.5, axes) is axes
    value, slope = curves(axes)
    assert (value[0][0], value[-1][0]) == (-3.0, 2.5)
    for x, y in value:
        assert y == pytest.approx(x * math.sin(x * x) + math.tanh(x), abs=1e-12)
    for x, y in slope:
        expected = math.sin(x * x) + 2 * x * x * math.cos(x * x) + 1 / math.cosh(x) ** 2
        assert y == pytest.approx(expected, abs=1e-12)
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["f(x)", "its derivative, by backward()"]
    assert not breaks(value) + breaks(slope)


@pytest.mark.parametrize("kink", [0.0, 0.3, -1.7])
def test_a_kink_breaks_the_derivative_and_not_the_function(axes: Any, kink: float) -> None:
    plots.plot_function(lambda x: (x - kink).relu(), -2.0, 2.0, axes)
    value, slope = curves(axes)
    assert {y for _, y in slope if not math.isnan(y)} == {0.0, 1.0}
    assert breaks(slope) == [pytest.approx(kink, abs=1e-9)]
    assert all(y == pytest.approx(max(x - kink, 0.0), abs=1e-12) for x, y in value)


def test_a_derivative_of_its_own_at_a_kink_is_a_dot(axes: Any) -> None:
    plots.plot_function(abs, -2.0, 2.0, axes)
    (dot,) = [line for line in axes.get_lines() if line.get_marker() == "o"]
    assert [dot.get_data()[0][0], dot.get_data()[1][0]] == [0.0, 0.0]


@pytest.mark.parametrize("low", [-2.0, -2.1])
def test_a_pole_is_no_line_from_below_to_above(axes: Any, low: float) -> None:
    plots.plot_function(lambda x: 1 / x, low, 2.0, axes)
    value, slope = curves(axes)
    assert not any(a[0] < 0.0 < b[0] and math.isfinite(a[1] + b[1]) for a, b in pairwise(value))
    assert all(y < 0.0 for _, y in slope if math.isfinite(y))
    assert max(map(abs, axes.get_ylim())) < 50.0


def test_what_has_no_value_is_not_drawn(axes: Any) -> None:
    plots.plot_function(lambda x: x.log(), -1.0, 3.0, axes)
    drawn = [(x, y) for x, y in curves(axes)[0] if math.isfinite(y)]
    assert min(drawn)[0] > 0.0
    assert min(drawn)[1] < axes.get_ylim()[0]  # it leaves the picture at the bottom
    assert all(y == pytest.approx(math.log(x), abs=1e-9) for x, y in drawn)


def test_a_steep_slope_is_no_jump_and_a_jump_is_one(axes: Any) -> None:
    plots.plot_function(lambda x: (1e6 * x).tanh(), -1.0, 1.0, axes)
    value, _ = curves(axes)
    assert not breaks(value)
    assert max(abs(a[1] - b[1]) for a, b in pairwise(value)) < 0.2  # drawn through points, not as one stroke
    other = axes.figure.add_subplot()
    other.figure.axes[0].remove()
    plots.plot_function(lambda x: wengert.where(x > 0.3, 1.0, x), -1.0, 1.0, other)
    assert breaks([(x, y) for x, y in zip(*other.get_lines()[1].get_data(), strict=True)]) == [
        pytest.approx(0.3, abs=1e-9)
    ]


def test_a_derivative_of_another_size_has_its_own_axis(axes: Any) -> None:
    plots.plot_function(lambda x: (50 * x).sin(), -1.0, 1.0, axes)
    left, right = axes.figure.axes
    assert left.get_ylim() == (pytest.approx(-1.12, abs=0.01), pytest.approx(1.12, abs=0.01))
    assert right.get_ylim() == (pytest.approx(-56.0, abs=0.5), pytest.approx(56.0, abs=0.5))
    assert right.get_ylabel() == "derivative"


def test_a_plot_of_a_function_leaves_every_gradient_as_it_was(axes: Any) -> None:
    model = MLP(2, [3, 1], activation="tanh", rng=random.Random(1))
    made = model.layers[0].neurons[0].w[0] * 2.0
    (model([1.0, 2.0]) + made).backward()
    before = [p.grad for p in [*model.parameters(), made]]
    plots.plot_function(lambda x: model([x, 0.5]) * made, -1.0, 1.0, axes)
    assert [p.grad for p in [*model.parameters(), made]] == before
    assert made.grad == 1.0


def test_a_function_of_plain_numbers_is_drawn(axes: Any) -> None:
    pytest.importorskip("numpy")
    plots.plot_function(lambda x: math.sin(abs(x)), -1.0, 1.0, axes)
    value, slope = curves(axes)
    assert all(y == math.sin(abs(x)) for x, y in value)
    assert all(y == pytest.approx(math.copysign(math.cos(x), x)) for x, y in slope if x and not math.isnan(y))


def test_a_constant_has_the_derivative_0(axes: Any) -> None:
    plots.plot_function(lambda x: Value(3.0), 0.0, 1.0, axes)
    value, slope = curves(axes)
    assert ({y for _, y in value}, {y for _, y in slope}) == ({3.0}, {0.0})
    low, high = axes.get_ylim()
    assert low < 0.0
    assert high > 3.0


@pytest.mark.parametrize(
    ("f", "low", "high", "error", "message"),
    [
        (abs, 1.0, 1.0, ArgumentError, "low is 1.0 and high is 1.0; expected two finite numbers"),
        (abs, 2.0, 1.0, ArgumentError, "the smaller one first"),
        (abs, math.nan, 1.0, ArgumentError, "low is nan"),
        (abs, 0.0, math.inf, ArgumentError, "high is inf"),
        (lambda x: x.data, 0.0, 1.0, OperandError, r"f\(Value\(0.0\)\) is 0.0; expected a function that computes"),
        (lambda x: [x, x], 0.0, 1.0, OperandError, r"f\(Value\(0.0\)\) is \[Value"),
        (lambda x: x.log(), -2.0, -1.0, ArgumentError, "f has no finite value from -2.0 to -1.0"),
    ],
)
def test_what_cannot_be_drawn_is_said(
    f: Callable[[Any], Any], low: float, high: float, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        plots.plot_function(f, low, high)


# -- histograms -------------------------------------------------------------------------------------------------------


def told(axes: Any) -> list[list[str]]:
    """What stands at the left of each histogram, by lines."""
    return [label.get_text().split("\n") for label in axes.get_yticklabels()]


def shares(axes: Any) -> list[list[float]]:
    """The heights of the bars above each floor, as shares of their sum."""
    filled = [patch for patch in axes.patches if patch.get_fill()]
    heights = [[y - patch.get_data().baseline for y in patch.get_data().values] for patch in filled]
    return [[h / sum(row) for h in row] if any(row) else [] for row in heights]


def test_weights_are_counted_layer_by_layer(axes: Any) -> None:
    model = MLP(30, [20, 5], bias="uniform", rng=random.Random(2))
    assert plots.plot_weights(model, axes) is axes
    for i, layer in enumerate(model.layers):
        edges = axes.patches[2 * i].get_data().edges
        numbers = [p.data for p in layer.parameters()]
        found = [sum(a <= x < b for x in numbers) for a, b in pairwise(edges)]
        found[-1] += sum(x == edges[-1] for x in numbers)
        expected = [count / len(numbers) for count in found]
        assert shares(axes)[i] == pytest.approx(expected, abs=0.004)  # a number on an edge may be counted beside it
        assert told(axes)[i] == [f"layers.{i}", f"mean {fmean(numbers):.2g}, sd {pstdev(numbers):.2g}"]


def test_zeros_and_what_is_not_finite_are_told_and_not_drawn(axes: Any) -> None:
    layer = Layer(3, 2)
    for p, number in zip(layer.parameters(), [1.0, 2.0, math.nan, 0.0, 4.0, 5.0, math.inf, 0.0], strict=True):
        p.data = number
    plots.plot_weights(layer, axes)
    assert told(axes) == [["layer", f"mean 2, sd {pstdev([1, 2, 0, 4, 5, 0]):.2g}", "25 % are 0", "2 not finite"]]
    assert sum(share > 0.0 for share in shares(axes)[0]) == 4


def test_gradients_are_those_of_the_last_pass(axes: Any) -> None:
    model = MLP(2, [3, 1], activation="tanh", rng=random.Random(3))
    model([1.0, 2.0]).backward()
    plots.plot_gradients(model, axes)
    for lines, layer in zip(told(axes), model.layers, strict=True):
        numbers = [p.grad for p in layer.parameters()]
        assert lines[1] == f"mean {fmean(numbers):.2g}, sd {pstdev(numbers):.2g}"
    model.zero_grad()
    plots.plot_gradients(model, axes)
    assert axes.get_title(loc="left") == "gradients: all 0"


def test_activations_are_what_each_layer_gives(axes: Any) -> None:
    model = MLP(2, [3, 1], activation="tanh", rng=random.Random(4))
    model([1.0, 1.0]).backward()
    before = [p.grad for p in model.parameters()]
    X = [[1.0, -2.0], [0.5, 3.0], [0.0, 0.0]]
    plots.plot_activations(model, X, axes)
    hidden = [
        [math.tanh(sum(w.data * x for w, x in zip(n.w, row, strict=True)) + n.b.data) for n in model.layers[0].neurons]
        for row in X
    ]
    (last,) = model.layers[1].neurons
    out = [sum(w.data * h for w, h in zip(last.w, row, strict=True)) + last.b.data for row in hidden]
    first = [h for row in hidden for h in row]
    assert told(axes) == [
        ["layers.0 tanh", f"mean {fmean(first):.2g}, sd {pstdev(first):.2g}", "33.3 % are 0"],
        ["layers.1 linear", f"mean {fmean(out):.2g}, sd {pstdev(out):.2g}", "33.3 % are 0"],
    ]
    assert axes.get_title(loc="left") == "activations, 3 examples"
    assert [p.grad for p in model.parameters()] == before


class Blocks(Module):
    def __init__(self) -> None:
        self.table = [[Value(1.0), Value(2.0)], [Value(3.0), Value(4.0)]]
        self.blocks = [{"query": [Value(1.0)]}, {"query": [Value(2.0)]}]
        self.head = MLP(2, [2, 1])
        self.scale = Value(1.0)


def test_layers_are_found_in_any_module(axes: Any) -> None:
    plots.plot_weights(Blocks(), axes)
    names = [lines[0] for lines in told(axes)]
    assert names == ["table", "blocks.0.query", "blocks.1.query", "head.layers.0", "head.layers.1", "scale"]
    plots.plot_weights(Neuron(2), axes)
    assert [lines[0] for lines in told(axes)] == ["neuron"]


def test_numbers_that_are_all_alike_have_a_histogram(axes: Any) -> None:
    for number in (3.0, 1e-200, -1e200):
        axes.clear()
        neuron = Neuron(3)
        for p in neuron.parameters():
            p.data = number
        plots.plot_weights(neuron, axes)
        assert shares(axes) == [[1.0]]
        assert told(axes) == [["neuron", f"mean {number:.2g}, sd 0"]]


def test_what_has_no_histogram_is_said() -> None:
    with pytest.raises(ArgumentError, match=r"Module\(0 parameters\) has no parameters"):
        plots.plot_weights(Module())
    with pytest.raises(DataError, match="X is empty"):
        plots.plot_activations(MLP(2, [1]), [])
    with pytest.raises(ArgumentError, match="has no layers; expected an MLP"):
        plots.plot_activations(Blocks(), [[1.0]])
    with pytest.raises(LengthError, match=r"layers.0, example 1: expected 2 inputs, got 3"):
        plots.plot_activations(MLP(2, [1]), [[1.0, 2.0], [1.0, 2.0, 3.0]])


# -- networks ---------------------------------------------------------------------------------------------------------


def test_a_network_is_drawn_weight_by_weight(axes: Any) -> None:
    from matplotlib.colors import to_hex, to_rgb

    model = MLP(2, [2, 1])
    for p, number in zip(model.parameters(), [1.0, -2.0, 0.5, 0.0, 4.0, -1.0, -3.0, 0.25, 1.0], strict=True):
        p.data = number
    assert plots.plot_network(model, axes=axes) is axes
    assert [circle.center[0] for circle in axes.patches] == sorted(circle.center[0] for circle in axes.patches)
    assert len(axes.patches) == 5
    (lines,) = axes.collections
    drawn = {
        tuple(map(tuple, ends)): (round(float(width), 9), to_hex(colour))
        for ends, width, colour in zip(lines.get_segments(), lines.get_linewidths(), lines.get_colors(), strict=True)
    }
    x1, x2, h1, h2, y = [tuple(circle.center) for circle in axes.patches]
    blue, vermilion = "#0072b2", "#d55e00"
    widest = max(width for width, _ in drawn.values())
    expected = {(x1, h1): 1.0, (x2, h1): -2.0, (x1, h2): 0.0, (x2, h2): 4.0, (h1, y): -3.0, (h2, y): 0.25}
    for ends, weight in expected.items():
        assert drawn[ends] == (pytest.approx(widest * abs(weight) / 4.0), blue if weight > 0 else vermilion)
    assert len(drawn) == 6
    faces = [to_rgb(circle.get_facecolor()) for circle in axes.patches]
    assert faces[2][2] > faces[2][0]  # a bias of 0.5: blue
    assert faces[3][0] > faces[3][2]  # of -1
    assert min(faces[3]) < min(faces[2])  # the larger, the deeper
    captions = [text.get_text() for text in axes.texts]
    assert captions == ["2\ninputs", "2\nrelu", "1\nlinear"]
    assert axes.get_legend().get_texts()[-1].get_text() == "widest: |weight| 4; deepest: |bias| 1"


def test_large_layers_are_drawn_in_part_and_say_so(axes: Any) -> None:
    plots.plot_network(MLP(64, [32, 10]), axes=axes)
    assert [t.get_text() for t in axes.texts if "more" in t.get_text()] == ["… 52 more", "… 20 more"]
    assert len(axes.patches) == 12 + 12 + 10
    assert len(axes.collections[0].get_segments()) == 12 * 12 + 12 * 10
    axes.clear()
    plots.plot_network(MLP(1000, [5, 1]), most=4, axes=axes)
    assert len(axes.patches) == 4 + 4 + 1
    assert [t.get_text() for t in axes.texts if "more" in t.get_text()] == ["… 996 more", "… 1 more"]


@pytest.mark.parametrize("sizes", [(1,), (3, 4, 4, 1), (64, 32, 10), (2, 16, 16, 16, 16, 3), (3000, 100, 1)])
def test_no_text_lies_on_another(sizes: tuple[int, ...]) -> None:
    model = MLP(sizes[0], [*sizes[1:]]) if len(sizes) > 1 else Neuron(*sizes)
    matplotlib = pytest.importorskip("matplotlib", reason="needs matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    drawn = plots.plot_network(model)
    drawn.figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in drawn.texts] + [drawn.get_legend().get_window_extent()]
    pyplot.close(drawn.figure)
    assert not [1 for a, b in combinations(boxes, 2) if a.overlaps(b)]


def test_a_layer_and_a_neuron_are_networks(axes: Any) -> None:
    for model, circles in ((Layer(3, 2), 5), (Neuron(4), 5)):
        axes.clear()
        plots.plot_network(model, axes=axes)
        assert len(axes.patches) == circles


def test_what_is_no_network_is_said() -> None:
    model = MLP(2, [3, 1])
    model.layers[0].neurons[2].w[1].data = math.nan
    with pytest.raises(DataError, match=r"layers\.0\.neurons\.2\.w\.1 is nan"):
        plots.plot_network(model)
    with pytest.raises(ArgumentError, match="has no layers"):
        plots.plot_network(Blocks())
    with pytest.raises(ArgumentError, match="most is 1; expected an int >= 2"):
        plots.plot_network(MLP(2, [1]), most=1)
    model = MLP(2, [3, 1])
    model.layers[1] = Layer(4, 1)
    with pytest.raises(ArgumentError, match=re.escape("layers.1 has [4] inputs, but the layer before it has 3")):
        plots.plot_network(model)
    model.layers = [lambda x: x]  # type: ignore[list-item]
    with pytest.raises(ArgumentError, match=r"layers\.0 is not a layer of neurons"):
        plots.plot_network(model)


# -- boundaries -------------------------------------------------------------------------------------------------------


def test_a_boundary_is_fine_where_classes_meet(axes: Any) -> None:
    asked = []

    def inside(points: list[Any]) -> list[int]:
        asked.append(len(points))
        return [int(math.hypot(x, y) < 1.0) for x, y in points]

    corners = [[-2.0, -2.0], [2.0, 2.0], [0.0, 0.0]]
    plots.plot_decision_boundary(inside, corners, [0, 0, 1], axes)
    (image,) = axes.images
    left, right, low, high = image.get_extent()
    cells = image.get_array()
    size = len(cells)
    width, height = (right - left) / size, (high - low) / size
    right_ones = [
        (tuple(cells[j][i]) == tuple(cells[size // 2][size // 2]))
        == (math.hypot(left + width * (i + 0.5), low + height * (j + 0.5)) < 1.0)
        for i in range(0, size, 3)
        for j in range(0, size, 3)
    ]
    assert all(right_ones)
    assert size >= 300
    assert sum(asked) < size * size / 5


def regions(axes: Any) -> list[tuple[float, float, tuple[float, ...]]]:
    """Some of the plane's places (x, y), and the colour that is there."""
    (image,) = axes.images
    left, right, low, high = image.get_extent()
    cells = image.get_array()
    size = len(cells)
    return [
        (left + (right - left) * (i + 0.5) / size, low + (high - low) * (j + 0.5) / size, tuple(cells[j][i]))
        for i in range(0, size, 7)
        for j in range(0, size, 7)
    ]


@pytest.mark.parametrize("pair", [(-1, 1), (0, 1)])
def test_of_two_classes_the_higher_has_the_colour_of_a_positive_weight(axes: Any, pair: tuple[int, int]) -> None:
    from matplotlib.colors import to_hex

    plots.plot_decision_boundary(lambda points: [pair[x > 0] for x, _ in points], [[-1.0, 0.0], [1.0, 0.0]], pair, axes)
    of_points = [to_hex(points.get_facecolor()[0]) for points in axes.collections]
    network = plots.plot_network(line_model((-1.0, 1.0, 0.0)), axes=axes.figure.add_subplot())
    (lines,) = network.collections
    of_weights = [to_hex(colour) for colour in lines.get_colors()]
    assert of_points == of_weights == ["#d55e00", "#0072b2"]
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("x1", "x2")


def line_model(*weights: tuple[float, float, float], **options: Any) -> MLP:
    """Outputs a x + b y + c, one for each of the weights (a, b, c)."""
    model = MLP(2, [len(weights)], **options)
    for neuron, (a, b, c) in zip(model.layers[0].neurons, weights, strict=True):
        neuron.load_state_dict({"w.0": a, "w.1": b, "b": c})
    return model


CORNERS = [[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]]


@pytest.mark.parametrize("X", [CORNERS, [[0.0, 0.0], [1.0, 0.2]], [[0.0, 0.0], [1.0, 1000.0]]])
def test_the_demo_draws_the_boundary_as_large_as_its_own_figure(X: list[list[float]]) -> None:
    matplotlib = pytest.importorskip("matplotlib", reason="needs matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    def classify(points: Any) -> list[int]:
        return [0] * len(points)

    Y = [0] * len(X)
    own = plots.plot_decision_boundary(classify, X, Y).figure
    first = next(demo._pictures("moons", MLP(2, [1]), wengert.History(), X, Y, Y, classify))
    assert first.size == pytest.approx(own.get_size_inches())
    pyplot.close(own)


@pytest.mark.parametrize(
    ("model", "labels", "cut", "expected"),
    [
        (line_model((1.0, 0.0, -0.2)), [-1, -1, 1, 1], None, lambda x, y: x > 0.2),
        (line_model((1.0, 0.0, -0.2)), [0, 0, 1, 1], None, lambda x, y: x > 0.7),  # a half is as near to 0 as to 1
        (line_model((1.0, 0.0, -0.2)), [0, 0, 1, 1], 0.0, lambda x, y: x > 0.2),
        (line_model((1.0, 0.0, -0.2), squeeze=False), [-1, -1, 1, 1], None, lambda x, y: x > 0.2),
        (line_model((1.0, 0.0, 0.0), output="sigmoid"), [0, 0, 1, 1], None, lambda x, y: x > 0.0),
        (line_model((1.0, 0.0, 0.0), (0.0, 1.0, 0.0)), [0, 1, 0, 1], None, lambda x, y: y > x),
        (line_model((1.0, 1.0, 1.0)), [0, 1, 1, 2], None, lambda x, y: min(2, max(0, round(x + y + 1)))),
        (
            line_model((1.0, 0.0, 0.0), (-1.0, 0.0, 0.0), (0.0, 2.0, 0.0)),
            [1, 2, 0, 0],
            None,
            lambda x, y: 2 if 2 * y > abs(x) else int(x < 0),
        ),
    ],
)
def test_the_regions_of_a_model_are_what_it_predicts(
    axes: Any, model: MLP, labels: list[int], cut: float | None, expected: Callable[[float, float], int]
) -> None:
    before = [(p.data, p.grad) for p in model.parameters()]
    plots.plot_decision_boundary(model, CORNERS, labels, axes, cut=cut)
    assert [(p.data, p.grad) for p in model.parameters()] == before
    colours: dict[int, set[Any]] = {}
    for x, y, colour in regions(axes):
        colours.setdefault(int(expected(x, y)), set()).add(colour)
    assert len(colours) == len(set(labels))
    assert all(len(of_one_class) == 1 for of_one_class in colours.values())
    assert len(set.union(*colours.values())) == len(colours)


def test_a_model_of_ones_own_and_arrays_of_points(axes: Any) -> None:
    numpy = pytest.importorskip("numpy")

    class Own:
        def parameters(self) -> list[Value]:
            return []

        def __call__(self, x: Any) -> Value:
            return Value(x[0]) - x[1]

    plots.plot_decision_boundary(Own(), numpy.array(CORNERS), numpy.array([-1, -1, 1, 1]), axes)
    assert len({colour for x, y, colour in regions(axes) if x > y + 0.1}) == 1
    assert len({colour for _, _, colour in regions(axes)}) == 2


def test_features_of_different_sizes_fill_the_plot(axes: Any) -> None:
    plots.plot_decision_boundary(lambda points: [0] * len(points), [[0.0, 0.0], [1000.0, 1.0]], [0, 0], axes)
    assert axes.get_aspect() == "auto"


# -- patterns ---------------------------------------------------------------------------------------------------------


def squares(axes: Any) -> dict[tuple[int, int], str]:
    """The colour of the square in each place that has one."""
    import matplotlib.colors

    (made,) = axes.collections
    paint = made.get_facecolors()
    return {
        (round(path.vertices[:4, 1].mean()), round(path.vertices[:4, 0].mean())): matplotlib.colors.to_hex(
            paint[n % len(paint)]
        )
        for n, path in enumerate(made.get_paths())
    }


def test_a_pattern_is_drawn_with_row_0_on_top_and_the_colors_of_its_columns(axes: Any) -> None:
    np = pytest.importorskip("numpy", reason="needs NumPy")
    matrix = np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]])
    assert plots.plot_sparsity(matrix, axes=axes) is axes
    assert set(squares(axes)) == {(0, 0), (0, 2), (1, 1)}
    assert axes.get_ylim() == (1.5, -0.5)
    assert axes.get_title(loc="left") == "2 × 3, 3 nonzero"
    other = axes.figure.subplots()
    plots.plot_sparsity(matrix, [0, 0, 1], axes=other)
    found = squares(other)
    assert found[0, 0] == found[1, 1] != found[0, 2]
    assert other.get_title(loc="left") == "2 × 3, 3 nonzero, 2 colors"
    with pytest.raises(LengthError, match="there are 2 groups and 3 columns"):
        plots.plot_sparsity(matrix, [0, 1])


def test_a_coloring_paints_what_one_product_gives(axes: Any) -> None:
    np = pytest.importorskip("numpy", reason="needs NumPy")
    sparse = pytest.importorskip("scipy.sparse", reason="needs SciPy")
    from wengert.derivatives.coloring import Pattern, two_sided

    arrow = np.eye(6)
    arrow[-1] = arrow[:, -1] = 1.0
    colors = two_sided(Pattern.of(*np.nonzero(arrow), arrow.shape))
    plots.plot_sparsity(sparse.csc_array(arrow), colors, axes)  # whatever the order in which it is stored
    found = squares(axes)
    assert set(found) == set(zip(*np.nonzero(arrow), strict=True))
    assert len({found[i, i] for i in range(5)}) == 1
    assert len({found[5, i] for i in range(5)}) == 1
    assert len({found[0, 0], found[5, 0], found[0, 5]}) == 3
