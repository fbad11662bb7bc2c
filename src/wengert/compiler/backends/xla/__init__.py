"""Programs by XLA: the `kernel` of one, and the steps of training on a `mesh` of devices."""
