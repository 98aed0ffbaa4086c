"""What a job does: the profiles of a workload, checked when they are read."""

from pathlib import Path
from typing import Any

from bridge.simgrid import jsontext
from bridge.simgrid.errors import ModelError

#: The types that become one parallel task of SimGrid.
PARALLEL = frozenset(
    (
        "parallel",
        "parallel_homogeneous",
        "parallel_homogeneous_total",
        "parallel_homogeneous_pfs",
        "data_staging",
    )
)
#: The types during which a job only sleeps and talks to the decision process.
SLEEPING = frozenset(("delay", "send", "recv"))

_POLL_S = 0.005
_SEND_S = 1e-7


class Profile:
    """One profile: its type, its numbers, and the JSON text it came from.

    ``numbers`` holds, by type: delay, s; cpu, flop, and com, bytes (scalars, or a vector and a row-major
    matrix); bytes_to_read and bytes_to_write and nb_bytes, bytes; sleeptime and polltime, s; repeat and seq;
    labels of storage.
    """

    __slots__ = ("kind", "name", "numbers", "ret", "steps", "text", "traces")

    def __init__(self, name: str, kind: str, ret: int, numbers: dict[str, Any], text: str) -> None:
        self.name = name
        self.kind = kind
        self.ret = ret
        self.numbers = numbers
        self.text = text
        self.steps: list[Profile] = []
        self.traces: list[Path] = []


def from_json(name: str, description: Any, where: str, folder: Path | None) -> Profile:
    """Read and check one profile.

    Args:
        name: its name in the workload.
        description: the JSON value.
        where: the file or message it stands in, for errors.
        folder: where the traces of a usage_trace lie; None for profiles that do not come from a file.

    Raises:
        ModelError: a field is missing or senseless, or the type is unknown or not supported.
    """
    check = _Check(description, f"{where}: profile '{name}'")
    kind = check.text("type")
    ret = check.integer("ret", default=0)
    reader = _READERS.get(kind)
    if reader is None:
        raise check.error(
            _UNSUPPORTED.get(kind, f"the type '{kind}' is unknown"), f"Known types: {', '.join(_READERS)}."
        )
    profile = Profile(name, kind, ret, reader(check), jsontext.dumps(description))
    if kind == "usage_trace":
        profile.traces = _traces(check, folder)
    return profile


class _Check:
    """Field access that knows where it stands when it must complain."""

    def __init__(self, description: Any, where: str) -> None:
        self.where = where
        if not isinstance(description, dict):
            raise self.error("is not an object", "A profile is an object with a 'type'.")
        self.fields: dict[str, Any] = description

    def error(self, what: str, remedy: str = "") -> ModelError:
        return ModelError(what, where=self.where, remedy=remedy)

    def any(self, key: str) -> Any:
        if key not in self.fields:
            raise self.error(f"the field '{key}' is missing")
        return self.fields[key]

    def text(self, key: str, default: str | None = None) -> str:
        value = self.fields.get(key, default) if default is not None else self.any(key)
        if not isinstance(value, str):
            raise self.error(f"the field '{key}' is not a string")
        return value

    def integer(self, key: str, default: int) -> int:
        value = self.fields.get(key, default)
        if type(value) is not int:
            raise self.error(f"the field '{key}' is not an integer")
        return value

    def amount(self, key: str, default: float | None = None, positive: bool = False) -> float:
        value = self.fields.get(key, default) if default is not None else self.any(key)
        if not is_number(value):
            raise self.error(f"the field '{key}' is not a number")
        if value < 0 or (positive and value == 0):
            raise self.error(
                f"the field '{key}' is {value}", f"It must be {'positive' if positive else 'at least 0'}."
            )
        return float(value)

    def amounts(self, key: str, size: int | None) -> list[float]:
        values = self.any(key)
        if not isinstance(values, list) or not all(is_number(v) and v >= 0 for v in values):
            raise self.error(f"the field '{key}' is not an array of numbers that are at least 0")
        if not values or (size is not None and len(values) != size):
            raise self.error(
                f"the array '{key}' has {len(values)} numbers", f"{size or 'At least 1'} are needed."
            )
        return [float(v) for v in values]


