"""What a backfill pass writes to records by planning alone, which wakes the next pass."""

from bridge.scheduler.slurm.controller import Controller
from bridge.scheduler.slurm.jobs import PENDING, SlurmJob
from bridge.scheduler.slurm.site import SlurmPart


def marks_plans(slurm: Controller, now: int) -> bool:
    """Tell whether a backfill pass wrote to a record although it started nothing.

    It marks idle nodes that it plans for a job, and says of all jobs but the first why they wait. So it does
    so with two jobs that it plans, and with one that would have idle nodes, too.
    """
    planned = 0
    for job, part in slurm.queue(now):
        usable = slurm.up & part.mask & ~job.excluded
        if job.state != PENDING or job.min_nodes > usable.bit_count() or _is_over_a_limit(slurm, job, part):
            continue
        planned += 1
        if planned > 1 or slurm.usage.idle & usable:
            return True
    return False


def _is_over_a_limit(slurm: Controller, job: SlurmJob, part: SlurmPart) -> bool:
    ledger = slurm.ledger
    if ledger.before(job, part):
        return True
    has_after = ledger.class_of(job, part).has_after
    return has_after and bool(ledger.after(job, part, ledger.request(job), None))
