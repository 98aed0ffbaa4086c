"""What a training can have as the authors' code has it: a slice of jobs, its own order, no long episodes."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from tiny_training import TINY, some_jobs, tiny, trainer

from bridge.base.errors import BridgeError
from bridge.env.encoder import Encoder
from bridge.env.reward import base_costs
from bridge.learn.checkpoint_files import PROGRESS
from bridge.learn.recipe import Recipe
from bridge.learn.rollout import collect, is_unfinished, keep_episodes


def inspecting(**training: object) -> Recipe:
    """Return a recipe that inspects the picks of SJF without backfilling."""
    return replace(
        tiny(**training),
        setup=replace(TINY.setup, order="sjf", backfill="none", protocol="schedgym-code"),
        encoder=Encoder("inspect", {"fits": "fits", "length": "log10(1 + t)/5"}),
    )


def test_episodes_are_drawn_from_the_first_jobs(tmp_path: Path) -> None:
    source = trainer(tmp_path, tiny(first_jobs=80)).learner.source
    assert source.part == (0, 80)
    drawn = source.draw(0, np.random.default_rng(1)).starts
    assert set(drawn.tolist()) <= set(range(80 - 64 + 1))
    with pytest.raises(BridgeError, match="the part of 63 jobs holds no episode of 64"):
        trainer(tmp_path / "b", tiny(first_jobs=63))


def test_it_learns_behind_one_order_and_decides_behind_another(tmp_path: Path) -> None:
    recipe = replace(tiny(order="lcfs"), setup=replace(TINY.setup, order="sjf"))
    learner = trainer(tmp_path, recipe).learner
    assert learner.source.batch.prepared.compiled.order.name == "lcfs"
    assert learner.source.prepared.compiled.order.name == "sjf"
    (validation,) = learner.validations
    assert validation.batch.prepared.compiled.order.name == "sjf"
    assert learner.source.base.compiled.order.name == "sjf"


def test_rewards_compare_with_a_base_of_their_own(tmp_path: Path) -> None:
    recipe = replace(TINY, reward=replace(TINY.reward, base_order="lcfs", base_candidate_order="sjf"))
    setup = replace(TINY.setup, order="lcfs", candidate_order="sjf")
    source = trainer(tmp_path, recipe).learner.source
    starts = np.array([0, 100, 250])
    expected = base_costs(setup.build_scenario(some_jobs()), starts, 64, recipe.reward)
    own = base_costs(TINY.setup.build_scenario(some_jobs()), starts, 64, recipe.reward)
    assert source.values(starts).tolist() == expected.tolist() != own.tolist()
    without = replace(TINY, reward=replace(TINY.reward, base_candidate_order="sjf"))
    with pytest.raises(BridgeError, match="belongs to a base of its own"):
        without.check()


def test_episodes_of_too_many_decisions_are_discarded_and_others_drawn(tmp_path: Path) -> None:
    recipe = inspecting(trajectories=6, max_decisions=95)
    training = trainer(tmp_path, recipe)
    source, actor = training.learner.source, training.learner.actor
    everything = collect(source.batch, actor, np.arange(0, 6), np.random.default_rng(3))
    counts = np.bincount(everything.episode, minlength=6)
    limited = collect(source.batch, actor, np.arange(0, 6), np.random.default_rng(3), 95)
    assert is_unfinished(limited).tolist() == (counts > 95).tolist()
    assert 0 < (counts > 95).sum() < 6  # some are, some are not
    kept = keep_episodes(limited, counts <= 95)
    assert np.bincount(kept.episode).tolist() == counts[counts <= 95].tolist()
    assert len(kept.offsets) == len(kept) + 1 == counts[counts <= 95].sum() + 1
    assert [e.start.min() >= 0 for e in kept.episodes] == [True] * len(kept.episodes)
    rollout, base = training.learner._collect(source, 0, np.random.default_rng(4))
    assert len(rollout.episodes) == len(base) == 6
    assert np.bincount(rollout.episode).max() <= 95
    training.step()
    assert 0 < pq.read_table(tmp_path / PROGRESS)["rejected"][0].as_py() < 1


def test_where_few_episodes_end_in_time_more_are_drawn_at_once(tmp_path: Path) -> None:
    first = trainer(tmp_path / "a", inspecting(trajectories=40)).learner
    played = collect(first.source.batch, first.actor, np.arange(0, 240, 6), np.random.default_rng(3))
    limit = int(np.quantile(np.bincount(played.episode, minlength=40), 0.1))
    learner = trainer(tmp_path / "b", inspecting(trajectories=40, max_decisions=limit)).learner
    source, rounds = learner.source, list[int]()
    draw = source.draw
    source.draw = lambda epoch, rng: rounds.append(epoch) or draw(epoch, rng)
    rollout, base = learner._collect(source, 7, np.random.default_rng(4))
    assert len(rollout.episodes) == len(base) == 40
    assert np.bincount(rollout.episode).max() <= limit
    assert 3 < len(rounds) <= 20  # one at a time, the last one alone takes ten on average


def test_a_policy_whose_episodes_are_all_too_long_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(BridgeError, match="6 of 6 episodes have more than 10 decisions, again and again"):
        trainer(tmp_path, inspecting(trajectories=6, max_decisions=10)).step()


def test_other_algorithms_refuse_what_they_do_not_heed() -> None:
    with pytest.raises(BridgeError, match=r"training\.max_decisions cannot be 9"):
        replace(inspecting(max_decisions=9), algorithm="evolution").check()
