"""From an experiment's power options and its platform to what is booked and what is done."""

from dataclasses import replace

from bridge.base.errors import BridgeError
from bridge.experiment.spec import Detailed
from bridge.platform.capacities import computing_pstates, power_summary, sleep_states, wattages
from bridge.platform.model import Host, Platform
from bridge.scheduler.state import SECOND
from bridge.wire.wattages import Watts
from bridge.workload.job_power import PowerLevels, round_power_demands
from bridge.workload.resources import idle_power_of
from bridge.workload.table import Workload
from bridge.worlds.batsim.power_states import Dvfs, PowerPlan


def book_power(records: Workload, platform: Platform, detailed: Detailed, nodes: int) -> Workload:
    """Return the log as its power is booked: rounded up to the hosts' levels, within the platform's budget.

    What the budget counts is up to the log: all that the nodes of jobs draw, or, if its header has
    ``IdlePower``, what they draw above that. Both worlds schedule what this returns, W, for so many nodes.
    A BridgeError says that the platform or the log does not allow it, or that they contradict each other.
    """
    if detailed.power != "per-job":
        return records
    idle, levels = idle_power_of(records.header), job_levels(platform)
    if idle not in (0, levels[0]):
        what = f"the log counts power above {idle} W per idle node, but idle hosts draw {levels[0]} W"
        remedy = f"Change the platform, or the log's power and its IdlePower: {levels[0]}."
        raise BridgeError(what, where=platform.path, remedy=remedy)
    rounded_workload = round_power_demands(records, PowerLevels(levels, idle))
    budget = system_budget(platform, detailed)
    limit = levels[-1] * nodes if budget is None else int(budget)
    left = limit - idle * nodes
    if left < 0:
        what = f"the budget of {limit:,} W is below the {idle * nodes:,} W of {nodes:,} idle nodes"
        raise BridgeError(what, where=platform.path, remedy="Raise power_budget.")
    stated = records.capacity.get("power", left)
    if stated != left and not detailed.power_budget:
        what = f"the log has {stated:,} W for its jobs, the platform {left:,} W"
        remedy = f"Say which with --power-budget: {stated + idle * nodes} or {limit} W."
        raise BridgeError(what, where=f"{records.where} on {platform.path}", remedy=remedy)
    return replace(rounded_workload, capacity={**rounded_workload.capacity, "power": left})


def system_budget(platform: Platform, detailed: Detailed) -> float | None:
    """Return what all compute hosts together may draw, W: as the experiment or the platform says, or None."""
    power = power_summary(platform)
    return detailed.power_budget or (power.budget if power is not None else None)


def job_levels(platform: Platform) -> tuple[int, ...]:
    """Return the powers that a job's nodes can be given, W per node, ascending from that of an idle node."""
    power = power_summary(platform)
    watts = power.job_watts if power is not None else ()
    if not watts or any(w != int(w) for w in watts) or len(set(watts)) != len(watts):
        remedy = "All hosts need the same several pstates of one speed, each with another flat wattage in "
        remedy += "whole W: see job = { start, stop, step } in docs/platforms.md."
        raise BridgeError("its hosts cannot be given power per job", where=platform.path, remedy=remedy)
    return tuple(int(w) for w in watts)


def build_power_plan(platform: Platform, detailed: Detailed, idle_power: int) -> PowerPlan | None:
    """Return what the decision process does with power states, if anything; jobs hold W above `idle_power`.

    A BridgeError says that the platform does not have the power states that an option needs.
    """
    if not detailed.switches:
        return None
    host, watts = _alike(platform)
    full, computing = [w.full for w in watts], computing_pstates(host)
    power_plan = PowerPlan(tuple(full), initial=host.pstate, rest=host.pstate)
    if detailed.power:
        ranked = sorted(computing, key=lambda p: full[p])
        levels = PowerLevels(job_levels(platform), idle_power)
        power_plan = replace(power_plan, rest=ranked[0], levels=levels, states=tuple(ranked))
    if detailed.dvfs:
        ranked = sorted(computing, key=lambda p: host.speeds[p])
        slow, fast = ranked[0], ranked[-1]
        if not (host.speeds[slow] < host.speeds[fast] and full[slow] < full[fast]):
            what = "its hosts have no pstate that is slower and draws less"
            remedy = 'Give nodes several speeds and states: speed = ["10Gf", "5Gf"] (docs/platforms.md).'
            raise BridgeError(what, where=platform.path, remedy=remedy)
        power_plan = replace(power_plan, rest=slow, dvfs=Dvfs(slow, fast, detailed.dvfs))
    if detailed.shutdown_after:
        power_plan = _with_shutdown(power_plan, platform, host, full, detailed)
    return power_plan


def _alike(platform: Platform) -> tuple[Host, tuple[Watts, ...]]:
    """Return the first host and its wattages; all others must have the same."""

    def states(host: Host) -> tuple[object, ...]:
        named = (host.properties.get(name) for name in ("wattage_per_state", "sleep_pstates"))
        return (host.speeds, host.pstate, *named)

    first = platform.compute[0]
    for host in platform.compute:
        if states(host) != states(first):
            what = f"its hosts {first.name} and {host.name} have different power states"
            remedy = "Power per job, DVFS and shutdown need hosts that are all alike."
            raise BridgeError(what, where=platform.path, remedy=remedy)
    try:
        watts, computing = wattages(first), computing_pstates(first)
    except ValueError as error:
        raise BridgeError(str(error), where=platform.path, remedy="See `bridge platform check`.") from error
    if watts is None or first.pstate not in computing:
        what = "its hosts have no wattages, or do not start in a pstate that computes"
        raise BridgeError(what, where=platform.path, remedy="See `bridge platform check`.")
    return first, watts


def _with_shutdown(
    power_plan: PowerPlan, platform: Platform, host: Host, full: list[float], detailed: Detailed
) -> PowerPlan:
    states = sleep_states(host)
    if not states:
        what = "its hosts have no pstate to sleep in"
        remedy = "Add sleep = { … } to [nodes.power], see docs/platforms.md."
        raise BridgeError(what, where=platform.path, remedy=remedy)
    state = states[0]
    most = max(full[p] for p in state)
    if detailed.power and most > full[power_plan.rest]:
        what = (
            f"a host draws up to {most:g} W while it is switched, {full[power_plan.rest]:g} W when idle: the "
        )
        what += "difference is nobody's, and would break the budget"
        remedy = "Leave out power or shutdown_after, or give transitions no more than an idle host."
        raise BridgeError(what, where=platform.path, remedy=remedy)
    return replace(power_plan, sleeping=state.sleep, idle_limit=round(detailed.shutdown_after * SECOND))
