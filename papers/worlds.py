"""What is left of the agents' gain on a detailed platform: contention, staging, power."""

import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

from bridge.errors import BridgeError
from bridge.files import replacing
from bridge.learn.checkpoint import read_agent
from papers import store
from papers.logs import trace_file
from papers.rows import TABLES, TRACES
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
_COLUMNS = (
    "log",
    "policy",
    "bsld, fast",
    "bsld, detailed",
    "wait, fast",
    "wait, detailed",
    "starts that differ",
)
_HEAD = f"""# The same agents in both worlds

The agents of [zoo](../../zoo/README.md) and the rules that they sit on, on the first {JOBS:,} jobs of their
logs: in the fast world, and deciding over ZeroMQ for the embedded platform model, where jobs read and write
a shared file system and so slow each other down (profile `io`). Means over jobs. With delay profiles both
worlds agree start for start (tested). Agents that learnt under `schedgym` decide here under the `standard`
rules of a detailed platform (`--cross-protocol`): their figures say what is left of the policy, not of the
paper's simulator. These jobs are part of what the agents learnt from: this page is about platforms, not about
generalisation.

| {" | ".join(_COLUMNS)} |
{"|---" * len(_COLUMNS)}|
"""


_MANY_COLUMNS = (
    "workload",
    "fidelity",
    "policy",
    "wait, fast",
    "wait, detailed",
    "nodes",
    "burst buffer",
    "largest power, kW",
    "starts that differ",
)
_MANY_HEAD = f"""# Many resources in both worlds: staging and power

MRSch, ours (PPO) and the rules on the first {JOBS:,} jobs of MRSch's workloads, on a Theta of 4,360 hosts
with a shared burst buffer of 1.26 PB. *io_aware*: jobs bring a quarter of their request from the file system
to the burst buffer before they work and as much back behind it. *power*: each job's hosts draw the watts that
it asks for (`--power per-job`), and the platform measures them; the budget is 500 kW.

| {" | ".join(_MANY_COLUMNS)} |
{"|---" * len(_MANY_COLUMNS)}|
"""
#: Workload -> fidelity -> what `bridge validate` is told beside.
_MANY = {
    "S4": {"alloc_only": (), "io_aware": ("--fidelity", "io_aware")},
    "S9": {
        "alloc_only + power": ("--power", "per-job"),
        "io_aware + power": ("--fidelity", "io_aware", "--power", "per-job"),
    },
}


def _validate(trace: str, policies: list[str]) -> list[dict[str, Any]]:
    platform, nodes = PLATFORMS[trace]
    words = [*policies, "--workload", TRACES[trace], "--platform", platform, "--nodes", str(nodes)]
    return _told([*words, "--profile", "io", "--cancelled", "drop", "--cross-protocol"])


def _told(words: list[str]) -> list[dict[str, Any]]:
    """Return what `bridge validate` says of each policy."""
    words = ["validate", *words, "--first", str(JOBS), "--json"]
    command = [sys.executable, "-m", "bridge.cli.main", *words]
    done = subprocess.run(command, cwd=store.ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BridgeError("cannot be validated", where=" ".join(words), remedy=done.stderr.strip())
    found: list[dict[str, Any]] = json.loads(done.stdout)["policies"]
    return found


def _agent(setting: str, trace: str) -> str:
    """Return the folder of the first seed's agent of MRSch's tables, from the repository's root."""
    for table in TABLES:
        for row in table.rows:
            if (row.policy, row.setting, row.trace) == ("mrsch", setting, trace) and table.rivals:
                found = store.read(table.name)
                mine = found[(found["row"] == row.name) & (found["label"] == "agent") & (found["seed"] == 1)]
                if len(mine):
                    return str((store.WORK / "agents" / mine["agent"].iloc[0]).relative_to(store.ROOT))
    raise BridgeError(
        f"MRSch's {setting} agent has not learnt on {trace} here",
        remedy="Run `python -m papers run mrsch-s1-s5 mrsch-s6-s10`.",
    )


def _many() -> Iterator[str]:
    """Yield the lines of the page's second table."""
    names = {"default": "MRSch", "ours": "ours (PPO)"}
    for trace, fidelities in _MANY.items():
        agents = {_agent(setting, trace): name for setting, name in names.items()}
        for fidelity, options in fidelities.items():
            words = [
                "fcfs+easy",
                "sjf+easy",
                *agents,
                "--workload",
                str(trace_file(trace).relative_to(store.ROOT)),
            ]
            for one in _told([*words, "--platform", "theta-4360", *options]):
                fast, detailed, jobs = one["fast"], one["detailed"], one["jobs"]
                power = detailed.get("power.max")
                cells = (
                    trace,
                    fidelity,
                    agents.get(one["policy"], one["policy"]),
                    f"{fast['wait.mean'] / 3600:.2f} h",
                    f"{detailed['wait.mean'] / 3600:.2f} h",
                    f"{100 * detailed['utilisation.nodes']:.1f} %",
                    f"{100 * detailed['utilisation.burst_buffer']:.1f} %",
                    "–" if power is None else f"{power / 1000:.1f}",
                    f"{jobs['differing_starts']} of {jobs['common']}",
                )
                yield f"| {' | '.join(cells)} |\n"


def write() -> None:
    """Validate every agent of the zoo beside its base, and write the page."""
    lines = []
    for trace in PLATFORMS:
        agents = sorted(
            p for p in ZOO.glob(f"*-{trace.lower()}*") if p.is_dir() and not p.name.endswith("-paper")
        )
        bases = []
        for agent in agents:
            setup = read_agent(agent)[0].setup
            bases.append(f"{setup.order}+{setup.backfill}")
        words = [*dict.fromkeys(bases), *(str(a.relative_to(store.ROOT)) for a in agents)]
        if not agents:
            continue
        for one in _validate(trace, words):
            fast, detailed, jobs = one["fast"], one["detailed"], one["jobs"]
            name = one["policy"].removeprefix("zoo/")
            lines.append(
                f"| {trace} | {name} | {fast['bsld.mean']:.1f} | {detailed['bsld.mean']:.1f} | "
                f"{fast['wait.mean'] / 3600:.2f} h | {detailed['wait.mean'] / 3600:.2f} h | "
                f"{jobs['differing_starts']} of {jobs['common']} |"
            )
    text = _HEAD + "\n".join(lines) + "\n\nMade by `python -m papers worlds`.\n"
    with replacing(store.RESULTS / "both-worlds.md") as out:
        out.write(text.encode())


def write_many() -> None:
    """Validate MRSch's agents beside the rules with staging and power, and write that page."""
    text = _MANY_HEAD + "".join(_many()) + "\nMade by `python -m papers mrsch-worlds`.\n"
    with replacing(store.RESULTS / "mrsch-both-worlds.md") as out:
        out.write(text.encode())
