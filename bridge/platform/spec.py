"""The short description of a platform as typed values: what a TOML or YAML file may say.

See docs/platforms.md for the meaning of every key. Sizes, speeds and times are texts with SimGrid's units.
"""

import dataclasses
from typing import Literal

from bridge.platform.model import MASTER_NAME

TopologyName = Literal["cluster", "fat-tree", "torus", "dragonfly", "ideal"]


@dataclasses.dataclass(frozen=True, slots=True)
class JobWatts:
    """Equal-speed pstates with flat wattages `start`, `start + step`, …, `stop` (W), one per job's need."""

    start: int
    stop: int
    step: int = 5


@dataclasses.dataclass(frozen=True, slots=True)
class Sleep:
    """A sleeping pstate (W) and the two transitions (seconds, W)."""

    watts: float
    off_seconds: float
    off_watts: float
    on_seconds: float
    on_watts: float


@dataclasses.dataclass(frozen=True, slots=True)
class NodePower:
    """Either `job` (power per job) or `states` ("idle:epsilon:all" in W for each speed); and `off` (W)."""

    job: JobWatts | None = None
    states: tuple[str, ...] = ()
    off: float = 0.0
    sleep: Sleep | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Nodes:
    """The compute hosts: how many, name prefix, speed of a core (several: one per pstate), cores."""

    count: int
    speed: tuple[str, ...]
    prefix: str = "n"
    cores: int = 1
    explicit: bool | None = None
    power: NodePower | None = None


@dataclasses.dataclass(frozen=True, slots=True)
class Network:
    """The interconnect.

    `bandwidth` and `latency` are those of the link of one node. The rest depends on the topology: see
    docs/platforms.md.
    """

    topology: TopologyName
    bandwidth: str = ""
    latency: str = ""
    backbone: str = ""
    backbone_latency: str = "0us"
    switches: int = 0
    uplink: str = ""
    uplink_latency: str = "0us"
    core: str = ""
    dimensions: tuple[int, ...] = ()
    ring: str = ""
    ring_latency: str = "0us"
    groups: int = 0
    global_bandwidth: str = ""
    global_latency: str = "0us"
    io: str = ""
    io_latency: str = "0us"
    loopback: str = "10GBps"
    native: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Storage:
    """A parallel file system or a burst buffer; `capacity` (bytes) is that of all `count` hosts together."""

    name: str
    kind: Literal["pfs", "burst_buffer"]
    bandwidth: str
    latency: str = "0us"
    count: int = 1
    capacity: str = ""
    watts: float = 0.0


@dataclasses.dataclass(frozen=True, slots=True)
class Master:
    """The master host. `clean`: internal messages take no simulated time; `latency`: they take that long."""

    name: str = MASTER_NAME
    management: Literal["clean", "latency"] = "clean"
    latency: str = ""
    bandwidth: str = ""


@dataclasses.dataclass(frozen=True, slots=True)
class Spec:
    """A whole platform in short."""

    name: str
    nodes: Nodes
    network: Network
    description: str = ""
    master: Master = dataclasses.field(default_factory=Master)
    storage: tuple[Storage, ...] = ()
    power_budget: float = 0.0
