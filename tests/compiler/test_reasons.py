"""Why a function runs uncompiled: each reason in the code names what was met, and says what to write instead."""

from __future__ import annotations

import ast
import contextlib
import copy
import functools
import itertools
import json
import logging
import math
import operator
import os
import pickle
import random
import re
import shlex
import sys
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import wengert
from tests.compiler.checks import same, specializations, warned
from wengert import Value, handmade

np = pytest.importorskip("numpy")

pytestmark = pytest.mark.once  # what is followed, and when, is decided in Python

W = Value(0.7)
NUMBERS = [0.5, 2.0, 1.25]
SOURCE = Path(wengert.__file__).parent


class Reason(NamedTuple):
    says: str  # with "..." for what differs: a line, a name, a number
    plain: Callable[..., Any]
    arguments: list[tuple[Any, ...]]
    instead: Callable[..., Any] | None = None  # the function as the reason has it, which is compiled
    how: str = ""  # "map" or "mean" for a batch
    between: Callable[[], Any] = lambda: None  # is called before each call
    passing: tuple[
        tuple[Any, ...], ...
    ] = ()  # what to pass to the function as the reason has it; else the same arguments
    beside: bool = False  # another thread runs meanwhile
    raises: tuple[type[Exception], ...] = ()  # by itself, and then no warning takes its place


REASONS: dict[str, Reason] = {}
LOG = logging.getLogger("tests.reasons")
LOG.addHandler(logging.NullHandler())
LOG.propagate = False


def reason(says: str, *arguments: Any, passing: Any = (), **further: Any) -> Callable[[Any], Any]:
    """Note a function that is not compiled; each argument is one call's."""
    calls, advised = ([x if isinstance(x, tuple) else (x,) for x in xs] for xs in (arguments or NUMBERS, passing))

    def add(plain: Any) -> Any:
        REASONS[plain.__name__] = Reason(says, plain, calls, passing=tuple(advised), **further)
        return plain

    return add


# -- effects ----------------------------------------------------------------------------------------------------------


@reason(
    "it calls print at ..., which has side effects: do it outside of the function, with its result",
    instead=lambda x: W * x,
)
def prints(x: float) -> Any:
    print(end="")
    return W * x


INNER = wengert.compile(lambda x: W * x)


@reason(
    "test_reasons.py, line ... calls map of a compiled function, which gives numbers without derivatives: call the "
    "function for each example, in a list",
    instead=lambda x: W * max([INNER(x).data, INNER(1.0).data]),
)
def maps(x: float) -> Any:
    return W * max(INNER.map([x, 1.0]))


@reason(
    "it calls logging.Logger.warning at ..., which has side effects: log outside of the function, with its result",
    instead=lambda x: W * x,
)
def logs(x: float) -> Any:
    LOG.warning("x")
    return W * x


@reason(
    "it calls perf_counter at ..., which gives another time at each call: do it outside of the function, around its "
    "call, or pass the time",
    instead=lambda x: W * x,
)
def times(x: float) -> Any:
    time.perf_counter()
    return W * x


@reason(
    "it calls ... at ..., which gives another number at each call: draw outside of the function, and pass the numbers",
    instead=lambda x: W * x,
)
def draws_from_the_system(x: float) -> Any:
    return W * x * (1.0 if os.urandom(2) else 2.0)


@reason(
    "it calls id at ..., which has side effects or returns another result each time: do it outside of the function, "
    "and pass the result",
    instead=lambda x: W * x,
)
def identities(x: float) -> Any:
    return W * x * (id(W) > 0)


@reason(
    "it draws random numbers: draw them outside of the function, and pass them",
    (0.5,),
    instead=lambda x, draw=0.25: W * x * (draw < 2.0),
)
def draws(x: float) -> Any:
    return W * x * (np.random.random() < 2.0)


ONES = itertools.repeat(1.0)


@reason("it reads it, an iterator, which can be read once: make a list of it", instead=lambda x: W * x * [1.0, 2.0][0])
def reads_an_iterator(x: float, it: Iterator[Any] = ONES) -> Any:
    return W * x * next(it)


DRIFT = Value(1.0)


@reason(
    "it changes the data or the gradient of a Value: do it outside of the function",
    instead=lambda x: W * x,
)
def sets_a_parameter(x: float) -> Any:
    DRIFT.data = DRIFT.data * 0.5
    return W * x


KEPT: list[Any] = []


@reason(
    "it changes KEPT at each call: return it instead; calls whose number is a power of two are observed again",
    0.5,
    0.5,
    0.5,
    0.5,
    0.5,
    instead=lambda x: [W * x, x],
)
def keeps(x: float) -> Any:
    KEPT.append(x)
    return W * x


@reason("it imports colorsys; the next call is observed again", 0.5)
def imports(x: float) -> Any:
    import colorsys

    return W * x * (colorsys.ONE_THIRD > 0.0)


@reason(
    "it imports colorsys at each call: import it outside of the function; calls whose number is a power of two are "
    "observed again",
    *[0.5] * 4,
    instead=lambda x: W * x,
    between=lambda: sys.modules.pop("colorsys", None),
)
def imports_each_time(x: float) -> Any:
    import colorsys

    return W * x * (colorsys.ONE_THIRD > 0.0)


@reason(
    "it changes KEPT (or another thread does) at each call: return it instead; calls whose number is a power of "
    "two are observed again",
    *[0.5] * 4,
    instead=lambda x: [W * x, x],
    beside=True,
)
def keeps_beside_a_thread(x: float) -> Any:
    KEPT.append(x)
    return W * x


@reason(
    "it changes the data or the gradient of a Value (or another thread does) at each call: do it outside of the "
    "function; calls whose number is a power of two are observed again",
    *[0.5] * 4,
    instead=lambda x: W * x,
    beside=True,
)
def sets_a_parameter_beside_a_thread(x: float) -> Any:
    DRIFT.data = DRIFT.data * 0.5
    return W * x


