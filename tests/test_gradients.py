"""What `backward()` promises: sharing, repeated calls, the order of summation, interrupts, threads."""

from __future__ import annotations

import math
import os
import random
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import wengert
from tests.threads import together
from wengert import Value
from wengert.errors import OperandError

interpreted = pytest.mark.skipif(wengert.engine.compiled, reason="traces Python lines, which only the source has")

# ------------------------------------------------------------------------------------- a value used more than once


def test_contributions_add() -> None:
    x = Value(3.0)
    y = x * x + x - 2 * x * x * x + x / x
    y.backward()
    assert x.grad == 2 * 3 + 1 - 6 * 9


def test_one_node_as_both_operands() -> None:
    cases: list[tuple[Callable[[Value], Any], float]] = [
        (lambda x: x + x, 2.0),
        (lambda x: x - x, 0.0),
        (lambda x: x * x, 6.0),
        (lambda x: x / x, 0.0),
        (lambda x: x**x, 27.0 * (math.log(3.0) + 1.0)),
        (lambda x: wengert.maximum(x, x), 1.0),
        (lambda x: wengert.dot([x, x], [x, 2.0], x), 2 * 3.0 + 2.0 + 1.0),
        (lambda x: wengert.prod([x, x, x]), 27.0),
    ]
    for function, slope in cases:
        x = Value(3.0)
        function(x).backward()
        assert x.grad == pytest.approx(slope, rel=1e-15)


def test_a_diamond_of_diamonds_counts_every_path() -> None:
    x = Value(1.0)
    y = x
    for _ in range(60):  # 2**60 paths, each of slope 1
        y = y + y
    y.backward()
    assert x.grad == 2.0**60


def test_a_shared_node_is_passed_on_only_when_it_is_complete() -> None:
    """The trap of a hasty walk: c must have both its contributions before it passes them on to a."""
    a = Value(3.0)
    c = a * 2
    d = c * c
    e = d + c
    (e * d).backward()  # (4 a^2 + 2 a) * 4 a^2 = 16 a^4 + 8 a^3
    assert a.grad == 64 * 27 + 24 * 9


# ------------------------------------------------------------------------------------- several calls


def test_two_results_that_share_nodes() -> None:
    x = Value(3.0)
    shared = x * x
    a = shared * 2
    b = shared * 3 + a
    a.backward()
    assert (x.grad, shared.grad, a.grad) == (12.0, 2.0, 1.0)
    b.backward()
    assert (x.grad, shared.grad, a.grad, b.grad) == (12.0 + 30.0, 5.0, 1.0, 1.0)
    a.backward()
    assert (x.grad, shared.grad, a.grad) == (54.0, 2.0, 1.0)


def test_the_result_inside_another_graph() -> None:
    """The trap of the engines that print 75: d.backward(), then e.backward() over it."""
    a = Value(2.0)
    b = a * 3
    c = b * b
    d = c + b
    c.backward()
    d.backward()
    assert a.grad == 2 * 18.0 + (2 * 18.0 + 3.0)


def test_twice_on_one_graph() -> None:
    x, y = Value(3.0), Value(4.0)
    inner = x * y
    root = inner.tanh() * inner
    root.backward()
    once = (x.grad, y.grad, inner.grad, root.grad)
    root.backward()
    assert (x.grad, y.grad, inner.grad, root.grad) == (2 * once[0], 2 * once[1], once[2], once[3])


def test_twice_is_exactly_twice_whatever_is_rounded() -> None:
    """A pass sums up by itself before it is added: else the second would round otherwise than the first."""
    rng = random.Random(1)
    for _ in range(200):
        x, y = Value(rng.gauss(0, 1)), Value(rng.gauss(0, 1))
        root = sum(
            [rng.gauss(0, 1) * x * y, x.tanh() * y, wengert.dot([x, y, x], [y, 0.1, 0.3], x), y / 3.0, (x * 7.0).exp()]
        )
        root.backward()
        once = (x.grad, y.grad)
        root.backward()
        assert (x.grad, y.grad) == (2 * once[0], 2 * once[1])


def test_a_leaf_zeroed_between_calls() -> None:
    """The trap of the engines that print 72 where 36 is true."""
    x = Value(3.0)
    y = (x * 2) ** 2
    y.backward()
    x.grad = 0.0
    y.backward()
    assert x.grad == 24.0


