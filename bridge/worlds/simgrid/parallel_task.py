"""From a profile and an allocation to the flops and bytes of one of SimGrid's parallel tasks."""

from dataclasses import dataclass, field

from bridge.base.errors import BridgeError
from bridge.worlds.simgrid.machines import COMPUTE, STORAGE, SimulatedHost
from bridge.worlds.simgrid.model import SimulationModel
from bridge.worlds.simgrid.profile_types import Profile

#: Machines, flops of each, and the bytes between them, row by row (from row to column); no bytes: an empty
#: list.
Task = tuple[list[SimulatedHost], list[float], list[float]]

_NO_WORK = 1e-10


@dataclass(slots=True)
class JobAllocation:
    """Where a job runs."""

    #: Ids in ascending order.
    machines: tuple[int, ...]
    #: For each rank, the index within ``machines``; empty: rank i on machine i.
    mapping: list[int] = field(default_factory=list)
    #: Label in the profile -> machine id.
    storage: dict[str, int] = field(default_factory=dict)
    #: What is merged into each parallel task of the job, if anything, and on which machines.
    io_profile: Profile | None = None
    io_machines: tuple[int, ...] = ()

    def ranks(self, model: SimulationModel) -> list[SimulatedHost]:
        machines = model.machines.of(self.machines)
        if not machines:
            raise BridgeError("has no machine to compute on", remedy="Give the job a 'res' of at least 1.")
        return [machines[i] for i in self.mapping] if self.mapping else machines


def build_parallel_task(
    model: SimulationModel, profile: Profile, allocation: JobAllocation, io: Profile | None
) -> Task:
    """Return the parallel task of a profile, with that of ``io`` merged into it.

    Raises BridgeError: sizes do not fit, a storage label is unknown, or a storage machine should compute.
    """
    task = _of_profile(model, profile, allocation.ranks(model), allocation.storage)
    _check_roles(model.machines.of(allocation.machines), task[1])
    if io is None:
        return task
    own = model.machines.of(allocation.io_machines)
    extra = _of_profile(model, io, own, None)
    one_each = task[0] == allocation.ranks(model) and len(allocation.mapping) <= len(allocation.machines)
    if not one_each or extra[0] != own:
        raise BridgeError("an additional_io_job needs one rank per machine and no storage profile")
    merged = _merge(task, extra)
    _check_roles(merged[0], merged[1])
    return merged


def _of_profile(
    model: SimulationModel, profile: Profile, ranks: list[SimulatedHost], storage: dict[str, int] | None
) -> Task:
    numbers, n = profile.numbers, len(ranks)
    if profile.kind == "parallel":
        if n != len(numbers["cpu"]):
            raise BridgeError(f"has {n} ranks, its profile '{profile.name}' is for {len(numbers['cpu'])}")
        return ranks, numbers["cpu"], numbers["com"]
    if profile.kind == "parallel_homogeneous":
        return ranks, [numbers["cpu"]] * n, _all_to_all(n, numbers["com"])
    if profile.kind == "parallel_homogeneous_total":
        return ranks, [numbers["cpu"] / n] * n, _all_to_all(n, numbers["com"] / n)
    if storage is None:
        raise BridgeError(f"a {profile.kind} profile cannot be an additional_io_job")
    if profile.kind == "parallel_homogeneous_pfs":
        write, read = numbers["bytes_to_write"], numbers["bytes_to_read"]
        sizes = ([0.0] * n + [write]) * n + [read] * n + [0.0] if write > 0 or read > 0 else []
        return [*ranks, _file_system(model, numbers["storage"], storage)], [0.0] * (n + 1), sizes
    source, target = (_storage(model, numbers[end], storage) for end in ("from", "to"))
    size = numbers["nb_bytes"]
    return [source, target], [0.0, 0.0], [0.0, size, 0.0, 0.0] if size > 0 else []


def _all_to_all(n: int, size: float) -> list[float]:
    if size <= 0:
        return []
    matrix = [size] * (n * n)
    matrix[:: n + 1] = [0.0] * n
    return matrix


def _file_system(model: SimulationModel, label: str, storage: dict[str, int]) -> SimulatedHost:
    there = model.machines.storage
    if not storage and len(there) == 1:
        return there[0]
    if not storage:
        what = f"no machine is given for the storage '{label}' and there are {len(there)}"
        raise BridgeError(what, remedy="Send a storage_mapping with EXECUTE_JOB.")
    return _storage(model, label, storage)


def _storage(model: SimulationModel, label: str, storage: dict[str, int]) -> SimulatedHost:
    if label not in storage:
        what = f"no machine is given for the storage '{label}'"
        raise BridgeError(what, remedy="Add it to storage_mapping.")
    machine = model.machines.at(storage[label])
    if machine.role != STORAGE:
        raise BridgeError(f"{machine} given for '{label}' is no storage")
    return machine


def _check_roles(machines: list[SimulatedHost], flops: list[float]) -> None:
    for machine, amount in zip(machines, flops, strict=False):
        if amount > _NO_WORK and machine.role != COMPUTE:
            raise BridgeError(f"{machine} is storage but should compute")


def _merge(job: Task, io: Task) -> Task:
    machines = sorted({m.id: m for m in (*job[0], *io[0])}.values(), key=lambda m: m.id)
    place = {m.id: i for i, m in enumerate(machines)}
    n = len(machines)
    flops, sizes = [0.0] * n, [0.0] * (n * n)
    for task_machines, task_flops, task_sizes in (job, io):
        where = [place[m.id] for m in task_machines]
        for i, amount in zip(where, task_flops, strict=True):
            flops[i] += amount
        for k, size in enumerate(task_sizes):
            row, column = divmod(k, len(where))
            sizes[where[row] * n + where[column]] += size
    return machines, flops, sizes
