"""What detailed jobs do, sized for a platform so that a job alone on idle hosts takes its logged run time.

| profile | a job of logged run time t on n nodes |
|---|---|
| delay | sleeps t: the platform has no say |
| compute | computes for t |
| network:F[:ROUNDS] | in each of ROUNDS: computes for (1 − F) t / ROUNDS, then all-to-all for the rest |
| io[:F] | reads for F t / 2, computes for (1 − F) t, writes for F t / 2 |

Transfers are sized for all the bandwidth that the job can get. "Alone" is on the idle machine's
lowest-numbered hosts, where first-fit puts a job. Times follow from the parallel-task model in closed form,
see `bridge.platform.routes`. On other hosts a transfer may take longer or shorter (other switches), next to
other jobs longer (shared links): that is the platform's say.
"""

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, cast

import pandas as pd

from bridge.base.errors import BridgeError
from bridge.wire.profile_names import ProfileFields
from bridge.workload.batsim import ProfileBuilder, delay_profiles

if TYPE_CHECKING:
    from bridge.platform.model import Host, Platform

#: All-to-all tasks beyond these sizes cost SimGrid too much wall time.
MOST_NODES, MOST_HOSTS = 128, 512
#: Wall time of one all-to-all task of 128 nodes on 4,360 hosts, s, and how it grows with the nodes: measured
#: on SimGrid 3.32, 0.6 s at 128 nodes, 20 s at 512.
_TASK_COST, _GROWTH = 0.6, 2.53
#: Share of the run time that ``io`` spends on the file system, unless told otherwise.
_IO_SHARE = 0.2
#: Bytes of the transfers from which a platform's speed is read off its closed form.
_PROBE = 1e12

_Name = Literal["delay", "compute", "network", "io"]
_SYNTAX = re.compile("[a-z]+(:[0-9.eE+-]+)?(:[0-9]+)?")
_REMEDY = "Write delay, compute, network:F, network:F:ROUNDS, io or io:F, with F above 0, at most 1."


@dataclass(frozen=True)
class ProfileKind:
    """A parsed profile kind: what jobs do, the share of the run time that is spent on the network or the file
    system, and how often a job computes and communicates in turn.
    """

    name: _Name = "delay"
    share: float = 0.0
    rounds: int = 1

    @property
    def contends(self) -> bool:
        """Whether other jobs can slow a job down; jobs, or some of them, have composed profiles then."""
        return self.name in ("network", "io")

    def __str__(self) -> str:
        text = f"{self.name}:{self.share:g}" if self.contends else self.name
        return f"{text}:{self.rounds}" if self.rounds > 1 else text


def parse_kind(text: str) -> ProfileKind:
    """Return the kind named: delay, compute, network:0.2, network:0.2:10, io, io:0.1; raises BridgeError."""
    words = text.strip().split(":") if _SYNTAX.fullmatch(text.strip()) else []
    kind = None
    with suppress(ValueError):
        match words:
            case ["delay"] | ["compute"]:
                return ProfileKind(cast(_Name, words[0]))
            case ["io"]:
                kind = ProfileKind("io", _IO_SHARE)
            case ["io", share]:
                kind = ProfileKind("io", float(share))
            case ["network", share, *rounds]:
                kind = ProfileKind("network", float(share), *map(int, rounds))
    if kind is None or not 0 < kind.share <= 1 or kind.rounds < 1:
        raise BridgeError("unknown profile kind", where=f"profile {text!r}", remedy=_REMEDY)
    return kind


def default_walltime(kind: ProfileKind, *, staged: bool = False) -> str:
    """Return the walltime policy of a kind: requests must not kill jobs for contention or for staging."""
    return "none" if kind.contends or staged else "keep"


def builder(kind: ProfileKind, platform: "Platform | None") -> ProfileBuilder:
    """Return what makes jobs' profiles, sized for the platform; only ``delay`` does without.

    A BridgeError says that there is none, or that its hosts, file system or network are not for this kind.
    """
    if kind.name == "delay":
        return delay_profiles
    if platform is None:
        what = "needs the platform that jobs are sized for"
        remedy = "Give --platform FILE.xml, or use the profile delay."
        raise BridgeError(what, where=f"profile {kind}", remedy=remedy)
    return _Sizing(kind, platform).profiles


def file_system(platform: "Platform") -> "Host":
    """Return the storage host that jobs read from and write to; raises BridgeError if it is not clear which.

    That is the one of ``storage_kind`` pfs, else the one named pfs, else the only one but burst buffers.
    """
    storage = [host for host in platform.storage if host.properties.get("storage_kind") != "burst_buffer"]
    for chosen in (
        [host for host in storage if host.properties.get("storage_kind") == "pfs"],
        [host for host in storage if host.name == "pfs"],
        storage,
    ):
        if len(chosen) == 1:
            return chosen[0]
    several = f"several storage hosts: {', '.join(h.name for h in storage)}"
    what = several if storage else "no storage host" + (" but burst buffers" if platform.storage else "")
    what = f"the platform has {what}, so that jobs have no file system"
    remedy = 'Give one storage host the property storage_kind = "pfs".'
    raise BridgeError(what, where=platform.path, remedy=remedy)


def cost(nodes: int) -> float:
    """Return the estimated wall time of one all-to-all task, s, roughly."""
    return float(_TASK_COST * (nodes / MOST_NODES) ** _GROWTH)


