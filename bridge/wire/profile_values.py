"""What a profile says, by its type: the numbers of it that a simulation needs, checked as they are read."""

import re
from collections.abc import Callable
from typing import Any

from bridge.base.errors import BridgeError
from bridge.wire import json_numbers
from bridge.wire.fields import Fields

#: The label that Batsim assumes where a profile names no storage.
DEFAULT_STORAGE = "pfs"
_POLL_S = 0.005
_SEND_S = 1e-7


def _composed(fields: Fields) -> dict[str, Any]:
    repeat = fields.integer("repeat", 1)
    if repeat <= 0:
        raise BridgeError(f"'repeat' is {repeat}", remedy="It must be positive.")
    return {"repeat": repeat, "seq": fields.texts("seq")}


def _pfs(fields: Fields) -> dict[str, Any]:
    if "bytes_to_read" not in fields and "bytes_to_write" not in fields:
        raise BridgeError("neither 'bytes_to_read' nor 'bytes_to_write' is given")
    label = "host" if "host" in fields and "storage" not in fields else "storage"
    return {
        "bytes_to_read": fields.amount("bytes_to_read", 0.0),
        "bytes_to_write": fields.amount("bytes_to_write", 0.0),
        "storage": fields.text(label, DEFAULT_STORAGE),
    }


def _recv(fields: Fields) -> dict[str, Any]:
    pattern = fields.text("regex", ".*")
    try:
        re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise BridgeError(f"'regex' is no regular expression: {error}") from None
    return {
        "regex": pattern,
        "polltime": fields.amount("polltime", _POLL_S, positive=True),
        **{key: fields.text(key, "") for key in ("success", "failure", "timeout")},
    }


def _parallel(fields: Fields) -> dict[str, Any]:
    cpu = fields.amounts("cpu", None)
    return {"cpu": cpu, "com": fields.amounts("com", len(cpu) ** 2)}


def _amounts(*keys: str, texts: tuple[str, ...] = ()) -> Callable[[Fields], dict[str, Any]]:
    return lambda fields: {k: fields.amount(k) for k in keys} | {k: fields.text(k) for k in texts}


#: Type -> what reads the numbers of such a profile.
READERS: dict[str, Callable[[Fields], dict[str, Any]]] = {
    "delay": lambda fields: {"delay": fields.amount("delay", positive=True)},
    "parallel": _parallel,
    "parallel_homogeneous": _amounts("cpu", "com"),
    "parallel_homogeneous_total": _amounts("cpu", "com"),
    "composed": _composed,
    "parallel_homogeneous_pfs": _pfs,
    "data_staging": _amounts("nb_bytes", texts=("from", "to")),
    "send": lambda fields: {
        "msg": json_numbers.dumps(fields.mapping("msg")),
        "sleeptime": fields.amount("sleeptime", _SEND_S, positive=True),
    },
    "recv": _recv,
}
