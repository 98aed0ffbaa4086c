"""Whether any node of a cluster is given out twice: cores, memory and GPUs, node by node, at every instant.

Jobs tables and records say it as `bridge.cluster.amounts_text` describes.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pandas as pd

from bridge.base.arrays import Flags, Floats, Ints
from bridge.base.counted import counted
from bridge.base.errors import BridgeError
from bridge.cluster.amounts_text import PER_NODE, read_amounts


@dataclass(frozen=True)
class Excess:
    """Starts at which a node has less left than the job is given."""

    rows: Ints
    nodes: Ints
    resources: Ints
    used: Ints
    capacity: Ints


def find_excess(
    jobs: pd.DataFrame, start: Floats, end: Floats, has: Ints, is_suspended: Flags | None = None
) -> Excess:
    """Return where nodes [N, R] are given out twice; a release comes before a start of the same time.

    `start`, `end`: seconds [n], NaN for rows that hold nothing. `is_suspended`: rows [n] that keep all but
    cores, the first of the amounts.
    """
    row, node, amounts = _entries(jobs, np.flatnonzero(end > start), has.shape[1])
    if is_suspended is not None:
        amounts[is_suspended[row], 0] = 0
    n = len(row)
    if n == 0:
        return Excess(*(np.zeros(0, np.int64) for _ in range(5)))
    times = np.concatenate((start[row], end[row]))
    is_start = np.repeat([1, 0], n)
    nodes = np.concatenate((node, node))
    order = np.lexsort((is_start, times, nodes))
    changes = np.concatenate((amounts, -amounts))[order]
    used = np.cumsum(changes, axis=0)  # all of a node's changes together are nothing
    over = (used > has[nodes[order]]) & (is_start[order] > 0)[:, None]
    at, resource = np.nonzero(over)
    return Excess(
        row[order[at] % n], nodes[order[at]], resource, used[at, resource], has[nodes[order[at]], resource]
    )


def _entries(jobs: pd.DataFrame, rows: Ints, resources: int) -> tuple[Ints, Ints, Ints]:
    """Return what jobs have, if they say so: rows, nodes [k] and amounts [k, R]."""
    from bridge.judge.hosts import parse  # compiles kernels

    texts = jobs[PER_NODE].fillna("").to_numpy(object)
    kept = [int(row) for row in rows if texts[row]]
    allocation, _ = parse(jobs["allocated_resources"].fillna("").iloc[kept])
    parts: list[tuple[Ints, Ints, Ints]] = []
    for k, row in enumerate(kept):
        part = slice(int(allocation.offsets[k]), int(allocation.offsets[k + 1]))
        nodes = np.array([*_ids(allocation.first[part], allocation.last[part])], np.int64)
        amounts = read_amounts(str(texts[row]), f"job {jobs['job_id'].iloc[row]}")
        if amounts.shape != (len(nodes), resources):
            what = f"has {counted(len(nodes), 'node')}, and per_node tells of {len(amounts)}"
            raise BridgeError(what, where=f"job {jobs['job_id'].iloc[row]}", remedy="Write the run anew.")
        parts.append((np.full(len(nodes), row, np.int64), nodes, amounts))
    if not parts:
        return np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros((0, resources), np.int64)
    owners, holds, taken = zip(*parts, strict=True)
    return np.concatenate(owners), np.concatenate(holds), np.concatenate(taken)


def _ids(first: Ints, last: Ints) -> Iterator[int]:
    for low, high in zip(first.tolist(), last.tolist(), strict=True):
        yield from range(low, high + 1)
