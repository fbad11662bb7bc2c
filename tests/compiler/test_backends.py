"""The seam: a back end of a few lines is entered in the registry, and everything above it works."""

from __future__ import annotations

import inspect
import operator
import random
from collections.abc import Sequence
from typing import Any

import pytest

import wengert
from wengert import losses, nn, optim
from wengert.compiler.backends import BACKENDS, Backend, default_backend
from wengert.errors import ArgumentError, MissingExtraError
from wengert.ops.table import BY_NAME
from wengert.training import History

np = pytest.importorskip("numpy")

from wengert.compiler.backends.base import Buffers, Kernel, all_finite  # noqa: E402  (they need NumPy)
from wengert.compiler.ir import COMPARISONS  # noqa: E402
from wengert.compiler.ir.program import BATCH, Access, Assemble, Compute, Program  # noqa: E402

pytestmark = pytest.mark.once  # what runs are the back ends

# ------------------------------------------------------------------------------------- a back end, whole


class Plain(Kernel):
    """Every number by its address: what the steps of a program mean, word for word."""

    name = "plain"

    def forward(self, arrays: Sequence[Any], buffers: Buffers) -> dict[str, Any]:
        return self.run([self.program], arrays, 1.0, buffers)

    def forward_backward(
        self, arrays: Sequence[Any], seed: float, buffers: Buffers
    ) -> tuple[dict[str, Any], list[Any]]:
        outputs = self.run([self.program, self.backward], arrays, seed, buffers)
        slopes = {name: self.made[id(array)] for name, array in self.backward.gradients.items()}
        for array, memory in zip(self.params, buffers.grad_arrays, strict=True):
            memory[...] = slopes.get(array.name, 0.0)
        return outputs, [slopes.get(array.name, np.zeros(array.shape)) for array in self.wanted]

    def run(self, programs: list[Program], arrays: Sequence[Any], seed: float, buffers: Buffers) -> dict[str, Any]:
        given = [*zip(self.inputs, arrays, strict=True), *zip(self.params, buffers.param_arrays, strict=True)]
        given += [(array, array.value) for array in self.program.of_role("const")]
        self.made: dict[int, Any] = {id(array): np.asarray(x) for array, x in given}
        self.made[id(self.backward.seed)] = np.asarray(seed)
        self.count = next((len(self.made[id(array)]) for array in self.inputs if array.batched), 1)
        for step in [step for program in programs for step in program.steps]:
            self.made[id(step.out)] = self.compute(step) if isinstance(step, Compute) else self.assemble(step)
        return {name: self.made[id(array)] for name, array in self.program.outputs.items()}

    def compute(self, step: Compute) -> Any:
        points = np.indices(self.lengths(step.axes))
        cell = tuple([p for p, n in zip(points, step.axes, strict=True) if n != BATCH])
        reads = [self.made[id(x.array)].reshape(-1)[self.address(x, step.axes, points)] for x in step.operands]
        made = np.broadcast_to(evaluate(step.expr, reads, cell), points.shape[1:])
        if step.mask is not None:
            made = np.where(step.mask[cell], made, {"sum": 0.0, "max": -np.inf, "min": np.inf}[step.reduce])
        return getattr(made, step.reduce)(step.reduced) if step.reduce else made

    def assemble(self, step: Assemble) -> Any:
        made = np.zeros(self.lengths(step.out.shape))
        for access, part in step.parts:
            points = np.indices(self.lengths(part.shape))
            np.add.at(made.reshape(-1), self.address(access, part.shape, points), self.made[id(part)])
        return made

    def lengths(self, axes: Sequence[int]) -> list[int]:
        return [self.count if n == BATCH else n for n in axes]

    def address(self, x: Access, axes: Sequence[int], points: Any) -> Any:
        cell = tuple([p for p, n in zip(points, axes, strict=True) if n != BATCH])
        sizes = [stride * (x.array.size if n == BATCH else x.table is None) for n, stride in zip(axes, x.strides)]  # noqa: B905
        place = sum((p * size for p, size in zip(points, sizes, strict=True)), np.full(points.shape[1:], x.base))
        if x.index is not None:
            chosen = self.address(Access(x.index.array, x.index.base, x.index.strides), axes, points)
            place = place + x.index.step * self.made[id(x.index.array)].reshape(-1)[chosen]
        return place if x.table is None else place + x.table[cell]


def evaluate(tree: Any, reads: list[Any], cell: tuple[Any, ...]) -> Any:
    """What an expression is for all points at once, by the rows themselves."""
    name, *branches = tree
    if name in ("in", "const"):
        return reads[branches[0]] if name == "in" else branches[0]
    if name == "mask":
        return branches[0][cell[: branches[0].ndim]]
    xs = [evaluate(branch, reads, cell) for branch in branches]
    if name in COMPARISONS:
        return getattr(operator, name)(*xs)
    return np.vectorize(BY_NAME[name].value, otypes=[float])(*xs)


