"""Replays: a whole workload, or many sampled sequences, under one policy."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from bridge.base.arrays import Ints
from bridge.base.counted import counted
from bridge.base.errors import BridgeError
from bridge.scheduler import core
from bridge.scheduler.acting_state import ActingNodes
from bridge.scheduler.action_state import ActionState
from bridge.scheduler.cluster_state import NOT_GONE, ClusterState
from bridge.scheduler.running_jobs import renumber_running
from bridge.scheduler.state import NEVER, SECOND, State, copy_into, unstarted
from bridge.scheduler.timed_state import OVER, TimedState
from bridge.workload.running_beliefs import RunningBeliefs
from bridge.worlds.fast import episode, world
from bridge.worlds.fast.allocations import AllocationLog, Allocations, was_eligible
from bridge.worlds.fast.arrivals import Arrivals
from bridge.worlds.fast.episode import Scenario
from bridge.worlds.fast.job_lives import JobLives, LifeLog, read_lives
from bridge.worlds.fast.lives import Lives, LivesLog
from bridge.worlds.fast.reestimates import Reestimates

#: Jobs in a window at first; one of which more than half waits or runs doubles.
LENGTH = 1 << 16
#: What is noted of each job, as the scheduler's records have it.
OUTCOME = ("start", "end", "how", "reserved", "serial")


def allocate(prepared: Scenario, length: int, *, whole: bool = True) -> tuple[State, world.WorldState]:
    """Return the memory for episodes of `length` jobs; a rule in Python sees all candidates.

    `whole`: what jobs are allocated on a cluster will be collected.
    """
    window = 1 if prepared.compiled.chooser is None else length
    state = episode.allocate(prepared, 1, length, window=window, whole=whole, pauses=whole)
    return state, world.allocate(1, length)


class LogWindow:
    """The part of a log that the scheduler knows of, and what became of the jobs before.

    The scheduler numbers jobs by their places in its records. When the next job to arrive is not among
    them, those that wait or run move to the front, as before in order of submission, and the next follow.

    Attributes:
        outcomes: by name, [n] as in `bridge.worlds.fast.replay.Schedule`; whole once `record_outcomes` was
            called at the end.
    """

    def __init__(self, prepared: Scenario) -> None:
        n = len(prepared.jobs)
        # A rule in Python may look at any job of the log.
        length = n if prepared.compiled.python_rule else min(n, LENGTH)
        self._prepared = prepared
        self._which = np.zeros(length, np.int64)  # each record's job
        self._next = 0  # the first job that is not here yet
        self.state, self.memory = allocate(prepared, length)
        kinds = {"how": np.int8, "past": np.int32}
        self.outcomes: dict[str, Any] = {
            name: np.full(n, -1, kinds.get(name, np.int64)) for name in (*OUTCOME, "past")
        }
        episode.load_episode(self.state, self.memory, 0, prepared, 0, 0)
        self.slide()

    @property
    def ended(self) -> int:
        clock = self.memory.clock
        to_come = int(clock.last[0] - clock.arrived[0])
        return self._next - to_come - int(clock.pending[0] + self.state.scalars.n_waiting[0])

    def record_outcomes(self) -> None:
        """Copy starts and ends of the jobs that have arrived."""
        n = int(self.memory.clock.arrived[0])
        row, which = self.state.jobs[0][:n], self._which
        for name in OUTCOME:
            self.outcomes[name][which[:n]] = row[name]
        over = np.flatnonzero(row.past >= 0)
        self.outcomes["past"][which[over]] = which[row.past[over]]
        row.past = -1  # the overtaken one may leave before this one does

    def slide(self) -> None:
        """Bring the log's next jobs in; no pass may be open."""
        self.record_outcomes()
        state, clock = self.state, self.memory.clock[0]
        arrived, last = int(clock.arrived), int(clock.last)
        active = np.flatnonzero(state.jobs[0].end[:arrived] < 0)
        kept = np.append(active, np.arange(arrived, last))
        self._move(kept)
        if 2 * len(kept) > len(self._which):
            self._grow()
        jobs, here, first = self._prepared.jobs, len(kept), self._next
        self._next = min(first + len(self._which) - here, len(jobs))
        last = here + self._next - first
        unstarted(self.state.jobs[0][here:last])
        episode.write(self.state, 0, here, self._prepared, first, self._next)
        self._which[here:last] = np.arange(first, self._next)
        until = jobs.submit[self._next] if self._next < len(jobs) else NEVER
        self.memory.clock[0] = (len(active), last, clock.pending, 0, until, -1)

    def _move(self, kept: Ints) -> None:
        """Move these records to the front, and let everything follow that knows a job by its record."""
        state, n = self.state, len(kept)
        for array in (state.jobs[0], state.demand[0], self._which):
            array[:n] = array[kept]
        place = np.full(len(self._which), -1, np.int32)
        place[kept] = np.arange(n)
        env, heap = state.scalars[0], self.memory.heap[0]
        for numbers in (
            state.items[0],
            heap.job[: self.memory.clock.pending[0]],
            state.kept.job[: env.n_kept],
            state.scalars.head[: int(env.head >= 0)],  # if there is one
        ):
            numbers[:] = place[numbers]
        renumber_running(state, 0, place)

    def _grow(self) -> None:
        """Make room for twice as many jobs, or the whole log."""
        old, heap = self.state, self.memory.heap
        length = min(2 * len(self._which), len(self._prepared.jobs))
        self.state, memory = allocate(self._prepared, length)
        copy_into(self.state, old)  # of the block list, the new numbers stay behind the old ones
        copy_into([memory.heap, memory.clock], [heap, self.memory.clock])
        self.memory = memory
        self._which = np.concatenate((self._which, np.zeros(length - len(self._which), np.int64)))


