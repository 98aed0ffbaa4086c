"""Schedules small enough to be made by hand: every rule of every protocol at least once.

A row is (submit, run, request, nodes, further demands…), times in seconds.
"""

import pytest
from small_jobs import make_jobs, prepared, starts

from bridge.scheduler.protocol import Policy
from bridge.scheduler.state import HOW_BACKFILLED, SECOND, STARTED_AS_HEAD
from bridge.worlds.fast.replay import replay

THREE = [(0, 10, 10, 3), (0, 10, 10, 2), (0, 5, 5, 1)]


def test_without_backfilling_nobody_overtakes() -> None:
    assert starts(THREE, 4, backfill="none") == [0, 10, 10]


def test_easy_backfills_who_ends_by_the_shadow_time() -> None:
    assert starts(THREE, 4) == [0, 10, 0]


def test_a_candidate_that_ends_exactly_at_the_shadow_time_is_in_time_except_for_schedgym() -> None:
    rows = [(0, 10, 10, 3), (0, 10, 10, 2), (0, 10, 10, 1)]
    assert starts(rows, 4) == [0, 10, 0]
    assert starts(rows, 4, rules="schedgym") == [0, 10, 10]


def test_easy_backfills_into_the_extra_nodes_once() -> None:
    # at 1: shadow 10, free then 4, extra 1: the third job takes it for 20 s, so the fourth has none left
    rows = [(0, 10, 10, 2), (1, 10, 10, 3), (2, 20, 20, 1), (3, 20, 20, 1)]
    assert starts(rows, 4) == [0, 10, 2, 20]


def test_schedgym_has_no_extra_nodes() -> None:
    rows = [(0, 10, 10, 2), (1, 10, 10, 3), (2, 20, 20, 1), (3, 20, 20, 1)]
    assert starts(rows, 4, rules="schedgym") == [0, 10, 10, 20]


def test_the_shadow_time_counts_all_releases_of_its_instant() -> None:
    # both running jobs are believed to end at 10: 5 nodes free, 3 for the head, 2 extra
    rows = [(0, 10, 10, 2), (0, 10, 10, 2), (1, 5, 5, 3), (1, 20, 20, 1)]
    assert starts(rows, 5) == [0, 0, 10, 1]


def test_conservative_protects_every_waiting_job_and_easy_only_the_head() -> None:
    # conservative books job 3 at 20 on all nodes, so the long job 4 finds its first hole behind it
    rows = [(0, 10, 10, 3), (0, 10, 10, 3), (0, 10, 10, 4), (0, 25, 25, 1)]
    assert starts(rows, 4) == [0, 10, 25, 0]
    assert starts(rows, 4, backfill="conservative") == [0, 10, 20, 30]


def test_conservative_fills_a_hole_that_is_just_long_enough() -> None:
    # one node is free until 10, when the head takes everything: 10 s fit, 11 s do not
    rows = [(0, 10, 10, 3), (0, 5, 5, 4), (0, 11, 11, 1), (0, 10, 10, 1)]
    assert starts(rows, 4, backfill="conservative") == [0, 10, 15, 0]


def test_a_job_that_ends_early_lets_the_queue_move_up() -> None:
    rows = [(0, 4, 10, 3), (0, 5, 5, 4), (1, 3, 3, 1)]
    assert starts(rows, 4) == [0, 4, 1]
    assert starts(rows, 4, backfill="conservative") == [0, 4, 1]


def test_wfp3_flips_when_the_short_job_has_waited_long_enough() -> None:
    # (w/t)^3 n of X (t=50, since 10) and Y (t=10, since 50) are equal at 60: earlier X leads, later Y
    def queue(busy: float) -> list[float]:
        return starts([(0, busy, busy, 4), (10, 50, 50, 4), (50, 10, 10, 4)], 4, "wfp3")

    assert queue(55) == [0, 55, 105]
    assert queue(60) == [0, 60, 110]  # a tie goes to the earlier submission
    assert queue(100) == [0, 110, 100]


