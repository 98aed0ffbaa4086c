"""How agents learnt, kept beside the results (`*-curves.jsonl`), so that every clone draws the same."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from bridge.base.files import atomic_write
from bridge.config import from_tables
from bridge.learn.checkpoint_files import PROGRESS
from bridge.study.cells import Cell
from bridge.study.spec import Study
from bridge.study.store import Store
from papers import store

#: Epochs of the moving mean over an epoch's own sequences: they differ by more than what is learnt.
WINDOW = 20


@dataclass(frozen=True)
class Curve:
    """How one or more agents of a row learnt, the mean over these agents.

    Those that were drawn before curves were kept are known as the mean that was drawn.

    Attributes:
        row: of the table; the first one, where several ask the same agents.
        log: that they learnt on.
        agents: their folders' names.
        validated: (epoch, metric over the base's on the validation sequences).
        learning: (last epoch, metric over the base's on the sequences of `WINDOW` epochs, with exploration:
            mean, least, most of the agents).
        entropy: (epoch, entropy of the policy): at first, in the middle and at the end of `learning`.
        rejected: (epoch, share of the picks that an inspector rejected), at the same epochs.
    """

    row: str
    log: str
    agents: tuple[str, ...]
    validated: tuple[tuple[int, float], ...]
    learning: tuple[tuple[int, float, float, float], ...] = ()
    entropy: tuple[tuple[int, float], ...] = ()
    rejected: tuple[tuple[int, float], ...] = ()


def of_progress(row: str, log: str, agent: str, progress: pd.DataFrame) -> Curve:
    """Return an agent's curve, made of its training's record, an epoch a line."""
    validated = progress.dropna(subset=["valid_mean"])
    ratio = validated["valid_mean"] / validated["valid_base"]
    ones = np.ones(min(WINDOW, len(progress)))
    agents, base = (np.convolve(progress[name].to_numpy(float), ones, "valid") for name in _MEANS)
    moving = [float(f"{v:.6g}") for v in agents / base]
    ends = progress["epoch"].tolist()[len(ones) - 1 :]
    entropy = [float(f"{v:.6g}") for v in progress["entropy"]]
    first, middle, last = 0, (len(moving) - 1) // 2, len(progress) - 1
    rejected = progress["rejected"].tolist() if "rejected" in progress else [np.nan] * len(progress)
    return Curve(
        row,
        log,
        (agent,),
        tuple((int(e), float(f"{v:.6g}")) for e, v in zip(validated["epoch"], ratio, strict=True)),
        tuple((int(e), v, v, v) for e, v in zip(ends, moving, strict=True)),
        tuple((k + 1, entropy[k]) for k in (first, middle, last) if np.isfinite(entropy[k])),
        tuple((k + 1, float(f"{v:.4g}")) for k in (first, middle, last) if np.isfinite(v := rejected[k])),
    )


_MEANS = ("train_mean", "base_mean")


def keep_all(study: Study, cells: Iterable[Cell], cell_store: Store) -> None:
    """Keep the curves of agents that have learnt here, unless they are kept."""
    path = store.path_of(f"{study.name}-curves", ".jsonl")
    kept = _all(path)
    before = _without_shorter(kept, cells, cell_store)
    there = {agent for curve in before for agent in curve.agents} | {""}
    fresh = []
    for cell in cells:
        progress = cell_store.agent(cell.agent_key) / PROGRESS
        if cell.agent_key not in there and progress.exists() and cell_store.cell(cell.key) is not None:
            there.add(cell.agent_key)
            log = _name(study, cell)
            fresh.append(of_progress(cell.row, log, cell.agent_key, pd.read_parquet(progress)))
    if fresh or before != kept:
        write(path, sorted((*before, *fresh), key=lambda curve: (curve.log, curve.row, curve.agents)))


def _name(study: Study, cell: Cell) -> str:
    """Return what a study calls the log that a cell learns on: its own, where that is the one."""
    names = (cell.log, *study.files)
    return next((name for name in names if study.files.get(name) == cell.learnt_on), cell.learnt_on)


def _without_shorter(curves: list[Curve], cells: Iterable[Cell], cell_store: Store) -> list[Curve]:
    """Return curves without those that hold an agent which has been trained on, here."""
    longer = [cell for cell in cells if cell_store.agent(cell.agent_key).exists()]
    shorter = {one.agent_key for cell in longer for one in cell.shorter}
    return [curve for curve in curves if shorter.isdisjoint(curve.agents)]


def write(path: Path, curves: list[Curve]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as out:
        out.write("".join(json.dumps(asdict(c), ensure_ascii=False) + "\n" for c in curves).encode())


def _all(path: Path) -> list[Curve]:
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [from_tables(Curve, json.loads(line), str(path)) for line in lines]


def read(table: str) -> dict[tuple[str, str], list[Curve]]:
    curves: dict[tuple[str, str], list[Curve]] = {}
    for curve in _all(store.path_of(f"{table}-curves", ".jsonl")):
        curves.setdefault((curve.row, curve.log), []).append(curve)
    return curves


def rejections(table: str) -> list[str]:
    """Return how many picks each row's inspectors rejected, as they learnt (SchedInspector, Figure 7)."""
    lines = []
    for (row, log), agents in read(table).items():
        if all(agent.rejected for agent in agents):
            shares = together(agents, "rejected")["mean"]
            text = ", ".join(f"epoch {epoch}: {100 * share:.0f} %" for epoch, share in shares.items())
            lines.append(f"- {row}, {log}: {text}")
    return ["Picks that were rejected while it learnt:", "", *lines] if lines else []


def seeds_of(curves: list[Curve]) -> int:
    return sum(len(curve.agents) for curve in curves)


def together(curves: list[Curve], part: str, *, hold: bool = False) -> pd.DataFrame:
    """Return a part of all curves, by epoch: mean over the agents that have it, least and most, how many.

    `part`: ``validated``, ``learning``, ``entropy`` or ``rejected``. `hold`: an agent that has ended earlier
    than others counts as it was at its end.
    """
    parts = [(len(curve.agents), getattr(curve, part)) for curve in curves]
    if hold:
        epochs = sorted({point[0] for _, points in parts for point in points})
        parts = [
            (n, (*has, *((e, *has[-1][1:]) for e in epochs if e > has[-1][0]))) for n, has in parts if has
        ]
    lines = [
        (point[0], n, point[1], point[-2] if len(point) > 2 else point[1], point[-1])
        for n, points in parts
        for point in points
    ]
    rows = pd.DataFrame(lines, columns=["epoch", "agents", "mean", "low", "high"])
    rows["mean"] *= rows["agents"]
    by_epoch = rows.groupby("epoch")
    totals = by_epoch.agg({"agents": "sum", "mean": "sum", "low": "min", "high": "max"})
    return totals.assign(mean=totals["mean"] / totals["agents"])
