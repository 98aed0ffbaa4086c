"""Actors that tell the server what workloads and events files say, each thing when its time has come."""

from collections.abc import Callable, Sequence
from typing import Any

from bridge.simgrid import kernel
from bridge.simgrid.events import Event
from bridge.simgrid.execution import job_actor
from bridge.simgrid.kernel import Actor, Part
from bridge.simgrid.model import Model
from bridge.simgrid.ptask import Allocation
from bridge.simgrid.workload import Workload


def job_submitter(model: Model, workload: Workload) -> Actor:
    """Submit the jobs of a workload in the order of (submission time, id as text)."""
    yield kernel.PUT, "server", ("hello", workload.name)
    jobs = sorted(workload.jobs.values(), key=lambda job: (job.subtime, job.id))
    jobs.reverse()  # so that taking the next one off the end releases it
    yield from _in_time(model, jobs, "submit", _read_energy)
    yield kernel.PUT, "server", ("bye_jobs", workload.name)


def _read_energy(model: Model) -> Part:
    if model.options.energy and model.energy_first < 0:
        model.energy_first = yield from model.consumed(None)


def event_submitter(model: Model, name: str, events: Sequence[Event]) -> Actor:
    """Tell the server of external events."""
    yield kernel.PUT, "server", ("hello", name)
    yield from _in_time(model, list(reversed(events)), "events")
    yield kernel.PUT, "server", ("bye_events", name)


def _in_time(
    model: Model, items: list[Any], handler: str, at_first: Callable[[Model], Part] | None = None
) -> Part:
    """Send items, the last one first, one message a date; do ``at_first`` when the first is due."""
    date = model.clock()
    due: list[Any] = []
    while items:
        item = items.pop()
        time = item.subtime if handler == "submit" else item.time
        if time > date:
            if due:
                yield kernel.PUT, "server", (handler, due)
                due = []
            yield kernel.SLEEP, time - date
            date = model.clock()
        due.append(item)
        if at_first:
            yield from at_first(model)
            at_first = None
    if due:
        yield kernel.PUT, "server", (handler, due)


def launcher(model: Model, workload: Workload) -> Actor:
    """Start all jobs at once on the first machines, each: what ``--no-sched`` does."""
    for job in reversed(list(workload.jobs.values())):
        where = f"job '{job.id}'"
        machines = tuple(range(job.res))
        model.machines.check(machines, where)
        allocation = Allocation(machines)
        host = model.machines.at(0, where).host
        handle = yield kernel.SPAWN, f"job{job.id}", host, job_actor(model, job, allocation, False)
        job.actors.append(handle)
