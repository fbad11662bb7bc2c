"""Scenarios of effects: what is written, printed, counted and drawn happens exactly as often as without `compile`."""

from __future__ import annotations

import functools
import pathlib
import random
import sqlite3
import sys
import tempfile
import warnings

import numpy as np

from tests.scenarios.kit import attempt, scenario
from wengert import Value, nn, optim


@scenario
def losses_are_appended_to_a_history(compile):
    history, w = [], Value(1.0)

    def loss(x):
        y = (w * x - 1.0) ** 2
        history.append(y.data)
        return y

    f = compile(loss)
    for call in range(1, 15):
        yield f(0.2 * call), w
        yield history
    yield f.map([0.1 * k for k in range(9)])
    yield history


@scenario
def history_kept_by_a_helper_of_a_helper(compile):
    class Log:
        def __init__(self):
            self.lines = []

        def write(self, text):
            self.lines.append(text)

    log, w = Log(), Value(0.5)

    def report(x):
        log.write(f"{x:.2f}")
        return x

    def scaled(x):
        return 2.0 * report(x)

    f = compile(lambda x: w * scaled(x))
    for call in range(1, 15):
        yield f(0.1 * call), w
        yield f.map([0.1 * call + 0.1 * k for k in range(9)])
        yield log.lines


@scenario
def prints_go_on(compile):
    w, verbose = Value(1.0), [True]

    def value(x):
        if verbose[0]:
            print("x =", x)
        return w * x

    f = compile(value)
    for call in range(1, 18):
        if call == 6:
            verbose[0] = False
        if call == 12:
            verbose[0] = True
        yield f(0.1 * call), w


@scenario
def verbosity_is_switched_on_late(compile):
    w, verbose = Value(1.0), [False]

    def value(x):
        if verbose[0]:
            sys.stdout.write("step\n")
        return w * x + 1.0

    f = compile(value)
    for call in range(1, 18):
        if call == 6:
            verbose[0] = True
        yield f(0.1 * call), w
        yield f.map([0.1 * call + 0.3 * k for k in range(9)])


@scenario
def effect_of_a_branch_of_the_numbers(compile):
    alarms, w = [], Value(1.0)

    def value(x):
        y = w * x
        if y.data > 1.0:
            alarms.append(round(y.data, 6))
        return y

    f = compile(value)
    for call in range(1, 24):
        yield f(0.15 * call), w
        yield f.map([0.15 * call + 0.1 * k for k in range(9)])
        yield alarms


@scenario
def best_so_far_is_kept(compile):
    best, w = {"loss": float("inf"), "x": None}, Value(1.0)

    def loss(x):
        y = (w * x - 1.0) ** 2
        if y.data < best["loss"]:
            best.update(loss=y.data, x=x)
        return y

    f = compile(loss)
    for call in range(1, 20):
        yield f(0.1 * call), w
        yield best


@scenario
def epoch_counter_on_a_module(compile):
    class Net(nn.Module):
        def __init__(self):
            self.inner = nn.Neuron(2, rng=random.Random(1))
            self.calls = 0

        def __call__(self, x):
            self.calls += 1
            return self.inner(x)

    net = Net()
    f = compile(lambda x: net(x) ** 2)
    for call in range(1, 14):
        yield f([0.1 * call, -1.0]), net
        yield net.calls
        yield f.mean([[0.01 * k, 0.5] for k in range(64)]), net
        yield net.calls


@scenario
def running_mean_of_a_normalisation(compile):
    state, w = {"mean": 0.0, "n": 0, "training": True}, Value(1.0)

    def normalised(x):
        if state["training"]:
            state["n"] += 1
            state["mean"] += (x - state["mean"]) / state["n"]
        return w * (x - state["mean"])

    f = compile(normalised)
    for call in range(1, 26):
        if call == 12:
            state["training"] = False
        if call == 18:
            state["mean"] = 10.0
        yield f(0.5 * call), w
        yield state


@scenario
def file_is_appended_to_and_read(compile):
    with tempfile.TemporaryDirectory() as folder:
        path, w = pathlib.Path(folder, "log.txt"), Value(1.0)

        def value(x):
            with path.open("a") as log:
                log.write("x")
            return w * x

        f = compile(value)
        for call in range(1, 15):
            yield f(0.1 * call), w
            yield path.read_text()


@scenario
def file_of_settings_read_at_each_call(compile):
    with tempfile.TemporaryDirectory() as folder:
        path, w = pathlib.Path(folder, "rate.txt"), Value(1.0)
        path.write_text("0.5")
        f = compile(lambda x: w * x * float(path.read_text()))
        for call in range(1, 18):
            if call == 6:
                path.write_text("4.0")
            yield f(0.1 * call), w