def test_before_any_backward_and_of_a_bystander() -> None:
    x, bystander = Value(3.0), Value(1.0)
    y = x * 2
    assert (x.grad, y.grad) == (0.0, 0.0)
    unused = y * bystander
    y.backward()
    assert (bystander.grad, unused.grad) == (0.0, 0.0)


def test_on_a_leaf() -> None:
    x = Value(3.0)
    x.backward()
    x.backward()
    x.backward(0.5)
    assert x.grad == 2.5


@pytest.mark.parametrize("gradient", [2, 2.0, True + 1, Value(2.0)])
def test_the_incoming_gradient(gradient: Any) -> None:
    x = Value(3.0)
    y = x * x
    y.backward(gradient)
    assert (x.grad, y.grad) == (12.0, 2.0)
    assert type(x.grad) is float


@pytest.mark.parametrize("gradient", ["2", None, [2.0], 1j, object()])
def test_an_incoming_gradient_that_is_no_number_changes_nothing(gradient: Any) -> None:
    x = Value(3.0)
    y = x * x
    y.backward()
    with pytest.raises(OperandError):
        y.backward(gradient)
    assert (x.grad, y.grad) == (6.0, 1.0)


def test_the_compiled_way_needs_no_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wengert.ops.ieee, "COMPILED", True)
    x = Value(3.0)
    (x * x).backward()
    assert x.grad == 6.0


def test_zero_times_infinity_is_nan_and_not_hidden() -> None:
    x = Value(0.0)
    (x.sqrt() * 0.0).backward()
    assert math.isnan(x.grad)


# ------------------------------------------------------------------------------------- data changed after the fact


def test_data_changed_after_the_graph_was_built() -> None:
    x, y = Value(3.0), Value(4.0)
    products = [x * y, x / y, x**y, y**2, x.tanh(), (x * y).exp(), wengert.dot([x], [y]), wengert.logsumexp(x, y)]
    expected = []
    for product in products:
        x.grad = y.grad = 0.0
        product.backward()
        expected.append((x.grad, y.grad))
    x.data, y.data = 100.0, -50.0
    for product in products:
        product.data = 7.0
    for product, gradients in zip(products, expected, strict=True):
        x.grad = y.grad = 0.0
        product.backward()
        assert (x.grad, y.grad) == gradients


def test_a_step_of_gradient_descent_in_place() -> None:
    p = Value(1.0)
    for _ in range(3):
        loss = (p - 3) ** 2
        p.grad = 0.0
        loss.backward()
        p.data += -0.1 * p.grad
    assert p.data == pytest.approx(3 - 2 * 0.8**3, rel=1e-15)


def test_an_assigned_gradient_of_an_inner_node_does_not_leak_into_the_next_call() -> None:
    x = Value(3.0)
    inner = x * 2
    y = inner * 5
    inner.grad = y.grad = 100.0
    y.backward()
    assert (x.grad, inner.grad, y.grad) == (10.0, 5.0, 1.0)


# ------------------------------------------------------------------------------------- the order of summation


def tangled(seed: int, size: int = 300) -> tuple[list[Value], list[Value]]:
    """A graph in which most nodes are used several times; the leaves, and all nodes."""
    rng = random.Random(seed)
    leaves = [Value(rng.uniform(-1, 1)) for _ in range(5)]
    nodes = list(leaves)
    for _ in range(size):
        x, y, c = rng.choice(nodes), rng.choice(nodes[-20:]), rng.uniform(-1, 1)
        kind = rng.randrange(6)
        if kind == 0:
            nodes.append(x + y)
        elif kind == 1:
            nodes.append((x * y).tanh())
        elif kind == 2:
            nodes.append(c * x - y)
        elif kind == 3:
            nodes.append(wengert.dot([x, y, c], [c, x, y], c).tanh())
        elif kind == 4:
            nodes.append(wengert.mean(x, y, c, x))
        else:
            nodes.append((c - x) / (2 + y * y))
    return leaves, nodes


def gradient_bits() -> list[str]:
    """The gradients of some tangled graphs, to the bit."""
    bits = []
    for seed in range(20):
        leaves, nodes = tangled(seed)
        for root in (nodes[-1], nodes[150], wengert.sum({nodes[i] for i in (-1,)} | {nodes[-1]})):
            root.backward()
        bits += [leaf.grad.hex() for leaf in leaves]
    return bits


