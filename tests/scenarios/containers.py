"""Scenarios of containers and buffers that change: collections, array, bytearray, memoryview, ctypes, queues, heaps."""

from __future__ import annotations

import bisect
import collections
import contextlib
import ctypes
import heapq
import io
import queue
import random
import struct
import time
from array import array

import wengert
from tests.scenarios.kit import scenario
from wengert import Value


@scenario
def deque_as_a_moving_window(compile):
    window, w = collections.deque([1.0, 2.0, 3.0], maxlen=3), Value(1.0)
    f = compile(lambda x: w * x - sum(window) / len(window))
    for call in range(1, 24):
        if call > 5:
            window.append(0.5 * call)
        if call == 18:
            window.rotate(1)
            window.pop()
        yield f.mean([0.1 * call + 0.02 * k for k in range(64)]), w


@scenario
def counter_of_words(compile):
    counts, w = collections.Counter("banana"), Value(0.5)
    f = compile(lambda x: w * x * counts["a"] + counts["missing"] + counts.total())
    for call in range(1, 18):
        if call == 6:
            counts.update("aaa")
        if call == 12:
            counts.subtract({"b": 4})
        yield f(0.3 * call), w
        yield f.map([0.3 * call + 0.25 * k for k in range(9)])


@scenario
def defaultdict_that_is_read_and_grows(compile):
    table, w = collections.defaultdict(lambda: 0.25, {"a": 2.0}), Value(1.0)
    f = compile(lambda x: w * x * table["a"] + table["b"])
    for call in range(1, 18):
        if call == 6:
            table["b"] = -3.0
        if call == 12:
            del table["a"]
        yield f(0.1 * call), w
        yield sorted(table)


@scenario
def ordered_dict_whose_order_counts(compile):
    stages = collections.OrderedDict(double=2.0, shift=1.0)
    w = Value(0.5)

    def value(x):
        y = w * x
        for name, amount in stages.items():
            y = y * amount if name == "double" else y + amount
        return y

    f = compile(value)
    for call in range(1, 18):
        if call == 6:
            stages.move_to_end("double")
        if call == 12:
            stages["shift"] = -5.0
        yield f(0.2 * call), w


@scenario
def plain_dict_whose_order_counts(compile):
    stages, w = {"double": 2.0, "shift": 1.0}, Value(0.5)

    def value(x):
        y = w * x
        for name in stages:
            y = y * stages[name] if name == "double" else y + stages[name]
        return y

    f = compile(value)
    for call in range(1, 16):
        if call == 6:
            stages["double"] = stages.pop("double")
        yield f(0.2 * call), w
        yield f.map([0.1 * k for k in range(9)])


@scenario
def chain_map_of_scopes(compile):
    defaults, user = {"lr": 0.1, "k": 1.0}, {}
    scopes, w = collections.ChainMap(user, defaults), Value(2.0)
    f = compile(lambda x: w - scopes["lr"] * x * scopes["k"])
    for call in range(1, 22):
        if call == 6:
            defaults["lr"] = 0.5
        if call == 12:
            scopes["k"] = 4.0
        if call == 18:
            scopes.maps.insert(0, {"lr": -1.0})
        yield f.mean([0.1 * call + 0.05 * k for k in range(64)]), w


@scenario
def user_dict_and_user_list(compile):
    class Lower(collections.UserDict):
        def __getitem__(self, key):
            return super().__getitem__(key.lower())

    table, gains, w = Lower(rate=1.0), collections.UserList([1.0, 2.0]), Value(0.5)
    f = compile(lambda x: w * x * table["RATE"] + gains[-1])
    for call in range(1, 20):
        if call == 6:
            table["rate"] = 3.0
        if call == 12:
            gains.append(10.0)
        if call == 14:
            gains.data = [0.125]
        yield f(0.2 * call), w
        yield f.map([0.2 * call + 0.3 * k for k in range(9)])


@scenario
def user_string_decides(compile):
    mode, w = collections.UserString("square"), Value(1.5)
    f = compile(lambda x: (w * x) ** 2 if mode == "square" else w * x)
    for call in range(1, 16):
        if call == 6:
            mode.data = "line"
        yield f(0.3 * call), w


@scenario
def namedtuple_of_values_replaced(compile):
    Weights = collections.namedtuple("Weights", "slope level")
    a, b, c = Value(1.0), Value(0.5), Value(-2.0)
    held = [Weights(a, b)]
    f = compile(lambda x: held[0].slope * x + held[0].level)
    for call in range(1, 18):
        if call == 6:
            held[0] = held[0]._replace(slope=c)
        if call == 12:
            held[0] = Weights(*reversed(held[0]))
        yield f.mean([0.1 * call + 0.01 * k for k in range(64)]), a, b, c


