"""Draws docs/images/learnt.png, the picture in the README, from what `wengert demo` learns.

Run it as python tools/make_readme_picture.py. Left some of the test digits with what the network read, right the
regions that it made of the spiral.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from matplotlib.figure import Figure

from wengert import checkpoint, data, demo
from wengert.nn import MLP
from wengert.training import predict
from wengert.view import plots

PICTURE = Path(__file__).resolve().parent.parent / "docs" / "images" / "learnt.png"
ROWS, ACROSS = 7, 20  # of digits


def learnt(name: str) -> MLP:
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


def main() -> None:
    """Train both networks and draw."""
    figure = Figure(figsize=(15.5, 4.9), layout="constrained", facecolor="white")
    left, right = figure.subplots(1, 2, width_ratios=(2.35, 1))

    model = learnt("digits")
    _, X, _, Y = data.train_test_split(*data.digits(), test=demo.SETTINGS["digits"].held_out, seed=0)
    shown = ROWS * ACROSS
    read = classes(model, X)
    plots.plot_digits(X[:shown], Y[:shown], read[:shown], left)
    mistakes = sum(y != r for y, r in zip(Y, read, strict=True))
    left.set_title(f"{shown} of {len(Y)} test digits; {mistakes} of all are read wrongly", loc="left", fontsize=10)

    model = learnt("spiral")
    X, Y = demo.SETTINGS["spiral"].load()
    plots.plot_decision_boundary(lambda points: classes(model, points), X, Y, right)
    right.set(xlabel="", ylabel="", xticks=(), yticks=())
    if right.get_legend():
        right.get_legend().remove()

    PICTURE.parent.mkdir(exist_ok=True)
    figure.savefig(PICTURE, dpi=90)


if __name__ == "__main__":
    main()
