"""Storage and power of a platform: what its properties say, and the machine capacities that they make.

Source for power: SimGrid's host energy plugin (3.32) and Batsim 4.2.1.
"""

import dataclasses
import functools
import math
import re
from typing import Literal

from bridge.errors import BridgeError
from bridge.platform import units
from bridge.platform.model import Host, Platform, SleepState, Watts, Zone

#: What a job's power means: watts above idle nodes, or all watts of its own nodes (idle ones count nothing).
Accounting = Literal["above-idle", "jobs"]
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


# ---- power of a host ---------------------------------------------------------------------------------------
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
    all): then a delay job and a computing one draw exactly the wattage of the pstate their hosts are in.
    """
    watts = wattages(host)
    if watts is None:
        return None
    pstates = computing_pstates(host)
    alike = len(pstates) > 1 and len({host.speeds[p] for p in pstates}) == 1
    flat = all(watts[p].idle == watts[p].epsilon == watts[p].full for p in pstates)
    return tuple(sorted(watts[p].full for p in pstates)) if alike and flat else None


# ---- the whole machine -------------------------------------------------------------------------------------
@dataclasses.dataclass(frozen=True, slots=True)
class PowerSummary:
    """Power of all compute hosts together, in W.

    Attributes:
        idle: all hosts idle in their first computing pstate.
        full: all hosts fully loaded in their most powerful computing pstate.
        budget: the `power_budget` property of the outer zone; None if there is none.
        job_watts: watts per host that can be given to a job (equal-speed pstates), ascending; empty if
            power per job is not possible on all hosts alike.
    """

    idle: float
    full: float
    budget: float | None
    job_watts: tuple[float, ...]


def _refuse(platform: Platform, of: Host | Zone, what: str, remedy: str = "") -> BridgeError:
    remedy = remedy or "See `bridge platform check`."
    return BridgeError(what, where=f"{platform.path}:{of.line}", remedy=remedy)


def storage_capacity(platform: Platform, host: Host) -> int | None:
    """Capacity of a storage host in bytes, None if it has none. Raises BridgeError if it is malformed."""
    text = host.properties.get("capacity")
    try:
        return None if text is None else units.parse_size(text)
    except ValueError as error:
        raise _refuse(platform, host, f"host '{host.name}': {error}") from error


def burst_buffers(platform: Platform) -> dict[str, int]:
    """Burst-buffer hosts and their capacities in bytes. Raises BridgeError for malformed ones.

    Storage hosts with `storage_kind` = burst_buffer; if none has that property, all with a capacity.
    """
    storage = platform.storage
    if any("storage_kind" in host.properties for host in storage):
        storage = [host for host in storage if host.properties.get("storage_kind") == "burst_buffer"]
    found = {host.name: storage_capacity(platform, host) for host in storage}
    return {name: size for name, size in found.items() if size is not None}


def power_summary(platform: Platform) -> PowerSummary | None:
    """Power of the compute hosts; None unless every one has wattages. Raises BridgeError: malformed ones."""
    idle = full = 0.0
    choices: set[tuple[float, ...]] = set()
    for host in platform.compute:
        try:
            watts = wattages(host)
            if watts is None:
                return None
            pstates = computing_pstates(host)
            idle += watts[pstates[0]].idle
            full += max(watts[p].full for p in pstates)
            choices.add(job_watts(host) or ())
        except (ValueError, IndexError) as error:
            raise _refuse(platform, host, f"host '{host.name}': {error}") from error
    text = platform.root.properties.get("power_budget")
    try:
        budget = None if text is None else parse_watts(text)
    except ValueError as error:
        raise _refuse(platform, platform.root, f"power_budget: {error}", "Write watts.") from error
    return PowerSummary(idle, full, budget, choices.pop() if len(choices) == 1 else ())


def capacities(platform: Platform, *, accounting: Accounting = "above-idle") -> dict[str, int]:
    """Machine capacities: `nodes`; `burst_buffer` in bytes; `power` in W if every compute host has wattages.

    Args:
        platform: the detailed machine.
        accounting: `above-idle` books watts above idle (capacity: budget less all nodes idle),
            `jobs` books all watts of a job's nodes (capacity: the budget). Without a budget the machine
            may run at full power.

    Raises:
        BridgeError: malformed capacities or wattages, or a budget below the idle power.
    """
    found = {"nodes": len(platform.compute)}
    buffers = burst_buffers(platform)
    if buffers:
        found["burst_buffer"] = sum(buffers.values())
    power = power_summary(platform)
    if power is not None:
        limit = power.full if power.budget is None else power.budget
        if accounting == "above-idle":
            if limit < power.idle:
                what = f"the power budget of {limit:g} W is below the {power.idle:g} W of the idle machine"
                remedy = "Raise power_budget, or account for jobs only."
                raise _refuse(platform, platform.root, what, remedy)
            limit -= power.idle
        found["power"] = int(limit)
    return found
