"""`diagnose`, and the report that it returns."""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite
from typing import Any

from wengert import modes
from wengert.diagnosis import findings as faults
from wengert.diagnosis.evidence import Evidence, named
from wengert.diagnosis.findings import FEW, Finding
from wengert.engine import Value
from wengert.errors import ArgumentError, DataError, LengthError, counted
from wengert.functions import sum as total
from wengert.losses import cross_entropy, mse
from wengert.node import CODE
from wengert.ops import coerce
from wengert.training import History, native, same_random_numbers

__all__ = ["Diagnosis", "diagnose"]

ROWS = 256  # the largest number of examples that the model is tried on


class Diagnosis(tuple[Finding, ...]):
    """The findings, the most certain first; empty if there are none. Printed, it is a report.

    Attributes:
        looked_at: the evidence that was examined: "the loss curve", "the graph of the loss", ...
    """

    looked_at: tuple[str, ...]

    def __new__(cls, findings: Iterable[Finding], looked_at: Iterable[str]) -> Diagnosis:
        """Make a report of findings and evidence."""
        made = super().__new__(cls, findings)
        made.looked_at = tuple(looked_at)
        return made

    def __getnewargs__(self) -> tuple[tuple[Finding, ...], tuple[str, ...]]:
        """Return the arguments for copies and pickles."""
        return tuple(self), self.looked_at

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kind of each finding."""
        return tuple([finding.kind for finding in self])

    def __repr__(self) -> str:
        if self:
            return "\n".join(map(str, self))
        return f"no faults found in {', '.join(self.looked_at)}"


@modes.recorded()
def diagnose(
    model: object,
    *seen: Value | History | Iterable[float | Value],
    X: Iterable[Any] | None = None,
    Y: Iterable[Any] | None = None,
) -> Diagnosis:
    """Find out why a network does not learn, and what to change.

    Pass the loss of the last step as a Value: its graph shows what each neuron did and what gradient reached it. Pass
    the losses of all steps, or the History of `fit`: they show if the learning rate is right. Pass the data: the model
    is then tried on them, which is the way to examine neurons after `fit`, as it keeps no graph. The more of these you
    pass, the more faults are found, and the fewer false alarms are raised.

        diagnose(model, loss)                     # in your own loop, after loss.backward() or after the update
        diagnose(model, loss, losses)             # the same, with a list of the losses of all steps
        diagnose(model, history, X=X, Y=Y)        # after fit

    It finds: saturated tanh (and sigmoid), inputs that saturate it, equal neurons, dead ReLU, dead output ReLU,
    loss not finite, learning rate too high, learning rate too low, wrong sign of the update, parameters never
    updated, gradients never zeroed, unreached parameter, target out of range, inputs of different scale. It changes
    neither parameters nor gradients, and takes about as long as a few dozen training steps.

    Args:
        model: a Module, or an object or list that contains the parameters.
        *seen: the loss of the last step (a Value); the losses of all steps (a History, a list of floats or of Values).
            The graph of a compiled loss has no neurons: pass X and Y too.
        X: the inputs, a list of rows for the model.
        Y: the targets: numbers, lists of numbers, or classes if the model returns a list.

    Raises:
        ArgumentError: nothing to examine was passed, or something that cannot be examined.
        DataError: X or Y is empty or has a number that is not finite, or a target is not a class.
        LengthError: X and Y differ in length.

    >>> from wengert.nn import MLP
    >>> model = MLP(2, [1])
    >>> diagnose(model, [4.0, 4.4, 4.84, 5.32, 5.86, 6.44, 7.09, 7.79])
    wrong sign of the update
        seen: the loss rises at 7 of 7 steps, from 4 to 7.79
        do:   subtract the gradient: p.data -= lr * p.grad. If the sign is right, the learning rate is too high
    """
    names = named(model)
    losses, curve, failed = _sorted(seen)
    made = (Value(0.0)._made - (losses[-1]._made & ~CODE)) // (CODE + 1) - 1 if losses else 0  # since the last loss
    looked_at, findings = [], []
    if curve:
        looked_at.append(f"the loss curve ({counted(len(curve), 'step')})")
    learnt, stuck = faults.has_learnt(curve), faults.is_stuck(curve)
    findings += faults.not_finite(names)
    if Y is not None and X is None:
        raise ArgumentError("Y was passed without X: pass both, or neither")
    if not names and (losses or X is not None):
        raise ArgumentError(f"{model!r:.60} has no parameters: pass a Module, or a list of parameters")
    evidence = Evidence(names, losses[-1]) if losses else None
    findings += faults.never_updated(names, losses, curve, evidence, made)
    if evidence is not None:
        count, examples = len(evidence.neurons), evidence.examples
        few = ", too few to judge neurons by" if 0 < examples < FEW else ""
        of = f"{counted(count, 'neuron')} with an activation, {counted(examples, 'example')}{few}"
        looked_at.append(f"the graph of the loss ({of})")
        findings += [*faults.unreached(evidence), *faults.never_zeroed(names, losses), *faults.out_of_range(evidence)]
        findings += faults.scales_of_inputs(evidence.inputs)
        findings += [] if learnt else [*faults.of_update(evidence, losses[-1]), *faults.of_neurons(evidence, stuck)]
    if X is not None:
        rows, tried = _tried(model, X, Y)
        evidence = Evidence(names, *(tried or [Value(0.0)]))  # a model that returns floats reaches no parameter
        looked_at.append(f"the model, tried on {counted(len(rows), 'example')}")
        findings += faults.unreached(evidence) if not losses else []
        findings += [*faults.out_of_range(evidence), *faults.scales_of_rows(rows)]
        findings += [] if learnt or Y is None else faults.of_neurons(evidence, stuck)
    if not looked_at:
        raise ArgumentError("there is nothing to examine: pass the loss, the losses or a History, or X and Y")
    findings += faults.of_curve(curve, failed, "wrong sign of the update" in [finding.kind for finding in findings])
    unique = {(finding.kind, finding.where): finding for finding in reversed(findings)}
    return Diagnosis(reversed(unique.values()), looked_at)


def _sorted(seen: Iterable[Any]) -> tuple[list[Value], list[float], bool]:
    """Return the losses with graphs, the curve, and True if a run ended because a loss was not finite."""
    losses: list[Value] = []
    curve: list[float] = []
    failed = False
    for thing in seen:
        if isinstance(thing, Value):
            losses = [*[loss for loss in losses if loss is not thing], thing]
            continue
        items = thing.loss if isinstance(thing, History) else thing
        if isinstance(items, str) or not isinstance(items, Iterable):
            raise ArgumentError(f"{thing!r:.60} is not a loss: pass a Value, a History or a list of losses")
        items = list(items)
        failed |= isinstance(thing, History) and thing.diverged
        graphs = [loss for loss in items if isinstance(loss, Value) and not loss.is_leaf]
        losses = [*graphs, *[loss for loss in losses if loss not in graphs]]
        for loss in items:
            try:
                curve.append(loss.data if isinstance(loss, Value) else float(loss))
            except (TypeError, ValueError):
                raise ArgumentError(f"expected a list of numbers or Values, found {coerce.named(loss)}") from None
    return losses, curve, failed


def _tried(model: Any, X: Iterable[Any], Y: Iterable[Any] | None) -> tuple[list[Any], list[Value]]:
    """Return some rows of X, and for each a loss of the model's prediction; without Y, the sum of the outputs."""
    if not callable(model):
        raise ArgumentError(
            f"X needs a model that can be called, and {coerce.named(model)} cannot be: pass the model itself"
        )
    rows, targets = _finite("X", X), None if Y is None else _finite("Y", Y)
    if not rows:
        raise DataError("X is empty: expected at least one row")
    if targets is not None and len(targets) != len(rows):
        raise LengthError(f"X has {counted(len(rows), 'row')} but Y has {len(targets)}; expected as many of each")
    step = -(-len(rows) // ROWS)
    rows, targets = rows[::step], None if targets is None else targets[::step]
    with same_random_numbers():
        made = [model(row) for row in rows]
    losses: list[Any] = []
    for i, out in enumerate(made):
        several = isinstance(out, (list, tuple))
        if targets is None:
            losses.append(total(out if several else [out]))
        elif several and not isinstance(targets[i], (list, tuple)):
            losses.append(cross_entropy(out, _class(targets[i])))
        else:
            losses.append(mse(out, targets[i]))
    return rows, [loss for loss in losses if isinstance(loss, Value)]


def _class(target: Any) -> Any:
    """Convert a target to a class, which arrays of floats may contain as a float."""
    return int(target) if isinstance(target, float) and target.is_integer() else target


def _finite(name: str, data: Any) -> list[Any]:
    """Convert data to rows of Python numbers, and check that they are finite."""
    data = native(data)
    if not isinstance(data, Iterable):
        raise ArgumentError(f"{name} is {coerce.named(data)}; expected a list of examples")
    rows = list(data)
    for place, row in enumerate(rows):
        for x in row if isinstance(row, (list, tuple)) else [row]:
            if isinstance(x, float) and not isfinite(x):
                raise DataError(f"{name}[{place}] has {x}; expected finite numbers")
    return rows
