"""Which of Slurm's passes comes next, compiled: three loops, and passes that do nothing go by in it.

Arrays: `at` holds where the loops stand, by the names below; `late` how late threads wake, each time in turn;
`idle` until when passes do nothing, in s of the clock: a pass does nothing whose whole second is earlier.
"""

import math

from bridge.base.arrays import Floats
from bridge.base.jit import hot, inline

#: Passes, of one instant in this order; nothing comes before the event; draws of lateness are used up.
LIMITS, FULL, DEFAULT, BACKFILL, PRIO, NO_PASS, DRAWS = range(7)
#: Time limits are checked so often, s.
LIMITS_PERIOD = 30.0
#: Where the loops stand.
(
    LOOP, LAST_FULL, LAST_MAIN, LAST_LIMITS, AWAKE, PERIOD_DUE, WANTED, CHANGED, AT_ONCE, LATE, N_DRAWS,
    LAST_CHANGE, TIME, NEXT, PERIOD, BATCH_DELAY, SCHED_INTERVAL, BF_INTERVAL, SECOND, HAS_BACKFILL,
    SIZE,
) = range(21)  # fmt: skip
#: Until when passes do nothing, by their places above; until when full ones may be left out altogether;
#: whether main passes, and backfill passes, write to records though they do nothing; the next event.
UNCHANGED, WRITES_MAIN, WRITES_BACKFILL, EVENT, IDLE_SIZE = 4, 5, 6, 7, 8


@inline
def _look(at: Floats, since: float, due: float) -> float:
    """Return when a thread that looks each second since an instant first does so when it is due."""
    if due == math.inf:
        return due
    return float(since + max(math.ceil((due - since) / at[SECOND]), 0) * at[SECOND])


@inline
def _backfill(at: Floats) -> float:
    return _look(at, at[AWAKE], at[CHANGED]) if at[HAS_BACKFILL] != 0.0 else math.inf


@inline
def _earlier(at: Floats, best: int, kind: int, time: float) -> int:
    if time < at[NEXT] or (time == at[NEXT] and kind < best):
        at[NEXT] = time
        return kind
    return best


@inline
def _loop(at: Floats, best: int, kind: int, due: float) -> int:
    """Consider a pass of the background loop, which may wake late."""
    time = _look(at, at[LOOP], due)
    return _earlier(at, best, kind, time + at[LATE] if time > at[LOOP] else time)


@inline
def choose_next(at: Floats) -> int:
    """Return which pass comes next; ``at[NEXT]`` says when."""
    at[NEXT] = math.inf
    main = math.floor(at[LAST_MAIN]) + at[BATCH_DELAY]
    full = math.floor(at[LAST_FULL]) + at[SCHED_INTERVAL]
    kind = _loop(at, NO_PASS, LIMITS, math.floor(at[LAST_LIMITS]) + LIMITS_PERIOD)
    kind = _loop(at, kind, FULL, full)
    kind = _loop(at, kind, DEFAULT, max(at[WANTED], main))
    kind = _earlier(at, kind, DEFAULT, at[AT_ONCE])
    kind = _earlier(at, kind, PRIO, at[PERIOD_DUE])
    return _earlier(at, kind, BACKFILL, _backfill(at))


@inline
def _periods(since: float, until: float, period: float) -> int:
    """Return how many periods go by before the last one that ends by then; `until` may be minus infinity."""
    return math.floor((until - since) / period - 1) if until > since else 0


@inline
def leave_out(at: Floats, event: float, limit: float, change: float) -> None:
    """Let passes that do nothing go by before an event.

    Checks of limits do nothing before `limit`, and full passes nothing before `change`, unless a backfill
    pass or new priorities come between; they still are the last ones that came.
    """
    if event == math.inf:
        return
    checks = _periods(at[LAST_LIMITS], min(event, limit), LIMITS_PERIOD)
    if checks > 0:
        at[LAST_LIMITS] += checks * LIMITS_PERIOD
    until = min(event, change, at[PERIOD_DUE], _backfill(at))
    passes = _periods(at[LAST_FULL], until, at[SCHED_INTERVAL])
    if passes > 0 and at[WANTED] == math.inf and at[AT_ONCE] == math.inf:
        at[LAST_FULL] += passes * at[SCHED_INTERVAL]
        at[LAST_MAIN] = max(at[LAST_MAIN], at[LAST_FULL])


@inline
def _draw(at: Floats, late: Floats) -> float:
    n = int(at[N_DRAWS])
    at[N_DRAWS] = n + 1
    return float(late[n])


@hot
def note(at: Floats, late: Floats, kind: int, time: float, started: bool, changed: bool) -> None:
    """Take note of a pass, whether it started a job, and whether it changed another record."""
    at[TIME] = time
    if kind == BACKFILL:
        at[AWAKE] = time + at[BF_INTERVAL] + _draw(at, late)
        at[CHANGED] = math.inf
    elif kind == PRIO:
        at[PERIOD_DUE] = time + at[PERIOD]
    else:
        if time != at[AT_ONCE] and time > at[LOOP]:
            at[LOOP], at[LATE] = time, _draw(at, late)
        if kind == LIMITS:
            at[LAST_LIMITS] = time
        else:
            at[LAST_MAIN] = time
            at[WANTED] = at[AT_ONCE] = math.inf
            if kind == FULL:
                at[LAST_FULL] = time
    if started:
        at[LAST_CHANGE] = time
    if started or changed:
        at[CHANGED] = min(at[CHANGED], time)


@hot
def tell(at: Floats, time: float, asks: bool, at_once: bool) -> None:
    """Take note that something happened; it `asks` for a main pass, or its message runs one `at_once`."""
    at[TIME] = at[LAST_CHANGE] = time
    at[CHANGED] = min(at[CHANGED], time)
    if asks:
        at[WANTED] = min(at[WANTED], time)
    if at_once:
        at[AT_ONCE] = min(at[AT_ONCE], time)


@hot
def next_pass(at: Floats, late: Floats, idle: Floats) -> int:
    """Let passes that do nothing go by; return which comes next, and ``at[NEXT]`` when, or `NO_PASS`."""
    while True:
        if at[N_DRAWS] + 1 >= late.shape[0]:
            return DRAWS
        leave_out(at, idle[EVENT], idle[LIMITS], idle[UNCHANGED])
        kind = choose_next(at)
        time = at[NEXT]
        if not time < idle[EVENT]:
            return NO_PASS
        if kind >= PRIO or math.floor(time) >= idle[kind]:
            return int(kind)
        writes = idle[WRITES_BACKFILL] if kind == BACKFILL else idle[WRITES_MAIN]
        note(at, late, kind, time, False, writes != 0.0 and kind != LIMITS)
