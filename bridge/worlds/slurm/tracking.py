"""The jobs of the agent's partition as Slurm lists them: seen first, updated, gone; and the free nodes.

What becomes of a job is told to the scheduler at once. A job that waits without our hold is held; one
that the agent cannot decide for is given back to Slurm.
"""

import time
from collections.abc import Iterable, Sequence, Set
from dataclasses import replace

from bridge.cluster.slurm_values import node_names
from bridge.worlds.slurm.audited_scheduler import AuditedBook
from bridge.worlds.slurm.client import (
    HELD,
    Control,
    QueueEntry,
    is_held_by_us,
    may_requeue,
    walltime_from_comment,
)
from bridge.worlds.slurm.event_file import FINAL, EventLine
from bridge.worlds.slurm.gate import Heartbeat
from bridge.worlds.slurm.jobs import HAS_NODES, OWN_HOLD, PartitionNodes, Phase, TrackedJob
from bridge.worlds.slurm.losses import JobLosses
from bridge.worlds.slurm.report import Journal
from bridge.worlds.slurm.settings import AgentConfig
from bridge.worlds.slurm.site_jobs import StopKind
from bridge.worlds.slurm.site_reading import require_partitions

#: Starts that are remembered, should a job be requeued.
_PINS = 10_000
#: Polls that must miss a job before it counts as gone.
MISSES = 2


