"""Agents that pick or backfill learn within Slurm's passes, with the same bits again, and decide there."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bridge.cli.main import main
from bridge.cluster.clusterfile import write_cluster_toml
from bridge.cluster.description import Cluster, NodeGroup, Partition
from bridge.commands.train import recipe_for
from bridge.env.encoder import Encoder
from bridge.learn.agent import play_sequences
from bridge.learn.checkpoint import load
from bridge.learn.learner import TrainingContext
from bridge.learn.recipe import Recipe
from bridge.learn.training import TrainingData, train_or_resume
from bridge.workload.catalogue import read_log
from bridge.worlds.fast.replay import replay_sequences
from bridge.worlds.fast.scheduler_config import SchedulerConfig

torch = pytest.importorskip("torch")
from tiny_training import tiny  # noqa: E402  (needs torch)

LENGTH = 40


@pytest.fixture
def setup(tmp_path: Path) -> SchedulerConfig:
    """Return the bundled log on its nodes, in two partitions."""
    parts = (Partition(name="all", default=True), Partition(name="few", nodes=("n[0-63]",)))
    site = Cluster(nodes=(NodeGroup(name="n", count=128),), partitions=parts)
    write_cluster_toml(site, tmp_path / "site.toml")
    cluster = str(tmp_path / "site.toml")
    return SchedulerConfig(first=600, protocol="slurm", cluster=cluster, order="fcfs", backfill="slurm")


def learn(recipe: Recipe, folder: Path) -> Path:
    log = read_log("bundled-128")
    data = TrainingData.of(recipe, log, log.digest())
    assert isinstance(data.recipe, Recipe)
    train_or_resume(TrainingContext(data.recipe, data.jobs, data.origin("bundled-128", 3), folder))
    return folder


@pytest.mark.parametrize("decision", ["pick", "backfill"])
def test_it_learns_there_and_decides_there(
    tmp_path: Path, setup: SchedulerConfig, decision: str, capsys: pytest.CaptureFixture[str]
) -> None:
    features = {"length": "log10(1 + t)/5", "nodes": "n/n_max", "free": "free/n_max", "stop": "blocked"}
    encoder = Encoder("pick", features, window=16)
    if decision == "backfill":
        encoder = Encoder("backfill", {**features, "safe": "safe"}, window=16, stop=True)
    training = {"epochs": 2, "trajectories": 3, "length": LENGTH, "validation": (0.5, 0.6)}
    recipe = replace(tiny(**training), setup=setup, encoder=encoder)
    first, again = (learn(recipe, tmp_path / name) for name in ("one", "two"))
    assert (first / "weights.safetensors").read_bytes() == (again / "weights.safetensors").read_bytes()
    agent = load(first)
    jobs = setup.select(read_log("bundled-128"))
    scenario = setup.build_scenario(jobs, agent.recipe.policy())
    starts = np.array([360, 400, 500])
    decided = play_sequences(agent, scenario, starts, LENGTH)
    own = replay_sequences(setup.build_scenario(jobs), starts, LENGTH)
    assert all((one.start >= 0).all() for one in decided)
    assert any((one.start != other.start).any() for one, other in zip(decided, own, strict=True))
    command = ["evaluate", str(first), "--sequences", "2", "--length", str(LENGTH), "--json"]
    assert main(command) == 0
    assert '"protocol": "slurm"' in capsys.readouterr().out
    site = ["--cluster", str(setup.cluster), "--protocol", "slurm", "--first", "60"]
    assert main(["replay", "bundled-128", *site, "--policy", str(first), "--out", str(tmp_path / "run")]) == 0


def test_the_options_of_a_training_are_slurms_own(setup: SchedulerConfig) -> None:
    options = {"protocol": "slurm", "cluster": str(setup.cluster)}
    recipe = recipe_for("rlscheduler", options)
    assert isinstance(recipe, Recipe)
    assert (recipe.setup.order, recipe.setup.backfill) == ("multifactor", "slurm")
    named = recipe_for("rlbackfilling", {**options, "order": "saf"})
    assert isinstance(named, Recipe)
    assert (named.setup.order, named.setup.backfill) == ("saf", "slurm")
    other = SchedulerConfig().with_policy_of(named.setup)
    assert (other.order, other.backfill) == ("saf", "easy")


def test_other_decisions_are_refused_by_name(setup: SchedulerConfig) -> None:
    jobs = setup.select(read_log("bundled-128"))
    with pytest.raises(Exception, match="no agent that decides inspect"):
        setup.build_scenario(jobs, setup.policy("inspect"))
