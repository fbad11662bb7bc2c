"""fit(): the training loop that everyone writes, written once.

>>> from wengert.losses import mse
>>> from wengert.nn import MLP
>>> from wengert.optim import SGD
>>> model = MLP(1, [1])
>>> X, Y = [[0.0], [1.0], [2.0], [3.0]], [1.0, 3.0, 5.0, 7.0]          # y = 2 x + 1
>>> history = fit(model, mse, X, Y, SGD(model, lr=0.1), epochs=200, progress=False)
>>> len(history), history.loss[-1] < 1e-3
(200, True)
>>> print(f"{predict(model, [[10.0]])[0]:.1f}")
21.0
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable
from math import isfinite
from numbers import Real
from time import perf_counter
from typing import Any

from wengert.compiler.backends import BACKENDS
from wengert.engine import Value
from wengert.errors import ArgumentError, DataError, LengthError, OperandError, WengertError
from wengert.losses import cross_entropy, hinge
from wengert.modes import no_grad
from wengert.ops import positive
from wengert.optim import Optimizer
from wengert.training.history import History, Progress
from wengert.training.metrics import METRICS, Metric
from wengert.training.orders import Orders
from wengert.training.task import Loss, Model, Task, same_random_numbers
from wengert.training.trainers import DivergedError, Trainer, choose, uncompiled

__all__ = ["History", "Loss", "Metric", "Model", "accuracy", "fit", "predict"]


def fit(
    model: Model,
    loss: Loss,
    X: Iterable[Any],
    Y: Iterable[Any],
    optimizer: Optimizer,
    epochs: int = 10,
    batch_size: int | None = None,
    *,
    validation: tuple[Iterable[Any], Iterable[Any]] | None = None,
    patience: int | None = None,
    metric: Metric | str | None = "auto",
    regularization: Callable[[], Value] | None = None,
    clip_norm: float | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    progress: bool = True,
    callback: Callable[[History], object] | None = None,
    backend: str = "auto",
    history: History | None = None,
    dtype: str = "float64",
    mesh: Any = None,
) -> History:
    """Train a model: for each batch the gradient of its mean loss, then one step of the optimizer.

    Everything is checked before anything is changed. Ctrl-C ends the run at once and in order: what was
    learnt so far stays, and the History says `interrupted`. A loss that is not finite ends it too, with a
    warning, before the step that would carry it into the parameters.

    Where NumPy is installed, the model and the loss are compiled (see `compile`) and each batch is an array
    program, which is the same to rounding; what cannot be compiled, or would take longer to prepare than to
    compute, is left to the engine. What computes is settled at the start, and the History names it. It is the
    plain code that is recorded, a few times: one that counts its calls, or keeps what it saw, wants
    backend="eager".

    A batch is computed in pieces of at most 128 examples (1,024 by a program) whose gradients add up in the
    parameters, so even one batch of all data needs little memory.

    Args:
        model: called with one row of X; a Module, or any function of the optimizer's parameters.
        loss: called with what the model gave and one of Y; gives a Value.
        X: the inputs, a list or array of rows. If the model has `nin`, each row has that many numbers.
        Y: the targets, as many.
        optimizer: what moves the parameters.
        epochs: how many times to go through the data.
        batch_size: how many examples make one step; None is all of them.
        validation: (X, Y) that are not learnt from, only measured after each epoch.
        patience: end the run when the validation loss has not improved for so many epochs. With it, the
            parameters are in the end those of the best epoch, however the run ended.
        metric: metric(prediction, target), of which the mean is reported as accuracy; None for none. "auto"
            is the share that is right where the loss is cross_entropy (the greatest logit), hinge (the
            sign), binary_cross_entropy (above or below 0.5) or that with logits (the sign), else none.
        regularization: called once a batch; what it gives, such as `l2(...)`, is added to the mean loss.
        clip_norm: the greatest norm of the gradient (see clip_grad_norm); None is any.
        shuffle: whether each epoch goes through the data in a new order, shuffled from that in which they were passed.
        seed: what decides these orders: each is sorted(examples, key=lambda _: rng.getrandbits(64)), where rng is
            random.Random(seed); None leaves it to Python's module `random` and its seed.
        progress: whether to show progress on stderr: a bar if tqdm is installed, else a plain line.
        callback: called with the History after each epoch; if it returns True, the run ends. Without one, and without
            validation, the parameters that another thread sees may be a tenth of a second old.
        backend: "eager" is the engine; "numpy", "native" and "xla" are the array program, or an error, the last one
            on devices; "auto" is the program if there can be one and it pays, by a rule of counts
            (see `wengert.compile`): the same for the same program, data and number of epochs.
        history: of an earlier run, which this one goes on with until there are `epochs` in all: the same History is
            continued and returned. If the parameters, the optimizer and the random numbers are as they were then (see
            `wengert.checkpoint`, and save from `callback`), the outcome is that of one long run, to the last bit:
            "auto" keeps to the back end of the earlier run, and with `seed` the orders of its epochs are drawn again
            and passed over.
        dtype: "float64", or "float32" where the back end is "xla".
        mesh: the devices of the back end "xla", which share each batch: how many, or a `jax.sharding.Mesh`. None is
            the one that JAX would choose; after `jax.distributed.initialize` those of all processes, each of which
            calls `fit` with its share of X and Y: `batch_size` counts the examples of all of them.

    Raises:
        DataError: X or Y is empty, or holds what is no finite number; or a target is of no class.
        LengthError: X and Y, a row and the model's inputs, or a target and its prediction differ in length.
        ArgumentError: an argument is out of its range, or the optimizer is another model's; or a backend is asked
            for, and the loss or the data cannot be compiled.
        MissingExtraError: what the backend needs is not installed.
        OperandError: the loss is not a Value.
    """
    if backend not in (known := ("auto", "eager", *BACKENDS)):
        raise ArgumentError(f"backend is {backend!r}; expected one of {', '.join(map(repr, known))}")
    _check_arguments(model, loss, optimizer, regularization)
    model, loss = uncompiled(model), uncompiled(loss)
    _check_numbers(epochs, batch_size, patience, clip_norm)
    if patience is not None and validation is None:
        raise ArgumentError("patience needs validation data: validation=(X, Y)")
    examples = _examples(model, loss, X, Y, "X", "Y")
    held_out = _examples(model, loss, *validation, "validation X", "validation Y") if validation else []
    measure = _metric(metric, loss)
    history = _begun(history, optimizer, measure is not None, bool(held_out), patience)
    started = perf_counter() - history.seconds
    trainer = choose(
        backend,
        *(model, loss, measure, regularization, examples, held_out),
        dtype=dtype,
        mesh=mesh,
        epochs=epochs,
        size=batch_size,
        settled=history.backend if len(history) else "",
    )
    hosts = trainer.hosts
    if hosts.several:
        asked = epochs, batch_size or 0, patience or 0, clip_norm or 0.0, callback is not None, bool(held_out)
        state = [x for part in optimizer._state.values() for x in part]
        hosts.agree([*asked, *[p.data for p in optimizer.parameters], *state, *history.loss])
    if len(history) and history.backend == trainer.name:
        trainer.fallback = history.fallback
    history.backend, history.fallback = trainer.name, trainer.fallback
    size = batch_size or hosts.total
    orders = Orders(len(examples), shuffle, seed, len(history))
    bar = Progress(progress and not hosts.here, epochs, -(-hosts.total // size))
    if trainer.fallback and any(one.is_available() for one in BACKENDS.values()):
        bar.say(f"fit runs on the engine: {trainer.fallback}")
    goes_on = callback is None and not held_out  # from epoch to epoch, and nobody looks
    try:
        while len(history) < epochs and not history.stopped_early:
            if len(history) and (callback is not None or not len(history) & (len(history) - 1)):
                trainer.cross_check()  # the callback, or who knows what, may have changed what the loss reads
            _append(trainer.learn(orders, size, optimizer, clip_norm, bar, goes_on), history.loss, history.accuracy)
            if held_out:
                _append(trainer.measure(), history.val_loss, history.val_accuracy)
            if patience is not None and history.best_epoch is not None:
                waited = len(history) - 1 - history.best_epoch
                if not waited:
                    history.best_parameters = [p.data for p in optimizer.parameters]
                history.stopped_early = waited >= patience
            history.backend, history.fallback = trainer.name, trainer.fallback
            history.seconds = perf_counter() - started
            bar.epoch(history)
            if callback is not None:
                history.stopped_early |= hosts.any(callback(history) is True)
    except KeyboardInterrupt:
        history.interrupted = True
    except DivergedError as reason:
        history.diverged = True
        warnings.warn(f"epoch {len(history)}, {reason}", RuntimeWarning, stacklevel=2)
    finally:
        trainer.release()
        bar.close()
        history.seconds = perf_counter() - started
        if patience is not None:
            for p, number in zip(optimizer.parameters, history.best_parameters, strict=False):
                p.data = number
    return history


def predict(model: Model, X: Iterable[Any]) -> list[Any]:
    """What the model gives for each row of X, as plain numbers and lists of them; no gradients are recorded.

    Raises:
        DataError, LengthError: a row is not what the model takes (see fit).
    """
    with no_grad():
        return [_plain(model(x)) for x in _rows(model, X, "X")]


def accuracy(model: Model, X: Iterable[Any], Y: Iterable[Any], loss: Loss | None = None) -> float:
    """The share of examples that the model gets right, from 0 to 1.

    What counts as right depends on the loss that the model was trained with (see fit's `metric`). Without
    one it is taken from the data: cross_entropy where the model gives a list, hinge where all targets are
    -1 and 1.

    Raises:
        ArgumentError: the loss has no such measure, or none was given and the data do not tell.
        DataError, LengthError: X or Y cannot be computed with (see fit).
    """
    rows, targets = _rows(model, X, "X"), _as_list(Y)
    if loss is None:
        with no_grad():
            several = not isinstance(model(rows[0]), Value) if rows else False
        if not several and not all(y in (-1, 1) for y in targets):
            raise ArgumentError("name the loss: from one output and these targets it cannot be told what is right")
        loss = cross_entropy if several else hinge
    metric = _metric("auto", loss)
    if metric is None:
        raise ArgumentError(f"{_name(loss)} does not tell which predictions are right")
    examples = _examples(model, loss, rows, targets, "X", "Y")
    return Trainer(Task(model, loss, metric, None, [], examples)).measure()[1]


def _append(outcome: tuple[float, ...], *curves: list[float]) -> None:
    for curve, number in zip(curves, outcome, strict=False):
        curve.append(number)


def _begun(
    history: History | None, optimizer: Optimizer, measured: bool, validated: bool, patience: int | None
) -> History:
    """The history to go on with: a new one, or that of an earlier run, if it is of such a run."""
    if history is None:
        return History()
    if not isinstance(history, History):
        raise ArgumentError(f"history is {history!r:.60}; expected the History of an earlier run")
    if len(history):
        for name, has, has_now in [
            ("accuracy", bool(history.accuracy), measured),
            ("val_loss", bool(history.val_loss), validated),
        ]:
            if has != has_now:
                there, here = ("has", "none") if has else ("has no", "one")
                raise ArgumentError(f"the earlier run {there} {name}, and this one would have {here}")
        best, count = len(history.best_parameters), len(optimizer.parameters)
        if patience is not None and best != count:
            kept = "no parameters" if not best else f"{best} parameters, not {count},"
            raise ArgumentError(f"the earlier run kept {kept} of its best epoch, to which patience goes back")
    waited = len(history) - 1 - (history.best_epoch or 0)
    history.stopped_early = patience is not None and waited >= patience
    history.interrupted = history.diverged = False
    return history


# -- reading arguments and data -------------------------------------------------------------------------------------


def _check_arguments(
    model: Model, loss: Loss, optimizer: Optimizer, regularization: Callable[[], Value] | None
) -> None:
    for name, function in {"model": model, "loss": loss}.items():
        if not callable(function):
            raise ArgumentError(f"{name} is {function!r}; expected a function")
    if not isinstance(optimizer, Optimizer):
        raise ArgumentError(f"optimizer is {optimizer!r}; expected one of wengert.optim, such as Adam(model)")
    known = model.parameters() if hasattr(model, "parameters") else optimizer.parameters
    if not set(known) & set(optimizer.parameters):
        raise ArgumentError("the optimizer holds no parameter of this model: was the model made anew after it?")
    if regularization is not None:
        with no_grad():
            _check_loss("regularization", regularization())


def _metric(metric: Metric | str | None, loss: Loss) -> Metric | None:
    if metric == "auto":
        return next((usual for known, usual in METRICS.items() if known is loss), None)  # a loss need not be hashable
    if metric is None or callable(metric):
        return metric
    raise ArgumentError(f"metric is {metric!r}; expected 'auto', None or a function of a prediction and a target")


def _check_numbers(epochs: int, batch_size: int | None, patience: int | None, clip_norm: float | None) -> None:
    for name, number in {"epochs": epochs, "batch_size": batch_size, "patience": patience}.items():
        if number is not None and (not isinstance(number, int) or number < 1):
            raise ArgumentError(f"{name} is {number!r}; expected an int >= 1")
    if clip_norm is not None:
        positive("clip_norm", clip_norm)


def _check_loss(name: str, loss: object) -> None:
    if not isinstance(loss, Value):
        raise OperandError(f"the {name} is {loss!r}, not a Value: was it computed from .data?")


def _examples(
    model: Model, loss: Loss, X: Iterable[Any], Y: Iterable[Any], x_name: str, y_name: str
) -> list[tuple[Any, Any]]:
    """(row, target) pairs; every row is checked, and every target against what the model gives for one row."""
    rows, targets = _rows(model, X, x_name), _as_list(Y)
    if len(rows) != len(targets):
        raise LengthError(f"{x_name} has {len(rows)} rows, {y_name} has {len(targets)}")
    if not rows:
        raise DataError(f"{x_name} is empty: there is nothing to learn from")
    with same_random_numbers(), no_grad():
        _try_targets(model(rows[0]), loss, targets, y_name)
    return list(zip(rows, targets, strict=True))


def _try_targets(prediction: Any, loss: Loss, targets: list[Any], name: str) -> None:
    """Check every target against what the model gives."""
    tried = set()
    for i, target in enumerate(targets):
        if isinstance(target, (int, float)):
            if (type(target), target) in tried:  # to a loss, 1.0 may be no class where 1 is
                continue
            tried.add((type(target), target))
        _check_finite(target, f"row {i} of {name}")
        try:
            _check_loss("loss", loss(prediction, target))
        except WengertError as error:
            raise type(error)(f"row {i} of {name}: {error}") from None


def _rows(model: Model, X: Iterable[Any], name: str) -> list[Any]:
    rows, nin = _as_list(X), getattr(model, "nin", None)
    for i, row in enumerate(rows):
        place = f"row {i} of {name}"
        _check_finite(row, place)
        if nin is not None:
            rows[i] = _inputs(row, nin, place)
    return rows


def _inputs(row: object, nin: int, place: str) -> list[Any]:
    """A row for a model that says how many inputs it has: as floats, which compute fastest, and Values."""
    if not isinstance(row, (list, tuple)):
        raise DataError(f"{place} is {row!r}; expected a list of {nin} numbers")
    if len(row) != nin:
        raise LengthError(f"{place} has {len(row)} numbers; the model has {nin} inputs")
    for column, x in enumerate(row):
        if not isinstance(x, (float, Real, Value)):
            raise DataError(f"{place}, column {column} is {x!r}; expected a number")
    return [x if isinstance(x, (float, Value)) else float(x) for x in row]


def _as_list(data: Any) -> list[Any]:
    """Arrays, tensors, series and tables, or a list of them, as lists of Python's own numbers."""
    return [native(item) for item in native(data)]


def native(item: Any) -> Any:
    """An array, a tensor, a series or a table as a list of Python's own numbers; anything else as it is."""
    for convert in ("to_numpy", "tolist"):
        if hasattr(item, convert):
            item = getattr(item, convert)()
    return item


def _check_finite(item: object, place: str) -> None:
    """Refuse nan and infinity, in lists of numbers too. What is no number is left to the model."""
    if isinstance(item, (list, tuple)):
        for column, x in enumerate(item):
            if type(x) is not float or not isfinite(x):
                _check_finite(x, f"{place}, column {column}")
    number: Any = item.data if isinstance(item, Value) else item
    if isinstance(number, Real) and not isfinite(number):
        raise DataError(f"{place} is {number}; expected a finite number")


def _plain(prediction: Any) -> Any:
    if isinstance(prediction, Value):
        return prediction.data
    return [_plain(p) for p in prediction] if isinstance(prediction, (list, tuple)) else prediction


def _name(function: object) -> str:
    return getattr(function, "__name__", repr(function))
