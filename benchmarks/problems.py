"""What is computed: sizes, data and starting weights, the same numbers for every peer.

Everything comes from Python's own generator with a fixed seed, so that no peer needs another's library.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

__all__ = ["NETWORKS", "Names", "Network", "digits", "mnist", "moons", "names", "tiny"]

Matrix = list[list[float]]
BOS = 26  # the token before and after a name; 0 to 25 are letters


@dataclass(frozen=True)
class Network:
    """A multi-layer perceptron, its data, and how it is trained: full-batch gradient descent.

    Attributes:
        sizes: inputs, neurons of each layer.
        hidden: "relu" or "tanh".
        output: "linear" or "tanh".
        loss: "hinge": the mean of max(0, 1 - y * score) plus 1e-4 times the sum of squares of all parameters;
            "squared": the sum of (score - y)**2; "crossentropy": the mean of -log softmax(scores)[label].
        lr: the learning rate.
        X: the examples.
        Y: their targets: numbers, or labels counted from 0.
        weights: for each layer, for each neuron, one for each input.
        biases: for each layer, one for each neuron.
    """

    sizes: tuple[int, ...]
    hidden: str
    output: str
    loss: str
    lr: float
    X: Matrix
    Y: list[float] | list[int]
    weights: list[Matrix]
    biases: Matrix

    @property
    def parameters(self) -> int:
        """How many parameters it has."""
        return sum((inputs + 1) * neurons for inputs, neurons in pairwise(self.sizes))


def _weights(sizes: tuple[int, ...], generator: random.Random) -> tuple[list[Matrix], Matrix]:
    """Uniform weights, scaled by the square root of the number of inputs; small biases."""
    weights, biases = [], []
    for inputs, neurons in pairwise(sizes):
        scale = inputs**-0.5
        weights.append([[scale * generator.uniform(-1, 1) for _ in range(inputs)] for _ in range(neurons)])
        biases.append([0.1 * generator.uniform(-1, 1) for _ in range(neurons)])
    return weights, biases


def moons() -> Network:
    """Two interleaving half circles of 100 points, 337 parameters: micrograd's demo."""
    generator = random.Random(1337)
    X, Y = [], []
    for i in range(100):
        angle = math.pi * generator.random()
        x, y = math.cos(angle), math.sin(angle)
        if i % 2:
            x, y = 1.0 - x, 0.5 - y
        X.append([x + generator.gauss(0, 0.1), y + generator.gauss(0, 0.1)])
        Y.append(2.0 * (i % 2) - 1.0)
    return Network((2, 16, 16, 1), "relu", "linear", "hinge", 0.05, X, Y, *_weights((2, 16, 16, 1), generator))


def tiny() -> Network:
    """Four points, 41 parameters of tanh neurons: the lecture's first network."""
    generator = random.Random(7)
    X = [[2.0, 3.0, -1.0], [3.0, -1.0, 0.5], [0.5, 1.0, 1.0], [1.0, 1.0, -1.0]]
    return Network(
        (3, 4, 4, 1), "tanh", "tanh", "squared", 0.05, X, [1.0, -1.0, -1.0, 1.0], *_weights((3, 4, 4, 1), generator)
    )


def _classes(sizes: tuple[int, ...], seed: int) -> Network:
    """64 random examples in 10 classes: the arithmetic of images without the images."""
    generator = random.Random(seed)
    X = [[generator.random() for _ in range(sizes[0])] for _ in range(64)]
    Y = [generator.randrange(sizes[-1]) for _ in range(64)]
    return Network(sizes, "relu", "linear", "crossentropy", 0.01, X, Y, *_weights(sizes, generator))


def digits() -> Network:
    """64-32-10, as for 8 x 8 digits, batch 64."""
    return _classes((64, 32, 10), 8)


def mnist() -> Network:
    """784-128-10, as for 28 x 28 digits, batch 64: 101,770 parameters."""
    return _classes((784, 128, 10), 28)


NETWORKS: dict[str, Callable[[], Network]] = {"moons": moons, "tiny": tiny, "digits": digits, "mnist-size": mnist}


@dataclass(frozen=True)
class Names:
    """A one-layer GPT on names, 4,192 parameters, trained by Adam on one name a step.

    Attributes:
        documents: the tokens of each name, between two `BOS`.
        matrices: wte, wpe, lm_head, wq, wk, wv, wo, fc1, fc2, each row by row.
        heads: how many heads share the 16 columns.
        lr, beta1, beta2, eps: Adam's, in PyTorch's formula.
    """

    documents: list[list[int]]
    matrices: dict[str, Matrix]
    heads: int = 4
    lr: float = 0.001
    beta1: float = 0.85
    beta2: float = 0.99
    eps: float = 1e-8


def names() -> Names:
    """Sixteen made-up names of the lengths that names have, and the starting weights."""
    generator = random.Random(42)
    lengths = [6, 5, 7, 6, 4, 8, 6, 5, 7, 6, 9, 3, 6, 5, 7, 10]
    documents = [[BOS, *(generator.randrange(26) for _ in range(length)), BOS] for length in lengths]
    rows = {"wte": 27, "wpe": 16, "lm_head": 27, "wq": 16, "wk": 16, "wv": 16, "wo": 16, "fc1": 64, "fc2": 16}
    matrices = {
        name: [[generator.gauss(0, 0.08) for _ in range(64 if name == "fc2" else 16)] for _ in range(count)]
        for name, count in rows.items()
    }
    return Names(documents, matrices)
