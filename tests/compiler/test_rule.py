"""What runs when a compiled function is called: the rule of counts, clause by clause, and the same bits each time."""

from __future__ import annotations

import os
import random
import secrets
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import wengert
from tests.compiler.checks import batch_of, same, warned
from wengert import Value
from wengert.compiler import policy
from wengert.compiler.backends import BACKENDS
from wengert.compiler.checks import Checks
from wengert.errors import ArgumentError

np = pytest.importorskip("numpy")
pytest.importorskip("llvmlite")
randomness = pytest.importorskip("wengert.compiler.reach.randomness")

pytestmark = pytest.mark.once  # what runs is decided in Python

W, B = Value(0.7), Value(-0.2)


@pytest.fixture
def programs_serve() -> None:
    """Here the counts decide."""


def line(x: Any, y: Any) -> Any:
    return wengert.tanh(W * x + B - y) ** 2


def stairs(x: Any) -> Any:
    """A function of ten branches, by its argument."""
    total = W * x
    for k in range(10):
        if x > k:
            total = total * B + k
    return total


def entry_of(compiled: Any) -> Any:
    (entry,) = compiled._server.entries.values()
    return entry


def kinds(compiled: Any) -> list[str]:
    """What the specializations run by."""
    return ["machine code" if made.forward_backward_code else "numpy" for made in entry_of(compiled).specializations]


class Counted:
    """A function that counts its calls."""

    def __init__(self, function: Any) -> None:
        self.function, self.calls = function, 0

    def of(self, compiled: Any) -> Any:
        """The same compiled function, whose own runs are counted."""

        def counted(*args: Any, **named: Any) -> Any:
            self.calls += 1
            return self.function(*args, **named)

        compiled.function = compiled._server.function = counted
        compiled._server.specializer.definition = compiled._server.specializer.defined()
        return compiled


# ------------------------------------------------------------------------------------- calls, one after another


def test_the_first_call_records_and_the_second_is_machine_code() -> None:
    compiled = wengert.compile(line)
    first = compiled(0.5, 0.3)
    assert first.data == line(0.5, 0.3).data  # the function's own bits
    assert kinds(compiled) == []
    assert "the next call compiles it" in compiled.report()
    same(compiled(0.5, 0.3), line(0.5, 0.3), [W, B])
    assert kinds(compiled) == ["machine code"]
    assert "steps, compiled at once" in compiled.report()


def test_calls_are_compared_and_give_the_programs_value() -> None:
    """The first four of a specialization, then each whose number is a power of two: the bits do not tell which."""
    compiled, counted = wengert.compile(line), Counted(line)
    compiled(0.5, 0.3)
    counted.of(compiled)
    bits, ran = set(), []
    for number in range(2, 70):
        before = counted.calls
        bits.add(compiled(0.5, 0.3).data)
        if counted.calls > before:
            ran.append(number)
    assert ran == [2, 3, 4, 5, 8, 16, 32, 64]
    assert len(bits) == 1
    assert "69 calls, 8 of them checked" in compiled.report()


DRAWS: dict[str, Callable[[], Any]] = {
    "nothing": lambda: None,
    "of another generator": lambda: random.Random(1).random(),
    "a number": random.random,
    "the number that gauss kept": lambda: random.gauss(0.0, 1.0),
    "as many as the generator holds": lambda: random.getrandbits(32 * 624),
    "a seed": lambda: random.seed(2),
    "by NumPy": np.random.random,
    "NumPy's seed": lambda: np.random.seed(2),
}


