"""What the record itself explains of waiting: no room, a full partition, a reservation; or nothing of these.

At an instant of the recorded run a waiting job has *no room* if it asks for more than what is free of the
machine, a *full partition* if it asks for more than what is free of that, and is *reserved* if it fits, but
would delay some blocked job that stands as EASY's head. The rest is *unexplained*: an upper bound, since
several reservations, fragmentation and nodes that were down stay in it.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bridge.base.arrays import Flags, Floats, Ints
from bridge.judge.metrics import step_function

#: The machine at an instant is as large as the most in use within half of this before and after, s.
HIGH_WATER = 7 * 86_400.0
#: Instants that are looked at, and the seed that they are drawn by.
INSTANTS, SEED = 3000, 1
NO_ROOM, PARTITION, RESERVED, UNEXPLAINED = range(4)
REASONS = ("no_room", "partition_full", "reserved", "unexplained")


@dataclass(frozen=True)
class WaitingShares:
    """Shares (0 … 1) of all waiting job-seconds; of a log without any waiting nothing is known: None.

    Attributes:
        no_room, partition_full, reserved, unexplained: by the reason, see above; they sum to 1.
        all_fit: while all waiting jobs would fit at once in what the machine states: no reason at all.
        idle_user: of what is unexplained, while the job's user ran nothing; None without users.
        top_user: of what is unexplained, the part of the heaviest user; None without users.
        above: share of the time in which more is in use than there is; `peak`: the most in use.
        instants: random instants that were looked at.
    """

    no_room: float | None
    partition_full: float | None
    reserved: float | None
    unexplained: float | None
    all_fit: float | None
    idle_user: float | None
    top_user: float | None
    above: float
    peak: int
    instants: int


class RecordedRun:
    """The recorded run of n jobs: times in s, and nodes, [n] each; partition or user −1 = unknown.

    `capacity`: the machine's nodes. `sizes`: nodes of partitions, where they are known (as of a cluster);
    others are as large as the most that was ever in use of them.
    """

    def __init__(
        self,
        submit: Floats,
        start: Floats,
        end: Floats,
        request: Floats,
        nodes: Ints,
        capacity: int,
        user: Ints,
        partition: Ints,
        sizes: Mapping[int, int] | None = None,
    ) -> None:
        self.submit, self.start, self.end, self.request = submit, start, end, request
        self.nodes, self.capacity, self.user, self.partition = (
            nodes.astype(np.float64),
            capacity,
            user,
            partition,
        )
        self._sizes = dict(sizes or {})

    @cached_property
    def _in_use(self) -> tuple[Floats, Floats]:
        return self._use(slice(None))

    def _use(self, which: "slice | Flags") -> tuple[Floats, Floats]:
        nodes = self.nodes[which]
        return step_function(
            np.concatenate((self.start[which], self.end[which])), np.concatenate((nodes, -nodes))
        )

    @cached_property
    def partitions(self) -> dict[int, float]:
        """Nodes of each partition; empty unless there are several."""
        codes = np.unique(self.partition[self.partition >= 0]).tolist()
        if len(codes) < 2:
            return {}
        return {
            code: float(self._sizes.get(code) or self._use(self.partition == code)[1].max(initial=0.0))
            for code in codes
        }

    def room(self, time: float) -> float:
        """Return the machine's size at a time, by its use around then and by its stated size."""
        times, levels = self._in_use
        first = int(np.searchsorted(times, time - HIGH_WATER / 2, side="right")) - 1
        last = int(np.searchsorted(times, time + HIGH_WATER / 2, side="right"))
        return min(float(self.capacity), float(levels[max(first, 0) : max(last, 1)].max(initial=0.0)))

    def running(self, time: float) -> Ints:
        """Return the jobs that run at a time; ends come before starts."""
        return np.flatnonzero((self.start <= time) & (self.end > time))

    def waiting(self, time: float) -> Ints:
        return np.flatnonzero((self.submit <= time) & (self.start > time))

    def reasons(self, time: float, running: Ints, waiting: Ints) -> tuple[Ints, float]:
        """Return why each waiting job waits [m], as a place in `REASONS`, and the nodes that are free."""
        demand = self.nodes[waiting]
        free = self.room(time) - float(self.nodes[running].sum())
        fits = demand <= free
        why = np.where(fits, UNEXPLAINED, NO_ROOM)
        full = np.zeros(len(waiting), np.bool_)
        for code, size in self.partitions.items():
            mine = self.partition[waiting] == code
            if mine.any():
                used = float(self.nodes[running[self.partition[running] == code]].sum())
                full |= mine & (demand > size - used)
        why[fits & full] = PARTITION
        if fits.any() and not fits.all():
            delaying = fits & ~full & self._delays(time, running, waiting, demand, fits, free)
            why[delaying] = RESERVED
        return why, free

    def _delays(
        self, time: float, running: Ints, waiting: Ints, demand: Floats, fits: Flags, free: float
    ) -> Flags:
        """Tell which waiting jobs [m], started now, would delay some blocked one as EASY's head."""
        ends = np.maximum(self.start[running] + self.request[running], time + 1.0)
        order = np.argsort(ends, kind="stable")
        ends, available = ends[order], free + np.cumsum(self.nodes[running][order])
        until = time + self.request[waiting]
        delays = np.zeros(len(waiting), np.bool_)
        for head in np.unique(demand[~fits]):
            k = int(np.searchsorted(available, head))
            if k < len(ends):  # else it never fits: nobody delays it
                shadow = ends[k]
                extra = available[int(np.searchsorted(ends, shadow, side="right")) - 1] - head
                delays |= (until > shadow) & (demand > extra)
        return delays

    def shares(self, instants: int = INSTANTS, seed: int = SEED) -> WaitingShares:
        """Estimate the explained shares of all waiting from random instants."""
        times = np.random.default_rng(seed).uniform(self.submit.min(), self.submit.max(), instants)
        counts, idle_user, total, all_fit = np.zeros(len(REASONS), np.int64), 0, 0, 0
        has_users = bool((self.user >= 0).any()) and len(np.unique(self.user)) > 1
        heaviest = Counter[int]()
        for time in np.sort(times).tolist():
            waiting = self.waiting(time)
            if len(waiting) == 0:
                continue
            running = self.running(time)
            why, _ = self.reasons(time, running, waiting)
            counts += np.bincount(why, minlength=len(REASONS))
            total += len(waiting)
            if self.nodes[waiting].sum() <= self.capacity - self.nodes[running].sum():
                all_fit += len(waiting)
            if has_users:
                users = self.user[waiting[why == UNEXPLAINED]]
                idle_user += int((~np.isin(users, self.user[running])).sum())
                for user, count in zip(
                    *(x.tolist() for x in np.unique(users, return_counts=True)), strict=True
                ):
                    heaviest[user] = heaviest.get(user, 0) + count
        no_room, full, reserved, unexplained_share = (
            float(count / total) if total else None for count in counts
        )
        unexplained = int(counts[UNEXPLAINED])
        by_user = (
            (idle_user / unexplained, max(heaviest.values()) / unexplained)
            if has_users and unexplained
            else (None, None)
        )
        times_used, levels = self._in_use
        span = float(times_used[-1] - times_used[0])
        over = float(np.diff(times_used)[levels[:-1] > self.capacity].sum())
        return WaitingShares(
            no_room,
            full,
            reserved,
            unexplained_share,
            all_fit=all_fit / total if total else None,
            idle_user=by_user[0],
            top_user=by_user[1],
            above=over / span if span > 0 else 0.0,
            peak=int(levels.max(initial=0.0)),
            instants=instants,
        )