def test_schedgym_computes_wfp3_with_a_wait_that_does_not_pass() -> None:
    # ((-1 - s)/t)^3 n: X (-11/50)^3 * 4 > Y (-51/10)^3 * 4 at any time
    rows = [(0, 100, 100, 4), (10, 50, 50, 4), (50, 10, 10, 4)]
    assert starts(rows, 4, "wfp3", rules="schedgym") == [0, 100, 150]


def test_slurm_prefers_the_user_who_has_used_less_than_his_share() -> None:
    # at 100 user 0 (share 2/3) has used all: factor 2^-1.5; user 1 nothing: factor 1
    rows = [(0, 100, 100, 1), (1, 100, 100, 1), (2, 100, 100, 1)]
    assert starts(rows, 1, "slurm", users=[0, 0, 1]) == [0, 200, 100]
    assert starts(rows, 1, "slurm", users=[0, 0, 0]) == [0, 100, 200]


def test_slurm_prefers_the_partition_with_the_larger_share() -> None:
    # queue 7 holds 2/3 of the work
    rows = [(0, 100, 100, 1), (1, 100, 100, 1), (2, 100, 100, 1)]
    assert starts(rows, 1, "slurm", queues=[7, 3, 7]) == [0, 200, 100]


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("fcfs", [10, 18, 22]),
        ("lcfs", [20, 16, 10]),
        ("sjf", [20, 10, 14]),
        ("ljf", [10, 24, 18]),
        ("saf", [20, 10, 14]),  # areas 48, 36, 42
        ("srf", [20, 10, 14]),  # ratios 1.33, 0.44, 0.86
        ("wfp3", [20, 10, 14]),  # at 10: 8.5, 72, 11.1; at 14: 25.7, -, 43.1
        ("unicep", [20, 10, 14]),  # at 10: 0.435, 0.631, 0.416; at 14: 0.629, -, 0.653
        ("f1", [10, 18, 22]),  # log10 of the submit time leads
        ("n", [20, 10, 14]),  # widest first
        ("-n", [10, 24, 18]),
        ("n % 4", [16, 24, 10]),  # 2, 1, 3
        ("z - w", [20, 16, 10]),  # the shortest wait first
        ("l - t", [20, 10, 14]),
    ],
)
def test_orders_by_hand(order: str, expected: list[float]) -> None:
    # each of the three needs more than half of the nodes: they run one after another from 10 on
    rows = [(0, 10, 10, 10), (1, 8, 8, 6), (2, 4, 4, 9), (3, 6, 6, 7)]
    assert starts(rows, 10, order, "none") == [0, *expected]


