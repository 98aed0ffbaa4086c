"""The present of a live partition as a state's file (`bridge.futures.statefile`)."""

import time
from typing import Any

from bridge.futures.statefile import FORMAT, VERSION
from bridge.slurm.book import LONGEST
from bridge.slurm.client import Client, Row
from bridge.slurm.jobs import HAS_NODES, Machine


def present(client: Client, partition: str, policy: str) -> dict[str, Any]:
    """Return the document of a state: what runs, waits and is free in a partition; times since 1970, s.

    Jobs that wait for others or are held by their users are left out, and so are jobs that a policy could not
    decide for; nodes that other partitions' jobs use are out of service.

    Args:
        client: Slurm.
        partition: its name.
        policy: order and backfilling by name, by which the queue is believed to be worked off.

    Raises:
        BridgeError: there is no such partition, or slurmctld does not answer.
    """
    machine = Machine(client.nodes(partition), tuple(client.reservations()))
    rows = client.queue()
    now = time.time()
    running, waiting = [], []
    occupied = frozenset().union(*(row.names for row in rows if row.state in HAS_NODES))
    for row in rows:
        if partition not in row.partition.split(","):
            continue
        job: dict[str, Any] = {
            "id": row.label,
            "submit": min(float(row.submit), now),
            "user": row.user,
            "request": max(min(row.limit, float(LONGEST)), 1.0),
        }
        if row.state in HAS_NODES and row.start >= 0:
            start = max(float(row.start), job["submit"])
            here = len(row.names & frozenset(machine.nodes))
            running.append({**job, "start": min(start, now), "demand": {"nodes": here}})
        elif _waits(row) and not machine.foreign(row):
            waiting.append({**job, "demand": {"nodes": row.nodes}})
    return {
        "format": FORMAT,
        "version": VERSION,
        "now": now,
        "policy": policy,
        "capacity": {"nodes": len(machine.nodes)},
        "free": {"nodes": len(machine.idle - occupied)},
        "running": [job for job in running if job["demand"]["nodes"]],
        "waiting": waiting,
    }


def _waits(row: Row) -> bool:
    held = row.priority == 0 and row.reason != "JobHeldUser"  # the gate's hold looks like a user's
    return row.state == "PENDING" and not row.dependency and not held
