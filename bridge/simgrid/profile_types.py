"""What a job does: Batsim's types of profiles, checked when they are read."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bridge.errors import BridgeError, placed
from bridge.simgrid.options import read_text
from bridge.wire import jsontext
from bridge.wire.fields import Fields

#: The types during which a job only sleeps and talks to the decision process.
SLEEPING = frozenset(("delay", "send", "recv"))

_POLL_S = 0.005
_SEND_S = 1e-7
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
        """Set what a composed profile consists of, complete profiles all, of not too many levels."""
        self.steps = steps
        self.levels = 1 + max((step.levels for step in steps), default=0)
        if self.levels > MOST_LEVELS:
            raise BridgeError(f"the profile '{self.name}' is composed in more than {MOST_LEVELS} levels")


def from_json(name: str, description: Any, folder: Path | None = None) -> Profile:
    """Return the profile that a JSON value describes; a BridgeError says what is wrong with it.

    ``folder`` is where the traces of a usage_trace lie; None for profiles that do not come from a file.
    """
    with placed(f"profile '{name}'"):
        given = Fields(description)
        kind, ret = given.text("type"), given.integer("ret", 0)
        if kind == "usage_trace":
            numbers = _usage_trace(given, folder)
        elif kind in _READERS:
            numbers = _READERS[kind](given)
        else:
            what = _UNSUPPORTED.get(kind, f"the type '{kind}' is unknown")
            raise BridgeError(what, remedy=f"Known types: {', '.join(_READERS)}, usage_trace.")
        return Profile(name, kind, ret, numbers, jsontext.dumps(description))


def _composed(given: Fields) -> dict[str, Any]:
    repeat = given.integer("repeat", 1)
    if repeat <= 0:
        raise BridgeError(f"'repeat' is {repeat}", remedy="It must be positive.")
    return {"repeat": repeat, "seq": given.texts("seq")}


def _pfs(given: Fields) -> dict[str, Any]:
    if "bytes_to_read" not in given and "bytes_to_write" not in given:
        raise BridgeError("neither 'bytes_to_read' nor 'bytes_to_write' is given")
    label = "host" if "host" in given and "storage" not in given else "storage"
    return {
        "bytes_to_read": given.amount("bytes_to_read", 0.0),
        "bytes_to_write": given.amount("bytes_to_write", 0.0),
        "storage": given.text(label, "pfs"),
    }


def _recv(given: Fields) -> dict[str, Any]:
    pattern = given.text("regex", ".*")
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise BridgeError(f"'regex' is no regular expression: {error}") from None
    return {
        "regex": pattern,
        "polltime": given.amount("polltime", _POLL_S, positive=True),
        **{key: given.text(key, "") for key in ("success", "failure", "timeout")},
    }


def _usage_trace(given: Fields, folder: Path | None) -> dict[str, Any]:
    trace = given.text("trace")
    if folder is None:
        what = "a usage_trace cannot be registered while the simulation runs"
        raise BridgeError(what, remedy="Put it in the workload file.")
    index = folder / trace
    return {"traces": [index.parent / name.rstrip() for name in read_text(index).splitlines()]}


def _parallel(given: Fields) -> dict[str, Any]:
    cpu = given.amounts("cpu", None)
    return {"cpu": cpu, "com": given.amounts("com", len(cpu) ** 2)}


def _amounts(*keys: str, texts: tuple[str, ...] = ()) -> Callable[[Fields], dict[str, Any]]:
    return lambda given: {k: given.amount(k) for k in keys} | {k: given.text(k) for k in texts}


_READERS: dict[str, Callable[[Fields], dict[str, Any]]] = {
    "delay": lambda given: {"delay": given.amount("delay", positive=True)},
    "parallel": _parallel,
    "parallel_homogeneous": _amounts("cpu", "com"),
    "parallel_homogeneous_total": _amounts("cpu", "com"),
    "composed": _composed,
    "parallel_homogeneous_pfs": _pfs,
    "data_staging": _amounts("nb_bytes", texts=("from", "to")),
    "send": lambda given: {
        "msg": jsontext.dumps(given.mapping("msg")),
        "sleeptime": given.amount("sleeptime", _SEND_S, positive=True),
    },
    "recv": _recv,
}
#: The types that become one parallel task of SimGrid.
PARALLEL = frozenset(_READERS) - SLEEPING - {"composed"}
_UNSUPPORTED = {
    "smpi": "SMPI replay is not supported",
    **{
        f"msg_par{old}": f"'msg_par{old}' is of Batsim 2; it is called 'parallel{new}' now"
        for old, new in (("", ""), ("_hg", "_homogeneous"), ("_hg_tot", "_homogeneous_total"))
    },
}
