"""Agents by the names that were typed: a folder, or ``module:ATTR``, a policy of the user's own."""

import shlex
from collections.abc import Iterable
from typing import TYPE_CHECKING

from bridge.base.errors import BridgeError
from bridge.learn.checkpoint_files import is_of_pool
from bridge.policy_name import is_own

if TYPE_CHECKING:
    from bridge.learn.checkpoint import LogAgent


def agent_of(name: str) -> "LogAgent":
    """Return the agent of the event-driven scheduler; BridgeError: there is none, or it is another's."""
    if is_own(name):
        from bridge.learn.user_policy import load_user_policy

        return load_user_policy(name)
    from bridge.learn.checkpoint import load

    return load(name)


def agents_of(names: Iterable[str]) -> "list[LogAgent]":
    """Return the agents, each once; BridgeError: no checkpoint, or one of the time-stepped pool."""
    names = list(dict.fromkeys(names))
    for name in names:
        if not is_own(name) and is_of_pool(name):
            remedy = f"Judge it without a log: bridge evaluate {shlex.quote(name)}"
            raise BridgeError("is an agent of the time-stepped pool", where=name, remedy=remedy)
    return [agent_of(name) for name in names]
