"""Machine code beside NumPy's kernel and the engine: the same numbers for every width of vectors and every batch."""

from __future__ import annotations

import ctypes
import itertools
import math
import random
import threading
from typing import Any

import pytest

import wengert
from tests.compiler.checks import difference, gradients
from wengert import Value, nn, ops
from wengert.errors import ArgumentError

np = pytest.importorskip("numpy")
pytest.importorskip("llvmlite", reason="machine code is made by llvmlite")

from wengert.compiler.backends.base import MachineCode  # noqa: E402
from wengert.compiler.backends.native.kernel import NativeKernel  # noqa: E402
from wengert.compiler.backends.native.layout import module  # noqa: E402
from wengert.compiler.backends.native.llvm import LLVM  # noqa: E402
from wengert.compiler.backends.native.machine import compiled, linked, native_width  # noqa: E402
from wengert.compiler.backends.native.mathematics import VECTOR_FUNCTIONS  # noqa: E402
from wengert.compiler.backends.numpy import NumPyKernel  # noqa: E402
from wengert.ops import BY_NAME  # noqa: E402

pytestmark = pytest.mark.once  # what computes is machine code

lifting_fuzz = pytest.importorskip("tools.qa.lifting_fuzz")

WIDTHS = [width for width in (1, 2, 4, 8) if width <= native_width()]  # vectors of 64, 128, 256 and 512 bits
SIZES = [*range(1, 18), 64, 100]
CLOSE = 1e-12


def kernel_of(function: Any, *columns: Any, batched: bool = True) -> tuple[Any, Any]:
    """The kernel of NumPy's that a function is lifted to for these arguments, and its buffers."""
    made = wengert.compile(function, backend="numpy")
    made.map(*columns) if batched else made(*columns)
    recording = made._server.latest()
    return recording.kernel, recording.buffers()