@reason(
    "it draws random numbers (or another thread does) at each call: draw them outside of the function, and pass "
    "them; calls whose number is a power of two are observed again",
    *[(0.5,)] * 4,
    instead=lambda x, draw=0.25: W * x * (draw < 2.0),
    beside=True,
)
def draws_unseen(x: float) -> Any:
    return W * x * (next(iter(random.random, 2.0)) < 2.0)


@reason(
    "it names getstate, and a random number generator has another state each time: read the state outside of the "
    "function",
    instead=lambda x: W * x,
)
def reads_the_state_of_random_numbers(x: float) -> Any:
    return W * x * len(random.getstate())


@reason(
    "it raised ValueError: check the arguments before the call; calls whose number is a power of two are observed "
    "again",
    *[-1.0] * 4,
    instead=lambda x: W * x,
    raises=(ValueError,),
)
def raises_an_exception(x: float) -> Any:
    if x < 0.0:
        raise ValueError(x)
    return W * x


# -- what only the engine does ----------------------------------------------------------------------------------------


@reason(
    "... calls backward(): call it on the result, or write wengert.grad for a derivative",
    instead=lambda x: W * x * wengert.grad(lambda v: v * v)(2.0),
)
def calls_backward(x: float) -> Any:
    v = Value(2.0)
    (v * v).backward()
    return W * x * v.grad


@reason("... sets the data of a Value: do it outside, or compute with a new Value", instead=lambda x: W * x * 3.0)
def sets_data(x: float) -> Any:
    v = Value(2.0)
    v.data = 3.0
    return W * x * v


@reason(
    "... reads the gradient of a Value: pass it as an argument, or write wengert.grad", instead=lambda x: W * x + x * 0
)
def reads_a_gradient(x: float) -> Any:
    return W * x + Value(1.0).grad


@reason("... sets the gradient of a Value: do it outside", instead=lambda x: W * x)
def sets_a_gradient(x: float) -> Any:
    Value(1.0).grad = 2.0
    return W * x


@reason("... writes out a Value: do it after the call", instead=lambda x: W * x)
def writes_out(x: float) -> Any:
    y = W * x
    return y * len(repr(y)[:1])


@reason("... pickles a Value: do it after the call", instead=lambda x: W * x)
def pickles(x: float) -> Any:
    return W * x * len(pickle.dumps(Value(1.0))[:1])


class Own(Value):
    pass


@reason("... copies an object of a subclass of Value: write x * 1.0", instead=lambda x: W * x * (Own(2.0) * 1.0))
def copies(x: float) -> Any:
    return W * x * copy.copy(Own(2.0))


@reason(
    "... makes a node by hand, whose derivative only its _backward knows: register it by wengert.op",
    instead=lambda x: W * x,
)
def makes_a_node(x: float) -> Any:
    return handmade.Value(2.0, (W,), "own") * x


@reason(
    "... asks which Value an argument is: pass a number or a flag that tells",
    (Value(1.0),),
    instead=lambda v, is_w=False: W * v if is_w else W + v,
)
def asks_which(v: Value) -> Any:
    return W * v if v in {W: 1} else W + v


@reason(
    "it asks whether two objects are the same, and v is, or has in it, an object that it reads elsewhere, too: pass a "
    "number or a flag that tells",
    (W,),
    instead=lambda v, is_w=True: W * 2.0 if is_w else W + v,
)
def asks_whether_it_is_captured(v: Value) -> Any:
    return W * 2.0 if v is W else W + v


@reason(
    "it asks whether two objects are the same, and n is, or has in it, an int that may be one it has from elsewhere: "
    "write ==, or pass floats",
    3,
    2,
    instead=lambda n: W * n if n == len([n]) + 2 else W + n,
)
def asks_whether_it_is_a_length(n: int) -> Any:
    return W * n if n is len([n]) + 2 else W + n


ROW = [1.0, 2.0]


@reason(
    "it asks whether two objects are the same, and in an example of the batch some are: pass a number or a flag that "
    "tells, or make single calls",
    ([[ROW, ROW], [ROW, [3.0, 4.0]]],),
    instead=lambda rows: W * rows[0][0],
    how="map",
)
def asks_in_a_batch(rows: Any) -> Any:
    first, second = rows
    return W * first[0] if first is second else W * second[1]


@reason(
    "... asks whether two nan are the same object: write math.isnan(x)",
    ([math.nan, math.nan],),
    passing=([1.0, 2.0],),
    instead=lambda xs: W * (xs[0] in xs[1:]),
)
def asks_for_nan(xs: Any) -> Any:
    return W * (xs[0] in xs[1:])


@reason(
    "... looks up nan, of which Python asks whether it is the same object: write math.isnan(x)",
    (math.nan,),
    instead=lambda x: W * (1.0 if math.isnan(x) else 2.0),
)
def looks_up_nan(x: float) -> Any:
    return W * {1.0: 3.0}.get(x, 2.0)


@reason(
    "... asks by id(x) which object one is, and others are there at each call: write a number in it",
    instead=lambda x: W * x,
)
def asks_for_ids(x: float) -> Any:
    return W * x * len({*map(id, (W, x))})


@reason(
    "... branches on the root that it looks for: write wengert.where(condition, a, b)",
    0.5,
    2.0,
    instead=lambda x: W * wengert.root(lambda y: wengert.where(y > 0.0, y * y - x, y - x), 0.9),
)
def branches_on_a_root(x: float) -> Any:
    return W * wengert.root(lambda y: y * y - x if y > 0.0 else y - x, 0.9)


@reason(
    "... solves a system of 13 unknowns, where a compiled function takes at most 12: solve it before",
    instead=lambda x, y=1.0: W * y,
)
def solves(x: float) -> Any:
    a = np.eye(13) * x
    return W * wengert.solve(a, np.ones(13))[0]


@reason(
    "... computes a determinant of 13 rows, where a compiled function takes at most 12: do it before",
    0.9,
    instead=lambda x, y=1.0: W * y,
)
def determinant(x: float) -> Any:
    return W * wengert.det(np.eye(13) * x)


