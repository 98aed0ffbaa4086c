"""The slotted pool once more, as plain objects and lists, straight from the rules."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bridge.pool.jobset import JobSet
from bridge.pool.settings import PoolConfig


@dataclass
class Job:
    number: int
    units: int
    length: int
    believed: int
    beliefs: list[int]
    submit: int
    start: int = -1
    until: int = -1
    end: int = -1
    kills: int = 0
    lost: int = 0


class Pool:
    """One pool; `answer` also lets time pass."""

    def __init__(self, jobs: JobSet, arrivals: Sequence[int], settings: PoolConfig) -> None:
        self.set, self.arrivals, self.settings = jobs, arrivals, settings
        self.free = [settings.units] * settings.horizon
        self.waiting: list[Job] = []
        self.backlog: list[Job] = []
        self.booked: list[Job] = []
        self.ready: list[Job] = []
        self.running: list[Job | None] = [None] * settings.kill_slots
        self.all: list[Job] = []
        self.now, self.silence, self.reward, self.rejected, self.over = 0, 0, 0.0, 0, False

    def _add(self, first: int, last: int, units: int) -> None:
        for step in range(max(first, self.now), min(last, self.now + len(self.free))):
            self.free[step - self.now] += units

    def _book(self, job: Job) -> bool:
        for at in range(len(self.free) - job.believed):
            if min(self.free[at : at + job.believed]) >= job.units:
                break
        else:
            return False
        if self.settings.oracle_clamp:
            error = abs(job.believed - job.length)
            job.beliefs = [b if abs(b - job.length) <= error else job.believed for b in job.beliefs]
        job.start = self.now + at
        job.until = job.start + job.believed
        self._add(job.start, job.until, -job.units)
        self.booked.append(job)
        return True

    def _send_back(self) -> None:
        for job in [j for j in self.booked if j.start >= self.now]:
            self._add(job.start, job.until, job.units)
            self.booked.remove(job)
            self.ready.append(job)

    def _leave(self, job: Job) -> None:
        self._add(job.start, job.until, job.units)
        self.booked.remove(job)
        self.running = [None if j is job else j for j in self.running]

    def _belief(self, job: Job) -> int:
        return job.beliefs[min(self.now - job.start, len(job.beliefs) - 1)]

    def answer(self, action: int) -> None:
        self.reward = 0.0
        slots = self.settings.slots
        if action > slots and (job := self.running[action - slots - 1]) is not None:
            self._leave(job)
            job.kills, job.lost = job.kills + 1, job.lost + self.now - job.start
            job.believed = self._belief(job)
            self.waiting = sorted([*self.waiting, job], key=lambda j: j.number)
            self._send_back()
            return
        visible = self.waiting[:slots]
        if 0 <= action < len(visible) and not self.ready and self._book(visible[action]):
            self.waiting.remove(visible[action])
            if len(self.waiting) < slots and self.backlog:
                self.waiting.append(self.backlog.pop(0))
            return
        self._move_on()

    def _move_on(self) -> None:
        self.now += 1
        self.free = [*self.free[1:], self.settings.units]
        disturbed = False
        for job in list(self.booked):
            if job.start + job.length <= self.now:
                disturbed |= job.until > self.now
                self._leave(job)
                job.end = self.now
            elif job.until <= self.now:
                self._add(self.now, self.now + 1, -job.units)
                job.until, disturbed = self.now + 1, True
        for job in self.booked:
            used = self.now - job.start
            if used <= 0:
                continue
            at = min(used, len(job.beliefs) - 1)
            job.beliefs[at] = max(job.beliefs[at], used + 1)
            until = job.start + job.beliefs[at]
            disturbed |= until != job.until
            self._add(self.now, job.until, job.units)
            self._add(self.now, until, -job.units)
            job.until = until
        if disturbed:
            self._send_back()
        for job in self.booked:
            if job.start < self.now and job not in self.running and None in self.running:
                self.running[self.running.index(None)] = job
        self.ready.sort(key=lambda j: j.start)
        while self.ready and self._book(self.ready[0]):
            self.ready.pop(0)
        self.silence = min(self.silence + 1, 10)
        system = [*self.booked, *self.ready, *self.waiting, *self.backlog]
        late = self.now > self.settings.last_step
        self.over = late or (self.now >= len(self.arrivals) and not system)
        if not self.over and self.now < len(self.arrivals) and self.arrivals[self.now] >= 0:
            self._arrive(self.arrivals[self.now])
        self.reward = self._step_reward()

    def _arrive(self, index: int) -> None:
        s = self.set
        job = Job(
            number=len(self.all),
            units=int(s.units[index]),
            length=int(s.length[index]),
            believed=int(s.believed[index]),
            beliefs=[int(b) for b in s.beliefs[index]],
            submit=self.now,
        )
        self.all.append(job)
        self.silence = 0
        if len(self.waiting) < self.settings.slots:
            self.waiting.append(job)
        elif len(self.backlog) < self.settings.backlog:
            self.backlog.append(job)
        else:
            self.rejected += 1

    def _step_reward(self) -> float:
        many = float(len(self.booked) + len(self.ready) + len(self.waiting) + len(self.backlog))
        if self.settings.objective == "completion":
            return -many
        lengths = [
            job.beliefs[min(max(self.now - job.start, 0), len(job.beliefs) - 1)] for job in self.booked
        ]
        lengths += [job.believed for job in (*self.ready, *self.waiting, *self.backlog)]
        slowdown = sum(1.0 / length for length in lengths)
        if self.settings.objective == "slowdown":
            return -slowdown
        share = self.settings.completion_weight
        return -((1.0 - share) * slowdown + share * many)


def picture(pool: Pool, colours: dict[int, int]) -> npt.NDArray[np.float32]:
    """Return what an agent sees of a pool, cell by cell; colours are k of each booked job's number."""
    s = pool.settings
    canvas = np.zeros((s.horizon, s.units))
    for h, row in enumerate(canvas):
        at = pool.now + h
        booked = [(colours[j.number] / 500, j.units) for j in pool.booked if j.start <= at < j.until]
        cells = sorted(colour for colour, units in booked for _ in range(units))
        row[s.units - len(cells) :] = cells
    slots = np.zeros((s.horizon, 10 * s.slots))
    for k, job in enumerate(pool.waiting[: s.slots]):
        slots[: job.believed, 10 * k : 10 * k + job.units] = 1
    running = np.zeros(s.horizon)
    for k, shown in enumerate(pool.running):
        if shown is not None:
            used, run = pool.now - shown.start, pool._belief(shown)
            error = abs(run - shown.believed) / shown.believed
            running[k * (s.horizon // s.kill_slots) :][:6] = [
                shown.believed / 100, used / 100, error, run / 100, shown.submit / 200, shown.units / 10
            ]  # fmt: skip
    silence = np.full(s.horizon, pool.silence / 10)
    return np.column_stack((canvas, slots, running, silence)).astype(np.float32)
