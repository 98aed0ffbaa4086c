"""The agent's loop: follow Slurm's jobs (`tracking`), ask the scheduler, write its starts back (`starts`).

Nothing is remembered that Slurm does not know: after a kill, an agent finds everything again in `squeue` and
`sinfo`. A job is started by pinning it to nodes and releasing it from the hold in which the gate put it.
"""

import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from bridge.base.counted import counted
from bridge.base.errors import BridgeError
from bridge.config.fields import record_of
from bridge.scheduler.actions import parse_action
from bridge.worlds.slurm.audit import AuditLog
from bridge.worlds.slurm.audited_scheduler import AnyScheduler, AuditedBook
from bridge.worlds.slurm.client import Client, Control, SlurmUnreachableError
from bridge.worlds.slurm.event_file import EventFileReader
from bridge.worlds.slurm.gate import DiskError, Heartbeat, gate_of, lock_gate, release
from bridge.worlds.slurm.jobs import PartitionNodes
from bridge.worlds.slurm.live_scheduler import LivePolicy, LiveScheduler
from bridge.worlds.slurm.losses import JobLosses
from bridge.worlds.slurm.report import AgentCounters, Journal
from bridge.worlds.slurm.settings import AgentConfig
from bridge.worlds.slurm.site_jobs import SitePass, StopKind
from bridge.worlds.slurm.site_reading import SiteReader, require_partitions
from bridge.worlds.slurm.site_scheduler import SiteScheduler
from bridge.worlds.slurm.site_tracking import SiteTracking
from bridge.worlds.slurm.starts import Starts
from bridge.worlds.slurm.tracking import Tracking
from bridge.worlds.slurm.trigger import ScheduleTrigger

#: Seconds between looks at the event file, polls without an event, and full readings of the machine.
TICK, POLL, RECONCILE = 0.01, 5.0, 60.0
#: Seconds between looks at jobs that were released or are to be tried again.
LOOK = 0.05
#: Passes at one time at most: each but the first follows one that has stopped jobs.
_MOST_PASSES = 100
#: Seconds between polls while a released job is not seen running.
HURRY = 0.2


def _refuse_kills(settings: AgentConfig, text: str, client: Client) -> None:
    """Raise BridgeError for an action that nobody has allowed, or that Slurm does not have."""
    where = f"action {text!r}"
    if not text:
        if settings.requeue:
            remedy = "Leave it out, or name an action, as in sjf+easy+trial(300)."
            raise BridgeError("the policy requeues no job", where="--requeue", remedy=remedy)
        return
    action = parse_action(text)
    partition = f"partition {settings.partition!r}"
    if action.kind not in ("speculative", "trial") or action.share < 1:
        what, remedy = "Slurm can kill and requeue jobs only", "Use speculative or trial, without a share."
    elif settings.mode != "live":
        what, remedy = f"{settings.mode} kills no job, and the rule needs to", "Leave the action out."
    elif not settings.requeue:
        what, remedy = "kills and requeues jobs", "Add --requeue, if that is wanted."
    elif not client.allows_requeue(settings.partition):
        what = f"{partition} does not allow it"
        remedy = "Set PreemptMode=REQUEUE for it in slurm.conf."
    else:
        return
    raise BridgeError(what, where=where, remedy=remedy)