@reason(
    "... computes an integer of over a million bits: compute it before, and pass what you need of it",
    1_100_000,
    instead=lambda n: W * n,
)
def computes_huge_integers(n: int) -> Any:
    return W * (2**n % 1000)


@reason(
    "... adds bools of NumPy, where they may count or not: write a | b, or int(a) + int(b)",
    np.float64(0.5),
    instead=lambda x: W * ((x > 0.0) | (x > 1.0)),
)
def adds_bools(x: Any) -> Any:
    return W * ((x > 0.0) + (x > 1.0))


PLANES = [np.arange(6.0).reshape(2, 3) + n for n in range(3)]
SINGLE = [np.array([0.5, 0.3], np.float32), np.array([0.25, 0.1], np.float32)]


@reason(
    "... computes in float32, which rounds: pass float64, as x.astype(float) is",
    *SINGLE,
    instead=lambda x: W * (x[0] * x[1]),
    passing=[x.astype(float) for x in SINGLE],
)
def computes_in_float32(x: Any) -> Any:
    return W * (x[0] * x[1])


@reason(
    "... passes numbers of float32 to np.exp: pass float64, as x.astype(float) is",
    *SINGLE,
    instead=lambda x: W * np.exp(x)[0],
    passing=[x.astype(float) for x in SINGLE],
)
def passes_float32_to_numpy(x: Any) -> Any:
    return W * np.exp(x)[0]


@reason(
    "... asks by .flags how an array lies in memory, which differs between equal arrays: ask before the call, and pass "
    "the answer",
    *PLANES,
    instead=lambda x, by_columns: W * x[0, 1] * by_columns,
    passing=[(x, float(x.flags.f_contiguous)) for x in PLANES],
)
def asks_for_the_layout(x: Any) -> Any:
    return W * x[0, 1] * x.flags.f_contiguous


@reason(
    "... reads an array in the order in which it lies in memory: write order='C' or order='F'",
    *PLANES,
    instead=lambda x: W * x.ravel(order="C")[1],
)
def reads_in_memory_order(x: Any) -> Any:
    return W * x.ravel("K")[1]


@reason(
    "... writes to an array that is a copy of an argument or not, as that lies in memory: write to a copy, as "
    "x.ravel().copy() is",
    *[x.T for x in PLANES],
    instead=lambda x: _changed(x.ravel().copy()),
)
def writes_to_what_may_be_a_copy(x: Any) -> Any:
    return _changed(x.ravel())


def _changed(x: Any) -> Any:
    x[0] = 2.0
    return W * x[0] * x[1]


@reason(
    "... depends on which numbers in a list are ints and which floats: pass floats, as float(x) is",
    [1.5, 2],
    [1, 2.5],
    instead=lambda xs: W * sum(x for x in xs if isinstance(x, float)),
    passing=[[1.5, 2.0], [1.0, 2.5]],
)
def counts_the_ints_of_a_list(xs: Any) -> Any:
    return W * sum(isinstance(x, int) for x in xs)


@reason(
    "... asks by operator.is_ which number an object is: write == or !=",
    (0.5, 2.0),
    (2.0, 0.5),
    instead=lambda x, y: W if max(x, y) == x else W * y,
)
def asks_which_number(x: float, y: float) -> Any:
    return W if operator.is_(max(x, y), x) else W * y


def asks_by_identity() -> Any:
    """A function whose code gives a SyntaxWarning."""
    namespace: dict[str, Any] = {"W": W}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec("def asks_for_a_constant(n):\n    return W * n if n is 0 else W + n", namespace)
    return namespace["asks_for_a_constant"]


reason("it asks by `is` whether a number is a constant: write ==", 0, 1, instead=lambda n: W * n if n == 0 else W + n)(
    asks_by_identity()
)


# -- what cannot be followed ------------------------------------------------------------------------------------------


class Rate:
    value = 2.0


RATE = Rate()
WEAK, WEAK_SET, LOCAL = weakref.ref(RATE), weakref.WeakSet([RATE]), threading.local()
LOCAL.value = 2.0
OBJECTS = np.array([RATE, None], object)
RECORDS = np.array([(1.5, 2)], dtype=[("x", float), ("n", int)])
RECORD = RECORDS[0]
MASKED = np.ma.array([1.0, 2.0])


@reason("it reads WEAK, a weak reference: let it read the object", instead=lambda x: W * x * RATE.value)
def reads_weakly(x: float) -> Any:
    return W * x * WEAK().value  # type: ignore[union-attr]


@reason(
    "it reads OBJECTS, an array of objects, which may change without being seen: use a list",
    instead=lambda x: W * x * [RATE, None][0].value,  # type: ignore[union-attr]
)
def reads_objects(x: float) -> Any:
    return W * x * OBJECTS[0].value


@reason(
    "it reads RECORD, a record of an array, which may change without being seen: let it read the fields of the array, "
    "as in rows['x'][k], or pass their numbers",
    instead=lambda x, rate=1.5: W * x * rate,
)
def reads_a_record(x: float) -> Any:
    return W * x * RECORD["x"]


@reason(
    "it reads MASKED, a MaskedArray, which is more than its numbers: let it read a plain array, as np.array(x) is, or "
    "pass the numbers",
    instead=lambda x: W * x * np.array([1.0, 2.0])[0],
)
def reads_a_masked_array(x: float) -> Any:
    return W * x * MASKED[0]


@reason(
    "it reads WEAK_SET, a WeakSet, which may change without being seen: let it read a list or a dict",
    instead=lambda x: W * x * len([RATE]),
)
def reads_a_weak_set(x: float) -> Any:
    return W * x * len(WEAK_SET)


@reason(
    "it reads LOCAL, a _thread._local, which is written in C and may change without being seen: take its numbers out "
    "before the call, and pass them",
    instead=lambda x, rate=2.0: W * x * rate,
)
def reads_what_is_local(x: float) -> Any:
    return W * x * LOCAL.value


class Steps(list[Any]):
    pass


def with_free(rate: float) -> Callable[[float], float]:
    def step(x: float) -> float:
        return x * rate

    return step


