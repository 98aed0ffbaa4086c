"""What Slurm's own schedulers start next, by the protocol `slurm`, beside a Slurm that decides itself.

Nothing is written to Slurm. Each start is compared with what the pass that made it had to start, from all
that was there before it: submissions, ends, and the starts of earlier passes.
"""

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import combinations
from queue import Queue
from typing import Any

from bridge.base.errors import BridgeError
from bridge.worlds.slurm.client import Client, Control
from bridge.worlds.slurm.own_jobs import COMPLETING, JobReader, OwnJob
from bridge.worlds.slurm.own_site import OwnQueue, read_own_site

#: Nodes and partitions are read again after so many seconds.
RECONCILE = 60.0
#: Of so many changes between two readings all subsets are tried.
_MOST_CHANGES = 6
#: What happens to a job between two readings, besides its start.
_GONE, _NEW, _END, _FREE = range(4)


@dataclass(frozen=True)
class QueueChange:
    """A job came, went, ended, or some of its nodes were freed.

    Attributes:
        second: since 1970, in which it happened at the earliest.
        until: in which it happened at the latest.
        job: as it is afterwards.
    """

    second: int
    until: int
    kind: int
    job: OwnJob

    def apply(self, queue: OwnQueue) -> None:
        label = self.job.label
        if self.kind == _NEW:
            queue.waiting[label] = self.job
        elif self.kind == _GONE:
            queue.waiting.pop(label, None)
        elif self.job.nodes:
            queue.running[label] = self.job
        else:
            queue.running.pop(label, None)


@dataclass(frozen=True)
class Hit:
    """A start of Slurm's, beside what was predicted: the nodes, or why none.

    Attributes:
        by: whose pass it was: main or backfill.
        predicted: if all that the two readings around it differ in had happened before it.
        in_part: if that part of it had happened that explains the starts best.
    """

    job: str
    by: str
    nodes: frozenset[str]
    predicted: frozenset[str] | None
    in_part: frozenset[str] | None
    why: str

    @property
    def is_right(self) -> bool:
        return self.predicted == self.nodes

    @property
    def is_right_in_part(self) -> bool:
        return self.in_part == self.nodes


@dataclass
class ShadowReport:
    """Starts that Slurm made while it was watched, each with what was predicted."""

    hits: list[Hit] = field(default_factory=list)

    def document(self) -> dict[str, Any]:
        n, right = len(self.hits), sum(one.is_right for one in self.hits)
        in_part = sum(one.is_right_in_part for one in self.hits)
        return {
            "starts": n,
            "of which predicted": sum(one.predicted is not None for one in self.hits),
            "of which predicted on the same nodes": right,
            "of which predicted if their order between two readings is free": in_part,
            "hit rate": right / n if n else None,
            "hit rate if the order is free": in_part / n if n else None,
            "by": dict(Counter(one.by for one in self.hits)),
            "left out": dict(Counter(one.why for one in self.hits if one.why)),
            "misses": [
                {
                    "job": one.job,
                    "by": one.by,
                    "nodes": sorted(one.nodes),
                    "predicted": None if one.in_part is None else sorted(one.in_part),
                }
                for one in self.hits
                if not one.is_right_in_part
            ],
        }


