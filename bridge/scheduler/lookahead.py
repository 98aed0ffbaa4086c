"""Lookahead: at every pass a rule's order, or that with one job moved to the front if it plays out better.

A candidate is played forward on what is believed: EASY with the candidate's order frozen, until the cost

    J = Σ_j w_j · T · (1 − e^(−x_j / T)),    x_j = start_j − now,    w_j = 1 / max(t_j, 10 s)

can only be higher than the best one's. J is the growth of the bounded slowdowns, discounted over T, so that
what lies far ahead, of which little is known, weighs little. A moved job that does not fit stands for "hold,
and reserve for it". Jobs end when they are believed to, but what is reserved and backfilled meanwhile goes by
what EASY will believe of running jobs then, such as their requests. A running job that has outlived its
belief is believed to take twice what it has run, at most its request.

Of several rules, the one whose own queue plays out best at this pass stands for the rule.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bridge.base.arrays import Array
from bridge.base.errors import BridgeError
from bridge.base.jit import inline, inner, kernel
from bridge.scheduler.amounts import copy_amounts, give, take
from bridge.scheduler.queue import BY_ORDER, list_in_order, precedes, rearrange, sort_jobs
from bridge.scheduler.running_jobs import fits, list_running
from bridge.scheduler.score import evaluate
from bridge.scheduler.state import NEVER, SECOND, State

#: A policy that looks ahead, ``lookahead(BASE, …, SETTING=NUMBER, …)``.
_NAME = re.compile(r"lookahead\((.*)\)", re.DOTALL)
_SETTING = re.compile(r"\s*\w+\s*=(?!=)")
#: So many of the queue's first jobs are played forward.
DEPTH = 256
#: A roll-out ends after so many times T: whoever starts later adds less than e^-10 of its weight.
REACH = 10.0
#: Rows of the scratch memory: jobs; lengths, believed and while running; the queue; when running jobs are
#: believed to end, in order, and whose these ends are; the same of when EASY expects them to; then both as
#: they are at present.
_JOB, _LENGTH, _HELD, _QUEUE, _END, _WHOSE, _DUE, _DUES, _NOW = 0, 1, 2, 3, 4, 5, 6, 7, 8
_ROWS = 12


@dataclass(frozen=True)
class Lookahead:
    """How far a policy looks ahead, and when it leaves its rule.

    Attributes:
        T: seconds over which the growth of slowdowns is discounted.
        margin: a deviation must be better than the rule's own order by this fraction of its J.
        deviations: how many jobs behind the first are tried at the front.
        arrivals: seconds ahead for which true arrivals are seen, which only a bound can do: 0 = none.
    """

    T: float = 7_200.0
    margin: float = 0.03
    deviations: int = 10
    arrivals: float = 0.0

    def reorder_queue(self, state: State, b: int, others: Sequence[Array] = ()) -> None:
        """Bring the queue of scheduler `b` into the order that its pass will follow.

        Args:
            state, b: the present; its program is the first rule's.
            others: programs of the other rules.
        """
        env = state.scalars.view(np.ndarray)[b]
        size = min(int(env["n_waiting"]), DEPTH) + int(env["n_running"])
        first = last = 0
        if self.arrivals > 0:
            submit = state.jobs.view(np.ndarray)[b]["submit"]
            visible_until = int(env["now"]) + round(self.arrivals * SECOND)
            first, last = map(int, np.searchsorted(submit, [int(env["now"]), visible_until], side="right"))
        work = np.empty((_ROWS, size + last - first), np.int64)
        weight = np.empty(size + last - first)
        free = np.empty((2, state.capacity.shape[0]), np.int64)
        arguments = (b, first, last, work, weight, free, self.T * SECOND)
        if others:
            each = [state, *(state._replace(program=one.view(np.recarray)) for one in others)]
            costs = [choose(one, *arguments, 0.0 if k else self.margin, 0) for k, one in enumerate(each)]
            state = each[int(np.argmin(costs))]
        choose(state, *arguments, self.margin, self.deviations)


#: Setting -> its type, and bounds: from, to.
_BOUNDS: Mapping[str, tuple[type[float], float, float]] = {
    "T": (float, 1.0, 1e9),
    "margin": (float, 0.0, 0.999),
    "deviations": (int, 1.0, 1_000.0),
}


def split(name: str) -> tuple[list[str], Lookahead] | None:
    """Return bases and settings of ``lookahead(BASE, …, SETTING=NUMBER, …)``; None if it is another name.

    Raises:
        BridgeError: an unknown setting, or a value that is none.
    """
    match = _NAME.fullmatch(name.strip())
    if match is None:
        return None
    parts = _parts(match[1])
    bases = [part.strip() for part in parts if not _SETTING.match(part)]
    settings: dict[str, float] = {}
    for part in filter(_SETTING.match, parts):
        key, _, value = (word.strip() for word in part.partition("="))
        try:
            number = float(value)
            kind, low, high = _BOUNDS[key]
            if key in settings or not low <= number <= high or number != kind(number):
                raise ValueError
        except (KeyError, ValueError):
            settings_text = ", ".join(
                f"{name} from {low:g} to {high:g}" for name, (_, low, high) in _BOUNDS.items()
            )
            raise BridgeError(
                "is no setting, or not its value",
                where=f"{part.strip()!r} of {name!r}",
                remedy=f"Settings: {settings_text}; for example lookahead(saf, T=3600, margin=0.05).",
            ) from None
        settings[key] = kind(number)
    if not bases or not all(bases):
        raise BridgeError("names no base", where=repr(name), remedy="For example lookahead(saf).")
    return bases, Lookahead(**settings)  # type: ignore[arg-type]


def _parts(text: str) -> list[str]:
    """Split at commas outside of parentheses."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


