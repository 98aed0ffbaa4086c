"""Power of hosts: wattages and sleep states that their properties state, and what a budget counts."""

import functools
import math
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from bridge.wire.events import HostInfo

#: What a power budget counts: watts above idle nodes, or all watts of jobs' nodes (idle ones count nothing).
Accounting = Literal["above-idle", "jobs"]
#: More power states than any host has.
_MOST_STATES = 1_000_000
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


class Watts(NamedTuple):
    """Power of one pstate in W: idle, just above idle (epsilon), and fully loaded."""

    idle: float
    epsilon: float
    full: float


class SleepState(NamedTuple):
    """One entry of `sleep_pstates`: the pstate that sleeps and the two that model the transitions.

    Batsim computes one flop in the virtual pstate, so a transition lasts 1 / speed seconds.
    """

    sleep: int
    switch_off: int
    switch_on: int


def parse_watts(text: str) -> float:
    """One wattage in W. Raises ValueError if it is no decimal number, negative or beyond all doubles."""
    text = text.strip()
    if not _NUMBER.fullmatch(text) or math.isinf(float(text)):
        raise ValueError(f"'{text}' is not a number of watts")
    if float(text) < 0:
        raise ValueError(f"'{text}' is negative")
    return float(text)


@functools.lru_cache(maxsize=1024)  # hosts of a cluster share one text
def parse_wattages(text: str) -> tuple[Watts, ...]:
    """Wattages of all pstates from `idle:epsilon:all, …` (or `idle:all`, where epsilon is idle).

    Raises ValueError.
    """
    wattages = []
    for part in text.split(","):
        values = [parse_watts(value) for value in part.split(":")]
        if len(values) not in (2, 3):
            raise ValueError(f"'{part.strip()}' has {len(values)} values instead of idle:epsilon:all")
        wattages.append(Watts(values[0], values[-2] if len(values) == 3 else values[0], values[-1]))
    return tuple(wattages)


@functools.lru_cache(maxsize=1024)
def parse_sleep_states(text: str, pstates: int) -> tuple[SleepState, ...]:
    """`sleep:off:on, …` (three pstate numbers each).

    Raises ValueError: malformed, out of range, or in two roles.
    """
    sleep_states: list[SleepState] = []
    for part in text.split(","):
        if not re.fullmatch(r"\s*\d{1,6}\s*:\s*\d{1,6}\s*:\s*\d{1,6}\s*", part, re.ASCII):
            raise ValueError(f"'{part.strip()}' is not sleep:off:on, three pstate numbers")
        state = SleepState(*(int(number) for number in part.split(":")))
        for number in state:
            if number >= pstates:
                raise ValueError(f"'{part.strip()}' names pstate {number}, there are {pstates}")
        sleep_states.append(state)
    sleeping = [state.sleep for state in sleep_states]
    moving = {number for state in sleep_states for number in state[1:]}
    if len(set(sleeping)) != len(sleeping) or moving & set(sleeping):
        raise ValueError(f"'{text}' uses one pstate both for sleeping and for something else")
    return tuple(sleep_states)


def parse_power_states(resource: "HostInfo") -> tuple[frozenset[int], frozenset[int]]:
    """Return a host's computing and sleeping power states.

    ``wattage_per_state`` says how many there are; ``sleep_pstates`` is "sleep:off:on, …", where off and on
    are passed on the way and cannot be asked for. A host that declares nothing has the computing state 0.
    """
    declared = resource.properties
    return _parse(declared.get("wattage_per_state", ""), declared.get("sleep_pstates", ""))


@functools.lru_cache(maxsize=1024)  # hosts of a cluster share their texts
def _parse(watts: str, sleep_states: str) -> tuple[frozenset[int], frozenset[int]]:
    count = max(1, len([part for part in watts.split(",") if part.strip()]))
    states: tuple[SleepState, ...] = ()
    with suppress(ValueError):  # the platform has its own opinion of what is malformed
        states = parse_sleep_states(sleep_states, _MOST_STATES)
    sleeping = frozenset(state.sleep for state in states)
    return frozenset(range(count)).difference(*states), sleeping
