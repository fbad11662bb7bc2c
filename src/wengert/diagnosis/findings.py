"""The faults of a network in training: one function for each, from the evidence to a list of findings.

The list is empty if all is well. The thresholds are at the top, with their reasons.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import isfinite
from typing import Any, NamedTuple

from wengert.diagnosis.evidence import Activity, Evidence, Path, layer_of, one_pass, shared
from wengert.engine import Value
from wengert.errors import counted
from wengert.ops import BY_NAME

__all__ = ["FEW", "Finding", "has_learnt", "is_stuck", "never_updated", "never_zeroed", "not_finite", "of_curve"]
__all__ += ["of_neurons", "of_update", "out_of_range", "scales_of_inputs", "scales_of_rows", "unreached"]

NO_GRADIENT = 0.05  # of the largest derivative (tanh beyond 0.975): learning through it is twenty times slower
MOST = 0.5  # of a sum or of a layer
SCALES = 100.0  # the ratio of the largest inputs: the best learning rates then differ by a factor of 10,000
FAR = 10  # a run is too slow if it needs more than this many times its steps so far
LARGE = 10.0  # inputs beyond this are not scaled: of ordinary weights they make sums at the ends of tanh
SAME = 1e-12  # the relative difference of neurons that compute the same
LEARNT = 0.1  # a loss below this fraction of the first one has learnt enough
STOPPED = 0.9  # a loss is stuck if the last third of the run has more than this fraction of the middle third
SHORTEST = 8  # the smallest number of losses that make a curve
FEW = 4  # with fewer examples, a ReLU may be 0 for all of them, or an input small in all, by chance
SHOWN = 3  # the largest number of names in a message
TINY = 1e-6  # the squared gradient relative to the loss: below, the loss moves by less than rounding shows

SCALED = "scale the inputs: subtract from each column its mean and divide by its standard deviation"

RANGES = {"relu": (0.0, float("inf")), "tanh": (-1.0, 1.0), "sigmoid": (0.0, 1.0)}


class Finding(NamedTuple):
    """A fault that was found."""

    kind: str
    """Its name, such as "dead output ReLU"."""
    where: str
    """The layer, neuron or parameter by its name in the model, such as "layers.2.neurons.0"; "" for the whole model."""
    seen: str
    """The observation, with its numbers."""
    advice: str
    """The change to make."""

    def __str__(self) -> str:
        head = f"{self.kind}: {self.where}" if self.where else self.kind
        return f"{head}\n    seen: {self.seen}\n    do:   {self.advice}"


# -- parameters, gradients, targets, inputs ---------------------------------------------------------------------------


def not_finite(names: dict[Value, Path]) -> list[Finding]:
    """Find parameters that are nan or infinite."""
    bad = [p for p in names if not isfinite(p.data)]
    if not bad:
        return []
    seen = f"{len(bad)} of {len(names)} parameters are not finite: {_shown([_name(names[p]) for p in bad])}"
    return [Finding("learning rate too high", _name(names[bad[0]]), seen, TENTH)]


def unreached(evidence: Evidence) -> list[Finding]:
    """Find parameters that the loss does not depend on. In a table of rows, one pass may use only a few rows."""
    reached = evidence.reached
    groups: dict[Path, list[Value]] = {}
    for p, path in evidence.names.items():
        while path and path[-1].isdigit():
            path = path[:-1]
        groups.setdefault(path, []).append(p)
    missing = []
    for path, group in groups.items():
        left_out = [p for p in group if p not in reached]
        rows = len(evidence.names[group[0]]) > len(path) + 1
        if not rows or len(left_out) == len(group):
            missing += left_out
    if not missing:
        return []
    paths = [evidence.names[p] for p in missing]
    seen = f"the loss does not depend on {_shown([_name(path) for path in paths])}, {len(missing)} of "
    seen += f"{len(evidence.names)} parameters: they get no gradient"
    advice = "use them in the model; compute with Values up to the loss, not with .data; give a neuron as many inputs "
    advice += "as it has weights"
    return [Finding("unreached parameter", _name(shared(paths)), seen, advice)]


def never_zeroed(names: dict[Value, Path], losses: Sequence[Value]) -> list[Finding]:
    """Compare p.grad with the gradient of one pass."""
    parameters = list(names)
    held = [p.grad for p in parameters]
    if losses[-1].grad == 0.0 or not any(held):  # backward() was not called, or the gradients have been zeroed since
        return []
    one = one_pass(losses[-1], parameters)
    if _alike(held, one) or not any(one) or not all(map(isfinite, [*held, *one])):
        return []
    multiple = sum([h * g for h, g in zip(held, one, strict=True)]) / sum([g * g for g in one])
    passes, summed = 0, one
    if _alike(held, [multiple * g for g in one]):
        if multiple < 2.0 - 1e-9 or abs(multiple - round(multiple)) > 1e-9:
            return []  # scaled, as by clipping or averaging
        passes = round(multiple)
    else:
        for count, loss in enumerate(reversed(losses[:-1]), 2):
            summed = [s + g for s, g in zip(summed, one_pass(loss, parameters), strict=True)]
            if _alike(held, summed):
                passes = count
                break
    if passes:
        seen = f"p.grad is the sum of {passes} passes since the last zero_grad"
    else:
        worst = max(range(len(held)), key=lambda i: abs(held[i] - one[i]))
        name = _name(names[parameters[worst]])
        seen = f"p.grad has more than the last pass: for {name} it is {held[worst]:.4g}, but one pass gives "
        seen += f"{one[worst]:.4g}"
    advice = "call model.zero_grad() before each loss.backward(), unless you accumulate passes on purpose"
    return [Finding("gradients never zeroed", "", seen, advice)]


def never_updated(
    names: dict[Value, Path], losses: Sequence[Value], curve: Sequence[float], evidence: Evidence | None, made: int
) -> list[Finding]:
    """Find out if parameters with gradients do not move; `made` is the number of Values made since the loss."""
    gradients = [p.grad for p in names]
    if losses and not any(gradients):  # zeroed since
        gradients = one_pass(losses[-1], names)
    loss = losses[-1].data if losses else curve[-1] if curve else 0.0
    strong = sum([g * g for g in gradients]) > TINY * abs(loss)  # False for nan
    if not strong or not (evidence is None or evidence.unmoved()):
        return []
    if len(curve) >= FEW and min(curve) == max(curve):
        seen = f"the loss is {loss:.4g} at each of {len(curve)} steps, although the parameters have gradients"
    elif made == len(names) >= SHORTEST:
        seen = f"the parameters have not changed since the loss, although {made} Values were made since, one for each "
        seen += "parameter"
    else:
        return []
    advice = "write p.data -= lr * p.grad: p -= lr * p.grad makes a new Value named p and does not change the "
    advice += "parameter. Or call optimizer.step()"
    return [Finding("parameters never updated", "", seen, advice)]


def _alike(some: Sequence[float], others: Sequence[float]) -> bool:
    """Return True if two lists of gradients are equal up to rounding."""
    size = sum([x * x for x in some])
    return sum([(x - y) ** 2 for x, y in zip(some, others, strict=True)]) <= 1e-18 * size


def out_of_range(evidence: Evidence) -> list[Finding]:
    """Find targets outside the range of an output's activation."""
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
        span = f">= {low:g}" if high == float("inf") else f"from {low:g} to {high:g}"
        seen = f"{len(targets)} of {count[path]} targets, from {min(targets):g} to {max(targets):g}, are outside the "
        seen += f"range of {BY_NAME[name].symbol}, which is {span}"
        advice = 'leave the last layer linear, as MLP(..., output="linear") does, or scale the targets into the range'
        findings.append(Finding("target out of range", _name(path), seen, advice))
    return findings


