"""What a job does: Batsim's types of profiles, checked when they are read."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bridge.base.errors import BridgeError, add_location
from bridge.wire import json_numbers
from bridge.wire.fields import Fields
from bridge.wire.profile_values import READERS
from bridge.worlds.simgrid.options import read_text

#: The types during which a job only sleeps and talks to the decision process.
SLEEPING = frozenset(("delay", "send", "recv"))

#: Profiles composed of profiles composed of profiles …, at most.
MOST_LEVELS = 100


@dataclass(slots=True, eq=False)
class Profile:
    """One profile: its type, its numbers, and the JSON text it came from.

    ``numbers`` holds, by type: delay, s; cpu, flop, and com, bytes (scalars, or a vector and a row-major
    matrix); bytes_to_read and bytes_to_write and nb_bytes, bytes; sleeptime and polltime, s; repeat and seq;
    labels of storage; traces, files.
    """

    name: str
    kind: str
    ret: int
    numbers: dict[str, Any]
    text: str
    steps: list["Profile"] = field(default_factory=list)
    levels: int = 1

    def compose(self, steps: list["Profile"]) -> None:
        """Set the parts of a composed profile: complete profiles, of a bounded number of levels."""
        self.steps = steps
        self.levels = 1 + max((step.levels for step in steps), default=0)
        if self.levels > MOST_LEVELS:
            raise BridgeError(f"the profile '{self.name}' is composed in more than {MOST_LEVELS} levels")


def from_json(name: str, description: Any, folder: Path | None = None) -> Profile:
    """Return the profile that a JSON value describes; a BridgeError says what is wrong with it.

    ``folder`` is where the traces of a usage_trace lie; None for profiles that do not come from a file.
    """
    with add_location(f"profile '{name}'"):
        fields_read = Fields(description)
        kind, ret = fields_read.text("type"), fields_read.integer("ret", 0)
        if kind == "usage_trace":
            numbers = _usage_trace(fields_read, folder)
        elif kind in READERS:
            numbers = READERS[kind](fields_read)
        else:
            what = _UNSUPPORTED.get(kind, f"the type '{kind}' is unknown")
            raise BridgeError(what, remedy=f"Known types: {', '.join(READERS)}, usage_trace.")
        return Profile(name, kind, ret, numbers, json_numbers.dumps(description))


def _usage_trace(description: Fields, folder: Path | None) -> dict[str, Any]:
    trace = description.text("trace")
    if folder is None:
        what = "a usage_trace cannot be registered while the simulation runs"
        raise BridgeError(what, remedy="Put it in the workload file.")
    index = folder / trace
    return {"traces": [index.parent / name.rstrip() for name in read_text(index).splitlines()]}


#: The types that become one parallel task of SimGrid.
PARALLEL = frozenset(READERS) - SLEEPING - {"composed"}
_UNSUPPORTED = {
    "smpi": "SMPI replay is not supported",
    **{
        f"msg_par{old}": f"'msg_par{old}' is of Batsim 2; it is called 'parallel{new}' now"
        for old, new in (("", ""), ("_hg", "_homogeneous"), ("_hg_tot", "_homogeneous_total"))
    },
}
