"""Files as the tutorials have their readers write them: an engine, a network, a loop; and slips as patches of them."""

from __future__ import annotations

import contextlib
import json
import os
import random
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

from tests.engines import TUTORIAL
from wengert import engine
from wengert_course.checks import load, loop_trials, probe
from wengert_course.checks.kit import NAMES, Kit, Trial, TrialPlan
from wengert_course.checks.steps import Seen

COURSE = Path(__file__).resolve().parent.parent
ENGINE = "import random\n" + TUTORIAL
WENGERT = "import math\nimport random\nfrom wengert import Value\n"

TANH = """
class Neuron:
    def __init__(self, nin):
        self.w = [Value(random.uniform(-1, 1)) for _ in range(nin)]
        self.b = Value(random.uniform(-1, 1))

    def __call__(self, x):
        act = sum((wi * xi for wi, xi in zip(self.w, x)), self.b)
        return act.tanh()

    def parameters(self):
        return self.w + [self.b]

class Layer:
    def __init__(self, nin, nout):
        self.neurons = [Neuron(nin) for _ in range(nout)]

    def __call__(self, x):
        outs = [n(x) for n in self.neurons]
        return outs[0] if len(outs) == 1 else outs

    def parameters(self):
        return [p for n in self.neurons for p in n.parameters()]

class MLP:
    def __init__(self, nin, nouts):
        sz = [nin] + nouts
        self.layers = [Layer(sz[i], sz[i + 1]) for i in range(len(nouts))]

    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        return x

    def parameters(self):
        return [p for layer in self.layers for p in layer.parameters()]
"""

RELU = """
class Module:
    def parameters(self):
        return []

    def zero_grad(self):
        for p in self.parameters():
            p.grad = 0.0

class Neuron(Module):
    def __init__(self, n_inputs, nonlin=True):
        self.weights = [Value(random.uniform(-1, 1)) for _ in range(n_inputs)]
        self.bias = Value(0)
        self.nonlin = nonlin

    def __call__(self, x):
        total = self.bias
        for weight, number in zip(self.weights, x):
            total = total + weight * number
        return total.relu() if self.nonlin else total

    def parameters(self):
        return [self.bias] + self.weights

class Layer(Module):
    def __init__(self, n_inputs, n_outputs, **options):
        self.neurons = [Neuron(n_inputs, **options) for _ in range(n_outputs)]

    def __call__(self, x):
        return [neuron(x) for neuron in self.neurons]

    def parameters(self):
        params = []
        for neuron in self.neurons:
            params.extend(neuron.parameters())
        return params

class MLP(Module):
    def __init__(self, n_in, layer_sizes):
        self.layers = []
        for i, size in enumerate(layer_sizes):
            last = i == len(layer_sizes) - 1
            self.layers.append(Layer(n_in, size, nonlin=not last))
            n_in = size

    def __call__(self, x):
        out = x
        for layer in self.layers:
            out = layer(out)
        return out[0] if len(out) == 1 else out

    def parameters(self):
        return [p for layer in self.layers for p in layer.parameters()]
"""


def patched(text: str, *changes: tuple[str, str]) -> str:
    """The text with each change made once; a change that does not fit is an error of the test."""
    for old, new in changes:
        assert text.count(old) == 1, (old, text.count(old))
        text = text.replace(old, new)
    return text


def tried(trials: list[Any], kit: Kit) -> dict[str, Seen]:
    """What the trials give, errors and all."""
    done = [probe.attempt(Trial(*trial), kit, "examined.py", load) for trial in trials]
    return {one["done"]: Seen(tuple(one["numbers"]), **one.get("error", {})) for one in done}


def run(text: str, seed: int = 1) -> Kit:
    """Run a file in here, and make the kit to try it with."""
    space: dict[str, Any] = {"__name__": "examined"}
    random.seed(seed)
    exec(compile(text, "examined.py", "exec", dont_inherit=True), space)
    return Kit(space["Value"], load.parts_of(space["Value"], NAMES, ""), space, TrialPlan(seed=seed))


def watched(text: str, path: str = "", seconds: float = 8.0) -> dict[str, Seen]:
    """Run a file under the watch, as the process that checks it does, and say what its loop did."""
    if "from wengert" in text and engine.compiled:  # which cannot be watched: what checks a file has it interpreted
        return elsewhere((text,))[0]
    space: dict[str, Any] = {"__name__": "examined", "__file__": path}
    watch = loop_trials.Watch(seconds)
    random.seed(3)
    watch.start(space)
    try:
        exec(compile(text, "examined.py", "exec", dont_inherit=True), space)
    except Exception as error:
        print(type(error).__name__, error, file=sys.stderr)
    except loop_trials.Enough:
        pass
    finally:
        watch.stop()
    kit = Kit(space["Value"], load.parts_of(space["Value"], NAMES, ""), space)
    kit.loop = watch
    return tried(loop_trials.TRIALS, kit)


@cache
def elsewhere(texts: tuple[str, ...]) -> list[dict[str, Seen]]:
    """The same of many files, in one process in which wengert is interpreted."""
    environment = {**os.environ, "WENGERT_INTERPRETED": "1"}
    command = [sys.executable, "-m", "tests.handmade"]
    how: dict[str, Any] = {"env": environment, "cwd": COURSE, "capture_output": True, "text": True, "check": True}
    done = subprocess.run(command, input=json.dumps(texts), **how)
    return [{name: Seen(tuple(one[0]), *one[1:]) for name, one in seen.items()} for seen in json.loads(done.stdout)]


if __name__ == "__main__":
    with contextlib.redirect_stdout(sys.stderr):
        assert not engine.compiled
        seen = [watched(text) for text in json.load(sys.stdin)]
    print(json.dumps(seen))
