"""What a compiled function must not do: go on with what has changed, or touch what is not its own."""

from __future__ import annotations

import builtins
import gc
import math
import os
import pickle
import random
import threading
import warnings
from math import inf, nan
from typing import Any

import pytest

import wengert
from tests.compiler.checks import entries, lifted, same, specializations
from tests.hidden import Hidden
from wengert import Graph, Value, nn
from wengert.compiler.reach.purity import PurityCheck
from wengert.errors import ArgumentError

np = pytest.importorskip("numpy")

pytestmark = pytest.mark.once  # what is followed, and when, is decided in Python

W: Any = Value(2.0)
SCALE: Any = 2.0
MODEL: Any = None
total: Any = 0.0  # as a script names its results, and the functions here an attribute


@pytest.fixture(autouse=True)
def _globals_stay() -> Any:
    before = W, SCALE, MODEL, total
    yield
    globals().update(zip(("W", "SCALE", "MODEL", "total"), before, strict=True))


# ------------------------------------------------------------------------------------- gradients are the user's


def test_recording_never_writes_a_gradient() -> None:
    class Watched(Value):
        """A Value that tells when its gradient is set."""

        __slots__ = ()

        @property
        def grad(self) -> float:
            return Value.grad.__get__(self)  # type: ignore[no-any-return]

        @grad.setter
        def grad(self, number: float) -> None:
            raise AssertionError("the gradient is set")

    w = Watched(0.7)
    loss = wengert.compile(lambda x, y: (w * x - y) ** 2)
    loss(1.0, 2.0)
    loss.mean([1.0, 2.0], [2.0, 1.0])
    lifted(loss)


