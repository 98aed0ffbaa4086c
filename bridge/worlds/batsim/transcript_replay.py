"""Replays a transcript: reads and writes back every frame, and decides beside the recorded decider.

The state of the simulation follows what was recorded. At every message a policy of ours is asked what it
would decide, on the one scheduler core, and the referee judges it. Where there is no choice, because no
waiting job fits, or all fit together, the decision is forced: ours must be just that, whatever the policy.
"""

import copy
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bridge.base.errors import BridgeError
from bridge.scheduler import core
from bridge.scheduler.protocol import PROTOCOLS, Policy
from bridge.scheduler.session import JobEstimates, Session
from bridge.wire import events as ev
from bridge.wire.dialects import codec
from bridge.wire.hosts import Hosts, HostSet, size
from bridge.wire.wattages import parse_power_states
from bridge.worlds.batsim import transcripts
from bridge.worlds.batsim.estimates import LONGEST, estimate_requested
from bridge.worlds.batsim.jobs import DispatchedJob
from bridge.worlds.batsim.referee import Referee
from bridge.worlds.batsim.wire_scheduler import PlacementConfig, WireScheduler


@dataclass
class TranscriptJob(DispatchedJob):
    """A job, and how long it is believed to last, microseconds."""

    lengths: JobEstimates = field(default_factory=lambda: JobEstimates.same(LONGEST))


class TranscriptFollower(WireScheduler[TranscriptJob]):
    """Applies the recorded decisions, and computes at each message what the policy would decide."""

    def __init__(self, placing: PlacementConfig, policy: Policy) -> None:
        super().__init__(placing)
        self._policy = policy
        self._hosts = 0
        self._out = HostSet()  # asleep, on their way, or gone
        self._registered: set[str] = set()  # by the recorded decider, and not confirmed yet
        self._sleeping: list[frozenset[int]] = []

    def _begin(self, begin: ev.SimulationBegins) -> None:
        self._hosts = len(begin.compute)
        self._sleeping = [parse_power_states(host)[1] for host in begin.compute]

    def _submit(self, event: ev.JobSubmitted) -> None:
        if event.job_id in self._registered:
            self._registered.remove(event.job_id)
            return
        job = TranscriptJob(event.job_id, event.submit, event.res, lengths=estimate_requested(event))
        self._add(job)
        job.storage, job.why = self._profiles.storage_of(event)

    def _complete(self, event: ev.JobCompleted) -> None:
        self._finish(event, "running")

    def _on_wake_up(self) -> None:
        """Nothing follows from it."""

    def _on_other_event(self, event: ev.Event) -> None:
        if isinstance(event, ev.MachineAvailability):
            (self._out.remove if event.available else self._out.add)(event.hosts)
        elif isinstance(event, ev.ResourceStateChanged):
            self._switch(event.hosts, event.pstate)

    def _switch(self, hosts: Hosts, pstate: int) -> None:
        for low, high in hosts:
            for host in range(low, min(high + 1, self._hosts)):
                asleep = pstate in self._sleeping[host]
                (self._out.add if asleep else self._out.remove)(((host, host),))

    def _make_decisions(self) -> None:
        if self.ended:
            return
        for job in self.jobs.values():
            if job.state == "waiting" and not self._can_run(job):
                self._say(ev.RejectJob, job.job_id)
        free = self.free()
        for job in self.starts(self._policy):
            self._say(ev.ExecuteJob, job.job_id, free.take_lowest(job.n_hosts), None, job.storage)

    @property
    def has_begun(self) -> bool:
        return self._begin_event is not None

    @property
    def shares(self) -> bool:
        return self._begin_event is not None and self._begin_event.compute_sharing

    def free(self) -> HostSet:
        """Return the hosts that neither work nor are out of service."""
        free = HostSet(((0, self._hosts - 1),))
        for job in self.jobs.values():
            if job.state == "running":
                free.remove(job.hosts)
        free.remove(self._out.hosts())
        return free

    def waiting(self) -> list[TranscriptJob]:
        """Return the jobs that wait and could ever run, in the order of their submission."""
        return [job for job in self.jobs.values() if job.state == "waiting" and self._can_run(job)]

    def _can_run(self, job: TranscriptJob) -> bool:
        return 1 <= job.n_hosts <= self._hosts and not job.why

    def starts(self, policy: Policy) -> list[TranscriptJob]:
        """Return the jobs that a policy would start now: a pass of a session that is in this state."""
        running = [job for job in self.jobs.values() if job.state == "running"]
        used = sum(size(job.hosts) for job in running)
        free = self.free().size
        session = Session((used + free,), policy, PROTOCOLS["standard"])
        session.now = self._now
        for k, job in enumerate(running):
            left = max(job.lengths.running - (self._now - job.start), 1)
            session.submit(k, (size(job.hosts),), JobEstimates.same(left))
        self._pass(session)
        if int(session.state.free[0, 0]) != free:
            raise BridgeError("running jobs take more hosts than there are")
        waiting = [job for job in self.waiting() if job.n_hosts <= used + free]
        for k, job in enumerate(waiting):
            session.submit(len(running) + k, (job.n_hosts,), job.lengths)
        return [waiting[j - len(running)] for j in self._pass(session)]

    @staticmethod
    def _pass(session: Session) -> list[int]:
        session.begin()
        while session.advance() != core.NOTHING:
            pass
        return session.starts()

    def on_refused(self, decision: ev.Decision, why: str) -> None:
        """See `WireScheduler.on_refused`; nothing that it says is sent."""

    def report_fields(self, job: TranscriptJob) -> dict[str, Any]:  # noqa: ARG002
        return {}

    def apply_recorded(self, decision: ev.Decision) -> None:
        """A decision was taken. Raises BridgeError: it is about a job that does not wait."""
        if isinstance(decision, (ev.ExecuteJob, ev.RejectJob)):
            job = self.jobs.get(decision.job_id)
            if job is None or job.state != "waiting":
                state = job.state if job else "is unknown"
                raise BridgeError(f"decides about {decision.job_id}, which {state}")
            job.state = "rejected"
            if isinstance(decision, ev.ExecuteJob):
                job.state, job.start, job.hosts = "running", self._now, decision.hosts
        elif isinstance(decision, ev.RegisterJob):
            self._registered.add(decision.job_id)
            wall = JobEstimates.same(decision.walltime or LONGEST)
            self._add(TranscriptJob(decision.job_id, self._now, decision.res, lengths=wall))
        elif isinstance(decision, ev.SetPowerState):
            # those that go to sleep are gone at once, those that wake up are back when they say so
            self._out.add([part for part in decision.hosts if decision.pstate in self._sleeping[part[0]]])