STEPS, PLAIN_STEPS = Steps([with_free(2.0)]), [with_free(2.0)]


def by_step(x: float) -> Any:
    return W * PLAIN_STEPS[0](x)


def straight(x: float) -> Any:
    return W * x


def other(x: float) -> Any:
    return W + x


@reason(
    "control flow differed while it was recorded, at the call of straight (...): ask for a type by isinstance(x, "
    "float) or type(x) is float, or pass a string that says which path to take",
    instead=lambda x: straight(x) if isinstance(x, float) else other(x),
)
def asks_for_a_type_as_text(x: float) -> Any:
    return straight(x) if str(type(x)) == "<class 'float'>" else other(x)


@reason(
    "control flow differed while it was recorded, at the call of quote of shlex: call it before, and pass its result",
    instead=lambda x, text="a": W * x * len(text),
)
def calls_a_library_by_type(x: float) -> Any:
    return W * x * len(shlex.quote("a") if str(type(x)) == "<class 'float'>" else "a")


@reason(
    "the result of the array program is 0.35, that of the function 0.7: something that was recorded as fixed has "
    "changed, or differs between calls; pass it as an argument",
    0.5,
    0.5,
    instead=lambda x, rate=2.0: W * x * rate,
)
def looks_up_by_type(x: float) -> Any:
    return W * x * {"<class 'float'>": 2.0}.get(str(type(x)), 1.0)


@reason(
    "recording stopped at ..., which takes plain numbers only (TypeError: ...): call this before, and pass its result, "
    "or write it with operators and the functions of math, numpy and wengert",
    instead=lambda x: W * x,
)
def passes_to_c(x: float) -> Any:
    return W * len(json.dumps(x)[:1])


# -- results ----------------------------------------------------------------------------------------------------------


@reason(
    "it returns a set: a compiled function returns a Value or a number, or lists, tuples, dicts and arrays of them",
    instead=lambda x: [W * x],
)
def returns_a_set(x: float) -> Any:
    return {x}


@reason(
    "it returns a set: a compiled function returns a Value or a number, or lists, tuples, dicts and arrays of them",
    instead=lambda x: [W * x, [x]],
)
def returns_a_set_in_a_list(x: float) -> Any:
    return [W * x, {x}]


@reason("its result holds no number: return numbers, or leave it uncompiled", instead=lambda x: [W * x])
def returns_nothing(x: float) -> Any:
    return []


TABLE = [1.0, 2.0]


@reason(
    "it returns a list, dict or array that was there before the call, which may be changed: return a copy",
    instead=lambda x: list(TABLE),
)
def returns_what_was_there(x: float) -> Any:
    return TABLE


@reason("it returns a container that contains itself: return the numbers in it", instead=lambda x: [W * x])
def returns_a_circle(x: float) -> Any:
    circle = [W * x]
    circle.append(circle)  # type: ignore[arg-type]
    return circle


@reason("its result has more than 100 levels of nested lists: return one list of numbers", instead=lambda x: [W * x])
def returns_what_is_deep(x: float) -> Any:
    return functools.reduce(lambda held, _: [held], range(120), W * x)


@reason(
    "it returns an array of float32, and one of float64, int64, bool or Values is compiled: return x.astype(float)",
    instead=lambda x: np.array([x, 1.0]),
)
def returns_float32(x: float) -> Any:
    return np.array([x, 1.0], np.float32)


@reason("its result is a dict with a Rate as a key: use numbers or text", instead=lambda x: {"rate": W * x})
def returns_a_dict_by_objects(x: float) -> Any:
    return {RATE: W * x}


@reason(
    "its result has another structure while it is recorded: ask for a type by isinstance(x, float) or type(x) is "
    "float, or pass a string that says which path to take",
    instead=lambda x: [W * x] if isinstance(x, float) else [W * x, x],
)
def returns_by_type(x: float) -> Any:
    return [W * x] if str(type(x)) == "<class 'float'>" else [W * x, x]


@reason(
    "its result is a Value, but a number while it is recorded: ask for a type by isinstance(x, float) or type(x) is "
    "float, or pass a string that says which path to take",
    instead=lambda x: [W * x] if isinstance(x, float) else [x],
)
def returns_a_value_by_type(x: float) -> Any:
    return [W * x] if str(type(x)) == "<class 'float'>" else [x]


OTHER = Value(0.3)


@reason(
    "its result is another Value while it is recorded: ask for a type by isinstance(x, float) or type(x) is float, or "
    "pass a string that says which path to take",
    instead=lambda x: [W, x] if isinstance(x, float) else [OTHER, x],
)
def returns_another_value_by_type(x: float) -> Any:
    return [W, x] if str(type(x)) == "<class 'float'>" else [OTHER, x]


@reason(
    "its result is of type float, but another kind of number while it is recorded: return float(x)",
    instead=lambda x: float(x),
)
def returns_a_number_by_type(x: float) -> Any:
    return x if str(type(x)) == "<class 'float'>" else 1


@reason(
    "its result is an integer beyond 2**53, which no float is exactly: return float(n)",
    2**40,
    instead=lambda n: float(n) * float(n),
)
def returns_a_large_integer(n: int) -> Any:
    return n * n


# -- too many ---------------------------------------------------------------------------------------------------------

MANY = [0.25 * n + 0.1 for n in range(40)]
ORDERS = [(list(order),) for order in itertools.islice(itertools.permutations([0.1, 0.4, 2.0, 3.5, 5.0]), 40)]
TAKES = "it takes more than 32 specializations, by comparing or taking numbers out at ...: "


@reason(
    f"{TAKES}write wengert.maximum, wengert.where or wengert.softmax, which are the same for all numbers (and "
    "wengert.pick(values, index) where an integer chooses)",
    *[([(-1.0) ** (n >> k) for k in range(6)],) for n in range(40)],
    instead=lambda xs: W * sum(wengert.where(x > 0.0, x, 0.0) for x in xs),
)
def branches(xs: list[float]) -> Any:
    total = W * 0.0
    for x in xs:
        if x > 0.0:
            total = total + W * x
    return total


