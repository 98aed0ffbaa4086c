"""Nodes, burst buffer and power together: budgets hold, EASY keeps its promise, and the paper's example."""

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from small_jobs import Agent, Row, make_jobs, play, prepared, starts

from bridge.judge.check import check_schedule
from bridge.judge.metrics import compute_metrics
from bridge.scheduler.protocol import Policy
from bridge.scheduler.state import HOW_BACKFILLED, State
from bridge.workload.select import Jobs
from bridge.worlds.fast.jobs_table import JobsTableBuilder
from bridge.worlds.fast.replay import replay

HOUR = 3600
#: MRSch, Figure 1: percentages of two resources, an hour each.
PAPER = {"J1": (70, 10), "J2": (50, 60), "J3": (30, 30), "J4": (40, 10)}


@st.composite
def three_resources(draw: st.DrawFn) -> Jobs:
    """Small workloads in which each of three resources is scarce."""
    capacity = draw(st.tuples(st.integers(2, 6), st.integers(1, 6), st.integers(1, 9)))
    n = draw(st.integers(2, 16))
    rows: list[Row] = []
    for submit in sorted(draw(st.lists(st.integers(0, 8), min_size=n, max_size=n))):
        run = draw(st.integers(1, 6))
        demand = [draw(st.integers(int(r == 0), c)) for r, c in enumerate(capacity)]
        rows.append((submit, run, run + draw(st.integers(0, 4)), *demand))
    return make_jobs(rows, capacity)


@pytest.mark.parametrize("order", ["fcfs", "sjf", "wfp3"])
@pytest.mark.parametrize("backfill", ["none", "easy", "conservative"])
@given(jobs=three_resources(), idle=st.integers(0, 100))
def test_no_resource_is_over_capacity_and_no_power_budget_exceeded(
    order: str, backfill: str, jobs: Jobs, idle: int
) -> None:
    p = prepared(jobs, Policy(order, backfill))
    table = JobsTableBuilder(p, replay(p)).rows()
    capacity = dict(zip(jobs.resources, jobs.capacity.tolist(), strict=True))
    verdict = check_schedule(table, capacity)
    assert verdict.ok, verdict.first
    metrics = compute_metrics(table, capacity, idle_power=idle)
    budget = idle * capacity["nodes"] + capacity["power"]
    assert metrics["power.budget"] == budget
    assert metrics["power.max"] == idle * capacity["nodes"] + verdict.peak["power"] <= budget
    assert all(metrics[f"utilisation.{name}"] <= 1 for name in capacity)  # type: ignore[operator]


@pytest.mark.parametrize("order", ["fcfs", "sjf", "wfp3"])
@given(jobs=three_resources())
def test_easy_never_delays_the_reserved_job(order: str, jobs: Jobs) -> None:
    schedule = replay(prepared(jobs, Policy(order, "easy")))
    for j in np.flatnonzero(schedule.reserved >= 0):
        # other orders may put a new head before the reserved job: only backfilling must not delay it
        between = (schedule.start > jobs.submit[j]) & (schedule.start < schedule.start[j])
        only_behind = (schedule.how[between] == HOW_BACKFILLED) & (schedule.past[between] == j)
        if order == "fcfs" or only_behind.all():
            event("overtaken" if (schedule.past == j).any() else "alone")
            assert schedule.start[j] <= schedule.reserved[j]


def papers_jobs(*order: str) -> list[Row]:
    return [(0, HOUR, HOUR, *PAPER[name]) for name in order]


def started(order: tuple[str, ...], rule: str = "fcfs", backfill: str = "easy") -> dict[str, float]:
    """Return when each of the paper's jobs starts, hours."""
    jobs = make_jobs(papers_jobs(*order), [100, 100])
    schedule = replay(prepared(jobs, Policy(rule, backfill)))
    return {name: t / HOUR / 1e6 for name, t in zip(order, schedule.start.tolist(), strict=True)}


FIXED = {"J1": 1, "J2": 0, "J3": 0, "J4": 2}  # (J2, J3), (J1), (J4): 3 h
IDEAL = {"J1": 0, "J2": 1, "J3": 0, "J4": 1}  # (J1, J3), (J2, J4): 2 h


def test_the_papers_example_by_rules() -> None:
    assert started(("J2", "J1", "J3", "J4")) == FIXED  # by half of each resource: 55, 40, 30, 25 %
    assert started(("J2", "J3", "J1", "J4"), backfill="none") == FIXED  # by burst buffer
    assert started(("J1", "J3", "J2", "J4"), backfill="none") == IDEAL
    assert started(("J1", "J2", "J3", "J4"), "n") == IDEAL  # widest first
    assert starts([row[:4] for row in papers_jobs("J1", "J3", "J2", "J4")], 100) == [0, 0, HOUR, HOUR]


@pytest.mark.parametrize(
    ("priority", "expected"),
    [
        ({name: sum(demand) for name, demand in PAPER.items()}, FIXED),
        ({"J1": 4, "J3": 3, "J2": 2, "J4": 1}, IDEAL),
    ],
    ids=["fixed priority", "ideal"],
)
def test_the_papers_example_by_an_agent_that_picks(
    priority: dict[str, int], expected: dict[str, int]
) -> None:
    names = list(PAPER)

    def highest(state: State, _: int) -> int:
        waiting = state.candidates[0, : state.scalars.n_candidates[0]]
        return int(np.argmax([priority[names[j]] for j in waiting]))

    pick: Agent = highest
    jobs = make_jobs(papers_jobs(*names), [100, 100])
    start, _, _ = play(prepared(jobs, Policy(agent=frozenset({"pick"}))), pick)
    assert {name: t / HOUR for name, t in zip(names, start, strict=True)} == expected
