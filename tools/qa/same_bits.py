"""The same script gives the same bits, in each process, whatever else the machine does.

    python -m tools.qa.same_bits [PROCESSES]

Runs a script of single calls, batches, branches and `fit` in fresh processes (20 unless told), with "auto" and with
the back end that the rule names, while as many others as there are processors keep the machine busy, with a cold cache
of machine code and with a warm one. Prints how many different results there were: one.
"""

from __future__ import annotations

import hashlib
import os
import random
import struct
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from pathlib import Path
from typing import Any

__all__ = ["main", "script"]

PROCESSES = 20
BUSY = "while True: sum(range(100000))"


def without_clocks() -> None:
    """From now on clocks tell random times, and threads do not start."""
    draw = random.Random()
    for name in ("perf_counter", "monotonic", "time", "process_time"):
        setattr(time, name, lambda: draw.uniform(0.0, 1e9))

    def start(self: threading.Thread) -> None:
        raise RuntimeError("a thread was started")

    threading.Thread.start = start  # type: ignore[method-assign]


def script(backend: str) -> tuple[str, list[str]]:
    """All that is called, and a digest of each bit that came of it; and the reports of the functions."""
    import numpy as np

    import wengert
    from wengert import Value, losses, nn, optim

    made = hashlib.sha256()
    weights = [Value(0.1 * n - 0.3) for n in range(8)]

    def note(x: Any) -> None:
        numbers = np.ravel(x).tolist() if isinstance(x, np.ndarray) else [x.data]
        if isinstance(x, Value):
            x.backward()
            numbers += [w.grad for w in weights]
            for w in weights:
                w.grad = 0.0
        made.update(struct.pack(f"<{len(numbers)}d", *numbers))

    def smooth(x: float, y: float) -> Any:
        total = weights[0] * x
        for w in weights[1:]:
            total = (total * w + y).tanh() + w.exp() * x
        return total

    def branches(x: float, y: float) -> Any:
        total = weights[0] * y
        for n, w in enumerate(weights[:3]):  # four ways: each further one would wait for its count
            if x > 2.0 * n - 4.0:
                total = total * w + x
        return total

    def irregular(x: float, y: float) -> Any:
        draw, known = random.Random(3), [*weights, weights[0] * x, weights[1] * y]
        for _ in range(60):
            a, b = draw.choice(known), draw.choice(known)
            known.append(draw.choice([a * b, a - b, a.sin(), (a + b).tanh()]))
        return wengert.sum(known[10:])

    compiled = [wengert.compile(f, backend=backend) for f in (smooth, branches, irregular)]
    draw = random.Random(0)
    for number in range(150):
        for f in compiled:
            x, y = draw.uniform(-5.0, 5.0), draw.uniform(-1.0, 1.0)
            note(f(x, y))
            if number % 5 == 0:
                X, Y = np.array([draw.uniform(-5.0, 5.0) for _ in range(64)]), [y] * 64
                for how in ("mean", "sum", "map"):
                    note(getattr(f, how)(X, Y))
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(80, 3)), rng.integers(0, 2, 80).tolist()
    model = nn.MLP(3, [6, 2], rng=random.Random(0))
    optimizer = optim.Adam(model, 1e-2)
    history = wengert.fit(
        model, losses.cross_entropy, X, Y, optimizer, 12, 16, seed=1, progress=False, backend=backend,
        regularization=lambda: losses.l2(model.parameters(), 1e-3),
    )  # fmt: skip
    note(np.array([*history.loss, *history.accuracy, *[p.data for p in model.parameters()]]))
    return made.hexdigest(), [f.report() for f in compiled] + [f"fit: {history.backend}"]


def once(how: list[str]) -> None:
    """In a process of its own: prints the digest, then the reports."""
    if "without-clocks" in how:
        without_clocks()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        digest, reports = script("native" if "native" in how else "auto")
    print(digest)
    print("\n".join(reports))


def main() -> None:
    """Run all of it, and say how many different results there were."""
    processes = int(sys.argv[1]) if len(sys.argv) > 1 else PROCESSES
    root = str(Path(__file__).parents[2])
    found: dict[str, list[str]] = {}
    with tempfile.TemporaryDirectory() as cache:
        busy = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(os.cpu_count() or 1)]
        try:
            for number in range(processes):
                kind = ("auto", "native")[number % 2]
                folder = cache if number % 4 < 2 else str(Path(cache, str(number)))
                environment = {**os.environ, "WENGERT_CACHE": folder, "PYTHONPATH": f"{root}/src{os.pathsep}{root}"}
                command = [sys.executable, __file__, "once", kind]
                done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
                found.setdefault(done.stdout.partition("\n")[0], []).append(f"{number} {kind}")
        finally:
            for process in busy:
                process.kill()
                process.wait()
    for digest, which in found.items():
        print(digest, ", ".join(which))
    print(f"{processes} processes, {len(found)} different results")
    raise SystemExit(len(found) != 1)


if __name__ == "__main__":
    if sys.argv[1:2] == ["once"]:
        once(sys.argv[2:])
    else:
        main()
