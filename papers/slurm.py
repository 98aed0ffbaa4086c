"""What of a gain under the protocol standard is left under Slurm's own rules: orders and agents on two logs.

python -m papers.slurm [LOG …]    # measures what is missing, of all logs without names; then writes the page
"""

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from bridge.base.arrays import Floats, Ints
from bridge.base.files import atomic_write
from bridge.judge.sequences import SAMPLERS, sample, values_of
from bridge.judge.stats import ConfidenceInterval, window_bootstrap
from bridge.learn.agent import play_sequences
from bridge.learn.checkpoint import LogAgent
from bridge.learn.learner import TrainingContext
from bridge.learn.recipe import Recipe
from bridge.learn.registry import recipe_of
from bridge.learn.training import TrainingData, train_or_resume, use_threads
from bridge.report.folding import collapsible
from bridge.report.table import Table
from bridge.worlds.fast.scheduler_config import SchedulerConfig
from papers import logs, store
from papers.pages import render

#: Log -> equal nodes of its site, which has one partition and no weights: Slurm goes by submission.
NODES = {"SDSC-SP2": 128, "HPC2N": 240}
PROTOCOLS = ("standard", "slurm")
#: Orders in place of Slurm's, the first of which is the base.
ORDERS = ("fcfs", "sjf", "saf")
#: Policies that are trained, and what they decide.
AGENTS = {"rlscheduler": "PICK", "rlbackfilling": "BACKFILL"}
SEEDS = (1, 2, 3)
#: Of each training: fewer epochs than recommended, as agents within Slurm play some 2,000 jobs a second.
TRAINING: dict[str, Any] = {"epochs": 12, "validate_every": 4}
#: Sequences are of the jobs behind this part of the log, which no agent has learnt on.
TEST_FROM, SEQUENCES, LENGTH, SEED = 0.6, 200, 256, 1
_FOLDER = store.WORK / "slurm"
_PATH = store.path_of("slurm-gain", ".json")


def _setup(log: str, protocol: str, order: str = "fcfs") -> SchedulerConfig:
    """Return the rules of a row; the site's file is made if it is not there."""
    if protocol == "standard":
        return SchedulerConfig(order=order)
    path = _FOLDER / f"{log}.toml"
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(path) as out:
        nodes = f'[[nodes]]\nname = "n"\ncount = {NODES[log]}\n'
        out.write(f'name = "{log}"\n{nodes}[[partitions]]\nname = "batch"\n'.encode())
    return SchedulerConfig(order=order, backfill="slurm", protocol="slurm", cluster=str(path))


def _agent(log: str, policy: str, protocol: str, seed: int) -> LogAgent:
    """Return an agent that learnt on a log's first part; it learns now if it has not yet."""
    recipe = recipe_of(policy)
    assert isinstance(recipe, Recipe)
    training = replace(recipe.training, **TRAINING)
    recipe = replace(recipe, setup=_setup(log, protocol), training=training, deploy="greedy")
    data = TrainingData.of(recipe, logs.log(log), logs.log(log).digest())
    folder = _FOLDER / "agents" / f"{policy}-{log}-{protocol}-s{seed}"
    assert isinstance(data.recipe, Recipe)
    context = TrainingContext(data.recipe, data.jobs, data.origin(log, seed), folder)
    trained: Any = train_or_resume(context)
    return trained  # type: ignore[no-any-return]


def _rows() -> Iterator[tuple[str, str, str, int]]:
    """Yield rows: protocol, order or policy, the protocol that it learnt under, its seed."""
    for order in ORDERS:
        for protocol in PROTOCOLS:
            yield protocol, order, "", 0
    for learnt, protocol in (("slurm", "slurm"), ("standard", "standard"), ("standard", "slurm")):
        for seed in SEEDS:
            for policy in AGENTS:
                yield protocol, policy, learnt, seed


def _key(protocol: str, policy: str, learnt: str, seed: int) -> str:
    return f"{policy} under {protocol}" + (f", learnt under {learnt}, seed {seed}" if learnt else "")


def _starts(n: int) -> Ints:
    before = round(n * TEST_FROM)
    return np.sort(before + sample(SAMPLERS["standard"], n - before, SEQUENCES, LENGTH, SEED))


def _measured(log: str, protocol: str, policy: str, learnt: str, seed: int) -> list[float]:
    """Return the mean bounded slowdown of each sequence."""
    setup = _setup(log, protocol, policy if not learnt else "fcfs")
    jobs, play, decides = setup.select(logs.log(log)), None, None
    if learnt:
        agent = _agent(log, policy, learnt, seed)
        decides = agent.recipe.policy(setup)

        def play(*arguments: Any) -> Any:
            return play_sequences(agent, *arguments)

    scenario = setup.build_scenario(jobs, decides)
    values = values_of(scenario, _starts(len(jobs)), LENGTH, "bsld", play=play)
    return [round(value, 6) for value in values.tolist()]


