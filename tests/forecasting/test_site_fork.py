"""Futures of clusters, against the brute force that plays the whole log again with other run times."""

import random
from dataclasses import replace
from typing import Any

import numpy as np
from cluster_on_bridge import Case, build_scenario
from cluster_reference.generate import PARTS, TIMED_PARTS, draw_case
from cluster_reference.scheduler import simulate

from bridge.forecasting.site_fork import SiteFork
from bridge.forecasting.site_present import SiteTimeline
from bridge.forecasting.state import MachineState
from bridge.scheduler.state import NEVER, SECOND
from bridge.worlds.fast.replay import replay

#: When jobs of the brute force arrive that the futures do not know of.
LATER = 100_000_000


def states(case: Case, times: list[int]) -> tuple[list[tuple[MachineState, Any]], Any]:
    scenario = build_scenario(case)
    timeline = SiteTimeline(scenario, replay(scenario))
    return [timeline.state(time * SECOND) for time in times], scenario


def as_future(case: Case, now: int, scenario: Any, runs: dict[int, int]) -> Case:
    """Return the case as it would be if active jobs ran so long, and nothing unforeseen came after now."""
    place = {int(number) - 1: j for j, number in enumerate(scenario.jobs.id)}
    rows = []
    for k, job in enumerate(case["jobs"]):
        j = place[k]
        row = {**job, "request": int(scenario.jobs.request[j]) // SECOND}
        row["estimate"] = int(scenario.estimate.waiting[j]) // SECOND
        row["submit"] = job["submit"] if job["submit"] <= now else LATER + job["submit"]
        if j in runs:
            row["run"] = runs[j]
            row.pop("fails", None)
        rows.append(row)
    calendar = []
    for entry in case.get("calendar", ()):
        if entry.get("announced", 0 if "reservation" in entry else entry.get("time")) <= now:
            calendar.append(entry)
        elif "reservation" in entry:
            later = 3 * LATER
            calendar.append({**entry, "announced": later, "begin": later, "end": later + 1})
    return {**case, "jobs": rows, "calendar": calendar}


def check(case: Case, seed: int) -> int:
    rng = random.Random(seed)
    last = max(job["submit"] for job in case["jobs"])
    now = rng.randint(0, last)
    [(state, which)], scenario = states(case, [now])
    if not len(state.waiting):
        return 0
    fork = SiteFork(state)
    request = state.request // SECOND
    elapsed = state.elapsed // SECOND
    rows = [
        [rng.randint(int(e) + 1, max(int(r), int(e) + 1)) for e, r in zip(elapsed, request, strict=True)]
        for _ in range(2)
    ]
    runs = np.array(rows, np.int64) * SECOND
    for k, starts in enumerate(fork.simulate_futures(runs)):
        chosen = dict(zip(which.tolist(), rows[k], strict=True))
        jobs = simulate(as_future(case, now, scenario, chosen))["jobs"]
        expected = [jobs[int(scenario.jobs.id[j]) - 1]["start"] for j in which[state.n_running :]]
        outcome = [
            None if start == NEVER else start // SECOND for start in starts[state.n_running :].tolist()
        ]
        assert outcome == [None if s is None or s >= LATER else s for s in expected], (case, now, k)
    again = SiteFork(replace(state, settled=False)).simulate_futures(runs)
    assert (again == fork.simulate_futures(runs)).all()
    return len(state.waiting)


def test_futures_are_those_of_a_replay_from_the_start() -> None:
    waiting = 0
    for seed in range(40):
        case = draw_case(
            500_000 + seed, parts=PARTS, backfills=("none", "easy", "conservative"), overruns=False
        )
        waiting += check(case, seed)
    assert waiting > 100


def test_futures_of_clusters_that_change_in_time_are_those_of_a_replay_from_the_start() -> None:
    waiting, parts = 0, (*PARTS, *TIMED_PARTS)
    for seed in range(40):
        waiting += check(draw_case(700_000 + seed, parts=parts, overruns=False), seed)
    assert waiting > 100
