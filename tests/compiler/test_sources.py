"""The programs that compiled functions print; those of nine models are kept in golden/, to show what lifting does.

After a change that is meant: ``python -m tests.compiler.test_sources`` writes them anew.
"""

from __future__ import annotations

import ast
import functools
import math
import random
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import wengert
from tests.compiler import recurrences
from tests.compiler.checks import CLOSE, Numbers, batch_of, difference, gradients
from wengert import Value, nn, ops
from wengert.errors import ArgumentError

np = pytest.importorskip("numpy")

from wengert.compiler.backends.export import _constant  # noqa: E402  (they need NumPy)
from wengert.compiler.backends.spellings import LIBRARIES  # noqa: E402
from wengert.compiler.backends.syntax import written  # noqa: E402

pytestmark = pytest.mark.once  # what is printed is the array program

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


def called(made: recurrences.Made) -> Any:
    """A recurrence, compiled."""
    function, args, _ = made
    compiled = wengert.compile(function)
    compiled(*args)
    return compiled


def oscillator() -> Any:
    """A hundred steps of the fourth order."""
    return called(recurrences.oscillator_of_fourth_order())


def filtered() -> Any:
    """A filter of the second order, over two hundred samples."""
    return called(recurrences.biquad())


def network() -> Any:
    """Twenty steps of eight cells with gates."""
    return called(recurrences.lstm())


RECURRENCES: list[Callable[[], Any]] = [oscillator, filtered, network]
MODELS: list[Callable[[], Any]] = [moons, digits, recurrent, attention, gpt, convolution, *RECURRENCES]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_the_printed_program_is_the_one_that_is_kept(model: Callable[[], Any]) -> None:
    kept = (GOLDEN / f"{model.__name__}.py").read_text(encoding="utf-8")
    assert model().source("numpy") == kept, "if this is meant: python -m tests.compiler.test_sources"


@pytest.mark.parametrize("model", RECURRENCES, ids=lambda model: model.__name__)
def test_a_recurrence_is_a_page_that_one_can_read(model: Callable[[], Any]) -> None:
    lines = model().source("numpy").splitlines()
    assert sum(line.strip().startswith("for t in ") for line in lines) == 2  # forward, and the reverse sweep
    assert len(lines) < 140


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_the_printed_program_runs_and_gives_the_same(model: Callable[[], Any]) -> None:
    compiled = model()
    kernel, buffers = compiled._server.latest().kernel, compiled._server.latest().buffers()
    arguments = [np.random.default_rng(0).standard_normal([3 if n < 0 else n for n in a.shape]) for a in kernel.inputs]
    arguments = [
        np.arange(x.size) % 10 if a.role == "index" else x for a, x in zip(kernel.inputs, arguments, strict=True)
    ]
    space: dict[str, Any] = {}
    exec(compiled.source("numpy"), space)
    value, slopes = space[f"{model.__name__}_and_gradients"](*arguments, *buffers.param_arrays)
    batched = any(a.batched for a in kernel.inputs)
    eager = [compiled.function(*example) for example in (zip(*arguments, strict=True) if batched else [arguments])]
    want = wengert.mean(eager)
    assert value == pytest.approx(want.data, rel=1e-12)
    parameters = compiled._server.latest().parameters
    for p in parameters:
        p.grad = 0.0
    want.backward()
    assert np.concatenate([np.ravel(s) for s in slopes]) == pytest.approx(
        [p.grad for p in parameters], rel=1e-9, abs=1e-13
    )


