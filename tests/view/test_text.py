"""Pictures as text, and what the plots hold: drawn without a screen, and asked what is on them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from wengert.errors import ArgumentError, DataError, LengthError, MissingExtraError
from wengert.training import History
from wengert.view import plots, text

pytestmark = pytest.mark.once  # what is drawn is a graph, whichever engine made it

HISTORY = History([2.0, 1.0, 0.5], val_loss=[2.5, 1.5, 1.0], accuracy=[0.5, 0.8, 0.9], val_accuracy=[0.4, 0.7, 0.8])
IMAGES = [[0.0, 1.0] * 32, [1.0] * 64, [0.5] * 64]


# -- text -------------------------------------------------------------------------------------------------------------


def test_a_confusion_table_lines_up_whatever_its_counts() -> None:
    lines = text.confusion([[12345, 0], [7, 99]]).splitlines()
    assert len({len(line) for line in lines[1:]}) == 1
    assert lines[-1].split() == ["1", "7", "99"]
    assert lines[-2].split() == ["0", "12345", "."]


def test_a_curve_falls_from_its_top_to_its_bottom() -> None:
    lines = text.curve([3.0, 2.0, 1.0], width=30, height=6).splitlines()
    assert lines[0] == "loss, 3 epochs, from 3 to 1"
    assert [line.count("*") for line in lines] == [0, 10, 0, 10, 0, 10, 0, 0]
    assert lines[1].split() == ["3", "|**********"]


def test_a_curve_of_nothing_and_of_zeros() -> None:
    assert text.curve([]) == "loss: no epoch was completed"
    assert text.curve([0.0, 0.0]).count("*") == 60


def test_digits_stand_side_by_side_and_mistakes_are_said() -> None:
    page = text.digits(IMAGES, [1, 2, 3], [1, 7, 3], across=2)
    bands = page.split("\n\n")
    assert [len(band.splitlines()) for band in bands] == [9, 9]
    assert bands[0].splitlines()[-1].split(maxsplit=1) == ["1", "7, wrong: it is 2"]
    assert bands[0].splitlines()[0] == "  @@  @@  @@  @@    @@@@@@@@@@@@@@@@"


def test_regions_show_every_class_and_every_point() -> None:
    picture = text.regions(lambda points: [int(y > x) for x, y in points], [[0.0, 0.0], [1.0, 1.0]], [0, 1], width=20)
    rows = picture.splitlines()
    assert {len(row) for row in rows} == {20}
    assert rows[0][0] == "b"
    assert rows[-1][-1] == "a"
    assert rows[0][-1] == "B"
    assert rows[-1][0] == "A"


def test_points_on_one_line_have_bounds() -> None:
    assert text.bounds([[1.0, 2.0], [1.0, 2.0]]) == (0.5, 1.5, 1.5, 2.5)
    assert text.bounds([[0.0, 0.0], [2.0, 4.0]], margin=0.5) == (-1.0, 3.0, -2.0, 6.0)


# -- plots ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def axes() -> Any:
    figure = pytest.importorskip("matplotlib.figure", reason="needs matplotlib")
    return figure.Figure().subplots()


@pytest.mark.plot
def test_a_history_has_a_line_for_each_curve(axes: Any) -> None:
    assert plots.plot_history(HISTORY, axes) is axes
    right = next(other for other in axes.figure.axes if other is not axes)
    drawn = {line.get_label(): list(line.get_ydata()) for a in (axes, right) for line in a.get_lines()}
    assert drawn == {
        "training loss": HISTORY.loss,
        "validation loss": HISTORY.val_loss,
        "training accuracy": [50.0, 80.0, 90.0],
        "validation accuracy": [40.0, 70.0, 80.0],
    }
    assert [line.get_text() for line in axes.get_legend().get_texts()] == list(drawn)


@pytest.mark.plot
def test_a_history_of_losses_alone_and_of_nothing(axes: Any) -> None:
    plots.plot_history(History(loss=[1.0]), axes)
    assert axes.figure.axes == [axes]
    assert all(tick == int(tick) for tick in axes.get_xticks())  # there is no epoch 0.98
    assert plots.plot_history(History(), axes.figure.add_subplot()).get_legend() is None


@pytest.mark.plot
def test_a_metric_that_is_no_fraction_has_no_percent() -> None:
    axes = plots.plot_history(History(loss=[3.0, 2.0], accuracy=[-1.5, 0.5], val_accuracy=[0.2, 0.4]))
    metric = axes.figure.axes[1]
    assert metric.get_ylabel() == "metric"
    assert [list(line.get_ydata()) for line in metric.lines] == [[-1.5, 0.5], [0.2, 0.4]]
    assert {text.get_text() for text in axes.get_legend().get_texts()} == {
        "training loss",
        "training metric",
        "validation metric",
    }


@pytest.mark.plot
def test_digits_are_labelled_and_mistakes_framed(axes: Any) -> None:
    plots.plot_digits(IMAGES, [1, 2, 3], [1, 7, 3], axes)
    assert [t.get_text() for t in axes.texts] == ["1", "7, not 2", "3"]
    (drawn,) = axes.images
    pixels = drawn.get_array().filled(0.5)
    assert [pixels[0:8, x : x + 8].ravel().tolist() for x in (0, 10, 20)] == IMAGES
    assert pixels[8:].tolist() == [[0.5] * 30] * 5, "nothing is drawn between the digits"
    assert drawn.get_extent() == [0, 30, 13, 0]
    assert len(axes.patches) == 1
    assert axes.get_title(loc="left") == "3 digits, 1 read wrongly"


@pytest.mark.plot
def test_a_confusion_table_shows_its_counts(axes: Any) -> None:
    plots.plot_confusion([[5, 0], [2, 4]], axes)
    assert [t.get_text() for t in axes.texts] == ["5", "·", "2", "4"]
    strength = [patch.get_alpha() for patch in axes.patches]
    assert strength[1] == 0.0
    assert strength[0] > strength[3] > 0.0


@pytest.mark.plot
def test_a_boundary_lies_where_the_classifier_has_it(axes: Any) -> None:
    X, Y = [[-1.0, 0.0], [1.0, 0.0], [0.5, 1.0]], [-1, 1, 1]
    plots.plot_decision_boundary(lambda points: [1 if x > 0 else -1 for x, _ in points], X, Y, axes)
    (image,) = axes.images
    row = image.get_array()[0]
    assert tuple(row[0]) != tuple(row[-1])
    assert [c.get_offsets().tolist() for c in axes.collections] == [[[-1.0, 0.0]], [[1.0, 0.0], [0.5, 1.0]]]
    assert [t.get_text() for t in axes.get_legend().get_texts()] == ["-1", "1"]


def test_what_cannot_be_plotted_is_said() -> None:
    with pytest.raises(ArgumentError, match=r"\[2.0, 1.0\] is not a History; for a list of losses: plot_history\(Hist"):
        plots.plot_history([2.0, 1.0])
    for other in (None, 3.0):
        with pytest.raises(ArgumentError, match="has no parameters: there is nothing to draw"):
            plots.plot_gradients(other)
    points = [[0.0, 1.0], [1.0, 0.0]]
    with pytest.raises(LengthError, match="X has 2 points but Y has 1"):
        plots.plot_decision_boundary(lambda points: [0] * len(points), points, [0])
    with pytest.raises(DataError, match="X is empty"):
        plots.plot_decision_boundary(lambda points: [0] * len(points), [], [])


@pytest.mark.plot
def test_plots_make_their_own_axes_if_they_are_given_none(tmp_path: Path) -> None:
    matplotlib = pytest.importorskip("matplotlib", reason="needs matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    for drawn in (
        HISTORY.plot(),
        plots.plot_digits(IMAGES, [1, 2, 3], [1, 7, 3]),
        plots.plot_confusion([[1, 2], [3, 4]]),
        plots.plot_decision_boundary(lambda points: [0] * len(points), [[0.0, 1.0]], [0]),
    ):
        drawn.figure.savefig(tmp_path / "plot.png")
        assert (tmp_path / "plot.png").stat().st_size > 3000
        pyplot.close(drawn.figure)


def test_without_matplotlib_a_plot_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    with pytest.raises(MissingExtraError, match=r'pip install matplotlib \(the extra "plot"\)'):
        HISTORY.plot()
