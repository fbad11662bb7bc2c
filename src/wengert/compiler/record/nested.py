"""Derivatives that a recorded function calls and returns, such as ``return f(x), grad(f)(x), hessian(f)(x)``.

They are not recorded operation by operation. The function that is differentiated is recorded where it is called, from
new Values in place of its arguments; what it computes from them becomes a program of its own, the derivatives are taken
of that program, and the result is joined to the program of the function that is recorded.

This needs derivatives that are only returned: a function that computes with one is recorded anew, operation by
operation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np

from wengert.compiler.derive import joined
from wengert.compiler.ir import (
    Access,
    Array,
    Assemble,
    Compute,
    Program,
    compute_once,
    fuse,
    inline,
    merge_equal_steps,
    unmask,
    whole,
)
from wengert.compiler.lift import Lifted
from wengert.compiler.record.differentiate import Level, NotDifferentiable, differentiate
from wengert.compiler.traced import Pending
from wengert.derivatives import Numbers, assembled, derivations_of, items_of, places_of, takes_floats
from wengert.engine import Value
from wengert.graph import Graph
from wengert.node import settle
from wengert.ops import BY_NAME

__all__ = ["Nested", "differentiated_call", "with_derivatives"]

KINDS = frozenset(["grad", "value_and_grad", "jacobian"])
STOP = BY_NAME["stop_gradient"]


@dataclass(eq=False)
class Nested:
    """A derivative that a recorded function has called."""

    levels: list[Level]  # the derivatives, the first one first
    inputs: dict[str, tuple[list[Value], list[Value]]]  # the Values that the function got, and those that the call had
    outputs: Numbers  # the function's result

    def __post_init__(self) -> None:
        self.results: list[Value] = [x if isinstance(x, Value) else Value(float(x)) for x in self.outputs.leaves]

    def result(self) -> Any:
        """Return the derivative, with a `Pending` in place of each number."""
        outputs, derivative = self.outputs, None
        for number, (kind, inputs, _) in enumerate(self.levels):
            count = len(inputs.leaves) * (len(outputs.leaves) if kind == "jacobian" else 1) + (kind == "value_and_grad")
            is_last = number == len(self.levels) - 1
            derivative = assembled(
                kind, outputs, inputs, [Pending(self, n) if is_last else float(n) for n in range(count)]
            )
            outputs = Numbers(derivative) if not is_last else outputs
        return derivative

    def graph(self, inputs: Sequence[Value]) -> Graph:
        """Return the graph of the function's result, from the Values that it got, and other inputs."""
        given = [x for values, _ in self.inputs.values() for x in values]
        return Graph(*{id(x): x for x in (*self.results, *given, *inputs)}.values())


def differentiated_call(
    recorder: Any, kind: str, function: Callable[..., Any], argnums: Any, args: Sequence[Any]
) -> Any:
    """Return the result of a derivative that a recorded function calls; `NotImplemented` if it has to be recorded
    operation by operation.
    """
    base, derivations = derivations_of(function)
    chain = [*[(each.kind, each.argnums) for each in derivations], (kind, argnums)]
    if any(each.has_aux for each in derivations) or not KINDS.issuperset([kind for kind, _ in chain]):
        return NotImplemented
    if takes_floats(base):
        return NotImplemented
    if "value_and_grad" in [kind for kind, _ in chain[:-1]]:
        return NotImplemented
    places = [chosen for _, numbers in chain if (chosen := places_of(numbers, len(args))) is not None]
    if len(places) < len(chain):
        return NotImplemented
    wanted = sorted({n for chosen in places for n in chosen})
    if any(isinstance(x, Value) or type(x) is Pending for n in wanted for x in items_of(args[n])):
        return NotImplemented
    given, inputs = list(args), {}
    for n in wanted:
        flattened = Numbers(args[n])
        before = [x if isinstance(x, Value) else Value(x) for x in settle(list(flattened.leaves))]
        inputs[f"argument{n}"] = ([x * 1.0 for x in before], before)
        recorder.lifted_values += inputs[f"argument{n}"][0]
        given[n] = flattened.unflatten(inputs[f"argument{n}"][0])
    levels = []
    for (each, numbers), chosen in zip(chain, places, strict=True):
        several = isinstance(numbers, (tuple, list))
        argument = tuple([given[n] for n in chosen]) if several else given[chosen[0]]
        levels.append((each, Numbers(argument), [f"argument{n}" for n in chosen]))
    nested = Nested(levels, inputs, Numbers(base(*given)))
    is_gradient = chain[0][0] != "jacobian"
    if (is_gradient and not nested.outputs.is_number()) or not _is_closed(nested, recorder):
        recorder.stop_nesting()
    return nested.result()


