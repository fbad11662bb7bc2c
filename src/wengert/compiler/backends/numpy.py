"""A Program as readable NumPy. The text shown is what runs, except for extra forms for tiny and huge numbers."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

import numpy as np

from wengert.compiler.backends.base import Buffers, Kernel
from wengert.compiler.backends.buffers import count_uses, is_view, spent_arrays
from wengert.compiler.backends.indexing import Names, added, apart, in_memory, strided, view
from wengert.compiler.backends.loops import iterations, row_kept
from wengert.compiler.backends.scan import Scan
from wengert.compiler.backends.spellings import LIBRARIES, Library, by_element, guarded
from wengert.compiler.backends.syntax import call, infix, item, method, negative, node, path, with_point, written
from wengert.compiler.ir import (
    BATCH,
    ONE,
    ZERO,
    Access,
    Array,
    Assemble,
    Compute,
    Expr,
    Loop,
    Program,
    Step,
    addresses,
    contiguous,
    has_mask,
    repeated,
    times,
    unrolled,
)
from wengert.errors import ArgumentError
from wengert.ops import TABLE

__all__ = ["NumPyKernel", "Writer"]

WIDTH = 88  # of a line, before its shape is noted behind it
INLINE = 64  # a step used once is written where it is used, up to this length
CAREFUL = replace(LIBRARIES["numpy"], guarded="guarded(x, lambda: y, z)")


class NumPyKernel(Kernel):
    """A program that runs as NumPy: its text, compiled."""

    name = "numpy"

    def __init__(self, program: Program, back: Program, wanted: Sequence[Array] = ()) -> None:
        super().__init__(program, back, wanted)
        self._forward_backward: Callable[..., Any] | None = None  # made when they are asked for
        self._forward: Callable[..., Any] | None = None

    def _define(self, both: bool) -> Callable[..., Any]:
        """The function that computes the outputs, and if asked for the derivatives: those with respect to the
        parameters are left in memory that it is given.
        """
        grads = [self.backward.gradients.get(a.name) for a in self.params] if both else []
        memory = {f"grad{n}": grad for n, grad in enumerate(grads)}
        text = Writer(self.program, self.backward if both else None, CAREFUL, memory)
        given = ["seed", *text.given, *memory]
        lines = text.lines
        for name, grad in memory.items():
            if name not in text.filled:
                lines.append(f"{name}[...] = {'0.0' if grad is None else text.result(grad)}")
        results = [text.result(array) for array in self.program.outputs.values()]
        results += [text.result(self.backward.gradients.get(a.name), a) for a in self.wanted if both]
        space = {"np": np, "by_element": by_element, "guarded": guarded, **text.names.constants}
        body = "\n    ".join([*lines, f"return ({', '.join(results)},)"])
        exec(compile(f"{text.helpers()}def lifted({', '.join(given)}):\n    {body}\n", "<lifted>", "exec"), space)
        function: Callable[..., Any] = space["lifted"]
        return function

    def forward(self, arrays: Sequence[Any], buffers: Buffers) -> dict[str, Any]:
        """The outputs by name."""
        if self._forward is None:
            self._forward = self._define(False)
        return dict(zip(self.program.outputs, self._forward(1.0, *arrays, *buffers.param_arrays), strict=True))

    def forward_backward(self, arrays: Sequence[Any], seed: Any, buffers: Buffers) -> tuple[dict[str, Any], list[Any]]:
        """The outputs by name, and the derivatives with respect to the wanted inputs."""
        if self._forward_backward is None:
            self._forward_backward = self._define(True)
        results = self._forward_backward(seed, *arrays, *buffers.param_arrays, *buffers.grad_arrays)
        count = len(self.program.outputs)
        return dict(zip(self.program.outputs, results, strict=False)), list(results[count:])


class Writer:
    """The text of a program, and of its reverse sweep if there is one.

    Args:
        program: what is computed.
        back: its reverse sweep.
        library: in whose words.
        memory: the names of memory that results are left in, each with the array whose elements these are, if there is
            one. Where NumPy cannot leave them there, nothing is done: see what is `filled`.

    Attributes:
        given: what the inputs and the parameters are called, in their order.
        lines: of the body of a function.
        names: what they call arrays, and the constants among these.
        filled: the memory that a line has left its result in.
    """

    def __init__(
        self,
        program: Program,
        back: Program | None = None,
        library: Library = LIBRARIES["numpy"],
        memory: Mapping[str, Array | None] | None = None,
    ) -> None:
        self.library: Library = library
        if not library.loops:
            program, back = unrolled(program), None if back is None else unrolled(back)
        memory = memory or {}
        self.memory: dict[int, str] = {id(array): name for name, array in memory.items()}
        self.filled: set[str] = set()
        given = [a for a in program.arrays if a.role in ("input", "index")]
        self.names: Names = Names(library)
        names = self.names
        names.taken.update(memory)
        self.given: list[str] = [names.of(array).id for array in (*given, *program.of_role("param"))]
        names.length = next((call("len", names.of(array)) for array in given if array.batched), node(1))
        names.constants.update({names.of(array).id: array.value for array in program.of_role("const")})
        self.expressions: dict[int, tuple[Compute, Expr]] = {}  # by the id of a step: its own, in the library's rows
        self.elements: dict[tuple[Any, ...], str] = {}  # what is called on each element: its name in the text
        self.shared: dict[Expr, str] = {}  # of the step that is being written: what occurs in it more than once
        self.pending: list[str] = []  # the lines that compute that
        self.temporaries: int = 0
        self.uses: dict[int, int] = count_uses(program, back)
        self.donated: dict[int, Array]
        self.must_materialize: set[int]  # (see spent_arrays)
        self.donated, self.must_materialize = spent_arrays(back or Program(), self.uses, self.is_new, self.is_in_place)
        if back is not None and back.seed is not None:
            names.stands_for[id(back.seed)] = path("seed")
        for part, out in self.donated.items():
            names.stands_for[part] = names.of(out)
        lines = self.steps(program.steps)
        if back is not None:
            lines += ["# reverse", *self.steps(back.steps)]
        ranges = [(name, names.length if n == BATCH else n) for n, name in names.ranges.items()]
        counted = [f"{name} = {written(call(library.function('arange'), n))}" for name, n in ranges]
        self.lines: list[str] = [*counted, *lines]

    def result(self, array: Array | None, of: Array | None = None) -> str:
        """What an array is called; zeros in the shape of another if there is none."""
        if array is not None:
            return written(self.names.of(array))
        return written(call(self.library.function("zeros"), self.names.shape(of.shape if of else ())))

    def helpers(self) -> str:
        """The definitions that stand in front: what is called on each element."""
        return "".join([f"{name} = {written(call('by_element', *how))}\n" for how, name in self.elements.items()])

    # -- steps --------------------------------------------------------------------------------------------------------

    def steps(self, steps: Sequence[Step], rows: Mapping[int, Sequence[Any]] | None = None) -> list[str]:
        """The lines of some steps; by the id of what they make, rows are where a loop keeps it."""
        lines: list[str] = []
        rows = rows or {}
        readers = {id(x.array): step for step in steps if isinstance(step, Compute) for x in step.operands}
        for step in steps:
            if isinstance(step, Loop):
                if self.library.arrays_change:
                    lines += iterations(step, self.names, self.uses, self.steps)
                else:
                    lines += Scan(step, self.names, self.uses).lines(self.steps)
                continue
            kept = rows.get(id(step.out), ())
            if isinstance(step, Assemble):
                lines += [*self.assemble(step), *row_kept(kept, self.names.of(step.out))]
                continue
            made, out = self.compute(step), id(step.out)
            lines += self.pending
            self.pending = []
            if isinstance(made, ast.Name):  # a copy: another name for the same
                self.names.stands_for[out] = made
                lines += row_kept(kept, made)
                continue
            reader = readers.get(out)
            text = written(made)
            used_once = reader is not None and self.uses[out] == 1 and out not in self.must_materialize and not kept
            if kept:
                lines.append(self.line(step.out, row_kept(kept, made)[0], is_named=bool(self.uses.get(out))))
            elif used_once and len(text) <= INLINE and self.takes(reader, step.out):
                self.names.stands_for[out] = made
            elif self.uses.get(out):
                into = _into(made, self.memory.get(out, "")) if step.out.shape else None
                if into is not None:
                    self.filled.add(self.memory[out])
                    text = written(into)
                lines.append(self.line(step.out, text))
        return lines

    def takes(self, reader: Any, array: Array) -> bool:
        """Whether a step reads an array once, so that the array's own expression can stand there."""
        places = [k for k, x in enumerate(reader.operands) if x.array is array]
        if reader.reduce or len(places) != 1 or not reader.operands[places[0]].is_whole(reader.axes):
            return False
        return times(self.expanded(reader), places[0]) == 1

    def expanded(self, step: Compute) -> Expr:
        """The expression of a step by the rows that the library has."""
        if id(step) not in self.expressions:
            of = step.operands
            self.expressions[id(step)] = step, self.library.expanded(step.expr, lambda k: of[k].array.nonnegative)
        return self.expressions[id(step)][1]

    def line(self, out: Array, text: str, is_named: bool = True) -> str:
        """A line that makes an array; its shape stands behind it."""
        name = f"{self.names.of(out).id} = " if is_named else ""
        return f"{name}{text}".ljust(WIDTH) + f"  # {out.written_shape}"

    def assemble(self, step: Assemble) -> list[str]:
        """Zeros, or the first part if it covers everything, and the others added in their places."""
        out, parts = step.out, list(step.parts)
        lines: list[str] = []
        if _end_to_end(step):
            return [self.line(out, written(self.concatenation(step)))]
        if id(parts[0][1]) in self.donated:
            parts.pop(0)
        elif parts[0][0].is_whole(parts[0][1].shape) and parts[0][1].shape == out.shape:
            lines = [self.line(out, written(method(self.names.of(parts.pop(0)[1]), "copy")))]
        else:
            lines = [self.line(out, written(call(self.library.function("zeros"), self.names.shape(out.shape))))]
        for access, part in parts:
            lines.append(added(*self.target(access, part), part, out, self.names))
        return lines

    def concatenation(self, step: Assemble) -> Any:
        """The parts, each as one row of its elements, end to end; those of one number each as one array."""
        names, length = self.names, self.names.length
        pieces = []
        for shape, parts in groupby([part for _, part in step.parts], key=lambda part: part.shape):
            run = list(parts)
            batched, size = shape[:1] == (BATCH,), run[0].size
            made = [names.of(part) for part in run]
            if len(shape) == batched:
                size = len(run)
                together = call(self.library.function("array"), made)
                made = [ast.Attribute(together, "T") if batched else together]
            elif len(shape) != batched + 1:
                made = [method(piece, "reshape", *[length] * batched, size if batched else -1) for piece in made]
            if step.out.batched and not batched:
                made = [call(self.library.function("broadcast_to"), piece, (length, size)) for piece in made]
            pieces += made
        axis = {"axis": 1} if step.out.batched else {}
        return pieces[0] if len(pieces) == 1 else call(self.library.function("concatenate"), pieces, **axis)

    def target(self, access: Access, part: Array) -> tuple[Any, bool]:
        """The places that a part is added at, and whether each is named only once."""
        axes, out = part.shape, access.array
        plain = [i for i in range(len(axes)) if axes[i] != BATCH]
        strides = [(access.strides[i], axes[i]) for i in plain]
        if access.index is not None:
            strides.append((access.index.step, access.index.extent))
            reads_batch = not access.index.array.batched or out.batched
            return view(access, axes, range(len(axes)), self.names), apart(strides) and reads_batch
        order = sorted(range(len(axes)), key=lambda i: (axes[i] != BATCH, -abs(access.strides[i])))
        if access.table is None and order == list(range(len(axes))) and apart(strides):
            found = strided(access, axes, self.names)
            if found is not None and found[1] == [i for i in order if access.depends_on(i, axes)]:
                made = view(access, axes, order, self.names)
                return made if isinstance(made, ast.Subscript) else item(made, ...), True
        table = access.table
        if table is None:
            table = addresses(access.base, tuple([s for s, _ in strides]), tuple([n for _, n in strides]))
        made = view(Access(out, 0, access.strides, table), axes, range(len(axes)), self.names)
        return made, len(np.unique(table)) == table.size

    # -- which arrays are which ---------------------------------------------------------------------------------------

    def is_new(self, step: Compute) -> bool:
        """Whether a step makes an array of its own, and no view of another."""
        return step.reduce in ("", "sum") and not is_view(step) and self.fills(step, range(len(step.out.shape)))

    def is_in_place(self, access: Access, part: Array) -> bool:
        """Whether the places that a part is added at are written without a reshape."""
        target, _ = self.target(access, part)
        while isinstance(target, ast.Subscript):
            target = target.value
        return isinstance(target, ast.Name)

    def fills(self, step: Compute, axes: Sequence[int]) -> bool:
        """Whether every one of these axes is an axis of some operand, or of a mask in the expression."""
        if has_mask(step.expr) and BATCH not in [step.axes[i] for i in axes]:
            return True
        return all(any(x.depends_on(i, step.axes) for x in step.operands) for i in axes)

    def filled_up(self, step: Compute, made: Any, axes: Sequence[int]) -> Any:
        """What was made for these axes of a step, broadcast along those that nothing in it has."""
        if self.fills(step, axes):
            return made
        return call(self.library.function("broadcast_to"), made, self.names.shape([step.axes[i] for i in axes]))

    # -- one step -----------------------------------------------------------------------------------------------------

    def compute(self, step: Compute) -> Any:
        """What a step makes, as a node."""
        if not step.reduce:
            return self.filled_up(step, self.elementwise(step), range(len(step.axes)))
        if step.reduce == "sum" and step.expr[0] == "neg":  # the sign of the sum, not of each of its terms
            return negative(self.compute(replace(step, expr=step.expr[1])))
        product = self.contraction(step) if step.reduce == "sum" and step.mask is None else None
        return self.reduction(step) if product is None else product

    def elementwise(self, step: Compute, order: Sequence[int] | None = None) -> Any:
        """The expression of a step, its axes in some order."""
        order = range(len(step.axes)) if order is None else order

        def leaf(expr: Expr) -> Any:
            if expr[0] == "mask":
                return self.mask(expr[1], step.axes, order)
            access = step.operands[expr[1]]
            inlined = self.names.stands_for.get(id(access.array))
            if inlined is not None and access.is_whole(step.axes) and not isinstance(inlined, ast.Name):
                return inlined
            return view(access, step.axes, order, self.names)

        expr = self.expanded(step)
        self.shared = {}
        if not has_mask(expr):
            for part in repeated(expr):
                made = self.expression(part, leaf)
                self.temporaries += 1
                self.shared[part] = self.names.free(f"t{self.temporaries}")
                self.pending.append(f"{self.shared[part]} = {written(made)}")
        made = self.expression(expr, leaf)
        self.shared = {}
        return with_point(made)

    def mask(self, values: Any, axes: Sequence[int], order: Sequence[int]) -> Any:
        """A mask over the axes of a step, in some order; it may lack the last of them."""
        plain = [i for i in range(len(axes)) if axes[i] != BATCH]
        values = values.reshape(values.shape + (1,) * (len(plain) - values.ndim))
        made = self.names.keep(np.ascontiguousarray(values.transpose([plain.index(i) for i in order if i in plain])))
        if any(axes[i] == BATCH for i in order[1:]):
            made = item(made, *[None if axes[i] == BATCH else slice(None) for i in order])
        return made

    def expression(self, expr: Expr, leaf: Callable[[Expr], Any]) -> Any:
        """One expression; `leaf` gives its operands and masks."""
        if self.shared and expr in self.shared:
            return path(self.shared[expr])
        name = expr[0]
        if name in ("in", "mask"):
            return leaf(expr)
        if name == "const":
            return self.library.literal(expr[1])
        if name == "mul":
            for a, b in (expr[1:], expr[:0:-1]):
                if b[0] == "where" and b[2:] == (ONE, ZERO):  # a bool counts as 1 or 0
                    return infix(with_point(self.expression(a, leaf)), "*", self.expression(b[1], leaf))
                if b[0] == "reciprocal":
                    return self.expression(("div", a, b[1]), leaf)
        if name == "partial":
            row, operand = TABLE[int(expr[1][1])].name, int(expr[2][1])
            return self.element((row, operand), [self.expression(x, leaf) for x in expr[3:]])
        operands = [self.expression(branch, leaf) for branch in expr[1:]]
        if name == "where":
            operands[1] = with_point(operands[1])
        made = self.library.spelled(name, operands)
        return self.element((name,), operands) if made is None else made

    def element(self, how: tuple[Any, ...], operands: list[Any]) -> Any:
        """A row that there is no array form of, or its derivative, called on each element."""
        if not self.library.by_element:
            raise ArgumentError(f"source(): {how[0]} computes floats one by one, which only NumPy can: write its rule "
                                "with the operations of wengert")  # fmt: skip
        if how not in self.elements:
            self.elements[how] = self.names.free("_partial".join(map(str, how)))
        return call(self.elements[how], *operands)

    # -- reductions ---------------------------------------------------------------------------------------------------

    def reduction(self, step: Compute) -> Any:
        """A sum, or a greatest or least one, over some axes."""
        kept = len(step.out.shape)
        order = list(range(len(step.axes)))
        if len(step.operands) == 1 and step.operands[0].table is None and step.operands[0].index is None:
            access = step.operands[0]  # in the order of memory, where that leaves the result in order
            turned = sorted(order, key=lambda i: (step.axes[i] != BATCH, -access.strides[i]))
            if [i for i in turned if i < kept] == list(range(kept)) and all(access.strides[i] for i in order):
                order = turned
        constant = [i for i in step.reduced if not self.fills(step, [i])] if step.mask is None else []
        if constant and step.expr[0] != "where":  # the same for each: as often as there are
            order = [i for i in order if i not in constant]
            made = self.elementwise(step, order)
            if step.reduce == "sum":
                for count in self.names.shape([step.axes[i] for i in constant]).elts:
                    made = infix(made, "*", count)
            if len(order) == kept:
                return self.filled_up(step, made, order)
        else:
            made = self.elementwise(step, order)
        made = self.filled_up(step, made, order)
        at = tuple(sorted([order.index(i) for i in step.reduced if i in order]))
        where = node(at[0] if len(at) == 1 else at)
        if step.mask is not None:
            mask = self.mask(step.mask, step.axes, order)
            if step.reduce != "sum":
                return self.library.filled(self.library.form(f"masked {step.reduce}"), made, where, mask)
            made = call(self.library.function("where"), mask, made, 0)
        return self.library.method(made, step.reduce, *[where] * (kept > 0))

    def contraction(self, step: Compute) -> Any:
        """A sum of products of two operands, as NumPy's own product of matrices; None if it is none."""
        expr, axes = step.expr, step.axes
        if expr[0] != "mul" or expr[1][0] != "in" or expr[2][0] != "in" or expr[1] == expr[2]:
            return None
        x, y = step.operands[expr[1][1]], step.operands[expr[2][1]]
        if x.index is not None or y.index is not None:
            return None
        of_x, of_y = ({i for i in range(len(axes)) if a.depends_on(i, axes)} for a in (x, y))
        out, summed = list(range(len(step.out.shape))), list(step.reduced)
        if not of_x >= set(summed) <= of_y or not of_x | of_y >= set(out):
            return None
        both = [i for i in out if i in of_x and i in of_y]
        only_x, only_y = [i for i in out if i not in of_y], [i for i in out if i not in of_x]

        def read(access: Access, order: list[int]) -> Any:
            return view(access, axes, order, self.names)

        if len(summed) > 1:
            return self.long_contraction(step, x, y, both, only_x, only_y)
        if not only_x and not only_y:
            if not both:
                return infix(read(x, summed), "@", read(y, summed))
            return self.library.method(infix(read(x, out + summed), "*", read(y, out + summed)), "sum", len(out))
        if len(only_x) < len(only_y):
            x, y, only_x, only_y = y, x, only_y, only_x
        if len(only_y) > 1 or (both and not (len(only_x) == 1 and only_y)):
            return self.einsum(step, x, y)
        stack = len(only_x) > 1  # of matrices, times one
        if not stack and (not only_x or (only_y and only_x[0] > only_y[0])):  # what stands first in the result: left
            x, y, only_x, only_y = y, x, only_y, only_x
        product = self.library.product(read(x, both + only_x + summed), read(y, both + summed + only_y), bool(only_y))
        return self.turned(product, both + only_x + only_y, out)

    def long_contraction(
        self, step: Compute, x: Access, y: Access, both: list[int], only_x: list[int], only_y: list[int]
    ) -> Any:
        """The same over several axes at once."""
        axes, summed = step.axes, list(step.reduced)
        if both or x.table is not None or y.table is not None:
            return self.einsum(step, x, y)
        order_x, order_y = in_memory(x, only_x + summed, axes), in_memory(y, only_y + summed, axes)
        if not only_x and not only_y:
            left, right = (view(a, axes, order_x, self.names) for a in (x, y))
            return self.library.method(infix(left, "*", right), "sum")
        left, right = view(x, axes, order_x, self.names), view(y, axes, order_y, self.names)
        at = [order_x.index(i) for i in summed], [order_y.index(i) for i in summed]
        product = call(self.library.function("tensordot"), left, right, at)
        return self.turned(product, [i for i in order_x + order_y if i not in summed], list(range(len(step.out.shape))))

    def einsum(self, step: Compute, x: Access, y: Access) -> Any:
        """Any sum of products, by a letter for each axis."""
        axes, letters = step.axes, "ijklmnopqrst"
        orders = [in_memory(a, [i for i in range(len(axes)) if a.depends_on(i, axes)], axes) for a in (x, y)]
        of_x, of_y, out = ("".join([letters[i] for i in which]) for which in (*orders, range(len(step.out.shape))))
        left, right = (view(a, axes, order, self.names) for a, order in zip((x, y), orders, strict=True))
        return call(self.library.function("einsum"), f"{of_x},{of_y}->{out}", left, right)

    def turned(self, array: Any, made: list[int], out: list[int]) -> Any:
        """An array that was made over some axes with these in the order of the result."""
        return array if made == out else self.library.method(array, "transpose", *[made.index(i) for i in out])


def _into(made: Any, memory: str) -> Any:
    """The same, left in given memory; None if NumPy has no way to."""
    if memory and isinstance(made, ast.BinOp) and isinstance(made.op, ast.MatMult):
        return call("np.matmul", made.left, made.right, out=path(memory))
    takes = isinstance(made, ast.Call) and getattr(made.func, "attr", "") in ("sum", "max", "min", "einsum")
    if memory and takes:
        return ast.Call(made.func, made.args, [*made.keywords, ast.keyword("out", path(memory))])
    return None


def _end_to_end(step: Assemble) -> bool:
    """Whether the parts lie one behind another, whole, and fill the array."""
    at = 0
    for access, part in step.parts:
        own = access.strides[int(part.batched) :]
        if access.table is not None or access.index is not None or access.base != at:
            return False
        if own != contiguous(part.cell_shape) or len(step.out.cell_shape) != 1:
            return False
        at += part.size
    return at == step.out.size
