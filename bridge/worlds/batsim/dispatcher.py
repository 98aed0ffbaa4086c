"""The dispatcher: turns messages into a pass of the one scheduler core, and its starts into decisions.

All events of a message are applied first, then the scheduler runs once: the message is the instant of
the standard protocol. A message that can change no decision (a note, a stale wake-up) starts no pass.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from bridge.base.errors import BridgeError
from bridge.scheduler import core
from bridge.scheduler.actions import Action, format_action
from bridge.scheduler.cluster_session import SiteJobs
from bridge.scheduler.compiled import compile_policy
from bridge.scheduler.protocol import PROTOCOLS, Policy, Protocol
from bridge.scheduler.session import JobEstimates, Session
from bridge.scheduler.state import HOW_BACKFILLED, NEVER
from bridge.wire import events as ev
from bridge.wire.hosts import Hosts
from bridge.wire.times import MICRO
from bridge.wire.wattages import parse_power_states
from bridge.worlds.batsim.estimates import Estimator, WorkloadFacts, estimate_requested
from bridge.worlds.batsim.jobs import DispatchedJob
from bridge.worlds.batsim.machine_view import ASLEEP, UNAVAILABLE
from bridge.worlds.batsim.power_states import Power, PowerPlan
from bridge.worlds.batsim.wire_scheduler import PlacementConfig, WireScheduler, by_submission

#: What a job can ask for stays below it: sums of two fit into 64 bits.
_MOST = 1 << 62
#: Answers a decision of the scheduler (session, kind): a place among the candidates, or ``machine.DECLINE``.
Decider = Callable[[Session, int], int]


@dataclass(frozen=True)
class DispatcherConfig(PlacementConfig):
    """Configuration of a dispatcher.

    Attributes:
        policy, protocol: of the scheduler core.
        resources: further resources, name -> the machine's amount; a job's field of that name is its demand.
        estimator: believed lengths.
        facts: what some orders know of the workload.
        decider: answers decisions that the policy leaves to an agent.
        window: most candidates shown to an agent.
        site: makes the site's jobs and nodes, for a window; None: the machine is one pool of hosts.
        site_kills: running jobs of the site may be stopped, by its calendar or by preemption.
        power: what is done with power states, which the platform must simulate; None: they are left alone.
    """

    policy: Policy = field(default_factory=Policy)
    protocol: Protocol = PROTOCOLS["standard"]
    resources: Mapping[str, int] = field(default_factory=dict)
    estimator: Estimator = estimate_requested
    facts: WorkloadFacts = field(default_factory=WorkloadFacts)
    decider: Decider | None = None
    window: int = 128
    site: "Callable[[int], SiteJobs] | None" = None
    site_kills: bool = False
    power: PowerPlan | None = None

    def check(self) -> None:
        """Refuse (BridgeError) an unknown policy, and one that lacks a decider or facts."""
        compiled = compile_policy(self.policy, self.protocol, on_nodes=self.site is not None)
        if compiled.action is not None:
            self._refuse_action(compiled.action)
        self.facts.check(compiled.order)
        if self.policy.agent and self.decider is None:
            whose = ", ".join(sorted(self.policy.agent))
            raise BridgeError("has no agent to decide", where=whose, remedy="Give a decider.")
        if self.power is not None and self.power.levels is not None and "power" not in self.resources:
            raise BridgeError("power per job is a resource", remedy="Say how much power there is for jobs.")
        if self.power is not None and self.site is not None:
            what, remedy = (
                "power states do not know the nodes of a cluster yet",
                "Leave out --cluster, or power.",
            )
            raise BridgeError(what, remedy=remedy)
        if self.site is not None and self.placement_name != PlacementConfig.placement_name:
            what, where = "a cluster's scheduler names the nodes", f"--placement {self.placement_name}"
            raise BridgeError(
                what, where=where, remedy="Leave it out; scheduler.select of the cluster decides."
            )

    def _refuse_action(self, action: Action) -> None:
        """Raise BridgeError for a rule of action that a platform cannot carry out, or not in this setup."""
        pairs = (
            (action.kind == "guest", "a guest runs on nodes of suspended jobs, and SimGrid suspends none",
             "Use speculative, trial, las or hybrid there; replay and evaluate have guest."),
            (self.site is not None, "a job of a cluster is stopped and run again in the fast world only",
             "Leave out --cluster, or the action; replay and evaluate have both."),
            (bool(self.policy.agent), "an agent decides about actions in the fast world only",
             "Leave out the agent, and the fixed rule decides."),
            (self.power is not None, "power states do not know jobs that are killed and run again yet",
             "Leave out the action, or power."),
            (action.share < 1 and not self.facts.permits, "a share of the users is drawn from the whole log",
             "Give --workload, or leave out the share."),
        )  # fmt: skip
        for is_wrong, what, remedy in pairs:
            if is_wrong:
                raise BridgeError(what, where=f"action {format_action(action)!r}", remedy=remedy)


class Dispatcher(WireScheduler[DispatchedJob]):
    """Runs one scheduler session: applies messages, and chooses hosts for the jobs that start."""

    session: Session
    _session_type = Session

    def __init__(self, setup: DispatcherConfig) -> None:
        setup.check()
        super().__init__(setup)
        self._setup = setup
        self._index: list[DispatchedJob | None] = []  # by the scheduler's number; None: it is over
        self._sleep_states: list[frozenset[int]] = []
        self._capacity: tuple[int, ...] = ()
        self._resources = tuple(setup.resources)
        self._calls: set[int] = set()
        self._lost_hosts = False
        self._power: Power | None = None
        self._granted: list[DispatchedJob] = []  # started by the scheduler, not executed yet
        # of one message:
        self._arrivals: list[ev.JobSubmitted] = []
        self._opens = self._changed = self._woken = False

    def decide(self, message: ev.Message) -> list[ev.Decision]:
        """See `WireScheduler.decide`; an order's score that is no number is an error as well."""
        if self._begin_event is not None:
            self.session.now = message.now
        self._arrivals, self._opens, self._changed, self._woken = [], False, False, False
        return super().decide(message)

    def _begin(self, begin: ev.SimulationBegins) -> None:
        setup = self._setup
        self._begin_registration(begin)
        hosts = len(begin.compute)
        self._sleep_states = [parse_power_states(host)[1] for host in begin.compute]
        self._power = Power(setup.power, hosts) if setup.power is not None else None
        self._capacity = (hosts, *setup.resources.values())
        self.session = self._new_session()
        asleep = tuple((host.id, host.id) for host in begin.compute if host.state == "sleeping")
        if asleep:
            self._machine.set_out_of_service(asleep, ASLEEP)
            self._lost_hosts = True
        self.session.now = self._now

    def _begin_registration(self, begin: ev.SimulationBegins) -> None:
        if begin.dynamic_jobs:  # we register none, and Batsim would wait for us to say so
            self._say(ev.FinishRegistration)

    def _new_session(self) -> Session:
        setup = self._setup
        return self._session_type(
            self._capacity,
            setup.policy,
            setup.protocol,
            window=setup.window,
            longest=setup.facts.longest,
            shares=setup.facts.shares,
            resources=("nodes", *self._resources),
        )

    def _make_decisions(self) -> None:
        if self.session.outgrown(self._unfinished):
            self._compact()
        if len(self._arrivals) > 1:
            self._arrivals.sort(key=lambda event: by_submission(event, self._setup.facts.numbering))
        for arrival in self._arrivals:
            self._queue(arrival)
        if self._lost_hosts or self._changed:
            self.session.set_out_of_service((self._machine.n_out_of_service, *([0] * len(self._resources))))
            self._opens |= self._changed
        if self.ended:
            return
        if self._woken and not self._opens:
            self._opens = self.session.is_due()
        if self._opens:
            self._pass()
        self._carry_out()
        if self._opens or self._woken:
            wake = self.session.wake_at
            if wake != NEVER and wake not in self._calls and (self._more_jobs or self._unfinished):
                self._call(max(wake, self._now + 1))

    def _compact(self) -> None:
        left = [job for job in self._index if job is not None]
        self.session.compact([job.index for job in left])
        for k, job in enumerate(left):
            job.index = k
        self._index = [*left]

    # Jobs.

    def _submit(self, event: ev.JobSubmitted) -> None:
        self._arrivals.append(event)

    def _queue(self, event: ev.JobSubmitted) -> None:
        job = self._new_job(event)
        self._add(job)
        demand = [event.res, *(self._amount(event, name) for name in self._resources)]
        job.storage, unserved = self._profiles.storage_of(event)
        if why := self._round_up(job, demand) or self._impossible(demand) or unserved:
            self._reject(job, why)
            self.jobs.close(job)
            return
        facts = self._setup.facts
        number = facts.numbering(event.job_id)
        number = len(self._index) + 1 if number is None else number
        user, partition = facts.user(event), facts.partition(event)
        job.index = self._enqueue(
            event, number, demand, self._setup.estimator(event), user=user, partition=partition
        )
        self._index += [None] * (job.index + 1 - len(self._index))
        self._index[job.index] = job
        self._unfinished += 1
        self._opens = True

    def _new_job(self, event: ev.JobSubmitted) -> DispatchedJob:
        return DispatchedJob(event.job_id, event.submit, event.res)

    def _enqueue(
        self,
        event: ev.JobSubmitted,  # noqa: ARG002  (those who need it)
        number: int,
        demand: list[int],
        lengths: JobEstimates,
        **facts: Any,
    ) -> int:
        """Put a job into the scheduler's queue; return its index there."""
        return self.session.submit(number, demand, lengths, **facts)

    def _round_up(self, job: DispatchedJob, demand: list[int]) -> str:
        """Book the level of power that a job's hosts will be set to; returns why that cannot be, if so."""
        levels = self._setup.power.levels if self._setup.power is not None else None
        if levels is None or job.n_hosts < 1:
            return ""
        place = 1 + self._resources.index("power")
        level = levels.round_up(job.n_hosts, demand[place])
        if level is None:
            fault = f"asks for {demand[place]} power on {job.n_hosts} hosts"
            return f"{fault}, which can draw {levels.watts[-1]} W each"
        job.level, demand[place] = level
        return ""

    def _amount(self, event: ev.JobSubmitted, name: str) -> int:
        """Return how much of a further resource a job asks for; none if it has no such field."""
        amount = event.fields.get(name)
        if amount is None:
            return 0
        if type(amount) not in (int, float, Decimal) or not (0 <= amount < _MOST and amount == int(amount)):
            what = f"its {name} is {amount}, not a whole amount"
            remedy = "Bytes and watts are whole numbers from 0 up, below 4.6e18."
            raise BridgeError(what, where=f"job {event.job_id}", remedy=remedy)
        return int(amount)

    def _impossible(self, demand: Sequence[int]) -> str:
        if demand[0] < 1:
            return f"asks for {demand[0]} nodes"
        for name, amount, there in zip(("nodes", *self._resources), demand, self._capacity, strict=True):
            if amount > there:
                return f"asks for {amount} {name}, the machine has {there}"
        return ""

    def _complete(self, event: ev.JobCompleted) -> None:
        job, _ = self._finish(event, "running")
        self._release(job, event.time)
        self._opens = True

    def _release(self, job: DispatchedJob, now: int) -> None:
        self.session.finish(job.index)
        self._index[job.index] = None
        self._unfinished -= 1
        if self._power is not None:
            self._power.release(job.hosts, now)
        self.jobs.close(job)

    def _on_wake_up(self) -> None:
        self._woken = True

    # Hosts.

    def _on_other_event(self, event: ev.Event) -> None:
        if isinstance(event, ev.MachineAvailability):
            self._change_availability(event)
        elif isinstance(event, ev.ResourceStateChanged):
            self._change_power(event)

    def _change(self, hosts: Hosts, available: bool, why: str) -> None:
        (self._machine.set_in_service if available else self._machine.set_out_of_service)(hosts, why)
        self._lost_hosts = self._changed = True

    def _change_availability(self, event: ev.MachineAvailability) -> None:
        self._change(event.hosts, event.available, UNAVAILABLE)
        if self._power is None:
            return
        if self._power.plan.shuts_down:
            what = "hosts that leave and come back cannot be switched off and on besides"
            remedy = "Leave out --events, or shutdown_after."
            raise BridgeError(what, where=f"time {event.time / MICRO:.6f} s", remedy=remedy)
        self._power.states.set_unavailable(event.hosts, not event.available)

    def _change_power(self, event: ev.ResourceStateChanged) -> None:
        if self._power is not None:  # to the scheduler, hosts that we switch off are free
            self._power.states.on_reached(event.hosts, event.pstate)
            return
        for low, high in event.hosts:
            for host in range(low, min(high + 1, len(self._sleep_states))):
                self._change(((host, host),), event.pstate not in self._sleep_states[host], ASLEEP)

    # The pass.

    def _pass(self) -> None:
        for job in self._start_jobs():
            job.hosts = self._machine.place(job.n_hosts)
            self._granted.append(job)
            if self._power is not None:
                job.state = "waking"
                self._power.on_start(job.hosts, job.level, int(self.session.state.scalars.n_waiting[0]))

    def _start_jobs(self) -> Iterator[DispatchedJob]:
        """Let the scheduler decide, and yield the jobs that it starts."""
        self._run_pass()
        session = self.session
        for j in session.starts():
            job = self._index[j]
            assert job is not None
            how, past, job.promised = session.how(j)
            job.backfilled = how == HOW_BACKFILLED
            overtaken = self._index[past] if past >= 0 else None
            job.overtook = "" if overtaken is None else overtaken.job_id
            yield job

    def _run_pass(self) -> None:
        """Let the scheduler decide."""
        self.passes += 1
        session = self.session
        session.begin()
        while (kind := session.advance()) != core.NOTHING:
            assert self._setup.decider is not None
            session.answer(self._setup.decider(session, kind))

    def _call(self, at: int) -> None:
        self._calls = {other for other in self._calls if other > self._now} | {at}
        self._say(ev.CallMeLater, at)

    def _carry_out(self) -> None:
        """Execute what was granted, once its hosts are in their power state, and let idle hosts sleep."""
        power = self._power
        if power is not None:
            if self._more_jobs or self._unfinished:  # else it would only make the simulation longer
                self._doze(power)
            self._decisions += power.states.changes(self._now)
        granted, self._granted = self._granted, []
        for job in granted:
            if power is None or power.states.ready(job.hosts):
                self._execute(job)
            else:
                self._granted.append(job)

    def _doze(self, power: Power) -> None:
        hosts = power.select_hosts_to_sleep(self._now)
        if hosts:
            self._machine.set_out_of_service(hosts, ASLEEP)
        due = power.next_sleep_time()
        if due is not None and not any(self._now < at <= due for at in self._calls):
            self._call(due)

    def on_refused(self, decision: ev.Decision, why: str) -> None:
        if isinstance(decision, ev.ExecuteJob) and decision.job_id in self.jobs:
            self._lose(decision, why)
            self._release(self.jobs[decision.job_id], decision.time)

    def report_fields(self, job: DispatchedJob) -> dict[str, Any]:
        started = job.start >= 0
        return {
            "start_kind": ("backfilled" if job.backfilled else "head") if started else None,
            "overtook": job.overtook if started else "",
        }
