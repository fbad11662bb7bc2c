"""`wengert.estimator` beside scikit-learn's own networks, on data sets that scikit-learn ships: ``python -m
tools.qa.estimators`` prints a table of scores, by five folds, and of the processor's time for a fit.

Both have the same sizes, step size, batches and end; each pair is fitted on the same fold, one after the other.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_wine
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.preprocessing import StandardScaler

from wengert.estimator import WengertClassifier, WengertRegressor

SETS: dict[str, tuple[Callable[..., Any], type, type]] = {
    "breast cancer": (load_breast_cancer, WengertClassifier, MLPClassifier),
    "digits": (load_digits, WengertClassifier, MLPClassifier),
    "wine": (load_wine, WengertClassifier, MLPClassifier),
    "diabetes": (load_diabetes, WengertRegressor, MLPRegressor),
}
SHARED = {
    "hidden_layer_sizes": (32,),
    "learning_rate_init": 0.01,
    "batch_size": 100,
    "max_iter": 100,
    "alpha": 1e-4,
    "early_stopping": True,
    "n_iter_no_change": 10,
    "random_state": 0,
}


def row(name: str) -> str:
    """A line of the table."""
    load, *kinds = SETS[name]
    X, y = load(return_X_y=True)
    folds = (StratifiedKFold if is_classifier(kinds[0]()) else KFold)(5, shuffle=True, random_state=0)
    found: dict[type, list[tuple[float, float, int]]] = {kind: [] for kind in kinds}
    for train, test in folds.split(X, y):
        scaler = StandardScaler().fit(X[train])
        for kind in kinds:
            made = kind(**SHARED)
            began = time.process_time()
            made.fit(scaler.transform(X[train]), y[train])
            seconds = time.process_time() - began
            found[kind].append((made.score(scaler.transform(X[test]), y[test]), seconds, made.n_iter_))
    cells = [f"{len(X):,} x {X.shape[1]}"]
    for results in found.values():
        score, _, epochs = np.mean(results, 0)
        cells += [f"{score:.3f}", f"{np.median([seconds for _, seconds, _ in results]):.2f} s", f"{epochs:.0f}"]
    return f"| {name} | {' | '.join(cells)} |"


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # that a hundred epochs were not enough
    print("| data | examples | Wengert | fit | epochs | scikit-learn | fit | epochs |")
    print("|---|---|---|---|---|---|---|---|")
    for each in SETS:
        print(row(each), flush=True)
