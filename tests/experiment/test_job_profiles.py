"""Profiles: closed-form sizes, refusals, and each job alone on the embedded model takes its logged time."""

import csv
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from bridge.base.errors import BridgeError
from bridge.experiment.job_profiles import builder, cost, default_walltime, file_system, parse_kind
from bridge.platform.read import read_platform
from bridge.workload.batsim import read_batsim, write_batsim
from bridge.workload.rules import walltime
from bridge.workload.table import SWF_COLUMNS, Workload

sys.path.append(str(Path(__file__).parent.parent / "worlds" / "simgrid"))
from model_process import converse, needs_simgrid  # type: ignore[import-not-found]

PLATFORMS = Path(__file__).parents[2] / "platforms"
#: (nodes, run time in s)
ALONE = [(1, 40), (1, 0.25), (2, 100), (3, 7), (8, 12345), (16, 86400), (5, 1.5), (16, 3)]


def workload(jobs: list[tuple[int, float]], *, request: float = 90_000, nodes: int = 16) -> Workload:
    rows = pd.DataFrame({name: [-1] * len(jobs) for name in SWF_COLUMNS})
    rows["job_id"] = range(1, len(jobs) + 1)
    rows["submit"] = 0
    rows["run"] = [run for _, run in jobs]
    rows["procs"] = rows["req_procs"] = [size for size, _ in jobs]
    rows["req_time"] = request
    rows["power"] = 200
    return Workload("hand", rows, {"nodes": nodes})


@pytest.mark.parametrize(
    ("text", "name", "share", "rounds", "limit"),
    [
        ("delay", "delay", 0.0, 1, "keep"),
        ("compute", "compute", 0.0, 1, "keep"),
        ("network:0.2", "network", 0.2, 1, "none"),
        ("network:0.5:10", "network", 0.5, 10, "none"),
        ("io", "io", 0.2, 1, "none"),
        ("io:1", "io", 1.0, 1, "none"),
    ],
)
def test_kinds_are_read_and_written_back(text: str, name: str, share: float, rounds: int, limit: str) -> None:
    kind = parse_kind(text)
    assert (kind.name, kind.share, kind.rounds) == (name, share, rounds)
    assert parse_kind(str(kind)) == kind
    assert default_walltime(kind) == limit


@pytest.mark.parametrize(
    "text",
    ["", "network", "network:0", "network:1.1", "network:x", "network:0.2:0", "io:0.2:3", "delay:1", "mpi"],
)
def test_unknown_kinds_are_refused(text: str) -> None:
    with pytest.raises(BridgeError, match="unknown profile kind"):
        parse_kind(text)


def test_sizes_on_the_teaching_cluster() -> None:
    """10 Gflop/s hosts; 125 MB/s host links, 1 GB/s backbone; file server 500 MB/s, 50 us links."""
    platform = read_platform(PLATFORMS / "teaching-16.xml")
    jobs = workload([(2, 100)]).jobs
    names, made = builder(parse_kind("compute"), platform)(jobs)
    assert made[names[0]] == {"type": "parallel_homogeneous", "cpu": 100 * 1e10, "com": 0}
    names, made = builder(parse_kind("network:0.2"), platform)(jobs)
    whole = made[names[0]]
    assert whole["type"] == "composed" and whole["repeat"] == 1
    work, talk = (made[part] for part in whole["seq"])
    assert work["cpu"] == pytest.approx(80 * 1e10)
    # 2 nodes exchange over their own links: 125 MB/s each way, after 2 × 50 us of latency
    assert talk["com"] == pytest.approx((20 - 100e-6) * 125e6, rel=1e-9)
    names, made = builder(parse_kind("io:0.2"), platform)(jobs)
    read, work, write = (made[part] for part in made[names[0]]["seq"])
    # 2 nodes at 125 MB/s each; the file server could do 500 MB/s
    assert read["bytes_to_read"] == write["bytes_to_write"] == pytest.approx((10 - 100e-6) * 125e6, rel=1e-9)
    assert read["storage"] == "pfs"


def test_a_file_system_must_be_clear() -> None:
    with pytest.raises(BridgeError, match="no storage host"):
        file_system(read_platform(PLATFORMS / "exact-128.xml"))
    assert file_system(read_platform(PLATFORMS / "cluster-512.xml")).name == "pfs"


