"""The optimisation rival: Pareto sets and choices by hand, against a plain search, and in schedules."""

from collections.abc import Sequence
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_jobs import Row, make_jobs

from bridge.base.errors import BridgeError
from bridge.env.batch import PackedObservations
from bridge.judge.check import check_schedule
from bridge.learn.agent import schedules_by
from bridge.workload.select import Jobs
from bridge.worlds.fast.jobs_table import JobsTableBuilder
from bridge.worlds.fast.replay import replay
from bridge.worlds.fast.scheduler_config import SchedulerConfig
from papers.mrsch.optimise import Optimise, all_sets, chosen, feasible, filled, pareto

HOUR = 3600
#: MRSch, Figure 1: percentages of two resources, an hour each.
PAPER = {"J1": (70, 10), "J2": (50, 60), "J3": (30, 30), "J4": (40, 10)}
HELD = SchedulerConfig("fcfs", "easy", blocked="held")
#: Demands of the waiting jobs, what is in use, the capacities.
Case = tuple[list[tuple[int, ...]], tuple[int, ...], tuple[int, ...]]


def view_of(*cases: Case, first_key: int = 0) -> PackedObservations:
    """Return decisions as the kernels write them."""
    share = [[d / c for d, c in zip(job, case[2], strict=True)] for case in cases for job in case[0]]
    used = [[1 - (c - u) / c for u, c in zip(case[1], case[2], strict=True)] for case in cases]
    offsets = np.cumsum([0] + [len(case[0]) for case in cases])
    keys = np.concatenate([np.arange(len(case[0])) + 100 * sum(case[1]) + first_key for case in cases])
    return PackedObservations(np.array(share, np.float32), offsets, keys, np.array(used, np.float32))


def percent(jobs: Sequence[tuple[int, ...]], used: tuple[int, ...] = (0, 0)) -> int:
    """Return which job is picked; all in percent."""
    (answer,) = Optimise(len(used))(view_of((list(jobs), used, (100,) * len(used))))
    return int(answer)


def by_plain_search(case: Case) -> int:
    """Return the answer in whole percent: the Pareto set of all sets, one by one, then the rule of choice."""
    jobs, used, capacity = case
    assert set(capacity) == {100}
    found = []
    for members in product((True, False), repeat=len(jobs)):
        use = [
            u + sum(job[r] for job, is_in in zip(jobs, members, strict=True) if is_in)
            for r, u in enumerate(used)
        ]
        if any(members) and max(use) <= 100:
            found.append((members, use))
    if not found:
        return 0
    front = [
        (members, use[0], sum(use[1:]))
        for members, use in found
        if not any(
            other != use and all(o >= u for o, u in zip(other, use, strict=True)) for _, other in found
        )
    ]
    _, nodes, rest = base = max(front, key=lambda one: one[1:])
    better = [one for one in front if 10 * (one[2] - rest) > 3 * rest and nodes - one[1] < 10]
    return max(better, key=lambda one: (one[2], one[1]), default=base)[0].index(True)


def test_what_it_sees() -> None:
    encoder = Optimise(3, window=7).encoder()
    assert encoder.decision == "pick"
    assert encoder.window == 7
    assert list(encoder.columns.values()) == ["share[0]", "share[1]", "share[2]"]
    assert list(encoder.machine_columns.values()) == ["used[0]", "used[1]", "used[2]"]


def test_all_sets_older_jobs_first() -> None:
    assert all_sets(2).tolist() == [[1, 1], [1, 0], [0, 1]]
    assert all_sets(3)[:3].tolist() == [[1, 1, 1], [1, 1, 0], [1, 0, 1]]
    assert len(np.unique(all_sets(10), axis=0)) == 1023


def test_pareto_sets_by_hand() -> None:
    expected = [True, True, False, True, False]
    assert pareto(np.array([[0.5, 0.5], [0.6, 0.4], [0.5, 0.4], [0.4, 0.6], [0.4, 0.4]])).tolist() == expected
    assert pareto(np.array([[0.3, 0.3], [0.3, 0.3 + 1e-8]])).tolist() == [True, True]  # equal
    expected = [False, True, True]
    assert pareto(np.array([[0.3, 0.3, 0.1], [0.3, 0.3, 0.2], [0.4, 0.2, 0.1]])).tolist() == expected
    assert pareto(np.array([[0.7]])).tolist() == [True]


