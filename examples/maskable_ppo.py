"""Trains sb3-contrib's MaskablePPO on the bundled workload, and compares it with the rule in its place.

    pip install sb3-contrib
    python examples/maskable_ppo.py [DECISIONS [backfill | preempt]]

It shows, in less than a minute, how our environments and somebody else's algorithm meet. An agent that
backfills begins at random and ends about where EASY is; one that preempts stands where the rule hybrid(300)
does, with the same rights. For an agent that beats them, minutes are needed: see `bridge train`.
"""

import sys
from dataclasses import replace
from typing import Any

import gymnasium
import numpy as np
import torch
from sb3_contrib import MaskablePPO
from stable_baselines3.common.env_util import make_vec_env

import bridge  # noqa: F401  (makes the environments' names known)
from bridge.env.env_config import ENCODERS
from bridge.env.reward import Reward

#: What is decided: the environment, its options, and the rule that decides otherwise.
TASKS: dict[str, tuple[str, dict[str, Any], str]] = {
    "backfill": (
        "bridge/Backfill-v0",
        {
            "length": 128,
            "encoder": replace(ENCODERS["backfill"], window=8),  # the first eight candidates, and may stop
            "guard": "mask",  # only candidates that do not delay the blocked head
            "reward": Reward("bsld", "percentage", "time"),
        },
        "EASY",
    ),
    "preempt": (
        "bridge/Preempt-v0",
        {"length": 128, "encoder": replace(ENCODERS["preempt"], window=16)},
        "hybrid",
    ),
}
#: First jobs of the sequences that are judged; training uses the half of the workload before them.
JUDGED = range(1500, 2860, 68)


def judge(model: MaskablePPO, task: str) -> tuple[float, float]:
    """Return the mean bounded slowdown of the held-out sequences, under the agent and under the rule."""
    name, options, _ = TASKS[task]
    env = gymnasium.make(name, starts=list(JUDGED), **options)
    values = []
    for _ in JUDGED:
        seen, _ = env.reset()
        over = False
        while not over:
            action, _ = model.predict(seen, action_masks=env.unwrapped.action_masks(), deterministic=True)
            seen, _, over, _, info = env.step(action)
        values.append((info["metric"], info["base"]))
    agent, base = np.mean(values, axis=0)
    return float(agent), float(base)


def main(decisions: int = 24_576, task: str = "backfill") -> None:
    """Train for so many decisions and print what it brought."""
    name, options, rule = TASKS[task]
    torch.set_num_threads(1)  # the networks are small: more threads only wait for each other
    envs = make_vec_env(lambda: gymnasium.make(name, part=(0.0, 0.5), **options), n_envs=8, seed=1)
    model = MaskablePPO(
        "MlpPolicy", envs, n_steps=256, batch_size=256, n_epochs=4, gamma=1.0, learning_rate=1e-3, seed=1
    )
    print(f"mean bounded slowdown of {len(JUDGED)} held-out sequences")
    print(f"{'decisions':>9}  {'agent':>6}  {rule:>6}")
    print("{:9}  {:6.1f}  {:6.1f}".format(0, *judge(model, task)))
    model.learn(decisions)
    print("{:9}  {:6.1f}  {:6.1f}".format(model.num_timesteps, *judge(model, task)))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]), *sys.argv[2:3])
