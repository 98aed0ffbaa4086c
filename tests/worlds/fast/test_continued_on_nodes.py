"""Windows from the recorded state, each a replay of its own: the same as those of the pool, and on nodes."""

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st
from small_jobs import make_jobs, prepared

from bridge.scheduler.protocol import Policy
from bridge.worlds.fast.continued import continue_from_record
from bridge.worlds.fast.continued_on_nodes import continue_on_nodes
from bridge.worlds.fast.replay import replay
from tests.worlds.fast.test_continued import rows


@settings(deadline=None, max_examples=40)
@example([(0, 1, 0, 2), (0, 1, 0, 3)], 1, "none")  # one runs when time begins
@given(rows, st.integers(1, 5), st.sampled_from(["none", "easy"]))
def test_on_one_pool_both_ways_are_the_same(
    table: list[tuple[int, int, int, int]], length: int, backfill: str
) -> None:
    jobs = make_jobs(sorted((s, r, r + more, n) for s, r, more, n in table), [4])
    policy = Policy("fcfs", backfill)
    start = replay(prepared(jobs, policy)).start
    firsts = np.arange(0, len(jobs) - length + 1, length)
    has_record, length = np.ones(len(jobs), np.bool_), min(length, len(jobs))
    here = continue_on_nodes(jobs, has_record, start, firsts, length, lambda own: prepared(own, policy))
    there = continue_from_record(prepared(jobs, policy), has_record, start, firsts, length)
    assert here.start.tolist() == there.start.tolist()
    assert (here.how.tolist(), here.past.tolist()) == (there.how.tolist(), there.past.tolist())
    assert here.reserved.tolist() == there.reserved.tolist()
