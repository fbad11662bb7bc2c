"""Plots with matplotlib (extra `plot`). Each function draws on the axes it is given, or on new ones, and returns them.

What a model learnt: `plot_history`, `plot_decision_boundary`, `plot_digits`, `plot_confusion`. What it is made of:
`plot_network`, `plot_weights`, `plot_gradients`, `plot_activations`. What it all stands on: `plot_function`, with the
derivative. None of them changes a number or a gradient, and none opens a window: `axes.figure.savefig` writes a file,
a notebook shows the axes by itself.

Colours are those of Okabe and Ito (2008), which people of all kinds of colour vision tell apart.
"""

from wengert.view.plots.functions import plot_function
from wengert.view.plots.histograms import plot_activations, plot_gradients, plot_weights
from wengert.view.plots.networks import plot_network
from wengert.view.plots.training import plot_confusion, plot_decision_boundary, plot_digits, plot_history

__all__ = ["plot_activations", "plot_confusion", "plot_decision_boundary", "plot_digits", "plot_function"]
__all__ += ["plot_gradients", "plot_history", "plot_network", "plot_weights"]
