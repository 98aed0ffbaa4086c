"""Twenty small jobs for any platform, each with the time it must take alone (closed form)."""

import dataclasses
from typing import Any

from bridge.platform.model import Platform
from bridge.platform.timing import Task, Timing

#: Sizes are chosen so that a job takes about this long (s), whatever the speed of the platform.
_SECONDS = 2.0


@dataclasses.dataclass(frozen=True, slots=True)
class TrialJob:
    """One job of the trial.

    Attributes:
        ident: number from 1, zero-padded.
        about: what it exercises.
        profiles: Batsim profiles by name; the job's own is named like the job.
        resources: Batsim's numbers of its compute hosts.
        storage: storage label -> Batsim's number of the storage host.
        walltime: seconds, None for none.
        seconds: execution time that it must have.
        state: final state that it must have.
    """

    ident: str
    about: str
    profiles: dict[str, dict[str, Any]]
    resources: tuple[int, ...]
    storage: dict[str, int]
    walltime: float | None
    seconds: float
    state: str = "COMPLETED_SUCCESSFULLY"


class _Jobs:
    def __init__(self, platform: Platform) -> None:
        self.timing = Timing(platform)
        self.compute = [host.name for host in platform.compute]
        self.storage = [host.name for host in platform.storage]
        self.speed = [host.speed for host in platform.compute]
        self.numbers = platform.resource_ids()
        self.made: list[TrialJob] = []

    def spread(self, count: int) -> list[int]:
        """Up to `count` compute hosts, first and last among them, evenly over the machine."""
        last = len(self.compute) - 1
        count = min(count, last + 1)
        return sorted({round(i * last / max(1, count - 1)) for i in range(count)})

    def names(self, hosts: list[int]) -> list[str]:
        return [self.compute[i] for i in hosts]

    def add(
        self,
        about: str,
        hosts: list[int],
        profile: dict[str, Any],
        seconds: float,
        *,
        parts: dict[str, dict[str, Any]] | None = None,
        storage: dict[str, int] | None = None,
        walltime: float | None = None,
        state: str = "COMPLETED_SUCCESSFULLY",
    ) -> None:
        ident = f"{len(self.made) + 1:02}"
        profiles = {ident: profile} | (parts or {})
        job = TrialJob(ident, about, profiles, tuple(hosts), storage or {}, walltime, seconds, state)
        self.made.append(job)

    # ---- kinds of jobs -------------------------------------------------------------------------------------
    def delay(self, about: str, hosts: list[int], delay: float, walltime: float | None = None) -> None:
        reached = walltime is not None and delay >= walltime
        state = "COMPLETED_WALLTIME_REACHED" if reached else "COMPLETED_SUCCESSFULLY"
        seconds = walltime if reached and walltime is not None else delay
        self.add(about, hosts, {"type": "delay", "delay": delay}, seconds, walltime=walltime, state=state)

    def work(self, hosts: list[int]) -> float:
        """flop per rank that keep the slowest of these hosts busy for the usual time."""
        return min(self.speed[i] for i in hosts) * _SECONDS

    def compute_job(self, about: str, hosts: list[int], *, total: bool = False) -> None:
        cpu = self.work(hosts)
        seconds = self.timing.homogeneous(self.names(hosts), cpu, 0)
        kind = "parallel_homogeneous_total" if total else "parallel_homogeneous"
        profile = {"type": kind, "cpu": cpu * len(hosts) if total else cpu, "com": 0}
        self.add(about, hosts, profile, seconds)

    def bytes_for(self, hosts: list[int], pairs: list[tuple[int, int]]) -> float:
        """Bytes per transfer that take about the usual time; 0 if there is no transfer."""
        if not pairs:
            return 0.0
        zero = [0.0] * len(hosts)
        probe = 1e6
        alone = self.timing.task(Task(self.names(hosts), zero, dict.fromkeys(pairs, probe)))
        twice = self.timing.task(Task(self.names(hosts), zero, dict.fromkeys(pairs, 2 * probe)))
        return round(probe * _SECONDS / (twice - alone)) if twice > alone else probe

    def explicit(
        self, about: str, hosts: list[int], pairs: list[tuple[int, int]], flops: list[float]
    ) -> None:
        """A `parallel` profile with its own vector and matrix."""
        size = self.bytes_for(hosts, pairs)
        n = len(hosts)
        com = [0.0] * (n * n)
        for i, j in pairs:
            com[i * n + j] = size
        seconds = self.timing.task(Task(self.names(hosts), flops, dict.fromkeys(pairs, size)))
        self.add(about, hosts, {"type": "parallel", "cpu": flops, "com": com}, seconds)

    def exchange(self, about: str, hosts: list[int], cpu: float = 0.0) -> None:
        """`parallel_homogeneous`: everyone sends to everyone."""
        pairs = [(i, j) for i in range(len(hosts)) for j in range(len(hosts)) if i != j]
        com = self.bytes_for(hosts, pairs)
        cpu = cpu or (0.0 if pairs else self.work(hosts))
        seconds = self.timing.homogeneous(self.names(hosts), cpu, com)
        self.add(about, hosts, {"type": "parallel_homogeneous", "cpu": cpu, "com": com}, seconds)

    def composed(self, about: str, hosts: list[int], repeat: int) -> None:
        ident = f"{len(self.made) + 1:02}"
        cpu = self.work(hosts) / 4
        pairs = [(i, j) for i in range(len(hosts)) for j in range(len(hosts)) if i != j]
        com = self.bytes_for(hosts, pairs)
        parts = {
            f"{ident}compute": {"type": "parallel_homogeneous", "cpu": cpu, "com": 0},
            f"{ident}exchange": {"type": "parallel_homogeneous", "cpu": cpu, "com": com},
            f"{ident}pause": {"type": "delay", "delay": 0.25},
        }
        names = self.names(hosts)
        once = self.timing.homogeneous(names, cpu, 0) + self.timing.homogeneous(names, cpu, com) + 0.25
        profile = {"type": "composed", "repeat": repeat, "seq": list(parts)}
        self.add(about, hosts, profile, once * repeat, parts=parts)

    def file_access(self, about: str, hosts: list[int], storage: str, *, read: bool, write: bool) -> None:
        names = self.names(hosts)
        once = self.timing.storage(names, storage, 1e6 * read, 1e6 * write)
        twice = self.timing.storage(names, storage, 2e6 * read, 2e6 * write)
        size = round(1e6 * _SECONDS / (twice - once)) if twice > once else 1_000_000
        read_bytes, write_bytes = size * read, size * write
        profile = {
            "type": "parallel_homogeneous_pfs",
            "bytes_to_read": read_bytes,
            "bytes_to_write": write_bytes,
            "storage": "there",
        }
        seconds = self.timing.storage(names, storage, read_bytes, write_bytes)
        self.add(about, hosts, profile, seconds, storage={"there": self.numbers[storage]})

    def staging(self, about: str, source: str, target: str) -> None:
        once, twice = (self.timing.staging(source, target, size) for size in (1e6, 2e6))
        size = round(1e6 * _SECONDS / (twice - once)) if twice > once else 1_000_000
        profile = {"type": "data_staging", "nb_bytes": size, "from": "source", "to": "target"}
        where = {"source": self.numbers[source], "target": self.numbers[target]}
        self.add(about, [0], profile, self.timing.staging(source, target, size), storage=where)


