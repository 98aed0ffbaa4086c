"""The Gantt chart of a run: hosts up, time to the right; one plotly trace per class of wait."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bridge.judge.jobs import Started, started
from bridge.report.html import Block, Section, label, section
from bridge.report.page.charts import LOOKS, Sheet, axis, colour, figure, fixed
from bridge.report.page.runs import named
from bridge.report.style import time_unit
from bridge.report.table import Table
from bridge.report.tables import duration

if TYPE_CHECKING:
    from bridge.judge.allocate import Allocation
    from bridge.judge.run import Run

#: Classes of waits: up to so many s, its name, its colour; cool to warm.
CLASSES: tuple[tuple[float, str, str], ...] = (
    (0.0, "no wait", colour(4)),
    (600.0, "≤ 10 min", colour(0)),
    (3600.0, "≤ 1 h", colour(2)),
    (28_800.0, "≤ 8 h", colour(7)),
    (86_400.0, "≤ 1 day", colour(1)),
    (np.inf, "longer", colour(5)),
)
#: Beyond so many bars only the largest jobs are drawn: the others are hardly seen beside them, and a
#: browser takes a second for each zoom. A job has one bar per interval of neighbouring nodes.
MOST_BARS = 8_000
#: Neighbours of one class differ in opacity, so that they can be told apart at every zoom.
OPACITIES = (1.0, 0.88, 0.76)
#: Rows of the table beside it.
LONGEST_WAITS = 10
#: Decimals that are needed to tell seconds in each unit of time.
DECIMALS = {"s": 3, "min": 4, "h": 5, "days": 5}


def schedules(runs: "Sequence[tuple[str, Run]]", sheet: Sheet) -> Section | None:
    """Return the Gantt chart of every run; None if no job of any run started.

    Raises:
        BridgeError: the host ids of a job cannot be read, or the schedule exceeds its machine.
    """
    lead = (
        "Every bar is a job on its nodes from start to end, coloured by how long it had waited; drag to "
        "zoom, double-click to see everything again, point at a bar for its job."
    )
    parts = ((named(name, run), _drawn(name, run, started(run.jobs), sheet)) for name, run in runs)
    return section("schedules", "Schedules", lead, parts)


def _drawn(name: str, run: "Run", jobs: Started, sheet: Sheet) -> list[Block]:
    if len(jobs) == 0:
        return []
    from bridge.judge.hosts import hosts_of

    allocation, placed = hosts_of(jobs.jobs, run.capacity.get("nodes", 0), name)
    work = jobs.nodes * jobs.run
    largest = np.argsort(-work, kind="stable")
    bars = np.cumsum(np.diff(allocation.offsets)[largest])
    shown = np.zeros(len(jobs), np.bool_)
    shown[largest[bars <= MOST_BARS]] = True
    said = "" if placed else "The run tells no nodes: each job is placed on the lowest free ones. "
    if not shown.all():
        share = work[shown].sum() / work.sum() if work.sum() else 1.0
        said += f"Drawn are the {shown.sum():,} largest jobs, {100 * share:.1f} % of the node-time."
    caption = f"Schedule of {named(name, run)}: {len(jobs):,} jobs on {run.capacity.get('nodes', 0):,} nodes."
    drawn = sheet.add(_bars(run, jobs, allocation, shown), caption, wide=True)
    return [[drawn], said.strip(), _longest_waits(jobs)]


def _bars(run: "Run", jobs: Started, allocation: "Allocation", shown: NDArray[np.bool_]) -> object:
    first, end = float(jobs.submit.min()), float(jobs.end.max())
    unit, unit_name = time_unit(end - first)
    decimals = DECIMALS[unit_name]
    owner = np.repeat(np.arange(len(jobs)), np.diff(allocation.offsets))
    low, high = allocation.first, allocation.last + 1
    told = [
        f"job {label(job)}<br>{nodes:,} node{'s' * (nodes != 1)}<br>waited {duration(w)}<br>ran {duration(r)}"
        for job, nodes, w, r in _listed(jobs, jobs.nodes.astype(np.int64), jobs.wait, jobs.run)
    ]
    kind = np.searchsorted([limit for limit, _, _ in CLASSES], jobs.wait)
    traces = []
    for k, (_, title, shade) in enumerate(CLASSES):
        bars = np.flatnonzero((kind[owner] == k) & shown[owner])
        if len(bars) == 0:
            continue
        rows = owner[bars]
        traces.append(
            LOOKS["bar"]
            | {
                "name": title,
                "base": fixed((jobs.start[rows] - first) / unit, decimals),
                "x": fixed(jobs.run[rows] / unit, decimals),
                "y": fixed((low[bars] + high[bars]) / 2, 1),
                "width": fixed(high[bars] - low[bars], 0),
                "marker": {
                    "color": shade,
                    "opacity": [OPACITIES[row % len(OPACITIES)] for row in rows.tolist()],
                    "line": {"width": 0},
                },
                "customdata": [told[row] for row in rows.tolist()],
            }
        )
    hosts = max(run.capacity.get("nodes", 0), int(high.max(initial=0)))
    return figure(
        traces,
        int(np.clip(240 + hosts, 300, 520)),
        barmode="overlay",
        bargap=0,
        dragmode="zoom",
        xaxis=axis(
            f"time since the first submission ({unit_name})",
            range=[0, round((end - first) / unit, decimals)],
            zeroline=False,
        ),
        yaxis=axis("node", range=[0, hosts], showgrid=False, zeroline=False),
        meta={"touch": "pan"},
    )


def _listed(jobs: Started, *columns: NDArray[Any]) -> Iterator[tuple[Any, ...]]:
    """Yield each job's id and its values in the columns."""
    return zip(jobs.jobs["job_id"].astype("str"), *(column.tolist() for column in columns), strict=True)


def _longest_waits(jobs: Started) -> Table:
    everything = list(_listed(jobs, jobs.nodes, jobs.submit, jobs.start, jobs.wait, jobs.run))
    first = float(jobs.submit.min())
    longest = np.argsort(-jobs.wait, kind="stable")[:LONGEST_WAITS].tolist()
    table = Table(("job", "nodes", "submitted after", "started after", "wait", "run"))
    for job, nodes, submit, start, wait, run in (everything[k] for k in longest):
        times = (submit - first, start - first, wait, run)
        table.add(job, f"{int(nodes):,}", *map(duration, times))
    table.caption = f"The {len(longest)} longest waits." if len(longest) > 1 else "The longest wait."
    return table
