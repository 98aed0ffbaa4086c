"""Power of a host from its properties: `wattage_per_state`, `wattage_off` and `sleep_pstates`.

Source: SimGrid's host energy plugin (3.32) and Batsim 4.2.1. `watt_per_state` is dead since SimGrid 3.28.
"""

import functools
import re

from bridge.platform.model import Host, SleepState, Watts

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def parse_watts(text: str) -> float:
    """One wattage in W. Raises ValueError if it is no decimal number or negative."""
    if not _NUMBER.fullmatch(text.strip()):
        raise ValueError(f"'{text.strip()}' is not a number of watts")
    if float(text) < 0:
        raise ValueError(f"'{text.strip()}' is negative")
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


def wattages(host: Host) -> tuple[Watts, ...] | None:
    """Wattage of each pstate, None if the host has none. Raises ValueError (malformed, wrong number)."""
    text = host.properties.get("wattage_per_state")
    if text is None:
        return None
    found = parse_wattages(text)
    if len(found) != len(host.speeds):
        raise ValueError(f"{len(found)} wattages for {len(host.speeds)} pstates")
    return found


@functools.lru_cache(maxsize=1024)
def parse_sleep_states(text: str, pstates: int) -> tuple[SleepState, ...]:
    """`sleep:off:on, …` (three pstate numbers each).

    Raises ValueError: malformed, out of range, or in two roles.
    """
    found: list[SleepState] = []
    for part in text.split(","):
        if not re.fullmatch(r"\s*\d{1,6}\s*:\s*\d{1,6}\s*:\s*\d{1,6}\s*", part):
            raise ValueError(f"'{part.strip()}' is not sleep:off:on, three pstate numbers")
        state = SleepState(*(int(number) for number in part.split(":")))
        for number in (state.sleep, state.switch_off, state.switch_on):
            if number >= pstates:
                raise ValueError(f"'{part.strip()}' names pstate {number}, there are {pstates}")
        found.append(state)
    sleeping = [state.sleep for state in found]
    moving = {number for state in found for number in (state.switch_off, state.switch_on)}
    if len(set(sleeping)) != len(sleeping) or moving & set(sleeping):
        raise ValueError(f"'{text}' uses one pstate both for sleeping and for something else")
    return tuple(found)


def sleep_states(host: Host) -> tuple[SleepState, ...]:
    """The host's sleep states, empty if it has none. Raises ValueError."""
    text = host.properties.get("sleep_pstates")
    return () if text is None else parse_sleep_states(text, len(host.speeds))


def computing_pstates(host: Host) -> list[int]:
    """Pstates that compute: neither sleeping nor in transition. Raises ValueError."""
    states = sleep_states(host)
    busy = {number for state in states for number in (state.sleep, state.switch_off, state.switch_on)}
    return [number for number in range(len(host.speeds)) if number not in busy]


def idle_watts(host: Host) -> float:
    """What the host draws without work in its first pstate, W; 0 without wattages. Raises ValueError."""
    watts = wattages(host)
    return 0.0 if watts is None else watts[host.pstate].idle


def job_watts(host: Host) -> tuple[float, ...] | None:
    """Watts that a job can be given on this host, ascending; None unless power per job is possible.

    It is possible if several computing pstates have the same speed and a flat wattage each (idle = epsilon =
    all):
    then a delay job and a computing one draw exactly the wattage of the pstate their hosts are in.
    """
    watts = wattages(host)
    if watts is None:
        return None
    pstates = computing_pstates(host)
    if len(pstates) < 2 or len({host.speeds[p] for p in pstates}) != 1:
        return None
    if any(not watts[p].idle == watts[p].epsilon == watts[p].full for p in pstates):
        return None
    return tuple(sorted(watts[p].full for p in pstates))
