"""Jobs whose ids are texts: the same ones in both worlds, in the judge, and in a state taken of a run."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from experiment_helpers import in_both_worlds, needs_simgrid

from bridge.experiment.prepare import PreparedExperiment, beliefs, prepare_experiment
from bridge.experiment.run import run_fast
from bridge.experiment.spec import Detailed, Experiment
from bridge.forecasting.run_state import state_of_run
from bridge.judge.check import check_schedule
from bridge.judge.compare import compare_runs
from bridge.judge.why import explain
from bridge.wire.events import JobSubmitted
from bridge.wire.times import MICRO
from bridge.workload.catalogue import read_log
from bridge.worlds.batsim.estimates import EstimateLookup, Numbering, estimate_requested
from bridge.worlds.batsim.wire_scheduler import by_submission
from bridge.worlds.fast.scheduler_config import SchedulerConfig

#: id, submission, hosts, walltime, run time. By place in the file each would have another's request.
MIXED = [
    *(("x", 0, 1, 100, 0), ("3", 1, 16, 100, 7), ("2", 1, 16, 10, 5), ("4", 0, 16, 50, 20)),
    *(
        ("02", 1, 16, 20, 6),
        ("b", 1, 16, 10, 5),
        ("a", 1, 16, 10, 5),
        ("10", 2, 4, 30, 30),
        ("9", 2, 4, 30, 29),
    ),
]


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    """A Batsim workload; the run time of job x is known to nobody."""
    profiles = {f"d{run}": {"type": "delay", "delay": run} for _, _, _, _, run in MIXED if run}
    jobs = [
        {"id": name, "subtime": submit, "res": hosts, "walltime": limit, "profile": f"d{run}" if run else "p"}
        for name, submit, hosts, limit, run in MIXED
    ]
    profiles["p"] = {"type": "parallel_homogeneous", "cpu": 1e9, "com": 0}  # type: ignore[dict-item]
    path = tmp_path / "mixed.json"
    path.write_text(json.dumps({"nb_res": 16, "jobs": jobs, "profiles": profiles}))
    return path


def task(log: Path, on: str = "fast", **setup: str) -> PreparedExperiment:
    detailed = Detailed("teaching-16") if on == "simgrid" else Detailed()
    return prepare_experiment(Experiment(str(log), on=on, setup=SchedulerConfig(**setup), detailed=detailed))  # type: ignore[arg-type]


@needs_simgrid
@pytest.mark.parametrize("estimator", ["", "actual"])
def test_both_worlds_start_the_same_jobs_at_the_same_times(
    mixed: Path, tmp_path: Path, estimator: str
) -> None:
    asked = task(mixed, "simgrid", order="sjf", backfill="easy", estimator=estimator)
    fast, made = in_both_worlds(asked, tmp_path / "simulation")
    for run in (fast, made):
        assert sorted(run.jobs["job_id"]) == ["02", "10", "2", "3", "4", "9", "a", "b"]
    a, b = (run.jobs.set_index("job_id").sort_index() for run in (fast, made))
    for column in ("requested_number_of_resources", "requested_time", "start_kind", "overtook"):
        assert a[column].tolist() == b[column].tolist(), column


def test_ties_in_the_fast_world_are_by_number_then_by_the_files_order(mixed: Path) -> None:
    jobs = run_fast(task(mixed, order="fcfs", backfill="none")).jobs
    order = jobs.sort_values(["starting_time", "finish_time"])["job_id"].tolist()
    assert order == ["4", "2", "3", "02", "b", "a", "9", "10"]


def test_the_wire_knows_jobs_by_their_texts(mixed: Path) -> None:
    recorded, facts = beliefs(task(mixed, estimator="actual").prepared)
    events = {
        name: JobSubmitted(submit * MICRO, f"w0!{name}", hosts, submit * MICRO, limit * MICRO, "p", {}, None)
        for name, submit, hosts, limit, _ in MIXED[1:]
    }
    for name, _, _, _, run in MIXED[1:]:
        assert recorded(events[name]).order == run * MICRO
    ordered = sorted(events, key=lambda name: by_submission(events[name], facts.numbering))
    assert ordered == ["4", "2", "3", "02", "b", "a", "9", "10"]
    assert estimate_requested(events["02"]).order == 20 * MICRO


def test_numbers_of_a_log_are_known_whatever_their_zeros() -> None:
    assert [Numbering()(name) for name in ("w0!0042", "w0!x", "0", f"w0!{2**63 - 1}", f"w0!{2**63}")] == [
        *(42, None, 0, 2**63 - 1, None)
    ]
    assert Numbering({"01": 1, "1": 2})("w0!01") == 1
    assert Numbering({"01": 1, "1": 2})("w0!001") is None
    assert EstimateLookup({}).numbering == Numbering()


def test_the_judge_tells_01_from_1(tmp_path: Path) -> None:
    rows = "01,0,4,5,9\n1,0,4,7,9\n2,1,2,3,9\n"
    path = tmp_path / "a.csv"
    path.write_text(f"# capacity: nodes=4\njob_id,submit,procs,run,req_time\n{rows}")
    run = run_fast(task(path, order="fcfs", backfill="none"))
    assert check_schedule(run.jobs, run.capacity, workload=read_log(str(path))).ok
    assert [explain(run, name).started for name in ("1", "01", "2")] == [0, 7, 12]
    part = replace(run, jobs=run.jobs[run.jobs["job_id"] != "1"])
    found = compare_runs([run, part]).jobs[0]
    assert (found.common, found.only_base, found.only_here) == (2, 1, 0)
    assert (found.differing_starts, found.examples) == (0, ("1",))


def test_a_state_of_a_run_has_the_texts(mixed: Path) -> None:
    run = run_fast(task(mixed, order="fcfs", backfill="none"))
    state = state_of_run(run, 3.0)
    assert state.id == ("4", "2", "3", "02", "b", "a", "9", "10")
