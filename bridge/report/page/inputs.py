"""What a report can show, recognised by what it is and read: runs, evaluations, agents, bounds, pictures."""

import base64
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from bridge.base import files
from bridge.base.counted import counted
from bridge.base.errors import BridgeError
from bridge.judge.compare import names_of
from bridge.judge.run import Run, read_run, run_folder
from bridge.judge.world_agreement import ValidationDocument, read_validation
from bridge.report.evaluation_document import Bounds, EvaluationDocument, bounds_of, has_policies_with, parse

ACCEPTED = (
    "A report takes run folders (`bridge replay … --out DIR`, `bridge run … --out DIR`), validations "
    "(`bridge validate … --out DIR`), evaluations (`bridge evaluate … --json > FILE`), bounds (`bridge bound "
    "… --json > FILE`), pictures (`bridge forecast … --plot FILE.svg`) and checkpoint folders (with an "
    "agent.json)."
)
#: Pictures by their suffix.
PICTURES = {".svg": "image/svg+xml", ".png": "image/png"}
#: Columns of progress.parquet that the page knows; of these only the first must be there.
PROGRESS: tuple[str, ...] = ("epoch", "seconds", "train_mean", "base_mean", "valid_mean", "valid_base")
PROGRESS += ("reward_mean", "kl", "entropy", "policy_loss", "value_loss", "decisions", "clip_fraction")


@dataclass(frozen=True)
class ValidationInput:
    """A `validation.json`, and the runs that lie beside it: policy → (fast, detailed), if they are there."""

    document: ValidationDocument
    runs: dict[str, tuple[Run, Run]]


@dataclass(frozen=True)
class CheckpointReport:
    """An agent; None for files that its folder lacks.

    Attributes:
        progress: one row per epoch, columns from ``PROGRESS`` and any others.
        explanation: columns feature, kind (chosen or all), value, cdf (share at or below, 0 … 1).
    """

    agent: dict[str, Any]
    progress: pd.DataFrame | None
    evaluation: EvaluationDocument | None
    explanation: pd.DataFrame | None


@dataclass(frozen=True)
class ReportInputs:
    """Everything that goes onto a page, by kind, under the names that the page uses.

    `sources`: (name, kind in words, how it was made or what it is), as given; `pictures`: (name, data URI).
    """

    sources: list[tuple[str, str, str]] = field(default_factory=list)
    runs: list[tuple[str, Run]] = field(default_factory=list)
    evaluations: list[tuple[str, EvaluationDocument]] = field(default_factory=list)
    validations: list[tuple[str, ValidationInput]] = field(default_factory=list)
    checkpoints: list[tuple[str, CheckpointReport]] = field(default_factory=list)
    bounds: list[tuple[str, Bounds]] = field(default_factory=list)
    pictures: list[tuple[str, str]] = field(default_factory=list)


def read_inputs(paths: Sequence[Path]) -> ReportInputs:
    """Read runs, validations, evaluations, bounds, pictures and checkpoints; BridgeError: none, or broken."""
    if not paths:
        raise BridgeError("there is nothing to report on", remedy=ACCEPTED)
    places = [path.resolve() for path in paths]
    for k, path in enumerate(paths):
        if places[k] in places[:k]:
            raise BridgeError("is given twice", where=str(path), remedy="Name every input once.")
    inputs = ReportInputs()
    for path, name in zip(paths, names_of(paths), strict=True):
        if files.is_there(path, Path.is_dir):
            _read_folder(path, name, inputs)
        elif files.is_there(path, Path.is_file):
            _read_file(path, name, inputs)
        else:
            raise BridgeError("no such file or folder", where=str(path), remedy=ACCEPTED)
    return inputs


def _read_folder(path: Path, name: str, inputs: ReportInputs) -> None:
    if (path / "run.toml").is_file():
        run = read_run(path)
        inputs.runs.append((name, run))
        inputs.sources.append((name, "run", str(run.config.get("command") or "")))
    elif (path / "validation.json").is_file():
        _read_file(path / "validation.json", name, inputs)
    elif (path / "agent.json").is_file():
        checkpoint = read_checkpoint(path)
        inputs.checkpoints.append((name, checkpoint))
        names = [checkpoint.agent.get(key) for key in ("name", "setting")]
        inputs.sources.append((name, "checkpoint", ", ".join(one for one in names if isinstance(one, str))))
    elif (path / "agreement.json").is_file():
        runs = sorted(str(run_file.parent) for run_file in path.glob("*/*/*/run.toml"))
        what = "is a validation of the time-stepped pool, which is reported run by run"
        remedy = f"Name its runs: {' '.join(runs[:2]) or 'there are none'}"
        raise BridgeError(what, where=str(path), remedy=remedy)
    else:
        message = "is neither a run, nor a validation, nor a checkpoint"
        raise BridgeError(message, where=str(path), remedy=ACCEPTED)


