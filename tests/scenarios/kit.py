"""How a scenario is written: a user's program whose surroundings change while its function is called.

::

    @scenario
    def argparse_namespace(compile):
        args, w = argparse.Namespace(lr=1.0), Value(1.0)
        f = compile(lambda x: w * x * args.lr)
        for k in range(24):
            if k in (5, 11, 21):
                args.lr += 0.5
            yield f(0.5), w

A scenario is a generator that takes ``compile`` and yields what a user would see. It runs in processes of its own: in
one, ``compile`` gives the function itself, with ``map``, ``mean`` and ``sum`` as loops; in the others it is
`wengert.compile` with a back end. All have to yield the same.

- ``yield thing``: a result, or any state: numbers, text, lists, dicts, arrays, Values, Modules, plain objects.
- ``yield result, w, model``: a result, and whose gradients count: Values, lists of them, Modules. `backward` is
  called on the result (on a weighted sum, where it is a list), the gradients are read, then set to 0. A result that is
  a tuple stands alone in another: ``yield (result,)``.
- ``yield attempt(f, 0.5)``: a result, or the kind and the text of the exception that the call raised.

Printed text, warnings and the state of Python's and NumPy's random numbers are compared too; both generators start from
the same seed. A function is recorded at its first call, compiled at the second, compared at calls 1 to 4 and at powers
of two; where something is recorded anew, the next four are compared as well. So it is called at least twelve times, and
what changes does so at calls 5, 11, 17 or 21 (counted from 0), at which no comparison notices it. A module's globals
may be changed: no other scenario runs in the process.

``@scenario(each={"name": thing, ...})`` makes one scenario of each thing, which is passed as the second argument;
``documented="..."`` names the line of "Not seen" in `docs/lifting.md` for which the result may be wrong;
``needs="pydantic"`` leaves it out where that is not installed.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import io
import math
import random
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from wengert import Value, nn

__all__ = ["BACKENDS", "Outcome", "Plain", "Trace", "attempt", "collection", "compared", "drive", "scenario"]

BACKENDS = ("auto", "numpy", "native", "xla")
FEWEST = 12  # calls of a compiled function, the examples of a batch not counted
CLOSE = 1e-9  # relative to each number
TINY = 1e-12  # below which two numbers are the same


@dataclass(frozen=True)
class Scenario:
    """A scenario of the collection.

    Attributes:
        run: takes `compile` and gives a generator of what is observed.
        documented: the line of the documentation that allows for a wrong result.
        needs: the library without which it is left out.
    """

    name: str
    run: Callable[[Callable[..., Any]], Iterator[Any]]
    documented: str = ""
    needs: str = ""

    @property
    def is_here(self) -> bool:
        """Return True if the library that it needs is installed."""
        return not self.needs or find_spec(self.needs) is not None


SCENARIOS: dict[str, Scenario] = {}


def scenario(
    function: Callable[..., Iterator[Any]] | None = None,
    *,
    each: Mapping[str, Any] | None = None,
    documented: str = "",
    needs: str = "",
) -> Any:
    """Make a generator function a scenario of the collection; see the module."""
    if function is None:
        return functools.partial(scenario, each=each, documented=documented, needs=needs)
    name = f"{function.__module__.rpartition('.')[2]}.{function.__name__}"
    runs = {name: function} if each is None else {}
    for key, thing in (each or {}).items():
        runs[f"{name}[{key}]"] = functools.partial(_with, function, thing)
    for full, run in runs.items():
        assert full not in SCENARIOS, f"there are two scenarios {full}"
        SCENARIOS[full] = Scenario(full, run, documented, needs)
    return function


def _with(function: Callable[..., Iterator[Any]], thing: Any, compile: Callable[..., Any]) -> Iterator[Any]:
    return function(compile, thing)


def collection() -> dict[str, Scenario]:
    """All scenarios of the folder by their names, "file.scenario"."""
    for path in sorted(Path(__file__).parent.glob("*.py")):
        if path.stem != "kit" and not path.stem.startswith(("_", "test_")):
            import_module(f"tests.scenarios.{path.stem}")
    return dict(sorted(SCENARIOS.items()))


# ------------------------------------------------------------------------------------------------ the plain side


class Plain:
    """The function itself, with what `wengert.compile` adds to it as loops."""

    calls = 0  # of all functions of the process

    def __init__(self, function: Callable[..., Any], static: Any = ()) -> None:
        functools.update_wrapper(self, function, updated=())
        self.function, self.static = function, (static,) if isinstance(static, str) else tuple(static)

    def __call__(self, *args: Any, **named: Any) -> Any:
        Plain.calls += 1
        return self.function(*args, **named)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else Plain(self.function.__get__(instance, owner), self.static)

    def _results(self, args: tuple[Any, ...], named: dict[str, Any]) -> list[Any]:
        Plain.calls += 1
        bound = inspect.signature(self.function).bind(*args, **named).arguments
        columns = {name: x for name, x in bound.items() if name not in self.static and _is_column(x)}
        (count,) = {_length(x) for x in columns.values()}
        results = []
        for k in range(count):
            results.append(self.function(**{name: _row(x, k) if name in columns else x for name, x in bound.items()}))
        return results

    def map(self, *args: Any, **named: Any) -> Any:
        return np.array([_numbers(result) for result in self._results(args, named)])

    def sum(self, *args: Any, **named: Any) -> Any:
        return sum(self._results(args, named), Value(0.0))

    def mean(self, *args: Any, **named: Any) -> Any:
        results = self._results(args, named)
        return sum(results, Value(0.0)) / len(results)

    def prepare(self, *args: Any, **named: Any) -> None:
        """Nothing: the function runs on copies, and no call is counted."""


def plainly(function: Any = None, *, static: Any = (), **options: Any) -> Any:
    """The plain side's `compile`: takes the options of `wengert.compile`."""
    return functools.partial(plainly, static=static) if function is None else Plain(function, static)