def test_candidates_may_have_an_order_of_their_own() -> None:
    # two nodes are free until 10; of the two candidates one fits beside the other's end
    rows = [(0, 10, 10, 2), (0, 10, 10, 4), (0, 10, 10, 2), (0, 5, 5, 2)]
    jobs = make_jobs(rows, [4])
    first_come = replay(prepared(jobs, Policy("fcfs", "easy")))
    shortest = replay(prepared(jobs, Policy("fcfs", "easy", "sjf")))
    assert [*first_come.start // SECOND] == [0, 10, 0, 20]
    assert [*shortest.start // SECOND] == [0, 10, 20, 0]


def test_standard_passes_once_per_instant_and_the_others_once_per_event() -> None:
    rows = [(0, 10, 10, 2), (0, 1, 1, 2)]
    assert starts(rows, 2, "sjf") == [1, 0]
    assert starts(rows, 2, "sjf", rules="cqsim") == [0, 10]
    assert starts(rows, 2, "sjf", rules="schedgym") == [0, 10]


def test_schedgym_keeps_the_head_that_it_once_chose() -> None:
    rows = [(0, 10, 10, 2), (1, 5, 5, 2), (2, 1, 1, 2)]
    assert starts(rows, 2, "sjf") == [0, 11, 10]
    assert starts(rows, 2, "sjf", rules="schedgym") == [0, 10, 15]


def test_schedgym_sees_arrivals_before_completions_and_the_others_after() -> None:
    # at 10 the first job ends (10 s early), one of all nodes and one of a single free node arrive
    rows = [(0, 10, 20, 3), (10, 5, 5, 4), (10, 1, 1, 1)]
    assert starts(rows, 4, rules="schedgym") == [0, 11, 10]  # job 3 backfills before the release is seen
    assert starts(rows, 4, rules="cqsim") == [0, 10, 15]
    assert starts(rows, 4) == [0, 10, 15]


def test_schedgym_reserves_once_and_the_others_refresh() -> None:
    # at 1 the head is promised 30 (job 1's request); job 1 ends at 3, then 10 would do
    rows = [(0, 3, 30, 1), (0, 10, 10, 3), (1, 5, 5, 4), (4, 8, 8, 1)]
    assert starts(rows, 4, rules="schedgym") == [0, 0, 12, 4]  # 4 + 8 < 30: the head is delayed by it
    assert starts(rows, 4, rules="cqsim") == [0, 0, 10, 15]
    assert starts(rows, 4) == [0, 0, 10, 15]


def test_skip_next_passes_over_the_candidate_after_a_backfilled_one() -> None:
    # three nodes come free at 3: of three candidates the first and third start, the second is passed over
    rows = [(0, 3, 10, 3), (0, 20, 20, 1), (1, 5, 5, 4), (1, 9, 9, 1), (1, 9, 9, 1), (1, 9, 9, 1)]
    jobs = make_jobs(rows, [4])
    plain = replay(prepared(jobs, Policy("fcfs", "easy"), "schedgym"))
    skipping = replay(prepared(jobs, Policy("fcfs", "easy"), "schedgym", skip_next=True))
    assert [*plain.start // SECOND] == [0, 0, 20, 3, 3, 3]
    # when nodes come free again, at 12, job 5 is too long for the reservation at 20
    assert [*skipping.start // SECOND] == [0, 0, 20, 3, 25, 3]


def test_a_job_past_its_estimate_is_believed_to_end_in_one_second() -> None:
    rows = [(0, 10, 99, 3), (0, 10, 99, 4), (6, 3, 99, 1), (8, 1, 99, 1)]
    jobs = make_jobs(rows, [4], extra={"guess": [5, 10, 3, 1]})
    schedule = replay(prepared(jobs, Policy(), estimator="predicted(guess)"))
    # at 6 and 8 the first job is believed to end at 7 and 9: 3 s never fit, 1 s does
    assert [*schedule.start // SECOND] == [0, 10, 20, 8]


def test_cqsim_believes_true_run_times_of_waiting_jobs_and_requests_of_running_ones() -> None:
    # the candidate asks for 99 s but runs 5: only CQSim's mixture knows that it ends by the shadow time 10
    rows = [(0, 3, 10, 3), (0, 5, 5, 4), (0, 5, 99, 1)]
    assert starts(rows, 4) == [0, 3, 8]
    assert starts(rows, 4, rules="cqsim") == [0, 5, 0]


def test_every_resource_must_fit() -> None:
    # the burst buffer blocks job 2 until 10, when 10 - 7 = 3 are extra
    def third(burst_buffer: int) -> list[int]:
        rows = [(0, 10, 10, 1, 4), (1, 5, 5, 1, 7), (1, 20, 20, 1, burst_buffer)]
        return [*replay(prepared(make_jobs(rows, [4, 10]), Policy())).start // SECOND]

    assert third(3) == [0, 10, 1]
    assert third(4) == [0, 10, 15]


def test_a_schedule_says_how_each_job_started_and_whom_it_overtook() -> None:
    schedule = replay(prepared(make_jobs(THREE, [4]), Policy()))
    assert [*schedule.how] == [STARTED_AS_HEAD, STARTED_AS_HEAD, HOW_BACKFILLED]
    assert [*schedule.past] == [-1, -1, 1]
    assert [*schedule.reserved] == [-1, 10 * SECOND, -1]
    assert [*schedule.serial] == [0, 2, 1]
    assert [*schedule.end] == [10 * SECOND, 20 * SECOND, 5 * SECOND]


def test_microseconds_are_kept() -> None:
    assert starts([(0, 0.000003, 1, 1), (0.000001, 1, 1, 1)], 1) == [0, 0.000003]
