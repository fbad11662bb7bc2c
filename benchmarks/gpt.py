"""A one-layer GPT in plain scalar arithmetic, for any kind of number that has + - * / ** exp log relu.

Nothing here calls a library: a linear map is a sum of products, softmax and normalization are written out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

__all__ = ["loss"]

Vector = list[Any]
Dot = Callable[[Sequence[Any], Sequence[Any]], Any]


def written_out(ws: Sequence[Any], xs: Sequence[Any]) -> Any:
    """The sum of the products."""
    return sum(w * x for w, x in zip(ws, xs, strict=False))


def linear(dot: Dot, rows: Sequence[Sequence[Any]], x: Sequence[Any]) -> Vector:
    """The matrix of these rows times x."""
    return [dot(row, x) for row in rows]


def rmsnorm(dot: Dot, x: Sequence[Any]) -> Vector:
    """x at a root mean square of 1 (Zhang and Sennrich 2019), without weights."""
    mean = dot(x, x) * (1.0 / len(x))
    scale = (mean + 1e-5) ** -0.5
    return [xi * scale for xi in x]


def softmax(logits: Sequence[Any]) -> Vector:
    """Probabilities; the greatest logit is subtracted as a plain number, which changes no gradient."""
    greatest = max(logit.data for logit in logits)
    exps = [(logit - greatest).exp() for logit in logits]
    total = sum(exps)
    return [e / total for e in exps]


def added(x: Sequence[Any], y: Sequence[Any]) -> Vector:
    """x + y, element by element."""
    return [xi + yi for xi, yi in zip(x, y, strict=False)]


def attention(dot: Dot, q: Vector, keys: list[Vector], values: list[Vector], heads: int) -> Vector:
    """What one position reads from itself and from those before it, head beside head."""
    width = len(q) // heads
    out: Vector = []
    for head in range(heads):
        part = slice(head * width, (head + 1) * width)
        scores = [dot(q[part], k[part]) / width**0.5 for k in keys]
        weights = softmax(scores)
        for column in range(part.start, part.stop):
            out.append(dot(weights, [v[column] for v in values]))
    return out


def loss(
    tokens: Sequence[int], matrices: Mapping[str, Sequence[Sequence[Any]]], heads: int, dot: Dot = written_out
) -> Any:
    """The mean of -log p[next token] over a document.

    Args:
        tokens: the document, from its first token to its last.
        matrices: the parameters: wte, wpe, lm_head, wq, wk, wv, wo, fc1, fc2, row by row.
        heads: how many heads share the columns.
        dot: the sum of products, for an engine that has one of its own.
    """
    keys: list[Vector] = []
    values: list[Vector] = []
    losses = []
    for position in range(len(tokens) - 1):
        x = rmsnorm(dot, added(matrices["wte"][tokens[position]], matrices["wpe"][position]))
        normed = rmsnorm(dot, x)
        keys.append(linear(dot, matrices["wk"], normed))
        values.append(linear(dot, matrices["wv"], normed))
        read = attention(dot, linear(dot, matrices["wq"], normed), keys, values, heads)
        x = added(linear(dot, matrices["wo"], read), x)
        hidden = [h.relu() for h in linear(dot, matrices["fc1"], rmsnorm(dot, x))]
        x = added(linear(dot, matrices["fc2"], hidden), x)
        probabilities = softmax(linear(dot, matrices["lm_head"], x))
        losses.append(-probabilities[tokens[position + 1]].log())
    return sum(losses) * (1.0 / len(losses))
