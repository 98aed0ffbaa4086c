"""A replay's outcome as a jobs table: Batsim's columns, and why each job started when it did."""

from typing import TYPE_CHECKING

import numpy as np

from bridge.arrow import text_column
from bridge.fast.episode import Prepared
from bridge.fast.replay import Schedule
from bridge.scheduler.state import HOW_BACKFILLED, SECOND

if TYPE_CHECKING:
    import pandas as pd


def jobs_table(prepared: Prepared, schedule: Schedule, *, killed_at_request: bool = True) -> "pd.DataFrame":
    """Return one row per job in the order of completion, as Batsim writes them.

    Beyond Batsim's columns: ``user``, ``queue`` (as logged), one column per further resource,
    ``start_kind`` (head | backfilled), ``overtook`` (id of the blocked job it was started behind, or
    empty), ``reserved_time`` (the first start it was promised as blocked head, s, NaN if never).

    Args:
        prepared: what was replayed.
        schedule: the outcome.
        killed_at_request: a job whose run time reaches its request counts as killed there.
    """
    import pandas as pd
    import pyarrow as pa
    import pyarrow.compute as pc

    jobs = prepared.jobs
    order = np.lexsort((schedule.serial, schedule.end))
    run = jobs.run[order]
    submit, start, end = jobs.submit[order], schedule.start[order], schedule.end[order]
    killed = (run >= jobs.request[order]) & killed_at_request
    turnaround = (end - submit) / SECOND
    ids = pc.cast(pa.array(jobs.id[order]), pa.string())
    past, reserved = schedule.past[order], schedule.reserved[order]
    table: dict[str, object] = {
        "job_id": text_column(ids),
        "workload_name": jobs.name,
        "profile": text_column(ids),
        "submission_time": submit / SECOND,
        "requested_number_of_resources": jobs.demand[order, 0],
        "requested_time": jobs.request[order] / SECOND,
        "success": (~killed).astype(np.int64),
        "final_state": text_column(
            pc.if_else(killed, "COMPLETED_WALLTIME_REACHED", "COMPLETED_SUCCESSFULLY")
        ),
        "starting_time": start / SECOND,
        "execution_time": run / SECOND,
        "finish_time": end / SECOND,
        "waiting_time": (start - submit) / SECOND,
        "turnaround_time": turnaround,
        "stretch": turnaround / np.where(run > 0, run / SECOND, np.nan),
        "allocated_resources": "",
        "consumed_energy": -1.0,
        "metadata": "",
        "user": jobs.user[order],
        "queue": jobs.queue[order],
        "start_kind": text_column(pc.if_else(schedule.how[order] == HOW_BACKFILLED, "backfilled", "head")),
        "overtook": text_column(pc.if_else(past >= 0, pc.cast(pa.array(jobs.id[past]), pa.string()), "")),
        "reserved_time": np.where(reserved >= 0, reserved / SECOND, np.nan),
    }
    for r, name in enumerate(jobs.resources[1:], 1):
        table[name] = jobs.demand[order, r]
    return pd.DataFrame(table)
