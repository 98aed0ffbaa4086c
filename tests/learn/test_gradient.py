"""Policy gradient: returns by hand, updates every few instants, a task of one step, the same bits again."""

import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tiny_training import TINY, assert_resumes, assert_seeds_differ, crowded_jobs, some_jobs, trainer

from bridge.base.errors import BridgeError
from bridge.env.encoder import Encoder
from bridge.learn.algorithms.gradient import PolicyGradient, _Steps, add_reward_feature, standardised
from bridge.learn.checkpoint import load
from bridge.learn.network import log_softmax
from bridge.learn.recipe import NetworkConfig, PolicyGradientConfig, Recipe
from bridge.worlds.fast.scheduler_config import SchedulerConfig


def picking(reward: str = "n/n_max", instances: int = 10, **training: Any) -> Recipe:
    """Return a recipe that picks by two features and is rewarded at once."""
    return replace(
        TINY,
        setup=SchedulerConfig(first=600, blocked="held"),
        encoder=Encoder("pick+backfill", {"nodes": "n/n_max", "length": "log10(1 + t)/5"}, window=16),
        actor=NetworkConfig("kernel", ()),
        critic=NetworkConfig("none", ()),
        guard="mask",
        algorithm="gradient",
        gradient=PolicyGradientConfig(reward, instances),
        training=replace(TINY.training, **{"gamma": 0.0, "learning_rate": 0.05, **training}),
    )


def test_standardised_values() -> None:
    assert standardised(np.array([1.0, 3.0])).tolist() == [-1, 1]
    expected = [-1.5, -0.5, -0.5, -0.5, 0, 0, 1, 2]
    assert standardised(np.array([2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0])).tolist() == expected
    assert standardised(np.full(3, 7.0)).tolist() == [0, 0, 0]
    assert standardised(np.array([7.0])).tolist() == [0]


def test_the_reward_is_the_last_column_whatever_the_others_are_called() -> None:
    recipe = picking("used[0] + n")
    recipe = replace(
        recipe, encoder=replace(recipe.encoder, features={"reward": "t", "nodes": "n"}, padding=(1.0, 2.0))
    )
    encoder = add_reward_feature(recipe)
    assert list(encoder.columns.values()) == ["t", "n", "used[0] + n"]
    assert (encoder.padding, encoder.window) == ((), 16)
    assert recipe.encoder.padding == (1.0, 2.0)


@pytest.mark.parametrize(
    ("gradient", "said"),
    [
        (PolicyGradientConfig(""), "gradient.reward cannot be empty"),
        (PolicyGradientConfig("used[r]"), "gradient.reward cannot be used[r]"),
        (PolicyGradientConfig("n", 0), "gradient.instances cannot be 0"),
    ],
)
def test_what_cannot_be_a_reward_is_refused(gradient: PolicyGradientConfig, said: str) -> None:
    with pytest.raises(BridgeError) as error:
        replace(picking(), gradient=gradient).check()
    assert error.value.what == said


def test_an_unknown_name_in_the_reward_is_one_error(tmp_path: Path) -> None:
    with pytest.raises(BridgeError, match="unknown variable 'size'"):
        trainer(tmp_path / "a", picking("w + size"))


@pytest.mark.parametrize(
    "changes", [{"teacher": ("n",)}, {"warmup": 1}, {"anneal": True}, {"min_base_metric": 2.0}]
)
def test_what_belongs_to_ppo_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(BridgeError, match="It belongs to `ppo`"):
        picking(**changes).check()


