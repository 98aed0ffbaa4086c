"""Every recorded case of Batsim 4.2.1: fed with the recorded decisions, the model says and writes the
same."""

import csv
import json
import math
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest
from model_process import needs_simgrid, started

CASES = Path(__file__).with_name("cases")
NAMES = sorted(path.name for path in CASES.iterdir())
#: Jobs of one date are split over messages by a rounding error of SimGrid's clock, which the queue has not.
ROUNDED = "mgmt_latency_serialization"
#: Columns of wall time, which no recording can tell.
WALL_TIME = {"scheduling_time", "simulation_time"}

pytestmark = needs_simgrid


def queues(name: str) -> bool:
    """Tell whether the queue kernel gives what was recorded; it does not measure energy."""
    return name != ROUNDED and "-E" not in shlex.split((CASES / name / "cmdline.txt").read_text())


@pytest.mark.parametrize(
    ("name", "kernel"),
    [(name, kernel) for name in NAMES for kernel in ("simgrid", "queue")[: 1 + queues(name)]],
)
def test_says_and_writes_what_batsim_did(name: str, kernel: str, tmp_path: Path) -> None:
    case = CASES / name
    folder = tmp_path / "case"
    shutil.copytree(case, folder)
    recorded = [json.loads(line) for line in (case / "transcript.jsonl").read_text().splitlines()]
    with started(folder, *_options(case), "--kernel", kernel) as model:
        for i, line in enumerate(recorded):
            if line["dir"] == "batsim->sched":
                assert_same(json.loads(line["raw"]), model.hear(), f"message {i}")
            else:
                model.say(line["raw"])
        assert model.hear() is None
        status, errors = model.end()
    assert "Traceback" not in errors
    if (case / "error.txt").exists():
        assert status == 1
        assert errors.startswith("bridge simgrid: error: ")
        assert not (folder / "got_schedule.csv").exists()
        assert name == "err_unknown_profile_type" or (folder / "got_jobs.csv").read_text().startswith(
            "job_id,"
        )
        return
    assert (status, errors) == (0, "")
    for path in case.glob("_*.csv"):
        assert_same_table(path, folder / f"got{path.name}")


def _options(case: Path) -> list[str]:
    words = shlex.split((case / "cmdline.txt").read_text().splitlines()[0])[1:]
    for option, value in (("-s", None), ("-e", "got")):
        at = words.index(option)
        words[at : at + 2] = [option, value] if value else []
    return words


def assert_same(want: Any, got: Any, place: str) -> None:
    """Compare JSON values: objects in any order, numbers within 1e-6."""
    if isinstance(want, dict):
        assert isinstance(got, dict) and want.keys() == got.keys(), f"{place}: {want} is not {got}"
        for key in want:
            if key != "workloads":  # paths of the machine on which it was recorded
                assert_same(want[key], got[key], f"{place}.{key}")
    elif isinstance(want, list):
        assert isinstance(got, list) and len(want) == len(got), f"{place}: {want} is not {got}"
        for i, (a, b) in enumerate(zip(want, got, strict=True)):
            assert_same(a, b, f"{place}[{i}]")
    elif isinstance(want, float) and isinstance(got, int | float):
        assert math.isclose(want, got, rel_tol=1e-6, abs_tol=2e-6), f"{place}: {want} is not {got}"
    else:
        assert type(want) is type(got) and want == got, f"{place}: {want} is not {got}"


def assert_same_table(want: Path, got: Path) -> None:
    """Compare tables: the same rows in the same order, numbers within 1e-6."""
    rows = [list(csv.DictReader(path.open())) for path in (want, got)]
    assert len(rows[0]) == len(rows[1]), f"{want.name}: {rows}"
    for i, (a, b) in enumerate(zip(*rows, strict=True)):
        assert list(a) == list(b), want.name
        for column in a:
            if column not in WALL_TIME:
                assert _same_cell(a[column], b[column]), f"{want.name}, row {i}, {column}: {a} is not {b}"


def _same_cell(want: str, got: str) -> bool:
    if want == got:
        return True
    try:
        return math.isclose(float(want), float(got), rel_tol=1e-6, abs_tol=2e-6)
    except ValueError:
        return False
