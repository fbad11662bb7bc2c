"""A program of the collection, compiled and as it stands, side by side: the results, the gradients, what else happens.

Both get copies of their own of everything: of the module, the parameters and the arguments. What is compared, on four
data sets with the parameters' numbers changed in place between them: results, gradients with respect to parameters and
arguments, the kind of an exception, printed text, the state of the global generators of random numbers, arguments after
the call, and whatever a program with effects observes.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import io
import itertools
import math
import random
import sys
import time
import traceback
import warnings
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import numpy as np

import wengert
from tests.programs.kit import MODES, Kind, Program
from wengert import Graph, Value

__all__ = ["LIFTED", "Outcome", "Side", "collection", "trial"]

HERE = Path(__file__).resolve().parent
SETS = 4
SINGLE = 5  # single calls of a data set, and fewer with Values
BATCHES = (1, 2, 7, 64)
CLOSE = 1e-9  # relative to each number
ROUNDING = 1e-13  # of every term that went into it
NOTED = 4  # failures of a program that are kept, with their numbers
LIFTED = "lifted"


@dataclass
class Outcome:
    """What became of a program.

    Attributes:
        verdict: "lifted" or "engine" where all was right, else "wrong", "raised", "hung" or "died".
        reasons: why the engine runs it, in the words of its report.
        accepted: the program's own reason why a user would accept the engine.
        others: why another back end runs it than the one that was asked for, in the same words.
        failures: the first of those found, each with its mode and its numbers.
        compared: how many calls were compared.
    """

    name: str
    verdict: str = LIFTED
    reasons: list[str] = field(default_factory=list)
    accepted: str = ""
    others: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    compared: int = 0
    seconds: float = 0.0


# ------------------------------------------------------------------------------------------------ the collection


def collection() -> list[str]:
    """The names of all programs, as "field.name"."""
    names = []
    for path in sorted(HERE.glob("*.py")):
        if path.stem not in ("kit", "trial") and not path.stem.startswith(("_", "test_")):
            found = vars(loaded(path.stem))
            names += [f"{path.stem}.{name}" for name, thing in found.items() if isinstance(thing, Program)]
    return names


NUMBERED = itertools.count()


@functools.cache
def code_of(name: str) -> CodeType:
    """A field's file, compiled once."""
    path = HERE / f"{name}.py"
    return compile(path.read_text(encoding="utf-8"), str(path), "exec", dont_inherit=True)


def loaded(name: str) -> ModuleType:
    """A field's module, loaded anew."""
    module = ModuleType(f"{__package__}.{name}_{next(NUMBERED)}")
    module.__file__ = str(HERE / f"{name}.py")
    sys.modules[module.__name__] = module  # where dataclasses and pickles look for it
    exec(code_of(name), vars(module))
    return module