def test_one_step_up_the_gradient_by_hand(tmp_path: Path) -> None:
    training = trainer(tmp_path / "a", picking(gamma=0.5))
    learner = training.learner
    assert isinstance(learner, PolicyGradient)
    rng = np.random.default_rng(1)
    rows, offsets = rng.normal(size=(7, 2)).astype(np.float32), np.array([0, 2, 5, 7])
    actions, rewards, owner = np.array([1, 0, 1]), np.array([1.0, 2.0, 4.0]), np.array([0, 0, 1])
    seen, none = _Steps(), np.zeros((3, 0), np.float32)
    seen.steps = [
        (rows[:5], np.array([2, 3]), none[:2], actions[:2], rewards[:2], owner[:2]),
        (rows[5:], np.array([2]), none[2:], actions[2:], rewards[2:], owner[2:]),
    ]
    gain = torch.tensor([2.0, 2.0, 4.0])  # 1 + 0.5 x 2, 2, and 4 of the other episode
    gain = (gain - gain.mean()) / gain.std(correction=0)
    other = copy.deepcopy(learner.actor)
    scores = other(torch.from_numpy(rows), torch.from_numpy(offsets), torch.zeros(3, 0))[:, 0]
    logp = log_softmax(scores, torch.from_numpy(offsets))
    expected = -(logp[[1, 2, 6]] * gain).mean()
    expected.backward()  # type: ignore[no-untyped-call]
    loss, entropy = learner._update(seen)
    assert loss == pytest.approx(float(expected.detach()), rel=1e-5)
    assert entropy == pytest.approx(float(-(logp.exp() * logp).sum().detach()) / 3, rel=1e-5)
    for mine, same in zip(learner.actor.parameters(), other.parameters(), strict=True):
        assert mine.grad is not None and same.grad is not None
        assert torch.allclose(mine.grad, same.grad, atol=1e-6)


@pytest.mark.parametrize("instances", [1, 5, 10**6])
def test_an_update_every_so_many_instants(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, instances: int
) -> None:
    training = trainer(tmp_path / "a", picking(instances=instances))
    learner, seen = training.learner, []
    assert isinstance(learner, PolicyGradient)
    update = learner._update

    def noted(what: _Steps) -> tuple[float, float]:
        seen.append(what.instances)
        return update(what)

    monkeypatch.setattr(learner, "_update", noted)
    learnt = learner.learn(0, np.random.default_rng(1))
    assert learnt.losses.iterations == len(seen)
    # as many instants as four episodes have in so many steps, but for the last update of what is left
    assert max(seen) <= 4 * instances
    assert min(seen[:-1], default=4 * instances) > 4 * instances - 4
    if instances == 10**6:
        assert len(seen) == 1


@pytest.mark.parametrize(("reward", "sign"), [("n/n_max", 1), ("-n/n_max", -1)])
def test_it_learns_to_pick_what_is_rewarded(tmp_path: Path, reward: str, sign: int) -> None:
    # each answer is rewarded for itself: a task of one step
    recipe = picking(reward, instances=5, epochs=5, validate_every=5)
    training = trainer(tmp_path / "a", recipe, jobs=crowded_jobs())
    before = next(training.learner.actor.parameters())[0].tolist()
    training.run()
    weights = next(training.learner.actor.parameters())[0].tolist()
    assert sign * (weights[0] - before[0]) > 1
    assert sign * weights[0] > 3 * abs(weights[1])


def test_the_mean_reward_is_of_the_answers(tmp_path: Path) -> None:
    learnt = trainer(tmp_path / "a", picking("1")).learner.learn(0, np.random.default_rng(1))
    assert learnt.reward_mean == learnt.decisions / 4
    assert np.isnan(learnt.losses.value_loss)
    assert learnt.base_mean > 0 and learnt.train_mean > 0


def test_validation_sees_no_reward(tmp_path: Path) -> None:
    training = trainer(tmp_path / "a", picking(epochs=1, validate_every=1))
    assert training.learner.source.batch.encoder.encoder.width == 3
    assert training.learner.validations[0].batch.encoder.encoder == picking().encoder
    training.run()
    assert training.history[0].valid_mean > 0
    assert load(tmp_path / "a").recipe == picking(epochs=1, validate_every=1)


CURRICULUM: dict[str, Any] = {"curriculum": ("sampled:1", "real:2", "synthetic:1"), "epochs": 5, "gamma": 0.9}


def test_the_same_seed_gives_the_same_bits_and_another_one_others(tmp_path: Path) -> None:
    assert_seeds_differ(tmp_path, picking(**CURRICULUM), "trained.layers.0.weight")


@pytest.mark.parametrize("done", [1, 3])
def test_going_on_after_an_end_gives_the_same_bits(tmp_path: Path, done: int) -> None:
    assert_resumes(tmp_path, picking(**CURRICULUM), done)


def test_a_workload_without_decisions_is_refused(tmp_path: Path) -> None:
    idle = replace(some_jobs(), capacity=np.array([100_000]))
    recipe = replace(picking(), setup=replace(picking().setup, nodes=100_000))
    with pytest.raises(BridgeError, match="no decision had to be taken in a whole epoch"):
        trainer(tmp_path / "a", recipe, jobs=idle).step()
