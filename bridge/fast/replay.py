"""Replays: a whole workload, or many sampled sequences, under one policy; and the outcome as a jobs table."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from bridge.arrow import text_column
from bridge.errors import BridgeError
from bridge.fast import episode, world
from bridge.fast.episode import Prepared
from bridge.scheduler import machine
from bridge.scheduler import state as scheduler_state
from bridge.scheduler.state import HOW_BACKFILLED, SECOND, State

if TYPE_CHECKING:
    import pandas as pd

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Schedule:
    """What became of n jobs, in order of submission. Times in microseconds.

    Attributes:
        start, end: [n].
        how: [n] HOW_HEAD or HOW_BACKFILLED.
        past: [n] index of the blocked job it overtook, or -1.
        reserved: [n] the first time it was given as blocked head, or -1.
        serial: [n] its place in the order of starts.
    """

    start: Ints
    end: Ints
    how: Ints
    past: Ints
    reserved: Ints
    serial: Ints


def _check(kind: int, state: State, b: int, prepared: Prepared) -> None:
    """Raise for an outcome that no schedule can come from."""
    bad = int(state.env.bad_score[b])
    if bad >= 0:
        job = state.jobs[b, bad]
        raise BridgeError(
            f"the score of job {job.id} is not a finite number at time {state.env.now[b] / SECOND:g} s "
            f"(s={job.s:g}, t={job.t:g}, n={job.n:g})",
            where=f"order {prepared.compiled.order.name!r}",
            remedy="Guard divisions and logarithms, for example log2(max(n, 2)).",
        )
    if kind == world.STUCK:
        raise BridgeError(
            f"{state.env.n_waiting[b]} jobs wait and nothing will ever happen again",
            where=f"time {state.env.now[b] / SECOND:g} s",
            remedy="The policy declined although the machine is idle.",
        )


def read_schedule(state: State, b: int, n: int) -> Schedule:
    """Return what became of an episode's first `n` jobs."""
    row = state.jobs[b][:n]
    return Schedule(
        *(np.array(row[name], np.int64) for name in ("start", "end", "how", "past", "reserved", "serial"))
    )


#: Seconds between two looks at the progress bar and Ctrl-C, roughly.
GLANCE = 0.2
#: Steps of the availability profile that conservative backfilling may read until the next look, at most.
WORK = 100_000_000
#: Passes until the first look; after that as many as take about `GLANCE`.
_FIRST_SLICE = 2_000


def _play(
    state: State, memory: world.World, prepared: Prepared, progress: Callable[[int], None] | None
) -> None:
    """Run episode 0 to its end, coming up for air now and then."""
    passes = _FIRST_SLICE
    while True:
        begun = time.perf_counter()
        state.env.work[0] = WORK
        kind = world.play(state, memory, 0, passes)
        _check(kind, state, 0, prepared)
        if prepared.compiled.decide(state, 0, kind):
            continue
        if kind != machine.PAUSE:
            return
        if progress:
            progress(int(memory.clock.arrived[0] - memory.clock.pending[0] - state.env.n_waiting[0]))
        factor = min(8.0, GLANCE / max(time.perf_counter() - begun, 1e-6))
        passes = max(1, round(min(passes * factor, 1e12)))


def _allocate(prepared: Prepared, length: int) -> tuple[State, world.World]:
    """Return the memory for episodes of `length` jobs; a rule in Python sees all candidates."""
    window = 1 if prepared.compiled.chooser is None else length
    users, resources = len(prepared.share), len(prepared.jobs.resources)
    state = scheduler_state.allocate(1, length, resources, window=window, users=users)
    return episode.configure(state, prepared), world.allocate(1, length)