@dataclass(frozen=True)
class Schedule:
    """Start and end of n jobs, by submission; microseconds.

    Attributes:
        start, end: [n].
        how: [n] HOW_HEAD or HOW_BACKFILLED.
        past: [n] index of the blocked job it overtook, or -1.
        reserved: [n] the first time it was given as blocked head, or -1.
        serial: [n] its place in the order of starts.
        submit: [n] when it arrived.
        eligible: [n] when hold, begin time and dependencies allowed it first, -1: never; None without a
            cluster.
        allocation: what it had of the cluster's nodes; None if nobody collected it.
        refused: [n] 1 + the place of the reason for which a job was refused, or 0; None without a cluster.
        never_at: [n] since when a job's conditions could not be met any more, or -1; likewise.
        head_at: [n] since when it was its partition's head first, or -1; likewise.
        node_lives: of a cluster that changes in time, each run of each job; `start`, `end` are its last.
        ran: [n] how long the last run worked, -1: none; likewise.
        since: [n] from when the job waited for its last run; likewise.
        lives: what became of them under a rule of action, which may stop them; None without one. `start` and
            `how` are those of the last life.
    """

    start: Ints
    end: Ints
    how: Ints
    past: Ints
    reserved: Ints
    serial: Ints
    submit: Ints
    eligible: Ints | None = None
    allocation: Allocations | None = None
    refused: Ints | None = None
    never_at: Ints | None = None
    head_at: Ints | None = None
    node_lives: Lives | None = None
    ran: Ints | None = None
    since: Ints | None = None
    lives: JobLives | None = None


def check_outcome(kind: int, state: State, b: int, prepared: Scenario) -> None:
    """Raise for an outcome that no schedule can come from."""
    bad = int(state.scalars.bad_score[b])
    if bad >= 0:
        job = state.jobs[b, bad]
        ident = prepared.jobs.called(int(job.id))
        raise BridgeError(
            f"the score of job {ident} is not a finite number at time {state.scalars.now[b] / SECOND:g} s "
            f"(s={job.s:g}, t={job.t:g}, n={job.n:g})",
            where=f"order {prepared.compiled.order.name!r}",
            remedy="Guard divisions and logarithms, for example log2(max(n, 2)).",
        )
    if isinstance(state, ClusterState) and state.node_scalars.overflow[b]:
        raise BridgeError(
            f"conservative backfilling of {state.scalars.n_waiting[b]:,} waiting jobs needs more than 4 GiB",
            where=f"time {state.scalars.now[b] / SECOND:g} s",
            remedy="Backfill by EASY, or give the cluster fewer shared nodes.",
        )
    if kind == world.STUCK and prepared.cluster is None:
        raise BridgeError(
            f"{counted(state.scalars.n_waiting[b], 'job waits', 'jobs wait')} and nothing will ever "
            "happen again",
            where=f"time {state.scalars.now[b] / SECOND:g} s",
            remedy="The policy declined although the machine is idle.",
        )


