"""Pools that a policy answers: many in our fast world, as a learner wants them, or one in another world."""

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bridge.base.arrays import Array, Floats, Floats32, Ints
from bridge.base.errors import BridgeError
from bridge.base.jit import kernel
from bridge.pool import machine
from bridge.pool.heuristics import DecisionBuffers, PoolActionFunction, PoolBatchBase, choose_kill
from bridge.pool.jobset import MOST_UNITS
from bridge.pool.machine import TICK, apply_action, legal
from bridge.pool.observation import PictureBatch, Scratch, encode_corners, scratch, shape
from bridge.pool.schedule import PoolSchedule, schedule_of
from bridge.pool.settings import Objective, PoolConfig
from bridge.pool.state import PoolState
from bridge.pool.state import allocate as allocate_state
from bridge.pool.world import (
    N_CRITIC_FEATURES,
    PoolWorldState,
    Sequences,
    advance,
    allocate,
    critic_features,
    load,
)
from bridge.scheduler.names import Kill
from bridge.scheduler.state import copy_into

#: Jobs that a fresh pool has room for; then it doubles.
_ROOM = 64
#: The only pool, as a policy is told of it.
_HERE = np.zeros(1, np.int64)


@kernel
def _step(
    state: PoolState,
    world: PoolWorldState,
    desk: DecisionBuffers,
    scratch: Scratch,
    actions: Array,
    fresh: bool,
    rule: bool,
    kills: bool,
) -> int:
    """Answer every waiting decision, play on, and write what is seen at the next ones, pool after pool.

    `fresh`: nothing waits for an answer yet; `rule`: the kill rule answers first, whenever it wants to;
    `kills`: the agent's own kills are legal. Returns the first pool that has no such action, or -1.
    """
    waiting, masks, rewards, moved, cells, values, offsets = desk
    n = 0
    for b in range(waiting.shape[0]):
        rewards[b] = 0.0
        moved[b] = 0
        if waiting[b]:
            env = state.env[b]
            before = env.now
            if not fresh and apply_action(state, b, actions[b]) < 0:
                return b
            kind = advance(state, world, b)
            rewards[b] = env.reward
            moved[b] = env.now - before
            while rule and kind == TICK:
                action = choose_kill(state, b)
                if action < 0:
                    break
                apply_action(state, b, action)
            waiting[b] = kind == TICK
            if kind == TICK:
                legal(state, b, masks[b])
                if not kills:
                    masks[b, state.pool[0].slots + 1 :] = False
                n += encode_corners(state, b, scratch, cells[n:], values[n:])
            else:
                masks[b] = False
        offsets[b + 1] = n
    return -1


@kernel
def _outlooks(state: PoolState, world: PoolWorldState, places: Array, out: Array) -> None:
    for i in range(places.shape[0]):
        critic_features(state, world, places[i], out[i])


