"""The kernels that the loop of a batch consists of.

They are compiled into it where jobs have no nodes. On a cluster, or under a rule of action, they are so large
that the compiler would work on that for ten minutes: there the loop calls them.
"""

from collections.abc import Callable
from typing import Any, TypeVar

from bridge.base.jit import apart, by_type
from bridge.env import rows
from bridge.scheduler.action_state import ActionState
from bridge.scheduler.cluster_state import ClusterState
from bridge.worlds.fast import world

F = TypeVar("F", bound=Callable[..., Any])


def _by_size(function: F) -> F:
    called = apart(function)
    return by_type(by_type(function, called, ActionState), called, ClusterState)


apply_action = _by_size(rows.apply_action)
delays_head = _by_size(rows.delays_head)
encode = _by_size(rows.encode)
key_rows = _by_size(rows.key_rows)
list_rows = _by_size(rows.list_rows)
run_until_decision = _by_size(world.run_until_decision)
write_context = _by_size(rows.write_context)