def scales_of_inputs(inputs: dict[Path, dict[int, list[float]]]) -> list[Finding]:
    """Find inputs of the first layer that differ in scale, from the graph."""
    for layer, columns in inputs.items():
        greatest = {column: max(map(abs, numbers)) for column, numbers in columns.items() if len(numbers) >= FEW}
        if finding := _scale_finding(greatest, _name(layer)):
            return [finding]
    return []


def scales_of_rows(rows: Sequence[Any]) -> list[Finding]:
    """Find columns of the data that differ in scale."""
    if len(rows) < FEW or not all(isinstance(row, (list, tuple)) and len(row) == len(rows[0]) for row in rows):
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
    seen = f"input {large} goes up to {sizes[large]:.3g}, input {small} only to {sizes[small]:.3g}: no single learning "
    seen += "rate suits the weights of both"
    return Finding("inputs of different scale", where, seen, SCALED)


# -- neurons ----------------------------------------------------------------------------------------------------------

ANEW = "start again with a new model"
TENTH = f"{ANEW}, with a tenth of the learning rate"
GENTLER = f'{ANEW}, with a smaller learning rate or smaller initial weights: weights="scaled"'


def of_neurons(evidence: Evidence, stuck: bool) -> list[Finding]:
    """Find saturated, dead and equal neurons: outputs, then layers, and in a run that is stuck single dead ones."""
    if evidence.examples < FEW:
        return []
    findings = [f for neuron in evidence.neurons if neuron.is_output and (f := _output(neuron))]
    layers: dict[tuple[Path, str], list[Activity]] = {}
    for neuron in evidence.neurons:
        if not neuron.is_output:
            layers.setdefault((layer_of(neuron.path), neuron.activation), []).append(neuron)
    for (path, name), neurons in layers.items():
        largest = max([abs(x) for column in evidence.inputs.get(path, {}).values() for x in column], default=0.0)
        findings += _dead(path, neurons, stuck) if name == "relu" else _saturated(path, neurons, largest)
        findings += _equal(path, neurons)
    return findings


