"""`bridge why`: every sentence and fact about the small log's jobs, whose schedule is known."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from cli_commands import LINES, run_ok, run_refused

from bridge.judge.jobs import JOBS_COLUMNS
from bridge.judge.run import read_run, write_run


@pytest.fixture
def run(tiny: str) -> str:
    run_ok("replay", tiny, "--out", "run")
    return "run"


def facts(*words: object) -> dict[str, Any]:
    """Run `bridge why WORDS… --json`."""
    found: dict[str, Any] = json.loads(run_ok("why", *words, "--json"))
    return found


SAID = {
    1: """\
Job 1 asked for 2 of 4 nodes at 0 s and started at 0 s, after 0 s.
It started at once: 4 nodes free, 0 jobs waiting.
It started as head of the queue.
""",
    2: """\
Job 2 asked for 4 of 4 nodes at 10 s and started at 100 s, after 90 s.
When it came: 2 nodes free (too few), 0 jobs waiting.
Most node-time while it waited was held by 1 (2 nodes, until 100 s), 3 (2 nodes, until 90 s), \
5 (1 node, until 100 s).
As blocked head of the queue it was first reserved for 100 s, and started then.
Just before its start: 1 node free; then ended 1 (2 nodes), 5 (1 node).
It started as head of the queue.
2 later jobs started before it: 3, 5.
Backfilled past it while it was the blocked head: 3, 5.
""",
    3: """\
Job 3 asked for 2 of 4 nodes at 20 s and started at 20 s, after 0 s.
It started at once: 2 nodes free, 1 job waiting.
It was backfilled past job 2, the blocked head.
""",
    4: """\
Job 4 asked for 1 of 4 nodes at 30 s and started at 150 s, after 120 s.
When it came: 0 nodes free (too few), 1 job waiting.
Most node-time while it waited was held by 2 (4 nodes, until 150 s), 1 (2 nodes, until 100 s), \
3 (2 nodes, until 90 s), 5 (1 node, until 100 s).
As blocked head of the queue it was first reserved for 160 s, and started 10 s earlier.
Just before its start: 0 nodes free; then ended 2 (4 nodes).
It started as head of the queue.
1 later job started before it: 5.
""",
    5: """\
