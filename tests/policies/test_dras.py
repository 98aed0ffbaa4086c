"""DRAS as its paper has it: numbers of parameters, a pair of inputs for each node, rewards."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from features_by_hand import at_100, kept_and_read, rewards_at_100

from bridge.learn.network import parameter_counts
from bridge.learn.recipe import NetworkConfig
from bridge.policies.dras import SETTINGS, encoder
from bridge.policies.sem import SETTINGS as SEM

DAY = 86_400


@pytest.mark.parametrize(
    ("setting", "state", "count"), [("theta", 8_920, 21_890_053), ("datastar", 3_528, 2_026_553)]
)
def test_the_papers_networks(setting: str, state: int, count: int) -> None:
    recipe = SETTINGS[setting]
    assert recipe.encoder.size == 4 * 50 + 2 * recipe.encoder.running_rows[0] == state
    assert parameter_counts(recipe) == {"actor": count}


def test_the_state_by_hand() -> None:
    recipe = replace(SETTINGS["theta"], encoder=encoder(4))
    view = at_100(recipe)
    assert view.rows.tolist() == at_100(SEM["theta"]).rows.tolist()  # waiting jobs are the same in both
    # two nodes will be free in a minute, as it is believed, two are
    assert view.context.tolist() == [pytest.approx([0, 60 / DAY, 0, 60 / DAY, 1, 0, 1, 0])]


def test_the_rewards_are_sems() -> None:
    assert rewards_at_100(replace(SETTINGS["theta"], encoder=encoder(4))) == rewards_at_100(SEM["theta"])
    assert SETTINGS["datastar"].gradient == SEM["datastar"].gradient


def test_it_decides_as_sem_does() -> None:
    for name, recipe in SETTINGS.items():
        assert recipe.policy() == SEM[name].policy()
        assert (recipe.algorithm, recipe.gradient.instances, recipe.training.gamma) == ("gradient", 10, 0.99)


def test_a_checkpoint_there_and_back(tmp_path: Path) -> None:
    recipe = replace(SETTINGS["theta"], encoder=encoder(16), actor=NetworkConfig("pairs", (20, 10)))
    weights, agent = kept_and_read(tmp_path, recipe)
    assert agent.recipe == recipe
    assert agent.recipe.encoder.row_unit == "unit"
    read = agent.actor.state_dict()
    assert all(torch.equal(read[name], weights[name]) for name in weights)
