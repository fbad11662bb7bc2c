"""Whether a training loop is right, from what its numbers did at each backward().

A pass adds the gradient of the loss to what stands in a parameter; the update moves the parameter against it. Both are
seen from outside, in the numbers before and after each pass, so that no form of writing a loop matters, and momentum,
Adam and a rate that falls are as right as the plainest update. The text of the file is asked for the line to show, and
where nothing moved at all, for what was written.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from wengert_course.checks.load import outside_engine
from wengert_course.checks.report import FOLLOWS, Row, Verdict
from wengert_course.checks.steps import Seen
from wengert_course.texts import lines, slips, texts

__all__ = ["judge"]

TEXTS = texts("training_loop")
ASKED: dict[str, str] = TEXTS["asked"]
"""What step 9 asks for, in the order to do it."""

ROWS: dict[str, str] = TEXTS["rows"]
UPDATE = lines(TEXTS, ["update"])
SLIPS = slips(TEXTS)
"""The name of a slip: what it says, and what to write."""


class _Step(NamedTuple):
    """One backward(), or the state behind the last."""

    number: int
    again: bool  # called on the same object as before
    replaced: bool  # whether parameters are other objects than before, and results of operations
    data: list[float]
    stale: list[float]  # the gradients before it
    after: list[float]


class _Loop:
    """What was told of a loop."""

    def __init__(self, seen: Mapping[str, Seen]) -> None:
        told = {name: seen[name].numbers if name in seen else () for name in ("loop", "losses", "examples")}
        first, *steps = told["loop"] or [(0, 0, 0, 0)]
        self.count, self.stopped, self.model, self.values = map(int, first)
        self.passes = [_Step(*step) for step in steps]
        self.losses = [loss for loss, _ in told["losses"]]
        self.moved = [moved == 1 for _, moved in told["losses"]]
        self.calls = told["examples"]  # for which examples the model was called, and which of them are in the loss

    def pairs(self) -> Iterator[tuple[_Step, _Step]]:
        """Each pass and the state that follows it, where both are known."""
        for one, two in zip(self.passes, self.passes[1:], strict=False):
            if two.number == one.number + 1:
                yield one, two


def _kind(node: ast.AST) -> str:
    """Which part of a loop a line is; nothing for most."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Attribute) and node.value.attr == "backward":
        return "uncalled"
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return {"backward": "backward", "step": "update", "zero_grad": "zero"}.get(node.func.attr, "")
    if not isinstance(node, (ast.Assign, ast.AugAssign)):
        return ""
    target = node.targets[0] if isinstance(node, ast.Assign) else node.target
    if isinstance(target, ast.Attribute) and target.attr in ("data", "grad"):
        zero = isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        return "update" if target.attr == "data" else "zero" if zero else "gradient"
    reads = {part.attr for part in ast.walk(node.value) if isinstance(part, ast.Attribute)}
    return "name" if isinstance(target, (ast.Name, ast.Subscript)) and "grad" in reads else ""