def test_derivatives_by_captured_nodes_are_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reverse program that is wrong is found out, whether leaves are captured or what was computed from them."""
    from wengert.compiler.backends.numpy import NumPyKernel

    both = NumPyKernel.forward_backward

    def wrong(self: Any, arrays: Any, seed: float, buffers: Any) -> Any:
        results = both(self, arrays, seed, buffers)
        buffers.grads *= 1.5
        return results

    leaf = Value(0.7)
    node = leaf * 2.0
    for w in (leaf, node):
        right = wengert.compile(lambda x: (w * x + leaf).tanh() * w)  # noqa: B023
        right(0.5)
        lifted(right)
        with monkeypatch.context() as patch:
            patch.setattr(NumPyKernel, "forward_backward", wrong)
            loss = wengert.compile(right.function, backend="numpy")
            with pytest.warns(UserWarning, match="the derivative of the array program is"):
                same(loss(0.5), right.function(0.5), [leaf])


def test_parameters_that_the_first_call_makes() -> None:
    kept: dict[str, Value] = {}

    @wengert.compile
    def line(x: float) -> Any:
        if "w" not in kept:
            kept["w"] = Value(2.0)
        return kept["w"] * x

    for _ in range(3):
        line(3.0).backward()
    assert kept["w"].grad == 9.0
    lifted(line)


@pytest.mark.parametrize("name", ["t1", "t2", "du1", "dh1", "slope0", "W1", "seed", "np", "rows", "mask1", "x_0"])
def test_arguments_are_named_as_one_likes(name: str) -> None:
    """The text of a program has these names for itself; a node that is captured has a gradient to pass on."""
    w = Value(2.0)
    space = {"h": w * 1.0}
    exec(f"def f({name}, y):\n e = (h * {name} + y).sigmoid()\n return (e * e.exp() + e * {name}) * {name} * y", space)
    function: Any = space["f"]
    compiled = wengert.compile(function)
    pairs = [(0.7, 0.2), (0.3, 0.4)]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        same(compiled.mean([0.7, 0.3], [0.2, 0.4]), wengert.mean([function(*p) for p in pairs]), [w])
        same(compiled(0.7, 0.2), function(0.7, 0.2), [w])
    lifted(compiled)


# ------------------------------------------------------------------------------------- the checks from call to call


HIDDEN = Hidden(1.0)


def of_hidden(x: Any) -> Any:
    return W * x * HIDDEN.value


@pytest.fixture
def hidden() -> Any:
    yield HIDDEN
    HIDDEN.value = 1.0


@pytest.mark.parametrize("when", [1, 2, 3, 5, 9, 20])
@pytest.mark.parametrize("how", ["single", "batch"])
def test_what_is_not_seen_to_change_is_found_out_at_a_check(when: int, how: str, hidden: Any) -> None:
    """The first four calls, or examples, are compared, and each call whose number is a power of two."""
    loss = wengert.compile(of_hidden)

    def call() -> None:
        want = of_hidden(2.0) if how == "single" else wengert.mean([of_hidden(2.0), of_hidden(3.0)])
        same(loss(2.0) if how == "single" else loss.mean([2.0, 3.0]), want, [W])

    for _ in range(when):
        call()
    lifted(loss)
    hidden.value = 5.0
    due = next(n for n in (2, 3, 4, 8, 16, 32) if n > when and (n != 3 or how == "single"))
    for _ in range(when + 1, due):  # stale, and nobody has noticed
        assert (loss(2.0) if how == "single" else loss.mean([2.0, 3.0])).data == (4.0 if how == "single" else 5.0)
    with pytest.warns(
        UserWarning,
        match=r"a recording of of_hidden is dropped: the result .* is [46].0, that of the function [23]0.0: something",
    ):
        call()
    for _ in range(20):
        call()
    lifted(loss)
    assert "1 specialization was dropped" in loss.report()


def test_the_third_time_the_function_stays_with_the_engine(hidden: Any) -> None:
    loss = wengert.compile(of_hidden)
    said = []
    for number in (1.0, 5.0, 6.0, 7.0, 8.0):
        hidden.value = number
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for _ in range(3):
                same(loss(2.0), of_hidden(2.0), [W])
        said += [str(w.message) for w in caught]
    assert [" is dropped: " in text for text in said] == [True, True, False]
    assert said[-1].startswith("of_hidden runs uncompiled: ")
    assert said[-1] in loss.report().replace("  runs", "of_hidden runs")
    hidden.value = 9.0
    same(loss(2.0), of_hidden(2.0), [W])


def test_a_function_of_two_paths_is_checked_too(hidden: Any) -> None:
    w = Value(1.0)
    loss = wengert.compile(lambda x: w * x * HIDDEN.value if x < 0 else w * x * HIDDEN.value * 2)
    loss(-1.0)
    for _ in range(4):
        loss(1.0)
    assert ": 5 calls" in loss.report()
    hidden.value = 5.0
    for _ in range(2):
        loss(1.0)
    with pytest.warns(UserWarning, match="is dropped"):
        same(loss(1.0), loss.function(1.0), [w])
    same(loss(1.0), loss.function(1.0), [w])


def test_what_changes_the_gradient_alone_is_found_out(hidden: Any) -> None:
    w, v = Value(1.0), Value(2.0)
    loss = wengert.compile(lambda x: (w * x - x) * HIDDEN.value + v)
    same(loss(3.0), loss.function(3.0), [w, v])
    hidden.value = 5.0
    with pytest.warns(UserWarning, match="is dropped: the derivative"):
        same(loss(3.0), loss.function(3.0), [w, v])


@pytest.mark.parametrize("size", [1e-12, 1.0, 1e12])
def test_checks_are_relative_to_each_number(size: float, hidden: Any) -> None:
    w, v = Value(1.0), Value(size)
    loss = wengert.compile(lambda x: [w * x, v * HIDDEN.value, 0.0])
    loss(3.0)
    loss.map([3.0])
    hidden.value = 1.0 + 1e-6
    with pytest.warns(UserWarning, match="is dropped"):
        assert loss.map([3.0]).tolist() == [[3.0, size * hidden.value, 0.0]]


@pytest.mark.parametrize("count", [2, 7, 64])
def test_other_examples_are_checked_each_time(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from wengert.compiler.checks import Checks

    seen: list[int] = []
    agrees = Checks.matches

    def watched(self: Any, entry: Any, made: Any, arguments: Any, row: int, result: Any) -> bool:
        seen.append(row)
        return agrees(self, entry, made, arguments, row, result)

    monkeypatch.setattr(Checks, "matches", watched)
    w = Value(1.0)
    loss = wengert.compile(lambda x: w * x)
    X = np.arange(float(count))
    loss.mean(X)
    assert seen == [*range(min(count, 4))]  # at once on four that differ
    for _ in range(3):
        loss.mean(X)
    seen.clear()
    for _ in range(1100):
        loss.mean(X)
    assert len(seen) == 8  # on calls 8, 16, ... 1024
    assert len(set(seen)) >= min(count, 7)


def test_the_examples_that_are_compared_differ() -> None:
    """A batch that begins with many of one kind is not compared on that kind alone."""
    w, state = Value(1.0), HIDDEN
    loss = wengert.compile(lambda x: w * x * state.value)
    X = [0.0] * 30 + [1.0, 2.0, 3.0, 4.0]
    assert loss.mean(X).data == pytest.approx(10.0 / 34.0)
    assert next(iter(loss._server.entries.values())).checks == 4


# ------------------------------------------------------------------------------------- what is seen outside


def of_globals(x: Any) -> Any:
    return W * x * SCALE


def test_a_global_value_that_is_made_anew() -> None:
    global W
    loss = wengert.compile(of_globals)
    for _ in range(5):
        loss(3.0)
    old, W = W, Value(100.0)
    for _ in range(3):
        same(loss(3.0), of_globals(3.0), [W, old])
        same(loss.mean([3.0, 4.0]), wengert.mean([of_globals(x) for x in (3.0, 4.0)]), [W, old])
    lifted(loss)


def test_a_model_that_is_made_anew_as_in_a_notebook() -> None:
    global MODEL
    loss = wengert.compile(lambda x: MODEL(x) ** 2)
    for seed in range(3):
        MODEL = nn.MLP(2, [3, 1], rng=random.Random(seed))
        for _ in range(3):
            same(loss([0.5, -0.3]), MODEL([0.5, -0.3]) ** 2, MODEL.parameters())
    lifted(loss)


def test_a_variable_around_the_function_that_is_made_anew() -> None:
    w = [Value(1.0)]
    loss = wengert.compile(lambda x: w[0] * x)
    for _ in range(3):
        loss(2.0)
    w = [Value(5.0)]
    same(loss(2.0), w[0] * 2.0, w)
    lifted(loss)


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.int64])
def test_numbers_of_numpy_outside(kind: Any) -> None:
    global SCALE
    loss = wengert.compile(of_globals)
    for number in (1, 2, 3, 1):
        SCALE = kind(number)
        assert loss(1.0).data == 2.0 * number
    lifted(loss)
    assert specializations(loss) == [1 if kind is np.float64 else 3]


def test_zeros_of_both_signs_outside() -> None:
    global SCALE
    loss = wengert.compile(lambda x: W * x * math.copysign(1.0, SCALE))
    for SCALE in (0.0, -0.0, 0.0):
        assert loss(1.0).data == math.copysign(2.0, SCALE)


def test_nan_outside_is_one_number() -> None:
    global SCALE
    loss = wengert.compile(lambda x: W * x if SCALE != SCALE else W + x)
    for _ in range(5):
        SCALE = float("nan")
        loss(1.0)
    assert entries(loss) == 1
    lifted(loss)


class Pair:
    """Has an attribute that is named as a global is."""

    def __init__(self) -> None:
        self.total = Value(2.0)


def test_attributes_are_no_globals() -> None:
    """A script gives its results the names that functions have for attributes."""
    global total
    pair = Pair()
    loss = wengert.compile(lambda x: pair.total * x)
    for _ in range(50):
        total = loss(2.0)
    assert entries(loss) == 1


class Scaled:
    """Has a number and a method of its class, which an object may have its own in the place of."""

    rate = 2.0

    def scaled(self, x: Any) -> Any:
        return W * x * self.rate


def test_an_object_gets_an_attribute_that_its_class_has() -> None:
    scale = Scaled()
    loss = wengert.compile(lambda x: scale.scaled(x))
    for _ in range(50):
        same(loss(2.0), W * 2.0 * 2.0, [W])
    scale.rate = 3.0
    same(loss(2.0), W * 2.0 * 3.0, [W])
    scale.scaled = lambda x: W + x  # type: ignore[method-assign]
    same(loss(2.0), W + 2.0, [W])
    del scale.rate, scale.scaled
    same(loss(2.0), W * 2.0 * 2.0, [W])
    lifted(loss)


def test_a_variable_that_is_written_is_an_effect() -> None:
    w, last = Value(2.0), None

    @wengert.compile
    def loss(x: float) -> Any:
        nonlocal last
        made = w * x
        last = made
        return made + 1.0

    with pytest.warns(UserWarning, match="it changes last"):
        [loss(2.0) for _ in range(4)]
    for x in (3.0, 4.0):
        same(loss(x), w * x + 1.0, [w])
        assert last is not None
        assert last.data == 2.0 * x


def test_an_integer_that_changes_at_every_call_is_remembered_no_longer() -> None:
    global SCALE
    loss = wengert.compile(of_globals)
    for SCALE in range(32):
        assert loss(1.0).data == 2.0 * SCALE
    SCALE = 32
    with pytest.warns(UserWarning, match="it reads SCALE, which changes between calls: make SCALE an argument"):
        loss(1.0)
    for SCALE in range(33, 300):
        assert loss(1.0).data == 2.0 * SCALE
    assert entries(loss) == 1
    SCALE = 3
    same(loss(1.0), of_globals(1.0), [W])
    assert "runs uncompiled: it reads SCALE, which changes" in loss.report()


# ------------------------------------------------------------------------------------- paths


def test_paths_whose_results_differ_in_shape() -> None:
    w = Value(1.0)
    loss = wengert.compile(lambda x: [w * x] if x < 0 else [w * x, w * x * 2, w * x * 3])
    with pytest.raises(ArgumentError, match="of the same structure"):
        loss.map([1.0, -1.0, 2.0])
    assert loss.map([1.0, 2.0]).tolist() == [[1.0, 2.0, 3.0], [2.0, 4.0, 6.0]]
    mixed = wengert.compile(lambda x: w * x if x < 0 else [w * x])
    assert mixed.map([-1.0]).tolist() == [-1.0]
    assert mixed(-2.0).data == -2.0
    assert [v.data for v in mixed(2.0)] == [2.0]


root = wengert.op("root_of_soundness", value=lambda x: math.sqrt(x), partials=lambda out, x: 0.5 / out)


def test_an_operation_of_the_users_own_outside_its_domain() -> None:
    """Each path's program also meets the examples of the others."""
    w = Value(1.0)
    loss = wengert.compile(lambda x: root(w * x) if x > 0 else -w * x)
    for X in ([4.0, 9.0, -1.0], [-1.0, 4.0]):
        same(loss.mean(X), wengert.mean([loss.function(x) for x in X]), [w])
        assert loss.map(X).tolist() == [loss.function(x).data for x in X]
    for x in (4.0, -1.0, 9.0):
        same(loss(x), loss.function(x), [w])
    bare = wengert.compile(lambda x: root(w * x))
    assert bare(4.0).data == 2.0
    for call in (lambda: bare(-1.0), lambda: bare.mean([4.0, -1.0])):
        with pytest.raises(ValueError, match=r"math domain|nonnegative"):
            call()


