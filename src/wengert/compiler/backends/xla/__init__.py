"""Programs by XLA: the `kernel` of one, and the steps of training on a `mesh` of devices."""

from wengert.compiler.backends.xla.kernel import XLAKernel, precision, traced
from wengert.compiler.backends.xla.mesh import DeviceBatches, mesh_of, processes_of

__all__ = ["DeviceBatches", "XLAKernel", "mesh_of", "precision", "processes_of", "traced"]
