"""What came of each decision: its advantage and its return, in one pass from the ends of episodes."""

import numpy as np

from bridge.base.arrays import Array, Floats, Ints
from bridge.base.jit import kernel


def compute_gae(
    rewards: Floats, values: Floats, episode_index: Ints, gamma: Floats | float, gae_lambda: Floats | float
) -> tuple[Floats, Floats]:
    """Return generalised advantages (Schulman et al. 2016) and discounted returns, [D] each.

    Nothing follows the end of an episode. `rewards`, `values`: [D] of decisions in the order in which their
    episode had them; `episode_index`: [D] whose they are. `gamma`, `gae_lambda`: discount, and trade-off of
    bias for variance, from each decision to the next; or [D].
    """
    advantage, returns = np.zeros_like(rewards), np.zeros_like(rewards)
    if len(rewards):
        gamma, gae_lambda = (np.full(len(rewards), factor, np.float64) for factor in (gamma, gae_lambda))
        behind = np.zeros((int(episode_index.max()) + 1, 3))
        _from_the_end(rewards, values, episode_index, gamma, gae_lambda, behind, advantage, returns)
    return advantage, returns


@kernel
def _from_the_end(
    rewards: Array,
    values: Array,
    episode_index: Array,
    gamma: Array,
    gae_lambda: Array,
    behind: Array,
    advantage: Array,
    returns: Array,
) -> None:
    """Fill the last two; ``behind`` [E, 3]: advantage, return and value of an episode's next decision."""
    for back in range(1, len(rewards) + 1):
        d = len(rewards) - back
        of, discount = episode_index[d], gamma[d]
        delta = rewards[d] + discount * behind[of, 2] - values[d]
        behind[of, 0] = delta + discount * gae_lambda[d] * behind[of, 0]
        behind[of, 1] = rewards[d] + discount * behind[of, 1]
        behind[of, 2] = values[d]
        advantage[d], returns[d] = behind[of, 0], behind[of, 1]
