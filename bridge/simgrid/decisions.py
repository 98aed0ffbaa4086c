"""Answers of the decision process: parsed, checked, and turned into messages to the server.

A message to the server is a pair: the name of its handler, and what the handler needs. What an answer refers
to is looked up when its turn has come, not before: an earlier decision of the same answer may have changed
it.
"""

import math
from collections.abc import Callable, Iterator
from typing import Any

from bridge.simgrid import intervals, jsontext, kernel, profiles, workload
from bridge.simgrid.errors import ModelError
from bridge.simgrid.kernel import Actor
from bridge.simgrid.model import Model, split_id
from bridge.simgrid.profiles import Profile, is_number
from bridge.simgrid.ptask import Allocation
from bridge.simgrid.workload import Workload

Message = tuple[str, Any]

_JOB_STATES = (
    "NOT_SUBMITTED", "RUNNING", "COMPLETED_SUCCESSFULLY", "COMPLETED_FAILED", "COMPLETED_WALLTIME_REACHED",
    "COMPLETED_KILLED", "REJECTED",
)  # fmt: skip


def ask_actor(model: Model, message: str) -> Actor:
    """Send a message to the decision process, and carry its decisions to the server, each at its date."""
    assert model.peer is not None
    answer = model.peer.ask(message)
    where = f"answer {model.peer.answers}"
    now, events = _open(answer, where)
    for i, event in enumerate(events):
        timestamp, messages = _decode(model, event, now, f"{where}, event {i}")
        for decision in messages:
            if timestamp > model.clock():
                yield kernel.SLEEP, timestamp - model.clock()
            yield kernel.PUT, "server", decision
    if now > model.clock():
        yield kernel.SLEEP, now - model.clock()
    yield kernel.PUT, "server", ("sched_ready", None)


def _open(answer: bytes, where: str) -> tuple[float, list[Any]]:
    try:
        document = jsontext.loads_message(answer)
    except (ValueError, RecursionError) as error:
        raise ModelError(f"is not JSON: {error}", where=where) from None
    if not isinstance(document, dict):
        raise ModelError("is not a JSON object", where=where, remedy='Answer {"now": …, "events": […]}.')
    now: Any = document.get("now")
    events = document.get("events")
    if not is_number(now) or not math.isfinite(now):
        raise ModelError("'now' is missing or not a number", where=where)
    if not isinstance(events, list):
        raise ModelError("'events' is missing or not an array", where=where)
    return float(now), events


def _decode(model: Model, event: Any, now: float, where: str) -> tuple[float, Iterator[Message]]:
    if not isinstance(event, dict):
        raise ModelError("is not an object", where=where)
    timestamp: Any = event.get("timestamp")
    kind = event.get("type")
    if not is_number(timestamp) or not timestamp <= now:
        raise ModelError(f"'timestamp' is {timestamp}, not a number up to now = {now:g}", where=where)
    if not isinstance(kind, str) or kind not in _DECODERS:
        raise ModelError(
            f"the type '{kind}' is unknown", where=where, remedy=f"Known: {', '.join(_DECODERS)}."
        )
    data = event.get("data")
    place = f"{where} ({kind})"
    if not isinstance(data, dict):
        raise ModelError("'data' is missing or not an object", where=place)
    return float(timestamp), _DECODERS[kind](model, data, place)


def _only(data: dict[str, Any], keys: tuple[str, ...], where: str, optional: tuple[str, ...] = ()) -> None:
    missing = [key for key in keys if key not in data]
    if missing:
        raise ModelError(f"'{missing[0]}' is missing", where=where)
    extra = [key for key in data if key not in keys and key not in optional]
    if extra:
        raise ModelError(
            f"'{extra[0]}' does not belong here", where=where, remedy="Batsim refuses such an event."
        )


def _text(data: dict[str, Any], key: str, where: str) -> str:
    value = data.get(key)
    if not isinstance(value, str):
        raise ModelError(f"'{key}' is missing or not a string", where=where)
    return value


def _machines(data: dict[str, Any], key: str, where: str) -> tuple[int, ...]:
    try:
        return intervals.parse(_text(data, key, where))
    except ModelError as error:
        raise ModelError(error.what, where=where, remedy=error.remedy) from None


