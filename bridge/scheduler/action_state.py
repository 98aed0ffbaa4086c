"""The state of a scheduler that may stop jobs: `State`, and what is known of each job's lives.

Axes beside those of `bridge.scheduler.state`: LG entries of the log of lives. A *life* of a job lasts from a
start to its end, or until it is stopped; a suspended job goes on with the same life.
"""

from collections import namedtuple
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np

from bridge.base.arrays import Array, Bundle, Records
from bridge.scheduler.state import NEVER, State, list_sizes, zeros

#: What a job does: waits (or has ended), runs, runs on nodes that count as free, runs on a suspended job's
#: nodes, is suspended for such a guest.
WAITS, RUNS, SPECULATES, VISITS, SUSPENDED = range(5)
#: How a life ended. The last: for no rule of action; its next life has no cost.
COMPLETED, KILLED, PREEMPTED, GAVE_WAY = range(4)

#: What is known of a job beside `JOB`. Times in microseconds.
LIFE = np.dtype(
    [
        ("progress", "i8"),  # of its run, by earlier lives
        ("overhead", "i8"),  # that its present life, or the next, begins with
        ("suspended", "i8"),  # of this life: nodes lent, and what the return took
        ("suspended_at", "i8"),
        ("works_from", "i8"),  # it is back from its last suspension then
        ("limit_at", "i8"),  # this life is stopped then; NEVER
        ("first_start", "i8"),
        ("occupied", "i8"),  # all lives on nodes of its own
        ("lost", "i8"),  # of its lives, what brought no progress that was kept
        ("est_wait", "i8"),  # what is believed of a whole run,
        ("est_run", "i8"),
        ("tie", "i8"),
        ("restart_more", "i8"),  # by how much its own costs are above the rule's
        ("host_more", "i8"),
        ("resume_more", "i8"),
        ("t", "f8"),
        ("does", "i4"),
        ("permits", "i4"),  # bits of `bridge.scheduler.actions.PERMITS`
        ("may_try", "i4"),  # it can still speculate, be tried or be a guest
        ("guest", "i4"),  # who is on its nodes, or -1
        ("stops", "i4"),  # lives that were cut short
        ("suspensions", "i4"),
        ("urgent", "i4"),  # it has waited so long that it goes ahead of all
        ("memory_kept", "i4"),  # on a cluster: thousandths of its memory that it keeps while it is suspended
    ],
    align=True,
)

#: Of these, what the log or the cluster says.
TERMS = ("permits", "memory_kept", "restart_more", "host_more", "resume_more")

#: The rule. Times in microseconds.
_TIMES = ("kind", "limit", "level", "restart", "host", "resume", "guard")
ACTION_SWITCHES = np.dtype([(name, "i8") for name in (*_TIMES, "agent_preempt", "agent_trial", "latest")])
#: One scheduler's further scalars.
ACTION_SCALARS = np.dtype(
    [
        ("wake_at", "i8"),  # the next instant at which the rule has something to do, or NEVER
        ("n_limited", "i4"),
        ("n_stopped", "i4"),  # stops that the world has not collected
        ("n_back", "i4"),  # stopped in the midst of a pass, not yet back in the queue
        ("n_to_try", "i4"),  # waiting jobs that may still be tried
        ("n_log", "i4"),
        ("keeps_log", "i4"),  # somebody collects it
        ("declined", "i4"),  # the agent lets the blocked head wait
        ("stood", "i8"),  # on a cluster: how long the life that ends now did not work,
        ("kept", "i8"),  # and what it did that is kept for the next one
    ],
    align=True,
)
LIFE_ENTRY = np.dtype(
    [("start", "i8"), ("end", "i8"), ("job", "i4"), ("how", "i4"), ("ended", "i4")], align=True
)
#: Entries of the log of lives beyond two for each job, and after how many the world must collect it.
LOG_ROOM = 4096


class ActionFields(NamedTuple):
    """What `ActionState` has beside the fields of `State`."""

    action: Annotated[Records, ACTION_SWITCHES, 1]
    acts: Annotated[Records, ACTION_SCALARS, "B"]
    lives: Annotated[Records, LIFE, "B", "L"]
    idle: Annotated[Array, "i8", "B", "R"]  # free amounts without those of speculating jobs
    limited: Annotated[Array, "i4", "B", "L"]  # jobs whose life has a limit, in order of start
    stopped: Annotated[Array, "i4", "B", "L"]  # jobs stopped or suspended, not yet collected by the world
    back: Annotated[Array, "i4", "B", "L"]
    life_log: Annotated[Records, LIFE_ENTRY, "B", "LG"]
    victims: Annotated[Array, "i4", "L"]  # scratch: who may be stopped, or suspended
    victim_keys: Annotated[Array, "i8", "L"]
    chosen: Annotated[Array, "i4", "L"]
    key_buffer: Annotated[Array, "f8", 1]


if TYPE_CHECKING:

    class ActionState(State):
        """Everything that a scheduler with a rule of action knows."""

        def __getattr__(self, name: str) -> Any: ...

else:

    class ActionState(Bundle, namedtuple("_Joined", (*State._fields, *ActionFields._fields))):
        """Everything that a scheduler with a rule of action knows."""

        #: A quarter of the time to compile; 0.89 to 0.94 of the speed.
        large = True


def allocate_actions(
    batch: int, length: int, resources: int, *, window: int = 128, users: int = 1
) -> ActionState:
    """Return an empty state for B schedulers of up to L jobs; as `bridge.scheduler.state.allocate`."""
    length = max(length, 1)
    sizes = {"B": batch, "R": resources, "W": window, "U": users, "P": 4 * length + 8, "L": length}
    make: Any = ActionState
    state: ActionState = make(
        *zeros(State, sizes | list_sizes(length)), *zeros(ActionFields, sizes | {"LG": 2 * length + LOG_ROOM})
    )
    state.share[:] = 1.0
    return state


def reset_actions(state: ActionState, b: int) -> None:
    """Let no job of scheduler `b` have had a life; `bridge.scheduler.state.reset` has emptied its lists."""
    state.acts[b] = np.zeros((), ACTION_SCALARS)
    state.acts.wake_at[b] = NEVER
    state.idle[b] = state.capacity
    blank_lives(state.lives[b])


def blank_lives(lives: Records) -> None:
    """Let jobs have had no life; what the log or the cluster says of them stays."""
    stays = {name: lives[name].copy() for name in TERMS}
    lives[:] = np.zeros((), LIFE)
    for name, values in stays.items():
        lives[name] = values
    lives.limit_at = NEVER
    for name in ("first_start", "guest"):
        lives[name] = -1
