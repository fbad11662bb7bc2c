"""Prints the lowering as LLVM IR, with vector functions that not every C library has."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from wengert.compiler.backends.native.emitter import BitEmitter, Body, Memory, Place, Register, Scope
from wengert.compiler.backends.native.mathematics import VECTOR_FUNCTIONS

__all__ = ["LLVM"]

TYPES = {"f": "double", "b": "i1", "i": "i64", "p": "ptr"}
SIGNATURE = (
    "i64 %n, double %seed, ptr noalias readonly %inputs, ptr noalias readonly %params, ptr noalias %grads, "
    "ptr noalias readonly %outputs, ptr noalias %work"
)
ARGUMENTS = "i64 %n, double %seed, ptr %inputs, ptr %params, ptr %grads, ptr %outputs, ptr %work"
COMPARE = {"lt": "olt", "le": "ole", "gt": "ogt", "ge": "oge", "eq": "oeq", "ne": "une"}
INTRINSICS = {"sqrt": 1, "fabs": 1, "floor": 1, "rint": 1, "copysign": 2}
CHECK = """define internal i64 @in_bounds(i64 %place, i64 %lanes, i64 %extent, ptr %work) noinline {
 %end = add i64 %place, %lanes
 %a = icmp sge i64 %place, 0
 %b = icmp sle i64 %end, %extent
 %good = and i1 %a, %b
 br i1 %good, label %in, label %out
out:
 store double 1.0, ptr %work
 ret i64 0
in:
 ret i64 %place
}"""


class LLVM(BitEmitter):
    """Prints LLVM IR.

    Args:
        width: the number of lanes of the machine's vectors.
        checks: whether each access is checked against the extent of its array: one out of bounds reads the first cell
            instead, and sets the first number of `work` to 1.
    """

    def __init__(self, width: int, checks: bool = False) -> None:
        super().__init__(width)
        self.checks = checks
        self.label: str = "entry"
        self.examples: str = "%padded"
        self.seed: Register = Register("%seed")
        self.functions: list[tuple[str, list[Any]]] = []
        self.globals: dict[bytes, tuple[str, str]] = {}
        self.declared: dict[str, str] = {}
        self.hints: bool = False  # whether a branch has a weight
        self.needed: dict[str, tuple[int, Callable[[Any, Register], Register]]] = {}  # functions: lanes and body

    # -- values -------------------------------------------------------------------------------------------------------

    def emit(self, text: str, kind: str = "f", lanes: int = 1, depth: int = -1, again: bool = False) -> Register:
        """Emit an instruction in the innermost loop or an outer one, or return the value of an equal one."""
        scopes = self.scopes if depth < 0 else self.scopes[: depth + 1]
        if not again:
            for scope in reversed(scopes):
                register = scope.memo.get(text)
                if register is not None:
                    return register
        name = self.fresh("%t")
        result = Register(name, kind, lanes)
        scopes[-1].lines.append(f" {name} = {text}")
        if not again:
            scopes[-1].memo[text] = result
        return result

    def type(self, kind: str, lanes: int) -> str:
        return TYPES[kind] if lanes == 1 else f"<{lanes} x {TYPES[kind]}>"

    def wide(self, x: Register, lanes: int) -> str:
        if x.lanes == lanes:
            return x.text
        ty = TYPES[x.kind]
        if x.text[0] != "%":
            return f"<{', '.join([f'{ty} {x.text}'] * lanes)}>"
        first = self.emit(f"insertelement <{lanes} x {ty}> poison, {ty} {x.text}, i64 0", x.kind, lanes)
        zeros = f"<{lanes} x i32> zeroinitializer"
        return self.emit(
            f"shufflevector <{lanes} x {ty}> {first.text}, <{lanes} x {ty}> poison, {zeros}", x.kind, lanes
        ).text

    def spread(self, x: Register, lanes: int) -> Register:
        return Register(self.wide(x, lanes), x.kind, lanes)

    def same_lanes(self, *xs: Register) -> tuple[int, list[str]]:
        lanes = max([x.lanes for x in xs])
        return lanes, [x.text if x.lanes == lanes else self.wide(x, lanes) for x in xs]

    def number(self, x: float) -> Register:
        return Register(f"0x{struct.unpack('<Q', struct.pack('<d', x))[0]:016X}")

    def integer(self, x: int) -> Register:
        return Register(str(x), "i")

    def arithmetic(self, sign: str, a: Register, b: Register) -> Register:
        lanes, (x, y) = self.same_lanes(a, b)
        return self.emit(f"f{sign} {self.type('f', lanes)} {x}, {y}", "f", lanes)

    def bits(self, how: str, a: Register, b: Register) -> Register:
        lanes, (x, y) = self.same_lanes(a, b)
        return self.emit(f"{how} {self.type('i', lanes)} {x}, {y}", "i", lanes)

    def reread(self, x: Register, kind: str) -> Register:
        ty = self.type(x.kind, x.lanes)
        return self.emit(f"bitcast {ty} {x.text} to {self.type(kind, x.lanes)}", kind, x.lanes)

    def as_float(self, x: Register) -> Register:
        return self.emit(f"sitofp {self.type('i', x.lanes)} {x.text} to {self.type('f', x.lanes)}", "f", x.lanes)

    def intrinsic(self, name: str, *xs: Register) -> Register:
        lanes, texts = self.same_lanes(*xs)
        ty = self.type("f", lanes)
        full = f"@llvm.{name}.{'f64' if lanes == 1 else f'v{lanes}f64'}"
        self.declared[full] = f"declare {ty} {full}({', '.join([ty] * len(xs))})"
        return self.emit(f"call {ty} {full}({', '.join([f'{ty} {x}' for x in texts])})", "f", lanes)

    def fma(self, a: Register, b: Register, c: Register) -> Register:
        return self.intrinsic("fmuladd", a, b, c)

    def negative(self, x: Register) -> Register:
        return self.emit(f"fneg {self.type('f', x.lanes)} {x.text}", "f", x.lanes)

    def compare(self, how: str, a: Register, b: Register) -> Register:
        lanes, (x, y) = self.same_lanes(a, b)
        return self.emit(f"fcmp {COMPARE[how]} {self.type('f', lanes)} {x}, {y}", "b", lanes)

    def either(self, a: Register, b: Register) -> Register:
        lanes, (x, y) = self.same_lanes(a, b)
        return self.emit(f"or {self.type('b', lanes)} {x}, {y}", "b", lanes)

    def select(self, condition: Register, a: Register, b: Register) -> Register:
        lanes = max(condition.lanes, a.lanes, b.lanes)
        ty = self.type(a.kind, lanes)
        c = condition.text if condition.lanes == 1 else self.wide(condition, lanes)
        of = f"{self.type('b', condition.lanes)} {c}"
        return self.emit(f"select {of}, {ty} {self.wide(a, lanes)}, {ty} {self.wide(b, lanes)}", a.kind, lanes)

    def branch(
        self, condition: Register, then: Callable[[], Register], otherwise: Register | Callable[[], Register]
    ) -> Register:
        lanes = condition.lanes
        test, bits = self._in_any_lane(condition)
        if isinstance(otherwise, Register):
            chosen: Register = otherwise
            return self._side(test, lambda: self.select(condition, then(), chosen) if lanes > 1 else then(), chosen)
        how = f"icmp ne i{lanes} {bits}, -1" if lanes > 1 else f"xor i1 {test}, true"
        x = self._side(test, then)
        return self.select(condition, x, self._side(self.emit(how, "b").text, otherwise))

    def _in_any_lane(self, x: Register) -> tuple[str, str]:
        """Return whether a bool is true in any lane, and the lanes as bits."""
        if x.lanes == 1:
            return x.text, ""
        bits = self.emit(f"bitcast <{x.lanes} x i1> {x.text} to i{x.lanes}", "i").text
        return self.emit(f"icmp ne i{x.lanes} {bits}, 0", "b").text, bits

    def _side(self, test: str, body: Callable[[], Register], other: Register | None = None) -> Register:
        """Compute a value where a bool is true, rarely; elsewhere take `other`, or anything."""
        number, entry = self.fresh(""), self.label
        self.scopes.append(Scope())
        self.label = f"T{number}"
        value = body()
        lanes = max(value.lanes, 1 if other is None else other.lanes)
        text, end = self.wide(value, lanes), self.label
        lines = self.scopes.pop().lines
        self.label, rest = f"J{number}", "poison" if other is None else self.wide(other, lanes)
        self.hints |= other is not None
        hint = ", !prof !0" if other is not None else ""
        outer = self.scopes[-1].lines
        outer += [f" br i1 {test}, label %T{number}, label %J{number}{hint}", f"T{number}:", *lines]
        outer += [f" br label %J{number}", f"J{number}:"]
        return self.emit(
            f"phi {self.type('f', lanes)} [ {text}, %{end} ], [ {rest}, %{entry} ]", "f", lanes, again=True
        )

    def call(self, name: str, *xs: Register) -> Register:
        if name in INTRINSICS:
            return self.intrinsic(name, *xs)
        lanes, texts = self.same_lanes(*xs)
        if lanes == 1:
            self.declared[name] = f"declare double @{name}({', '.join(['double'] * len(xs))})"
            return self.emit(f"call double @{name}({', '.join([f'double {x}' for x in texts])})")
        if name not in VECTOR_FUNCTIONS:
            return self.packed([self.call(name, *[self.lane(x, k) for x in xs]) for k in range(lanes)])
        return self.outlined(name, VECTOR_FUNCTIONS[name], xs[0])

    def outlined(self, name: str, body: Callable[[Any, Register], Register], x: Register) -> Register:
        lanes, width = x.lanes, self.width
        if lanes == 1:
            width = 1
        elif lanes < width:
            x = self.shuffle(x, [k % lanes for k in range(width)])
        name = f"{name}.vector" if width > 1 else f"{name}.scalar"
        self.needed[name] = width, body
        ty = self.type("f", width)
        result = self.emit(f"call {ty} @{name}({ty} {x.text})", "f", width)
        return result if lanes == width else self.shuffle(result, list(range(lanes)))

    # -- lanes --------------------------------------------------------------------------------------------------------

    def shuffle(self, x: Register, order: Sequence[int], y: Register | None = None) -> Register:
        ty, places = self.type(x.kind, x.lanes), ", ".join([f"i32 {k}" for k in order])
        other = "poison" if y is None else y.text
        lanes = len(order)
        return self.emit(f"shufflevector {ty} {x.text}, {ty} {other}, <{lanes} x i32> <{places}>", x.kind, lanes)

    def lane(self, x: Register, lane: int) -> Register:
        if x.lanes == 1:
            return x
        return self.emit(f"extractelement {self.type(x.kind, x.lanes)} {x.text}, i64 {lane}", x.kind)

    def packed(self, xs: Sequence[Register]) -> Register:
        kind, lanes = xs[0].kind, len(xs)
        if lanes == 1:
            return xs[0]
        ty, vector = self.type(kind, lanes), Register("poison", kind, lanes)
        for k, x in enumerate(xs):
            vector = self.emit(f"insertelement {ty} {vector.text}, {TYPES[kind]} {x.text}, i64 {k}", kind, lanes)
        return vector

    def folded(self, x: Register, combined: Callable[[Register, Register], Register]) -> Register:
        while x.lanes > 2:
            half = x.lanes // 2
            x = combined(self.shuffle(x, range(half)), self.shuffle(x, range(half, x.lanes)))
        return combined(self.lane(x, 0), self.lane(x, 1)) if x.lanes == 2 else x

    def sums(self, xs: Sequence[Register]) -> Register:
        lanes = xs[0].lanes
        while len(xs) > 1:  # add neighbours, two vectors at a time
            even, odd = list(range(0, 2 * lanes, 2)), list(range(1, 2 * lanes, 2))
            xs = [
                self.arithmetic("add", self.shuffle(x, even, y), self.shuffle(x, odd, y))
                for x, y in zip(xs[::2], xs[1::2], strict=True)
            ]
        return xs[0]

    def transposed(self, xs: Sequence[Register]) -> Sequence[Register]:
        lanes, xs, bit = len(xs), list(xs), 1
        while bit < lanes:  # swap one bit of a value's number with that of its lane
            for k in range(lanes):
                if not k & bit:
                    x, y = xs[k], xs[k | bit]
                    low = [lanes + (n ^ bit) if n & bit else n for n in range(lanes)]
                    high = [lanes + n if n & bit else n | bit for n in range(lanes)]
                    xs[k], xs[k | bit] = self.shuffle(x, low, y), self.shuffle(x, high, y)
            bit *= 2
        return xs

    # -- memory -------------------------------------------------------------------------------------------------------

    def pointer(self, memory: Memory, place: Place) -> str:
        """Return the address of a place, computed in the outermost loop that knows its parts."""
        ty, text = TYPES[memory.kind], memory.name
        if text[:2] in ("%x", "%y"):  # load the address from an array of addresses
            of = "%inputs" if text[1] == "x" else "%outputs"
            where = self.emit(f"getelementptr ptr, ptr {of}, i64 {text[2:]}", "p", depth=0)
            text = self.emit(f"load ptr, ptr {where.text}", "p", depth=0).text
        number, names = place
        for name, factor in sorted(names.items(), key=lambda term: self.depth[term[0]]) if names else ():
            depth = self.depth[name]
            times = name if factor == 1 else self.emit(f"mul i64 {name}, {factor}", "i", depth=depth).text
            text = self.emit(f"getelementptr {ty}, ptr {text}, i64 {times}", "p", depth=depth).text
        return self.emit(f"getelementptr {ty}, ptr {text}, i64 {number}", "p").text if number else text

    def checked(self, place: Place, lanes: int, extent: int) -> Place:
        if not self.checks:
            return place
        number, names = place
        total = str(number)
        for name, factor in names.items():
            times = self.emit(f"mul i64 {name}, {factor}", "i").text
            total = self.emit(f"add i64 {total}, {times}", "i").text
        asked = f"i64 {total}, i64 {lanes}, i64 {extent}, ptr %work"
        return self.offset(self.emit(f"call i64 @in_bounds({asked})", "i"))

    def load(self, memory: Memory, place: Place, lanes: int = 1, again: bool = False) -> Register:
        pointer = self.pointer(memory, place)
        return self.emit(f"load {self.type(memory.kind, lanes)}, ptr {pointer}, align 8", memory.kind, lanes, -1, again)

    def store(self, memory: Memory, place: Place, value: Register, tag: Any = None) -> None:
        store = f" store {self.type(value.kind, value.lanes)} {value.text}, ptr "
        if tag is None:
            self.scopes[-1].lines.append(f"{store}{self.pointer(memory, place)}, align 8")
            return
        name = self.fresh("%t")  # a pointer of its own, which is dropped with the store
        here = f"getelementptr {TYPES[memory.kind]}, ptr {self.pointer(memory, (0, place[1]))}, i64 {place[0]}"
        self.scopes[-1].lines.append((tag, f" {name} = {here}\n{store}{name}, align 8"))

    def offset(self, index: Register) -> Place:
        if index.text[0] != "%":
            return int(index.text), {}
        self.depth.setdefault(index.text, len(self.scopes) - 1)
        return 0, {index.text: 1}

    def row(self, first: Place, lane: int) -> Place:
        if self.width == 1:
            return first
        (name,) = first[1]
        text = self.emit(f"add i64 {name}, {lane}", "i").text if lane else name
        last = self.emit("sub i64 %n, 1", "i", depth=0).text
        inside = self.emit(f"icmp slt i64 {text}, {last}", "b").text
        return self.offset(self.emit(f"select i1 {inside}, i64 {text}, i64 {last}", "i"))

    def where_real(self, first: Place, x: Register, other: Register) -> Register:
        if self.width == 1:
            return x
        lanes, ty = self.width, self.type("i", self.width)
        start = Register(next(iter(first[1])), "i")
        here = self.emit(
            f"add {ty} {self.wide(start, lanes)}, <{', '.join([f'i64 {k}' for k in range(lanes)])}>", "i", lanes
        )
        real = self.emit(f"icmp slt {ty} {here.text}, {self.wide(Register('%n', 'i'), lanes)}", "b", lanes)
        return self.select(real, x, other)

    def constant(self, values: Any) -> Memory:
        array = np.ascontiguousarray(values, np.int64 if values.dtype.kind == "i" else np.float64)
        kind, data = array.dtype.kind, array.tobytes()
        key = kind.encode() + data
        if key not in self.globals:
            name = f"@c{len(self.globals)}"
            text = "\\" + data.hex("\\") if data else ""
            self.globals[key] = name, f'{name} = internal constant [{len(data)} x i8] c"{text}", align 64'
        return Memory(self.globals[key][0], kind)

    def each_example(self, body: Callable[[tuple[Place, Place, Place]], None]) -> None:
        def iteration(whole: Place, _: list[Register]) -> Sequence[Register]:
            (name,) = whole[1]
            block = self.emit(f"and i64 {name}, {-self.width}", "i")
            lane = self.emit(f"and i64 {name}, {self.width - 1}", "i")
            body((whole, self.offset(block), self.offset(lane)))
            return ()

        self.loop(0, "%n", 1, iteration)

    # -- loops and functions ------------------------------------------------------------------------------------------

    def repeated(
        self, low: int, high: int | str, step: int, body: Body, carried: Sequence[Register], lanes: int, asks: bool
    ) -> list[Register]:
        lanes = lanes or self.width
        first = [self.wide(x, lanes) for x in carried]
        number, entry = self.fresh(""), self.label
        name, label, after = f"%i{number}", f"L{number}", f"X{number}"
        self.scopes.append(Scope())
        self.depth[name] = len(self.scopes) - 1
        inner = [Register(f"%p{number}.{k}", x.kind, lanes) for k, x in enumerate(carried)]
        self.label = label
        ends = [Register(self.wide(x, lanes), x.kind, lanes) for x in body((0, {name: 1}), inner)]
        going = self._in_any_lane(self.compare("gt", ends[0], self.number(0.0)))[0] if asks else "true"
        lines = self.scopes.pop().lines
        outer = self.scopes[-1].lines
        outer += [f" br label %{label}", f"{label}:"]
        outer.append(f" {name} = phi i64 [ {low}, %{entry} ], [ %m{number}, %{self.label} ]")
        for x, start, end in zip(inner, first, ends, strict=True):
            ty = self.type(x.kind, lanes)
            outer.append(f" {x.text} = phi {ty} [ {start}, %{entry} ], [ {end.text}, %{self.label} ]")
        outer += lines
        outer += [f" %m{number} = add nuw nsw i64 {name}, {step}", f" %d{number} = icmp slt i64 %m{number}, {high}"]
        outer += [f" %g{number} = and i1 %d{number}, {going}"] if asks else []
        outer += [f" br i1 %{'g' if asks else 'd'}{number}, label %{label}, label %{after}", f"{after}:"]
        self.label = after
        return ends

    def begin(self) -> None:
        self.scopes: list[Scope] = [Scope()]
        self.depth: dict[str, int] = {}
        self.label = "entry"
        self.scopes[0].lines += [f" %upper = add i64 %n, {self.width - 1}", f" %padded = and i64 %upper, {-self.width}"]

    def end(self) -> None:
        self.functions.append((f"part{len(self.functions)}", self.scopes[0].lines))
        self.scopes = [Scope()]

    def text(self, entries: Mapping[str, Sequence[int]]) -> str:
        """Return the module: the functions, and entries that call some of them one after another."""
        lines = [text for _, text in self.globals.values()]
        if self.checks:
            lines.append(CHECK)
        waiting, written = list(self.needed), set[str]()
        while waiting:
            name = waiting.pop()
            if name not in written:
                written.add(name)
                lines += self.function(name, waiting)
        for name, body in self.functions:
            lines += [
                f"define internal void @{name}({SIGNATURE}) noinline #0 {{",
                "entry:",
                *self.live_lines(body),
                " ret void",
                "}",
            ]
        for name, parts in entries.items():
            lines += [f"define void @{name}({SIGNATURE}) #0 {{"]
            lines += [f" call void @part{k}({ARGUMENTS})" for k in parts]
            lines += [" ret void", "}"]
        bits = 64 * self.width
        wide = f'"min-legal-vector-width"="{bits}" "prefer-vector-width"="{bits}"'
        lines.append(f'attributes #0 = {{ nounwind {wide} "no-trapping-math"="true" }}')
        if self.hints:
            lines.append('!0 = !{!"branch_weights", i32 1, i32 1000}')
        return "\n".join([*self.declared.values(), *lines])

    def function(self, name: str, waiting: list[str]) -> list[str]:
        """Write a function of vectors, and add the functions that it calls to `waiting`."""
        width, body = self.needed[name]
        inner = LLVM(self.width)
        ty = self.type("f", width)
        value = body(inner, Register("%x", "f", width))
        self.declared.update(inner.declared)
        self.hints |= inner.hints
        self.needed.update(inner.needed)
        waiting += inner.needed
        lines = inner.live_lines(inner.scopes[0].lines)
        text = inner.wide(value, width)
        return [f"define internal {ty} @{name}({ty} %x) noinline #0 {{", "entry:", *lines, f" ret {ty} {text}", "}"]
