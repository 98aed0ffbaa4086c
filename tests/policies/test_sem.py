"""SEM as its paper has it: numbers of parameters, state, rewards; and over many resources."""

from pathlib import Path

import numpy as np
import pytest
import torch
from features_by_hand import at_100, kept_and_read, rewards_at_100

from bridge.learn.network import actor_of, parameter_counts, parameters
from bridge.policies.sem import SETTINGS

DAY = 86_400


@pytest.mark.parametrize(
    ("setting", "state", "count"), [("theta", 268, 51_853), ("datastar", 280, 53_053), ("atlas", 280, 53_053)]
)
def test_the_papers_networks(setting: str, state: int, count: int) -> None:
    recipe = SETTINGS[setting]
    assert recipe.encoder.size == 4 * 50 + 2 * recipe.encoder.running_rows[0] == state
    assert parameters(actor_of(recipe)) == count
    assert parameter_counts(recipe) == {"actor": count}


def test_the_layers_are_one_filter_two_dense_ones_without_bias_and_one_with() -> None:
    shapes = {name: tuple(p.shape) for name, p in actor_of(SETTINGS["theta"]).named_parameters()}
    assert shapes == {
        "pair.weight": (1, 2),
        "pair.bias": (1,),
        "hidden.0.weight": (200, 134),
        "hidden.1.weight": (100, 200),
        "last.weight": (50, 100),
        "last.bias": (50,),
    }


def test_the_state_by_hand() -> None:
    view = at_100(SETTINGS["theta"])
    assert view.rows == pytest.approx(
        np.array([[0.75, 200 / DAY, 1, 80 / DAY], [0.25, 80 / DAY, 1, 70 / DAY]])
    )
    assert view.context[0, :2].tolist() == pytest.approx([0.5, 60 / DAY])
    assert view.context.shape == (1, 68)
    assert not view.context[0, 2:].any()


def test_the_rewards_by_hand() -> None:
    # wait over the longest wait, size, and what is in use with it: two of four nodes are
    assert rewards_at_100(SETTINGS["theta"]) == pytest.approx(
        [(1 + 0.75 + 0.5) / 3, (70 / 80 + 0.25 + 0.75) / 3]
    )
    # -1/t of the job that runs and of the two that wait
    assert rewards_at_100(SETTINGS["datastar"]) == pytest.approx([-(1 / 60 + 1 / 200 + 1 / 80)] * 2)
    assert SETTINGS["atlas"].gradient == SETTINGS["theta"].gradient


def test_one_network_picks_and_backfills_what_easy_allows() -> None:
    for recipe in SETTINGS.values():
        policy = recipe.policy()
        assert policy.agent == {"pick", "backfill"}
        assert (policy.guard, policy.blocked, policy.backfill) == (True, "held", "easy")
        assert (recipe.algorithm, recipe.gradient.instances, recipe.training.gamma) == ("gradient", 10, 0.99)


def test_over_many_resources_demand_is_a_fraction_of_each() -> None:
    recipe = SETTINGS["resources"].for_resources(3)
    view = at_100(recipe)
    assert list(recipe.encoder.columns) == ["share[0]", "share[1]", "share[2]", "request", "priority", "wait"]
    assert view.rows == pytest.approx(
        np.array([[0.75, 0.5, 0.1, 200 / DAY, 1, 80 / DAY], [0.25, 0.2, 0.5, 80 / DAY, 1, 70 / DAY]])
    )
    assert view.context[0, :4].tolist() == pytest.approx([0.5, 0.3, 0.4, 60 / DAY])
    assert (recipe.encoder.size, view.context.shape) == (50 * 6 + 34 * 4, (1, 34 * 4))
    assert rewards_at_100(recipe) == pytest.approx(rewards_at_100(SETTINGS["theta"]))


@pytest.mark.parametrize("setting", ["theta", "resources"])
def test_a_checkpoint_there_and_back(tmp_path: Path, setting: str) -> None:
    recipe = SETTINGS[setting].for_resources(2)
    weights, agent = kept_and_read(tmp_path, recipe)
    assert (agent.recipe, agent.epoch, agent.mode) == (recipe, 3, "greedy")
    read = agent.actor.state_dict()
    assert read.keys() == weights.keys()
    assert all(torch.equal(read[name], weights[name]) for name in weights)
