"""C99: a printer of the lowering, and programs as functions that stand alone."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from math import inf
from typing import Any

import numpy as np

from wengert.compiler.backends.base import Kernel, cut
from wengert.compiler.backends.native.access import Location
from wengert.compiler.backends.native.emitter import Body, Emitter, Memory, Place, Register, Scope
from wengert.compiler.backends.native.lower import Copy, Lowering, arrays_made
from wengert.compiler.backends.native.reserved import is_reserved
from wengert.compiler.backends.native.rows import C_FUNCTIONS, Unsupported
from wengert.compiler.ir import Array
from wengert.errors import ArgumentError

__all__ = ["C", "source"]

ATOM, UNARY, PRODUCT, SUM, COMPARISON, EQUALITY, EITHER, CHOICE = range(9, 1, -1)  # precedences
SIGNS = {"add": ("+", SUM), "sub": ("-", SUM), "mul": ("*", PRODUCT), "div": ("/", PRODUCT)}
COMPARE = {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "==", "ne": "!="}
GUARDS = {how: f"{{0}} {sign} {{1}}" for how, sign in COMPARE.items()} | {"within": "fabs({0}) <= {1}"}
GUARDS["is"] = "({0} == {1} && !signbit({0}) == !signbit({1})) || ({0} != {0} && {1} != {1})"
INLINE = 60  # the longest expression without a name
STACK = 4096  # the most numbers that a function keeps on the stack, 32 KiB: controllers have little
TYPES = {"f": "double", "b": "int", "i": "int64_t"}
LETTERS = "ijklmpqrstuv"
# Names of the generated code, and what it calls besides C_FUNCTIONS.
TAKEN = "n example seed mean work valid copysign fabs floor free malloc rint signbit sqrt"


class C(Emitter):
    """Prints C99, one number at a time: vectorizing is left to the C compiler."""

    unrolled: int = 1
    registers: int = 1

    def __init__(self) -> None:
        super().__init__(1)
        self.examples: str = "n"
        self.seed: Register = Register("seed")
        self.level: dict[str, int] = {}  # the precedence of each compound expression
        self.functions: list[None] = []
        self.letters: Sequence[str] = LETTERS  # the names of loops' integers
        self.helpers: dict[str, list[Any]] = {}  # the lines of outlined functions
        self.constants: dict[bytes, tuple[str, str]] = {}

    @property
    def size(self) -> int:
        """0, so that one function takes everything."""
        return 0

    def text(self, x: Register, needed: int) -> str:
        """Return the text of a value, in parentheses if its precedence is below `needed`."""
        return x.text if self.level.get(x.text, ATOM) >= needed else f"({x.text})"

    def expression(self, text: str, level: int, kind: str = "f") -> Register:
        """Return an expression as a value; a long one gets a name."""
        self.level[text] = level
        return Register(text, kind) if len(text) <= INLINE else self.named(text, kind)

    def named(self, text: str, kind: str = "f", again: bool = False) -> Register:
        register = None if again else self.computed(text)
        if register is None:
            register = Register(self.fresh("t"), kind)
            self.scopes[-1].lines.append(f"const {TYPES[kind]} {register.text} = {text};")
            if not again:
                self.scopes[-1].memo[text] = register
        return register

    def number(self, x: float) -> Register:
        if abs(x) < inf:
            text = repr(x)
        else:
            text = "NAN" if x != x else "INFINITY" if x > 0.0 else "-INFINITY"
        if text[0] == "-":
            self.level[text] = UNARY
        return Register(text)

    def arithmetic(self, sign: str, a: Register, b: Register) -> Register:
        written, level = SIGNS[sign]
        if sign == "add" and a.text == "0.0":  # the start of a sum
            return b
        return self.expression(f"{self.text(a, level)} {written} {self.text(b, level + 1)}", level)

    def fma(self, a: Register, b: Register, c: Register) -> Register:
        return self.arithmetic("add", c, self.arithmetic("mul", a, b))

    def negative(self, x: Register) -> Register:
        return self.expression(f"-{self.text(x, ATOM)}", UNARY)

    def compare(self, how: str, a: Register, b: Register) -> Register:
        level = EQUALITY if how in ("eq", "ne") else COMPARISON
        return self.expression(f"{self.text(a, SUM)} {COMPARE[how]} {self.text(b, SUM)}", level, "b")

    def either(self, a: Register, b: Register) -> Register:
        return self.expression(f"{self.text(a, EQUALITY)} || {self.text(b, EQUALITY)}", EITHER, "b")

    def select(self, condition: Register, a: Register, b: Register) -> Register:
        parts = self.text(condition, EITHER), self.text(a, EITHER), self.text(b, EITHER)
        return self.expression("{} ? {} : {}".format(*parts), CHOICE, a.kind)

    def branch(
        self, condition: Register, then: Callable[[], Register], otherwise: Register | Callable[[], Register]
    ) -> Register:
        result, outer = Register(self.fresh("t")), self.scopes[-1].lines
        outer.append(f"double {result.text}{f' = {otherwise.text}' if isinstance(otherwise, Register) else ''};")
        outer += [f"if ({condition.text}) {{", *self._side(result, then)]
        if not isinstance(otherwise, Register):
            outer += ["} else {", *self._side(result, otherwise)]
        outer.append("}")
        return result

    def _side(self, result: Register, body: Callable[[], Register]) -> list[Any]:
        self.scopes.append(Scope())
        value = body()
        return _indented([*self.scopes.pop().lines, f"{result.text} = {value.text};"])

    def call(self, name: str, *xs: Register) -> Register:
        return self.named(f"{name}({', '.join([x.text for x in xs])})")

    def outlined(self, name: str, body: Callable[[Any, Register], Register], x: Register) -> Register:
        name = f"{name}_of"  # not to clash with C's lgamma
        if name not in self.helpers:
            self.helpers[name] = []  # set first, as it may call itself
            inner = C()
            inner.helpers = self.helpers
            value = body(inner, Register("x"))
            lines = [*inner.scopes[0].lines, f"return {value.text};"]
            self.helpers[name] = [f"static double {name}(double x) {{", *_indented(lines), "}", ""]
        return self.call(name, x)

    def as_float(self, x: Register) -> Register:
        return self.expression(f"(double){self.text(x, UNARY)}", UNARY)

    def shared(self, x: Register) -> Register:
        return x if self.level.get(x.text, ATOM) >= UNARY else self.named(x.text, x.kind)

    def item(self, memory: Memory, place: Place) -> str:
        number, names = place
        terms = [
            name if times == 1 else f"{times} * {name}"
            for name, times in sorted(names.items(), key=lambda term: -term[1])
        ]
        terms += [str(number)] if number or not terms else []
        return f"{memory.name}[{' + '.join(terms).replace('+ -', '- ')}]"

    def load(self, memory: Memory, place: Place, lanes: int = 1, again: bool = False) -> Register:
        text = self.item(memory, place)
        return self.named(text, memory.kind, again=True) if again else Register(text, memory.kind)

    def store(self, memory: Memory, place: Place, value: Register, tag: Any = None) -> None:
        line = f"{self.item(memory, place)} = {value.text};"
        self.scopes[-1].lines.append(line if tag is None else (tag, line))

    def offset(self, index: Register) -> Place:
        return 0, {self.named(index.text, "i").text: 1}

    def repeated(
        self, low: int, high: int | str, step: int, body: Body, carried: Sequence[Register], lanes: int, asks: bool
    ) -> list[Register]:
        name = "example" if high == "n" else self.letters[len(self.scopes) - 1]
        outer = self.scopes[-1].lines
        totals = [Register(self.fresh("s"), x.kind) for x in carried]
        outer += [f"{TYPES[x.kind]} {x.text} = {start.text};" for x, start in zip(totals, carried, strict=True)]
        self.scopes.append(Scope())
        ends = list(body((0, {name: 1}), totals))
        for k, end in enumerate(ends):  # read each carry before it is overwritten
            if any(re.search(rf"\b{x.text}\b", end.text) for x in totals[:k]):
                ends[k] = self.named(end.text, end.kind, again=True)
        lines = self.scopes.pop().lines
        lines += [_set(x.text, end.text) for x, end in zip(totals, ends, strict=True)]
        count = f"{name}++" if step == 1 else f"{name} += {step}"
        going = f" && {totals[0].text} > 0.0" if asks else ""
        outer.append(f"for (int64_t {name} = {low}; {name} < {high}{going}; {count}) {{")
        outer += [*_indented(lines), "}"]
        return totals

    def constant(self, values: Any) -> Memory:
        kind = "i" if values.dtype.kind == "i" else "f"
        numbers = np.ravel(values).astype(np.int64 if kind == "i" else np.float64).tolist()
        key = kind.encode() + repr(numbers).encode()
        if key not in self.constants:
            name = f"c{len(self.constants) + 1}"
            texts = [str(x) if kind == "i" else self.number(x).text for x in numbers]
            self.constants[key] = name, f"static const {TYPES[kind]} {name}[{len(texts)}] = {{{', '.join(texts)}}};"
        return Memory(self.constants[key][0], kind)

    def begin(self) -> None:
        """Do nothing, as everything is one function."""

    def end(self) -> None:
        """Do nothing, as everything is one function."""


def _indented(lines: Sequence[Any]) -> list[Any]:
    return [(line[0], f"    {line[1]}") if type(line) is tuple else f"    {line}" for line in lines]


def _set(name: str, value: str) -> str:
    return f"{name} += {value[len(name) + 3 :]};" if value.startswith(f"{name} + ") else f"{name} = {value};"


def source(specialization: Any, name: str, gradient: bool) -> str:
    """Return the program of a `Specialization` as a C function that needs only the C library.

    Raises:
        ArgumentError: an operation is computed in Python.
    """
    out = specialization.kernel.program.outputs["out"]
    gradient = gradient and not out.cell_shape and bool(specialization.kernel.backward.gradients)
    try:
        return _Source(specialization, name, gradient, out).write()
    except Unsupported as why:
        raise ArgumentError(f"source(): {why}, which C cannot: write its rule with the operations of wengert") from why


class _Source:
    def __init__(self, specialization: Any, name: str, gradient: bool, out: Array) -> None:
        self.specialization, self.out = specialization, out
        # of a sparse derivative:
        self.pattern: Any = None if specialization.structure is None else specialization.structure.pattern
        self.kernel: Kernel = specialization.kernel
        self.backward = self.kernel.backward if gradient else None
        self.several = bool(out.cell_shape) or self.pattern is not None
        self.failed = "1" if self.several else "NAN"
        self.to = C()
        named = {array.name for array in (*self.kernel.inputs, *self.kernel.params)}
        self.to.letters = ["i", *[x * 2 if x in named else x for x in LETTERS[1:]]]
        self.taken = {*TAKEN.split(), *C_FUNCTIONS, *self.to.letters}
        plain = name.strip("<>")
        self.title = self.free(f"{plain}_and_gradients" if gradient else plain, external=True)
        self.storage: dict[int, Location] = {}
        self.rows: dict[int, Location] = {}

    def free(self, name: str, external: bool = False) -> str:
        name = re.sub(r"\W", "_", name, flags=re.ASCII)
        name = unused = f"x{name}" if is_reserved(f"{name}_1", external) or not name[:1].isalpha() else name
        number = 1
        while unused in self.taken or is_reserved(unused, external) or (unused[:1] in "tsc" and unused[1:].isdigit()):
            unused, number = f"{name}_{number}", number + 1
        self.taken.add(unused)
        return unused

    def write(self) -> str:
        to, kernel, back, out = self.to, self.kernel, self.backward, self.out
        steps = [*kernel.program.steps, *(back.steps if back is not None else ())]
        computed = {id(array) for step in steps for array in step.makes}
        parameters, notes = ["int64_t n"] if any(a.batched for a in kernel.inputs) else [], []
        params, head = self.params(), []
        for number, array in enumerate((*kernel.inputs, *params)):
            title = self.free(array.name)
            kind = "i" if array.role == "index" else "f"
            self.storage[id(array)] = Location(Memory(title, kind), 0, array.size if array.batched else 0)
            self.rows[id(array)] = self.storage[id(array)]
            parameters.append(f"const {TYPES[kind]} *{title}")
            notes.append(f"{title}: {array.written_shape}".replace("N", "n"))
            if number in self.specialization.extents:
                last, count = self.specialization.extents[number] - 1, f"{array.size}{' * n' if array.batched else ''}"
                notes[-1] += f", integers from 0 to {last}"
                head.append(f"for (int64_t i = 0; i < {count}; i++)")
                head.append(f"    if ({title}[i] < 0 || {title}[i] > {last}) return {self.failed};")
        for array in kernel.program.of_role("const"):
            self.storage[id(array)] = Location(to.constant(np.asarray(array.value)), 0)
        copies: list[Copy] = []
        filled = [(f"d{x.name}", back.gradients.get(x.name), x) for x in params] if back is not None else []
        filled += [("out", out, out)] if self.several else []
        for name, content, shape in filled:
            title = self.free(name)
            parameters.append(f"double *{title}")
            is_new = content is not None and id(content) in computed and id(content) not in self.storage
            if content is not None and is_new and content.batched == shape.batched:
                self.storage[id(content)] = Location(Memory(title), 0, shape.size if shape.batched else 0)
                to.read.add(id(content))
            else:
                copies.append((content, shape.size, shape, Memory(title), 0))
        notes += [f"{title}: {self.layout()}"] if self.several else []
        local = []
        for array in arrays_made(steps):
            if id(array) not in self.storage:
                pitch = array.size if array.batched else 0
                self.storage[id(array)] = Location(Memory(self.free(array.name)), 0, pitch)
                local.append(array)
        result = self.storage[id(out)].memory.name
        guarded = kernel.program.outputs.get("sides")
        to.read.update([id(out), id(guarded)])
        Lowering(to, self.storage, self.rows, back.seed if back is not None else None).run(steps, (), copies)
        lines = to.live_lines(to.scopes[0].lines)
        more, tail = self.memory([array for array in local if id(array) in to.read], parameters, notes)
        head += more
        if back is not None and back.seed is not None:
            head.append(f"const double seed = 1.0{' / n' if out.batched else ''};")
        lines += self.guards(guarded)
        returned = "0" if self.several else "mean"
        if self.several:
            what = "Fills out, which must not overlap another array"
        elif out.batched:
            what = "The mean over the examples"
            lines += ["double mean = 0.0;", f"for (int64_t i = 0; i < n; i++) mean += {result}[i];", "mean /= n;"]
        else:
            what = "The value"
            lines.append(f"const double mean = {result}[0];")
        if self.specialization.guards:
            returned = "!valid" if self.several else f"valid ? {returned} : NAN"
        body = [*head, *lines, *tail, f"return {returned};"]
        text = "\n".join(body)
        unused = [x for x in (p.split()[-1].strip("*") for p in parameters) if not re.search(rf"\b{x}\b", text)]
        body = [*[f"(void){x};" for x in unused], *body]
        note = [f"{what}{', and its derivatives' if back is not None else ''}; row by row:", *notes, *self.returns()]
        note = ["/*", *[f"   {line}".replace("*/", "* /").replace("/*", "/ *") for line in note], "*/"]
        header = ["#include <math.h>", "#include <stdint.h>", *["#include <stdlib.h>"] * ("malloc(" in text), ""]
        constants = [text for _, text in to.constants.values()]
        constants += [line for lines in to.helpers.values() for line in lines]
        kind = "int" if self.several else "double"
        title = f"{kind} {self.title}({', '.join(parameters) or 'void'}) {{"
        body = [f"    {line}" for line in body]
        return "\n".join([*header, *constants, *self.tables(), *note, title, *body, "}", ""])

    def params(self) -> list[Array]:
        """Return the parameters that are arguments; numbers that the function reads from outside become constants."""
        params, own = self.kernel.params, self.specialization.own
        numbers = self.specialization.buffers().params
        masks = cut(np.ones(len(numbers), bool) if own is None else np.isin(np.arange(len(numbers)), own), params)
        for array, numbers_of, mask in zip(params, cut(numbers, params), masks, strict=True):
            if not mask.any():
                self.storage[id(array)] = Location(self.to.constant(numbers_of), 0)
        return [array for array, mask in zip(params, masks, strict=True) if mask.any()]

    def guards(self, sides: Array | None) -> list[str]:
        """Return lines that compare as the recorded call did."""
        lines, each = [], sides is not None and sides.batched
        for guard, places in zip(self.specialization.guards.guards, self.specialization.guards.sides, strict=True):
            pair = [
                self.to.number(float(x)).text if n < 0 or sides is None
                else self.to.item(self.storage[id(sides)].memory, (n, {"i": sides.size} if each else {}))
                for x, n in zip((guard.left, guard.right), places, strict=True)
            ]  # fmt: skip
            text = GUARDS[guard.how].format(*pair)
            lines.append(f"valid &= {text};" if guard.outcome else f"valid &= !({text});")
        lines = list(dict.fromkeys(lines))
        if each:
            lines = ["for (int64_t i = 0; i < n; i++) {", *_indented(lines), "}"]
        return ["int valid = 1;", *lines] if lines else []

    def returns(self) -> list[str]:
        """Say what the function returns, unless it is just a value."""
        why = ["an integer is out of range"] * bool(self.specialization.extents)
        why += ["a comparison has another outcome than when it was recorded:"] * bool(self.specialization.guards)
        text = f"{'1' if self.several else 'nan'} if {' or '.join(why)}" if why else ""
        if self.several:
            text = "; ".join(filter(None, ["0", "2 without memory" * self.out.batched, text]))
        return [f"Returns {text}", *map("  {}".format, self.specialization.guards.lines)] if text else []

    def layout(self) -> str:
        """Describe what the results are, in the order in which they lie."""
        if self.pattern is None:
            shape = (
                self.specialization.shape
                if self.specialization.structure is None
                else self.specialization.structure.layout
            )
            return str(("n", *shape) if self.out.batched else shape).replace(",)", ")").replace("'", "")
        rows, columns = self.pattern.shape
        what = f"({self.out.size}), the nonzeros of a ({rows}, {columns}) matrix: those of row i are out[k] in column"
        return f"{what} indices[k],\n      for k from indptr[i] to indptr[i + 1] - 1"

    def tables(self) -> list[str]:
        """Return the pattern as constants, which other files may declare as extern."""
        if self.pattern is None:
            return []
        (rows, columns), name, count = self.pattern.shape, self.title, len(self.pattern.indices)
        tables = {"indptr": self.pattern.indptr.tolist(), "indices": self.pattern.indices.tolist()}
        return [
            f"enum {{ {name}_NROWS = {rows}, {name}_NCOLS = {columns}, {name}_NNZ = {count} }};",
            *[f"const int {name}_{key}[{len(x)}] = {{{', '.join(map(str, x))}}};" for key, x in tables.items()],
        ]

    def memory(self, arrays: list[Array], parameters: list[str], notes: list[str]) -> tuple[list[str], list[str]]:
        """Return lines that provide memory, and lines that free it: the stack for a few numbers, an argument for
        many, the heap for a batch.
        """
        if not arrays:
            return [], []
        fixed = sum([a.size for a in arrays if not a.batched])
        each = sum([a.size for a in arrays if a.batched])
        lines, tail = [f"double work[{fixed}];"], []
        if each:
            total = " + ".join([f"{each} * (size_t)n", *[str(fixed)] * bool(fixed)])
            lines = [f"double *const work = (double *)malloc(({total}) * sizeof(double));"]
            lines.append(f"if (work == NULL) return {'2' if self.several else 'NAN'};")
            tail = ["free(work);"]
        elif fixed > STACK:
            lines = []
            parameters.append("double *work")
            notes.append(f"work: ({fixed}), memory for the function to use")
        past = {False: 0, True: 0}
        for array in sorted(arrays, key=lambda array: array.batched):
            place = f" + {past[False]}" * (past[False] > 0) + f" + {past[True]} * n" * (past[True] > 0)
            lines.append(f"double *const {self.storage[id(array)].memory.name} = work{place};")
            past[array.batched] += array.size
        return lines, tail