@dataclass
class TranscriptComparison:
    """Result of replaying a transcript.

    Attributes:
        name, dialect: of the transcript.
        frames: written back as they were.
        same, forced: messages at which something was decided, and ours decided the same; of these, forced.
        different: messages at which ours would have done something else.
        refused: recorded decisions that our referee would not have let pass: Batsim took them, or died of
            them.
        ended: the simulation's end was told; Batsim may have died before.
        wrong: what is wrong, empty if nothing is.
        transcribed: the session was binary; its JSON was replayed.
    """

    name: str
    dialect: str = ""
    frames: int = 0
    same: int = 0
    forced: int = 0
    different: int = 0
    refused: int = 0
    ended: bool = False
    wrong: str = ""
    transcribed: bool = False

    @property
    def line(self) -> str:
        if self.wrong:
            return f"{self.name}: WRONG: {self.wrong}"
        if not self.frames:
            return f"{self.name}: nothing was said"
        binary = ", transcribed from FlatBuffers" if self.transcribed else ""
        more = f"; {self.refused} recorded decisions would be held back" if self.refused else ""
        more += "" if self.ended else "; it breaks off: the simulation's end was never told"
        return (
            f"{self.name}: {self.dialect}{binary}, {self.frames} frames written back; decided as recorded "
            f"at {self.same} messages (forced at {self.forced}), "
            f"otherwise and legally at {self.different}{more}"
        )


def replay(case: Path, policy: Policy) -> TranscriptComparison:
    """Replay a transcript (its folder or file) under a policy that needs no facts of the workload."""
    comparison = TranscriptComparison(case.name)
    try:
        transcript = transcripts.read(case)
        comparison.dialect, comparison.transcribed = transcript.dialect, transcript.transcribed
        _Replay(transcript, policy, comparison).run()
    except BridgeError as error:
        comparison.wrong = ": ".join(part for part in (error.where, error.what) if part)
    return comparison


