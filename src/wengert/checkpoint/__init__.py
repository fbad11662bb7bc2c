"""Save and load what training has made, safe against faults, damage and hostile files.

    >>> import os, tempfile
    >>> from wengert.nn import MLP
    >>> model = MLP(2, [3, 1])
    >>> path = os.path.join(tempfile.mkdtemp(), "model.safetensors")
    >>> save(model, path)
    >>> twin = MLP(2, [3, 1])
    >>> load(twin, path)
    >>> twin.state_dict() == model.state_dict()
    True

A run that is to go on to the same bits needs more than the parameters: the optimizer's momentum and count of steps, the
history, the state of the random numbers. Pass what there is, to `save` and to `load`:

    >>> import random
    >>> from wengert.training.history import History
    >>> from wengert.optim import Adam
    >>> optimizer, history = Adam(model), History([0.5, 0.25])
    >>> save(model, path, optimizer=optimizer, history=history, rng=random)
    >>> again = History()
    >>> load(twin, path, optimizer=Adam(twin), history=again, rng=random)
    >>> again.loss
    [0.5, 0.25]

The file has the layout of safetensors (see `wengert.checkpoint.safetensors`), so its libraries read it. A list of
parameters is one tensor: `model.layers.0.neurons.3.w` of shape [64]; a parameter by itself has shape []. What else
was saved stands under `optimizer.`, `history.` and `rng.`. Nothing in a file is ever run, and what is read into
memory is bounded by the size of the model (and of a history, by 4,194,304 epochs), not by the file's.
"""

from wengert.checkpoint.states import HasNamedParameters, HasState, load, save

__all__ = ["HasNamedParameters", "HasState", "load", "save"]
