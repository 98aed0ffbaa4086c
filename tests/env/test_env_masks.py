"""Rows of masks where no decision waits are all False; whatever is made of them does no harm."""

from typing import Any

import numpy as np
import pytest
from small_pools import job_set

gymnasium = pytest.importorskip("gymnasium", reason="gymnasium is not installed")

from bridge.env.environment import SchedulingVectorEnv  # noqa: E402
from bridge.pool.environment import PickOrKillVectorEnv  # noqa: E402

POOL: dict[str, Any] = {"data": job_set([(3, 4, 2, [2, 3, 6, 6]), (2, 2, 4, [4])]), "steps": 20}


def make(kind: str) -> Any:
    """Return two places whose episodes end at different times."""
    return PickOrKillVectorEnv(2, **POOL) if kind == "pool" else SchedulingVectorEnv(2, kind, length=32)  # type: ignore[arg-type]


def until_one_is_over(many: Any) -> int:
    """Play by sampled legal actions until one place alone is over; return it."""
    many.reset(seed=[1, 5])
    many.action_space.seed(0)
    for _ in range(2000):
        masks = many.action_masks()
        if masks.any(axis=1).sum() == 1:
            return int(np.flatnonzero(~masks.any(axis=1))[0])
        many.step(many.action_space.sample(tuple(masks.astype(np.int8))))
    raise AssertionError("no place was over alone")


@pytest.mark.parametrize("kind", ["pick", "backfill", "inspect", "pool"])
def test_whatever_is_answered_where_nothing_waits_the_next_episode_begins(kind: str) -> None:
    ends: list[tuple[Any, ...]] = []
    for garbage in (0, 3, -1, 10**9):
        many = make(kind)
        over = until_one_is_over(many)
        actions = many.action_space.sample(tuple(many.action_masks().astype(np.int8)))
        assert actions[over] == 0  # Gymnasium's own answer where nothing is legal
        actions[over] = garbage
        seen, given, ended, cut, info = many.step(actions)
        assert given[over] == 0.0
        assert not (ended[over] or cut[over] or info["invalid"][over])
        assert many.action_masks()[over].any()
        ends.append((seen.tobytes(), given.tolist(), many.action_masks().tobytes()))
    assert len(set(map(str, ends))) == 1


def test_a_distribution_over_no_legal_action_is_no_error() -> None:
    torch = pytest.importorskip("torch")
    distributions = pytest.importorskip("sb3_contrib.common.maskable.distributions")
    masks = np.array([[True, False, True], [False, False, False]])
    masked = distributions.MaskableCategorical(logits=torch.zeros(2, 3), masks=masks)
    assert torch.isfinite(masked.probs).all()
    assert masked.sample()[0] != 1
