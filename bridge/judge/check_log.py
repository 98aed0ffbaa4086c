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
    found.rule(table, "not-in-workload", ~matched, "is not in {where}", where=where)
    if not matched.any():
        return ()

    def logged(name: str) -> Floats:
        return np.where(matched, log[name].to_numpy(np.float64)[rows], np.nan)

    slack = tolerance + ROUNDING
    demand, asked, given = table.column("requested_number_of_resources"), logged("req_procs"), logged("procs")
    said = "requests {demand:g} nodes; {where} says {asked:g}, allocated {given:g}"
    wrong = matched & (demand != asked) & (demand != given)
    found.rule(table, "workload-demand", wrong, said, where=where, demand=demand, asked=asked, given=given)
    # The schedule counts from its first job, the log from wherever it likes.
    first = int(np.argmin(np.where(matched, table.submit, np.inf)))
    due = logged("submit") - (logged("submit")[first] - table.submit[first])
    inexact = table.inexact + 2 * np.spacing(np.nan_to_num(np.abs(logged("submit"))))
    wrong = matched & (np.abs(due - table.submit) > slack + inexact)
    said = "is submitted at {submit:.6f}; {where} says {due:.6f} after the shift"
    found.rule(table, "workload-submit", wrong, said, where=where, due=due)
    run, limit, lasted = logged("run"), logged("req_time"), table.column("execution_time")
    cut = np.where(limit > 0, np.minimum(run, limit), run)
    whole = matched & np.isin(table.states.astype(str), FINAL_STATES[:2]) & (run >= 0)
    wrong = whole & (np.abs(lasted - run) > slack) & (np.abs(lasted - cut) > slack)
    said = "runs {lasted:.6f} s; {where} says {run:g} s, requested {limit:g} s"
    found.rule(table, "workload-run", wrong, said, where=where, lasted=lasted, run=run, limit=limit)
    absent = len(log) - len(np.unique(rows[matched]))
    return (f"{absent} of {len(log)} records of {where} are not in the schedule",) if absent else ()


def _rows_of(ids: "pd.Series[str]", log: "pd.DataFrame") -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
    """Return each id's row in the log, −1 if it has none; of rows with one id the first counts."""
    index = plain_ids(log["job_id"].astype(str))
    unique = ~index.duplicated()
    at = index[unique].get_indexer(plain_ids(ids))
    return np.where(at >= 0, np.flatnonzero(unique)[at], -1)
