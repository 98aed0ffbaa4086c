"""The compiled core against the plain-Python reference, and what must hold for every schedule."""

from dataclasses import dataclass, field

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from small_jobs import Row, make_jobs, prepared, random_rows, reference_schedule, same

from bridge.scheduler.protocol import SWITCHED, Policy
from bridge.scheduler.state import SECOND
from bridge.workload.select import Jobs
from bridge.worlds.fast.replay import replay

ORDERS = ("fcfs", "lcfs", "sjf", "ljf", "saf", "srf", "wfp3", "unicep", "f1", "slurm")
ESTIMATORS = ("requested", "actual", "cqsim", "noisy(0.5, 3)", "predicted(guess)")


@dataclass(frozen=True)
class Small:
    """A small workload, full of ties."""

    rows: list[Row]
    capacity: list[int]
    users: list[int] = field(default_factory=list)
    guess: list[int] = field(default_factory=list)

    def jobs(self) -> Jobs:
        return make_jobs(
            self.rows,
            self.capacity,
            users=self.users,
            queues=[(u + 1) % 2 for u in self.users],
            extra={"guess": self.guess},
        )


@st.composite
def small_workloads(draw: st.DrawFn, slack: int = 4) -> Small:
    capacity = draw(st.lists(st.integers(1, 6), min_size=1, max_size=3))
    n = draw(st.integers(1, 16))
    submits = sorted(draw(st.lists(st.integers(0, 8), min_size=n, max_size=n)))
    rows: list[Row] = []
    for submit in submits:
        run = draw(st.integers(1, 6))
        request = run + draw(st.integers(0, slack))
        demand = [draw(st.integers(int(r == 0), c)) for r, c in enumerate(capacity)]
        rows.append((submit, run, request, *demand))
    return Small(
        rows,
        capacity,
        users=draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)),
        guess=draw(st.lists(st.integers(1, 4), min_size=n, max_size=n)),
    )


POOLED = [name for name, rules in SWITCHED.items() if not rules.needs_cluster]