def _query(model: Model, data: dict[str, Any], where: str) -> Iterator[Message]:
    _only(data, ("requests",), where)
    requests = data["requests"]
    if not isinstance(requests, dict) or not requests:
        raise ModelError("'requests' is not a non-empty object", where=where)
    for name, value in requests.items():
        if name != "consumed_energy":
            raise ModelError(
                f"the request '{name}' is unknown", where=where, remedy="Known: consumed_energy."
            )
        if value != {}:
            raise ModelError("'consumed_energy' is not an empty object", where=where)
        if not model.options.energy:
            raise ModelError("energy is not simulated", where=where, remedy="Add --energy (-E).")
        yield "tell_energy", where


def _answer(_model: Model, data: dict[str, Any], where: str) -> Iterator[Message]:
    for name in data:
        if name != "estimate_waiting_time":
            raise ModelError(f"the answer '{name}' is unknown", where=where)
    # Batsim reads such an estimate and does nothing with it.
    yield from ()


def _reject(_model: Model, data: dict[str, Any], where: str) -> Iterator[Message]:
    _only(data, ("job_id",), where)
    yield "reject_job", (_text(data, "job_id", where), where)


def _execute(model: Model, data: dict[str, Any], where: str) -> Iterator[Message]:
    _only(data, ("job_id", "alloc"), where, ("mapping", "storage_mapping", "additional_io_job"))
    if len(data) > 3:
        raise ModelError("has more than one of mapping, storage_mapping and additional_io_job", where=where)
    job = model.job(_text(data, "job_id", where), where)
    allocation = Allocation(_machines(data, "alloc", where))
    if "mapping" in data:
        allocation.mapping = _mapping(data["mapping"], len(allocation.machines), where)
    if "storage_mapping" in data:
        allocation.storage = _storage_mapping(data["storage_mapping"], where)
    if "additional_io_job" in data:
        _additional_io(data["additional_io_job"], job, allocation, where)
    yield "execute_job", (job, allocation, where)


def _mapping(value: Any, size: int, where: str) -> list[int]:
    if not isinstance(value, dict) or not value:
        raise ModelError("'mapping' is not a non-empty object", where=where)
    try:
        places = {
            int(rank): place if type(place) is int else int(str(place)) for rank, place in value.items()
        }
    except ValueError:
        raise ModelError("'mapping' has a key or value that is not an integer", where=where) from None
    ranks = [places.get(rank, -1) for rank in range(len(places))]
    if not all(0 <= place < size for place in ranks):
        raise ModelError(
            "'mapping' does not give each rank, from 0 on, a place in the allocation",
            where=where,
            remedy=f"Keys are 0 to {len(places) - 1}, values 0 to {size - 1}: indexes within 'alloc'.",
        )
    return ranks


def _storage_mapping(value: Any, where: str) -> dict[str, int]:
    if (
        not isinstance(value, dict)
        or not value
        or not all(type(machine) is int for machine in value.values())
    ):
        raise ModelError(
            "'storage_mapping' is not a non-empty object from labels to machine ids", where=where
        )
    return value


def _additional_io(value: Any, job: workload.Job, allocation: Allocation, where: str) -> None:
    if not isinstance(value, dict):
        raise ModelError("'additional_io_job' is not an object", where=where)
    name = _text(value, "profile_name", where)
    if "profile" in value:
        profile = profiles.from_json(name, value["profile"], where, None)
        job.workload.add_profile(profile, where)
    profile = job.workload.profile(name, where)
    _check_io_steps(job.profile, profile, where)
    allocation.io_profile = profile
    allocation.io_machines = _machines(value, "alloc", where)


def _check_io_steps(own: Profile, io: Profile, where: str) -> None:
    if own.kind != "composed" and io.kind != "composed":
        return
    if own.kind != io.kind or len(own.steps) != len(io.steps):
        raise ModelError(
            f"the composed profiles '{own.name}' and '{io.name}' cannot be merged step by step", where=where
        )
    for step, extra in zip(own.steps, io.steps, strict=True):
        _check_io_steps(step, extra, where)


def _call_me_later(_model: Model, data: dict[str, Any], where: str) -> Iterator[Message]:
    _only(data, ("timestamp",), where)
    if not is_number(data["timestamp"]) or not math.isfinite(data["timestamp"]):
        raise ModelError("'timestamp' in 'data' is not a number", where=where)
    yield "call_me_later", (float(data["timestamp"]), where)


