"""Units: exact values, and refusal of what SimGrid refuses."""

import pytest

from bridge.platform import units
from bridge.platform.schema import ATTRIBUTES, REMOVED
from bridge.platform.values import AttributeReader
from bridge.wire.platform_xml import TAGS, Element


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1Gf", 1e9),
        ("2.5Tf", 2.5e12),
        ("100.0Mf", 1e8),
        ("3gigaflops", 3e9),
        ("0.5f", 0.5),
        ("7", 7.0),
        ("1e-9Mf", 1e-3),
    ],
)
def test_speeds(text: str, value: float) -> None:
    assert units.parse_quantity(text, units.SPEED) == pytest.approx(value, rel=1e-15)


def test_speeds_of_all_pstates() -> None:
    element = Element("host", {"id": "n", "speed": "2Gf, 1Gf,0.5f"}, 1, 0)
    assert AttributeReader("x.xml").values(element)["speed"] == (2e9, 1e9, 0.5)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("125MBps", 125e6),
        ("1Gbps", 125e6),
        ("1KiBps", 1024.0),
        ("8Kibps", 1024.0),
        ("1e18Bps", 1e18),
        ("5", 5.0),
    ],
)
def test_bandwidths(text: str, value: float) -> None:
    assert units.parse_quantity(text, units.BANDWIDTH) == value


@pytest.mark.parametrize(
    ("text", "value"), [("50us", 50e-6), ("1m", 60.0), ("1ms", 1e-3), ("0", 0.0), ("2w", 1209600.0)]
)
def test_times(text: str, value: float) -> None:
    assert units.parse_quantity(text, units.TIME) == pytest.approx(value, rel=1e-15)


@pytest.mark.parametrize(
    ("text", "value"),
    [("1.26PB", 1_260_000_000_000_000), ("64GiB", 68_719_476_736), ("1000", 1000), (" 1kB ", 1000)],
)
def test_sizes_are_whole_bytes(text: str, value: int) -> None:
    assert units.parse_size(text) == value


@pytest.mark.parametrize("text", ["", "fast", "1G", "1KBps", "inf", "nan", "0x10", "1 Gf", "1e400f", "1Gf "])
def test_malformed_speeds(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        units.parse_quantity(text, units.SPEED)


def test_capital_kilo_gets_a_hint() -> None:
    with pytest.raises(ValueError, match="did you mean 'kBps'"):
        units.parse_quantity("1KBps", units.BANDWIDTH)


def test_numbers_for_people() -> None:
    assert units.human(1.26e15, "B") == "1.26 PB"
    assert units.human(12.5e9, "B/s") == "12.5 GB/s"
    assert units.human(6.4e8, "flop/s") == "640 Mflop/s"
    assert units.human_time(2e-6) == "2 us"
    assert units.human_time(0) == "0 s"


def test_the_scanner_and_the_schema_know_the_same_tags() -> None:
    assert {*ATTRIBUTES, *REMOVED} == TAGS
