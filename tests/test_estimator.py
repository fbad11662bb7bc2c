"""`wengert.estimator`: what scikit-learn asks of an estimator, and what its users do with one."""

from __future__ import annotations

import pickle
import sys
from typing import Any
from unittest import SkipTest

import pytest

import wengert
from wengert import nn
from wengert.errors import ArgumentError, MissingExtraError

np = pytest.importorskip("numpy")
pytest.importorskip("sklearn", reason="needs sklearn")

from sklearn.base import clone  # noqa: E402  (it may be missing)
from sklearn.datasets import load_diabetes, load_iris, make_classification, make_regression  # noqa: E402
from sklearn.model_selection import GridSearchCV, cross_val_score  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402
from sklearn.utils.estimator_checks import estimator_checks_generator  # noqa: E402

from wengert.estimator import WengertClassifier, WengertEstimator, WengertRegressor  # noqa: E402

pytestmark = [pytest.mark.sklearn, pytest.mark.once]  # of scikit-learn's making, not of an engine's
KINDS = [WengertClassifier, WengertRegressor]
every_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)


def data(kind: type[WengertEstimator]) -> tuple[Any, Any]:
    if kind is WengertClassifier:
        X, y = load_iris(return_X_y=True)
        return X, np.array(["setosa", "versicolor", "virginica"])[y]
    return make_regression(120, 4, noise=1.0, random_state=0)


@pytest.mark.filterwarnings("ignore")  # the checks provoke them
@pytest.mark.parametrize("share", [8, pytest.param(1, marks=pytest.mark.nightly)])
@every_kind
def test_all_that_scikit_learn_checks(kind: type[WengertEstimator], share: int) -> None:
    """They fit it some hundred times: at each change each eighth of them, of the other kind others."""
    checks = [*estimator_checks_generator(kind(max_iter=40))]
    assert len(checks) > 55
    for estimator, check in checks[KINDS.index(kind) :: share]:
        try:
            check(estimator)
        except SkipTest:
            assert check.func.__name__ == "check_array_api_input"


@every_kind
def test_pipelines_and_searches(kind: type[WengertEstimator]) -> None:
    X, y = data(kind)
    whole = make_pipeline(StandardScaler(), kind(max_iter=100, random_state=0))
    assert cross_val_score(whole, X, y, cv=3).min() > 0.85
    name = kind.__name__.lower()
    search = GridSearchCV(whole, {f"{name}__hidden_layer_sizes": [(2,), (8,)], f"{name}__activation": ["tanh"]}, cv=2)
    assert search.fit(X, y).score(X, y) > 0.85
    assert str(search.best_estimator_[-1].model_).startswith("MLP(4 -> ")


@every_kind
def test_it_is_pickled_with_what_it_learnt(kind: type[WengertEstimator]) -> None:
    X, y = data(kind)
    made = kind(max_iter=10, random_state=1).fit(X, y)
    again = pickle.loads(pickle.dumps(made))
    assert (again.predict(X) == made.predict(X)).all()
    assert again.history_.loss == made.history_.loss
    assert clone(made).get_params() == made.get_params()
    assert (clone(made).fit(X, y).predict(X) == made.predict(X)).all()


@every_kind
def test_weights_count_as_often_as_they_say(kind: type[WengertEstimator]) -> None:
    X, y = data(kind)
    weights = np.random.default_rng(0).integers(0, 3, len(X))
    made = kind(max_iter=15, batch_size=1000, random_state=1)
    weighted = clone(made).fit(X, y, sample_weight=weights)
    repeated = clone(made).fit(X.repeat(weights, 0), y.repeat(weights))
    plain = clone(made).fit(X, y)
    assert weighted.history_.loss == pytest.approx(repeated.history_.loss, rel=1e-8)
    assert weighted.history_.loss != pytest.approx(plain.history_.loss, rel=1e-3)


