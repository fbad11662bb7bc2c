"""The programs in arrays, for every library that writes them as NumPy does."""

from __future__ import annotations

from typing import Any

from benchmarks.problems import Network

__all__ = ["cast", "expression", "gpt", "loss", "masks"]


def expression(a: Any, b: Any, relu: Any) -> Any:
    """The expression of micrograd's README."""
    c = a + b
    d = a * b + b**3
    c = c + c + 1
    c = c + 1 + c + (-a)
    d = d + d * 2 + relu(b + a)
    d = d + 3 * d + relu(b - a)
    f = (c - d) ** 2
    return f / 2.0 + 10.0 / f


def cast(np: Any, problem: Network) -> tuple[list[Any], Any, Any]:
    """The parameters [W1, b1, W2, b2, ...], the examples and the targets (labels as indicator rows)."""
    parameters = []
    for weights, biases in zip(problem.weights, problem.biases, strict=True):
        parameters += [np.array(weights), np.array(biases)]
    Y = np.eye(problem.sizes[-1])[np.array(problem.Y)] if problem.loss == "crossentropy" else np.array(problem.Y)
    return parameters, np.array(problem.X), Y


def loss(np: Any, problem: Network, parameters: list[Any], X: Any, Y: Any) -> Any:
    """The loss of the network on all examples at once.

    Args:
        np: the library's module.
        problem: activations and the kind of loss.
        parameters: W1 (neurons, inputs), b1 (neurons), W2, ...
        X: (examples, inputs).
        Y: (examples), or (examples, classes) for cross-entropy.
    """
    signal, last = X, len(parameters) - 2
    for i in range(0, len(parameters), 2):
        signal = np.dot(signal, parameters[i].T) + parameters[i + 1]
        kind = problem.output if i == last else problem.hidden
        signal = {"relu": lambda z: np.maximum(z, 0.0), "tanh": np.tanh, "linear": lambda z: z}[kind](signal)
    if problem.loss == "crossentropy":
        greatest = np.max(signal, axis=1, keepdims=True)
        normalizer = np.log(np.sum(np.exp(signal - greatest), axis=1)) + greatest[:, 0]
        return np.mean(normalizer - np.sum(signal * Y, axis=1))
    if problem.loss == "squared":
        return np.sum((signal[:, 0] - Y) ** 2)
    squares = sum(np.sum(p * p) for p in parameters)
    return np.mean(np.maximum(1.0 - Y * signal[:, 0], 0.0)) + 1e-4 * squares


def gpt(lib: Any, softmax: Any, matrix: Any, tokens: Any, targets: Any, mask: Any, heads: int) -> Any:
    """The loss of the names model on one document, all positions at once.

    Args:
        lib: the library's module, with exp, log and relu's `maximum`, `einsum`.
        softmax: of the last axis.
        matrix: the parameters by name.
        tokens: what is read (positions).
        targets: what follows, as indicator rows (positions, tokens).
        mask: 0 where a position may look, a large negative number where it may not (positions, positions).
        heads: how many share the columns.
    """

    def rmsnorm(x: Any) -> Any:
        return x * ((x * x).mean(1)[:, None] + 1e-5) ** -0.5

    count, width = len(tokens), matrix["wq"].shape[0]
    x = rmsnorm(matrix["wte"][tokens] + matrix["wpe"][:count])
    normed = rmsnorm(x)
    shape = (count, heads, width // heads)
    q, k, v = ((normed @ matrix[name].T).reshape(shape) for name in ("wq", "wk", "wv"))
    weights = softmax(lib.einsum("ihd,jhd->hij", q, k) / (width // heads) ** 0.5 + mask)
    x = lib.einsum("hij,jhd->ihd", weights, v).reshape((count, width)) @ matrix["wo"].T + x
    hidden = rmsnorm(x) @ matrix["fc1"].T
    x = (hidden * (hidden > 0)) @ matrix["fc2"].T + x
    return -(targets * lib.log(softmax(x @ matrix["lm_head"].T))).sum() / count


def masks(np: Any, document: list[int], tokens: int) -> tuple[Any, Any, Any]:
    """The inputs, the targets and the causal mask of one document, for `gpt`."""
    count = len(document) - 1
    return np.array(document[:-1]), np.eye(tokens)[np.array(document[1:])], np.triu(np.full((count, count), -1e30), 1)
