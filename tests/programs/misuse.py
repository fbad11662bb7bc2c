"""Programs that do more than compute: state, effects, chance, caches, iterators, in-place changes, type tests, text."""

from __future__ import annotations

import asyncio
import contextlib
import copy
import functools
import inspect
import io
import itertools
import json
import logging
import math
import numbers
import operator
import os
import pickle
import random
import tempfile
import threading
import time
import warnings
import weakref
from collections import Counter, OrderedDict, defaultdict, deque, namedtuple
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np

import wengert
from tests.programs.kit import (
    alias,
    among,
    array,
    built,
    choice,
    flag,
    indices,
    matrix,
    pair,
    program,
    real,
    reals,
    record,
    text,
    weights,
    whole,
    wholes,
)
from wengert import Value

PATHS = "its numbers take it along more than 32 paths"
TEXT = "a number becomes text"
CHANCE = "random numbers are drawn"
STATE = "it keeps state from call to call"
EFFECTS = "it has effects"
IN_PLACE = "it changes its arguments"

CALLS = {"count": 0}
CURRENT = ContextVar("current", default=1.0)
LEVEL = 1.0
Sample = namedtuple("Sample", "x y label")


def counted(function):
    """A decorator that counts, as everybody has one."""

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        wrapper.calls += 1
        return function(*args, **kwargs)

    wrapper.calls = 0
    return wrapper


@functools.lru_cache(maxsize=None)
def slow_table(n):
    return [math.sin(k * n) for k in range(4)]


class Meter:
    """A running mean, as for logging."""

    def __init__(self):
        self.total, self.count = 0.0, 0

    def add(self, x):
        self.total += x
        self.count += 1

    @property
    def mean(self):
        return self.total / max(1, self.count)


# ------------------------------------------------------------------------- S1: equality, hashes, membership


@program(a=among(1.0, 2.0, 3.0), b=among(1.0, 2.0, 3.0))
def equal_numbers(w):
    def f(a, b):
        return w * 3 if a == b else w * a

    return f


@program(k=whole(0, 2), x=real())
def equal_integers(w, v):
    def f(k, x):
        if k == 0:
            return w * x
        if k == 1:
            return v * x
        return (w + v) * x

    return f


@program(x=whole(0, 5), xs=wholes(4, 0, 5))
def membership_in_an_argument(w):
    def f(x, xs):
        return w * 2 if x in xs else w * x

    return f


@program(xs=wholes(3, 0, 1), ys=wholes(3, 0, 1))
def equal_lists(w, v):
    def f(xs, ys):
        return w * sum(xs) + (v if xs == ys else 0.0)

    return f


@program(xs=wholes(4, 0, 2), engine="its numbers take it along more than 32 paths")
def distinct_items(w):
    def f(xs):
        return w * len(set(xs)) + sum(xs) * 0.1

    return f


@program(xs=wholes(5, 0, 1))
def counted_items(w, v):
    def f(xs):
        counts = Counter(xs)
        return w * counts[0] + v * counts[1] ** 2

    return f


@program(x=among(0.5, 1.0, 1.5))
def equal_to_a_value(w):
    def f(x):
        marker = Value(1.0)
        return w * 2 if x == marker else w * x

    return f


@program(x=whole(0, 4))
def key_of_a_dict(w, v):
    names = {0: w, 1: v, 2: w * 2}

    def f(x):
        return names.get(x, 0.5) * 2 + names.setdefault(3, v)

    return f


@program(x=wholes(4, 0, 3), y=whole(0, 3))
def index_and_count(w):
    def f(x, y):
        return w * x.count(y) + (w * x.index(y) if y in x else w)

    return f


@program(x=among(0.5, 1.0), y=among(0.5, 1.0, -1.0))
def not_equal(w, v):
    def f(x, y):
        return w * x if x != y else v

    return f


@program(x=reals(3, -2.0, 2.0), y=among(0.0, 1.0))
def zero_as_a_switch(w, v):
    def f(x, y):
        total = w * sum(x)
        if not y:
            return total
        return total * v + (y or 3.0)

    return f


@program(p=pair(whole(0, 2), whole(0, 2)))
def tuple_as_a_key(w, v):
    board = {(0, 0): 1.0, (1, 1): 2.0, (2, 0): -1.0}

    def f(p):
        return w * board.get(p, 0.25) + v

    return f


# ------------------------------------------------------------------------- S2: type tests


@program(x=real())
def is_it_a_float(w):
    def f(x):
        return w * x if isinstance(x, float) else w * 100

    return f


@program(n=whole(0, 5))
def is_it_an_integer(w):
    def f(n):
        if isinstance(n, bool):
            return w
        return w * n if isinstance(n, int) else w * 100

    return f


@program(x=real())
def is_the_data_a_float(w):
    def f(x):
        v = w * x
        return v * 2 if isinstance(v.data, float) else v * 100

    return f


@program(x=real(), n=whole(0, 3))
def numbers_abstract_classes(w):
    def f(x, n):
        factor = 2.0 if isinstance(x, numbers.Real) and isinstance(n, numbers.Integral) else 5.0
        return w * x * factor + n

    return f