def _is_column(x: Any) -> bool:
    return isinstance(x, (list, tuple, dict, np.ndarray))


def _length(x: Any) -> int:
    if isinstance(x, (tuple, dict)):
        return _length(next(iter(x.values() if isinstance(x, dict) else x)))
    return len(x)


def _row(x: Any, k: int) -> Any:
    if isinstance(x, dict):
        return {key: _row(column, k) for key, column in x.items()}
    if isinstance(x, tuple):
        return tuple([_row(column, k) for column in x])
    return x[k].item() if isinstance(x, np.ndarray) and x.ndim == 1 else x[k]


def _numbers(x: Any) -> Any:
    return [_numbers(item) for item in x] if isinstance(x, (list, tuple)) else getattr(x, "data", x)


# ------------------------------------------------------------------------------------------------ what is observed


@dataclass(frozen=True)
class Raised:
    """A call that raised."""

    kind: str
    text: str

    @classmethod
    def by(cls, error: BaseException) -> Raised:
        return cls(type(error).__name__, re.sub(r"0x[0-9a-f]+", "0x", str(error)))


def attempt(function: Callable[..., Any], *args: Any, **named: Any) -> Any:
    """What a function gives, or what it raises."""
    try:
        return function(*args, **named)
    except Exception as error:
        return Raised.by(error)


@dataclass
class Trace:
    """What a process saw of a scenario.

    Attributes:
        seen: one description after another of what the scenario yielded, in plain data.
        uncompiled: why functions ran uncompiled, in the words of the warnings.
        dropped: how many recordings were dropped after a comparison.
        idle: functions of which nothing that was recorded served a call, by their reports.
        others: warnings of the program's own.
        ended: an exception of the scenario itself, or of the process.
        calls: how many there were (on the plain side).
        random: the state of the generators of random numbers at the end.
    """

    seen: list[Any] = field(default_factory=list)
    uncompiled: list[str] = field(default_factory=list)
    dropped: int = 0
    idle: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    ended: str = ""
    calls: int = 0
    random: str = ""


