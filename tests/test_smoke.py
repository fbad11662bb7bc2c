"""Is Wengert in working order here? Run this first, with pytest or as it is: `python tests/test_smoke.py`.

It needs nothing but Wengert, and takes a second or two. An argument, `compiled` or `interpreted`, demands that engine.
"""

from __future__ import annotations

import math
import os
import random
import sys
import tempfile

import wengert
from wengert import Value


def test_a_product() -> None:
    a, b = Value(2.0, label="a"), Value(3.0, label="b")
    y = a * b + b**2
    y.backward()
    assert (y.data, a.grad, b.grad) == (15.0, 3.0, 8.0)


def test_the_expression_that_every_tutorial_starts_with() -> None:
    a, b = Value(-4.0), Value(2.0)
    c = a + b
    d = a * b + b**3
    c += c + 1
    c += 1 + c + (-a)
    d += d * 2 + (b + a).relu()
    d += 3 * d + (b - a).relu()
    e = c - d
    f = e**2
    g = f / 2.0
    g += 10.0 / f
    g.backward()
    assert [round(x, 4) for x in (g.data, a.grad, b.grad)] == [24.7041, 138.8338, 645.5773]


def test_a_function_of_the_table_both_ways() -> None:
    x = Value(0.5)
    y = wengert.tanh(x) + x.tanh()
    y.backward()
    assert y.data == 2 * math.tanh(0.5)
    assert math.isclose(x.grad, 2 * (1 - math.tanh(0.5) ** 2), rel_tol=1e-15)


def test_gradients_are_exact_in_any_order_of_calls() -> None:
    x = Value(3.0)
    shared = x * x
    a, b = shared * 2, shared * 3
    a.backward()
    b.backward()
    assert x.grad == 30.0


def test_a_network_learns() -> None:
    from wengert.losses import mse
    from wengert.nn import MLP
    from wengert.optim import Adam

    model = MLP(2, [8, 1], activation="tanh", rng=random.Random(1))
    optimizer = Adam(model.parameters(), lr=0.05)
    xor = [([0.0, 0.0], 0.0), ([0.0, 1.0], 1.0), ([1.0, 0.0], 1.0), ([1.0, 1.0], 0.0)]
    for _ in range(200):
        loss = wengert.mean(mse(model(x), y) for x, y in xor)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    assert loss.data < 0.05


def test_weights_survive_a_file() -> None:
    from wengert import checkpoint
    from wengert.nn import MLP

    first, second = MLP(3, [4, 2], rng=random.Random(1)), MLP(3, [4, 2], rng=random.Random(2))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "weights.safetensors")
        checkpoint.save(first, path)
        checkpoint.load(second, path)
    assert first.state_dict() == second.state_dict()


def test_the_data_of_the_demo_is_there() -> None:
    from wengert.data import digits

    X, y = digits()
    assert (len(X), len(X[0]), len(y), set(y)) == (1797, 64, 1797, set(range(10)))


def main(arguments: list[str]) -> None:
    """Run every test above without pytest."""
    engine = "compiled" if wengert.engine.compiled else "interpreted"
    print(f"wengert {wengert.__version__} from {os.path.dirname(wengert.__file__)}, {engine}")
    if arguments and arguments[0] != engine:
        sys.exit(f"the engine is {engine}, not {arguments[0]}")
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            test()
            print("ok", name.removeprefix("test_").replace("_", " "))


if __name__ == "__main__":
    main(sys.argv[1:])
