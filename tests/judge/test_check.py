"""Every rule of the schedule check: one broken schedule each, the sentence, and a brute-force oracle."""

import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from cli_commands import run_bridge, run_ok, run_refused
from hypothesis import given
from hypothesis import strategies as st
from schedules import example, schedule

from bridge.base.errors import BridgeError
from bridge.judge.check import KINDS, check_schedule
from bridge.judge.jobs import read_jobs, write_jobs_csv, write_rst
from bridge.workload.formats import write
from bridge.workload.table import SWF_COLUMNS, Workload


def test_a_valid_schedule() -> None:
    verdict = check_schedule(example(), {"nodes": 4})
    assert verdict.ok
    assert (verdict.jobs, verdict.started, verdict.rejected) == (5, 4, 1)
    assert verdict.peak == {"nodes": 4.0}
    assert verdict.kinds == {}


def test_capacity() -> None:
    rows = [("a", 0, 0, 10, 3), ("b", 0, 2, 3, 1), ("c", 0, 4, 2, 2), ("d", 0, 5, 1, 1)]
    verdict = check_schedule(schedule(rows), {"nodes": 4})
    assert verdict.kinds == {"capacity:nodes": 2}
    first = verdict.first
    assert first is not None
    assert (first.kind, first.time, first.jobs) == ("capacity:nodes", 4.0, ("c", "a", "b"))
    assert first.text == "6 of 4 nodes in use when job c (2) starts; running: a (3), b (1)"
    assert verdict.peak == {"nodes": 6.0}


def test_release_comes_before_start() -> None:
    assert check_schedule(schedule([("a", 0, 0, 10, 4), ("b", 0, 10, 5, 4)]), {"nodes": 4}).ok


def test_rounding_of_times_is_tolerated_and_no_more() -> None:
    table = schedule([("a", 0, 0, 10, 4), ("b", 0, 10 - 9e-7, 5, 4)])
    assert check_schedule(table, {"nodes": 4}).ok
    assert check_schedule(table, {"nodes": 4}, tolerance=1e-7).kinds == {"capacity:nodes": 1}
    later = schedule([("a", 0, 0, 10, 4), ("b", 0, 10 - 2e-6, 5, 4)])
    assert check_schedule(later, {"nodes": 4}).kinds == {"capacity:nodes": 1}


def test_jobs_without_length_use_nothing_but_must_fit() -> None:
    assert check_schedule(schedule([("a", 0, 0, 10, 4), ("b", 0, 5, 0, 4)]), {"nodes": 4}).ok
    verdict = check_schedule(schedule([("b", 0, 5, 0, 5)]), {"nodes": 4})
    assert verdict.kinds == {"larger-than-machine:nodes": 1}
    assert verdict.first is not None
    assert verdict.first.text == "job b uses 5 nodes, the machine has 4"


def test_further_resources() -> None:
    table = schedule([("a", 0, 0, 10, 1), ("b", 0, 3, 10, 1)], burst_buffer=[6, 5], power=[10.5, 10.5])
    limits = {"nodes": 2, "burst_buffer": 10, "power": 21}
    verdict = check_schedule(table, limits)
    assert verdict.kinds == {"capacity:burst_buffer": 1}
    assert verdict.first is not None
    assert verdict.first.text == "11 of 10 bytes in use when job b (5) starts; running: a (6)"
    assert check_schedule(table, limits | {"burst_buffer": 11}).ok
    with pytest.raises(BridgeError, match="no column 'licences'"):
        check_schedule(table, {"nodes": 2, "licences": 1})


def _set(row: int, **values: object) -> Callable[[pd.DataFrame], None]:
    def change(table: pd.DataFrame) -> None:
        for column, value in values.items():
            table.loc[row, column] = value

    return change


