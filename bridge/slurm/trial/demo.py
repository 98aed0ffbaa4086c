"""The demo: an agent decides for a Slurm of fake nodes; Slurm's own backfill and the fast world beside it."""

import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bridge.judge.run import Run, write_run
from bridge.slurm import cluster
from bridge.slurm.client import Client
from bridge.slurm.present import Beliefs, Observer
from bridge.slurm.trial.agent_process import AgentProcess
from bridge.slurm.trial.load import Asked, Submission, history, window
from bridge.slurm.trial.outcome import ControllerLog, Outcome, apart
from bridge.slurm.trial.watching import Watching
from bridge.workload.catalogue import read_log

#: Where the bundled workload is crowded.
_FIRST = 400
#: Seconds between looks, and until a trial is given up, beyond its last submission.
_LOOK, _PATIENCE = 1.0, 1200.0


@dataclass(frozen=True)
class Trial:
    """What came of one Slurm: its jobs, and the forecasts that were made on the way."""

    outcome: Outcome
    forecast: int
    inside: float


@dataclass(frozen=True)
class Demo:
    """What is tried.

    Attributes:
        policy: decides in the live and in the fast world.
    """

    policy: str
    jobs: int
    nodes: int
    factor: float
    port: int
    folder: Path

    def asked(self) -> list[Asked]:
        """Return the jobs."""
        return window(read_log("bundled-128"), _FIRST, self.jobs, self.nodes, self.factor)

    def live(self, show: Callable[[Watching, str], None]) -> Trial:
        """Let the policy decide for a Slurm; `show` is called every second."""
        with self._cluster("live") as (client, folder):
            agent = AgentProcess(client, folder, self.policy)
            agent.start()
            try:
                return self._play(client, folder, f"{self.policy} decides for Slurm", show)
            finally:
                agent.end()

    def backfill(self, show: Callable[[Watching, str], None]) -> Trial:
        """Let Slurm's own backfill decide: nobody's heart beats, so the gate holds nothing."""
        with self._cluster("backfill", every=1) as (client, folder):  # as fast as its clock
            return self._play(client, folder, "Slurm's own backfill decides", show)

    def write(self, live: Trial, backfill: Trial) -> tuple[list[Run], dict[str, Any]]:
        """Write the runs of all three, and return them with what there is to say."""
        runs = [
            live.outcome.live(self.policy),
            live.outcome.fast(self.policy, self.folder),
            backfill.outcome.live("Slurm's backfill"),
        ]
        for name, run in zip(("live", "fast", "slurm-backfill"), runs, strict=True):
            write_run(run, self.folder / name, force=True)
        differences = apart(runs[0], runs[1])
        told = {
            "jobs": len(live.outcome.workload.jobs),
            "did not end": len(live.outcome.left_out) + len(backfill.outcome.left_out),
            "live and fast world apart, median (s)": float(np.median(differences)),
            "live and fast world apart, p95 (s)": float(np.quantile(differences, 0.95)),
            "starts forecast": live.forecast,
            "within their 90 % intervals": live.inside,
        }
        return runs, told

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

    def _beliefs(self, client: Client) -> Beliefs:
        """Return what the workload's earlier jobs teach of run times."""
        earlier = window(read_log("bundled-128"), 0, _FIRST, self.nodes, self.factor)
        who = client.call("id", "-un").strip()
        return Beliefs(history(earlier, who, time.time()))

    def _play(self, client: Client, folder: Path, title: str, show: Callable[[Watching, str], None]) -> Trial:
        asked = self.asked()
        observer = Observer(client, "agent", beliefs=self._beliefs(client))
        watching = Watching(observer, len(asked))
        submission = Submission(client, asked)
        submission.start()
        until = time.time() + asked[-1].submit + _PATIENCE
        try:
            while time.time() < until:
                begun = time.monotonic()
                gone = not submission.is_alive()  # before the look: else a job could come in between
                watching.look()
                show(watching, title)
                if gone and watching.present is not None and not watching.present.rows:
                    break
                time.sleep(max(begun + _LOOK - time.monotonic(), 0.0))
        finally:
            submission.stop()
            observer.close()
        if submission.failed is not None:
            raise submission.failed
        time.sleep(0.5)
        log = ControllerLog(folder / "log" / "slurmctld.log")
        names = [f"{job}#1" for job in submission.ids]
        outcome = Outcome(log, names, dict(zip(names, asked, strict=False)), self.nodes, folder.name)
        starts = {job: life[1] for job in submission.ids if (life := log.life(f"{job}#1")) is not None}
        return Trial(outcome, *watching.coverage(starts))
