"""Where episodes come from: phases by epoch."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from tiny_training import TINY, crowded_jobs

from bridge.base.errors import BridgeError
from bridge.env.encoder import Encoder
from bridge.env.episode_starts import constants_of
from bridge.env.reward import Reward, base_costs
from bridge.learn.algorithms import log_learner as curriculum
from bridge.learn.algorithms.log_learner import EpisodeSource
from bridge.learn.recipe import NetworkConfig, PolicyGradientConfig, Recipe
from bridge.learn.rollout import collect
from bridge.scheduler.state import SECOND
from bridge.workload.derive import sample_similar
from bridge.workload.select import Jobs
from bridge.worlds.fast.scheduler_config import SchedulerConfig


def recipe(*phases: str, **training: Any) -> Recipe:
    return replace(
        TINY,
        setup=SchedulerConfig(),
        encoder=Encoder("pick", {"nodes": "n/n_max"}, window=8),
        actor=NetworkConfig("kernel", (4,)),
        critic=NetworkConfig("none", ()),
        algorithm="gradient",
        gradient=PolicyGradientConfig("1"),
        training=replace(TINY.training, curriculum=phases, length=32, trajectories=3, **training),
    )


def source(made: Recipe, jobs: Jobs | None = None) -> EpisodeSource:
    jobs = jobs or crowded_jobs()
    made.check()
    return EpisodeSource(made, jobs, constants_of(jobs), 5)


@pytest.mark.parametrize(
    ("phases", "expected"),
    [
        ((), ["real"] * 4),
        (("sampled:1", "real:2"), ["sampled", "real", "real", "real"]),
        (("synthetic:2", "sampled:1"), ["synthetic", "synthetic", "sampled", "sampled"]),
        (("real:0", "sampled:1", "synthetic:1"), ["sampled", "synthetic", "synthetic", "synthetic"]),
    ],
)
def test_the_last_phase_goes_on(
    monkeypatch: pytest.MonkeyPatch, phases: tuple[str, ...], expected: list[str]
) -> None:
    asked: list[str] = []

    def noted(jobs: Jobs, kind: str, sets: int, length: int, rng: np.random.Generator) -> Jobs:
        asked.append(kind)
        return sample_similar(jobs, kind, sets, length, rng)

    monkeypatch.setattr(curriculum, "sample_similar", noted)
    episodes = source(recipe(*phases))
    for epoch in range(4):
        asked.append("real") if episodes.draw(
            epoch, np.random.default_rng(1)
        ).batch is episodes.batch else None
    assert asked == expected


def test_made_episodes_resemble_the_training_part_only() -> None:
    made = recipe("sampled:1", "synthetic:1", part=(0.25, 0.5), validation=(0.25, 0.5))
    jobs = crowded_jobs()
    known = set(zip(jobs.run[100:200].tolist(), jobs.request[100:200].tolist(), strict=True))
    for epoch in range(2):
        drawn = source(made).draw(epoch, np.random.default_rng(epoch))
        prepared = drawn.batch.prepared
        assert drawn.starts.tolist() == [0, 32, 64]
        assert len(prepared.jobs) == 96
        assert set(zip(prepared.jobs.run.tolist(), prepared.jobs.request.tolist(), strict=True)) <= known


@pytest.mark.parametrize("kind", ["sampled", "real", "synthetic"])
def test_the_base_is_of_the_very_episodes(kind: str) -> None:
    made = recipe(f"{kind}:1")
    drawn = source(made).draw(0, np.random.default_rng(3))
    base = base_costs(made.setup.build_scenario(drawn.batch.prepared.jobs), drawn.starts, 32, Reward())
    assert drawn.base.tolist() == base.tolist()
    assert len(set(base.tolist())) == 3


def test_made_episodes_can_be_played() -> None:
    from bridge.learn.network import actor_of

    made = recipe("synthetic:1")
    drawn = source(made).draw(0, np.random.default_rng(3))
    seen = collect(drawn.batch, actor_of(made), drawn.starts, np.random.default_rng(1))
    assert sorted(set(seen.episode.tolist())) == [0, 1, 2]
    for episode, first in zip(seen.episodes, drawn.starts.tolist(), strict=True):
        assert episode.submit[0] == 0
        assert (episode.start >= episode.submit).all()
        assert (episode.run == drawn.batch.prepared.jobs.run[first : first + 32] / SECOND).all()


@pytest.mark.parametrize("phase", ["easy:10", "real", "real:", "real:-1", "real:x", ":3", "sampled:1.5"])
def test_what_is_no_phase_is_refused(phase: str) -> None:
    with pytest.raises(BridgeError, match=r"training\.curriculum(\[\d\])? cannot be"):
        recipe("real:1", phase).check()


def test_a_curriculum_is_not_for_ppo() -> None:
    with pytest.raises(BridgeError, match="It belongs to the other algorithms"):
        replace(TINY, training=replace(TINY.training, curriculum=("real:1",))).check()
