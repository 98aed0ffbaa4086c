"""The referee: knows platform and rules, and lets no decision pass that would abort the simulation.

Batsim 4 answers an illegal decision with an assertion. Where a rule depends on what the wire does not tell
(is energy simulated? is a profile still in memory?), only what is certainly legal passes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bridge.base.errors import BridgeError
from bridge.wire import events as ev
from bridge.wire import times
from bridge.wire.hosts import Hosts, ids_from_mask, is_normal, mask
from bridge.wire.json_codec import is_json
from bridge.wire.wattages import parse_power_states
from bridge.worlds.batsim import profiles
from bridge.worlds.batsim.site import SiteRules

#: Stands in the names of attempts that are in the workload of the job itself; no job of a log is called so.
AGAIN = "~again~"
_NO_JSON = "it cannot be written as JSON"
_NO_ENERGY = "energy is not known to be simulated (-E)"
WAITING, RUNNING, IN_SUBMISSION = "waiting", "running", "in submission"


@dataclass(frozen=True, slots=True)
class Refusal:
    time: int
    decision: ev.Decision
    why: str

    def __str__(self) -> str:
        about = getattr(self.decision, "job_id", "") or getattr(self.decision, "job_ids", "")
        return f"{times.text_of(self.time)} s: {type(self.decision).__name__} {about}: {self.why}"


class _BrokenRuleError(Exception):
    """A rule that is broken."""


def _forbid(condition: bool, why: str) -> None:
    if condition:
        raise _BrokenRuleError(why)


@dataclass(slots=True)
class _Job:
    state: str
    res: int
    workload: str
    profile: str
    hosts: int = 0


class Referee:
    """Follows the simulation message by message and checks each reply; strict: raises at an illegal one.

    `energy`: the platform simulates energy (``-E``); the wire does not say so. `site`: what is known of nodes
    that jobs share, once the simulation has begun; None: nothing.
    """

    def __init__(
        self,
        *,
        energy: bool = False,
        strict: bool = False,
        site: Callable[[], SiteRules | None] = lambda: None,
    ) -> None:
        self._site = site
        self._energy, self._strict = energy, strict
        self._now = 0
        self._begin_event: ev.SimulationBegins | None = None
        self._ended = False
        self._jobs: dict[str, _Job] = {}
        self._met: dict[str, None] = {}  # ids, in order; a set takes up to three times the memory
        self._users: dict[tuple[str, str], int] = {}
        self._dropped: set[tuple[str, str]] = set()
        self._registering = False
        self._hosts: tuple[ev.HostInfo, ...] = ()
        self._n_compute = 0
        # compute hosts are bits of a number
        self._busy = self._down = self._asleep = 0
        self._switching: dict[int, int] = {}  # on or off: the state that hosts are on their way to
        self._decided: set[str] = set()
        self.refusals: list[Refusal] = []

    # What the platform says.

    def observe(self, message: ev.Message) -> None:
        self._now = message.now
        for event in message.events:
            take = _TAKES.get(type(event))
            if take is not None:
                take(self, event)

    def _take_begin(self, event: ev.SimulationBegins) -> None:
        self._begin_event = event
        self._hosts = (*event.compute, *event.storage)
        self._n_compute = len(event.compute)
        self._profiles = profiles.Profiles(event)
        self._registering = event.dynamic_jobs
        self._asleep = sum(1 << host.id for host in event.compute if host.state == "sleeping")

    def _take_submission(self, event: ev.JobSubmitted) -> None:
        workload = event.job_id.partition("!")[0]
        if event.profile_fields is not None:
            self._profiles.add(workload, event.profile, event.profile_fields)
        self._met[event.job_id] = None
        job = self._jobs.get(event.job_id)
        if job is not None:  # our own, acknowledged
            if job.state == IN_SUBMISSION:
                job.state = WAITING
            return
        self._enter(event.job_id, _Job(WAITING, event.res, workload, event.profile))

    def _enter(self, job_id: str, job: _Job) -> None:
        self._jobs[job_id] = job
        key = job.workload, job.profile
        self._users[key] = self._users.get(key, 0) + 1

    def _forget(self, job_id: str) -> None:
        job = self._jobs.pop(job_id, None)
        if job is None:
            return
        if (site := self._site()) is not None:
            site.release(job_id)
        self._busy &= ~job.hosts
        if self._begin_event is not None and self._begin_event.compute_sharing:
            for other in self._jobs.values():
                self._busy |= other.hosts
        key = job.workload, job.profile
        self._users[key] -= 1
        if self._users[key]:
            return
        del self._users[key]
        if (
            self._begin_event is not None
            and self._begin_event.dynamic_jobs
            and not self._begin_event.profile_reuse
        ):
            self._dropped.add(key)  # jobs to come may hold it in memory, but nothing says so

    def _take_availability(self, event: ev.MachineAvailability) -> None:
        self._down |= self._mask(event.hosts)
        if event.available:
            self._down ^= self._mask(event.hosts)

    def _mask(self, hosts: Hosts) -> int:
        return mask(hosts, self._n_compute)

    def _take_power_state(self, event: ev.ResourceStateChanged) -> None:
        """Hosts are switched on or off; between computing states they changed when it was decided."""
        switching = self._switching.pop(event.pstate, 0)
        there = switching & self._mask(event.hosts)
        if switching != there:
            self._switching[event.pstate] = switching ^ there
        self._asleep &= ~there
        self._asleep |= sum(
            1 << k for k in ids_from_mask(there) if event.pstate in parse_power_states(self._hosts[k])[1]
        )

    def _take_end(self, _: ev.SimulationEnds) -> None:
        self._ended = True

    # What the decision process says.

    def check(self, now: int, decisions: Sequence[ev.Decision]) -> ev.Reply:
        """Return the reply with the legal decisions only, in the order in which they take effect.

        A reply's time before the message's is moved up to it. Strict: BridgeError at an illegal one.
        """
        now = max(now, self._now)
        if not decisions:
            return ev.Reply(now)
        self._decided.clear()
        legal: list[ev.Decision] = []
        over = "the simulation has ended" if self._ended else ""
        over = "the simulation has not begun" if self._begin_event is None else over
        clock_at = self._now
        for decision in decisions:
            try:
                in_time = type(decision.time) is int and clock_at <= decision.time <= now
                _forbid(not in_time, "its time is not between the previous decision's and the reply's")
                rule = None if over else _RULES.get(type(decision))
                if rule is None:
                    raise _BrokenRuleError(over or "no such decision")
                checked = rule(self, decision, now) or decision
            except _BrokenRuleError as broken:
                if str(broken):  # else each part was refused by itself
                    self._refuse(decision, str(broken))
                continue
            except (TypeError, ValueError, AttributeError) as error:
                self._refuse(decision, f"it is malformed ({error})")
                continue
            clock_at = decision.time
            legal.append(checked)
        return ev.Reply(now, tuple(legal))

    def _refuse(self, decision: ev.Decision, why: str) -> None:
        refusal = Refusal(self._now, decision, why)
        self.refusals.append(refusal)
        if self._strict:
            raise BridgeError(f"illegal decision: {refusal}", remedy="This would have aborted Batsim.")

    # Rules: they return the decision if only a part of it is legal.

    def _job(self, job_id: object, *states_: str) -> _Job:
        """Return a job that is in one of the states and that this reply has not decided about yet."""
        job = self._jobs.get(job_id) if isinstance(job_id, str) else None
        if job is None:
            raise _BrokenRuleError("the job is over" if job_id in self._met else "there is no such job")
        _forbid(job.state not in states_, f"the job is {job.state}")
        _forbid(job_id in self._decided, "this reply has decided about the job already")
        return job

    def _check_hosts(self, hosts: Hosts, *unfit: tuple[str, int]) -> int:
        """Check that hosts are compute hosts, neither switching nor otherwise unfit; return their bits."""
        normal = hosts and is_normal(hosts)
        _forbid(not normal, "the hosts are empty or not in ascending, disjoint intervals")
        if hosts[0][0] < 0 or hosts[-1][1] >= self._n_compute:
            raise _BrokenRuleError(f"it names a host outside 0-{self._n_compute - 1}, the compute hosts")
        mask = self._mask(hosts)
        for reason, those in (*unfit, *(("is switching", those) for those in self._switching.values())):
            if bad := those & mask:
                raise _BrokenRuleError(f"host {ids_from_mask(bad)[0]} {reason}")
        return mask

    def _execute(self, decision: ev.ExecuteJob, _: int) -> None:
        job = self._job(decision.job_id, WAITING)
        assert self._begin_event is not None
        busy = 0 if self._begin_event.compute_sharing else self._busy
        unfit = ("runs another job", busy), ("is unavailable", self._down), ("is asleep", self._asleep)
        mask = self._check_hosts(decision.hosts, *unfit)
        self._check_size(decision, job, mask.bit_count())
        if decision.storage_mapping is not None:
            _forbid(decision.mapping is not None, "it has both a mapping and a storage_mapping")
            ids = decision.storage_mapping.values()
            fit = all(type(i) is int and self._n_compute <= i < len(self._hosts) for i in ids)
            _forbid(not ids or not fit, "the storage_mapping is empty or names a host that is no storage")
        if (site := self._site()) is not None:
            fault = site.take(decision.job_id, decision.hosts, self._now)
            _forbid(bool(fault), fault)
        job.state, job.hosts = RUNNING, mask
        self._busy |= mask
        self._decided.add(decision.job_id)

    def _check_size(self, decision: ev.ExecuteJob, job: _Job, n_hosts: int) -> None:
        if decision.mapping is not None:
            ranks = decision.mapping
            places = all(type(place) is int and 0 <= place < n_hosts for place in ranks.values())
            wrong = sorted(ranks) != list(range(len(ranks))) or not places
            _forbid(wrong, "the mapping does not give each rank, from 0 on, a place in the allocation")
            n_hosts = len(ranks)
        if n_hosts != job.res:
            workload_profiles = self._profiles.by_workload.get(job.workload, {})
            if not (
                job.profile in workload_profiles
                and profiles.any_size(workload_profiles[job.profile], workload_profiles.get)
            ):
                raise _BrokenRuleError(f"the job asks for {job.res} hosts and is given {n_hosts}")
        needed = self._profiles.labels(job.workload, job.profile)
        if needed and not set(needed) <= set(decision.storage_mapping or ()):
            raise _BrokenRuleError(f"no storage host is given for {', '.join(sorted(needed))}")

    def _kill(self, decision: ev.KillJob, _: int) -> ev.Decision:
        _forbid(not decision.job_ids, "it names no job")
        legal: list[str] = []
        for job_id in decision.job_ids:
            try:
                self._job(job_id, RUNNING)
            except _BrokenRuleError as broken:
                self._refuse(replace(decision, job_ids=(job_id,)), str(broken))
                continue
            legal.append(job_id)
            self._decided.add(job_id)
        _forbid(not legal, "")
        return replace(decision, job_ids=tuple(legal))

    def _reject(self, decision: ev.RejectJob, _: int) -> None:
        self._job(decision.job_id, WAITING)
        self._forget(decision.job_id)
        self._decided.add(decision.job_id)

    def _call(self, decision: ev.CallMeLater, now: int) -> None:
        due = type(decision.at) is int and now < decision.at <= times.LATEST
        _forbid(not due, "the call is not due later than the reply")

    def _check_registration(self) -> ev.SimulationBegins:
        assert self._begin_event is not None
        _forbid(not self._begin_event.dynamic_jobs, "dynamic jobs are not enabled (--enable-dynamic-jobs)")
        _forbid(not self._registering, "registration was declared finished")
        return self._begin_event

    def _register_profile(self, decision: ev.RegisterProfile, _: int) -> None:
        begin_event, workload = self._check_registration(), decision.workload
        _forbid(not workload or "!" in workload, "the workload's name is empty or has a '!'")
        is_registered = decision.name in self._profiles.by_workload.get(workload, {})
        _forbid(is_registered, f"the profile {decision.name!r} is there already")
        static = workload in begin_event.workloads
        _forbid(static, "a static workload may have had such a profile; use a workload of your own")
        _forbid(not is_json([workload, decision.name, decision.profile]), _NO_JSON)
        if wrong := profiles.find_fault(decision.profile):
            raise _BrokenRuleError(wrong)
        self._profiles.add(workload, decision.name, decision.profile)

    def _register_job(self, decision: ev.RegisterJob, _: int) -> None:
        begin_event = self._check_registration()
        workload, mark, name = decision.job_id.partition("!")
        _forbid(not (workload and mark and name) or "!" in name, "a job's id is WORKLOAD!NAME")
        _forbid(decision.job_id in self._met, "a job of this id is known already")
        _forbid(
            workload in begin_event.workloads and AGAIN not in name,
            "jobs still to come of a static workload may have this id; use a workload of your own, or a name "
            f"with {AGAIN!r}",
        )
        key = workload, decision.profile
        gone = key in self._dropped or decision.profile not in self._profiles.by_workload.get(workload, {})
        _forbid(gone, f"there is no profile {decision.profile!r} in workload {workload!r}, or it was dropped")
        _forbid(type(decision.res) is not int or decision.res < 1, "it asks for no host")
        walltime = decision.walltime
        wrong = walltime is not None and not (type(walltime) is int and walltime > 0)
        _forbid(wrong, "its walltime is not positive")
        _forbid(not is_json([decision.job_id, dict(decision.fields)]), _NO_JSON)
        self._met[decision.job_id] = None
        state = IN_SUBMISSION if begin_event.acknowledges else WAITING
        self._enter(decision.job_id, _Job(state, decision.res, *key))

    def _finish_registration(self, _: ev.FinishRegistration, __: int) -> None:
        self._check_registration()
        self._registering = False

    def _set_power(self, decision: ev.SetPowerState, _: int) -> None:
        _forbid(not self._energy, _NO_ENERGY)
        hosts, pstate = decision.hosts, decision.pstate
        mask = self._check_hosts(hosts, ("is busy", self._busy), ("is unavailable", self._down))
        asleep = self._asleep & mask
        _forbid(asleep not in (0, mask), "some of the hosts sleep and some do not")
        switching = 0
        for host in ids_from_mask(mask):
            computing, sleeping = parse_power_states(self._hosts[host])
            if pstate not in computing and (asleep or pstate not in sleeping):
                raise _BrokenRuleError(f"host {host} cannot be brought to power state {pstate}")
            if asleep or pstate in sleeping:
                switching |= 1 << host
        if switching:
            self._switching[pstate] = self._switching.get(pstate, 0) | switching

    def _query(self, _: ev.QueryEnergy, __: int) -> None:
        _forbid(not self._energy, _NO_ENERGY)


_TAKES: dict[type[ev.Event], Callable[[Referee, Any], None]] = {
    ev.SimulationBegins: Referee._take_begin,
    ev.JobSubmitted: Referee._take_submission,
    ev.JobCompleted: lambda referee, event: referee._forget(event.job_id),
    ev.MachineAvailability: Referee._take_availability,
    ev.ResourceStateChanged: Referee._take_power_state,
    ev.SimulationEnds: Referee._take_end,
}
_RULES: dict[type[ev.Decision], Callable[[Referee, Any, int], ev.Decision | None]] = {
    ev.ExecuteJob: Referee._execute,
    ev.KillJob: Referee._kill,
    ev.RejectJob: Referee._reject,
    ev.CallMeLater: Referee._call,
    ev.RegisterProfile: Referee._register_profile,
    ev.RegisterJob: Referee._register_job,
    ev.FinishRegistration: Referee._finish_registration,
    ev.SetPowerState: Referee._set_power,
    ev.QueryEnergy: Referee._query,
}
