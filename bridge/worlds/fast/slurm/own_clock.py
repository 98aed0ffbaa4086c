"""When Slurm's passes come, if nobody recorded it: three loops, each with a phase of its own."""

import math
import random
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bridge.base.arrays import Floats
from bridge.scheduler.slurm.parameters import Parameters
from bridge.scheduler.slurm.quick import Quick
from bridge.scheduler.slurm.site import Site
from bridge.worlds.fast.slurm import clock_kernels as kernels

#: Kinds of passes by their places in kernels.
KINDS = ("limits", "full", "default", "backfill", "prio")
PLACES = {kind: place for place, kind in enumerate(KINDS)}
#: Draws of lateness that are made together.
_DRAWS = 1024
_advance, _note_pass = Quick(kernels.next_pass), Quick(kernels.note)
_tell = Quick(kernels.tell)


@dataclass(frozen=True)
class Lateness:
    """How late a thread wakes from its sleep, s: `late` at these `shares` of all times; `tick` each second.

    The measured one is that of the machine on which the cases were recorded, whose clock ran 30 to 50 times
    too fast: all delays of a thread are so many times longer there.
    """

    shares: tuple[float, ...] = (0.0, 1.0)
    late: tuple[float, ...] = (0.0, 0.0)
    tick: float = 0.0

    def draw(self, source: random.Random, count: int) -> Floats:
        """Draw so many times."""
        if not any(self.late):
            return np.zeros(count)
        return np.interp([source.random() for _ in range(count)], self.shares, self.late)


PUNCTUAL = Lateness()
MEASURED = Lateness(
    (0.0, 0.05, 0.1, 0.25, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.999, 1.0),
    (0.003, 0.014, 0.022, 0.04, 0.079, 0.139, 0.198, 0.422, 0.955, 2.35, 3.89, 16.0, 45.0),
    0.02,
)


class Idle(NamedTuple):
    """Until when passes do nothing, s, and whether those that do nothing write to records.

    Attributes:
        unchanged: until when full passes may be left out altogether.
    """

    limits: float = -math.inf
    full: float = -math.inf
    default: float = -math.inf
    backfill: float = -math.inf
    unchanged: float = -math.inf
    main_writes: bool = False
    backfill_writes: bool = False


class OwnClock:
    """Says which pass comes next; instants in s.

    The background loop looks once a second whether limits are to be checked and a main pass is due; the
    backfill thread sleeps its interval, then looks once a second whether something has changed.

    Attributes:
        at: where the loops stand, see `clock_kernels`, as is `late`.
    """

    def __init__(
        self,
        parameters: Parameters,
        first: float,
        seed: int,
        *,
        has_backfill: bool,
        period: float,
        lateness: Lateness = PUNCTUAL,
    ) -> None:
        self._random = random.Random(seed)
        draw = self._random.random
        self._lateness = lateness
        at = self.at = np.full(kernels.SIZE, math.inf)
        at[kernels.LOOP] = first - draw()
        at[kernels.LAST_FULL] = first - draw() * parameters.sched_interval
        at[kernels.LAST_MAIN] = max(at[kernels.LAST_FULL], first - parameters.batch_delay)
        at[kernels.LAST_LIMITS] = first - draw() * kernels.LIMITS_PERIOD
        at[kernels.AWAKE] = first + draw() * parameters.bf_interval
        if period:
            at[kernels.PERIOD_DUE] = first + draw() * period
        at[kernels.LAST_CHANGE] = at[kernels.TIME] = first
        at[kernels.PERIOD], at[kernels.BATCH_DELAY] = period, parameters.batch_delay
        at[kernels.SCHED_INTERVAL], at[kernels.BF_INTERVAL] = (
            parameters.sched_interval,
            parameters.bf_interval,
        )
        at[kernels.SECOND], at[kernels.HAS_BACKFILL] = 1.0 + lateness.tick, float(has_backfill)
        self._idle = np.zeros(kernels.IDLE_SIZE)
        self.late = lateness.draw(self._random, 1 + _DRAWS)
        at[kernels.LATE], at[kernels.N_DRAWS] = self.late[0], 1

    @classmethod
    def of_site(cls, site: Site, first: float, seed: int, lateness: Lateness = PUNCTUAL) -> "OwnClock":
        """Return the clock of a site's loops, which begin about an instant."""
        period = 0 if site.settings.basic else site.cluster.priority.calculation_period
        return cls(
            site.parameters,
            first,
            seed,
            has_backfill=not site.settings.builtin,
            period=period,
            lateness=lateness,
        )

    @property
    def idle(self) -> float:
        """For how long nothing has happened but passes that started no job, s."""
        return float(self.at[kernels.TIME] - self.at[kernels.LAST_CHANGE])

    def draw_more(self) -> None:
        """Draw lateness anew behind what was not used yet; the array stays the same."""
        left = self.late[int(self.at[kernels.N_DRAWS]) :].copy()
        self.late[: len(left)] = left
        self.late[len(left) :] = self._lateness.draw(self._random, len(self.late) - len(left))
        self.at[kernels.N_DRAWS] = 0

    def next(self, event: float, idle: Idle) -> tuple[float, str] | None:
        """Return the next pass before an event that does something, and let those that do not go by."""
        self._idle[:-1], self._idle[-1] = idle, event
        while (kind := int(_advance(self.at, self.late, self._idle))) == kernels.DRAWS:
            self.draw_more()
        return None if kind == kernels.NO_PASS else (float(self.at[kernels.NEXT]), KINDS[kind])

    def passed(self, time: float, kind: str, *, started: bool, changed: bool) -> None:
        """Take note of a pass that `next` returned: whether it started a job, or changed another record."""
        _note_pass(self.at, self.late, PLACES[kind], time, started, changed)

    def tell(self, time: float, *, asks: bool, at_once: bool) -> None:
        """Take note that something happened; it `asks` for a main pass, or its message runs one `at_once`."""
        _tell(self.at, time, asks, at_once)
