"""Sites of which all is known: random pools, a limit of users, a cycle and a delay, and the run they give.

A scheduler of its own, in plain Python: EASY in each partition, passes at multiples of the cycle.
"""

from dataclasses import dataclass

import numpy as np

from bridge.judge.fidelity_reasons import RecordedRun


@dataclass(frozen=True)
class Site:
    sizes: tuple[int, ...]
    shared: int  # nodes that partitions 0 and 1 both have
    limit: int | None  # jobs of one user that run at one time
    cycle: int
    delay: int


@dataclass(frozen=True)
class Planted:
    site: Site
    run: RecordedRun
    held: int  # how often a job with room was held back by the limit


def draw(seed: int, jobs: int) -> Planted:
    """Return a random site with a run of so many jobs."""
    rng = np.random.default_rng(seed)
    sizes = tuple(rng.integers(12, 60, rng.integers(2, 4)).tolist())
    shared = int(rng.integers(2, min(sizes[:2]) - 2)) if rng.random() < 0.4 else 0
    limit = int(rng.integers(2, 6)) if rng.random() < 0.7 else None
    site = Site(sizes, shared, limit, int(rng.choice([20, 30, 60])), int(rng.choice([0, 4, 11])))
    partition = rng.integers(0, len(sizes), jobs)
    nodes = np.array([rng.integers(1, max(sizes[p] // 5, 2)) for p in partition.tolist()])
    run = np.maximum(rng.lognormal(7.5, 1.0, jobs), 30).round()
    request = (run * rng.uniform(1, 3, jobs)).round()
    user = rng.integers(0, 10, jobs)
    work = np.zeros(len(sizes))
    np.add.at(work, partition, nodes * run)
    room = np.array(sizes, float)
    if shared:
        room[:2] *= (sizes[0] + sizes[1] - shared) / (sizes[0] + sizes[1])
    span = float((work / room).max()) / 0.97
    submit = np.sort(rng.uniform(0, span, jobs)).round(3)
    start, held = _schedule(site, submit, run, request, nodes, user, partition)
    total = sum(sizes) - shared
    record = RecordedRun(submit, start, start + run, request, nodes, total, user, partition)
    return Planted(site, record, held)


def _schedule(site, submit, run, request, nodes, user, partition):  # type: ignore[no-untyped-def]
    n = len(submit)
    start, end = np.full(n, np.nan), np.full(n, np.inf)
    used, running = [0] * len(site.sizes), set[int]()
    waiting: list[int] = []
    of_user = [0] * 10
    next_job, now, held = 0, 0, 0
    while next_job < n or waiting:
        for j in [j for j in running if end[j] <= now]:
            running.discard(j)
            used[partition[j]] -= nodes[j]
            of_user[user[j]] -= 1
        while next_job < n and submit[next_job] + site.delay <= now:
            waiting.append(next_job)
            next_job += 1
        heads: dict[int, tuple[float, int]] = {}
        for j in list(waiting):
            p, size = int(partition[j]), int(nodes[j])
            free = site.sizes[p] - used[p]
            if p < 2 and site.shared:
                free = min(free, site.sizes[0] + site.sizes[1] - site.shared - used[0] - used[1])
            in_time = p not in heads or now + request[j] <= heads[p][0] or size <= heads[p][1]
            if site.limit is not None and of_user[user[j]] >= site.limit:
                held += size <= free and in_time
                continue
            if size <= free and in_time:
                waiting.remove(j)
                start[j], end[j] = now, now + run[j]
                running.add(j)
                used[p] += size
                of_user[user[j]] += 1
                if p in heads and now + request[j] > heads[p][0]:
                    heads[p] = (heads[p][0], heads[p][1] - size)
            elif p not in heads:
                among = (0, 1) if p < 2 and site.shared else (p,)
                heads[p] = _reserve(
                    free, size, [k for k in running if partition[k] in among], start, request, nodes
                )
        upcoming = [end[j] for j in running]
        if next_job < n:
            upcoming.append(submit[next_job] + site.delay)
        now = int(-(-max(min(upcoming), now + 1) // site.cycle)) * site.cycle
    return start, held


def _reserve(free, size, running, start, request, nodes):  # type: ignore[no-untyped-def]
    for j in sorted(running, key=lambda k: start[k] + request[k]):
        free += int(nodes[j])
        if free >= size:
            return start[j] + request[j], free - size
    return np.inf, 0