@reason(
    f"{TAKES}each order of the numbers is a program of its own: sort before the call, and pass the sorted list; of the "
    "largest and the smallest number, max(xs) and min(xs) are the same for all orders",
    *ORDERS,
    instead=lambda xs: W * max(xs) + min(xs),
)
def sorts(xs: list[float]) -> Any:
    ordered = sorted(xs)
    return W * ordered[-1] + ordered[0]


@reason(
    f"{TAKES}look up the place before the call, and pass it as an integer: wengert.pick(values, index) reads the item; "
    "or add up wengert.where(x > edge, 1.0, 0.0) over the edges",
    *MANY,
    instead=lambda x: W * x * sum(wengert.where(x > 0.25 * k, 1.0, 0.0) for k in range(40)),
)
def looks_up(x: float) -> Any:
    import bisect

    return W * x * bisect.bisect_left([0.25 * k for k in range(40)], x)


@reason(
    f"{TAKES}write round(x * 10.0) / 10.0, as round(x) without digits is the same for all numbers",
    *MANY,
    instead=lambda x: W * (round(x * 10.0) / 10.0),
)
def rounds(x: float) -> Any:
    return W * round(x, 1)


@reason(
    f"{TAKES}write the comparison out: wengert.where(abs(x - y) <= tolerance, a, b)",
    *MANY,
    instead=lambda x: wengert.where(abs(x - 0.35) <= 1e-9 * max(abs(x), 0.35), W, W * x),
)
def compares_closely(x: float) -> Any:
    return W if math.isclose(x, 0.35) else W * x


@reason(
    f"{TAKES}write max(xs) or min(xs), or wengert.softmax for weights; or look up the place before the call, and pass "
    "it as an integer",
    *ORDERS,
    instead=lambda xs: W * max(xs),
)
def finds_the_place(xs: list[float]) -> Any:
    return W * xs[[x + 0.0 * xs[0] * len(str(x)) for x in xs].index(max(xs))]


@reason(
    f"{TAKES}write it with functions that are recorded: math.exp(math.lgamma(x)) is gamma(x) for x > 0, x - "
    "math.floor(x) the fraction of a positive number; or call it before, and pass the result",
    *MANY,
    instead=lambda x: W * math.exp(math.lgamma(x)),
)
def gammas(x: float) -> Any:
    return W * math.gamma(x)


@reason(
    f"{TAKES}compute with floats, and convert the result after the call",
    *MANY,
    instead=lambda x: W * (x * 2.0),
)
def computes_with_complex_numbers(x: float) -> Any:
    return W * abs(complex(x * 2.0, 0.0))


@reason(f"{TAKES}make the text after the call, from its result", *MANY, instead=lambda x: W * x)
def formats(x: float) -> Any:
    text = f"{x:.3f}"
    return W * x * len(text[:1])


@reason(
    f"{TAKES}look it up before the call, and pass what is there; integers that are part of the program are declared by "
    "wengert.compile(static=('n',))",
    *MANY,
    instead=lambda x, found=2.0: W * x * found,
)
def looks_into_a_dict(x: float) -> Any:
    return W * x * {0.5: 1.0}.get(x, 2.0)


@reason(
    f"{TAKES}pass the integer as an argument of its own, and declare it by wengert.compile(static=('n',))",
    *range(40),
    instead=lambda n: W * (n * 0.5),
)
def counts(n: int) -> Any:
    return W * sum(0.5 for _ in range(n))


@reason(
    f"{TAKES}call this function of NumPy before, and pass its result; or write it with sums and products, and those of "
    "wengert (solve, det, inv, interp)",
    *[(np.array([0.5 * k, 1.0, 2.0]),) for k in range(40)],
    instead=lambda x: W * abs(x.sum()),
)
def transforms(x: Any) -> Any:
    return W * abs(np.fft.fft(x)[0])


SCALE, SHIFT, COUNT = [1], [1], itertools.count()


def change(numbers: list[int]) -> None:
    numbers[0] += 1


def change_both() -> None:
    SHIFT[0], SCALE[0] = divmod(next(COUNT), 8)


class Registry(dict[type, float]):
    """A cache of the user's, of which no copy is made."""


AREAS = Registry()


@reason(
    "it changes AREAS while it is recorded, of which no copy can be made: let it be a plain dict, list, set or object",
    *[0.5] * 4,
    instead=lambda x, area=2.0: W * x * area,
)
def keeps_in_a_dict_of_its_own(x: float) -> Any:
    kind = type(RATE)
    if kind not in AREAS:
        AREAS[kind] = 2.0
    return W * x * AREAS[kind]


@reason(
    "it reads SCALE[0], which changes between calls: make SCALE[0] an argument",
    *MANY,
    instead=lambda x, scale=3: W * x * scale,
    between=lambda: change(SCALE),
)
def reads_what_changes(x: float) -> Any:
    return W * x * SCALE[0]


@reason(
    "it reads SCALE[0] and SHIFT[0], which change between calls: make them arguments",
    *MANY,
    instead=lambda x, scale=3, shift=2: W * x * scale + shift,
    between=change_both,
)
def reads_more_that_changes(x: float) -> Any:
    return W * x * SCALE[0] + SHIFT[0]


# -- arguments, batches, and operations -------------------------------------------------------------------------------


@reason(
    "an argument is an array of complex128, and only real numbers are compiled: pass these, such as real parts or "
    "codes",
    np.array([1.0 + 1.0j]),
    instead=lambda x: W * np.array([1.0])[0],
)
def takes_complex_numbers(x: Any) -> Any:
    return W * x[0].real


@reason(
    "each row of a batch is a str, and only real numbers are compiled: pass these, or write a batch of objects "
    "as dicts of columns",
    ["a", "b"],
    instead=lambda x: W * x,
    how="map",
)
def takes_text(x: Any) -> Any:
    return W * len(x)


@reason(
    "an integer among the arguments is beyond 2**53, where not each is a float: pass float(n)",
    2**60,
    instead=lambda n: W * float(n),
)
def takes_a_large_integer(n: int) -> Any:
    return W * n


