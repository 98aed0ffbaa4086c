"""Evaluates an order's program for waiting jobs, instruction by instruction over the whole queue."""

import math

import numpy as np

from bridge.jit import inline, inner
from bridge.scheduler.state import Array, Records, State

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
) = range(27)


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
def evaluate(state: State, b: int, program: Records, which: Array, n: int) -> None:
    """Leave the scores of the jobs ``which[:n]`` in ``stack[0]``; note a job whose score is not a number."""
    env = state.env[b]
    jobs = state.jobs[b]
    stack = state.stack
    truncate = state.rules[0].truncate_wait
    now = env.now
    top = -1
    for k in range(program.shape[0]):
        op = program[k].op
        if op <= OP_MACHINE:
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
            else:
                for i in range(n):
                    stack[top, i] = state.constants[1]
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
