"""diagnose(): why a network does not learn, from what is left of its training.

>>> import random
>>> from wengert.nn import MLP
>>> model = MLP(2, [4, 1], output="relu", rng=random.Random(0))
>>> X, Y = [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], [0.0, 1.0, 1.0, 0.0]
>>> model.layers[1].neurons[0].b.data = -3.0
>>> loss = sum((model(x) - y) ** 2 for x, y in zip(X, Y))
>>> diagnose(model, loss)
dead output ReLU: layers.1.neurons.0
    seen: it is 0 for all 4 examples, and for 2 of them the loss would have it larger: no gradient passes
    do:   leave the last layer linear, as MLP(..., output="linear") does, and train again from new weights
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from math import isfinite
from typing import Any, NamedTuple

from wengert.engine import Value
from wengert.errors import ArgumentError
from wengert.evidence import Activity, Evidence, Path, layer_of, named, one_pass
from wengert.functions import sum as total
from wengert.history import History
from wengert.losses import cross_entropy

__all__ = ["Diagnosis", "Finding", "diagnose"]

NO_GRADIENT = 0.05  # of the greatest slope (tanh beyond 0.975): what learns through it learns twenty times more slowly
MOST = 0.5  # half of a sum or of a layer
STOPPED = 0.9  # a loss that in the last third of the run is more than this share of that in the middle is stuck
LEARNT = 0.1  # a loss that has come down to this share of where it began is no reason to complain
SCALES = 100.0  # between the greatest inputs: the best rate for one is 10,000 times that for the other
FAR = 10  # how many times as long as it has run a run may still need
SHORTEST = 8  # how many losses make a curve
ROWS = 256  # the examples that are looked at, where the data are given
SHOWN = 3  # names in a message

ACTIVATIONS = {"relu": "ReLU", "tanh": "tanh", "sigmoid": "sigmoid"}
RANGES = {"relu": (0.0, float("inf")), "tanh": (-1.0, 1.0), "sigmoid": (0.0, 1.0)}


class Finding(NamedTuple):
    """One thing that is wrong."""

    kind: str
    """Its name, such as "dead output ReLU"."""
    where: str
    """The layer, neuron or parameter by its name in the model, such as "layers.2.neurons.0"; "" for all of it."""
    seen: str
    """What was seen, with its numbers."""
    advice: str
    """What to change."""

    def __str__(self) -> str:
        head = f"{self.kind}: {self.where}" if self.where else self.kind
        return f"{head}\n    seen: {self.seen}\n    do:   {self.advice}"


class Diagnosis(tuple[Finding, ...]):
    """The findings, those first that are most certain; empty if there are none. Printed, it is a report.

    Attributes:
        looked_at: what they were looked for in: "the loss curve", "the graph of the loss", ...
    """

    looked_at: tuple[str, ...]

    def __new__(cls, findings: Iterable[Finding], looked_at: Iterable[str]) -> Diagnosis:
        """Both, as they will stay."""
        made = super().__new__(cls, findings)
        made.looked_at = tuple(looked_at)
        return made

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kind of each finding."""
        return tuple([finding.kind for finding in self])

    def __repr__(self) -> str:
        if self:
            return "\n".join(map(str, self))
        return f"nothing found in {', '.join(self.looked_at)}"


