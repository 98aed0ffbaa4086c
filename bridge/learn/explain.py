"""What an agent looks at: how the features of what it chooses are distributed, beside those of all it saw.

SchedInspector's Figure 13 compares rejected with all inspected jobs, feature by feature. The same is done
here for PICK and BACKFILL with the chosen rows against all rows that were shown.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from bridge.env.batch import View
from bridge.errors import BridgeError
from bridge.fast.episode import Prepared
from bridge.files import replacing
from bridge.learn.agent import answers, schedules_by
from bridge.learn.checkpoint import Checkpoint

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

FILE = "explanation.parquet"
#: Most points of a stored curve.
POINTS = 200
#: Quantiles of the table.
QUANTILES = (0.1, 0.5, 0.9)


@dataclass(frozen=True)
class Feature:
    """One feature's values.

    Attributes:
        name: the encoder's.
        chosen, all: [·] sorted, of the chosen (INSPECT: rejected) rows and of all.
        distance: Kolmogorov–Smirnov's: the largest difference of the two distributions, 0 … 1.
        larger: whether chosen values tend to be larger where that difference is.
    """

    name: str
    chosen: Floats
    all: Floats
    distance: float
    larger: bool

    def quantiles(self) -> tuple[list[float], list[float]]:
        """Return `QUANTILES` of the chosen and of all values."""
        return (
            [float(v) for v in np.quantile(self.chosen, QUANTILES)],
            [float(v) for v in np.quantile(self.all, QUANTILES)],
        )


@dataclass(frozen=True)
class Explanation:
    """All features, the most telling first.

    Attributes:
        features: by descending distance.
        decisions, chosen, rows: how many decisions were taken, and rows chosen and shown.
    """

    features: list[Feature]
    decisions: int
    chosen: int
    rows: int


def curve(values: Floats) -> tuple[Floats, Floats]:
    """Return up to `POINTS` values of a sorted sample and the share of the sample at or below each."""
    places = np.unique(np.linspace(0, len(values) - 1, POINTS).round().astype(np.int64))
    points = np.unique(values[places])
    return points, np.searchsorted(values, points, side="right") / len(values)


def compare(name: str, chosen: Floats, everything: Floats) -> Feature:
    """Return a feature from the values of its chosen and of all rows."""
    from scipy.stats import ks_2samp

    chosen, everything = np.sort(chosen), np.sort(everything)
    found = ks_2samp(chosen, everything, method="asymp")
    return Feature(name, chosen, everything, float(found.statistic), bool(found.statistic_sign < 0))


def explain(
    agent: Checkpoint,
    prepared: Prepared,
    starts: Ints,
    length: int,
    progress: Callable[[int], None] | None = None,
) -> Explanation:
    """Play sequences and compare what was chosen with all that was shown.

    Args:
        agent: who decides.
        prepared: the workload under the agent's policy.
        starts: [k] first job of each sequence.
        length: jobs a sequence.
        progress: called with the number of finished sequences.

    Raises:
        BridgeError: no decision had to be taken, nothing was ever chosen (INSPECT: rejected), or a sequence
            does not fit.
    """
    answer = answers(agent)
    inspects = agent.recipe.decision == "inspect"
    every: list[npt.NDArray[np.float32]] = []
    taken: list[npt.NDArray[np.float32]] = []
    sizes: list[int] = []

    def watched(view: View) -> Ints:
        actions = answer(view)
        every.append(view.rows.copy())
        taken.append(view.rows[view.offsets[:-1][actions == 1] if inspects else view.offsets[:-1] + actions])
        sizes.append(len(actions))
        return actions

    schedules_by(agent.encoder(), watched, prepared, starts, length, progress)
    decisions = sum(sizes)
    if decisions == 0:
        raise BridgeError(
            "no decision had to be taken",
            where=prepared.jobs.name,
            remedy="Use another log or more sequences.",
        )
    shown, chosen = np.concatenate(every), np.concatenate(taken)
    if len(chosen) == 0:
        raise BridgeError(
            f"none of {decisions:,} picks was rejected, so there is nothing to compare",
            where=str(agent.folder),
            remedy="The agent has learnt to accept everything; train it longer, or try more sequences.",
        )
    features = [
        compare(name, chosen[:, k].astype(np.float64), shown[:, k].astype(np.float64))
        for k, name in enumerate(agent.recipe.encoder.columns)
    ]
    features.sort(key=lambda feature: -feature.distance)
    return Explanation(features, decisions, len(chosen), len(shown))


def write(path: Path, explanation: Explanation) -> None:
    """Write the curves as Parquet: feature, kind (``chosen`` or ``all``), value, cdf; the most telling first.

    Raises:
        BridgeError: the file cannot be written.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    names: list[str] = []
    kinds: list[str] = []
    values: list[Floats] = []
    shares: list[Floats] = []
    for feature in explanation.features:
        for kind, sample in (("chosen", feature.chosen), ("all", feature.all)):
            at, share = curve(sample)
            names += [feature.name] * len(at)
            kinds += [kind] * len(at)
            values.append(at)
            shares.append(share)
    table = pa.table(
        {"feature": names, "kind": kinds, "value": np.concatenate(values), "cdf": np.concatenate(shares)}
    )
    with replacing(path) as out:
        pq.write_table(table, out)
