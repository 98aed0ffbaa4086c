"""Imitation: a rule's answers by hand; the actor comes to give them; then reinforcement takes over."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_training import TINY, some_jobs, tiny, trainer

from bridge.base.errors import BridgeError
from bridge.env.batch import Batch, PackedObservations
from bridge.env.encoder import Encoder
from bridge.env.episode_starts import constants_of
from bridge.learn.algorithms import ppo as module
from bridge.learn.algorithms.ppo import imitate, teacher_actions, with_teacher
from bridge.learn.checkpoint import Provenance
from bridge.learn.network import actor_of
from bridge.learn.recipe import NetworkConfig, Recipe
from bridge.learn.rollout import copy_for_inference, make_action_function, play

#: The shortest job that EASY would start, else stop.
SHORTEST = "1000*safe + 500*blocked - 100*log10(1 + t)*safe"


def view(rows: list[list[float]], offsets: list[int]) -> PackedObservations:
    return PackedObservations(
        np.array(rows, np.float32),
        np.array(offsets),
        np.arange(len(rows)),
        np.zeros((len(offsets) - 1, 0), np.float32),
    )


def test_the_largest_value_is_the_answer_the_first_among_equals() -> None:
    seen = view([[9, 1], [0, 3], [9, 2], [0, -1], [5, 7], [9, 7], [9, 6.5]], [0, 3, 4, 7])
    assert teacher_actions(seen, 1, inspects=False).tolist() == [1, 0, 0]


def test_any_condition_above_0_rejects() -> None:
    seen = view([[9, 9, 0, 0], [9, 9, 0, 1], [9, 9, -1, -2], [0, 0, 0.5, 1]], [0, 1, 2, 3, 4])
    assert teacher_actions(seen, 2, inspects=True).tolist() == [0, 1, 0, 1]


def test_a_rules_expressions_stand_behind_the_features() -> None:
    encoder = with_teacher(Encoder("inspect", {"a": "t", "b": "n"}, padding=(1.0, 2.0)), ("w", "1 - fits"))
    assert list(encoder.features.values()) == ["t", "n", "w", "1 - fits"]
    assert encoder.padding == ()


def origin() -> Provenance:
    jobs = some_jobs()
    return Provenance("bundled-128", jobs.name, len(jobs), "", 1, constants_of(jobs))


def lesson(recipe: Recipe, starts: int) -> tuple[torch.nn.Module, float]:
    """Return an actor after a lesson, and the share that it says it got right."""
    torch.manual_seed(1)
    actor = actor_of(recipe)
    prepared = recipe.setup.build_scenario(some_jobs(), recipe.policy())
    first = np.linspace(0, 300, starts).astype(np.int64)
    return actor, imitate(recipe, origin(), [(prepared, first)], actor, np.random.default_rng(1))


def agreement(recipe: Recipe, actor: torch.nn.Module) -> tuple[float, int]:
    """Return the share of decisions, in episodes not yet seen, that are answered as the rule does."""
    encoder = with_teacher(recipe.encoder, recipe.training.teacher)
    batch = Batch(
        recipe.setup.build_scenario(some_jobs(), recipe.policy()), encoder.compile(origin().constants), 4, 64
    )
    answer, features = (
        make_action_function(copy_for_inference(actor), "greedy", 1),
        len(recipe.encoder.features),
    )
    same: list[bool] = []

    def both(seen: PackedObservations) -> "np.ndarray[tuple[int], np.dtype[np.int64]]":
        rule = teacher_actions(seen, features, recipe.decision == "inspect")
        same.extend(
            rule
            == answer(
                PackedObservations(seen.rows[:, :features].copy(), seen.offsets, seen.keys, seen.context)
            )
        )
        return rule

    play(batch, both, np.array([311, 377, 444, 511]))
    return float(np.mean(same)), len(same)


def test_the_actor_answers_as_the_rule_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MINIBATCH", 64)
    recipe = replace(tiny(teacher=(SHORTEST,)), actor=NetworkConfig("kernel", (16, 8)))
    actor, share = lesson(recipe, 32)
    assert share >= 0.95
    again, decisions = agreement(recipe, actor)
    assert decisions > 50
    assert again >= 0.95
    torch.manual_seed(1)
    assert agreement(recipe, actor_of(recipe))[0] < 0.9  # before the lesson


def test_an_inspector_learns_to_reject_what_is_blocked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MINIBATCH", 64)
    recipe = replace(
        tiny(teacher=("1 - fits", "rejects - 20")),
        setup=replace(TINY.setup, backfill="none", order="sjf"),
        encoder=Encoder("inspect", {"fits": "fits", "length": "log10(1 + t)/5", "rejects": "rejects/20"}),
        critic=NetworkConfig("kernel", (4,)),
    )
    recipe.check()
    actor, share = lesson(recipe, 32)
    assert share >= 0.95
    assert agreement(recipe, actor)[0] >= 0.95


def test_the_same_generator_teaches_the_same() -> None:
    recipe = tiny(teacher=(SHORTEST,))
    (one, a), (two, b) = lesson(recipe, 4), lesson(recipe, 4)
    assert a == b
    assert all(torch.equal(x, y) for x, y in zip(one.parameters(), two.parameters(), strict=True))


def test_where_nothing_is_decided_nothing_is_learnt() -> None:
    recipe = tiny(teacher=(SHORTEST,))
    jobs = replace(some_jobs(), capacity=np.array([100_000]))
    actor = actor_of(recipe)
    before = [p.detach().clone() for p in actor.parameters()]
    prepared = recipe.setup.build_scenario(jobs, recipe.policy())
    rng = np.random.default_rng(1)
    assert imitate(recipe, origin(), [(prepared, np.array([0, 9]))], actor, rng) == 1.0
    assert all(torch.equal(x, y) for x, y in zip(before, actor.parameters(), strict=True))


def test_a_training_begins_with_its_lesson(tmp_path: Path) -> None:
    with_rule, without = trainer(tmp_path / "a", tiny(teacher=(SHORTEST,))), trainer(tmp_path / "b")
    with_rule.learner.begin()
    without.learner.begin()
    taught_actor, own = with_rule.learner.actor, without.learner.actor
    pairs = list(zip(taught_actor.parameters(), own.parameters(), strict=True))
    assert not any(torch.equal(a, b) for a, b in pairs)  # the same seed, but taught


@pytest.mark.parametrize("teacher", [("tt",), ("safe +",)])
def test_a_rule_that_is_no_expression_is_refused_before_anything_is_done(
    tmp_path: Path, teacher: tuple[str, ...]
) -> None:
    with pytest.raises(BridgeError, match=r"tt|safe \+"):
        trainer(tmp_path / "a", tiny(teacher=teacher))
