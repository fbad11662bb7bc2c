"""From a run of the user's function to a `Recording`: a kernel, its parameters, its guards, and the checks of them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isfinite
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from wengert import modes
from wengert.compiler.backends import Backend, Kernel, all_finite
from wengert.compiler.fused import gather
from wengert.compiler.ir import Program, reverse, verify
from wengert.compiler.lifting import CONST, INPUT, PARAM, VALUE, Lifted, Pick, Unliftable, lift
from wengert.compiler.tracing.arguments import Arguments, Leaf
from wengert.compiler.tracing.recorder import Guard, Recorder, Unrecordable, tracing
from wengert.compiler.tracing.tracers import HOLDS, IntegerTracer, Tracer, as_operand
from wengert.engine import Value
from wengert.graph import Graph
from wengert.ops import BUILT_IN, coerce

__all__ = ["AGREE", "Auxiliary", "Recording", "numbers_in", "record"]

AGREE = 1e-9  # how closely a recording must follow its own eager run, relative to the largest number
Ints = np.ndarray[Any, np.dtype[np.int64]]


class Auxiliary(NamedTuple):
    """What a function may give instead of its result: that, and numbers beside it which a run shows as its output
    "auxiliary", and of which no derivative is taken.
    """

    result: Any
    auxiliary: Any


class Result(NamedTuple):
    """What a run came to."""

    outputs: dict[str, Any]  # by name
    by_inputs: list[Any]  # the derivatives by the Values among the arguments
    finite: bool  # whether all derivatives are


@dataclass(eq=False)
class Recording:
    """One specialization of a function: an array program."""

    kernel: Kernel
    lifted: Lifted
    parameters: tuple[Any, ...]
    guards: list[Guard]
    sides: list[tuple[int, int]]  # for each guard where its sides stand in the output "sides"; -1 for a number
    open_sides: int  # how many stand there
    shape: tuple[int, ...] | None  # of the function's result; () for one Value
    nodes: int
    leaves: bool  # whether all parameters are leaves
    extents: dict[int, int]  # by the number of an input: how many items it chooses from
    whole: tuple[int, ...]  # the numbers of the inputs that are integers and choose nothing
    owns: bool  # whether it calls operations of the user's own
    seconds: float = 0.0  # what recording and lifting took, without the function's own run and the check

    def load(self) -> None:
        """Read the parameters' numbers as they are now."""
        gather(self.parameters, self.kernel.numbers)

    def run(self, arrays: Sequence[Any], seed: float | None) -> Result | None:
        """A run on some arguments; None if it does not hold for them.

        The derivatives are of ``seed * out.sum()``, those by the parameters being left in the kernel's `slopes`;
        without a `seed` there are none. To be called under `np.errstate`, as the kernel is.
        """
        computed = self.compute(arrays, seed) if self.in_bounds(arrays) else None
        if computed is None or (self.guards and not self.holds(computed[0]).all()):
            return None
        finite = seed is None or (all_finite(self.kernel.slopes) and all(map(all_finite, computed[1])))
        return Result(*computed, finite)

    def share(self, arrays: Sequence[Any], count: int) -> tuple[Any, Any] | None:
        """The numbers of those examples of a batch that it holds for, and their results; None where that cannot be
        computed.
        """
        inside = np.flatnonzero(self.examples_in_bounds(arrays, count))
        if not len(inside):
            return inside, np.zeros((0, *(self.shape or ())))
        computed = self.compute([array[inside] for array in arrays], None)
        if computed is None:
            return None
        held = np.broadcast_to(self.holds(computed[0]), (len(inside),))
        results = np.asarray(computed[0]["out"]).reshape(len(inside), *(self.shape or ()))
        return inside[held], results[held]

    def compute(self, arrays: Sequence[Any], seed: float | None) -> tuple[dict[str, Any], list[Any]] | None:
        """What the kernel gives: outputs, and derivatives by inputs if there is a `seed`.

        None where an operation of the user's own raises, such as a root by `math` of a number below 0: the program may
        also compute it for examples of another specialization, or where its result is masked out. Whether the function
        itself raises is for the engine to find out.
        """
        if self.whole:
            arrays = [_as_floats(array) if n in self.whole else array for n, array in enumerate(arrays)]
        try:
            return (self.kernel.forward(arrays), []) if seed is None else self.kernel.both(arrays, seed)
        except Exception:  # an operation of the user's own may raise anything
            if not self.owns:
                raise
            return None

    def in_bounds(self, arrays: Sequence[Any]) -> bool:
        """Whether every integer that chooses an item has that item to choose."""
        for number, extent in self.extents.items():
            if isinstance(arrays[number], int):
                if not 0 <= arrays[number] < extent:
                    return False
                continue
            index = _unsigned(arrays[number])
            if index.size and index.item(index.argmax()) >= extent:  # three times as fast as max()
                return False
        return True

    def examples_in_bounds(self, arrays: Sequence[Any], count: int) -> Any:
        """The same, for each example of a batch."""
        inside = np.ones(count, bool)
        for number, extent in self.extents.items():
            inside &= (_unsigned(arrays[number]) < extent).reshape(count, -1).all(1)
        return inside

    def holds(self, outputs: dict[str, Any]) -> Any:
        """Whether a run, or each example of it, came to the same comparisons as the recorded one."""
        if not self.guards:
            return np.True_
        sides = np.asarray(outputs["sides"])
        if self.open_sides == 1:
            sides = sides[..., None]
        same: Any = None
        for guard, (left, right) in zip(self.guards, self.sides, strict=True):
            here = guard.left if left < 0 else sides[..., left]
            there = guard.right if right < 0 else sides[..., right]
            agrees = HOLDS[guard.how](here, there) == guard.outcome
            same = agrees if same is None else same & agrees
        return same


