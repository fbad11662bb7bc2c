"""Functions that cannot be lifted: the engine computes, and one warning says why."""

from __future__ import annotations

import asyncio
import functools
import json
import math
import random
import warnings
from collections.abc import AsyncIterator, Callable, Iterator
from decimal import Decimal
from fractions import Fraction
from random import Random
from typing import Any

import pytest

import wengert
from tests.compiler.checks import CLOSE, batch_of, difference, lifted, line_of, same, specializations, warned
from wengert import Value
from wengert.errors import ArgumentError

np = pytest.importorskip("numpy")

pytestmark = pytest.mark.once  # what is followed, and when, is decided in Python


def leaking() -> list[tuple[str, Callable[..., Any]]]:
    """Functions that take a number out of the graph, each on the line after its first."""
    w = Value(0.7)

    def to_float(x: float) -> Any:
        return w * float((w * x).data)

    def to_math(x: float) -> Any:
        return w * math.exp((w * x).data)

    def to_text(x: float) -> Any:
        return w * float(f"{(w * x).data}")

    def to_str(x: float) -> Any:
        return w * float(str((w * x).data))

    def to_int(x: float) -> Any:
        return w * int((w * x * 10).data)

    def to_round(x: float) -> Any:
        return w * round((w * x * 10).data)

    def to_index(x: float) -> Any:
        return w * {0.7: 1.0}.get((w * x).data, 2.0)

    def to_repr(x: float) -> Any:
        return w * float(f"{(w * x).data!r}")

    functions = to_float, to_math, to_text, to_str, to_int, to_round, to_index, to_repr
    return [(function.__name__, function) for function in functions]


@pytest.mark.parametrize("name", [name for name, _ in leaking()])
def test_numbers_that_leave_the_graph(name: str) -> None:
    """They are recorded, or the recording holds for that number alone, and the report says on which line."""
    function = dict(leaking())[name]
    loss = wengert.compile(function)
    w = function.__closure__[0].cell_contents  # type: ignore[index]
    X = [0.5, 1.5, 2.5]
    for _ in range(4):
        for x in X:
            same(loss(x), function(x), [w])
        same(loss.mean(X), batch_of(function, X), [w])
        assert difference(loss.map(X), [function(x).data for x in X]) < CLOSE
    lifted(loss)
    recorded = name in ("to_float", "to_math", "to_int", "to_round")
    assert specializations(loss) == ([1, 1] if recorded else [3, 3])
    assert (line_of(function, 1) in loss.report()) is (name != "to_float")


@pytest.mark.parametrize("name", [name for name, _ in leaking()])
def test_more_than_32_numbers_that_leave_the_graph(name: str) -> None:
    """Where each is a specialization the engine computes, and one warning says where the number was taken out."""
    function = dict(leaking())[name]
    loss = wengert.compile(function)
    w = function.__closure__[0].cell_contents  # type: ignore[index]
    X = [0.25 * n + 0.1 for n in range(40)]

    def check() -> None:
        for x in X:
            same(loss(x), function(x), [w])

    said = warned(check, check)
    if name in ("to_float", "to_math", "to_int", "to_round"):
        assert said == []
        assert specializations(loss) == [1]
    else:
        assert len(said) == 1
        assert said[0].startswith(f"{name} runs uncompiled: it takes more than 32 specializations")
        assert line_of(function, 1) in said[0]
        assert said[0].partition(": ")[2] in loss.report()