def test_the_same_bits_under_every_hash_seed() -> None:
    program = "import sys; sys.path.insert(0, sys.argv[1]); from tests.test_gradients import gradient_bits as bits; "
    program += "print(*bits())"
    outputs = set()
    for seed in ("1", "12345"):
        command = [sys.executable, "-c", program, str(Path(__file__).parents[1])]
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        outputs.add(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)
    assert outputs == {" ".join(gradient_bits()) + "\n"}


def test_contributions_are_added_in_the_order_of_the_tape() -> None:
    """Latest use first: the bits are those of this sum, and of no other order of it."""
    x = Value(1.0)
    terms = [x * c for c in (1e16, 1.0, -1e16, 3.0)]
    y = wengert.sum(terms)
    y.backward()
    assert x.grad == ((3.0 + -1e16) + 1.0) + 1e16
    assert x.grad != ((1e16 + 1.0) + -1e16) + 3.0


def test_against_differentiation_in_plain_floats() -> None:
    """Reverse mode against forward mode: the slope along a random direction, carried through by hand."""

    class Dual:
        def __init__(self, x: float, slope: float) -> None:
            self.x, self.slope = x, slope

        def __add__(self, o: Any) -> Dual:
            return Dual(self.x + o.x, self.slope + o.slope)

        def __mul__(self, o: Any) -> Dual:
            return Dual(self.x * o.x, self.slope * o.x + self.x * o.slope)

        def tanh(self) -> Dual:
            return Dual(math.tanh(self.x), self.slope / math.cosh(self.x) ** 2)

    def program(rng: random.Random, nodes: list[Any]) -> Any:
        for _ in range(150):
            x, y = rng.choice(nodes), rng.choice(nodes)
            nodes.append([x + y, x * y, (x + y).tanh()][rng.randrange(3)].tanh())
        return nodes[-1] * nodes[-2] + nodes[-3]

    for seed in range(10):
        rng = random.Random(seed)
        points = [(rng.uniform(-1, 1), rng.uniform(-1, 1)) for _ in range(4)]
        leaves = [Value(x) for x, _ in points]
        y = program(random.Random(seed), list(leaves))
        y.backward()
        dual = program(random.Random(seed), [Dual(x, slope) for x, slope in points])
        assert y.data == dual.x
        along = sum(leaf.grad * slope for leaf, (_, slope) in zip(leaves, points, strict=True))
        assert along == pytest.approx(dual.slope, rel=1e-11, abs=1e-13)


# ------------------------------------------------------------------------------------- interrupts


@interpreted
def test_an_interrupt_at_every_line() -> None:
    """Ctrl-C wherever it may come: after zeroing, the next call is right, and so are the calls after it."""
    engine_file = wengert.engine.__file__

    def graph() -> tuple[list[Value], Value]:
        x, y = Value(0.5), Value(-2.0)
        inner = x * y
        return [x, y], wengert.dot([inner, x], [y, inner], 1.0) * inner.tanh() + wengert.mean(x, inner, 2.0) - inner

    leaves, root = graph()
    root.backward()
    expected = [leaf.grad for leaf in leaves]
    line = 0
    interrupted = True
    while interrupted:
        leaves, root = graph()
        line += 1
        interrupted, left, inside = False, line, False

        def trace(frame: FrameType, event: str, argument: Any) -> Any:
            nonlocal interrupted, left, inside
            if frame.f_code.co_filename != engine_file:
                return None
            inside |= frame.f_code.co_name == "_backward_pass"
            # Python delivers no signal between the end of a `with` block and its __exit__; so this does not either.
            if event == "line" and not (inside and frame.f_code.co_name == "backward"):
                left -= 1
                if left == 0:
                    interrupted = True
                    raise KeyboardInterrupt
            return trace

        before = sys.gettrace()  # a measurement of coverage, perhaps
        sys.settrace(trace)
        try:
            root.backward()
        except KeyboardInterrupt:
            pass
        finally:
            sys.settrace(before)
        for leaf in leaves:
            leaf.grad = 0.0
        root.backward()
        assert [leaf.grad for leaf in leaves] == expected, f"interrupted at step {line}"
        root.backward()
        assert [leaf.grad for leaf in leaves] == pytest.approx([2 * g for g in expected], rel=1e-15)
    assert line > 100
    other = threading.Thread(target=root.backward, daemon=True)  # the lock is free
    other.start()
    other.join(10)
    assert not other.is_alive()


