"""Host ids of jobs: reads Batsim's interval text (``0-3 7``) and finds hosts that two jobs hold at once."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bridge.jit import kernel
from bridge.judge.allocate import Allocation, Floats, Ints

if TYPE_CHECKING:
    import pandas as pd

_INTERVALS = r"^[0-9]{1,18}(-[0-9]{1,18})?( [0-9]{1,18}(-[0-9]{1,18})?)*$"


def parse(texts: "pd.Series[Any]") -> tuple[Allocation, NDArray[np.bool_]]:
    """Read interval texts, one per job.

    Returns:
        (allocation, unreadable): the intervals of each job as written, and which texts cannot be read
        (a reversed interval counts as such). Empty and unreadable texts have no interval.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    text = pa.array(texts, pa.string(), from_pandas=True)
    if isinstance(text, pa.ChunkedArray):
        text = text.combine_chunks()
    text = pc.fill_null(text, "")
    good = pc.match_substring_regex(text, _INTERVALS).to_numpy(zero_copy_only=False)
    unreadable = pc.not_equal(text, "").to_numpy(zero_copy_only=False) & ~good
    words = pc.split_pattern(text.filter(pa.array(good)), " ")
    counts = np.zeros(len(text), np.int64)
    counts[good] = pc.list_value_length(words).to_numpy(zero_copy_only=False)
    bounds = pc.split_pattern(words.flatten(), "-")
    numbers = pc.cast(bounds.flatten(), pa.int64()).to_numpy()
    ends = np.cumsum(pc.list_value_length(bounds).to_numpy(zero_copy_only=False))
    last = numbers[ends - 1]
    first = numbers[np.concatenate(([0], ends[:-1]))] if len(ends) else last
    owner = np.repeat(np.arange(len(text)), counts)
    unreadable[owner[last < first]] = True
    counts[unreadable] = 0
    keep = ~unreadable[owner]
    return Allocation(first[keep], last[keep], np.concatenate(([0], np.cumsum(counts)))), unreadable


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
    size = int(allocation.last.max()) + 1 if len(allocation.last) else 0
    until, holder = np.full(size, -np.inf), np.full(size, -1, np.int64)
    jobs, holders, hosts = (np.empty(len(order), np.int64) for _ in range(3))
    lists = (allocation.first, allocation.last, allocation.offsets)
    found = _overlaps(order, *lists, starts, ends, tolerance, until, holder, jobs, holders, hosts)
    return jobs[:found], holders[:found], hosts[:found]


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
    """Sweep the starts; ``until`` and ``holder`` say how long each host is held, and by which row."""
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
