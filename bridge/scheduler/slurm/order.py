"""The order of a pass' queue."""

from functools import cmp_to_key

from bridge.scheduler.slurm.eligible import Entry
from bridge.scheduler.slurm.preemption import may_preempt
from bridge.scheduler.slurm.site import Site

#: Entries are sorted by these; numbers behind them keep equal ones in the order in which they came.
Key = tuple[float, ...]


def priority_in(entry: Entry) -> float:
    """Return a job's priority in the partition of its entry."""
    job, part = entry
    return job.priorities.get(part.index, job.priority)


def sort_key(entry: Entry) -> Key:
    """Return by what entries are sorted: reservation, tier, priority, submission and id."""
    job, part = entry
    priority = job.priorities.get(part.index, job.priority)
    return (not job.reservation, -part.about.tier, -priority, job.submit, job.id, job.task)


def before_priority(entry: Entry) -> tuple[bool, int]:
    """Return by what entries are sorted before they are by priority."""
    job, part = entry
    return not job.reservation, -part.about.tier


def by_ranks(entries: list[Entry], ranks: dict[tuple[int, int], int]) -> list[Entry]:
    """Return sorted entries so that those with ranks come first, by them, where priorities would count."""
    last = len(ranks)

    def key(entry: Entry) -> tuple[tuple[bool, int], int]:
        return before_priority(entry), ranks.get((entry[0].key, entry[1].index), last)

    return sorted(entries, key=key)


def preemptors_first(site: Site, entries: list[Entry]) -> list[Entry]:
    """Return sorted entries so that jobs come before those that they may preempt."""

    def compare(a: Entry, b: Entry) -> int:
        first, second = (may_preempt(site, *x, *y) for x, y in ((a, b), (b, a)))
        if first != second:
            return -1 if first else 1
        one, other = sort_key(a), sort_key(b)
        return -1 if one < other else int(one > other)

    return sorted(entries, key=cmp_to_key(compare))