@reason(
    "an argument holds a numpy.MaskedArray, which is more than its numbers: pass a plain array, as np.asarray(x) is",
    MASKED,
    instead=lambda x: W * np.array([1.0, 2.0]).sum(),
)
def takes_a_masked_array(x: Any) -> Any:
    return W * x.sum()


@reason(
    "an argument holds numbers of longdouble, and only real numbers up to float64 are compiled: pass float64, as "
    "float(x) and x.astype(float) are",
    np.array([1.5, 2.0], np.longdouble),
    np.longdouble(1.5),
    instead=lambda x: W * x,
    passing=[1.5],
)
def takes_longdouble(x: Any) -> Any:
    return W * float(np.sum(x))


SWAPPED = np.array([1.5, 2.0]).astype(np.dtype(float).newbyteorder())


@reason(
    "an argument is an array of another byte order (...): pass x.astype(float)",
    SWAPPED,
    instead=lambda x: W * x[0],
    passing=[SWAPPED.astype(float)],
)
def takes_another_byte_order(x: Any) -> Any:
    return W * x[0]


@reason(
    "an argument is an array of objects that are not all Values: pass a list",
    np.array([W, 2.0], object),
    instead=lambda x: W * x[0] * x[1],
    passing=[([OTHER, 2.0],)],
)
def takes_an_array_of_objects(x: Any) -> Any:
    return W * x[1]


DEEP: Any = [0.5]
for depth in range(40):
    DEEP = [float(depth), DEEP]


@reason(
    "an argument is nested more than 32 levels deep: pass its numbers in a list or an array",
    DEEP,
    instead=lambda x: W * sum(x),
    passing=[([0.5, 1.0, 2.0],)],
)
def takes_what_is_deep(x: Any) -> Any:
    return W * x[0]


@reason(
    "an argument has more than 65,536 parts: pass numbers in arrays, or in lists of one type",
    [*[0.5] * 70_000, None],
    instead=lambda x: W * x[0],
    passing=[([0.5] * 8,)],
)
def takes_many_parts(x: Any) -> Any:
    return W * x[0]


@reason(
    "the structure of its result differs between examples: return the same lists for all",
    [1.0, 2.0],
    [-1.0, -2.0],
    instead=lambda x: [W * x, x],
    how="map",
)
def returns_more_for_some(x: float) -> Any:
    return [W * x, x] if x > 0.0 else [[W * x], x]


@reason("its result is a float32: return a Value, float, int or bool, or lists of these", instead=lambda x: x * 2.0)
def returns_a_narrow_number(x: float) -> Any:
    return np.float32(x * 2.0)


OPERATION = np.frompyfunc(with_free(2.0), 1, 1)


@reason(
    "it has step (...) called by an object that cannot be followed: let the function call it by its name, or keep it "
    "in a plain list, dict or attribute",
    instead=by_step,
)
def calls_by_an_object(x: float) -> Any:
    return W * x + OPERATION(2.0)


total = wengert.op(
    "total_of_reasons", value=lambda *xs: float(str(sum(xs))), partials=lambda out, *xs: (1.0,) * len(xs)
)
twice = wengert.op("twice_of_reasons", value=lambda x: float(str(2.0 * x)), partials=lambda out, x: 2.0)


@reason(
    "total_of_reasons takes any number of operands, and is not built in: register it with a fixed number",
    instead=lambda x: twice(W * x),
)
def applies_an_operation_of_any_number(x: float) -> Any:
    return total(W, W * x, x)


@reason(
    "... has an operation of its own in the function of a root: write it with the functions of wengert",
    0.5,
    instead=lambda x: W * wengert.root(lambda y: 2.0 * y - x, 0.9),
)
def applies_an_operation_in_a_root(x: float) -> Any:
    return W * wengert.root(lambda y: twice(y) - x, 0.9)


# -- the tests --------------------------------------------------------------------------------------------------------


def pattern(says: str) -> str:
    return ".+".join(map(re.escape, says.split("...")))


@contextlib.contextmanager
def another_thread() -> Iterator[None]:
    ends = threading.Event()
    thread = threading.Thread(target=ends.wait)
    thread.start()
    try:
        yield
    finally:
        ends.set()
        thread.join()


def called(compiled: Any, how: str, arguments: tuple[Any, ...]) -> Any:
    return getattr(compiled, how)(*arguments) if how else compiled(*arguments)


def tried(compiled: Any, asked: Reason, arguments: tuple[Any, ...]) -> None:
    with contextlib.suppress(*asked.raises):
        called(compiled, asked.how, arguments)


@pytest.mark.parametrize("name", REASONS)
def test_a_reason_says_what_to_write_instead(name: str) -> None:
    """And what it says is compiled: it gives what the function written so gives, in value and gradient."""
    asked = REASONS[name]
    sys.modules.pop("colorsys", None)
    compiled = wengert.compile(asked.plain)
    said = []
    with another_thread() if asked.beside else contextlib.nullcontext():
        for arguments in asked.arguments:
            asked.between()
            said += warned(lambda arguments=arguments: tried(compiled, asked, arguments))  # type: ignore[misc]
    report = compiled.report()
    (found,) = [line for line in report.splitlines() if "runs uncompiled: " in line or "itself runs: " in line]
    assert re.fullmatch(pattern(asked.says), found.partition(": ")[2]), found
    assert said == [f"{name} runs uncompiled: {found.partition(': ')[2]}"] * (
        "runs uncompiled" in found and not asked.raises
    )
    if asked.instead is not None:
        advised = wengert.compile(asked.instead)
        same_arguments = [each for each in asked.arguments if isinstance(each[0], (float, int, Value))]
        for arguments in [*asked.passing, *([] if asked.passing else same_arguments)] * 2:
            check(advised(*arguments), asked.instead(*arguments))
        assert "uncompiled" not in advised.report()