def test_a_gradient_that_is_read() -> None:
    w = Value(0.7)
    w.grad = 3.0
    loss = wengert.compile(lambda x: w * x * w.grad)
    said = warned(lambda: loss(2.0), lambda: loss(2.0))
    assert len(said) == 1
    assert "gradient" in said[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        w.grad = 5.0
        assert loss(2.0).data == pytest.approx(7.0)


@pytest.mark.parametrize("draw", [random.random, np.random.random], ids=["random", "numpy"])
def test_random_numbers_are_refused(draw: Callable[[], float]) -> None:
    w = Value(0.7)
    loss = wengert.compile(lambda x: w * x * float(draw()))
    said = warned(lambda: loss(2.0), lambda: loss(2.0))
    assert len(said) == 1
    assert "random" in said[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert loss(2.0).data != loss(2.0).data


def test_a_counter_is_refused() -> None:
    w, calls = Value(0.7), [0]

    @wengert.compile
    def loss(x: float) -> Any:
        calls[0] += 1
        return w * x * calls[0]

    assert [len(warned(lambda: loss(2.0))) for _ in range(6)] == [0, 0, 0, 1, 0, 0]


def test_a_backward_inside_is_left_to_the_engine() -> None:
    """A derivative of a derivative by hand."""
    w = Value(0.7)

    @wengert.compile
    def loss(x: float) -> Any:
        inner = Value(2.0)
        (inner * inner * w).backward()
        return w * x * inner.grad

    want = loss.function(2.0).data
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(3):
            assert loss(2.0).data == pytest.approx(want)


@pytest.mark.parametrize(
    ("step", "said"), [("data", "changes the data or the gradient of a Value"), ("grad", "reads the gradient")]
)
def test_a_function_that_writes_or_reads_state_stays_with_the_engine(step: str, said: str) -> None:
    w = Value(0.7)

    @wengert.compile
    def loss(x: float) -> Any:
        if step == "data":
            w.data = 0.25
        return w * x if step == "data" else w * x + w.grad

    with pytest.warns(UserWarning, match=said):
        assert loss(2.0).data == (0.5 if step == "data" else 1.4)
    w.data, w.grad = 0.5, 3.0
    assert loss(2.0).data == (0.5 if step == "data" else 4.0)
    assert said in loss.report()


# ------------------------------------------------------------------------------------- what cannot be compiled at all


class Deferred:
    """Methods that only begin what runs later, and an object that is called as one."""

    def generator(self, x: float) -> Iterator[Value]:
        yield Value(x)

    async def coroutine(self, x: float) -> Value:
        return Value(x)

    @staticmethod
    async def both(x: float) -> AsyncIterator[Value]:
        yield Value(x)

    async def __call__(self, x: float) -> Value:
        return Value(x)


@functools.wraps(math.exp)
def named_exp(x: float) -> Iterator[Value]:
    yield Value(x)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (Deferred.generator, "generator is a generator function, whose call .*: return a list instead of yielding"),
        (Deferred().generator, "generator is a generator function"),
        (Deferred().coroutine, r"coroutine is a coroutine function \(async def\), .*: compile a plain def, and await"),
        (Deferred.both, "both is an asynchronous generator function, .*: compile a plain def that returns a list"),
        (Deferred(), "Deferred is a coroutine function"),
        (functools.partial(functools.partial(Deferred().coroutine), x=1.0), "coroutine is a coroutine function"),
        (functools.partial(Deferred(), 1.0), "Deferred is a coroutine function"),
        (named_exp, "exp is a generator function"),
        (lambda x: (yield x), "<lambda> is a generator function"),
    ],
)
def test_functions_that_only_begin_are_refused(function: Any, message: str) -> None:
    for decorate in (wengert.compile, wengert.compile(static="x"), wengert.compile(backend="numpy", checks="first")):
        with pytest.raises(ArgumentError, match=message):
            decorate(function)
    with pytest.raises(ArgumentError, match="is a generator function"):

        class Model:
            @wengert.compile
            def forward(self, x: float) -> Iterator[Value]:
                yield Value(x)


def test_a_wrapper_that_finishes_what_such_a_function_begins_is_compiled() -> None:
    w = Value(0.7)

    async def coroutine(x: float) -> Value:
        return w * x

    def generator(x: float) -> Iterator[Value]:
        yield from (w * x, w - x)

    @functools.wraps(generator)
    def total(x: float) -> Any:
        return wengert.sum(list(generator(x)))

    @functools.wraps(coroutine)
    def begun(x: float) -> Any:
        return coroutine(x)

    loss = wengert.compile(total)
    for x in (0.5, 1.5, 2.5):
        same(loss(x), total(x), [w])
    lifted(loss)
    late = wengert.compile(begun)
    with pytest.warns(
        UserWarning, match="coroutine runs uncompiled: it returns a coroutine: a compiled function returns"
    ):
        pending = [late(x) for x in (0.5, 1.5)]
    assert [asyncio.run(each).data for each in pending] == [0.35, 0.7 * 1.5]  # as often as it was called, no more


