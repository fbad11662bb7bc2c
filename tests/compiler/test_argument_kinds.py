"""Arguments of every container and row type, nested to three levels: a compiled function is the function."""

from __future__ import annotations

import array
import collections
import subprocess
import sys
from typing import Any

import pytest

import wengert
from tests.compiler.checks import warned
from wengert import Value

np = pytest.importorskip("numpy")

from tests.compiler import argument_kinds  # noqa: E402
from tests.compiler.numbered import in_processes  # noqa: E402

pytestmark = pytest.mark.once  # what is recorded and lifted does not depend on which engine runs

W = Value(2.0)


@pytest.mark.parametrize("backend", ["numpy", "native"])
def test_a_sample_of_all_kinds(backend: str) -> None:
    if backend == "native":
        pytest.importorskip("llvmlite")
    start = 0 if backend == "numpy" else 900
    assert in_processes(argument_kinds, start, argument_kinds.CASES, 1801, backend) == []


@pytest.mark.nightly
@pytest.mark.parametrize("start", range(0, 40_000, 500))
def test_many_of_all_kinds(start: int) -> None:
    """All of one level, each third of two, and each seventieth of three."""
    whole = argument_kinds.WHOLE
    ends = {0: (0, whole[0], 1), 1: (whole[0], whole[1], 3), 2: (whole[1], argument_kinds.CASES, 70)}
    numbers = [number for first, end, step in ends.values() for number in range(first, end, step)]
    part = numbers[start : start + 500]
    if part:
        assert argument_kinds.compare_all(part) == []


ROWS = [
    "range(s, s + 3)", "collections.deque([s, 1])", "array.array('d', [s, 1])", "bytearray([s, 1])", "bytes([s, 1])",
    "memoryview(bytes([s, 1]))", "memoryview(array.array('d', [s, 1]))", "str(s) + '1'", "collections.UserList([s, 1])",
]  # fmt: skip
PROGRAM = """
import array, collections, wengert
from wengert import Value
W = Value(2.0)
for rows in ({made},):
    f = wengert.compile(lambda rows: W * sum([float(row[0]) for row in rows]))
    for _ in range(6):
        for given in (rows(1), rows(2)):
            assert f(given).data == f.function(given).data
            assert f.map([given, given]).tolist() == [f.function(given).data] * 2
"""


@pytest.mark.parametrize("rows", ["[{0}, {0}]", "({0}, {0})", "[[1, 1], {0}]", "[{0}, [1, 1]]"])
def test_rows_that_are_no_lists(rows: str) -> None:
    """In a process of its own: once, what is no list was read as one in C."""
    program = PROGRAM.format(made=", ".join([f"lambda s: {rows.format(row)}" for row in ROWS]))
    ran = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


def test_lists_that_are_shortened_while_they_are_read() -> None:
    """`__float__` of an item may do anything; the list is read as far as it goes."""
    rows: list[Any] = []

    class Shortens(float):
        def __float__(self) -> float:
            rows.clear()
            return 1.0

    f = wengert.compile(lambda rows: W * (sum([row[0] for row in rows]) if rows else 1.0))
    for _ in range(6):
        rows[:] = [[1.0], [2.0]]
        f(rows)
    for _ in range(3):
        rows[:] = [[Shortens(1.0)], [2.0]]
        assert f(rows).data == 6.0


def test_readers_are_bounded_by_their_shape() -> None:
    from wengert.compiler.call import ArgumentReader

    with pytest.raises(ValueError, match="numbers with the shape"):
        ArgumentReader("numbers", float, 0, (2, 3), (list,))
    with pytest.raises(ValueError, match="1 keys"):
        ArgumentReader("keyed", dict, keys=("a",))


# ---------------------------------------------------------------------------------------- many, deep, and repeated


def nested(kind: str, depth: int) -> Any:
    made: Any = None
    for n in range(depth):
        made = {"list": [float(n), made], "tuple": (float(n), made), "dict": {0: float(n), 1: made}}[kind]
    return made


def total(x: Any) -> Any:
    made = 0.0
    while x is not None:
        made, x = made + x[0], x[1]
    return W * made


@pytest.mark.parametrize("kind", ["list", "tuple", "dict"])
@pytest.mark.parametrize("depth", [20, 1_000, 5_000, 100_000])
def test_arguments_that_are_nested_deep(kind: str, depth: int) -> None:
    x, compiled = nested(kind, depth), wengert.compile(total)
    said = warned(*[lambda: compiled(x)] * 4)
    assert compiled(x).data == total(x).data
    assert len(said) == (depth > 100)
    assert all("nested more than 32 levels deep: pass its numbers in a list or an array" in text for text in said)
    while x is not None:  # else the interpreter recurses to free it
        x = x[1]


