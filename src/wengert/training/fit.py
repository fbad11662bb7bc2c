"""`fit` runs the training loop that everyone writes.

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

from wengert import losses
from wengert.compiler.backends import BACKENDS
from wengert.engine import Value
from wengert.errors import ArgumentError, DataError, LengthError, OperandError, WengertError, counted
from wengert.losses import cross_entropy, hinge
from wengert.modes import no_grad
from wengert.ops import positive
from wengert.optim import Optimizer
from wengert.training.history import History, Progress
from wengert.training.loop import DivergedError, Trainer, choose, uncompiled
from wengert.training.metrics import METRICS, Metric
from wengert.training.orders import Orders
from wengert.training.task import Loss, Model, Task, same_random_numbers

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
    """Train a model: for each batch compute the gradient of its mean loss, then make one step of the optimizer.

    All arguments and data are checked before anything is changed. Ctrl-C ends the run cleanly: the parameters keep
    what was learnt so far, and `history.interrupted` is True. A loss that is not finite ends the run too, with a
    warning, before the step that would spoil the parameters.

    If NumPy is installed, the model and the loss are compiled (see `compile`) and each batch runs as an array program,
    with the same results up to rounding. Functions that cannot be compiled, or would take longer to compile than to
    run, run on the engine. The choice is made at the start, and `history.backend` names it. To compile them, the
    model, the loss and the regularization are run a few more times; if they count their calls or store what they see,
    pass backend="eager".

    A batch is computed in pieces of at most 128 examples (1,024 if compiled) whose gradients accumulate in the
    parameters, so that even one batch of all data needs little memory.

    Args:
        model: called with one row of X; a Module, or any function of the optimizer's parameters.
        loss: called with a prediction of the model and its target; returns a Value.
        X: the inputs, a list or array of rows. If the model has `nin`, each row has that many numbers.
        Y: the targets, one for each row.
        optimizer: updates the parameters.
        epochs: the number of passes through the data.
        batch_size: the number of examples in one step; None takes all of them.
        validation: (X, Y) that the model is not trained on, but measured with after each epoch.
        patience: ends the run when the validation loss has not improved for this many epochs. The parameters are then
            set to those of the best epoch, however the run ended.
        metric: metric(prediction, target), whose mean is reported as accuracy; None for none. "auto" is the fraction of
            correct predictions if the loss is cross_entropy (the greatest logit), hinge (the sign),
            binary_cross_entropy (above or below 0.5) or binary_cross_entropy_with_logits (the sign), else none.
        regularization: called for each batch, unless it is compiled; its result, such as `l2(...)`, is added to the
            mean loss.
        clip_norm: the largest norm of the gradient (see clip_grad_norm); None does not clip.
        shuffle: True goes through the data in a new random order in each epoch.
        seed: makes the orders reproducible; None uses Python's module `random` and its seed. An epoch begins with the
            order of the data. For ``last`` from len(X) - 1 down to 1, it swaps the examples at ``last`` and at
            ``(number >> 32) * (last + 1) >> 32``. Each ``number`` is the next one of 64 bits from the generator
            SplitMix64 (Steele, Lea and Flood 2014), which each epoch starts in the state ``rng.getrandbits(64)``, with
            ``rng = random.Random(seed)`` for the whole run.
        progress: True shows progress on stderr: a bar if tqdm is installed, else a plain line.
        callback: called with the History after each epoch; the run ends if it returns True. Without a callback and
            without validation, other threads may see parameters that are a tenth of a second old.
        backend: "eager" runs on the engine; "numpy", "native" and "xla" (on devices) run compiled or raise an error;
            "auto" compiles if that is possible and pays, by a rule of counts (see `wengert.compile`): the choice is
            always the same for the same program, data and number of epochs.
        history: the History of an earlier run to continue until there are `epochs` in all; it is extended and returned.
            If the parameters, the optimizer and the random numbers are restored too (see `wengert.checkpoint`; save
            from `callback`), the result is that of one long run, bit for bit: "auto" keeps the back end of the earlier
            run, and with `seed` the orders of the earlier epochs are skipped.
        dtype: "float64", or "float32" with the back end "xla".
        mesh: the devices of the back end "xla", which share each batch: a number, or a `jax.sharding.Mesh`. None is
            JAX's default device, or after `jax.distributed.initialize` the devices of all processes, each of which
            calls `fit` with its part of X and Y; `batch_size` counts the examples of all processes.

    Raises:
        DataError: X or Y is empty or has a number that is not finite, or a target is not a class.
        LengthError: X and Y, a row and the model's inputs, or a target and its prediction differ in length.
        ArgumentError: an argument has an invalid value, the optimizer has other parameters than the model, or `backend`
            is given and the loss or the data cannot be compiled.
        MissingExtraError: a library that the back end needs is not installed.
        OperandError: the loss is not a Value.
    """
    if backend not in (names := ("auto", "eager", *BACKENDS)):
        raise ArgumentError(f"backend is {backend!r}; expected one of {', '.join(map(repr, names))}")
    _check_arguments(model, loss, optimizer, regularization)
    model, loss = uncompiled(model), uncompiled(loss)
    _check_numbers(epochs, batch_size, patience, clip_norm)
    if patience is not None and validation is None:
        raise ArgumentError("patience needs validation data: pass validation=(X, Y)")
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
    goes_on = callback is None and not held_out  # nothing reads the parameters between two epochs
    try:
        while len(history) < epochs and not history.stopped_early:
            if len(history) and (callback is not None or not len(history) & (len(history) - 1)):
                trainer.cross_check()  # the callback or another thread may have changed what the loss reads
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
    if history.is_stuck():
        bar.say("the loss hardly falls: wengert.diagnose(model, history, X=X, Y=Y) says why")
    return history


def predict(model: Model, X: Iterable[Any]) -> list[Any]:
    """Return the model's prediction for each row of X, as numbers or lists of numbers, without recording gradients.

    Raises:
        DataError, LengthError: a row does not fit the model (see fit).
    """
    with no_grad():
        return [_plain(model(x)) for x in _rows(model, X, "X")]


def accuracy(model: Model, X: Iterable[Any], Y: Iterable[Any], loss: Loss | None = None) -> float:
    """Return the fraction of examples that the model predicts correctly, from 0 to 1.

    Which predictions are correct depends on the loss that the model was trained with (see `metric` in fit). Without a
    loss it is inferred: cross_entropy if the model returns a list, hinge if all targets are -1 or 1.

    Raises:
        ArgumentError: the loss has no metric, or none was passed and it cannot be inferred.
        DataError, LengthError: X or Y cannot be computed with (see fit).
    """
    rows, targets = _rows(model, X, "X"), _as_list(Y)
    if loss is None:
        with no_grad():
            several = not isinstance(model(rows[0]), Value) if rows else False
        if not several and not all(y in (-1, 1) for y in targets):
            raise ArgumentError("pass loss=: with one output and these targets, correct predictions are not defined")
        loss = cross_entropy if several else hinge
    metric = _metric("auto", loss)
    if metric is None:
        raise ArgumentError(f"{_name(loss)} has no metric of correct predictions")
    examples = _examples(model, loss, rows, targets, "X", "Y")
    return Trainer(Task(model, loss, metric, None, [], examples)).measure()[1]


def _append(outcome: tuple[float, ...], *curves: list[float]) -> None:
    for curve, number in zip(curves, outcome, strict=False):
        curve.append(number)


def _begun(
    history: History | None, optimizer: Optimizer, measured: bool, validated: bool, patience: int | None
) -> History:
    """Return a new History, or check the one of an earlier run that is to be continued."""
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
                there, here = ("has", "would not") if has else ("has no", "would")
                raise ArgumentError(f"the earlier run {there} {name}, but this one {here}: pass the same arguments")
        best, count = len(history.best_parameters), len(optimizer.parameters)
        if patience is not None and best != count:
            kept = "no parameters" if not best else f"{counted(best, 'parameter')}, not {count},"
            raise ArgumentError(f"patience needs the best epoch's parameters, but the earlier run kept {kept} of it")
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
            meant = function if isinstance(function, str) and function in losses.__all__ else "mse"
            hint = f", such as wengert.losses.{meant}" if name == "loss" else ""
            raise ArgumentError(f"{name} is {function!r}; expected a function{hint}")
    if not isinstance(optimizer, Optimizer):
        raise ArgumentError(f"optimizer is {optimizer!r}; expected one of wengert.optim, such as Adam(model)")
    parameters = model.parameters() if hasattr(model, "parameters") else optimizer.parameters
    if not set(parameters) & set(optimizer.parameters):
        raise ArgumentError("the optimizer has no parameter of this model: was the model replaced after it was made?")
    if regularization is not None:
        with no_grad():
            _check_loss("regularization", regularization())


def _metric(metric: Metric | str | None, loss: Loss) -> Metric | None:
    if metric == "auto":
        # Not by a look-up, as a loss need not be hashable.
        return next((usual for each, usual in METRICS.items() if each is loss), None)
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
    """Return (row, target) pairs, after a check of all rows, and of all targets with the prediction for one row."""
    rows, targets = _rows(model, X, x_name), _as_list(Y)
    if len(rows) != len(targets):
        raise LengthError(
            f"{x_name} has {counted(len(rows), 'row')} but {y_name} has {len(targets)}; expected as many of each"
        )
    if not rows:
        raise DataError(f"{x_name} is empty: expected at least one row")
    with same_random_numbers(), no_grad():
        _try_targets(model(rows[0]), loss, targets, y_name)
    return list(zip(rows, targets, strict=True))


def _try_targets(prediction: Any, loss: Loss, targets: list[Any], name: str) -> None:
    """Call the loss with a prediction and every target, to check the targets."""
    tried = set()
    for i, target in enumerate(targets):
        if isinstance(target, (int, float)):
            if (type(target), target) in tried:  # with the type: a loss may accept the class 1 but not 1.0
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
    """Check a row for a model with `nin` inputs, and convert its numbers to floats, which are fastest."""
    if not isinstance(row, (list, tuple)):
        raise DataError(f"{place} is {row!r}; expected a list of {counted(nin, 'number')}")
    if len(row) != nin:
        raise LengthError(f"{place} has {counted(len(row), 'number')}, but the model has {counted(nin, 'input')}")
    for column, x in enumerate(row):
        if not isinstance(x, (float, Real, Value)):
            raise DataError(f"{place}, column {column} is {x!r}; expected a number")
    return [x if isinstance(x, (float, Value)) else float(x) for x in row]


def _as_list(data: Any) -> list[Any]:
    """Convert arrays, tensors, series and tables, or a list of them, to lists of Python numbers."""
    return [native(item) for item in native(data)]


def native(item: Any) -> Any:
    """Convert an array, a tensor, a series or a table to a list of Python numbers; return anything else unchanged."""
    for convert in ("to_numpy", "tolist"):
        if hasattr(item, convert):
            item = getattr(item, convert)()
    return item


def _check_finite(item: object, place: str) -> None:
    """Raise a DataError for nan and infinity, in lists of numbers too; other objects are left to the model."""
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
