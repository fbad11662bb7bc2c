"""Writes a Program as readable NumPy. The text shown is what runs, except for extra forms for tiny and huge numbers."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

import numpy as np

from wengert.compiler.backends.base import Buffers, Kernel
from wengert.compiler.backends.buffers import count_uses, donated_arrays, is_view
from wengert.compiler.backends.indexing import Names, add_at, are_distinct, in_memory, strided, view
from wengert.compiler.backends.loops import iterations, store_row
from wengert.compiler.backends.scan import Scan
from wengert.compiler.backends.spellings import LIBRARIES, Library, by_element, guarded
from wengert.compiler.backends.syntax import call, infix, item, method, negative, node, path, with_point, written
from wengert.compiler.ir import (
    BATCH,
    LEAVES,
    ONE,
    ZERO,
    Access,
    Array,
    Assemble,
    Compute,
    Expr,
    Loop,
    Numbering,
    Program,
    Step,
    addresses,
    has_mask,
    parts,
    repeated,
    times,
    unrolled,
)
from wengert.errors import ArgumentError
from wengert.ops import BY_NAME, TABLE

__all__ = ["NumPyKernel", "Writer"]

WIDTH = 88  # of a line, before the comment with its shape
INLINE = 64  # the longest expression that is inlined where it is used
CAREFUL = replace(LIBRARIES["numpy"], guarded="guarded(x, lambda: y, z)")


class NumPyKernel(Kernel):
    """Runs a program as NumPy, by compiling its text."""

    name = "numpy"

    def __init__(self, program: Program, back: Program, wanted: Sequence[Array] = ()) -> None:
        super().__init__(program, back, wanted)
        self._forward_backward: Callable[..., Any] | None = None  # defined on first use
        self._forward: Callable[..., Any] | None = None

    def _define(self, both: bool) -> Callable[..., Any]:
        """Define the function that returns the outputs and the derivatives; those of parameters go to buffers."""
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
        if self._forward is None:
            self._forward = self._define(False)
        return dict(zip(self.program.outputs, self._forward(1.0, *arrays, *buffers.param_arrays), strict=True))

    def forward_backward(self, arrays: Sequence[Any], seed: Any, buffers: Buffers) -> tuple[dict[str, Any], list[Any]]:
        if self._forward_backward is None:
            self._forward_backward = self._define(True)
        results = self._forward_backward(seed, *arrays, *buffers.param_arrays, *buffers.grad_arrays)
        count = len(self.program.outputs)
        return dict(zip(self.program.outputs, results, strict=False)), list(results[count:])


class Writer:
    """Writes the text of a program, and of its reverse sweep if there is one.

    Many fields: the text in the making, and the names in it; a writer lives for one program.

    Args:
        program: the program.
        back: its reverse sweep.
        library: the library whose functions the text calls.
        memory: names of memory to leave results in, each with the array of the result, if there is one. Those that
            NumPy cannot leave there are missing in `filled`.

    Attributes:
        given: the names of the inputs and the parameters.
        lines: the body of a function.
        names: the names of arrays and constants.
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
        self.expressions: dict[int, tuple[Compute, Expr]] = {}  # by the id of a step: its expression for this library
        self.elements: dict[tuple[Any, ...], str] = {}  # the names of functions that are called on each element
        self.numbering: Numbering = Numbering()  # of the parts of the current step
        self.shared: dict[int, str] = {}  # by number, the common subexpressions of the current step
        self.pending: list[str] = []  # the lines that compute them
        self.floats: set[str] = set()  # the names of constants that are Python's floats
        self.temporaries: int = 0
        self.uses: dict[int, int] = count_uses(program, back)
        self.donated: dict[int, Array]
        self.must_materialize: set[int]  # (see donated_arrays)
        self.donated, self.must_materialize = donated_arrays(
            back or Program(), self.uses, self.is_new, self.is_in_place
        )
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
        """Return the name of an array; zeros in the shape of another if it is None."""
        if array is not None:
            return written(self.names.of(array))
        return written(call(self.library.function("zeros"), self.names.shape(of.shape if of else ())))

    def helpers(self) -> str:
        return "".join([f"{name} = {written(call('by_element', *how))}\n" for how, name in self.elements.items()])

    # -- steps --------------------------------------------------------------------------------------------------------

    def steps(self, steps: Sequence[Step], rows: Mapping[int, Sequence[Any]] | None = None) -> list[str]:
        """Return the lines of some steps; `rows`, by the ids of arrays, are where a loop stores them."""
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
            row = rows.get(id(step.out), ())
            if isinstance(step, Assemble):
                lines += [*self.assemble(step), *store_row(row, self.names.of(step.out))]
                continue
            tree, out = self.compute(step), id(step.out)
            lines += self.pending
            self.pending = []
            if not step.operands and not step.out.shape:
                self.floats.add(written(self.names.of(step.out)))
            if isinstance(tree, ast.Name):  # a copy: the array gets a second name
                self.names.stands_for[out] = tree
                lines += store_row(row, tree)
                continue
            reader = readers.get(out)
            text = written(tree)
            used_once = reader is not None and self.uses[out] == 1 and out not in self.must_materialize and not row
            if row:
                lines.append(self.line(step.out, store_row(row, tree)[0], is_named=bool(self.uses.get(out))))
            elif used_once and len(text) <= INLINE and self.can_inline(reader, step.out):
                self.names.stands_for[out] = tree
            elif self.uses.get(out):
                into = _into(tree, self.memory.get(out, "")) if step.out.shape else None
                if into is not None:
                    self.filled.add(self.memory[out])
                    text = written(into)
                lines.append(self.line(step.out, text))
        return lines

    def can_inline(self, reader: Any, array: Array) -> bool:
        """Return True if a step reads an array once, so that the array's expression can be inlined."""
        places = [k for k, x in enumerate(reader.operands) if x.array is array]
        if reader.reduce or len(places) != 1 or not reader.operands[places[0]].is_whole(reader.axes):
            return False
        return times(self.expanded(reader), places[0]) == 1

    def expanded(self, step: Compute) -> Expr:
        if id(step) not in self.expressions:
            of = step.operands
            self.expressions[id(step)] = step, self.library.expanded(step.expr, lambda k: of[k].array.nonnegative)
        return self.expressions[id(step)][1]

    def line(self, out: Array, text: str, is_named: bool = True) -> str:
        name = f"{self.names.of(out).id} = " if is_named else ""
        return f"{name}{text}".ljust(WIDTH) + f"  # {out.written_shape}"

    def assemble(self, step: Assemble) -> list[str]:
        """Start with zeros, or the first part if it covers everything, and add the others."""
        out, parts = step.out, list(step.parts)
        lines: list[str] = []
        if _end_to_end(step):
            return [self.line(out, written(self.concatenation(step)))]
        if id(parts[0][1]) in self.donated:
            parts.pop(0)
        elif parts[0][0].is_whole(parts[0][1].shape) and parts[0][1].shape == out.shape:
            first = self.names.of(parts.pop(0)[1])
            is_float = isinstance(first, (ast.Constant, ast.UnaryOp)) or written(first) in self.floats
            if is_float and not parts:
                self.floats.add(written(self.names.of(out)))
            lines = [self.line(out, written(first if is_float else method(first, "copy")))]
        else:
            lines = [self.line(out, written(call(self.library.function("zeros"), self.names.shape(out.shape))))]
        for access, part in parts:
            lines.append(add_at(*self.target(access, part), part, out, self.names))
        return lines

    def concatenation(self, step: Assemble) -> Any:
        """Concatenate the parts, each flattened; adjacent scalars become one array."""
        names, length = self.names, self.names.length
        pieces = []
        for shape, alike in groupby([part for _, part in step.parts], key=lambda part: part.shape):
            run = list(alike)
            batched, size = shape[:1] == (BATCH,), run[0].size
            arrays = [names.of(part) for part in run]
            if len(shape) == batched:
                size = len(run)
                stacked = call(self.library.function("array"), arrays)
                arrays = [ast.Attribute(stacked, "T") if batched else stacked]
            elif len(shape) != batched + 1:
                arrays = [method(piece, "reshape", *[length] * batched, size if batched else -1) for piece in arrays]
            if step.out.batched and not batched:
                arrays = [call(self.library.function("broadcast_to"), piece, (length, size)) for piece in arrays]
            pieces += arrays
        axis = {"axis": 1} if step.out.batched else {}
        return pieces[0] if len(pieces) == 1 else call(self.library.function("concatenate"), pieces, **axis)

    def target(self, access: Access, part: Array) -> tuple[Any, bool]:
        """Return the places that a part is added to, and whether they are distinct."""
        axes, out = part.shape, access.array
        plain = [i for i in range(len(axes)) if axes[i] != BATCH]
        strides = [(access.strides[i], axes[i]) for i in plain]
        if access.index is not None:
            strides.append((access.index.step, access.index.extent))
            reads_batch = not access.index.array.batched or out.batched
            return view(access, axes, range(len(axes)), self.names), are_distinct(strides) and reads_batch
        order = sorted(range(len(axes)), key=lambda i: (axes[i] != BATCH, -abs(access.strides[i])))
        if access.table is None and order == list(range(len(axes))) and are_distinct(strides):
            sliced = strided(access, axes, self.names)
            if sliced is not None and sliced[1] == [i for i in order if access.depends_on(i, axes)]:
                places = view(access, axes, order, self.names)
                return places if isinstance(places, ast.Subscript) else item(places, ...), True
        table = access.table
        if table is None:
            table = addresses(access.base, tuple([s for s, _ in strides]), tuple([n for _, n in strides]))
        places = view(Access(out, 0, access.strides, table), axes, range(len(axes)), self.names)
        return places, len(np.unique(table)) == table.size

    # -- aliasing and broadcasting -------------------------------------------------------------------------------------

    def is_new(self, step: Compute) -> bool:
        """Return True if a step makes an array of its own, not a view."""
        return step.reduce in ("", "sum") and not is_view(step) and self.fills(step, range(len(step.out.shape)))

    def is_in_place(self, access: Access, part: Array) -> bool:
        """Return True if the target of a part is written without a reshape."""
        target, _ = self.target(access, part)
        while isinstance(target, ast.Subscript):
            target = target.value
        return isinstance(target, ast.Name)

    def fills(self, step: Compute, axes: Sequence[int], always: bool = True) -> bool:
        """Return True if each of these axes is an axis of an operand, or of a mask in the expression; if `always`, of
        one that is read though no rare branch is taken, so that the text gives an array with these axes each time.
        """
        leaves = _leaves(self.expanded(step), always)
        if any(leaf[0] == "mask" for leaf in leaves) and BATCH not in [step.axes[i] for i in axes]:
            return True
        operands = [step.operands[leaf[1]] for leaf in leaves if leaf[0] == "in"]
        return all(any(x.depends_on(i, step.axes) for x in operands) for i in axes)

    def broadcast(self, step: Compute, result: Any, axes: Sequence[int]) -> Any:
        """Broadcast a result along the axes that no operand of the step has."""
        if self.fills(step, axes):
            return result
        return call(self.library.function("broadcast_to"), result, self.names.shape([step.axes[i] for i in axes]))

    # -- one step -----------------------------------------------------------------------------------------------------

    def compute(self, step: Compute) -> Any:
        if not step.reduce:
            return self.broadcast(step, self.elementwise(step), range(len(step.axes)))
        if step.reduce == "sum" and step.expr[0] == "neg":  # negate the sum, not each term
            return negative(self.compute(replace(step, expr=step.expr[1])))
        product = self.contraction(step) if step.reduce == "sum" and step.mask is None else None
        return self.reduction(step) if product is None else product

    def elementwise(self, step: Compute, order: Sequence[int] | None = None) -> Any:
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
        self.numbering = Numbering()
        for part in repeated(expr, self.numbering, large=has_mask(expr)):
            result = self.expression(part, leaf)
            self.pending.append(f"{self.name_of(part)} = {written(result)}")
        result = self.expression(expr, leaf)
        self.shared = {}
        return with_point(result)

    def name_of(self, part: Expr) -> str:
        """Return a new name for a part of the current step, which stands for it from now on."""
        self.temporaries += 1
        name = self.shared[self.numbering.of(part)] = self.names.free(f"t{self.temporaries}")
        return name

    def rare(self, expr: Expr, leaf: Callable[[Expr], Any]) -> Any:
        """Write a branch that is rarely computed: what it would repeat at length is named within it."""
        before, named = dict(self.shared), []
        for part in repeated(expr, self.numbering, large=True):
            if self.numbering.of(part) not in self.shared:
                result = self.expression(part, leaf)
                named.append(ast.NamedExpr(ast.Name(self.name_of(part)), node(result)))
        result = self.expression(expr, leaf)
        self.shared = before
        return item(ast.Tuple([*named, node(result)]), -1) if named else result

    def mask(self, values: Any, axes: Sequence[int], order: Sequence[int]) -> Any:
        """Write a mask over the axes of a step in some order; it may lack the last axes."""
        plain = [i for i in range(len(axes)) if axes[i] != BATCH]
        values = values.reshape(values.shape + (1,) * (len(plain) - values.ndim))
        result = self.names.keep(np.ascontiguousarray(values.transpose([plain.index(i) for i in order if i in plain])))
        if any(axes[i] == BATCH for i in order[1:]):
            result = item(result, *[None if axes[i] == BATCH else slice(None) for i in order])
        return result

    def expression(self, expr: Expr, leaf: Callable[[Expr], Any]) -> Any:
        """Write an expression; `leaf` writes its operands and masks."""
        if self.shared and expr[0] not in LEAVES and self.numbering.of(expr) in self.shared:
            return path(self.shared[self.numbering.of(expr)])
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
        rare = expr[2] if name == "guarded" else None
        operands = [(self.rare if branch is rare else self.expression)(branch, leaf) for branch in expr[1:]]
        if name == "where":
            operands[1] = with_point(operands[1])
        spelled = self.library.spelled(name, operands)
        return self.element((name,), operands) if spelled is None else spelled

    def element(self, how: tuple[Any, ...], operands: list[Any]) -> Any:
        """Call an operation that has no array form, or its derivative, on each element."""
        if not self.library.by_element and not BY_NAME[how[0]].written_out:
            raise ArgumentError(f"source(): {how[0]} computes with single floats, as only NumPy can: write its rule "
                                "with the operations of wengert")  # fmt: skip
        if how not in self.elements:
            self.elements[how] = self.names.free("_partial".join(map(str, how)))
        return call(self.elements[how], *operands)

    # -- reductions ---------------------------------------------------------------------------------------------------

    def reduction(self, step: Compute) -> Any:
        rank = len(step.out.shape)
        order = list(range(len(step.axes)))
        if len(step.operands) == 1 and step.operands[0].table is None and step.operands[0].index is None:
            access = step.operands[0]  # in memory order, if the result's axes stay in order
            in_order = sorted(order, key=lambda i: (step.axes[i] != BATCH, -access.strides[i]))
            if [i for i in in_order if i < rank] == list(range(rank)) and all(access.strides[i] for i in order):
                order = in_order
        constant = []
        if step.mask is None:
            constant = [i for i in step.reduced if not self.fills(step, [i], always=False)]
        if constant and step.expr[0] != "where":  # equal terms: multiply
            order = [i for i in order if i not in constant]
            result = self.elementwise(step, order)
            if step.reduce == "sum":
                for count in self.names.shape([step.axes[i] for i in constant]).elts:
                    result = infix(result, "*", count)
            if len(order) == rank:
                return self.broadcast(step, result, order)
        else:
            result = self.elementwise(step, order)
        result = self.broadcast(step, result, order)
        at = tuple(sorted([order.index(i) for i in step.reduced if i in order]))
        where = node(at[0] if len(at) == 1 else at)
        if step.mask is not None:
            mask = self.mask(step.mask, step.axes, order)
            if step.reduce != "sum":
                return self.library.filled(self.library.form(f"masked {step.reduce}"), result, where, mask)
            result = call(self.library.function("where"), mask, result, 0)
        return self.library.method(result, step.reduce, *[where] * (rank > 0))

    def contraction(self, step: Compute) -> Any:
        """Write a sum of products of two operands as a matrix product; None if it is none."""
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
        stack = len(only_x) > 1  # of matrices, times one matrix
        if not stack and (not only_x or (only_y and only_x[0] > only_y[0])):  # the first axis of the result to the left
            x, y, only_x, only_y = y, x, only_y, only_x
        product = self.library.product(read(x, both + only_x + summed), read(y, both + summed + only_y), bool(only_y))
        return self.transposed(product, both + only_x + only_y, out)

    def long_contraction(
        self, step: Compute, x: Access, y: Access, both: list[int], only_x: list[int], only_y: list[int]
    ) -> Any:
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
        return self.transposed(
            product, [i for i in order_x + order_y if i not in summed], list(range(len(step.out.shape)))
        )

    def einsum(self, step: Compute, x: Access, y: Access) -> Any:
        axes, letters = step.axes, "ijklmnopqrst"
        orders = [in_memory(a, [i for i in range(len(axes)) if a.depends_on(i, axes)], axes) for a in (x, y)]
        of_x, of_y, out = ("".join([letters[i] for i in which]) for which in (*orders, range(len(step.out.shape))))
        left, right = (view(a, axes, order, self.names) for a, order in zip((x, y), orders, strict=True))
        return call(self.library.function("einsum"), f"{of_x},{of_y}->{out}", left, right)

    def transposed(self, array: Any, axes: list[int], out: list[int]) -> Any:
        return array if axes == out else self.library.method(array, "transpose", *[axes.index(i) for i in out])