def record(function: Callable[..., Any], arguments: Arguments, example: Sequence[Any], backend: Backend) -> Recording:
    """Run a function on an example, lift what it did for a back end, and check the result against that run.

    Raises:
        Unrecordable, Unliftable: it cannot be compiled; the message says why.
    """
    with modes.suspended():  # recorded under no_grad() or not, it is the same recording
        return _record(function, arguments, example, backend)


def _record(function: Callable[..., Any], arguments: Arguments, example: Sequence[Any], backend: Backend) -> Recording:
    # By itself first: what it raises comes out, and Values that it makes once and keeps are older than the recording.
    again = _flat_result(arguments.plainly(function, example))[1]
    began = perf_counter()
    try:
        run = _Trace(function, arguments, example)
    except (Unrecordable, Unliftable):
        raise
    except Exception as problem:
        raise Unrecordable(f"while it is being recorded it raises {type(problem).__name__}: {problem}") from problem
    picks: list[Pick] = []
    if any(integer.used for integer in run.integers):
        try:
            picks = run.compare([_Trace(function, arguments, example, others) for others in run.other_integers()])
        except Exception:  # other integers take another branch, or raise: each gets a specialization
            run = _Trace(function, arguments, example, fixed=True)
    try:
        made = _lifted(run, picks, backend)
        made.seconds = perf_counter() - began
        run.check(made, np.array([_number(x) for x in again]))
    except (Unrecordable, Unliftable):
        raise
    except Exception as fault:
        raise Unliftable(f"of a fault in the lifter, which is worth a report ({fault!r})") from fault
    return made


def _lifted(run: _Trace, picks: list[Pick], backend: Backend) -> Recording:
    """The recording of a run."""
    lifted = run.lift(picks)
    verify(lifted.program)
    wanted = [a for a in lifted.program.of_role("input") if a.name in run.value_inputs]
    back = reverse(lifted.program, tuple(run.value_inputs)) if run.shape == () else Program()
    verify(back, lifted.program.arrays)
    kernel = backend.kernel()(lifted.program, back, wanted)
    parameters = tuple([run.graph.values[place] for place in lifted.parameters])
    extents = {kernel.inputs.index(array): extent for array, extent in lifted.extents.items()}
    return Recording(
        kernel,
        lifted,
        parameters,
        [guard.without_values() for guard in run.guards],
        run.sides,
        len(run.compared),
        run.shape,
        run.size,
        leaves=all(parameter.is_leaf for parameter in parameters),
        extents=extents,
        whole=tuple([n for n, a in enumerate(kernel.inputs) if a.role == "index" and n not in extents]),
        owns=max(run.graph.codes, default=0) >= BUILT_IN,
    )


