"""Machines that fail while a job runs, where the platform says when: the job fails, and all others go on.

SimGrid ends what runs on a host that fails, without a word. So on each machine of a job an actor waits for
nothing, as a guard, and on the master another one waits for the guard's end.
"""

from typing import Any

from bridge.simgrid import kernel
from bridge.simgrid.execution import break_off
from bridge.simgrid.kernel import Actor, Part
from bridge.simgrid.model import Model
from bridge.simgrid.workload import RUNNING, Job


def guard(model: Model, job: Job, ids: tuple[int, ...]) -> Part:
    """Let a job fail as soon as one of its machines does."""
    for machine in model.machines.of(ids):
        handle = yield kernel.SPAWN, f"guard of {job.id}", machine.host, _guard()
        job.guards.append(handle)
        watcher = _watcher(model, job, handle)
        yield kernel.SPAWN, f"watcher of {job.id}", model.machines.master.host, watcher


def _guard() -> Actor:
    yield kernel.GET, "guards", None


def _watcher(model: Model, job: Job, handle: Any) -> Actor:
    yield kernel.JOIN, handle
    if job.state == RUNNING:
        yield from break_off(model, job)
