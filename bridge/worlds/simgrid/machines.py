"""The machines as Batsim numbers them: compute nodes, then storage, in SimGrid's order of host names.

SimGrid loads the platform; the XML is only read for what SimGrid does not tell.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from bridge.base.errors import BridgeError, add_location
from bridge.wire.hosts import Hosts
from bridge.wire.platform_xml import Element, XmlError, parse_xml, read_bytes, wifi_links
from bridge.wire.wattages import parse_sleep_states, parse_wattages, parse_watts
from bridge.worlds.simgrid import c_library
from bridge.worlds.simgrid.options import SimulationOptions

STATES = ("sleeping", "idle", "computing", "switching_on", "switching_off", "unavailable")
SLEEPING, IDLE, COMPUTING, SWITCHING_ON, SWITCHING_OFF, UNAVAILABLE = STATES
_ROLES = MASTER, STORAGE, COMPUTE = ("master", "storage", "compute_node")
#: What a power state is for.
COMPUTATION_PSTATE, SLEEP_PSTATE, TRANSITION_PSTATE = "computation", "sleep", "transition"

_ZONES = ("zone", "AS", "cluster", "cabinet")
#: Property -> how it is written.
_FORMS = {
    "sleep_pstates": "Write SLEEP:OFF:ON; OFF and ON are the states passed on the way there and back.",
    "wattage_per_state": "Write IDLE:EPSILON:ALL_CORES in watts for each state, separated by commas.",
    "wattage_off": "Write watts.",
}
T = TypeVar("T")


@dataclass(slots=True, eq=False)
class SimulatedHost:
    """One host: its role, what it is doing, the jobs on it, and for how long (s) it was in each state."""

    host: Any
    name: str
    id: int = -1
    properties: dict[str, str] = field(default_factory=dict)
    zone_properties: dict[str, str] = field(default_factory=dict)
    role: str = COMPUTE
    state: str = IDLE
    since: float = 0.0
    times: dict[str, float] = field(default_factory=lambda: dict.fromkeys(STATES, 0.0))
    jobs: dict[str, None] = field(default_factory=dict)
    #: Power state -> what it is for; only filled where energy is simulated.
    pstates: dict[int, str] = field(default_factory=dict)
    #: Sleep state -> (state passed on the way off, state passed on the way on).
    switches: dict[int, tuple[int, int]] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"machine {self.id} ('{self.name}')"

    def describe(self) -> dict[str, Any]:
        """Return the description sent with SIMULATION_BEGINS."""
        names = ("id", "name", "state", "properties", "zone_properties")
        return {name: getattr(self, name) for name in names}


class SimulatedHosts:
    """All machines of a platform but the master, and how many are in each state."""

    def __init__(
        self,
        compute: list[SimulatedHost],
        storage: list[SimulatedHost],
        master: SimulatedHost,
        may_fail: bool = False,
    ) -> None:
        self.compute, self.storage, self.master = compute, storage, master
        #: Whether the platform says of any host or link when it fails.
        self.may_fail = may_fail
        #: Whether it has Wi-Fi, with which SimGrid has no parallel tasks.
        self.wifi = False
        self.all = compute + storage
        for i, machine in enumerate(self.all):
            machine.id = i
        # Like Batsim, only compute nodes are counted at first, whatever storage machines do later.
        self.count = dict.fromkeys(STATES, 0) | {IDLE: len(compute)}

    def at(self, machine: int) -> SimulatedHost:
        if not 0 <= machine < len(self.all):
            raise BridgeError(f"there is no machine {machine}", remedy=f"Use 0 to {len(self.all) - 1}.")
        return self.all[machine]

    def of(self, ids: Iterable[int]) -> list[SimulatedHost]:
        """Return the machines of ids that are known to exist."""
        return [self.all[i] for i in ids]

    def ids(self, hosts: Hosts) -> tuple[int, ...]:
        for _, high in hosts[-1:]:
            self.at(high)
        return tuple(i for low, high in hosts for i in range(low, high + 1))

    def failed(self, ids: Iterable[int]) -> list[SimulatedHost]:
        """Return those of the machines that have failed, and have not come back."""
        if not self.may_fail:
            return []
        is_on = c_library.simgrid_library().sg_host_is_on
        return [machine for machine in self.of(ids) if not is_on(c_library.host_pointer(machine.name))]

    def set_state(self, machine: SimulatedHost, state: str, now: float) -> None:
        machine.times[machine.state] += now - machine.since
        self.count[machine.state] -= 1
        self.count[state] += 1
        machine.state, machine.since = state, now


def load(engine: Any, options: SimulationOptions, limit: int, root: Element) -> SimulatedHosts:
    """Load the platform into SimGrid and give every host its role and number.

    ``limit`` is the most compute nodes; 0 means all; ``root`` is of the file. Raises BridgeError: the file is
    not a platform; no master or two, an unknown role, a compute node without speed, bad ``sleep_pstates``
    or wattages.
    """
    wifi = wifi_links(root)
    with add_location(options.platform):
        try:
            engine.load_platform(options.platform)
            engine.netzone_root.seal()
            _join_wifi(wifi)
            hosts = [SimulatedHost(host, host.name) for host in engine.all_hosts]
        except Exception as error:  # SimGrid says no with whatever its C++ exceptions become in Python
            raise BridgeError(f"SimGrid refuses it: {error}") from None
        keys = sorted({prop.attributes.get("id", "") for prop in root.walk() if prop.tag == "prop"})
        for machine in hosts:
            machine.properties = c_library.properties("host", machine.name, keys)
        built = _numbered(hosts, options, limit)
    built.may_fail = any(map(_may_fail, root.walk()))
    built.wifi = bool(wifi)
    around = _zone_properties(root, keys)
    for machine in built.all:
        machine.zone_properties = around.get(machine.name, {})
    return built


def _join_wifi(wifi: list[tuple[str, str]]) -> None:
    """Give all stations of Wi-Fi the first rate of their zone's link; files cannot say who has which."""
    if not wifi:
        return
    from simgrid import Host, Link

    for zone, link in wifi:
        for name in c_library.zone_hosts(zone):
            Link.by_name(link).set_host_wifi_rate(Host.by_name(name), 0)


