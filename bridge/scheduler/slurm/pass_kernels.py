"""Whole passes, compiled: which are left out as they provably change nothing, what they are, and periods.

A pass that changed nothing leaves a certificate: in which state that was, and until when the time alone
changes nothing either.
"""

from bridge.base.jit import inline, inner, kernel
from bridge.scheduler.slurm import backfill_kernels as backfill
from bridge.scheduler.slurm import main_kernels as main
from bridge.scheduler.slurm.arrays import (
    AT_BEGIN,
    BF_MIN_AGE,
    BF_MIN_PRIO,
    BY_KERNEL,
    BY_LAST_BACKFILL,
    BY_LAST_MAIN,
    CHANGES,
    COUNTS_MINUTES,
    FAR,
    HAS_GONE,
    IS_VALID,
    N_STARTS,
    N_WAITING,
    ODD_UNTIL,
    PASSED_CHANGES,
    PASSED_UNTIL,
    PASSED_VERSION,
    PASSED_WHOLE,
    PERIODS,
    PLAN_CHANGES,
    PLAN_UNTIL,
    PLAN_VERSION,
    PREEMPTS,
    RESERVATIONS,
    RUNNING_RESERVE,
    STARTS_THEN,
    VERSION,
    VERSION_THEN,
    SlurmArrays,
)
from bridge.scheduler.slurm.fair_tree import ShareArrays
from bridge.scheduler.slurm.limit_kernels import is_packed_as, keep_packed
from bridge.scheduler.slurm.line_kernels import drop_those_gone, sort_line, take_turns
from bridge.scheduler.slurm.plan_kernels import HORIZON
from bridge.scheduler.slurm.usage_kernels import run_period


@inline
def _is_kept(b: SlurmArrays) -> bool:
    """Tell whether the line would be the same if it were made anew."""
    return bool(b.now[IS_VALID] != 0 and b.now[HAS_GONE] == 0)


@inner
def main_idle_until(b: SlurmArrays, full: bool) -> int:
    """Return until when main passes provably change nothing, and leave the weights as they are."""
    now = b.now
    if now[N_WAITING] == 0:
        return FAR
    if not _is_kept(b) or now[PASSED_VERSION] != now[VERSION] or now[PASSED_CHANGES] != now[CHANGES]:
        return 0
    if (full and now[PASSED_WHOLE] == 0) or not is_packed_as(b, BY_LAST_MAIN):
        return 0
    return int(now[PASSED_UNTIL])


@inner
def backfill_idle_until(b: SlurmArrays) -> int:
    """Return until when a backfill pass provably decides what the last one did: nothing."""
    now = b.now
    if now[N_WAITING] == 0:
        return FAR
    if not _is_kept(b) or now[PLAN_VERSION] != now[VERSION] or now[PLAN_CHANGES] != now[CHANGES]:
        return 0
    return int(now[PLAN_UNTIL]) if is_packed_as(b, BY_LAST_BACKFILL) else 0


@inline
def _next_change(b: SlurmArrays, time: int) -> int:
    """Return until when nothing changes by the time alone that a pass looks at; `time`: it may any time."""
    rules = b.rules
    if b.now[RESERVATIONS] > 0 or rules[BF_MIN_AGE] != 0 or rules[BF_MIN_PRIO] != 0:
        return time
    if rules[COUNTS_MINUTES] != 0 or rules[PREEMPTS] != 0:
        return time
    return int(b.now[ODD_UNTIL])


@inner
def end_main(b: SlurmArrays, time: int, starts: int, whole: bool) -> None:
    """Take note of a main pass that started nothing since there were `starts`; `whole`: it saw all jobs."""
    now = b.now
    if now[N_STARTS] == starts:  # else the next one may find a job over a limit that blocked in this one
        now[PASSED_VERSION], now[PASSED_WHOLE], now[PASSED_CHANGES] = now[VERSION], int(whole), now[CHANGES]
        now[PASSED_UNTIL] = _next_change(b, time)
        keep_packed(b, BY_LAST_MAIN)


@inline
def _is_unchanged(b: SlurmArrays) -> bool:
    """Tell whether a backfill pass started nothing, planned nothing otherwise, and left the weights."""
    is_same = b.now[STARTS_THEN] == b.now[N_STARTS] and b.now[VERSION_THEN] == b.now[VERSION]
    return is_same and is_packed_as(b, AT_BEGIN)


@inner
def end_backfill(b: SlurmArrays, time: int, at_any_time: bool) -> bool:
    """Take note of a backfill pass if it changed nothing, and tell so; `at_any_time`: the next one may."""
    if not _is_unchanged(b):
        return False
    now, until = b.now, min(b.own[HORIZON], _next_change(b, time))
    if at_any_time or b.rules[RUNNING_RESERVE] != 0:
        until = time
    now[PLAN_VERSION], now[PLAN_CHANGES], now[PLAN_UNTIL] = now[VERSION], now[CHANGES], until
    keep_packed(b, BY_LAST_BACKFILL)
    return True


@inner
def main_pass(b: SlurmArrays, time: int, full: bool) -> None:
    """Walk the queue once; no job of it is odd, and none preempts."""
    if time < main_idle_until(b, full):
        return
    drop_those_gone(b)  # now the line is in order, so that more may be known
    n = take_turns(b)
    if time < main_idle_until(b, full):
        return
    starts = b.now[N_STARTS]
    main.begin_main(b, time, full, n)
    came = main.go_on(b, -1)
    end_main(b, time, starts, full or came != main.CUT)


@inner
def backfill_pass(b: SlurmArrays, time: int) -> None:
    """Plan the queue once; no job of it is odd, and none preempts."""
    if time < backfill_idle_until(b):
        return
    drop_those_gone(b)
    n = take_turns(b)
    if time < backfill_idle_until(b):
        return
    backfill.begin(b, time, n)
    backfill.find_last(b, 0, n)
    backfill.go_on(b, backfill.GO_ON)
    end_backfill(b, time, False)


@inner
def period(b: SlurmArrays, tree: ShareArrays, time: int) -> None:
    """Compute priorities as each calculation period does."""
    if b.rules[PERIODS] == BY_KERNEL:
        run_period(b, tree, time)
    if b.now[IS_VALID] != 0:
        sort_line(b)


@inner
def writes_plans(b: SlurmArrays) -> bool:
    """Tell whether the backfill pass that was just made wrote to records though it started nothing."""
    drop_those_gone(b)
    return backfill.marks_plans(b, take_turns(b))


@kernel
def period_now(b: SlurmArrays, tree: ShareArrays, time: int) -> None:
    """Compute priorities as each calculation period does."""
    period(b, tree, time)


@kernel
def main_until(b: SlurmArrays, full: bool) -> int:
    """Return until when main passes provably change nothing."""
    return main_idle_until(b, full)


@kernel
def backfill_until(b: SlurmArrays) -> int:
    """Return until when backfill passes provably change nothing."""
    return backfill_idle_until(b)


@kernel
def end_main_now(b: SlurmArrays, time: int, starts: int, whole: bool) -> None:
    """Take note of a main pass, see `end_main`."""
    end_main(b, time, starts, whole)


@kernel
def end_backfill_now(b: SlurmArrays, time: int, at_any_time: bool) -> bool:
    """Take note of a backfill pass if it changed nothing, and tell so; `at_any_time`: the next one may."""
    return end_backfill(b, time, at_any_time)