@pytest.mark.parametrize("is_found", [True, False])
@pytest.mark.parametrize("name", DRAWS)
def test_whatever_is_drawn_changes_the_state(name: str, is_found: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not is_found:
        monkeypatch.setattr(randomness, "OWN", None)  # as where Python's numbers are not where they are expected
    random.seed(1)
    np.random.seed(1)
    random.gauss(0.0, 1.0)  # keeps another one
    before, known = randomness.random_state(), (random.getstate(), repr(np.random.get_state()))
    DRAWS[name]()
    same = known == (random.getstate(), repr(np.random.get_state()))
    assert (before == randomness.random_state()) == same == (name in ("nothing", "of another generator"))


def test_numbers_of_the_operating_system_are_drawn_too() -> None:
    compiled = wengert.compile(lambda x: x * secrets.randbelow(97))
    (said,) = warned(lambda: compiled(W), lambda: compiled(W))
    assert "runs uncompiled: it draws random numbers" in said


def test_checks_may_end_with_the_first() -> None:
    compiled, counted = wengert.compile(line, checks="first"), Counted(line)
    compiled(0.5, 0.3)
    counted.of(compiled)
    for _ in range(40):
        compiled(0.5, 0.3)
    assert counted.calls == 4
    with pytest.raises(ArgumentError, match="checks is 'none'; expected 'powers' or 'first'"):
        wengert.compile(line, checks="none")


def test_a_batch_is_compiled_when_a_row_is_left() -> None:
    compiled = wengert.compile(line)
    assert compiled.map([0.5], [0.3]).tolist() == [line(0.5, 0.3).data]
    assert kinds(compiled) == []
    same(compiled.mean([0.5, 0.1], [0.3, 2.0]), batch_of(line, [0.5, 0.1], [0.3, 2.0]), [W, B])
    assert kinds(compiled) == ["machine code"]
    at_once = wengert.compile(line)
    same(at_once.mean([0.5, 0.1], [0.3, 2.0]), batch_of(line, [0.5, 0.1], [0.3, 2.0]), [W, B])
    assert kinds(at_once) == ["machine code"]


def test_a_program_of_many_steps_waits_until_it_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy, "FREE", policy.records(20) + policy.compiles(3))
    compiled, counted = wengert.compile(line), Counted(line)
    compiled(0.5, 0.3)
    counted.of(compiled)
    compiled(0.5, 0.3)
    entry = entry_of(compiled)
    candidate = entry.candidate
    spent = policy.records(candidate.recorded)
    until = -(-policy.pays_from(policy.compiles(candidate.steps), spent) // entry.work)
    assert 100 < until < 10_000
    assert f"the function itself runs until {until:,} examples have run (2 so far)" in compiled.report()
    for _ in range(3, until):
        compiled(0.5, 0.3)
    assert kinds(compiled) == []
    assert counted.calls == until - 2
    same(compiled(0.5, 0.3), line(0.5, 0.3), [W, B])
    assert kinds(compiled) == ["machine code"]
    assert f"compiled after {until:,} examples of {candidate.nodes} operations" in compiled.report()


def test_a_large_program_is_lifted_once_some_examples_have_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy, "LARGE", 3)
    compiled = wengert.compile(line)
    for number in range(1, policy.EXAMPLES):
        compiled(0.5, 0.3)
        assert not entry_of(compiled).candidate.is_lifted
        assert f"until 32 examples have run ({number} so far)" in compiled.report()
    compiled(0.5, 0.3)
    assert kinds(compiled) == ["machine code"]
    batch = wengert.compile(line)
    batch.mean([0.5] * 31, [0.3] * 31)
    assert kinds(batch) == []
    batch.mean([0.5], [0.3])
    assert kinds(batch) == ["machine code"]


def few_specializations(monkeypatch: pytest.MonkeyPatch) -> int:
    """How many small specializations are made at once."""
    monkeypatch.setattr(policy, "FREE", 4 * (policy.records(20) + policy.compiles(20)))
    return 6


