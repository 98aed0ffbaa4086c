"""The model zoo: of each headline row, the agent that did best on its validation sequences."""

import json
import shutil
from pathlib import Path

import pandas as pd

from bridge.files import replacing
from bridge.learn import checkpoint
from bridge.learn.folder import AGENT, PROGRESS, WEIGHTS
from papers import store, studies
from papers.pages import render

ZOO = store.ROOT / "zoo"
_OF_BACKFILLING = ("SDSC-SP2", "HPC2N", "Lublin-1", "Lublin-2")
_OF_INSPECTOR = ("SDSC-SP2", "CTC-SP2", "Lublin-1", "HPC2N")
#: Agent's name but for its log -> table and row of which it is the best, and the logs.
SHIPPED = {
    "rlbackfilling-{}": ("rlbackfilling-4-fcfs", "RLBackfilling, ours", _OF_BACKFILLING),
    "rlbackfilling-{}-paper": ("rlbackfilling-4-fcfs", "RLBackfilling, as the paper", _OF_BACKFILLING),
    "schedinspector-{}": ("schedinspector-4", "inspector, ours, the paper's rules", _OF_INSPECTOR),
    "schedinspector-{}-paper": ("schedinspector-4", "inspector, as the paper", _OF_INSPECTOR),
    "mrsch-{}": ("mrsch-s1-s5", "MRSch", ("S4",)),
    "mrsch-{}-ours": ("mrsch-s1-s5", "ours (PPO)", ("S4",)),
    "sem-{}": ("sem-{}", "SEM", ("Theta", "DataStar")),
}


def chosen(table: str, row: str, log: str) -> Path | None:
    """Return the folder of a row's best validated agent, of those that have learnt here."""
    seeds = (studies.agent(table.partition("-")[0], table, row, log, seed) for seed in range(1, 10))
    return min((folder for folder in seeds if folder is not None), key=_validated, default=None)


def _validated(folder: Path) -> float:
    found = pd.read_parquet(folder / PROGRESS)["valid_mean"].min()
    return float(found) if found == found else float("inf")


def write() -> list[Path]:
    """Copy the agents that have learnt here, judge each as users would, and write the index of all."""
    made, rows = [], []
    for name, (table, row, logs) in SHIPPED.items():
        for log in logs:
            target = ZOO / name.format(log.lower())
            folder = chosen(table.format(log.lower()), row, log)
            if folder is not None and (not target.exists() or _validated(folder) < _validated(target)):
                _copy(folder, target)
                made.append(target)
            judged = json.loads((target / "evaluation.json").read_text())
            rows.append(_cells(target, judged, f"{table.format(log.lower())}, {row}"))
    with replacing(ZOO / "README.md") as out:
        out.write(render("zoo.md", rows=rows).encode())
    return made


def _copy(folder: Path, target: Path) -> None:
    """Copy an agent, and judge it as users would."""
    target.mkdir(parents=True, exist_ok=True)
    for file in (AGENT, WEIGHTS, PROGRESS):
        shutil.copyfile(folder / file, target / file)
    _forget_folder(target / AGENT)
    told = store.bridge("evaluate", str(target.relative_to(store.ROOT)), "--json")
    with replacing(target / "evaluation.json") as out:
        out.write(told.encode())


def _forget_folder(agent: Path) -> None:
    """Let an agent know its log by the file's name: nobody else has our folders."""
    content = json.loads(agent.read_text())
    content["workload"] = Path(content["workload"]).name
    with replacing(agent) as out:
        out.write(json.dumps(content, indent=2).encode())


def _cells(folder: Path, judged: dict[str, list[dict[str, object]]], row: str) -> tuple[object, ...]:
    agent, progress = checkpoint.load(folder), pd.read_parquet(folder / PROGRESS)
    policies = {p["name"]: p for p in judged["policies"]}
    own, base = policies[folder.name], next(iter(policies.values()))
    return (
        f"[{folder.name}]({folder.name})",
        agent.origin.workload_name,
        agent.origin.seed,
        len(progress),
        f"{progress['seconds'].sum():.0f}",
        f"{base['mean']:.2f} → {own['mean']:.2f}",
        row,
    )
