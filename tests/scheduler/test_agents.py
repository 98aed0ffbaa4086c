"""Decisions bound to an agent: built-in answers give the built-in schedule; declining means what it says."""

import numpy as np
import pytest
from small_jobs import make_jobs, play, prepared, random_rows

from bridge.scheduler.core import BACKFILL, DECLINE, INSPECT, PICK
from bridge.scheduler.protocol import Policy
from bridge.scheduler.queue import waiting
from bridge.scheduler.state import SECOND, State
from bridge.workload.select import Jobs
from bridge.worlds.fast import world
from bridge.worlds.fast.episode import Scenario
from bridge.worlds.fast.replay import replay

NAMES = {"pick": PICK, "inspect": INSPECT, "backfill": BACKFILL}


def busy_jobs(seed: int, n: int = 60) -> Jobs:
    """Return a queue that stays long: few distinct times and sizes, two resources."""
    rng = np.random.default_rng(seed)
    rows = random_rows(rng, n, span=60, run=9, slack=6, nodes=8, more=5)
    return make_jobs(rows, [8, 6], users=rng.integers(0, 3, n).tolist())


def first_answer(state: State, kind: int) -> int:
    """Answer as the built-in rules do: the head of the queue, accept, the first that EASY allows."""
    assert kind != PICK or state.scalars.n_candidates[0] == state.scalars.n_waiting[0]
    return 0


def seconds(p: Scenario) -> list[float]:
    return [float(t / SECOND) for t in replay(p).start]


@pytest.mark.parametrize("agent", [{"pick"}, {"inspect"}, {"backfill"}, {"pick", "inspect", "backfill"}])
@pytest.mark.parametrize("rules", ["standard", "cqsim", "schedgym"])
@pytest.mark.parametrize(("order", "backfill"), [("fcfs", "easy"), ("wfp3", "easy"), ("sjf", "none")])
def test_an_agent_that_answers_as_the_built_in_rule_gives_its_schedule(
    rules: str, order: str, backfill: str, agent: set[str]
) -> None:
    jobs = busy_jobs(1)
    built_in = seconds(prepared(jobs, Policy(order, backfill), rules))
    start, asked, end = play(
        prepared(jobs, Policy(order, backfill, agent=frozenset(agent)), rules), first_answer
    )
    assert end == world.DONE
    assert start == built_in
    assert {kind for _, kind in asked} == {NAMES[a] for a in agent if a != "backfill" or backfill == "easy"}


def test_an_unguarded_agent_that_keeps_easys_rule_gives_easys_schedule() -> None:
    jobs = busy_jobs(2)

    def easy(state: State, _: int) -> int:
        now, shadow = state.scalars.now[0], state.scalars.shadow[0]
        for place in range(state.scalars.n_candidates[0]):
            j = state.candidates[0, place]
            if now + state.jobs.est_wait[0, j] <= shadow or np.all(state.demand[0, j] <= state.extra[0]):
                return place
        return DECLINE

    agent = Policy(agent=frozenset({"backfill"}), guard=False)
    start, asked, _ = play(prepared(jobs, agent), easy)
    assert start == seconds(prepared(jobs, Policy()))
    assert len(asked) > 20


ROWS = [(0, 10, 10, 3), (0, 10, 10, 2), (0, 5, 5, 1), (0, 20, 20, 1)]


@pytest.mark.parametrize(("guard", "shown"), [(True, [[2]]), (False, [[2, 3]])])
def test_a_guard_shows_only_the_candidates_that_easy_allows(guard: bool, shown: list[list[int]]) -> None:
    # one node is free until 10, when the head takes all four: 5 s are in time, 20 s are not
    rows = [(0, 10, 10, 3), (0, 10, 10, 4), (0, 5, 5, 1), (0, 20, 20, 1)]
    seen: list[list[int]] = []

    def agent(state: State, _: int) -> int:
        seen.append([int(j) for j in state.candidates[0, : state.scalars.n_candidates[0]]])
        return 0

    policy = Policy(agent=frozenset({"backfill"}), guard=guard)
    play(prepared(make_jobs(rows, [4]), policy), agent)
    assert seen[:1] == shown


@pytest.mark.parametrize("window", [2, 60])
@pytest.mark.parametrize("order", ["fcfs", "sjf", "wfp3"])
@pytest.mark.parametrize("guard", [True, False])
def test_candidates_are_the_first_in_the_queue_that_may_start(guard: bool, order: str, window: int) -> None:
    rng, asked_at = np.random.default_rng(3), []

    def agent(state: State, _: int) -> int:
        env, may = state.scalars[0], []
        for j in waiting(state):
            demand, end = state.demand[0, j], env.now + state.jobs.est_wait[0, j]
            easy = not guard or end <= env.shadow or np.all(demand <= state.extra[0])
            if j != env.head and np.all(demand <= state.free[0]) and easy:
                may.append(j)
        assert state.candidates[0, : env.n_candidates].tolist() == may[:window]
        asked_at.append(int(env.now))
        return int(rng.integers(0, env.n_candidates)) if rng.random() < 0.9 else DECLINE

    policy = Policy(order, agent=frozenset({"backfill"}), guard=guard)
    play(prepared(busy_jobs(5, 300), policy), agent, window)
    assert len(asked_at) > len(set(asked_at))  # behind starts of the same pass, too


