"""The function that looks for what is wrong, and the report that it gives."""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite
from typing import Any

from wengert import modes
from wengert.diagnosis import findings as faults
from wengert.diagnosis.evidence import Evidence, named
from wengert.diagnosis.findings import FEW, Finding
from wengert.engine import Value
from wengert.errors import ArgumentError, DataError, LengthError
from wengert.functions import sum as total
from wengert.losses import cross_entropy, mse
from wengert.node import CODE
from wengert.ops import coerce
from wengert.training import History, native, same_random_numbers

__all__ = ["Diagnosis", "diagnose"]

ROWS = 256  # the examples that are looked at, where the data are given


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

    def __getnewargs__(self) -> tuple[tuple[Finding, ...], tuple[str, ...]]:
        """Both, for copies and pickles."""
        return tuple(self), self.looked_at

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kind of each finding."""
        return tuple([finding.kind for finding in self])

    def __repr__(self) -> str:
        if self:
            return "\n".join(map(str, self))
        return f"nothing found in {', '.join(self.looked_at)}"


@modes.recorded()
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

    What is looked for: saturated tanh (and sigmoid), dead ReLU, dead output ReLU, loss not finite, learning rate too
    high, learning rate too low, wrong sign of the update, parameters never updated, gradients never zeroed, unreached
    parameter, target out of range, inputs of different scale. Nothing is changed: parameters and gradients are what
    they were. It takes about as long as a few dozen steps of training.

    Args:
        model: a Module, or an object or list that holds the parameters.
        *seen: the loss of the last step (a Value); the losses of all steps (a History, a list of floats or of Values).
            The graph of a loss that a compiled function computed holds no neurons: pass X and Y with it.
        X: the inputs, a list of rows, which the model is called with.
        Y: the targets: numbers, lists of numbers, or classes where the model gives a list.

    Raises:
        ArgumentError: there is nothing to look at, or something else among it.
        DataError: X or Y is empty, or holds what is no finite number; or a target is of no class.
        LengthError: X and Y differ in length.

    >>> from wengert.nn import MLP
    >>> model = MLP(2, [1])
    >>> diagnose(model, [4.0, 4.4, 4.84, 5.32, 5.86, 6.44, 7.09, 7.79])
    wrong sign of the update
        seen: the loss rises, at 7 of 7 steps, from 4 to 7.79
        do:   subtract the gradient: p.data -= lr * p.grad. If the sign is right, the learning rate is too high
    """
    names = named(model)
    losses, curve, failed = _sorted(seen)
    made = (Value(0.0)._made - (losses[-1]._made & ~CODE)) // (CODE + 1) - 1 if losses else 0  # since the last loss
    looked_at, findings = [], []
    if curve:
        looked_at.append(f"the loss curve ({len(curve)} steps)")
    learnt, stuck = faults.has_learnt(curve), faults.is_stuck(curve)
    findings += faults.not_finite(names)
    if Y is not None and X is None:
        raise ArgumentError("Y was given without X: pass both, or neither")
    if not names and (losses or X is not None):
        raise ArgumentError(f"no parameters are found in {model!r:.60}: pass a Module, or a list of the parameters")
    evidence = Evidence(names, losses[-1]) if losses else None
    findings += faults.never_updated(names, losses, curve, evidence, made)
    if evidence is not None:
        count, examples = len(evidence.neurons), evidence.examples
        few = ", too few to judge neurons by" if 0 < examples < FEW else ""
        looked_at.append(f"the graph of the loss ({count} neurons with an activation, {examples} examples{few})")
        findings += [*faults.unreached(evidence), *faults.never_zeroed(names, losses), *faults.out_of_range(evidence)]
        findings += faults.scales_of_inputs(evidence.inputs)
        findings += [] if learnt else [*faults.of_update(evidence, losses[-1]), *faults.of_neurons(evidence, stuck)]
    if X is not None:
        rows, tried = _tried(model, X, Y)
        evidence = Evidence(names, *(tried or [Value(0.0)]))  # a model that gives floats reaches no parameter
        looked_at.append(f"the model, tried on {len(rows)} examples")
        findings += faults.unreached(evidence) if not losses else []
        findings += [*faults.out_of_range(evidence), *faults.scales_of_rows(rows)]
        findings += [] if learnt or Y is None else faults.of_neurons(evidence, stuck)
    if not looked_at:
        raise ArgumentError("there is nothing to look at: pass the loss, the losses or a History, or X and Y")
    findings += faults.of_curve(curve, failed, "wrong sign of the update" in [finding.kind for finding in findings])
    unique = {(finding.kind, finding.where): finding for finding in reversed(findings)}
    return Diagnosis(reversed(unique.values()), looked_at)


def _sorted(seen: Iterable[Any]) -> tuple[list[Value], list[float], bool]:
    """The losses that have graphs, the curve, and whether a run ended at a loss that was not finite."""
    losses: list[Value] = []
    curve: list[float] = []
    failed = False
    for thing in seen:
        if isinstance(thing, Value):
            losses = [*[loss for loss in losses if loss is not thing], thing]
            continue
        items = thing.loss if isinstance(thing, History) else thing
        if isinstance(items, str) or not isinstance(items, Iterable):
            raise ArgumentError(f"{thing!r:.60} is no loss: pass a Value, a History or a list of losses")
        items = list(items)
        failed |= isinstance(thing, History) and thing.diverged
        graphs = [loss for loss in items if isinstance(loss, Value) and not loss.is_leaf]
        losses = [*graphs, *[loss for loss in losses if loss not in graphs]]
        for loss in items:
            try:
                curve.append(loss.data if isinstance(loss, Value) else float(loss))
            except (TypeError, ValueError):
                raise ArgumentError(f"a list of losses holds numbers and Values, not {coerce.named(loss)}") from None
    return losses, curve, failed


def _tried(model: Any, X: Iterable[Any], Y: Iterable[Any] | None) -> tuple[list[Any], list[Value]]:
    """Some rows of X, and for each a loss of what the model gives for it; without Y, the sum of what it gives."""
    if not callable(model):
        raise ArgumentError(
            f"X is tried on the model, and {coerce.named(model)} cannot be called: pass the model itself"
        )
    rows, targets = _finite("X", X), None if Y is None else _finite("Y", Y)
    if not rows:
        raise DataError("X is empty: there is nothing to look at")
    if targets is not None and len(targets) != len(rows):
        raise LengthError(f"X has {len(rows)} rows, Y has {len(targets)}")
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
    """The class that a target names: arrays of floats hold classes too."""
    return int(target) if isinstance(target, float) and target.is_integer() else target


def _finite(name: str, data: Any) -> list[Any]:
    """Rows of Python's own numbers, which are finite."""
    data = native(data)
    if not isinstance(data, Iterable):
        raise ArgumentError(f"{name} is {coerce.named(data)}; expected a list of examples")
    rows = list(data)
    for place, row in enumerate(rows):
        for x in row if isinstance(row, (list, tuple)) else [row]:
            if isinstance(x, float) and not isfinite(x):
                raise DataError(f"{name}[{place}] holds {x}; expected finite numbers")
    return rows
