"""Compiles derivatives: the function that is differentiated is recorded, and its program differentiated.

So a derivative has the guards of its function and no others, and its first call runs the function, not the derivative.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from wengert import derivatives, modes
from wengert.compiler.arguments import Arguments, Signature
from wengert.compiler.derive import compressed, jacobian_pattern, reordered
from wengert.compiler.ir import compute_once, fuse, inline, unmask
from wengert.compiler.record.differentiate import Level, NotDifferentiable, differentiate, operations
from wengert.compiler.record.layout import ResultLayout, flat_result
from wengert.compiler.record.recording import Candidate
from wengert.compiler.record.structure import WEIGHT_STEP, Structure, take_apart
from wengert.compiler.traced import number_of
from wengert.derivatives import (
    PRODUCTS,
    Derivation,
    Numbers,
    OnValues,
    Run,
    assembled,
    coloring,
    derivations_of,
    directions_of,
    places_of,
    result_of,
    takes_floats,
)
from wengert.engine import Value
from wengert.graph import Graph

__all__ = ["Derived", "NotDifferentiable", "derived_from", "largest_number"]


def derived_from(function: Any, signature: inspect.Signature, count: int | None = None) -> Derived | None:
    """Return how to compile a function if it is a derivative whose function can be recorded in its place.

    Args:
        function: the function.
        signature: its signature, or that of calls with some number of arguments for `*xs`.
        count: the number of arguments by position, from the end of which `argnums` may count; None if it does not.
    """
    base, derivations = derivations_of(function)
    kinds = [derivation.kind for derivation in derivations]
    if not kinds or any(derivation.has_aux for derivation in derivations):
        return None
    if not {*PRODUCTS, "value_and_grad", "sparse"}.isdisjoint(kinds[:-1]):
        return None
    extras = directions_of(function)
    positional = [x for x in signature.parameters.values() if x.kind <= x.POSITIONAL_OR_KEYWORD]
    own = [x.name for x in positional[:count] if x.name not in extras]  # the arguments of the function
    levels = []
    for kind, _, argnums, *_ in derivations:
        places = places_of(argnums, len(own))
        if places is None:
            return None
        levels.append((kind, [own[n] for n in places], isinstance(argnums, (tuple, list))))
    return Derived(base, signature, derivations, levels, extras)


class Derived:
    """A derivative of a function, perhaps of a derivative of it.

    Args:
        base: the function that is recorded.
        signature: of the derivative.
        derivations: the derivatives, the first one first.
        levels: for each its kind, names of the arguments, whether `argnums` is a tuple.
        extras: the names of the arguments that are directions.

    Attributes:
        function: calls the function with Values in place of the numbers to differentiate with respect to, and returns a
            `Run`.
        plain: calls the function with the numbers themselves, if it takes plain numbers only.
        of_values: calls the derivative likewise: it consists of Values, whose graph tells what its numbers come from.
        is_recorded_on_floats: False once the function was seen to tell floats from Values, or to take Values only.
        on_parameters: True once a recording has parameters, so that results are Values though the arguments are not.
    """

    def __init__(
        self,
        base: Any,
        signature: inspect.Signature,
        derivations: Sequence[Derivation],
        levels: list[tuple[str, list[str], bool]],
        extras: list[str],
    ) -> None:
        self.signature = signature
        self.levels = levels
        self.extras = extras
        self.last: Derivation = derivations[-1]
        self.derivations = derivations
        self.is_recorded_on_floats: bool = True
        self.on_parameters: bool = False
        names = dict.fromkeys(name for _, names, _ in levels for name in names)
        self.function: OnValues = OnValues(base, signature, names, extras)
        self.plain: OnValues = OnValues(base, signature, names, extras, on_floats=True)
        self.of_values: OnValues = OnValues(self.last.derivative, signature, [*names, *extras])

    def takes(self, signature: Signature) -> bool:
        """Return True if the program can be differentiated for calls with such arguments. Not with a Value, which the
        function may also read elsewhere, nor with an object that is passed twice: the derivative is with respect to one
        argument alone.
        """
        return not (signature.aliased or any(leaf.kind == "v" for leaf in signature.leaves))

    @property
    def on_floats(self) -> bool:
        """Whether the function takes plain numbers only."""
        return takes_floats(self.function.function)

    def run_of(self, run: Run, on_floats: bool = False) -> Any:
        """Return what computes the derivative from a run of `function`, or of `plain`."""
        return derivatives.grad.FunctionRun(self.derivations, *run, on_floats)

    def sample(self, number: int, run: Any, runs_anew: bool = False) -> Any:
        """Return a function of the same arguments that computes, without the program, what a result is compared with:
        the derivative's product with a vector that `number` determines. It computes that from `run`, a run of
        `function` for these arguments; without one, from a new run if it `runs_anew`, or else by the derivative itself.
        """
        along = partial(directions, number)
        is_product = self.last.kind in PRODUCTS
        if run is not None:
            return run.derivative if is_product else partial(run.product, along)
        if not runs_anew:
            return self.last.derivative if is_product else partial(derivatives.grad.product, self.last, along)

        def sampled(*args: Any, **named: Any) -> Any:
            anew = self.run_of(self.function(*args, **named))
            return anew.derivative(*args, **named) if is_product else anew.product(along, *args, **named)

        return sampled

    def leaves(self, result: Any) -> list[Any]:
        """List the Values and numbers of a result, of a sparse derivative those that come with its pattern."""
        return Numbers(result[1] if self.last.kind == "sparse" else result_of(result)).leaves

    def products(self, result: Any, sample: Any) -> tuple[Any, Any, Any, Callable[[int], float] | None]:
        """Return what a result and a sample give for the vector: the numbers of both, the absolute values that each was
        added up from, if it was, and a function that returns the largest term of one of the sample's.
        """
        got = np.array(list(map(number_of, self.leaves(result))), float)
        if self.last.kind in PRODUCTS:
            return got, list(map(number_of, self.leaves(sample))), None, None
        vector = np.array(sample.vector)
        want = list(map(number_of, sample.tangents))
        if self.last.kind == "sparse":
            pattern = result[0]
            parts = got[: len(pattern.indices)] * vector[pattern.indices]
            products = [np.bincount(pattern.rows, terms, len(want)) for terms in (parts, np.abs(parts))]
            return products[0], want, products[1], sample.largest
        if self.last.kind == "value_and_grad":
            value = sample.run.outputs[0]
            return (
                [got[0], got[1:] @ vector],
                [number_of(sample.values[0]), *want],
                [0.0, np.abs(got[1:]) @ np.abs(vector)],
                lambda number: sample.largest(0) if number else largest_number(value),
            )
        got[self._order(sample)] = got.copy()
        matrix = got.reshape(len(want), -1)
        return matrix @ vector, want, np.abs(matrix) @ vector, sample.largest

    def _order(self, sample: Any) -> Any:
        """Return the places of a derivative's numbers among those of its matrix, row by row."""
        count = len(sample.tangents) * len(sample.vector)
        numbers = [float(n) for n in range(count)]  # of which a list is taken apart at once
        places = Numbers(assembled(self.last.kind, sample.outputs, sample.inputs, numbers)).leaves
        return np.array(places, np.int64)

    def weighted(self, result: Any, sample: Any, number: int) -> tuple[Sequence[Any], ...]:
        """Return the numbers of a result and their weights, and those of the sample and theirs; `number` determines the
        weights. If the result is right, both weighted sums are equal, and so are their gradients. All are empty for a
        sparse derivative, which consists of floats.
        """
        if self.last.kind == "sparse":
            return (), (), (), ()
        ours = self.leaves(result)
        if self.last.kind in PRODUCTS:
            weights = directions(number, len(ours))
            return ours, weights, self.leaves(sample), weights
        if self.last.kind == "value_and_grad":
            own, slope = directions(number, 2)
            theirs, others = [sample.values[0], *sample.tangents], [own, slope]
            return ours, [own, *(slope * np.array(sample.vector)).tolist()], theirs, others
        others = directions(number, len(sample.tangents))
        matrix = np.outer(others, sample.vector).reshape(-1)
        return ours, matrix[self._order(sample)].tolist(), sample.tangents, others

    def of(self, arguments: Arguments, number: int, run: Any) -> Differentiation:
        """Return how to differentiate the program of a run of `function` on an example.

        Raises:
            NotDifferentiable: the arguments to differentiate with respect to are not all inputs of the program.
        """

        def by_name(*args: Any, **named: Any) -> Any:
            return self.signature.bind(*args, **named).arguments

        given = arguments.prepared(by_name, number)()
        signature = arguments.signature
        sizes = {name: int(np.prod(leaf.shape)) for name, leaf in zip(signature.names, signature.leaves, strict=True)}
        levels = []
        for kind, arguments_of, several in self.levels:
            if any(name not in given for name in arguments_of):
                raise NotDifferentiable("an argument to differentiate with respect to has its default")
            chosen = tuple([given[name] for name in arguments_of]) if several else given[arguments_of[0]]
            inputs, names = Numbers(chosen), [name for argument in arguments_of for name in signature.arrays[argument]]
            if len(inputs.leaves) != sum([sizes[name] for name in names]):
                raise NotDifferentiable("an argument to differentiate with respect to holds more than numbers")
            levels.append((kind, inputs, names))
        along = [name for extra in self.extras for name in signature.arrays[extra]]
        directions = [given[extra] for extra in self.extras]
        are_values = signature.batched or self._gives_values(arguments, run)
        return Differentiation(self, levels, Numbers(run.result, "the result"), along, directions, are_values)

    def _gives_values(self, arguments: Arguments, run: Any) -> bool:
        """Return True if the derivative itself, computed from a run of `function`, consists of Values: not if the
        parameters have dropped out of it.
        """
        if self.last.kind == "sparse":
            return False
        if modes.grad_disabled():  # the program will serve elsewhere too
            run = self.run_of(Run(run.result, run.start), run.on_floats)
        with modes.recorded():
            sample = arguments.eager(self.sample(0, run))
        numbers = self.leaves(sample) if self.last.kind in PRODUCTS else sample.tangents
        return any(isinstance(x, Value) for x in numbers)


