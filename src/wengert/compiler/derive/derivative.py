"""Derivatives of a Program's outputs with respect to its inputs, as Programs that can be differentiated again.

Each function changes a program in place: it adds steps that compute the derivatives, and makes these, end to end, the
output "out". Steps are fused only after the last derivative is taken: until then each has few operations, so that its
partial derivatives can use its stored output.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np

from wengert.compiler.derive.directions import in_directions
from wengert.compiler.derive.forward import forward
from wengert.compiler.derive.reverse import Reverse
from wengert.compiler.ir import BATCH, FURTHER, ZERO, Access, Array, Assemble, Compute, Expr, Program, contiguous
from wengert.derivatives import coloring

__all__ = ["compressed", "gradient", "jacobian", "joined", "jvp", "reordered", "vjp"]


def gradient(program: Program, names: Sequence[str], with_value: bool = False, again: bool = False) -> None:
    """Make the output, one number, its derivatives with respect to some inputs; with its value first, if asked. `again`
    says, here and below, that they are differentiated again.
    """
    value = [(program.outputs["out"], 1)] * with_value
    _set_end_to_end(program, value + _cotangents(program, names, None, again))


def vjp(program: Program, names: Sequence[str], along: Sequence[str], again: bool = False) -> None:
    """Make the output the cotangents of some inputs, given that of the output by other inputs, end to end."""
    seed = Array("seed", (BATCH,) * _is_batched(program) + program.outputs["out"].cell_shape, "value")
    parts = [_for_each_example(program, array) for array in _inputs(program, along)]
    program.arrays.append(seed)
    program.steps.append(Assemble.end_to_end(seed, parts))
    _set_end_to_end(program, _cotangents(program, names, seed, again))


def jacobian(program: Program, names: Sequence[str], again: bool = False) -> None:
    """Make the output its Jacobian with respect to some inputs: a row for each number, end to end.

    It takes forward mode, with a direction for each input, unless there are fewer outputs.
    """
    rows = program.outputs["out"].size
    columns = sum([array.size for array in _inputs(program, names)])
    if columns <= rows:
        products = _pushed_forward(program, names, np.eye(columns), again)
        _set_output(program, rows * columns, [(0, contiguous(x.cell_shape), x) for x in (products,) if x is not None])
        return
    placed = []
    for at, array, part in _several_pulled_back(program, names, np.eye(rows), again=again):
        placed.append((at, contiguous(array.cell_shape) + (columns,) * (rows > 1), part))
    _set_output(program, rows * columns, placed)


def compressed(program: Program, names: Sequence[str], colors: coloring.Coloring) -> None:
    """Make the output the nonzeros of its Jacobian with respect to some inputs, in the order of their pattern, or a
    single 0 if there are none. Forward mode has a direction for each colour of columns, and reverse mode one for each
    colour of rows.

    Args:
        program: a program without a batch.
        names: the inputs.
        colors: a colouring of the Jacobian's columns and rows.
    """
    if not len(colors):
        _set_output(program, 1, [])
        return
    (right, left), (count, others) = colors.seeds(), colors.counts
    start, places = count * program.outputs["out"].size, colors.place
    tangents = _pushed_forward(program, names, right) if count else None
    placed = [] if tangents is None else [(0, contiguous(tangents.cell_shape), tangents)]
    if others:
        parts = _several_pulled_back(program, names, left.T, [x for x in (tangents,) if x is not None])
        placed += [(start + at * others, contiguous(part.cell_shape), part) for at, _, part in parts]
    _set_output(program, start + others * len(colors.columns), placed)
    by_row = start + places * others + colors.direction - count
    table = np.where(colors.direction < count, places * count + colors.direction, by_row)
    read = Access(program.outputs["out"], 0, (0,), table)
    program.outputs["out"] = _add(program, "nonzeros", (len(colors.place),), [read])


def jvp(
    program: Program, names: Sequence[str], along: Sequence[str], with_value: bool = False, again: bool = False
) -> None:
    """Make the output its derivatives along a direction that other inputs give; with its value first, if asked."""
    out = program.outputs["out"]
    pairs = zip(_inputs(program, names), _inputs(program, along), strict=True)
    tangent = forward(program, {id(x): v for x, v in pairs}, again).get(id(out))
    _set_end_to_end(program, [(out, out.size)] * with_value + [(tangent, out.size)])


def joined(program: Program, parts: Sequence[Array], order: Any, shape: tuple[int, ...]) -> None:
    """Make the output the numbers of several arrays, in an order among all of them, and in a shape."""
    _set_end_to_end(program, [(part, part.size) for part in parts])
    reordered(program, order, shape)


def reordered(program: Program, order: Any, shape: tuple[int, ...]) -> None:
    """Put the numbers of the output in another order, and into a shape."""
    out = program.outputs["out"]
    order = np.asarray(order, np.int64).reshape(shape)
    if np.array_equal(order.reshape(-1), np.arange(order.size)):
        if out.cell_shape == shape:
            return
        access = Access(out, 0, (1,) * out.batched + contiguous(shape))
    else:
        access = Access(out, 0, (int(out.batched),) * out.batched + (0,) * len(shape), order)
    program.outputs["out"] = _add(program, "result", (BATCH,) * out.batched + shape, [access])


def _inputs(program: Program, names: Sequence[str]) -> list[Array]:
    by_name = {array.name: array for array in program.of_role("input")}
    return [by_name[name] for name in names]


def _pushed_forward(program: Program, names: Sequence[str], directions: Any, again: bool = False) -> Array | None:
    """Add forward mode along some directions, the columns of a matrix with a row for each number of the inputs; return
    the tangents of the output, which have an axis for the directions if there are several. None if all are 0.
    """
    seeds, tangents, at = {}, {}, 0
    for array in _inputs(program, names):
        seed = _seed(program, array)
        seeds[id(seed)] = directions[at : at + array.size].reshape((*array.cell_shape, -1))
        tangents[id(array)] = _for_each_example(program, seed, first=True)
        at += array.size
    output_tangents = forward(program, tangents, again).get(id(program.outputs["out"]))
    in_directions(program, seeds, [] if output_tangents is None else [output_tangents])
    return output_tangents


def _several_pulled_back(
    program: Program, names: Sequence[str], directions: Any, others: Sequence[Array] = (), again: bool = False
) -> list[tuple[int, Array, Array]]:
    """Add reverse mode for several cotangents of the output, the columns of a matrix with a row for each of its
    numbers; return for each input that the output depends on its offset among the numbers of all inputs, the input,
    and its cotangents, with an axis as in `_pushed_forward`. `others` are further arrays that must be computed.
    """
    out, inputs = program.outputs["out"], _inputs(program, names)
    seed = _seed(program, out)
    by_input = _pulled_back(program, names, _for_each_example(program, seed) if out.batched else seed, again)
    in_directions(program, {id(seed): directions.reshape((*out.cell_shape, -1))}, [*by_input.values(), *others])
    starts = accumulate([array.size for array in inputs], initial=0)
    return [(at, x, by_input[x.name]) for at, x in zip(starts, inputs, strict=False) if x.name in by_input]


def _cotangents(
    program: Program, names: Sequence[str], seed: Array | None, again: bool
) -> list[tuple[Array | None, int]]:
    """Add a reverse sweep; return for each input its cotangent, None if it is 0, and its size."""
    by_input = _pulled_back(program, names, seed, again)
    return [(by_input.get(array.name), array.size) for array in _inputs(program, names)]


def _pulled_back(program: Program, names: Sequence[str], seed: Array | None, again: bool) -> dict[str, Array]:
    """Add a reverse sweep to a program; return the cotangents of some inputs."""
    backward = Reverse(program, tuple(names), rules=FURTHER, again=again, seed=seed, each=True).run()
    program.steps += backward.steps
    program.arrays += backward.arrays
    return backward.gradients


def _seed(program: Program, of: Array) -> Array:
    """Add a constant for a tangent or cotangent of an array; `in_directions` gives its numbers."""
    seed = Array(f"e_{of.name}", of.cell_shape, "const", value=np.ones(of.cell_shape))
    program.arrays.append(seed)
    return seed


def _is_batched(program: Program) -> bool:
    return any(array.batched for array in program.arrays if array.role in ("input", "index"))


def _for_each_example(program: Program, array: Array, first: bool = False) -> Array:
    """Return an array that has the same numbers for each example, if the program takes a batch; `first` puts the step
    before all others.
    """
    if array.batched or not _is_batched(program):
        return array
    read = Access(array, 0, (0, *array.strides))
    repeated = _add(program, f"{array.name}_N", (BATCH, *array.shape), [read])
    repeated.mask = array.mask
    if first:
        program.steps.insert(0, program.steps.pop())
    return repeated


def _add(program: Program, name: str, shape: tuple[int, ...], reads: list[Access], expr: Expr = ("in", 0)) -> Array:
    """Add a step, by default a copy, and return what it makes."""
    array = Array(name, shape, "value")
    program.arrays.append(array)
    program.steps.append(Compute(array, shape, reads, expr))
    return array


def _set_end_to_end(program: Program, parts: Sequence[tuple[Array | None, int]]) -> None:
    """Make the output some arrays of given sizes, end to end; None for zeros."""
    placed, at = [], 0
    for part, size in parts:
        if part is not None:
            placed.append((at, contiguous(part.cell_shape), part))
        at += size
    _set_output(program, at, placed)


def _set_output(program: Program, size: int, placed: Sequence[tuple[int, tuple[int, ...], Array]]) -> None:
    """Make the output `size` numbers, assembled from parts given as (offset, strides, array), and 0 elsewhere."""
    lead = (BATCH,) * _is_batched(program)
    shape = lead + (size,) * (size > 1)
    whole = len(placed) == 1 and placed[0][2].size == size
    if not placed:
        derivatives = _add(program, "derivatives", shape, [], ZERO)
    elif whole and placed[0][1] == contiguous(placed[0][2].cell_shape):
        part = _for_each_example(program, placed[0][2])
        derivatives = _add(program, "derivatives", shape, [Access(part, 0, (1,) * (len(shape)))])
    else:
        derivatives = Array("derivatives", shape, "value")
        parts = [(at, strides, _for_each_example(program, part)) for at, strides, part in placed]
        program.steps.append(
            Assemble(derivatives, [(Access(derivatives, at, (1,) * len(lead) + own), x) for at, own, x in parts])
        )
        program.arrays.append(derivatives)
    program.outputs["out"] = derivatives