@program(x=real())
def is_it_a_scalar(w):
    def f(x):
        return w * x if np.isscalar(x) else w * sum(x)

    return f


@program(x=array(3))
def dtype_of_an_array(w):
    def f(x):
        factor = 2.0 if x.dtype == float else 7.0
        assert isinstance(x, np.ndarray)
        assert x.shape == (3,)
        return w * factor * x.sum() + x.ndim + x.size + len(x)

    return f


@program(q=flag(), x=real())
def is_it_true(w):
    def f(q, x):
        if q is True:
            return w * x
        return w * 5 if q is False else w * 100

    return f


@program(x=real(0.1, 2.0))
def a_type_error_that_is_caught(w):
    def f(x):
        try:
            return w * math.log(x)
        except TypeError:
            return w * 100

    return f


@program(x=choice(1, 1.0, True, "1", None))
def any_type_at_all(w):
    def f(x):
        kinds = {int: 1.0, float: 2.0, bool: 3.0, str: 4.0, type(None): 5.0}
        return w * kinds[type(x)]

    return f


@program(x=real())
def type_of_a_number(w):
    def f(x):
        return w * 2 * x if type(x) is float else w * 100

    return f


@program(x=real(), y=reals(2))
def duck_typing(w):
    def f(x, y):
        total = w * 0.0
        for thing in (x, y):
            if hasattr(thing, "__len__"):
                total = total + w * len(thing)
            elif hasattr(thing, "is_integer"):
                total = total + w * x
            else:
                total = total + 100
        return total

    return f


@functools.singledispatch
def size_of(x):
    return 100.0


@size_of.register
def _(x: float):
    return abs(x)


@size_of.register
def _(x: list):
    return float(len(x))


@program(x=real(), y=reals(2))
def single_dispatch(w):
    def f(x, y):
        return w * size_of(x) + w * size_of(y) ** 2

    return f


@program(x=whole(0, 6))
def pattern_matching(w, v):
    def f(x):
        match x:
            case 0:
                return w
            case 1 | 2:
                return v * x
            case int(n) if n > 4:
                return w * v * n
            case _:
                return w + v

    return f


# ------------------------------------------------------------------------- S3: text and copies


@program(x=real(), engine=TEXT)
def through_formatted_text(w):
    def f(x):
        return w * float(f"{x:.1f}")

    return f


@program(x=among(0.1, 0.2, 0.3), engine=TEXT)
def text_of_a_result_as_a_key(w):
    table = {"0.1": 1.0, "0.2": 2.0}

    def f(x):
        return w * table.get(f"{w * x:.1f}", 3.0)

    return f


@program(n=whole(0, 3))
def special_tokens(w):
    special = {"tok0": 1.0, "tok2": 5.0}

    def f(n):
        return w * special.get(f"tok{n}", 0.5)

    return f


@program(x=real())
def shallow_copy_of_a_number(w):
    def f(x):
        y = copy.copy(x)
        return w * y * x

    return f


@program(state=record(x=real(), history=reals(3)))
def deep_copy_of_an_argument(w):
    def f(state):
        mine = copy.deepcopy(state)
        mine["history"].append(mine["x"])
        return w * sum(mine["history"]) + len(state["history"])

    return f


@program(x=reals(2), engine="pickling takes numbers out")
def through_a_pickle(w):
    def f(x):
        y = pickle.loads(pickle.dumps(x))
        return w * y[0] + y[1]

    return f


@program(x=real(), y=real(), engine=TEXT)
def through_json(w):
    def f(x, y):
        told = json.loads(json.dumps({"x": x, "y": [y, 1]}))
        return w * told["x"] + told["y"][0]

    return f


@program(x=real(-2.0, 2.0), engine=TEXT)
def sign_by_its_text(w):
    def f(x):
        return -w if str(x).startswith("-") else w * len(repr(1.5))

    return f


@program(x=real(), y=choice(1j, 2.0 - 1j), engine="complex numbers")
def complex_numbers(w):
    def f(x, y):
        z = complex(x, 1.0) * y
        return w * z.real + w * abs(z) + w * (z.conjugate() * z).real

    return f


@program(x=real(), n=whole(0, 3), engine=TEXT)
def through_percent_and_format(w):
    def f(x, n):
        label = "%.2f and %d" % (x, n)
        other = "{:+.1e}".format(x)
        return w * float(label.split()[0]) + float(other) + n

    return f


@program(x=real(0.5, 2.0), engine="float() takes the number out")
def through_float_and_array(w):
    def f(x):
        return w * float(x) + np.float64(x) * w + np.array([x, 1.0]).sum() * w

    return f


# ------------------------------------------------------------------------- S4: arguments changed in place


@program(x=array(4), modes="call values", engine=IN_PLACE)
def centred_in_place(w):
    def f(x):
        x -= x.mean()
        return w * (x * x).sum()

    return f


@program(x=reals(4), modes="call values", engine=IN_PLACE)
def sorted_in_place(w, v):
    def f(x):
        x.sort()
        return w * x[0] + v * x[-1]

    return f