@inline
def _believed(state: State, b: int, j: int) -> int:
    """Return when running job `j` is believed to end: a second from now at the earliest."""
    job = state.jobs[b, j]
    now = state.scalars[b].now
    length = job.est_wait
    if now - job.start >= length:
        length = min(2 * (now - job.start), job.est_run)
    return int(max(job.start + length, now + SECOND))


@inline
def _note(work: Array, row: int, m: int, end: int, whose: int) -> None:
    """Note in `row` and the next the end of a job among `m` others, in order of ends."""
    k = m
    while k > 0 and work[row, k - 1] > end:
        work[row, k] = work[row, k - 1]
        work[row + 1, k] = work[row + 1, k - 1]
        k -= 1
    work[row, k] = end
    work[row + 1, k] = whose


@inline
def _begin(state: State, b: int, work: Array, free: Array, p: int, now: int, i: int, m: int) -> None:
    """Start job `p` of the roll-out."""
    take(free[0], state.demand[b, work[_JOB, p]])
    _note(work, _END, m, now + work[_LENGTH, p], p)
    _note(work, _DUE, m - i, now + work[_HELD, p], p)


@inline
def _finish(state: State, b: int, work: Array, free: Array, i: int, m: int) -> None:
    """End the `i`-th of the `m` jobs that have begun."""
    p = work[_WHOSE, i]
    give(free[0], state.demand[b, work[_JOB, p]])
    k = 0
    while work[_DUES, k] != p:
        k += 1
    for q in range(k, m - i - 1):
        work[_DUE, q] = work[_DUE, q + 1]
        work[_DUES, q] = work[_DUES, q + 1]


@inline
def _shadow(state: State, b: int, work: Array, free: Array, head: int, running: int) -> int:
    """Return the first end EASY expects at which the head fits, and leave in ``free[1]`` the extra then."""
    demand = state.demand[b, work[_JOB, head]]
    copy_amounts(free[1], free[0])
    end = -1
    i = 0
    while i < running and not fits(demand, free[1]):
        end = work[_DUE, i]
        while i < running and work[_DUE, i] == end:
            give(free[1], state.demand[b, work[_JOB, work[_DUES, i]]])
            i += 1
    if not fits(demand, free[1]):
        end = NEVER
    take(free[1], demand)
    return int(end)


