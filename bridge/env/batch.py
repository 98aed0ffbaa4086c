"""Many episodes side by side in the compiled core: one call brings all to their next decision."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from bridge.base.arrays import Array, Floats32, Ints
from bridge.base.counted import counted
from bridge.base.errors import BridgeError
from bridge.base.jit import entry, hot
from bridge.env.encoder import CompiledEncoder, EncoderPrograms
from bridge.env.parts import apply_action, encode, run_until_decision, write_context
from bridge.env.rows import delays_head, key_rows, list_rows
from bridge.env.threads import bounds_of, helpers, with_own_scratch
from bridge.scheduler.core import INSPECT, PAUSE
from bridge.scheduler.state import SECOND, State
from bridge.scheduler.timed_state import TimedState
from bridge.worlds.fast import episode, world
from bridge.worlds.fast.episode import Scenario
from bridge.worlds.fast.lives import LivesLog, worked_since
from bridge.worlds.fast.replay import Schedule, read_schedule_of
from bridge.worlds.fast.world import DONE, STUCK, WorldState

#: Passes that one call may make for an episode; never reached, `play` pauses for a bad score.
_WHOLE_EPISODE = 1 << 60


@hot  # without vectors: rows are few
def _advance(
    state: State,
    memory: WorldState,
    programs: EncoderPrograms,
    stop: bool,
    actions: Array,
    kinds: Array,
    late: Array,
    rows: Array,
    keys: Array,
    offsets: Array,
    context: Array,
    first: int,
    last: int,
) -> int:
    """Answer the waiting decisions of episodes ``first:last``, play on, and write the rows of the next ones.

    Rows are written episode after episode, from `rows[0]` on. Returns the first episode that cannot go on,
    or -1.
    """
    total = 0
    refused = -1
    for b in range(first, last):
        kind = kinds[b]
        if kind >= 0:
            choice = actions[b]
            if kind > 0:
                late[b] = delays_head(state, b, kind, choice)
            while True:
                if kind > 0:
                    apply_action(state, b, kind, choice)
                kind = run_until_decision(state, memory, b, _WHOLE_EPISODE)
                if kind <= 0:
                    break
                n = list_rows(state, b, kind, stop)
                if n > 1 or kind == INSPECT:
                    encode(state, b, programs, n, rows[total:])
                    key_rows(state, b, n, keys[total:])
                    if context.shape[1] > 0:
                        write_context(state, b, programs, context[b])
                    total += n
                    break
                choice = 0  # nobody has another
            kinds[b] = kind
            if state.scalars[b].bad_score >= 0:
                kinds[b] = PAUSE
        if kinds[b] < DONE and refused < 0:
            refused = b
        offsets[b + 1] = total
    return refused


@dataclass
class PackedObservations:
    """The decisions that wait for an answer. Episodes that are over have none.

    Attributes:
        rows: float32 [N, F] the rows of all decisions, episode after episode.
        offsets: int64 [B + 1]; episode b's rows are ``offsets[b]:offsets[b + 1]``.
        keys: int64 [N] see `bridge.env.rows.key_rows`.
        context: float32 [B, C] see `bridge.env.encoder.Encoder`; the batch's own, overwritten by its next
            step.
    """

    rows: Floats32
    offsets: Ints
    keys: Ints
    context: Floats32


class Batch:
    """B episodes of one workload under one policy, whose agent decisions are the encoder's, played together.

    `length`: most jobs of an episode. `whole`: on a cluster, what every job of the one episode was allocated
    is kept for `schedule`. `threads`: play the episodes in so many threads; results do not depend on them.
    Raises BridgeError: the workload lacks a resource that the encoder speaks of, or a rule is in Python.

    Attributes:
        decision_kinds: int64 [B] the decision that waits (`bridge.scheduler.decisions`), or DONE.
        delays_head: bool [B] whether the last answer started a job that may delay the blocked head.
    """

    def __init__(
        self,
        prepared: Scenario,
        encoder: CompiledEncoder,
        size: int,
        length: int,
        *,
        whole: bool = False,
        threads: int = 1,
    ) -> None:
        self.prepared, self.encoder, self.length = prepared, encoder, length
        self._encoder = encoder  # whose rows the kernel writes
        prepared.refuse_beliefs("agents")
        shape = encoder.encoder
        if prepared.compiled.python_rule:
            raise BridgeError(
                "agents learn and decide beside rules of the compiled core only",
                where=prepared.compiled.python_rule,
                remedy="Choose a named one, or an expression.",
            )
        self._refuse_unfit(encoder)
        self._allocate(size, length, whole=whole, threads=threads)
        self._keeps_lives = whole and isinstance(self.state, TimedState)
        self._lives: LivesLog | None = None  # of the one episode
        self.decision_kinds = np.full(size, DONE, np.int64)
        self.delays_head = np.zeros(size, np.bool_)
        self._most = min(shape.rows, length + 1)  # rows of a decision
        self._rows = np.zeros((size * self._most, shape.width), np.float32)
        self._keys = np.zeros(len(self._rows), np.int64)
        self._offsets = np.zeros(size + 1, np.int64)
        self._context = np.zeros((size, shape.context), np.float32)
        self._counts = np.zeros(size, np.int64)
        self._advance: Any = _advance

    def _allocate(self, size: int, length: int, *, whole: bool, threads: int) -> None:
        """Make the records of scheduler and world."""
        window = self.encoder.encoder.window
        self.state = episode.allocate(self.prepared, size, length, window=window, whole=whole)
        self.memory = world.allocate(size, length)
        self._bounds = bounds_of(size, threads)
        self._states = [self.state]  # of each thread
        for _ in self._bounds[1:]:
            one = episode.allocate(self.prepared, 1, length, window=window, whole=whole)
            self._states.append(with_own_scratch(self.state, one))

    def _load(self, b: int, first: int, length: int) -> None:
        """Make an episode of some jobs."""
        episode.load_episode(self.state, self.memory, b, self.prepared, first, first + length)
        if self._keeps_lives:
            self._lives = LivesLog(self.state)

    def _refuse_resources(self, encoder: CompiledEncoder) -> None:
        """Refuse an encoder of resources that are not there."""
        jobs, resources = self.prepared.jobs, encoder.encoder.resources
        if resources > len(jobs.resources):
            raise BridgeError(
                f"the agent sees {resources} resources",
                where=f"{jobs.name}: {', '.join(jobs.resources)}",
                remedy="Use a workload with as many, for example of `bridge workload generate mrsch`.",
            )

    def _refuse_unfit(self, encoder: CompiledEncoder) -> None:
        """Refuse an encoder of resources or places that are not there."""
        self._refuse_resources(encoder)
        cluster = self.prepared.cluster
        if cluster is None:
            encoder.refuse_places(None, 0)
        else:
            encoder.refuse_places(len(cluster.classes.partitions), len(cluster.cluster.qos))

    def __getstate__(self) -> dict[str, Any]:
        """Machine code stays with its process; a copy finds its own."""
        return {**self.__dict__, "_advance": _advance}

    def reset(self, starts: Ints, length: int | None = None) -> PackedObservations:
        """Begin an episode at each of up to B first jobs; the other places stay empty. Errors as `step`."""
        self.decision_kinds[:] = DONE
        return self.begin(np.arange(len(starts)), starts, length)

    def begin(self, places: Ints, starts: Ints, length: int | None = None) -> PackedObservations:
        """Begin an episode at some places and return their first decisions; what waits elsewhere stays."""
        length = length or self.length
        if len(starts) and (starts.min() < 0 or starts.max() + length > len(self.prepared.jobs)):
            raise BridgeError(
                f"an episode of {counted(length, 'job')} does not fit",
                where=f"{self.prepared.jobs.name}: {counted(len(self.prepared.jobs), 'job')}",
            )
        waiting = self.decision_kinds.copy()
        self.decision_kinds[:] = DONE
        self.decision_kinds[places] = 0
        self._counts[places] = length
        for b, first in zip(places.tolist(), starts.tolist(), strict=True):
            self._load(b, first, length)
        view = self.step(np.zeros(len(self.decision_kinds), np.int64))
        waiting[places] = self.decision_kinds[places]
        self.decision_kinds[:] = waiting
        return view

    def step(self, actions: Ints) -> PackedObservations:
        """Answer the waiting decisions and return the next ones.

        `actions`: [B] a row of each episode's decision; INSPECT: 0 accepts, 1 rejects; not read where none
        waits. BridgeError: a feature is not a number, or nothing will ever happen again in an episode.
        """
        actions = np.ascontiguousarray(actions, np.int64)
        refused = self._play_all(actions)
        while self._lives is not None and self._is_paused():
            self._lives.collect()
            self.decision_kinds[0] = 0
            refused = self._play_all(actions)
        if self._advance is _advance:  # compiled now, if it was not
            self._advance = entry(_advance, self.state)
        if refused >= 0 and self.prepared.cluster is not None:  # jobs that can never start wait for ever
            self.decision_kinds[self.decision_kinds == STUCK] = DONE
            refused = int(np.append(np.flatnonzero(self.decision_kinds < DONE), -1)[0])
        if refused >= 0:
            self._refuse(refused)
        total = self._join()
        return PackedObservations(self._rows[:total], self._offsets, self._keys[:total], self._context)

    def _is_paused(self) -> bool:
        """Tell whether the one episode waits until the lives of its jobs are collected."""
        return bool(self.decision_kinds[0] == PAUSE and self.state.scalars[0].bad_score < 0)

    def _play_all(self, actions: Ints) -> int:
        """Play all threads' episodes on; return the first that cannot go on, or -1."""
        further = [
            helpers(len(self._bounds) - 1).submit(self._play, thread, actions)
            for thread in range(1, len(self._bounds))
        ]
        results = [self._play(0, actions), *(played.result() for played in further)]
        return next((b for b in results if b >= 0), -1)

    def _play(self, thread: int, actions: Ints) -> int:
        """Play a thread's episodes on; their rows begin where all before them could have ended."""
        first, last = self._bounds[thread]
        place = first * self._most
        refused = self._advance(
            self._states[thread],
            self.memory,
            self._encoder.programs,
            self._encoder.encoder.stop,
            actions,
            self.decision_kinds,
            self.delays_head,
            self._rows[place:],
            self._keys[place:],
            self._offsets,
            self._context,
            first,
            last,
        )
        return int(refused)

    def _join(self) -> int:
        """Let the rows of each thread follow those of the one before; returns how many there are."""
        total = int(self._offsets[self._bounds[0][1]])
        for first, last in self._bounds[1:]:
            n, place = int(self._offsets[last]), first * self._most
            self._rows[total : total + n] = self._rows[place : place + n]
            self._keys[total : total + n] = self._keys[place : place + n]
            self._offsets[first + 1 : last + 1] += total
            total += n
        return total

    def _refuse(self, b: int) -> None:
        now = self.state.scalars.now[b] / SECOND
        if self.decision_kinds[b] == STUCK:
            raise BridgeError(
                f"{counted(self.state.scalars.n_waiting[b], 'job waits', 'jobs wait')} and nothing "
                "will ever happen again",
                where=f"time {now:g} s",
                remedy="The agent declined although the machine is idle.",
            )
        job = self.state.jobs[b, int(self.state.scalars.bad_score[b])]
        raise BridgeError(
            f"a feature or score of job {job.id} is not a finite number at time {now:g} s "
            f"(s={job.s:g}, t={job.t:g}, n={job.n:g})",
            where=f"features {', '.join(self.encoder.encoder.names)}",
            remedy="Guard divisions and logarithms, for example log2(max(n, 2)).",
        )

    @property
    def now(self) -> Ints:
        """[B] the time of each waiting decision, microseconds."""
        return np.asarray(self.state.scalars.now, np.int64)

    def schedule(self, b: int, first: int) -> Schedule:
        """Return what became of an episode's jobs, which are the workload's from `first` on."""
        last = first + int(self._counts[b])
        return read_schedule_of(self.state, b, self.prepared, first, last, self._lives)

    def starts_of(self, b: int) -> Ints:
        """Return when each of the episode's jobs started, microseconds, −1 = not yet.

        Where jobs may be stopped or suspended: when it would have started to run through to its end.
        """
        if isinstance(self.state, TimedState):
            return worked_since(self.state, b, np.arange(self._counts[b]), int(self.now[b]))
        if self.prepared.permits is not None:
            jobs = self.state.jobs[b, : self._counts[b]]
            return np.where(jobs.end >= 0, jobs.end - jobs.run, -1).astype(np.int64)
        return np.array(self.state.jobs.start[b, : self._counts[b]], np.int64)
