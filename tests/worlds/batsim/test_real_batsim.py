"""Against the real Batsim, 4 or 5, that the variable BATSIM names: what the embedded model cannot vouch for.

BATSIM=/usr/local/bin/batsim python -m pytest -m batsim
"""

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from real_batsim import WORLDS, on, require_batsim, version

from bridge.cli.main import main

EXPERIMENTS = Path(__file__).parents[3] / "experiments"


@pytest.fixture(autouse=True)
def _real() -> None:
    require_batsim()


pytestmark = pytest.mark.batsim


def validated(out: Path, *words: str) -> dict[str, Any]:
    """Run `bridge validate` on Batsim; returns what it found, whatever its exit status."""
    main(["validate", *words, *on(), "--out", str(out)])
    name = "validation.json" if (out / "validation.json").exists() else "agreement.json"
    found: dict[str, Any] = json.loads((out / name).read_text())
    return found


def outputs(out: Path) -> list[dict[str, str]]:
    """Return the rows of the one jobs table that Batsim has written."""
    (table,) = out.glob("**/out_jobs.csv")
    with table.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("policy", ["fcfs", "fcfs+easy", "sjf+conservative", "wfp3+easy"])
def test_every_job_starts_as_in_the_fast_world(tmp_path: Path, policy: str) -> None:
    words = ["--workload", "bundled-128", "--first", "500", "--platform", "exact-128"]
    assert main(["validate", policy, *words, *on()]) == 0
    validated(tmp_path / "out", policy, *words)
    for_run = next((tmp_path / "out").glob(f"**/{WORLDS[version()]}/jobs.csv"))
    fast = next((tmp_path / "out").glob("**/fast/jobs.csv"))
    starts = []
    for path in (for_run, fast):
        with path.open(newline="") as file:
            starts.append({row["job_id"]: float(row["starting_time"]) for row in csv.DictReader(file)})
    assert len(starts[0]) == 500 and starts[0] == starts[1]


def test_killed_jobs_of_composed_profiles_run_again(tmp_path: Path) -> None:
    """A composed profile that was registered would be the end of Batsim, by a segmentation fault."""
    words = ["--scheduler", "pool", "--platform", "sp2-128", "--profile", "io:0.2", "--steps", "60"]
    validated(tmp_path / "out", "saf+rule", *words, "--sequences", "1", "--tolerance", "1e9")
    rows = outputs(tmp_path / "out")
    again = [row for row in rows if "~again~" in row["job_id"]]
    assert again and {row["workload_name"] for row in rows} == {"w0"}
    assert any(row["final_state"] == "COMPLETED_SUCCESSFULLY" for row in again)


def test_killed_jobs_of_plain_profiles_run_again_as_in_the_fast_world() -> None:
    words = ["--scheduler", "pool", "--platform", "exact-128", "--steps", "60", "--sequences", "1"]
    assert main(["validate", "saf+rule", *words, *on()]) == 0


def test_staging_with_checkpoints(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["run", str(EXPERIMENTS / "burst-buffer-16.toml"), "--checkpoints", "2"]
    out = {world: tmp_path / world for world in ("batsim", "simgrid")}
    if version() == "5":  # 5.0.0-rc2 aborts where a job stages
        assert main([*words, *on(), "--out", str(out["batsim"])]) == 1
        assert "dies of a profile of type 'data_staging'" in capsys.readouterr().err
        return
    assert main([*words, *on(), "--out", str(out["batsim"])]) == 0
    assert main([*words, "--on", "simgrid", "--out", str(out["simgrid"])]) == 0
    starts = [
        {row["job_id"]: float(row["finish_time"]) for row in outputs(folder)} for folder in out.values()
    ]
    assert starts[0] == pytest.approx(starts[1], abs=1e-5)
