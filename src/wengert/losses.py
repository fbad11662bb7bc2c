"""Loss functions of one example: loss(prediction, target) -> Value.

The loss of a batch is the mean over its examples: `wengert.mean([loss(model(x), y) for x, y in batch])`.
The conventions are PyTorch's. All formulas are numerically stable: large scores neither overflow nor lose digits.

| loss | prediction | target |
|---|---|---|
| mse, mae, huber | a number, or a list of numbers | a number, or a list of as many |
| hinge | a score | -1 or 1 |
| binary_cross_entropy | a probability, or a list of them | a number from 0 to 1, or a list of as many |
| binary_cross_entropy_with_logits | a logit, or a list of them | a number from 0 to 1, or a list of as many |
| cross_entropy | a list of logits, one per class | the class, an int >= 0 |

>>> from wengert.engine import Value
>>> logits = [Value(1.0), Value(3.0), Value(0.5)]
>>> loss = cross_entropy(logits, 1)
>>> print(f"{loss:.6f}")
0.196734
>>> loss.backward()
>>> print([f"{z.grad:.4f}" for z in logits])          # softmax(logits) minus 1 at the class
['0.1112', '-0.1786', '0.0674']
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import exp, inf
from operator import index
from typing import TYPE_CHECKING, Any

from wengert.engine import Value, dot
from wengert.errors import ArgumentError, DataError, LengthError, answer
from wengert.functions import logsumexp, maximum, mean, minimum, pick

__all__ = [
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "cross_entropy",
    "hinge",
    "huber",
    "l2",
    "mae",
    "mse",
]

Prediction = Value | Sequence[Value]
Target = float | Sequence[float]

FLOOR = exp(-100.0)  # smaller probabilities are replaced by this one, which limits the loss to 100, as in PyTorch


def mse(prediction: Prediction, target: Target) -> Value:
    """Return the squared error (p - t)**2; for lists the mean over the components.

    Raises:
        LengthError: there are not as many targets as predictions.

    >>> mse(Value(3.0), 1.0).data, mse([Value(3.0), Value(1.0)], [1.0, 1.0]).data
    (4.0, 2.0)
    """
    return _mean(_squared_error, prediction, target)


def mae(prediction: Prediction, target: Target) -> Value:
    """Return the absolute error |p - t|; for lists the mean over the components.

    Raises:
        LengthError: there are not as many targets as predictions.

    >>> mae(Value(3.0), 1.0).data
    2.0
    """
    return _mean(lambda p, t: abs(p - t), prediction, target)


def huber(prediction: Prediction, target: Target, delta: float = 1.0) -> Value:
    """Return half the squared error up to an error of delta and a linear loss above: the slope is at most delta.

    With e = |p - t| and m = min(e, delta) it is m (e - m/2), which is e**2 / 2 or delta (e - delta/2); for lists the
    mean over the components (Huber 1964, as in PyTorch's HuberLoss).

    Raises:
        ArgumentError: delta is not a positive number.
        LengthError: there are not as many targets as predictions.

    >>> huber(Value(0.5), 0.0).data, huber(Value(5.0), 0.0).data, huber(Value(5.0), 0.0, delta=2.0).data
    (0.125, 4.5, 8.0)
    """
    if not 0.0 < delta < inf:
        raise ArgumentError(f"delta is {delta!r}; expected a positive number")

    def one(p: Value, t: float) -> Value:
        error = abs(p - t)
        near = minimum(error, delta)
        return near * (error - 0.5 * near)

    return _mean(one, prediction, target)


def hinge(prediction: Value, target: float) -> Value:
    """Return max(0, 1 - t p): 0 once the score p has the sign of the target t and |p| >= 1.

    Raises:
        DataError: the target is not -1 or 1.
        LengthError: the prediction is a list.

    >>> hinge(Value(0.3), -1).data, hinge(Value(2.0), 1).data
    (1.3, 0.0)
    """
    if _is_list(prediction):
        raise LengthError(f"hinge takes one score, got {_counted(prediction)}")
    if not hasattr(target, "__abs__") or abs(target) != 1:  # one comparison, so one guard in a compiled function
        raise DataError(f"the target of hinge has to be -1 or 1, got {target!r}")
    return (1.0 - target * prediction).relu()


def binary_cross_entropy(prediction: Prediction, target: Target) -> Value:
    """Return -(t log p + (1 - t) log(1 - p)) for the predicted probability p; for lists the mean over the components.

    The logarithms are at least -100, as in PyTorch, so that the loss and its gradient are finite at p = 0 and 1.
    If the model returns a logit, use `binary_cross_entropy_with_logits`.

    Raises:
        DataError: a probability or a target is not within 0 to 1.
        LengthError: there are not as many targets as predictions.

    >>> print(f"{binary_cross_entropy(Value(0.8), 1):.4f} {binary_cross_entropy(Value(0.0), 1):.4f}")
    0.2231 100.0000
    """
    return _mean(_binary_cross_entropy, prediction, target)


def binary_cross_entropy_with_logits(prediction: Prediction, target: Target) -> Value:
    """Return the `binary_cross_entropy` of sigmoid(z) for a logit z: t softplus(-z) + (1 - t) softplus(z).

    Raises:
        DataError: a target is not within 0 to 1.
        LengthError: there are not as many targets as predictions.

    >>> binary_cross_entropy_with_logits(Value(1000.0), 0).data
    1000.0
    >>> binary_cross_entropy_with_logits(Value(0.0), -1)
    Traceback (most recent call last):
        ...
    wengert.errors.DataError: a target of binary cross-entropy has to be from 0 to 1, got -1
    """
    return _mean(_binary_cross_entropy_with_logits, prediction, target)


def cross_entropy(prediction: Sequence[Value], target: int) -> Value:
    """Return -log softmax(z)[t] for the logits z, one per class: the log of the sum over j of exp(z[j] - z[t]).

    Raises:
        DataError: the target is not an int, or there is no logit for it.
        LengthError: the prediction is not a list of two or more logits.

    >>> cross_entropy([Value(0.0), Value(1000.0)], 0).data
    1000.0
    >>> cross_entropy([Value(0.0), Value(1000.0)], 2)
    Traceback (most recent call last):
        ...
    wengert.errors.DataError: there is no class 2: the classes are 0 to 1
    """
    if not _is_list(prediction) or len(prediction) < 2:
        raise LengthError(f"cross-entropy takes a list of logits, one per class, got {_counted(prediction)}")
    if not hasattr(target, "select"):  # the index is checked at each call of a compiled function
        try:
            target = index(target)
        except TypeError:
            raise DataError(f"a target of cross-entropy has to be a class, an int, got {target!r}") from None
        if not 0 <= target < len(prediction):
            raise DataError(f"there is no class {target}: the classes are 0 to {len(prediction) - 1}")
    chosen: Value = pick(prediction, target)
    return logsumexp([z - chosen for z in prediction])


def l2(parameters: Iterable[Value], strength: float) -> Value:
    """Return strength times the sum of the squared parameters; added to a loss, it keeps them small.

    Raises:
        ArgumentError: there are no parameters, or strength is not a number >= 0.

    >>> l2([Value(1.0), Value(2.0)], 0.1).data
    0.5
    """
    if not 0.0 <= strength < inf:
        raise ArgumentError(f"strength is {strength!r}; expected a number >= 0")
    values = list(parameters)
    if not values:
        raise ArgumentError("l2 got no parameters: expected at least one")
    penalty: Value = strength * dot(values, values)
    return penalty


# -- one component ----------------------------------------------------------------------------------------------


def _squared_error(p: Value, t: float) -> Value:
    error = p - t
    return error * error


def _binary_cross_entropy(p: Value, t: float) -> Value:
    if p < 0.0 or p > 1.0:
        raise DataError(f"a probability has to be from 0 to 1, got {p!r}: for a logit use ..._with_logits")
    _check_share(t)
    # 1 - p is exact for p >= 0.5; below, log1p keeps the digits that 1 - p would lose.
    complement = (-p).log1p() if p < 0.5 else maximum(1.0 - p, FLOOR).log()
    return -(t * maximum(p, FLOOR).log() + (1.0 - t) * complement)


def _binary_cross_entropy_with_logits(z: Value, t: float) -> Value:
    _check_share(t)
    return t * (-z).softplus() + (1.0 - t) * z.softplus()


def _check_share(target: float) -> None:
    if not 0.0 <= target <= 1.0:
        raise DataError(f"a target of binary cross-entropy has to be from 0 to 1, got {target!r}")


# -- numbers and lists of numbers -------------------------------------------------------------------------------


def _is_list(x: Any) -> bool:
    return hasattr(x, "__len__") and not isinstance(x, str)


def _mean(loss: Callable[[Value, float], Value], prediction: Any, target: Any) -> Value:
    """Return loss(prediction, target) for two numbers, or its mean over the pairs of two lists."""
    if not _is_list(prediction) and not _is_list(target):
        return loss(prediction, target)
    if _is_list(prediction) and _is_list(target) and len(prediction) == len(target) > 0:
        return mean([loss(p, t) for p, t in zip(prediction, target, strict=True)])
    raise LengthError(f"the prediction is {_counted(prediction)}, the target {_counted(target)}")


def _counted(x: Any) -> str:
    return f"a list of {len(x)}" if _is_list(x) else "one number"


if not TYPE_CHECKING:  # a type checker would take any name
    __getattr__ = answer(
        __name__,
        {
            **dict.fromkeys(("mseloss", "meansquarederror", "squarederror"), "losses.mse"),
            **dict.fromkeys(("l1", "l1loss", "meanabsoluteerror"), "losses.mae"),
            **dict.fromkeys(("huberloss", "smoothl1loss"), "losses.huber"),
            **dict.fromkeys(("hingeloss", "svm"), "losses.hinge"),
            **dict.fromkeys(("bce", "bceloss"), "losses.binary_cross_entropy"),
            **dict.fromkeys(("bcewithlogits", "bcewithlogitsloss"), "losses.binary_cross_entropy_with_logits"),
            **dict.fromkeys(("ce", "crossentropyloss", "nll", "nllloss"), "losses.cross_entropy, which takes logits"),
        },
    )
