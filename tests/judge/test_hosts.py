"""Batsim's interval texts, and hosts that two jobs hold at once."""

import numpy as np
import pandas as pd
import pytest

from bridge.judge.hosts import overlaps, parse


def test_parse() -> None:
    texts = pd.Series(["0-3 7", "", "12", "5 4 1-2", None])
    found, unreadable = parse(texts)
    assert found.first.tolist() == [0, 7, 12, 5, 4, 1]
    assert found.last.tolist() == [3, 7, 12, 5, 4, 2]
    assert found.offsets.tolist() == [0, 2, 2, 3, 6, 6]
    assert not unreadable.any()


@pytest.mark.parametrize("text", ["3-", "a", "1,2", " 1", "4-2", "1  2", "-1", "9" * 30])
def test_unreadable(text: str) -> None:
    found, unreadable = parse(pd.Series(["1", text, "2"]))
    assert unreadable.tolist() == [False, True, False]
    assert found.first.tolist() == [1, 2]
    assert found.offsets.tolist() == [0, 1, 1, 2]


def test_overlaps() -> None:
    found, _ = parse(pd.Series(["0-3", "5 3", "0-3", "4", "3"]))
    starts = np.array([0.0, 4.0, 10.0, 4.0, 2.0])
    ends = np.array([10.0, 12.0, 20.0, 5.0, 2.0])  # the last has no length and holds nothing
    jobs, holders, hosts = overlaps(found, starts, ends, 1e-6)
    assert jobs.tolist() == [1, 2]
    assert holders.tolist() == [0, 1]
    assert hosts.tolist() == [3, 3]
    assert overlaps(found, starts, ends, 6.0)[0].tolist() == []


def test_memory_follows_the_intervals_not_the_ids() -> None:
    allocation, _ = parse(pd.Series(["0-899999999999999999", "5-7", "3 8-9"]))
    starts, ends = np.array([0.0, 1.0, 2.0]), np.array([10.0, 3.0, 11.0])
    jobs, holders, hosts = overlaps(allocation, starts, ends, 1e-6)
    assert (jobs.tolist(), holders.tolist(), hosts.tolist()) == ([1, 2], [0, 0], [5, 3])
