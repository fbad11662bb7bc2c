"""`to_jax` and `to_torch`: a compiled function in another library, by whose rules it is differentiated there."""

from __future__ import annotations

import functools
import io
import math
import random
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

import wengert
from wengert import Value, losses, nn
from wengert.errors import ArgumentError, MissingExtraError

np = pytest.importorskip("numpy")

from tests.compiler.checks import CLOSE, Numbers, difference, gradients  # noqa: E402  (they need NumPy)

pytestmark = pytest.mark.once  # what computes is the other library


class Case(NamedTuple):
    """A compiled function, examples for each of its arguments, and the other examples that it is tried on."""

    function: Any
    columns: list[Any]
    others: list[Any]


def columns(seed: int, count: int, width: int, classes: int) -> list[Any]:
    draw = np.random.default_rng(seed)
    X = draw.normal(size=(count, width))
    return [X, draw.integers(0, classes, count) if classes else np.sign(X[:, 0])]


def moons() -> Case:
    model = nn.MLP(2, [6, 6, 1], rng=random.Random(1))

    def loss(x: Numbers, y: float) -> Any:
        return losses.hinge(model(x), y) + losses.l2(model.parameters(), 1e-4)

    return Case(loss, columns(0, 7, 2, 0), columns(1, 5, 2, 0))


def digits() -> Case:
    model = nn.MLP(16, [8, 5], activation="gelu", rng=random.Random(2))
    return Case(lambda x, y: losses.cross_entropy(model(x), y), columns(2, 6, 16, 5), columns(3, 4, 16, 5))


def names() -> Case:
    """A layer of attention over letters, each predicting the next."""
    draw = random.Random(3)
    made = {key: [[Value(draw.gauss(0.0, 0.4)) for _ in range(4)] for _ in range(5)] for key in ("letter", "place")}
    made |= {key: [[Value(draw.gauss(0.0, 0.4)) for _ in range(4)] for _ in range(4)] for key in ("q", "k", "v")}

    def loss(word: list[int]) -> Any:
        keys: list[Any] = []
        values: list[Any] = []
        total: Any = 0.0
        for place in range(len(word) - 1):
            x = [a + b for a, b in zip(made["letter"][word[place]], made["place"][place], strict=True)]
            x = [a * (sum(b * b for b in x) / 4 + 1e-5) ** -0.5 for a in x]
            q, k, v = ([wengert.dot(row, x) for row in made[name]] for name in "qkv")
            keys.append(k)
            values.append(v)
            weights = wengert.softmax([wengert.dot(q, k) / 2.0 for k in keys])
            read = [wengert.dot(weights, [v[n] for v in values]) + x[n] for n in range(4)]
            total = total + losses.cross_entropy([wengert.dot(row, read) for row in made["letter"]], word[place + 1])
        return total / (len(word) - 1)

    words = np.random.default_rng(4).integers(0, 5, (9, 5))
    return Case(loss, [words[:5]], [words[5:]])


def pendulum() -> Case:
    """A damped pendulum by steps of Runge and Kutta, and how far it ends from where it was seen."""
    damping, length = Value(0.3), Value(1.2)

    def slope(angle: Any, speed: Any) -> tuple[Any, Any]:
        return speed, -damping * speed - 9.81 / length * wengert.sin(angle)

    def loss(start: float, seen: float) -> Any:
        angle: Any = start
        speed: Any = 0.0
        h = 0.05
        for _ in range(4):
            a1, s1 = slope(angle, speed)
            a2, s2 = slope(angle + a1 * (h / 2), speed + s1 * (h / 2))
            angle, speed = angle + h * a2, speed + h * s2
        return (angle - seen) ** 2

    X = np.random.default_rng(5).uniform(-1, 1, (2, 8))
    return Case(loss, [X[0, :4], X[1, :4]], [X[0, 4:], X[1, 4:]])


CASES: list[Callable[[], Case]] = [moons, digits, names, pendulum]
every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)


def chiefly(one: Callable[[], Case]) -> Any:
    """At each change the case that a library takes the shortest time for, the others at night."""
    cases = [pytest.param(case, marks=[pytest.mark.nightly] * (case is not one)) for case in CASES]
    return pytest.mark.parametrize("case", cases, ids=lambda case: case.__name__)


@functools.cache
def called(case: Callable[[], Case]) -> tuple[Case, Any, Any, Any]:
    """A case whose function has been called on a batch; and the function's results and gradients on others."""
    made = case()
    compiled = wengert.compile(made.function)
    compiled.mean(*made.columns)
    assert "uncompiled" not in compiled.report()
    results = [made.function(*row) for row in zip(*[column.tolist() for column in made.others], strict=True)]
    slopes = gradients(wengert.mean(results), list(compiled._server.latest().parameters))
    return made, compiled, [v.data for v in results], slopes