def test_arguments_that_contain_themselves_or_share_parts() -> None:
    itself: list[Any] = [1.0]
    itself.append(itself)
    shared: Any = (1.0, 2.0)
    for _ in range(60):
        shared = (shared, shared)

    def first(x: Any) -> Any:
        while not isinstance(x, float):
            x = x[0]
        return W * x

    for x in (itself, {0: 1.0, 1: shared}, shared):
        compiled = wengert.compile(first)
        assert len(warned(*[lambda compiled=compiled, x=x: compiled(x)] * 3)) == 1
        assert compiled(x).data == 2.0


def test_arguments_of_many_parts() -> None:
    rows = [{"a": float(n)} for n in range(1 << 16)]
    compiled = wengert.compile(lambda rows: W * rows[1]["a"])
    (said,) = warned(*[lambda: compiled(rows)] * 3)
    assert "an argument has more than 65,536 parts: pass numbers in arrays" in said
    assert compiled(rows).data == 2.0


@pytest.mark.skipif(not wengert.engine.compiled, reason="the table of addresses is in C")
@pytest.mark.parametrize("count", [2, 8, 9, 16, 17, 64, 65, 500, 5_000])
def test_distinct_objects_are_served_at_once_and_repeated_ones_are_seen(count: int) -> None:
    """However many there are, an argument whose objects are all different is read by the call path."""
    compiled = wengert.compile(lambda xs: xs[0] * xs[1] + xs[-1])
    xs = tuple([Value(0.5 * n) for n in range(count)])
    for _ in range(6):
        compiled(xs)
    asked: list[Any] = []
    server = compiled._server
    compiled._server = type("Counted", (), {"call": lambda *args: asked.append(args) or server.call(*args[1:])})()
    assert compiled(xs).data == (xs[0] * xs[1] + xs[-1]).data
    assert not asked
    for place in {1, count // 2, count - 1}:
        twice = (*xs[:place], xs[0], *xs[place + 1 :])
        assert compiled(twice).data == (twice[0] * twice[1] + twice[-1]).data
    assert asked


@pytest.mark.parametrize("kind", [list, tuple])
def test_lists_of_bools_are_read_like_numbers(kind: Any) -> None:
    """One signature for all patterns; where the function branches on them they are guards."""
    chosen = wengert.compile(lambda mask, xs: sum([W * x for m, x in zip(mask, xs, strict=True) if m], Value(0.0)))
    scaled = wengert.compile(lambda mask, xs: sum([W * m * x for m, x in zip(mask, xs, strict=True)]))
    asked = wengert.compile(lambda mask: W * (2 if mask[0] is True else 3) * (5 if type(mask[1]) is bool else 7))
    xs = [1.0, 2.0, 4.0]
    for _ in range(3):
        for number in range(8):
            mask = kind([bool(number & 1 << n) for n in range(3)])
            assert chosen(mask, xs).data == scaled(mask, xs).data == 2.0 * number
            assert asked(mask).data == (20.0 if mask[0] else 30.0)
    for compiled in (chosen, scaled, asked):
        assert len(compiled._server.entries) == 1
        assert "uncompiled" not in compiled.report()


def test_what_is_equal_and_not_the_same_has_another_signature() -> None:
    def told(x: Any) -> Any:
        one = next(iter(x), None)
        return W * len(repr(x)) * (2 if isinstance(one, bool) else 3 if isinstance(one, int) else 7)

    compiled = wengert.compile(told)
    pairs = [
        (range(0), range(2, 2)), (range(0, 3, 2), range(0, 4, 2)), ({1}, {True}), ({1}, {1.0}),
        (frozenset([0.0]), frozenset([-0.0])), ({1: 2.0}, {True: 2.0}), ({1: 2.0}, {1.0: 2.0}),
        ([1.0, 2.0], [np.float64(1.0), np.float64(2.0)]), ([1, 2], [True, False]),
    ]  # fmt: skip
    for pair in pairs:
        for _ in range(4):
            for x in pair:
                assert compiled(x).data == told(x).data
    assert "uncompiled" not in compiled.report()


def test_the_report_says_that_objects_are_new_at_each_call() -> None:
    class Rates:
        def __init__(self, low: float) -> None:
            self.low = low

    compiled = wengert.compile(lambda rates, x: W * rates.low * x)
    for n in range(600):
        assert compiled(Rates(float(n)), 2.0).data == 4.0 * n
    assert "calls of rates, with a new Rates: each is recorded anew, or runs uncompiled. Pass" in compiled.report()
    assert "not called" not in compiled.report()


def test_arrays_and_deques_are_what_they_are() -> None:
    compiled = wengert.compile(lambda xs: W * len(xs) * xs[0])
    for x in (array.array("d", [1.0, 2.0]), collections.deque([1.0, 2.0]), range(1, 3), bytes([1, 2])):
        for _ in range(3):
            assert compiled(x).data == 4.0
