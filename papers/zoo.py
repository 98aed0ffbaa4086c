"""The model zoo: of each headline row, the agent that did best on its validation sequences."""

import json
import shutil
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from bridge.base.cache import AGENT
from bridge.base.errors import BridgeError
from bridge.base.files import atomic_write
from bridge.env.encoder import Encoder
from bridge.learn import checkpoint
from bridge.learn.checkpoint_files import PROGRESS, WEIGHTS, is_of_pool
from bridge.pool.recipe import PoolRecipe
from bridge.study.headings import heading
from bridge.study.report import interval
from bridge.study.results import document_of
from bridge.study.store import Store
from papers import store, studies
from papers.pages import render
from papers.rlschert import shipped

ZOO = store.ROOT / "zoo"
_OF_BACKFILLING = ("SDSC-SP2", "HPC2N", "Lublin-1", "Lublin-2")
_OF_INSPECTOR = ("SDSC-SP2", "CTC-SP2", "Lublin-1", "HPC2N")
#: Agent's name but for its log -> table and row of which it is the best, and the logs.
SHIPPED = {
    "rlbackfilling-{}": ("rlbackfilling-4-fcfs", "RLBackfilling, ours", _OF_BACKFILLING),
    "rlbackfilling-{}-sjf": ("rlbackfilling-4-sjf", "RLBackfilling, ours", ("Lublin-1",)),
    "rlbackfilling-{}-paper": ("rlbackfilling-4-fcfs", "RLBackfilling, as the paper", _OF_BACKFILLING),
    "schedinspector-{}": ("schedinspector-4", "inspector, ours, the paper's rules", _OF_INSPECTOR),
    "schedinspector-{}-paper": ("schedinspector-4", "inspector, as the paper", _OF_INSPECTOR),
    "mrsch-{}": ("mrsch-s1-s5", "MRSch", ("S4",)),
    "mrsch-{}-ours": ("mrsch-s1-s5", "ours (PPO)", ("S4",)),
    "mrsch-{}-power": ("mrsch-s6-s10", "ours (PPO)", ("S9",)),
    "sem-{}": ("sem-{}", "SEM", ("Theta", "DataStar")),
    "rlschert": ("rlschert-7", "RLSchert", ("VASP jobs",)),
    "rlschert-rule-kill": ("rlschert-7", "RLSchert, rule kill", ("VASP jobs",)),
}


@dataclass(frozen=True)
class Held:
    """An agent of the zoo: name, agent, epochs that it learnt, their seconds, what `bridge evaluate` told."""

    name: str
    agent: checkpoint.Agent[Any]
    epochs: int
    seconds: float
    judged: Mapping[str, Any]

    @classmethod
    def of(cls, folder: Path) -> "Held":
        seconds = pd.read_parquet(folder / PROGRESS)["seconds"]
        document = json.loads((folder / "evaluation.json").read_text(encoding="utf-8"))
        return cls(folder.name, checkpoint.load_any(folder), len(seconds), float(seconds.sum()), document)

    @property
    def of_pool(self) -> bool:
        return isinstance(self.agent.recipe, PoolRecipe)


def chosen(table: str, row: str, log: str) -> Path | None:
    """Return the folder of a row's best validated agent, of those that have learnt here."""
    seeds = (studies.agent(table.partition("-")[0], table, row, log, seed) for seed in range(1, 10))
    return min((folder for folder in seeds if folder is not None), key=_validated, default=None)


def _headline() -> Iterator[tuple[Path, str, str, str]]:
    """Yield each agent's folder, and the table, row and log of which it is the best."""
    for name, (table, row, logs) in SHIPPED.items():
        for log in logs:
            yield ZOO / name.format(log.lower()), table.format(log.lower()), row, log


def _is_better(folder: Path, target: Path) -> bool:
    return not target.exists() or _validated(folder) < _validated(target)


def _validated(folder: Path) -> float:
    best = pd.read_parquet(folder / PROGRESS)["valid_mean"].min()
    return float(best) if best == best else float("inf")


def write(names: Collection[str] = ()) -> list[Path]:
    """Copy agents (of these `names`, else all that are better than those there), judge them, write cards."""
    written, rows, headline = [], [], list(_headline())
    if unknown := sorted(set(names) - {target.name for target, *_ in headline}):
        remedy = f"Agents: {', '.join(target.name for target, *_ in headline)}."
        raise BridgeError("no such agent", where=unknown[0], remedy=remedy)
    for target, table, row, log in headline:
        folder = chosen(table, row, log) if not names or target.name in names else None
        if folder is not None and _is_better(folder, target):
            _copy(folder, target)
            written.append(target)
        held = Held.of(target)
        rows.append(_cells(held, f"{table}, {row}"))
        with atomic_write(target / "README.md") as out:
            out.write(card(held, _row_says(held, table, row, log)).encode())
    with atomic_write(ZOO / "README.md") as out:
        out.write(render("zoo.md", rows=rows).encode())
    return written


def _copy(folder: Path, target: Path) -> None:
    """Copy an agent, and judge it as users would."""
    target.mkdir(parents=True, exist_ok=True)
    for file in (AGENT, WEIGHTS, PROGRESS):
        shutil.copyfile(folder / file, target / file)
    _forget_folder(target / AGENT)
    more = shipped.words() if is_of_pool(target) else ()
    output = store.bridge("evaluate", str(target.relative_to(store.ROOT)), *more, "--json")
    with atomic_write(target / "evaluation.json") as out:
        out.write(output.encode())


