"""What "auto" chooses among: the engine, NumPy, and machine code that another thread makes where that pays."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import wengert
from tests.compiler.checks import batch_of, same
from wengert import Value
from wengert.compiler.backends import BACKENDS

np = pytest.importorskip("numpy")

from wengert.compiler.backends.native import kernel as native  # noqa: E402
from wengert.compiler.backends.native.background import WORKER  # noqa: E402
from wengert.compiler.entry import Entry, Size  # noqa: E402
from wengert.compiler.plan import EVERY  # noqa: E402

machine_code = pytest.mark.skipif(
    not BACKENDS["native"].is_available(), reason="machine code is made by llvmlite, which is not installed"
)
W, B = Value(0.7), Value(-0.2)


def line(x: Any, y: Any) -> Any:
    return wengert.tanh(W * x + B - y) ** 2


@pytest.fixture
def programs_serve(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs do, by whichever way is faster."""
    monkeypatch.setattr(Entry, "prefers_engine", lambda entry, size: False)
    monkeypatch.setattr(Entry, "tries_engine", lambda entry, size: False)


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """To make code is worth it from the first call on."""
    monkeypatch.setattr(native, "BEGINNING", 0.0)
    monkeypatch.setattr(native, "EACH_STEP", 0.0)


def finished() -> None:
    """The worker has nothing to do any more."""
    thread = WORKER.thread
    if thread is not None:
        thread.join(20)


def one(compiled: Any) -> None:
    same(compiled(0.5, 0.3), line(0.5, 0.3), [W, B])


def batch(compiled: Any) -> None:
    same(compiled.mean([0.5, 0.1], [0.3, 2.0]), batch_of(line, [0.5, 0.1], [0.3, 2.0]), [W, B])


def each(compiled: Any) -> None:
    got = compiled.map([0.5, 0.1], [0.3, 2.0])
    assert got == pytest.approx([line(0.5, 0.3).data, line(0.1, 2.0).data], rel=1e-13)


@machine_code
@pytest.mark.parametrize("call", [one, batch, each])
def test_machine_code_is_made_and_measured(
    at_once: None, programs_serve: None, call: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiled, asked = wengert.compile(line), []
    with monkeypatch.context() as patch:
        patch.setattr(WORKER, "submit", asked.append)  # it might be done before the calls are
        for _ in range(9):
            call(compiled)
    recording = compiled._runtime.latest()
    assert asked == [recording.kernel]
    WORKER.submit(recording.kernel)
    finished()
    assert recording.kernel.code is not None
    assert not recording.both_code  # until a call comes
    entry = compiled._runtime.last
    assert entry.compared > 4
    call(compiled)
    assert entry.compared < 3  # with the function, as if it had just been recorded
    for _ in range(9):
        call(compiled)
    assert recording.both_code
    ((native_seconds, numpy_seconds),) = entry.ways.values()
    faster = "NumPy" if numpy_seconds * 1.1 < native_seconds else "machine code"
    size = {one: "1 examples", batch: "2 examples", each: "2 examples, without derivatives,"}[call]
    assert f"{size} by {faster}, in " in compiled.report()


def test_it_is_made_once_calls_have_taken_as_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native, "BEGINNING", 5.0)
    monkeypatch.setattr(native, "EACH_STEP", 1.0)
    asked: list[Any] = []
    monkeypatch.setattr(WORKER, "submit", asked.append)
    compiled = wengert.compile(line)
    for _ in range(7):
        one(compiled)
    entry, kernel = compiled._runtime.last, compiled._runtime.latest().kernel
    steps = kernel.program.size + kernel.back.size
    entry.plain = entry.seconds[Size(1, True).key] = (4.9 + steps) / 8
    one(compiled)
    assert not asked  # 8 calls of so many seconds, which timing can only lower
    for _ in range(7):
        one(compiled)
    entry.plain = entry.seconds[Size(1, True).key] = (5.1 + steps) / 16
    monkeypatch.setattr(entry, "note", lambda count, seconds: None)
    monkeypatch.setattr(compiled._runtime, "watched", lambda entry, call, *_: (call(), None))
    one(compiled)
    assert asked == ([kernel] if BACKENDS["native"].is_available() else [])


def test_one_example_of_a_few_operations_is_not_worth_it(at_once: None) -> None:
    compiled = wengert.compile(lambda x: W * x)
    for _ in range(20):
        compiled(0.5)
    kernel = compiled._runtime.latest().kernel
    assert not kernel.asked
    compiled.map([1.0, 2.0, 3.0, 4.0])
    compiled.map([1.0, 2.0, 3.0, 4.0])
    assert compiled._runtime.latest().kernel.asked
    finished()


def test_without_llvm_numpy_goes_on(at_once: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BACKENDS, "native", BACKENDS["native"]._replace(library="no_such_library"))
    compiled = wengert.compile(line)
    for _ in range(9):
        one(compiled)
    kernel = compiled._runtime.latest().kernel
    assert kernel.code is None
    assert WORKER.thread is None
    assert kernel.refusal == 'this needs no_such_library: pip install "wengert[native]"'
    assert "being made" not in compiled.report()


