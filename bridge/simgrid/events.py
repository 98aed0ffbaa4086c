"""External events: machines that become (un)available, and others that are only forwarded."""

from dataclasses import dataclass

from bridge.simgrid.fields import read_json, read_text
from bridge.wire import jsontext
from bridge.wire.hosts import Hosts

AVAILABLE = "machine_available"
UNAVAILABLE = "machine_unavailable"
OTHER = "other"

#: Same-date events are sorted by kind in this order, as in Batsim.
_RANK = {AVAILABLE: 0, UNAVAILABLE: 1, OTHER: 2}


@dataclass(frozen=True, slots=True)
class Event:
    """One external event: its kind, its date (s), the machines it concerns, and its JSON text."""

    kind: str
    time: float
    machines: Hosts
    text: str


def load(path: str, forward_unknown: bool) -> list[Event]:
    """Read an events file (one JSON object a line) in the order in which the events occur.

    Raises:
        BridgeError: naming file:line.
    """
    lines = read_text(path, path, "Give --events a file.").split("\n")
    events = [_event(line, f"{path}:{i}", forward_unknown) for i, line in enumerate(lines, 1) if line]
    return sorted(events, key=lambda event: (event.time, _RANK[event.kind]))


def _event(line: str, where: str, forward_unknown: bool) -> Event:
    given = read_json(line, where)
    kind, time = given.text("type"), given.amount("timestamp")
    if kind in (AVAILABLE, UNAVAILABLE):
        return Event(kind, time, given.hosts("resources"), "")
    if not forward_unknown:
        raise given.error(f"the type '{kind}' is unknown", "Add --forward-unknown-events.")
    return Event(OTHER, time, (), jsontext.dumps(given.given))
