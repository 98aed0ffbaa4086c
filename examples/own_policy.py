"""A policy of one's own in Python, judged like any other and put behind `bridge decide`.

    cd examples
    bridge evaluate bundled-128 --policy own_policy:POLICY --policy fcfs+easy --sequences 20
    bridge decide own_policy:POLICY

What answers may be anything: here a line of NumPy, in `sb3_policy.py` a model of stable-baselines3. It is
loaded because its name is typed; a file that bridge opens never makes it load code.
"""

import numpy as np

from bridge.env.env_config import build_env_config
from bridge.learn.user_policy import UserPolicy


def shortest(seen: np.ndarray, mask: np.ndarray) -> int:
    """Backfill the candidate that is believed to run shortest, among those that delay nobody.

    Args:
        seen: float32 [candidates, features]; the features are named below.
        mask: which candidates may be chosen; the last action is to stop.
    """
    legal = np.flatnonzero(mask[:-1])
    return int(legal[np.argmin(seen[legal, LENGTH])])


TASK = build_env_config("backfill", order="fcfs", guard="mask")
LENGTH = TASK.encoder.names.index("length")
POLICY = UserPolicy(TASK, shortest, "shortest first")