NAN = float("nan")
BROKEN: list[tuple[Callable[[pd.DataFrame], None], str, float, str]] = [
    (_set(3, job_id="A"), "duplicate-job", 15, "job A stands in the table more than once (again in row 3)"),
    (_set(1, final_state="DONE"), "unknown-state", 10, "job B has the unknown final_state 'DONE'"),
    (_set(4, starting_time=7.0), "rejected-but-started", 7, "job R is REJECTED but starts at 7.000000"),
    (
        _set(3, starting_time=NAN, waiting_time=NAN),
        "missing-value",
        5,
        "job D (COMPLETED_SUCCESSFULLY) has no number in starting_time, waiting_time",
    ),
    (_set(4, submission_time=NAN), "missing-value", 0, "job R (REJECTED) has no number in "),
    (_set(2, requested_number_of_resources=0), "no-demand", 2, "job C requests 0 nodes"),
    (
        _set(2, submission_time=3.0, waiting_time=-1.0, turnaround_time=3.0),
        "start-before-submit",
        2,
        "job C starts at 2.000000, before its submit at 3.000000",
    ),
    (
        _set(0, submission_time=-3.0, waiting_time=3.0, turnaround_time=13.0),
        "negative",
        0,
        "job A has the submission_time -3.000000",
    ),
    (
        _set(0, execution_time=9.9),
        "execution-time",
        0,
        "job A has the execution_time 9.900000, but finish − start = 10.000000",
    ),
    (
        _set(1, waiting_time=0.0),
        "waiting-time",
        10,
        "job B has the waiting_time 0.000000, but start − submit = 10.000000",
    ),
    (
        _set(1, turnaround_time=5.0),
        "turnaround-time",
        10,
        "job B has the turnaround_time 5.000000, but finish − submit = 15.000000",
    ),
    (
        _set(3, requested_time=99.5),
        "walltime",
        15,
        "job D runs 100.000000 s, longer than its requested time of 99.500000 s",
    ),
    *(
        (_set(2, allocated_resources=given), kind, 2, f"job C {said}")
        for given, kind, said in (
            ("3+", "allocation-unreadable", "has allocated_resources '3+': not intervals such as '0-3 7'"),
            ("2-3", "allocation-size", "has allocated_resources '2-3': 2 hosts, requested 1"),
            ("4", "host-range", "has allocated_resources '4': the hosts are 0 … 3"),
            ("1", "host-overlap", "starts on host 1, which job A holds until 10.000000"),
        )
    ),
]


@pytest.mark.parametrize(("change", "kind", "time", "text"), BROKEN, ids=[b[1] for b in BROKEN])
def test_one_broken_rule(change: Callable[[pd.DataFrame], None], kind: str, time: float, text: str) -> None:
    table = example()
    table["allocated_resources"] = ["0-1", "0-3", "2", "0", ""]
    change(table)
    if kind == "no-demand":
        table["allocated_resources"] = ""
    verdict = check_schedule(table, {"nodes": 4})
    assert verdict.kinds == {kind: 1}
    assert verdict.first is not None
    assert (verdict.first.kind, verdict.first.time) == (kind, time)
    assert verdict.first.text.startswith(text)
    assert kind in KINDS
    assert check_schedule(table, {"nodes": 4}, ignore=[kind]).ok


def test_finish_before_start() -> None:
    table = example()
    table.loc[0, ["finish_time", "execution_time", "turnaround_time"]] = [-4.0, -4.0, -4.0]
    verdict = check_schedule(table, {"nodes": 4})
    assert verdict.kinds == {"negative": 1, "finish-before-start": 1}


def test_the_first_in_time_is_told() -> None:
    table = example()
    table.loc[3, "execution_time"] = 7.0
    table.loc[1, "waiting_time"] = 7.0
    verdict = check_schedule(table, {"nodes": 4})
    assert verdict.kinds == {"execution-time": 1, "waiting-time": 1}
    assert verdict.first is not None
    assert verdict.first.jobs == ("B",)


def test_no_walltime_and_one_id_in_two_workloads_are_fine() -> None:
    table = example()
    table["requested_time"] = -1.0
    table.loc[3, ["job_id", "workload_name"]] = ["A", "w1"]
    assert check_schedule(table, {"nodes": 4}).ok


def test_nonsense_is_refused() -> None:
    for tolerance in (-1.0, math.inf, math.nan):
        with pytest.raises(BridgeError, match="tolerance must be a finite time, 0 s or more"):
            check_schedule(example(), {"nodes": 4}, tolerance=tolerance)
    with pytest.raises(BridgeError, match="number of nodes"):
        check_schedule(example(), {})
    with pytest.raises(BridgeError, match="unknown kind of violation 'walltimes'"):
        check_schedule(example(), {"nodes": 4}, ignore=["walltimes"])