# ------------------------------------------------------------------------------------- what is above it


@pytest.fixture
def plain(monkeypatch: pytest.MonkeyPatch) -> Backend:
    backend = Backend("plain", lambda: Plain, "numpy", "array")
    monkeypatch.setitem(BACKENDS, "plain", backend)
    return backend


def test_a_back_end_is_short() -> None:
    lines = (inspect.getsource(Plain) + inspect.getsource(evaluate)).splitlines()
    assert sum(bool(line.strip()) for line in lines) < 60


@pytest.mark.parametrize("strength", [pytest.param(0.0, marks=pytest.mark.nightly), 1e-3])
def test_fit_gives_the_same_by_every_back_end(plain: Backend, strength: float) -> None:
    points = random.Random(1)
    X = [[points.gauss(0, 1), points.gauss(0, 1)] for _ in range(12)]
    Y = [int(a * b > 0) for a, b in X]

    def numbers(backend: str) -> list[float]:
        model = nn.MLP(2, [4, 2], rng=random.Random(2))
        optimizer = optim.Adam(model, 0.05)
        how: dict[str, Any] = {"batch_size": 5, "clip_norm": 1.0, "seed": 3, "progress": False, "backend": backend}
        if strength:
            how["regularization"] = lambda: losses.l2(model.parameters(), strength)
        history = wengert.fit(model, losses.cross_entropy, X, Y, optimizer, 3, validation=(X[:4], Y[:4]), **how)
        assert (history.backend, history.fallback) == (backend, "")
        return [*history.loss, *history.val_loss, *history.accuracy, *[p.data for p in model.parameters()]]

    assert list(BACKENDS) == ["numpy", "native", "xla", "plain"]
    want = numbers("eager")
    for backend in [name for name, one in BACKENDS.items() if one.is_available()]:
        assert numbers(backend) == pytest.approx(want, rel=1e-9)


@pytest.mark.parametrize("count", [3, 20_000])
def test_what_is_not_finite_is_seen_in_few_numbers_and_in_many(count: int) -> None:
    """And what is so large that its square is not: see `all_finite`."""
    numbers = np.linspace(-1e150, 1e150, count)
    with np.errstate(over="ignore"):  # as those who ask do
        assert all_finite(numbers)
        for spoilt in (np.nan, np.inf, -np.inf, 1e155, -1e155):
            for place in (0, count - 1):
                assert not all_finite(np.where(np.arange(count) == place, spoilt, numbers))


def test_a_name_that_is_no_back_ends_names_those_that_are(plain: Backend) -> None:
    model = nn.MLP(1, [1])
    with pytest.raises(ArgumentError, match=r"expected one of 'auto', 'eager', 'numpy', .*'plain'"):
        wengert.fit(model, losses.mse, [[1.0]], [1.0], optim.SGD(model, 0.1), 1, backend="fast")


def test_a_history_tells_of_every_back_end(plain: Backend) -> None:
    state = History([0.5], backend="plain").state_dict()
    history = History()
    history.load_state_dict(state)
    assert history.backend == "plain"
    with pytest.raises(ArgumentError, match="backend is 'fast'"):
        history.load_state_dict({**state, "backend": "fast"})


def test_what_a_back_end_needs_is_named_where_it_is_missing(plain: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BACKENDS, "plain", plain._replace(library="no_such_library", extra="plain"))
    model = nn.MLP(1, [1])
    with pytest.raises(MissingExtraError, match=r'no_such_library: pip install no_such_library \(the extra "plain"\)'):
        wengert.fit(model, losses.mse, [[1.0]], [1.0], optim.SGD(model, 0.1), 1, backend="plain")
    for name, backend in BACKENDS.items():
        monkeypatch.setitem(BACKENDS, name, backend._replace(library="no_such_library"))
    assert not any(backend.is_available() for backend in BACKENDS.values())
    with pytest.raises(MissingExtraError, match=r'pip install no_such_library \(the extra "array"\)'):
        default_backend()
    history = wengert.fit(model, losses.mse, [[1.0]], [1.0], optim.SGD(model, 0.1), 1, progress=False)
    assert history.backend == "eager"
    assert "pip install" in history.fallback


def test_machine_code_is_preferred(plain: Backend, monkeypatch: pytest.MonkeyPatch) -> None:
    assert default_backend().name == "native"
    monkeypatch.setitem(BACKENDS, "native", BACKENDS["native"]._replace(library="no_such_library"))
    assert default_backend().name == "numpy"


def test_any_program_can_be_written_out(plain: Backend) -> None:
    w = wengert.Value(0.5)
    loss = wengert.compile(lambda x: (w * x).tanh(), backend="plain")
    loss.mean([1.0, 2.0]).backward()
    assert loss._server.latest().kernel.name == "plain"
    assert loss.source("numpy").startswith("import numpy as np")