@pytest.mark.parametrize("rules", POOLED)
@pytest.mark.parametrize("order", ORDERS)
@given(workload=small_workloads(), data=st.data())
def test_small_workloads(rules: str, order: str, workload: Small, data: st.DataObject) -> None:
    backfill = data.draw(st.sampled_from(SWITCHED[rules].backfills))
    estimator = data.draw(st.sampled_from(ESTIMATORS))
    candidates, switches = "", {}
    if rules == "standard" and backfill == "easy":
        candidates = data.draw(st.sampled_from(["", "sjf", "saf", "lcfs"]))
    if rules == "schedgym":
        switches = {"skip_next": data.draw(st.booleans()), "tie": data.draw(st.sampled_from(["", "nodes"]))}
    event(f"{backfill}, {estimator}")
    p = prepared(workload.jobs(), Policy(order, backfill, candidates), rules, estimator, **switches)
    schedule, expected = replay(p), reference_schedule(p)
    assert [*schedule.start // SECOND] == [j.start // SECOND for j in expected]
    assert same(schedule, expected)
    if backfill == "easy":
        assert [*schedule.reserved] == [j.reserved for j in expected]


@pytest.mark.parametrize("rules", POOLED)
@pytest.mark.parametrize(
    ("order", "backfill", "estimator"),
    [
        ("fcfs", "easy", "requested"),
        ("sjf", "easy", "predicted(guess)"),
        ("saf", "easy", "noisy(0.5, 3)"),
        ("wfp3", "easy", "requested"),
        ("slurm", "easy", "cqsim"),
        ("fcfs", "conservative", "requested"),
        ("sjf", "conservative", "predicted(guess)"),
    ],
)
def test_long_queues_of_many_blocks(rules: str, order: str, backfill: str, estimator: str) -> None:
    if backfill not in SWITCHED[rules].backfills:
        pytest.skip(f"{rules} has no {backfill} backfilling")
    rng = np.random.default_rng(11)
    n = 300 if backfill == "easy" else 90
    jobs = make_jobs(
        random_rows(rng, n, span=40, run=9, slack=20, nodes=33, more=9),
        [40, 12],
        users=rng.integers(0, 4, n).tolist(),
        extra={"guess": rng.integers(1, 6, n).tolist()},
    )
    p = prepared(jobs, Policy(order, backfill), rules, estimator)
    assert same(replay(p), reference_schedule(p))


@given(
    workload=small_workloads(),
    rules=st.sampled_from(POOLED),
    order=st.sampled_from(ORDERS),
    estimator=st.sampled_from(ESTIMATORS),
    data=st.data(),
)
def test_every_schedule_is_possible(
    workload: Small, rules: str, order: str, estimator: str, data: st.DataObject
) -> None:
    backfill = data.draw(st.sampled_from(SWITCHED[rules].backfills))
    jobs = workload.jobs()
    p = prepared(jobs, Policy(order, backfill), rules, estimator)
    schedule = replay(p)
    assert np.all(schedule.start >= jobs.submit)
    assert np.all(schedule.end == schedule.start + jobs.run)
    assert len(set(schedule.serial)) == len(jobs)
    for t in schedule.start:
        used = jobs.demand[(schedule.start <= t) & (schedule.end > t)].sum(axis=0)
        assert np.all(used <= jobs.capacity)
    again = replay(prepared(jobs, Policy(order, backfill), rules, estimator))
    for name in ("start", "end", "how", "past", "reserved", "serial"):
        np.testing.assert_array_equal(getattr(schedule, name), getattr(again, name))


# schedgym does not refresh its reservation: a job that ends early lets candidates delay the head
@pytest.mark.parametrize(
    ("rules", "estimator"),
    [
        ("standard", "requested"),
        ("standard", "actual"),
        ("cqsim", "requested"),
        ("cqsim", "actual"),
        ("schedgym", "actual"),
    ],
)
@given(workload=small_workloads())
def test_easy_keeps_its_promise_to_the_head_if_no_estimate_is_too_short(
    workload: Small, rules: str, estimator: str
) -> None:
    schedule = replay(prepared(workload.jobs(), Policy("fcfs", "easy"), rules, estimator))
    promised = schedule.reserved >= 0
    assert np.all(schedule.start[promised] <= schedule.reserved[promised])


@given(workload=small_workloads())
def test_conservative_keeps_all_its_promises_if_run_times_are_known(workload: Small) -> None:
    schedule = replay(prepared(workload.jobs(), Policy("fcfs", "conservative"), estimator="actual"))
    promised = schedule.reserved >= 0
    np.testing.assert_array_equal(schedule.start[promised], schedule.reserved[promised])


@given(workload=small_workloads(), data=st.data())
def test_later_jobs_never_delay_earlier_ones_under_conservative_with_known_run_times(
    workload: Small, data: st.DataObject
) -> None:
    n = data.draw(st.integers(1, len(workload.rows)))
    policy = Policy("fcfs", "conservative")
    all_jobs = workload.jobs()
    whole = replay(prepared(all_jobs, policy, estimator="actual"))
    first = replay(prepared(all_jobs.take(slice(n)), policy, estimator="actual"))
    np.testing.assert_array_equal(whole.start[:n], first.start)


@given(workload=small_workloads(), order=st.sampled_from(["fcfs", "sjf", "lcfs", "f1"]))
def test_without_backfilling_starts_follow_the_queue(workload: Small, order: str) -> None:
    p = prepared(workload.jobs(), Policy(order, "none"), "standard")
    schedule, expected = replay(p), reference_schedule(p)
    assert np.all(schedule.reserved < 0)
    assert same(schedule, expected)
    if order == "fcfs":
        assert np.all(np.diff(schedule.start) >= 0)