# ------------------------------------------------------------------------------------- what is kept and said


def test_calls_that_are_not_finite_are_counted() -> None:
    w = Value(2.0)
    loss = wengert.compile(lambda x: (w * x).sqrt())
    for _ in range(3):
        loss.mean([0.0, 1.0])
    assert "3 calls fell back to the function: numbers were not finite" in loss.report()
    loss(4.0)  # the function itself
    loss(nan)
    loss(9.0)
    assert "1 call fell back to the function: numbers were not finite" in loss.report()


@pytest.mark.parametrize("power", [2, 3, 4, 3.0])
def test_small_powers_of_zero_are_no_reason_to_leave(power: float) -> None:
    w = Value(2.0)
    loss = wengert.compile(lambda x: (w * x) ** power)
    X = [0.0, 1.0, -2.0]
    same(loss.mean(X), wengert.mean([loss.function(x) for x in X]), [w])
    for x in (0.0, -0.0, inf):
        same(loss(x), loss.function(x), [w])
    assert loss.report().count("not finite") == 1  # at infinity


def test_guards_do_not_keep_the_graph() -> None:
    w = Value(1.0)

    @wengert.compile
    def loss(xs: list[float]) -> Any:
        made = w * 0.0
        for x in xs:
            made = made + w * x
        return made if made > 0 else -made

    loss.mean(np.ones((2, 100)))
    path = loss._server.latest()
    assert len(path.guards.lines) == 1
    pickle.dumps(path.guards)  # of which a Value that was computed is no part
    assert len(Graph(*path.parameters)) == 1


