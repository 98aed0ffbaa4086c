"""Many worlds side by side, pauses, dead ends, and replays of slices."""

import signal
import time

import numpy as np
import pytest
from small_jobs import make_jobs, prepared

from bridge.base.errors import BridgeError
from bridge.scheduler import state as scheduler_state
from bridge.scheduler.protocol import Policy, protocol
from bridge.scheduler.state import SECOND
from bridge.workload.rules import LOAD_RULES
from bridge.workload.select import Jobs
from bridge.worlds.fast import episode, world
from bridge.worlds.fast.episode import prepare, with_preset
from bridge.worlds.fast.replay import replay, replay_sequences


def some_jobs(n: int = 120) -> Jobs:
    rng = np.random.default_rng(8)
    run = rng.integers(1, 9, n)
    rows = np.column_stack(
        (np.sort(rng.integers(0, 100, n)), run, run + rng.integers(0, 9, n), rng.integers(1, 9, n))
    )
    return make_jobs(rows.tolist(), [10], users=rng.integers(0, 3, n).tolist())


@pytest.mark.parametrize("rules", ["standard", "cqsim", "schedgym"])
def test_worlds_of_one_batch_do_not_disturb_each_other(rules: str) -> None:
    p = prepared(some_jobs(), Policy("slurm", "easy"), rules)
    firsts, length = [0, 30, 60, 80], 40
    alone = replay_sequences(p, np.array(firsts), length)
    state = scheduler_state.allocate(len(firsts), length, 1, window=1, users=len(p.share))
    state = episode.configure(state, p)
    memory = world.allocate(len(firsts), length)
    for b, first in enumerate(firsts):
        episode.load_episode(state, memory, b, p, first, first + length)
    playing = list(range(len(firsts)))
    while playing:  # one pass of each in turn
        playing = [b for b in playing if world.run_until_decision(state, memory, b, 1) == world.PAUSE]
    for b, schedule in enumerate(alone):
        np.testing.assert_array_equal(state.jobs.start[b], schedule.start)
        np.testing.assert_array_equal(state.jobs.end[b], schedule.end)