def _output(neuron: Activity) -> Finding | None:
    """Find an output at an end of its range that the loss cannot move away from there."""
    blocked = neuron.blocked(NO_GRADIENT)
    pull = sum([abs(neuron.pull[i]) for i in blocked])
    if not blocked or not pull >= MOST * sum(map(abs, neuron.pull)):  # `not` catches nan too
        return None
    count = len(neuron.out)
    if neuron.activation == "relu":
        zero = sum([slope == 0.0 for slope in neuron.slope])
        how = "all" if zero == count else f"{zero} of"
        seen = f"it is 0 for {how} {count} examples, though the loss asks for more for {len(blocked)} of them: "
        advice = 'leave the last layer linear, as MLP(..., output="linear") does, and train again from new weights'
        return Finding("dead output ReLU", neuron.name, seen + "no gradient passes", advice)
    name = BY_NAME[neuron.activation].symbol
    low, high = min([neuron.out[i] for i in blocked]), max([neuron.out[i] for i in blocked])
    stands = f"{low:.4f}" if low == high else f"between {low:.4f} and {high:.4f}"
    steepest = max([neuron.slope[i] for i in blocked])
    seen = f"it is {stands} for {len(blocked)} of {count} examples, at the wrong end of {name}, whose derivative there "
    seen += f"is {steepest:.1e} or less: hardly any gradient passes"
    return Finding(f"saturated {name}", neuron.name, seen, GENTLER)


def _dead(path: Path, neurons: list[Activity], stuck: bool) -> list[Finding]:
    """Find hidden ReLUs that are 0 for every example: at least half of a layer, or any in a run that is stuck."""
    dead = [neuron for neuron in neurons if not any(neuron.out)]
    if not dead or (len(dead) < MOST * len(neurons) and not stuck):
        return []
    count = len(dead[0].out)
    whole = "nothing passes the layer" if len(dead) == len(neurons) else "they get no gradient"
    are = "is" if len(dead) == 1 else "are"
    seen = f"{len(dead)} of {counted(len(neurons), 'ReLU')} {are} 0 for all {count} examples, so {whole}: "
    seen += _shown([neuron.name for neuron in dead])
    where = dead[0].name if len(dead) == 1 else _name(path)
    return [Finding("dead ReLU", where, seen, f'{GENTLER}; or use activation="leaky_relu"')]