@pytest.mark.sampled(9)
@pytest.mark.torch
@pytest.mark.once  # what computes is the other library
@pytest.mark.parametrize("language", ["torch", "jax"])
@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_the_program_in_another_library_has_the_same_gradients(model: Callable[[], Any], language: str) -> None:
    pytest.importorskip(language)
    compiled = model()
    recording = compiled._server.latest()
    kernel, buffers = recording.kernel, recording.buffers()
    arguments = [np.random.default_rng(0).standard_normal([3 if n < 0 else n for n in a.shape]) for a in kernel.inputs]
    arguments = [
        np.arange(x.size) % 10 if a.role == "index" else x for a, x in zip(kernel.inputs, arguments, strict=True)
    ]
    value, slopes = run(compiled, "numpy", arguments, buffers.param_arrays)
    value_there, slopes_there = run(compiled, language, arguments, buffers.param_arrays)
    assert value_there == pytest.approx(value, rel=1e-12)
    own = range(len(slopes)) if recording.own is None else recording.own  # of a float that is read there is none
    assert [slopes_there[n] for n in own] == pytest.approx([slopes[n] for n in own], rel=1e-9, abs=1e-13)
    assert not any(slopes[n] for n in {*range(len(slopes))}.difference(own))


# ------------------------------------------------------------------------------------- every row, in every library

ROWS = [row for row in ops.TABLE[: ops.BUILT_IN] if row.value is not None]


def run(compiled: Any, language: str, arguments: list[Any], arrays: list[Any]) -> tuple[float, list[float]]:
    """What a printed program gives in a library: its value, and the gradients with respect to the parameters given."""
    space: dict[str, Any] = {}
    exec(compiled.source(language), space)
    *_, function = [thing for thing in space.values() if isinstance(thing, types.FunctionType)]
    if language == "numpy":
        value, slopes = function(*arguments, *arrays)
    elif language == "torch":
        tensors = [space["torch"].tensor(array, requires_grad=True) for array in arrays]
        value = function(*[space["torch"].tensor(np.asarray(x)) for x in arguments], *tensors)
        value.backward()
        slopes = [np.zeros_like(x) if t.grad is None else t.grad.numpy() for t, x in zip(tensors, arrays, strict=True)]
    else:
        places = tuple(range(len(arguments), len(arguments) + len(arrays)))
        value, slopes = space["jax"].jit(space["jax"].value_and_grad(function, places))(*arguments, *arrays)
    return value.item(), np.concatenate([np.ravel(slope) for slope in slopes]).tolist()


UNKNOWN = {("torch", "betainc"), ("jax", "j0"), ("jax", "j1")}  # what a library lacks


@pytest.mark.torch
@pytest.mark.sampled(10)  # in each library other rows
@pytest.mark.parametrize("language", LIBRARIES)
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_every_row_is_written_in_every_library(row: ops.Op, language: str) -> None:
    """By a name, as an exception, or by its own rule; with a number for each operand in turn, too."""
    pytest.importorskip(language)
    generator = random.Random(row.name)
    domain = row.domain if row.arity is not None else row.domain[:1] * 5
    drawn = [generator.uniform(low, high) for low, high in domain]
    fixed = [n for n, (low, high) in enumerate(domain) if low == high]
    for constant in [-1, *range(len(drawn))] if row.arity == 2 and not fixed else [-1]:
        operands = [x if n in (constant, *fixed) else Value(x) for n, x in enumerate(drawn)]
        parameters = [x for x in operands if isinstance(x, Value)]
        names = {f"v{n}": x for n, x in enumerate(operands) if isinstance(x, Value)}
        shown = ", ".join([f"v{n}" if isinstance(x, Value) else repr(x) for n, x in enumerate(operands)])
        space = {"row": row, "parameters": parameters, **names}
        compiled = wengert.compile(eval(f"lambda x: row({shown}) * x + sum(p * p for p in parameters)", space))
        got, want = compiled(1.5), compiled.function(1.5)
        assert "uncompiled" not in compiled.report()
        if (language, row.name) in UNKNOWN:
            with pytest.raises(ArgumentError, match=f"{row.name} computes with single floats, as only NumPy can"):
                compiled.source(language)
            continue
        value, slopes = run(compiled, language, [1.5], compiled._server.latest().buffers().param_arrays)
        assert difference(value, want.data) < CLOSE
        recorded = list(compiled._server.latest().parameters)
        assert slopes == pytest.approx(gradients(want, recorded), rel=1e-9)  # PyTorch's polygamma has ten digits
        assert difference(gradients(got, recorded), gradients(want, recorded)) < CLOSE