class Tracking:
    """Follows jobs; `since`: when the agent began, seconds since 1970: starts before then are not compared.

    Attributes:
        jobs: those that wait or run, by `QueueEntry.key`.
        machine: the nodes, as Slurm had them last.
        free: nodes that a job may be started on.
        dirty: whether Slurm may know more by now, and is to be asked soon.
    """

    def __init__(
        self,
        settings: AgentConfig,
        control: Control,
        book: AuditedBook,
        journal: Journal,
        heart: Heartbeat,
        losses: JobLosses,
        machine: PartitionNodes,
        since: float,
    ) -> None:
        self._settings, self._writes = settings, settings.mode == "live"
        self._control, self._book, self._journal = control, book, journal
        self._heart, self._losses, self._since = heart, losses, since
        self._partitions = frozenset(require_partitions(settings.partition))
        self._pins: dict[str, frozenset[str]] = {}
        self.machine = machine
        self.jobs: dict[str, TrackedJob] = {}
        self.free: frozenset[str] = frozenset()
        self.dirty = True

    # What the agent asks for.

    def forget(self) -> None:
        """Begin anew with what Slurm says: who has been away may know other jobs, by the same ids."""
        self._control.close()
        self.jobs, self.dirty = {}, True
        self._book.begin(len(self.machine.nodes))

    def note(self, line: EventLine) -> bool:
        """Take note of what Slurm's plugins tell; return whether a job of ours has ended by it."""
        self._losses.note(line)
        settled = line.raw != 0 and self._ended(line)
        self.dirty |= not settled or not self._writes
        return settled

    def update(self, rows: Sequence[QueueEntry], machine: PartitionNodes, now: float) -> None:
        """Bring what is known up to date with all jobs that Slurm lists."""
        self.machine = machine
        running = [row for row in rows if row.state in HAS_NODES and row.state != "COMPLETING"]
        occupied = frozenset().union(*(row.names for row in running))
        if not self._writes:
            self._give_back({row.key for row in running}, occupied)
        listed = set()
        for row in rows:
            if self._is_ours(row):
                listed.add(row.key)
                self._update_job(row, now)
        for key in [key for key in self.jobs if key not in listed]:
            self._on_unlisted(key, now)
        pinned = frozenset().union(*(job.hosts for job in self.jobs.values() if job.phase is Phase.RELEASED))
        self.free = self.machine.idle - occupied - pinned

    def _is_ours(self, row: QueueEntry) -> bool:
        return not self._partitions.isdisjoint(row.partition.split(","))

    def choose_nodes(self, job: TrackedJob, now: float) -> list[str] | None:
        """Return the nodes for a job that is to start; None: too few that fit it are free."""
        return self.machine.select_nodes(job.row, self.free, now, min(job.length, 1e9))

    @property
    def out(self) -> int | frozenset[str]:
        """How many nodes are neither free nor used by our jobs."""
        ours = (Phase.RUNNING, Phase.RELEASED, Phase.REQUEUED)
        busy = (job.hosts for job in self.jobs.values() if job.phase in ours)
        return len(frozenset(self.machine.nodes).difference(self.free, *busy))

    def offer(self, job: TrackedJob, now: float) -> None:
        """Let the scheduler have a job, unless it waits for another one."""
        job.since = now
        if job.row.dependency:
            job.phase, job.why = Phase.BLOCKED, job.row.dependency
            if "(failed)" in job.row.dependency:
                self._journal.say(f"NEVER {job.row.label}: {job.row.dependency}")
            return
        if begins := job.row.earliest_start(now):
            job.phase, job.why, job.retry = Phase.BLOCKED, "begins later", begins
            return
        job.phase, job.why = Phase.HELD, ""
        self._wait(job)

    def assign(self, job: TrackedJob, nodes: Iterable[str], now: float) -> None:
        """A job is released on nodes: no other one gets them, until Slurm lists it as running."""
        job.phase, job.since, job.hosts, job.kicked = Phase.RELEASED, now, frozenset(nodes), False
        self._pins[job.row.label] = job.hosts
        if len(self._pins) > _PINS:
            del self._pins[next(iter(self._pins))]
        self.free -= job.hosts

    @property
    def nodes_coming(self) -> bool:
        """Whether jobs that were killed still have nodes."""
        return any(job.phase is Phase.REQUEUED for job in self.jobs.values())

    def note_stopped(self, job: TrackedJob, now: float) -> None:
        """A running job was requeued or cancelled, or would be."""
        job.phase, job.since = Phase.REQUEUED, now

    def run_on(self, job: TrackedJob, now: float, kind: StopKind) -> None:  # noqa: ARG002
        """A job that the scheduler has stopped runs on, for Slurm has refused to do so."""
        start = job.row.start if job.row.start > 0 else now
        self._book.tell("on", job.row.key, start=start)

    # What Slurm says.

    def _update_job(self, row: QueueEntry, now: float) -> None:
        job = self.jobs.get(row.key)
        if job is not None and job.row is row and job.phase is Phase.HELD and row.priority == 0:
            job.missed_polls = 0
            return
        if row.state == "COMPLETING":  # its nodes may be decided on already
            if job is not None:
                self._drop(row.key)
            return
        if job is None:
            self._add_job(row, now)
            return
        job.row, job.missed_polls = row, 0
        if job.phase is Phase.REQUEUED:
            if row.state not in HAS_NODES:
                del self.jobs[row.key]
                self._add_job(row, now)
        elif row.state in HAS_NODES:
            self._runs(job, now)
            if self._writes:
                self._losses.bury(job, now)
        elif job.phase is Phase.RUNNING:
            self._requeued(job, now)
        elif job.phase is Phase.FOREIGN and job.why == OWN_HOLD and row.priority > 0:
            del self.jobs[row.key]
            self._add_job(row, now)
        elif job.phase is Phase.HELD and row.priority > 0 and self._writes:
            self._take_over(job, now, "released by somebody else: held again")
        elif job.phase is Phase.BLOCKED and not row.dependency and now >= job.retry:
            self.offer(job, now)
        elif job.phase is Phase.HELD and row.dependency:
            self._book.tell("gone", row.key)
            job.phase, job.why = Phase.BLOCKED, row.dependency

    def _add_job(self, row: QueueEntry, now: float) -> None:
        self._heart.beat()  # there may be thousands of them
        job = self.jobs[row.key] = TrackedJob(row, Phase.BLOCKED, now)
        if row.state in HAS_NODES:
            self._wait(job)
            self._runs(job, now)
            return
        if self._writes and self._pinned(row):
            self._control(f"update JobId={row.label} ReqNodeList=")
            row = job.row = replace(row, required="")
        answer = self._control(f"show job {row.label}") if self._needs_text(row) else ""
        ours = is_held_by_us(answer)
        job.restartable = self._settings.requeue and may_requeue(answer)
        job.walltime = walltime_from_comment(answer.rpartition(" Comment=")[2])
        if why := self._reason_left_to_slurm(job, answer):
            self._leave_to_slurm(job, why, give_back=ours)
        elif row.priority == 0 and not ours:
            self._leave_to_slurm(job, OWN_HOLD, give_back=False)
        elif row.priority > 0 and self._writes:
            self._take_over(job, now, "")
        else:
            self.offer(job, now)

    def _needs_text(self, row: QueueEntry) -> bool:
        """Tell whether all that Slurm says of a new job is read."""
        return self._writes or row.priority == 0

    def _reason_left_to_slurm(self, job: TrackedJob, answer: str) -> str:  # noqa: ARG002
        """Return why a new job is left to Slurm, empty if the agent decides for it."""
        return self.machine.reason_left_to_slurm(job.row)

    def _pinned(self, row: QueueEntry) -> bool:
        """Tell whether a job that was requeued still requires the nodes that we chose before."""
        return bool(row.required) and self._pins.get(row.label) == frozenset(node_names(row.required))

    def _leave_to_slurm(self, job: TrackedJob, why: str, *, give_back: bool) -> None:
        """A job is Slurm's affair; what our gate holds is released once, without nodes."""
        job.phase, job.why = Phase.FOREIGN, why
        self._journal.counts.foreign[job.row.key] = why
        self._journal.say(f"FOREIGN {job.row.label}: {why}")
        answer = ""
        if give_back and self._writes:
            # Behind our own releases: slurmctld's fast loop stops at the first job that cannot start.
            answer = self._control(f"release {job.row.label}")
            self._control(f"update JobId={job.row.label} Priority=1")
        self._journal.audit.write({"time": time.time(), "foreign": job.row.key, "why": why, "answer": answer})

    def _take_over(self, job: TrackedJob, now: float, why: str) -> None:
        """A job of ours waits without our hold: hold it."""
        is_in_queue = job.row.key in self._book
        answers = [self._control(f"hold {job.row.label}")]
        answers.append(self._control(f"update JobId={job.row.label} AdminComment={HELD}"))
        self._journal.audit.write({"time": now, "adopted": job.row.key, "why": why, "answer": answers})
        if not is_in_queue:
            self.offer(job, now)

    def _wait(self, job: TrackedJob) -> None:
        row, length = job.row, min(job.length, 1e9)
        nodes = min(row.nodes, len(self.machine.nodes))
        permits = {"permits": 1} if job.restartable else {}
        self._book.tell(
            "wait",
            row.key,
            id=row.raw,
            nodes=nodes,
            submit=row.submit,
            length=length,
            user=row.user,
            **permits,
        )

    def _runs(self, job: TrackedJob, now: float) -> None:
        row = job.row
        if job.phase is Phase.RUNNING:
            return
        hosts = row.names
        if job.phase in (Phase.RELEASED, Phase.AWAITING):
            if hosts and job.hosts and hosts != job.hosts:
                self._journal.counts.moved.append(row.key)
                self._journal.say(f"MOVED {row.label}: decided {sorted(job.hosts)}, runs on {row.hosts}")
        elif self._settings.mode == "shadow" and row.start >= self._since:
            self._journal.counts.compared.setdefault(row.key, [-1.0, -1.0])[1] = float(row.start)
        self._tell_runs(job, now)
        job.phase, job.since, job.hosts = Phase.RUNNING, now, hosts or job.hosts

    def _tell_runs(self, job: TrackedJob, now: float) -> None:
        """Let the scheduler know that a job runs, unless it has started it."""
        if job.phase in (Phase.RELEASED, Phase.AWAITING):
            return
        if job.row.key not in self._book:
            self._wait(job)
        self._book.tell("run", job.row.key, start=job.row.start if job.row.start > 0 else now)

    def _requeued(self, job: TrackedJob, now: float) -> None:
        """A running job waits again, under the same id and submission."""
        self._book.tell("end", job.row.key)
        del self.jobs[job.row.key]
        self._add_job(job.row, now)

    def _ended(self, line: EventLine) -> bool:
        """jobcomp tells of an end; return whether that settles it."""
        if line.state not in FINAL:
            return False
        for key, job in self.jobs.items():
            named = job.row.raw == line.raw and line.submit in (-1, job.row.submit)
            if named and job.phase in (Phase.RUNNING, Phase.RELEASED):
                self.free |= job.hosts & frozenset(self.machine.nodes)
                self._drop(key)
                return True
        return False

    def _on_unlisted(self, key: str, now: float) -> None:
        job = self.jobs[key]
        job.missed_polls += 1
        if job.missed_polls < MISSES:
            self.dirty = True
            return
        self._losses.miss(job, now)
        self._drop(key)

    def _drop(self, key: str) -> None:
        job = self.jobs.pop(key)
        if key in self._book:
            runs = job.phase in (Phase.RUNNING, Phase.RELEASED, Phase.AWAITING)
            what = "end" if runs else "gone"
            self._book.tell(what, key)

    def _give_back(self, running: Set[str], occupied: Set[str]) -> None:
        """What would have been started waits again once Slurm has started it, or others on its nodes."""
        for key, job in self.jobs.items():
            if job.phase is Phase.RELEASED and (key in running or job.hosts & occupied):
                self._book.tell("back", key)
                job.phase, job.hosts = Phase.HELD, frozenset()