def _read_file(path: Path, name: str, inputs: ReportInputs) -> None:
    if kind := PICTURES.get(path.suffix.lower()):
        inputs.pictures.append((name, f"data:{kind};base64,{base64.b64encode(path.read_bytes()).decode()}"))
        inputs.sources.append((name, "picture", ""))
        return
    try:
        document = files.read_json(path)
    except BridgeError as error:
        raise BridgeError(error.what, where=error.where, remedy=ACCEPTED) from error
    if has_policies_with(document, "detailed"):
        validation = read_validation(document, str(path))
        inputs.validations.append((name, ValidationInput(validation, runs_beside(validation, path.parent))))
        names = [validation.inputs.get(key) for key in ("workload", "platform", "profile")]
        inputs.sources.append((name, "validation", ", ".join(str(one) for one in names if one)))
    elif has_policies_with(document, "values"):
        evaluation = parse(document, str(path))
        inputs.evaluations.append((name, evaluation))
        windows = counted(len(evaluation.base.values), "window")
        windows += f" of {evaluation.length:,} jobs" if evaluation.length else ""
        names = [evaluation.workload, evaluation.metric, windows]
        inputs.sources.append((name, "evaluation", ", ".join(filter(None, names))))
    elif isinstance(document, dict) and {"rows", "rules"} <= document.keys():
        bounds = bounds_of(document, str(path))
        inputs.bounds.append((name, bounds))
        inputs.sources.append((name, "bound", f"{bounds.workload}, {counted(bounds.sequences, 'sequence')}"))
    else:
        raise BridgeError("is no evaluation, validation or bound", where=str(path), remedy=ACCEPTED)


def runs_beside(validation: ValidationDocument, folder: Path) -> dict[str, tuple[Run, Run]]:
    """Read the runs that `bridge validate --out` wrote beside the document, as far as they are there."""
    runs = {}
    for policy in (one.policy for one in validation.policies):
        place = run_folder(folder, policy)
        worlds = [place / world for world in ("fast", str(validation.inputs.get("world")))]
        if place.name.strip(".") and all((world / "run.toml").is_file() for world in worlds):
            runs[policy] = read_run(worlds[0]), read_run(worlds[1])
    return runs


def read_checkpoint(folder: Path) -> CheckpointReport:
    """Read a checkpoint folder. Raises BridgeError: a file is broken, or lacks a column."""
    agent = files.read_json(folder / "agent.json")
    if not isinstance(agent, dict):
        raise BridgeError("is no JSON object", where=str(folder / "agent.json"))
    evaluation, path = None, folder / "evaluation.json"
    if files.is_there(path, Path.is_file):
        document = files.read_json(path)
        if not has_policies_with(document, "values"):
            remedy = "`bridge evaluate --json` makes one."
            raise BridgeError("is no evaluation", where=str(path), remedy=remedy)
        evaluation = parse(document, str(path))
    progress = _table(folder / "progress.parquet", needed=("epoch",), numbers=PROGRESS)
    path = folder / "explanation.parquet"
    explanation = _table(path, needed=("feature", "kind", "value", "cdf"), numbers=("value", "cdf"))
    unknown = set() if explanation is None else {*map(str, explanation["kind"])} - {"chosen", "all"}
    if unknown:
        raise BridgeError(f"kind {min(unknown)!r} is neither 'chosen' nor 'all'", where=str(path))
    return CheckpointReport(agent, progress, evaluation, explanation)


def _table(path: Path, needed: Collection[str], numbers: Collection[str]) -> pd.DataFrame | None:
    if not files.is_there(path, Path.is_file):
        return None
    frame, _ = files.read_parquet(path)
    for column in (*needed, *numbers):
        if column not in frame.columns and column in needed:
            raise BridgeError(f"has no column {column!r}", where=str(path))
        if column in frame.columns and column in numbers and frame[column].dtype.kind not in "iuf":
            raise BridgeError(f"column {column!r} does not hold numbers", where=str(path))
    return frame
