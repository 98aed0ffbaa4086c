"""Many pools side by side, as a learner wants them: pictures, masks, rewards, one call a step."""

import numpy as np
import numpy.typing as npt

from bridge.errors import BridgeError
from bridge.jit import kernel
from bridge.pool.critic_view import NUMBERS, outlook
from bridge.pool.jobset import MOST_UNITS
from bridge.pool.machine import TICK, answer, legal
from bridge.pool.picture import Picture, Scratch, View, most_corners, pack, scratch, shape
from bridge.pool.rules import kill
from bridge.pool.schedule import Schedule, schedule_of
from bridge.pool.settings import Kill, Objective, Settings
from bridge.pool.state import Array, Flags, Floats, Ints, State
from bridge.pool.world import Sequences, World, advance, allocate, load


@kernel
def _step(
    state: State,
    world: World,
    fresh: bool,
    rule: bool,
    kills: bool,
    waiting: Array,
    actions: Array,
    rewards: Array,
    moved: Array,
    masks: Array,
    scratch: Scratch,
    cells: Array,
    values: Array,
    offsets: Array,
) -> int:
    """Answer every waiting decision, play on, and write what is seen at the next ones, pool after pool.

    Args:
        fresh: pools have just been loaded: nothing waits for an answer yet.
        rule: the kill rule answers first, whenever it wants to.
        kills: the agent's own kills are legal.
        waiting: [B] whether a decision waits; where none does, nothing happens. Written.
        actions: [B]
        rewards, moved: [B] written; reward and steps that passed.
        masks: [B, actions] written.
        scratch, cells, values: see `bridge.pool.picture.pack`.
        offsets: [B + 1] written.

    Returns:
        The number of the first pool that has no such action, or -1.
    """
    n = 0
    for b in range(waiting.shape[0]):
        rewards[b] = 0.0
        moved[b] = 0
        if waiting[b]:
            env = state.env[b]
            before = env.now
            if not fresh and answer(state, b, actions[b]) < 0:
                return b
            kind = advance(state, world, b)
            rewards[b] = env.reward
            moved[b] = env.now - before
            while rule and kind == TICK:
                action = kill(state, b)
                if action < 0:
                    break
                answer(state, b, action)
            waiting[b] = kind == TICK
            if kind == TICK:
                legal(state, b, masks[b])
                if not kills:
                    masks[b, state.pool[0].slots + 1 :] = False
                n += pack(state, b, scratch, cells[n:], values[n:])
            else:
                masks[b] = False
        offsets[b + 1] = n
    return -1


@kernel
def _outlooks(state: State, world: World, places: Array, out: Array) -> None:
    for i in range(places.shape[0]):
        outlook(state, world, places[i], out[i])


class Pools:
    """B pools that an agent answers.

    Args:
        sequences: what they play; `play` others of the same jobs later.
        size: B.
        settings: of all pools.
        kill: who kills.
        most: jobs of the longest sequence that will ever be played, if not of these.

    Attributes:
        state, world: of the pools; not to be changed.
        shape: of a picture.
        waiting: bool [B] whether a decision waits.
        masks: bool [B, actions] which answers are legal; none where no decision waits.
        rewards: float64 [B] of the last answer.
        moved: int64 [B] steps that passed with the last answer, 0 or 1.

    Raises:
        BridgeError: a job cannot run in such a pool, or be drawn.
    """

    def __init__(
        self, sequences: Sequences, size: int, settings: Settings, kill: Kill, *, most: int = 0
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
        self.settings, self.kill, self.shape = settings, kill, shape(settings)
        self.state, self.world = allocate(sequences, size, settings, most=most)
        # one decision must not depend on where it comes up: all pools give the same colours
        self.state.palette[:] = self.state.palette[0]
        self.waiting = np.zeros(size, np.bool_)
        self.masks = np.zeros((size, settings.actions), np.bool_)
        self.rewards = np.zeros(size)
        self.moved = np.zeros(size, np.int64)
        self._scratch = scratch(self.state)
        self._cells = np.zeros(size * most_corners(settings), np.int32)
        self._values = np.zeros(len(self._cells), np.float32)
        self._offsets = np.zeros(size + 1, np.int64)

    def __len__(self) -> int:
        return len(self.waiting)

    def begin(self, places: Ints, sequences: Sequences, which: Ints) -> View:
        """Begin a sequence at some places and return their first decisions; what waits elsewhere stays.

        Args:
            places: where.
            sequences: of the jobs that the memory was made for.
            which: as many, numbers of sequences.
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

    def play(self, sequences: Sequences) -> View:
        """Begin sequence 0, 1, … at place 0, 1, …; the other places stay empty."""
        self.waiting[:] = False
        self.masks[:] = False
        places = np.arange(len(sequences))
        return self.begin(places, sequences, places)

    def step(self, actions: npt.NDArray[np.integer]) -> View:
        """Answer every waiting decision and return what is seen at the next ones.

        The view's arrays are written anew by the next call; `rewards`, `moved`, `masks` and `waiting` too.

        Args:
            actions: [B], see `bridge.pool.machine.answer`; where no decision waits it is not read. With
                ``kill`` other than ``learned``, kills are legal here but nowhere in `masks`.

        Raises:
            BridgeError: there is no such action.
        """
        return self._advance(np.asarray(actions, np.int64))

    def _advance(self, actions: Ints, *, fresh: bool = False) -> View:
        refused = _step(
            self.state,
            self.world,
            fresh,
            self.kill == "rule",
            self.kill == "learned",
            self.waiting,
            actions,
            self.rewards,
            self.moved,
            self.masks,
            self._scratch,
            self._cells,
            self._values,
            self._offsets,
        )
        if refused >= 0:
            raise BridgeError(
                f"there is no action {actions[refused]}",
                where=f"pool {refused}",
                remedy=f"Actions are 0 … {self.settings.actions - 1}.",
            )
        total = self._offsets[-1]
        return View(self._cells[:total], self._values[:total], self._offsets, self.settings)

    @property
    def idle(self) -> Flags:
        """[B] whether no job runs or has a booking, or waits to get it back."""
        env = self.state.env
        return np.asarray((env.n_booked == 0) & (env.n_ready == 0), np.bool_)

    def outlooks(self, places: Ints) -> Picture:
        """Return what a critic knows at some places whose decision waits, float32 [N, NUMBERS]."""
        out = np.empty((len(places), NUMBERS), np.float32)
        _outlooks(self.state, self.world, places, out)
        return out

    def schedule(self, b: int) -> Schedule:
        """Return a copy of what has become of the jobs of a pool."""
        return schedule_of(self.state, b)

    def values(self, b: int, objective: Objective) -> Floats:
        """Return an objective of each job of a pool that is over: completion times count in steps.

        Jobs that did not end count as if they ended now, which flatters: these are a learner's numbers.
        """
        schedule = self.schedule(b)
        end = np.where(schedule.ended, schedule.end, self.state.env.now[b])
        took = (end - schedule.submit).astype(np.float64)
        return took / schedule.length if objective == "slowdown" else took