@scenario
def list_of_values_edited_in_every_way(compile):
    values = [Value(0.1 * k) for k in range(5)]
    weights = values[:3]
    f = compile(lambda x: sum((k + 1) * w * x for k, w in enumerate(weights)))
    for call in range(1, 26):
        if call == 6:
            weights[0], weights[2] = weights[2], weights[0]
        if call == 9:
            weights[1] = values[4]
        if call == 12:
            weights.reverse()
        if call == 15:
            weights[:] = values[2:5]
        if call == 19:
            weights.insert(0, weights.pop())
        if call == 22:
            weights.sort(key=lambda v: v.data)
        yield f(0.5 * call), values


@scenario
def list_of_values_rotated_in_a_mean(compile):
    weights = [Value(1.0), Value(-1.0), Value(0.25)]
    f = compile(lambda x: (weights[0] * x + weights[1]).tanh() * weights[2])
    for call in range(1, 15):
        if call in (6, 10, 13):
            weights.append(weights.pop(0))
        yield f.mean([0.05 * k - 0.1 * call for k in range(64)]), weights


@scenario
def nested_dict_of_lists_of_values(compile):
    a, b, c = Value(1.0), Value(2.0), Value(3.0)
    params = {"block": {"w": [a, b], "b": c}}
    f = compile(lambda x: params["block"]["w"][0] * x + params["block"]["w"][1] * x * x + params["block"]["b"])
    for call in range(1, 20):
        if call == 6:
            params["block"]["w"][0] = c
        if call == 12:
            params["block"] = {"w": (b, b), "b": 0.0}
        yield f.mean([0.1 * call + 0.02 * k for k in range(64)]), a, b, c


@scenario
def set_of_names_as_a_mask(compile):
    frozen, a, b = {"b"}, Value(1.0), Value(2.0)
    named = {"a": a, "b": b}
    f = compile(lambda x: sum(v.data * x if n in frozen else v * x for n, v in named.items()))
    for call in range(1, 18):
        if call == 6:
            frozen ^= {"a", "b"}
        if call == 12:
            frozen.clear()
        yield f(0.3 * call), a, b


@scenario
def array_of_doubles(compile):
    gains, w = array("d", [1.0, 2.0]), Value(0.5)
    f = compile(lambda x: w * x * gains[0] + gains[1])
    for call in range(1, 18):
        if call == 6:
            gains[0] = -4.0
        if call == 12:
            gains.append(1.0)
            gains.reverse()
        yield f.mean([0.2 * call + 0.05 * k for k in range(64)]), w


@scenario
def array_of_integers_by_index(compile):
    order, table, w = array("i", [0, 1, 2]), [0.5, 5.0, 50.0], Value(1.0)
    f = compile(lambda x, k: w * x * table[order[k]])
    for call in range(1, 18):
        if call == 6:
            order[0], order[2] = order[2], order[0]
        yield f(1.0, call % 3), w


@scenario
def bytearray_of_levels(compile):
    levels, w = bytearray([10, 20, 30]), Value(0.01)
    f = compile(lambda x: w * x * levels[1])
    for call in range(1, 18):
        if call == 6:
            levels[1] = 200
        if call == 12:
            levels[:] = b"\x01\x02\x03"
        yield f.mean([1.0 * call + 0.05 * k for k in range(64)]), w


@scenario
def memoryview_into_a_buffer(compile):
    buffer = array("d", [1.0, 2.0, 3.0])
    view, w = memoryview(buffer)[1:], Value(1.0)
    f = compile(lambda x: w * x * view[0] + view.tolist()[1])
    for call in range(1, 16):
        if call == 6:
            buffer[1] = 20.0
        if call == 12:
            view[1] = -3.0
        yield f(0.1 * call), w
        yield f.map([0.1 * call + 0.1 * k for k in range(9)])


@scenario
def ctypes_double_and_structure(compile):
    class Gains(ctypes.Structure):
        _fields_ = [("left", ctypes.c_double), ("right", ctypes.c_double)]

    gains, w = Gains(1.0, 2.0), Value(1.0)
    f = compile(lambda x: w * x * gains.left + gains.right)
    for call in range(1, 18):
        if call == 6:
            gains.left = 5.0
        if call == 12:
            gains.right = -5.0
        yield f(0.2 * call), w


@scenario
def bytes_in_a_buffer_unpacked_inside(compile):
    packed, w = bytearray(struct.pack("<2d", 1.0, 2.0)), Value(0.5)

    def value(x):
        scale, shift = struct.unpack("<2d", packed)
        return w * x * scale + shift

    f = compile(value)
    for call in range(1, 16):
        if call == 6:
            struct.pack_into("<d", packed, 0, 9.0)
        yield f(0.1 * call), w


@scenario
def string_io_read_inside(compile):
    text, w = io.StringIO("1.5 2.5"), Value(1.0)
    f = compile(lambda x: w * x * sum(map(float, text.getvalue().split())))
    for call in range(1, 16):
        if call == 6:
            text.seek(0, io.SEEK_END)
            text.write(" 10")
        yield f(0.2 * call), w


