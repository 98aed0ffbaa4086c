"""The accounting of PBS: OpenPBS and TORQUE."""

from datetime import UTC
from zoneinfo import ZoneInfo

import pytest

from bridge.base.errors import BridgeError
from bridge.workload.accounting.lives import JobLife, RecordCounter
from bridge.workload.accounting.pbs import read_pbs

NOW = 1_767_600_000  # 01/05/2026 08:00:00 UTC
REQUEST = (
    "Resource_List.ncpus=8 Resource_List.mem=16gb Resource_List.nodect=2 Resource_List.walltime=01:00:00"
)
JOB = f"user=alice group=phys project=p1 jobname=run queue=batch ctime={NOW} qtime={NOW} etime={NOW + 5}"
RUN = f"{JOB} start={NOW + 60} exec_host=n1/0*4+n2/0*4 {REQUEST}"
END = f"{RUN} end={NOW + 1860} Exit_status=0 resources_used.walltime=00:30:00"


def lives(*lines: str, zone: object = UTC) -> tuple[list[JobLife], dict[str, tuple[int | str, ...]]]:
    counted = RecordCounter()
    read = list(read_pbs("\n".join(lines), "file", counted, zone))  # type: ignore[arg-type]
    return read, {why: reason.examples for why, reason in counted.tally().items()}


def record(kind: str, message: str = "", ident: str = "101.pbs", at: str = "08:00:00") -> str:
    return f"01/05/2026 {at};{kind};{ident};{message}"


def test_a_job_of_openpbs() -> None:
    (life,), counted = lives(record("Q", "queue=batch"), record("S", RUN), record("E", END, at="08:31:00"))
    assert (life.number, life.state, life.submit, life.eligible) == (101, "COMPLETED", NOW, NOW + 5)
    assert (life.start, life.end, life.limit) == (NOW + 60, NOW + 1860, 3600)
    assert life.requested == {"nodes": 2, "cores": 8, "main_memory": 16 << 30}
    assert life.allocated == {"nodes": 2, "cores": 8}
    assert life.words["node_list"] == "n1,n2"
    assert (life.words["user"], life.words["account"], life.words["partition"]) == ("alice", "p1", "batch")
    assert counted == {}


def test_a_job_of_torque_with_its_nodes() -> None:
    message = (
        f'user=c group=g jobname="a b" queue=gpu ctime={NOW} start={NOW + 9} end={NOW + 20} Exit_status=271 '
    )
    message += (
        "exec_host=g1/0-7+g2/0,2 Resource_List.nodes=2:ppn=5:gpus=1:bigmem+n7:ppn=2 Resource_List.software=x"
    )
    (life,), counted = lives(record("E", message, "103[2].srv"))
    assert (life.label, life.is_numbered, life.state) == ("103_2", False, "FAILED")
    assert life.requested == {"nodes": 3, "cores": 12, "gpus": 2}
    assert life.allocated == {"nodes": 2, "cores": 10}
    assert (life.words["name"], life.words["constraints"]) == ("a b", "bigmem")
    assert counted == {"requests that are not read: software": (103,)}


def test_ways_to_end() -> None:
    read, counted = lives(
        record("Q", f"queue=a qtime={NOW}", "1.s"),
        record("D", "requestor=bob@x", "1.s", at="08:10:00"),
        record("S", RUN, "2.s"),
        record("R", "", "2.s", at="08:20:00"),
        record("S", RUN.replace(f"start={NOW + 60}", f"start={NOW + 1300}"), "2.s", at="08:21:40"),
        record("D", "requestor=root@x", "2.s", at="08:22:00"),
        record(
            "E", END.replace(f"start={NOW + 60}", f"start={NOW + 1300}").replace("=0 res", "=271 res"), "2.s"
        ),
        record("S", RUN, "3.s"),
        record("A", "", "3.s", at="08:03:00"),
        record("E", END.replace("Exit_status=0", "Exit_status=-29"), "4.s"),
        record("Q", "queue=a", "5.s"),
        record("S", RUN, "6.s"),
    )
    ends = [(life.number, life.state, life.submit - NOW, life.start and life.start - NOW) for life in read]
    assert ends == [
        (1, "CANCELLED", 0, None),
        (2, "REQUEUED", 0, 60),
        (2, "CANCELLED", 1200, 1300),
        (3, "FAILED", 0, 60),
        (4, "TIMEOUT", 0, 60),
        (5, "PENDING", 0, None),
        (6, "RUNNING", 0, 60),
    ]
    assert counted == {}


def test_nothing_is_left_out_in_silence() -> None:
    read, counted = lives(
        "junk", record("L", "floating", "license"), record("E", END, "7[].s"), record("E", END)
    )
    assert [life.number for life in read] == [101]
    assert counted == {
        "no record of PBS (examples are lines)": (1,),
        "records of type L: no life of a job (examples are lines)": (2,),
        "arrays as a whole: their tasks are jobs (examples are lines)": (3,),
    }
    _, counted = lives(record("E", END + " start=soon colour=red"), record("E", END + " colour=red"))
    assert counted["no record (start 'soon' is no time; examples are lines)"] == (1,)
    assert counted["fields that are not read: colour"] == (101,)


def test_dates_are_of_the_zone() -> None:
    prague = ZoneInfo("Europe/Prague")
    (life,), _ = lives(record("Q", "queue=a"), record("D", "", at="09:00:00"), zone=prague)
    assert (life.submit, life.end) == (NOW - 3600, NOW)


@pytest.mark.parametrize("text", ["", "JobId=1 UserId=a\n"])
def test_another_file_is_refused(text: str) -> None:
    with pytest.raises(BridgeError, match="no line is a record of PBS"):
        list(read_pbs(text, "file", RecordCounter()))
