"""A second implementation of AleaNG's aggressive backfilling with fair share: one event after the other."""

import heapq
import math
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

GAP = 0.0008


@dataclass(frozen=True)
class Site:
    """Machines (name -> nodes), in the order in which they are tried; quotas and shares by name."""

    machines: dict[str, int]
    queues: dict[str, int]  # the first is the most important
    groups: dict[str, int]
    users: dict[str, tuple[int, int, str]]  # quota, shares, group


def _round(value: float) -> int:
    return math.floor(value + 0.5)


class Simulation:
    """Jobs are (submit, run, nodes, walltime, user, queue, machine or "")."""

    def __init__(self, site: Site, jobs: list[tuple[Any, ...]]) -> None:
        self.site, self.jobs = site, jobs
        self.free = dict(site.machines)
        self.in_use: dict[tuple[str, str], int] = defaultdict(int)
        self.ended = dict.fromkeys(site.users, 1)
        self.guess = dict.fromkeys(site.users, 0)
        self.stamp = dict.fromkeys(site.users, 0)
        self.running: dict[int, str] = {}
        self.start: dict[int, float] = {}
        self.queues: dict[str, list[int]] = {name: [] for name in site.queues}

    def factor(self, now: float) -> dict[str, float]:
        used = {}
        for user in self.site.users:
            mine = [j for j in self.running if self.jobs[j][4] == user]
            run = sum(_round(self.jobs[j][2] * (now - self.start[j]) * 0.95) for j in mine)
            used[user] = self.ended[user] + self.guess[user] + run
        shares = sum(row[1] for row in self.site.users.values())
        total = sum(used.values())
        return {u: 2 ** -((used[u] / total) / (row[1] / shares)) for u, row in self.site.users.items()}

    def quotas(self, j: int) -> list[tuple[tuple[str, str], int]]:
        user, queue = self.jobs[j][4], self.jobs[j][5]
        quota, _, group = self.site.users[user]
        return [
            (("queue", queue), self.site.queues[queue]),
            (("group", group), self.site.groups[group]),
            (("user", user), quota),
        ]

    def machine_for(self, j: int) -> str | None:
        n, wanted = self.jobs[j][2], self.jobs[j][6]
        if any(self.in_use[key] + n > quota for key, quota in self.quotas(j)):
            return None
        return next((m for m, free in self.free.items() if wanted in ("", m) and free >= n), None)

    def choose(self, now: float) -> tuple[int, str] | None:
        for user in self.site.users:
            if _round(now) > self.stamp[user] + 1:
                self.guess[user], self.stamp[user] = 0, _round(now)
        factor = self.factor(now)
        for waiting in self.queues.values():
            for j in sorted(waiting, key=lambda j: (-factor[self.jobs[j][4]], j)):
                machine = self.machine_for(j)
                if machine is not None:
                    waiting.remove(j)
                    return j, machine
        return None

    def stamp_user(self, user: str, now: float) -> None:
        self.guess[user], self.stamp[user] = 0, _round(now)

    def simulate(self) -> list[float]:
        events: list[tuple[float, int, int]] = [(job[0], 2, j) for j, job in enumerate(self.jobs)]
        events.append((self.jobs[0][0] - 5, 1, 0))
        heapq.heapify(events)
        left, closed = len(self.jobs), -1.0
        while left:
            now = events[0][0]
            while events and events[0][0] == now:
                _, kind, j = heapq.heappop(events)
                if kind == 0:
                    self.end(j, now)
                    left -= 1
                elif kind == 1:
                    for user in self.site.users:
                        self.ended[user] = _round(self.ended[user] * 0.75)
                        self.stamp_user(user, now)
                    heapq.heappush(events, (now + 172_800, 1, 0))
                elif kind == 2:
                    self.queues[self.jobs[j][5]].append(j)
            if now >= closed and (chosen := self.choose(now)) is not None:
                j, machine = chosen
                closed = self.begin(j, machine, now)
                heapq.heappush(events, (closed, 3, 0))
                heapq.heappush(events, (round(closed + self.jobs[j][1] + 1, 6), 0, j))
        return [self.start[j] for j in range(len(self.jobs))]

    def begin(self, j: int, machine: str, now: float) -> float:
        _, _, n, walltime, user, *_ = self.jobs[j]
        self.guess[user] += n * walltime
        self.stamp[user] = _round(now)
        self.free[machine] -= n
        for key, _quota in self.quotas(j):
            self.in_use[key] += n
        self.running[j] = machine
        self.start[j] = round(now + GAP, 6)
        return self.start[j]

    def end(self, j: int, now: float) -> None:
        n, user = self.jobs[j][2], self.jobs[j][4]
        self.free[self.running.pop(j)] += n
        for key, _quota in self.quotas(j):
            self.in_use[key] -= n
        self.ended[user] += _round(n * (now - self.start[j]))
        self.stamp_user(user, now)
