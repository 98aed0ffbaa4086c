"""Jobs as the agent follows them: in which phase each is, and why one is left to Slurm."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

from bridge.base.counted import counted
from bridge.cluster.slurm_values import amount, node_names
from bridge.worlds.slurm.client import Node, QueueEntry
from bridge.worlds.slurm.site_jobs import SiteRequest

#: States of a job that has nodes.
HAS_NODES = frozenset({"RUNNING", "COMPLETING", "CONFIGURING", "SUSPENDED", "STOPPED"})
#: Why a job is left alone until that changes.
OWN_HOLD = "held by its user or an operator"
_FEATURES = re.compile(r"(?:[\w.-]+(?:&[\w.-]+)*)?", re.ASCII)


class Phase(StrEnum):
    HELD = "held"  # the policy may start it
    BLOCKED = "blocked"  # it waits for another job, or for the next try
    AWAITING = "awaiting"  # decided, on nodes of jobs that are being stopped
    RELEASED = "released"  # decided and written, not seen running yet
    RUNNING = "running"
    REQUEUED = "requeued"  # requeued or cancelled; Slurm has not put it back into its queue yet
    FOREIGN = "foreign"  # Slurm's, or its user's own affair


@dataclass
class TrackedJob:
    """One job as it is followed; times in s since 1970.

    `row`: as squeue had it last; `hosts`: decided or occupied nodes; `retry`: not before then; `walltime`: s
    that its comment states as its true request; `missed_polls`: polls in a row that did not list it;
    `restartable`: it may be killed and requeued, and was not yet; `request`: what it asks of a site's nodes.
    """

    row: QueueEntry
    phase: Phase
    since: float
    why: str = ""
    hosts: frozenset[str] = frozenset()
    retry: float = 0.0
    failed_starts: int = 0
    walltime: float | None = None
    missed_polls: int = 0
    kicked: bool = False
    restartable: bool = False
    request: SiteRequest | None = None

    @property
    def length(self) -> float:
        return self.walltime if self.walltime is not None else self.row.limit


@dataclass(frozen=True)
class PartitionNodes:
    """The nodes of the agent's partition by name, and reservations: (begin, end, nodes), s since 1970."""

    nodes: Mapping[str, Node]
    reservations: tuple[tuple[float, float, frozenset[str]], ...] = ()

    @cached_property
    def idle(self) -> frozenset[str]:
        """Nodes without a job, or whose job is just over."""
        free = ("idle", "comp", "completing")
        return frozenset(name for name, node in self.nodes.items() if node.state in free)

    def reason_left_to_slurm(self, row: QueueEntry) -> str:
        """Return why a job is left to Slurm, empty if the agent can decide for it."""
        for bad, why in (
            ("+" in row.label, "a component of a heterogeneous job"),
            (row.gres != "", f"asks for {row.gres}"),
            (row.licenses != "", f"asks for licenses {row.licenses}"),
            (row.reservation != "", f"belongs to reservation {row.reservation}"),
            (not _FEATURES.fullmatch(row.features), f"asks for features {row.features}"),
            ("," in row.partition, f"asks for one of the partitions {row.partition}"),
            (row.nodes < 1, "asks for no nodes"),
        ):
            if bad:
                return why
        fitting = [node for node in self.nodes.values() if self._fits(row, node)]
        if len(fitting) < row.nodes:
            return (
                f"asks for {counted(row.nodes, 'node')}, and "
                f"{counted(len(fitting), 'has', 'have')} what it asks for"
            )
        return ""

    def _fits(self, row: QueueEntry, node: Node) -> bool:
        cores = math.ceil(row.cores / max(row.nodes, 1))
        try:
            memory = amount(row.memory, 1, cores) >> 20
        except ValueError:
            return False
        excluded = row.excluded and node.name in set(node_names(row.excluded))
        wanted = set(filter(None, row.features.split("&")))
        return cores <= node.cores and memory <= node.memory and wanted <= node.features and not excluded

    def select_nodes(
        self, row: QueueEntry, free: frozenset[str], now: float, length: float
    ) -> list[str] | None:
        """Return nodes for a job: those it requires, then the first free ones that fit; None if too few are.

        Nodes of a reservation that begins before the job's believed end are left out.
        """
        until = now + length
        barred = (nodes for begin, end, nodes in self.reservations if begin < until and now < end)
        there = free.difference(*barred)
        fitting = [n for n, node in self.nodes.items() if n in there and self._fits(row, node)]
        required = list(node_names(row.required)) if row.required else []
        if not set(required) <= set(fitting):
            return None
        rest = [name for name in fitting if name not in required]
        chosen = set((required + rest)[: row.nodes])
        return [name for name in self.nodes if name in chosen] if len(chosen) == row.nodes else None
