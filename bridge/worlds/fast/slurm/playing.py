"""A case played again: submissions, run times and, with the recorded clock, passes come from the case."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from bridge.cluster.imported import mending
from bridge.cluster.node_groups import format_nodes
from bridge.cluster.reasons import RESERVATION_NOT_ALLOWED
from bridge.scheduler.slurm.controller import Controller
from bridge.scheduler.slurm.jobs import SlurmJob
from bridge.scheduler.slurm.masks import bits
from bridge.worlds.fast.slurm.case import FREE_DELAY, KILLED_DELAY, PAYLOAD_DELAY, SlurmCase, runtime_of
from bridge.worlds.fast.slurm.conf import CASE_DEFAULTS, site_of
from bridge.worlds.fast.slurm.operator import Operator
from bridge.worlds.fast.slurm.own_clock import MEASURED, PLACES, Lateness, OwnClock
from bridge.worlds.fast.slurm.requests import Names, jobs_of
from bridge.worlds.fast.slurm.world import SlurmWorld

#: A healthy node that is set DOWN registers again so much later, s (ReturnToService=2).
REGISTRATION_DELAY = 1.2


@dataclass(frozen=True, slots=True)
class Start:
    """One start: what `--out` writes."""

    job: str
    episode: int
    start: float
    nodes: str
    by: str


class SlurmPlayer(SlurmWorld):
    """Plays one case; `starts` in the order of time."""

    def __init__(
        self, case: SlurmCase, *, clock: str = "recorded", seed: int = 0, lateness: Lateness = MEASURED
    ) -> None:
        accounting = case.folder / "assoc.txt" if case.has_accounting else None
        site = site_of(case.folder / "cluster.conf", accounting, CASE_DEFAULTS)
        super().__init__(site, Controller(site), case.epoch)
        self.case, self.clock, self.seed, self.lateness = case, clock, seed, lateness
        self.starts: list[Start] = []
        self.refused: dict[str, str] = {}
        self.names = Names()
        self.operator = Operator(self.slurm, self.names, case.epoch)
        self.labels: dict[int, str] = {}
        self.rows: dict[int, dict[str, str]] = {}
        self.next_key = 0

    def play(self) -> list[Start]:
        """Play the case with one of the clocks; BridgeError names the place of what it cannot be."""
        for time, command in self.case.events:
            self.push(time, "command", command)
        for number, row in enumerate(self.case.jobs, start=2):
            if (submitted_at := self.case.submission(row["job"])) is not None:
                self.push(submitted_at, "submit", (row, number))
        if self.clock == "own":
            first = min((event[0] for event in self.heap), default=0.0)
            self.play_freely(OwnClock.of_site(self.site, first, self.seed, self.lateness))
            return self.starts
        passes = [*self.case.passes, *self._missing_periods()]
        passes.sort(key=lambda one: one[0])
        self.play_recorded(np.array([(time, PLACES[kind]) for time, kind in passes]).reshape(-1, 2))
        return self.starts

    def _missing_periods(self) -> Iterator[tuple[float, str]]:
        """Yield when priorities are computed where that is not recorded, because no job waited."""
        times = [time for time, kind in self.case.passes if kind == "prio"]
        period = float(self.site.cluster.priority.calculation_period)
        if self.site.settings.basic or not self.case.passes:
            return
        first, last = self.case.passes[0][0], self.case.passes[-1][0]
        times = times or [first + period]
        time = times[0] - period
        while time > first:
            yield time, "prio"
            time -= period
        for before, after in itertools.pairwise([*times, last + period]):
            time = before + period
            while time < after - period / 2:
                yield time, "prio"
                time += period

    # --- events

    def happen_more(self, kind: str, what: Any, time: float, now: int) -> None:
        if kind == "submit":
            row, number = what
            self._submit(row, number, now)
        elif kind == "command":
            with mending(str(self.case.folder / "events.csv")):
                self.operator.run(str(what), now)
            self.watch_reservations()
            if self.slurm.down:
                self.push(time + REGISTRATION_DELAY, "registration", self.slurm.down)
        else:
            self.slurm.down &= ~what  # nodes register

    def _submit(self, row: dict[str, str], number: int, now: int) -> None:
        with mending(f"{self.case.folder / 'jobs.csv'}:{number}"):
            jobs = jobs_of(row, self.site, self.names, self.case.epoch)
            runtime_of(row)
        for job in jobs:
            if reason := self._bars(job) or self.slurm.refuses(job):
                self.refused[row["job"]] = reason
                return
            job.key = self.next_key
            self.next_key += 1
            suffix = f"_{job.task}" if job.task >= 0 else f"+{job.het_offset}" if job.het else ""
            self.labels[job.key], self.rows[job.key] = row["job"] + suffix, row
            self.slurm.submit(job, now)
            self.expect(job)

    def _bars(self, job: SlurmJob) -> str:
        """Return why a job may not name its reservation; empty: it may, or names none."""
        if not job.reservation:
            return ""
        own, account = self.slurm.reservations.get(job.reservation), job.assoc.parent
        chain = {one.name for one in account.chain()} if account is not None else set()
        may = own is not None and own.admission.admits(job.user, chain)
        return "" if may else RESERVATION_NOT_ALLOWED

    def on_start(self, job: SlurmJob, who: str, time: float) -> None:
        nodes = format_nodes(self.site.nodes[n].name for n in bits(job.nodes))
        self.starts.append(Start(self.labels[job.key], job.episode, time, nodes, who))

    def counts_pauses(self, job: SlurmJob) -> bool:
        return self.labels[job.key] not in self.case.suspended  # what is recorded has the time in between

    def exit_code(self, job: SlurmJob) -> int:
        return runtime_of(self.rows[job.key])[1]

    def work_of(self, job: SlurmJob) -> float:
        """Return how long a job runs if nobody ends it: as recorded, unless it was ended there."""
        planned, _ = runtime_of(self.rows[job.key])
        label = self.labels[job.key]
        rows = self.case.recorded.get(label, [])
        natural = planned + PAYLOAD_DELAY
        elapsed = rows[job.episode].elapsed if job.episode < len(rows) else None
        if elapsed is None:
            return natural
        was_ended = job.episode + 1 < len(rows) or elapsed < planned - 1
        return max(natural, elapsed + PAYLOAD_DELAY) if was_ended else elapsed

    def freed(self, job: SlurmJob, episode: int, ended: float, *, killed: bool) -> float:
        rows = self.case.recorded.get(self.labels[job.key], [])
        delay = rows[episode].free_delay if episode < len(rows) else None
        return self.case.freed(ended, (KILLED_DELAY if killed else FREE_DELAY) if delay is None else delay)
