"""Scenarios of threads, tasks and processes: they change what is read, or they all call."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import copy
import functools
import gc
import os
import queue
import random
import signal
import threading
import weakref

import wengert
from tests.scenarios.kit import attempt, scenario
from wengert import Value, nn


def in_a_thread(function, *args):
    """What a function gives in a thread of its own that has ended."""
    answers = []
    thread = threading.Thread(target=lambda: answers.append(function(*args)))
    thread.start()
    thread.join()
    return answers[0]


@scenario
def thread_writes_the_settings(compile):
    settings, w = {"scale": 1.0}, Value(1.0)
    f = compile(lambda x: w * x * settings["scale"])
    for call in range(1, 18):
        if call in (6, 12):
            in_a_thread(settings.update, {"scale": 1.0 * call})
        yield f.mean([0.1 * call + 0.01 * k for k in range(64)]), w


@scenario
def thread_replaces_an_object_under_a_lock(compile):
    class Schedule:
        def __init__(self):
            self.lock, self.rate = threading.Lock(), 0.5

        def set(self, rate):
            with self.lock:
                self.rate = rate

    schedule, w = Schedule(), Value(2.0)
    f = compile(lambda x: w - schedule.rate * x)
    for call in range(1, 18):
        if call in (6, 12):
            in_a_thread(schedule.set, 1.0 / call)
        yield f(0.2 * call), w
        yield f.map([0.2 * call + 0.3 * k for k in range(9)])


@scenario
def lock_taken_inside(compile):
    lock, shared, w = threading.RLock(), {"k": 1.0}, Value(1.0)

    def value(x):
        with lock:
            return w * x * shared["k"]

    f = compile(value)
    for call in range(1, 18):
        if call == 6:
            with lock:
                shared["k"] = -2.0
        yield f(0.1 * call), w


@scenario
def worker_that_feeds_numbers_through_a_queue(compile):
    jobs, w = queue.Queue(), Value(1.0)
    limits = {"top": 1.0}

    def worker():
        while (job := jobs.get()) is not None:
            limits.update(job)
            jobs.task_done()

    thread = threading.Thread(target=worker, daemon=True)
    thread.start()
    f = compile(lambda x: wengert.minimum(w * x, limits["top"]))
    for call in range(1, 18):
        if call == 6:
            jobs.put({"top": 3.0})
            jobs.join()
        if call == 12:
            jobs.put({"top": 0.25})
            jobs.join()
        yield f(0.4 * call), w
    jobs.put(None)
    thread.join()


@scenario
def thread_local_numbers_in_several_threads(compile):
    class Local(threading.local):
        scale = 1.0

    local, w = Local(), Value(1.0)
    f = compile(lambda x: w * x * local.scale)

    def elsewhere(x):
        local.scale = 5.0
        return f(x)

    for call in range(1, 18):
        if call in (6, 9, 13):
            yield in_a_thread(elsewhere, 0.1 * call), w
        if call == 12:
            local.scale = -1.0
        yield f(0.1 * call), w


@scenario
def four_threads_call_the_same_function(compile):
    gains, w = [1.0, 2.0], Value(0.5)
    f = compile(lambda x, k: (w * x * gains[k]).tanh())
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for call in range(1, 14):
            if call == 6:
                gains[0] = -3.0
            if call == 12:
                gains.reverse()
            points = [0.1 * call * k for k in range(8)]
            yield list(pool.map(f, points, [0, 1] * 4)), w


@scenario
def four_threads_map_batches(compile):
    model, offset = nn.MLP(1, [3, 1], rng=random.Random(1)), {"b": 0.0}
    f = compile(lambda x: model(x) + offset["b"])
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for call in range(1, 14):
            if call == 6:
                offset["b"] = 1.5
            if call == 7:
                model.layers[1].neurons[0].b.data = -4.0
            yield list(pool.map(f.map, [[[0.1 * k * j] for k in range(9)] for j in range(4)]))


@scenario
def threads_count_their_calls(compile):
    lock, counts, w = threading.Lock(), {"calls": 0}, Value(1.0)

    def value(x):
        with lock:
            counts["calls"] += 1
        return w * x

    f = compile(value)
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        for call in range(1, 13):
            yield [y.data for y in pool.map(f, [0.1 * call] * 6)]
            yield counts["calls"]


@scenario
def first_call_in_another_thread(compile):
    scale, w = [1.0], Value(1.0)
    f = compile(lambda x: w * x + scale[0])
    yield in_a_thread(f, 0.5), w
    for call in range(2, 18):
        if call == 6:
            scale[0] = 8.0
        yield f(0.1 * call), w


@scenario
def timer_changes_a_rate(compile):
    config, w = {"rate": 1.0}, Value(1.0)
    f = compile(lambda x: w * x * config["rate"])
    for call in range(1, 16):
        if call in (6, 12):
            timer = threading.Timer(0.001, config.__setitem__, ("rate", 0.5 * call))
            timer.start()
            timer.join()
        yield f.mean([0.1 * call + 0.01 * k for k in range(64)]), w


@scenario
def name_and_identity_of_the_thread(compile):
    w = Value(1.0)

    def value(x):
        return w * x if threading.current_thread() is threading.main_thread() else -w * x

    f = compile(value)
    for call in range(1, 18):
        yield (in_a_thread(f, 0.1 * call) if call in (6, 7, 12) else f(0.1 * call)), w


@scenario
def tasks_of_asyncio_share_a_function(compile):
    state, w = {"gain": 1.0}, Value(0.5)
    f = compile(lambda x: w * x * state["gain"])

    async def task(x):
        await asyncio.sleep(0)
        return f(x)

    async def all_of(call):
        return await asyncio.gather(*[task(0.1 * call * k) for k in range(4)])

    for call in range(1, 15):
        if call == 6:
            state["gain"] = -1.0
        yield asyncio.run(all_of(call)), w


@scenario
def context_variable_per_task(compile):
    temperature, w = contextvars.ContextVar("temperature", default=1.0), Value(1.0)
    f = compile(lambda x: w * x / temperature.get())

    async def task(x, t):
        temperature.set(t)
        await asyncio.sleep(0)
        return f(x)

    async def main(call):
        return await asyncio.gather(task(1.0 * call, 1.0), task(1.0 * call, 2.0 if call > 5 else 1.0))

    for call in range(1, 15):
        yield asyncio.run(main(call)), w


@scenario
def running_loop_decides(compile):
    w = Value(1.0)

    def value(x):
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return w * x
        return w + x

    f = compile(value)

    async def inside(x):
        return f(x)

    for call in range(1, 18):
        yield (asyncio.run(inside(0.1 * call)) if call in (6, 12, 13) else f(0.1 * call)), w


@scenario
def signal_handler_changes_a_flag(compile):
    flags, w = {"reduce": False}, Value(1.0)
    before = signal.signal(signal.SIGUSR1, lambda *_: flags.update(reduce=True))
    f = compile(lambda x: 0.1 * w * x if flags["reduce"] else w * x)
    for call in range(1, 16):
        if call == 6:
            os.kill(os.getpid(), signal.SIGUSR1)
        yield f(0.1 * call), w
    signal.signal(signal.SIGUSR1, before)


@scenario
def finaliser_counts_what_is_gone(compile):
    gone, w = [], Value(1.0)

    class Temporary:
        pass

    def value(x):
        thing = Temporary()
        thing.x = x
        weakref.finalize(thing, gone.append, 1)
        return w * thing.x

    f = compile(value)
    for call in range(1, 15):
        yield f(0.1 * call), w
        gc.collect()
        yield len(gone)


@scenario
def deep_copies_of_a_model_with_a_compiled_method(compile):
    class Model:
        def __init__(self):
            self.w, self.gain = Value(0.5), 1.0
            self.predict = compile(functools.partial(Model.forward, self))

        def forward(self, x):
            return self.gain * self.w * x

    model = Model()
    for call in range(1, 16):
        if call == 6:
            model.gain = 4.0
        if call == 12:
            model.w = copy.deepcopy(model.w)
            model.w.data = -1.0
        yield model.predict(0.1 * call), model.w


@scenario
def settings_changed_while_the_function_runs(compile):
    stage, w = {"n": 1.0}, Value(1.0)
    go, done = threading.Event(), threading.Event()

    def value(x):
        first = stage["n"]
        if go.is_set():
            done.wait(5.0)
        return w * x * first + stage["n"]

    def meddler():
        stage["n"] = 7.0
        done.set()

    f = compile(value)
    for call in range(1, 16):
        if call == 6:
            go.set()
            timer = threading.Timer(0.02, meddler)
            timer.start()
        yield attempt(f, 0.1 * call), w
