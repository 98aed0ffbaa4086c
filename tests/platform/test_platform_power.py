"""Power properties: wattages, sleep states, power per job."""

import pytest

from bridge.platform.capacities import computing_pstates, job_watts, sleep_states, wattages
from bridge.platform.model import Host
from bridge.wire.wattages import SleepState, Watts, parse_sleep_states, parse_wattages


def host(speeds: tuple[float, ...], **properties: str) -> Host:
    return Host("n", speeds, 1, 0, properties, "z", 1)


def test_two_and_three_values() -> None:
    assert parse_wattages("60:70:120, 50:80") == (Watts(60, 70, 120), Watts(50, 50, 80))


@pytest.mark.parametrize("text", ["", "60", "1:2:3:4", "a:b", "1:-2", "1:2,", "1:2:inf"])
def test_malformed_wattages(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_wattages(text)


def test_number_of_wattages_must_be_that_of_pstates() -> None:
    assert wattages(host((1e9,))) is None
    with pytest.raises(ValueError, match="2 wattages for 1 pstates"):
        wattages(host((1e9,), wattage_per_state="1:2,3:4"))


def test_sleep_states() -> None:
    assert parse_sleep_states("1:2:3, 4:5:6", 7) == (SleepState(1, 2, 3), SleepState(4, 5, 6))
    assert computing_pstates(host((1e9, 1.0, 1.0, 1.0), sleep_pstates="1:2:3")) == [0]
    assert sleep_states(host((1e9,))) == ()


@pytest.mark.parametrize("text", ["1:2", "1:2:9", "1:1:2", "1:2:3,1:4:5", "a:b:c", ""])
def test_malformed_sleep_states(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        parse_sleep_states(text, 7)


def test_power_per_job_needs_equal_speeds_and_flat_wattages() -> None:
    flat = "60:60:60,65:65:65,70:70:70"
    assert job_watts(host((1e9, 1e9, 1e9), wattage_per_state=flat)) == (60, 65, 70)
    assert job_watts(host((1e9, 1e9, 2e9), wattage_per_state=flat)) is None
    assert job_watts(host((1e9, 1e9), wattage_per_state="60:60:60,65:65:66")) is None
    assert job_watts(host((1e9,), wattage_per_state="60:60:60")) is None
    assert job_watts(host((1e9,))) is None