@dataclass
class Differentiation:
    """How to differentiate the program of a recording."""

    derived: Derived
    levels: list[Level]  # the derivatives, the first one first
    outputs: Numbers  # the function's result
    along: list[str]  # the inputs that give a direction
    directions: list[Any]  # the arguments that do
    are_values: bool  # whether the derivative consists of Values, if the program has parameters

    def apply(self, candidate: Candidate) -> None:
        """Differentiate the program of a recording that was just lifted.

        Raises:
            NotDifferentiable: an input is one of indices, or the result has another structure.
        """
        program = candidate.lifted.program
        is_sparse = self.levels[-1][0] == "sparse"
        are_values = self.are_values and not is_sparse and len(candidate.own) > 0
        self.derived.on_parameters |= are_values
        batched = any(array.batched for array in program.of_role("input"))

        def entries(names: list[str]) -> coloring.Pattern:
            inputs = {array.name: array for array in program.of_role("input")}
            pattern, color = jacobian_pattern(program, [inputs[name] for name in names]), coloring.two_sided
            if len(self.levels) > 1 and self.levels[-2][::2] == ("grad", names):
                pattern, color = pattern.symmetric, coloring.star_coloring
            if batched:
                raise NotDifferentiable("a sparse derivative is of one example")
            compressed(program, names, color(pattern))
            return pattern

        number = Value if are_values else float
        result = differentiate(program, self.levels, self.outputs, number, self.along, self.directions, entries)
        if not is_sparse and not are_values and self._depends_on_parameters(candidate):
            raise NotDifferentiable("whether it consists of Values depends on which side of a choice is taken")
        self.finish(candidate, result, batched, are_values)

    def _depends_on_parameters(self, candidate: Candidate) -> bool:
        """Return True if the derivative's program, of one example, depends on parameters at some point."""
        program = candidate.lifted.program
        arrays = program.of_role("param")
        return len(candidate.own) > 0 and bool(np.isin(jacobian_pattern(program, arrays).indices, candidate.own).any())

    def finish(self, candidate: Candidate, result: Any, batched: bool, are_values: bool) -> None:
        """Bring the output into the structure of the result."""
        program = candidate.lifted.program
        parts = take_apart(result)
        leaves = [result] if parts is None else parts.leaves
        order = [int(x.data if isinstance(x, Value) else x) for x in leaves]
        candidate.structure = None
        shape: tuple[int, ...] | None = () if parts is None else (len(leaves),)
        if batched:
            candidate.layout = ResultLayout.of(result, keep_tuples=self.levels[-1][0] == "value_and_grad")
            shape = shape if candidate.layout is not None else flat_result(result)[0]
        elif parts is not None:
            candidate.structure = Structure(parts, parts, {}, (), 0, (), owns_memory=False)
        assert shape is not None  # a layout has the shape of its numbers
        candidate.shape = shape
        shape = tuple([n for n in shape if n > 1])
        reordered(program, order, shape)
        candidate.kind = Value if are_values else float
        candidate.dtype = np.dtype(float)
        candidate.result = None
        program.is_derivative = True
        compute_once(program)
        fuse(program)
        unmask(program)
        inline(program)
        candidate.nodes = max(candidate.nodes, operations(program))


def largest_number(x: Any) -> float:
    """Return the largest number that a Value comes from: each is multiplied by the Value's derivative with respect to
    it, and so moves the Value as much, relatively, by rounding. 0 for a plain number.
    """
    if not isinstance(x, Value):
        return 0.0
    graph = Graph(x)
    slopes: Any = np.array(graph.pull_back({graph.outputs[0]: 1.0}))
    with np.errstate(all="ignore"):
        return float(np.abs(slopes * [each._data for each in graph.values]).max())


def directions(number: int, count: int) -> list[float]:
    """Return a direction of so many numbers between 0.5 and 1.5, another one for each number."""
    return [0.5 + (number + n) * WEIGHT_STEP % 1.0 for n in range(1, count + 1)]
