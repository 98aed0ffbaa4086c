"""What jobs ask of a site's nodes, and what running ones have there. Plain data."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from enum import StrEnum
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol

from bridge.base.errors import BridgeError
from bridge.cluster.description import Cluster
from bridge.config import from_tables


@dataclass(frozen=True)
class SiteRequest:
    """What a job asks for. Amounts are of one task where tasks are stated, else of one node.

    Attributes:
        partition: names with commas between them.
        nodes: exactly so many; 0: as many as its tasks need.
        tasks: 0: none are stated.
        memory: MiB; -1: all that the node has.
        gpus, gpu_type: whole GPUs; any type, if empty.
        exclusive: it has whole nodes.
        features, licenses, reservation, nodelist, exclude: as Slurm writes them, empty without.
        array, array_limit: its array (-1: none), and how many of its tasks may run at once (0: all).
        qos: empty without.
        may_requeue: Slurm may stop it, and let it run again.
    """

    partition: str
    nodes: int
    tasks: int = 0
    cores: int = 1
    memory: int = 0
    gpus: int = 0
    gpu_type: str = ""
    exclusive: bool = False
    features: str = ""
    licenses: str = ""
    reservation: str = ""
    nodelist: str = ""
    exclude: str = ""
    array: int = -1
    array_limit: int = 0
    qos: str = ""
    may_requeue: bool = True

    def as_record(self) -> dict[str, Any]:
        """Return what is stated, as plain data."""
        usual = {field.name: field.default for field in fields(self)}
        return {name: value for name, value in asdict(self).items() if value != usual[name]}

    @classmethod
    def from_record(cls, record: object) -> "SiteRequest":
        """Return what `as_record` has written; BridgeError: it is none."""
        return from_tables(cls, record, "a job's request")


@dataclass(frozen=True)
class NodePart:
    """What a running job has on each of some nodes: cores, memory (MiB), GPUs by type; or all of them."""

    nodes: tuple[str, ...]
    cores: int = 1
    memory: int = 0
    gpus: Mapping[str, int] = field(default_factory=dict)
    whole: bool = False

    def as_record(self) -> list[Any]:
        return [list(self.nodes), self.cores, self.memory, dict(self.gpus), self.whole]

    @classmethod
    def from_record(cls, record: list[Any]) -> "NodePart":
        """Return what `as_record` has written; BridgeError: it is none."""
        try:
            nodes, cores, memory, gpus, whole = record
            amounts = {str(kind): int(count) for kind, count in gpus.items()}
            return cls(tuple(map(str, nodes)), int(cores), int(memory), amounts, bool(whole))
        except (AttributeError, TypeError, ValueError) as error:
            raise BridgeError("it is not [nodes, cores, memory, gpus, whole]") from error


@dataclass(frozen=True)
class PendingJob:
    """A job that may be started: `number` is Slurm's; `submit` s since 1970, `length` believed s.

    What passes have left of it: `rejects`: how often an agent rejected it; `is_head`: it is its partition's
    head, which stays so; `goes_first`: jobs have given way to it, and the next pass takes it first.
    """

    key: str
    number: int
    submit: float
    length: float
    request: SiteRequest
    rejects: int = 0
    is_head: bool = False
    goes_first: bool = False


@dataclass(frozen=True)
class PlacedJob:
    """A job that has nodes since `start`, s since 1970, and is believed to run for `length` s.

    Attributes:
        number: Slurm's; of two that started together the higher one is preempted first.
        partition, qos: by which it may be preempted; no partition: it is never stopped.
        may_requeue: it may be stopped, and run again.
        grace_end: when it is stopped in favour of the job `preemptor`; -1: it is not.
        suspended: since when the agent has it suspended; -1: it is not. It keeps all but its cores.
        stood: for how long it was suspended before, s.
    """

    key: str
    start: float
    length: float
    parts: tuple[NodePart, ...]
    licenses: str = ""
    array: int = -1
    array_limit: int = 0
    number: int = 0
    partition: str = ""
    qos: str = ""
    may_requeue: bool = True
    grace_end: float = -1.0
    preemptor: str = ""
    suspended: float = -1.0
    stood: float = 0.0


@dataclass(frozen=True)
class SiteStart:
    """A start that was decided, with the nodes and what the job takes there, and by which partition."""

    key: str
    parts: tuple[NodePart, ...]
    partition: str = ""

    @property
    def nodes(self) -> list[str]:
        return [name for part in self.parts for name in part.nodes]


class StopKind(StrEnum):
    """What a pass does to a running job, or to one that is suspended (`RESUME`)."""

    REQUEUE = "requeue"
    CANCEL = "cancel"
    SUSPEND = "suspend"
    RESUME = "resume"
    GRACE = "grace"  # it is stopped later


class SiteStop(NamedTuple):
    """What a pass decides on a job that has nodes; of a grace its end, s since 1970, and in whose favour."""

    key: str
    kind: StopKind
    grace_end: float = -1.0
    preemptor: str = ""

    def as_record(self) -> list[Any]:
        return [self.key, str(self.kind), self.grace_end, self.preemptor]

    @classmethod
    def from_record(cls, record: Any) -> "SiteStop":
        """Return what `as_record` has written; BridgeError: it is none."""
        try:
            return cls(str(record[0]), StopKind(record[1]), float(record[2]), str(record[3]))
        except (IndexError, TypeError, ValueError) as error:
            raise BridgeError("it is not [job, kind, end of grace, preemptor]") from error


class SiteDecision(NamedTuple):
    """What a pass decides: its `starts`, in order; `left`: the jobs that wait on, as it leaves them.

    `wake_at`: when it is to be made again at the latest, s since 1970; `goes_on`: at once, for jobs were
    stopped; `resumes`: see `SiteQueue`, of that pass. `stops`: of running jobs. `spared`: jobs that the
    site's rules would stop, and no pass does, and why.
    """

    starts: list[SiteStart]
    left: tuple[PendingJob, ...] = ()
    wake_at: float = math.inf
    stops: tuple[SiteStop, ...] = ()
    spared: Mapping[str, str] = MappingProxyType({})
    goes_on: bool = False
    resumes: bool = True


@dataclass(frozen=True)
class SiteQueue:
    """A site with its jobs at one time, in seconds since 1970; no job starts on the nodes that are `out`.

    `resumes`: the pass begins with letting suspended jobs go on; not where it takes a job first.
    """

    cluster: Cluster
    out: frozenset[str]
    waiting: Sequence[PendingJob]
    running: Sequence[PlacedJob]
    now: float
    resumes: bool = True


class SitePass(Protocol):
    """A policy that decides from what a site is now; what it has to remember stands in the jobs."""

    def refusal(self, cluster: Cluster, request: SiteRequest) -> str:
        """Return why the empty cluster cannot hold a job, empty if it can."""

    def decide(self, queue: SiteQueue) -> SiteDecision:
        """Return what one pass decides."""
