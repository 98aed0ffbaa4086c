"""Batsim workloads: exact text, exact round trips, and files that Batsim would refuse as well."""

import json
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import given
from workload_strategies import Written, small, workloads

from bridge.base.errors import BridgeError
from bridge.workload.batsim import read_batsim, write_batsim
from bridge.workload.rules import LOAD_RULES
from bridge.workload.select import select
from bridge.workload.table import TallyEntry, Workload

JOB = {"id": "1", "subtime": 0, "res": 1, "profile": "d"}
DELAY = {"d": {"type": "delay", "delay": 1}}


def test_what_is_written(tmp_path: Path) -> None:
    log = small((9, 0, 10, 2, 20), (10, 0, 10, 1, -1), (11, 3, 7, 4, 30))
    log.jobs["burst_buffer"] = [5, -1, 0]
    log.jobs.loc[1, "user"] = 42
    log.jobs.loc[2, "procs"] = 8
    log.capacity["burst_buffer"] = 100
    log.header["Note"] = "by hand"
    path = tmp_path / "a.json"
    write_batsim(log, path)
    assert json.loads(path.read_text()) == {
        "nb_res": 8,
        "capacity": {"burst_buffer": 100},
        "header": {"Note": "by hand"},
        "jobs": [
            {"id": "09", "subtime": 0, "res": 2, "profile": "delay10", "walltime": 20, "burst_buffer": 5},
            {"id": "10", "subtime": 0, "res": 1, "profile": "delay10", "user": 42, "burst_buffer": -1},
            {
                "id": "11",
                "subtime": 3,
                "res": 4,
                "profile": "delay7",
                "walltime": 30,
                "procs": 8,
                "burst_buffer": 0,
            },
        ],
        "profiles": {"delay7": {"type": "delay", "delay": 7}, "delay10": {"type": "delay", "delay": 10}},
    }


@given(workloads(runnable=True, text=True))
def test_written_and_read_again(tmp_path_factory: pytest.TempPathFactory, log: Workload) -> None:
    path = tmp_path_factory.mktemp("batsim") / "w.json"
    write_batsim(log, path)
    again = read_batsim(path)
    pd.testing.assert_frame_equal(again.jobs, log.jobs)
    assert (again.name, again.capacity, again.header) == ("w", log.capacity, log.header)
    ids = [job["id"] for job in json.loads(path.read_text())["jobs"]]
    if log.jobs["job_id"].dtype.kind == "i":
        assert [int(ident) for ident in sorted(ids)] == sorted(log.jobs["job_id"])
    else:
        assert ids == log.jobs["job_id"].tolist()


def test_profiles_of_another_kind(tmp_path: Path) -> None:
    log = small((1, 0, 10, 2, 20), (2, 1, 10, 4, 20))
    path = tmp_path / "a.json"

    def flops(jobs: pd.DataFrame) -> tuple[list[str], dict[str, dict[str, object]]]:
        return ["f"] * len(jobs), {"f": {"type": "parallel_homogeneous", "cpu": 1e9, "com": 0}}

    write_batsim(log, path, flops)
    expected = {"id": "1", "subtime": 0, "res": 2, "profile": "f", "walltime": 20, "run": 10}
    assert json.loads(path.read_text())["jobs"][0] == expected
    assert read_batsim(path).jobs["run"].tolist() == [10, 10]


def test_ids_that_are_words_are_kept(tmp_path: Path, written: Written) -> None:
    jobs = [{**JOB, "id": name, "subtime": n} for n, name in enumerate(["st2", "st10"])]
    log = read_batsim(
        written({"nb_res": 2, "jobs": jobs, "profiles": {"d": {"type": "delay", "delay": 2.5}}})
    )
    expected = [["st2", 2.5, -1], ["st10", 2.5, -1]]
    assert log.jobs[["job_id", "run", "req_time"]].to_numpy().tolist() == expected
    write_batsim(log, tmp_path / "b.json")
    again = json.loads((tmp_path / "b.json").read_text())
    assert [(job["id"], job["res"]) for job in again["jobs"]] == [("st2", 1), ("st10", 1)]
    assert again["profiles"] == {"delay2.5": {"type": "delay", "delay": 2.5}}


def test_a_job_without_the_field_of_a_resource_asks_for_none(written: Written) -> None:
    jobs = [{**JOB, "power": 5, "site": 3}, {**JOB, "id": "2"}]
    top = {"nb_res": 2, "capacity": {"power": 9, "burst_buffer": 4}}
    log = read_batsim(written({**top, "jobs": jobs, "profiles": DELAY}))
    assert log.jobs["power"].tolist() == [5, 0]
    assert log.jobs["site"].isna().tolist() == [False, True]
    assert log.capacity == {"nodes": 2, "power": 9, "burst_buffer": 4}
    assert select(log, LOAD_RULES["standard"]).demand.tolist() == [[1, 5, 0], [1, 0, 0]]


def test_users_that_are_words_are_numbered_and_kept(tmp_path: Path, written: Written) -> None:
    jobs = [{**JOB, "user": "zoe"}, {**JOB, "id": "2"}, {**JOB, "id": "3", "user": "al"}]
    log = read_batsim(written({"jobs": jobs, "profiles": DELAY}))
    assert log.jobs["user"].tolist() == [1, -1, 2]
    write_batsim(log, tmp_path / "b.json")
    again = json.loads((tmp_path / "b.json").read_text())
    assert [job.get("user") for job in again["jobs"]] == ["zoe", None, "al"]
    assert "user" not in again["jobs"][1]


