"""The demo: an agent decides for a Slurm of fake nodes; Slurm's own backfill and the fast world beside it.

The agent runs as an operator starts it: the command `bridge decide … --slurm`, in a process of its own.
"""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bridge.base.errors import BridgeError
from bridge.judge.run import Run, write_run
from bridge.serve.observer import PartitionObserver, RunTimeModel
from bridge.slurm_demo import cluster
from bridge.slurm_demo.demo_jobs import DemoJob, Submission, history, window
from bridge.slurm_demo.monitor import DemoMonitor
from bridge.slurm_demo.outcome import ControllerLog, DemoResult, apart
from bridge.workload.catalogue import read_log
from bridge.worlds.slurm.client import Client


class AgentProcess:
    """An agent for partitions of a cluster of `bridge.slurm_demo.cluster`.

    The folder gets agent.log, audit.jsonl and report.json. `cpu`: CPU seconds that it has used since it was
    at work, once it has ended.
    """

    def __init__(
        self, client: Client, folder: Path, policy: str, *, kick: bool = True, partitions: str = "agent"
    ) -> None:
        self._client, self._folder = client, folder
        self._gate = folder / "agent" / partitions.partition(",")[0]
        self.audit, self.report = folder / "audit.jsonl", folder / "report.json"
        self._words = [sys.executable, "-m", "bridge", "decide", policy, "--slurm", "--partition"]
        self._words.append(partitions)
        self._words += ["--directory", str(folder / "agent"), "--audit", str(self.audit)]
        self._words += ["--max-starts-per-s", "50", "--out", str(self.report)]
        self._words += ["--kick", "kick"] if kick else []
        self.cpu = 0.0
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        return self._process.pid if self._process is not None and self._process.poll() is None else 0

    def start(self) -> None:
        beat = self._gate / "heartbeat"
        log_file = self._folder / "agent.log"
        started_at = time.time()
        with log_file.open("a", encoding="utf-8") as out:
            self._process = subprocess.Popen(self._words, env=self._client.env, stdout=out, stderr=out)
        while not (beat.exists() and beat.stat().st_mtime > started_at):
            if self._process.poll() is not None:
                lines = log_file.read_text(encoding="utf-8", errors="replace").splitlines()
                raise BridgeError(f"the agent does not start: {(lines or ['it says nothing'])[-1]}")
            time.sleep(0.1)
        self._warm = self._used()

    def _used(self) -> float:
        fields = Path(f"/proc/{self.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def send(self, number: int) -> None:
        if self.pid:
            os.kill(self.pid, number)

    def end(self, number: int = signal.SIGTERM) -> None:
        """End it, and count the CPU seconds that it used."""
        if self._process is None or not self.pid:
            return
        self.cpu += self._used() - self._warm
        self._process.send_signal(number)
        self._process.wait(60)


#: Where the bundled workload is crowded.
_FIRST = 400
#: Seconds between looks, and until a trial is given up, beyond its last submission.
_LOOK, _PATIENCE = 1.0, 1200.0


@dataclass(frozen=True)
class DemoRun:
    outcome: DemoResult
    forecast: int
    inside: float


@dataclass(frozen=True)
class Demo:
    """A demo: workload, nodes, and the policy, which decides in the live and in the fast world."""

    policy: str
    jobs: int
    nodes: int
    factor: float
    port: int
    folder: Path

    def demo_jobs(self) -> list[DemoJob]:
        return window(read_log("bundled-128"), _FIRST, self.jobs, self.nodes, self.factor)

    def live(self, show: Callable[[DemoMonitor, str], None]) -> DemoRun:
        """Let the policy decide for a Slurm; `show` is called every second."""
        with self._cluster("live") as (client, folder):
            agent = AgentProcess(client, folder, self.policy)
            agent.start()
            try:
                return self._play(client, folder, f"{self.policy} decides for Slurm", show)
            finally:
                agent.end()

    def backfill(self, show: Callable[[DemoMonitor, str], None]) -> DemoRun:
        """Let Slurm's own backfill decide: without a heartbeat the gate holds nothing."""
        with self._cluster("backfill", every=1) as (client, folder):  # as fast as its clock
            return self._play(client, folder, "Slurm's own backfill decides", show)

    def write(self, live: DemoRun, backfill: DemoRun) -> tuple[list[Run], dict[str, Any]]:
        """Write the runs of all three; return them with the summary."""
        runs = [
            live.outcome.live(self.policy),
            live.outcome.fast(self.policy, self.folder),
            backfill.outcome.live("Slurm's backfill"),
        ]
        for name, run in zip(("live", "fast", "slurm-backfill"), runs, strict=True):
            write_run(run, self.folder / name, force=True)
        differences = apart(runs[0], runs[1])
        document = {
            "jobs": len(live.outcome.workload.jobs),
            "did not end": len(live.outcome.left_out) + len(backfill.outcome.left_out),
            "live and fast world apart, median (s)": float(np.median(differences)),
            "live and fast world apart, p95 (s)": float(np.quantile(differences, 0.95)),
            "starts forecast": live.forecast,
            "within their 90 % intervals": live.inside,
        }
        return runs, document

    @contextmanager
    def _cluster(self, name: str, every: int = 30) -> Iterator[tuple[Client, Path]]:
        folder = self.folder / f"cluster-{name}"
        client = Client(str(cluster.start(folder, nodes=self.nodes, port=self.port, backfill=every)))
        try:
            yield client, folder
        finally:
            shutil.copyfile(folder / "log" / "slurmctld.log", self.folder / f"slurmctld-{name}.log")
            for kept in ("audit.jsonl", "agent.log"):
                if (folder / kept).exists():
                    shutil.copyfile(folder / kept, self.folder / kept)
            cluster.stop(folder)

    def _beliefs(self, client: Client) -> RunTimeModel:
        earlier = window(read_log("bundled-128"), 0, _FIRST, self.nodes, self.factor)
        who = client.call("id", "-un").strip()
        return RunTimeModel(history(earlier, who, time.time()))

    def _play(
        self, client: Client, folder: Path, title: str, show: Callable[[DemoMonitor, str], None]
    ) -> DemoRun:
        demo_jobs = self.demo_jobs()
        observer = PartitionObserver(client, "agent", beliefs=self._beliefs(client))
        watching = DemoMonitor(observer, len(demo_jobs))
        submission = Submission(client, demo_jobs)
        submission.start()
        until = time.time() + demo_jobs[-1].submit + _PATIENCE
        try:
            while time.time() < until:
                started_at = time.monotonic()
                gone = not submission.is_alive()  # before the look: else a job could come in between
                watching.refresh()
                show(watching, title)
                if gone and watching.present is not None and not watching.present.rows:
                    break
                time.sleep(max(started_at + _LOOK - time.monotonic(), 0.0))
        finally:
            submission.stop()
            observer.close()
        if submission.failed is not None:
            raise submission.failed
        time.sleep(0.5)
        log = ControllerLog(folder / "log" / "slurmctld.log")
        names = [f"{job}#1" for job in submission.ids]
        outcome = DemoResult(log, names, dict(zip(names, demo_jobs, strict=False)), self.nodes, folder.name)
        starts = {job: life[1] for job in submission.ids if (life := log.life(f"{job}#1")) is not None}
        return DemoRun(outcome, *watching.coverage(starts))