@pytest.mark.usefixtures("sigint")
def test_a_signal_between_calls_of_a_training_loop() -> None:
    """A real KeyboardInterrupt in the main thread of a process that does nothing but backward()."""
    program = (
        "import _thread, threading, wengert\n"
        "x = wengert.Value(0.5)\n"
        "y = x\n"
        "for _ in range(2000): y = (y * 0.999).tanh() + x\n"
        "y.backward(); expected = x.grad\n"
        "def interrupt(delay):\n"
        "    while not caught.wait(delay):\n"
        "        _thread.interrupt_main()\n"
        "        delay = 5.0\n"  # once more, in case that it came where Python has to ignore it
        "for delay in (0.01, 0.03, 0.05):\n"
        "    caught = threading.Event()\n"
        "    try:\n"
        "        threading.Thread(target=interrupt, args=(delay,)).start()\n"
        "        while True: y.backward()\n"
        "    except KeyboardInterrupt: caught.set()\n"
        "    x.grad = 0.0\n"
        "    y.backward()\n"
        "    assert x.grad == expected\n"
        "print('right')\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "right\n"


# ------------------------------------------------------------------------------------- threads


def test_four_threads_into_one_leaf() -> None:
    shared = Value(1.0)

    def work() -> None:
        own = Value(2.0)
        for _ in range(2000):
            (shared * 1.0 + own).backward()
        assert own.grad == 2000.0

    together(*[work] * 4)
    assert shared.grad == 8000.0


def test_threads_that_share_inner_nodes() -> None:
    x = Value(1.0)
    inner = (x * 2).tanh() * 1.5
    inner.backward()
    once, x.grad = x.grad, 0.0
    roots = [inner * 1.0 for _ in range(4)]

    together(*[lambda r=root: [r.backward() for _ in range(250)] for root in roots])
    assert x.grad == pytest.approx(1000 * once, rel=1e-12)


def test_the_root_of_a_sum_of_squares_of_zeros_is_a_length() -> None:
    """It has the slope 0 there, as hypot; other roots of 0 have an infinite one, and other functions their own."""
    lengths: list[Callable[[Any, Any], Any]] = [
        lambda x, y: (x * x + y * y).sqrt(),
        lambda x, y: (x**2 + 0.0 + y.square() / 3.0) ** 0.5,
        lambda x, y: wengert.sum([2.0 * (x * x), x * x * 3.0, 0.0, y**4]).sqrt(),
        lambda x, y: wengert.mean([2.0 * x * x, y * (3.0 * (y * 5.0))]).sqrt(),
        lambda x, y: wengert.dot([x, y], [x, y], y * y).sqrt(),
    ]
    others: list[Callable[[Any, Any], Any]] = [
        lambda x, y: x.sqrt(),
        lambda x, y: (x * 2.0 + y * y) ** 0.5,
        lambda x, y: (x * y).sqrt(),
        lambda x, y: (x * y * y).sqrt(),
        lambda x, y: (-1.0 * (x * x)).sqrt(),
        lambda x, y: (x * x - y * y).sqrt(),
        lambda x, y: wengert.dot([x, y], [y, x]).sqrt(),
        lambda x, y: (x**3).sqrt(),
        lambda x, y: (x * x).cbrt(),
        lambda x, y: (x * x).log(),
    ]
    for functions, expected in ((lengths, [0.0, 0.0]), (others, None)):
        for function in functions:
            x, y = Value(0.0), Value(0.0)
            function(x, y).backward()
            assert [x.grad, y.grad] == expected or (expected is None and not math.isfinite(x.grad + y.grad))
    x, y = Value(3.0), Value(4.0)
    lengths[0](x, y).backward()
    assert [x.grad, y.grad] == pytest.approx([0.6, 0.8])
    tiny = Value(1e-200)
    (tiny * tiny).sqrt().backward()  # the square has lost it: it is not 0
    assert tiny.grad == math.inf
    assert (0.0**0.5, (0.0 * Value(1.0) + 4.0).sqrt().data) == (0.0, 2.0)
