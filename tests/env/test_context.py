"""The context of a decision: rows of running jobs or of units, and numbers of the machine, all by hand."""

import os
from dataclasses import replace

import numpy as np
import pytest
from small_jobs import make_jobs, prepared
from small_states import at_pick, in_rows, observe

from bridge.base.errors import BridgeError
from bridge.env.batch import Batch
from bridge.env.encoder import Encoder
from bridge.scheduler.protocol import Policy

DAY = 86_400
ONE = {"n": "n"}
#: Rows of running jobs that can be told apart.
SHOWN = {"size": "n", "left": "left"}


def running(places: tuple[int, ...], **changes: object) -> Encoder:
    """Return an encoder that shows running jobs in so many places."""
    return replace(Encoder("pick", ONE, running=SHOWN, running_rows=places), **changes)  # type: ignore[arg-type]


# SEM (Li et al. 2022): 4 W + 2 K numbers of a machine of 4,360 nodes.

SEM = Encoder(
    "pick",
    {"size": "n/n_max", "request": "t/86400", "priority": "min(1, n/n_max // 0.184)", "wait": "w/86400"},
    window=50,
    running={"size": "n/n_max", "left": "left/86400"},
    running_rows=(34,),
)


def test_the_example_of_sem() -> None:
    session = at_pick(
        10_000,
        [4360],
        running=[(5000, 21_600, 2048), (9000, 3600, 256)],
        waiting=[(2800, DAY, 1024), (9400, 3600, 128)],
    )
    rows, context = observe(session, SEM)
    first = [0.029358, 3600 / DAY, 0, 600 / DAY]
    second = [0.234862, 86_400 / DAY, 1, 7200 / DAY]
    assert rows == pytest.approx(np.array([first, second]), rel=2e-5)
    assert SEM.size == 50 * 4 + 34 * 2 == 268
    assert context.shape == (68,)
    assert context[:4] == pytest.approx(np.array([0.469725, 16_600 / DAY, 0.058716, 2600 / DAY]), rel=2e-5)
    assert context[4:].tolist() == [0] * 64


def test_a_job_of_184_thousandths_of_the_machine_has_priority() -> None:
    session = at_pick(1, [1000], [], [(0, 10, n) for n in (183, 184, 367, 368, 1000)])
    rows, _ = observe(session, replace(SEM, features={"priority": SEM.features["priority"]}))
    assert rows[:, 0].tolist() == [0, 1, 1, 1, 1]


# Running jobs.


def test_the_largest_come_first_then_who_ends_first_then_the_lower_id() -> None:
    session = at_pick(
        40,
        [100],
        running=[(10, 90, 5), (20, 70, 5), (0, 100, 5), (30, 300, 9), (30, 10, 5), (30, 50, 1)],
        waiting=[(40, 1, 1)],
    )
    # of five nodes: job 2 until 90; jobs 1 and 3 until 100; job 5 is past its estimate of 40 by none: 1 s
    expected = [[9, 290], [5, 1], [5, 50], [5, 60], [5, 60], [1, 40]]
    assert list(in_rows(observe(session, running((6,)))[1], 2)) == expected
    ids = replace(running((6,)), running={"submitted": "s"})
    assert observe(session, ids)[1].tolist() == [30, 30, 20, 10, 0, 30]


@pytest.mark.parametrize("places", [1, 2, 3, 4])
def test_only_the_largest_are_shown_whenever_they_started(places: int) -> None:
    jobs = [(k, 100, n) for k, n in enumerate((3, 8, 1, 6))]
    session = at_pick(10, [20], jobs, [(10, 1, 1)])
    expected = [[8, 91], [6, 93], [3, 90], [1, 92]]
    assert list(in_rows(observe(session, running((places,)))[1], 2)) == expected[:places]


def test_places_of_nobody_hold_the_absent_row() -> None:
    session = at_pick(10, [20], [(0, 100, 3)], [(10, 1, 1)])
    assert list(in_rows(observe(session, running((3,)))[1], 2)) == [[3, 90], [0, 0], [0, 0]]
    absent = running((3,), empty_row=(-1.0, 7.0))
    assert list(in_rows(observe(session, absent)[1], 2)) == [[3, 90], [-1, 7], [-1, 7]]
    idle = at_pick(10, [20], [], [(10, 1, 1)])
    assert list(in_rows(observe(idle, absent)[1], 2)) == [[-1, 7]] * 3


