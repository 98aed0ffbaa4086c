"""Environments can be pickled, copied and sent to other processes, before a reset and in an episode."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from small_pools import job_set

gymnasium = pytest.importorskip("gymnasium", reason="gymnasium is not installed")

import bridge  # noqa: E402, F401  (makes the environments known)

POOL: dict[str, Any] = {"data": job_set([(3, 4, 2, [2, 3, 6, 6]), (2, 2, 4, [4])]), "steps": 20}
CASES: dict[str, dict[str, Any]] = {
    "bridge/Backfill-v0": {"length": 32},
    "bridge/Inspect-v0": {"length": 32},
    "bridge/PickOrKill-v0": POOL,
}


def steps(env: Any, n: int) -> list[tuple[Any, ...]]:
    """Take n steps by the last legal action; episodes that end begin anew."""
    found: list[tuple[Any, ...]] = []
    for _ in range(n):
        action = int(np.flatnonzero(env.unwrapped.action_masks())[-1])
        seen, reward, over, cut, info = env.step(action)
        mask = info.pop("action_mask").tolist()
        found.append((seen.tobytes(), reward, over, cut, mask, info))
        if over or cut:
            found.append((env.reset()[0].tobytes(),))
    return found


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
def test_a_copy_goes_on_as_the_environment_does(name: str, copied: Any) -> None:
    env = gymnasium.make(name, **CASES[name])
    fresh = copied(env)
    assert fresh.reset(seed=1)[0].tobytes() == env.reset(seed=1)[0].tobytes()
    steps(env, 5)
    twin = copied(env)
    assert steps(twin, 40) == steps(env, 40)


def test_a_copy_of_a_vector_environment_goes_on_as_it_does() -> None:
    many = gymnasium.make_vec("bridge/Backfill-v0", num_envs=3, length=32)
    many.reset(seed=[1, 2, 3])
    twin = pickle.loads(pickle.dumps(many))
    for _ in range(60):
        actions = many.action_space.sample(tuple(many.action_masks().astype(np.int8)))
        left, right = many.step(actions), twin.step(actions)
        assert all(np.array_equal(a, b) for a, b in zip(left[:4], right[:4], strict=True))
