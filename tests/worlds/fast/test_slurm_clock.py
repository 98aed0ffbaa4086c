"""Passes that a clock leaves out: those that come afterwards are the same."""

import math
import random

import pytest

from bridge.scheduler.slurm.parameters import Parameters
from bridge.worlds.fast.slurm import clock_kernels
from bridge.worlds.fast.slurm.own_clock import MEASURED, PUNCTUAL, Idle, OwnClock

#: Sums of periods are rounded, s.
TINY = 1e-6


NOTHING = Idle()


@pytest.mark.parametrize("seed", range(40))
def test_passes_after_those_left_out_come_as_ever(seed: int) -> None:
    draw = random.Random(seed)
    leaves_out, steps = (
        OwnClock(Parameters(), 100.0, seed, has_backfill=True, period=300.0) for _ in range(2)
    )
    for clock in (leaves_out, steps):
        clock.tell(100.0, asks=True, at_once=False)
    event, n_left_out = 100.0, 0
    for _ in range(30):
        event += draw.choice((0.4, 31.0, 200.0, 2_000.0))
        until = {kind: float(draw.choice((0, event - 100, event + 100)) // 1) for kind in Idle._fields[:4]}
        writes = draw.random() < 0.5
        idle = Idle(**until, unchanged=-math.inf if writes else until["full"], main_writes=writes)
        while True:
            due = leaves_out.next(event, idle)
            time, kind = due or (event, "")
            while (other := steps.next(math.inf, NOTHING)) and (
                other[0] < min(time, event) - TINY
                or (
                    other[1] == "limits" != kind and other[0] < min(time + TINY, event)
                )  # one look of the loop
            ):
                assert other[0] // 1 < until[other[1]]
                changed = writes and other[1] in ("full", "default")
                steps.passed(*other, started=False, changed=changed)
                n_left_out += 1
            if due is None:
                break
            assert other is not None
            assert other[1] == kind
            assert other[0] == pytest.approx(time, abs=TINY)
            for clock in (leaves_out, steps):
                clock.passed(time, kind, started=False, changed=False)
        asks = draw.random() < 0.5
        for clock in (leaves_out, steps):
            clock.tell(event, asks=asks, at_once=False)
    assert n_left_out > 10


def test_a_thread_wakes_late_as_was_measured() -> None:
    draw = random.Random(1)
    late = sorted(MEASURED.draw(draw, 20_000))
    assert [late[int(20_000 * share)] for share in (0.25, 0.5, 0.9)] == pytest.approx(
        [0.04, 0.079, 0.422], rel=0.1
    )
    assert PUNCTUAL.draw(draw, 1) == 0


def test_a_pass_that_writes_why_jobs_wait_wakes_the_backfill_thread() -> None:
    clocks = [OwnClock(Parameters(), 0.0, 3, has_backfill=True, period=0) for _ in range(2)]
    for clock, writes in zip(clocks, (True, False), strict=True):
        clock.passed(100.0, "backfill", started=False, changed=False)
        clock.passed(150.2, "limits", started=False, changed=False)
        clock.passed(150.2, "full", started=False, changed=writes)
    assert [clock.next(math.inf, NOTHING)[1] for clock in clocks] == ["backfill", "limits"]
    assert clocks[0].next(math.inf, NOTHING) == (151.0, "backfill")  # it looks each second since 130


def test_without_the_compiler_too_no_period_ends_before_minus_infinity() -> None:
    periods = getattr(clock_kernels._periods, "py_func", clock_kernels._periods)
    assert [periods(100.0, until, 30.0) for until in (-math.inf, 99.0, 129.0, 160.0, 191.0)] == [
        0,
        0,
        -1,
        1,
        2,
    ]