class PoolBatch(PoolBatchBase):
    """B pools of the fast world that an agent answers; `play` other sequences of the same jobs later.

    `most`: jobs of the longest sequence that will ever be played, if not of these. `waiting`: bool [B]
    whether a decision waits. `rewards`: float64 [B] of the last answer. `moved`: int64 [B] steps that passed
    with it, 0 or 1. Raises BridgeError: a job cannot run in such a pool, or be drawn.
    """

    def __init__(
        self, sequences: Sequences, size: int, settings: PoolConfig, kill: Kill, *, most: int = 0
    ) -> None:
        if size < 1:
            raise BridgeError("there is at least one pool", where=f"{size} pools")
        large = np.flatnonzero(sequences.jobs.units > MOST_UNITS)
        if len(large):
            raise BridgeError(
                f"asks for more than {MOST_UNITS} units, which the picture does not show",
                where=f"{sequences.jobs.name}, job {sequences.jobs.id[large[0]]}",
                remedy="Leave the job out.",
            )
        self.shape = shape(settings)
        super().__init__(settings, kill, size)
        self.state, self.world = allocate(sequences, size, settings, most=most)
        self.waiting, self.rewards, self.moved = self._desk.waiting, self._desk.rewards, self._desk.moved
        self._scratch = scratch(self.state)

    def begin(self, places: Ints, sequences: Sequences, which: Ints) -> PictureBatch:
        """Begin sequences `which` at as many `places`, return their first decisions; others stay as they are.

        The sequences are of the jobs that the memory was made for.
        """
        others = self.waiting.copy()
        kept = self.masks.copy()
        self.waiting[:] = False
        for b, s in zip(places.tolist(), which.tolist(), strict=True):
            load(self.state, self.world, b, sequences, s)
            self.waiting[b] = True
        view = self._advance(np.zeros(len(self), np.int64), fresh=True)
        others[places], kept[places] = self.waiting[places], self.masks[places]
        self.waiting[:], self.masks[:] = others, kept
        return view

    def play(self, sequences: Sequences) -> PictureBatch:
        """Begin sequence 0, 1, … at place 0, 1, …; the other places stay empty."""
        self.waiting[:] = False
        self.masks[:] = False
        places = np.arange(len(sequences))
        return self.begin(places, sequences, places)

    def step(self, actions: npt.NDArray[np.integer]) -> PictureBatch:
        """Answer every waiting decision and return what is seen at the next ones.

        The view's arrays are written anew by the next call; `rewards`, `moved`, `masks` and `waiting` too.
        `actions` [B] are those of `bridge.pool.machine.apply_action`, not read where no decision waits. With
        ``kill`` other than ``learned``, kills are legal here but nowhere in `masks`. Raises BridgeError:
        there is no such action.
        """
        return self._advance(np.asarray(actions, np.int64))

    def _advance(self, actions: Ints, *, fresh: bool = False) -> PictureBatch:
        rule, kills = self.kill == "rule", self.kill == "learned"
        refused = _step(self.state, self.world, self._desk, self._scratch, actions, fresh, rule, kills)
        if refused >= 0:
            raise self._refused(int(actions[refused]), f"pool {refused}")
        return self._view()

    def outlooks(self, places: Ints) -> Floats32:
        """Return what a critic knows at some places whose decision waits, float32 [N, N_CRITIC_FEATURES]."""
        out = np.empty((len(places), N_CRITIC_FEATURES), np.float32)
        _outlooks(self.state, self.world, places, out)
        return out

    def schedule(self, b: int) -> PoolSchedule:
        return schedule_of(self.state, b)

    def values(self, b: int, objective: Objective) -> Floats:
        """Return an objective of each job of a pool that is over: completion times count in steps.

        A weighted one has the weight of the pool's settings.
        Jobs that did not end count as if they ended now, which flatters: these are a learner's numbers.
        """
        schedule = self.schedule(b)
        end = np.where(schedule.ended, schedule.end, self.state.env.now[b])
        took = (end - schedule.submit).astype(np.float64)
        weight = self.settings.weight if objective == "weighted" else float(objective == "completion")
        return (1.0 - weight) * took / schedule.length + weight * took


class Arrival(NamedTuple):
    """A job that has arrived: its number for tables, its units, and how many steps it is believed to run."""

    id: int
    units: int
    believed: int


