"""The notebook of first steps runs from top to bottom, and every cell shows what calculus says."""

from __future__ import annotations

import re
from ast import literal_eval
from collections.abc import Callable
from math import tanh
from pathlib import Path
from typing import Any

import pytest

NOTEBOOK = Path(__file__).resolve().parent.parent / "examples" / "first-steps.ipynb"


def approx(expected: Any, digits: int = 6) -> Any:
    return pytest.approx(expected, abs=10.0**-digits)


E3 = {"a": 6.0, "b": -4.0, "c": -2.0, "d": -2.0, "e": -2.0, "f": 4.0, "L": 1.0}
E5 = {"n": 0.5, "x1": -1.5, "w1": 1.0, "x2": 0.5, "w2": 0.0, "b": 0.5}

SHOWN: dict[str, Callable[[Any], bool]] = {
    "expression": lambda out: out == 4.0,
    "differences": lambda out: out == approx((-3.0, 2.0, 1.0)),
    "memory": lambda out: out == ("+", ["e", "c"], "*", ["a", "b"]),
    "by-hand": lambda out: out == E3,
    "check": lambda out: out == approx({name: E3[name] for name in "abcf"}, 4),
    "nudge": lambda out: out == approx(-7.286496),
    "neuron-by-hand": lambda out: out == approx(E5),
    "neuron-backward": lambda out: out == approx(E5),
    "tanh-apart": lambda out: out[0] == round(tanh(0.8813735870195432), 4) and out[1] == approx(E5),
    "used-twice": lambda out: out == 2.0,
    "not-cleared": lambda out: out == ([2.0, 4.0], 2.0),
    "train": lambda out: out[0] > 1.0 and out[1] < 0.1,
    "predictions": lambda out: out == approx([1.0, -1.0, -1.0, 1.0], 0.5),
}
"""What the last expression of a cell has to be."""

VALUES = {
    "value": "4.0",
    "loss": "-8.0",
    "neuron-forward": "0.707",
    "neuron-drawn": "0.707",
    "loss-graph": "Drawing(125 values in 8 boxes",
}
"""A Value, or a drawing, at the end of a cell: what it says as text; its graph is to be seen too."""

PICTURES = ("loss-curve", "network-picture", "function")
"""Cells that show a plot."""


@pytest.fixture(scope="module")
def cells() -> dict[str, Any]:
    """The code cells of the notebook, run in a kernel of their own, under their names."""
    nbformat = pytest.importorskip("nbformat", reason="needs nbclient")
    nbclient = pytest.importorskip("nbclient", reason="needs nbclient")
    pytest.importorskip("ipykernel", reason="needs ipykernel, which runs notebooks")
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    nbformat.validate(notebook)
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("MPLBACKEND", raising=False)  # the notebook shows its plots itself
        nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
    return {cell.id: cell for cell in notebook.cells if cell.cell_type == "code"}


def plain(cell: Any) -> str:
    """What the last expression of a cell is, as text."""
    (text,) = [output.data["text/plain"] for output in cell.outputs if output.output_type == "execute_result"]
    return str(text)


pytestmark = [
    pytest.mark.slow,
    pytest.mark.plot,
    pytest.mark.filterwarnings("default"),  # a client of Jupyter has its own to warn of
]


@pytest.mark.parametrize("name", SHOWN)
def test_a_cell_shows(cells: dict[str, Any], name: str) -> None:
    text = plain(cells[name])
    assert SHOWN[name](literal_eval(text)), text


@pytest.mark.parametrize("name", VALUES)
def test_a_value_shows_its_number_and_its_graph(cells: dict[str, Any], name: str) -> None:
    assert VALUES[name] in plain(cells[name])
    (output,) = cells[name].outputs
    assert "<svg" in output.data["image/svg+xml"]


@pytest.mark.parametrize("name", PICTURES)
def test_a_plot_is_shown(cells: dict[str, Any], name: str) -> None:
    assert [len(o.data["image/png"]) > 5000 for o in cells[name].outputs if "data" in o] == [True]


def test_the_steps_show_themselves_in_a_frame(cells: dict[str, Any]) -> None:
    (output,) = cells["neuron-steps"].outputs
    assert plain(cells["neuron-steps"]) == "Steps(o: 11 steps, 10 nodes)"
    assert output.data["text/html"].startswith('<iframe sandbox="allow-scripts"')


def test_the_network_has_41_parameters(cells: dict[str, Any]) -> None:
    assert re.search(r"\b41 parameters", plain(cells["mlp"]))


def test_every_cell_is_looked_at_and_none_warns(cells: dict[str, Any]) -> None:
    assert set(cells) == {*SHOWN, *VALUES, *PICTURES, "neuron-steps", "mlp"}
    assert [output for cell in cells.values() for output in cell.outputs if output.output_type == "stream"] == []


def test_the_file_holds_no_outputs() -> None:
    text = NOTEBOOK.read_text(encoding="utf-8")
    assert '"outputs": []' in text
    assert '"output_type"' not in text
    assert not re.search(r'"execution_count": \d', text)
