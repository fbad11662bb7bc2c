"""What a compiled function sees outside itself, Values, lists and numbers: the new ones when they have changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

import wengert
from tests.compiler.checks import batch_of, by_type, lifted, same, specializations, warned
from wengert import Value
from wengert.compiler.call import KINDS, Captures, Place, PlaceGroup

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
        table.resize(shape, refcheck=False)
        same(loss(2.0), loss.function(2.0), [w])
    lifted(loss)


# ------------------------------------------------------------------------------------- what is read in bulk

TALL = np.random.default_rng(0).standard_normal((6, 3))
CHANGES: dict[str, Callable[[Any], Any]] = {  # of an array of 6 x 3, in place, or another one instead
    "an item": lambda table: table.__setitem__((4, 1), -7.0),
    "all of it": lambda table: table.__imul__(-2.0),
    "its shape": lambda table: table.resize((3, 6), refcheck=False),
    "its rows": lambda table: table.sort(axis=0),
    "a copy": lambda table: table.copy(),
    "every other row": lambda table: np.repeat(table * 1.5, 2, axis=0)[::2],
    "by columns": lambda table: np.asfortranarray(table + 1.0),
    "transposed": lambda table: (table * 0.5).T,
    "fewer rows": lambda table: table[:4].copy(),
    "another width": lambda table: table.astype("f4"),
    "another order of bytes": lambda table: table.astype(">f8") + 1.0,
    "integers": lambda table: (10.0 * table).astype(int),
    "bools": lambda table: table > 0.0,
    "objects": lambda table: (table + 2.0).astype(object),
    "nan": lambda table: table.__setitem__((0, 0), float("nan")),
}


def changed(table: Any, change: str) -> Any:
    """The array that is there once another one has been made of it, or that one itself."""
    try:
        made = CHANGES[change](table)
    except (TypeError, ValueError, AttributeError):  # bools are not multiplied, columns have no other shape
        return ~table if table.dtype == bool else table + 1
    return table if made is None else made


@pytest.mark.sampled(7)
@pytest.mark.filterwarnings("ignore:.*runs uncompiled")
@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize("start", ["float64", "int64", "float32", "bool", "by columns", "a view"])
@pytest.mark.parametrize("change", CHANGES)
def test_a_captured_array_is_what_it_is_at_each_call(change: str, start: str, batched: bool) -> None:
    how: dict[str, Callable[[Any], Any]] = {
        "by columns": np.asfortranarray,
        "a view": lambda x: np.repeat(x, 2, 0)[::2],
    }
    table = how[start](TALL) if start in how else (4.0 * TALL).astype(start)
    w = [Value(0.3), Value(-0.2), Value(0.5)]

    def loss(x: float) -> Value:
        rows = [w[0] * row[0] + w[1] * row[-1] * x + w[2] * len(row) for row in table]
        return sum([row * row for row in rows], Value(0.0))

    compiled = wengert.compile(loss)
    for n in range(12):
        if n == 5:
            table = changed(table, change)
        if batched:
            same(compiled.mean([0.5, 2.0]), batch_of(loss, [0.5, 2.0]), w)
        else:
            same(compiled(0.5), loss(0.5), w)


EDITS: dict[str, Callable[[list[Any]], Any]] = {
    "a row": lambda rows: rows.__setitem__(2, [5.0, -1.0, 2.0]),
    "an item": lambda rows: rows[3].__setitem__(1, -8.0),
    "an integer": lambda rows: rows[3].__setitem__(1, 4),
    "a bool": lambda rows: rows[0].__setitem__(0, True),
    "a Value": lambda rows: rows[1].__setitem__(2, Value(3.0)),
    "nan": lambda rows: rows[1].__setitem__(2, float("nan")),
    "one more": lambda rows: rows.append([1.0, 2.0, 3.0]),
    "one less": lambda rows: rows.pop(),
    "a longer row": lambda rows: rows[2].append(0.25),
    "a shorter row": lambda rows: rows[2].pop(),
    "reversed": lambda rows: rows.reverse(),
    "one row twice": lambda rows: rows.__setitem__(0, rows[5]),
    "a tuple": lambda rows: rows.__setitem__(0, (1.0, 2.0, 3.0)),
}


@pytest.mark.sampled(2)
@pytest.mark.filterwarnings("ignore:.*runs uncompiled")
@pytest.mark.parametrize("width", [1, 3, 9])
@pytest.mark.parametrize("edit", EDITS)
def test_captured_lists_of_floats_are_what_they_are_at_each_call(edit: str, width: int) -> None:
    rows: list[Any] = [[0.1 * (i + 1) * (j - 1) for j in range(3)] for i in range(6)]
    if width == 9:
        rows = [row * 3 for row in rows]
    flat = [0.5] * width
    w = [Value(0.3), Value(-0.2)]

    def loss(x: float) -> Value:
        rest = sum([a * w[1] for a in flat], Value(0.0))
        return sum([(w[0] * row[0] + w[1] * row[-1] * x + sum(row)) ** 2 for row in rows], rest)

    compiled = wengert.compile(loss)
    for n in range(12):
        if n == 5:
            EDITS[edit](rows)
            flat[-1] = 4.0
        same(compiled(0.5), loss(0.5), w)


def test_lists_of_values_are_the_ones_they_are_at_each_call() -> None:
    weights = [[Value(0.1 * (i + j)) for j in range(4)] for i in range(3)]
    every = [p for row in weights for p in row]
    loss = wengert.compile(lambda x: sum([(p * x + n) ** 2 for row in weights for n, p in enumerate(row)], Value(0.0)))
    for n in range(16):
        if n == 4:
            weights[1][2] = Value(7.0)
        if n == 8:
            weights[0].reverse()
        if n == 12:
            del weights[2][0]
        every += [p for row in weights for p in row if p not in every]
        same(loss(0.5), loss.function(0.5), every)
    lifted(loss)


def test_by_what_is_read_outside_nothing_is_derived() -> None:
    w, v, table = Value(0.7), Value(3.0), np.arange(12.0).reshape(4, 3)
    rate = [2.0, v, 4.0]
    loss = wengert.compile(
        lambda x: sum([(w * a * x) ** 2 for a in table.reshape(-1)], Value(0.0)) * sum(rate, Value(0.0))
    )
    for x in (0.5, 1.0, 2.0, 3.0, 0.5):
        same(loss(x), loss.function(x), [w, v])
    made = loss._server.latest()
    outside = {*range(len(made.parameters))} - {*made.own.tolist()}
    assert len(outside) == 14
    assert len(made.kernel.backward.gradients) < len(made.kernel.params)
    text = loss.source("numpy", gradient=True)
    assert text.count("np.zeros((4, 3))") == 1, text  # the table's place among the derivatives
    with made.acquire() as space:
        assert space.run([0.5], 1, True, 1.0)
        slopes = {a.shape: slopes for a, slopes in zip(made.kernel.params, space.buffers.grad_arrays, strict=True)}
    assert not slopes[4, 3].any()


class Plain:
    """What a program finds the parameters of by their attributes."""

    def __init__(self) -> None:
        self.w: Value = Value(0.5)
        self.rate: float = 2.0

    def parameters(self) -> list[Value]:
        return [x for x in vars(self).values() if isinstance(x, Value)]


class Slotted(Plain):
    """The same with a slot."""

    __slots__ = ("extra",)

    def parameters(self) -> list[Value]:
        return [*super().parameters(), *([self.extra] if hasattr(self, "extra") else [])]


class Counted(wengert.nn.Module):
    """The same, of a class that counts its changes."""

    def __init__(self) -> None:
        self.w = Value(0.5)


@pytest.mark.filterwarnings("ignore:.*runs uncompiled")
@pytest.mark.parametrize("kind", [Plain, Slotted, Counted])
@pytest.mark.parametrize("name", ["w", "extra", "another"])
@pytest.mark.parametrize("delete", [False, True])
def test_attributes_that_come_and_go_are_seen(kind: type, name: str, delete: bool) -> None:
    model = kind()
    if delete and name != "w":
        setattr(model, name, Value(3.0))
    penalty = wengert.compile(lambda x: sum([p * p * x for p in model.parameters()], Value(1.0)))
    every = model.parameters()
    for n in range(12):
        if n == 5 and delete:
            delattr(model, name)
        elif n == 5:
            setattr(model, name, Value(-4.0))
        every += [p for p in model.parameters() if p not in every]
        same(penalty(0.5), penalty.function(0.5), every)


@pytest.mark.filterwarnings("ignore:.*runs uncompiled")
@pytest.mark.parametrize(
    "edit",
    [
        lambda table: table.__setitem__("b", Value(9.0)),
        lambda table: table.__setitem__("way", "times"),
        lambda table: table.__setitem__("c", Value(9.0)),
        lambda table: table.pop("b"),
        lambda table: table.__setitem__("a", table.pop("a")),  # the last one now
        lambda table: table.__setitem__("b", 2.5),
        lambda table: table.clear(),
    ],
)
def test_a_dict_is_what_it_is_at_each_call(edit: Callable[[dict[str, Any]], Any]) -> None:
    table: dict[str, Any] = {"a": Value(2.0), "b": Value(3.0), "way": "plus"}
    every = [x for x in table.values() if isinstance(x, Value)]

    def loss(x: float) -> Value:
        made = Value(1.0)
        for n, (key, p) in enumerate(table.items()):
            if key != "way":
                made = made + p * x * (n + 1.0) if table["way"] == "plus" else made * p * x
        return made

    compiled = wengert.compile(loss)
    for n in range(12):
        if n == 5:
            edit(table)
        every += [x for x in table.values() if isinstance(x, Value) and x not in every]
        same(compiled(0.5), loss(0.5), every)


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_ways_through_a_function_read_the_same_outside(backend: str) -> None:
    """What several ways read is looked at once a call; each reads the floats itself, at its own places."""
    global FACTOR, WORD
    w, bias = Value(0.7), 0.5

    def f(x: float) -> Any:
        if x > 1.0:
            return w * x * FACTOR
        if x > 0.0:
            return (bias * w if WORD == "plus" else -w) * FACTOR + x * bias
        return w * x - FACTOR * bias

    compiled = wengert.compile(f, backend=backend)
    for now in [(2.0, "plus", 0.5), (3.0, "plus", -1.5), (3.0, "minus", 0.25), (-1.0, "plus", 0.5)]:
        FACTOR, WORD, bias = now
        for x in (2.0, 0.5, -1.0, 0.25, 3.0, -2.0):
            same(compiled(x), f(x), [w])
    lifted(compiled)
    assert specializations(compiled) == [4]


class Words:
    """What two ways through a function read of a class."""

    long = "four"
    short = "one"


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_one_way_alone_reads_an_attribute_of_a_class(backend: str, monkeypatch: pytest.MonkeyPatch) -> None:
    w = Value(3.0)

    def other(x: float) -> Any:
        return w * x * len(Words.short)

    def f(x: float, other: Any) -> Any:
        return w * x * len(Words.long) if x > 0.0 else other(x) * len(Words.long)

    compiled = wengert.compile(f, backend=backend)
    for word in ("one", "one", "three", "seven"):  # set again, the class has no version
        monkeypatch.setattr(Words, "short", word)
        for x in (2.0, -1.0, 1.0, -2.0, 3.0, -3.0):
            same(compiled(x, other), f(x, other), [w])
    lifted(compiled)


def test_ways_that_read_other_attributes_of_a_class(monkeypatch: pytest.MonkeyPatch) -> None:
    """Right after a change a class has no version by which two groups of its attributes could be told unchanged."""
    ways = []
    for name in ("long", "short"):
        group = PlaceGroup(Words, None)
        group.places.append(Place(KINDS[3], Words, name, getattr(Words, name), None, name))
        ways.append(Captures([], [], [group], []))
    monkeypatch.setattr(Words, "short", "three")
    assert ways[0].load(0, True) == ""
    assert ways[1].load(0, True, ways[0]) == "short"


SCALE = 2.0


@pytest.mark.parametrize("kind", ["grad", "value_and_grad", "jacobian", "hessian"])
def test_a_derivative_checks_what_its_function_reads_and_nothing_else(kind: str) -> None:
    def function(xs: Any, power: float = 2.0) -> Any:
        return sum(wengert.tanh(SCALE * x) ** power for x in xs) + xs[0] * xs[-1]

    def places(f: Any) -> list[Any]:
        compiled = wengert.compile(f)
        for _ in range(3):
            compiled([0.1, 0.2, 0.3])
        captures = compiled._server.latest().captures
        return [(place.kind, id(place.source), place.key) for place in captures.places]

    assert len(places(function)) > 3
    assert places(getattr(wengert, kind)(function)) == places(function)