def diagnose(
    model: object,
    *seen: Value | History | Iterable[float | Value],
    X: Iterable[Any] | None = None,
    Y: Iterable[Any] | None = None,
) -> Diagnosis:
    """Look for what keeps a network from learning, and say what to change.

    It looks at what is there. Pass the loss of the last step, as a Value: its graph tells what each neuron did, and
    what gradient reached it. Pass the losses of all steps, or the History that `fit` gave: they tell about the learning
    rate. Pass the data, and it tries the model on them; after `fit`, which keeps no graph, this is how neurons are
    seen. The more of these are passed, the more is found, and the less is said of a run that has gone well.

        diagnose(model, loss)                     # in a loop of your own, after loss.backward() or after the update
        diagnose(model, loss, losses)             # the same, with the loss of each step in a list
        diagnose(model, history, X=X, Y=Y)        # after fit

    What is looked for: saturated tanh (and sigmoid), dead ReLU, dead output ReLU, learning rate too high, learning
    rate too low, wrong sign of the update, gradients never zeroed, unreached parameter, target out of range, inputs of
    different scale. Nothing is changed: parameters and gradients are what they were. It takes about as long as a few
    dozen steps of training.

    Args:
        model: a Module, or an object or list that holds the parameters.
        *seen: the loss of the last step (a Value); the losses of all steps (a History, a list of floats or of Values).
            The graph of a loss that a compiled function computed holds no neurons: pass X and Y with it.
        X: the inputs, a list of rows, which the model is called with.
        Y: the targets: numbers, lists of numbers, or classes where the model gives a list.

    Raises:
        ArgumentError: there is nothing to look at, or something else among it.

    >>> from wengert.nn import MLP
    >>> model = MLP(2, [1])
    >>> diagnose(model, [4.0, 4.4, 4.84, 5.32, 5.86, 6.44, 7.09, 7.79])
    wrong sign of the update
        seen: the loss rises, at 7 of 7 steps, from 4 to 7.79
        do:   subtract the gradient: p.data -= lr * p.grad. If the sign is right, the learning rate is too high
    """
    names = named(model)
    losses, curve, failed = _sorted(seen)
    looked_at, findings = [], []
    if curve:
        looked_at.append(f"the loss curve ({len(curve)} steps)")
    learnt = len(curve) >= SHORTEST and _mean(curve[-_tenth(curve) :]) <= LEARNT * curve[0]
    third = len(curve) // 3
    stuck = (
        len(curve) >= SHORTEST and not learnt and _mean(curve[-third:]) > STOPPED * _mean(curve[-2 * third : -third])
    )
    findings += _numbers(names)
    if losses:
        evidence = Evidence(names, losses[-1])
        looked_at.append(f"the graph of the loss ({len(evidence.neurons)} neurons with an activation)")
        findings += [*_unreached(evidence), *_never_zeroed(names, losses), *_targets(evidence)]
        findings += _scales(evidence.inputs)
        findings += [] if learnt else [*_update(evidence, losses[-1]), *_neurons(evidence, stuck)]
    if X is not None:
        rows, tried = _tried(model, X, Y)
        evidence = Evidence(names, *tried)
        looked_at.append(f"{len(tried)} examples")
        findings += _unreached(evidence) if not losses else []
        findings += [*_targets(evidence), *_scales_of(rows)]
        findings += [] if learnt or Y is None else _neurons(evidence, stuck)
    if not looked_at:
        raise ArgumentError("there is nothing to look at: pass the loss, the losses or a History, or X and Y")
    if len(curve) >= SHORTEST or failed or not all(map(isfinite, curve)):
        findings += _curve(curve, failed, "wrong sign of the update" in [finding.kind for finding in findings])
    unique = {(finding.kind, finding.where): finding for finding in reversed(findings)}
    return Diagnosis(reversed(unique.values()), looked_at)


def _sorted(seen: Iterable[Any]) -> tuple[list[Value], list[float], bool]:
    """The losses that have graphs, the curve, and whether a run ended at a loss that was not finite."""
    losses: list[Value] = []
    curve: list[float] = []
    failed = False
    for thing in seen:
        if isinstance(thing, Value):
            losses.append(thing)
            continue
        items = thing.loss if isinstance(thing, History) else thing
        if isinstance(items, str) or not isinstance(items, Iterable):
            raise ArgumentError(f"{thing!r:.60} is no loss: pass a Value, a History or a list of losses")
        items = list(items)
        failed |= isinstance(thing, History) and thing.diverged
        graphs = [loss for loss in items if isinstance(loss, Value) and not loss.is_leaf]
        losses = [*graphs, *[loss for loss in losses if loss not in graphs]]
        try:
            curve += [loss.data if isinstance(loss, Value) else float(loss) for loss in items]
        except (TypeError, ValueError):
            raise ArgumentError(f"a list of losses holds numbers, not {items[0]!r:.60}") from None
    return losses, curve, failed