class OwnShadow:
    """Follows a Slurm; `report` has its starts so far."""

    def __init__(self, client: Client) -> None:
        self.client, self.report = client, ShadowReport()
        self.site = read_own_site(client)
        self._site_read = time.monotonic()
        self._jobs = JobReader()
        self._last: dict[str, OwnJob] | None = None
        self._read_at = 0  # when the last reading began
        self._queue = OwnQueue(self.site)

    def run(self, until: Callable[[], bool], interval: float = 0.1) -> None:
        """Follow until told to stop, with so many seconds between two readings."""
        readings: Queue[tuple[str, int, int] | None] = Queue()
        reader = threading.Thread(target=self._read_on, args=(readings, until, interval), daemon=True)
        reader.start()
        while (reading := readings.get()) is not None:
            self.read(*reading)
            if time.monotonic() > self._site_read + RECONCILE:
                self.site, self._site_read = read_own_site(self.client), time.monotonic()
                self._queue.site = self.site

    def _read_on(
        self, readings: "Queue[tuple[str, int, int] | None]", until: Callable[[], bool], interval: float
    ) -> None:
        """Read at equal distances in time, however long predictions take."""
        control = Control(self.client, details=True, one_line=True)
        try:
            while not until():
                began, since = time.monotonic(), int(time.time())
                with suppress(BridgeError):  # slurmctld is busy or away: the next reading has it all
                    readings.put((control("show job"), since, int(time.time())))
                time.sleep(max(began + interval - time.monotonic(), 0.0))
        finally:
            control.close()
            readings.put(None)

    def read(self, text: str, began: int, now: int) -> None:
        """Take a reading that began and was there in these seconds: what has happened since the last one."""
        jobs = self._jobs.read(text)
        if self._last is not None:
            starts = [one for one in jobs.values() if _has_started(self._last.get(one.label), one)]
            changes = list(self._changes(self._last, jobs, now))
            if starts:
                self._compare(starts, changes)
        self._queue = OwnQueue.of(self.site, jobs)
        self._last, self._read_at = jobs, began

    def _changes(
        self, before: Mapping[str, OwnJob], after: Mapping[str, OwnJob], now: int
    ) -> Iterator[QueueChange]:
        since = self._read_at
        for label, one in before.items():
            new = after.get(label)
            same = new if new is not None and new.start == one.start else None
            if one.runs and (same is None or not same.runs):
                ended = min(max(same.end, since), now) if same is not None else since
                yield QueueChange(
                    ended, ended if same is not None else now, _END, replace(one, state=COMPLETING)
                )
            nodes = same.nodes if same is not None else frozenset[str]()
            if one.nodes - nodes:
                left = replace(
                    one, state=COMPLETING, fields=one.fields | {"NodeList": ",".join(sorted(nodes))}
                )
                yield QueueChange(since, now, _FREE, left)
            if one.is_waiting and (new is None or not (new.is_waiting or new.cores)):
                yield QueueChange(since, now, _GONE, one)
        for label, one in after.items():
            if label not in before or _is_requeued(before[label], one):
                came = min(max(one.submit, since), now)
                yield QueueChange(came, came, _NEW, one)

    def _compare(self, starts: list[OwnJob], changes: list[QueueChange]) -> None:
        """Compare starts between two readings with the passes that made them.

        Slurm says in which second a job started, and which scheduler started it, but not which of the other
        changes came before the pass. So each start is compared twice: with the pass after all changes that
        can have come before it, and with passes each after those changes that explain most starts.
        """
        changes.sort(key=lambda one: (one.second, one.kind))
        queue = self._queue
        strict: dict[str, frozenset[str] | None] = {}
        for second, by, batch in _batches(starts):
            strict |= self._in_order(second, by, batch, changes)
            rest = batch
            while rest:
                fixed, free = _before(second, rest, changes)
                part, explained = self._explain(second, by, rest, fixed, free)
                changes = [one for one in changes if one not in part]
                _apply(part, queue)
                right = [one for one in rest if explained.get(one.label) == _nodes(one)]
                for one in right or rest:
                    waited = queue.waiting.get(one.label, one)
                    hit = strict[one.label], explained.get(one.label)
                    why = waited.left_out or ("" if None not in hit else "not predicted")
                    self.report.hits.append(Hit(one.label, by, _nodes(one), *hit, why))
                    queue.start(one)
                rest = [one for one in rest if one not in right] if right else []

    def _in_order(
        self, second: int, by: str, batch: Sequence[OwnJob], changes: Sequence[QueueChange]
    ) -> dict[str, frozenset[str] | None]:
        """Return what passes start if changes came in an order that does not look at the starts.

        Jobs come first, then nodes are freed, in the order in which their jobs have ended, and jobs that have
        nodes yet end last. Where an epilog runs, a main pass follows when the last node of a job is free.
        """
        fixed, may = _before(second, batch, changes)
        freed = {one.job.label for one in may if one.kind == _FREE}
        first = [one for one in may if one.kind in (_NEW, _GONE) or (one.kind == _FREE and one.job.nodes)]
        last = sorted(
            (one for one in may if one.kind == _FREE and not one.job.nodes), key=lambda one: one.job.end
        )
        ends = [one for one in may if one.kind == _END and one.job.label in freed]
        trial, steps = self._queue.copy(), [[one] for one in last]
        if not (by == "main" and self.site.settings.epilog and steps):
            steps = [last]
        _apply([*fixed, *first], trial)
        result = dict[str, frozenset[str] | None].fromkeys((one.label for one in batch), None)
        for step in steps:
            for change in step:
                _apply([one for one in ends if one.job.label == change.job.label], trial)
            _apply(step, trial)
            predicted = trial.predict(second, by)
            for one in batch:
                if one.label in predicted and result[one.label] is None:
                    result[one.label] = predicted[one.label]
                    trial.start(one)
        return result

    def _explain(
        self,
        second: int,
        by: str,
        batch: Sequence[OwnJob],
        fixed: list[QueueChange],
        free: list[QueueChange],
    ) -> tuple[list[QueueChange], dict[str, frozenset[str]]]:
        """Return the changes after which a pass makes most of some starts, and what it starts."""
        best: tuple[tuple[bool, int, int], list[QueueChange], dict[str, frozenset[str]]]
        best = (False, -len(self._queue.waiting) - 1, 0), [], {}
        for part in _parts(free):
            trial = self._queue.copy()
            _apply([*fixed, *part], trial)
            predicted = trial.predict(second, by)
            right = sum(predicted.get(one.label) == _nodes(one) for one in batch)
            rank = right > 0, right - len(predicted), right
            if rank > best[0]:
                best = rank, [*fixed, *part], predicted
            if right == len(batch) == len(predicted):
                break
        return best[1:]


