"""What `fit` takes for a step, beside its kernel alone and a loop by hand, in one process and in turns.

    python -m benchmarks.fitting [--backend native] [--workload NAME ...] [--rounds 9]

An epoch of `fit` is of many batches, shuffled, with the metric that goes with the loss; what it takes is divided by the
batches. The bare kernel is what serves: the machine code of the same loss, called in a loop of C for the batches of an
epoch, whose rows lie ready in a shuffled order, or else NumPy's functions. The rule is the optimizer's, over arrays.
Times are those of the thread's processor, so that other processes matter less, and medians over rounds in which each
has its turn.
"""

from __future__ import annotations

import argparse
import ctypes
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks import gpt, problems
from benchmarks.peers.wengert_library import mlp
from wengert import Value, losses, optim, training
from wengert.compiler import Compiled
from wengert.compiler.backends import BACKENDS

__all__ = ["Clock", "Task", "main", "measured"]

BATCHES = {"tiny": 256, "moons": 128, "digits": 128, "mnist-size": 48, "names": 64}  # of an epoch
SECONDS = 0.1  # that a turn takes
LENGTH = 8  # of the names that `fit` learns, with their ends: the rows of X have one length

REPEAT = """
define void @repeat(i64 %times, i64 %batches, i64 %columns, ptr %f, i64 %n, double %seed, ptr %i, ptr %p, ptr %s,
                    ptr %o, ptr %w) {
entry:
  br label %turn
turn:
  %k = phi i64 [ 0, %entry ], [ %next, %turn ]
  %batch = urem i64 %k, %batches
  %place = mul i64 %batch, %columns
  %rows = getelementptr i64, ptr %i, i64 %place
  call void %f(i64 %n, double %seed, ptr %rows, ptr %p, ptr %s, ptr %o, ptr %w)
  %next = add i64 %k, 1
  %more = icmp ult i64 %next, %times
  br i1 %more, label %turn, label %done
done:
  ret void
}
"""


class Clock(list[float]):
    """The losses of a History, and when each came, by the time of the thread's processor or by that of the wall."""

    def __init__(self, clock: Callable[[], float] = time.thread_time) -> None:
        super().__init__()
        self.clock = clock
        self.times: list[float] = []

    def append(self, number: float) -> None:
        """One epoch more is over."""
        super().append(number)
        self.times.append(self.clock())


class Task:
    """A workload as `fit` takes it, for a few batches that are repeated."""

    def __init__(self, name: str) -> None:
        self.more: dict[str, Any] = {}
        if name == "names":
            gpt_names = problems.names()
            heads = gpt_names.heads
            matrices = {n: [[Value(x) for x in row] for row in rows] for n, rows in gpt_names.matrices.items()}
            parameters = [p for rows in matrices.values() for row in rows for p in row]
            self.model: Any = lambda tokens: gpt.loss(tokens, matrices, heads)
            self.loss: Any = lambda made, _: made
            self.X: Any = [tokens[:LENGTH] for tokens in gpt_names.documents if len(tokens) >= LENGTH]
            self.Y: Any = [0.0] * len(self.X)
            self.size = 1
            self.optimizer: optim.Optimizer = optim.Adam(parameters, 1e-9, betas=(gpt_names.beta1, gpt_names.beta2))
            return
        problem = problems.NETWORKS[name]()
        self.model = mlp(problem)
        self.X, self.Y, self.size = problem.X, problem.Y, len(problem.X)
        self.optimizer = optim.SGD(self.model, 1e-9)
        self.loss = {"hinge": losses.hinge, "squared": losses.mse, "crossentropy": losses.cross_entropy}[problem.loss]
        if problem.loss == "hinge":
            self.more["regularization"] = lambda: losses.l2(self.optimizer.parameters, 1e-4)


def once(action: Callable[[], Any]) -> float:
    """The processor time of a call."""
    began = time.thread_time()
    action()
    return time.thread_time() - began


def per_step(action: Callable[[int], Any]) -> float:
    """The processor time of a step, of as many as fill a turn."""
    steps = 1
    while (taken := once(partial(action, steps))) < SECONDS:
        steps = max(2 * steps, int(steps * SECONDS / max(taken, 1e-6)))
    return taken / steps