def _tried(model: Any, X: Iterable[Any], Y: Iterable[Any] | None) -> tuple[list[Any], list[Value]]:
    """Some rows of X, and for each a loss of what the model gives for it; without Y, the sum of what it gives."""
    rows, targets = _native(X), None if Y is None else _native(Y)
    if not rows:
        raise ArgumentError("X is empty: there is nothing to look at")
    if targets is not None and len(targets) != len(rows):
        raise ArgumentError(f"X has {len(rows)} rows, Y has {len(targets)}")
    step = -(-len(rows) // ROWS)
    rows, targets = rows[::step], None if targets is None else targets[::step]
    losses: list[Any] = []
    for i, row in enumerate(rows):
        made = model(row)
        out = made if isinstance(made, (list, tuple)) else [made]
        if targets is None:
            losses.append(total(out))
        elif isinstance(made, (list, tuple)) and not isinstance(targets[i], (list, tuple)):
            losses.append(cross_entropy(made, int(targets[i])))
        else:
            wanted = targets[i] if isinstance(targets[i], (list, tuple)) else [targets[i]]
            losses.append(total([(o - t) ** 2 for o, t in zip(out, wanted, strict=True)]))
    return rows, [loss for loss in losses if isinstance(loss, Value)]


def _native(data: Any) -> list[Any]:
    """Rows of Python's own numbers."""
    for convert in ("to_numpy", "tolist"):
        if hasattr(data, convert):
            data = getattr(data, convert)()
    return list(data)


# -- parameters, gradients, targets, inputs ---------------------------------------------------------------------------


def _numbers(names: dict[Value, Path]) -> list[Finding]:
    bad = [p for p in names if not isfinite(p.data)]
    if not bad:
        return []
    seen = f"{len(bad)} of {len(names)} parameters are not finite: {_shown([_name(names[p]) for p in bad])}"
    return [Finding("learning rate too high", _name(names[bad[0]]), seen, f"{ANEW}, with a tenth of the learning rate")]


def _unreached(evidence: Evidence) -> list[Finding]:
    """Parameters that are not under the loss. Of a table of rows, those of a few rows may be, in one pass."""
    reached = evidence.reached
    groups: dict[Path, list[Value]] = {}
    for p, path in evidence.names.items():
        while path and path[-1].isdigit():
            path = path[:-1]
        groups.setdefault(path, []).append(p)
    missing = []
    for path, group in groups.items():
        unreached = [p for p in group if p not in reached]
        rows = len(evidence.names[group[0]]) > len(path) + 1
        if not rows or len(unreached) == len(group):
            missing += unreached
    if not missing:
        return []
    paths = [evidence.names[p] for p in missing]
    seen = f"the loss was computed without {_shown([_name(path) for path in paths])}, {len(missing)} of "
    seen += f"{len(evidence.names)} parameters: they get no gradient"
    advice = "use them in the model; compute with Values to the end, not with .data; give a neuron as many inputs as "
    advice += "it has weights"
    shared = 0
    while len(paths[0]) > shared and all(path[: shared + 1] == paths[0][: shared + 1] for path in paths):
        shared += 1
    return [Finding("unreached parameter", _name(paths[0][:shared]), seen, advice)]


def _never_zeroed(names: dict[Value, Path], losses: Sequence[Value]) -> list[Finding]:
    """Compare what p.grad holds with what one pass gives."""
    parameters = list(names)
    held = [p.grad for p in parameters]
    if losses[-1].grad == 0.0 or not any(held):  # backward() was not called on it, or all has been zeroed since
        return []
    one = one_pass(losses[-1], parameters)
    if _alike(held, one) or not any(one):
        return []
    multiple = sum([h * g for h, g in zip(held, one, strict=True)]) / sum([g * g for g in one])
    passes, summed = 0, one
    if _alike(held, [multiple * g for g in one]):
        if multiple < 2.0 - 1e-9 or abs(multiple - round(multiple)) > 1e-9:
            return []  # scaled: clipped, or averaged
        passes = round(multiple)
    else:
        for count, loss in enumerate(reversed(losses[:-1]), 2):
            summed = [s + g for s, g in zip(summed, one_pass(loss, parameters), strict=True)]
            if _alike(held, summed):
                passes = count
                break
    if passes:
        seen = f"p.grad holds {passes} passes since the last zero_grad"
    else:
        worst = max(range(len(held)), key=lambda i: abs(held[i] - one[i]))
        name = _name(names[parameters[worst]])
        seen = f"p.grad holds more than the last pass: of {name} it is {held[worst]:.4g}, and one pass gives "
        seen += f"{one[worst]:.4g}"
    advice = "call model.zero_grad() before each loss.backward(), unless you add up passes on purpose"
    return [Finding("gradients never zeroed", "", seen, advice)]


def _alike(some: Sequence[float], others: Sequence[float]) -> bool:
    """Whether two lists of gradients are the same to rounding."""
    size = sum([x * x for x in some])
    return sum([(x - y) ** 2 for x, y in zip(some, others, strict=True)]) <= 1e-18 * size


def _targets(evidence: Evidence) -> list[Finding]:
    """Targets that an output cannot give, however it learns."""
    beyond: dict[tuple[Path, str], list[float]] = {}
    count: dict[Path, int] = {}
    for path, name, target in evidence.targets:
        low, high = RANGES[name]
        count[path] = count.get(path, 0) + 1
        if not low <= target <= high:
            beyond.setdefault((path, name), []).append(target)
    findings = []
    for (path, name), targets in beyond.items():
        low, high = RANGES[name]
        span = f"from {low:g} up" if high == float("inf") else f"from {low:g} to {high:g}"
        seen = f"{len(targets)} of {count[path]} targets, from {min(targets):g} to {max(targets):g}, are none that "
        seen += f"{ACTIVATIONS[name]} can give: it goes {span}"
        advice = 'leave the last layer linear, as MLP(..., output="linear") does, or scale the targets into the range'
        findings.append(Finding("target out of range", _name(path), seen, advice))
    return findings


def _scales(inputs: dict[Path, dict[int, list[float]]]) -> list[Finding]:
    """Inputs of the first layer, as its weights met them."""
    for layer, columns in inputs.items():
        greatest = {column: max(map(abs, numbers)) for column, numbers in columns.items()}
        if finding := _scale_finding(greatest, _name(layer)):
            return [finding]
    return []


def _scales_of(rows: Sequence[Any]) -> list[Finding]:
    if not all(isinstance(row, (list, tuple)) and len(row) == len(rows[0]) for row in rows):
        return []
    greatest = {
        column: max(map(abs, numbers))
        for column, numbers in enumerate(zip(*rows, strict=True))
        if all(isinstance(x, (int, float)) for x in numbers)
    }
    finding = _scale_finding(greatest, "")
    return [finding] if finding else []


def _scale_finding(greatest: dict[int, float], where: str) -> Finding | None:
    sizes = {column: size for column, size in greatest.items() if size > 0.0 and isfinite(size)}
    if not sizes:
        return None
    large, small = max(sizes, key=sizes.__getitem__), min(sizes, key=sizes.__getitem__)
    if sizes[large] < SCALES * sizes[small]:
        return None
    seen = f"input {large} goes up to {sizes[large]:.3g}, input {small} only to {sizes[small]:.3g}: no one learning "
    seen += "rate suits the weights of both"
    advice = "scale the inputs: subtract from each column its mean and divide by its standard deviation"
    return Finding("inputs of different scale", where, seen, advice)


# -- neurons ----------------------------------------------------------------------------------------------------------

ANEW = "make the model anew"
GENTLER = f'{ANEW}, and train it with a smaller learning rate, or from smaller weights: weights="scaled"'


def _neurons(evidence: Evidence, stuck: bool) -> list[Finding]:
    """Saturated and dead neurons: first the outputs, then layers, then, in a run that is stuck, single neurons."""
    findings = [f for neuron in evidence.neurons if neuron.is_output and (f := _output(neuron))]
    layers: dict[tuple[Path, str], list[Activity]] = {}
    for neuron in evidence.neurons:
        if not neuron.is_output and len(neuron.out) > 1:
            layers.setdefault((layer_of(neuron.path), neuron.activation), []).append(neuron)
    for (path, name), neurons in layers.items():
        findings += _dead(path, neurons, stuck) if name == "relu" else _saturated(path, neurons)
    return findings


def _output(neuron: Activity) -> Finding | None:
    """An output that the loss pulls back from the end of its range, in vain."""
    blocked = neuron.blocked(NO_GRADIENT)
    pull = sum([abs(neuron.pull[i]) for i in blocked])
    if not blocked or pull < MOST * sum(map(abs, neuron.pull)):
        return None
    count = len(neuron.out)
    if neuron.activation == "relu":
        zero = sum([slope == 0.0 for slope in neuron.slope])
        how = "all" if zero == count else f"{zero} of"
        seen = f"it is 0 for {how} {count} examples, and for {len(blocked)} of them the loss would have it larger: "
        advice = 'leave the last layer linear, as MLP(..., output="linear") does, and train again from new weights'
        return Finding("dead output ReLU", neuron.name, seen + "no gradient passes", advice)
    name = ACTIVATIONS[neuron.activation]
    low, high = min([neuron.out[i] for i in blocked]), max([neuron.out[i] for i in blocked])
    stands = f"{low:.4f}" if low == high else f"between {low:.4f} and {high:.4f}"
    steepest = max([neuron.slope[i] for i in blocked])
    seen = f"it is {stands} for {len(blocked)} of {count} examples, at the wrong end of {name}, whose slope there is "
    seen += f"{steepest:.1e} or less: hardly any gradient passes"
    return Finding(f"saturated {name}", neuron.name, seen, GENTLER)


def _dead(path: Path, neurons: list[Activity], stuck: bool) -> list[Finding]:
    """Hidden ReLUs that are 0 for every example: all of a layer, half of it, or any in a run that is stuck."""
    dead = [neuron for neuron in neurons if not any(neuron.out)]
    if not dead or (len(dead) < MOST * len(neurons) and not stuck):
        return []
    count = len(dead[0].out)
    whole = "nothing passes the layer" if len(dead) == len(neurons) else "they get no gradient"
    seen = f"{len(dead)} of {len(neurons)} ReLUs are 0 for all {count} examples, and {whole}: "
    seen += _shown([neuron.name for neuron in dead])
    where = dead[0].name if len(dead) == 1 else _name(path)
    return [Finding("dead ReLU", where, seen, f'{GENTLER}; or take activation="leaky_relu"')]


def _saturated(path: Path, neurons: list[Activity]) -> list[Finding]:
    """A layer whose neurons all stand where their activation is flat."""
    pull = sum([abs(p) for neuron in neurons for p in neuron.pull])
    passed = sum([neuron.passed() for neuron in neurons])
    if not pull or passed >= NO_GRADIENT * pull:
        return []
    name = ACTIVATIONS[neurons[0].activation]
    worst = min(neurons, key=lambda neuron: sum(neuron.slope))
    seen = (
        f"of the gradient that reaches its {len(neurons)} neurons {100 * passed / pull:.2g} % passes, for they stand "
    )
    seen += f"at the ends of {name}; first of all {worst.name}, at {worst.out[0]:.4f} and the like"
    return [Finding(f"saturated {name}", _name(path), seen, GENTLER)]


# -- the learning rate ------------------------------------------------------------------------------------------------


def _update(evidence: Evidence, loss: Value) -> list[Finding]:
    """What the last update did, where the parameters have moved since the loss was computed."""
    update = evidence.last_update()
    if update is None:
        return []
    multiple, today = update
    if multiple > 0.0:
        seen = f"the last update moved the parameters by +{multiple:.3g} times their gradient, uphill"
        seen += f": the loss of the same examples went from {loss.data:.4g} to {today:.4g}" if isfinite(today) else ""
        return [Finding("wrong sign of the update", "", seen, "subtract the gradient: p.data -= lr * p.grad")]
    if today > 2.0 * loss.data > 0.0:
        seen = f"the last update, a step of {-multiple:.3g} times the gradient, made the loss of the same examples "
        seen += f"{today:.4g}, from {loss.data:.4g}: it went beyond the valley"
        return [Finding("learning rate too high", "", seen, f"try a rate of {-multiple / 10:.3g}")]
    return []


def _curve(curve: Sequence[float], failed: bool, sign_known: bool) -> list[Finding]:
    """What the losses tell, one after the other."""
    finite = [isfinite(loss) for loss in curve]
    if failed or not all(finite):
        step = finite.index(False) if not all(finite) else len(curve)
        seen = f"the loss of step {step} is not finite"
        seen += f", after {curve[step - 1]:.4g}" if step else ""
        return [Finding("learning rate too high", "", seen, f"{ANEW}, with a tenth of the learning rate")]
    changes = [b - a for a, b in pairwise(curve) if abs(b - a) > 1e-9 * abs(a)]
    rises = sum([change > 0.0 for change in changes])
    first, last = curve[0], _mean(curve[-_tenth(curve) :])
    if changes and rises >= 0.9 * len(changes) and last > first:
        if sign_known:
            return []
        seen = f"the loss rises, at {rises} of {len(curve) - 1} steps, from {first:.4g} to {curve[-1]:.4g}"
        advice = "subtract the gradient: p.data -= lr * p.grad. If the sign is right, the learning rate is too high"
        return [Finding("wrong sign of the update", "", seen, advice)]
    third = len(curve) // 3
    early, late = _mean(curve[:third]), _mean(curve[-third:])
    jumps = _mean([abs(b - a) for a, b in pairwise(curve[-third - 1 :])])
    erratic = rises >= 0.2 * len(changes) and jumps > 0.25 * abs(late) and late > 0.7 * early
    if not sign_known and changes and (last > 1.05 * first or erratic):
        how = "jumps up and down and hardly falls" if erratic else "ends above where it began"
        seen = f"the loss {how}: {first:.4g} at first, {max(curve):.4g} at most, {last:.4g} in the end"
        return [Finding("learning rate too high", "", seen, f"{ANEW}, with a tenth of the learning rate")]
    return _too_slow(curve, rises)


def _too_slow(curve: Sequence[float], rises: int) -> list[Finding]:
    """A loss that falls evenly, at a pace that leads nowhere: it does not level off, it has hardly begun."""
    steps, middle = len(curve) - 1, (len(curve) - 1) // 2
    before, since = curve[0] - curve[middle], curve[middle] - curve[-1]
    even = since >= 0.5 * before > 0.0 and rises <= 0.05 * steps
    if not even or curve[-1] <= 0.0:
        return []
    needed = curve[-1] * (steps - middle) / since
    if needed < FAR * steps:
        return []
    seen = (
        f"the loss falls evenly and slowly, from {curve[0]:.4g} to {curve[-1]:.4g} in {steps} steps: at this pace it "
    )
    seen += f"needs {needed:.2g} more"
    return [
        Finding("learning rate too low", "", seen, "make the learning rate ten times as great, and again if it helps")
    ]


def _tenth(curve: Sequence[float]) -> int:
    return max(1, len(curve) // 10)


def _mean(numbers: Sequence[float]) -> float:
    return sum(numbers) / len(numbers)


def _name(path: Path) -> str:
    return ".".join(path)


def _shown(names: Sequence[str]) -> str:
    return ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")
