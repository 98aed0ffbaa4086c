"""Policies that learn nothing: the paper's heuristics over the visible slots, and its rule for kills.

Source: RLSchert (2021), Sections 3.3 and 4.1.4; Tetris is Grandl et al. 2014, Tetris* is DeepRM's (2016).
"""

from collections.abc import Callable
from typing import Annotated, NamedTuple

import numpy as np

from bridge.base.arrays import Array, Flags, Ints
from bridge.base.errors import BridgeError
from bridge.base.jit import inline, inner, kernel
from bridge.pool.booking import believed_now, fits_now
from bridge.pool.machine import ASKING, TICK, apply_action
from bridge.pool.observation import PictureBatch, most_corners
from bridge.pool.settings import KNOB, PoolConfig
from bridge.pool.state import PoolState
from bridge.pool.world import DONE, PoolWorldState, advance
from bridge.scheduler.names import HEURISTICS, NAMES, RANDOM, SAF, SJF, TETRIS, Kill
from bridge.scheduler.state import zeros

#: A job is killed only if it was believed to be shorter than this, and is believed to be longer now (steps).
SHORT = 10

#: What `play` returns when its random numbers are used up.
PAUSE = -2


@inline
def _score(rule: int, units: int, believed: int, available: int, knob: float) -> float:
    """Return how good it is to start a job now; higher is better."""
    if rule == SJF:
        return 1.0 / believed
    if rule == SAF:
        return -float(believed * units)
    if rule == TETRIS:
        return float(available * units)
    return knob * (available * units) + (1.0 - knob) * (1.0 / believed)


@kernel
def choose_slot(state: PoolState, b: int, rule: int, knob: float) -> int:
    """Return the action of a heuristic (not RANDOM): the best visible job that fits now, or none."""
    pool = state.pool[0]
    free = state.free[b]
    best, chosen = 0.0, pool.slots
    for k in range(min(pool.slots, state.env[b].n_waiting)):
        job = state.jobs[b, state.waiting[b, k]]
        if not fits_now(free, job.units, job.believed):
            continue
        score = _score(rule, job.units, job.believed, free[0], knob)
        if chosen == pool.slots or score > best:
            best, chosen = score, k
    return int(chosen)


@inline
def _is_suspect(state: PoolState, b: int, j: int, share: float) -> bool:
    """Tell whether job `j`, not yet longer than was believed, is believed to be by more than a share."""
    job = state.jobs[b, j]
    used = state.env[b].now - job.start
    return bool(used <= job.believed and believed_now(state, b, j) - job.believed > share * job.believed)


@kernel
def mark_overrunning(state: PoolState, places: Array, share: float, out: Array) -> None:
    """Write which kill slots of pools `places` [D] hold a suspect, to `out` bool [D, K]: short or long, it is
    believed by now to be longer, by more than a share, than before it ran; 1 in the rule.
    """
    for i in range(places.shape[0]):
        b = places[i]
        for k in range(out.shape[1]):
            j = state.running[b, k]
            out[i, k] = j >= 0 and _is_suspect(state, b, j, share)


@kernel
def choose_kill(state: PoolState, b: int) -> int:
    """Return the action that kills the first mispredicted job, or -1.

    A job in a kill slot is mispredicted if it has not run longer than it was believed to (used ≤ len_hat),
    was believed to be short, is believed to be long now, and the relative error is above 1.
    """
    for k in range(state.running.shape[1]):
        j = state.running[b, k]
        if j < 0:
            continue
        believed = state.jobs[b, j].believed
        if believed < SHORT < believed_now(state, b, j) and _is_suspect(state, b, j, 1.0):
            return int(state.pool[0].slots + 1 + k)
    return -1


@inner
def _choose(state: PoolState, b: int, rule: int, knob: float, kills: bool, draw: int) -> int:
    action = choose_kill(state, b) if kills else -1
    if action >= 0:
        return action
    return draw if rule == RANDOM else choose_slot(state, b, rule, knob)