@every_kind
def test_what_pandas_calls_the_features(kind: type[WengertEstimator]) -> None:
    pandas = pytest.importorskip("pandas", reason="needs pandas")
    X, y = data(kind)
    table = pandas.DataFrame(X, columns=["a", "b", "c", "d"])
    made = kind(max_iter=5, random_state=0).fit(table, pandas.Series(y))
    assert made.feature_names_in_.tolist() == ["a", "b", "c", "d"]
    assert (made.predict(table) == made.predict(table)).all()
    with pytest.raises(ValueError, match="feature names should match"):
        made.predict(table[["b", "a", "c", "d"]])


@every_kind
def test_early_stopping_keeps_the_best_epoch(kind: type[WengertEstimator]) -> None:
    if kind is WengertClassifier:
        X, y = make_classification(80, 6, flip_y=0.3, random_state=0)
    else:
        X, y = make_regression(60, 6, noise=80.0, random_state=0)
    made = kind((40,), early_stopping=True, n_iter_no_change=5, learning_rate_init=0.05, random_state=0).fit(X, y)
    history = made.history_
    assert history.stopped_early
    assert made.n_iter_ == len(history) < made.max_iter
    assert history.best_epoch == len(history) - 6
    assert [p.data for p in made.model_.parameters()] == list(history.best_parameters)


def test_it_ends_when_the_loss_stands_still() -> None:
    X, y = load_iris(return_X_y=True)
    made = WengertClassifier(tol=0.05, n_iter_no_change=3, random_state=0).fit(X, y)
    assert 3 < made.n_iter_ < 100
    assert min(made.history_.loss[-3:]) > min(made.history_.loss[:-3]) - 0.05


def test_probabilities() -> None:
    X, y = data(WengertClassifier)
    made = WengertClassifier(max_iter=60, random_state=0).fit(X, y)
    shares = made.predict_proba(X)
    assert shares.sum(1) == pytest.approx(np.ones(len(X)))
    assert (made.classes_[shares.argmax(1)] == made.predict(X)).all()
    with wengert.no_grad():
        want = [p.data for p in wengert.softmax(made.model_(X[0].tolist()))]
    assert shares[0] == pytest.approx(want)


def test_a_model_and_a_loss_of_the_users() -> None:
    class Line(nn.Module):
        def __init__(self, features: int, outputs: int) -> None:
            self.weights = [wengert.Value(0.0) for _ in range(features)]
            self.offset = wengert.Value(0.0)

        def __call__(self, x: Any) -> Any:
            return wengert.dot(self.weights, x, self.offset)

    X, y = make_regression(50, 3, random_state=0)
    y[:5] += 1000.0  # which the least absolute error does not mind
    made = WengertRegressor(
        model=Line, loss=wengert.losses.mae, alpha=0.0, learning_rate_init=0.5, max_iter=400, tol=0.0, random_state=0
    )
    made.fit(X, y)
    assert made.score(X[5:], y[5:]) > 0.99
    assert len(made.model_.parameters()) == 4
    assert "uncompiled" not in made._outputs.report()


def test_targets_of_any_size_are_learnt() -> None:
    X, y = load_diabetes(return_X_y=True)
    scaled = StandardScaler().fit_transform(X)
    small, large = (WengertRegressor(max_iter=20, random_state=0).fit(scaled, y * c) for c in (1.0, 1e6))
    assert large.predict(scaled) == pytest.approx(1e6 * small.predict(scaled))
    assert small.score(scaled, y) > 0.4


def test_what_cannot_be_computed_with_is_named() -> None:
    X, y = data(WengertClassifier)
    with pytest.raises(ArgumentError, match="y has 1 class, 'setosa'; expected at least 2"):
        WengertClassifier().fit(X[:50], y[:50])
    with pytest.raises(ArgumentError, match="alpha is -1; expected a number >= 0"):
        WengertClassifier(alpha=-1).fit(X, y)


def test_the_missing_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn", None)
    monkeypatch.delitem(sys.modules, "wengert.estimator")
    with pytest.raises(MissingExtraError, match=r'needs sklearn: pip install scikit-learn \(the extra "sklearn"\)'):
        __import__("wengert.estimator")
