"""An agent beside a real slurmctld on fake nodes: jobs submitted while it decides, and what came of them.

    python benchmarks/slurm/live.py --jobs 1000 --nodes 64 --kill-agent 300
    python benchmarks/slurm/live.py --jobs 1000 --kill-slurmctld 600

Prints what was measured from slurmctld's own log. Needs root and Debian's packages of Slurm.
"""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import click
import numpy as np

from bridge.slurm import cluster
from bridge.slurm.client import Client
from bridge.workload.accounting.values import node_names

_EVENTS = {
    "submit": re.compile(r"_slurm_rpc_submit_batch_job: JobId=(\d+) "),
    "release": re.compile(r"_release_job_rec: release hold on JobId=(\d+)"),
    "allocate": re.compile(r"(?:Allocate|Started) JobId=(\d+) (?:NodeList=|in agent on )(\S+)"),
    "end": re.compile(r"_job_complete: JobId=(\d+) done"),
}


class Log:
    """What slurmctld has written, as times (s) by event and job.

    A slurmctld that was killed gives ids again: the second job 7 is ``7#2``.
    """

    def __init__(self, path: Path) -> None:
        self.times: dict[str, dict[str, list[float]]] = {name: {} for name in _EVENTS}
        self.nodes: dict[str, list[str]] = {}
        given: dict[str, int] = {}
        for line in path.read_text(errors="replace").splitlines():
            stamp = re.match(r"\[(\S+)\] ", line)
            for name, pattern in _EVENTS.items():
                found = pattern.search(line)
                if stamp and found:
                    at = datetime.fromisoformat(stamp[1]).timestamp()
                    given[found[1]] = given.get(found[1], 0) + (name == "submit")
                    job = f"{found[1]}#{given[found[1]]}"
                    self.times[name].setdefault(job, []).append(at)
                    if name == "allocate":
                        self.nodes.setdefault(job, []).append(found[2])

    def between(self, first: str, then: str, jobs: Iterable[str]) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Return milliseconds from the last `first` before the last `then` of each job to it."""
        found = []
        for job in jobs:
            begun, ended = self.times[first].get(job), self.times[then].get(job)
            if begun and ended and (before := [at for at in begun if at <= ended[-1] + 0.001]):
                found.append(1000 * (ended[-1] - before[-1]))
        return np.array(found, np.float64)


def busy_twice(log: Log, jobs: Iterable[str]) -> int:
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


class Agent:
    """The agent's process, as an operator starts it."""

    def __init__(self, client: Client, folder: Path, policy: str, kick: bool) -> None:
        self._client, self._folder = client, folder
        self._words = [sys.executable, "-m", "bridge", "decide", policy, "--slurm", "--partition", "agent"]
        self._words += ["--directory", str(folder / "agent"), "--audit", str(folder / "audit.jsonl")]
        self._words += ["--max-starts-per-s", "50", "--out", str(folder / "report.json")]
        self._words += ["--kick", "kick"] if kick else []
        self.cpu = 0.0
        self.start()

    def start(self) -> None:
        """Start it, and wait until it is at work."""
        beat = self._folder / "agent" / "heartbeat"
        begun = time.time()
        with (self._folder / "agent.log").open("a") as said:
            self._process = subprocess.Popen(self._words, env=self._client.env, stderr=said)
        while not (beat.exists() and beat.stat().st_mtime > begun):
            if self._process.poll() is not None:
                raise SystemExit("the agent does not start")
            time.sleep(0.1)
        self._warm = self._used()

    def _used(self) -> float:
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def end(self, number: int) -> None:
        """End it, and count the CPU seconds that it used since it was at work."""
        self.cpu += self._used() - self._warm
        self._process.send_signal(number)
        self._process.wait(60)


