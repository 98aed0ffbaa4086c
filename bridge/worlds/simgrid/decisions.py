"""Answers of the decision process: parsed, checked, and turned into messages to the server.

A message to the server is the name of its handler, and what that needs. What an answer refers to is looked up
when its turn has come, not before: an earlier decision of the same answer may have changed it.
"""

import re
from collections.abc import Callable, Iterable
from typing import Any

from bridge.base.errors import BridgeError, add_location
from bridge.base.jsontext import MOST_BYTES, shortened
from bridge.wire.fields import Fields, read_json
from bridge.worlds.simgrid import profile_types, workload
from bridge.worlds.simgrid.kernel import Actor, server_message
from bridge.worlds.simgrid.model import SimulationModel, split_id
from bridge.worlds.simgrid.parallel_task import JobAllocation
from bridge.worlds.simgrid.profile_types import Profile
from bridge.worlds.simgrid.workload import SimulatedWorkload

#: (name of the server's handler, its arguments …).
Message = tuple[Any, ...]
_Names = tuple[str, ...]

_JOB_STATES = (workload.NOT_SUBMITTED, workload.RUNNING, *workload.COMPLETE)


def ask_actor(model: SimulationModel, message: str) -> Actor:
    """Send a message to the decision process, and carry its decisions to the server, each at its date."""
    assert model.peer is not None
    answer = model.peer.ask(message, model.kernel.prepare)
    where = f"answer {model.peer.answers}"
    with add_location(where):
        reply_fields = read_json(answer, unique=False, most_bytes=MOST_BYTES)
        now = reply_fields.number("now")
        events = reply_fields.array("events")
    for i, event in enumerate(events):
        with add_location(f"{where}, event {i}"):
            timestamp, kind, data = _open(event, now)
        place = f"{where}, event {i} ({kind})"
        with add_location(place):
            decode, needed, optional = _DECODERS[kind]
            if needed is not None:
                data.only(needed, optional)
            decision = decode(model, data)
            if decision:
                yield from model.sleep_until(timestamp)
                yield server_message(*decision, where=place)
    yield from model.sleep_until(now)
    yield server_message("sched_ready")


def _open(event: Any, now: float) -> tuple[float, str, Fields]:
    """Return the timestamp (s), the type and the data of an event."""
    fields = Fields(event)
    timestamp, kind = fields.number("timestamp"), fields.text("type")
    if timestamp > now:
        raise BridgeError(f"'timestamp' is {timestamp:g}, later than now = {now:g}")
    _check_known("type", kind, _DECODERS)
    return timestamp, kind, Fields(fields.any("data"), "'data' is")


def _query(model: SimulationModel, data: Fields) -> Message | None:
    requests = data.mapping("requests")
    for name, value in requests.items():
        _check_known("request", name, ("consumed_energy",))
        if value != {}:
            raise BridgeError("'consumed_energy' is not an empty object")
    if not requests:
        raise BridgeError("'requests' is empty")
    _check_energy(model, "energy is")
    return ("tell_energy",)


def _check_known(what: str, name: str, valid_names: Iterable[str]) -> None:
    if name not in valid_names:
        raise BridgeError(f"the {what} '{name}' is unknown", remedy=f"Known: {', '.join(valid_names)}.")


def _check_energy(model: SimulationModel, what: str) -> None:
    if not model.options.energy:
        raise BridgeError(f"{what} not simulated", remedy="Add --energy (-E).")


def _answer(_model: SimulationModel, data: Fields) -> Message | None:
    for name in data.values:
        _check_known("answer", name, ("estimate_waiting_time",))
    return None  # Batsim reads such an estimate and does nothing with it


def _execute(model: SimulationModel, data: Fields) -> Message | None:
    if len(data.values) > 3:
        raise BridgeError("has more than one of mapping, storage_mapping and additional_io_job")
    job_id = data.text("job_id")
    job = model.job(job_id)
    allocation = JobAllocation(model.machines.ids(data.hosts("alloc")))
    if "mapping" in data:
        allocation.mapping = _mapping(data, len(allocation.machines))
    if "storage_mapping" in data:
        allocation.storage = data.mapping("storage_mapping")
        if not all(type(machine) is int for machine in allocation.storage.values()) or not allocation.storage:
            raise BridgeError("'storage_mapping' is not a non-empty object from labels to machine ids")
    if "additional_io_job" in data:
        _additional_io(model, data, job, allocation)
    return "execute_job", job, allocation


def _mapping(data: Fields, size: int) -> list[int]:
    mapping = data.mapping("mapping")
    places = {_whole(rank): _whole(str(place)) for rank, place in mapping.items()}
    ranks = [places.get(rank, -1) for rank in range(len(mapping))]
    if not ranks or not all(0 <= place < size for place in ranks):
        what = "'mapping' does not give each rank, from 0 on, a place in the allocation"
        remedy = f"Keys are 0 to {len(mapping) - 1}, values 0 to {size - 1}: indexes within 'alloc'."
        raise BridgeError(what, remedy=remedy)
    return ranks


