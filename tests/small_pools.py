"""Small sets of jobs, and pools that have begun to play them, for tests that look at every answer."""

from collections.abc import Sequence

import numpy as np

from bridge.pool.batch import PoolBatch
from bridge.pool.jobset import JobSet
from bridge.pool.settings import PoolConfig
from bridge.pool.state import PoolState
from bridge.pool.world import PoolWorldState, Sequences, allocate, load
from bridge.scheduler.names import Kill

#: A pool that can be looked over, and its action that takes no job.
SMALL = PoolConfig(units=4, slots=2, backlog=3, kill_slots=2, horizon=16, last_step=60)
NONE = SMALL.slots
#: Units, length, believed length and series of beliefs of jobs.
Rows = list[tuple[int, int, int, list[int]]]


def job_set(rows: Sequence[tuple[int, int, int, Sequence[int]]], width: int = 12) -> JobSet:
    """Return jobs 101, 102, … from rows of (units, length, believed, series of beliefs)."""
    series = [list(row[3]) + [row[3][-1]] * (width - len(row[3])) for row in rows]
    return JobSet(
        name="handmade",
        id=np.arange(101, 101 + len(rows)),
        units=np.array([row[0] for row in rows], np.int64),
        length=np.array([row[1] for row in rows], np.int64),
        believed=np.array([row[2] for row in rows], np.int64),
        beliefs=np.array(series, np.int16),
    )


def sequences_of(rows: Rows, *arrivals: Sequence[int], width: int = 12) -> Sequences:
    """Return sequences of jobs, each the row that arrives at each step, or -1."""
    return Sequences(job_set(rows, width), np.array(arrivals, np.int64))


def machine(drawn: Sequences, settings: PoolConfig) -> tuple[PoolState, PoolWorldState]:
    """Return a pool, not yet advanced, that plays the first sequence."""
    state, world = allocate(drawn, 1, settings)
    load(state, world, 0, drawn, 0)
    return state, world


def pools_in_play(
    drawn: Sequences, settings: PoolConfig, kill: Kill = "learned", *, answers: Sequence[int] = ()
) -> PoolBatch:
    """Return pools that play a sequence each and have been given answers, all of them the same."""
    pools = PoolBatch(drawn, len(drawn), settings, kill)
    pools.play(drawn)
    for action in answers:
        pools.step(np.full(len(drawn), action))
    return pools
