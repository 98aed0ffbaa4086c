"""External events: machines that become (un)available, and others that are only forwarded."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bridge.simgrid import intervals, jsontext
from bridge.simgrid.errors import ModelError
from bridge.simgrid.profiles import is_number

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
    machines: tuple[int, ...]
    text: str


def load(path: str, forward_unknown: bool) -> list[Event]:
    """Read an events file (one JSON object a line) in the order in which the events occur.

    Raises:
        ModelError: naming file:line.
    """
    try:
        lines = Path(path).read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise ModelError(f"cannot be read: {error}", where=path, remedy="Give --events a file.") from None
    events = [_event(line, f"{path}:{i}", forward_unknown) for i, line in enumerate(lines, 1) if line]
    return sorted(events, key=lambda event: (event.time, _RANK[event.kind]))


def _event(line: str, where: str, forward_unknown: bool) -> Event:
    try:
        fields: Any = jsontext.loads(line)
    except ValueError as error:
        raise ModelError(f"is not JSON: {error}", where=where) from None
    if not isinstance(fields, dict):
        raise ModelError("is not a JSON object", where=where)
    kind = fields.get("type")
    time: Any = fields.get("timestamp")
    if not isinstance(kind, str):
        raise ModelError("'type' is missing or not a string", where=where)
    if not is_number(time) or time < 0:
        raise ModelError("'timestamp' is missing or not a non-negative number", where=where)
    if kind not in (AVAILABLE, UNAVAILABLE):
        if not forward_unknown:
            raise ModelError(
                f"the type '{kind}' is unknown", where=where, remedy="Add --forward-unknown-events."
            )
        return Event(OTHER, float(time), (), jsontext.dumps(fields))
    resources = fields.get("resources")
    if not isinstance(resources, str):
        raise ModelError("'resources' is missing or not a string", where=where)
    try:
        machines = intervals.parse(resources)
    except ModelError as error:
        raise ModelError(error.what, where=where, remedy=error.remedy) from None
    return Event(kind, float(time), machines, "")
