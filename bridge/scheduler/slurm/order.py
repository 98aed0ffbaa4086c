"""The order of a pass' queue."""

from functools import cmp_to_key

from bridge.scheduler.slurm.eligible import Entry
from bridge.scheduler.slurm.preemption import may_preempt
from bridge.scheduler.slurm.site import Site


def priority_in(entry: Entry) -> float:
    """Return a job's priority in the partition of its entry."""
    job, part = entry
    return job.priorities.get(part.index, job.priority)


def _key(entry: Entry) -> tuple[object, ...]:
    job, part = entry
    return (not job.reservation, -part.about.tier, -priority_in(entry), job.submit, job.id, job.task)


def sort_queue(site: Site, entries: list[Entry]) -> list[Entry]:
    """Return entries by preemption, reservation, tier, priority, submission and id."""
    if site.cluster.scheduler.preempt == "none":
        return sorted(entries, key=_key)

    def compare(a: Entry, b: Entry) -> int:
        first, second = (may_preempt(site, *x, *y) for x, y in ((a, b), (b, a)))
        if first != second:
            return -1 if first else 1
        one, other = _key(a), _key(b)
        return -1 if one < other else int(one > other)

    return sorted(sorted(entries, key=_key), key=cmp_to_key(compare))
