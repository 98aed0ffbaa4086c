"""Run the twenty trial jobs on the platform model and compare each execution time with its closed form.

The decision process is the smallest possible: one job after the other, always on the hosts the trial names.
"""

import csv
import dataclasses
import json
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bridge.errors import BridgeError
from bridge.platform.model import Platform
from bridge.platform.routes import RouteError
from bridge.platform.trial_jobs import TrialJob, trial_jobs
from bridge.wire.hosts import from_ids, text_of

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


class Peer:
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
    """The jobs as a Batsim workload, all submitted at once."""
    rows: list[dict[str, Any]] = []
    profiles: dict[str, dict[str, Any]] = {}
    for job in jobs:
        row = {"id": job.ident, "subtime": 0, "res": len(job.resources), "profile": job.ident}
        rows.append(row if job.walltime is None else row | {"walltime": job.walltime})
        profiles |= job.profiles
    return {"nb_res": nodes, "jobs": rows, "profiles": profiles}


def _serve(peer: Peer, process: subprocess.Popen[bytes], socket: Any, log: Path, deadline: float) -> None:
    """Exchange messages until the simulation ends. Raises BridgeError: the model stopped, or is too slow."""
    while True:
        if socket.poll(100):
            message = json.loads(socket.recv())
            socket.send(json.dumps(peer.answer(message)).encode())
            if peer.ended:
                return
        elif process.poll() is not None:
            words = log.read_text(errors="replace").strip().splitlines()[-3:]
            raise BridgeError(
                f"the platform model stopped with status {process.returncode} before the simulation ended",
                remedy="It said: " + " | ".join(words) if words else "It said nothing.",
            )
        elif time.monotonic() > deadline:
            raise BridgeError("the platform model did not finish in time", remedy="Try --timeout.")


def run_trial(
    platform: Platform, *, command: Sequence[str] | None = None, timeout: float = 120.0
) -> list[TrialResult]:
    """Run the trial.

    Args:
        platform: the platform, read from the file that the model will load.
        command: the program with Batsim's command line; None for the embedded platform model.
        timeout: seconds of wall time for the whole trial.

    Returns:
        One result per job, in the order of the jobs.

    Raises:
        BridgeError: no interpreter for the embedded model, the model stopped, out of time, routes missing.
    """
    import zmq

    if command is None:
        from bridge.simgrid.interpreter import command as embedded

        command = embedded()
    try:
        jobs = trial_jobs(platform)
    except (RouteError, ValueError, IndexError) as error:
        raise BridgeError(
            f"the trial jobs cannot be made: {error}",
            where=platform.path,
            remedy="See `bridge platform check`.",
        ) from error
    peer = Peer(jobs, [host.name for host in platform.compute])
    context = zmq.Context()
    socket = context.socket(zmq.REP)
    socket.linger = 1000
    with tempfile.TemporaryDirectory(prefix="bridge-trial-") as name:
        folder = Path(name)
        (folder / "workload.json").write_text(json.dumps(workload(jobs, len(platform.compute))))
        port = socket.bind_to_random_port("tcp://127.0.0.1")
        line = [*command, "-p", str(Path(platform.path).resolve()), "-w", str(folder / "workload.json")]
        line += ["-s", f"tcp://127.0.0.1:{port}", "-e", str(folder / "out"), "-m", platform.master_name]
        log = folder / "log"
        try:
            with log.open("wb") as said:
                process = subprocess.Popen(line, stdout=said, stderr=said)
            try:
                _serve(peer, process, socket, log, time.monotonic() + timeout)
                process.wait(timeout=30)
            finally:
                process.kill()
                process.wait()
        except OSError as error:
            raise BridgeError(
                f"cannot start the platform model: {error.strerror}", where=line[0], remedy="Check the path."
            ) from error
        except subprocess.TimeoutExpired as error:
            raise BridgeError("the platform model did not exit after the simulation") from error
        finally:
            socket.close()
            context.term()
        return _results(jobs, folder / "out_jobs.csv")


def _results(jobs: Sequence[TrialJob], path: Path) -> list[TrialResult]:
    if not path.exists():
        raise BridgeError("the platform model wrote no jobs file", where=path.name)
    with path.open(newline="") as file:
        rows = {row["job_id"]: row for row in csv.DictReader(file)}
    found = []
    for job in jobs:
        row = rows.get(job.ident)
        seconds = float(row["execution_time"]) if row and row["execution_time"] else None
        found.append(TrialResult(job, seconds, row["final_state"] if row else None))
    return found
