"""Hessians of sums of terms that read few inputs each: beside PyTorch's, on every back end."""

from __future__ import annotations

import functools
import itertools
import random
from typing import Any

import pytest

import wengert
from wengert import hessian, jacobian
from wengert.compiler.backends import BACKENDS

np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")

pytestmark = pytest.mark.once  # a recording and its derivative: the engine takes no part

AVAILABLE = [name for name in ("numpy", "native", "xla") if BACKENDS[name].is_available()]
FORMS = ("pairs", "bars", "chain", "with_a_term_of_all", "ragged", "neighbours", "recurrences")
PAIRS = [*itertools.combinations(range(8), 2)]
COUNT = 24  # of the inputs


def pairs(m: Any, x: Any) -> Any:
    """Three coordinates for each of eight points, and a potential of each pair."""
    squares = [sum((x[3 * i + n] - x[3 * j + n]) ** 2 for n in range(3)) for i, j in PAIRS]
    return sum(4.0 * (1.0 / s**6 - 1.0 / s**3) for s in squares)


def bars(m: Any, x: Any) -> Any:
    """Each second bar has another stiffness."""
    lengths = [m.sqrt((x[2 * i] - x[2 * j]) ** 2 + (x[2 * i + 1] - x[2 * j + 1]) ** 2) for i, j in PAIRS if j - i < 4]
    return sum((1.0 + n % 2) * (length - 1.0) ** 2 for n, length in enumerate(lengths))


def chain(m: Any, x: Any) -> Any:
    return sum(100.0 * (x[i + 1] - x[i] ** 2) ** 2 + (1.0 - x[i]) ** 2 for i in range(COUNT - 1))


def with_a_term_of_all(m: Any, x: Any) -> Any:
    return chain(m, x) + m.log(sum(m.exp(v) for v in x)) + x[3] * sum(v**3 for v in x[4:])


def ragged(m: Any, x: Any) -> Any:
    """Terms of one to three inputs, each a product of sines."""
    total = 0.0
    for i in range(COUNT - 3):
        term = m.sin(x[i])
        for n in range(i % 3):
            term = term * m.sin(x[i + n + 1])
        total = total + term * m.exp(term)
    return total


def neighbours(m: Any, x: Any) -> Any:
    """What is read by two terms each, so that all are computed from each other."""
    u = [m.tanh(v) for v in x]
    return sum(m.exp(a * b) for a, b in itertools.pairwise(u))


def recurrences(m: Any, x: Any) -> Any:
    """Of each two inputs ten steps, and then all in a loop."""
    total, last = 0.0, 1.0
    for a, b in zip(x[::2], x[1::2], strict=True):
        state = a
        for _ in range(3):
            state = m.tanh(state * b + a)
        total = total + state**2
    for v in x:
        last = m.sin(last + v)
    return total + last


def oracle(f: Any, x: Any) -> Any:
    at = torch.tensor(x, dtype=torch.float64)
    found = torch.autograd.functional.hessian(lambda x: f(torch, x.unbind()), at, vectorize=True)
    return found.numpy()


