"""External events: machines that become (un)available, and others that are only forwarded."""

from dataclasses import dataclass

from bridge.errors import BridgeError, placed
from bridge.simgrid.options import read_text
from bridge.wire import jsontext
from bridge.wire.fields import Fields, read_json
from bridge.wire.hosts import Hosts

BACK = "machine_available"
LOST = "machine_unavailable"
OTHER = "other"

#: Same-date events are sorted by kind in this order, as in Batsim.
_RANK = {BACK: 0, LOST: 1, OTHER: 2}


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
    events = []
    for number, line in enumerate(read_text(path, "Give --events a file.").split("\n"), 1):
        if line:
            with placed(f"{path}:{number}"):
                events.append(_event(read_json(line), forward_unknown))
    return sorted(events, key=lambda event: (event.time, _RANK[event.kind]))


def _event(given: Fields, forward_unknown: bool) -> Event:
    kind, time = given.text("type"), given.amount("timestamp")
    if kind in (BACK, LOST):
        return Event(kind, time, given.hosts("resources"), "")
    if not forward_unknown:
        raise BridgeError(f"the type '{kind}' is unknown", remedy="Add --forward-unknown-events.")
    return Event(OTHER, time, (), jsontext.dumps(given.given))