def _set_resource_state(model: Model, data: dict[str, Any], where: str) -> Iterator[Message]:
    _only(data, ("resources", "state"), where)
    if not model.options.energy:
        raise ModelError("power states are not simulated", where=where, remedy="Add --energy (-E).")
    machines = _machines(data, "resources", where)
    state = _text(data, "state", where).strip()
    if not state.lstrip("+-").isdigit():
        raise ModelError(f"the state '{state}' is not the number of a power state", where=where)
    yield "set_pstate", (machines, int(state), where)


def _set_metadata(_model: Model, data: dict[str, Any], where: str) -> Iterator[Message]:
    _only(data, ("job_id", "metadata"), where)
    text = _text(data, "metadata", where)
    if '"' in text:
        raise ModelError(
            "'metadata' has a double quote", where=where, remedy="It becomes a cell of _jobs.csv."
        )
    yield "set_metadata", (_text(data, "job_id", where), text, where)


def _change_state(_model: Model, data: dict[str, Any], where: str) -> Iterator[Message]:
    state = _text(data, "job_state", where)
    if state not in _JOB_STATES:
        raise ModelError(
            f"the job state '{state}' is unknown", where=where, remedy=f"Known: {', '.join(_JOB_STATES)}."
        )
    yield "change_state", (_text(data, "job_id", where), state, where)


def _notify(_model: Model, data: dict[str, Any], where: str) -> Iterator[Message]:
    kind = _text(data, "type", where)
    if kind not in ("registration_finished", "continue_registration"):
        raise ModelError(f"the notification '{kind}' is unknown", where=where)
    yield "registration", kind == "registration_finished"


def _to_job(_model: Model, data: dict[str, Any], where: str) -> Iterator[Message]:
    yield "to_job", (_text(data, "job_id", where), _text(data, "msg", where), where)


def _check_registration(model: Model, where: str) -> None:
    if not model.options.dynamic_jobs:
        raise ModelError("registration is not enabled", where=where, remedy="Add --enable-dynamic-jobs.")
    if model.registration_finished:
        raise ModelError(
            "registration was declared finished",
            where=where,
            remedy="Send NOTIFY continue_registration before.",
        )


def _register_job(model: Model, data: dict[str, Any], where: str) -> Iterator[Message]:
    _check_registration(model, where)
    job_id = _text(data, "job_id", where)
    owner = model.workload(split_id(job_id, where)[0], where)
    if "job" not in data:
        raise ModelError("'job' is missing", where=where)
    if job_id in owner.met:
        raise ModelError(
            f"the job '{job_id}' already exists", where=where, remedy="Give every job its own id."
        )
    job = workload.job_from_json(data["job"], owner, where)
    if job.id != job_id:
        raise ModelError(f"'job_id' is '{job_id}', but the job calls itself '{job.id}'", where=where)
    owner.add_job(job, where)
    job.state = workload.SUBMITTED
    yield "register_job", job


def _register_profile(model: Model, data: dict[str, Any], where: str) -> Iterator[Message]:
    _check_registration(model, where)
    owner, name = _text(data, "workload_name", where), _text(data, "profile_name", where)
    if "profile" not in data:
        raise ModelError("'profile' is missing", where=where)
    if owner not in model.workloads:
        model.workloads[owner] = Workload(owner, "dynamic", static=False)
    target = model.workloads[owner]
    target.add_profile(profiles.from_json(name, data["profile"], where, None), where)
    yield "register_profile", None


def _kill(_model: Model, data: dict[str, Any], where: str) -> Iterator[Message]:
    _only(data, ("job_ids",), where)
    ids = data["job_ids"]
    if not isinstance(ids, list) or not ids or not all(isinstance(job_id, str) for job_id in ids):
        raise ModelError("'job_ids' is not a non-empty array of strings", where=where)
    yield "kill_jobs", (ids, where)


_DECODERS: dict[str, Callable[[Model, dict[str, Any], str], Iterator[Message]]] = {
    "QUERY": _query,
    "ANSWER": _answer,
    "REJECT_JOB": _reject,
    "EXECUTE_JOB": _execute,
    "CHANGE_JOB_STATE": _change_state,
    "CALL_ME_LATER": _call_me_later,
    "KILL_JOB": _kill,
    "REGISTER_JOB": _register_job,
    "REGISTER_PROFILE": _register_profile,
    "SET_RESOURCE_STATE": _set_resource_state,
    "SET_JOB_METADATA": _set_metadata,
    "NOTIFY": _notify,
    "TO_JOB_MSG": _to_job,
}
