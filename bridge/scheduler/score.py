"""Evaluates an order's or a feature's program for waiting jobs, instruction by instruction over all."""

import math

import numpy as np

from bridge.jit import inline, inner
from bridge.scheduler.running import fits, may_backfill
from bridge.scheduler.state import SECOND, STACK, Array, Records, State

(
    OP_CONSTANT,
    OP_SUBMIT,
    OP_LENGTH,
    OP_NODES,
    OP_WAIT,
    OP_LONGEST_WAIT,
    OP_SHORTEST,
    OP_FAIRSHARE,
    OP_PARTITION,
    OP_LONGEST,
    OP_MACHINE,
    OP_FREE,
    OP_FITS,
    OP_GAP,
    OP_EXTRA,
    OP_BLOCKED,
    OP_SAFE,
    OP_REJECTS,
    OP_WAITING,
    OP_RUNNING,
    OP_COST,
    OP_BACKFILLABLE,
    OP_HEAD_WAIT,
    OP_HEAD_LENGTH,
    OP_HEAD_NODES,
    OP_LEFT,
    OP_LOAD,
    OP_SHARE,
    OP_USED,
    OP_GOAL,
    OP_ADD,
    OP_SUB,
    OP_MUL,
    OP_DIV,
    OP_FLOORDIV,
    OP_MOD,
    OP_POW,
    OP_NEG,
    OP_SQRT,
    OP_LOG,
    OP_LOG2,
    OP_LOG10,
    OP_EXP,
    OP_ABS,
    OP_MIN,
    OP_MAX,
) = range(46)
#: Variables stand before arithmetic; from here on they describe the machine and the pass, for features.
FIRST_VIEW, LAST_VARIABLE = OP_FREE, OP_GOAL
#: Variables of one resource, whose number is the instruction's `arg`.
FIRST_OF_RESOURCE = OP_SHARE