def _log(**changes: dict[int, float]) -> Workload:
    jobs = pd.DataFrame(-1, index=range(4), columns=list(SWF_COLUMNS))
    jobs["job_id"] = [11, 12, 13, 14]
    jobs["submit"] = [100, 100, 102, 105]
    jobs["run"] = [10, 5, 4, 2000]
    jobs["procs"] = [2, 4, 1, 1]
    jobs["req_procs"] = [2, -1, 3, 1]
    jobs["req_time"] = [-1, 50, 4, 100]
    for column, cells in changes.items():
        for row, value in cells.items():
            jobs.loc[row, column] = value
    return Workload("log", jobs, {"nodes": 4})


def _of_log() -> pd.DataFrame:
    table = example().iloc[:4].copy()
    table["job_id"] = ["0011", "0012", "0013", "0014"]
    table.loc[3, "final_state"] = "COMPLETED_WALLTIME_REACHED"
    return table


def test_against_its_log() -> None:
    verdict = check_schedule(_of_log(), {"nodes": 4}, workload=_log())
    assert verdict.ok
    assert verdict.notes == ()
    partly = check_schedule(_of_log().iloc[1:], {"nodes": 4}, workload=_log())
    assert partly.ok
    assert partly.notes == ("1 of 4 records of the workload log are not in the schedule",)


@pytest.mark.parametrize(
    ("changes", "kind", "text"),
    [
        ({"job_id": {1: 99}}, "not-in-workload", "job 0012 is not in the workload log"),
        (
            {"procs": {1: 5}},
            "workload-demand",
            "job 0012 requests 4 nodes; the workload log says -1, allocated 5",
        ),
        (
            {"submit": {2: 103}},
            "workload-submit",
            "job 0013 is submitted at 2.000000; the workload log says 3.000000 after the shift",
        ),
        (
            {"req_time": {3: 90}},
            "workload-run",
            "job 0014 runs 100.000000 s; the workload log says 2000 s, requested 90 s",
        ),
    ],
)
def test_differences_from_the_log(changes: dict[str, dict[int, float]], kind: str, text: str) -> None:
    verdict = check_schedule(_of_log(), {"nodes": 4}, workload=_log(**changes))
    assert verdict.kinds == {kind: 1}
    assert verdict.first is not None
    assert verdict.first.text == text


@given(
    st.lists(st.tuples(st.integers(0, 20), st.integers(0, 6), st.integers(1, 5)), max_size=15),
    st.integers(1, 12),
)
def test_capacity_against_looking_at_every_second(jobs: list[tuple[int, int, int]], nodes: int) -> None:
    rows = [(k, 0, start, run, size) for k, (start, run, size) in enumerate(jobs)]
    verdict = check_schedule(schedule(rows), {"nodes": nodes}, ignore=["larger-than-machine"])
    used = [sum(size for start, run, size in jobs if start <= t < start + run) for t in range(30)]
    late = [t for t in range(30) if used[t] > nodes]
    assert verdict.ok == (not late)
    if late:
        assert verdict.first is not None
        assert verdict.first.time == late[0]
    assert verdict.peak["nodes"] == max(used)


#: Recorded cases that use what plain allocation rules forbid, and what the check then says.
SPECIAL = {
    "alloc_includes_storage_shared": {"host-range": 2},  # storage ids stand in the allocation
    "composed_sendrecv": {"allocation-size": 1},  # several ranks mapped to a host
    "ptask_explicit": {"allocation-size": 1},
    "compute_sharing": {"capacity:nodes": 1, "host-overlap": 3},
    "multicore_sharing_mapping": {"capacity:nodes": 1, "allocation-size": 2, "host-overlap": 3},
}


def test_schedules_of_batsim(golden: Path) -> None:
    checked = 0
    for path in sorted(golden.glob("batsim/*/_jobs.csv")):
        if path.stat().st_size == 0:
            continue
        nodes = 12 if path.parent.name == "host_order_12" else 8
        verdict = check_schedule(read_jobs(path), {"nodes": nodes})
        assert verdict.kinds == SPECIAL.get(path.parent.name, {}), path
        checked += 1
    assert checked > 30


