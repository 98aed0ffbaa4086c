"""The reward of a step: minus the slowdown, or minus the number of jobs, that the step adds.

Source: RLSchert, Equations 9 and 10, with the believed total length where the paper says remaining.
"""

from bridge.jit import inline
from bridge.pool.state import State


@inline
def reward(state: State, b: int) -> float:
    """Return -Σ 1 / L over all jobs in the system, L their believed length; or minus their number."""
    env = state.env[b]
    if state.pool[0].completion:
        return -float(env.n_booked + env.n_ready + env.n_waiting + env.tail - env.head)
    jobs = state.jobs[b]
    total = 0.0
    last = state.beliefs.shape[2] - 1
    for k in range(env.n_booked):
        j = state.booked[b, k]
        total += 1.0 / state.beliefs[b, j, min(max(env.now - jobs[j].start, 0), last)]
    for k in range(env.n_ready):
        total += 1.0 / jobs[state.ready[b, k]].believed
    for k in range(env.n_waiting):
        total += 1.0 / jobs[state.waiting[b, k]].believed
    for k in range(env.head, env.tail):
        total += 1.0 / jobs[state.backlog[b, k]].believed
    return -total