class _Replay:
    """One transcript's way through codec, follower and referee."""

    def __init__(
        self, transcript: transcripts.Transcript, policy: Policy, comparison: TranscriptComparison
    ) -> None:
        self._transcript, self._comparison = transcript, comparison
        self._codec = codec(transcript.dialect)
        self._follower = TranscriptFollower(PlacementConfig(), policy)
        self._referee = Referee(energy=True)
        self._greeted = transcript.dialect == "batsim4"

    def run(self) -> None:
        message: ev.Message | None = None
        for n, frame in enumerate(self._transcript.frames, 1):
            try:
                if frame.platform:
                    message = self._platform(frame.content, n)
                else:
                    self._decider(frame.content, n, message)
            except BridgeError as error:
                side = "Batsim" if frame.platform else "the decider"
                where = f"frame {n} (of {side})" + (f", {error.where}" if error.where else "")
                raise BridgeError(error.what, where=where) from error
            self._comparison.frames += 1
        self._comparison.ended = self._follower.ended

    def _platform(self, content: bytes, n: int) -> ev.Message | None:
        greeting = self._codec.greet(content)
        if greeting is not None:
            text = content[4:]
            _same(content, len(text).to_bytes(4, "little") + text)
            self._greeted = True
            return None
        message = self._codec.decode(content, n)
        begins = any(isinstance(event, ev.SimulationBegins) for event in message.events)
        if not self._greeted or (not self._follower.has_begun and not begins):
            raise BridgeError("the session's beginning is missing")
        _same(transcripts.canonical(content), transcripts.canonical(self._codec.encode_message(message)))
        return message

    def _decider(self, content: bytes, n: int, message: ev.Message | None) -> None:
        if message is None:
            if not self._greeted:
                raise BridgeError("the session's beginning is missing")
            self._handshake(content, n)
            return
        reply = self._codec.decode_reply(content, n)
        _same(transcripts.canonical(content), transcripts.canonical(self._codec.encode(reply)))
        self._referee.observe(message)
        fresh = copy.deepcopy(self._referee)
        ours = fresh.check(message.now, self._follower.decide(message))
        if fresh.refusals[len(self._referee.refusals) :]:
            raise BridgeError(f"our answer is illegal: {fresh.refusals[-1]}")
        self._compare(ours.decisions, reply.decisions)
        for decision in reply.decisions:
            self._follower.apply_recorded(decision)
        before = len(self._referee.refusals)
        decisions = [decision for decision in reply.decisions if type(decision) is not ev.OpaqueDecision]
        self._referee.check(max(reply.now, message.now), decisions)
        self._comparison.refused += len(self._referee.refusals) - before

    def _handshake(self, content: bytes, n: int) -> None:
        hello = self._codec.decode_reply(content[4:], n)
        again = self._codec.encode(hello)
        _same(content[:4] + transcripts.canonical(content[4:]), content[:4] + transcripts.canonical(again))
        if not (len(hello.decisions) == 1 and isinstance(hello.decisions[0], ev.Hello)):
            raise BridgeError("is no hello")

    def _compare(self, ours: Sequence[ev.Decision], theirs: Sequence[ev.Decision]) -> None:
        follower, comparison = self._follower, self._comparison
        mine, recorded = _started(ours), _started(theirs)
        if not (mine or recorded or _rejected(ours) or _rejected(theirs)):
            return
        free = follower.free()
        waiting = follower.waiting()
        possible = {job.job_id: job for job in waiting if job.n_hosts <= free.size}
        forced = not possible or sum(job.n_hosts for job in waiting) <= free.size
        if forced and mine.keys() != possible.keys():
            raise BridgeError(f"starts {_named(mine)}, where {_named(possible)} fit together")
        if mine.keys() != recorded.keys() or _rejected(ours) != _rejected(theirs):
            comparison.different += 1
            return
        comparison.same += 1
        comparison.forced += forced
        alone = len(mine) == 1 and size(*mine.values()) == free.size and not follower.shares
        if alone and mine != recorded:
            raise BridgeError(f"starts {_named(mine)} on other hosts, though it takes all that are free")


def _named(jobs: Iterable[str]) -> str:
    return ", ".join(sorted(jobs)) or "nothing"


def _started(decisions: Sequence[ev.Decision]) -> dict[str, Hosts]:
    return {one.job_id: one.hosts for one in decisions if isinstance(one, ev.ExecuteJob)}


def _rejected(decisions: Sequence[ev.Decision]) -> set[str]:
    return {one.job_id for one in decisions if isinstance(one, ev.RejectJob)}


def _same(one: bytes, other: bytes) -> None:
    if one != other:
        pairs = enumerate(zip(one, other, strict=False))
        at = next((k for k, (a, b) in pairs if a != b), min(len(one), len(other)))
        start = max(at - 30, 0)
        was, now = (text[start : at + 50].decode(errors="replace") for text in (one, other))
        raise BridgeError(f"is written back otherwise: …{was}… as …{now}…")
