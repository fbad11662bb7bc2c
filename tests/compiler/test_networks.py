"""Networks, compiled and eager: layers, classifiers, recurrent cells, attention, a GPT."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest

import wengert
from benchmarks import gpt, problems
from tests.compiler.checks import CLOSE, Numbers, difference
from tests.compiler.models import compare, flat, lifted, normal, same, values
from wengert import Value, losses, nn, ops

np = pytest.importorskip("numpy")

pytestmark = pytest.mark.once  # what is recorded and lifted does not depend on which engine runs


# ------------------------------------------------------------------------------------- networks


@pytest.mark.parametrize("activation", ["relu", "tanh", "sigmoid"])
def test_an_mlp(activation: str) -> None:
    model = nn.MLP(3, [8, 8, 1], activation=activation, bias="uniform", rng=random.Random(1))

    def loss(x: Numbers, y: float) -> Any:
        return (model(x) - y) ** 2

    compiled = compare(loss, model.parameters(), [normal(1, 7, 3), normal(2, 7)], 12)
    assert compiled._server.latest().lifted.products >= 2


def test_neurons_by_hand() -> None:
    generator = random.Random(2)
    hidden, out = values(generator, 6, 4), values(generator, 7)

    def loss(x: Numbers, y: float) -> Any:
        h = [sum((w * xi for w, xi in zip(row, x, strict=False)), row[-1]).tanh() for row in hidden]
        score = out[0]
        for w, v in zip(out[1:], h, strict=True):
            score = score + w * v
        return (1 - y * score).relu() + 0.01 * sum(p * p for p in flat([hidden, out]))

    compare(loss, flat([hidden, out]), [normal(1, 9, 3), np.where(normal(2, 9) > 0, 1.0, -1.0)], 16)


@pytest.mark.torch
def test_an_mlp_as_in_pytorch() -> None:
    import torch

    model = nn.MLP(3, [5, 2], activation="tanh", bias="uniform", rng=random.Random(3))
    X, Y = normal(1, 8, 3), normal(2, 8, 2)
    compiled = wengert.compile(lambda x, y: losses.mse(model(x), y))
    got = compiled.mean(X, Y)
    layers = [
        [torch.tensor([[w.data for w in n.w] for n in layer.neurons], dtype=torch.float64, requires_grad=True),
         torch.tensor([n.b.data for n in layer.neurons], dtype=torch.float64, requires_grad=True)]
        for layer in model.layers
    ]  # fmt: skip
    h = torch.tanh(torch.nn.functional.linear(torch.tensor(X), *layers[0]))
    want = torch.nn.functional.mse_loss(torch.nn.functional.linear(h, *layers[1]), torch.tensor(Y))
    want.backward()
    assert got.data == pytest.approx(want.item(), rel=1e-13)
    got.backward()
    for layer, (weights, biases) in zip(model.layers, layers, strict=True):
        assert difference([[w.grad for w in n.w] for n in layer.neurons], weights.grad.numpy()) < CLOSE
        assert difference([n.b.grad for n in layer.neurons], biases.grad.numpy()) < CLOSE
    lifted(compiled, 8)


def test_a_classifier_with_classes_as_integers() -> None:
    model = nn.MLP(5, [8, 4], rng=random.Random(4))

    def loss(x: Numbers, label: int) -> Any:
        return losses.cross_entropy(model(x), label)

    compare(loss, model.parameters(), [normal(1, 9, 5), np.array([0, 3, 1, 1, 2, 3, 0, 0, 2])], 14)


def test_a_classifier_with_one_hot_targets() -> None:
    model = nn.MLP(5, [8, 4], rng=random.Random(5))

    def loss(x: Numbers, target: Numbers) -> Any:
        logs = wengert.log_softmax(model(x))
        return -sum(t * z for t, z in zip(target, logs, strict=True))

    compare(loss, model.parameters(), [normal(1, 9, 5), np.eye(4)[[0, 3, 1, 1, 2, 3, 0, 0, 2]]], 20)


def activations() -> list[str]:
    """Every name that a layer takes as its activation and that is defined on the whole line."""
    rows = [row for row in ops.TABLE[: ops.BUILT_IN] if row.arity and row.arity - len(row.defaults) == 1]
    return ["linear", *[row.name for row in rows if row.domain[0] == (-3.0, 3.0)]]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("activation", activations())
def test_a_layer_of_each_activation(activation: str) -> None:
    first = nn.Layer(3, 5, activation=activation, bias="uniform", rng=random.Random(6))
    last = nn.Neuron(5, activation="linear", bias="uniform", rng=random.Random(7))

    def loss(x: Numbers) -> Any:
        return last(first(x)) ** 2

    compare(loss, first.parameters() + last.parameters(), [normal(1, 6, 3)], 14)


def test_activations_of_the_users_own() -> None:
    model = nn.MLP(2, [4, 1], activation=lambda v: v * v.sigmoid() + 0.1 * v**3, rng=random.Random(8))
    compare(lambda x: model(x).softplus(), model.parameters(), [normal(1, 6, 2)], 12)


def test_an_operation_of_the_users_own() -> None:
    bump = wengert.op(
        "bump_of_lifting", value=lambda x: 1.0 / (1.0 + x * x), partials=lambda out, x: -2 * x * out * out
    )
    generator = random.Random(9)
    w = values(generator, 4, 3)

    def loss(x: Numbers) -> Any:
        return sum(bump(wengert.dot(row, x)) for row in w)

    compare(loss, flat(w), [normal(1, 5, 3)], 10)


def test_a_recurrent_cell_over_ten_steps() -> None:
    generator = random.Random(10)
    of_x, of_h, bias = values(generator, 6, 2), values(generator, 6, 6), values(generator, 6)

    def loss(steps: list[Numbers]) -> Any:
        h: Numbers = [Value(0.0)] * 6
        for x in steps:
            h = [
                (
                    sum(w * v for w, v in zip(a, x, strict=True)) + sum(w * v for w, v in zip(b, h, strict=True)) + c
                ).tanh()
                for a, b, c in zip(of_x, of_h, bias, strict=True)
            ]
        return sum(v * v for v in h)

    compare(loss, flat([of_x, of_h, bias]), [normal(1, 4, 10, 2)], 50)


def test_a_gated_recurrent_cell_of_neurons() -> None:
    gates = [
        nn.Layer(5, 3, activation=a, bias="uniform", rng=random.Random(n)) for n, a in enumerate(["sigmoid", "tanh"])
    ]

    def loss(steps: list[Numbers]) -> Any:
        h: Numbers = [0.0] * 3
        for x in steps:
            keep, new = (gate([*x, *h]) for gate in gates)
            h = [k * a + (1 - k) * b for k, a, b in zip(keep, h, new, strict=True)]
        return sum(h)

    compare(loss, gates[0].parameters() + gates[1].parameters(), [normal(1, 4, 8, 2)], 60)


# ------------------------------------------------------------------------------------- attention


def softmax(scores: Numbers) -> Numbers:
    """As one writes it by hand."""
    greatest = max(s.data for s in scores)
    exps = [(s - greatest).exp() for s in scores]
    total = sum(exps)
    return [e / total for e in exps]


def causal(wq: Any, wk: Any, wv: Any) -> Callable[[list[Numbers]], Any]:
    """A causal attention head, as one writes it by hand."""

    def linear(rows: Any, x: Numbers) -> Numbers:
        return [sum(w * v for w, v in zip(row, x, strict=True)) for row in rows]

    def loss(xs: list[Numbers]) -> Any:
        q, k, v = ([linear(w, x) for x in xs] for w in (wq, wk, wv))
        total: Any = 0.0
        for t in range(len(xs)):
            scores = [sum(a * b for a, b in zip(q[t], k[s], strict=True)) / 2.0 for s in range(t + 1)]
            weights = softmax(scores)
            out = [sum(w * v[s][c] for s, w in enumerate(weights)) for c in range(len(wv))]
            total = total + sum(o * o for o in out)
        return total

    return loss


def test_causal_attention() -> None:
    generator = random.Random(11)
    weights = [values(generator, 4, 3) for _ in range(3)]
    compare(causal(*weights), flat(weights), [normal(1, 4, 7, 3)], 20)


@pytest.mark.torch
def test_causal_attention_as_in_pytorch() -> None:
    import torch

    generator = random.Random(12)
    weights = [values(generator, 4, 3) for _ in range(3)]
    X = normal(1, 5, 6, 3)
    compiled = wengert.compile(causal(*weights))
    got = compiled.mean(X)
    got.backward()
    tensors = [
        torch.tensor([[p.data for p in row] for row in w], dtype=torch.float64, requires_grad=True) for w in weights
    ]
    q, k, v = (torch.tensor(X) @ w.T for w in tensors)
    out = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True, scale=0.5)
    want = (out * out).sum((1, 2)).mean()
    want.backward()
    assert got.data == pytest.approx(want.item(), rel=1e-13)
    for w, tensor in zip(weights, tensors, strict=True):
        assert difference([[p.grad for p in row] for row in w], tensor.grad.numpy()) < CLOSE


def test_the_shift_of_a_softmax_is_taken_anew_at_each_call() -> None:
    """A maximum frozen at recording would overflow here."""
    w = [Value(1.0), Value(-1.0), Value(0.5)]
    compiled = wengert.compile(lambda x: softmax([wi * x for wi in w])[0])
    for x in (0.1, 900.0, -900.0):
        got = compiled(x)
        want = wengert.softmax([wi * x for wi in w])[0]
        assert got.data == pytest.approx(want.data, rel=1e-12, abs=1e-300)
        assert math.isfinite(got.data)
    lifted(compiled, 10)


# ------------------------------------------------------------------------------------- a GPT


class Gpt:
    """The one-layer GPT of the benchmarks, compiled and not."""

    def __init__(self) -> None:
        self.problem = problems.names()
        rows = self.problem.matrices.items()
        self.matrices = {name: [[Value(x) for x in row] for row in matrix] for name, matrix in rows}
        self.parameters = [p for matrix in self.matrices.values() for row in matrix for p in row]
        self.compiled = wengert.compile(self.loss)

    def loss(self, tokens: Sequence[int]) -> Any:
        return gpt.loss(tokens, self.matrices, self.problem.heads)

    def check(self, tokens: Sequence[int]) -> None:
        same(self.compiled(tokens), self.loss(tokens), self.parameters)


@pytest.mark.slow
def test_a_gpt_records_once_for_each_length_of_a_document() -> None:
    model = Gpt()
    documents = [tokens for tokens in model.problem.documents if len(tokens) in (5, 8)]
    assert len(documents) >= 5
    documents += [[26, 3, 3, 3, 26], [26, 26, 26, 26, 26], [0, 25, 1, 24, 2]]
    for tokens in documents:
        model.check(tokens)
    lifted(model.compiled, 60)
    assert len(model.compiled._server.entries) == len({len(tokens) for tokens in documents})


@pytest.mark.slow
@pytest.mark.parametrize("first", [[26, 26, 26, 26], [3, 26, 3, 26], [0, 1, 2, 3]])
def test_a_gpt_whose_first_document_repeats_tokens(first: list[int]) -> None:
    """What is one row in the recorded run is another row in the next."""
    model = Gpt()
    for tokens in (first, [5, 1, 4, 2], [1, 1, 2, 2], [2, 1, 2, 1], first):
        model.check(tokens)
    lifted(model.compiled, 60)


@pytest.mark.slow
def test_a_gpt_on_a_batch_of_documents() -> None:
    model = Gpt()
    batch = np.array([[26, 1, 2, 26], [26, 9, 9, 26], [26, 26, 0, 26]])
    got = model.compiled.mean(batch)
    same(got, wengert.mean([model.loss(row) for row in batch.tolist()]), model.parameters)
    lifted(model.compiled, 60)
