"""Looking back at a group's events: against hand-made cases, and against loops."""

import hypothesis.strategies as st
import numpy as np
from hypothesis import given

from bridge.prediction.features import look_back
from bridge.prediction.submissions import NEVER


def ints(values: list[int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(values, np.int64)


def test_events_of_the_own_group_until_now() -> None:
    found = look_back(
        ints([1, 2, 1, 1, -1]), ints([0, 5, 20, 30, 40]), ints([20, 6, 25, NEVER, 1]), ints([7, 8, 9, 10, 11])
    )
    assert found.count.tolist() == [0, 0, 1, 2, 0]
    assert found.last.tolist() == [-1, -1, 0, 2, -1]
    assert found.previous.tolist() == [-1, -1, -1, 0, -1]
    assert found.total.tolist() == [0, 0, 7, 16, 0]


def test_events_of_the_same_instant_count_unless_strictly_earlier_ones_are_wanted() -> None:
    group, at, amount = ints([1, 1, 1]), ints([5, 5, 6]), ints([1, 2, 4])
    assert look_back(group, at, at, amount).count.tolist() == [2, 2, 3]
    assert look_back(group, at, at, amount, strictly=True).count.tolist() == [0, 0, 2]


def test_nobody_belongs_to_a_group() -> None:
    found = look_back(ints([-1]), ints([5]), ints([1]), ints([1]))
    assert (found.count.tolist(), found.last.tolist()) == ([0], [-1])


JOBS = st.lists(
    st.tuples(st.integers(-1, 2), st.integers(0, 9), st.integers(0, 9) | st.just(NEVER), st.integers(0, 9)),
    min_size=1,
    max_size=15,
)


@given(JOBS, st.booleans())
def test_as_a_loop_finds_them(rows: list[tuple[int, int, int, int]], strictly: bool) -> None:
    group, asked, happened, amount = (ints(list(column)) for column in zip(*rows, strict=True))
    found = look_back(group, asked, happened, amount, strictly=strictly)
    for j, (mine, now, _, _) in enumerate(rows):
        past = [
            (when, i)
            for i, (its, _, when, _) in enumerate(rows)
            if mine >= 0 and its == mine and when < NEVER and (when < now or (when == now and not strictly))
        ]
        past.sort()
        assert found.count[j] == len(past)
        assert found.last[j] == (past[-1][1] if past else -1)
        assert found.previous[j] == (past[-2][1] if len(past) > 1 else -1)
        assert found.total[j] == sum(amount[i] for _, i in past)
