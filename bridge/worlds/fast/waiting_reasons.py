"""Why jobs wait, in Slurm's words: the history of each job's reasons, read off a schedule and the rules.

Nothing is recorded while a replay runs but since when a job was its partition's head: what counters counted
at any time follows from the starts and ends.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from bridge.base.arrays import Array, Ints
from bridge.cluster import reasons
from bridge.scheduler.cluster_state import COUNT_SUBMITTED, COUNT_TIME, TIME_UNIT
from bridge.scheduler.state import NEVER, SECOND
from bridge.worlds.fast.calendar_reasons import CalendarReasons, Span, overlay
from bridge.worlds.fast.cluster_arrays import ClusterArrays


@dataclass(frozen=True)
class ReasonHistory:
    """The reasons of n jobs while they waited.

    Attributes:
        first: [n + 1] a job's are ``first[j]:first[j + 1]`` of the others.
        since: microseconds; each lasts until the next, the last one until the job starts, or for ever.
        code: places in `names`.
        until: [n] microseconds: the start; of jobs that never started, the end of the schedule.
    """

    first: Ints
    since: Ints
    code: Ints
    names: tuple[str, ...]
    until: Ints

    def of(self, j: int) -> list[tuple[float, str]]:
        """Return since when (s) a job waited for which reason."""
        part = slice(int(self.first[j]), int(self.first[j + 1]))
        pairs = zip(self.since[part].tolist(), self.code[part].tolist(), strict=True)
        return [(since / SECOND, self.names[code]) for since, code in pairs]

    def texts(self, which: Array) -> list[str]:
        """Return the histories of jobs as texts such as ``0 Dependency; 100 Priority``: seconds, reasons."""
        return ["; ".join(f"{since:g} {reason}" for since, reason in self.of(j)) for j in which.tolist()]

    def seconds(self) -> tuple[Ints, Ints, Ints]:
        """Return of each entry its job, its reason's place, and how long it lasted, microseconds."""
        job = np.repeat(np.arange(len(self.until)), np.diff(self.first))
        ends = np.append(self.since[1:], 0)
        last = self.first[1:][np.diff(self.first) > 0] - 1
        ends[last] = self.until[job[last]]
        return job, self.code, np.maximum(ends - self.since, 0)

    def totals(self) -> dict[str, float]:
        _, code, lasted = self.seconds()
        sums = np.bincount(code, lasted / SECOND, len(self.names))
        return {name: float(total) for name, total in zip(self.names, sums, strict=True) if total > 0}

    def main_reasons(self) -> list[str]:
        """Return the reason that held each job longest; of one that never started, its last; else empty."""
        job, code, lasted = self.seconds()
        main = [""] * len(self.until)
        for k in np.lexsort((lasted, job)).tolist():
            if lasted[k] > 0:
                main[job[k]] = self.names[code[k]]
        return main


