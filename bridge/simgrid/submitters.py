"""Actors that tell the server what workloads and events files say, each thing when its time has come."""

from collections.abc import Callable, Sequence
from typing import Any

from bridge.errors import placed
from bridge.simgrid import kernel
from bridge.simgrid.events import Event
from bridge.simgrid.execution import job_actor
from bridge.simgrid.kernel import Actor, Part, tell
from bridge.simgrid.model import Model
from bridge.simgrid.parallel_task import Allocation
from bridge.simgrid.workload import Workload


def job_submitter(model: Model, workload: Workload) -> Actor:
    """Submit the jobs of a workload in the order of (submission time, id as text)."""

    def at_first() -> Part:
        if model.options.energy and model.energy_first < 0:
            model.energy_first = yield from model.consumed(None)

    jobs = sorted(workload.jobs.values(), key=lambda job: (job.subtime, job.id), reverse=True)
    yield from _in_time(model, jobs, lambda job: job.subtime, "jobs", at_first)


def event_submitter(model: Model, events: Sequence[Event]) -> Actor:
    """Tell the server of external events."""
    yield from _in_time(model, list(reversed(events)), lambda event: event.time, "events")


def _in_time(
    model: Model,
    items: list[Any],
    time_of: Callable[[Any], float],
    what: str,
    at_first: Callable[[], Part] | None = None,
) -> Part:
    """Send items, the last one first, one message a date; do ``at_first`` when the first is due."""
    yield tell("hello")
    date = model.clock()
    due: list[Any] = []
    while items:
        item = items.pop()  # which releases it
        if time_of(item) > date:
            if due:
                yield tell(what, due)
                due = []
            yield kernel.SLEEP, time_of(item) - date
            date = model.clock()
        due.append(item)
        if at_first:
            yield from at_first()
            at_first = None
    if due:
        yield tell(what, due)
    yield tell("no_more", what)


def launcher(model: Model, workload: Workload) -> Actor:
    """Start all jobs at once on the first machines, each: what ``--no-sched`` does."""
    for job in reversed(list(workload.jobs.values())):
        with placed(f"job '{job.id}'"):
            machines = model.machines.ids(((0, job.res - 1),) if job.res else ())
            host = model.machines.at(0).host
        actor = job_actor(model, job, Allocation(machines), notify=False)
        job.actors.append((yield kernel.SPAWN, f"job{job.id}", host, actor))
