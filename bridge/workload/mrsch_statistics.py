"""What a workload of MRSch holds, in numbers, beside what the paper says of it.

B. Li et al.: "MRSch: Multi-Resource Scheduling for HPC", IEEE Cluster 2022: Table III, Figure 8, Section V-E.
"""

from dataclasses import dataclass

import numpy as np

from bridge.workload.mrsch import NODE_POWER, TB, find
from bridge.workload.rules import LOAD_RULES
from bridge.workload.select import MICRO, Jobs, select
from bridge.workload.table import Workload

UNKNOWN = "not stated"


@dataclass(frozen=True)
class Row:
    """One statistic: of this workload, and of the paper's (text: the paper gives ranges, or nothing)."""

    what: str
    here: float
    paper: str


def offered_loads(jobs: Jobs) -> dict[str, float]:
    """Return Σ demand·run / (capacity · time from first to last submission) per resource.

    NaN if all jobs are submitted at once.
    """
    span = float(np.ptp(jobs.submit))
    used = (jobs.demand / jobs.capacity * jobs.run[:, None]).sum(axis=0)
    loads = used / span if span > 0 else np.full(len(jobs.resources), np.nan)
    return dict(zip(jobs.resources, loads.tolist(), strict=True))


def goal(jobs: Jobs) -> dict[str, float]:
    """Return the paper's goal (Eq. 1) over all jobs at once, with requested times: sums to 1."""
    wanted = (jobs.demand / jobs.capacity * jobs.request[:, None]).sum(axis=0)
    return dict(zip(jobs.resources, (wanted / wanted.sum()).tolist(), strict=True))


def statistics(workload: Workload, setting: str) -> list[Row]:
    """Return the statistics of a generated workload, over the jobs that the standard loading rule keeps.

    Args:
        workload: made by `bridge.workload.mrsch.generate`.
        setting: the one it was made with.

    Raises:
        BridgeError: no such setting, or no job can be scheduled.
    """
    paper = find(setting)
    jobs = select(workload, LOAD_RULES["standard"])
    buffer = jobs.demand[:, jobs.resources.index("burst_buffer")]
    asked = buffer[buffer > 0] / TB
    gap = float(np.ptp(jobs.submit)) / MICRO / max(1, len(jobs) - 1)
    rows = [
        Row("jobs", len(jobs), UNKNOWN),
        Row("mean time between arrivals, s", gap, UNKNOWN),
        Row("mean nodes", float(jobs.demand[:, 0].mean()), "halved" if paper.halved else "as logged"),
        Row("jobs with burst buffer, %", 100 * len(asked) / len(jobs), f"{100 * paper.share:.0f}"),
    ]
    if len(asked):
        rows += [
            Row("least request, TB", float(asked.min()), str(paper.least)),
            Row("mean request, TB", float(asked.mean()), UNKNOWN),
            Row("largest request, TB", float(asked.max()), str(paper.most)),
        ]
    if paper.power:
        watts = jobs.extra[NODE_POWER]
        rows += [
            Row("least power per node, W", float(watts.min()), "100"),
            Row("mean power per node, W", float(watts.mean()), UNKNOWN),
            Row("largest power per node, W", float(watts.max()), "215"),
        ]
    rows += [Row(f"offered load: {name}", load, UNKNOWN) for name, load in offered_loads(jobs).items()]
    # Figure 8 shows twelve hours of S5; Figure 9's boxes are drawn without numbers.
    seen = {"S5": "0.6 to 0.9"}.get(setting, UNKNOWN)
    rows.append(Row("goal: burst_buffer (Eq. 1 over all jobs)", goal(jobs)["burst_buffer"], seen))
    return rows