def repeated(made: Any, arrays: list[Any], size: int) -> Callable[[int], None]:
    """What serves a kernel for so many batches of this size: its machine code in a loop of C, or else its functions."""
    kernel, buffers = made.kernel, made.buffers()
    code, batches = kernel.code, len(arrays[0]) // size
    rows = [[x[n * size : (n + 1) * size] for x in arrays] for n in range(batches)]
    if code is None:

        def by_functions(times: int) -> None:
            with np.errstate(all="ignore"):
                for n in range(times):
                    kernel.forward_backward(rows[n % batches], 1.0 / size, buffers)

        return by_functions
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(jit=True)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(REPEAT), machine)
    engine.finalize_object()
    pointer = ctypes.c_void_p
    integer = ctypes.c_int64
    kind = ctypes.CFUNCTYPE(None, integer, integer, integer, pointer, integer, ctypes.c_double, *[pointer] * 5)
    run = kind(engine.get_function_address("repeat"))
    addresses = [[x.ctypes.data for x in batch] for batch in rows]
    outputs = [np.empty((size, *array.cell_shape)) for array in kernel.program.outputs.values()]
    targets = np.array([x.ctypes.data for x in outputs], np.int64)
    own = [np.array(addresses, np.int64), buffers.params, buffers.grads, targets]
    own.append(np.empty(kernel.work(size) + 8))
    places = [x.ctypes.data for x in own]
    places[-1] = (places[-1] + 63) // 64 * 64

    def by_code(held: Any, times: int) -> None:  # with what lies at the addresses
        run(times, batches, len(arrays), code.forward_backward, size, 1.0 / size, *places)

    return partial(by_code, (engine, arrays, own, outputs))


def measured(name: str, backend: str, rounds: int) -> dict[str, float]:
    """Seconds a step: of the bare kernel, of the optimizer's rule over arrays, of `fit`, and of a loop by hand."""
    task = Task(name)
    repeats = -(-BATCHES[name] * task.size // len(task.X))
    X, Y = list(task.X) * repeats, list(task.Y) * repeats
    batches = -(-len(X) // task.size)
    model, loss_of, optimizer = task.model, task.loss, task.optimizer
    penalty = task.more.get("regularization")

    def example(x: Any, y: Any) -> Any:
        made = loss_of(model(x.tolist() if hasattr(x, "tolist") else x), y)
        return made if penalty is None else made + penalty()

    loss = Compiled(example, backend=BACKENDS.get(backend))
    small = np.array(task.X[: task.size]), np.array(task.Y[: task.size])
    shuffled = np.random.default_rng(1).permutation(len(X))
    for _ in range(40):
        loss.mean(*small)
    path = loss._server.latest()
    arrays = [
        np.ascontiguousarray(np.array(x)[shuffled], np.int64 if a.role == "index" else float)
        for x, a in zip((X, Y), path.kernel.inputs, strict=True)
    ]
    kernel = repeated(path, arrays, task.size)
    place = {id(p): n for n, p in enumerate(optimizer.parameters)}
    order = np.array([place[id(p)] for p in path.parameters])
    state = {n: np.array(x)[order] for n, x in optimizer._state.items()}
    buffers = path.buffers()
    numbers, slopes = buffers.params, buffers.grads

    def rule(times: int) -> None:
        for _ in range(times):
            optimizer._step_arrays(numbers, slopes, state)

    def by_hand(times: int) -> None:
        for _ in range(times):
            optimizer.zero_grad()
            loss.mean(*small).backward()
            optimizer.step()

    def epochs(count: int) -> float:
        history = training.History()
        history.loss = clock = Clock()
        training.fit(
            model, loss_of, X, Y, optimizer, count, task.size, progress=False, seed=1, backend=backend,
            history=history, **task.more,
        )  # fmt: skip
        taken = [b - a for a, b in zip(clock.times, clock.times[1:], strict=False)]
        return statistics.median(taken[len(taken) // 2 :]) / batches  # by then it is seldom compared

    seconds = epochs(4)
    count = max(8, min(400, int(4 * SECONDS / (seconds * batches))))
    turns: dict[str, list[float]] = {"kernel": [], "rule": [], "fit": [], "hand": []}
    for _ in range(rounds):
        turns["kernel"].append(per_step(kernel))
        turns["rule"].append(per_step(rule))
        turns["fit"].append(epochs(count))
        turns["hand"].append(per_step(by_hand))
    return {key: statistics.median(times) for key, times in turns.items()}


def main(argv: list[str] | None = None) -> int:
    """Print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fitting", description=__doc__.split("\n\n")[0])
    parser.add_argument("--backend", default="native", choices=["auto", *BACKENDS])
    parser.add_argument("--workload", action="append", choices=list(BATCHES), help="only this one; repeatable")
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args(argv)
    print("| µs a step | kernel | rule | `fit` | fit / kernel | fit / (kernel + rule) | by hand |")
    print("|---|---|---|---|---|---|---|")
    for name in options.workload or BATCHES:
        made = {key: 1e6 * seconds for key, seconds in measured(name, options.backend, options.rounds).items()}
        kernel, rule, fit, hand = made.values()
        print(
            f"| `{name}` | {kernel:.2f} | {rule:.2f} | {fit:.2f} | {fit / kernel:.2f} | {fit / (kernel + rule):.2f} "
            f"| {hand:.2f} |",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