def measure(log: str) -> None:
    """Measure the rows of a log that have not been measured yet; each is kept at once."""
    for row in _rows():
        path = _FOLDER / "cells" / log / f"{_key(*row)}.json"
        if path.exists():
            continue
        values = _measured(log, *row)
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(path) as out:
            out.write(json.dumps(values).encode())
        print(log, _key(*row), round(float(np.mean(values)), 2), flush=True)


def collect() -> None:
    """Bring what was measured together as the page's data."""
    document: dict[str, Any] = {}
    for log in NODES:
        n = len(SchedulerConfig().select(logs.log(log)))
        cells = {
            path.stem: json.loads(path.read_text()) for path in sorted((_FOLDER / "cells" / log).glob("*"))
        }
        document[log] = {"starts": _starts(n).tolist(), "rows": cells}
    with atomic_write(_PATH) as out:
        out.write(json.dumps(document, indent=0).encode())


# The page.


def _values(log: str, protocol: str, policy: str, learnt: str) -> Floats | None:
    """Return a row's values [sequences], means over the seeds of all rows; None: it was not measured."""
    rows = store.read_json("slurm-gain")[log]["rows"]
    keys = [_key(protocol, policy, learnt, seed) for seed in (_seeds() if learnt else (0,))]
    if any(key not in rows for key in keys):
        return None
    return np.asarray(np.mean([rows[key] for key in keys], axis=0), np.float64)


def _means(log: str, protocol: str, policy: str, learnt: str) -> str:
    """Return the mean of each seed, for the table of values."""
    rows = store.read_json("slurm-gain")[log]["rows"]
    means = [np.mean(rows[_key(protocol, policy, learnt, seed)]) for seed in _seeds()]
    return "; seeds " + ", ".join(f"{mean:.1f}" for mean in means)


def _seeds() -> tuple[int, ...]:
    """Return the seeds with which every agent was measured."""
    data = store.read_json("slurm-gain")
    return tuple(
        seed
        for seed in SEEDS
        if all(
            _key(protocol, policy, protocol, seed) in data[log]["rows"]
            for log in NODES
            for protocol in PROTOCOLS
            for policy in AGENTS
        )
    )


def _gain(log: str, protocol: str, policy: str, learnt: str) -> tuple[float, ConfidenceInterval] | None:
    """Return a mean, and by how much it is lower than the base's under the same protocol, percent."""
    values, base = _values(log, protocol, policy, learnt), _values(log, protocol, ORDERS[0], "")
    if values is None or base is None:
        return None
    starts = np.array(store.read_json("slurm-gain")[log]["starts"])
    difference = window_bootstrap(values, starts, LENGTH, base=base)
    scale = -100 / float(base.mean())
    low, high = sorted((scale * difference.low, scale * difference.high))
    return float(values.mean()), replace(difference, mean=scale * difference.mean, low=low, high=high)


#: What stands in the table: name, order or policy, under which protocol it learnt for its two columns.
_LINES = (
    ("SJF", "sjf", ("", "")),
    ("SAF", "saf", ("", "")),
    ("PICK agent, learnt under standard", "rlscheduler", ("standard", "standard")),
    ("PICK agent, learnt where it decides", "rlscheduler", ("standard", "slurm")),
    ("BACKFILL agent, learnt under standard", "rlbackfilling", ("standard", "standard")),
    ("BACKFILL agent, learnt where it decides", "rlbackfilling", ("standard", "slurm")),
)


def _table(*, intervals: bool) -> Table:
    """Return the gains of all rows; or with the values and the intervals."""
    lines = []
    for name, policy, learnt in _LINES:
        line = [name]
        for log in NODES:
            for protocol, by in zip(PROTOCOLS, learnt, strict=True):
                gain = _gain(log, protocol, policy, by)
                if gain is None:
                    line.append("–")
                    continue
                value, change = gain
                text = f"{change.mean:+.0f} %"
                if intervals:
                    text = f"{value:.1f} ({text} [{change.low:+.0f}, {change.high:+.0f}])"
                    text += _means(log, protocol, policy, by) if by else ""
                line.append(text)
        lines.append(tuple(line))
    heads = ["policy", *(f"{log}, {protocol}" for log in NODES for protocol in PROTOCOLS)]
    return Table(tuple(heads), lines)


def write() -> Path:
    """Write the page from what was measured."""
    base = []
    for log in NODES:
        means = [_values(log, protocol, ORDERS[0], "") for protocol in PROTOCOLS]
        base.append(f"{log} {' and '.join('–' if mean is None else f'{mean.mean():.1f}' for mean in means)}")
    text = render(
        "slurm-gain.md",
        table=_table(intervals=False).markdown().rstrip(),
        base="; ".join(base),
        sequences=SEQUENCES,
        length=LENGTH,
        seeds=len(_seeds()),
        epochs=TRAINING["epochs"],
        every=TRAINING["validate_every"],
        more="\n\n".join(collapsible("Values and intervals", [_table(intervals=True).markdown().rstrip()])),
    )
    return store.written("slurm-gain", text)


def main(names: list[str]) -> None:
    """Measure, and write the page."""
    use_threads(1)
    for log in names or NODES:
        measure(log)
    collect()
    print(write())


if __name__ == "__main__":
    main(sys.argv[1:])
