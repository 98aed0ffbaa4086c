"""Rules of action: every life of every job as an independent plain Python has it, and exact small cases."""

import os
from dataclasses import replace

import action_reference
import numpy as np
import pytest
from action_reference import RULES, Life
from small_jobs import make_jobs

from bridge.base.errors import BridgeError
from bridge.scheduler.actions import SUSPENDABLE, draw_permits, parse_action
from bridge.scheduler.state import SECOND
from bridge.workload.select import Jobs
from bridge.worlds.fast.episode import Scenario
from bridge.worlds.fast.replay import replay, replay_sequences
from bridge.worlds.fast.scheduler_config import SchedulerConfig

#: Compiling takes longer than these tests as plain Python; see `test_actions_without_compiler.py`.
pytestmark = [] if os.environ.get("NUMBA_DISABLE_JIT") == "1" else [pytest.mark.slow]


def scenario(
    jobs: Jobs, action: str, order: str = "fcfs", backfill: str = "easy", **options: str
) -> Scenario:
    return SchedulerConfig(order, backfill, action=action, **options).build_scenario(jobs)  # type: ignore[arg-type]


def lives_of(prepared: Scenario) -> list[Life]:
    """Return all lives as (job, start, end, completed), in s."""
    schedule = replay(prepared)
    assert schedule.lives is not None
    log = schedule.lives.log
    assert log is not None
    return [
        (int(job), int(start) // SECOND, int(end) // SECOND, ended == 0)
        for start, end, job, _, ended in log.tolist()
    ]


def draw_jobs(rng: np.random.Generator) -> Jobs:
    """Draw a few jobs on a small machine, crowded, with requests that may be short of the run."""
    n, nodes, more = int(rng.integers(2, 14)), int(rng.integers(2, 9)), int(rng.integers(1, 3))
    scale = int(rng.choice([120, 1200, 8000]))
    submit = np.sort(rng.integers(0, int(rng.choice([1, 600, 6000])) + 1, n))
    run = np.where(rng.random(n) < 0.4, rng.integers(1, 400, n), rng.integers(1, scale, n))
    believed = np.maximum(1, run * rng.choice([0.3, 1, 1, 2, 5], n)).astype(int)
    request = np.maximum(believed, run)
    demands = [rng.integers(1, nodes + 1, n), rng.integers(0, 4, n)][:more]
    rows = np.column_stack([submit, run, request, *demands]).tolist()
    bits = rng.random(n) < rng.choice([0.5, 1.0])
    names = ("restartable", "suspendable", "checkpointable")
    return make_jobs(
        rows, [nodes, 3][:more], extra={"p": believed.tolist(), **dict.fromkeys(names, bits.tolist())}
    )


def reference_lives(jobs: Jobs, text: str, order: str, backfill: str) -> list[Life]:
    action = parse_action(text)
    limit, *level = (round(x * SECOND) for x in action.seconds)
    costs = [round(x * SECOND) for x in (action.restart, action.host, action.resume, action.guard)]
    rule = action_reference.Rule(action.kind, limit, *(level or [0]), *costs, latest=action.latest > 0)
    permits = jobs.extra[action.needs] > 0
    if action.kind == "guest":  # a guest must be restartable; here every job is
        jobs = replace(jobs, extra={k: v for k, v in jobs.extra.items() if k != "restartable"})
    table = [
        action_reference.Job(
            j, int(jobs.submit[j]), int(jobs.run[j]), int(jobs.extra["p"][j]) * SECOND,
            tuple(jobs.demand[j].tolist()), bool(permits[j]),
        )
        for j in range(len(jobs))
    ]  # fmt: skip
    lives = action_reference.simulate(table, tuple(jobs.capacity.tolist()), rule, order, backfill)
    return [(job, start // SECOND, end // SECOND, done) for job, start, end, done in lives]


def compare(seed: int, action: str) -> None:
    rng = np.random.default_rng([seed, RULES.index(action)])
    jobs = draw_jobs(rng)
    order = str(rng.choice(["fcfs", "saf", "sjf"]))
    backfill = str(rng.choice(["easy", "easy", "none", "conservative"]))
    expected = reference_lives(jobs, action, order, backfill)
    if action.startswith("guest"):
        jobs = replace(jobs, extra={k: v for k, v in jobs.extra.items() if k != "restartable"})
    lives = lives_of(scenario(jobs, action, order, backfill, estimator="predicted(p)"))
    assert sorted(lives) == sorted(expected), f"{seed} {action} {order}+{backfill}"


@pytest.mark.parametrize("action", RULES)
def test_lives_are_those_of_the_reference(action: str) -> None:
    for seed in range(25):
        compare(seed, action)


@pytest.mark.parametrize(("seed", "action"), [(1060, "hybrid(0)"), (1258, "las(300,3600)")])
def test_a_pass_looks_at_who_has_outlasted_what_is_believed(seed: int, action: str) -> None:
    compare(seed, action)  # between two events, which moves the reservation


@pytest.mark.slow
@pytest.mark.parametrize("action", RULES)
def test_many_more_lives_are_those_of_the_reference(action: str) -> None:
    for seed in range(100, 100 + 5_000 // len(RULES) + 1):
        compare(seed, action)


def test_a_speculating_job_gives_way_to_the_head() -> None:
    # Job 1 runs 100 s on 3 of 4 nodes; job 2 needs all 4; job 3 needs 1, would delay it, and speculates.
    jobs = make_jobs([(0, 100, 100, 3), (1, 10, 10, 4), (2, 500, 500, 1)], [4])
    assert lives_of(scenario(jobs, "speculative(600)")) == [
        (0, 0, 100, True), (2, 2, 100, False), (1, 100, 110, True), (2, 110, 640, True),
    ]  # fmt: skip


def test_a_speculation_that_is_short_enough_is_all() -> None:
    jobs = make_jobs([(0, 100, 100, 3), (1, 10, 10, 4), (2, 50, 500, 1)], [4])
    assert lives_of(scenario(jobs, "speculative(600)"))[0] == (2, 2, 52, True)


def test_a_trial_is_killed_and_comes_again() -> None:
    jobs = make_jobs([(0, 100, 100, 4), (1, 400, 900, 4), (2, 20, 900, 4)], [4])
    assert lives_of(scenario(jobs, "trial(300)")) == [
        (0, 0, 100, True), (1, 100, 400, False), (2, 400, 420, True), (1, 420, 850, True),
    ]  # fmt: skip


def test_a_lone_job_is_not_tried() -> None:
    jobs = make_jobs([(0, 1000, 1000, 4)], [4])
    assert lives_of(scenario(jobs, "trial(300)")) == [(0, 0, 1000, True)]


def test_a_guest_runs_on_a_suspended_job() -> None:
    jobs = make_jobs([(0, 5000, 5000, 4), (1500, 100, 900, 2)], [4])
    schedule = replay(scenario(jobs, "guest(300)"))
    assert lives_of(scenario(jobs, "guest(300)")) == [(1, 1500, 1600, True), (0, 0, 5110, True)]
    lives = schedule.lives
    assert lives is not None
    assert lives.suspensions.tolist() == [1, 0]
    assert (lives.occupied // SECOND).tolist() == [5110, 0]
    assert (lives.lost // SECOND).tolist() == [10, 0]


def test_a_host_must_have_worked_for_four_guests() -> None:
    jobs = make_jobs([(0, 5000, 5000, 4), (1199, 100, 900, 2)], [4])
    assert lives_of(scenario(jobs, "guest(300)"))[0] == (0, 0, 5000, True)


def test_attained_service_decides_who_gives_way() -> None:
    jobs = make_jobs([(0, 1000, 1000, 4), (100, 50, 900, 4)], [4])
    # at the first whole minute with 300 s of service or more; 60 s to resume
    assert lives_of(scenario(jobs, "las(300,3600)")) == [
        (0, 0, 300, False), (1, 300, 350, True), (0, 350, 1110, True),
    ]  # fmt: skip


def test_remaining_area_decides_who_gives_way() -> None:
    rows = [(0, 4000, 4000, 4), (400, 1000, 1000, 4)]
    lives = lives_of(scenario(make_jobs(rows, [4]), "hybrid(0)"))
    assert lives == [(0, 0, 400, False), (1, 400, 1400, True), (0, 1400, 5060, True)]
    rows[1] = (400, 1800, 1800, 4)  # just half of what is left: no reason
    assert len(lives_of(scenario(make_jobs(rows, [4]), "hybrid(0)"))) == 2


def test_sequences_are_replayed_as_alone() -> None:
    jobs = draw_jobs(np.random.default_rng(3))
    prepared = scenario(jobs, "trial(60)", "saf")
    first, second = replay_sequences(prepared, np.array([0, 0]), len(jobs))
    alone = replay(prepared)
    for schedule in (first, second):
        assert schedule.start.tolist() == alone.start.tolist()
        assert schedule.lives is not None and alone.lives is not None
        assert schedule.lives.stops.tolist() == alone.lives.stops.tolist()


def test_a_share_of_the_users_is_drawn_by_seed() -> None:
    rows = [(0, 1000, 1000, 4)] + [(10 + k, 400, 900, 4) for k in range(40)]
    jobs = make_jobs(rows, [4], users=[0, *range(40)])
    stops = [replay(scenario(jobs, f"trial(300,share=0.5,seed={seed})")).lives for seed in (1, 1, 2)]
    counts = [lives.stops.tolist() for lives in stops if lives is not None]
    assert counts[0] == counts[1] != counts[2]
    assert 15 <= sum(counts[0]) <= 20  # half of the users, one of whom may have had the first job


def test_users_are_drawn_until_so_many_jobs_are_theirs() -> None:
    user = np.repeat([7, 3, 5, -1], [60, 25, 10, 5])  # the last five have no user: each is one of its own
    for seed in range(20):
        permits = draw_permits(parse_action(f"guest(300, share=0.5, seed={seed + 1})"), user, {})
        assert (permits & 5 == 5).all()  # restarts and checkpoints are not what a host has to permit
        lends = permits & SUSPENDABLE > 0
        of_user = {one: lends[user == one] for one in (7, 3, 5)}
        assert all(mine.all() or not mine.any() for mine in of_user.values())
        assert lends.sum() >= 50  # and without the last one drawn it would be less
        sizes = [mine.sum() for mine in of_user.values() if mine.any()] + [1] * int(lends[user < 0].sum())
        assert any(lends.sum() - size < 50 for size in sizes)


def test_whoever_says_nothing_permits_the_rule_and_that_is_a_warning() -> None:
    jobs = make_jobs([(0, 1, 1, 1)], [4])
    assert scenario(jobs, "trial(300)").warnings == [
        "action trial: every job counts as restartable, as the log has no column restartable"
    ]
    silent = make_jobs([(0, 1, 1, 1)], [4], extra={"restartable": [1]})
    assert scenario(silent, "trial(300)").warnings == []


@pytest.mark.parametrize(
    "options",
    [{"protocol": "cqsim"}, {"protocol": "schedgym"}, {"order": "lookahead(saf)"}, {"blocked": "held"}],
)
def test_what_a_rule_is_not_defined_beside_is_refused(options: dict[str, str]) -> None:
    with pytest.raises(BridgeError, match="is not defined beside"):
        SchedulerConfig(**options, action="trial(300)").build_scenario(make_jobs([(0, 1, 1, 1)], [4]))  # type: ignore[arg-type]
