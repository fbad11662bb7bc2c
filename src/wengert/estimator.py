"""Networks of Values as estimators of scikit-learn: for its pipelines, its searches and its scores.

>>> from sklearn.datasets import load_iris
>>> X, y = load_iris(return_X_y=True)
>>> classifier = WengertClassifier(max_iter=50, random_state=0).fit(X, y)
>>> classifier.score(X, y) > 0.9, classifier.predict_proba(X[:1]).shape
(True, (1, 3))
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any, Self

from wengert.compiler import compile
from wengert.errors import ArgumentError, require
from wengert.losses import cross_entropy, l2, mse
from wengert.nn import MLP, Activation
from wengert.optim import Adam
from wengert.training import History, Loss, Model, fit

require("sklearn", "sklearn")

import numpy as np  # noqa: E402  (scikit-learn brings it, and its absence has just been named)
from sklearn.model_selection import train_test_split  # noqa: E402
from sklearn.utils import check_random_state, column_or_1d  # noqa: E402
from sklearn.utils.multiclass import check_classification_targets  # noqa: E402
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data  # noqa: E402

__all__ = ["WengertClassifier", "WengertEstimator", "WengertRegressor"]

if TYPE_CHECKING:  # scikit-learn has no types

    class BaseEstimator:
        """What has parameters by the names of its arguments."""

        def __getstate__(self) -> dict[str, Any]:
            """What is pickled."""
            return {}

    class ClassifierMixin:
        """What is scored by its accuracy."""

    class RegressorMixin:
        """What is scored by its share of the variance."""

else:
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin


class WengertEstimator(BaseEstimator):
    """What both estimators share. The arguments have the names that scikit-learn's own networks have for them.

    Args:
        hidden_layer_sizes: how many neurons each hidden layer has.
        activation: their function (see `wengert.nn.Neuron`).
        model: instead of these, called with the numbers of features and outputs: gives a Module.
        loss: of a prediction and a target.
        alpha: the strength of half the sum of squares of all parameters, divided by the sum of the weights.
        learning_rate_init: the step size of Adam.
        batch_size: of how many examples a step is made.
        max_iter: how many epochs there are at most.
        tol: an epoch whose loss is not less than the best by this much counts towards `n_iter_no_change`.
        n_iter_no_change: after so many such epochs the training ends.
        early_stopping: whether that is told by examples that are held out. In the end the parameters are those of the
            epoch that was best on these.
        validation_fraction: the share of such examples.
        random_state: what decides the first parameters, the orders of the examples, and which are held out.
        backend: what trains (see `wengert.fit`).
        verbose: whether progress is shown.

    Attributes:
        model_: the network.
        history_: of the training.
        n_iter_: how many epochs there were.
    """

    def __init__(
        self,
        hidden_layer_sizes: Sequence[int] = (32,),
        activation: Activation = "relu",
        *,
        model: Callable[[int, int], Model] | None = None,
        loss: Loss | None = None,
        alpha: float = 1e-4,
        learning_rate_init: float = 0.01,
        batch_size: int = 200,
        max_iter: int = 200,
        tol: float = 1e-4,
        n_iter_no_change: int = 10,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        random_state: Any = None,
        backend: str = "auto",
        verbose: bool = False,
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.model = model
        self.loss = loss
        self.alpha = alpha
        self.learning_rate_init = learning_rate_init
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.tol = tol
        self.n_iter_no_change = n_iter_no_change
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.random_state = random_state
        self.backend = backend
        self.verbose = verbose

    def _train(self, X: Any, y: Any, outputs: int, loss: Loss, sample_weight: Any) -> None:
        """Make a network, and train it on checked data."""
        if not (isinstance(self.alpha, Real) and self.alpha >= 0.0):
            raise ArgumentError(f"alpha is {self.alpha!r}; expected a number >= 0")
        draw = check_random_state(self.random_state)
        rng = random.Random(int(draw.randint(2**31)))
        features = X.shape[1]
        if self.model is not None:
            made: Any = self.model(features, outputs)
        else:
            made = MLP(features, [*self.hidden_layer_sizes, outputs], self.activation, weights="scaled", rng=rng)
        self.model_: Any = made
        called, measured = made, loss
        strength = self.alpha / (2.0 * (len(X) if sample_weight is None else sample_weight.sum()))
        if sample_weight is not None:  # it goes along as a last column, to where the loss is
            taken = sample_weight > 0.0
            weights = sample_weight[taken] / sample_weight[taken].mean()
            X, y = np.column_stack([X[taken], weights]), y[taken]
            called = _Weighted(made)

            def measured(pair: Any, target: Any) -> Any:
                return pair[1] * loss(pair[0], target)

        held_out: dict[str, Any] = {}
        if self.early_stopping:
            split = train_test_split(
                X,
                y,
                test_size=self.validation_fraction,
                random_state=draw.randint(2**31),
                stratify=y if isinstance(self, ClassifierMixin) else None,
            )
            X, held_out["validation"], y = split[0], (split[1], split[3]), split[2]
            held_out["patience"] = self.n_iter_no_change
        parameters = made.parameters()
        self.history_: History = fit(
            called,
            measured,
            X,
            y,
            Adam(parameters, lr=self.learning_rate_init),
            self.max_iter,
            min(self.batch_size, len(X)),
            regularization=(lambda: l2(parameters, strength)) if strength else None,
            metric=None,
            shuffle=len(X) > self.batch_size,
            seed=int(draw.randint(2**31)),
            progress=self.verbose,
            callback=None if self.early_stopping else self._has_converged,
            backend=self.backend,
            **held_out,
        )
        self.n_iter_: int = len(self.history_)
        self._outputs: Any = _outputs(made)

    def _has_converged(self, history: History) -> bool:
        """Whether the loss has not become less for long enough."""
        last = history.loss[-self.n_iter_no_change :]
        before = history.loss[: -self.n_iter_no_change]
        return bool(before) and min(last) > min(before) - self.tol

    def _predicted(self, X: Any) -> Any:
        """What the network gives for each row."""
        check_is_fitted(self, "model_")
        X = validate_data(self, X, reset=False, dtype=np.float64)
        known = getattr(self, "_outputs", None)
        return (known or _outputs(self.model_)).map(X)

    def __getstate__(self) -> dict[str, Any]:
        """What is pickled: all but the program, which is made again."""
        return {name: x for name, x in super().__getstate__().items() if name != "_outputs"}


class WengertClassifier(ClassifierMixin, WengertEstimator):
    """A network that tells classes apart, by one output for each: see `WengertEstimator` for the arguments.

    The loss is `cross_entropy` where no other is given. Its targets are the numbers of the classes, from 0 up, in the
    order of `classes_`.
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train a new network on rows of features and the class of each.

        Raises:
            ValueError: they cannot be computed with; the message says why.
        """
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, X, ensure_non_negative=True)
        self.classes_: Any
        self.classes_, places = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ArgumentError(f"y has 1 class, {self.classes_.tolist()[0]!r}; expected two or more to tell apart")
        self._train(X, places, len(self.classes_), self.loss or cross_entropy, sample_weight)
        return self

    def predict_proba(self, X: Any) -> Any:
        """The probability of each class, row by row."""
        logits = self._predicted(X)
        shares = np.exp(logits - logits.max(1, keepdims=True))
        return shares / shares.sum(1, keepdims=True)

    def predict(self, X: Any) -> Any:
        """The class that is most probable, row by row."""
        places = self.predict_proba(X).argmax(1)
        return self.classes_[places]


class WengertRegressor(RegressorMixin, WengertEstimator):
    """A network that predicts a number: see `WengertEstimator` for the arguments.

    The loss is `mse` where no other is given, of targets that are shifted and scaled to a mean of 0 and a deviation of
    1; another gets them as they are.
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train a new network on rows of features and the target of each.

        Raises:
            ValueError: they cannot be computed with; the message says why.
        """
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True, multi_output=True)
        y = column_or_1d(y, warn=True).astype(np.float64)
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, X, ensure_non_negative=True)
        self._shift, self._scale = 0.0, 1.0
        if self.loss is None:
            self._shift = float(np.average(y, weights=sample_weight))
            self._scale = float(np.sqrt(np.average((y - self._shift) ** 2, weights=sample_weight))) or 1.0
        self._train(X, (y - self._shift) / self._scale, 1, self.loss or mse, sample_weight)
        return self

    def predict(self, X: Any) -> Any:
        """The number for each row."""
        return self._predicted(X).reshape(-1) * self._scale + self._shift


class _Weighted:
    """A model, called with rows whose last number is a weight: gives that beside the prediction."""

    def __init__(self, model: Model) -> None:
        self.model: Model = model

    def __call__(self, row: Any) -> Any:
        return self.model(row[:-1]), row[-1]


def _outputs(model: Model) -> Any:
    """What a model gives for each row of an array, compiled."""
    return compile(lambda row: model(row.tolist()))