def test_more_places_than_the_episode_has_jobs() -> None:
    session = at_pick(10, [20], [(0, 100, 3)], [(10, 1, 1)])
    context = observe(session, running((2000,)))[1]  # a session begins with room for 1,024
    assert context[:2].tolist() == [3, 90]
    assert not context[2:].any()


def test_a_job_past_its_estimate_is_believed_to_end_in_a_second_or_was_to_end_before() -> None:
    jobs = [(0, 10, 3), (0, 30, 2), (0, 40, 1)]
    standard = at_pick(30, [20], jobs, [(30, 1, 1)])
    assert list(in_rows(observe(standard, running((3,)))[1], 2)) == [[3, 1], [2, 1], [1, 10]]
    cqsim = at_pick(30, [20], jobs, [(30, 1, 1)], "cqsim")
    assert list(in_rows(observe(cqsim, running((3,)))[1], 2)) == [[3, -20], [2, 0], [1, 10]]


# Units (DRAS): a row per node, in the order of believed ends, free ones last.

UNITS = {"available": "0", "left": "left"}


def units(*places: int, resources: int = 1) -> Encoder:
    """Return an encoder that shows units."""
    return Encoder(
        "pick",
        ONE,
        running=UNITS,
        running_rows=places,
        row_unit="unit",
        empty_row=(1.0, 0.0),
        resources=resources,
    )


def test_a_row_per_node() -> None:
    session = at_pick(10, [6], [(0, 60, 2), (5, 25, 3)], [(10, 1, 1)])
    expected = [[0, 20]] * 3 + [[0, 50]] * 2 + [[1, 0]]
    assert list(in_rows(observe(session, units(6))[1], 2)) == expected


def test_nodes_of_an_idle_and_of_a_full_machine() -> None:
    idle = at_pick(10, [3], [], [(10, 1, 1)])
    assert list(in_rows(observe(idle, units(3))[1], 2)) == [[1, 0]] * 3
    full = at_pick(10, [3], [(0, 15, 3)], [(10, 1, 1)])
    assert list(in_rows(observe(full, units(3))[1], 2)) == [[0, 5]] * 3


def test_units_of_two_resources_are_rounded_up_and_cut_off_at_the_end() -> None:
    # 1,000 bytes are five units: 250 and 401 bytes are two and three of them, 100 more find none left
    jobs = [(0, 100, 1, 250), (0, 50, 2, 401), (0, 200, 1, 100), (0, 300, 1, 0)]
    session = at_pick(10, [6, 1000], jobs, [(10, 1, 1, 1)])
    context = list(in_rows(observe(session, units(6, 5, resources=2))[1], 2))
    assert context[:6] == [[0, 40]] * 2 + [[0, 90], [0, 190], [0, 290], [1, 0]]
    assert context[6:] == [[0, 40]] * 3 + [[0, 90]] * 2


def test_fewer_units_than_nodes() -> None:
    session = at_pick(10, [8], [(0, 20, 1), (0, 30, 4)], [(10, 1, 1)])
    assert list(in_rows(observe(session, units(4))[1], 2)) == [[0, 10], [0, 20], [0, 20], [1, 0]]


# Numbers of the machine.

MACHINE = Encoder("pick", ONE, machine={"used": "used[r]", "goal": "goal[r]"}, resources=2)


def test_the_example_of_mrschs_goal() -> None:
    session = at_pick(
        1800,
        [4360, 1260],
        running=[(0, 3600, 2180, 252)],
        waiting=[(1800, 3600, 1090, 126), (1800, 7200, 436, 0)],
    )
    used, goal = observe(session, MACHINE)[1].reshape(2, 2)
    assert used == pytest.approx(np.array([0.5, 0.2]))
    assert goal == pytest.approx(np.array([2520, 720]) / 3240)
    assert goal.round(4).tolist() == pytest.approx([0.7778, 0.2222])


