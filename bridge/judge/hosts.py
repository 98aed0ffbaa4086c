"""Host ids of jobs: Batsim's interval text (``0-3 7``), placement on the lowest free ids, hosts held twice.

The fast world counts nodes and does not place jobs; `place` does so afterwards, for files and pictures.
"""

from array import array
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from bridge.base.arrays import Flags, Floats, Ints, text_column
from bridge.base.errors import BridgeError
from bridge.base.jit import inline, kernel
from bridge.wire.hosts import intervals

#: What the kernel returns instead of a row: all placed, or out of room for intervals.
DONE, FULL = -1, -2
#: Jobs whose host ids are turned to text at a time.
_CHUNK = 1 << 15


@dataclass(frozen=True)
class HostAllocation:
    """Host ids of every job: job ``i`` has the closed intervals ``first[k] … last[k]``.

    ``k`` runs from ``offsets[i]`` up to, not including, ``offsets[i + 1]``. Shapes: first, last
    (intervals,), ascending within a job if placed here; offsets (jobs + 1,).
    """

    first: Ints
    last: Ints
    offsets: Ints

    def texts(self, start: int = 0, stop: int | None = None) -> Any:
        """Return one Batsim interval text (``0-3 7``, or empty) per job of ``start:stop`` as a column."""
        chunks = []
        bounds = self.offsets[start : None if stop is None else stop + 1]
        for job in range(0, len(bounds) - 1, _CHUNK):  # piecewise, so that memory stays small
            offsets = bounds[job : job + _CHUNK + 1]
            part = slice(offsets[0], offsets[-1])
            low = pc.cast(pa.array(self.first[part]), pa.string())
            span = pc.binary_join_element_wise(low, pc.cast(pa.array(self.last[part]), pa.string()), "-")
            words = pc.if_else(pa.array(self.first[part] == self.last[part]), low, span)
            lists = pa.ListArray.from_arrays(pa.array(offsets - offsets[0], pa.int32()), words)
            chunks.append(pc.binary_join(lists, " "))
        return text_column(pa.chunked_array(chunks, pa.string()))


