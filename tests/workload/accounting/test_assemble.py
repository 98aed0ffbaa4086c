"""From lives to jobs: when a job waits, what it demands, what is left out."""

import math
from dataclasses import replace

import pytest

from bridge.base.errors import BridgeError
from bridge.workload.accounting.assemble import assemble
from bridge.workload.accounting.choices import ImportConfig
from bridge.workload.accounting.lives import JobLife, RecordCounter
from bridge.workload.accounting.machine import AccountingMachine, PartitionTimes
from bridge.workload.table import Workload

LIFE = JobLife(
    label="1",
    number=1,
    state="COMPLETED",
    submit=1000,
    eligible=1000,
    start=1010,
    end=1030,
    elapsed=20,
    suspended=0,
    limit=300,
    requested={"nodes": 2, "cores": 2, "main_memory": 100},
    allocated={"nodes": 2, "cores": 16, "main_memory": 800},
    words={"user": "alice", "partition": "agent", "name": "wrap"},
)
MACHINE = AccountingMachine(
    {f"n{k}": {"cores": 8, "main_memory": 400} for k in range(4)},
    {"agent": PartitionTimes("agent", frozenset({"n0", "n1", "n2", "n3"}), 7200, 600)},
)


def assembled(*lives: JobLife, machine: AccountingMachine | None = None, **choices: object) -> Workload:
    return assemble(lives, "log", "list", RecordCounter(), machine, ImportConfig(**choices))  # type: ignore[arg-type]


def reasons(workload: Workload) -> dict[str, tuple[int, ...]]:
    return {f"{reason.kind}: {why}": reason.examples for why, reason in workload.tally.items()}


def test_one_job() -> None:
    jobs = assembled(LIFE, machine=MACHINE).jobs
    names = ["job_id", "submit", "wait", "run", "procs", "req_procs", "req_time", "status"]
    names += ["cores", "main_memory"]
    assert jobs[names].iloc[0].tolist() == [1, 0, 10, 20, 2, 2, 300, 1, 16, 800]
    expected = ["1", "COMPLETED", "alice", "wrap"]
    assert jobs[["slurm_id", "state", "user_name", "job_name"]].iloc[0].tolist() == expected
    assert assembled(LIFE, machine=MACHINE).capacity == {"nodes": 4, "cores": 32, "main_memory": 1600}


def test_nodes_that_jobs_ran_on_are_kept_where_the_list_names_them() -> None:
    assert "ran_on" not in assembled(LIFE).jobs
    listed = replace(LIFE, words={**LIFE.words, "node_list": "n[0-1]"})
    never = replace(
        LIFE, number=2, start=None, state="CANCELLED", words={**LIFE.words, "node_list": "None assigned"}
    )
    jobs = assembled(listed, never).jobs.set_index("job_id")
    assert jobs["ran_on"].to_dict() == {1: "n[0-1]", 2: ""}
    assert "ran_on" not in assembled(replace(LIFE, words={**LIFE.words, "node_list": "None assigned"})).jobs


def test_a_job_waits_from_when_it_is_eligible() -> None:
    first = replace(LIFE, number=2, submit=900, eligible=900, start=900, end=920)
    workload = assembled(first, replace(LIFE, submit=950, eligible=1005))
    assert workload.jobs[["submit", "wait", "held"]].to_numpy().tolist() == [[0, 0, 0], [105, 5, 55]]
    assert reasons(workload) == {
        "noted: held, or waited for another job: it waits from when it was eligible": (1,)
    }


def test_each_life_of_a_requeued_job_is_a_job() -> None:
    again = replace(LIFE, submit=1030, eligible=1031, start=1040, end=1060)
    jobs = assembled(again, replace(LIFE, state="REQUEUED"), replace(LIFE, number=5)).jobs.sort_values(
        "submit"
    )
    assert sorted(jobs[["job_id", "life", "status"]].to_numpy().tolist()) == [[1, 0, 0], [5, 0, 1], [6, 1, 1]]


def test_who_has_not_ended_or_is_listed_twice_is_left_out() -> None:
    workload = assembled(
        LIFE,
        LIFE,
        replace(LIFE, number=2, state="RUNNING", end=None),
        replace(LIFE, number=3, state="PENDING", start=None, end=None),
        replace(LIFE, number=4, state="CANCELLED", start=None, end=1020, elapsed=0),
        replace(LIFE, number=5, end=900),
    )
    expected = [[1, 10, 20, 1], [4, -1, -1, 5]]
    assert workload.jobs[["job_id", "wait", "run", "status"]].to_numpy().tolist() == expected
    assert reasons(workload) == {
        "dropped: listed twice": (1,),
        "dropped: still running when the list was made": (2,),
        "dropped: still waiting when the list was made": (3,),
        "dropped: ended before it started": (5,),
    }


