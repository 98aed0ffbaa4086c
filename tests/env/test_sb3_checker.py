"""stable-baselines3's own check of an environment has nothing to say."""

import warnings
from typing import Any

import pytest
from small_pools import job_set

gymnasium = pytest.importorskip("gymnasium", reason="gymnasium is not installed")
checker = pytest.importorskip("stable_baselines3.common.env_checker", reason="no stable-baselines3")

from env_checker import NAMES  # noqa: E402

import bridge  # noqa: E402, F401  (makes the environments known)
from bridge.env.register import PICK_OR_KILL  # noqa: E402

POOL: dict[str, Any] = {"data": job_set([(3, 4, 2, [2, 3, 6, 6]), (2, 2, 4, [4])]), "steps": 20}


@pytest.mark.parametrize("name", [*NAMES, PICK_OR_KILL])
def test_the_checker_has_nothing_to_say(name: str) -> None:
    env = gymnasium.make(name, **(POOL if name == PICK_OR_KILL else {"length": 32}))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # a table of features is a box of its own, neither an image nor scaled to -1 … 1
        warnings.filterwarnings("ignore", message=".*(image|normalize|unconventional shape).*")
        checker.check_env(env.unwrapped)