def read_platform(path: str) -> Element:
    """Return the root of a platform file; raises BridgeError if it is none."""
    try:
        root, _ = parse_xml(read_bytes(path))
    except XmlError as error:
        raise BridgeError(error.message, where=f"{path}:{error.line}", remedy=error.remedy) from None
    if root.tag != "platform":
        what = f"its root is <{root.tag}>, not <platform>"
        raise BridgeError(what, where=path, remedy="Give -p a SimGrid platform.")
    return root


def _may_fail(element: Element) -> bool:
    kind = element.attributes.get("kind", "HOST_AVAIL")
    return "state_file" in element.attributes or (element.tag == "trace_connect" and kind.endswith("_AVAIL"))


def _zone_properties(root: Element, keys: list[str]) -> dict[str, dict[str, str]]:
    """Return, for every host, the properties of the zones around it; an inner zone overrides an outer one."""
    properties: dict[str, dict[str, str]] = {}
    todo: list[tuple[Element, dict[str, str]]] = [(root, {})]
    while todo:
        element, inherited = todo.pop()
        name = element.attributes.get("id", "")
        here = inherited | c_library.properties("zone", name, keys)
        properties.update(dict.fromkeys(c_library.zone_hosts(name), here))
        todo += [(child, here) for child in element.children if child.tag in _ZONES]
    return properties


def _numbered(hosts: Sequence[SimulatedHost], options: SimulationOptions, limit: int) -> SimulatedHosts:
    by_role: dict[str, list[SimulatedHost]] = {COMPUTE: [], STORAGE: [], MASTER: []}
    for machine in hosts:
        with add_location(f"host '{machine.name}'"):
            machine.role = _role(machine, options.roles)
            if options.energy:
                read_pstates(machine)
                _check_wattages(machine)
            if machine.role == COMPUTE:
                _check_speed(machine)
        by_role[machine.role].append(machine)
    compute, storage, masters = by_role.values()
    if not masters:
        remedy = "Name a host that runs no jobs with -m."
        raise BridgeError(f"there is no master host ('{options.master}')", remedy=remedy)
    if len(masters) > 1:
        raise BridgeError(f"there are two master hosts: '{masters[0].name}' and '{masters[1].name}'")
    if limit > len(compute):
        raise BridgeError(f"has {len(compute)} compute hosts, {limit} are wanted", remedy="Lower --mmax.")
    return SimulatedHosts(compute[:limit] if limit > 0 else compute, storage, masters[0])


def _role(machine: SimulatedHost, roles: dict[str, str]) -> str:
    roles_of_host = [machine.properties.get("role"), roles.get(machine.name)]
    text = machine.properties["role"] = ",".join(role for role in roles_of_host if role is not None)
    if text not in ("", *_ROLES):
        remedy = "Roles are master, storage, compute_node; a host has one, from the platform or -m and -r."
        raise BridgeError(f"the role '{text}' is unknown", remedy=remedy)
    return text or COMPUTE


def _check_speed(machine: SimulatedHost) -> None:
    uses, host = machine.pstates, machine.host
    computing = [pstate for pstate, use in uses.items() if use == COMPUTATION_PSTATE]
    speeds = {pstate: host.pstate_speed(pstate) for pstate in computing} if uses else {0: host.speed}
    for pstate, speed in speeds.items():
        if speed <= 0:
            raise BridgeError(f"computes at {speed} flop/s in power state {pstate}", remedy="Set its speed.")


def read_pstates(machine: SimulatedHost) -> None:
    """Read the roles of a host's power states from its properties."""
    count = machine.host.pstate_count
    if machine.properties.get("sleep_pstates"):
        for sleep, off, on in _parsed(machine, "sleep_pstates", parse_sleep_states, count) or ():
            machine.pstates |= {sleep: SLEEP_PSTATE, off: TRANSITION_PSTATE, on: TRANSITION_PSTATE}
            machine.switches[sleep] = (off, on)
    for pstate in range(count):
        machine.pstates.setdefault(pstate, COMPUTATION_PSTATE)


def _check_wattages(machine: SimulatedHost) -> None:
    if (watts := _parsed(machine, "wattage_per_state", parse_wattages)) is None:
        return
    if len(watts) != machine.host.pstate_count:
        what = f"wattage_per_state does not describe its {machine.host.pstate_count} power states"
        raise BridgeError(what, remedy=_FORMS["wattage_per_state"])
    _parsed(machine, "wattage_off", parse_watts)


def _parsed(machine: SimulatedHost, name: str, parse: Callable[..., T], *more: int) -> T | None:
    """Return what a property says; None if the machine does not have it."""
    text = machine.properties.get(name)
    try:
        return None if text is None else parse(text, *more)
    except ValueError as error:
        raise BridgeError(f"{name}: {error}", remedy=_FORMS[name]) from None
