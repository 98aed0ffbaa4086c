"""Twenty small jobs for any platform, each with the time it must take alone (closed form)."""

import dataclasses
from collections.abc import Callable
from typing import Any

from bridge.platform.model import Platform
from bridge.platform.routes import Timing

#: Sizes are chosen so that a job takes about this long (s), whatever the speed of the platform.
_SECONDS = 2.0
_SUCCESS, _WALLTIME = "COMPLETED_SUCCESSFULLY", "COMPLETED_WALLTIME_REACHED"


@dataclasses.dataclass(frozen=True, slots=True)
class TrialJob:
    """One job of the trial.

    Attributes:
        ident, about: number from 1, zero-padded; what it exercises.
        profiles: Batsim profiles by name; the job's own is named like the job.
        resources, storage: Batsim's numbers of its compute hosts, and by label of its storage hosts.
        seconds, state: execution time and final state that it must have.
    """

    ident: str
    about: str
    profiles: dict[str, dict[str, Any]]
    resources: tuple[int, ...]
    storage: dict[str, int]
    walltime: float | None
    seconds: float
    state: str = _SUCCESS


class _Jobs:
    def __init__(self, platform: Platform) -> None:
        self.timing = Timing(platform)
        self.compute = [host.name for host in platform.compute]
        self.storage = [host.name for host in platform.storage]
        self.speed = [host.speed for host in platform.compute]
        self.numbers = platform.resource_ids()
        self.jobs: list[TrialJob] = []

    def spread(self, count: int) -> list[int]:
        """Up to `count` compute hosts, first and last among them, evenly over the machine."""
        last = len(self.compute) - 1
        count = min(count, last + 1)
        return sorted({round(i * last / max(1, count - 1)) for i in range(count)})

    def names(self, hosts: list[int]) -> list[str]:
        return [self.compute[i] for i in hosts]

    def work(self, hosts: list[int]) -> float:
        """flop per rank that keep the slowest of these hosts busy for the usual time."""
        return min(self.speed[i] for i in hosts) * _SECONDS

    @staticmethod
    def size(seconds: Callable[[float], float]) -> int:
        """Bytes with which something takes about the usual time, from its time for a number of bytes."""
        probe = 1_000_000
        once, twice = seconds(probe), seconds(2 * probe)
        return round(probe * _SECONDS / (twice - once)) if twice > once else probe

    def add(
        self,
        about: str,
        hosts: list[int],
        profile: dict[str, Any],
        seconds: float,
        *,
        parts: dict[str, dict[str, Any]] | None = None,
        storage: dict[str, str] | None = None,
        walltime: float | None = None,
    ) -> None:
        reached = walltime is not None and profile["delay"] >= walltime
        ident = f"{len(self.jobs) + 1:02}"
        places = {label: self.numbers[name] for label, name in (storage or {}).items()}
        profiles = {ident: profile} | {ident + name: part for name, part in (parts or {}).items()}
        state = _WALLTIME if reached else _SUCCESS
        self.jobs.append(TrialJob(ident, about, profiles, tuple(hosts), places, walltime, seconds, state))

    # ---- kinds of jobs -------------------------------------------------------------------------------------
    def delay(self, about: str, hosts: list[int], delay: float, walltime: float | None = None) -> None:
        seconds = delay if walltime is None else min(delay, walltime)
        self.add(about, hosts, {"type": "delay", "delay": delay}, seconds, walltime=walltime)

    def computing(self, about: str, hosts: list[int], *, total: bool = False) -> None:
        cpu = self.work(hosts)
        kind = "parallel_homogeneous_total" if total else "parallel_homogeneous"
        profile = {"type": kind, "cpu": cpu * len(hosts) if total else cpu, "com": 0}
        self.add(about, hosts, profile, self.timing.homogeneous(self.names(hosts), cpu, 0))

    def explicit(
        self, about: str, hosts: list[int], pairs: list[tuple[int, int]], flops: list[float]
    ) -> None:
        names, count = self.names(hosts), len(hosts)

        def seconds(size: float, flops: list[float]) -> float:
            return self.timing.task(names, flops, dict.fromkeys(pairs, size))

        size = self.size(lambda size: seconds(size, [0.0] * count)) if pairs else 0
        com = [float(size if (i, j) in pairs else 0) for i in range(count) for j in range(count)]
        self.add(about, hosts, {"type": "parallel", "cpu": flops, "com": com}, seconds(size, flops))

    def all_to_all(self, hosts: list[int]) -> int:
        """Bytes from everyone to everyone; 0 for one host."""
        names = self.names(hosts)
        return self.size(lambda size: self.timing.homogeneous(names, 0, size)) if len(hosts) > 1 else 0

    def exchange(self, about: str, hosts: list[int], cpu: float = 0.0) -> None:
        com = self.all_to_all(hosts)
        cpu = cpu or (0.0 if com else self.work(hosts))
        profile = {"type": "parallel_homogeneous", "cpu": cpu, "com": com}
        self.add(about, hosts, profile, self.timing.homogeneous(self.names(hosts), cpu, com))

    def composed(self, about: str, hosts: list[int], repeat: int) -> None:
        cpu, com, names = self.work(hosts) / 4, self.all_to_all(hosts), self.names(hosts)
        parts = {
            "compute": {"type": "parallel_homogeneous", "cpu": cpu, "com": 0},
            "exchange": {"type": "parallel_homogeneous", "cpu": cpu, "com": com},
            "pause": {"type": "delay", "delay": 0.25},
        }
        once = self.timing.homogeneous(names, cpu, 0) + self.timing.homogeneous(names, cpu, com) + 0.25
        sequence = [f"{len(self.jobs) + 1:02}{name}" for name in parts]
        profile = {"type": "composed", "repeat": repeat, "seq": sequence}
        self.add(about, hosts, profile, once * repeat, parts=parts)

    def file_access(self, about: str, hosts: list[int], storage: str, *, read: bool, write: bool) -> None:
        names = self.names(hosts)

        def seconds(size: float) -> float:
            return self.timing.storage(names, storage, size * read, size * write)

        size = self.size(seconds)
        sizes = {"bytes_to_read": size * read, "bytes_to_write": size * write}
        profile = {"type": "parallel_homogeneous_pfs", **sizes, "storage": "there"}
        self.add(about, hosts, profile, seconds(size), storage={"there": storage})

    def staging(self, about: str, source: str, target: str) -> None:
        size = self.size(lambda size: self.timing.staging(source, target, size))
        profile = {"type": "data_staging", "nb_bytes": size, "from": "source", "to": "target"}
        seconds = self.timing.staging(source, target, size)
        self.add(about, [0], profile, seconds, storage={"source": source, "target": target})


def trial_jobs(platform: Platform) -> list[TrialJob]:
    """The twenty jobs for this platform, one after the other; RouteError if hosts cannot reach each other."""
    jobs = _Jobs(platform)
    ends, few, some = jobs.spread(2), jobs.spread(4), jobs.spread(8)
    everyone = list(range(len(jobs.compute)))
    first, last = [0], [everyone[-1]]
    jobs.delay("delay on one host", first, 10.0)
    jobs.delay("delay on every host", everyone, 2.5)
    jobs.delay("delay that reaches its walltime", first, 10.0, walltime=4.0)
    jobs.delay("delay as long as its walltime", last, 3.0, walltime=3.0)
    jobs.computing("computing on the first host", first)
    jobs.computing("computing on the last host", last)
    jobs.computing("computing on 2 hosts", ends)
    jobs.computing("computing on up to 16 hosts", jobs.spread(16))
    jobs.computing("computing, total work divided", few, total=True)
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
    return jobs.jobs
