"""What Slurm writes in one cell."""

import math
from datetime import UTC
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge.cluster import slurm_values as values

PARIS = ZoneInfo("Europe/Paris")


def test_times() -> None:
    assert values.instant("2026-01-31T10:00:00", UTC) == 1769853600
    assert values.instant("2026-01-31T10:00:00", PARIS) == 1769853600 - 3600
    assert values.instant("1769853600", PARIS) == 1769853600
    for none in ("", "Unknown", "unknown", "None", "0"):
        assert values.instant(none, UTC) is None
    for wrong in ("2026-13-01T00:00:00", "2026-01-31", "yesterday", "-5", "1e9", "٣"):
        with pytest.raises(ValueError):
            values.instant(wrong, UTC)


def test_a_time_comes_twice_where_the_clock_is_set_back() -> None:
    first = values.instant("2025-10-26T02:30:00", PARIS)
    assert first == 1761438600
    assert values.is_ambiguous(first, PARIS)
    assert values.is_ambiguous(first + 3600, PARIS)
    assert not values.is_ambiguous(first + 7200, PARIS)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        *(("00:05:00", 300), ("1-02:03:04", 93784), ("02:03", 123), ("90", 90), ("00:00:01.250", 1)),
        *(("2-0", 172800), ("2-00", 172800), ("7-12", 648000), ("2-12:30", 217800)),
    ],
)
def test_durations(text: str, seconds: int) -> None:
    assert values.duration(text) == seconds


def test_limits() -> None:
    assert values.limit("90", minutes=True) == 5400
    assert values.limit("3-00:00:00", minutes=True) == 259200
    for none in ("UNLIMITED", "infinite", "-1"):
        assert values.limit(none, minutes=True) == math.inf
    assert values.limit("Partition_Limit", minutes=True) is values.limit("", minutes=True) is None


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("100M", 100 << 20),
        ("4Gn", 2 * 4 << 30),
        ("4000Mc", 16 * 4000 << 20),
        ("0n", 0),
        ("1.50G", 3 << 29),
        ("512", 512 << 20),
    ],
)
def test_memory(text: str, size: int) -> None:
    assert values.amount(text, nodes=2, cores=16) == size


def test_trackable_resources() -> None:
    text = "billing=9,cpu=8,energy=12,gres/gpu:a100=2,gres/gpu:v100=1,license/x=3,mem=1.5G,node=2,bb/cray=2T"
    assert values.resources(text) == {
        "cores": 8,
        "gpus_a100": 2,
        "gpus_v100": 1,
        "license_x": 3,
        "main_memory": 3 << 29,
        "nodes": 2,
        "burst_buffer_cray": 2 << 40,
        "gpus": 3,
    }
    assert values.resources("gres/gpu=4,gres/gpu:a100=4")["gpus"] == 4
    expected = {"cores": 2, "main_memory": 100 << 20, "gpus": 1}
    assert values.demands({"cpu": 2, "mem": 100, "gres/gpu": 1}) == expected
    with pytest.raises(ValueError):
        values.resources("cpu=8,whatever")


def test_lists_of_nodes_keep_zeros_and_take_several_brackets() -> None:
    assert list(values.node_names("n[1-3,7],login")) == ["n1", "n2", "n3", "n7", "login"]
    assert list(values.node_names("gpu[08-10]")) == ["gpu08", "gpu09", "gpu10"]
    assert list(values.node_names("r1i[0-1]n[0-1]")) == ["r1i0n0", "r1i0n1", "r1i1n0", "r1i1n1"]


@pytest.mark.parametrize(
    "text", ["n[1-", "n[3-1]", "n[a]", "n]1", "n[0-99999999999]", "r[0-9999]n[0-9999]", "n[]"]
)
def test_what_is_no_list_of_nodes(text: str) -> None:
    with pytest.raises(ValueError):
        list(values.node_names(text))


@given(st.text(max_size=30))
def test_any_text_is_a_value_or_an_error(text: str) -> None:
    for read in (
        lambda: values.instant(text, PARIS),
        lambda: values.duration(text),
        lambda: values.limit(text, minutes=True),
        lambda: values.amount(text, 1, 1),
        lambda: values.resources(text),
        lambda: list(values.node_names(text)),
    ):
        try:
            read()
        except ValueError as error:
            assert str(error)


@pytest.mark.parametrize(
    ("text", "gpus"),
    [
        *(("gpu:4", 4), ("gpu:a100:2,gpu:v100:1", 3), ("7696487:2", 2), ("gres:gpu:1", 1), ("gres/gpu:3", 3)),
        *(("(null)", 0), ("0", 0), ("", 0), ("N/A", 0), ("gpu", 1), ("gpu:2(IDX:0-1)", 2), ("gpu:1K", 1024)),
    ],
)
def test_generic_resources(text: str, gpus: int) -> None:
    assert values.generic(text).get("gpus", 0) == gpus
    assert values.generic(text, times=2).get("gpus", 0) == 2 * gpus


def test_amounts_are_exact_and_fit_64_bits() -> None:
    assert values.resources("gres/x=4G,license/a=999999999999999999") == {
        "gres_x": 4 << 30,
        "license_a": 999_999_999_999_999_999,
    }
    for wrong in (
        "mem=9007199254740993K,gres/gpu:a=9E",
        "mem=99999999999999T",
        "gres/gpu:a=7E,gres/gpu:b=7E",
    ):
        with pytest.raises(ValueError, match="does not fit 64 bits"):
            values.resources(wrong)


@pytest.mark.parametrize("text", ["1700000000000", "1700000000000000", "0001-01-01T00:00:00"])
def test_times_that_are_no_seconds_of_our_centuries(text: str) -> None:
    with pytest.raises(ValueError, match="milli- or microseconds"):
        values.instant(text, UTC)


@pytest.mark.parametrize("text", ["999999999999999", "99999999-00:00:00"])
def test_durations_that_slurm_cannot_write(text: str) -> None:
    with pytest.raises(ValueError, match="a duration is not within"):
        values.duration(text)


def test_lists_of_nodes_are_counted_before_they_are_built() -> None:
    for text in ("n" + "[0-999999]" * 100, "n[" + ",".join(["0-999999"] * 100) + "]"):
        with pytest.raises(ValueError, match="names more than 1,000,000 nodes"):
            next(values.node_names(text))