class _Builder:
    def __init__(self, cluster: ClusterArrays, first: int, last: int, schedule: Any, est: Ints) -> None:
        self._cluster, self._jobs = cluster, cluster.jobs[first:last]
        self._first, self._schedule, self._est = first, schedule, est
        self._quantity = cluster.quantity[first:last]
        self._codes: dict[str, int] = {name: k for k, name in enumerate(cluster.reasons)}
        self.end = int(max(schedule.end.max(initial=0), schedule.submit.max(initial=0)))
        self._steps: dict[int, tuple[Ints, Ints]] = {}
        self._groups: dict[tuple[int, ...], tuple[Ints, Ints]] = {}
        self._members = self._members_of_counters()
        calendar = cluster.calendar
        self._calendar = None if calendar is None else CalendarReasons(calendar, first)

    def code(self, name: str) -> int:
        return self._codes.setdefault(name, len(self._codes))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._codes)

    def _members_of_counters(self) -> dict[int, list[tuple[Ints, int, int]]]:
        """Return for each counter the jobs that change it, by lane, with their quantity and its kind."""
        lanes, counted = self._cluster.static["lanes"], self._cluster.static["counted"]
        by_lane = np.argsort(self._jobs.lane, kind="stable")
        bounds = np.searchsorted(self._jobs.lane[by_lane], np.arange(len(lanes) + 1))
        members: dict[int, list[tuple[Ints, int, int]]] = {}
        for g in range(len(lanes)):
            jobs = by_lane[bounds[g] : bounds[g + 1]]
            jobs = jobs[self._schedule.start[jobs] >= 0]
            for k in range(int(lanes[g]["first"]), int(lanes[g]["last"])):
                row = counted[k]
                if row["kind"] != COUNT_SUBMITTED and len(jobs):
                    members.setdefault(int(row["counter"]), []).append(
                        (jobs, int(row["quantity"]), int(row["kind"]))
                    )
        return members

    def _counter(self, counter: int) -> tuple[Ints, Ints]:
        """Return the steps of what a counter counts: times, and the amount from each on."""
        if counter not in self._steps:
            times, changes = [np.zeros(1, np.int64)], [np.zeros(1, np.int64)]
            for jobs, q, kind in self._members.get(counter, ()):
                amount = self._quantity[jobs, q]
                start, end = self._schedule.start[jobs], self._schedule.end[jobs]
                up, down = amount, -amount
                if kind == COUNT_TIME:
                    up = amount * (self._est[jobs] // TIME_UNIT)
                    down = amount * ((end - start) // TIME_UNIT) - up
                times += [start, end]
                changes += [up, down]
            flat = np.concatenate(times)
            order = np.argsort(flat, kind="stable")
            flat, level = flat[order], np.cumsum(np.concatenate(changes)[order])
            last = np.append(flat[1:] != flat[:-1], True)
            self._steps[counter] = flat[last], level[last]
        return self._steps[counter]

    def _limits(self, j: int) -> tuple[Ints, Ints]:
        """Return since when which limit holds jobs like `j` back: times, and codes (-1: none)."""
        lane = self._cluster.static["lanes"][self._jobs.lane[j]]
        counted = self._cluster.static["counted"][int(lane["first"]) : int(lane["last"])]
        rows = [row for row in counted if row["tested"] and row["kind"] != COUNT_SUBMITTED]
        amounts = [
            int(self._quantity[j, row["quantity"]])
            * (int(self._est[j]) // TIME_UNIT if row["kind"] == COUNT_TIME else 1)
            for row in rows
        ]
        key = (int(self._jobs.lane[j]), *amounts)
        if key not in self._groups:
            steps = [self._counter(int(row["counter"])) for row in rows]
            bounds = [self._bounds(row) for row in rows]
            moments = [*(step[0] for step in steps), *(bound[0] for bound in bounds)]
            times = np.unique(np.concatenate([np.zeros(1, np.int64), *moments]))
            codes = np.full(len(times), -1, np.int64)
            for row, amount, (at, level), (since, limit) in reversed(
                [*zip(rows, amounts, steps, bounds, strict=True)]
            ):
                used = level[np.searchsorted(at, times, "right") - 1]
                allowed = limit[np.searchsorted(since, times, "right") - 1]
                codes[used + amount > allowed] = row["reason"]
            changes = np.append(True, codes[1:] != codes[:-1])
            self._groups[key] = times[changes], codes[changes]
        return self._groups[key]

    def _bounds(self, row: Any) -> tuple[Ints, Ints]:
        """Return the steps of a limit: times, and the limit from each on."""
        changes = [] if self._calendar is None else self._calendar.limits(int(row["counter"]))
        pairs = np.array([(0, int(row["limit"])), *changes], np.int64)
        return pairs[:, 0], pairs[:, 1]

    def until(self, j: int) -> int:
        """Return when the calendar cancelled job `j`, or else the end of the schedule."""
        if self._calendar is None:
            return self.end
        schedule = self._schedule
        times = (int(column[j]) for column in (schedule.submit, schedule.start, schedule.never_at))
        return min(self._calendar.cancelled_at(j, *times), self.end)

    def history(self, j: int) -> Iterator[tuple[int, int]]:
        """Yield since when (microseconds) job `j` waited for which reason (a code)."""
        schedule = self._schedule
        if self._calendar is None or schedule.refused[j] > 0:
            yield from self._by_rules(j)
            return
        p = int(self._cluster.demands.partition[self._first + j])
        times = (int(column[j]) for column in (schedule.submit, schedule.start, schedule.never_at))
        cancelled = self._calendar.cancelled_at(j, *times)
        layers = [(span, self.code(reasons.HELD)) for span in self._calendar.held(j)]
        eligible = int(schedule.eligible[j])
        later: list[tuple[list[Span], str]] = [
            (self._calendar.outside_reservation(j), reasons.RESERVATION),
            (self._calendar.down(p), reasons.PARTITION_DOWN),
        ]
        for spans, name in later if eligible >= 0 else []:
            layers += [
                ((max(begin, eligible), end), self.code(name)) for begin, end in spans if end > eligible
            ]
        stop = int(schedule.start[j]) if schedule.start[j] >= 0 else min(cancelled, self.end + 1)
        base = [*self._by_rules(j, is_cancelled=cancelled < NEVER)]
        if base:
            yield from overlay(base, layers, stop)
        if cancelled < NEVER:
            yield cancelled, self.code(reasons.CANCELLED)

    def _by_rules(self, j: int, *, is_cancelled: bool = False) -> Iterator[tuple[int, int]]:
        """Yield the history of job `j` by what does not change in time."""
        schedule, job = self._schedule, self._jobs[j]
        requests, submit = self._cluster.requests, int(schedule.submit[j])
        eligible, start = int(schedule.eligible[j]), int(schedule.start[j])
        if schedule.since is not None and 0 <= eligible < schedule.since[j]:
            submit = eligible = int(schedule.since[j])  # it ran before, and waited again from then on
        if schedule.refused[j] > 0:
            yield submit, int(schedule.refused[j]) - 1
            return
        hold, begin = int(requests.hold_until[self._first + j]), int(requests.begin[self._first + j])
        until = eligible if eligible >= 0 else NEVER
        time = submit
        if self._calendar is not None and hold == NEVER:
            hold = -1  # the calendar may release it
        for limit, name in ((hold, reasons.HELD), (begin, reasons.BEGIN_TIME)):
            if limit > time and time < until:
                yield time, self.code(name)
                time = min(limit, until)
        never = -1 if is_cancelled else int(schedule.never_at[j])
        if time < (until if never < 0 else never):
            yield time, self.code(reasons.DEPENDENCY)
        if never >= 0:
            yield never, self.code(reasons.DEPENDENCY_NEVER)
        if eligible < 0:
            return
        partition = self._cluster.classes.partitions[self._cluster.demands.partition[self._first + j]]
        if partition.state != "up" and self._calendar is None:
            yield eligible, self.code(reasons.PARTITION_DOWN)
        elif job.for_ever > 0:
            yield eligible, int(job.for_ever) - 1
        else:
            stop = start if start >= 0 else self.end + 1
            yield from self._while_eligible(j, eligible, stop, int(schedule.head_at[j]))

    def _while_eligible(self, j: int, eligible: int, stop: int, head_at: int) -> Iterator[tuple[int, int]]:
        times, codes = self._limits(j)
        i = int(np.searchsorted(times, eligible, "right")) - 1
        time = eligible
        while time < stop:
            end = int(times[i + 1]) if i + 1 < len(times) else NEVER
            if codes[i] >= 0:
                yield time, int(codes[i])
            elif head_at < 0 or head_at >= end:
                yield time, self.code(reasons.PRIORITY)
            else:
                if time < head_at < min(end, stop):
                    yield time, self.code(reasons.PRIORITY)
                yield max(time, head_at), self.code(reasons.RESOURCES)
            time, i = end, i + 1


def build_history(
    cluster: ClusterArrays, schedule: Any, est: Ints, first: int = 0, last: int | None = None
) -> ReasonHistory:
    """Return the history of reasons of an episode's jobs; `est`: [n] believed lengths, microseconds."""
    n = len(schedule.start)
    builder = _Builder(cluster, first, first + n if last is None else last, schedule, est)
    places, since, code = np.zeros(n + 1, np.int64), [], []
    for j in range(n):
        before = -1
        if schedule.start[j] != schedule.submit[j]:
            for time, reason in builder.history(j):
                if reason != before:
                    since.append(time)
                    code.append(reason)
                before = reason
        places[j + 1] = len(since)
    until = np.where(schedule.start >= 0, schedule.start, [builder.until(j) for j in range(n)])
    return ReasonHistory(places, np.array(since, np.int64), np.array(code, np.int64), builder.names, until)
