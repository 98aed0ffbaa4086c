"""Goes on from the recorded state: jobs that ran run on, who waited waits, and a window of jobs arrives."""

import numpy as np

from bridge.base.arrays import Flags, Ints
from bridge.base.jit import kernel
from bridge.base.progress import ProgressCallback, ignore_progress
from bridge.scheduler import core
from bridge.scheduler.amounts import take
from bridge.scheduler.running_jobs import add_running
from bridge.scheduler.state import NEVER, State, reset
from bridge.worlds.fast import episode
from bridge.worlds.fast.episode import Scenario
from bridge.worlds.fast.replay import allocate, play
from bridge.worlds.fast.world import WorldState, push_completion


@kernel
def _load(state: State, memory: WorldState, n_running: int, n_here: int, now: int) -> None:
    """Make the first records run since their starts, and the next ones wait; a pass is due."""
    env = state.scalars[0]
    env.now = now
    for j in range(n_running):
        job = state.jobs[0, j]
        take(state.free[0], state.demand[0, j])
        job.est_end = job.start + job.est_run
        job.serial = j
        add_running(state, 0, j)
        push_completion(memory, 0, job.start + job.run, j, j)
    env.serial = n_running
    for j in range(n_running, n_here):
        core.submit(state, 0, j)
    core.begin_pass(state, 0)
    memory.clock[0].open = 1


def jobs_at(now: int, first: int, has_record: Flags, start: Ints, end: Ints) -> tuple[Ints, Ints]:
    """Return the jobs before `first` that by the record run at an instant, by start, and those that wait."""
    before = slice(0, first)
    running = np.flatnonzero(has_record[before] & (start[before] <= now) & (end[before] > now))
    waiting = np.flatnonzero(has_record[before] & (start[before] > now))
    return running[np.argsort(start[running], kind="stable")], waiting


def continue_from_record(
    prepared: Scenario, has_record: Flags, start: Ints, firsts: Ints, length: int,
    progress: ProgressCallback = ignore_progress,
) -> Ints:  # fmt: skip
    """Return the starts [W, length], µs, of windows of jobs, each played from what the record says of before.

    A window is the `length` jobs from `firsts` [W] on; the others of the log after it never come. Of the jobs
    before it those run that the record has running when it begins, since their recorded `start` [n] (µs) and
    for as long as the scenario says; those wait that the record has waiting. Jobs whose start is not recorded
    (`has_record` [n]) are in windows only. `progress` is called with the number of finished windows.
    """
    prepared.compiled.refuse_action("a replay that goes on from the record")
    jobs = prepared.jobs
    starts = np.empty((len(firsts), length), np.int64)
    end = start + jobs.run
    memory: tuple[State, WorldState] | None = None
    for w, first in enumerate(firsts.tolist()):
        now = int(jobs.submit[first])
        running, waiting = jobs_at(now, first, has_record, start, end)
        here, n = len(running) + len(waiting), len(running) + len(waiting) + length
        if memory is None or n > memory[0].jobs.shape[1]:
            memory = allocate(prepared, n + n // 4)
        state, clock = memory
        reset(state, 0)
        for place, job in enumerate([*running.tolist(), *waiting.tolist()]):
            episode.write(state, 0, place, prepared, job, job + 1)
        episode.write(state, 0, here, prepared, first, first + length)
        state.jobs[0]["start"][: len(running)] = start[running]
        clock.clock[0] = (here, n, 0, 0, NEVER, -1)
        _load(state, clock, len(running), here, now)
        play(state, clock, prepared)
        starts[w] = state.jobs[0]["start"][here:n]
        progress(w + 1)
    return starts
