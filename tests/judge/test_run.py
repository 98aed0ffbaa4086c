"""A run folder: what stands in it, that it comes back, that nothing is half-written, precise errors."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from schedules import example

from bridge.base.errors import BridgeError
from bridge.judge import run as run_module
from bridge.judge.metrics import compute_metrics
from bridge.judge.run import Run, check_target, read_jobs, read_run, write_run


def make_run(**changes: Any) -> Run:
    jobs = example()
    config: dict[str, Any] = {
        "command": "bridge replay log.swf --order fcfs",
        "seed": None,
        "orders": ["fcfs", "sjf"],
        "versions": {"bridge": "0.1.0", "python": "3.11"},
        "jobs": np.int64(5),
        "log": Path("log.swf"),
    }
    fields = {
        "config": config,
        "capacity": {"nodes": 4},
        "jobs": jobs,
        "metrics": compute_metrics(jobs, {"nodes": 4}),
    }
    return Run(**(fields | changes))


def test_round_trip(tmp_path: Path) -> None:
    write_run(make_run(oracle=True), tmp_path / "deep" / "run")
    folder = tmp_path / "deep" / "run"
    expected = ["jobs.csv", "jobs.parquet", "metrics.json", "run.toml"]
    assert sorted(p.name for p in folder.iterdir()) == expected
    assert [p.name for p in folder.parent.iterdir()] == ["run"]
    back = read_run(folder)
    assert back.name == "run"
    assert back.oracle is True
    assert back.capacity == {"nodes": 4}
    assert back.config == {
        "command": "bridge replay log.swf --order fcfs",
        "orders": ["fcfs", "sjf"],
        "versions": {"bridge": "0.1.0", "python": "3.11"},
        "jobs": 5,
        "log": "log.swf",
    }
    assert back.metrics == make_run().metrics
    pd.testing.assert_frame_equal(back.jobs, example(), check_dtype=False)
    pd.testing.assert_frame_equal(
        read_jobs(folder / "jobs.csv"), example().drop(columns="user"), check_dtype=False
    )


def test_metrics_that_json_cannot_hold_are_unknown(tmp_path: Path) -> None:
    write_run(
        make_run(metrics={"a": float("nan"), "b": float("inf"), "c": np.float64(2.5)}), tmp_path / "run"
    )
    text = (tmp_path / "run" / "metrics.json").read_text()
    assert json.loads(text) == {"a": None, "b": None, "c": 2.5}


def test_an_existing_folder_is_kept(tmp_path: Path) -> None:
    write_run(make_run(), tmp_path / "run")
    with pytest.raises(BridgeError, match="already exists") as caught:
        write_run(make_run(), tmp_path / "run")
    assert "--force" in caught.value.remedy
    (tmp_path / "run" / "timeline.png").write_bytes(b"")
    write_run(make_run(oracle=True), tmp_path / "run", force=True)
    assert read_run(tmp_path / "run").oracle is True
    assert not (tmp_path / "run" / "timeline.png").exists()
    assert [p.name for p in tmp_path.iterdir()] == ["run"]


def test_force_replaces_runs_only(tmp_path: Path) -> None:
    other = tmp_path / "precious"
    other.mkdir()
    (other / "thesis.tex").write_text("x")
    with pytest.raises(BridgeError, match=r"does not look like a run \(it holds thesis\.tex"):
        write_run(make_run(), other, force=True)
    write_run(make_run(), tmp_path / "run")
    (tmp_path / "run" / "notes.txt").write_text("x")
    with pytest.raises(BridgeError, match=r"holds notes.txt"):
        write_run(make_run(), tmp_path / "run", force=True)
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    (pictures / "me.png").write_bytes(b"")
    with pytest.raises(BridgeError, match=r"holds no run\.toml"):
        write_run(make_run(), pictures, force=True)
    (tmp_path / "file").write_text("x")
    with pytest.raises(BridgeError, match="not a folder"):
        write_run(make_run(), tmp_path / "file", force=True)
    (tmp_path / "link").symlink_to(tmp_path / "run")
    with pytest.raises(BridgeError, match="not a folder"):
        write_run(make_run(), tmp_path / "link", force=True)
    (tmp_path / "empty").mkdir()
    write_run(make_run(), tmp_path / "empty", force=True)
    assert len(read_run(tmp_path / "empty").jobs) == 5


def test_a_target_can_be_checked_beforehand(tmp_path: Path) -> None:
    check_target(tmp_path / "new")
    with pytest.raises(BridgeError, match="already exists"):
        check_target(tmp_path)


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_nothing_is_half_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(run_module, "write_jobs_csv", fail)
    if isinstance(error, OSError):
        with pytest.raises(BridgeError, match="cannot write: No space left on device"):
            write_run(make_run(), tmp_path / "run")
    else:
        with pytest.raises(KeyboardInterrupt):
            write_run(make_run(), tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(BridgeError, match="cannot write") as caught:
        write_run(make_run(), tmp_path / "file" / "run")
    assert caught.value.where == str(tmp_path / "file" / "run")


def test_a_table_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(BridgeError, match="missing columns finish_time, metadata"):
        write_run(make_run(jobs=example().drop(columns=["metadata", "finish_time"])), tmp_path / "run")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["run.toml", "metrics.json", "jobs.parquet"])
def test_a_missing_file(tmp_path: Path, name: str) -> None:
    write_run(make_run(), tmp_path / "run")
    (tmp_path / "run" / name).unlink()
    with pytest.raises(BridgeError, match=f"{name} is missing"):
        read_run(tmp_path / "run")


TABLES = "[config]\n[capacity]\n"


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("run.toml", "format = ", "run.toml: not valid TOML: Invalid value (at "),
        ("run.toml", "format = 2", "run.toml: format 2 is unknown"),
        ("run.toml", "format = 1\noracle = false\n[config]\n", "run.toml: capacity is missing or not a dict"),
        ("run.toml", f"format = 1\noracle = 1\n{TABLES}", "run.toml: oracle is missing or not a bool"),
        ("run.toml", f"format = 1\noracle = true\n{TABLES}nodes = 1.5\n", "capacity must hold whole numbers"),
        ("metrics.json", "{", "metrics.json:1: is no JSON (Expecting"),
        ("run.toml", f"format = 1\noracle = true\n{TABLES}x = 1\n", "does not tell the machine's nodes"),
        ("run.toml", f"format = {'9' * 5000}", "run.toml: not valid TOML"),
        ("run.toml", f"format = {'[' * 5000}", "run.toml: not valid TOML: nested too deep"),
        ("metrics.json", "[]", "metrics.json: not a JSON object of metrics"),
        ("metrics.json", '{"wait.mean": "long"}', "metrics.json: not a JSON object of metrics"),
        ("metrics.json", "[" * 100_000, "metrics.json: is no JSON"),
        ("metrics.json", '{"wait.mean": NaN}', "metrics.json: is no JSON"),
        ("jobs.parquet", "PAR1", "jobs.parquet: is no Parquet file, or a damaged one"),
    ],
)
def test_a_damaged_file(tmp_path: Path, name: str, text: str, said: str) -> None:
    write_run(make_run(), tmp_path / "run")
    (tmp_path / "run" / name).write_text(text)
    with pytest.raises(BridgeError) as caught:
        read_run(tmp_path / "run")
    assert said in str(caught.value)


def test_missing_columns(tmp_path: Path) -> None:
    write_run(make_run(), tmp_path / "run")
    example().drop(columns="stretch").to_parquet(tmp_path / "run" / "jobs.parquet")
    with pytest.raises(BridgeError, match="missing column stretch"):
        read_run(tmp_path / "run")


def test_no_folder(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    for name, said in (("gone", "no such run folder"), ("file", "is a file, not a run folder")):
        with pytest.raises(BridgeError, match=said):
            read_run(tmp_path / name)