@inner
def _start_all(
    state: State, b: int, work: Array, free: Array, weight: Array, now: int, n: int, i: int, m: int
) -> tuple[int, int, float]:
    """Make a pass of EASY; return how many wait and run then, and the weight of those that started."""
    started = 0.0
    q = 0
    while q < n and fits(state.demand[b, work[_JOB, work[_QUEUE, q]]], free[0]):
        _begin(state, b, work, free, work[_QUEUE, q], now, i, m)
        started += weight[work[_QUEUE, q]]
        m += 1
        q += 1
    if q == n:
        return 0, m, started
    shadow = _shadow(state, b, work, free, work[_QUEUE, q], m - i)
    work[_QUEUE, 0] = work[_QUEUE, q]
    kept = 1
    for k in range(q + 1, n):
        p = work[_QUEUE, k]
        demand = state.demand[b, work[_JOB, p]]
        in_time = now + work[_LENGTH, p] <= shadow
        if fits(demand, free[0]) and (in_time or fits(demand, free[1])):
            _begin(state, b, work, free, p, now, i, m)
            started += weight[p]
            m += 1
            if not in_time:
                take(free[1], demand)
        else:
            work[_QUEUE, kept] = p
            kept += 1
    return kept, m, started


@inline
def _arrive(state: State, b: int, work: Array, n: int, p: int, moved: int) -> None:
    """Put job `p` into the queue of `n` jobs by its score, never before the moved one."""
    jobs = state.jobs[b]
    k = n
    while k > 0 and work[_QUEUE, k - 1] != moved:
        if not precedes(jobs, work[_JOB, p], work[_JOB, work[_QUEUE, k - 1]]):
            break
        work[_QUEUE, k] = work[_QUEUE, k - 1]
        k -= 1
    work[_QUEUE, k] = p


@kernel
def roll_out(
    state: State,
    b: int,
    n: int,
    arriving: int,
    m: int,
    moved: int,
    work: Array,
    weight: Array,
    free: Array,
    discount: float,
    bound: float,
) -> float:
    """Return the J of the queue with the job in place `moved` at its front, or infinity from `bound` on.

    Args:
        state, b: the present.
        n, arriving, m: jobs that wait, that will arrive, that run: jobs of the roll-out in this order.
        moved: a place in the queue; 0 = the rule's own order.
        work, weight, free: see `choose`.
        discount: T, microseconds.
        bound: J of the best so far.
    """
    start = state.scalars[b].now
    now = start
    copy_amounts(free[0], state.free[b])
    for k in range(m):
        for row in range(_END, _NOW):
            work[row, k] = work[row - _END + _NOW, k]
    entered = 0.0
    least = NEVER
    for k in range(n):
        work[_QUEUE, k] = k if k > moved else (moved if k == 0 else k - 1)
        entered += weight[k]
        least = min(least, state.demand[b, work[_JOB, k], 0])
    waiting = entered
    left = 0.0  # weights of those that started, discounted
    i = 0
    p = n
    decay = 1.0
    if moved == 0:
        moved = -1
    while True:
        if free[0, 0] >= least:
            n, m, started = _start_all(state, b, work, free, weight, now, n, i, m)
            waiting -= started
            left += started * decay
            if n == 0:
                least = NEVER
                waiting = 0.0
        if n == 0 and arriving == 0:
            return discount * (entered - left)
        event = work[_END, i] if i < m else NEVER
        if arriving > 0:
            event = min(event, state.jobs[b, work[_JOB, p]].submit)
        over = event == NEVER or event - start >= REACH * discount
        decay = math.exp(-(REACH if over else (event - start) / discount))
        cost = discount * (entered - left - waiting * decay)
        if cost >= bound:
            return np.inf
        if over:
            return cost
        now = event
        while i < m and work[_END, i] <= now:
            _finish(state, b, work, free, i, m)
            i += 1
        while arriving > 0 and state.jobs[b, work[_JOB, p]].submit <= now:
            _arrive(state, b, work, n, p, moved)
            least = min(least, state.demand[b, work[_JOB, p], 0])
            entered += weight[p] * decay
            waiting += weight[p]
            n += 1
            p += 1
            arriving -= 1


