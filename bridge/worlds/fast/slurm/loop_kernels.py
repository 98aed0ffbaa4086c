"""Time of a site's Slurm, compiled: passes, ends of jobs and free nodes, until Python has something to do.

Jobs are those of the world, by their keys; the events here are ends and free nodes, in a heap by time and by
the order in which they were pushed.
"""

import math
from typing import NamedTuple

from bridge.base.arrays import Bundle, Floats, Ints
from bridge.base.jit import hot, inline, inner, kernel
from bridge.scheduler.slurm.arrays import (
    BY_PYTHON,
    HAS_BARRED,
    HAS_SKIPPED,
    IS_RUNNING,
    LIMITS_DUE,
    N_FREE_RUNS,
    N_LINE,
    N_NEWS,
    N_RUNNING,
    N_STARTS,
    N_WAITING,
    NEWS_ENTRY,
    NEWS_RUN,
    NOW,
    PERIODS,
    POOL,
    PREEMPTS,
    RUN_KEY,
    RUN_LIMIT,
    SlurmArrays,
)
from bridge.scheduler.slurm.choice_kernels import FREE_CPUS
from bridge.scheduler.slurm.fair_tree import ShareArrays
from bridge.scheduler.slurm.pass_kernels import (
    backfill_idle_until,
    backfill_pass,
    main_idle_until,
    main_pass,
    period,
    writes_plans,
)
from bridge.scheduler.slurm.start_kernels import end_job, ends_a_job, free_job
from bridge.worlds.fast.slurm import clock_kernels as clock

#: What the caller does: make one of the clock's passes; carry out its own event that is due; draw lateness;
#: make room; take over news at once; nothing, for nothing can happen any more.
EVENT, DRAWS, ROOM, NEWS, OVER = clock.NO_PASS, clock.DRAWS, clock.DRAWS + 1, clock.DRAWS + 2, clock.DRAWS + 3
#: Kinds of events.
END, FREE = range(2)
#: `events`: the order in which they were pushed; the kind; whose it is; of an end its token, of free nodes
#: the run.
ORDER, KIND, KEY, REF, EVENT_SIZE = range(5)
#: `counts`: events, how many there have been; whether passes are recorded, and the next one; passes that
#: Python makes; whether it takes over starts at once; nodes are freed by an epilog; the last backfill pass
#: wrote to records; the instant 0 of the clock, s since 1970.
(
    N_EVENTS, PUSHED, IS_RECORDED, NEXT_PASS, MAIN_BY_PYTHON, BACKFILL_BY_PYTHON, ALL_BY_PYTHON, STOPS,
    EPILOG, HAS_MARKED, EPOCH, COUNTS_SIZE,
) = range(12)  # fmt: skip
#: With the own clock jobs that wait are given up when nothing has happened for so long, s.
PATIENCE = 2 * 86_400.0


class _Fields(NamedTuple):
    """Arrays of the loop, [K] of jobs by key.

    Attributes:
        at, late, idle: of the own clock, see `clock_kernels`.
        passes: [·, 2] recorded ones: when, and which.
        counts: by the names above.
        work: [K] how long a job runs if nobody ends it, s; less than 0: to its limit.
        delay: [K] from its end by itself to free nodes, s; less than 0: the caller lets them be free.
        left, since, token, run: [K] of a job that runs: s of its work left at an instant, which of its ends
            is the valid one, and its row among `runs`.
        times, events: the heap.
        news_times: when the news of `SlurmArrays` happened.
    """

    at: Floats
    late: Floats
    idle: Floats
    passes: Floats
    counts: Ints
    work: Floats
    delay: Floats
    left: Floats
    since: Floats
    token: Ints
    run: Ints
    times: Floats
    events: Ints
    news_times: Floats


class LoopArrays(Bundle, _Fields):
    """All of them, as kernels take them."""


@inline
def _move(w: LoopArrays, place: int, source: int) -> None:
    w.times[place] = w.times[source]
    for k in range(EVENT_SIZE):
        w.events[place, k] = w.events[source, k]


@inline
def _is_before(w: LoopArrays, k: int, m: int) -> bool:
    return bool(
        w.times[k] < w.times[m] or (w.times[k] == w.times[m] and w.events[k, ORDER] < w.events[m, ORDER])
    )


