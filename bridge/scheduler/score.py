"""Evaluates an order's or a feature's program for waiting jobs, instruction by instruction over all."""

import math
from enum import IntEnum

import numpy as np

from bridge.base.arrays import Array, Records
from bridge.base.jit import inline, inner
from bridge.scheduler.reservation import may_backfill
from bridge.scheduler.running_jobs import first_place, fits, job_at, next_place
from bridge.scheduler.service import rest_seconds, served_seconds
from bridge.scheduler.state import SECOND, STACK, State

#: What programs are made of: a constant; variables, by the names that expressions have for them: those of
#: orders, of features about the machine and the pass, of features about one resource, whose number is the
#: instruction's `arg`; operators, by Python's names for them; functions.
Op = IntEnum(
    "Op",
    "CONSTANT S T N W Z L FAIRSHARE PARTITION T_MAX N_MAX "
    "FREE FITS GAP EXTRA BLOCKED SAFE REJECTS WAITING RUNNING COST BACKFILLABLE HEAD_W HEAD_T HEAD_N "
    "LEFT SERVED REST HEAD_SERVED RULE LOAD SHARE USED GOAL "
    "ADMISSIBLE PARTITION_FREE PARTITION_WAITING ACCOUNT_USED QOS_PRIORITY "
    "WAITING_BEGIN WAITING_DEPENDENCY WAITING_LIMIT WAITING_NEVER IN_PARTITION IN_QOS PER_NODE FREE_NODE "
    "ADD SUB MULT DIV FLOORDIV MOD POW NEG SQRT LOG LOG2 LOG10 EXP ABS MIN MAX",
    start=0,
)
#: The variables of features; those of features that only a cluster has, see `bridge.scheduler.cluster_view`.
FIRST_VIEW, LAST_VARIABLE = Op.FREE, Op.FREE_NODE
FIRST_OF_CLUSTER = Op.ADMISSIBLE