def test_a_row_of_the_users_that_takes_floats_is_called_on_each_element() -> None:
    wengert.op("slow_gamma", value=lambda x: math.gamma(x), partials=lambda out, x: out * wengert.digamma(x))
    w = Value(0.4)
    loss = wengert.compile(lambda x: ops.BY_NAME["slow_gamma"](w * x))
    got = loss.mean([0.5, 2.0])
    value, slopes = run(loss, "numpy", [np.array([0.5, 2.0])], [np.array(0.4)])
    got.backward()
    assert (value, slopes) == (got.data, [w.grad])
    for language in ("torch", "jax"):
        with pytest.raises(ArgumentError, match="slow_gamma"):
            loss.source(language)


@pytest.mark.parametrize("language", ["numpy", "torch", "jax"])
def test_a_row_of_the_users_is_written_by_its_rules(language: str) -> None:
    """Its derivative is its own, which is not that of its value."""
    pytest.importorskip(language)
    row = wengert.op("steps_of_sources", value=lambda x: math.floor(x) + 0.5, partials=lambda out, x: math.cos(x))
    w = Value(0.4)
    loss = wengert.compile(lambda x: row(w * x).sin())
    got = loss.mean([0.5, 4.0])
    got.backward()
    value, slopes = run(loss, language, [np.array([0.5, 4.0])], [np.array(0.4)])
    assert difference(value, got.data) < CLOSE
    assert difference(slopes, [w.grad]) < CLOSE


def test_every_language_is_named_where_another_is_asked_for() -> None:
    with pytest.raises(ArgumentError, match='source\\(\\) writes "numpy", "torch", "jax" or "c", not \'rust\''):
        moons().source("rust")


# ------------------------------------------------------------------------------------- names


class Model:
    """Functions of every kind."""

    def __init__(self) -> None:
        self.w = Value(0.7)

    def loss(self, x: float) -> Any:
        return (self.w * x).tanh()

    def __call__(self, x: float) -> Any:
        return self.loss(x)


def named(names: str) -> Any:
    """A function whose arguments have these names."""
    space: dict[str, Any] = {"w": Value(0.7)}
    terms = "+".join(f"(w * {name}).tanh()" for name in names.split())
    exec(f"def loss({', '.join(names.split())}): return {terms}", space)
    return space["loss"]


def nested() -> Any:
    w = Value(0.3)

    def class_(x: float) -> Any:
        return (w * x).exp()

    class_.__name__ = class_.__qualname__ = "class"
    return class_


WEIGHT = Value(0.7)
FUNCTIONS: dict[str, tuple[Any, int]] = {
    "lambda": (lambda x: (WEIGHT * x).tanh(), 1),
    "method": (Model().loss, 1),
    "object": (Model(), 1),
    "partial": (functools.partial(lambda scale, x: (WEIGHT * x * scale).tanh(), 2.0), 1),
    "keyword": (nested(), 1),
    "the text's own names": (named("np seed rows len torch jax jnp t1 h1 u1 W1 p1 dp1 mask1 index1 slope0 lifted"), 17),
    "rows": (named("tanh exp x_ x"), 4),
}


@pytest.mark.sampled(3)
@pytest.mark.torch
@pytest.mark.parametrize("language", LIBRARIES)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_whatever_things_are_called_the_text_runs(name: str, language: str) -> None:
    pytest.importorskip(language)
    function, count = FUNCTIONS[name]
    compiled = wengert.compile(function)
    numbers = [0.1 * n - 0.3 for n in range(count)]
    want = compiled(*numbers).data
    assert "uncompiled" not in compiled.report()
    value, _ = run(compiled, language, numbers, compiled._server.latest().buffers().param_arrays)
    assert value == pytest.approx(want, rel=1e-12)
    text = compiled.source(language, gradient=False)
    compile(text, "<source>", "exec")
    assert ("def " + {"method": "loss", "keyword": "class_", "lambda": "lambda_"}.get(name, "")) in text


