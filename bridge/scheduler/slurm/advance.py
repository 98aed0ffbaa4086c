"""Advance reservations: which nodes they take from a job."""

from dataclasses import dataclass, field

from bridge.scheduler.slurm.admission import ALL, Admission
from bridge.scheduler.slurm.jobs import SlurmJob


@dataclass(slots=True)
class Advance:
    """Nodes that only jobs which name it may use in [start, end); `admission`: who may, at submission."""

    name: str
    start: int
    end: int
    nodes: int
    maint: bool = False
    flex: bool = False
    ignore_jobs: bool = False
    every_node: bool = False
    licenses: dict[str, int] = field(default_factory=dict)
    admission: Admission = ALL


def usable_nodes(
    reservations: dict[str, Advance], job: SlurmJob, nodes: int, start: int, limit: int
) -> tuple[int, bool]:
    """Return those of some nodes that reservations leave to a job in [start, start + limit).

    The second tells whether one took nodes away.
    """
    own = reservations.get(job.reservation) if job.reservation else None
    if own is not None and not own.flex:
        nodes &= own.nodes
    is_less = False
    for one in reservations.values():
        if one is own or one.end <= start or one.start >= start + limit:
            continue
        if own is not None and own.maint and one.maint:
            continue
        if nodes & one.nodes:
            nodes &= ~one.nodes
            is_less = True
    return nodes, is_less
