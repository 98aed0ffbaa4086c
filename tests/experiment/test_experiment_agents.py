"""Experiments in which an agent decides: in the fast world, on the platform model, and what conflicts."""

import json
import os
from pathlib import Path

import pytest
from cli_commands import run_bridge, run_ok, run_refused
from experiment_helpers import needs_simgrid

from bridge.base.errors import BridgeError
from bridge.experiment.prepare import prepare_experiment as load_task
from bridge.experiment.spec import Experiment, parse, read_document
from bridge.judge.run import read_run
from bridge.learn.agent import replay
from bridge.learn.checkpoint import load
from bridge.workload.catalogue import resolve
from bridge.workload.formats import read
from bridge.worlds.fast.scheduler_config import SchedulerConfig


@pytest.mark.parametrize("which", ["backfiller", "inspector"])
def test_a_run_in_the_fast_world(which: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    folder: Path = request.getfixturevalue(which)
    out = tmp_path / "run"
    words = ["run", "--workload", "bundled-128", "--agent", str(folder), "--first", "200", "--out", str(out)]
    run_ok(*words)
    made, agent = read_run(out), load(folder)
    own = agent.recipe.setup
    setup = SchedulerConfig(own.order, own.backfill, first=200)
    jobs = setup.select(read(resolve("bundled-128")))
    expected = replay(agent, setup.build_scenario(jobs, agent.recipe.policy()))
    starts = made.jobs.sort_values("job_id", key=lambda c: c.astype(int))["starting_time"]
    assert (starts * 1e6).tolist() == pytest.approx(expected.start.tolist())
    assert made.config["experiment"]["agent"] == str(folder)
    assert (made.config["order"], made.config["backfill"]) == (own.order, own.backfill)
    assert made.config["world"] == "fast"
    # its command repeats it
    assert made.config["command"].startswith("bridge run --workload bundled-128 --agent ")
    again = tmp_path / "again"
    run_ok(*made.config["command"].split()[1:], "--out", again)
    assert read_run(again).jobs.equals(made.jobs)


def test_a_run_is_named_after_its_agent(backfiller: Path) -> None:
    from bridge.experiment.run import run_fast

    made = run_fast(
        load_task(Experiment("bundled-128", agent=str(backfiller), setup=SchedulerConfig(first=60)))
    )
    assert made.name == "bundled-128 backfiller"


def test_a_file_names_its_agent_from_its_own_folder(
    backfiller: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    beside = os.path.relpath(backfiller, tmp_path)
    (tmp_path / "e.toml").write_text(
        f'workload = "bundled-128"\nagent = {json.dumps(beside)}\n[setup]\nfirst = 60\n'
    )
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    task = load_task(parse(read_document(tmp_path / "e.toml"), "e.toml"))
    assert task.agent is not None
    assert task.agent.folder.resolve() == backfiller.resolve()
    run_ok("run", tmp_path / "e.toml", "--json")


@needs_simgrid
def test_both_worlds_agree_start_for_start(
    backfiller: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["validate", backfiller, "fcfs+easy", "--platform", "sp2-128", "--first", "60"]
    told = run_bridge(*words, "--json", "--tolerance", "1e-9", "--out", "validation")
    assert "bridge: warning: backfiller has learnt on 60 of these 60 jobs" in told.err
    assert "bridge: both worlds agree within the tolerance\n" in told.err
    found = json.loads(told.out)
    assert found["inputs"]["workload"] == "bundled-128"  # the one that the agent has learnt on
    assert found["inputs"]["jobs"] == 60
    assert found["problems"] == []
    assert [policy["jobs"]["differing_starts"] for policy in found["policies"]] == [0, 0]
    assert [policy["jobs"]["common"] for policy in found["policies"]] == [60, 60]
    places = [path.name for path in Path("validation").iterdir()]
    assert "fcfs+easy" in places
    assert any("backfiller" in place for place in places)
    runs = [
        read_run(Path("validation") / place / world)
        for place in places
        if "backfiller" in place
        for world in ("fast", "simgrid")
    ]
    assert [run.config["experiment"]["agent"] for run in runs] == [str(backfiller)] * 2


@pytest.mark.parametrize(
    ("setup", "where", "said"),
    [
        (SchedulerConfig(order="sjf"), "order 'sjf'", "is decided by the agent .*: fcfs"),
        (SchedulerConfig(backfill="none"), "backfill 'none'", "is decided by the agent .*: easy"),
        (SchedulerConfig(candidate_order="sjf"), "candidate_order 'sjf'", "is decided by the agent .*: none"),
        (
            SchedulerConfig(protocol="cqsim"),
            "backfiller",
            "has learnt under the protocol standard, not cqsim",
        ),
    ],
)
def test_what_contradicts_the_agent_is_refused(
    backfiller: Path, setup: SchedulerConfig, where: str, said: str
) -> None:
    with pytest.raises(BridgeError, match=said) as error:
        load_task(Experiment("bundled-128", agent=str(backfiller), setup=setup))
    assert where in error.value.where
    assert error.value.remedy


def test_another_protocol_can_be_wanted(backfiller: Path) -> None:
    crossing = Experiment(
        "bundled-128",
        agent=str(backfiller),
        cross_protocol=True,
        setup=SchedulerConfig(protocol="cqsim", first=60),
    )
    task = load_task(crossing)
    assert task.prepared.compiled.protocol.name == "cqsim"
    assert "--cross-protocol" in crossing.command()


def test_an_estimator_of_ones_own_goes_with_an_agent(backfiller: Path) -> None:
    experiment = Experiment(
        "bundled-128", agent=str(backfiller), setup=SchedulerConfig(estimator="actual", first=60)
    )
    task = load_task(experiment)
    assert task.setup.estimator == "actual"
    assert task.prepared.oracle


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", "--workload", "bundled-128", "--agent", "gone"], "gone: is no checkpoint"),
        (
            ["validate", "gone", "--workload", "bundled-128", "--platform", "sp2-128"],
            "no folder of a trained",
        ),
        (
            ["validate", "empty", "--workload", "bundled-128", "--platform", "sp2-128"],
            "empty: is no checkpoint",
        ),
        (["validate", "empty", "--platform", "sp2-128"], "no workload is named"),
    ],
)
def test_no_checkpoint_is_one_error(
    words: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    assert said in run_refused(*words)
