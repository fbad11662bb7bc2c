"""Whole models, compiled and eager, side by side: the same value and gradients, and really lifted."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest

import wengert
from benchmarks import gpt, problems
from wengert import Value, losses, nn, ops

np = pytest.importorskip("numpy")
fuzz = pytest.importorskip("lifting_fuzz")  # needs NumPy
difference, gradients = fuzz.difference, fuzz.gradients

CLOSE = 1e-12
Numbers = list[Any]


def values(generator: random.Random, *shape: int, spread: float = 0.6) -> Any:
    """Nested lists of parameters."""
    if not shape:
        return Value(generator.gauss(0.0, spread))
    return [values(generator, *shape[1:], spread=spread) for _ in range(shape[0])]


def flat(tree: Any) -> list[Value]:
    """The parameters of nested lists."""
    return [p for item in tree for p in flat(item)] if isinstance(tree, (list, tuple)) else [tree]


def normal(seed: int, *shape: int) -> Any:
    return np.random.default_rng(seed).normal(size=shape)


def same(got: Value, want: Value, parameters: list[Value]) -> None:
    """The same number and the same gradients of all parameters."""
    assert isinstance(got, Value)
    assert difference(got.data, want.data) < CLOSE
    wanted = gradients(want, parameters)
    assert difference(gradients(got, parameters), wanted) < CLOSE
    assert np.abs(wanted).max() > 0.0  # else there is nothing that could differ


def lifted(compiled: Any, most: int, paths: int | None = 1) -> None:
    """It was lifted at each shape of its arguments, on so many paths, to at most so many array operations."""
    report = compiled.report()
    assert "uncompiled" not in report
    for entry in compiled._runtime.entries.values():
        assert not entry.refusal
        assert entry.paths
        assert paths is None or len(entry.paths) == paths
        for path in entry.paths:
            steps = len(path.lifted.program.steps)
            assert 0 < steps <= most, report
            assert f"became {steps} array" in report


def move(parameters: list[Value], seed: int) -> None:
    """Other numbers, so that what was recorded cannot be what is computed."""
    generator = random.Random(seed)
    for p in parameters:
        p.data += generator.gauss(0.0, 0.1)


def compare(
    function: Callable[..., Any], parameters: list[Value], columns: Sequence[Any], most: int, paths: int | None = 1
) -> Any:
    """One example at a time, the mean and the sum of a batch, before and after the parameters have moved.

    Args:
        function: one example in, a Value out.
        parameters: what it captures.
        columns: for each argument the examples.
        most: how many array operations there may be.
        paths: on how many paths; None for any number of them.
    """
    compiled = wengert.compile(function)
    examples = list(zip(*[c.tolist() if hasattr(c, "tolist") else c for c in columns], strict=True))
    for turn in range(2):
        for example in examples[:3]:
            same(compiled(*example), function(*example), parameters)
        eager = [function(*example) for example in examples]
        same(compiled.mean(*columns), wengert.mean(eager), parameters)
        same(compiled.sum(*columns), wengert.sum(eager), parameters)
        assert difference(compiled.map(*columns), [v.data for v in eager]) < CLOSE
        move(parameters, turn)
    lifted(compiled, most, paths)
    return compiled


def softmax(scores: Numbers) -> Numbers:
    """As one writes it by hand."""
    greatest = max(s.data for s in scores)
    exps = [(s - greatest).exp() for s in scores]
    total = sum(exps)
    return [e / total for e in exps]


# ------------------------------------------------------------------------------------- networks


@pytest.mark.parametrize("activation", ["relu", "tanh", "sigmoid"])
def test_an_mlp(activation: str) -> None:
    model = nn.MLP(3, [8, 8, 1], activation=activation, bias="uniform", rng=random.Random(1))

    def loss(x: Numbers, y: float) -> Any:
        return (model(x) - y) ** 2

    compiled = compare(loss, model.parameters(), [normal(1, 7, 3), normal(2, 7)], 12)
    assert compiled._runtime.latest().lifted.products >= 2


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

    compare(loss, flat(w), [normal(1, 5, 3)], 8)


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
    assert len(model.compiled._runtime.entries) == len({len(tokens) for tokens in documents})


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


# ------------------------------------------------------------------------------------- tables


def test_embeddings_by_index() -> None:
    generator = random.Random(13)
    rows, head = values(generator, 9, 4), values(generator, 5, 12)

    def loss(context: list[int], target: int) -> Any:
        x = [v for token in context for v in rows[token]]
        p = wengert.softmax([wengert.dot(row, x) for row in head])
        return -p[target].log()

    contexts = np.array([[0, 1, 2], [8, 8, 8], [3, 0, 3], [7, 6, 5], [2, 2, 1]])
    compare(loss, flat([rows, head]), [contexts, np.array([4, 0, 0, 2, 1])], 16)


@pytest.mark.parametrize("read", [lambda rows, i: rows[i], wengert.take], ids=["brackets", "take"])
def test_an_index_out_of_range_is_the_engines_affair(read: Callable[..., Any]) -> None:
    rows = values(random.Random(14), 4, 3)
    compiled = wengert.compile(lambda i, x: wengert.dot(read(rows, i), x))
    X = normal(1, 3, 3)
    compiled(2, X[0].tolist())
    got, want = compiled(-1, X[0].tolist()), wengert.dot(rows[-1], X[0].tolist())
    same(got, want, flat(rows))
    got = compiled.mean(np.array([0, -2, 3]), X)
    same(got, wengert.mean([wengert.dot(rows[i], x) for i, x in zip([0, -2, 3], X.tolist(), strict=True)]), flat(rows))
    with pytest.raises(IndexError):
        compiled(4, X[0].tolist())
    with pytest.raises(IndexError):
        compiled.mean(np.array([0, 4, 3]), X)
    same(compiled(1, X[0].tolist()), wengert.dot(rows[1], X[0].tolist()), flat(rows))


def test_two_indices_into_one_table() -> None:
    table = values(random.Random(15), 4, 5)

    def loss(i: int, j: int) -> Any:
        return table[i][j] ** 2 + table[i][0]

    compare(loss, flat(table), [np.array([0, 3, 1, 0]), np.array([4, 2, 0, 0])], 12, None)


def test_bigrams_of_counts() -> None:
    """Log probabilities from a row that an integer chooses, at a place that another chooses."""
    table = values(random.Random(16), 6, 6)

    def loss(here: int, there: int) -> Any:
        return -wengert.log_softmax(table[here])[there]

    compare(loss, flat(table), [np.array([0, 5, 2, 2, 1]), np.array([3, 3, 0, 1, 1])], 12, None)


# ------------------------------------------------------------------------------------- other programs


def test_a_one_dimensional_convolution() -> None:
    generator = random.Random(17)
    kernels, bias, out = values(generator, 4, 5), values(generator, 4), values(generator, 4)

    def loss(x: Numbers) -> Any:
        total: Any = 0.0
        for kernel, b, o in zip(kernels, bias, out, strict=True):
            for k in range(len(x) - 4):
                total = total + o * (sum(w * x[k + n] for n, w in enumerate(kernel)) + b).relu()
        return total * total

    compiled = compare(loss, flat([kernels, bias, out]), [normal(1, 4, 20)], 10)
    assert compiled._runtime.latest().nodes > 500


@pytest.mark.slow
def test_a_data_set_in_a_function_without_arguments() -> None:
    problem = problems.moons()
    X, Y = problem.X[:40], problem.Y[:40]
    model = nn.MLP(2, [8, 1], rng=random.Random(18))
    parameters = model.parameters()

    @wengert.compile
    def loss() -> Any:
        scores = [model(x) for x in X]
        margins = [(1 - y * s).relu() for s, y in zip(scores, Y, strict=True)]
        return sum(margins) * (1.0 / len(margins)) + 1e-4 * sum(p * p for p in parameters)

    for turn in range(3):
        same(loss(), loss.function(), parameters)
        move(parameters, turn)
    lifted(loss, 24)
    assert loss._runtime.latest().nodes > 900


def test_shuffled_parameters_and_terms() -> None:
    generator = random.Random(19)
    pool = values(generator, 12 * 8 + 8)
    generator.shuffle(pool)
    hidden, out = [pool[8 * n : 8 * n + 8] for n in range(12)], pool[96:]
    orders = [generator.sample(range(8), 8) for _ in hidden]

    def loss(x: Numbers) -> Any:
        h = [sum(row[k] * x[k] for k in order).tanh() for row, order in zip(hidden, orders, strict=True)]
        return sum(w * v for w, v in zip(out, h[:8], strict=True)) + sum(v * v for v in h)

    compare(loss, pool, [normal(1, 5, 8)], 16)


@pytest.mark.parametrize("density", [0.8, 0.5, 0.15])
def test_pruned_networks(density: float) -> None:
    generator = random.Random(20)
    hidden, out = values(generator, 16, 10), values(generator, 16)
    kept = [[k for k in range(10) if generator.random() < density] or [0] for _ in hidden]

    def loss(x: Numbers) -> Any:
        h = [sum(row[k] * x[k] for k in ks).relu() for row, ks in zip(hidden, kept, strict=True)]
        return sum(w * v for w, v in zip(out, h, strict=True)) ** 2

    compare(loss, flat([hidden, out]), [normal(1, 6, 10)], 30)


def test_the_kinematics_of_an_arm() -> None:
    joints = values(random.Random(21), 6)
    lengths = [1.0, 0.8, 0.6, 0.5, 0.4, 0.2]

    def loss(target: Numbers) -> Any:
        x, y, angle = 0.0, 0.0, 0.0
        for q, length in zip(joints, lengths, strict=True):
            angle = angle + q
            x = x + length * angle.cos()
            y = y + length * angle.sin()
        return (x - target[0]) ** 2 + (y - target[1]) ** 2

    compiled = compare(loss, joints, [normal(1, 5, 2)], 40)
    # Closed form: by the last joint, x moves by -l sin and y by l cos of the sum of all angles.
    target = [0.3, -0.2]
    sums = np.cumsum([q.data for q in joints])
    dx, dy = np.dot(lengths, np.cos(sums)) - target[0], np.dot(lengths, np.sin(sums)) - target[1]
    slopes = gradients(compiled(target), joints)
    assert slopes[-1] == pytest.approx(2 * 0.2 * (-dx * math.sin(sums[-1]) + dy * math.cos(sums[-1])), rel=1e-12)


def test_the_price_of_an_option_by_simulation() -> None:
    draws = normal(22, 400).tolist()
    spot, volatility, rate = parameters = [Value(100.0), Value(0.2), Value(0.03)]

    @wengert.compile
    def price(strike: float, years: float) -> Any:
        drift = (rate - 0.5 * volatility * volatility) * years
        spread = volatility * years**0.5
        payoffs = [(spot * (drift + spread * z).exp() - strike).relu() for z in draws]
        return sum(payoffs) / len(payoffs) * (-rate * years).exp()

    for strike, years in [(100.0, 1.0), (90.0, 0.5), (120.0, 2.0)]:
        got = price(strike, years)
        same(got, price.function(strike, years), parameters)
        growth = np.exp((0.03 - 0.02) * years + 0.2 * math.sqrt(years) * np.array(draws))
        ends = 100.0 * growth
        assert got.data == pytest.approx(math.exp(-0.03 * years) * np.maximum(ends - strike, 0).mean(), rel=1e-12)
        delta = gradients(got, parameters)[0]
        assert delta == pytest.approx(math.exp(-0.03 * years) * np.where(ends > strike, growth, 0).mean(), rel=1e-12)
    lifted(price, 20)


def test_an_orbit_by_leapfrog() -> None:
    start = [Value(1.0), Value(0.1), Value(0.05), Value(0.95)]

    def loss(step: float, mass: float) -> Any:
        x, y, vx, vy = start
        for _ in range(12):
            vx, vy = pushed(x, y, vx, vy, 0.5 * step, mass)
            x, y = x + step * vx, y + step * vy
            vx, vy = pushed(x, y, vx, vy, 0.5 * step, mass)
        return x * x + y * y + vx * vy

    def pushed(x: Any, y: Any, vx: Any, vy: Any, step: Any, mass: Any) -> tuple[Any, Any]:
        pull = -mass * (x * x + y * y) ** -1.5
        return vx + step * pull * x, vy + step * pull * y

    compiled = compare(loss, start, [np.array([0.05, 0.1, 0.01]), np.array([1.0, 0.9, 1.2])], 200)
    # A difference of the function itself, by the first coordinate.
    slope = gradients(compiled(0.05, 1.0), start)[0]
    x, h = start[0].data, 1e-5
    ends = []
    for shift in (h, -h):
        start[0].data = x + shift
        ends.append(loss(0.05, 1.0).data)
    assert slope == pytest.approx((ends[0] - ends[1]) / (2 * h), rel=1e-8)


def test_layer_normalization() -> None:
    generator = random.Random(23)
    weights, gain, shift = values(generator, 6, 4), values(generator, 6), values(generator, 6)

    def loss(x: Numbers) -> Any:
        h = [wengert.dot(row, x) for row in weights]
        mean = sum(h) / len(h)
        variance = sum((v - mean) ** 2 for v in h) / len(h)
        out = [g * (v - mean) / (variance + 1e-5) ** 0.5 + s for v, g, s in zip(h, gain, shift, strict=True)]
        return sum(v**3 for v in out)

    compare(loss, flat([weights, gain, shift]), [normal(1, 5, 4)], 20)


def test_normalization_by_the_root_mean_square() -> None:
    generator = random.Random(24)
    weights = values(generator, 5, 4)

    def loss(x: Numbers) -> Any:
        h = [wengert.dot(row, x) for row in weights]
        scale = (wengert.mean([v * v for v in h]) + 1e-5) ** -0.5
        return sum((v * scale).tanh() * (n + 1) for n, v in enumerate(h))

    compare(loss, flat(weights), [normal(1, 5, 4)], 16)


def test_prefix_sums_and_products() -> None:
    steps = values(random.Random(25), 8)

    def loss(x: Numbers) -> Any:
        level: Any = 0.0
        worth: Any = 1.0
        total: Any = 0.0
        for s, xi in zip(steps, x, strict=True):
            level = level + s * xi
            worth = worth * (1 + 0.1 * s)
            total = total + level * worth
        return total

    compare(loss, steps, [normal(1, 5, 8)], 60)


# ------------------------------------------------------------------------------------- every operation

ROWS = [row for row in ops.TABLE[: ops.BUILT_IN] if row.value is not None]


def operands(row: ops.Op, count: int) -> list[list[float]]:
    """So many draws of the operands, each from its domain; of an operation on many, five."""
    generator = random.Random(f"lifting {row.name}")
    domain = row.domain if row.arity is not None else row.domain[:1] * 5
    return [[generator.uniform(low, high) for low, high in domain] for _ in range(count)]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_every_operation_on_parameters(row: ops.Op) -> None:
    drawn = operands(row, 6)
    domain = row.domain if row.arity is not None else row.domain[:1] * 5
    # An operand that the domain fixes, the order of polygamma, has no derivative: it is a constant.
    made = [[Value(x) if low < high else x for x, (low, high) in zip(xs, domain, strict=True)] for xs in drawn]
    parameters = [x for xs in made for x in xs if isinstance(x, Value)]

    @wengert.compile
    def total(x: Numbers) -> Any:
        return sum(row(*xs) * xi for xs, xi in zip(made, x, strict=True)) + 0.1 * sum(p * p for p in parameters)

    X = normal(1, 4, 6)
    same(total(X[0].tolist()), total.function(X[0].tolist()), parameters)
    same(total.mean(X), wengert.mean([total.function(x) for x in X.tolist()]), parameters)
    lifted(total, 20)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_every_operation_on_inputs(row: ops.Op) -> None:
    w = [Value(0.7), Value(1.3)]

    @wengert.compile
    def total(xs: Numbers) -> Any:
        return w[0] * row(*xs) + w[1] * row(*xs) ** 2 + w[0] * w[1]

    X = np.array(operands(row, 7))
    same(total(X[0].tolist()), total.function(X[0].tolist()), w)
    same(total.mean(X), wengert.mean([total.function(x) for x in X.tolist()]), w)
    lifted(total, 20)


@pytest.mark.parametrize("row", [row for row in ROWS if row.arity == 2], ids=lambda row: row.name)
@pytest.mark.parametrize("left", [True, False], ids=["constant on the left", "constant on the right"])
def test_every_operation_with_a_constant(row: ops.Op, left: bool) -> None:
    if row.name == "polygamma":
        pytest.skip("its order is always a constant")
    drawn = operands(row, 6)
    parameters = [Value(xs[1] if left else xs[0]) for xs in drawn]

    @wengert.compile
    def total(scale: float) -> Any:
        made = [row(xs[0], p) if left else row(p, xs[1]) for xs, p in zip(drawn, parameters, strict=True)]
        return sum(made) * scale + sum(parameters)

    same(total(1.7), total.function(1.7), parameters)
    same(total.mean([0.3, -0.4]), wengert.mean([total.function(0.3), total.function(-0.4)]), parameters)
    lifted(total, 20)


# ------------------------------------------------------------------------------------- Values as arguments


def test_gradients_flow_to_arguments_and_through_them() -> None:
    generator = random.Random(26)
    w = values(generator, 3, 4)
    inner = values(generator, 4)
    scale = Value(0.8)

    def score(x: list[Value], factor: Value) -> Any:
        return sum((wengert.dot(row, x) * factor).tanh() for row in w)

    compiled = wengert.compile(score)
    for _ in range(3):
        everything = [*flat(w), *inner, scale]
        results = []
        for function in (compiled, score):
            before = [(v * v).exp() * 0.3 for v in inner]
            results.append(function(before, scale * scale) ** 2 * 3.0 + inner[0])
        same(*results, everything)
        move(everything, 27)
    lifted(compiled, 10)


def test_a_value_argument_twice() -> None:
    x = Value(1.3)
    compiled = wengert.compile(lambda a, b: a * b + a.exp())
    same(compiled(x, x), x * x + x.exp(), [x])
    same(compiled([x, x][0], 2.0 * x), x * (2.0 * x) + x.exp(), [x])


def test_a_value_argument_that_is_a_captured_parameter_too() -> None:
    w, v = Value(1.3), Value(0.4)
    compiled = wengert.compile(lambda a: w * a + a * a * v)
    for x in (v, w, v):
        same(compiled(x), w * x + x * x * v, [w, v])


def test_a_numpy_array_of_values() -> None:
    xs = np.array([Value(0.5), Value(-0.3), Value(0.9)], dtype=object)
    w = values(random.Random(28), 3)
    compiled = wengert.compile(lambda x: sum(a * b * b for a, b in zip(w, x, strict=True)))
    for _ in range(2):
        same(compiled(xs), compiled.function(xs), [*w, *xs])
        move([*w, *xs], 3)
    lifted(compiled, 6)


def test_compiled_calls_in_a_chain() -> None:
    """The result of one is the argument of the next."""
    w = values(random.Random(29), 3)
    compiled = wengert.compile(lambda h, x: (w[0] * h + w[1] * x + w[2]).tanh())
    results = []
    for function in (compiled, compiled.function):
        h = Value(0.1)
        for x in (0.5, -0.2, 0.9, 0.3):
            h = function(h, x)
        results.append(h * h)
    same(*results, w)


def test_the_helper_of_this_file_can_fail() -> None:
    compiled = wengert.compile(lambda x: Value(1.0) * x)
    compiled(2.0)
    with pytest.raises(AssertionError):
        lifted(compiled, 0)
    with pytest.raises(AssertionError):
        same(Value(1.0), Value(1.0 + 1e-9), [])
