"""By which the queue sorts its jobs: an order's score; under a rule of action, groups of jobs first.

A group's number goes where the score is, and the score, as a whole number that ascends with it, where the
tie is: so the queue itself knows no groups.
"""

import numpy as np

from bridge.base.jit import by_type, inline
from bridge.scheduler.acting_state import ActingNodes
from bridge.scheduler.action_state import ActionState
from bridge.scheduler.actions import LAS, TRIAL
from bridge.scheduler.state import State

#: The lowest 63 bits.
_BITS = 0x7FFFFFFFFFFFFFFF


@inline
def set_plain_key(state: State, b: int, j: int, score: float) -> None:
    """Let a job stand where its score belongs."""
    state.jobs[b, j].score = score


@inline
def level_of(state: ActionState, attained: int) -> int:
    """Return the level of a job by its attained service: 0 is the first."""
    rules = state.action[0]
    if attained < rules.limit:
        return 0
    return 2 if rules.kind == LAS and attained >= rules.level else 1


@inline
def set_group_key(state: ActionState, b: int, j: int, score: float) -> None:
    """Let a job stand where its group and its score belong."""
    kind = state.action[0].kind
    job, life = state.jobs[b, j], state.lives[b, j]
    job.score, job.tie = score, life.tie
    if kind == TRIAL and life.may_try:
        job.score = np.inf
        job.tie = state.demand[b, j, 0] * job.est_wait
    elif kind >= LAS:  # LAS, HYBRID
        buffer = state.key_buffer
        buffer[0] = score + 0.0  # one zero only
        bits = buffer.view(np.int64)[0]
        if bits < 0:
            bits ^= _BITS
        job.score = -float(level_of(state, life.progress))
        job.tie = -bits
        if life.urgent:  # of its group the first, in order of submission
            job.score, job.tie = job.score + 0.5, 0


#: Let a job stand where an order's score says, in its group.
set_key = by_type(by_type(set_plain_key, set_group_key, ActionState), set_group_key, ActingNodes)
