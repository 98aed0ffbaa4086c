"""The shipped platforms: made from their descriptions, small, and of the promised capacities."""

from pathlib import Path

import pytest
from platform_helpers import SHIPPED

from bridge.platform import read_platform
from bridge.platform.author import platform_xml
from bridge.platform.capacities import capacities, power_summary
from bridge.platform.check import check_platform
from bridge.platform.spec import read_spec

SPECS = sorted(SHIPPED.glob("*.toml"))


def test_these_are_shipped() -> None:
    names = {path.stem for path in SPECS}
    expected = {"teaching-16", "sp2-128", "cluster-512", "theta-4360", "exact-128", "exact-512", "exact-4360"}
    assert names == expected
    assert {path.stem for path in SHIPPED.glob("*.xml")} == names


@pytest.mark.parametrize("spec", SPECS, ids=lambda p: p.stem)
def test_made_again_they_are_the_same_bytes(spec: Path) -> None:
    made = platform_xml(read_spec(spec), source=spec.name)
    assert made == spec.with_suffix(".xml").read_bytes()
    assert len(made) < 1024 * 1024


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("teaching-16", {"nodes": 16, "burst_buffer": 10**12, "power": 16 * (120 - 60)}),
        ("sp2-128", {"nodes": 128}),
        ("cluster-512", {"nodes": 512, "burst_buffer": 400 * 10**12, "power": 80_000 - 512 * 60}),
        # MRSch's accounting: 500 kW less 4,360 idle nodes of 60 W.
        ("theta-4360", {"nodes": 4360, "burst_buffer": 1_260 * 10**12, "power": 238_400}),
        ("exact-4360", {"nodes": 4360, "burst_buffer": 1_260 * 10**12, "power": 238_400}),
        ("exact-128", {"nodes": 128}),
        ("exact-512", {"nodes": 512}),
    ],
)
def test_capacities(name: str, expected: dict[str, int]) -> None:
    assert capacities(read_platform(SHIPPED / f"{name}.xml")) == expected


def test_power_per_job_of_theta() -> None:
    platform = read_platform(SHIPPED / "theta-4360.xml")
    power = power_summary(platform)
    assert power is not None
    assert power.job_watts == tuple(range(60, 216, 5))
    assert (power.idle, power.full, power.budget) == (4360 * 60, 4360 * 215, 500_000)
    assert capacities(platform, accounting="jobs")["power"] == 500_000


def test_exact_platforms_leave_nothing_to_say() -> None:
    for name in ("exact-128", "exact-512", "exact-4360", "cluster-512", "sp2-128", "teaching-16"):
        assert check_platform(SHIPPED / f"{name}.xml") == []


def test_hosts_are_numbered_by_their_names() -> None:
    for path in SHIPPED.glob("*.xml"):
        numbers = [int(host.name.lstrip("n")) for host in read_platform(path).compute]
        assert numbers == list(range(numbers[0], numbers[0] + len(numbers)))
