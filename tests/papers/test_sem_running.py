"""How many jobs run at once and what the K largest leave out, by hand and on the logs of SEM's paper."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.workload.table import Workload
from bridge.worlds.fast.scheduler_config import SchedulerConfig
from papers.sem.running import Spans, cdf, covered, lost, spans


@pytest.fixture
def by_hand() -> Spans:
    """A holds 4 nodes in [0, 10); B 2 in [2, 6); C 1 in [6, 10); D 5 in [20, 30)."""
    start, end, nodes = np.array([[0, 10, 4], [2, 6, 2], [6, 10, 1], [20, 30, 5]]).T
    return spans(start, end, nodes, (1, 2))


def test_time_is_cut_where_jobs_start_and_end(by_hand: Spans) -> None:
    assert by_hand.seconds.tolist() == [2, 4, 4, 10, 10]
    assert by_hand.jobs.tolist() == [1, 2, 2, 0, 1]
    assert by_hand.nodes.tolist() == [4, 6, 5, 0, 5]
    assert by_hand.left_out.tolist() == [[0, 0], [2, 0], [1, 0], [0, 0], [0, 0]]


def test_cdf_counts_the_time_when_nothing_runs(by_hand: Spans) -> None:
    counts, shares = cdf(by_hand)
    assert counts.tolist() == [0, 1, 2]
    assert shares == pytest.approx([10 / 30, 22 / 30, 1])


def test_lost_is_a_share_of_node_seconds(by_hand: Spans) -> None:
    assert lost(by_hand) == pytest.approx([(4 * 2 + 4 * 1) / (2 * 4 + 4 * 6 + 4 * 5 + 10 * 5), 0])


def test_covered_is_a_share_of_time_and_idle_time_is_covered(by_hand: Spans) -> None:
    assert covered(by_hand, 0.8) == pytest.approx([26 / 30, 1])  # 4 of 5 nodes is just enough
    assert covered(by_hand, 0.9) == pytest.approx([22 / 30, 1])


JOBS = st.lists(st.tuples(st.integers(0, 30), st.integers(1, 20), st.integers(1, 9)), min_size=1, max_size=12)


@given(JOBS)
def test_spans_agree_with_looking_at_every_second(jobs: list[tuple[int, int, int]]) -> None:
    start, run, nodes = np.array(jobs).T
    found = spans(start, start + run, nodes, (1, 3, 12))
    assert found.seconds @ found.nodes == run @ nodes
    edges = start.min() + np.concatenate(([0], np.cumsum(found.seconds))).astype(int)
    assert edges[-1] == (start + run).max()
    for second in range(edges[0], edges[-1]):
        sizes = sorted((n for s, r, n in jobs if s <= second < s + r), reverse=True)
        at = int(np.searchsorted(edges, second, side="right")) - 1
        assert (found.jobs[at], found.nodes[at]) == (len(sizes), sum(sizes))
        assert found.left_out[at].tolist() == [sum(sizes[k:]) for k in (1, 3, 12)]


def test_logs_give_the_published_figures(log: Callable[[str], Workload]) -> None:
    """SEM, Table 2: Atlas 90; Table 3: DataStar 1.22 % and 0.36 %, Atlas at K = 50 9e-05."""
    from papers.sem.running import as_logged

    atlas = as_logged(SchedulerConfig().select(log("LLNL-Atlas-2006-2.1-cln")), (50,))
    datastar = as_logged(SchedulerConfig().select(log("SDSC-DS-2004-2.1-cln")), (30, 40))
    assert atlas.jobs.max() == 90
    assert lost(atlas).round(5).tolist() == [9e-05]
    assert (100 * lost(datastar)).round(2).tolist() == [1.22, 0.36]
