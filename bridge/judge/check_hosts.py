"""The rules about host ids: readable, on the machine, as many as requested, held by one job at a time."""

import numpy as np

from bridge.judge.allocate import Allocation
from bridge.judge.findings import Findings, Table
from bridge.judge.hosts import overlaps, parse


def check_hosts(table: Table, found: Findings, nodes: int, tolerance: float) -> None:
    """Check ``allocated_resources`` wherever it is given, on a machine with hosts 0 … nodes − 1."""
    texts = table.frame["allocated_resources"].fillna("")
    allocation, unreadable = parse(texts)
    counts = np.diff(allocation.offsets)
    owner = np.repeat(np.arange(len(texts)), counts)
    hosts = np.bincount(owner, allocation.last - allocation.first + 1, minlength=len(texts)).astype(np.int64)
    demand = table.column("requested_number_of_resources")

    said = "has allocated_resources {given}: "
    given = [repr(text if len(text) <= 40 else text[:39] + "…") for text in map(str, texts)]
    wrong = (counts > 0) & table.timed & (hosts != demand)
    beyond = np.zeros(len(texts), np.bool_)
    beyond[owner[allocation.last >= nodes]] = True
    found.rule(
        table, "allocation-unreadable", unreadable, said + "not intervals such as '0-3 7'", given=given
    )
    sizes = {"hosts": hosts, "demand": demand}
    found.rule(
        table, "allocation-size", wrong, said + "{hosts} hosts, requested {demand:g}", given=given, **sizes
    )
    found.rule(table, "host-range", beyond, said + f"the hosts are 0 … {nodes - 1}", given=given)
    if beyond.any():  # hosts that do not exist are not held
        keep = ~beyond[owner]
        offsets = np.concatenate(([0], np.cumsum(np.where(beyond, 0, counts))))
        allocation = Allocation(allocation.first[keep], allocation.last[keep], offsets)
    end = np.where(table.timed, table.end, np.nan)
    rows, holders, clash = overlaps(allocation, table.start, end - table.inexact, tolerance)

    def describe(k: int) -> tuple[list[str], str]:
        job, holder = table.ids[rows[k]], table.ids[holders[k]]
        text = f"job {job} starts on host {clash[k]}, which job {holder} holds until {end[holders[k]]:.6f}"
        return [job, holder], text

    found.add("host-overlap", table.start[rows], describe)
