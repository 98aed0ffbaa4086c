"""The referee: knows platform and rules, and lets no decision pass that would abort the simulation.

Batsim 4 answers an illegal decision with an assertion. Where a rule depends on what the wire does not tell
(is energy simulated? is a profile still in memory?), only what is certainly legal passes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bridge.batsim import profiles
from bridge.batsim.events import (
    CallMeLater,
    Decision,
    Event,
    ExecuteJob,
    Fields,
    FinishRegistration,
    JobCompleted,
    JobSubmitted,
    KillJob,
    MachineAvailability,
    Message,
    QueryEnergy,
    RegisterJob,
    RegisterProfile,
    RejectJob,
    Reply,
    ResourceStateChanged,
    SetJobMetadata,
    SetPowerState,
    SimulationBegins,
    SimulationEnds,
    TellJob,
)
from bridge.batsim.power import states
from bridge.errors import BridgeError
from bridge.wire import times
from bridge.wire.hosts import Hosts, HostSet, from_ids, is_normal, size

WAITING, RUNNING, IN_SUBMISSION = "waiting", "running", "in submission"


@dataclass(frozen=True, slots=True)
class Refusal:
    """A decision that was not sent, and why."""

    time: int
    decision: Decision
    why: str

    def __str__(self) -> str:
        return f"{times.text_of(self.time)} s: {type(self.decision).__name__} {self.subject()}: {self.why}"

    def subject(self) -> str:
        """Return the job or hosts that the decision is about."""
        about = getattr(self.decision, "job_id", None) or getattr(self.decision, "job_ids", None)
        return str(about or "")


class _BrokenRuleError(Exception):
    """A rule that is broken."""


@dataclass(slots=True)
class _Job:
    state: str
    res: int
    workload: str
    profile: str
    hosts: Hosts = ()


class Referee:
    """Follows the simulation message by message and checks each reply.

    Args:
        energy: the platform simulates energy (``-E``); the wire does not say so.
        strict: raise at the first illegal decision, in place of dropping it.
    """

    def __init__(self, *, energy: bool = False, strict: bool = False) -> None:
        self._energy, self._strict = energy, strict
        self._now = 0
        self._begun: SimulationBegins | None = None
        self._ended = False
        self._jobs: dict[str, _Job] = {}
        self._met: set[str] = set()
        self._profiles: dict[str, dict[str, Fields]] = {}
        self._users: dict[tuple[str, str], int] = {}
        self._dropped: set[tuple[str, str]] = set()
        self._registering = False
        self._n_compute = self._n_hosts = 0
        self._busy, self._down, self._asleep = HostSet(), HostSet(), HostSet()
        self._switching: dict[int, HostSet] = {}  # on or off: the state that hosts are on their way to
        self._decided: set[str] = set()
        self.refusals: list[Refusal] = []

    # What the platform says.

    def observe(self, message: Message) -> None:
        """Take note of a message, before it is answered."""
        self._now = message.now
        for event in message.events:
            take = _TAKES.get(type(event))
            if take is not None:
                take(self, event)

    def _take_begin(self, event: SimulationBegins) -> None:
        self._begun = event
        self._n_compute = len(event.compute)
        self._n_hosts = self._n_compute + len(event.storage)
        self._profiles = {workload: dict(known) for workload, known in event.profiles.items()}
        self._profiles |= {workload: {} for workload in event.workloads if workload not in self._profiles}
        self._registering = event.dynamic_jobs
        for resource in event.compute:
            if resource.state == "sleeping":
                self._asleep.add(((resource.id, resource.id),))

    def _take_submission(self, event: JobSubmitted) -> None:
        workload = event.job_id.partition("!")[0]
        if event.profile_fields is not None:
            self._profiles.setdefault(workload, {})[event.profile] = event.profile_fields
        self._met.add(event.job_id)
        known = self._jobs.get(event.job_id)
        if known is not None:  # our own, acknowledged
            if known.state == IN_SUBMISSION:
                known.state = WAITING
            return
        self._jobs[event.job_id] = _Job(WAITING, event.res, workload, event.profile)
        key = workload, event.profile
        self._users[key] = self._users.get(key, 0) + 1

    def _take_completion(self, event: JobCompleted) -> None:
        self._forget(event.job_id)

    def _forget(self, job_id: str) -> None:
        job = self._jobs.pop(job_id, None)
        if job is None:
            return
        if self._begun is not None and self._begun.compute_sharing:
            self._busy = HostSet()
            for other in self._jobs.values():
                self._busy.add(other.hosts)
        else:
            self._busy.remove(job.hosts)
        key = job.workload, job.profile
        self._users[key] -= 1
        if not self._users[key] and self._begun is not None and not self._begun.profile_reuse:
            self._dropped.add(key)  # jobs to come may hold it in memory, but nothing says so

    def _take_availability(self, event: MachineAvailability) -> None:
        (self._down.remove if event.available else self._down.add)(event.hosts)

    def _take_power_state(self, event: ResourceStateChanged) -> None:
        """Hosts are switched on or off; between computing states they changed when it was decided."""
        switching = self._switching.pop(event.pstate, HostSet())
        there = switching.overlap(event.hosts)
        switching.remove(there)
        if switching.size:
            self._switching[event.pstate] = switching
        for low, high in there:
            for host in range(low, high + 1):
                asleep = event.pstate in self._states(host)[1]
                (self._asleep.add if asleep else self._asleep.remove)(((host, host),))

    def _take_end(self, _: SimulationEnds) -> None:
        self._ended = True

    # What the decision process says.

    def check(self, now: int, decisions: Sequence[Decision]) -> Reply:
        """Return the reply with the legal decisions only.

        Args:
            now: the reply's time; one earlier than the message's is moved up to it.
            decisions: in the order in which they shall take effect.

        Raises:
            BridgeError: strict, and a decision is illegal.
        """
        now = max(now, self._now)
        if not decisions:
            return Reply(now)
        self._decided.clear()
        legal: list[Decision] = []
        clock_at = self._now
        for decision in decisions:
            try:
                if not (type(decision.time) is int and clock_at <= decision.time <= now):
                    raise _BrokenRuleError("its time is not between the previous decision's and the reply's")
                checked = self._judge(decision, now)
            except _AllRefusedError:
                continue
            except _BrokenRuleError as broken:
                self._refuse(decision, str(broken))
                continue
            except (TypeError, ValueError, AttributeError) as error:
                self._refuse(decision, f"it is malformed ({error})")
                continue
            clock_at = decision.time
            legal.append(checked)
        return Reply(now, tuple(legal))

    def _refuse(self, decision: Decision, why: str) -> None:
        refusal = Refusal(self._now, decision, why)
        self.refusals.append(refusal)
        if self._strict:
            raise BridgeError(f"illegal decision: {refusal}", remedy="This would have aborted Batsim.")

    def _judge(self, decision: Decision, now: int) -> Decision:
        if self._begun is None:
            raise _BrokenRuleError("the simulation has not begun")
        if self._ended:
            raise _BrokenRuleError("the simulation has ended")
        rule = _RULES.get(type(decision))
        if rule is None:
            raise _BrokenRuleError("no such decision")
        return rule(self, decision, now)

    def _job(self, job_id: object, *states_: str) -> _Job:
        """Return a job that is in one of the states and that this reply has not decided about yet."""
        job = self._jobs.get(job_id) if isinstance(job_id, str) else None
        if job is None:
            raise _BrokenRuleError("the job is over" if job_id in self._met else "there is no such job")
        if job.state not in states_:
            raise _BrokenRuleError(f"the job is {job.state}")
        if job_id in self._decided:
            raise _BrokenRuleError("this reply has decided about the job already")
        return job

    def _decide(self, job_id: str) -> None:
        self._decided.add(job_id)

    def _lookup(self, workload: str) -> Callable[[str], Fields | None]:
        return self._profiles.get(workload, {}).get

    def _execute(self, decision: ExecuteJob, _: int) -> Decision:
        job = self._job(decision.job_id, WAITING)
        assert self._begun is not None
        if not decision.hosts or not is_normal(decision.hosts):
            raise _BrokenRuleError("the allocation is empty or not in ascending, disjoint intervals")
        if decision.hosts[0][0] < 0 or decision.hosts[-1][1] >= self._n_compute:
            raise _BrokenRuleError(
                f"the allocation names a host outside 0-{self._n_compute - 1}, the compute hosts"
            )
        if not self._begun.compute_sharing and (bad := self._busy.overlap(decision.hosts)):
            raise _BrokenRuleError(f"host {bad[0][0]} runs another job")
        for reason, those in (
            ("unavailable", self._down),
            ("asleep", self._asleep),
            *(("switching", those) for those in self._switching.values()),
        ):
            if those.size and (bad := those.overlap(decision.hosts)):
                raise _BrokenRuleError(f"host {bad[0][0]} is {reason}")
        self._check_size(decision, job)
        if decision.storage_mapping is not None:
            if decision.mapping is not None:
                raise _BrokenRuleError("it has both a mapping and a storage_mapping")
            ids = decision.storage_mapping.values()
            if not ids or not all(type(i) is int and self._n_compute <= i < self._n_hosts for i in ids):
                raise _BrokenRuleError("the storage_mapping is empty or names a host that is no storage")
        job.state, job.hosts = RUNNING, decision.hosts
        self._busy.add(decision.hosts)
        self._decide(decision.job_id)
        return decision

    def _check_size(self, decision: ExecuteJob, job: _Job) -> None:
        given = size(decision.hosts)
        lookup = self._lookup(job.workload)
        profile = lookup(job.profile)
        if decision.mapping is not None:
            ranks = decision.mapping
            if sorted(ranks) != list(range(len(ranks))) or not all(
                type(place) is int and 0 <= place < given for place in ranks.values()
            ):
                raise _BrokenRuleError(
                    "the mapping does not give each rank, from 0 on, a place in the allocation"
                )
            given = len(ranks)
        if given != job.res and not (profile is not None and profiles.any_size(profile, lookup)):
            raise _BrokenRuleError(f"the job asks for {job.res} hosts and is given {given}")
        needed = profiles.storage_labels(profile, lookup) if profile is not None else []
        if needed and not set(needed) <= set(decision.storage_mapping or ()):
            raise _BrokenRuleError(f"no storage host is given for {', '.join(sorted(set(needed)))}")

    def _kill(self, decision: KillJob, _: int) -> Decision:
        legal: list[str] = []
        for job_id in decision.job_ids:
            try:
                self._job(job_id, RUNNING)
            except _BrokenRuleError as broken:
                self._refuse(replace(decision, job_ids=(job_id,)), str(broken))
                continue
            legal.append(job_id)
            self._decide(job_id)
        if not legal:
            if not decision.job_ids:
                raise _BrokenRuleError("it names no job")
            raise _AllRefusedError
        return replace(decision, job_ids=tuple(legal))

    def _reject(self, decision: RejectJob, _: int) -> Decision:
        self._job(decision.job_id, WAITING)
        self._forget(decision.job_id)
        self._decide(decision.job_id)
        return decision

    def _call(self, decision: CallMeLater, now: int) -> Decision:
        if not (type(decision.at) is int and now < decision.at <= times.LATEST):
            raise _BrokenRuleError("the call is not due later than the reply")
        return decision

    def _check_registration(self) -> None:
        assert self._begun is not None
        if not self._begun.dynamic_jobs:
            raise _BrokenRuleError("dynamic jobs are not enabled (--enable-dynamic-jobs)")
        if not self._registering:
            raise _BrokenRuleError("registration was declared finished")

    def _register_profile(self, decision: RegisterProfile, _: int) -> Decision:
        self._check_registration()
        if not decision.workload or "!" in decision.workload:
            raise _BrokenRuleError("the workload's name is empty or has a '!'")
        known = self._profiles.setdefault(decision.workload, {})
        if decision.name in known:
            raise _BrokenRuleError(f"the profile {decision.name!r} is there already")
        assert self._begun is not None
        if decision.workload in self._begun.workloads:
            raise _BrokenRuleError(
                "a static workload may have had such a profile; use a workload of your own"
            )
        if not profiles.is_json([decision.workload, decision.name, decision.profile]):
            raise _BrokenRuleError("it cannot be written as JSON")
        alive = {
            name: profile for name, profile in known.items() if (decision.workload, name) not in self._dropped
        }
        wrong = profiles.fault(decision.profile, alive.get)
        if wrong:
            raise _BrokenRuleError(wrong)
        known[decision.name] = decision.profile
        return decision

    def _register_job(self, decision: RegisterJob, _: int) -> Decision:
        assert self._begun is not None
        self._check_registration()
        workload, mark, name = decision.job_id.partition("!")
        if not (workload and mark and name) or "!" in name:
            raise _BrokenRuleError("a job's id is WORKLOAD!NAME")
        if decision.job_id in self._met:
            raise _BrokenRuleError("a job of this id is known already")
        if workload in self._begun.workloads:
            raise _BrokenRuleError(
                "jobs still to come of a static workload may have this id; use a workload of your own"
            )
        alive = (workload, decision.profile) not in self._dropped
        if not alive or decision.profile not in self._profiles.get(workload, {}):
            raise _BrokenRuleError(
                f"there is no profile {decision.profile!r} in workload {workload!r}, or it was dropped"
            )
        if type(decision.res) is not int or decision.res < 1:
            raise _BrokenRuleError("it asks for no host")
        if decision.walltime is not None and not (type(decision.walltime) is int and decision.walltime > 0):
            raise _BrokenRuleError("its walltime is not positive")
        if not profiles.is_json([decision.job_id, dict(decision.fields)]):
            raise _BrokenRuleError("it cannot be written as JSON")
        state = IN_SUBMISSION if self._begun.acknowledges else WAITING
        self._met.add(decision.job_id)
        self._jobs[decision.job_id] = _Job(state, decision.res, workload, decision.profile)
        key = workload, decision.profile
        self._users[key] = self._users.get(key, 0) + 1
        return decision

    def _finish_registration(self, decision: FinishRegistration, _: int) -> Decision:
        assert self._begun is not None
        if not self._begun.dynamic_jobs:
            raise _BrokenRuleError("dynamic jobs are not enabled (--enable-dynamic-jobs)")
        if decision.finished != self._registering:
            raise _BrokenRuleError("this was said before")
        self._registering = not decision.finished
        return decision

    def _states(self, host: int) -> tuple[frozenset[int], frozenset[int]]:
        assert self._begun is not None
        all_ = self._begun.compute if host < self._n_compute else self._begun.storage
        return states(all_[host if host < self._n_compute else host - self._n_compute])

    def _set_power(self, decision: SetPowerState, _: int) -> Decision:
        if not self._energy:
            raise _BrokenRuleError("energy is not known to be simulated (-E)")
        if not decision.hosts or not is_normal(decision.hosts):
            raise _BrokenRuleError("the hosts are not in ascending, disjoint intervals")
        if decision.hosts[0][0] < 0 or decision.hosts[-1][1] >= self._n_compute:
            raise _BrokenRuleError(f"it names a host outside 0-{self._n_compute - 1}")
        for reason, those in (
            ("busy", self._busy),
            ("unavailable", self._down),
            *(("switching", those) for those in self._switching.values()),
        ):
            if bad := those.overlap(decision.hosts):
                raise _BrokenRuleError(f"host {bad[0][0]} is {reason}")
        asleep = bool(self._asleep.overlap(decision.hosts))
        if asleep and size(self._asleep.overlap(decision.hosts)) != size(decision.hosts):
            raise _BrokenRuleError("some of the hosts sleep and some do not")
        switching: list[int] = []
        for low, high in decision.hosts:
            for host in range(low, high + 1):
                computing, sleeping = self._states(host)
                if decision.pstate not in computing and (asleep or decision.pstate not in sleeping):
                    raise _BrokenRuleError(f"host {host} cannot be brought to power state {decision.pstate}")
                if asleep or decision.pstate in sleeping:
                    switching.append(host)
        if switching:
            self._switching.setdefault(decision.pstate, HostSet()).add(from_ids(switching))
        return decision

    def _query(self, decision: QueryEnergy, _: int) -> Decision:
        if not self._energy:
            raise _BrokenRuleError("energy is not known to be simulated (-E)")
        return decision

    def _metadata(self, decision: SetJobMetadata, _: int) -> Decision:
        if decision.job_id not in self._jobs:
            raise _BrokenRuleError(
                "the job is over" if decision.job_id in self._met else "there is no such job"
            )
        if any(c in decision.text for c in '"\n\r') or not profiles.is_json(decision.text):
            raise _BrokenRuleError("the text becomes a cell of a table: no quotes, no line breaks")
        return decision

    def _tell(self, decision: TellJob, _: int) -> Decision:
        job = self._jobs.get(decision.job_id)
        if job is None or job.state != RUNNING or decision.job_id in self._decided:
            raise _BrokenRuleError("the job does not run")
        if not profiles.is_json(decision.text):
            raise _BrokenRuleError("it cannot be written as JSON")
        return decision


class _AllRefusedError(_BrokenRuleError):
    """Every part was refused by itself already."""


_TAKES: dict[type[Event], Callable[[Referee, Any], None]] = {
    SimulationBegins: Referee._take_begin,
    JobSubmitted: Referee._take_submission,
    JobCompleted: Referee._take_completion,
    MachineAvailability: Referee._take_availability,
    ResourceStateChanged: Referee._take_power_state,
    SimulationEnds: Referee._take_end,
}
_RULES: dict[type[Decision], Callable[[Referee, Any, int], Decision]] = {
    ExecuteJob: Referee._execute,
    KillJob: Referee._kill,
    RejectJob: Referee._reject,
    CallMeLater: Referee._call,
    RegisterProfile: Referee._register_profile,
    RegisterJob: Referee._register_job,
    FinishRegistration: Referee._finish_registration,
    SetPowerState: Referee._set_power,
    QueryEnergy: Referee._query,
    SetJobMetadata: Referee._metadata,
    TellJob: Referee._tell,
}