def test_jobs_without_a_limit() -> None:
    lives = [
        replace(LIFE, number=n, limit=limit, allocated={"nodes": 1, "cores": 8})
        for n, limit in enumerate((math.inf, None, 900), start=1)
    ]
    assert assembled(*lives).jobs["req_time"].tolist() == [900, 900, 900]
    assert assembled(*lives, machine=MACHINE, unit="cores").jobs["req_time"].tolist() == [7200, 600, 900]
    assert assembled(*lives, unlimited=50).jobs["req_time"].tolist() == [50, 50, 900]


def test_time_suspended_is_no_run_time() -> None:
    jobs = assembled(replace(LIFE, end=1100, suspended=None)).jobs
    assert jobs[["run", "suspended"]].iloc[0].tolist() == [20, 70]


def test_cores_where_jobs_share_nodes() -> None:
    lives = [
        replace(LIFE, number=n, allocated={"nodes": 1, "cores": 4, "main_memory": 1}, requested={})
        for n in range(8)
    ]
    with pytest.raises(
        BridgeError, match="8 nodes were allocated at one time, and the machine has 4"
    ) as told:
        assembled(*lives, machine=MACHINE)
    assert "--unit cores" in told.value.remedy
    workload = assembled(*lives, machine=MACHINE, unit="cores")
    assert workload.capacity == {"nodes": 32, "main_memory": 1600}
    assert workload.jobs["procs"].tolist() == [4] * 8


def test_a_list_that_does_not_tell_the_unit() -> None:
    life = replace(LIFE, allocated={"nodes": 1}, requested={})
    with pytest.raises(BridgeError, match="list: no job tells its cores\n  Have AllocCPUS printed too"):
        assembled(life, unit="cores")


def test_one_partition_and_no_names() -> None:
    other = replace(LIFE, number=2, words={"partition": "other"})
    workload = assembled(LIFE, other, machine=MACHINE, partition="agent", anonymous=True)
    assert workload.jobs["job_id"].tolist() == [1]
    assert not {"user_name", "account", "job_name"} & set(workload.jobs)
    with pytest.raises(BridgeError, match="no partition 'nobody'"):
        assembled(replace(LIFE, words={"partition": "nobody"}), machine=MACHINE, partition="nobody")


def test_several_clusters_and_nothing_at_all() -> None:
    with pytest.raises(BridgeError, match="several clusters: a, b"):
        assembled(replace(LIFE, words={"cluster": "a"}), replace(LIFE, words={"cluster": "b"}))
    with pytest.raises(BridgeError, match=r"no job has ended in it \(1 still running"):
        assembled(replace(LIFE, state="RUNNING"))


def test_a_start_before_the_submission_was_no_hold() -> None:
    workload = assembled(replace(LIFE, submit=1020, eligible=1020))
    assert workload.jobs[["submit", "wait", "held"]].iloc[0].tolist() == [0, 0, 0]
    assert reasons(workload) == {"repaired: started before its submission: submitted at its start": (1,)}


def test_time_at_work_that_contradicts_start_and_end_is_counted() -> None:
    lives = [(21, 0), (22, 0), (18, 0), (18, 2), (18, None), (19, 0)]
    workload = assembled(
        *(replace(LIFE, number=n, elapsed=at, suspended=off) for n, (at, off) in enumerate(lives, start=1))
    )
    assert workload.jobs["run"].tolist() == [21, 22, 18, 18, 18, 19]
    taken = "ElapsedRaw taken"
    assert reasons(workload) == {
        f"noted: at work (ElapsedRaw) for longer than from Start to End: {taken}": (2,),
        f"noted: at work (ElapsedRaw) for less than from Start to End, and not suspended as long: {taken}": (
            3,
        ),
    }


def test_a_clock_that_is_set_back_loses_no_job() -> None:
    before = replace(LIFE, end=1010 + 1200 - 3600, elapsed=1200)
    within = replace(LIFE, number=2, end=1010 + 6000 - 3600, elapsed=6000)
    workload = assembled(before, within)
    assert workload.jobs[["job_id", "run", "suspended"]].to_numpy().tolist() == [[1, 1200, 0], [2, 6000, 0]]
    assert [why[:21] for why in reasons(workload)] == ["repaired: its end is "]


def test_jobs_that_were_all_suspended_tell_of_no_machine() -> None:
    told = assembled(replace(LIFE, suspended=5, elapsed=15)).header["Note"]
    assert told.endswith(
        "how many nodes were allocated at one time is not known: no job ran without being suspended"
    )
