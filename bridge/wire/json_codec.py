"""How JSON dialects spell what is said: tables that read and write the same fields, in both directions.

A dialect is two tables, of events and of decisions. A row of a table names the fields of one kind in the
order of the type's own; each field knows how it is read and written. Both sides of the wire can be read and
written, so that whatever was recorded can be compared with what is understood of it.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from decimal import Decimal
from json.encoder import encode_basestring
from typing import Any, NamedTuple, TypeVar, cast

from bridge.base import jsontext
from bridge.base.errors import BridgeError
from bridge.wire import events as ev
from bridge.wire import hosts, times
from bridge.wire.events import WireItem

#: How a job can have ended.
JOB_STATES = frozenset(
    {"COMPLETED_SUCCESSFULLY", "COMPLETED_FAILED", "COMPLETED_WALLTIME_REACHED", "COMPLETED_KILLED"}
)
_INT64 = 1 << 63
#: Digits of the number of a power state, at most.
_DIGITS = 9
#: Characters of what an error shows of a message.
_MOST = 300

Object = dict[str, Any]
_T = TypeVar("_T")


class MalformedError(Exception):
    """An event has a wrong value; the caller adds the event's place."""


# How one field is written: value -> JSON text.


def _plain(value: Any) -> Any:
    if isinstance(value, Decimal):  # copied from a message
        return int(value) if value == value.to_integral_value() else float(value)
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} cannot travel as JSON")


text_of = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain).encode


def is_json(value: object) -> bool:
    try:
        jsontext.loads(text_of(value))
    except (TypeError, ValueError, ArithmeticError, RecursionError):
        return False
    return True


def members(fields: Mapping[str, Any]) -> str:
    """Return the members of a JSON object, without its braces."""
    return text_of(fields)[1:-1]


# How one field is read: (object, key) -> value.


def typed(kind: type[_T], name: str) -> Callable[..., _T]:
    """Return a reader of fields of one type; a third argument stands in for a missing one."""

    def read(data: Object, key: str, default: _T | None = None) -> _T:
        value = data.get(key, default)
        if type(value) is not kind:
            raise MalformedError(f"'{key}' is {'missing or ' if default is None else ''}no {name}")
        return value

    return read


text = typed(str, "string")
flag = typed(bool, "truth value")
obj: Callable[..., Object] = typed(dict, "object")
array: Callable[..., list[Any]] = typed(list, "array")
_integer = typed(int, "whole number")


def objects(data: Object, key: str, *default: list[Object]) -> list[Object]:
    items = array(data, key, *default)
    if not all(type(one) is dict for one in items):
        raise MalformedError(f"'{key}' holds no object")
    return items


def read_int64(data: Object, key: str) -> int:
    """Read a whole number of 64 bits."""
    value = _integer(data, key)
    if not -_INT64 <= value < _INT64:
        raise MalformedError(f"'{key}' does not fit into 64 bits")
    return value


def seconds(data: Object, key: str) -> int:
    try:
        return times.micro(data[key])
    except KeyError:
        raise MalformedError(f"'{key}' is missing") from None
    except ValueError as error:
        raise MalformedError(f"'{key}': {error}") from None


def time(data: Object, key: str) -> int:
    """Read seconds, not negative, as microseconds."""
    moment = seconds(data, key)
    if moment < 0:
        raise MalformedError(f"'{key}' is negative")
    return moment


def _hosts(data: Object, key: str) -> hosts.Hosts:
    try:
        return hosts.parse(text(data, key))
    except ValueError as error:
        raise MalformedError(f"'{key}': {error}") from None


def _job_state(data: Object, key: str) -> str:
    state = text(data, key)
    if state not in JOB_STATES:
        raise MalformedError(f"the job state {state!r} is unknown")
    return state


def _power_state(data: Object, key: str) -> int:
    state = text(data, key)
    if not (state.isascii() and state.isdigit() and len(state) <= _DIGITS):
        raise MalformedError(f"'{key}' is {state!r}, not the number of a power state")
    return int(state)


def _texts(data: Object, key: str) -> tuple[str, ...]:
    texts = array(data, key)
    if not all(type(one) is str for one in texts):
        raise MalformedError(f"'{key}' is no array of strings")
    return tuple(texts)


