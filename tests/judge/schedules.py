"""Small schedules for the tests of judge and report: rows given as plain numbers."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from bridge.judge.jobs import JOBS_COLUMNS


def schedule(rows: Sequence[tuple[Any, ...]], **extra: Sequence[Any]) -> pd.DataFrame:
    """Build a jobs table from (id, submit, start, run, nodes); a start of None is a rejected job."""
    table = []
    for job, submit, start, run, nodes in rows:
        rejected = start is None
        begin = float("nan") if rejected else float(start)
        table.append(
            {
                "job_id": str(job),
                "workload_name": "w0",
                "profile": "delay",
                "submission_time": float(submit),
                "requested_number_of_resources": int(nodes),
                "requested_time": 1000.0,
                "success": int(not rejected),
                "final_state": "REJECTED" if rejected else "COMPLETED_SUCCESSFULLY",
                "starting_time": begin,
                "execution_time": float("nan") if rejected else float(run),
                "finish_time": begin + run,
                "waiting_time": begin - submit,
                "turnaround_time": begin - submit + run,
                "stretch": (begin - submit + run) / run if run else np.nan,
                "allocated_resources": "",
                "consumed_energy": -1.0,
                "metadata": "",
            }
        )
    return pd.DataFrame(table, columns=list(JOBS_COLUMNS)).assign(**extra)


#: Four nodes; B waits behind A, C is backfilled, D waits behind B, R is larger than the machine.
EXAMPLE = (
    ("A", 0, 0, 10, 2),
    ("B", 0, 10, 5, 4),
    ("C", 2, 2, 4, 1),
    ("D", 5, 15, 100, 1),
    ("R", 6, None, 1, 9),
)


def example() -> pd.DataFrame:
    return schedule(EXAMPLE, user=[1, 2, 1, 2, 3])
