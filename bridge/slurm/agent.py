"""The agent's loop: follow Slurm's jobs (`tracking`), ask the scheduler, write its starts back (`starts`).

Nothing is remembered that Slurm does not know: after a kill, an agent finds everything again in `squeue` and
`sinfo`. A job is started by pinning it to nodes and releasing it from the hold in which the gate put it.
"""

import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from bridge.config.fields import record_of
from bridge.errors import BridgeError
from bridge.slurm.audit import Audit
from bridge.slurm.audited_book import AuditedBook
from bridge.slurm.book import Book, Deciding
from bridge.slurm.client import Away, Client, Control
from bridge.slurm.follow import Follower
from bridge.slurm.gate import DiskError, Heart, alone, gate_of, release
from bridge.slurm.jobs import Machine
from bridge.slurm.kicks import Kicks
from bridge.slurm.losses import Losses
from bridge.slurm.report import Journal, Told
from bridge.slurm.settings import Settings
from bridge.slurm.starts import Starts
from bridge.slurm.tracking import Tracking

#: Seconds between looks at the event file, polls without an event, and full readings of the machine.
TICK, POLL, RECONCILE = 0.01, 5.0, 60.0
#: Seconds between looks at jobs that were released or are to be tried again.
LOOK = 0.05
#: Seconds between polls while a released job is not seen running.
HURRY = 0.2


class Agent:
    """Decides for one partition; `policy` is named in the audit log, `said` takes lines for the operator."""

    def __init__(
        self,
        settings: Settings,
        deciding: Deciding,
        client: Client,
        policy: str,
        said: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._settings, self._client, self._said = settings, client, said
        self._writes = settings.mode == "live"
        directory = settings.directory if self._writes else None
        self._gate = gate_of(directory, settings.partition) if directory is not None else None
        self._lock = alone(self._gate) if self._gate is not None else None
        Book.warm_up(deciding)
        self._control, since = Control(client), time.time()
        machine = Machine(client.nodes(settings.partition))
        if settings.kick and self._writes:
            client.nodes(settings.kick)  # else kicks would fail for ever, and nobody would know
        rows = client.queue()
        nodes, origin = len(machine.nodes), min([time.time(), *(row.submit for row in rows)])
        self._audit = Audit(settings.audit, {"policy": policy, "nodes": nodes, "origin": origin})
        self.told = Told()
        journal = Journal(self.told, self._audit, said)
        self._book = book = AuditedBook(nodes, deciding, origin, journal)
        self._losses = Losses(client, self._control, journal)
        self._kicks = Kicks(client, self._control, settings.kick if self._writes else "")
        self._follower = Follower(settings.events)
        self._aside = ThreadPoolExecutor(1)
        self._polled = self._soonest = self._next_look = self._next_reading = 0.0
        self._away = False
        self._heart = Heart(self._gate)
        self.tracking = Tracking(
            settings, self._control, book, journal, self._heart, self._losses, machine, since
        )
        self._starts = Starts(settings, self._control, book, journal, self.tracking, self._kicks)

    # The loop.

    def run(self, stop: Callable[[], bool]) -> None:
        """Decide until told to stop; DiskError: audit log or heartbeat fail, and the queue is Slurm's."""
        try:
            while not stop():
                try:
                    self.step()
                except DiskError:
                    raise
                except BridgeError as error:
                    self.told.away += 1
                    self._away = True
                    self._said(f"slurmctld is away: {error}")
                    self._losses.set_aside(self.tracking.jobs)
                    self._forget()
                    self._heart.beat()
                    time.sleep(1.0)
                time.sleep(TICK)
        except DiskError:
            self._let_go()
            raise
        finally:
            self.close()

    def _let_go(self) -> None:
        """Open the gate, as far as the disk lets us, and give what it holds to Slurm."""
        if not self._writes:
            return
        try:
            if self._gate is not None:
                (self._gate / "gate_open").touch()  # an empty file needs no room
            released = release(self._client, self._settings.partition)
            self._said(f"the gate is open, and {released:,} jobs are Slurm's: nothing is decided unrecorded")
        except (OSError, BridgeError) as error:
            self._said(f"the watchdog must open the gate: {error}")

    def _forget(self) -> None:
        """Begin anew with what Slurm says."""
        self.tracking.forget()
        self._next_reading = 0.0

    def close(self) -> None:
        """Let go of Slurm; jobs that are held stay so until the watchdog or another agent comes."""
        for part in (self._control, self._follower, self._audit):
            part.close()
        self._aside.shutdown()
        try:
            self._kicks.close()
        except Away:
            self._said("kicks could not be given back: slurmctld is away")
        if self._lock is not None:
            self._lock.close()

    def step(self) -> None:
        """Look at what has come, and act on it once."""
        now = time.time()
        self._heart.beat()
        if news := self._heart.news():
            self._said(news)
            self._audit.write({"time": now, "gate": news})
            self._forget()
        if self._heart.paused:
            return
        self._book.rotate(now)
        self._kicks.tend()
        ended = False
        for line in self._follower.read():
            ended |= self.tracking.note(line)
        monotonic = time.monotonic()
        if not (ended or self.tracking.dirty or self._book.news or monotonic >= self._next_look):
            return  # thousands of held jobs are not gone through at every tick
        self._next_look = monotonic + LOOK
        hurry = monotonic >= self._polled + HURRY and self._starts.overdue(now)
        look = (
            (self.tracking.dirty and monotonic >= self._soonest) or hurry or monotonic >= self._polled + POLL
        )
        if look:
            self.poll()
        self._starts.attend(time.time())
        if self._writes or look:  # else Slurm may have started jobs on nodes that we believe free
            self._decide(time.time())

    def poll(self) -> None:
        """Read jobs and nodes, and bring what is known up to date."""
        begun = time.monotonic()
        self.tracking.dirty = False
        coming = self._aside.submit(self._client.nodes, self._settings.partition)
        rows = self._client.queue()
        reservations = self.tracking.machine.reservations
        if begun >= self._next_reading:
            self._next_reading = begun + RECONCILE
            reservations = tuple(self._client.reservations())
        machine = Machine(coming.result(), reservations)
        now = time.time()
        self.told.polls += 1
        self.tracking.update(rows, machine, now)
        if self._away:
            self._away = False
            self._said("slurmctld is back")
        if self._losses.former:
            self._kicks.forget()
            self._losses.compare(self.tracking.jobs, now)
        # A poll costs slurmctld time: never more than half of the time is spent in polls.
        self._polled = time.monotonic()
        self._soonest = 2 * self._polled - begun

    def _decide(self, now: float) -> None:
        for key in self._book.decide(self.tracking.out, now):
            self._starts.start(key, now)

    def report(self) -> dict[str, Any]:
        """Return what was done, as plain data."""
        counts = Counter(job.phase.value for job in self.tracking.jobs.values())
        return {**record_of(self.told), "kicks": self._kicks.count, "jobs": dict(counts)}