def _whole(text: str) -> int:
    """Return the small whole number that a text is; -1 if it is anything else."""
    return int(text) if re.fullmatch("[0-9]{1,9}", text) else -1


def _additional_io(
    model: SimulationModel, decision: Fields, job: workload.Job, allocation: JobAllocation
) -> None:
    data = Fields(decision.any("additional_io_job"), "'additional_io_job' is")
    name = data.text("profile_name")
    if "profile" in data:
        job.workload.add_profile(profile_types.from_json(name, data.any("profile")))
    allocation.io_profile = job.workload.profile(name)
    _check_io_steps(job.profile, allocation.io_profile)
    allocation.io_machines = model.machines.ids(data.hosts("alloc"))


def _check_io_steps(own: Profile, io: Profile) -> None:
    if own.kind != "composed" and io.kind != "composed":
        return
    if own.kind != io.kind or len(own.steps) != len(io.steps):
        raise BridgeError(f"the composed profiles '{own.name}' and '{io.name}' cannot be merged step by step")
    for step, extra in zip(own.steps, io.steps, strict=True):
        _check_io_steps(step, extra)


def _set_resource_state(model: SimulationModel, data: Fields) -> Message | None:
    _check_energy(model, "power states are")
    machines = data.hosts("resources")
    pstate = _whole(data.text("state").strip())
    if pstate < 0:
        raise BridgeError(f"the state '{shortened(data.text('state'))}' is not the number of a power state")
    return "set_pstate", model.machines.ids(machines), pstate


def _set_metadata(_model: SimulationModel, data: Fields) -> Message | None:
    text = data.text("metadata")
    if '"' in text:
        raise BridgeError("'metadata' has a double quote", remedy="It becomes a cell of _jobs.csv.")
    return "set_metadata", data.text("job_id"), text


def _change_state(_model: SimulationModel, data: Fields) -> Message | None:
    state = data.text("job_state")
    _check_known("job state", state, _JOB_STATES)
    return "change_state", data.text("job_id"), state


def _notify(_model: SimulationModel, data: Fields) -> Message | None:
    kind = data.text("type")
    _check_known("notification", kind, ("registration_finished", "continue_registration"))
    return "registration", kind == "registration_finished"


def _check_registration(model: SimulationModel) -> None:
    if not model.options.dynamic_jobs:
        raise BridgeError("registration is not enabled", remedy="Add --enable-dynamic-jobs.")
    if model.registration_finished:
        what = "registration was declared finished"
        raise BridgeError(what, remedy="Send NOTIFY continue_registration before.")


def _register_job(model: SimulationModel, data: Fields) -> Message | None:
    _check_registration(model)
    job_id = data.text("job_id")
    owner = model.workload(split_id(job_id)[0])
    job = workload.job_from_json(data.any("job"), owner)
    if job.id != job_id:
        raise BridgeError(f"'job_id' is '{job_id}', but the job calls itself '{job.id}'")
    owner.add_job(job)
    job.state = workload.SUBMITTED
    return "register_job", job


def _register_profile(model: SimulationModel, data: Fields) -> Message | None:
    _check_registration(model)
    owner, name, profile = data.text("workload_name"), data.text("profile_name"), data.any("profile")
    target = model.workloads.setdefault(owner, SimulatedWorkload(owner))
    target.add_profile(profile_types.from_json(name, profile))
    return ("register_profile",)


#: Type -> how its data become a message, and, where Batsim is strict, which fields are needed or allowed.
_DECODERS: dict[str, tuple[Callable[[SimulationModel, Fields], Message | None], _Names | None, _Names]] = {
    "QUERY": (_query, ("requests",), ()),
    "ANSWER": (_answer, None, ()),
    "REJECT_JOB": (lambda _, data: ("reject_job", data.text("job_id")), ("job_id",), ()),
    "EXECUTE_JOB": (_execute, ("job_id", "alloc"), ("mapping", "storage_mapping", "additional_io_job")),
    "CHANGE_JOB_STATE": (_change_state, None, ()),
    "CALL_ME_LATER": (lambda _, data: ("call_me_later", data.number("timestamp")), ("timestamp",), ()),
    "KILL_JOB": (lambda _, data: ("kill_jobs", data.texts("job_ids")), ("job_ids",), ()),
    "REGISTER_JOB": (_register_job, None, ()),
    "REGISTER_PROFILE": (_register_profile, None, ()),
    "SET_RESOURCE_STATE": (_set_resource_state, ("resources", "state"), ()),
    "SET_JOB_METADATA": (_set_metadata, ("job_id", "metadata"), ()),
    "NOTIFY": (_notify, None, ()),
    "TO_JOB_MSG": (lambda _, data: ("to_job", data.text("job_id"), data.text("msg")), None, ()),
}