Job 5 asked for 1 of 4 nodes at 40 s and started at 90 s, after 50 s.
When it came: 0 nodes free (too few), 2 jobs waiting.
Most node-time while it waited was held by 3 (2 nodes, until 90 s), 1 (2 nodes, until 100 s).
Just before its start: 0 nodes free; then ended 3 (2 nodes).
It was backfilled past job 2, the blocked head.
""",
}


@pytest.mark.parametrize("job", SAID)
def test_says_why(run: str, job: int) -> None:
    assert run_ok("why", run, job) == SAID[job]


def test_facts_as_json(run: str) -> None:
    assert facts(run, 2) == {
        "job": "2",
        "nodes": 4,
        "submitted": 10,
        "started": 100,
        "ended": 150,
        "free_at_submit": 2,
        "ahead": 0,
        "kind": "head",
        "overtook": "",
        "promised": 100,
        "freed_by": [["1", 2], ["5", 1]],
        "free_before": 1,
        "blocked_by": [["1", 2, 100], ["3", 2, 90], ["5", 1, 100]],
        "overtaken_by": ["3", "5"],
        "backfilled_past": ["3", "5"],
        "also_asked": {},
    }
    found = facts(run, 5)
    assert (found["kind"], found["overtook"], found["promised"]) == ("backfilled", "2", None)


def test_waited_although_nodes_were_free(tiny: str) -> None:
    # without backfilling 3 waits behind 2 although 2 nodes are free
    run_ok("replay", tiny, "--backfill", "none", "--out", "none")
    said = run_ok("why", "none", 3)
    assert "When it came: 2 nodes free (enough, but other jobs stood before it), 1 job waiting." in said
    assert "It started as head of the queue." in said
    assert "backfilled" not in said


def test_leading_zeros_do_not_matter(run: str) -> None:
    assert run_ok("why", run, "002") == run_ok("why", run, 2)


@pytest.mark.parametrize("job", ["6", "", "0", "2x", "x"])
def test_unknown_job(run: str, job: str) -> None:
    assert run_refused("why", run, job) == (
        f"job {job!r}: no such job in the run\n  jobs.csv lists the run's jobs, first column.\n"
    )


def test_no_run(run: str, folder: Path) -> None:
    assert run_refused("why", "nowhere", 1).startswith("nowhere: no such run folder\n")
    assert run_refused("why", "run/jobs.csv", 1).startswith("run/jobs.csv: is a file, not a run folder\n")
    (folder / "run/jobs.parquet").unlink()
    assert run_refused("why", run, 1) == "run: not a run folder: jobs.parquet is missing\n"


def batsim_style(run: str, **columns: Any) -> None:
    found = read_run(run)
    write_run(replace(found, jobs=found.jobs[list(JOBS_COLUMNS)].assign(**columns)), "plain")


def test_a_run_without_our_own_columns(run: str) -> None:
    batsim_style(run)
    assert run_ok("why", "plain", 2) == "".join(
        line + "\n"
        for line in SAID[2].splitlines()
        if "reserved" not in line and "head of the queue" not in line and "Backfilled" not in line
    )
    assert run_ok("why", "plain", 5).endswith("then ended 3 (2 nodes).\n")
    found = facts("plain", 5)
    assert (found["kind"], found["overtook"], found["promised"]) == ("", "", None)


def test_a_rejected_job(run: str) -> None:
    start = [20.0, 0.0, 90.0, 100.0, float("nan")]
    batsim_style(run, starting_time=start, final_state=[*["COMPLETED_SUCCESSFULLY"] * 4, "REJECTED"])
    assert run_refused("why", "plain", 4).startswith("job '4': the job never started\n")
    assert facts("plain", 2)["overtaken_by"] == ["3", "5"]


def test_a_run_that_does_not_tell_its_nodes(run: str) -> None:
    found = read_run(run)
    write_run(replace(found, capacity={"power": 5}), "odd")
    assert run_refused("why", "odd", 1) == (
        "odd/run.toml: the run does not tell the machine's nodes\n"
        "  Repeat the run with the command in the file.\n"
    )


def test_further_resources(folder: Path) -> None:
    (folder / "log.csv").write_text(
        "# capacity: nodes=4 burst_buffer=10\njob_id,submit,run,procs,req_time,burst_buffer\n"
        "1,0,100,1,100,8\n2,10,50,1,50,5\n"
    )
    run_ok("replay", "log.csv", "--out", "run")
    said = run_ok("why", "run", 2)
    assert said.startswith("Job 2 asked for 1 of 4 nodes and 5 burst_buffer at 10 s and started at 100 s")
    assert facts("run", 2)["also_asked"] == {"burst_buffer": 5}


def test_many_jobs_are_counted_not_listed(folder: Path) -> None:
    # eight short jobs, two at a time on the two nodes that are free until 100
    short = "".join(LINES[4].replace("5 1040", f"{k} 1040", 1) for k in range(11, 19))
    (folder / "log.swf").write_text("; MaxProcs: 4\n" + "".join(LINES[:2]) + short)
    run_ok("replay", "log.swf", "--out", "run")
    assert run_ok("why", "run", 2).splitlines()[-2:] == [
        "8 later jobs started before it: 11, 12, 13, 14, 15 and 3 more.",
        "Backfilled past it while it was the blocked head: 11, 12, 13, 14, 15 and 3 more.",
    ]


def test_a_job_that_stands_twice_in_the_run_is_refused(run: str) -> None:
    found = read_run(run)
    twice = pd.concat([found.jobs, found.jobs.iloc[[1]]])
    write_run(replace(found, jobs=twice), "twice")
    said = run_refused("why", "twice", twice["job_id"].iloc[-1])
    assert "the job stands in the run 2 times\n  `bridge check` names all such jobs.\n" in said
    assert run_ok("why", "twice", twice["job_id"].iloc[0]).startswith("Job ")
