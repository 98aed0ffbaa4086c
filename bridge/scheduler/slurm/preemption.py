"""Who gives way to whom, and in which order."""

from collections.abc import Iterable

from bridge.cluster.limits import PreemptMode
from bridge.scheduler.slurm.jobs import RUNNING, SlurmJob
from bridge.scheduler.slurm.site import Site, SlurmPart


def mode_of(site: Site, victim: SlurmJob) -> PreemptMode:
    """Return what becomes of a job that is preempted."""
    scheduler = site.cluster.scheduler
    if scheduler.preempt == "qos":
        mode = site.qos[victim.qos].preempt_mode
    else:
        mode = victim.part.about.preempt_mode if victim.part is not None else None
    mode = mode if mode is not None else scheduler.preempt_mode
    if mode == "requeue" and not victim.requeue:
        return "cancel"
    return mode


def grace_of(site: Site, victim: SlurmJob) -> int:
    """Return how long a preempted job goes on, s."""
    if site.cluster.scheduler.preempt == "qos":
        return site.qos[victim.qos].grace_time
    return victim.part.about.grace_time if victim.part is not None else 0


def may_preempt(site: Site, job: SlurmJob, part: SlurmPart, victim: SlurmJob, victim_part: SlurmPart) -> bool:
    """Tell whether a job comes before another one by the rule of preemption alone."""
    kind = site.cluster.scheduler.preempt
    if kind == "partition":
        return part.about.tier > victim_part.about.tier and bool(part.mask & victim_part.mask)
    if kind == "qos":
        return victim.qos in site.qos[job.qos].preempt
    return False


def candidates(
    site: Site, job: SlurmJob, part: SlurmPart, running: Iterable[SlurmJob], now: int
) -> list[SlurmJob]:
    """Return the running jobs that a job may preempt, the first to go first."""
    scheduler = site.cluster.scheduler
    if scheduler.preempt == "none":
        return []
    victims = []
    for one in running:
        if one.state != RUNNING or one.part is None or one.is_victim:
            continue
        if not may_preempt(site, job, part, one, one.part) or mode_of(site, one) == "off":
            continue
        if scheduler.preempt_exempt_time and now - one.start < scheduler.preempt_exempt_time:
            continue
        victims.append(one)

    def rank(one: SlurmJob) -> tuple[int, ...]:
        if scheduler.preempt == "qos":
            low = site.qos[one.qos].priority
        else:
            low = one.part.about.tier if one.part is not None else 0
        if site.parameters.preempt_youngest:
            return low, -one.start
        return low, one.nodes.bit_count()

    return sorted(victims, key=rank)