class _Sizing:
    def __init__(self, kind: ProfileKind, platform: "Platform") -> None:
        self.kind = kind
        self._speeds: dict[tuple[str, int], tuple[float, float]] = {}
        compute, path = platform.compute, platform.path
        speeds = {host.speed for host in compute}
        if len(speeds) != 1 or not min(speeds) > 0:
            what = f"its compute hosts have {len(speeds)} speeds, so that a job's length depends on its hosts"
            raise BridgeError(what, where=path, remedy="Use the profile delay, or a platform of equal hosts.")
        self.speed: float = speeds.pop()
        self.hosts = [host.name for host in compute]
        from bridge.platform.routes import Timing

        self._timing = Timing(platform)
        if kind.name == "network" and len(compute) > MOST_HOSTS:
            what = (
                f"has {len(compute):,} hosts; the network profile is for up to {MOST_HOSTS}, because one "
                f"all-to-all task of {MOST_NODES} nodes takes about {cost(MOST_NODES):.1f} s of wall time "
                f"there, one of 512 nodes {cost(512):.0f} s"
            )
            remedy = "Use the profile io: on larger machines contention is on the file system."
            raise BridgeError(what, where=path, remedy=remedy)
        self.storage = file_system(platform).name if kind.name == "io" else ""

    def profiles(self, jobs: pd.DataFrame) -> tuple[list[str], dict[str, ProfileFields]]:
        delay_profiles(jobs)  # refuses what no profile can do: a run time that is not positive
        res = jobs["req_procs"].where(jobs["req_procs"] > 0, jobs["procs"])
        self._refuse_large(jobs, res, len(self.hosts))
        if self.kind.name == "network":
            self._refuse_large(jobs, res, min(MOST_NODES, len(self.hosts)))
        make: Callable[[str, float, int], dict[str, ProfileFields]] = getattr(self, f"_{self.kind.name}")
        pairs = list(zip(jobs["run"].tolist(), res.tolist(), strict=True))
        profiles: dict[str, ProfileFields] = {}
        for run, size in dict.fromkeys(pairs):
            profiles |= make(f"{self.kind.name}_{run}_{size}", float(run), size)
        return [f"{self.kind.name}_{run}_{size}" for run, size in pairs], profiles

    def _refuse_large(self, jobs: pd.DataFrame, res: "pd.Series[int]", most: int) -> None:
        """Refuse jobs of more nodes than the platform has, or, with `MOST_NODES`, that cost too much."""
        wrong = res > most
        if not wrong.any():
            return
        what = f"is larger than the platform's {most:,} hosts"
        remedy = "Leave such jobs out: give the platform's size as --nodes."
        if most != len(self.hosts):
            total = sum(map(cost, res[wrong].tolist())) * self.kind.rounds
            first = int(res[wrong].iloc[0])
            what = (
                f"has {first} nodes; the network profile is for up to {most}: its all-to-all task would "
                f"take about {cost(first):,.0f} s of wall time, the {wrong.sum():,} such jobs {total:,.0f} s"
            )
            remedy = "Use the profile io, or leave large jobs out."
        raise BridgeError(f"the job {what}", where=f"job {jobs['job_id'][wrong].iloc[0]}", remedy=remedy)

    # What jobs do.

    def _work(self, seconds: float) -> ProfileFields:
        return {"type": "parallel_homogeneous", "cpu": seconds * self.speed, "com": 0}

    def _compute(self, name: str, run: float, _size: int) -> dict[str, ProfileFields]:
        return {name: self._work(run)}

    def _network(self, name: str, run: float, size: int) -> dict[str, ProfileFields]:
        once = run / self.kind.rounds
        volume = self._volume("exchange", size, once * self.kind.share) if size > 1 else 0.0
        if not volume:
            return self._compute(name, run, size)
        talk = {"type": "parallel_homogeneous", "cpu": 0, "com": volume}
        return self._composed(name, self._part(name, once) | {f"{name}_talk": talk})

    def _io(self, name: str, run: float, size: int) -> dict[str, ProfileFields]:
        ends: list[dict[str, ProfileFields]] = []
        for what, key in (("read", "bytes_to_read"), ("write", "bytes_to_write")):
            volume = self._volume(what, size, run * self.kind.share / 2)
            if not volume:
                return self._compute(name, run, size)
            profile = {"type": "parallel_homogeneous_pfs", key: volume, "storage": self.storage}
            ends.append({f"{name}_{what}": profile})
        return self._composed(name, ends[0] | self._part(name, run) | ends[1])

    def _part(self, name: str, run: float) -> dict[str, ProfileFields]:
        """Return the share of a run that is work; nothing if there is none."""
        work = run * (1 - self.kind.share)
        return {f"{name}_work": self._work(work)} if work > 0 else {}

    def _composed(self, name: str, parts: dict[str, ProfileFields]) -> dict[str, ProfileFields]:
        return parts | {name: {"type": "composed", "repeat": self.kind.rounds, "seq": list(parts)}}

    def _volume(self, what: str, size: int, seconds: float) -> float:
        """Return the bytes per pair or node that take so long alone; 0 if the latency takes longer."""
        latency, per_byte = self._speed_of(what, size)
        return max(0.0, (seconds - latency) / per_byte) if per_byte > 0 else 0.0

    def _speed_of(self, what: str, size: int) -> tuple[float, float]:
        """Return latency (s) and seconds per byte of a transfer of a job on the first `size` hosts."""
        speed = self._speeds.get((what, size))
        if speed is None:
            hosts = self.hosts[:size]

            def took(volume: float) -> float:
                if what == "exchange":
                    return self._timing.homogeneous(hosts, 0.0, volume)
                read, write = (volume, 0.0) if what == "read" else (0.0, volume)
                return self._timing.storage(hosts, self.storage, read, write)

            per_byte = (took(2 * _PROBE) - took(_PROBE)) / _PROBE
            # a single byte takes no time but the latency
            latency = took(1.0) - per_byte
            speed = self._speeds[what, size] = max(0.0, latency), per_byte
        return speed
