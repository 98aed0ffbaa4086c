"""The jobs that a loading rule keeps, as a workload again: for worlds that read a file."""

from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pandas as pd

from bridge.errors import BridgeError
from bridge.workload.scale import noted, with_records
from bridge.workload.select import MICRO, Jobs
from bridge.workload.table import Workload


def keep(workload: Workload, jobs: Jobs) -> Workload:
    """Return the workload with only the selected jobs, in their order, repaired as they were selected.

    Submission, run and requested time, processors and further demands are the selection's; all other
    columns are the log's. Nothing is left to drop or repair, so the tally is empty.

    Args:
        workload: the records.
        jobs: `select`'s choice among them.

    Raises:
        BridgeError: two selected records have one id, so that it is unclear which is which.
    """
    rows = workload.jobs.set_index("job_id", drop=False)
    again = pd.Index(jobs.id)
    if not again.is_unique:
        raise BridgeError(
            "two jobs have the same id",
            where=f"{workload.source or workload.name}, job {again[again.duplicated()][0]}",
            remedy="Renumber the jobs.",
        )
    table = rows[~rows.index.duplicated()].loc[jobs.id].reset_index(drop=True)
    if rows.index.has_duplicates:
        _check_same(table, jobs, workload)
    table["submit"] = _seconds(jobs.submit)
    table["run"] = _seconds(jobs.run)
    table["req_time"] = _seconds(jobs.request)
    table["procs"] = table["req_procs"] = jobs.demand[:, 0]
    for place, name in enumerate(jobs.resources[1:], start=1):
        table[name] = jobs.demand[:, place]
    capacity = dict(zip(jobs.resources, jobs.capacity.tolist(), strict=True))
    header = with_records(
        noted(workload.header, f"{len(table)} of {len(workload.jobs)} records kept"), len(table)
    )
    return replace(workload, jobs=table, capacity=capacity, header=header, tally={})


def _check_same(table: pd.DataFrame, jobs: Jobs, workload: Workload) -> None:
    """Refuse if a dropped record shares its id with a kept one and stands before it."""
    submitted = np.rint(table["submit"].to_numpy(dtype=np.float64) * MICRO).astype(np.int64)
    wrong = submitted != jobs.submit + jobs.origin
    if wrong.any():
        raise BridgeError(
            "two records have the same id",
            where=f"{workload.source or workload.name}, job {jobs.id[wrong][0]}",
            remedy="Renumber the jobs.",
        )


def _seconds(micro: npt.NDArray[np.int64]) -> npt.NDArray[np.int64] | npt.NDArray[np.float64]:
    """Return seconds, whole numbers if all are whole."""
    return micro // MICRO if not (micro % MICRO).any() else micro / MICRO
