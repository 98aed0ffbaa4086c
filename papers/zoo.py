"""The model zoo: of each headline row, the agent that did best on its validation sequences."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

from bridge.files import replacing
from bridge.learn import checkpoint
from bridge.learn.folder import AGENT, PROGRESS, WEIGHTS
from papers import store
from papers.rows import TABLES, Row, Table

ZOO = store.ROOT / "zoo"
_HEAD = """# Trained agents

Each folder is the agent of one headline row of [docs/results](../docs/results/README.md): of its seeds the
one that did best on the validation sequences, which are part of what it learnt from. `bridge evaluate
zoo/NAME` judges it again on sequences that it has not seen; the log must be in `$BRIDGE_TRACES`, or fetched.
`agent.json` has the recipe and the log's digest. MRSch's workloads are made of theta_2022: `bridge workload
generate mrsch --setting S4 --base theta_2022.swf.gz --seed 1 --out S4.parquet`, then `bridge evaluate
zoo/mrsch-s4` in the same folder. DRAS (88 MB) is not here.

| agent | learnt on | seed | epochs | seconds | held-out: base → agent | made by |
|---|---|---|---|---|---|---|
"""


#: Settings that go without saying in an agent's name.
_USUAL = ("recommended", "default", "theta", "datastar")


def name_of(row: Row) -> str:
    """Return the name of a row's agent in the zoo."""
    return f"{row.policy}-{row.trace.lower()}" + (f"-{row.setting}" if row.setting not in _USUAL else "")


def _chosen(table: Table, row: Row) -> Path | None:
    """Return the folder of the row's best validated agent, if it was trained."""
    found = store.read(table.name)
    names = (
        set(found[(found["row"] == row.name) & (found["kind"] == "agent") & (found["smoke"] == 0)]["agent"])
        if len(found)
        else set()
    )
    folders = [store.WORK / "agents" / name for name in sorted(names)]
    folders = [folder for folder in folders if (folder / WEIGHTS).exists()]
    return min(folders, key=_validated, default=None)


def _validated(folder: Path) -> float:
    import pyarrow.parquet as pq

    values = pq.read_table(folder / PROGRESS)["valid_mean"].to_numpy()
    return float(min((v for v in values if v == v), default=float("inf")))


def write() -> list[Path]:
    """Copy the agents, judge each by the command that users type, and write the index."""
    lines, made = [], []
    for table in TABLES:
        for row in table.rows:
            folder = _chosen(table, row) if row.headline and row.shipped else None
            if folder is None:
                continue
            target = ZOO / name_of(row)
            target.mkdir(parents=True, exist_ok=True)
            for name in (AGENT, WEIGHTS, PROGRESS):
                shutil.copyfile(folder / name, target / name)
            command = [
                sys.executable,
                "-m",
                "bridge.cli.main",
                "evaluate",
                str(target.relative_to(store.ROOT)),
            ]
            done = subprocess.run([*command, "--json"], cwd=store.ROOT, capture_output=True, check=True)
            with replacing(target / "evaluation.json") as out:
                out.write(done.stdout)
            _forget_folder(target / AGENT)
            lines.append(_line(target, json.loads(done.stdout)))
            made.append(target)
    with replacing(ZOO / "README.md") as out:
        out.write((_HEAD + "\n".join(lines) + "\n").encode())
    return made


def _forget_folder(agent: Path) -> None:
    """Let an agent know its log by the file's name: nobody else has our folders."""
    content = json.loads(agent.read_text())
    content["workload"] = Path(content["workload"]).name
    with replacing(agent) as out:
        out.write(json.dumps(content, indent=2).encode())


def _line(folder: Path, judged: dict[str, object]) -> str:
    import pyarrow.parquet as pq

    agent = checkpoint.load(folder)
    progress = pq.read_table(folder / PROGRESS).to_pydict()
    policies = {p["name"]: p for p in judged["policies"]}  # type: ignore[attr-defined]
    own, base = policies[folder.name], next(iter(policies.values()))
    cells = (
        f"[{folder.name}]({folder.name})",
        agent.origin.workload_name,
        str(agent.origin.seed),
        str(len(progress["epoch"])),
        f"{sum(progress['seconds']):.0f}",
        f"{base['mean']:.2f} → {own['mean']:.2f}",
        f"`{agent.origin.command}`",
    )
    return "| " + " | ".join(cells) + " |"
