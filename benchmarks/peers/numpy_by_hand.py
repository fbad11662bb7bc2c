"""NumPy by hand: the forward pass, and the backward pass that its author derived on paper."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks import problems
from benchmarks.peers import arrays

__all__ = ["KERNELS", "PROGRAMS", "TITLE"]

TITLE = "NumPy by hand"

Pair = tuple[Callable[[], list[float]], Callable[[], Any]]  # a whole step; its part without the update


def network(problem: problems.Network) -> Pair:
    """A training step of the network, and its part without the update."""
    parameters, X, Y = arrays.cast(np, problem)
    count, last = len(X), len(parameters) - 2

    def kernel() -> tuple[float, list[Any]]:
        signals, gradients = [X], []
        for i in range(0, len(parameters), 2):
            z = signals[-1] @ parameters[i].T
            z += parameters[i + 1]
            kind = problem.output if i == last else problem.hidden
            if kind == "relu":
                np.maximum(z, 0.0, out=z)
            elif kind == "tanh":
                np.tanh(z, out=z)
            signals.append(z)
        out = signals[-1]
        if problem.loss == "hinge":
            margins = 1.0 - Y * out[:, 0]
            wrong = margins > 0.0
            loss = margins[wrong].sum() / count + 1e-4 * sum(float(p.ravel() @ p.ravel()) for p in parameters)
            gradient = np.where(wrong, -Y / count, 0.0)[:, None]
        elif problem.loss == "squared":
            error = out[:, 0] - Y
            loss = error @ error
            gradient = 2.0 * error[:, None]
        else:
            shifted = out - out.max(axis=1, keepdims=True)
            exps = np.exp(shifted)
            totals = exps.sum(axis=1)
            loss = (np.log(totals).sum() - (shifted * Y).sum()) / count
            gradient = (exps / totals[:, None] - Y) / count
        for i in range(last, -1, -2):
            y = signals[i // 2 + 1]
            kind = problem.output if i == last else problem.hidden
            if kind == "relu":
                gradient = gradient * (y > 0.0)
            elif kind == "tanh":
                gradient = gradient * (1.0 - y * y)
            dw, db = gradient.T @ signals[i // 2], gradient.sum(axis=0)
            if i:
                gradient = gradient @ parameters[i]
            if problem.loss == "hinge":
                dw += 2e-4 * parameters[i]
                db += 2e-4 * parameters[i + 1]
            gradients += [db, dw]
        return float(loss), gradients

    def step() -> list[float]:
        loss, gradients = kernel()
        for p, gradient in zip(reversed(parameters), gradients, strict=True):
            gradient *= problem.lr
            p -= gradient
        return [loss]

    return step, kernel


def names() -> Pair:
    """A training step of the GPT: every derivative on paper, Adam over one flat array whose views the matrices are; and
    the step's part without Adam.
    """
    problem = problems.names()
    shapes = {name: np.shape(rows) for name, rows in problem.matrices.items()}
    flat = np.concatenate([np.ravel(rows) for rows in problem.matrices.values()])
    flat_gradient, mean, square = np.zeros_like(flat), np.zeros_like(flat), np.zeros_like(flat)
    matrix, gradient, at = {}, {}, 0
    for name, (rows, columns) in shapes.items():
        part = slice(at, at := at + rows * columns)
        matrix[name], gradient[name] = flat[part].reshape(rows, columns), flat_gradient[part].reshape(rows, columns)
    documents = [np.array(document) for document in problem.documents]
    heads, width = problem.heads, shapes["wq"][0]
    hidden = np.triu(np.full((16, 16), -np.inf), 1)
    turns = steps = 0

    def rmsnorm(x: Any) -> tuple[Any, Any]:
        scale = ((x * x).mean(axis=1, keepdims=True) + 1e-5) ** -0.5
        return x * scale, scale

    def rmsnorm_back(g: Any, x: Any, scale: Any) -> Any:
        return scale * g - x * (scale**3 * (g * x).mean(axis=1, keepdims=True))

    def split(x: Any) -> Any:
        return x.reshape(len(x), heads, width // heads).swapaxes(0, 1)

    def join(x: Any) -> Any:
        return x.swapaxes(0, 1).reshape(-1, width)

    def kernel() -> float:
        nonlocal turns
        document = documents[turns % len(documents)]
        turns += 1
        tokens, following = document[:-1], document[1:]
        count, root = len(tokens), (width // heads) ** 0.5
        x0 = matrix["wte"][tokens] + matrix["wpe"][:count]
        x1, scale0 = rmsnorm(x0)
        n1, scale1 = rmsnorm(x1)
        q, k, v = (split(n1 @ matrix[name].T) for name in ("wq", "wk", "wv"))
        scores = q @ k.swapaxes(1, 2) / root + hidden[:count, :count]
        exps = np.exp(scores - scores.max(axis=2, keepdims=True))
        weights = exps / exps.sum(axis=2, keepdims=True)
        read = join(weights @ v)
        x2 = read @ matrix["wo"].T + x1
        n2, scale2 = rmsnorm(x2)
        up = np.maximum(n2 @ matrix["fc1"].T, 0.0)
        x3 = up @ matrix["fc2"].T + x2
        logits = x3 @ matrix["lm_head"].T
        exps = np.exp(logits - logits.max(axis=1, keepdims=True))
        probabilities = exps / exps.sum(axis=1, keepdims=True)
        places = np.arange(count)
        loss = -np.log(probabilities[places, following]).mean()

        probabilities[places, following] -= 1.0
        g = probabilities / count
        gradient["lm_head"][:] = g.T @ x3
        g3 = g @ matrix["lm_head"]
        gradient["fc2"][:] = g3.T @ up
        g = (g3 @ matrix["fc2"]) * (up > 0.0)
        gradient["fc1"][:] = g.T @ n2
        g2 = g3 + rmsnorm_back(g @ matrix["fc1"], x2, scale2)
        gradient["wo"][:] = g2.T @ read
        g = split(g2 @ matrix["wo"])
        gw = g @ v.swapaxes(1, 2)
        gs = weights * (gw - (gw * weights).sum(axis=2, keepdims=True)) / root
        gn = 0.0
        for name, part in (("wq", gs @ k), ("wk", gs.swapaxes(1, 2) @ q), ("wv", weights.swapaxes(1, 2) @ g)):
            part = join(part)
            gradient[name][:] = part.T @ n1
            gn = gn + part @ matrix[name]
        g1 = g2 + rmsnorm_back(gn, x1, scale1)
        g0 = rmsnorm_back(g1, x0, scale0)
        gradient["wte"][:] = 0.0
        np.add.at(gradient["wte"], tokens, g0)
        gradient["wpe"][:count] = g0
        gradient["wpe"][count:] = 0.0
        return float(loss)

    def step() -> list[float]:
        nonlocal steps
        loss = kernel()
        steps += 1
        rate, scale = problem.lr / (1 - problem.beta1**steps), (1 - problem.beta2**steps) ** -0.5
        mean[:] += (1 - problem.beta1) * (flat_gradient - mean)
        square[:] += (1 - problem.beta2) * (flat_gradient * flat_gradient - square)
        flat[:] -= rate * mean / (np.sqrt(square) * scale + problem.eps)
        return [loss]

    return step, kernel


KERNELS: dict[str, Any] = {
    **{name: partial(lambda make: network(make()), make) for name, make in problems.NETWORKS.items()},
    "names": names,
}
PROGRAMS = {name: partial(lambda make: make()[0], make) for name, make in KERNELS.items()}
