"""The programs that compiled functions print; those of six models are kept in golden/, to show what lifting does.

After a change that is meant: ``python -m tests.compiler.test_sources`` writes them anew.
"""

from __future__ import annotations

import ast
import math
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import wengert
from tests.compiler.checks import CLOSE, Numbers, batch_of, difference, gradients
from wengert import Value, nn

np = pytest.importorskip("numpy")

from wengert.compiler.backends.export import _constant  # noqa: E402  (they need NumPy)
from wengert.compiler.backends.spellings import LIBRARIES  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
GOLDEN = Path(__file__).resolve().parent / "golden"


def numbers(generator: random.Random, *shape: int) -> Any:
    """Nested lists of Values."""
    if not shape:
        return Value(generator.gauss(0.0, 0.5))
    return [numbers(generator, *shape[1:]) for _ in range(shape[0])]


def moons() -> Any:
    """Two hidden layers of neurons, hinge loss and weight decay: a mean over a batch."""
    random.seed(1)
    model = nn.MLP(2, [16, 16, 1])
    parameters = model.parameters()

    @wengert.compile
    def moons(x: Any, y: Any) -> Any:
        return (1 - y * model(x)).relu() + 1e-4 * sum(p * p for p in parameters)

    moons.mean([[0.1, 0.2], [0.3, -0.4]], [1.0, -1.0])
    return moons


def digits() -> Any:
    """A softmax classifier with classes as integers."""
    random.seed(1)
    model = nn.MLP(64, [32, 10])

    @wengert.compile
    def digits(x: Any, label: Any) -> Any:
        return wengert.losses.cross_entropy(model(x), label)

    digits.mean(np.random.default_rng(0).random((4, 64)), [3, 1, 4, 1])
    return digits


def recurrent() -> Any:
    """A recurrent cell over four steps, the sum of products written out."""
    generator = random.Random(1)
    of_x, of_h, bias = numbers(generator, 8, 3), numbers(generator, 8, 8), numbers(generator, 8)

    @wengert.compile
    def recurrent(steps: Any) -> Any:
        h = [Value(0.0)] * 8
        for x in steps:
            h = [
                wengert.tanh(sum(w * v for w, v in zip(a, x)) + sum(w * v for w, v in zip(b, h)) + c)  # noqa: B905
                for a, b, c in zip(of_x, of_h, bias, strict=True)
            ]
        return sum(v * v for v in h)

    recurrent([[generator.gauss(0, 1) for _ in range(3)] for _ in range(4)])
    return recurrent


def attention() -> Any:
    """Causal attention with two heads; the greatest score is read as `.data`."""
    generator = random.Random(1)
    query, key, value = (numbers(generator, 8, 8) for _ in range(3))

    def linear(rows: Any, x: Any) -> Any:
        return [sum(w * v for w, v in zip(row, x, strict=True)) for row in rows]

    @wengert.compile
    def attention(xs: Any) -> Any:
        keys: list[Any] = []
        values: list[Any] = []
        total: Any = 0.0
        for x in xs:
            keys.append(linear(key, x))
            values.append(linear(value, x))
            q = linear(query, x)
            for head in range(0, 8, 4):
                scores = [sum(q[head + n] * k[head + n] for n in range(4)) / 2 for k in keys]
                greatest = max(s.data for s in scores)
                weights = [(s - greatest).exp() for s in scores]
                whole = sum(weights)
                for n in range(head, head + 4):
                    read = sum(w / whole * v[n] for w, v in zip(weights, values, strict=True))
                    total = total + read * read
        return total

    attention([[generator.gauss(0, 1) for _ in range(8)] for _ in range(6)])
    return attention


def gpt() -> Any:
    """A whole small GPT: embedding rows and targets chosen by integers."""
    from benchmarks import gpt as model
    from benchmarks import problems

    names = problems.names()
    matrices = {name: [[Value(x) for x in row] for row in rows] for name, rows in names.matrices.items()}

    @wengert.compile
    def gpt(tokens: Any) -> Any:
        return model.loss(tokens, matrices, names.heads)

    gpt(names.documents[0])
    return gpt


def convolution() -> Any:
    """Eight kernels of five weights along a signal."""
    generator = random.Random(1)
    kernels = numbers(generator, 8, 5)

    @wengert.compile
    def convolution(signal: Any) -> Any:
        found = [
            wengert.relu(sum(kernel[n] * signal[start + n] for n in range(5)))
            for kernel in kernels
            for start in range(len(signal) - 4)
        ]
        return wengert.mean(found)

    convolution([generator.gauss(0, 1) for _ in range(24)])
    return convolution


MODELS: list[Callable[[], Any]] = [moons, digits, recurrent, attention, gpt, convolution]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_the_printed_program_is_the_one_that_is_kept(model: Callable[[], Any]) -> None:
    kept = (GOLDEN / f"{model.__name__}.py").read_text(encoding="utf-8")
    assert model().source("numpy") == kept, "if this is meant: python -m tests.compiler.test_sources"


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_the_printed_program_runs_and_gives_the_same(model: Callable[[], Any]) -> None:
    compiled = model()
    kernel = compiled._runtime.latest().kernel
    arguments = [np.random.default_rng(0).standard_normal([3 if n < 0 else n for n in a.shape]) for a in kernel.inputs]
    arguments = [
        np.arange(x.size) % 10 if a.role == "index" else x for a, x in zip(kernel.inputs, arguments, strict=True)
    ]
    space: dict[str, Any] = {}
    exec(compiled.source("numpy"), space)
    value, slopes = space[f"{model.__name__}_and_gradients"](*arguments, *kernel.values)
    batched = any(a.batched for a in kernel.inputs)
    eager = [compiled.function(*example) for example in (zip(*arguments, strict=True) if batched else [arguments])]
    want = wengert.mean(eager)
    assert value == pytest.approx(want.data, rel=1e-12)
    parameters = compiled._runtime.latest().parameters
    for p in parameters:
        p.grad = 0.0
    want.backward()
    assert np.concatenate([np.ravel(s) for s in slopes]) == pytest.approx(
        [p.grad for p in parameters], rel=1e-9, abs=1e-13
    )


