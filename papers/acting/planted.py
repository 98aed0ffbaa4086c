"""A log whose users reveal their run times: what an agent that acts can win there is known beforehand.

Each user's jobs all take about the same time, from half a minute to eight hours, and all request a day. The
mean of the last two runs says it; the request says nothing.
"""

from pathlib import Path

import numpy as np

from papers import store

#: Its jobs, users and nodes, and the seed of the draw.
JOBS, USERS, NODES, SEED = 20_000, 40, 128, 5
#: Of all node-time, what the jobs take; s that a job requests.
LOAD, REQUEST = 0.95, 86_400
#: s that runs take, at least and at most, by user; how much the runs of one user differ.
SHORTEST, LONGEST, SPREAD = 30.0, 30_000.0, 0.05
PATH = store.WORK / "workloads" / "planted.swf"


def write_planted() -> Path:
    """Write the log, if it is not there; returns its file."""
    if PATH.exists():
        return PATH
    rng = np.random.default_rng(SEED)
    run_of = np.exp(rng.uniform(np.log(SHORTEST), np.log(LONGEST), USERS))
    nodes_of = 2 ** rng.integers(0, 6, USERS)
    user = rng.integers(0, USERS, JOBS)
    run = np.maximum(1, np.rint(run_of[user] * rng.uniform(1 - SPREAD, 1 + SPREAD, JOBS))).astype(int)
    nodes = nodes_of[user]
    gap = float((run * nodes).mean()) / (NODES * LOAD)
    submit = np.cumsum(rng.exponential(gap, JOBS)).astype(int)
    lines = [f"; MaxNodes: {NODES}", f"; MaxProcs: {NODES}"]
    for j in range(JOBS):
        size = f"{nodes[j]} -1 -1 {nodes[j]} {REQUEST}"
        lines.append(f"{j + 1} {submit[j]} -1 {run[j]} {size} -1 1 {user[j] + 1} 1 -1 1 1 -1 -1")
    PATH.parent.mkdir(parents=True, exist_ok=True)
    PATH.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return PATH