def test_keys_that_are_keywords() -> None:
    w = Value(0.7)
    compiled = wengert.compile(lambda x: (w * x["lambda"] + x["not a name"]).tanh())
    want = compiled({"lambda": 0.5, "not a name": 0.25})
    assert run(compiled, "numpy", [0.5, 0.25], [np.array(0.7)])[0] == pytest.approx(want.data, rel=1e-12)


def test_keys_that_python_takes_for_one_name() -> None:
    w, micro, mu = Value(0.7), "\N{MICRO SIGN}", "\N{GREEK SMALL LETTER MU}"
    compiled = wengert.compile(lambda x: (w * x[micro] + x[mu]).tanh())
    want = compiled({micro: 0.5, mu: 0.25})
    assert run(compiled, "numpy", [0.5, 0.25], [np.array(0.7)])[0] == pytest.approx(want.data, rel=1e-12)


def test_an_argument_is_not_taken_for_the_memory_of_a_slope() -> None:
    """Not even of a parameter that has none."""
    w, still = Value(0.7), Value(0.3)
    compiled = wengert.compile(lambda slope1: (w * slope1[0]).tanh() + wengert.stop_gradient(still) * slope1[1])
    x = np.array([[0.5, 1.5], [1.0, 2.0]])
    for _ in range(2):
        got, want = compiled.mean(x), batch_of(compiled.function, x.tolist())
        assert difference(got.data, want.data) < CLOSE
        assert difference(gradients(got, [w, still]), gradients(want, [w, still])) < CLOSE
    assert x.tolist() == [[0.5, 1.5], [1.0, 2.0]]


@pytest.mark.torch
@pytest.mark.parametrize("language", LIBRARIES)
def test_a_choice_that_is_known(language: str) -> None:
    """As Python compares Values while it records: the condition is then a number."""
    pytest.importorskip(language)
    w, v = Value(0.7), Value(-0.4)
    compiled = wengert.compile(lambda x: wengert.where(w * x > 0.1, w * x, v * x) + wengert.where(w * x < 0.1, 1.0, v))
    want = compiled(1.3)
    arrays = compiled._server.latest().buffers().param_arrays
    value, slopes = run(compiled, language, [1.3], arrays)
    assert value == pytest.approx(want.data, rel=1e-12)
    assert slopes == pytest.approx(gradients(want, list(compiled._server.latest().parameters)), rel=1e-12)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_trees_are_printed_as_python_prints_them(model: Callable[[], Any]) -> None:
    more = "(-x) ** 2 - (-x) ** -2 * -(x @ (y @ z)) / (x / -y) - (x - (y + z)) + x[1:, None, ...] * (x <= y).T.sum(-1)"
    texts = [(GOLDEN / f"{model.__name__}.py").read_text(encoding="utf-8"), more]
    trees = [tree for text in texts for tree in ast.walk(ast.parse(text)) if isinstance(tree, ast.expr)]
    for tree in trees:
        if not isinstance(tree, (ast.Slice, ast.Tuple)):
            assert written(tree) == ast.unparse(tree)


@pytest.mark.torch
@pytest.mark.parametrize("language", LIBRARIES)
def test_numbers_of_many_steps_are_put_together(language: str) -> None:
    """Each step makes one number, and a later one reads them all; among them stands what does not vary."""
    pytest.importorskip(language)
    w = [Value(x) for x in (0.3, -0.2, 0.9, 0.5)]

    def steps(x: float) -> Any:
        h, out = w[0] * x, [w[0] * w[1]]
        for _ in range(4):
            h = (h * w[1]).tanh() + w[2] * x
            out.append(h)
        return sum(out[i] * out[(i * 3 + 1) % 5] * w[3] for i in range(5)) + wengert.max(out)

    compiled = wengert.compile(steps)
    want = compiled(1.3)
    value, slopes = run(compiled, language, [1.3], compiled._server.latest().buffers().param_arrays)
    assert value == pytest.approx(want.data, rel=1e-12)
    assert slopes == pytest.approx(gradients(want, list(compiled._server.latest().parameters)), rel=1e-12)
    examples = [1.3, -0.4, 0.1]
    got, want = compiled.mean(examples), batch_of(steps, examples)
    assert difference(got.data, want.data) < CLOSE
    assert difference(gradients(got, w), gradients(want, w)) < CLOSE
    value, slopes = run(compiled, language, [np.array(examples)], compiled._server.latest().buffers().param_arrays)
    assert value == pytest.approx(want.data, rel=1e-12)


