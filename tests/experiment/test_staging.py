"""Burst buffers in the detailed world: staging times by hand, contention, kills, booking only, refusals."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from cli_commands import run_ok
from experiment_helpers import PLATFORMS, in_both_worlds, needs_simgrid, simulated

from bridge.base.errors import BridgeError
from bridge.experiment.job_profiles import builder, default_walltime, parse_kind
from bridge.experiment.prepare import prepare_experiment
from bridge.experiment.run import run_fast
from bridge.experiment.spec import Detailed, Experiment, parse, read_document
from bridge.experiment.staging import add_staging
from bridge.judge.run import Run
from bridge.platform.author import platform_xml
from bridge.platform.read import read_platform
from bridge.platform.spec import spec_from
from bridge.workload.batsim import read_batsim
from bridge.workload.formats import write
from bridge.workload.table import SWF_COLUMNS, Workload
from bridge.worlds.batsim import profiles as rules
from bridge.worlds.fast.scheduler_config import SchedulerConfig

EXPERIMENTS = Path(__file__).parents[2] / "experiments"
GB = 10**9
#: (submit, nodes, run, request, burst buffer in GB)
Row = tuple[int, int, int, int, int]
COLUMNS = ["submit", "req_procs", "run", "req_time", "burst_buffer"]


def machine(folder: Path, *, buffers: int = 1, bandwidth: str = "200MBps", capacity: str = "100GB") -> str:
    """Write four hosts on an ideal network, a file system of 100 MB/s, and burst buffers."""
    storage: list[dict[str, Any]] = [{"name": "pfs", "kind": "pfs", "bandwidth": "100MBps"}]
    if buffers:
        storage.append(
            {
                "name": "bb",
                "kind": "burst_buffer",
                "bandwidth": bandwidth,
                "count": buffers,
                "capacity": capacity,
            }
        )
    spec = {
        "name": "small",
        "nodes": {"count": 4, "speed": "1Gf"},
        "network": {"topology": "ideal"},
        "storage": storage,
    }
    path = folder / "small.xml"
    path.write_bytes(platform_xml(spec_from(spec, "the test")))
    return str(path)


def workload(rows: list[Row], capacity: dict[str, int] | None = None) -> Workload:
    jobs = pd.DataFrame({name: [-1] * len(rows) for name in SWF_COLUMNS})
    jobs["job_id"] = range(1, len(rows) + 1)
    jobs[COLUMNS] = pd.DataFrame(rows, columns=COLUMNS).to_numpy()
    jobs["procs"] = jobs["req_procs"]
    jobs["burst_buffer"] *= GB
    return Workload("hand", jobs, {"nodes": 4, **(capacity or {})})


def experiment(folder: Path, rows: list[Row] | Workload, platform: str, **detailed: Any) -> Experiment:
    records = rows if isinstance(rows, Workload) else workload(rows)
    write(records, folder / "log.csv")
    return Experiment(str(folder / "log.csv"), on="simgrid", detailed=Detailed(platform, **detailed))


def times(run: Run, column: str) -> list[float]:
    found: list[float] = run.jobs.set_index(run.jobs["job_id"].astype(int)).sort_index()[column].tolist()
    return found


@needs_simgrid
@pytest.mark.parametrize(("kernel", "buffers"), [("simgrid", 1), ("simgrid", 2), ("queue", 2)])
def test_a_job_alone_takes_its_run_time_and_its_transfers(tmp_path: Path, kernel: str, buffers: int) -> None:
    """40 GB asked. In: 10 GB through the file system's 100 MB/s, 100 s. Out: 20 GB, 200 s. The checkpoint:
    4 GB from two nodes into a buffer of 200 MB/s, 20 s, and 40 s to drain. Striped over two buffers, each
    stripe is half as long, and they follow one another. The second job asks for nothing and only works.
    """
    platform = machine(tmp_path, buffers=buffers)
    made = experiment(
        tmp_path,
        [(0, 2, 100, 100, 40), (600, 2, 100, 100, 0)],
        platform,
        fidelity="io_aware",
        stage_out=0.5,
        checkpoints=1,
        drain=0.1,
        options=("--kernel", kernel),
    )
    run = simulated(prepare_experiment(made), tmp_path)
    assert times(run, "execution_time") == pytest.approx([100 + 100 + 200 + 20 + 40, 100], rel=1e-6)
    assert times(run, "requested_time") == [-1, -1]  # no walltime
    assert times(run, "request") == [100, 100]


@needs_simgrid
@pytest.mark.parametrize("kernel", ["simgrid", "queue"])
def test_two_jobs_that_stage_at_once_share_the_file_system(tmp_path: Path, kernel: str) -> None:
    """10 GB each, 100 s alone, the second 40 s later. The first has moved 4 GB at 40 s, and the rest at half
    speed until 160 s; the second has 4 GB left then, and stages alone until 200 s. Both work for 60 s.
    """
    rows = [(0, 1, 60, 60, 10), (40, 1, 60, 60, 10)]
    options = {"fidelity": "io_aware", "stage_in": 1.0, "stage_out": 0.0, "options": ("--kernel", kernel)}
    run = simulated(prepare_experiment(experiment(tmp_path, rows, machine(tmp_path), **options)), tmp_path)
    assert times(run, "starting_time") == [0, 40]
    assert times(run, "finish_time") == pytest.approx([220, 260], rel=1e-6)


@needs_simgrid
def test_staging_in_and_staging_out_share_the_file_system_too(tmp_path: Path) -> None:
    """5 GB in and out, 50 s each alone, and 60 s of work. The second starts at 85 s and is half in at 110 s,
    when the first goes out. They share until 160 s, when the second is in; the first has 2.5 GB left and
    ends at 185 s. The second works until 220 s, and goes out alone.
    """
    rows = [(0, 1, 60, 60, 10), (85, 1, 60, 60, 10)]
    staging = {"fidelity": "io_aware", "stage_in": 0.5, "stage_out": 0.5}
    run = simulated(prepare_experiment(experiment(tmp_path, rows, machine(tmp_path), **staging)), tmp_path)
    assert times(run, "finish_time") == pytest.approx([185, 270], rel=1e-6)


@needs_simgrid
def test_stripes_follow_one_another(tmp_path: Path) -> None:
    """Two buffers of 50 MB/s each: 10 GB take 2 × 5 GB / 50 MB/s; the file system could do 100 MB/s."""
    platform = machine(tmp_path, buffers=2, bandwidth="50MBps")
    made = experiment(
        tmp_path, [(0, 1, 60, 60, 10)], platform, fidelity="io_aware", stage_in=1.0, stage_out=0.0
    )
    assert times(simulated(prepare_experiment(made), tmp_path), "finish_time") == pytest.approx(
        [260], rel=1e-6
    )


@needs_simgrid
def test_a_job_holds_its_request_while_it_stages(tmp_path: Path) -> None:
    """100 GB there. Job 1 asks for 80 GB: 20 GB in, 10 s of work, 20 GB out. Job 2 needs 40 GB and waits for
    job 1, with three nodes idle. Job 3 asks for 20 GB and is backfilled: 5 GB in from 2 s to 102 s at half
    speed, work until 112 s, out until 212 s at half speed. Job 1 has 8.8 GB left to bring in by then: it is
    in at 300 s, and out at 510 s.
    """
    rows = [(0, 1, 10, 500, 80), (1, 1, 10, 500, 40), (2, 1, 10, 400, 20)]
    run = simulated(
        prepare_experiment(experiment(tmp_path, rows, machine(tmp_path), fidelity="io_aware")), tmp_path
    )
    assert times(run, "starting_time") == pytest.approx([0, 510, 2], rel=1e-6)
    # job 2: 10 GB in and out, alone
    assert times(run, "finish_time") == pytest.approx([510, 720, 212], rel=1e-6)
    assert run.capacity["burst_buffer"] == 100 * GB
    held = 80 * 510 + 40 * 210 + 20 * 210
    assert run.metrics["utilisation.burst_buffer"] == pytest.approx(held / (100 * 720), rel=1e-6)


@needs_simgrid
def test_a_walltime_that_is_kept_counts_staging(tmp_path: Path) -> None:
    """40 GB: 100 s in, 100 s of work, 100 s out. A request of 250 s ends it half-way out."""
    made = experiment(
        tmp_path, [(0, 1, 100, 250, 40)], machine(tmp_path), fidelity="io_aware", walltime="keep"
    )
    run = simulated(prepare_experiment(made), tmp_path)
    assert run.jobs["final_state"].tolist() == ["COMPLETED_WALLTIME_REACHED"]
    assert run.jobs["finish_time"].tolist() == pytest.approx([250], rel=1e-6)
    assert run_fast(prepare_experiment(made)).jobs["finish_time"].tolist() == [100]


def three_resources(n: int = 150) -> Workload:
    """Jobs on nodes, burst buffer and licences, made up: now one is short, now another."""
    draw = np.random.default_rng(5)
    run = draw.integers(1, 200, n)
    rows = np.column_stack(
        [
            np.sort(draw.integers(0, 6000, n)),
            draw.integers(1, 5, n),
            run,
            run + draw.integers(0, 100, n),
            draw.integers(0, 81, n) * draw.integers(0, 2, n),
        ]
    )
    made = workload([tuple(row) for row in rows.tolist()], {"burst_buffer": 90 * GB, "licences": 3})
    made.jobs["licences"] = draw.integers(0, 3, n)
    return made


@needs_simgrid
@pytest.mark.parametrize(("order", "backfill"), [("fcfs", "easy"), ("sjf", "conservative"), ("wfp3", "none")])
def test_booked_only_every_job_starts_as_in_the_fast_world(tmp_path: Path, order: str, backfill: str) -> None:
    made = experiment(tmp_path, three_resources(), machine(tmp_path))
    made = replace(made, setup=SchedulerConfig(order, backfill))
    task = prepare_experiment(made)
    assert task.prepared.jobs.resources == ("nodes", "burst_buffer", "licences")
    assert task.prepared.jobs.capacity.tolist() == [4, 90 * GB, 3]
    fast, detailed = in_both_worlds(task, tmp_path)
    assert len(fast.jobs) == 150
    assert times(fast, "finish_time") == times(detailed, "finish_time")
    for resource in ("nodes", "burst_buffer", "licences"):
        key = f"utilisation.{resource}"
        assert detailed.metrics[key] == pytest.approx(fast.metrics[key], rel=1e-12)
    records = three_resources()
    few = replace(
        records, jobs=records.jobs.drop(columns=["burst_buffer", "licences"]), capacity={"nodes": 4}
    )
    plain = run_fast(
        prepare_experiment(
            replace(experiment(tmp_path, few, machine(tmp_path)), setup=SchedulerConfig(order, backfill))
        )
    )
    waits = [run.jobs["waiting_time"].mean() for run in (plain, fast)]
    assert waits[0] < waits[1]  # the further resources matter


def test_the_profiles_by_hand(tmp_path: Path) -> None:
    platform = read_platform(machine(tmp_path, buffers=2))
    jobs = workload([(0, 2, 90, 90, 40), (0, 1, 90, 90, 0)]).jobs
    staging = Detailed(fidelity="io_aware").staging
    assert staging is not None
    names, made = add_staging(builder(parse_kind("delay"), None), platform, **staging)(jobs)
    assert names == ["delay90_2_staged_40000000000", "delay90"]
    assert made[names[1]] == {"type": "delay", "delay": 90}
    whole = made[names[0]]
    assert (whole["type"], whole["repeat"]) == ("composed", 1)
    stripe = {"type": "data_staging", "nb_bytes": 5 * GB}
    assert [made[part] for part in whole["seq"]] == [
        {**stripe, "from": "pfs", "to": "bb0"},
        {**stripe, "from": "pfs", "to": "bb1"},
        {"type": "delay", "delay": 90},
        {**stripe, "from": "bb0", "to": "pfs"},
        {**stripe, "from": "bb1", "to": "pfs"},
    ]


def test_checkpoints_cut_the_work(tmp_path: Path) -> None:
    platform = read_platform(machine(tmp_path))
    jobs = workload([(0, 2, 90, 90, 40), (0, 1, 90, 90, 0)]).jobs
    names, made = add_staging(builder(parse_kind("compute"), platform), platform, checkpoints=2, drain=0.1)(
        jobs
    )
    work = {"type": "parallel_homogeneous", "cpu": 30e9, "com": 0}
    save = {"type": "parallel_homogeneous_pfs", "bytes_to_read": 0, "bytes_to_write": 2 * GB, "storage": "bb"}
    drain = {"type": "data_staging", "nb_bytes": 4 * GB, "from": "bb", "to": "pfs"}
    assert [made[part] for part in made[names[0]]["seq"]] == [work, save, drain, work, save, drain, work]
    assert made[names[1]] == {**work, "cpu": 90e9}
    assert len(made) == 5  # nothing that no job uses


@pytest.mark.parametrize("kind", ["delay", "compute", "network:0.2:3", "io"])
def test_what_is_written_is_a_workload_of_batsim(tmp_path: Path, kind: str) -> None:
    made = experiment(
        tmp_path,
        [(0, 2, 90, 100, 40), (5, 1, 80, 90, 0)],
        machine(tmp_path, buffers=2),
        fidelity="io_aware",
        checkpoints=2,
        profile=kind,
    )
    task = prepare_experiment(made)
    task.write_inputs(tmp_path)
    document = json.loads((tmp_path / "workload.json").read_text())
    known = document["profiles"]
    whole = [profile for profile in known.values() if profile["type"] == "composed"]
    alone = [profile for profile in known.values() if profile["type"] != "composed"]
    assert [rules.find_fault(profile) for profile in alone] == [""] * len(alone)
    assert all(profile["seq"] and profile["repeat"] >= 1 for profile in whole)
    assert all(part in known for profile in whole for part in profile["seq"])
    labels = rules.storage_labels(known[document["jobs"][0]["profile"]], known.get)
    assert set(labels) == {"pfs", "bb0", "bb1"}
    assert [job.get("walltime") for job in document["jobs"]] == [None, None]
    again = read_batsim(tmp_path / "workload.json")
    assert again.jobs["run"].tolist() == [90, 80] and again.jobs["req_time"].tolist() == [100, 90]
    assert again.jobs["burst_buffer"].tolist() == [40 * GB, 0]
    assert again.capacity == {"nodes": 4, "burst_buffer": 100 * GB}


def refused(folder: Path, rows: list[Row] | Workload, platform: str, **detailed: Any) -> BridgeError:
    with pytest.raises(BridgeError) as caught:
        prepare_experiment(experiment(folder, rows, platform, **detailed)).write_inputs(folder)
    assert caught.value.remedy
    return caught.value


ONE: list[Row] = [(0, 1, 10, 10, 10), (0, 1, 10, 10, 101)]


def test_capacity_and_requests_must_fit_the_platform(tmp_path: Path) -> None:
    small = machine(tmp_path)
    error = refused(tmp_path, ONE, small)
    assert error.where == f"{tmp_path / 'log.csv'}, job 2"
    assert (
        "asks for 101,000,000,000 bytes of burst buffer, the platform small has 100,000,000,000" in error.what
    )
    error = refused(tmp_path, workload(ONE, {"burst_buffer": 200 * GB}), small)
    assert error.where == str(tmp_path / "log.csv")
    assert "its machine has 200,000,000,000 bytes of burst buffer, the platform small 100" in error.what
    task = prepare_experiment(experiment(tmp_path, workload(ONE, {"burst_buffer": 50 * GB}), small))
    assert task.prepared.jobs.id.tolist() == [1]  # the workload's own, smaller capacity counts
    assert task.prepared.jobs.capacity.tolist() == [4, 50 * GB]


def test_a_platform_without_burst_buffer(tmp_path: Path) -> None:
    none = machine(tmp_path, buffers=0)
    for fidelity in ("alloc_only", "io_aware"):
        error = refused(tmp_path, ONE[:1], none, fidelity=fidelity)
        assert (error.what, error.where) == ("the platform has no burst-buffer host", none)
    # where nobody asks, none is needed
    assert len(prepare_experiment(experiment(tmp_path, [(0, 1, 10, 10, 0)], none)).prepared.jobs) == 1


def test_unequal_burst_buffers(tmp_path: Path) -> None:
    path = Path(machine(tmp_path, buffers=2))
    path.write_text(path.read_text().replace('value="50000000000"', 'value="60000000000"', 1))
    error = refused(tmp_path, ONE[:1], str(path))
    assert "not equally large (bb0 60,000,000,000, bb1 50,000,000,000 bytes)" in error.what


def test_a_platform_whose_only_storage_is_the_burst_buffer(tmp_path: Path) -> None:
    exact = str(PLATFORMS / "exact-4360.xml")
    error = refused(tmp_path, ONE[:1], exact, fidelity="io_aware")
    assert "no storage host but burst buffers" in error.what
    text = Path(machine(tmp_path, buffers=0)).read_text()
    text = text.replace('<prop id="storage_kind" value="pfs"/>', '<prop id="capacity" value="100GB"/>')
    (tmp_path / "small.xml").write_text(text)
    error = refused(tmp_path, ONE[:1], str(tmp_path / "small.xml"), fidelity="io_aware")
    assert "its only storage host 'pfs' is the burst buffer" in error.what


def test_a_workload_without_requests_cannot_stage(tmp_path: Path) -> None:
    records = workload(ONE[:1])
    bare = replace(records, jobs=records.jobs.drop(columns="burst_buffer"))
    error = refused(tmp_path, bare, machine(tmp_path), fidelity="io_aware")
    assert error.what.startswith("the workload has no column burst_buffer")


@pytest.mark.parametrize(
    ("detailed", "said"),
    [
        ({"fidelity": "exact"}, "fidelity cannot be"),
        ({"stage_in": 0.1}, "need jobs that stage"),
        ({"fidelity": "io_aware", "stage_in": 1.1}, "at least 0 and at most 1"),
        ({"fidelity": "io_aware", "drain": float("nan")}, "at least 0 and at most 1"),
        ({"fidelity": "io_aware", "checkpoints": -1}, "checkpoints cannot be -1"),
        ({"fidelity": "io_aware", "stage_in": 0.0, "stage_out": 0.0}, "jobs move nothing"),
        (
            {"fidelity": "io_aware", "stage_in": 0.0, "stage_out": 0.0, "checkpoints": 3, "drain": 0.0},
            "jobs move nothing",
        ),
    ],
)
def test_senseless_options_are_refused(detailed: dict[str, Any], said: str) -> None:
    with pytest.raises(BridgeError, match=said):
        Experiment("a", on="simgrid", detailed=Detailed("p", **detailed)).check()


def test_staging_lifts_walltimes() -> None:
    assert default_walltime(parse_kind("delay"), staged=True) == "none"
    assert Detailed("p", fidelity="io_aware").limit.name == "none"
    assert Detailed("p", fidelity="io_aware", walltime="factor:3").limit.name == "factor:3"
    assert Detailed("p").limit.name == "keep"


@needs_simgrid
def test_the_shipped_example(tmp_path: Path) -> None:
    """File server 500 MB/s, burst buffer 1 GB/s, links of 125 MB/s: nobody stages faster than alone."""
    path = EXPERIMENTS / "burst-buffer-16.toml"
    made = parse(read_document(path), str(path))
    run = simulated(prepare_experiment(made), tmp_path)
    asked = np.array(times(run, "burst_buffer"))
    extra = np.array(times(run, "execution_time")) - prepare_experiment(made).prepared.jobs.run / 1e6
    nodes = np.array(times(run, "requested_number_of_resources"))
    write_rate = np.minimum(nodes * 125e6, 1e9)
    alone = (0.25 + 0.25 + 0.1) * asked / 500e6 + 0.1 * asked / write_rate
    staging = asked > 0
    assert staging.sum() == 66 and len(asked) == 120
    assert extra[~staging] == pytest.approx(np.zeros(54), abs=2e-6)
    assert (extra[staging] > alone[staging]).all()  # latencies
    assert 5 <= (extra[staging] < alone[staging] * 1.0001).sum() < 66  # some are alone, some are not


@needs_simgrid
def test_on_the_command_line(tmp_path: Path) -> None:
    write(workload([(0, 1, 100, 100, 40)]), tmp_path / "log.csv")
    words = ["--workload", str(tmp_path / "log.csv"), "--platform", machine(tmp_path)]
    words += ["--fidelity", "io_aware", "--stage-in", "0.5", "--stage-out", "0", "--checkpoints", "1"]
    document = json.loads(run_ok("validate", "fcfs+easy", *words, "--drain", "0.5", "--json"))
    staging = {"stage_in": 0.5, "stage_out": 0.0, "checkpoints": 1, "drain": 0.5}
    assert document["inputs"]["staging"] == staging
    # 200 s in, 100 s of checkpoint from one node, 200 s of drain
    assert document["policies"][0]["detailed"]["makespan"] == pytest.approx(600, rel=1e-6)
    assert document["policies"][0]["fast"]["makespan"] == 100
    said = run_ok("run", "--on", "simgrid", *words, "--out", tmp_path / "run")
    assert "--fidelity io_aware --stage-in 0.5 --stage-out 0.0 --checkpoints 1" in said


def test_an_experiment_that_stages_can_be_run_without() -> None:
    path = EXPERIMENTS / "burst-buffer-16.toml"
    document = read_document(path)
    assert parse(document, "e.toml").detailed.staging is not None
    made = parse(document, "e.toml", {"fidelity": "alloc_only"})
    assert made.detailed.staging is None
    run_ok("run", path, "--fidelity", "alloc_only", "--on", "fast")
    with pytest.raises(BridgeError, match="need jobs that stage"):
        _ = parse(document, "e.toml", {"fidelity": "alloc_only", "stage_in": 0.5}).detailed.staging
