"""What came of a trial as runs: that of the real Slurm, and that of the fast world on the very same jobs."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import bridge
from bridge.arrays import Floats
from bridge.errors import BridgeError
from bridge.fast.replay import Schedule
from bridge.fast.table import Played
from bridge.judge.metrics import compute
from bridge.judge.run import Run
from bridge.scheduler.state import SECOND
from bridge.slurm.trial.controller_log import ControllerLog
from bridge.slurm.trial.load import SHORTEST, Asked
from bridge.workload.formats import write
from bridge.workload.table import SWF_COLUMNS, Workload


class Outcome:
    """Jobs as they came out.

    Args:
        log: of the slurmctld.
        jobs: name -> job; times are told by the log.
        asked: what each asked for.
        nodes: of the machine.
        name: of the workload.

    Attributes:
        left_out: jobs that did not end.
    """

    def __init__(
        self, log: ControllerLog, jobs: Sequence[str], asked: Mapping[str, Asked], nodes: int, name: str
    ) -> None:
        lives = {job: log.life(job) for job in jobs}
        self.left_out = [job for job, life in lives.items() if life is None]
        ended = [(job, life) for job, life in lives.items() if life is not None]
        if not ended:
            raise BridgeError("no job has ended", where=name)
        times = np.array([life for _, life in ended])
        times = np.rint((times - times[:, 0].min()) * 1000) / 1000  # the log has milliseconds
        table = pd.DataFrame({column: np.full(len(ended), -1) for column in SWF_COLUMNS})
        table["job_id"] = [jobs.index(job) + 1 for job, _ in ended]
        table["submit"], table["wait"] = times[:, 0], times[:, 1] - times[:, 0]
        table["run"] = times[:, 2] - times[:, 1]
        table["procs"] = table["req_procs"] = [asked[job].nodes for job, _ in ended]
        table["req_time"] = np.maximum([asked[job].request for job, _ in ended], table["run"] + 0.001)
        table["status"] = 1
        table = table.iloc[np.lexsort((table["job_id"], table["submit"]))].reset_index(drop=True)
        self.workload = Workload(name, table, {"nodes": nodes})

    def live(self, policy: str) -> Run:
        """Return the run of the real Slurm."""
        from bridge.fast.setup import Setup

        setup = Setup()
        jobs = setup.select(self.workload)
        table = self.workload.jobs
        start = np.asarray(np.rint((table["submit"] + table["wait"]) * SECOND), np.int64)
        nothing = np.full(len(jobs), -1, np.int64)
        serial = np.argsort(np.argsort(start, kind="stable"))
        schedule = Schedule(start, start + jobs.run, np.zeros_like(nothing), nothing, nothing, serial)
        rows = Played(setup.prepare(jobs), schedule).rows()
        capacity = {"nodes": int(jobs.capacity[0])}
        told: dict[str, Any] = {"world": "live", "policy": policy, "command": "bridge slurm demo"}
        metrics = compute(rows, capacity, bsld_threshold=SHORTEST)
        return Run(told, capacity, rows, metrics, name=f"live {policy}")

    def fast(self, policy: str, folder: Path) -> Run:
        """Return the run of the fast world on the same jobs, with the run times that came out.

        The folder gets the jobs, as ``jobs-NAME.parquet``.
        """
        path = folder / f"jobs-{self.workload.name}.parquet"
        write(self.workload, path)
        return bridge.replay(path, policy, threshold=SHORTEST, nodes=self.workload.capacity["nodes"])


def apart(one: Run, other: Run) -> Floats:
    """Return how far the starts of the same jobs are apart: [n] seconds, by job."""
    starts = [run.jobs.set_index("job_id")["starting_time"] for run in (one, other)]
    both = pd.concat(starts, axis=1, join="inner").to_numpy(np.float64)
    return np.asarray(np.abs(both[:, 0] - both[:, 1]), np.float64)
