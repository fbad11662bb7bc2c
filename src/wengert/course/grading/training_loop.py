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

from wengert.course.grading.networks import Judged, Verdict, readable
from wengert.course.grading.report import Row

__all__ = ["judge"]

ASKED = {
    "pass": "a loop that makes the predictions and the loss, and calls loss.backward(), anew in every round",
    "update": "the update: each parameter's data moves a little against its gradient",
}
"""What step 9 asks for, in the order to do it."""

ROWS = {
    "pass": "backward() in a loop",
    "forward": "predictions and loss made anew",
    "zero": "gradients zeroed before each pass",
    "update": "data moved against the gradient",
    "examples": "every example in the loss",
    "falls": "the loss falls",
}

BACKWARD = ("loss.backward()",)
ZERO = ("for p in n.parameters():", "    p.grad = 0.0", *BACKWARD)
UPDATE = ("for p in n.parameters():", "    p.data += -0.05 * p.grad")
LOSS = ("ypred = [n(x) for x in xs]", "loss = sum((yout - ygt)**2 for ygt, yout in zip(ys, ypred))")

SLIPS: dict[str, tuple[str, tuple[str, ...]]] = {
    "backward forgotten": ("backward() is forgotten: nothing puts a gradient into the parameters", BACKWARD),
    "backward not called": ("loss.backward is named and not called: it needs its parentheses", BACKWARD),
    "error": ("the function that trains was called, and {ends}", ()),
    "graph cut": ("no gradient reaches the parameters: the loss is made of numbers (.data, float()), not Values", LOSS),
    "no gradient": (
        "every gradient is 0, so that nothing can be learnt: ReLUs that are 0 for all examples, or saturated tanhs",
        ("random.seed(7)  # other weights at the start",),
    ),
    "loss made once": ("the loss is made before the loop, and every pass goes through the same old expression", LOSS),
    "predictions made once": ("the predictions are made before the loop: the loss never hears of the update", LOSS),
    "zero forgotten": ("{which} not set to zero before backward(): it adds to what earlier passes left", ZERO),
    "zeroed before the update": (
        "gradients are set to zero between backward() and the update, and what was computed is lost",
        (*ZERO, *UPDATE),
    ),
    "update's sign": ("the update goes up the gradient, and the loss rises: its sign is wrong", UPDATE),
    ".data forgotten": ("the update gives the name a new object, and the parameter stays as it is: .data", UPDATE),
    "parameters replaced": (
        "results of operations take the parameters' place, and each pass goes through all updates before it",
        UPDATE,
    ),
    "data made a Value": (
        "a parameter's data has become a Value: what stands right of the update has to be a number",
        ("p.data = p.data - 0.05 * p.grad",),
    ),
    "gradient updated": ("the gradient is changed, where the data has to be", UPDATE),
    "data overwritten": ("the data is overwritten with the step (=), where the step has to be added (+=)", UPDATE),
    "update without effect": ("the update moves nothing: is it in the loop, and its rate above 0?", UPDATE),
    "update outside the loop": ("the data moves once, behind the loop, and not in each of its rounds", UPDATE),
    "parameters left out": ("{count} of {of} parameters have a gradient and never move", UPDATE),
    "one example only": ("one example alone is in the loss: the others' losses are overwritten (=), not added", LOSS),
    "loss does not fall": (
        "the loss goes from {first:.4g} to {last:.4g}: too large a rate makes it jump, saturated or dead neurons stand",
        ("p.data += -0.01 * p.grad",),
    ),
    "stopped": ("the loop was stopped after {count} passes, when its time was up; all is told of those", ()),
}
"""The name of a slip: what it says, and what to write."""


class _Pass(NamedTuple):
    """One backward(), or the state behind the last."""

    number: int
    again: bool  # called on the same object as before
    replaced: bool  # whether parameters are other objects than before, and results of operations
    data: list[float]
    stale: list[float]  # the gradients before it
    after: list[float]