def check(got: Any, want: Any) -> None:
    if isinstance(want, (list, tuple)):
        for x, y in zip(got, want, strict=True):
            check(x, y)
    elif isinstance(want, Value):
        same(got, want, [W])
    elif isinstance(want, dict):
        check(list(got.values()), list(want.values()))
    else:
        assert got == pytest.approx(want, rel=1e-13)
        assert type(got) is type(want)


# -- calls that the function itself serves, for reasons that are not its own -----------------------------------------


def aside(compiled: Any) -> list[str]:
    """What the report says of such calls."""
    return [
        line.partition("the function itself served ")[2] for line in compiled.report().splitlines() if "served" in line
    ]


def under_a_profiler(compiled: Any, calls: int) -> int:
    """Call a function while a profiler runs, and return how often its code ran."""
    ran: list[Any] = []
    sys.setprofile(lambda frame, event, _: ran.append(frame.f_code) if event == "call" else None)
    try:
        for k in range(calls):
            compiled(1.0 + k)
    finally:
        sys.setprofile(None)
    return ran.count(compiled.function.__code__)


def test_a_profiler_is_named() -> None:
    compiled = wengert.compile(lambda x: W * x)
    assert under_a_profiler(compiled, 10) == 10
    assert aside(compiled) == [
        "10 calls while a profiler ran, so nothing was recorded: call it a few times, or prepare(*args), before it "
        "starts"
    ]
    compiled(1.0)
    assert specializations(compiled) == [1]


def test_what_is_compiled_serves_while_a_profiler_runs() -> None:
    compiled = wengert.compile(lambda x: W * x)
    for k in range(8):
        compiled(1.0 + k)
    assert under_a_profiler(compiled, 8) == 1  # the check at the sixteenth call
    assert aside(compiled) == []


def test_calls_within_another_compiled_function_are_named() -> None:
    inner = wengert.compile(lambda x: W * x)
    outer = wengert.compile(lambda x: inner(x) * 2.0)
    for k in range(8):
        outer(1.0 + k)
    (said,) = aside(inner)
    assert said.endswith(" within another compiled function, whose program includes it")
    assert "not called" not in inner.report()


def test_calls_in_a_mode_are_named() -> None:
    compiled = wengert.compile(lambda x: W * x)
    with wengert.detect_anomaly():
        compiled(1.0)
    slope = wengert.compile(wengert.grad(lambda x: W * x * x))
    slope(2.0)
    with wengert.no_grad():
        assert slope(2.0) == pytest.approx(2.8)
    assert aside(compiled) == [
        "1 call in a mode that looks at each operation, as detect_anomaly() and strict() do, or in a derivative of a "
        "derivative"
    ]
    assert aside(slope) == ["1 call in no_grad(), where a derivative that depends on parameters consists of floats"]


def test_calls_while_another_thread_records_are_named() -> None:
    compiled = wengert.compile(lambda x: W * x)
    with compiled._server.specializer.turn_to_record():
        compiled(1.0)
    assert aside(compiled) == ["1 call while another thread recorded it, or it called itself: call it once, or "
                               "prepare(*args), before threads start"]  # fmt: skip


def test_calls_with_other_arguments_are_named() -> None:
    compiled: Any = wengert.compile(lambda x: W * x)
    with pytest.raises(TypeError):
        compiled(1.0, 2.0)
    assert aside(compiled) == ["1 call whose arguments do not fit its signature"]


def test_calls_with_objects_of_their_own_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    from wengert.compiler import policy

    monkeypatch.setattr(policy, "SIGNATURES", 3)
    compiled = wengert.compile(lambda x, f: W * f(x))
    for k in range(12):
        compiled(1.0, lambda x, k=k: x + k)
    (said,) = aside(compiled)
    assert " whose kind of arguments came for the first time, after " in said


# -- all of them ------------------------------------------------------------------------------------------------------

NAMES = frozenset(
    ["Unrecordable", "Unliftable", "refuse", "add_effect", "fall_back", "rest", "invalidate", "ForeignSpec", "cls"]
)
NOTED = frozenset(["effect", "change", "instead", "fallback_reason", "clause"])
WRITERS = frozenset(["too_many", "too_many_kinds", "effect_of_call", "instead_of"])  # they return a reason, or a part
CONSTANTS = frozenset(["DRAWS", "LARGE"])
ELSEWHERE = {  # reasons without a function above, and the tests that have one
    "it is called with more than ... kinds of arguments in turn: pass numbers that change as floats or in lists of one "
    "length, and the same objects": "test_signatures.py",
    "...: something that was recorded as fixed has changed, or differs between calls; pass it as an "
    "argument": "test_soundness.py",
    "a recording of ... is dropped: ...": "test_soundness.py",
    "the function raises ..., the array program does not": "test_soundness.py",
    "the array program raises ..., and the function does not": "test_fallbacks.py",
    "no root was found while the function was recorded": "the function itself raises the error",
}
INSIDE = {  # reasons that no user sees, and why
    "it has no signature: write a function around it": "in a note of a derivative: `compile` refuses such a function",
    "it asks whether two arguments are the same object": "it is recorded again, and signatures tell of it",
    "asks whether a number is a float or a Value": "the function is recorded with Values then",
    "other integers take another branch": "each integer gets a specialization",
    "the function takes another branch for other integers": "each integer gets a specialization",
    "the length of a list depends on an integer argument": "each integer gets a specialization",
    "an integer argument changes more than which item of a list is read": "each integer gets a specialization",
    "an integer argument chooses the result itself, or what is compared": "each integer gets a specialization",
    "... is named as the back end": "why a back end runs",
    "there was an error in the compiler, please report it": "a fault of the compiler",
    "its result is neither a number nor a regular array of numbers": "a mean of such results is an ArgumentError",
    "its result has another structure while it is recorded": "above, of one example",
}


def texts(node: ast.AST) -> Iterator[str]:
    """The texts in an expression, with "..." for what is filled in; not those inside of what is filled in."""
    if isinstance(node, ast.JoinedStr):
        parts = ["..." if isinstance(x, ast.FormattedValue) else str(getattr(x, "value", "")) for x in node.values]
        yield "".join(parts)
    elif isinstance(node, ast.Constant):
        if isinstance(node.value, str) and " " in node.value:
            yield node.value
    elif not isinstance(node, (ast.Call, ast.Compare)):
        for child in ast.iter_child_nodes(node):
            yield from texts(child)