@scenario
def queue_of_jobs_is_drained(compile):
    jobs, w = queue.Queue(), Value(1.0)
    for k in range(40):
        jobs.put(0.1 * k)

    f = compile(lambda x: w * x + jobs.get_nowait())
    for _ in range(1, 16):
        yield f(0.5), w
        yield jobs.qsize()


@scenario
def queue_size_decides(compile):
    jobs, w = queue.SimpleQueue(), Value(1.0)
    f = compile(lambda x: w * x if jobs.empty() else w * x / jobs.qsize())
    for call in range(1, 18):
        if call in (6, 7, 12):
            jobs.put(call)
        yield f(1.0 * call), w


@scenario
def heap_pushed_outside_and_read_inside(compile):
    heap, w = [3.0, 5.0, 4.0], Value(1.0)
    f = compile(lambda x: w * x * heap[0] + sum(heapq.nsmallest(2, heap)))
    for call in range(1, 20):
        if call == 6:
            heapq.heappush(heap, 1.0)
        if call == 12:
            heapq.heapreplace(heap, 8.0)
        yield f(0.1 * call), w
        yield f.map([0.1 * call + 0.3 * k for k in range(9)])


@scenario
def heap_pushed_and_popped_inside(compile):
    heap, w = [3.0, 1.0, 2.0], Value(0.5)
    heapq.heapify(heap)

    def value(x):
        heapq.heappush(heap, 4.0)
        return w * x * heapq.heappop(heap)

    f = compile(value)
    for _ in range(1, 15):
        yield f(1.0), w
        yield list(heap)


@scenario
def bisect_in_a_table_of_breaks(compile):
    breaks, rates, w = [10.0, 20.0], [0.1, 0.2, 0.3], Value(1.0)
    f = compile(lambda x: w * x * rates[bisect.bisect(breaks, x)])
    for call in range(1, 24):
        if call == 6:
            breaks[0] = 3.0
        if call == 12:
            bisect.insort(breaks, 15.0)
            rates.append(9.0)
        yield f(1.5 * call), w
    yield f.map([3.0 * k for k in range(9)])


@scenario
def own_generator_of_random_numbers_is_held(compile):
    rng, w = random.Random(7), Value(1.0)
    f = compile(lambda x: w * x + rng.gauss(0.0, 1.0))
    for _ in range(1, 15):
        yield f(0.5), w
    yield f.map([0.1 * k for k in range(9)])
    yield rng.random()


@scenario
def dropout_with_a_seed_that_is_an_argument(compile):
    rate, w = [0.5], [Value(0.1 * k + 0.1) for k in range(4)]

    def value(x, seed):
        draw = random.Random(seed)
        return sum(v * x for v in w if draw.random() > rate[0])

    f = compile(value)
    for call in range(1, 22):
        if call == 6:
            rate[0] = 0.1
        yield f(1.0, 3 if call < 12 else call), w


@scenario
def clock_that_the_program_moves(compile):
    now, w = [100.0], Value(1.0)
    real, time.monotonic = time.monotonic, lambda: now[0]
    try:
        f = compile(lambda x: w * x * (time.monotonic() - 99.0))
        for call in range(1, 18):
            if call > 5:
                now[0] += 0.5
            yield f(0.1 * call), w
    finally:
        time.monotonic = real


@scenario
def exit_stack_collected_outside(compile):
    stack, order, w = contextlib.ExitStack(), [], Value(1.0)
    stack.callback(order.append, "first")

    def value(x):
        with contextlib.ExitStack() as own:
            own.callback(order.append, "inner")
            return wengert.exp(w * x)

    f = compile(value)
    for call in range(1, 14):
        yield f(0.1 * call), w
        yield order
    stack.close()
    yield order


@scenario
def slice_of_the_settings_and_range(compile):
    part, steps, w = [slice(0, 2)], [range(3)], Value(0.5)
    f = compile(lambda xs: w * sum(xs[part[0]]) + sum(k * x for k, x in zip(steps[0], xs)))
    for call in range(1, 18):
        if call == 6:
            part[0] = slice(1, None)
        if call == 12:
            steps[0] = range(5, 0, -2)
        yield f([0.1 * call, 1.0, -2.0, 0.5]), w


@scenario
def dict_views_kept_from_before(compile):
    table, w = {"a": 1.0, "b": 2.0}, Value(1.0)
    values, keys = table.values(), table.keys()
    f = compile(lambda x: w * x * sum(values) + ("c" in keys))
    for call in range(1, 18):
        if call == 6:
            table["a"] = 10.0
        if call == 12:
            table["c"] = 0.5
        yield f(0.2 * call), w
        yield f.map([0.2 * call + 0.1 * k for k in range(9)])