def test_a_profile_without_a_fixed_time_leaves_the_run_unknown(written: Written) -> None:
    job = {**JOB, "id": 3, "profile": "p", "walltime": 60}
    log = read_batsim(
        written({"jobs": [job], "profiles": {"p": {"type": "parallel", "cpu": [1], "com": [0]}}})
    )
    assert log.jobs[["job_id", "run", "req_time"]].to_numpy().tolist() == [[3, -1, 60]]
    assert log.capacity == {}
    assert dict(log.tally) == {"run time unknown: the profile is no delay": TallyEntry("noted", 1, (3,))}


@pytest.mark.parametrize(
    ("profiles", "run"),
    [
        ({"p": {"type": "composed", "repeat": 3, "seq": ["d7", "d7"]}}, 42),
        (
            {
                "p": {"type": "composed", "seq": ["q", "d7"]},
                "q": {"type": "composed", "repeat": 2, "seq": ["d7"]},
            },
            21,
        ),
        (
            {"p": {"type": "composed", "seq": ["d7", "c"]}, "c": {"type": "parallel_homogeneous", "cpu": 1}},
            -1,
        ),
        ({"p": {"type": "composed", "seq": ["p", "d7"]}}, -1),
        ({"p": {"type": "composed", "repeat": "3", "seq": ["d7"]}}, -1),
        ({"p": {"type": "composed", "seq": ["d7", 7]}}, -1),
    ],
)
def test_what_is_composed_of_delays_takes_their_sum(
    written: Written, profiles: dict[str, object], run: int
) -> None:
    described = {"d7": {"type": "delay", "delay": 7}, **profiles}
    jobs = [{**JOB, "profile": "p"}, {**JOB, "id": "2", "profile": "p", "run": 5}]
    assert read_batsim(written({"jobs": jobs, "profiles": described})).jobs["run"].tolist() == [run, 5]


def test_profiles_within_profiles_are_read_once_each(written: Written) -> None:
    described: dict[str, object] = {"p0": {"type": "delay", "delay": 1}}
    described |= {f"p{i}": {"type": "composed", "seq": [f"p{i - 1}"] * 2} for i in range(1, 41)}
    log = read_batsim(written({"jobs": [{**JOB, "profile": "p40"}], "profiles": described}))
    assert log.jobs["run"].tolist() == [2**40]


@pytest.mark.parametrize(
    ("rows", "what", "job"),
    [
        (((1, 0, 10, 1, -1), (2, 0, 0, 1, -1)), "no positive run time", 2),
        (((1, 0, 10, 0, -1),), "asks for no processor", 1),
        (((1, -5, 10, 1, -1),), "before time 0", 1),
        (((4, 0, 10, 1, -1), (4, 1, 10, 1, -1)), "the id of another job", 4),
        (((-3, 0, 10, 1, -1),), "a negative id", -3),
    ],
)
def test_jobs_that_batsim_cannot_run_are_refused(
    tmp_path: Path, rows: tuple[tuple[float, ...], ...], what: str, job: int
) -> None:
    with pytest.raises(BridgeError, match=what) as caught:
        write_batsim(small(*rows), tmp_path / "a.json")
    assert caught.value.where == f"job {job}"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "what", "where"),
    [
        ('{"jobs": [\n1,]', "is no JSON", ":2"),
        ("[]", "is no Batsim workload", ""),
        ({"jobs": [], "profiles": {}}, "the workload has no job", ""),
        ({"jobs": [3], "profiles": {}}, "is no object", ", job number 1"),
        ({"jobs": [{"subtime": 0}], "profiles": {}}, "the job has no field `id`", ", job number 1"),
        (
            {"jobs": [JOB, {**JOB, "id": "b", "profile": "x"}], "profiles": DELAY},
            "its profile 'x'",
            ", job b",
        ),
        ({"jobs": [JOB, {**JOB, "id": "b", "subtime": "x"}], "profiles": DELAY}, "submit is 'x'", ", job b"),
        ({"nb_res": "four", "jobs": [JOB], "profiles": DELAY}, "`nb_res` or `capacity`", ""),
        ({"capacity": {"power": 1.5}, "jobs": [JOB], "profiles": DELAY}, "`nb_res` or `capacity`", ""),
    ],
)
def test_files_that_are_no_workload(written: Written, content: object, what: str, where: str) -> None:
    path = written(content, "a.json")
    with pytest.raises(BridgeError) as caught:
        read_batsim(path)
    assert caught.value.what.startswith(what)
    assert caught.value.where == f"{path}{where}"


def test_every_recorded_workload_can_be_read(golden: Path) -> None:
    for path in sorted((golden / "batsim").glob("*/workload.json")):
        content = json.loads(path.read_text())
        if path.parent.name == "empty_workload" or not content["jobs"]:
            continue
        log = read_batsim(path)
        assert log.capacity == {"nodes": content["nb_res"]}
        assert log.jobs["submit"].tolist() == [job["subtime"] for job in content["jobs"]]
        assert log.jobs["req_procs"].tolist() == [job["res"] for job in content["jobs"]]


def test_a_job_id_that_stands_twice_is_refused(written: Written) -> None:
    jobs = [{**JOB, "id": ident, "subtime": n} for n, ident in enumerate(("a", "7", 7))]
    path = written({"jobs": jobs, "profiles": DELAY})
    with pytest.raises(BridgeError, match="two jobs have this id") as caught:
        read_batsim(path)
    assert caught.value.where == f"{path}, job 7"
    jobs[2]["id"] = "07"  # another text, and another job for Batsim
    path = written({"jobs": jobs, "profiles": DELAY})
    assert read_batsim(path).jobs["job_id"].tolist() == ["a", "7", "07"]
