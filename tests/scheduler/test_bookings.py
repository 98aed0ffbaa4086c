"""Bookings kept from pass to pass against all jobs booked afresh at every pass, and against the reference."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_jobs import make_jobs, prepared, random_rows, reference_schedule, same

from bridge.base.arrays import Array
from bridge.scheduler import state as scheduler_state
from bridge.scheduler.compiled import KEEP_ABOVE
from bridge.scheduler.protocol import Policy
from bridge.scheduler.state import HOW_BACKFILLED, LATEST, NEVER
from bridge.workload.select import Jobs
from bridge.worlds.fast import episode, world
from bridge.worlds.fast.episode import Scenario
from bridge.worlds.fast.replay import Schedule, replay


def keeping_above(p: Scenario, jobs: int) -> Scenario:
    """Return the same, with bookings kept while more than so many jobs wait."""
    rules = p.compiled.rules.copy()
    rules.keep_above[0] = jobs
    return replace(p, compiled=replace(p.compiled, rules=rules))


def assert_equal(ours: Schedule, theirs: Schedule) -> None:
    for name, values in vars(theirs).items():
        np.testing.assert_array_equal(getattr(ours, name), values, name)


def overloaded(seed: int, n: int = 160, more: int = 12) -> Jobs:
    """Return jobs that come much faster than they can run, most with requests far beyond their run times."""
    rng = np.random.default_rng(seed)
    rows = random_rows(rng, n, span=300, run=30, slack=60, nodes=17, more=more)
    guess = rng.integers(1, 60, n).tolist()
    return make_jobs(rows, [16, 12], users=rng.integers(0, 4, n).tolist(), extra={"guess": guess})


@pytest.mark.parametrize("rules", ["standard", "cqsim"])
@pytest.mark.parametrize("estimator", ["requested", "actual", "noisy(0.5, 3)", "predicted(guess)"])
@pytest.mark.parametrize("order", ["fcfs", "sjf", "wfp3"])
@pytest.mark.parametrize("seed", range(3))
def test_kept_bookings_change_nothing(seed: int, order: str, estimator: str, rules: str) -> None:
    p = prepared(overloaded(seed), Policy(order, "conservative"), rules, estimator)
    afresh = replay(keeping_above(p, NEVER))
    assert_equal(replay(keeping_above(p, 0)), afresh)
    assert_equal(replay(keeping_above(p, 30)), afresh)
    assert np.count_nonzero(afresh.how == HOW_BACKFILLED) > 10  # overtake
    assert np.median(afresh.start - p.jobs.submit) > 0


@pytest.mark.parametrize("seed", range(2))
def test_kept_bookings_give_the_references_schedule(seed: int) -> None:
    p = prepared(overloaded(seed, n=90, more=1), Policy("fcfs", "conservative"))
    assert same(replay(keeping_above(p, 0)), reference_schedule(p))


@given(
    data=st.data(),
    rules=st.sampled_from(["standard", "cqsim"]),
    order=st.sampled_from(["fcfs", "sjf", "lcfs"]),
)
def test_kept_bookings_change_nothing_in_small_workloads(data: st.DataObject, rules: str, order: str) -> None:
    n = data.draw(st.integers(1, 14))
    submits = sorted(data.draw(st.lists(st.integers(0, 9), min_size=n, max_size=n)))
    rows = []
    for submit in submits:
        run = data.draw(st.integers(1, 6))
        rows.append((submit, run, run + data.draw(st.integers(0, 5)), data.draw(st.integers(1, 4))))
    guess = data.draw(st.lists(st.integers(1, 6), min_size=n, max_size=n))
    estimator = data.draw(st.sampled_from(["requested", "actual", "predicted(guess)"]))
    p = prepared(
        make_jobs(rows, [4], extra={"guess": guess}), Policy(order, "conservative"), rules, estimator
    )
    kept = replay(keeping_above(p, 0))
    assert_equal(kept, replay(keeping_above(p, NEVER)))
    assert same(kept, reference_schedule(p))


def free_at(times: Array, free: Array, steps: int, instants: Array) -> Array:
    return free[:, np.searchsorted(times[:steps], instants, "right") - 1]


@pytest.mark.parametrize("estimator", ["requested", "predicted(guess)"])
@pytest.mark.parametrize(("order", "rules"), [("fcfs", "standard"), ("sjf", "standard"), ("sjf", "cqsim")])
def test_the_kept_profile_is_what_running_jobs_and_bookings_leave(
    order: str, estimator: str, rules: str
) -> None:
    p = keeping_above(prepared(overloaded(4), Policy(order, "conservative"), rules, estimator), 0)
    n = len(p.jobs)
    state = episode.configure(scheduler_state.allocate(1, n, 2, window=1, users=len(p.share)), p)
    memory = world.allocate(1, n)
    episode.load_episode(state, memory, 0, p, 0, n)
    seen = 0
    while world.run_until_decision(state, memory, 0, 1) != world.DONE:  # pass after pass
        env, kept = state.scalars[0], state.kept[: state.scalars[0].n_kept]
        if not env.keeps:
            continue
        begins, ends = np.maximum(kept.time, env.now), np.minimum(kept.time + kept.length, LATEST)
        instants = np.unique(
            [*begins, *ends, *state.p_time[: env.profile_steps], *state.previous_time[: env.n_base]]
        )
        instants = instants[instants >= env.now]
        left = free_at(state.previous_time, state.was_free, env.n_base, instants)
        for begin, end, job in zip(begins, ends, kept.job, strict=True):
            left[:, (instants >= begin) & (instants < end)] -= state.demand[0, job][:, None]
        np.testing.assert_array_equal(free_at(state.p_time, state.p_free, env.profile_steps, instants), left)
        seen += len(kept)
    assert seen > 200


def test_a_pass_that_pauses_keeps_its_bookings(monkeypatch: pytest.MonkeyPatch) -> None:
    p = prepared(overloaded(5), Policy("fcfs", "conservative"))
    whole = replay(keeping_above(p, 0))
    monkeypatch.setattr("bridge.worlds.fast.replay.WORK", 200)
    assert_equal(replay(keeping_above(p, 0)), whole)


def test_short_queues_are_booked_afresh() -> None:
    p = prepared(overloaded(1), Policy("fcfs", "conservative"))
    assert p.compiled.rules.keep_above[0] == KEEP_ABOVE