class Checked:
    """A kernel's program as code for some width of vectors, in which each access is checked."""

    def __init__(self, lifted: tuple[Any, Any], width: int) -> None:
        self.kernel, self.buffers = kernel, _ = lifted
        self.made = module(kernel.program, kernel.backward, kernel.wanted, width, checks=True)
        self.loaded = linked(compiled(self.made.text))

    def run(self, arrays: Any, seed: float | None) -> tuple[list[Any], Any]:
        """The outputs, and the derivatives with respect to inputs and to parameters, as `Kernel` returns them."""
        kernel, both = self.kernel, seed is not None
        count = next((len(x) for x, a in zip(arrays, kernel.inputs, strict=True) if a.batched), 1)
        kinds = [np.int64 if a.role == "index" else np.float64 for a in kernel.inputs]
        given = [np.ascontiguousarray(x, kind) for x, kind in zip(arrays, kinds, strict=True)]
        asked = [*kernel.program.outputs.values(), *(kernel.wanted if both else ())]
        left = [np.full([count if n < 0 else n for n in array.shape], 1234.5) for array in asked]
        slopes = np.full(len(self.buffers.params), 1234.5)
        room = np.full(self.made.work(count) + 8, math.nan)
        work = room[-room.ctypes.data % 64 // 8 :]
        work[0] = 0.0
        pointers = [np.array([x.ctypes.data for x in some] + [0], np.int64) for some in (given, left)]
        function = self.loaded.forward_backward if both else self.loaded.forward
        function(
            count, 1.0 if seed is None else seed, pointers[0].ctypes.data, self.buffers.params.ctypes.data,
            slopes.ctypes.data, pointers[1].ctypes.data, work.ctypes.data,
        )  # fmt: skip
        assert work[0] == 0.0, "an access was out of bounds"
        if not both:
            assert (slopes == 1234.5).all()
        return left, slopes


def agree(made: Checked, arrays: Any) -> None:
    """Code gives what NumPy's kernel gives, forward alone and with derivatives."""
    kernel, buffers = made.kernel, made.buffers
    for seed in (None, 0.75):
        got, slopes = made.run(arrays, seed)
        with np.errstate(all="ignore"):
            if seed is None:
                want: list[Any] = list(kernel.forward(arrays, buffers).values())
            else:
                outputs, by_inputs = kernel.forward_backward(arrays, seed, buffers)
                want = [*outputs.values(), *by_inputs]
                assert difference(slopes, buffers.grads) < CLOSE
        for x, y in zip(got, want, strict=True):
            assert difference(x, np.broadcast_to(y, x.shape)) < CLOSE


def network(x: Any, y: Any) -> Any:
    return (MODEL(x) - y) ** 2 + 1e-3 * sum(p * p for p in MODEL.parameters())


third = wengert.op("third_native", value=lambda x: math.sin(x) / 3.0, partials=lambda out, x: math.cos(x) / 3.0)
whole = wengert.op("gamma_native", value=lambda x: math.gamma(x), partials=lambda out, x: out * wengert.digamma(x))
MODEL = nn.MLP(3, [9, 5, 1], rng=random.Random(1))
BIAS = [Value(0.1 * n) for n in range(5)]
W = [[Value(random.Random(7 * n + k).gauss(0, 1)) for k in range(5)] for n in range(11)]


def attention(x: Any) -> Any:
    """Masks, ragged sums and an extreme."""
    scores = [wengert.tanh(sum(w * v for w, v in zip(row, x, strict=True))) for row in W[:6]]
    out = [wengert.logsumexp(scores[: t + 1]) for t in range(6)]
    return (
        sum(o * s for o, s in zip(out, wengert.softmax(scores), strict=True)) + wengert.max(scores) - wengert.min(out)
    )


def table(tokens: Any, target: int) -> Any:
    """Indices that are known when it runs."""
    rows = [W[t] for t in tokens]
    total = [sum(r[k] for r in rows).tanh() for k in range(5)]
    return total[0] * total[1] - (wengert.logsumexp(total) - BIAS[target])


def vector(x: Any) -> Any:
    """A list of results, as `map` takes it, and Values among the arguments."""
    return [a * W[0][0] + b for a, b in itertools.pairwise(x)]


@pytest.mark.parametrize("width", WIDTHS)
def test_batches_of_every_size_at_every_width(width: int) -> None:
    made = {name: Checked(kernel, width) for name, kernel in KERNELS.items()}
    for count in SIZES:
        draw = np.random.default_rng(count)
        agree(made["network"], [draw.normal(size=(count, 3)), draw.normal(size=count)])
        agree(made["attention"], [draw.normal(size=(count, 5))])
        agree(made["table"], [draw.integers(0, 11, (count, 4)), draw.integers(0, 5, count)])


@pytest.mark.parametrize("width", WIDTHS)
def test_one_example_and_lists_of_results(width: int) -> None:
    draw = np.random.default_rng(5)
    one = kernel_of(network, [0.3, 0.2, 0.5], 0.7, batched=False)
    agree(Checked(one, width), [draw.normal(size=3), np.float64(0.1)])
    one = kernel_of(table, [1, 2, 3, 1], 2, batched=False)
    agree(Checked(one, width), [np.array([10, 0, 3, 10]), np.int64(4)])
    agree(Checked(kernel_of(vector, draw.normal(size=(3, 7))), width), [draw.normal(size=(13, 7))])


@pytest.mark.parametrize("width", WIDTHS)
def test_products_larger_than_registers(width: int) -> None:
    generator = random.Random(3)
    big = nn.MLP(19, [23, 17], rng=generator)

    def loss(x: Any) -> Any:
        return sum(v * v for v in big(x)).log()

    draw = np.random.default_rng(6)
    agree(Checked(kernel_of(loss, draw.normal(size=(2, 19))), width), [draw.normal(size=(21, 19))])
    one = kernel_of(loss, draw.normal(size=19).tolist(), batched=False)
    agree(Checked(one, width), [draw.normal(size=19)])


@pytest.mark.sampled(4)
@pytest.mark.parametrize("width", WIDTHS)
def test_random_programs_access_what_is_theirs(width: int) -> None:
    for seed in range(4 * width, 4 * width + 2):
        made = lifting_fuzz.program(seed)
        generator = np.random.default_rng(seed)
        lifted = kernel_of(made.function, generator.normal(size=(4, made.width)))
        agree(Checked(lifted, width), [generator.normal(size=(11, made.width))])


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", [20_000, 20_001])
@pytest.mark.parametrize("poison", [False, True])
def test_random_programs(poison: bool, seed: int) -> None:
    error, refusal = lifting_fuzz.run(seed, poison, "native")
    assert error < CLOSE
    assert not refusal


# ------------------------------------------------------------------------------------------------- operations


SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 1e-300, 5e-324, -5e-324, 1e300, 800.0, -800.0, 40.0, -40.0]
SPECIAL += [math.inf, -math.inf, math.nan]
ROWS = [row for row in ops.TABLE[: ops.BUILT_IN] if row.value and row.arity in (1, 2)]


