"""What starts jobs, and looks after them until they run: pins to nodes, releases, kicks, and takes back.

It stops running jobs, too: requeues, cancels and suspends them, and lets suspended ones go on.
"""

import math
import time
from collections.abc import Mapping, Sequence

from bridge.base.errors import BridgeError
from bridge.worlds.slurm.audited_scheduler import AuditedBook
from bridge.worlds.slurm.client import (
    HELD,
    SUSPENDED,
    Client,
    Control,
    SlurmUnreachableError,
    quoted_nodes,
)
from bridge.worlds.slurm.jobs import Phase, TrackedJob
from bridge.worlds.slurm.report import Journal
from bridge.worlds.slurm.settings import AgentConfig
from bridge.worlds.slurm.site_jobs import SiteStop, StopKind
from bridge.worlds.slurm.tracking import Tracking
from bridge.worlds.slurm.trigger import ScheduleTrigger

#: A released job that does not run: kicked again, withdrawn, offered again (s, doubled each time) after.
KICK_AGAIN, WITHDRAW, RETRY, RETRY_MOST = 0.15, 2.0, 2.0, 60.0
#: A job waits so long for nodes of jobs that are being stopped (s): Slurm's KillWait, and more.
AWAIT = 120.0


class Starts:
    """Starts the jobs of `tracking`, or only says that it would, where nothing is to be written to Slurm."""

    def __init__(
        self,
        settings: AgentConfig,
        control: Control,
        book: AuditedBook,
        journal: Journal,
        tracking: Tracking,
        kicks: ScheduleTrigger,
        client: Client,
    ) -> None:
        self._client, self._spared = client, set[str]()
        self._settings, self._writes = settings, settings.mode == "live"
        self._control, self._book, self._journal = control, book, journal
        self._tracking, self._kicks = tracking, kicks
        self._budget, self._budget_at = settings.max_starts_per_s, time.monotonic()

    def start(self, key: str, now: float) -> None:
        """Start a job that the scheduler has decided on, or block it until the next try."""
        job = self._tracking.jobs[key]
        nodes = self._tracking.choose_nodes(job, now)
        if nodes is None and self._awaits(job, now):
            return
        if nodes is None or (self._writes and not self._may_start()):
            self._book.take_back(key)
            why = "no nodes that fit it are free" if nodes is None else "too many starts a second"
            self._block(job, now, why)
            if nodes is not None:
                job.failed_starts, job.retry = 0, now + 1.0 / self._settings.max_starts_per_s
            return
        if not self._writes:
            self._would_start(key, job, nodes, now)
            return
        hosts = quoted_nodes(nodes)
        answers = [self._control(f"update JobId={job.row.label} ReqNodeList={hosts}")]
        if not answers[0]:
            answers.append(self._control(f"release {job.row.label}"))
        record = {"nodes": hosts, "answer": answers, "state": self._journal.audit.digest}
        self._journal.audit.write({"time": now, "start": key, **record})
        if any(answers):
            self._journal.say(f"REFUSED {job.row.label}: {' '.join(answers)}")
            self._book.take_back(key)
            self._block(job, now, " ".join(answers))
            self._tracking.dirty = True
            return
        self._tracking.assign(job, nodes, now)
        self._journal.counts.starts += 1
        self._kicks.trigger()

    def _awaits(self, job: TrackedJob, now: float) -> bool:
        """Tell whether a job's nodes are still to come, from jobs that are being stopped."""
        if job.phase is not Phase.AWAITING:
            if not self._tracking.nodes_coming:
                return False
            job.phase, job.since = Phase.AWAITING, now
        return now - job.since <= AWAIT

    def stop(self, stop: SiteStop, now: float) -> None:
        """Do to a job that has nodes what the scheduler has decided, or only say that it would be done."""
        key, kind = stop.key, stop.kind
        job, label = self._tracking.jobs[key], self._tracking.jobs[key].row.label
        if kind is StopKind.GRACE and (job.phase is not Phase.RUNNING or stop.grace_end <= now):
            return  # it has just been started, or is stopped at once
        if job.phase is not Phase.RUNNING:  # Slurm has not started it yet
            if self._writes:
                answer = [self._control(f"hold {label}"), self._control(f"update JobId={label} ReqNodeList=")]
                self._journal.audit.write({"time": now, "stop": key, "answer": answer})
            if key in self._book:
                self._book.tell("end", key)
            self._tracking.offer(job, now)
            job.hosts = frozenset()
            self._tracking.dirty = True
            return
        text = _describe(stop, label)
        if not self._writes:
            self._journal.say(f"would {text}")
        else:
            answer = self._carry_out(kind, label)
            record = {"time": now, "stop": key, "kind": str(kind), "answer": answer}
            self._journal.audit.write(record)
            if any(answer):
                self._journal.say(f"REFUSED to {text}: {' '.join(filter(None, answer))}")
                if kind is not StopKind.GRACE:
                    self._tracking.run_on(job, now, kind)
                return
            self._count(kind)
        if kind in (StopKind.REQUEUE, StopKind.CANCEL):
            self._tracking.note_stopped(job, now)
        self._tracking.dirty = True

    def _carry_out(self, kind: StopKind, label: str) -> list[str]:
        """Write to Slurm what is to become of a running job; return its answers, empty if all is well."""
        mark = f"update JobId={label} AdminComment="
        if kind is StopKind.REQUEUE:  # held, lest Slurm starts it itself
            return [self._control(f"{mark}{HELD}"), self._control(f"requeuehold {label}")]
        if kind is StopKind.SUSPEND:  # marked, so that the watchdog lets it go on
            return [self._control(f"{mark}{SUSPENDED}"), self._control(f"suspend {label}")]
        if kind is StopKind.RESUME:
            return [self._control(f"resume {label}"), self._control(f"{mark}{HELD}")]
        words = ("-s", "TERM", "-f") if kind is StopKind.GRACE else ()
        try:
            return [self._client.call("scancel", *words, label).strip()]
        except SlurmUnreachableError:
            raise
        except BridgeError as error:
            return [error.what]

    def _count(self, kind: StopKind) -> None:
        counts = self._journal.counts
        counts.requeued += kind is StopKind.REQUEUE
        counts.cancelled += kind is StopKind.CANCEL
        counts.suspended += kind is StopKind.SUSPEND

    def name_spared(self, spared: Mapping[str, str]) -> None:
        """Say of which jobs the site's rules would stop one that no pass does, each once."""
        for key, why in spared.items():
            if key not in self._spared:
                self._spared.add(key)
                self._journal.say(f"NOT PREEMPTED {key.partition('@')[0]}: {why}")
                self._journal.audit.write({"time": time.time(), "spared": key, "why": why})

    def _would_start(self, key: str, job: TrackedJob, nodes: Sequence[str], now: float) -> None:
        """Note what would be started: no other job would get its nodes, as long as Slurm has them free."""
        self._tracking.assign(job, nodes, now)
        if self._journal.counts.compared.setdefault(key, [-1.0, -1.0])[0] < 0:
            self._journal.counts.compared[key][0] = now
            self._journal.counts.starts += 1
            self._journal.say(f"would start {job.row.label} on {','.join(nodes)}")

    def _may_start(self) -> bool:
        """Tell whether another start is within the limits, and count it."""
        if self._settings.max_starts and self._journal.counts.starts >= self._settings.max_starts:
            return False
        now, rate = time.monotonic(), self._settings.max_starts_per_s
        self._budget = min(self._budget + (now - self._budget_at) * rate, max(rate, 1.0))
        self._budget_at = now
        if self._budget < 1:
            return False
        self._budget -= 1
        return True

    def overdue(self, now: float) -> bool:
        """Tell whether a job was released and should run by now."""
        return self._writes and any(
            job.phase is Phase.RELEASED and now - job.since > KICK_AGAIN
            for job in self._tracking.jobs.values()
        )

    def attend(self, now: float) -> None:
        """Look after jobs that were released and do not run."""
        for key, job in list(self._tracking.jobs.items()):
            if job.phase is Phase.RELEASED and not self._writes:
                if now - job.since > job.length:  # it would be over
                    self._book.tell("end", key)
                    self._tracking.free |= job.hosts & self._tracking.machine.idle
                    job.phase, job.retry, job.hosts = Phase.BLOCKED, math.inf, frozenset()
                continue
            if job.phase is Phase.AWAITING:
                self.start(key, now)
                continue
            if job.phase is not Phase.RELEASED:
                if job.phase is Phase.BLOCKED and job.retry and now >= job.retry and not job.row.dependency:
                    job.retry = 0.0
                    self._tracking.offer(job, now)
                continue
            if now - job.since > KICK_AGAIN and not job.kicked:
                job.kicked = True
                self._kicks.trigger()
            if now - job.since > WITHDRAW and job.row.state == "PENDING":
                self._withdraw(key, job, now)

    def _withdraw(self, key: str, job: TrackedJob, now: float) -> None:
        """Take a release back that Slurm has not followed."""
        label = job.row.label
        answers = [self._control(f"hold {label}"), self._control(f"update JobId={label} ReqNodeList=")]
        self._journal.counts.withdrawn += 1
        self._book.take_back(key)
        self._block(job, now, f"did not start: {job.row.reason}")
        self._journal.audit.write({"time": now, "withdrawn": key, "why": job.row.reason, "answer": answers})
        self._tracking.dirty = True

    def _block(self, job: TrackedJob, now: float, why: str) -> None:
        job.failed_starts += 1
        job.phase, job.why, job.since, job.hosts = Phase.BLOCKED, why, now, frozenset()
        job.retry = now + min(RETRY * 2 ** (job.failed_starts - 1), RETRY_MOST)


def _describe(stop: SiteStop, label: str) -> str:
    """Return what is done to a job, in words."""
    if stop.kind is not StopKind.GRACE:
        return f"{stop.kind} {label}"
    at = time.strftime("%H:%M:%S", time.localtime(stop.grace_end))
    return f"stop {label} at {at}, for {stop.preemptor.partition('@')[0]}"