def _apply(changes: Sequence[QueueChange], queue: OwnQueue) -> None:
    for change in sorted(changes, key=lambda one: one.kind):  # nodes are freed after their job has ended
        change.apply(queue)


def _batches(starts: Sequence[OwnJob]) -> list[tuple[int, str, list[OwnJob]]]:
    """Return starts by their second and scheduler."""
    batches: dict[tuple[int, str], list[OwnJob]] = {}
    for one in starts:
        by = "backfill" if one.text("Scheduler").startswith("Backfill") else "main"
        batches.setdefault((one.start, by), []).append(one)
    return [(second, by, batches[second, by]) for second, by in sorted(batches)]


def _before(
    second: int, batch: Sequence[OwnJob], changes: Sequence[QueueChange]
) -> tuple[list[QueueChange], list[QueueChange]]:
    """Return the changes that came before starts of a second, and those that may have come before."""
    labels = {one.label for one in batch}
    fixed, free = [], []
    for change in changes:
        if change.until < second or (change.kind == _NEW and change.job.label in labels):
            fixed.append(change)
        elif change.second <= second and change.job.label not in labels:
            free.append(change)
    return fixed, free


def _parts(changes: list[QueueChange]) -> Iterator[list[QueueChange]]:
    """Yield parts of some changes, all first; nodes are not freed before their job has ended."""
    if len(changes) > _MOST_CHANGES:
        yield from (changes[:n] for n in range(len(changes), -1, -1))
        return
    ends = {change.job.label for change in changes if change.kind == _END}
    for n in range(len(changes), -1, -1):
        for part in combinations(changes, n):
            ended = {change.job.label for change in part if change.kind == _END}
            if all(change.kind != _FREE or change.job.label not in ends - ended for change in part):
                yield list(part)


def _has_started(old: OwnJob | None, new: OwnJob) -> bool:
    if new.is_waiting or not new.cores or not new.start:
        return False
    return old is None or old.is_waiting or old.start != new.start


def _is_requeued(old: OwnJob, new: OwnJob) -> bool:
    return new.is_waiting and not old.is_waiting


def _nodes(one: OwnJob) -> frozenset[str]:
    """Return the nodes on which a job started."""
    return frozenset(one.cores)
