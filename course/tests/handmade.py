"""Files as the tutorials have their readers write them: an engine, a network, a loop; and slips as patches of them."""

from __future__ import annotations

from tests.engines import TUTORIAL

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
        outs = [neuron(x) for neuron in self.neurons]
        return outs[0] if len(outs) == 1 else outs

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
        return out

    def parameters(self):
        return [p for layer in self.layers for p in layer.parameters()]
"""


def patched(text: str, *changes: tuple[str, str]) -> str:
    """The text with each change made once; a change that does not fit is an error of the test."""
    for old, new in changes:
        assert text.count(old) == 1, (old, text.count(old))
        text = text.replace(old, new)
    return text


TRAIN = """
def train(model, xs, ys, steps, rate):
    losses = []
    for step in range(steps):
        loss = sum(((model(x) - y) ** 2 for x, y in zip(xs, ys)), Value(0.0)) / len(xs)
        for p in model.parameters():
            p.grad = 0.0
        loss.backward()
        for p in model.parameters():
            p.data -= rate * p.grad
        losses.append(loss.data)
    return losses
"""