class Side:
    """One of the two: a program's function over parameters and a module of its own, perhaps compiled for a back end."""

    def __init__(self, name: str, backend: str = "") -> None:
        stem, _, own = name.partition(".")
        self.name = name
        self.program: Program = getattr(loaded(stem), own)
        drawn = self.drawn(0)
        given = {key: self.kind(key).values(x) for key, x in drawn.items()}
        self.parameters: list[Value] = values_in(given)
        made = self.program.factory(**given)
        self.plain: Any
        self.observe: Callable[[], Any]
        self.plain, self.observe = made if self.program.effects else (made, lambda: None)
        self.function: Any = self.plain
        self.compiled = bool(backend)
        if self.compiled:
            self.function = wengert.compile(self.plain, static=self.program.static, backend=backend)

    def kind(self, parameter: str) -> Kind:
        """What a parameter of the factory is."""
        default = inspect.signature(self.program.factory).parameters[parameter].default
        return default if isinstance(default, Kind) else Kind(lambda draw: draw.uniform(0.2, 1.5), values=Value)

    def drawn(self, number: int) -> dict[str, Any]:
        """The numbers of the parameters in a data set."""
        draw = random.Random(f"{self.name} {number}")
        return {name: self.kind(name).draw(draw) for name in inspect.signature(self.program.factory).parameters}

    def move(self, number: int, disturbed: float = 0.0) -> None:
        """Give the parameters the numbers of a data set, in place."""
        numbers = numbers_in(list(self.drawn(number).values()))
        for k, (parameter, x) in enumerate(zip(self.parameters, numbers, strict=True)):
            parameter.data = x * (1.0 + disturbed * math.sin(7.0 * k + 1.0))

    def arguments(self, seed: str, count: int = 0) -> list[dict[str, Any]]:
        """Those of one example, or of each example of a batch: the same again from the same seed."""
        draw = random.Random(f"{self.name} {seed}")
        kinds = self.program.arguments
        shared = {name: kind.draw(draw) for name, kind in kinds.items() if kind.shared and count}
        same = {name for name, kind in kinds.items() if kind.twin and draw.random() < 0.5 and not count}
        examples = []
        for _ in range(max(1, count)):
            example: dict[str, Any] = {}
            for name, kind in kinds.items():
                if name in same:
                    example[name] = example[kind.twin]
                else:
                    example[name] = shared[name] if name in shared else kind.draw(draw)
            examples.append(example)
        return examples

    def call(self, mode: str, seed: str, count: int, by_name: bool) -> Seen:
        """One call, and everything that is to be seen of it."""
        for p in self.parameters:
            p.grad = 0.0
        random.seed(seed)
        np.random.seed(len(seed))  # the global generator is what programs of users draw from
        examples = self.arguments(seed, 0 if mode in ("call", "values") else count)
        example = examples[0]
        kinds = self.program.arguments
        if mode == "values":
            made = {name: kinds[name].values(x) for name, x in example.items()}
            for name, kind in kinds.items():
                if kind.twin and example[name] is example[kind.twin]:
                    made[name] = made[kind.twin]
            example = made
        seen = Seen()
        seen.leaves = values_in(example) if mode == "values" else []
        printed = io.StringIO()
        try:
            with contextlib.redirect_stdout(printed), warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                if mode in ("call", "values"):
                    result = given(self.function, example, by_name)
                elif self.compiled:
                    result = given(getattr(self.function, mode), self.columns(examples), by_name)
                else:
                    result = combined([given(self.function, x, by_name) for x in examples], mode)
                seen.root = None if mode == "map" else root_of(result)  # map gives numbers without a graph
                if seen.root is not None:
                    seen.root.backward()
        except Exception as error:
            seen.exception = error
        else:
            seen.result = result
            seen.numbers = numbers_in(result)
            seen.irregular = () if all(map(is_number, leaves_of(result))) else described(result)
        seen.parameters = [p.grad for p in self.parameters]
        seen.data = [p.data for p in self.parameters]
        if mode in ("call", "values"):
            seen.arguments = [v.grad for v in seen.leaves]
            seen.after = described(example)
        _, keys, *rest = np.random.get_state()
        drawn = hash(random.getstate()), hash((keys.tobytes(), *rest))
        seen.effects = described([printed.getvalue(), f"generators at {drawn}", self.observe()])
        return seen

    def columns(self, examples: list[dict[str, Any]]) -> dict[str, Any]:
        """The arguments of a batch."""
        made = {}
        for name, kind in self.program.arguments.items():
            assert kind.column is not None
            made[name] = kind.column([example[name] for example in examples])
        return made


def given(function: Any, arguments: dict[str, Any], by_name: bool) -> Any:
    """Call a function with its arguments by place or by name."""
    return function(**arguments) if by_name else function(*arguments.values())


def combined(results: list[Any], mode: str) -> Any:
    """What a batch comes to without a compiler."""
    return results if mode == "map" else wengert.mean(results) if mode == "mean" else wengert.sum(results)


# ------------------------------------------------------------------------------------------------ what is seen


class Seen:
    """What a call gave and did."""

    def __init__(self) -> None:
        self.exception: Exception | None = None
        self.result: Any = None
        self.numbers: list[float] = []
        self.irregular: Any = ()  # a result that is not made of numbers
        self.root: Any = None
        self.parameters: list[float] = []
        self.data: list[float] = []
        self.leaves: list[Value] = []
        self.arguments: list[float] = []
        self.after: Any = ()
        self.effects: Any = ()


