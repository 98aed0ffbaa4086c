"""What an agent has learnt from, so that nobody judges it on that."""

import numpy as np

from bridge.errors import BridgeError
from bridge.learn.checkpoint import Checkpoint
from bridge.learn.origin import sha256_of
from bridge.workload.catalogue import resolve
from bridge.workload.select import Jobs
from bridge.workload.table import Workload


def digest_of(workload: Workload, name: str, known: str = "") -> str:
    """Return the digest of a log's contents; or that of its file, if this is the known one.

    Older checkpoints know their log by the digest of its file.

    Args:
        workload: the log's records.
        name: the log, by name or path.
        known: the digest that a checkpoint knows.
    """
    if known and known == sha256_of(resolve(name)):
        return known
    return workload.digest()


def require_same(agent: Checkpoint, name: str, workload: Workload, remedy: str) -> None:
    """Refuse a log that is no longer the one that the agent learnt on.

    Args:
        agent: who learnt.
        name: the log.
        workload: its records.
        remedy: how to name another log.

    Raises:
        BridgeError: its digest is another one.
    """
    if digest_of(workload, name, agent.origin.sha256) != agent.origin.sha256:
        raise BridgeError(
            f"the log {name} has changed since the agent was trained on it",
            where=str(agent.folder),
            remedy=remedy,
        )


def first_unseen(agent: Checkpoint, name: str, workload: Workload, jobs: Jobs) -> int:
    """Return the place among the selected jobs behind which the agent has seen none; 0 on another log.

    Args:
        agent: who learnt.
        name: the log, by name or path: it is recognised by its digest, of its contents.
        workload: its records.
        jobs: a selection of them, by whatever rules.
    """
    if digest_of(workload, name, agent.origin.sha256) != agent.origin.sha256:
        return 0
    own = agent.recipe.setup.select(workload)
    seen = own.id[: round(len(own) * agent.recipe.test_from)]
    return int(np.flatnonzero(np.isin(jobs.id, seen)).max(initial=-1)) + 1