def read_schedule(state: State, b: int, n: int) -> Schedule:
    """Return what became of an episode's first `n` jobs."""
    row = state.jobs[b][:n]
    names = ("start", "end", "how", "past", "reserved", "serial", "submit")
    values: dict[str, Any] = {name: np.array(row[name], np.int64) for name in names}
    acts = isinstance(state, ActionState | ActingNodes)
    return Schedule(**values, lives=read_lives(state, b, n) if acts else None)


#: Seconds between two looks at the progress bar and Ctrl-C, roughly.
GLANCE = 0.2
#: Steps of the availability profile that conservative backfilling may read until the next look, at most.
WORK = 100_000_000
#: Passes until the first look; after that as many as take about `GLANCE`.
_FIRST_SLICE = 2_000


def play(
    state: State, memory: world.WorldState, prepared: Scenario, glance: Callable[[], None] | None = None
) -> int:
    """Run episode 0 until it is over, or more jobs must come; come up for air now and then."""
    passes = _FIRST_SLICE
    while True:
        started_at = time.perf_counter()
        state.scalars.work[0] = WORK
        kind = world.run_until_decision(state, memory, 0, passes)
        check_outcome(kind, state, 0, prepared)
        if prepared.compiled.decide(state, 0, kind):
            continue
        if kind != core.PAUSE:
            return kind
        if glance:
            glance()
        factor = min(8.0, GLANCE / max(time.perf_counter() - started_at, 1e-6))
        passes = max(1, round(min(passes * factor, 1e12)))


def replay(prepared: Scenario, progress: Callable[[int], None] | None = None) -> Schedule:
    """Replay all jobs on the fast world; BridgeError: a score is no number, or nothing can start any more.

    `progress` is called now and then with how many have ended.
    """
    if prepared.recorded:
        return _recorded(prepared, 0, len(prepared.jobs))
    if prepared.compiled.protocol.own_passes:
        from bridge.worlds.fast.slurm.log_replay import replay_by_slurm

        return Schedule(**replay_by_slurm(prepared, progress))
    if prepared.jobs.follows is not None:
        return _replay_arrivals(prepared, 0, len(prepared.jobs), progress)
    if prepared.cluster is not None:
        return _replay_on_nodes(prepared, progress)
    if prepared.permits is not None:
        return _replay_lives(prepared, progress)
    if prepared.beliefs is not None:
        return _replay_reestimated(prepared, prepared.beliefs, progress)
    window = LogWindow(prepared)

    def glance() -> None:
        if progress:
            progress(window.ended)

    while play(window.state, window.memory, prepared, glance) == world.MORE:
        window.slide()
    window.record_outcomes()
    outcomes: dict[str, Any] = window.outcomes
    return Schedule(**outcomes, submit=prepared.jobs.submit)


def _recorded(prepared: Scenario, first: int, last: int) -> Schedule:
    """Return what happened to the jobs ``first:last``; how the log's scheduler came to it is not known."""
    jobs, part = prepared.jobs, slice(first, last)
    start = jobs.submit[part] + jobs.logged_wait[part]
    serial = np.empty(last - first, np.int64)
    serial[np.argsort(start, kind="stable")] = np.arange(last - first)
    nothing = np.full(last - first, -1, np.int64)
    eligible = None
    if (nodes := prepared.recorded_nodes) is not None:  # where the log contradicts itself, nobody waited
        eligible = np.where(nodes.eligible[part] < 0, start, np.minimum(nodes.eligible[part], start))
    return Schedule(
        start, start + jobs.run[part], nothing, nothing, nothing, serial, jobs.submit[part], eligible
    )


def _replay_on_nodes(prepared: Scenario, progress: Callable[[int], None] | None = None) -> Schedule:
    """Replay all jobs on the nodes of a cluster; jobs that can never start have a start of -1."""
    n = len(prepared.jobs)
    state, memory = _load_all(prepared)
    in_time = isinstance(state, TimedState)
    collected: Any = LivesLog(state) if in_time else AllocationLog(state)
    _play_and_collect(state, memory, prepared, collected, progress)
    schedule = read_on_nodes(state, prepared, 0, 0, n)
    if not in_time:
        return replace(schedule, allocation=collected.allocations(n))
    return _with_lives(schedule, prepared, collected)


