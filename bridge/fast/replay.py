"""Replays: a whole workload, or many sampled sequences, under one policy."""

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bridge.arrays import Ints
from bridge.errors import BridgeError
from bridge.fast import episode, world
from bridge.fast.episode import Prepared
from bridge.fast.window import Window, allocate
from bridge.scheduler import machine
from bridge.scheduler.state import SECOND, State


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
    state: State, memory: world.World, prepared: Prepared, glance: Callable[[], None] | None = None
) -> int:
    """Run episode 0 until it is over, or more jobs must come; come up for air now and then."""
    passes = _FIRST_SLICE
    while True:
        begun = time.perf_counter()
        state.env.work[0] = WORK
        kind = world.play(state, memory, 0, passes)
        _check(kind, state, 0, prepared)
        if prepared.compiled.decide(state, 0, kind):
            continue
        if kind != machine.PAUSE:
            return kind
        if glance:
            glance()
        factor = min(8.0, GLANCE / max(time.perf_counter() - begun, 1e-6))
        passes = max(1, round(min(passes * factor, 1e12)))


def replay(prepared: Prepared, progress: Callable[[int], None] | None = None) -> Schedule:
    """Replay all jobs on the fast world; `progress` is called now and then with how many have ended.

    Raises:
        BridgeError: an order's score is not a number, or no job can start any more.
    """
    window = Window(prepared)

    def glance() -> None:
        if progress:
            progress(window.ended)

    while _play(window.state, window.memory, prepared, glance) == world.MORE:
        window.slide()
    window.note()
    return Schedule(**window.found)


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
    state, memory = allocate(prepared, length)
    schedules = []
    for k, first in enumerate(starts):
        episode.fill(state, memory, 0, prepared, int(first), int(first) + length)
        _play(state, memory, prepared)
        schedules.append(read_schedule(state, 0, length))
        if progress:
            progress(k + 1)
    return schedules