def first_fit(starts: Floats, ends: Floats, demand: Ints, hosts: int) -> HostAllocation:
    """Place every job on the lowest free host ids, of 0 … hosts − 1.

    At equal times releases come before starts; starts of one time follow the order of the rows. A job without
    length takes its hosts for no time, and before the other starts of its instant. `starts`, `ends`: s, shape
    (jobs,); a start of NaN = never started, gets no hosts. Raises BridgeError, which names row and time: more
    hosts are used at once than there are.
    """
    starts, ends = np.asarray(starts, np.float64), np.asarray(ends, np.float64)
    sizes = np.where(np.isnan(starts), 0, demand).astype(np.int64)
    rows = np.flatnonzero(sizes > 0)
    begin, end = starts[rows], ends[rows]
    order = rows[np.lexsort((end > begin, begin))]
    releases = rows[np.argsort(end, kind="stable")]
    del rows, begin, end  # a long schedule's take much memory
    releases = releases[ends[releases] > starts[releases]]
    begins, counts = np.zeros(len(sizes), np.int64), np.zeros(len(sizes), np.int64)
    intervals = 2 * len(sizes) + 16
    while True:
        first, last = np.empty(intervals, np.int64), np.empty(intervals, np.int64)
        room = 3 * (min(hosts // 2, intervals) + 2)  # free intervals lie between those that jobs hold
        lows, highs = np.empty(room, np.int64), np.empty(room, np.int64)
        free = (lows, highs)
        failed = int(_place(order, releases, starts, ends, sizes, hosts, first, last, begins, counts, *free))
        if failed != FULL:
            break
        intervals *= 2
    if failed >= 0:
        what = f"no {sizes[failed]} of {hosts} hosts are free at t = {starts[failed]:.6f} s"
        remedy = "The schedule exceeds the machine's capacity: `bridge check` names the jobs."
        raise BridgeError(what, where=f"row {failed} of the schedule", remedy=remedy)
    del order, releases
    # The kernel writes intervals in start order; bring them into row order.
    offsets = np.concatenate(([0], np.cumsum(counts)))
    taken = np.repeat(begins - offsets[:-1], counts) + np.arange(offsets[-1])
    return HostAllocation(first[taken], last[taken], offsets)


def place_first_fit(jobs: pd.DataFrame, hosts: int) -> HostAllocation:
    """Place the jobs of a jobs table first-fit on ``hosts`` hosts, see `first_fit`."""
    starts, ends = (jobs[name].to_numpy(np.float64) for name in ("starting_time", "finish_time"))
    demand = jobs["requested_number_of_resources"].to_numpy(np.int64)
    return first_fit(starts, ends, demand, hosts)


@kernel
def _place(
    order: Ints, releases: Ints, starts: Floats, ends: Floats, demand: Ints, hosts: int,
    first: Ints, last: Ints, begins: Ints, counts: Ints, lows: Ints, highs: Ints,
) -> int:  # fmt: skip
    """Sweep the starts in ``order``; return ``DONE``, ``FULL`` or the row that found too few free hosts.

    Writes the intervals to ``first`` and ``last``, where a row's begin to ``begins``, their number to
    ``counts``. Free intervals lie ascending, never adjacent, in ``lows[head:tail]`` and ``highs[head:tail]``.
    """
    used, free, waiting = 0, hosts, 0  # waiting: next entry of releases
    head = len(lows) // 3
    tail = head + 1
    lows[head], highs[head] = 0, hosts - 1
    for job in order:
        while waiting < len(releases) and ends[releases[waiting]] <= starts[job]:
            gone = releases[waiting]
            waiting += 1
            free += demand[gone]
            for k in range(begins[gone], begins[gone] + counts[gone]):
                head, tail = _give_back(lows, highs, head, tail, first[k], last[k])
        need = demand[job]
        if need > free:
            return int(job)
        begins[job] = used
        instant = ends[job] <= starts[job]
        front = head
        while need > 0:
            low = lows[front]
            take = min(need, highs[front] - low + 1)
            if used == len(first):
                return FULL
            first[used], last[used] = low, low + take - 1
            used += 1
            need -= take
            if not instant:
                lows[front] = low + take
            if take > highs[front] - low:
                front += 1
        counts[job] = used - begins[job]
        if not instant:
            free -= demand[job]
            head = front
    return DONE


@inline
def _give_back(lows: Ints, highs: Ints, head: int, tail: int, low: int, high: int) -> tuple[int, int]:
    """Insert a released interval into the free ones, merged with its neighbours; return head and tail."""
    left, right = head, tail
    while left < right:  # left = the first free interval above ``low``
        middle = (left + right) // 2
        if lows[middle] > low:
            right = middle
        else:
            left = middle + 1
    at = left
    joins_below = at > head and highs[at - 1] == low - 1
    joins_above = at < tail and lows[at] == high + 1
    if joins_below and joins_above:
        highs[at - 1] = highs[at]
        if at - head < tail - at:
            for k in range(at, head, -1):
                lows[k], highs[k] = lows[k - 1], highs[k - 1]
            return head + 1, tail
        for k in range(at, tail - 1):
            lows[k], highs[k] = lows[k + 1], highs[k + 1]
        return head, tail - 1
    if joins_below:
        highs[at - 1] = high
        return head, tail
    if joins_above:
        lows[at] = low
        return head, tail
    if head > 0 and (at - head < tail - at or tail == len(lows)):
        for k in range(head, at):
            lows[k - 1], highs[k - 1] = lows[k], highs[k]
        lows[at - 1], highs[at - 1] = low, high
        return head - 1, tail
    for k in range(tail, at, -1):
        lows[k], highs[k] = lows[k - 1], highs[k - 1]
    lows[at], highs[at] = low, high
    return head, tail + 1


def parse(texts: "pd.Series[Any]") -> tuple[HostAllocation, Flags]:
    """Return the intervals of each job as written, and which texts cannot be read.

    Empty and unreadable texts (a reversed interval is one) have no interval.
    """
    ends = array("q")
    counts = np.zeros(len(texts), np.int64)
    unreadable = np.zeros(len(texts), np.bool_)
    for row, text in enumerate(texts):
        if isinstance(text, str):
            try:
                ranges = intervals(text)
            except ValueError:
                unreadable[row] = True
            else:
                counts[row] = len(ranges)
                ends.extend(chain.from_iterable(ranges))
    first, last = np.frombuffer(ends, np.int64).reshape(-1, 2).T.copy()
    return HostAllocation(first, last, np.concatenate(([0], np.cumsum(counts)))), unreadable


def hosts_of(jobs: pd.DataFrame, nodes: int, where: str) -> tuple[HostAllocation, bool]:
    """Return every started job's hosts, and whether the table tells them; else each is placed first-fit."""
    have_hosts = bool((jobs["allocated_resources"].fillna("") != "").all())
    if not have_hosts:  # what happened may use more than there are
        return place_first_fit(jobs, max(nodes, _most_used(jobs))), False
    allocation, unreadable = parse(jobs["allocated_resources"])
    if unreadable.any():
        what = f"the host ids of job {jobs['job_id'].iloc[int(unreadable.argmax())]} cannot be read"
        raise BridgeError(what, where=where, remedy="`bridge check` names all.")
    return allocation, True


def _most_used(jobs: pd.DataFrame) -> int:
    """Return the most nodes in use at once, releases before starts."""
    starts, ends = (jobs[name].to_numpy(np.float64) for name in ("starting_time", "finish_time"))
    demand = jobs["requested_number_of_resources"].to_numpy(np.int64)
    order = np.lexsort((np.repeat([1, 0], len(jobs)), np.concatenate((starts, ends))))
    return int(np.cumsum(np.concatenate((demand, -demand))[order]).max(initial=0))


def overlaps(
    allocation: HostAllocation, starts: Floats, ends: Floats, tolerance: float
) -> tuple[Ints, Ints, Ints]:
    """Find every job that starts on a host which another job holds for at least ``tolerance`` s longer.

    A host is free again at the end of its job (a release comes before a start of the same time); jobs without
    length hold nothing. Rows whose start or end (s, shape (jobs,)) is NaN are left out. Returns (jobs,
    holders, hosts): rows in start order, the row that holds the host, the lowest such host.
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
    n_overlaps = _overlaps(order, *lists, starts, ends, tolerance, until, holder, jobs, holders, hosts)
    return jobs[:n_overlaps], holders[:n_overlaps], edges[hosts[:n_overlaps]]


@kernel
def _overlaps(
    order: Ints, first: Ints, last: Ints, offsets: Ints, starts: Floats, ends: Floats, tolerance: float,
    until: Floats, holder: Ints, jobs: Ints, holders: Ints, hosts: Ints,
) -> int:  # fmt: skip
    """Sweep the starts; ``until`` and ``holder`` say how long each place is held, and by which row.

    A place is a host, or several that are always held together: `overlaps` numbers them.
    """
    n_overlaps = 0
    for job in order:
        clash = -1
        for k in range(offsets[job], offsets[job + 1]):
            for host in range(first[k], last[k] + 1):
                if until[host] > starts[job] + tolerance and (clash < 0 or host < clash):
                    clash = host
        if clash >= 0:
            jobs[n_overlaps], holders[n_overlaps], hosts[n_overlaps] = job, holder[clash], clash
            n_overlaps += 1
        for k in range(offsets[job], offsets[job + 1]):
            for host in range(first[k], last[k] + 1):
                if ends[job] > until[host]:
                    until[host], holder[host] = ends[job], job
    return n_overlaps