def test_an_unguarded_agent_may_delay_the_head() -> None:
    rows = [(0, 10, 10, 3), (0, 10, 10, 4), (0, 20, 20, 1)]
    free = Policy(agent=frozenset({"backfill"}), guard=False)
    start, _, _ = play(prepared(make_jobs(rows, [4]), free), first_answer)
    assert start == [0, 20, 0]


def test_declining_to_backfill_is_no_backfilling() -> None:
    agent = Policy(agent=frozenset({"backfill"}))
    start, asked, _ = play(prepared(make_jobs(ROWS, [4]), agent), lambda *_: DECLINE)
    assert start == [0, 10, 10, 10]
    assert asked == [(0, BACKFILL)]


def test_declining_to_pick_waits_for_the_next_event() -> None:
    answers = iter([DECLINE, 1, 0, 0])
    rows = [(0, 5, 5, 1), (3, 5, 5, 1)]
    start, asked, end = play(
        prepared(make_jobs(rows, [1]), Policy(agent=frozenset({"pick"}))), lambda *_: next(answers)
    )
    # at 3 job 2 is picked; then job 1, which does not fit; picked again when job 2 has ended
    assert start == [8, 3]
    assert asked == [(0, PICK), (3, PICK), (3, PICK), (8, PICK)]
    assert end == world.DONE


def test_declining_to_pick_on_an_idle_machine_is_a_dead_end() -> None:
    start, _, end = play(
        prepared(make_jobs([(0, 5, 5, 1)], [1]), Policy(agent=frozenset({"pick"}))), lambda *_: DECLINE
    )
    assert (start, end) == ([-1.0], world.STUCK)


def test_a_picked_job_that_does_not_fit_is_reserved_and_backfilled_behind() -> None:
    rows = [(0, 10, 10, 3), (0, 5, 5, 1), (0, 9, 9, 4)]
    # picks job 1; then of [job 2, job 3] the second; job 2 backfills behind its reservation at 10
    picks = Policy(agent=frozenset({"pick"}))
    answers = iter([0, 1, 0, 0])
    start, asked, _ = play(prepared(make_jobs(rows, [4]), picks), lambda *_: next(answers))
    assert start == [0, 0, 10]
    assert [kind for _, kind in asked] == [PICK, PICK, PICK, PICK]


INSPECTED = frozenset({"inspect"})


def test_a_rejected_job_is_considered_again_after_the_pause_at_most_so_often() -> None:
    policy = Policy(agent=INSPECTED, max_rejects=2, retry_after=600)
    start, asked, _ = play(prepared(make_jobs([(0, 5, 5, 1)], [1]), policy), lambda *_: DECLINE)
    assert asked == [(0, INSPECT), (600, INSPECT)]
    assert start == [1200]


def test_the_papers_cap_is_72_rejections() -> None:
    start, asked, _ = play(
        prepared(make_jobs([(0, 5, 5, 1)], [1]), Policy(agent=INSPECTED)), lambda *_: DECLINE
    )
    assert (len(asked), start) == (72, [72 * 600])


def test_an_event_ends_the_pause_of_a_rejection_early() -> None:
    # rejected at 0 and at 100 (an arrival), then accepted, and so is job 2 whenever it is asked about
    answers = iter([DECLINE, DECLINE, 0, 0, 0])
    policy = Policy(agent=INSPECTED, retry_after=600)
    rows = [(0, 5, 5, 2), (100, 5, 5, 2)]
    start, asked, _ = play(prepared(make_jobs(rows, [2]), policy), lambda *_: next(answers))
    assert asked == [(0, INSPECT), (100, INSPECT), (700, INSPECT), (700, INSPECT), (705, INSPECT)]
    assert start == [700, 705]


def test_a_rejection_holds_back_everyone_behind_but_not_for_ever() -> None:
    # job 1 is rejected once at 0: nobody starts before the retry
    answers = iter([DECLINE, 0, 0])
    policy = Policy("fcfs", "none", agent=INSPECTED, retry_after=30)
    start, _, _ = play(
        prepared(make_jobs([(0, 5, 5, 1), (0, 5, 5, 1)], [2]), policy), lambda *_: next(answers)
    )
    assert start == [30, 30]


def test_an_accepted_head_is_asked_about_again_only_where_the_head_is_not_locked() -> None:
    rows = [(0, 10, 10, 1), (1, 5, 5, 1), (3, 5, 5, 1)]
    policy = Policy("fcfs", "none", agent=INSPECTED)
    _, standard, _ = play(prepared(make_jobs(rows, [1]), policy), first_answer)
    _, locked, _ = play(prepared(make_jobs(rows, [1]), policy, "schedgym"), first_answer)
    assert [t for t, _ in standard] == [0, 1, 3, 10, 10, 15]
    assert [t for t, _ in locked] == [0, 1, 10]
