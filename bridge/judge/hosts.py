"""Host ids of jobs: reads Batsim's interval text (``0-3 7``) and finds hosts that two jobs hold at once."""

from array import array
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bridge.errors import BridgeError
from bridge.jit import kernel
from bridge.judge.allocate import Allocation, Floats, Ints, place
from bridge.wire.hosts import intervals

if TYPE_CHECKING:
    import pandas as pd


def parse(texts: "pd.Series[Any]") -> tuple[Allocation, NDArray[np.bool_]]:
    """Read interval texts, one per job.

    Returns:
        (allocation, unreadable): the intervals of each job as written, and which texts cannot be read
        (a reversed interval counts as such). Empty and unreadable texts have no interval.
    """
    ends = array("q")
    counts = np.zeros(len(texts), np.int64)
    unreadable = np.zeros(len(texts), np.bool_)
    for row, text in enumerate(texts):
        if isinstance(text, str):
            try:
                found = intervals(text)
            except ValueError:
                unreadable[row] = True
            else:
                counts[row] = len(found)
                ends.extend(chain.from_iterable(found))
    first, last = np.frombuffer(ends, np.int64).reshape(-1, 2).T.copy()
    return Allocation(first, last, np.concatenate(([0], np.cumsum(counts)))), unreadable


def hosts_of(jobs: "pd.DataFrame", nodes: int, where: str) -> tuple[Allocation, bool]:
    """Return every job's hosts, and whether the table tells them; else each is placed on the lowest free.

    Args:
        jobs: jobs that started.
        nodes: of the machine.
        where: the run's name, for errors.

    Raises:
        BridgeError: the host ids of a job cannot be read, or the schedule exceeds the machine.
    """
    told = bool((jobs["allocated_resources"].fillna("") != "").all())
    allocation, unreadable = parse((jobs if told else place(jobs, nodes))["allocated_resources"])
    if unreadable.any():
        job = jobs["job_id"].iloc[int(unreadable.argmax())]
        raise BridgeError(
            f"the host ids of job {job} cannot be read", where=where, remedy="`bridge check` names all."
        )
    return allocation, told


def overlaps(
    allocation: Allocation, starts: Floats, ends: Floats, tolerance: float
) -> tuple[Ints, Ints, Ints]:
    """Find every job that starts on a host which another job holds for at least ``tolerance`` s longer.

    A host is free again at the end of its job (a release comes before a start of the same time); jobs
    without length hold nothing.

    Args:
        allocation: intervals per job.
        starts, ends: s, shape (jobs,); rows with NaN are left out.
        tolerance: s.

    Returns:
        (jobs, holders, hosts): rows in start order, the row that holds the host, the lowest such host.
    """
    rows = np.flatnonzero(ends > starts)
    order = rows[np.argsort(starts[rows], kind="stable")]
    # Hosts between two neighbouring ends of intervals are held alike: one place for all, however many.
    edges = np.unique(np.concatenate((allocation.first, allocation.last + 1)))
    until, holder = np.full(len(edges), -np.inf), np.full(len(edges), -1, np.int64)
    jobs, holders, hosts = (np.empty(len(order), np.int64) for _ in range(3))
    first = np.searchsorted(edges, allocation.first)
    last = np.searchsorted(edges, allocation.last + 1) - 1
    lists = (first, last, allocation.offsets)
    found = _overlaps(order, *lists, starts, ends, tolerance, until, holder, jobs, holders, hosts)
    return jobs[:found], holders[:found], edges[hosts[:found]]


@kernel
def _overlaps(
    order: Ints,
    first: Ints,
    last: Ints,
    offsets: Ints,
    starts: Floats,
    ends: Floats,
    tolerance: float,
    until: Floats,
    holder: Ints,
    jobs: Ints,
    holders: Ints,
    hosts: Ints,
) -> int:
    """Sweep the starts; ``until`` and ``holder`` say how long each place is held, and by which row.

    A place is a host, or several that are always held together: `overlaps` numbers them.
    """
    found = 0
    for job in order:
        clash = -1
        for k in range(offsets[job], offsets[job + 1]):
            for host in range(first[k], last[k] + 1):
                if until[host] > starts[job] + tolerance and (clash < 0 or host < clash):
                    clash = host
        if clash >= 0:
            jobs[found] = job
            holders[found] = holder[clash]
            hosts[found] = clash
            found += 1
        for k in range(offsets[job], offsets[job + 1]):
            for host in range(first[k], last[k] + 1):
                if ends[job] > until[host]:
                    until[host] = ends[job]
                    holder[host] = job
    return found