@inline
def wait_seconds(now: int, submit: int, truncate: int) -> float:
    """Return the wait that orders see, in seconds; CQSim truncates it to whole seconds."""
    if truncate:
        return float((now - submit) // 1_000_000)
    return (now - submit) / 1e6


@inline
def fairshare(state: State, b: int, user: int) -> float:
    """Return Slurm's classic fair-share factor 2^(-usage/share), both as fractions of the machine's use."""
    total = state.env[b].used_total
    if total <= 0.0 or state.share[user] <= 0.0:
        return 1.0
    return math.pow(2.0, -(state.usage[b, user] / total) / state.share[user])


@inner
def believed_left(state: State, b: int, j: int) -> float:
    """Return for how long running job `j` is believed to run on, seconds, as the rules believe it."""
    left = state.jobs[b, j].est_end - state.env[b].now
    if left <= 0 and state.rules[0].clamp_overrun:
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
    for i in range(state.env[b].n_blocks):
        block = state.blocks[b, i]
        for k in range(state.size[b, block]):
            j = state.items[b, block, k]
            length = state.jobs[b, j].est_wait / 1e6
            for q in range(n_resources):
                work = _fraction(state, state.demand[b, j, q], q) * length
                total += work
                if q == r:
                    own += work
    for i in range(state.env[b].n_running):
        j = state.run_job[b, i]
        length = max(believed_left(state, b, j), 0.0)
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
    for i in range(state.env[b].n_blocks):
        block = state.blocks[b, i]
        for k in range(state.size[b, block]):
            total += 1.0 / max(state.jobs[b, state.items[b, block, k]].t, 1.0)
    for i in range(state.env[b].n_running):
        total += 1.0 / max(state.jobs[b, state.run_job[b, i]].t, 1.0)
    return total


@inline
def _of_machine(state: State, b: int, op: int, r: int) -> float:
    """Return a variable that is the same for every job."""
    env = state.env[b]
    if op == OP_USED:
        return float(_fraction(state, state.capacity[r] - state.free[b, r], r))
    if op == OP_GOAL:
        return _goal(state, b, r)
    if op == OP_LOAD:
        return _load(state, b)
    if op == OP_FREE:
        return float(state.free[b, 0])
    if op == OP_GAP:
        return (env.shadow - env.now) / 1e6 if env.is_reserved else 0.0
    if op == OP_EXTRA:
        return float(max(state.extra[b, 0], 0)) if env.is_reserved else 0.0
    if op == OP_WAITING:
        return float(env.n_waiting)
    if op == OP_RUNNING:
        return float(env.n_running)
    if OP_HEAD_WAIT <= op <= OP_HEAD_NODES:
        if env.head < 0:
            return 0.0
        head = state.jobs[b, env.head]
        if op == OP_HEAD_WAIT:
            return float((env.now - head.submit) / 1e6)
        return float(head.t if op == OP_HEAD_LENGTH else head.n)
    total = 0.0
    for i in range(env.n_blocks):  # what is left: sums over the waiting queue
        block = state.blocks[b, i]
        for k in range(state.size[b, block]):
            j = state.items[b, block, k]
            if op == OP_COST:
                total += 1.0 / max(state.jobs[b, j].t, 10.0)
            elif state.rules[0].backfill > 0 and j != env.head and fits(state.demand[b, j], state.free[b]):
                total += 1.0
    return total


@inner
def look(state: State, b: int, op: int, r: int, place: int, which: Array, n: int) -> None:
    """Write a variable of the machine and the pass for the jobs ``which[:n]`` to where programs find it.

    Kept out of `evaluate`, which every changing order runs at every pass and which is slower with it inside.

    Args:
        state, b: the scheduler.
        op, r: the variable, and the resource that it is about.
        place: how many such variables stand before it in the program.
        which, n: jobs.
    """
    out = state.stack[STACK + place]
    head = state.env[b].head
    if op == OP_FITS:
        for i in range(n):
            out[i] = 1.0 if fits(state.demand[b, which[i]], state.free[b]) else 0.0
    elif op == OP_BLOCKED:
        for i in range(n):
            out[i] = 1.0 if which[i] == head else 0.0
    elif op == OP_SAFE:
        for i in range(n):
            out[i] = 1.0 if state.env[b].is_reserved and may_backfill(state, b, which[i]) else 0.0
    elif op == OP_REJECTS:
        for i in range(n):
            out[i] = float(state.jobs[b, which[i]].rejects)
    elif op == OP_LEFT:
        for i in range(n):
            has_started = state.jobs[b, which[i]].start >= 0
            out[i] = believed_left(state, b, which[i]) if has_started else 0.0
    elif op == OP_SHARE:
        for i in range(n):
            out[i] = _fraction(state, state.demand[b, which[i], r], r)
    else:
        value = _of_machine(state, b, op, r)
        for i in range(n):
            out[i] = value


@inner
def evaluate(state: State, b: int, program: Records, which: Array, n: int) -> None:
    """Leave the scores of the jobs ``which[:n]`` in ``stack[0]``; note a job whose score is not a number."""
    env = state.env[b]
    jobs = state.jobs[b]
    stack = state.stack
    truncate = state.rules[0].truncate_wait
    now = env.now
    looked = STACK
    top = -1
    for k in range(program.shape[0]):
        op = program[k].op
        if op <= LAST_VARIABLE:
            top += 1
            if op == OP_CONSTANT:
                value = program[k].value
                for i in range(n):
                    stack[top, i] = value
            elif op == OP_SUBMIT:
                for i in range(n):
                    stack[top, i] = jobs[which[i]].s
            elif op == OP_LENGTH:
                for i in range(n):
                    stack[top, i] = jobs[which[i]].t
            elif op == OP_NODES:
                for i in range(n):
                    stack[top, i] = jobs[which[i]].n
            elif op == OP_WAIT:
                for i in range(n):
                    stack[top, i] = wait_seconds(now, jobs[which[i]].submit, truncate)
            elif op == OP_LONGEST_WAIT:
                longest = 0.0
                for i in range(n):
                    longest = max(longest, wait_seconds(now, jobs[which[i]].submit, truncate))
                if longest == 0.0:
                    longest = 1.0
                for i in range(n):
                    stack[top, i] = longest
            elif op == OP_SHORTEST:
                shortest = np.inf
                for i in range(n):
                    shortest = min(shortest, jobs[which[i]].t)
                for i in range(n):
                    stack[top, i] = shortest
            elif op == OP_FAIRSHARE:
                for i in range(n):
                    stack[top, i] = fairshare(state, b, jobs[which[i]].user)
            elif op == OP_PARTITION:
                for i in range(n):
                    stack[top, i] = jobs[which[i]].p
            elif op == OP_LONGEST:
                for i in range(n):
                    stack[top, i] = state.constants[0]
            elif op == OP_MACHINE:
                for i in range(n):
                    stack[top, i] = state.constants[1]
            else:
                seen = stack[looked]
                looked += 1
                for i in range(n):
                    stack[top, i] = seen[i]
        elif op <= OP_POW or op >= OP_MIN:
            top -= 1
            x = stack[top]
            y = stack[top + 1]
            if op == OP_ADD:
                for i in range(n):
                    x[i] += y[i]
            elif op == OP_SUB:
                for i in range(n):
                    x[i] -= y[i]
            elif op == OP_MUL:
                for i in range(n):
                    x[i] *= y[i]
            elif op == OP_DIV:
                for i in range(n):
                    x[i] /= y[i]
            elif op == OP_FLOORDIV:
                for i in range(n):
                    x[i] = x[i] // y[i]
            elif op == OP_MOD:
                for i in range(n):
                    x[i] = x[i] % y[i]
            elif op == OP_POW:
                # the library's pow, bit for bit: x ** 3 differs from x * x * x, and ties decide
                for i in range(n):
                    x[i] = math.pow(x[i], y[i])
            elif op == OP_MIN:
                for i in range(n):
                    x[i] = min(x[i], y[i])
            else:
                for i in range(n):
                    x[i] = max(x[i], y[i])
        else:
            x = stack[top]
            if op == OP_NEG:
                for i in range(n):
                    x[i] = -x[i]
            elif op == OP_SQRT:
                for i in range(n):
                    x[i] = math.sqrt(x[i])
            elif op == OP_LOG:
                for i in range(n):
                    x[i] = math.log(x[i])
            elif op == OP_LOG2:
                for i in range(n):
                    x[i] = math.log2(x[i])
            elif op == OP_LOG10:
                for i in range(n):
                    x[i] = math.log10(x[i])
            elif op == OP_EXP:
                for i in range(n):
                    x[i] = math.exp(x[i])
            else:
                for i in range(n):
                    x[i] = abs(x[i])
    for i in range(n):
        if not math.isfinite(stack[0, i]):
            if env.bad_score < 0:
                env.bad_score = which[i]
            stack[0, i] = 0.0
