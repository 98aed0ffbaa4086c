"""What a copy of a cluster's scheduler may know of what comes: not what nobody could foresee."""

from typing import Any

import numpy as np

from bridge.base.arrays import Ints
from bridge.scheduler.state import NEVER
from bridge.scheduler.timed_state import MOMENT, TimedState


def forget_future(state: Any, now: int, which: Ints | slice) -> None:
    """Let a state of one scheduler forget what comes after now, but reservations that are announced by now.

    `which`: the jobs that are there; those that end succeed.
    """
    state.node_jobs[0].succeeds[which] = 1
    if not isinstance(state, TimedState):
        return
    announced = state.reservations.announced <= now
    for name in ("announced", "begin", "end"):
        state.reservations[name][~announced] = NEVER
    moments = np.concatenate([state.reservations[name][announced] for name in ("begin", "end")])
    events, first = state.events[0], int(state.timed_scalars[0].next_event)
    coming = events[first:].copy()
    coming = coming[(coming["kind"] == MOMENT) & np.isin(coming["time"], moments)]
    events[first : first + len(coming)] = coming
    events.time[first + len(coming) :] = NEVER