def _with_lives(schedule: Schedule, prepared: Scenario, log: LivesLog) -> Schedule:
    """Return a schedule with the lives of its jobs that were collected."""
    assert prepared.cluster is not None
    lives = log.lives()
    allocation = lives.allocations(len(schedule.start), prepared.cluster.classes)
    return replace(schedule, allocation=allocation, node_lives=lives)


def _replay_lives(prepared: Scenario, progress: Callable[[int], None] | None = None) -> Schedule:
    """Replay all jobs under a rule of action."""
    state, memory = _load_all(prepared)
    log = LifeLog(state)
    _play_and_collect(state, memory, prepared, log, progress)
    schedule = read_schedule(state, 0, len(prepared.jobs))
    assert schedule.lives is not None
    return replace(schedule, lives=replace(schedule.lives, log=log.entries()))


class _Collector(Protocol):
    """What empties a log in a scheduler's state, which has room for so many entries only."""

    def collect(self) -> None: ...


def _load_all(prepared: Scenario) -> tuple[State, world.WorldState]:
    """Return the memory of one episode: all jobs, submitted to an idle machine."""
    n = len(prepared.jobs)
    state, memory = allocate(prepared, n)
    episode.load_episode(state, memory, 0, prepared, 0, n)
    return state, memory


def _play_and_collect(
    state: State,
    memory: world.WorldState,
    prepared: Scenario,
    log: _Collector,
    progress: Callable[[int], None] | None,
) -> None:
    """Play the one episode, and empty a log now and then, and at the end."""

    def glance() -> None:
        log.collect()
        if progress:
            clock = memory.clock[0]
            progress(int(clock.arrived - clock.pending - state.scalars.n_waiting[0]))

    play(state, memory, prepared, glance)
    log.collect()


def read_schedule_of(
    state: Any, b: int, prepared: Scenario, first: int, last: int, lives: LivesLog | None = None
) -> Schedule:
    """Return what became of the jobs ``first:last``; on a cluster, with their allocations if kept.

    `lives`: who collects the lives of the one episode's jobs.
    """
    if prepared.cluster is None:
        return read_schedule(state, b, last - first)
    schedule = read_on_nodes(state, prepared, b, first, last)
    if lives is not None:
        lives.collect()
        return _with_lives(schedule, prepared, lives)
    if state.log_class.shape[1] == 0:
        return schedule
    log = AllocationLog(state)
    log.collect()
    return replace(schedule, allocation=log.allocations(last - first))


def read_on_nodes(state: Any, prepared: Scenario, b: int, first: int, last: int) -> Schedule:
    """Return what became of an episode's jobs ``first:last``; their records hold when they were eligible."""
    schedule, submit = read_schedule(state, b, last - first), prepared.jobs.submit[first:last]
    eligible = np.where(was_eligible(state, b, last - first), schedule.submit, -1)
    rows = state.node_jobs[b][: last - first]
    if isinstance(state, TimedState):
        timed: Any = state.timed_jobs[b][: last - first]
        eligible = timed.first_eligible.copy()
        ran = (timed.doing == OVER) & (rows.gone == NOT_GONE) & (schedule.end >= 0)
        worked = schedule.end - schedule.start - timed.stood
        if (lives := schedule.lives) is not None:  # of all its lives, what was not in vain
            worked += lives.progress - lives.idle
        worked = np.where(ran, worked, -1)
        start = np.where(ran, schedule.start, -1)
        schedule = replace(schedule, start=start, ran=worked, since=schedule.submit)
    return replace(
        schedule,
        submit=submit,
        eligible=eligible,
        refused=rows.refuse.astype(np.int64),
        never_at=rows.never_at.copy(),
        head_at=rows.head_at.copy(),
    )