def drive(run: Callable[[Callable[..., Any]], Iterator[Any]], compile: Callable[..., Any]) -> Trace:
    """Run a scenario and note what it yields."""
    trace, functions = Trace(), []

    def compiling(function: Any = None, **options: Any) -> Any:
        if function is None:
            return functools.partial(compiling, **options)
        functions.append(compile(function, **options))
        return functions[-1]

    random.seed(0)
    np.random.seed(0)
    Plain.calls = 0
    with warnings.catch_warnings(record=True) as said, contextlib.redirect_stdout(io.StringIO()) as printed:
        warnings.simplefilter("always")
        try:
            for item in run(compiling):
                trace.seen.append(_observed(item))
                if printed.getvalue():
                    trace.seen.append(("printed", printed.getvalue()))
                    printed.seek(0)
                    printed.truncate()
        except Exception as error:
            trace.ended = f"{type(error).__name__}: {error}"
    for warning in said:
        text = str(warning.message)
        if " runs uncompiled: " in text:
            trace.uncompiled.append(text.partition(" runs uncompiled: ")[2])
        elif text.startswith("a recording of "):
            trace.dropped += 1
        else:
            trace.others.append(f"{warning.category.__name__}: {text}")
    trace.idle = [report for function in functions if is_idle(report := getattr(function, "report", str)())]
    trace.calls = Plain.calls
    trace.random = str(hash((random.getstate(), np.random.get_state()[1].tobytes(), np.random.get_state()[2:])))
    return trace


def is_idle(report: str) -> bool:
    """Return True if a function was called often, and no call of it was served by what was recorded."""
    counts = re.findall(r"(\d+) calls.*?, (\d+) of them checked", report)
    left = any(each in report for each in ("runs uncompiled", "the function itself runs"))
    return not left and any(int(calls) > 5 and compared == "0" for calls, compared in counts)


def _observed(item: Any) -> Any:
    result, *watched = item if type(item) is tuple else (item,)
    if not watched:
        return [described(result)]
    parameters = [parameter for thing in watched for parameter in _leaves(thing)]
    assert parameters, "there are no Values in what follows the result"
    raised = attempt(sum([(k + 1) * value for k, value in enumerate(_leaves(result))], Value(0.0)).backward)
    seen = [described(result), [p.grad for p in parameters], described(raised)]
    for parameter in parameters:
        parameter.grad = 0.0
    return seen


def _leaves(thing: Any) -> list[Any]:
    """The Values in a thing."""
    if isinstance(thing, Value):
        return [thing]
    if isinstance(thing, nn.Module):
        return thing.parameters()
    items = thing.values() if isinstance(thing, dict) else thing if isinstance(thing, (list, tuple)) else ()
    return [value for item in items for value in _leaves(item)]


def described(x: Any) -> Any:
    """A thing in plain data: its kind, and what it is made of."""
    if isinstance(x, Value):
        return ("Value" if type(x).__module__.startswith("wengert.") else type(x).__name__, x.data)
    if isinstance(x, (bool, np.bool_)):
        return ("bool", bool(x))
    if isinstance(x, (float, np.floating)):
        return ("float", float(x))
    if isinstance(x, np.integer) or type(x) is int:
        return ("int", int(x))
    if x is None or isinstance(x, (str, bytes, complex)):
        return (type(x).__name__, x)
    if isinstance(x, np.ndarray):
        return ("array", x.shape, x.astype(float).ravel().tolist() if x.dtype.kind in "fiub" else described(x.tolist()))
    if isinstance(x, Mapping):
        return (type(x).__name__, [(described(key), described(item)) for key, item in x.items()])
    if isinstance(x, (set, frozenset)):
        return (type(x).__name__, sorted([described(item) for item in x], key=repr))
    if isinstance(x, nn.Module):
        return (type(x).__name__, list(x.state_dict().items()))
    if hasattr(x, "__iter__") and hasattr(x, "__len__"):
        return (type(x).__name__, [described(item) for item in x])
    if isinstance(x, type) or callable(x):
        return ("a name", getattr(x, "__qualname__", type(x).__name__))
    return (type(x).__name__, [(name, described(item)) for name, item in getattr(x, "__dict__", {}).items()])


# ------------------------------------------------------------------------------------------------ compared


