"""The time-stepped pool on the embedded platform model: the fast world's steps, and honest runs."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from experiment_helpers import PLATFORMS, needs_simgrid, write_peer
from pool_policies import RECIPE, sequences, write_checkpoint

from bridge.base.errors import BridgeError
from bridge.experiment.detailed import run_simulation
from bridge.experiment.prepare import read_valid_platform
from bridge.experiment.spec import Detailed
from bridge.judge.check import check_schedule
from bridge.judge.run import read_jobs, read_run
from bridge.pool.evaluate import PoolEvaluation, build_evaluation, evaluate, prepare
from bridge.pool.jobset import JobSet, read_vasp
from bridge.pool.platform_runs import (
    PoolPolicy,
    PoolTask,
    TwoWorldResult,
    beyond,
    policy_of,
    refuse_one_place,
    simulate,
    to_steps,
    workload_of,
)
from bridge.pool.settings import EvaluationOptions
from bridge.pool.synthetic import synthetic

EXACT, TEACHING = PLATFORMS / "exact-128.xml", PLATFORMS / "teaching-16.xml"
JOBS = synthetic(300, seed=5).jobs
OPTIONS = EvaluationOptions(seed=1, rate=0.5, steps=40, sequences=2, settings=RECIPE.pool)
RECORD: dict[str, Any] = {"command": "bridge validate …", "versions": {}}


def tasks(
    policy: PoolPolicy,
    options: EvaluationOptions = OPTIONS,
    platform: Path = EXACT,
    jobs: JobSet = JOBS,
    **asked: Any,
) -> list[PoolTask]:
    drawn = prepare(jobs, options)
    machine, detailed = read_valid_platform(platform), Detailed(platform=str(platform), **asked)
    return [
        PoolTask("simgrid", policy, options.settings, drawn, s, machine, detailed) for s in range(len(drawn))
    ]


def compared(
    policy: PoolPolicy, fast: PoolEvaluation, some: list[PoolTask], out: Path | None = None
) -> TwoWorldResult:
    found = [simulate(task, fast, RECORD, out=out) for task in some]
    detailed = build_evaluation(some[0].sequences, found, fast.policy, fast.kill, fast.options)
    return TwoWorldResult(policy, fast, detailed)


@needs_simgrid
@pytest.mark.parametrize("text", ["saf", "sjf", "tetris+rule", "learned", "sampled", "ruled"])
def test_every_start_and_kill_is_in_the_step_of_the_fast_world(text: str, tmp_path: Path) -> None:
    kinds = {"learned": ("learned", 6), "sampled": ("learned", 3), "ruled": ("rule", 4)}
    if text in kinds:
        kill, seed = kinds[text]
        text = str(write_checkpoint(tmp_path / "agent", replace(RECIPE, kill=kill), seed))  # type: ignore[arg-type]
    policy = policy_of(text)
    fast = policy.fast(JOBS, OPTIONS)
    both = compared(policy, fast, tasks(policy), tmp_path / "out")
    assert both.differing == []
    document = both.as_dict()
    assert document["difference"] == dict.fromkeys(("slowdown", "completion_time", "kills", "lost_steps"), 0)
    assert document["first_difference"] is None
    assert beyond([document], 0.0) == []
    assert (document["fast"]["kills"] > 0) == (policy.kill != "none")
    for s in (1, 2):
        runs = [read_run(next((tmp_path / "out").glob(f"*/{s}/{world}"))) for world in ("fast", "simgrid")]
        assert runs[0].metrics == runs[1].metrics
        columns = [c for c in runs[0].jobs if c != "allocated_resources"]
        assert runs[0].jobs[columns].equals(runs[1].jobs[columns])
        assert all(check_schedule(run.jobs, run.capacity).ok for run in runs)
        schedule = fast.schedules[s - 1]
        assert runs[1].metrics["jobs.total"] == len(schedule.id)
        assert len(runs[1].jobs) == len(schedule.id) + len(schedule.attempts)
        assert runs[1].metrics["slowdown.mean"] == pytest.approx(schedule.slowdown.mean(), rel=1e-12)
        assert runs[1].metrics["turnaround.mean"] == pytest.approx(
            300 * schedule.completion.mean(), rel=1e-12
        )


@needs_simgrid
def test_the_platforms_own_times(tmp_path: Path) -> None:
    policy = policy_of("saf+rule")
    task = tasks(policy, platform=EXACT)[0]
    done = run_simulation(task, tmp_path)
    assert done.fault is None
    assert "--enable-dynamic-jobs" in done.command and "--mmax" in done.command
    schedule, _ = to_steps(task, done.result.dispatcher)  # type: ignore[arg-type]
    table = read_jobs(tmp_path / "out_jobs.csv").set_index("job_id")
    assert len(table.drop_duplicates("allocated_resources")) > 1
    whole = table[table["final_state"] == "COMPLETED_SUCCESSFULLY"]
    assert len(whole) == len(schedule.id)
    assert whole["execution_time"].to_numpy() % 300 == pytest.approx(299)
    assert (table["starting_time"].to_numpy() % 300 == 1).all()
    killed = table[table["final_state"] == "COMPLETED_KILLED"]
    assert len(killed) == schedule.kills.sum() == 2
    for j in np.flatnonzero(schedule.kills):
        assert whole.loc[f"{j + 1:02}_2", "starting_time"] == 300 * schedule.start[j] + 1
        assert whole.loc[f"{j + 1:02}_2", "workload_name"] == "w0_again"
    rows = json.loads((tmp_path / "decisions.json").read_text())["jobs"]
    again = [row for row in rows if row["attempt"] == 2]
    assert [row["again"] for row in again] == [f"w0!{j + 1:02}" for j in np.flatnonzero(schedule.kills)]
    first = {row["job_id"]: row for row in rows}[again[0]["again"]]
    length = 300 * schedule.length[int(again[0]["again"][3:]) - 1] - 1
    assert first["progress"]["progress"] == pytest.approx(
        (first["finish"] - first["start"]) / length, abs=1e-6
    )


@needs_simgrid
@pytest.mark.parametrize("profile", ["io:0.5", "network:0.3:3"])
def test_contention_changes_steps_and_nothing_is_lost(profile: str, tmp_path: Path) -> None:
    policy = policy_of("saf+rule")
    options = replace(OPTIONS, sequences=1)
    fast = evaluate(JOBS, "saf", "rule", options)
    both = compared(policy, fast, tasks(policy, options, TEACHING, profile=profile), tmp_path)
    document = both.as_dict()
    assert document["differing_starts"] == len(both.differing) > 0
    first = document["first_difference"]
    assert first["fast"] != first["detailed"]
    assert document["detailed"]["slowdown"] > document["fast"]["slowdown"]
    assert beyond([document], 1e-9)[0].startswith("saf+rule: slowdown is ")
    run = read_run(tmp_path / "saf+rule" / "1" / "simgrid")
    assert check_schedule(run.jobs, run.capacity).ok
    schedule = both.detailed.schedules[0]
    assert run.metrics["jobs.total"] == len(schedule.id)
    assert (schedule.end - schedule.start >= schedule.length).all()
    assert run.config["detailed"]["refused"] == 0
    kills = document["detailed"]["kills"]
    assert (run.jobs["final_state"] == "COMPLETED_KILLED").sum() == kills > 0


@needs_simgrid
def test_hosts_far_apart_and_other_placements() -> None:
    policy = policy_of("sjf")
    options = replace(OPTIONS, sequences=1)
    some = tasks(policy, options, PLATFORMS / "cluster-512.xml", placement="topology")
    assert some[0].repeat_command("tcp://*:1")[-6:-4] == ("--platform", "platform.xml")
    both = compared(policy, evaluate(JOBS, "sjf", "none", options), some)
    assert both.differing == []


@needs_simgrid
def test_messages_that_take_time_make_no_difference(tmp_path: Path) -> None:
    slow = tmp_path / "slow.xml"
    link = '<link id="mgmt" bandwidth="1e18Bps" latency="0us"'
    assert EXACT.read_text().count(link) == 1
    slow.write_text(EXACT.read_text().replace(link, link.replace("0us", "5ms")))
    policy, options = policy_of("saf+rule"), replace(OPTIONS, sequences=1)
    out = tmp_path / "out"
    both = compared(policy, evaluate(JOBS, "saf", "rule", options), tasks(policy, options, slow), out)
    assert both.differing == [] and both.as_dict()["detailed"]["kills"] == 2
    late = read_jobs(out / "saf+rule" / "1" / "simgrid" / "detailed" / "out_jobs.csv")["starting_time"] % 300
    assert late.between(1.005, 1.2).all()


@needs_simgrid
def test_the_logged_jobs(tmp_path: Path, vasp_path: Path) -> None:
    jobs = read_vasp(vasp_path)
    options, policy = EvaluationOptions(sequences=1), policy_of("saf+rule")
    fast = evaluate(jobs, "saf", "rule", options)
    both = compared(policy, fast, tasks(policy, options, jobs=jobs), tmp_path)
    assert both.differing == []
    assert both.as_dict()["fast"]["kills"] > 5


def test_a_sequence_as_a_workload() -> None:
    drawn = sequences()
    steps, index = drawn.arrivals_of(1)
    made = workload_of(drawn, 1, RECIPE.pool)
    table, jobs = made.jobs, drawn.jobs
    assert made.capacity == {"nodes": 12}
    assert table["job_id"].tolist() == list(range(1, len(steps) + 1))
    assert table["submit"].tolist() == (300 * steps).tolist()
    assert table["run"].tolist() == (300 * jobs.length[index] - 1).tolist()
    assert table["req_procs"].tolist() == jobs.units[index].tolist()
    assert table["believed"].tolist() == jobs.believed[index].tolist()
    assert table["logged"].tolist() == jobs.id[index].tolist()
    for series, k in zip(table["beliefs"], index, strict=True):
        whole = series + [series[-1]] * (jobs.beliefs.shape[1] - len(series))
        assert whole == jobs.beliefs[k].tolist()
        assert len(series) == 1 or series[-2] != series[-1]


def test_workload_files_are_batsims(tmp_path: Path) -> None:
    task = tasks(policy_of("saf"))[0]
    task.write_inputs(tmp_path)
    document = json.loads((tmp_path / "workload.json").read_text())
    assert (document["nb_res"], len(document["jobs"])) == (12, task.n_jobs)
    job = document["jobs"][0]
    assert set(job) == {"id", "subtime", "res", "profile", "logged", "believed", "beliefs"}
    assert job["subtime"] % 300 == 0
    delay = document["profiles"][job["profile"]]
    assert delay["type"] == "delay" and delay["delay"] % 300 == 299
    assert (tmp_path / "platform.xml").read_bytes() == EXACT.read_bytes()


def test_what_the_platform_program_is_told() -> None:
    nobody, rule = tasks(policy_of("saf"))[0], tasks(policy_of("saf+rule"), options=OPTIONS)[0]
    assert nobody.detailed.options == ()
    assert rule.detailed.options == ("--enable-dynamic-jobs",)
    composed = tasks(policy_of("saf+rule"), options=OPTIONS, profile="io:0.2")[0]
    assert composed.detailed.options == ("--enable-dynamic-jobs", "--enable-profile-reuse")
    given = tasks(policy_of("saf+rule"), options=OPTIONS)[0]
    asked = replace(given.detailed_options, options=("--enable-dynamic-jobs", "--acknowledge-dynamic-jobs"))
    assert replace(given, detailed_options=asked).detailed == asked
    assert (rule.hosts, rule.nodes) == (128, 12)
    words = rule.repeat_command("tcp://*:28000")
    told = "bridge decide saf+rule --scheduler pool --pool-units 12 --pool-slots 3"
    where = "--placement first-fit --socket tcp://*:28000 --out again/decisions.json"
    assert " ".join(words) == f"{told} {where}"


@needs_simgrid
def test_acknowledged_attempts_make_no_difference() -> None:
    policy = policy_of("saf+rule")
    options = replace(OPTIONS, sequences=1)
    more = ("--acknowledge-dynamic-jobs", "--enable-profile-reuse", "--forward-profiles-on-submission")
    fast = evaluate(JOBS, "saf", "rule", options)
    some = [
        replace(task, detailed_options=replace(task.detailed_options, options=more))
        for task in tasks(policy, options)
    ]
    both = compared(policy, fast, some)
    assert both.differing == [] and both.as_dict()["detailed"]["kills"] == 2


def test_policies_by_name(tmp_path: Path) -> None:
    expected = ("none", "rule", "none")
    assert (policy_of("tetris*").kill, policy_of("sjf+rule").kill, policy_of("sjf+none").kill) == expected
    for text in ("fcfs", "random", "saf+", "saf+easy", "+rule", "nowhere/agent"):
        with pytest.raises(BridgeError, match="is no policy") as error:
            policy_of(text)
        assert error.value.where == f"policy {text!r}"
    with pytest.raises(BridgeError, match="is no checkpoint"):
        policy_of(str(tmp_path))
    agent = policy_of(str(write_checkpoint(tmp_path / "agents" / "mine", RECIPE, 2)))
    assert (agent.name, agent.kill) == ("mine", "none")
    assert agent.words(RECIPE.pool) == (str(tmp_path / "agents" / "mine"), "--estimator", "running")


def test_a_folder_may_have_a_heuristics_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("saf", "saf+rule"):
        (tmp_path / name).mkdir()
        assert policy_of(name).agent is None
    write_checkpoint(tmp_path / "sjf", RECIPE, 2)
    assert policy_of("sjf").agent is not None


def test_policies_whose_runs_would_lie_in_one_folder(tmp_path: Path) -> None:
    one, other = PoolPolicy("agents/x", "none"), PoolPolicy("agents_x", "none")
    refuse_one_place(tmp_path, [one, policy_of("saf"), policy_of("saf+rule")])
    with pytest.raises(BridgeError, match="agents_x and of agents/x would lie in one folder") as error:
        refuse_one_place(tmp_path, [one, other])
    assert error.value.where == str(tmp_path / "agents_x")


def test_a_platform_with_too_few_hosts() -> None:
    large = replace(OPTIONS, settings=replace(RECIPE.pool, units=17))
    with pytest.raises(BridgeError, match="the platform has 16 compute hosts, the pool 17 units"):
        tasks(policy_of("saf"), large, TEACHING)[0].check()


def test_a_failed_simulation_leaves_its_files(tmp_path: Path) -> None:
    program = write_peer(tmp_path / "peer", "print('out of luck'); sys.exit(7)")
    policy, out = policy_of("saf"), tmp_path / "out"
    fast = evaluate(JOBS, "saf", "none", OPTIONS)
    with pytest.raises(BridgeError, match="ended with status 7 before its first message") as error:
        simulate(tasks(policy, program=str(program))[0], fast, RECORD, out=out)
    assert "out of luck" in error.value.remedy
    kept = {path.name for path in (out / "saf" / "1" / "simgrid" / "detailed").iterdir()}
    assert {"workload.json", "platform.xml", "decisions.json", "platform.log", "again.sh"} <= kept


def test_without_dynamic_jobs_a_policy_that_kills_is_refused(tmp_path: Path) -> None:
    program = write_peer(tmp_path / "peer", "ask(BEGIN)")
    task = tasks(policy_of("saf+rule"), program=str(program))[0]
    (tmp_path / "folder").mkdir()
    done = run_simulation(task, tmp_path / "folder")
    assert done.fault is not None and "--enable-dynamic-jobs is missing" in done.fault.what
    assert "--enable-dynamic-jobs" in done.fault.remedy
