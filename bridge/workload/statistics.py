"""What a log holds, in numbers: span, load, users, and quantiles of what jobs ask for and take."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from bridge.workload.table import Workload, submitted

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)


def demand(jobs: pd.DataFrame) -> pd.Series:
    """Return processors per record: those requested, or else those allocated; 0 if neither is known."""
    return jobs["req_procs"].where(jobs["req_procs"] > 0, jobs["procs"]).clip(lower=0)


def has_numbers(jobs: pd.DataFrame, name: str) -> bool:
    """Tell whether there is a column of this name, of numbers."""
    return name in jobs.columns and jobs[name].dtype.kind in "iuf"


def offered_load(workload: Workload, resource: str = "nodes") -> float | None:
    """Return Σ demand·run time / (capacity · time from first to last submission) of a resource.

    Records without a run time or a submission count nothing. None if the capacity, the demands or the time
    span is unknown.
    """
    jobs, capacity = workload.jobs, workload.capacity.get(resource, 0)
    submit = jobs["submit"][submitted(jobs)]
    span = float(submit.max() - submit.min())
    if capacity <= 0 or not span > 0 or (resource != "nodes" and not has_numbers(jobs, resource)):
        return None
    requested = demand(jobs) if resource == "nodes" else jobs[resource].clip(lower=0)
    run = jobs["run"].clip(lower=0).astype(float)  # bytes times seconds overflow whole numbers
    run = run.where(submitted(jobs), 0.0)
    return float((requested * run).sum() / (capacity * span))


@dataclass(frozen=True)
class Summary:
    """A workload in numbers; times in seconds, None = unknown.

    Attributes:
        span, first_submit: from the first to the last known submission, and the first; None without.
        loads: the same of further resources; those whose demands are known.
        users: distinct users, 0 if none is known.
        serial, power_of_two: shares of records on one processor, on a power of two.
        overrun: share of records that ran longer than they asked for, of those where both are known.
        distributions: quantity -> known (how many records), mean, min, q5 … q95, max over those where it is
            known. Gap is the time between submissions.
    """

    records: int
    capacity: Mapping[str, int]
    span: float | None
    first_submit: float | None
    load: float | None
    users: int
    serial: float
    power_of_two: float
    overrun: float | None
    loads: Mapping[str, float]
    distributions: Mapping[str, Mapping[str, float]]


def summarise(workload: Workload) -> Summary:
    jobs = workload.jobs
    procs = demand(jobs)
    submit = np.sort(jobs["submit"][submitted(jobs)].to_numpy(dtype=np.float64))
    both = (jobs["req_time"] > 0) & (jobs["run"] >= 0)
    quantities: dict[str, pd.Series] = {
        "gap": pd.Series(np.diff(submit)),
        "run": jobs["run"][jobs["run"] >= 0],
        "requested time": jobs["req_time"][jobs["req_time"] > 0],
        "processors": procs[procs > 0],
        "logged wait": jobs["wait"][jobs["wait"] >= 0],
    }
    for name in workload.capacity:
        if name != "nodes" and has_numbers(jobs, name):
            quantities[name] = jobs[name][jobs[name] >= 0]
    further = {name: offered_load(workload, name) for name in workload.capacity if name != "nodes"}
    positive = procs[procs > 0].to_numpy()
    return Summary(
        records=len(jobs),
        capacity=workload.capacity,
        span=float(submit[-1] - submit[0]) if len(submit) else None,
        first_submit=float(submit[0]) if len(submit) else None,
        load=offered_load(workload),
        users=int(jobs["user"][jobs["user"] >= 0].nunique()),
        serial=float((positive == 1).mean()) if positive.size else 0.0,
        power_of_two=float(((positive & (positive - 1)) == 0).mean()) if positive.size else 0.0,
        overrun=float((jobs["run"] > jobs["req_time"])[both].mean()) if both.any() else None,
        loads={name: load for name, load in further.items() if load is not None},
        distributions={name: _distribution(values) for name, values in quantities.items() if len(values)},
    )


def _distribution(values: pd.Series) -> dict[str, float]:
    numbers = values.to_numpy(dtype=np.float64)
    values_at = np.quantile(numbers, QUANTILES).tolist()
    quantiles = {f"q{100 * q:g}": value for q, value in zip(QUANTILES, values_at, strict=True)}
    ends = {"known": len(numbers), "mean": float(numbers.mean()), "min": float(numbers.min())}
    return {**ends, **quantiles, "max": float(numbers.max())}
