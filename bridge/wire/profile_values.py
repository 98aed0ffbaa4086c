"""What a profile says, by its type: the numbers of it that a simulation needs, checked as they are read."""

import re
from collections.abc import Callable
from typing import Any

from bridge.errors import BridgeError
from bridge.wire import jsontext
from bridge.wire.fields import Fields

#: The label that Batsim assumes where a profile names no storage.
DEFAULT_STORAGE = "pfs"
_POLL_S = 0.005
_SEND_S = 1e-7


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
        "storage": given.text(label, DEFAULT_STORAGE),
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


def _parallel(given: Fields) -> dict[str, Any]:
    cpu = given.amounts("cpu", None)
    return {"cpu": cpu, "com": given.amounts("com", len(cpu) ** 2)}


def _amounts(*keys: str, texts: tuple[str, ...] = ()) -> Callable[[Fields], dict[str, Any]]:
    return lambda given: {k: given.amount(k) for k in keys} | {k: given.text(k) for k in texts}


#: Type -> what reads the numbers of such a profile.
READERS: dict[str, Callable[[Fields], dict[str, Any]]] = {
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
