"""A checkpoint folder: what the agent is, how it learnt, what it is worth, what it looks at."""

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bridge import files
from bridge.errors import BridgeError
from bridge.report.page.evaluation import Evaluation, is_evaluation, parse

if TYPE_CHECKING:
    import pandas as pd

#: Columns of progress.parquet that the page knows; of these only the first must be there.
PROGRESS = (
    "epoch",
    "seconds",
    "train_mean",
    "base_mean",
    "reward_mean",
    "valid_mean",
    "valid_base",
    "kl",
    "entropy",
    "policy_loss",
    "value_loss",
    "decisions",
    "clip_fraction",
)


@dataclass(frozen=True)
class Checkpoint:
    """An agent; None for what is not in its folder.

    Attributes:
        agent: agent.json, any keys.
        progress: one row per epoch, columns from ``PROGRESS`` and any others.
        evaluation: evaluation.json.
        explanation: columns feature, kind (chosen or all), value, cdf (share at or below, 0 … 1).
    """

    agent: dict[str, Any]
    progress: "pd.DataFrame | None"
    evaluation: Evaluation | None
    explanation: "pd.DataFrame | None"


def read_checkpoint(folder: Path) -> Checkpoint:
    """Read a checkpoint folder.

    Raises:
        BridgeError: a file is broken, or lacks a column.
    """
    agent = files.read_json(folder / "agent.json")
    if not isinstance(agent, dict):
        raise BridgeError("is no JSON object", where=str(folder / "agent.json"))
    evaluation, path = None, folder / "evaluation.json"
    if path.is_file():
        document = files.read_json(path)
        if not is_evaluation(document):
            raise BridgeError(
                "is no evaluation", where=str(path), remedy="`bridge evaluate --json` makes one."
            )
        evaluation = parse(document, str(path))
    return Checkpoint(
        agent=agent,
        progress=_table(folder / "progress.parquet", needed=("epoch",), numbers=PROGRESS),
        evaluation=evaluation,
        explanation=_explanation(folder / "explanation.parquet"),
    )


def _explanation(path: Path) -> "pd.DataFrame | None":
    frame = _table(path, needed=("feature", "kind", "value", "cdf"), numbers=("value", "cdf"))
    if frame is not None:
        unknown = sorted(set(map(str, frame["kind"])) - {"chosen", "all"})
        if unknown:
            raise BridgeError(f"kind {unknown[0]!r} is neither 'chosen' nor 'all'", where=str(path))
    return frame


def _table(path: Path, needed: Collection[str], numbers: Collection[str]) -> "pd.DataFrame | None":
    """Return a Parquet table, None if there is no such file."""
    if not path.is_file():
        return None
    frame, _ = files.read_parquet(path)
    for column in needed:
        if column not in frame.columns:
            raise BridgeError(f"has no column {column!r}", where=str(path))
    for column in numbers:
        if column in frame.columns and frame[column].dtype.kind not in "iuf":
            raise BridgeError(f"column {column!r} does not hold numbers", where=str(path))
    return frame