@dataclass(frozen=True)
class RecordedReason:
    """Why one job waited as long as it did, by instants spread evenly over its wait.

    Attributes:
        shares: reason → share of its wait; empty of a job that did not wait.
        free: median of the nodes that were free while nothing explains its wait; None if that was never.
        idle_user: its user ran nothing at all of these instants; None where users are not known.
    """

    shares: Mapping[str, float]
    free: int | None
    idle_user: bool | None


def reason_of(run: RecordedRun, job: int, instants: int = 48) -> RecordedReason:
    """Return why a job of the record, by its place, waited."""
    first, last = float(run.submit[job]), float(run.start[job])
    if last <= first:
        return RecordedReason({}, None, None)
    counts, free, idle = np.zeros(len(REASONS), np.int64), list[float](), True
    for time in (first + (np.arange(instants) + 0.5) / instants * (last - first)).tolist():
        running, waiting = run.running(time), run.waiting(time)
        why, there = run.reasons(time, running, waiting)
        mine = int(why[np.flatnonzero(waiting == job)[0]])
        counts[mine] += 1
        if mine == UNEXPLAINED:
            free.append(there)
            idle = idle and run.user[job] not in run.user[running]
    shares = {name: float(n / instants) for name, n in zip(REASONS, counts.tolist(), strict=True) if n}
    users = run.user[job] >= 0 and bool(free)
    return RecordedReason(shares, int(np.median(free)) if free else None, idle if users else None)
