"""Changes the load of a workload: arrivals move closer together or apart, and the first N are kept."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pandas as pd

from bridge.errors import BridgeError
from bridge.workload.table import Workload, whole_seconds


def demand(jobs: pd.DataFrame) -> pd.Series:
    """Return processors per record: those requested, or else those allocated; 0 if neither is known."""
    return jobs["req_procs"].where(jobs["req_procs"] > 0, jobs["procs"]).clip(lower=0)


def has_numbers(jobs: pd.DataFrame, name: str) -> bool:
    """Tell whether there is a column of this name, of numbers."""
    return name in jobs.columns and jobs[name].dtype.kind in "iuf"


def offered_load(workload: Workload, resource: str = "nodes") -> float | None:
    """Return Σ demand·run time / (capacity · time from first to last submission) of a resource.

    Records without a run time count nothing. None if the capacity, the demands or the time span is unknown.
    """
    jobs, capacity = workload.jobs, workload.capacity.get(resource, 0)
    span = float(jobs["submit"].max() - jobs["submit"].min())
    if capacity <= 0 or span <= 0 or (resource != "nodes" and not has_numbers(jobs, resource)):
        return None
    asked = demand(jobs) if resource == "nodes" else jobs[resource].clip(lower=0)
    run = jobs["run"].clip(lower=0).astype(float)  # bytes times seconds overflow whole numbers
    return float((asked * run).sum() / (capacity * span))


def scale_arrivals(workload: Workload, factor: float) -> Workload:
    """Multiply the time between arrivals by a factor: below 1 compresses (more load), above stretches.

    The first submission stays where it is; whole seconds stay whole (rounded).

    Raises:
        BridgeError: the factor is not a positive number, or times become too long.
    """
    if not (np.isfinite(factor) and factor > 0):
        raise BridgeError(
            f"the factor {factor} is not positive", where="--scale", remedy="Give a number > 0."
        )
    jobs = workload.jobs.copy()
    start = jobs["submit"].min()
    moved = (start + (jobs["submit"] - start) * factor).to_numpy(np.float64)
    jobs["submit"] = whole_seconds(moved) if jobs["submit"].dtype.kind == "i" else moved
    return replace(
        workload,
        jobs=jobs,
        header=noted(workload.header, f"time between arrivals multiplied by {factor:g}"),
    )


def scale_to_load(workload: Workload, load: float) -> Workload:
    """Scale arrivals so that the offered load is as given (but for rounding to whole seconds).

    Raises:
        BridgeError: the load is not positive, or the workload has none to scale.
    """
    now = offered_load(workload)
    if not now or not (np.isfinite(load) and load > 0):
        raise BridgeError(
            "the load cannot be scaled",
            where=f"--load {load:g}",
            remedy="It takes a positive load, a known machine size, and jobs that run and arrive over time.",
        )
    return scale_arrivals(workload, now / load)


def first(workload: Workload, count: int) -> Workload:
    """Keep the first records of the file.

    Raises:
        BridgeError: fewer than one was asked for.
    """
    if count < 1:
        raise BridgeError(f"{count} records were asked for", where="--first", remedy="Ask for at least one.")
    jobs = workload.jobs.iloc[:count].reset_index(drop=True)
    header = noted(workload.header, f"the first {len(jobs)} of {len(workload.jobs)} records")
    return replace(workload, jobs=jobs, header=with_records(header, len(jobs)))


def noted(header: Mapping[str, str], text: str) -> dict[str, str]:
    """Return the header with one more note."""
    return {**header, "Note": "\n".join(line for line in (header.get("Note", ""), text) if line)}


def with_records(header: Mapping[str, str], count: int) -> dict[str, str]:
    """Return the header with its count of records set, if it has one."""
    return {**header, "MaxRecords": str(count)} if "MaxRecords" in header else dict(header)
