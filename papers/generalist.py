"""The generalist beside every rule on logs that it never saw: one table per log, and all of them pooled.

python -m papers.generalist AGENT [AGENT …]    # one folder per seed
python -m papers.generalist                    # the page, from what was measured
"""

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from bridge.base.arrays import Floats, Ints
from bridge.forecasting.bound import RULES
from bridge.judge.sequences import SAMPLERS, compute_sequence_metric, sample
from bridge.judge.stats import INTERVALS, ConfidenceInterval, block_length, interval_of, parts
from bridge.learn.agent import play_sequences
from bridge.learn.checkpoint import load
from bridge.report.folding import collapsible
from bridge.report.table import Table
from bridge.scheduler.state import SECOND
from bridge.worlds.fast.replay import Schedule, replay_sequences
from bridge.worlds.fast.scheduler_config import SchedulerConfig
from papers import logs, store

#: Kept out of all training and tuning.
UNSEEN = ("CTC-SP2", "DataStar")
#: What is believed, the agent's training first -> how it is said.
BELIEFS = {
    "requested": "requested times",
    "predicted(requested)": "the mean of the user's last two ended runs (running jobs: requested times)",
}
#: Sequences of a log, jobs of each, and the seed of their draw.
SEQUENCES, LENGTH, SEED = 200, 1024, 16
_PATH = store.path_of("generalist", ".json")


def measured(folders: list[Path], estimator: str) -> dict[str, Any]:
    """Return, by log, the first jobs, and by policy what came of each sequence under these beliefs."""
    agents = [load(folder) for folder in folders]
    values_by_policy: dict[str, Any] = {}
    for name in UNSEEN:
        jobs = SchedulerConfig().select(logs.log(name))
        starts = np.sort(sample(SAMPLERS["standard"], len(jobs), SEQUENCES, LENGTH, SEED))
        rows = {}
        for rule in RULES:
            ready = replace(SchedulerConfig(), order=rule, estimator=estimator).build_scenario(jobs)
            rows[f"{rule}+easy"] = _of(ready, replay_sequences(ready, starts, LENGTH), starts)
        for agent in agents:
            setup = replace(agent.recipe.setup, estimator=estimator)
            ready = setup.build_scenario(jobs, agent.recipe.policy())
            played = play_sequences(agent, ready, starts, LENGTH)
            rows[f"generalist, seed {agent.origin.seed}"] = _of(ready, played, starts)
        values_by_policy[name] = {"jobs": len(jobs), "starts": starts.tolist(), "policies": rows}
        print(
            name, {policy: round(float(np.mean(row["bsld"])), 3) for policy, row in rows.items()}, flush=True
        )
    return values_by_policy


def _of(ready: Any, played: Any, starts: Ints) -> dict[str, Any]:
    """Return the metrics of each sequence, and the 99.9th percentile of all waits, in hours."""
    kept: list[Schedule] = list(played)
    values: dict[str, Any] = {
        metric: [
            round(compute_sequence_metric(ready, one, int(first), metric), 6)
            for one, first in zip(kept, starts, strict=True)
        ]
        for metric in ("bsld", "wait", "utilisation")
    }
    waits = [
        one.start - ready.jobs.submit[first : first + LENGTH] for one, first in zip(kept, starts, strict=True)
    ]
    return {**values, "longest": float(np.quantile(np.concatenate(waits), 0.999)) / SECOND / 3600}


def interquartile(values: Floats) -> float:
    low, high = np.quantile(values, [0.25, 0.75])
    return float(values[(values >= low) & (values <= high)].mean())


