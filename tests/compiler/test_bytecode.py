"""What the compiler believes about a function's bytecode, also with opcodes that no Python has yet."""

from __future__ import annotations

import dis
import heapq
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

import wengert
from wengert import Value
from wengert.compiler.code import bytecode

np = pytest.importorskip("numpy")

pytestmark = pytest.mark.once

MISSING: Any = object()
FLAG: Any = True
FACTOR: Any = 2.0
COUNT: Any = 0
W: Any = Value(2.0)
POINTS = [(0.5, 0.7), (0.6, -0.7), (-0.5, 0.3), (-0.2, -0.9), (0.7, 0.6), (1.0, 2.0), (3.0, -1.0), (-2.0, 5.0)]


class Settings:
    flag: Any = True


SETTINGS = Settings()


# ------------------------------------------------------------------------------------- identity of bools and numbers


def two_conditions(x: Any, y: Any) -> Any:
    up, left = x > 0, y > 0
    return W * x if up is left else W * y * 3


def two_conditions_not(x: Any, y: Any) -> Any:
    return W * x if (x > 0) is not (y > 0) else W * y * 3


def is_function(x: Any, y: Any) -> Any:
    return W * x if operator.is_(x > 0, y > 0) else W * y * 3


def is_not_function(x: Any, y: Any) -> Any:
    return W * x if operator.is_not(x > 0, y > 0) else W * y * 3


def is_function_mapped(x: Any, y: Any) -> Any:
    return W * x if all(map(operator.is_, [x > 0], [y > 0])) else W * y * 3


def is_function_by_name(x: Any, y: Any) -> Any:
    return W * x if getattr(operator, "is_")(x > 0, y > 0) else W * y * 3  # noqa: B009


def same_id(x: Any, y: Any) -> Any:
    return W * x if id(x > 0) == id(y > 0) else W * y * 3


def in_list(x: Any, y: Any) -> Any:
    return W * x if (x > 0) in [y > 0] else W * y * 3


def place_in_list(x: Any, y: Any) -> Any:
    return W * x if [x > 0, y > 0].index(True) == 0 else W * y * 3


def count_in_list(x: Any, y: Any) -> Any:
    return W * x if [x > 0, y > 0].count(True) == 1 else W * y * 3


def key_of_dict(x: Any, y: Any) -> Any:
    return W * x if {True: 1, False: 2}[x > 0] == 1 else W * y * 3


def matched(x: Any, y: Any) -> Any:
    match x > 0:
        case True:
            return W * x
        case _:
            return W * y * 3


def with_global(x: Any, y: Any) -> Any:
    return W * x if (x > 0) is FLAG else W * y * 3


def with_attribute(x: Any, y: Any) -> Any:
    return W * x if (x > 0) is SETTINGS.flag else W * y * 3


def with_choice(x: Any, y: Any) -> Any:
    return W * x if (x > 0) is (True if y > 0 else None) else W * y * 3


def with_item(x: Any, y: Any) -> Any:
    return W * x if [x > 0][0] is {"y": y > 0}["y"] else W * y * 3


def with_call(x: Any, y: Any) -> Any:
    return W * x if bool(x > 0) is bool(y > 0) else W * y * 3


def with_not(x: Any, y: Any) -> Any:
    return W * x if (not x > 0) is (not y > 0) else W * y * 3


def with_walrus(x: Any, y: Any) -> Any:
    return W * x if (a := (x > 0)) is (y > 0) and a else W * y * 3


def with_both(x: Any, y: Any) -> Any:
    return W * x if ((x > 0) & (y > 0)) is True else W * y * 3


def with_whole_number(x: Any, y: Any) -> Any:
    return W * x if x.is_integer() is (y > 0) else W * y * 3


def of_numpy(x: Any, y: Any) -> Any:
    return W * x if np.isfinite(x) is np.isfinite(y) else W * y * 3


