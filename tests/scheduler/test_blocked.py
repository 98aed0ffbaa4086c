"""What becomes of a pick that does not fit: tried again, held until it starts, or the oldest in its place."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st
from small_jobs import make_jobs, play, prepared

from bridge.base.errors import BridgeError
from bridge.scheduler.compiled import compile_policy
from bridge.scheduler.core import BACKFILL, PICK
from bridge.scheduler.protocol import Policy, protocol
from bridge.scheduler.state import SECOND, State
from bridge.workload.select import Jobs
from bridge.worlds.fast import world
from bridge.worlds.fast.scheduler_config import SchedulerConfig

#: (submit, run, request, nodes) on four nodes. The third needs all of them, which are free at 10 if nobody
#: else comes in between; the fourth would be in time, the fifth would not.
ROWS = [(0, 10, 10, 3), (0, 20, 20, 2), (0, 9, 9, 4), (5, 4, 4, 1), (5, 30, 30, 1)]


def wanting(*ids: int) -> Callable[[State, int], int]:
    """Return an agent that picks the first of these jobs that waits, else the oldest; backfills the first."""

    def agent(state: State, _kind: int) -> int:
        shown = state.candidates[0, : state.scalars.n_candidates[0]].tolist()
        return next((shown.index(i - 1) for i in ids if i - 1 in shown), 0)

    return agent


def picks(blocked: str, **changes: object) -> Policy:
    return Policy(agent=frozenset({"pick"}), blocked=blocked, **changes)  # type: ignore[arg-type]


def test_a_blocked_pick_that_is_not_held_is_asked_about_again_at_each_event() -> None:
    start, asked, _ = play(prepared(make_jobs(ROWS, [4]), picks("")), wanting(1, 3))
    assert start == [0, 19, 10, 5, 19]
    assert [t for t, _ in asked] == [0, 0, 5, 9, 10, 10, 19, 19]


def test_a_held_pick_stays_reserved_and_nobody_is_asked_until_it_starts() -> None:
    start, asked, end = play(prepared(make_jobs(ROWS, [4]), picks("held")), wanting(1, 3))
    # 3 is promised 10: 4 is done by then and comes before it, 5 and 2 wait
    assert start == [0, 19, 10, 5, 19]
    assert asked == [(0, PICK), (0, PICK), (10, PICK), (19, PICK)]
    assert end == world.DONE


def test_an_agent_that_changes_its_mind_cannot_let_go_of_a_held_pick() -> None:
    # 1, then 3; later it would rather have 5, which fits at once
    def fickle(state: State, kind: int) -> int:
        return wanting(1, 3)(state, kind) if state.scalars.now[0] == 0 else wanting(5)(state, kind)

    free, _, _ = play(prepared(make_jobs(ROWS, [4]), picks("")), fickle)
    held, _, _ = play(prepared(make_jobs(ROWS, [4]), picks("held")), fickle)
    assert (free[4], free[2]) == (5, 35)
    assert (held[4], held[2]) == (19, 10)


def test_a_held_pick_may_start_earlier_than_was_promised() -> None:
    rows = [(0, 4, 10, 3), (0, 9, 9, 4), (2, 3, 3, 1)]
    state_of: list[State] = []

    def agent(state: State, kind: int) -> int:
        state_of[:] = [state]
        return wanting(1, 2)(state, kind)

    start, asked, _ = play(prepared(make_jobs(rows, [4]), picks("held")), agent)
    # at 4 the first job has ended before its request, the third still has a second to run
    assert start == [0, 5, 2]
    assert state_of[0].jobs.reserved[0].tolist() == [-1, 10 * SECOND, -1]
    assert asked == [(0, PICK), (0, PICK)]


def test_first_reserves_the_oldest_job_in_place_of_a_blocked_pick() -> None:
    start, asked, end = play(prepared(make_jobs(ROWS, [4]), picks("first")), wanting(1, 3))
    # 2 is promised 10, with two nodes left over then: 5 takes one of them at 9, when 4 has ended; 3 waits
    assert start == [0, 10, 39, 5, 9]
    assert asked == [(t, PICK) for t in (0, 0, 5, 9, 10, 10, 30, 39)]
    assert end == world.DONE


def test_first_starts_the_oldest_job_if_it_fits() -> None:
    rows = [(0, 10, 10, 3), (0, 20, 20, 1), (0, 9, 9, 4)]
    start, asked, _ = play(prepared(make_jobs(rows, [4]), picks("first")), wanting(1, 3))
    assert start == [0, 0, 20]
    assert asked == [(t, PICK) for t in (0, 0, 0, 10, 20)]


@pytest.mark.parametrize(("order", "reserved"), [("fcfs", [-1, 10, -1, -1]), ("sjf", [-1, -1, -1, 10])])
def test_first_is_of_the_queues_order(order: str, reserved: list[int]) -> None:
    rows = [(0, 10, 10, 3), (0, 20, 20, 2), (0, 9, 9, 4), (0, 4, 4, 2)]
    states: list[State] = []

    def agent(state: State, kind: int) -> int:
        states[:] = [state]
        return wanting(1, 3)(state, kind)

    start, _, _ = play(prepared(make_jobs(rows, [4]), picks("first", order=order)), agent)
    # the third job blocks at 0, and the first of the queue is promised 10; then the third is picked and fits
    assert start == [0, 19, 10, 19]
    assert [t // SECOND for t in states[0].jobs.reserved[0].tolist()] == reserved


@pytest.mark.parametrize(("blocked", "starts"), [("", [0, 10, 15, 14]), ("again", [0, 14, 11, 10])])
def test_again_lets_a_shorter_job_take_the_place_of_a_head_that_its_protocol_locks(
    blocked: str, starts: list[int]
) -> None:
    # the second is the first head; nobody fits behind it before 10
    rows = [(0, 10, 10, 3), (1, 4, 4, 4), (2, 3, 3, 3), (3, 1, 1, 2)]
    policy = Policy("sjf", blocked=blocked)
    start, _, _ = play(prepared(make_jobs(rows, [4]), policy, "schedgym"), wanting())
    assert start == starts


@pytest.mark.parametrize("blocked", ["", "held", "first"])
def test_what_is_not_picked_by_an_agent_is_not_changed_in_fcfs(blocked: str) -> None:
    rows = [(0, 10, 10, 3), (0, 20, 20, 2), (1, 9, 9, 4), (5, 4, 4, 1), (5, 30, 30, 1)]
    policy = Policy(blocked=blocked)
    start, _, _ = play(prepared(make_jobs(rows, [4]), policy), wanting())
    assert start == [0, 10, 39, 5, 9]


@pytest.mark.parametrize(("guard", "shown"), [(True, [[4]]), (False, [[4, 5], [5]])])
def test_pick_and_backfill_are_both_asked_about(guard: bool, shown: list[list[int]]) -> None:
    offered: list[list[int]] = []

    def agent(state: State, kind: int) -> int:
        if kind == BACKFILL and state.scalars.now[0] == 5 * SECOND:
            assert state.scalars.head[0] == 2  # the third job
            offered.append([int(j) + 1 for j in state.candidates[0, : state.scalars.n_candidates[0]]])
        return wanting(1, 3, 4)(state, kind)

    policy = SchedulerConfig(blocked="held").policy("pick+backfill", guard=guard)
    assert policy.agent == {"pick", "backfill"}
    start, asked, _ = play(prepared(make_jobs(ROWS, [4]), policy), agent)
    assert offered == shown[:1]
    first = [(0, PICK), (0, PICK), (5, BACKFILL)]
    if guard:
        assert start == [0, 19, 10, 5, 19]
        assert asked == [*first, (10, PICK), (19, PICK)]
    else:  # at 9 the fifth job may come, though the third has to wait for it
        assert start == [0, 10, 39, 5, 9]
        assert asked[:4] == [*first, (9, BACKFILL)]


def test_an_agent_of_both_that_answers_as_the_rules_do_gives_their_schedule() -> None:
    rng = np.random.default_rng(3)
    submit, run = np.sort(rng.integers(0, 60, 80)), rng.integers(1, 9, 80)
    slack, nodes = rng.integers(0, 6, 80), rng.integers(1, 8, 80)
    jobs = make_jobs(np.column_stack((submit, run, run + slack, nodes)).tolist(), [8])
    built_in, _, _ = play(prepared(jobs, Policy()), wanting())
    start, asked, _ = play(prepared(jobs, SchedulerConfig(blocked="held").policy("pick+backfill")), wanting())
    assert start == built_in
    assert {kind for _, kind in asked} == {PICK, BACKFILL}


@st.composite
def crowded(draw: st.DrawFn) -> tuple[Jobs, Sequence[int]]:
    """Small workloads of two resources, and the answers of an agent without sense."""
    n = draw(st.integers(3, 14))
    rows = []
    for submit in sorted(draw(st.lists(st.integers(0, 12), min_size=n, max_size=n))):
        run = draw(st.integers(1, 8))
        rows.append(
            (submit, run, run + draw(st.integers(0, 5)), draw(st.integers(1, 4)), draw(st.integers(0, 3)))
        )
    answers = draw(st.lists(st.integers(0, 1000), min_size=60, max_size=60))
    return make_jobs(rows, [4, 3]), answers


def scripted_agent(answers: Sequence[int], note: Callable[[State, int], None]) -> Callable[[State, int], int]:
    asked = iter(range(10**9))

    def agent(state: State, kind: int) -> int:
        note(state, kind)
        return answers[next(asked) % len(answers)] % int(state.scalars.n_candidates[0])

    return agent


@pytest.mark.parametrize("decision", ["pick", "pick+backfill"])
@given(case=crowded())
def test_easy_never_delays_a_held_pick(decision: str, case: tuple[Jobs, Sequence[int]]) -> None:
    jobs, answers = case
    states: list[State] = []
    policy = SchedulerConfig(blocked="held").policy(decision)
    start, _, end = play(
        prepared(jobs, policy), scripted_agent(answers, lambda state, _: states.append(state))
    )
    assert end == world.DONE
    reserved = states[0].jobs.reserved[0].tolist()
    for j, promised in enumerate(reserved):
        if promised >= 0:
            event("promised")
            assert start[j] <= promised / SECOND


@given(case=crowded())
def test_behind_a_blocked_pick_the_oldest_job_is_reserved(case: tuple[Jobs, Sequence[int]]) -> None:
    jobs, answers = case

    def note(state: State, kind: int) -> None:
        if kind != BACKFILL:
            return
        event("backfilled behind the oldest")
        waiting = np.flatnonzero((state.jobs.start[0] < 0) & (state.jobs.submit[0] <= state.scalars.now[0]))
        assert state.scalars.head[0] == waiting[0]
        assert (state.demand[0, waiting[0]] > state.free[0]).any()

    policy = SchedulerConfig(blocked="first").policy("pick+backfill")
    _, _, end = play(prepared(jobs, policy), scripted_agent(answers, note))
    assert end == world.DONE


def test_an_unknown_word_is_refused() -> None:
    with pytest.raises(BridgeError, match="unknown rule for a blocked pick") as error:
        compile_policy(Policy(blocked="never"), protocol("standard"))
    assert error.value.where == "'never'"
    assert error.value.remedy == "Choose held, first or again, or leave it out."


def test_a_held_pick_is_booked_first_under_conservative_backfilling_too() -> None:
    rows = [(0, 10, 10, 3), (0, 20, 20, 2), (0, 9, 9, 4), (1, 15, 15, 1)]
    start, _, _ = play(prepared(make_jobs(rows, [4]), picks("held", backfill="conservative")), wanting(1, 3))
    # 3 is booked at 10, so that 4, of 15 s, may not start before it
    assert start == [0, 19, 10, 19]


def test_a_new_oldest_job_gets_a_reservation_of_its_own() -> None:
    rows = [(0, 50, 50, 2), (0, 100, 100, 1), (1, 40, 40, 4), (2, 30, 30, 3), (3, 77, 77, 1)]
    jobs = make_jobs(rows, [4])
    policy = picks("first", order="sjf")
    start, _, _ = play(prepared(jobs, policy, "schedgym"), wanting(1, 2))
    # 4 is shorter than 3 and stands first once it has come: its three nodes are free at 50
    assert start[3] == 50
