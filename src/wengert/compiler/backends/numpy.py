"""A Program as NumPy that one enjoys reading. What runs is what is shown: `kernel.py` runs this same text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from wengert.compiler.backends.buffers import is_view, ranges_once, spent_arrays
from wengert.compiler.backends.indexing import view
from wengert.compiler.backends.spellings import MATMUL, TEXTS, TIGHT, bound, expanded, literal
from wengert.compiler.ir.expression import Tree, has_mask, repeated, times
from wengert.compiler.ir.program import BATCH, Access, Array, Assemble, Compute, Program, contiguous
from wengert.compiler.ir.strides import addresses
from wengert.ops.table import BY_NAME, TABLE

__all__ = ["Text", "write"]

WIDTH = 100  # of a line, before its shape is noted behind it
INLINE = 64  # a step used once is written where it is used, up to this length


@dataclass
class Text:
    """A program written down."""

    lines: list[str]
    constants: dict[str, Any]  # the arrays that it names, by name
    helpers: list[str] = field(default_factory=list)  # definitions that stand in front
    both: bool = False  # whether the reverse sweep is among the lines
    filled: set[str] = field(default_factory=set)  # the memory that a line has left its result in


def write(
    program: Program,
    back: Program | None = None,
    texts: dict[str, tuple[str, int]] | None = None,
    memory: dict[int, str] | None = None,
) -> Text:
    """The lines of a program, and of its reverse sweep if there is one.

    Args:
        program: what is computed.
        back: its reverse sweep.
        texts: how else some rows are written.
        memory: by the id of an array, the name of the memory that its elements are to be left in. Where NumPy cannot
            do that, nothing is done: see what is `filled`.
    """
    return _Writer(program, back, {**TEXTS, **(texts or {})}, memory or {}).run()


class _Writer:
    def __init__(
        self, program: Program, back: Program | None, texts: dict[str, tuple[str, int]], memory: dict[int, str]
    ) -> None:
        self.program, self.back, self.texts, self.memory = program, back, texts, memory
        self.filled: set[str] = set()
        self.leaving: dict[str, str] = {}  # by text: how NumPy leaves it in given memory, up to that name
        self.constants: dict[str, Any] = {}
        self.by_bytes: dict[Any, str] = {}
        self.helpers: dict[str, str] = {}
        self.inlined: dict[int, tuple[str, int]] = {}  # by array: its text, and how tightly that binds
        self.shared: dict[Tree, str] = {}  # of the step that is being written: what occurs in it more than once
        self.pending: list[str] = []  # the lines that compute that
        self.temporaries = 0
        self.length = "1"
        self.uses = self.count_uses()
        self.spent, self.early = spent_arrays(back or Program(), self.uses, self.is_new, self.is_in_place)

    def run(self) -> Text:
        inputs_ = self.program.of_role("input") + self.program.of_role("index")
        if any(array.batched for array in inputs_):
            self.length = f"len({next(array.name for array in inputs_ if array.batched)})"
        for array in self.program.of_role("const"):
            if array.value is not None:
                self.constants[array.name] = array.value
        lines = self.steps(self.program)
        if self.back is not None:
            lines += ["# reverse", *self.steps(self.back)]
        lines = ranges_once(lines, self.length, WIDTH - 12)
        return Text(lines, self.constants, list(self.helpers.values()), self.back is not None, self.filled)

    def is_new(self, step: Compute) -> bool:
        """Whether a step makes an array of its own, and no view of another."""
        return step.reduce in ("", "sum") and not is_view(step) and self.fills(step, range(len(step.out.shape)))

    def is_in_place(self, access: Access, part: Array) -> bool:
        """Whether the places that a part is added at are written without a reshape."""
        return ".reshape(" not in self.target(access, part)[0]

    def count_uses(self) -> dict[int, int]:
        uses: dict[int, int] = {}
        for program in filter(None, (self.program, self.back)):
            for step in program.steps:
                for array in step.reads:
                    uses[id(array)] = uses.get(id(array), 0) + (1 if isinstance(step, Compute) else 2)
            for array in (*program.outputs.values(), *program.gradients.values()):
                uses[id(array)] = uses.get(id(array), 0) + 2
        return uses

    def keep(self, values: Any) -> str:
        """A name for an array of constants; equal ones share it."""
        key = (values.shape, values.dtype.str, values.tobytes())
        if key not in self.by_bytes:
            stem = "mask" if values.dtype == bool else "index"
            number = sum(name.startswith(stem) for name in self.constants) + 1
            self.by_bytes[key] = f"{stem}{number}"
            self.constants[f"{stem}{number}"] = values
        return self.by_bytes[key]

    def steps(self, program: Program) -> list[str]:
        lines: list[str] = []
        readers: dict[int, Compute] = {}
        for step in program.steps:
            if isinstance(step, Compute):
                readers.update((id(x.array), step) for x in step.operands)
        for step in program.steps:
            if isinstance(step, Assemble):
                lines += self.assemble(step)
                continue
            text, binding = self.compute(step)
            lines += self.pending
            self.pending = []
            if text.isidentifier():  # a copy: another name for the same
                step.out.name = text
                continue
            reader = readers.get(id(step.out))
            if (
                reader is not None
                and self.uses[id(step.out)] == 1
                and id(step.out) not in self.early
                and len(text) <= INLINE
                and self.takes(reader, step.out)
            ):
                self.inlined[id(step.out)] = text, binding
            elif self.uses.get(id(step.out)):
                memory = self.memory.get(id(step.out)) if step.out.shape else None
                if memory and text in self.leaving:
                    self.filled.add(memory)
                    text = f"{self.leaving[text]}{memory})"
                lines.append(self.line(step.out, text))
        return lines

    def takes(self, reader: Compute, array: Array) -> bool:
        """Whether a step reads an array once, so that the array's own expression can stand there."""
        places = [k for k, x in enumerate(reader.operands) if x.array is array]
        if reader.reduce or len(places) != 1 or not reader.operands[places[0]].is_whole(reader.axes):
            return False
        return times(expanded(reader.tree, self.texts), places[0]) == 1

    def line(self, out: Array, text: str) -> str:
        shape = ", ".join("N" if n == BATCH else str(n) for n in out.shape)
        return f"{out.name} = {text}".ljust(WIDTH - 12) + f"  # ({shape})"

    def shape(self, axes: Sequence[int]) -> str:
        lengths = [self.length if n == BATCH else str(n) for n in axes]
        return f"({', '.join(lengths)}{',' if len(lengths) == 1 else ''})"

    # -- one step -----------------------------------------------------------------------------------------------------

    def compute(self, step: Compute) -> tuple[str, int]:
        if not step.reduce:
            text, binding = self.elementwise(step)
            if not self.fills(step, range(len(step.axes))) and step.axes:
                return f"np.broadcast_to({text}, {self.shape(step.axes)})", 5
            return text, binding
        if step.reduce == "sum" and step.tree[0] == "neg":  # the sign of the sum, not of each of its terms
            text, binding = self.compute(replace(step, tree=step.tree[1]))
            return f"-{bound(text, binding, 3)}", 3
        if step.reduce == "sum" and step.mask is None:
            product = self.contraction(step)
            if product is not None:
                return product
        return self.reduction(step)

    def fills(self, step: Compute, axes: Sequence[int]) -> bool:
        """Whether every one of these axes is an axis of some operand, or of a mask in the tree."""
        if has_mask(step.tree) and BATCH not in [step.axes[i] for i in axes]:
            return True
        return all(any(x.depends_on(i, step.axes) for x in step.operands) for i in axes)

    def elementwise(self, step: Compute, order: Sequence[int] | None = None) -> tuple[str, int]:
        order = range(len(step.axes)) if order is None else order

        def leaf(k: int) -> tuple[str, int]:
            access = step.operands[k]
            if id(access.array) in self.inlined and access.is_whole(step.axes):
                return self.inlined[id(access.array)]
            return view(access, step.axes, order, self.keep), 5

        def mask(values: Any) -> str:
            lengths = [step.axes[i] for i in range(len(step.axes)) if step.axes[i] != BATCH]
            values = values.reshape(values.shape + (1,) * (len(lengths) - values.ndim))
            plain = [i for i in range(len(step.axes)) if step.axes[i] != BATCH]
            name = self.keep(values.transpose([plain.index(i) for i in order if i in plain]))
            if any(step.axes[i] == BATCH for i in order[1:]):
                name += f"[{', '.join('None' if step.axes[i] == BATCH else ':' for i in order)}]"
            return name

        tree = expanded(step.tree, self.texts)
        self.shared = {}
        if not has_mask(tree):
            for part in repeated(tree):
                text, _ = self.tree(part, leaf, mask)
                self.temporaries += 1
                self.pending.append(f"t{self.temporaries} = {text}")
                self.shared[part] = f"t{self.temporaries}"
        made = self.tree(tree, leaf, mask)
        self.shared = {}
        return made

    def reduction(self, step: Compute) -> tuple[str, int]:
        kept = len(step.out.shape)
        order = list(range(len(step.axes)))
        if len(step.operands) == 1 and step.operands[0].table is None and step.operands[0].index is None:
            access = step.operands[0]  # in the order of memory, where that leaves the result in order
            turned = sorted(order, key=lambda i: (step.axes[i] != BATCH, -access.strides[i]))
            if [i for i in turned if i < kept] == list(range(kept)) and all(access.strides[i] for i in order):
                order = turned
        constant = [i for i in step.reduced if not self.fills(step, [i])] if step.mask is None else []
        if constant and step.tree[0] != "where":  # the same for each: as often as there are
            order = [i for i in order if i not in constant]
            text, binding = self.elementwise(step, order)
            if step.reduce == "sum":
                lengths = [self.length if step.axes[i] == BATCH else str(step.axes[i]) for i in constant]
                text, binding = f"{bound(text, binding, 2)} * {' * '.join(lengths)}", 2
            if len(order) == kept:
                if not self.fills(step, order):
                    return f"np.broadcast_to({text}, {self.shape(step.out.shape)})", 5
                return text, binding
        else:
            text, binding = self.elementwise(step, order)
        if not self.fills(step, order):
            text, binding = f"np.broadcast_to({text}, {self.shape([step.axes[i] for i in order])})", 5
        at = [order.index(i) for i in step.reduced if i in order]
        where = f"{at[0]}" if len(at) == 1 else f"({', '.join(map(str, sorted(at)))})"
        everything = kept == 0
        if step.mask is not None:
            plain = [i for i in range(len(step.axes)) if step.axes[i] != BATCH]
            name = self.keep(np.ascontiguousarray(step.mask.transpose([plain.index(i) for i in order if i in plain])))
            if step.reduce == "sum":
                text, binding = f"np.where({name}, {text}, 0)", 5
            else:
                start = "-np.inf" if step.reduce == "max" else "np.inf"
                form = self.texts["masked extreme"][0]
                return form.format(bound(text, binding, 5), step.reduce, where, name, start), 5
        text = f"{bound(text, binding, 5)}.{step.reduce}({'' if everything else where})"
        self.leaving[text] = f"{text[:-1]}, out="
        return text, 5

    def contraction(self, step: Compute) -> tuple[str, int] | None:
        """A sum of products of two operands, as NumPy's own product of matrices."""
        tree, axes = step.tree, step.axes
        if tree[0] != "mul" or tree[1][0] != "in" or tree[2][0] != "in" or tree[1] == tree[2]:
            return None
        x, y = step.operands[tree[1][1]], step.operands[tree[2][1]]
        if x.index is not None or y.index is not None:
            return None
        of_x, of_y = ({i for i in range(len(axes)) if a.depends_on(i, axes)} for a in (x, y))
        summed = list(step.reduced)
        if not all(i in of_x and i in of_y for i in summed):
            return None
        out = list(range(len(step.out.shape)))
        both = [i for i in out if i in of_x and i in of_y]
        only_x, only_y = (
            [i for i in out if i in of_x and i not in of_y],
            [i for i in out if i in of_y and i not in of_x],
        )
        if len(both) + len(only_x) + len(only_y) < len(out):
            return None

        def read(access: Access, order: list[int]) -> str:
            return view(access, axes, order, self.keep)

        if len(summed) > 1:
            return self.long_contraction(step, x, y, both, only_x, only_y)
        if not only_x and not only_y:
            if not both:
                return f"{read(x, summed)} @ {read(y, summed)}", MATMUL
            return f"({read(x, out + summed)} * {read(y, out + summed)}).sum({len(out)})", 5
        if len(only_x) < len(only_y):
            x, y, only_x, only_y = y, x, only_y, only_x
        if len(only_y) > 1 or (both and not (len(only_x) == 1 and only_y)):
            return self.einsum(step, x, y)
        stack = len(only_x) > 1  # of matrices, times one
        if not stack and (not only_x or (only_y and only_x[0] > only_y[0])):  # what stands first in the result: left
            x, y, only_x, only_y = y, x, only_y, only_x
        left, right = read(x, both + only_x + summed), read(y, both + summed + only_y)
        self.leaving[f"{left} @ {right}"] = f"np.matmul({left}, {right}, out="
        return _turned(f"{left} @ {right}", MATMUL, both + only_x + only_y, out)

    def long_contraction(
        self, step: Compute, x: Access, y: Access, both: list[int], only_x: list[int], only_y: list[int]
    ) -> tuple[str, int]:
        """The same over several axes at once."""
        axes, summed = step.axes, list(step.reduced)
        if both or x.table is not None or y.table is not None:
            return self.einsum(step, x, y)
        order_x = sorted(only_x + summed, key=lambda i: (axes[i] != BATCH, -x.strides[i]))
        if not only_x and not only_y:
            left, right = (view(a, axes, order_x, self.keep) for a in (x, y))
            return f"({left} * {right}).sum()", 5
        order_y = sorted(only_y + summed, key=lambda i: (axes[i] != BATCH, -y.strides[i]))
        left, right = view(x, axes, order_x, self.keep), view(y, axes, order_y, self.keep)
        at_x, at_y = [order_x.index(i) for i in summed], [order_y.index(i) for i in summed]
        made = [i for i in order_x + order_y if i not in summed]
        return _turned(f"np.tensordot({left}, {right}, ({at_x}, {at_y}))", 5, made, list(range(len(step.out.shape))))

    def einsum(self, step: Compute, x: Access, y: Access) -> tuple[str, int]:
        axes = step.axes
        letters = "ijklmnopqrst"
        of_x, of_y = ([i for i in range(len(axes)) if a.depends_on(i, axes)] for a in (x, y))
        of_x.sort(key=lambda i: (axes[i] != BATCH, -x.strides[i]))
        of_y.sort(key=lambda i: (axes[i] != BATCH, -y.strides[i]))
        names = ",".join("".join(letters[i] for i in which) for which in (of_x, of_y))
        result = "".join(letters[i] for i in range(len(step.out.shape)))
        left, right = view(x, axes, of_x, self.keep), view(y, axes, of_y, self.keep)
        text = f'np.einsum("{names}->{result}", {left}, {right})'
        self.leaving[text] = f"{text[:-1]}, out="
        return text, 5

    def assemble(self, step: Assemble) -> list[str]:
        """Zeros, or the first part if it covers everything, and the others added in their places."""
        out, parts = step.out, list(step.parts)
        if self.end_to_end(step):
            return [self.line(out, self.concatenation(step))]
        if id(parts[0][1]) in self.spent:
            parts.pop(0)
            lines = []
        elif parts[0][0].is_whole(parts[0][1].shape) and parts[0][1].shape == out.shape:
            lines = [self.line(out, f"{parts.pop(0)[1].name}.copy()")]
        else:
            lines = [self.line(out, f"np.zeros({self.shape(out.shape)})")]
        for access, part in parts:
            target, once = self.target(access, part)
            lines.append(f"{target} += {part.name}" if once else f"np.add.at({_arguments(target)}, {part.name})")
        return lines

    def end_to_end(self, step: Assemble) -> bool:
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

    def concatenation(self, step: Assemble) -> str:
        """The parts, each as one row of its elements, end to end."""
        pieces = []
        for _, part in step.parts:
            text = part.name
            if part.batched and len(part.cell_shape) != 1:
                text += f".reshape({self.length}, {part.size})"
            elif not part.batched:
                if len(part.shape) != 1:
                    text = f"{text}.reshape(-1)" if part.shape else f"np.atleast_1d({text})"
                if step.out.batched:
                    text = f"np.broadcast_to({text}, ({self.length}, {part.size}))"
            pieces.append(text)
        return f"np.concatenate([{', '.join(pieces)}]{', axis=1' if step.out.batched else ''})"

    def target(self, access: Access, part: Array) -> tuple[str, bool]:
        """The text of the places that a part is added at, and whether each is named only once."""
        axes, out = part.shape, access.array
        plain = [i for i in range(len(axes)) if axes[i] != BATCH]
        strides = [(access.strides[i], axes[i]) for i in plain]
        if access.index is not None:
            strides.append((access.index.step, access.index.extent))
            reads_batch = not access.index.array.batched or out.batched
            return view(access, axes, range(len(axes)), self.keep), _apart(strides) and reads_batch
        order = sorted(range(len(axes)), key=lambda i: (axes[i] != BATCH, -abs(access.strides[i])))
        if access.table is None and order == list(range(len(axes))) and _apart(strides):
            text = view(access, axes, order, self.keep)
            if ".transpose" not in text and "index" not in text:
                return text if text.endswith("]") else f"{text}[...]", True
        table = access.table
        if table is None:
            table = addresses(access.base, tuple([s for s, _ in strides]), tuple([n for _, n in strides]))
        text = view(Access(out, 0, access.strides, table), axes, range(len(axes)), self.keep)
        return text, len(np.unique(table)) == table.size

    # -- one expression -----------------------------------------------------------------------------------------------

    def tree(self, tree: Tree, leaf: Callable[[int], tuple[str, int]], mask: Callable[[Any], str]) -> tuple[str, int]:
        if self.shared and tree in self.shared:
            return self.shared[tree], 5
        name = tree[0]
        if name == "in":
            return leaf(tree[1])
        if name == "const":
            return literal(tree[1])
        if name == "mask":
            return mask(tree[1]), 5
        if name == "mul":
            for a, b in (tree[1:], tree[:0:-1]):
                if b[0] == "where" and b[2:] == (("const", 1.0), ("const", 0.0)):  # a bool counts as 1 or 0
                    condition, _ = self.tree(b[1], leaf, mask)
                    text, binding = self.tree(a, leaf, mask)
                    return f"{bound(text, binding, 2)} * ({condition})", 2
                if b[0] == "reciprocal":
                    return self.tree(("div", a, b[1]), leaf, mask)
        if name not in self.texts:
            return self.helper(tree, leaf, mask)
        form, binding = self.texts[name]
        parts = [self.tree(branch, leaf, mask) for branch in tree[1:]]
        if binding == -1:
            return parts[0]
        needs = TIGHT.get(name, (0,) * len(parts))
        return form.format(*[bound(*part, need) for part, need in zip(parts, needs, strict=False)]), binding

    def helper(self, tree: Tree, leaf: Any, mask: Any) -> tuple[str, int]:
        """A row that NumPy has no function for: the row itself, called on each element."""
        name = tree[0]
        if name == "partial":
            row, k, branches = TABLE[int(tree[1][1])], int(tree[2][1]), tree[3:]
            called = f"{row.name}_partial{k}"

            def function(*xs: float, row: Any = row, k: int = k) -> float:
                slopes = row.partials(*xs)
                return float(slopes[k] if isinstance(slopes, (tuple, list)) else slopes)

            self.helpers[called] = (
                f"# {called} is the partial derivative {k} of your own operation {row.name}, element by element"
            )
        else:
            row, branches = BY_NAME[name], tree[1:]
            called, function = row.name, row.value
            self.helpers[called] = f"{called} = np.vectorize(wengert.{row.name}, otypes=[float])"
        self.constants[called] = np.vectorize(function, otypes=[float])
        parts = [self.tree(branch, leaf, mask)[0] for branch in branches]
        return f"{called}({', '.join(parts)})", 5


def _turned(text: str, binding: int, made: list[int], out: list[int]) -> tuple[str, int]:
    """The text of an array with its axes in the order of the result."""
    if made == out:
        return text, binding
    return f"{bound(text, binding, 5)}.transpose({', '.join(str(made.index(i)) for i in out)})", 5


def _apart(strides: list[tuple[int, int]]) -> bool:
    """Whether steps of these sizes and lengths never come to one place twice."""
    reach = 0
    for step, length in sorted((abs(step), length) for step, length in strides if length > 1):
        if step <= reach:
            return False
        reach += step * (length - 1)
    return True


def _arguments(target: str) -> str:
    """``a[places]`` as the first two arguments of ``np.add.at``."""
    at = target.rindex("[", 0, _opening(target) + 1)
    places = target[at + 1 : -1]
    return f"{target[:at]}, {f'np.s_[{places}]' if ',' in places or ':' in places else places}"


def _opening(target: str) -> int:
    """Where the bracket that closes at the end of a text was opened."""
    depth = 0
    for place in range(len(target) - 1, -1, -1):
        depth += (target[place] == "]") - (target[place] == "[")
        if not depth:
            return place
    raise AssertionError(target)