def test_command_on_a_valid_file(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    write_jobs_csv([example()], path)
    said = run_ok("check", path, "--nodes", 4)
    assert said == "valid: 4 jobs started, 1 rejected; peak 4 of 4 nodes\n"


def test_command_on_a_broken_file(tmp_path: Path) -> None:
    path = tmp_path / "out.rst"
    write_rst(example(), path)
    words = ("check", path, "--nodes", 2)
    told = run_bridge(*words)
    assert (told.status, told.out) == (
        1,
        "first violation, at t = 2.000000 s [capacity:nodes]:\n"
        "  3 of 2 nodes in use when job C (1) starts; running: A (2)\n"
        "violations: larger-than-machine:nodes 1, capacity:nodes 2\n",
    )
    told = run_bridge(*words, "--json")
    said = json.loads(told.out)
    assert (told.status, said["ok"]) == (1, False)
    assert said["kinds"] == {"larger-than-machine:nodes": 1, "capacity:nodes": 2}
    assert said["first"]["jobs"] == ["C", "A"]
    run_ok(*words, "--ignore", "capacity", "--ignore", "larger-than-machine")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["gone.csv", "--nodes", "4"], "gone.csv: no such file"),
        (["gone.csv"], "the machine's size is not known\n  Add --nodes N."),
        (["gone.csv", "--nodes", "4", "--capacity", "bb"], "--capacity: 'bb' does not state a capacity"),
        (["gone.csv", "--nodes", "0"], "Invalid value for '--nodes'"),
    ],
)
def test_command_refuses(arguments: list[str], said: str) -> None:
    told = run_bridge("check", *arguments)
    assert (told.status != 0, said in told.err) == (True, True)


def test_command_with_the_log(tmp_path: Path) -> None:
    log, path = tmp_path / "log.swf", tmp_path / "jobs.csv"
    write(_log(), log)
    write_jobs_csv([_of_log()], path)
    words = ("check", path, "--nodes", 4, "--workload", log)
    run_ok(*words)
    wrong = _of_log()
    wrong.loc[1, "requested_number_of_resources"] = 3
    write_jobs_csv([wrong], path)
    told = run_bridge(*words)
    assert (told.status, "[workload-demand]" in told.out) == (1, True)


@pytest.mark.parametrize("epoch", [0.0, 1e9, 9.3e10, 5e12])
def test_times_of_thousands_of_years_are_judged_as_exactly_as_they_are_stored(epoch: float) -> None:
    """Beyond 9e9 s a double holds no single microseconds: sums of times are off by their last digits."""
    rng = np.random.default_rng(1)
    submit = np.round(np.cumsum(rng.random(40)), 2)
    start = np.round(np.cumsum(rng.random(40) + 1), 6)
    start = np.maximum(start, submit)
    run = np.diff(start, append=start[-1] + 1)  # one after the other, on all nodes
    table = schedule([(k, s, b, r, 4) for k, (s, b, r) in enumerate(zip(submit, start, run, strict=True))])
    late = table.assign(**{n: table[n] + epoch for n in ("submission_time", "starting_time", "finish_time")})
    late["allocated_resources"] = "0-3"
    records = pd.DataFrame({name: np.full(40, -1) for name in SWF_COLUMNS})
    records = records.assign(job_id=range(40), submit=submit + epoch, run=run, req_procs=4)
    log = Workload("log", records, {"nodes": 4})
    assert check_schedule(late, {"nodes": 4}, workload=log).ok
    shifted = late.assign(**{n: table[n] for n in ("submission_time", "starting_time", "finish_time")})
    assert check_schedule(shifted, {"nodes": 4}, workload=log).ok
    wrong = late.assign(waiting_time=late["waiting_time"] + 0.01)
    assert set(check_schedule(wrong, {"nodes": 4}).kinds) == {"waiting-time"}


def test_a_capacity_of_thousands_of_digits_is_refused(tmp_path: Path) -> None:
    run_refused("check", tmp_path / "jobs.csv", "--capacity", "gpus=" + "9" * 5000)