def _replay_reestimated(
    prepared: Scenario, beliefs: RunningBeliefs, progress: Callable[[int], None] | None = None
) -> Schedule:
    """Replay all jobs pass by pass, and let beliefs of running ones change between; see `replay`.

    A change makes no pass of its own: the next one goes by it.
    """
    n = len(prepared.jobs)
    state, memory = _load_all(prepared)
    changes = Reestimates(beliefs)
    clock, env, records = memory.clock[0], state.scalars[0], state.jobs[0]
    while True:
        clock.until, first_serial, env.work = changes.next, int(env.serial), WORK
        kind = world.run_until_decision(state, memory, 0, 1)
        check_outcome(kind, state, 0, prepared)
        for j in state.started[0, : int(env.serial) - first_serial].tolist():
            changes.started(j, int(records[j].start))
        if kind == world.MORE:
            changes.apply(state)
        elif kind == core.PAUSE:
            if progress:
                progress(int(clock.arrived - clock.pending - env.n_waiting))
        elif not prepared.compiled.decide(state, 0, kind):
            return read_schedule(state, 0, n)


def _replay_arrivals(
    prepared: Scenario, first: int, last: int, progress: Callable[[int], None] | None = None
) -> Schedule:
    """Replay the jobs ``first:last``, some of which follow others, pass by pass; see `replay`.

    A job comes to the scheduler's records when it arrives, so that they are in order of submission as ever.
    """
    n, here = last - first, 0
    state, memory = allocate(prepared, n)
    episode.load_episode(state, memory, 0, prepared, first, first)
    coming, which = Arrivals(prepared.jobs, first, last), np.zeros(n, np.int64)
    clock, env, records = memory.clock[0], state.scalars[0], state.jobs[0]
    while True:
        clock.until, first_serial, env.work = coming.next, int(env.serial), WORK
        kind = world.run_until_decision(state, memory, 0, 1)
        check_outcome(kind, state, 0, prepared)
        for j in state.started[0, : int(env.serial) - first_serial].tolist():
            coming.started(int(which[j]), int(records[j].start + records[j].run))
        if kind == world.MORE:
            now = coming.next
            while coming.next == now:
                job = which[here] = coming.take()
                episode.write(state, 0, here, prepared, first + job, first + job + 1)
                records[here].submit, records[here].s = now, now / SECOND
                here += 1
            clock.last = here
            if progress:
                progress(here - int(env.n_waiting + clock.pending))
        elif kind != core.PAUSE and not prepared.compiled.decide(state, 0, kind):
            break
    schedule = read_schedule(state, 0, n)
    back = np.argsort(which)
    past = np.where(schedule.past >= 0, which[schedule.past], -1)
    moved: dict[str, Any] = {name: getattr(schedule, name)[back] for name in (*OUTCOME, "submit")}
    return Schedule(**moved, past=past[back])


def _sequences_by_slurm(
    prepared: Scenario, starts: Ints, length: int, progress: Callable[[int], None] | None
) -> Iterator[Schedule]:
    """Yield the schedules of sequences; each has phases of clocks of its own."""
    from bridge.worlds.fast.slurm.log_replay import replay_by_slurm

    for k, first in enumerate(starts.tolist()):
        yield Schedule(**replay_by_slurm(prepared, part=(first, first + length)))
        if progress:
            progress(k + 1)


def replay_sequences(
    prepared: Scenario, starts: Ints, length: int, progress: Callable[[int], None] | None = None
) -> list[Schedule]:
    """Replay sequences of `length` jobs from jobs `starts` [k] on, each on an idle machine that is drained.

    `progress` is called with the number of finished sequences. Errors as `replay`.
    """
    if len(starts) and (starts.min() < 0 or starts.max() + length > len(prepared.jobs)):
        raise BridgeError(
            f"a sequence of {counted(length, 'job')} does not fit",
            where=f"{prepared.jobs.name}: {counted(len(prepared.jobs), 'job')}",
        )
    prepared.refuse_beliefs("sampled sequences")
    if prepared.recorded:
        return [_recorded(prepared, int(first), int(first) + length) for first in starts]
    if prepared.compiled.protocol.own_passes:
        return list(_sequences_by_slurm(prepared, starts, length, progress))
    state, memory = allocate(prepared, length, whole=False)
    schedules = []
    for k, first in enumerate(starts):
        if prepared.jobs.follows is not None:
            schedules.append(_replay_arrivals(prepared, int(first), int(first) + length))
        else:
            episode.load_episode(state, memory, 0, prepared, int(first), int(first) + length)
            play(state, memory, prepared)
            if prepared.cluster is not None:
                schedules.append(read_on_nodes(state, prepared, 0, int(first), int(first) + length))
            else:
                schedules.append(read_schedule(state, 0, length))
        if progress:
            progress(k + 1)
    return schedules
