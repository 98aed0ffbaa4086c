"""What slurmctld has written of each job: when it came, was released, got nodes and ended."""

import re
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path

import numpy as np

from bridge.arrays import Floats

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
        given: dict[str, int] = {}
        for line in path.read_text(errors="replace").splitlines():
            stamp = re.match(r"\[(\S+)\] ", line)
            if taken := _TAKEN.search(line):
                given[taken[1]] = given.get(taken[1], 0) + 1
            for name, pattern in _EVENTS.items():
                found = pattern.search(line)
                if stamp and found:
                    at = datetime.fromisoformat(stamp[1]).timestamp()
                    number = found[1].partition("_")[0]
                    given[number] = given.get(number, 0) + (name == "submit")
                    job = f"{found[1]}#{given[number]}"
                    self.times[name].setdefault(job, []).append(at)
                    if name == "allocate":
                        self.nodes.setdefault(job, []).append(found[2])

    def between(self, first: str, then: str, jobs: Iterable[str]) -> Floats:
        """Return milliseconds from the last `first` before the last `then` of each job to it."""
        found = []
        for job in jobs:
            begun, ended = self.times[first].get(job), self.times[then].get(job)
            if begun and ended and (before := [at for at in begun if at <= ended[-1] + 0.001]):
                found.append(1000 * (ended[-1] - before[-1]))
        return np.array(found, np.float64)

    def life(self, job: str) -> tuple[float, float, float] | None:
        """Return when a job came, got its nodes for the last time, and ended; None if it has not."""
        submit, allocate, end = (self.times[name].get(job) for name in ("submit", "allocate", "end"))
        return (submit[-1], allocate[-1], end[-1]) if submit and allocate and end else None
