"""Rules of action in plain Python, written from their definitions: lists, sorts, and a pass a minute.

Nothing is shared with the compiled core. Times are whole microseconds. `simulate` returns every life of every
job as (job, start, end, completed).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

#: One life of a job: job, start, end, completed.
Life = tuple[int, int, int, bool]
RULES = (
    *("speculative(600)", "speculative(60,restart=0)", "trial(300)", "trial(60,restart=7)", "guest(300)"),
    *("guest(60,host=3,restart=11)", "las(300,3600)", "las(60,600,resume=900,latest=1)"),
    *("hybrid(300)", "hybrid(0)", "hybrid(300,guard=2000)"),
)
SECOND = 1_000_000
MINUTE = 60 * SECOND


@dataclass(eq=False)
class Job:
    """One job; `believed`: the length that is believed of it; `permits`: the rule may be applied to it."""

    index: int
    submit: int
    run: int
    believed: int
    demand: tuple[int, ...]
    permits: bool = True
    done: int = 0
    overhead: int = 0
    tried: bool = False
    start: int = -1
    serial: int = -1
    limit: int | None = None
    lent: int = 0
    lent_since: int | None = None
    back_at: int = 0
    host_of: "Job | None" = None
    believed_end: int = 0
    place: str = ""  # "", "own", "idle", "hosts"
    occupied: int = 0
    urgent: bool = False


@dataclass
class Rule:
    """A rule of action: its name, and all its times in microseconds."""

    kind: str
    limit: int
    level: int = 0
    restart: int = 30 * SECOND
    host: int = 10 * SECOND
    resume: int = 60 * SECOND
    guard: int = 0
    latest: bool = False


@dataclass
class Machine:
    """Everything at one instant."""

    capacity: tuple[int, ...]
    rule: Rule
    order: str
    backfill: str
    now: int = 0
    waiting: list[Job] = field(default_factory=list)
    active: list[Job] = field(default_factory=list)
    lives: list[tuple[int, int, int, bool]] = field(default_factory=list)
    starts: int = 0
    wants_ticks: bool = False

    def used(self, *places: str) -> list[int]:
        jobs = [job for job in self.active if job.place in places]
        return [sum(job.demand[r] for job in jobs) for r in range(len(self.capacity))]

    def free(self) -> list[int]:
        """What is free if speculating jobs count as nothing."""
        return [c - u for c, u in zip(self.capacity, self.used("own"), strict=True)]

    def idle(self) -> list[int]:
        return [c - u for c, u in zip(self.capacity, self.used("own", "idle"), strict=True)]

    def is_new(self, job: Job) -> bool:
        return self.rule.kind == "trial" and job.permits and not job.tried

    def belief(self, job: Job) -> int:
        """What is believed of the next life of a waiting job."""
        length = max(job.believed - job.done, min(job.believed, SECOND)) + job.overhead
        return min(length, self.rule.limit) if self.is_new(job) else length

    def attained(self, job: Job) -> int:
        if not job.place:
            return job.done
        until = self.now if job.lent_since is None else job.lent_since
        return job.done + max(0, until - job.start - job.overhead - job.lent)

    def level(self, attained: int) -> int:
        if attained < self.rule.limit:
            return 0
        return 2 if self.rule.kind == "las" and attained >= self.rule.level else 1

    def area(self, job: Job) -> int:
        return job.demand[0] * max(job.believed - self.attained(job), min(job.believed, SECOND))

    def queue(self) -> list[Job]:
        return sorted(self.waiting, key=self.key)

    def key(self, job: Job) -> tuple[float, ...]:
        left = max(job.believed - job.done, min(job.believed, SECOND))
        left = job.believed if self.rule.kind == "las" else left
        score = {"fcfs": job.submit, "saf": left * job.demand[0], "sjf": left}[self.order]
        if self.is_new(job):
            return (-1, job.demand[0] * self.belief(job), job.index)
        if self.rule.kind in ("las", "hybrid"):
            level = self.level(job.done)
            return (level - 0.5, 0, job.index) if job.urgent else (level, score, job.index)
        return (0, score, job.index)

    def end(self, job: Job) -> int | None:
        if job.lent_since is not None:
            return None
        return job.start + job.overhead + job.lent + job.run - job.done

    def begin(self, job: Job, place: str) -> None:
        self.waiting.remove(job)
        new, belief, job.tried = self.is_new(job), self.belief(job), True
        job.start, job.place, job.serial = self.now, place, self.starts
        self.starts += 1
        if new and self.waiting:
            job.limit = self.now + self.rule.limit
        elif new:  # nobody else waits
            belief = job.believed
        job.believed_end = self.now + belief
        self.active.append(job)

    def leave(self, job: Job, completed: bool) -> None:
        self.lives.append((job.index, job.start, self.now, completed))
        self.active.remove(job)
        job.occupied += self.now - job.start if job.place != "hosts" else 0
        if job.place == "hosts":
            for host in [host for host in self.active if host.host_of is job]:
                assert host.lent_since is not None
                stay = self.now - host.lent_since
                host.lent += stay + self.rule.host
                host.back_at = self.now + self.rule.host
                host.believed_end += stay - self.rule.limit
                host.host_of, host.lent_since = None, None
        job.limit, job.place = None, ""

    def kill(self, job: Job) -> None:
        self.leave(job, False)
        job.overhead, job.lent = self.rule.restart, 0

    def preempt(self, job: Job) -> None:
        attained = self.attained(job)
        self.leave(job, False)
        job.done, job.overhead, job.lent = attained, self.rule.resume, 0
        self.waiting.append(job)

    def releases(self) -> list[tuple[int, tuple[int, ...]]]:
        ends = []
        for job in self.active:
            if job.place == "own":
                end = job.believed_end if job.believed_end > self.now else self.now + SECOND
                ends.append((end, job.demand))
        return sorted(ends)

    def reservation(self, head: Job) -> tuple[int, list[int]]:
        free, releases = self.free(), self.releases()
        for end in sorted({end for end, _ in releases}):
            then = plus(free, [d for e, d in releases if e <= end])
            if fits(head.demand, then):
                return end, minus(then, head.demand)
        raise AssertionError("never fits")


def fits(demand: Sequence[int], free: Sequence[int]) -> bool:
    return all(d <= f for d, f in zip(demand, free, strict=True))


def plus(free: Sequence[int], demands: Sequence[Sequence[int]]) -> list[int]:
    return [f + sum(d[r] for d in demands) for r, f in enumerate(free)]


def minus(free: Sequence[int], demand: Sequence[int]) -> list[int]:
    return [f - d for f, d in zip(free, demand, strict=True)]


def start_own(m: Machine, job: Job, killed: list[Job]) -> None:
    """Start a job on nodes of its own; speculating jobs make room, the last started first."""
    m.begin(job, "own")
    while min(m.idle()) < 0:
        last = max((job for job in m.active if job.place == "idle"), key=lambda job: job.serial)
        m.kill(last)
        killed.append(last)


def victims_for(m: Machine, head: Job) -> list[Job]:
    """Return who gives way to the blocked head, none if all that may do not suffice."""

    def may(job: Job) -> bool:
        if job.place != "own" or not job.permits or m.now - job.start < MINUTE:
            return False
        level, own = m.level(m.attained(job)), m.level(head.done)
        if level > own:
            return True
        if m.rule.kind == "las" or not own == level == 1 or job.urgent:
            return False
        return head.urgent or 2 * m.area(head) < m.area(job)

    def rank(job: Job) -> tuple[int, int, int]:
        if m.rule.kind == "las":
            return -m.level(m.attained(job)), 0 if m.rule.latest else job.demand[0], -job.serial
        return -m.area(job), 0, -job.serial

    chosen: list[Job] = []
    for job in sorted(filter(may, m.active), key=rank):
        if fits(head.demand, plus(m.free(), [c.demand for c in chosen])):
            break
        chosen.append(job)
    if not fits(head.demand, plus(m.free(), [c.demand for c in chosen])):
        return []
    for job in list(chosen):
        rest = [c for c in chosen if c is not job]
        if fits(head.demand, plus(m.free(), [c.demand for c in rest])):
            chosen = rest
    return chosen


def conservative(m: Machine, head: Job, killed: list[Job]) -> None:
    steps = [(m.now, m.free())]
    for end, demand in m.releases():
        steps.append((end, plus(steps[-1][1], [demand])))
    bookings: list[tuple[int, int, tuple[int, ...]]] = []
    now_starts = []
    for job in [head, *(job for job in m.queue() if job is not head)]:
        length = m.belief(job)
        instants = sorted({t for t, _ in steps} | {end for _, end, _ in bookings})

        def available(t: int) -> list[int]:
            free = [free for at, free in steps if at <= t][-1]
            for start, end, demand in bookings:
                free = minus(free, demand) if start <= t < end else free
            return list(free)

        for t in instants:
            inside = [x for x in {*instants, *(s for s, _, _ in bookings)} if t <= x < t + length]
            if all(fits(job.demand, available(x)) for x in {t, *inside}):
                bookings.append((t, t + length, job.demand))
                if t == m.now:
                    now_starts.append(job)
                break
    for job in now_starts:
        start_own(m, job, killed)


def one_pass(m: Machine) -> None:
    killed: list[Job] = []
    head = None
    while m.waiting:
        head = m.queue()[0]
        if not fits(head.demand, m.free()) and m.rule.kind in ("las", "hybrid"):
            for job in victims_for(m, head):
                m.preempt(job)
        if not fits(head.demand, m.free()):
            break
        start_own(m, head, killed)
        head = None
    if head is not None and m.backfill == "easy":
        shadow, extra = m.reservation(head)
        for job in m.queue():
            in_time = m.now + m.belief(job) <= shadow
            if job is not head and fits(job.demand, m.free()) and (in_time or fits(job.demand, extra)):
                extra = extra if in_time else minus(extra, job.demand)
                start_own(m, job, killed)
    if head is not None and m.backfill == "conservative":
        conservative(m, head, killed)
    m.waiting += killed
    if m.rule.kind == "speculative":
        speculate(m)
    if m.rule.kind == "guest":
        admit_guests(m)


def speculate(m: Machine) -> None:
    candidates = [job for job in m.queue() if job.permits and not job.tried and fits(job.demand, m.idle())]
    if not candidates:
        return
    until = min(m.now + m.rule.limit, m.reservation(m.queue()[0])[0])
    for job in candidates:
        if until > m.now and fits(job.demand, m.idle()):
            m.begin(job, "idle")
            job.limit = until


def admit_guests(m: Machine) -> None:
    for job in m.queue():
        if job.tried:
            continue
        hosts = [
            host
            for host in m.active
            if host.place == "own" and host.permits and host.host_of is None and m.now >= host.back_at
            if m.attained(host) >= 4 * (host.lent + m.rule.limit)
        ]
        single = [host for host in hosts if fits(job.demand, host.demand)]
        chosen: list[Job] = []
        if single:
            chosen = [min(single, key=lambda host: (host.demand[0], host.index))]
        elif fits(job.demand, plus([0] * len(job.demand), [host.demand for host in hosts])):
            for host in sorted(hosts, key=lambda host: (-host.demand[0], host.index)):
                chosen.append(host)
                if fits(job.demand, plus([0] * len(job.demand), [c.demand for c in chosen])):
                    break
        if chosen:
            m.begin(job, "hosts")
            job.limit = m.now + m.rule.limit
            for host in chosen:
                host.host_of, host.lent_since = job, m.now
                host.believed_end += m.rule.limit + m.rule.host


def simulate(
    jobs: Sequence[Job],
    capacity: tuple[int, ...],
    rule: Rule,
    order: str,
    backfill: str,
) -> list[tuple[int, int, int, bool]]:
    """Return the lives of all jobs, in order of their ends."""
    m = Machine(capacity, rule, order, backfill)
    coming = list(jobs)
    while coming or m.active or m.waiting:
        times = [job.submit for job in coming[:1]]
        times += [end for job in m.active if (end := m.end(job)) is not None]
        times += [job.limit for job in m.active if job.limit is not None]
        if rule.kind in ("las", "hybrid") and m.waiting and m.active:
            times.append((m.now // MINUTE + 1) * MINUTE)
        m.now = min(times)
        for job in [job for job in m.active if m.end(job) == m.now]:
            m.leave(job, True)
        while coming and coming[0].submit == m.now:
            m.waiting.append(coming.pop(0))
        for job in [job for job in m.active if job.limit is not None and job.limit <= m.now]:
            m.kill(job)
            m.waiting.append(job)
        for job in m.waiting:
            job.urgent = job.urgent or bool(rule.guard and m.now - job.submit - job.occupied >= rule.guard)
        one_pass(m)
    return m.lives