# ------------------------------------------------------------------------------------- by exec


def printed(compiled: Any, arguments: list[Any]) -> tuple[float, list[float]]:
    """What the printed program gives: its value, and the gradients in the order of the recording's parameters."""
    space: dict[str, Any] = {}
    text = compiled.source("numpy")
    exec(text, space)
    path = compiled._server.latest()
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
    parameters = list(loss._server.latest().parameters)
    assert difference(value, want.data) < CLOSE
    assert difference(slopes, gradients(want, parameters)) < CLOSE
    assert difference(slopes, gradients(got, parameters)) < CLOSE
    forward: dict[str, Any] = {}
    exec(loss.source("numpy", gradient=False), forward)
    assert "loss" in forward


@pytest.mark.parametrize("exponent", [0.5, -0.5, 1.5, 2.5, 5.0, 6.0, 11.0, -1.0, -3.0, 1.0, 0.0, 0.25])
def test_the_printed_powers_are_powers_everywhere(exponent: float) -> None:
    p = Value(2.0)
    power = wengert.compile(eval(f"lambda: p**{exponent!r}", {"p": p}))  # one that is read outside is no constant
    for x in (2.0, 0.0, -0.0, -2.0, 1e-80, 1e-66, 1e200, math.inf, -math.inf, math.nan):
        p.data = x
        power()
        with np.errstate(all="ignore"):
            value, (slope,) = printed(power, [])
        want = power.function()
        slope_wanted = gradients(want, [p])[0]
        assert difference(value, want.data) < CLOSE
        assert math.copysign(1.0, value) == math.copysign(1.0, want.data) or math.isnan(value)
        if not (x == 0.0 and abs(slope_wanted) == math.inf):  # there the sign of infinity is that of a zero
            assert slope == pytest.approx(slope_wanted, rel=1e-13, abs=0.0, nan_ok=True)


@pytest.mark.parametrize(
    "program",
    [
        lambda x, y, z: x * (y / z),
        lambda x, y, z: x * (y * (1.0 / z)),
        lambda x, y, z: (x + 1e308) - (y + 1e308),
        lambda x, y, z: x / (y / z) / (1.0 / (y / z)),
        lambda x, y, z: x * 2.0 * (y / z) * (3.0 * y / z),
    ],
)
def test_the_printed_program_keeps_its_parentheses(program: Callable[..., Any]) -> None:
    parameters = [Value(0.5), Value(0.25), Value(2.0)]
    compiled = wengert.compile(lambda: program(*parameters))
    for extreme in (1.0, 1e-200, 1e200):
        for p in parameters:
            p.data = extreme
        compiled()
        with np.errstate(all="ignore"):
            value, slopes = printed(compiled, [])
        want = compiled.function()
        recording = compiled._server.latest()
        with np.errstate(all="ignore"):  # where no derivatives are asked for more stands on one line
            alone = recording.kernel.forward([], recording.buffers())["out"]
        assert difference([value, alone], [want.data] * 2) < CLOSE
        assert difference(slopes, gradients(want, list(recording.parameters))) < CLOSE


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
    assert difference(slopes, gradients(want, list(loss._server.latest().parameters))) < CLOSE


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    GOLDEN.mkdir(exist_ok=True)
    for model in MODELS:
        (GOLDEN / f"{model.__name__}.py").write_text(model().source("numpy"), encoding="utf-8")
