"""Storage and power of a platform: what its properties say, and the machine capacities that they make.

Source for power: SimGrid's host energy plugin (3.32) and Batsim 4.2.1.
"""

import dataclasses

from bridge.base.errors import BridgeError
from bridge.platform import units
from bridge.platform.model import Host, Platform, Zone
from bridge.wire.wattages import (
    Accounting,
    SleepState,
    Watts,
    parse_sleep_states,
    parse_wattages,
    parse_watts,
)


# ---- power of a host ---------------------------------------------------------------------------------------
def wattages(host: Host) -> tuple[Watts, ...] | None:
    """Wattage of each pstate, None if the host has none. Raises ValueError (malformed, wrong number)."""
    text = host.properties.get("wattage_per_state")
    if text is None:
        return None
    wattages = parse_wattages(text)
    if len(wattages) != len(host.speeds):
        raise ValueError(f"{len(wattages)} wattages for {len(host.speeds)} pstates")
    return wattages


def sleep_states(host: Host) -> tuple[SleepState, ...]:
    """The host's sleep states, empty if it has none. Raises ValueError."""
    text = host.properties.get("sleep_pstates")
    return () if text is None else parse_sleep_states(text, len(host.speeds))


def computing_pstates(host: Host) -> list[int]:
    busy = {number for state in sleep_states(host) for number in state}
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
    sizes = {host.name: storage_capacity(platform, host) for host in storage}
    return {name: size for name, size in sizes.items() if size is not None}


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


def capacities(
    platform: Platform, *, accounting: Accounting = "above-idle", power: bool = True
) -> dict[str, int]:
    """Machine capacities: `nodes`; `burst_buffer` in bytes; `power` in W if every compute host has wattages.

    `above-idle` books watts above idle (capacity: budget less all nodes idle), `jobs` books all watts of a
    job's nodes (capacity: the budget). Without a budget the machine may run at full power; without `power`
    nobody looks at it.

    Raises BridgeError: malformed capacities or wattages, or a budget below the idle power.
    """
    amounts = {"nodes": len(platform.compute)}
    buffers = burst_buffers(platform)
    if buffers:
        amounts["burst_buffer"] = sum(buffers.values())
    watts = power_summary(platform) if power else None
    if watts is not None:
        limit = watts.full if watts.budget is None else watts.budget
        if accounting == "above-idle":
            if limit < watts.idle:
                what = f"the power budget of {limit:g} W is below the {watts.idle:g} W of the idle machine"
                remedy = "Raise power_budget, or account for jobs only."
                raise _refuse(platform, platform.root, what, remedy)
            limit -= watts.idle
        amounts["power"] = int(limit)
    return amounts
