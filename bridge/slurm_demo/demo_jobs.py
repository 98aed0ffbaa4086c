"""Jobs for a trial: a window of a log, its times divided by a factor, and their submission."""

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from bridge.base.counted import counted
from bridge.base.errors import BridgeError
from bridge.workload.table import SWF_COLUMNS, Workload
from bridge.worlds.slurm.client import Client

#: Seconds that a job runs at least: below, slurmd's own tenth of a second would be what is measured.
SHORTEST = 1.0
#: Seconds that a request exceeds the run time by at least: starting and ending a job takes some.
_AIR = 1.0


@dataclass(frozen=True)
class DemoJob:
    """A job to be submitted: seconds from the trial's begin, nodes, run time and request (s)."""

    submit: float
    nodes: int
    run: float
    request: float


def window(log: Workload, first: int, jobs: int, nodes: int, factor: float) -> list[DemoJob]:
    """Return jobs of a log for a machine of so many nodes.

    Sizes are scaled to the machine, times divided by the factor; no job runs for less than `SHORTEST`. Raises
    BridgeError: the log has no such jobs.
    """
    part = log.jobs.iloc[first : first + jobs]
    if len(part) < jobs:
        raise BridgeError(f"has {counted(len(log.jobs), 'job')}", where=log.where, remedy="Ask for fewer.")
    most = log.capacity.get("nodes") or int(log.jobs["procs"].max())
    run = np.maximum(part["run"].to_numpy(np.float64) / factor, SHORTEST)
    request = np.maximum(part["req_time"].to_numpy(np.float64) / factor, run + _AIR)
    nodes_of_jobs = np.maximum(np.ceil(part["procs"].to_numpy(np.float64) * nodes / most), 1).astype(int)
    submit = (part["submit"] - part["submit"].iloc[0]).to_numpy(np.float64) / factor
    rows = zip(submit.tolist(), nodes_of_jobs.tolist(), run.tolist(), request.tolist(), strict=True)
    return [DemoJob(*row) for row in rows]


def history(jobs: Sequence[DemoJob], user: str, until: float) -> Workload:
    """Return jobs as the accounting would have them, as if all had run at once.

    `user`: whose they were. `until`: when the last one was submitted, whole seconds since 1970.
    """
    table = pd.DataFrame({column: np.full(len(jobs), -1) for column in SWF_COLUMNS})
    table["job_id"] = np.arange(1, len(jobs) + 1)
    table["submit"] = [job.submit for job in jobs]
    table["wait"], table["status"] = 0.0, 1
    table["run"] = [job.run for job in jobs]
    table["procs"] = table["req_procs"] = [job.nodes for job in jobs]
    table["req_time"] = [job.request for job in jobs]
    table["user_name"] = user
    begin = int(until - jobs[-1].submit - max(job.run for job in jobs)) - 1
    return Workload("history", table, {}, {"UnixStartTime": str(begin)})


def submit(client: Client, *words: str, seconds: float, who: Sequence[str] = ()) -> str:
    """Submit a job that sleeps for so many seconds, and return its id; BridgeError: Slurm refuses.

    `words` of `sbatch`; the limit is five minutes where they name none. `who`: words that make another user
    of who calls, such as ``runuser -u NAME``.
    """
    line = [*who, "sbatch", "--parsable", "-o", "/dev/null", "-D", "/", "-t", "5", *words]
    return client.call(*line, "--wrap", f"sleep {seconds:.3f}").strip().partition(";")[0]


class Submission(threading.Thread):
    """Submits jobs at their times from `started_at` (s since 1970) on; ids of those submitted, by place."""

    def __init__(self, client: Client, jobs: Sequence[DemoJob]) -> None:
        super().__init__(daemon=True)
        self._client, self._jobs = client, jobs
        self._stopped = threading.Event()
        self.ids: list[str] = []
        self.started_at = time.time()
        self.failed: BridgeError | None = None

    def run(self) -> None:
        for job in self._jobs:
            if self._stopped.wait(max(self.started_at + job.submit - time.time(), 0.0)):
                return
            minutes = max(2, round(job.request / 60 + 1))  # Slurm's limits are, and late by half of one
            words = ["-t", str(minutes), f"-N{job.nodes}", f"--comment=walltime={job.request:.3f}"]
            try:
                self.ids.append(submit(self._client, *words, seconds=job.run))
            except BridgeError as error:
                self.failed = error
                return

    def stop(self) -> None:
        self._stopped.set()
        self.join(20)
