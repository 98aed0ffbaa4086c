"""What an agent has learnt from, so that nobody judges it on that."""

import numpy as np

from bridge.errors import BridgeError
from bridge.learn.checkpoint import Checkpoint
from bridge.learn.train import sha256_of
from bridge.workload.catalogue import resolve
from bridge.workload.select import Jobs
from bridge.workload.table import Workload


def require_same(agent: Checkpoint, name: str, remedy: str) -> None:
    """Refuse a log that is no longer the one that the agent learnt on.

    Args:
        agent: who learnt.
        name: the log.
        remedy: how to name another log.

    Raises:
        BridgeError: its digest is another one.
    """
    if sha256_of(resolve(name)) != agent.origin.sha256:
        raise BridgeError(
            f"the log {name} has changed since the agent was trained on it",
            where=str(agent.folder),
            remedy=remedy,
        )


def first_unseen(agent: Checkpoint, name: str, workload: Workload, jobs: Jobs) -> int:
    """Return the place among the selected jobs behind which the agent has seen none; 0 on another log.

    Args:
        agent: who learnt.
        name: the log, by name or path: it is recognised by its digest.
        workload: its records.
        jobs: a selection of them, by whatever rules.
    """
    if sha256_of(resolve(name)) != agent.origin.sha256:
        return 0
    own = agent.recipe.setup.select(workload)
    seen = own.id[: round(len(own) * agent.recipe.test_from)]
    return int(np.flatnonzero(np.isin(jobs.id, seen)).max(initial=-1)) + 1
