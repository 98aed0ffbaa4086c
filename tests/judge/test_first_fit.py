"""First-fit placement against a placement with plain sets, compiled and as plain Python."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from schedules import example, schedule

from bridge.base.errors import BridgeError
from bridge.judge import hosts
from bridge.judge.check import check_schedule
from bridge.judge.hosts import HostAllocation, first_fit, place_first_fit

HOSTS = 12


def sets(found: HostAllocation) -> list[set[int]]:
    return [
        {h for k in range(begin, end) for h in range(found.first[k], found.last[k] + 1)}
        for begin, end in zip(found.offsets[:-1], found.offsets[1:], strict=True)
    ]


def reference(starts: list[float], ends: list[float], demand: list[int], hosts: int) -> list[set[int]]:
    """Place one job after the other, looking at every other one."""
    placed: list[set[int]] = [set() for _ in starts]
    done: list[int] = []
    for job in sorted(range(len(starts)), key=lambda j: (starts[j], ends[j] > starts[j], j)):
        held = set().union(*(placed[o] for o in done if ends[o] > starts[job]))
        placed[job] = set([h for h in range(hosts) if h not in held][: demand[job]])
        done.append(job)
    return placed


@st.composite
def valid(draw: st.DrawFn) -> tuple[list[float], list[float], list[int]]:
    """Draw a schedule that fits on HOSTS hosts: every job starts as soon as it fits, in a drawn order."""
    jobs = draw(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 6), st.integers(1, HOSTS)), max_size=25))
    starts, ends, demand = [], [], []
    now = 0
    for gap, run, size in jobs:
        now += gap // 3
        while sum(d for s, e, d in zip(starts, ends, demand, strict=True) if e > now) + size > HOSTS:
            now += 1
        starts.append(float(now))
        ends.append(float(now + run))
        demand.append(size)
    return starts, ends, demand


def check_against_reference(drawn: tuple[list[float], list[float], list[int]]) -> None:
    starts, ends, demand = drawn
    found = sets(first_fit(np.array(starts), np.array(ends), np.array(demand, np.int64), HOSTS))
    assert found == reference(starts, ends, demand, HOSTS)
    assert [len(hosts) for hosts in found] == demand
    for a in range(len(starts)):
        for b in range(a):
            if starts[a] < ends[b] and starts[b] < ends[a]:
                assert not found[a] & found[b]


@settings(deadline=None)  # the first example may compile
@given(valid())
def test_compiled(drawn: tuple[list[float], list[float], list[int]]) -> None:
    check_against_reference(drawn)


@settings(max_examples=50)
@given(valid())
def test_as_plain_python(drawn: tuple[list[float], list[float], list[int]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        for name in ("_place", "_give_back"):
            function: Any = getattr(hosts, name)
            patch.setattr(hosts, name, getattr(function, "py_func", function))
        check_against_reference(drawn)


def test_texts_and_the_check() -> None:
    table = example()
    table["allocated_resources"] = place_first_fit(table, 4).texts()
    assert table["allocated_resources"].tolist() == ["0-1", "0-3", "2", "0", ""]
    assert check_schedule(table, {"nodes": 4}).ok


def test_holes_are_filled_from_below() -> None:
    rows = [("a", 0, 0, 5, 2), ("b", 0, 0, 9, 1), ("c", 0, 0, 5, 2), ("d", 0, 0, 9, 1), ("e", 0, 5, 4, 5)]
    allocation = place_first_fit(schedule(rows), 8)
    assert list(allocation.texts()) == ["0-1", "2", "3-4", "5", "0-1 3-4 6"]
    assert list(allocation.texts(2, 4)) == ["3-4", "5"]


def test_many_intervals_per_job() -> None:
    # 100 hosts, every second one busy from 0 to 20: a job of 50 hosts has 50 intervals.
    jobs = [(k, 0, 0, 20 if k % 2 else 10, 1) for k in range(100)]
    jobs += [(100 + k, 0, 10 + k, 1, 50) for k in range(10)]
    found = place_first_fit(schedule(jobs), 100).texts()
    even = " ".join(str(h) for h in range(0, 100, 2))
    assert found.tolist()[100:] == [even] * 10


def test_room_for_intervals_grows() -> None:
    hosts, many = 400, 40
    busy = [(float(0), 1000.0 if h % 2 else 1.0, 1) for h in range(hosts)]
    wide = [(2.0 + k, 3.0 + k, hosts // 2) for k in range(many)]
    starts, ends, demand = (np.array(c) for c in zip(*(busy + wide), strict=True))
    found = first_fit(starts, ends, demand.astype(np.int64), hosts)
    assert len(found.first) == hosts + many * hosts // 2 > 8 * (hosts + many) + 16
    assert sets(found)[-1] == set(range(0, hosts, 2))


def test_too_full() -> None:
    table = schedule([("a", 0, 0, 10, 3), ("b", 0, 9, 1, 2)])
    with pytest.raises(BridgeError, match=r"no 2 of 4 hosts are free at t = 9.000000 s") as caught:
        place_first_fit(table, 4)
    assert "bridge check" in caught.value.remedy


def test_nothing_to_place() -> None:
    assert list(place_first_fit(schedule([("r", 0, None, 1, 3)]), 4).texts()) == [""]
    assert list(place_first_fit(schedule([]), 4).texts()) == []


@pytest.mark.parametrize("hosts", [10**9, 2**63 - 1])
def test_memory_follows_the_jobs_not_the_machine(hosts: int) -> None:
    starts, ends = np.array([0.0, 0.0, 5.0]), np.array([10.0, 4.0, 6.0])
    demand = np.array([hosts // 2, 3, hosts - hosts // 2])
    found = first_fit(starts, ends, demand, hosts)
    assert found.first.tolist() == [0, hosts // 2, hosts // 2]
    assert found.last.tolist() == [hosts // 2 - 1, hosts // 2 + 2, hosts - 1]