@inner
def _push(w: LoopArrays, time: float, kind: int, key: int, ref: int) -> None:
    """Let something happen at an instant; behind the last place of the heap there is room."""
    n = w.counts[N_EVENTS]
    w.counts[N_EVENTS] = n + 1
    w.counts[PUSHED] += 1
    top = w.times.shape[0] - 1  # the event, until its place is clear
    w.times[top] = time
    w.events[top, ORDER], w.events[top, KIND] = w.counts[PUSHED], kind
    w.events[top, KEY], w.events[top, REF] = key, ref
    while n > 0 and _is_before(w, top, (n - 1) // 2):
        _move(w, n, (n - 1) // 2)
        n = (n - 1) // 2
    _move(w, n, top)


@inner
def _drop_first(w: LoopArrays) -> None:
    n = w.counts[N_EVENTS] - 1
    w.counts[N_EVENTS] = n
    k = 0
    while 2 * k + 1 < n:
        child = 2 * k + 1
        if child + 1 < n and _is_before(w, child + 1, child):
            child += 1
        if not _is_before(w, child, n):
            break
        _move(w, k, child)
        k = child
    _move(w, k, n)


@inner
def _run(w: LoopArrays, key: int, r: int, time: float, work: float) -> None:
    """Let a job's payload run from an instant on."""
    w.left[key], w.since[key], w.run[key] = work, time, r
    w.token[key] = w.counts[PUSHED] + 1
    _push(w, time + work, END, key, w.token[key])


@kernel
def run_now(w: LoopArrays, key: int, r: int, time: float, work: float) -> None:
    """Let a job's payload run from an instant on."""
    _run(w, key, r, time, work)


@inline
def _carry_out(b: SlurmArrays, w: LoopArrays, first: int, time: float) -> None:
    """Let the payloads of jobs run that a pass started, whose news are those from `first` on."""
    for k in range(first, b.now[N_NEWS]):
        w.news_times[k] = time
        e, r = b.news[k, NEWS_ENTRY], b.news[k, NEWS_RUN]
        key = b.runs[r, RUN_KEY]
        work = w.work[key]
        _run(w, key, r, time, work if work >= 0.0 else float(b.entries[e, RUN_LIMIT]))


@inline
def _has_room(b: SlurmArrays, w: LoopArrays) -> bool:
    """Tell whether there is room for all starts of a pass, and for one end."""
    waiting = b.now[N_WAITING]
    if b.now[N_FREE_RUNS] < waiting or w.counts[N_EVENTS] + waiting + 2 > w.times.shape[0]:
        return False
    if 8 + 2 * (b.now[N_LINE] + b.now[N_RUNNING] + 2 * waiting) > b.times.shape[0]:
        return False
    need = waiting * b.site.shape[0]
    if b.now[POOL] + need > b.pool.shape[0]:
        free = 0
        for n in range(b.book.shape[0]):
            free += max(b.book[n, FREE_CPUS], 0)
        if b.now[POOL] + min(need, free) > b.pool.shape[0]:
            return False
    return bool(b.now[N_NEWS] + waiting < min(b.news.shape[0], w.news_times.shape[0]))


@inline
def _writes(b: SlurmArrays, kind: int) -> bool:
    """Tell whether a pass wrote to a waiting job's record: its priority, its plan, or why it waits."""
    if b.now[N_WAITING] == 0 or kind == clock.LIMITS:
        return False
    if kind == clock.PRIO:
        return True
    if kind == clock.BACKFILL:
        return bool(b.now[HAS_BARRED] != 0) or writes_plans(b)
    return bool(b.now[HAS_SKIPPED] != 0 or b.now[HAS_BARRED] != 0)


@inner
def _say_idle(b: SlurmArrays, w: LoopArrays, event: float) -> None:
    """Write until when passes do nothing but write why jobs wait; full ones may not even do that."""
    epoch, idle = w.counts[EPOCH], w.idle
    idle[clock.EVENT] = event
    if event == math.inf or w.counts[ALL_BY_PYTHON] != 0:
        for k in range(clock.UNCHANGED + 1):
            idle[k] = -math.inf
        idle[clock.WRITES_MAIN] = idle[clock.WRITES_BACKFILL] = 0.0
        return
    waits = b.now[N_WAITING] != 0
    writes = _writes(b, clock.FULL)
    idle[clock.LIMITS] = float(b.now[LIMITS_DUE] - epoch)
    idle[clock.FULL] = float(main_idle_until(b, True) - epoch)
    idle[clock.DEFAULT] = float(main_idle_until(b, False) - epoch)
    idle[clock.BACKFILL] = float(backfill_idle_until(b) - epoch)
    idle[clock.UNCHANGED] = -math.inf if writes else idle[clock.FULL]
    idle[clock.WRITES_MAIN] = 1.0 if writes else 0.0
    idle[clock.WRITES_BACKFILL] = 1.0 if waits and w.counts[HAS_MARKED] != 0 else 0.0


@inline
def _next_pass(b: SlurmArrays, w: LoopArrays, event: float) -> int:
    """Return which pass comes before an event; ``at[NEXT]`` says when."""
    if w.counts[IS_RECORDED] == 0:
        _say_idle(b, w, event)
        return clock.next_pass(w.at, w.late, w.idle)
    k = w.counts[NEXT_PASS]
    if k < w.passes.shape[0] and w.passes[k, 0] < event:  # of one instant, passes come last
        w.counts[NEXT_PASS] = k + 1
        w.at[clock.NEXT] = w.passes[k, 0]
        return int(w.passes[k, 1])
    return EVENT


@inline
def _is_pythons(b: SlurmArrays, w: LoopArrays, kind: int, now: int) -> bool:
    """Tell whether the caller makes a pass."""
    if w.counts[ALL_BY_PYTHON] != 0:
        return True
    if kind == clock.LIMITS:
        return ends_a_job(b, now)
    if kind == clock.PRIO:
        return bool(b.rules[PERIODS] == BY_PYTHON)
    return bool(w.counts[BACKFILL_BY_PYTHON if kind == clock.BACKFILL else MAIN_BY_PYTHON] != 0)


@inner
def _pass(b: SlurmArrays, tree: ShareArrays, w: LoopArrays, kind: int, now: int) -> bool:
    """Make a pass; tell whether it started a job."""
    time, starts, first = w.at[clock.NEXT], b.now[N_STARTS], b.now[N_NEWS]
    if kind == clock.BACKFILL:
        backfill_pass(b, now)
    elif kind == clock.PRIO:
        period(b, tree, now)
    elif kind != clock.LIMITS:
        main_pass(b, now, kind == clock.FULL)
    started = b.now[N_STARTS] > starts
    if started:
        _carry_out(b, w, first, time)
    if w.counts[IS_RECORDED] == 0:
        changed = _writes(b, kind)
        clock.note(w.at, w.late, kind, time, started, changed)
        if kind == clock.BACKFILL:
            w.counts[HAS_MARKED] = int(changed)
    return bool(started)


@inner
def _happen(b: SlurmArrays, tree: ShareArrays, w: LoopArrays) -> bool:
    """Carry out the first event; tell whether the caller has to do something at once."""
    time, kind, key, ref = w.times[0], w.events[0, KIND], w.events[0, KEY], w.events[0, REF]
    _drop_first(w)
    b.now[NOW] = w.counts[EPOCH] + math.floor(time)
    w.news_times[b.now[N_NEWS]] = time
    if kind == FREE:
        free_job(b, ref)
        clock.tell(w.at, time, True, w.counts[EPILOG] != 0)
        return False
    stops = False
    if w.token[key] == ref and b.runs[w.run[key], IS_RUNNING] != 0:
        w.token[key] = -1
        end_job(b, tree, w.run[key])
        stops = b.rules[PREEMPTS] != 0 or w.delay[key] < 0.0
        if w.delay[key] >= 0.0:
            _push(w, time + w.delay[key], FREE, key, w.run[key])
    clock.tell(w.at, time, False, False)  # an end asks when its nodes answered
    return bool(stops)


@hot
def advance(b: SlurmArrays, tree: ShareArrays, w: LoopArrays, event: float, order: int) -> int:
    """Go on until the caller has to do something; its next event comes at an instant, in its order."""
    while True:
        if not _has_room(b, w):
            return ROOM
        next_event, is_own = event, False
        if w.counts[N_EVENTS] > 0 and (
            w.times[0] < event or (w.times[0] == event and w.events[0, ORDER] < order)
        ):
            next_event, is_own = w.times[0], True
        if next_event == math.inf and w.counts[IS_RECORDED] == 0 and b.now[N_RUNNING] == 0:
            idle = w.at[clock.TIME] - w.at[clock.LAST_CHANGE]
            if b.now[N_WAITING] == 0 or not idle < PATIENCE:
                return OVER
        kind = _next_pass(b, w, next_event)
        if kind == DRAWS:
            return DRAWS
        if kind != EVENT:
            now = w.counts[EPOCH] + math.floor(w.at[clock.NEXT])
            if _is_pythons(b, w, kind, now):
                return kind
            if _pass(b, tree, w, kind, now) and w.counts[STOPS] != 0:
                return NEWS
        elif not is_own:
            return EVENT if event < math.inf else OVER
        elif _happen(b, tree, w):
            return NEWS
