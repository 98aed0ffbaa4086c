"""What an agent looks at: how the features of what it chooses are distributed, beside those of all it saw.

SchedInspector's Figure 13 compares rejected with all inspected jobs, feature by feature. The same is done
here for PICK and BACKFILL with the chosen rows against all rows that were shown.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from bridge.base.arrays import Floats, Ints
from bridge.base.errors import BridgeError
from bridge.base.files import atomic_write
from bridge.base.progress import ProgressCallback, ignore_progress
from bridge.learn.agent import action_function_of, schedules_by
from bridge.learn.checkpoint import LogAgent
from bridge.learn.rollout import DecisionRecorder
from bridge.workload.select import Jobs
from bridge.worlds.fast.episode import Scenario

FILE = "explanation.parquet"
#: Most points of a stored curve.
POINTS = 200
#: Quantiles of the table.
QUANTILES = (0.1, 0.5, 0.9)


@dataclass(frozen=True)
class Feature:
    """One feature's values.

    `chosen`, `all`: [·] sorted, of the chosen (INSPECT: rejected) rows and of all. `distance`:
    Kolmogorov–Smirnov's, 0 … 1. `larger`: whether chosen values tend to be larger where that is.
    """

    name: str
    chosen: Floats
    all: Floats
    distance: float
    larger: bool

    def quantiles(self) -> tuple[list[float], list[float]]:
        """Return `QUANTILES` of the chosen and of all values."""
        return np.quantile(self.chosen, QUANTILES).tolist(), np.quantile(self.all, QUANTILES).tolist()

    def as_dict(self) -> dict[str, Any]:
        chosen, everything = self.quantiles()
        return {
            "feature": self.name,
            "distance": self.distance,
            "chosen_are": None if self.distance == 0 else "larger" if self.larger else "smaller",
            "chosen_quantiles": chosen,
            "all_quantiles": everything,
        }


@dataclass(frozen=True)
class Explanation:
    features: list[Feature]
    decisions: int
    chosen: int
    rows: int

    def as_dict(self) -> dict[str, Any]:
        counts = {name: getattr(self, name) for name in ("decisions", "chosen", "rows")}
        features = [feature.as_dict() for feature in self.features]
        return {**counts, "quantiles": list(QUANTILES), "features": features}


def empirical_cdf(values: Floats) -> tuple[Floats, Floats]:
    """Return up to `POINTS` values of a sorted sample and the share of the sample at or below each."""
    places = np.unique(np.linspace(0, len(values) - 1, POINTS).round().astype(np.int64))
    points = np.unique(values[places])
    return points, np.searchsorted(values, points, side="right") / len(values)


def compare(name: str, chosen: Floats, everything: Floats) -> Feature:
    """Return a feature from the values of its chosen and of all rows."""
    chosen, everything = np.sort(chosen), np.sort(everything)
    both = np.concatenate((chosen, everything))
    parts = [np.searchsorted(sample, both, "right") / len(sample) for sample in (chosen, everything)]
    difference = parts[0] - parts[1]
    above, below = float(difference.max()), float(-difference.min())
    return Feature(name, chosen, everything, max(above, below), below > above)


def spaced_starts(jobs: Jobs, first: int, length: int, sequences: int) -> Ints:
    """Return the first jobs of sequences spread evenly over a log from `first` on; BridgeError: too few."""
    last = len(jobs) - length
    if last < first:
        what = f"{len(jobs) - first:,} held-out jobs are too few for a sequence of {length}"
        raise BridgeError(what, where=jobs.name, remedy="Give a longer log with --workload.")
    return np.unique(np.linspace(first, last, sequences).astype(np.int64))


def explain(
    agent: LogAgent,
    prepared: Scenario,
    starts: Ints,
    length: int,
    progress: ProgressCallback = ignore_progress,
) -> Explanation:
    """Play sequences and compare the chosen candidates with all that were visible.

    Arguments are those of `bridge.learn.agent.play_sequences`. Raises BridgeError: no decision had to be
    taken, nothing was ever chosen (INSPECT: rejected), or a sequence does not fit.
    """
    watched = DecisionRecorder(action_function_of(agent))
    schedules_by(agent.encoder(), watched, prepared, starts, length, progress)
    if not watched.kept:
        remedy = "Use another log or more sequences."
        raise BridgeError("no decision had to be taken", where=prepared.jobs.name, remedy=remedy)
    rows, offsets, _, actions = watched.packed()
    inspects, decisions = agent.recipe.decision == "inspect", len(actions)
    chosen = rows[offsets[:-1][actions == 1] if inspects else offsets[:-1] + actions]
    if len(chosen) == 0:
        what = f"none of {decisions:,} picks was rejected, so there is nothing to compare"
        remedy = "The agent has learnt to accept everything; train it longer, or try more sequences."
        raise BridgeError(what, where=str(agent.folder), remedy=remedy)
    features = [
        compare(name, chosen[:, k].astype(np.float64), rows[:, k].astype(np.float64))
        for k, name in enumerate(agent.recipe.encoder.columns)
    ]
    features.sort(key=lambda feature: -feature.distance)
    return Explanation(features, decisions, len(chosen), len(rows))


def write(path: Path, explanation: Explanation) -> None:
    """Write the curves as Parquet: feature, kind (chosen, all), value, cdf; the most telling first."""
    parts = []
    for feature in explanation.features:
        for kind, sample in (("chosen", feature.chosen), ("all", feature.all)):
            at, share = empirical_cdf(sample)
            parts.append(pd.DataFrame({"feature": feature.name, "kind": kind, "value": at, "cdf": share}))
    with atomic_write(path) as out:
        pd.concat(parts).to_parquet(out, index=False)
