"""What the measurements beside a real slurmctld share: a cluster, an agent, jobs, a table of findings."""

import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import click
import numpy as np

from bridge.base.errors import BridgeError
from bridge.cluster.slurm_values import node_names
from bridge.slurm_demo import cluster
from bridge.slurm_demo.demo import AgentProcess
from bridge.slurm_demo.demo_jobs import submit
from bridge.slurm_demo.outcome import ControllerLog
from bridge.worlds.slurm.client import Client, QueueEntry


def requests(rng: random.Random) -> tuple[str, ...]:
    """Return the options of a random job of a site's."""
    kind = rng.choice(["gpu", "gpus", "cores", "tasks", "nodes", "whole", "either", "licence", "array"])
    if kind == "gpu":
        return ("-p", "gpu", "-N", str(rng.choice([1, 1, 2])), "--gres", f"gpu:{rng.choice([1, 2])}")
    if kind == "gpus":
        return ("-p", "gpu", "--gpus", str(rng.choice([1, 2])), "-c", str(rng.choice([1, 4])))
    if kind == "cores":
        return ("-p", "cpu", "-N1", "-c", str(rng.randint(1, 8)))
    if kind == "tasks":
        return ("-p", "cpu", "-n", str(rng.randint(2, 12)))
    if kind == "nodes":
        return ("-p", "cpu", "-N", str(rng.randint(2, 4)), "--ntasks-per-node", str(rng.randint(1, 3)))
    if kind == "whole":
        return ("-p", rng.choice(["cpu", "gpu"]), "-N", str(rng.randint(1, 3)), "--exclusive")
    if kind == "either":
        return ("-p", "gpu,cpu", "-N1", "-c", str(rng.randint(1, 4)))
    if kind == "licence":
        return ("-p", "cpu", "-N1", "-L", f"solver:{rng.randint(1, 2)}")
    return ("-p", "cpu", "-N1", f"--array=0-3%{rng.randint(1, 2)}")


class Bench:
    """A cluster of fake nodes and an agent that decides for it."""

    def __init__(self, nodes: int, port: int, policy: str, kick: bool = True, site: bool = False) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="bridge-slurm-"))
        self.folder.chmod(0o755)
        self.client = Client(str(cluster.start(self.folder, nodes=nodes, port=port, site=site)))
        partitions = "gpu,cpu" if site else "agent"
        self.agent = AgentProcess(self.client, self.folder, policy, kick=kick, partitions=partitions)

    def submit(self, *words: str, seconds: float = 1.0, who: tuple[str, ...] = (), tries: int = 60) -> str:
        for left in reversed(range(tries)):
            try:
                return submit(self.client, *words, seconds=seconds, who=who)
            except BridgeError:
                if not left:
                    raise
                time.sleep(1.0)
        raise AssertionError

    def rows(self) -> list[QueueEntry]:
        """Return the jobs that wait or run, but for kicks; none while slurmctld is away."""
        return [row for row in self.client.queue() if row.partition != "kick"]

    def until(self, true: Callable[[], bool], patience: float = 600.0) -> float:
        """Wait for something, and return how long it took (s); infinity if it did not come."""
        begun = time.monotonic()
        while time.monotonic() < begun + patience:
            try:
                if true():
                    return time.monotonic() - begun
            except BridgeError:
                pass
            time.sleep(0.2)
        return float("inf")

    def job_fields(self, job: str) -> dict[str, str]:
        return dict(re.findall(r"(\w+)=(\S*)", self.client.call("scontrol", "-o", "show", "job", job)))

    @property
    def log(self) -> ControllerLog:
        return ControllerLog(self.folder / "log" / "slurmctld.log")

    def audit(self) -> list[dict[str, Any]]:
        return [
            json.loads(line)
            for line in self.agent.audit.read_text(encoding="utf-8").splitlines()
            if line.endswith("}")
        ]

    def report(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.agent.report.read_text(encoding="utf-8"))
        return found

    def differences(self) -> int:
        """Return how many passes come out otherwise from the audit log."""
        words = [sys.executable, "-m", "bridge", "replay", "--from-audit", str(self.agent.audit), "--json"]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        return len(json.loads(done.stdout)["differences"])


@contextmanager
def bench(nodes: int, port: int, policy: str, kick: bool = True, site: bool = False) -> Iterator[Bench]:
    made = Bench(nodes, port, policy, kick, site)
    try:
        yield made
    finally:
        made.agent.end()
        if os.environ.get("KEEP"):
            click.echo(f"kept: {made.folder}", err=True)
            (made.folder / "log" / "slurmctld.log").replace(f"{made.folder}.log")
            made.agent.audit.replace(f"{made.folder}.audit")
            (made.folder / "agent.log").replace(f"{made.folder}.agent")
        cluster.stop(made.folder)


def busy_twice(log: ControllerLog, jobs: Iterable[str]) -> int:
    """Return how often a node was given to a job before another one on it had ended."""
    spans: dict[str, list[tuple[float, float]]] = {}
    for job in jobs:
        if job in log.nodes and job in log.times["end"]:
            for node in node_names(log.nodes[job][-1]):
                spans.setdefault(node, []).append((log.times["allocate"][job][-1], log.times["end"][job][-1]))
    count = 0
    for times in spans.values():
        times.sort()
        count += sum(begin < end for (_, end), (begin, _) in pairwise(times))
    return count


def named(log: ControllerLog, keys: Iterable[str]) -> dict[str, str]:
    """Return the agent's names of jobs (``7@1795359550``) by the log's (``7#2``)."""
    found = {}
    for key in keys:
        label, _, submission = key.partition("@")
        number, _, _ = label.partition("_")
        lives = [job for job in log.times["submit"] if job.partition("#")[0] == number]
        # slurmctld takes the time a moment before it writes it down
        for job in lives:
            if -0.01 <= log.times["submit"][job][0] - int(submission) <= 1.5:
                found[f"{label}#{job.partition('#')[2]}"] = key
    return found


def decided(log: ControllerLog, audit: Iterable[dict[str, Any]]) -> dict[str, str]:
    """Return the nodes that the agent chose last, by job as the log names it."""
    chosen: dict[str, list[tuple[float, str]]] = {}
    for line in audit:
        if "start" in line:
            chosen.setdefault(line["start"].partition("@")[0], []).append((line["time"], line["nodes"]))
    found = {}
    for job, times in log.times["allocate"].items():
        before = [nodes for at, nodes in chosen.get(job.partition("#")[0], ()) if at <= times[-1] + 0.01]
        found[job] = before[-1] if before else ""
    return found


def quantiles(what: str, times: Any) -> dict[str, float | None]:
    """Return median, 95 % and the largest of times (ms)."""
    names = (("median", 0.5), ("p95", 0.95), ("max", 1.0))
    return {
        f"{what}, {n} (ms)": round(float(np.quantile(times, q)), 1) if len(times) else None for n, q in names
    }


def tell(found: dict[str, Any], wanted: dict[str, bool], as_json: bool) -> None:
    """Print what was found; exit 1 if something that was to be is not.

    Args:
        found: name -> value.
        wanted: name -> whether it is as it has to be.
    """
    found |= {"load average": round(os.getloadavg()[0], 2)}
    if as_json:
        click.echo(json.dumps({**found, "as it has to be": wanted}, indent=1))
    else:
        for name, value in found.items():
            click.echo(f"{name:50} {value}{'' if wanted.get(name, True) else '   NOT AS IT HAS TO BE'}")
    if not all(wanted.values()):
        raise SystemExit(1)