def trial_jobs(platform: Platform) -> list[TrialJob]:
    """The twenty jobs for this platform, to be run one after the other.

    Raises:
        RouteError: hosts cannot reach each other (`bridge platform check` says more).
    """
    jobs = _Jobs(platform)
    ends, few, some = jobs.spread(2), jobs.spread(4), jobs.spread(8)
    everyone = list(range(len(jobs.compute)))
    first, last = [0], [everyone[-1]]
    jobs.delay("delay on one host", first, 10.0)
    jobs.delay("delay on every host", everyone, 2.5)
    jobs.delay("delay that reaches its walltime", first, 10.0, walltime=4.0)
    jobs.delay("delay as long as its walltime", last, 3.0, walltime=3.0)
    jobs.compute_job("computing on the first host", first)
    jobs.compute_job("computing on the last host", last)
    jobs.compute_job("computing on 2 hosts", ends)
    jobs.compute_job("computing on up to 16 hosts", jobs.spread(16))
    jobs.compute_job("computing, total work divided", few, total=True)
    pair = [(0, 1)] if len(ends) > 1 else []
    idle = [0.0] * len(ends) if pair else [jobs.work(ends)]
    jobs.explicit("transfer from the first to the last host", ends, pair, idle)
    jobs.explicit("transfer back", ends, [(j, i) for i, j in pair], idle)
    jobs.exchange("exchange between first and last host", ends)
    jobs.exchange("exchange between neighbours", everyone[:2])
    jobs.exchange("all-to-all of up to 8 hosts", some)
    ring = [(i, (i + 1) % len(few)) for i in range(len(few))] if len(few) > 1 else []
    jobs.explicit("ring of up to 4 hosts, unequal work", few, ring, [jobs.work(few) / (i + 1) for i in few])
    jobs.exchange("computing and exchanging at once", ends, cpu=jobs.work(ends))
    jobs.composed("three rounds of computing, exchange, pause", few, 3)
    storage = jobs.storage
    if storage:
        jobs.file_access("reading from storage", ends, storage[-1], read=True, write=False)
        jobs.file_access("writing to storage", some, storage[0], read=False, write=True)
    else:
        jobs.composed("one round of computing, exchange, pause", some, 1)
        jobs.composed("two rounds on one host", first, 2)
    if len(storage) > 1:
        jobs.staging("staging between two storage hosts", storage[-1], storage[0])
    elif storage:
        jobs.file_access("reading and writing at once", few, storage[0], read=True, write=True)
    else:
        jobs.delay("short delay", ends, 0.125)
    return jobs.made
