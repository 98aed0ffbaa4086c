"""pybatsim both ways: our policies under it, and its schedulers against the embedded platform model."""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from detailed import PATIENCE_S, model, needs_simgrid, run_on_model
from fake_batsim import MICRO, DelayJob
from peers import free_port

import bridge
from bridge.base.errors import BridgeError
from bridge.scheduler.protocol import Policy
from bridge.worlds.batsim.dispatcher import DispatcherConfig
from bridge.worlds.batsim.process import DecisionProcess

needs_pybatsim = pytest.mark.skipif(
    importlib.util.find_spec("batsim") is None, reason="pybatsim is not installed (pybatsim>=3.1,<3.2.1)"
)
pytestmark = [needs_pybatsim, needs_simgrid]

ADAPTER = Path(bridge.__file__).parent / "worlds" / "batsim" / "pybatsim_adapter.py"
HOSTS = 16


def workload(n: int) -> list[DelayJob]:
    """Return jobs that keep the machine busy and end before their walltimes."""
    return [
        DelayJob(
            f"{k:03d}",
            (7 * k % 5 + 4 * k) * MICRO,
            (1 + 13 * k % 37) * MICRO,
            1 + 5 * k % 12,
            (2 + 13 * k % 37 + 11 * k % 17) * MICRO,
        )
        for k in range(1, n + 1)
    ]


def run(
    tmp_path: Path, jobs: list[DelayJob], scheduler: str, *options: str, model_options: tuple[str, ...] = ()
) -> str:
    """Let a pybatsim scheduler decide for the embedded model; returns what pybatsim printed."""
    port = free_port()
    here = [sys.executable, "-m", "batsim.cmds.launcher", scheduler, "-s", f"tcp://127.0.0.1:{port}"]
    output = tmp_path / "said.txt"  # a pipe would fill up
    with output.open("w") as said:
        decider = subprocess.Popen(
            [*here, "-t", "0", "-v", "warning", *options],
            stdout=said,
            stderr=said,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(Path(bridge.__file__).parent.parent)},
        )
    platform = model(tmp_path, jobs, HOSTS, f"tcp://127.0.0.1:{port}", *model_options)
    try:
        _, errors = platform.communicate(timeout=PATIENCE_S)
        decider.wait(timeout=PATIENCE_S)
    finally:
        for child in (platform, decider):
            if child.poll() is None:
                child.kill()
                child.communicate()
    assert platform.returncode == 0, errors + output.read_text()
    assert decider.returncode == 0, output.read_text()
    return output.read_text()


def rows(tmp_path: Path) -> dict[str, dict[str, str]]:
    header, *lines = (tmp_path / "out_jobs.csv").read_text().splitlines()
    names = header.split(",")
    return {row["job_id"]: row for row in (dict(zip(names, line.split(","), strict=True)) for line in lines)}


@pytest.mark.parametrize(
    ("order", "backfill"), [("sjf", "easy"), pytest.param("fcfs", "conservative", marks=pytest.mark.slow)]
)
def test_our_policy_as_a_pybatsim_scheduler(tmp_path: Path, order: str, backfill: str) -> None:
    jobs = workload(60)
    jobs.append(DelayJob("061", 3 * MICRO, MICRO, HOSTS + 1, 9 * MICRO))
    options = {"order": order, "backfill": backfill, "strict": True, "out": "decisions.json"}
    said = run(tmp_path, jobs, str(ADAPTER), "-o", json.dumps(options))
    assert "Job submitted: 61 , scheduled: 60 , rejected: 1" in said

    own = tmp_path / "own"
    own.mkdir()
    result = run_on_model(
        own, jobs, HOSTS, DecisionProcess(DispatcherConfig(Policy(order, backfill)), strict=True)
    )
    decided = json.loads((tmp_path / "decisions.json").read_text())
    assert decided == json.loads(json.dumps(result.as_dict()))
    assert decided["outcome"] == "ended" and decided["counts"]["rejected"] == 1
    assert rows(tmp_path) == rows(own)


def test_availability_and_dynamic_jobs_reach_our_policy(tmp_path: Path) -> None:
    (tmp_path / "events.txt").write_text(
        '{"type": "machine_unavailable", "resources": "0-3", "timestamp": 20}\n'
        '{"type": "machine_available", "resources": "0-3", "timestamp": 90}\n'
    )
    more = ("--events", str(tmp_path / "events.txt"), "--enable-dynamic-jobs", "--acknowledge-dynamic-jobs")
    run(tmp_path, workload(40), str(ADAPTER), model_options=more)
    table = rows(tmp_path)
    assert {row["final_state"] for row in table.values()} == {"COMPLETED_SUCCESSFULLY"} and len(table) == 40
    for row in table.values():
        first = int(row["allocated_resources"].replace("-", " ").split()[0])
        assert first > 3 or not 20 <= float(row["starting_time"]) < 90, row


def test_a_file_of_ones_own_names_the_class(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    file = tmp_path / "mine" / "myPolicy.py"
    file.write_text("from bridge.worlds.batsim.pybatsim_adapter import PolicyScheduler as MyPolicy\n")
    run(tmp_path, workload(10), str(file), "-o", '{"placement": "contiguous"}')
    assert len(rows(tmp_path)) == 10


def test_the_adapter_prints_its_path() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "bridge.worlds.batsim.pybatsim_adapter"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert Path(done.stdout.strip()) == ADAPTER.resolve()


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"orders": "sjf"}, "unknown option"),
        ({"order": "sfj"}, "unknown order"),
        ({"placement": "best-fit"}, "near"),
    ],
)
def test_wrong_options_are_named(options: dict[str, str], what: str) -> None:
    from bridge.worlds.batsim.pybatsim_adapter import PolicyScheduler

    with pytest.raises(BridgeError, match=what):
        PolicyScheduler(options)


@pytest.mark.parametrize("scheduler", ["fillerSched", "easyBackfill"])
def test_pybatsims_schedulers_run_against_the_embedded_model(tmp_path: Path, scheduler: str) -> None:
    jobs = workload(60)
    said = run(tmp_path, jobs, scheduler)
    assert "Job submitted: 60 , scheduled: 60 , rejected: 0" in said and "complete: 60" in said
    table = rows(tmp_path)
    assert len(table) == 60
    for job in jobs:
        row = table[job.name]
        assert row["final_state"] == "COMPLETED_SUCCESSFULLY"
        assert float(row["execution_time"]) == pytest.approx(job.run / MICRO)
        assert float(row["starting_time"]) >= job.submit / MICRO