def test_the_papers_example() -> None:
    jobs = list(PAPER.values())
    sets = all_sets(4)
    use = sets @ np.array(jobs) / 100
    sets, use = sets[feasible(use)], use[feasible(use)]
    assert len(sets) == 8  # four alone, and 1+3, 2+3, 2+4, 3+4
    front = {
        "+".join(name for name, is_in in zip(PAPER, one, strict=True) if is_in): u.round(9).tolist()
        for one, u in zip(sets[pareto(use)], use[pareto(use)], strict=True)
    }
    assert front == {"J1+J3": [1.0, 0.4], "J2+J4": [0.9, 0.7], "J2+J3": [0.8, 0.9]}
    # most nodes: 1+3. 2+4 gains .3 > .12 and loses .1 of the nodes, which is not less than .1
    assert percent(jobs) == 0
    assert percent(jobs[1:], (70, 10)) == 1  # J1 runs: only J3 fits
    assert percent(jobs[1::2], (100, 40)) == 0  # nothing fits: the oldest
    # one node more, and 2+4 loses .09 only
    assert percent([*jobs[:3], (41, 10)]) == 1


@pytest.mark.parametrize(
    ("use", "place"),
    [
        ([[0.7, 0.9], [0.8, 0.3]], 1),  # most nodes; the first loses .1
        ([[1.0, 0.4], [0.91, 0.52]], 0),  # gains .12 = .3 × .4: not more
        ([[1.0, 0.4], [0.91, 0.53]], 1),
        ([[1.0, 0.4], [0.9, 0.9]], 0),  # loses .1: not less
        ([[1.0, 0.4], [0.901, 0.9]], 1),
        ([[1.0, 0.4], [0.95, 0.6], [0.92, 0.7]], 2),  # most of the others among those that may
        ([[1.0, 0.4], [0.95, 0.6], [0.89, 0.7]], 1),
        ([[1.0, 0.4], [0.92, 0.6], [0.95, 0.6]], 2),  # as much of the others: more nodes
        ([[0.9, 0.5], [0.85, 0.6]], 0),  # what runs counts: .1 of .5, whoever uses the .5
        ([[1.0, 0.0], [0.95, 0.01]], 1),  # from nothing, anything is a gain
        ([[1.0, 0.2, 0.2], [0.95, 0.5, 0.0]], 0),  # the others are added up: .5 against .4
        ([[1.0, 0.2, 0.2], [0.95, 0.6, 0.0]], 1),
        ([[0.8, 0.1, 0.3], [0.8, 0.4, 0.1]], 1),  # as many nodes: more of the others
        ([[0.8, 0.3], [0.8 + 1e-8, 0.3 - 1e-8]], 0),  # equals: the first
        ([[1.1, 0.1], [0.3, 0.3], [0.3, 1.01]], 1),  # the machine can bear one only
        ([[0.4], [0.9], [0.9], [1.2]], 1),  # one resource
    ],
)
def test_the_rule_of_choice(use: list[list[float]], place: int) -> None:
    assert chosen(np.array(use)) == place


def test_nothing_to_choose_from() -> None:
    with pytest.raises(ValueError, match="no set fits"):
        chosen(np.array([[1.1, 0.0], [0.0, 1.1]]))


def test_one_resource_is_a_knapsack() -> None:
    assert percent([(50,), (70,), (30,)], (0,)) == 1  # 70 + 30
    assert percent([(60,), (50,), (40,), (30,)], (10,)) == 0  # 60 + 30 as good as 50 + 40: the older
    assert percent([(20,), (50,), (40,)], (10,)) == 1  # 50 + 40 before 20 + 50