def test_a_goal_counts_what_is_left_of_running_jobs_as_they_are_believed() -> None:
    # one second is left of the running job, and of the waiting one all of its 9 s
    late = at_pick(50, [4, 10], [(0, 20, 4, 0)], [(50, 9, 0, 10)])
    assert observe(late, MACHINE)[1].tolist() == pytest.approx([1, 0, 0.1, 0.9])
    cqsim = at_pick(50, [4, 10], [(0, 20, 4, 0)], [(50, 9, 0, 10)], "cqsim")
    assert observe(cqsim, MACHINE)[1].tolist() == pytest.approx([1, 0, 0, 1])  # never less than nothing


def test_without_any_work_all_resources_are_alike() -> None:
    session = at_pick(50, [4, 10, 7], [], [(50, 0, 1, 2, 7)])
    encoder = Encoder("pick", ONE, machine={"goal": "goal[r]"}, resources=3)
    assert observe(session, encoder)[1].tolist() == pytest.approx([1 / 3] * 3)


def test_shares_of_waiting_and_running_jobs() -> None:
    session = at_pick(10, [4, 10], [(0, 20, 2, 1)], [(10, 1, 1, 5), (10, 1, 4, 0)])
    encoder = replace(
        MACHINE, features={"share": "share[r]"}, running={"share": "share[r]"}, running_rows=(2,)
    )
    rows, context = observe(session, encoder)
    assert rows.tolist() == [[0.25, 0.5], [1, 0]]
    assert context[:4].tolist() == pytest.approx([0.5, 0.1, 0, 0])
    # 10 s are left of the running job: 5 + 0.25 + 1 of the nodes, 1 + 0.5 + 0 of the other
    assert context[4:].tolist() == pytest.approx([0.5, 0.1, 6.25 / 7.75, 1.5 / 7.75])


def test_the_load_is_of_waiting_and_running_jobs() -> None:
    session = at_pick(10, [4], [(0, 20, 2)], [(10, 5, 1), (10, 0, 4)])
    encoder = Encoder("pick", ONE, machine={"load": "load", "running": "running"})
    assert observe(session, encoder)[1].tolist() == pytest.approx([1 / 20 + 1 / 5 + 1, 1])


def test_running_rows_stand_before_the_numbers_of_the_machine() -> None:
    session = at_pick(10, [4, 10], [(0, 20, 2, 1)], [(10, 1, 1, 5)])
    encoder = replace(MACHINE, running=SHOWN, running_rows=(1,))
    assert encoder.context == 6
    assert observe(session, encoder)[1][:4].tolist() == pytest.approx([2, 10, 0.5, 0.1])


# Episodes side by side.

#: Four episodes of three jobs on four nodes: one job runs, the two others are asked about.
EPISODES = [[(0, 100 * b, 100 * b, b), (10, 50, 50, 4), (10, 60, 60, 4)] for b in range(1, 5)]
PICKS = Policy("fcfs", "easy", agent=frozenset({"pick"}))


def test_each_episode_has_its_own_context() -> None:
    encoder = replace(
        Encoder("pick", {"t": "t"}, window=8, machine={"used": "used[0]"}), running=SHOWN, running_rows=(2,)
    )
    rows = [row for episode in EPISODES for row in episode]
    batch = Batch(prepared(make_jobs(rows, [4]), PICKS), encoder.compile({}), 4, 3)
    view = batch.reset(np.array([0, 3, 6, 9]))
    assert view.rows[:, 0].tolist() == [50, 60] * 4
    expected = [[b, 100 * b - 10, 0, 0, b / 4] for b in range(1, 5)]
    assert view.context.tolist() == expected
    # a place that begins anew leaves the others' context as it is
    view = batch.begin(np.array([1]), np.array([9]))
    assert view.context.tolist() == [expected[0], expected[3], expected[2], expected[3]]


def test_a_later_decision_has_a_context_of_its_own() -> None:
    rows = [(0, 100, 100, 2), (10, 50, 50, 4), (20, 30, 30, 1), (20, 40, 40, 1), (20, 40, 40, 1)]
    encoder = replace(Encoder("pick", {"t": "t"}, window=8), running=SHOWN, running_rows=(2,))
    batch = Batch(prepared(make_jobs(rows, [4]), PICKS), encoder.compile({}), 1, 5)
    # alone at 10, the second job is picked and waits; the next pass is asked
    view = batch.reset(np.zeros(1, np.int64))
    assert view.rows[:, 0].tolist() == [50, 30, 40, 40]
    assert view.context.tolist() == [[2, 80, 0, 0]]
    view = batch.step(np.array([2]))
    assert view.rows[:, 0].tolist() == [50, 30, 40]
    assert view.context.tolist() == [[2, 80, 1, 40]]