class _Training(Verdict):
    """What is known of a loop so far."""

    step, words = 9, SLIPS

    def __init__(self, loop: _Loop, pieces: Sequence[tuple[str, bytes]]) -> None:
        super().__init__()
        self.loop = loop
        self.told: dict[str, str] = {}  # part -> the slip in it, or "not yet" or "note"
        self.lines: dict[str, list[tuple[int, int, str, str]]] = {}  # kind of line -> which, where it stands, its text
        for number, (name, text) in enumerate(pieces):
            _, cell, which = name.rpartition(", cell ")
            for node in outside_engine(text):
                if kind := _kind(node):
                    line = getattr(node, "lineno", 0)
                    where = f"cell {which}, line {line}" if cell else f"line {line}"
                    self.lines.setdefault(kind, []).append((number, line, where, ast.unparse(node)))

    def slip(self, part: str, slip: str, *kinds: str, **more: Any) -> None:
        """Write a slip down; the first line of these kinds is where it stands."""
        lines = [line for kind in kinds for line in self.lines.get(kind, [])]
        at = dict(zip(("where", "what"), min(lines)[2:], strict=True)) if lines else {}
        self.find(slip, ROWS[part], **{**at, **more})
        self.told[part] = "note" if more.get("note") else slip

    def judge(self, outcome: Seen) -> None:
        """From the first cause to the last effect, and then the table."""
        if self.loop.count:
            self.passes()
        else:
            self.nothing(outcome)
        for part, name in ROWS.items():
            told = self.told.get(part, "")
            if told == "not yet":
                self.not_yet(name, ASKED.get(part, ""))
            elif told == "note":
                self.row(name, "", state="note")
            else:
                self.row(name, "wrong" if told else "ok", remark=told)

    def nothing(self, outcome: Seen) -> None:
        """No backward() was seen."""
        self.told = dict.fromkeys(ROWS, "not yet")
        if outcome.kind:
            ends = {"timeout": "it does not end", "died": "the process ends"}.get(outcome.kind, "it raises an error")
            self.slip("pass", "error", told={"ends": ends}, where=outcome.place, what=outcome.says)
        elif "uncalled" in self.lines:
            self.slip("pass", "backward not called", "uncalled")
        elif "backward" not in self.lines and self.lines.keys() & {"update", "name"}:
            self.slip("pass", "backward forgotten", "update", "name")

    def passes(self) -> None:
        """What the passes show."""
        loop = self.loop
        if loop.stopped:
            self.find("stopped", ROWS["pass"], note=True, told={"count": loop.count})
        if not any(any(one.after) and one.stale != one.after for one in loop.passes[:-1]):
            self.no_gradient()
        elif loop.values:
            self.slip("update", "data made a Value", "update", "name")
        elif any(one.replaced for one in loop.passes):
            self.slip("update", "parameters replaced", "name", "update")
        elif not any(loop.moved) and all(one.data == loop.passes[-1].data for one in loop.passes):
            self.standstill()
        else:
            self.forward()
            self.update()
            if "update" not in self.told:
                self.zero()
        self.examples()
        if loop.count == 1 and not self.told:
            self.told["pass"] = "not yet"
        self.falls()

    def no_gradient(self) -> None:
        """backward() leaves every parameter's gradient as it was."""
        reached = [reached for calls in self.loop.calls for _, reached in calls]
        self.told |= dict.fromkeys(("forward", "zero", "update", "falls"), "note")
        if reached and not any(reached):
            self.slip("pass", "graph cut")
        else:
            self.find("no gradient", ROWS["pass"], note=True)

    def standstill(self) -> None:
        """Gradients are there, and no number moves. Where the numbers cannot tell why, the text has to."""
        both = [(a, b) for one, two in self.loop.pairs() for a, b in zip(one.after, two.stale, strict=True)]
        left = {round(b / a, 9) for a, b in both if abs(a) > 1e-9}  # how much of a gradient is there at the next pass
        alone = "gradient" in self.lines and not self.lines.keys() & {"update", "name"}
        if alone or (len(left) == 1 and not left & {0.0, 1.0}):
            self.slip("update", "gradient updated", "gradient")
        elif "update" not in self.lines and "name" in self.lines:
            self.slip("update", ".data forgotten", "name")
        elif "update" not in self.lines:
            self.told["update"] = "not yet"
        elif 0.0 in left and self.behind_zero() == "update":
            self.slip("zero", "zeroed before the update", "zero")
            self.told["update"] = FOLLOWS
        else:
            self.slip("update", "update without effect", "update")

    def behind_zero(self) -> str:
        """What comes first behind the line that sets gradients to zero, round and round: "backward", or "update"."""
        lines = [(at[:2], kind) for kind in ("zero", "backward", "update") for at in self.lines.get(kind, [])]
        kinds = [kind for _, kind in sorted(lines)]
        turned = kinds[kinds.index("zero") :] + kinds if "zero" in kinds else []
        return next((kind for kind in turned if kind != "zero"), "")

    def forward(self) -> None:
        """Whether the loss is that of the parameters as they are now."""
        loop = self.loop
        unchanged = len(loop.losses) > 2 and len(set(loop.losses)) == 1 and sum(loop.moved) > 1
        if any(one.again for one in loop.passes) and (unchanged or loop.count == 2):
            self.slip("forward", "loss made once")
        elif unchanged and not any(loop.calls[1:]) and max(map(abs, loop.passes[0].after)) > 1e-6:
            self.slip("forward", "predictions made once")

    def update(self) -> None:
        """The data moves against the gradient, all of it, in every round."""
        loop = self.loop
        if not any(loop.moved) and loop.count > 1:
            return self.slip("update", "update outside the loop", "update")
        moves = [(one, [b - a for a, b in zip(one.data, two.data, strict=True)], two) for one, two in loop.pairs()]
        moves = [move for move in moves if any(move[1]) and all(map(math.isfinite, [*move[0].after, *move[1]]))]
        if not moves:
            return None
        one, move, two = moves[0]
        upward = [_cosine(move, one.after) for one, move, _ in moves]
        rate = math.hypot(*move) / (math.hypot(*one.after) or 1.0)
        write = (UPDATE[0], f"    p.data += -{rate:.3g} * p.grad")
        if abs(_cosine(two.data, one.after)) > 1 - 1e-9 > abs(upward[0]) and len(move) > 1:
            return self.slip("update", "data overwritten", "update")
        if upward[0] > 0.3 and sum([cosine > 0.3 for cosine in upward]) * 2 > len(upward):
            return self.slip("update", "update's sign", "update", write=write)
        alive = [i for i, grad in enumerate(one.after) if abs(grad) > 1e-6 * max(map(abs, one.after))]
        still = [i for i in alive if all(move[i] == 0.0 for _, move, _ in moves)]
        if loop.model and still:
            told = {"count": len(still), "of": len(move)}
            self.slip("update", "parameters left out", "update", write=write, told=told)
        return None

    def zero(self) -> None:
        """Each pass begins at zero behind an update; and without one, no gradient is thrown away."""
        kept, lost, alive = list[float](), 0, 0
        for one, two in self.loop.pairs():
            moved = one.data != two.data
            for a, b in zip(one.after, two.stale, strict=True) if two.number < self.loop.count else ():
                if abs(a) > 1e-12:
                    alive += moved
                    kept += [b] if moved and math.isclose(a, b, rel_tol=1e-9) else []
                    lost += not moved and b == 0.0
        if kept:
            share = 100 * len(kept) / alive
            told = {"which": "gradients are" if share > 90 else f"{share:.0f} % of the gradients are"}
            at = {"what": "a gradient before the next pass", "expected": 0.0, "got": kept[0]}
            self.slip("zero", "zero forgotten", told=told, **at)
        elif lost:
            self.slip("zero", "zeroed before the update", "zero")

    def examples(self) -> None:
        """Whether more than one example ever has a part in the loss."""
        calls = [one for one in self.loop.calls if one]
        reached = {example for one in calls for example, in_it in one if in_it}
        if len(calls) > 1 and len(reached) == 1 and all(len({example for example, _ in one}) > 1 for one in calls):
            self.slip("examples", "one example only")

    def falls(self) -> None:
        """Whether it learns. That it does not, though nothing is wrong, is told and does not count."""
        losses = self.loop.losses
        share = max(len(losses) // 4, 1)
        parts = losses[:share], losses[-share:]
        first, last = (math.fsum(part) if all(map(math.isfinite, part)) else math.inf for part in parts)
        if "falls" in self.told or (last < first and len(losses) > 1):
            return
        if any(told not in ("not yet", "note") for told in self.told.values()):
            self.told["falls"] = FOLLOWS
        elif "not yet" in self.told.values():
            self.told["falls"] = "not yet"
        else:
            told = {"first": losses[0], "last": losses[-1]}
            self.slip("falls", "loss does not fall", "update", note=True, told=told)


def _cosine(xs: Sequence[float], ys: Sequence[float]) -> float:
    """How far two vectors point the same way, from -1 to 1."""
    lengths = math.hypot(*xs) * math.hypot(*ys)
    return math.fsum([x * y for x, y in zip(xs, ys, strict=True)]) / lengths if lengths else 0.0


def judge(seen: Mapping[str, Seen], pieces: Sequence[tuple[str, bytes]] = ()) -> Verdict:
    """The table of step 9, what is wrong, and what is not there yet, of a file or the cells of a notebook."""
    outcome = seen.get("loop")
    loop = _Loop(seen) if outcome is not None and outcome.kind != "not tried" else None
    if outcome is None or loop is None or (loop.count and not loop.passes[0].data):  # where no parameter can be seen
        return Verdict([Row(name, loop is None, "", "", "not tried", "", 9) for name in ROWS.values()])
    state = _Training(loop, pieces)
    state.judge(outcome)
    return state
