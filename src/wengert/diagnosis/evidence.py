"""Finds the neurons in the graph below a loss, and what they did: the evidence of a diagnosis.

A neuron is an activation (ReLU, tanh, sigmoid) of a weighted sum: a `dot` with parameters, or a sum of products with
parameters. Its name is what its parameters' names have in common, such as `layers.2.neurons.0`. An activation of
anything else, as in a hinge loss, is not a neuron.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from math import isfinite, nan
from typing import Any, NamedTuple

from wengert.engine import Value
from wengert.graph import Graph, Instruction
from wengert.ops import BY_NAME

__all__ = ["Activity", "Evidence", "Path", "layer_of", "named", "one_pass", "shared"]

Path = tuple[str, ...]  # ("layers", "2", "neurons", "0")

# Where an activation is flat.
ENDS: dict[str, tuple[float, ...]] = {"relu": (0.0,), "tanh": (-1.0, 1.0), "sigmoid": (0.0, 1.0)}
STEEPEST = {"relu": 1.0, "tanh": 1.0, "sigmoid": 0.25}  # the largest derivative
SUMS = ("add", "sub", "neg", "sum")
FEWEST = 4  # the smallest number of weighted sums whose changes are compared; fewer may agree by chance
ERRORS = ("mul", "pow", "square", "abs")  # operations that losses apply to prediction - target


class Activity(NamedTuple):
    """The numbers of one neuron for each example."""

    path: Path
    activation: str
    is_output: bool  # True if no other neuron reads it
    out: list[float]
    slope: list[float]  # the derivative of the activation, as a fraction of its largest
    pull: list[float]  # the gradient of the neuron's output: above 0, a smaller output would lower the loss

    @property
    def name(self) -> str:
        """Its name in the model."""
        return ".".join(self.path)

    def blocked(self, threshold: float) -> list[int]:
        """List the examples for which the output is at an end of its range although the loss asks for another value.

        There the derivative is below `threshold`, so that hardly any gradient passes.
        """
        middle = 0.5 * (ENDS[self.activation][0] + ENDS[self.activation][-1])
        return [
            i
            for i, (out, slope, pull) in enumerate(zip(self.out, self.slope, self.pull, strict=True))
            if slope < threshold and (pull > 0.0 if out > middle else pull < 0.0)
        ]

    def passed(self) -> float:
        """Return the sum of the absolute gradients that pass through the neuron."""
        return sum([abs(slope * pull) for slope, pull in zip(self.slope, self.pull, strict=True)])


class Evidence:
    """The neurons, the targets and the inputs in the graphs below some losses.

    Args:
        names: the path of each parameter.
        *losses: the losses of one pass, whose sum is minimised.

    Attributes:
        graph: the graph below the losses.
        neurons: the neurons, in the order of creation.
        targets: the output neuron's path and activation, and its target, for each example.
        inputs: the constants that a layer's weights are multiplied with, for each example: {layer: {index: [...]}}.
    """

    def __init__(self, names: Mapping[Value, Path], *losses: Value) -> None:
        self.names: Mapping[Value, Path] = names
        self.graph: Graph = Graph(*losses)
        self._steps = list(self.graph)
        self.neurons: list[Activity] = []
        self.targets: list[tuple[Path, str, float]] = []
        self.inputs: dict[Path, dict[int, list[float]]] = {}
        self._shown: list[int] = []  # weighted sums of inputs, from which an update of the parameters is computed
        n = len(self._steps)
        self._path: list[Path | None] = [None] * n  # of a parameter, or common to a weighted sum's
        self._sum = [False] * n  # True for weighted sums
        self._first: dict[Path, Path] = {}  # the weights of a layer's first neuron, whose inputs are those of all
        self._linear = [False] * n  # True for weighted sums of inputs, which are linear in the parameters
        active: dict[int, tuple[Path, str]] = {}
        errors: dict[int, tuple[Path, str, float]] = {}
        for place, step in enumerate(self._steps):
            self._read(place, step, active, errors)
        pulls = self.graph.pull_back(Counter(self.graph.outputs))  # the gradients of the losses' sum
        inner = self._inner()
        found: dict[tuple[Path, str, bool], Activity] = {}
        for place, (path, name) in active.items():
            key = path, name, not inner[place]
            neuron = found.setdefault(key, Activity(path, name, not inner[place], [], [], []))
            step = self._steps[place]
            (before,) = step.operands
            x = self.graph.values[int(before)].data
            slope = BY_NAME[name].partials(step.value.data, x)
            neuron.out.append(step.value.data)
            neuron.slope.append(float(slope) / STEEPEST[name])
            neuron.pull.append(pulls[place])
        self.neurons.extend(found.values())

    @property
    def examples(self) -> int:
        """The number of examples in the graph."""
        return max([len(neuron.out) for neuron in self.neurons], default=0)

    @property
    def reached(self) -> set[Value]:
        """The parameters that the losses depend on."""
        return {self.graph.values[i] for i in self.graph.leaves if self.graph.values[i] in self.names}

    def last_update(self) -> tuple[float, float] | None:
        """Return the multiple of the gradients by which the parameters have moved since, and the loss now; None if they
        have not moved, or not by one multiple.

        The weighted sums of the first layer are linear in the parameters: if these have moved by a multiple of the
        gradient, each sum has changed by that multiple of its derivative along the gradient.
        """
        if len(self._shown) < FEWEST:
            return None
        today, values = self._today(), self.graph.values
        slopes = self.graph.push_forward({i: values[i].grad for i in self.graph.leaves if values[i] in self.names})
        moves = [(values[i].data, today[i] - values[i].data, slopes[i]) for i in self._shown]
        size, change, along = (sum([x * x for x in column]) for column in zip(*moves, strict=True))
        if not (change > 1e-20 * size and along > 0.0 and isfinite(change) and isfinite(along)):
            return None  # no change beyond rounding, or no gradient to compare with
        multiple = sum([c * d for _, c, d in moves]) / along
        rest = sum([(c - multiple * d) ** 2 for _, c, d in moves])
        if rest > 1e-9 * change:  # an update by another rule, such as momentum or Adam
            return None
        return multiple, sum([today[i] for i in self.graph.outputs])

    def unmoved(self) -> bool:
        """Return True if all values below the losses are still the same, so that no parameter has changed."""
        pairs = zip(self._today(), self.graph.values, strict=True)
        return all(abs(today - value.data) <= 1e-12 * (1.0 + abs(value.data)) for today, value in pairs)

    # -- reading the graph --------------------------------------------------------------------------------------------

    def _read(self, place: int, step: Instruction, active: dict[int, tuple[Path, str]], errors: dict[int, Any]) -> None:
        """Classify a node: a weighted sum, its activation, or an output minus its target or the other way round."""
        name = step.op.name
        if name == "leaf":
            self._path[place] = self.names.get(step.value)
        elif name in ENDS and self._is_sum(step.operands[0]):
            active[place] = self._path[int(step.operands[0])] or (), name
        elif name == "dot" or (name == "mul" and self._has_parameter(step.operands)):
            self._product(place, step)
        elif name in SUMS:
            self._add(place, step)
        if name in ("sub", "add"):
            for out, other in (step.operands, step.operands[::-1]):
                target = self._given(other)
                if isinstance(out, int) and out in active and target is not None:
                    errors[place] = (*active[out], -target if name == "add" else target)
        elif name in ERRORS and step.operands[0] in errors and step.operands[-1] in (step.operands[0], 2.0):
            self.targets.append(errors[int(step.operands[0])])

    def _parameter(self, operand: float) -> bool:
        return isinstance(operand, int) and self.graph.codes[operand] == 0 and self._path[operand] is not None

    def _is_sum(self, operand: float) -> bool:
        return isinstance(operand, int) and self._sum[operand]

    def _has_parameter(self, operands: Iterable[float]) -> bool:
        return any(self._parameter(x) for x in operands)

    def _given(self, operand: float) -> float | None:
        """Return the number of a constant, or of a leaf that is not a parameter; else None."""
        if not isinstance(operand, int):
            return operand
        known = self.graph.codes[operand] == 0 and self._path[operand] is None
        return self.graph.values[operand].data if known else None

    def _product(self, place: int, step: Instruction) -> None:
        operands = step.operands
        if not self._has_parameter(operands):
            return
        half = len(operands) // 2
        paths: list[Path | None] = []
        linear = True
        for pair in zip(operands[:half], operands[half : 2 * half], strict=True):
            weight, x = pair if self._parameter(pair[0]) else pair[::-1]
            number = self._given(x)
            own = (self._path[int(weight)] or ()) if self._parameter(weight) else ()
            if number is not None and own and own[-1].isdigit():
                layer = layer_of(own[:-2] or own[:-1])
                if self._first.setdefault(layer, own[:-1]) == own[:-1]:
                    self.inputs.setdefault(layer, {}).setdefault(int(own[-1]), []).append(number)
            paths.append(own or None)
            linear &= self._parameter(weight) and number is not None
        for b in operands[2 * half :]:
            paths.append(self._path[int(b)] if self._parameter(b) else None)
            linear &= self._parameter(b) or self._given(b) is not None
        self._note_sum(place, paths, linear, shows=step.op.name == "dot")

    def _add(self, place: int, step: Instruction) -> None:
        """Mark a sum as weighted if all its terms are weighted sums or parameters, or the 0 that sum() starts with."""
        paths: list[Path | None] = []
        linear = True
        for x in step.operands:
            if self._parameter(x) or self._is_sum(x):
                paths.append(self._path[int(x)])
                linear &= self._parameter(x) or self._linear[int(x)]
            elif x != 0.0 or isinstance(x, int):
                return
        self._note_sum(place, paths, linear, shows=True)

    def _note_sum(self, place: int, paths: Iterable[Path | None], linear: bool, shows: bool) -> None:
        """Mark a weighted sum; with `shows`, use it to compute updates if it is linear in the parameters."""
        self._path[place], self._sum[place], self._linear[place] = reduce(_common, paths, None), True, linear
        if linear and shows:
            self._shown.append(place)

    def _inner(self) -> list[bool]:
        """Return for each node True if a weighted sum depends on it."""
        inner = [False] * len(self._steps)
        for place in range(len(self._steps) - 1, -1, -1):
            step = self._steps[place]
            if inner[place] or (self._sum[place] and step.op.name in ("dot", "mul")):
                for x in step.operands:
                    if isinstance(x, int):
                        inner[x] = True
        return inner

    def _today(self) -> list[float]:
        """Compute every value with the current parameters; nan where that is not possible."""
        numbers: list[float] = []
        for op, operands, value in self._steps:
            if op.name == "leaf":
                numbers.append(value.data)
                continue
            try:
                numbers.append(float(op.value(*[numbers[x] if isinstance(x, int) else x for x in operands])))
            except (TypeError, NotImplementedError):
                numbers.append(nan)
        return numbers


def one_pass(loss: Value, parameters: Iterable[Value]) -> list[float]:
    """Return what one `loss.backward()` adds to the gradients, scaled as its last call was, without changing `grad`."""
    graph = Graph(loss)
    found = dict(zip(graph.values, graph.pull_back({graph.outputs[0]: loss.grad}), strict=True))
    return [found.get(p, 0.0) for p in parameters]


def _common(path: Path | None, other: Path | None) -> Path | None:
    """Return the common beginning of two paths, or the longer one if there is none."""
    if path is None or other is None:
        return path or other
    return shared([path, other]) or max(path, other, key=len)


def shared(paths: Sequence[Path]) -> Path:
    """Return the common beginning of these paths."""
    first, last = min(paths), max(paths)  # these two have the shortest one in common
    pairs = enumerate(zip(first, last, strict=False))
    return first[: next((place for place, (a, b) in pairs if a != b), len(first))]


def layer_of(path: Path) -> Path:
    """Return the layer of a neuron: ("layers", "2") for ("layers", "2", "neurons", "0")."""
    if path and path[-1].isdigit():
        path = path[:-1]
        if len(path) > 1 and path[-2].isdigit() and not path[-1].isdigit():
            path = path[:-1]
    return path


def named(model: Any) -> dict[Value, Path]:
    """Return the path of every parameter of a Module, or of an object or a list that contains leaf Values."""
    if isinstance(model, type):
        return {}  # a class has none, only its objects
    if hasattr(model, "named_parameters"):
        return {p: tuple(name.split(".")) for name, p in model.named_parameters()}
    found: dict[Value, Path] = {}
    todo: list[tuple[Any, Path]] = [(model, ())]
    seen = set()
    while todo:
        item, path = todo.pop()
        if isinstance(item, Value):
            if item.is_leaf:
                found.setdefault(item, path)
            continue
        if id(item) in seen or isinstance(item, type):
            continue
        seen.add(id(item))
        parts: Iterable[tuple[Any, Any]] = ()
        if isinstance(item, Mapping):
            parts = item.items()
        elif isinstance(item, (list, tuple)):
            parts = enumerate(item)
        elif hasattr(item, "__dict__"):
            parts = vars(item).items()
        todo += [(part, (*path, str(key))) for key, part in reversed([*parts])]
    if not found and hasattr(model, "parameters"):
        found = {p: ("parameters", str(i)) for i, p in enumerate(model.parameters())}
    return found