def in_generator(x: Any, y: Any) -> Any:
    return W * x if any(a is b for a in [x > 0] for b in [y > 0]) else W * y * 3


def itself(x: Any, y: Any) -> Any:
    return W * x if (x > 0) is (x > 0) else W * y * 3


def largest(x: Any, y: Any) -> Any:
    return W * x if max(x, y) is x else W * y * 3


def smallest(x: Any, y: Any) -> Any:
    return W * x if min(x, y, 5.0) is y else W * y * 3


def largest_by_function(x: Any, y: Any) -> Any:
    return W * x if operator.is_(max(x, y), x) else W * y * 3


def sentinel(x: Any, y: Any) -> Any:
    return W * x if (x > 0) is not MISSING and y > 0 else W * y * 3


def absent(x: Any, y: Any = None) -> Any:
    return W * x if y is None else W * x * 2


IDENTITY = [two_conditions, two_conditions_not, is_function, is_not_function, is_function_mapped, is_function_by_name,
            same_id, in_list, place_in_list, count_in_list, key_of_dict, matched, with_global, with_attribute,
            with_choice, with_item, with_call, with_not, with_walrus, with_both, with_whole_number, of_numpy,
            in_generator, itself, largest, smallest, largest_by_function, sentinel, absent]  # fmt: skip


def outcome(function: Callable[..., Any], point: tuple[float, ...]) -> Any:
    W.grad = 0.0
    try:
        result = function(*point)
        result.backward()
    except ValueError as error:
        return str(error)
    return result.data, W.grad


def is_itself(function: Callable[..., Any], points: list[Any]) -> None:
    """Compare a compiled function with the function; no comparison of its own has to put it right."""
    compiled = wengert.compile(function)
    for point in points:
        assert outcome(compiled, point) == outcome(function, point), (function.__name__, point)
    assert "dropped" not in compiled.report()


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("function", IDENTITY, ids=lambda f: f.__name__)
def test_identity_of_conditions_and_numbers(function: Callable[..., Any]) -> None:
    for first in POINTS[:3]:  # seven calls, and then no comparison notices another branch
        is_itself(function, [*[first] * 7, *POINTS * 2])


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
def test_a_number_is_not_compared_by_identity() -> None:
    namespace: dict[str, Any] = {"w": W}
    exec("def f(n):\n    return w * n if n is 0 else w + n", namespace)
    compiled = wengert.compile(namespace["f"])
    with pytest.warns(UserWarning, match="asks by `is` whether a number is a constant: write =="):
        assert [compiled(n).data for n in (0, 1, 0, 2, 0)] == [0.0, 3.0, 0.0, 4.0, 0.0]


CONSTANTS = ["0", "1", "7", "-1", "256", "1000", "-1000", "0.0", "0.5", "-0.5", "1e9", "2j", "True", "False", "None",
             "...", "''", "'a'", "b''"]  # fmt: skip


@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@pytest.mark.parametrize("asked", ["n is {}", "n is not {}", "{} is n", "len([n]) is {}", "[n, {}][1] is {}"])
@pytest.mark.parametrize("constant", CONSTANTS)
def test_a_constant_is_seen_however_python_loads_it(constant: str, asked: str) -> None:
    """Each Python has other opcodes for some: small numbers, None, True, empty text."""
    namespace: dict[str, Any] = {}
    exec("def f(n):\n    return " + asked.format(constant, constant), namespace)
    ((left, right),) = bytecode.bytecode_of(namespace["f"].__code__).compares
    (of,) = left if asked.startswith("{}") else right
    expected = eval(constant)
    assert type(of) is type(expected)
    assert of == expected
    is_number = type(expected) in (int, float, complex)
    assert bytecode.tells_numbers(namespace["f"].__code__, {}) is is_number
    if not asked.startswith("{}"):
        assert bytecode.observes_bools(namespace["f"].__code__, {}) is (type(expected) is bool)


