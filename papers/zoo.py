"""The model zoo: of each headline row, the agent that did best on its validation sequences."""

import json
import shutil
from pathlib import Path

import pandas as pd

from bridge.files import replacing
from bridge.learn import checkpoint
from bridge.learn.folder import AGENT, PROGRESS, WEIGHTS
from papers import store
from papers.pages import render
from papers.study import Row, Table, tables

ZOO = store.ROOT / "zoo"
#: Settings that go without saying in an agent's name.
_USUAL = ("recommended", "default", "theta", "datastar")


def name_of(row: Row) -> str:
    """Return the name of a row's agent in the zoo."""
    return f"{row.policy}-{row.trace.lower()}" + (f"-{row.setting}" if row.setting not in _USUAL else "")


def _chosen(table: Table, row: Row) -> Path | None:
    """Return the folder of the row's best validated agent, if it was trained."""
    found = store.agents(table.name)
    names = set(found[found["row"] == row.name]["agent"]) if row.shipped else set()
    folders = [store.WORK / "agents" / name for name in sorted(names)]
    return min((folder for folder in folders if (folder / WEIGHTS).exists()), key=_validated, default=None)


def _validated(folder: Path) -> float:
    found = pd.read_parquet(folder / PROGRESS)["valid_mean"].min()
    return float(found) if found == found else float("inf")


def write() -> list[Path]:
    """Copy the agents, judge each as users would, and write the index; returns their folders."""
    rows, made = [], []
    for table in tables():
        for row in table.rows:
            if (folder := _chosen(table, row)) is None:
                continue
            target = ZOO / name_of(row)
            target.mkdir(parents=True, exist_ok=True)
            for name in (AGENT, WEIGHTS, PROGRESS):
                shutil.copyfile(folder / name, target / name)
            _forget_folder(target / AGENT)
            told = store.bridge("evaluate", str(target.relative_to(store.ROOT)), "--json")
            with replacing(target / "evaluation.json") as out:
                out.write(told.encode())
            rows.append(_cells(target, json.loads(told)))
            made.append(target)
    with replacing(ZOO / "README.md") as out:
        out.write(render("zoo.md", rows=rows).encode())
    return made


def _forget_folder(agent: Path) -> None:
    """Let an agent know its log by the file's name: nobody else has our folders."""
    content = json.loads(agent.read_text())
    content["workload"] = Path(content["workload"]).name
    with replacing(agent) as out:
        out.write(json.dumps(content, indent=2).encode())


def _cells(folder: Path, judged: dict[str, list[dict[str, object]]]) -> tuple[object, ...]:
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
        f"`{agent.origin.command}`",
    )
