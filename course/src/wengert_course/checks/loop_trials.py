"""Watches a training loop while the file runs, and tells what its numbers did.

The process that runs the file loads this one alone: it imports nothing of Wengert's and knows no right answer. At each
`backward()` it notes the loss, and the number and the gradient in each parameter before and after; at the end, once
more. `training_loop.py` reads that, and judges it.
"""

from __future__ import annotations

import ast
import inspect
import os
import sys
import time
from collections.abc import Callable, Iterator
from types import FrameType, ModuleType
from typing import Any, NamedTuple

__all__ = ["TRIALS", "Enough", "Watch"]

PARTS: dict[str, tuple[str, ...]] = {
    "data": ("data", "value", "val"),
    "grad": ("grad", "gradient", "derivative", "adjoint"),
}
BACKWARD = {"backward", "backprop", "backpropagate"}
SHOWN = 41  # so many parameters are told of, evenly spaced: all of MLP(3, [4, 4, 1])
PASSES = 2_000  # so many are noted


class Enough(BaseException):
    """Ends a loop that goes on for long. No `except Exception` of the file's stops it."""


class _Pass(NamedTuple):
    """One call of backward()."""

    line: int
    owner: Any  # the model whose parameters these are; None where they are Values of variables
    loss: float
    again: bool  # whether on the same object as the pass before
    before: list[float]  # the numbers
    stale: list[float]  # the gradients before it
    after: list[float]  # and after
    params: list[Any]  # the parameters themselves
    calls: list[tuple[int, bool]]  # of the model since the pass before: which example, whether a gradient reached it


def _get(thing: Any, part: str) -> Any:
    """A part of a Value, whatever it is called."""
    return next((getattr(thing, name) for name in PARTS[part] if hasattr(thing, name)), None)


def _is_value(thing: Any) -> bool:
    return not isinstance(thing, type) and _get(thing, "data") is not None and _get(thing, "grad") is not None


def _number(thing: Any, part: str) -> float:
    """A part as a number, nan if it is none; that of a Value, where one stands in its place."""
    found = _get(thing, part)
    try:
        return float(_get(found, "data") if _is_value(found) else found)
    except (TypeError, ValueError):
        return float("nan")


def _state(params: list[Any]) -> tuple[list[float], list[float]]:
    """The numbers, and the gradients."""
    return [_number(p, "data") for p in params], [_number(p, "grad") for p in params]


def _is_model(thing: Any) -> bool:
    return not isinstance(thing, (type, ModuleType)) and callable(getattr(thing, "parameters", None))