def _saturated(path: Path, neurons: list[Activity], largest: float) -> list[Finding]:
    """Find a layer whose neurons are where their activation is flat: nearly all of its gradient is lost, or, of a layer
    whose largest input is not scaled, half of its neurons are there for every example.
    """
    pull = sum([abs(p) for neuron in neurons for p in neuron.pull])
    passed = sum([neuron.passed() for neuron in neurons])
    name = BY_NAME[neurons[0].activation].symbol
    flat = [neuron for neuron in neurons if max(neuron.slope) < NO_GRADIENT]
    if largest > LARGE and len(flat) >= MOST * len(neurons):
        are = "is" if len(flat) == 1 else "are"
        seen = f"{len(flat)} of {counted(len(neurons), 'neuron')} {are} at the ends of {name} for all "
        seen += f"{len(flat[0].out)} examples, so hardly any gradient passes; the inputs go up to {largest:.3g}"
        return [Finding(f"inputs saturate {name}", _name(path), seen, SCALED)]
    if len(flat) < len(neurons) and not passed < NO_GRADIENT * pull:
        return []
    if not pull > 0.0:
        seen = f"all {counted(len(neurons), 'neuron')} are at the ends of {name} for all {len(flat[0].out)} examples"
        return [Finding(f"saturated {name}", _name(path), seen, GENTLER)]
    worst = min(neurons, key=lambda neuron: sum(neuron.slope))
    seen = f"of the gradient that reaches its {counted(len(neurons), 'neuron')} only {100 * passed / pull:.2g} % "
    seen += f"passes, at the ends of {name}; the worst is {worst.name}, at {worst.out[0]:.4f} for example"
    return [Finding(f"saturated {name}", _name(path), seen, GENTLER)]


def _equal(path: Path, neurons: list[Activity]) -> list[Finding]:
    """Find neurons of a layer that have the same outputs and gradients for all examples, and so stay equal."""
    groups: list[list[Activity]] = []
    for neuron in neurons:
        if not any(neuron.slope):  # dead, and not equal by its weights
            continue
        group = next((group for group in groups if _same(group[0], neuron)), None)
        if group is None:
            groups.append([neuron])
        else:
            group.append(neuron)
    largest = max(groups, key=len, default=[])
    if len(largest) < 2:
        return []
    some = ", ".join([f"{x:.4g}" for x in largest[0].out[:SHOWN]])
    seen = f"{len(largest)} of {counted(len(neurons), 'neuron')} give the same numbers ({some}, ...) and get the same "
    seen += f"gradients for all {len(largest[0].out)} examples, so they stay equal: "
    seen += _shown([neuron.name for neuron in largest])
    advice = f"{ANEW} whose weights are drawn at random, each one by itself, as random.uniform(-1, 1): equal neurons "
    advice += "count as one"
    return [Finding("equal neurons", _name(path), seen, advice)]


def _same(one: Activity, other: Activity) -> bool:
    pairs = zip([*one.out, *one.pull], [*other.out, *other.pull], strict=False)
    return len(one.out) == len(other.out) and all(abs(a - b) <= SAME * abs(a) for a, b in pairs)


# -- the learning rate ------------------------------------------------------------------------------------------------