def leaves_of(thing: Any) -> Iterator[Any]:
    """What lists, tuples, dicts and arrays hold, however deep."""
    if isinstance(thing, np.ndarray):
        thing = thing.tolist()
    if isinstance(thing, dict):
        thing = list(thing.values())
    if isinstance(thing, (list, tuple)):
        for item in thing:
            yield from leaves_of(item)
    else:
        yield thing


def is_number(x: Any) -> bool:
    """Whether something stands for a real number."""
    return isinstance(x, (Value, int, float, np.number, np.bool_))


def numbers_in(thing: Any) -> list[float]:
    """The numbers that something is made of."""
    return [float(x.data if isinstance(x, Value) else x) for x in leaves_of(thing) if is_number(x)]


def values_in(thing: Any) -> list[Value]:
    """The Values that something is made of, each once."""
    found = {id(x): x for x in leaves_of(thing) if isinstance(x, Value)}
    return list(found.values())


def root_of(result: Any) -> Value | None:
    """What backward() is called on: the result, or of several a sum in which each has a weight of its own."""
    if isinstance(result, Value):
        return result
    found = [x for x in leaves_of(result) if isinstance(x, Value)]
    return wengert.dot(found, [1.0 + 0.5 * k for k in range(len(found))]) if found else None


def described(thing: Any, around: tuple[int, ...] = ()) -> Any:
    """Anything as text, numbers, lists and tuples, which can be compared."""
    if thing is None or isinstance(thing, (bool, np.bool_, str, bytes)):
        return thing if thing is None or isinstance(thing, (str, bytes)) else bool(thing)
    if type(thing) is int or isinstance(thing, np.integer):
        return int(thing)
    if type(thing) is float or isinstance(thing, np.floating):
        return float(thing)
    if isinstance(thing, Value):
        return (type(thing).__name__, thing.data)
    if id(thing) in around:
        return "itself"
    inside = (*around, id(thing))
    if isinstance(thing, np.ndarray):
        return ("array", str(thing.dtype), [described(x, inside) for x in thing.tolist()] if thing.ndim else str(thing))
    if isinstance(thing, dict):
        return (type(thing).__name__, [(described(k, inside), described(x, inside)) for k, x in thing.items()])
    if isinstance(thing, (set, frozenset)):
        return (type(thing).__name__, sorted(map(repr, thing)))
    if isinstance(thing, (list, tuple, array)) or hasattr(thing, "popleft"):
        return (type(thing).__name__, [described(x, inside) for x in thing])
    if isinstance(thing, random.Random):
        return (type(thing).__name__, thing.getstate())
    if isinstance(thing, np.random.Generator):
        return (type(thing).__name__, described(thing.bit_generator.state, inside))
    if callable(thing):
        return getattr(thing, "__name__", type(thing).__name__)
    if hasattr(thing, "__next__"):  # what it would still give
        return (type(thing).__name__, [described(x, inside) for x in itertools.islice(thing, 100)])
    slots = {name: getattr(thing, name, None) for name in getattr(type(thing), "__slots__", ())}
    return (type(thing).__name__, described({**slots, **getattr(thing, "__dict__", {})}, inside))


# ------------------------------------------------------------------------------------------------ how it is compared


def near(got: float, want: float, allowed: float = 0.0) -> bool:
    """Whether two numbers are the same to rounding."""
    if math.isnan(want) or math.isinf(want):
        return got == want or (math.isnan(got) and math.isnan(want))
    return abs(got - want) <= CLOSE * abs(want) + allowed + 1e-300


def alike(got: Any, want: Any) -> bool:
    """Whether two descriptions are the same, numbers to rounding."""
    if isinstance(want, float) and type(got) is float:
        return near(got, want, 1e-15)
    if isinstance(want, (list, tuple)):
        return type(got) is type(want) and len(got) == len(want) and all(map(alike, got, want))
    return type(got) is type(want) and bool(got == want)


