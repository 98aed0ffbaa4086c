"""Lint rules about power: wattages on every host, pstates for jobs and for sleep, the power budget."""

from bridge.platform.findings import Findings
from bridge.platform.model import Host, Platform
from bridge.platform.power import (
    computing_pstates,
    idle_watts,
    job_watts,
    parse_sleep_states,
    parse_wattages,
    parse_watts,
)


def check_power(platform: Platform, findings: Findings) -> None:
    """Everything that matters once Batsim is started with -E."""
    powered = any("wattage_per_state" in host.properties for host in platform.hosts.values())
    done: set[int] = set()
    for host in platform.hosts.values():
        if host.place in done:
            continue
        done.add(host.place)
        if "watt_per_state" in host.properties:
            findings.error(
                host.line,
                "watt-per-state",
                f"host '{host.name}': property watt_per_state is dead since SimGrid 3.28, it counts as no "
                f"power",
                "Rename it to wattage_per_state, with idle:epsilon:all per pstate.",
            )
        if powered and "wattage_per_state" not in host.properties and "watt_per_state" not in host.properties:
            role = platform.role(host)
            findings.error(
                host.line,
                "wattage-missing",
                f"host '{host.name}' ({role or 'no role'}) has no wattage, others have: -E stops or "
                f"counts 0 W",
                'Add <prop id="wattage_per_state" value="idle:epsilon:all"/>; "0:0:0" for the master and '
                "storage.",
            )
        if "wattage_per_state" in host.properties:
            _check_wattages(host, findings)
        if "sleep_pstates" in host.properties:
            _check_sleep(host, findings)
    if powered and not findings.errors:
        _check_job_watts(platform, findings)
        _check_idle(platform, findings)
    for zone in platform.zones.values():
        budget = zone.properties.get("power_budget")
        if budget is None:
            continue
        try:
            parse_watts(budget)
        except ValueError as error:
            findings.error(zone.line, "power-budget", f"power_budget: {error}", "Write watts, e.g. '500000'.")


def _check_job_watts(platform: Platform, findings: Findings) -> None:
    """Several pstates of one speed are there to give jobs their own power; say where that does not work."""
    kinds: dict[tuple[float, ...], Host] = {}
    seen: set[int] = set()
    for host in platform.compute:
        if host.place in seen:
            continue
        seen.add(host.place)
        computing = computing_pstates(host)
        if len(computing) < 2 or len({host.speeds[p] for p in computing}) > 1:
            continue
        watts = job_watts(host)
        if watts is None:
            findings.note(
                host.line,
                "job-watts",
                f"host '{host.name}' has {len(computing)} pstates of one speed whose wattages are not flat: "
                "no power per job",
                "Write w:w:w for each: jobs that sleep and jobs that compute then draw the same.",
            )
        else:
            kinds.setdefault(watts, host)
    if len(kinds) > 1:
        first, second, *_ = kinds.values()
        findings.note(
            second.line,
            "job-watts",
            f"hosts '{first.name}' and '{second.name}' have different wattages for jobs: no power per job",
            "Give all compute hosts the same pstates.",
        )


def _check_idle(platform: Platform, findings: Findings) -> None:
    try:
        budget = parse_watts(platform.root.properties["power_budget"])
        idle = sum(idle_watts(host) for host in platform.compute)
    except (KeyError, ValueError, IndexError):
        return
    if budget < idle:
        findings.warning(
            platform.root.line,
            "power-budget",
            f"the power_budget of {budget:g} W is below the {idle:g} W of the idle machine",
            "Raise it, unless only the nodes of jobs count.",
        )


def _check_wattages(host: Host, findings: Findings) -> None:
    text = host.properties["wattage_per_state"]
    try:
        watts = parse_wattages(text)
    except ValueError as error:
        findings.error(
            host.line,
            "wattage-format",
            f"host '{host.name}' wattage_per_state: {error}",
            "Write idle:epsilon:all in watts for each pstate, e.g. '95:100:190, 60:65:120'.",
        )
        return
    if len(watts) != len(host.speeds):
        findings.error(
            host.line,
            "wattage-count",
            f"host '{host.name}' has {len(watts)} wattages for {len(host.speeds)} pstates: SimGrid stops",
            "Give one idle:epsilon:all per speed.",
        )
    if any(part.count(":") == 1 for part in text.split(",")):
        findings.note(
            host.line,
            "wattage-two",
            f"host '{host.name}' gives idle:all only; epsilon (just above idle) is taken as idle",
            "Write idle:epsilon:all to say it yourself.",
        )
    for number, state in enumerate(watts):
        if not state.idle <= state.epsilon <= state.full:
            findings.warning(
                host.line,
                "wattage-order",
                f"host '{host.name}' pstate {number}: {state.idle:g}:{state.epsilon:g}:{state.full:g} W "
                f"does not rise",
                "The order is idle:epsilon:all.",
            )
            break
    off = host.properties.get("wattage_off")
    if off is None:
        return
    try:
        parse_watts(off)
    except ValueError as error:
        findings.error(
            host.line, "wattage-format", f"host '{host.name}' wattage_off: {error}", "Write watts, e.g. '5'."
        )


def _check_sleep(host: Host, findings: Findings) -> None:
    try:
        states = parse_sleep_states(host.properties["sleep_pstates"], len(host.speeds))
    except ValueError as error:
        findings.error(
            host.line,
            "sleep-pstates",
            f"host '{host.name}' sleep_pstates: {error}",
            "Write sleep:off:on, e.g. '13:14:15': the sleeping pstate, then switching off, then switching "
            "on.",
        )
        return
    for state in states:
        speeds = host.speeds[state.switch_off], host.speeds[state.switch_on]
        if 0 in speeds:
            findings.error(
                host.line,
                "transition-speed",
                f"host '{host.name}': a transition pstate has speed 0, so the transition never ends",
                "Its speed is 1 / seconds: '0.1f' for ten seconds.",
            )
        elif speeds[0] < speeds[1]:
            findings.warning(
                host.line,
                "sleep-order",
                f"host '{host.name}' takes {1 / speeds[0]:g} s to switch off but {1 / speeds[1]:g} s to "
                f"switch on",
                "Check the order: sleep:off:on.",
            )
        if host.pstate in (state.sleep, state.switch_off, state.switch_on):
            findings.warning(
                host.line,
                "sleep-start",
                f"host '{host.name}' starts in pstate {host.pstate}, which does not compute",
                "Start in a computing pstate (pstate='0').",
            )
    if "wattage_per_state" not in host.properties:
        findings.warning(
            host.line,
            "sleep-unpowered",
            f"host '{host.name}' has sleep_pstates but no wattage_per_state: they work with -E only",
            "Add wattages.",
        )