@pytest.mark.sampled(2)  # the others are in test_accuracy.py
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_every_operation_at_special_values(row: Any) -> None:
    """nan and infinity, zeros and subnormal numbers: as the engine has it."""
    fixed = [2.0] if row.name == "polygamma" or row.shapes else []  # an order is no number that is passed
    count = row.arity - len(fixed)
    points = list(itertools.product(SPECIAL, repeat=count))
    columns = [np.array(column) for column in zip(*points, strict=True)]
    draw = [[low + (high - low) * u for u in (0.3, 0.6)] for low, high in row.domain[-count:]]
    function = (lambda x: row(*fixed, x)) if count == 1 else (lambda x, y: row(x, y))
    made = wengert.compile(function, backend="native")
    made.map(*[np.array(x) for x in draw])
    recording = made._server.latest()
    assert (recording.kernel.name, recording.kernel.fallback_reason) == ("native", "")
    with recording.acquire() as space:
        assert space.run(columns, len(points), False, 1.0)
        got = space.values(len(points))
    for number, point in enumerate(points):
        want, x = row.value(*fixed, *point), float(np.broadcast_to(got, len(points))[number])
        same = x == want or (x != x and want != want)
        assert same or abs(x - want) <= 1e-13 * abs(want) + 5e-324, (row.name, point, x, want)


