"""Closed-form times: by hand, and against times recorded from the real Batsim."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from platform_helpers import CORPUS

from bridge.platform import read_platform
from bridge.platform.routes import EMPTY_TASK, Timing


def timing() -> Timing:
    """Two hosts of 2 Gf, n1 with 4 cores, links of 125 MB/s; a file server with 1 GB/s; 50 us each."""
    return Timing(read_platform(CORPUS / "good_full.xml"))


def test_computing() -> None:
    assert timing().homogeneous(["n0", "n1"], 4e9, 0) == 2.0


def test_ranks_share_the_cores_of_a_host() -> None:
    assert timing().task(["n1"] * 4, [2e9] * 4, {}) == 1.0
    assert timing().task(["n1"] * 6, [2e9] * 6, {}) == 1.5
    assert timing().task(["n0"] * 3, [2e9] * 3, {}) == 3.0


def test_latency_then_bandwidth_both_ways_on_one_link() -> None:
    assert timing().homogeneous(["n0", "n1"], 0, 125e6) == pytest.approx(100e-6 + 2.0, rel=1e-12)
    one_way = timing().task(["n0", "n1"], [0, 0], {(0, 1): 125e6})
    assert one_way == pytest.approx(100e-6 + 1.0, rel=1e-12)


def test_computing_hides_communication() -> None:
    assert timing().homogeneous(["n0", "n1"], 2e9 * 5, 125e6) == pytest.approx(100e-6 + 5.0, rel=1e-12)


def test_storage_and_staging() -> None:
    assert timing().storage(["n0", "n1"], "pfs", 1e9, 0) == pytest.approx(100e-6 + 8.0, rel=1e-12)
    assert timing().storage(["n0", "n1"], "pfs", 5e6, 5e6) == pytest.approx(100e-6 + 0.08, rel=1e-12)
    assert timing().staging("pfs", "n0", 125e6) == pytest.approx(100e-6 + 1.0, rel=1e-12)


def test_nothing_to_do() -> None:
    assert timing().homogeneous(["n0", "n1"], 0, 0) == EMPTY_TASK


def test_storage_cannot_compute() -> None:
    with pytest.raises(ValueError, match="speed 0"):
        timing().homogeneous(["pfs"], 1, 0)


@given(st.floats(1e3, 1e12), st.floats(1e3, 1e12), st.floats(1.0, 8.0))
def test_scaling_the_work_scales_the_time(cpu: float, com: float, factor: float) -> None:
    hosts = ["n0", "n1"]
    once = timing().homogeneous(hosts, cpu, com) - 100e-6
    more = timing().homogeneous(hosts, cpu * factor, com * factor) - 100e-6
    assert more == pytest.approx(once * factor, rel=1e-6)


#: Jobs that ran alone: case, job, hosts of its ranks.
RECORDED = [
    ("homogeneous_contention", "p", ["n0", "n1", "n2", "n3"]),
    ("homogeneous_contention", "q", ["n4", "n5", "n6", "n7"]),
    ("homogeneous_contention", "r", [f"n{i}" for i in range(8)]),
    ("homogeneous_contention", "t", ["n0"]),
    ("homogeneous_contention", "u", ["n0", "n1"]),
    ("homogeneous_fatpipe_backbone", "x0", ["n0", "n4"]),
    ("homogeneous_fatpipe_backbone", "k0", ["n3", "n7"]),
    ("ptask_explicit", "a1", ["n0", "n1", "n2", "n3"]),
    ("ptask_explicit", "c1", ["n0"]),
    ("ptask_explicit", "diag", ["n0", "n1"]),
    ("multicore_sharing_mapping", "m4", ["n2"] * 4),
    ("multicore_sharing_mapping", "m6", ["n2"] * 6),
]


@pytest.mark.parametrize(("case", "job", "hosts"), RECORDED, ids=lambda value: str(value)[:20])
def test_recorded_from_batsim(golden: Path, case: str, job: str, hosts: list[str]) -> None:
    folder = golden / "batsim" / case
    jobs = json.loads((folder / "workload.json").read_text())
    name = next(row["profile"] for row in jobs["jobs"] if row["id"] == job)
    profile = jobs["profiles"][name]
    clock = Timing(read_platform(folder / "platform.xml"))
    n = len(hosts)
    if profile["type"] == "parallel":
        pairs = {(i, j): profile["com"][i * n + j] for i in range(n) for j in range(n)}
        seconds = clock.task(hosts, profile["cpu"], pairs)
    else:
        seconds = clock.homogeneous(hosts, profile["cpu"], profile["com"])
    row = next(line for line in (folder / "_jobs.csv").read_text().splitlines() if line.startswith(f"{job},"))
    assert seconds == pytest.approx(float(row.split(",")[9]), abs=1e-6)


def test_recorded_staging_from_batsim(golden: Path) -> None:
    """Job `whole`: stage in, compute, write to the burst buffer, stage out; 11.2006 s."""
    clock = Timing(read_platform(golden / "batsim" / "storage_bb_pfs" / "platform.xml"))
    hosts = ["n0", "n1", "n2", "n3"]
    whole = clock.staging("pfs", "bb", 1e9) + clock.homogeneous(hosts, 2e9, 0)
    whole += clock.storage(hosts, "bb", 0, 2e8) + clock.staging("bb", "pfs", 5e8)
    assert whole == pytest.approx(11.2006, abs=1e-6)
    assert clock.storage(["n0", "n1"], "pfs", 1e8, 0) == pytest.approx(0.8002, abs=1e-6)
