"""What came of each decision: its advantage and its return, in one pass from the ends of episodes."""

import numpy as np

from bridge.arrays import Array, Floats, Ints
from bridge.jit import kernel


def advantages(
    rewards: Floats, values: Floats, owner: Ints, gamma: Floats | float, lam: Floats | float
) -> tuple[Floats, Floats]:
    """Return generalised advantages (Schulman et al. 2016) and discounted returns, [D] each.

    Nothing follows the end of an episode. `rewards`, `values`: [D] of decisions in the order in which their
    episode had them; `owner`: [D] whose they are. `gamma`, `lam`: discount, and trade-off of bias for
    variance, from each decision to the next; or [D].
    """
    advantage, returns = np.zeros_like(rewards), np.zeros_like(rewards)
    if len(rewards):
        gamma, lam = (np.full(len(rewards), given, np.float64) for given in (gamma, lam))
        behind = np.zeros((int(owner.max()) + 1, 3))
        _from_the_end(rewards, values, owner, gamma, lam, behind, advantage, returns)
    return advantage, returns


@kernel
def _from_the_end(
    rewards: Array,
    values: Array,
    owner: Array,
    gamma: Array,
    lam: Array,
    behind: Array,
    advantage: Array,
    returns: Array,
) -> None:
    """Fill the last two; ``behind`` [E, 3]: advantage, return and value of an episode's next decision."""
    for back in range(1, len(rewards) + 1):
        d = len(rewards) - back
        of, discount = owner[d], gamma[d]
        delta = rewards[d] + discount * behind[of, 2] - values[d]
        behind[of, 0] = delta + discount * lam[d] * behind[of, 0]
        behind[of, 1] = rewards[d] + discount * behind[of, 1]
        behind[of, 2] = values[d]
        advantage[d], returns[d] = behind[of, 0], behind[of, 1]
