"""What an agent meets in the environments of the authors' code, switch by switch (`schedgym-code`)."""

import pytest
from small_jobs import make_jobs, play, prepared

from bridge.scheduler.core import BACKFILL, DECLINE, INSPECT
from bridge.scheduler.protocol import Policy
from bridge.scheduler.state import SECOND, State
from bridge.worlds.fast import world

BACKFILLS = Policy("fcfs", "easy", agent=frozenset({"backfill"}), guard=False, blocked="again")
INSPECTS = Policy("sjf", "none", agent=frozenset({"inspect"}))


def first(*_: object) -> int:
    return 0


@pytest.mark.parametrize(("length", "start"), [(5, 1.0), (9, 10.0), (20, 10.0)])
def test_a_lone_candidate_starts_if_easy_lets_it_end_before_the_reservation(
    length: int, start: float
) -> None:
    # job 1 holds 3 of 4 nodes until 10, job 2 wants all four, job 3 fits beside job 1
    rows = [(0, 10, 10, 3), (0, 5, 5, 4), (1, length, length, 1)]
    own, asked, _ = play(prepared(make_jobs(rows, [4]), BACKFILLS, "schedgym-code"), first)
    assert asked == []
    assert own == ([0, 10, 1] if start == 1.0 else [0, 10, 15])
    always, asked, _ = play(prepared(make_jobs(rows, [4]), BACKFILLS, "schedgym"), first)
    assert always[2] == 1
    assert asked == [(1, BACKFILL)]


def test_the_reservation_is_made_anew_after_each_pick() -> None:
    # job 1 runs until 10; of three candidates the agent starts job 3, which runs until 30: the head's
    # reservation moves there, so that job 4, of length 15, ends before it and may start
    rows = [(0, 10, 10, 2), (0, 5, 5, 4), (0, 30, 30, 1), (0, 15, 15, 1)]
    shadows: list[float] = []

    def agent(state: State, _: int) -> int:
        shadows.append(state.scalars.shadow[0] / SECOND)
        return 0

    own, _, _ = play(prepared(make_jobs(rows, [4]), BACKFILLS, "schedgym-code"), agent)
    kept, _, _ = play(
        prepared(make_jobs(rows, [4]), BACKFILLS, "schedgym-code", reserve_each_pick=False), agent
    )
    assert own == [0, 30, 0, 0]
    assert kept == [0, 30, 0, 10]  # at the next event
    assert shadows == [10, 10]


def test_there_is_no_cap_on_rejections() -> None:
    # job 2 comes after 1,000 pauses of 600 s, and until then job 1 is always rejected
    rows = [(0, 5, 5, 1), (600_000, 5, 5, 1)]
    answers = iter([*[DECLINE] * 1000, 0, 0])
    own, asked, _ = play(prepared(make_jobs(rows, [1]), INSPECTS, "schedgym-code"), lambda *_: next(answers))
    assert own == [600_000, 600_005]
    assert len(asked) == 1002


def test_behind_the_last_arrival_a_rejection_lasts_until_the_next_completion() -> None:
    # job 2 fits beside job 1, and is rejected at 0: it is asked about again when job 1 ends
    rows = [(0, 5000, 5000, 1), (0, 6000, 6000, 1)]
    answers = iter([0, DECLINE, 0])
    own, asked, _ = play(prepared(make_jobs(rows, [2]), INSPECTS, "schedgym-code"), lambda *_: next(answers))
    assert own == [0, 5000]
    assert asked == [(0, INSPECT), (0, INSPECT), (5000, INSPECT)]
    answers = iter([0, DECLINE, 0])
    assert play(prepared(make_jobs(rows, [2]), INSPECTS, "schedgym"), lambda *_: next(answers))[0] == [0, 600]


def test_the_tail_has_pauses_only_while_the_logs_next_job_is_further_away() -> None:
    # as above, but the log goes on behind the episode: its next job comes at 1,500
    rows = [(0, 5000, 5000, 1), (0, 6000, 6000, 1), (1500, 5, 5, 1)]
    scenario = prepared(make_jobs(rows, [2]), INSPECTS, "schedgym-code")
    from bridge.scheduler import core
    from bridge.scheduler import state as scheduler_state
    from bridge.worlds.fast import episode

    state = episode.configure(scheduler_state.allocate(1, 2, 1, window=2), scenario)
    memory = world.allocate(1, 2)
    episode.load_episode(state, memory, 0, scenario, 0, 2)
    asked = []
    answers = iter([0, DECLINE, DECLINE, DECLINE, 0])
    while world.run_until_decision(state, memory, 0, 1 << 40) > 0:
        asked.append(state.scalars.now[0] / SECOND)
        core.apply_choice(state, 0, next(answers))
    assert asked == [0, 0, 600, 1200, 5000]


def test_a_rejection_on_an_idle_machine_behind_the_last_arrival_is_free_but_not_for_ever() -> None:
    rows = [(0, 5, 5, 1)]
    own, asked, _ = play(prepared(make_jobs(rows, [1]), INSPECTS, "schedgym-code"), lambda *_: DECLINE)
    assert own == [0]
    assert len(asked) == 10_000
    assert {when for when, _ in asked} == {0}
