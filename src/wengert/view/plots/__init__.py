"""Plots with matplotlib (extra `plot`). Each function draws on the given axes, or on new ones, and returns them.

Results of training: `plot_history`, `plot_decision_boundary`, `plot_digits`, `plot_confusion`. The model itself:
`plot_network`, `plot_weights`, `plot_gradients`, `plot_activations`. A function and its derivative: `plot_function`.
The pattern of a sparse matrix: `plot_sparsity`. None of them changes data or gradients, and none opens a window:
`axes.figure.savefig` writes a file, and a notebook shows the axes. `TrainingAnimation` needs NumPy instead of
matplotlib: it plays a training run as a page.

The colours are those of Okabe and Ito (2008), which people with colour-vision deficiencies can tell apart.
"""

from wengert.view.plots.animation import TrainingAnimation
from wengert.view.plots.functions import plot_function
from wengert.view.plots.histograms import plot_activations, plot_gradients, plot_weights
from wengert.view.plots.networks import plot_network
from wengert.view.plots.sparsity import plot_sparsity
from wengert.view.plots.training import plane_size as plane_size
from wengert.view.plots.training import plot_confusion, plot_decision_boundary, plot_digits, plot_history

__all__ = ["TrainingAnimation", "plot_activations", "plot_confusion", "plot_decision_boundary", "plot_digits"]
__all__ += ["plot_function", "plot_gradients", "plot_history", "plot_network", "plot_sparsity", "plot_weights"]