class SlurmAgent:
    """Decides for one partition, whose nodes are one pool, or for a site (`site`: the policy's passes there).

    `policy` is named in the audit log, `log` takes lines for the operator.
    """

    def __init__(
        self,
        settings: AgentConfig,
        deciding: LivePolicy,
        client: Client,
        policy: str,
        log: Callable[[str], None] = lambda _: None,
        site: SitePass | None = None,
    ) -> None:
        _refuse_kills(settings, deciding.policy.action, client)
        self._settings, self._client, self._log = settings, client, log
        self._writes = settings.mode == "live"
        directory = settings.directory if self._writes else None
        names = require_partitions(settings.partition) if directory is not None else ()
        self._gates = [gate_of(directory, name) for name in names if directory is not None]
        self._locks = [lock_gate(gate) for gate in self._gates]
        if site is None:
            LiveScheduler.warm_up(deciding)
        else:
            SiteScheduler.warm_up(site)
        self._control, since = Control(client, details=site is not None), time.time()
        machine = PartitionNodes(client.nodes(settings.partition))
        if settings.kick and self._writes:
            client.nodes(settings.kick)  # else kicks would fail for ever, and nobody would know
        rows = client.queue()
        nodes, origin = len(machine.nodes), min([time.time(), *(row.submit for row in rows)])
        head = {"policy": policy, "nodes": nodes, "origin": origin}
        self._audit = AuditLog(settings.audit, head | ({"site": True} if site is not None else {}))
        self.counters = AgentCounters()
        journal = Journal(self.counters, self._audit, log)

        def open_scheduler(nodes: int) -> AnyScheduler:
            return LiveScheduler(nodes, deciding, origin) if site is None else SiteScheduler(site)

        self._book = book = AuditedBook(nodes, open_scheduler, journal)
        self._losses = JobLosses(client, self._control, journal)
        self._kicks = ScheduleTrigger(client, self._control, settings.kick if self._writes else "")
        self._follower = EventFileReader(settings.events)
        self._aside = ThreadPoolExecutor(1)
        self._polled = self._soonest = self._next_look = self._next_reading = 0.0
        self._away = False
        self._heart = Heartbeat(*self._gates)
        parts = (settings, self._control, book, journal, self._heart, self._losses, machine, since)
        self._reader: SiteReader | None = None
        self.tracking = Tracking(*parts)
        if site is not None:
            self._reader = SiteReader(client, require_partitions(settings.partition), preempts=True)
            self._say_preemption(self._reader)
            self.tracking = SiteTracking(*parts, reader=self._reader)
        self._starts = Starts(settings, self._control, book, journal, self.tracking, self._kicks, client)

    def _say_preemption(self, reader: SiteReader) -> None:
        """Say by which rule running jobs are stopped, and what of Slurm's configuration is not honoured."""
        rules = reader.cluster.scheduler
        if rules.preempt == "none":
            return
        whose = "tier of partitions" if rules.preempt == "partition" else "QOS"
        self._log(f"jobs are preempted by {whose}, as Slurm's configuration says")
        for note in reader.notes:
            self._log(f"NOT HONOURED: {note}")

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
                    self.counters.n_unreachable += 1
                    self._away = True
                    self._log(f"slurmctld is away: {error}")
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
            for gate in self._gates:
                (gate / "gate_open").touch()  # an empty file needs no room
            released = release(self._client, self._settings.partition)
            self._log(
                f"the gate is open, and {counted(released, 'job is', 'jobs are')} Slurm's: nothing "
                "is decided unrecorded"
            )
        except (OSError, BridgeError) as error:
            self._log(f"the watchdog must open the gate: {error}")

    def _forget(self) -> None:
        self.tracking.forget()
        self._next_reading = 0.0

    def close(self) -> None:
        """Let go of Slurm; jobs that are held stay so until the watchdog or another agent comes."""
        for part in (self._control, self._follower, self._audit):
            part.close()
        self._aside.shutdown()
        try:
            self._kicks.close()
        except SlurmUnreachableError:
            self._log("kicks could not be given back: slurmctld is away")
        for lock in self._locks:
            lock.close()

    def step(self) -> None:
        """Read new events, and act on them once."""
        now = time.time()
        self._heart.beat()
        if news := self._heart.poll_gate():
            self._log(news)
            self._audit.write({"time": now, "gate": news})
            self._forget()
        if self._heart.paused:
            return
        self._book.rotate(now)
        self._kicks.refill()
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
        """Read jobs and nodes from Slurm, and update the tracked state."""
        started_at = time.monotonic()
        self.tracking.dirty = False
        coming = self._aside.submit(self._client.nodes, self._settings.partition)
        rows = self._client.queue()
        reservations = self.tracking.machine.reservations
        if started_at >= self._next_reading:
            self._next_reading = started_at + RECONCILE
            if self._reader is not None:
                self._reader.read()
            else:
                reservations = tuple(self._client.reservations())
        machine = PartitionNodes(coming.result(), reservations)
        now = time.time()
        self.counters.polls += 1
        self.tracking.update(rows, machine, now)
        if self._away:
            self._away = False
            self._log("slurmctld is back")
        if self._losses.former:
            self._kicks.reset()
            self._losses.compare(self.tracking.jobs, now)
        # A poll costs slurmctld time: never more than half of the time is spent in polls.
        self._polled = time.monotonic()
        self._soonest = 2 * self._polled - started_at

    def _decide(self, now: float) -> None:
        for _ in range(_MOST_PASSES):
            starts = self._book.decide(self.tracking.out, now)
            self._starts.name_spared(self._book.spared)
            of = {kind: {row.key for row in self._book.stops if row.kind is kind} for kind in StopKind}
            stands_again = of[StopKind.RESUME] & of[StopKind.SUSPEND]  # it would go on for no time
            for stop in self._book.stops:
                if stop.key not in stands_again:
                    self._starts.stop(stop, now)
            for key in starts:
                self._starts.start(key, now)
            if not self._book.goes_on:
                return

    def report(self) -> dict[str, Any]:
        counts = Counter(job.phase.value for job in self.tracking.jobs.values())
        return {**record_of(self.counters), "kicks": self._kicks.count, "jobs": dict(counts)}
