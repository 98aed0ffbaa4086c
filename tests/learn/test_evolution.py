"""Evolution strategies: ranks and a step by hand; a rule is found; going on gives the same bits."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from tiny_training import assert_resumes, tiny, trainer

from bridge.base.errors import BridgeError
from bridge.env.encoder import Encoder
from bridge.learn.algorithms.evolution import EvolutionStrategy, centred_ranks
from bridge.learn.recipe import EvolutionConfig as Settings
from bridge.learn.recipe import NetworkConfig, Recipe
from bridge.worlds.fast.scheduler_config import SchedulerConfig


def evolving(pairs: int = 3, sigma: float = 0.5, **training: object) -> Recipe:
    """Return a recipe that picks by a weighted length and size."""
    return replace(
        tiny(**training),
        setup=SchedulerConfig(order="fcfs", first=600),
        encoder=Encoder("pick", {"length": "-log10(max(t, 1))", "size": "-n/n_max"}, window=16),
        actor=NetworkConfig("kernel", ()),
        critic=NetworkConfig("none"),
        algorithm="evolution",
        evolution=Settings(pairs, sigma),
    )


def test_centred_ranks() -> None:
    assert centred_ranks(np.array([3.0, 1.0, 2.0])).tolist() == [-0.5, 0.5, 0.0]
    assert centred_ranks(np.array([1.0, 1.0, 5.0])).tolist() == [0.25, 0.25, -0.5]
    assert centred_ranks(np.array([1.0])).tolist() == [0.0]


def test_a_step_by_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    learner = trainer(tmp_path / "a", evolving(pairs=2, sigma=0.5, learning_rate=0.1)).learner
    assert isinstance(learner, EvolutionStrategy)
    before = torch.nn.utils.parameters_to_vector(learner.actor.parameters()).detach().double().numpy()
    tried = []

    def means(weights: "np.ndarray[tuple[int], np.dtype[np.float64]]", _: object) -> list[float]:
        tried.append(weights - before)
        learner._decisions += 1
        return [float(np.exp(weights[0]))]

    monkeypatch.setattr(learner, "_means", means)
    given = []
    monkeypatch.setattr(learner, "_descend", given.append)
    learnt = learner.learn(0, np.random.default_rng(1))
    assert len(tried) == 4
    assert tried[0] == pytest.approx(-tried[1])
    assert tried[2] == pytest.approx(-tried[3])
    ranks = centred_ranks(np.array([one[0] for one in tried]))
    expected = -sum(rank * one for rank, one in zip(ranks, tried, strict=True)) / (2 * 2 * 0.5**2)
    assert given[0] == pytest.approx(expected)
    assert given[0][0] > 0  # a smaller first weight is better
    assert learnt.decisions == 4


def test_adam_takes_the_gradient_in_the_order_of_the_weights(tmp_path: Path) -> None:
    learner = trainer(tmp_path / "a", evolving(learning_rate=0.1)).learner
    assert isinstance(learner, EvolutionStrategy)
    before = torch.nn.utils.parameters_to_vector(learner.actor.parameters()).detach().clone()
    learner._descend(np.array([1.0, -2.0, 0.0]))
    after = torch.nn.utils.parameters_to_vector(learner.actor.parameters()).detach()
    assert (after - before).tolist() == pytest.approx([-0.1, 0.1, 0.0], abs=1e-6)  # Adam's first step


def test_it_learns_to_take_short_jobs_first(tmp_path: Path) -> None:
    recipe = evolving(pairs=4, sigma=0.5, learning_rate=0.3, epochs=12, trajectories=8, validate_every=12)
    training = trainer(tmp_path / "a", recipe)
    with torch.no_grad():
        for one, value in zip(training.learner.actor.parameters(), ([[-1.0, 0.0]], [0.0]), strict=True):
            one.copy_(torch.tensor(value))  # the longest first
    longest = training.learner.validate(training.learner.actor, "greedy")
    training.run()
    weights = next(iter(training.learner.actor.parameters()))
    assert weights[0, 0] > 0
    assert training.learner.validate(training.learner.actor, "greedy") < 0.9 * longest


def test_going_on_gives_the_same_bits(tmp_path: Path) -> None:
    assert_resumes(tmp_path, evolving(pairs=2, average=0.5, anneal=True, min_base_metric=2.0), 1)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"teacher": ("n",)}, "teacher"),
        ({"warmup": 1}, "warmup"),
        ({"curriculum": ("real:1",)}, "curriculum"),
    ],
)
def test_what_it_does_not_know_is_refused(changes: dict[str, object], said: str) -> None:
    with pytest.raises(BridgeError, match=f"training.{said}"):
        evolving(**changes).check()


def test_pairs_and_distance_have_ranges() -> None:
    for settings in (Settings(pairs=0), Settings(sigma=0.0)):
        with pytest.raises(BridgeError, match="evolution"):
            replace(evolving(), evolution=settings).check()


def test_a_workload_without_decisions_is_refused(tmp_path: Path) -> None:
    recipe = replace(evolving(), encoder=replace(evolving().encoder, window=1))
    with pytest.raises(BridgeError, match="no decision"):
        trainer(tmp_path / "a", recipe).step()
