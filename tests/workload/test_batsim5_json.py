"""Workloads of Batsim 5: fewer fields, other names, and the same table when they are read."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from cli_commands import run_ok

from bridge.base.errors import BridgeError
from bridge.wire import profile_names
from bridge.workload.batsim import read_batsim, write_batsim, write_batsim5
from bridge.workload.columns import complete_columns
from bridge.workload.table import Workload

FIELDS = {"id", "subtime", "res", "profile", "walltime", "extra_data"}


def workload(*sizes: int) -> Workload:
    n = len(sizes)
    jobs = pd.DataFrame(
        {
            "job_id": range(1, n + 1),
            "submit": range(n),
            "run": [10 + k for k in range(n)],
            "procs": sizes,
            "req_procs": sizes,
            "req_time": 100,
            "user": 7,
            "burst_buffer": [k * 5 for k in range(n)],
        }
    )
    return Workload("w", complete_columns(jobs, str, "w")[0], {"nodes": 8, "burst_buffer": 50}, {})


def written(path: Path, of: Workload, made: dict[str, Any] | None = None) -> dict[str, Any]:
    names = [next(iter(made))] * len(of.jobs) if made else []
    write_batsim5(of, path, **({"profiles": lambda _: (names, made)} if made else {}))
    document: dict[str, Any] = json.loads(path.read_text())
    return document


def test_jobs_have_no_field_that_batsim_5_drops(tmp_path: Path) -> None:
    document = written(tmp_path / "five.json", workload(1, 2))
    assert all(set(job) <= FIELDS for job in document["jobs"])
    assert document["jobs"][1]["extra_data"] == {"user": 7, "burst_buffer": 5}
    assert document["profiles"]["delay10"] == {"type": "DelayProfile", "delay": 10}


def test_both_versions_are_read_as_one_table(tmp_path: Path) -> None:
    of = workload(1, 2, 4)
    write_batsim(of, tmp_path / "four.json")
    write_batsim5(of, tmp_path / "five.json")
    four, five = read_batsim(tmp_path / "four.json"), read_batsim(tmp_path / "five.json")
    pd.testing.assert_frame_equal(four.jobs, five.jobs, check_like=True)
    assert four.capacity == five.capacity == {"nodes": 8, "burst_buffer": 50}


PFS = {"type": "parallel_homogeneous_pfs", "bytes_to_read": 30.0, "storage": "pfs"}


def test_reads_and_writes_that_differ_are_spread_over_the_hosts(tmp_path: Path) -> None:
    made = {
        "both": {"type": "composed", "seq": ["in", "work"]},
        "in": PFS,
        "work": {"type": "delay", "delay": 3},
    }
    told = written(tmp_path / "w.json", workload(4, 4), made)["profiles"]
    assert told["both"] == {"type": "SequentialCompositionProfile", "seq": ["in", "work"]}
    assert told["in"] == {
        "type": "ParallelTaskOnStorageHomogeneousProfile",
        "bytes_to_read": 120.0,
        "bytes_to_write": 0,
        "storage": "pfs",
        "generation_strategy": "DefinedAmountsSpreadUniformly",
    }
    with pytest.raises(BridgeError, match="jobs of 2, 4 hosts"):
        written(tmp_path / "x.json", workload(4, 2), made)


def test_what_batsim_5_has_no_word_for_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BridgeError, match="no profile of type 'send'"):
        written(tmp_path / "w.json", workload(1), {"s": {"type": "send", "msg": {}}})
    with pytest.raises(BridgeError, match="dies of a profile of type 'data_staging'"):
        staging = {"type": "data_staging", "nb_bytes": 5, "from": "pfs", "to": "bb"}
        written(tmp_path / "w.json", workload(1), {"s": staging})
    with pytest.raises(BridgeError, match="holds 'w0'"):
        written(tmp_path / "w.json", workload(1), {"w0x": {"type": "delay", "delay": 3}})
    assert not (tmp_path / "w.json").exists()


@pytest.mark.parametrize(
    "profile",
    [
        {"type": "delay", "delay": 2.5},
        {"type": "parallel", "cpu": [1, 2], "com": [0, 1, 1, 0]},
        {"type": "parallel_homogeneous", "cpu": 1, "com": 2},
        {"type": "parallel_homogeneous_total", "cpu": 1, "com": 2},
        {"type": "composed", "repeat": 3, "seq": ["a", "b"]},
        {"type": "parallel_homogeneous_pfs", "storage": "pfs", "bytes_to_read": 5, "bytes_to_write": 6},
        {"type": "data_staging", "nb_bytes": 7, "from": "pfs", "to": "bb"},
        {"type": "of another kind", "x": [1]},
    ],
)
def test_profiles_go_there_and_back(profile: dict[str, Any]) -> None:
    kind, fields = profile_names.to_wire(profile, "w0")
    assert profile_names.of_wire(kind, fields, "w0") == profile
    if told := profile_names.to_file(profile):
        assert profile_names.of_file(told) == profile


def test_the_command(tmp_path: Path) -> None:
    path = tmp_path / "five.json"
    run_ok("workload", "convert", "bundled-128", path, "--to", "batsim5", "--first", "9")
    assert {profile["type"] for profile in json.loads(path.read_text())["profiles"].values()} == {
        "DelayProfile"
    }
    assert "9" in run_ok("workload", "info", path)
    sized = ["--to", "batsim5", "--first", "20", "--profile", "io", "--platform", "sp2-128"]
    run_ok("workload", "convert", "bundled-128", tmp_path / "io.json", *sized)
    kinds = {
        profile["type"] for profile in json.loads((tmp_path / "io.json").read_text())["profiles"].values()
    }
    assert "ParallelTaskOnStorageHomogeneousProfile" in kinds