def test_max_is_what_it_was_before() -> None:
    """Somebody else may have put his own in place of Python's."""
    before = builtins.max

    def own(*xs: Any, **options: Any) -> Any:
        return before(*xs, **options)

    builtins.max = own  # type: ignore[assignment]
    try:
        wengert.compile(lambda x: Value(2.0) * x)(1.0)
        assert builtins.max is own
    finally:
        builtins.max = before


def test_functions_that_call_each_other_are_first_called_in_two_threads() -> None:
    import threading

    w = Value(2.0)
    first: Any = wengert.compile(lambda x, n: w * x if n < 1 else second(x, n - 1) + 1.0)
    second: Any = wengert.compile(lambda x, n: w + x if n < 1 else first(x, n - 1) * 2.0)
    found: dict[str, list[float]] = {}
    begin = threading.Barrier(2)

    def work(name: str, function: Any) -> None:
        begin.wait()
        found[name] = [function(1.0 + k, 3).data for k in range(20)]

    threads = [threading.Thread(target=work, args=pair, daemon=True) for pair in (("a", first), ("b", second))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30.0)
    assert not any(thread.is_alive() for thread in threads)
    assert found == {
        name: [f.function(1.0 + k, 3).data for k in range(20)] for name, f in (("a", first), ("b", second))
    }


