"""CQSim and the SchedGym family in plain Python, from a log's records to starts, written from their rules.

Unlike `reference`, which gets prepared jobs, these read records: what is dropped, repaired and believed is
decided here, too. Nothing of bridge is imported. Times are whole seconds.
"""

import heapq
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Amounts = tuple[int, ...]


@dataclass(frozen=True)
class Record:
    """The fields of a log's record that matter; `others` is the demand for further resources."""

    job_id: int
    submit: int
    run: int
    procs: int
    req_procs: int
    req_time: int
    others: Amounts = ()


@dataclass(eq=False)
class Job:
    """A job; lengths are what orders, waiting and running jobs are believed to take."""

    job_id: int
    submit: int
    run: int
    demand: Amounts
    length: int
    waiting: int
    running: int
    start: int = -1


def _fits(demand: Amounts, free: Amounts) -> bool:
    return all(d <= f for d, f in zip(demand, free, strict=True))


def _minus(a: Amounts, b: Amounts) -> Amounts:
    return tuple(x - y for x, y in zip(a, b, strict=True))


def _plus(a: Amounts, b: Amounts) -> Amounts:
    return tuple(x + y for x, y in zip(a, b, strict=True))


# ---- CQSim -------------------------------------------------------------------------------------------------
def load_cqsim(records: Iterable[Record], capacity: Amounts, estimator: str) -> list[Job]:
    """Apply CQSim's filter in its order, then leave out what is larger than the machine."""
    jobs = []
    for record in records:
        run = min(record.run, record.req_time)
        if min(record.job_id, run, record.req_time, record.req_procs) <= 0 or record.submit < 0:
            continue
        demand = (record.req_procs, *record.others)
        if _fits(demand, capacity):
            request = record.req_time
            lengths = {
                "cqsim": (request, run, request),
                "requested": (request, request, request),
                "actual": (run, run, run),
            }[estimator]
            jobs.append(Job(record.job_id, record.submit, run, demand, *lengths))
    first = min((job.submit for job in jobs), default=0)
    for job in jobs:
        job.submit -= first
    return sorted(jobs, key=lambda job: job.submit)


#: An instant of CQSim's profile: before (0) or after (1) the releases of that time.
Instant = tuple[int, int]


def _free_at(
    instant: Instant, capacity: Amounts, taken: Iterable[tuple[Instant, Instant, Amounts]]
) -> Amounts:
    for begin, end, demand in taken:
        if begin <= instant < end:
            capacity = _minus(capacity, demand)
    return capacity


def _backfill_conservative(now: int, queue: list[Job], running: list[Job], capacity: Amounts) -> list[Job]:
    """Book every waiting job at the earliest instant from which it fits all along."""
    taken = [((now, 0), (max(job.start + job.running, now), 1), job.demand) for job in running]
    picks = []
    for job in queue:
        instants = sorted({(now, 0), *(end for _, end, _ in taken)})
        for begin in instants:
            end = (begin[0] + job.waiting, 1)
            within = [instant for instant in instants if begin <= instant < end]
            if all(_fits(job.demand, _free_at(instant, capacity, taken)) for instant in within):
                break
        taken.append((begin, end, job.demand))
        if begin == (now, 0):
            picks.append(job)
    return picks


def _backfill_easy(now: int, queue: list[Job], running: list[Job], free: Amounts) -> list[Job]:
    """Reserve the head at the shadow time; let those start that end by then, or leave it what it needs."""
    head, *candidates = queue
    at_shadow = free
    shadow = now
    for shadow in sorted({job.start + job.running for job in running}):
        for job in running:
            if job.start + job.running == shadow:
                at_shadow = _plus(at_shadow, job.demand)
        if _fits(head.demand, at_shadow):
            break
    extra = _minus(at_shadow, head.demand)
    picks = []
    for job in candidates:
        if _fits(job.demand, free):
            ends_in_time = now + job.waiting <= shadow
            if ends_in_time or _fits(job.demand, extra):
                picks.append(job)
                free = _minus(free, job.demand)
                if not ends_in_time:
                    extra = _minus(extra, job.demand)
    return picks


def simulate_cqsim(jobs: Sequence[Job], capacity: Amounts, order: str, backfill: str) -> None:
    """Fill in the starts; `order` is an expression in CQSim's variables, evaluated by Python."""
    score = compile(order, "order", "eval")
    functions = {"sqrt": math.sqrt, "log": math.log, "min": min, "max": max, "__builtins__": {}}
    events: list[tuple[int, int, int, Job]] = []  # time, priority (1 finish, 2 submit), insertion
    serial = 0

    def add_event(time: int, priority: int, job: Job) -> None:
        nonlocal serial
        heapq.heappush(events, (time, priority, serial, job))
        serial += 1

    for job in jobs:
        add_event(job.submit, 2, job)
    queue: list[Job] = []
    running: list[Job] = []
    free = capacity

    def start(job: Job, now: int) -> None:
        nonlocal free
        queue.remove(job)
        running.append(job)
        free = _minus(free, job.demand)
        job.start = now
        add_event(now + job.run, 1, job)

    while events:
        now, priority, _, job = heapq.heappop(events)
        if priority == 2:
            queue.append(job)
        else:
            running.remove(job)
            free = _plus(free, job.demand)
        values: dict[str, Any] = dict(functions)
        values["z"] = max((now - job.submit for job in queue), default=0) or 1
        values["l"] = min((job.length for job in queue), default=0)
        scores = {}
        for job in queue:
            own = {"s": job.submit, "t": job.length, "n": job.demand[0], "w": now - job.submit}
            scores[job] = eval(score, values | own)
        queue.sort(key=scores.__getitem__, reverse=True)  # stable also in reverse
        while queue and _fits(queue[0].demand, free):
            start(queue[0], now)
        if len(queue) < 2 or backfill == "none":
            continue
        if backfill == "easy":
            picks = _backfill_easy(now, queue, running, free)
        else:
            picks = _backfill_conservative(now, queue, running, capacity)
        for job in picks:
            start(job, now)