def _forget_folder(agent: Path) -> None:
    """Let an agent know its log by the file's name: nobody else has our folders."""
    content = json.loads(agent.read_text(encoding="utf-8"))
    content["workload"] = Path(content["workload"]).name
    with atomic_write(agent) as out:
        out.write(json.dumps(content, indent=2).encode())


def _cells(held: Held, row: str) -> tuple[object, ...]:
    base, own = (shipped.means if held.of_pool else _means)(held.judged, held.name)
    return (
        f"[{held.name}]({held.name})",
        held.agent.origin.workload_name,
        held.agent.origin.seed,
        held.epochs,
        f"{held.seconds:.0f}",
        f"{base:.2f} → {own:.2f}",
        row,
    )


def _means(judged: Mapping[str, Any], name: str) -> tuple[float, float]:
    policies = {policy["name"]: policy["mean"] for policy in judged["policies"]}
    return next(iter(policies.values())), policies[name]


@cache
def _row_document(table: str) -> Mapping[str, Any]:
    return document_of(*studies.table(table.partition("-")[0], table), Store(studies.CELLS))


def card(held: Held, row_says: str) -> str:
    """Return an agent's model card: log, rules, seeds, how good it is, what it looks at."""
    recipe, origin, judged = held.agent.recipe, held.agent.origin, held.judged
    common = {
        "name": held.name,
        "recipe": recipe,
        "log": origin.workload_name,
        "jobs": f"{origin.jobs:,}",
        "digest": origin.sha256[:12],
        "seed": origin.seed,
        "epochs": held.epochs,
        "seconds": f"{held.seconds:.0f}",
        "row_says": row_says,
    }
    if held.of_pool:
        return render("zoo-pool-card.md", **common, **shipped.card(recipe, judged, held.name))
    policies = {p["name"]: p for p in judged["policies"]}
    base, own = next(iter(policies.values())), policies[held.name]
    return render(
        "zoo-card.md",
        **common,
        part=f"{recipe.training.part[1]:.0%}",
        held_out=f"{recipe.test_from:.0%}",
        rules=_rules(base),
        windows=judged["sequences"],
        length=judged["length"],
        b=own["ci95"]["b"],
        own=interval(judged["metric"], own["ci95"]),
        base_name=base["name"],
        base=interval(judged["metric"], base["ci95"]),
        difference=interval(judged["metric"], own["difference"], "+"),
        verdict=own["verdict"],
        looks_at=_looks_at(recipe.encoder),
        features=list(recipe.encoder.features.items()) + list(recipe.encoder.machine.items()),
    )


def _rules(base: Mapping[str, str]) -> str:
    names = {
        "order": "order",
        "backfill": "backfilling",
        "candidate_order": "candidates by",
        "preset": "jobs as",
    }
    held = [f"{word} `{base[name]}`" for name, word in names.items() if base[name]]
    return ", ".join([*held, f"rules of `{base['protocol']}`", f"run times `{base['estimator']}`"])


def _looks_at(encoder: Encoder) -> str:
    question = {
        "pick": "Which waiting job is next",
        "backfill": "Which job is backfilled next",
        "pick+backfill": "Which job is next, and which is backfilled",
        "inspect": "Whether the order's pick passes",
    }[encoder.decision]
    running = f", and {sum(encoder.running_rows):,} rows of running jobs" if encoder.running_rows else ""
    return f"{question}, by one row for each of up to {encoder.window} candidates{running}:"


def _row_says(held: Held, table: str, row: str, log: str) -> str:
    """Return what the row of all seeds has today, against its base and the best rule, and which is best."""
    row_document = _row_document(table)
    here = [one for one in row_document["rows"] if (one["row"], one["log"]) == (row, log)]
    named = f"[{row_document['title']}](../../docs/results/{table}.md)"
    if not here:
        return f"Its row is in {named}."
    one, metric = here[0], row_document["metric"]
    counts = f"{one['seeds']} seeds, b = {one['mean']['b']}"
    text = [f"The row, {counts}, in {named}: {heading(metric)} {interval(metric, one['mean'])}"]
    for what, pairs in (
        ("its base", row_document["comparisons"]),
        ("the best rule", row_document["best_rules"]),
    ):
        for pair in pairs:
            if (pair["row"], pair["log"], pair["test"]) == (row, log, one["test"]):
                gap = interval(metric, pair["difference"], "+")
                text.append(f"against {what}, {pair['base']}, {gap}, {pair['verdict']}")
                break
    return "; ".join(text) + "." + _best_says(held, one, metric)


def _best_says(held: Held, row: Mapping[str, Any], metric: str) -> str:
    """Return whether an agent is the row's best validated one, or which is."""
    if (kept := row.get("kept")) is None:
        return ""
    seed, epochs = kept["seed"], dict(zip(map(int, row["by_seed"]), row["epochs"], strict=True))
    if (seed, epochs[seed]) == (held.agent.origin.seed, held.epochs):
        return " Of its seeds this one does best on validation sequences."
    trained, best = f"trained for {epochs[seed]} epochs", interval(metric, kept["mean"])
    return f" Of its seeds number {seed}, {trained}, does best on validation sequences: {best}."
