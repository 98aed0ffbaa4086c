"""`bridge workload convert --profile … --platform … --walltime …`."""

import json
from pathlib import Path
from typing import Any

import pytest
from experiment_helpers import write_log

from bridge.cli.main import main


@pytest.fixture
def convert(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    log = write_log(tmp_path / "log.swf", nodes=32)

    def run(*options: str) -> Any:
        out = tmp_path / "out.json"
        words = [
            "workload",
            "convert",
            str(log),
            str(out),
            "--force",
            "--platform",
            "teaching-16.xml",
            *options,
        ]
        words[words.index("teaching-16.xml")] = str(
            Path(__file__).parents[2] / "platforms" / "teaching-16.xml"
        )
        status = main(words)
        capsys.readouterr()
        return json.loads(out.read_text()) if status == 0 else None

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


def test_what_makes_no_sense_is_refused(
    convert: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert convert("--profile", "mpi") is None
    assert convert("--to", "swf", "--profile", "io") is None
    log = str(tmp_path / "log.swf")
    assert main(["workload", "convert", log, str(tmp_path / "x.json"), "--profile", "io"]) == 1
    assert "needs the platform" in capsys.readouterr().err
    assert not (tmp_path / "x.json").exists()
