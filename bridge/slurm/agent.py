"""The agent: follows Slurm's jobs, asks the scheduler, and writes its starts back.

Nothing is remembered that Slurm does not know: after a kill, an agent finds everything again in `squeue` and
`sinfo`. A job is started by pinning it to nodes and releasing it from the hold in which the gate put it.
"""

import json
import math
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from bridge.config.fields import record_of
from bridge.errors import BridgeError
from bridge.slurm.audit import Audit
from bridge.slurm.book import Book, Deciding, Event
from bridge.slurm.client import HELD, Away, Client, Control, Row, is_held_by_us, quoted_nodes, told_walltime
from bridge.slurm.follow import FINAL, Ended, Follower, Line
from bridge.slurm.gate import DiskError, Heart, alone, gate_of, release
from bridge.slurm.jobs import HAS_NODES, OWN_HOLD, Job, Machine, Phase
from bridge.slurm.kicks import Kicks
from bridge.slurm.settings import Settings
from bridge.slurm.setup import configuration
from bridge.workload.accounting.values import node_names

#: Seconds between looks at the event file, polls without an event, and full readings of the machine.
TICK, POLL, RECONCILE = 0.01, 5.0, 60.0
#: Seconds between looks at jobs that were released or are to be tried again.
LOOK = 0.05
#: Seconds between polls while a released job is not seen running.
HURRY = 0.2
#: A released job that does not run: kicked again, withdrawn, offered again (s, doubled each time) after.
KICK_AGAIN, WITHDRAW, RETRY, RETRY_MOST = 0.15, 2.0, 2.0, 60.0
#: Starts that are remembered, should a job be requeued.
_PINS = 10_000
#: Seconds for which slurmctld must know ended jobs (MinJobAge), so that one it does not know was lost.
_REMEMBERS = 30
#: Polls that must miss a job before it counts as gone.
MISSES = 2