def reasons_in(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            for x in node.args if name in NAMES else ():
                yield from texts(x)
        elif isinstance(node, ast.Assign):
            targets = [getattr(x, "attr", getattr(x, "id", "")) for x in node.targets]
            if not (NOTED | CONSTANTS).isdisjoint(targets):
                yield from texts(node.value)
        elif isinstance(node, ast.FunctionDef) and node.name in WRITERS:
            for each in ast.walk(node):
                if isinstance(each, ast.Return) and each.value is not None:
                    yield from texts(each.value)


def every_reason() -> list[tuple[str, str]]:
    """Where the code gives a reason, and the reason."""
    found = []
    for path in sorted(SOURCE.rglob("*.py")):
        if path.is_relative_to(SOURCE / "compiler" / "backends"):
            continue
        found += [(path.name, text) for text in reasons_in(ast.parse(path.read_text(encoding="utf-8")))]
    return found


@pytest.mark.parametrize(("file", "text"), every_reason())
def test_each_reason_in_the_code_has_a_function_that_meets_it(file: str, text: str) -> None:
    said = [asked.says.replace("...", "some") for asked in REASONS.values()]
    said += [each.replace("...", "some") for each in ELSEWHERE]
    known = any(re.search(text_pattern(text), each) for each in said)
    assert known or any(text.startswith(each) for each in INSIDE), f"{file}: {text}"


def text_pattern(text: str) -> str:
    return ".*".join(map(re.escape, re.split(r"(?:\.\.\.)+(?!\.)", text)))  # of "np....: " the last three


def test_the_reasons_are_found_in_the_code() -> None:
    found = dict(every_reason()[::-1])
    assert len(every_reason()) > 50
    assert {"node.py", "purity.py", "recorder.py", "structure.py", "arguments.py", "proxies.py"} <= set(found)


# -- the page of the documentation ------------------------------------------------------------------------------------

GROUPS = {  # by the first function of each
    "prints": "Effects, and what changes",
    "calls_backward": "What only the engine does",
    "reads_weakly": "What cannot be followed",
    "returns_a_set": "Results",
    "branches": "Too many specializations",
    "takes_complex_numbers": "Arguments and operations",
}
BEGINNING = """# Why a function runs uncompiled

A function that cannot be compiled runs as it stands, with one warning, "f runs uncompiled: " and the reason, which
`report()` repeats (if it raises an exception, `report()` alone tells). This page lists every reason in the code;
"..." stands for a line, a name or a number. Each is met by a function in `tests/compiler/test_reasons.py`, which also
compiles what the reason says to write instead.
"""
SERVED = """
## Calls that the function itself serves

`report()` counts the calls that the function itself served for a reason that is not its own:
"""


def parted(says: str) -> tuple[str, str]:
    """Divide a reason at the colon before what to write instead, which is not in brackets."""
    depth = 0
    for at, letter in enumerate(says):
        depth += (letter == "(") - (letter == ")")
        if letter == ":" and not depth:
            return says[:at], says[at + 2 :]
    return says, ""


def page() -> str:
    from wengert.compiler import report

    lines = [BEGINNING]
    for name, asked in REASONS.items():
        if name in GROUPS:
            lines += [f"\n## {GROUPS[name]}\n", "| reason | what to write instead |", "|---|---|"]
        says = asked.says.replace("out at ...", f"out at a line that {name.replace('_', ' ')}")
        line = "| " + " | ".join(part.replace("|", "\\|") for part in parted(says)) + " |"
        lines += [line] if line not in lines else []
    for says in list(ELSEWHERE)[:1]:
        lines.append("| " + " | ".join(parted(says)) + " |")
    lines += [SERVED, "| calls | what to do |", "|---|---|"]
    served = [getattr(report, name) for name in vars(report) if name.isupper() and type(getattr(report, name)) is str]
    return "\n".join([*lines, *["| " + " | ".join(parted(each)) + " |" for each in served]]) + "\n"


def test_the_page_lists_each_reason() -> None:
    """`python -m tests.compiler.test_reasons` writes it."""
    written = SOURCE.parent.parent / "docs" / "reasons.md"
    assert written.read_text(encoding="utf-8") == page()


if __name__ == "__main__":
    (SOURCE.parent.parent / "docs" / "reasons.md").write_text(page(), encoding="utf-8")


def with_a_list(x: Any, ys: Any = (1.5, [2.5])) -> Any:
    return W * x * ys[1][0]


SLOWLY: dict[str, tuple[Callable[..., Any], Callable[[], tuple[Any, ...]], str]] = {
    "one object twice": (lambda x, y: W * x[0] * y[1], lambda: (TWICE, TWICE), "an object is passed twice"),
    "which are the same": (lambda x, y: W * x if x is not y else W, lambda: (1.5, 2.5), "asks by `is` which objects"),
    "rows of several lengths": (lambda x: W * x[0][0] * x[1][1], lambda: ([[1.5], [1.5, 2.5]],), ""),
    "by its parts": (lambda x, s: W * x * s.numerator, lambda: (1.5, Fraction(3, 4)), "s is, or has in it, an object"),
    "a default": (with_a_list, lambda: (1.5,), "the default of ys is a tuple"),
    "numbers": (lambda x, y: W * x * y, lambda: (1.5, 2.5), ""),
}
TWICE = [1.5, 2.5]


@pytest.mark.parametrize("name", SLOWLY)
def test_the_report_says_that_arguments_are_read_slowly(name: str) -> None:
    function, arguments, why = SLOWLY[name]
    compiled = wengert.compile(function)
    for _ in range(3):
        compiled(*arguments())
    lines = [line for line in compiled.report().splitlines() if "arguments are read slowly" in line]
    assert len(lines) == bool(why)
    assert all(why in line for line in lines)