def test_a_sequence_starts_on_an_idle_machine_and_is_drained() -> None:
    rows = [(0, 50, 50, 4), (1, 50, 50, 4), (2, 5, 5, 4)]
    p = prepared(make_jobs(rows, [4]), Policy())
    (schedule,) = replay_sequences(p, np.array([1]), 2)
    assert list(schedule.start // SECOND) == [1, 51]
    assert list(schedule.end // SECOND) == [51, 56]


def test_memory_is_clean_between_sequences() -> None:
    p = prepared(some_jobs(), Policy("slurm", "easy"), "schedgym")
    there, elsewhere, back = replay_sequences(p, np.array([10, 50, 10]), 60)
    np.testing.assert_array_equal(there.start, back.start)
    np.testing.assert_array_equal(there.reserved, back.reserved)
    assert np.any(there.start - there.start[0] != elsewhere.start - elsewhere.start[0])


def test_a_sequence_beyond_the_end_is_refused() -> None:
    p = prepared(some_jobs(), Policy())
    with pytest.raises(BridgeError, match="a sequence of 40 jobs does not fit"):
        replay_sequences(p, np.array([81]), 40)
    with pytest.raises(BridgeError, match="a sequence of 40 jobs does not fit"):
        replay_sequences(p, np.array([-1]), 40)
    assert replay_sequences(p, np.array([], np.int64), 40) == []


def test_progress_counts_jobs_and_sequences() -> None:
    p = prepared(some_jobs(), Policy())
    seen: list[int] = []
    replay_sequences(p, np.array([0, 1, 2]), 10, seen.append)
    assert seen == [1, 2, 3]


def test_a_long_replay_comes_up_for_air() -> None:
    n = 15_000  # 30,000 passes
    p = prepared(make_jobs([(i, 1, 1, 1) for i in range(n)], [2]), Policy(), "cqsim")
    seen: list[int] = []
    replay(p, seen.append)
    assert seen
    assert seen == sorted(seen)
    assert 0 < seen[0] <= n


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("rules", ["standard", "cqsim", "schedgym"])
def test_a_score_that_is_no_number_names_job_time_and_order(rules: str) -> None:
    p = prepared(make_jobs([(0, 5, 5, 1), (4, 5, 8, 2), (4.5, 5, 5, 1)], [2]), Policy("n/(t - 8)"), rules)
    with pytest.raises(
        BridgeError, match=r"score of job 2 is not a finite number at time .* \(s=4, t=8, n=2\)"
    ):
        replay(p)


def test_presets_of_the_schedgym_family() -> None:
    base = protocol("schedgym")
    assert with_preset(base, "rlbackfilling")[0].skip_next
    assert with_preset(base, "schedinspector")[0].tie == "nodes"
    assert with_preset(base, "rlscheduler")[0] == base
    expected = ["rlbackfilling", "rlscheduler"]
    assert [with_preset(base, x)[1].name for x in ("rlbackfilling", "rlscheduler")] == expected


def test_schedinspector_breaks_ties_by_nodes() -> None:
    rows = [(0, 10, 10, 4), (1, 5, 5, 3), (1, 5, 5, 2)]
    jobs = make_jobs(rows, [4])
    plain = replay(prepared(jobs, Policy("sjf", "none"), "schedgym"))
    by_nodes = replay(prepared(jobs, Policy("-t", "none"), "standard", tie="nodes"))
    assert list(plain.start // SECOND) == [0, 10, 15]
    assert list(by_nodes.start // SECOND) == [0, 15, 10]


def test_shares_of_users_and_queues_are_their_part_of_the_node_seconds() -> None:
    jobs = make_jobs([(0, 10, 10, 1), (0, 10, 10, 3), (0, 20, 99, 2)], [4], users=[7, 7, 9], queues=[1, 2, 1])
    p = prepared(jobs, Policy())
    assert list(p.users) == [0, 0, 1]
    assert list(p.share) == [0.5, 0.5]
    assert list(p.partition) == [50 / 80, 30 / 80, 50 / 80]


def test_plain_predictions_come_from_the_users_last_two_runs() -> None:
    rows = [(0, 4, 90, 1), (10, 6, 90, 1), (20, 9, 90, 1), (30, 1, 90, 1)]
    p = prepared(make_jobs(rows, [4], users=[1, 1, 1, 1]), Policy(), estimator="predicted")
    assert list(p.estimate.order / SECOND) == [90, 90, 5, 7.5]
    assert not p.oracle
    assert prepared(make_jobs(rows, [4]), Policy(), "cqsim").oracle


def test_a_predictor_of_ones_own_is_asked_by_the_estimator_predicted() -> None:
    # job 2 needs the whole machine; job 3 (100 s requested) may pass it only if believed to end by 10 s
    jobs = make_jobs([(0, 10, 10, 1), (1, 5, 5, 2), (2, 8, 100, 1)], [2])
    rule, rules = LOAD_RULES["standard"], protocol("standard")
    policy = Policy("fcfs", "easy")
    believed = prepare(jobs, rules, policy, "predicted", rule, predictor=lambda j: j.run)
    assert (replay(believed).start // SECOND).tolist() == [0, 10, 2]
    requested = prepare(jobs, rules, policy, "requested", rule)
    assert (replay(requested).start // SECOND).tolist() == [0, 10, 15]


def crowd(n: int) -> Jobs:
    """Return jobs that are all submitted at one instant."""
    rng = np.random.default_rng(1)
    run = rng.integers(10, 100_000, n)
    rows = np.column_stack((np.zeros(n), run, run + rng.integers(0, 100_000, n), rng.integers(1, 65, n)))
    return make_jobs(rows.tolist(), [128])


@pytest.mark.parametrize("order", ["fcfs", "wfp3"])
@pytest.mark.parametrize("rules", ["standard", "cqsim"])
def test_pausing_within_a_pass_changes_no_start(
    order: str, rules: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    p = prepared(crowd(300), Policy(order, "conservative"), rules)
    expected = replay(p)
    pauses = []
    monkeypatch.setattr("bridge.worlds.fast.replay.WORK", 500)
    found = replay(p, pauses.append)
    assert len(pauses) > 100
    for name in ("start", "end", "how", "past", "reserved", "serial"):
        assert (getattr(found, name) == getattr(expected, name)).all()


def test_ctrl_c_ends_a_pass_over_thirty_thousand_jobs() -> None:
    p = prepared(crowd(30_000), Policy(backfill="conservative"))
    replay(prepared(crowd(10), Policy(backfill="conservative")))  # compiled
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 1.0)
        begun = time.perf_counter()
        with pytest.raises(KeyboardInterrupt):
            replay(p)
        assert time.perf_counter() - begun < 5.0
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, before)