# ------------------------------------------------------------------------------------- JAX


@pytest.fixture
def jax() -> Any:
    return pytest.importorskip("jax", reason="needs jax")


def flat(tree: dict[str, Any]) -> Any:
    return np.concatenate([np.ravel(x) for x in tree.values()])


@pytest.mark.sampled(4)
@every_case
def test_a_function_of_jax(case: Callable[[], Case], jax: Any) -> None:
    made, compiled, want, slopes = called(case)
    with jax.enable_x64(True):
        function, parameters = compiled.to_jax()
        assert difference(jax.jit(function)(parameters, *made.others), want) < CLOSE
        mean = jax.jit(jax.grad(lambda p, *columns: function(p, *columns).mean()))
        found = mean(parameters, *made.others)
        assert difference(flat({name: found[name] for name in parameters}), slopes) < CLOSE


def test_a_function_of_one_example_is_mapped_over_many(jax: Any) -> None:
    made, compiled, want, slopes = called(moons)
    alone = wengert.compile(compiled.function)
    alone(made.columns[0][0].tolist(), float(made.columns[1][0]))
    with jax.enable_x64(True):
        function, parameters = alone.to_jax()
        assert difference(jax.jit(function)(parameters, made.others[0][0].tolist(), made.others[1][0]), want[0]) < CLOSE
        several = jax.jit(jax.vmap(function, (None, 0, 0)))
        assert difference(several(parameters, *made.others), want) < CLOSE
        each = jax.jit(jax.vmap(jax.grad(function), (None, 0, 0)))(parameters, *made.others)
        assert difference(flat({name: each[name].mean(0) for name in parameters}), slopes) < CLOSE


def test_what_is_made_takes_the_precision_that_jax_is_set_to(jax: Any) -> None:
    made, compiled, want, _ = called(digits)
    assert not jax.config.jax_enable_x64
    function, parameters = compiled.to_jax()
    got = jax.jit(function)(parameters, *made.others)
    assert {x.dtype for x in (got, *parameters.values())} == {np.dtype(np.float32)}
    assert np.asarray(got) == pytest.approx(want, rel=1e-4)
    assert not jax.config.jax_enable_x64


# ------------------------------------------------------------------------------------- PyTorch


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch", reason="needs torch")


def tensors(torch: Any, columns: list[Any]) -> list[Any]:
    return [torch.tensor(column) for column in columns]


@pytest.mark.torch
@every_case
def test_a_module_of_pytorch(case: Callable[[], Case], torch: Any) -> None:
    made, compiled, want, slopes = called(case)
    module = compiled.to_torch()
    got = module(*tensors(torch, made.others))
    assert difference(got.detach().numpy(), want) < CLOSE
    got.mean().backward()
    assert difference(flat({name: p.grad.numpy() for name, p in module.named_parameters()}), slopes) < CLOSE
    again = compiled.to_torch()
    with torch.no_grad():
        for p in again.parameters():
            p.zero_()
    again.load_state_dict(module.state_dict())
    assert difference(again(*tensors(torch, made.others)).detach().numpy(), want) < CLOSE


@pytest.mark.torch
@chiefly(pendulum)
def test_pytorch_compiles_it_whole(case: Callable[[], Case], torch: Any) -> None:
    made, compiled, want, slopes = called(case)
    module = compiled.to_torch()
    got = torch.compile(module, fullgraph=True, backend="aot_eager")(*tensors(torch, made.others))
    assert difference(got.detach().numpy(), want) < CLOSE
    got.mean().backward()
    assert difference(flat({name: p.grad.numpy() for name, p in module.named_parameters()}), slopes) < CLOSE


@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of the exporter's own making
@chiefly(digits)
def test_what_onnx_runs(case: Callable[[], Case], torch: Any) -> None:
    pytest.importorskip("onnxscript", reason="needs onnxscript")
    runtime = pytest.importorskip("onnxruntime", reason="needs onnxruntime")
    made, compiled, want, _ = called(case)
    given, file = tuple(tensors(torch, made.others)), io.BytesIO()
    torch.onnx.export(compiled.to_torch().float(), given, dynamo=True, verbose=False).save(file)
    session = runtime.InferenceSession(file.getvalue())
    names = [x.name for x in session.get_inputs()]
    (got,) = session.run(None, {name: x.numpy() for name, x in zip(names, given, strict=True)})
    assert difference(got, want) < 1e-5  # in single precision, which onnxruntime has every operation in


# ------------------------------------------------------------------------------------- what they do not hold for


