"""No fault is another thread's: what it does while a function is watched, or compared, is not the function's doing."""

from __future__ import annotations

import random
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import wengert
from tests.compiler.checks import difference, lifted, warned
from wengert import Value
from wengert.compiler import policy

np = pytest.importorskip("numpy")

pytestmark = pytest.mark.once

SHARED = [Value(0.1 * n + 0.3) for n in range(4)]


def draws(turn: int) -> None:
    random.random()
    random.gauss(0.0, 1.0)


def draws_by_numpy(turn: int) -> None:
    np.random.rand()


def shuffles(turn: int) -> None:
    random.shuffle([1, 2, 3])


def writes_gradients(turn: int) -> None:
    for w in SHARED:
        w.grad = float(turn)


def differentiates(turn: int) -> None:
    sum((w * w for w in SHARED), Value(0.0)).backward()


def calls_compiled(turn: int) -> None:
    w = Value(2.0)
    f = wengert.compile(lambda x: w * x + SHARED[0])
    f(1.0), f(2.0).backward()


def computes(turn: int) -> None:
    sum((w * w for w in SHARED), Value(0.0))


NOISE = [draws, draws_by_numpy, shuffles, writes_gradients, differentiates, calls_compiled, computes]


@contextmanager
def beside(*work: Callable[[int], None]) -> Iterator[None]:
    """Do some work in threads of their own, which take turns with this one all the time."""
    ends, began = threading.Event(), threading.Barrier(len(work) + 1)
    errors: list[BaseException] = []

    def worker(each: Callable[[int], None]) -> None:
        began.wait()
        turn = 0
        try:
            while not ends.is_set():
                each(turn := turn + 1)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=worker, args=(each,)) for each in work]
    interval = sys.getswitchinterval()
    for thread in threads:
        thread.start()
    began.wait()
    sys.setswitchinterval(1e-4)
    try:
        yield
    finally:
        sys.setswitchinterval(interval)
        ends.set()
        for thread in threads:
            thread.join()
    assert not errors, errors


def pure(seed: int) -> Callable[[float], Any]:
    """A random function that only computes, long enough for other threads to have turns."""
    draw = random.Random(seed)
    steps = [(draw.choice("asmte"), draw.choice(SHARED), draw.uniform(0.5, 1.5)) for _ in range(draw.randint(20, 80))]
    limit = draw.uniform(0.2, 0.8)

    def function(x: float) -> Any:
        y = SHARED[0] * x
        for how, w, number in steps:
            if how == "a":
                y = y + w * number
            elif how == "s":
                y = y * 0.5 - w
            elif how == "m":
                y = (y * w).tanh()
            elif how == "t":
                y = y.sin() * number
            else:
                y = (y * 0.1).exp()
        return y * y if x > limit else y

    return function


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_pure_functions_beside_seven_threads() -> None:
    """None is uncompiled for ever: those that rest are recorded at a call whose number is a power of two."""
    functions = [pure(seed) for seed in range(12)]
    compiled = [wengert.compile(f) for f in functions]
    with beside(*NOISE):
        for call in range(7):
            for f, plain in zip(compiled, functions, strict=True):
                x = 0.1 + 0.07 * call
                assert difference(f(x).data, plain(x).data) < 1e-9
    for f in compiled:
        for entry in f._server.entries.values():
            assert not entry.is_eager, f.report()
    for call in range(7, 18):  # the eighth and the sixteenth are watched again
        for f, plain in zip(compiled, functions, strict=True):
            x = 0.1 + 0.03 * call
            assert difference(f(x).data, plain(x).data) < 1e-9
    for f in compiled:
        lifted(f)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("work", [draws, draws_by_numpy, shuffles], ids=lambda work: work.__name__)
def test_others_that_draw_are_not_the_function(work: Any) -> None:
    """A function that cannot reach a generator that all share is recorded at once, whoever draws."""
    functions = [pure(seed) for seed in range(100, 106)]
    with beside(work, work):
        for function in functions:
            f = wengert.compile(function)
            for call in range(10):
                f(0.1 * call)
            lifted(f)
            assert f._server.last.changes == 0


def draws_always(x: float) -> Any:
    return SHARED[0] * x * random.random()


def draws_by_a_method(x: float) -> Any:
    return SHARED[0] * x + random.choice([1.0, 2.0])


def draws_always_by_numpy(x: float) -> Any:
    return SHARED[0] * x * float(np.random.rand())


def draws_in_c(x: float) -> Any:
    return SHARED[0] * x * sum(map(lambda _: random.random(), range(3)))  # noqa: C417


def draws_unseen(x: float) -> Any:
    return SHARED[0] * x * next(iter(random.random, 2.0))


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("alone", [True, False])
@pytest.mark.parametrize(
    "function",
    [draws_always, draws_by_a_method, draws_always_by_numpy, draws_in_c, draws_unseen],
    ids=lambda f: f.__name__,
)
def test_a_function_that_draws_is_not_recorded(function: Any, alone: bool) -> None:
    f = wengert.compile(function)
    with beside(*[] if alone else [draws, computes]):
        results = [f(1.0).data for _ in range(20)]
    assert len(set(results)) > 1
    assert not any(entry.specializations for entry in f._server.entries.values())
    assert "random numbers" in f.report()
    if alone:
        assert "runs uncompiled: it draws random numbers" in f.report()


