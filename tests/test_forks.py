"""A forked child has the thread that forked, and no other: what others were in the midst of must not hold it up.

The children run from a program of their own, without pytest's threads and its warnings. In it a thread is stopped
inside of what it does, the main thread forks, and each child does all that the package does.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import wengert

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system has no fork")

CHILDREN = 4
SECONDS = 60  # in which a child that does not hang has long ended, on a busy machine too

PROGRAM = '''
import builtins, os, random, signal, sys, tempfile, threading, warnings
import wengert
from wengert import Graph, Value, checkpoint, engine, handmade, modes, nn
from wengert.compiler.traced.recorder import recorder_of_thread

warnings.simplefilter("ignore")
names = {**vars(builtins)}  # of which a recording may replace some
inside, gate = threading.Event(), threading.Event()
folder = tempfile.mkdtemp()

def stop():
    """Where the thread is stopped; the main thread, in a child, goes on."""
    if threading.current_thread() is not threading.main_thread():
        inside.set()
        gate.wait()

@wengert.compile
def compiled(x):
    stop()
    return weight * x * x

weight = Value(3.0)

def a_compiled_call():
    y = compiled(2.0)
    y.backward()
    assert y.data == 12.0
    assert [compiled(x).data for x in (1.0, 2.0, 3.0)] == [3.0, 12.0, 27.0]

def a_recording():
    @wengert.compile
    def other(x):
        stop()
        return x.exp() if x > 0.0 else x * weight
    assert other(Value(-2.0)).data == -6.0
    assert list(other.map([-1.0, -2.0])) == [-3.0, -6.0]

def a_graph():
    x = Value(3.0)
    with engine.walking:  # as a Graph does, which nothing can stop inside
        engine.pin(1)
        stop()
        engine.pin(-1)
    assert len(Graph(x * x + x)) == 3

def a_backward():
    x = Value(3.0)
    y = x * x
    y.backward()
    assert x.grad == 6.0

def a_closure():
    x = Value(3.0)
    out = Value(9.0, (x,), "square")
    def _backward():
        stop()
        x.grad += 6.0 * out.grad
    out._backward = _backward
    (out * 2.0).backward()
    assert x.grad == 12.0

def a_block():
    with wengert.no_grad():
        stop()
        assert (weight * 2.0)._prev == ()
    assert (weight * 2.0)._prev != ()

class Stopping(random.Random):
    def getstate(self):
        stop()
        return super().getstate()

def a_save():
    model, path = nn.MLP(2, [2, 1]), os.path.join(folder, "model.safetensors")
    checkpoint.save(model, path, rng=Stopping(1))
    checkpoint.load(model, path, rng=random.Random(2))

WORKS = [a_compiled_call, a_recording, a_graph, a_backward, a_closure, a_block, a_save]

def child():
    """All of it, in a child; what fails is its exit status."""
    signal.alarm(SECONDS)
    for number, work in enumerate(WORKS, 1):
        try:
            work()
        except BaseException as error:
            print(work.__name__, repr(error), file=sys.stderr, flush=True)
            os._exit(number)
    os._exit(0 if modes._hooked == 0 and recorder_of_thread() is None and vars(builtins) == names else 100)
'''

INSIDE = """
threading.Thread(target=WORK, daemon=True).start()
assert inside.wait(SECONDS)
for _ in range(CHILDREN):
    pid = os.fork() or child()
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
gate.set()
"""

AT_ANY_MOMENT = """
stop = lambda: None
def forever():
    while not gate.is_set():
        WORK()
for work in WORKS:  # and so all is imported: what another thread is importing, a child of any program waits for
    work()
sys.setswitchinterval(1e-6)
for _ in range(2):
    threading.Thread(target=forever, daemon=True).start()
for _ in range(CHILDREN):
    pid = os.fork() or child()
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
gate.set()
"""

ITSELF = """
def stop():
    global stop
    stop = lambda: None
    pid = os.fork()
    if pid == 0:
        signal.alarm(SECONDS)
        children.append(pid)
    else:
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
children = []
WORK()
if children:
    child()
"""

FIRST = """
import math, os, signal, threading
import wengert

def first():
    w = wengert.Value(3.0)
    compiled = wengert.compile(lambda x: (w * x).tanh() + x * x)
    got = [compiled(2.0).data for _ in range(3)][-1]
    return compiled._server.latest().forward_backward_code and abs(got - math.tanh(6.0) - 4.0) < 1e-12

thread, children = threading.Thread(target=first), []
thread.start()
while thread.is_alive() and len(children) < 3 * CHILDREN:
    thread.join(0.01)
    pid = os.fork()
    if not pid:
        signal.alarm(SECONDS)
        os._exit(0 if first() else 1)
    children.append(pid)
print(*[os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children])
"""

WORKS = ["a_compiled_call", "a_recording", "a_graph", "a_closure", "a_block", "a_save"]  # in which a thread can stop


def statuses(ending: str, work: str = "", program: str = PROGRAM) -> list[int]:
    """What the children of a program came to: 0, the number of what failed, or minus the signal that ended it."""
    program = re.sub(r"\bWORK\b", work, program + ending)
    program = program.replace("CHILDREN", str(CHILDREN)).replace("SECONDS", str(SECONDS))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return [int(line) for line in done.stdout.split()]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("work", WORKS)
def test_a_child_works_though_a_thread_was_inside(work: str) -> None:
    assert statuses(INSIDE, work) == [0] * CHILDREN


@pytest.mark.slow
@pytest.mark.sampled(4)
@pytest.mark.parametrize("work", [*WORKS, "a_backward"])
def test_a_child_works_whatever_threads_were_doing(work: str) -> None:
    assert statuses(AT_ANY_MOMENT, work) == [0] * CHILDREN


@pytest.mark.once  # what is imported late is the compiler
def test_a_child_makes_machine_code_whenever_it_is_forked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also in the midst of another thread's first compilation, which imports libraries and has LLVM at work."""
    pytest.importorskip("llvmlite")
    monkeypatch.setenv("WENGERT_CACHE", "off")
    found = statuses(FIRST, program="")
    assert found == [0] * len(found)
    assert found


@pytest.mark.sampled(3)
@pytest.mark.parametrize("work", WORKS)
def test_a_child_goes_on_with_what_it_was_itself_inside_of(work: str) -> None:
    """What the thread that forks holds is held in the child, and given back there."""
    assert statuses(ITSELF, work) == [0]


def test_no_property_takes_a_lock_that_no_child_can_renew() -> None:
    """As functools.cached_property does in Python 3.11: one lock for all objects, held while a value is computed."""
    files = [*Path(wengert.__file__).parent.rglob("*.py")]
    assert [path.name for path in files if "cached_property" in path.read_text(encoding="utf-8")] == []


def test_what_a_child_does_first_keeps_what_its_only_thread_holds() -> None:
    import threading

    from wengert import Graph, Value, engine, handmade, modes

    with wengert.no_grad():
        for renew in (handmade._in_child, modes._in_child):
            renew()
        assert (Value(2.0) * 3.0)._prev == ()
    assert (Value(2.0) * 3.0)._prev != ()
    held, done, lock = threading.Event(), threading.Event(), engine.walking

    def hold() -> None:
        with lock:
            held.set()
            done.wait(30.0)

    thread = threading.Thread(target=hold)
    thread.start()
    try:
        assert held.wait(30.0)
        handmade._in_child()
        assert engine.walking is not lock
        assert len(Graph(Value(2.0) * 3.0)) == 2
    finally:
        engine.walking = lock
        done.set()
        thread.join()
