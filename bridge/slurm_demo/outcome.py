"""What came of a trial, from slurmctld's log: the run of the real Slurm, and the fast world's on its jobs."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import bridge
from bridge.base.arrays import Floats
from bridge.base.errors import BridgeError
from bridge.judge.metrics import compute_metrics
from bridge.judge.run import Run
from bridge.scheduler.state import SECOND
from bridge.slurm_demo.case_log import log_lines
from bridge.slurm_demo.demo_jobs import SHORTEST, DemoJob
from bridge.workload.formats import write
from bridge.workload.table import SWF_COLUMNS, Workload
from bridge.worlds.fast.jobs_table import JobsTableBuilder
from bridge.worlds.fast.replay import Schedule

#: What else takes an id.
_TAKEN = re.compile(r"_slurm_rpc_allocate_resources JobId=(\d+) ")
_JOB = r"JobId=(\d+(?:_\d+)?)(?:\(\d+\))?"
_EVENTS = {
    "submit": re.compile(rf"_slurm_rpc_submit_batch_job: {_JOB} "),
    "release": re.compile(rf"_release_job_rec: release hold on {_JOB} "),
    "allocate": re.compile(rf"(?:Allocate|Started) {_JOB} (?:NodeList=|in \w+ on )(\S+)"),
    "end": re.compile(rf"_job_complete: {_JOB} done"),
}


class ControllerLog:
    """Times (seconds since 1970) by event and job, of a slurmctld that writes milliseconds.

    A slurmctld that was killed gives ids again: the second job 7 is ``7#2``. A task of an array is ``5_3#1``.

    Attributes:
        times: event (submit, release, allocate, end) -> job -> times.
        nodes: job -> the nodes of each of its allocations.
    """

    def __init__(self, path: Path) -> None:
        self.times: dict[str, dict[str, list[float]]] = {name: {} for name in _EVENTS}
        self.nodes: dict[str, list[str]] = {}
        serial_numbers: dict[str, int] = {}
        for at, line in log_lines(path.read_text(encoding="utf-8", errors="replace")):
            if taken := _TAKEN.search(line):
                serial_numbers[taken[1]] = serial_numbers.get(taken[1], 0) + 1
            for name, pattern in _EVENTS.items():
                if match := pattern.search(line):
                    number = match[1].partition("_")[0]
                    serial_numbers[number] = serial_numbers.get(number, 0) + (name == "submit")
                    job = f"{match[1]}#{serial_numbers[number]}"
                    self.times[name].setdefault(job, []).append(at)
                    if name == "allocate":
                        self.nodes.setdefault(job, []).append(match[2])

    def between(self, first: str, then: str, jobs: Iterable[str]) -> Floats:
        """Return milliseconds from the last `first` before the last `then` of each job to it."""
        delays = []
        for job in jobs:
            begin_times, ended = self.times[first].get(job), self.times[then].get(job)
            if begin_times and ended and (before := [at for at in begin_times if at <= ended[-1] + 0.001]):
                delays.append(1000 * (ended[-1] - before[-1]))
        return np.array(delays, np.float64)

    def life(self, job: str) -> tuple[float, float, float] | None:
        """Return when a job came, got its nodes for the last time, and ended; None if it has not."""
        submit, allocate, end = (self.times[name].get(job) for name in ("submit", "allocate", "end"))
        return (submit[-1], allocate[-1], end[-1]) if submit and allocate and end else None


class DemoResult:
    """Jobs as they came out, by the times of the log; those `left_out` did not end."""

    def __init__(
        self, log: ControllerLog, jobs: Sequence[str], demo_jobs: Mapping[str, DemoJob], nodes: int, name: str
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
        table["procs"] = table["req_procs"] = [demo_jobs[job].nodes for job, _ in ended]
        table["req_time"] = np.maximum([demo_jobs[job].request for job, _ in ended], table["run"] + 0.001)
        table["status"] = 1
        table = table.iloc[np.lexsort((table["job_id"], table["submit"]))].reset_index(drop=True)
        self.workload = Workload(name, table, {"nodes": nodes})

    def live(self, policy: str) -> Run:
        from bridge.worlds.fast.scheduler_config import SchedulerConfig

        setup = SchedulerConfig()
        jobs = setup.select(self.workload)
        table = self.workload.jobs
        start = np.asarray(np.rint((table["submit"] + table["wait"]) * SECOND), np.int64)
        nothing = np.full(len(jobs), -1, np.int64)
        serial = np.argsort(np.argsort(start, kind="stable"))
        schedule = Schedule(
            start, start + jobs.run, np.zeros_like(nothing), nothing, nothing, serial, jobs.submit
        )
        rows = JobsTableBuilder(setup.build_scenario(jobs), schedule).rows()
        capacity = {"nodes": int(jobs.capacity[0])}
        record: dict[str, Any] = {"world": "live", "policy": policy, "command": "bridge slurm demo"}
        metrics = compute_metrics(rows, capacity, bsld_threshold=SHORTEST)
        return Run(record, capacity, rows, metrics, name=f"live {policy}")

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
