"""Networks of Values as scikit-learn estimators, for its pipelines, searches and scores.

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

import numpy as np  # noqa: E402  (scikit-learn needs it, and `require` has just checked for that)
from sklearn.model_selection import train_test_split  # noqa: E402
from sklearn.utils import check_random_state, column_or_1d  # noqa: E402
from sklearn.utils.multiclass import check_classification_targets  # noqa: E402
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data  # noqa: E402

__all__ = ["WengertClassifier", "WengertEstimator", "WengertRegressor"]

if TYPE_CHECKING:  # scikit-learn has no types

    class BaseEstimator:
        """The base class of estimators."""

        def __getstate__(self) -> dict[str, Any]:
            """Return the state to pickle."""
            return {}

    class ClassifierMixin:
        """Scores by accuracy."""

    class RegressorMixin:
        """Scores by R squared."""

else:
    from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin


class WengertEstimator(BaseEstimator):
    """The base class of both estimators. The arguments have the names of scikit-learn's own networks.

    Many fields: scikit-learn keeps each argument as an attribute of its name.

    Args:
        hidden_layer_sizes: the number of neurons of each hidden layer.
        activation: their activation (see `wengert.nn.Neuron`).
        model: replaces these two: model(features, outputs) returns a Module.
        loss: loss(prediction, target).
        alpha: the strength of the L2 penalty: half the sum of squares of all parameters, divided by the sum of weights.
        learning_rate_init: the learning rate of Adam.
        batch_size: the number of examples in a step.
        max_iter: the largest number of epochs.
        tol: the loss has to be smaller than the best by this much to count as an improvement.
        n_iter_no_change: the number of epochs without improvement after which the training ends.
        early_stopping: True measures improvement on held-out examples; the parameters are then set to those of the best
            epoch.
        validation_fraction: the fraction of held-out examples.
        random_state: decides the initial parameters, the orders of the examples, and which are held out.
        backend: see `wengert.fit`.
        verbose: True shows progress.

    Attributes:
        model_: the network.
        history_: the History of the training.
        n_iter_: the number of epochs.
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
        """Make a network and train it on checked data."""
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
        if sample_weight is not None:  # passed to the loss as the last column of X
            taken = sample_weight > 0.0
            weights = sample_weight[taken] / sample_weight[taken].mean()
            X, y = np.column_stack([X[taken], weights]), y[taken]

            def called(row: Any) -> Any:
                return made(row[:-1]), row[-1]

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
        """Return True if the loss has not improved for `n_iter_no_change` epochs."""
        last = history.loss[-self.n_iter_no_change :]
        before = history.loss[: -self.n_iter_no_change]
        return bool(before) and min(last) > min(before) - self.tol

    def _predicted(self, X: Any) -> Any:
        check_is_fitted(self, "model_")
        X = validate_data(self, X, reset=False, dtype=np.float64)
        known = getattr(self, "_outputs", None)
        return (known or _outputs(self.model_)).map(X)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state to pickle: everything but the compiled function, which is made again."""
        return {name: x for name, x in super().__getstate__().items() if name != "_outputs"}


class WengertClassifier(ClassifierMixin, WengertEstimator):
    """A network that classifies, with one output for each class: see `WengertEstimator` for the arguments.

    The loss is `cross_entropy` by default. Its targets are the indices of the classes in `classes_`.
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train a new network on rows of features and their classes.

        Raises:
            ValueError: the data are invalid; the message says why.
        """
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, X, ensure_non_negative=True)
        self.classes_: Any
        self.classes_, places = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ArgumentError(f"y has 1 class, {self.classes_.tolist()[0]!r}; expected at least 2")
        self._train(X, places, len(self.classes_), self.loss or cross_entropy, sample_weight)
        return self

    def predict_proba(self, X: Any) -> Any:
        """Return the probability of each class for each row."""
        logits = self._predicted(X)
        shares = np.exp(logits - logits.max(1, keepdims=True))
        return shares / shares.sum(1, keepdims=True)

    def predict(self, X: Any) -> Any:
        """Return the most probable class for each row."""
        places = self.predict_proba(X).argmax(1)
        return self.classes_[places]


class WengertRegressor(RegressorMixin, WengertEstimator):
    """A network that predicts a number: see `WengertEstimator` for the arguments.

    The loss is `mse` by default, with targets that are standardized to mean 0 and standard deviation 1; any other loss
    gets the targets unchanged.
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train a new network on rows of features and their targets.

        Raises:
            ValueError: the data are invalid; the message says why.
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
        """Return the prediction for each row."""
        return self._predicted(X).reshape(-1) * self._scale + self._shift


def _outputs(model: Model) -> Any:
    """Return the compiled model, for rows of arrays."""
    return compile(lambda row: model(row.tolist()))
