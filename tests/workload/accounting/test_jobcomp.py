"""The file of jobcomp/filetxt."""

import math
from datetime import UTC

import pytest

from bridge.base.errors import BridgeError
from bridge.workload.accounting.jobcomp import read_jobcomp
from bridge.workload.accounting.lives import JobLife, RecordCounter


def line(ident: int = 8, name: str = "wrap", more: str = "", **changes: str) -> str:
    """Return a line as slurmctld 22.05 writes it."""
    cells = {
        "JobState": "COMPLETED",
        "Partition": "agent",
        "TimeLimit": "5",
        "StartTime": "1970-01-01T00:01:50",
        "EndTime": "1970-01-01T00:02:10",
        "NodeList": "n[0-1]",
        "NodeCnt": "2",
        "ProcCnt": "16",
        "WorkDir": "/tmp",
        "ReservationName": "",
        "Tres": "cpu=16,mem=200M,node=2,billing=16",
        "Account": "root",
        "QOS": "normal",
        "WcKey": "",
        "Cluster": "mini",
        "SubmitTime": "1970-01-01T00:01:40",
        "EligibleTime": "1970-01-01T00:01:45",
    } | changes
    fields = " ".join(f"{key}={value}" for key, value in cells.items())
    head = f"JobId={ident} UserId=alice(1001) GroupId=g(7) Name={name}"
    return f"{head} {fields} {more}DerivedExitCode=0:0 ExitCode=0:0 "


def lives(*lines: str) -> tuple[list[JobLife], dict[str, tuple[int, ...]]]:
    """Return what is read of lines, and the examples of what was counted."""
    counted = RecordCounter()
    found = list(read_jobcomp("\n".join(lines) + "\n", "file", counted, UTC))
    return found, {why: reason.examples for why, reason in counted.tally().items()}


def test_one_line() -> None:
    (life,), counted = lives(line())
    assert (life.number, life.submit, life.eligible, life.start, life.end) == (8, 100, 105, 110, 130)
    assert life.allocated == {"nodes": 2, "cores": 16, "main_memory": 200 << 20}
    assert (life.limit, life.words["user"], life.words["name"]) == (300, "alice", "wrap")
    assert counted == {}


def test_a_name_cannot_pass_for_other_fields() -> None:
    (life,), _ = lives(line(name="x JobState=FAILED Partition=root TimeLimit=9 EndTime=soon\nJobId=9 y"))
    assert (life.state, life.limit, life.words["partition"]) == ("COMPLETED", 300, "agent")
    assert life.words["name"] == "x JobState=FAILED Partition=root TimeLimit=9 EndTime=soon\nJobId=9 y"


def test_tasks_of_arrays() -> None:
    (life,), _ = lives(line(more="ArrayJobId=2 ArrayTaskId=1 "))
    assert (life.label, life.number) == ("2_1", 8)


def test_a_requeue_is_a_life_and_a_job_that_never_ran_has_no_start() -> None:
    cancelled = {"JobState": "CANCELLED", "NodeList": "(null)", "NodeCnt": "0", "EligibleTime": "unknown"}
    (requeued, never), _ = lives(
        line(JobState="PENDING", NodeCnt="0"), line(9, TimeLimit="UNLIMITED", **cancelled)
    )
    assert (requeued.state, requeued.allocated["nodes"]) == ("REQUEUED", 2)
    assert (never.start, never.eligible, never.limit) == (None, None, math.inf)


def test_what_is_no_record() -> None:
    found, counted = lives(line(), "JobId=9 UserId=bob(2) torn", line(10, StartTime="noon"))
    assert [life.number for life in found] == [8]
    assert list(counted.values()) == [(2, 3)]
    with pytest.raises(BridgeError, match="no line begins with JobId"):
        lives("1|2|3")