def rounding(seen: Seen, parameters: list[Value]) -> tuple[float, list[float], list[float]]:
    """How far rounding can carry the result, and the gradients with respect to parameters and arguments: the sums of
    the absolute values of all that was added up, through the whole graph.
    """
    if seen.root is None:
        return 0.0, [0.0] * len(parameters), [0.0] * len(seen.leaves)
    graph = Graph(seen.root)
    n = len(graph)
    sums = [0.0] * n
    sums[graph.outputs[0]] = 1.0
    for i in reversed(range(n)):
        for k in range(graph.starts[i], graph.starts[i + 1]):
            if graph.operands[k] >= 0:
                sums[graph.operands[k]] += abs(graph.partials[k]) * sums[i]
    total = sum(s * abs(v.data) for s, v in zip(sums, graph.values, strict=True))
    found = {id(v): s for v, s in zip(graph.values, sums, strict=True)}
    each = [[found.get(id(v), 0.0) * ROUNDING for v in some] for some in (parameters, seen.leaves)]
    return total * ROUNDING, each[0], each[1]


class Comparison:
    """The calls of one program, compared one after the other."""

    def __init__(self, name: str, backend: str) -> None:
        self.outcome = Outcome(name)
        self.plain, self.compiled = Side(name), Side(name, backend)
        self.number = 0

    def call(self, mode: str, seed: str, count: int) -> None:
        """Call both, and note what differs."""
        by_name = self.number % 2 == 1 and named(self.plain.plain, list(self.plain.program.arguments))
        want = self.plain.call(mode, seed, count, by_name)
        got = self.compiled.call(mode, seed, count, by_name)
        self.outcome.compared += 1
        where = f"{mode}{count or ''} on set {self.number}"
        if got.exception is not None or want.exception is not None:
            if type(got.exception).__name__ != type(want.exception).__name__:  # the program's own is in two modules
                self.fail("wrong" if got.exception is None else "raised", where, said(want), said(got))
        else:
            self.results(mode, seed, count, where, got, want)
        for what in ("effects", "after", "data"):
            mine, theirs = getattr(got, what), getattr(want, what)
            if what != "data":
                same = alike(mine, theirs)
            else:
                same = all(map(near, mine, theirs))
            if not same:
                title = {"effects": "effects", "after": "arguments after the call", "data": "parameters' numbers"}[what]
                self.fail("wrong", f"{where}, {title}", *difference(theirs, mine))

    def results(self, mode: str, seed: str, count: int, where: str, got: Seen, want: Seen) -> None:
        """Compare the numbers of a call that raised nothing."""
        if not alike(got.irregular, want.irregular) or len(got.numbers) != len(want.numbers):
            self.fail("wrong", where, f"{want.result!r:.200}", f"{got.result!r:.200}")
            return
        pairs = [("result", got.numbers, want.numbers), ("gradients of parameters", got.parameters, want.parameters)]
        pairs.append(("gradients of arguments", got.arguments, want.arguments))
        if all(near(x, y) for _, mine, theirs in pairs for x, y in zip(mine, theirs, strict=True)):
            return
        if len(self.outcome.failures) == NOTED and self.outcome.verdict == "wrong":
            return  # more would not be noted
        by_result, by_parameters, by_arguments = rounding(want, self.plain.parameters)
        if len(want.numbers) > 1:  # the bound is that of their weighted sum, and so one for each of them
            by_result = max([by_result, *[rounding_of(x) for x in leaves_of(want.result)]])
        noise = self.noise(mode, seed, count, want)
        bounds = [[by_result] * len(want.numbers), by_parameters, by_arguments]
        for (what, mine, theirs), allowed, extra in zip(pairs, bounds, noise, strict=True):
            for place, (x, y) in enumerate(zip(mine, theirs, strict=True)):
                bound = allowed[place] + min(extra[place], 1e7 * allowed[place])
                if not near(x, y, bound):
                    which = f"{what} [{place}]" if len(theirs) > 1 else what
                    self.fail("wrong", f"{where}, {which}", f"{y!r}", f"{x!r}")

    def noise(self, mode: str, seed: str, count: int, want: Seen) -> list[list[float]]:
        """How far the plain function's own results move with its parameters' last digits: its condition."""
        other = Side(self.outcome.name)
        other.move(self.number, 1e-13)
        found = other.call(mode, seed, count, False)
        lists = [(found.numbers, want.numbers), (found.parameters, want.parameters), (found.arguments, want.arguments)]
        return [
            [3.0 * abs(x - y) if math.isfinite(x - y) else 0.0 for x, y in zip(mine, theirs, strict=True)]
            if len(mine) == len(theirs)
            else [0.0] * len(theirs)
            for mine, theirs in lists
        ]

    def fail(self, verdict: str, where: str, want: str, got: str) -> None:
        """Note a failure; a wrong answer outweighs an exception."""
        if self.outcome.verdict in (LIFTED, "raised"):
            self.outcome.verdict = verdict
        if len(self.outcome.failures) < NOTED:
            self.outcome.failures.append(f"{where}: expected {want}, got {got}")