def test_a_further_specialization_waits_until_it_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    at_once = few_specializations(monkeypatch)
    compiled = wengert.compile(stairs)
    for _ in range(3):
        for k in range(10):
            same(compiled(k + 0.5), stairs(k + 0.5), [W, B])
    assert 2 <= len(kinds(compiled)) <= at_once
    assert "preparing it further costs more than it saves by now" in compiled.report()
    budget = compiled._server.cache.budget
    while len(kinds(compiled)) < 10:
        for k in range(10):
            same(compiled(k + 0.5), stairs(k + 0.5), [W, B])
        assert entry_of(compiled).calls < 100_000
        assert budget.used <= policy.FREE + budget.ran(entry_of(compiled)) // 2


def test_all_signatures_have_one_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    at_once = few_specializations(monkeypatch)
    compiled = wengert.compile(lambda xs: W * wengert.sum(xs))
    for count in range(1, 30):
        for _ in range(3):
            given = [0.5] * count
            same(compiled(given), W * wengert.sum(given), [W])
    entries = compiled._server.entries.values()
    assert 2 <= sum(len(entry.specializations) for entry in entries) <= at_once
    for count in (29, 1):
        for _ in range(30_000):
            compiled([0.5] * count)
    assert len(next(iter(reversed(entries))).specializations) == 1  # the last of them, which had waited


def loop(x: Any, steps: int) -> Any:
    """As many operations as three times the steps, on Values or floats."""
    for k in range(steps):
        x = x * 0.9 + (0.1 if k % 3 else x) * 0.1
    return x


@pytest.mark.parametrize("x", [0.3, Value(0.3)], ids=["floats", "Values"])
def test_a_recording_that_costs_too_much_is_broken_off_or_waits(x: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy, "FREE", policy.records(1000) + policy.compiles(300))
    compiled = wengert.compile(loop, static=["steps"])
    steps, server = 30_000, compiled._server
    before = None
    for number in range(1, 3000):
        got, want = compiled(x, steps), loop(x, steps) if before is None else before
        before = want
        assert getattr(got, "data", got) == pytest.approx(getattr(want, "data", want), rel=1e-9)
        (entry,) = server.entries.values()
        assert server.cache.budget.used <= policy.FREE + server.cache.budget.ran(entry) // 2
        if number == 1:
            assert entry.candidate is None
            assert "preparing it further costs more than it saves by now" in compiled.report()
        if entry.specializations:
            break
    assert entry.specializations


def test_prepare_has_no_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy, "FREE", 0)
    compiled = wengert.compile(loop, static=["steps"])
    compiled.prepare(0.3, 3000)
    assert kinds(compiled) == ["machine code"]