@inner
def _undecided(state: State, b: int, flat: Array, n: int, spare: Array) -> bool:
    """Tell whether the order matters now: some job fits, but not all of them."""
    some = False
    copy_amounts(spare, state.free[b])
    everybody = True
    for k in range(n):
        demand = state.demand[b, flat[k]]
        some = some or fits(demand, state.free[b])
        if everybody:
            everybody = fits(demand, spare)
            take(spare, demand)
        if some and not everybody:
            return True
    return False


@inner
def _load(
    state: State, b: int, flat: Array, n: int, first: int, last: int, work: Array, weight: Array
) -> None:
    """Write the jobs of the roll-outs: those that wait in order, those that arrive, those that run."""
    running = state.scalars[b].n_running
    list_running(state, b, work[_JOB, n + last - first :])
    for k in range(n + last - first + running):
        if k < n:
            j = flat[k]
        elif k < n + last - first:
            j = first + k - n
        else:
            j = work[_JOB, k]
        work[_JOB, k] = j
        work[_LENGTH, k] = max(state.jobs[b, j].est_wait, 1)
        work[_HELD, k] = max(state.jobs[b, j].est_run, work[_LENGTH, k])
        weight[k] = 1.0 / max(work[_LENGTH, k] / SECOND, 10.0)
    for k in range(running):
        p = n + last - first + k
        end = _believed(state, b, work[_JOB, p])
        _note(work, _NOW, k, end, p)
        _note(work, _NOW + _DUE - _END, k, max(state.jobs[b, work[_JOB, p]].est_end, end), p)


@kernel
def choose(
    state: State,
    b: int,
    first: int,
    last: int,
    work: Array,
    weight: Array,
    free: Array,
    discount: float,
    margin: float,
    deviations: int,
) -> float:
    """Bring the queue into the base's order with the best job at its front; return the J of that.

    The J of the base's own order counts as less by the margin. Where nothing is to be decided it is 0.

    Args:
        state, b: the present; its program is the base's.
        first, last: jobs that will arrive, in order of submission.
        work, weight, free: scratch, int64 [12, M], float64 [M], int64 [2, R], for M jobs of the roll-outs.
        discount: T, microseconds.
        margin, deviations: see `Lookahead`.
    """
    env = state.scalars[b]
    jobs = state.jobs[b]
    flat = state.scratch[0]
    total = list_in_order(state, b, flat)
    evaluate(state, b, state.program, flat, total)
    for k in range(total):
        jobs[flat[k]].score = state.stack[0, k]
    if last > first:
        which = state.scratch[1]
        for k in range(last - first):
            which[k] = first + k
        evaluate(state, b, state.program, which, last - first)
        for k in range(last - first):
            jobs[first + k].score = state.stack[0, k]
    sort_jobs(jobs, flat, state.scratch[1], total, BY_ORDER)
    best = 0
    least = 0.0
    n = min(total, DEPTH)
    if env.bad_score < 0 and _undecided(state, b, flat, total, free[1]):
        m = env.n_running
        _load(state, b, flat, n, first, last, work, weight)
        least = (1.0 - margin) * roll_out(
            state, b, n, last - first, m, 0, work, weight, free, discount, np.inf
        )
        for moved in range(1, min(n, deviations + 1)):
            cost = roll_out(state, b, n, last - first, m, moved, work, weight, free, discount, least)
            if cost < least:
                least = cost
                best = moved
    for k in range(total):
        jobs[flat[k]].score = -float(k)
    jobs[flat[best]].score = 1.0
    rearrange(state, b)
    env.is_sorted = 1
    return least