@click.command()
@click.option("--jobs", default=1000, show_default=True)
@click.option("--nodes", default=64, show_default=True)
@click.option("--rate", default=10.0, show_default=True, help="Submissions a second.")
@click.option("--policy", default="fcfs+easy", show_default=True)
@click.option("--seed", default=1, show_default=True)
@click.option("--port", default=26000, show_default=True)
@click.option("--no-kick", is_flag=True)
@click.option(
    "--kill-agent", default=0, help="kill -9 the agent after so many submissions, and start it again."
)
@click.option("--kill-slurmctld", default=0, help="kill -9 slurmctld after so many, and start it again.")
@click.option("--json", "as_json", is_flag=True)
def main(
    jobs: int,
    nodes: int,
    rate: float,
    policy: str,
    seed: int,
    port: int,
    no_kick: bool,
    kill_agent: int,
    kill_slurmctld: int,
    as_json: bool,
) -> None:
    """Measure it."""
    folder = Path(tempfile.mkdtemp(prefix="bridge-slurm-live-"))
    folder.chmod(0o755)
    client = Client(str(cluster.start(folder, nodes=nodes, port=port)))
    draw = np.random.default_rng(seed)
    sizes, lengths = (
        draw.choice([1, 2, 4], jobs, p=[0.7, 0.2, 0.1]),
        np.minimum(1 + draw.exponential(1.0, jobs), 10),
    )
    agent = Agent(client, folder, policy, not no_kick)
    begun = time.monotonic()

    def submit(k: int) -> str:
        time.sleep(max(begun + k / rate - time.monotonic(), 0.0))
        words = ("sbatch", "--parsable", "-o", "/dev/null", "-D", "/", "-t", "5", f"-N{sizes[k]}")
        for _ in range(60):
            try:
                return client.call(*words, "--wrap", f"sleep {lengths[k]:.2f}").strip()
            except Exception:
                time.sleep(1.0)
        return ""

    try:
        with ThreadPoolExecutor(4) as pool:
            tickets = [pool.submit(submit, k) for k in range(jobs)]
            for k, ticket in enumerate(tickets):
                ticket.result()
                if k + 1 == kill_agent:
                    agent.end(signal.SIGKILL)
                    agent.start()
                if k + 1 == kill_slurmctld:
                    os.kill(cluster.pid(folder, "slurmctld"), signal.SIGKILL)
                    time.sleep(1.0)
                    cluster.start_controller(folder)
            names = [ticket.result() for ticket in tickets]
        submitted = time.monotonic() - begun
        until = time.monotonic() + 600
        while any(row.partition == "agent" for row in client.queue()) and time.monotonic() < until:
            time.sleep(0.5)
        took = time.monotonic() - begun
        time.sleep(1.0)
        agent.end(signal.SIGTERM)
        _tell(folder, names, submitted, took, agent.cpu, as_json)
    finally:
        cluster.stop(folder)


def _tell(folder: Path, names: list[str], submitted: float, took: float, cpu: float, as_json: bool) -> None:
    log = Log(folder / "log" / "slurmctld.log")
    report = json.loads((folder / "report.json").read_text())
    audit = [json.loads(line) for line in (folder / "audit.jsonl").read_text().splitlines()]
    seen: dict[str, list[str]] = {}
    decided = {}
    for line in audit:
        if "start" in line:
            ident, _, submission = line["start"].partition("@")
            lives = seen.setdefault(ident, [])
            if submission not in lives:
                lives.append(submission)
            decided[f"{ident}#{lives.index(submission) + 1}"] = line["nodes"]
    names = [job for job in log.times["submit"] if job.partition("#")[0] in set(names)]
    started = log.between("release", "allocate", names)
    released = log.between("submit", "release", names)
    words = [sys.executable, "-m", "bridge", "replay", "--from-audit", str(folder / "audit.jsonl"), "--json"]
    again = json.loads(subprocess.run(words, capture_output=True, text=True, check=False).stdout)
    elsewhere = sum(
        set(node_names(log.nodes[job][-1])) != set(node_names(decided.get(job, "")))
        for job in names
        if job in log.nodes
    )
    found = {
        "jobs": len(names),
        "completed": sum(job in log.times["end"] for job in names),
        "on other nodes than decided": elsewhere,
        "nodes given twice": busy_twice(log, names),
        "started more than once": sum(len(log.nodes.get(job, [])) > 1 for job in names),
        "lost": len(report["lost"]),
        "withdrawn": report["withdrawn"],
        "passes decided otherwise from the audit log": len(again["differences"]),
        **{
            f"{what}, {name} (ms)": round(float(np.quantile(times, q)), 1) if len(times) else None
            for what, times in (("release to allocate", started), ("submit to release", released))
            for name, q in (("median", 0.5), ("p95", 0.95), ("max", 1.0))
        },
        "submission took (s)": round(submitted, 1),
        "all done after (s)": round(took, 1),
        "agent's CPU (% of a core)": round(100 * cpu / took, 2),
        "kicks": report["kicks"],
        "load average": os.getloadavg()[0],
    }
    if as_json:
        click.echo(json.dumps(found, indent=1))
        return
    for name, value in found.items():
        click.echo(f"{name:46} {value}")


if __name__ == "__main__":
    main()