class _Loop:
    """What was told of a loop."""

    def __init__(self, seen: Mapping[str, Any]) -> None:
        rest = iter(seen["loop"].numbers)
        self.count, self.stopped = int(next(rest, 0)), bool(next(rest, 0))
        self.passes: list[_Pass] = []
        if self.count:
            size, self.model, kept, self.values = (int(next(rest)) for _ in range(4))
            for _ in range(kept + 1):
                number, again, replaced = (int(next(rest)) for _ in range(3))
                data, stale, after = ([next(rest) for _ in range(size)] for _ in range(3))
                self.passes.append(_Pass(number, bool(again), bool(replaced), data, stale, after))
        numbers = seen["losses"].numbers if "losses" in seen else ()
        self.losses, self.moved = list(numbers[::2]), [moved == 1.0 for moved in numbers[1::2]]
        told = iter(seen["examples"].numbers if "examples" in seen else ())
        self.calls = [[(int(next(told)), next(told) == 1.0) for _ in range(int(count))] for count in told]

    def pairs(self) -> Iterator[tuple[_Pass, _Pass]]:
        """Each pass and the state that follows it, where both are known."""
        for one, two in zip(self.passes, self.passes[1:], strict=False):
            if two.number == one.number + 1:
                yield one, two


class _Text:
    """What a file writes outside its engine, by kind: lines, each with its number."""

    def __init__(self, text: str) -> None:
        self.found: dict[str, list[tuple[int, str]]] = {}
        try:
            waiting: list[ast.AST] = [ast.parse(text)]
        except (SyntaxError, ValueError, RecursionError):  # it ran all the same: the numbers have to do
            return
        while waiting:
            node = waiting.pop()
            if isinstance(node, ast.ClassDef) and any(getattr(part, "name", "") == "backward" for part in node.body):
                continue
            if kind := _kind(node):
                self.found.setdefault(kind, []).append((getattr(node, "lineno", 0), ast.unparse(node)))
            waiting += ast.iter_child_nodes(node)

    def at(self, *kinds: str) -> dict[str, str]:
        """Where the first line of these kinds stands, and what it is; nothing if there is none."""
        lines = [line for kind in kinds for line in self.found.get(kind, [])]
        return {"where": f"line {min(lines)[0]}", "what": min(lines)[1]} if lines else {}

    def behind_zero(self) -> str:
        """What comes first behind the line that sets gradients to zero, round and round: "backward", or "update"."""
        lines = [(n, kind) for kind in ("zero", "backward", "update") for n, _ in self.found.get(kind, [])]
        kinds = [kind for _, kind in sorted(lines)]
        turned = kinds[kinds.index("zero") :] + kinds if "zero" in kinds else []
        return next((kind for kind in turned if kind != "zero"), "")


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

    def __init__(self, loop: _Loop, text: str) -> None:
        super().__init__(SLIPS)
        self.loop, self.text = loop, _Text(text)
        self.told: dict[str, str] = {}  # part -> the slip in it, or "not yet" or "note"

    def slip(self, part: str, slip: str, *kinds: str, **more: Any) -> None:
        """Write a slip down; lines of these kinds are where it stands."""
        self.find(slip, ROWS[part], **{**self.text.at(*kinds), **more})
        self.told[part] = slip

    def missing(self, part: str) -> None:
        """It is not there yet."""
        self.told[part] = "not yet"


def judge(seen: Mapping[str, Any], text: str = "") -> Judged:
    """The table of step 9, what is wrong, and what is not there yet.

    Args:
        seen: what each of `loop_trials.TRIALS` gave, by its id.
        text: the file, or the cells of the notebook.

    Raises:
        ArgumentError: the numbers are of another shape than the trials give.
    """
    with readable():
        return _judge(seen, text)