class Compared:
    """Differences of the seeds together to a rule, in percent, on each log and pooled.

    The logarithm of a ratio of means varies as the values over their means do (to first order).
    """

    def __init__(self, documents: dict[str, Any], rule: str) -> None:
        whole, varying = [], []
        for k, one in enumerate(documents.values()):
            order = np.argsort(one["starts"], kind="stable")
            agents = np.array([row["bsld"] for name, row in one["policies"].items() if _learnt(name)])
            base = np.array([one["policies"][rule]["bsld"]])
            rows = [agents[:, order] / agents.mean(), -base[:, order] / base.mean()]
            whole.append(float(np.log(agents.mean() / base.mean())))
            varying.append(parts(rows, block_length(one["starts"], LENGTH), seed=k))
        b = blocks(documents)
        self.by_log = {
            name: _percent(interval_of(point, of, SEQUENCES, b[name]))
            for name, point, of in zip(documents, whole, varying, strict=True)
        }
        share = 1 / len(whole)
        pooled = [one.scaled(share) for of in varying for one in of]
        self.pooled = _percent(interval_of(share * sum(whole), pooled, SEQUENCES, min(b.values())))


def blocks(documents: dict[str, Any]) -> dict[str, int]:
    """Return the independent blocks of the sequences on each log."""
    return {name: SEQUENCES // block_length(one["starts"], LENGTH) for name, one in documents.items()}


def _percent(of: ConfidenceInterval) -> str:
    point, low, high = (100.0 * float(np.expm1(one)) for one in (of.mean, of.low, of.high))
    return f"{point:+.1f} % [{low:+.1f}, {high:+.1f}]{of.mark}"


def _learnt(name: str) -> bool:
    return name.startswith("generalist")


def page(documents: dict[str, dict[str, Any]]) -> str:
    seeds = sum(_learnt(name) for name in next(iter(documents["requested"].values()))["policies"])
    written = [
        "# One agent on logs that it never saw",
        "The agent *generalist* was trained on the first 60 % of SDSC-SP2, HPC2N, Curie, Theta, Lublin-1 and "
        "Lublin-2, with requested times as estimates. "
        f"{' and '.join(UNSEEN)} were not used in any training or tuning. {seeds} seeds were trained; "
        "`zoo/generalist` is the one with seed 2. The tables show the difference in mean bounded slowdown "
        f"between the agent (all {seeds} seeds together) and each rule. Both use the same estimates, and the "
        f"same {SEQUENCES} sequences of {LENGTH:,} jobs. *Pooled* is the geometric mean over the logs.",
        *collapsible(
            "Intervals",
            [
                f"{INTERVALS} Here b is "
                f"{', '.join(f'{b} on {name}' for name, b in blocks(documents['requested']).items())}. The "
                "intervals also include the variance between seeds."
            ],
        ),
    ]
    for estimator, title in BELIEFS.items():
        logs_of = documents[estimator]
        compared = {rule: Compared(logs_of, rule) for rule in (f"{rule}+easy" for rule in RULES)}
        rows = [(rule, *one.by_log.values(), one.pooled) for rule, one in compared.items()]
        written += [
            f"## Estimates: {title}",
            Table(("compared with", *logs_of, "pooled"), rows).markdown().rstrip(),
        ]
        for name, one in logs_of.items():
            written += collapsible(f"{name}, {title}", [_table(one["policies"]).markdown().rstrip()])
    written.append(
        "The folded tables also show the median of the sequences, and the mean of their middle half "
        "(interquartile mean). The last column is the 99.9th percentile of the "
        "waits of all jobs. Made by `python -m papers.generalist AGENT …`."
    )
    return "\n\n".join(written) + "\n"


def _table(policies: dict[str, Any]) -> Table:
    heads = ("policy", "mean", "median", "interquartile mean", "wait, h", "utilisation, %", "99.9 % wait, h")
    table = Table(heads)
    for name, row in policies.items():
        slow = np.array(row["bsld"])
        plain = (float(slow.mean()), float(np.median(slow)), interquartile(slow), np.mean(row["wait"]) / 3600)
        used = 100 * float(np.mean(row["utilisation"]))
        table.add(name, *(f"{one:.2f}" for one in plain), f"{used:.2f}", f"{row['longest']:.1f}")
    return table


def main(folders: list[str]) -> None:
    """Measure, if agents are named, and write the page."""
    if folders:
        paths = [Path(one) for one in folders]
        _PATH.write_text(json.dumps({one: measured(paths, one) for one in BELIEFS}) + "\n", encoding="utf-8")
    print(store.written("generalist", page(json.loads(_PATH.read_text(encoding="utf-8")))))


if __name__ == "__main__":
    main(sys.argv[1:])
