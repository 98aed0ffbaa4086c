"""Passes that a clock leaves out: those that come afterwards are the same."""

import random

import pytest

from bridge.scheduler.slurm.parameters import Parameters
from bridge.worlds.fast.slurm.own_clock import OwnClock

#: Sums of periods are rounded, s.
TINY = 1e-6


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
        limit, change = (draw.choice((0.0, event - 100, event + 100)) for _ in range(2))
        while True:
            leaves_out.skip(event, limit, change)
            time, kind = leaves_out.next()
            while (other := steps.next())[0] < min(time, event) - TINY:
                assert (other[1] == "limits" and other[0] < limit) or (
                    other[1] == "full" and other[0] < change
                )
                steps.passed(*other, changed=False)
                n_left_out += 1
            if time >= event:
                break
            assert other[1] == kind
            assert other[0] == pytest.approx(time, abs=TINY)
            for clock in (leaves_out, steps):
                clock.passed(time, kind, changed=False)
        asks = draw.random() < 0.5
        for clock in (leaves_out, steps):
            clock.tell(event, asks=asks, at_once=False)
    assert n_left_out > 10
