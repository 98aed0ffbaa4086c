"""The three protocols in plain Python, written from their rules: the oracle of tests and benchmarks.

Lists, sorts and one loop per protocol; nothing is shared with the compiled core. Times are whole
microseconds, orders see seconds. Every protocol fills in `start`, `end` and `reserved` of its jobs.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import add, attrgetter, le, sub

SECOND = 1_000_000
Amounts = Sequence[int]


@dataclass(eq=False)
class Job:
    """One job: what the log says, what is believed, and what became of it (-1 = not yet)."""

    index: int
    submit: int
    run: int
    length: int  # believed length that orders see
    believed_waiting: int
    believed_running: int
    demand: tuple[int, ...]
    user: int = 0
    partition: float = 0.0
    tie: int = 0
    start: int = -1
    end: int = -1
    reserved: int = -1  # the first time it was given as blocked head


@dataclass
class Cluster:
    """A machine with its waiting and running jobs, both as lists."""

    capacity: Amounts
    arrivals: list[Job]
    shares: Sequence[float] = (1.0,)
    whole_seconds: bool = False
    clamp: bool = True
    now: int = 0
    waiting: list[Job] = field(default_factory=list)
    running: list[Job] = field(default_factory=list)
    usage: dict[int, float] = field(default_factory=dict)
    planned: dict[Job, int] = field(default_factory=dict)  # starts of waiting jobs that are not moved later

    def __post_init__(self) -> None:
        self.free = list(self.capacity)
        self.longest = max((j.length for j in self.arrivals), default=0) / SECOND
        self.arrivals = list(reversed(self.arrivals))  # next one last

    def fits(self, job: Job) -> bool:
        return fits(job.demand, self.free)

    def start(self, job: Job) -> None:
        self.waiting.remove(job)
        self.free = list(map(sub, self.free, job.demand))
        job.start = self.now
        job.end = self.now + job.run
        self.running.append(job)

    def finish(self, job: Job) -> None:
        self.running.remove(job)
        self.free = list(map(add, self.free, job.demand))
        self.usage[job.user] = self.usage.get(job.user, 0.0) + job.demand[0] * (job.end - job.start) / SECOND

    def submit_next(self) -> None:
        self.waiting.append(self.arrivals.pop())

    def wait(self, job: Job) -> float:
        """Return the seconds that an order sees a job wait."""
        if self.whole_seconds:
            return (self.now - job.submit) // SECOND
        return (self.now - job.submit) / SECOND

    def believed_end(self, job: Job) -> int:
        end = job.start + job.believed_running
        return self.now + SECOND if self.clamp and end <= self.now else end

    def releases(self) -> Iterable[tuple[int, Amounts]]:
        """Yield (believed end, free amounts then) in order of time, equal ends together."""
        free: Amounts = self.free
        for end, jobs in groupby(sorted(self.running, key=self.believed_end), key=self.believed_end):
            for job in jobs:
                free = list(map(add, free, job.demand))
            yield end, free


Score = Callable[[Job, Cluster], float]


def fits(demand: Amounts, free: Amounts) -> bool:
    """Tell whether a demand fits, per resource."""
    return all(map(le, demand, free))


def shadow_and_extra(c: Cluster, head: Job) -> tuple[int, Amounts]:
    """Return the first believed end at which the blocked head fits, and what it leaves free then."""
    for end, free in c.releases():
        if fits(head.demand, free):
            return end, list(map(sub, free, head.demand))
    raise ValueError(f"job {head.index} never fits")


Steps = list[tuple[int, Amounts]]


def blocked_step(steps: Steps, k: int, demand: Amounts, length: int) -> int | None:
    """Return the first step in [step k, step k + length) at which the demand does not fit."""
    end = steps[k][0] + length
    for i in range(k, len(steps)):
        if steps[i][0] >= end:
            break
        if not fits(demand, steps[i][1]):
            return i
    return None


def first_hole(steps: Steps, demand: Amounts, length: int) -> int:
    """Return the first step from which the demand fits for the length."""
    k = 0
    while (blocked := blocked_step(steps, k, demand, length)) is not None:
        k = blocked + 1
    return k


def book(steps: Steps, k: int, demand: Amounts, length: int) -> None:
    """Take the demand out of the profile from step k on for the length."""
    end = steps[k][0] + length
    last = k
    while last < len(steps) and steps[last][0] < end:
        last += 1
    if last == len(steps) or steps[last][0] != end:
        steps.insert(last, (end, steps[last - 1][1]))
    for i in range(k, last):
        steps[i] = (steps[i][0], list(map(sub, steps[i][1], demand)))


def reserve(job: Job, time: int) -> None:
    if job.reserved < 0:
        job.reserved = time


def conservative(c: Cluster) -> None:
    """Book every waiting job at its first hole, in queue order; start those whose hole is now."""
    steps: Steps = [(c.now, c.free), *c.releases()]
    for job in list(c.waiting):
        hole = first_hole(steps, job.demand, job.believed_waiting)
        book(steps, hole, job.demand, job.believed_waiting)
        if hole == 0:
            c.start(job)


def fits_with_planned(c: Cluster, job: Job, begin: int) -> bool:
    """Tell whether a job may run from a time on, beside running jobs and the planned starts of others."""
    taken = [(c.now, c.believed_end(j), j.demand) for j in c.running]
    taken += [(s, s + j.believed_waiting, j.demand) for j, s in c.planned.items() if j is not job]
    end = begin + job.believed_waiting
    for time in {begin, *(b for b, _, _ in taken if begin < b < end)}:
        used = [sum(d[r] for b, e, d in taken if b <= time < e) for r in range(len(c.capacity))]
        if not fits(job.demand, list(map(sub, c.capacity, used))):
            return False
    return True


def conservative_keeps(c: Cluster) -> None:
    """Plan each waiting job at the first time it fits beside all other plans, never later than before."""
    before, c.planned = c.planned, {}
    for job in c.waiting:
        if job in before:
            begin = max(before[job], c.now)
            if fits_with_planned(c, job, begin):
                c.planned[job] = begin
    for job in list(c.waiting):
        ends = {c.believed_end(j) for j in c.running}
        ends |= {s + j.believed_waiting for j, s in c.planned.items() if j is not job}
        own = {c.planned[job]} if job in c.planned else set()
        c.planned[job] = next(t for t in sorted({c.now, *ends, *own}) if fits_with_planned(c, job, t))
        reserve(job, c.planned[job])
    for job in [j for j in c.waiting if c.planned[j] == c.now]:
        del c.planned[job]
        c.start(job)


def standard(c: Cluster, score: Score, backfill: str, candidate_score: Score | None = None) -> None:
    """Textbook rules: one pass per instant, queue and reservation made afresh at each pass."""
    while c.arrivals or c.running or c.waiting:
        ends = [j.end for j in c.running]
        c.now = min([*ends, *[j.submit for j in c.arrivals[-1:]]])
        for job in [j for j in c.running if j.end == c.now]:
            c.finish(job)
        while c.arrivals and c.arrivals[-1].submit == c.now:
            c.submit_next()
        scores = {job.index: score(job, c) for job in c.waiting}
        c.waiting.sort(key=lambda j: (-scores[j.index], j.tie, j.index))
        if backfill == "conservative_keeps":
            conservative_keeps(c)
            continue
        while c.waiting and c.fits(c.waiting[0]):
            c.start(c.waiting[0])
        if not c.waiting:
            continue
        if backfill == "conservative":
            conservative(c)
        elif backfill == "filler":
            for job in list(c.waiting):
                if c.fits(job):
                    c.start(job)
        elif backfill == "easy":
            head, *candidates = c.waiting
            shadow, extra = shadow_and_extra(c, head)
            reserve(head, shadow)
            if candidate_score:
                candidates.sort(key=lambda j: (-candidate_score(j, c), j.index))
            for job in candidates:
                if c.fits(job):
                    in_time = c.now + job.believed_waiting <= shadow
                    if in_time or fits(job.demand, extra):
                        c.start(job)
                        if not in_time:
                            extra = list(map(sub, extra, job.demand))


def cqsim(c: Cluster, score: Score, backfill: str) -> None:
    """CQSim: one pass per event, one list sorted stably over and over, a profile for EASY too."""
    c.clamp = False
    c.whole_seconds = True
    while c.arrivals or c.running:
        first = min(c.running, key=attrgetter("end"), default=None)  # of equal ends the first started
        if first and (not c.arrivals or first.end <= c.arrivals[-1].submit):
            c.now = first.end
            c.finish(first)
        else:
            c.now = c.arrivals[-1].submit
            c.submit_next()
        scores = {job.index: score(job, c) for job in c.waiting}
        c.waiting.sort(key=lambda j: -scores[j.index])
        while c.waiting and c.fits(c.waiting[0]):
            c.start(c.waiting[0])
        if backfill == "conservative":
            conservative(c)
        elif backfill == "easy" and c.waiting:
            head, *candidates = c.waiting
            steps: Steps = [(c.now, c.free), *c.releases()]
            hole = first_hole(steps, head.demand, head.believed_waiting)
            reserve(head, steps[hole][0])
            book(steps, hole, head.demand, head.believed_waiting)
            for job in candidates:
                if blocked_step(steps, 0, job.demand, job.believed_waiting) is None:
                    c.start(job)
                    book(steps, 0, job.demand, job.believed_waiting)


def schedgym(c: Cluster, score: Score, backfill: str, skip_next: bool = False) -> None:
    """The SchedGym family: the head is chosen once and waited for, with one reservation from the requests."""
    c.clamp = False

    def next_event() -> None:
        c.running.sort(key=attrgetter("end"))  # the list stays sorted: its ties remember earlier sorts
        if c.arrivals and (not c.running or c.arrivals[-1].submit <= c.running[0].end):
            c.now = max(c.now, c.arrivals[-1].submit)
            c.submit_next()
        else:
            c.now = max(c.now, c.running[0].end)
            c.finish(c.running[0])

    while c.arrivals or c.waiting:
        while not c.waiting:
            next_event()
        scores = {job.index: score(job, c) for job in c.waiting}
        head = min(c.waiting, key=lambda j: (-scores[j.index], j.tie, j.index))
        if not c.fits(head):
            shadow = 0
            if backfill == "easy":
                c.running.sort(key=lambda j: j.start + j.believed_running)
                shadow, _ = shadow_and_extra(c, head)
                reserve(head, shadow)
            while not c.fits(head):
                if backfill == "easy":
                    c.waiting.sort(key=attrgetter("submit", "index"))
                    candidates = c.waiting if skip_next else list(c.waiting)
                    for job in candidates:  # with skip_next, `start` takes from the list that is iterated
                        if job is not head and c.fits(job) and c.now + job.believed_waiting < shadow:
                            c.start(job)
                next_event()
        c.start(head)


def fairshare(job: Job, c: Cluster) -> float:
    """Return 2^(-use / share), both as fractions."""
    total = sum(c.usage.values())
    if total <= 0 or c.shares[job.user] <= 0:
        return 1.0
    return math.pow(2.0, -(c.usage.get(job.user, 0.0) / total) / c.shares[job.user])


def _s(j: Job) -> float:
    return j.submit / SECOND


def _t(j: Job) -> float:
    return j.length / SECOND


def _slurm(j: Job, c: Cluster) -> float:
    age = min(c.wait(j) / 604800, 1)
    return 1000 * age + 1000 * fairshare(j, c) + 1000 * _t(j) / c.longest + 1000 * j.partition


def _positive(x: float) -> float:
    return max(x, 0.1)


#: Named orders; the highest score stands first.
ORDERS: dict[str, Score] = {
    "fcfs": lambda j, _: -_s(j),
    "lcfs": lambda j, _: _s(j),
    "sjf": lambda j, _: -_t(j),
    "ljf": lambda j, _: _t(j),
    "saf": lambda j, _: -_t(j) * j.demand[0],
    "srf": lambda j, _: -_t(j) / j.demand[0],
    "wfp3": lambda j, c: (c.wait(j) / _t(j)) ** 3 * j.demand[0],
    "unicep": lambda j, c: c.wait(j) / (math.log2(max(j.demand[0], 2)) * _t(j)),
    "f1": lambda j, _: -(math.log10(_t(j)) * j.demand[0] + 870 * math.log10(_positive(_s(j)))),
    "f2": lambda j, _: -(math.sqrt(_t(j)) * j.demand[0] + 25600 * math.log10(_positive(_s(j)))),
    "f3": lambda j, _: -(_t(j) * j.demand[0] + 6860000 * math.log10(_positive(_s(j)))),
    "f4": lambda j, _: -(_t(j) * math.sqrt(j.demand[0]) + 530000 * math.log10(_positive(_s(j)))),
    "slurm": _slurm,
}
#: `cqsim` sees waits in whole seconds, and ties stand as they stood before.
CQSIM_ORDERS: dict[str, Score] = {**ORDERS, "fcfs": lambda j, c: c.wait(j)}
#: `schedgym` computes some orders with wait = -1 - submit.
SCHEDGYM_ORDERS: dict[str, Score] = {
    **ORDERS,
    "wfp3": lambda j, _: ((-1 - _s(j)) / _t(j)) ** 3 * j.demand[0],
    "unicep": lambda j, _: (-1 - _s(j) + 1e-15) / (math.log2(j.demand[0] + 1e-15) * _t(j)),
    "f1": lambda j, _: -(math.log10(_positive(_t(j))) * j.demand[0] + 870 * math.log10(_positive(_s(j)))),
}


def simulate(
    protocol: str,
    jobs: Sequence[Job],
    capacity: Amounts,
    order: str,
    backfill: str,
    *,
    candidate_order: str = "",
    skip_next: bool = False,
    shares: Sequence[float] = (1.0,),
) -> None:
    """Simulate the jobs (in order of submission) under a protocol; fills in what became of them."""
    cluster = Cluster(capacity, list(jobs), shares)
    if protocol == "standard":
        standard(cluster, ORDERS[order], backfill, ORDERS[candidate_order] if candidate_order else None)
    elif protocol == "cqsim":
        cqsim(cluster, CQSIM_ORDERS[order], backfill)
    else:
        schedgym(cluster, SCHEDGYM_ORDERS[order], backfill, skip_next)
    while cluster.running:
        cluster.finish(cluster.running[0])
