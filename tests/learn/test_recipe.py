"""Recipes as plain data: there and back, and one clear error for each mistake."""

import json
import tomllib
from dataclasses import replace
from typing import Any

import pytest
import tomli_w
from tiny_training import TINY

from bridge.base.errors import BridgeError
from bridge.learn.recipe import NetworkConfig, Recipe, from_dict
from bridge.learn.registry import policies

OURS = [
    recipe
    for policy in policies().values()
    for recipe in policy.settings.values()
    if isinstance(recipe, Recipe)
]


@pytest.mark.parametrize("recipe", [TINY, *OURS], ids=lambda r: f"{r.name}-{r.setting}")
def test_there_and_back(recipe: Recipe) -> None:
    document = recipe.as_dict()
    assert from_dict(json.loads(json.dumps(document)), "x") == recipe
    assert from_dict(tomllib.loads(tomli_w.dumps(document)), "x") == recipe
    assert from_dict({}, "x", recipe) == recipe


def test_values_on_top_of_a_recipe() -> None:
    changes = {
        "guard": "mask",
        "training": {"epochs": 7, "part": [0, 0.5], "learning_rate": 1},
        "encoder": {"features": {"only": "t"}},
        "actor": {"hidden": [4]},
        "setup": {"nodes": 64},
    }
    got = from_dict(changes, "x", TINY)
    training = replace(TINY.training, epochs=7, part=(0.0, 0.5), learning_rate=1.0)
    assert got == replace(
        TINY,
        guard="mask",
        training=training,
        encoder=replace(TINY.encoder, features={"only": "t"}),
        actor=NetworkConfig("kernel", (4,)),
        setup=replace(TINY.setup, nodes=64),
    )
    assert isinstance(got.training.learning_rate, float)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"traning": {}}, "mine.toml: unknown field 'traning'"),
        ({"training": {"epoch": 3}}, "mine.toml: unknown field 'epoch' in training"),
        ({"training": {"epochs": "3"}}, "mine.toml: training.epochs cannot be '3'"),
        ({"training": {"epochs": 3.5}}, "mine.toml: training.epochs cannot be 3.5"),
        ({"training": {"epochs": True}}, "mine.toml: training.epochs cannot be True"),
        ({"training": {"gamma": float("nan")}}, "mine.toml: training.gamma cannot be nan"),
        ({"training": {"part": [0.0]}}, "mine.toml: training.part cannot be [0.0]"),
        ({"training": 3}, "mine.toml: training is no table"),
        ({"guard": "never"}, "mine.toml: guard cannot be 'never'"),
        ({"encoder": {"features": {"t": 3}}}, "mine.toml: encoder.features.t cannot be 3"),
        ({"encoder": {"window": 0}}, "the window holds at least one"),
        ({"actor": {"hidden": [8, "wide"]}}, "mine.toml: actor.hidden[1] cannot be 'wide'"),
        ({"training": {"epochs": 0}}, "training.epochs cannot be 0"),
        ({"training": {"part": [0.5, 0.5]}}, "training.part cannot be (0.5, 0.5)"),
        ({"training": {"validation": [0.6, 0.5]}}, "training.validation cannot be"),
        ({"training": {"learning_rate": 0}}, "training.learning_rate cannot be 0"),
        ({"training": {"lam": 1.5}}, "training.lam cannot be 1.5"),
        ({"training": {"entropy": -1}}, "training.entropy cannot be -1"),
        ({"training": {"part": [0.0, 0.7]}}, "training.part cannot be (0.0, 0.7)"),
        ({"training": {"validation": [0.5, 0.7]}}, "training.validation cannot be (0.5, 0.7)"),
        ({"training": {"busy": -1}}, "training.busy cannot be -1"),
        ({"training": {"horizon": -1}}, "training.horizon cannot be -1"),
        ({"training": {"warmup": -1}}, "training.warmup cannot be -1"),
        ({"training": {"average": 1}}, "training.average cannot be 1"),
        ({"training": {"average": -0.5}}, "training.average cannot be -0.5"),
        ({"training": {"rejecting": 0.5}}, "training.rejecting cannot be 0.5"),
        ({"training": {"teacher": ["t", "n"]}}, "training.teacher cannot be"),
        ({"training": {"teacher": [3]}}, "mine.toml: training.teacher[0] cannot be 3"),
        ({"deploy": "both"}, "mine.toml: deploy cannot be 'both'"),
        ({"actor": {"hidden": [8, 0]}}, "actor.hidden[1] cannot be 0"),
        ({"critic": {"hidden": []}}, "critic.hidden cannot be empty"),
        ({"critic": {"kind": "pairs"}}, "critic.kind cannot be pairs"),
        ({"actor": {"hidden": [4] * 65}}, "actor cannot be of 65 layers"),
        ({"test_from": 1.5}, "test_from cannot be 1.5"),
        ({"retry_after": 0}, "retry_after cannot be 0"),
        ({"guard": "penalty"}, "reward.penalty cannot be 0.0"),
        ({"setup": {"backfill": "none"}}, "setup.backfill cannot be none"),
        ({"reward": {"metric": "bsld.max"}}, "reward.metric cannot be bsld.max"),
        ({"reward": {"form": "winloss"}}, "reward.form cannot be winloss"),
    ],
)
def test_mistakes(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(BridgeError) as error:
        from_dict(changes, "mine.toml", TINY)
    assert said in str(error.value)


def test_what_is_missing_in_a_whole_recipe() -> None:
    document = TINY.as_dict()
    del document["encoder"]["features"]
    with pytest.raises(BridgeError, match=r"encoder\.features is missing") as error:
        from_dict(document, "agent.json")
    assert error.value.where == "agent.json"