class LivePool(PoolBatchBase):
    """One pool in a world that is not ours: it hears of jobs and ends as they come, and of no true length.

    The world tells it step by step what has happened (`step`), lets a policy answer (`decide`), and starts
    what is due (`due`). Agents and heuristics see the same here as in a fast pool. Jobs are numbered 0, 1, …
    in the order in which they are told of. There are no oracles (BridgeError), for nobody knows true
    lengths.
    """

    def __init__(self, settings: PoolConfig, kill: Kill) -> None:
        if settings.oracle:
            what = "reads true lengths, which nobody knows of jobs that really run"
            raise BridgeError(what, where=", ".join(settings.oracles), remedy="Leave it out.")
        super().__init__(settings, kill, 1)
        self._n = 0
        self._make_room(_ROOM)

    def _make_room(self, length: int) -> None:
        """Move to memory for so many jobs."""
        # a job may outlive any series of beliefs; what is believed of it then stands at the end
        fresh = allocate_state(1, length, self.settings.horizon, self.settings)
        fresh.jobs.length[:] = -1
        if self._n:
            copy_into(fresh, self.state)
        self.state = fresh
        self._scratch = scratch(fresh)

    @property
    def now(self) -> int:
        return int(self.state.env.now[0])

    @property
    def asks(self) -> bool:
        """Whether a decision waits; otherwise time has to move."""
        return int(self.state.env.phase[0]) == machine.ASKING

    def step(
        self, ended: Collection[int], arrived: Sequence[Arrival], believed: Callable[[int, int], int]
    ) -> list[int]:
        """Let a step begin; returns the numbers of those arrived that the full backlog rejects.

        An answer is wanted then. `ended`, `arrived`: jobs, in order. `believed`: (number of a running job,
        steps run, at least 1) → steps that it is believed to run in total; what the pool cannot book counts
        as the longest.
        """
        assert not self.asks, "the policy has to answer first"
        while self._n + len(arrived) > self.state.jobs.shape[1]:
            self._make_room(2 * self.state.jobs.shape[1])
        state = self.state
        machine.begin_step(state, 0)
        for j in self._running():
            if j in ended:
                machine.finish(state, 0, j)
        for j in self._running():
            run = self.now - int(state.jobs.start[0, j])
            length = min(max(believed(j, run), 1), self.settings.horizon - 1)
            state.beliefs[0, j, min(run, state.beliefs.shape[2] - 1) :] = length
        machine.reestimate_and_rebook(state, 0)
        rejected = []
        for arrival in arrived:
            j, self._n = self._n, self._n + 1
            job = state.jobs[0, j]
            job.id, job.units, job.believed, job.submit = *arrival, self.now
            state.beliefs[0, j] = arrival.believed
            if not machine.submit(state, 0, j):
                rejected.append(j)
        machine.end_step(state, 0)
        return rejected

    def _running(self) -> list[int]:
        """Return the jobs that have begun, in order of booking: as the fast world comes by them."""
        booked = self.state.booked[0, : self.state.env.n_booked[0]]
        return [int(j) for j in booked[self.state.jobs.start[0, booked] < self.now]]

    def decide(self, answer: PoolActionFunction) -> list[int]:
        """Let a policy answer until time has to move, and return the jobs killed, in order."""
        killed: list[int] = []
        while self.asks:
            action = choose_kill(self.state, 0) if self.kill == "rule" else -1
            if action < 0:
                action = int(answer(self, self._look(), _HERE)[0])
            chosen = action - self.settings.slots - 1
            j = int(self.state.running[0, chosen]) if 0 <= chosen < self.settings.kill_slots else -1
            done = machine.apply_action(self.state, 0, action)
            if done == machine.REFUSED:
                raise self._refused(action, "")
            if done == machine.KILLED:
                killed.append(j)
                job = self.state.jobs[0, j]  # one that has outlived the horizon could not be booked again
                job.believed = min(job.believed, self.settings.horizon - 1)
        return killed

    def _look(self) -> PictureBatch:
        """Note which answers are legal, and return what is seen."""
        machine.legal(self.state, 0, self.masks[0])
        if self.kill != "learned":
            self.masks[0, self.settings.slots + 1 :] = False
        desk = self._desk
        desk.offsets[1] = encode_corners(self.state, 0, self._scratch, desk.cells, desk.values)
        return self._view()

    def due(self) -> list[int]:
        """Return the jobs whose booking begins now, in order of booking; ask when all is decided."""
        out = np.zeros(self.state.booked.shape[1], np.int64)
        return [int(j) for j in out[: machine.list_starting(self.state, 0, out)]]
