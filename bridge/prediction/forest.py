"""A quantile forest: the whole distribution of a value from features, by one model (scikit-learn's trees).

A job's distribution is that of the values that share its leaves, over all trees (Meinshausen, "Quantile
regression forests", JMLR 7, 2006). Quantiles of one distribution cannot cross.
"""

from dataclasses import dataclass
from typing import Annotated

import numpy as np

from bridge.base.arrays import Floats
from bridge.base.errors import BridgeError
from bridge.config import Constraint, verify
from bridge.prediction.trees import MAX_SEED, library

#: What stands for a feature that is not known: less than every known one.
_UNKNOWN = -1e6


@dataclass(frozen=True)
class ForestSettings:
    """Settings of a forest.

    Attributes:
        trees: how many; each learns from a sample of the rows.
        leaf: fewest rows in a leaf.
        features: share of the features that each split may choose from.
        kept: values kept of each leaf, drawn at random where it has more.
    """

    trees: Annotated[int, Constraint(ge=1, le=10**4)] = 30
    leaf: Annotated[int, Constraint(ge=1, le=10**9)] = 10
    features: Annotated[float, Constraint(gt=0, le=1)] = 0.4
    kept: Annotated[int, Constraint(ge=1, le=10**4)] = 8
    seed: Annotated[int, Constraint(ge=0, le=MAX_SEED)] = 0

    def __post_init__(self) -> None:
        verify(self, "quantile forest")


class Forest:
    """A forest that has learnt; the same input gives the same forest, bit for bit.

    `features`: [n, F], NaN = unknown. `values`: [n], finite; of any scale that suits a mean (logarithms for
    lengths). BridgeError: scikit-learn is not installed, there is no row, or a value is not finite.
    """

    def __init__(self, features: Floats, values: Floats, settings: ForestSettings | None = None) -> None:
        settings = settings or ForestSettings()
        if len(values) == 0 or not np.all(np.isfinite(values)):
            what = "a forest learns from one or more rows, of finite values"
            raise BridgeError(what, where="quantile forest")
        ensembles, _ = library("quantile forests")
        self._trees = ensembles.RandomForestRegressor(
            n_estimators=settings.trees,
            min_samples_leaf=settings.leaf,
            max_features=settings.features,
            random_state=settings.seed,
            n_jobs=1,
        ).fit(_without_nan(features), values)
        leaves = np.asarray(self._trees.apply(_without_nan(features)))
        rng = np.random.default_rng(settings.seed)
        places = np.arange(settings.kept)
        self._kept: list[Floats] = []  # of each tree: [nodes, kept]
        for tree in range(settings.trees):
            shuffled = rng.permutation(len(values))
            order = shuffled[np.argsort(leaves[shuffled, tree], kind="stable")]
            nodes = np.arange(leaves[:, tree].max() + 1)
            first = np.searchsorted(leaves[order, tree], nodes)
            count = np.searchsorted(leaves[order, tree], nodes, side="right") - first
            chosen = first[:, None] + places * count[:, None] // settings.kept
            self._kept.append(values[order][np.minimum(chosen, len(values) - 1)])

    def quantiles(self, features: Floats, levels: Floats) -> Floats:
        """Return the quantiles [m, Q] of rows [m, F] at levels [Q] between 0 and 1, ascending with them."""
        if len(features) == 0:
            return np.zeros((0, len(levels)))
        leaves = np.asarray(self._trees.apply(_without_nan(features)))
        values = np.concatenate([kept[leaves[:, tree]] for tree, kept in enumerate(self._kept)], axis=1)
        values.sort(axis=1)
        place = np.clip(levels * values.shape[1] - 0.5, 0, values.shape[1] - 1)
        low = np.floor(place).astype(np.int64)
        part = place - low
        high = np.minimum(low + 1, values.shape[1] - 1)
        values_between: Floats = values[:, low] * (1 - part) + values[:, high] * part
        return np.maximum.accumulate(values_between, axis=1)


def _without_nan(features: Floats) -> Floats:
    return np.nan_to_num(features, nan=_UNKNOWN, posinf=1e30, neginf=-1e30)