def of_update(evidence: Evidence, loss: Value) -> list[Finding]:
    """Examine the last update, if the parameters have moved since the loss was computed."""
    update = evidence.last_update()
    if update is None:
        return []
    multiple, today = update
    if multiple > 0.0:
        seen = f"the last update moved the parameters by +{multiple:.3g} times their gradient, uphill"
        seen += f": the loss of the same examples rose from {loss.data:.4g} to {today:.4g}" if isfinite(today) else ""
        return [Finding("wrong sign of the update", "", seen, "subtract the gradient: p.data -= lr * p.grad")]
    if today > 2.0 * loss.data > 0.0:
        seen = f"the last update, a step of {-multiple:.3g} times the gradient, raised the loss of the same examples "
        seen += f"from {loss.data:.4g} to {today:.4g}: it overshot the minimum"
        return [Finding("learning rate too high", "", seen, f"try a rate of {-multiple / 10:.3g}")]
    return []


def has_learnt(curve: Sequence[float]) -> bool:
    """Return True if the loss has fallen far enough."""
    return len(curve) >= SHORTEST and _mean(curve[-_tenth(curve) :]) <= LEARNT * curve[0] > 0.0


def is_stuck(curve: Sequence[float]) -> bool:
    """Return True if the loss has stopped falling before that."""
    if len(curve) < SHORTEST or has_learnt(curve):
        return False
    third = len(curve) // 3
    return _mean(curve[-third:]) > STOPPED * _mean(curve[-2 * third : -third])


def of_curve(curve: Sequence[float], failed: bool, sign_known: bool) -> list[Finding]:
    """Examine the loss curve; `failed` means that the loss after it was not finite."""
    finite = [isfinite(loss) for loss in curve]
    if curve and not finite[0]:  # before the first step, the learning rate cannot be the cause
        advice = "print(wengert.detect_anomaly(loss)) to see where it comes from, and check the data for nan"
        return [Finding("loss not finite", "", f"the first loss is {curve[0]}, before the first step", advice)]
    if failed or not all(finite):
        step = len(curve) if all(finite) else finite.index(False)
        seen = f"the loss of step {step} is not finite"
        seen += f", after {curve[step - 1]:.4g}" if step else ""
        return [Finding("learning rate too high", "", seen, TENTH)]
    if len(curve) < SHORTEST:
        return []
    changes = [b - a for a, b in pairwise(curve) if abs(b - a) > 1e-9 * abs(a)]
    rises = sum([change > 0.0 for change in changes])
    first, last = curve[0], _mean(curve[-_tenth(curve) :])
    if changes and rises >= 0.9 * len(changes) and last > first:
        if sign_known:
            return []
        seen = f"the loss rises at {rises} of {len(curve) - 1} steps, from {first:.4g} to {curve[-1]:.4g}"
        advice = "subtract the gradient: p.data -= lr * p.grad. If the sign is right, the learning rate is too high"
        return [Finding("wrong sign of the update", "", seen, advice)]
    third = len(curve) // 3
    early, late = _mean(curve[:third]), _mean(curve[-third:])
    jumps = _mean([abs(b - a) for a, b in pairwise(curve[-third - 1 :])])
    erratic = rises >= 0.2 * len(changes) and jumps > 0.25 * abs(late) and late > 0.7 * early
    if not sign_known and changes and (last - first > 0.05 * abs(first) or erratic):
        how = "jumps up and down and hardly falls" if erratic else "ends above where it began"
        seen = f"the loss {how}: first {first:.4g}, largest {max(curve):.4g}, last {last:.4g}"
        return [Finding("learning rate too high", "", seen, TENTH)]
    return _too_slow(curve, rises)


def _too_slow(curve: Sequence[float], rises: int) -> list[Finding]:
    """Find a loss that falls evenly but far too slowly."""
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
    seen += f"needs {needed:.2g} more steps"
    return [Finding("learning rate too low", "", seen, "multiply the learning rate by 10, and once more if that helps")]


def _tenth(curve: Sequence[float]) -> int:
    return max(1, len(curve) // 10)


def _mean(numbers: Sequence[float]) -> float:
    return sum(numbers) / len(numbers)


def _name(path: Path) -> str:
    return ".".join(path)


def _shown(names: Sequence[str]) -> str:
    return ", ".join(names[:SHOWN]) + (f" and {len(names) - SHOWN} more" if len(names) > SHOWN else "")
