"""What an episode of a log looks like at one instant, read from the scheduler's state."""

import numpy as np

from bridge.base.arrays import Flags, Ints
from bridge.env.batch import Batch
from bridge.env.snapshot import EpisodeSnapshot, StartedJobs, WaitingJob
from bridge.scheduler.decisions import BACKFILL, INSPECT, PICK, PREEMPT, TRIAL
from bridge.scheduler.state import SECOND, State
from bridge.scheduler.timed_state import WAITING, TimedState

TITLES = {
    PICK: "which job is next?",
    BACKFILL: "which job is backfilled?",
    INSPECT: "may this job start?",
    PREEMPT: "which running job gives way?",
    TRIAL: "which job is tried?",
}


def take_snapshot(batch: Batch, b: int) -> EpisodeSnapshot:
    """Return what episode `b` looks like; times count from its first submission."""
    state, kind = batch.state, int(batch.decision_kinds[b])
    jobs = state.jobs[b, : len(batch.starts_of(b))]
    submit = np.array(jobs["submit"], np.int64)
    begin, now = (int(submit.min()) if len(submit) else 0), int(batch.now[b])
    has_started = np.array(jobs["start"], np.int64) >= 0
    started = jobs[has_started]
    if batch.prepared.permits is not None or isinstance(state, TimedState):  # jobs may have been stopped
        end = np.array(started["end"], np.int64)
        has_ended = end >= 0
    else:
        end = np.array(started["start"] + started["run"], np.int64)
        has_ended = end <= now
    end = np.where(has_ended, end, np.maximum(started["est_end"], now + 1))  # only the scheduler's estimate
    schedule = StartedJobs(
        id=np.array(started["id"], np.int64),
        nodes=np.array(started["n"], np.int64),
        start=(np.array(started["start"], np.int64) - begin) / SECOND,
        end=(end - begin) / SECOND,
    )
    return EpisodeSnapshot(
        title=TITLES.get(kind, "the episode is over"),
        now=(now - begin) / SECOND,
        capacity=int(state.capacity[0]),
        unit="nodes",
        schedule=schedule,
        actions=_running_actions(batch, b, kind),
        queue=_queue(batch, b, kind, np.flatnonzero(_waits(state, b, ~has_started & (submit <= now)))),
        notes=_notes(batch, b, kind, begin),
    )


def _waits(state: State, b: int, there: Flags) -> Flags:
    """Tell which of the jobs that are there wait; on a cluster that changes in time, some are over."""
    if isinstance(state, TimedState):
        return np.asarray(state.timed_jobs[b]["doing"][: len(there)] == WAITING, np.bool_)
    return there


def _running_actions(batch: Batch, b: int, kind: int) -> dict[int, int]:
    """Return the actions that concern running jobs, by their ids."""
    if kind != PREEMPT:
        return {}
    candidates = batch.state.candidates[b, : batch.state.scalars[b].n_candidates].tolist()
    return {int(batch.state.jobs[b, j].id): k for k, j in enumerate(candidates)}


def _queue(batch: Batch, b: int, kind: int, waiting: Ints) -> tuple[WaitingJob, ...]:
    """Return the waiting jobs: the head, those that can be selected, the others by submission."""
    state = batch.state
    scalars, now = state.scalars[b], int(batch.now[b])
    chosen_from_queue = kind in (PICK, BACKFILL, TRIAL)
    candidates = state.candidates[b, : scalars.n_candidates].tolist() if chosen_from_queue else []
    head = [int(scalars.head)] if kind in (BACKFILL, INSPECT, PREEMPT) and scalars.head >= 0 else []
    actions = {job: k for k, job in enumerate(candidates)} | ({head[0]: 0} if kind == INSPECT else {})
    note = "head, cannot start yet" if kind in (BACKFILL, PREEMPT) else ""
    return tuple(
        WaitingJob(
            id=int(state.jobs[b, j].id),
            nodes=int(state.jobs[b, j].n),
            estimate=float(state.jobs[b, j].t),
            wait=(now - int(state.jobs[b, j].submit)) / SECOND,
            action=actions.get(j, -1),
            note=note if j in head else "",
        )
        for j in dict.fromkeys([*head, *candidates, *waiting.tolist()])
    )


def _notes(batch: Batch, b: int, kind: int, begin: int) -> tuple[str, ...]:
    encoder, scalars = batch.encoder.encoder, batch.state.scalars[b]
    notes = []
    if kind == BACKFILL and scalars.is_reserved:
        shadow, extra = (int(scalars.shadow) - begin) / SECOND, int(batch.state.extra[b, 0])
        notes.append(f"reservation of the head: {shadow:,.0f} s, extra nodes {extra:,}")
    if kind == BACKFILL and encoder.stop:
        notes.append(f"action {encoder.window}: no more backfilling now")
    if kind in (PREEMPT, TRIAL) and encoder.stop:
        notes.append(f"action {encoder.window}: none of them")
    if kind == INSPECT:
        notes.append("action 0 accepts the start, action 1 rejects it for now")
    return tuple(notes)