def _number(data: Object, key: str) -> float:
    value = data.get(key)
    if type(value) is not int and not isinstance(value, Decimal):
        raise MalformedError(f"'{key}' is missing or no number")
    return float(value)


class FieldCodec(NamedTuple):
    """How a field is read, from an object by its key, and its value written, as JSON text."""

    read: Callable[[Object, str], Any]
    write: Callable[[Any], str] = text_of


TEXT, OBJECT, WHOLE, NUMBER = (
    FieldCodec(text, encode_basestring),
    FieldCodec(obj),
    FieldCodec(read_int64),
    FieldCodec(_number),
)
TEXTS, JOB_STATE = FieldCodec(_texts), FieldCodec(_job_state)
TIME = FieldCodec(time, times.text_of)
HOSTS = FieldCodec(_hosts, lambda some: f'"{hosts.text_of(some)}"')
#: The number of a power state, as text.
PSTATE = FieldCodec(_power_state, lambda state: f'"{state}"')


def optional(one: FieldCodec) -> FieldCodec:
    """Return a field that may be missing: None."""
    return FieldCodec(lambda data, key: one.read(data, key) if key in data else None, one.write)


class CodecRow:
    """One kind of event or decision: the dialect's name, our kind, and the data's `fields`.

    These are in the order of the type's own; what stands there besides is carried along.
    """

    def __init__(self, name: str, kind: type[WireItem], **fields: FieldCodec) -> None:
        self.name, self.kind = name, kind
        names = tuple(kind.__dataclass_fields__)[2 : 2 + len(fields)]  # behind time and more
        self._readers = tuple((one.read, key) for key, one in fields.items())
        self._writers = tuple(
            (name, f'"{key}":', one.write) for name, (key, one) in zip(names, fields.items(), strict=True)
        )
        self._field_names = frozenset(fields)

    def read(self, at: int, data: Object) -> WireItem:
        """Return the event or decision of JSON data."""
        values = [read(data, key) for read, key in self._readers]
        return self.kind(at, *values, extra_fields=unread_fields(data, self._field_names))

    def write(self, item: WireItem) -> tuple[str, str]:
        """Return the dialect's name and the members of the data."""
        parts = [
            head + write(value)
            for name, head, write in self._writers
            if (value := getattr(item, name)) is not None
        ]
        if item.extra_fields:
            parts.append(members(item.extra_fields))
        return self.name, ",".join(parts)


def unread_fields(data: Object, valid_names: AbstractSet[str]) -> Object | None:
    """Return an object's other keys and values; None if there are none."""
    if data.keys() <= valid_names:
        return None
    return {key: value for key, value in data.items() if key not in valid_names}


def resources(
    data: Object, key: str, count: str, first: int, properties: Callable[[Object], dict[str, str]]
) -> tuple[ev.HostInfo, ...]:
    """Read hosts; their number must be that of another field, their ids begin with `first`."""
    hosts = array(data, key)
    if len(hosts) != read_int64(data, count):
        raise MalformedError(f"'{count}' is {data[count]}, but '{key}' has {len(hosts)} entries")
    host_infos = []
    for k, one in enumerate(hosts):
        if type(one) is not dict or one.get("id") != first + k:
            raise MalformedError(f"{key}[{k}] is no object with the id {first + k}")
        more = unread_fields(one, {"id", "name", "state", "properties"})
        state = str(one.get("state", "idle")).lower()
        host_infos.append(ev.HostInfo(first + k, text(one, "name"), state, properties(one), more))
    return tuple(host_infos)


def write_host(one: ev.HostInfo, properties: Any) -> Object:
    own = {"id": one.id, "name": one.name, "state": one.state, "properties": properties}
    return own | dict(one.extra_fields or {})


#: What reads (time, data), and what gives (the dialect's name, the members of the data).
Reader = Callable[[int, Object], WireItem]
Writer = Callable[[Any], tuple[str, str]]


class CodecTable:
    """The events or the decisions of a dialect: rows, and kinds that need functions of their own.

    `read`: by the dialect's name; `write`: by our type; `foreign`: names of decisions that we never take.
    """

    def __init__(
        self,
        rows: Sequence[CodecRow],
        read: Mapping[str, Reader],
        write: Mapping[type[WireItem], Writer],
        foreign: Iterable[str] = (),
    ) -> None:
        others = {name: passthrough_reader(ev.OpaqueDecision, name) for name in foreign}
        self.read: dict[str, Reader] = {row.name: row.read for row in rows} | others | dict(read)
        self.write: dict[type[WireItem], Writer] = {row.kind: row.write for row in rows}
        self.write |= write
        self.write[ev.OpaqueDecision] = lambda item: (item.kind, members(item.fields))


