"""The JSON of `sacct`, as versions 22.05 and 24.05 write it."""

import math
from typing import Any

import pytest

from bridge.base.errors import BridgeError
from bridge.workload.accounting.lives import JobLife, RecordCounter
from bridge.workload.accounting.sacct import read_sacct_json


def old(**changes: Any) -> dict[str, Any]:
    """Return a job as 22.05 writes it."""
    job = {
        "job_id": 8,
        "array": {"job_id": 2, "task_id": 1},
        "association": {"account": "physics", "user": "alice"},
        "het": {"job_id": 0, "job_offset": None},
        "name": "na me",
        "partition": "agent",
        "qos": "normal",
        "state": {"current": "COMPLETED", "reason": "None"},
        "exit_code": {"status": "SUCCESS", "return_code": 0},
        "time": {
            "elapsed": 20,
            "eligible": 105,
            "end": 130,
            "start": 110,
            "submission": 100,
            "suspended": 0,
            "limit": 5,
        },
        "tres": {
            "allocated": [
                {"type": "cpu", "name": None, "count": 16},
                {"type": "mem", "name": None, "count": 200},
                {"type": "energy", "name": None, "count": None},
                {"type": "node", "name": None, "count": 2},
                {"type": "gres", "name": "gpu", "count": 4},
            ],
            "requested": [
                {"type": "cpu", "name": None, "count": 2},
                {"type": "node", "name": None, "count": 2},
            ],
        },
        "steps": [{"nonsense": True}],
    }
    return job | changes


def new() -> dict[str, Any]:
    """Return the same job as 24.05 writes it."""
    job = old()

    def wrapped(value: int) -> dict[str, Any]:
        return {"set": True, "infinite": False, "number": value}

    job["state"] = {"current": ["COMPLETED"], "reason": "None"}
    job["array"] = {"job_id": 2, "task_id": wrapped(1)}
    job["het"] = {"job_id": 0, "job_offset": {"set": False, "infinite": False, "number": 0}}
    job["exit_code"] = {"status": ["SUCCESS"], "return_code": wrapped(0), "signal": {"id": wrapped(0)}}
    job["time"] = job["time"] | {"limit": wrapped(5)}
    return job


def lives(*jobs: Any) -> tuple[list[JobLife], dict[str, tuple[int, ...]]]:
    """Return what is read of jobs, and the examples of what was counted."""
    counted = RecordCounter()
    found = list(read_sacct_json({"jobs": list(jobs)}, "list", counted))
    return found, {why: reason.examples for why, reason in counted.tally().items()}


def test_both_versions_tell_the_same() -> None:
    (before, after), counted = lives(old(), new())
    assert before == after
    assert counted == {}
    assert (before.label, before.number, before.limit, before.eligible) == ("2_1", 8, 300, 105)
    assert before.allocated == {"cores": 16, "main_memory": 200 << 20, "nodes": 2, "gpus": 4}
    assert before.requested == {"cores": 2, "nodes": 2}
    assert before.words["account"] == "physics"
    assert before.words["exit_code"] == "0:0"


def test_no_limit_is_null_or_infinite() -> None:
    times = old()["time"]
    jobs = (
        old(time=times | {"limit": None}),
        old(time=times | {"limit": {"set": True, "infinite": True, "number": 0}}),
        old(time=times | {"limit": {"set": False, "infinite": False, "number": 0}}),
    )
    assert [life.limit for life in lives(*jobs)[0]] == [math.inf, math.inf, None]


def test_a_job_that_never_started_has_zeros() -> None:
    (life,), _ = lives(old(time=old()["time"] | {"start": 0, "eligible": 0}, state={"current": "CANCELLED"}))
    assert (life.start, life.eligible, life.ran) == (None, None, False)


@pytest.mark.parametrize(
    "job", [None, 5, {}, {"job_id": "x"}, old(time=None), old(state={"current": []}), old(tres=[3])]
)
def test_what_is_no_job_is_counted_by_its_place(job: Any) -> None:
    found, counted = lives(old(), job)
    assert len(found) == 1
    assert list(counted.values()) == [(2,)]


def test_what_has_no_jobs() -> None:
    with pytest.raises(BridgeError, match="no list of jobs"):
        list(read_sacct_json({"nodes": []}, "list", RecordCounter()))


def test_memory_that_was_only_required() -> None:
    per_core = {"CPUs": 2, "memory_per_cpu": {"set": True, "infinite": False, "number": 100}}
    (life,) = read_sacct_json({"jobs": [old(required=per_core)]}, "list", RecordCounter())
    assert (life.requested["main_memory"], life.allocated["main_memory"]) == (200 << 20, 200 << 20)
    per_node = {"memory_per_node": {"set": True, "infinite": False, "number": 300}}
    (life,) = read_sacct_json({"jobs": [old(required=per_node)]}, "list", RecordCounter())
    assert life.requested["main_memory"] == 600 << 20


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"job_id": 10**18}, "'1000000000000000000' is no id of a job"),
        ({"time": old()["time"] | {"end": 1700000000000000}}, "milli- or microseconds"),
        ({"time": old()["time"] | {"elapsed": -5}}, "a duration is not within"),
        ({"state": {"current": "DONE"}}, "'DONE' is no state of a job"),
        ({"time": 5}, "not as Slurm writes a job"),
    ],
)
def test_impossible_values_are_counted_by_what_they_are(changes: dict[str, Any], why: str) -> None:
    counted = RecordCounter()
    assert [life.number for life in read_sacct_json({"jobs": [old(), old(**changes)]}, "list", counted)] == [
        8
    ]
    ((reason, found),) = counted.tally().items()
    assert why in reason
    assert (found.kind, found.count, found.examples) == ("dropped", 1, (2,))
