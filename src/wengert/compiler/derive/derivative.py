"""Derivatives of a Program's outputs with respect to its inputs, as Programs that can be differentiated again.

Each function changes a program in place: it adds steps, and makes the derivatives the output "out", end to end. Steps
are not fused before the last derivative is taken, so that each has few operations, and partial derivatives use the
stored output of the step that they are of.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert.compiler.derive.directions import in_directions
from wengert.compiler.derive.forward import forward
from wengert.compiler.derive.reverse import Reverse
from wengert.compiler.ir import BATCH, FURTHER, ZERO, Access, Array, Assemble, Compute, Program, contiguous
from wengert.derivatives import coloring

__all__ = ["compressed", "copy_program", "gradient", "jacobian", "jvp", "reordered"]


def copy_program(program: Program) -> Program:
    """Copy a program, with its arrays and steps but not the numbers in them."""
    known: dict[int, Any] = {}
    kept = [x for array in program.arrays for x in (array.slots, array.value, array.mask) if isinstance(x, np.ndarray)]
    for step in program.each_step():
        if isinstance(step, Compute):
            kept += [x for x in (step.mask, *[access.table for access in step.operands]) if x is not None]
        else:
            kept += [access.table for access, _ in step.parts if access.table is not None]
    known.update({id(x): x for x in kept})
    return copy.deepcopy(program, known)


def gradient(program: Program, names: Sequence[str], with_value: bool = False) -> None:
    """Make the output, one number, its derivatives with respect to some inputs; with its value first, if asked."""
    out = program.outputs["out"]
    by_input = _pulled_back(program, names, None)
    parts: list[tuple[Array | None, int]] = [(out, 1)] * with_value + [
        (by_input.get(array.name), array.size) for array in _inputs(program, names)
    ]
    total = sum([size for _, size in parts])
    made = _out(program, total)
    placed, at = [], 0
    for array, size in parts:
        if array is not None:
            part = _batched(program, array)
            strides = (1,) * part.batched + contiguous(part.cell_shape)
            placed.append((Access(made, at, strides), part))
        at += size
    _set_output(program, made, placed)


def jacobian(program: Program, names: Sequence[str]) -> None:
    """Make the output its Jacobian with respect to some inputs: a row for each number, end to end.

    It takes forward mode, with a direction for each input, unless there are fewer outputs.
    """
    out = program.outputs["out"]
    inputs = _inputs(program, names)
    rows, columns = out.size, sum([array.size for array in inputs])
    if columns <= rows:
        seeds, at = {}, 0
        tangents: dict[int, Array] = {}
        for array in inputs:
            seed = Array(f"e_{array.name}", array.cell_shape, "const", value=np.ones(array.cell_shape))
            seeds[id(seed)] = np.eye(columns)[at : at + array.size].reshape((*array.cell_shape, columns))
            program.arrays.append(seed)
            tangents[id(array)] = _batched(program, seed, first=True)
            at += array.size
        made = forward(program, tangents).get(id(out))
        if columns > 1:
            in_directions(program, seeds)
        total = _out(program, rows * columns)
        placed = []
        if made is not None:
            made = _batched(program, made)
            placed = [(Access(total, 0, made.strides), made)]
        _set_output(program, total, placed)
        return
    seed = Array("e_out", out.cell_shape, "const", value=np.ones(out.cell_shape))
    program.arrays.append(seed)
    by_input = _pulled_back(program, names, _batched(program, seed) if out.batched else seed)
    if rows > 1:
        in_directions(program, {id(seed): np.eye(rows).reshape((*out.cell_shape, rows))})
    total, placed, at = _out(program, rows * columns), [], 0
    for array in inputs:
        part = by_input.get(array.name)
        if part is not None:
            part = _batched(program, part)
            own = contiguous(array.cell_shape)
            placed.append((Access(total, at, (1,) * part.batched + own + (columns,) * (rows > 1)), part))
        at += array.size
    _set_output(program, total, placed)


def compressed(program: Program, names: Sequence[str], colors: coloring.Coloring, first: float) -> None:
    """Make the output the nonzeros of its Jacobian with respect to some inputs, in the order of their pattern, after a
    number that tells it from other programs. One pass takes a direction for each colour.

    Args:
        program: a program without a batch.
        names: the inputs.
        colors: a colouring of columns alone, or of rows alone.
        first: the number.
    """
    out, inputs = program.outputs["out"], _inputs(program, names)
    right, left = colors.seeds()
    directions = len(colors)
    if right.shape[1]:
        seeds, tangents, at = {}, {}, 0
        for array in inputs:
            seed = _constant(program, f"e_{array.name}", array.cell_shape)
            seeds[id(seed)] = right[at : at + array.size].reshape((*array.cell_shape, directions))
            tangents[id(array)] = seed
            at += array.size
        products = forward(program, tangents)[id(out)]
    else:
        seed = _constant(program, "e_out", out.cell_shape)
        seeds = {id(seed): left.T.reshape((*out.cell_shape, directions))}
        by_input = _pulled_back(program, names, seed)
    if directions > 1:
        in_directions(program, seeds)
    else:
        for array in program.arrays:
            if id(array) in seeds:
                array.value = seeds[id(array)].reshape(array.shape)
    if not right.shape[1]:
        products = Array("products", (directions * sum([array.size for array in inputs]),), "value")
        placed, at = [], 0
        for array in inputs:
            if (part := by_input.get(array.name)) is not None:
                placed.append((Access(products, at * directions, contiguous(part.cell_shape)), part))
            at += array.size
        program.arrays.append(products)
        program.steps.append(Assemble(products, placed))
    which, nonzeros = Array("which", (), "value"), Array("nonzeros", (len(colors.place),), "value")
    made = Array("derivatives", (1 + len(colors.place),), "value")
    read = Access(products, 0, (0,), colors.place * directions + colors.direction)
    program.arrays += [which, nonzeros, made]
    program.steps += [
        Compute(which, (), [], ("const", first)),
        Compute(nonzeros, nonzeros.shape, [read], ("in", 0)),
        Assemble(made, [(Access(made, 0, ()), which), (Access(made, 1, (1,)), nonzeros)]),
    ]
    program.outputs["out"] = made


def _constant(program: Program, name: str, shape: tuple[int, ...]) -> Array:
    """Add an array of ones, in place of which directions can be given."""
    made = Array(name, shape, "const", value=np.ones(shape))
    program.arrays.append(made)
    return made


def jvp(program: Program, names: Sequence[str], along: Sequence[str], with_value: bool = False) -> None:
    """Make the output its derivatives along a direction that other inputs give; after its numbers, if asked."""
    out = program.outputs["out"]
    pairs = zip(_inputs(program, names), _inputs(program, along), strict=True)
    made = forward(program, {id(x): v for x, v in pairs}).get(id(out))
    total = _out(program, out.size * (1 + with_value))
    parts = [(0, out)] * with_value + [(out.size * with_value, made)] * (made is not None)
    placed = []
    for at, array in parts:
        assert array is not None
        part = _batched(program, array)
        placed.append((Access(total, at, part.strides), part))
    _set_output(program, total, placed)


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
    made = Array("result", (BATCH,) * out.batched + shape, "value")
    program.arrays.append(made)
    program.steps.append(Compute(made, made.shape, [access], ("in", 0)))
    program.outputs["out"] = made


def _inputs(program: Program, names: Sequence[str]) -> list[Array]:
    by_name = {array.name: array for array in program.of_role("input")}
    return [by_name[name] for name in names]


def _pulled_back(program: Program, names: Sequence[str], seed: Array | None) -> dict[str, Array]:
    """Add a reverse sweep to a program; return the cotangents of some inputs."""
    sweep = Reverse(program, tuple(names), rules=FURTHER, seed=seed, each=True)
    made = sweep.run()
    program.steps += made.steps
    program.arrays += made.arrays
    return made.gradients


def _out(program: Program, size: int) -> Array:
    is_batched = any(array.batched for array in program.arrays if array.role in ("input", "index"))
    return Array("derivatives", (BATCH,) * is_batched + (size,) * (size > 1), "value")


def _batched(program: Program, array: Array, first: bool = False) -> Array:
    """Return an array that has the same numbers for each example, if the program takes a batch; `first` puts the step
    before all others.
    """
    is_batched = any(x.batched for x in program.arrays if x.role in ("input", "index"))
    if not is_batched or array.batched:
        return array
    made = Array(f"{array.name}_N", (BATCH, *array.shape), "value", mask=array.mask)
    program.arrays.append(made)
    step = Compute(made, made.shape, [Access(array, 0, (0, *array.strides))], ("in", 0))
    program.steps.insert(0 if first else len(program.steps), step)
    return made


def _set_output(program: Program, made: Array, placed: list[tuple[Access, Array]]) -> None:
    """Make an array the output, put together from parts; cells that no part fills are 0."""
    program.arrays.append(made)
    if not placed:
        program.steps.append(Compute(made, made.shape, [], ZERO))
    elif len(placed) == 1 and placed[0][1].size == made.size:
        part = placed[0][1]
        if placed[0][0].strides == part.strides:
            read = Access(part, 0, made.strides)
            program.steps.append(Compute(made, made.shape, [read], ("in", 0)))
        else:
            program.steps.append(Assemble(made, placed))
    else:
        program.steps.append(Assemble(made, placed))
    program.outputs["out"] = made
