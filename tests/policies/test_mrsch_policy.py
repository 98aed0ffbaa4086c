"""MRSch as its paper has it: network, state, measurements and goal, training; its rivals' rewards."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from features_by_hand import at_100, kept_and_read, rewards_at_100

from bridge.base.errors import BridgeError
from bridge.learn.network import Future, actor_of, parameter_counts, parameters
from bridge.learn.recipe import from_dict
from bridge.policies.mrsch import SETTINGS

DAY = 86_400


def test_the_papers_network() -> None:
    full = SETTINGS["full"]
    assert full.encoder.size == 4 * 10 + 2 * 4360 + 2 * 1325 == 11_410
    state = (11_410 * 4000 + 4000) + (4000 * 1000 + 1000) + (1000 * 512 + 512)
    aside = (2 * 128 + 128) + 2 * (128 * 128 + 128)
    streams = (768 * 12 + 12) + (768 * 120 + 120)  # two resources at six offsets; and for each of ten jobs
    assert state + 2 * aside + streams == 50_325_836
    assert parameter_counts(full) == {"actor": 50_325_836}


def test_the_small_networks_keep_the_papers_outer_shape() -> None:
    for name in ("default", "cnn"):
        network = actor_of(SETTINGS[name].for_resources(2))
        assert isinstance(network, Future)
        for module in (network.measurement, network.goal):
            assert [layer.out_features for layer in module if isinstance(layer, torch.nn.Linear)] == [128] * 3
        assert parameters(network) < 500_000


def test_how_the_public_code_predicts() -> None:
    code, paper = SETTINGS["code"], SETTINGS["default"]
    prediction = code.prediction
    assert (prediction.targets, prediction.offsets, code.encoder.window) == ("values", (0, 1), 4)
    assert (prediction.batch, prediction.consecutive, prediction.linear) == (6, True, 200)
    assert (prediction.dueling, code.setup.blocked) == (False, "first")
    assert (paper.prediction.targets, paper.prediction.dueling, paper.prediction.linear) == (
        "changes",
        True,
        0,
    )
    with pytest.raises(BridgeError, match="Nothing changes at once"):
        from_dict({"prediction": {"targets": "changes"}}, "a test", code)


@pytest.mark.parametrize(("resources", "state"), [(2, 10 * 4 + 34 * 3), (3, 10 * 5 + 34 * 4)])
def test_the_small_state_grows_with_the_resources(resources: int, state: int) -> None:
    encoder = SETTINGS["default"].for_resources(resources).encoder
    assert encoder.size == state
    assert encoder.context == 34 * (resources + 1) + 2 * resources


def test_the_state_by_hand() -> None:
    view = at_100(SETTINGS["default"].for_resources(2))
    assert view.rows == pytest.approx(
        np.array([[0.75, 0.5, 200 / DAY, 80 / DAY], [0.25, 0.2, 80 / DAY, 70 / DAY]])
    )
    running, machine = view.context[0, : 34 * 3], view.context[0, 34 * 3 :]
    assert running[:3].tolist() == pytest.approx([0.5, 0.3, 60 / DAY])
    assert not running[3:].any()
    # 0.5 x 60 + 0.75 x 200 + 0.25 x 80 of the nodes, 0.3 x 60 + 0.5 x 200 + 0.2 x 80 of the burst buffer
    assert machine.tolist() == pytest.approx([0.5, 0.3, 200 / 334, 134 / 334])


def test_the_papers_state_by_hand() -> None:
    full = SETTINGS["full"]
    recipe = replace(full, encoder=replace(full.encoder, running_rows=(4, 5)))
    context = at_100(recipe).context[0]
    taken, free = [0, 60 / DAY], [1, 0]
    # 30 of 100 bytes are one and a half of five units: two
    expected = [*taken * 2, *free * 2, *taken * 2, *free * 3]
    assert context[:18].tolist() == pytest.approx(expected)
    assert context[18:].tolist() == pytest.approx([0.5, 0.3, 200 / 334, 134 / 334])


def test_what_the_paper_says_of_decisions() -> None:
    default, head = SETTINGS["default"], SETTINGS["head"]
    assert next(iter(SETTINGS)) == "default"
    policy = default.policy()
    assert (policy.agent, policy.backfill, policy.blocked) == ({"pick"}, "easy", "held")
    assert head.policy() == replace(policy, blocked="first")
    papers = ("default", "cnn", "head", "full", "scalar", "scalar-power")
    assert {SETTINGS[name].encoder.window for name in papers} == {10}


def test_what_the_paper_says_of_training() -> None:
    default = SETTINGS["default"]
    prediction = default.prediction
    assert prediction.offsets == (1, 2, 4, 8, 16, 32)
    assert prediction.weights == (0, 0, 0, 0.5, 0.5, 1)
    assert (prediction.replay, prediction.batch, prediction.decay) == (20_000, 64, 0.995)
    assert default.training.learning_rate == 1e-4
    assert default.training.curriculum == ("sampled:10", "real:10", "synthetic:20")
    assert default.training.epochs == 40
    assert default.deploy == "greedy"


def test_the_rivals_rewards_by_hand() -> None:
    # what is in use, with the picked job if it fits, in the mean over the resources
    assert rewards_at_100(SETTINGS["scalar"]) == pytest.approx([(0.5 + 0.3) / 2, (0.75 + 0.5) / 2])
    power = rewards_at_100(SETTINGS["scalar-power"])
    assert power == pytest.approx([(0.5 + 0.3 + 0.4) / 3, (0.75 + 0.5 + 0.9) / 3])


def test_a_rival_sees_measurements_and_no_goal() -> None:
    for name, resources in (("scalar", 2), ("scalar-power", 3)):
        recipe = SETTINGS[name]
        assert recipe.encoder.resources == resources
        assert list(recipe.encoder.machine_columns.values()) == [f"used[{r}]" for r in range(resources)]
        assert recipe.policy() == SETTINGS["default"].policy()


@pytest.mark.parametrize(
    ("setting", "resources"), [("default", 2), ("default", 3), ("cnn", 2), ("scalar", 2)]
)
def test_a_checkpoint_there_and_back(tmp_path: Path, setting: str, resources: int) -> None:
    recipe = SETTINGS[setting].for_resources(resources)
    assert from_dict(json.loads(json.dumps(recipe.as_dict())), "x") == recipe
    weights, agent = kept_and_read(tmp_path, recipe)
    assert agent.recipe == recipe
    assert agent.recipe.encoder.resources == resources
    view = at_100(recipe)
    seen = torch.from_numpy(view.rows), torch.from_numpy(view.offsets), torch.from_numpy(view.context)
    other = actor_of(recipe)
    other.load_state_dict(weights)
    with torch.no_grad():
        assert torch.equal(agent.actor(*seen), other(*seen))


def test_weights_for_another_number_of_resources_are_refused(tmp_path: Path) -> None:
    from bridge.learn.checkpoint import Provenance, load, write_agent

    kept_and_read(tmp_path, SETTINGS["default"].for_resources(2))
    write_agent(
        tmp_path, SETTINGS["default"].for_resources(3), Provenance("x", "x", 4, "0" * 64, 5, {"max_run": 1.0})
    )
    with pytest.raises(BridgeError, match="not of the network that the recipe describes"):
        load(tmp_path)