def _is_closed(nested: Nested, recorder: Any) -> bool:
    """Return True if the derivative is a number, and not a Value, as the function depends on no Value from outside."""
    arguments = {id(x) for x in recorder.arguments.values()}
    seen = {id(x) for values, _ in nested.inputs.values() for x in values}
    waiting = [x for x in nested.results if id(x) not in seen]
    while waiting:
        x = waiting.pop()
        operands = x._operands
        if not operands and id(x) not in recorder.plain and x._made < recorder.began:
            return False
        if id(x) in arguments:
            return False
        if x._row is not STOP:
            new = [each for each in operands if isinstance(each, Value) and id(each) not in seen]
            seen.update(map(id, new))
            waiting += new
    return True


def with_derivatives(
    lifted: Lifted, nested: Sequence[tuple[Lifted, Nested]], at: Sequence[tuple[Any, int]], shape: tuple[int, ...]
) -> Lifted:
    """Join derivatives to a program.

    Args:
        lifted: the program, whose outputs named after the inputs of the derivatives are the numbers that they get.
        nested: the derivatives, each after the program of its function.
        at: for each number of the result None and its place in the program's own, or the number of the derivative and
            the place in that.
        shape: of the result.

    Raises:
        NotDifferentiable: they have to be recorded operation by operation.
    """
    program = lifted.program
    own = {array.name: array for array in program.of_role("input")}
    parameters = _Parameters(program, lifted.parameters)
    ends, starts = [program.outputs["out"]], [0]
    for number, (part, derivative) in enumerate(nested):
        inner = part.program
        if inner.of_role("index"):
            raise NotDifferentiable("an integer chooses an item of a list")
        differentiate(inner, derivative.levels, derivative.outputs)
        copies = []
        for array in inner.arrays:
            if array.role == "input":
                source = own.get(array.name) or program.outputs.pop(f"{array.name} of {number}")
                array.role = "value"
                copies.append(Compute(array, array.shape, [whole(source)], ("in", 0)))
            array.name = f"{array.name}_d{number + 1}"
        parameters.share(inner, part.parameters)
        program.arrays += inner.arrays
        program.steps += [*copies, *inner.steps]
        starts.append(starts[-1] + ends[-1].size)
        ends.append(inner.outputs["out"])
    joined(program, ends, [starts[0 if which is None else which + 1] + place for which, place in at], shape)
    compute_once(program)
    merge_equal_steps(program)
    fuse(program)
    unmask(program)
    inline(program)
    program.is_derivative = True
    every = [lifted, *[part for part, _ in nested]]
    return Lifted(
        program,
        parameters.places,
        sum([each.table_reads for each in every]),
        sum([each.products for each in every]),
        max([each.multiplications for each in every]),
    )


class _Parameters:
    """The parameters of a program to which others are joined: each is in one array.

    Args:
        program: the program.
        places: the places of its parameters in the recording, in the order of its arrays' elements.
    """

    def __init__(self, program: Program, places: Sequence[int]) -> None:
        self.program = program
        self.places: list[int] = []
        self._elements: dict[int, tuple[Array, int]] = {}  # by the place in the recording
        self._add(program.of_role("param"), places)

    def _add(self, arrays: Sequence[Array], places: Sequence[int]) -> None:
        for array in arrays:
            own, places = places[: array.size], places[array.size :]
            array.slots = np.arange(array.size) + len(self.places)
            self._elements.update({place: (array, n) for n, place in enumerate(own)})
            self.places += own

    def share(self, inner: Program, places: Sequence[int]) -> None:
        """Let another program read the parameters that are known already from the arrays that they are in."""
        at = 0
        for array in inner.of_role("param"):
            own = list(places[at : at + array.size])
            at += array.size
            new = [place for place in own if place not in self._elements]
            if len(new) == len(own):
                inner.arrays = [each for each in inner.arrays if each is not array]
                self.program.arrays.append(array)
                self._add([array], own)
                continue
            if new:
                more = Array(f"more_{array.name}", (len(new),), "param")
                self.program.arrays.append(more)
                self._add([more], new)
            self._read(array, [self._elements[place] for place in own])

    def _read(self, array: Array, own: list[tuple[Array, int]]) -> None:
        """Make an array of elements of others."""
        sources = list({id(source): source for source, _ in own}.values())
        starts = dict(zip(map(id, sources), accumulate([x.size for x in sources], initial=0), strict=False))
        every = Array(f"all_{array.name}", (sum([x.size for x in sources]),), "value")
        order = np.array([starts[id(source)] + n for source, n in own], np.int64).reshape(array.shape)
        array.role, array.slots = "value", None
        self.program.arrays.append(every)
        self.program.steps.append(Assemble.end_to_end(every, sources))
        read = Access(every, 0, (0,) * len(array.shape), order)
        if len(sources) == 1 and sources[0].shape == array.shape and np.array_equal(order.ravel(), range(array.size)):
            read = whole(sources[0])
        self.program.steps.append(Compute(array, array.shape, [read], ("in", 0)))