def replay(prepared: Prepared, progress: Callable[[int], None] | None = None) -> Schedule:
    """Replay all jobs on the fast world; `progress` is called now and then with how many have ended.

    Raises:
        BridgeError: an order's score is not a number, or no job can start any more.
    """
    n = len(prepared.jobs)
    state, memory = _allocate(prepared, n)
    episode.fill(state, memory, 0, prepared, 0, n)
    _play(state, memory, prepared, progress)
    return read_schedule(state, 0, n)


def replay_sequences(
    prepared: Prepared, starts: Ints, length: int, progress: Callable[[int], None] | None = None
) -> list[Schedule]:
    """Replay sequences of `length` jobs from jobs `starts` [k] on, each on an idle machine that is drained.

    `progress` is called with the number of finished sequences.

    Raises:
        BridgeError: as `replay`, or a sequence reaches past the end.
    """
    if len(starts) and (starts.min() < 0 or starts.max() + length > len(prepared.jobs)):
        raise BridgeError(
            f"a sequence of {length} jobs does not fit",
            where=f"{prepared.jobs.name}: {len(prepared.jobs)} jobs",
        )
    state, memory = _allocate(prepared, length)
    schedules = []
    for k, first in enumerate(starts):
        episode.fill(state, memory, 0, prepared, int(first), int(first) + length)
        _play(state, memory, prepared, None)
        schedules.append(read_schedule(state, 0, length))
        if progress:
            progress(k + 1)
    return schedules


def jobs_table(prepared: Prepared, schedule: Schedule, *, killed_at_request: bool = True) -> "pd.DataFrame":
    """Return one row per job in the order of completion, as Batsim writes them.

    Beyond Batsim's columns: ``user``, ``queue`` (as logged), one column per further resource,
    ``start_kind`` (head | backfilled), ``overtook`` (id of the blocked job it was started behind, or
    empty), ``reserved_time`` (the first start it was promised as blocked head, s, NaN if never).

    Args:
        prepared: what was replayed.
        schedule: the outcome.
        killed_at_request: a job whose run time reaches its request counts as killed there.
    """
    import pandas as pd
    import pyarrow as pa
    import pyarrow.compute as pc

    jobs = prepared.jobs
    order = np.lexsort((schedule.serial, schedule.end))
    run = jobs.run[order]
    submit, start, end = jobs.submit[order], schedule.start[order], schedule.end[order]
    killed = (run >= jobs.request[order]) & killed_at_request
    turnaround = (end - submit) / SECOND
    ids = pc.cast(pa.array(jobs.id[order]), pa.string())
    past, reserved = schedule.past[order], schedule.reserved[order]
    table: dict[str, object] = {
        "job_id": text_column(ids),
        "workload_name": jobs.name,
        "profile": text_column(ids),
        "submission_time": submit / SECOND,
        "requested_number_of_resources": jobs.demand[order, 0],
        "requested_time": jobs.request[order] / SECOND,
        "success": (~killed).astype(np.int64),
        "final_state": text_column(
            pc.if_else(killed, "COMPLETED_WALLTIME_REACHED", "COMPLETED_SUCCESSFULLY")
        ),
        "starting_time": start / SECOND,
        "execution_time": run / SECOND,
        "finish_time": end / SECOND,
        "waiting_time": (start - submit) / SECOND,
        "turnaround_time": turnaround,
        "stretch": turnaround / np.where(run > 0, run / SECOND, np.nan),
        "allocated_resources": "",
        "consumed_energy": -1.0,
        "metadata": "",
        "user": jobs.user[order],
        "queue": jobs.queue[order],
        "start_kind": text_column(pc.if_else(schedule.how[order] == HOW_BACKFILLED, "backfilled", "head")),
        "overtook": text_column(pc.if_else(past >= 0, pc.cast(pa.array(jobs.id[past]), pa.string()), "")),
        "reserved_time": np.where(reserved >= 0, reserved / SECOND, np.nan),
    }
    for r, name in enumerate(jobs.resources[1:], 1):
        table[name] = jobs.demand[order, r]
    return pd.DataFrame(table)