def rounding_of(x: Any) -> float:
    """How far rounding can carry one of several results."""
    if not isinstance(x, Value):
        return 0.0
    seen = Seen()
    seen.root = x
    return rounding(seen, [])[0]


def named(function: Any, names: list[str]) -> bool:
    """Whether a function's arguments can be given by these names."""
    found = inspect.signature(function).parameters
    given_so = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    return all(name in found and found[name].kind in given_so for name in names)


def said(seen: Seen) -> str:
    """An exception, or what came instead."""
    if seen.exception is None:
        return f"{seen.numbers}"[:120]
    last = traceback.extract_tb(seen.exception.__traceback__)[-1]
    place = f"({Path(last.filename).name}, line {last.lineno})"
    return f"{type(seen.exception).__name__}: {seen.exception}"[:200] + f" {place}"


def difference(want: Any, got: Any) -> tuple[str, str]:
    """Where two descriptions first differ."""
    while isinstance(want, (list, tuple)) and isinstance(got, (list, tuple)) and len(want) == len(got):
        place = next((k for k, (x, y) in enumerate(zip(got, want, strict=True)) if not alike(x, y)), None)
        if place is None:
            break
        want, got = want[place], got[place]
    return f"{want!r:.200}", f"{got!r:.200}"


def trial(name: str, backend: str = "auto", sets: int = SETS, batches: Sequence[int] = BATCHES) -> Outcome:
    """Run a program in all of its modes on so many data sets, and batches; each program begins with another mode."""
    began = time.perf_counter()
    compared = Comparison(name, backend)
    outcome = compared.outcome
    program = compared.plain.program
    outcome.accepted = program.engine
    start = sum(map(ord, name)) % len(MODES)
    modes = [mode for mode in MODES[start:] + MODES[:start] if mode in program.modes]
    for number in range(sets):
        compared.number = number
        compared.plain.move(number)
        compared.compiled.move(number)
        for mode in modes:
            if mode in ("call", "values"):
                for example in range(SINGLE if mode == "call" else SINGLE // 2):
                    compared.call(mode, f"{number} {mode} {example}", 0)
            else:
                for count in batches:
                    compared.call(mode, f"{number} {mode} {count}", count)
    report = compared.compiled.function.report()
    said_so = reasons(report)
    outcome.others = sorted({line.strip() for line in report.splitlines() if "not run as " in line})
    if outcome.verdict == LIFTED and said_so:
        outcome.verdict = "engine"
    outcome.reasons = said_so
    outcome.seconds = time.perf_counter() - began
    return outcome


def reasons(report: str) -> list[str]:
    """Why the engine runs a function, from its report; empty where it was lifted. (For arguments of which it raises an
    exception each time there is nothing to lift.)
    """
    lines = [line.strip() for line in report.splitlines()]
    found = [line.partition("uncompiled:")[2].strip() for line in lines if "uncompiled:" in line]
    found = [why for why in found if not why.startswith("it raised ")]
    if not found and not any(line.startswith("specialization ") for line in lines):
        found = ["no recording was made"]
    return list(dict.fromkeys(found))
