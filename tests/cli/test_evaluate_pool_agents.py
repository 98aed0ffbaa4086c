"""`bridge evaluate CHECKPOINT --scheduler pool`: agents beside heuristics, on the pool that they know."""

import json
import shlex
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from cli_commands import run_bridge, run_ok

from bridge.learn.checkpoint import Provenance, write_agent
from bridge.learn.learner import TrainingContext
from bridge.learn.trainer import Trainer
from bridge.policies.rlschert import SETTINGS
from bridge.pool.evaluate import jobs_of
from bridge.pool.recipe import PoolNetworkConfig, PoolTrainingConfig


@pytest.fixture(scope="module")
def agents(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two agents that have hardly learnt anything, on a pool of 12 units: one kills, one is DeepRM."""
    torch.set_num_threads(1)
    found = []
    for setting, kill in (("recommended", "learned"), ("deeprm", "none")):
        folder = tmp_path_factory.mktemp("agents") / setting
        folder.mkdir()
        recipe = replace(
            SETTINGS[setting],
            kill=kill,
            pool=replace(SETTINGS[setting].pool, units=12),
            network=PoolNetworkConfig(hidden=(8,)),
            training=PoolTrainingConfig(epochs=1, sequences=2, steps=20, valid_sequences=2, rate=0.5),
        )
        jobs = jobs_of(None)
        origin = Provenance("synthetic", jobs.name, len(jobs), "", 1, {})
        write_agent(folder, recipe, origin)
        Trainer(TrainingContext(recipe, jobs, origin, folder)).run()
        found.append(folder)
    return found[0], found[1]


def test_agents_are_judged_beside_heuristics_where_they_have_learnt(agents: tuple[Path, Path]) -> None:
    killer, deeprm = agents
    words = ["evaluate", killer, "--scheduler", "slotted", "--agent", deeprm, "--sequences", "3", "--json"]
    found = json.loads(run_ok(*words))
    assert (found["rate"], found["steps"], found["sequences"], found["seed"]) == (0.5, 20, 3, 314159)
    assert (found["pool"]["units"], found["synthetic"]) == (12, True)
    named = [(p["policy"], p["kill"]) for p in found["policies"]]
    assert named == [("saf", "none"), ("recommended", "learned"), ("deeprm", "none")]
    alone = json.loads(run_ok("evaluate", "--scheduler", "slotted", *words[4:]))
    assert [p["policy"] for p in alone["policies"]] == ["saf", "deeprm"]
    assert alone["policies"][1] == found["policies"][2] | {"sequences": alone["policies"][1]["sequences"]}
    more = shlex.split("--rate 0.6 --steps 25 --oracle-clamp --policy sjf --kill rule --seed 3")
    found = json.loads(run_ok(*words, *more))
    assert (found["rate"], found["steps"], found["seed"]) == (0.6, 25, 3)
    assert all(p["oracle"] for p in found["policies"])
    assert (found["policies"][0]["policy"], found["policies"][0]["kill"]) == ("sjf", "rule")
    table = run_ok("evaluate", killer, "--scheduler", "slotted", "--sequences", "2")
    assert "recommended" in table
    assert "learned" in table


def test_agents_need_not_say_that_they_are_of_the_slotted_pool(agents: tuple[Path, Path]) -> None:
    killer, deeprm = agents
    more = ["--sequences", "2", "--json"]
    said = run_ok("evaluate", killer, "--scheduler", "slotted", *more)
    assert run_ok("evaluate", killer, *more) == said
    assert run_ok("evaluate", "--agent", killer, *more) == said
    both = json.loads(run_ok("evaluate", killer, "--agent", deeprm, "--policy", "sjf", *more))
    assert [p["policy"] for p in both["policies"]] == ["sjf", "recommended", "deeprm"]
    told = run_bridge("evaluate", killer, "--order", "sjf")
    assert told.status == 2
    assert "the time-stepped pool has no --order" in told.err
    for words in (["bundled-128", "--agent", killer], [killer, "--scheduler", "event"]):
        told = run_bridge("evaluate", *words)
        assert (told.status, told.out) == (1, "")
        assert "is an agent of the time-stepped pool" in told.err
        assert f"bridge evaluate {killer}" in told.err


def test_agents_of_other_pools_and_schedulers_are_refused(agents: tuple[Path, Path], tmp_path: Path) -> None:
    killer, _ = agents
    (tmp_path / "agent.json").write_text(json.dumps({"format": 1, "name": "rlscheduler"}))
    for words, says in (
        ([killer, "--pool-units", "14"], "has learnt on a pool of 12 units, not 14"),
        ([tmp_path], "is an agent of the event-driven scheduler"),
        (["bundled-128"], "is no checkpoint"),
    ):
        told = run_bridge("evaluate", *words, "--scheduler", "slotted")
        assert (told.status, told.out) == (1, "")
        assert says in told.err
