"""MRSch's Figures 8 and 9: the goal hour by hour, and workload by workload."""

from pathlib import Path

import numpy as np
import pandas as pd

from bridge.base.arrays import Floats, Ints
from bridge.base.files import atomic_write
from bridge.env.batch import Batch, PackedObservations
from bridge.learn import checkpoint
from bridge.learn.agent import action_function_of
from bridge.learn.rollout import play
from bridge.report.plots import COLOURS
from bridge.scheduler.state import SECOND
from bridge.study.spec import Study
from bridge.study.windows import TestSet, starts_of
from papers import store, studies
from papers.logs import log
from papers.pictures import legend, panels, saved

#: Hours that Figure 8 shows.
HOURS = 12
DATA = "mrsch-goals"
TABLES = ("mrsch-s1-s5", "mrsch-s6-s10")
_WHOLE = TestSet("whole", "whole")


def recorded(agent: checkpoint.LogAgent, name: str) -> pd.DataFrame:
    """Return time (s since the log's begin) and each resource's goal, at every decision on unseen jobs."""
    recipe = agent.recipe
    prepared = recipe.setup.build_scenario(recipe.setup.select(log(name)), recipe.policy())
    starts, length = starts_of(_WHOLE, len(prepared.jobs), recipe.test_from)
    batch = Batch(prepared, agent.encoder(), 1, length)
    answer, resources = action_function_of(agent), recipe.encoder.resources
    rows: list[list[float]] = []

    def noted(view: PackedObservations) -> Ints:
        rows.append([batch.now[0] / SECOND, *view.context[0, -resources:].tolist()])
        return answer(view)

    play(batch, noted, starts)
    return pd.DataFrame(rows, columns=["time", *prepared.jobs.resources])


def measured(paper: str, study: Study) -> pd.DataFrame:
    """Return the goals of a table's MRSch agents of the first seed; those that are there are kept."""
    path = store.path_of(DATA)
    kept = pd.read_parquet(path) if path.exists() else pd.DataFrame(columns=["workload", "agent"])
    for name in study.logs:
        folder = studies.agent(paper, study.name, "MRSch", name, 1)
        if folder is None or (kept["agent"] == folder.name).any():
            continue
        fresh = recorded(checkpoint.load(folder), name).assign(workload=name, agent=folder.name)
        kept = pd.concat([kept[kept["workload"] != name], fresh], ignore_index=True)
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(path) as out:
            kept.to_parquet(out)
    return kept


def busiest(times: Floats, seconds: float) -> int:
    """Return the first of the decisions of the span of so many seconds that has most of them."""
    counts = np.searchsorted(times, times + seconds) - np.arange(len(times))
    return int(np.argmax(counts))


def draw(paper: str, study: Study) -> Path | None:
    """Draw both figures side by side; None where no agent has been trained here or before."""
    results = measured(paper, study)
    traces = [t for t in study.logs if (results["workload"] == t).any()]
    if not traces:
        return None
    figure, (left, right) = panels(9.0, 3.6, ("", ""))
    trace = traces[-1]
    one = results[results["workload"] == trace]
    times = one["time"].to_numpy(np.float64)
    first = busiest(times, HOURS * 3600)
    inside = (times >= times[first]) & (times <= times[first] + HOURS * 3600)
    names = [c for c in ("nodes", "burst_buffer", "power") if c in one and one[c].notna().any()]
    for c, name in enumerate(names):
        left.step(
            (times[inside] - times[first]) / 3600,
            one[name].to_numpy(np.float64)[inside],
            where="post",
            color=COLOURS[c],
            label=name.replace("_", " "),
        )
    left.set_xlabel(f"h, the {HOURS} with most decisions, {trace}")
    left.set_ylabel("goal (Eq. 1)")
    left.set_ylim(0, 1)
    legend(left)
    boxes = [results[results["workload"] == t]["burst_buffer"].to_numpy(np.float64) for t in traces]
    right.boxplot(boxes, tick_labels=traces, showfliers=False, medianprops={"color": COLOURS[1]})
    right.set_ylabel("goal of the burst buffer")
    right.set_ylim(0, 1)
    return saved(figure, f"{study.name}-goals")


def sentences(study: Study) -> list[str]:
    """Return what the figures show, a sentence a workload."""
    results = measured("mrsch", study)
    text = []
    for trace in study.logs:
        goal = results[results["workload"] == trace]["burst_buffer"].to_numpy(np.float64)
        if len(goal):
            low, middle, high = np.quantile(goal, (0.25, 0.5, 0.75))
            text.append(
                f"{trace}: the burst buffer's goal has the median {middle:.2f}, half of the {len(goal):,} "
                f"decisions lie in {low:.2f}–{high:.2f}."
            )
    return text