@machine_code
def test_numpy_serves_where_it_takes_less_time(at_once: None) -> None:
    compiled = wengert.compile(line, wait=True)
    for _ in range(5):
        one(compiled)
        batch(compiled)
    entry = compiled._runtime.last
    (made,) = entry.specializations
    assert made.both_code
    entry.ways, entry.limit = {}, EVERY
    entry.choose(Size(64, True), 3.0, 1.0)
    assert entry.limit == 64
    entry.choose(Size(4, True), 1e-9, 1.0)
    entry.choose(Size(128, True), 3.0, 1.0)
    assert entry.limit == 64
    entry.seconds = {size: min(both) for size, both in entry.ways.items()}
    assert "64 examples by NumPy, in 1.0e+00 s for 3.0e+00 s by machine code" in "\n".join(entry.report())
    calls: list[int] = []
    both = made.kernel.both
    made.kernel.both = lambda arrays, seed: (calls.append(1), both(arrays, seed))[1]
    xs, ys = np.linspace(0.0, 2.0, 65), np.full(65, 0.3)
    for count in (63, 64, 65):
        entry.calls, entry.trusted = 1 << 20 | 1, 1 << Size(count, True).key
        got = compiled.mean(xs[:count], ys[:count])
        same(got, batch_of(line, xs[:count], ys[:count]), [W, B])
        assert len(calls) == max(0, count - 63)
    entry.choose(Size(64, True), 0.5, 1.0)  # it was disturbed the first time
    assert entry.limit == 65


@machine_code
def test_the_ways_are_timed_once_after_each_check(at_once: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the path of a call cannot read the arguments, so that all calls come this way."""
    compiled = wengert.compile(line, wait=True)
    for _ in range(5):
        batch(compiled)
    entry, timed = compiled._runtime.last, []
    monkeypatch.setattr(type(entry), "choose", lambda entry, count, native, numpy: timed.append(entry.calls))
    narrow = np.array([0.5, 0.1], np.float32), np.array([0.3, 2.0], np.float32)
    for _ in range(40):
        compiled.mean(*narrow)
    assert len(timed) <= 6


@machine_code
def test_a_named_back_end_stays(at_once: None) -> None:
    for name in ("numpy", "native"):
        compiled = wengert.compile(line, backend=name)
        for _ in range(20):
            one(compiled)
        recording = compiled._runtime.latest()
        assert bool(recording.both_code) is (name == "native")
        assert not compiled._runtime.last.ways


@machine_code
def test_waiting_for_what_may_serve() -> None:
    compiled = wengert.compile(line, wait=True)
    one(compiled)
    assert compiled._runtime.latest().both_code
    for _ in range(9):
        one(compiled)
    assert compiled._runtime.last.ways


@machine_code
def test_threads_call_while_code_is_made(at_once: None) -> None:
    compiled = wengert.compile(line)
    want, wrong = line(0.5, 0.3).data, []

    def work() -> None:
        for _ in range(300):
            if not math.isclose(compiled(0.5, 0.3).data, want, rel_tol=1e-12):
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
    finished()


PROGRAM = """
import os, signal, sys, time
import wengert
from wengert import Value
from wengert.compiler.backends.native import kernel as native
from wengert.compiler.backends.native.background import WORKER

native.BEGINNING = native.EACH_STEP = 0.0
ws = [Value(0.1 * k) for k in range(40)]

@wengert.compile
def loss(x):
    total = x
    for w in ws:
        total = wengert.tanh(total * w + x) if w.data > 1.0 else total * w - wengert.exp(-x * w)
    return total * total

first = loss(0.3).data
while WORKER.thread is None and loss._runtime.latest().kernel.code is None:
    loss(0.3)
"""


def run(program: str, tmp_path: Path, **options: Any) -> subprocess.Popen[str]:
    environment = {**os.environ, "WENGERT_CACHE": str(tmp_path / "cache")}
    return subprocess.Popen(
        [sys.executable, "-W", "error::RuntimeWarning", "-c", PROGRAM + program],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, **options,
    )  # fmt: skip


@machine_code
@pytest.mark.parametrize(
    "program",
    [
        "print('end')",
        "import atexit; atexit.register(lambda: print('end', end='' if abs(loss(0.3).data - first) < 1e-12 else '!'))",
        "print('end'); sys.exit()",
    ],
)
def test_the_interpreter_ends_while_code_is_made(tmp_path: Path, program: str) -> None:
    done = run(program, tmp_path)
    out, error = done.communicate(timeout=60)
    assert (out.strip(), error, done.returncode) == ("end", "", 0)


@machine_code
def test_an_interrupt_while_code_is_made(tmp_path: Path) -> None:
    """It ends the loop of the user's, and the process afterwards; there is one traceback."""
    program = """
try:
    print("ready", flush=True)
    while True:
        loss(0.3)
except KeyboardInterrupt:
    print("stopped")
"""
    done = run(program, tmp_path)
    assert done.stdout is not None
    assert done.stdout.readline() == "ready\n"
    done.send_signal(signal.SIGINT)
    out, error = done.communicate(timeout=60)
    assert (out, error, done.returncode) == ("stopped\n", "", 0)


@machine_code
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")
@pytest.mark.filterwarnings("ignore:.*fork")
def test_a_child_forked_while_code_is_made(tmp_path: Path) -> None:
    program = """
pids = []
for _ in range(4):
    pid = os.fork()
    if not pid:
        good = all(abs(loss(0.3).data - first) < 1e-12 for _ in range(300))
        sys.exit(0 if good else 3)
    pids.append(pid)
print([os.waitpid(pid, 0)[1] for pid in pids])
"""
    done = run(program, tmp_path)
    out, error = done.communicate(timeout=120)
    assert (out, error, done.returncode) == ("[0, 0, 0, 0]\n", "", 0)
