"""When a job could start, if running jobs ended one after the other at their limits, in growing batches."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bridge.scheduler.slurm.choice import Chosen, choose
from bridge.scheduler.slurm.jobs import RUNNING, SlurmJob
from bridge.scheduler.slurm.site import Site
from bridge.scheduler.slurm.usage import SlurmUsage

#: Windows are aligned to this, and begin so long, s.
WINDOW = 30
#: A batch ends at so many jobs.
_MOST = 200


@dataclass(slots=True)
class Prospect:
    """When a job can start, and where; `needs_preemption`: only if others give way."""

    start: int
    chosen: Chosen
    needs_preemption: bool = False


def expected_end(job: SlurmJob, now: int, site: Site) -> int:
    """Return when a running job is believed to end: one past its limit soon after it."""
    if job.end > now:
        return job.end
    late = job.end + site.settings.kill_wait + site.settings.over_time
    return late if late > now else now + 1


def will_run(
    site: Site,
    job: SlurmJob,
    nodes: int,
    part_index: int,
    usage: SlurmUsage,
    running: Sequence[SlurmJob],
    preemptable: Iterable[SlurmJob],
    weights: list[int],
    now: int,
    exclusive: bool,
) -> Prospect | None:
    """Return when and where a job can start on some nodes; None: never.

    `running`: in the order of their ends; `preemptable`: gone in the future.
    """
    chosen = choose(site, job, nodes, usage, part_index, weights, exclusive=exclusive)
    if chosen is not None:
        return Prospect(now, chosen)
    future = usage.copy()
    victims = set(preemptable)
    if victims:
        for one in victims:
            if one.state == RUNNING:
                future.remove(one)
        chosen = choose(site, job, nodes, future, part_index, weights, exclusive=exclusive)
        if chosen is not None:
            return Prospect(now, chosen, needs_preemption=True)
    left = [one for one in running if one not in victims]
    window, k, barrier = WINDOW, 0, 0
    while k < len(left):
        last, removed = None, 0
        while k < len(left) and (
            last is not None or k == 0 or left[k].end <= barrier + window or removed < 0
        ):
            one = left[k]
            k += 1
            if not one.nodes & nodes:  # no look at the next one's end
                removed = min(removed, 0) - 1 if last is None else removed
                continue
            if not barrier:
                barrier = one.end + WINDOW - one.end % WINDOW
            future.remove(one)
            last, removed = one, max(removed, 0) + 1
            if removed > _MOST or (k < len(left) and left[k].end > barrier + window):
                break
        if last is not None:
            chosen = choose(site, job, nodes, future, part_index, weights, exclusive=exclusive)
            if chosen is not None:
                return Prospect(last.end if last.end > now else expected_end(last, now, site), chosen)
        window = window + site.parameters.bf_window_scale if site.parameters.bf_window_scale else 2 * window
    return None
