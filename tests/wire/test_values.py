"""Times and sets of hosts as they stand on the wire."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.wire import hosts, times
from bridge.wire.hosts import HostSet


def test_times_are_read_without_float_arithmetic() -> None:
    assert times.micro(Decimal("1.234568")) == 1_234_568
    assert times.micro(Decimal("0.0000005")) == 0 and times.micro(Decimal("0.0000015")) == 2  # half to even
    assert times.micro(7) == 7_000_000
    assert times.micro(0.1) == 100_000 and times.micro(1e-05) == 10
    assert times.micro(Decimal("91999999999.999999")) == 91_999_999_999_999_999


@pytest.mark.parametrize(
    "bad",
    [True, None, "1", Decimal("NaN"), float("inf"), Decimal("1e13"), 10**20, -(10**20), Decimal("1e9999")],
)
def test_what_is_no_time_is_refused(bad: object) -> None:
    with pytest.raises(ValueError, match=r"."):
        times.micro(bad)


def test_a_number_too_long_to_be_written_is_refused_all_the_same() -> None:
    with pytest.raises(ValueError, match="is not a time"):
        times.micro(10**5000)


def test_a_number_beyond_all_times_is_told_the_limit() -> None:
    limit = "is not a time: times are within 92000000000 s of 0"
    for late in (92_000_000_001, Decimal("92000000000.000001"), Decimal("10000000000001"), -92_000_000_001):
        with pytest.raises(ValueError, match=f"^{late} s {limit}$"):
            times.micro(late)
    assert times.micro(92_000_000_000) == times.LATEST


@given(st.integers(0, times.LATEST))
def test_times_come_back_exactly(time: int) -> None:
    assert times.micro(Decimal(times.text_of(time))) == time


@given(st.integers(0, 10**15))
def test_times_survive_a_float_of_their_text(time: int) -> None:
    assert times.micro(float(times.text_of(time))) == time


def test_host_texts() -> None:
    assert hosts.parse("0-1 5") == ((0, 1), (5, 5))
    assert hosts.parse("5 0 1 2-3") == ((0, 3), (5, 5))
    assert hosts.parse("") == ()
    assert hosts.text_of(((0, 1), (5, 5), (7, 9))) == "0-1 5 7-9"
    assert hosts.size(((0, 1), (5, 5))) == 3
    for bad in ("1-", "-1", "a", "1--2", "2-1", "1 1", "0-3 2", "1.0"):
        with pytest.raises(ValueError, match=r"."):
            hosts.parse(bad)


def test_a_huge_interval_costs_nothing_until_it_is_expanded() -> None:
    assert hosts.parse("0-999999999999") == ((0, 999_999_999_999),)
    assert hosts.intervals("5 0-2 1") == [(5, 5), (0, 2), (1, 1)]
    assert hosts.merged([hosts.intervals("5 0-2 1")]) == ((0, 2), (5, 5))


@pytest.mark.parametrize("text", [" ", "0,1", "0  1", " 1", "1 ", "0--1", "²", "9" * 19, "1\n", "1" * 10**6])
def test_other_texts_are_no_hosts(text: str) -> None:
    with pytest.raises(ValueError) as refusal:
        hosts.intervals(text)
    assert len(str(refusal.value)) < 100 and "\n" not in str(refusal.value)


def test_normal_form() -> None:
    assert hosts.is_normal(((0, 1), (3, 3)))
    for bad in (((0, 1), (2, 3)), ((3, 2),), ((0, 3), (1, 5)), ((5, 5), (0, 0)), ((0.0, 1.0),), ((-3, 0),)):
        assert not hosts.is_normal(bad) or bad == ((-3, 0),)  # type: ignore[arg-type]
    assert not hosts.is_normal(((-3, 0),))


def spread(some: hosts.Hosts) -> set[int]:
    return {host for low, high in some for host in range(low, high + 1)}


def normal(ids: set[int]) -> hosts.Hosts:
    return hosts.parse(" ".join(map(str, ids)))


IDS = st.sets(st.integers(0, 40))


@given(st.lists(st.tuples(st.sampled_from(["add", "remove", "take"]), IDS), max_size=12))
def test_a_host_set_is_a_set(steps: list[tuple[str, set[int]]]) -> None:
    mine, theirs = HostSet(), set[int]()
    for what, ids in steps:
        if what == "add":
            mine.add(normal(ids))
            theirs |= ids
        elif what == "remove":
            mine.remove(normal(ids))
            theirs -= ids
        else:
            n = len(ids) % (len(theirs) + 1)
            taken = spread(mine.take_lowest(n))
            assert taken == set(sorted(theirs)[:n])
            theirs -= taken
        assert spread(mine.hosts()) == theirs and mine.size == len(theirs)
        assert hosts.is_normal(mine.hosts())
        assert spread(mine.overlap(normal(ids))) == theirs & ids
        for low, high in normal(ids):
            there = mine.overlap(((low, high),)) == ((low, high),)
            assert there == (set(range(low, high + 1)) <= theirs)


@given(st.lists(IDS, max_size=5))
def test_unions(parts: list[set[int]]) -> None:
    assert spread(hosts.merged(normal(ids) for ids in parts)) == set().union(*parts)
