"""What a report can show, recognised by what it is: runs, validations, evaluations, checkpoints."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from bridge import files
from bridge.errors import BridgeError
from bridge.report.page.checkpoint import Checkpoint, read_checkpoint
from bridge.report.page.evaluation import Evaluation, is_evaluation, parse
from bridge.report.page.validation import Validation, checked, is_validation, runs_beside

if TYPE_CHECKING:
    from bridge.judge.run import Run

ACCEPTED = (
    "A report takes run folders (`bridge replay … --out DIR`, `bridge run … --out DIR`), validations "
    "(`bridge validate … --out DIR`), evaluations (`bridge evaluate … --json > FILE`) and checkpoint folders "
    "(with an agent.json)."
)


@dataclass(frozen=True)
class Material:
    """Everything that goes onto a page, by kind, under the names that the page uses.

    Attributes:
        sources: (name, kind in words, how it was made or what it is), in the order given.
    """

    sources: list[tuple[str, str, str]] = field(default_factory=list)
    runs: "list[tuple[str, Run]]" = field(default_factory=list)
    evaluations: list[tuple[str, Evaluation]] = field(default_factory=list)
    validations: list[tuple[str, Validation]] = field(default_factory=list)
    checkpoints: list[tuple[str, Checkpoint]] = field(default_factory=list)


def read_inputs(paths: Sequence[Path]) -> Material:
    """Read runs, validations, evaluations and checkpoints.

    Raises:
        BridgeError: nothing is given, an input is given twice, is none of these, or is broken.
    """
    if not paths:
        raise BridgeError("there is nothing to report on", remedy=ACCEPTED)
    made = Material()
    for path, name in zip(paths, _names(paths), strict=True):
        if path.is_dir():
            _read_folder(path, name, made)
        elif path.is_file():
            _read_file(path, name, made)
        else:
            raise BridgeError("no such file or folder", where=str(path), remedy=ACCEPTED)
    return made


def _names(paths: Sequence[Path]) -> list[str]:
    """Return the shortest tails of the paths that tell them apart."""
    parts = [path.resolve().parts for path in paths]
    for k, path in enumerate(paths):
        if parts[k] in parts[:k]:
            raise BridgeError("is given twice", where=str(path), remedy="Name every input once.")
    for length in range(1, max(map(len, parts)) + 1):
        names = ["/".join(part[-length:]) for part in parts]
        if len(set(names)) == len(names):
            break
    return names


def _read_folder(path: Path, name: str, made: Material) -> None:
    if (path / "run.toml").is_file():
        from bridge.judge.run import read_run

        run = read_run(path)
        made.runs.append((name, run))
        made.sources.append((name, "run", str(run.config.get("command") or "")))
    elif (path / "validation.json").is_file():
        _read_file(path / "validation.json", name, made)
    elif (path / "agent.json").is_file():
        checkpoint = read_checkpoint(path)
        made.checkpoints.append((name, checkpoint))
        told = [checkpoint.agent.get(key) for key in ("name", "setting")]
        made.sources.append((name, "checkpoint", ", ".join(one for one in told if isinstance(one, str))))
    elif (path / "agreement.json").is_file():
        runs = sorted(str(made.parent) for made in path.glob("*/*/*/run.toml"))
        raise BridgeError(
            "is a validation of the time-stepped pool, which is reported run by run",
            where=str(path),
            remedy=f"Name its runs: {' '.join(runs[:2]) or 'there are none'}",
        )
    else:
        raise BridgeError(
            "is neither a run, nor a validation, nor a checkpoint", where=str(path), remedy=ACCEPTED
        )


def _read_file(path: Path, name: str, made: Material) -> None:
    try:
        document = files.read_json(path)
    except BridgeError as error:
        raise BridgeError(error.what, where=error.where, remedy=ACCEPTED) from error
    if is_validation(document):
        validation = Validation(checked(document, str(path)), runs_beside(document, path.parent))
        made.validations.append((name, validation))
        told = [document["inputs"].get(key) for key in ("workload", "platform", "profile")]
        made.sources.append((name, "validation", ", ".join(str(one) for one in told if one)))
    elif is_evaluation(document):
        evaluation = parse(document, str(path))
        made.evaluations.append((name, evaluation))
        made.sources.append((name, "evaluation", _about(evaluation)))
    else:
        raise BridgeError("is neither an evaluation nor a validation", where=str(path), remedy=ACCEPTED)


def _about(evaluation: Evaluation) -> str:
    windows = len(evaluation.base.values)
    size = f" of {evaluation.length:,} jobs" if evaluation.length else ""
    return ", ".join(filter(None, (evaluation.workload, evaluation.metric, f"{windows:,} windows{size}")))