@program(xs=reals(3), modes="call values", engine=IN_PLACE)
def popped(w):
    def f(xs):
        total = w * 0.0
        while xs:
            total = total * 0.5 + w * xs.pop()
        return total

    return f


@program(settings=record(rate=real(0.1, 1.0), steps=whole(1, 3)), modes="call values", engine=IN_PLACE)
def a_dict_changed_in_place(w):
    def f(settings):
        settings["steps"] += 1
        rate = settings.setdefault("rate", 1.0)
        settings["last"] = rate
        return w * rate * settings["steps"]

    return f


@program(x=matrix(3, 3), modes="call values", engine=IN_PLACE)
def rows_swapped_in_place(w):
    def f(x):
        x[0], x[2] = x[2], x[0]
        x[1][1] = 0.0
        return w * sum(row[0] for row in x) + w * x[0][1]

    return f


@program(x=array(3, 3), modes="call values", engine=IN_PLACE)
def filled_in_place(w):
    def f(x):
        np.fill_diagonal(x, 1.0)
        x[0] *= 2
        return w * x.sum()

    return f


@program(x=array(6))
def a_copy_changed_in_place(w):
    def f(x):
        y = x.copy()
        y -= y.mean()
        y[0] = 1.0
        return w * (y * y).sum() + x[0]

    return f


@program(x=reals(5), engine="its numbers are sorted in more than 32 ways")
def a_sorted_copy(w):
    def f(x):
        ranked = sorted(x)
        ranked.append(0.5)
        ranked.reverse()
        return w * ranked[0] + w * len(ranked)

    return f


# ------------------------------------------------------------------------- S5: training inside


@program(x=real(), modes="call values", effects=True, engine="it calls backward()")
def backward_inside(w):
    def f(x):
        inner = (w * x) ** 2
        inner.backward()
        return w * 2

    return f, lambda: w.data


@program(x=real(0.5, 1.0), modes="call values", effects=True, engine="it trains")
def a_training_step_inside(w):
    v = Value(1.0)

    def f(x):
        loss = (v * x - 1) ** 2
        v.grad = 0.0
        loss.backward()
        v.data -= 0.1 * v.grad
        return w * v.data + loss

    return f, lambda: v.data


@program(x=real(), effects=True, engine="it sets data")
def data_is_set_inside(w):
    v = Value(0.0)

    def f(x):
        v.data = x
        return w * v

    return f, lambda: v.data


@program(x=real(), effects=True, engine="it reads a gradient")
def a_gradient_is_read_and_reset(w):
    v = Value(1.0)
    v.grad = 3.0

    def f(x):
        seen = v.grad
        v.grad = 0.5 * seen
        return w * x + seen

    return f, lambda: v.grad


@program(x=real(), modes="call values", effects=True, engine="it trains")
def an_optimizer_inside(w):
    v = [Value(1.0), Value(-0.5)]
    sgd = wengert.optim.SGD(v, lr=0.1)

    def f(x):
        loss = (v[0] * x + v[1]) ** 2
        sgd.zero_grad()
        loss.backward()
        sgd.step()
        return w * v[0].data + v[1].data

    return f, lambda: [p.data for p in v]


@program(x=real(0.5, 1.5))
def an_own_inner_gradient(w):
    def f(x):
        a = Value(0.5)
        for _ in range(3):
            a = a - 0.1 * (2 * (a * x - w) * x)
        return a * a

    return f


# ------------------------------------------------------------------------- S6: small numbers


@program(x=real(0.5, 2.0))
def results_far_below_one(w):
    def f(x):
        return w * x * 1e-12

    return f


@program(x=real(0.5, 2.0), effects=True, engine=STATE)
def small_results_that_go_stale(w):
    memory = {"n": 0}

    def f(x):
        memory["n"] += 1
        return w * x * memory["n"] * 1e-12

    return f, lambda: memory


@program(x=real(0.5, 2.0), engine=CHANCE)
def small_results_of_chance(w):
    def f(x):
        return w * x * random.random() * 1e-10

    return f


@program(x=real(0.5, 2.0))
def a_small_difference_of_large_numbers(w, v):
    def f(x):
        return (w * 1e8 + v * x) - w * 1e8

    return f


@program(x=real(0.5, 2.0), scale=among(1e-30, 1e30))
def numbers_of_any_size(w, v):
    def f(x, scale):
        return w * x * scale + v * scale * 1e-3

    return f


# ------------------------------------------------------------------------- S7, S8: surroundings that change


@program(x=real(), effects=True, engine=STATE)
def a_counter_in_a_closure(w):
    n = 0

    def f(x):
        nonlocal n
        n += 1
        return w * x * (1 if n % 3 else 2)

    return f, lambda: n


@program(x=real(), effects=True, engine=STATE)
def a_counter_in_a_global(w):
    def f(x):
        global LEVEL
        LEVEL = LEVEL * 1.01
        return w * x * LEVEL

    return f, lambda: LEVEL