def is_number(value: Any) -> bool:
    """Whether a JSON value is a number (true and false are not)."""
    return type(value) is int or type(value) is float


def _delay(check: _Check) -> dict[str, Any]:
    return {"delay": check.amount("delay", positive=True)}


def _parallel(check: _Check) -> dict[str, Any]:
    cpu = check.amounts("cpu", None)
    return {"cpu": cpu, "com": check.amounts("com", len(cpu) ** 2)}


def _homogeneous(check: _Check) -> dict[str, Any]:
    return {"cpu": check.amount("cpu"), "com": check.amount("com")}


def _composed(check: _Check) -> dict[str, Any]:
    repeat = check.integer("repeat", default=1)
    if repeat <= 0:
        raise check.error(f"the field 'repeat' is {repeat}", "It must be positive.")
    names = check.any("seq")
    if not isinstance(names, list) or not names or not all(isinstance(n, str) for n in names):
        raise check.error("the field 'seq' is not a non-empty array of profile names")
    return {"repeat": repeat, "seq": names}


def _pfs(check: _Check) -> dict[str, Any]:
    if "bytes_to_read" not in check.fields and "bytes_to_write" not in check.fields:
        raise check.error("neither 'bytes_to_read' nor 'bytes_to_write' is given")
    label = "host" if "host" in check.fields and "storage" not in check.fields else "storage"
    return {
        "bytes_to_read": check.amount("bytes_to_read", 0.0),
        "bytes_to_write": check.amount("bytes_to_write", 0.0),
        "storage": check.text(label, "pfs"),
    }


def _staging(check: _Check) -> dict[str, Any]:
    return {"nb_bytes": check.amount("nb_bytes"), "from": check.text("from"), "to": check.text("to")}


def _send(check: _Check) -> dict[str, Any]:
    message = check.any("msg")
    if not isinstance(message, dict):
        raise check.error("the field 'msg' is not an object")
    return {"msg": jsontext.dumps(message), "sleeptime": check.amount("sleeptime", _SEND_S, positive=True)}


def _recv(check: _Check) -> dict[str, Any]:
    texts = {key: check.text(key, "") for key in ("success", "failure", "timeout")}
    return texts | {
        "regex": check.text("regex", ".*"),
        "polltime": check.amount("polltime", _POLL_S, positive=True),
    }


def _usage_trace(check: _Check) -> dict[str, Any]:
    return {"trace": check.text("trace")}


def _traces(check: _Check, folder: Path | None) -> list[Path]:
    if folder is None:
        raise check.error(
            "a usage_trace cannot be registered while the simulation runs", "Put it in the workload file."
        )
    index = folder / check.text("trace")
    try:
        names = index.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise check.error(f"the trace '{index}' cannot be read: {error}") from None
    return [index.parent / name.rstrip() for name in names]


_READERS = {
    "delay": _delay,
    "parallel": _parallel,
    "parallel_homogeneous": _homogeneous,
    "parallel_homogeneous_total": _homogeneous,
    "composed": _composed,
    "parallel_homogeneous_pfs": _pfs,
    "data_staging": _staging,
    "send": _send,
    "recv": _recv,
    "usage_trace": _usage_trace,
}
_UNSUPPORTED = {
    "smpi": "SMPI replay is not supported",
    "msg_par": "'msg_par' is of Batsim 2; it is called 'parallel' now",
    "msg_par_hg": "'msg_par_hg' is of Batsim 2; it is called 'parallel_homogeneous' now",
    "msg_par_hg_tot": "'msg_par_hg_tot' is of Batsim 2; it is called 'parallel_homogeneous_total' now",
}
