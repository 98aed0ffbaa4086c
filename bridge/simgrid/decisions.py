"""Answers of the decision process: parsed, checked, and turned into messages to the server.

A message to the server is the name of its handler, and what that needs. What an answer refers to is looked up
when its turn has come, not before: an earlier decision of the same answer may have changed it.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any

from bridge.simgrid import kernel, profile_types, workload
from bridge.simgrid.fields import Fields, read_json
from bridge.simgrid.kernel import Actor
from bridge.simgrid.model import Model, split_id
from bridge.simgrid.parallel_task import Allocation
from bridge.simgrid.profile_types import Profile
from bridge.simgrid.workload import Workload
from bridge.wire.jsontext import MOST_BYTES, shortened

#: (name of the server's handler, its arguments …).
Message = tuple[Any, ...]

_JOB_STATES = (
    "NOT_SUBMITTED", "RUNNING", "COMPLETED_SUCCESSFULLY", "COMPLETED_FAILED", "COMPLETED_WALLTIME_REACHED",
    "COMPLETED_KILLED", "REJECTED",
)  # fmt: skip


def ask_actor(model: Model, message: str) -> Actor:
    """Send a message to the decision process, and carry its decisions to the server, each at its date."""
    assert model.peer is not None
    answer = model.peer.ask(message)
    where = f"answer {model.peer.answers}"
    given = read_json(answer, where, unique=False, most_bytes=MOST_BYTES)
    now = given.number("now")
    for i, event in enumerate(given.array("events")):
        timestamp, messages = decode(model, event, now, f"{where}, event {i}")
        for decision in messages:
            if timestamp > model.clock():
                yield kernel.SLEEP, timestamp - model.clock()
            yield kernel.PUT, "server", decision
    if now > model.clock():
        yield kernel.SLEEP, now - model.clock()
    yield kernel.PUT, "server", ("sched_ready",)


def decode(model: Model, event: Any, now: float, where: str) -> tuple[float, Iterator[Message]]:
    """Return the timestamp (s) of an event, and its messages to the server, which are read one by one.

    Raises:
        BridgeError: the event is malformed, or, when its messages are read, cannot be carried out.
    """
    given = Fields(event, where)
    timestamp, kind = given.number("timestamp"), given.text("type")
    if timestamp > now:
        raise given.error(f"'timestamp' is {timestamp:g}, later than now = {now:g}")
    if kind not in _DECODERS:
        raise given.error(f"the type '{kind}' is unknown", f"Known: {', '.join(_DECODERS)}.")
    data = Fields(given.any("data"), f"{where} ({kind})", "'data' is")
    if kind in _FIELDS:
        data.only(*_FIELDS[kind])
    return timestamp, _DECODERS[kind](model, data)


def _query(model: Model, data: Fields) -> Iterator[Message]:
    requests = data.mapping("requests")
    if not requests:
        raise data.error("'requests' is empty")
    for name, value in requests.items():
        if name != "consumed_energy":
            raise data.error(f"the request '{name}' is unknown", "Known: consumed_energy.")
        if value != {}:
            raise data.error("'consumed_energy' is not an empty object")
        if not model.options.energy:
            raise data.error("energy is not simulated", "Add --energy (-E).")
        yield ("tell_energy",)


def _answer(_model: Model, data: Fields) -> Iterator[Message]:
    for name in data.given:
        if name != "estimate_waiting_time":
            raise data.error(f"the answer '{name}' is unknown")
    # Batsim reads such an estimate and does nothing with it.
    yield from ()


def _reject(_model: Model, data: Fields) -> Iterator[Message]:
    yield "reject_job", data.text("job_id"), data.where


def _execute(model: Model, data: Fields) -> Iterator[Message]:
    if len(data.given) > 3:
        raise data.error("has more than one of mapping, storage_mapping and additional_io_job")
    job_id = data.text("job_id")
    job = model.job(job_id, data.where)
    allocation = Allocation(model.machines.ids(data.hosts("alloc"), data.where))
    if "mapping" in data:
        allocation.mapping = _mapping(data, len(allocation.machines))
    if "storage_mapping" in data:
        allocation.storage = data.mapping("storage_mapping")
        if not all(type(machine) is int for machine in allocation.storage.values()) or not allocation.storage:
            raise data.error("'storage_mapping' is not a non-empty object from labels to machine ids")
    if "additional_io_job" in data:
        io = Fields(data.any("additional_io_job"), data.where, "'additional_io_job' is")
        _additional_io(model, io, job, allocation)
    yield "execute_job", job, allocation, data.where


def _mapping(data: Fields, size: int) -> list[int]:
    given = data.mapping("mapping")
    places = {_whole(rank): _whole(str(place)) for rank, place in given.items()}
    ranks = [places.get(rank, -1) for rank in range(len(given))]
    if not ranks or not all(0 <= place < size for place in ranks):
        raise data.error(
            "'mapping' does not give each rank, from 0 on, a place in the allocation",
            f"Keys are 0 to {len(given) - 1}, values 0 to {size - 1}: indexes within 'alloc'.",
        )
    return ranks


def _whole(text: str) -> int:
    """Return the small whole number that a text is; -1 if it is anything else."""
    return int(text) if re.fullmatch("[0-9]{1,9}", text) else -1


def _additional_io(model: Model, data: Fields, job: workload.Job, allocation: Allocation) -> None:
    name = data.text("profile_name")
    if "profile" in data:
        profile = profile_types.from_json(name, data.any("profile"), data.where, None)
        job.workload.add_profile(profile, data.where)
    profile = job.workload.profile(name, data.where)
    _check_io_steps(job.profile, profile, data)
    allocation.io_profile = profile
    allocation.io_machines = model.machines.ids(data.hosts("alloc"), data.where)


def _check_io_steps(own: Profile, io: Profile, data: Fields) -> None:
    if own.kind != "composed" and io.kind != "composed":
        return
    if own.kind != io.kind or len(own.steps) != len(io.steps):
        raise data.error(f"the composed profiles '{own.name}' and '{io.name}' cannot be merged step by step")
    for step, extra in zip(own.steps, io.steps, strict=True):
        _check_io_steps(step, extra, data)


def _call_me_later(_model: Model, data: Fields) -> Iterator[Message]:
    yield "call_me_later", data.number("timestamp"), data.where


def _set_resource_state(model: Model, data: Fields) -> Iterator[Message]:
    if not model.options.energy:
        raise data.error("power states are not simulated", "Add --energy (-E).")
    machines = data.hosts("resources")
    pstate = _whole(data.text("state").strip())
    if pstate < 0:
        raise data.error(f"the state '{shortened(data.text('state'))}' is not the number of a power state")
    yield "set_pstate", model.machines.ids(machines, data.where), pstate, data.where


def _set_metadata(_model: Model, data: Fields) -> Iterator[Message]:
    text = data.text("metadata")
    if '"' in text:
        raise data.error("'metadata' has a double quote", "It becomes a cell of _jobs.csv.")
    yield "set_metadata", data.text("job_id"), text, data.where


def _change_state(_model: Model, data: Fields) -> Iterator[Message]:
    state = data.text("job_state")
    if state not in _JOB_STATES:
        raise data.error(f"the job state '{state}' is unknown", f"Known: {', '.join(_JOB_STATES)}.")
    yield "change_state", data.text("job_id"), state, data.where


def _notify(_model: Model, data: Fields) -> Iterator[Message]:
    kind = data.text("type")
    if kind not in ("registration_finished", "continue_registration"):
        raise data.error(f"the notification '{kind}' is unknown")
    yield "registration", kind == "registration_finished"


def _to_job(_model: Model, data: Fields) -> Iterator[Message]:
    yield "to_job", data.text("job_id"), data.text("msg"), data.where


def _check_registration(model: Model, data: Fields) -> None:
    if not model.options.dynamic_jobs:
        raise data.error("registration is not enabled", "Add --enable-dynamic-jobs.")
    if model.registration_finished:
        raise data.error("registration was declared finished", "Send NOTIFY continue_registration before.")


def _register_job(model: Model, data: Fields) -> Iterator[Message]:
    _check_registration(model, data)
    job_id = data.text("job_id")
    owner = model.workload(split_id(job_id, data.where)[0], data.where)
    job = workload.job_from_json(data.any("job"), owner, data.where)
    if job.id != job_id:
        raise data.error(f"'job_id' is '{job_id}', but the job calls itself '{job.id}'")
    owner.add_job(job, data.where)
    job.state = workload.SUBMITTED
    yield "register_job", job


def _register_profile(model: Model, data: Fields) -> Iterator[Message]:
    _check_registration(model, data)
    owner, name, profile = data.text("workload_name"), data.text("profile_name"), data.any("profile")
    target = model.workloads.setdefault(owner, Workload(owner, "dynamic", static=False))
    target.add_profile(profile_types.from_json(name, profile, data.where, None), data.where)
    yield ("register_profile",)


def _kill(_model: Model, data: Fields) -> Iterator[Message]:
    yield "kill_jobs", data.texts("job_ids"), data.where


_DECODERS: dict[str, Callable[[Model, Fields], Iterator[Message]]] = {
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
#: The events whose fields Batsim is strict about: those that are needed, and those that may be there.
_FIELDS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "QUERY": (("requests",), ()),
    "REJECT_JOB": (("job_id",), ()),
    "EXECUTE_JOB": (("job_id", "alloc"), ("mapping", "storage_mapping", "additional_io_job")),
    "CALL_ME_LATER": (("timestamp",), ()),
    "KILL_JOB": (("job_ids",), ()),
    "SET_RESOURCE_STATE": (("resources", "state"), ()),
    "SET_JOB_METADATA": (("job_id", "metadata"), ()),
}
