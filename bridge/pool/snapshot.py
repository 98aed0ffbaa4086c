"""What a time-stepped pool looks like at one instant, read from its state."""

import numpy as np

from bridge.env.snapshot import EpisodeSnapshot, StartedJobs, WaitingJob
from bridge.pool.jobset import STEP_SECONDS
from bridge.pool.state import PoolState


def take_snapshot(state: PoolState, b: int, slots: int) -> EpisodeSnapshot:
    """Return what pool `b` looks like; times count from its first step."""
    env = state.env[b]
    now, step = int(env.now), float(STEP_SECONDS)
    jobs = state.jobs[b, : env.n_submitted]
    booked = jobs["start"] >= 0
    rows = jobs[booked]
    end = np.where(rows["end"] >= 0, rows["end"], np.maximum(rows["until"], now + 1)).astype(np.float64)
    running = state.running[b].tolist()
    waiting = [int(j) for j in state.waiting[b, : env.n_waiting]]
    backlog = [int(j) for j in state.backlog[b, env.head : env.tail]]
    return EpisodeSnapshot(
        title="which job is booked or killed?" if env.n_submitted else "no job has arrived",
        now=now * step,
        capacity=int(state.pool[0].units),
        unit="units",
        schedule=StartedJobs(
            id=np.flatnonzero(booked) + 1,
            nodes=np.array(rows["units"], np.int64),
            start=rows["start"].astype(np.float64) * step,
            end=end * step,
        ),
        actions={j + 1: slots + 1 + k for k, j in enumerate(running) if j >= 0},
        queue=tuple(
            WaitingJob(
                id=j + 1,
                nodes=int(state.jobs[b, j].units),
                estimate=float(state.jobs[b, j].believed) * step,
                wait=(now - int(state.jobs[b, j].submit)) * step,
                action=k if k < min(slots, len(waiting)) else -1,
                note="" if k < len(waiting) else "backlog",
            )
            for k, j in enumerate([*waiting, *backlog])
        ),
        notes=(f"action {slots}: time passes",),
    )
