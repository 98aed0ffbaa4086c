"""The Gantt chart of a run: hosts up, time to the right; one plotly trace per class of wait."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from bridge.errors import BridgeError
from bridge.report.page.charts import Sheet, axis, colour, figure, fixed
from bridge.report.page.html import Section, charts, label, note, part
from bridge.report.page.runs import named
from bridge.report.style import time_unit
from bridge.report.table import Table
from bridge.report.tables import duration

if TYPE_CHECKING:
    import pandas as pd

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
    parts, entries = [], []
    for k, (name, run) in enumerate(runs, 1):
        jobs = run.jobs[run.jobs["starting_time"].notna()].reset_index(drop=True)
        if len(jobs) == 0:
            continue
        anchor = f"schedule-{k}"
        entries.append((anchor, named(name, run)))
        parts.append(part(anchor, named(name, run), *_drawn(name, run, jobs, sheet)))
    if not parts:
        return None
    lead = (
        "Every bar is a job on its nodes from start to end, coloured by how long it had waited; drag to "
        "zoom, double-click to see everything again, point at a bar for its job."
    )
    return Section("schedules", "Schedules", lead, "\n".join(parts), tuple(entries))


def _drawn(name: str, run: "Run", jobs: "pd.DataFrame", sheet: Sheet) -> list[str]:
    allocation, placed = _allocation(name, run, jobs)
    size = jobs["requested_number_of_resources"].to_numpy(np.float64)
    work = size * jobs["execution_time"].to_numpy(np.float64)
    largest = np.argsort(-work, kind="stable")
    bars = np.cumsum(np.diff(allocation.offsets)[largest])
    shown = np.zeros(len(jobs), np.bool_)
    shown[largest[bars <= MOST_BARS]] = True
    said = "" if placed else "The run tells no nodes: each job is placed on the lowest free ones. "
    if not shown.all():
        share = work[shown].sum() / work.sum() if work.sum() else 1.0
        said += f"Drawn are the {shown.sum():,} largest jobs, {100 * share:.1f} % of the node-time."
    caption = f"Schedule of {named(name, run)}: {len(jobs):,} jobs on {run.capacity.get('nodes', 0):,} nodes."
    drawn = charts(sheet.add(_bars(run, jobs, allocation, shown), caption, wide=True))
    return [drawn, note(said.strip()), _longest_waits(jobs)]


def _allocation(name: str, run: "Run", jobs: "pd.DataFrame") -> "tuple[Allocation, bool]":
    """Return every job's hosts, and whether the run itself told them."""
    from bridge.judge.allocate import place
    from bridge.judge.hosts import parse

    told = bool((jobs["allocated_resources"].fillna("") != "").all())
    where = jobs if told else place(jobs, run.capacity.get("nodes", 0))
    allocation, unreadable = parse(where["allocated_resources"])
    if unreadable.any():
        job = jobs["job_id"].iloc[int(np.flatnonzero(unreadable)[0])]
        raise BridgeError(
            f"the host ids of job {job} cannot be read", where=name, remedy="`bridge check` names all."
        )
    return allocation, told


def _bars(run: "Run", jobs: "pd.DataFrame", allocation: "Allocation", shown: NDArray[np.bool_]) -> object:
    begin = jobs["starting_time"].to_numpy(np.float64)
    length = jobs["execution_time"].to_numpy(np.float64)
    wait = jobs["waiting_time"].to_numpy(np.float64)
    first, end = float(jobs["submission_time"].min()), float(jobs["finish_time"].max())
    unit, unit_name = time_unit(end - first)
    decimals = DECIMALS[unit_name]
    owner = np.repeat(np.arange(len(jobs)), np.diff(allocation.offsets))
    low, high = allocation.first, allocation.last + 1
    told = [
        f"job {label(job)}<br>{nodes:,} node{'s' * (nodes != 1)}<br>waited {duration(w)}<br>ran {duration(r)}"
        for job, nodes, w, r in zip(
            jobs["job_id"].astype("str"),
            jobs["requested_number_of_resources"].to_numpy(np.int64).tolist(),
            wait.tolist(),
            length.tolist(),
            strict=True,
        )
    ]
    kind = np.searchsorted([limit for limit, _, _ in CLASSES], wait)
    traces = []
    for k, (_, title, shade) in enumerate(CLASSES):
        bars = np.flatnonzero((kind[owner] == k) & shown[owner])
        if len(bars) == 0:
            continue
        rows = owner[bars]
        traces.append(
            {
                "type": "bar",
                "orientation": "h",
                "name": title,
                "base": fixed((begin[rows] - first) / unit, decimals),
                "x": fixed(length[rows] / unit, decimals),
                "y": fixed((low[bars] + high[bars]) / 2, 1),
                "width": fixed(high[bars] - low[bars], 0),
                "marker": {
                    "color": shade,
                    "opacity": [OPACITIES[row % len(OPACITIES)] for row in rows.tolist()],
                    "line": {"width": 0},
                },
                "customdata": [told[row] for row in rows.tolist()],
                "hovertemplate": "%{customdata}<extra></extra>",
                "showlegend": True,
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


def _longest_waits(jobs: "pd.DataFrame") -> str:
    longest = jobs.sort_values("waiting_time", ascending=False, kind="stable").head(LONGEST_WAITS)
    first = float(jobs["submission_time"].min())
    rows = [
        [
            job,
            f"{int(nodes):,}",
            duration(submit - first),
            duration(start - first),
            duration(wait),
            duration(run),
        ]
        for job, nodes, submit, start, wait, run in zip(
            longest["job_id"].astype("str"),
            longest["requested_number_of_resources"],
            *(
                longest[column].to_numpy(np.float64).tolist()
                for column in ("submission_time", "starting_time", "waiting_time", "execution_time")
            ),
            strict=True,
        )
    ]
    return Table(
        ("job", "nodes", "submitted after", "started after", "wait", "run"),
        rows,
        caption=f"The {len(rows)} longest waits." if len(rows) > 1 else "The longest wait.",
    ).html()
