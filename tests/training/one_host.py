"""One of several processes that train together, for `test_hosts.py`: ``python -m tests.training.one_host ADDRESS COUNT
NUMBER WHAT FOLDER``. It prints what it came to.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
from pathlib import Path
from typing import Any

import jax

from wengert import checkpoint, fit, losses, nn, optim
from wengert.data import spiral
from wengert.errors import ArgumentError
from wengert.training import History

X, Y = (rows[:64] for rows in spiral(22, seed=4))
HEARTBEAT = 10  # seconds
HALVES = [slice(0, None, 2), slice(1, None, 2)]  # of each batch the half
UNEQUAL = [slice(0, 37), slice(37, None)]


def branching(prediction: Any, target: int) -> Any:
    """A loss of several specializations."""
    best = max(prediction, key=lambda p: p.data) if target else prediction[0]
    return (best - prediction[target]) ** 2 + losses.cross_entropy(prediction, target)


def two_ways(prediction: Any, target: int) -> Any:
    """A loss of two specializations, which the processes come to in different orders."""
    loss = losses.cross_entropy(prediction, target)
    return loss + prediction[0] ** 2 if prediction[0] > 0.0 else loss


def train(what: str, part: slice, folder: Path, number: int) -> dict[str, Any]:
    """A run of some kind on a part of the data."""
    model = nn.MLP(2, [3], rng=random.Random(7 + number if what == "other numbers" else 7))
    optimizer, history = optim.Adam(model, 0.05), History()
    options: dict[str, Any] = {"epochs": 20, "shuffle": False, "progress": False, "backend": "xla"}
    own: dict[str, Any] = {"batches": {"batch_size": 16, "epochs": 8}, "small": {"batch_size": 1}}
    options |= (own | {"two ways": {"epochs": 4}, "after a refusal": own["batches"]}).get(what, {})
    file = folder / f"run{number}.safetensors"

    def callback(history: History) -> bool:
        if what == "killed" and number == 1 and len(history) == 3:
            os.kill(os.getpid(), signal.SIGKILL)
        if what == "first half" and len(history) == 8:
            checkpoint.save(model, file, optimizer=optimizer, history=history)
            return number == 0  # one process's wish is enough
        return False

    if what == "second half":
        checkpoint.load(model, folder / "run0.safetensors", optimizer=optimizer, history=history)
    held_out = None
    if what == "measured":  # the first ones of this part, or of both
        parts = UNEQUAL if part == slice(None) else [part]
        held_out = [x for each in parts for x in X[each][:7]], [y for each in parts for y in Y[each][:7]]
    options["callback"] = None if what == "one callback" and number else callback
    loss = two_ways if what == "two ways" else losses.cross_entropy
    history = fit(model, loss, X[part], Y[part], optimizer, history=history, validation=held_out, **options)
    return {
        "loss": history.loss,
        "accuracy": history.accuracy,
        "val_loss": history.val_loss,
        "numbers": [p.data for p in model.parameters()],
        "state": optimizer.state_dict(),
        "saved": file.exists(),
    }


if __name__ == "__main__":
    address, count, number, what, folder = sys.argv[1:]
    jax.distributed.initialize(
        address, int(count), int(number), heartbeat_timeout_seconds=HEARTBEAT, initialization_timeout=60
    )
    part = (UNEQUAL if what == "measured" else HALVES)[int(number)] if count == "2" else slice(None)
    refused = ""
    if what == "after a refusal":  # which can be trained after what both refuse
        try:
            train("other numbers", part, Path(folder), int(number))
        except ArgumentError as error:
            refused = str(error)
    print(json.dumps({**train(what, part, Path(folder), int(number)), "refused": refused}))
    jax.distributed.shutdown()
