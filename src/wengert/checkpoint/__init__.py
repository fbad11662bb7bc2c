"""Saves and loads models and the state of training, safe against crashes, damage and hostile files.

    >>> import os, tempfile
    >>> from wengert.nn import MLP
    >>> model = MLP(2, [3, 1])
    >>> path = os.path.join(tempfile.mkdtemp(), "model.safetensors")
    >>> save(model, path)
    >>> other = MLP(2, [3, 1])
    >>> load(other, path)
    >>> other.state_dict() == model.state_dict()
    True

To resume a run bit for bit you need more than the parameters: the optimizer's momentum and count of steps, the history,
and the state of the random numbers. Pass them to `save` and to `load`:

    >>> import random
    >>> from wengert.training.history import History
    >>> from wengert.optim import Adam
    >>> optimizer, history = Adam(model), History([0.5, 0.25])
    >>> save(model, path, optimizer=optimizer, history=history, rng=random)
    >>> again = History()
    >>> load(other, path, optimizer=Adam(other), history=again, rng=random)
    >>> again.loss
    [0.5, 0.25]

The file has the layout of safetensors (see `wengert.checkpoint.safetensors`), so that its libraries can read it. A list
of parameters is one tensor, `model.layers.0.neurons.3.w` of shape [64]; a single parameter has shape []. The other
parts have the prefixes `optimizer.`, `history.` and `rng.`. Nothing in a file is ever executed, and the memory for
reading it is bounded by the size of the model (and 4,194,304 epochs of a history), not by the size of the file.
"""

from wengert.checkpoint.states import HasNamedParameters, HasState, load, save

__all__ = ["HasNamedParameters", "HasState", "load", "save"]