def _into(result: Any, memory: str) -> Any:
    """Let NumPy store a result in `memory`; return None if it cannot."""
    if memory and isinstance(result, ast.BinOp) and isinstance(result.op, ast.MatMult):
        return call("np.matmul", result.left, result.right, out=path(memory))
    has_out = isinstance(result, ast.Call) and getattr(result.func, "attr", "") in ("sum", "max", "min", "einsum")
    if memory and has_out:
        return ast.Call(result.func, result.args, [*result.keywords, ast.keyword("out", path(memory))])
    return None


def _leaves(expr: Expr, always: bool) -> list[Expr]:
    """Return the operands and masks that an expression reads; if `always`, without those of rare branches alone."""
    if not always or all(part[0] != "guarded" for part in parts(expr)):
        return [part for part in parts(expr) if part[0] in LEAVES]
    read = {id(expr): expr}
    for part in reversed(parts(expr)):  # each before what it is computed from
        if id(part) in read and part[0] not in LEAVES:
            read.update({id(x): x for x in (part[3:] if part[0] == "guarded" else part[1:])})
    return [part for part in read.values() if part[0] in LEAVES]


def _end_to_end(step: Assemble) -> bool:
    """Return True if the parts are laid end to end and fill the array."""
    at = 0
    for access, part in step.parts:
        if access.base != at or not access.is_in_order(part) or len(step.out.cell_shape) != 1:
            return False
        at += part.size
    return at == step.out.size
