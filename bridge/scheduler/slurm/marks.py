"""What a backfill pass writes to records by planning alone, which wakes the next pass."""

from bridge.scheduler.slurm.backfill_kernels import marks
from bridge.scheduler.slurm.controller import Controller
from bridge.scheduler.slurm.quick import Quick

_marks = Quick(marks)


def marks_plans(slurm: Controller, now: int) -> bool:
    """Tell whether a backfill pass wrote to a record although it started nothing.

    It marks idle nodes that it plans for a job, and says of all jobs but the first why they wait. So it does
    so with two jobs that it plans, and with one that would have idle nodes, too.
    """
    n = slurm.queue(now)
    return bool(_marks(slurm.store.bundle, n))
