"""When Slurm's passes come, if nobody recorded it: three loops, each with a phase of its own."""

import math
import random
from dataclasses import dataclass

import numpy as np

from bridge.scheduler.slurm.parameters import Parameters
from bridge.scheduler.slurm.site import Site

#: Time limits are checked so often, s.
LIMITS_PERIOD = 30.0


@dataclass(frozen=True)
class Lateness:
    """How late a thread wakes from its sleep, s: `late` at these `shares` of all times; `tick` each second.

    The measured one is that of the machine on which the cases were recorded, whose clock ran 30 to 50 times
    too fast: all delays of a thread are so many times longer there.
    """

    shares: tuple[float, ...] = (0.0, 1.0)
    late: tuple[float, ...] = (0.0, 0.0)
    tick: float = 0.0

    def draw(self, source: random.Random) -> float:
        return float(np.interp(source.random(), self.shares, self.late))


PUNCTUAL = Lateness()
MEASURED = Lateness(
    (0.0, 0.05, 0.1, 0.25, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.999, 1.0),
    (0.003, 0.014, 0.022, 0.04, 0.079, 0.139, 0.198, 0.422, 0.955, 2.35, 3.89, 16.0, 45.0),
    0.02,
)

#: Of passes at one instant, which comes first.
_ORDER = {"limits": 0, "full": 1, "default": 2, "backfill": 3, "prio": 4}


class OwnClock:
    """Says which pass comes next; instants in s.

    The background loop looks once a second whether limits are to be checked and a main pass is due; the
    backfill thread sleeps its interval, then looks once a second whether something has changed.

    Attributes:
        idle: s since something other than a pass happened or a pass started a job.
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
        self.parameters, self.lateness, self.has_backfill = parameters, lateness, has_backfill
        self.loop = first - draw()
        self.last_full = first - draw() * parameters.sched_interval
        self.last_main = max(self.last_full, first - parameters.batch_delay)
        self.last_limits = first - draw() * LIMITS_PERIOD
        self.awake = first + draw() * parameters.bf_interval
        self.period = period
        self.period_due = first + draw() * period if period else math.inf
        self.wanted = math.inf
        self.changed = math.inf
        self.at_once = math.inf
        self.late = lateness.draw(self._random)
        self.last_change = self.time = first

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
        return self.time - self.last_change

    def _look(self, since: float, due: float) -> float:
        """Return when a thread that looks each second since an instant first does so when it is due."""
        if due == math.inf:
            return due
        second = 1.0 + self.lateness.tick
        return since + max(math.ceil((due - since) / second), 0) * second

    def next(self) -> tuple[float, str]:
        main = math.floor(self.last_main) + self.parameters.batch_delay
        full = math.floor(self.last_full) + self.parameters.sched_interval
        loop = [
            (self._look(self.loop, math.floor(self.last_limits) + LIMITS_PERIOD), "limits"),
            (self._look(self.loop, full), "full"),
            (self._look(self.loop, max(self.wanted, main)), "default"),
        ]
        late = [(time + self.late if time > self.loop else time, kind) for time, kind in loop]
        others = [(self.at_once, "default"), (self.period_due, "prio"), (self._backfill(), "backfill")]
        return min([*late, *others], key=lambda one: (one[0], _ORDER[one[1]]))

    def skip(self, event: float, limit: float, change: float) -> None:
        """Let passes that do nothing go by before an event.

        Checks of limits do nothing before `limit`, and full passes nothing before `change`, unless a backfill
        pass or new priorities come between; they still are the last ones that came.
        """
        if event == math.inf:
            return
        checks = math.floor((min(event, limit) - self.last_limits) / LIMITS_PERIOD - 1)
        if checks > 0:
            self.last_limits += checks * LIMITS_PERIOD
        until = min(event, change, self.period_due, self._backfill())
        passes = math.floor((until - self.last_full) / self.parameters.sched_interval - 1)
        if passes > 0 and self.wanted == self.at_once == math.inf:
            self.last_full += passes * self.parameters.sched_interval
            self.last_main = max(self.last_main, self.last_full)

    def _backfill(self) -> float:
        return self._look(self.awake, self.changed) if self.has_backfill else math.inf

    def passed(self, time: float, kind: str, *, started: bool, changed: bool) -> None:
        """Take note of a pass, whether it started a job, and whether it changed another record."""
        self.time = time
        if kind in ("default", "full", "limits"):
            if time != self.at_once and time > self.loop:
                self.loop, self.late = time, self.lateness.draw(self._random)
            if kind == "limits":
                self.last_limits = time
            else:
                self.last_main = time
                self.wanted = self.at_once = math.inf
                if kind == "full":
                    self.last_full = time
        elif kind == "backfill":
            self.awake = time + self.parameters.bf_interval + self.lateness.draw(self._random)
            self.changed = math.inf
        else:
            self.period_due = time + self.period
        if started:
            self.last_change = time
        if started or changed:
            self.changed = min(self.changed, time)

    def tell(self, time: float, *, asks: bool, at_once: bool) -> None:
        """Take note that something happened; it `asks` for a main pass, or its message runs one `at_once`."""
        self.time = self.last_change = time
        if asks:
            self.wanted = min(self.wanted, time)
        self.changed = min(self.changed, time)
        if at_once:
            self.at_once = min(self.at_once, time)