def test_what_python_calls_when_it_collects_garbage_is_none_of_the_functions() -> None:
    import time

    def note(phase: str, info: Any) -> None:
        time.perf_counter()

    w = Value(2.0)

    def loss(x: float) -> Any:
        for _ in range(3):
            [[] for _ in range(2000)]  # so that it is time to
        return w * x

    gc.callbacks.append(note)
    try:
        compiled = wengert.compile(loss)
        assert [compiled(x).data for x in (1.0, 2.0, 3.0)] == [2.0, 4.0, 6.0]
    finally:
        gc.callbacks.remove(note)
    lifted(compiled)


def test_a_value_among_the_arguments_that_is_a_key_is_told_by_the_engine() -> None:
    weights = {W: 3.0}
    compiled = wengert.compile(lambda v: v * weights.get(v, 1.0))
    with pytest.warns(UserWarning, match="asks which Value an argument is"):
        assert [compiled(v).data for v in (W, Value(2.0), W)] == [6.0, 2.0, 6.0]


class Finalized:
    """An object in a cycle, which only the garbage collector ends."""

    def __init__(self) -> None:
        self.itself = self

    def __del__(self) -> None:
        finalize()


def finalize() -> int:
    return 1


def test_finalizers_of_others_are_no_steps_of_the_function() -> None:
    def listed(x: Any) -> list[Any]:
        return [[x] for _ in range(20)][-1]

    def function(x: Any) -> Any:
        return sum(w * listed(x)[0] * k for k in range(40))

    w, threshold = Value(0.5), gc.get_threshold()
    try:
        for allocations in range(100, 1_500, 37):  # in the watched run, in the traced one, before and after
            compiled = wengert.compile(function)
            gc.collect(1)  # the young, so that the next are counted from 0
            cycles = [Finalized() for _ in range(5)]
            del cycles
            gc.set_threshold(allocations)
            assert [compiled(x).data for x in (1.0, 2.0)] == [390.0, 780.0]
            gc.set_threshold(*threshold)
            assert "uncompiled" not in compiled.report()
    finally:
        gc.set_threshold(*threshold)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no os.fork")
@pytest.mark.filterwarnings(r"ignore:os\.fork\(\) was called", "ignore:.*is multi-threaded")  # JAX, Python 3.12
def test_the_collector_rests_until_the_last_recording_ends_and_works_in_a_child() -> None:
    w, inside, ends = Value(2.0), threading.Event(), threading.Event()
    before, at_its_end = gc.get_threshold(), list[int]()

    def slow() -> Any:
        inside.set()
        ends.wait(20.0)
        at_its_end.append(gc.get_threshold()[0])
        return w * 1.0

    other = threading.Thread(target=lambda: PurityCheck(slow, []).run(slow))
    other.start()
    inside.wait(20.0)
    assert gc.get_threshold()[0] == 0
    assert wengert.compile(lambda x: w * x)(3.0).data == 6.0  # another recording begins and ends
    child = os.fork()
    if not child:
        os._exit(0 if gc.get_threshold() == before and gc.isenabled() else 1)
    ends.set()
    other.join()
    assert at_its_end == [0]
    assert gc.get_threshold() == before
    assert gc.isenabled()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
