"""Transcripts: what a Batsim and a decision process said to each other, as JSON lines, and its normal form.

Batsim 4: ``transcript.jsonl``, ``{"dir": "batsim->sched", "raw": text}``. Batsim 5: ``messages.jsonl``,
``{"from": "batsim" or "edc", "frame": …}``, where the first frame of each is of the handshake; a session in
FlatBuffers has ``hex`` and ``message``, its JSON.
"""

import json
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from bridge.base import jsontext
from bridge.base.errors import BridgeError
from bridge.base.files import read_text
from bridge.wire import hosts

FILES = {"transcript.jsonl": "batsim4", "messages.jsonl": "batsim5"}
#: Who says a frame -> whether it is Batsim.
_SIDES = {"batsim": True, "edc": False, "batsim->sched": True, "sched->batsim": False}
#: Seconds; the clock has microseconds.
_TIMES = frozenset({"now", "timestamp", "submission_time", "subtime", "walltime"})
_HOSTS = frozenset({"alloc", "resources", "host_allocation", "host_ids"})
#: What a field is where it is left out, or null, or an empty list or object.
_DEFAULTS: dict[str, Any] = {
    "rigid": True,
    "extra_data": "",
    "last_periodic_call": False,
    "strategy": "SpreadOverHostsFirst",
    "generation_strategy": "DefinedAmountsUsedForEachValue",
    "time_unit": "Second",
    "repetition_count": 1,
    "bytes_to_read": 0,
    "bytes_to_write": 0,
    "state": "IDLE",
}
#: Enums may go by number.
_NUMBERED = {
    "executor_placement_type": {
        1: "PredefinedExecutorPlacementStrategyWrapper",
        2: "CustomExecutorToHostMapping",
    }
}


@dataclass(frozen=True)
class Frame:
    """One frame as it went over the wire; `platform`: Batsim's."""

    platform: bool
    content: bytes


@dataclass(frozen=True)
class Transcript:
    """A simulation's frames in order; `transcribed`: the session was binary, and these are its JSON."""

    dialect: str
    frames: tuple[Frame, ...]
    transcribed: bool = False


def read(case: Path) -> Transcript:
    """Read a transcript, its file or folder; BridgeError: there is none, or a line is none of one."""
    path = case
    if case.is_dir():
        path = next((case / name for name in FILES if (case / name).exists()), case / "messages.jsonl")
    frames, dialect, transcribed = [], "batsim4", False
    lines = read_text(path).splitlines() if not path.exists() or path.stat().st_size else []
    for n, line in enumerate(lines, 1):
        try:
            record = jsontext.loads(line)
            if "raw" in record:
                frames.append(Frame(_SIDES[record["dir"]], str(record["raw"]).encode()))
                continue
            dialect, transcribed = "batsim5", transcribed or "hex" in record
            frames.append(_frame5(record))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            what = f"is no line of a transcript ({type(error).__name__}: {error})"
            remedy = "Name the folder of a recorded session, or its .jsonl file."
            raise BridgeError(what, where=f"{path}, line {n}", remedy=remedy) from None
    return Transcript(dialect, tuple(frames), transcribed)


def _frame5(record: dict[str, Any]) -> Frame:
    platform = _SIDES[record["from"]]
    message = record["message"] if "hex" in record else record["frame"]
    if platform and (message is None or "init_size" in message):
        return Frame(True, bytes.fromhex(record["hex"]) if message is None else _sized(message))
    if "flags" in message:
        return Frame(False, _hello(message["message"]))
    content = json.dumps(message).encode()
    if platform:
        return Frame(True, content + b"\0")
    events = message.get("events") or [{}]
    return Frame(False, _hello(message) if events[0].get("event_type") == "EDCHelloEvent" else content)


def _sized(hello: dict[str, Any]) -> bytes:
    text = str(hello["init_data"]).encode()
    if hello["init_size"] != len(text):
        raise ValueError(f"init_size is {hello['init_size']}, the text has {len(text)} bytes")
    return len(text).to_bytes(4, "little") + text


def _hello(message: dict[str, Any]) -> bytes:
    return (2).to_bytes(4, "little") + json.dumps(message).encode()


def canonical(content: bytes) -> bytes:
    """Return the one form of a JSON frame that all its spellings have in common.

    Keys are sorted; numbers are exact, whole ones without a point; times are rounded to microseconds; sets of
    hosts have the fewest intervals; what is null, empty or a default is left out.
    """
    document = jsontext.loads(content.rstrip(b"\0").decode(), exact=True)
    normal = _normal(document, "")
    return json.dumps(normal, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def _normal(value: Any, key: str) -> Any:
    if isinstance(value, dict):
        pairs = {name: _normal(one, name) for name, one in value.items()}
        if isinstance(value.get("job"), dict) and "job_id" in value:
            pairs["job"].pop("id", None)  # Batsim 4 takes it with and without its workload
        if key == "mapping":
            return {rank: str(place) for rank, place in pairs.items()}
        return {name: one for name, one in pairs.items() if not _is_default(name, one)}
    if isinstance(value, list):
        return [_normal(one, "") for one in value]
    if isinstance(value, (int, float, Decimal)) and not isinstance(value, bool):
        if key in _NUMBERED:
            return _NUMBERED[key].get(int(value), value)
        exact = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
        if key in _TIMES:
            exact = exact.quantize(Decimal("0.000001"))
        return int(exact) if exact == exact.to_integral_value() else repr(float(exact))
    if isinstance(value, str) and key in _HOSTS:
        try:
            return hosts.text_of(hosts.parse(value))
        except ValueError:
            return value
    return value


def _is_default(key: str, value: Any) -> bool:
    return value is None or value in ([], {}) or (key in _DEFAULTS and value == _DEFAULTS[key])