@pytest.mark.parametrize("how", ["mean", "sum", "map"])
def test_rows_without_a_specialization_are_the_functions(how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The others of the batch run as machine code all the same."""
    at_once = few_specializations(monkeypatch)
    X = [k + 0.25 for k in range(10)] * 2
    compiled, counted = wengert.compile(stairs), Counted(stairs)
    getattr(compiled, how)(X)
    counted.of(compiled)
    results = [stairs(x) for x in X]
    for _ in range(12):
        got = getattr(compiled, how)(X)
        if how == "map":
            assert got == pytest.approx([r.data for r in results], rel=1e-13)
        else:
            same(got, getattr(wengert, how)(results), [W, B])
    assert 2 <= len(kinds(compiled)) <= at_once
    assert counted.calls < 12 * 20
    with wengert.no_grad():
        assert compiled.mean(X).data == pytest.approx(wengert.mean(results).data, rel=1e-13)


# ------------------------------------------------------------------------------------- what serves


def test_numpy_serves_only_without_machine_code_and_where_it_saves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BACKENDS, "native", BACKENDS["native"]._replace(library="no_such_library"))
    compiled, counted = wengert.compile(line), Counted(line)
    compiled(0.5, 0.3)
    counted.of(compiled)
    for _ in range(20):
        compiled(0.5, 0.3)
    assert counted.calls == 20
    assert "the function itself runs: NumPy runs calls on" in compiled.report()
    batch = wengert.compile(line)
    batch.mean([0.5] * 64, [0.3] * 64)
    least = entry_of(batch).min_examples
    assert 1 < least < 64
    assert kinds(batch) == ["numpy"]
    counted = Counted(line)
    counted.of(batch)
    batch.mean([0.5] * (least - 1), [0.3] * (least - 1))
    assert counted.calls == least - 1
    same(batch.mean([0.5] * least, [0.3] * least), line(0.5, 0.3), [W, B])
    assert counted.calls <= least - 1 + policy.CHECKED_CALLS


def test_large_products_go_to_blas(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [[Value(0.01 * (n - k)) for k in range(8)] for n in range(4)]
    monkeypatch.setattr(policy, "MATRIX", 32)
    monkeypatch.setattr(policy, "PRODUCTS", 32 * 10)

    def layer(x: Any) -> Any:
        return sum(wengert.tanh(wengert.dot(row, x)) for row in rows)

    compiled = wengert.compile(layer)
    X = np.linspace(-1.0, 1.0, 88).reshape(11, 8)
    for _ in range(3):
        compiled.mean(X)
    (made,) = entry_of(compiled).specializations
    assert made.forward_backward_code
    assert made.limit == 10
    assert "NumPy runs calls on 10 examples or more, with BLAS on" in compiled.report()
    counts: list[int] = []
    both = made.kernel.forward_backward
    made.kernel.forward_backward = lambda arrays, *rest: (counts.append(len(arrays[0])), both(arrays, *rest))[1]
    for count in (9, 10, 11):
        same(compiled.mean(X[:count]), batch_of(layer, X[:count].tolist()), rows[0])
    assert counts == [10, 11]


def test_a_named_back_end_serves_whatever_the_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy, "FREE", 0)
    for backend, kind in (("numpy", "numpy"), ("native", "machine code")):
        compiled = wengert.compile(line, backend=backend)
        for _ in range(2):
            compiled(0.5, 0.3)
        assert kinds(compiled) == [kind]
        assert f"{backend} is named as the back end" in compiled.report()


# ------------------------------------------------------------------------------------- ahead of time


def test_prepare_has_all_done_before_the_first_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy, "FREE", 0)
    W.grad = 0.0
    compiled = wengert.compile(line)
    compiled.prepare(0.5, y=0.3)
    assert kinds(compiled) == ["machine code"]
    assert W.grad == 0.0
    assert ": 0 calls, 1 of them checked" in compiled.report()
    counted = Counted(line)
    counted.of(compiled)
    same(compiled(0.25, y=0.5), line(0.25, 0.5), [W, B])
    assert counted.calls == 1  # the first call's number is a power of two


def test_prepare_compares_with_the_run_that_was_watched(monkeypatch: pytest.MonkeyPatch) -> None:
    compared: list[Any] = []
    single = Checks.single

    def noted(self: Any, entry: Any, served_by: Any, own: Any, result: Any) -> Any:
        compared.extend([own.of(0), own.of(0)])  # does not run the function
        return single(self, entry, served_by, own, result)

    monkeypatch.setattr(Checks, "single", noted)
    compiled = wengert.compile(line)
    compiled.prepare(0.5, y=0.3)
    assert compared[0] is compared[1]
    same(compared[0], line(0.5, 0.3), [W, B])
    assert ": 0 calls, 1 of them checked" in compiled.report()


def test_prepare_uses_copies_and_says_what_cannot_be_compiled() -> None:
    xs = [1.0, 2.0]

    def changes(xs: Any) -> Any:
        xs[0] += 1.0
        return W * xs[0]

    assert "runs uncompiled: it changes xs" in warned(lambda: wengert.compile(changes).prepare(xs))[0]
    assert xs == [1.0, 2.0]


def test_prepare_of_a_method() -> None:
    class Model:
        """A rate."""

        def __init__(self) -> None:
            self.w = Value(2.0)

        @wengert.compile
        def loss(self, x: float) -> Any:
            return (self.w * x - 1.0) ** 2

    model = Model()
    model.loss.prepare(0.5)
    assert "machine code runs" in Model.loss.report()  # type: ignore[attr-defined]
    assert model.loss(1.0).data == 1.0


def test_wait_names_what_replaced_it() -> None:
    for wait in (True, False):
        with pytest.raises(ArgumentError, match=r"wait is no longer supported: .* prepare\(\*args\)"):
            wengert.compile(line, wait=wait)


# ------------------------------------------------------------------------------------- the same bits


def test_a_row_does_not_depend_on_its_batch() -> None:
    """Its result is the same to the bit at each place in a batch of any size."""
    model = wengert.nn.MLP(3, [7, 2])

    def network(x: Any) -> Any:
        return wengert.losses.cross_entropy(model(x), 1) + wengert.exp(x[0]) * wengert.sin(x[1])

    def branch(x: Any) -> Any:
        return (W * x[0]).tanh() if x[1] > 0.0 else (B * x[0]).exp().log() * x[2]

    X = np.random.default_rng(0).normal(size=(70, 3))
    for function in (network, branch):
        compiled = wengert.compile(function)
        for _ in range(3):
            whole = compiled.map(X)
        for count in range(1, 71):
            assert compiled.map(X[:count]).tobytes() == whole[:count].tobytes()
            assert compiled.map(X[70 - count :]).tobytes() == whole[70 - count :].tobytes()


SCRIPT = Path(__file__).parents[2] / "tools" / "qa" / "same_bits.py"


def bits(*how: str, **environment: str) -> list[str]:
    """What the script of calls comes to, in a process of its own: the bits, and the reports."""
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "once", *how],
        capture_output=True, text=True, timeout=300, check=False, env={**os.environ, **environment},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.mark.slow
def test_no_clock_and_no_thread_decides(tmp_path: Path) -> None:
    """Clocks that tell random times and threads that do not start change no bit, and no word of a report."""
    want = bits(WENGERT_CACHE=str(tmp_path))
    assert bits("without-clocks", WENGERT_CACHE="off") == want
    pinned = bits("native", WENGERT_CACHE=str(tmp_path))
    assert pinned[0] == want[0]


def test_what_fits_is_decided_once_by_the_work_to_come() -> None:
    """By the same rule: a program of many steps waits for its count, which is that of all epochs."""
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        warnings.simplefilter("error")
        patch.setattr(policy, "FREE", policy.compiles(0))
        X, Y = [[0.1 * n, 0.2] for n in range(10)], [0.5] * 10
        backends = []
        for epochs in (2, 2000):
            model = wengert.nn.MLP(2, [3, 1])
            optimizer = wengert.optim.SGD(model, 1e-3)
            stop = lambda history: True  # noqa: E731  (after one epoch)
            done = wengert.fit(model, wengert.losses.mse, X, Y, optimizer, epochs, progress=False, callback=stop)
            backends.append(done.backend)
            assert done.fallback == ""
        assert backends == ["eager", "native"]


# ------------------------------------------------------------------------------------- between recording and compiling


def test_what_is_captured_changes_between_recording_and_compiling() -> None:
    """It is read anew, or recorded anew: what counts is what was there when the function was recorded."""
    scale, values = np.array([1.0, 2.0]), [Value(1.0), Value(2.0)]
    compiled = wengert.compile(lambda x: W * x[0] * scale[0] + x[1] * scale[1], checks="first")
    compiled([1.0, 1.0])
    scale[0] = 5.0
    for _ in range(6):  # which do not show it
        compiled([0.0, 1.0])
    same(compiled([1.0, 1.0]), compiled.function([1.0, 1.0]), [W])
    summed = wengert.compile(lambda x: sum((v * x for v in values), W * 0.0), checks="first")
    summed(0.0)
    values.append(Value(3.0))
    for _ in range(6):
        summed(0.0)
    same(summed(1.0), summed.function(1.0), [W, *values])
    assert "dropped" not in compiled.report() + summed.report()


def test_narrow_numbers_are_given_as_they_are_while_a_program_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy, "FREE", 0)
    compiled = wengert.compile(lambda x: W * x[0] + W * x[1])
    for x in (np.array([0.1, 0.3], np.float32), np.array([50_000, 7], np.int32)):
        want = compiled.function(x).data
        assert {compiled(x).data for _ in range(5)} == {want}
    products = wengert.compile(lambda x: W * (x[0] * x[1]))  # rounded as NumPy rounds it
    x = np.array([0.1, 0.3], np.float32)
    assert len(warned(lambda: [same(products(x), products.function(x), [W]) for _ in range(5)])) <= 1


def test_what_runs_uncompiled_keeps_no_other_arguments_from_it() -> None:
    import random

    def function(x: Any) -> Any:
        return W * x[0] * (random.random() if len(x) == 2 else 1.0)

    for make in (np.ones, lambda n: [1.0] * n):
        compiled = wengert.compile(function)
        assert "draws random numbers" in warned(*[lambda: compiled(make(2))] * 3)[0]  # noqa: B023
        for _ in range(3):
            compiled(make(5))
        assert [bool(entry.specializations) for entry in compiled._server.entries.values()] == [False, True]


def test_a_batch_that_cannot_be_computed_is_recorded_once() -> None:
    import math

    root = wengert.op("root_of_the_rule", value=math.sqrt, partials=lambda out, x: 0.5 / out)
    compiled = wengert.compile(lambda x: root(x * W) if x > 0 else W * x, backend="numpy")
    for X in ([1.0, 2.0], [-1.0, 2.0, -3.0]):
        for _ in range(6):
            assert compiled.map(X) == pytest.approx([compiled.function(x).data for x in X])
    assert len(kinds(compiled)) <= 2


def test_prepare_knows_what_is_passed_twice() -> None:
    compiled = wengert.compile(lambda a, b: W * a[0] * b[1] if a is b else W * a[0])
    xs = [1.0, 2.0]
    compiled.prepare(xs, xs)
    compiled(xs, xs)
    assert kinds(compiled) == ["machine code"]


def test_fit_does_not_prepare_what_the_counts_leave_to_the_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    from wengert.compiler.record.recording import Candidate

    lifted: list[int] = []
    lift = Candidate.lift
    monkeypatch.setattr(Candidate, "lift", lambda self: (lifted.append(1), lift(self))[1])
    monkeypatch.setattr(policy, "LARGE", 3)
    model = wengert.nn.MLP(1, [1])
    optimizer = wengert.optim.SGD(model, 0.1)
    history = wengert.fit(model, wengert.losses.mse, [[0.0], [1.0]], [0.0, 1.0], optimizer, 2, progress=False)
    assert history.backend == "eager"
    assert not lifted


def test_a_run_that_is_not_recorded_says_why() -> None:
    cache: dict[str, float] = {}

    def filled(x: Any) -> Any:
        return cache.setdefault("rate", 2.0) * x

    function = wengert.compile(filled)
    function(1.0)
    assert "the function itself runs: it changes cache; the next call is observed again" in function.report()
    with pytest.raises(ArgumentError, match="nothing has been compiled yet: it changes cache; the next call is"):
        function.source()
    function(1.0)
    assert "observed again" not in function.report()
    assert "p1 * x" in function.source()


def test_a_batch_whose_first_row_imports_modules() -> None:
    """That row is not recorded, but the next one is, and both are compared: in a process that has imported nothing."""
    program = (
        "import wengert; u = wengert.Value(0.7)\n"
        "f = wengert.compile(wengert.grad(lambda x, y: wengert.where(y > 0.0, u * x * x, x * 2.0)))\n"
        "print(f.map([0.1, 0.2, 0.3], [-1.0, -1.0, -2.0]).tolist())"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[2.0, 2.0, 2.0]\n", "")
