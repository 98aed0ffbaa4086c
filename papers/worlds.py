"""What is left of the agents' gain on a detailed platform: contention, staging, power."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bridge.base.errors import BridgeError
from bridge.learn.checkpoint import read_agent
from papers import store, studies
from papers.logs import TRACES, trace_file
from papers.pages import render
from papers.zoo import ZOO

#: Log -> platform that comes with bridge, and how many of its hosts are the log's machine.
PLATFORMS = {
    "SDSC-SP2": ("sp2-128", 128),
    "CTC-SP2": ("cluster-512", 338),
    "HPC2N": ("cluster-512", 240),
    "Lublin-1": ("cluster-512", 256),
    "Lublin-2": ("cluster-512", 256),
}
JOBS = 500
#: Workload of MRSch -> fidelity -> what `bridge validate` is told beside.
MANY = {
    "S4": {"alloc_only": (), "io_aware": ("--fidelity", "io_aware")},
    "S9": {
        "alloc_only + power": ("--power", "per-job"),
        "io_aware + power": ("--fidelity", "io_aware", "--power", "per-job"),
    },
}


def _validate(*words: str) -> list[dict[str, Any]]:
    policies: list[dict[str, Any]] = json.loads(
        store.bridge("validate", *words, "--first", str(JOBS), "--json")
    )["policies"]
    return policies


def _wait(world: dict[str, Any]) -> str:
    return f"{world['wait.mean'] / 3600:.2f} h"


def _starts(jobs: dict[str, Any]) -> str:
    return f"{jobs['differing_starts']} of {jobs['common']}"


def _agents() -> Iterator[tuple[str, ...]]:
    """Yield a line for each agent of the zoo and the rule that it sits on."""
    for trace, (platform, nodes) in PLATFORMS.items():
        folders = sorted(
            p for p in ZOO.glob(f"*-{trace.lower()}*") if p.is_dir() and not p.name.endswith("-paper")
        )
        if not folders:
            continue
        setups = (read_agent(agent)[0].setup for agent in folders)
        bases = dict.fromkeys(f"{setup.order}+{setup.backfill}" for setup in setups)
        words = [*bases, *(str(agent.relative_to(store.ROOT)) for agent in folders)]
        words += ["--workload", TRACES[trace], "--platform", platform, "--nodes", str(nodes)]
        for one in _validate(*words, "--profile", "io", "--cancelled", "drop", "--cross-protocol"):
            fast, detailed = one["fast"], one["detailed"]
            slowdowns = (f"{world['bsld.mean']:.1f}" for world in (fast, detailed))
            name = one["policy"].removeprefix("zoo/")
            yield trace, name, *slowdowns, _wait(fast), _wait(detailed), _starts(one["jobs"])


def _agent(row: str, log: str) -> str:
    """Return the folder of the first seed's agent of MRSch's tables; BridgeError: it has not learnt here."""
    table = "mrsch-s1-s5" if log in ("S1", "S2", "S3", "S4", "S5") else "mrsch-s6-s10"
    if (folder := studies.agent("mrsch", table, row, log, 1)) is not None:
        return str(folder.relative_to(store.ROOT))
    remedy = f"Run `python -m papers study run papers/mrsch/study.toml --table {table}`."
    raise BridgeError(f"the agent {row!r} has not learnt on {log} here", remedy=remedy)


def _many() -> Iterator[tuple[str, ...]]:
    """Yield a line for each of MRSch's agents and rules, with staging and power."""
    for trace, fidelities in MANY.items():
        names = {_agent(row, trace): row for row in ("MRSch", "ours (PPO)")}
        workload = str(trace_file(trace).relative_to(store.ROOT))
        words = ["fcfs+easy", "sjf+easy", *names, "--workload", workload, "--platform", "theta-4360"]
        for fidelity, options in fidelities.items():
            for one in _validate(*words, *options):
                fast, detailed = one["fast"], one["detailed"]
                used = (f"{100 * detailed[f'utilisation.{r}']:.1f} %" for r in ("nodes", "burst_buffer"))
                power = f"{detailed['power.max'] / 1000:.1f}" if "power.max" in detailed else "–"
                name = names.get(one["policy"], one["policy"])
                yield trace, fidelity, name, _wait(fast), _wait(detailed), *used, power, _starts(one["jobs"])


#: Page -> what makes the lines of its table.
PAGES = {"both-worlds": _agents, "mrsch-both-worlds": _many}


def write(page: str) -> Path:
    """Validate agents beside their bases on detailed platforms, and write one of `PAGES`."""
    return store.written(page, render(f"{page}.md", jobs=JOBS, rows=list(PAGES[page]())))