@pytest.mark.parametrize("capacity", [3, 7, 4360, 10**15])
def test_a_job_that_fills_the_machine_to_the_last_unit_fits(capacity: int) -> None:
    for used in (0, 1, capacity // 3, capacity - 1):
        free = capacity - used
        too_large = free + max(capacity // 10**5, 1)
        assert Optimise(1)(view_of(([(too_large,), (free,)], (used,), (capacity,)))).tolist() == [1]


@st.composite
def decisions(draw: st.DrawFn, most: int, capacity: tuple[int, ...] | None = None) -> Case:
    """Waiting jobs and what is in use, in whole units."""
    if capacity is None:
        capacity = (4360, 1260, 238400)[: draw(st.integers(1, 3))]
    used = tuple(draw(st.integers(0, c)) for c in capacity)
    job = st.tuples(*(st.integers(int(r == 0), c) for r, c in enumerate(capacity)))
    small = st.tuples(*(st.integers(int(r == 0), max(c // 10, 1)) for r, c in enumerate(capacity)))
    return draw(st.lists(job | small, min_size=2, max_size=most)), used, capacity


@given(st.integers(1, 3).flatmap(lambda r: decisions(7, (100,) * r)))
def test_a_plain_search_finds_the_same(case: Case) -> None:
    assert Optimise(len(case[2]))(view_of(case)).tolist() == [by_plain_search(case)]


@pytest.mark.parametrize("exhaustive", [10, 2])
@given(case=decisions(12))
@settings(max_examples=50)
def test_no_unfitting_job_while_one_fits(exhaustive: int, case: Case) -> None:
    jobs, used, capacity = case
    rule = Optimise(len(capacity), window=12, exhaustive=exhaustive, generations=2)
    (answer,) = rule(view_of(case)).tolist()
    fits = [all(d + u <= c for d, u, c in zip(job, used, capacity, strict=True)) for job in jobs]
    assert fits[answer] if any(fits) else answer == 0


@pytest.mark.parametrize("exhaustive", [10, 2])
@given(cases=st.lists(decisions(8, (100, 100)), min_size=2, max_size=4))
@settings(max_examples=25)
def test_decisions_do_not_disturb_each_other(exhaustive: int, cases: list[Case]) -> None:
    rule = Optimise(2, exhaustive=exhaustive, generations=2)
    alone = [rule(view_of(case)).tolist()[0] for case in cases]
    assert rule(view_of(*cases)).tolist() == alone
    assert rule(view_of(*cases[::-1])).tolist() == alone[::-1]


@pytest.mark.parametrize("resources", [1, 2, 3])
def test_the_genetic_algorithm_finds_what_all_sets_hold(resources: int) -> None:
    rng = np.random.default_rng(resources)
    tried, searched = Optimise(resources), Optimise(resources, exhaustive=0)
    answers = set()
    for _ in range(12):
        wanted = np.minimum(rng.exponential(0.15, (8, resources)), 0.65)
        taken = rng.random(resources) * 0.3
        found = searched.searched(wanted, taken, rng)
        best, ours = (use[chosen(use)] for use in (taken + all_sets(8) @ wanted, taken + found @ wanted))
        assert ours == pytest.approx(best, abs=1e-9)
        cases = [[tuple(int(100 * d) for d in job) for job in wanted.tolist()]]
        view = view_of((cases[0], tuple(int(100 * u) for u in taken.tolist()), (100,) * resources))
        assert searched(view).tolist() == tried(view).tolist()
        answers.add(searched(view).tolist()[0])
    assert len(answers) > 1


def test_every_searched_set_fits_and_nothing_can_be_added() -> None:
    rng = np.random.default_rng(5)
    wanted, taken = rng.random((15, 2)) * 0.5, np.array([0.2, 0.1])
    found = Optimise(2).searched(wanted, taken, rng)
    use = taken + found @ wanted
    assert feasible(use).all()
    assert len(np.unique(found, axis=0)) == len(found) > 20
    for j in range(15):
        assert not feasible(use[found[:, j] == 0] + wanted[j]).any()
    assert found.tolist() == sorted(found.tolist(), reverse=True)  # older jobs first


def test_what_a_set_meant_to_hold_comes_first() -> None:
    rng = np.random.default_rng(1)
    wanted = np.array([[0.6, 0.1], [0.5, 0.1], [0.4, 0.1], [0.3, 0.1]])
    for _ in range(10):
        kept = filled(np.array([[0, 1, 1, 0], [0, 0, 0, 1]], np.bool_), wanted, np.array([0.1, 0.0]), rng)
        assert kept[0].tolist() == [False, True, True, False]  # full: .1 + .5 + .4
        assert kept[1].tolist() in (
            [True, False, False, True],
            [False, True, False, True],
            [False, False, True, True],
        )


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"resources": 0}, r"resources cannot be 0[^.]*at least 1"),
        ({"window": 0}, r"window cannot be 0[^.]*at least 1"),
        ({"exhaustive": 21}, r"exhaustive cannot be 21[^.]*at least 0 and at most 20"),
        ({"population": 1}, r"population cannot be 1[^.]*at least 2"),
        ({"generations": -1}, r"generations cannot be -1[^.]*at least 0"),
        ({"mutation": 1.5}, r"mutation cannot be 1\.5[^.]*at least 0 and at most 1"),
    ],
)
def test_what_cannot_be_searched_is_refused(change: dict[str, float], says: str) -> None:
    with pytest.raises(BridgeError, match=says):
        Optimise(**{"resources": 2} | change)  # type: ignore[arg-type]


def replayed_starts(jobs: Jobs, rule: Optimise, setup: SchedulerConfig = HELD) -> list[float]:
    prepared = setup.build_scenario(jobs, setup.policy("pick"))
    encoder = rule.encoder().compile({})
    (schedule,) = schedules_by(encoder, rule, prepared, np.zeros(1, np.int64), len(jobs))
    capacity = dict(zip(jobs.resources, jobs.capacity.tolist(), strict=True))
    verdict = check_schedule(JobsTableBuilder(prepared, schedule).rows(), capacity)
    assert verdict.ok, verdict.first
    assert verdict.started == len(jobs)
    return [t / 1e6 for t in schedule.start.tolist()]


def test_the_papers_example_as_a_schedule() -> None:
    """FCFS and EASY need 3 h for this order: J2 and J3, J1, J4."""
    jobs = make_jobs([(0, HOUR, HOUR, *PAPER[name]) for name in ("J2", "J1", "J3", "J4")], [100, 100])
    by_rules = replay(HELD.build_scenario(jobs)).start / 1e6
    assert by_rules.tolist() == [0, HOUR, 0, 2 * HOUR]
    assert replayed_starts(jobs, Optimise(2)) == [HOUR, 0, 0, HOUR]


def test_who_was_reserved_is_held() -> None:
    """1 takes 8 of 10 nodes until 100. At 10, neither 2 nor 3 fits: 2 is reserved for 100.

    4, small and over by 100, is backfilled. 5 alone fills the machine, which would be best at 100, but 2 is
    held and starts, and then 3 fits.
    """
    rows: list[Row] = [
        (0, 100, 100, 8, 0),
        (10, 100, 100, 3, 3),
        (10, 50, 50, 4, 4),
        (30, 20, 60, 2, 9),
        (50, 10, 10, 10, 10),
    ]
    assert replayed_starts(make_jobs(rows, [10, 10]), Optimise(2)) == [0, 100, 100, 30, 200]
    # of a window of one there is nothing to choose: FCFS
    assert replayed_starts(make_jobs(rows, [10, 10]), Optimise(2, window=1)) == [0, 100, 100, 30, 200]
    # asked afresh at 100, it fills the machine with 5
    assert replayed_starts(make_jobs(rows, [10, 10]), Optimise(2), SchedulerConfig("fcfs", "easy")) == [
        0,
        110,
        110,
        30,
        100,
    ]


@given(data=st.data())
@settings(max_examples=30)
def test_schedules_are_valid(data: st.DataObject) -> None:
    capacity = data.draw(st.tuples(st.integers(2, 6), st.integers(1, 9)))
    rows: list[Row] = []
    for submit in sorted(data.draw(st.lists(st.integers(0, 8), min_size=2, max_size=14))):
        run = data.draw(st.integers(1, 6))
        demand = [data.draw(st.integers(int(r == 0), c)) for r, c in enumerate(capacity)]
        rows.append((submit, run, run + data.draw(st.integers(0, 4)), *demand))
    jobs = make_jobs(rows, capacity)
    exhaustive = data.draw(st.sampled_from([2, 10]))
    replayed_starts(jobs, Optimise(2, window=6, exhaustive=exhaustive, generations=1))
