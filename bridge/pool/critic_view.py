"""What a critic may know while it teaches: the whole pool, hidden jobs too, and the jobs that will arrive.

A baseline may depend on everything that an action does not change, and the arrivals to come are most of what
makes a return differ from another (H. Mao et al., "Variance reduction for reinforcement learning in
input-driven environments", ICLR 2019). An agent never sees this; true lengths are not in it either.
"""

from bridge.jit import inline, kernel
from bridge.pool.state import Array, State
from bridge.pool.world import World

#: Numbers of a group of jobs: how many, Σ 1 / length, Σ units * length.
_GROUP = 3
#: Steps ahead in which arrivals are summed up; the last one is as far as there are any.
WINDOWS = (10, 30, 100, 1 << 20)
#: Steps ahead in which free units are summed up.
_AHEAD = (1, 5, 20, 60)
#: Numbers in all: groups that wait, are ready, run or are booked; arrivals in each window; free units; time.
NUMBERS = _GROUP * (5 + len(WINDOWS)) + len(_AHEAD) + 3


@inline
def _add(out: Array, at: int, units: int, length: int) -> None:
    """Count a job in the group at this place."""
    out[at] += 1.0
    out[at + 1] += 1.0 / length
    out[at + 2] += units * length


@kernel
def outlook(state: State, world: World, b: int, out: Array) -> None:
    """Write what a critic knows of pool `b`, whose phase is ASKING.

    Args:
        out: float [NUMBERS], all of order 1.
    """
    env = state.env[b]
    pool = state.pool[0]
    plan = world.plan[b]
    jobs = state.jobs[b]
    out[:] = 0.0
    for k in range(env.n_waiting):
        job = jobs[state.waiting[b, k]]
        _add(out, 0 if k < pool.slots else _GROUP, job.units, job.believed)
    for k in range(env.head, env.tail):
        job = jobs[state.backlog[b, k]]
        _add(out, _GROUP, job.units, job.believed)
    for k in range(env.n_ready):
        job = jobs[state.ready[b, k]]
        _add(out, 2 * _GROUP, job.units, job.believed)
    for k in range(env.n_booked):
        job = jobs[state.booked[b, k]]
        running = job.start < env.now
        _add(out, (3 if running else 4) * _GROUP, job.units, max(job.until - max(job.start, env.now), 1))
    at = 5 * _GROUP
    for j in range(plan.arrived, plan.jobs):
        job = jobs[j]
        for w in range(len(WINDOWS)):
            if job.submit - env.now <= WINDOWS[w]:
                _add(out, at + w * _GROUP, job.units, job.believed)
    for g in range(5 + len(WINDOWS)):
        out[g * _GROUP] /= 20.0
        out[g * _GROUP + 1] /= 4.0
        out[g * _GROUP + 2] /= 50.0 * pool.units
    at += len(WINDOWS) * _GROUP
    free = state.free[b]
    for a in range(len(_AHEAD)):
        steps = min(_AHEAD[a], free.shape[0])
        total = 0.0
        for h in range(steps):
            total += free[h]
        out[at + a] = total / (steps * pool.units)
    at += len(_AHEAD)
    left = max(plan.span - env.now, 0)
    out[at] = left / 200.0
    out[at + 1] = 1.0 if env.n_ready > 0 else 0.0
    out[at + 2] = env.silence / 10.0
