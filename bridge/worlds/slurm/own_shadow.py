"""What Slurm's own schedulers start next, by the protocol `slurm`, beside a Slurm that decides itself.

Nothing is written to Slurm. Each start is compared with what the pass that made it had to start, from all
that was there before it: submissions, ends, and the starts of earlier passes.
"""

import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from queue import Queue
from typing import Any

from bridge.base.errors import BridgeError
from bridge.cluster.imported import mending
from bridge.cluster.slurm_site import import_slurm_text
from bridge.cluster.slurm_values import node_names
from bridge.scheduler.slurm.backfill_pass import backfill_pass
from bridge.scheduler.slurm.controller import Controller
from bridge.scheduler.slurm.main_pass import main_pass
from bridge.scheduler.slurm.masks import mask_of
from bridge.scheduler.slurm.settings import require_modelled, settings_of
from bridge.scheduler.slurm.site import Site
from bridge.worlds.slurm.client import Client
from bridge.worlds.slurm.install import configuration
from bridge.worlds.slurm.own_jobs import OwnJob, read_jobs, slurm_job

#: Settings of `scontrol show config` that decide which job starts where.
_SETTINGS = (
    *(
        "ClusterName",
        "SelectType",
        "SelectTypeParameters",
        "SchedulerType",
        "SchedulerParameters",
        "KillWait",
    ),
    *("OverTimeLimit", "DefMemPerCPU", "DefMemPerNode", "PreemptType", "PreemptMode", "GresTypes"),
)
#: Nodes and partitions are read again after so many seconds.
RECONCILE = 60.0
_WHERE = "scontrol show"
_SHOW_JOBS = ("scontrol", "-d", "-o", "show", "job")
COMPLETING = "COMPLETING"
#: Of events in one second, which comes first: a job ends, and a while later its nodes are free.
_GONE, _END, _FREE, _NEW, _START = range(5)


@dataclass(frozen=True)
class QueueChange:
    """What happened to a job in a second since 1970."""

    second: int
    kind: int
    job: OwnJob


@dataclass(frozen=True)
class Hit:
    """A start of Slurm's, beside what was predicted: the nodes, or why none; `by`: whose pass had it."""

    job: str
    by: str
    nodes: frozenset[str]
    predicted: frozenset[str] | None
    why: str

    @property
    def is_right(self) -> bool:
        return self.predicted == self.nodes


@dataclass
class ShadowReport:
    """Starts that Slurm made while it was watched, each with what was predicted."""

    hits: list[Hit] = field(default_factory=list)

    def document(self) -> dict[str, Any]:
        predicted = sum(one.predicted is not None for one in self.hits)
        right = sum(one.is_right for one in self.hits)
        return {
            "starts": len(self.hits),
            "of which predicted": predicted,
            "of which predicted on the same nodes": right,
            "hit rate": right / len(self.hits) if self.hits else None,
            "by": dict(Counter(one.by for one in self.hits)),
            "left out": dict(Counter(one.why for one in self.hits if one.why)),
            "misses": [
                {
                    "job": one.job,
                    "by": one.by,
                    "nodes": sorted(one.nodes),
                    "predicted": None if one.predicted is None else sorted(one.predicted),
                }
                for one in self.hits
                if not one.is_right
            ],
        }


def read_own_site(client: Client) -> Site:
    """Return the site of a running Slurm; BridgeError names the setting that is not modelled."""
    stated = configuration(client)
    if {"limits", "safe", "all"} & {*stated.get("accountingstorageenforce", "").lower().split(",")}:
        remedy = "Predict on a cluster without them."
        raise BridgeError("limits are enforced, which no prediction reads", where=_WHERE, remedy=remedy)
    values = {name: stated.get(name.lower(), "") for name in _SETTINGS}
    values = {name: re.sub(r" (?:sec|min)$", "", value) for name, value in values.items() if value}
    for name, value in values.items():
        require_modelled(name.lower(), value, _WHERE)
    texts = [client.call("scontrol", "-o", "show", kind) for kind in ("node", "partition", "lic")]
    text = "\n".join([*(f"{name}={value}" for name, value in values.items()), *texts])
    if "ReservationName=" in client.call("scontrol", "-o", "show", "reservation"):
        raise BridgeError("has advance reservations, which no prediction reads", where=_WHERE)
    whole = {name.lower(): value for name, value in values.items()}
    with mending(_WHERE):
        return Site(import_slurm_text(text, Path(_WHERE)).cluster, settings_of(whole), _WHERE)


