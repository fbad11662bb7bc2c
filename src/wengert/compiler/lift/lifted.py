"""The second half of lifting: from groups of numbers, and the loops among them, to a Program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from wengert.compiler.ir import BATCH, Access, Array, Compute, Program, fuse, unmask
from wengert.compiler.lift.flatten import FlatGraph, flatten
from wengert.compiler.lift.lifter import Lifter
from wengert.compiler.lift.loops import LoopLifter, Recurrence, lengthen, recurrences
from wengert.compiler.lift.shorten import Whole
from wengert.compiler.lift.simplify import Pick
from wengert.graph import Graph

__all__ = ["Lifted", "lift"]

Ints = np.ndarray[Any, np.dtype[np.int64]]
LEFT = 0.25  # of the groups: if more are outside loops, merging may have broken loops up


@dataclass
class Lifted:
    """A program, and where its parameters come from in the recording."""

    program: Program
    parameters: list[int]  # the places of the leaves, in the order of the param arrays' elements
    table_reads: int  # operands that are read through a table
    products: int  # matrix products
    multiplications: int  # of one example in the largest matrix product


def lift(
    graph: Graph,
    source: Ints,
    inputs: dict[str, Ints],
    outputs: dict[str, Ints],
    *,
    batched: bool,
    picks: Sequence[Pick] = (),
    indices: Sequence[str] = (),
    blocks: Sequence[Ints] = (),
) -> Lifted:
    """Turn a recorded graph into an array program.

    Args:
        graph: the recording.
        source: for each of its instructions PARAM, INPUT, VALUE or CONST (see `flatten`).
        inputs: the places of each input, in the shape of its array.
        outputs: the places of each result, in the shape of its array.
        batched: whether every input array has a batch axis in front.
        picks: the operands that an integer input chooses at run time.
        indices: the names of the integer inputs that choose.
        blocks: the places of parameters that form an array of their own, in its shape.

    Raises:
        Unliftable: an operation has no array form.
    """
    wanted = np.concatenate([places.reshape(-1) for places in outputs.values()])

    def lifted(whole: bool) -> Lifted:
        flat, runs = _with_loops(graph, source, wanted, list(picks), whole)
        lifter = Lifter(flat, batched)
        for name, places in inputs.items():
            lifter.input(name, flat.places[places], "index" if name in indices else "input")
        for places in blocks:
            lifter.allocate("p", flat.places[places])
        loops = [LoopLifter(lifter, run) for run in runs]
        ends = [0, *[end for loop in loops for end in (loop.run.first, loop.run.last)], len(flat.groups)]
        straight = [flat.groups[start:end] for start, end in zip(ends[::2], ends[1::2], strict=True)]
        for loop in loops:  # first, as their parameters are read most
            loop.plan()
        lifter.plan([group for groups in straight for group in groups])
        for number, groups in enumerate(straight):
            for group in groups:
                lifter.make(group)
            if number < len(loops):
                loops[number].make()
        program = lifter.program
        program.as_written, program.has_choices = flat.as_written, flat.has_choices
        for name, places in outputs.items():
            program.outputs[name] = _output(lifter, flat.places[places])
        fuse(program)
        unmask(program)
        back = np.full(len(flat.source), -1)
        back[flat.places] = np.arange(len(flat.places))  # of several one: but parameters have a place of their own
        slots = [array.slots.reshape(-1) for array in program.of_role("param")]
        parameters = back[np.concatenate(slots)].tolist() if slots else []
        steps = program.each_step()
        tables = sum(x.table is not None for step in steps if isinstance(step, Compute) for x in step.operands)
        products = [step for step in steps if isinstance(step, Compute) and _is_matrix_product(step)]
        multiplications = max([-prod(step.axes) for step in products if BATCH in step.axes], default=0)  # BATCH is -1
        return Lifted(program, parameters, tables, len(products), multiplications)

    try:
        return lifted(False)
    except Whole:
        return lifted(True)


def _with_loops(
    graph: Graph, source: Ints, wanted: Ints, picks: list[Pick], whole: bool
) -> tuple[FlatGraph, list[Recurrence]]:
    """Return the flat graph and its loops.

    If the loops leave many groups, merging may have broken them up, as two iterations happened to compute the same;
    then try without merging.
    """
    flat = flatten(graph, source, wanted, picks, whole=whole)
    runs = recurrences(flat)
    added = 0 if flat.cut is None else lengthen(runs, flat.cut)
    left = len(flat.groups) - sum(run.saved for run in runs)
    if runs and left > LEFT * (len(flat.groups) + added):
        other = flatten(graph, source, wanted, picks, merge=False, whole=whole)
        other_runs = recurrences(other)
        if other.cut is not None:
            lengthen(other_runs, other.cut)
        if len(other.groups) - sum(run.saved for run in other_runs) < left:
            return other, other_runs
    return flat, runs


def _output(lifter: Lifter, node_ids: Ints) -> Array:
    """Return the array of a result: an existing one, or a copy."""
    operand = lifter.operand(node_ids)
    if isinstance(operand, Access) and operand.array.batched == lifter.batched:
        stay = [i for i, n in enumerate(node_ids.shape) if n > 1]
        squeezed = operand.permuted(stay, node_ids.shape)
        squeezed.strides = (1,) * lifter.batched + squeezed.strides
        if squeezed.is_whole((BATCH,) * lifter.batched + tuple([node_ids.shape[i] for i in stay])):
            return operand.array
    return lifter.compute("out", node_ids.shape, [operand], lambda x: x, batched=lifter.batched)


def _is_matrix_product(step: Compute) -> bool:
    return step.reduce == "sum" and len(step.operands) == 2 and step.expr[0] == "mul"
