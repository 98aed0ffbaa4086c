"""What is left of the headline agents' gain on a detailed platform: fast world against contention."""

import json
import subprocess
import sys
from typing import Any

from benchmarks.papers import store
from benchmarks.papers.rows import TRACES
from benchmarks.papers.zoo import ZOO
from bridge.errors import BridgeError
from bridge.files import replacing
from bridge.learn.checkpoint import read_agent

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


def _validate(trace: str, policies: list[str]) -> list[dict[str, Any]]:
    platform, nodes = PLATFORMS[trace]
    words = [
        "validate",
        *policies,
        "--workload",
        TRACES[trace],
        "--platform",
        platform,
        "--nodes",
        str(nodes),
    ]
    words += ["--profile", "io", "--first", str(JOBS), "--cancelled", "drop", "--cross-protocol", "--json"]
    command = [sys.executable, "-m", "bridge.cli.main", *words]
    done = subprocess.run(command, cwd=store.ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BridgeError("cannot be validated", where=" ".join(words), remedy=done.stderr.strip())
    found: list[dict[str, Any]] = json.loads(done.stdout)["policies"]
    return found


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
    text = _HEAD + "\n".join(lines) + "\n\nMade by `python -m benchmarks.papers worlds`.\n"
    with replacing(store.RESULTS / "both-worlds.md") as out:
        out.write(text.encode())
