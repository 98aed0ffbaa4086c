"""One agent on several logs: episodes of each in turn, all judged alike, and what it has seen is known."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tiny_training import TINY, assert_resumes, some_jobs, tiny, trainer

from bridge.base.errors import BridgeError
from bridge.env.episode_starts import jobs_of
from bridge.env.reward import Reward, base_costs
from bridge.learn.agent import first_unseen_job
from bridge.learn.checkpoint import load, read_agent
from bridge.learn.learner import TrainingContext
from bridge.learn.rollout import collect, concatenate_rollouts
from bridge.learn.training import TrainingData, open_trainer
from bridge.workload.catalogue import resolve
from bridge.workload.formats import read, write


@pytest.fixture
def other(tmp_path: Path) -> str:
    """A log of other jobs: the bundled one's from the 1,000th on."""
    whole = read(resolve("bundled-128"))
    path = tmp_path / "other.swf"
    write(replace(whole, jobs=whole.jobs[1000:]), path)
    return str(path)


def test_trajectories_are_shared_out_in_turn(tmp_path: Path, other: str) -> None:
    learner = trainer(tmp_path / "a", tiny(logs=(other,), trajectories=5)).learner
    assert [source.share for source in learner.sources] == [3, 2]
    drawn = [source.draw(0, np.random.default_rng(1)) for source in learner.sources]
    assert [len(one.starts) for one in drawn] == [3, 2]
    names = [one.batch.prepared.jobs.name for one in drawn]
    assert names == ["bundled-128", "other"]
    assert drawn[1].batch.prepared.jobs.run[:9].tolist() != some_jobs().run[:9].tolist()
    jobs = jobs_of(other, TINY.setup)
    assert (
        drawn[1].base.tolist()
        == base_costs(TINY.setup.build_scenario(jobs), drawn[1].starts, 64, Reward()).tolist()
    )


def test_joined_are_the_trajectories_one_behind_the_other(tmp_path: Path, other: str) -> None:
    learner = trainer(tmp_path / "a", tiny(logs=(other,))).learner
    rng = np.random.default_rng(1)
    one, two = (collect(source.batch, learner.actor, np.array([0, 100]), rng) for source in learner.sources)
    both = concatenate_rollouts([one, two])
    assert len(both) == len(one) + len(two)
    assert both.episode.tolist() == [*one.episode, *(two.episode + 2)]
    assert both.episodes == [*one.episodes, *two.episodes]
    last = len(one)
    rows = both.rows[both.offsets[last] : both.offsets[last + 1]]
    assert rows.tolist() == two.rows[: two.offsets[1]].tolist()
    assert both.offsets[-1] == len(both.rows)
    for name in ("actions", "log_prob", "times", "late", "context"):
        found = getattr(both, name)
        assert found.tolist() == [*getattr(one, name).tolist(), *getattr(two, name).tolist()]
    assert concatenate_rollouts([one]) is one


def test_validation_is_the_geometric_mean_over_logs(tmp_path: Path, other: str) -> None:
    learner = trainer(tmp_path / "a", tiny(logs=(other,))).learner
    assert [len(one.starts) for one in learner.validations] == [50, 50]
    values = [one.base for one in learner.validations]
    assert values[0] != values[1]
    assert learner.base == pytest.approx(np.sqrt(values[0] * values[1]))
    both = learner.validate(learner.actor, "greedy")
    own = [learner.mean_cost(one.batch, 50) for one in learner.validations]
    assert both == pytest.approx(np.sqrt(own[0] * own[1]))
    assert learner.validate(learner.actor, "greedy") == pytest.approx(np.sqrt(own[0] * own[1]))


def test_going_on_gives_the_same_bits(tmp_path: Path, other: str) -> None:
    assert_resumes(tmp_path, tiny(logs=(other,), teacher=("safe",)), 1)


def test_an_agent_knows_what_it_has_seen_of_each_log(tmp_path: Path, other: str) -> None:
    recipe, folder = tiny(logs=(other,), epochs=1), tmp_path / "a"
    bundled = read(resolve("bundled-128"))
    material = TrainingData(recipe, some_jobs(), bundled.digest())
    given = TrainingContext(recipe, some_jobs(), material.origin("bundled-128", 1), folder)
    open_trainer(given).run()
    log, agent = read(other), load(folder)
    assert agent.origin.extra_log_digests == {other: log.digest()}
    jobs = recipe.setup.select(log)
    assert first_unseen_job(agent, other, log, jobs) == round(len(jobs) * recipe.test_from)
    assert first_unseen_job(agent, "bundled-128", bundled, some_jobs()) == 360
    write(replace(log, jobs=log.jobs[:800]), other)
    changed = read(other)
    assert first_unseen_job(agent, other, changed, recipe.setup.select(changed)) == 0
    with pytest.raises(BridgeError, match="further logs"):
        open_trainer(replace(given, origin=material.origin("bundled-128", 1)))


def test_an_agent_of_one_log_says_nothing_of_others(tmp_path: Path) -> None:
    trainer(tmp_path / "a")
    assert '"others"' not in (tmp_path / "a" / "agent.json").read_text()
    assert read_agent(tmp_path / "a")[1].extra_log_digests == {}


def test_several_logs_belong_to_ppo() -> None:
    recipe = replace(tiny(logs=("bundled-128",)), algorithm="gradient")
    with pytest.raises(BridgeError, match="logs"):
        recipe.check()
