"""`bridge workload convert --profile … --platform … --walltime …`."""

import json
from pathlib import Path
from typing import Any

import pytest
from cli_commands import run_bridge, run_refused
from experiment_helpers import PLATFORMS, write_log


@pytest.fixture
def convert(tmp_path: Path) -> Any:
    log = write_log(tmp_path / "log.swf", nodes=32)

    def run(*options: str) -> Any:
        out = tmp_path / "out.json"
        words = ["--force", "--platform", PLATFORMS / "teaching-16.xml", *options]
        told = run_bridge("workload", "convert", log, out, *words)
        return json.loads(out.read_text()) if told.status == 0 else None

    return run


def test_the_machine_is_the_platform(convert: Any) -> None:
    made = convert("--profile", "compute")
    assert made["nb_res"] == 16
    assert [job["id"] for job in made["jobs"]] == [f"{n:02}" for n in range(1, 11)]
    first = made["jobs"][0]
    assert first["walltime"] == 120 and first["user"] == 1 and first["run"] == 100
    assert made["profiles"][first["profile"]]["cpu"] == pytest.approx(100 * 1e10)


def test_jobs_that_contend_have_no_walltime_unless_told(convert: Any) -> None:
    made = convert("--profile", "io")
    assert "walltime" not in made["jobs"][0] and made["jobs"][0]["req_time"] == 120
    made = convert("--profile", "network:0.2", "--walltime", "factor:1.5")
    assert made["jobs"][0]["walltime"] == 180
    made = convert("--profile", "network:0.2", "--walltime", "keep")
    assert made["jobs"][0]["walltime"] == 120 and "req_time" not in made["jobs"][0]
    assert convert()["profiles"]["delay100"] == {"type": "delay", "delay": 100}


def test_what_makes_no_sense_is_refused(convert: Any, tmp_path: Path) -> None:
    assert convert("--profile", "mpi") is None
    assert convert("--to", "swf", "--profile", "io") is None
    words = ("convert", tmp_path / "log.swf", tmp_path / "x.json", "--profile", "io")
    assert "needs the platform" in run_refused("workload", *words)
    assert not (tmp_path / "x.json").exists()
