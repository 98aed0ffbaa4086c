"""From log records to jobs: every reason to drop or repair a record, counted exactly on a handmade table."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from bridge.base.errors import BridgeError
from bridge.workload.rules import LOAD_RULES
from bridge.workload.select import Jobs, machine_capacity, select
from bridge.workload.table import SWF_COLUMNS, TallyEntry, Workload, tally

S = 1_000_000
BUFFERED = {"nodes": 4, "burst_buffer": 10}
ONE = [(7, 0, 5, 2, 2, 9, 1)]

#: id, submit, run, procs (allocated), req_procs, req_time, status; one record per fate.
RECORDS = [
    (1, 100, 50, 4, 4, 60, 1),  # plain
    (2, 110, -1, 4, 4, 60, 5),  # cancelled before it started
    (3, 111, -1, 4, 4, 60, 1),  # no run time
    (4, 112, 0, 4, 4, 60, 1),  # ran for 0 s
    (5, 113, 30, 4, 4, -1, 1),  # no request
    (6, 114, 90, 4, 4, 60, 1),  # ran past its request
    (7, 115, 20, 3, -1, 60, 1),  # no requested processors
    (8, 116, 20, -1, 0, 60, 1),  # no processors at all
    (9, 117, 20, 4, 99, 60, 1),  # larger than the machine
    (10, 90, 20, 8, 2, 60, 1),  # out of order, and given more than it asked for
    (-3, 118, 20, 4, 4, 60, 1),  # no id
    (12, -5, 20, 4, 4, 60, 1),  # submitted before the log begins
    (13, 119, 60, 4, 4, 60, 1),  # ran exactly as long as it asked for
    (14, 120, -1, 4, 4, -1, 5),  # cancelled, without a request
    (15, 121, 0, 4, 4, 0, 1),  # neither run nor request
]


def workload(
    records: Sequence[tuple[int, ...]] = RECORDS, capacity: dict[str, int] | None = None, **extra: list[Any]
) -> Workload:
    table = pd.DataFrame(-1, index=range(len(records)), columns=list(SWF_COLUMNS))
    named = ["job_id", "submit", "run", "procs", "req_procs", "req_time", "status"]
    table[named] = pd.DataFrame([*records], columns=named)
    table["user"] = range(len(records))
    for name, values in extra.items():
        table[name] = values
    return Workload("handmade", table, capacity or {"nodes": 16})


def fates(jobs: Jobs) -> dict[str, tuple[str, int, tuple[int, ...]]]:
    return {why: (r.kind, r.count, r.examples) for why, r in jobs.tally.items()}


def kept(jobs: Jobs) -> list[tuple[int, int, int, int, int]]:
    """Return (id, submit, run, request, nodes), times in seconds."""
    columns = (jobs.id, jobs.submit // S, jobs.run // S, jobs.request // S, jobs.demand[:, 0])
    return [tuple(row) for row in np.column_stack(columns).tolist()]


def test_standard() -> None:
    jobs = select(workload(), LOAD_RULES["standard"])
    assert kept(jobs) == [
        (10, 0, 20, 60, 2),
        (1, 10, 50, 60, 4),
        (5, 23, 30, 30, 4),
        (6, 24, 60, 60, 4),
        (7, 25, 20, 60, 3),
        (-3, 28, 20, 60, 4),
        (13, 29, 60, 60, 4),
    ]
    assert jobs.origin == 90 * S
    assert fates(jobs) == {
        "submitted before the log begins": ("dropped", 1, (12,)),
        "cancelled before it started": ("dropped", 2, (2, 14)),
        "no run time": ("dropped", 1, (3,)),
        "ran for 0 s": ("dropped", 2, (4, 15)),
        "no requested time: run time taken": ("repaired", 1, (5,)),
        "no requested processors: allocated taken": ("repaired", 1, (7,)),
        "no processors": ("dropped", 1, (8,)),
        "ran past its request: killed there": ("noted", 1, (6,)),
        "larger than the machine (nodes: 99 asked, 16 there)": ("dropped", 1, (9,)),
    }


def test_every_record_is_kept_or_dropped_for_one_reason() -> None:
    for rule in LOAD_RULES.values():
        jobs = select(workload(), rule)
        dropped = sum(r.count for r in jobs.tally.values() if r.kind == "dropped")
        assert (rule.name, len(jobs) + dropped) == (rule.name, len(RECORDS))


def test_cancelled_jobs_can_be_kept() -> None:
    jobs = select(workload(), LOAD_RULES["standard"], cancelled="keep")
    assert {(2, 20, 10, 60, 4), (3, 21, 10, 60, 4), (14, 30, 10, 10, 4)} <= set(kept(jobs))
    assert fates(jobs)["never ran: run time set to 10 s"] == ("repaired", 3, (2, 3, 14))
    assert "no run time" not in jobs.tally


def test_cqsim() -> None:
    jobs = select(workload(), LOAD_RULES["cqsim"])
    assert kept(jobs) == [(10, 0, 20, 60, 2), (1, 10, 50, 60, 4), (6, 24, 60, 60, 4), (13, 29, 60, 60, 4)]
    assert fates(jobs) == {
        "job id not positive": ("dropped", 1, (-3,)),
        "submitted before the log begins": ("dropped", 1, (12,)),
        "cancelled before it started": ("dropped", 2, (2, 14)),
        "no run time": ("dropped", 1, (3,)),
        "ran for 0 s": ("dropped", 2, (4, 15)),
        "no requested time": ("dropped", 1, (5,)),
        "no processors": ("dropped", 2, (7, 8)),
        "ran past its request: killed there": ("noted", 1, (6,)),
        "larger than the machine (nodes: 99 asked, 16 there)": ("dropped", 1, (9,)),
    }


def test_cqsim_kills_kept_cancelled_jobs_at_their_request_too() -> None:
    records = [(1, 0, -1, 4, 4, 3, 5), (2, 0, 50, 4, 4, 60, 1)]
    jobs = select(workload(records), LOAD_RULES["cqsim"], cancelled="keep")
    assert kept(jobs) == [(1, 0, 3, 3, 4), (2, 0, 50, 60, 4)]


def test_rlbackfilling() -> None:
    jobs = select(workload(), LOAD_RULES["rlbackfilling"])
    assert kept(jobs) == [  # by id, log times, requests raised, the larger processor count, nobody killed
        (-3, 118, 20, 60, 4),
        (1, 100, 50, 60, 4),
        (2, 110, 10, 60, 4),
        (3, 111, 10, 60, 4),
        (5, 113, 30, 30, 4),
        (6, 114, 90, 90, 4),
        (7, 115, 20, 60, 3),
        (10, 90, 20, 60, 8),
        (13, 119, 60, 60, 4),
        (14, 120, 10, 10, 4),
    ]
    assert fates(jobs)["requested time raised to the run time"] == ("repaired", 3, (5, 6, 14))
    assert fates(jobs)["ran for 0 s"] == ("dropped", 2, (4, 15))
    assert jobs.origin == 0
    assert jobs.logged_run[jobs.id == 14] == -1 * S


def test_schedinspector_and_rlscheduler() -> None:
    inspector = kept(select(workload(), LOAD_RULES["schedinspector"]))
    assert {(1, 100, 50, 50, 4), (4, 112, 0, 0, 4), (6, 114, 90, 90, 4), (14, 120, 10, 10, 4)} <= set(
        inspector
    )
    scheduler = kept(select(workload(), LOAD_RULES["rlscheduler"]))
    assert {(5, 113, 30, 30, 4), (6, 114, 90, 60, 4), (14, 120, 10, 10, 4)} <= set(scheduler)
    assert all(run > 0 for _, _, run, _, _ in scheduler)


def test_ties_of_submission() -> None:
    records = [(5, 10, 1, 1, 1, 1, 1), (3, 10, 1, 1, 1, 1, 1), (4, 0, 1, 1, 1, 1, 1)]
    assert select(workload(records), LOAD_RULES["standard"]).id.tolist() == [4, 3, 5]
    assert select(workload(records), LOAD_RULES["cqsim"]).id.tolist() == [4, 5, 3]
    assert select(workload(records), LOAD_RULES["rlscheduler"]).id.tolist() == [3, 4, 5]


def test_first_counts_kept_jobs() -> None:
    jobs = select(workload(), LOAD_RULES["standard"], first=3)
    assert jobs.id.tolist() == [10, 1, 5]
    assert len(jobs) == 3


def test_rebasing_can_be_overridden() -> None:
    assert select(workload(), LOAD_RULES["standard"], rebase=False).submit[0] == 90 * S
    rebased = select(workload(), LOAD_RULES["rlscheduler"], rebase=True)
    assert (rebased.submit.min(), rebased.origin) == (0, 90 * S)


def test_fractions_of_seconds_become_microseconds() -> None:
    table = workload([(1, 0, 1, 1, 1, 2, 1)]).jobs.astype({"submit": float, "run": float, "req_time": float})
    table["run"] = 0.1 + 0.2
    jobs = select(Workload("fractions", table, {"nodes": 1}), LOAD_RULES["standard"])
    assert jobs.run.tolist() == [300_000]


def test_further_resources_are_demands_and_further_columns_are_kept() -> None:
    records = [(1, 0, 5, 2, 2, 9, 1), (2, 0, 5, 2, 2, 9, 1), (3, 0, 5, 2, 2, 9, 1)]
    more = {"burst_buffer": [7, -1, 11], "guess": [1.5, 2.5, 3.5], "power": [1, 2, 3]}
    jobs = select(workload(records, BUFFERED, **more), LOAD_RULES["standard"])
    assert jobs.resources == ("nodes", "burst_buffer")
    assert jobs.capacity.tolist() == [4, 10]
    assert jobs.demand.tolist() == [[2, 7], [2, 0]]
    assert fates(jobs) == {"larger than the machine (burst_buffer: 11 asked, 10 there)": ("dropped", 1, (3,))}
    assert {k: v.tolist() for k, v in jobs.extra.items()} == {"guess": [1.5, 2.5], "power": [1.0, 2.0]}


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("burst_buffer", 1.5, "0 if the job needs none"),
        ("burst_buffer", float("nan"), "0 if the job needs none"),
        ("burst_buffer", "much", "0 if the job needs none"),
        ("burst_buffer", 2.0**63, "0 if the job needs none"),
        ("req_procs", 1.5, "-1 if it is unknown"),
        ("user", "zoe", "-1 if it is unknown"),
    ],
)
def test_what_is_no_whole_number_is_refused_with_job_and_column(
    name: str, value: float | str, said: str
) -> None:
    with pytest.raises(BridgeError) as caught:
        select(workload(ONE, BUFFERED, **{name: [value]}), LOAD_RULES["standard"])
    assert str(caught.value) == (
        f"handmade: job 7: its {name!r} is {str(value)!r}, which is no whole number\n"
        f"  Mend the column {name!r}: {said}."
    )


def test_whole_numbers_may_be_stored_as_fractions() -> None:
    jobs = select(workload(ONE, BUFFERED, burst_buffer=[3.0]), LOAD_RULES["standard"])
    assert (jobs.demand.tolist(), jobs.demand.dtype) == ([[2, 3]], np.int64)


def test_what_idle_nodes_draw_stands_in_the_header() -> None:
    log = workload(ONE, {"nodes": 4, "power": 500}, power=[100])
    assert select(replace(log, header={"IdlePower": "60"}), LOAD_RULES["standard"]).idle_power == 60
    assert select(workload(ONE), LOAD_RULES["standard"]).idle_power == 0


def test_jobs_that_can_never_run_are_dropped_by_resource_or_refused() -> None:
    records = [(k, 0, 5, 2, 2, 9, 1) for k in range(1, 5)]
    log = workload(records, BUFFERED | {"power": 8}, burst_buffer=[11, 10, 30, 0], power=[0, 9, 9, 0])
    jobs = select(log, LOAD_RULES["standard"])
    assert jobs.id.tolist() == [4]
    assert fates(jobs) == {
        "larger than the machine (burst_buffer: up to 30 asked, 10 there)": ("dropped", 2, (1, 3)),
        "larger than the machine (power: 9 asked, 8 there)": ("dropped", 1, (2,)),
    }
    with pytest.raises(BridgeError) as caught:
        replace(jobs, demand=np.array([[2, 0, 9]]))
    assert str(caught.value) == (
        "handmade, job 4: can never run: it asks for 9 of 'power', the machine has 8\n"
        "  Leave the job out, or give the machine more."
    )


@pytest.mark.parametrize("amount", [-1, 2**63])
def test_a_capacity_beyond_64_bits_is_refused(amount: int) -> None:
    with pytest.raises(BridgeError, match=f"its capacity of 'burst_buffer' is {amount}"):
        machine_capacity(workload(ONE, {"nodes": 4, "burst_buffer": amount}))


def test_the_machine_size_can_be_given_and_nodes_stand_first() -> None:
    two = workload(capacity={"burst_buffer": 10, "nodes": 4})
    assert list(machine_capacity(two).items()) == [("nodes", 4), ("burst_buffer", 10)]
    assert list(machine_capacity(two, 128).items()) == [("nodes", 128), ("burst_buffer", 10)]
    assert 9 in select(workload(), LOAD_RULES["standard"], nodes=99).id


@pytest.mark.parametrize("nodes", [None, 0])
def test_an_unknown_machine_size_is_an_error_with_its_remedy(nodes: int | None) -> None:
    unknown = replace(workload(), capacity={}, source="some.swf")
    with pytest.raises(BridgeError, match=r"some\.swf: the log does not say how many processors"):
        select(unknown, LOAD_RULES["standard"], nodes=nodes)


def test_no_job_left_says_why() -> None:
    records = [(1, 0, 5, 2, 2, -1, 1), (2, 0, 5, 2, 2, -1, 1), (3, 0, -1, 2, 2, 9, 5)]
    with pytest.raises(BridgeError) as caught:
        select(workload(records), LOAD_RULES["cqsim"])
    assert "no job is left under the loading rule 'cqsim'" in str(caught.value)
    assert "2 no requested time" in str(caught.value)
    assert "1 cancelled before it started" in str(caught.value)


def test_what_reading_counted_stays_counted() -> None:
    read = replace(workload(), tally=tally("dropped", "half a line", [4, 5]))
    assert select(read, LOAD_RULES["standard"]).tally["half a line"] == TallyEntry("dropped", 2, (4, 5))


def test_a_part_of_the_jobs() -> None:
    jobs = select(workload(), LOAD_RULES["standard"])
    part = jobs.take(slice(1, 3))
    assert part.id.tolist() == [1, 5]
    assert part.submit.tolist() == [10 * S, 23 * S]
    assert jobs.take(np.array([2, 0])).id.tolist() == [5, 10]
    assert jobs.take(jobs.demand[:, 0] < 4).id.tolist() == [10, 7]
