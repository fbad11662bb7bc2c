"""Graphs two million deep, compiled, at night ten; a million, interpreted. At the default stack size, with Python's own
limit.

Each runs in a process of its own, under the stack that the machine gives, and must end with exit status 0:
a stack that overflows kills the process.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

import wengert

DEPTH = 10_000_000 if wengert.engine.compiled else 300_000
HEAD = f"""
import copy, sys
import wengert
from wengert import Value
from wengert.graph import Graph
assert sys.getrecursionlimit() == 1000
n = {DEPTH}
x = Value(1.0)
y = x
"""


def run(program: str, timeout: float = 300.0) -> str:
    command = [sys.executable, "-c", HEAD + program]
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=False)
    assert done.returncode == 0, (done.returncode, done.stderr[-2000:])
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("share", [5, pytest.param(1, marks=pytest.mark.nightly)])
def test_a_chain(share: int) -> None:
    """Built, differentiated twice, freed: the full depth of the promise; a third of it copied and written down too."""
    program = f"n = {DEPTH // share if wengert.engine.compiled else 1_000_000}\n" + (
        "for _ in range(n): y = y + 1.0\n"
        "assert y.data == n + 1.0\n"
        "y.backward(); y.backward()\n"
        "assert x.grad == 2.0\n"
        "y = x\n"
        "n //= 3\n"
        "for _ in range(n): y = y + 1.0\n"
        "twin = copy.deepcopy(y)\n"
        "del y\n"
        "assert twin.data == n + 1.0\n"
        "twin.backward()\n"
        "assert twin._prev[0].grad == 1.0\n"
        "graph = Graph(twin)\n"
        "assert len(graph) == n + 1 and len(graph.constants) == n\n"
        "assert graph[n].operands == (n - 1, 1.0)\n"
        "del twin\n"
        "del graph\n"
        "print('done')\n"
    )
    assert run(program) == "done\n"


CHAINS = {
    "unary": "y = -y",
    "binary, one operand shared": "y = y * 1.0 + x",
    "binary, both the same": "y = y + y; y = y * 0.5",
    "binary, the deep one on the right": "y = x - y",
    "n-ary": "y = wengert.sum((y, 1.0))",
    "n-ary, shared": "y = wengert.dot((y, x), (1.0, 0.0), y - y)",
    "mixed": "y = (wengert.mean((y, y)).tanh() + x) / 2.0",
    "two deep operands": "y, z = y + 1.0, wengert.hypot(y, 1.0); y = y + z * 0.0",
}


@pytest.mark.sampled(8)
@pytest.mark.slow
@pytest.mark.parametrize("chain", CHAINS)
def test_chains_of_every_kind(chain: str) -> None:
    """Fewer nodes, as their kind is what is tested: far more still than any stack holds."""
    program = (
        "n = 200_000 if wengert.engine.compiled else 100_000\n"
        f"for _ in range(n):\n    {CHAINS[chain]}\n"
        "y.backward()\n"
        "twin = copy.deepcopy(y)\n"
        "twin.backward()\n"
        "assert twin.data == y.data or y.data != y.data\n"
        "assert Graph(y).values[0] is x\n"
        "del y\n"
        "del twin\n"
        "print('done')\n"
    )
    assert run(program) == "done\n"


@pytest.mark.slow
def test_many_results_of_one_chain() -> None:
    """Every node is held by a list too, and freed from the front, from the back, and all at once."""
    program = (
        "n = min(n, 400_000)\n"
        "for order in (1, -1):\n"
        "    y, kept = x, []\n"
        "    for _ in range(n):\n"
        "        y = y * 1.0 + x\n"
        "        kept.append(y)\n"
        "    del y\n"
        "    kept = kept[::order]\n"
        "    while kept: kept.pop()\n"
        "wide = wengert.sum([x * float(i) for i in range(n)])\n"
        "wide.backward()\n"
        "del wide\n"
        "print('done')\n"
    )
    assert run(program) == "done\n"


@pytest.mark.slow
def test_memory_is_given_back() -> None:
    """Deep graphs built and dropped again and again take no more memory than one of them."""
    program = (
        "import resource\n"
        "n = 40_000 if wengert.engine.compiled else 10_000\n"
        "peaks = []\n"
        "for _ in range(5):\n"
        "    y = x\n"
        "    for _ in range(n): y = wengert.sum((y * 1.0, x)).tanh()\n"
        "    y.backward()\n"
        "    twin = copy.deepcopy(y)\n"
        "    graph = Graph(twin)\n"
        "    del y, twin, graph\n"
        "    peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)\n"
        "print(peaks[-1] / peaks[1])\n"
    )
    pytest.importorskip("resource")  # not on Windows
    assert float(run(program)) < 1.1