@pytest.mark.skipif(
    os.environ.get("NUMBA_DISABLE_JIT", "0") != "0",
    reason="Python's own math raises before the number is seen",
)
def test_a_context_that_is_no_number_is_one_error() -> None:
    encoder = Encoder("pick", {"t": "t"}, window=8, machine={"broken": "10**(200*waiting)"})
    with pytest.raises(BridgeError, match="is not a finite number at time 10 s"):
        Batch(prepared(make_jobs(EPISODES[0], [4]), PICKS), encoder.compile({}), 1, 3).reset(
            np.zeros(1, np.int64)
        )


def test_a_workload_without_the_resource_is_refused() -> None:
    with pytest.raises(BridgeError, match="sees 2 resources") as error:
        Batch(prepared(make_jobs(EPISODES[0], [4]), PICKS), MACHINE.compile({}), 1, 3)
    assert error.value.where == "handmade: nodes"


def test_bytes_by_the_unit_do_not_overflow() -> None:
    shape = Encoder(
        "pick",
        {"t": "t"},
        running={"left": "left"},
        running_rows=(2, 1000),
        row_unit="unit",
        empty_row=(-1.0,),
        resources=2,
    )
    machine = at_pick(10, (2, 10**16), [(0, 100, 1, 10**16)], [(5, 50, 1, 0), (6, 50, 1, 0)])
    _, context = observe(machine, shape)
    assert context[:2].tolist() == [90, -1]
    assert (context[2:] == 90).all()


def test_waiting_jobs_have_nothing_left() -> None:
    rows, _ = observe(
        at_pick(10, (4,), [(0, 100, 3)], [(5, 50, 2), (6, 60, 2)]), Encoder("pick", {"left": "left"})
    )
    assert rows[:, 0].tolist() == [0, 0]


def test_a_resource_of_which_there_is_none_is_never_in_use() -> None:
    shape = Encoder(
        "pick", {"share": "share[r]"}, machine={"used": "used[r]", "goal": "goal[r]"}, resources=2
    )
    rows, context = observe(at_pick(10, (4, 0), [(0, 100, 3, 0)], [(5, 50, 2, 0), (6, 60, 2, 0)]), shape)
    assert rows[:, 1].tolist() == [0, 0]
    assert context.tolist() == [0.75, 0, 1, 0]


# Waiting jobs beside those that can be chosen.

QUEUED = Encoder("pick", {"t": "t"}, window=8, queued={"length": "t", "nodes": "n"}, queued_rows=4)


def test_the_first_waiting_jobs_have_rows_of_their_own() -> None:
    session = at_pick(10, [20], [(0, 100, 3)], [(7, 5, 1), (8, 6, 2), (9, 7, 3)])
    _, context = observe(session, QUEUED)
    assert list(in_rows(context, 2)) == [[7, 3], [6, 2], [5, 1], [0, 0]]  # the latest is the first
    _, context = observe(session, replace(QUEUED, queued_rows=2))
    assert list(in_rows(context, 2)) == [[7, 3], [6, 2]]


def test_they_stand_between_running_jobs_and_the_machine_and_without_the_head() -> None:
    encoder = replace(QUEUED, running=SHOWN, running_rows=(1,), queued_rows=2, machine={"free": "free"})
    session = at_pick(10, [20], [(0, 100, 3)], [(7, 5, 1), (8, 6, 2)])
    session.state.scalars.head[0] = session.state.candidates[0, 0]  # the job of length 6
    _, context = observe(session, encoder)
    assert context.tolist() == [3, 90, 5, 1, 0, 0, 17]
    assert encoder.context == 7
    assert encoder.size == 8 * 1 + 1 * 2 + 2 * 2


@pytest.mark.parametrize(("queued", "rows"), [({"t": "t"}, 0), ({}, 3), ({"t": "t"}, -1)])
def test_rows_of_waiting_jobs_need_features_and_rows(queued: dict[str, str], rows: int) -> None:
    with pytest.raises(BridgeError, match="rows of waiting jobs need features and at least one row"):
        replace(QUEUED, queued=queued, queued_rows=rows)