@scenario
def rows_go_into_a_database(compile):
    base, w = sqlite3.connect(":memory:"), Value(1.0)
    base.execute("create table seen (x real)")

    def value(x):
        base.execute("insert into seen values (1.0)")
        return w * x

    f = compile(value)
    for call in range(1, 15):
        yield f(0.1 * call), w
        yield base.execute("select count(*) from seen").fetchone()[0]
    base.close()


@scenario
def global_random_numbers_are_drawn(compile):
    w = Value(1.0)
    f = compile(lambda x: w * x + random.random())
    for _ in range(1, 15):
        yield f(0.5), w
    yield f.map([0.1 * k for k in range(9)])
    yield random.random()


@scenario
def numpy_random_numbers_are_drawn_in_one_branch(compile):
    w, noisy = Value(1.0), [False]
    f = compile(lambda x: w * x + (np.random.normal() if noisy[0] else 0.0))
    for call in range(1, 20):
        if call == 6:
            noisy[0] = True
        if call == 12:
            noisy[0] = False
        yield f(0.5), w
        yield np.random.random()


@scenario
def argument_list_is_changed(compile):
    w = Value(2.0)

    def value(xs):
        xs.sort()
        xs[0] += 1.0
        return w * xs[0]

    f = compile(value)
    for call in range(1, 15):
        xs = [0.3 * call, 1.0, -0.5]
        yield f(xs), w
        yield xs


@scenario
def rows_of_a_batch_are_changed(compile):
    w = Value(1.0)

    def value(row):
        row[0] = 2.0 * row[1]
        return w * row[0]

    f = compile(value)
    for call in range(1, 14):
        rows = [[0.1 * k, 1.0 * k + call] for k in range(9)]
        yield f.map(rows)
        yield rows


@scenario
def own_step_of_descent_inside(compile):
    w = Value(3.0)

    def value(x):
        loss = (w * x - 1.0) ** 2
        loss.backward()
        w.data -= 0.05 * w.grad
        w.grad = 0.0
        return loss.data

    f = compile(value)
    for call in range(1, 15):
        yield f(0.1 * call)
        yield w.data


@scenario
def optimizer_steps_between_calls(compile):
    model = nn.MLP(1, [4, 1], rng=random.Random(2))
    adam = optim.Adam(model, lr=0.05)
    f = compile(lambda x, y: (model(x) - y) ** 2)
    for call in range(1, 22):
        if call == 6:
            adam.lr = 0.2
        loss = f.mean([[0.1 * k] for k in range(16)], [0.01 * k * k for k in range(16)])
        loss.backward()
        adam.step()
        adam.zero_grad()
        yield loss.data
        yield model


@scenario
def own_tally_by_a_decorator_around_compile(compile):
    def tallied(function):
        @functools.wraps(function)
        def wrapper(*args):
            wrapper.tally += 1
            return function(*args)

        wrapper.tally = 0
        return wrapper

    w = Value(1.0)
    outside = tallied(compile(lambda x: w * x))
    inside = tallied(lambda x: w + x)
    f = compile(lambda x: inside(x))
    for call in range(1, 15):
        yield outside(0.1 * call), w
        yield f(0.1 * call), w
        yield [outside.tally, inside.tally]


@scenario
def warnings_are_said_each_time(compile):
    w = Value(1.0)

    def value(x):
        if x > 1.0:
            warnings.warn(f"{x:.1f} is large", UserWarning, stacklevel=2)
        return w * x

    f = compile(value)
    for call in range(1, 18):
        yield f(0.2 * call), w


@scenario
def attributes_are_set_by_the_function_on_itself(compile):
    w = Value(1.0)

    def value(x):
        value.last = x
        return w * x

    f = compile(value)
    for call in range(1, 15):
        yield f(0.25 * call), w
        yield value.last


@scenario
def exception_after_an_effect(compile):
    started, w = [], Value(1.0)

    def value(x):
        started.append(x)
        if x > 1.0:
            raise RuntimeError("too far")
        return w * x

    f = compile(value)
    for call in range(1, 18):
        yield attempt(f, 0.2 * call), w
        yield started


@scenario
def effect_that_only_a_later_example_has(compile):
    seen, w = set(), Value(1.0)

    def value(x):
        noted = seen.add if round(x * 10) in (6, 11) else abs
        noted(x)
        return w * x

    f = compile(value)
    for call in range(1, 16):
        yield f(0.1 * call), w
        yield sorted(seen)