@pytest.mark.parametrize("count", [0, 300])
def test_an_object_that_two_branches_give_is_any_object(count: int) -> None:
    """With many variables, jumps lead to the prefix of the instruction that loads one."""
    namespace: dict[str, Any] = {}
    lines = ["def f(m, x, y):", *[f"    v{n} = {n}.5" for n in range(count)], "    v = x", "    w = y"]
    exec("\n".join([*lines, "    return (w if m else None) is v"]), namespace)
    assert bytecode.bytecode_of(namespace["f"].__code__).compares[0][0] is None
    assert bytecode.tells_objects(namespace["f"].__code__, {})


def gathered(x: Any) -> Any:
    return W * x if any(each > 0.5 for each in [x, 2.0]) and all(each > -9.0 for each in (x,)) else W


def test_loops_that_python_writes_for_any_and_all_ask_for_no_identity_of_arguments() -> None:
    """Python 3.14 asks by `is` whether `any` is the built-in one, and writes a loop then."""
    for names in ({}, {"any": any, "all": all}):
        assert not bytecode.observes_bools(gathered.__code__, names)
        assert not bytecode.tells_objects(gathered.__code__, names)
        assert not bytecode.tells_numbers(gathered.__code__, names)


def enclosing(held: Any) -> Any:
    def asks(x: Any) -> bool:
        return x is held

    return asks


def with_a_sentinel(xs: Any) -> Any:
    sentinel = object()
    largest = max(xs, default=sentinel)
    return None if largest is sentinel else largest


def with_two(xs: Any, m: Any) -> Any:
    sentinel = object()
    if m:
        sentinel = xs[0]
    return xs[1] is sentinel


@pytest.mark.parametrize(("held", "asks"), [(object(), False), (len, False), (1.5, True), ([1.5], True), ("a", True)])
def test_what_a_free_variable_holds_says_whether_equal_objects_are_told_apart(held: Any, asks: bool) -> None:
    code = enclosing(held).__code__
    assert bytecode.tells_objects(code, {bytecode.FreeVariable("held"): held}) is asks  # type: ignore[dict-item]
    assert bytecode.tells_objects(code, {})  # it is not known


def test_a_sentinel_is_no_number() -> None:
    assert not bytecode.tells_objects(with_a_sentinel.__code__, {})
    assert bytecode.tells_objects(with_a_sentinel.__code__, {"object": float})
    assert bytecode.tells_objects(with_two.__code__, {})


@dataclass
class Particles:
    mass: float
    places: list[Any] = field(default_factory=lambda: [1.5, 2.5])


def test_what_python_itself_asks_of_sentinels_leaves_ints_compiled() -> None:
    """`heapq.nlargest`, and the `__init__` of a dataclass with a default factory."""

    def largest(xs: Any, k: int) -> Any:
        return W * sum(heapq.nlargest(k, xs)) * Particles(2.0).places[1]

    compiled = wengert.compile(largest)
    for n in range(8):
        xs, k = [0.5, 1.5 + n, 2.5], 1 + n // 4
        assert compiled(xs, k).data == pytest.approx(largest(xs, k).data)
    assert "uncompiled" not in compiled.report()


def test_masks_stay_masks_where_nothing_asks_for_identity() -> None:
    """`is None` and a global that is no bool do not make guards of comparisons."""

    def masked(x: Any, y: Any = None) -> Any:
        scale = 1.0 if y is None or y is MISSING else y
        return W * ((x > 0) * x + (x < 0) * scale)

    compiled = wengert.compile(masked)
    for x in (0.5, -0.5, 1.5, -2.5):
        assert compiled(x).data == masked(x).data
    assert len(compiled._server.last.specializations) == 1
    assert "guard" not in compiled.report()


def test_a_global_that_becomes_a_bool(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "FLAG", None)
    compiled = wengert.compile(with_global)
    for number, point in enumerate(POINTS * 2):
        if number == 5:
            globals()["FLAG"] = False
        assert outcome(compiled, point) == outcome(with_global, point)


