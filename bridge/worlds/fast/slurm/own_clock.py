"""When Slurm's passes come, if nobody recorded it: three loops, each with a phase of its own."""

import math
import random

from bridge.scheduler.slurm.parameters import Parameters
from bridge.scheduler.slurm.site import Site

#: Time limits are checked so often, s.
LIMITS_PERIOD = 30.0
#: Sums of periods and phases are so exact, s.
ROUNDING = 1e-4


class OwnClock:
    """Says which pass comes next; instants in s.

    Attributes:
        idle: s since something other than a pass happened or a pass started a job.
    """

    def __init__(
        self, parameters: Parameters, first: float, seed: int, *, has_backfill: bool, period: float
    ) -> None:
        random_phase = random.Random(seed)
        self.parameters = parameters
        self.phase = random_phase.random()
        self.poll_phase = random_phase.random()
        self.full_due = first - random_phase.random() * parameters.sched_interval + parameters.sched_interval
        self.backfill_due = (
            first + random_phase.random() * parameters.bf_interval if has_backfill else math.inf
        )
        self.limits_due = first + random_phase.random() * LIMITS_PERIOD
        self.period = period
        self.period_due = first + random_phase.random() * period if period else math.inf
        self.last_main = first - parameters.batch_delay
        self.wanted = math.inf
        self.changed = math.inf
        self.at_once = math.inf
        self.last_change = self.time = first

    @classmethod
    def of_site(cls, site: Site, first: float, seed: int) -> "OwnClock":
        """Return the clock of a site's loops, which begin about an instant."""
        period = 0 if site.settings.basic else site.cluster.priority.calculation_period
        return cls(site.parameters, first, seed, has_backfill=not site.settings.builtin, period=period)

    @property
    def idle(self) -> float:
        return self.time - self.last_change

    def _tick(self, time: float, phase: float) -> float:
        """Return the first whole second plus a phase that is not before a time."""
        return math.ceil(time - phase - ROUNDING) + phase

    def next(self) -> tuple[float, str]:
        """Return the pass that comes next; of one instant, the first by name."""
        best = self._tick(self.full_due, self.phase), "full"
        if self.wanted < math.inf:
            wanted = max(self.wanted, self.last_main + self.parameters.batch_delay)
            best = min(best, (self._tick(wanted, self.phase), "default"))
        if self.at_once < math.inf:
            best = min(best, (self.at_once, "default"))
        if (due := max(self.backfill_due, self.changed)) < math.inf:
            best = min(best, (self._tick(due, self.poll_phase), "backfill"))
        if self.limits_due <= best[0]:
            best = min(best, (self.limits_due, "limits"))
        if self.period_due <= best[0]:
            best = min(best, (self.period_due, "prio"))
        return best

    def skip(self, event: float, limit: float, change: float) -> None:
        """Let passes that do nothing go by before an event.

        Checks of limits do nothing before `limit`, and full passes nothing before `change`, unless a backfill
        pass or new priorities come between; they still are the last ones that came.
        """
        if event == math.inf:
            return
        until = min(event, limit)
        if self.limits_due < until:
            self.limits_due += math.floor((until - self.limits_due) / LIMITS_PERIOD) * LIMITS_PERIOD
        until = min(event, change, self.period_due, max(self.backfill_due, self.changed))
        if self.full_due < until and self.wanted == self.at_once == math.inf:
            first, period = self._tick(self.full_due, self.phase), self.parameters.sched_interval
            count = math.ceil((until - first) / period)
            if count > 0:
                self.last_main = math.ceil(first - self.phase - ROUNDING) + (count - 1) * period + self.phase
                self.full_due = self.last_main + period

    def passed(self, time: float, kind: str, *, changed: bool) -> None:
        """Take note of a pass, and whether it started a job."""
        self.time = time
        if kind in ("default", "full"):
            self.last_main = time
            self.wanted = self.at_once = math.inf
            if kind == "full":
                self.full_due = time + self.parameters.sched_interval
        elif kind == "backfill":
            self.backfill_due = time + self.parameters.bf_interval
            self.changed = math.inf
        elif kind == "limits":
            self.limits_due = time + LIMITS_PERIOD
        else:
            self.period_due = time + self.period
        if changed:
            self.changed, self.last_change = min(self.changed, time), time

    def tell(self, time: float, *, asks: bool, at_once: bool) -> None:
        """Take note that something happened; it `asks` for a main pass, or its message runs one `at_once`."""
        self.time = self.last_change = time
        if asks:
            self.wanted = min(self.wanted, time)
        self.changed = min(self.changed, time)
        if at_once:
            self.at_once = min(self.at_once, time)