# ------------------------------------------------------------------------------------- what is said


@pytest.mark.parametrize(
    ("result", "kind"),
    [
        (lambda y: None, "None"),
        (lambda y: "text", "a str"),
        (lambda y: [y, {1.0}], "a set"),
        (lambda y: complex(y.data, 1.0), "a complex"),
        (lambda y: [complex(y.data, 1.0)], "a complex"),
        (lambda y: Fraction(1, 2), "a Fraction"),
        (lambda y: {1.0}, "a set"),
    ],
)
def test_results_that_are_no_numbers(result: Any, kind: str) -> None:
    w = Value(0.7)
    loss = wengert.compile(lambda x: result(w * x))
    made: list[Any] = []
    said = warned(*[lambda: made.append(loss(2.0))] * 4)
    assert [repr(each) for each in made] == [repr(result(w * 2.0))] * 4
    assert said == [
        f"<lambda> runs uncompiled: it returns {kind}: a compiled function returns a Value or a number, or lists, "
        "tuples, dicts and arrays of them"
    ]


def test_where_tracing_stopped() -> None:
    """The line of the user's, not that of a library, and why."""
    w = Value(0.7)

    def inner(x: float) -> Any:
        return len(json.dumps(x))  # which is written in C

    def outer(x: float) -> Any:
        return w * inner(x)

    loss = wengert.compile(outer)
    said = warned(*[lambda: same(loss(2.5), outer(2.5), [w])] * 4)
    assert len(said) == 1
    assert said[0].startswith(
        f"outer runs uncompiled: recording stopped at {line_of(inner, 1)} (return len(json.dumps(x))"
    )
    assert "which takes plain numbers only (TypeError: " in said[0]


def test_control_flow_that_differs_while_tracing() -> None:
    w = Value(0.7)

    def straight(x: float) -> Any:
        return w * x

    def other(x: float) -> Any:
        return w + x

    loss = wengert.compile(lambda x: straight(x) if str(type(x)) == "<class 'float'>" else other(x))
    said = warned(*[lambda: same(loss(2.0), straight(2.0), [w])] * 4)
    assert said == [
        "<lambda> runs uncompiled: control flow differed while it was recorded, at the call of straight "
        f"({line_of(straight, 0)} (def straight(x: float) -> Any:)): ask for a type by isinstance(x, float) or type(x) "
        "is float, or pass a string that says which path to take"
    ]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: float.__mul__(x, 2.0) + float.__add__(1.5, x),
        lambda x: float.is_integer(x) + x,
        lambda x: sum(map(float.__add__, [x, 1.0], [2.0, x])),
        lambda x: float(Decimal(x) * 2 + Decimal("0.5")),
        lambda x: abs(complex(x, 1.0)),
        lambda x: Random(int(x * 2)).random() * x,
        lambda x: int.bit_length(int(x * 8)),
    ],
)
def test_numbers_that_code_of_c_is_given(function: Any) -> None:
    """They are taken out: each is a specialization."""
    w = Value(0.7)
    loss = wengert.compile(lambda x: w * function(x))
    for x in (0.5, 2.0, 1.25) * 3:
        same(loss(x), w * function(x), [w])
    lifted(loss)


