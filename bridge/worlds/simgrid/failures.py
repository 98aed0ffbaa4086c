"""Machines that fail while a job runs, where the platform says when: the job fails, and all others go on.

SimGrid ends what runs on a host that fails, without a word. So on each machine of a job an actor waits for
nothing, as a guard, and on the master another one waits for the guard's end.
"""

from typing import Any

from bridge.worlds.simgrid import kernel
from bridge.worlds.simgrid.execution import break_off
from bridge.worlds.simgrid.kernel import Actor, SubActor
from bridge.worlds.simgrid.model import SimulationModel
from bridge.worlds.simgrid.workload import RUNNING, Job


def guard(model: SimulationModel, job: Job, ids: tuple[int, ...]) -> SubActor:
    """Let a job fail as soon as one of its machines does."""
    for machine in model.machines.of(ids):
        handle = yield kernel.SPAWN, f"guard of {job.id}", machine.host, _guard()
        job.guards.append(handle)
        watcher = _watcher(model, job, handle)
        yield kernel.SPAWN, f"watcher of {job.id}", model.machines.master.host, watcher


def _guard() -> Actor:
    yield kernel.GET, "guards", None


def _watcher(model: SimulationModel, job: Job, handle: Any) -> Actor:
    yield kernel.JOIN, handle
    if job.state == RUNNING:
        yield from break_off(model, job)