def passthrough_reader(kind: type[ev.Notification | ev.OpaqueDecision], name: str) -> Reader:
    """Return a reader that keeps an event as it is."""
    return lambda at, data: kind(at, name, data)


class JsonCodec:
    """A codec of JSON objects with ``now`` and ``events``; `kind` and `data`: the keys of an event."""

    events: CodecTable
    decisions: CodecTable
    name = "Batsim"
    kind, data = "type", "data"

    def greet(self, frame: bytes) -> bytes | None:  # noqa: ARG002
        """Return the dialect's own answer to a frame without events (a handshake), None for a message."""
        return None

    def decode(self, frame: bytes, number: int) -> ev.Message:
        """Return a frame as a message; `number` is its place, from 1, which BridgeError names."""
        now, items = self._read(frame, number, self.events, late=False)
        return ev.Message(now, cast("tuple[ev.Event, ...]", items))

    def encode(self, reply: ev.Reply) -> bytes:
        return self._write(reply.now, reply.decisions, self.decisions)

    def decode_reply(self, frame: bytes, number: int) -> ev.Reply:
        """Return the other direction's frame, as a decision process sent it; see `decode`."""
        now, items = self._read(frame, number, self.decisions, late=True)
        return ev.Reply(now, cast("tuple[ev.Decision, ...]", items))

    def encode_message(self, message: ev.Message) -> bytes:
        return self._write(message.now, message.events, self.events)

    def _document(self, frame: bytes) -> Any:
        return jsontext.loads(frame.decode(), exact=True)

    def _time_text(self, at: int) -> str:
        return times.text_of(at)

    def _read(
        self, frame: bytes, number: int, table: CodecTable, *, late: bool
    ) -> tuple[int, tuple[WireItem, ...]]:
        """Return the time and what is said; `late`: also of times later than that."""
        place = ""
        kind: object = None
        data: Object = {}
        try:
            try:
                document = self._document(frame)
            except ValueError as error:
                raise MalformedError(f"is no JSON text ({error})") from None
            if type(document) is not dict:
                raise MalformedError("is no JSON object")
            now, clock = time(document, "now"), document["now"]
            items = []
            for k, event in enumerate(array(document, "events")):
                place, kind, data = f", events[{k}]", None, {}
                if type(event) is not dict:
                    raise MalformedError("is no object")
                kind = event.get(self.kind)
                read = table.read.get(kind) if type(kind) is str else None
                if read is None:
                    raise MalformedError(f"the type {kind!r} is unknown")
                timestamp = event.get("timestamp")
                at = (
                    now if type(timestamp) is type(clock) and timestamp == clock else time(event, "timestamp")
                )
                if at > now and not late:
                    raise MalformedError("'timestamp' is later than the message's 'now'")
                data = obj(event, self.data, {})
                items.append(read(at, data))
        except MalformedError as fault:
            if type(kind) is str and kind in table.read:
                place += f" ({kind})"
            if type(data.get("job_id")) is str:
                place += f", job {data['job_id']}"
            raise BridgeError(
                jsontext.shortened(str(fault), _MOST),
                where=f"message {number}{jsontext.shortened(place, _MOST)}",
                remedy=f"Is the other side {self.name} (or a stand-in), and of a version that is supported?",
            ) from None
        return now, tuple(items)

    def _write(self, now: int, items: Iterable[WireItem], table: CodecTable) -> bytes:
        clock = self._time_text(now)
        parts = []
        for one in items:
            name, data = table.write[type(one)](one)
            at = clock if one.time == now else self._time_text(one.time)
            parts.append(f'{{"timestamp":{at},"{self.kind}":"{name}","{self.data}":{{{data}}}}}')
        return f'{{"now":{clock},"events":[{",".join(parts)}]}}'.encode()


def detect_dialect(frame: bytes) -> str:
    """Return the dialect that a first frame is in: Batsim 5 sends a length and a text, 4 a message."""
    text = len(frame) - 4
    return "batsim5" if text >= 0 and int.from_bytes(frame[:4], "little") == text else "batsim4"
