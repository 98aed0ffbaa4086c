"""Run the twenty trial jobs on the platform model and compare each execution time with its closed form.

The decision process is the smallest possible: one job after the other, always on the hosts the trial names.
"""

import csv
import dataclasses
import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bridge.base.errors import BridgeError
from bridge.experiment.acceptance_jobs import TrialJob, trial_jobs
from bridge.experiment.detailed import WatchedEndpoint
from bridge.experiment.program import UNGUARDED, Child, simulation_folder
from bridge.platform.model import Platform
from bridge.platform.routes import RouteError
from bridge.wire.hosts import from_ids, text_of
from bridge.worlds.batsim.endpoint import PeerGoneError
from bridge.worlds.simgrid import command as embedded

#: Relative and absolute tolerance of an execution time; outputs have six decimals.
RELATIVE, ABSOLUTE = 1e-6, 2e-6


@dataclasses.dataclass(frozen=True, slots=True)
class TrialResult:
    """What became of one job: measured seconds and state, None if it is missing from the output."""

    job: TrialJob
    seconds: float | None
    state: str | None

    @property
    def passed(self) -> bool:
        """The state is right and the time within the tolerance."""
        if self.seconds is None or self.state != self.job.state:
            return False
        return abs(self.seconds - self.job.seconds) <= RELATIVE * self.job.seconds + ABSOLUTE


class AcceptancePeer:
    """Answers the platform model's messages: starts the next job when the one before is done."""

    def __init__(self, jobs: Sequence[TrialJob], hosts: Sequence[str]) -> None:
        self.jobs = {f"w0!{job.ident}": job for job in jobs}
        self.hosts = hosts
        self.waiting: list[str] = []
        self.running = ""
        self.ended = False

    def answer(self, message: dict[str, Any]) -> dict[str, Any]:
        """The reply to one message. Raises BridgeError if the model numbers hosts otherwise."""
        now = message["now"]
        for event in message["events"]:
            kind, data = event["type"], event["data"]
            if kind == "SIMULATION_BEGINS":
                theirs = [host["name"] for host in data["compute_resources"]]
                if theirs != list(self.hosts):
                    raise BridgeError("the platform model numbers the hosts otherwise than this program")
            elif kind == "JOB_SUBMITTED":
                self.waiting.append(data["job_id"])
            elif kind == "JOB_COMPLETED":
                self.running = ""
            elif kind == "SIMULATION_ENDS":
                self.ended = True
        events = []
        if self.waiting and not self.running:
            self.running = self.waiting.pop(0)
            job = self.jobs[self.running]
            data = {"job_id": self.running, "alloc": text_of(from_ids(job.resources))}
            if job.storage:
                data["storage_mapping"] = job.storage
            events = [{"timestamp": now, "type": "EXECUTE_JOB", "data": data}]
        return {"now": now, "events": events}


def workload(jobs: Sequence[TrialJob], nodes: int) -> dict[str, Any]:
    rows: list[dict[str, Any]] = []
    profiles: dict[str, dict[str, Any]] = {}
    for job in jobs:
        row = {"id": job.ident, "subtime": 0, "res": len(job.resources), "profile": job.ident}
        rows.append(row if job.walltime is None else row | {"walltime": job.walltime})
        profiles |= job.profiles
    return {"nb_res": nodes, "jobs": rows, "profiles": profiles}


def run_trial(
    platform: Platform, *, command: Sequence[str] | None = None, timeout: float = 120.0
) -> list[TrialResult]:
    """Run the trial and return one result per job, in the order of the jobs.

    The program is `command` (with Batsim's command line), None the embedded model, within `timeout` s in all.
    BridgeError: no interpreter for the embedded model, the model stopped, out of time, routes missing.
    """
    try:
        jobs = trial_jobs(platform)
    except (RouteError, ValueError, IndexError) as error:
        what, remedy = f"the trial jobs cannot be made: {error}", "See `bridge platform check`."
        raise BridgeError(what, where=platform.path, remedy=remedy) from error
    peer = AcceptancePeer(jobs, [host.name for host in platform.compute])
    program = [*command, *UNGUARDED] if command else embedded()
    line = [*program, "-p", str(Path(platform.path).resolve()), "-m", platform.master_name]
    until = time.monotonic() + timeout
    with simulation_folder() as folder:
        text = json.dumps(workload(jobs, len(platform.compute)))
        (folder / "workload.json").write_text(text, encoding="utf-8")
        line += ["-w", str(folder / "workload.json"), "-e", str(folder / "out")]
        started: list[Child] = []

        def gone() -> bool:
            return any(child.ended for child in started) or time.monotonic() > until

        with (
            WatchedEndpoint("tcp://127.0.0.1:*", gone, lambda _finished: None) as endpoint,
            Child([*line, "-s", endpoint.address], folder, folder / "log") as child,
        ):
            started.append(child)
            try:
                while not peer.ended:
                    endpoint.send(json.dumps(peer.answer(json.loads(endpoint.receive()))).encode())
            except PeerGoneError as error:
                if not child.ended:
                    remedy = "Try --timeout."
                    raise BridgeError("the platform model did not finish in time", remedy=remedy) from error
                words, status = child.read_tail(3), child.wait(0)
                what = f"the platform model stopped with status {status} before the simulation ended"
                remedy = f"It said: {words}" if words else "It said nothing."
                raise BridgeError(what, remedy=remedy) from error
            if child.wait(30) is None:
                raise BridgeError("the platform model did not exit after the simulation")
        return _results(jobs, folder / "out_jobs.csv")


def _results(jobs: Sequence[TrialJob], path: Path) -> list[TrialResult]:
    if not path.exists():
        raise BridgeError("the platform model wrote no jobs file", where=path.name)
    with path.open(encoding="utf-8", newline="") as file:
        rows = {row["job_id"]: row for row in csv.DictReader(file)}
    job_rows = [(job, rows.get(job.ident, {})) for job in jobs]
    times = [float(row["execution_time"]) if row.get("execution_time") else None for _, row in job_rows]
    return [
        TrialResult(job, s, row.get("final_state")) for (job, row), s in zip(job_rows, times, strict=True)
    ]
