"""A scheduler that knows the present of a live site."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bridge.worlds.fast.episode import Scenario
from bridge.worlds.slurm.site_jobs import PendingJob, PlacedJob, SiteRequest


@dataclass
class NodePiece:
    """What a running job has alike on some nodes, by index."""

    request: SiteRequest
    nodes: list[int]


@dataclass(frozen=True)
class LoadedSite:
    """A scheduler that knows the present of a site: what runs, by pieces, and what waits.

    `now`: µs since `origin`, which is in seconds since 1970. `state`: of scheduler 0. `spared`: see
    `SiteDecision`.
    """

    scenario: Scenario
    state: Any
    pieces: Sequence[tuple[PlacedJob, NodePiece]]
    waiting: Sequence[PendingJob]
    now: int
    origin: int
    resources: tuple[str, ...] = ("nodes",)
    spared: Mapping[str, str] = field(default_factory=dict)
