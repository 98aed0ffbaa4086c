"""The rules that compare a schedule with the log it was made from: ids, demands, submit and run times."""

from typing import TYPE_CHECKING

import numpy as np

from bridge.judge.findings import ROUNDING, Findings, Floats, Table
from bridge.judge.jobs import FINAL_STATES, jobs_of, plain_ids

if TYPE_CHECKING:
    import pandas as pd

    from bridge.workload.table import Workload


def check_log(table: Table, found: Findings, workload: "Workload", tolerance: float) -> tuple[str, ...]:
    """Compare with ``workload``; return remarks that are no violations.

    The demand must be the requested or the allocated one; submits may differ by one common shift; a run
    time must be the logged one or, if shorter, the requested one. Jobs that failed or were killed by the
    scheduler may run for any time. Fields that the log does not know (−1) are not compared.
    """
    log = workload.jobs
    rows = _rows_of(jobs_of(table.frame), log)
    matched = rows >= 0
    where = f"the workload {workload.name}"
    found.rule(table, "not-in-workload", ~matched, lambda _: f"is not in {where}")
    if not matched.any():
        return ()

    def logged(name: str) -> Floats:
        return np.where(matched, log[name].to_numpy(np.float64)[rows], np.nan)

    slack = tolerance + ROUNDING
    demand, requested, allocated = (
        table.column("requested_number_of_resources"),
        logged("req_procs"),
        logged("procs"),
    )
    found.rule(
        table,
        "workload-demand",
        matched & (demand != requested) & (demand != allocated),
        lambda row: (
            f"requests {demand[row]:g} nodes; {where} says {requested[row]:g}, allocated {allocated[row]:g}"
        ),
    )
    # The schedule counts from its first job, the log from wherever it likes.
    first = int(np.argmin(np.where(matched, table.submit, np.inf)))
    submit = logged("submit") - (logged("submit")[first] - table.submit[first])
    inexact = table.inexact + 2 * np.spacing(np.nan_to_num(np.abs(logged("submit"))))
    found.rule(
        table,
        "workload-submit",
        matched & (np.abs(submit - table.submit) > slack + inexact),
        lambda row: (
            f"is submitted at {table.submit[row]:.6f}; {where} says {submit[row]:.6f} after the shift"
        ),
    )
    run, limit, lasted = logged("run"), logged("req_time"), table.column("execution_time")
    cut = np.where(limit > 0, np.minimum(run, limit), run)
    whole = matched & np.isin(table.states.astype(str), FINAL_STATES[:2]) & (run >= 0)
    found.rule(
        table,
        "workload-run",
        whole & (np.abs(lasted - run) > slack) & (np.abs(lasted - cut) > slack),
        lambda row: f"runs {lasted[row]:.6f} s; {where} says {run[row]:g} s, requested {limit[row]:g} s",
    )
    absent = len(log) - len(np.unique(rows[matched]))
    return (f"{absent} of {len(log)} records of {where} are not in the schedule",) if absent else ()


def _rows_of(ids: "pd.Series[str]", log: "pd.DataFrame") -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    """Return each id's row in the log, −1 if it has none; of rows with one id the first counts."""
    index = plain_ids(log["job_id"].astype(str))
    unique = ~index.duplicated()
    at = index[unique].get_indexer(plain_ids(ids))
    return np.where(at >= 0, np.flatnonzero(unique)[at], -1)
