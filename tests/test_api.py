"""The public face: data frames, the same numbers as the command line, and an import that loads nothing."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from simgrid_available import needs_simgrid
from subprocess_python import run_python

import bridge
from bridge.base.errors import BridgeError
from bridge.cli.main import cli


def test_importing_loads_neither_numbers_nor_networks() -> None:
    heavy = "{'numpy', 'pandas', 'torch', 'click', 'zmq', 'numba', 'gymnasium'}"
    code = f"import sys, bridge; bridge.__version__; print(sorted({heavy} & set(sys.modules)))"
    assert run_python(code).stdout.strip() == "[]"


def test_the_face_is_what_it_says() -> None:
    assert set(bridge.__all__) <= set(dir(bridge))
    assert all(callable(getattr(bridge, name)) for name in bridge.__all__)
    with pytest.raises(AttributeError, match="'nosuch'"):
        _ = bridge.nosuch


def test_replay_is_that_of_the_command_line() -> None:
    run = bridge.replay("bundled-128", "sjf+easy", first=300)
    command = ["replay", "bundled-128", "--policy", "sjf+easy", "--first", "300", "--json"]
    told = json.loads(CliRunner().invoke(cli, command).stdout)
    assert run.metrics["wait.mean"] == told["wait.mean"]
    assert run.oracle is told["oracle"] is False
    assert len(run.jobs) == 300
    assert run.jobs["waiting_time"].mean() == pytest.approx(told["wait.mean"])
    assert run.capacity == {"nodes": 128}


def test_evaluate_is_that_of_the_command_line() -> None:
    table = bridge.evaluate("bundled-128", ["fcfs+easy", "sjf+easy"], sequences=60, length=64)
    command = ["evaluate", "bundled-128", "--policy", "fcfs+easy", "--policy", "sjf+easy"]
    told = json.loads(
        CliRunner().invoke(cli, [*command, "--sequences", "60", "--length", "64", "--json"]).stdout
    )
    assert list(table.index) == ["fcfs+easy", "sjf+easy"]
    for (name, row), one in zip(table.iterrows(), told["policies"], strict=True):
        expected = (one["mean"], one["ci95"]["low"], one["ci95"]["high"])
        assert (row["mean"], row["low"], row["high"]) == expected
        assert table.attrs["values"][name] == one["values"]
    assert table["verdict"].tolist() == ["", "better"]
    assert table.loc["sjf+easy", "difference"] == told["policies"][1]["difference"]["mean"]
    assert (table.attrs["sequences"], table.attrs["metric"]) == (60, "bsld")


def test_the_pool_is_evaluated_without_a_log() -> None:
    table = bridge.evaluate("", ["saf+none", "saf+rule"], sequences=2)
    assert list(table.index) == ["saf+none", "saf+rule"]
    assert table.loc["saf+none", "kills"] == 0
    assert table.loc["saf+rule", "kills"] > 0


def test_environments_by_name() -> None:
    env = bridge.make_env("bridge/Inspect-v0", length=32)
    observation, _ = env.reset(seed=1)
    assert observation.shape == env.observation_space.shape
    env.close()


def test_an_agent_of_the_zoo_is_found_by_name_and_by_folder() -> None:
    agent = bridge.load_agent("zoo/rlbackfilling-sdsc-sp2")
    assert agent.recipe.name == "rlbackfilling"
    assert bridge.load_agent(agent.folder).recipe == agent.recipe


def test_an_agent_of_the_pool_is_loaded_and_judged() -> None:
    agent = bridge.load_agent(Path(__file__).parent / "golden" / "pool-greedy")
    assert (agent.recipe.scheduler, agent.recipe.decision, agent.mode) == ("pool", "tick", "greedy")
    assert bridge.evaluate(agent, ["saf+none"], sequences=2).loc["saf+none", "kills"] == 0


@pytest.mark.parametrize(
    ("log", "policy", "said"),
    [("nosuch.swf", "sjf+easy", "nosuch.swf"), ("bundled-128", "sjff", "Did you mean sjf")],
)
def test_mistakes_are_named(log: str, policy: str, said: str) -> None:
    with pytest.raises(BridgeError, match=said):
        bridge.replay(log, policy)


@pytest.mark.parametrize("what", [None, 5, ["fcfs"]])
def test_what_is_no_name(what: Any) -> None:
    for call in (
        lambda: bridge.replay("bundled-128", what),
        lambda: bridge.replay(what),
        lambda: bridge.evaluate("bundled-128", [what]),
        lambda: bridge.load_agent(what),
        lambda: bridge.decide(what),
    ):
        with pytest.raises(TypeError, match="is given by its name or path, not by"):
            call()


@pytest.mark.parametrize("seed", [-1, 2**63, 1.5, None, "x", True])
def test_a_seed_that_is_none_leaves_nothing_behind(tmp_path: Path, seed: Any) -> None:
    with pytest.raises(BridgeError, match="seed cannot be"):
        bridge.train("rlbackfilling", "bundled-128", tmp_path / "agent", epochs=1, seed=seed)
    assert not (tmp_path / "agent").exists()


def test_unknown_options_are_refused() -> None:
    with pytest.raises(BridgeError, match="bakfill"):
        bridge.replay("bundled-128", bakfill="easy")
    with pytest.raises(BridgeError, match="sequenzes"):
        bridge.evaluate("bundled-128", ["sjf+easy"], sequenzes=5)


def test_options_of_the_other_scheduler_are_refused_and_not_ignored(tmp_path: Path) -> None:
    with pytest.raises(BridgeError, match="event-driven scheduler has no units"):
        bridge.train("rlbackfilling", units=4, epochs=1, out=tmp_path / "a")
    with pytest.raises(BridgeError, match="time-stepped pool has no backfill"):
        bridge.train("rlschert", backfill="easy", epochs=1, out=tmp_path / "a")
    with pytest.raises(BridgeError, match="event-driven scheduler has no slots"):
        bridge.evaluate("bundled-128", ["sjf+easy"], slots=3)
    assert not (tmp_path / "a").exists()


def test_no_agent_there(tmp_path: Path) -> None:
    with pytest.raises(BridgeError, match="agent"):
        bridge.load_agent(tmp_path)


def test_training_goes_on_where_it_was(tmp_path: Path) -> None:
    options = {"order": "sjf", "seed": 3, "out": tmp_path / "agent"}
    agent = bridge.train("rlbackfilling", "bundled-128", epochs=1, **options)
    assert (agent.recipe.setup.order, agent.recipe.training.epochs, agent.origin.seed) == ("sjf", 1, 3)
    assert bridge.train("rlbackfilling", "bundled-128", epochs=2, **options).recipe.training.epochs == 2
    with pytest.raises(BridgeError, match="was trained with"):
        bridge.train("rlbackfilling", "bundled-128", epochs=2, **(options | {"order": "saf"}))
    with pytest.raises(BridgeError, match="epoch"):
        bridge.train("rlbackfilling", epochss=2)
    table = bridge.evaluate(agent, ["sjf+easy"], sequences=3)
    assert list(table.index) == ["sjf+easy", agent.name]


def test_a_workload_is_read_whole() -> None:
    workload = bridge.read_workload("bundled-128")
    assert workload.capacity == {"nodes": 128}
    assert {"job_id", "submit", "run", "req_time"} <= {*workload.jobs.columns}
    assert len(workload.jobs) > 1000


def test_a_cluster_is_read_by_name_or_file(tmp_path: Path) -> None:
    site = bridge.read_cluster("teaching-site")
    assert len(site.partitions) > 1
    file = tmp_path / "site.toml"
    file.write_text('[[nodes]]\nname = "n"\ncount = 4\ncores = 8\n')
    (group,) = bridge.read_cluster(file).nodes
    assert (group.name, group.count, group.cores) == ("n", 4, 8)
    with pytest.raises(BridgeError, match="teaching-site"):
        bridge.read_cluster("no-such-site")


def test_malformed_lines_are_refused_or_dropped(tmp_path: Path) -> None:
    log = tmp_path / "two.swf"
    log.write_text("; MaxProcs: 4\n1 0 -1 10 1 -1 -1 1 20 -1 1 1 1 -1 1 -1 -1 -1\nno record\n")
    with pytest.raises(BridgeError, match=r"two\.swf"):
        bridge.read_workload(log)
    assert bridge.read_workload(log, "drop").jobs["job_id"].tolist() == [1]
    with pytest.raises(BridgeError, match="Choose refuse or drop"):
        bridge.read_workload(log, "keep")


def test_predict_is_that_of_the_command_line(tmp_path: Path) -> None:
    result = bridge.predict("bundled-128", "history", column="guess")
    result.write(tmp_path / "a.parquet")
    command = ["predict", "bundled-128", "--model", "history", "--column", "guess"]
    CliRunner().invoke(cli, [*command, "--out", str(tmp_path / "b.parquet")], catch_exceptions=False)
    assert (tmp_path / "a.parquet").read_bytes() == (tmp_path / "b.parquet").read_bytes()
    assert result.column == "guess"
    assert list(result.accuracies) == ["guess", "requested"]
    assert result.sharpness is None
    with pytest.raises(BridgeError, match="no room for predictions"):
        result.write(tmp_path / "a.swf")


@pytest.mark.parametrize(
    ("function", "wrong", "own", "foreign"),
    [
        (bridge.replay, {"ordr": "sjf"}, "Did you mean order", "platform"),
        (bridge.train, {"epoch": 3}, "Did you mean epochs", "platform"),
        (bridge.make_env, {"lenght": 3}, "Did you mean length", "platform"),
    ],
)
def test_an_unknown_option_is_answered_with_the_options_of_that_function(
    function: Any, wrong: dict[str, Any], own: str, foreign: str
) -> None:
    with pytest.raises(BridgeError, match=own) as caught:
        function(**wrong) if function is not bridge.replay else function("bundled-128", **wrong)
    assert foreign not in str(caught.value)
    assert "setup" not in str(caught.value) or function is bridge.make_env


@pytest.mark.parametrize(
    ("function", "words", "options", "message"),
    [
        (bridge.replay, ("bundled-128", "recorded"), {"backfill": "none"}, "backfill is a part of the"),
        (bridge.replay, ("bundled-128", "recorded"), {"order": "sjf"}, "order is a part of the policy"),
        (bridge.replay, ("bundled-128", "sjf+easy"), {"backfill": "none"}, "backfill is a part of the"),
        (bridge.replay, ("bundled-128",), {"order": "sjf", "backfill": "none"}, "backfill, order are parts"),
        (bridge.replay, ("bundled-128", "zoo/rlbackfilling-sdsc-sp2"), {"candidate_order": "sjf"},
         "candidate_order is a part of the policy 'zoo/rlbackfilling-sdsc-sp2'"),
        (bridge.fidelity, ("bundled-128", "fcfs+easy"), {"order": "sjf"}, "fidelity: order is a part"),
        (bridge.fidelity, ("bundled-128", "fcfs"), {"backfill": "none"}, "as in sjf.none"),
        (bridge.validate, ("fcfs+easy", "bundled-128"), {"order": "sjf"}, "validate: order is a part"),
        (bridge.decide, ("fcfs",), {"protocol": "cqsim", "nodes": 4}, "nodes, protocol: of no effect where"),
        (bridge.decide, ("fcfs",), {"walltime": "none", "estimator": "actual"}, "walltime: of no effect"),
        (bridge.decide, ("fcfs+easy",), {"backfill": "none"}, "decide: backfill is a part of the policy"),
        (bridge.evaluate, ("bundled-128", "recorded"), {"backfill": "none"}, "is the backfilling of --order"),
    ],
)  # fmt: skip
def test_a_part_of_a_policy_beside_it_is_refused(
    function: Any, words: tuple[str, ...], options: dict[str, str], message: str
) -> None:
    with pytest.raises(BridgeError, match=message):
        function(*words, **options)


def test_a_backfilling_rule_beside_an_order_alone() -> None:
    both = [bridge.replay("bundled-128", "sjf+none", first=50)]
    both += [bridge.replay("bundled-128", "sjf", backfill="none", first=50)]
    assert both[0].jobs.equals(both[1].jobs)


def test_options_of_predictors_are_checked() -> None:
    with pytest.raises(BridgeError, match="outcome means nothing to the model"):
        bridge.predict("bundled-128", "history", outcome=("status",))
    with pytest.raises(BridgeError, match="Did you mean column"):
        bridge.predict("bundled-128", "history", colum="x")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"policies": []}, "no policy is named"),
        ({"policies": "sjf+easy", "on": "batsim6"}, "is no detailed world"),
        ({"policies": "sjf+easy", "platfrom": "x"}, "unknown option 'platfrom'"),
        ({"policies": "sjf+easy", "tolerance": -1}, "is no number from 0"),
        ({"policies": "sjf+easy", "out": "."}, "exists already"),
        ({"policies": "sfj+easy", "workload": "bundled-128", "platform": "sp2-128"}, "Did you mean sjf"),
    ],
)
def test_a_validation_that_cannot_work_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(BridgeError, match=message):
        bridge.validate(**options)


@needs_simgrid
def test_validate_is_that_of_the_command_line(tmp_path: Path) -> None:
    document = bridge.validate("sjf+easy", "bundled-128", "sp2-128", tmp_path / "out", first=20, tolerance=0)
    command = ["validate", "sjf+easy", "--workload", "bundled-128", "--platform", "sp2-128", "--first", "20"]
    output = CliRunner().invoke(cli, [*command, "--tolerance", "0", "--json"])
    assert document == json.loads(output.stdout)
    assert document["problems"] == []
    stored = json.loads((tmp_path / "out" / "validation.json").read_text())
    assert stored == {key: value for key, value in document.items() if key != "problems"}
