"""Goes on from the recorded state: jobs that ran run on, who waited waits, and a window of jobs arrives."""

from dataclasses import dataclass

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


@dataclass(frozen=True)
class WindowStarts:
    """How the jobs of W windows of L jobs started; all [W, L].

    Attributes:
        start: µs; -1: the job never started.
        how, reserved: as in `bridge.worlds.fast.replay.Schedule`.
        past: the log's job that it overtook, or -1.
    """

    start: Ints
    how: Ints
    past: Ints
    reserved: Ints

    @classmethod
    def empty(cls, windows: int, length: int) -> "WindowStarts":
        return cls(*(np.full((windows, length), -1, np.int64) for _ in range(4)))

    def note(self, w: int, which: Ints, start: Ints, how: Ints, past: Ints, reserved: Ints) -> None:
        """Note the last jobs of a window's records; `which`: the log's job of each record."""
        n = self.start.shape[1]
        self.start[w], self.how[w], self.reserved[w] = start[-n:], how[-n:], reserved[-n:]
        self.past[w] = np.where(past[-n:] >= 0, which[past[-n:]], -1)


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
) -> WindowStarts:  # fmt: skip
    """Return how windows of jobs start, each played from what the record says of before.

    A window is the `length` jobs from `firsts` [W] on; the others of the log after it never come. Of the jobs
    before it those run that the record has running when it begins, since their recorded `start` [n] (µs) and
    for as long as the scenario says; those wait that the record has waiting. Jobs whose start is not recorded
    (`has_record` [n]) are in windows only. `progress` is called with the number of finished windows.
    """
    prepared.compiled.refuse_action("a replay that goes on from the record")
    jobs = prepared.jobs
    starts = WindowStarts.empty(len(firsts), length)
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
        which = np.concatenate((running, waiting, np.arange(first, first + length)))
        for place, job in enumerate(which[:here].tolist()):
            episode.write(state, 0, place, prepared, job, job + 1)
        episode.write(state, 0, here, prepared, first, first + length)
        state.jobs[0]["start"][: len(running)] = start[running]
        clock.clock[0] = (here, n, 0, 0, NEVER, -1)
        _load(state, clock, len(running), here, now)
        play(state, clock, prepared)
        row = state.jobs[0][:n]
        starts.note(w, which, row["start"], row["how"], row["past"], row["reserved"])
        progress(w + 1)
    return starts
