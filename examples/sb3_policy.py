"""A model of stable-baselines3 as a policy: trained in an environment, saved, and used by every command.

    pip install sb3-contrib
    cd examples
    python sb3_policy.py [DECISIONS]     # trains for half a minute, and writes sb3_model.zip
    bridge evaluate bundled-128 --policy sb3_policy:policy --policy fcfs+easy --from 0.5 --length 64
    bridge replay bundled-128 --policy sb3_policy:policy --out runs/sb3

The environment and the policy have the same options: the model has to see what it was trained on.
"""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from sb3_contrib import MaskablePPO

from bridge.env.env_config import ENCODERS, build_env_config
from bridge.env.reward import Reward
from bridge.learn.user_policy import UserPolicy

MODEL = Path("sb3_model.zip")
#: Backfilling behind FCFS: the first eight candidates, none of which delays the blocked head.
OPTIONS: dict[str, Any] = {
    "order": "fcfs",
    "encoder": replace(ENCODERS["backfill"], window=8),
    "guard": "mask",
}


def train(decisions: int = 24_576) -> None:
    """Train a model on the first half of the bundled workload, and save it."""
    import gymnasium
    import torch
    from stable_baselines3.common.env_util import make_vec_env

    import bridge  # noqa: F401  (makes the environments' names known)

    reward = Reward("bsld", "percentage", "time")
    torch.set_num_threads(1)  # the networks are small: more threads only wait for each other
    envs = make_vec_env(
        lambda: gymnasium.make("bridge/Backfill-v0", part=(0.0, 0.5), length=128, reward=reward, **OPTIONS),
        n_envs=8,
        seed=1,
    )
    model = MaskablePPO(
        "MlpPolicy", envs, n_steps=256, batch_size=256, n_epochs=4, gamma=1.0, learning_rate=1e-3, seed=1
    )

    def tell(*_: Any) -> bool:
        if model.num_timesteps % 4096 == 0:
            print(f"{model.num_timesteps:,} of {decisions:,} decisions", flush=True)
        return True

    print(f"training on {decisions:,} decisions", flush=True)
    model.learn(decisions, tell)
    model.save(MODEL)
    print(f"{model.num_timesteps:,} decisions, saved in {MODEL}")


def policy() -> UserPolicy:
    """Return the saved model as a policy: `bridge … --policy sb3_policy:policy` calls this function."""
    if not MODEL.exists():
        raise FileNotFoundError(f"no {MODEL.resolve()}: train it first, with `python sb3_policy.py`")
    model = MaskablePPO.load(MODEL, device="cpu")

    def predict(observation: Any, mask: np.ndarray) -> int:
        return int(model.predict(observation, action_masks=mask, deterministic=True)[0])

    return UserPolicy(build_env_config("backfill", **OPTIONS), predict, "MaskablePPO")


if __name__ == "__main__":
    train(*map(int, sys.argv[1:2]))