class _Trace:
    """One run of the function, on Values and integers that stand for its inputs."""

    def __init__(
        self,
        function: Callable[..., Any],
        arguments: Arguments,
        example: Sequence[Any],
        integers: Sequence[int] = (),
        fixed: bool = False,
    ) -> None:
        self.arguments, self.example = arguments, example
        self.recorder = Recorder()
        self.tracers: dict[str, Any] = {}
        self.integers: list[IntegerTracer] = []
        self.value_inputs: list[str] = []
        given = iter(integers)

        def tracer_of(leaf: Leaf, array: Any) -> Any:
            made = np.empty(leaf.shape, dtype=object)
            name = arguments.form.names[len(self.tracers)]
            for place, x in enumerate(np.asarray(array, dtype=object).reshape(-1) if leaf.shape else [array]):
                if leaf.kind == "i":
                    item: Any = IntegerTracer(self.recorder, next(given, int(x)), fixed)
                    self.integers.append(item)
                else:
                    item = Value(self.recorder.unseen(x) if leaf.kind == "v" else float(x))
                made.reshape(-1)[place : place + 1] = [item]
            if leaf.kind == "v":
                self.value_inputs.append(name)
            self.tracers[name] = made
            return made if leaf.held != "scalar" else made.item()

        with tracing(self.recorder):
            self.result = arguments.call(function, example, tracer_of)
        if self.recorder.refusal:
            raise Unrecordable(self.recorder.refusal)
        self.guards = [guard for guard in self.recorder.guards.values() if _is_open(guard)]
        self.shape, results = _flat_result(self.result)
        beside = self.result.auxiliary if isinstance(self.result, Auxiliary) else None
        self.auxiliary_shape, auxiliary = (None, []) if beside is None else _flat_result(beside)
        self.auxiliary = [_as_value(x) for x in auxiliary]
        self.results = [_as_value(x) for x in results]
        both = [side for guard in self.guards for side in (guard.left, guard.right) if isinstance(side, Value)]
        self.compared = list({id(side): side for side in both}.values())
        number = {id(side): n for n, side in enumerate(self.compared)}
        self.sides = [(number.get(id(guard.left), -1), number.get(id(guard.right), -1)) for guard in self.guards]
        inputs = [as_operand(x) for a in self.tracers.values() for x in a.reshape(-1)]
        lists = {id(picked.items): picked.items for picked in self.recorder.picked}  # one is often read many times
        items = [x for chosen_from in lists.values() for x in _values_in(chosen_from)]
        roots = {id(x): x for x in (*inputs, *self.results, *self.auxiliary, *self.compared, *items)}
        self.graph = Graph(*roots.values())
        self.size = len(Graph(*self.results, *self.compared)) if items else len(self.graph)
        self.place = dict(zip(roots, self.graph.outputs, strict=True))
        self.given = bisect_left(self.graph.values, self.recorder.began, key=_age)  # what was there before comes first
        self.keep = (roots, items)  # alive, so that no id is used again

    def other_integers(self) -> list[list[int]]:
        """Other indices for some more runs, so that each operand shows which integer has chosen it: by how far each
        of the runs moves it, which is another sequence of steps for each integer.
        """
        extent: dict[int, int] = {}
        for picked in self.recorder.picked:
            size = len(picked.items)
            extent[id(picked.index)] = min(size, extent.get(id(picked.index), size))
        numbers = [integer.whole for integer in self.integers]
        movable = [place for place, integer in enumerate(self.integers) if extent.get(id(integer), 0) > 1]
        radix = min([extent[id(self.integers[place])] for place in movable], default=2)
        others: list[list[int]] = []
        scale = 1
        while scale <= len(movable) or not others:
            run = list(numbers)
            for code, place in enumerate(movable, 1):  # the digits of a code that is not 0
                size = extent[id(self.integers[place])]
                run[place] = (numbers[place] + code // scale % radix) % size
            others.append(run)
            scale *= radix
        return others

    def compare(self, others: list[_Trace]) -> list[Pick]:
        """The operands that an integer has chosen, as runs with different integers show them.

        Raises:
            Unrecordable: the runs differ in another way.
        """
        a = self.graph
        graphs = [run.graph for run in others]
        if any((a.codes, a.starts, a.constants) != (b.codes, b.starts, b.constants) for b in graphs):
            raise Unrecordable(
                "the function takes another branch for other integers: declare the argument static=(name,)"
            )
        chosen: dict[tuple[int, ...], tuple[int, tuple[int, ...]]] = {}
        columns: dict[int, list[tuple[int, ...]]] = {}  # by list: for each place in its items, where those stand
        for mine, *its in zip(self.recorder.picked, *[run.recorder.picked for run in others], strict=True):
            key = id(mine.items)
            if key not in columns:
                rows = [[self.place[id(x)] for x in _values_in([item])] for item in mine.items]
                columns[key] = list(zip(*rows, strict=False))
            index = self.place[id(as_operand(mine.index))]
            for places in columns[key]:
                chosen[tuple([places[one.index.whole] for one in (mine, *its)])] = index, places
        runs = (self, *others)
        operands = np.array([np.frombuffer(run.graph.operands or b"", np.int64) for run in runs])
        starts = np.frombuffer(a.starts, np.int64)
        picks = []
        for at in np.flatnonzero((operands != operands[0]).any(0)).tolist():
            pair = tuple(operands[:, at].tolist())
            if pair not in chosen:
                raise Unrecordable("an integer argument changes more than which item of a list is read")
            user = int(np.searchsorted(starts, at, "right")) - 1
            picks.append(Pick(user, at - int(starts[user]), *chosen[pair]))
        outs = [[run.place[id(x)] for x in (*run.results, *run.auxiliary)] for run in runs]
        if any(out != outs[0] for out in outs):
            raise Unrecordable("an integer argument chooses the result itself")
        return picks

    def lift(self, picks: list[Pick]) -> Lifted:
        """The array program of the run."""
        graph = self.graph
        source = np.where(np.frombuffer(graph.codes, np.uint16) == 0, CONST, VALUE)
        source[: self.given] = PARAM
        inputs: dict[str, Ints] = {}
        indices = []
        for name, made in self.tracers.items():
            items = [as_operand(x) for x in made.reshape(-1)]
            places = np.array([self.place[id(x)] for x in items], np.int64).reshape(made.shape)
            source[places] = INPUT
            inputs[name] = places
            if made.size and isinstance(made.reshape(-1)[0], IntegerTracer):
                indices.append(name)
        if self.shape is None:
            raise Unliftable("its result is neither one number nor a regular array of them")
        outputs = {"out": np.array([self.place[id(x)] for x in self.results], np.int64).reshape(self.shape)}
        if self.auxiliary_shape is not None:
            beside = np.array([self.place[id(x)] for x in self.auxiliary], np.int64)
            outputs["auxiliary"] = beside.reshape(self.auxiliary_shape)
        if self.compared:
            outputs["sides"] = np.array([self.place[id(x)] for x in self.compared], np.int64)
        batched = self.arguments.form.batched
        return lift(graph, source, inputs, outputs, batched=batched, picks=picks, indices=indices)

    def check(self, made: Recording, want: Any) -> None:
        """Compare the program with the run that it came from, and with what the function itself gives.

        Raises:
            Unrecordable: they differ.
        """
        arrays = [np.asarray(numbers_in(x)) for x in self.example]
        count = 2 if self.arguments.form.batched else 1  # in a batch of one nothing shows of how examples are added up
        if self.arguments.form.batched:
            arrays = [np.repeat(array[None], count, 0) for array in arrays]
            want = np.tile(want, count)
        made.load()
        with np.errstate(all="ignore"):
            computed = made.compute(arrays, 1.0 / count)
        if computed is None:
            raise Unrecordable("an operation of your own raises on numbers that the function never gives it")
        outputs, by_inputs = computed
        got = np.asarray(outputs["out"], float).reshape(-1)
        if not _close(got, want):
            if not _close(np.tile([x.data for x in self.results], count), want):
                raise Unrecordable(
                    "it gives different results for the same arguments: random numbers, a clock, a counter?"
                )
            raise Unrecordable(f"the array program gives {got[:3]}, the function {want[:3]}")
        if self.shape != () or not all(map(isfinite, want)):
            return
        inputs = [self.place[id(x)] for name in self.value_inputs for x in self.tracers[name].reshape(-1)]
        want = self.derivatives()[[*made.lifted.parameters, *inputs]]
        got = np.concatenate([made.kernel.slopes, *[np.asarray(x, float).reshape(-1) for x in by_inputs]])
        if got.shape != want.shape or (np.isfinite(got).all() and not _close(got, want)):
            raise Unrecordable("the derivatives of the array program are not those of the function")

    def derivatives(self) -> Any:
        """The derivative of the result by each instruction, and by each Value that was there before, whose own
        operands are left out: it is a parameter.
        """
        graph, first = self.graph, self.given
        slopes = np.array(graph.pull_back({self.place[id(self.results[0])]: 1.0}, first))
        operands = np.frombuffer(graph.operands or b"", np.int64)
        starts = np.frombuffer(graph.starts, np.int64)
        users = np.repeat(np.arange(len(graph)), starts[1:] - starts[:-1])
        at = np.flatnonzero((operands >= 0) & (operands < first) & (users >= first))
        at = at[slopes[users[at]] != 0.0]  # elsewhere 0 times infinity is nan
        with np.errstate(all="ignore"):
            np.add.at(slopes, operands[at], np.array(graph.partials)[at] * slopes[users[at]])
        return slopes


def _as_floats(x: Any) -> Any:
    """Integers as floats, which do not overflow."""
    return coerce.number(x) if isinstance(x, int) else x.astype(np.float64)


def _unsigned(index: Any) -> Any:
    """Integers as unsigned ones: a negative one is a huge one."""
    return np.asarray(index, np.int64).view(np.uint64)


def _age(value: Any) -> int:
    """When a Value was made."""
    return int(value._made)


def _is_open(guard: Guard) -> bool:
    return isinstance(guard.left, Value) or isinstance(guard.right, Value)


def _close(got: Any, want: Any) -> bool:
    if got.shape != want.shape:
        return False
    scale = max(1.0, float(np.abs(want[np.isfinite(want)]).max(initial=0.0)))
    both = np.isfinite(want) & np.isfinite(got)
    return bool((np.abs(got[both] - want[both]) <= AGREE * scale).all())


def _number(x: Any) -> float:
    return float(x.data if isinstance(x, Value) else x.number if isinstance(x, Tracer) else x)


def numbers_in(x: Any) -> Any:
    """The numbers of Values, in lists too."""
    if isinstance(x, Value):
        return x.data
    if isinstance(x, Auxiliary):
        return numbers_in(x.result)
    if isinstance(x, (list, tuple)):
        return [numbers_in(item) for item in x]
    return x


def _as_value(x: Any) -> Any:
    x = as_operand(x)
    return x if isinstance(x, Value) else Value(float(x))


def _values_in(x: Any) -> list[Any]:
    """The Values in nested lists; numbers beside them become Values."""
    if isinstance(x, (list, tuple)) or type(x).__name__ == "ndarray":
        return [value for item in x for value in _values_in(item)]
    return [x] if isinstance(x, Value) else []


def _flat_result(result: Any) -> tuple[tuple[int, ...] | None, list[Any]]:
    """The shape of a result and its numbers; None for what is no regular array."""
    if isinstance(result, Auxiliary):
        return _flat_result(result.result)
    if isinstance(result, (list, tuple)) or type(result).__name__ == "ndarray":
        parts = [_flat_result(item) for item in result]
        shapes = {shape for shape, _ in parts}
        flat = [x for _, xs in parts for x in xs]
        if len(shapes) != 1 or None in shapes:
            return None, flat
        inner = shapes.pop()
        assert inner is not None
        return (len(parts), *inner), flat
    return (), [result]