@dataclass
class Told:
    """What the agent has done and seen, for its report."""

    polls: int = 0
    passes: int = 0
    starts: int = 0
    withdrawn: int = 0
    lost: list[str] = field(default_factory=list)
    ghosts: list[str] = field(default_factory=list)
    moved: list[str] = field(default_factory=list)
    foreign: dict[str, str] = field(default_factory=dict)
    away: int = 0
    #: Of shadow: job -> (when we would have started it on the machine as Slurm had it, when Slurm did).
    compared: dict[str, list[float]] = field(default_factory=dict)


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
        self._settings, self._deciding, self._client, self._said = settings, deciding, client, said
        self._writes = settings.mode == "live"
        directory = settings.directory if self._writes else None
        self._gate = gate_of(directory, settings.partition) if directory is not None else None
        self._lock = alone(self._gate) if self._gate is not None else None
        Book.warm_up(deciding)
        self._control = Control(client)
        self._begun = time.time()
        self.told = Told()
        self.jobs: dict[str, Job] = {}
        self.free: frozenset[str] = frozenset()
        self.machine = Machine(client.nodes(settings.partition))
        if settings.kick and self._writes:
            client.nodes(settings.kick)  # else kicks would fail for ever, and nobody would know
        rows = client.queue()
        self._origin = min([time.time(), *(row.submit for row in rows)])
        self._book = Book(len(self.machine.nodes), deciding, self._origin)
        self._out = -1
        self._events: list[Event] = []
        self._news = False
        head = {"policy": policy, "nodes": len(self.machine.nodes), "origin": self._origin}
        self._audit = Audit(settings.audit, head)
        self._former: dict[str, Job] = {}
        self._pins: dict[str, frozenset[str]] = {}
        age = configuration(client).get("minjobage", "0").partition(" ")[0]
        self._remembers = age.isdigit() and int(age) >= _REMEMBERS
        self._kicks = Kicks(client, self._control, settings.kick if self._writes else "")
        self._follower, self._ended_lives = Follower(settings.events), Ended()
        self._aside = ThreadPoolExecutor(1)
        self._budget, self._budget_at = settings.max_starts_per_s, time.monotonic()
        self._polled = self._soonest = self._next_look = self._next_reading = 0.0
        self._dirty, self._away = True, False
        self._heart = Heart(self._gate)

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
                    self._former |= self.jobs
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
        """Begin anew with what Slurm says: who has been away may know other jobs, by the same ids."""
        self._control.close()
        self.jobs = {}
        self._events, self._out, self._dirty, self._next_reading = [], -1, True, 0.0
        self._book = Book(len(self.machine.nodes), self._deciding, self._origin)
        self._audit.begin()

    def _compare(self, now: float) -> None:
        """Report the jobs that Slurm has forgotten while it was away."""
        former, self._former = self._former, {}
        for key, job in former.items():
            if key not in self.jobs and job.phase is not Phase.FOREIGN and not self._is_known(job):
                self._lose(job, now)

    def _is_known(self, job: Job) -> bool:
        """Tell whether Slurm knows a job; one of the same id is another one, unless it was requeued."""
        answer = self._control(f"show job {job.row.label}").replace("\n", " ")
        again = " Restarts=" in answer and " Restarts=0 " not in answer
        return f"SubmitTime={job.row.submit} " in answer or again

    def _lose(self, job: Job, now: float) -> None:
        self.told.lost.append(job.row.key)
        self._said(f"LOST {job.row.label}: Slurm does not know it any more")
        self._audit.write({"time": now, "lost": job.row.key})

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
        if not self._events and self._audit.is_rotated():
            self._audit.again(now, self._book.known())
        self._kicks.tend()
        ended = False
        for line in self._follower.read():
            self._ended_lives.add(line)
            settled = line.raw != 0 and self._ended(line)
            self._dirty |= not settled or not self._writes
            ended |= settled
        monotonic = time.monotonic()
        if not (ended or self._dirty or self._news or monotonic >= self._next_look):
            return  # thousands of held jobs are not gone through at every tick
        self._next_look = monotonic + LOOK
        released = [job for job in self.jobs.values() if job.phase is Phase.RELEASED and self._writes]
        hurry = any(now - job.since > KICK_AGAIN for job in released) and monotonic >= self._polled + HURRY
        look = (self._dirty and monotonic >= self._soonest) or hurry or monotonic >= self._polled + POLL
        if look:
            self.poll()
        self._attend(time.time())
        if self._writes or look:  # else Slurm may have started jobs on nodes that we believe free
            self._decide(time.time())

    # What Slurm says.

    def poll(self) -> None:
        """Read jobs and nodes, and bring what is known up to date."""
        begun = time.monotonic()
        self._dirty = False
        coming = self._aside.submit(self._client.nodes, self._settings.partition)
        rows = self._client.queue()
        reservations = self.machine.reservations
        if begun >= self._next_reading:
            self._next_reading = begun + RECONCILE
            reservations = tuple(self._client.reservations())
        self.machine = Machine(coming.result(), reservations)
        now = time.time()
        self.told.polls += 1
        running = [row for row in rows if row.state in HAS_NODES and row.state != "COMPLETING"]
        occupied = frozenset().union(*(row.names for row in running))
        if not self._writes:
            self._give_back({row.key for row in running}, occupied)
        listed = set()
        for row in rows:
            if self._settings.partition in row.partition.split(","):
                listed.add(row.key)
                self._see(row, now)
        for key in [key for key in self.jobs if key not in listed]:
            self._miss(key, now)
        pinned = frozenset().union(*(job.hosts for job in self.jobs.values() if job.phase is Phase.RELEASED))
        self.free = self.machine.idle - occupied - pinned
        if self._away:
            self._away = False
            self._said("slurmctld is back")
        if self._former:
            self._kicks.forget()
            self._compare(now)
        # A poll costs slurmctld time: never more than half of the time is spent in polls.
        self._polled = time.monotonic()
        self._soonest = 2 * self._polled - begun

    def _see(self, row: Row, now: float) -> None:
        job = self.jobs.get(row.key)
        if job is not None and job.row is row and job.phase is Phase.HELD and row.priority == 0:
            job.missed = 0
            return
        if row.state == "COMPLETING":  # its nodes may be decided on already
            if job is not None:
                self._drop(row.key)
            return
        if job is None:
            self._meet(row, now)
            return
        job.row, job.missed = row, 0
        if row.state in HAS_NODES:
            self._runs(job, now)
            if self._writes and self._ended_lives.before(row.raw, row.submit, row.start):
                self._bury(job, now)
        elif job.phase is Phase.RUNNING:
            self._requeued(job, now)
        elif job.phase is Phase.FOREIGN and job.why == OWN_HOLD and row.priority > 0:
            del self.jobs[row.key]
            self._meet(row, now)
        elif job.phase is Phase.HELD and row.priority > 0 and self._writes:
            self._take_over(job, now, "released by somebody else: held again")
        elif job.phase is Phase.BLOCKED and not row.dependency and now >= job.retry:
            self._offer(job, now)
        elif job.phase is Phase.HELD and row.dependency:
            self._tell("gone", row.key)
            job.phase, job.why = Phase.BLOCKED, row.dependency

    def _meet(self, row: Row, now: float) -> None:
        """A job is seen for the first time."""
        self._heart.beat()  # there may be thousands of them
        job = self.jobs[row.key] = Job(row, Phase.BLOCKED, now)
        if row.state in HAS_NODES:
            self._wait(job)
            self._runs(job, now)
            return
        if self._writes and self._pinned(row):
            self._control(f"update JobId={row.label} ReqNodeList=")
            row = job.row = replace(row, required="")
        answer = self._control(f"show job {row.label}") if self._writes or row.priority == 0 else ""
        ours = is_held_by_us(answer)
        job.walltime = told_walltime(answer.rpartition(" Comment=")[2])
        if why := self.machine.foreign(row):
            self._leave(job, why, give_back=ours)
        elif row.priority == 0 and not ours:
            self._leave(job, OWN_HOLD, give_back=False)
        elif row.priority > 0 and self._writes:
            self._take_over(job, now, "")
        else:
            self._offer(job, now)

    def _pinned(self, row: Row) -> bool:
        """Tell whether a job that was requeued still requires the nodes that we chose before."""
        return bool(row.required) and self._pins.get(row.label) == frozenset(node_names(row.required))

    def _leave(self, job: Job, why: str, *, give_back: bool) -> None:
        """A job is Slurm's affair; what our gate holds is released once, without nodes."""
        job.phase, job.why = Phase.FOREIGN, why
        self.told.foreign[job.row.key] = why
        self._said(f"FOREIGN {job.row.label}: {why}")
        answer = ""
        if give_back and self._writes:
            # Behind our own releases: slurmctld's fast loop stops at the first job that cannot start.
            answer = self._control(f"release {job.row.label}")
            self._control(f"update JobId={job.row.label} Priority=1")
        self._audit.write({"time": time.time(), "foreign": job.row.key, "why": why, "answer": answer})

    def _take_over(self, job: Job, now: float, why: str) -> None:
        """A job of ours waits without our hold: hold it."""
        known = job.row.key in self._book
        answers = [self._control(f"hold {job.row.label}")]
        answers.append(self._control(f"update JobId={job.row.label} AdminComment={HELD}"))
        self._audit.write({"time": now, "adopted": job.row.key, "why": why, "answer": answers})
        if not known:
            self._offer(job, now)

    def _offer(self, job: Job, now: float) -> None:
        """Let the scheduler have a job, unless it waits for another one."""
        job.since = now
        if job.row.dependency:
            job.phase, job.why = Phase.BLOCKED, job.row.dependency
            if "(failed)" in job.row.dependency:
                self._said(f"NEVER {job.row.label}: {job.row.dependency}")
            return
        if begins := job.row.begins(now):
            job.phase, job.why, job.retry = Phase.BLOCKED, "begins later", begins
            return
        job.phase, job.why = Phase.HELD, ""
        self._wait(job)

    def _wait(self, job: Job) -> None:
        row, length = job.row, min(job.length, 1e9)
        nodes = min(row.nodes, len(self.machine.nodes))
        self._tell("wait", row.key, id=row.raw, nodes=nodes, submit=row.submit, length=length, user=row.user)

    def _runs(self, job: Job, now: float) -> None:
        row = job.row
        if job.phase is Phase.RUNNING:
            return
        hosts = row.names
        if job.phase is Phase.RELEASED:
            if hosts and hosts != job.hosts:
                self.told.moved.append(row.key)
                self._said(f"MOVED {row.label}: decided {sorted(job.hosts)}, runs on {row.hosts}")
        else:
            if job.row.key not in self._book:
                self._wait(job)
            self._tell("run", row.key, start=row.start if row.start > 0 else now)
            if self._settings.mode == "shadow" and row.start >= self._begun:
                self.told.compared.setdefault(row.key, [-1.0, -1.0])[1] = float(row.start)
        job.phase, job.since, job.hosts = Phase.RUNNING, now, hosts or job.hosts

    def _bury(self, job: Job, now: float) -> None:
        """A job is shown as running whose end jobcomp has told: end it for Slurm, too."""
        if job.row.key in self.told.ghosts:
            return
        self.told.ghosts.append(job.row.key)
        self._said(f"ENDED {job.row.label}: Slurm was killed before it could write that down; cancelled")
        try:
            answer = self._client.call("scancel", job.row.label)
        except BridgeError as error:
            answer = str(error)
        self._audit.write({"time": now, "ghost": job.row.key, "answer": answer})

    def _requeued(self, job: Job, now: float) -> None:
        """A running job waits again, under the same id and submission."""
        self._tell("end", job.row.key)
        del self.jobs[job.row.key]
        self._meet(job.row, now)

    def _miss(self, key: str, now: float) -> None:
        """A job is no longer listed."""
        job = self.jobs[key]
        job.missed += 1
        if job.missed < MISSES:
            self._dirty = True
            return
        if job.phase is not Phase.FOREIGN and self._remembers and not self._is_known(job):
            self._lose(job, now)
        self._drop(key)

    def _ended(self, line: Line) -> bool:
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

    def _drop(self, key: str) -> None:
        job = self.jobs.pop(key)
        if key in self._book:
            what = "end" if job.phase in (Phase.RUNNING, Phase.RELEASED) else "gone"
            self._tell(what, key)

    def _tell(self, what: str, key: str = "", **details: Any) -> None:
        """Let the scheduler know, see `Event`."""
        event = Event(what, time.time(), key, details)
        self._events.append(event)
        self._book.tell(event)
        self._news = True

    def _take_back(self, key: str) -> None:
        """A start that was decided does not come true, and the job does not wait either."""
        self._tell("back", key)
        self._tell("gone", key)

    # What is decided.

    def _attend(self, now: float) -> None:
        """Look after jobs that were released and do not run."""
        for key, job in list(self.jobs.items()):
            if job.phase is Phase.RELEASED and not self._writes:
                if now - job.since > job.length:  # it would be over
                    self._tell("end", key)
                    self.free |= job.hosts & self.machine.idle
                    job.phase, job.retry, job.hosts = Phase.BLOCKED, math.inf, frozenset()
                continue
            if job.phase is not Phase.RELEASED:
                if job.phase is Phase.BLOCKED and job.retry and now >= job.retry and not job.row.dependency:
                    job.retry = 0.0
                    self._offer(job, now)
                continue
            if now - job.since > KICK_AGAIN and not job.kicked:
                job.kicked = True
                self._kicks.kick()
            if now - job.since > WITHDRAW and job.row.state == "PENDING":
                self._withdraw(key, job, now)

    def _withdraw(self, key: str, job: Job, now: float) -> None:
        """Take a release back that Slurm has not followed."""
        label = job.row.label
        answers = [self._control(f"hold {label}"), self._control(f"update JobId={label} ReqNodeList=")]
        self.told.withdrawn += 1
        self._take_back(key)
        self._block(job, now, f"did not start: {job.row.reason}")
        self._audit.write({"time": now, "withdrawn": key, "why": job.row.reason, "answer": answers})
        self._dirty = True

    def _block(self, job: Job, now: float, why: str) -> None:
        job.tries += 1
        job.phase, job.why, job.since, job.hosts = Phase.BLOCKED, why, now, frozenset()
        job.retry = now + min(RETRY * 2 ** (job.tries - 1), RETRY_MOST)

    def _decide(self, now: float) -> None:
        busy = (job.hosts for job in self.jobs.values() if job.phase in (Phase.RUNNING, Phase.RELEASED))
        out = len(frozenset(self.machine.nodes).difference(self.free, *busy))
        if out != self._out:
            self._out = out
            self._tell("out", nodes=out)
        if now >= self._book.wake_at:
            self._tell("wake")
        if not self._news:
            return
        events, self._events, self._news = self._events, [], False
        starts = self._book.decide(now)
        self.told.passes += 1
        self._audit.passed(now, events, starts)
        for key in starts:
            self._start(key, self.jobs[key], now)

    def _start(self, key: str, job: Job, now: float) -> None:
        nodes = self.machine.choose(job.row, self.free, now, min(job.length, 1e9))
        if nodes is None or (self._writes and not self._may_start()):
            self._take_back(key)
            why = "no nodes that fit it are free" if nodes is None else "too many starts a second"
            self._block(job, now, why)
            if nodes is not None:
                job.tries, job.retry = 0, now + 1.0 / self._settings.max_starts_per_s
            return
        if not self._writes:
            self._would_start(key, job, nodes, now)
            return
        hosts = quoted_nodes(nodes)
        answers = [self._control(f"update JobId={job.row.label} ReqNodeList={hosts}")]
        if not answers[0]:
            answers.append(self._control(f"release {job.row.label}"))
        told = {"nodes": hosts, "answer": answers, "state": self._audit.digest}
        self._audit.write({"time": now, "start": key, **told})
        if any(answers):
            self._said(f"REFUSED {job.row.label}: {' '.join(answers)}")
            self._take_back(key)
            self._block(job, now, " ".join(answers))
            self._dirty = True
            return
        job.phase, job.since, job.hosts, job.kicked = Phase.RELEASED, now, frozenset(nodes), False
        self._pins[job.row.label] = job.hosts
        if len(self._pins) > _PINS:
            del self._pins[next(iter(self._pins))]
        self.free -= job.hosts
        self.told.starts += 1
        self._kicks.kick()

    def _would_start(self, key: str, job: Job, nodes: Sequence[str], now: float) -> None:
        """Note what would be started: no other job would get its nodes, as long as Slurm has them free."""
        job.phase, job.since, job.hosts = Phase.RELEASED, now, frozenset(nodes)
        self.free -= job.hosts
        if self.told.compared.setdefault(key, [-1.0, -1.0])[0] < 0:
            self.told.compared[key][0] = now
            self.told.starts += 1
            self._said(f"would start {job.row.label} on {','.join(nodes)}")

    def _give_back(self, running: Set[str], occupied: Set[str]) -> None:
        """What would have been started waits again once Slurm has started it, or others on its nodes."""
        for key, job in self.jobs.items():
            if job.phase is Phase.RELEASED and (key in running or job.hosts & occupied):
                self._tell("back", key)
                job.phase, job.hosts = Phase.HELD, frozenset()

    def _may_start(self) -> bool:
        """Tell whether another start is within the limits, and count it."""
        if self._settings.max_starts and self.told.starts >= self._settings.max_starts:
            return False
        now, rate = time.monotonic(), self._settings.max_starts_per_s
        self._budget = min(self._budget + (now - self._budget_at) * rate, max(rate, 1.0))
        self._budget_at = now
        if self._budget < 1:
            return False
        self._budget -= 1
        return True

    def report(self) -> dict[str, Any]:
        """Return what was done, as plain data."""
        counts = Counter(job.phase.value for job in self.jobs.values())
        return {**record_of(self.told), "kicks": self._kicks.count, "jobs": dict(counts)}


def write_report(report: Mapping[str, Any], path: Path) -> None:
    """Write a report as JSON."""
    path.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")