def _parameters(model: Any) -> list[Any]:
    """The Values that parameters() gives, each once; none, if it fails."""
    try:
        given = list(model.parameters())
    except Exception:  # the file wrote it, and it may raise anything
        return []
    found = list({id(p): p for p in given if _is_value(p)}.values())
    return found if len(found) <= SHOWN else [found[i * (len(found) - 1) // (SHOWN - 1)] for i in range(SHOWN)]


def _first(frame: FrameType) -> Any:
    """The first argument of a function that runs."""
    return frame.f_locals.get(frame.f_code.co_varnames[0]) if frame.f_code.co_argcount else None


class Watch:
    """Watches every backward() from `start` to `stop`."""

    def __init__(self, seconds: float = 8.0) -> None:
        self.seconds: float = seconds  # loops may take that long; the next backward() ends the file by `Enough`
        self.passes: list[_Pass] = []
        self.stopped: bool = False
        self.space: dict[str, Any] = {}
        self._end = 0.0
        self._frame: FrameType | None = None  # of the backward() that runs
        self._found: list[tuple[Any, list[Any], list[float], list[float]]] = []
        self._root: Any = None  # of the pass before
        self._call: FrameType | None = None  # of the model that runs
        self._example = 0
        self._examples: dict[Any, int] = {}
        self._calls: list[tuple[int, list[Any]]] = []

    def start(self, space: dict[str, Any]) -> None:
        """Watch what runs from now on; `space` holds the names of the file."""
        self.space, self._end = space, time.monotonic() + self.seconds
        self._frame = self._call = None
        sys.setprofile(self._event)

    def stop(self) -> None:
        """Watch no longer."""
        sys.setprofile(None)

    def run_further(self) -> None:
        """Where the file ran no loop by itself: what it does as a program, or else its function that trains."""
        self.start(self.space)
        try:
            _run_guarded(self.space)
            if not self.passes:
                _call_training(self.space)
        except Enough:
            pass
        finally:
            self.stop()

    def _event(self, frame: FrameType, event: str, result: Any) -> None:
        """Python calls this at each call and return."""
        name = frame.f_code.co_name
        if name == "__call__":
            if event == "call" and self._call is None and _is_model(_first(frame)):
                self._call, self._example = frame, self._which(frame)
            elif event == "return" and frame is self._call:
                self._call = None
                outputs = result if isinstance(result, (list, tuple)) else [result]
                self._calls = [*self._calls[-100:], (self._example, [out for out in outputs if _is_value(out)])]
        elif name in BACKWARD:
            if event == "call" and self._frame is None and _is_value(_first(frame)):
                self._begin(frame)
            elif event == "return" and frame is self._frame:
                self._finish(frame)

    def _which(self, frame: FrameType) -> int:
        """For which example a model is called."""
        x = next(iter(list(frame.f_locals.values())[1:]), None)
        items = x if isinstance(x, (list, tuple)) else [x]
        key = tuple([_number(item, "data") if _is_value(item) else repr(item)[:40] for item in items[:64]])
        return self._examples.setdefault(key, len(self._examples)) if len(self._examples) < PASSES else -1

    def _begin(self, frame: FrameType) -> None:
        """backward() begins: note the numbers and gradients of every model that can be seen from where it is called."""
        if time.monotonic() > self._end:
            self.stopped = True
            raise Enough
        things: list[Any] = []
        caller, depth = frame.f_back, 0
        while caller is not None and depth < 20:
            things += caller.f_locals.values()
            if caller.f_globals is self.space and caller.f_locals is not self.space:
                things += self.space.values()
            caller, depth = caller.f_back, depth + 1
        models = list({id(thing): thing for thing in things if _is_model(thing)}.values())[:8]
        found = [(model, params) for model in models if (params := _parameters(model))]
        if not found:  # a loop over Values that stand by themselves
            held = [vars(thing) for thing in things if hasattr(thing, "__dict__") and not isinstance(thing, ModuleType)]
            things += [part for parts in held for part in parts.values()]
            items = [item for thing in things for item in (thing if isinstance(thing, (list, tuple)) else [thing])]
            loose = {id(item): item for item in items if _is_value(item) and not getattr(item, "_prev", None)}
            found = [(None, list(loose.values())[:SHOWN])]
        self._frame, self._found = frame, [(model, params, *_state(params)) for model, params in found]

    def _finish(self, frame: FrameType) -> None:
        """backward() is through: note the gradients of the model that has new ones, rather the one before."""
        root, owner = _first(frame), self.passes[-1].owner if self.passes else None
        news = [(model, params, data, stale, _state(params)[1]) for model, params, data, stale in self._found]
        model, params, data, stale, after = min(news, key=lambda one: (one[3] == one[4], one[0] is not owner))
        calls = [(example, any(_number(out, "grad") for out in outs)) for example, outs in self._calls]
        line, again = frame.f_back.f_lineno if frame.f_back else 0, root is self._root
        if len(self.passes) < PASSES:
            self.passes.append(_Pass(line, model, _number(root, "data"), again, data, stale, after, params, calls))
        self._frame, self._calls, self._found, self._root = None, [], [], root


def _run_guarded(space: dict[str, Any]) -> None:
    """Run what stands under `if __name__ == "__main__":` in the file."""
    path = str(space.get("__file__"))
    if path.endswith(".py") and os.path.isfile(path):
        with open(path, "rb") as file:
            parts = [part for part in ast.parse(file.read()).body if isinstance(part, ast.If)]
        body = [line for part in parts if "'__main__'" in ast.unparse(part.test) for line in part.body]
        exec(compile(ast.Module(body, []), path, "exec", dont_inherit=True), space)


TRAINING = ("train", "training_loop", "train_model", "fit", "learn", "optimize", "train_step", "step")
GIVEN: tuple[tuple[Any, set[str]], ...] = (
    (20, {"steps", "epochs", "iterations", "n_steps", "n_epochs", "num_steps", "num_epochs", "n_iter"}),
    (0.05, {"lr", "learning_rate", "rate", "alpha", "step_size", "eta"}),
    ([[2.0, 3.0, -1.0], [3.0, -1.0, 0.5], [0.5, 1.0, 1.0], [1.0, 1.0, -1.0]], {"xs", "x", "inputs", "data", "rows"}),
    ([1.0, -1.0, -1.0, 1.0], {"ys", "y", "targets", "labels", "ygt"}),
)
"""What a function that trains is given, and what it may call it."""


def _call_training(space: dict[str, Any]) -> None:
    """Call the function that trains, with a new MLP and four examples, if its arguments' names tell what they are."""
    name = next((name for name in TRAINING if inspect.isfunction(space.get(name))), "")
    if not name:
        return
    given: dict[str, Any] = {}
    for wanted in inspect.signature(space[name]).parameters.values():
        known = [what for what, names in GIVEN if wanted.name.lower() in names]
        if wanted.name.lower() in ("model", "n", "net", "network", "mlp") and callable(space.get("MLP")):
            known = [space["MLP"](3, [4, 4, 1])]
        if known and wanted.default is wanted.empty:
            given[wanted.name] = known[0]
        elif wanted.default is wanted.empty and wanted.kind is not wanted.VAR_KEYWORD:
            return
    for _ in range(20 if "step" in name else 1):
        space[name](**given)


def _chosen(watch: Watch) -> tuple[list[_Pass], _Pass | None]:
    """The last loop, the passes from one line on one model, of which there are several; and the pass behind it."""
    runs: list[list[_Pass]] = []
    for one in watch.passes:
        last = runs[-1][-1] if runs else None
        if last is None or last.line != one.line or last.owner is not one.owner:
            runs.append([])
        runs[-1].append(one)
    i = max(range(len(runs)), key=lambda i: (len(runs[i]) > 1, i))
    behind = runs[i + 1][0] if i + 1 < len(runs) else None
    return runs[i], behind if behind is not None and behind.owner is runs[i][0].owner else None


def _told(watch: Watch) -> Iterator[list[Any]]:
    """Of the last loop the first passes and the last, those around the first changes, and what is there behind it."""
    passes, behind = _chosen(watch)
    count, owner = len(passes[0].before), passes[0].owner
    moves = [i for i in range(1, len(passes)) if passes[i].before != passes[i - 1].before][:3]
    kept = sorted({0, min(1, len(passes) - 1), *moves, *[i - 1 for i in moves], len(passes) - 1})
    params = _parameters(owner) or passes[-1].params
    values = sum([_is_value(_get(p, "data")) for p in params])
    yield [len(passes), int(watch.stopped), int(owner is not None), values]

    def step(i: int, again: bool, new: bool, *states: list[float]) -> list[Any]:
        return [i, int(again), int(new), *[(numbers + [0.0] * count)[:count] for numbers in states]]

    for i in kept:
        one, last = passes[i], passes[i - 1]
        new = any(p is not q and getattr(p, "_prev", None) for p, q in zip(one.params, last.params, strict=False))
        yield step(i, i > 0 and one.again, i > 0 and new, one.before, one.stale, one.after)
    data, grads = (behind.before, behind.stale) if behind is not None else _state(params)
    yield step(len(passes), False, False, data, grads, grads)


def _losses(watch: Watch) -> Iterator[list[Any]]:
    """Of each pass, the loss, and whether a number has changed since the one before; of at most 900."""
    passes, _ = _chosen(watch)
    for i, one in enumerate(passes[:900]):
        yield [one.loss, int(i > 0 and one.before != passes[i - 1].before)]


def _examples(watch: Watch) -> Iterator[list[Any]]:
    """Of the first passes, for which examples the model was called before it, and which of them are in the loss."""
    passes, _ = _chosen(watch)
    for one in passes[:8]:
        yield [[example, int(reached)] for example, reached in one.calls]


def _trial(name: str, tell: Callable[[Watch], Iterator[list[Any]]]) -> tuple[Any, ...]:
    def run(kit: Any) -> Iterator[tuple[str, str, Any]]:
        if not kit.loop.passes:
            kit.loop.run_further()
        for told in tell(kit.loop) if kit.loop.passes else ():
            yield "", "", told

    return "a training loop", name, "core", "", run, "", 9


TRIALS: list[tuple[Any, ...]] = [_trial("loop", _told), _trial("losses", _losses), _trial("examples", _examples)]