@inline
def wait_seconds(now: int, submit: int, truncate: int) -> float:
    """Return the wait that orders see, in seconds; CQSim truncates it to whole seconds."""
    if truncate:
        return float((now - submit) // 1_000_000)
    return (now - submit) / 1e6


@inline
def fairshare(state: State, b: int, user: int) -> float:
    """Return Slurm's classic fair-share factor 2^(-usage/share), both as fractions of the machine's use."""
    total = state.scalars[b].used_total
    if total <= 0.0 or state.share[user] <= 0.0:
        return 1.0
    return math.pow(2.0, -(state.usage[b, user] / total) / state.share[user])


@inner
def estimated_remaining(state: State, b: int, j: int) -> float:
    """Return for how long running job `j` is believed to run on, seconds, as the rules believe it."""
    left = state.jobs[b, j].est_end - state.scalars[b].now
    if left <= 0 and state.switches[0].clamp_overrun:
        left = SECOND
    return float(left / 1e6)


@inline
def _fraction(state: State, amount: int, r: int) -> float:
    """Return an amount as a fraction of a resource's capacity; 0 of a resource of which there is none."""
    return amount / state.capacity[r] if state.capacity[r] > 0 else 0.0


@inner
def _goal(state: State, b: int, r: int) -> float:
    """Return the share of resource `r` in all that is asked for (MRSch, Eq. 1).

    Demand as a fraction of the capacity times believed length, summed over waiting jobs and, with what is
    left of them, running ones. Without any job all resources are alike.
    """
    n_resources = state.capacity.shape[0]
    own = 0.0
    total = 0.0
    for i in range(state.scalars[b].n_blocks):
        block = state.blocks[b, i]
        for k in range(state.size[b, block]):
            j = state.items[b, block, k]
            length = state.jobs[b, j].est_wait / 1e6
            for q in range(n_resources):
                work = _fraction(state, state.demand[b, j, q], q) * length
                total += work
                if q == r:
                    own += work
    place = first_place(state, b)
    while job_at(state, b, place) >= 0:
        j = job_at(state, b, place)
        place = next_place(state.run_job[b], place)
        length = max(estimated_remaining(state, b, j), 0.0)
        for q in range(n_resources):
            work = _fraction(state, state.demand[b, j, q], q) * length
            total += work
            if q == r:
                own += work
    return own / total if total > 0.0 else 1.0 / n_resources


@inner
def _load(state: State, b: int) -> float:
    """Return the sum of 1/max(t, 1) over the jobs that wait or run (the reward of Mao et al. 2016)."""
    total = 0.0
    for i in range(state.scalars[b].n_blocks):
        block = state.blocks[b, i]
        for k in range(state.size[b, block]):
            total += 1.0 / max(state.jobs[b, state.items[b, block, k]].t, 1.0)
    place = first_place(state, b)
    while job_at(state, b, place) >= 0:
        total += 1.0 / max(state.jobs[b, job_at(state, b, place)].t, 1.0)
        place = next_place(state.run_job[b], place)
    return total


@inline
def _of_machine(state: State, b: int, op: int, r: int) -> float:
    """Return a variable that is the same for every job."""
    env = state.scalars[b]
    if op == Op.USED:
        return float(_fraction(state, state.capacity[r] - state.free[b, r], r))
    if op == Op.GOAL:
        return _goal(state, b, r)
    if op == Op.LOAD:
        return _load(state, b)
    if op == Op.FREE:
        return float(state.free[b, 0])
    if op == Op.GAP:
        return (env.shadow - env.now) / 1e6 if env.is_reserved else 0.0
    if op == Op.EXTRA:
        return float(max(state.extra[b, 0], 0)) if env.is_reserved else 0.0
    if op == Op.WAITING:
        return float(env.n_waiting)
    if op == Op.RUNNING:
        return float(env.n_running)
    if Op.HEAD_W <= op <= Op.HEAD_N:
        if env.head < 0:
            return 0.0
        head = state.jobs[b, env.head]
        if op == Op.HEAD_W:
            return float((env.now - head.submit) / 1e6)
        return float(head.t if op == Op.HEAD_T else head.n)
    total = 0.0
    for i in range(env.n_blocks):  # what is left: sums over the waiting queue
        block = state.blocks[b, i]
        for k in range(state.size[b, block]):
            j = state.items[b, block, k]
            if op == Op.COST:
                total += 1.0 / max(state.jobs[b, j].t, 10.0)
            elif state.switches[0].backfill > 0 and j != env.head and fits(state.demand[b, j], state.free[b]):
                total += 1.0
    return total


@inline
def prepare_variable(state: State, b: int, op: int, r: int, place: int, which: Array, n: int) -> None:
    """Write variable `op` of machine and pass, of resource `r`, for jobs ``which[:n]`` where programs look.

    Kept out of `compute`, which every changing order runs at every pass and which is slower with it inside.
    `place`: how many such variables stand before it in the program.
    """
    out = state.stack[STACK + place]
    head = state.scalars[b].head
    if op == Op.FITS:
        for i in range(n):
            out[i] = 1.0 if fits(state.demand[b, which[i]], state.free[b]) else 0.0
    elif op == Op.BLOCKED:
        for i in range(n):
            out[i] = 1.0 if which[i] == head else 0.0
    elif op == Op.SAFE:
        for i in range(n):
            out[i] = 1.0 if state.scalars[b].is_reserved and may_backfill(state, b, which[i]) else 0.0
    elif op == Op.REJECTS:
        for i in range(n):
            out[i] = float(state.jobs[b, which[i]].rejects)
    elif op == Op.LEFT:
        for i in range(n):
            has_started = state.jobs[b, which[i]].start >= 0
            out[i] = estimated_remaining(state, b, which[i]) if has_started else 0.0
    elif op == Op.SERVED:
        for i in range(n):
            out[i] = served_seconds(state, b, which[i])
    elif op == Op.REST:
        for i in range(n):
            out[i] = rest_seconds(state, b, which[i])
    elif op == Op.RULE:
        for i in range(n):
            out[i] = 0.0  # there is no rule of action
    elif op == Op.HEAD_SERVED:
        value = served_seconds(state, b, head) if head >= 0 else 0.0
        for i in range(n):
            out[i] = value
    elif op == Op.SHARE:
        for i in range(n):
            out[i] = _fraction(state, state.demand[b, which[i], r], r)
    else:
        value = _of_machine(state, b, op, r)
        for i in range(n):
            out[i] = value


@inner
def compute(state: State, b: int, program: Records, which: Array, n: int) -> None:
    """Leave a program's values for the jobs ``which[:n]`` in ``stack[0]``."""
    env = state.scalars[b]
    jobs = state.jobs[b]
    stack = state.stack
    truncate = state.switches[0].truncate_wait
    now = env.now
    looked = STACK
    top = -1
    for k in range(program.shape[0]):
        op = program[k].op
        if op <= LAST_VARIABLE:
            top += 1
            if op == Op.CONSTANT:
                value = program[k].value
                for i in range(n):
                    stack[top, i] = value
            elif op == Op.S:
                for i in range(n):
                    stack[top, i] = jobs[which[i]].s
            elif op == Op.T:
                for i in range(n):
                    stack[top, i] = jobs[which[i]].t
            elif op == Op.N:
                for i in range(n):
                    stack[top, i] = jobs[which[i]].n
            elif op == Op.W:
                for i in range(n):
                    stack[top, i] = wait_seconds(now, jobs[which[i]].submit, truncate)
            elif op == Op.Z:
                longest = 0.0
                for i in range(n):
                    longest = max(longest, wait_seconds(now, jobs[which[i]].submit, truncate))
                if longest == 0.0:
                    longest = 1.0
                for i in range(n):
                    stack[top, i] = longest
            elif op == Op.L:
                shortest = np.inf
                for i in range(n):
                    shortest = min(shortest, jobs[which[i]].t)
                for i in range(n):
                    stack[top, i] = shortest
            elif op == Op.FAIRSHARE:
                for i in range(n):
                    stack[top, i] = fairshare(state, b, jobs[which[i]].user)
            elif op == Op.PARTITION:
                for i in range(n):
                    stack[top, i] = jobs[which[i]].p
            elif op == Op.T_MAX:
                for i in range(n):
                    stack[top, i] = state.constants[0]
            elif op == Op.N_MAX:
                for i in range(n):
                    stack[top, i] = state.constants[1]
            else:
                values = stack[looked]
                looked += 1
                for i in range(n):
                    stack[top, i] = values[i]
        elif op <= Op.POW or op >= Op.MIN:
            top -= 1
            x = stack[top]
            y = stack[top + 1]
            if op == Op.ADD:
                for i in range(n):
                    x[i] += y[i]
            elif op == Op.SUB:
                for i in range(n):
                    x[i] -= y[i]
            elif op == Op.MULT:
                for i in range(n):
                    x[i] *= y[i]
            elif op == Op.DIV:
                for i in range(n):
                    x[i] /= y[i]
            elif op == Op.FLOORDIV:
                for i in range(n):
                    x[i] = x[i] // y[i]
            elif op == Op.MOD:
                for i in range(n):
                    x[i] = x[i] % y[i]
            elif op == Op.POW:
                # the library's pow, bit for bit: x ** 3 differs from x * x * x, and ties decide
                for i in range(n):
                    x[i] = math.pow(x[i], y[i])
            elif op == Op.MIN:
                for i in range(n):
                    x[i] = min(x[i], y[i])
            else:
                for i in range(n):
                    x[i] = max(x[i], y[i])
        else:
            x = stack[top]
            if op == Op.NEG:
                for i in range(n):
                    x[i] = -x[i]
            elif op == Op.SQRT:
                for i in range(n):
                    x[i] = math.sqrt(x[i])
            elif op == Op.LOG:
                for i in range(n):
                    x[i] = math.log(x[i])
            elif op == Op.LOG2:
                for i in range(n):
                    x[i] = math.log2(x[i])
            elif op == Op.LOG10:
                for i in range(n):
                    x[i] = math.log10(x[i])
            elif op == Op.EXP:
                for i in range(n):
                    x[i] = math.exp(x[i])
            else:
                for i in range(n):
                    x[i] = abs(x[i])


@inline
def finite(state: State, b: int, value: float, j: int) -> float:
    """Return job `j`'s value, or 0 if it is no finite number, which is noted."""
    if math.isfinite(value):
        return value
    if state.scalars[b].bad_score < 0:
        state.scalars[b].bad_score = j
    return 0.0


@inner
def evaluate(state: State, b: int, program: Records, which: Array, n: int) -> None:
    """Leave the scores of the jobs ``which[:n]`` in ``stack[0]``; note a job whose score is not a number."""
    compute(state, b, program, which, n)
    for i in range(n):
        state.stack[0, i] = finite(state, b, state.stack[0, i], which[i])