# ------------------------------------------------------------------------------------- opcodes that no Python has yet


def reads_globals(x: Any) -> Any:
    return W * x * FACTOR


def counts(x: Any) -> Any:
    global COUNT
    COUNT += 1
    return W * x + COUNT


def imports(x: Any) -> Any:
    import math

    return W * math.sin(x) if x else W


def fills(x: Any) -> Any:
    found = np.zeros(2)
    found[0] = x
    found[1:] = 2.0 * x
    return W * (found[0] + found[1])


def calls_inner(x: Any) -> Any:
    calls = 0

    def inner(y: Any, *, k: float = 2.0) -> Any:
        nonlocal calls
        calls += 1
        return y * k + FACTOR

    return W * inner(x, k=3.0) + inner(y=x) * calls


def loops(x: Any) -> Any:
    total = W * 0.0
    for n, each in enumerate([x, *[x * k for k in range(3)]]):
        if each > 1.0 and n % 2:
            continue
        total = total + each * n
    return total if total.data else W


class Rate:
    rate: Any = 1.0

    def of(self, x: Any) -> Any:
        return W * x * self.rate


RATE = Rate()


def reads_attributes(x: Any) -> Any:
    return RATE.of(x) + super(Rate, RATE).__eq__(None) if x > 99 else RATE.of(x)


def changes_attributes(x: Any) -> Any:
    RATE.rate = RATE.rate + 1.0
    return RATE.of(x)


def of_a_class(x: Any) -> Any:
    class Inner:
        scale = FACTOR

        def of(self, y: Any) -> Any:
            return y * self.scale

    return W * Inner().of(x)


SINGLES: list[Callable[..., Any]] = [
    reads_globals,
    counts,
    imports,
    fills,
    calls_inner,
    loops,
    reads_attributes,
    changes_attributes,
    of_a_class,
]
PAIRS: list[Callable[..., Any]] = [two_conditions, matched, with_choice, largest, absent, in_list]
OPCODES = sorted({step.opname for f in (*SINGLES, *PAIRS, Rate.of) for step in dis.get_instructions(f)})


@pytest.fixture
def invented() -> Iterator[Callable[[str], None]]:
    """Have an opcode look like one that no Python has yet."""
    instructions = dis.get_instructions

    def invent(opcode: str) -> None:
        def renamed(code: Any, **options: Any) -> Iterator[Any]:
            for step in instructions(code, **options):
                yield step._replace(opname=f"{step.opname}_OF_THE_FUTURE") if step.opname == opcode else step

        dis.get_instructions = renamed  # type: ignore[assignment]
        bytecode.bytecode_of.cache_clear()

    before = FACTOR, COUNT, Rate.rate
    yield invent
    dis.get_instructions = instructions
    bytecode.bytecode_of.cache_clear()
    globals().update(FACTOR=before[0], COUNT=before[1])
    Rate.rate = before[2]
    vars(RATE).clear()


def changing(function: Callable[..., Any], compile: Callable[..., Any]) -> list[Any]:
    """What a function gives while what it reads changes."""
    globals().update(FACTOR=2.0, COUNT=0)
    vars(RATE).clear()
    called = compile(function)
    results = []
    for call in range(10):
        if call in (2, 5):
            globals()["FACTOR"] += 1.0
            RATE.rate = RATE.rate + 0.5
        point = POINTS[call % len(POINTS)] if function in PAIRS else (0.5 + call,)
        results.append((outcome(called, point), COUNT, RATE.rate))
    return results


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("opcode", OPCODES)
def test_an_opcode_never_seen_costs_speed_and_never_truth(opcode: str, invented: Callable[[str], None]) -> None:
    invented(opcode)
    for function in (*SINGLES, *PAIRS):
        assert changing(function, wengert.compile) == changing(function, lambda f: f), function.__name__