def _judge(seen: Mapping[str, Any], text: str) -> Judged:
    outcome = seen.get("loop")
    loop = _Loop(seen) if outcome is not None and outcome.kind != "not tried" else None
    if loop is None or (loop.count and not loop.passes[0].data):  # where no parameter can be seen
        return [Row(name, loop is None, "", "", "not tried") for name in ROWS.values()], [], []
    state = _Training(loop, text)
    if state.loop.count == 0:
        _judge_nothing(state, outcome)
    else:
        _judge_passes(state)
    for part, name in ROWS.items():
        told = state.told.get(part, "")
        if told == "not yet":
            state.not_yet(name, ASKED.get(part, ""))
        else:
            values = "" if told == "note" else "wrong" if told else "ok"
            state.row(name, values, remark=told.removeprefix("note"), state="" if values else told)
    return state.rows, list(state.findings.values()), state.later


def _judge_nothing(state: _Training, outcome: Any) -> None:
    """No backward() was seen."""
    for part in ROWS:
        state.missing(part)
    found = state.text.found
    if outcome.kind:
        ends = {"timeout": "it does not end", "died": "the process ends"}.get(outcome.kind, "it raises an error")
        state.slip("pass", "error", ends=ends, where=outcome.place, what=outcome.says)
    elif "uncalled" in found:
        state.slip("pass", "backward not called", "uncalled")
    elif "backward" not in found and found.keys() & {"update", "name"}:
        state.slip("pass", "backward forgotten", "update", "name")


def _judge_passes(state: _Training) -> None:
    """What the passes show, from the first cause to the last effect."""
    loop = state.loop
    if loop.stopped:
        state.find("stopped", ROWS["pass"], note=True, count=loop.count)
    if not any(any(one.after) and one.stale != one.after for one in loop.passes[:-1]):
        _judge_no_gradient(state)
    elif loop.values:
        state.slip("update", "data made a Value", "update", "name")
    elif any(one.replaced for one in loop.passes):
        state.slip("update", "parameters replaced", "name", "update")
    elif not any(loop.moved) and all(one.data == loop.passes[-1].data for one in loop.passes):
        _judge_standstill(state)
    else:
        _judge_forward(state)
        _judge_update(state)
        if "update" not in state.told:
            _judge_zero(state)
    _judge_examples(state)
    if loop.count == 1 and not state.told:
        state.missing("pass")
    _judge_losses(state)


def _judge_no_gradient(state: _Training) -> None:
    """backward() leaves every parameter's gradient as it was."""
    reached = [reached for calls in state.loop.calls for _, reached in calls]
    state.told |= dict.fromkeys(("forward", "zero", "update", "falls"), "note")
    if reached and not any(reached):
        state.slip("pass", "graph cut")
    else:
        state.find("no gradient", ROWS["pass"], note=True)


def _judge_standstill(state: _Training) -> None:
    """Gradients are there, and no number moves. Where the numbers cannot tell why, the text has to."""
    found = state.text.found
    both = [(a, b) for one, two in state.loop.pairs() for a, b in zip(one.after, two.stale, strict=True)]
    left = {round(b / a, 9) for a, b in both if abs(a) > 1e-9}  # how much of a gradient is there at the next pass
    if len(left) == 1 and not left & {0.0, 1.0}:
        state.slip("update", "gradient updated", "gradient")
    elif "update" not in found and "name" in found:
        state.slip("update", ".data forgotten", "name")
    elif "update" not in found:
        state.missing("update")
    elif 0.0 in left and state.text.behind_zero() == "update":
        state.slip("zero", "zeroed before the update", "zero")
        state.told["update"] = "follows from what is wrong above"
    else:
        state.slip("update", "update without effect", "update")


def _judge_forward(state: _Training) -> None:
    """Whether the loss is that of the parameters as they are now."""
    loop = state.loop
    unchanged = len(loop.losses) > 2 and len(set(loop.losses)) == 1 and sum(loop.moved) > 1
    if any(one.again for one in loop.passes) and (unchanged or loop.count == 2):
        state.slip("forward", "loss made once")
    elif unchanged and not any(loop.calls[1:]) and max(map(abs, loop.passes[0].after)) > 1e-6:
        state.slip("forward", "predictions made once")


