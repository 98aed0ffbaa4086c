"""The time-stepped pool's state: records and plain arrays with a leading batch axis, nothing else.

Axes: B pools side by side, L jobs each, W steps of a series of beliefs, H steps of horizon, K kill slots.
Times are whole steps; "now" is the beginning of step `now`.
"""

from typing import Annotated, NamedTuple

import numpy as np

from bridge.base.arrays import Array, Bundle, Records
from bridge.pool.settings import PoolConfig
from bridge.scheduler.state import zeros

#: Colours that booked jobs can have in a picture of the pool: k / COLOURS for k = 1 … COLOURS - 1.
COLOURS = 500
#: Steps since the last arrival are counted up to here.
LONGEST_SILENCE = 10


#: One job. Steps; -1 = not yet. What the world alone knows: `length`.
JOB = np.dtype(
    [
        ("id", "i8"),
        ("submit", "i4"),
        ("units", "i4"),
        ("length", "i4"),  # true length; the scheduler reads it only for what `PoolConfig` calls oracles
        ("believed", "i4"),  # length believed at submission; after a kill, the belief it was killed with
        ("start", "i4"),  # first booked step, or of the last booking while the job is ready, or -1
        ("until", "i4"),  # booked before this step
        ("end", "i4"),
        ("colour", "i4"),  # k of its colour while it is booked, else 0
        ("place", "i4"),  # its kill slot, or -1
        ("clamped", "i4"),  # belief that the series was clamped with, or -1
        ("kills", "i4"),
        ("lost", "i4"),  # steps it ran in vain
    ],
    align=True,
)

#: One pool's scalars: the reward of the last answer; whether something changed that bookings into the future
#: must give way to (`disturbed`); steps since the last arrival, at most LONGEST_SILENCE (`silence`); where
#: the backlog begins and ends (`head`, `tail`); colours that no booked job has (`n_colours`).
_COUNTED = ("waiting", "booked", "ready", "submitted", "finished", "rejected", "kills", "colours")
_SCALARS = ("now", "phase", "head", "tail", "disturbed", "silence", *(f"n_{what}" for what in _COUNTED))
ENV = np.dtype([("reward", "f8"), *((name, "i4") for name in _SCALARS)], align=True)

#: One killed attempt: what was believed before it ran (`believed`), and when it was killed (`belief`).
KILL = np.dtype([(name, "i4") for name in ("job", "start", "end", "believed", "belief")], align=True)

#: Settings as kernels read them, by their own names but the last: the weight of completion times in rewards.
_COPIED = (
    "units",
    "slots",
    "backlog",
    "kill_slots",
    "horizon",
    "last_step",
    "oracle_clamp",
    "oracle_picture",
)
POOL = np.dtype([*((name, "i8") for name in _COPIED), ("weight", "f8")])


class _Arrays(NamedTuple):
    pool: Annotated[Records, POOL, 1]
    env: Annotated[Records, ENV, "B"]
    jobs: Annotated[Records, JOB, "B", "L"]
    beliefs: Annotated[Array, "i2", "B", "L", "W"]  # believed TOTAL length after having run 0, 1, … steps
    free: Annotated[Array, "i2", "B", "H"]  # units free in step now + h
    waiting: Annotated[Array, "i4", "B", "L"]  # job indices, ascending; a policy sees the first `slots`
    backlog: Annotated[Array, "i4", "B", "L"]  # job indices, first come first served, from head to tail
    booked: Annotated[Array, "i4", "B", "L"]  # jobs that run or have a booking, in order of booking
    ready: Annotated[Array, "i4", "B", "L"]  # jobs that lost their booking and wait for the next
    running: Annotated[Array, "i4", "B", "K"]  # the kill slots: job index or -1
    kills: Annotated[Records, KILL, "B", "4 L"]  # killed attempts; later ones are only counted
    # colours as an episode begins: the same in every pool, so that a decision does not depend on where it is
    palette: Annotated[Array, "i4", COLOURS - 1]
    colours: Annotated[Array, "i4", "B", COLOURS - 1]  # n_colours are free; the last of them is given next


class PoolState(Bundle, _Arrays):
    """Everything a time-stepped pool knows. Arrays, above with type and axes; kernels change them."""


def allocate(batch: int, length: int, width: int, settings: PoolConfig) -> PoolState:
    """Return an empty state for B pools of up to L jobs, each of which runs at most `width` W steps."""
    length = max(length, 1)
    sizes = {"B": batch, "L": length, "4 L": 4 * length, "W": width}
    state = zeros(PoolState, sizes | {"H": settings.horizon, "K": settings.kill_slots})
    for name in _COPIED:
        state.pool[name] = getattr(settings, name)
    state.pool.weight = settings.weight
    state.palette[:] = np.random.default_rng([0, 0]).permutation(np.arange(1, COLOURS))
    for b in range(batch):
        reset(state, b)
    return state


def reset(state: PoolState, b: int) -> None:
    """Make pool `b` idle and empty at step 0; of its jobs only what is known beforehand stays."""
    state.env[b] = np.zeros((), ENV)
    state.free[b] = state.pool.units[0]
    state.running[b] = -1
    state.colours[b] = state.palette
    state.env.n_colours[b] = COLOURS - 1
    jobs = state.jobs[b]
    for name in ("start", "until", "end", "place", "clamped"):
        jobs[name] = -1
    for name in ("colour", "kills", "lost"):
        jobs[name] = 0