@program(x=real(), effects=True, engine=STATE)
def a_partial_over_a_changing_list(w):
    rates = [1.0]

    def g(rates, x):
        rates[0] *= 0.9
        return w * x * rates[0]

    return functools.partial(g, rates), lambda: rates


@program(x=real())
def a_partial_function(w, v):
    def g(scale, x, power=1):
        return (w * scale * x + v) ** power

    return functools.partial(g, 2.0, power=2)


class Scaler:
    """A callable object with a setting."""

    def __init__(self, w, rate):
        self.w, self.rate = w, rate

    def __call__(self, x):
        return self.w * x * self.rate

    def method(self, x):
        return self.w * x + self.rate


@program(x=real())
def a_callable_object(w):
    return Scaler(w, 0.5)


@program(x=real())
def a_bound_method(w):
    return Scaler(w, 0.5).method


@program(x=real(), effects=True, engine=STATE)
def a_callable_object_that_learns(w):
    class Annealed(Scaler):
        def __call__(self, x):
            self.rate *= 0.9
            return super().__call__(x)

    scaler = Annealed(w, 1.0)
    return scaler, lambda: scaler.rate


@program(x=real(), effects=True, engine=EFFECTS)
def a_counting_wrapper(w):
    @counted
    def f(x):
        return w * x

    return f, lambda: f.calls


@program(x=real())
def a_wrapper_that_scales(w):
    def scaled(function):
        @functools.wraps(function)
        def wrapper(x):
            return 2 * function(x + 1)

        return wrapper

    @scaled
    def f(x):
        return w * x

    return f


@program(x=real(), n=whole(0, 2))
def a_function_from_a_table(w, v):
    table = {0: lambda x: w * x, 1: lambda x: v * x * x, 2: lambda x: w * v}

    def f(x, n):
        return table[n](x)

    return f


@program(x=real())
def settings_read_from_outside(w):
    settings = SimpleNamespace(rate=0.5, layers=[1.0, 2.0])

    def f(x):
        return w * x * settings.rate + sum(settings.layers)

    return f


@program(x=real(), effects=True, engine="a context variable is set")
def a_context_variable(w):
    def f(x):
        token = CURRENT.set(CURRENT.get() + 1)
        try:
            return w * x * CURRENT.get()
        finally:
            CURRENT.reset(token)

    return f, CURRENT.get


# ------------------------------------------------------------------------- S9: iterators and generators


@program(xs=built(lambda draw: iter([draw.random() for _ in range(4)])), modes="call", engine="an iterator is used up")
def an_iterator_as_argument(w):
    def f(xs):
        return w * sum(xs)

    return f


@program(
    xs=built(lambda draw: (k * k for k in range(draw.randint(2, 5)))), modes="call", engine="a generator is used up"
)
def a_generator_as_argument(w):
    def f(xs):
        return w * next(xs) + w * sum(xs)

    return f


@program(rng=built(lambda draw: random.Random(draw.random())), modes="call", engine=CHANCE)
def a_random_generator_as_argument(w):
    def f(rng):
        return w * rng.random() + rng.gauss(0, 1)

    return f


@program(rng=built(lambda draw: np.random.default_rng(draw.randint(0, 99))), modes="call", engine=CHANCE)
def a_numpy_generator_as_argument(w):
    def f(rng):
        return w * rng.normal() + rng.integers(3)

    return f


@program(source=built(lambda draw: io.StringIO(f"{draw.random()}\n2.5\n")), modes="call", engine="a file is read")
def a_file_as_argument(w):
    def f(source):
        return w * float(source.readline()) + len(source.read())

    return f


@program(queue=built(lambda draw: deque([draw.random(), 1.0, 2.0])), modes="call", engine=IN_PLACE)
def a_queue_as_argument(w):
    def f(queue):
        queue.rotate(1)
        return w * queue.popleft() + len(queue)

    return f


@program(x=real(), effects=True, engine=STATE)
def an_iterator_in_the_closure(w):
    rates = itertools.cycle([1.0, 2.0, 3.0])
    seen = []

    def f(x):
        rate = next(rates)
        seen.append(rate)
        return w * x * rate

    return f, lambda: seen


@program(xs=reals(4))
def an_own_generator(w):
    def partial_sums(xs):
        total = w * 0.0
        for x in xs:
            total = total + w * x
            yield total

    def f(xs):
        return sum(s * s for s in partial_sums(xs)) + next(iter(xs))

    return f


@program(span=built(lambda draw: range(draw.randint(1, 4))), modes="call")
def a_range_as_argument(w):
    def f(span):
        return w * sum(span) + len(span)

    return f


@program(names=choice(frozenset({"a"}), frozenset({"a", "b"}), frozenset()), x=real())
def a_set_as_argument(w):
    def f(names, x):
        return w * x * len(names) + ("b" in names)

    return f


# ------------------------------------------------------------------------- S10: aliasing


@program(a=reals(2), b=alias("a", reals(2)))
def the_same_list_twice(w):
    def f(a, b):
        if a is b:
            return w * 10
        return w * (a[0] + b[1])

    return f


@program(a=real(), b=alias("a", real()), modes="values")
def the_same_value_twice(w):
    def f(a, b):
        return w * a * 5 if a is b else w * a * b

    return f