@pytest.mark.parametrize("name", sorted(VECTOR_FUNCTIONS))
@pytest.mark.parametrize("width", [width for width in WIDTHS if width > 1])
def test_vector_functions_keep_the_promise(name: str, width: int) -> None:
    """Within 4 units in the last place of the C library, whose own error is below one."""
    to = LLVM(width)
    to.needed[f"{name}.vector"] = width, VECTOR_FUNCTIONS[name]
    ty = f"<{width} x double>"
    call = f"define void @both(ptr %x, ptr %y) {{\n %a = load {ty}, ptr %x, align 8\n"
    call += f" %b = call {ty} @{name}.vector({ty} %a)\n store {ty} %b, ptr %y, align 8\n ret void\n}}\n"
    loaded = linked(compiled(to.text({}) + "\n" + call + "define void @forward() {\n ret void\n}"))
    function = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(loaded.code.forward_backward)
    draw = np.random.default_rng(8)
    numbers = [
        draw.normal(size=4000) * 10.0 ** draw.integers(-12, 3, 4000),
        draw.uniform(-1, 3, 4000),
        np.array(SPECIAL),
    ]
    numbers += [10.0 ** draw.uniform(-320, 308, 4000), np.nextafter(1.0, [0.0, 2.0]), draw.uniform(-745.2, 709.8, 1000)]
    x = np.concatenate([*numbers, np.zeros(width)])
    x = x[: len(x) // width * width]
    y = np.empty_like(x)
    for at in range(0, len(x), width):
        function(x.ctypes.data + 8 * at, y.ctypes.data + 8 * at)
    want = np.array([BY_NAME[name].value(float(v)) for v in x])
    with np.errstate(invalid="ignore"):
        far = np.abs(y - want) / np.spacing(np.abs(want))
    wrong = np.flatnonzero(~((y == want) | (np.isnan(y) & np.isnan(want)) | (far <= 3.0)))
    assert not len(wrong), [(x[k], y[k], want[k]) for k in wrong[:5]]


# ------------------------------------------------------------------------------------------------- the kernel


@pytest.mark.parametrize("size", [1, 2, 3, 4, 7, 8, 9, 17, 40])
def test_numbers_of_a_batch_get_into_lanes_and_out_again(size: int) -> None:
    """As many cells at a time as there are lanes, and what is left one by one."""
    draw = np.random.default_rng(size)
    made = wengert.compile(lambda x, k: [a * b + k for a, b in zip(x, x[::-1], strict=True)], backend="native")
    for count in (1, 3, 4, 5, 8, 9, 17):
        x, k = draw.normal(size=(count, size)), draw.integers(-9, 9, count)
        assert np.array_equal(made.map(x, k), x * x[:, ::-1] + k[:, None])


def test_what_only_python_can_do_is_numpys() -> None:
    made = wengert.compile(lambda x: whole(x * BIAS[1]), backend="native")
    total = made.mean([0.5, 1.0, 2.0])
    kernel = made._server.latest().kernel
    assert kernel.code is None
    assert kernel.fallback_reason == "gamma_native is computed in Python"
    assert "not run as native: gamma_native is computed in Python" in made.report()
    want = sum(math.gamma(x * BIAS[1].data) for x in (0.5, 1.0, 2.0)) / 3.0
    assert total.data == pytest.approx(want, rel=1e-14)


def test_operations_of_the_users_own_are_code() -> None:
    made = wengert.compile(lambda x: third(x * BIAS[1]), backend="native")
    total = made.mean([0.5, 1.0, 2.0])
    assert made._server.latest().kernel.code is not None
    want = [x * BIAS[1].data for x in (0.5, 1.0, 2.0)]
    assert total.data == pytest.approx(sum(math.sin(z) / 3.0 for z in want) / 3.0, rel=1e-14)
    BIAS[1].grad = 0.0
    total.backward()
    slope = sum(math.cos(z) / 3.0 * x for z, x in zip(want, (0.5, 1.0, 2.0), strict=True)) / 3.0
    assert BIAS[1].grad == pytest.approx(slope, rel=1e-14)


def test_a_kernel_has_code_of_the_seam() -> None:
    kernel, _ = KERNELS["network"]
    native = NativeKernel(kernel.program, kernel.backward, kernel.wanted)
    assert isinstance(native.code, MachineCode)
    assert native.code.forward != native.code.forward_backward
    assert native.work(9) >= native.work(1) > 0
    assert NumPyKernel(kernel.program, kernel.backward).code is None


def test_indices_out_of_bounds_never_reach_the_code() -> None:
    made = wengert.compile(table, backend="native")
    made([1, 2, 3, 4], 1)
    with pytest.raises(IndexError):
        made([1, 2, 3, 99], 1)
    assert made([1, 2, 3, -1], 1).data == pytest.approx(table([1, 2, 3, -1], 1).data, rel=1e-13)


def test_the_first_result_is_the_codes() -> None:
    made = wengert.compile(network, backend="native")
    parameters = MODEL.parameters()
    got = made.mean([[0.1, 0.2, 0.3]] * 5, [0.5] * 5)
    assert made._server.latest().kernel.code is not None
    want = network([0.1, 0.2, 0.3], 0.5)
    assert difference(got.data, want.data) < CLOSE
    assert difference(gradients(got, parameters), gradients(want, parameters)) < CLOSE


def test_threads_share_code() -> None:
    kernel, buffers = KERNELS["network"]
    made = linked(compiled(module(kernel.program, kernel.backward, kernel.wanted, native_width()).text))
    draw = np.random.default_rng(3)
    arrays = [draw.normal(size=(50, 3)), draw.normal(size=50)]
    kernel.forward_backward(arrays, 1.0, buffers)
    want, wrong = buffers.grads.copy(), []

    def work() -> None:
        one = Checked.__new__(Checked)
        one.kernel, one.buffers, one.loaded = kernel, buffers, made
        one.made = module(kernel.program, kernel.backward, kernel.wanted, native_width())
        for _ in range(50):
            if not difference(one.run(arrays, 1.0)[1], want) < CLOSE:
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_without_its_library_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from wengert.compiler.backends import BACKENDS

    monkeypatch.setitem(BACKENDS, "native", BACKENDS["native"]._replace(library="no_such_library"))
    with pytest.raises(wengert.errors.MissingExtraError, match=r'pip install no_such_library \(the extra "native"\)'):
        wengert.compile(network, backend="native")
    with pytest.raises(ArgumentError, match="expected one of 'auto', 'numpy', 'native'"):
        wengert.compile(network, backend="nativ")


@pytest.fixture(scope="module", autouse=True)
def kernels() -> None:
    """Those that several tests run."""
    draw = np.random.default_rng(0)
    KERNELS["network"] = kernel_of(network, draw.normal(size=(2, 3)), draw.normal(size=2))
    KERNELS["attention"] = kernel_of(attention, draw.normal(size=(2, 5)))
    KERNELS["table"] = kernel_of(table, draw.integers(0, 11, (5, 4)), np.array([3, 0, 4, 1, 2]))


KERNELS: dict[str, Any] = {}