@pytest.mark.torch
@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_the_program_in_pytorch_has_the_same_gradients(model: Callable[[], Any]) -> None:
    torch = pytest.importorskip("torch")
    compiled = model()
    kernel = compiled._runtime.latest().kernel
    arguments = [np.random.default_rng(0).standard_normal([3 if n < 0 else n for n in a.shape]) for a in kernel.inputs]
    arguments = [
        np.arange(x.size) % 10 if a.role == "index" else x for a, x in zip(kernel.inputs, arguments, strict=True)
    ]
    here: dict[str, Any] = {}
    there: dict[str, Any] = {}
    exec(compiled.source("numpy"), here)
    exec(compiled.source("torch"), there)
    value, slopes = here[f"{model.__name__}_and_gradients"](*arguments, *kernel.values)
    tensors = [torch.tensor(view, requires_grad=True) for view in kernel.values]
    result = there[model.__name__](*map(torch.tensor, arguments), *tensors)
    result.backward()
    assert result.item() == pytest.approx(value, rel=1e-12)
    for tensor, slope in zip(tensors, slopes, strict=True):
        assert tensor.grad.numpy() == pytest.approx(np.asarray(slope), rel=1e-9, abs=1e-13)


# ------------------------------------------------------------------------------------- by exec


def printed(compiled: Any, arguments: list[Any]) -> tuple[float, list[float]]:
    """What the printed program gives: its value, and the gradients in the order of the recording's parameters."""
    space: dict[str, Any] = {}
    text = compiled.source("numpy")
    exec(text, space)
    path = compiled._runtime.latest()
    numbers = np.array([p.data for p in path.parameters])
    arrays, place = [], 0
    for array in path.lifted.program.of_role("param"):
        size = math.prod(array.shape)
        arrays.append(numbers[place : place + size].reshape(array.shape))
        place += size
    value, slopes = next(f for name, f in space.items() if name.endswith("_and_gradients"))(*arguments, *arrays)
    return float(value), np.concatenate([np.ravel(s) for s in slopes]).tolist()


def test_the_printed_program_by_exec() -> None:
    model = nn.MLP(3, [4, 2], activation="gelu", bias="uniform", rng=random.Random(1))

    @wengert.compile
    def loss(x: Numbers, label: int) -> Any:
        return wengert.losses.cross_entropy(model(x), label) + 0.01 * sum(p * p for p in model.parameters())

    X, Y = np.random.default_rng(9).normal(size=(5, 3)), np.array([0, 1, 1, 0, 1])
    got = loss.mean(X, Y)
    value, slopes = printed(loss, [X, Y])
    want = batch_of(loss.function, X.tolist(), Y.tolist())
    parameters = list(loss._runtime.latest().parameters)
    assert difference(value, want.data) < CLOSE
    assert difference(slopes, gradients(want, parameters)) < CLOSE
    assert difference(slopes, gradients(got, parameters)) < CLOSE
    forward: dict[str, Any] = {}
    exec(loss.source("numpy", gradient=False), forward)
    assert "loss" in forward


def test_a_sum_of_what_is_the_same_for_all_its_terms() -> None:
    """Its cotangent depends on no axis at all, and is written in full all the same."""
    b, p, c = Value(0.3), Value(0.7), [Value(0.1), Value(-0.4), Value(0.2), Value(0.6)]

    @wengert.compile
    def loss(x: float) -> Any:
        z = (x + b) * p
        return sum(wengert.tanh(ci + x) for ci in c) + z + z

    X = [0.5, -1.0, 2.0]
    got, want = loss.mean(X), batch_of(loss.function, X)
    assert "uncompiled" not in loss.report()
    assert difference(got.data, want.data) < CLOSE
    parameters = [b, p, *c]
    assert difference(gradients(got, parameters), gradients(want, parameters)) < CLOSE


def test_places_that_are_written_as_ranges() -> None:
    table = 10 + np.arange(3)[:, None] * 20 + np.arange(4) * 5
    text = ast.unparse(_constant(table, LIBRARIES["numpy"]))
    assert text == "10 + np.arange(3)[:, None] * 20 + np.arange(4) * 5"
    assert (eval(text, {"np": np}) == table).all()


def test_the_printed_program_of_one_example() -> None:
    w = [Value(0.3), Value(-0.2), Value(0.9)]

    @wengert.compile
    def loss(x: Numbers) -> Any:
        return wengert.softmax([wi * xi for wi, xi in zip(w, x, strict=True)])[1].log()

    x = [0.5, 1.5, -0.5]
    loss(x)
    value, slopes = printed(loss, [np.array(x)])
    want = loss.function(x)
    assert difference(value, want.data) < CLOSE
    assert difference(slopes, gradients(want, list(loss._runtime.latest().parameters))) < CLOSE


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    GOLDEN.mkdir(exist_ok=True)
    for model in MODELS:
        (GOLDEN / f"{model.__name__}.py").write_text(model().source("numpy"), encoding="utf-8")
