"""The first job of a queue whose scores only grow while jobs wait, found without sorting the queue.

Such a queue stands in order of submission. For a while ahead every job has an upper bound of its score: what
the score will be at the end of that while. A pass computes only the scores of jobs that their bounds let be
the first, and EASY only those of jobs that it may start. When the while is over, or more scores were
computed than there are jobs, all bounds are computed afresh.
"""

import math

import numpy as np

from bridge.base.arrays import Array
from bridge.base.jit import inline, inner
from bridge.scheduler.queue import list_in_order
from bridge.scheduler.score import Op, evaluate
from bridge.scheduler.state import NEVER, SECOND, State

#: The first while ahead; then twice the last if that ended too soon, or half of it if bounds were too loose.
_AHEAD = 64 * SECOND
#: Bounds are as much higher as the library's pow may be off.
_SLACK = 1e-9


def is_non_decreasing(program: Array) -> bool:
    """Tell whether a program's score certainly never falls while a job waits, with no other job in sight.

    It follows each value's lower bound, and whether it changes with the wait. What is not plainly one of the
    growing forms (sums, products and powers of what is not negative) is said to fall.
    """
    stack: list[tuple[float, bool]] = []  # lower bound; grows with the wait
    for op, _, value in program.tolist():
        if op == Op.CONSTANT:
            stack.append((value, False))
        elif op == Op.W:
            stack.append((0.0, True))
        elif op in (Op.T, Op.N, Op.PARTITION, Op.T_MAX, Op.N_MAX):
            stack.append((0.0, False))
        elif op == Op.S:
            stack.append((-math.inf, False))
        elif Op.ADD <= op <= Op.POW or op >= Op.MIN:
            right, left = stack.pop(), stack.pop()
            monotone = _of_two(op, left, right)
            if monotone is None:
                return False
            stack.append(monotone)
        else:
            low, grows = stack.pop()
            if grows:
                return False
            stack.append((_LOWEST[op](low), False) if low > 0 and op in _LOWEST else (-math.inf, False))
    return True


_LOWEST = {Op.SQRT: math.sqrt, Op.LOG: math.log, Op.LOG2: math.log2, Op.LOG10: math.log10}


def _of_two(op: int, left: tuple[float, bool], right: tuple[float, bool]) -> tuple[float, bool] | None:
    """Return the lower bound and growth of two values' combination, or None if it may fall."""
    (low, grows), (other, other_grows) = left, right
    either = grows or other_grows
    positive = low >= 0 and other >= 0
    match op:
        case Op.ADD:
            return low + other, either
        case Op.MIN:
            return min(low, other), either
        case Op.MAX:
            return max(low, other), either
        case Op.MULT if positive:
            return low * other, either
    if other_grows:
        return None
    match op:
        case Op.SUB:
            return -math.inf, grows
        case Op.DIV | Op.POW if positive:
            return 0.0, grows
    return None if grows else (-math.inf, False)


@inner
def bound_scores(state: State, b: int, which: Array, n: int) -> None:
    """Write upper bounds of their scores, valid until ``env.foreseen``, to the jobs ``which[:n]``."""
    env = state.scalars[b]
    bad = env.bad_score
    now = env.now
    env.now = env.foreseen
    evaluate(state, b, state.program, which, n)
    env.now = now
    is_bad = env.bad_score != bad
    env.bad_score = bad
    for k in range(n):
        bound = state.stack[0, k]
        state.jobs[b, which[k]].score = np.inf if is_bad else bound + abs(bound) * _SLACK


@inner
def _foresee_all(state: State, b: int) -> None:
    """Give all waiting jobs bounds for a while ahead."""
    env = state.scalars[b]
    if env.ahead == 0:
        env.ahead = _AHEAD
    elif env.n_scored > env.n_waiting:
        env.ahead = max(env.ahead // 2, SECOND)
    elif env.ahead < NEVER // 8:
        env.ahead *= 2
    env.foreseen = env.now + env.ahead
    env.n_scored = 0
    which = state.scratch[0]
    bound_scores(state, b, which, list_in_order(state, b, which))
    for i in range(env.n_blocks):
        block = state.blocks[b, i]
        _read_top(state, b, block)


@inline
def _read_top(state: State, b: int, block: int) -> int:
    """Compute the highest bound in a block, and return the job that has it."""
    top = -np.inf
    best = state.items[b, block, 0]
    for k in range(state.size[b, block]):
        j = state.items[b, block, k]
        if state.jobs[b, j].score > top:
            top = state.jobs[b, j].score
            best = j
    state.score_bound[b, block] = top
    return int(best)


@inner
def find_highest_score(state: State, b: int) -> int:
    """Return the job with the highest score now, of equal ones the first submitted (the queue has jobs)."""
    env = state.scalars[b]
    if env.now >= env.foreseen or env.n_scored > env.n_waiting:
        _foresee_all(state, b)
    which = state.scratch[0]
    place = 0
    for i in range(1, env.n_blocks):
        if state.score_bound[b, state.blocks[b, i]] > state.score_bound[b, state.blocks[b, place]]:
            place = i
    best = _read_top(state, b, state.blocks[b, place])
    which[0] = best
    evaluate(state, b, state.program, which, 1)
    high = state.stack[0, 0]
    for i in range(env.n_blocks):
        block = state.blocks[b, i]
        if state.score_bound[b, block] < high:
            continue
        _read_top(state, b, block)
        n = 0
        for k in range(state.size[b, block]):
            j = state.items[b, block, k]
            if state.jobs[b, j].score >= high and j != best:
                which[n] = j
                n += 1
        evaluate(state, b, state.program, which, n)
        env.n_scored += n
        for k in range(n):
            score = state.stack[0, k]
            if score > high or (score == high and which[k] < best):
                best = which[k]
                high = score
    return int(best)