def test_the_report_says_what_is_compared() -> None:
    w = Value(0.5)

    @wengert.compile
    def loss(xs: Any, n: int) -> Any:
        total = w * 0.0
        for x in xs:
            if x > 0:
                total = total + w * x
        if n == 3:
            total = total * 2.0
        if total.data <= 4.0:
            return total
        return total + float(str(xs[1]))

    for _ in range(2):
        loss([1.0, -2.0, 3.5, 4.0, 5.0], 3)
    lines = [line.strip() for line in loss.report().splitlines() if "guard:" in line]
    assert lines == [
        f"guard: {line_of(loss.function, 4)} (if x > 0:): "
        "xs[0] > 0 was True, xs[1] > 0 was False, xs[2] > 0 was True, and 2 others",
        f"guard: {line_of(loss.function, 6)} (if n == 3:): n == 3 was True",
        f"guard: {line_of(loss.function, 8)} (if total.data <= 4.0:): 13.5 <= 4 was False",
        f"guard: {line_of(loss.function, 10)} (return total + float(str(xs[1]))): xs[1] was -2",
    ]


def test_too_many_specializations_name_the_lines_at_which_they_differ() -> None:
    w = Value(0.7)

    @wengert.compile
    def loss(x: float) -> Any:
        if x > -1.0:  # always
            y = w * x
        return y * float(str(x)) if x < 100.0 else y

    def calls() -> None:
        for n in range(40):
            same(loss(0.25 * n), loss.function(0.25 * n), [w])

    said = warned(calls)
    assert len(said) == 1
    assert line_of(loss.function, 4) in said[0]
    assert line_of(loss.function, 2) not in said[0]


def test_a_recording_that_is_dropped_says_so_each_time_and_at_which_comparison() -> None:
    """Machine code adds in another order than a loop, so that a sum that is compared to its last digit differs."""
    pytest.importorskip("llvmlite")
    terms = [1e16, *[1.0] * 38, -1e16]
    ws = [Value(1.0) for _ in terms]
    total = sum((w * x for w, x in zip(ws, terms, strict=True)), Value(0.0)).data

    @wengert.compile(backend="native")
    def loss(xs: Any) -> Any:
        if xs[0] < 0:
            return ws[0]
        made = sum((w * x for w, x in zip(ws, xs, strict=True)), Value(0.0))
        return made if made.data == total else made * 2.0

    said = warned(*[lambda: same(loss(terms), loss.function(terms), ws)] * 8)
    assert [" is dropped: " in text for text in said] == [True, True, False]
    for text in said:
        assert f"the comparison at {line_of(loss.function, 5)} (return made if made.data == total" in text
        assert f" == {total:g} was False in the array program, which may add in another order" in text


BROKEN = "the array program raises ZeroDivisionError: on purpose, and the function does not"
DERIVATIVES = [wengert.grad, wengert.value_and_grad, wengert.hessian]


@pytest.mark.parametrize("how", ["", "map"])
@pytest.mark.parametrize("of", [lambda f: f, *DERIVATIVES])
@pytest.mark.parametrize("broken", [("forward", "forward_backward"), ("forward_backward",)])
def test_a_program_that_raises_an_error_is_left_at_once(
    of: Callable[[Any], Any], how: str, broken: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where NumPy runs a program, its error is no reason to record again, and it is said."""
    from wengert.compiler.backends.numpy import NumPyKernel

    def raises(*_: Any) -> Any:
        raise ZeroDivisionError("on purpose")

    w = Value(0.7)
    for run in broken:
        monkeypatch.setattr(NumPyKernel, run, raises)
    plain = of(lambda x: wengert.tanh(w * x))
    compiled = wengert.compile(plain, backend="numpy")

    def called(n: int) -> Any:
        if how:
            return getattr(compiled, how)([0.01 * n, 0.2 * n])
        return compiled(0.01 * n)

    said = warned(*[functools.partial(called, n) for n in range(1, 8)])
    (entry,) = compiled._server.entries.values()
    if "forward" in broken or not how or of not in DERIVATIVES:
        assert said == [f"<lambda> runs uncompiled: {BROKEN}"]
        assert entry.fallback_reason == BROKEN
    else:  # `map` computes no derivatives, and a check finds what it does not ask for
        assert all("the array program raises ZeroDivisionError: on purpose" in text for text in said)