# ---- the SchedGym family -----------------------------------------------------------------------------------
def load_schedgym(records: Iterable[Record], capacity: Amounts, preset: str, estimator: str) -> list[Job]:
    """Repair records as a code base of the family does; who would have to wait for ever is left out."""
    jobs = []
    for record in sorted(records, key=lambda record: record.job_id):
        demand = (max(record.procs, record.req_procs), *record.others)
        if record.submit < 0 or demand[0] <= 0 or not _fits(demand, capacity):
            continue
        if record.run == 0 and preset != "schedinspector":
            continue
        run = record.run if record.run >= 0 else 10
        request = record.req_time
        if preset == "schedinspector":
            request = run
        elif preset == "rlbackfilling":
            request = max(request, run)
        elif request <= 0:
            request = run
        if estimator == "actual":  # RLBackfilling replaces requests before cancelled jobs are repaired
            request = record.run if preset == "rlbackfilling" else run
        jobs.append(Job(record.job_id, record.submit, run, demand, request, request, request))
    return jobs


def _positive(x: float) -> float:
    return x if x > 0 else 0.1


#: The lowest value goes first. The authors compute waits as −1 − submit.
SCHEDGYM_SCORES: Mapping[str, Callable[[Job], float]] = {
    "fcfs": lambda job: job.submit,
    "sjf": lambda job: job.length,
    "saf": lambda job: job.length * job.demand[0],
    "lcfs": lambda job: -job.submit,
    "wfp3": lambda job: -(((-1 - job.submit) / job.length) ** 3 * job.demand[0]),
    "unicep": lambda job: -((-1 - job.submit + 1e-15) / (math.log2(job.demand[0] + 1e-15) * job.length)),
    "f1": lambda job: (
        math.log10(_positive(job.length)) * job.demand[0] + 870 * math.log10(_positive(job.submit))
    ),
}


def simulate_schedgym(jobs: Sequence[Job], capacity: Amounts, order: str, backfill: str, preset: str) -> None:
    """Fill in the starts: after each event, the locked head starts or waits, and others may pass it."""
    score = SCHEDGYM_SCORES[order]
    arrivals = list(jobs)
    queue: list[Job] = []
    running: list[Job] = []
    free = capacity
    now = 0
    head: Job | None = None
    shadow = 0

    def start(job: Job) -> None:
        nonlocal free
        queue.remove(job)
        running.append(job)
        free = _minus(free, job.demand)
        job.start = now

    def rank(job: Job) -> tuple[float, int, int]:
        return (score(job), job.demand[0] if preset == "schedinspector" else job.submit, job.job_id)

    while True:
        while head or queue:
            if head is None:
                head, shadow = min(queue, key=rank), -1
            if _fits(head.demand, free):
                start(head)
                head = None
                continue
            if backfill == "easy":
                if shadow < 0:
                    running.sort(key=lambda job: job.start + job.running)
                    then = free
                    for job in running:
                        then, shadow = _plus(then, job.demand), job.start + job.running
                        if _fits(head.demand, then):
                            break
                queue.sort(key=lambda job: job.submit)
                for job in queue if preset == "rlbackfilling" else tuple(queue):
                    if _fits(job.demand, free) and now + job.waiting < shadow:
                        start(job)  # out of the list that RLBackfilling iterates: the next one is passed over
            break
        running.sort(key=lambda job: job.start + job.run)
        release = running[0].start + running[0].run if running else math.inf
        if arrivals and arrivals[0].submit <= release:
            now = max(now, arrivals[0].submit)
            queue.append(arrivals.pop(0))
        elif running:
            now = max(now, running[0].start + running[0].run)
            free = _plus(free, running.pop(0).demand)
        else:
            return


# ---- both --------------------------------------------------------------------------------------------------
def simulate_records(
    protocol: str,
    records: Iterable[Record],
    capacity: Amounts,
    order: str,
    backfill: str,
    estimator: str,
    preset: str = "rlbackfilling",
) -> list[tuple[int, int, int]]:
    """Return (job id, start, end), in seconds, of the jobs that are kept, by job id."""
    if protocol == "cqsim":
        jobs = load_cqsim(records, capacity, estimator)
        simulate_cqsim(jobs, capacity, order, backfill)
    else:
        jobs = load_schedgym(records, capacity, preset, estimator)
        simulate_schedgym(jobs, capacity, order, backfill, preset)
    return sorted((job.job_id, job.start, job.start + job.run) for job in jobs)