@pytest.mark.filterwarnings("ignore:.*runs uncompiled")
@pytest.mark.filterwarnings("ignore::SyntaxWarning")
@pytest.mark.parametrize("asked", ["n is 0", "n is (1 if n < 9 else 0)", "n is 1.5", "any(n is k for k in (1.5, 0))"])
def test_an_opcode_never_seen_that_loads_a_number_or_compares(asked: str, invented: Callable[[str], None]) -> None:
    namespace: dict[str, Any] = {"w": W}
    exec(f"def f(n):\n    return w * n if {asked} else w + n\n\nnumber = 1.5", namespace)
    f, same = namespace["f"], namespace["number"]
    for opcode in {step.opname for step in dis.get_instructions(f)}:
        for points in ([5, 6, 7, 0, 1, 0], [0, 0, 1, 1, 0], [2.5, 3.5, same, same, 2.5], [same, 2.5, same]):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(dis, "get_instructions", dis.get_instructions)
                invented(opcode)
                compiled = wengert.compile(f)
                assert [compiled(n).data for n in points] == [f(n).data for n in points], (opcode, points)


def test_every_opcode_of_this_python_is_on_a_list() -> None:
    """Else functions are slow on it: each new Python's opcodes are looked at, and listed in bytecode.py."""
    internal = ("INSTRUMENTED_", "RESERVED", "ENTER_EXECUTOR", "INTERPRETER_EXIT", "TRACE_RECORD")
    missing = {name for name in dis.opmap if not name.startswith(internal)} - bytecode.LISTED
    assert not missing, sorted(missing)


def test_specialized_opcodes_are_not_seen() -> None:
    """Python puts them into the code as it runs: what the compiler reads is what was compiled."""

    def often(x: Any, n: Any) -> Any:
        total = x * 2.0 + n
        for k in [1, 2, 3]:
            total += len([k]) if n is None or n == k else SETTINGS.flag
        return total

    before = [step.opname for step in dis.get_instructions(often)]
    for _ in range(1000):
        often(1.0, 2.0)
    assert [step.opname for step in dis.get_instructions(often)] == before
    assert {*before} <= bytecode.LISTED


def test_what_an_opcode_never_seen_may_do(invented: Callable[[str], None]) -> None:
    code = reads_globals.__code__
    assert bytecode.bytecode_of(code) == (
        frozenset(["W", "FACTOR"]), frozenset(), frozenset(["W", "FACTOR"]), (), (), False, (), False
    )  # fmt: skip
    assert bytecode.computing(code) is not None
    invented("LOAD_GLOBAL")
    names = frozenset(["W", "FACTOR"])
    found = bytecode.bytecode_of(code)
    assert (found.read, found.written, found.attributes) == (names, names, names)
    assert set(found.imported) == names
    assert found.assigns_items
    assert bytecode.observes_bools(code, {})
    assert bytecode.tells_objects(code, {})
    assert bytecode.computing(code) is None


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("opcode", ["STORE_SUBSCR", "COMPARE_OP", "LOAD_GLOBAL", "BINARY_OP", "RESUME"])
def test_rules_of_operations_with_an_opcode_never_seen(opcode: str, invented: Callable[[str], None]) -> None:
    """A branch of a rule that was not taken may do anything then, so it is not tried."""
    seen = [0.0]

    def value(x: float) -> float:
        if x > 1.0:
            seen[0] = seen[0] + x
        return x * float(FACTOR)

    bent = wengert.op(f"bent_{opcode.lower()}", value=value, partials=lambda out, x: FACTOR)
    invented(opcode)
    compiled = wengert.compile(lambda x: bent(W * x))
    assert [compiled(x).data for x in (0.1, 0.2, 0.3, 0.4)] == [4.0 * x for x in (0.1, 0.2, 0.3, 0.4)]
    assert seen == [0.0]
    assert compiled(0.9).data == 4.0 * 0.9
    assert seen == [1.8]