def test_the_network_profile_knows_its_limits() -> None:
    large = read_platform(PLATFORMS / "theta-4360.xml")
    with pytest.raises(BridgeError, match=r"4,360 hosts.*up to 512.*20 s"):
        builder(parse_kind("network:0.2"), large)
    make = builder(parse_kind("network:0.2"), read_platform(PLATFORMS / "cluster-512.xml"))
    with pytest.raises(BridgeError, match=r"has 256 nodes.*up to 128.*about 3 s"):
        make(workload([(256, 10)], nodes=512).jobs)
    assert cost(128) == pytest.approx(0.6)


def test_profiles_but_delay_need_a_platform_that_holds_the_jobs() -> None:
    with pytest.raises(BridgeError, match="needs the platform"):
        builder(parse_kind("compute"), None)
    make = builder(parse_kind("compute"), read_platform(PLATFORMS / "teaching-16.xml"))
    with pytest.raises(BridgeError, match="larger than the platform's 16 hosts"):
        make(workload([(17, 10)]).jobs)


@pytest.mark.parametrize(
    ("policy", "limit", "known"), [("keep", 100, None), ("none", None, 100), ("factor:1.5", 150.0, 100)]
)
def test_walltimes_and_requests_travel(
    tmp_path: Path, policy: str, limit: float | None, known: int | None
) -> None:
    import json

    records = workload([(2, 60)], request=100)
    write_batsim(records, tmp_path / "w.json", walltime=walltime(policy))
    job = json.loads((tmp_path / "w.json").read_text())["jobs"][0]
    assert job.get("walltime") == limit
    assert job.get("req_time") == known
    assert job["power"] == 200
    assert read_batsim(tmp_path / "w.json").jobs["req_time"].tolist() == [100]


@pytest.mark.parametrize("text", ["", "factor", "factor:0", "factor:-1", "factor:inf", "double"])
def test_unknown_walltimes_are_refused(text: str) -> None:
    with pytest.raises(BridgeError, match="unknown walltime"):
        walltime(text)


class OneByOne:
    """Runs each job alone, on the lowest hosts of the idle machine."""

    def __init__(self) -> None:
        self.waiting: list[tuple[str, int]] = []
        self.running = False
        self.storage: dict[str, int] = {}

    def __call__(self, message: dict[str, Any]) -> list[dict[str, Any]]:
        for event in message["events"]:
            data = event["data"]
            if event["type"] == "SIMULATION_BEGINS":
                self.storage = {host["name"]: host["id"] for host in data["storage_resources"]}
            elif event["type"] == "JOB_SUBMITTED":
                self.waiting.append((data["job_id"], data["job"]["res"]))
            elif event["type"] == "JOB_COMPLETED":
                self.running = False
        if self.running or not self.waiting:
            return []
        job, size = self.waiting.pop(0)
        self.running = True
        alloc = f"0-{size - 1}" if size > 1 else "0"
        return [
            {"type": "EXECUTE_JOB", "data": {"job_id": job, "alloc": alloc, "storage_mapping": self.storage}}
        ]


@needs_simgrid
@pytest.mark.parametrize(
    "platform",
    [
        "teaching-16",
        pytest.param("sp2-128", marks=pytest.mark.slow),
        pytest.param("cluster-512", marks=pytest.mark.slow),
    ],
)
@pytest.mark.parametrize("kind", ["delay", "compute", "network:0.2", "network:0.3:3", "io", "io:1"])
def test_a_job_alone_takes_its_logged_run_time(tmp_path: Path, platform: str, kind: str) -> None:
    machine = read_platform(PLATFORMS / f"{platform}.xml")
    sizes = [*ALONE, (64, 500)] if platform != "teaching-16" else ALONE
    write_batsim(
        workload(sizes, nodes=len(machine.compute)),
        tmp_path / "w.json",
        builder(parse_kind(kind), machine),
        walltime("none"),
    )
    _, status, errors = converse(
        tmp_path, OneByOne(), "-p", str(PLATFORMS / f"{platform}.xml"), "-w", "w.json", "-e", "out"
    )
    assert status == 0, errors
    with (tmp_path / "out_jobs.csv").open() as file:
        took = {int(row["job_id"]): float(row["execution_time"]) for row in csv.DictReader(file)}
    for number, (_, run) in enumerate(sizes, 1):
        # the file has six decimals
        assert took[number] == pytest.approx(run, rel=1e-6, abs=2e-6)
