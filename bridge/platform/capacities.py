"""Machine capacities of a platform: the numbers that the scheduler books (nodes, burst_buffer, power)."""

import dataclasses
from typing import Literal

from bridge.errors import BridgeError
from bridge.platform import units
from bridge.platform.model import Host, Platform
from bridge.platform.power import computing_pstates, job_watts, parse_watts, wattages

#: What a job's power means: watts above idle nodes, or all watts of its own nodes (idle ones count nothing).
Accounting = Literal["above-idle", "jobs"]


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


def _refuse(platform: Platform, host: Host, error: ValueError) -> BridgeError:
    return BridgeError(
        f"host '{host.name}': {error}",
        where=f"{platform.path}:{host.line}",
        remedy="See `bridge platform check`.",
    )


def storage_capacity(platform: Platform, host: Host) -> int | None:
    """Capacity of a storage host in bytes, None if it has none. Raises BridgeError if it is malformed."""
    text = host.properties.get("capacity")
    if text is None:
        return None
    try:
        return units.parse_size(text)
    except ValueError as error:
        raise _refuse(platform, host, error) from error


def burst_buffers(platform: Platform) -> dict[str, int]:
    """Burst-buffer hosts and their capacities in bytes.

    Storage hosts with the property `storage_kind` = burst_buffer; if no storage host has that property, all
    storage hosts with a capacity. Raises BridgeError for malformed capacities.
    """
    storage = platform.storage
    if any("storage_kind" in host.properties for host in storage):
        storage = [host for host in storage if host.properties.get("storage_kind") == "burst_buffer"]
    found = {host.name: storage_capacity(platform, host) for host in storage}
    return {name: size for name, size in found.items() if size is not None}


def power_summary(platform: Platform) -> PowerSummary | None:
    """Power of the compute hosts; None unless every one has wattages.

    Raises:
        BridgeError: malformed wattages or budget.
    """
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
            raise _refuse(platform, host, ValueError(str(error))) from error
    text = platform.root.properties.get("power_budget")
    try:
        budget = None if text is None else parse_watts(text)
    except ValueError as error:
        raise BridgeError(
            f"power_budget: {error}", where=f"{platform.path}:{platform.root.line}", remedy="Write watts."
        ) from error
    return PowerSummary(idle, full, budget, choices.pop() if len(choices) == 1 else ())


def capacities(platform: Platform, *, accounting: Accounting = "above-idle") -> dict[str, int]:
    """Machine capacities by resource name.

    Args:
        platform: the detailed machine.
        accounting: `above-idle` books watts above idle (capacity: budget less all nodes idle),
            `jobs` books all watts of a job's nodes (capacity: the budget). Without a budget the machine
            may run at full power.

    Returns:
        `nodes`; `burst_buffer` in bytes if there is one; `power` in W if every compute host has wattages.

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
                raise BridgeError(
                    f"the power budget of {limit:g} W is below the {power.idle:g} W of the idle machine",
                    where=f"{platform.path}:{platform.root.line}",
                    remedy="Raise power_budget, or account for jobs only.",
                )
            limit -= power.idle
        found["power"] = int(limit)
    return found
