"""The state of a scheduler that may stop jobs on a cluster's nodes: `TimedState`, and a rule of action.

A life on nodes is the one that preemption knows, too: it has nodes and an episode, and stands in one log.
What the rule knows of it besides, such as progress and limit, stands in ``lives``, as on the pool. Jobs that
speculate have nodes that count as free: their amounts stand beside the free ones.
"""

from collections import namedtuple
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, get_type_hints

import numpy as np

from bridge.base.arrays import Array
from bridge.scheduler.action_state import ACTION_SCALARS, ActionFields, ActionState, blank_lives
from bridge.scheduler.state import NEVER, list_sizes, zeros
from bridge.scheduler.timed_state import TimedState, allocate_timed

#: What the cluster's state has already, and amounts of a pool.
_ELSEWHERE = frozenset({"life_log", "victims", "idle"})
_OF_ACTION = {
    name: hint
    for name, hint in get_type_hints(ActionFields, include_extras=True).items()
    if name not in _ELSEWHERE
}


class IdleFields(NamedTuple):
    """What `ActingNodes` has beside the fields of `TimedState` and of a rule of action."""

    speculator: Annotated[Array, "i4", "B", "N"]  # of counted classes: the job that speculates there, or -1
    on_idle: Annotated[Array, "i8", "B", "C", "R"]  # what speculating jobs have of nodes in service
    # scratch
    idle_base: Annotated[Array, "i8", "C", "R"]  # what is free without them; or what hosts lend
    no_host: Annotated[
        Array, "i8", "S"
    ]  # the look for guests, as `mark` counts, in which a demand had no hosts


if TYPE_CHECKING:

    class ActingNodes(TimedState, ActionState):  # type: ignore[misc]
        """Everything that a scheduler with a rule of action knows on a cluster."""

else:
    _Joined = namedtuple("_Joined", (*TimedState._fields, *_OF_ACTION, *IdleFields._fields))

    class ActingNodes(_Joined, TimedState):
        """Everything that a scheduler with a rule of action knows on a cluster."""


def allocate_acting(
    batch: int, length: int, sizes: Mapping[str, int], *, window: int = 128, users: int = 1
) -> ActingNodes:
    """Return the empty state of B schedulers of up to L jobs each, on a cluster of these `sizes`."""
    length = max(length, 1)
    base: Any = allocate_timed(batch, length, sizes, window=window, users=users)
    own = {"B": batch, **list_sizes(length), **sizes}
    make: Any = ActingNodes
    action = zeros(ActionFields, own | {"LG": 0})
    kept = [getattr(action, name) for name in _OF_ACTION]
    state: ActingNodes = make(*base, *kept, *zeros(IdleFields, own))
    return state


def reset_acting(state: ActingNodes, b: int) -> None:
    """Let no job of scheduler `b` have had a life; `reset_calendar` has emptied its lists."""
    state.acts[b] = np.zeros((), ACTION_SCALARS)
    state.acts.wake_at[b] = NEVER
    state.speculator[b] = -1
    state.on_idle[b] = 0
    blank_lives(state.lives[b])
