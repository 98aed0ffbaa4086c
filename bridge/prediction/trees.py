"""Gradient-boosted trees: lengths from features, a quantile of the lengths of equal jobs (scikit-learn).

RLSchert (Wang et al., Appl. Sci. 2021, Section 4.2) predicts from input parameters with boosted trees. Ours
learn logarithms: twice as long as believed is as wrong as half as long.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Annotated, Any

import numpy as np

from bridge.base.arrays import Floats
from bridge.base.errors import BridgeError
from bridge.config import Constraint, verify

#: Largest seed that scikit-learn takes.
MAX_SEED = 2**32 - 1


#: What has learnt: features [n, F] → lengths [n], in the unit it has learnt from.
Fitted = Callable[[Floats], Floats]


@dataclass(frozen=True)
class Boosting:
    """Settings of the trees; numbers are scikit-learn's defaults.

    Attributes:
        rounds: trees, one after the other.
        rate: how much of each is believed.
        leaves: most leaves of a tree.
        least: fewest jobs in a leaf.
        quantile: share of equal jobs that shall be no longer than predicted: 0.5 for the smallest errors,
            more for a scheduler that has to rely on it.
        seed: of what little is drawn (which jobs bins are made from, beyond 200,000).
    """

    rounds: Annotated[int, Constraint(ge=1, le=10**5)] = 100
    rate: Annotated[float, Constraint(gt=0, le=1)] = 0.1
    leaves: Annotated[int, Constraint(ge=2, le=10**5)] = 31
    least: Annotated[int, Constraint(ge=1, le=10**9)] = 20
    quantile: Annotated[float, Constraint(gt=0, lt=1)] = 0.5
    seed: Annotated[int, Constraint(ge=0, le=MAX_SEED)] = 0

    def __post_init__(self) -> None:
        verify(self, "boosted trees")


def fit(features: Floats, lengths: Floats, settings: Boosting | None = None) -> Fitted:
    """Learn lengths [n] > 0 from features [n, F], NaN = unknown; same input, same trees, bit for bit.

    BridgeError: scikit-learn is not installed, there is no job, or a length is not positive.
    """
    ensembles, limits = library("boosted trees")
    settings = settings or Boosting()
    if len(lengths) == 0 or not np.all(np.isfinite(lengths)) or np.any(lengths <= 0):
        raise BridgeError("trees learn from one or more jobs, of positive lengths", where="boosted trees")
    has_values = np.isfinite(features).any(axis=0)  # scikit-learn cannot bin a feature of no job
    trees = ensembles.HistGradientBoostingRegressor(
        loss="quantile",
        quantile=settings.quantile,
        max_iter=settings.rounds,
        learning_rate=settings.rate,
        max_leaf_nodes=settings.leaves,
        min_samples_leaf=settings.least,
        early_stopping=False,  # it would hold out a random part of the jobs
        random_state=settings.seed,
    )
    with limits(1, "openmp"):  # sums of several threads are added in any order
        trees.fit(np.where(has_values, features, 0.0), np.log(lengths))

    def predict(features: Floats) -> Floats:
        with limits(1, "openmp"):
            predicted: Floats = np.exp(trees.predict(np.where(has_values, features, 0.0)))
        return predicted

    return predict


def library(what: str) -> tuple[Any, Any]:
    """Return scikit-learn's ensembles, which somebody needs, and the context that limits their threads."""
    try:
        trees, threads = import_module("sklearn.ensemble"), import_module("threadpoolctl")
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("sklearn", "threadpoolctl"):
            raise
        what = f"{what} need scikit-learn, which is not installed"
        raise BridgeError(what, remedy="Install it: pip install scikit-learn") from None
    return trees, threads.threadpool_limits
