"""Power of hosts: wattages and sleep states that their properties state, and what a budget counts."""

import functools
import math
import re
from typing import Literal, NamedTuple

#: What a power budget counts: watts above idle nodes, or all watts of jobs' nodes (idle ones count nothing).
Accounting = Literal["above-idle", "jobs"]
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
    found = []
    for part in text.split(","):
        values = [parse_watts(value) for value in part.split(":")]
        if len(values) not in (2, 3):
            raise ValueError(f"'{part.strip()}' has {len(values)} values instead of idle:epsilon:all")
        found.append(Watts(values[0], values[-2] if len(values) == 3 else values[0], values[-1]))
    return tuple(found)


@functools.lru_cache(maxsize=1024)
def parse_sleep_states(text: str, pstates: int) -> tuple[SleepState, ...]:
    """`sleep:off:on, …` (three pstate numbers each).

    Raises ValueError: malformed, out of range, or in two roles.
    """
    found: list[SleepState] = []
    for part in text.split(","):
        if not re.fullmatch(r"\s*\d{1,6}\s*:\s*\d{1,6}\s*:\s*\d{1,6}\s*", part, re.ASCII):
            raise ValueError(f"'{part.strip()}' is not sleep:off:on, three pstate numbers")
        state = SleepState(*(int(number) for number in part.split(":")))
        for number in state:
            if number >= pstates:
                raise ValueError(f"'{part.strip()}' names pstate {number}, there are {pstates}")
        found.append(state)
    sleeping = [state.sleep for state in found]
    moving = {number for state in found for number in state[1:]}
    if len(set(sleeping)) != len(sleeping) or moving & set(sleeping):
        raise ValueError(f"'{text}' uses one pstate both for sleeping and for something else")
    return tuple(found)
