"""What a compiled function sees outside itself, Values, lists and numbers: the new ones when they have changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

import wengert
from tests.compiler.checks import batch_of, by_type, lifted, same, specializations, warned
from wengert import Value

np = pytest.importorskip("numpy")

FACTOR = 2.0
WORD = "plus"
FLAG = True
FACTORS = [2.0, 3.0]


@pytest.fixture(autouse=True)
def _globals_stay() -> Any:
    before = FACTOR, WORD, FLAG, list(FACTORS)
    yield
    globals().update(FACTOR=before[0], WORD=before[1], FLAG=before[2])
    FACTORS[:] = before[3]


# ------------------------------------------------------------------------------------- Values


def test_captured_nodes_pass_their_gradients_on() -> None:
    w, x0 = Value(0.7), [0.2, -0.4, 0.9]
    w2 = w * 2.0
    w3 = w2.exp()
    loss = wengert.compile(lambda x: (w2 * x + w3) ** 2 + w)
    for _ in range(2):
        same(loss(0.3), loss.function(0.3), [w])
        same(loss.mean(x0), batch_of(loss.function, x0), [w])
    lifted(loss)


def test_a_captured_node_made_anew_is_the_new_one() -> None:
    """A closure cell holds another Value now: its number and its gradient count."""
    w = Value(0.7)
    loss = wengert.compile(lambda x: w * x)
    loss(2.0)
    old, w = w, Value(5.0)
    for _ in range(5):
        w.grad = 0.0
        result = loss(2.0)
        result.backward()
        assert (result.data, w.grad, old.grad) == (10.0, 2.0, 0.0)
    lifted(loss)


def test_a_captured_model_does_not_outlive_its_compiled_function() -> None:
    import gc
    import weakref

    class Watched(Value):
        """A Value that can be watched."""

        __slots__ = ("__weakref__",)

    w = Watched(0.7)
    gone = weakref.ref(w)
    loss = (lambda w: wengert.compile(lambda x: w * x))(w)
    loss(2.0).backward()
    loss.mean([2.0, 3.0]).backward()
    del loss, w
    gc.collect()
    assert gone() is None


# ------------------------------------------------------------------------------------- lists, globals and closures


@pytest.mark.parametrize("when", [1, 3, 5, 9])
@pytest.mark.parametrize("how", ["single", "batch"])
def test_a_changed_list_is_read_anew(when: int, how: str) -> None:
    """At whichever call: neither is the recording stale, nor is there another."""
    w = Value(0.7)
    loss = wengert.compile(lambda x: w * x * FACTORS[0])
    X = [2.0] if how == "single" else [2.0, 3.0]
    for n in range(18):
        if n >= when:
            FACTORS[0] = 5.0 + n
        same(loss(2.0) if how == "single" else loss.mean(X), batch_of(loss.function, X), [w])
    lifted(loss)
    assert specializations(loss) == [1]


class Settings:
    """Holds a number that changes."""

    rate: float

    def __init__(self, rate: float) -> None:
        self.rate = rate


SETTINGS, TABLE, ARRAY = Settings(2.0), {"rate": 2.0, "deep": [[2.0]]}, np.array([[2.0]])


def of_an_attribute() -> tuple[Callable[[], float], Callable[[float], None]]:
    return lambda: SETTINGS.rate, lambda number: setattr(SETTINGS, "rate", number)


def of_an_entry() -> tuple[Callable[[], float], Callable[[float], None]]:
    return lambda: TABLE["rate"], lambda number: TABLE.update(rate=number)  # type: ignore[return-value]


def of_a_list_in_a_dict() -> tuple[Callable[[], float], Callable[[float], None]]:
    deep: Any = TABLE["deep"]
    return lambda: TABLE["deep"][0][0], lambda number: deep[0].__setitem__(0, number)  # type: ignore[index]


def of_an_array() -> tuple[Callable[[], float], Callable[[float], None]]:
    return lambda: ARRAY[0, 0], lambda number: ARRAY.__setitem__((0, 0), number)


def of_a_helper() -> tuple[Callable[[], float], Callable[[float], None]]:
    def helper() -> float:
        return FACTORS[1]

    return lambda: helper() / 2.0, lambda number: FACTORS.__setitem__(1, 2.0 * number)


def of_a_default() -> tuple[Callable[[], float], Callable[[float], None]]:
    options = [2.0]

    def helper(options: list[float] = options) -> float:
        return options[0]

    return helper, lambda number: options.__setitem__(0, number)


def test_a_counter_outside_is_what_it_is() -> None:
    w, counter = Value(0.7), Counter("aab")
    loss = wengert.compile(lambda x: w * x * counter["a"] + counter["z"])
    for _ in range(6):
        same(loss(1.5), loss.function(1.5), [w])
    lifted(loss)
    counter["a"] = 5
    same(loss(1.5), w * 7.5, [w])
    assert specializations(loss) == [2]


@pytest.mark.parametrize(
    "where",
    [of_an_attribute, of_an_entry, of_a_list_in_a_dict, of_an_array, of_a_helper, of_a_default],
    ids=lambda where: where.__name__,
)
def test_floats_outside_are_read_anew_at_each_call(where: Callable[[], Any]) -> None:
    read, write = where()
    w = Value(0.7)
    loss = wengert.compile(lambda x: (w * x * read()).tanh())
    for number in (2.0, 3.0, -1.0, 2.0, 0.5, 7.0, 0.1, 0.2, 0.3):
        write(number)
        same(loss(1.5), (w * 1.5 * number).tanh(), [w])
        same(loss.mean([1.5, 2.5]), wengert.mean([(w * x * number).tanh() for x in (1.5, 2.5)]), [w])
    write(2.0)
    lifted(loss)
    assert specializations(loss) == [1, 1]


def factor_alone(w: Value) -> Callable[[float], Any]:
    return lambda x: w * x * FACTOR


def factor_in_a_list(w: Value) -> Callable[[float], Any]:
    return lambda x: sum([w * x * FACTOR for _ in range(2)])


def factor_in_a_generator(w: Value) -> Callable[[float], Any]:
    return lambda x: sum(w * x * FACTOR for _ in range(2))


def factor_in_an_inner_function(w: Value) -> Callable[[float], Any]:
    def function(x: float) -> Any:
        def scaled(v: Any) -> Any:
            return v * FACTOR

        return scaled(w * x)

    return function


@pytest.mark.parametrize(
    "make",
    [factor_alone, factor_in_a_list, factor_in_a_generator, factor_in_an_inner_function],
    ids=lambda make: make.__name__,
)
def test_a_changed_global_float_is_read_anew(make: Callable[..., Any]) -> None:
    global FACTOR
    w = Value(0.7)
    loss = wengert.compile(make(w))
    for number in (2.0, 3.0, -1.0, 2.0):
        FACTOR = number
        same(loss(1.5), loss.function(1.5), [w])
        same(loss.mean([1.5, 2.5]), batch_of(loss.function, [1.5, 2.5]), [w])
    assert specializations(loss) == [1, 1]
    FACTOR = 4  # an integer is part of the program
    same(loss(1.5), loss.function(1.5), [w])
    lifted(loss)
    assert specializations(loss) == [2, 1]


def test_a_changed_global_string_or_flag_is_recorded_anew() -> None:
    global WORD, FLAG
    w = Value(0.7)

    @wengert.compile
    def loss(x: float) -> Any:
        v = w + x if WORD == "plus" else w - x
        return v if FLAG else -v

    for WORD in ("plus", "minus", "plus"):  # noqa: B007
        for FLAG in (True, False):  # noqa: B007
            same(loss(1.5), loss.function(1.5), [w])
    lifted(loss)


def test_a_changed_closure_number_is_recorded_anew() -> None:
    w = Value(0.7)
    factor: Any = 2.0
    loss = wengert.compile(lambda x: w * x * factor)
    for factor in (2.0, 3.0, True, 7):  # noqa: B007
        same(loss(1.5), loss.function(1.5), [w])
        same(loss.mean([1.5, 2.5]), batch_of(loss.function, [1.5, 2.5]), [w])
    lifted(loss)


def test_an_integer_that_changes_at_every_call_is_left_to_the_engine() -> None:
    w = Value(0.7)
    step = 0
    loss = wengert.compile(lambda x: w * x * step)

    def calls() -> None:
        nonlocal step
        for step in range(60):
            same(loss(1.5), w * 1.5 * step, [w])

    said = warned(calls)
    assert len(said) == 1
    assert "it reads step, which changes between calls: make step an argument" in said[0]


def test_numbers_outside_that_are_equal_and_of_other_types() -> None:
    w, k = Value(0.7), None
    loss = wengert.compile(lambda x: by_type(w, x, k))
    for k in (1, True, 1.0, 1):  # noqa: B007
        same(loss(2.0), loss.function(2.0), [w])
    lifted(loss)


def test_a_number_that_takes_the_place_of_another_in_memory_is_seen() -> None:
    """What is changed twice in a call may stand, in the end, where the first number stood."""
    w, state = Value(0.7), {"mean": float("0.5")}

    def loss(x: float) -> Any:
        for _ in range(2):
            state["mean"] = 0.9 * state["mean"] + 0.1
        return w * x * state["mean"]

    compiled = wengert.compile(loss)
    with pytest.warns(UserWarning, match="it changes state"):
        got = [compiled(1.0).data for _ in range(6)]
    state["mean"] = float("0.5")
    assert got == [loss(1.0).data for _ in range(6)]


def test_an_array_of_which_only_the_shape_is_read() -> None:
    w, table = Value(0.7), np.ones((2, 3))
    loss = wengert.compile(lambda x: w * x * len(table))
    for shape in ((2, 3), (2, 3), (3, 2), (6, 1), (2, 3)):
        table.shape = shape
        same(loss(2.0), loss.function(2.0), [w])
    lifted(loss)
