"""Whoever asks a policy of the time-stepped pool: many fast pools side by side, or one live pool."""

from collections.abc import Callable
from typing import Protocol

import numpy as np

from bridge.errors import BridgeError
from bridge.pool.names import HEURISTICS as HEURISTICS
from bridge.pool.names import NAMES
from bridge.pool.pools import Flags, Ints, View
from bridge.pool.rules import KNOB, choose_all
from bridge.pool.state import State


class Asking(Protocol):
    """B pools whose decisions wait: `bridge.pool.pools.Pools`, `bridge.pool.live.Live`."""

    masks: Flags

    @property
    def state(self) -> State:
        """What the scheduler knows; not to be changed."""

    @property
    def idle(self) -> Flags:
        """[B] whether no job runs or has a booking, or waits to get it back."""

    def __len__(self) -> int:
        """B."""


#: Answers the waiting decisions: (pools, view of all places, places that wait) -> actions of those.
Answer = Callable[[Asking, View, Ints], Ints]


def by_rule(name: str) -> Answer:
    """Return a heuristic that answers.

    Raises:
        BridgeError: there is none of this name, or it draws its answers.
    """
    if name not in HEURISTICS:
        raise BridgeError(f"unknown policy {name!r}", remedy=f"One of {', '.join(HEURISTICS)}.")
    rule = NAMES.index(name)
    nothing = np.zeros(0, np.int64)

    def answer(pools: Asking, view: View, live: Ints) -> Ints:  # noqa: ARG001
        actions = np.zeros(len(pools), np.int64)
        choose_all(pools.state, rule, KNOB, False, nothing, actions)
        return actions[live]

    return answer