@functools.cache  # for all back ends
def points(f: Any) -> list[tuple[Any, Any]]:
    """Where a form is tried, and its Hessians there."""
    draw, found = np.random.default_rng(3), []
    for _ in range(3):
        x = np.repeat(np.arange(COUNT // 3), 3) + draw.normal(0.0, 0.3, COUNT)
        if f is not pairs:
            x = x / 4.0
        found.append((x, oracle(f, x)))
    return found


def most(program: Any) -> int:
    """The most numbers of an array that a step makes, besides the Hessian."""
    return max(step.out.size for step in program.each_step() if step.out.size not in (COUNT**2, COUNT**2 + 1))


@pytest.mark.parametrize(
    ("form", "backend"), [x for x in itertools.product(FORMS, AVAILABLE) if x[1] != "xla" or x[0] == "bars"]
)
def test_hessians_are_pytorchs(form: str, backend: str) -> None:
    f = globals()[form]
    compiled = wengert.compile(hessian(lambda x: f(wengert, x)), backend=backend)
    for x, want in points(f):
        got = compiled(x)
        assert np.abs(got - want).max() <= 1e-11 * np.abs(want).max()
        assert np.array_equal(got, compiled(x))
    assert compiled._server.specializer.derived(compiled._server.last.signature) is not None, compiled.report()


@pytest.mark.parametrize(
    ("f", "numbers"), [(pairs, len(PAIRS) * 3 * 6), (bars, len(PAIRS) * 2 * 4), (chain, 2 * COUNT)]
)
def test_each_term_has_the_directions_of_its_own_inputs(f: Any, numbers: int) -> None:
    compiled = wengert.compile(hessian(lambda x: f(wengert, x)), backend="numpy")
    for _ in range(2):
        compiled(np.linspace(0.1, 5.0, COUNT) ** 1.1)
    assert most(compiled._server.latest().kernel.program) <= numbers


@pytest.mark.parametrize("backend", [name for name in AVAILABLE if name != "xla"])
def test_terms_that_an_integer_chooses(backend: str) -> None:
    """What is read, and what is written, where an integer argument says."""
    chosen = (10, 17, 17, 4, 7, 7, 2, 15)

    def read(x: Any, k: Any) -> Any:
        return sum([x[b] * x[b] * x[k[j]] for j, b in enumerate(chosen)])

    def written(a: Any, x: Any, k: Any) -> Any:
        return [wengert.sin(x[j]) * a[k[j]] ** 2 for j in range(COUNT)] + [a[0] * a[1], a[1] * x[0]]

    draw = np.random.default_rng(5)
    second = wengert.compile(hessian(read), backend=backend)
    first = wengert.compile(jacobian(written, argnums=(0, 1)), backend=backend)
    for _ in range(3):
        x, k = draw.normal(size=COUNT), draw.integers(0, COUNT, 12).tolist()
        t = torch.tensor(x)
        want = torch.autograd.functional.hessian(lambda t, k=k: read(t, k), t).numpy()
        assert np.abs(np.array(second(x, k)) - want).max() <= 1e-12
        a, k = draw.normal(size=2), draw.integers(0, 2, COUNT).tolist()
        rows, expected = first(a, x, k), jacobian(written, argnums=(0, 1))(a, x, k)
        for row, by in zip(rows, expected, strict=True):
            assert np.abs(np.concatenate(row) - np.concatenate(by)).max() <= 1e-12
    assert [len(each._server.last.specializations) for each in (first, second)] == [1, 1]


def test_sparse_hessians_too() -> None:
    """The colours of the pairs are as many as there are inputs."""
    x = np.random.default_rng(4).normal(0.0, 1.0, COUNT)
    sparse = hessian(lambda x: pairs(wengert, x), sparse=True)
    for _ in range(2):
        got = sparse(x).toarray()
    assert np.abs(got - oracle(pairs, x)).max() <= 1e-11 * np.abs(got).max()
    assert most(sparse.compiled._server.latest().kernel.program) <= len(PAIRS) * 3 * 6


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(n, marks=pytest.mark.nightly) for n in range(2, 6))])
def test_random_sums_of_terms(seed: int) -> None:
    draw = random.Random(seed)
    terms = [draw.sample(range(COUNT), draw.choice((1, 2, 2, 3))) for _ in range(30)]
    kinds = [draw.randrange(4) for _ in terms]

    def f(m: Any, x: Any) -> Any:
        total = 0.0
        for places, kind in zip(terms, kinds, strict=True):
            own = [x[place] for place in places]
            product = own[0] * own[-1] + 0.3 * sum(own)
            total = total + (m.sin(product), product**3, m.exp(-(product**2)), m.sqrt(product**2 + 1.0))[kind]
        return total

    compiled = wengert.compile(hessian(lambda x: f(wengert, x)))
    for _ in range(3):
        x = np.array([draw.gauss(0.0, 1.0) for _ in range(COUNT)])
        want = oracle(f, x)
        assert np.abs(compiled(x) - want).max() <= 1e-12 * np.abs(want).max()
    if seed:
        return
    third = wengert.compile(jacobian(hessian(lambda x: f(wengert, x))))
    step = 1e-5 * np.eye(COUNT)
    by_differences = [(compiled(x + h) - compiled(x - h)) / 2e-5 for h in step]
    want = np.moveaxis(np.array(by_differences), 0, -1)
    assert np.abs(np.array(third(x)) - want).max() <= 1e-6 * np.abs(want).max()