@kernel
def play(
    state: PoolState, world: PoolWorldState, b: int, rule: int, knob: float, kills: bool, draws: Array
) -> int:
    """Play world `b` under a heuristic (`rule`, and Tetris*'s `knob`) until it is over.

    `kills`: the kill rule is asked before every decision. `draws`: [D] uniform over 0 … slots: RANDOM gives
    at most D answers. Returns DONE, or PAUSE after D answers of RANDOM: call again with new draws.
    """
    n = 0
    while advance(state, world, b) == TICK:
        if rule == RANDOM and n == draws.shape[0]:
            return PAUSE
        apply_action(state, b, _choose(state, b, rule, knob, kills, draws[n] if rule == RANDOM else 0))
        n += 1
    return DONE


@kernel
def choose_all(state: PoolState, rule: int, knob: float, kills: bool, draws: Array, actions: Array) -> None:
    """Write the action of a heuristic, see `play`, for every pool that asks, and -1 for others.

    `draws` [B], uniform over 0 … slots, is read by RANDOM only; `actions` [B] is written.
    """
    for b in range(actions.shape[0]):
        asks = state.env[b].phase == ASKING
        draw = draws[b] if rule == RANDOM else 0
        actions[b] = _choose(state, b, rule, knob, kills, draw) if asks else -1


class DecisionBuffers(NamedTuple):
    """What is asked at B pools, and what the last answers brought."""

    waiting: Annotated[Array, "?", "B"]  # whether a decision waits
    masks: Annotated[Array, "?", "B", "A"]  # which answers are legal
    rewards: Annotated[Array, "f8", "B"]  # of the last answer; 0 where none was given
    moved: Annotated[Array, "i8", "B"]  # steps that passed with it, 0 or 1
    cells: Annotated[Array, "i4", "C"]  # the pictures' corners, see `bridge.pool.observation.PictureBatch`
    values: Annotated[Array, "f4", "C"]
    offsets: Annotated[Array, "i8", "B + 1"]


class PoolBatchBase:
    """B pools whose decisions wait: `bridge.pool.batch.PoolBatch`, or one, `bridge.pool.batch.LivePool`.

    Attributes:
        state: what the scheduler knows; not to be changed.
        masks: bool [B, actions] which answers are legal; none where no decision waits.
    """

    state: PoolState

    def __init__(self, settings: PoolConfig, kill: Kill, size: int) -> None:
        self.settings, self.kill = settings, kill
        corners = size * most_corners(settings)
        self._desk = zeros(
            DecisionBuffers, {"B": size, "A": settings.actions, "C": corners, "B + 1": size + 1}
        )
        self.masks: Flags = self._desk.masks

    def __len__(self) -> int:
        return len(self.masks)

    @property
    def idle(self) -> Flags:
        """[B] whether no job runs or has a booking, or waits to get it back."""
        env = self.state.env
        return np.asarray((env.n_booked == 0) & (env.n_ready == 0), np.bool_)

    def _view(self) -> PictureBatch:
        cells, values, offsets = self._desk[-3:]
        return PictureBatch(cells[: offsets[-1]], values[: offsets[-1]], offsets, self.settings)

    def _refused(self, action: int, where: str) -> BridgeError:
        remedy = f"Actions are 0 … {self.settings.actions - 1}."
        return BridgeError(f"there is no action {action}", where=where, remedy=remedy)


#: Answers the waiting decisions: (pools, view of all places, places that wait) -> actions of those.
PoolActionFunction = Callable[[PoolBatchBase, PictureBatch, Ints], Ints]


def heuristic_actions(name: str) -> PoolActionFunction:
    """Return a heuristic that answers; BridgeError: there is none of this name, or it draws its answers."""
    if name not in HEURISTICS:
        raise BridgeError(f"unknown policy {name!r}", remedy=f"One of {', '.join(HEURISTICS)}.")
    rule = NAMES.index(name)
    nothing = np.zeros(0, np.int64)

    def answer(pools: PoolBatchBase, view: PictureBatch, live: Ints) -> Ints:  # noqa: ARG001
        actions = np.zeros(len(pools), np.int64)
        choose_all(pools.state, rule, KNOB, False, nothing, actions)
        return actions[live]

    return answer