def _cosine(xs: Sequence[float], ys: Sequence[float]) -> float:
    """How far two vectors point the same way, from -1 to 1."""
    lengths = math.hypot(*xs) * math.hypot(*ys)
    return math.fsum([x * y for x, y in zip(xs, ys, strict=True)]) / lengths if lengths else 0.0


def _judge_update(state: _Training) -> None:
    """The data moves against the gradient, all of it, in every round."""
    loop = state.loop
    if not any(loop.moved) and loop.count > 1:
        return state.slip("update", "update outside the loop", "update")
    moves = [(one, [b - a for a, b in zip(one.data, two.data, strict=True)], two) for one, two in loop.pairs()]
    moves = [move for move in moves if any(move[1]) and all(map(math.isfinite, [*move[0].after, *move[1]]))]
    if not moves:
        return None
    one, move, two = moves[0]
    upward = [_cosine(move, one.after) for one, move, _ in moves]
    rate = math.hypot(*move) / (math.hypot(*one.after) or 1.0)
    write = (UPDATE[0], f"    p.data += -{rate:.3g} * p.grad")
    if abs(_cosine(two.data, one.after)) > 1 - 1e-9 > abs(upward[0]) and len(move) > 1:
        return state.slip("update", "data overwritten", "update")
    if upward[0] > 0.3 and sum([cosine > 0.3 for cosine in upward]) * 2 > len(upward):
        return state.slip("update", "update's sign", "update", write=write)
    alive = [i for i, grad in enumerate(one.after) if abs(grad) > 1e-6 * max(map(abs, one.after))]
    still = [i for i in alive if all(move[i] == 0.0 for _, move, _ in moves)]
    if loop.model and still:
        state.slip("update", "parameters left out", "update", write=write, count=len(still), of=len(move))
    return None


def _judge_zero(state: _Training) -> None:
    """Each pass begins at zero behind an update; and without one, no gradient is thrown away."""
    kept = lost = alive = 0
    seen: dict[str, Any] = {}
    for one, two in state.loop.pairs():
        moved = one.data != two.data
        for a, b in zip(one.after, two.stale, strict=True) if two.number < state.loop.count else ():
            if abs(a) > 1e-12:
                alive += moved
                if moved and math.isclose(a, b, rel_tol=1e-9):
                    kept += 1
                    seen = seen or {"what": "a gradient before the next pass", "expected": 0.0, "got": b}
                lost += not moved and b == 0.0
    if kept:
        which = "gradients are" if kept > 0.9 * alive else f"{100 * kept / alive:.0f} % of the gradients are"
        state.slip("zero", "zero forgotten", which=which, **seen)
    elif lost:
        state.slip("zero", "zeroed before the update", "zero")


def _judge_examples(state: _Training) -> None:
    """Whether more than one example ever has a part in the loss."""
    calls = [one for one in state.loop.calls if one]
    reached = {example for one in calls for example, in_it in one if in_it}
    if len(calls) > 1 and len(reached) == 1 and all(len({example for example, _ in one}) > 1 for one in calls):
        state.slip("examples", "one example only")


def _judge_losses(state: _Training) -> None:
    """Whether it learns. That it does not, though nothing is wrong, is told and does not count."""
    losses = state.loop.losses
    share = max(len(losses) // 4, 1)
    parts = losses[:share], losses[-share:]
    first, last = (math.fsum(part) if all(map(math.isfinite, part)) else math.inf for part in parts)
    if "falls" in state.told or (last < first and len(losses) > 1):
        return
    if any(told not in ("not yet", "note") for told in state.told.values()):
        state.told["falls"] = "follows from what is wrong above"
    elif "not yet" in state.told.values():
        state.missing("falls")
    else:
        state.told["falls"] = "note"
        more: dict[str, Any] = {"first": losses[0], "last": losses[-1], **state.text.at("update")}
        state.find("loss does not fall", ROWS["falls"], note=True, **more)
