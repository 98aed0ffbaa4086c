"""The jobs of a simulation by id; one that is over takes a tenth of the memory of one that is not."""

import marshal
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from typing import Generic, TypeVar

from bridge.wire import hosts
from bridge.wire.hosts import Hosts


@dataclass(slots=True)
class DispatchedJob:
    """What became of one job; times in microseconds, -1 = not yet.

    Attributes:
        index: its number in the scheduler, -1 if it was rejected or is over.
        start: when it was executed; later than the scheduler started it if hosts had to be woken.
        state: waiting, waking (its hosts are being switched on), running, rejected, lost (its start was not
            allowed), or Batsim's state of a finished job.
        why: why it was rejected or lost.
        mapping: rank -> place among its hosts, where it has not as many hosts as it asked for.
        level: its level where there is power per job.
        backfilled, overtook: whether it was backfilled, and the id of the blocked job that it was started
            behind, or an empty text.
        by_rule: a cluster's rules let it never start, in whatever world.
        promised: the first start that it was promised as the blocked head.
    """

    job_id: str
    submit: int
    n_hosts: int
    index: int = -1
    start: int = -1
    finish: int = -1
    state: str = "waiting"
    hosts: Hosts = ()
    why: str = ""
    storage: dict[str, int] | None = None
    mapping: dict[int, int] | None = None
    level: int = 0
    backfilled: bool = False
    overtook: str = ""
    by_rule: bool = False
    promised: int = -1


J = TypeVar("J", bound=DispatchedJob)
#: What is kept of a job that is over, besides its id.
_KEPT = tuple(
    field.name for field in fields(DispatchedJob) if field.name not in ("job_id", "index", "state", "hosts")
)


class DispatchedJobs(Mapping[str, J], Generic[J]):
    """Everything ever submitted, by id, in order of submission; changes of a job that is over are lost."""

    def __init__(self) -> None:
        self._jobs: dict[str, J | bytes] = {}
        self._states: list[str] = []  # of jobs that are over

    def __len__(self) -> int:
        return len(self._jobs)

    def __iter__(self) -> Iterator[str]:
        return iter(self._jobs)

    def __contains__(self, job_id: object) -> bool:
        return job_id in self._jobs

    def __getitem__(self, job_id: str) -> J:
        return self._read(job_id, self._jobs[job_id])

    def __setitem__(self, job_id: str, job: J) -> None:
        self._jobs[job_id] = job

    def close(self, job: DispatchedJob) -> None:
        if job.state not in self._states:
            self._states.append(job.state)
        # marshal is the fastest way to bytes, and these are our own
        kept = (getattr(job, name) for name in _KEPT)
        values = (self._states.index(job.state), hosts.text_of(job.hosts), *kept)
        self._jobs[job.job_id] = marshal.dumps(values)

    def _read(self, job_id: str, job: J | bytes) -> J:
        if not isinstance(job, bytes):
            return job
        state, text, *values = marshal.loads(job)
        kept = dict(zip(_KEPT, values, strict=True))
        job_hosts = tuple(hosts.intervals(text))
        return DispatchedJob(job_id, state=self._states[state], hosts=job_hosts, **kept)  # type: ignore[return-value]