class OwnShadow:
    """Follows a Slurm; `report` has its starts so far."""

    def __init__(self, client: Client) -> None:
        self.client, self.report = client, ShadowReport()
        self.site = read_own_site(client)
        self._site_read = time.monotonic()
        self._last: dict[str, OwnJob] | None = None
        self._read_at = 0
        self._waiting: dict[str, OwnJob] = {}
        self._running: dict[str, OwnJob] = {}

    def run(self, until: Callable[[], bool], interval: float = 0.25) -> None:
        """Follow until told to stop, with so many seconds between two readings."""
        readings: Queue[tuple[str, int] | None] = Queue()
        reader = threading.Thread(target=self._read_on, args=(readings, until, interval), daemon=True)
        reader.start()
        while (reading := readings.get()) is not None:
            self.read(*reading)
            if time.monotonic() > self._site_read + RECONCILE:
                self.site, self._site_read = read_own_site(self.client), time.monotonic()

    def _read_on(
        self, readings: "Queue[tuple[str, int] | None]", until: Callable[[], bool], interval: float
    ) -> None:
        """Read at equal distances in time, however long predictions take."""
        try:
            while not until():
                began = time.monotonic()
                with suppress(BridgeError):  # slurmctld is busy or away: the next reading has it all
                    readings.put((self.client.call(*_SHOW_JOBS), int(time.time())))
                time.sleep(max(began + interval - time.monotonic(), 0.0))
        finally:
            readings.put(None)

    def read(self, text: str, now: int) -> None:
        """Take a reading: what came, ended and started since the last one, in its order."""
        jobs = read_jobs(text)
        if self._last is None:
            self._waiting = {label: one for label, one in jobs.items() if one.is_waiting}
            self._running = {label: one for label, one in jobs.items() if one.is_here}
        else:
            self._follow(sorted(self._events(self._last, jobs), key=lambda event: (event.second, event.kind)))
            for label, one in jobs.items():  # priorities, limits and holds of those that still wait
                if one.is_waiting:
                    self._waiting[label] = one
                elif one.is_here and label in self._running:
                    self._running[label] = one
        self._last, self._read_at = jobs, now

    def _events(self, before: Mapping[str, OwnJob], after: Mapping[str, OwnJob]) -> Iterator[QueueChange]:
        for label, one in before.items():
            new = after.get(label)
            same = new if new is not None and new.start == one.start else None
            if one.is_here:
                ended = max(same.end if same is not None else 0, self._read_at)
                if one.state != COMPLETING and (same is None or same.state not in (one.state, "RUNNING")):
                    yield QueueChange(ended, _END, one)
                if same is None or not same.is_here:
                    yield QueueChange(ended, _FREE, one)
            elif one.is_waiting and (new is None or not (new.is_waiting or new.cores or new.start)):
                yield QueueChange(self._read_at, _GONE, one)
        for label, one in after.items():
            old = before.get(label)
            if old is None:
                yield QueueChange(max(one.submit, self._read_at), _NEW, one)
            has_run = bool(one.start) and bool(one.text("NodeList")) and not one.is_waiting
            if has_run and (old is None or not (old.is_here or old.end)):
                yield QueueChange(max(one.start, self._read_at), _START, one)

    def _follow(self, events: list[QueueChange]) -> None:
        """Go through what happened between two readings.

        Slurm makes a main pass after each end of a job, and says in which second that was. So of the ends,
        and of the nodes that became free, that one is taken as the next after which a pass starts what Slurm
        did start; if there is none, the earliest. What no such pass starts is compared with the last one.
        Which scheduler made a start is not nodes either: the pass of one of both must make it.
        """
        starts = [event for event in events if event.kind == _START]
        others = [event for event in events if event.kind != _START]
        while others:
            ending = {event.job.label for event in others if event.kind == _END}
            tried = others[:1]
            if starts:
                tried += [
                    event
                    for event in others[1:]
                    if event.kind == _END or (event.kind == _FREE and event.job.label not in ending)
                ]
            chosen, right = others[0], dict[str, str]()
            for event in tried:
                waiting, running = dict(self._waiting), dict(self._running)
                self._apply(event)
                agree = self._agreeing(event.second, starts) if starts else {}
                self._waiting, self._running = waiting, running
                if len(agree) > len(right):
                    chosen, right = event, agree
            self._apply(chosen)
            others.remove(chosen)
            for start in [one for one in starts if one.job.label in right]:
                theirs = _nodes(start.job)
                self._note(start, right[start.job.label], theirs)
                starts.remove(start)
        for second, group in groupby(starts, key=lambda event: event.second):
            batch = list(group)
            predicted, right = self.predict(second, "main"), self._agreeing(second, batch)
            for event in batch:
                label = event.job.label
                nodes = _nodes(event.job) if label in right else predicted.get(label)
                self._note(event, right.get(label, ""), nodes)

    def _agreeing(self, second: int, starts: list[QueueChange]) -> dict[str, str]:
        """Return which of some starts a pass would make now, on the same nodes, and whose."""
        result: dict[str, str] = {}
        for by in ("main", "backfill"):
            predicted = self.predict(second, by)
            for event in starts:
                if _nodes(event.job) == predicted.get(event.job.label):
                    result.setdefault(event.job.label, by)
        return result

    def _note(self, event: QueueChange, by: str, predicted: frozenset[str] | None) -> None:
        waited = self._waiting.get(event.job.label, event.job)
        why = waited.left_out or ("" if predicted is not None else "not predicted")
        self.report.hits.append(Hit(event.job.label, by, _nodes(event.job), predicted, why))
        self._apply(event)

    def _apply(self, event: QueueChange) -> None:
        kind, one = event.kind, event.job
        if kind == _NEW:
            self._waiting[one.label] = one
            return
        if kind == _END:
            self._running[one.label] = replace(one, state=COMPLETING)
            return
        self._waiting.pop(one.label, None)
        if kind == _START and one.is_here:
            self._running[one.label] = one
        else:
            self._running.pop(one.label, None)

    def predict(self, now: int, by: str) -> dict[str, frozenset[str]]:
        """Return what a pass of the main or the backfill scheduler would start now, and where."""
        slurm, labels = self._state()
        if by == "main":
            main_pass(slurm, now, full=True)
        else:
            backfill_pass(slurm, now)
        names = [node.name for node in self.site.nodes]
        return {
            labels[job.key]: frozenset(name for n, name in enumerate(names) if job.nodes >> n & 1)
            for job, _ in slurm.started
        }

    def _state(self) -> tuple[Controller, dict[int, str]]:
        """Return the state of Slurm's schedulers as it is believed to be."""
        slurm = Controller(self.site)
        labels: dict[int, str] = {}
        everyone = [*self._running.values(), *(one for one in self._waiting.values() if not one.left_out)]
        everyone.sort(key=lambda one: (one.number, one.task))
        for key, one in enumerate(everyone):
            with mending(f"job {one.label}"):
                job = slurm_job(one if one.label in self._running else _as_waiting(one), self.site, key)
            labels[key] = one.label
            slurm.submit(job, one.submit)
            job.priority, job.priorities = int(one.text("Priority") or 0), {}
            if one.label not in self._running:
                continue
            nodes = mask_of(self.site.index[name] for name in one.cores)  # one of several partitions
            part = next((part for part in job.parts if not nodes & ~part.mask), job.parts[0])
            slurm.adopt(
                job, part, {self.site.index[name]: cpus for name, cpus in one.cores.items()}, one.start
            )
            job.end = one.end
            if one.state == COMPLETING:
                slurm.finish(job, one.end)
        slurm.line.is_valid = False
        slurm.started.clear()
        slurm.ended.clear()
        return slurm, labels


def _as_waiting(one: OwnJob) -> OwnJob:
    """Return a job as it waited, though it has been read only since it runs."""
    return one if one.is_waiting else replace(one, fields=one.fields | {"Reason": "None"})


def _nodes(one: OwnJob) -> frozenset[str]:
    return frozenset(node_names(one.text("NodeList")))
