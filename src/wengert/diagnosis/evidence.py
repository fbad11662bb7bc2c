"""What the graph under a loss tells of the neurons that made it: the evidence of a diagnosis.

A neuron is found by its form: an activation (ReLU, tanh, sigmoid) of a weighted sum, which is a `dot` with parameters,
or products with parameters added up by hand. It bears the name that its parameters have in common, such as
`layers.2.neurons.0`. An activation of anything else, as in a hinge loss, is none.
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
STEEPEST = {"relu": 1.0, "tanh": 1.0, "sigmoid": 0.25}  # its greatest slope
SUMS = ("add", "sub", "neg", "sum")
FEWEST = 4  # weighted sums that must have changed alike: fewer do so by chance
ERRORS = ("mul", "pow", "square", "abs")  # what is made of prediction - target


class Activity(NamedTuple):
    """What one neuron did, example by example."""

    path: Path
    activation: str
    is_output: bool  # whether no other neuron reads it
    out: list[float]
    slope: list[float]  # of the activation, as a share of its greatest
    pull: list[float]  # the gradient of the neuron's output: above 0 the loss would have it smaller

    @property
    def name(self) -> str:
        """Its name in the model."""
        return ".".join(self.path)

    def blocked(self, threshold: float) -> list[int]:
        """The examples at which it stands at an end of its range, and the loss would have it come back.

        There the slope is below `threshold`, so that hardly any gradient passes.
        """
        middle = 0.5 * (ENDS[self.activation][0] + ENDS[self.activation][-1])
        return [
            i
            for i, (out, slope, pull) in enumerate(zip(self.out, self.slope, self.pull, strict=True))
            if slope < threshold and (pull > 0.0 if out > middle else pull < 0.0)
        ]

    def passed(self) -> float:
        """The sum of the gradients that pass through it, without their signs."""
        return sum([abs(slope * pull) for slope, pull in zip(self.slope, self.pull, strict=True)])


class Evidence:
    """The neurons, the targets and the inputs in the graphs under some losses.

    Args:
        names: the path of each parameter.
        *losses: of one pass: together they are what was minimised.

    Attributes:
        graph: all that is under them.
        neurons: those that were found, in the order in which they were made.
        targets: (the neuron that gives the output, the target that it is compared with) for each example.
        inputs: the constants that a layer's weights were multiplied with, example by example: {layer: {place: [...]}}.
    """

    def __init__(self, names: Mapping[Value, Path], *losses: Value) -> None:
        self.names: Mapping[Value, Path] = names
        self.graph: Graph = Graph(*losses)
        self._steps = list(self.graph)
        self.neurons: list[Activity] = []
        self.targets: list[tuple[Path, str, float]] = []
        self.inputs: dict[Path, dict[int, list[float]]] = {}
        self._shown: list[int] = []  # the weighted sums of inputs, in which an update of the parameters shows
        n = len(self._steps)
        self._path: list[Path | None] = [None] * n  # of a parameter, or what those of a weighted sum have in common
        self._sum = [False] * n  # whether it is a weighted sum
        self._first: dict[Path, Path] = {}  # the weights of a layer's first neuron, whose inputs stand for all
        self._linear = [False] * n  # whether it is one of inputs, linear in the parameters
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
        """How many examples the neurons were seen with."""
        return max([len(neuron.out) for neuron in self.neurons], default=0)

    @property
    def reached(self) -> set[Value]:
        """The parameters under the losses."""
        return {self.graph.values[i] for i in self.graph.leaves if self.graph.values[i] in self.names}

    def last_update(self) -> tuple[float, float] | None:
        """By what multiple of their gradients the parameters have moved since; None if they have not, or not alike.

        The weighted sums of the first layer are linear in the parameters, so they tell it: each has changed by that
        multiple of its derivative along the gradient, if the parameters have. Returned with it: the loss today.
        """
        if len(self._shown) < FEWEST:
            return None
        today, values = self._today(), self.graph.values
        slopes = self.graph.push_forward({i: values[i].grad for i in self.graph.leaves if values[i] in self.names})
        moves = [(values[i].data, today[i] - values[i].data, slopes[i]) for i in self._shown]
        size, change, along = (sum([x * x for x in column]) for column in zip(*moves, strict=True))
        if not (change > 1e-20 * size and along > 0.0 and isfinite(change) and isfinite(along)):
            return None  # they have moved by no more than rounding, or there is no gradient to compare with
        multiple = sum([c * d for _, c, d in moves]) / along
        rest = sum([(c - multiple * d) ** 2 for _, c, d in moves])
        if rest > 1e-9 * change:  # an update by another rule: momentum, Adam
            return None
        return multiple, sum([today[i] for i in self.graph.outputs])

    def unmoved(self) -> bool:
        """Whether the parameters are those of the losses still: all that is under these comes out as it did."""
        pairs = zip(self._today(), self.graph.values, strict=True)
        return all(abs(today - value.data) <= 1e-12 * (1.0 + abs(value.data)) for today, value in pairs)

    # -- reading the graph --------------------------------------------------------------------------------------------

    def _read(self, place: int, step: Instruction, active: dict[int, tuple[Path, str]], errors: dict[int, Any]) -> None:
        """Tell weighted sums, the activations of them, and outputs less their targets, either way round."""
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
        """The number of a constant, or of a leaf that is no parameter; else None."""
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
        """A sum: weighted if all that is added is, or a parameter; so may the 0 be that sum() starts with."""
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
        """A weighted sum stands here; `shows`: it shows an update of the parameters, if it is linear in them."""
        self._path[place], self._sum[place], self._linear[place] = reduce(_common, paths, None), True, linear
        if linear and shows:
            self._shown.append(place)

    def _inner(self) -> list[bool]:
        """For each place whether a weighted sum is made of it, at once or by way of others."""
        inner = [False] * len(self._steps)
        for place in range(len(self._steps) - 1, -1, -1):
            step = self._steps[place]
            if inner[place] or (self._sum[place] and step.op.name in ("dot", "mul")):
                for x in step.operands:
                    if isinstance(x, int):
                        inner[x] = True
        return inner

    def _today(self) -> list[float]:
        """Every value with the parameters as they are now; nan where that cannot be computed."""
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
    """What one `loss.backward()` adds to the gradients, of the size it was last called with; `grad` stays."""
    graph = Graph(loss)
    found = dict(zip(graph.values, graph.pull_back({graph.outputs[0]: loss.grad}), strict=True))
    return [found.get(p, 0.0) for p in parameters]


def _common(path: Path | None, other: Path | None) -> Path | None:
    """What two paths begin with; where that is nothing, the longer of them."""
    if path is None or other is None:
        return path or other
    return shared([path, other]) or max(path, other, key=len)


def shared(paths: Sequence[Path]) -> Path:
    """What all of these paths begin with."""
    first, last = min(paths), max(paths)  # these two differ first
    pairs = enumerate(zip(first, last, strict=False))
    return first[: next((place for place, (a, b) in pairs if a != b), len(first))]


def layer_of(path: Path) -> Path:
    """The layer of a neuron: ("layers", "2") of ("layers", "2", "neurons", "0")."""
    if path and path[-1].isdigit():
        path = path[:-1]
        if len(path) > 1 and path[-2].isdigit() and not path[-1].isdigit():
            path = path[:-1]
    return path


def named(model: Any) -> dict[Value, Path]:
    """Every parameter of a model and the path to it: a Module, or an object or a list that holds leaf Values."""
    if isinstance(model, type):
        return {}  # a class holds none: those of its objects differ
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