@dataclass
class Outcome:
    """What became of a scenario with a back end.

    Attributes:
        verdict: "right", "uncompiled" (right, by the engine), "idle" (right, recorded again and again, nothing served),
            "raised", "wrong", "hung", "died"; "unfit" where the plain side is no oracle, "documented" where a wrong
            result is allowed for, "absent" without its library.
        reason: the first difference; why it runs uncompiled.
        dropped: recordings that comparisons found stale.
    """

    name: str
    backend: str
    verdict: str
    reason: str = ""
    dropped: int = 0


def compared(found: Scenario, backend: str, plain: Trace, compiled: Trace) -> Outcome:
    """The outcome, of what the two processes saw."""
    outcome = Outcome(found.name, backend, "right", dropped=compiled.dropped)
    if plain.ended:
        outcome.verdict, outcome.reason = "unfit", f"the plain side ends by {plain.ended}"
    elif plain.calls < FEWEST:
        outcome.verdict, outcome.reason = "unfit", f"there are {plain.calls} calls"
    elif all(same(seen, plain.seen[0]) for seen in plain.seen):
        outcome.verdict, outcome.reason = "unfit", "what it yields never changes"
    elif compiled.ended.split(":")[0] in ("hung", "died"):
        outcome.verdict, _, outcome.reason = compiled.ended.partition(": ")
    elif reason := difference(plain, compiled):
        raised = bool(compiled.ended) or _raised(reason)
        outcome.verdict, outcome.reason = "raised" if raised else "wrong", reason
        if found.documented:
            outcome.verdict = "documented"
    elif compiled.uncompiled:
        outcome.verdict, outcome.reason = "uncompiled", "; ".join(dict.fromkeys(compiled.uncompiled))
    elif compiled.idle:
        outcome.verdict, outcome.reason = "idle", compiled.idle[0].partition("\n")[0]
    return outcome


def difference(plain: Trace, compiled: Trace) -> str:
    """The first difference between what two processes saw, in words; empty if there is none."""
    for k, (expected, seen) in enumerate(zip(plain.seen, compiled.seen, strict=False)):
        if not same(expected, seen):
            return f"observation {k} of {len(plain.seen)}, {_told(seen, expected)}"
    if compiled.ended:
        return f"after {len(compiled.seen)} observations: {compiled.ended}"
    for what in ("others", "random"):
        if getattr(plain, what) != getattr(compiled, what):
            return f"{what}: {_short(getattr(compiled, what))}, not {_short(getattr(plain, what))}"
    return "" if len(plain.seen) == len(compiled.seen) else f"{len(compiled.seen)} observations, not {len(plain.seen)}"


def same(a: Any, b: Any) -> bool:
    """Return True if two descriptions are the same, numbers to rounding."""
    if isinstance(a, (list, tuple)):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    if type(a) is float and type(b) is float:
        if not (math.isfinite(a) and math.isfinite(b)):
            return a == b or (a != a and b != b)
        return abs(a - b) <= max(CLOSE * max(abs(a), abs(b)), TINY)
    return type(a) is type(b) and bool(a == b)


def _told(seen: Any, expected: Any) -> str:
    """The first place in which two descriptions of an observation differ."""
    if isinstance(seen, tuple):  # printed text
        return f"{_short(seen)}, not {_short(expected)}"
    for what, a, b in zip(("the result", "the gradients", "backward"), seen, expected, strict=False):
        place = ""
        while not same(a, b):
            if not isinstance(a, (list, tuple)) or type(a) is not type(b) or len(a) != len(b):
                break
            k = next(k for k, pair in enumerate(zip(a, b, strict=True)) if not same(*pair))
            if k == 0 and isinstance(a[0], str):
                break  # of another kind
            a, b, place = a[k], b[k], f"{place}[{k}]"
        else:
            continue
        return f"{what}{place}: {_short(a)}, not {_short(b)}"
    return f"{_short(seen)}, not {_short(expected)}"


def _raised(reason: str) -> bool:
    is_, _, not_ = reason.partition(", not ")
    return "'Raised'" in is_ and "'Raised'" not in not_


def _short(seen: Any) -> str:
    text = repr(seen)
    return text if len(text) <= 240 else f"{text[:160]} … {text[-76:]}"