def test_a_function_that_draws_later_is_found_beside_others_that_draw() -> None:
    """It draws on one side of a branch that the program does not have: a comparison tells, though others draw too."""
    from tests.hidden import Hidden

    hidden = Hidden(0.0)

    def function(x: float) -> Any:
        return SHARED[0] * x * (1.0 + random.random() if hidden.value else 1.0)

    f = wengert.compile(function)
    with beside(draws, computes):
        said = warned(*[lambda: f(1.0)] * 4)  # the others may draw in each of them
        hidden.value = 1.0
        said += warned(*[lambda: f(1.0)] * 40)
    assert any("random numbers" in each for each in said) or f._server.last.invalidations


def test_what_changes_each_time_rests_until_a_power_of_two() -> None:
    """The reason is told once, in a warning and in the report, and calls in between are not watched."""
    log: list[float] = []

    def logged(x: float) -> Any:
        log.append(x)
        return SHARED[0] * x

    f = wengert.compile(logged)
    watched: list[int] = []
    first_run = f._server.specializer.first_run
    f._server.specializer.first_run = lambda *args: watched.append(f._server.last.calls) or first_run(*args)  # type: ignore[func-returns-value]
    said = warned(*[lambda: f(1.0)] * 70)
    why = "it changes log at each call: return it instead; calls whose number is a power of two are observed again"
    assert said == [f"logged runs uncompiled: {why}"]
    assert watched == [1, 2, 3, 4, 8, 16, 32, 64]
    assert len(log) == 70
    assert f"runs uncompiled: {why}" in f.report()


def test_what_no_longer_changes_is_recorded_after_a_rest() -> None:
    cache: dict[float, float] = {}

    def cached(x: float) -> Any:
        if len(cache) < 6:
            cache[len(cache)] = x
        return SHARED[0] * x

    f = wengert.compile(cached)
    said = warned(*[lambda: f(1.0)] * 12)
    assert [each for each in said if "uncompiled" in each] == said
    assert f._server.last.changes == policy.CHANGES
    assert f._server.last.specializations
    assert "uncompiled" not in f.report()
    assert len(cache) == 6
    assert f(3.0).data == cached(3.0).data


def test_batches_rest_as_well() -> None:
    log: list[int] = []

    def logged(x: float) -> Any:
        log.append(1)
        return SHARED[0] * x

    f = wengert.compile(logged)
    watched: list[int] = []
    first_run = f._server.specializer.first_run
    f._server.specializer.first_run = lambda *args: watched.append(f._server.last.calls) or first_run(*args)  # type: ignore[func-returns-value]
    assert len(warned(*[lambda: f.map([1.0, 2.0, 3.0])] * 20)) == 1
    assert watched == [1, 2, 3, 4, 8, 16]
    assert len(log) == 60


class RefusedError(Exception):
    pass


def refuses(x: float) -> Any:
    if x < 0.0:
        raise RefusedError(x)
    return SHARED[0] * x


@pytest.mark.parametrize("how", ["one", "map", "grad"])
def test_what_raises_each_time_rests_until_a_power_of_two(how: str) -> None:
    """The exception is the function's own each time, and a call that raises none is compiled later."""
    f: Any = wengert.compile(wengert.grad(refuses) if how == "grad" else refuses)
    watched: list[int] = []
    first_run = f._server.specializer.first_run
    f._server.specializer.first_run = lambda *args: watched.append(f._server.last.calls) or first_run(*args)  # type: ignore[func-returns-value]

    def call(x: float) -> Any:
        return f.map([x, x]) if how == "map" else f(x)

    def raises() -> None:
        for _ in range(20):
            with pytest.raises(RefusedError) as caught:
                call(-1.0)
            assert caught.value.args == (-1.0,)
            assert caught.value.__cause__ is caught.value.__context__ is None

    why = (
        "it raised RefusedError: check the arguments before the call; calls whose number is a power of two are "
        "observed again"
    )
    assert warned(raises) == []  # which, as an error, would take the exception's place
    assert watched == [1, 2, 3, 4, 8, 16]
    assert f"runs uncompiled: {why}" in f.report()
    for _ in range(20):
        call(2.0)
    assert watched == [1, 2, 3, 4, 8, 16, 32]
    assert f._server.last.specializations
    assert "uncompiled" not in f.report()


def test_other_calls_are_still_recorded_where_some_raise() -> None:
    """Those that raise are no reason to leave a new branch to the function once one is compiled."""

    def function(x: float) -> Any:
        if x < 0.0:
            raise RefusedError(x)
        return SHARED[0] * x if x < 1.0 else SHARED[1] + x

    f = wengert.compile(function)
    f(0.5), f(0.5)
    for _ in range(7):
        with pytest.raises(RefusedError):
            f(-1.0)
    for _ in range(3):
        assert f(2.0).data == function(2.0).data
    assert len(f._server.last.specializations) == 2
    assert "uncompiled" not in f.report()