@program(a=array(3), b=alias("a", array(3)), modes="call values", engine=IN_PLACE)
def written_through_an_alias(w):
    def f(a, b):
        a[0] = 5.0
        return w * (a * b).sum()

    return f


@program(a=reals(2), b=alias("a", reals(2)), modes="call values", engine=IN_PLACE)
def extended_through_an_alias(w):
    def f(a, b):
        a.append(1.0)
        return w * len(b) + w * sum(b)

    return f


@program(x=reals(3))
def rows_that_are_one_list(w):
    def f(x):
        rows = [[0.0] * 3] * 2
        rows[0][1] = x[1]
        return w * rows[1][1] + w * sum(x)

    return f


# ------------------------------------------------------------------------- S11, S12: Python's arithmetic


@program(p=among(0.5, 0.5, 0.0, 2.0), q=among(0.0, 1.0, 4.0, 3.0))
def resistors_in_parallel(w):
    def f(p, q):
        return w * (1 / (1 / p + 1 / q))

    return f


@program(x=among(0.0, 1.0, 2.0, 3.0), y=among(0.5, -1.0))
def powers_of_zero(w):
    def f(x, y):
        return w * x**y

    return f


@program(n=among(10.0, 100.0, 200.0, 250.0, 300.0, 300.0, 400.0))
def powers_that_overflow(w):
    def f(n):
        return w * 10.0**n * 1e-200

    return f


@program(n=whole(2**53 - 3, 2**53 + 9), engine="integers beyond 2**53")
def integers_beyond_floats(w):
    def f(n):
        return w * ((n + 1) % 10) + (n * n) % 7

    return f


@program(x=among(1.0, 900.0, -900.0))
def exponentials_that_overflow(w):
    def f(x):
        try:
            return w * math.exp(x)
        except OverflowError:
            return w * 7

    return f


@program(x=among(-8.0, 8.0, 0.25))
def roots_of_negative_numbers(w):
    def f(x):
        y = x ** (1 / 3)
        return w * abs(y)

    return f


@program(x=among(math.nan, 1.0, 2.0, -0.5, math.inf, -math.inf))
def not_a_number_as_argument(w):
    def f(x):
        if x != x:
            return w * 3
        return w * min(x, 5.0) + w * max(-2.0, x) * 0.0 if math.isinf(x) else w * x

    return f


@program(x=among(1.0, 1e150, 1e250, 1e-250))
def constants_past_the_range(w):
    def f(x):
        return w * x * 1e99 * 1e-99

    return f


@program(x=among(-0.0, 0.0, 1.0))
def signed_zeros(w):
    def f(x):
        return w * math.copysign(2.0, x) + w * math.atan2(x, -1.0)

    return f


