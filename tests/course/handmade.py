"""Files as the tutorials have their readers write them: an engine, a network, a loop; and slips as patches of them."""

from __future__ import annotations

import contextlib
import json
import os
import random
import subprocess
import sys
from functools import cache
from typing import Any

from wengert import engine
from wengert.course.grading import loop_trials
from wengert.course.grading.diagnosis import Seen
from wengert.course.grading.kit import NAMES, Kit, UnfitError

ENGINE = """
import math
import random

class Value:
    def __init__(self, data, _children=(), _op=""):
        self.data = data
        self.grad = 0.0
        self._prev = set(_children)
        self._op = _op
        self._backward = lambda: None

    def __add__(self, other):
        other = other if isinstance(other, Value) else Value(other)
        out = Value(self.data + other.data, (self, other), "+")
        def _backward():
            self.grad += out.grad
            other.grad += out.grad
        out._backward = _backward
        return out

    def __mul__(self, other):
        other = other if isinstance(other, Value) else Value(other)
        out = Value(self.data * other.data, (self, other), "*")
        def _backward():
            self.grad += other.data * out.grad
            other.grad += self.data * out.grad
        out._backward = _backward
        return out

    def __pow__(self, n):
        assert isinstance(n, (int, float))
        out = Value(self.data**n, (self,), f"**{n}")
        def _backward():
            self.grad += n * self.data ** (n - 1) * out.grad
        out._backward = _backward
        return out

    def tanh(self):
        t = math.tanh(self.data)
        out = Value(t, (self,), "tanh")
        def _backward():
            self.grad += (1 - t**2) * out.grad
        out._backward = _backward
        return out

    def relu(self):
        out = Value(max(0.0, self.data), (self,), "ReLU")
        def _backward():
            self.grad += (out.data > 0) * out.grad
        out._backward = _backward
        return out

    def __neg__(self):
        return self * -1

    def __sub__(self, other):
        return self + (-other)

    def __radd__(self, other):
        return self + other

    def __rmul__(self, other):
        return self * other

    def __rsub__(self, other):
        return other + (-self)

    def backward(self):
        order, visited = [], set()
        def visit(v):
            if v not in visited:
                visited.add(v)
                for child in v._prev:
                    visit(child)
                order.append(v)
        visit(self)
        self.grad = 1.0
        for v in reversed(order):
            v._backward()
"""

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


def names_of(kind: Any) -> dict[str, str]:
    """What a class calls its parts."""
    one = kind(2.0)
    return {part: found for part, names in NAMES.items() for found in names if hasattr(one, found)}


def tried(trials: list[Any], kit: Kit) -> dict[str, Seen]:
    """What the trials give, errors and all."""
    seen = {}
    for trial in trials:
        numbers: list[float] = []
        kind = says = ""
        try:
            for _, _, number in trial.run(kit):
                numbers.append(number)
        except UnfitError as error:
            kind, says = f"unfit {error.kind}", str(error)
        except Exception as error:
            kind, says = type(error).__name__, f"{type(error).__name__}: {error}"
        seen[trial.id] = Seen(tuple(numbers), kind, says)
    return seen


def run(text: str, seed: int = 1) -> Kit:
    """Run a file in here, and make the kit to try it with."""
    space: dict[str, Any] = {"__name__": "examined"}
    random.seed(seed)
    exec(compile(text, "examined.py", "exec", dont_inherit=True), space)
    return Kit(space["Value"], names_of(space["Value"]), space, seed=seed)


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
    kit = Kit(space["Value"], names_of(space["Value"]), space)
    kit.loop = watch  # type: ignore[attr-defined]
    return tried(loop_trials.TRIALS, kit)


@cache
def elsewhere(texts: tuple[str, ...]) -> list[dict[str, Seen]]:
    """The same of many files, in one process in which wengert is interpreted."""
    environment = {**os.environ, "WENGERT_INTERPRETED": "1"}
    command = [sys.executable, __file__]
    done = subprocess.run(command, input=json.dumps(texts), env=environment, capture_output=True, text=True, check=True)
    return [{name: Seen(tuple(one[0]), *one[1:]) for name, one in seen.items()} for seen in json.loads(done.stdout)]


if __name__ == "__main__":
    with contextlib.redirect_stdout(sys.stderr):
        assert not engine.compiled
        seen = [watched(text) for text in json.load(sys.stdin)]
    print(json.dumps([{n: [one.numbers, one.kind, one.says, one.place] for n, one in told.items()} for told in seen]))
