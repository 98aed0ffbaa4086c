"""The search for a start: loud random actors, of which the best of those tried is taken."""

import numpy as np
import pytest
import torch
from tiny_training import TINY, some_jobs
from torch import nn

from bridge.env.batch import Batch
from bridge.env.outcome import base_values, episode_of
from bridge.learn import search
from bridge.learn.network import actor_of
from bridge.learn.rollout import collect
from bridge.learn.search import BIAS, LOUD, best_of, loud
from bridge.learn.train import constants_of

STARTS = np.array([0, 150, 300, 450])


def state(actor: nn.Module) -> bytes:
    return b"".join(v.numpy().tobytes() for v in actor.state_dict().values())


def test_a_loud_actor_by_hand() -> None:
    shape = nn.Sequential(nn.Linear(300, 200), nn.ReLU(), nn.Linear(200, 100))
    before = state(shape)
    actor = loud(shape, torch.Generator().manual_seed(1))
    assert state(shape) == before
    first, last = actor[0], actor[2]  # type: ignore[index]
    assert first.weight.std().item() == pytest.approx((2 / 300) ** 0.5, rel=0.02)  # He et al. 2015
    assert not first.bias.any()
    assert last.weight.std().item() == pytest.approx(LOUD / 200**0.5, rel=0.02)
    assert last.bias.std().item() == pytest.approx(BIAS, rel=0.25)
    assert state(loud(shape, torch.Generator().manual_seed(1))) == state(actor)
    assert state(loud(shape, torch.Generator().manual_seed(2))) != state(actor)


@pytest.fixture
def batch() -> Batch:
    jobs = some_jobs()
    return Batch(TINY.setup.prepare(jobs, TINY.policy()), TINY.encoder.compile(constants_of(jobs)), 4, 64)


@pytest.fixture
def base() -> "np.ndarray[tuple[int], np.dtype[np.float64]]":
    return base_values(TINY.setup.prepare(some_jobs()), STARTS, 64, "bsld")


def test_the_best_of_those_tried_is_taken(
    batch: Batch, base: "np.ndarray[tuple[int], np.dtype[np.float64]]", monkeypatch: pytest.MonkeyPatch
) -> None:
    tried: list[nn.Module] = []
    real = loud

    def noted(actor: nn.Module, generator: torch.Generator) -> nn.Module:
        tried.append(real(actor, generator))
        return tried[-1]

    monkeypatch.setattr(search, "loud", noted)
    chosen = best_of(6, actor_of(TINY), batch, STARTS, base, "bsld", seed=5)
    assert len({state(actor) for actor in tried}) == 6
    worth = []
    for actor in tried:
        collect(batch, actor, STARTS, np.random.default_rng(5))
        worth.append(np.mean([episode_of(batch, b).value("bsld") / base[b] for b in range(4)]))
    assert len(set(worth)) > 1
    assert chosen is tried[int(np.argmin(worth))]


def test_the_same_seed_finds_the_same(
    batch: Batch, base: "np.ndarray[tuple[int], np.dtype[np.float64]]"
) -> None:
    torch.manual_seed(1)
    one = best_of(3, actor_of(TINY), batch, STARTS, base, "bsld", seed=5)
    torch.manual_seed(2)  # neither the given actor's weights nor the global generator matter
    two = best_of(3, actor_of(TINY), batch, STARTS, base, "bsld", seed=5)
    other = best_of(3, actor_of(TINY), batch, STARTS, base, "bsld", seed=6)
    assert state(one) == state(two) != state(other)