@program(n=whole(-3, 3), m=whole(1, 3))
def integer_division(w):
    def f(n, m):
        return w * (n // m) + w * (n % m) * 0.1 + (-n >> 1) + w * (n & m)

    return f


@program(n=whole(0, 4), x=real(-2.0, 2.0))
def division_by_an_argument(w):
    def f(n, x):
        return w * x / n

    return f


# ------------------------------------------------------------------------- S13: chance


@program(x=real(), engine=CHANCE)
def dropout(w):
    def f(x):
        return w * x * (0 if random.random() < 0.1 else 1)

    return f


@program(x=real(), engine=CHANCE)
def rare_chance(w):
    def f(x):
        return w * x if x < 0.9 else w * random.random()

    return f


@program(xs=reals(4), engine=CHANCE)
def shuffled(w, v):
    def f(xs):
        order = list(range(4))
        random.shuffle(order)
        return w * xs[order[0]] + v * xs[order[1]]

    return f


@program(x=array(3), engine=CHANCE)
def noise_by_numpy(w):
    def f(x):
        return w * (x + np.random.normal(0, 0.1, 3)).sum()

    return f


@program(x=real(), effects=True, engine=CHANCE)
def an_own_generator_of_chance(w):
    rng = random.Random(7)

    def f(x):
        return w * x + rng.choice([0.0, 1.0])

    return f, rng.getstate


@program(x=real(), effects=True, engine=CHANCE)
def an_own_numpy_generator(w):
    rng = np.random.default_rng(7)

    def f(x):
        return w * x + rng.random()

    return f, lambda: rng


@program(x=real())
def chance_from_a_fixed_seed(w):
    def f(x):
        rng = random.Random(3)
        return w * x * rng.random() + rng.uniform(0, 1)

    return f


@program(x=real(), engine=CHANCE)
def a_generator_that_is_seeded(w):
    def f(x):
        random.seed(1)
        return w * x * random.random()

    return f


# ------------------------------------------------------------------------- S14: state, effects


@program(x=real(), effects=True, engine=STATE)
def running_mean_in_a_dict(w):
    s = {"m": 0.0}

    def f(x):
        h = w * x
        s["m"] = 0.9 * s["m"] + 0.1 * h.data
        return h - s["m"]

    return f, lambda: s


@program(x=real(), effects=True, engine=STATE)
def a_log_of_numbers(w):
    log = []

    def f(x):
        y = w * x
        log.append(x)
        return y + 0.0 * len(log)

    return f, lambda: log


@program(x=real(), effects=True, engine=STATE)
def a_log_of_values(w):
    log = []

    def f(x):
        y = (w * x).exp()
        log.append(y)
        return y

    return f, lambda: log


@program(x=real(), effects=True, engine=STATE)
def a_meter_object(w):
    meter = Meter()

    def f(x):
        meter.add(x)
        return w * x - meter.mean

    return f, lambda: meter


@program(n=whole(0, 3), effects=True, engine=STATE)
def a_cache_by_hand(w):
    cache = {}

    def f(n):
        if n not in cache:
            cache[n] = slow_table(n)
        return w * sum(cache[n])

    return f, lambda: sorted(cache)


@program(n=whole(0, 3))
def a_cache_of_the_library(w):
    def f(n):
        return w * sum(slow_table(n))

    return f


@program(x=real(), effects=True, engine="a result is kept from call to call")
def a_cached_value(w):
    @functools.lru_cache(maxsize=None)
    def heavy(k):
        return w * k

    def f(x):
        return heavy(2) * x

    return f, lambda: heavy.cache_info().misses


@program(x=real(), effects=True, engine="it prints")
def printing(w):
    def f(x):
        y = w * x
        print("loss", round(y.data, 6))
        return y

    return f, lambda: None


@program(x=real(), effects=True, engine="it logs")
def logging_by_the_library(w):
    records = []
    logger = logging.Logger("training")
    logger.addHandler(logging.Handler())
    logger.handlers[0].emit = lambda entry: records.append(entry.getMessage())

    def f(x):
        logger.info("called with %s", f"{x:.3f}" if isinstance(x, float) else "a Value")
        return w * x

    return f, lambda: records


@program(x=real(), effects=True, engine=STATE)
def a_default_that_is_changed(w):
    def f(x, seen=[]):
        seen.append(1)
        return w * x + len(seen)

    return f, lambda: len(f.__defaults__[0])


@program(x=real(), effects=True, engine=STATE)
def an_attribute_of_the_function(w):
    def f(x):
        f.calls = getattr(f, "calls", 0) + 1
        return w * x

    return f, lambda: getattr(f, "calls", 0)


@program(x=real(), effects=True, engine=EFFECTS)
def a_lock_and_a_counter(w):
    lock, count = threading.Lock(), [0]

    def f(x):
        with lock:
            count[0] += 1
        return w * x

    return f, lambda: (count, lock.locked())


@program(x=real(), effects=True, engine=EFFECTS)
def a_hook_that_is_called(w):
    seen = defaultdict(int)
    hooks = [lambda x: seen.__setitem__("called", seen["called"] + 1)]

    def f(x):
        for hook in hooks:
            hook(x)
        return w * x

    return f, lambda: dict(seen)


@program(x=real(-0.5, 1.0), effects=True, engine=STATE)
def counts_errors(w):
    errors = [0]

    def f(x):
        if x < 0:
            errors[0] += 1
            raise ValueError("negative")
        return w * x

    return f, lambda: errors


@program(xs=reals(3), effects=True, engine=STATE)
def the_best_so_far(w):
    best = {"loss": math.inf, "xs": None}

    def f(xs):
        loss = (w * sum(xs) - 1) ** 2
        if loss.data < best["loss"]:
            best.update(loss=loss.data, xs=list(xs))
        return loss

    return f, lambda: best


@program(x=real(), effects=True, engine=STATE)
def an_array_filled_from_outside(w):
    buffer = np.zeros(3)

    def f(x):
        buffer[1] = x
        buffer[:] = np.roll(buffer, 1)
        return w * x + buffer.sum()

    return f, lambda: buffer


@program(x=real(), engine="a clock is read")
def a_clock_that_does_not_matter(w):
    def f(x):
        began = time.perf_counter()
        y = w * x
        assert time.perf_counter() >= began
        return y

    return f


@program(x=real(), engine="a clock is read")
def a_time_limit(w):
    end = time.monotonic() + 1000.0

    def f(x):
        total = w * 0.0
        for k in range(5):
            if time.monotonic() > end:
                break
            total = total + w * x**k
        return total

    return f


# ------------------------------------------------------------------------- and what else users do


@program(x=real(), k=choice(2.0, None))
def defaults_that_are_not_given(w):
    def f(x, k=2.0, scale=3.0, names=("a", "b")):
        return w * x * (k or 1.0) * scale + len(names)

    return f


@program(x=real())
def a_default_beside_a_batch(w):
    def f(x, k=2.0, table=[1.0, 2.0, 3.0]):
        return w * x * k + sum(table)

    return f


@program(x=real())
def keyword_only_arguments(w):
    def f(x, *, power=2, **rest):
        return w * x**power + len(rest)

    return f


@program(x=real(), modes="call values map")  # a sum of arrays is refused, uncompiled
def a_result_in_an_array(w):
    def f(x):
        return np.array(w * x)

    return f


@program(x=real(-1.0, 1.0))
def sometimes_a_plain_number(w):
    def f(x):
        if x < 0:
            return 0.0
        return w * x

    return f


@program(x=array(5), k=indices(5, lo=0, hi=4))
def a_table_of_integers_added_to_floats(w):
    def f(x, k):
        counts = np.broadcast_to(1, (5,)).copy()
        counts = counts + k
        return w * (x * counts).sum()

    return f


@program(a=whole(0, 3), b=whole(0, 3))
def bigrams(table=weights(4, 4)):
    def f(a, b):
        row = table[a]
        return -(row[b].exp() / sum(v.exp() for v in row)).log()

    return f


@program(words=wholes(4, 0, 5))
def word_vectors(vectors=weights(6, 3)):
    def f(words):
        mean = [sum(vectors[word][d] for word in words) / len(words) for d in range(3)]
        return sum(m * m for m in mean)

    return f


@program(n=whole(-4, 3))
def negative_indices(table=weights(4)):
    def f(n):
        return table[n] * 2 + table[-1]

    return f


@program(n=whole(-5, 5))
def indices_out_of_range(table=weights(4)):
    def f(n):
        return table[n] * 2

    return f


@program(sample=built(lambda draw: Sample(draw.random(), draw.random(), draw.randint(0, 1))), modes="call")
def a_named_tuple_as_argument(w, v):
    def f(sample):
        return (w * sample.x - sample.y) ** 2 if sample.label else v * sample.x

    return f


@program(x=real(), names=text("sum", "mean"))
def attributes_by_name(w):
    class Reductions:
        sum = staticmethod(lambda xs: sum(xs))
        mean = staticmethod(lambda xs: sum(xs) / len(xs))

    def f(x, names):
        return w * getattr(Reductions, names)([x, 1.0, 2.0])

    return f


@program(x=real())
def a_function_that_looks_at_itself(w):
    def f(x):
        count = len(inspect.signature(f).parameters)
        return w * x * count * len(f.__name__)

    return f


@program(x=real(), y=real())
def locals_and_globals(w):
    def f(x, y):
        here = dict(locals())
        return w * here["x"] + here["y"] * globals()["LEVEL"]

    return f


@program(x=real(), code=text("w * x", "w * x * x + 1"), engine="code is evaluated")
def evaluated_text(w):
    def f(x, code):
        return eval(code, {"w": w, "x": x})

    return f


@program(x=real(-1.0, 1.0))
def assertions(w):
    def f(x):
        assert x > -0.8, "too small"
        return w * x

    return f


@program(x=reals(4))
def sums_of_nothing(w):
    def f(x):
        chosen = [v for v in x if v > 0.95]
        return w * sum(chosen) + w * math.prod(chosen) + max(chosen, default=0.5) * w

    return f


@program(x=real(0.0, 1.0), y=real(0.0, 1.0))
def chained_comparisons(w):
    def f(x, y):
        return w * 2 if 0.2 < x < y < 0.9 else w * x if x < y or y > 0.5 else w * y

    return f


@program(x=real(), y=real())
def any_and_all(w):
    def f(x, y):
        if all(v > 0 for v in (x, y)):
            return w * x * y
        return w * 3 if any(v > 0.5 for v in (x, y)) else w * (x + y)

    return f


@program(x=real(), engine="a weak reference")
def weak_references(w):
    class Thing:
        pass

    thing = Thing()
    reference = weakref.ref(thing)

    def f(x):
        return w * x * (1 if reference() is thing else 0)

    return f


@program(x=reals(3))
def methods_of_floats(w):
    def f(x):
        a, b, c = x
        return w * a.real + w * b.conjugate() + w * c.imag + w * abs(c) + w * (2.0 if a.is_integer() else 1.0)

    return f


@program(x=real(0.5, 2.0), engine="numbers are taken apart")
def the_bits_of_floats(w):
    def f(x):
        top, bottom = x.as_integer_ratio()
        mantissa, exponent = math.frexp(x)
        return w * top / bottom + w * mantissa * 2.0**exponent + w * math.ulp(1.0)

    return f


@program(x=reals(4), k=whole(0, 3))
def operators_as_functions(w):
    def f(x, k):
        pick = operator.itemgetter(k)
        return w * pick(x) + operator.mul(w, operator.add(x[0], x[1]))

    return f


@program(x=real(), effects=True, engine="it suspends recording in places")
def without_gradients_inside(w):
    def f(x):
        with wengert.no_grad():
            fixed = w * x
        return w * fixed

    return f, lambda: None


@program(x=real())
def stopped_gradients(w):
    def f(x):
        return w * (w * x).detach() + wengert.stop_gradient(w) * x

    return f


@program(x=real())
def a_leaf_made_inside(w):
    def f(x):
        bias = Value(0.5)
        bias.label = "bias"
        return w * x + bias

    return f


@program(x=real(0.5, 1.5))
def a_compiled_function_inside(w):
    inner = wengert.compile(lambda x: w * x + 1)

    def f(x):
        return inner(x) * inner(2.0)

    return f


@program(xs=reals(3), effects=True, engine=STATE)
def an_annealed_setting(w):
    schedule = {"rate": 1.0}

    def f(xs):
        schedule["rate"] *= 0.99
        rate = schedule["rate"]
        return w * sum(xs) * rate + (0 if rate < 0.5 else w)

    return f, lambda: schedule


@program(x=real(), n=whole(0, 4))
def compiled_functions_that_call_each_other(w):
    @wengert.compile
    def even(x, n):
        return w * x if n == 0 else odd(x + 1, n - 1) * 2

    @wengert.compile
    def odd(x, n):
        return w + x if n == 0 else even(x * 0.5, n - 1)

    def f(x, n):
        return even(x, n)

    return f


@program(x=real())
def a_context_manager(w):
    @contextlib.contextmanager
    def scaled(by):
        stack.append(by)
        try:
            yield by
        finally:
            stack.pop()

    stack = [1.0]

    def f(x):
        with scaled(2.0) as by:
            return w * x * by * stack[-1]

    return f


@program(x=choice(OrderedDict(a=1.0, b=2.0), OrderedDict(b=2.0, a=1.0)))
def the_order_of_a_dict(w):
    def f(x):
        return w * sum(value * 10**k for k, value in enumerate(x.values()))

    return f


@dataclass
class Config:
    """Settings with a number, as users keep them."""

    rate: float = 0.5
    sizes: list = field(default_factory=lambda: [1, 2])


@program(x=real(), config=choice(Config(), Config(0.25, [3])))
def a_dataclass_of_settings(w):
    def f(x, config):
        return w * x * config.rate + sum(config.sizes)

    return f


@program(xs=reals(4), engine="other threads compute")
def threads_inside(w):
    def f(xs):
        with ThreadPoolExecutor(2) as pool:
            return sum(pool.map(lambda x: (w * x).exp(), xs))

    return f


@program(x=real())
def coroutines_inside(w):
    async def part(x, k):
        await asyncio.sleep(0)
        return w * x * k

    async def whole_of_it(x):
        parts = await asyncio.gather(*(part(x, k) for k in range(3)))
        return sum(parts)

    def f(x):
        coroutine = whole_of_it(x)
        loop = asyncio.new_event_loop()
        try:
            return loop.run_until_complete(coroutine)
        finally:
            loop.close()

    return f


@program(x=real())
def a_compiled_method_inside(w):
    class Model:
        def __init__(self, rate):
            self.rate = rate

        @wengert.compile
        def loss(self, x):
            return (w * x - self.rate) ** 2

    models = [Model(1.0), Model(-0.5)]

    def f(x):
        return sum(model.loss(x) for model in models)

    return f


@program(n=whole(0, 5), effects=True, engine="results are kept from call to call")
def a_memory_of_values(w):
    known = {0: w, 1: w * 2}

    def f(n):
        if n not in known:
            known[n] = f(n - 1) + f(n - 2)
        return known[n] * 1.5

    return f, lambda: known


@program(x=reals(300), modes="call mean")
def a_long_filter(a, b):
    def f(x):
        y = 0.0
        for v in x:
            y = 0.5 * a * y + b * v
        return y * y

    return f


@program(depth=whole(1, 60), x=real())
def deep_recursion(a, b):
    def f(depth, x):
        if depth == 0:
            return b * x
        return 0.9 * f(depth - 1, x) + 0.01 * a

    return f


@program(x=real(), y=real(), effects=True, engine=STATE)
def an_undo_stack(w):
    stack = []

    def f(x, y):
        stack.append((x, y))
        if len(stack) > 3:
            x, y = stack.pop(0)
        return w * x + y

    return f, lambda: stack


@program(x=real(), effects=True, engine="a file is written")
def a_temporary_file(w):
    file = tempfile.TemporaryFile("w+")

    def f(x):
        file.write("called\n")
        return w * x

    def observe():
        file.seek(0)
        return file.read()

    return f, observe


@program(x=real(), effects=True, engine="it warns")
def a_warning_is_given(w):
    seen = []

    def f(x):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            warnings.warn("once more", stacklevel=1)
        seen.extend(str(each.message) for each in caught)
        return w * x

    return f, lambda: seen


@program(x=real(-2.0, 2.0), effects=True, engine=STATE)
def a_branch_that_counts(w):
    taken = Counter()

    def f(x):
        if x > 0:
            taken["up"] += 1
            return w * x
        taken["down"] += 1
        return w * x * 0.1

    return f, lambda: taken


@program(x=real(), effects=True, engine="an environment variable is set")
def an_environment_variable(w):
    name = f"PROGRAM_OF_A_USER_{id(w)}"

    def f(x):
        os.environ[name] = os.environ.get(name, "") + "x"
        return w * x

    return f, lambda: os.environ.get(name)


@program(x=real(), effects=True, engine=STATE)
def an_exponential_moving_average_of_a_class(w):
    class Average:
        value = None

    def f(x):
        y = w * x
        Average.value = y.data if Average.value is None else 0.9 * Average.value + 0.1 * y.data
        return y - Average.value

    return f, lambda: Average.value