def both(compiled: Any, *args: Any) -> list[Any]:
    """The result in each library that is there."""
    import jax

    found = []
    with jax.enable_x64(True):
        function, parameters = compiled.to_jax()
        found.append(np.asarray(function(parameters, *args)))
    torch = pytest.importorskip("torch", reason="needs torch")
    found.append(compiled.to_torch()(*[torch.as_tensor(x) for x in args]).detach().numpy())
    return found


@pytest.mark.torch
def test_another_way_is_nan(jax: Any) -> None:
    w = Value(0.5)
    compiled = wengert.compile(lambda x: w * x if w * x > 0.0 else w - x)
    compiled(2.0)
    for got in both(compiled, 2.0):
        assert float(got) == 1.0
    for got in both(compiled, -2.0):
        assert math.isnan(float(got))
    compiled.mean([1.0, 3.0])
    for got in both(compiled, np.array([2.0, -2.0, 4.0])):
        assert got.tolist()[::2] == [1.0, 2.0]
        assert math.isnan(got[1])


@pytest.mark.torch
def test_several_ways_are_refused(jax: Any) -> None:
    w = Value(0.5)
    compiled = wengert.compile(lambda x: w * x if w * x > 0.0 else w - x)
    compiled.mean([1.0, -3.0])
    with pytest.raises(ArgumentError, match=r"2 specializations \(branches at test_interop.py, line \d+.*write wenger"):
        compiled.to_jax()
    with pytest.raises(ArgumentError, match="has 2 specializations"):
        compiled.to_torch()


@pytest.mark.torch
def test_an_index_beyond_the_list_is_nan(jax: Any) -> None:
    table = [Value(1.0), Value(2.0), Value(4.0)]
    compiled = wengert.compile(lambda k: table[k] * 0.5)
    compiled.map([0, 1, 2])
    for got in both(compiled, np.array([2, 0, -1, 3, -4])):
        assert got[:3].tolist() == [2.0, 0.5, 2.0]
        assert np.isnan(got[3:]).all()


@pytest.mark.torch
def test_floats_that_are_read_outside_are_not_trained(jax: Any) -> None:
    w, settings = Value(0.5), {"rate": 3.0}
    compiled = wengert.compile(lambda x: w * x * settings["rate"])
    compiled.mean([1.0, 2.0])
    module = compiled.to_torch()
    module(1.0 + 0.0 * next(module.parameters()).detach().reshape(1)).sum().backward()
    assert sorted(float(p.grad.sum()) for p in module.parameters()) == [3.0]
    function, parameters = compiled.to_jax()
    slopes = jax.grad(lambda p: function(p, np.array([1.0])).sum())(parameters)
    assert sorted(x for slope in slopes.values() for x in np.ravel(slope).tolist()) == [0.0, 3.0]


@pytest.mark.parametrize("calls", [1, 5])
def test_what_is_read_outside_in_bulk_is_what_it_is_when_a_function_is_made(calls: int, jax: Any) -> None:
    w, table, row = Value(0.5), np.arange(1.0, 10.0), [1.0, 2.0]
    loss = wengert.compile(lambda x: w * x * table.sum() + row[1])
    for _ in range(calls):
        loss(1.0)
    table[0], row[1] = 7.0, 4.0
    with jax.enable_x64(True):
        function, parameters = loss.to_jax()
        assert float(function(parameters, 2.0)) == pytest.approx(loss.function(2.0).data, rel=1e-12)


@pytest.mark.torch
def test_arguments_by_name_and_in_dicts(jax: Any) -> None:
    w = Value(0.5)
    compiled = wengert.compile(lambda point, scale, kind: w * point["x"] * scale + point["y"], static=("kind",))
    compiled({"x": 1.0, "y": 2.0}, 3.0, "any")
    with jax.enable_x64(True):
        function, parameters = compiled.to_jax()
        assert float(function(parameters, {"x": 2.0, "y": 1.0}, scale=5.0)) == 6.0
    assert compiled.to_torch()({"x": 2.0, "y": 1.0}, scale=5.0).item() == 6.0
    with pytest.raises(ArgumentError, match="recorded with the arguments point, scale: pass exactly these"):
        function(parameters, {"x": 2.0, "y": 1.0})


def test_nothing_is_made_of_what_was_never_called(jax: Any) -> None:
    with pytest.raises(ArgumentError, match="call the function first"):
        wengert.compile(lambda x: x).to_jax()


@pytest.mark.parametrize(("method", "library", "extra"), [("to_jax", "jax", "xla"), ("to_torch", "torch", "torch")])
def test_what_is_missing_is_named(method: str, library: str, extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, library, None)
    with pytest.raises(MissingExtraError, match=rf'needs {library}: pip install {library} \(the extra "{extra}"\)'):
        getattr(wengert.compile(lambda x: x), method)()
