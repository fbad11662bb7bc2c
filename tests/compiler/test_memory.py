"""Compiled functions where memory is short: the process goes on, with the right numbers or a MemoryError."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter

import pytest

from wengert._reserve import MIB, reserve

pytest.importorskip("llvmlite")
pytest.importorskip("resource")
if not os.path.exists("/proc/self/status"):
    pytest.skip("the size of a process is read where the system has it as a file", allow_module_level=True)

pytestmark = pytest.mark.once  # what is short of memory is LLVM, whichever engine records

CHILD = """
import random, re, resource, sys, warnings
what, spare, warm = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "warm"
import numpy as np, wengert
from wengert import Value, fit
from wengert.nn import MLP
from wengert.losses import mse
from wengert.optim import SGD
warnings.simplefilter("ignore")
def size(): return int(re.search(r"VmSize:\\s+(\\d+)", open("/proc/self/status").read())[1]) << 10
w = Value(0.7)
big = {}
LINES = "".join(f"    x = (x * w + {n / 7!r}).tanh()\\n" for n in range(200))
exec(f"def f(x):\\n{LINES}    return x", {"w": w}, big)
if warm:
    g = wengert.compile(lambda x: x * w)
    for _ in range(3): g(0.5)
def calls(f, *args):
    c = wengert.compile(f)
    for _ in range(4):
        for a in args: assert abs(c(a).data - f(a).data) < 1e-12
def single(): calls(big["f"], 0.5, 0.25)
def batch():
    c = wengert.compile(big["f"]); xs = np.linspace(-1, 1, 500)
    for _ in range(4): assert abs(c.map(xs) - [big["f"](x).data for x in xs]).max() < 1e-12
def derivative():
    c = wengert.compile(wengert.grad(big["f"]))
    for _ in range(4): assert abs(c(0.5).data - wengert.grad(big["f"])(0.5).data) < 1e-12
def fitting():
    m = MLP(2, [8, 8, 1], rng=random.Random(0)); X = [[i / 50, i % 7 / 7] for i in range(50)]; Y = [a + b for a, b in X]
    h = fit(m, mse, X, Y, SGD(m, 0.05), epochs=3, batch_size=10, seed=0, progress=False)
    assert h.losses[-1] < h.losses[0] if hasattr(h, "losses") else True
def many():
    for n in range(30):
        s = {}
        lines = "".join(f"    x = (x * w + {n + k / 7!r}).tanh()\\n" for k in range(20))
        exec(f"def f(x):\\n{lines}    return x", {"w": w}, s)
        calls(s["f"], 0.5)
room = [bytes(400) for _ in range(20_000)]
del room[::2], room[1::2]  # Python's own small objects have room (of each MiB some stay): it is LLVM that has none
limit = size() + spare
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
try: globals()[what]()
except MemoryError: print("MemoryError")
else: print("right")
"""


def run(what: str, spare: int, warm: str) -> str:
    """What a process says that has `spare` KiB more than it has used when it begins to compile."""
    command = [sys.executable, "-c", CHILD, what, str(spare << 10), warm]
    off = {**os.environ, "WENGERT_CACHE": "off"}
    done = subprocess.run(command, capture_output=True, text=True, env=off, timeout=120, check=False)
    assert done.returncode >= 0, f"with {spare} KiB {what} dies by signal {-done.returncode}: {done.stderr[-300:]}"
    said = done.stderr.strip().rpartition("\n")[2]
    if said.startswith("ImportError") and ("failed to map" in said or "cannot allocate" in said):
        return "MemoryError"  # as Python says it of a module in C
    if said == "SystemError: error return without exception set":
        return "MemoryError"  # as Python 3.11 says it where there is no room for a function's frame
    if done.returncode:
        return said
    return done.stdout.strip()


@pytest.mark.sampled(4)
@pytest.mark.parametrize("spare", [0, 64, 256, 1024, 1536, 2048, 4096, 8192])
@pytest.mark.parametrize("what", ["single", "batch", "derivative", "fitting", "many"])
def test_a_little_memory(what: str, spare: int) -> None:
    """Where LLVM is loaded: below some size it gets none, above it everything is right."""
    assert run(what, spare, "warm") in ("right", "MemoryError")


@pytest.mark.parametrize("what", ["single", "batch", "derivative", "fitting", "many"])
def test_enough_memory(what: str) -> None:
    assert Counter(run(what, spare, "warm") for spare in (128 << 10, 512 << 10)) == {"right": 2}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("spare", [0, 1024, 2048, 16 << 10, 64 << 10, 128 << 10])
@pytest.mark.parametrize("what", ["single", "batch", "derivative", "many"])
def test_no_memory_for_the_library(what: str, spare: int) -> None:
    assert run(what, spare, "cold") in ("right", "MemoryError")


def test_what_is_reserved_is_free_again() -> None:
    for _ in range(100):
        reserve(64 * MIB, "a test")
    with pytest.raises(MemoryError, match=r"there is no room for a test, which may need 4,398,046,511,104 MiB"):
        reserve(1 << 62, "a test")
